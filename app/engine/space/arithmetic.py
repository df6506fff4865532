"""Arithmetic of expressions, the same on single values and on NumPy columns.

NaN stands for 'undefined' (a division by zero, the root of a negative number) and poisons what depends on it,
comparisons included, as an exception would: `n % 0 != 1` is undefined, not true. Integers stay exact up to 2**62 and
go on as floats beyond, so that nothing wraps around and nothing grows without bound. Text can only be compared.

What a compiled expression calculates with: one field per kind of operation of the grammar.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from ..results.measurement import Value


@dataclass(frozen=True, slots=True)
class Algebra:
    """Operations on operands of some kind. Those that take a callable need it only where it decides."""

    operators: Mapping[type[ast.operator], Callable[[Any, Any], Any]]
    comparisons: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]]
    functions: Mapping[str, Callable[..., Any]]
    negation: Callable[[Any], Any]
    conjunction: Callable[[Any, Callable[[], Any]], Any]
    disjunction: Callable[[Any, Callable[[], Any]], Any]
    choose: Callable[[Any, Callable[[], Any], Callable[[], Any]], Any]  # test, if true, if false


Column = npt.NDArray[Any]
Operand = Value | Column
_EXACT = 2**62  # |integers| below this are exact in int64, with room for one addition


def column_of(values: tuple[Value, ...] | list[Value]) -> Column:
    """Values as a column of one kind: bool, int64, float64 or text; of mixed kinds as objects. Shape (n,)."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return np.array(values, dtype=np.bool_)
    if kinds == {str}:
        return np.array(values, dtype=np.str_)
    if kinds == {int} and all(-_EXACT < int(value) < _EXACT for value in values):
        return np.array(values, dtype=np.int64)
    if kinds <= {int, float}:
        return np.array(values, dtype=np.float64)
    mixed = np.empty(len(values), dtype=object)
    mixed[:] = values
    return mixed


def normalised(operand: Operand) -> Operand:
    """Any NumPy scalar or column as one of the kinds above."""
    if isinstance(operand, np.generic):
        return operand.item()
    if isinstance(operand, np.ndarray):
        if operand.dtype.kind in "iu":
            return operand.astype(np.int64, copy=False)
        if operand.dtype.kind == "f":
            return operand.astype(np.float64, copy=False)
    return operand


def _is_text(operand: Operand) -> bool:
    return isinstance(operand, str) or (isinstance(operand, np.ndarray) and operand.dtype.kind == "U")


def _is_float(operand: Operand) -> bool:
    return isinstance(operand, float) or (isinstance(operand, np.ndarray) and operand.dtype.kind == "f")


def _is_object(operand: Operand) -> bool:
    return isinstance(operand, np.ndarray) and operand.dtype.kind == "O"


def _tidied(column: Any) -> Operand:
    """The result of an element-wise Python operation, back in one of the plain kinds where it is of one kind."""
    if not isinstance(column, np.ndarray):
        return column  # type: ignore[no-any-return]
    return column_of(column.ravel().tolist()).reshape(column.shape)


def _number(operand: Operand) -> Any:
    """The operand as a number or a column of numbers. Raises TypeError for text."""
    if _is_text(operand):
        raise TypeError("text can be compared, not calculated with")
    if isinstance(operand, bool):
        return int(operand)
    if isinstance(operand, np.ndarray) and operand.dtype.kind == "b":
        return operand.astype(np.int64)
    return operand


def _exact(value: Any) -> Any:
    """An integer that has become too large goes on as a float."""
    if isinstance(value, int) and not -_EXACT < value < _EXACT:
        return float(value)
    return value


def _magnitude(operand: Any) -> int:
    """The largest absolute value of an integer operand."""
    if isinstance(operand, int):
        return abs(operand)
    return max(abs(int(operand.min())), abs(int(operand.max()))) if operand.size else 0


def _as_float(operand: Any) -> Any:
    return operand.astype(np.float64) if isinstance(operand, np.ndarray) else float(operand)


def _without_zero(operand: Any) -> Any:
    """A divisor whose zeros are NaN, so that what is divided by them is undefined."""
    if isinstance(operand, np.ndarray):
        zero = operand == 0
        return np.where(zero, np.nan, operand) if zero.any() else operand
    return math.nan if operand == 0 else operand


def _binary(
    plain: Callable[[Any, Any], Any], largest: Callable[[int, int], int] | None
) -> Callable[[Operand, Operand], Operand]:
    """Lift an operation on numbers to columns; `largest` bounds the magnitude of its integer result."""

    def operate(left: Operand, right: Operand) -> Operand:
        if _is_object(left) or _is_object(right):
            return _tidied(np.frompyfunc(operate, 2, 1)(left, right))
        a, b = _number(left), _number(right)
        if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
            return _exact(plain(a, b))  # type: ignore[no-any-return]
        whole = not _is_float(a) and not _is_float(b)
        if largest is not None and whole and largest(_magnitude(a), _magnitude(b)) >= _EXACT:
            a = _as_float(a)
        return plain(a, b)  # type: ignore[no-any-return]

    return operate


def _float_power(base: Any, exponent: Any) -> Any:
    zero_to_negative = (np.asarray(base) == 0) & (np.asarray(exponent) < 0)
    result = np.where(zero_to_negative, np.nan, np.power(np.float64(base), np.float64(exponent)))
    return result if result.ndim else float(result)


def _power(base: Any, exponent: Any) -> Any:
    """Integers to a non-negative integer stay integers while they are exact; all else is a float."""
    if not _is_float(base) and not _is_float(exponent):
        least = exponent if isinstance(exponent, int) else int(exponent.min()) if exponent.size else 0
        if least >= 0 and _magnitude(base).bit_length() * _magnitude(exponent) <= 62:
            return base**exponent
    return _float_power(base, exponent)


def _undefined(operand: Operand) -> Any:
    """Where a float operand is NaN; False if that cannot be."""
    if isinstance(operand, float):
        return math.isnan(operand)
    if isinstance(operand, np.ndarray) and operand.dtype.kind == "f":
        return np.isnan(operand)
    return False


def _poisoned(result: Any, undefined: Any) -> Operand:
    """The result, NaN if it is undefined."""
    if isinstance(undefined, np.ndarray):
        return np.where(undefined, np.nan, result) if undefined.any() else result
    return math.nan if undefined else result


def _comparison(symbol: str, plain: Callable[[Any, Any], Any]) -> Callable[[Operand, Operand], Operand]:
    """Lift a comparison to columns. Text and number are never equal, and have no order (TypeError)."""

    def compare(left: Operand, right: Operand) -> Operand:
        if _is_object(left) or _is_object(right):
            return _tidied(np.frompyfunc(compare, 2, 1)(left, right))
        if _is_text(left) != _is_text(right):
            if symbol not in ("==", "!="):
                raise TypeError(f"text and number have no order ({symbol})")
            shape = np.broadcast(left, right).shape
            return np.full(shape, symbol == "!=") if shape else symbol == "!="
        return _poisoned(plain(left, right), _undefined(left) | _undefined(right))

    return compare


def truth(operand: Operand) -> tuple[Any, Any]:
    """(true, undefined): where the operand counts as true and where it is NaN; bool or columns of bool."""
    if isinstance(operand, np.ndarray):
        true, undefined = operand.astype(np.bool_, copy=False), _undefined(operand)
        return (true & ~undefined if isinstance(undefined, np.ndarray) else true), undefined
    undefined = _undefined(operand)
    return bool(operand) and not undefined, undefined


def _same_kind(first: Operand, second: Operand) -> tuple[Any, Any]:
    """Two operands for one column: text beside numbers needs a column of objects."""
    if _is_text(first) != _is_text(second) or _is_object(first) or _is_object(second):
        return np.asarray(first, dtype=object), np.asarray(second, dtype=object)
    return first, second


def choose(test: Operand, if_true: Callable[[], Operand], if_false: Callable[[], Operand]) -> Operand:
    """`if_true() if test else if_false()`, row by row on columns; undefined where the test is."""
    true, undefined = truth(test)
    if not isinstance(true, np.ndarray):
        return math.nan if undefined else if_true() if true else if_false()
    first, second = _same_kind(if_true(), if_false())
    chosen = np.where(true, first, second)
    if chosen.dtype.kind == "O":
        chosen = np.where(undefined, math.nan, chosen)
        return _tidied(chosen)
    return _poisoned(chosen, undefined)


def negation(operand: Operand) -> Operand:
    """Logical not."""
    true, undefined = truth(operand)
    return _poisoned(~true if isinstance(true, np.ndarray) else not true, undefined)


def _extreme(plain: Callable[[Any, Any], Any], whole: Callable[[Any, Any], Any]) -> Callable[..., Operand]:
    """Lift the smaller or the larger of two numbers to any number of columns."""

    def pick(left: Operand, right: Operand) -> Operand:
        a, b = _number(left), _number(right)
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return whole(a, b)  # type: ignore[no-any-return]
        return math.nan if _undefined(a) or _undefined(b) else plain(a, b)

    return lambda *operands: reduce(pick, operands)


def _unary(plain: Callable[[Any], Any], keeps_integers: bool = False) -> Callable[[Operand], Operand]:
    """Lift a NumPy function of one number; NaN if its result is not finite though its argument is."""

    def operate(operand: Operand) -> Operand:
        number = _number(operand)
        if keeps_integers and not _is_float(number):
            return number  # type: ignore[no-any-return]
        argument = np.asarray(number, dtype=np.float64)
        result = np.where(np.isfinite(argument) & np.isinf(plain(argument)), np.nan, plain(argument))
        if keeps_integers and (np.abs(result) < _EXACT).all():
            result = result.astype(np.int64)
        return result if result.ndim else result.item()

    return operate


_to_whole = _unary(np.rint, keeps_integers=True)


def _rounded(operand: Operand, digits: Operand = 0) -> Operand:
    """Round half to even, as Python does; to an integer without `digits`."""
    if not isinstance(digits, int) or not -15 <= digits <= 15:
        raise TypeError("round takes a number of digits between -15 and 15")
    number = _number(operand)
    if digits == 0:
        return _to_whole(number)
    result = np.round(np.asarray(number, dtype=np.float64), digits)
    return result if result.ndim else float(result)


ALGEBRA = Algebra(
    operators={
        ast.Add: _binary(operator.add, lambda a, b: a + b),
        ast.Sub: _binary(operator.sub, lambda a, b: a + b),
        ast.Mult: _binary(operator.mul, lambda a, b: a * b),
        ast.Div: _binary(lambda a, b: a / _without_zero(b), None),
        ast.FloorDiv: _binary(lambda a, b: a // _without_zero(b), None),
        ast.Mod: _binary(lambda a, b: a % _without_zero(b), None),
        ast.Pow: _binary(_power, None),
    },
    comparisons={
        ast.Eq: _comparison("==", operator.eq),
        ast.NotEq: _comparison("!=", operator.ne),
        ast.Lt: _comparison("<", operator.lt),
        ast.LtE: _comparison("<=", operator.le),
        ast.Gt: _comparison(">", operator.gt),
        ast.GtE: _comparison(">=", operator.ge),
    },
    functions={
        "min": _extreme(min, np.minimum),
        "max": _extreme(max, np.maximum),
        "abs": lambda operand: abs(_number(operand)),
        "round": _rounded,
        "int": _unary(np.trunc, keeps_integers=True),
        "float": _unary(np.positive),
        "ceil": _unary(np.ceil, keeps_integers=True),
        "floor": _unary(np.floor, keeps_integers=True),
        "sqrt": _unary(np.sqrt),
        "log": _unary(np.log),
        "log2": _unary(np.log2),
        "log10": _unary(np.log10),
        "exp": _unary(np.exp),
    },
    negation=negation,
    conjunction=lambda first, rest: choose(first, rest, lambda: first),
    disjunction=lambda first, rest: choose(first, lambda: first, rest),
    choose=choose,
)
