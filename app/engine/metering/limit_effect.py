"""`LimitEffect`: whether a power limit can bind on a load, by the peak of its power and the time power throttled it.

A board holds a running average of its power to the limit: on an H200 a kernel may exceed it for up to 0.7 s, so that
about one second averages to the limit (`meter`). No average exceeds the largest of the values that it is of:

- A limit is *without effect* where the largest sample of power lies below it by more than the sensor may be off, and
  power did not throttle the load under that limit or a higher one.
- A peak above a limit does not show that the limit binds: it may be shorter than the average. A limit binds where power
  throttled the load under it or a higher one, and samples came near it: else the limit before it, or one that is not
  reported, may have done so. Between the two its effect is not known.
- The mean decides nothing: a service that draws 300 W on average reads prompts at twice that.

Samples are those of the driver's buffer, means over 20 ms each, or else instant readings. A peak counts only under a
limit that did not throttle the load. Values that average over longer than 0.1 s show none (`PowerSensor.peak_w`). The
instant readings of some boards cover 25 ms of every 100 [Yang2024]: they show a peak that lasts for as long as a
limit's average. NVML may be off by 5 % of the power either way [Yang2024].
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from ...base.formatting import percent
from ...base.records import Finite
from ...sensors.event_reasons import EventReason
from ...sensors.gpu import Gpu
from ...sensors.trace.sampler import Sampler
from ...sensors.trace.trace import Trace
from .power_source import Floats

SENSOR_ERROR: Final = 0.05  # of the power, either way [Yang2024]
NEAR: Final = 0.9  # of a limit, that the peak of a load reaches which it throttles
THROTTLED: Final = 0.01  # share of the time from which on power held the load back
RECENT_S: Final = 30.0  # what a running load is judged by
LEAST_S: Final = 1.0  # of it, at least: about what a limit's average is over
LOOK_S: Final = 2.0  # at a board that is not watched


@dataclass(frozen=True, slots=True)
class LimitEffect:
    """A power limit, and what was seen of its effect on a load."""

    IN_JSON: ClassVar = ("binds", "without_effect")

    limit_w: Finite
    peak_w: float  # the largest sample of power under limits that did not throttle the load; NaN if not known
    throttled_share: float  # of the time, by power under this limit or a higher one; NaN if not known

    @property
    def binds(self) -> bool:
        """Whether power throttled the load under this limit or a higher one."""
        return self.throttled_share > THROTTLED

    @property
    def without_effect(self) -> bool:
        """Whether the load cannot reach it; False where that is not known."""
        return self.peak_w <= (1.0 - SENSOR_ERROR) * self.limit_w and self.throttled_share <= THROTTLED


def effects_of(limits_w: Sequence[float], under_w: Floats, peak_w: Floats, share: Floats) -> tuple[LimitEffect, ...]:
    """Return the effects of power limits on a load that was measured under some of them, or others.

    Parameters
    ----------
    limits_w : sequence of float
        The limits, W.
    under_w, peak_w, share : ndarray
        Of each measurement the limit in force, W, the largest sample of power, W, and the share of the time for which
        power throttled the load; shape (n,), NaN where not known.

    Returns
    -------
    tuple of LimitEffect
        One for each of the limits.
    """
    share = np.where((share > THROTTLED) & (peak_w < NEAR * under_w), np.nan, share)  # by another limit than that
    free = peak_w[share <= THROTTLED]
    peak = float(free.max()) if len(free) else float("nan")
    above = [share[under_w >= limit_w] for limit_w in limits_w]
    throttled = [np.nanmax(s, initial=0.0) if (s > THROTTLED).any() else s.max(initial=0.0) for s in above]
    return tuple(LimitEffect(limit_w, peak, float(s)) for limit_w, s in zip(limits_w, throttled, strict=True))


def in_words(effects: Sequence[LimitEffect]) -> str:
    """Return in words which limits bind on a load, and which are without effect and why.

    Parameters
    ----------
    effects : sequence of LimitEffect
        Of limits in ascending order.

    Returns
    -------
    str
        'a power limit of 200 W binds; 500 W or 700 W is without effect on this load: ...'; empty if none is known.
    """
    binding, spared = ([e for e in effects if getattr(e, kind)] for kind in ("binds", "without_effect"))
    parts = [f"{listed(binding)} binds"] if binding else []
    if spared:
        peak = f"samples of its power peak at {spared[0].peak_w:.0f} W (sensor ±{percent(SENSOR_ERROR, 0)})"
        throttled = f"power throttled it for {percent(spared[0].throttled_share)} of the time"
        parts.append(f"{listed(spared)} is without effect on this load: {peak}, and {throttled}")
    return f"a power limit of {'; '.join(parts)}" if parts else ""


def listed(effects: Sequence[LimitEffect]) -> str:
    """Return limits in words.

    Parameters
    ----------
    effects : sequence of LimitEffect
        Of at least one limit.

    Returns
    -------
    str
        '200 W, 300 W or 400 W'.
    """
    *others, last = (f"{effect.limit_w:.0f} W" for effect in effects)
    return f"{', '.join(others)} or {last}" if others else last


def effect_now(trace: Trace, limit_w: float) -> LimitEffect | None:
    """Return the effect of a power limit on the load of the last 30 s, or of as long as the board was read.

    Parameters
    ----------
    trace : Trace
        What the board reported.
    limit_w : float
        The limit, W.

    Returns
    -------
    LimitEffect or None
        None where the board was idle all the time, was read for less than 1 s, or reports no peaks or event reasons.
    """
    end_ns = trace.last_ns
    start_ns = max(trace.first_ns, end_ns - round(RECENT_S * 1e9))
    known = "event_reasons" in trace.names and trace.power_name != "power_average_w"
    if not known or end_ns - start_ns < LEAST_S * 1e9:
        return None
    spans = trace.event_spans(start_ns, end_ns, 0)
    idle, throttled = (
        sum(span.end_ns - span.start_ns for span in spans if span.reason == reason) / (end_ns - start_ns)
        for reason in (EventReason.IDLE, EventReason.POWER_CAP)
    )
    if idle > 1.0 - THROTTLED:
        return None
    names = ("power_limit_w", trace.power_name)
    shown = [*(trace.statistics(name, start_ns, end_ns).maximum for name in names), throttled]
    return effects_of([limit_w], *np.array(shown)[:, None])[0]


def look_at_effect(gpu: Gpu, limit_w: float, stop: threading.Event | None = None) -> LimitEffect | None:
    """Read a board for 2 s and return the effect of a power limit on what it runs.

    Parameters
    ----------
    gpu : Gpu
        The board, under that limit.
    limit_w : float
        The limit, W.
    stop : threading.Event or None, optional
        Ends the look when set.

    Returns
    -------
    LimitEffect or None
        As of `effect_now`.
    """
    trace = Trace(gpu.channels, span_s=2 * LOOK_S)
    sampler = Sampler(gpu, trace, duration_s=LOOK_S)
    sampler.start()
    gpu.clock.wait(LOOK_S, stop)
    sampler.stop()
    sampler.join()
    return effect_now(trace, limit_w)
