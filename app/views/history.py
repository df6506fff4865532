"""`History`: the states that something went through, and the way back and forth between them."""

from __future__ import annotations

from typing import Generic, TypeVar

_KEPT = 200
S = TypeVar("S")


class History(Generic[S]):
    """Changes in a row with the same key, such as the digits typed into one field, are one step."""

    def __init__(self) -> None:
        self._states: list[S] = []
        self._at = -1
        self._key = ""  # of the newest step

    @property
    def begun(self) -> bool:
        return self._at >= 0

    @property
    def can_undo(self) -> bool:
        return self._at > 0

    @property
    def can_redo(self) -> bool:
        return self._at + 1 < len(self._states)

    @property
    def state(self) -> S:
        """The state that is in force. `begin` comes first."""
        return self._states[self._at]

    def begin(self, state: S) -> None:
        """Forget everything but this."""
        self._states, self._at, self._key = [state], 0, ""

    def note(self, state: S, key: str) -> None:
        """There is a new state; an empty key makes it a step of its own."""
        del self._states[self._at + 1 :]
        if key and key == self._key and self._at > 0:
            self._states[self._at] = state
        else:
            self._states = [*self._states, state][-_KEPT:]
        self._at, self._key = len(self._states) - 1, key

    def undo(self) -> S:
        """The state before, now in force."""
        self._at, self._key = max(0, self._at - 1), ""
        return self.state

    def redo(self) -> S:
        """The state after, now in force."""
        self._at, self._key = min(len(self._states) - 1, self._at + 1), ""
        return self.state
