"""An operator by the vendor's library on the session's own operands, launched as our kernels are: the reference beside
a session's configurations, and never one of them."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import numpy as np

from ...operators.shapes import Operator
from ..kernels.backend import Array, DeviceFault, KernelFacts
from .cublas import NO_TRANSPOSE, ONE, TRANSPOSE, ZERO, Blas, cublas
from .cudnn import Convolution, cudnn
from .driver import Driver, Recording
from .recorded import launch_recorded

_WORKSPACE: Final = 32 << 20  # as NVIDIA recommends for Hopper: given to cuBLAS, it asks for none while recorded

_R_32F: Final = 0  # CUDA_R_32F, a cudaDataType
_R_HALF: Final = {"fp16": 2, "bf16": 14}  # CUDA_R_16F, CUDA_R_16BF
_GEMV: Final = {  # operands, sums and y; the last two since CUDA 11.6
    "fp32": "cublasSgemvStridedBatched",
    "fp16": "cublasHSSgemvStridedBatched",
    "bf16": "cublasTSSgemvStridedBatched",
}
_COMPUTE_32F: Final = 68  # CUBLAS_COMPUTE_32F
_DEFAULT_ALGORITHM: Final = -1  # CUBLAS_GEMM_DEFAULT

Operands = Mapping[str, tuple[int, Array]]  # by an argument's name: its device address, and the array it holds


class _Calls(Protocol):
    """One way to a library."""

    library: str  # its name and version

    def queue(self) -> None:
        """Launch it once."""
        ...

    def deliver(self) -> None:
        """The output where the session expects it, if it was written elsewhere."""
        ...

    def close(self) -> None: ...


class VendorOperator:
    """Implements `Kernel`."""

    facts = KernelFacts(0, 0, 0, 0, math.nan)

    def __init__(self, driver: Driver, operator: Operator, operands: Operands) -> None:
        """Raises DeviceFault, with what is missing in words, where no library does this."""
        self._driver = driver
        self._recording: Recording | None = None
        self._recordable = True
        try:
            self._calls = _calls(driver, operator, operands)
            self._calls.queue()  # a first call loads kernels, which a recording must not
        except OSError as error:
            raise DeviceFault(str(error)) from None

    @property
    def library(self) -> str:
        return self._calls.library

    def launch(self, times: int) -> None:
        if self._recordable:
            try:
                self._recording = launch_recorded(self._driver, self._queue, self._recording, times)
                return
            except DeviceFault as fault:
                if fault.fatal or self._recording is not None:
                    raise
                self._recordable = False  # a library that does something else meanwhile, such as asking for memory
        self._queue(times)

    def deliver(self) -> None:
        """Once what is queued has run, the output is where the session's kernels write it."""
        self._calls.deliver()

    def unload(self) -> None:
        if self._recording is not None:
            self._recording.destroy()
            self._recording = None
        self._calls.close()

    def _queue(self, times: int) -> None:
        try:
            for _ in range(times):
                self._calls.queue()
        except OSError as error:
            raise DeviceFault(str(error)) from None


def _calls(driver: Driver, operator: Operator, operands: Operands) -> _Calls:
    """Raises OSError where no library does this."""
    size = operator.sizes
    direct = operator.kind == "conv2d" and (size["kernel"], size["stride"], size["pad"]) == (1, 1, 0)
    single = operator.precision == "fp32"
    if operator.kind == "conv2d" and single and (library := cudnn()) is not None:
        return _ByCudnn(driver, library, operator, operands)
    if operator.kind == "conv2d" and not direct and not single:
        raise OSError(f"cuDNN is not asked for {operator.precision}: it would write other numbers than our FP32")
    if operator.kind == "conv2d" and not direct:
        raise OSError("cuDNN was not found: pip install nvidia-cudnn-cu12 (or -cu13)")
    if (blas := cublas()) is None:
        raise OSError("cuBLAS was not found: pip install nvidia-cublas-cu12 (or nvidia-cublas)")
    return _ByCublas(driver, blas, operator, operands)


class _ByCublas:
    """Products, and convolutions that are one. cuBLAS has matrices column by column, so that it sees our transposes."""

    def __init__(self, driver: Driver, library: ctypes.CDLL, operator: Operator, operands: Operands) -> None:
        self._driver = driver
        self._workspace = driver.allocate(_WORKSPACE)
        self._blas = Blas(library, driver.stream)
        if self._blas.has("cublasSetWorkspace_v2"):
            self._blas.call("cublasSetWorkspace_v2", ctypes.c_void_p(self._workspace), ctypes.c_size_t(_WORKSPACE))
        self.library = self._blas.version
        self._one = self._vector(operator, operands) if operator.kind == "mv" else self._product(operator, operands)

    def queue(self) -> None:
        self._one()

    def deliver(self) -> None: ...

    def close(self) -> None:
        self._blas.close()
        self._driver.free(self._workspace)

    def _product(self, operator: Operator, operands: Operands) -> Callable[[], None]:
        """c = a b row by row is its transpose b' a' column by column."""
        batch, rows, columns, depth = operator.product
        names = ("y", "x", "w") if operator.kind == "conv2d" else ("c", "a", "b")
        c, a, b = (ctypes.c_void_p(operands[name][0]) for name in names)
        one, zero = ctypes.byref(ONE), ctypes.byref(ZERO)
        shape = (NO_TRANSPOSE, NO_TRANSPOSE, columns, rows, depth)
        if (half := _R_HALF.get(operator.precision)) is not None:  # sums and c in FP32
            first, second = (b, half, columns), (a, half, depth)
            apart = [ctypes.c_longlong(each) for each in (depth * columns, rows * depth, rows * columns)]
            end = (batch, _COMPUTE_32F, _DEFAULT_ALGORITHM)
            return lambda: self._blas.call(
                "cublasGemmStridedBatchedEx",
                *(*shape, one, *first, apart[0], *second, apart[1], zero, c, _R_32F, columns, apart[2], *end),
            )
        if batch == 1:
            return lambda: self._blas.call("cublasSgemm_v2", *shape, one, b, columns, a, depth, zero, c, columns)
        apart_c, apart_a, apart_b = (
            ctypes.c_longlong(each) for each in (rows * columns, rows * depth, depth * columns)
        )
        right, left, to = (b, columns, apart_b), (a, depth, apart_a), (c, columns, apart_c)
        return lambda: self._blas.call("cublasSgemmStridedBatched", *shape, one, *right, *left, zero, *to, batch)

    def _vector(self, operator: Operator, operands: Operands) -> Callable[[], None]:
        """w row by row is a matrix of K x N column by column, of which the transpose is taken."""
        batch, rows, _, depth = operator.product
        y, w, x = (ctypes.c_void_p(operands[name][0]) for name in ("y", "w", "x"))
        one, zero = ctypes.byref(ONE), ctypes.byref(ZERO)
        if batch == 1 and operator.precision == "fp32":
            return lambda: self._blas.call("cublasSgemv_v2", TRANSPOSE, depth, rows, one, w, depth, x, 1, zero, y, 1)
        apart_w, apart_x, apart_y = (ctypes.c_longlong(each) for each in (rows * depth, depth, rows))
        function = _GEMV[operator.precision]
        if self._blas.has(function):
            matrix, to = (depth, rows, one, w, depth, apart_w), (zero, y, 1, apart_y)
            return lambda: self._blas.call(function, TRANSPOSE, *matrix, x, 1, apart_x, *to, batch)
        if operator.precision != "fp32":
            raise OSError(f"{self._blas.version} has no {function}")
        shape = (TRANSPOSE, NO_TRANSPOSE, rows, 1, depth)
        left, right, into = (w, depth, apart_w), (x, depth, apart_x), (y, rows, apart_y)
        return lambda: self._blas.call("cublasSgemmStridedBatched", *shape, one, *left, *right, zero, *into, batch)


class _ByCudnn:
    """Convolutions, on copies of the operands in cuDNN's own order of axes."""

    def __init__(self, driver: Driver, library: ctypes.CDLL, operator: Operator, operands: Operands) -> None:
        self._driver = driver
        self._convolution = Convolution(library, driver.stream, operator)
        self.library = self._convolution.version
        self._target, like = operands["y"]
        batch, high, wide, channels = like.shape
        self._output: Array = np.empty((batch, channels, high, wide), like.dtype)
        self._buffers: list[int] = []
        images, weights = operands["x"][1].transpose(0, 3, 1, 2), operands["w"][1].transpose(3, 2, 0, 1)
        self._x, self._w = self._copied(images), self._copied(weights)
        self._y = self._room(self._output.nbytes)
        self._workspace = self._room(max(1, self._convolution.workspace_byte))

    def queue(self) -> None:
        self._convolution.queue(self._x, self._w, self._y, self._workspace)

    def deliver(self) -> None:
        self._driver.read(self._y, self._output)
        self._driver.write(self._target, np.ascontiguousarray(self._output.transpose(0, 2, 3, 1)))

    def close(self) -> None:
        self._convolution.close()
        for buffer in self._buffers:
            self._driver.free(buffer)

    def _room(self, nbyte: int) -> int:
        self._buffers.append(self._driver.allocate(nbyte))
        return self._buffers[-1]

    def _copied(self, array: Array) -> int:
        buffer = self._room(array.nbytes)
        self._driver.write(buffer, np.ascontiguousarray(array))
        return buffer
