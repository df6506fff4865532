"""The values of a parameter as T1 writes them, text that is a Python list: read by our own grammar, never eval'ed.

Lists, `range`, `list(...)`, comprehensions over ranges and lists, `sorted`, and sums of all these.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from ...errors import InputError
from ..expressions.expression import expression_of, syntax_tree
from ..expressions.grammar import shortened
from ..expressions.values import MAX_VALUES, parse_values
from ..measurement import Value

_CALLS = ("list", "tuple", "sorted")
_WORDS: Mapping[str, Value] = {"true": True, "false": False}
_REMEDY = "write a list, range(start, stop, step), a comprehension over one, or a sum of them"


def values_of(given: object, where: str) -> tuple[Value, ...] | str:
    """All values, each once, in order; the text itself where it depends on other parameters. Raises InputError."""
    if isinstance(given, str):
        listed = _as_json(given)
        if listed is None:
            tree = syntax_tree(given, where)
            if _free_names(tree) - set(_WORDS):
                text = _unwrapped(given, tree)
                parse_values(text, where)  # says what is wrong with it
                return text
            listed = _Lists(given, where).values(tree)
    else:
        listed = given if isinstance(given, list) else [given]
    if not 1 <= len(listed) <= MAX_VALUES:
        raise InputError(f"{len(listed)} values", where, f"1 to {MAX_VALUES} are needed")
    for value in listed:
        if not isinstance(value, int | float | str) or (isinstance(value, float) and not math.isfinite(value)):
            raise InputError(f"the value {shortened(repr(value))}", where, "use numbers, text, true or false")
    return tuple(dict.fromkeys(listed))


def _unwrapped(text: str, tree: ast.expr) -> str:
    """`range(...)` of `list(range(...))`: what the values of a dependent parameter look like here."""
    match tree:
        case ast.Call(func=ast.Name(id="list"), args=[ast.Call(func=ast.Name(id="range")) as inner], keywords=[]):
            return ast.unparse(inner)
        case _:
            return text


def _as_json(text: str) -> list[Any] | None:
    """A list as JSON, which most are; None where it is not."""
    if not text.lstrip().startswith("["):
        return None
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return listed if isinstance(listed, list) else None


def _free_names(tree: ast.expr) -> set[str]:
    """The names that the text does not bind itself, functions apart."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return used - called - bound


class _Lists:
    """Evaluates lists of values whose text is `text`."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where

    def values(self, node: ast.expr) -> list[Value]:
        """The values of a list, or a single value as a list of one. Raises InputError."""
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                self._check_count(len(items))
                return [self._value(item) for item in items]
            case ast.ListComp(elt=item, generators=loops) | ast.GeneratorExp(elt=item, generators=loops):
                return self._comprehension(item, loops)
            case ast.BinOp(left=left, op=ast.Add(), right=right) if _is_list(left) and _is_list(right):
                values = self.values(left) + self.values(right)
                self._check_count(len(values))
                return values
            case ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]):
                return self._range(bounds)
            case ast.Call(func=ast.Name(id=name), args=[items], keywords=[]) if name in _CALLS:
                values = self.values(items)
                return self._sorted(values) if name == "sorted" else values
            case _:
                return [self._value(node)]

    def _value(self, node: ast.expr, scope: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression; a column where the scope has columns."""
        return expression_of(node, self._text, self._where).evaluate({**_WORDS, **(scope or {})})

    def _range(self, bounds: list[ast.expr]) -> list[Value]:
        numbers = [self._value(bound) for bound in bounds]
        if not 1 <= len(numbers) <= 3 or any(isinstance(n, str) or not float(n).is_integer() for n in numbers):
            raise self._wrong("a bound is no whole number")
        try:
            values = range(*(int(number) for number in numbers))
            self._check_count(len(values))
        except (ValueError, OverflowError):
            raise self._wrong("the step is zero, or the range too long") from None
        return list(values)

    def _comprehension(self, item: ast.expr, loops: list[ast.comprehension]) -> list[Value]:
        names, lists = [], []
        for loop in loops:
            if not isinstance(loop.target, ast.Name) or loop.is_async:
                raise self._wrong("a loop over more than one name")
            if _free_names(loop.iter) - set(_WORDS):
                raise self._wrong("a loop that depends on another")
            names.append(loop.target.id)
            lists.append(self.values(loop.iter))
        total = 1
        for values in lists:
            total *= len(values)
            self._check_count(total)
        if not total:
            return []
        rows = list(product(*lists))
        scope: dict[str, Any] = {
            name: np.array(column) if len({type(v) for v in column}) == 1 else np.array(column, dtype=object)
            for name, column in zip(names, zip(*rows, strict=True), strict=True)
        }
        for loop in loops:
            for condition in loop.ifs:
                kept = expression_of(condition, self._text, self._where).mask({**_WORDS, **scope}, (total,))
                scope, total = {name: column[kept] for name, column in scope.items()}, int(kept.sum())
        if not total:
            return []
        column = np.broadcast_to(np.asarray(self._value(item, scope)), (total,))
        return [value.item() if isinstance(value, np.generic) else value for value in column.tolist()]

    def _sorted(self, values: list[Value]) -> list[Value]:
        try:
            return sorted(values)
        except TypeError:
            raise self._wrong("text and numbers have no order") from None

    def _check_count(self, count: int) -> None:
        if count > MAX_VALUES:
            raise InputError(f"'{shortened(self._text)}' has {count} values", self._where, f"at most {MAX_VALUES}")

    def _wrong(self, what: str) -> InputError:
        return InputError(f"{what} in '{shortened(self._text)}'", self._where, _REMEDY)


def _is_list(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name == "range" or name in _CALLS
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_list(left) and _is_list(right)
        case _:
            return isinstance(node, ast.List | ast.Tuple | ast.ListComp | ast.GeneratorExp | ast.Set)
