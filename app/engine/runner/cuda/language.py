"""CUDA as a language of the runner."""

from __future__ import annotations

import threading

from ...specification.model import Specification
from ...workloads.machine_code import FEATURES
from ...workloads.source_kernel import Build, Prepared, SourceKernel
from ..base import OnPreparation
from ..kernels.compiler import Compiler
from ..kernels.language import Language, MakesKernel
from ..kernels.reference import Drift
from .comparer import SOURCE
from .compiler import symbol
from .features import image_features
from .first_look import look_once
from .gpu import CudaGpu
from .square_wave import wave_build, wave_launch


class CudaLanguage(Language):
    """Implements `Language` on a board."""

    comparer = Build(SOURCE, (), (), ())
    feature_names = tuple(FEATURES)
    _gpu: CudaGpu

    def __init__(self, gpu: CudaGpu, compiler: Compiler) -> None:
        """`compiler` is for its compute capability."""
        super().__init__(gpu, compiler)
        self._load = compiler.submit(wave_build())
        self.drift = Drift(self._load, wave_launch(gpu.limits.multiprocessors))

    def kernel(self, spec: Specification, make: MakesKernel = SourceKernel.of) -> SourceKernel:
        return make(spec, self._gpu.limits, self._gpu.shared_memory_opt_in)

    def symbol(self, image: bytes, name: str) -> str:
        return symbol(image, name)

    def features(self, image: bytes, prepared: Prepared) -> dict[str, float]:
        return image_features(image, prepared, self._gpu.limits)

    def prepare(self, stop: threading.Event, on_progress: OnPreparation) -> None:
        """Look at the power sensor if nothing is kept of this board and driver."""
        look_once(self._gpu, self._load, stop, on_progress)
