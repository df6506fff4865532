"""A fixed load, measured every so often: what it shows of the board itself, while a session goes on.

cuBLAS's matrix product where the library is there, else the multiply-adds of the square wave. Its figures travel with
the configuration that is measured next.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Final

from ....sensors.load import Load
from ...metering.meter import Meter
from ...metering.window import Run, Window
from ..reference import ReferenceLooks
from .compiler import Compiled, Compiler
from .gpu import CudaGpu
from .process import KernelFailed
from .square_wave import wave_build, wave_launch

LOAD: Final = Load("reference kernel", "fp32", 0.0, 0.0)


class Drift(ReferenceLooks):
    """Looks at the reference kernel of a real board."""

    def __init__(self, compiler: Compiler) -> None:
        super().__init__()
        self.image: Future[Compiled] = compiler.submit(wave_build())
        self._broken = False

    def due(self, setting: object) -> bool:
        return super().due(setting) and not self._broken

    def look(self, gpu: CudaGpu, meter: Meter, stop: threading.Event) -> Run | None:
        """Run the reference kernel; None when stopped or where it does not run. Raises KernelFailed when lost."""
        self.looked()
        try:
            launch = wave_launch(gpu.limits.multiprocessors)
            gpu.ask({"do": "drift", "id": LOAD.name, "launch": launch}, [self.image.result().image])
            return meter.run(LOAD, stop=stop)
        except KernelFailed as failure:
            self._broken = True
            if failure.lost:
                raise
            return None


def reference_figures(window: Window) -> dict[str, float]:
    """The reference kernel's, as a measurement carries them."""
    return {
        "reference_time_s": window.time_s,
        "reference_power_w": window.power_w,
        "reference_energy_j": window.energy_j,
    }
