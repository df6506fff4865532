"""Several simulated boards in this process, as a runner that measures on all of them: a stand-in for a pool."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.engine.control.guard import DeviceGuard
from app.engine.measurement import Measurement
from app.engine.metering.condition import Condition
from app.engine.runner.base import Runner
from app.engine.runner.simulated import SimulatedRunner
from app.engine.space.search_space import SearchSpace
from app.engine.specification.model import Specification
from app.sensors.clock import VirtualClock
from app.sensors.simulated.figures import Twin
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.individual import with_gain


@dataclass(frozen=True)
class Board:
    key: str


class SeveralBoards:
    """Which board measures a row is drawn. A board can be lost, and one can join."""

    source = "simulated"
    batch = 8

    def __init__(self, runners: Mapping[str, Runner], seed: int = 0) -> None:
        self.runners = dict(runners)
        self._rng = random.Random(seed)
        self.measured: list[tuple[str, int]] = []

    @property
    def boards(self) -> Sequence[Board]:
        return [Board(key) for key in self.runners]

    @property
    def reference(self) -> str:
        return ""

    def measure(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        todo = [[("", row) for row in rows], []]
        yield from self.measure_on(lambda: todo.pop(0) if todo else [], stop)

    def measure_on(
        self, wanted: Callable[[], Sequence[tuple[str, int]]], stop: threading.Event
    ) -> Iterator[Measurement]:
        waiting: list[tuple[str, int]] = []
        while waiting := [*waiting, *wanted()]:
            named, row = waiting.pop(0)
            key = named or self._rng.choice(list(self.runners))
            if stop.is_set() or key not in self.runners:
                continue
            self.measured.append((key, row))
            for measured in self.runners[key].measure([row], stop):
                yield replace(measured, board=key)

    def close(self) -> None:
        for runner in self.runners.values():
            runner.close()


def simulated_board(
    twin: Twin, spec: Specification, space: SearchSpace, seed: int = 0, condition: Condition | None = None
) -> SimulatedRunner:
    gpu = SimulatedGpu(twin, seed=seed, clock=VirtualClock())
    return SimulatedRunner(gpu, spec, space, DeviceGuard(gpu).nested("session"), condition)


def twin_with_gain(twin: Twin, gain: float, number: int) -> Twin:
    """A board of that model that differs in nothing but what its power sensor reports."""
    return replace(with_gain(twin, gain), key=f"{twin.key}#{number}")
