"""A table with what several of its columns say together, and without the rows and cells that are no measurements."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from ...base.formatting import counted
from ...base.vocabulary import HEADINGS, PATTERNS, WORDS
from .cells import Cell, Table, are, left_out_below, sums_up
from .entries import as_number
from .figures import COUNTABLE, COUNTED_ALIKE, TOKENS
from .headings import COUNTED, EACH_ITS_OWN, NUMBERED, SET, SETTING_OF, Column, Floats, Role, by_itself, over, words_of
from .roles import MORE_OF_WORK, roles_of
from .sheet import FEWEST, SAME_TIME, main_column
from .table_columns import (
    APART,
    CHOSEN_KERNEL,
    KERNELS,
    TableColumns,
    column_roles,
    joined,
    numbers_of,
    questions,
    varies,
)

_ENDS: Final = (("start", "end"), ("begin", "end"), ("before", "after"), ("initial", "final"))
_NUMBER_IN_TEXT: Final = re.compile(r"\d+(?:\.\d+)?")
_BOARD_NUMBER: Final = re.compile(r"(gpu|device|rank)[ _]?\d{1,2}(?![0-9])", re.IGNORECASE)
_SAME_OPERATIONS: Final = 0.02  # share, within which products of rounded figures are the same
_RISES: Final = 0.8  # correlation of the times of batches with their sizes
_FEW: Final = 0.05  # share of rows
_PLACEHOLDER: Final = 100  # ratio to the next largest


def prepared(table: Table, columns: TableColumns | None = None) -> Table:
    """The table with what several columns say together in one: the energy of all boards, the name of what ran."""
    roles = TableColumns() if columns is None else columns.roles_in(table)
    table = _without_summaries(_with_differences(_with_limits_in_watts(table, roles), roles))
    table = _without_parts_of_runs(_without_nameless(table, roles), roles)
    table = _of_all_boards(_with_totals(_without_warm_up(table), roles), roles)
    table = _with_whole_rate(_without_placeholders(table, roles), roles)
    chosen = None if columns is None or columns.parameters is None else set(columns.parameters.values())
    asked_for = chosen is not None and bool(chosen & KERNELS and not chosen & KERNELS & table.columns.keys())
    table = _with_one_kernel(table, roles) if chosen is None or asked_for else table
    if chosen is not None or not _is_one_run(table, found := column_roles(table, roles)):
        return table
    left = {c.heading: table.columns[c.heading] for c in found if len(table) == 1 or c.why != EACH_ITS_OWN}
    return table.having({"run": [table.path.stem] * len(table), **left})


def _is_one_run(table: Table, found: Sequence[Column]) -> bool:
    """Tell whether a table is of one run, named as its file: one row, or single requests, and nothing that was set."""
    if len(table) == 1 or any(column.role in SET for column in found):
        return not any(column.role in SET for column in found)
    named = any(column.role in (*APART, Role.REPEAT) and varies(table, column.heading) for column in found)
    named |= any(column.why == EACH_ITS_OWN and not column.words & WORDS["asked"] for column in found)
    numbered = any(column.why == NUMBERED for column in found)
    return not named and any(c.role is Role.LATENCY or (numbered and c.role is Role.ENERGY) for c in found)


def _with_limits_in_watts(table: Table, said: TableColumns) -> Table:
    """The table with power limits in W, where its own are in mW, as NVML has them."""
    cells: dict[str, Sequence[Cell]] = dict(table.columns)
    ours = SETTING_OF[Role.POWER_LIMIT]
    named = any({*words_of(name)} & WORDS["limit"] for name in cells)
    limit = main_column(column_roles(table, said), Role.POWER_LIMIT) if named else None
    if limit is None or limit.scale == 1.0 or ours in cells or limit.heading in said.roles:
        return table
    scaled = [None if cell is None else as_number(cell) * limit.scale for cell in cells[limit.heading]]
    there = {ours if n == limit.heading else n: scaled if n == limit.heading else c for n, c in cells.items()}
    assumed = f"'{limit.heading}' names no unit; its numbers are read as mW"
    return table.having(there, *((assumed,) if limit.scale_is_guessed else ()))


def _with_differences(table: Table, said: TableColumns) -> Table:
    """The table with the energy or time between a beginning and an end, where it holds these alone."""
    numeric = [name for name in table.columns if table.is_numeric(name) and name not in said.roles]
    by_words = {tuple(words_of(name)): name for name in numeric}
    for words, begun in by_words.items():
        for first, last in filter(lambda ends: ends[0] in words, _ENDS):
            ended = by_words.get(tuple(last if word == first else word for word in words), "")
            whole = re.sub(rf"[_ .]?{first}(?=[_ .]|$)|{first}[_ .]", "", begun, flags=re.IGNORECASE)
            role = by_itself(whole, np.ones(2)).role
            others = [c for c in column_roles(table, said) if c.role is role and c.heading not in (begun, ended)]
            if not ended or others or whole in table.columns or role not in (Role.ENERGY, Role.TIME):
                continue
            pairs = zip(map(as_number, table.columns[ended]), map(as_number, table.columns[begun]), strict=True)
            between = [end - start for end, start in pairs]
            if min(between) >= 0 < max(between):
                left = {name: cells for name, cells in table.columns.items() if name not in (begun, ended)}
                return table.having({**left, whole: between}, f"'{whole}' is '{ended}' less '{begun}'")
    return table


def _of_all_boards(table: Table, said: TableColumns) -> Table:
    """The table with powers, energies and rates of all boards, where it has those of one and the number of boards."""
    in_parallel = PATTERNS["in_parallel"].fullmatch
    named = [name for name in table.columns if PATTERNS["number_of_boards"].fullmatch(name) and table.is_numeric(name)]
    named.sort(key=lambda name: in_parallel(name) is not None)  # of which there may be replicas
    named.sort(key=lambda name: not varies(table, name))
    if {"pp", "dp"} & {name.lower() for name in table.columns}:  # then fewer boards than these times one another
        named = [name for name in named if not in_parallel(name)]
    cells, notes = dict(table.columns), list[str]()
    for name, of in [
        (n, f[1].lower()) for n in cells if n not in said.roles and (f := PATTERNS["of_one_board"].search(n))
    ]:
        count = next((each for each in named if ("node" in each.lower()) == (of == "node")), "")
        whole = PATTERNS["of_one_board"].sub("", name).strip(" _")
        if count and whole not in cells and table.is_numeric(name):
            times = zip(map(as_number, cells[name]), map(as_number, cells[count]), strict=True)
            products: list[Cell] = [None if math.isnan(one * n) else one * n for one, n in times]
            cells = {whole if n == name else n: products if n == name else column for n, column in cells.items()}
            notes.append(f"'{name}' is of one board: it is taken times '{count}'")
    return table.having(cells, *notes)


def _with_totals(table: Table, said: TableColumns) -> Table:
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


def _without_warm_up(table: Table) -> Table:
    """The table without rows that some column calls 'warmup', or one of states something like it."""
    warm = {
        row
        for name, column in table.columns.items()
        for row, cell in enumerate(column)
        if (cell is True and PATTERNS["warm_up"].search(name))
        or (isinstance(cell, str) and PATTERNS["warm_up"].fullmatch(cell))
        or (isinstance(cell, str) and name.lower() in HEADINGS["state"] and "warm" in cell.lower())
    }
    what = f"{counted(len(warm), 'row')} {are(len(warm))} of warming up or of an idle board"
    left_out = f"{what}, and {are(len(warm))} left out"
    return table.of_rows(set(range(len(table))) - warm, left_out) if 0 < len(warm) < len(table) else table


def _without_summaries(table: Table) -> Table:
    """The table without a few rows at its end that sum up the others: 'mean', 'std', 'Total'."""
    end = len(table)
    while end and any(_is_summary(table, cells, end - 1) for cells in table.columns.values()):
        end -= 1
    return table.of_rows(range(end), left_out_below(len(table) - end)) if 0 < len(table) - end < end else table


def _is_summary(table: Table, cells: Sequence[Cell], row: int) -> bool:
    """Tell whether a row is called 'mean' or the like, and none above it: else these are choices.

    One that is called 'best' or 'min' may be a choice, too, unless each of its figures stands above it.
    """
    cell = cells[row]
    if not isinstance(cell, str) or cell in cells[:row]:
        return False
    figures = [column for column in table.columns.values() if isinstance(column[row], float)]
    again = bool(figures) and all(column[row] in column[:row] for column in figures)
    return sums_up(cell, with_extremes=again)


def _without_nameless(table: Table, said: TableColumns) -> Table:
    """The table without the few rows that do not say what ran, where all others do."""
    names = [table.columns[c.heading] for c in column_roles(table, said) if c.role in (Role.KERNEL, Role.WORK)]
    empty = {
        row for cells in names for row, cell in enumerate(cells) if cell is None and len(table) > cells.count(None)
    }
    if not 0 < len(empty) < _FEW * len(table):
        return table
    return table.of_rows(set(range(len(table))) - empty, f"{len(empty)} rows do not say what ran and are left out")


def _without_parts_of_runs(table: Table, said: TableColumns) -> Table:
    """The table with the last row of each run, where time and energy of a run grow from row to row."""
    runs = _rows_of_runs(table)
    found = column_roles(table, said) if runs else ()
    time, energies = main_column(found, Role.TIME), [column for column in found if column.role is Role.ENERGY]
    several = [rows for rows in runs.values() if len(rows) > 1]
    if not several or time is None or not energies:
        return table
    taken, *drawn = (numbers_of(table, column) for column in (time, *energies))
    grow = all((np.diff(taken[rows]) > 0).all() for rows in several)
    if not grow or not any(all((np.diff(each[rows]) >= 0).all() for rows in several) for each in drawn):
        return table
    left_out = len(table) - len(runs)
    note = f"{left_out} rows are of runs that went on, with their sums so far: the last counts"
    return table.of_rows((rows[-1] for rows in runs.values()), note)


def _rows_of_runs(table: Table) -> dict[Cell, list[int]]:
    """The rows of each run by its number, or of one run whose epochs or steps are counted; else empty."""
    by_words = {tuple(words_of(name)): list(cells) for name, cells in table.columns.items()}
    steps = (by_words.get((word,)) for word in ("epoch", "step", "iteration"))
    in_order = any(each in ([*range(len(table))], [*range(1, len(table) + 1)]) for each in steps)
    runs: dict[Cell, list[int]] = {}
    for row, run in enumerate(by_words.get(("run", "id"), [None] * len(table) * in_order)):
        runs.setdefault(run, []).append(row)
    return runs


def _without_placeholders(table: Table, said: TableColumns) -> Table:
    """The table without rates of a power of ten that come again, and are far above all others."""
    cells, notes = dict(table.columns), list[str]()
    for column in (column for column in column_roles(table, said) if column.role is Role.THROUGHPUT):
        name, values = column.heading, numbers_of(table, column)
        top = float(np.nanmax(values, initial=0))
        count, others = int((values == top).sum()), float(np.max(values, where=values < top, initial=0))
        if count > 1 and top >= _PLACEHOLDER * max(others, 1) and math.log10(top).is_integer():
            cells[name] = [None if as_number(cell) == top else cell for cell in cells[name]]
            notes.append(f"{count} cells of {name} are {top:.0e}, far above all others: they are not read")
    return table.having(cells, *notes)


def _with_whole_rate(table: Table, said: TableColumns) -> Table:
    """The table with the rate of all that was counted, where it holds none, or another one: what each request saw."""
    found = column_roles(table, said)
    time, rates = main_column(found, Role.TIME), [column for column in found if column.role is Role.THROUGHPUT]
    counted_there = [c for c in found if c.why == COUNTED and c.words & COUNTABLE]
    counts = [c for c in counted_there if c.words & TOKENS and c.words & WORDS["all_of_it"]]
    wrong = " ".join(column.contradicted for column in rates)
    count = next((c for c in counts if not rates or f"not '{c.heading}' over" in wrong), None)
    if time is None or time.candidates:
        return table
    taken = numbers_of(table, time)
    if not rates and count is None:
        count = next(_done_there(table, found, counted_there, taken), None)
    if count is None:
        return table
    whole = over(numbers_of(table, count), taken)
    cells: list[Cell] = [value if math.isfinite(value) else None for value in whole.tolist()]
    note = f"'{count.heading}/s' is '{count.heading}' over '{time.heading}'"
    return table.having({**table.columns, f"{count.heading}/s": cells}, note)


def _done_there(table: Table, found: Sequence[Column], counts: Sequence[Column], taken: Floats) -> Iterator[Column]:
    """Yield the counts of what was done that differ from run to run, then the sizes of batches."""
    alike = float(np.ptp(taken)) < SAME_TIME * float(np.mean(taken))
    least = 1.0 if alike else COUNTED_ALIKE
    yield from (each for each in counts if _is_other_work(numbers_of(table, each), least))
    groups = joined(table, [each for each in found if each.role in APART]) or [""] * len(table)
    yield from (each for each in found if _is_of_each_batch(each, table, taken, groups))


def _is_of_each_batch(column: Column, table: Table, taken: Floats, groups: Sequence[str]) -> bool:
    """Tell whether times are of batches of these sizes: a larger batch, which takes no longer for a whole run, does.

    Of several groups it does in each.
    """
    batches = column.words & {"batch", "bs"} and column.words <= {"batch", "bs", "size"}
    if not batches or column.role not in SET or not varies(table, column.heading):
        return False
    order, sizes = np.argsort(numbers_of(table, column), kind="stable"), numbers_of(table, column)
    places, which = np.unique(groups, return_inverse=True)
    of_each = (order[which[order] == place] for place in range(len(places)))
    return all(
        len(rows) >= FEWEST
        and bool(np.corrcoef(sizes[rows], taken[rows])[0, 1] > _RISES)
        and bool(taken[rows[-1]] > taken[rows[0]])
        for rows in of_each
    )


def _is_other_work(amounts: Floats, least: float) -> bool:
    known = amounts[amounts > 0]
    return len(known) > 1 and float(known.max()) > least * float(known.min())


def _setting_in_name(name: str, column: Sequence[Cell]) -> tuple[str, Sequence[Cell]] | None:
    """Names that differ in a number alone, where their words say that it is a setting: 'limit_250'."""
    texts = [cell for cell in column if isinstance(cell, str)]
    stems = {_NUMBER_IN_TEXT.sub("", text) for text in texts}
    numbers = [float(found[0]) for text in texts if len(found := _NUMBER_IN_TEXT.findall(text)) == 1]
    if len(stems) != 1 or len(numbers) != len(column):
        return None
    heading = f"{name} {stems.pop().strip('_- ')}"
    return (heading, numbers) if roles_of({heading: np.array(numbers)})[0].role in SETTING_OF else None


def _with_one_kernel(table: Table, said: TableColumns) -> Table:
    """The table with one column of what must not be compared: boards, kernels, and how much they worked on."""
    apart, asked = _kept_apart(table, said)
    found = [column.heading for column in apart]
    if not found:
        kernels = (c.heading for c in column_roles(table, said) if c.role is Role.KERNEL)  # that all do the same
        alike = [name for name in kernels if varies(table, name) and name not in said.roles]
        return replace(table, roles={**table.roles, **dict.fromkeys(alike, Role.PARAMETER)}) if alike else table
    if len(found) == 1 and _is_one(table, apart[0]):
        return table
    left = {CHOSEN_KERNEL if n == "kernel" else n: cells for n, cells in table.columns.items() if n not in found}
    what = f"kernel stands for {', '.join(found)}: their rows are not compared"
    table = table.having({"kernel": joined(table, apart), **left}, what, *questions(apart), *questions(asked))
    return replace(table, roles={**table.roles, **dict.fromkeys(left.keys() & {CHOSEN_KERNEL}, Role.PARAMETER)})


def _is_one(table: Table, column: Column) -> bool:
    """Tell whether a column by itself is one of kernels, or its rows can only be compared: each is another."""
    kernel = column.role is Role.KERNEL and (column.heading.lower() in KERNELS or bool(column.candidates))
    return kernel or (column.role is not Role.WORK and len(set(joined(table, [column]))) == len(table))


def _kept_apart(table: Table, said: TableColumns) -> tuple[list[Column], list[Column]]:
    """The columns of what must not be compared, and others that may be such columns as well."""
    apart = [c for c in column_roles(table, said) if c.role in APART and varies(table, c.heading)]
    works = [column for column in apart if column.role is Role.WORK]
    by_name = HEADINGS["worked_on_by"]
    works = works or [c for c in apart if c.heading.lower() in by_name or c.why == MORE_OF_WORK]
    each_another = len(set(joined(table, apart))) == len(table)
    if works and len(works) < len(apart) and each_another:  # compared is the same amount
        return works, _asked((c for c in apart if c.words & WORDS["model"]), works)  # which some choose from
    others = [column for column in apart if column.role is not Role.KERNEL]
    if _are_same_operations(table, others, said):
        return others, _asked(apart, others)
    if len(apart) > 1 and not works and each_another:  # what may be compared, a reader of their names knows
        return [replace(column, candidates=(Role.KERNEL, Role.PARAMETER)) for column in apart], []
    return apart, []


def _asked(apart: Iterable[Column], left: Sequence[Column]) -> list[Column]:
    """The columns but for some, as a question whether their rows can be compared; of kernels a note says it."""
    asked = (column for column in apart if column not in left and column.heading.lower() not in KERNELS)
    return [replace(column, candidates=(Role.PARAMETER, Role.KERNEL)) for column in asked]


def _are_same_operations(table: Table, others: Sequence[Column], said: TableColumns) -> bool:
    """Tell whether all kernels do as many operations, by their rate and time, where these columns are the same."""
    found = column_roles(table, said)
    rate, time = (main_column(found, role) for role in (Role.THROUGHPUT, Role.TIME))
    if rate is None or time is None or not PATTERNS["operations"].search(rate.heading.lower()):
        return False
    work, groups = (
        numbers_of(table, rate) * numbers_of(table, time),
        np.array(joined(table, others) or [""] * len(table)),
    )
    amounts = (work[(groups == group) & (work > 0)] for group in np.unique(groups))
    alike = all(len(each) > 1 and float(np.ptp(each)) < _SAME_OPERATIONS * float(each.max()) for each in amounts)
    return alike and not (work == 0).any()  # which does something else
