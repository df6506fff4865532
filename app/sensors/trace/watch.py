"""`SampledBoard`: an open board with its trace and the sampler that fills it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..gpu import Gpu
from ..recorded.gpu import RecordedGpu
from .sampler import Sampler, SensorEvent
from .trace import Trace

if TYPE_CHECKING:
    from ..recorded.recording import RecordingWriter

KEPT_S = 8 * 3600.0


class SampledBoard:
    """A board that is read from now on every `interval_s` of its clock; its trace keeps the last `span_s`.

    It owns the board. `on_event`, `recorder` and `duration_s` are those of `Sampler`.
    """

    def __init__(
        self,
        gpu: Gpu,
        *,
        interval_s: float,
        span_s: float = KEPT_S,
        on_event: Callable[[SensorEvent], None] | None = None,
        recorder: RecordingWriter | None = None,
        duration_s: float = math.inf,
    ) -> None:
        self.gpu = gpu
        self.trace = Trace(gpu.channels, rate_hz=1.0 / interval_s, span_s=span_s)
        if isinstance(gpu, RecordedGpu):
            self.trace.allow_for(gpu.gap_s)
        self.sampler = Sampler(
            gpu, self.trace, interval_s=interval_s, on_event=on_event, recorder=recorder, duration_s=duration_s
        )
        self.sampler.start()

    def stop(self) -> None:
        """Stop reading, and wait for the last one; board and trace stay open."""
        self.sampler.stop()
        self.sampler.join()

    def close(self) -> None:
        """Stop reading and close the board. Safe to call twice."""
        self.stop()
        self.gpu.close()
