"""`auto` where rows can be timed for less: it measures few, finds the best, and is not led astray by their time."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import app.engine.strategies  # noqa: F401  (registers them)
from app.base.paths import resources
from app.engine.results.measurement import Depth, State
from app.engine.results.pareto import front, hypervolume, reference_point
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.space.build import build_space
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.strategies import base
from app.engine.strategies.base import Batch, Outcome
from app.engine.strategies.bayesian_optimisation import SURE_OF_END
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.clock import VirtualClock
from app.sensors.limits import limits_of
from app.sensors.simulated import laws
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import LaunchRefused
from app.sensors.simulated.twin import load_twin

Floats = npt.NDArray[np.float64]
SPACE = build_space(
    {"x": list(range(12)), "y": list(range(12))}, [], {}, limits_of((8, 0)), {"graphics_clock_mhz": (900, 1200, 1500)}
)
X, Y, CLOCK = (SPACE.column(name).astype(float) for name in ("x", "y", "graphics_clock_mhz"))
RNG = np.random.default_rng(5)
# A kernel as boards have them: a bowl, rough; slower at a lower clock, which draws less than in proportion.
TIME = (1.0 + 0.1 * np.hypot(X - 8, Y - 3)) * np.exp(RNG.normal(0, 0.05, 144).repeat(3)) * (1500 / CLOCK) ** 0.8
POWER = (100.0 + 200.0 * (CLOCK / 1500) ** 3) * (1.0 + 0.01 * X)
FAILS = (X % 4 == 1) & (Y % 3 == 0)


@dataclass
class Searched:
    """What a search asked for and found."""

    timed: list[int]
    measured: list[int]
    foreseen: list[bool] = field(default_factory=list)  # of the rows timed after the first: named as likely before
    why: str | None = None  # it ended


def search(
    costs: Callable[[int], tuple[float, ...]] | Floats,
    measured: int,
    *,
    times: Floats = TIME,
    in_windows: Floats | None = None,
    fails: npt.NDArray[np.bool_] | None = None,
    seed: int = 1,
    batch: int = 4,
    known_at_time: tuple[int, ...] = (),
    enough: float = 0.1,
) -> Searched:
    """Run `auto` until so many rows are measured; costs of one goal, or of a front of those in columns.

    `times` are of a few launches, and of windows where those of `in_windows` are not others.
    """
    of = np.atleast_2d(np.asarray(costs).T).T
    chosen, found = base.get("auto"), Searched([], [])
    steps = chosen.search(SPACE, np.random.default_rng(seed), batch, chosen.Options(enough=enough))
    asked, likely = Batch.of(next(steps)), set[int]()
    while True:
        outcomes = []
        if asked.depth is Depth.TIME:
            found.foreseen += [row in likely for row in asked if likely]
            assert not set(asked.likely) & {*asked, *found.timed, *found.measured}
        likely |= set(asked.likely)
        for row in asked:
            timed = asked.depth is Depth.TIME
            (found.timed if timed else found.measured).append(row)
            if fails is not None and fails[row]:
                failed = (math.inf,) * of.shape[1]
                outcomes.append(Outcome(row, math.inf, State.COMPILE, failed[1:] and failed, depth=asked.depth))
                continue
            known = [c if not timed or goal in known_at_time else math.nan for goal, c in enumerate(of[row].tolist())]
            goals = tuple(known) if len(known) > 1 else ()
            time_s = (times if timed or in_windows is None else in_windows)[row]
            outcomes.append(Outcome(row, known[0], front=goals, values={"time_s": time_s}, depth=asked.depth))
        if len(found.measured) >= measured or len(found.timed) + len(found.measured) > 600:
            steps.close()
            return found
        try:
            asked = Batch.of(steps.send(outcomes))
        except StopIteration as ended:
            found.why = ended.value
            return found


def best_of(costs: Floats, rows: list[int]) -> float:
    """How far the best of the rows is above the best there is."""
    return float(costs[rows].min() / costs.min() - 1)


def test_most_rows_that_are_timed_were_named_as_likely_before() -> None:
    foreseen = search(TIME * POWER, 20).foreseen
    assert len(foreseen) > 20
    assert np.mean(foreseen) > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_few_rows_are_measured_until_the_least_energy_is_found(seed: int) -> None:
    found = search(TIME * POWER, 20, seed=seed)
    assert best_of(TIME * POWER, found.measured) < 0.02
    assert len(found.timed) > len(found.measured)


def test_noise_of_the_time_of_one_per_cent_does_not_matter() -> None:
    noisy = TIME * np.exp(np.random.default_rng(2).normal(0, 0.01, len(TIME)))
    assert best_of(TIME * POWER, search(TIME * POWER, 20, times=noisy).measured) < 0.02


def test_where_the_lowest_clock_is_slowest_and_needs_least_energy_it_is_found() -> None:
    costs = TIME * POWER
    at_best = CLOCK[int(costs.argmin())]
    assert at_best < CLOCK[int(TIME.argmin())], "the fastest row is at another clock"
    found = search(costs, 20)
    assert best_of(costs, found.measured) < 0.02
    assert np.mean(CLOCK[found.measured[5:]] == at_best) > 0.5


def test_at_the_power_limit_rows_are_compared_by_the_times_that_all_of_them_have() -> None:
    """What is measured is held back in its window, so that all that was only timed looked faster."""
    windows = TIME * (1.1 + 0.02 * np.abs(X - 3))
    ended = [search(700.0 * windows, 10_000, in_windows=windows, seed=seed) for seed in range(3)]
    for each in ended:
        assert "expected to gain less" in str(each.why)
        assert best_of(windows, each.measured) < 0.005
    assert np.mean([len(each.timed) for each in ended]) < 100


def test_where_time_says_nothing_rows_are_measured_at_once() -> None:
    times = np.exp(np.random.default_rng(4).normal(0, 1.0, len(TIME)))
    found = search(TIME * POWER, 60, times=times)
    assert best_of(TIME * POWER, found.measured) < 0.05
    assert len(found.timed) < 60, "it does not go on timing"


def test_work_per_energy_which_is_to_be_large_is_found_too() -> None:
    efficiency = -1e3 / (TIME * POWER)
    found = search(efficiency, 20)
    assert efficiency[found.measured].min() < 0.98 * efficiency.min()


def test_what_fails_when_timed_is_never_asked_for_again() -> None:
    costs = np.where(FAILS, np.inf, TIME * POWER)
    found = search(TIME * POWER, 25, fails=FAILS)
    assert not {row for row in found.timed if FAILS[row]} & set(found.measured)
    assert FAILS[found.timed].any()
    assert FAILS[found.measured].sum() < 5
    assert len(set(found.timed)) == len(found.timed)
    assert costs[found.measured].min() < 1.03 * costs.min()


def test_where_everything_fails_it_comes_to_an_end() -> None:
    found = search(TIME, 10_000, fails=np.ones(len(TIME), dtype=bool))
    assert sorted([*found.timed, *found.measured]) == list(range(SPACE.size))


@pytest.mark.parametrize("costs", [np.zeros(len(TIME)), TIME * POWER - 300.0], ids=["zero", "of both signs"])
def test_costs_without_a_logarithm_are_searched_as_without_timing(costs: Floats) -> None:
    found = search(costs, 40)
    assert len(found.timed) <= 20
    assert len(found.measured) >= 40


def share_of_front(costs: Floats, rows: list[int]) -> float:
    smaller = (False,) * costs.shape[1]
    reference = reference_point(costs, smaller)
    return hypervolume(costs[rows], smaller, reference) / hypervolume(costs, smaller, reference)


@pytest.mark.parametrize("goals", [2, 3])
def test_a_front_is_found_by_measuring_part_of_what_is_timed(goals: int) -> None:
    costs = np.stack([TIME, POWER * (1 + 0.05 * np.abs(X - 2)), TIME * POWER][:goals], axis=1)
    found = search(costs, 40, known_at_time=(0,))
    assert len(front(costs, (False,) * goals)) > 3
    assert goals == 3 or share_of_front(costs, found.measured) > 0.97
    assert best_of(costs[:, 0], found.measured) < 0.05, "the fastest is measured, as it is on the front"
    assert best_of(costs[:, 1], found.measured) < 0.05
    assert len(found.timed) > 20


@pytest.mark.parametrize("seed", range(4))
def test_a_front_over_clocks_does_not_stay_at_the_fastest_of_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Energy grows with the clock; a search that began at the highest one found 17 to 43 % above the least there is."""
    clocks = (345, 750, 1020, 1290, 1560, 1770, 1980)
    axes = {"x": list(range(12)), "y": list(range(12))}
    space = build_space(axes, [], {}, limits_of((8, 0)), {"graphics_clock_mhz": clocks})
    monkeypatch.setitem(search.__globals__, "SPACE", space)
    x, y, clock = (space.column(name).astype(float) for name in ("x", "y", "graphics_clock_mhz"))
    rough = np.exp(np.random.default_rng(5).normal(0, 0.05, 144)).repeat(7)
    times = (1.0 + 0.1 * np.hypot(x - 8, y - 3)) * rough * 1980 / clock
    energy = times * (90 + 500 * (clock / 1980) ** 3 * (1 + 0.01 * x))
    costs = np.stack([times, energy], axis=1)
    found = search(costs, 40, times=times, seed=seed)
    assert best_of(energy, found.measured) < 0.01
    assert share_of_front(costs, found.measured) > 0.98


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("goals", [1, 2])
def test_it_ends_and_says_why_once_another_measurement_would_gain_little(goals: int, seed: int) -> None:
    costs = np.stack([TIME * POWER, TIME], axis=1)[:, :goals]
    found = search(costs, 10_000, seed=seed)
    assert found.why == "another measurement is expected to gain less than 0.1 %"
    assert 20 <= len(found.measured) < SPACE.size / 4
    assert best_of(costs[:, 0], found.measured) < 0.005


def test_where_all_rows_draw_the_same_power_as_many_are_measured_before_it_ends() -> None:
    """Their times say which are best, and measuring one promises nothing: that has to be seen of some, too."""
    found = search(TIME * 200.0, 300)
    assert found.why is not None
    assert "expected to gain less" in found.why
    assert len(found.measured) >= SURE_OF_END[0]
    assert best_of(TIME, found.measured) < 0.02


def test_with_enough_at_0_it_goes_on() -> None:
    found = search(TIME * POWER, 120, enough=0.0)
    assert len(found.measured) >= 120
    assert found.why is None


def test_what_a_clock_does_is_learned_first_also_where_no_row_has_another_one_alone(own_data_folder: Path) -> None:
    """300 rows of a large space drawn at random: hardly two of them differ in the clock alone."""
    twin = load_twin("h200")
    gpu = SimulatedGpu(twin, seed=0, clock=VirtualClock())
    specification = load_specification(resources() / "examples" / "stencil.toml")
    whole = plan_specification(specification, gpu, SearchOptions(strategy="auto", seed=0))
    rows = np.sort(np.random.default_rng(0).permutation(whole.space.size)[:300])
    plan = replace(whole, space=whole.space.subset(rows), max_evaluations=None)
    with Store() as store:
        result = run_session(plan, store, lambda _event: None, threading.Event())
    kernel = ProfiledKernel.of(specification, twin.limits)

    def joules(row: int) -> float:
        configuration = plan.space.configuration(row)
        clock = configuration["graphics_clock_mhz"]
        mhz = twin.clocks.graphics_mhz[-1] if clock == "untouched" else int(clock)
        try:
            load = kernel.prepare(configuration)
        except LaunchRefused:
            return math.inf
        limit_w, memory_mhz = twin.power.limit_default_w, twin.clocks.memory_mhz[-1]
        point, drawn_w, _ = laws.settled_under_limits(twin, load, mhz, memory_mhz, limit_w)
        return drawn_w * point.launch_s

    assert result.progress.best_index is not None
    assert result.progress.evaluated < 60
    chosen = result.table.measurement(result.progress.best_index)
    assert joules(chosen.row) < 1.01 * min(map(joules, range(plan.space.size)))
