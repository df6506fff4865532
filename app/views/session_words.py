"""Words for how much of a session is measured, wherever it is listed."""

from __future__ import annotations

from ..numbers import count_text


def measured_words(measured: int, budget: int) -> str:
    """'120 of 250 measured'; '300 measured' where it went on beyond what it was given, or that is not known."""
    of = f" of {count_text(budget)}" if budget and measured <= budget else ""
    return f"{count_text(measured)}{of} measured"
