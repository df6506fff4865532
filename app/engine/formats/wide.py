"""Tables that are wide: clocks, implementations or settings across, a value in each cell, as rows of measurements."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np

from ...base.errors import InputError
from ...base.text import json_or_none
from ...base.vocabulary import PATTERNS, UNITS, WORDS
from .columns import Columns
from .entries import as_number
from .headings import MEANS, STATISTICS, TIME_WORDS, Floats, Role, by_itself, is_geometric, over, words_of
from .sheet import SAME_TIME, is_sum

_CLOCK_HEADING = re.compile(r"(?P<what>.*?)[ _@-]*(?P<clock>\d+(\.\d+)?) ?(?P<unit>mhz|ghz)?", re.IGNORECASE)
_LIMIT = re.compile(r"\d{2,4} ?W", re.IGNORECASE)
_CLOCKS_MHZ = (100.0, 10_000.0)  # of a heading that is a clock
_LEAST_CLOCKS = 4
_TOLD = (Role.TIME, Role.THROUGHPUT, Role.ENERGY, Role.WORK_ENERGY, Role.EFFICIENCY)  # a power alone answers nothing
_NO_NAME = frozenset[str]().union(*(WORDS[kind] for kind in WORDS.keys() - {"implementation", "memory"}))
_MODEL = re.compile(r"([ _-]?\d{3,4}[a-z]*)?([ _-](ti|super|sxm\d?|pcie|laptop|\d+ ?gb)(?![a-z]))*", re.IGNORECASE)
_VALUE = "value ("  # and its unit
_AT_NUMBER = re.compile(r"(\D*?)[ _@-]+(?!9[059](?!\d))(\d+(?:\.\d+)?)(?![\d.a-zA-Z])(\D*)")  # and no percentile
_UNIT = re.compile(r"\s*[\[(]([^\[\]()]+)[\])]\s*$")


def arranged(columns: Columns, name: str) -> Columns:
    """Arrange a table with a row for each measurement, where it is clear what its cells are.

    Parameters
    ----------
    columns : Columns
        The table.
    name : str
        Of the file, without its ending: it names what is in the cells where no heading does.

    Returns
    -------
    Columns
        The table itself where it is not wide, or nothing says what its cells are.
    """
    first, *others = columns.cells
    if wide_headings(columns):
        long = transposed(columns, {}, name)
        return long if _tells(long) else columns
    if others and all(re.fullmatch(r"\d+(\.\d+)?", each) for each in others):
        return _turned(columns, first, others)
    if len(others) > 1 and all(map(_LIMIT.fullmatch, others)):  # '150W'
        numbers = [each.rstrip(" Ww") for each in others]
        cells = dict(zip((first, *numbers), columns.cells.values(), strict=True))
        turned = _turned(Columns(columns.where, cells, columns.first_line), first, numbers)
        return replace(turned, cells={"power limit (W)" if n == "column" else n: c for n, c in turned.cells.items()})
    arranged = _by_implementation(columns, name)
    kinds = columns.by_kind()
    if arranged is columns and all(_is_unknown(each, kinds[each]) for each in others):
        return _settings_across(columns, first, others)
    return arranged


def _is_unknown(heading: str, values: Floats | Sequence[str]) -> bool:
    column = by_itself(heading, values)
    fractions = isinstance(values, np.ndarray) and (values[np.isfinite(values)] % 1).any()
    return bool(fractions) and column.role in (Role.FIGURE, Role.PARAMETER) and not column.why


def _tells(columns: Columns) -> bool:
    """Tell whether a column says by itself how the work went."""
    return any(isinstance(values, np.ndarray) and _is_told(name, values) for name, values in columns.by_kind().items())


def _is_told(heading: str, values: Floats) -> bool:
    return by_itself(heading, values).role in _TOLD


def _turned(columns: Columns, first: str, others: list[str]) -> Columns:
    """Metrics down and a setting across; the table itself where no name of a row is one of a metric."""
    names = columns.cells[first]
    rows = {name: [columns.cells[each][place] for each in others] for place, name in enumerate(names)}
    turned = Columns(columns.where, {"column": others, **rows}, columns.first_line)
    numeric = all(map(turned.is_numeric, rows))
    if not numeric or len(rows) < len(names) or not _tells(turned):
        return _settings_across(columns, first, others)
    return turned


def _settings_across(columns: Columns, first: str, others: list[str]) -> Columns:
    """Arrange settings across, of which nothing says what is in the cells, as a row for each cell."""
    nameless = others[:1] == ["column 2"]  # without headings, of which each may be another quantity
    if nameless or len(others) < _LEAST_CLOCKS or not all(map(columns.is_numeric, others)) or columns.is_numeric(first):
        return columns
    names = [name for name in columns.cells[first] for _ in others]
    values = [cell for row in zip(*map(columns.cells.__getitem__, others), strict=True) for cell in row]
    cells = {first: names, "column": others * len(columns), "value": values}
    return Columns(columns.where, cells, columns.first_line)


def _by_implementation(columns: Columns, name: str) -> Columns:
    """Figures of several implementations side by side, 'cuBLAS, Triton' or 'cublas_ms, mine_ms', as a row of each."""
    stems, across = _side_by_side(columns, name)
    taken = {heading for each in across.values() for heading in each.values()}
    long = {heading: [*cells] * len(stems) for heading, cells in columns.cells.items() if heading not in taken}
    beside = {by_itself(heading, np.ones(2)).role for heading in long}  # may be of all of them together
    if not across or not long or (any(map(PATTERNS["not_named"].search, stems)) and beside & {*_TOLD, Role.POWER}):
        return columns
    kind = "board" if all(map(PATTERNS["boards"].search, stems)) else "implementation"
    kind = "column" if all(re.fullmatch(r"[\d.]+", stem) for stem in stems) else kind
    long[kind] = [stem for stem in stems for _ in range(len(columns))]
    for end, each in across.items():
        cells = [cell for stem in stems for cell in columns.cells.get(each.get(stem, ""), [""] * len(columns))]
        long[end] = ["" if cell.startswith("-") or not as_number(json_or_none(cell)) else cell for cell in cells]
    return Columns(columns.where, long, columns.first_line)


def _side_by_side(columns: Columns, name: str) -> tuple[list[str], dict[str, dict[str, str]]]:
    """Implementations, and by what is in the cells of each its heading; empty where two names may be two quantities."""
    kinds = columns.by_kind()
    ends = _at_numbers(columns) or _that_answer(_at_names(kinds, name))
    sets = [tuple(each) for each in ends.values() if not all(map(PATTERNS["activity"].search, each))]
    compared = [tuple(each) for each in ends.values() if _are_compared([*each.values()], kinds)]
    named = [each for each in sets if any(map(_is_named, each)) or sets.count(each) > 1 or each in compared]
    stems = max(named, key=len, default=())
    across = {end: each for end, each in ends.items() if len(each) > 1 and each.keys() <= {*stems}}
    alone = {*across} <= {name} or any(end.startswith(_VALUE) for end in across)
    of_one = {end: each for end, each in ends.items() if len(each) == 1 and each.keys() <= {*stems}}  # others lack it
    known = across and (alone or len(across) > 1 or sum(map(_is_named, stems)) > 1 or stems in compared)
    return [*stems], {**across, **of_one} if known else {}


def _are_compared(headings: Sequence[str], kinds: Mapping[str, Floats | Sequence[str]]) -> bool:
    """Tell whether a column holds how many times as fast one is as another, and none is the sum of all."""
    numbers = {heading: values for heading, values in kinds.items() if isinstance(values, np.ndarray)}
    beside = [values for heading, values in numbers.items() if WORDS["relative"] & {*words_of(heading)}]
    times = [numbers[heading] for heading in headings]
    ratios = (over(one, other) for one, other in permutations(times, 2) if beside)
    found = any(np.allclose(ratio, each, SAME_TIME, 0, equal_nan=True) for ratio in ratios for each in beside)
    return found and not any(is_sum(values, times) for values in numbers.values())


def _at_numbers(columns: Columns) -> dict[str, dict[str, str]]:
    """By what is in the cells the heading at each number, 'time_1024, time_2048'; empty where these may count runs."""
    ends: dict[str, dict[str, str]] = {}
    for heading in filter(columns.is_numeric, columns.cells):
        found = _AT_NUMBER.fullmatch(heading)
        if found and not _is_named(heading) and _is_told(left := found[1] + found[3], np.ones(2)):
            ends.setdefault(left, {})[found[2]] = heading
    numbers = sorted({float(number) for each in ends.values() for number in each})
    counted = numbers in ([*range(len(numbers))], [*range(1, len(numbers) + 1)])
    return ends if len({*map(frozenset, ends.values())}) == 1 < len(numbers) and not counted else {}


def _at_names(kinds: Mapping[str, Floats | Sequence[str]], name: str) -> dict[str, dict[str, str]]:
    """By what is in the cells the heading of each name, 'torch_ms, triton_ms'."""
    ends: dict[str, dict[str, str]] = {}
    for heading, values in kinds.items():
        stem, end = _parted(heading, values, name) if isinstance(values, np.ndarray) else ("", "")
        end = "power (W)" if end == "W" else end  # which may be a width
        if stem and by_itself(end, np.ones(2)).role in (*_TOLD, Role.POWER):
            ends.setdefault(end, {})[stem] = heading
    return ends


def _that_answer(ends: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Leave out powers without a time or rate of each of the same, as those of several meters are."""
    speeds = [{*each} for end, each in ends.items() if by_itself(end, np.ones(2)).role in _TOLD[:2]]
    return {end: each for end, each in ends.items() if _is_told(end, np.ones(2)) or {*each} in speeds}


def _is_named(stem: str) -> bool:
    named = any(PATTERNS[kind].search(stem) for kind in ("boards", "not_named"))
    whole = any(PATTERNS[kind].fullmatch(stem) for kind in ("number_format", "version"))
    return named or whole or bool(WORDS["implementation"] & {*words_of(stem)})


def _board_in(heading: str) -> tuple[str, str]:
    """The board that a heading names, or 'CPU' or 'GPU' where one of a time does, '' for none; and what is left."""
    if (found := PATTERNS["boards"].search(heading) or PATTERNS["side"].search(heading)) is None:
        return "", heading
    model = _MODEL.match(heading, found.end())
    end = model.end() if model else found.end()
    left = re.sub(r"[(\[]\s*[)\]]", " ", f"{heading[: found.start()]} {heading[end:]}")
    words = {*words_of(left)} - UNITS.keys() - TIME_WORDS - MEANS - WORDS["whole_run"]
    return "" if words and found.re is PATTERNS["side"] else heading[found.start() : end], " ".join(
        left.strip(" _-.").split()
    )


def _parted(heading: str, values: Floats, name: str) -> tuple[str, str]:
    """What a heading may name, and what its cells are: by its unit, its end, or the name of the file; else '' twice."""
    unit, plain = _UNIT.search(heading), _UNIT.sub("", heading)
    board, left = _board_in(heading)
    if board and _is_told(left, values):
        return board, left
    if not _NO_NAME & {*words_of(plain)} and by_itself(plain, values).role in (Role.FIGURE, Role.PARAMETER):
        return plain, f"{_VALUE}{unit[1]})" if unit else name
    stem, _, end = heading.rpartition("_") if "_" in heading else heading.partition(" ")
    stem = re.sub("(?i)_(time|energy|power|latency)$", "", stem)
    words = {*words_of(stem)}
    named = (
        words - _NO_NAME
        or words <= WORDS["chosen_in_texts"] - WORDS["overhead"] | {"baseline"}
        or PATTERNS["number_format"].fullmatch(stem)
    )
    return (stem, end) if named and not words & STATISTICS else ("", "")


def wide_headings(columns: Columns) -> Mapping[str, tuple[str, float]]:
    """The headings of a wide table that are clocks: '757', '757 MHz', 'power_757'.

    Most columns must be such, in ascending or descending order of the clock.

    Parameters
    ----------
    columns : Columns
        The table.

    Returns
    -------
    mapping of (str, float)
        What is measured and at which clock in MHz, by heading; empty if the table is not wide.
    """
    headings: dict[str, tuple[str, float]] = {}
    for name in columns.cells:
        heading = _CLOCK_HEADING.fullmatch(name)
        if heading is None:
            continue
        clock = float(heading["clock"]) * (1e3 if (heading["unit"] or "").lower() == "ghz" else 1.0)
        if _CLOCKS_MHZ[0] <= clock <= _CLOCKS_MHZ[1]:
            headings[name] = (heading["what"].strip(" _-@"), clock)
    by_quantity: dict[str, list[float]] = {}
    for what, clock in headings.values():
        by_quantity.setdefault(what, []).append(clock)
    orders = [clocks in (sorted(set(clocks)), sorted(set(clocks), reverse=True)) for clocks in by_quantity.values()]
    # powers of two are sizes
    enough = all(len(each) >= _LEAST_CLOCKS and not is_geometric(np.unique(each)) for each in by_quantity.values())
    return headings if enough and all(orders) and 2 * len(headings) > len(columns.cells) else {}


def transposed(columns: Columns, tables: Mapping[str, Columns], unnamed: str = "power_w") -> Columns:
    """Turn a wide table into one with one row per application and clock.

    Parameters
    ----------
    columns : Columns
        The wide table.
    tables : mapping of Columns
        Further wide tables by what they hold (rate, time_s); their rows are found by their labels.
    unnamed : str, optional
        What cells are whose heading is a clock alone.

    Returns
    -------
    Columns
        The labels, `clock_mhz`, and what was measured; a cell that another table does not hold is empty.

    Raises
    ------
    InputError
        If a table is not wide, a cell is no number, or another table has no row and clock in common.
    """
    labels, rows = _long_rows(columns, unnamed)
    others = {name: _long_rows(table, name)[1] for name, table in tables.items()}
    wanted = list(dict.fromkeys(figure for figures in rows.values() for figure in figures)) + list(others)
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
