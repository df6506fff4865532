"""Array expressions such as `a @ b`: what a kernel's outputs are checked against, evaluated with NumPy, never eval'ed.

Half-precision floats are calculated in single precision, everything else in its own type.

bfloat16, which NumPy lacks: the upper half of a float32, kept as its bits in a type of its own name.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.text import shortened
from .expression import names_in, syntax_tree

BFLOAT16: Final = np.dtype([("bfloat16", np.uint16)])


def number_type(name: str) -> np.dtype[Any]:
    """The type of that name, as specifications write it; those of NumPy, and bfloat16."""
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def type_name(kind: np.dtype[Any]) -> str:
    """The reverse of `number_type`."""
    return "bfloat16" if kind == BFLOAT16 else kind.name


def widened(array: Array) -> Array:
    """Half-precision numbers of either kind as float32, which holds them exactly; others as they are."""
    if array.dtype == BFLOAT16:
        bits: Array = array["bfloat16"]
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def cast(array: Array, kind: np.dtype[Any]) -> Array:
    """The numbers in another type; bfloat16 rounds to the nearest, of two equally near ones to the even one."""
    if kind != BFLOAT16:
        return widened(array).astype(kind, copy=False) if array.dtype == BFLOAT16 else array.astype(kind, copy=False)
    if array.dtype == BFLOAT16:
        return array
    exact = np.ascontiguousarray(array, dtype=np.float32)
    bits = exact.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    rounded[np.isnan(exact)] = 0x7FC0
    return rounded.view(BFLOAT16).reshape(array.shape)


Array = npt.NDArray[Any]

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
}


def convolve(image: Array, kernel: Array) -> Array:
    """The convolution of two arrays of the same number of dimensions, where they overlap wholly ('valid')."""
    if image.ndim != kernel.ndim:
        raise ValueError(f"convolve of {image.ndim} and {kernel.ndim} dimensions")
    if image.dtype.kind in "iub" or (image.ndim == 1 and kernel.size <= 64):
        from scipy.signal import convolve as direct

        return np.asarray(direct(image, kernel, mode="valid", method="direct"))
    from scipy.signal import oaconvolve

    kind = np.result_type(image, kernel)
    wide = np.complex128 if kind.kind == "c" else np.float64  # a transform spreads rounding errors over all outputs
    return np.asarray(oaconvolve(image.astype(wide), kernel.astype(wide), mode="valid")).astype(kind)


def conv2d(images: Array, weights: Array, stride: float, pad: float) -> Array:
    """The convolution of a neural network, forward: no kernel is turned over.

    `images` as batch, height, width, channels; `weights` as height, width, channels in, channels out.
    """
    step, edge = int(stride), int(pad)
    if images.ndim != 4 or weights.ndim != 4 or images.shape[3] != weights.shape[2] or step < 1 or edge < 0:
        raise ValueError(f"conv2d of {images.shape} and {weights.shape} with stride {stride:g}, pad {pad:g}")
    padded = np.pad(images, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    high, wide = ((padded.shape[1 + axis] - weights.shape[axis]) // step + 1 for axis in (0, 1))
    if high < 1 or wide < 1:
        raise ValueError(f"conv2d of {images.shape} with a kernel of {weights.shape[:2]}")
    taken = (slice(None, (high - 1) * step + 1, step), slice(None, (wide - 1) * step + 1, step))
    taps = [padded[:, row:, column:][:, *taken] @ weights[row, column] for row, column in np.ndindex(weights.shape[:2])]
    return np.asarray(np.sum(taps, axis=0))


def _gelu(x: Array) -> Array:
    """By its tanh form, as cuBLASLt and most frameworks have it."""
    return np.asarray(0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))))


def _silu(x: Array) -> Array:
    return np.asarray(x / (1.0 + np.exp(-x)))


def _sum(array: Array) -> Any:
    """The sum of all elements, floats in double precision."""
    return np.sum(array, dtype=np.float64 if array.dtype.kind == "f" else None)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "dot": np.dot,
    "convolve": convolve,
    "conv2d": conv2d,
    "transpose": np.transpose,
    "matrix_transpose": lambda array: np.swapaxes(array, -1, -2),
    "gelu": _gelu,
    "silu": _silu,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "minimum": np.minimum,
    "maximum": np.maximum,
}


_NODES = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.USub, ast.UAdd, ast.Load, *_OPERATORS)
_MAXIMUM_NODES = 1000


def parse_array_expression(text: str, where: str) -> tuple[str, ...]:
    """Check an array expression over the kernel's arguments (`a @ b`); the names it uses. Raises InputError."""
    tree = syntax_tree(text, where)
    for count, node in enumerate(ast.walk(tree)):
        allowed = isinstance(node, _NODES)
        if isinstance(node, ast.Call):
            allowed = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords
        elif isinstance(node, ast.Constant):
            allowed = isinstance(node.value, (int, float))
        if not allowed or count > _MAXIMUM_NODES:
            what = f"'{type(node).__name__}' in '{shortened(text)}' is not allowed"
            raise InputError(what, where, f"use names, numbers, arithmetic, @ and {', '.join(_FUNCTIONS)}")
    return tuple(dict.fromkeys(names_in(tree)))


def evaluate_array(text: str, where: str, values: Mapping[str, Any]) -> Array:
    """The value of an array expression over named arrays and numbers.

    Raises InputError for a name that is not among `values`, a wrong number of arguments or shapes that do not match.
    """
    for name in parse_array_expression(text, where):
        if name not in values:
            raise InputError(f"unknown name '{name}' in '{text}'", where, f"known: {', '.join(values)}")
    try:
        with np.errstate(all="ignore"):
            return np.asarray(_value(ast.parse(text.strip(), mode="eval").body, values))
    except (ValueError, TypeError, MemoryError) as error:
        raise InputError(f"'{text}' cannot be calculated: {error}", where, "check shapes and types") from None


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            value = values[name]
            return widened(value) if isinstance(value, np.ndarray) else value
        case ast.UnaryOp(op=op, operand=operand):
            value = _value(operand, values)
            return operator.neg(value) if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _FUNCTIONS[name](*[_value(argument, values) for argument in arguments])
        case _:
            raise TypeError(f"'{type(node).__name__}' is not allowed")
