"""Triton's interpreter on arrays of NumPy: `TRITON_INTERPRET=1 python interpreted_triton.py KERNEL`.

Reads a list of cases as JSON, and prints of each the largest difference from the product that NumPy makes, in units of
what rounding may leave, and the counters of arrivals afterwards.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import Any

import numpy as np

CACHE_LINE = 64


class Storage:
    """What the interpreter takes for the memory of a tensor."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def cpu(self) -> Storage:
        return self

    def copy_(self, other: Storage) -> None:
        assert other.array is self.array


class Tensor:
    """As much of PyTorch's as the interpreter asks for."""

    def __init__(self, array: np.ndarray | None = None, dtype: str = "") -> None:
        self.dtype = dtype
        if array is not None:
            self.set_(Storage(array))

    def set_(self, storage: Storage, *_: object) -> None:
        self._storage = storage

    def untyped_storage(self) -> Storage:
        return self._storage

    def new_empty(self, *_: object, **__: object) -> Tensor:
        return Tensor(dtype=self.dtype)

    def data_ptr(self) -> int:
        return self._storage.data_ptr()

    def storage_offset(self) -> int:
        return 0

    size = stride = storage_offset


def aligned(numbers: np.ndarray) -> np.ndarray:
    """A copy that begins at a multiple of what descriptors require."""
    room = np.empty(numbers.nbytes + CACHE_LINE, dtype=np.uint8)
    start = -room.ctypes.data % CACHE_LINE
    copy = room[start : start + numbers.nbytes].view(numbers.dtype).reshape(numbers.shape)
    copy[...] = numbers
    return copy


def halves(numbers: np.ndarray, dtype: str) -> np.ndarray:
    """Rounded; BF16 as its bits."""
    if dtype == "float16":
        return aligned(numbers.astype(np.float16))
    bits = numbers.astype(np.float32).view(np.uint32)
    return aligned(((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16))


def singles(numbers: np.ndarray) -> np.ndarray:
    """What the halves are."""
    if numbers.dtype == np.float16:
        return numbers.astype(np.float32)
    return (numbers.astype(np.uint32) << 16).view(np.float32)


def activated(numbers: np.ndarray, name: str) -> np.ndarray:
    """As PyTorch defines them."""
    if name == "gelu":
        return numbers / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (numbers + 0.044715 * numbers**3)))
    return numbers / (1 + np.exp(-numbers)) if name == "silu" else numbers


def run(kernel: Any, case: dict[str, Any]) -> tuple[float, int]:
    """One product; the difference, and what is left in the counters."""
    batch, rows, columns, depth = case["shape"]
    dtype, layout, constants = case["dtype"], case["layout"], dict(case["constants"])
    rng = np.random.default_rng(7)

    def operand(across: bool, high: int, wide: int) -> tuple[Tensor, np.ndarray]:
        stored = halves(rng.normal(size=(batch, *((wide, high) if across else (high, wide)))), dtype)
        return Tensor(stored, dtype), singles(stored).swapaxes(1, 2) if across else singles(stored)

    a, left = operand(layout[0] == "t", rows, depth)
    b, right = operand(layout[1] == "t", depth, columns)
    flat = halves(np.full(batch * rows * columns + 8, -3.0), dtype)
    bias = halves(rng.normal(size=columns), dtype) if case["bias"] else None
    wanted = left @ right + (0.0 if bias is None else singles(bias))
    wanted = activated(wanted, constants["ACTIVATION"])
    workspace = aligned(np.zeros(case["workspace"], dtype=np.float32))
    arrived = aligned(np.zeros(case["arrived"], dtype=np.uint32))
    given = None if bias is None else Tensor(bias, dtype)
    arguments = (Tensor(flat, dtype), a, b, given, Tensor(workspace, "float32"), Tensor(arrived, "uint32"))
    for _ in range(case.get("launches", 1)):
        kernel[(case["programs"],)](*arguments, **constants)
    made = singles(flat)
    assert (made[batch * rows * columns :] == -3.0).all(), "written beyond the end"
    step = 2.0**-10 if dtype == "float16" else 2.0**-7
    difference = np.abs(made[: batch * rows * columns].reshape(wanted.shape) - wanted)
    return float((difference / (step * np.abs(wanted) + 1e-3)).max()), int(arrived.sum())


def main() -> None:
    """The cases of the input, one after the other."""
    spec = importlib.util.spec_from_file_location("kernel", sys.argv[1])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    print(json.dumps([run(module.multiply, case) for case in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
