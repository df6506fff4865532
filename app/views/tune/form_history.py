"""`FormHistory`: undo and redo of what a person changed in the form of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal, Slot

if TYPE_CHECKING:
    from .session_form import SessionForm

_KEPT = 200


class FormHistory(QObject):
    """Begins anew with every draft. Changes of one field in a row are one step: digits are typed one by one."""

    changed = Signal()

    def __init__(self, form: SessionForm) -> None:
        super().__init__(form)
        self._form = form
        self._states: list[dict[str, Any]] = []
        self._at = -1
        self._field = ""  # the one that the newest step changed
        form.edited.connect(self._edited)
        form.draft_shown.connect(self._begin)

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

    def _go(self, at: int) -> None:
        self._at, self._field = at, ""
        self._form.set_state(self._states[at])
        self.changed.emit()

    @Slot()
    def _begin(self) -> None:
        self._states, self._at, self._field = [self._form.state()], 0, ""
        self.changed.emit()

    @Slot()
    def _edited(self) -> None:
        if self._at < 0:
            return
        state, before = self._form.state(), self._states[self._at]
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
