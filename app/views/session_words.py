"""Words for how much of a session is measured, wherever it is listed."""

from __future__ import annotations

from ..numbers import count_text


def measured_words(measured: int, budget: int, timed: int = 0) -> str:
    """'120 of 250 measured'; '300 measured' where it went on beyond what it was given, or that is not known.

    Where others were only timed, that too: '60 of 100 measured, 140 timed'.
    """
    of = f" of {count_text(budget)}" if budget and measured <= budget else ""
    more = f", {count_text(timed)} timed" if timed else ""
    return f"{count_text(measured)}{of} measured{more}"
