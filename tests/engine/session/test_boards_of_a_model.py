"""Several boards of one model in one session: what each differs by is found, and the winner is that of one board."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from engine_fakes import Listener
from several_boards import SeveralBoards, simulated_board, twin_with_gain

from app.engine.measurement import Measurement, State
from app.engine.metering.condition import Condition
from app.engine.objectives import Goal, Objective
from app.engine.runner.board_comparison import SHARED
from app.engine.runner.one_scale import OneScale
from app.engine.session.board_offsets import offsets_of_origin
from app.engine.session.description import describe_session
from app.engine.session.live_session import SessionResult
from app.engine.session.load import load_specification
from app.engine.session.plan import SessionPlan
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.session.summary import session_summary
from app.engine.session_state import SessionState
from app.engine.specification.model import Specification
from app.engine.store.database import Store
from app.engine.workloads.profiled import ProfiledKernel
from app.paths import resources
from app.sensors.clock import VirtualClock
from app.sensors.simulated import laws
from app.sensors.simulated.figures import Twin
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import LaunchRefused
from app.sensors.simulated.twin import load_twin

CONDITION = Condition.parse("50C", "test")  # all boards are stated for the same
MODEL = load_twin("a100")
OVER, UNDER = 1.04, 0.96  # what the sensors of two other boards report of what they draw


@cache
def specification() -> Specification:
    return load_specification(resources() / "examples" / "gemm.toml")


@cache
def whole_plan() -> SessionPlan:
    return plan_specification(specification(), SimulatedGpu(MODEL, clock=VirtualClock()))


def plan_over(runner: object, rows: Sequence[int], **changes: object) -> SessionPlan:
    """Every one of these rows of the whole space, for the least energy."""
    whole = whole_plan()
    goals = Goal("energy_j", False), Goal("time_s", False)
    made = replace(
        whole,
        space=whole.space.subset(np.array(sorted(rows))),
        objective=Objective(goals[0], goals),
        strategy="brute_force",
        max_evaluations=None,
        make_runner=lambda: runner,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def boards(rows: Sequence[int], seed: int, **twins: Twin) -> SeveralBoards:
    space = whole_plan().space.subset(np.array(sorted(rows)))
    made = {key: simulated_board(twin, specification(), space, seed, CONDITION) for key, twin in twins.items()}
    return SeveralBoards(made, seed)


def one_scale(pool: SeveralBoards, rows: Sequence[int]) -> OneScale:
    return OneScale(pool, specification(), whole_plan().space.subset(np.array(sorted(rows))))


def run(plan: SessionPlan) -> SessionResult:
    with Store() as store:
        return run_session(plan, store, Listener(), threading.Event())


def three(rows: Sequence[int], seed: int = 3) -> SeveralBoards:
    others = {"over": twin_with_gain(MODEL, OVER, 1), "under": twin_with_gain(MODEL, UNDER, 2)}
    return boards(rows, seed, exact=MODEL, **others)


def candidates(count: int) -> list[int]:
    """Rows from all over the space."""
    return list(range(0, whole_plan().space.size, whole_plan().space.size // count))


def true_figures(row: int) -> tuple[float, float]:
    """Energy of a launch, J, and power, W, of a row: by the laws alone. Raises LaunchRefused."""
    configuration = whole_plan().space.configuration(row)
    load = ProfiledKernel.of(specification(), MODEL.limits).prepare(configuration)
    clock_mhz, memory_mhz = int(configuration["graphics_clock_mhz"]), MODEL.clocks.memory_mhz[-1]
    limit_w = MODEL.power.limit_default_w
    point, drawn_w, _ = laws.settled_under_limits(MODEL, load, clock_mhz, memory_mhz, limit_w)
    return drawn_w * point.launch_s, drawn_w


def out_of_the_limits_reach(seed: int, count: int) -> list[int]:
    """Rows that also a sensor that reports too much leaves below the limit: beside it, a clock may dip unseen."""
    rows: list[int] = []
    for row in np.random.default_rng(seed).permutation(whole_plan().space.size).tolist():
        with suppress(LaunchRefused):
            if true_figures(row)[1] * OVER < 0.99 * MODEL.power.limit_default_w:
                rows.append(row)
        if len(rows) == count:
            return rows
    raise AssertionError("the space has too few such rows")


@cache
def ladder(steps: int = 30, least: float = 0.012) -> tuple[int, ...]:
    """Rows by their true energy, the least first, each at least so much above the one before: by the laws alone."""
    energies = {}
    for row in range(0, whole_plan().space.size, 3):
        with suppress(LaunchRefused):
            energies[row] = true_figures(row)[0]
    chosen: list[int] = []
    for row in sorted(energies, key=lambda row: energies[row]):
        if not chosen or energies[row] > energies[chosen[-1]] * (1 + least):
            chosen.append(row)
    return tuple(chosen[:steps])


def winner(result: SessionResult) -> Measurement:
    table = result.table
    return table.measurement(int(np.nanargmin(table.values("energy_j"))))


def test_the_interval_of_an_offset_holds_the_truth_in_about_95_of_100_sessions() -> None:
    held = []
    for seed in range(60):
        rows = out_of_the_limits_reach(seed, SHARED)
        pool = boards(rows, seed, exact=MODEL, over=twin_with_gain(MODEL, OVER, 1))
        runner = one_scale(pool, rows)
        list(runner.measure(range(SHARED), threading.Event()))
        low, high = runner.offsets["over"].ratios["energy_j"].interval
        held.append(low <= OVER <= high)
        assert runner.offsets["over"].ratios["time_s"].value == pytest.approx(1.0, abs=1e-6), "the sensor alone errs"
    assert 0.87 <= np.mean(held) <= 1.0, "60 draws of 95 %: below 0.87 once in 200"


def test_the_winner_over_boards_is_that_of_one_board_and_without_correction_it_is_not() -> None:
    rows = ladder()
    best = whole_plan().space.configuration(rows[0])
    misled = 0
    for seed in range(4):
        alone = winner(run(plan_over(boards(rows, seed, exact=MODEL), rows, seed=seed)))
        uncorrected = winner(run(plan_over(three(rows, seed), rows, seed=seed)))
        together = run(plan_over(one_scale(three(rows, seed), rows), rows, seed=seed))
        assert together.state is SessionState.DONE
        assert winner(together).configuration == alone.configuration == best
        assert winner(together).values["energy_j"] == pytest.approx(alone.values["energy_j"], rel=0.02)
        misled += uncorrected.configuration != best
    assert misled >= 2, "which board measures which row is chance"


def test_what_a_board_reported_stays_beside_what_the_reference_would_have() -> None:
    rows = candidates(24)
    pool = three(rows)
    result = run(plan_over(one_scale(pool, rows), rows))
    table = result.table
    found = [table.measurement(at) for at in range(len(table))]
    assert sorted(each.row for each in found) == list(range(len(rows))), "each row once"
    offsets, reference = offsets_of_origin(result.plan.origin)
    assert reference == "exact"
    for each in found:
        assert each.board in ("exact", "over", "under")
        ratio = offsets[each.board].ratios["energy_j"].value
        own, given = each.values["energy_own_j"], each.values["energy_j"]
        assert each.values["board_correction"] == pytest.approx(1.0 if each.event_reasons & 4 else 1 / ratio)
        assert given == pytest.approx(own * each.values["board_correction"])
        assert each.values["GFLOPS/W"] == pytest.approx(each.values["GFLOP/s"] / each.values["power_w"], rel=1e-6)
        (low, high), (own_low, own_high) = each.intervals["energy_j"], each.intervals["energy_own_j"]
        wider = (high - low) / given - (own_high - own_low) / own
        assert wider > 0 if each.board != "exact" else wider == pytest.approx(0.0, abs=1e-9)
    best = winner(result)
    assert best.board == "exact", "what is best is settled on one board"
    with Store() as store:
        kept = store.load(result.session).table
    assert [(m.board, m.values["energy_own_j"]) for m in map(kept.measurement, range(len(kept)))] == [
        (each.board, each.values["energy_own_j"]) for each in found
    ]


def test_the_offsets_are_shown_with_their_intervals() -> None:
    rows = candidates(20)
    result = run(plan_over(one_scale(three(rows), rows), rows))
    document = session_summary(result.table, result.plan)
    energy = document["board_offsets"]["boards"]["under"]["energy_j"]
    assert energy["ratio"] == pytest.approx(UNDER, abs=0.01)
    assert energy["ratio_interval"][0] < energy["ratio"] < energy["ratio_interval"][1]
    assert document["best"]["board"] == "exact"
    described = describe_session(result.plan, result.table)
    [listing] = [each for each in described.listings if each.title.startswith("Boards")]
    assert [row[1] for row in listing.rows] == ["exact", "over", "under"]
    over = document["board_offsets"]["boards"]["over"]["energy_j"]["ratio"]
    assert over == pytest.approx(OVER, abs=0.01)
    assert f"{over:.4f}" in str(listing.rows[1][2])
    numbers = {each.board: each.values["board_number"] for each in map(result.table.measurement, range(len(rows)))}
    assert numbers == {"exact": 1, "over": 2, "under": 3}, "what the front may be coloured by"


def test_a_board_that_joins_later_is_compared_before_its_figures_are_given() -> None:
    rows = candidates(24)
    pool = three(rows)
    late = pool.runners.pop("under")
    runner, stop = one_scale(pool, rows), threading.Event()
    early = list(runner.measure(list(range(SHARED)), stop))
    pool.runners["under"] = late
    later = list(runner.measure(list(range(SHARED, len(rows))), stop))
    found = {each.row: each for each in (*early, *later)}
    assert set(found) == set(range(len(rows)))
    assert runner.offsets["under"].shared >= SHARED - 2
    by_late = [each for each in found.values() if each.board == "under" and not each.event_reasons & 4]
    assert by_late
    for each in by_late:
        assert each.values["board_correction"] == pytest.approx(1 / UNDER, abs=0.01)


def test_a_lost_board_leaves_what_it_measured_and_the_session_goes_on() -> None:
    rows = candidates(24)
    pool = three(rows)
    runner, stop = one_scale(pool, rows), threading.Event()
    first = list(runner.measure(list(range(12)), stop))
    del pool.runners["exact"]  # the reference
    second = list(runner.measure(list(range(12, len(rows))), stop))
    assert {each.board for each in second} <= {"over", "under"}
    restated = runner.restated([*first, *second])
    assert [each.row for each in restated] == [each.row for each in (*first, *second)]
    assert all("board_correction" in each.values for each in restated if each.state is State.OK)


def test_rows_that_a_board_was_to_look_at_again_are_measured_on_another_where_it_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = candidates(24)
    pool = three(rows)
    runner, stop = one_scale(pool, rows), threading.Event()
    first = list(runner.measure(list(range(12)), stop))
    answers, measure_on = [iter(())], pool.measure_on  # it left just then
    monkeypatch.setattr(pool, "measure_on", lambda *asked: answers.pop() if answers else measure_on(*asked))
    again = list(runner.measure(list(range(12)), stop))
    assert {each.row for each in again} == {each.row for each in first} == set(range(12))


def test_shared_configurations_count_once_however_many_boards_measured_them() -> None:
    rows = candidates(20)
    pool = three(rows)
    result = run(plan_over(one_scale(pool, rows), rows, max_evaluations=10))
    shared = [row for row in range(len(rows)) if len({key for key, of in pool.measured if of == row}) == 3]
    assert len(shared) >= SHARED
    assert result.progress.evaluated == len(set(result.table.rows().tolist())) == 10
