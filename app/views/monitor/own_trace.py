"""`OwnTrace`: what the board drew while one configuration was measured, copied out of the trace; free of Qt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...engine.measurement import Measurement
from .snapshot import Curve

if TYPE_CHECKING:
    from ...sensors.trace import Series, Trace

CLOCK = "graphics_clock_mhz"
_MARGIN_SHARE = 0.4  # of the window, shown before and after it
_MARGIN_S = (0.3, 5.0)  # at least and at most
_POINTS = 2000


@dataclass(frozen=True, slots=True)
class OwnTrace:
    """Times in s, 0 where the window of the measurement opens. A curve that nothing is known of is empty."""

    window_s: float
    margin_s: float
    power: Curve
    clock: Curve
    power_channel: str
    mean_w: float  # what was measured; NaN where it was not
    interval_w: tuple[float, float] | None
    complete: bool  # readings reach to the end of the margin


def own_trace(trace: Trace, measurement: Measurement, opened_s: float) -> OwnTrace | str:
    """The stretch of time of a measurement with a margin, or why it cannot be shown.

    `opened_s` is when the trace began, s since the epoch: a measurement of before has stamps of another run.
    """
    if measurement.window_ns is None:
        if measurement.source == "recorded":
            return "Replayed: the recording holds this configuration's figures, not its power over time."
        return "No power trace: the runner reported no time window for this measurement."
    if measurement.timestamp_s < opened_s:
        return "Stored: this was measured before the window was opened, and traces are kept only while it is open."
    start_ns, end_ns = measurement.window_ns
    if not len(trace) or trace.last_ns < start_ns:
        return "The sampler has no readings of this stretch of time yet."
    if trace.first_ns > start_ns:
        return "The trace no longer holds this: it keeps the last 8 hours."
    window_s = (end_ns - start_ns) / 1e9
    margin_s = min(max(_MARGIN_SHARE * window_s, _MARGIN_S[0]), _MARGIN_S[1])
    margin_ns = int(margin_s * 1e9)
    name = trace.power_name
    series = trace.view(start_ns - margin_ns, end_ns + margin_ns, _POINTS, [name, CLOCK])
    power = _from_opening(series[name], margin_s)
    if not np.isfinite(power.value).any():
        return "The board reported no power in this stretch of time."
    return OwnTrace(
        window_s=window_s,
        margin_s=margin_s,
        power=power,
        clock=_from_opening(series[CLOCK], margin_s),
        power_channel=name,
        mean_w=measurement.values.get("power_w", math.nan),
        interval_w=measurement.intervals.get("power_w"),
        complete=trace.last_ns >= end_ns + margin_ns,
    )


def _from_opening(series: Series, margin_s: float) -> Curve:
    return Curve(series.time_s - margin_s, series.value)
