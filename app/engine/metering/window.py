"""`Run`: a load that ran and was watched; `Window`: the figures of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ...sensors.channel import Reading
from ...sensors.event_reasons import LIMITING
from ...sensors.gpu import Execution, Load
from ...sensors.throttling import NO_MARK, Mark
from ..results.evidence import Evidence
from .condition import UNKNOWN, Condition

# What shows of a measurement whether power limits bind: its largest sample of power, how long power throttled it.
PEAK_POWER, THROTTLED_SHARE = "peak_power_w", "throttled_power_share"
STEADY: Final = 0.005  # change of clock and time between two windows that counts as standing still
STEADY_POWER: Final = 0.01
STEADY_TIME: Final = 0.01  # change of the time per launch within a window, or to a second look, that is reported


@dataclass(frozen=True, slots=True)
class SourcePower:
    """The power of a window as one source reports it; NaN if it is not known."""

    power_w: float
    interval_w: tuple[float, float] | None  # 95 % confidence of the mean
    words: str  # which readings it comes from
    said: str = ""  # a caution about it


@dataclass(frozen=True, slots=True)
class Window:
    """The figures of one window. One that is not known is NaN, and an interval None."""

    time_s: float  # mean time of one launch
    window_ns: tuple[int, int]  # of two that count alike the first
    power_source: str
    power_w: float = math.nan
    power_interval_w: tuple[float, float] | None = None  # 95 % confidence of the mean
    median_w: float = math.nan  # of the readings, with what the load before left behind
    observed_clock_mhz: float = math.nan
    memory_power_w: float = math.nan  # not reported, or the window is shorter than its average
    temperature_c: float = math.nan
    core_voltage_mv: float = math.nan  # mean of the values asked for within the window, where there is one
    memory_clock_mhz: float = math.nan  # observed, where the board reports it
    event_reasons: int = 0  # every reason seen; those that the board counts, as counted
    throttled: Mapping[str, float] = field(default_factory=dict)  # reason -> share of the window, where it is counted
    peak_power_w: float = math.nan  # the largest sample; NaN too where values average over too long to show one
    throttled_share: float = math.nan  # of the time, by power
    settled: bool | None = True  # False: a limit acted and the board had not come to rest; None: not looked at
    change: float = 0.0  # of the time of one launch, from one half of the window to the other; relative
    again: float = 0.0  # the same from the window to a later measurement of that time
    condition: Condition = UNKNOWN  # how warm the board was
    aftereffect_w: float = 0.0  # excess that the load before left behind, already taken out of the power
    sources: Mapping[str, SourcePower] = field(default_factory=dict)  # of every source, where meters are beside
    said: tuple[str, ...] = ()  # cautions about them
    evidence: Evidence | None = None  # what the board's own sensor reported in it

    @property
    def energy_j(self) -> float:
        """The energy of one launch, J."""
        return self.power_w * self.time_s

    @property
    def limited(self) -> bool:
        """Whether a limit acted, so that the clock was not the board's own."""
        return bool(self.event_reasons & LIMITING)

    @property
    def unsteady(self) -> str:
        """Why the time per launch is in doubt: it changed within the window, or by more than the interval after it."""
        low_w, high_w = self.power_interval_w or (self.power_w, self.power_w)
        interval = max(STEADY_TIME, (high_w - low_w) / 2 / self.power_w if self.power_w else 0.0)
        if self.limited:
            return ""
        if abs(self.change) > STEADY_TIME:
            return f"the time per launch changed by {100 * self.change:+.1f} % within its window"
        if abs(self.again) > interval:
            return f"a second look at the time per launch differed by {100 * self.again:+.1f} %"
        return ""


@dataclass(slots=True)
class Run:
    """A load that ran and was watched; `Meter.window` makes figures of it."""

    load: Load
    began_ns: int
    launched_ns: int = 0  # when the first launch of all began
    opened_ns: int = 0  # the window's start
    readings: list[Reading] = field(default_factory=list)
    opened: Mark = NO_MARK  # the counters of throttled time at the window's start
    closed: Mark = NO_MARK  # and at its end
    execution: Execution | None = None  # of the window
    settled: bool = True
    again: float = 0.0  # change of the time per launch to a second look
    opposite: Run | None = (
        None  # of the same load, whose samples see the other part of launches that keep step with them
    )

    @property
    def ended(self) -> Execution:
        """The execution of the window's launches."""
        assert self.execution is not None, "a run that `Meter.run` returned has ended"
        return self.execution

    @property
    def runs(self) -> list[Run]:
        """The run itself, and its opposite where there is one."""
        return [self] if self.opposite is None else [self, self.opposite]


def steady(before: Window | None, after: Window) -> bool:
    """Return whether two windows in a row agree: the controller of the limit is at rest.

    Parameters
    ----------
    before : Window or None
        The first window; None if there is none. A figure of it that is NaN does not count.
    after : Window
        The second.

    Returns
    -------
    bool
        Whether clock, time per launch and power stand still; False without a first window: one alone does not show it.
    """
    if before is None:
        return False
    pairs = (
        (before.observed_clock_mhz, after.observed_clock_mhz, STEADY),
        (before.time_s, after.time_s, STEADY),
        (before.power_w, after.power_w, STEADY_POWER),
    )
    return all(math.isnan(b) or abs(b - a) <= share * abs(b) for b, a, share in pairs)
