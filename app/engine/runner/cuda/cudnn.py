"""cuDNN by its C functions: a convolution forward in FP32, its algorithm as the library chooses, without TF32."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any, Final

from ...operators.shapes import Operator
from .toolkit import library_places

_VERSIONS: Final = ("9", "8")
_NCHW: Final = 0  # CUDNN_TENSOR_NCHW
_FLOAT: Final = 0  # CUDNN_DATA_FLOAT
_CROSS_CORRELATION: Final = 1
_FMA_MATH: Final = 3  # CUDNN_FMA_MATH: no tensor cores, and so no TF32


class _Performance(ctypes.Structure):
    """cudnnConvolutionFwdAlgoPerf_t"""

    _fields_ = (
        ("algorithm", ctypes.c_int),
        ("status", ctypes.c_int),
        ("time_ms", ctypes.c_float),
        ("memory", ctypes.c_size_t),
        ("determinism", ctypes.c_int),
        ("math", ctypes.c_int),
        ("reserved", ctypes.c_int * 3),
    )


class Convolution:
    """y = x convolved with w, all as cuDNN has them by default: NCHW, weights as Cout, Cin, kernel, kernel."""

    def __init__(self, library: ctypes.CDLL, stream: int, operator: Operator) -> None:
        """Raises OSError where the library refuses."""
        self._library = library
        self._handle = ctypes.c_void_p()
        self._check(library.cudnnCreate(ctypes.byref(self._handle)))
        self._check(library.cudnnSetStream(self._handle, ctypes.c_void_p(stream)))
        size = operator.sizes
        high, wide = operator.output_extents
        kernel, pad, stride = size["kernel"], size["pad"], size["stride"]
        self._x = self._tensor(size["batch"], size["Cin"], size["H"], size["W"])
        self._y = self._tensor(size["batch"], size["Cout"], high, wide)
        self._w = self._made("cudnnCreateFilterDescriptor")
        self._check(
            library.cudnnSetFilter4dDescriptor(self._w, _FLOAT, _NCHW, size["Cout"], size["Cin"], kernel, kernel)
        )
        self._how = self._made("cudnnCreateConvolutionDescriptor")
        self._check(
            library.cudnnSetConvolution2dDescriptor(
                self._how, pad, pad, stride, stride, 1, 1, _CROSS_CORRELATION, _FLOAT
            )
        )
        self._check(library.cudnnSetConvolutionMathType(self._how, _FMA_MATH))
        self._algorithm = self._chosen()
        needed = ctypes.c_size_t()
        self._check(
            library.cudnnGetConvolutionForwardWorkspaceSize(
                self._handle, self._x, self._w, self._how, self._y, self._algorithm, ctypes.byref(needed)
            )
        )
        self.workspace_byte = needed.value

    @property
    def version(self) -> str:
        self._library.cudnnGetVersion.restype = ctypes.c_size_t
        number = int(self._library.cudnnGetVersion())
        unit = 10000 if number >= 90000 else 1000
        return f"cuDNN {number // unit}.{number % unit // 100}.{number % 100}, algorithm {self._algorithm}"

    def queue(self, x: int, w: int, y: int, workspace: int) -> None:
        """Launch it on those device addresses. Raises OSError."""
        one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        self._check(
            self._library.cudnnConvolutionForward(
                *(self._handle, ctypes.byref(one), self._x, ctypes.c_void_p(x), self._w, ctypes.c_void_p(w)),
                *(self._how, self._algorithm, ctypes.c_void_p(workspace), ctypes.c_size_t(self.workspace_byte)),
                *(ctypes.byref(zero), self._y, ctypes.c_void_p(y)),
            )
        )

    def close(self) -> None:
        self._library.cudnnDestroy(self._handle)

    def _chosen(self) -> int:
        """What the library would take by itself."""
        found, count = (_Performance * 1)(), ctypes.c_int()
        self._check(
            self._library.cudnnGetConvolutionForwardAlgorithm_v7(
                self._handle, self._x, self._w, self._how, self._y, 1, ctypes.byref(count), found
            )
        )
        if not count.value or found[0].status:
            raise OSError("cuDNN has no algorithm for this convolution")
        return int(found[0].algorithm)

    def _tensor(self, batch: int, channels: int, high: int, wide: int) -> ctypes.c_void_p:
        made = self._made("cudnnCreateTensorDescriptor")
        self._check(self._library.cudnnSetTensor4dDescriptor(made, _NCHW, _FLOAT, batch, channels, high, wide))
        return made

    def _made(self, function: str) -> ctypes.c_void_p:
        descriptor = ctypes.c_void_p()
        self._check(getattr(self._library, function)(ctypes.byref(descriptor)))
        return descriptor

    def _check(self, status: Any) -> None:
        if status:
            raise OSError(f"cuDNN failed with status {status}")


@lru_cache(maxsize=1)
def cudnn() -> ctypes.CDLL | None:
    """The library, or None where there is none."""
    for place in library_places("cudnn", _VERSIONS):
        try:
            library = ctypes.CDLL(place)
        except OSError:
            continue
        if hasattr(library, "cudnnGetConvolutionForwardAlgorithm_v7"):
            return library
    return None
