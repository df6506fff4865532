"""The far side of a pool's boards for tests: what a worker does, over a runner that obeys the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine_fakes import measurement_of

from app.engine.control.serving import hello_of
from app.engine.results.measurement import Depth, Measurement
from app.engine.runner.pool.messages import (
    Abilities,
    Bundle,
    UnknownSession,
    abilities_document,
    answer_line,
    begun_line,
    error_line,
    measured_line,
    parse_request,
    rows_of,
)
from app.engine.runner.pool.pool import PoolBoard
from app.engine.space.search_space import SearchSpace
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

BUNDLE = Bundle("k.toml", {"k.toml": b"", "src/k.cu": b"// nothing"})


def board(key: str, twin: str = "a100") -> PoolBoard:
    """A simulated board under that key."""
    gpu = SimulatedGpu(load_twin(twin), clock=VirtualClock())
    return PoolBoard(key, f"host-of-{key}", hello_of(gpu), gpu.limits)


MODEL = board("any").model


class ScriptedSide:
    """Answers as a worker with a board would, and remembers which rows it measured in which requests."""

    def __init__(self, key: str, space: SearchSpace, before: Callable[[int], None] = lambda _: None) -> None:
        """`before` is called with each row before it is measured: it may wait, or kill."""
        self.board = board(key)
        self.requests: list[tuple[int, ...]] = []
        self.measured: list[int] = []
        self.verbs: list[str] = []
        self._space = space
        self._before = before
        self._known = ""
        self._ended = ("", 0)

    @property
    def key(self) -> str:
        return self.board.key

    def answer(self, line: bytes, say: Callable[[bytes], None]) -> bytes:
        request = parse_request(line)
        self.verbs.append(request.do)
        number = request.number
        say(begun_line(number))
        if request.do == "open":
            self._known = request.session
            return answer_line(number, abilities_document(Abilities(frozenset({"time_s"}), (), 8)))
        if request.session != self._known:
            return error_line(number, UnknownSession("it does not know the session"))
        if request.do == "measure":
            self.requests.append(request.rows)
            found: list[Measurement] = []
            for row in request.rows:
                if self._ended[0] == request.session and number <= self._ended[1]:
                    break
                self._before(row)
                self.measured.append(row)
                found.append(self._measurement(row, request.depth))
                say(measured_line(number, found[-1]))
            return answer_line(number, {"measured": rows_of(found)})
        if request.do == "restate":
            return answer_line(number, {"measurements": list(request.measurements)})
        return answer_line(number, {"origin": {"condition": "50 °C"}} if request.do == "conclude" else {})

    def end_until(self, session: str, number: int) -> None:
        self._ended = (session, number)

    def forget(self) -> None:
        """As a worker that was started again."""
        self._known = ""

    def _measurement(self, row: int, depth: Depth) -> Measurement:
        whole = measurement_of(self._space, row)
        if depth is Depth.TIME:
            return replace(whole, depth=depth, values={n: v for n, v in whole.values.items() if n == "time_s"})
        return whole
