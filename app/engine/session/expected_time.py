"""How long a session is expected to take on the wall, before it starts: a range, from what its board needs for a few.

On a simulated board a few configurations are measured on a copy of it whose clock costs nothing. On another board an
earlier session of the same kernel there says how long one takes, else the window that its power source needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Final

import numpy as np

from ...base.formatting import duration
from ...sensors.clock import VirtualClock
from ...sensors.gpu import NotSupported
from ...sensors.simulated.gpu import SimulatedGpu
from ..metering.characterisation.store import known_characterisation
from ..metering.meter import BUFFER_MOST_S, POLLED_MOST_S, RISE_S, least_window_s
from ..metering.power_source import find_sensor
from ..results.measurement import FEWEST, Depth, State
from ..runner.base import Runner
from ..runner.boards import ReadyPlan, TunedBoards, open_runner
from ..strategies import base as strategies

if TYPE_CHECKING:
    from ..store.database import Store

_TRIED: Final = 16  # rows, drawn without replacement
_SAME_S: Final = (0.6, 1.7)  # of what one took in an earlier session of the kernel, on the same board
_BUSY_S: Final = 0.05  # on the wall, beside a configuration: the strategy's choice, the store, a window that paints
_MODEL_S: Final = 1.2  # the same of a strategy that fits a model before each choice
_SPARED: Final = 0.25  # of the budget such a strategy measures at least: it may end early
_BUILT_S: Final = 1.0  # a compiler, where it does not run ahead
_ONCE_S: Final = 30.0  # at most before the first: the look at the sensor, the warm-up


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From the shortest to the longest that is expected, s on the wall."""

    low_s: float
    high_s: float

    @property
    def words(self) -> str:
        """'2 min 10 s to 4 min 05 s'."""
        low, high = duration(self.low_s), duration(self.high_s)
        return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, slots=True)
class Pace:
    """What one configuration takes, at least and at most, s; on the board's clock where that is not the wall's."""

    full_s: tuple[float, float]
    timed_s: tuple[float, float]
    once_s: tuple[float, float] = (0.0, 0.0)  # before the first


def pace_of(plan: ReadyPlan, store: Store, stop: Event | None = None) -> Pace | None:
    """What a configuration of a plan takes; None where nothing tells, as of a program that was never run here."""
    boards, spec = plan.boards, plan.specification
    if spec is None or not isinstance(boards, TunedBoards):
        return None
    gpu = boards.gpu
    if isinstance(gpu, SimulatedGpu) and spec.command is None:
        from .on_board import boards_of

        copy = SimulatedGpu(gpu.twin, seed=gpu.seed, clock=VirtualClock())
        with open_runner(plan, boards_of(copy, None)) as runner:
            return _tried(runner, plan, stop or Event())
    for record in store.sessions():
        same = record.title == plan.title and record.board == plan.board
        if same and record.evaluated >= FEWEST and record.elapsed_s > 0:
            each_s = record.elapsed_s / record.evaluated
            return Pace((_SAME_S[0] * each_s, _SAME_S[1] * each_s), (0.0, 0.0), (0.0, _ONCE_S))
    if spec.kernel is None or not gpu.info.real:
        return None
    try:
        buffered = bool(gpu.power_samples(0))
    except NotSupported:
        buffered = False
    sensor = find_sensor(gpu, known_characterisation(gpu.info), buffered=buffered)
    least_s = RISE_S + (least_window_s(sensor) if sensor is not None else 0.0)
    most_s = least_s + (BUFFER_MOST_S if buffered else POLLED_MOST_S) + _BUILT_S
    repeats = spec.repeats
    return Pace((repeats * least_s, repeats * most_s), (0.01, _BUILT_S), (0.0, _ONCE_S))


def _tried(runner: Runner, plan: ReadyPlan, stop: Event) -> Pace | None:
    rows = np.random.default_rng(plan.seed).permutation(plan.space.size)[:_TRIED].tolist()
    first, *others = list(runner.measure(rows[:1], stop)) + list(runner.measure(rows[1:], stop))
    costs_s = np.array([one.cost_s for one in others or [first] if one.state is State.OK])
    if not len(costs_s):
        return None
    worked = len(costs_s) / max(1, len(others))
    timed_s = [one.cost_s for one in runner.measure(rows, stop, Depth.TIME)] if runner.timed else [0.0]
    full_s = float(np.quantile(costs_s, 0.1)), float(np.quantile(costs_s, 0.9))
    return Pace((worked * full_s[0], full_s[1]), (min(timed_s), max(timed_s)), (0.0, first.cost_s))


def expected_time(pace: Pace, plan: ReadyPlan, done: int = 0) -> TimeRange:
    """How long a plan takes at the present speed of its board, where so many of its evaluations are `done`."""
    gpu = plan.boards.gpu if isinstance(plan.boards, TunedBoards) else None
    speed = gpu.clock.speed if gpu is not None else 1.0
    left = max(0, plan.budget - done)
    strategy = strategies.get(plan.strategy)
    least = min(left * (_SPARED if strategy.times else 1.0), plan.patience or left)
    least = min(least, strategy.ends_after or least)
    busy_s = left * (_MODEL_S if strategy.times else _BUSY_S)
    timed = min(strategy.timed_for_one * left, plan.space.size) if strategy.times and pace.timed_s[1] else 0
    low_s = (pace.once_s[0] + least * pace.full_s[0]) / speed
    high_s = (pace.once_s[1] + left * pace.full_s[1] + timed * pace.timed_s[1]) / speed + busy_s
    if plan.max_seconds is not None:
        low_s, high_s = min(low_s, plan.max_seconds), min(high_s, plan.max_seconds + pace.full_s[1] / speed + _BUSY_S)
    return TimeRange(low_s, high_s)
