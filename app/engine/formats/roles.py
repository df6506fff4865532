"""What the columns of a table are beside each other: what was set, and what was seen; `figures` has the physics.

What contradicts a role is kept beside it, and a column that may be one of two things is asked about. Everything that
reads a table of another tool takes its roles from here.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, groupby, product
from typing import Final

import numpy as np

from ...base.vocabulary import HEADINGS, PATTERNS, REQUESTED, UNITS, WORDS
from ..results.description import Listing
from .figures import judge_figures
from .headings import (
    ANSWERING,
    BOARDS_THERE,
    CHOICE,
    CHOSEN_THERE,
    COME_AGAIN,
    COUNTED,
    EACH_ITS_OWN,
    EXTREME,
    LETTERS,
    MEASURED,
    OF_MEMORY,
    OF_REPEATS,
    RAN_THERE,
    SET,
    SOMEONE_CHOSE,
    TIME_WORDS,
    WORKED_ON,
    Cells,
    Column,
    Floats,
    Role,
    is_geometric,
    looks_chosen,
    over,
    words_of,
)
from .sheet import FEWEST, SAME_TIME, SCATTER, SUM_OF_PARTS, Sheet, is_sum, main_column

MORE_OF_WORK: Final = "says more of what was worked on"
NONE_IN_SOME: Final = "a choice by its name, which some rows do not have"
_PAIRS: Final = {"p": {"q", "s"}, "e": {"s"}, "t": {"tg"}, "kw": {"kh"}}  # P x Q, speed-up and efficiency, threads
_OVER_UNITS: Final = (Role.POWER, Role.ENERGY, Role.GRAPHICS_CLOCK, Role.OBSERVED_CLOCK)
_MOST_ASKED: Final = 2  # numbers under unknown names beside choices
_TELLING: Final = (*SET, Role.KERNEL, Role.BOARD, Role.WORK)  # rows apart
_LARGEST_SPACE: Final = 2**62  # configurations
_COUNTED_FROM: Final = 1e5  # operations; a speed of so many is given in larger units
_MOST_ALIKE: Final = 0.8  # share of the rows
_MANY: Final = 6  # rows in which a figure that was measured is not the same
_GROWN: Final = 4.0  # ratio of the largest to the least amount of work
_MOST_PARTS: Final = 20  # times of which sums are looked for
_SLOPE, _IN_STEP = 0.7, 0.95  # of the logarithms of times over those of amounts, and their correlation


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
    sheet = Sheet(cells, given or {})
    _same_names(sheet)
    for judge in (_letters, _latencies, _sums, _simulated, _constants, _clocks, _powers, _operations):
        judge(sheet)
    for judge in (_blocks_of_repeats, _done_in_a_time, _amounts, _packages, _verdicts, _voltages, _parameters):
        judge(sheet)
    for judge in (_more_of_work, _unknown_texts, _other_amounts, _unknown_numbers):
        judge(sheet)
    judge_figures(sheet)
    return tuple(sheet.columns)


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


def _same_names(sheet: Sheet) -> None:
    """Names that say one to one what shorter ones say, as those of files do, tell no more.

    What stands around a choice in a name must be the same: else it is of several things that ran.
    """
    texts = [column for column in sheet.open(Role.KERNEL, Role.PARAMETER) if sheet.texts(column) is not None]
    for column, other in product([column for column in texts if column.role is Role.KERNEL], texts):
        pairs = [*zip(sheet.texts(column) or (), sheet.texts(other) or (), strict=True)]
        counts = {sheet.distinct(each) for each in ([column], [other], [column, other])}
        if sum(len(one) - len(two) for one, two in pairs) > 0 and len(counts) == 1 < min(counts):
            around = Counter(one.replace(two, "\0") for one, two in pairs if two and two in one)
            words = [[{*re.findall("[a-z]{3,}", name.lower())} for name in pair] for pair in pairs]
            alike = sum(2 * len(one & two) > len(two) for one, two in words) if other.role is Role.KERNEL else 0
            if max(alike, *around.values(), 0) >= _MOST_ALIKE * len(pairs):
                sheet.change([column], Role.UNUSED, f"says what '{other.heading}' says")
                return


def _letters(sheet: Sheet) -> None:
    """A letter is no quantity beside a column that says it plainly, and none of a pair such as P x Q or S and E."""
    names = {column.heading.lower() for column in sheet.columns}
    for column in sheet.open(Role.POWER, Role.ENERGY, Role.TIME):
        letter, numbers = column.heading.lower(), sheet.numbers(column)
        role = Role.PARAMETER if looks_chosen(numbers[np.isfinite(numbers)]) else Role.FIGURE
        said = any(len(other.heading) > 1 and not other.words & EXTREME for other in sheet.of(column.role))
        beside = (said and letter in LETTERS) or names & _PAIRS.get(letter, set())
        if beside and (role is Role.PARAMETER or letter == "e"):  # an efficiency has fractions
            sheet.put(column, role, f"no {column.role.value}, beside the others", unit="", scale=1.0)
    over_units = [c for c in sheet.of(*_OVER_UNITS) if re.fullmatch(r"\w ?/ ?\w+", c.heading)]
    for column in (c for c in sheet.open(Role.THROUGHPUT) if over_units and c.heading == "t/s"):
        if len(over_units) > 1:
            sheet.put(column, Role.TIME, "over its unit, as others are", unit="s")
        else:
            sheet.put(column, Role.THROUGHPUT, candidates=(Role.THROUGHPUT, Role.TIME))


def _latencies(sheet: Sheet) -> None:
    """Where nothing is served, a latency is the time of the work."""
    served = any(column.words & WORDS["service"] for column in sheet.columns)
    if not sheet.of(Role.TIME):
        sheet.change((c for c in sheet.of(Role.LATENCY) if not served or "total" in c.words), Role.TIME)


def _sums(sheet: Sheet) -> None:
    """A time that is the sum of two or more that stand together is of all of the work, and they are its parts."""
    times = sheet.open(Role.TIME)
    scaled = {c.heading: sheet.numbers(c) * (1.0 if math.isnan(c.scale) else c.scale) for c in times[:_MOST_PARTS]}
    for column in times[:_MOST_PARTS]:
        others = [numbers for heading, numbers in scaled.items() if heading != column.heading]
        blocks = (others[a:b] for a, b in combinations(range(len(others) + 1), 2) if b - a > 1)
        if any(is_sum(scaled[column.heading], block) for block in blocks):
            sheet.put(column, Role.TIME, SUM_OF_PARTS)


def _simulated(sheet: Sheet) -> None:
    """Whole days or hours beside a time in a smaller unit are how much was simulated: they did not pass."""
    hour = UNITS["h"][1]
    for column in sheet.open(Role.TIME) if any(column.scale < hour for column in sheet.of(Role.TIME)) else ():
        if column.scale >= hour and not column.words & TIME_WORDS and not (sheet.numbers(column) % 1).any():
            sheet.put(column, Role.WORK, WORKED_ON, unit="", scale=1.0)


def _constants(sheet: Sheet) -> None:
    """A figure or clock that is the same in all rows is of something else where another one of its role differs.

    In a few rows it may be so by chance, unless it has four digits, as one that is said once for all of them.
    """
    for role in (*ANSWERING, Role.GRAPHICS_CLOCK):
        alike = sheet.open(role)
        differ = [column for column in alike if sheet.distinct([column]) > 1]
        if differ:
            alike = [c for c in alike if c not in differ and (sheet.rows >= _MANY or _is_said_once(c, sheet))]
            same = (column for column in alike if not column.words & WORDS["stages"])
            sheet.change(same, Role.UNUSED, f"the same in all rows, beside '{differ[0].heading}'")


def _is_said_once(column: Column, sheet: Sheet) -> bool:
    return column.role in ANSWERING and bool((number := sheet.numbers(column)[0]) != float(f"{number:.3g}"))


def _clocks(sheet: Sheet) -> None:
    """The clocks that were not requested, beside one that was, one that was observed, or a power limit."""
    clocks, seen, limits = (sheet.open(Role.GRAPHICS_CLOCK), *map(sheet.of, (Role.OBSERVED_CLOCK, Role.POWER_LIMIT)))
    wanted = [c for c in sheet.of(Role.GRAPHICS_CLOCK) if c not in clocks] or _requested(clocks)
    for column in clocks:
        if wanted and seen and column not in wanted:
            sheet.put(column, Role.UNUSED, f"beside '{seen[0].heading}', which was observed")
        elif wanted and column not in wanted:
            sheet.put(column, Role.OBSERVED_CLOCK, f"beside '{wanted[0].heading}', which was requested")
        elif not seen and limits and _follows(sheet.numbers(column), sheet.numbers(limits[0])):
            sheet.put(column, Role.OBSERVED_CLOCK, f"follows '{limits[0].heading}': it was observed")
        elif not wanted and column is not clocks[0]:
            sheet.put(column, Role.UNUSED, f"beside '{clocks[0].heading}'")


def _requested(clocks: Sequence[Column]) -> list[Column]:
    """The clocks that say that they were asked for, the plainest word first."""
    found = [column for column in clocks if column.words & set(REQUESTED)]
    return sorted(found, key=lambda c: min(REQUESTED.index(word) for word in c.words if word in REQUESTED))


def _follows(clock: Floats, limit: Floats) -> bool:
    """Whether a clock has one value under each limit, and another under most: it was not set beside them."""
    distinct = len(np.unique(limit[np.isfinite(limit)]))
    pairs = len({pair for pair in zip(limit.tolist(), clock.tolist(), strict=True) if pair[0] == pair[0]})
    levels = len(np.unique(clock[np.isfinite(clock)]))
    return distinct > 2 and 2 * levels > distinct and pairs < levels * distinct / 2


def _powers(sheet: Sheet) -> None:
    """The powers in even steps: limits beside a power that was measured, else in doubt."""
    powers = [] if sheet.of(Role.POWER_LIMIT) else sheet.open(Role.POWER)
    stepped = [column for column in powers if _is_stepped(sheet.cells[column.heading])]
    clocked = sheet.of(Role.GRAPHICS_CLOCK, Role.OBSERVED_CLOCK)
    for column in stepped:
        if len(stepped) < len(powers):
            sheet.put(column, Role.POWER_LIMIT, "even steps, beside a power that was measured")
        elif not clocked:
            both = (Role.POWER, Role.POWER_LIMIT)
            sheet.put(column, Role.POWER, "a power in even steps, as limits are", candidates=both)


def _is_stepped(values: Cells) -> bool:
    """Whether numbers are those of a sweep: multiples of 5 in even steps, as no meter reads them."""
    if not isinstance(values, np.ndarray):
        return False
    distinct = np.unique(values[np.isfinite(values)])
    return len(distinct) >= FEWEST and bool((distinct % 5 == 0).all()) and len(np.unique(np.diff(distinct))) <= 2


def _operations(sheet: Sheet) -> None:
    """FLOPs may be how many a model or a layer takes, and not how many were done in a second."""
    of_a_model = any(column.words & {"param", "params", "parameters"} for column in sheet.columns)
    rates = [(c, words_of(c.heading.lower())) for c in sheet.open(Role.THROUGHPUT)]
    flops = [c for c, words in rates if {*words} <= HEADINGS["operations"]]
    sheet.change((c for c in flops if of_a_model or _are_counted(c, sheet)), Role.FIGURE, COUNTED)
    timed = any(not c.words & WORDS["latency"] for c in sheet.of(Role.TIME))
    ops = [c for c, words in rates if timed and PATTERNS["number_of_operations"].fullmatch(" ".join(words))]
    sheet.change((c for c in ops if not (sheet.numbers(c) % 1).any()), Role.FIGURE, COUNTED)


def _are_counted(column: Column, sheet: Sheet) -> bool:
    """Tell whether operations without another word are too many for a speed, as even as sizes, or make no equal work.

    'FLOPs (G)' is a speed only where its product with the time is the same in all rows.
    """
    values, time = sheet.numbers(column), main_column(sheet.columns, Role.TIME)
    if time is not None and column.words & {"g", "m"}:
        done = values * sheet.numbers(time)
        return not np.ptp(done) < SAME_TIME * done.max()
    even = "ops" in column.words and len(np.unique(values)) >= FEWEST and bool((values % 8 == 0).all())
    plain = {*words_of(column.heading.lower())} <= {"flops", "flop", "macs"} and bool((values % 1 == 0).all())
    return even or (plain and float(values.min(initial=math.inf)) > _COUNTED_FROM)


def _packages(sheet: Sheet) -> None:
    """The energy of the package of a processor counts, where nothing is said of a board."""
    energies = [c for c in sheet.open(Role.FIGURE) if c.unit == "J" and c.words & WORDS["package"]]
    if len(energies) == 1 and not any(c.role in (Role.ENERGY, Role.POWER) or "gpu" in c.words for c in sheet.columns):
        sheet.change(energies, Role.ENERGY, "of a package, and nothing is said of a board")


def _verdicts(sheet: Sheet) -> None:
    """A yes or no behind what was measured is what came out, where rows have names and nothing else was chosen."""
    first = next((place for place, column in enumerate(sheet.columns) if column.role in MEASURED), len(sheet.columns))
    named = [c for c in sheet.columns if c.why == EACH_ITS_OWN and not PATTERNS["counted"].search(c.heading.lower())]
    switches = [c for c in sheet.columns[first:] if named and c.why == CHOSEN_THERE]
    verdicts = [c for c in switches if all(map(PATTERNS["switch"].search, sheet.texts(c) or ()))]
    if all(column in verdicts for column in sheet.varying()):
        sheet.change(verdicts, Role.UNUSED, "says how it went")


def _blocks_of_repeats(sheet: Sheet) -> None:
    """Beside repeats 'block' numbers blocks of them: no size of a block is 0."""
    blocks = (c for c in sheet.columns if c.heading.lower() == "block" and 0.0 in sheet.cells[c.heading])
    sheet.change(blocks if sheet.of(Role.REPEAT) else (), Role.UNUSED, OF_REPEATS)


def _done_in_a_time(sheet: Sheet) -> None:
    """What differs from run to run of one length is how much was done, and was not chosen."""
    times = [sheet.numbers(column) for column in sheet.of(Role.TIME)]
    if sheet.rows >= FEWEST and any(float(np.ptp(time)) < SAME_TIME * float(np.mean(time)) for time in times):
        done = (c for c in sheet.of(Role.PARAMETER) if c.words & WORDS["done"] and sheet.texts(c) is None)
        sheet.change((column for column in done if sheet.distinct([column]) > 1), Role.FIGURE, COUNTED)


def _voltages(sheet: Sheet) -> None:
    """A voltage that alone tells rows apart was set."""
    set_there = [c for c in sheet.of(*_TELLING, Role.REPEAT) if c.why or c.role is not Role.PARAMETER]
    rows = sheet.distinct(set_there)
    for column in sheet.open(Role.VOLTAGE):
        if rows < sheet.distinct([*set_there, column]) == sheet.rows and bool((sheet.numbers(column) % 1 == 0).all()):
            sheet.put(column, Role.PARAMETER, "a voltage that alone tells rows apart")


def _amounts(sheet: Sheet) -> None:
    """How much was worked on tells rows apart that must not be compared; in a single size it is a constant."""
    tokens = any(c.words & {"tok", "token", "tokens", "tps"} for c in sheet.of(Role.THROUGHPUT))
    of_service = {bool(c.words & (WORDS["latency"] | {"p"})) for c in sheet.of(Role.TIME, Role.LATENCY)} == {True}
    at_once = WORDS["at_once"] if of_service else frozenset(("batch",))
    loads = [c for c in sheet.columns if c.words & at_once and c.words <= at_once | {"size", "bs", "num"}]
    beside = any(column not in loads for column in sheet.varying())
    if beside and not sheet.of(Role.THROUGHPUT, Role.WORK_ENERGY, Role.EFFICIENCY):  # times of larger ones
        sheet.change(loads, Role.WORK, WORKED_ON)
    sides = {column.heading.lower(): column for column in sheet.open(Role.PARAMETER, Role.WORK)}
    for shape in (text.split() for text in HEADINGS["shapes"] if {*text.split()} <= sides.keys()):
        sheet.change(map(sides.__getitem__, shape), Role.WORK, WORKED_ON)
    works = sheet.of(Role.WORK)
    serving = any(c.words & ((WORDS["service"] | {"batch"}) - {"token", "tokens"}) for c in sheet.columns)
    asked_of_it = {"context"} | ({"seq", "seqlen", "input", "prompt"} if serving else set())
    single = [column for column in works if len(set(map(str, sheet.cells[column.heading]))) < 2]
    served = [c for c in works if tokens and c.words & asked_of_it and c not in single]
    sheet.change(single + served, Role.PARAMETER)


def _parameters(sheet: Sheet) -> None:
    """Which of the columns without a known meaning were chosen: what tells rows apart, from the left.

    One that stands behind what was measured is chosen where those before it leave several rows the same.
    """
    there = _telling_apart(sheet)
    varies = sheet.distinct(there) > 1 or any(column.why == EACH_ITS_OWN for column in sheet.columns)
    repeats = any(column.role is Role.REPEAT for column in there)
    states, whole = sheet.of(Role.STATE), [column for column in there if _is_complete(sheet.whole[column.heading])]
    for column in sheet.open(Role.PARAMETER, Role.REPEAT):
        values = sheet.whole[column.heading]
        others = [*(each for each in there if each is not column), *states]
        complete = _is_complete(values)
        if column.role is Role.REPEAT:
            if not complete:
                _leave_incomplete(column, (), sheet)
        elif (
            repeats
            and not column.why
            and not _is_flag(values)
            and sheet.distinct(others) == sheet.distinct([*others, column])
        ):
            sheet.put(column, Role.FIGURE, "differs from repeat to repeat")
        elif not complete:
            _leave_incomplete(column, whole if not repeats else (), sheet)
        elif column not in there:
            left = Role.FIGURE if isinstance(values, np.ndarray) else Role.UNUSED
            sheet.put(column, left, "stands behind what was measured")
        elif varies and len(set(values)) == 1:
            sheet.put(column, Role.UNUSED, "the same in all rows")
        elif re.fullmatch(r"key( \d+)?", column.heading):  # of JSON, without a name that could say it
            both = (Role.PARAMETER, Role.KERNEL)
            sheet.put(column, Role.PARAMETER, "a key without a name", candidates=both)
        elif not column.why:
            sheet.put(column, Role.PARAMETER, SOMEONE_CHOSE)


def _is_flag(values: Cells) -> bool:
    return isinstance(values, np.ndarray) and {*np.unique(values).tolist()} <= {0.0, 1.0}


def _telling_apart(sheet: Sheet) -> list[Column]:
    """The columns that tell rows apart: what is known to be set, then others as far as they are needed."""
    columns, telling = sheet.columns, (*_TELLING, Role.REPEAT)
    measured = (place for place, column in enumerate(columns) if column.role in MEASURED and column.why)
    first = next(measured, len(columns))
    known = [c for c in columns if c.role in telling and (c.why or c.role is not Role.PARAMETER)]
    there = [c for at, c in enumerate(columns) if c in known or (at < first and c.role in telling)]
    left = (column for column in sheet.open(Role.PARAMETER) if column not in there)
    behind = [column for column in left if not column.words & (EXTREME | {"best"})]
    for together, block in groupby(columns, behind.__contains__):  # what was chosen stands together
        neighbours = list(block) if together else []
        if sheet.distinct([*there, *neighbours]) > sheet.distinct(there):
            there += neighbours
    return there


def _leave_incomplete(column: Column, others: Sequence[Column], sheet: Sheet) -> None:
    """A column that is empty in some rows: not used, but asked about where it alone tells choices of others apart."""
    explained = _is_one_of_the_values(sheet.cells[column.heading]) or any(_explains(o, column, sheet) for o in others)
    chosen = column.why in (CHOICE, COME_AGAIN) and bool(others or explained)
    tells = chosen and sheet.distinct([*others, column]) > sheet.distinct(others)
    if tells and column.why == CHOICE and explained:
        sheet.put(column, column.role, NONE_IN_SOME)
    else:
        both = (Role.UNUSED, Role.PARAMETER) if tells else ()
        sheet.put(column, Role.UNUSED, "empty in some rows", candidates=both)


def _is_one_of_the_values(values: Cells) -> bool:
    """Tell whether nothing stands in as many rows as each of several values: a rate without a limit, say."""
    counts = Counter(np.nan_to_num(values, nan=math.inf).tolist() if isinstance(values, np.ndarray) else values)
    return len(counts) > FEWEST and len({*counts.values()}) == 1


def _explains(other: Column, column: Column, sheet: Sheet) -> bool:
    """Tell whether all rows of a kind lack the value of a column, or none."""
    kinds, values = sheet.texts(other), sheet.cells[column.heading]
    missing = np.isnan(values).tolist() if isinstance(values, np.ndarray) else [not value for value in values]
    return kinds is not None and len({*zip(kinds, missing, strict=True)}) == len({*kinds})


def _is_complete(values: Cells) -> bool:
    """Whether no row lacks a value."""
    return bool(np.isfinite(values).all()) if isinstance(values, np.ndarray) else all(values)


def _more_of_work(sheet: Sheet) -> None:
    """Texts under the name of what was worked on and another word say more of it: 'dataset_version'."""
    works = [c.heading.lower() for c in sheet.of(Role.KERNEL) if c.heading.lower() in HEADINGS["worked_on_by"]]
    of_work = [c for c in sheet.open(Role.PARAMETER) if any(c.heading.lower().startswith(f"{w}_") for w in works)]
    sheet.change((c for c in of_work if sheet.texts(c) is not None), Role.KERNEL, MORE_OF_WORK)


def _unknown_texts(sheet: Sheet) -> None:
    """Texts of which no word says whether they were chosen or name what ran: rows of different ones are kept apart.

    One that follows from another column tells nothing more, and the only one that varies is what is compared.
    """
    unknown = [column for column in _texts(sheet) if column.heading not in sheet.given]
    telling = [column for column in sheet.of(*_TELLING) if column not in unknown]
    known = [column for column in sheet.varying() if column in telling]
    for column in unknown:
        named = column.words & WORDS["material"] and "size" not in column.words
        others = _chosen_beside(column, telling, sheet) if named else known
        source = next((each for each in telling if _follows_from(column, each, sheet)), None)
        judged = column
        if source is not None and sheet.texts(source) is not None:
            judged = sheet.put(column, Role.UNUSED, f"follows from '{source.heading}'")
        elif others and source is None and column.role is Role.PARAMETER and column.why != CHOSEN_THERE:
            both = () if named else (Role.KERNEL, Role.PARAMETER)
            judged = sheet.put(column, Role.KERNEL, candidates=both)
        telling.append(judged)


def _chosen_beside(column: Column, telling: Sequence[Column], sheet: Sheet) -> list[Column]:
    """The other columns of what was set, which do not name what is worked on, nor follow from what tells rows apart."""
    others = [c for c in sheet.varying() if c is not column and not c.words & WORDS["material"]]
    return [c for c in others if not any(_follows_from(c, each, sheet) for each in telling if each is not c)]


def _texts(sheet: Sheet) -> list[Column]:
    """The texts without a known word, or known by their cells; operations of each number format differ as well."""
    speeds = (column.heading.lower() for column in sheet.of(Role.THROUGHPUT))
    formats = {"precision", "dtype"} if any(map(PATTERNS["operations"].search, speeds)) else set[str]()
    plain = [c for c in sheet.of(Role.PARAMETER) if sheet.texts(c) is not None]
    unknown = [c for c in plain if c.why == COME_AGAIN or c.words & formats]
    by_cells = (BOARDS_THERE, RAN_THERE, CHOSEN_THERE)
    return [column for column in sheet.columns if column in unknown or column.why in by_cells]


def _follows_from(column: Column, source: Column, sheet: Sheet) -> bool:
    """Tell whether what a column says is said by another: each of what ran is another choice, or one of what ran."""
    known = sheet.distinct([source])
    alike = source.role not in SET or column.why == COME_AGAIN or sheet.distinct([column]) == known
    return alike and 1 < known < sheet.rows and sheet.distinct([source, column]) == known


def _other_amounts(sheet: Sheet) -> None:
    """Amounts in round numbers that tell otherwise equal rows apart were chosen: other work, and no repeats."""
    there = sheet.of(*_TELLING)
    amounts = [c for c in sheet.columns if c.why in (COUNTED, OF_MEMORY) and _is_round(sheet.numbers(c))]
    telling = [c for c in amounts if sheet.distinct([*there, c]) > sheet.distinct(there)]
    sheet.change(telling, Role.WORK, "how much was worked on: equal rows differ in it")


def _is_round(values: Floats) -> bool:
    """Tell whether amounts are multiples of 10 or of 8, or powers, and differ by more than what is counted scatters."""
    amounts = np.unique(values)
    even = any(bool((amounts % step == 0).all()) for step in (8, 10)) or (len(amounts) > 2 and is_geometric(amounts))
    return len(amounts) > 1 and even and bool(amounts[0] > 0) and float(amounts[-1] / amounts[0]) > SCATTER


def _unknown_numbers(sheet: Sheet) -> None:
    """Numbers beside other choices of which no word says whether they were chosen or are how much was worked on.

    Rows of different ones are kept apart, and it is asked. A table of many such columns is one of a kernel's choices.
    """
    varying = sheet.varying()
    chosen = [c for c in varying if c.why == SOMEONE_CHOSE and c.heading not in sheet.given]
    unknown = [c for c in chosen if not _is_flag(sheet.cells[c.heading])]
    if math.prod(sheet.distinct([column]) for column in varying) > _LARGEST_SPACE:
        counted = (c for c in varying if c.why in (CHOICE, SOMEONE_CHOSE))
        sheet.change(counted, Role.FIGURE, "too many of them for someone to have chosen")
        return
    grown = [column for column in unknown if _is_worked_on(column, sheet)]
    few = len(unknown) < len(varying) and len(unknown) <= _MOST_ASKED
    telling = [column for column in sheet.of(*_TELLING) if column not in unknown]
    for column in grown or unknown if grown or few else ():
        if sheet.distinct([*telling, column]) > sheet.distinct(telling):
            telling.append(column)
            sheet.put(column, Role.WORK, candidates=(Role.WORK, Role.PARAMETER))


def _is_worked_on(column: Column, sheet: Sheet) -> bool:
    """Tell whether times grow in step with numbers, or are these over a rate, as of how much there is to do."""
    if (time := main_column(sheet.columns, Role.TIME)) is None:
        return False
    numbers, times = sheet.numbers(column), sheet.numbers(time)
    known = (numbers > 0) & (times > 0)
    for rate in sheet.of(Role.THROUGHPUT):
        work = over(numbers, times * sheet.numbers(rate))[known]
        if len(work) >= FEWEST and float(np.ptp(work)) < SAME_TIME * float(np.min(work)):
            return True
    amounts = np.unique(numbers[known])
    if len(amounts) <= FEWEST or amounts[-1] < _GROWN * amounts[0]:
        return False
    taken = [float(np.median(times[known & (numbers == amount)])) for amount in amounts]
    slope, _ = np.polyfit(np.log(amounts), np.log(taken), 1)
    return bool(slope > _SLOPE and np.corrcoef(np.log(amounts), np.log(taken))[0, 1] > _IN_STEP)
