"""Applying a restriction: the factors it concerns are joined, and only the combinations that it allows are kept.

It is evaluated once per distinct combination of the parameters it names. The factors are put in one after the other;
what cannot become true any more, judged by the intervals in which the others lie, is dropped as soon as that shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.arithmetic import Column, Operand
from app.engine.expressions import Expression
from app.engine.intervals import hull_of
from app.engine.space.effort import Effort
from app.engine.space.factors import Codes, Distinct, Factor, Integers, Mask, check_size, distinct, spread

_BLOCK = 2**16  # combinations evaluated at once

Places = tuple[Integers, ...]  # of each factor's distinct combinations, one entry per combination of them all


@dataclass(frozen=True, slots=True)
class Scope:
    """What a restriction may name: each parameter's values by code, and what is the same everywhere."""

    values: Mapping[str, Column]
    fixed: Mapping[str, Operand]

    def sizes(self) -> dict[str, int]:
        """How many values each parameter has."""
        return {name: len(column) for name, column in self.values.items()}


def restrict(factor: Factor, restriction: Expression, scope: Scope, effort: Effort) -> Factor:
    """The rows of a factor at which the restriction holds. Raises InputError where the check is too much work."""
    part = distinct(factor, restriction.names, scope.sizes())
    mask = np.zeros(part.size, dtype=np.bool_)
    for (places,) in _valid([part], restriction, scope, effort):
        mask[places] = True
    return factor.kept(mask if part.group is None else mask[part.group])


def join(
    factors: Sequence[Factor], restrictions: Sequence[Expression], scope: Scope, limit: int, effort: Effort
) -> tuple[Factor, list[int]]:
    """The product of several factors, reduced to where all restrictions hold, and the rows left after each of them.

    The first is checked by distinct combinations, the others on the rows that it leaves, while these are made. Raises
    InputError where more than `limit` rows would survive or the check is too much work; neither is tried.
    """
    first, *others = restrictions
    factors = sorted(factors, key=lambda factor: factor.size)
    parts = [distinct(factor, first.names, scope.sizes()) for factor in factors]
    left = [0] * len(restrictions)
    found: dict[str, list[Codes]] = {name: [] for factor in factors for name in factor.codes}
    for places in _valid(parts, first, scope, effort):
        repeats = np.ones(len(places[0]))  # rows behind each combination; floats, which do not wrap around
        for place, part in zip(places, parts, strict=True):
            if part.group is not None:
                repeats *= part.counts[place]
        left[0] += int(repeats.sum())
        check_size(left[0], effort.left if others else limit)
        for rows in _rows(places, parts, repeats.astype(np.int64)):
            for at, restriction in enumerate(others, start=1):
                rows = _filtered(factors, rows, restriction, scope, effort)
                left[at] += len(rows[0])
            check_size(left[-1], limit)
            for factor, row in zip(factors, rows, strict=True):
                for name, column in factor.codes.items():
                    found[name].append(column[row])
    codes = {name: np.concatenate([np.empty(0, np.uint8), *found.pop(name)]) for name in list(found)}
    return Factor(codes, left[-1]), left


def _rows(places: Places, parts: Sequence[Distinct], repeats: Integers) -> Iterator[list[Integers]]:
    """The rows of each factor that stand behind combinations, a block at a time."""
    for _, parent, within in spread(repeats):
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
    worth_pruning = math.prod(part.size for part in parts) > _BLOCK
    possible = restriction.possibility() if worth_pruning else _anywhere
    hulls = [{name: hull_of(scope.values[name][codes]) for name, codes in part.codes.items()} for part in parts]

    def walk(depth: int, places: Places) -> Iterator[Places]:
        """Put the next part in, one axis over the combinations so far and one over its own."""
        last = depth == len(parts) - 1
        open_names = {} if last else {name: hull for part in hulls[depth + 1 :] for name, hull in part.items()}
        own = {name: scope.values[name][codes] for name, codes in parts[depth].codes.items()}
        width = min(parts[depth].size, _BLOCK)
        height = max(1, _BLOCK // max(1, width))
        for top in range(0, len(places[0]) if places else 1, height):
            some = tuple(place[top : top + height, None] for place in places)
            columns: dict[str, Operand] = {
                name: scope.values[name][codes[place]]
                for part, place in zip(parts, some, strict=False)
                for name, codes in part.codes.items()
            }
            for left in range(0, parts[depth].size, width):
                columns |= {name: column[left : left + width] for name, column in own.items()}
                shape = (len(some[0]) if some else 1, min(width, parts[depth].size - left))
                known = {**scope.fixed, **columns}
                effort.spend(math.prod(shape), restriction)
                true = np.flatnonzero(
                    restriction.mask(known, shape) if last else possible({**known, **open_names}, shape)
                )
                grown = (*(place[true // shape[1], 0] for place in some), true % shape[1] + left)
                if last:
                    yield grown
                else:
                    yield from walk(depth + 1, grown)

    return walk(0, ())


def _anywhere(_: Mapping[str, object], shape: tuple[int, ...]) -> Mask:
    return np.ones(shape, dtype=np.bool_)


def evaluated(codes: Mapping[str, Codes], names: Sequence[str], scope: Scope) -> dict[str, Operand]:
    """The values of some parameters by their codes, and what is the same everywhere."""
    return {**scope.fixed, **{name: scope.values[name][codes[name]] for name in names}}
