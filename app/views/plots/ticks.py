"""Where an axis carries its marks."""

from __future__ import annotations

import math

_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)
_TIME_STEPS_S = (*_SECONDS, *(60.0 * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 240)))


def time_ticks(start_s: float, end_s: float, at_most: int) -> tuple[float, list[float]]:
    """(step, marks) in s at whole multiples of a customary step, no more than about `at_most`."""
    length = end_s - start_s
    step = next((s for s in _TIME_STEPS_S if length / s <= max(1, at_most)), _TIME_STEPS_S[-1])
    first = math.ceil(start_s / step - 1e-9)
    last = math.floor(end_s / step + 1e-9)
    return step, [k * step for k in range(first, last + 1)]


def round_up(value: float) -> float:
    """The next round number at or above a positive value, in steps fine enough to waste little of an axis."""
    if not math.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    for factor in (1.0, 1.2, 1.5, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0):
        if value <= factor * power * (1 + 1e-9):
            return factor * power
    return 10.0 * power
