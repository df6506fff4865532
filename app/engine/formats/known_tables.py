"""Tables of known tools, where the headings alone do not say what is in them: `resources/known_tables.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

from ...base.paths import resources
from .cells import Cell, Table
from .headings import Role

_KNOWN: Final[Mapping[str, Mapping[str, list[str]]]] = tomllib.loads(
    (resources() / "known_tables.toml").read_text("utf-8")
)


def as_its_tool_says(table: Table) -> Table:
    """Give the columns of a known tool's table their roles, and their units where the headings name none.

    Parameters
    ----------
    table : Table
        Any table.

    Returns
    -------
    Table
        The table itself where no known tool wrote it.
    """
    fits = (tool for tool, known in _KNOWN.items() if table.columns.keys() >= {*known["headings"]})
    if not (tool := next(fits, "")):
        return table
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
