"""Arguments of kernels as NumPy arrays and scalars, whatever library made them."""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError

Array = npt.NDArray[Any]
_PAGE_LOCKED = re.compile(r"HostAllocation|RegisteredHostMemory|PinnedMemory")  # what such an array is a view of
_KINDS = "biufc"  # of NumPy types that a kernel can be given


def to_numpy(value: Any, where: str) -> Any:
    """A NumPy scalar as it is, an array of NumPy, CuPy, PyTorch, JAX or anything with DLPack as a NumPy array.

    What lies on a device is copied to the host. Raises InputError naming `where` for anything else.
    """
    if isinstance(value, np.generic):
        return _checked(value, where)
    if isinstance(value, bool | int | float | complex):
        kind = type(value).__name__
        raise InputError(f"it is {value!r}, a {kind} of Python", where, f"say which one: numpy.int32({value!r}), say")
    return _checked(np.ascontiguousarray(_on_host(value, where)), where)


def write_back(value: Any, host: Array, where: str) -> bool:
    """Copy to an array that `to_numpy` read, of CuPy, PyCUDA, Numba or PyTorch, what a kernel has made of it.

    False where its library lets nobody write to it, as JAX. Raises InputError where it does, but not to this one.
    """
    try:
        if hasattr(value, "detach") and hasattr(value, "copy_"):  # PyTorch
            value.detach().copy_(importlib.import_module("torch").from_numpy(host))
            return True
        for copies in ("set", "copy_to_device"):  # CuPy and PyCUDA; Numba
            if hasattr(value, "__cuda_array_interface__") and hasattr(value, copies):
                getattr(value, copies)(host)
                return True
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{type(value).__name__} is not written to: {error}", where, "pass a NumPy array") from None
    return False


def is_page_locked(value: Any) -> bool:
    """Whether an array of the host was made page-locked, by PyCUDA, CuPy or PyTorch: kernels may use it where it is."""
    if hasattr(value, "is_pinned"):  # PyTorch
        return bool(value.is_pinned())
    while value is not None:
        kind = type(value)
        if kind.__module__.partition(".")[0] in ("pycuda", "cupy") and _PAGE_LOCKED.search(kind.__name__):
            return True
        value = value.obj if isinstance(value, memoryview) else getattr(value, "base", None)
    return False


def _on_host(value: Any, where: str) -> Array:
    if isinstance(value, np.ndarray):
        return value
    try:
        if hasattr(value, "detach") and hasattr(value, "cpu"):  # PyTorch
            return np.asarray(value.detach().cpu().numpy())
        for copies in ("get", "copy_to_host"):  # CuPy and PyCUDA; Numba
            if hasattr(value, "__cuda_array_interface__") and hasattr(value, copies):
                return np.asarray(getattr(value, copies)())
        if hasattr(value, "__array__"):  # JAX
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            return np.asarray(np.from_dlpack(value))
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        remedy = "pass a NumPy array; of a type that NumPy lacks, a view as integers"
        raise InputError(f"{type(value).__name__} does not become a NumPy array: {error}", where, remedy) from None
    remedy = "pass a NumPy, CuPy, PyTorch or JAX array, or a NumPy scalar"
    raise InputError(f"it is of type {type(value).__name__}", where, remedy)


def _checked(value: Any, where: str) -> Any:
    if value.dtype.kind not in _KINDS:
        raise InputError(f"it has type {value.dtype}", where, "pass numbers of a plain type")
    if isinstance(value, np.ndarray) and value.size == 0:
        raise InputError("it is an empty array", where, "pass one with elements")
    if isinstance(value, np.generic) and value.dtype.kind == "c":
        raise InputError("it is a complex scalar", where, "pass its parts, or an array of one element")
    return value
