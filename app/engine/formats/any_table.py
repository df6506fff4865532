"""Any table of measurements as a recording: CSV, Parquet, JSON, JSON lines, or a folder with one JSON file per point.

What each column is follows from `roles`, or is said by the user (`TableColumns`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from ...base.errors import InputError, WattridgeError
from ...base.files import text_chunks
from ...base.formatting import number as figure
from ...base.vocabulary import HEADINGS, PATTERNS, WORDS
from ..metering.gain import fit_gain
from ..results.measurement import State, Value
from ..results.objectives import Goal, Objective, likely_goal
from ..results.service_figures import OF_RESULTS, SERVICE_FIGURES
from ..space.search_space import MIXED_KERNELS
from .cells import Cell, Table, of_text, read_cells
from .columns import parse_columns
from .entries import NO_VALUE, as_number
from .headings import (
    ANSWERING,
    COME_AGAIN,
    COUNTED,
    EACH_ITS_OWN,
    MEASURED,
    NUMBERED,
    SET,
    SETTING_OF,
    SOMEONE_CHOSE,
    Column,
    Floats,
    Role,
)
from .known_tables import as_its_tool_says
from .recording import MAXIMUM_PARAMETERS, Facts, Recording, RecordingBuilder
from .remembered_roles import remembered
from .roles import COUNTABLE, NAMED, TOKENS, beside_main, main_column, roles_of
from .service_table import read_service

OPTIONS: Final = ("parameters", "figures", "roles", "power_log")  # that say what the columns are
REPEAT: Final = "repeat"  # the parameter that counts rows of one configuration
KERNELS: Final = frozenset(("kernel", "kernel_name"))
_PER: Final = tuple(
    (re.compile(rf"_per_{unit}$", re.IGNORECASE), written)
    for unit, written in (("s(ec|econd)?", "/s"), ("j(oule)?", "/J"), ("w(att)?", "/W"))
)
_NUMBER_IN_TEXT: Final = re.compile(r"\d+(?:\.\d+)?")
_BOARD_NUMBER: Final = re.compile(r"(gpu|device|rank)[ _]?\d{1,2}(?![0-9])", re.IGNORECASE)
_OURS: Final = {  # our names of what a role measures
    Role.TIME: "time_s",
    Role.ENERGY: "energy_j",
    Role.POWER: "power_w",
    Role.OBSERVED_CLOCK: "observed_clock_mhz",
    Role.TEMPERATURE: "temperature_c",
    Role.WORK_ENERGY: "energy_per_work_j",
}
_Ours = dict[str, tuple[str, float]]  # our name of a figure -> its name in the table, and the factor to our unit
_APART: Final = (Role.KERNEL, Role.BOARD, Role.WORK)  # rows of different ones must not be compared
_GOOD: Final = ("", "0", "false", "none", "no", "ok")  # cells of a column of errors, where there was none
_NONE: Final = "none"
_UNCERTAIN: Final = "it is not certain"
_SAME_WORK: Final = {Role.THROUGHPUT: 1.5, Role.ENERGY: 1.05}  # largest to least work, within which it is the same
_SAME_OPERATIONS: Final = 0.02  # share, within which products of rounded figures are the same
_FEW: Final = 0.05  # share of rows
_PLACEHOLDER: Final = 100  # ratio to the next largest
_OVER: Final = 1.25  # of the power limit, beyond what boards overshoot by
_CONTRADICTED: Final = 0.1  # share by which energy may differ from power times time


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

    @property
    def headings(self) -> dict[str, str]:
        """The heading of each column that the user names, by its name here."""
        return {**(self.parameters or {}), **(self.figures or {})}

    @property
    def options(self) -> dict[str, str]:
        """What `parse` reads these from, by the option's name; empty if a heading cannot be written so."""
        roles = {heading: role.value.replace(" ", "-") for heading, role in self.roles.items()}
        given = {"parameters": self.parameters or {}, "figures": self.figures or {}, "roles": roles}
        if any(set(",=") & {*name, *heading} for named in given.values() for name, heading in named.items()):
            return {}
        said = {option: ["=".join(dict.fromkeys(each)) for each in named.items()] for option, named in given.items()}
        return {option: ",".join(named) for option, named in said.items() if named}


def read_table(path: Path, columns: TableColumns | None = None) -> Recording:
    """A table as a recording. Raises InputError if it is none, or where it is not clear which columns are what."""
    table = table_of(path, columns)
    columns = TableColumns.parse(**remembered(path, table.columns)) if columns is None else columns
    table = prepared(table, columns)
    found = column_roles(table, columns)
    return recording_of(table, guess(table, columns, found), found)


def table_of(path: Path, columns: TableColumns | None = None) -> Table:
    """The cells of a table, or of results of a benchmark of a server with what is beside them. Raises InputError."""
    served = read_service(path, () if columns is None else columns.beside)
    return as_its_tool_says(read_cells(path)) if served is None else served


def prepared(table: Table, columns: TableColumns | None = None) -> Table:
    """The table with what several columns say together in one: the energy of all boards, the name of what ran."""
    roles = TableColumns() if columns is None else TableColumns(roles=columns.roles)
    table = without_nameless(table, roles)
    table = with_whole_rate(without_placeholders(with_totals(without_warm_up(table), roles), roles), roles)
    chosen = None if columns is None or columns.parameters is None else set(columns.parameters.values())
    joined = chosen is None or bool(chosen & KERNELS and not chosen & KERNELS & table.columns.keys())
    table = with_one_kernel(table, roles) if joined else table
    if chosen is not None or not _is_one_run(table, found := column_roles(table, roles)):
        return table
    left = {c.heading: table.columns[c.heading] for c in found if len(table) == 1 or c.why != EACH_ITS_OWN}
    return table.having({"run": [table.path.stem] * len(table), **left})


def _is_one_run(table: Table, found: Sequence[Column]) -> bool:
    """Tell whether a table is of one run, named as its file: one row, or single requests, and nothing that was set."""
    if len(table) == 1 or any(column.role in SET for column in found):
        return not any(column.role in SET for column in found)
    named = any(column.role in (*_APART, Role.REPEAT) and _varies(table, column.heading) for column in found)
    named |= any(column.why == EACH_ITS_OWN and not column.words & WORDS["asked"] for column in found)
    numbered = any(column.why == NUMBERED for column in found)
    return not named and any(c.role is Role.LATENCY or (numbered and c.role is Role.ENERGY) for c in found)


def with_totals(table: Table, said: TableColumns) -> Table:
    """The table with the sum of what several boards took together, and with settings that stand in names.

    What the user says of a column leaves it as it is.
    """
    left = said.roles.keys()
    cells = dict((n not in left and _setting_in_name(n, cells)) or (n, cells) for n, cells in table.columns.items())
    boards: dict[str, list[str]] = {}
    for name in filter(_BOARD_NUMBER.search, cells.keys() - left):
        boards.setdefault(_BOARD_NUMBER.sub(r"\1", name), []).append(name)
    found = {c.heading: c.role for c in column_roles(table.having(cells))} if boards else {}
    for name, several in boards.items():
        if len(several) > 1 and all(found[each] in (Role.ENERGY, Role.POWER) for each in several):
            rows = zip(*(cells[each] for each in several), strict=True)
            total: list[Cell] = [None if None in row else sum(map(as_number, row)) for row in rows]
            cells = {f"total {name}": total, **{each: column for each, column in cells.items() if each not in several}}
    return table.having(cells)


def without_warm_up(table: Table) -> Table:
    """The table without rows that some column calls 'warmup', or one of states something like it."""
    warm = {
        row
        for name, column in table.columns.items()
        for row, cell in enumerate(column)
        if isinstance(cell, str)
        if PATTERNS["warm_up"].fullmatch(cell) or (name.lower() in HEADINGS["state"] and "warm" in cell.lower())
    }
    if not 0 < len(warm) < len(table):
        return table
    left = {name: [c for row, c in enumerate(cells) if row not in warm] for name, cells in table.columns.items()}
    return table.having(left, f"{len(warm)} rows are of warming up and are left out")


def without_nameless(table: Table, said: TableColumns) -> Table:
    """The table without the few rows that do not say what ran, where all others do."""
    names = [table.columns[c.heading] for c in column_roles(table, said) if c.role in (Role.KERNEL, Role.WORK)]
    empty = {
        row for cells in names for row, cell in enumerate(cells) if cell is None and len(table) > cells.count(None)
    }
    if not 0 < len(empty) < _FEW * len(table):
        return table
    left = {name: [c for row, c in enumerate(cells) if row not in empty] for name, cells in table.columns.items()}
    return table.having(left, f"{len(empty)} rows do not say what ran and are left out")


def without_placeholders(table: Table, said: TableColumns) -> Table:
    """The table without rates of a power of ten that come again, and are far above all others."""
    cells, notes = dict(table.columns), list[str]()
    for column in (column for column in column_roles(table, said) if column.role is Role.THROUGHPUT):
        name, values = column.heading, _numbers(table, column)
        top = float(np.nanmax(values, initial=0))
        count, others = int((values == top).sum()), float(np.max(values, where=values < top, initial=0))
        if count > 1 and top >= _PLACEHOLDER * max(others, 1) and math.log10(top).is_integer():
            cells[name] = [None if as_number(cell) == top else cell for cell in cells[name]]
            notes.append(f"{count} cells of {name} are {top:.0e}, far above all others: they are not read")
    return table.having(cells, *notes)


def with_whole_rate(table: Table, said: TableColumns) -> Table:
    """The table with the rate of all that was counted, where it holds none, or another one: what each request saw."""
    found = column_roles(table, said)
    time, rates = main_column(found, Role.TIME), [column for column in found if column.role is Role.THROUGHPUT]
    counts = [c for c in found if c.why == COUNTED and c.words & TOKENS and c.words & WORDS["all_of_it"]]
    wrong = " ".join(column.contradicted for column in rates)
    count = next((c for c in counts if not rates or f"not '{c.heading}' over" in wrong), None)
    if count is None or time is None:
        return table
    scale = 1.0 if math.isnan(time.scale) else 1 / time.scale
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = _numbers(table, count) / np.array([as_number(cell) for cell in table.columns[time.heading]]) * scale
    cells: list[Cell] = [value if math.isfinite(value) else None for value in whole.tolist()]
    return table.having({**table.columns, f"{count.heading}/s": cells})


def _setting_in_name(name: str, column: Sequence[Cell]) -> tuple[str, Sequence[Cell]] | None:
    """Names that differ in a number alone, where their words say that it is a setting: 'limit_250'."""
    texts = [cell for cell in column if isinstance(cell, str)]
    stems = {_NUMBER_IN_TEXT.sub("", text) for text in texts}
    numbers = [float(found[0]) for text in texts if len(found := _NUMBER_IN_TEXT.findall(text)) == 1]
    if len(stems) != 1 or len(numbers) != len(column):
        return None
    heading = f"{name} {stems.pop().strip('_- ')}"
    return (heading, numbers) if roles_of({heading: np.array(numbers)})[0].role in SETTING_OF else None


def with_one_kernel(table: Table, said: TableColumns) -> Table:
    """The table with one column of what must not be compared: boards, kernels, and how much they worked on."""
    apart = [c for c in column_roles(table, said) if c.role in _APART and _varies(table, c.heading)]
    works = [column for column in apart if column.role is Role.WORK]
    works = works or [column for column in apart if column.heading.lower() in HEADINGS["worked_on_by"]]
    single = len(set(_joined(table, apart))) == len(table)
    notes: tuple[str, ...] = ()
    if len(works) < len(apart) and works and single:  # each row is another: compared is the same amount
        models = [c for c in apart if c not in works and c.words & WORDS["model"]]  # which some choose from
        notes = (*_questions(replace(c, candidates=(Role.PARAMETER, Role.KERNEL)) for c in models),)
        apart = works
    elif _are_same_operations(table, others := [column for column in apart if column.role is not Role.KERNEL], said):
        apart = others
    elif len(apart) > 1 and not works:  # what may be compared, a reader of their names knows
        apart = [replace(c, candidates=(Role.KERNEL, Role.PARAMETER)) if single else c for c in apart]
    found = [column.heading for column in apart]
    kept = found and (found[0].lower() in KERNELS or (apart[0].candidates and apart[0].role is Role.KERNEL))
    known = len(found) == 1 and (kept or (single and not works))
    if not found or known:  # or rows of it can only be compared
        return table
    left = {f"{n} (chosen)" if n == "kernel" else n: cells for n, cells in table.columns.items() if n not in found}
    table = table.having({"kernel": _joined(table, apart), **left}, *_questions(apart), *notes)
    return replace(table, roles={**table.roles, **dict.fromkeys(left.keys() & {"kernel (chosen)"}, Role.PARAMETER)})


def _are_same_operations(table: Table, others: Sequence[Column], said: TableColumns) -> bool:
    """Whether all kernels do as many operations, by their rate and time, where these columns are the same."""
    found = column_roles(table, said)
    rate, time = (main_column(found, role) for role in (Role.THROUGHPUT, Role.TIME))
    if not others or rate is None or time is None or not PATTERNS["operations"].search(rate.heading.lower()):
        return False
    work, groups = _numbers(table, rate) * _numbers(table, time), np.array(_joined(table, others))
    amounts = [work[(groups == group) & (work > 0)] for group in np.unique(groups)]
    return all(len(each) > 1 and float(np.ptp(each)) < _SAME_OPERATIONS * float(each.max()) for each in amounts)


def _numbers(table: Table, column: Column) -> Floats:
    """The numbers of a column in its unit."""
    return np.array([as_number(cell) for cell in table.columns[column.heading]]) * column.scale


def _joined(table: Table, columns: Sequence[Column]) -> list[str]:
    """The cells of these columns in one text for each row."""
    rows = zip(*(table.columns[column.heading] for column in columns), strict=True)
    return [" ".join(f"{c:.15g}" if isinstance(c, float) else str(c) for c in row) for row in rows]


def is_clock_sweep(path: Path) -> bool:
    """Whether a text table holds powers at the values of one clock and nothing else that was chosen.

    Raises InputError if the file cannot be read.
    """
    beginning = next(text_chunks(path), "")
    try:
        table = of_text(parse_columns(beginning[: beginning.rfind("\n") + 1], str(path)), path)
        found = column_roles(table)
    except InputError:
        return False
    chosen = [column.role for column in found if column.role in SET and len(set(table.columns[column.heading])) > 1]
    clocks = chosen == [Role.GRAPHICS_CLOCK] or (not chosen and main_column(found, Role.OBSERVED_CLOCK) is not None)
    return clocks and main_column(found, Role.POWER) is not None


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
    names = _names(table, requested)
    given = {names[heading]: role for heading, role in table.roles.items()}
    cells = {names[heading]: table.cells(heading) for heading in table.columns}
    found = {column.heading: column.role for column in roles_of(cells)}
    asked = (requested.parameters, SET, Role.PARAMETER), (requested.figures, MEASURED, Role.FIGURE)
    for named, wanted, other in asked:
        for name in named or ():
            if wanted is SET or found[name] not in wanted:
                given[name] = found[name] if found[name] in wanted else other
        if named is not None:  # what the user leaves out is none
            left = [name for name, role in found.items() if role in wanted and name not in (named or ())]
            given |= {name: Role.UNUSED for name in left if name not in given}
    given |= {names[heading]: role for heading, role in requested.roles.items() if heading in names}
    return roles_of(cells, given)


def _names(table: Table, requested: TableColumns) -> dict[str, str]:
    """The name here of each heading. Raises InputError for a column that the user names and that is not there."""
    names = {heading: heading for heading in table.columns}
    joined = {heading for heading, role in requested.roles.items() if role in _APART and "kernel" in names}
    of_roles = {heading: heading for heading in requested.roles.keys() - joined}
    for option, said in (("parameters", requested.parameters), ("figures", requested.figures), ("roles", of_roles)):
        for name, heading in (said or {}).items():
            if heading not in names:
                raise InputError(f"no column '{heading[:60]}'", f"{table.path}, --{option}", _there(table))
            if option != "roles":
                names[heading] = name
    return names


def guess(table: Table, requested: TableColumns | None = None, found: Sequence[Column] | None = None) -> TableColumns:
    """The columns of parameters and figures: as said, and the others by their roles. Raises InputError."""
    requested = requested or TableColumns()
    found = column_roles(table, requested) if found is None else found
    parameters, figures = _parameters_of(table, requested, found), _figures_of(table, requested, found)
    known = requested.figures or requested.roles or any(column.role in ANSWERING for column in found)
    what, remedy = "", f"name them: --parameters A,B --figures C,D. {_there(table)}"
    if figures and not known:
        what = "no column is a time, an energy, a power or a speed that is known"
        left = [column.heading for column in found if column.role is Role.FIGURE and not column.why]
        if len(left) == 1:
            what += f"; '{left[0][:60]}' may be a throughput, a time or an energy (--roles '{left[0][:60]}=throughput')"
        remedy = f"name one: --figures time_s=COLUMN,energy_j=COLUMN. {_there(table)}"
    elif not parameters or not figures:
        what = "it is not clear which columns are " + ("parameters" if not parameters else "figures")
    if what:
        raise InputError(what, str(table.path), remedy)
    return replace(requested, parameters=parameters, figures=figures)


def _parameters_of(table: Table, requested: TableColumns, found: Sequence[Column]) -> dict[str, str]:
    """Name here -> heading, in the order in which the user names them."""
    headings, result = requested.headings, dict[str, str]()
    for column in found:
        heading = headings.get(column.heading, column.heading)
        tells = column.role in _APART and requested.parameters is None
        if column.role in (*SET, Role.REPEAT) or (tells and _varies(table, heading)):
            result[_parameter_name(column, result, requested)] = heading
    if not result and requested.parameters is None and len(table) > 1:  # runs without a setting: by their names
        names = [column.heading for column in found if column.why == EACH_ITS_OWN]
        return dict(zip(names[:1], names[:1], strict=True))
    if len(result) > MAXIMUM_PARAMETERS and len(table) == 1:  # everything that a program was started with
        known = {column.heading for column in found if column.why not in (SOMEONE_CHOSE, COME_AGAIN)}
        result = {name: heading for name, heading in result.items() if heading in known}
    return {name: result[name] for name in (*(requested.parameters or ()), *result) if name in result}


def _figures_of(table: Table, requested: TableColumns, found: Sequence[Column]) -> dict[str, str]:
    """Name here -> heading; the speed that counts first, unless the user names them."""
    headings = requested.headings
    result = {
        column.heading if column.heading in headings else _called(column): headings.get(column.heading, column.heading)
        for column in found
        if column.role in MEASURED and table.is_numeric(headings.get(column.heading, column.heading))
    }
    rate = main_column(found, Role.THROUGHPUT)
    first = _called(rate) if rate is not None and requested.figures is None else ""
    return {name: result[name] for name in (first, *result) if name in result}


def _varies(table: Table, heading: str) -> bool:
    return len(set(table.columns[heading])) > 1


def _parameter_name(column: Column, taken: Mapping[str, str], requested: TableColumns) -> str:
    """Our name of a setting of the board and of a kernel, where the user gives the column none."""
    if (
        column.heading in KERNELS
        and column.role is Role.PARAMETER
        and column.heading not in (requested.parameters or {})
    ):
        return f"{column.heading} (chosen)"  # its rows can be compared
    ours = "kernel" if column.role is Role.KERNEL else SETTING_OF.get(column.role, "")
    if not ours or column.scale != 1.0 or ours in taken or column.heading in (requested.parameters or {}):
        return column.heading
    return ours


def _remarks(table: Table, columns: TableColumns, found: Sequence[Column], kept: int) -> Iterator[str]:
    """What of a table is left out or mixed, where `kept` of its rows are read."""
    parameters, figures = columns.parameters or {}, columns.figures or {}
    if kept < len(table):
        yield f"{len(table) - kept} of {len(table)} rows have no number in any figure and are left out"
    first = min(list(table.columns).index(column) for column in figures.values())
    unused = [c.heading for c in found if c.role is Role.UNUSED and c.why == "empty in some rows"]
    for name, column in list(table.columns.items())[:first]:
        empty = list(column).count(None)
        if 0 < empty < len(table) and name in unused:
            yield f"{name} is empty in {empty} of {len(table)} rows: it is not read as a parameter"
    for name in filter(KERNELS.__contains__, parameters):
        several = ", ".join(dict.fromkeys(map(str, table.columns[parameters[name]])))
        yield f"{MIXED_KERNELS}{several[:200]}): a best or a mean over all of them compares different work"


def recording_of(table: Table, columns: TableColumns, found: Sequence[Column] | None = None) -> Recording:
    """The recording of a table whose columns are known. Raises InputError naming the row that cannot be read."""
    found = column_roles(table, columns) if found is None else found
    parameters = columns.parameters or {}
    if len(parameters) > MAXIMUM_PARAMETERS:
        where = str(table.path)
        raise InputError(f"{len(parameters)} parameters", where, f"at most {MAXIMUM_PARAMETERS} are read")
    configurations = _configurations(table, parameters, columns.roles)
    counts = _repeats(configurations)
    repeat = REPEAT if REPEAT not in parameters else f"{REPEAT} of a row"
    builder = RecordingBuilder(table.path, (*parameters, *((repeat,) if counts is not None else ())))
    cells, ours = _figures(table, columns, found)
    failures = _failures(table, found)
    checked = any(column.confirmed for column in found)
    rates = {_called(column): _per_joule(_called(column)) for column in found if column.role is Role.THROUGHPUT}
    contradicted = 0
    for row, configuration in enumerate(configurations):
        values = {name: column[row] for name, column in cells.items() if math.isfinite(column[row])}
        if not (values or failures[row]):
            continue
        if not any(values.values()):
            failures[row] = failures[row] or "all of its figures are 0: it was not measured"
        contradicted += _add_known(values, ours, rates, checked)
        state = State.RUNTIME if failures[row] else State.OK
        facts = Facts(state, {} if failures[row] else values, intervals={}, error=failures[row], source="recorded")
        builder.add(configuration if counts is None else (*configuration, counts[row]), facts)
    single = [c for c in found if len(set(table.columns.get(c.heading, ()))) == 1]
    constant = {column.role: str(table.columns[column.heading][0]) for column in single}
    device, kernel = (constant.get(role, "") for role in (Role.BOARD, Role.KERNEL))
    notes = [*_notes(table, columns, found, contradicted), *_together(found, cells), *_meters_beside(table, found)]
    notes += _remarks(table, columns, found, len(builder))
    recording = builder.finish(device=device, kernel=kernel, notes=notes)
    objective, named = _objective(recording, found), bool(kernel or not device)
    options = {**columns.options, **({"power_log": "\n".join(columns.beside)} if columns.beside else {})}
    return replace(recording, objective=objective, read_with=options, is_named=named, columns=tuple(found))


def _figures(table: Table, columns: TableColumns, found: Sequence[Column]) -> tuple[dict[str, list[float]], _Ours]:
    """The figures by name, and ours among them; times and energies of different work are not ours."""
    cells = {name: [as_number(cell) for cell in table.columns[of]] for name, of in (columns.figures or {}).items()}
    main = {ours: main_column(found, role) for role, ours in _OURS.items()}
    ours = {name: (_called(column), column.scale) for name, column in main.items() if column is not None}
    if _same_work(found, table):
        return cells, ours
    if {"time_s", "energy_j", "energy_per_work_j"} <= ours.keys() and main_column(found, Role.THROUGHPUT) is None:
        named = map(ours.__getitem__, ("time_s", "energy_j", "energy_per_work_j"))
        time, energy, one = (np.array(cells[of]) * scale for of, scale in named)
        with np.errstate(divide="ignore", invalid="ignore"):
            cells["work/s"] = (energy / one / time).tolist()
    cells = {f"{name} (of all)" if name in ("time_s", "energy_j") else name: c for name, c in cells.items()}
    return cells, {name: of for name, of in ours.items() if name not in ("time_s", "energy_j")}


def _notes(table: Table, columns: TableColumns, found: Sequence[Column], contradicted: int) -> Iterator[str]:
    """Notes on how the table was read: contradictions, assumptions, and what is not certain."""
    parameters, figures = (", ".join(named or ()) for named in (columns.parameters, columns.figures))
    yield f"a table of another tool, read with parameters: {parameters}; figures: {figures}"
    yield from (f"{column.heading} is {column.contradicted}" for column in found if column.contradicted)
    main = (main_column(found, role) for role in (Role.TIME, Role.ENERGY, Role.POWER))
    guessed = [column for column in main if column is not None and not column.confirmed and column.scale_is_guessed]
    yield from (f"{c.heading} names no unit: its numbers are read as {c.unit}" for c in guessed)
    if contradicted:
        yield f"the power of {contradicted} rows is not their energy over their time, and is not used"
    yield from _over_the_limit(table, found)
    answered = any(column.heading in KERNELS and column.why == NAMED for column in found)
    yield from (note for note in table.notes if not answered or _UNCERTAIN not in note)
    yield from _questions(found)


def _over_the_limit(table: Table, found: Sequence[Column]) -> Iterator[str]:
    """What is drawn beyond the power limit that is said to hold."""
    limit, power = (main_column(found, role) for role in (Role.POWER_LIMIT, Role.POWER))
    if limit is None or power is None or not {limit.heading, power.heading} <= table.columns.keys():
        return
    under, drawn = _numbers(table, limit), _numbers(table, power)
    beyond = np.flatnonzero((under > 0) & (drawn > _OVER * under))
    if len(beyond):
        row = int(beyond[np.argmax(drawn[beyond] / under[beyond])])
        most = f"{drawn[row]:.0f} W under {under[row]:.0f} W"
        yield f"{len(beyond)} rows draw more than their limit, row {row + 1} {most}"


def _together(found: Sequence[Column], cells: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """The energy of all rows together, where they have no setting or say when they were."""
    if any(column.role in SET for column in found) and not any(column.role is Role.STAMP for column in found):
        return
    for column in found:
        if column.role is Role.ENERGY and (values := cells.get(_called(column))) is not None:
            energies = [value for value in values if math.isfinite(value)]
            total = figure(math.fsum(energies) * column.scale)
            yield f"all {len(energies)} rows together: {total} J by {column.heading}"


def _meters_beside(table: Table, found: Sequence[Column]) -> Iterator[str]:
    """Gain and offset of the power or energy that counts against each other meter's, or why they are not known."""
    for role, unit in ((Role.POWER, "W"), (Role.ENERGY, "J")):
        columns = [column for column in beside_main(found, role) if column.heading in table.columns]
        for column in columns[1:]:
            try:
                gain = fit_gain(column.heading, _numbers(table, columns[0]), _numbers(table, column))
                yield gain.sentence(columns[0].heading, unit)
            except WattridgeError as error:
                yield f"{columns[0].heading} against {column.heading}: {error.what}"


def _questions(columns: Iterable[Column]) -> Iterator[str]:
    """One question about all columns that may be the same two things, and how it is answered."""
    columns = list(columns)
    for candidates in dict.fromkeys(column.candidates for column in columns if len(column.candidates) > 1):
        one, *others = (role.value for role in candidates)
        headings = [column.heading for column in columns if column.candidates == candidates]
        answer = ",".join(f"{heading}={candidates[-1].value.replace(' ', '-')}" for heading in headings)
        verb = "is" if len(headings) == 1 else "are each"
        what = f"{', '.join(headings)} {verb} read as {one}, but may be {' or '.join(others)}"
        yield f"{what}: {_UNCERTAIN} (--roles {answer})"


def _called(column: Column) -> str:
    """The name here of a figure: that of a speed says that it is one."""
    name = _figure_name(column.heading)
    known = PATTERNS["named_rate"].search(name.lower())
    return f"{name} [1/s]" if column.role is Role.THROUGHPUT and not known else name


def _failures(table: Table, found: Sequence[Column]) -> list[str]:
    """Why each row failed, as a column of states says; '' for those that did not."""
    reasons = [""] * len(table)
    for column in (column for column in found if column.role is Role.STATE):
        named_bad = any(word in column.heading.lower() for word in ("fail", "error", "invalid"))
        for row, cell in enumerate(table.columns[column.heading]):
            text = "" if cell is None else str(cell).strip()
            bad = text.lower() not in _GOOD if named_bad else PATTERNS["bad"].search(text)
            reasons[row] = reasons[row] or (f"{column.heading}: {text}"[:200] or NO_VALUE if bad else "")
    return reasons


def _figure_name(column: str) -> str:
    """'tokens_per_s' is called tokens/s here, where the end of a name is its unit; figures of a service are not."""
    if column in (*SERVICE_FIGURES, *OF_RESULTS):
        return column
    for pattern, written in _PER:
        column = pattern.sub(written, column)
    return column


def _objective(recording: Recording, found: Sequence[Column]) -> Objective:
    """Time and energy of the same work, else a speed and an efficiency, else the first figure."""
    names = recording.value_names
    least = Goal("energy_j", False)
    if {"time_s", "energy_j"} <= set(names):
        return Objective(least, (Goal("time_s", False), least))
    first, per_work = (main_column(found, role) for role in (Role.THROUGHPUT, Role.WORK_ENERGY))
    others = [column for column in found if column.role is Role.THROUGHPUT and column is not first]
    rates = [_called(column) for column in ([] if first is None else [first, *others])]
    for speed in (rate for rate in rates if rate in names):
        per_joule = Goal(_per_joule(speed), True)
        if per_work is not None and _called(per_work) in names:
            per_joule = Goal(_called(per_work), False)
        if per_joule.name in names:
            return Objective(per_joule, (Goal(speed, True), per_joule))
    if rates and rates[0] in names and "time_s" not in names:
        return Objective(Goal(rates[0], True))
    return Objective(likely_goal("time_s" if "time_s" in names else names[0] if names else "time"))


def _same_work(found: Sequence[Column], table: Table) -> bool:
    """Whether the amount of work is the same for each kernel, so that times may be compared.

    It is speed times time, energy over energy per work, or what was counted.
    """
    kernels = np.array([str(cell) for cell in table.columns.get("kernel", [""] * len(table))])
    there = [c for c in found if c.heading in table.columns]
    counts = (c for c in there if c.why == COUNTED and c.words & COUNTABLE - TOKENS and table.is_numeric(c.heading))
    works = [(_numbers(table, count), _SAME_WORK[Role.THROUGHPUT]) for count in counts]
    for roles, power in (((Role.THROUGHPUT, Role.TIME), 1), ((Role.ENERGY, Role.WORK_ENERGY), -1)):
        columns = [c for role in roles if (c := main_column(there, role)) is not None]
        if len(columns) == 2:
            with np.errstate(divide="ignore", invalid="ignore"):
                works.append((_numbers(table, columns[0]) * _numbers(table, columns[1]) ** power, _SAME_WORK[roles[0]]))
    for work, most in works:
        known = np.isfinite(work) & (work > 0)
        each = (work[known & (kernels == kernel)] for kernel in np.unique(kernels[known]))
        if any(float(amounts.max() / amounts.min()) > most for amounts in each):
            return False
    return True


def _there(table: Table) -> str:
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


# --- rows -------------------------------------------------------------------------------------------------------------


def _configurations(table: Table, parameters: Mapping[str, str], said: Collection[str]) -> list[tuple[Value, ...]]:
    """The values of each row; what one lacks of what the user calls a parameter is 'none'."""
    rows = list(zip(*(table.columns[column] for column in parameters.values()), strict=True))
    for number, cells in enumerate(rows, 1):
        name = next((n for n, cell in zip(parameters, cells, strict=True) if cell is None and n not in said), None)
        if name is not None:
            what = f"row {number} has no value of '{name[:60]}'"
            raise InputError(what, str(table.path), "correct or remove the row")
    return [tuple(_NONE if cell is None else cell for cell in cells) for cells in rows]


def _repeats(configurations: Sequence[tuple[Value, ...]]) -> list[int] | None:
    """The number of each row among those of its configuration; None if no configuration comes twice."""
    seen, counts = Counter[tuple[Value, ...]](), list[int]()
    for configuration in configurations:
        seen[configuration] += 1
        counts.append(seen[configuration])
    return counts if max(counts, default=1) > 1 else None


def _per_joule(rate: str) -> str:
    """The name of the work per joule of a speed."""
    work = rate.removesuffix("/s").removesuffix("_per_s")
    return f"{rate}/W" if work == rate else f"{work}/J"


def _add_known(
    values: dict[str, float], ours: Mapping[str, tuple[str, float]], rates: Mapping[str, str], checked: bool
) -> bool:
    """Time, energy and power in s, J and W, and work per joule of each rate.

    Returns whether the row's power contradicts its own energy and time, which those of the table do not (`checked`).
    """
    for name, (theirs, scale) in ours.items():
        if theirs in values:
            values.setdefault(name, values[theirs] * scale)
    time_s, energy_j, power_w = (values.get(name, math.nan) for name in ("time_s", "energy_j", "power_w"))
    known = energy_j > 0 and time_s > 0
    contradicted = checked and known and abs(energy_j / time_s - power_w) > _CONTRADICTED * power_w
    if math.isnan(energy_j) and not math.isnan(power_w * time_s):
        values["energy_j"] = energy_j = power_w * time_s
    if (math.isnan(power_w) or contradicted) and energy_j > 0 and time_s > 0:
        values["power_w"] = power_w = energy_j / time_s
    per_work = values.get("energy_per_work_j", math.nan)
    if per_work > 0:
        values["work/J"] = 1.0 / per_work
    for rate, efficiency in rates.items() if power_w > 0 else ():
        if rate in values:
            values.setdefault(efficiency, values[rate] / power_w)
    return contradicted
