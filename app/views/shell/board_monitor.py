"""`BoardMonitor`: one GPU being watched: the board, its trace, the sampler that fills it, its recorder and alarms."""

from __future__ import annotations

import math

from PySide6.QtCore import QObject, Signal

from ...errors import InputError
from ...sensors.gpu import Gpu
from ...sensors.sampler import Sampler, SensorEvent
from ...sensors.select import open_gpu
from ...sensors.trace import Trace
from ..monitor.alarms import Alarms
from ..monitor.recorder import Recorder

RATE_HZ = 50.0


class BoardMonitor(QObject):
    """`sensor_event` is emitted on the sampler's thread: connect it queued."""

    sensor_event = Signal(object)  # SensorEvent

    def __init__(self, gpu: Gpu) -> None:
        super().__init__()
        self.gpu = gpu
        self.trace = Trace(gpu.channels, rate_hz=RATE_HZ)
        self.sampler = Sampler(gpu, self.trace, interval_s=1.0 / RATE_HZ, on_event=self._forward)
        self.recorder = Recorder(gpu, self.sampler, self)
        self.alarms = Alarms(self.sampler, self)
        self._open = True
        self.sampler.start()

    def close(self) -> None:
        """Stop sampling and close the board. Safe to call twice."""
        if self._open:
            self.alarms.shutdown()
            self.recorder.shutdown()
            self._open = False
            self.sampler.stop()
            self.sampler.join()
            self.gpu.close()

    def _forward(self, event: SensorEvent) -> None:
        if self._open:
            self.sensor_event.emit(event)


def watched_gpu(selector: str | None, *, seed: int = 0, speed: float = 1.0) -> Gpu:
    """Open a GPU to be watched. Raises InputError and SensorError, each one line with the remedy."""
    if math.isinf(speed):
        raise InputError("a window cannot show a GPU that runs infinitely fast", "--speed", "a finite one, such as 100")
    return open_gpu(selector, seed=seed, speed=speed)
