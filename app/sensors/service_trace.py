"""What a service did while it was asked, second by second on its board's clock: for who watches while it runs.

A session that asks a service notes each stretch here; views draw it on the board's own time axis.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Final

from .channel import Channel, Reading
from .gpu import GpuInfo
from .trace import Trace

SERVICE_CHANNELS: Final = (
    Channel("requests_per_s", "1/s", "Requests"),
    Channel("output_tokens_per_s", "1/s", "Output tokens"),
    Channel("ttft_p95_s", "s", "Time to first token, 95 %"),
    Channel("e2e_p95_s", "s", "Time to the end of the answer, 95 %"),
)
_SPAN_S: Final = 8 * 3600.0
_lock = threading.Lock()
_traces: dict[str, Trace] = {}


def service_trace(info: GpuInfo) -> Trace | None:
    """The trace of the service on a board; None where none was asked in this process."""
    return _traces.get(info.uuid)


def note_served(info: GpuInfo, end_ns: int, figures: Mapping[str, float]) -> None:
    """Keep the figures of a stretch that ended then on the board's clock; what is not among them is unknown.

    On a clock that has gone back, as of a simulated board that was opened again, a new trace begins.
    """
    with _lock:
        trace = _traces.get(info.uuid)
        if trace is None or end_ns < trace.last_ns:
            trace = _traces[info.uuid] = Trace(SERVICE_CHANNELS, rate_hz=1.0, span_s=_SPAN_S)
        trace.append(Reading(end_ns, tuple(figures.get(each.name, math.nan) for each in SERVICE_CHANNELS)))
