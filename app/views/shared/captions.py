"""Captions of provenance: simulated and replayed figures are labelled wherever they are shown.

Words for how much of a session is measured, wherever it is listed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...base.formatting import count_text
from ...engine.results.state import Purpose
from ...sensors.gpu import LIVE

if TYPE_CHECKING:
    from ...engine.specification.plan import SessionFacts


_WORDS = {
    "simulated": "figures are simulated, no real GPU",
    "recorded": "figures are replayed from a recording",
    "unmetered": "time alone is measured: the device reports no energy",
}


def source_words(source: str) -> str:
    """What to say beside figures of a source; empty for a live board."""
    return _WORDS.get(source, "")


def provenance(session: SessionFacts) -> str:
    """Where a session's figures come from: 'measured', 'simulated', or from which file they are."""
    if session.purpose is not Purpose.REPLAY:
        return "measured" if session.source in (*LIVE, "unmetered") else session.source
    file = session.origin.get("file", "")
    simulated = "simulated, " if session.source == "simulated" else ""
    return f"{simulated}recorded in {Path(file).name}" if file else f"{simulated}recorded"


def measured_words(measured: int, budget: int, timed: int = 0) -> str:
    """'120 of 250 measured'; '300 measured' where it went on beyond what it was given, or that is not known.

    Where others were only timed, that too: '60 of 100 measured, 140 timed'.
    """
    of = f" of {count_text(budget)}" if budget and measured <= budget else ""
    more = f", {count_text(timed)} timed" if timed else ""
    return f"{count_text(measured)}{of} measured{more}"
