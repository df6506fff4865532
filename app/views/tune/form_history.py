"""`FormHistory`: undo and redo of what the user changed in a form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

_KEPT = 200
State = dict[str, Any]  # the values of a form, by field


class FormHistory(QObject):
    """The states of a form, read and set by two callables.

    Changes of one field in a row are one step: digits are typed one by one.
    """

    changed = Signal()

    def __init__(self, read: Callable[[], State], write: Callable[[State], None], parent: QObject) -> None:
        super().__init__(parent)
        self._read, self._write = read, write
        self._states: list[State] = []
        self._at = -1
        self._field = ""  # the one that the newest step changed

    @property
    def can_undo(self) -> bool:
        return self._at > 0

    @property
    def can_redo(self) -> bool:
        return self._at + 1 < len(self._states)

    @Slot()
    def undo(self) -> None:
        """Take the newest change back."""
        if self.can_undo:
            self._go(self._at - 1)

    @Slot()
    def redo(self) -> None:
        """Make it again."""
        if self.can_redo:
            self._go(self._at + 1)

    @Slot()
    def begin(self) -> None:
        """Forget everything: the form was filled with something else."""
        self._states, self._at, self._field = [self._read()], 0, ""
        self.changed.emit()

    @Slot()
    def note(self) -> None:
        """The user changed something."""
        if self._at < 0:
            return
        state, before = self._read(), self._states[self._at]
        fields = [name for name in state if state[name] != before[name]]
        if not fields:
            return
        del self._states[self._at + 1 :]
        if fields == [self._field] and self._at > 0:
            self._states[self._at] = state
        else:
            self._states = [*self._states, state][-_KEPT:]
        self._at, self._field = len(self._states) - 1, fields[0] if len(fields) == 1 else ""
        self.changed.emit()

    def _go(self, at: int) -> None:
        self._at, self._field = at, ""
        self._write(self._states[at])
        self.changed.emit()
