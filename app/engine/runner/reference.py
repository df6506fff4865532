"""When to look at a reference: the same kernel between the configurations, so that what changes is the board."""

from __future__ import annotations

from typing import Final

FIRST: Final = (0, 3, 8, 16, 32)  # configurations before a look: a board warms most at the start of a session
EVERY: Final = 40  # from one look to the next after that; a look costs about as much as a configuration


class ReferenceLooks:
    """Knows when a look is due. One setting of clocks and caps at a time: another one would show the setting."""

    def __init__(self) -> None:
        self._setting: object = None
        self._seen = 0
        self._due_at = 0

    def count(self) -> None:
        """A configuration was measured."""
        self._seen += 1

    def due(self, setting: object) -> bool:
        """Whether to look now, under that setting. The first setting that asks is the one that counts."""
        if self._setting is None:
            self._setting = setting
        return self._seen >= self._due_at and setting == self._setting

    def looked(self) -> None:
        """A look was made, or tried."""
        self._due_at = next((at for at in FIRST if at > self._seen), self._seen + EVERY)
