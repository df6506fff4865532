"""Applying restrictions: the factors they concern are joined, and only the combinations that they allow are kept."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from ..expressions.arithmetic import Operand
from ..expressions.expression import Expression
from .checking import Check, Places, Scope
from .factors import Codes, Distinct, Factor, Integers, check_size, distinct, spread

_A_LOOK = 2**22  # combinations that are evaluated to estimate a join
_ROW_COST = 40  # of making a joined row, about, in ns


def restrict(factor: Factor, restriction: Expression, scope: Scope) -> Factor:
    """The rows of a factor at which the restriction holds. Raises InputError where the check is too much work."""
    return _reduced([factor], [distinct(factor, restriction.names, scope.values)], restriction, scope)[0][0]


def thinned(factors: Sequence[Factor], restriction: Expression, scope: Scope) -> tuple[list[Factor], float] | None:
    """The factors without the rows that no rows of the others make valid, and the share of their product that is valid.

    Nothing is joined. None where there are too many distinct combinations for that to pay.
    """
    parts = [distinct(factor, restriction.names, scope.values) for factor in factors]
    if math.prod(part.size for part in parts) > _A_LOOK:
        return None
    return _reduced(factors, parts, restriction, scope)


def _reduced(
    factors: Sequence[Factor], parts: Sequence[Distinct], restriction: Expression, scope: Scope
) -> tuple[list[Factor], float]:
    """As `thinned`, for factors and their distinct combinations."""
    masks = [np.zeros(part.size, dtype=np.bool_) for part in parts]
    check = Check(parts, [restriction], scope)
    for places in check.places():
        for place, mask in zip(places, masks, strict=True):
            mask[place] = True
    kept = [
        factor.kept(mask if part.group is None else mask[part.group])
        for factor, part, mask in zip(factors, parts, masks, strict=True)
    ]
    return kept, check.left[0] / max(1.0, math.prod(float(factor.size) for factor in factors))


def join(
    factors: Sequence[Factor], restrictions: Sequence[Expression], scope: Scope, limit: int
) -> tuple[Factor, list[tuple[Expression, int]]]:
    """The product of several factors, reduced to where all restrictions hold, and the rows left after each of them.

    The first, and those that name nothing else, are checked by distinct combinations, the others on the rows that these
    leave, while they are made. Raises InputError where more than `limit` rows would survive or the check is too much
    work; neither is tried.
    """
    named = scope.fixed.keys() | set(restrictions[0].names)
    inner = [restriction for restriction in restrictions if named.issuperset(restriction.names)]
    outer = [restriction for restriction in restrictions if not named.issuperset(restriction.names)]
    factors = sorted(factors, key=lambda factor: factor.size)
    parts = [distinct(factor, restrictions[0].names, scope.values) for factor in factors]
    check = Check(parts, inner, scope)
    blocks = (rows for places in check.places() for rows in _rows(places, parts))
    factor, left = collected(factors, blocks, outer, scope, limit)
    return factor, list(zip((*inner, *outer), (*check.left, *left[1:]), strict=True))


def collected(
    factors: Sequence[Factor],
    blocks: Iterable[list[Integers]],
    restrictions: Sequence[Expression],
    scope: Scope,
    limit: int,
) -> tuple[Factor, list[int]]:
    """One factor of the rows in `blocks`, a row number per factor and row, as far as all restrictions allow them.

    Also how many rows there were, and how many each restriction left. Raises InputError as `join` does.
    """
    left = [0] * (1 + len(restrictions))
    bound = min(limit, math.prod(factor.size for factor in factors))  # memory is only used where it is written to
    codes = {name: np.empty(bound, column.dtype) for factor in factors for name, column in factor.codes.items()}
    for rows in blocks:
        left[0] += len(rows[0])
        for at, restriction in enumerate(restrictions, start=1):
            rows = _filtered(factors, rows, restriction, scope)
            left[at] += len(rows[0])
        check_size(left[-1], limit)
        block = slice(left[-1] - len(rows[0]), left[-1])
        for factor, row in zip(factors, rows, strict=True):
            for name, column in factor.codes.items():
                codes[name][block] = column[row]
    return Factor({name: column[: left[-1]] for name, column in codes.items()}, left[-1]), left


def _rows(places: Places, parts: Sequence[Distinct]) -> Iterator[list[Integers]]:
    """The rows of each factor that have the combinations, a block at a time."""
    if all(part.group is None for part in parts):
        yield list(places)
        return
    repeats = np.ones(len(places[0]), dtype=np.int64)
    for place, part in zip(places, parts, strict=True):
        if part.group is not None:
            repeats *= part.counts[place]
    last = max(axis for axis, part in enumerate(parts) if part.group is not None)
    for parent, within in spread(repeats):
        rows: list[Integers] = []
        for axis, (place, part) in enumerate(zip(places, parts, strict=True)):
            row = place[parent]
            if axis == last:
                row = part.order[part.start[row] + within]
            elif part.group is not None:  # which of the rows with these values
                count = part.counts[row]
                row = part.order[part.start[row] + within % count]
                within = within // count
            rows.append(row)
        yield rows


def _filtered(factors: Sequence[Factor], rows: list[Integers], restriction: Expression, scope: Scope) -> list[Integers]:
    """Those of the joined rows at which the restriction holds."""
    scope.effort.spend(len(rows[0]), restriction, _ROW_COST)
    columns = {
        name: scope.values[name][column[row]]
        for factor, row in zip(factors, rows, strict=True)
        for name, column in factor.codes.items()
        if name in restriction.names
    }
    true = restriction.mask({**scope.fixed, **columns}, rows[0].shape)
    return [row[true] for row in rows]


def evaluated(codes: Mapping[str, Codes], names: Sequence[str], scope: Scope) -> dict[str, Operand]:
    """The values of some parameters by their codes, and what is the same everywhere."""
    return {**scope.fixed, **{name: scope.values[name][codes[name]] for name in names}}
