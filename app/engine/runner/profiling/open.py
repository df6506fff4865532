"""The way to a profiler: which there is for a specification on a board."""

from __future__ import annotations

from ....errors import InputError, WattridgeError
from ....sensors.gpu import Gpu
from ....sensors.simulated.gpu import SimulatedGpu
from ...space.search_space import SearchSpace
from ...specification.model import Specification
from ...workloads.profiled import ProfiledKernel
from .profiler import Profiler
from .simulated import SimulatedProfiler


def open_profiler(spec: Specification, gpu: Gpu, space: SearchSpace) -> Profiler:
    """A profiler of a specification's kernels. Raises InputError and WattridgeError where there is none."""
    if spec.kernel is None:
        raise InputError("hardware counters are of kernels", str(spec.path), "there is no [kernel] in it")
    if isinstance(gpu, SimulatedGpu):
        return SimulatedProfiler(gpu, ProfiledKernel.of(spec, gpu.limits), space)
    if gpu.info.source != "nvml" or spec.kernel.language != "CUDA":
        what = f"Nsight Compute profiles CUDA kernels on NVIDIA's GPUs, and no {spec.kernel.language} on this one"
        remedy = "choose a session of CUDA kernels on such a GPU, or on a simulated one"
        raise WattridgeError(what, gpu.info.label, remedy)
    from .ncu import NcuProfiler

    return NcuProfiler(spec, gpu, space)
