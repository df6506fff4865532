"""Tables of measurements from text files: how they are read, and which rows belong together.

A file is CSV, the output of nvidia-smi, or a wide table that is transposed. Rows form one group per board and
configuration, named by what distinguishes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.files import read_text
from ...sensors.recorded.logs.read import Log, is_dmon, read_log
from ...sensors.recorded.recording import read_recording
from ..formats.columns import Columns, parse_columns
from ..formats.kinds import is_gpu_benches, is_trace, refused_gpu_benches
from ..formats.wide import wide_headings
from ..results.measurement import State
from ..space.repeats import is_repeat
from ..space.result_table import ResultTable
from .arrays import Floats, Mask, Rows
from .clock_log import READING
from .column_roles import Named, Roles, find_roles

DEVICE_COLUMNS = ("gpu", "gpu_name", "device", "device_name", "dev", "board")
_TIME = "timestamp_s"


def read_table(path: Path) -> Columns:
    """Read the columns of a text file, or of a recording of a board's channels.

    Parameters
    ----------
    path : Path
        A CSV, the output of nvidia-smi or of a dmon, or a recording.

    Returns
    -------
    Columns
        Its cells as text. Those of a recording or of the output of a dmon, NVIDIA's or DCGM's, are in order of time,
        with the board's name in the column 'gpu'.

    Raises
    ------
    InputError
        If the file cannot be read, or is of another kind.
    """
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
        held = board.by_name
        cells[_TIME] += (
            [f"{time / 1e9:.6f}" for time in times] if log.assumed_step_s is None else list(map(str, range(len(times))))
        )
        for name in names:
            cells[name] += map(repr, held[name].tolist()) if name in held else [""] * len(times)
        cells["gpu"] += [board.info.name] * len(times)
    in_order = {name: [column[index] for index in order] for name, column in cells.items()}
    if log.assumed_step_s is not None:  # what it does not hold is not made up
        in_order = {READING: in_order.pop(_TIME), **in_order}
    return Columns(str(log.path), in_order, 2)


def roles_of_table(columns: Columns, named: Named) -> Roles:
    """Find the columns of a sweep of clocks as `find_roles` does; the error for a wide table recommends --transpose.

    Parameters
    ----------
    columns : Columns
        The table.
    named : Named
        Columns that the user names.

    Returns
    -------
    Roles
        As `find_roles`.

    Raises
    ------
    InputError
        As `find_roles`, or if the table is wide.
    """
    try:
        return find_roles(columns, named)
    except InputError:
        clocks = sorted(clock for _, clock in wide_headings(columns).values())
        if not clocks:
            raise
        what = f"one row per application, and one column per clock from {clocks[0]:g} to {clocks[-1]:g} MHz"
        remedy = "add --transpose: the cells are read as W; --rate FILE or --time FILE names such a table of speeds"
        raise InputError(what, columns.where, remedy) from None


_REMARKS = re.compile(r"note|comment|remark|stamp|date|error|reason|state|source", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one board and configuration."""

    rows: Rows
    values: Mapping[str, Any]  # what distinguishes it from other groups, and what the user selected
    gpu: str = ""
    unnamed: str = ""  # its name where nothing distinguishes it

    @property
    def name(self) -> str:
        """'block_size_x=64, tile=2'."""
        return ", ".join(f"{key}={value}" for key, value in self.values.items()) or self.unnamed


def parse_series(text: str | None) -> dict[str, str]:
    """Parse what the user selects: 'KEY=VALUE', several with commas.

    Parameters
    ----------
    text : str or None
        The option; None if it was not given.

    Returns
    -------
    dict of str
        Values by key; empty if the option was not given.

    Raises
    ------
    InputError
        If the text has another form.
    """
    if text is None:
        return {}
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not key.strip() or not equals for key, equals, _ in pairs):
        raise InputError(f"'{text}' names no series", "--series", "write KEY=VALUE, several with commas")
    return {key.strip(): value.strip() for key, _, value in pairs}


def groups_of_table(table: ResultTable, usable: Mask, names: Sequence[str], wanted: Mapping[str, str]) -> list[Group]:
    """Group the usable measurements by the values of some parameters.

    Parameters
    ----------
    table : ResultTable
        The measurements.
    usable : array of bool, shape (n,)
        Which of them to use; it may end before the table does.
    names : sequence of str
        The parameters that distinguish groups.
    wanted : mapping of str
        Values that a measurement's configuration must have, by parameter; empty for all.

    Returns
    -------
    list of Group
        In the order in which their values first appear; empty if no measurement has the wanted values.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index in np.flatnonzero(usable).tolist():
        configuration = table.measurement(index).configuration
        if all(_same(str(configuration.get(key)), value) for key, value in wanted.items()):
            groups.setdefault(tuple(configuration[name] for name in names), []).append(index)
    return [
        Group(np.asarray(rows), dict(zip(names, values, strict=True)), unnamed="all") for values, rows in groups.items()
    ]


def groups_of_columns(roles: Roles, rows: Mask, setting: Floats, wanted: Mapping[str, str]) -> list[Group]:
    """Group rows by the columns that distinguish series.

    Parameters
    ----------
    roles : Roles
        The table and what its columns hold.
    rows : array of bool, shape (n,)
        Which rows to use.
    setting : array, shape (n,)
        What is swept within a series.
    wanted : mapping of str
        What the user selected, by column; the groups keep it among their values.

    Returns
    -------
    list of Group
        In the order in which they first appear.
    """
    columns = roles.columns
    keys = _key_columns(columns, roles.taken, rows, setting)
    results = []
    for values, members in grouped(columns, keys, rows).items():
        picked = dict(zip(keys, values, strict=True)) | dict(wanted)
        shown = {name: picked[name] for name in columns.cells if name in picked}
        results.append(Group(members, shown, board_of(columns, members[0]), Path(columns.where).name))
    return results


def board_of(columns: Columns, row: int, names: Sequence[str] = DEVICE_COLUMNS) -> str:
    """The board that a row names.

    Parameters
    ----------
    columns : Columns
        The table.
    row : int
        Index of the row.
    names : sequence of str, optional
        Headings of a column of boards, in lower case.

    Returns
    -------
    str
        Empty if no column has such a heading.
    """
    return next((cells[row] for name, cells in columns.cells.items() if name.lower() in names), "")


def wanted_rows(columns: Columns, wanted: Mapping[str, str]) -> Mask:
    """Select rows by their cells; the failed configurations of a session are left out.

    Parameters
    ----------
    columns : Columns
        The table.
    wanted : mapping of str
        Values by column; one number written in two ways is the same value.

    Returns
    -------
    array of bool, shape (n,)
        Which rows have all of these values.

    Raises
    ------
    InputError
        If there is no such column, or no row with the value.
    """
    rows = np.ones(len(columns), dtype=np.bool_)
    if "state" in columns.cells:  # a session of ours: failed configurations have no figures
        rows &= np.asarray([cell in ("", State.OK.value) for cell in columns.cells["state"]])
    for key, value in wanted.items():
        if key not in columns.cells:
            raise InputError(
                f"no column '{key}'", f"{columns.where}, --series", f"there are: {', '.join(columns.cells)}"
            )
        rows &= np.asarray([_same(cell, value) for cell in columns.cells[key]])
        if not rows.any():
            choices = ", ".join(list(dict.fromkeys(columns.cells[key]))[:8])
            raise InputError(f"no row with {key}={value}", f"{columns.where}, --series", f"there are: {choices}")
    return rows


def grouped(columns: Columns, keys: Sequence[str], rows: Mask) -> dict[tuple[str, ...], Rows]:
    """Group rows by the cells of some columns.

    Parameters
    ----------
    columns : Columns
        The table.
    keys : sequence of str
        The columns that distinguish groups; without any, all rows are one group.
    rows : array of bool, shape (n,)
        Which rows to group.

    Returns
    -------
    dict of array
        The rows of each group, ascending, by the cells of the key columns. Groups are in the order in which they first
        appear.
    """
    chosen = np.flatnonzero(rows)
    group = np.zeros(len(chosen), dtype=np.int64)
    for key in keys:
        codes, count = _codes(columns.cells[key], chosen)
        group = np.unique(group * count + codes, return_inverse=True)[1]
    order = np.argsort(group, kind="stable")
    parts = np.split(chosen[order], np.flatnonzero(np.diff(group[order])) + 1) if len(chosen) else []
    parts.sort(key=lambda part: int(part[0]))
    return {tuple(columns.cells[key][int(part[0])] for key in keys): part for part in parts}


def _key_columns(columns: Columns, taken: set[str], rows: Mask, setting: Floats) -> list[str]:
    """Columns that distinguish series: the board, and any with several settings at each of its values.

    A column of numbers must do so without exception: a measured quantity could repeat a value by chance.
    """
    keys = []
    chosen = np.flatnonzero(rows)
    settings, place = np.unique(setting[chosen], return_inverse=True)
    for name in columns.cells:
        if name in taken or _REMARKS.search(name):
            continue
        codes, count = _codes(columns.cells[name], chosen)
        if count < len(chosen) and is_repeat(name, columns.cells[name]):
            continue
        pairs = np.unique(codes * len(settings) + place)  # each value with each of its settings, once
        several = int((np.bincount(pairs // len(settings), minlength=count) >= 3).sum())
        needed = count if columns.is_numeric(name) else 0.5 * count
        if count > 1 and (several >= needed or name.lower() in DEVICE_COLUMNS):
            keys.append(name)
    return _fewest(columns, keys, rows)


def _codes(cells: Sequence[str], chosen: Rows) -> tuple[npt.NDArray[np.int64], int]:
    """A number for each text of the chosen cells, and how many texts there are."""
    seen: dict[str, int] = {}
    codes = np.fromiter((seen.setdefault(cells[index], len(seen)) for index in chosen.tolist()), np.int64, len(chosen))
    return codes, len(seen)


def _fewest(columns: Columns, keys: list[str], rows: Mask) -> list[str]:
    """Those of `keys` that make the same groups: the boards, then words, then numbers, as far as needed."""

    def rank(name: str) -> int:
        return 0 if name.lower() in DEVICE_COLUMNS else 2 if columns.is_numeric(name) else 1

    def groups(names: Sequence[str]) -> int:
        return len(grouped(columns, names, rows))

    total = groups(keys)
    kept = [name for name in keys if rank(name) == 0]
    made = groups(kept)
    for name in sorted(keys, key=rank):
        if made < total and name not in kept and (more := groups([*kept, name])) > made:
            kept.append(name)
            made = more
    for name in [name for name in kept if rank(name)]:
        without = [other for other in kept if other != name]
        if groups(without) == total:
            kept = without
    return [name for name in keys if name in kept]


def _same(cell: str, value: str) -> bool:
    """The same text, or the same number written differently."""
    if cell == value:
        return True
    try:
        return float(cell) == float(value)
    except ValueError:
        return False
