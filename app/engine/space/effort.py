"""How much work one build may be, so that no specification keeps the program busy for long."""

from __future__ import annotations

from typing import Protocol

from app.engine.compiler import shortened
from app.errors import InputError

MAX_OPERATIONS = 4 * 10**9  # element-wise; some ten seconds


class Text(Protocol):
    """What a person wrote, and how many operations evaluating it once takes."""

    @property
    def text(self) -> str: ...

    @property
    def where(self) -> str: ...

    @property
    def operations(self) -> int: ...


class Effort:
    """Counts operations, and refuses those beyond the limit before they are begun."""

    def __init__(self) -> None:
        self.left = MAX_OPERATIONS

    def spend(self, combinations: int, text: Text) -> None:
        """Raise InputError where evaluating the text over so many combinations is too much work."""
        self.left -= combinations * text.operations
        if self.left < 0:
            raise InputError(
                f"'{shortened(text.text)}' over so many combinations is too large to check",
                text.where,
                "split it, or restrict its parameters further",
            )
