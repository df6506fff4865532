"""What operators are, by definition and in double precision; not by what the program verifies with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from kernels_on_cpu import Arrays

from app.engine.specification.operator_shapes import Operator


def by_definition(operator: Operator, given: Arrays) -> npt.NDArray[Any]:
    """The output of these operands."""
    given = {name: _exact(array) for name, array in given.items()}
    if operator.kind == "mm":
        return np.einsum("bij,bjk->bik", given["a"], given["b"])
    if operator.kind == "mv":
        return np.einsum("bnk,bkj->bnj", given["w"], given["x"])
    size = operator.sizes
    edge = (size["pad"],) * 2
    padded = np.pad(given["x"], ((0, 0), edge, edge, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size["kernel"],) * 2, axis=(1, 2))
    taken = windows[:, :: size["stride"], :: size["stride"]]
    return np.einsum("bhwcrs,rsco->bhwo", taken, given["w"])


def _exact(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """In double precision; a bfloat16 by its sign, exponent and fraction."""
    if array.dtype.names is None:
        return array.astype(float)
    bits = array["bfloat16"].astype(int)
    sign, exponent, fraction = 1 - 2 * (bits >> 15), bits >> 7 & 255, bits & 127
    size = np.where(exponent > 0, 1 + fraction / 128, fraction / 64)
    return np.asarray(sign * np.ldexp(size, exponent - 127))
