"""Applying a restriction: the factors it concerns are joined, and only the combinations that it allows are kept.

It is evaluated once per distinct combination of the parameters it names. The factors are put in one after the other;
what cannot become true any more, judged by the intervals in which the others lie, is dropped as soon as that shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.arithmetic import Column, Operand
from app.engine.expressions import Expression, Possibility
from app.engine.intervals import Interval, hull_of
from app.engine.space.effort import Effort
from app.engine.space.factors import Codes, Distinct, Factor, Integers, Mask, check_size, distinct, spread

_BLOCK = 2**16  # combinations evaluated at once
_A_LOOK = 2**22  # combinations that are evaluated to see whether a join would be worth it

Test = Callable[[Mapping[str, Operand], tuple[int, ...]], Mask]
Places = tuple[Integers, ...]  # of each factor's distinct combinations, one entry per combination of them all


@dataclass(frozen=True, slots=True)
class Scope:
    """What a restriction may name: each parameter's values by code, and what is the same everywhere."""

    values: Mapping[str, Column]
    fixed: dict[str, Operand]


def restrict(factor: Factor, restriction: Expression, scope: Scope, effort: Effort) -> Factor:
    """The rows of a factor at which the restriction holds. Raises InputError where the check is too much work."""
    part = distinct(factor, restriction.names, scope.values)
    mask = np.zeros(part.size, dtype=np.bool_)
    for (places,) in _valid([part], restriction, scope, effort):
        mask[places] = True
    return factor.kept(mask if part.group is None else mask[part.group])


def thinned(
    factors: Sequence[Factor], restriction: Expression, scope: Scope, effort: Effort
) -> tuple[list[Factor], float] | None:
    """The factors without the rows that no rows of the others make valid, and the share of their product that is valid.

    Nothing is joined. None where there are so many distinct combinations that a look at them is not worth its while.
    """
    parts = [distinct(factor, restriction.names, scope.values) for factor in factors]
    if math.prod(part.size for part in parts) > _A_LOOK:
        return None
    masks = [np.zeros(part.size, dtype=np.bool_) for part in parts]
    valid = 0.0
    for places in _valid(parts, restriction, scope, effort):
        rows = np.ones(len(places[0]))
        for part, place, mask in zip(parts, places, masks, strict=True):
            mask[place] = True
            rows *= part.counts[place]
        valid += float(rows.sum())
    kept = [
        factor.kept(mask if part.group is None else mask[part.group])
        for factor, part, mask in zip(factors, parts, masks, strict=True)
    ]
    return kept, valid / max(1.0, math.prod(float(factor.size) for factor in factors))


def join(
    factors: Sequence[Factor], restrictions: Sequence[Expression], scope: Scope, limit: int, effort: Effort
) -> tuple[Factor, list[int]]:
    """The product of several factors, reduced to where all restrictions hold, and the rows left after each of them.

    The first is checked by distinct combinations, the others on the rows that it leaves, while these are made. Raises
    InputError where more than `limit` rows would survive or the check is too much work; neither is tried.
    """
    first, *others = restrictions
    factors = sorted(factors, key=lambda factor: factor.size)
    parts = [distinct(factor, first.names, scope.values) for factor in factors]
    blocks = (rows for places in _valid(parts, first, scope, effort) for rows in _rows(places, parts))
    return collected(factors, blocks, others, scope, limit, effort)


def collected(
    factors: Sequence[Factor],
    blocks: Iterable[list[Integers]],
    restrictions: Sequence[Expression],
    scope: Scope,
    limit: int,
    effort: Effort,
) -> tuple[Factor, list[int]]:
    """One factor of the rows that blocks tell, a row number per factor and row, and that all restrictions allow.

    Beside it how many rows there were, and how many each restriction left. Raises InputError as `join` does.
    """
    left = [0] * (1 + len(restrictions))
    bound = min(limit, math.prod(factor.size for factor in factors))  # memory is only taken where it is written to
    codes = {name: np.empty(bound, column.dtype) for factor in factors for name, column in factor.codes.items()}
    for rows in blocks:
        left[0] += len(rows[0])
        for at, restriction in enumerate(restrictions, start=1):
            rows = _filtered(factors, rows, restriction, scope, effort)
            left[at] += len(rows[0])
        check_size(left[-1], limit)
        block = slice(left[-1] - len(rows[0]), left[-1])
        for factor, row in zip(factors, rows, strict=True):
            for name, column in factor.codes.items():
                codes[name][block] = column[row]
    return Factor({name: column[: left[-1]] for name, column in codes.items()}, left[-1]), left


def _rows(places: Places, parts: Sequence[Distinct]) -> Iterator[list[Integers]]:
    """The rows of each factor that stand behind combinations, a block at a time."""
    if all(part.group is None for part in parts):
        yield list(places)
        return
    repeats = np.ones(len(places[0]), dtype=np.int64)
    for place, part in zip(places, parts, strict=True):
        if part.group is not None:
            repeats *= part.counts[place]
    for parent, within in spread(repeats):
        rows: list[Integers] = []
        for place, part in zip(places, parts, strict=True):
            row = place[parent]
            if part.group is not None:  # which of the rows with these values
                count = part.counts[row]
                row = part.order[part.start[row] + within % count]
                within = within // count
            rows.append(row)
        yield rows


def _filtered(
    factors: Sequence[Factor], rows: list[Integers], restriction: Expression, scope: Scope, effort: Effort
) -> list[Integers]:
    """Those of the joined rows at which the restriction holds."""
    effort.spend(len(rows[0]), restriction)
    columns = {
        name: scope.values[name][column[row]]
        for factor, row in zip(factors, rows, strict=True)
        for name, column in factor.codes.items()
        if name in restriction.names
    }
    true = restriction.mask({**scope.fixed, **columns}, rows[0].shape)
    return [row[true] for row in rows]


def _valid(parts: Sequence[Distinct], restriction: Expression, scope: Scope, effort: Effort) -> Iterator[Places]:
    """Where the restriction holds, over the product of the parts: blocks of places.

    Depth first, a block of combinations at a time, so that memory stays small whatever is let through.
    """
    values = [{name: scope.values[name][codes] for name, codes in part.codes.items()} for part in parts]
    may_hold: list[Test] = [_anywhere] * (len(parts) - 1)
    if math.prod(part.size for part in parts) > _BLOCK:  # else it costs more than it saves
        possible = restriction.possibility()
        hulls = [{name: hull_of(column) for name, column in columns.items()} for columns in values]
        open_names = [
            {name: hull for part in hulls[depth:] for name, hull in part.items()} for depth in range(len(parts))
        ]
        may_hold = [_within(possible, names) for names in open_names[1:]]
    tests: list[Test] = [*may_hold, restriction.mask]

    def walk(depth: int, places: Places) -> Iterator[Places]:
        """Put the next part in, one axis over the combinations so far and one over its own."""
        size = parts[depth].size
        width = min(size, _BLOCK)
        height = max(1, _BLOCK // max(1, width))
        for top in range(0, len(places[0]) if places else 1, height):
            some = tuple(place[top : top + height, None] for place in places)
            known: dict[str, Operand] = dict(scope.fixed)
            for columns, place in zip(values, some, strict=False):
                known |= {name: column[place] for name, column in columns.items()}
            for left in range(0, size, width):
                known |= {name: column[left : left + width] for name, column in values[depth].items()}
                shape = (len(some[0]) if some else 1, min(width, size - left))
                effort.spend(math.prod(shape), restriction)
                true = np.flatnonzero(tests[depth](known, shape))
                grown = (*(place[true // shape[1], 0] for place in some), true % shape[1] + left)
                if depth == len(parts) - 1:
                    yield grown
                else:
                    yield from walk(depth + 1, grown)

    return walk(0, ())


def _anywhere(_: Mapping[str, Operand], shape: tuple[int, ...]) -> Mask:
    return np.ones(shape, dtype=np.bool_)


def _within(possible: Possibility, hulls: Mapping[str, Interval]) -> Test:
    """The test whether a restriction may hold while some names are only known to lie in an interval."""
    return lambda known, shape: possible({**known, **hulls}, shape)


def evaluated(codes: Mapping[str, Codes], names: Sequence[str], scope: Scope) -> dict[str, Operand]:
    """The values of some parameters by their codes, and what is the same everywhere."""
    return {**scope.fixed, **{name: scope.values[name][codes[name]] for name in names}}
