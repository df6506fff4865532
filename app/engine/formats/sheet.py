"""The columns of a table beside each other, as far as they are judged, and which of a role counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ...base.vocabulary import HEADINGS, PATTERNS, UNITS, WORDS
from .headings import (
    BASE_UNIT,
    EXTREME,
    SET,
    STATISTICS,
    TIME_WORDS,
    Cells,
    Column,
    Floats,
    Role,
    by_itself,
)

NAMED: Final = "as named"
SUM_OF_PARTS: Final = "the sum of other times of the table, in each row"
_LOOKED_AT: Final = 20_000  # rows by which columns are judged
FEWEST: Final = 3  # rows in which a relation must hold
SAME_TIME: Final = 0.02  # share by which runs of one length differ
SCATTER: Final = 1.5  # ratio of amounts that were counted
UNIT_OF: Final = {
    **{Role(quantity): unit for quantity, unit in BASE_UNIT.items() if quantity != "clock"},
    **dict.fromkeys((Role.GRAPHICS_CLOCK, Role.MEMORY_CLOCK, Role.OBSERVED_CLOCK, Role.CLOCK_OFFSET), "MHz"),
} | {Role.LATENCY: "s", Role.POWER_LIMIT: "W"}


class Sheet:
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

    def each(self, *judges: Callable[[Column, Sheet], Column]) -> None:
        """Judge each column by itself, beside all of them as they were."""
        for judge in judges:
            self.columns = [judge(column, self) for column in self.columns]

    def change(self, chosen: Iterable[Column], role: Role, why: str = "") -> None:
        """Give columns another role, but for what the user says."""
        for column in chosen:
            if column.heading not in self.given:
                self.put(column, role, why)


def is_sum(whole: Floats, parts: Sequence[Floats]) -> bool:
    """Tell whether numbers are the sums of others, each less than they are, in each of several rows."""
    known = np.array([whole, *parts])
    known = known[:, np.isfinite(known).all(axis=0)]
    off = np.abs(known[1:].sum(axis=0) - known[0])
    return known.shape[1] >= FEWEST and bool((known[1:] < known[0]).all() and (off <= SAME_TIME * known[0]).all())


def _as_named(column: Column, role: Role) -> Column:
    """With the role that the user names; its unit is to be found where the heading has none of that quantity."""
    unit = UNIT_OF.get(role, "")
    scale = column.scale if unit == column.unit else math.nan if unit else 1.0
    return Column(column.heading, role, unit, scale, NAMED)


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

    columns = list(columns)
    plain = TIME_WORDS | STATISTICS | UNITS.keys()  # of all of one run; a total may be of many
    plain |= WORDS["total"] if not any(column.words & WORDS["done"] for column in columns) else set()

    def rank(column: Column) -> tuple[bool, ...]:
        words = column.words
        if column.role is Role.THROUGHPUT:
            named, whole = "/" in column.heading or "per" in words, words & WORDS["all_of_it"]
            of_a_part = bool(words & (EXTREME | WORDS["part_of_it"] | HEADINGS["beside"]))
            of_steps = bool(words & WORDS["of_a_batch"])
            of_hardware = [PATTERNS[kind].search(column.heading) is not None for kind in ("traffic", "hardware")]
            known = (bool(column.contradicted), *of_hardware, of_a_part, of_steps)
            return *known, not whole, not whole - {"total"}, not named
        if column.role is Role.TIME:
            partial = bool(words & (EXTREME | WORDS["partial"] | WORDS["parts_of_a_run"] | WORDS["stages"]))
            partial = bool(words & HEADINGS["beside"]) or (partial and "total" not in words)
            of_a_run = not words & WORDS["whole_run"], not words & WORDS["one_of_many"], not words <= plain
            return not column.confirmed, column.why != SUM_OF_PARTS, partial, *of_a_run
        extreme, partial = bool(words & EXTREME), bool(words & (WORDS["partial"] | HEADINGS["beside"]))
        one = any(map(str.isdigit, words))  # of several boards
        return not column.confirmed, extreme, partial, one, not words & {"gpu", "total", "avg"}

    return min((column for column in columns if column.role is role), key=rank, default=None)
