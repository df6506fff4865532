"""Between which bounds an expression must lie where some of its names are only known to lie in an interval.

Operands are exact, as in `arithmetic`, until an interval enters. Bounds are floats; they may be too wide, never too
narrow. Whatever is not worked out here (text, a divisor that may be zero) is unbounded. Truth lies within 0..1.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from . import arithmetic
from .arithmetic import Algebra, Operand

Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_EXACT_BELOW = 2.0**53  # integers below this are themselves as floats


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers from low to high; columns broadcast with one another."""

    low: Reals
    high: Reals


def hull_of(column: arithmetic.Column) -> Interval:
    """The interval that holds every value of a column."""
    if column.dtype.kind not in "bif" or not len(column):
        return _UNBOUNDED
    return _checked(np.float64(column.min()), np.float64(column.max()))


def _checked(low: Any, high: Any) -> Interval:
    """The interval, unbounded where a bound is undefined."""
    unknown = np.isnan(low) | np.isnan(high)
    return Interval(np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high))


_UNBOUNDED = Interval(np.asarray(-np.inf), np.asarray(np.inf))


def _interval(operand: Operand | Interval) -> Interval:
    if isinstance(operand, Interval):
        return operand
    column = np.asarray(operand)
    if column.dtype.kind not in "bif":
        return _UNBOUNDED
    number = column.astype(np.float64)
    return _checked(number, number)


def _around(*candidates: Any) -> Interval:
    """The interval from the least to the greatest of the candidates; unbounded where one of them is undefined."""
    return _checked(reduce(np.minimum, candidates), reduce(np.maximum, candidates))


def _joined(first: Interval, second: Interval) -> Interval:
    return Interval(np.minimum(first.low, second.low), np.maximum(first.high, second.high))


def _where(test: Any, first: Interval, second: Interval) -> Interval:
    return Interval(np.where(test, first.low, second.low), np.where(test, first.high, second.high))


def _lifted(exact: Callable[..., Any], bounded: Callable[..., Interval]) -> Callable[..., Any]:
    """The exact operation as long as no operand is an interval."""

    def operate(*operands: Any) -> Any:
        if not any(isinstance(operand, Interval) for operand in operands):
            return exact(*operands)
        return bounded(*(_interval(operand) for operand in operands))

    return operate


# --- arithmetic ----------------------------------------------------------------------------------------------------


def _corners(operate: Callable[[Any, Any], Any], a: Interval, b: Interval) -> Interval:
    """For an operation whose extremes over a rectangle lie in its corners."""
    return _around(operate(a.low, b.low), operate(a.low, b.high), operate(a.high, b.low), operate(a.high, b.high))


def _quotient(operate: Callable[[Any, Any], Any], a: Interval, b: Interval) -> Interval:
    return _where((b.low <= 0) & (b.high >= 0), _UNBOUNDED, _corners(operate, a, b))


def _modulo(a: Interval, b: Interval) -> Interval:
    """Between zero and the divisor; the dividend less a constant where it stays within one multiple of the divisor."""
    within = _where(b.low > 0, Interval(np.zeros_like(b.low), b.high), _UNBOUNDED)
    within = _where(b.high < 0, Interval(b.low, np.zeros_like(b.high)), within)
    one_multiple = (b.low == b.high) & (b.low != 0) & (np.floor_divide(a.low, b.low) == np.floor_divide(a.high, b.low))
    return _where(one_multiple, _around(np.mod(a.low, b.low), np.mod(a.high, b.low)), within)


def _power(a: Interval, b: Interval) -> Interval:
    return _where((a.low > 0) | ((a.low == 0) & (b.low >= 0)), _corners(np.power, a, b), _UNBOUNDED)


# --- comparisons and logic -----------------------------------------------------------------------------------------


def _truth(certain: Any, possible: Any) -> Interval:
    return Interval(np.asarray(certain, dtype=np.float64), np.asarray(possible, dtype=np.float64))


def _large(a: Interval, b: Interval) -> Mask:
    """Where bounds may have been rounded, so that what seems equal need not be."""
    sizes = [np.abs(bound) for bound in (a.low, a.high, b.low, b.high)]
    return np.asarray(reduce(np.maximum, sizes) >= _EXACT_BELOW)


def _less(a: Interval, b: Interval) -> Interval:
    return _truth(a.high < b.low, (a.low < b.high) | (_large(a, b) & (a.low <= b.high)))


def _less_equal(a: Interval, b: Interval) -> Interval:
    return _truth(a.high < b.low, a.low <= b.high)


def _equal(a: Interval, b: Interval) -> Interval:
    same = (a.low == a.high) & (b.low == b.high) & (a.low == b.low) & ~_large(a, b)
    return _truth(same, (a.low <= b.high) & (b.low <= a.high))


def _may_be_zero(a: Interval) -> Mask:
    return np.asarray((a.low <= 0) & (a.high >= 0))


def _is_zero(a: Interval) -> Mask:
    return np.asarray((a.low == 0) & (a.high == 0))


def may_be_true(operand: Operand | Interval) -> Mask:
    """Where a truth is not certainly false."""
    if isinstance(operand, Interval):
        return ~_is_zero(operand)
    return np.asarray(arithmetic.truth(operand)[0], dtype=np.bool_)


def _negation(a: Interval) -> Interval:
    return _truth(_is_zero(a), _may_be_zero(a))


def _choose(test: Any, if_true: Callable[[], Any], if_false: Callable[[], Any]) -> Any:
    if not isinstance(test, Interval):
        true, undefined = arithmetic.truth(test)
        if not isinstance(true, np.ndarray):
            return arithmetic.choose(test, if_true, if_false)
        first, second = if_true(), if_false()
        if not isinstance(first, Interval) and not isinstance(second, Interval):
            return arithmetic.choose(test, lambda: first, lambda: second)
        return _where(undefined, _UNBOUNDED, _where(true, _interval(first), _interval(second)))
    first, second = _interval(if_true()), _interval(if_false())
    either = _where(_may_be_zero(test), _joined(first, second), first)
    return _where(_is_zero(test), second, either)


_FALSE = _truth(False, False)


def _conjunction(first: Any, rest: Callable[[], Any]) -> Any:
    return _choose(first, rest, lambda: _FALSE if isinstance(first, Interval) else first)


# --- functions -----------------------------------------------------------------------------------------------------


def _absolute(a: Interval) -> Interval:
    low, high = np.abs(a.low), np.abs(a.high)
    return Interval(np.where(_may_be_zero(a), 0.0, np.minimum(low, high)), np.maximum(low, high))


def _rising(exact: Callable[..., Any]) -> Callable[..., Interval]:
    """A function that never falls, in none of its arguments, where it is defined."""

    def bounded(*operands: Interval) -> Interval:
        low, high = exact(*(a.low for a in operands)), exact(*(a.high for a in operands))
        return _checked(np.asarray(low, np.float64), np.asarray(high, np.float64))

    return bounded


def _rounded(a: Interval, *digits: Interval) -> Interval:
    return _UNBOUNDED if digits else _rising(_EXACT.functions["round"])(a)


_EXACT = arithmetic.ALGEBRA
_OPERATORS: dict[type[ast.operator], Callable[[Interval, Interval], Interval]] = {
    ast.Add: lambda a, b: _checked(a.low + b.low, a.high + b.high),
    ast.Sub: lambda a, b: _checked(a.low - b.high, a.high - b.low),
    ast.Mult: lambda a, b: _corners(np.multiply, a, b),
    ast.Div: lambda a, b: _quotient(np.divide, a, b),
    ast.FloorDiv: lambda a, b: _quotient(np.floor_divide, a, b),
    ast.Mod: _modulo,
    ast.Pow: _power,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Interval, Interval], Interval]] = {
    ast.Eq: _equal,
    ast.NotEq: lambda a, b: _negation(_equal(a, b)),
    ast.Lt: _less,
    ast.LtE: _less_equal,
    ast.Gt: lambda a, b: _less(b, a),
    ast.GtE: lambda a, b: _less_equal(b, a),
}
_FUNCTIONS: dict[str, Callable[..., Interval]] = {"abs": _absolute, "round": _rounded}  # all others rise

ALGEBRA = Algebra(
    operators={symbol: _lifted(exact, _OPERATORS[symbol]) for symbol, exact in _EXACT.operators.items()},
    comparisons={symbol: _lifted(exact, _COMPARISONS[symbol]) for symbol, exact in _EXACT.comparisons.items()},
    functions={n: _lifted(exact, _FUNCTIONS.get(n) or _rising(exact)) for n, exact in _EXACT.functions.items()},
    negation=_lifted(_EXACT.negation, _negation),
    conjunction=_conjunction,
    disjunction=lambda first, rest: _choose(first, lambda: first, rest),
    choose=_choose,
)
