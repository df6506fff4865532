"""What the columns of a table are beside each other: what was set, what was seen, and the physics between them.

What contradicts a role is kept beside it, and a column that may be one of two things is asked about. Everything that
reads a table of another tool takes its roles from here.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, product
from typing import Final

import numpy as np

from ...base.vocabulary import HEADINGS, PATTERNS, REQUESTED, UNITS, WORDS
from ..results.description import Listing
from .headings import (
    BASE_UNIT,
    BOARDS_THERE,
    CHOICE,
    CHOSEN_THERE,
    COME_AGAIN,
    COUNTED,
    EACH_ITS_OWN,
    EXTREME,
    MEANS,
    MEASURED,
    OF_REPEATS,
    RAN_THERE,
    SET,
    SOMEONE_CHOSE,
    STATISTICS,
    TIME_WORDS,
    WORKED_ON,
    Cells,
    Column,
    Role,
    by_itself,
    is_geometric,
    words_of,
)

NAMED: Final = "as named"
NONE_IN_SOME: Final = "a choice by its name, which some rows do not have"
_UNIT_OF: Final = {
    **{Role(quantity): unit for quantity, unit in BASE_UNIT.items() if quantity != "clock"},
    **dict.fromkeys((Role.GRAPHICS_CLOCK, Role.MEMORY_CLOCK, Role.OBSERVED_CLOCK, Role.CLOCK_OFFSET), "MHz"),
} | {Role.LATENCY: "s", Role.POWER_LIMIT: "W"}
_RATIOS: Final = (Role.ENERGY, Role.FIGURE, Role.EFFICIENCY, Role.WORK_ENERGY)  # that may be a speed over a power
_SCALES: Final = ((1.0, 1e-3, 1e3, 3600.0, 3.6e6), (1.0, 1e-3), (1.0, 1e-3, 1e-6))  # of energy, power and time
_FITS: Final = 0.03  # relative: a product agrees with a column
_OFF: Final = 0.10  # relative: it contradicts it
_MOST_ASKED: Final = 2  # numbers under unknown names beside choices
_KNOWN: Final = frozenset[str]().union(*(WORDS[kind] for kind in WORDS.keys() - {"implementation", "elsewhere"}))
_LARGEST_SPACE: Final = 2**62  # configurations
_MOST_TIMES: Final = 2  # of different names, beyond which it is asked which counts
_LOOKED_AT: Final = 20_000  # rows by which columns are judged
_COUNTED_FROM: Final = 1e5  # operations; a speed of so many is given in larger units
_SCATTER: Final = 1.5  # ratio of amounts that were counted
TOKENS: Final = frozenset(("token", "tokens", "tok"))
COUNTABLE: Final = TOKENS | {"request", "requests", "image", "images", "sample", "samples", "prompts"}
COUNTED_ALIKE: Final = 1.5  # largest to least amount that was counted, of which times can be compared
_PLAUSIBLE_W: Final = 5000.0  # of the boards of one machine, where a power has no unit
_LEAST_W: Final = 1e-3  # which no board draws less than
_FEWEST: Final = 3  # rows in which a relation must hold


def roles_of(cells: Mapping[str, Cells], given: Mapping[str, Role] | None = None) -> tuple[Column, ...]:
    """The role of each column of a table.

    Parameters
    ----------
    cells : mapping of array, shape (n,), or sequence of str
        The columns by heading: numbers, NaN where one is missing, or texts.
    given : mapping of Role, optional
        Roles that the user names, by heading.

    Returns
    -------
    tuple of Column
        In the table's order.
    """
    given, whole = given or {}, cells
    cells = {heading: values[:_LOOKED_AT] for heading, values in whole.items()}
    found = map(by_itself, cells, cells.values())
    columns = _latencies([_as_named(c, given[c.heading]) if c.heading in given else c for c in found], given)
    judged = {c.heading: c for each in (_clocks, _powers) for c in each(columns, cells, given)}
    columns = [judged.get(column.heading, column) for column in columns]
    columns = _changed(columns, lambda c: _are_operations(c, columns, cells, given), Role.FIGURE, COUNTED)
    columns = _changed(columns, lambda c: _is_of_repeats(c, columns, cells, given), Role.UNUSED, OF_REPEATS)
    columns = list(_parameters(_of_the_work(columns, cells, given), cells, given, whole))
    columns = _unknown_numbers(_other_amounts(_unknown_texts(columns, cells, given), cells), cells, given)
    return tuple(_by_physics(columns, cells))


def _as_named(column: Column, role: Role) -> Column:
    """With the role that the user names; its unit is to be found where the heading has none of that quantity."""
    unit = _UNIT_OF.get(role, "")
    scale = column.scale if unit == column.unit else math.nan if unit else 1.0
    return Column(column.heading, role, unit, scale, NAMED)


def listing_of(columns: Sequence[Column]) -> Listing:
    """List what each column of a table is taken for, and why, for the user to object.

    Parameters
    ----------
    columns : sequence of Column
        The table's.

    Returns
    -------
    Listing
        A row for each column that is used, and one that counts the others.
    """
    used = [column for column in columns if column.role is not Role.UNUSED]
    rows: list[Sequence[str]] = [(column.heading, column.role.value, column.unit, column.reasons) for column in used]
    unused = len(columns) - len(rows)
    rows += [(f"{unused} others", Role.UNUSED.value, "", "--roles HEADING=ROLE uses one")] if unused else []
    return Listing("", ("column", "is", "unit", "because"), rows)


# --- columns beside each other ----------------------------------------------------------------------------------------


def _clocks(columns: Sequence[Column], cells: Mapping[str, Cells], given: Mapping[str, Role]) -> Iterator[Column]:
    """The clocks that were not requested, beside one that was, one that was observed, or a power limit."""
    clocks = [c for c in columns if c.role is Role.GRAPHICS_CLOCK and c.heading not in given]
    seen = [column for column in columns if column.role is Role.OBSERVED_CLOCK]
    limits = [column for column in columns if column.role is Role.POWER_LIMIT]
    wanted = [c for c in columns if c.role is Role.GRAPHICS_CLOCK and c.heading in given] or _requested(clocks)
    for column in clocks:
        if wanted and seen and column not in wanted:
            yield replace(column, role=Role.UNUSED, why=f"beside '{seen[0].heading}', which was observed")
        elif wanted and column not in wanted:
            yield replace(column, role=Role.OBSERVED_CLOCK, why=f"beside '{wanted[0].heading}', which was requested")
        elif not seen and limits and _follows(column, limits, cells):
            yield replace(column, role=Role.OBSERVED_CLOCK, why=f"follows '{limits[0].heading}': it was observed")
        elif not wanted and column is not clocks[0]:
            yield replace(column, role=Role.UNUSED, why=f"beside '{clocks[0].heading}'")


def _requested(clocks: Sequence[Column]) -> list[Column]:
    """The clocks that say that they were asked for, the plainest word first."""
    found = [column for column in clocks if column.words & set(REQUESTED)]
    return sorted(found, key=lambda c: min(REQUESTED.index(word) for word in c.words if word in REQUESTED))


def _powers(columns: Sequence[Column], cells: Mapping[str, Cells], given: Mapping[str, Role]) -> Iterator[Column]:
    """The powers in even steps: limits beside a power that was measured, else in doubt."""
    powers = [column for column in columns if column.role is Role.POWER and column.heading not in given]
    if any(column.role is Role.POWER_LIMIT for column in columns):
        return
    clocked = any(column.role in (Role.GRAPHICS_CLOCK, Role.OBSERVED_CLOCK) for column in columns)
    stepped = [column for column in powers if _is_stepped(cells[column.heading])]
    for column in stepped:
        if len(stepped) < len(powers):
            yield replace(column, role=Role.POWER_LIMIT, why="even steps, beside a power that was measured")
        elif not clocked:
            both = (Role.POWER, Role.POWER_LIMIT)
            yield replace(column, why="a power in even steps, as limits are", candidates=both)


def _changed(columns: Sequence[Column], holds: Callable[[Column], object], role: Role, why: str = "") -> list[Column]:
    """The columns, with this role for those of which something holds."""
    return [replace(c, role=role, why=why or c.why) if holds(c) else c for c in columns]


def _are_operations(
    column: Column, columns: Sequence[Column], cells: Mapping[str, Cells], given: Mapping[str, Role]
) -> bool:
    """Tell whether FLOPs are how many a model or a layer takes, and not how many were done in a second."""
    if column.role is not Role.THROUGHPUT or column.heading in given or not column.words <= HEADINGS["operations"]:
        return False
    values = np.asarray(cells[column.heading], np.float64)
    plain = column.words <= {"flops", "flop", "macs"} and bool((values % 1 == 0).all())
    many = plain and float(values.min(initial=math.inf)) > _COUNTED_FROM
    return many or any(each.words & {"param", "params", "parameters"} for each in columns)


def _is_of_repeats(
    column: Column, columns: Sequence[Column], cells: Mapping[str, Cells], given: Mapping[str, Role]
) -> bool:
    """Tell whether 'block' numbers blocks of repeats: no size of a block is 0."""
    repeats = any(each.role is Role.REPEAT for each in columns)
    return repeats and column.heading.lower() == "block" not in given and 0.0 in cells[column.heading]


def _latencies(columns: Sequence[Column], given: Mapping[str, Role]) -> list[Column]:
    """Where nothing is served, a latency is the time of the work."""
    timed = any(column.role is Role.TIME for column in columns)
    served = any(column.words & WORDS["service"] for column in columns)
    found = {c.heading for c in columns if not timed and c.role is Role.LATENCY and (not served or "total" in c.words)}
    return _changed(columns, lambda c: c.heading in found - given.keys(), Role.TIME)


def _of_the_work(columns: Sequence[Column], cells: Mapping[str, Cells], given: Mapping[str, Role]) -> list[Column]:
    """How much was worked on tells rows apart that must not be compared; in a single size it is a constant."""
    tokens = any(c.role is Role.THROUGHPUT and c.words & {"tok", "token", "tokens", "tps"} for c in columns)
    rated = (Role.THROUGHPUT, Role.WORK_ENERGY, Role.EFFICIENCY)
    batches = {c.heading for c in columns if "batch" in c.words and c.words <= {"batch", "size", "bs"}}
    beside = any(c.role in SET and c.heading not in batches and _distinct([c], cells) > 1 for c in columns)
    if beside and not any(c.role in rated for c in columns):  # the time of a larger batch is one of more work
        columns = _changed(columns, lambda c: c.heading in batches - given.keys(), Role.WORK, WORKED_ON)
    sides = {c.heading for c in columns if c.heading.lower() in ("width", "height")} - given.keys()
    columns = _changed(columns, lambda c: len(sides) == 2 and c.heading in sides, Role.WORK, WORKED_ON)
    works = [column for column in columns if column.role is Role.WORK and column.heading not in given]
    single = [c for c in works if len(set(map(str, cells[c.heading]))) < 2]
    serving = any(c.words & ((WORDS["service"] | {"batch"}) - {"token", "tokens"}) for c in columns)
    asked_of_it = {"context"} | ({"seq", "seqlen", "input", "prompt"} if serving else set())
    served = [c for c in works if tokens and c.words & asked_of_it]
    return _changed(columns, (single + served).__contains__, Role.PARAMETER)


def _is_stepped(values: Cells) -> bool:
    """Whether numbers are those of a sweep: multiples of 5 in even steps, as no meter reads them."""
    if not isinstance(values, np.ndarray):
        return False
    distinct = np.unique(values[np.isfinite(values)])
    return len(distinct) >= _FEWEST and bool((distinct % 5 == 0).all()) and len(np.unique(np.diff(distinct))) <= 2


def _follows(column: Column, limits: Sequence[Column], cells: Mapping[str, Cells]) -> bool:
    """Whether a clock has one value under each limit, and another under most: it was not set beside them."""
    limit, clock = (np.asarray(cells[each.heading], np.float64) for each in (limits[0], column))
    distinct = len(np.unique(limit[np.isfinite(limit)]))
    pairs = len({pair for pair in zip(limit.tolist(), clock.tolist(), strict=True) if pair[0] == pair[0]})
    levels = len(np.unique(clock[np.isfinite(clock)]))
    return distinct > 2 and 2 * levels > distinct and pairs < levels * distinct / 2


def _parameters(
    columns: Sequence[Column], cells: Mapping[str, Cells], given: Mapping[str, Role], whole: Mapping[str, Cells]
) -> Iterator[Column]:
    """Which of the columns without a known meaning were chosen: what tells rows apart, from the left.

    One that stands behind what was measured is chosen where those before it leave several rows the same.
    """
    there = _telling_apart(columns, cells, given)
    varies = _distinct(there, cells) > 1 or any(column.why == EACH_ITS_OWN for column in columns)
    repeats = any(column.role is Role.REPEAT for column in there)
    states = [column for column in columns if column.role is Role.STATE]
    whole_there = [column for column in there if _is_complete(whole[column.heading])]
    for column in columns:
        values = whole[column.heading]
        others = [*(each for each in there if each is not column), *states]
        complete = _is_complete(values)
        if column.role is Role.REPEAT and column.heading not in given and not complete:
            yield _incomplete(column, (), cells)
        elif column.heading in given or column.role is not Role.PARAMETER:
            yield column
        elif repeats and not column.why and _distinct(others, cells) == _distinct([*others, column], cells):
            yield replace(column, role=Role.FIGURE, why="differs from repeat to repeat")
        elif not complete:
            yield _incomplete(column, whole_there if not repeats else (), cells)
        elif column not in there:
            left = Role.FIGURE if isinstance(values, np.ndarray) else Role.UNUSED
            yield replace(column, role=left, why="stands behind what was measured")
        elif varies and len(set(values)) == 1:
            yield replace(column, role=Role.UNUSED, why="the same in all rows")
        else:
            yield _chosen(column)


def _chosen(column: Column) -> Column:
    """A parameter, with why it is one; a key of JSON has no name that could say it."""
    if re.fullmatch(r"key( \d+)?", column.heading):
        return replace(column, why="a key without a name", candidates=(Role.PARAMETER, Role.KERNEL))
    return column if column.why else replace(column, why=SOMEONE_CHOSE)


def _incomplete(column: Column, others: Sequence[Column], cells: Mapping[str, Cells]) -> Column:
    """A column that is empty in some rows: not used, but asked about where it alone tells choices of others apart."""
    explained = _is_one_of_the_values(cells[column.heading]) or any(_explains(each, column, cells) for each in others)
    chosen = column.why in (CHOICE, COME_AGAIN) and bool(others or explained)
    tells = chosen and _distinct([*others, column], cells) > _distinct(others, cells)
    if tells and column.why == CHOICE and explained:
        return replace(column, why=NONE_IN_SOME)
    both = (Role.UNUSED, Role.PARAMETER) if tells else ()
    return replace(column, role=Role.UNUSED, why="empty in some rows", candidates=both)


def _is_one_of_the_values(values: Cells) -> bool:
    """Tell whether nothing stands in as many rows as each of several values: a rate without a limit, say."""
    counts = Counter(np.nan_to_num(values, nan=math.inf).tolist() if isinstance(values, np.ndarray) else values)
    return len(counts) > _FEWEST and len({*counts.values()}) == 1


def _explains(other: Column, column: Column, cells: Mapping[str, Cells]) -> bool:
    """Tell whether all rows of a kind lack the value of a column, or none."""
    values = cells[column.heading]
    missing = np.isnan(values).tolist() if isinstance(values, np.ndarray) else [not value for value in values]
    kinds = cells[other.heading]
    return not isinstance(kinds, np.ndarray) and len({*zip(kinds, missing, strict=True)}) == len({*kinds})


def _is_complete(values: Cells) -> bool:
    """Whether no row lacks a value."""
    return bool(np.isfinite(values).all()) if isinstance(values, np.ndarray) else all(values)


def _unknown_texts(columns: Sequence[Column], cells: Mapping[str, Cells], given: Mapping[str, Role]) -> list[Column]:
    """Texts of which no word says whether they were chosen or name what ran: rows of different ones are kept apart.

    One that follows from another column tells nothing more, and the only one that varies is what is compared.
    """
    result = list(columns)
    unknown = [c for c in columns if c in _texts(columns, cells) or c.why in (BOARDS_THERE, RAN_THERE, CHOSEN_THERE)]
    unknown = [column for column in unknown if column.heading not in given]
    telling = [c for c in columns if c.role in (*SET, Role.KERNEL, Role.BOARD, Role.WORK) and c not in unknown]
    varying = [c for c in telling if c.role in SET and _distinct([c], cells) > 1]
    for column in unknown:
        source = next((c for c in telling if _follows_from(column, c, cells)), None)
        judged = column
        if source is not None and not isinstance(cells[source.heading], np.ndarray):
            judged = replace(column, role=Role.UNUSED, why=f"follows from '{source.heading}'")
        elif varying and source is None and column.role is Role.PARAMETER and column.why != CHOSEN_THERE:
            both = () if column.words & WORDS["material"] else (Role.KERNEL, Role.PARAMETER)
            judged = replace(column, role=Role.KERNEL, candidates=both)
        telling.append(judged)
        result[columns.index(column)] = judged
    return result


def _follows_from(column: Column, source: Column, cells: Mapping[str, Cells]) -> bool:
    """Tell whether what a column says is said by another: each of what ran is another choice, or one of what ran."""
    known = _distinct([source], cells)
    alike = source.role not in SET or column.why == COME_AGAIN or _distinct([column], cells) == known
    rows = max(map(len, cells.values()), default=0)
    return alike and 1 < known < rows and _distinct([source, column], cells) == known


def _unknown_numbers(columns: Sequence[Column], cells: Mapping[str, Cells], given: Mapping[str, Role]) -> list[Column]:
    """Numbers beside other choices of which no word says whether they were chosen or are how much was worked on.

    Rows of different ones are kept apart, and it is asked. A table of many such columns is one of a kernel's choices.
    """
    varying = [c for c in columns if c.role in SET and _distinct([c], cells) > 1]
    unknown = [
        c for c in varying if c.why == SOMEONE_CHOSE and c.heading not in given and not _is_a_flag(cells[c.heading])
    ]
    others = [c for c in varying if c not in unknown]
    if math.prod(_distinct([c], cells) for c in varying) > _LARGEST_SPACE:
        counted = [c for c in varying if c.why in (CHOICE, SOMEONE_CHOSE) and c.heading not in given]
        return _changed(columns, counted.__contains__, Role.FIGURE, "too many of them for someone to have chosen")
    if not others or len(unknown) > _MOST_ASKED:
        return list(columns)
    telling = [c for c in columns if c.role in (*SET, Role.KERNEL, Role.BOARD, Role.WORK) and c not in unknown]
    asked: list[Column] = []
    for column in unknown:
        more = _distinct([*telling, *asked, column], cells) > _distinct([*telling, *asked], cells)
        asked += [column] if more else []
    both = (Role.WORK, Role.PARAMETER)
    return [replace(c, role=Role.WORK, candidates=both) if c in asked else c for c in columns]


def _is_a_flag(values: Cells) -> bool:
    return isinstance(values, np.ndarray) and set(np.unique(values).tolist()) <= {0.0, 1.0}


def _texts(columns: Sequence[Column], cells: Mapping[str, Cells]) -> list[Column]:
    """The parameters that are texts without a known word; operations of each number format differ as well."""
    in_operations = any(c.role is Role.THROUGHPUT and PATTERNS["operations"].search(c.heading.lower()) for c in columns)
    formats = {"precision", "dtype"} if in_operations else set[str]()
    texts = [c for c in columns if c.role is Role.PARAMETER and not isinstance(cells[c.heading], np.ndarray)]
    return [column for column in texts if column.why == COME_AGAIN or column.words & formats]


def _other_amounts(columns: Sequence[Column], cells: Mapping[str, Cells]) -> list[Column]:
    """Amounts in round numbers that tell otherwise equal rows apart were chosen: other work, and no repeats."""
    there = [column for column in columns if column.role in (*SET, Role.KERNEL, Role.BOARD, Role.WORK)]
    amounts = [column for column in columns if column.why == COUNTED and _is_round(cells[column.heading])]
    telling = [c for c in amounts if _distinct([*there, c], cells) > _distinct(there, cells)]
    return _changed(columns, telling.__contains__, Role.WORK, "how much was worked on: equal rows differ in it")


def _is_round(values: Cells) -> bool:
    """Tell whether amounts are multiples of 10 or of 8, or powers, and differ by more than what is counted scatters."""
    amounts = np.unique(np.asarray(values, np.float64))
    even = any(bool((amounts % step == 0).all()) for step in (8, 10)) or (len(amounts) > 2 and is_geometric(amounts))
    return len(amounts) > 1 and even and bool(amounts[0] > 0) and float(amounts[-1] / amounts[0]) > _SCATTER


def _telling_apart(columns: Sequence[Column], cells: Mapping[str, Cells], given: Mapping[str, Role]) -> list[Column]:
    """The columns that tell rows apart: what is known to be set, then others as far as they are needed."""
    measured = (place for place, column in enumerate(columns) if column.role in MEASURED and column.why)
    first = next(measured, len(columns))
    telling = (*SET, Role.KERNEL, Role.BOARD, Role.WORK, Role.REPEAT)
    known = [c for c in columns if c.role in telling and (c.why or c.role is not Role.PARAMETER)]
    there = [c for at, c in enumerate(columns) if c in known or (at < first and c.role in telling)]
    left = (c for c in columns if c.role is Role.PARAMETER and c not in there and c.heading not in given)
    behind = [column for column in left if not column.words & (EXTREME | {"best"})]
    for block in _side_by_side(behind, columns):  # what was chosen stands together
        if _distinct([*there, *block], cells) > _distinct(there, cells):
            there += block
    return there


def _side_by_side(chosen: Sequence[Column], columns: Sequence[Column]) -> Iterator[list[Column]]:
    """These columns in groups of neighbours."""
    for together, block in groupby(columns, chosen.__contains__):
        if together:
            yield list(block)


def _distinct(columns: Sequence[Column], cells: Mapping[str, Cells]) -> int:
    """Count the different rows of these columns; what is missing is alike."""
    known = (cells[column.heading] for column in columns)
    alike = (np.where(np.isnan(each), np.inf, each) if isinstance(each, np.ndarray) else each for each in known)
    return len(set(zip(*alike, strict=True))) if columns else 1


# --- physics ----------------------------------------------------------------------------------------------------------


def _by_physics(columns: list[Column], cells: Mapping[str, Cells]) -> Iterator[Column]:
    """Units that no heading names, by energy = power x time; and what contradicts it.

    The energy of a piece of work, where power and the time of one give it, is the one that counts.
    """
    for judge in (_as_filled, _as_minutes, _as_megajoules):
        columns = [judge(column, columns, cells) for column in columns]
    power, whole = main_column(columns, Role.POWER), main_column(columns, Role.ENERGY)
    energies = [column for column in columns if column is whole or column.role is Role.WORK_ENERGY]
    energies.sort(key=lambda column: column is whole)
    times = [column for column in columns if column.role in (Role.TIME, Role.LATENCY)]
    for energy in energies if power is not None else ():
        assert power is not None
        fits = [fit for each in times if (fit := _fit(energy, power, each, cells)) is not None]
        best = min(fits, key=lambda fit: fit[0], default=None)
        if best is not None and best[0] < (_FITS if energy is whole else _OFF):
            roles = (Role.ENERGY, Role.POWER, Role.TIME)
            for column, role, scale in zip((energy, power, best[2]), roles, best[1], strict=True):
                judged = replace(column, role=role, unit=BASE_UNIT[role.value], scale=scale, confirmed=True)
                columns[columns.index(column)] = replace(judged, why=f"{column.why}; energy is power times time")
            break
        if best is not None and best[0] > _OFF and energy is whole:
            said = f"not '{power.heading}' times '{best[2].heading}': it differs by {100 * math.expm1(best[0]):.0f} %"
            columns[columns.index(energy)] = replace(energy, contradicted=said)
    for judge in (_as_counted, _as_of_one_request, _as_measured):
        columns = [judge(column, columns, cells) for column in columns]
    columns = _rivals(_rivals(columns, Role.TIME), Role.ENERGY)
    columns = [_as_ratio(column, columns, cells) for column in columns]
    for column in columns:
        if math.isnan(column.scale):
            yield replace(column, scale=_usual_scale(column, cells), scale_is_guessed=True)
        else:
            yield column


def _as_minutes(column: Column, columns: Sequence[Column], _: Mapping[str, Cells]) -> Column:
    """A time in 'min' is one in minutes, unless another statistic of it stands beside."""
    same = [each for each in columns if each.role is column.role and _stem(each) == _stem(column)]
    minutes = column.role is Role.TIME and math.isnan(column.scale) and words_of(column.heading)[-1] == "min"
    return replace(column, scale=60.0, why="a time in minutes by its name") if minutes and same == [column] else column


def _as_megajoules(column: Column, columns: Sequence[Column], cells: Mapping[str, Cells]) -> Column:
    """'MJ' is megajoules where, over the time of the work, millijoules would be less than any board draws."""
    time = main_column(columns, Role.TIME)
    if column.role is not Role.ENERGY or not re.search("M(J|Wh)(?![a-z])", column.heading) or time is None:
        return column
    with np.errstate(divide="ignore", invalid="ignore"):
        watts = np.asarray(cells[column.heading], np.float64) / np.asarray(cells[time.heading], np.float64)
    drawn = float(np.median(watts[np.isfinite(watts)])) * column.scale / time.scale
    said = f"read as megajoules: in the small unit it would be {drawn:.2g} W"
    return replace(column, scale=column.scale * 1e9, contradicted=said) if 0 < drawn < _LEAST_W else column


def _as_counted(column: Column, columns: Sequence[Column], cells: Mapping[str, Cells]) -> Column:
    """A rate beside the amount of it and a time: it is their ratio, or contradicted, as the mean over users is."""
    words, time = column.words & TOKENS, main_column(columns, Role.TIME)  # of requests some may fail
    if column.role is not Role.THROUGHPUT or time is None or not words:
        return column
    counts = [c for c in columns if c.why == COUNTED and c.words & words and c.words & WORDS["all_of_it"] - {"tg"}]
    rate, taken = (np.asarray(cells[c.heading], np.float64) for c in (column, time))
    scale, off = _usual_scale(time, cells) if math.isnan(time.scale) else time.scale, dict[str, float]()
    for count in counts:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.abs(np.log(rate * taken * scale / np.asarray(cells[count.heading], np.float64)))
        known = ratios[np.isfinite(ratios)]
        off[count.heading] = float(np.median(known)) if len(known) >= _FEWEST else math.nan
    if any(each < _FITS for each in off.values()):
        return replace(column, confirmed=True)
    if off and all(each > math.log(_SCATTER) for each in off.values()):
        return replace(column, contradicted=f"not '{next(iter(off))}' over '{time.heading}'")
    return column


def _as_of_one_request(column: Column, columns: Sequence[Column], cells: Mapping[str, Cells]) -> Column:
    """A mean rate of tokens that falls while that of requests grows is what each saw, and not what all had together."""
    rates = [each for each in columns if each.role is Role.THROUGHPUT]
    at_once = [each for each in columns if each.role is Role.PARAMETER and each.words & {"concurrency", "concurrent"}]
    of_requests = [each for each in rates if each.words & {"request", "requests", "req", "rps"}]
    requests = next(iter((*of_requests, *at_once)), None)
    means = [each for each in rates if each.words & (TOKENS | {"tps"}) and each.words & MEANS]
    if requests is None or means != [column] or column.contradicted:
        return column
    values = np.array([cells[each.heading] for each in (column, requests)], np.float64)
    tokens, done = values[:, np.isfinite(values).all(axis=0)]
    falls = len(done) >= _FEWEST and np.ptp(done) > 0 < np.ptp(tokens) and np.corrcoef(tokens, done)[0, 1] < 0
    said = f"of single requests: it falls as '{requests.heading}' grows"
    both = (Role.THROUGHPUT, Role.FIGURE) if requests in at_once else ()  # nothing else says what all had together
    return replace(column, contradicted=said, candidates=both) if falls else column


def _as_filled(column: Column, columns: Sequence[Column], cells: Mapping[str, Cells]) -> Column:
    """A figure that is 0 in all rows was not measured, where another column has it."""
    same = [c for c in columns if c.role is column.role in _UNIT_OF and c.role in MEASURED and c.why != NAMED]
    empty = column in same and not np.any(cells[column.heading]) and any(np.any(cells[c.heading]) for c in same)
    return replace(column, role=Role.UNUSED, why="0 in all rows") if empty else column


def _as_measured(column: Column, columns: Sequence[Column], cells: Mapping[str, Cells]) -> Column:
    """A speed that is the same in several rows, of each kernel, is what something can do, and was not measured."""
    if column.role is not Role.THROUGHPUT or column.why == NAMED:
        return column
    kernels = [each for each in columns if each.role is Role.KERNEL]
    rows, count = len(cells[column.heading]), _distinct(kernels, cells)
    same = _FEWEST * count <= rows and _distinct([*kernels, column], cells) == count
    return replace(column, role=Role.UNUSED, why="the same in all rows of a kernel") if same else column


def _rivals(columns: Sequence[Column], role: Role) -> list[Column]:
    """Of several times or energies that are no statistics of one, which is that of the work cannot be known."""
    chosen = main_column(columns, role)
    stems = {_stem(column) for column in columns if column.role is role}
    by_speed = {c.role for c in columns} & {Role.THROUGHPUT, Role.POWER, Role.ENERGY} == {Role.THROUGHPUT}
    others = {Role.THROUGHPUT, Role.LATENCY, Role.ENERGY} - {role}
    alone = not any(column.role in others for column in columns)
    unknown = alone and len(stems) > 1 and all({*stem.split()} - _KNOWN for stem in stems)  # 'deepgemm_us, mine_us'
    if chosen is None or chosen.confirmed:
        return list(columns)
    if not (unknown or (role is Role.TIME and _are_several(chosen, stems, by_speed))):
        return list(columns)
    return [replace(c, candidates=(role, Role.FIGURE)) if c is chosen and len(c.why) < 40 else c for c in columns]


def _stem(column: Column) -> str:
    """The words of a heading but for units and statistics."""
    plain = re.sub(r"[(\[].*", "", column.heading)
    return " ".join(word for word in words_of(plain) if word not in STATISTICS and word not in UNITS)


def _are_several(chosen: Column, stems: Collection[str], by_speed: bool) -> bool:
    """Tell whether times are of several things: of two sides, or of many of which none is called plainly and counts."""
    plain = any(not stem or stem in TIME_WORDS or len(stem.split()) == 1 for stem in stems)
    sides = {"cpu", "gpu"} <= {(*stem.split(), "")[0] for stem in stems} and not chosen.words & WORDS["whole_run"]
    return sides or (len(stems) > _MOST_TIMES and not plain and not by_speed)


def _as_ratio(column: Column, columns: Sequence[Column], cells: Mapping[str, Cells]) -> Column:
    """A column that is a speed over a power is work per energy, whatever its name; the inverse is energy per work."""
    power, rates = main_column(columns, Role.POWER), [c for c in columns if c.role is Role.THROUGHPUT]
    if power is None or column.confirmed or column.role not in _RATIOS:
        return column
    values, watts = (np.asarray(cells[each.heading], np.float64) for each in (column, power))
    for rate in rates:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.asarray(cells[rate.heading], np.float64) / watts
            both = np.isfinite(values) & np.isfinite(ratio) & (values > 0) & (ratio > 0)
            few = both.sum() < _FEWEST or np.unique(values[both]).size < _FEWEST
            for role, other, sides in (
                (Role.EFFICIENCY, ratio, (rate, power)),
                (Role.WORK_ENERGY, 1.0 / ratio, (power, rate)),
            ):
                if not few and float(np.quantile(np.abs(values[both] / other[both] - 1.0), 0.9)) < _FITS:
                    why = f"'{sides[0].heading}' over '{sides[1].heading}'"
                    return replace(column, role=role, unit="", scale=1.0, why=why, confirmed=True)
    return column


def _fit(
    energy: Column, power: Column, time: Column, cells: Mapping[str, Cells]
) -> tuple[float, tuple[float, float, float], Column] | None:
    """How far the median of energy / (power x time) is from 1, with the scales that make it least; None: no numbers."""
    values = [np.asarray(cells[column.heading], np.float64) for column in (energy, power, time)]
    good = np.isfinite(values).all(axis=0) & (np.stack(values) > 0).all(axis=0)
    ratios = values[0][good] / (values[1][good] * values[2][good])
    if len(ratios) < 2 or (len(ratios) < _FEWEST and np.ptp(np.log(ratios)) > _FITS):
        return None
    ratio = float(np.median(ratios))
    tried = zip((energy, power, time), _SCALES, strict=True)
    scales = [(column.scale,) if not math.isnan(column.scale) else usual for column, usual in tried]
    fits = ((abs(math.log(ratio * e / (p * t))), (e, p, t), time) for e, p, t in product(*scales))
    middle = float(np.median(values[1][good]))

    def rank(fit: tuple[float, tuple[float, float, float], Column]) -> tuple[float, bool, bool, int]:
        (e, p, _), beyond = fit[1], middle * fit[1][1] > _PLAUSIBLE_W
        of_nvml = math.isnan(energy.scale) and p == 1e-3 != e  # which counts in mJ, too
        return round(fit[0], 6), beyond, of_nvml, sum(scale != 1.0 for scale in fit[1])  # Wh and ms: kWh and s

    return min(fits, key=rank)


def _usual_scale(column: Column, cells: Mapping[str, Cells]) -> float:
    """Of a column without a unit: as its numbers are plausible for a board, else as they are."""
    values = np.asarray(cells[column.heading], np.float64)
    finite = np.abs(values[np.isfinite(values)])
    middle = float(np.median(finite)) if len(finite) else 0.0
    if column.unit == "W" and middle > 3000:
        return 1e-3
    if column.unit == "MHz":
        return 1e-6 if middle > 1e8 else 1e-3 if middle > 1e5 else 1e3 if 0 < middle < 10 else 1.0
    return 1.0


def beside_main(columns: Sequence[Column], role: Role) -> list[Column]:
    """The columns of several meters: of one role, of the whole, no extremes, and named as another meter's.

    An energy of all of a machine, or of another stretch of time, is no second meter: only its heading can say so.

    Parameters
    ----------
    columns : sequence of Column
        The table's.
    role : Role
        The role, such as power.

    Returns
    -------
    list of Column
        The main column first; empty where none stands beside it. Of several statistics of one reading the first.
    """
    main = main_column(columns, role)
    whole = [c for c in columns if c.role is role and not c.words & (EXTREME | WORDS["partial"])]
    readings = {c.words - STATISTICS: c for c in (*reversed(whole), main) if c is not None and main in whole}
    others = [column for column in readings.values() if column is not main and column.words & WORDS["of_a_meter"]]
    return [main, *others] if main is not None and others else []


def main_column(columns: Iterable[Column], role: Role) -> Column | None:
    """The column that counts, of those of a role.

    Parameters
    ----------
    columns : iterable of Column
        The table's.
    role : Role
        The role.

    Returns
    -------
    Column or None
        A mean before an extreme, the whole before a part; else the first.
    """

    def rank(column: Column) -> tuple[bool, ...]:
        words = column.words
        if column.role is Role.THROUGHPUT:
            named, whole = "/" in column.heading or "per" in words, words & WORDS["all_of_it"]
            of_a_part = bool(words & (EXTREME | WORDS["part_of_it"]))
            return bool(column.contradicted), of_a_part, not whole, not whole - {"total"}, not named
        if column.role is Role.TIME:
            partial = bool(words & (EXTREME | WORDS["partial"] | WORDS["parts_of_a_run"] | WORDS["stages"]))
            partial = bool(words & HEADINGS["beside"]) or (partial and "total" not in words)
            return not column.confirmed, partial, not words & WORDS["whole_run"], not words & WORDS["one_of_many"]
        extreme, partial = bool(words & EXTREME), bool(words & (WORDS["partial"] | HEADINGS["beside"]))
        one = any(map(str.isdigit, words))  # of several boards
        return not column.confirmed, extreme, partial, one, not words & {"gpu", "total", "avg"}

    return min((column for column in columns if column.role is role), key=rank, default=None)
