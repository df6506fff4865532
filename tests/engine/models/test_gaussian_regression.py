"""Regression over many columns of numbers from few rows."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from app.engine.models.energy_cost import GaussianRegression, regress


def law(inputs: np.ndarray) -> np.ndarray:
    """What a value is by the first three columns; the others say nothing."""
    first, second, third = inputs.T[:3]
    return 0.3 * np.sin(first) + 0.2 * second * (third > 0) + 0.1 * second


def rows(count: int, columns: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, (count, columns))


def off(model: GaussianRegression, inputs: np.ndarray) -> float:
    return float(np.sqrt(((model.mean(inputs) - law(inputs)) ** 2).mean()))


@pytest.mark.parametrize("columns", [3, 30, 120])
def test_the_columns_that_matter_are_found_among_many_that_do_not(columns: int) -> None:
    known, others = rows(80, columns, 1), rows(300, columns, 2)
    scatter = np.random.default_rng(3).normal(0, 0.01, len(known))
    model = regress(known, law(known) + scatter)
    by_lines = np.linalg.lstsq(np.column_stack([known, np.ones(80)]), law(known) + scatter, rcond=None)[0]
    of_lines = np.column_stack([others, np.ones(300)]) @ by_lines
    assert off(model, others) < 0.6 * law(others).std()
    assert off(model, others) < np.sqrt(((of_lines - law(others)) ** 2).mean())


def test_far_from_all_that_is_known_it_expects_the_mean() -> None:
    known = rows(40, 3, 1)
    model = regress(known, law(known))
    assert model.mean(np.full((1, 3), 1e9)) == pytest.approx(law(known).mean(), abs=0.02)


def test_units_and_the_size_of_large_numbers_do_not_matter() -> None:
    known, others = np.exp(rows(60, 3, 1) + 9.0), np.exp(rows(30, 3, 2) + 9.0)
    values = law(np.log(known) - 9.0)
    expected = regress(known, values).mean(others)
    assert regress(1000 * known, values).mean(1000 * others) == pytest.approx(expected, abs=1e-3)


def test_an_unknown_number_counts_as_the_mean_of_its_column() -> None:
    known = rows(60, 3, 1)
    model = regress(known, law(known))
    unknown, centre = np.array([[0.5, math.nan, 0.2]]), np.array([[0.5, np.sinh(np.arcsinh(known[:, 1]).mean()), 0.2]])
    assert model.mean(unknown) == pytest.approx(model.mean(centre))


@given(arrays(float, (9, 4), elements=st.one_of(st.floats(-1e12, 1e12), st.just(math.nan))), st.floats(-5, 5))
def test_whatever_the_numbers_are_it_predicts_finite_ones(inputs: np.ndarray, value: float) -> None:
    values = np.linspace(value, value + 1, len(inputs))
    assert np.isfinite(regress(inputs, values).mean(inputs)).all()


def test_of_columns_that_do_not_vary_it_knows_the_mean() -> None:
    model = regress(np.ones((7, 3)), np.arange(7.0))
    assert model.mean(rows(5, 3, 1)) == pytest.approx(np.full(5, 3.0))


def test_a_kept_one_predicts_the_same() -> None:
    known, others = rows(40, 5, 1), rows(20, 5, 2)
    known[:, 2] = 4.0
    model = regress(known, law(known))
    again = GaussianRegression.from_json(json.loads(json.dumps(model.to_json())), 5)
    assert again.mean(others) == pytest.approx(model.mean(others))


@pytest.mark.parametrize(
    "damage",
    [
        {"varying": [0, 0, 1]},
        {"varying": [9]},
        {"scale": [0.0, 1.0, 1.0]},
        {"weights": [1.0]},
        {"points": [1.0, 2.0]},
        {"constant": math.inf},
        {"centre": "abc"},
    ],
)
def test_a_damaged_one_is_refused(damage: dict[str, object]) -> None:
    document = {**regress(rows(20, 3, 1), law(rows(20, 3, 1))).to_json(), **damage}
    with pytest.raises((ValueError, TypeError)):
        GaussianRegression.from_json(document, 3)
