"""A session as CSV: one row per measurement, units in the header, for spreadsheets; and back again.

Columns: the parameters, `state`, `error`, where and how it was measured, then every value and the ends of its 95 %
interval. What stands before `state` is the configuration.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from app.engine.formats.files import read_text, write_text
from app.engine.formats.kernel_tuner import DEVICE_SETTINGS
from app.engine.formats.units import heading, name_of_heading
from app.engine.measurement import Measurement, State, Value
from app.engine.results import ResultTable
from app.engine.space.build import space_of_table
from app.errors import InputError

_FACTS = (
    "state",
    "error",
    "source",
    "power_source",
    "event_reasons",
    "timestamp_s",
    "cost_s",
    "message",
    "window_start_ns",
)
_FACTS_END = "window_end_ns"
_LOW, _HIGH = " (95 % low)", " (95 % high)"
SIGNATURE = "state,error,source,power_source,event_reasons"  # in the header of every file written here


def write_csv(
    table: ResultTable, path: Path, *, units: Mapping[str, str] | None = None, overwrite: bool = False
) -> Path:
    """Write every measurement; returns the path. Raises WattridgeError as `write_text`."""
    units = units or {}
    names = table.value_names
    length = len(table)
    measurements = [table.measurement(index) for index in range(length)]
    with_interval = list(dict.fromkeys(name for m in measurements for name in m.intervals))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    intervals = [heading(name, units) + end for name in with_interval for end in (_LOW, _HIGH)]
    writer.writerow(
        [
            *(heading(name, units) for name in table.space.names),
            *_FACTS,
            _FACTS_END,
            "measured_clock_mhz",
            *(heading(name, units) for name in names),
            *intervals,
        ]
    )
    for m in measurements:
        start_ns, end_ns = m.window_ns or ("", "")
        writer.writerow(
            [
                *(_cell(m.configuration[name]) for name in table.space.names),
                m.state.value,
                m.error,
                m.source,
                m.power_source,
                m.event_reasons,
                _figure(m.timestamp_s),
                _figure(m.cost_s),
                m.message,
                start_ns,
                end_ns,
                _figure(m.observed_clock_mhz),
                *(_figure(m.values.get(name, math.nan)) for name in names),
                *(_figure(end) for name in with_interval for end in m.intervals.get(name, (math.nan, math.nan))),
            ]
        )
    return write_text(path, text.getvalue(), overwrite=overwrite)


def read_csv(path: Path) -> ResultTable:
    """Read a file that `write_csv` wrote; the space is that of its rows. Raises InputError."""
    where = str(path)
    try:
        rows = list(csv.reader(io.StringIO(read_text(path)), strict=True))
    except csv.Error as error:
        raise InputError(f"not a CSV file: {error}", where, "pass a session that this program wrote") from None
    header = rows[0] if rows else []
    if SIGNATURE not in ",".join(header) or len(set(header)) != len(header):
        raise InputError("this is not a session written as CSV", where, "pass a session that this program wrote")
    if any(len(row) != len(header) for row in rows):
        line = next(i for i, row in enumerate(rows, start=1) if len(row) != len(header))
        raise InputError(f"row {line} has a different number of cells than the header", where, "mend the row")
    split = header.index("state")
    parameters = [name_of_heading(text) for text in header[:split]]
    configurations = [tuple(_value(cell) for cell in row[:split]) for row in rows[1:]]
    if not configurations or not parameters:
        raise InputError("the session holds no measurement", where, "pass a session that measured something")
    space = space_of_table({name: [] for name in parameters}, configurations)
    settings = {*DEVICE_SETTINGS, *DEVICE_SETTINGS.values()}
    space = replace(space, parameters=tuple(replace(p, device_setting=p.name in settings) for p in space.parameters))
    table = ResultTable(space)
    for line, (row, values) in enumerate(zip(rows[1:], configurations, strict=True), start=2):
        configuration = dict(zip(parameters, values, strict=True))
        at = space.row_of(configuration)
        assert at is not None
        try:
            table.append(_measurement(at, configuration, dict(zip(header[split:], row[split:], strict=True))))
        except ValueError as error:
            raise InputError(f"row {line}: {error}", where, "mend the row") from None
    return table


def _measurement(row: int, configuration: Mapping[str, Value], cells: dict[str, str]) -> Measurement:
    """One row back. Raises ValueError for a cell that is no number or no state."""

    def take(name: str, convert: Callable[[str], float] = float) -> float:
        cell = cells.pop(name, "")
        return convert(cell) if cell else math.nan

    state = State(cells.pop("state"))
    error, source, power_source = cells.pop("error"), cells.pop("source", ""), cells.pop("power_source", "")
    reasons = int(cells.pop("event_reasons", "") or 0)
    timestamp_s, cost_s, message = take("timestamp_s"), take("cost_s"), cells.pop("message", "")
    start, end = cells.pop("window_start_ns", ""), cells.pop(_FACTS_END, "")
    observed = take("measured_clock_mhz")
    intervals = {
        name_of_heading(name.removesuffix(_LOW)): (take(name), take(name.removesuffix(_LOW) + _HIGH))
        for name in list(cells)
        if name.endswith(_LOW)
    }
    return Measurement(
        row=row,
        configuration=dict(configuration),
        state=state,
        values={name_of_heading(name): float(cell) for name, cell in cells.items() if cell},
        intervals={name: pair for name, pair in intervals.items() if not math.isnan(pair[0])},
        error=error,
        message=message,
        window_ns=(int(start), int(end)) if start and end else None,
        observed_clock_mhz=observed,
        event_reasons=reasons,
        power_source=power_source,
        source=source,
        timestamp_s=timestamp_s,
        cost_s=cost_s,
    )


def _figure(value: float) -> str:
    return "" if math.isnan(value) else repr(float(value))


def _cell(value: Value) -> str:
    """A parameter's value; text that would read as a number or a truth value is quoted."""
    if isinstance(value, str) and value == _value(value):
        return value
    return json.dumps(value)


def _value(cell: str) -> Value:
    try:
        value = json.loads(cell)
    except ValueError:
        return cell
    return value if isinstance(value, int | float | str) else cell
