"""The driver's buffer of power samples (20 ms each on an H200), its wall-clock stamps turned into monotonic time."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ..channel import PowerSample
from ..errors import GpuLost, NotSupported, SensorError
from .channels import watts
from .library import NothingThere

_TOTAL_POWER_SAMPLES = 0  # NVML_TOTAL_POWER_SAMPLES
_KEPT_SAMPLES = 512  # the driver holds 119 on an H200
_CLOCK_STEP_NS = 500_000_000  # beyond this the wall clock was set, not slewed

Ask = Callable[..., Any]  # (NVML function, arguments after the handle) -> answer; raises SensorError


class PowerBuffer:
    """`unavailable` says why there is none. A sample keeps the time it was first given: all callers see the same."""

    def __init__(self, ask: Ask) -> None:
        """Asks once. Raises GpuLost."""
        self._ask = ask
        self._lock = threading.Lock()
        self._samples: deque[PowerSample] = deque(maxlen=_KEPT_SAMPLES)
        self._last_stamp_us = 0
        self._offset_ns = wall_minus_monotonic_ns()
        self.unavailable: str | None = None
        try:
            self._drain()
        except GpuLost:
            raise
        except SensorError as error:
            self.unavailable = f"the driver keeps no power samples: {error.what}"

    def since(self, since_ns: int) -> Sequence[PowerSample]:
        """Samples newer than a monotonic time, oldest first. Raises NotSupported, GpuLost, SensorError."""
        if self.unavailable is not None:
            raise NotSupported(self.unavailable)
        with self._lock:
            self._drain()
            return [sample for sample in self._samples if sample.time_ns > since_ns]

    def _drain(self) -> None:
        """Copy what is new. The offset between the clocks is measured at every drain, since it drifts."""
        offset_ns = wall_minus_monotonic_ns()
        if abs(offset_ns - self._offset_ns) > _CLOCK_STEP_NS:
            self._last_stamp_us = 0  # stamps have started again; known samples are recognised by their monotonic time
        self._offset_ns = offset_ns
        try:
            value_type, entries = self._ask("nvmlDeviceGetSamples", _TOTAL_POWER_SAMPLES, self._last_stamp_us)
        except NothingThere:
            return
        newest_ns = self._samples[-1].time_ns if self._samples else 0
        for entry in sorted(entries, key=lambda entry: int(entry.timeStamp)):
            self._last_stamp_us = max(self._last_stamp_us, int(entry.timeStamp))
            time_ns = int(entry.timeStamp) * 1000 - offset_ns
            power_w = watts(value_type, entry.sampleValue)
            if time_ns > newest_ns and not math.isnan(power_w):
                newest_ns = time_ns
                self._samples.append(PowerSample(time_ns, power_w))


def wall_minus_monotonic_ns() -> int:
    """The wall clock's lead over the monotonic one, from the tightest of three looks at both."""
    tightest, lead_ns = math.inf, 0
    for _ in range(3):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        if after - before < tightest:
            tightest, lead_ns = after - before, wall - (before + after) // 2
    return lead_ns
