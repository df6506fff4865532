"""`SimulatedService`: a service on a simulated board, whose requests live on the board's own clock.

Requests arrive, wait for a place, have their prompts read, and receive tokens by continuous batching, as in servers of
language models: up to `places` sequences are answered at once, each step gives every one of them a token, and a prompt
is read before its answer begins, while nothing else happens.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..gpu import NotSupported, SensorError
from ..service import Argument, Requests, Served, ServiceLoad
from . import laws
from .laws import Serving, service_of
from .twin import Twin

_USUAL_TOKENS: Final = (256.0, 128.0)  # of a prompt and of an answer, where a load does not tell
_DONE: Final = 1e-6  # of a token


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a service works at present."""

    step_s: Callable[[int], float]  # of so many sequences at once
    prefill_rate: float  # tokens of a prompt a second


@dataclass(slots=True)
class _Request:
    due_ns: float
    prompt_left: float
    tokens_left: float
    output_tokens: float
    first_ns: float = 0.0


class RequestQueue:
    """The requests of one load. Times are ns on the board's clock; not thread-safe."""

    def __init__(self, load: ServiceLoad, places: int, scatter: float, seed: int, now_ns: int) -> None:
        self.load = load
        self._places = places
        self._scatter = scatter
        self._random = np.random.default_rng(seed)
        self._now_ns = float(now_ns)
        self._open_loop = load.concurrency is None
        self._to_begin = load.concurrency or 0  # clients of a closed loop
        self._next_due_ns = now_ns + (self._gap_ns() if self._open_loop else 0.0)
        self._waiting: deque[_Request] = deque()
        self._reading: _Request | None = None
        self._answering: list[_Request] = []
        self._ended: list[tuple[float, float, float, float]] = []  # due, first, ended, output tokens
        self.idle_s = 0.0
        self.tokens = 0.0  # given so far
        self._take_what_is_due()

    @property
    def answering(self) -> int:
        """Sequences that a step gives a token to."""
        return len(self._answering)

    @property
    def reading(self) -> bool:
        """A prompt is being read."""
        return self._reading is not None

    @property
    def idle(self) -> bool:
        return not self._answering and self._reading is None

    def event_s(self, pace: Pace) -> float:
        """Until what is done changes, at this pace; inf if nothing will."""
        return min(self._own_event_s(pace), (self._next_due_ns - self._now_ns) / 1e9)

    def advance(self, now_ns: int, pace: Pace) -> None:
        """Work until then at that pace."""
        while self._now_ns < now_ns:
            step_s = min(self.event_s(pace), (now_ns - self._now_ns) / 1e9)
            self._work(max(step_s, 1e-9), pace)

    def skip(self, nanoseconds: int) -> None:
        """So much time passed in which nothing was done and nothing was asked."""
        self._now_ns += nanoseconds
        self._next_due_ns += nanoseconds
        for request in (*self._waiting, *self._answering, *([self._reading] if self._reading else [])):
            request.due_ns += nanoseconds
            request.first_ns += nanoseconds if request.first_ns else 0

    def ended(self) -> Requests:
        """Those that ended since this was asked last."""
        rows, self._ended = self._ended, []
        if not rows:
            return Requests.none()
        due_ns, first_ns, ended_ns = (np.ceil([row[i] for row in rows]).astype(np.int64) for i in range(3))
        return Requests(
            due_ns=due_ns,
            sent_ns=due_ns,
            first_ns=first_ns,
            ended_ns=ended_ns,
            input_tokens=np.full(len(rows), self._prompt()),
            output_tokens=np.array([row[3] for row in rows]),
            failed=np.zeros(len(rows), dtype=np.bool_),
        )

    # --- inside -----------------------------------------------------------------------------------------------------

    def _own_event_s(self, pace: Pace) -> float:
        if self._reading is not None:
            return self._reading.prompt_left / pace.prefill_rate
        if self._answering:
            return min(item.tokens_left for item in self._answering) * pace.step_s(len(self._answering))
        return math.inf

    def _work(self, seconds: float, pace: Pace) -> None:
        self._now_ns += seconds * 1e9
        if self._reading is not None:
            self._reading.prompt_left -= seconds * pace.prefill_rate
            if self._reading.prompt_left <= _DONE:
                self._begin_answer(self._reading)
        elif self._answering:
            tokens = seconds / pace.step_s(len(self._answering))
            self.tokens += tokens * len(self._answering)
            for request in self._answering:
                request.tokens_left -= tokens
            for request in [item for item in self._answering if item.tokens_left <= _DONE]:
                self._answering.remove(request)
                self._end(request)
        else:
            self.idle_s += seconds
        self._take_what_is_due()

    def _take_what_is_due(self) -> None:
        while self._next_due_ns <= self._now_ns:
            self._waiting.append(self._request(self._next_due_ns))
            self._next_due_ns += self._gap_ns()
        if self._reading is None and self._waiting and len(self._answering) < self._places:
            self._reading = self._waiting.popleft()

    def _begin_answer(self, request: _Request) -> None:
        """A prompt has been read, which gives the first token."""
        self._reading = None
        request.first_ns = self._now_ns
        self.tokens += 1
        if request.tokens_left <= _DONE:
            self._end(request)
        else:
            self._answering.append(request)

    def _end(self, request: _Request) -> None:
        self._ended.append((request.due_ns, request.first_ns, self._now_ns, request.output_tokens))
        if not self._open_loop:
            self._waiting.append(self._request(self._now_ns))

    def _request(self, due_ns: float) -> _Request:
        mean = _known(self.load.output_tokens, _USUAL_TOKENS[1])
        tokens = max(1.0, round(mean * (1.0 + self._scatter * self._random.standard_normal())))
        return _Request(due_ns, self._prompt(), tokens - 1.0, tokens)

    def _prompt(self) -> float:
        return max(1.0, _known(self.load.input_tokens, _USUAL_TOKENS[0]))

    def _gap_ns(self) -> float:
        """Until the next request that waits for no other one: another arrival, or another client that begins."""
        if self._open_loop:
            return float(self._random.exponential(1e9 / self.load.rate_per_s))
        self._to_begin -= 1
        return 1e9 * self.load.ramp_s / (self.load.concurrency or 1) if self._to_begin > 0 else math.inf


def _known(value: float, usual: float) -> float:
    return usual if math.isnan(value) else value


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
            lambda sequences: laws.step_s(self._twin, sequences, clock_mhz, memory_clock_mhz),
            laws.prefill_rate(self._twin, clock_mhz),
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
