"""Expressions that users write: parsed into our own closures, never eval'ed.

The grammar is Python's, cut down: names, numbers, text, true and false, arithmetic, comparisons (chained too), `and`,
`or`, `not`, `a if test else b`, `in` a literal list, and the functions of `arithmetic.ALGEBRA`. An expression works on
single values and on NumPy columns alike; see `arithmetic` for what division by zero and large integers do.

From a syntax tree to a closure, refusing whatever is not in that grammar.

The operations come from an algebra: `arithmetic.ALGEBRA` calculates values, `intervals.ALGEBRA` the bounds between
which they must lie where some names are not known yet.
"""

from __future__ import annotations

import ast
import difflib
import math
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.text import shortened
from . import arithmetic, intervals
from .arithmetic import Algebra, Operand
from .intervals import Interval

MAX_DEPTH = 150  # nested operations

Closure = Callable[[Mapping[str, Any]], Any]

_ARGUMENTS = {"min": (1, 64), "max": (1, 64), "round": (1, 2)}  # least and most; all other functions take one
GRAMMAR = (
    "use names, numbers, text, arithmetic, comparisons, and/or/not, if/else, in, "
    f"{', '.join(arithmetic.ALGEBRA.functions)}, len"
)

# ns an element, about, as measured on columns; what is not here takes one
_COSTS: dict[type[ast.AST], int] = {
    ast.Name: 2,
    ast.Constant: 0,
    ast.Div: 2,
    ast.FloorDiv: 8,
    ast.Mod: 8,
    ast.Pow: 40,
    ast.Call: 10,
    ast.BoolOp: 2,
    ast.IfExp: 2,
}


class Compiler:
    """Turns a syntax tree into a closure, refusing whatever is not in the grammar."""

    def __init__(self, text: str, where: str, algebra: Algebra) -> None:
        self._text = text
        self._where = where
        self._algebra = algebra
        self.names: dict[str, None] = {}  # those met, in order of appearance
        self.cost = 0  # of one evaluation, about ns an element of a column

    def _refuse(self, what: str) -> InputError:
        return InputError(f"{what} in '{shortened(self._text)}'", self._where, GRAMMAR)

    def compile(self, node: ast.expr, depth: int) -> Closure:
        if depth > MAX_DEPTH:
            raise self._refuse(f"more than {MAX_DEPTH} nested operations")
        depth += 1
        self.cost += _COSTS.get(type(node.op) if isinstance(node, ast.BinOp) else type(node), 1)
        match node:
            case ast.Constant(value=value):
                return self._constant(value)
            case ast.Name(id=name):
                self.names[name] = None
                return lambda scope: scope[name]
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self.compile(operand, depth))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in self._algebra.operators:
                return _pair(self._algebra.operators[type(op)], self.compile(left, depth), self.compile(right, depth))
            case ast.BoolOp(op=op, values=values):
                return self._logic(isinstance(op, ast.And), [self.compile(value, depth) for value in values])
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self._comparison([left, *comparators], ops, depth)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition, then, otherwise = (self.compile(part, depth) for part in (test, body, orelse))
                choose = self._algebra.choose
                return lambda scope: choose(condition(scope), lambda: then(scope), lambda: otherwise(scope))
            case ast.Call():
                return self._call(node, depth)
            case ast.List() | ast.Tuple():
                raise self._refuse("a list outside 'in' and 'len'")
            case _:
                raise self._refuse(f"'{type(node).__name__}' is not allowed")

    def _constant(self, value: object) -> Closure:
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**62:
            try:
                value = float(value)
            except OverflowError:
                value = math.inf
        if isinstance(value, (bool, int, float, str)):
            constant = value
            return lambda _: constant
        raise self._refuse(f"the constant {shortened(repr(value))}")

    def _unary(self, op: ast.unaryop, operand: Closure) -> Closure:
        if isinstance(op, ast.Not):
            negation = self._algebra.negation
            return lambda scope: negation(operand(scope))
        if isinstance(op, (ast.USub, ast.UAdd)):
            return _pair(self._algebra.operators[ast.Sub if isinstance(op, ast.USub) else ast.Add], _zero, operand)
        raise self._refuse(f"'{type(op).__name__}'")

    def _logic(self, conjunction: bool, parts: list[Closure]) -> Closure:
        """`and`/`or` with Python's meaning: the operand that decides, later ones not looked at."""
        join = self._algebra.conjunction if conjunction else self._algebra.disjunction

        def evaluate(scope: Mapping[str, Any]) -> Any:
            result = parts[0](scope)
            for part in parts[1:]:
                result = join(result, partial(part, scope))
            return result

        return evaluate

    def _comparison(self, sides: list[ast.expr], ops: list[ast.cmpop], depth: int) -> Closure:
        links: list[Closure] = []
        for left, op, right in zip(sides[:-1], ops, sides[1:], strict=True):
            if isinstance(op, (ast.In, ast.NotIn)):
                links.append(self._membership(left, right, isinstance(op, ast.NotIn), depth))
            elif type(op) in self._algebra.comparisons:
                compare = self._algebra.comparisons[type(op)]
                links.append(_pair(compare, self.compile(left, depth), self.compile(right, depth)))
            else:
                raise self._refuse(f"the comparison '{type(op).__name__}'")
        return self._logic(True, links)

    def _membership(self, left: ast.expr, right: ast.expr, negated: bool, depth: int) -> Closure:
        if not isinstance(right, (ast.List, ast.Tuple, ast.Set)):
            raise self._refuse("'in' without a list such as [1, 2, 4]")
        item = self.compile(left, depth)
        members = [self.compile(member, depth) for member in right.elts]
        algebra, equal = self._algebra, self._algebra.comparisons[ast.Eq]

        def equals(value: Any, member: Closure, scope: Mapping[str, Any]) -> Any:
            return equal(value, member(scope))

        def contained(scope: Mapping[str, Any]) -> Any:
            value = item(scope)
            found: Any = False
            for member in members:
                found = algebra.disjunction(found, partial(equals, value, member, scope))
            return algebra.negation(found) if negated else found

        return contained

    def _call(self, node: ast.Call, depth: int) -> Closure:
        name = node.func.id if isinstance(node.func, ast.Name) else "?"
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self._refuse("a call with named or starred arguments")
        arguments = node.args
        if name == "len" and len(arguments) == 1:
            return self._length(arguments[0], depth)
        if name not in self._algebra.functions:
            raise self._refuse(f"the call of '{name}'" if name != "?" else "a call of something other than a function")
        if name in ("min", "max") and len(arguments) == 1 and isinstance(arguments[0], (ast.List, ast.Tuple)):
            arguments = arguments[0].elts
        least, most = _ARGUMENTS.get(name, (1, 1))
        if not least <= len(arguments) <= most:
            raise self._refuse(f"'{name}' with {len(arguments)} arguments")
        compiled = [self.compile(argument, depth) for argument in arguments]
        function = self._algebra.functions[name]
        return lambda scope: function(*[argument(scope) for argument in compiled])

    def _length(self, argument: ast.expr, depth: int) -> Closure:
        match argument:
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                length = len([self.compile(item, depth) for item in items])
            case ast.Constant(value=str() as text):
                length = len(text)
            case _:
                raise self._refuse("'len' of something other than a literal")
        return lambda _: length


def _zero(_: Mapping[str, Any]) -> int:
    return 0


def _pair(function: Callable[[Any, Any], Any], left: Closure, right: Closure) -> Closure:
    return lambda scope: function(left(scope), right(scope))


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
        """The value as a float, NaN where undefined. Raises InputError if it is text."""
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
