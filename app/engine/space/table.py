"""From factors to the table of a space: the product of all of them, as codes, sorted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..expressions.arithmetic import Column
from .factors import Codes, Factor, product
from .keys import MAX_SPAN, radix
from .search_space import smallest_dtype

_BLOCK = 2**15  # rows decoded at once
_FEW = 32  # codes


def sorted_table(
    factors: list[Factor], values: Mapping[str, Column], names: Sequence[str]
) -> tuple[dict[str, Column], Codes]:
    """The values that occur, by parameter, and the codes of all rows in the order of `names`, sorted.

    Shape (rows, parameters). The list of factors is emptied, so that they are gone before the table is there.
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
    used[codes[:_BLOCK]] = True
    unseen = np.flatnonzero(~used).tolist()
    if len(unseen) > _FEW:
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
        own = _keys(factors.pop(), weight, kind)
        key = own + key[0] if len(key) == 1 else (own[:, None] + key[None, :]).ravel()
    if span > 16 * len(key):
        key.sort()
        return key
    present = np.zeros(span, dtype=np.bool_)  # quicker than sorting where keys lie densely
    for start in range(0, len(key), _BLOCK):
        present[key[start : start + _BLOCK]] = True
    filled = 0
    for start in range(0, span, _BLOCK):
        found = np.flatnonzero(present[start : start + _BLOCK])
        key[filled : filled + len(found)] = found + start
        filled += len(found)
    return key


def _keys(factor: Factor, weight: Mapping[str, int], kind: np.dtype[np.unsignedinteger]) -> Codes:
    """What each row of a factor adds to the keys."""
    keys: Codes = np.zeros(factor.size, dtype=kind)
    for start in range(0, factor.size, _BLOCK):
        for name, column in factor.codes.items():
            keys[start : start + _BLOCK] += column[start : start + _BLOCK] * kind.type(weight[name])
    return keys


def _decoded(key: Codes, sizes: Sequence[int]) -> Codes:
    """The codes behind keys, shape (rows, axes)."""
    table = np.zeros((len(key), len(sizes)), dtype=smallest_dtype(sizes))
    weights = radix(sizes).astype(key.dtype)
    for start in range(0, len(key), _BLOCK):
        left = key[start : start + _BLOCK].copy()
        for axis, (size, weight) in enumerate(zip(sizes, weights, strict=True)):
            if size > 1:
                code = left // weight
                left -= code * weight
                table[start : start + _BLOCK, axis] = code
    return table
