"""Which power source of a board is measured through: the one that gives a mean power in the least time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....errors import WattridgeError
from .figures import WORDS, SourceFigures

MEASURABLE: Final = ("buffer", "instant", "average")  # through these power can be measured
READINGS: Final = 10  # that a window holds at least
SHORTEST_WINDOW_S: Final = 0.2
LONGEST_WINDOW_S: Final = 3.0  # a sensor that scatters more is not known better by a longer look
TARGET: Final = 0.01  # 95 % confidence of the mean power
DISTURBED_PERCENT: Final = 15.0  # scatter of the power under one load: something else draws as well


def choose_source(sources: Mapping[str, SourceFigures | None], where: str) -> tuple[str, float, str]:
    """The source's name, the window it needs in s, and why. Raises WattridgeError where the board reports no power."""
    needs: dict[str, tuple[float, float]] = {}  # seconds in all, of which the window
    for name in MEASURABLE:
        figures = sources[name]
        if figures is None or figures.window_ms is None:
            continue
        values = max(READINGS, (1.96 * figures.noise_percent / 100 / TARGET) ** 2 + 2)
        enough_s = min(LONGEST_WINDOW_S, values * figures.refresh_ms / 1e3)
        window_s = max(SHORTEST_WINDOW_S, enough_s, figures.window_ms / 1e3)
        needs[name] = (window_s + figures.settle_ms / 1e3, window_s)
    if not needs:
        raise WattridgeError("the board reports no power", where, "energy cannot be measured on it")
    ranked = sorted(needs, key=lambda name: needs[name])
    times = ", ".join(f"{needs[name][0]:.2g} s through {WORDS[name]}" for name in ranked)
    return ranked[0], needs[ranked[0]][1], f"least time for a mean power after a change of load: {times}"


def require_undisturbed(figures: SourceFigures | None, where: str) -> None:
    """Raises WattridgeError where so much was seen that is not of the look's own load that its figures mean nothing."""
    if figures is not None and figures.noise_percent > DISTURBED_PERCENT:
        scatter = f"the power under one load scattered by {figures.noise_percent:.0f} %"
        raise WattridgeError(f"{scatter}: something else runs on the board", where, "try again when it is free")
