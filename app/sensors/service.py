"""The seam of services: what clients ask of one, what became of their requests, and boards that model one.

A load generator fills `Requests` from a real server; a simulated board that implements `ServesLoad` fills the same
table without any. Everything after that (figures, windows, limits, sessions) is one code.

What a service did while it was asked, second by second on its board's clock: for who watches while it runs.

A session that asks a service notes each stretch here; views draw it on the board's own time axis.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from .channel import Channel, Reading
from .gpu import GpuInfo
from .trace.trace import Trace

Floats = npt.NDArray[np.float64]
Stamps = npt.NDArray[np.int64]
Argument = int | float | str | bool


@dataclass(frozen=True, slots=True)
class ServiceLoad:
    """What clients ask of a service: at a rate (open loop, Poisson arrivals), or so many at once (closed loop).

    One of `rate_per_s` and `concurrency` is known. Lengths are means over the requests.
    """

    rate_per_s: float = math.nan
    concurrency: int | None = None
    input_tokens: float = math.nan
    output_tokens: float = math.nan
    ramp_s: float = 0.0  # over which the clients of a closed loop begin, one after another


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests that have ended, one a row, in the order in which they ended. Times in ns on the board's clock."""

    due_ns: Stamps  # when it was to be sent: latency counts from here
    sent_ns: Stamps
    first_ns: Stamps  # its first token; 0 if none came
    ended_ns: Stamps
    input_tokens: Floats  # NaN if nothing tells
    output_tokens: Floats  # that came; NaN if nothing tells
    failed: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.due_ns)

    @classmethod
    def none(cls) -> Self:
        stamps, floats = np.empty(0, dtype=np.int64), np.empty(0)
        return cls(stamps, stamps, stamps, stamps, floats, floats, np.empty(0, dtype=np.bool_))

    @classmethod
    def joined(cls, parts: list[Requests]) -> Requests:
        """The rows of all parts, one after another."""
        if not parts:
            return cls.none()
        return cls(*(np.concatenate([getattr(part, member.name) for part in parts]) for member in fields(cls)))

    def ended_within(self, start_ns: int, end_ns: int) -> Requests:
        """Those that ended after `start_ns`, and at `end_ns` at the latest."""
        inside = (self.ended_ns > start_ns) & (self.ended_ns <= end_ns)
        return Requests(*(getattr(self, member.name)[inside] for member in fields(self)))


@dataclass(frozen=True, slots=True)
class Served:
    """What a service did in one stretch of time."""

    start_ns: int  # on the board's clock
    end_ns: int
    requests: Requests  # that ended within
    idle_s: float = 0.0  # of it, in which no request was under way
    output_tokens: float = math.nan  # that came within, of whichever request; NaN: those of `requests` stand for it
    tokens_per_piece: float = 1.0  # that they were counted with, by the answers until then: later ones know better
    problem: str = ""  # why nothing more will come
    faults: Mapping[str, int] = field(default_factory=dict)  # what failed requests met, in words -> how often


@runtime_checkable
class ServesLoad(Protocol):
    """A board with a model of a service: it answers requests without any server, on its own clock.

    What the board draws meanwhile is read as ever (`read`, `power_samples`), and its clocks and cap are set as ever:
    a board that implements this gives different `Served` and power for different settings in force.
    """

    service_assumptions: str  # what of the model is assumed rather than measured; empty if it models no service

    def start_service(self, arguments: Mapping[str, Argument]) -> None:
        """(Re)start it with these server arguments, which takes its time on the board's clock.

        Raises NotSupported, with the reason, where the board has no model of such a service.
        """
        ...

    def serve(self, load: ServiceLoad, seconds: float) -> Served:
        """Serve that load for so long on the board's clock, which passes meanwhile; returns the requests that ended.

        Goes on from the call before where the load is the same; requests of another load under way are dropped.
        """
        ...

    def stop_service(self) -> None:
        """End it: the board is idle. Safe to call twice."""
        ...


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
    """The trace of the service on a board; None if none was asked in this process."""
    return _traces.get(info.uuid)


def note_served(info: GpuInfo, end_ns: int, figures: Mapping[str, float]) -> None:
    """Keep the figures of a stretch that ended then on the board's clock; what is not among them is unknown.

    On a clock that has gone back, as of a simulated board that was opened again, a new trace begins.
    """
    with _lock:
        trace = _traces.get(info.uuid)
        if trace is None or end_ns < trace.last_ns:
            trace = _traces[info.uuid] = Trace(SERVICE_CHANNELS, rate_hz=1.0, span_s=_SPAN_S)
        trace.append(Reading(end_ns, tuple(figures.get(item.name, math.nan) for item in SERVICE_CHANNELS)))
