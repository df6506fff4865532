"""The smooth mean of a rate over a window, and the 95 % interval of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.metering.confidence import CELLS, EVEN, SMOOTH, half_width, rates_in_cells, smooth_mean

PLACE = (np.arange(CELLS) + 0.5) / CELLS
seeds = st.integers(0, 2**32 - 1)


def noise(seed: int, alike: float = 0.0) -> np.ndarray:
    """Of unit variance, shape (CELLS,); each value is like the one before by so much."""
    fresh = np.random.default_rng(seed).standard_normal(CELLS)
    for at in range(1, CELLS):
        fresh[at] = alike * fresh[at - 1] + np.sqrt(1 - alike**2) * fresh[at]
    return fresh


def waves(times: float, phase: float) -> np.ndarray:
    """So many times in the window, half of each at 2 and half at 0."""
    fine = (np.arange(100 * CELLS) + 0.5) / (100 * CELLS)
    found: np.ndarray = (2.0 * ((times * fine + phase) % 1 < 0.5)).reshape(CELLS, 100).mean(axis=1)
    return found


@settings(max_examples=50, deadline=None)
@given(seeds, st.floats(1e-6, 1e9))
def test_the_unit_does_not_matter(seed: int, unit: float) -> None:
    rates = 10 + noise(seed)
    assert smooth_mean(unit * rates) == pytest.approx(unit * smooth_mean(rates), rel=1e-9)
    assert half_width(unit * rates) == pytest.approx(half_width(rates), rel=1e-6)


@settings(max_examples=50, deadline=None)
@given(seeds, st.floats(0.0, 0.95))
def test_forwards_and_backwards_are_alike(seed: int, alike: float) -> None:
    rates = 10 + noise(seed, alike)
    assert smooth_mean(rates[::-1]) == pytest.approx(smooth_mean(rates), rel=1e-9)
    assert half_width(rates[::-1]) == pytest.approx(half_width(rates), rel=1e-6)


@settings(max_examples=50, deadline=None)
@given(seeds, st.floats(0.01, 100.0))
def test_twice_the_noise_is_twice_as_uncertain(seed: int, level: float) -> None:
    once, twice = (half_width(level * (10 + share * noise(seed)), 10 * level) for share in (0.1, 0.2))
    assert twice == pytest.approx(2 * once, rel=1e-6)


def test_it_is_the_slope_of_a_straight_line_through_what_came() -> None:
    rates = 10 + noise(7)
    fine = np.repeat(rates, 50)
    came = (np.cumsum(fine) - fine / 2) / len(fine)
    slope = np.polyfit((np.arange(len(fine)) + 0.5) / len(fine), came, 1)[0]
    assert smooth_mean(rates) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.9])
def test_intervals_cover_the_truth_as_often_as_they_say(alike: float) -> None:
    seen = [20 + noise(seed, alike) for seed in range(400)]
    covered = np.mean([abs(smooth_mean(each) / 20 - 1) <= half_width(each, 20.0) for each in seen])
    assert 0.92 <= covered <= 0.99


def test_where_neighbours_swing_against_each_other_the_mean_is_known_better() -> None:
    apart = np.mean([half_width(20 + noise(seed, -0.8)) for seed in range(20)])
    fresh = np.mean([half_width(20 + noise(seed)) for seed in range(20)])
    assert apart < 0.5 * fresh


@settings(max_examples=50, deadline=None)
@given(st.floats(7.0, 30.0), st.floats(0.0, 1.0))
def test_waves_hardly_show(times: float, phase: float) -> None:
    rates = waves(times, phase)
    off = abs(smooth_mean(rates) - 1)
    half = half_width(rates)
    assert off < 0.4 / times**2 + 0.001, "the plain mean is off by up to 0.25 / times"
    assert off - 0.001 <= half < 15 / times**2, "independent blocks as much apart: 0.4"


def test_a_load_that_grows_is_not_known() -> None:
    assert half_width(1 + PLACE) > 0.1


def test_weights_are_1_on_average_and_as_their_integral() -> None:
    for weights in (EVEN, SMOOTH):
        assert weights.at(PLACE).mean() == pytest.approx(1.0, abs=1e-4)
        assert weights.between(-1.0, 2.0) == pytest.approx(1.0)
        assert weights.between(0.2, 0.3) == pytest.approx(0.1 * weights.at(np.array([0.25]))[0], rel=0.01)
        assert weights.between(0.0, 0.4) + weights.between(0.4, 1.0) == pytest.approx(1.0)


def test_amounts_come_evenly_until_their_times() -> None:
    rates = rates_in_cells(1.0, 3.0, np.array([2.0, 4.0]), np.array([6.0, 2.0]))
    assert rates[: CELLS // 2] == pytest.approx(3.0)
    assert rates[CELLS // 2 :] == pytest.approx(1.0)


def test_nothing_says_nothing() -> None:
    assert half_width(np.zeros(CELLS)) == np.inf
    assert half_width(np.ones(CELLS)) == 0.0
