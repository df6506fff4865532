"""Small stand-ins for what a session runs on: a space, runners that obey the test, and strategies with a known path."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from app.engine.results.measurement import Depth, Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.runner.base import More, Runner, no_more
from app.engine.runner.boards import Boards, InProcess, ReadyPlan
from app.engine.session.events import Event
from app.engine.space.search_space import Parameter, SearchSpace
from app.engine.strategies import base as strategies

E = TypeVar("E")


def grid(width: int = 10, height: int = 10) -> SearchSpace:
    """Two parameters, every combination valid."""
    codes = np.stack(np.meshgrid(np.arange(width), np.arange(height), indexing="ij"), axis=-1).reshape(-1, 2)
    parameters = (
        Parameter("x", tuple(range(width))),
        Parameter("letter", tuple("abcdefghijklmnopqrstuvwxyz"[:height])),
    )
    return SearchSpace(parameters, codes.astype(np.uint8), cartesian=width * height, removed_by={"x >= 0": 0})


def measurement_of(space: SearchSpace, row: int) -> Measurement:
    """What the fake board always says of a row: every seventh fails, the time falls with the row."""
    configuration = space.configuration(row)
    if row % 7 == 3:
        return Measurement(row, configuration, State.RUNTIME, error="launch failed", source="simulated")
    values = {"time_s": 1.0 / (1 + row), "energy_j": 2.0 + row}
    return Measurement(row, configuration, State.OK, values, source="simulated", observed_clock_mhz=1000.0 + row)


class FakeRunner(Runner):
    """Answers at once, remembers what it was asked for, and can be told to wait, to fail, or to skip."""

    source = "simulated"

    def __init__(self, space: SearchSpace, batch: int = 8, before: Callable[[int], None] | None = None) -> None:
        self.space = space
        self.batch = batch
        self.measured: list[int] = []
        self.closed = False
        self._before = before

    def measure(
        self, rows: Sequence[int], stop: threading.Event, depth: Depth = Depth.ENERGY, more: More = no_more
    ) -> Iterator[Measurement]:
        for row in rows:
            if stop.is_set():
                return
            if self._before is not None:
                self._before(row)
            yield self.answer(row, depth)

    def answer(self, row: int, depth: Depth) -> Measurement:
        self.measured.append(row)
        return measurement_of(self.space, row)

    def close(self) -> None:
        self.closed = True


class FakeTimer(FakeRunner):
    """It can also time rows, and remembers which."""

    timed = frozenset({"time_s"})

    def __init__(self, space: SearchSpace, batch: int = 8, before: Callable[[int], None] | None = None) -> None:
        super().__init__(space, batch, before)
        self.only_timed: list[int] = []

    def answer(self, row: int, depth: Depth) -> Measurement:
        if depth is Depth.ENERGY:
            return super().answer(row, depth)
        self.only_timed.append(row)
        whole = measurement_of(self.space, row)
        values = {name: value for name, value in whole.values.items() if name == "time_s"}
        return replace(whole, values=values, depth=Depth.TIME)


class TimeThenMeasure(strategies.Strategy, name="test_time_then_measure", label="Time, then measure"):
    """Times chunk after chunk, and measures the fastest of each."""

    @dataclass(frozen=True)
    class Options(strategies.CheckedOptions):
        chunk: int = strategies.option(10, "how many rows at once")

    def search(
        self, space: SearchSpace, rng: np.random.Generator, batch: int, options: TimeThenMeasure.Options
    ) -> strategies.Search:
        for start in range(0, space.size, options.chunk):
            rows = range(start, min(start + options.chunk, space.size))
            timed = yield strategies.Batch(list(rows), depth=Depth.TIME)
            again = [outcome for outcome in timed if not outcome.final]
            if again:
                yield [min(again, key=lambda outcome: outcome.values["time_s"]).row]


class InOrder(strategies.Strategy, name="test_in_order", label="In order"):
    """Every row, from the first to the last."""

    @dataclass(frozen=True)
    class Options(strategies.CheckedOptions):
        chunk: int = strategies.option(8, "how many rows at once")

    def search(
        self, space: SearchSpace, rng: np.random.Generator, batch: int, options: InOrder.Options
    ) -> strategies.Search:
        for start in range(0, space.size, options.chunk):
            yield list(range(start, min(start + options.chunk, space.size)))


class OneByOne(strategies.Strategy, name="test_one_by_one", label="One by one"):
    """Every row in an order drawn from the seed and bent by what was learnt: a path that only equal outcomes repeat."""

    def search(
        self, space: SearchSpace, rng: np.random.Generator, batch: int, options: strategies.CheckedOptions
    ) -> strategies.Search:
        left = list(rng.permutation(space.size))
        while left:
            [outcome] = yield [int(left.pop())]
            if np.isfinite(outcome.cost) and outcome.cost < 0.05:
                left.reverse()


def made_by(make: Callable[[], Runner]) -> Boards:
    """Boards whose runner is made by a function."""
    return InProcess(lambda _: make())


def plan(space: SearchSpace, runner: FakeRunner, **changes: object) -> ReadyPlan:
    """A plan over the fake board that makes time small."""
    made = ReadyPlan(
        title="fake",
        gpu="Fake GPU",
        driver="0",
        source="simulated",
        space=space,
        objective=Objective(Goal("time_s", False), (Goal("time_s", False), Goal("energy_j", False))),
        strategy="test_in_order",
        boards=made_by(lambda: runner),
        seed=4,
        units={"score": "points"},
        origin={"kind": "fake"},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


class Listener:
    """Keeps every event; `wait_for` returns the first of a kind, also one that came before."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._news = threading.Condition()

    def __call__(self, event: Event) -> None:
        with self._news:
            self.events.append(event)
            self._news.notify_all()

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in list(self.events) if isinstance(event, kind)]

    def wait_for(self, kind: type[E], when: Callable[[E], bool] = lambda _: True, timeout: float = 10.0) -> E:
        def found() -> E | None:
            return next((event for event in self.of(kind) if when(event)), None)

        with self._news:
            assert self._news.wait_for(lambda: found() is not None, timeout), f"no {kind.__name__} in {self.events}"
        event = found()
        assert event is not None
        return event
