"""Words for where figures come from: a simulated or replayed one says so wherever it is shown."""

from __future__ import annotations

_WORDS = {
    "simulated": "figures are simulated, no real GPU",
    "recorded": "figures are replayed from a recording",
}


def source_words(source: str) -> str:
    """What to say beside figures of a source; empty for a live board."""
    return _WORDS.get(source, "")
