"""What the store keeps of a session, and how spaces, objectives and measurements are written as text and bytes."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..measurement import Configuration, Measurement, State
from ..objectives import Goal, Objective
from ..session_state import SessionState
from ..space.result_table import ResultTable
from ..space.search_space import Parameter, SearchSpace


@dataclass(frozen=True, slots=True)
class Label:
    """What a person says of a session; nothing that is measured or exported depends on it."""

    name: str = ""  # shown in place of the title
    tags: tuple[str, ...] = ()
    notes: str = ""
    favourite: bool = False


_AT_ONCE = 512  # stored measurements read together
_STATES = {state.value: state for state in State}


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One stored session without its measurements."""

    id: int
    created_s: float  # wall clock, seconds since the epoch
    finished_s: float | None
    state: SessionState
    reason: str
    title: str
    gpu: str
    driver: str
    source: str  # nvml, simulated or recorded
    strategy: str
    strategy_options: Mapping[str, Any]
    objective: Objective
    seed: int
    max_evaluations: int | None
    max_seconds: float | None
    patience: int | None
    units: Mapping[str, str]
    origin: Mapping[str, str]
    cartesian: int
    valid: int
    evaluated: int
    elapsed_s: float  # wall clock while it ran, pauses left out
    version: str  # of the program that wrote it
    label: Label = Label()

    @property
    def shown_name(self) -> str:
        """The person's own name for it, else the title."""
        return self.label.name or self.title


class NewSession(Protocol):
    """What the store keeps of a session that begins; a `SessionPlan` is one."""

    @property
    def title(self) -> str: ...
    @property
    def gpu(self) -> str: ...
    @property
    def driver(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def space(self) -> SearchSpace: ...
    @property
    def objective(self) -> Objective: ...
    @property
    def strategy(self) -> str: ...
    @property
    def strategy_options(self) -> Mapping[str, Any]: ...
    @property
    def max_evaluations(self) -> int | None: ...
    @property
    def max_seconds(self) -> float | None: ...
    @property
    def patience(self) -> int | None: ...
    @property
    def seed(self) -> int: ...
    @property
    def units(self) -> Mapping[str, str]: ...
    @property
    def origin(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class LoadedSession:
    """A stored session with its space and every measurement."""

    record: SessionRecord
    space: SearchSpace
    table: ResultTable
    left_out: int = 0  # stored measurements that are damaged


def objective_to_text(objective: Objective) -> str:
    goals = [[goal.name, goal.maximise] for goal in (objective.goal, *objective.front)]
    return json.dumps(goals)


def objective_from_text(text: str) -> Objective:
    goal, *front = (Goal(name, maximise) for name, maximise in json.loads(text))
    return Objective(goal, tuple(front))


def space_to_row(space: SearchSpace) -> tuple[str, bytes]:
    """The parameters as JSON and the codes as compressed bytes (sorted small integers: about a bit each)."""
    described = {
        "parameters": [[p.name, list(p.values), p.device_setting] for p in space.parameters],
        "dtype": space.codes.dtype.str,
        "shape": list(space.codes.shape),
        "cartesian": space.cartesian,
        "removed_by": dict(space.removed_by),
        "build_seconds": space.build_seconds,
        "notes": list(space.notes),
    }
    return json.dumps(described), zlib.compress(np.ascontiguousarray(space.codes).tobytes(), 1)


def space_from_row(text: str, packed: bytes) -> SearchSpace:
    described = json.loads(text)
    codes = np.frombuffer(zlib.decompress(packed), dtype=np.dtype(described["dtype"])).reshape(described["shape"])
    return SearchSpace(
        parameters=tuple(Parameter(name, tuple(values), setting) for name, values, setting in described["parameters"]),
        codes=codes,
        cartesian=described["cartesian"],
        removed_by=described["removed_by"],
        build_seconds=described["build_seconds"],
        notes=tuple(described["notes"]),
    )


# Columns of a measurement after (session, ordinal); the configuration is not among them: the row names it.
MEASUREMENT_COLUMNS = (
    "row, state, measured, intervals, error, message, window_start_ns, window_end_ns, observed_clock_mhz,"
    " event_reasons, power_source, source, timestamp_s, cost_s"
)


def measurement_to_row(measurement: Measurement) -> tuple[Any, ...]:
    start_ns, end_ns = measurement.window_ns or (None, None)
    return (
        measurement.row,
        measurement.state.value,
        json.dumps(dict(measurement.values)),
        json.dumps(dict(measurement.intervals)) if measurement.intervals else None,
        measurement.error,
        measurement.message,
        start_ns,
        end_ns,
        _number(measurement.observed_clock_mhz),
        measurement.event_reasons,
        measurement.power_source,
        measurement.source,
        _number(measurement.timestamp_s),
        measurement.cost_s,
    )


def measurements_from_rows(space: SearchSpace, stored: Sequence[Sequence[Any]]) -> Iterator[Measurement]:
    """The measurements of many stored rows, their texts of JSON read so many at once; damaged ones are left out."""
    for start in range(0, len(stored), _AT_ONCE):
        part = stored[start : start + _AT_ONCE]
        try:
            read = _read_together(space, part)
        except _DAMAGE:
            read = []
            for row in part:
                with suppress(*_DAMAGE):
                    read += _read_together(space, [row])
        yield from read


_DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)


def _read_together(space: SearchSpace, part: Sequence[Sequence[Any]]) -> list[Measurement]:
    """Raises one of `_DAMAGE` where a row is not as it was written."""
    rows = [row[0] for row in part]
    if min(rows) < 0:
        raise ValueError("a row below 0")
    configurations = space.configurations(rows)
    values = json.loads(f"[{','.join(row[2] for row in part)}]")
    intervals = json.loads(f"[{','.join(row[3] or 'null' for row in part)}]")
    if not all(type(value) in (float, int) for each in values for value in each.values()):
        raise TypeError("a value is not a number")
    for row in part:
        *_, error, message, start_ns, _, clock, reasons, power_source, source, when, cost = row
        if not all(isinstance(text, str) for text in (error, message, power_source, source)):
            raise TypeError("a text is missing")
        if not all(figure is None or type(figure) in (float, int) for figure in (start_ns, clock, reasons, when, cost)):
            raise TypeError("a figure is not a number")
    return [_measurement(*each) for each in zip(part, configurations, values, intervals, strict=True)]


def _measurement(
    stored: Sequence[Any],
    configuration: Configuration,
    values: dict[str, float],
    intervals: dict[str, list[float]] | None,
) -> Measurement:
    row, state, _, _, error, message, start_ns, end_ns, clock, reasons, power_source, source, when, cost = stored
    return Measurement(
        row=row,
        configuration=configuration,
        state=_STATES[state],
        values=values,
        intervals={name: (low, high) for name, (low, high) in intervals.items()} if intervals else {},
        error=error,
        message=message,
        window_ns=None if start_ns is None else (start_ns, end_ns),
        observed_clock_mhz=math.nan if clock is None else clock,
        event_reasons=reasons,
        power_source=power_source,
        source=source,
        timestamp_s=math.nan if when is None else when,
        cost_s=cost,
    )


def _number(value: float) -> float | None:
    """SQLite has no NaN: it stores NULL."""
    return None if math.isnan(value) else value
