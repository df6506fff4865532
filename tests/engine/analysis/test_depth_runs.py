"""Strategies at two depths on recorded spaces: what they are sent, and what it costs of board time."""

from __future__ import annotations

from pathlib import Path

import engine_fakes  # noqa: F401  (registers a strategy)
import numpy as np
import pytest

from app.engine.analysis.depth_runs import Prices, run_at_depths
from app.engine.analysis.score_runs import Recorded, recorded, run
from app.engine.analysis.scoring import Baseline, Yardstick
from app.engine.formats.read import read_recording
from app.engine.measurement import Depth
from app.engine.objectives import Goal, parse_front

PRICES = Prices(time_s=1.0, energy_s=4.0)


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


def test_every_look_has_its_price(vectors: Recorded) -> None:
    looks = run_at_depths("test_time_then_measure", {"chunk": 5}, vectors, PRICES, np.random.default_rng(1))
    timed = [look.depth is Depth.TIME for look in looks]
    assert timed == [*[True] * 5, False] * 3
    assert looks[-1].after_s == 15 * 1.0 + 3 * 4.0
    assert [look.after_s for look in looks] == sorted(look.after_s for look in looks)


def test_a_board_that_cannot_time_sends_everything_at_once(vectors: Recorded) -> None:
    looks = run_at_depths(
        "test_time_then_measure", {"chunk": 5}, vectors, PRICES, np.random.default_rng(1), can_time=False
    )
    assert [look.row for look in looks] == list(range(15))
    assert looks[-1].after_s == 15 * 4.0


def test_it_ends_when_the_time_is_over(vectors: Recorded) -> None:
    looks = run_at_depths("random_sample", {}, vectors, PRICES, np.random.default_rng(1), until_s=20.0)
    assert 5 <= len(looks) < 15


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
