"""Factors: partial tables of valid combinations. A space is built by joining factors and filtering while doing so.

A factor holds the combinations of some parameters that have survived so far; the space is always the product of its
factors. A restriction joins the factors it concerns, see `joining`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ..expressions.arithmetic import Column
from .keys import MAX_SPAN

Integers = npt.NDArray[np.signedinteger]
Codes = npt.NDArray[np.unsignedinteger]
Mask = npt.NDArray[np.bool_]
_BLOCK = 2**18  # rows made at once
_GROUPED = 2**22  # rows, or possible combinations, up to which equal ones are looked for: it takes memory


@dataclass(frozen=True, slots=True)
class Factor:
    """Surviving combinations of some parameters: one column of codes per parameter, all of one length."""

    codes: Mapping[str, Codes]
    size: int

    def kept(self, mask: Mask) -> Factor:
        """The rows where the mask holds."""
        return Factor({name: column[mask] for name, column in self.codes.items()}, int(np.count_nonzero(mask)))


@dataclass(frozen=True)
class Distinct:
    """The distinct combinations of some of a factor's parameters, and which of them each row of the factor has."""

    codes: Mapping[str, Codes]
    size: int
    group: Integers | None = None  # shape (rows,); None where the combinations are the factor's rows themselves

    @cached_property
    def counts(self) -> Integers:
        """How many rows have each combination."""
        return np.bincount(self.groups, minlength=self.size)

    @cached_property
    def order(self) -> Integers:
        """The rows, those of one combination together."""  # 16 bits are sorted by radix
        return np.argsort(self.groups.astype(np.uint16 if self.size <= 2**16 else np.int64), kind="stable")

    @cached_property
    def start(self) -> Integers:
        """Where the rows of each combination begin in `order`."""
        return np.cumsum(self.counts) - self.counts

    @property
    def groups(self) -> Integers:
        return np.arange(self.size) if self.group is None else self.group


def distinct(factor: Factor, names: Sequence[str], values: Mapping[str, Column]) -> Distinct:
    """Group a factor's rows by the parameters in `names`, those in the factor; `values` by code."""
    names = [name for name in names if name in factor.codes]
    columns = {name: factor.codes[name] for name in names}
    span = math.prod(len(values[name]) for name in names)
    if len(names) == len(factor.codes) or min(span, factor.size) > _GROUPED:  # distinct already, or pass for it
        return Distinct(columns, factor.size)
    first: Integers
    group: Integers
    if span <= max(2**16, 4 * factor.size):
        first, group = _numbered(columns, values, span, factor.size)
    else:
        _, first, group = np.unique(_combined(columns, values, factor.size), return_index=True, return_inverse=True)
    return Distinct({name: column[first] for name, column in columns.items()}, len(first), group)


def _numbered(
    columns: Mapping[str, Codes], values: Mapping[str, Column], span: int, length: int
) -> tuple[Integers, Integers]:
    """A row of each combination, and which combination each row has, by a table of `span` entries."""
    row_of = np.full(span, -1, dtype=np.int32)
    group = np.empty(length, dtype=np.int32)
    for start in range(0, length, _BLOCK):  # the keys stand in for the groups, which take their place below
        rows = slice(start, min(start + _BLOCK, length))
        group[rows] = _combined({name: column[rows] for name, column in columns.items()}, values, rows.stop - start)
        row_of[group[rows]] = np.arange(start, rows.stop, dtype=np.int32)
    present = np.flatnonzero(row_of >= 0)
    first = row_of[present]
    row_of[present] = np.arange(len(present), dtype=np.int32)
    for start in range(0, length, _BLOCK):
        rows = slice(start, min(start + _BLOCK, length))
        group[rows] = row_of[group[rows]]
    return first, group


def _combined(columns: Mapping[str, Codes], values: Mapping[str, Column], length: int) -> Integers:
    """One integer per row that tells its combination apart."""
    key: Integers = np.zeros(length, dtype=np.int64)
    span = 1
    for name, column in columns.items():
        size = len(values[name])
        if span * size > MAX_SPAN:
            unique, key = np.unique(key, return_inverse=True)
            span = len(unique)
        key = key * size + column
        span *= size
    return key


def spread(counts: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Walk the rows that come of repeating row i counts[i] times, a block at a time.

    Yields (parent, within): which row each one repeats, and the how many-th repeat it is.
    """
    ends = np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, _BLOCK):
        stop = min(start + _BLOCK, total)
        first, last = np.searchsorted(ends, start, side="right"), np.searchsorted(ends, stop, side="left")
        covered = np.arange(first, last + 1)
        begin = ends[covered] - counts[covered]
        share = np.minimum(ends[covered], stop) - np.maximum(begin, start)
        yield np.repeat(covered, share), np.arange(start, stop) - np.repeat(begin, share)


def product(factors: Sequence[Factor]) -> Factor:
    """The product of factors, rows in the order of the first, then the second, and so on."""
    total = math.prod(factor.size for factor in factors)
    codes: dict[str, Codes] = {}
    inner = total
    for factor in factors:
        inner //= max(1, factor.size)
        outer = total // max(1, factor.size * inner)
        codes |= {name: np.tile(np.repeat(column, inner), outer) for name, column in factor.codes.items()}
    return Factor(codes, total)


def check_size(rows: float, limit: int) -> None:
    """Raise InputError where a table would have more rows than allowed."""
    if rows > limit:
        raise InputError(
            f"the search space has more than {limit:,} configurations",
            "parameters",
            "restrict it, or give fewer values",
        )
