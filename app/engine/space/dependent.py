"""Parameters whose values depend on others, such as `blk_m = "range(dim_m, 257, dim_m)"`: expanding and counting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...plain_text import shortened
from ..expressions.arithmetic import Column, column_of
from ..expressions.expression import Expression
from ..expressions.values import ValuesExpression
from .checking import Scope
from .factors import Factor, Integers, distinct, product, spread
from .joining import collected, evaluated
from .keys import smallest_dtype

_COUNTED = 4 * 10**6  # rows of a table that is made only to count


@dataclass(frozen=True, slots=True)
class Dependent:
    """A parameter whose values are an expression over other parameters."""

    name: str
    expression: ValuesExpression
    needs: tuple[str, ...]  # the parameters it names


def in_order(dependents: Sequence[Dependent]) -> list[Dependent]:
    """Each after those it needs. Raises InputError naming the circle where there is one."""
    waiting = {dependent.name: dependent for dependent in dependents}
    ordered: list[Dependent] = []
    while waiting:
        ready = [d for d in waiting.values() if not any(name in waiting for name in d.needs)]
        if not ready:
            circle = ", ".join(waiting)
            raise InputError(f"the parameters {circle} refer to one another", "parameters", "break the circle")
        ordered += ready
        for dependent in ready:
            del waiting[dependent.name]
    return ordered


@dataclass(frozen=True, slots=True)
class _Choices:
    """The values a dependent parameter may take, for each distinct combination of those it needs."""

    levels: Column  # the different values, in order
    codes: Integers  # places among the levels, one combination after the other
    counts: Integers  # per combination
    rows: Integers  # per row of the factor: how many
    start: Integers  # per row of the factor: where in `codes`


@dataclass(frozen=True, slots=True)
class Expanded:
    """A factor with a dependent parameter added."""

    factor: Factor
    levels: Column  # the parameter's values by code
    repeats: Integers  # how many values each row of the old factor had
    left: list[int]  # rows after each restriction


def expand(
    factor: Factor,
    dependent: Dependent,
    restrictions: Sequence[Expression],
    scope: Scope,
    limit: int,
) -> Expanded:
    """Add the parameter, and keep only what restrictions over the factor and the parameter allow.

    Values are ordered upwards, or downwards where the range counts down; those of words as they come.
    """
    choices = _choices(factor, dependent, scope)
    known = replace(scope, values={**scope.values, dependent.name: choices.levels})
    own = Factor({dependent.name: choices.codes.astype(smallest_dtype([len(choices.levels)]))}, len(choices.codes))
    blocks = ([parent, choices.start[parent] + within] for parent, within in spread(choices.rows))
    grown, left = collected([factor, own], blocks, restrictions, known, limit)
    return Expanded(grown, choices.levels, choices.rows, left[1:])


def _choices(factor: Factor, dependent: Dependent, scope: Scope) -> _Choices:
    groups = distinct(factor, dependent.needs, scope.values)
    expression = dependent.expression
    if groups.size > _COUNTED:
        raise _too_many(dependent)
    scope.effort.spend(groups.size, expression)
    flat, counts = expression.expand(evaluated(groups.codes, dependent.needs, scope), groups.size)
    levels, codes = _levels(flat)
    if not expression.is_range and len(expression.parts) > 1:  # an item listed twice for the same row counts once
        group = np.repeat(np.arange(groups.size), counts)
        _, place = np.unique(group * max(1, len(levels)) + codes, return_index=True)
        place.sort()
        codes = codes[place]
        counts = np.bincount(group[place], minlength=groups.size)
    start = (np.cumsum(counts) - counts).astype(np.int32)
    counts = counts.astype(np.int32)
    if groups.group is None:
        return _Choices(levels, codes, counts, counts, start)
    return _Choices(levels, codes, counts, counts[groups.group], start[groups.group])


def _too_many(dependent: Dependent) -> InputError:
    what = f"'{shortened(dependent.expression.text)}' depends on more than {_COUNTED:,} combinations"
    return InputError(what, dependent.expression.where, "give what it depends on fewer values")


def _levels(flat: Column) -> tuple[Column, Integers]:
    """The different values of a column in order, and each entry's place among them."""
    if flat.dtype.kind in "OU":
        order = list(dict.fromkeys(flat.tolist()))
        place = {value: code for code, value in enumerate(order)}
        return column_of(order), np.array([place[value] for value in flat.tolist()], dtype=np.int64)
    levels, codes = np.unique(flat, return_inverse=True)
    if len(flat) > 1 and flat[0] > flat[1]:
        return levels[::-1], len(levels) - 1 - codes
    return levels, codes


# --- counting ------------------------------------------------------------------------------------------------------

Weights = npt.NDArray[Any]  # combinations behind each row: int64, or Python's integers where these are too small


def count_completions(factors: Sequence[Factor], pending: Sequence[Dependent], scope: Scope) -> int:
    """How many combinations the factors have once the pending parameters are added, without building them.

    Parameters that no later one needs are summed out as soon as possible, so the tables stay small.
    """
    values = dict(scope.values)
    scope = replace(scope, values=values)
    tables = [(factor, np.ones(factor.size, dtype=np.int64)) for factor in factors]
    for at, dependent in enumerate(pending):
        later = {name for other in pending[at:] for name in other.needs}
        tables = [_summed(factor, weight, later, values) for factor, weight in tables]
        joined = [table for table in tables if any(name in table[0].codes for name in dependent.needs)]
        rest = [table for table in tables if not any(table is other for other in joined)]
        if math.prod(factor.size for factor, _ in joined) > _COUNTED:
            raise _too_many(dependent)
        factor, weight = product([factor for factor, _ in joined]), np.ones(1, dtype=np.int64)
        for _, own in joined:
            weight = _times(weight[:, None], own[None, :]).ravel()
        if any(dependent.name in other.needs for other in pending[at + 1 :]):
            grown = expand(factor, dependent, (), scope, _COUNTED)
            values[dependent.name] = grown.levels
            tables = [*rest, (grown.factor, np.repeat(weight, grown.repeats))]
        else:
            repeats = _choices(factor, dependent, scope).rows
            tables = [*rest, (factor, _times(weight, repeats))]
    return math.prod(sum(weight.tolist()) for _, weight in tables)


def _times(first: Weights, second: Weights) -> Weights:
    """The product, in Python's integers where it might not fit."""
    if first.size and second.size and float(first.max()) * float(second.max()) > 2**62:
        first = first.astype(object)
    product: Weights = first * second
    return product


def _summed(factor: Factor, weight: Weights, needed: set[str], values: Mapping[str, Column]) -> tuple[Factor, Weights]:
    """The factor reduced to the needed parameters, weights of equal rows added."""
    names = [name for name in factor.codes if name in needed]
    if len(names) == len(factor.codes):
        return factor, weight
    if not names:
        return Factor({}, 1), np.array([sum(weight.tolist())], dtype=object)
    groups = distinct(factor, names, values)
    if weight.size and float(weight.max()) * factor.size > 2**62:
        weight = weight.astype(object)
    totals = np.zeros(groups.size, dtype=weight.dtype)
    np.add.at(totals, groups.groups, weight)
    return Factor(groups.codes, groups.size), totals
