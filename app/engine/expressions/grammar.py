"""From a syntax tree to a closure, refusing whatever is not in the grammar of `expressions`.

The operations come from an algebra: `arithmetic.ALGEBRA` calculates values, `intervals.ALGEBRA` the bounds between
which they must lie where some names are not known yet.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ...errors import InputError
from ...plain_text import shortened
from . import arithmetic
from .algebra import Algebra

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
