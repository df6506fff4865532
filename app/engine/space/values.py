"""The values of a parameter, as text: `range(start, stop, step)`, `[a, b]`, or one expression.

A program may give a function of Python instead, of other parameters by their names: a closure iterator
[Anzt2015, section 2.3.1]. A file never does.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.text import shortened
from ..results.measurement import Value
from . import arithmetic
from .expression import Expression, Scope, expression_of, syntax_tree, unknown_name

MAX_VALUES = 65536  # that one range may have
MAX_VALUES_IN_ALL = 4 * 10**6  # that a dependent range may have over all it depends on
_CALL_COST = 2000  # of a function of Python, about, in ns


def is_value(value: object) -> TypeGuard[Value]:
    """Whether it may be the value of a parameter: text, a truth value, or a finite number, whole ones below 2**62."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str) or (isinstance(value, int) and abs(value) < 2**62)


@dataclass(frozen=True, slots=True)
class ValuesExpression:
    """The values of a parameter as text: `range(start, stop, step)`, `[a, b]`, or one expression."""

    text: str
    where: str
    names: tuple[str, ...]
    parts: tuple[Expression, ...]  # start, stop and step, or the items
    is_range: bool

    @property
    def cost(self) -> int:
        """What one expansion costs for one row, about, in ns."""
        return sum(part.cost for part in self.parts)

    def expand(self, values: Scope, rows: int) -> tuple[arithmetic.Column, npt.NDArray[np.int64]]:
        """All values row after row, and how many each row has. Shapes (sum of counts,) and (rows,).

        Raises InputError for a step of zero, a bound that is no integer, and for too many values, in one row or in all.
        """
        columns = [np.broadcast_to(np.asarray(part.evaluate(values)), (rows,)) for part in self.parts]
        if not self.is_range:
            _check_total(rows * len(columns), self.text, self.where)
            if len({column.dtype.kind for column in columns}) > 1 and any(c.dtype.kind in "UO" for c in columns):
                columns = [column.astype(object) for column in columns]
            return np.stack(columns, axis=1).ravel(), np.full(rows, len(columns), dtype=np.int64)
        start, stop, step = (self._whole(column) for column in columns)
        if (step == 0).any():
            raise InputError(f"step 0 in '{shortened(self.text)}'", self.where, "the step must not be zero")
        counts = np.maximum(0, -((start - stop) // step))
        if rows and int(counts.max()) > MAX_VALUES:
            raise InputError(
                f"'{shortened(self.text)}' has {int(counts.max())} values", self.where, f"at most {MAX_VALUES}"
            )
        _check_total(int(counts.sum()), self.text, self.where)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        position = np.arange(int(counts.sum()), dtype=np.int64) - first
        return np.repeat(start, counts) + position * np.repeat(step, counts), counts

    def check_names(self, known: Collection[str]) -> None:
        """Raise InputError for the first name that is not among `known`."""
        for part in self.parts:
            part.check_names(known)

    @property
    def repeats(self) -> bool:
        """Whether a value may come twice for the same row."""
        return not self.is_range and len(self.parts) > 1

    def _whole(self, column: arithmetic.Column) -> npt.NDArray[np.int64]:
        if column.dtype.kind in "ib":
            return column.astype(np.int64)
        if column.dtype.kind == "f" and (np.abs(column) < 2**53).all() and (column == np.floor(column)).all():
            return column.astype(np.int64)
        raise InputError(
            f"a bound of '{shortened(self.text)}' is not an integer", self.where, "use // for whole division"
        )


@dataclass(frozen=True, slots=True)
class ValuesFunction:
    """The values of a parameter as a function of what its arguments name. It is called once for each combination."""

    function: Callable[..., Any]
    text: str
    where: str
    names: tuple[str, ...]
    cost: int = _CALL_COST
    repeats: bool = False
    _known: dict[tuple[Any, ...], list[Value]] = field(default_factory=dict)

    def expand(self, values: Scope, rows: int) -> tuple[arithmetic.Column, npt.NDArray[np.int64]]:
        """As `ValuesExpression.expand`. What the function raises reaches its program."""
        columns = [np.broadcast_to(np.asarray(values[name]), (rows,)).tolist() for name in self.names]
        flat: list[Value] = []
        counts = np.zeros(rows, dtype=np.int64)
        for row, given in enumerate(zip(*columns, strict=True) if columns else [()] * rows):
            if given not in self._known:
                self._known[given] = self._called(given)
            flat += self._known[given]
            counts[row] = len(self._known[given])
            _check_total(len(flat), self.text, self.where)
        return arithmetic.column_of(flat), counts

    def check_names(self, known: Collection[str]) -> None:
        """Raise InputError for the first name that is not among `known`."""
        for name in self.names:
            if name not in known:
                raise unknown_name(name, self.text, self.where, known, "name its arguments as other parameters")

    def _called(self, given: tuple[Any, ...]) -> list[Value]:
        result = self.function(**dict(zip(self.names, given, strict=True)))
        several = [result] if isinstance(result, str) or not isinstance(result, Iterable) else result
        listed: dict[Value, None] = {}
        for value in map(arithmetic.normalised, islice(several, MAX_VALUES + 1)):
            if not is_value(value):
                raise InputError(f"'{self.text}' gave {value!r}", self.where, "give numbers, text, true or false")
            listed[value] = None
        if len(listed) > MAX_VALUES:
            raise InputError(f"'{self.text}' has no end, or too many values", self.where, f"at most {MAX_VALUES}")
        return list(listed)


def values_of(given: str | Callable[..., Any], known: Collection[str], where: str) -> ValuesExpression | ValuesFunction:
    """Values that depend on what is `known`, as text or as a function. Raises InputError, also for unknown names."""
    values = parse_values(given, where) if isinstance(given, str) else _function(given, known, where)
    values.check_names(known)
    return values


def _function(function: Callable[..., Any], known: Collection[str], where: str) -> ValuesFunction:
    """An argument with a default that names nothing keeps its default."""
    text = f"{getattr(function, '__name__', 'function')}()"
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InputError(f"the arguments of {text} are not known", where, "wrap it in a lambda") from None
    if any(each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) for each in arguments):
        raise InputError(f"{text} has arguments without names", where, "name each, as: lambda block: range(1, block)")
    names = tuple(each.name for each in arguments if each.name in known or each.default is each.empty)
    return ValuesFunction(function, text, where, names)


def _check_total(total: int, text: str, where: str) -> None:
    if total > MAX_VALUES_IN_ALL:
        what = f"'{shortened(text)}' has {total} values over all that it depends on"
        raise InputError(what, where, f"at most {MAX_VALUES_IN_ALL}")


def parse_values(text: str, where: str) -> ValuesExpression:
    """Parse the values of a parameter. Raises InputError."""
    node = syntax_tree(text, where)
    is_range = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
    items: list[ast.expr] = [node]
    if is_range and isinstance(node, ast.Call):
        if not 1 <= len(node.args) <= 3 or node.keywords:
            raise InputError(f"'{shortened(text)}' is not a range", where, "write range(start, stop, step)")
        zero, one = ast.Constant(0), ast.Constant(1)
        items = [zero, node.args[0], one] if len(node.args) == 1 else [*node.args, one][:3]
    elif isinstance(node, (ast.List, ast.Tuple)):
        items = list(node.elts)
        if not 1 <= len(items) <= MAX_VALUES:
            raise InputError(f"'{shortened(text)}' has no values", where, "list at least one")
    parts = tuple(expression_of(item, text, where) for item in items)
    names = dict.fromkeys(name for part in parts for name in part.names)
    return ValuesExpression(text, where, tuple(names), parts, is_range)
