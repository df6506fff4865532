"""Every strategy on every kind of space; and that the clever ones are worth having."""

from __future__ import annotations

import dataclasses
import math
import threading
from pathlib import Path

import numpy as np
import pytest
from fixtures.engine_fakes import FakeRunner, Listener, grid, plan
from fixtures.strategy_conformance import Problem, problems, run
from hypothesis import given, settings
from hypothesis import strategies as st

import app.engine.strategies  # noqa: F401  (registers them)
from app.base.errors import InputError
from app.engine.results.measurement import State
from app.engine.session.run import run_session
from app.engine.space.search_space import space_of_table
from app.engine.store.database import Store
from app.engine.strategies import base

PROBLEMS = problems()
PROMISED = {
    *("brute_force", "random_sample", "latin_hypercube", "greedy_mls", "ordered_greedy_mls", "mls", "greedy_ils"),
    *("tabu_search", "simulated_annealing", "dual_annealing", "basin_hopping", "differential_evolution"),
    *("nelder_mead", "powell", "cobyla", "slsqp", "l_bfgs_b", "tnc", "cg", "bfgs"),
    *("genetic_algorithm", "particle_swarm", "firefly", "steered", "auto"),
}
SAMPLERS = {"brute_force", "random_sample", "latin_hypercube"}  # what comes of a row does not lead them
WEAK = {"l_bfgs_b", "slsqp", "tnc", "cg", "bfgs", "powell", "cobyla"}  # follow slopes, which kernels often lack

# tests elsewhere register strategies of their own
SHIPPED = [name for name in base.names() if type(base.get(name)).__module__.startswith("app.")]
LED = sorted(PROMISED - SAMPLERS - {"auto", "steered"})
QUICK = PROMISED - {"auto", "steered"}  # the others think long about each row, or hand over to one that does


def affordable(name: str, problem: Problem) -> Problem:
    """Fewer evaluations of a large space for those that think long about each row."""
    large = problem.space.size > 1000 and name not in QUICK
    return dataclasses.replace(problem, budget=min(problem.budget, 12)) if large else problem


def test_the_promised_strategies_are_registered() -> None:
    assert set(SHIPPED) >= PROMISED
    assert base.names()[0] == "auto"
    with pytest.raises(InputError, match="brute_force"):
        base.get("brute_farce")


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("kind", PROBLEMS)
def test_never_outside_never_twice_and_ends_when_all_is_known(name: str, kind: str) -> None:
    problem = affordable(name, PROBLEMS[kind])
    found = run(base.get(name), problem)
    if problem.budget > problem.space.size:
        assert found.ended
        knows_enough = kind == "timed" and found.why and "expected to gain less than" in found.why
        assert knows_enough or sorted(found.rows) == list(range(problem.space.size))
    else:
        assert len(found.rows) >= problem.budget


def test_auto_with_enough_at_0_ends_when_all_is_known_where_rows_are_timed_too() -> None:
    found = run(base.get("auto"), PROBLEMS["timed"], enough=0.0)
    assert found.ended
    assert sorted(found.rows) == list(range(PROBLEMS["timed"].space.size))


@pytest.mark.parametrize("name", SHIPPED)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_so_on_any_small_space_with_any_costs(name: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=20, unique=True), label="rows")
    values = {"a": [8, 1, 4, 2, 16], "b": ["x", "y", "z", "u", "v"], "c": [0.5, 1.5, 2.5, 3.5, 4.5]}
    table = [tuple(column[code] for column, code in zip(values.values(), row, strict=True)) for row in rows]
    space = space_of_table(values, table)
    some = st.sampled_from([math.inf, 0.0, 1.0, -1.0, 1e-9, 1e12]) | st.floats(-1e6, 1e6)
    costs = data.draw(st.lists(some, min_size=space.size, max_size=space.size), label="costs")
    found = run(base.get(name), Problem(space, costs.__getitem__, 100), batch=data.draw(st.integers(1, 9)))
    assert found.ended
    assert sorted(found.rows) == list(range(space.size))


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("batch", [1, 32])
def test_the_same_seed_gives_the_same_run(name: str, batch: int) -> None:
    problem = PROBLEMS["350,000 rows"] if name in QUICK else dataclasses.replace(PROBLEMS["noisy"], budget=14)
    first, again, other = (run(base.get(name), problem, seed, batch) for seed in (5, 5, 6))
    assert first.batches == again.batches
    assert name == "brute_force" or first.rows != other.rows


@pytest.mark.parametrize("name", SHIPPED)
def test_a_session_taken_up_goes_on_as_if_it_had_never_stopped(name: str) -> None:
    """Wherever it was cut, in the midst of a batch too, what was measured is not measured again."""
    space = grid(12, 9)

    def measured(resume: int | None, budget: int) -> tuple[int, list[int]]:
        runner = FakeRunner(space)
        made = plan(space, runner, strategy=name, max_evaluations=budget, resume=resume)
        return run_session(made, store, Listener(), threading.Event()).session, runner.measured

    with Store() as store:
        cuts = (13, 19, 30) if name in QUICK else (9, 12, 14)
        _, whole = measured(None, cuts[2])
        session, first = measured(None, cuts[0])
        _, second = measured(session, cuts[1])
        _, third = measured(session, cuts[2])
    assert np.cumsum([len(first), len(second), len(third)]).tolist() == list(cuts)
    assert first + second + third == whole


@pytest.mark.parametrize("name", SHIPPED)
def test_it_can_be_closed_at_any_moment(name: str) -> None:
    problem = PROBLEMS["100,000 rows"]
    threads = threading.active_count()
    for batches in (0, 2):
        search = base.get(name).search(problem.space, np.random.default_rng(1), 8, base.get(name).Options())
        rows = next(search)
        for _ in range(batches):
            rows = search.send(problem.outcomes(rows))
        search.close()
        assert threading.active_count() == threads


@pytest.mark.parametrize("name", SHIPPED)
def test_every_option_is_explained_and_checked(name: str) -> None:
    strategy = base.get(name)
    assert base.description(strategy)
    for field in dataclasses.fields(strategy.Options):
        assert field.metadata["help"]
        assert base.make_options(strategy, {field.name: str(field.default)}) == strategy.Options()
        for wrong in ("-1", "nan", "many"):
            with pytest.raises(InputError):
                base.make_options(strategy, {field.name: wrong})
    with pytest.raises(InputError, match="no option"):
        base.make_options(strategy, {"no_such_option": 1})


@pytest.mark.parametrize("name", LED)
def test_a_bowl_is_found_sooner_than_by_chance(name: str) -> None:
    space = PROBLEMS["100,000 rows"].space
    cost = ((space.codes - space.codes.max(axis=0) / 3) ** 2).sum(axis=1)
    problem = Problem(space, lambda row: float(cost[row]), 300)
    found = [cost[run(base.get(name), problem, seed).rows[:300]].min() for seed in range(3)]
    rank = np.searchsorted(np.sort(cost), np.median(found))
    assert rank < 0.001 * space.size  # by chance, the best of 300 has a rank of a 300th


@pytest.mark.parametrize("name", [name for name in LED if name not in WEAK])
def test_on_a_real_kernel_it_beats_random_sampling(shared_data: Path, name: str) -> None:
    space, cost = _efficiency_of_gemm(shared_data)
    problem = Problem(space, lambda row: float(cost[row]), 300)

    def mean_best(strategy: str) -> float:
        runs = [run(base.get(strategy), problem, seed, batch=16).rows[:300] for seed in range(6)]
        return float(np.mean([cost[rows].min() for rows in runs]))

    assert mean_best(name) < mean_best("random_sample") < 0


_KEPT: dict[Path, tuple[object, np.ndarray]] = {}


def _efficiency_of_gemm(shared_data: Path):  # type: ignore[no-untyped-def]
    from app.engine.formats.read import read_recording

    if shared_data not in _KEPT:
        cache = read_recording(shared_data / "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz")
        space = cache.space()
        cost = np.full(space.size, math.inf)
        for measurement in cache.measurements():
            if measurement.state is State.OK:
                cost[measurement.row] = -measurement.values["TFLOPS/J"]
        _KEPT[shared_data] = space, cost
    return _KEPT[shared_data]


@pytest.mark.parametrize(
    ("strategy", "option"),
    [
        ("genetic_algorithm", "crossover"),
        ("nsga2", "crossover"),
        ("differential_evolution", "scheme"),
        ("greedy_ils", "neighbourhood"),
        ("mls", "neighbourhood"),
        ("basin_hopping", "method"),
        ("dual_annealing", "method"),
    ],
)
@pytest.mark.parametrize("name", ["tiny", "one row", "one parameter", "noisy", "half failing", "without neighbours"])
def test_every_choice_of_an_option_searches_every_space(strategy: str, option: str, name: str) -> None:
    chosen = base.get(strategy)
    choices = base.choices_of(next(each for each in dataclasses.fields(chosen.Options) if each.name == option))
    assert len(choices) >= 3
    searched = {choice: run(chosen, PROBLEMS[name], **{option: choice}).rows for choice in choices}
    assert all(searched.values())
    if name == "noisy" and strategy != "nsga2":  # whose first generation is all of it
        assert len({tuple(rows) for rows in searched.values()}) > 1


def test_the_factor_of_differential_evolution_is_the_length_of_its_steps() -> None:
    chosen = base.get("differential_evolution")
    found = {factor: run(chosen, PROBLEMS["noisy"], factor=factor).rows for factor in (0.0, 0.3, 1.5)}
    assert len({tuple(rows) for rows in found.values()}) == 3
