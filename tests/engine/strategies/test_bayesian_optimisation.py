"""Bayesian searches, of one goal and of a front: that they learn, from failures too, in batches and on large spaces."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from fixtures.spaces import space_of
from fixtures.strategy_conformance import Problem, run
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import rankdata

import app.engine.strategies  # noqa: F401  (registers them)
from app.engine.formats.read import read_recording
from app.engine.results.measurement import State
from app.engine.results.objectives import parse_front
from app.engine.results.pareto import hypervolume
from app.engine.space.search_space import SearchSpace
from app.engine.strategies import base, surrogate
from app.engine.strategies.base import Batch, Outcome
from app.engine.strategies.recorded_runs import recorded
from app.engine.strategies.surrogate import WHOLE, Candidates, Surrogate, normal_scores

PS3 = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"


SMALL = space_of(x=[2**k for k in range(8)], y=[2**k for k in range(8)], unroll=[0, 1, 2, 4], mode=["a", "b", "c"])


def gemm_like(space: SearchSpace) -> np.ndarray:
    """Threads should be 64, neither side too short, unrolling helps, and one mode is slow; a time over decades."""
    x, y = space.column("x").astype(float), space.column("y").astype(float)
    cost = np.log2(x * y / 64) ** 2 + 0.3 * np.log2(x / y) ** 2 + 2 * (space.column("mode") == "b")
    return np.exp(0.3 * cost - 0.05 * space.column("unroll").astype(float))


def search_rows(
    name: str, costs: np.ndarray, evaluations: int, seed: int = 1, batch: int = 1, **options: object
) -> list:
    """The rows a strategy asks for on SMALL."""
    chosen = base.get(name)
    search = chosen.search(SMALL, np.random.default_rng(seed), batch, chosen.Options(**options))
    rows: list[int] = []
    asked = next(search)
    while len(rows) < evaluations:
        rows += asked
        asked = search.send(
            [Outcome(r, c, State.OK if c < math.inf else State.RUNTIME) for r, c in costs_of(asked, costs)]
        )
    return rows


def costs_of(rows: Sequence[int], costs: np.ndarray) -> list[tuple[int, float]]:
    return [(row, float(costs[row])) for row in rows]


ACQUISITIONS = base.choices_of(
    next(f for f in base.get("bayesian_optimisation").Options.__dataclass_fields__.values() if f.name == "acquisition")
)


@pytest.mark.parametrize("acquisition", ACQUISITIONS)
def test_every_acquisition_finds_the_best_soon(acquisition: str) -> None:
    costs = gemm_like(SMALL)
    rank = [
        int((costs < costs[search_rows("bayesian_optimisation", costs, 40, seed, acquisition=acquisition)].min()).sum())
        for seed in range(3)
    ]
    assert np.median(rank) <= 3, f"ranks {rank} of {SMALL.size}; chance would give about {SMALL.size // 40}"


def test_failures_teach() -> None:
    costs = gemm_like(SMALL)
    x, y = SMALL.column("x").astype(float), SMALL.column("y").astype(float)
    fails = x * y > 256  # too many threads
    costs = np.where(fails, math.inf, costs / (x * y) ** 2)  # and the best of the others lie at the brink
    rows = search_rows("bayesian_optimisation", costs, 90)
    assert 0.3 < fails.mean() < 0.6
    assert fails[rows[15:60]].mean() < 0.15
    assert costs[rows].min() <= np.sort(costs)[3]


def test_a_batch_is_spread_and_as_good_as_one_by_one() -> None:
    costs = gemm_like(SMALL)
    chosen = base.get("bayesian_optimisation")
    search = chosen.search(SMALL, np.random.default_rng(1), 64, chosen.Options(together=6))
    asked = next(search)
    for _ in range(8):
        asked = search.send([Outcome(row, cost) for row, cost in costs_of(asked, costs)])
        assert len(asked) == len(set(asked)) == 6
    search.close()
    batched = search_rows("bayesian_optimisation", costs, 60, batch=6, together=6)
    assert (costs < costs[batched].min()).sum() <= 5


def test_of_many_points_the_model_keeps_the_best_and_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surrogate, "MOST_POINTS", 24)
    costs = gemm_like(SMALL)
    model = Surrogate(SMALL, 1, np.random.default_rng(1))
    rows = np.random.default_rng(2).permutation(SMALL.size)[:300].tolist()
    for start in range(0, 300, 20):
        model.learn([Outcome(row, float(costs[row])) for row in rows[start : start + 20]])
        prediction = model.predict()
        assert len(prediction.rows) == SMALL.size - start - 20
    predicted = prediction.rows[np.argsort(prediction.mean[0])[:20]]
    assert np.median(costs[predicted]) < np.quantile(costs, 0.1)


def test_on_a_large_space_the_pool_leads_to_the_best() -> None:
    space = space_of(a=list(range(100)), b=list(range(100)), c=list(range(10)))
    assert space.size > WHOLE

    def cost(row: int) -> float:
        a, b, c = space.codes[row].tolist()
        return float((a - 71) ** 2 + (b - 13) ** 2 + 20 * (c - 4) ** 2)

    found = run(base.get("bayesian_optimisation"), Problem(space, cost, 120), batch=4)
    assert min(map(cost, found.rows)) <= 4, "within two steps; chance would give about 150"


def test_a_pool_holds_open_rows_once_and_is_never_empty_while_some_are_left() -> None:
    space = space_of(a=list(range(300)), b=list(range(300)))
    candidates = Candidates(space, np.random.default_rng(1))
    candidates.close(np.arange(space.size - 5).tolist())
    candidates.renew([0])
    assert sorted(candidates.rows.tolist()) == list(range(space.size - 5, space.size))
    candidates = Candidates(space, np.random.default_rng(1))
    candidates.renew([7])
    for row in (7, 8, 45_000):
        candidates.around(row)
    assert len(set(candidates.rows.tolist())) == len(candidates.rows) == len(candidates.open)
    assert set(space.neighbours(45_000).tolist()) <= set(candidates.rows.tolist())


def test_normal_scores_keep_the_order_and_nothing_else() -> None:
    scores = normal_scores(np.array([1e9, 3.0, 3.0, -2.0, 5.0]))
    assert scores.tolist() == normal_scores(np.array([7.0, 4.0, 4.0, 3.9, 6.0])).tolist()
    assert scores[1] == scores[2]
    assert scores[3] < scores[1] < 0 < scores[4] < scores[0]


@given(st.lists(st.one_of(st.integers(0, 5).map(float), st.floats(-1e9, 1e9), st.just(math.inf)), min_size=1))
def test_normal_scores_are_quantiles_of_scipys_ranks(costs: list[float]) -> None:
    expected = ndtri((rankdata(costs) - 0.5) / len(costs))
    assert normal_scores(np.array(costs)).tolist() == expected.tolist()


def front_rows(name: str, outcome: Callable[[int], Outcome], space: SearchSpace, evaluations: int) -> list[int]:
    chosen = base.get(name)
    search = chosen.search(space, np.random.default_rng(1), 1, chosen.Options())
    rows: list[int] = []
    asked = next(search)
    while len(rows) < evaluations:
        rows += asked
        asked = search.send([outcome(row) for row in asked])
    return rows


def test_the_front_of_a_real_kernel_is_found_early(shared_data: Path) -> None:
    goals = parse_front("max:TFLOPS,max:TFLOPS/J")
    on = recorded(read_recording(shared_data / PS3), goals[0], goals)
    values = on.front_values([True, True])

    def share(name: str, evaluations: int) -> float:
        rows = front_rows(name, lambda row: on.outcomes[row], on.space, evaluations)
        return hypervolume(values[rows[:evaluations]], (True, True), (0.0, 0.0)) / 73.898

    assert share("multi_objective_bayesian", 110) > 0.93
    assert share("nsga2", 400) > 0.93
    assert share("random_sample", 110) < 0.93


@pytest.mark.parametrize("name", ["nsga2", "multi_objective_bayesian"])
def test_three_goals_each_get_their_best(name: str) -> None:
    bests = [(0.0, 0.0), (7.0, 0.0), (0.0, 7.0)]
    codes = SMALL.codes[:, :2].astype(float)
    far = np.stack([np.hypot(codes[:, 0] - a, codes[:, 1] - b) for a, b in bests], axis=1)
    rows = front_rows(name, lambda row: Outcome(row, 0.0, front=tuple(far[row].tolist())), SMALL, 80)
    assert (far[rows].min(axis=0) <= 1).all()


@pytest.mark.parametrize("name", ["nsga2", "multi_objective_bayesian"])
def test_without_a_front_the_objective_is_searched_and_that_is_said(name: str) -> None:
    costs = gemm_like(SMALL)
    chosen = base.get(name)
    search = chosen.search(SMALL, np.random.default_rng(1), 1, chosen.Options())
    second = search.send([Outcome(row, cost) for row, cost in costs_of(next(search), costs)])
    assert isinstance(second, Batch)
    assert "no front" in second.remark
    third = search.send([Outcome(row, cost) for row, cost in costs_of(second, costs)])
    assert not Batch.of(third).remark
    rows = search_rows(name, costs, 150)
    assert (costs < costs[rows].min()).sum() <= 8
