"""`Stating`: what a session measures, stated for one thermal condition of the board; a second look at its end.

The board's model is learnt meanwhile from whatever is measured more than once: the reference kernel between the
configurations, repeats, and the first configurations again at the end. Figures that were stated before can be stated
again with what is known by then, since every measurement keeps its condition and the correction that was made.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Final

from ...base.errors import InputError, WattridgeError
from ...base.formatting import percent
from ...sensors.event_reasons import LIMITING
from ...sensors.gpu import GpuInfo
from ..metering.condition import Condition
from ..metering.confidence import not_negative
from ..metering.thermal import BoardLearning, ThermalModel, model_from_json
from ..metering.window import Window
from ..results.measurement import SPREADS, THERMAL_CORRECTION, Measurement, State
from ..specification.model import Specification, evaluate_metrics
from .base import Runner

UNCERTAINTY: Final = "thermal_uncertainty"  # what that adds to the interval of power; 95 %, relative
SAME_TIME: Final = 0.01  # a second look at a time per launch that differs by more is remarked on
_DRAWN: Final = {"energy_j": "energy_raw_j", "power_w": "power_raw_w"}
_NOT_NEGATIVE: Final = ("time_s", "energy_j", "power_w", "energy_raw_j", "power_raw_w")
_CONDITION: Final = {  # fields of a condition -> of a measurement
    "gpu_c": "temperature_c",
    "memory_c": "memory_temperature_c",
    "fast_w": "recent_power_1s_w",
    "slow_w": "recent_power_30s_w",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """How figures are stated: for which condition, and with which model of the board."""

    condition: Condition
    model: ThermalModel

    def to_origin(self) -> dict[str, str]:
        """As a session keeps it; nothing if no figure was stated, and no condition is known."""
        if not self.condition.words:
            return {}
        return {"condition": self.condition.words, "thermal_model": json.dumps(asdict(self.model))}

    @classmethod
    def of_origin(cls, origin: Mapping[str, str]) -> Statement | None:
        """What a session keeps; None if its figures are as they were drawn. Raises InputError where damaged."""
        if "thermal_model" not in origin or not origin.get("condition", ""):  # of a session that stated no figure
            return None
        try:
            model = model_from_json(json.loads(origin["thermal_model"]))
        except (ValueError, LookupError, TypeError, RecursionError):
            raise InputError("the session's thermal model is damaged", "thermal_model", "its figures stay") from None
        return cls(Condition.parse(origin.get("condition", ""), "the session's condition"), model)

    def state(self, measurement: Measurement, spec: Specification) -> Measurement:
        """A measurement of this board as it is stated, whatever it was stated for before; others as they are.

        At a limit the power is the limit's and the clock gives way, so nothing is corrected.
        """
        values = measurement.values
        if measurement.state is not State.OK or "power_w" not in values or _CONDITION["slow_w"] not in values:
            return measurement
        drawn = _scaled(measurement, spec, 1.0 / values.get(THERMAL_CORRECTION, 1.0), -values.get(UNCERTAINTY, 0.0))
        factor, step_sd = 1.0, 0.0
        low_w, high_w = drawn.intervals.get("power_w", (0.0, 0.0))
        if not measurement.event_reasons & LIMITING:
            power_w = drawn.values["power_w"]
            stated_w, step_sd = self.model.stated(power_w, condition_of(values), self.condition)
            factor = stated_w / power_w
        uncertainty = self.model.uncertainty(step_sd, (high_w - low_w) / 2 / drawn.values["power_w"])
        stated = _scaled(drawn, spec, factor, uncertainty)
        left = 1.0 + values.get("aftereffect_w", 0.0) / drawn.values["power_w"]  # by the load before, and drawn too
        raw = {raw: values.get(raw, values[name] * left) for name, raw in _DRAWN.items() if name in values}
        drew = {
            raw: (low * left, high * left)
            for name, raw in _DRAWN.items()
            if (ends := drawn.intervals.get(name)) is not None
            for low, high in [ends]
        }
        return replace(
            stated,
            values={**stated.values, **raw, THERMAL_CORRECTION: factor, UNCERTAINTY: uncertainty},
            intervals={**stated.intervals, **drew},
        )

    def half_width_of_ratio(self, pair: Sequence[Measurement], half_widths: Sequence[float]) -> float:
        """The half-width of the ratio of a figure of power of two measurements of this session; 95 %, relative.

        `half_widths` are those of the figure itself. What all of the session is off by, and what the step to the stated
        condition is for both, is no part of a ratio.
        """
        if not all(UNCERTAINTY in measured.values and "power_w" in measured.values for measured in pair):
            return math.hypot(*half_widths)
        own = [_without(half, each.values[UNCERTAINTY]) for half, each in zip(half_widths, pair, strict=True)]
        here, there = (  # at a limit nothing was corrected, and nothing needs to be
            self.condition if each.event_reasons & LIMITING else condition_of(each.values) for each in pair
        )
        return self.model.uncertainty_of_ratio(self.model.stated(pair[0].values["power_w"], here, there)[1], own)


class Stating:
    """States the figures of one session on one board, and learns meanwhile how its power follows its condition."""

    def __init__(self, spec: Specification, info: GpuInfo, chosen: Condition | None = None) -> None:
        """`chosen` is the condition that the user has chosen."""
        self._spec = spec
        self._source = info.source
        self._board = BoardLearning(info, chosen)

    def note(self, kernel: str, window: Window) -> None:
        """A window in which that kernel ran."""
        self._board.note(kernel, window)

    def state(self, measured: Measurement) -> Measurement:
        """A measurement of this board, with what is known by now; others as they are."""
        return self._stated(measured, self.statement)

    def restate(self, measurements: Sequence[Measurement]) -> list[Measurement]:
        """The same for all of a session, with everything that its windows show."""
        self._board.learn_all()
        statement = self.statement
        return [self._stated(measurement, statement) for measurement in measurements]

    @property
    def statement(self) -> Statement:
        """As far as is known by now."""
        return Statement(self._board.condition, self._board.model)

    def _stated(self, measured: Measurement, statement: Statement) -> Measurement:
        return measured if measured.source != self._source else statement.state(measured, self._spec)

    def keep(self) -> None:
        """Keep what was learnt for the board's next session, which begins with it."""
        self._board.keep(fix_condition=True)


def seen_again(
    runner: Runner, measurements: Sequence[Measurement], again: Sequence[int], stop: threading.Event
) -> list[Measurement]:
    """The measurements after a second look at some rows, on a board as warm as it became.

    What differs is remarked on in the measurement; the figures stay. A second look that fails changes nothing: the
    session itself is complete.
    """
    seen: dict[int, Measurement] = {}
    with suppress(WattridgeError):
        seen = {item.row: item for item in runner.measure(again, stop)} if again else {}
    return [_compared(measurement, seen.get(measurement.row)) for measurement in measurements]


def _compared(first: Measurement, second: Measurement | None) -> Measurement:
    """A measurement, and that a second look at its time per launch disagrees where it does."""
    if second is None or second.state is not State.OK or "time_s" not in first.values:
        return first
    longer = second.values["time_s"] / first.values["time_s"] - 1.0
    if abs(longer) <= SAME_TIME:
        return first
    difference = f"{percent(abs(longer), 1)} {'longer' if longer > 0 else 'less time'} per launch"
    remark = f"a second look at the end took {difference}"
    return replace(first, message="; ".join(text for text in (first.message, remark) if text))


def at_other_power(measurement: Measurement, spec: Specification, factor: float) -> Measurement:
    """A measurement with so many times the power and energy, and all that follows; intervals in proportion."""
    return measurement if factor == 1.0 else _scaled(measurement, spec, factor, 0.0)


def condition_of(values: Mapping[str, float]) -> Condition:
    """The condition in which a measurement was made, by its figures."""
    return Condition(**{field: values.get(name, math.nan) for field, name in _CONDITION.items()})


def _scaled(measurement: Measurement, spec: Specification, factor: float, uncertainty: float) -> Measurement:
    """With `factor` times the power, all that follows from it, and intervals wider by `uncertainty` of the power.

    A negative uncertainty takes away what was added before.
    """
    values = _at(measurement, spec, factor)
    low, high = (_at(measurement, spec, factor * (1 + sign * abs(uncertainty))) for sign in (-1.0, 1.0))
    widen = _without if uncertainty < 0 else math.hypot
    intervals = {}
    for name, ends in measurement.intervals.items():
        before, now = measurement.values.get(name, math.nan), values.get(name, math.nan)
        share = now / before if before else 1.0
        below, above = ((end - before) * share for end in sorted(ends))
        added = abs(high.get(name, now) - low.get(name, now)) / 2
        around = now - widen(below, added), now + widen(above, added)
        if name in _NOT_NEGATIVE:  # what was below 0 is not kept: an interval that reached down to it does so still
            around = not_negative((0.0 if min(ends) == 0 else around[0], around[1]))
        intervals[name] = around
    return replace(measurement, values=values, intervals=intervals)


def _at(measurement: Measurement, spec: Specification, factor: float) -> dict[str, float]:
    """The figures with so many times the power and energy, the scatter of repeats as theirs."""
    kept = {name: value for name, value in measurement.values.items() if name not in spec.metrics}
    scaled = {**kept, **{name: kept[name] * factor for name in _DRAWN if name in kept}}
    figures = {**scaled, **evaluate_metrics(spec, measurement.configuration, scaled)}
    for name, before in measurement.values.items():
        if f"std_{name}" not in kept or not before:
            continue
        least, most, scatter = (kept[f"{kind}_{name}"] * (figures[name] / before) for kind in SPREADS)
        ends = {"min": min(least, figures[name]), "max": max(most, figures[name]), "std": scatter}
        figures |= {f"{kind}_{name}": value for kind, value in ends.items()}
    return {name: figures[name] for name in measurement.values if name in figures}


def _without(both: float, added: float) -> float:
    """What together with `added` makes `both`, in squares."""
    return math.sqrt(max(0.0, both * both - added * added))
