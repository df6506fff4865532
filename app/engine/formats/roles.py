"""What the columns of a table are beside each other: what was set, what was seen, and the physics between them.

What contradicts a role is kept beside it, and a column that may be one of two things is asked about. Everything that
reads a table of another tool takes its roles from here.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, product
from typing import Any, Final

import numpy as np

from ...base.vocabulary import HEADINGS, PATTERNS, REQUESTED, UNITS, WORDS
from ..results.description import Listing
from .headings import (
    ANSWERING,
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
    Floats,
    Role,
    by_itself,
    is_geometric,
    over,
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
_TELLING: Final = (*SET, Role.KERNEL, Role.BOARD, Role.WORK)  # rows apart
_LARGEST_SPACE: Final = 2**62  # configurations
_MOST_TIMES: Final = 2  # of different names, beyond which it is asked which counts
_LOOKED_AT: Final = 20_000  # rows by which columns are judged
_COUNTED_FROM: Final = 1e5  # operations; a speed of so many is given in larger units
_SCATTER: Final = 1.5  # ratio of amounts that were counted
TOKENS: Final = frozenset(("token", "tokens", "tok"))
COUNTABLE: Final = TOKENS | WORDS["done"] | {"request", "image", "sample"}
COUNTED_ALIKE: Final = 1.5  # largest to least amount that was counted, of which times can be compared
_PLAUSIBLE_W: Final = 5000.0  # of the boards of one machine, where a power has no unit
_PLAUSIBLE_ALONE_W: Final = 3000.0  # the same, where no energy and time are beside it
_LEAST_W: Final = 1e-3  # which no board draws less than
_SAME_TIME: Final = 0.02  # share by which runs of one length differ
_MANY: Final = 6  # rows in which a figure that was measured is not the same
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
    sheet = _Sheet(cells, given or {})
    for judge in (_latencies, _constants, _clocks, _powers, _operations, _blocks_of_repeats, _done_in_a_time, _amounts):
        judge(sheet)
    for judge in (_voltages, _parameters, _unknown_texts, _other_amounts, _unknown_numbers):
        judge(sheet)
    sheet.each(_as_filled, _as_minutes, _as_megajoules)
    _by_physics(sheet)
    for judge in (_of_a_batch, _beside_a_rate, _counters, _without_rest):
        judge(sheet)
    sheet.each(_as_counted, _as_of_one_request, _as_measured)
    for role in (Role.TIME, Role.ENERGY):
        _rivals(sheet, role)
    sheet.each(_as_ratio, _in_usual_unit)
    return tuple(sheet.columns)


class _Sheet:
    """The columns of a table beside each other, as far as they are judged."""

    def __init__(self, cells: Mapping[str, Cells], given: Mapping[str, Role]) -> None:
        self.whole, self.given = cells, given
        self.cells = {heading: values[:_LOOKED_AT] for heading, values in cells.items()}
        found = map(by_itself, self.cells, self.cells.values())
        self.columns = [_as_named(c, given[c.heading]) if c.heading in given else c for c in found]
        self._counts: dict[frozenset[str], int] = {frozenset(): 1}
        self.rows = max(map(len, self.cells.values()), default=0)

    def of(self, *roles: Role) -> list[Column]:
        """The columns of these roles."""
        return [column for column in self.columns if column.role in roles]

    def open(self, *roles: Role) -> list[Column]:
        """Those of them of which the user says nothing."""
        return [column for column in self.of(*roles) if column.heading not in self.given]

    def texts(self, column: Column) -> Sequence[str] | None:
        """The cells of a column of texts; None for one of numbers."""
        cells = self.cells[column.heading]
        return None if isinstance(cells, np.ndarray) else cells

    def numbers(self, column: Column) -> Floats:
        """The cells of a column of numbers."""
        return np.asarray(self.cells[column.heading], np.float64)

    def distinct(self, columns: Sequence[Column]) -> int:
        """Count the different rows of these columns; what is missing is alike."""
        headings = frozenset(column.heading for column in columns)
        if headings not in self._counts:
            known = map(self.cells.__getitem__, headings)
            alike = (np.where(np.isnan(n), np.inf, n).tolist() if isinstance(n, np.ndarray) else n for n in known)
            self._counts[headings] = len(set(zip(*alike, strict=True)))
        return self._counts[headings]

    def varying(self) -> list[Column]:
        """The columns of what was set, and differs."""
        return [column for column in self.of(*SET) if self.distinct([column]) > 1]

    def put(self, column: Column, role: Role, why: str = "", **more: Any) -> Column:
        """Give a column another role, and why it is one."""
        judged = replace(column, role=role, why=why or column.why, **more)
        self.columns[self.columns.index(column)] = judged
        return judged

    def each(self, *judges: Callable[[Column, _Sheet], Column]) -> None:
        """Judge each column by itself, beside all of them as they were."""
        for judge in judges:
            self.columns = [judge(column, self) for column in self.columns]

    def change(self, chosen: Iterable[Column], role: Role, why: str = "") -> None:
        """Give columns another role, but for what the user says."""
        for column in chosen:
            if column.heading not in self.given:
                self.put(column, role, why)


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


def _latencies(sheet: _Sheet) -> None:
    """Where nothing is served, a latency is the time of the work."""
    served = any(column.words & WORDS["service"] for column in sheet.columns)
    if not sheet.of(Role.TIME):
        sheet.change((c for c in sheet.of(Role.LATENCY) if not served or "total" in c.words), Role.TIME)


def _constants(sheet: _Sheet) -> None:
    """A figure or clock that is the same in all rows is of something else where another one of its role differs."""
    for role in (*ANSWERING, Role.GRAPHICS_CLOCK):
        alike = sheet.open(role)
        differ = [column for column in alike if sheet.distinct([column]) > 1]
        if differ and sheet.rows >= _MANY:
            same = (column for column in alike if column not in differ and not column.words & WORDS["stages"])
            sheet.change(same, Role.UNUSED, f"the same in all rows, beside '{differ[0].heading}'")


def _clocks(sheet: _Sheet) -> None:
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


def _powers(sheet: _Sheet) -> None:
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
    return len(distinct) >= _FEWEST and bool((distinct % 5 == 0).all()) and len(np.unique(np.diff(distinct))) <= 2


def _operations(sheet: _Sheet) -> None:
    """FLOPs may be how many a model or a layer takes, and not how many were done in a second."""
    of_a_model = any(column.words & {"param", "params", "parameters"} for column in sheet.columns)
    flops = [column for column in sheet.open(Role.THROUGHPUT) if column.words <= HEADINGS["operations"]]
    sheet.change((c for c in flops if of_a_model or _are_counted(c, sheet.numbers(c))), Role.FIGURE, COUNTED)


def _are_counted(column: Column, values: Floats) -> bool:
    """Tell whether FLOPs without any other word are whole numbers, too many to be given as a speed."""
    plain = column.words <= {"flops", "flop", "macs"} and bool((values % 1 == 0).all())
    return plain and float(values.min(initial=math.inf)) > _COUNTED_FROM


def _blocks_of_repeats(sheet: _Sheet) -> None:
    """Beside repeats 'block' numbers blocks of them: no size of a block is 0."""
    blocks = (c for c in sheet.columns if c.heading.lower() == "block" and 0.0 in sheet.cells[c.heading])
    sheet.change(blocks if sheet.of(Role.REPEAT) else (), Role.UNUSED, OF_REPEATS)


def _done_in_a_time(sheet: _Sheet) -> None:
    """What differs from run to run of one length is how much was done, and was not chosen."""
    times = [sheet.numbers(column) for column in sheet.of(Role.TIME)]
    if sheet.rows >= _FEWEST and any(float(np.ptp(time)) < _SAME_TIME * float(np.mean(time)) for time in times):
        done = (c for c in sheet.of(Role.PARAMETER) if c.words & WORDS["done"] and sheet.texts(c) is None)
        sheet.change((column for column in done if sheet.distinct([column]) > 1), Role.FIGURE, COUNTED)


def _voltages(sheet: _Sheet) -> None:
    """A voltage that alone tells rows apart was set."""
    set_there = [c for c in sheet.of(*_TELLING, Role.REPEAT) if c.why or c.role is not Role.PARAMETER]
    rows = sheet.distinct(set_there)
    for column in sheet.open(Role.VOLTAGE):
        if rows < sheet.distinct([*set_there, column]) == sheet.rows and bool((sheet.numbers(column) % 1 == 0).all()):
            sheet.put(column, Role.PARAMETER, "a voltage that alone tells rows apart")


def _amounts(sheet: _Sheet) -> None:
    """How much was worked on tells rows apart that must not be compared; in a single size it is a constant."""
    tokens = any(c.words & {"tok", "token", "tokens", "tps"} for c in sheet.of(Role.THROUGHPUT))
    batches = [c for c in sheet.columns if "batch" in c.words and c.words <= {"batch", "size", "bs"}]
    beside = any(column not in batches for column in sheet.varying())
    if beside and not sheet.of(Role.THROUGHPUT, Role.WORK_ENERGY, Role.EFFICIENCY):  # the time of a larger batch
        sheet.change(batches, Role.WORK, WORKED_ON)
    sides = [c for c in sheet.columns if c.heading.lower() in ("width", "height") and c.heading not in sheet.given]
    sheet.change(sides if len(sides) == 2 else (), Role.WORK, WORKED_ON)
    works = sheet.of(Role.WORK)
    serving = any(c.words & ((WORDS["service"] | {"batch"}) - {"token", "tokens"}) for c in sheet.columns)
    asked_of_it = {"context"} | ({"seq", "seqlen", "input", "prompt"} if serving else set())
    single = [column for column in works if len(set(map(str, sheet.cells[column.heading]))) < 2]
    served = [c for c in works if tokens and c.words & asked_of_it and c not in single]
    sheet.change(single + served, Role.PARAMETER)


def _parameters(sheet: _Sheet) -> None:
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
        elif repeats and not column.why and sheet.distinct(others) == sheet.distinct([*others, column]):
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


def _telling_apart(sheet: _Sheet) -> list[Column]:
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


def _leave_incomplete(column: Column, others: Sequence[Column], sheet: _Sheet) -> None:
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
    return len(counts) > _FEWEST and len({*counts.values()}) == 1


def _explains(other: Column, column: Column, sheet: _Sheet) -> bool:
    """Tell whether all rows of a kind lack the value of a column, or none."""
    kinds, values = sheet.texts(other), sheet.cells[column.heading]
    missing = np.isnan(values).tolist() if isinstance(values, np.ndarray) else [not value for value in values]
    return kinds is not None and len({*zip(kinds, missing, strict=True)}) == len({*kinds})


def _is_complete(values: Cells) -> bool:
    """Whether no row lacks a value."""
    return bool(np.isfinite(values).all()) if isinstance(values, np.ndarray) else all(values)


def _unknown_texts(sheet: _Sheet) -> None:
    """Texts of which no word says whether they were chosen or name what ran: rows of different ones are kept apart.

    One that follows from another column tells nothing more, and the only one that varies is what is compared.
    Operations of each number format differ as well.
    """
    speeds = (column.heading.lower() for column in sheet.of(Role.THROUGHPUT))
    formats = {"precision", "dtype"} if any(map(PATTERNS["operations"].search, speeds)) else set[str]()
    plain = [c for c in sheet.of(Role.PARAMETER) if sheet.texts(c) is not None]
    by_cells = [c for c in sheet.columns if c.why in (BOARDS_THERE, RAN_THERE, CHOSEN_THERE)]
    texts = [*(c for c in plain if c.why == COME_AGAIN or c.words & formats), *by_cells]
    unknown = [c for c in sheet.columns if c in texts and c.heading not in sheet.given]
    telling = [column for column in sheet.of(*_TELLING) if column not in unknown]
    varying = any(column in telling for column in sheet.varying())
    for column in unknown:
        source = next((each for each in telling if _follows_from(column, each, sheet)), None)
        judged = column
        if source is not None and sheet.texts(source) is not None:
            judged = sheet.put(column, Role.UNUSED, f"follows from '{source.heading}'")
        elif varying and source is None and column.role is Role.PARAMETER and column.why != CHOSEN_THERE:
            both = () if column.words & WORDS["material"] else (Role.KERNEL, Role.PARAMETER)
            judged = sheet.put(column, Role.KERNEL, candidates=both)
        telling.append(judged)


def _follows_from(column: Column, source: Column, sheet: _Sheet) -> bool:
    """Tell whether what a column says is said by another: each of what ran is another choice, or one of what ran."""
    known = sheet.distinct([source])
    alike = source.role not in SET or column.why == COME_AGAIN or sheet.distinct([column]) == known
    return alike and 1 < known < sheet.rows and sheet.distinct([source, column]) == known


def _other_amounts(sheet: _Sheet) -> None:
    """Amounts in round numbers that tell otherwise equal rows apart were chosen: other work, and no repeats."""
    there = sheet.of(*_TELLING)
    amounts = [c for c in sheet.columns if c.why == COUNTED and _is_round(sheet.numbers(c))]
    telling = [c for c in amounts if sheet.distinct([*there, c]) > sheet.distinct(there)]
    sheet.change(telling, Role.WORK, "how much was worked on: equal rows differ in it")


def _is_round(values: Floats) -> bool:
    """Tell whether amounts are multiples of 10 or of 8, or powers, and differ by more than what is counted scatters."""
    amounts = np.unique(values)
    even = any(bool((amounts % step == 0).all()) for step in (8, 10)) or (len(amounts) > 2 and is_geometric(amounts))
    return len(amounts) > 1 and even and bool(amounts[0] > 0) and float(amounts[-1] / amounts[0]) > _SCATTER


def _unknown_numbers(sheet: _Sheet) -> None:
    """Numbers beside other choices of which no word says whether they were chosen or are how much was worked on.

    Rows of different ones are kept apart, and it is asked. A table of many such columns is one of a kernel's choices.
    """
    varying = sheet.varying()
    chosen = [c for c in varying if c.why == SOMEONE_CHOSE and c.heading not in sheet.given]
    unknown = [c for c in chosen if not {*np.unique(sheet.cells[c.heading]).tolist()} <= {0.0, 1.0}]  # no flags
    if math.prod(sheet.distinct([column]) for column in varying) > _LARGEST_SPACE:
        counted = (c for c in varying if c.why in (CHOICE, SOMEONE_CHOSE))
        sheet.change(counted, Role.FIGURE, "too many of them for someone to have chosen")
    elif len(unknown) < len(varying) and len(unknown) <= _MOST_ASKED:
        telling = [column for column in sheet.of(*_TELLING) if column not in unknown]
        for column in unknown:
            if sheet.distinct([*telling, column]) > sheet.distinct(telling):
                telling.append(column)
                sheet.put(column, Role.WORK, candidates=(Role.WORK, Role.PARAMETER))


# --- physics ----------------------------------------------------------------------------------------------------------


def _by_physics(sheet: _Sheet) -> None:
    """Units that no heading names, by energy = power x time; and what contradicts it.

    The energy of a piece of work, where power and the time of one give it, is the one that counts.
    """
    power, whole = main_column(sheet.columns, Role.POWER), main_column(sheet.columns, Role.ENERGY)
    energies = [column for column in sheet.columns if column is whole or column.role is Role.WORK_ENERGY]
    energies.sort(key=lambda column: column is whole)
    times = sheet.of(Role.TIME, Role.LATENCY)
    for energy in energies if power is not None else ():
        assert power is not None
        fits = [fit for each in times if (fit := _fit(energy, power, each, sheet)) is not None]
        best = min(fits, key=lambda fit: fit[0], default=None)
        if best is not None and best[0] < (_FITS if energy is whole else _OFF):
            roles = (Role.ENERGY, Role.POWER, Role.TIME)
            for column, role, scale in zip((energy, power, best[2]), roles, best[1], strict=True):
                why = f"{column.why}; energy is power times time"
                sheet.put(column, role, why, unit=BASE_UNIT[role.value], scale=scale, confirmed=True)
            break
        if best is not None and best[0] > _OFF and energy is whole:
            said = f"not '{power.heading}' times '{best[2].heading}': it differs by {100 * math.expm1(best[0]):.0f} %"
            sheet.put(energy, energy.role, contradicted=said)


def _fit(
    energy: Column, power: Column, time: Column, sheet: _Sheet
) -> tuple[float, tuple[float, float, float], Column] | None:
    """How far the median of energy / (power x time) is from 1, with the scales that make it least; None: no numbers."""
    values = np.stack([sheet.numbers(column) for column in (energy, power, time)])
    joules, watts, seconds = values[:, np.isfinite(values).all(axis=0) & (values > 0).all(axis=0)]
    ratios = joules / (watts * seconds)
    if len(ratios) < 2 or (len(ratios) < _FEWEST and np.ptp(np.log(ratios)) > _FITS):
        return None
    ratio, middle = float(np.median(ratios)), float(np.median(watts))
    tried = zip((energy, power, time), _SCALES, strict=True)
    scales = [(column.scale,) if not math.isnan(column.scale) else usual for column, usual in tried]
    fits = ((abs(math.log(ratio * e / (p * t))), (e, p, t), time) for e, p, t in product(*scales))

    def rank(fit: tuple[float, tuple[float, float, float], Column]) -> tuple[float, bool, bool, int]:
        (e, p, _), beyond = fit[1], middle * fit[1][1] > _PLAUSIBLE_W
        of_nvml = math.isnan(energy.scale) and p == 1e-3 != e  # which counts in mJ, too
        return round(fit[0], 6), beyond, of_nvml, sum(scale != 1.0 for scale in fit[1])  # Wh and ms: kWh and s

    return min(fits, key=rank)


def _of_a_batch(sheet: _Sheet) -> None:
    """Energies of a batch or a step are of different work where the sizes of batches differ."""
    if any("batch" in column.words for column in sheet.varying()) and sheet.of(Role.THROUGHPUT):
        of_batches = (c for c in sheet.of(Role.WORK_ENERGY) if c.words & WORDS["of_a_batch"])
        sheet.change(of_batches, Role.FIGURE, "of a batch or step, whose sizes differ")


def _beside_a_rate(sheet: _Sheet) -> None:
    """An energy beside a rate and no time: of the same work, or of the same time in all rows, as a power may show."""
    energy, power = (main_column(sheet.columns, role) for role in (Role.ENERGY, Role.POWER))
    known = sheet.of(Role.TIME, Role.WORK_ENERGY, Role.EFFICIENCY, Role.LATENCY)
    if (
        energy is None
        or known
        or energy.why == NAMED
        or not any(sheet.distinct([c]) > 1 for c in sheet.of(Role.THROUGHPUT))
    ):
        return
    if power is None:
        sheet.put(energy, Role.ENERGY, candidates=(Role.ENERGY, Role.FIGURE))
    elif float(np.ptp(np.log(over(sheet.numbers(energy), sheet.numbers(power))))) < _FITS:
        sheet.put(energy, Role.FIGURE, f"'{power.heading}' over one and the same time, and not of the same work")


def _counters(sheet: _Sheet) -> None:
    """An energy by a counter that grows from row to row may be what it stood at, and not what a row took."""
    for column in sheet.open(Role.ENERGY):
        grows = sheet.rows > _FEWEST and bool((np.diff(sheet.numbers(column)) > 0).all())
        if grows and column.words & WORDS["counter"] and not column.confirmed:
            sheet.put(column, Role.ENERGY, candidates=(Role.ENERGY, Role.FIGURE))


def _without_rest(sheet: _Sheet) -> None:
    """A dynamic energy or power beside what the board draws at rest is not all that it takes."""
    at_rest = any(column.words & WORDS["at_rest"] for column in sheet.columns if column.unit in ("J", "W"))
    for column in sheet.open(Role.ENERGY, Role.POWER) if at_rest else ():
        if column.words & WORDS["above_rest"] and main_column(sheet.columns, column.role) is column:
            sheet.put(column, column.role, candidates=(column.role, Role.FIGURE))


def _rivals(sheet: _Sheet, role: Role) -> None:
    """Of several times or energies that are no statistics of one, which is that of the work cannot be known."""
    chosen = main_column(sheet.columns, role)
    stems = {_stem(column) for column in sheet.of(role)}
    by_speed = {c.role for c in sheet.columns} & {Role.THROUGHPUT, Role.POWER, Role.ENERGY} == {Role.THROUGHPUT}
    alone = not sheet.of(*({Role.THROUGHPUT, Role.LATENCY, Role.ENERGY} - {role}))
    unknown = alone and len(stems) > 1 and all({*stem.split()} - _KNOWN for stem in stems)  # 'deepgemm_us, mine_us'
    if chosen is None or chosen.confirmed or len(chosen.why) >= 40:  # it says more than a name
        return
    of_a_part = len(stems) > 1 and chosen.words & WORDS["stages"] and "total" not in chosen.words
    if unknown or of_a_part or (role is Role.TIME and _are_several(chosen, stems, by_speed)):
        sheet.put(chosen, role, candidates=(role, Role.FIGURE))


def _stem(column: Column) -> str:
    """The words of a heading but for units and statistics."""
    plain = re.sub(r"[(\[].*", "", column.heading)
    return " ".join(word for word in words_of(plain) if word not in STATISTICS and word not in UNITS)


def _are_several(chosen: Column, stems: Collection[str], by_speed: bool) -> bool:
    """Tell whether times are of several things: of two sides, or of many of which none is called plainly and counts."""
    plain = any(not stem or stem in TIME_WORDS or len(stem.split()) == 1 for stem in stems)
    sides = {"cpu", "gpu"} <= {(*stem.split(), "")[0] for stem in stems} and not chosen.words & WORDS["whole_run"]
    return sides or (len(stems) > _MOST_TIMES and not plain and not by_speed)


# --- each column by the numbers of others -----------------------------------------------------------------------------


def _as_filled(column: Column, sheet: _Sheet) -> Column:
    """A figure that is 0 in all rows was not measured, where another column has it."""
    same = [c for c in sheet.of(column.role) if c.role in _UNIT_OF and c.role in MEASURED and c.why != NAMED]
    empty = column in same and not np.any(sheet.numbers(column)) and any(np.any(sheet.numbers(c)) for c in same)
    return replace(column, role=Role.UNUSED, why="0 in all rows") if empty else column


def _as_minutes(column: Column, sheet: _Sheet) -> Column:
    """A time in 'min' is one in minutes, unless another statistic of it stands beside."""
    if column.role is not Role.TIME or not math.isnan(column.scale) or words_of(column.heading)[-1] != "min":
        return column
    alone = [each for each in sheet.of(Role.TIME) if _stem(each) == _stem(column)] == [column]
    return replace(column, scale=60.0, why="a time in minutes by its name") if alone else column


def _as_megajoules(column: Column, sheet: _Sheet) -> Column:
    """'MJ' is megajoules where, over the time of the work, millijoules would be less than any board draws."""
    time = main_column(sheet.columns, Role.TIME)
    if column.role is not Role.ENERGY or not re.search("M(J|Wh)(?![a-z])", column.heading) or time is None:
        return column
    watts = over(sheet.numbers(column), sheet.numbers(time))
    drawn = float(np.median(watts[np.isfinite(watts)])) * column.scale / time.scale
    said = f"read as megajoules: in the small unit it would be {drawn:.2g} W"
    return replace(column, scale=column.scale * 1e9, contradicted=said) if 0 < drawn < _LEAST_W else column


def _as_counted(column: Column, sheet: _Sheet) -> Column:
    """A rate beside the amount of it and a time: it is their ratio, or contradicted, as the mean over users is."""
    words, time = column.words & TOKENS, main_column(sheet.columns, Role.TIME)  # of requests some may fail
    if column.role is not Role.THROUGHPUT or time is None or not words:
        return column
    counts = [c for c in sheet.columns if c.why == COUNTED and c.words & words]
    counts = [c for c in counts if c.words & (WORDS["all_of_it"] - {"tg"})]
    done = sheet.numbers(column) * sheet.numbers(time) * _in_usual_unit(time, sheet).scale
    off = {count.heading: np.abs(np.log(over(done, sheet.numbers(count)))) for count in counts}
    known = {heading: each[np.isfinite(each)] for heading, each in off.items()}
    middle = [float(np.median(each)) if len(each) >= _FEWEST else math.nan for each in known.values()]
    if any(each < _FITS for each in middle):
        return replace(column, confirmed=True)
    if middle and all(each > math.log(_SCATTER) for each in middle):
        return replace(column, contradicted=f"not '{counts[0].heading}' over '{time.heading}'")
    return column


def _as_of_one_request(column: Column, sheet: _Sheet) -> Column:
    """A mean rate of tokens that falls while that of requests grows is what each saw, and not what all had together."""
    rates = sheet.of(Role.THROUGHPUT)
    at_once = [each for each in sheet.of(Role.PARAMETER) if each.words & {"concurrency", "concurrent"}]
    of_requests = [each for each in rates if each.words & {"request", "requests", "req", "rps"}]
    requests = next(iter((*of_requests, *at_once)), None)
    means = [each for each in rates if each.words & (TOKENS | {"tps"}) and each.words & MEANS]
    if requests is None or means != [column] or column.contradicted:
        return column
    values = np.array([sheet.numbers(each) for each in (column, requests)])
    tokens, done = values[:, np.isfinite(values).all(axis=0)]
    falls = len(done) >= _FEWEST and np.ptp(done) > 0 < np.ptp(tokens) and np.corrcoef(tokens, done)[0, 1] < 0
    said = f"of single requests: it falls as '{requests.heading}' grows"
    both = (Role.THROUGHPUT, Role.FIGURE) if requests in at_once else ()  # nothing else says what all had together
    return replace(column, contradicted=said, candidates=both) if falls else column


def _as_measured(column: Column, sheet: _Sheet) -> Column:
    """A speed that is the same in several rows, of each kernel, is what something can do, and was not measured."""
    if column.role is not Role.THROUGHPUT or column.why == NAMED:
        return column
    kernels, rows = sheet.of(Role.KERNEL), len(sheet.cells[column.heading])
    count = sheet.distinct(kernels)
    same = _FEWEST * count <= rows and sheet.distinct([*kernels, column]) == count
    return replace(column, role=Role.UNUSED, why="the same in all rows of a kernel") if same else column


def _as_ratio(column: Column, sheet: _Sheet) -> Column:
    """A column that is a speed over a power is work per energy, whatever its name; the inverse is energy per work."""
    power = main_column(sheet.columns, Role.POWER)
    if power is None or column.confirmed or column.role not in _RATIOS:
        return column
    values, watts = sheet.numbers(column), sheet.numbers(power)
    for rate in sheet.of(Role.THROUGHPUT):
        ratio = over(sheet.numbers(rate), watts)
        both = np.isfinite(values) & np.isfinite(ratio) & (values > 0) & (ratio > 0)
        few = both.sum() < _FEWEST or np.unique(values[both]).size < _FEWEST
        for role, sign, (of, by) in ((Role.EFFICIENCY, 1, (rate, power)), (Role.WORK_ENERGY, -1, (power, rate))):
            if not few and float(np.quantile(np.abs(values[both] / ratio[both] ** sign - 1.0), 0.9)) < _FITS:
                why = f"'{of.heading}' over '{by.heading}'"
                return replace(column, role=role, unit="", scale=1.0, why=why, confirmed=True)
    return column


def _in_usual_unit(column: Column, sheet: _Sheet) -> Column:
    """A column without a unit: as its numbers are plausible for a board, else as they are."""
    if not math.isnan(column.scale):
        return column
    values = np.abs(sheet.numbers(column))
    finite = values[np.isfinite(values)]
    middle = float(np.median(finite)) if len(finite) else 0.0
    scale = 1.0
    if column.unit == "W" and middle > _PLAUSIBLE_ALONE_W:
        scale = 1e-3
    elif column.unit == "MHz":
        scale = 1e-6 if middle > 1e8 else 1e-3 if middle > 1e5 else 1e3 if 0 < middle < 10 else 1.0
    return replace(column, scale=scale, scale_is_guessed=True)


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
            of_a_part = bool(words & (EXTREME | WORDS["part_of_it"] | HEADINGS["beside"]))
            of_steps = bool(words & WORDS["of_a_batch"])
            return bool(column.contradicted), of_a_part, of_steps, not whole, not whole - {"total"}, not named
        if column.role is Role.TIME:
            partial = bool(words & (EXTREME | WORDS["partial"] | WORDS["parts_of_a_run"] | WORDS["stages"]))
            partial = bool(words & HEADINGS["beside"]) or (partial and "total" not in words)
            return not column.confirmed, partial, not words & WORDS["whole_run"], not words & WORDS["one_of_many"]
        extreme, partial = bool(words & EXTREME), bool(words & (WORDS["partial"] | HEADINGS["beside"]))
        one = any(map(str.isdigit, words))  # of several boards
        return not column.confirmed, extreme, partial, one, not words & {"gpu", "total", "avg"}

    return min((column for column in columns if column.role is role), key=rank, default=None)
