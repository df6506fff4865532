"""Where restrictions hold, over the product of the distinct combinations of several factors.

The factors are added one after the other. A combination that cannot become valid any more, by the intervals in which
the values of the other factors lie, is dropped at once. The walk is depth first, a block of combinations at a time, so
that memory stays small however many are valid.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InputError, WattridgeError
from ...plain_text import shortened
from ..expressions.arithmetic import Column, Operand
from ..expressions.expression import Expression, Possibility
from ..expressions.intervals import Interval, hull_of
from ..expressions.values import ValuesExpression
from .factors import Distinct, Integers, Mask

_BLOCK = 2**16  # combinations evaluated at once
MAX_COST = 10**10  # of one build, about ns

Evaluated = Expression | ValuesExpression
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
        if math.prod(part.size for part in parts) > _BLOCK:  # below that it costs more than it saves
            possible = restrictions[0].possibility()  # of the first alone: the others' shares are counted below
            hulls = [{name: hull_of(column) for name, column in columns.items()} for columns in self._values]
            for depth in range(len(parts) - 1):
                unknown = {name: hull for part in hulls[depth + 1 :] for name, hull in part.items()}
                self._may_hold[depth] = _within(possible, unknown)

    def places(self) -> Iterator[Places]:
        """Blocks of combinations at which all restrictions hold. Raises InputError where that is too much work."""
        return self._walk(0, ())

    def _walk(self, depth: int, places: Places) -> Iterator[Places]:
        """Add the next part: one axis over the combinations so far, one over its own."""
        size = self._parts[depth].size
        width = min(size, _BLOCK)
        height = max(1, _BLOCK // max(1, width))
        for top in range(0, len(places[0]) if places else 1, height):
            some = tuple(place[top : top + height, None] for place in places)
            known: dict[str, Operand] = dict(self._fixed)
            for columns, place in zip(self._values, some, strict=False):
                known |= {name: column[place] for name, column in columns.items()}
            for left in range(0, size, width):
                known |= {name: column[left : left + width] for name, column in self._values[depth].items()}
                shape = (len(some[0]) if some else 1, min(width, size - left))
                for restriction in self._restrictions:
                    self._effort.spend(math.prod(shape), restriction)
                if depth < len(self._parts) - 1:
                    true = np.flatnonzero(self._may_hold[depth](known, shape))
                    yield from self._walk(depth + 1, _grown(some, true, shape[1], left))
                else:
                    true = np.flatnonzero(self._holds(known, shape, some, left))
                    yield _grown(some, true, shape[1], left)

    def _holds(self, known: Mapping[str, Operand], shape: tuple[int, int], some: Places, left: int) -> Mask:
        """Where all restrictions hold; the rows that each one leaves are counted."""
        rows = self._rows_behind(shape, some, left)
        mask: Mask = np.ones(shape, dtype=np.bool_)
        for at, restriction in enumerate(self._restrictions):
            mask = mask & restriction.mask(known, shape)
            self.left[at] += int(np.count_nonzero(mask)) if rows is None else int(rows[mask].sum())
        return mask

    def _rows_behind(self, shape: tuple[int, int], some: Places, left: int) -> Integers | None:
        """How many rows have each combination of a block; None where it is one each."""
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
