"""A real board that is not there, on a clock of its own: what else the machine does changes nothing that is measured.
The runner process's own work is done in this process; processes as such are for test_cuda_runner."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from fake_board import IDLE_W, FakeBoard
from fake_cuda import FakeBackend

from app.engine.results.measurement import State
from app.engine.runner.kernels.backend import DeviceFault
from app.engine.runner.kernels.process import KernelFailed
from app.engine.runner.kernels.wire import Message, receive, send
from app.engine.runner.kernels.worker import LOOK_S, Worker
from app.sensors.channel import PowerSample
from app.sensors.clock import VirtualClock


class SteppedClock(VirtualClock):
    """Advances a millisecond at a time while somebody waits; after each, runner processes look after their queues."""

    def __init__(self) -> None:
        super().__init__()
        self.on_step: list[Callable[[], None]] = []

    def wait(self, seconds: float, stop: object = None) -> bool:
        until_ns = self.now_ns() + round(max(0.0, seconds) * 1e9)
        while (left_ns := until_ns - self.now_ns()) > 0:
            super().wait(min(left_ns / 1e9, LOOK_S))
            for look in list(self.on_step):
                look()
        return super().wait(0.0, stop)  # type: ignore[arg-type]


class VirtualBoard(FakeBoard):
    """Its sensors. Samples of the driver's buffer scatter by a watt about the truth."""

    def __init__(self) -> None:
        super().__init__(buffer=True, source="nvml")
        self.clock: SteppedClock = SteppedClock()
        self._limit_w = 700.0

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        told = super().power_samples(since_ns)
        return [PowerSample(s.time_ns, s.power_w + s.time_ns // 20_000_000 % 3 - 1) for s in told]

    def works(self, start_ns: int, end_ns: int, power_w: float) -> None:
        """The device draws that much between these times, and nothing that was told before lies later."""
        if self._history[-1][0] == start_ns:
            self._history.pop()
        self._history += [(start_ns, power_w), (end_ns, IDLE_W)]


class ProcessOfNone:
    """Stands for `RunnerProcess`: the same worker and the same frames, in this process."""

    has_answered = True

    def __init__(self, board: VirtualBoard) -> None:
        self._clock = board.clock
        self._worker = Worker(FakeBackend(board.clock, board.works), board.clock.now_ns)
        self._clock.on_step.append(self._worker.pump)
        self._failure: Exception | None = None

    def ready(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def post(self, message: Message, blocks: Sequence[bytes] = ()) -> None:
        try:
            self._answer(message, blocks)
        except Exception as failure:  # noqa: BLE001 - raised by the next request
            self._failure = failure

    def request(self, message: Message, blocks: Sequence[bytes] = (), **_: object) -> Message:
        self.ready()
        return self._answer(message, blocks)

    def kill(self) -> float:
        self.close()
        return 0.0

    def close(self) -> None:
        if self._worker.pump in self._clock.on_step:
            self._clock.on_step.remove(self._worker.pump)

    def _answer(self, message: Message, blocks: Sequence[bytes]) -> Message:
        try:
            return _through_the_pipe(self._worker.answer(*_through_the_pipe(message, blocks)), ())[0]
        except DeviceFault as fault:
            raise KernelFailed(State.RUNTIME, str(fault), lost=fault.fatal) from None


def _through_the_pipe(message: Message, blocks: Sequence[bytes]) -> tuple[Message, list[bytes]]:
    pipe = io.BytesIO()
    send(pipe, message, blocks)
    pipe.seek(0)
    told = receive(pipe)
    assert told is not None
    return told
