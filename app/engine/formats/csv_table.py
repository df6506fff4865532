"""A session as CSV: one row per measurement, units in the header, for spreadsheets; and back again.

A cell of words that a spreadsheet would take for a formula has an apostrophe before it (`base/text.py`).

Columns: the parameters, `state`, `error`, where and how it was measured, what the session is, then every value, the
ends of its 95 % interval, and figures as they were measured where others are stated, which are not read back. The
columns before `state` are the configuration; `depth` is `time` where it was only timed, and `receipt`, in the first
row alone, that of the export as JSON.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...base.errors import InputError
from ...base.files import text_lines, write_text
from ...base.text import cell_text, float_or_none, json_or_none, text_cell
from ..results.measurement import Depth, State, Value
from ..results.objectives import Objective
from ..space.result_table import ResultTable
from ..space.values import is_value
from .entries import NO_VALUE, OWN
from .names import heading, name_of_heading, unit_of_heading
from .own import About, OwnHeader
from .recording import MAXIMUM_PARAMETERS, Facts, Recording, RecordingBuilder

_STATE = ("state", "error", "source", "power_source", "event_reasons")
SIGNATURE = ",".join(_STATE)  # in the header of every file written here
_WINDOW, _CLOCK = ("window_start_ns", "window_end_ns"), "measured_clock_mhz"
_FACTS = (
    *_STATE,
    *("timestamp_s", "cost_s", "message", *_WINDOW, _CLOCK),
    *("gpu", "kernel", "problem_size", "objective", "depth", "board", "receipt"),
)
_LOW, _HIGH, _MEASURED = " (95 % low)", " (95 % high)", " (as measured)"
_REMEDY = "pass a session that this program wrote"


def write_csv(table: ResultTable, path: Path, about: About, *, overwrite: bool = False) -> Path:
    """Write every measurement; returns the path. Raises WattridgeError as `write_text`."""
    return write_text(path, _lines(table, about), overwrite=overwrite)


def _lines(table: ResultTable, about: About) -> Iterator[str]:
    names, parameters = table.value_names, table.space.names
    bounded = list(dict.fromkeys(name for i in range(len(table)) for name in table.measurement(i).intervals))
    otherwise = list(dict.fromkeys(name for i in range(len(table)) for name in table.measurement(i).as_measured))
    ends = [*_headings(bounded, about, _LOW, _HIGH), *_headings(otherwise, about, _MEASURED)]
    yield _line([*_headings(parameters, about), *_FACTS, *_headings(names, about), *ends])
    session = {"gpu": about.device, "kernel": about.kernel, "problem_size": about.problem_size}
    session["objective"] = json.dumps(about.objective.to_list())
    session["receipt"] = "" if about.receipt is None else json.dumps(about.receipt)
    for m in map(table.measurement, range(len(table))):  # one at a time: as columns they take less memory
        facts = {name: getattr(m, name) for name in Facts._fields} | session
        facts |= {_CLOCK: m.observed_clock_mhz, **dict(zip(_WINDOW, m.window_ns or ("", ""), strict=True))}
        yield _line(
            [
                *(_cell(m.configuration[name]) for name in parameters),
                *(_fact_cell(facts[column]) for column in _FACTS),
                *(_figure(m.values.get(name, math.nan)) for name in names),
                *(_figure(end) for name in bounded for end in m.intervals.get(name, (math.nan, math.nan))),
                *(_figure(m.as_measured.get(name, math.nan)) for name in otherwise),
            ]
        )
        session["receipt"] = ""  # which is in the first row alone


def _line(cells: Sequence[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)  # with it a carriage return in a cell is quoted
    return text.getvalue().removesuffix("\r\n") + "\n"


def _headings(names: Sequence[str], about: About, *ends: str) -> list[str]:
    """The heads of their columns, one with each of the ends; a name that is one of ours is put in quotes."""
    heads = (json.dumps(name) if name in _FACTS else heading(name, about.units) for name in names)
    return [text_cell(head + end) for head in heads for end in ends or ("",)]


def is_session(path: Path) -> bool:
    """Whether a file begins as `write_csv` begins it. Raises InputError if it cannot be read."""
    return SIGNATURE in next(text_lines(path), "")


def read_csv(path: Path) -> Recording:
    """Read a session that `write_csv` wrote; its space is that of its rows. Raises InputError naming the row."""
    where = str(path)
    rows = csv.reader(text_lines(path), strict=True)
    try:
        header = _Header([cell_text(cell) for cell in next(rows, [])], where)
        builder = RecordingBuilder(path, header.parameters)
        session: dict[str, str] = {}
        for cells in rows:
            if len(cells) != header.length:
                what = f"line {rows.line_num}: {len(cells)} cells, but the header has {header.length}"
                raise InputError(what, where, "correct the row")
            cells = [cell_text(cell) for cell in cells]
            session = header.texts(cells)
            try:
                builder.add(tuple(_value(cell) for cell in cells[: header.split]), header.facts(cells, session))
            except ValueError as error:
                raise InputError(f"line {rows.line_num}: {error}", where, "correct the row") from None
    except csv.Error as error:
        raise InputError(f"line {rows.line_num}: not CSV: {error}", where, _REMEDY) from None
    return builder.finish(
        device=session.get("gpu", ""),
        kernel=session.get("kernel", ""),
        problem_size=session.get("problem_size", ""),
        objective=header.objective(session.get("objective", "")),
        units=header.units,
        is_ours=True,
    )


class _Header:
    """The columns of a session. Raises InputError for the header of anything else."""

    def __init__(self, cells: Sequence[str], where: str) -> None:
        self.length = len(cells)
        starts = (at for at in range(self.length) if tuple(cells[at : at + len(_STATE)]) == _STATE)
        self.split = first = next(starts, -1)
        if first < 0:
            raise InputError("this is not a session written as CSV", where, _REMEDY)
        self.parameters = tuple(name_of_heading(cell) for cell in cells[: self.split])
        if not 0 < len(self.parameters) <= MAXIMUM_PARAMETERS or len(set(self.parameters)) < len(self.parameters):
            raise InputError("the header names no parameters, or one twice", where, "correct the header")
        self._facts: dict[str, int] = {}
        while first < self.length and cells[first] in _FACTS and cells[first] not in self._facts:
            self._facts[cells[first]] = first
            first += 1
        self.units = {name_of_heading(cell): unit for cell in cells if (unit := unit_of_heading(cell))}
        self._values: list[tuple[int, str]] = []
        self._ends: list[tuple[int, str]] = []  # of the lower end; the upper one is in the next column
        for index, cell in enumerate(cells[first:], first):
            if cell.endswith(_LOW):
                self._ends.append((index, name_of_heading(cell.removesuffix(_LOW))))
            elif cell.endswith(_HIGH):
                if not cells[index - 1].endswith(_LOW):
                    what = f"the column '{cell[:60]}' has no lower end beside it"
                    raise InputError(what, where, "correct the header")
            elif not cell.endswith(_MEASURED):
                self._values.append((index, name_of_heading(cell)))
        if self._ends and self._ends[-1][0] == self.length - 1:
            raise InputError("the last column's upper end is missing", where, "correct the header")

    def texts(self, cells: Sequence[str]) -> dict[str, str]:
        """The cells of a row besides parameters, values and intervals, by column."""
        return {name: cells[fact] for name, fact in self._facts.items()}

    def facts(self, cells: Sequence[str], texts: dict[str, str]) -> Facts:
        """What a row measured. Raises ValueError for a cell that is no number or no state."""
        values = {name: value for at, name in self._values if math.isfinite(value := _number(cells[at]))}
        state = _state(texts["state"])
        given = texts | {"observed_clock_mhz": texts.get(_CLOCK, "")}
        known = {n: _fact(given[n], default) for n, default in Facts._field_defaults.items() if given.get(n)}
        if state is State.OK and not values:
            state, known["error"] = State.RUNTIME, known.get("error", NO_VALUE)
        if all(map(texts.get, _WINDOW)):
            known["window_ns"] = tuple(_whole(texts[column]) for column in _WINDOW)
        ends = {name: (_number(cells[at]), _number(cells[at + 1])) for at, name in self._ends if cells[at]}
        return Facts(state, values, ends, **known)

    def objective(self, goals: str) -> Objective:
        """The objective in the cell of that name, or else a likely one."""
        names = [name for _, name in self._values]
        likely = "time_s" if "time_s" in names or not names else names[0]
        return OwnHeader({OWN: {"objective": json_or_none(goals)}}).objective(likely)


def _number(cell: str) -> float:
    """A number; NaN for an empty cell. Raises ValueError."""
    number = float_or_none(cell or "nan")
    if number is None:
        raise ValueError(f"{cell[:40]!r} is no number")
    return number


def _whole(cell: str) -> int:
    """A whole number of 64 bits. Raises ValueError."""
    if not re.fullmatch(r"[+-]?\d{1,19}", cell) or abs(int(cell)) >= 2**63:
        raise ValueError(f"{cell[:40]!r} is no whole number of 64 bits")
    return int(cell)


def _state(cell: str) -> State:
    """Raises ValueError."""
    if cell not in set(State):
        raise ValueError(f"{cell[:40]!r} is no state: {', '.join(State)}")
    return State(cell)


def _fact_cell(value: object) -> object:
    """A field of a measurement: a number, or words."""
    if isinstance(value, float):
        return _figure(value)
    return text_cell(value) if isinstance(value, str) else value


def _fact(cell: str, default: object) -> Any:
    """The value in such a cell, by what the field is without it. Raises ValueError."""
    match default:
        case float():
            return _number(cell)
        case int():
            return max(0, _whole(cell))
        case Depth():
            return Depth.TIME if cell == Depth.TIME.value else Depth.ENERGY
        case _:
            return cell


def _figure(value: float) -> str:
    return "" if math.isnan(value) else repr(float(value))


def _cell(value: Value) -> str:
    """A parameter's value; text that would read as a number or a truth value is quoted."""
    if isinstance(value, str) and value == _value(value):
        return text_cell(value)
    return json.dumps(value)


def _value(cell: str) -> Value:
    value = json_or_none(cell)
    return value if is_value(value) else cell
