"""Factors: partial tables of valid combinations. A space is built by joining factors and filtering while doing so.

A factor holds the combinations of some parameters that have survived so far; the space is always the product of its
factors. A restriction joins the factors it concerns. It is evaluated once per distinct combination of the parameters it
names, by broadcasting one axis per factor, never once per row of the product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.engine.arithmetic import Column
from app.engine.space.keys import MAX_SPAN
from app.errors import InputError

Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.unsignedinteger]
Mask = npt.NDArray[np.bool_]
_CHUNK = 2**20  # combinations evaluated at once


@dataclass(frozen=True, slots=True)
class Factor:
    """Surviving combinations of some parameters: one column of codes per parameter, all of one length."""

    codes: Mapping[str, Codes]
    size: int

    def take(self, rows: Integers | Mask) -> dict[str, Codes]:
        return {name: column[rows] for name, column in self.codes.items()}


@dataclass(frozen=True, slots=True)
class Distinct:
    """The distinct combinations of some of a factor's parameters, how often each occurs, and which one each row has."""

    codes: Mapping[str, Codes]
    counts: Integers
    group: Integers  # shape (factor.size,)

    @property
    def size(self) -> int:
        return len(self.counts)


def combined_key(columns: Sequence[npt.NDArray[np.integer]], sizes: Sequence[int], length: int) -> tuple[Integers, int]:
    """One integer per row that tells its combination apart, and the bound below which all lie."""
    key, span = np.zeros(length, dtype=np.int64), 1
    for column, size in zip(columns, sizes, strict=True):
        if span * size > MAX_SPAN:
            unique, key = np.unique(key, return_inverse=True)
            span = len(unique)
        key = key * size + column
        span *= size
    return key, span


def distinct(factor: Factor, names: Sequence[str], sizes: Mapping[str, int]) -> Distinct:
    """Group a factor's rows by the parameters in `names`."""
    if len(names) == len(factor.codes):  # rows of a factor are distinct already
        return Distinct(factor.codes, np.ones(factor.size, np.int64), np.arange(factor.size))
    key, span = combined_key([factor.codes[name] for name in names], [sizes[name] for name in names], factor.size)
    if span <= max(2**16, 4 * factor.size):
        frequency = np.bincount(key, minlength=span)
        present = np.flatnonzero(frequency)
        place = np.empty(span, dtype=np.int64)
        place[present] = np.arange(len(present))
        one_row = np.empty(span, dtype=np.int64)
        one_row[key] = np.arange(factor.size)
        first, group, counts = one_row[present], place[key], frequency[present]
    else:
        _, first, group, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    return Distinct({name: factor.codes[name][first] for name in names}, counts, group)


def join(
    factors: Sequence[Factor],
    names: Sequence[str],
    mask: Callable[[Mapping[str, Column], tuple[int, ...]], Mask],
    values: Mapping[str, Column],
    limit: int,
) -> Factor:
    """The product of the factors, reduced to where `mask` over the parameters `names` holds.

    `values` has each parameter's values by code. Raises InputError where more than `limit` rows would survive or the
    check itself would take too long; neither is tried.
    """
    sizes = {name: len(column) for name, column in values.items()}
    parts = [distinct(factor, [name for name in names if name in factor.codes], sizes) for factor in factors]
    kept = _valid(parts, mask, values, limit)
    if len(factors) == 1:
        keep = np.zeros(parts[0].size, dtype=np.bool_)
        keep[kept] = True
        rows = np.flatnonzero(keep[parts[0].group])
        return Factor(factors[0].take(rows), len(rows))
    shape = [part.size for part in parts]
    grouped = [part.size < factor.size for factor, part in zip(factors, parts, strict=True)]
    repeats = np.ones(len(kept))  # rows behind each kept combination; floats, which do not wrap around
    for axis, part in enumerate(parts):
        if grouped[axis]:
            repeats *= part.counts[_place(kept, axis, shape)]
    check_size(float(repeats.sum()), limit)
    each = repeats.astype(np.int64)
    within = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each) if any(grouped) else each
    codes: dict[str, Codes] = {}
    for axis, (factor, part) in enumerate(zip(factors, parts, strict=True)):
        place = _place(kept, axis, shape)
        if any(grouped):
            place = np.repeat(place, each)
        if grouped[axis]:  # which of the rows with these values
            order = np.argsort(part.group, kind="stable")
            start, count = np.cumsum(part.counts) - part.counts, part.counts[place]
            place = order[start[place] + within % count]
            within = within // count
        codes |= factor.take(place)
    return Factor(codes, len(within))


def _place(flat: Integers, axis: int, shape: Sequence[int]) -> Integers:
    """The place along one axis of flat indices into an array of that shape."""
    return flat // math.prod(shape[axis + 1 :]) % shape[axis]


def _valid(
    parts: Sequence[Distinct],
    mask: Callable[[Mapping[str, Column], tuple[int, ...]], Mask],
    values: Mapping[str, Column],
    limit: int,
) -> Integers:
    """Flat indices, over the product of the parts, at which the mask holds; at most `limit` of them."""
    shape = tuple(part.size for part in parts)
    if math.prod(shape) > 5 * 10**8:
        raise InputError(
            f"a restriction over {math.prod(shape):.1e} combinations is too large to check",
            "restrictions",
            "split it, or restrict its parameters further",
        )
    outer = 1  # leading axes are walked in blocks, flattened into one axis
    while math.prod(shape[outer:]) > _CHUNK:
        outer += 1
    rest, rows = math.prod(shape[outer:]), math.prod(shape[:outer])
    step = max(1, _CHUNK // max(1, rest))
    found: list[Integers] = []
    total = 0
    for start in range(0, rows, step):
        block = np.arange(start, min(start + step, rows))
        places = np.unravel_index(block, shape[:outer])
        columns: dict[str, Column] = {}
        for axis, part in enumerate(parts):
            outline = [1] * (1 + len(parts) - outer)
            outline[max(0, axis - outer + 1)] = -1
            for name, codes in part.codes.items():
                chosen = codes[places[axis]] if axis < outer else codes
                columns[name] = values[name][chosen].reshape(outline)
        valid = mask(columns, (len(block), *shape[outer:]))
        found.append(np.flatnonzero(valid) + start * rest)
        total += len(found[-1])
        check_size(total, limit)
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def product(factors: Sequence[Factor]) -> Factor:
    """The product of factors, rows in the order of the first, then the second, and so on."""
    total = math.prod(factor.size for factor in factors)
    codes: dict[str, Codes] = {}
    inner = total
    for factor in factors:
        inner //= max(1, factor.size)
        rows = np.tile(np.repeat(np.arange(factor.size), inner), total // max(1, factor.size * inner))
        codes |= factor.take(rows)
    return Factor(codes, total)


def check_size(rows: float, limit: int) -> None:
    """Raise InputError where a table would have more rows than allowed."""
    if rows > limit:
        raise InputError(
            f"the search space has more than {limit:,} configurations",
            "parameters",
            "restrict it, or give fewer values",
        )
