"""`Snapshot`: everything one frame of the monitor shows, copied out of the trace."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..shared.watched_boards import shown_reading
from .lanes import ESTIMATED_VOLTAGE, POWER, ShownLane

if TYPE_CHECKING:
    from ...engine.models.fit.voltage import VoltageEstimate
    from ...sensors.trace.trace import EventSpan, Trace


@dataclass(frozen=True, slots=True)
class Curve:
    """Times in s after the snapshot's start, and values; NaN if there is a gap."""

    time_s: npt.NDArray[np.float64]
    value: npt.NDArray[np.float32]

    def extent(self) -> tuple[float, float]:
        """Lowest and highest value; NaN if none is known."""
        if not len(self.value):
            return math.nan, math.nan
        return float(np.fmin.reduce(self.value)), float(np.fmax.reduce(self.value))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Instants in ns on the GPU's clock; curves by the name of their line's channel."""

    start_ns: int
    end_ns: int
    curves: Mapping[str, Curve]
    spans: tuple[EventSpan, ...]


@dataclass(frozen=True, slots=True)
class OtherPower:
    """The power of a board or a meter beside the board that is shown. `ahead_ns`: its clock less that of the other."""

    name: str
    trace: Trace
    ahead_ns: int
    channel: str = ""  # of a meter; empty: the finest power of a board

    def power_w(self, time_ns: int) -> float:
        """Its power at an instant of the other clock; NaN if it is unknown."""
        return self.trace.at(time_ns + self.ahead_ns)[self.channel or self.trace.power_name]

    @property
    def present_w(self) -> float:
        """Its power in the reading that all panels show now; NaN if it is unknown."""
        now = shown_reading(self.trace)
        return now.values.get(self.channel, math.nan) if self.channel else now.power_w

    def curve(self, bounds: tuple[int, int], columns: int) -> Curve:
        """Its power between two instants of the other clock."""
        name = self.channel or self.trace.power_name
        start, end = (instant + self.ahead_ns for instant in bounds)
        series = self.trace.view(start, end, max(1, columns), (name,))[name]
        return Curve(series.time_s, series.value)


def take_snapshot(
    trace: Trace,
    lanes: tuple[ShownLane, ...],
    estimate: VoltageEstimate | None,
    bounds: tuple[int, int],
    columns: int,
    others: Mapping[str, OtherPower],
) -> Snapshot:
    """Copy what lies within bounds, decimated to the lowest and the highest value of every two columns."""
    estimated = ESTIMATED_VOLTAGE.name
    wanted = [line.channel for shown in lanes for line in shown.lines]
    names = {
        name: trace.power_name if name == POWER else name for name in wanted if name != estimated and name not in others
    }
    if estimated in wanted:
        names["graphics_clock_mhz"] = "graphics_clock_mhz"
    series = trace.view(bounds[0], bounds[1], max(1, columns), list(dict.fromkeys(names.values())))
    curves = {
        name: Curve(series[source].time_s, series[source].value) for name, source in names.items() if source in series
    }
    if estimated in wanted and estimate is not None and "graphics_clock_mhz" in curves:
        clock = curves["graphics_clock_mhz"]
        curves[estimated] = Curve(clock.time_s, estimate.ratio(clock.value).astype(np.float32))
    curves.update({name: others[name].curve(bounds, columns) for name in wanted if name in others})
    apart_ns = 2 * (bounds[1] - bounds[0]) // max(1, columns)  # closer than two columns is one bar
    return Snapshot(bounds[0], bounds[1], curves, tuple(trace.event_spans(*bounds, apart_ns)))
