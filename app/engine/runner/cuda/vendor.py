"""cuBLAS and cuDNN by their C functions, as kernels that are launched as ours are.

An operator on the session's own operands is the reference beside its configurations, and never one of them. A fixed
product shows whether a board drifts. Convolutions are computed forward in FP32 without TF32, by any of cuDNN's
algorithms.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, Protocol

import numpy as np

from ....base.installation import how_to_add_package
from ...specification.operator_shapes import Operator
from ..kernels.backend import Array, DeviceFault, KernelFacts
from .cublaslt import EPILOGUES, WORKSPACE, Algorithm, Product, cublaslt
from .driver import Driver, Recording, launch_recorded
from .toolkit import load_first

_N: Final = 4096  # C = A B of N x N matrices: a few milliseconds on a large board, enough blocks for any
_BYTES: Final = 4 * _N * _N
NO_TRANSPOSE: Final = 0  # CUBLAS_OP_N
TRANSPOSE: Final = 1  # CUBLAS_OP_T
ONE, ZERO = ctypes.c_float(1.0), ctypes.c_float(0.0)

_WORKSPACE: Final = 32 << 20  # as NVIDIA recommends for Hopper: given to cuBLAS, it asks for none while recorded

_R_HALF: Final = {"fp16": 2, "bf16": 14}  # CUDA_R_16F, CUDA_R_16BF
_GEMV: Final = {  # operands, sums and y; the last two since CUDA 11.6
    "fp32": "cublasSgemvStridedBatched",
    "fp16": "cublasHSSgemvStridedBatched",
    "bf16": "cublasTSSgemvStridedBatched",
}
_COMPUTE_32F: Final = 68  # CUBLAS_COMPUTE_32F
_DEFAULT_ALGORITHM: Final = -1  # CUBLAS_GEMM_DEFAULT
_TIMED: Final = 8  # launches of each way that there is,
_WARM_S: Final = 0.05  # that the board runs before ways are compared,
_MOST_WARM: Final = 500  # in so many turns at most
_LOOKS: Final = 2  # the second look once the clock has risen
_FEWEST: Final = 16  # launches that are recorded: one may be of several kernels, which takes the host long
_RECORDINGS: Final = 3  # tries to record launches: what a library does only once may be over by the next
LAYOUTS: Final = {"NCHW": 0, "NHWC": 1}  # CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC
_FLOAT: Final = 0  # CUDNN_DATA_FLOAT
_CROSS_CORRELATION: Final = 1
_FMA_MATH: Final = 3  # CUDNN_FMA_MATH: no tensor cores, and so no TF32
_ALGORITHMS: Final = 8  # CUDNN_CONVOLUTION_FWD_ALGO_COUNT
_MOST_WORKSPACE: Final = 1 << 30  # bytes: as frameworks allow

Operands = Mapping[str, tuple[int, Array]]  # by an argument's name: its device address, and the array it holds


@lru_cache(maxsize=1)
def cublas() -> ctypes.CDLL | None:
    """The library, or None if there is none."""
    return load_first("cublas", ("13", "12", "11"), "cublasSgemm_v2")


@lru_cache(maxsize=1)
def cudnn() -> ctypes.CDLL | None:
    """The library, or None if there is none."""
    return load_first("cudnn", ("9", "8"), "cudnnGetConvolutionForwardAlgorithm_v7")


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
        """Its algorithms and their workspaces, bytes; in the library's own estimate of their speed, fastest first."""
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


class VendorProduct:
    """Implements `Kernel`: cuBLAS's matrix product of random operands."""

    facts = KernelFacts()

    def __init__(self, driver: Driver, library: ctypes.CDLL) -> None:
        """Raises OSError and DeviceFault."""
        self._driver = driver
        self._buffers = [driver.allocate(_BYTES) for _ in range(3)]
        operand = np.random.default_rng(0).random(_BYTES // 4, dtype=np.float32)
        c, a, b = (ctypes.c_void_p(buffer) for buffer in self._buffers)
        for buffer in self._buffers[1:]:
            driver.write(buffer, operand)
        self._blas = Blas(library, driver.stream)
        one, zero = ctypes.byref(ONE), ctypes.byref(ZERO)
        self._words = NO_TRANSPOSE, NO_TRANSPOSE, _N, _N, _N, one, a, _N, b, _N, zero, c, _N

    def launch(self, times: int) -> None:
        self._driver.use(self._driver.whole)
        try:
            for _ in range(times):
                self._blas.call("cublasSgemm_v2", *self._words)
        except OSError as error:
            raise DeviceFault(str(error), fatal=False) from None

    def unload(self) -> None:
        self._blas.close()
        for buffer in self._buffers:
            self._driver.free(buffer)


class _Calls(Protocol):
    """One way to a library."""

    algorithm: int  # of a way that has several

    @property
    def library(self) -> str:
        """Its name and version, and which of its ways it is."""
        ...

    def queue(self) -> None:
        """Launch it once."""
        ...

    def timed(self) -> float:
        """Device seconds of a launch, of the best way that the library has."""
        ...

    def deliver(self) -> None:
        """The output where the session expects it, if it was written elsewhere."""
        ...

    def close(self) -> None: ...


class VendorOperator:
    """Implements `Kernel`."""

    facts = KernelFacts(0, 0, 0, 0, math.nan)

    def __init__(
        self,
        driver: Driver,
        operator: Operator,
        operands: Operands,
        algorithm: str = "",
        kept: KeptOfLibraries | None = None,
    ) -> None:
        """By one algorithm of cuBLASLt's, or as the library does it by itself.

        What other kernels of the device have a use for is taken from what is `kept`, and put there.
        Raises DeviceFault, with what is missing in words, where no library does this.
        """
        self._driver = driver
        self._recording: Recording | None = None
        self._recordings = _RECORDINGS  # that may still be tried
        try:
            self._calls = _calls(driver, operator, operands, algorithm, kept)
        except (OSError, ValueError) as error:
            raise DeviceFault(str(error)) from None

    @property
    def library(self) -> str:
        return self._calls.library

    def launch(self, times: int) -> None:
        self._driver.use(self._driver.whole)
        if self._recordings:
            try:
                self._recording = launch_recorded(self._driver, self._queue, self._recording, times, _FEWEST)
                return
            except DeviceFault as fault:
                if fault.fatal or self._recording is not None:
                    raise
                self._recordings -= 1  # a library that does something else meanwhile, such as asking for memory
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


class KeptOfLibraries:
    """What a device keeps of libraries from one kernel to the next.

    For a product cuBLASLt's handle, descriptions and workspace, which take as long to make as a launch of hundreds; for
    a convolution which way was the fastest, so that what the library does by itself is the same each time.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.ways: dict[str, tuple[int, int]] = {}  # of an operator: which way, and its algorithm
        self._product: tuple[str, Product] | None = None
        self._workspace = 0

    def product(self, library: ctypes.CDLL, operator: Operator) -> tuple[Product, int]:
        """The product, and the address of its workspace. Raises OSError and DeviceFault."""
        if self._product is None or self._product[0] != operator.notation:
            self.close()
            made = Product(library, operator)
            try:
                self._workspace = self._driver.allocate(WORKSPACE)
            except DeviceFault:
                made.close()
                raise
            self._product = operator.notation, made
        return self._product[1], self._workspace

    def close(self) -> None:
        if self._product is not None:
            self._product[1].close()
            self._driver.free(self._workspace)
        self._product = None


def _calls(
    driver: Driver, operator: Operator, operands: Operands, algorithm: str, kept: KeptOfLibraries | None
) -> _Calls:
    """The fastest way to have it done, launched once. Raises OSError if no library does this."""
    size = operator.sizes
    if algorithm or operator.epilogue:
        return _ByCublasLt(driver, operator, operands, algorithm, kept)
    direct = operator.kind == "conv2d" and (size["kernel"], size["stride"], size["pad"]) == (1, 1, 0)
    single = operator.precision == "fp32"
    blas = cublas()
    if operator.kind == "conv2d" and single and (library := cudnn()) is not None:
        ways: list[Callable[[], _Calls]] = [
            partial(_ByCudnn, driver, library, operator, operands, layout) for layout in LAYOUTS
        ]
        if direct and blas is not None:
            ways.append(partial(_ByCublas, driver, blas, operator, operands))
        known = kept.ways if kept is not None else {}
        if (before := known.get(operator.notation)) is not None:
            calls = ways[before[0]]()
            calls.algorithm = before[1]
            calls.queue()
            return calls
        way, calls = _fastest(driver, ways)
        known[operator.notation] = way, calls.algorithm
        return calls
    if blas is None or (operator.kind == "conv2d" and not direct):
        raise OSError(why_no_library(operator))
    calls = _ByCublas(driver, blas, operator, operands)
    calls.queue()  # a first call loads kernels, which a recording must not
    return calls


def why_no_library(operator: Operator) -> str:
    """Why the vendor's library does not do it here; empty if it does."""
    size = operator.sizes
    if operator.kind == "conv2d" and (size["kernel"], size["stride"], size["pad"]) != (1, 1, 0):
        missing, package = cudnn() is None, ("cuDNN", "nvidia-cudnn-cu12", "-cu13")
    elif operator.epilogue:
        missing, package = cublaslt() is None, ("cuBLASLt", "nvidia-cublas-cu12", "nvidia-cublas")
        if not missing and operator.epilogue not in EPILOGUES:
            return f"cuBLASLt has no epilogue '{operator.epilogue}'"
    else:
        missing, package = cublas() is None, ("cuBLAS", "nvidia-cublas-cu12", "nvidia-cublas")
    return f"{package[0]} was not found: {how_to_add_package(package[1])} (or {package[2]})" if missing else ""


def _fastest(driver: Driver, ways: Sequence[Callable[[], _Calls]]) -> tuple[int, _Calls]:
    """The way whose launches take least time, and its place; those that are refused do not count, unless all are.

    A convolution's algorithms and layouts are many, and what cuDNN takes by itself is not always its best. The board
    runs for a moment first: what is timed while its clock rises looks slower than what comes later.
    """
    best: tuple[int, _Calls] | None = None
    least_s, refusal, warm_s = math.inf, OSError(), 0.0
    for place, way in enumerate(ways):
        try:
            calls = way()
        except OSError as error:
            refusal = error
            continue
        try:
            while warm_s < _WARM_S:
                warm_s += max(_TIMED * _timed(driver, calls.queue), _WARM_S / _MOST_WARM)
            time_s = min(calls.timed() for _ in range(_LOOKS))
        except OSError as error:
            refusal, time_s = error, math.inf
        slower = calls if time_s >= least_s else best and best[1]
        if time_s < least_s:
            best, least_s = (place, calls), time_s
        if slower is not None:
            slower.close()
    if best is None:
        raise refusal
    return best


def _timed(driver: Driver, queue: Callable[[], None]) -> float:
    """Device seconds of a launch, of a few after first ones, which load kernels. Raises OSError.

    They are recorded, where the library can be: to launch one may take the host longer than the device.
    """

    def launch(times: int = _TIMED) -> None:
        for _ in range(times):
            queue()

    queue()
    recording: Recording | None = None
    try:
        recording = driver.record(launch, _TIMED)
    except (OSError, DeviceFault) as refusal:
        if isinstance(refusal, DeviceFault) and refusal.fatal:
            raise
    again = launch if recording is None else recording.launch
    again()
    first = driver.mark()
    again()
    last = driver.mark()
    last.wait()
    if recording is not None:
        recording.destroy()
    return last.seconds_since(first) / _TIMED


class _Product:
    """A product that is launched by one function, and written where the session expects it."""

    algorithm = 0
    _driver: Driver
    _one: Callable[[], Any]

    def queue(self) -> None:
        self._one()

    def timed(self) -> float:
        return _timed(self._driver, self._one)

    def deliver(self) -> None: ...


class _ByCublas(_Product):
    """Products, and convolutions that are one. cuBLAS has matrices column by column, so that it sees our transposes."""

    def __init__(self, driver: Driver, library: ctypes.CDLL, operator: Operator, operands: Operands) -> None:
        self._driver = driver
        self._workspace = driver.allocate(_WORKSPACE)
        self._blas = Blas(library, driver.stream)
        if self._blas.has("cublasSetWorkspace_v2"):
            self._blas.call("cublasSetWorkspace_v2", ctypes.c_void_p(self._workspace), ctypes.c_size_t(_WORKSPACE))
        self.library = self._blas.version
        self._one = self._vector(operator, operands) if operator.kind == "mv" else self._product(operator, operands)

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
        if (half := _R_HALF.get(operator.precision)) is not None:  # sums in FP32
            across_a, across_b = operator.transposed
            first, second = (b, half, depth if across_b else columns), (a, half, rows if across_a else depth)
            apart = [ctypes.c_longlong(item) for item in (depth * columns, rows * depth, rows * columns)]
            end = (batch, _COMPUTE_32F, _DEFAULT_ALGORITHM)
            shape = (int(across_b), int(across_a), columns, rows, depth)
            return lambda: self._blas.call(
                "cublasGemmStridedBatchedEx",
                *(*shape, one, *first, apart[0], *second, apart[1], zero, c, half, columns, apart[2], *end),
            )
        if batch == 1:
            return lambda: self._blas.call("cublasSgemm_v2", *shape, one, b, columns, a, depth, zero, c, columns)
        apart_c, apart_a, apart_b = (
            ctypes.c_longlong(value) for value in (rows * columns, rows * depth, depth * columns)
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
        apart_w, apart_x, apart_y = (ctypes.c_longlong(value) for value in (rows * depth, depth, rows))
        function = _GEMV[operator.precision]
        if self._blas.has(function):
            matrix, to = (depth, rows, one, w, depth, apart_w), (zero, y, 1, apart_y)
            return lambda: self._blas.call(function, TRANSPOSE, *matrix, x, 1, apart_x, *to, batch)
        if operator.precision != "fp32":
            raise OSError(f"{self._blas.version} has no {function}")
        shape = (TRANSPOSE, NO_TRANSPOSE, rows, 1, depth)
        left, right, into = (w, depth, apart_w), (x, depth, apart_x), (y, rows, apart_y)
        return lambda: self._blas.call("cublasSgemmStridedBatched", *shape, one, *left, *right, zero, *into, batch)


class _ByCublasLt(_Product):
    """A product by one algorithm of cuBLASLt's; without a word for one, by that which the library takes by itself."""

    def __init__(
        self, driver: Driver, operator: Operator, operands: Operands, algorithm: str, kept: KeptOfLibraries | None
    ) -> None:
        library = cublaslt()
        if library is None:
            raise OSError("cuBLASLt was not found")
        self._driver = driver
        used = kept if kept is not None else KeptOfLibraries(driver)
        self._own = used if kept is None else None
        product, workspace = used.product(library, operator)
        chosen = Algorithm.of_word(algorithm) if algorithm else product.listed()[0]
        self.library = f"{product.version} {chosen.word}"
        addresses = [operands[name][0] for name in ("c", "a", "b", *(("bias",) if operator.has_bias else ()))]
        self._one = product.launcher(chosen, addresses, workspace, driver.stream)
        self.queue()  # a first call loads kernels, which a recording must not

    def close(self) -> None:
        if self._own is not None:
            self._own.close()


class _ByCudnn:
    """Convolutions, on copies of the operands in one of cuDNN's orders of axes."""

    def __init__(
        self, driver: Driver, library: ctypes.CDLL, operator: Operator, operands: Operands, layout: str
    ) -> None:
        self._driver = driver
        self._convolution = Convolution(library, driver.stream, operator, layout)
        self._target, like = operands["y"]
        batch, high, wide, channels = like.shape
        x, w = operands["x"][1], operands["w"][1].transpose(3, 0, 1, 2)
        if layout == "NCHW":
            x, w = x.transpose(0, 3, 1, 2), w.transpose(0, 3, 1, 2)
        self._last = layout == "NHWC"  # channels
        shape = (batch, high, wide, channels) if self._last else (batch, channels, high, wide)
        self._output: Array = np.empty(shape, like.dtype)
        self._buffers: list[int] = []
        try:
            self._x, self._w = self._copied(x), self._copied(w)
            self._y = self._room(self._output.nbytes)
            self._workspace = self._room(max(1, *self._convolution.algorithms.values()))
        except DeviceFault as fault:  # no memory left for this layout: another may need less
            self.close()
            if fault.fatal:
                raise
            raise OSError(str(fault)) from None

    @property
    def library(self) -> str:
        return self._convolution.version

    @property
    def algorithm(self) -> int:
        return self._convolution.algorithm

    @algorithm.setter
    def algorithm(self, algorithm: int) -> None:
        self._convolution.algorithm = algorithm

    def queue(self) -> None:
        self._convolution.queue(self._x, self._w, self._y, self._workspace)

    def timed(self) -> float:
        """Of the fastest algorithm, which it keeps."""
        times: dict[int, float] = {}
        refusal = OSError()
        for algorithm in self._convolution.algorithms:
            self._convolution.algorithm = algorithm
            try:
                times[algorithm] = _timed(self._driver, self.queue)
            except OSError as error:  # it needs something beyond the workspace of the size that was reported
                refusal = error
        if not times:
            raise refusal
        self._convolution.algorithm = min(times, key=lambda algorithm: times[algorithm])
        return min(times.values())

    def deliver(self) -> None:
        self._driver.read(self._y, self._output)
        output = self._output if self._last else self._output.transpose(0, 2, 3, 1)
        self._driver.write(self._target, np.ascontiguousarray(output))

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
