"""Which rows of a table belong together: one group per board and configuration, named by what distinguishes it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ..formats.columns import Columns
from ..measurement import State
from ..space.repeats import is_repeat
from ..space.result_table import ResultTable
from .arrays import Floats, Mask, Rows
from .roles import DEVICE_COLUMNS, Roles

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
    """'KEY=VALUE', several with commas. Raises InputError."""
    if text is None:
        return {}
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not key.strip() or not equals for key, equals, _ in pairs):
        raise InputError(f"'{text}' names no series", "--series", "write KEY=VALUE, several with commas")
    return {key.strip(): value.strip() for key, _, value in pairs}


def groups_of_table(table: ResultTable, usable: Mask, names: Sequence[str], wanted: Mapping[str, str]) -> list[Group]:
    """The usable measurements by the values of these parameters, as far as they are `wanted`."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index in np.flatnonzero(usable).tolist():
        configuration = table.measurement(index).configuration
        if all(_same(str(configuration.get(key)), value) for key, value in wanted.items()):
            groups.setdefault(tuple(configuration[name] for name in names), []).append(index)
    return [
        Group(np.asarray(rows), dict(zip(names, values, strict=True)), unnamed="all") for values, rows in groups.items()
    ]


def groups_of_columns(roles: Roles, rows: Mask, setting: Floats, wanted: Mapping[str, str]) -> list[Group]:
    """The rows by the columns that distinguish series; `setting`, shape (n,), is what is swept within one."""
    columns = roles.columns
    keys = _key_columns(columns, roles.taken, rows, setting)
    found = []
    for values, at in grouped(columns, keys, rows).items():
        picked = dict(zip(keys, values, strict=True)) | dict(wanted)
        shown = {name: picked[name] for name in columns.cells if name in picked}
        found.append(Group(at, shown, board_of(columns, at[0]), Path(columns.where).name))
    return found


def board_of(columns: Columns, row: int, names: Sequence[str] = DEVICE_COLUMNS) -> str:
    """The board that a row names; empty where none does."""
    return next((cells[row] for name, cells in columns.cells.items() if name.lower() in names), "")


def wanted_rows(columns: Columns, wanted: Mapping[str, str]) -> Mask:
    """The rows that `wanted` leaves, without failed configurations of a session. Raises InputError for unknown keys."""
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
            known = ", ".join(list(dict.fromkeys(columns.cells[key]))[:8])
            raise InputError(f"no row with {key}={value}", f"{columns.where}, --series", f"there are: {known}")
    return rows


def grouped(columns: Columns, keys: Sequence[str], rows: Mask) -> dict[tuple[str, ...], Rows]:
    """The rows by the values of these columns, in the order in which these first appear."""
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
    codes = np.fromiter((seen.setdefault(cells[at], len(seen)) for at in chosen.tolist()), np.int64, len(chosen))
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
