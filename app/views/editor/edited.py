"""`EditedSpecification`: the text that is edited, where it belongs, and one history over everything that changed it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from ...engine.specification.toml_edit import Place, moved, rebased, renamed, with_value, without
from ...errors import InputError
from ..history import History


class EditedSpecification(QObject):
    """The text is the one state: the form changes values in it, the text pane all of it."""

    changed = Signal()  # the text is another one
    place_changed = Signal()  # it was opened, saved or made
    refused = Signal(str)  # why the form could not change it

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._history: History[str] = History()
        self._history.begin("")
        self.path: Path | None = None  # None: it was not saved yet
        self.folder = Path.home()  # what file names in it are relative to
        self.name = "untitled"  # of a file for it
        self._saved = ""

    @property
    def text(self) -> str:
        return self._history.state

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

    @property
    def can_undo(self) -> bool:
        return self._history.can_undo

    @property
    def can_redo(self) -> bool:
        return self._history.can_redo

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

    def set_text(self, text: str, key: str = "") -> None:
        """All of it is another text. Changes in a row with the same key are undone together."""
        if text != self.text:
            self._history.note(text, key)
            self.changed.emit()

    def set_value(self, place: Place, value: Any) -> bool:
        """The value of a place is this one; None or nothing removes it. False where that cannot be, with `refused`."""
        if value in (None, "", [], {}) and not isinstance(value, bool):
            return self.remove(place)
        return self._change(lambda text: with_value(text, place, value), f"value {place}")

    def remove(self, place: Place) -> bool:
        """The value of a place goes."""
        return self._change(lambda text: without(text, place))

    def move(self, place: Place, to: Place) -> bool:
        """Two neighbours change places."""
        return self._change(lambda text: moved(text, place, to))

    def rename(self, place: Place, name: str) -> bool:
        """An entry has another key."""
        return self._change(lambda text: renamed(text, place, name))

    def change(self, *steps: Callable[[str], str]) -> bool:
        """Several changes that are undone together."""

        def all_of_them(text: str) -> str:
            for step in steps:
                text = step(text)
            return text

        return self._change(all_of_them)

    @Slot()
    def undo(self) -> None:
        """Take the newest change back."""
        if self.can_undo:
            self._history.undo()
            self.changed.emit()

    @Slot()
    def redo(self) -> None:
        """Make it again."""
        if self.can_redo:
            self._history.redo()
            self.changed.emit()

    def _begin(self, text: str) -> None:
        self._history.begin(text)
        self.place_changed.emit()
        self.changed.emit()

    def _change(self, how: Callable[[str], str], key: str = "") -> bool:
        try:
            self.set_text(how(self.text), key)
        except (InputError, LookupError) as error:
            self.refused.emit(str(error))
            return False
        return True
