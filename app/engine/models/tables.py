"""A table of measurements from a text file: CSV, the output of nvidia-smi, or a wide table that is transposed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...errors import InputError
from ...files import read_text
from ...sensors.recorded.logs.read import Log, is_dmon, read_log
from ...sensors.recorded.recording import read_recording
from ..formats.columns import Columns, parse_columns
from ..formats.gpu_benches import is_gpu_benches
from ..formats.kinds import is_trace, refused_gpu_benches
from .clock_log import READING
from .roles import Named, Roles, find_roles

_CLOCK_HEADING = re.compile(r"(?P<what>.*?)[ _@-]*(?P<clock>\d+(\.\d+)?) ?(?P<unit>mhz|ghz)?", re.IGNORECASE)
_CLOCKS_MHZ = (100.0, 10_000.0)  # of a heading that is a clock
_LEAST_CLOCKS = 4
_TIME = "timestamp_s"


def read_table(path: Path) -> Columns:
    """The columns of a text file, or of a recording of a board's channels. Raises InputError."""
    if is_trace(path):
        return _of_log(Log(path, "", (read_recording(path),), ()))
    if is_dmon(path):
        return _of_log(read_log(path))
    text = read_text(path)
    if is_gpu_benches(text):
        raise refused_gpu_benches(path)
    return parse_columns(text, str(path))


def _of_log(log: Log) -> Columns:
    """The channels of a log by name, the time in s or the number of the reading, and the board, in order of time."""
    names = list(dict.fromkeys(channel.name for board in log.boards for channel in board.channels))
    cells: dict[str, list[str]] = {name: [] for name in (_TIME, *names, "gpu")}
    order = np.argsort(np.concatenate([board.time_ns for board in log.boards]), kind="stable").tolist()
    for board in log.boards:
        times = board.time_ns.tolist()
        held = [channel.name for channel in board.channels]
        cells[_TIME] += [f"{time / 1e9:.6f}" for time in times] if log.assumed_step_s is None else _counted(times)
        for name in names:
            known = name in held
            cells[name] += map(repr, board.values[:, held.index(name)].tolist()) if known else [""] * len(times)
        cells["gpu"] += [board.name] * len(times)
    in_order = {name: [column[at] for at in order] for name, column in cells.items()}
    if log.assumed_step_s is not None:  # what it does not hold is not made up
        in_order = {READING: in_order.pop(_TIME), **in_order}
    return Columns(str(log.path), in_order, 2)


def _counted(times: list[int]) -> list[str]:
    return [str(number) for number in range(len(times))]


def roles_of_table(columns: Columns, named: Named) -> Roles:
    """As `find_roles`; the error for a wide table recommends --transpose. Raises InputError."""
    try:
        return find_roles(columns, named)
    except InputError:
        clocks = sorted(clock for _, clock in wide_headings(columns).values())
        if not clocks:
            raise
        what = f"one row per application, and one column per clock from {clocks[0]:g} to {clocks[-1]:g} MHz"
        remedy = "add --transpose: the cells are read as W; --rate FILE or --time FILE names such a table of speeds"
        raise InputError(what, columns.where, remedy) from None


def wide_headings(columns: Columns) -> Mapping[str, tuple[str, float]]:
    """What is measured, and at which clock in MHz, by heading: '757', '757 MHz', 'power_757'. Empty: not a wide table.

    Most columns must be such, in ascending or descending order of the clock.
    """
    found: dict[str, tuple[str, float]] = {}
    for name in columns.cells:
        heading = _CLOCK_HEADING.fullmatch(name)
        if heading is None:
            continue
        clock = float(heading["clock"]) * (1e3 if (heading["unit"] or "").lower() == "ghz" else 1.0)
        if _CLOCKS_MHZ[0] <= clock <= _CLOCKS_MHZ[1]:
            found[name] = (heading["what"].strip(" _-@"), clock)
    by_quantity: dict[str, list[float]] = {}
    for what, clock in found.values():
        by_quantity.setdefault(what, []).append(clock)
    orders = [clocks in (sorted(set(clocks)), sorted(set(clocks), reverse=True)) for clocks in by_quantity.values()]
    enough = all(len(clocks) >= _LEAST_CLOCKS for clocks in by_quantity.values())
    return found if enough and all(orders) and 2 * len(found) > len(columns.cells) else {}


def transposed(columns: Columns, tables: Mapping[str, Columns]) -> Columns:
    """A wide table with one row per application and clock: its labels, `clock_mhz`, and what was measured.

    Cells without another name are powers in W. `tables` holds further wide tables by what they hold (rate, time_s);
    their rows are found by their labels. Raises InputError where one is not wide.
    """
    labels, rows = _long_rows(columns, "power_w")
    others = {name: _long_rows(table, name)[1] for name, table in tables.items()}
    wanted = list(dict.fromkeys(what for figures in rows.values() for what in figures)) + list(others)
    cells: dict[str, list[str]] = {name: [] for name in (*labels, "clock_mhz", *wanted)}
    for (label, clock), figures in rows.items():
        more = {name: table.get((label, clock), {}).get(name, "") for name, table in others.items()}
        row = dict(zip(labels, label, strict=True)) | {"clock_mhz": f"{clock:g}"} | figures | more
        for name, column in cells.items():
            column.append(row.get(name, ""))
    missing = next((name for name in others if not any(cells[name])), None)
    if missing is not None:
        what = "no row and clock of it is in the other table"
        raise InputError(what, tables[missing].where, "name a table with the same applications and clocks")
    return Columns(columns.where, cells, columns.first_line)


def _long_rows(
    columns: Columns, unnamed: str
) -> tuple[list[str], Mapping[tuple[tuple[str, ...], float], dict[str, str]]]:
    """The columns of labels, and the figures by label and clock."""
    headings = wide_headings(columns)
    if not headings:
        remedy = "leave --transpose out, or pass a table with one row per application and clocks in MHz as headings"
        raise InputError("this is not a wide table: its columns are not clocks", columns.where, remedy)
    for name in headings:
        columns.numbers(name)  # names the cell that is none
    labels = [name for name in columns.cells if name not in headings]
    rows: dict[tuple[tuple[str, ...], float], dict[str, str]] = {}
    for index in range(len(columns)):
        label = tuple(columns.cells[name][index] for name in labels) or (str(index + 1),)
        for name, (what, clock) in headings.items():
            rows.setdefault((label, clock), {})[what or unnamed] = columns.cells[name][index]
    shown = ["application" if _CLOCK_HEADING.fullmatch(name) or "freq" in name.lower() else name for name in labels]
    return (shown if len(set(shown)) == len(shown) else labels) or ["row"], rows
