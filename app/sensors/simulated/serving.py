"""`SimulatedService`: a service on a simulated board, which answers requests on the board's own clock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from ..errors import NotSupported, SensorError
from ..service_load import Argument, Served, ServiceLoad
from . import serving_laws
from .figures import Twin
from .request_queue import Pace, RequestQueue
from .serving_laws import Serving, service_of

# Server arguments that say how many sequences are answered at once, as servers call them.
PLACES: Final = ("max_num_seqs", "max_running_requests", "max_concurrent_requests", "parallel", "num_parallel")


class SimulatedService:
    """One service of one board: what is under way, and what of it has been handed over. Not thread-safe."""

    def __init__(self, twin: Twin, seed: int, arguments: Mapping[str, Argument]) -> None:
        """Raises NotSupported without a model, or for a server argument that it does not know."""
        model = service_of(twin)
        unknown = [name for name in arguments if name not in PLACES]
        if unknown:
            what = f"the model of a service does not know the server argument {unknown[0]}"
            raise NotSupported(what, twin.name, f"known: {', '.join(PLACES)}; leave the others out")
        self._twin = twin
        self._seed = seed
        self._places = model.sequences_maximum
        for name in arguments:
            self._places = _places_of(arguments[name], name, twin)
        self.start_s = model.start_s
        self._queue: RequestQueue | None = None
        self._left_ns = 0  # when the last stretch of serving ended

    def begin(self, load: ServiceLoad, now_ns: int) -> None:
        """A stretch of serving begins: the one before goes on where the load is the same."""
        if load.concurrency is None and not load.rate_per_s > 0:
            raise SensorError("a load needs a rate above 0, or a concurrency", self._twin.name, "set one of them")
        if self._queue is None or repr(self._queue.load) != repr(load):  # a NaN equals itself in text
            assert self._twin.service is not None
            scatter = self._twin.service.output_scatter
            self._queue = RequestQueue(load, self._places, scatter, self._seed, now_ns)
        else:
            self._queue.skip(now_ns - self._left_ns)
        self._queue.idle_s = self._queue.tokens = 0.0

    def advance(self, now_ns: int, clock_mhz: float, memory_clock_mhz: int) -> float:
        """Work until then, at these clocks; seconds until what is done changes."""
        queue = self._open()
        pace = Pace(
            lambda sequences: serving_laws.step_s(self._twin, sequences, clock_mhz, memory_clock_mhz),
            serving_laws.prefill_rate(self._twin, clock_mhz),
        )
        queue.advance(now_ns, pace)
        self._left_ns = now_ns
        return queue.event_s(pace)

    @property
    def doing(self) -> Serving | None:
        """What the board is busy with; None while it waits for requests."""
        queue = self._open()
        return None if queue.idle else Serving(queue.answering, queue.reading)

    def served(self, start_ns: int, end_ns: int) -> Served:
        """What became of the stretch."""
        queue = self._open()
        return Served(start_ns, end_ns, queue.ended(), queue.idle_s, queue.tokens)

    def _open(self) -> RequestQueue:
        assert self._queue is not None
        return self._queue


def _places_of(value: Argument, name: str, twin: Twin) -> int:
    if isinstance(value, (str, bool)) or not math.isfinite(value) or not 1 <= value <= 10_000:
        raise NotSupported(f"{name} is no number of sequences: {value}", twin.name, "a whole number from 1 to 10000")
    return int(value)
