"""How much work one build may be, so that no specification keeps the program busy for long."""

from __future__ import annotations

from typing import Protocol

from ...errors import InputError
from ...plain_text import shortened

MAX_COST = 10**10  # about ns


class Text(Protocol):
    """What a person wrote, and what evaluating it once costs, about, in ns."""

    @property
    def text(self) -> str: ...

    @property
    def where(self) -> str: ...

    @property
    def cost(self) -> int: ...


class Effort:
    """Adds up what evaluations cost, and refuses those beyond the limit before they are begun."""

    def __init__(self) -> None:
        self._left = MAX_COST

    def spend(self, combinations: int, text: Text, beside: int = 1) -> None:
        """Raise InputError where evaluating the text over so many combinations is too much work.

        `beside` is what else each of them costs, in ns.
        """
        self._left -= combinations * (beside + text.cost)
        if self._left < 0:
            raise InputError(
                f"'{shortened(text.text)}' over so many combinations is too large to check",
                text.where,
                "split it, or restrict its parameters further",
            )
