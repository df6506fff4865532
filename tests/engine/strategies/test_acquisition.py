"""Acquisition functions against the expectations that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.results.pareto import hypervolume
from app.engine.strategies.acquisition import (
    ACQUISITIONS,
    Portfolio,
    expected_hypervolume_improvement,
    reference_beyond,
    scalarised_improvement,
)

MEAN = np.array([-1.0, 0.0, 0.0, 2.0])
DEVIATION = np.array([0.1, 0.1, 1.0, 1.0])
DRAWN = MEAN + DEVIATION * np.random.default_rng(1).standard_normal((200_000, 4))


def test_expected_improvement_is_the_mean_of_what_is_gained() -> None:
    expected = np.maximum(-0.5 - DRAWN, 0).mean(axis=0)
    assert ACQUISITIONS["expected_improvement"](MEAN, DEVIATION, -0.5) == pytest.approx(expected, abs=5e-3)


def test_probability_of_improvement_is_how_often_something_is_gained() -> None:
    expected = (DRAWN < -0.51).mean(axis=0)
    assert ACQUISITIONS["probability_of_improvement"](MEAN, DEVIATION, -0.5) == pytest.approx(expected, abs=5e-3)


def test_lower_confidence_bound_prefers_the_lowest_bound() -> None:
    value = ACQUISITIONS["lower_confidence_bound"](MEAN, DEVIATION, -0.5)
    assert value.tolist() == pytest.approx([1.2, 0.2, 2.0, 0.0])


def test_a_portfolio_comes_to_prefer_what_does_better() -> None:
    portfolio = Portfolio(np.random.default_rng(1))
    portfolio.learn([5.0] * 10)  # the first sample
    chosen = []
    for step in range(300):
        name = portfolio.choose()
        chosen.append(name)
        portfolio.learn([-float(step) if name == "lower_confidence_bound" else 10.0 + step])
    assert chosen[200:].count("lower_confidence_bound") > 80
    assert set(chosen) == set(ACQUISITIONS)


costs = st.integers(0, 8).map(float)
known_points = st.lists(st.tuples(costs, costs), min_size=1, max_size=12).map(np.array)


@settings(max_examples=25, deadline=None)
@given(known_points, st.tuples(costs, costs), st.tuples(*[st.sampled_from([0.3, 1.0, 3.0])] * 2))
def test_expected_hypervolume_improvement_is_the_mean_of_what_the_front_gains(
    known: np.ndarray, mean: tuple[float, float], deviation: tuple[float, float]
) -> None:
    reference = np.array([8.5, 7.5])
    found = expected_hypervolume_improvement(
        np.array(mean)[:, None], np.array(deviation)[:, None], known, reference
    ).item()
    rng = np.random.default_rng(7)
    now = hypervolume(known, (False, False), reference.tolist())
    gains = [
        hypervolume(np.vstack([known, point]), (False, False), reference.tolist()) - now
        for point in np.array(mean) + np.array(deviation) * rng.standard_normal((400, 2))
    ]
    assert found == pytest.approx(np.mean(gains), abs=6 * np.std(gains) / 20 + 1e-3)


def test_a_candidate_surely_behind_the_front_gains_nothing_and_one_before_it_its_area() -> None:
    known = np.array([[1.0, 3.0], [3.0, 1.0]])
    mean = np.array([[4.0, 2.0, 0.0], [4.0, 2.0, 0.0]])
    found = expected_hypervolume_improvement(mean, np.full((2, 3), 1e-6), known, np.array([5.0, 5.0]))
    assert found == pytest.approx([0.0, 1.0, 25 - 12], abs=1e-4)


def test_the_reference_lies_beyond_the_front_even_of_one_point() -> None:
    assert reference_beyond(np.array([[1.0, 3.0], [3.0, 1.0], [3.1, 3.1]])).tolist() == pytest.approx([3.2, 3.2])
    assert reference_beyond(np.array([[1.0, 3.0], [3.0, 1.0], [9.0, 9.0]])).tolist() == [9.0, 9.0]
    assert (reference_beyond(np.array([[1.0, 3.0]])) > [1.0, 3.0]).all()


def test_a_weighting_of_three_goals_never_prefers_what_is_worse_in_all() -> None:
    rng = np.random.default_rng(1)
    mean = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    for _ in range(20):
        value = scalarised_improvement(mean, np.full((3, 3), 0.1), np.ones((4, 3)), rng)
        assert value[0] > value[1] > value[2] == 0
