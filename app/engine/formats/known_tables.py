"""What the headings of a table do not say themselves: by its tool (`resources/known_tables.toml`), or units beside."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

import numpy as np

from ...base.paths import resources
from ...base.vocabulary import UNITS
from .cells import Cell, Table
from .entries import as_number
from .headings import BASE_UNIT, Role, by_itself, unit_of, words_of

_KNOWN: Final[Mapping[str, Mapping[str, list[str]]]] = tomllib.loads(
    (resources() / "known_tables.toml").read_text("utf-8")
)
_UNIT: Final = frozenset(("unit", "units"))


def as_its_tool_says(table: Table) -> Table:
    """Give the columns of a known tool's table their roles, and their units where the headings name none.

    Parameters
    ----------
    table : Table
        Any table.

    Returns
    -------
    Table
        Where no known tool wrote it, the table with the units that it says in columns of their own.
    """
    fits = (tool for tool, known in _KNOWN.items() if table.columns.keys() >= {*known["headings"]})
    if not (tool := next(fits, "")):
        return _with_units_beside(table)
    columns: dict[str, Sequence[Cell]] = {}
    roles: dict[str, Role] = {}
    known = [
        (pattern.replace("[", "[[]").partition(" in "), Role(role))
        for role, patterns in _KNOWN[tool].items()
        for pattern in patterns
        if role != "headings"
    ]
    for heading, cells in table.columns.items():
        fitting = ((unit, role) for (name, _, unit), role in known if fnmatchcase(heading, name))
        unit, role = next(fitting, ("", None))
        if unit[:1] == "{":
            unit = str(table.columns[unit.strip("{}")][0])
        name = f"{heading} ({unit})" if unit else heading
        columns[name] = cells
        roles |= {name: role} if role else {}
    note = f"read as a table of {tool}: what its columns are is known"
    return replace(table, columns=columns, notes=(*table.notes, note), roles=roles, _read={})


def _with_units_beside(table: Table) -> Table:
    """The table with units in its headings in place of columns of them: 'unit' behind a column, 'energy_unit'."""
    columns = dict(table.columns)
    for name, cells in table.columns.items():
        written = list(dict.fromkeys(str(cell) for cell in cells if cell is not None))
        units = {unit: UNITS.get(unit.lower(), ("", 1.0)) for unit in written if {*words_of(name)} & _UNIT}
        quantity = next((of for of, _ in units.values()), "")
        if quantity not in BASE_UNIT or {of for of, _ in units.values()} != {quantity}:
            continue
        for column in filter(table.is_numeric, _that_it_is_of(name, [*table.columns])):
            known = by_itself(column, np.ones(2)).unit
            if unit_of(column)[0] or known not in ("", BASE_UNIT[quantity]) or column not in columns:
                continue
            scaled = columns[column]
            if len(written) > 1:
                pairs = zip(map(as_number, scaled), cells, strict=True)
                scaled = [None if unit is None or n != n else n * units[str(unit)][1] for n, unit in pairs]
            heading = f"{column} ({BASE_UNIT[quantity] if len(written) > 1 else written[0]})"
            columns = {heading if n == column else n: scaled if n == column else c for n, c in columns.items()}
            columns.pop(name, None)
    return table.having(columns)


def _that_it_is_of(name: str, headings: Sequence[str]) -> list[str]:
    """The headings that a column of units may be of: those in the same object, of its words, or the one in front."""
    inside, _, last = name.rpartition(".")
    if inside and last.lower() in _UNIT:
        return [heading for heading in headings if heading.startswith(f"{inside}.")]
    words = {*words_of(name)} - _UNIT
    in_front = headings[max(headings.index(name) - 1, 0)]
    return [each for each in headings if each != name and (words <= {*words_of(each)} if words else each == in_front)]
