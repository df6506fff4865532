"""The columns of a table as the user names them, and their roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ...base.errors import InputError
from .cells import Cell, Table
from .entries import as_number
from .headings import MEASURED, SET, Column, Floats, Role
from .roles import roles_of
from .sheet import NAMED

OPTIONS: Final = ("parameters", "figures", "roles", "power_log")  # that say what the columns are
KERNELS: Final = frozenset(("kernel", "kernel_name"))
APART: Final = (Role.KERNEL, Role.BOARD, Role.WORK)  # rows of different ones must not be compared
CHOSEN_KERNEL: Final = "kernel (chosen)"  # whose rows are compared, beside a column of what must not be
COMPARED: Final = "compared for each kernel"
BY_ITS_TOOL: Final = "as its tool writes it"
UNCERTAIN: Final = "it is not certain"


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of parameters and of figures, heading by name here; None where they are to be found.

    `roles` are those that the user names, by heading; `beside` what belongs to results of a benchmark of a server.
    """

    parameters: Mapping[str, str] | None = None
    figures: Mapping[str, str] | None = None
    roles: Mapping[str, Role] = field(default_factory=dict)
    beside: tuple[str, ...] = ()

    @classmethod
    def parse(
        cls, parameters: str | None = None, figures: str | None = None, roles: str | None = None, logs: str = ""
    ) -> TableColumns | None:
        """From 'a,b' or 'NAME=HEADING,...' as options have it; None if nothing is said. Raises InputError.

        `roles` is 'HEADING=ROLE,...', `logs` a file in each line.
        """
        if not (parameters or figures or roles or logs):
            return None
        known = {role.value.replace(" ", "-"): role for role in Role}
        of_headings = {heading: role.replace(" ", "-") for heading, role in (_named(roles, "--roles") or {}).items()}
        for heading, role in of_headings.items():
            if role not in known:
                raise InputError(f"'{role[:40]}' of '{heading[:40]}' is no role", "--roles", ", ".join(known))
        named = _named(parameters, "--parameters"), _named(figures, "--figures")
        return cls(*named, {heading: known[role] for heading, role in of_headings.items()}, tuple(logs.splitlines()))

    def roles_in(self, table: Table) -> TableColumns:
        """Only what is said of columns that a table has: others are made of several of its own."""
        return TableColumns(roles={name: role for name, role in self.roles.items() if name in table.columns})

    @property
    def headings(self) -> dict[str, str]:
        """The heading of each column that the user names, by its name here."""
        return {**(self.parameters or {}), **(self.figures or {})}

    @property
    def options(self) -> dict[str, str]:
        """The texts that `parse` reads these from, by the option's name; empty if a heading cannot be written so."""
        roles = {heading: role.value.replace(" ", "-") for heading, role in self.roles.items()}
        given = {"parameters": self.parameters or {}, "figures": self.figures or {}, "roles": roles}
        if any(set(",=") & {*name, *heading} for named in given.values() for name, heading in named.items()):
            return {}
        said = {option: ["=".join(dict.fromkeys(each)) for each in named.items()] for option, named in given.items()}
        return {option: ",".join(named) for option, named in said.items() if named}


def column_roles(table: Table, requested: TableColumns | None = None) -> tuple[Column, ...]:
    """The role of each column of a table: as named, and the others as `roles_of` finds them.

    Parameters
    ----------
    table : Table
        The table.
    requested : TableColumns, optional
        What the user says of its columns.

    Returns
    -------
    tuple of Column
        In the table's order, under the names that the user gives them.

    Raises
    ------
    InputError
        If a column that the user names is not there.
    """
    requested = requested or TableColumns()
    last = next((answer for asked, answer in table.judged if asked == requested), None)
    if last is None:
        last = _judged(table, requested)
        table.judged[:] = [(requested, last)]
    return tuple(last)


def _judged(table: Table, requested: TableColumns) -> tuple[Column, ...]:
    names = _names(table, requested)
    known = {names[heading]: role for heading, role in table.roles.items()}
    cells = {names[heading]: table.cells(heading) for heading in table.columns}
    chosen = requested.parameters is not None or requested.figures is not None
    found = {column.heading: column.role for column in roles_of(cells, known)} if chosen else {}
    given = dict[str, Role]()
    asked = (requested.parameters, SET, Role.PARAMETER), (requested.figures, MEASURED, Role.FIGURE)
    for named, wanted, other in asked:
        for name in named or ():
            if wanted is SET or found[name] not in wanted:
                given[name] = found[name] if found[name] in wanted else other
        if named is not None:  # what the user leaves out is none
            left = [name for name, role in found.items() if role in wanted and name not in (named or ())]
            given |= {name: Role.UNUSED for name in left if name not in given}
    given |= {names[heading]: role for heading, role in requested.roles.items() if heading in names}
    left_to_it = known.keys() - given.keys()
    columns = roles_of(cells, known | given)
    return tuple(_known(column) if column.heading in left_to_it else column for column in columns)


def _known(column: Column) -> Column:
    """With the reason for a role that nobody named."""
    why = COMPARED if column.heading == CHOSEN_KERNEL else BY_ITS_TOOL
    return replace(column, why=why) if column.why == NAMED else column


def _names(table: Table, requested: TableColumns) -> dict[str, str]:
    """The name here of each heading. Raises InputError for a column that the user names and that is not there."""
    names = {heading: heading for heading in table.columns}
    joined = {heading for heading, role in requested.roles.items() if role in APART and "kernel" in names}
    of_roles = {heading: heading for heading in requested.roles.keys() - joined}
    for option, said in (("parameters", requested.parameters), ("figures", requested.figures), ("roles", of_roles)):
        for name, heading in (said or {}).items():
            if heading not in names:
                raise InputError(f"no column '{heading[:60]}'", f"{table.path}, --{option}", there(table))
            if option != "roles":
                names[heading] = name
    return names


def numbers_of(table: Table, column: Column) -> Floats:
    """The numbers of a column in its unit."""
    return np.array([as_number(cell) for cell in table.columns[column.heading]]) * column.scale


def joined(table: Table, columns: Sequence[Column]) -> list[str]:
    """The cells of these columns in one text for each row: numbers with their names, 'n_prompt 512 n_gen 0'."""
    parts = ([_part(column.heading, cell) for cell in table.columns[column.heading]] for column in columns)
    return [" ".join(row) for row in zip(*parts, strict=True)]


def _part(heading: str, cell: Cell) -> str:
    number = f"{cell:.15g}" if isinstance(cell, float) else str(cell)
    return f"{heading} {number}" if isinstance(cell, int | float) and not isinstance(cell, bool) else number


def varies(table: Table, heading: str) -> bool:
    return len(set(table.columns[heading])) > 1


def questions(columns: Iterable[Column]) -> Iterator[str]:
    """One question about all columns that may be the same two things, and how it is answered."""
    columns = list(columns)
    for candidates in dict.fromkeys(column.candidates for column in columns if len(column.candidates) > 1):
        one, *others = (role.value for role in candidates)
        headings = [column.heading for column in columns if column.candidates == candidates]
        answer = ",".join(f"{heading}={candidates[-1].value.replace(' ', '-')}" for heading in headings)
        verb = "is" if len(headings) == 1 else "are each"
        what = f"{', '.join(headings)} {verb} read as {one}, but may be {' or '.join(others)}"
        yield f"{what}: {UNCERTAIN} (--roles {answer})"


def there(table: Table) -> str:
    names = list(table.columns)
    return f"There are: {', '.join(name[:40] for name in names[:12])}{', ...' if len(names) > 12 else ''}"


def _named(text: str | None, option: str) -> dict[str, str] | None:
    if not text:
        return None
    named: dict[str, str] = {}
    for part in text.split(","):
        name, _, column = part.partition("=")
        name, column = name.strip(), (column or name).strip()
        if not name or name in named:
            raise InputError(f"'{part[:60]}' names no column, or one twice", option, "A,B or NAME=HEADING,...")
        named[name] = column
    return named
