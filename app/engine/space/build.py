"""Building a search space: restrictions prune while it is built, so 10^9 combinations need not be looked at.

The space starts as one factor per parameter (see `factors`). The restriction, or parameter with dependent values, that
joins the smallest tables is applied next. At the end the factors that are left are multiplied out and sorted.

Applying restrictions: the factors they concern are joined, and only the combinations that they allow are kept.

Parameters whose values depend on others, such as `blk_m = "range(dim_m, 257, dim_m)"`: expanding and counting. A
function of Python is called for the combinations of its arguments that are left by then.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.text import shortened
from ...sensors.limits import DeviceLimits
from ..results.measurement import Value
from ..results.settings import UNTOUCHED
from .arithmetic import Column, Operand, column_of, normalised
from .expression import Expression, parse_conjuncts
from .factors import (
    Check,
    Codes,
    Distinct,
    Effort,
    Factor,
    Integers,
    Places,
    Scope,
    check_size,
    distinct,
    product,
    sorted_table,
    spread,
)
from .keys import smallest_dtype
from .search_space import Parameter, SearchSpace, joined
from .values import MAX_VALUES, ValuesExpression, ValuesFunction, is_value, values_of

_A_LOOK = 2**22  # combinations that are evaluated to estimate a join
_ROW_COST = 40  # of making a joined row, about, in ns


def restrict(factor: Factor, restriction: Expression, scope: Scope) -> Factor:
    """The rows of a factor at which the restriction holds. Raises InputError if the check is too much work."""
    return _reduced([factor], [distinct(factor, restriction.names, scope.values)], restriction, scope)[0][0]


def thinned(factors: Sequence[Factor], restriction: Expression, scope: Scope) -> tuple[list[Factor], float] | None:
    """The factors without the rows that no rows of the others make valid, and the share of their product that is valid.

    Nothing is joined. None if there are too many distinct combinations for that to pay.
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
        for index, restriction in enumerate(restrictions, start=1):
            rows = _filtered(factors, rows, restriction, scope)
            left[index] += len(rows[0])
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


_COUNTED = 4 * 10**6  # rows of a table that is made only to count


@dataclass(frozen=True, slots=True)
class Dependent:
    """A parameter whose values are an expression over other parameters, or a function of them."""

    name: str
    expression: ValuesExpression | ValuesFunction
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
    level_scope = replace(scope, values={**scope.values, dependent.name: choices.levels})
    own = Factor({dependent.name: choices.codes.astype(smallest_dtype([len(choices.levels)]))}, len(choices.codes))
    blocks = ([parent, choices.start[parent] + within] for parent, within in spread(choices.rows))
    grown, left = collected([factor, own], blocks, restrictions, level_scope, limit)
    return Expanded(grown, choices.levels, choices.rows, left[1:])


def _choices(factor: Factor, dependent: Dependent, scope: Scope) -> _Choices:
    groups = distinct(factor, dependent.needs, scope.values)
    expression = dependent.expression
    if groups.size > _COUNTED:
        raise _too_many(dependent)
    scope.effort.spend(groups.size, expression)
    flat, counts = expression.expand(evaluated(groups.codes, dependent.needs, scope), groups.size)
    levels, codes = _levels(flat)
    if expression.repeats:  # an item listed twice for the same row counts once
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
    for index, dependent in enumerate(pending):
        later = {name for other in pending[index:] for name in other.needs}
        tables = [_summed(factor, weight, later, values) for factor, weight in tables]
        joined = [table for table in tables if any(name in table[0].codes for name in dependent.needs)]
        rest = [table for table in tables if not any(table is other for other in joined)]
        if math.prod(factor.size for factor, _ in joined) > _COUNTED:
            raise _too_many(dependent)
        factor, weight = product([factor for factor, _ in joined]), np.ones(1, dtype=np.int64)
        for _, own in joined:
            weight = _times(weight[:, None], own[None, :]).ravel()
        if any(dependent.name in other.needs for other in pending[index + 1 :]):
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


MAX_ROWS = 2 * 10**7
MAX_BYTES = 24 * 10**7  # of a table: 10^7 rows of 24 parameters, or of 12 where one has more than 256 values
MAX_PARAMETERS = 64
LARGE = 2**20  # rows of a product from which it pays to search for the best join
MAX_PARTS = 1000  # restrictions, split at their `and`s
BLOCK_SIZE_NAMES = ("block_size_x", "block_size_y", "block_size_z")
Given = Sequence[Value] | Value | Callable[..., Any]  # the values of a parameter; a function only from a program


def build_space(
    parameters: Mapping[str, Given],
    restrictions: Sequence[str],
    constants: Mapping[str, Value],
    limits: DeviceLimits,
    device_parameters: Mapping[str, tuple[Value, ...]] | None = None,
    block_size_names: Sequence[str] = BLOCK_SIZE_NAMES,
    notes: tuple[str, ...] = (),
    where: str = "",
    stop: threading.Event | None = None,
    untouched: bool = False,
) -> SearchSpace:
    """All valid configurations, parameters in the given order, device settings after them.

    A parameter is a list of values, or text: a range or expression over other parameters, constants and the device's
    limits; or a function whose arguments are named as these. A product of block sizes above the device's limit is never
    valid. A restriction that names a device setting does not apply where the setting is untouched. `untouched`: the
    rows in which every setting is so are among them, listed or not. Raises InputError for anything wrong with the
    parameters or restrictions, for a space beyond MAX_ROWS or MAX_BYTES, and for an empty one; `where` is the file it
    came from. Raises WattridgeError soon after `stop` is set.
    """
    start = time.perf_counter()
    settings = device_parameters or {}
    levels = _untouched_levels(settings, together=untouched)
    settings = {name: tuple(v for v in values if v != UNTOUCHED) for name, values in settings.items()}
    parts: list[SearchSpace] = []
    try:
        _check_names(parameters, settings, constants)
        for left in levels:  # the settings that stay untouched
            given = {**parameters, **{name: values for name, values in settings.items() if name not in left}}
            if not given:  # the untouched board, of a program without parameters
                parts.append(SearchSpace((), np.zeros((1, 0), dtype=np.uint8), 1))
                continue
            builder = _Builder(given, {**limits.as_names(), **constants}, stop, left)
            for text in _implicit_limit(given, constants, block_size_names):
                builder.restrict(text, "implicit limit")
            for index, text in enumerate(restrictions):
                builder.restrict(text, f"restrictions[{index}]")
            builder.run()
            values, codes = builder.table()
            described = (Parameter(name, tuple(values[name].tolist()), name in settings) for name in given)
            parts.append(SearchSpace(tuple(described), codes, builder.cartesian, builder.removed_by))
    except InputError as error:
        place = ": ".join(part for part in (where, error.where) if part)
        raise InputError(error.what, place, error.remedy) from None
    space = parts[0] if levels == [()] else joined(parts, {**parameters, **settings}, settings)
    return replace(space, build_seconds=time.perf_counter() - start, notes=notes)


def _untouched_levels(settings: Mapping[str, Sequence[Value]], *, together: bool) -> list[tuple[str, ...]]:
    """Which settings stay untouched in each part of a space: what is listed so, and all of them `together`."""
    listed = [name for name, values in settings.items() if UNTOUCHED in values]
    levels = [chosen for count in range(len(listed) + 1) for chosen in combinations(listed, count)]
    if together and settings and tuple(settings) not in levels:
        levels.append(tuple(settings))
    alone = {name for name in listed if len(settings[name]) == 1}  # without another level
    return [left for left in levels if alone <= set(left)]


def _check_names(
    parameters: Mapping[str, object], device_parameters: Mapping[str, object], constants: Mapping[str, Value]
) -> None:
    if not parameters and not device_parameters:
        raise InputError("there are no parameters", "parameters", "list at least one with its values")
    if len(parameters) + len(device_parameters) > MAX_PARAMETERS:
        raise InputError("too many parameters", "parameters", f"at most {MAX_PARAMETERS}")
    for name in (*parameters, *device_parameters):
        if not name.isidentifier():
            raise InputError(f"'{name}' is not a name", "parameters", "use letters, digits and _")
        if name in constants or (name in parameters and name in device_parameters):
            raise InputError(f"'{name}' is defined twice", "parameters", "rename one of them")


def _implicit_limit(
    given: Mapping[str, object], constants: Mapping[str, Value], block_size_names: Sequence[str]
) -> list[str]:
    """The device's limit on threads per block, where block sizes are among the parameters."""
    sizes = [name for name in block_size_names if name in given or name in constants]
    if not any(name in given for name in sizes):
        return []
    return [" * ".join(sizes) + " <= max_threads_per_block"]


class _Builder:
    """The state of one build: factors, and what is still to be applied to them."""

    def __init__(
        self,
        given: Mapping[str, Given],
        fixed: Mapping[str, Value],
        stop: threading.Event | None = None,
        untouched: Collection[str] = (),
    ) -> None:
        """Restrictions that name an `untouched` setting, one that is not `given`, do not apply."""
        self.values: dict[str, Column] = {}
        self.removed_by: dict[str, int] = {}
        self._scope = Scope(self.values, dict(fixed), Effort(stop))  # a parameter of one value is fixed too
        self._names = tuple(given)
        self._untouched = frozenset(untouched)
        self._known = (*given, *fixed)
        self._factors: list[Factor] = []
        self._factor_of: dict[str, Factor] = {}
        self._restrictions: list[Expression] = []  # those not yet applied
        self._order: dict[str, int] = {}  # text -> its place in the order of application
        self._shares: dict[int, tuple[list[Factor], float]] = {}  # by a restriction's id: what it allows of which
        for name, listed in given.items():
            if not isinstance(listed, str) and not callable(listed):
                self._bind(name, _listed(listed, f"parameters.{name}"))
        self._pending = in_order(
            self._dependents({n: text for n, text in given.items() if isinstance(text, str) or callable(text)})
        )
        self.cartesian = self._left = self._total()

    def _dependents(self, texts: Mapping[str, str | Callable[..., Any]]) -> list[Dependent]:
        """The parameters whose values depend on others; the rest of those that are text or functions are bound."""
        dependents: list[Dependent] = []
        for name, text in texts.items():
            where = f"parameters.{name}"
            expression = values_of(text, self._known, where)
            needs = tuple(needed for needed in expression.names if needed not in self._scope.fixed)
            if needs:
                dependents.append(Dependent(name, expression, needs))
            else:
                flat, _ = expression.expand(self._scope.fixed, 1)
                if not len(flat):
                    raise InputError(f"'{shortened(expression.text)}' has no values", where, "widen the range")
                self._bind(name, _listed(list(dict.fromkeys(flat.tolist())), where))
        return dependents

    def _bind(self, name: str, listed: list[Value]) -> None:
        self.values[name] = column_of(listed)
        codes = np.arange(len(listed), dtype=smallest_dtype([len(listed)]))
        self._put(Factor({name: codes}, len(listed)))
        if len(listed) == 1:
            self._scope.fixed[name] = listed[0]

    def restrict(self, text: str, where: str) -> None:
        """Add a restriction, split at its `and`s."""
        self.removed_by.setdefault(text, 0)
        for part in parse_conjuncts(text, where):
            if not self._untouched.isdisjoint(part.names):
                continue
            part.check_names(self._known)
            if not self._scope.fixed.keys() >= set(part.names):
                self._restrictions.append(part)
            elif not part.mask(self._scope.fixed, ()):
                raise InputError(f"'{shortened(text)}' is never true", where, "no parameter can change it")
        if len(self._restrictions) > MAX_PARTS:
            raise InputError("too many restrictions", where, f"at most {MAX_PARTS} conditions")

    def run(self) -> None:
        """Apply restrictions and expand dependent parameters, the smallest join first, until none is left."""
        while self._restrictions or self._pending:
            ready = [part for part in self._restrictions if not self._unbound(part.names)]
            expandable = [dependent for dependent in self._pending if not self._unbound(dependent.needs)]
            restriction = min(ready, key=lambda part: self._joined_size(part.names), default=None)
            dependent = min(expandable, key=lambda item: self._joined_size(item.needs), default=None)
            if restriction is not None and (
                dependent is None or self._joined_size(restriction.names) <= 16 * self._joined_size(dependent.needs)
            ):
                if self._joined_size(restriction.names) > LARGE:
                    if self._thin_out(ready):
                        continue
                    restriction = min(ready, key=lambda part: self._cost(part, ready))
                self._apply(restriction, ready)
            elif dependent is not None:
                self._expand(dependent)
        applied = sorted(self.removed_by, key=lambda text: self._order.get(text, MAX_PARTS))
        self.removed_by = {text: self.removed_by[text] for text in applied}

    def _unbound(self, names: Sequence[str]) -> bool:
        return any(name not in self.values and name not in self._scope.fixed for name in names)

    def _touched(self, names: Sequence[str]) -> list[Factor]:
        """The factors that these names join."""
        factors = (self._factor_of[name] for name in names if name not in self._scope.fixed)
        return list({id(factor): factor for factor in factors}.values())

    def _joined_size(self, names: Sequence[str]) -> int:
        return math.prod(factor.size for factor in self._touched(names))

    @property
    def _limit(self) -> int:
        """How many rows a table of all parameters may have."""
        width = len(self._names) * smallest_dtype([len(column) for column in self.values.values()])().itemsize
        return min(MAX_ROWS, MAX_BYTES // width)

    def _total(self) -> int:
        if not self._pending:
            return math.prod(factor.size for factor in self._factors)
        return count_completions(self._factors, self._pending, self._scope)

    def _thin_out(self, ready: Sequence[Expression]) -> bool:
        """Drop from factors the rows that no rows of the others make valid; True if that changed any."""
        changed = False
        for part in ready:
            touched = self._touched(part.names)
            if len(touched) < 2 or self._share(part, touched) is not None:
                continue
            thinner = thinned(touched, part, self._scope)
            factors, share = thinner if thinner is not None else (touched, 1.0)
            if any(new.size < 0.9 * old.size for new, old in zip(factors, touched, strict=True)):
                changed = True
                for new, old in zip(factors, touched, strict=True):
                    self._replace([old], new)
                self._note(part, self._total())
            else:
                self._shares[id(part)] = (touched, share)
        return changed

    def _share(self, part: Expression, touched: Sequence[Factor]) -> float | None:
        """The share of these factors' product that a restriction allows, where that is known."""
        factors, share = self._shares.get(id(part), ([], 1.0))
        same = len(factors) == len(touched) and all(a is b for a, b in zip(factors, touched, strict=True))
        return share if same else None

    def _cost(self, restriction: Expression, ready: Sequence[Expression]) -> float:
        """About how many rows a join makes on its way and in the end."""
        touched = self._touched(restriction.names)
        shares = [self._share(part, self._touched(part.names)) or 1.0 for part in self._inside(touched, ready)]
        return float(self._joined_size(restriction.names)) * (min(shares) + math.prod(shares))

    def _apply(self, restriction: Expression, ready: Sequence[Expression]) -> None:
        """Apply a restriction; where it joins factors, with it those that concern the same ones."""
        touched = self._touched(restriction.names)
        if len(touched) == 1:
            factor = restrict(touched[0], restriction, self._scope)
            left = [(restriction, factor.size)]
        else:
            together = [restriction]
            if not self._pending:
                inside = self._inside(touched, ready)
                together = sorted(inside, key=lambda part: self._share(part, self._touched(part.names)) or 1.0)
            factor, left = join(touched, together, self._scope, self._limit)
        self._replace(touched, factor)
        self._count(left)

    def _expand(self, dependent: Dependent) -> None:
        """Add a dependent parameter; if it is the last, with the restrictions that this makes ready."""
        touched = self._touched(dependent.needs)
        check_size(self._joined_size(dependent.needs), self._limit)
        together = self._inside(touched, self._restrictions, dependent.name) if len(self._pending) == 1 else []
        grown = expand(product(touched), dependent, together, self._scope, self._limit)
        self.values[dependent.name] = grown.levels
        self._pending.remove(dependent)
        self._replace(touched, grown.factor)
        if not len(grown.levels):
            text = shortened(dependent.expression.text)
            raise InputError(f"'{text}' has no values", f"parameters.{dependent.name}", "widen the range")
        self._count(list(zip(together, grown.left, strict=True)))

    def _inside(self, factors: Sequence[Factor], parts: Sequence[Expression], *names: str) -> list[Expression]:
        """The restrictions that concern nothing but these factors and names."""
        known = {name for factor in factors for name in factor.codes}.union(self._scope.fixed, names)
        return [part for part in parts if known.issuperset(part.names)]

    def _put(self, factor: Factor) -> None:
        self._factors.append(factor)
        self._factor_of |= dict.fromkeys(factor.codes, factor)

    def _replace(self, old: Sequence[Factor], new: Factor) -> None:
        gone = {id(factor) for factor in old}
        self._factors = [factor for factor in self._factors if id(factor) not in gone]
        self._put(new)

    def _count(self, applied: Sequence[tuple[Expression, int]]) -> None:
        """Restrictions have been applied, each of which left so many rows of the newest factor."""
        rest = math.prod(factor.size for factor in self._factors[:-1])
        for part, rows in applied:
            self._restrictions.remove(part)
            self._note(part, self._total() if self._pending else rows * rest)

    def _note(self, part: Expression, left: int) -> None:
        """Record that a restriction left so many combinations in all."""
        self._order.setdefault(part.text, len(self._order))
        self.removed_by[part.text] += self._left - left
        self._left = left
        if left == 0:
            raise InputError(
                f"no configuration is valid: '{shortened(part.text)}' removes the last",
                part.where,
                "relax it or widen the parameters",
            )

    def table(self) -> tuple[dict[str, Column], Codes]:
        """The values that occur, by parameter, and the codes of all rows; see `sorted_table`.

        The factors are released while the table is made.
        """
        check_size(self._total(), self._limit)
        factors, self._factors = self._factors, []
        return sorted_table(factors, self.values, self._names)


def _listed(given: Sequence[Value] | Value, where: str) -> list[Value]:
    """The values of a parameter, checked: a single value is a list of one."""
    values = [given] if isinstance(given, int | float | str) else list(given)
    if not values:
        raise InputError("an empty list", where, "give at least one value")
    if len(values) > MAX_VALUES:
        raise InputError(f"{len(values)} values", where, f"at most {MAX_VALUES}")
    listed: dict[Value, None] = {}
    for value in map(normalised, values):
        if not is_value(value):
            raise InputError(f"the value {value!r}", where, "use numbers, text, true or false")
        if value in listed:
            raise InputError(f"the value {value!r} is listed twice", where, "remove one of them")
        listed[value] = None
    return list(listed)
