"""Boards of one model in one session: whatever each reports, the finalists are compared on one of them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from fixtures.engine_fakes import measurement_of
from fixtures.fake_pool import FakePool
from fixtures.several_boards import twin_with_gain

from app.base.paths import resources
from app.engine.analysis.quantities import quantity
from app.engine.control.guard import DeviceGuard
from app.engine.results.description import Figure
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Limit, Objective
from app.engine.results.pareto import BEST, FRONT, MOST_BEST, finalists
from app.engine.results.state import SessionState
from app.engine.runner.pool import messages
from app.engine.runner.pool.pooled_gpu import PooledGpu
from app.engine.session.describe_session import describe_session
from app.engine.session.events import Event, MeasurementsAdded
from app.engine.session.live_session import SessionResult
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_resume, plan_specification
from app.engine.session.pool.worker import BoardWork
from app.engine.session.run import run_session
from app.engine.session.stored import open_session
from app.engine.session.summary import session_summary
from app.engine.space.result_table import ResultTable
from app.engine.specification.model import Specification
from app.engine.specification.plan import SearchOptions, SessionPlan
from app.engine.store.database import Store
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.clock import VirtualClock
from app.sensors.simulated import laws
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import LaunchRefused
from app.sensors.simulated.twin import load_twin
from app.views.shared.thumbnail import read_small_front

MODEL = load_twin("a100")
GOALS = Goal("energy_j", False), Goal("time_s", False)
STEPS = 24  # rows of a session


@cache
def specification() -> Specification:
    return load_specification(resources() / "examples" / "gemm.toml")


@cache
def whole_plan() -> SessionPlan:
    return plan_specification(specification(), SimulatedGpu(MODEL, clock=VirtualClock()))


def true_figures(row: int) -> tuple[float, float]:
    """Energy of a launch, J, and power, W, of a row: by the laws alone. Raises LaunchRefused."""
    configuration = whole_plan().space.configuration(row)
    load = ProfiledKernel.of(specification(), MODEL.limits).prepare(configuration)
    clock_mhz, memory_mhz = int(configuration["graphics_clock_mhz"]), MODEL.clocks.memory_mhz[-1]
    limit_w = MODEL.power.limit_default_w
    point, drawn_w, _ = laws.settled_under_limits(MODEL, load, clock_mhz, memory_mhz, limit_w)
    return drawn_w * point.launch_s, drawn_w


@cache
def ladder(least: float = 0.012) -> tuple[int, ...]:
    """Rows of a set clock far from the power limit by true energy, the least first, each so much above that before."""
    energies = {}
    for row in np.flatnonzero(np.isfinite(whole_plan().space.numbers("graphics_clock_mhz")))[::3].tolist():
        with suppress(LaunchRefused):
            energy, power = true_figures(row)
            if power < 0.9 * MODEL.power.limit_default_w:
                energies[row] = energy
    chosen: list[int] = []
    for row in sorted(energies, key=lambda row: energies[row]):
        if not chosen or energies[row] > energies[chosen[-1]] * (1 + least):
            chosen.append(row)
    return tuple(chosen[:STEPS])


class Side:
    """A worker with a board that reports so many times what it draws."""

    def __init__(self, key: str, gain: float) -> None:
        number = ord(key)
        gpu = SimulatedGpu(twin_with_gain(MODEL, gain, number), seed=number, clock=VirtualClock())
        self.work = BoardWork(gpu, DeviceGuard(gpu), host="here", key=key)
        self.board, self.key = self.work.board, key
        self.asked: list[int] = []  # rows
        self.on_rows: Callable[[], object] = lambda: None
        self.before_opening: Callable[[], object] = lambda: None

    def answer(self, line: bytes, say: Callable[[bytes], None]) -> bytes:
        request = messages.parse_request(line)
        if request.do == "open":
            self.before_opening()
        if request.do == "measure":
            self.asked += request.rows
            self.on_rows()
        return self.work.answer(line, say)

    def end_until(self, session: str, number: int) -> None:
        self.work.end_until(session, number)


@contextmanager
def pooled(*sides: Side) -> Iterator[PooledGpu]:
    pool = FakePool(*sides)
    try:
        yield PooledGpu(pool, pool.boards())
    finally:
        pool.close()
        for side in sides:
            side.work.close()


def plan_over(gpu: PooledGpu) -> SessionPlan:
    """Every row of the ladder, for the least energy."""
    space = whole_plan().space.subset(np.array(sorted(ladder())))
    made = plan_specification(specification(), gpu, SearchOptions(strategy="brute_force"))
    return replace(made, space=space, objective=Objective(GOALS[0], GOALS), max_evaluations=None)


def run(plan: SessionPlan, store: Store, stop: threading.Event | None = None) -> SessionResult:
    return run_session(plan, store, lambda _: None, stop or threading.Event())


def measured_in_parts(store: Store, parts: Mapping[str, tuple[float, Sequence[int]]]) -> int:
    """A session that is stopped when each board, by its key and gain, has measured its places of the ladder."""
    session, total = 0, 0
    for key, (gain, places) in parts.items():
        total += len(places)
        stop = threading.Event()

        def hear(event: Event, total: int = total, stop: threading.Event = stop) -> None:
            if isinstance(event, MeasurementsAdded) and event.progress.evaluated >= total:
                stop.set()

        with pooled(Side(key, gain)) as gpu:
            plan = plan_resume(store, session, gpu=gpu) if session else plan_over(gpu)
            starts = tuple(sorted(ladder()).index(ladder()[place]) for place in places)
            session = run_session(replace(plan, starts=starts, max_evaluations=total), store, hear, stop).session
    return session


def ended(store: Store, session: int, *sides: Side, stop: threading.Event | None = None) -> SessionResult:
    """The session, of which everything is measured, with these boards at its end."""
    with pooled(*sides) as gpu:
        return run(plan_resume(store, session, SearchOptions(max_evaluations=STEPS), gpu=gpu), store, stop)


def found_in(table: ResultTable) -> list[Measurement]:
    return [table.measurement(at) for at in range(len(table))]


def best_of(result: SessionResult) -> Measurement:
    assert result.progress.best_index is not None
    return result.table.measurement(result.progress.best_index)


def decided_on(result: SessionResult) -> Figure | None:
    figures = describe_session(result.plan, result.table).figures
    return next((each for each in figures if each.label == "Decided on"), None)


EVEN, ODD = range(0, STEPS, 2), range(1, STEPS, 2)  # places of the ladder: the best of all is the first


@pytest.mark.parametrize(
    ("gain", "of_a", "of_b"),
    [
        pytest.param(0.97, EVEN, ODD, id="the other board reports 3 % less, and its second best looks best"),
        pytest.param(1.03, ODD, EVEN, id="the board that measured the best reports 3 % more"),
    ],
)
@pytest.mark.parametrize("there", ["ab", "b"])
def test_the_decision_is_right_whatever_each_board_reports(
    gain: float, of_a: Sequence[int], of_b: Sequence[int], there: str
) -> None:
    best = whole_plan().space.configuration(ladder()[0])
    with Store() as store:
        session = measured_in_parts(store, {"a": (1.0, of_a), "b": (gain, of_b)})
        before = found_in(store.load(session).table)
        assert min(before, key=lambda each: each.values["energy_j"]).configuration != best, "as each board reported it"
        sides = [Side(key, {"a": 1.0, "b": gain}[key]) for key in there]
        result = ended(store, session, *sides)
        loaded = store.load(session).table
        shown = open_session(store, session)[1].progress
        small = read_small_front(store, store.session(session))
    assert result.state is SessionState.DONE, result.reason
    decided = result.table.decided_on
    assert decided in there
    assert best_of(result).configuration == best
    assert best_of(result).board == decided
    asked = next(set(side.asked) for side in sides if side.key == decided)
    others = [each for each in before if each.board != decided and each.row in asked]
    assert 0 < len(others) <= BEST + FRONT, "finalists of the other board, a few"
    assert sorted(each.row for each in found_in(result.table)) == list(range(STEPS)), "each once"
    assert result.progress.evaluated == STEPS
    assert set(result.table.boards) == {"a", "b"}, "each figure names its board"
    assert loaded.decided_on == decided
    assert shown.best_index == result.progress.best_index
    document = session_summary(result.table, result.plan)
    assert document["decided_on"] == document["best"]["board"] == decided
    assert {each["board"] for each in document["front"]} == {decided}
    said = decided_on(result)
    assert said is not None
    assert str(said.value).endswith(f"({decided})")
    assert small.best == quantity("energy_j", units={}).text(best_of(result).values["energy_j"])


def test_another_board_decides_where_the_one_that_measures_the_finalists_is_lost() -> None:
    parts = {"a": (1.0, range(12)), "b": (0.97, range(12, 18)), "c": (1.0, range(18, STEPS))}
    with Store() as store:
        session = measured_in_parts(store, parts)
        sides = [Side(key, gain) for key, (gain, _) in parts.items()]
        with pooled(*sides) as gpu:
            pool = gpu.pool
            assert isinstance(pool, FakePool)
            asked = threading.Event()

            def die() -> None:
                asked.set()
                pool.kill("a")

            sides[0].on_rows = die
            for side in sides[1:]:  # the first is ready first
                side.before_opening = lambda: asked.wait(60)
            plan = plan_resume(store, session, SearchOptions(max_evaluations=STEPS), gpu=gpu)
            result = run(replace(plan, looks_again=False), store)
    assert sides[0].asked, "it was ready first"
    assert result.state is SessionState.DONE, result.reason
    assert result.table.decided_on in ("b", "c")
    assert best_of(result).board == result.table.decided_on
    assert best_of(result).configuration == whole_plan().space.configuration(ladder()[0]), "found by the one that died"


def test_where_the_session_is_stopped_no_board_decides_and_that_is_said() -> None:
    stop = threading.Event()
    with Store() as store:
        session = measured_in_parts(store, {"a": (1.0, EVEN), "b": (0.97, ODD)})
        sides = [Side("a", 1.0), Side("b", 0.97)]
        for side in sides:
            side.on_rows = stop.set
        result = ended(store, session, *sides, stop=stop)
    assert stop.is_set()
    assert session_summary(result.table, result.plan)["decided_on"] is None
    said = decided_on(result)
    assert said is not None
    assert said.unknown.startswith("no board")


def test_one_board_measures_nothing_more_and_decides_nothing() -> None:
    side = Side("a", 1.0)
    with Store() as store, pooled(side) as gpu:
        result = run(replace(plan_over(gpu), looks_again=False), store)
    assert result.state is SessionState.DONE, result.reason
    assert sorted(side.asked) == list(range(STEPS))
    assert result.table.decided_on == ""
    assert decided_on(result) is None
    assert best_of(result).configuration == whole_plan().space.configuration(ladder()[0])


def test_a_session_that_was_decided_is_open_again_when_it_is_resumed() -> None:
    with Store() as store:
        session = measured_in_parts(store, {"a": (1.0, range(12)), "b": (0.97, range(12, 18))})
        with pooled(Side("a", 1.0), Side("b", 0.97)) as gpu:
            decided = run(plan_resume(store, session, SearchOptions(max_evaluations=18), gpu=gpu), store)
            assert decided.table.decided_on in ("a", "b")
            again = plan_resume(store, session, SearchOptions(max_evaluations=STEPS), gpu=gpu)
        assert "decided_on" not in again.origin
        result = ended(store, session, Side("c", 1.0))
    assert result.table.decided_on == "c"
    assert best_of(result).board == "c"
    assert best_of(result).configuration == whole_plan().space.configuration(ladder()[0])


def test_of_many_boards_the_finalists_are_few_and_the_best_of_each_comes_first() -> None:
    space = whole_plan().space
    measured = [
        replace(measurement_of(space, row), board=f"b{row % 100}", state=State.OK, values={"energy_j": 1.0 + row})
        for row in range(400)
    ]
    chosen = finalists(measured, Objective(GOALS[0]))
    assert [each.row for each in chosen] == list(range(MOST_BEST))
    two = [each for each in measured if each.board in ("b3", "b4")]
    assert [each.row for each in finalists(two, Objective(GOALS[0]))] == [3, 4, 103, 104, 203, 204]


def test_finalists_keep_the_limits_and_have_points_of_each_boards_front() -> None:
    space = whole_plan().space
    measured = [
        replace(
            measurement_of(space, row),
            board="ab"[row % 2],
            state=State.OK,
            values={"energy_j": 1.0 + row, "time_s": 1.0 / (1 + row), "power_w": math.nan if row == 0 else 1.0},
        )
        for row in range(100)
    ]
    chosen = finalists(measured, Objective(GOALS[0], GOALS, (Limit("power_w", True, 2.0),)))
    assert 0 not in {each.row for each in chosen}, "what breaks a limit can be neither best nor on the front"
    places = sorted(each.row for each in chosen if each.board == "b")
    assert {1, 99} <= set(places), "both ends of the front of a board"
    assert any(30 < row < 70 for row in places), "and between them"
    assert len(chosen) <= MOST_BEST + FRONT
