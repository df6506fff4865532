"""`EditedSpecification`: the text that is edited, where it belongs, and what a file holds of it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QTextCursor, QTextDocument

from ...base.errors import InputError
from ...engine.specification.toml_edit import rebased


class EditedSpecification(QObject):
    """The text of a document of Qt's, whose history it has, with the file that it is for."""

    changed = Signal()  # the text is another one
    place_changed = Signal()  # it was opened, saved or made

    def __init__(self, document: QTextDocument, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self.text = ""
        self._raw: str | None = ""  # the same as Qt has it, to which a few control characters are others; None: not yet
        self.path: Path | None = None  # None: it was not saved yet
        self.folder = Path.home()  # what file names in it are relative to
        self.name = "untitled"  # of a file for it
        self._saved = ""
        document.contentsChanged.connect(self._look)

    @property
    def modified(self) -> bool:
        """There is something that no file holds."""
        return self.text != self._saved

    @property
    def title(self) -> str:
        return self.path.name if self.path is not None else f"{self.name}.toml"

    @property
    def place(self) -> Path:
        """Where it is, or would be: what messages about it name."""
        return self.path if self.path is not None else self.folder / self.title

    def open(self, text: str, path: Path) -> None:
        """Edit what a file holds."""
        self.path, self.folder, self.name, self._saved = path, path.absolute().parent, path.stem, text
        self._begin(text)

    def begin(self, text: str, folder: Path, name: str) -> None:
        """Edit a text that is in no file yet."""
        self.path, self.folder, self.name, self._saved = None, folder, name, ""
        self._begin(text)

    def note_saved(self, text: str, path: Path) -> None:
        """A file holds this text now."""
        self.path, self.folder, self.name, self._saved = path, path.absolute().parent, path.stem, text
        self.place_changed.emit()

    def text_for(self, path: Path) -> str:
        """The text for another file: the sources that it names are found from there."""
        try:
            return rebased(self.text, self.folder, path.absolute().parent)
        except InputError:  # it is not TOML yet
            return self.text

    def set_text(self, text: str) -> None:
        """All of it is another text, which can be undone. Only where it differs is anything touched."""
        old = self.text
        most = min(len(text), len(old))
        start = next((at for at in range(most) if text[at] != old[at]), most)
        tail = 0
        while tail < most - start and text[-1 - tail] == old[-1 - tail]:
            tail += 1
        cursor = QTextCursor(self._document)
        cursor.setPosition(_units(old[:start]))
        cursor.setPosition(_units(old[: len(old) - tail]), QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(text[start : len(text) - tail])

    @Slot()
    def undo(self) -> None:
        """Take the newest change back."""
        self._document.undo()

    @Slot()
    def redo(self) -> None:
        """Make it again."""
        self._document.redo()

    def _begin(self, text: str) -> None:
        self._raw = None
        self._document.setPlainText(text)
        self.text, self._raw = text, self._document.toRawText()
        self.place_changed.emit()
        self.changed.emit()

    @Slot()
    def _look(self) -> None:
        """See whether the text is another one: a new colour of it counts as a change for Qt."""
        raw = self._document.toRawText()
        if self._raw is not None and raw != self._raw:
            self.text, self._raw = raw.replace("\u2029", "\n"), raw
            self.changed.emit()


def _units(text: str) -> int:
    """The length of a text as Qt counts it, in units of UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
