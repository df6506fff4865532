"""One entry of a recording, of this program or another one: its configuration, and the figures measured of it.

`is_figure` tells figures from parameters, by a column's name and values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ...base.formatting import finite_or_none
from ...base.text import json_or_none
from ..results.measurement import Depth, State, Value
from ..space.values import is_value
from .names import DEVICE_SETTINGS, OwnNames, unit_of, units_of
from .recording import Facts

OWN = "wattridge"  # the key for what other programs have no place for

# What the tuner itself spent, in ms: the cost of a measurement, not a property of the kernel.
COST_MS = ("compile_time", "verification_time", "benchmark_time")
BOOKKEEPING = frozenset((*COST_MS, "strategy_time", "framework_time", "timestamp"))

_MARK = re.compile(r"[A-Za-z]*(?:Failed|Invalid|Error|Timeout)[A-Za-z]*Config")
_STATE_WORDS = (
    ("compil", State.COMPILE),
    ("invalid", State.CONSTRAINTS),
    ("constraint", State.CONSTRAINTS),
    ("restriction", State.CONSTRAINTS),
    ("timeout", State.TIMEOUT),
    ("correct", State.CORRECTNESS),
    ("verif", State.CORRECTNESS),
)
_FAILED = 1e20  # how the oldest caches mark a failure: a time, or another objective, of at least so much
_PLANS = 1000  # different shapes of entries that are remembered
_LONGEST_TEXT = 20_000  # of an error or a message
_STATES = frozenset(State)
NO_VALUE = "the file holds no value for it"


class BadEntry(ValueError):
    """What is wrong with an entry."""


class EntryReader:
    """Entries of one recording. `kept`: the values of a session that this program wrote; None: every number is one."""

    def __init__(self, keys: Sequence[str], *, kept: frozenset[str] | None = None, objective: str = "time") -> None:
        self._keys = tuple(keys)
        self._kept = kept
        self._objective = objective
        self._plan_of = lru_cache(_PLANS)(self._plan)
        self._names_of = lru_cache(_PLANS)(OwnNames)

    def configuration(self, entry: object) -> tuple[Value, ...]:
        """The values of the parameters, in the header's order. Raises BadEntry."""
        if not isinstance(entry, dict):
            raise BadEntry("not an object")
        try:
            values = tuple([entry[key] for key in self._keys])
        except KeyError as error:
            raise BadEntry(f"parameter {str(error.args[0])[:80]!r} is missing") from None
        for name, value in zip(self._keys, values, strict=True):
            if not is_value(value):
                raise BadEntry(f"parameter {name[:80]!r} is not a plain value")
        return values

    def facts(self, entry: Mapping[str, Any]) -> Facts:
        """What was measured; failed where the entry is marked so, or holds no value."""
        figures, marks = self._plan_of(tuple(entry))
        values: dict[str, float] = {}
        failure = ""
        for name in figures:
            value = entry[name]
            number = as_number(value)
            if math.isfinite(number):
                values[name] = number
            elif not failure and isinstance(value, str | dict):
                failure = _mark(name, value)
        for name in marks:
            failure = failure or _mark(name, entry[name])
        extras = entry.get(OWN)
        if type(extras) is str:
            extras = json_or_none(extras)
        if type(extras) is dict:
            return self._own_facts(entry, extras, values, failure)
        if not failure and (values.get("time", 0.0) >= _FAILED or values.get(self._objective, 0.0) >= _FAILED):
            failure = "marked as failed by its time"
        if failure or not values:
            return Facts(state_of_mark(failure), {}, error=failure or NO_VALUE, source="recorded", **_spent(entry))
        own_names = self._names_of(tuple(values))
        own_names.add_to(values)
        return Facts(
            State.OK,
            values,
            observed_clock_mhz=values.get("observed_clock_mhz", math.nan),
            power_source=own_names.power_source,
            source="recorded",
            **_spent(entry),
        )

    def _own_facts(
        self, entry: Mapping[str, Any], extras: Mapping[str, Any], values: dict[str, float], failure: str
    ) -> Facts:
        """An entry of a session of ours, which is complete."""
        given = extras.get("state")
        state = state_of_mark(failure) if failure else State.OK
        if isinstance(given, str) and given in _STATES:
            state, failure = State(given), ""
        if state is State.OK and not values:
            state, failure = State.RUNTIME, NO_VALUE
        if self._kept is None and state is State.OK:
            self._names_of(tuple(values)).add_to(values)
        fields = {"error": failure, "source": "recorded", **_spent(entry)}
        for name, default in Facts._field_defaults.items():
            known = _field(extras.get(name), default)
            fields |= {} if known is None else {name: known}
        return Facts(state, values, **fields)

    def _plan(self, names: tuple[str, ...]) -> tuple[Sequence[str], Sequence[str]]:
        """The values to read of an entry with these keys, and where else a mark of failure may stand."""
        others = [name for name in names if name not in self._keys and name != OWN]
        values = [n for n in others if (n not in BOOKKEEPING if self._kept is None else n in self._kept)]
        return values, [name for name in others if name not in values and name not in BOOKKEEPING]


def as_number(value: object) -> float:
    """A float; NaN for anything that is not a number or too large for one."""
    if type(value) is float:
        return value
    if not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def state_of_mark(mark: str) -> State:
    """The state that a word such as 'CompilationFailedConfig' stands for."""
    lower = mark.lower()
    return next((state for word, state in _STATE_WORDS if word in lower), State.RUNTIME)


def _mark(name: str, value: object) -> str:
    """The mark of failure under a name: a word, or an object with '__error__'; empty if there is none."""
    if isinstance(value, dict) and "__error__" in value:
        return text_of(value["__error__"], _LONGEST_TEXT) or "failed"
    if name == "__error__":
        return text_of(value, _LONGEST_TEXT) or "failed"
    return value if isinstance(value, str) and _MARK.fullmatch(value[:100]) else ""


def _spent(entry: Mapping[str, Any]) -> dict[str, Any]:
    """When a configuration was measured, and what that cost, as a tuner writes them."""
    spent_ms = [as_number(entry.get(name, 0.0)) for name in COST_MS]
    cost_s = math.fsum(ms for ms in spent_ms if 0 < ms < math.inf) / 1e3
    return {"timestamp_s": _timestamp(entry.get("timestamp")), "cost_s": cost_s}


def _timestamp(value: object) -> float:
    """Wall clock in seconds since the epoch; NaN if it is unknown."""
    if not isinstance(value, str):
        return math.nan
    try:
        stamp = datetime.fromisoformat(value[:64])
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return math.nan


def _field(value: object, default: object) -> Any:
    """A field of `Facts` as a session of ours keeps it, by what the field is without it; None for anything else."""
    match default:
        case None:  # the window
            ends = value if isinstance(value, list) and len(value) == 2 else [None]
            return tuple(ends) if all(type(end) is int and abs(end) < 2**63 for end in ends) else None
        case Mapping():  # the intervals
            pairs = ((n, e) for n, e in mapping_of(value).items() if isinstance(e, list) and len(e) == 2)
            return {name: (as_number(low), as_number(high)) for name, (low, high) in pairs}
        case float():
            return finite_or_none(as_number(value))
        case int():
            return value if isinstance(value, int) and 0 <= value < 2**63 else None
        case Depth():
            return Depth.TIME if value == Depth.TIME.value else None
        case _:
            return text_of(value, _LONGEST_TEXT) or None


def mapping_of(value: object) -> Mapping[str, Any]:
    """An object of the file; empty for anything else."""
    return value if isinstance(value, dict) else {}


def text_of(value: object, longest: int = 2000) -> str:
    """The beginning of a text; empty for anything else."""
    return value[:longest] if isinstance(value, str) else ""


_FIGURES = frozenset(("time", "times", "energy", "power", "objective", OWN, *BOOKKEEPING))
_FIGURE = re.compile(r"(nvml|ps|pwr|pmt|tegra|amd)_|.*_(energy|power|time|times|freq|temperature)|core_|mem_freq")
_MEASURED_SHARE = 0.5  # of different values among floats: with more, they are measured, not chosen
_FEW = 20


def is_figure(name: str, values: Sequence[object]) -> bool:
    """Whether a column is a figure: by its name, or because most of its numbers are different fractions."""
    if name in DEVICE_SETTINGS or name in DEVICE_SETTINGS.values():
        return False
    if name in _FIGURES:
        return True
    numbers = {value for value in values if isinstance(value, float)}
    if numbers and (_FIGURE.fullmatch(name) or unit_of(name, units_of([name]))):
        return True
    return len(numbers) > max(_FEW, _MEASURED_SHARE * len(values))
