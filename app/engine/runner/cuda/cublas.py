"""cuBLAS's single-precision matrix product, by its C functions: the fixed load that shows whether a board drifts."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from .toolkit import library_places

N: Final = 4096  # C = A B of N x N matrices: a few milliseconds on a large board, enough blocks for any
BYTES: Final = 4 * N * N
_VERSIONS: Final = ("13", "12", "11")
_NO_TRANSPOSE: Final = 0  # CUBLAS_OP_N
_ONE, _ZERO = ctypes.c_float(1.0), ctypes.c_float(0.0)


class Product:
    """C = A B on one stream. `buffers` are the device addresses of C, A and B, BYTES each."""

    def __init__(self, library: ctypes.CDLL, stream: int, buffers: tuple[int, int, int]) -> None:
        """Raises OSError where the library refuses."""
        self._library = library
        self._handle = ctypes.c_void_p()
        self._c, self._a, self._b = (ctypes.c_void_p(address) for address in buffers)
        self._call(library.cublasCreate_v2, ctypes.byref(self._handle))
        self._call(library.cublasSetStream_v2, self._handle, ctypes.c_void_p(stream))

    def launch(self, times: int) -> None:
        """Queue it that often. Raises OSError."""
        shape = (_NO_TRANSPOSE, _NO_TRANSPOSE, N, N, N)
        for _ in range(times):
            self._call(
                self._library.cublasSgemm_v2,
                *(self._handle, *shape, ctypes.byref(_ONE), self._a, N, self._b, N, ctypes.byref(_ZERO), self._c, N),
            )

    def close(self) -> None:
        self._library.cublasDestroy_v2(self._handle)

    def _call(self, function: Callable[..., int], *arguments: Any) -> None:
        status = function(*arguments)
        if status:
            raise OSError(f"cuBLAS failed with status {status}")


@lru_cache(maxsize=1)
def cublas() -> ctypes.CDLL | None:
    """The library, or None where there is none."""
    for place in library_places("cublas", _VERSIONS):
        try:
            library = ctypes.CDLL(place)
        except OSError:
            continue
        if hasattr(library, "cublasSgemm_v2"):
            return library
    return None
