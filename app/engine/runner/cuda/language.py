"""CUDA as a language of the runner: whether kernels run on a board, how it is opened, and the features of images."""

from __future__ import annotations

import math
import threading
from contextlib import ExitStack
from functools import partial

from ....base.errors import WattridgeError
from ....sensors.gpu import Gpu
from ....sensors.limits import DeviceLimits
from ...space.array_expressions import number_type
from ...specification.model import Specification
from ...workloads.machine_code import (
    FEATURES,
    FROM_CAPABILITY,
    LaunchShape,
    code_features,
    granted,
    instruction_mix,
    kernel_code,
)
from ...workloads.source_kernel import Build, Prepared, SourceKernel
from ..base import OnPreparation
from ..kernels.compiler import Compiler
from ..kernels.language import Language, MakesKernel, language_on
from ..kernels.made_image import facts_of
from ..kernels.reference import Drift
from .comparer import SOURCE
from .gpu import CudaGpu, find_library, usable_libraries
from .occupancy import resident_blocks
from .square_wave import look_once, wave_build, wave_launch
from .toolchain import Toolchain, cuda_compiler, find_toolchain, symbol

_RESERVED_BYTE = 1024  # of static shared memory, counted in images from this compute capability on
_RESERVED_FROM = 9.0


class CudaLanguage(Language):
    """Implements `Language` on a board."""

    comparer = Build(SOURCE, (), (), ())
    feature_names = tuple(FEATURES)
    gpu: CudaGpu

    def __init__(self, gpu: CudaGpu, compiler: Compiler) -> None:
        """`compiler` is for its compute capability."""
        super().__init__(gpu, compiler)
        self._load = compiler.submit(wave_build())
        self.drift = Drift(self._load, wave_launch(gpu.limits.multiprocessors))

    def kernel(self, spec: Specification, make: MakesKernel = SourceKernel.of) -> SourceKernel:
        return make(spec, self.gpu.limits, self.gpu.shared_memory_opt_in)

    def symbol(self, image: bytes, name: str) -> str:
        return symbol(image, name)

    def features(self, image: bytes, prepared: Prepared) -> dict[str, float]:
        return image_features(image, prepared, self.gpu.limits)

    def prepare(self, stop: threading.Event, on_progress: OnPreparation) -> None:
        """Look at the power sensor if nothing is kept of this board and driver."""
        look_once(self.gpu, self._load, stop, on_progress)


def image_features(image: bytes, prepared: Prepared, limits: DeviceLimits) -> dict[str, float]:
    """The features of FEATURES that an image gives; what it does not is left out. Raises KernelFailed."""
    launch = prepared.launch
    name = symbol(image, launch.name)
    arrays = [argument for argument in prepared.calls.arguments if argument.shape is not None]
    byte = sum(math.prod(array.shape or ()) * number_type(array.type).itemsize for array in arrays)
    result: dict[str, float] = {"argument_byte": float(byte)}
    if (made := facts_of(image)) is not None:
        image = made[1]
        if not image:  # a library's
            return result
    resources = (granted(image) or {}).get(name)
    if resources is not None:
        static = resources.shared_byte
        if static and limits.compute_capability >= _RESERVED_FROM:
            static -= _RESERVED_BYTE
        threads, shared = math.prod(launch.block), static + launch.shared_byte
        resident = resident_blocks(limits, threads=threads, registers=resources.registers, shared_byte=shared)
        shape = LaunchShape(
            grid_blocks=math.prod(launch.grid),
            block_threads=threads,
            blocks_per_multiprocessor=resident,
            multiprocessors=limits.multiprocessors,
            max_threads_per_multiprocessor=limits.max_threads_per_multiprocessor,
            registers_per_thread=float(resources.registers),
            shared_memory_byte=float(shared),
            local_memory_byte=float(resources.local_byte),
        )
        result |= shape.features()
    code = (kernel_code(image) or {}).get(name)
    if code is not None and limits.compute_capability >= FROM_CAPABILITY:
        result |= code_features(*instruction_mix(code, limits.compute_capability))
    return result


def require_nvidia(gpu: Gpu) -> None:
    """Raises WattridgeError for a device that is not a board of NVIDIA's."""
    if gpu.info.source != "nvml":
        remedy = "choose a GPU, or one that is simulated: --gpu simulated:NAME"
        raise WattridgeError("CUDA kernels run on NVIDIA's GPUs", gpu.info.label, remedy)


def require_cuda(gpu: Gpu) -> None:
    """Raises WattridgeError, with the remedy, where kernels cannot run on a real board from here."""
    require_nvidia(gpu)
    find_library(gpu.info.label)
    find_toolchain()


def cuda_in_use() -> dict[str, str | list[str] | None]:
    """What runs kernels here and what compiles them, what else could run them, or why nothing can."""
    try:
        library, toolchain = find_library("here"), find_toolchain()
    except WattridgeError as error:
        return {"library": None, "compiler": None, "other_libraries": [], "why_not": f"{error.what} ({error.remedy})"}
    others = [other.name for other in usable_libraries() if other != library]
    return {"library": str(library), "compiler": toolchain.version, "other_libraries": others, "why_not": None}


def open_cuda(
    sensors: Gpu,
    *,
    backend: str | None = None,
    toolchain: Toolchain | None = None,
    jobs: int | None = None,
    isolated: bool = True,
) -> CudaLanguage:
    """A board that runs CUDA kernels, its processes started. Raises WattridgeError.

    Unless `isolated`, kernels are launched in this process, which one that faults takes along.
    """

    compiler = partial(cuda_compiler, toolchain=toolchain, jobs=jobs)
    capability = sensors.info.compute_capability
    with ExitStack() as undo:
        # a library is loaded while the context is made
        ahead = compiler(capability) if capability is not None else None
        if ahead is not None:
            undo.callback(ahead.close)
        gpu = CudaGpu(sensors, backend=backend, isolated=isolated)
        language = language_on(gpu, lambda: CudaLanguage(gpu, ahead or compiler(gpu.compute_capability)))
        undo.pop_all()
    return language
