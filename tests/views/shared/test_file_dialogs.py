"""Each way to ask for a file calls back with paths, and leaves no dialog behind: answered or put away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from app.views.shared.widgets import choose_folder, open_file, open_files, save_file

Ask = Callable[[QWidget, Callable[[object], object]], None]
KINDS = "Tables (*.csv);;All files (*)"
WAYS: dict[str, tuple[Ask, str, list[str], object]] = {
    "open a file": (lambda w, chosen: open_file(w, "t", KINDS, chosen), "fileSelected", ["/x/a.csv"], Path("/x/a.csv")),
    "open files": (
        lambda w, chosen: open_files(w, "t", KINDS, chosen),
        "filesSelected",
        ["/x/a.csv", "/x/b.csv"],
        [Path("/x/a.csv"), Path("/x/b.csv")],
    ),
    "a folder": (lambda w, chosen: choose_folder(w, "t", chosen), "fileSelected", ["/x"], Path("/x")),
    "save": (
        lambda w, chosen: save_file(w, "t", "a.csv", KINDS, chosen),
        "fileSelected",
        ["/x/a.csv"],
        Path("/x/a.csv"),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("answered", [True, False])
def test_an_answer_comes_as_paths_and_the_dialog_goes(qtbot: QtBot, way: str, answered: bool) -> None:
    ask, signal, names, expected = WAYS[way]
    window, chosen = QWidget(), []  # type: QWidget, list[object]
    qtbot.addWidget(window)
    ask(window, chosen.append)
    [dialog] = window.findChildren(QFileDialog)
    if answered:
        getattr(dialog, signal).emit(names if signal == "filesSelected" else names[0])
    dialog.close()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert chosen == ([expected] if answered else [])
    assert window.findChildren(QFileDialog) == []
