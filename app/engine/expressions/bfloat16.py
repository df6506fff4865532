"""bfloat16, which NumPy lacks: the upper half of a float32, kept as its bits in a type of its own name."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

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
