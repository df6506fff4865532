"""Parameters whose values depend on others, such as `blk_m = "range(dim_m, 257, dim_m)"`: expanding and counting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.arithmetic import Column, Operand, column_of
from app.engine.expressions import ValuesExpression
from app.engine.space.factors import Codes, Factor, Integers, check_size, combined_key, distinct, product
from app.engine.space.search_space import smallest_dtype
from app.errors import InputError


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


def expand(
    factor: Factor,
    dependent: Dependent,
    values: Mapping[str, Column],
    fixed: Mapping[str, Operand],
    limit: int,
) -> tuple[Factor, Column, Integers]:
    """The factor with the parameter put in, the parameter's values by code, and the factor's row behind each new row.

    Values are ordered upwards, or downwards where the range counts down; those of words as they come.
    """
    sizes = {name: len(column) for name, column in values.items()}
    groups = distinct(factor, dependent.needs, sizes)
    scope: dict[str, Operand] = {**fixed, **{n: values[n][groups.codes[n]] for n in dependent.needs}}
    flat, counts = dependent.expression.expand(scope, groups.size)
    levels, codes = _levels(flat)
    flat_group = np.repeat(np.arange(groups.size), counts)
    pairs = flat_group * max(1, len(levels)) + codes
    unique, place = np.unique(pairs, return_index=True)
    if len(unique) < len(pairs):  # an item listed twice for the same row counts once
        place.sort()
        codes, flat_group = codes[place], flat_group[place]
        counts = np.bincount(flat_group, minlength=groups.size)
    per_row = counts[groups.group]
    total = int(per_row.sum())
    check_size(total, limit)
    parent = np.repeat(np.arange(factor.size), per_row)
    start = (np.cumsum(counts) - counts)[groups.group]
    position = np.arange(total) - np.repeat(np.cumsum(per_row) - per_row, per_row) + np.repeat(start, per_row)
    grown: dict[str, Codes] = {
        **factor.take(parent),
        dependent.name: codes[position].astype(smallest_dtype([len(levels)])),
    }
    return Factor(grown, total), levels, parent


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


def count_completions(
    factors: Sequence[Factor],
    pending: Sequence[Dependent],
    values: Mapping[str, Column],
    fixed: Mapping[str, Operand],
    limit: int,
) -> int:
    """How many combinations the factors have once the pending parameters are put in, without building them.

    Parameters that no later one needs are summed out as soon as possible, so the tables stay small.
    """
    values = dict(values)
    groups = [(factor, np.ones(factor.size, dtype=np.int64)) for factor in factors]
    ordered = in_order(pending)
    for at, dependent in enumerate(ordered):
        later = {name for other in ordered[at:] for name in other.needs}
        groups = [_summed(factor, weight, later, values) for factor, weight in groups]
        joined = [group for group in groups if any(name in group[0].codes for name in dependent.needs)]
        rest = [group for group in groups if not any(group is other for other in joined)]
        check_size(math.prod(float(factor.size) for factor, _ in joined), limit)
        factor = product([factor for factor, _ in joined])
        weight = np.ones(1, dtype=np.int64)
        for _, own in joined:
            weight = (weight[:, None] * own[None, :]).ravel()
        factor, values[dependent.name], parent = expand(factor, dependent, values, fixed, limit)
        groups = [*rest, (factor, weight[parent])]
    return math.prod(int(weight.sum()) for _, weight in groups)


def _summed(
    factor: Factor, weight: Integers, needed: set[str], values: Mapping[str, Column]
) -> tuple[Factor, Integers]:
    """The factor reduced to the needed parameters, weights of equal rows added."""
    names = [name for name in factor.codes if name in needed]
    if len(names) == len(factor.codes):
        return factor, weight
    key, _ = combined_key([factor.codes[n] for n in names], [len(values[n]) for n in names], factor.size)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    totals = np.zeros(len(first), dtype=np.int64)
    np.add.at(totals, group, weight)
    return Factor({name: factor.codes[name][first] for name in names}, len(first)), totals
