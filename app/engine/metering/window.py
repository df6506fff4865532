"""What a meter measures: a `Run` that was watched, and the `Window` of figures made of it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, stdev
from statistics import variance as variance_of
from typing import Final

from ...sensors.channel import Reading
from ...sensors.load import Execution, Load
from .power_source import PowerSource
from .student_t import student_t

STEADY: Final = 0.005  # change of clock and time between two windows that counts as standing still
STEADY_POWER: Final = 0.01
PRIOR_DEGREES: Final = 8
LEAST_SPREAD: Final = 4  # samples of a window, and windows, before a spread is usual
LIMITED_BLOCK: Final = 10  # samples of the driver's buffer that a swing under a limit is looked at by


@dataclass(frozen=True, slots=True)
class Window:
    """What was measured in one window."""

    time_s: float  # mean time of one launch
    power_w: float
    power_interval_w: tuple[float, float] | None  # 95 % confidence of the mean
    observed_clock_mhz: float
    memory_power_w: float  # NaN where not told or the window is shorter than its average
    temperature_c: float
    core_voltage_mv: float  # mean of what was asked within the window; NaN where nothing was
    memory_clock_mhz: float  # observed; NaN where the board does not report it
    event_reasons: int  # every reason seen
    window_ns: tuple[int, int]
    power_source: str
    settled: bool = True  # False: a limit acted and the board had not come to rest
    aftereffect_w: float = 0.0  # excess that the load before left behind, already taken out of the power

    @property
    def energy_j(self) -> float:
        """Of one launch."""
        return self.power_w * self.time_s


@dataclass(slots=True)
class Run:
    """A load that ran and was watched; `Meter.window` makes figures of it."""

    load: Load
    source: PowerSource
    began_ns: int
    opened_ns: int = 0  # the window's start
    readings: list[Reading] = field(default_factory=list)
    execution: Execution | None = None  # of the window
    settled: bool = True


def steady(before: Window, after: Window) -> bool:
    """Two windows in a row tell the same: the controller of the limit has come to rest."""
    pairs = (
        (before.observed_clock_mhz, after.observed_clock_mhz, STEADY),
        (before.time_s, after.time_s, STEADY),
        (before.power_w, after.power_w, STEADY_POWER),
    )
    return all(math.isnan(b) or abs(b - a) <= share * abs(b) for b, a, share in pairs)


def confidence_interval(values: Sequence[float], independent: int) -> tuple[float, float] | None:
    """95 % confidence of the mean by Student's t, of which `independent` values count; None below two."""
    if len(values) < 2 or independent < 2:
        return None
    half, mean = student_t(independent - 1) * stdev(values) / math.sqrt(independent), fmean(values)
    return mean - half, mean + half


class Spread:
    """How much samples of power vary on this board, so that a few samples of one load need not tell it alone.

    The variance of a load is estimated by Smyth's moderated t (Statistical Applications in Genetics and Molecular
    Biology 3:1, 2004): its own, with its degrees of freedom, and the board's usual one, with `PRIOR_DEGREES`.
    """

    def __init__(self) -> None:
        self._seen: deque[float] = deque(maxlen=64)  # relative variances

    def note(self, powers: Sequence[float]) -> None:
        """A window that was measured."""
        if len(powers) >= LEAST_SPREAD:
            self._seen.append((stdev(powers) / fmean(powers)) ** 2)

    def half_w(self, powers: Sequence[float], due: int) -> float:
        """Half of the 95 % interval of a mean of `due` samples such as these; NaN below two."""
        if len(powers) < 2:
            return math.nan
        degrees, variance = len(powers) - 1, variance_of(powers)
        if len(self._seen) >= LEAST_SPREAD:
            usual = median(self._seen) * fmean(powers) ** 2
            variance = (degrees * variance + PRIOR_DEGREES * usual) / (degrees + PRIOR_DEGREES)
            degrees += PRIOR_DEGREES
        return student_t(degrees) * math.sqrt(variance / due)


def limited_interval(
    powers: Sequence[float], independent: int, limit_w: float, settled: bool
) -> tuple[float, float] | None:
    """Where the mean power of a board at a limit lies, W: its samples swing together, so Student's t is too narrow.

    It reaches to the limit as well, and while the board is not settled to the extremes of the swing.
    """
    interval = confidence_interval(powers, independent)
    if interval is None:
        return None
    parts = [*interval] if math.isnan(limit_w) else [*interval, limit_w]
    if not settled:
        parts.extend(fmean(powers[at : at + LIMITED_BLOCK]) for at in range(0, len(powers), LIMITED_BLOCK))
    return min(parts), max(parts)
