"""Expressions that users write: parsed into our own closures, never eval'ed.

The grammar is Python's, cut down: names, numbers, text, true and false, arithmetic, comparisons (chained too), `and`,
`or`, `not`, `a if test else b`, `in` a literal list, and the functions of `arithmetic.ALGEBRA`. An expression works on
single values and on NumPy columns alike; see `arithmetic` for what division by zero and large integers do.
"""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...plain_text import shortened
from . import arithmetic, intervals
from .arithmetic import Operand
from .grammar import GRAMMAR, Closure, Compiler
from .intervals import Interval

MAX_LENGTH = 4000  # characters of one expression

Scope = Mapping[str, Operand]
Possibility = Callable[[Mapping[str, Operand | Interval], tuple[int, ...]], npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. `names` are the names it uses, in order of appearance."""

    text: str
    where: str
    names: tuple[str, ...]
    closure: Closure = field(repr=False, compare=False)
    tree: ast.expr = field(repr=False, compare=False)
    cost: int = field(compare=False)  # of one evaluation, about ns an element of a column

    def evaluate(self, values: Scope) -> Operand:
        """The value for single values, or a column where a name stands for one. Raises InputError for mixed types."""
        self.check_names(values)
        scope = {name: arithmetic.normalised(values[name]) for name in self.names}
        try:
            with np.errstate(all="ignore"):
                value: Operand = self.closure(scope)
                return value
        except TypeError as error:
            what = f"'{shortened(self.text)}' cannot be calculated: {error}"
            raise InputError(what, self.where, "check the types") from None

    def mask(self, values: Scope, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Where the expression is true, of that shape; undefined (a division by zero) counts as false."""
        true, _ = arithmetic.truth(self.evaluate(values))
        return np.broadcast_to(np.asarray(true, dtype=np.bool_), shape)

    def possibility(self) -> Possibility:
        """A function that finds where the expression may be true if some names are only known to lie in an interval.

        It is never false where the expression is true for some values within the intervals. Its arguments are the
        names' values and the shape of the result.
        """
        bounds = Compiler(self.text, self.where, intervals.ALGEBRA).compile(self.tree, 0)

        def possible(values: Mapping[str, Operand | Interval], shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
            try:
                with np.errstate(all="ignore"):
                    return np.broadcast_to(intervals.may_be_true(bounds(values)), shape)
            except TypeError:  # such as arithmetic with text: evaluating the expression raises it
                return np.ones(shape, dtype=np.bool_)

        return possible

    def number(self, values: Scope) -> float:
        """The value as a float, NaN where undefined. Raises InputError where it is text."""
        value = self.evaluate(values)
        if isinstance(value, (str, np.ndarray)):
            raise InputError(
                f"'{shortened(self.text)}' is not a number", self.where, "write an expression that gives a number"
            )
        return float(value)

    def check_names(self, known: Collection[str], remedy: str = "") -> None:
        """Raise InputError for the first name that is not among `known`."""
        for name in self.names:
            if name not in known:
                raise unknown_name(name, self.text, self.where, known, remedy)


def unknown_name(name: str, text: str, where: str, known: Iterable[str], remedy: str = "") -> InputError:
    """The error for a name that is not defined, with the nearest known one."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else remedy or "define it under [constants] or [parameters]"
    return InputError(f"unknown name '{name}' in '{shortened(text)}'", where, hint)


def parse(text: str, where: str) -> Expression:
    """Parse one expression. Raises InputError naming `where` for anything outside the grammar."""
    return expression_of(syntax_tree(text, where), text, where)


def parse_conjuncts(text: str, where: str) -> tuple[Expression, ...]:
    """Parse a restriction and split it at its outermost `and`s and chained comparisons, so that parts apply early."""
    return tuple(expression_of(part, text, where) for part in _conjuncts(syntax_tree(text, where)))


def _conjuncts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in _conjuncts(value)]
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        sides = [node.left, *node.comparators]
        links = [
            ast.Compare(left, [op], [right]) for left, op, right in zip(sides, node.ops, node.comparators, strict=False)
        ]
        if len({frozenset(names_in(link)) for link in links}) > 1:  # else one pass is quicker than two
            return list(links)
    return [node]


def names_in(node: ast.AST) -> list[str]:
    """The names in a syntax tree, functions apart, in order of appearance; each as often as it is used."""
    called = {id(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and id(part) not in called]


def expression_of(node: ast.expr, text: str, where: str) -> Expression:
    """The expression of a syntax tree that was parsed from `text`. Raises InputError."""
    compiler = Compiler(text, where, arithmetic.ALGEBRA)
    closure = compiler.compile(node, 0)
    return Expression(text, where, tuple(compiler.names), closure, node, compiler.cost)


def syntax_tree(text: str, where: str) -> ast.expr:
    """The syntax tree of a bounded text. Raises InputError."""
    if len(text) > MAX_LENGTH:
        raise InputError(f"expression of {len(text)} characters", where, f"at most {MAX_LENGTH} are read")
    if "\\" in text or "\0" in text:
        raise InputError(f"backslash in '{text[:60]}'", where, GRAMMAR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as one about '1if x', which is refused or meant
            return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        place = f" at character {error.offset}" if error.offset else ""
        raise InputError(f"'{shortened(text)}' is not an expression{place}", where, GRAMMAR) from None
    except (ValueError, RecursionError, MemoryError):
        raise InputError(f"'{shortened(text)}' cannot be read", where, "write it shorter and less nested") from None
