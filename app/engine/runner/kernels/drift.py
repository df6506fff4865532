"""A fixed load, measured every so often: what it shows of the board itself, while a session goes on.

The vendor's matrix product where its library is there, else the kernel given. Its figures travel with the
configuration that is measured next.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any, Final

from ....sensors.load import Load
from ...metering.meter import Meter
from ...metering.stopwatch import Stopwatch
from ...metering.window import Run, Window
from ..reference import ReferenceLooks
from .gpu import ProcessGpu
from .image_maker import Compiled, once_compiled
from .process import KernelFailed

LOAD: Final = Load("reference kernel", "fp32", 0.0, 0.0)


class Drift(ReferenceLooks):
    """Looks at the reference kernel of a real board."""

    def __init__(self, image: Future[Compiled], launch: dict[str, Any]) -> None:
        """`launch`, as a message, is how the kernel of the image is launched."""
        super().__init__()
        self._image = image
        self._launch = launch
        self._broken = False

    def due(self, setting: object) -> bool:
        return super().due(setting) and not self._broken

    def look(self, gpu: ProcessGpu, meter: Meter | Stopwatch, stop: threading.Event) -> Run | None:
        """Run the reference kernel; None when stopped or where it does not run. Raises KernelFailed when lost."""
        self.looked()
        try:
            gpu.ask({"do": "drift", "id": LOAD.name, "launch": self._launch}, [once_compiled(self._image, stop).image])
            return meter.run(LOAD, stop=stop)
        except KernelFailed as failure:
            self._broken = not stop.is_set()
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
