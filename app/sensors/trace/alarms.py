"""Alarms: which figures of a board are worth a line, and when they were crossed, once per crossing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..event_reasons import EventReason
from .trace import Trace

AlarmKind = Literal["power", "temperature", "cap", "lost"]
_CALM_S = 5.0  # for so long a figure has to be below its threshold again before it may raise an alarm again
_MARGIN = 0.02  # and by so much of the threshold
_LATE_NS = 1_000_000_000  # samples of the driver's buffer may come so late
_POINTS = 1000  # looked at in a check: beyond, blocks keep their largest value


@dataclass(frozen=True, slots=True)
class AlarmRules:
    """What raises an alarm; None or False: nothing does."""

    power_above_w: float | None = None
    temperature_above_c: float | None = None
    cap_reached: bool = False
    board_lost: bool = False

    @property
    def wanted(self) -> set[AlarmKind]:
        """The kinds that are switched on."""
        on: dict[AlarmKind, bool] = {
            "power": self.power_above_w is not None,
            "temperature": self.temperature_above_c is not None,
            "cap": self.cap_reached,
            "lost": self.board_lost,
        }
        return {kind for kind, switched in on.items() if switched}


@dataclass(frozen=True, slots=True)
class Alarm:
    """One crossing, at an instant of the GPU's clock."""

    time_ns: int
    kind: AlarmKind
    text: str  # "power above 240 W"
    value: str = ""  # what was read: "247.3 W"


class AlarmWatch:
    """Looks at a trace again and again. Where a figure is unknown, nothing is raised and nothing is over."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._checked_ns = trace.last_ns
        self._raised: set[AlarmKind] = set()  # not over yet
        self._calm_since_ns: dict[AlarmKind, int] = {}

    @property
    def active(self) -> frozenset[AlarmKind]:
        """The kinds that were raised and are not over yet."""
        return frozenset(self._raised)

    def check(self, rules: AlarmRules, *, lost: bool = False) -> list[Alarm]:
        """The crossings since the last check. `lost`: the board does not answer now."""
        newest = self._trace.last_ns
        if not newest:
            return []
        span = (max(self._trace.first_ns, self._checked_ns - _LATE_NS), newest)
        self._checked_ns = newest
        wanted = rules.wanted
        self._raised &= wanted
        raised = (
            self._above("power", self._trace.power_name, rules.power_above_w, "W", span),
            self._above("temperature", "temperature_c", rules.temperature_above_c, "°C", span),
            self._cap(span) if "cap" in wanted else None,
            self._lost(lost, newest) if "lost" in wanted else None,
        )
        return [alarm for alarm in raised if alarm is not None]

    def _above(
        self, kind: AlarmKind, channel: str, threshold: float | None, unit: str, span: tuple[int, int]
    ) -> Alarm | None:
        if threshold is None:
            return None
        series = self._trace.view(*span, _POINTS, (channel,))[channel]
        highest = float(np.fmax.reduce(series.value)) if len(series.value) else math.nan
        if math.isnan(highest):
            return None
        if highest <= threshold:
            self._calm(kind, span[1], highest < threshold * (1 - _MARGIN))
            return None
        first = span[0] + int(float(series.time_s[np.argmax(series.value > threshold)]) * 1e9)
        return self._crossed(kind, first, f"{kind} above {threshold:g} {unit}", f"{highest:.1f} {unit}")

    def _cap(self, span: tuple[int, int]) -> Alarm | None:
        spans = [
            event_span for event_span in self._trace.event_spans(*span) if event_span.reason == EventReason.POWER_CAP
        ]
        if not spans:
            self._calm("cap", span[1], True)
            return None
        return self._crossed("cap", spans[0].start_ns, "power cap reached")

    def _lost(self, lost: bool, now_ns: int) -> Alarm | None:
        if not lost:
            self._raised.discard("lost")
            return None
        return self._crossed("lost", now_ns, "the board does not answer")

    def _crossed(self, kind: AlarmKind, time_ns: int, text: str, value: str = "") -> Alarm | None:
        self._calm_since_ns.pop(kind, None)
        if kind in self._raised:
            return None
        self._raised.add(kind)
        return Alarm(time_ns, kind, text, value)

    def _calm(self, kind: AlarmKind, now_ns: int, calm: bool) -> None:
        """Below the threshold; `calm` where it is clearly below."""
        if not calm:
            self._calm_since_ns.pop(kind, None)
        elif now_ns - self._calm_since_ns.setdefault(kind, now_ns) >= _CALM_S * 1e9:
            self._raised.discard(kind)
