"""Factors: partial tables of valid combinations. A space is built by joining factors and filtering while doing so.

A factor holds the combinations of some parameters that have survived so far; the space is always the product of its
factors. A restriction joins the factors it concerns, see `build.join`; the product of those left is the table.

Where restrictions hold, over the product of the distinct combinations of several factors.

The factors are added one after the other. A combination that cannot become valid any more, by the intervals in which
the values of the other factors lie, is dropped at once. The walk is depth first, a block of combinations at a time, so
that memory stays small however many are valid.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError, WattridgeError
from ...base.text import shortened
from .arithmetic import Column, Operand
from .expression import Expression, Possibility
from .intervals import Interval, hull_of
from .keys import MAX_SPAN, radix, smallest_dtype
from .values import ValuesExpression, ValuesFunction

Integers = npt.NDArray[np.signedinteger]
Codes = npt.NDArray[np.unsignedinteger]
Mask = npt.NDArray[np.bool_]
_BLOCK = 2**18  # rows made at once
_DECODED = 2**15  # rows of the table decoded at once
_FEW_CODES = 32
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
    """The distinct combinations of some of a factor's parameters, and the one that each row of the factor has."""

    codes: Mapping[str, Codes]
    size: int
    group: Integers | None = None  # shape (rows,); None if the combinations are the factor's rows themselves

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
    for start in range(0, length, _BLOCK):  # keys for now, replaced by the groups below
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
    """One integer per row, the same for the same combination."""
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

    Yields (parent, within): which row each one repeats, and the number of the repeat, from 0.
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
    """Raise InputError if a table would have more rows than allowed."""
    if rows > limit:
        raise InputError(
            f"the search space has more than {limit:,} configurations",
            "parameters",
            "restrict it, or give fewer values",
        )


# --- the table --------------------------------------------------------------------------------------------------------


def sorted_table(
    factors: list[Factor], values: Mapping[str, Column], names: Sequence[str]
) -> tuple[dict[str, Column], Codes]:
    """The values that occur, by parameter, and the codes of all rows in the order of `names`, sorted.

    Shape (rows, parameters). The list of factors is emptied, so that they are released before the table is complete.
    """
    occurring = dict(values)
    reduced: list[Factor] = []
    while factors:
        columns: dict[str, Codes] = {}
        factor = factors.pop()
        for name, column in factor.codes.items():
            occurring[name], columns[name] = _occurring(occurring[name], column)
        reduced.append(Factor(columns, factor.size))
    sizes = [len(occurring[name]) for name in names]
    span = math.prod(sizes)
    if span > MAX_SPAN:
        codes = product(reduced).codes
        order = np.lexsort([codes[name] for name in reversed(names)])
        kind = smallest_dtype(sizes)
        return occurring, np.stack([codes[name][order].astype(kind) for name in names], axis=1)
    key = _sorted_keys(reduced, dict(zip(names, radix(sizes).tolist(), strict=True)), span)
    return occurring, _decoded(key, sizes)


def _occurring(values: Column, codes: Codes) -> tuple[Column, Codes]:
    """The values that some row takes, and the codes among those."""
    used = np.zeros(len(values), dtype=np.bool_)
    used[codes[:_DECODED]] = True
    unseen = np.flatnonzero(~used).tolist()
    if len(unseen) > _FEW_CODES:
        used[codes] = True
    else:  # comparing is quicker than marking
        for code in unseen:
            used[code] = bool((codes == code).any())
    if used.all():
        return values, codes
    return values[used], (np.cumsum(used) - 1).astype(smallest_dtype([len(values)]))[codes]


def _sorted_keys(factors: list[Factor], weight: Mapping[str, int], span: int) -> Codes:
    """One integer below `span` per row of the product of the factors, ascending. Empties the list."""
    kind: np.dtype[np.unsignedinteger] = np.dtype(np.uint32 if span < 2**32 else np.uint64)
    key: Codes = np.zeros(1, dtype=kind)
    factors.sort(key=lambda factor: factor.size, reverse=True)
    while factors:
        keys = _keys(factors.pop(), weight, kind)
        key = keys + key[0] if len(key) == 1 else (keys[:, None] + key[None, :]).ravel()
    if span > 16 * len(key):
        key.sort()
        return key
    present = np.zeros(span, dtype=np.bool_)  # quicker than sorting where keys lie densely
    for start in range(0, len(key), _DECODED):
        present[key[start : start + _DECODED]] = True
    filled = 0
    for start in range(0, span, _DECODED):
        indices = np.flatnonzero(present[start : start + _DECODED])
        key[filled : filled + len(indices)] = indices + start
        filled += len(indices)
    return key


def _keys(factor: Factor, weight: Mapping[str, int], kind: np.dtype[np.unsignedinteger]) -> Codes:
    """What each row of a factor adds to the keys."""
    keys: Codes = np.zeros(factor.size, dtype=kind)
    for start in range(0, factor.size, _DECODED):
        for name, column in factor.codes.items():
            keys[start : start + _DECODED] += column[start : start + _DECODED] * kind.type(weight[name])
    return keys


def _decoded(key: Codes, sizes: Sequence[int]) -> Codes:
    """The codes behind keys, shape (rows, axes)."""
    table = np.zeros((len(key), len(sizes)), dtype=smallest_dtype(sizes))
    weights = radix(sizes).astype(key.dtype)
    for start in range(0, len(key), _DECODED):
        left = key[start : start + _DECODED].copy()
        for axis, (size, weight) in enumerate(zip(sizes, weights, strict=True)):
            if size > 1:
                code = left // weight
                left -= code * weight
                table[start : start + _DECODED, axis] = code
    return table


_COMBINATIONS = 2**16  # combinations evaluated at once
MAX_COST = 10**10  # of one build, about ns

Evaluated = Expression | ValuesExpression | ValuesFunction
Test = Callable[[Mapping[str, Operand], tuple[int, ...]], Mask]
Places = tuple[Integers, ...]  # of each factor's distinct combinations, one entry per combination of them all


class Effort:
    """Adds up what evaluations cost, and refuses those beyond the limit, so that no space keeps the program busy."""

    def __init__(self, stop: threading.Event | None = None) -> None:
        self._left = MAX_COST
        self._stop = stop

    def spend(self, combinations: int, evaluated: Evaluated, beside: int = 1) -> None:
        """Raise InputError where evaluating it over so many combinations is too much work.

        `beside` is what else each of them costs, in ns. Raises WattridgeError once `stop` is set.
        """
        if self._stop is not None and self._stop.is_set():
            raise WattridgeError("stopped before the space was built", "space", "build it again")
        self._left -= combinations * (beside + evaluated.cost)
        if self._left < 0:
            raise InputError(
                f"'{shortened(evaluated.text)}' over so many combinations is too large to check",
                evaluated.where,
                "split it, or restrict its parameters further",
            )


@dataclass(frozen=True, slots=True)
class Scope:
    """What a restriction may name: each parameter's values by code, and what is the same everywhere; the work left."""

    values: Mapping[str, Column]
    fixed: dict[str, Operand]
    effort: Effort


class Check:
    """Checks restrictions that name nothing but the parameters of `parts`, and what is fixed."""

    def __init__(self, parts: Sequence[Distinct], restrictions: Sequence[Expression], scope: Scope) -> None:
        self.left = [0] * len(restrictions)  # rows of the factors' product after each restriction
        self._parts = parts
        self._restrictions = restrictions
        self._fixed = scope.fixed
        self._effort = scope.effort
        self._values = [{name: scope.values[name][codes] for name, codes in part.codes.items()} for part in parts]
        self._may_hold: list[Test] = [_anywhere] * (len(parts) - 1)
        if math.prod(part.size for part in parts) > _COMBINATIONS:  # below that it costs more than it saves
            possible = restrictions[0].possibility()  # of the first alone: the others' shares are counted below
            hulls = [{name: hull_of(column) for name, column in columns.items()} for columns in self._values]
            for depth in range(len(parts) - 1):
                unknown = {name: hull for part in hulls[depth + 1 :] for name, hull in part.items()}
                self._may_hold[depth] = _within(possible, unknown)

    def places(self) -> Iterator[Places]:
        """Blocks of combinations at which all restrictions hold. Raises InputError if that is too much work."""
        return self._walk(0, ())

    def _walk(self, depth: int, places: Places) -> Iterator[Places]:
        """Add the next part: one axis over the combinations so far, one over its own."""
        size = self._parts[depth].size
        width = min(size, _COMBINATIONS)
        height = max(1, _COMBINATIONS // max(1, width))
        for top in range(0, len(places[0]) if places else 1, height):
            some = tuple(place[top : top + height, None] for place in places)
            operands: dict[str, Operand] = dict(self._fixed)
            for columns, place in zip(self._values, some, strict=False):
                operands |= {name: column[place] for name, column in columns.items()}
            for left in range(0, size, width):
                operands |= {name: column[left : left + width] for name, column in self._values[depth].items()}
                shape = (len(some[0]) if some else 1, min(width, size - left))
                for restriction in self._restrictions:
                    self._effort.spend(math.prod(shape), restriction)
                if depth < len(self._parts) - 1:
                    true = np.flatnonzero(self._may_hold[depth](operands, shape))
                    yield from self._walk(depth + 1, _grown(some, true, shape[1], left))
                else:
                    true = np.flatnonzero(self._holds(operands, shape, some, left))
                    yield _grown(some, true, shape[1], left)

    def _holds(self, known: Mapping[str, Operand], shape: tuple[int, int], some: Places, left: int) -> Mask:
        """Where all restrictions hold; the rows that each one leaves are counted."""
        rows = self._rows_behind(shape, some, left)
        mask: Mask = np.ones(shape, dtype=np.bool_)
        for index, restriction in enumerate(self._restrictions):
            mask = mask & restriction.mask(known, shape)
            self.left[index] += int(np.count_nonzero(mask)) if rows is None else int(rows[mask].sum())
        return mask

    def _rows_behind(self, shape: tuple[int, int], some: Places, left: int) -> Integers | None:
        """How many rows have each combination of a block; None if it is one each."""
        *before, last = self._parts
        if all(part.group is None for part in self._parts):
            return None
        rows = np.ones((shape[0], 1), dtype=np.int64)
        for part, place in zip(before, some, strict=True):
            rows = rows * part.counts[place]
        return rows * last.counts[left : left + shape[1]]


def _grown(some: Places, flat: Integers, width: int, left: int) -> Places:
    """The combinations of a block at flat indices, the last part's place being `left` and on."""
    return (*(place[flat // width, 0] for place in some), flat % width + left)


def _anywhere(_: Mapping[str, Operand], shape: tuple[int, ...]) -> Mask:
    return np.ones(shape, dtype=np.bool_)


def _within(possible: Possibility, unknown: Mapping[str, Interval]) -> Test:
    """The test whether a restriction may hold while some names are only known to lie in an interval."""
    return lambda known, shape: possible({**known, **unknown}, shape)
