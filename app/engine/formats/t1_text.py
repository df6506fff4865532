"""Texts of T1 in our own words, and back: expressions, and the values of a parameter, which are Python lists.

Lists are read by our own grammar, never eval'ed: lists, `range`, `list(...)`, comprehensions over ranges and lists,
`sorted`, and sums of all these.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ...base.errors import InputError
from ...base.text import json_or_none, shortened
from ..results.measurement import Value
from ..space.expression import expression_of, names_in, syntax_tree
from ..space.values import MAX_VALUES, is_value, parse_values
from ..specification.toml_section import Section

PROBLEM_SIZE = "ProblemSize"
_LIST_FUNCTIONS = ("list", "tuple", "sorted")
_WORDS: Mapping[str, Value] = {"true": True, "false": False}
_REMEDY = "write a list, range(start, stop, step), a comprehension over one, or a sum of them"


class _Substitution(ast.NodeTransformer):
    """Replaces names by expressions; names of functions stay."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self._names = names
        self._text, self._where, self._changed = "", "", False

    def translated(self, text: str, where: str) -> str:
        """The text after all replacements. Raises InputError."""
        self._text, self._where, self._changed = text, where, False
        tree = syntax_tree(text, where)
        try:
            changed = self.visit(tree)
            return ast.unparse(changed) if self._changed else text.strip()
        except RecursionError:
            raise InputError(f"'{shortened(text)}' is nested too deeply", where, "write it shorter") from None

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(argument) for argument in node.args]
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._replaced(self._names[node.id]) if node.id in self._names else node

    def _replaced(self, by: ast.expr) -> ast.expr:
        self._changed = True
        return by


class T1Text(_Substitution):
    """Translates expressions of one T1 file: `ProblemSize[0]` and `max(filter_width)` become what they stand for."""

    def __init__(self, problem_size: Sequence[str], lists: Mapping[str, Sequence[Value]], where: str = "") -> None:
        """`lists`: the values of the parameters that have a list; `where`: the place of the problem size.

        Raises InputError.
        """
        super().__init__({PROBLEM_SIZE: syntax_tree(problem_size[0], where)} if len(problem_size) == 1 else {})
        self._sizes = problem_size
        self._lists = lists

    def under(self, section: Section, key: str) -> list[str]:
        """All expressions under a key of the file, translated. Raises InputError."""
        return [self.translated(text, section.place(key)) for text in section.texts(key, numbers=True)]

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not isinstance(node.value, ast.Name) or node.value.id != PROBLEM_SIZE:
            return self.generic_visit(node)  # type: ignore[return-value]  # the parser refuses it
        part = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if type(part) is int and 0 <= part < len(self._sizes):
            return self._replaced(syntax_tree(self._sizes[part], self._where))
        what = f"'{shortened(ast.unparse(node))}' in '{shortened(self._text)}'"
        raise InputError(what, self._where, f"{PROBLEM_SIZE} has {len(self._sizes)} parts here, counted from 0")

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(func=ast.Name(id="max" | "min" as end), args=[ast.Name(id=name)], keywords=[]):
                numbers = [value for value in self._lists.get(name, ()) if isinstance(value, int | float)]
                if numbers:
                    return self._replaced(ast.Constant(max(numbers) if end == "max" else min(numbers)))
        return super().visit_Call(node)


def inlined(text: str, where: str, known: Mapping[str, Value], renamed: Mapping[str, str]) -> str:
    """The expression with known names replaced by their values, and others renamed. Raises InputError."""
    names: dict[str, ast.expr] = {name: ast.Name(other, ast.Load()) for name, other in renamed.items()}
    names |= {name: ast.Constant(value) for name, value in known.items()}
    return _Substitution(names).translated(text, where)


# --- the values of a parameter ----------------------------------------------------------------------------------------


def values_of(given: object, where: str) -> tuple[Value, ...] | str:
    """All values, each once, in order; the text itself where it depends on other parameters. Raises InputError."""
    if isinstance(given, str):
        listed = json_or_none(given) if given.lstrip().startswith("[") else None  # most are JSON
        if listed is None:
            tree = syntax_tree(given, where)
            if _free_names(tree):
                text = _unwrapped(given, tree)
                parse_values(text, where)  # raises where it is wrong
                return text
            listed = _Lists(given, where).values(tree)
    else:
        listed = given if isinstance(given, list) else [given]
    if not 1 <= len(listed) <= MAX_VALUES:
        raise InputError(f"{len(listed)} values", where, f"1 to {MAX_VALUES} are needed")
    for value in listed:
        if not is_value(value):
            raise InputError(f"the value {shortened(repr(value))}", where, "use numbers, text, true or false")
    return tuple(dict.fromkeys(listed))


def _unwrapped(text: str, tree: ast.expr) -> str:
    """`range(...)` of `list(range(...))`: what the values of a dependent parameter look like here."""
    match tree:
        case ast.Call(func=ast.Name(id="list"), args=[ast.Call(func=ast.Name(id="range")) as inner], keywords=[]):
            return ast.unparse(inner)
        case _:
            return text


def _free_names(tree: ast.expr) -> set[str]:
    """The names whose values are not known from the text: no functions, and not the variables of its loops."""
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return set(names_in(tree)) - bound - _WORDS.keys()


class _Lists:
    """Evaluates lists of values whose text is `text`."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where

    def values(self, node: ast.expr) -> list[Value]:
        """The values of a list, or a single value as a list of one. Raises InputError."""
        listed = self._listed(node)
        return [self._value(node)] if listed is None else listed

    def _listed(self, node: ast.expr) -> list[Value] | None:
        """The values of a list; None where it is none."""
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                self._check_count(len(items))
                return [self._value(item) for item in items]
            case ast.ListComp(elt=item, generators=loops) | ast.GeneratorExp(elt=item, generators=loops):
                return self._comprehension(item, loops)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = self._listed(left), self._listed(right)
                if first is None or second is None:
                    return None
                self._check_count(len(first) + len(second))
                return first + second
            case ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]):
                return self._range(bounds)
            case ast.Call(func=ast.Name(id=name), args=[items], keywords=[]) if name in _LIST_FUNCTIONS:
                values = self.values(items)
                return self._sorted(values) if name == "sorted" else values
            case _:
                return None

    def _value(self, node: ast.expr) -> Any:
        """The value of an expression."""
        return expression_of(node, self._text, self._where).evaluate(_WORDS)

    def _range(self, bounds: list[ast.expr]) -> list[Value]:
        numbers = [self._value(bound) for bound in bounds]
        if not 1 <= len(numbers) <= 3 or any(isinstance(n, str) or not float(n).is_integer() for n in numbers):
            raise self._wrong("a bound is no whole number")
        try:
            values = range(*map(int, numbers))
            self._check_count(len(values))
        except (ValueError, OverflowError):
            raise self._wrong("the step is zero, or the range too long") from None
        return list(values)

    def _comprehension(self, item: ast.expr, loops: list[ast.comprehension]) -> list[Value]:
        names, lists = [], []
        for loop in loops:
            if not isinstance(loop.target, ast.Name) or loop.is_async:
                raise self._wrong("a loop over more than one name")
            if _free_names(loop.iter):
                raise self._wrong("a loop that depends on another")
            names.append(loop.target.id)
            lists.append(self.values(loop.iter))
        self._check_count(math.prod(map(len, lists)))
        value = expression_of(item, self._text, self._where)
        conditions = [expression_of(each, self._text, self._where) for loop in loops for each in loop.ifs]
        result: list[Value] = []
        for row in product(*lists):
            scope: dict[str, Any] = {**_WORDS, **dict(zip(names, row, strict=True))}
            if all(condition.mask(scope, ()) for condition in conditions):
                found: Any = value.evaluate(scope)
                result.append(found.item() if isinstance(found, np.generic) else found)
        return result

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
