"""`LimitEffect`: whether a power limit can bind on a load, by the peak of its power and the time that power throttled it.

A board holds a running average of its power to the limit: on an H200 a kernel may exceed it for up to 0.7 s, so that
about one second averages to the limit (`meter`). No average exceeds the largest of the values that it is of:

- A limit is *without effect* where the largest sample of power lies below it by more than the sensor may be off, and
  power did not throttle the load under that limit or a higher one.
- A peak above a limit does not show that the limit binds: it may be shorter than the average. A limit binds where power
  throttled the load under it or a higher one. Between the two its effect is not known.
- The mean decides nothing: a service that draws 300 W on average reads prompts at twice that.

Samples are those of the driver's buffer, means over 20 ms each, or else instant readings. A peak counts only under a
limit that did not throttle the load. Values that average over longer than 0.1 s show none (`PowerSensor.peak_w`). Some boards'
instant readings cover 25 ms of every 100 [Yang2024]: they show a peak that lasts for as long as a limit's average.
NVML may be off by 5 % of the power either way [Yang2024].
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from ...base.formatting import percent
from ...base.records import Finite
from ...sensors.channel import POWER_SAMPLES
from ...sensors.event_reasons import EventReason
from ...sensors.gpu import Gpu
from ...sensors.trace.sampler import Sampler
from ...sensors.trace.trace import Trace

Floats = npt.NDArray[np.float64]

SENSOR_ERROR: Final = 0.05  # of the power, either way [Yang2024]
THROTTLED: Final = 0.01  # share of the time from which on power held the load back
RECENT_S: Final = 30.0  # what a running load is judged by
LEAST_S: Final = 1.0  # of it, at least: about what a limit's average is over
LOOK_S: Final = 2.0  # at a board that is not watched


def without_effect(limit_w: float, peak_w: float, throttled_share: float) -> str:
    """Return why a power limit is without effect on a load, in words; empty if it may bind or that is not known.

    Parameters
    ----------
    limit_w
        The power limit, W.
    peak_w
        The largest sample of the load's power under limits that did not throttle it, W; NaN if not known.
    throttled_share
        Share of the time for which power throttled the load under that limit or a higher one; NaN if not known.
    """
    if not (peak_w <= (1.0 - SENSOR_ERROR) * limit_w and throttled_share <= THROTTLED):
        return ""
    for_long = f" for {percent(throttled_share)} of the time" if throttled_share else ""
    never = "" if throttled_share else "never "
    peak = f"samples of its power peak at {peak_w:.0f} W (the sensor may be ±{percent(SENSOR_ERROR, 0)} off)"
    return f"{peak}, and power {never}throttled it{for_long}"


@dataclass(frozen=True, slots=True)
class LimitEffect:
    """A power limit, and what was seen of its effect on a load."""

    IN_JSON: ClassVar = ("binds", "without_effect")

    limit_w: Finite
    peak_w: float  # as `without_effect` takes them
    throttled_share: float

    @property
    def binds(self) -> bool:
        """Whether power throttled the load under this limit or a higher one."""
        return self.throttled_share > THROTTLED

    @property
    def without_effect(self) -> bool:
        """Whether the load cannot reach it; False where that is not known."""
        return bool(self.why)

    @property
    def why(self) -> str:
        """Why it is without effect; else empty."""
        return without_effect(self.limit_w, self.peak_w, self.throttled_share)


def effects_of(
    limits_w: Sequence[float], under_w: Floats, peak_w: Floats, throttled_share: Floats
) -> tuple[LimitEffect, ...]:
    """Return the effects of power limits on a load that was measured under some of them, or others.

    Parameters
    ----------
    limits_w
        The limits, W.
    under_w, peak_w, throttled_share
        Of each measurement the limit in force, W, the largest sample of power, W, and the share of the time for which
        power throttled the load; shape (n,), NaN where not known.
    """
    free = peak_w[throttled_share <= THROTTLED]
    peak = float(free.max()) if len(free) else math.nan
    return tuple(
        LimitEffect(limit, peak, float(throttled_share[under_w >= limit].max(initial=0.0))) for limit in limits_w
    )


def in_words(effects: Sequence[LimitEffect], of: str = "this load") -> str:
    """Return which limits bind and which are without effect on a load, and why; empty if neither is known of any."""
    spared, binding = [e for e in effects if e.without_effect], [e.limit_w for e in effects if e.binds]
    parts = [f"of {listed(binding)} bind{'s' * (len(binding) == 1)}"] if binding else []
    if spared:
        verb = "is" if len(spared) == 1 else "are"
        parts.append(f"of {listed([e.limit_w for e in spared])} {verb} without effect on {of}: {spared[-1].why}")
    return f"power limits {'; those '.join(parts)}" if parts else ""


def effect_now(trace: Trace, limit_w: float) -> LimitEffect | None:
    """Return the effect of a power limit on the load of the last 30 s, or as long as the board was read.

    None where the board was idle all the time, was read for less than 1 s, or reports no peaks.

    Parameters
    ----------
    trace
        What the board reported.
    limit_w
        The limit, W.
    """
    end_ns = trace.last_ns
    start_ns = max(trace.first_ns, end_ns - round(RECENT_S * 1e9))
    known = "event_reasons" in trace.names and trace.power_name in (POWER_SAMPLES.name, "power_instant_w")
    if not known or end_ns - start_ns < LEAST_S * 1e9:
        return None
    spans = trace.event_spans(start_ns, end_ns, 0)
    shares = {
        reason: sum(span.end_ns - span.start_ns for span in spans if span.reason == reason) / (end_ns - start_ns)
        for reason in (EventReason.IDLE, EventReason.POWER_CAP)
    }
    if shares[EventReason.IDLE] > 1.0 - THROTTLED:
        return None
    peak_w = trace.statistics(trace.power_name, start_ns, end_ns).maximum
    return LimitEffect(limit_w, peak_w, shares[EventReason.POWER_CAP])


def look_at_effect(gpu: Gpu, limit_w: float, stop: threading.Event | None = None) -> LimitEffect | None:
    """Read a board for 2 s and return the effect of a power limit on what it runs; None as of `effect_now`.

    Parameters
    ----------
    gpu
        The board, under that limit.
    limit_w
        The limit, W.
    stop
        Ends the look when set.
    """
    trace = Trace(gpu.channels, span_s=2 * LOOK_S)
    sampler = Sampler(gpu, trace, duration_s=LOOK_S)
    sampler.start()
    gpu.clock.wait(LOOK_S, stop)
    sampler.stop()
    sampler.join()
    return effect_now(trace, limit_w)


def listed(limits_w: Sequence[float]) -> str:
    """Return power limits in words: '200, 300 and 400 W'."""
    *others, last = (f"{limit:.0f}" for limit in limits_w)
    return f"{', '.join(others)} and {last} W" if others else f"{last} W"
