"""Expressions that people write: parsed into our own closures, never eval'ed.

The grammar is Python's, cut down: names, numbers, text, true and false, arithmetic, comparisons (chained too), `and`,
`or`, `not`, `a if test else b`, `in` a literal list, and the functions in `FUNCTIONS`. An expression works on single
values and on NumPy columns alike; see `arithmetic` for what division by zero and large integers do.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
import numpy.typing as npt

from app.engine import arithmetic
from app.engine.arithmetic import Operand
from app.errors import InputError

MAX_LENGTH = 4000  # characters of one expression
MAX_DEPTH = 150  # nested operations
MAX_VALUES = 65536  # values that one range may have

Scope = Mapping[str, Operand]
Closure = Callable[[Scope], Operand]

_ARITHMETIC: dict[type[ast.operator], Callable[[Operand, Operand], Operand]] = {
    ast.Add: arithmetic.add,
    ast.Sub: arithmetic.subtract,
    ast.Mult: arithmetic.multiply,
    ast.Div: arithmetic.divide,
    ast.FloorDiv: arithmetic.floor_divide,
    ast.Mod: arithmetic.modulo,
    ast.Pow: arithmetic.power,
}
_EQUAL = arithmetic.comparison("==", operator.eq)
_COMPARISONS: dict[type[ast.cmpop], Callable[[Operand, Operand], Operand]] = {
    ast.Eq: _EQUAL,
    ast.NotEq: arithmetic.comparison("!=", operator.ne),
    ast.Lt: arithmetic.comparison("<", operator.lt),
    ast.LtE: arithmetic.comparison("<=", operator.le),
    ast.Gt: arithmetic.comparison(">", operator.gt),
    ast.GtE: arithmetic.comparison(">=", operator.ge),
}
# name -> (least and most arguments, function)
FUNCTIONS: dict[str, tuple[int, int, Callable[..., Operand]]] = {
    "min": (1, 64, lambda *operands: reduce(arithmetic.minimum, operands)),
    "max": (1, 64, lambda *operands: reduce(arithmetic.maximum, operands)),
    "abs": (1, 1, arithmetic.absolute),
    "round": (1, 2, arithmetic.rounded),
    "int": (1, 1, arithmetic.truncate),
    "float": (1, 1, arithmetic.to_float),
    "ceil": (1, 1, arithmetic.ceiling),
    "floor": (1, 1, arithmetic.floor),
    "sqrt": (1, 1, arithmetic.square_root),
    "log": (1, 1, arithmetic.logarithm),
    "log2": (1, 1, arithmetic.logarithm_2),
    "log10": (1, 1, arithmetic.logarithm_10),
    "exp": (1, 1, arithmetic.exponential),
}
_GRAMMAR = f"use names, numbers, text, arithmetic, comparisons, and/or/not, if/else, in, {', '.join(FUNCTIONS)}, len"


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. `names` are the names it uses, in order of appearance."""

    text: str
    where: str
    names: tuple[str, ...]
    closure: Closure

    def evaluate(self, values: Scope) -> Operand:
        """The value for single values, or a column where a name stands for one. Raises InputError for mixed types."""
        self.check_names(values)
        scope = {name: arithmetic.normalised(values[name]) for name in self.names}
        try:
            with np.errstate(all="ignore"):
                return self.closure(scope)
        except TypeError as error:
            raise InputError(f"'{self.text}' cannot be calculated: {error}", self.where, "check the types") from None

    def mask(self, values: Scope, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Where the expression is true, of that shape; undefined (a division by zero) counts as false."""
        true, _ = arithmetic.truth(self.evaluate(values))
        return np.broadcast_to(np.asarray(true, dtype=np.bool_), shape)

    def number(self, values: Scope) -> float:
        """The value as a float, NaN where undefined. Raises InputError where it is text."""
        value = self.evaluate(values)
        if isinstance(value, (str, np.ndarray)):
            raise InputError(f"'{self.text}' is not a number", self.where, "write an expression that gives a number")
        return float(value)

    def check_names(self, known: Collection[str], remedy: str = "") -> None:
        """Raise InputError for the first name that is not among `known`."""
        for name in self.names:
            if name not in known:
                raise unknown_name(name, self.text, self.where, known, remedy)


def unknown_name(name: str, text: str, where: str, known: Iterable[str], remedy: str = "") -> InputError:
    """The error for a name nobody defined, with the nearest known one."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else remedy or "define it under [constants] or [parameters]"
    return InputError(f"unknown name '{name}' in '{text}'", where, hint)


def parse(text: str, where: str) -> Expression:
    """Parse one expression. Raises InputError naming `where` for anything outside the grammar."""
    return _expression(_tree(text, where), text, where)


def parse_conjuncts(text: str, where: str) -> tuple[Expression, ...]:
    """Parse a restriction and split it at its outermost `and`s and chained comparisons, so that parts apply early."""
    return tuple(_expression(part, text, where) for part in _conjuncts(_tree(text, where)))


def _conjuncts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in _conjuncts(value)]
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        sides = [node.left, *node.comparators]
        links = [
            ast.Compare(left, [op], [right]) for left, op, right in zip(sides, node.ops, node.comparators, strict=False)
        ]
        if len({frozenset(_names(link)) for link in links}) > 1:  # else one pass is quicker than two
            return list(links)
    return [node]


def _names(node: ast.AST) -> list[str]:
    called = {id(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and id(part) not in called]


def _expression(node: ast.expr, text: str, where: str) -> Expression:
    closure = _Compiler(text, where).compile(node, 0)
    return Expression(text, where, tuple(dict.fromkeys(_names(node))), closure)


def _tree(text: str, where: str) -> ast.expr:
    """The syntax tree of a bounded text. Raises InputError."""
    if len(text) > MAX_LENGTH:
        raise InputError(f"expression of {len(text)} characters", where, f"at most {MAX_LENGTH} are read")
    if "\\" in text or "\0" in text:
        raise InputError(f"backslash in '{text[:60]}'", where, _GRAMMAR)
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        place = f" at character {error.offset}" if error.offset else ""
        raise InputError(f"'{_short(text)}' is not an expression{place}", where, _GRAMMAR) from None
    except (ValueError, RecursionError, MemoryError):
        raise InputError(f"'{_short(text)}' cannot be read", where, "write it shorter and less nested") from None


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:77]}..."


class _Compiler:
    """Turns a syntax tree into a closure, refusing whatever is not in the grammar."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where

    def _refuse(self, what: str) -> InputError:
        return InputError(f"{what} in '{_short(self._text)}'", self._where, _GRAMMAR)

    def compile(self, node: ast.expr, depth: int) -> Closure:
        if depth > MAX_DEPTH:
            raise self._refuse(f"more than {MAX_DEPTH} nested operations")
        depth += 1
        match node:
            case ast.Constant(value=value):
                return self._constant(value)
            case ast.Name(id=name):
                return lambda scope: scope[name]
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self.compile(operand, depth))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                function, first, second = _ARITHMETIC[type(op)], self.compile(left, depth), self.compile(right, depth)
                return lambda scope: function(first(scope), second(scope))
            case ast.BoolOp(op=op, values=values):
                return self._logic(isinstance(op, ast.And), [self.compile(value, depth) for value in values])
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self._comparison([left, *comparators], ops, depth)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition, then, otherwise = (self.compile(part, depth) for part in (test, body, orelse))
                return lambda scope: arithmetic.choose(condition(scope), lambda: then(scope), lambda: otherwise(scope))
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
            constant: Operand = value
            return lambda _: constant
        raise self._refuse(f"the constant {_short(repr(value))}")

    def _unary(self, op: ast.unaryop, operand: Closure) -> Closure:
        if isinstance(op, ast.Not):
            return lambda scope: arithmetic.negation(operand(scope))
        if isinstance(op, ast.USub):
            return lambda scope: arithmetic.negate(operand(scope))
        if isinstance(op, ast.UAdd):
            return lambda scope: arithmetic.add(0, operand(scope))
        raise self._refuse(f"'{type(op).__name__}'")

    def _logic(self, conjunction: bool, parts: list[Closure]) -> Closure:
        """`and`/`or` with Python's meaning: the operand that decides, later ones not looked at."""

        def evaluate(scope: Scope) -> Operand:
            result = parts[0](scope)
            for part in parts[1:]:
                so_far, rest = partial(_same, result), partial(part, scope)
                result = arithmetic.choose(result, *((rest, so_far) if conjunction else (so_far, rest)))
            return result

        return evaluate

    def _comparison(self, sides: list[ast.expr], ops: list[ast.cmpop], depth: int) -> Closure:
        links: list[Closure] = []
        for left, op, right in zip(sides[:-1], ops, sides[1:], strict=True):
            if isinstance(op, (ast.In, ast.NotIn)):
                links.append(self._membership(left, right, isinstance(op, ast.NotIn), depth))
            elif type(op) in _COMPARISONS:
                links.append(_compare(_COMPARISONS[type(op)], self.compile(left, depth), self.compile(right, depth)))
            else:
                raise self._refuse(f"the comparison '{type(op).__name__}'")
        return self._logic(True, links)

    def _membership(self, left: ast.expr, right: ast.expr, negated: bool, depth: int) -> Closure:
        if not isinstance(right, (ast.List, ast.Tuple, ast.Set)):
            raise self._refuse("'in' without a list such as [1, 2, 4]")
        item = self.compile(left, depth)
        members = [self.compile(member, depth) for member in right.elts]

        def contained(scope: Scope) -> Operand:
            value = item(scope)
            found: Operand = False
            for member in members:
                found = arithmetic.choose(found, partial(_same, found), partial(_EQUAL, value, member(scope)))
            return arithmetic.negation(found) if negated else found

        return contained

    def _call(self, node: ast.Call, depth: int) -> Closure:
        name = node.func.id if isinstance(node.func, ast.Name) else "?"
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self._refuse("a call with named or starred arguments")
        arguments = node.args
        if name == "len" and len(arguments) == 1:
            return self._length(arguments[0])
        if name not in FUNCTIONS:
            raise self._refuse(f"the call of '{name}'" if name != "?" else "a call of something other than a function")
        if name in ("min", "max") and len(arguments) == 1 and isinstance(arguments[0], (ast.List, ast.Tuple)):
            arguments = arguments[0].elts
        least, most, function = FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            raise self._refuse(f"'{name}' with {len(arguments)} arguments")
        compiled = [self.compile(argument, depth) for argument in arguments]
        return lambda scope: function(*[argument(scope) for argument in compiled])

    def _length(self, argument: ast.expr) -> Closure:
        match argument:
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                length = len(items)
            case ast.Constant(value=str() as text):
                length = len(text)
            case _:
                raise self._refuse("'len' of something other than a literal")
        return lambda _: length


def _same(operand: Operand) -> Operand:
    return operand


def _compare(function: Callable[[Operand, Operand], Operand], left: Closure, right: Closure) -> Closure:
    return lambda scope: function(left(scope), right(scope))


# --- the values of a parameter, as text ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ValuesExpression:
    """The values of a parameter as text: `range(start, stop, step)`, `[a, b]`, or one expression."""

    text: str
    where: str
    names: tuple[str, ...]
    parts: tuple[Expression, ...]  # start, stop and step, or the items
    is_range: bool

    def expand(self, values: Scope, rows: int) -> tuple[arithmetic.Column, npt.NDArray[np.int64]]:
        """All values row after row, and how many each row has. Shapes (sum of counts,) and (rows,).

        Raises InputError for a step of zero, a bound that is no integer, or more than MAX_VALUES values in one row.
        """
        columns = [np.broadcast_to(np.asarray(part.evaluate(values)), (rows,)) for part in self.parts]
        if not self.is_range:
            if len({column.dtype.kind for column in columns}) > 1 and any(c.dtype.kind in "UO" for c in columns):
                columns = [column.astype(object) for column in columns]
            return np.stack(columns, axis=1).ravel(), np.full(rows, len(columns), dtype=np.int64)
        start, stop, step = (self._whole(column) for column in columns)
        if (step == 0).any():
            raise InputError(f"step 0 in '{self.text}'", self.where, "the step must not be zero")
        counts = np.maximum(0, -((start - stop) // step))
        if rows and int(counts.max()) > MAX_VALUES:
            raise InputError(f"'{self.text}' has {int(counts.max())} values", self.where, f"at most {MAX_VALUES}")
        first = np.repeat(np.cumsum(counts) - counts, counts)
        position = np.arange(int(counts.sum()), dtype=np.int64) - first
        return np.repeat(start, counts) + position * np.repeat(step, counts), counts

    def _whole(self, column: arithmetic.Column) -> npt.NDArray[np.int64]:
        if column.dtype.kind in "ib":
            return column.astype(np.int64)
        if column.dtype.kind == "f" and (np.abs(column) < 2**53).all() and (column == np.floor(column)).all():
            return column.astype(np.int64)
        raise InputError(f"a bound of '{self.text}' is not an integer", self.where, "use // for whole division")


def parse_values(text: str, where: str) -> ValuesExpression:
    """Parse the values of a parameter. Raises InputError."""
    node = _tree(text, where)
    is_range = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
    items: list[ast.expr] = [node]
    if is_range and isinstance(node, ast.Call):
        if not 1 <= len(node.args) <= 3 or node.keywords:
            raise InputError(f"'{_short(text)}' is not a range", where, "write range(start, stop, step)")
        zero, one = ast.Constant(0), ast.Constant(1)
        items = [zero, node.args[0], one] if len(node.args) == 1 else [*node.args, one][:3]
    elif isinstance(node, (ast.List, ast.Tuple)):
        items = list(node.elts)
        if not 1 <= len(items) <= MAX_VALUES:
            raise InputError(f"'{_short(text)}' has no values", where, "list at least one")
    parts = tuple(_expression(item, text, where) for item in items)
    names = dict.fromkeys(name for part in parts for name in part.names)
    return ValuesExpression(text, where, tuple(names), parts, is_range)


# --- array expressions ---------------------------------------------------------------------------------------------

ARRAY_FUNCTIONS = ("sum", "dot", "convolve", "transpose", "exp", "sqrt", "abs", "minimum", "maximum")
_ARRAY_NODES = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.operator, ast.USub, ast.UAdd, ast.Load)
_ARRAY_OPERATORS = (*_ARITHMETIC, ast.MatMult)


def parse_array_expression(text: str, where: str) -> tuple[str, ...]:
    """Check an array expression over the kernel's arguments (`a @ b`); the names it uses. Raises InputError."""
    tree = _tree(text, where)
    remedy = f"use names, numbers, arithmetic, @ and {', '.join(ARRAY_FUNCTIONS)}"
    for count, node in enumerate(ast.walk(tree)):
        allowed = isinstance(node, _ARRAY_NODES)
        if isinstance(node, ast.Call):
            allowed = isinstance(node.func, ast.Name) and node.func.id in ARRAY_FUNCTIONS and not node.keywords
        elif isinstance(node, ast.operator):
            allowed = isinstance(node, _ARRAY_OPERATORS)
        elif isinstance(node, ast.Constant):
            allowed = isinstance(node.value, (int, float))
        if not allowed or count > 1000:
            raise InputError(f"'{type(node).__name__}' in '{_short(text)}' is not allowed", where, remedy)
    return tuple(dict.fromkeys(_names(tree)))
