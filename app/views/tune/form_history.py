"""`FormHistory`: undo and redo of what the user changed in a form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from ..history import History

State = dict[str, Any]  # the values of a form, by field


class FormHistory(QObject):
    """The states of a form, read and set by two callables.

    Changes of one field in a row are one step: digits are typed one by one.
    """

    changed = Signal()

    def __init__(self, read: Callable[[], State], write: Callable[[State], None], parent: QObject) -> None:
        super().__init__(parent)
        self._read, self._write = read, write
        self._states: History[State] = History()

    @property
    def can_undo(self) -> bool:
        return self._states.can_undo

    @property
    def can_redo(self) -> bool:
        return self._states.can_redo

    @Slot()
    def undo(self) -> None:
        """Take the newest change back."""
        if self.can_undo:
            self._write(self._states.undo())
            self.changed.emit()

    @Slot()
    def redo(self) -> None:
        """Make it again."""
        if self.can_redo:
            self._write(self._states.redo())
            self.changed.emit()

    @Slot()
    def begin(self) -> None:
        """Forget everything: the form was filled with something else."""
        self._states.begin(self._read())
        self.changed.emit()

    @Slot()
    def note(self) -> None:
        """The user changed something."""
        if not self._states.begun:
            return
        state, before = self._read(), self._states.state
        fields = [name for name in state if state[name] != before[name]]
        if fields:
            self._states.note(state, fields[0] if len(fields) == 1 else "")
            self.changed.emit()
