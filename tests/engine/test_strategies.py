"""Every strategy on every kind of space; and that the clever ones are worth having."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from strategy_conformance import Problem, problems, run

import app.engine.strategies  # noqa: F401  (registers them)
from app.engine.measurement import State
from app.engine.strategies import base
from app.engine.strategies.base import Outcome
from app.errors import InputError

PROBLEMS = problems()
CLEVER = ("genetic_algorithm", "greedy_ils", "simulated_annealing")

# tests elsewhere register strategies of their own
SHIPPED = [name for name in base.names() if type(base.get(name)).__module__.startswith("app.")]


def test_the_promised_strategies_are_registered() -> None:
    promised = {"brute_force", "random_sample", "genetic_algorithm", "greedy_ils", "simulated_annealing"}
    assert promised <= set(base.names())
    with pytest.raises(InputError, match="brute_force"):
        base.get("brute_farce")


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("kind", PROBLEMS)
def test_never_outside_never_twice_and_ends_when_all_is_known(name: str, kind: str) -> None:
    problem = PROBLEMS[kind]
    found = run(base.get(name), problem)
    if problem.budget > problem.space.size:
        assert found.ended
        assert sorted(found.rows) == list(range(problem.space.size))
    else:
        assert len(found.rows) >= problem.budget


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("batch", [1, 32])
def test_the_same_seed_gives_the_same_run(name: str, batch: int) -> None:
    problem = PROBLEMS["350,000 rows"]
    first, again, other = (run(base.get(name), problem, seed, batch) for seed in (5, 5, 6))
    assert first.batches == again.batches
    assert name == "brute_force" or first.rows != other.rows


@pytest.mark.parametrize("name", SHIPPED)
def test_it_can_be_closed_at_any_moment(name: str) -> None:
    problem = PROBLEMS["noisy"]
    for batches in range(4):
        search = base.get(name).search(problem.space, np.random.default_rng(1), 8, base.get(name).Options())
        rows = next(search)
        for _ in range(batches):
            rows = search.send(problem.outcomes(rows))
        search.close()


@pytest.mark.parametrize("name", SHIPPED)
def test_every_option_is_explained_and_checked(name: str) -> None:
    strategy = base.get(name)
    for field in dataclasses.fields(strategy.Options):
        assert field.metadata["help"]
        assert base.make_options(strategy, {field.name: str(field.default)}) == strategy.Options()
        for wrong in ("-1", "nan", "many"):
            with pytest.raises(InputError):
                base.make_options(strategy, {field.name: wrong})
    with pytest.raises(InputError, match="no option"):
        base.make_options(strategy, {"no_such_option": 1})


@pytest.mark.parametrize("name", CLEVER)
def test_a_bowl_is_found_in_a_hundredth_of_its_rows(name: str) -> None:
    problem = Problem(PROBLEMS["100,000 rows"].space, PROBLEMS["100,000 rows"].cost, 1000)
    best = sorted(problem.cost(row) for row in range(problem.space.size))
    found = [min(problem.cost(row) for row in run(base.get(name), problem, seed).rows) for seed in range(5)]
    assert np.median(found) <= best[25]  # random sampling gets to about the hundredth best row


@pytest.mark.parametrize("name", CLEVER)
def test_on_a_real_kernel_it_beats_random_sampling(shared_data: Path, name: str) -> None:
    from app.engine.formats.kernel_tuner import read_cache

    cache = read_cache(shared_data / "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz")
    space = cache.space()
    cost = np.full(space.size, math.inf)
    for measurement in cache.measurements():
        if measurement.state is State.OK:
            cost[measurement.row] = -measurement.values["TFLOPS/J"]
    problem = Problem(space, lambda row: float(cost[row]), 300)

    def mean_best(strategy: str) -> float:
        runs = [run(base.get(strategy), problem, seed, batch=16).rows[:300] for seed in range(12)]
        return float(np.mean([cost[rows].min() for rows in runs]))

    assert mean_best(name) < 0.99 * mean_best("random_sample") < 0  # costs are negative: at least 1 % better
    assert mean_best(name) < 0.97 * cost.min()


def test_what_is_known_is_not_asked_again() -> None:
    space = PROBLEMS["tiny"].space
    known = base.Evaluations(space)
    asking = known.ask([2, 1, 2])
    assert next(asking) == [2, 1]
    with pytest.raises(StopIteration) as ended:
        asking.send([Outcome(2, 5.0), Outcome(1, math.inf, State.COMPILE)])
    assert ended.value.value == [5.0, math.inf, 5.0]
    with pytest.raises(StopIteration):
        next(known.ask([1, 2]))
    assert len(known) == 2
    assert not known.exhausted
