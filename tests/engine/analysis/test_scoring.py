"""The score of a strategy: the exact baseline, the budget, runs by hand, confidence, and real spaces."""

from __future__ import annotations

import itertools
import json
import math
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import app.engine.strategies  # noqa: F401  (registers them)
from app.base.errors import InputError
from app.cli import main
from app.engine.formats.read import read_recording
from app.engine.results.objectives import parse_front
from app.engine.results.pareto import front, hypervolume, reference_point
from app.engine.strategies import scoring
from app.engine.strategies.recorded_runs import ScorePlan, recorded, score
from app.engine.strategies.scoring import Baseline, FrontBaseline, Yardstick

FOUR = Baseline(np.array([3.0, 1.0, math.inf, 2.0]))  # the failure counts as 3


def test_the_baseline_by_hand() -> None:
    # one draw: (1 + 2 + 3 + 3) / 4; two: three of six pairs hold the 1, two of the rest the 2, one neither
    assert FOUR.expected(1) == pytest.approx(2.25)
    assert FOUR.expected(2) == pytest.approx((3 * 1 + 2 * 2 + 1 * 3) / 6)
    assert FOUR.expected(3) == pytest.approx((3 * 1 + 2) / 4)
    assert FOUR.expected(4) == pytest.approx(1.0)
    assert FOUR.budget == 4  # 2 + 0.95 (1 - 2) = 1.05 lies below what three draws may expect


costs = st.lists(st.one_of(st.integers(0, 9).map(float), st.just(math.inf)), min_size=3, max_size=7).filter(
    lambda values: min(values) < np.median([v for v in values if v < math.inf] or [-1.0])
)


@given(costs)
def test_the_baseline_is_the_mean_over_all_draws(values: list[float]) -> None:
    baseline = Baseline(np.array(values))
    for draws in range(1, len(values) + 1):
        every = [min(chosen) for chosen in itertools.combinations(baseline.counted, draws)]
        assert baseline.expected(draws) == pytest.approx(np.mean(every))
    median = np.median([v for v in values if v < math.inf])
    target = median + 0.95 * (min(values) - median)
    assert baseline.expected(baseline.budget) <= target + 1e-12
    assert baseline.budget == 1 or baseline.expected(baseline.budget - 1) > target


@given(costs.filter(lambda values: len(values) < 6))
def test_all_orders_of_a_space_together_score_as_chance(values: list[float]) -> None:
    yardstick = Yardstick(Baseline(np.array(values)))
    runs = [yardstick.advantage(order) for order in itertools.permutations(range(len(values)))]
    mean = np.mean(runs, axis=0)
    assert np.allclose(mean[~np.isnan(mean)], 0.0, atol=1e-9)


def test_the_best_run_scores_one_and_the_worst_is_below_chance() -> None:
    baseline = Baseline(np.arange(100.0))
    yardstick = Yardstick(baseline)
    assert np.allclose(yardstick.advantage(range(100)), 1.0)
    assert np.allclose(yardstick.advantage([0]), 1.0), "a run that ends early keeps its best"
    assert (yardstick.advantage(range(99, -1, -1)) < 0).all()


def test_a_run_known_by_its_figures_alone_scores_the_same() -> None:
    baseline = Baseline(np.random.default_rng(1).permutation(200.0 + np.arange(200)))
    yardstick = Yardstick(baseline)
    rows = np.random.default_rng(2).permutation(200)
    figures = baseline.reached(rows, yardstick.points.astype(np.int64))
    assert np.array_equal(yardstick.advantage_of(figures), yardstick.advantage(rows), equal_nan=True)


def test_points_are_fiftieths_of_the_budget_rounded_up() -> None:
    yardstick = Yardstick(Baseline(np.arange(1000.0)))
    budget = yardstick.chance.budget
    assert yardstick.points.tolist() == [math.ceil(budget * i / 50) for i in range(1, 51)]


def test_over_time_a_dear_evaluation_counts_for_more() -> None:
    baseline = Baseline(np.arange(100.0))
    seconds = np.where(np.arange(100) < 50, 0.5, 1.5)
    yardstick = Yardstick(baseline, seconds)
    assert yardstick.budget == pytest.approx(baseline.budget * 1.0)
    cheap_first, dear_first = yardstick.advantage([40, 0]), yardstick.advantage([90, 0])
    when = np.flatnonzero(cheap_first == 1)[0], np.flatnonzero(dear_first == 1)[0]
    assert (yardstick.points[when[0]] >= 1.0 > yardstick.points[when[0] - 1]) or when[0] == 0
    assert yardstick.points[when[1]] >= 2.0 > yardstick.points[when[1] - 1]
    assert (dear_first[yardstick.points < 1.5] == 0).all(), "before its first evaluation has ended: as chance"


def test_a_space_without_anything_to_find_is_refused() -> None:
    for values in ([2.0, 2.0, 2.0], [math.inf, math.inf], [1.0, 1.0, 2.0]):
        with pytest.raises(InputError, match="nothing to search for"):
            Baseline(np.array(values))


points = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=6)


@given(points, st.booleans())
def test_the_front_s_baseline_is_the_mean_over_all_draws(pairs: list[tuple[int, int]], larger: bool) -> None:
    values, maximise = np.array(pairs, dtype=float), (larger, True)
    values[0] = math.nan  # a failure
    whole = hypervolume(values, maximise, reference := reference_point(values, maximise))
    assume(whole > 0)
    baseline = FrontBaseline(values, maximise)
    for draws in range(1, len(values) + 1):
        every = [
            hypervolume(values[list(c)], maximise, reference) for c in itertools.combinations(range(len(values)), draws)
        ]
        assert -baseline.expected(draws) == pytest.approx(np.mean(every) / whole)
    assert baseline.reached(np.arange(len(values)), np.array([1, len(values)])).tolist() == [0.0, -1.0]


def test_intervals_hold_the_mean_and_tighten_with_repeats() -> None:
    rng = np.random.default_rng(3)
    few, many = (scoring.mean_interval(rng.normal(0.5, 0.2, n)) for n in (10, 1000))
    for interval in (few, many):
        assert interval.low < interval.mean < interval.high
    assert many.high - many.low < 0.2 * (few.high - few.low)
    assert many.high - many.low == pytest.approx(2 * 1.96 * 0.2 / math.sqrt(1000), rel=0.15)
    apart = scoring.difference([np.full(20, 0.7), np.full(20, 0.9)], [np.full(20, 0.5), np.full(20, 0.6)])
    assert (apart.mean, apart.low, apart.high) == pytest.approx((0.25, 0.25, 0.25))


def test_wins_count_the_spaces_with_a_significant_difference() -> None:
    rng = np.random.default_rng(1)
    clear = {"a": rng.normal(1, 0.1, 20), "b": rng.normal(0, 0.1, 20), "c": np.zeros(20)}
    unclear = {"a": rng.normal(0, 1, 20), "b": rng.normal(0, 1, 20), "c": np.zeros(20)}
    wins = scoring.pairwise_wins({"one": clear, "two": unclear, "three": clear})
    assert wins["a"]["b"] == 2
    assert wins["b"]["a"] == 0
    assert wins["a"]["c"] >= 2


CONVOLUTION = "kernel-tuner/convolution_milo-A4000.json.gz"
GEMM = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"


def scored(shared_data: Path, name: str, **changes: object) -> dict[str, scoring.Interval]:
    plan = ScorePlan((shared_data / name,), ("random_sample", "greedy_ils"), **changes)  # type: ignore[arg-type]
    result = score(plan, threading.Event())
    assert result is not None
    return {strategy: result.overall(strategy) for strategy in result.strategies}


def test_on_a_real_space_chance_scores_zero_and_a_good_strategy_more(shared_data: Path) -> None:
    found = scored(shared_data, CONVOLUTION, repeats=30)
    assert found["random_sample"].low < 0 < found["random_sample"].high
    assert found["greedy_ils"].low > 0.1


def test_over_time_chance_scores_zero_too(shared_data: Path) -> None:
    over_time = scored(shared_data, CONVOLUTION, repeats=30, over_time=True)
    assert over_time["random_sample"].low < 0 < over_time["random_sample"].high


def test_a_real_front_looked_at_first_scores_one(shared_data: Path) -> None:
    goals = parse_front("max:TFLOPS,max:TFLOPS/J")
    space = recorded(read_recording(shared_data / GEMM), goals[1], goals)
    values = space.front_values((True, True))
    chosen = front(values, (True, True))
    assert len(chosen) == 13
    yardstick = Yardstick(FrontBaseline(values, (True, True)))
    assert yardstick.points[0] >= 13
    assert np.allclose(yardstick.advantage(chosen), 1.0)
    by_chance = [yardstick.advantage(np.random.default_rng(seed).permutation(5120)[:900]) for seed in range(8)]
    assert abs(np.mean(by_chance)) < 0.2


def test_the_command_prints_scores_budget_and_repeats_and_jobs_change_nothing(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "score",
        str(shared_data / CONVOLUTION),
        "--strategy",
        "greedy_ils,random_sample",
        "--repeats",
        "5",
        "--json",
    ]
    documents = []
    for jobs in ("1", "2"):
        assert main([*words, "--jobs", jobs]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    document = documents[0]
    assert documents[1] == document
    space = "convolution_milo-A4000"
    assert document["budget"] == {space: 268}
    assert document["repeats"] == 5
    assert set(document["scores"][space]) == {"greedy_ils", "random_sample"}
    one = document["scores"][space]["greedy_ils"]
    assert one["low"] <= one["mean"] <= one["high"]
    assert one["mean"] == pytest.approx(np.mean(document["curves"][space]["greedy_ils"]["mean"]))
    assert main(words[:-1]) == 0
    assert "greedy_ils" in capsys.readouterr().out


def test_a_difference_from_fewer_than_five_repeats_has_no_interval() -> None:
    many, few = np.linspace(0.0, 1.0, 20), [0.2, 0.3]
    found = scoring.difference([many, many], [few, many])
    assert found.mean == pytest.approx(0.125)
    assert found.words == "too few"


def test_fewer_than_five_repeats_have_no_interval(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", str(shared_data / CONVOLUTION), "--strategy", "greedy_ils,random_sample", "--repeats", "1"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    for one in document["overall"].values():
        assert (one["low"], one["high"]) == (None, None)
        assert one["mean"] is not None
    assert set(document["curves"]["convolution_milo-A4000"]["greedy_ils"]["low"]) == {None}
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.endswith("too few") for line in lines) == 2
    assert "1 repeat" in lines[0]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--strategy", "luck"), "unknown strategy"),
        (("--maximise", "FLOWERS"), "no value 'FLOWERS'"),
        (("--front", "max:time,min:time_s,min:energy"), "two goals"),
        (("--strategy", "greedy_ils", "--strategy-option", "leaps=3"), "no option 'leaps'"),
    ],
)
def test_bad_input_is_one_clear_line(
    shared_data: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], what: str
) -> None:
    assert main(["score", str(shared_data / CONVOLUTION), "--json", *words]) == 2
    assert what in json.loads(capsys.readouterr().out)["error"]["what"]


def test_a_stopped_score_is_none(shared_data: Path) -> None:
    stop = threading.Event()
    plan = ScorePlan((shared_data / CONVOLUTION,), ("random_sample",), repeats=50)
    assert score(plan, stop, lambda done, total: stop.set()) is None
