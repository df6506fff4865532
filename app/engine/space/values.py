"""The values of a parameter, as text: `range(start, stop, step)`, `[a, b]`, or one expression."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.text import shortened
from ..results.measurement import Value
from . import arithmetic
from .expression import Expression, Scope, expression_of, syntax_tree

MAX_VALUES = 65536  # that one range may have
MAX_VALUES_IN_ALL = 4 * 10**6  # that a dependent range may have over all it depends on


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
            self._check_total(rows * len(columns))
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
        self._check_total(int(counts.sum()))
        first = np.repeat(np.cumsum(counts) - counts, counts)
        position = np.arange(int(counts.sum()), dtype=np.int64) - first
        return np.repeat(start, counts) + position * np.repeat(step, counts), counts

    def _check_total(self, total: int) -> None:
        if total > MAX_VALUES_IN_ALL:
            what = f"'{shortened(self.text)}' has {total} values over all that it depends on"
            raise InputError(what, self.where, f"at most {MAX_VALUES_IN_ALL}")

    def _whole(self, column: arithmetic.Column) -> npt.NDArray[np.int64]:
        if column.dtype.kind in "ib":
            return column.astype(np.int64)
        if column.dtype.kind == "f" and (np.abs(column) < 2**53).all() and (column == np.floor(column)).all():
            return column.astype(np.int64)
        raise InputError(
            f"a bound of '{shortened(self.text)}' is not an integer", self.where, "use // for whole division"
        )


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
