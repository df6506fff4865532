"""The dialogs that ask for files and folders. None stops the window: each calls back once answered, and is gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget


def open_file(parent: QWidget, title: str, kinds: str, chosen: Callable[[Path], object]) -> None:
    """Ask for a file that is there. `kinds` as Qt writes them: "Tables (*.csv);;All files (*)"."""
    dialog = _dialog(parent, title, kinds)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.fileSelected.connect(lambda name: chosen(Path(name)))
    dialog.open()


def open_files(parent: QWidget, title: str, kinds: str, chosen: Callable[[list[Path]], object]) -> None:
    """Ask for one or several files that are there."""
    dialog = _dialog(parent, title, kinds)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
    dialog.filesSelected.connect(lambda names: chosen([Path(name) for name in names]))
    dialog.open()


def choose_folder(parent: QWidget, title: str, chosen: Callable[[Path], object], *, start: str = "") -> None:
    """Ask for a folder, from `start` on."""
    dialog = _dialog(parent, title, start=start)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.fileSelected.connect(lambda name: chosen(Path(name)))
    dialog.open()


def save_file(
    parent: QWidget, title: str, name: str, kinds: str, chosen: Callable[[Path], object], *, suffix: str = ""
) -> None:
    """Ask where something is to be written, `name` offered; `suffix` is added where the user gives none."""
    dialog = _dialog(parent, title, kinds, start=str(Path.home() / name))
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(suffix)
    dialog.selectFile(name)
    dialog.fileSelected.connect(lambda path: chosen(Path(path)))
    dialog.open()


def _dialog(parent: QWidget, title: str, kinds: str = "", *, start: str = "") -> QFileDialog:
    dialog = QFileDialog(parent, title, start, kinds)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return dialog
