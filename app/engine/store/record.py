"""What the store keeps of a session, and how spaces, objectives and measurements are written as text and bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from ..results.measurement import Configuration, Depth, Measurement, State, stated_otherwise
from ..results.objectives import Objective
from ..results.state import SessionState
from ..space.result_table import ResultTable
from ..space.search_space import SearchSpace, space_to_row
from ..specification.plan import SessionFacts, SessionPlan


@dataclass(frozen=True, slots=True)
class Label:
    """The user's own words about a session; nothing that is measured or exported depends on them."""

    name: str = ""  # shown in place of the title
    tags: tuple[str, ...] = ()
    notes: str = ""
    favourite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord(SessionFacts):
    """One stored session without its space and its measurements."""

    id: int
    created_s: float  # wall clock, seconds since the epoch
    finished_s: float | None
    state: SessionState
    reason: str
    cartesian: int
    valid: int
    evaluated: int  # measured in full
    timed: int  # only timed, beside these
    elapsed_s: float  # wall clock while it ran, without pauses
    version: str  # of the program that wrote it
    evidence_byte: int | None = None  # of samples of its measurements, that it keeps at most; None: stored before
    label: Label = Label()

    @property
    def shown_name(self) -> str:
        """The user's own name for it, else the title."""
        return self.label.name or self.title

    @property
    def budget(self) -> int:
        """Evaluations at most."""
        return min(self.max_evaluations or self.valid, self.valid)


@dataclass(frozen=True, slots=True)
class LoadedSession:
    """A stored session with its space and every measurement."""

    record: SessionRecord
    space: SearchSpace
    table: ResultTable
    left_out: int = 0  # stored measurements that are damaged


# Columns of a session as read; they are called what the fields are called.
_LABEL_COLUMNS = tuple(field.name for field in fields(Label))
RECORD_COLUMNS = (*(member.name for member in fields(SessionRecord) if member.name != "label"), *_LABEL_COLUMNS)
_JSON_COLUMNS = ("strategy_options", "units", "origin")
_NUMBERS = {"created_s": 1e11, "valid": 2**62, "evaluated": 2**62, "timed": 2**62, "elapsed_s": 1e11}  # each below this
_TEXTS = ("reason", "title", "gpu", "driver", "source", "strategy", "version", "name", "notes")


def new_session_to_row(plan: SessionPlan) -> dict[str, Any]:
    """The columns of a session that begins."""
    space, codes = space_to_row(plan.space)
    return {
        **plan.facts(),
        **{name: json.dumps(dict(getattr(plan, name))) for name in _JSON_COLUMNS},
        "objective": json.dumps(plan.objective.to_list()),
        "cartesian": str(plan.space.cartesian),  # may exceed 64 bits
        "valid": plan.space.size,
        "space": space,
        "codes": codes,
    }


def record_from_row(row: Sequence[Any]) -> SessionRecord:
    """A session from its `RECORD_COLUMNS`. Raises one of `DAMAGE` where they are not as they were written."""
    named = dict(zip(RECORD_COLUMNS, row, strict=True))
    for name, value in named.items():
        if name in _NUMBERS and not (isinstance(value, int | float) and 0 <= value < _NUMBERS[name]):
            raise ValueError(f"{name} is not a number from 0")
        if name in _TEXTS and not isinstance(value, str):
            raise ValueError(f"{name} is not text")
    if not isinstance(named["evidence_byte"], int | None):
        raise ValueError("evidence_byte is not a number")
    named |= {name: json.loads(named[name]) for name in (*_JSON_COLUMNS, "tags")}
    label = {name: named.pop(name) for name in _LABEL_COLUMNS}
    label |= {"tags": tuple(label["tags"]), "favourite": bool(label["favourite"])}
    named |= {"state": SessionState(named["state"]), "cartesian": int(named["cartesian"])}
    named |= {"objective": Objective.of_list(json.loads(named["objective"])), "label": Label(**label)}
    return SessionRecord(**named)


VALUES_AT_ONCE = 512  # stored measurements read together
_STATES = {state.value: state for state in State}
_DEPTHS = {depth.value: depth for depth in Depth}
# What reading a damaged row raises.
DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)

# Columns of a measurement after (session, ordinal); the configuration is not among them: the row names it.
MEASUREMENT_COLUMNS = (
    "row, state, measured, intervals, error, message, window_start_ns, window_end_ns, observed_clock_mhz,"
    " event_reasons, power_source, source, timestamp_s, cost_s, depth, board"
)


# Those that are stated beside the row, which stays as it was measured: where several boards measured it, another's.
STATED_COLUMNS = (
    *("measured", "intervals", "message", "window_start_ns", "window_end_ns", "observed_clock_mhz", "event_reasons"),
    *("power_source", "timestamp_s", "board"),
)
MEASUREMENT_NAMES = MEASUREMENT_COLUMNS.split(", ")
# Of a measurement as it is stated, and what was measured where that is not the same.
SHOWN_COLUMNS = ", ".join(
    [f"iif(s.row IS NULL, m.{n}, s.{n})" if n in STATED_COLUMNS else f"m.{n}" for n in MEASUREMENT_NAMES]
    + ["iif(s.row IS NULL, NULL, m.measured)"]
)
SHOWN = "measurements m LEFT JOIN stated s ON s.session = m.session AND s.row = m.row"


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
        measurement.depth.value,
        measurement.board,
    )


def measurements_from_rows(space: SearchSpace, stored: Sequence[Sequence[Any]]) -> Iterator[Measurement]:
    """Yield measurements from rows of `SHOWN_COLUMNS`, parsing their JSON in batches; damaged rows are skipped."""
    for start in range(0, len(stored), VALUES_AT_ONCE):
        part = stored[start : start + VALUES_AT_ONCE]
        try:
            read = _read_together(space, part)
        except DAMAGE:
            read = []
            for row in part:
                with suppress(*DAMAGE):
                    read += _read_together(space, [row])
        yield from read


def values_from_rows(texts: Sequence[str]) -> list[Mapping[str, float]]:
    """The figures of stored measurements, read at once; damaged ones are left out."""
    try:
        return _figures(texts)
    except DAMAGE:
        read: list[Mapping[str, float]] = []
        for text in texts:
            with suppress(*DAMAGE):
                read += _figures([text])
        return read


def _figures(texts: Sequence[str]) -> list[Mapping[str, float]]:
    """Raises one of `DAMAGE` where a text is not as it was written."""
    values: list[Mapping[str, float]] = json.loads(f"[{','.join(texts)}]")
    if not all(type(value) in (float, int) for item in values for value in item.values()):
        raise TypeError("a value is not a number")
    return values


def _read_together(space: SearchSpace, part: Sequence[Sequence[Any]]) -> list[Measurement]:
    """Raises one of `DAMAGE` where a row is not as it was written."""
    rows = [row[0] for row in part]
    if min(rows) < 0:
        raise ValueError("a row below 0")
    configurations = space.configurations(rows)
    values = _figures([row[2] for row in part])
    measured = _figures([row[-1] or "{}" for row in part])
    intervals = json.loads(f"[{','.join(row[3] or 'null' for row in part)}]")
    for row in part:
        *_, error, message, start_ns, _, clock, reasons, power_source, source, when, cost, _, board, _ = row
        if not all(isinstance(text, str) for text in (error, message, power_source, source, board)):
            raise TypeError("a text is missing")
        if not all(figure is None or type(figure) in (float, int) for figure in (start_ns, clock, reasons, when, cost)):
            raise TypeError("a figure is not a number")
    return [_measurement(*item) for item in zip(part, configurations, values, intervals, measured, strict=True)]


def _measurement(
    stored: Sequence[Any],
    configuration: Configuration,
    values: Mapping[str, float],
    intervals: dict[str, list[float]] | None,
    measured: Mapping[str, float],
) -> Measurement:
    row, state, _, _, error, message, start_ns, end_ns, clock, reasons, power_source, source, when, cost, *rest = stored
    depth, board, _ = rest
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
        depth=_DEPTHS[depth],
        board=board,
        as_measured=stated_otherwise(measured, values),
    )


def _number(value: float) -> float | None:
    """SQLite has no NaN: NULL is stored."""
    return None if math.isnan(value) else value
