"""Strategies at two depths on recorded spaces: what they are sent, and what a score counts of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fixtures import engine_fakes  # noqa: F401  (registers a strategy)

from app.engine.formats.read import read_recording
from app.engine.results.measurement import Depth
from app.engine.results.objectives import Goal, parse_front
from app.engine.strategies.recorded_runs import Recorded, recorded, run
from app.engine.strategies.scoring import Baseline, Yardstick


@pytest.fixture
def vectors(shared_data: Path) -> Recorded:
    cache = read_recording(shared_data / "kernel-tuner" / "kt_vector_add_RTX4000Ada_PowerSensor3_15.json")
    return recorded(cache, Goal("energy_j", maximise=False), parse_front("min:time_s,min:energy_j"))


def test_what_is_timed_holds_the_time_and_no_energy(vectors: Recorded) -> None:
    for timed, whole in zip(vectors.timed, vectors.outcomes, strict=True):
        assert timed.depth is Depth.TIME
        assert timed.values == {name: whole.values[name] for name in ("time", "time_s")}
        assert np.isnan(timed.cost)
        assert timed.front[0] == whole.front[0] == whole.values["time_s"]
        assert np.isnan(timed.front[1])


def test_speeds_follow_from_the_time_and_work_per_energy_does_not(shared_data: Path) -> None:
    cache = read_recording(shared_data / "kernel-tuner" / "ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz")
    assert cache.names_at_time == {"time", "time_s", "TFLOPS"}


def test_a_board_that_cannot_time_sends_everything_at_once(vectors: Recorded) -> None:
    yardstick = Yardstick(Baseline(vectors.costs))
    seen = [
        run("test_time_then_measure", {"chunk": 5}, vectors, yardstick, np.random.default_rng(1), 1, can_time=can_time)
        for can_time in (True, False)
    ]
    assert [{look.depth for look in looks} for looks in seen] == [{Depth.TIME, Depth.ENERGY}, {Depth.ENERGY}]
    assert [look.row for look in seen[1]] == list(range(len(seen[1])))


def test_a_score_counts_what_is_only_timed_as_a_share_of_an_evaluation(vectors: Recorded) -> None:
    yardstick = Yardstick(Baseline(vectors.costs))
    best, other = int(np.argmin(vectors.costs)), int(np.argmax(vectors.costs))
    timed = yardstick.advantage([other] * 8 + [best], [Depth.TIME] * 8 + [Depth.ENERGY])
    late = yardstick.advantage([other] * 2 + [best])
    assert (timed[yardstick.points >= 3] == 1).all(), "8 times 0.17 and one evaluation"
    assert (timed[yardstick.points < 2] == 0).all(), "a time alone finds no winner"
    assert np.array_equal(timed >= 1, late >= 1), "as two evaluations before it"
    looks = run("test_time_then_measure", {"chunk": 5}, vectors, yardstick, np.random.default_rng(1), 1)
    assert {look.depth for look in looks} == {Depth.TIME, Depth.ENERGY}
    assert sum(yardstick.spent([look.row], look.depth) for look in looks[:-1]) < yardstick.budget


def test_where_timing_tells_all_or_nothing_of_the_goals_everything_is_evaluated(shared_data: Path) -> None:
    cache = read_recording(shared_data / "kernel-tuner" / "kt_vector_add_RTX4000Ada_PowerSensor3_15.json")
    by_time = recorded(cache, Goal("time_s", maximise=False))
    assert not by_time.timing_saves
    looks = run(
        "test_time_then_measure", {"chunk": 5}, by_time, Yardstick(Baseline(by_time.costs)), np.random.default_rng(1), 1
    )
    assert {look.depth for look in looks} == {Depth.ENERGY}
