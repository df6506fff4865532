"""cuBLAS by its C functions: a handle on one stream, and the fixed product that shows whether a board drifts."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any, Final

from .toolkit import load_first

N: Final = 4096  # C = A B of N x N matrices: a few milliseconds on a large board, enough blocks for any
BYTES: Final = 4 * N * N
_VERSIONS: Final = ("13", "12", "11")
NO_TRANSPOSE: Final = 0  # CUBLAS_OP_N
TRANSPOSE: Final = 1  # CUBLAS_OP_T
ONE, ZERO = ctypes.c_float(1.0), ctypes.c_float(0.0)


class Blas:
    """The library on one stream. What it refuses raises OSError."""

    def __init__(self, library: ctypes.CDLL, stream: int) -> None:
        self._library = library
        self._handle = ctypes.c_void_p()
        self._check(library.cublasCreate_v2(ctypes.byref(self._handle)))
        self.call("cublasSetStream_v2", ctypes.c_void_p(stream))

    @property
    def version(self) -> str:
        number = ctypes.c_int()
        self.call("cublasGetVersion_v2", ctypes.byref(number))
        major, rest = divmod(number.value, 10000)
        return f"cuBLAS {major}.{rest // 100}.{rest % 100}"

    def has(self, function: str) -> bool:
        """Whether this release has it."""
        return hasattr(self._library, function)

    def call(self, function: str, *arguments: Any) -> None:
        """A function of the library, the handle before its arguments."""
        self._check(getattr(self._library, function)(self._handle, *arguments))

    def close(self) -> None:
        self._library.cublasDestroy_v2(self._handle)

    def _check(self, status: int) -> None:
        if status:
            raise OSError(f"cuBLAS failed with status {status}")


class Product:
    """C = A B on one stream. `buffers` are the device addresses of C, A and B, BYTES each."""

    def __init__(self, library: ctypes.CDLL, stream: int, buffers: tuple[int, int, int]) -> None:
        """Raises OSError if the library refuses."""
        self._blas = Blas(library, stream)
        self._c, self._a, self._b = (ctypes.c_void_p(address) for address in buffers)

    def launch(self, times: int) -> None:
        """Queue it that often. Raises OSError."""
        shape = (NO_TRANSPOSE, NO_TRANSPOSE, N, N, N)
        one, zero = ctypes.byref(ONE), ctypes.byref(ZERO)
        for _ in range(times):
            self._blas.call("cublasSgemm_v2", *shape, one, self._a, N, self._b, N, zero, self._c, N)

    def close(self) -> None:
        self._blas.close()


@lru_cache(maxsize=1)
def cublas() -> ctypes.CDLL | None:
    """The library, or None if there is none."""
    return load_first("cublas", _VERSIONS, "cublasSgemm_v2")
