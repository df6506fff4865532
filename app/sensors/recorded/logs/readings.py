"""Readings of a board as arrays: which cannot be, how they lie in time, and the energy between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ....base.formatting import counted
from ....base.vocabulary import LOG_NOTES
from ...channel import CHANNELS
from .cells import Floats, Nanoseconds, is_clock
from .layouts import POWERS

Numbers = npt.NDArray[np.uint8]  # of boards
MOST_BOARDS: Final = 64
FEWEST_OF_LOG: Final = 20  # rows of rising times that are no durations
_FAILED: Final = (65535, 4294967295, 4294967)  # W in place of a reading, the last one from mW
_STEADY: Final = 0.02  # of a figure, by which it may differ from another and say the same
_MOST_W: Final = 1e6  # of all boards of a machine
_AT_WORK_W: Final = 10.0  # more than a board at rest, which may be off for a while
_MOST_FAILED: Final = 6  # readings in a row
_FEWEST_OF_RUN: Final = 5  # readings


def trapezoid_j(power: Floats, time_ns: Nanoseconds) -> float:
    """The energy between the known readings of a power; 0 where there are none."""
    known = np.isfinite(power)
    return float(np.trapezoid(power[known], time_ns[: len(power)][known] / 1e9))


def near(one: float, other: float, most: float) -> bool:
    """Tell whether numbers, the other one of them positive, differ by no more of the logarithm."""
    return one > 0 and abs(math.log(one / other)) <= most


def spread(time_ns: Nanoseconds, notes: list[str]) -> Nanoseconds:
    """Readings that share a stamp of whole seconds, evenly over that second."""
    begins = np.flatnonzero(np.diff(time_ns, prepend=-1) != 0)
    counts = np.diff(np.append(begins, len(time_ns)))
    if len(begins) < 2 or counts.max() < 2 or (np.diff(time_ns) < 0).any() or (time_ns % 1_000_000_000).any():
        return time_ns
    notes.append(LOG_NOTES["spread"])
    within = np.arange(len(time_ns)) - np.repeat(begins, counts)
    return np.asarray(time_ns + within * 1_000_000_000 // np.repeat(counts, counts))


def runs(time_ns: Nanoseconds) -> Numbers | None:
    """The number of the run of each reading, where a clock that rises evenly starts again with each; None elsewhere."""
    steps = np.diff(time_ns)
    again = steps < 0
    if len(time_ns) < FEWEST_OF_LOG or not 0 < again.sum() < min(MOST_BOARDS, len(time_ns) // _FEWEST_OF_RUN):
        return None
    if not is_clock(steps[~again], time_ns[np.flatnonzero(np.concatenate(([True], again)))]):
        return None
    return np.concatenate(([0], np.cumsum(again))).astype(np.uint8)


def power_of(columns: Mapping[str, Floats], names: Sequence[str] = POWERS) -> Floats:
    """The power of a board, by the first of these names that it has; nothing where it has none."""
    return next((columns[name] for name in names if name in columns), np.empty(0))


def is_mean_so_far(columns: Mapping[str, Floats], time_ns: Nanoseconds) -> bool:
    """Tell whether a power is the mean since the beginning: the counter beside it, over the time that has passed.

    Of a steady power, which is its own mean, it does not matter.
    """
    power, counter = power_of(columns), columns.get("energy_j", np.empty(0))
    known = np.isfinite(power) & np.isfinite(counter) & (power > 0) if len(power) == len(counter) else np.empty(0, bool)
    if known.sum() < FEWEST_OF_LOG or near(np.ptp(counter[known]), trapezoid_j(power, time_ns), _STEADY):
        return False
    passed, seconds = counter[known] / power[known], time_ns[known] / 1e9
    return bool(np.ptp(passed - seconds) <= _STEADY * np.ptp(seconds))


def leave_out_impossible(name: str, values: Floats, notes: list[str]) -> None:
    """NaN in place of what no board reads: less than nothing, or more than 100 % of it (fans may turn faster).

    And what drivers give where a reading failed: the largest number of 16 or 32 bits, and now and then 0 W.
    """
    described = CHANNELS[name]
    wrong = (values < 0) & (described.unit != "°C")
    if described.unit == "W":
        wrong |= np.isin(np.floor(values), _FAILED) | _dips(values) | (values > _MOST_W)
    wrong |= (values > 100) & (described.unit == "%") & (name != "fan_percent")
    if wrong.any():
        count = int(wrong.sum())
        verb = "is" if count == 1 else "are"
        what = f"{counted(count, 'reading')} of {described.label} cannot be and {verb} left out"
        notes.append(f"{what}, the first: {values[wrong][0]:.4g} {described.unit}")
        values[wrong] = math.nan


def _dips(values: Floats) -> npt.NDArray[np.bool_]:
    """Mark readings of 0 W, a few at a time, right between those of a board at work."""
    drawn, zeros = np.flatnonzero(values != 0.0), np.flatnonzero(values == 0.0)
    behind = np.searchsorted(drawn, zeros)
    inside = (behind > 0) & (behind < len(drawn))
    zeros, before, after = zeros[inside], drawn[behind[inside] - 1], drawn[behind[inside]]
    found = np.zeros(len(values), np.bool_)
    found[zeros[(np.minimum(values[before], values[after]) > _AT_WORK_W) & (after - before <= _MOST_FAILED)]] = True
    return found
