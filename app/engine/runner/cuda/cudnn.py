"""cuDNN by its C functions: a convolution forward in FP32 without TF32, by any of the library's algorithms."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any, Final

from ...specification.operator_shapes import Operator
from .toolkit import load_first

_VERSIONS: Final = ("9", "8")
LAYOUTS: Final = {"NCHW": 0, "NHWC": 1}  # CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC
_FLOAT: Final = 0  # CUDNN_DATA_FLOAT
_CROSS_CORRELATION: Final = 1
_FMA_MATH: Final = 3  # CUDNN_FMA_MATH: no tensor cores, and so no TF32
_ALGORITHMS: Final = 8  # CUDNN_CONVOLUTION_FWD_ALGO_COUNT
_MOST_WORKSPACE: Final = 1 << 30  # bytes: as frameworks allow


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
    """y = x convolved with w, axes in one of LAYOUTS, weights as Cout and then the axes of an image.

    `algorithm` is the one that `queue` takes, at first what the library would take by itself.
    """

    def __init__(self, library: ctypes.CDLL, stream: int, operator: Operator, layout: str = "NCHW") -> None:
        """Raises OSError if the library refuses."""
        self._library = library
        self._layout = layout
        self._handle = ctypes.c_void_p()
        self._check(library.cudnnCreate(ctypes.byref(self._handle)))
        self._check(library.cudnnSetStream(self._handle, ctypes.c_void_p(stream)))
        size = operator.sizes
        high, wide = operator.output_extents
        kernel, pad, stride = size["kernel"], size["pad"], size["stride"]
        self._x = self._tensor(size["batch"], size["Cin"], size["H"], size["W"])
        self._y = self._tensor(size["batch"], size["Cout"], high, wide)
        self._w = self._made("cudnnCreateFilterDescriptor")
        taps = (size["Cout"], size["Cin"], kernel, kernel)
        self._check(library.cudnnSetFilter4dDescriptor(self._w, _FLOAT, LAYOUTS[layout], *taps))
        self._how = self._made("cudnnCreateConvolutionDescriptor")
        self._check(
            library.cudnnSetConvolution2dDescriptor(
                self._how, pad, pad, stride, stride, 1, 1, _CROSS_CORRELATION, _FLOAT
            )
        )
        self._check(library.cudnnSetConvolutionMathType(self._how, _FMA_MATH))
        self.algorithms = self._usable()
        if not self.algorithms:
            raise OSError("cuDNN has no algorithm for this convolution")
        self.algorithm = next(iter(self.algorithms))

    @property
    def version(self) -> str:
        self._library.cudnnGetVersion.restype = ctypes.c_size_t
        number = int(self._library.cudnnGetVersion())
        unit = 10000 if number >= 90000 else 1000
        release = f"{number // unit}.{number % unit // 100}.{number % 100}"
        return f"cuDNN {release}, {self._layout}, algorithm {self.algorithm}"

    @property
    def workspace_byte(self) -> int:
        """That the algorithm needs."""
        return self.algorithms[self.algorithm]

    def queue(self, x: int, w: int, y: int, workspace: int) -> None:
        """Launch it on those device addresses. Raises OSError."""
        one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        self._check(
            self._library.cudnnConvolutionForward(
                *(self._handle, ctypes.byref(one), self._x, ctypes.c_void_p(x), self._w, ctypes.c_void_p(w)),
                *(self._how, self.algorithm, ctypes.c_void_p(workspace), ctypes.c_size_t(self.workspace_byte)),
                *(ctypes.byref(zero), self._y, ctypes.c_void_p(y)),
            )
        )

    def close(self) -> None:
        self._library.cudnnDestroy(self._handle)

    def _usable(self) -> dict[int, int]:
        """Its algorithms and their workspaces, bytes; in the order in which the library thinks that they are fast."""
        algorithms, count = (_Performance * _ALGORITHMS)(), ctypes.c_int()
        self._check(
            self._library.cudnnGetConvolutionForwardAlgorithm_v7(
                self._handle, self._x, self._w, self._how, self._y, _ALGORITHMS, ctypes.byref(count), algorithms
            )
        )
        usable: dict[int, int] = {}
        for match in algorithms[: count.value]:
            needed = ctypes.c_size_t()
            refused = match.status or self._library.cudnnGetConvolutionForwardWorkspaceSize(
                *(self._handle, self._x, self._w, self._how, self._y, match.algorithm, ctypes.byref(needed))
            )
            if not refused and needed.value <= _MOST_WORKSPACE:
                usable.setdefault(int(match.algorithm), needed.value)
        return usable

    def _tensor(self, batch: int, channels: int, high: int, wide: int) -> ctypes.c_void_p:
        made = self._made("cudnnCreateTensorDescriptor")
        self._check(
            self._library.cudnnSetTensor4dDescriptor(made, LAYOUTS[self._layout], _FLOAT, batch, channels, high, wide)
        )
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
    """The library, or None if there is none."""
    return load_first("cudnn", _VERSIONS, "cudnnGetConvolutionForwardAlgorithm_v7")
