"""`FromExample`: begin with one of the specifications that come with the program."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QPlainTextEdit, QSplitter, QWidget

from ...engine.specification.new_document import NewSpecification
from ...engine.specification.toml_edit import rebased
from ...engine.specification.toml_section import MAX_BYTES
from ...files import read_text
from ..plots import theme
from ..tune.draft import examples
from ..widgets import vbox


class FromExample(QWidget):
    """A copy: the example itself stays as it is, and the copy names its sources where they lie."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.list, self.text = QListWidget(), QPlainTextEdit()
        self.list.setAccessibleName("Examples")
        self.text.setAccessibleName("The example")
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setFont(theme.fixed_font())
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        for path in examples():
            item = QListWidgetItem(path.stem.replace("_", " "), self.list)
            item.setData(Qt.ItemDataRole.UserRole, path)
        parts = QSplitter()
        parts.addWidget(self.list)
        parts.addWidget(self.text)
        parts.setSizes([180, 640])
        vbox((parts, 1), of=self)
        self.list.currentItemChanged.connect(self._show)
        self.list.setCurrentRow(0)

    @property
    def ready(self) -> bool:
        return self.list.currentItem() is not None

    def specification(self) -> tuple[NewSpecification, Path]:
        """A copy of the chosen example, for the home folder; `ready` comes first."""
        path: Path = self.list.currentItem().data(Qt.ItemDataRole.UserRole)
        folder = Path.home()
        return NewSpecification(f"my_{path.stem}", rebased(_text(path), path.parent, folder), (), ()), folder

    @Slot()
    def _show(self) -> None:
        item = self.list.currentItem()
        self.text.setPlainText(_text(item.data(Qt.ItemDataRole.UserRole)) if item is not None else "")
        self.changed.emit()


def _text(path: Path) -> str:
    return read_text(path, MAX_BYTES)  # a few KiB that come with the program
