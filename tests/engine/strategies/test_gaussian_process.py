"""The Gaussian process against the formulas of the textbook, on small restricted spaces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from app.engine.space.build import build_space
from app.engine.space.search_space import SearchSpace
from app.engine.strategies.features import Features
from app.engine.strategies.gaussian_process import Kernel, Posterior, fit_kernel, log_likelihood
from app.sensors.limits import limits_of


def small_space() -> SearchSpace:
    parameters = {"x": [1, 2, 4, 8, 16], "y": [1, 2, 3, 4, 5, 6], "mode": ["a", "b", "c"], "on": [0, 1]}
    clock = {"nvml_gr_clock": [900, 1200, 1300, 1800]}
    space = build_space(parameters | clock, ["x * y <= 48"], {}, limits_of((8, 0)))  # type: ignore[arg-type]
    marked = tuple(replace(p, device_setting=p.name in clock) for p in space.parameters)
    return replace(space, parameters=marked)


SPACE = small_space()
FEATURES = Features(SPACE)


def kernel_of(rng: np.random.Generator) -> Kernel:
    """A kernel with every axis, the derived ones too, and hyperparameters anywhere sensible."""
    start = Kernel.by_default(FEATURES)
    derived = len(FEATURES.axes) - FEATURES.own
    theta = np.concatenate([start.theta[:-1], np.full(derived, -1.0), [np.log(1e-2)]])
    return Kernel(FEATURES, tuple(range(len(FEATURES.axes))), theta + rng.normal(size=len(theta)) * 0.5)


def by_hand(kernel: Kernel, one: int, other: int) -> float:
    """The correlation of two rows as the module's text defines it."""
    product, at = 1.0, 0
    for index in kernel.axes:
        axis = FEATURES.axes[index]
        share = 1 / (1 + np.exp(-kernel.theta[at]))
        at += 1
        a, b = (int(FEATURES.of([row], [index])[0, 0]) for row in (one, other))
        if axis.positions is None:
            similar = float(a == b)
        else:
            length = 0.5
            if not axis.derived:
                length = np.exp(kernel.theta[at])
                at += 1
            distance = abs(axis.positions[a] - axis.positions[b]) / length
            similar = np.exp(-0.5 * distance**2 if axis.smooth else -distance)
        product *= 1 - share + share * similar
    return float(product)


def textbook(kernel: Kernel, rows: np.ndarray, values: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean, and deviation over s, by plain linear algebra (Rasmussen & Williams eqs 2.23, 2.24, 2.42)."""
    covariance = np.array([[by_hand(kernel, a, b) for b in rows] for a in rows]) + kernel.noise * np.eye(len(rows))
    across = np.array([[by_hand(kernel, a, b) for b in at] for a in rows])
    inverse = np.linalg.inv(covariance)
    constant = inverse.sum(axis=0) @ values / inverse.sum()
    mean = constant + across.T @ inverse @ (values - constant)
    variance = 1 - np.einsum("ij,ik,kj->j", across, inverse, across)
    return mean, np.sqrt(np.maximum(variance, 0))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(0, 6))
def test_the_posterior_is_that_of_the_textbook_however_it_came_about(seed: int, first: int, later: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = kernel_of(rng)
    rows, at = rng.permutation(SPACE.size)[: first + later], rng.permutation(SPACE.size)[:20]
    values = rng.normal(size=len(rows))
    posterior = Posterior(kernel, rows[:first], at[:5], capacity=30)
    for row in rows[first:].tolist():
        posterior.believe(int(rng.integers(SPACE.size)))
        posterior.extend(at[:0])
        posterior.forget()
        posterior.add(row)
    posterior.extend(at[5:])
    expected_mean, expected_deviation = textbook(kernel, rows, values, at)
    mean, _ = posterior.predict(values)
    assert mean == pytest.approx(expected_mean, abs=2e-4)
    assert posterior.uncertainty() == pytest.approx(expected_deviation, abs=5e-3)


def test_belief_narrows_and_is_forgotten_with_candidates_added_meanwhile() -> None:
    rng = np.random.default_rng(3)
    rows, values = np.array([0, 40, 90]), np.array([1.0, -1.0, 0.5])
    posterior = Posterior(kernel_of(rng), rows, np.arange(50), capacity=8)
    mean, before = posterior.predict(values)
    posterior.believe(20)
    posterior.extend(np.arange(50, 100))
    believed_mean, believed = posterior.predict(values)
    assert believed_mean[:50] == pytest.approx(mean)
    assert (believed[:50] <= before + 1e-4).all()
    assert believed[20] < 0.5 * before[20]
    posterior.forget()
    _, after = posterior.predict(values)
    assert after[:50] == pytest.approx(before, abs=1e-4)
    _, fresh = Posterior(posterior.kernel, rows, np.arange(100), capacity=8).predict(values)
    assert after == pytest.approx(fresh, abs=1e-4)


def test_rows_of_more_boards_than_there_is_room_for_are_believed_all_the_same() -> None:
    rng = np.random.default_rng(3)
    rows, values = np.array([0, 40, 90]), np.array([1.0, -1.0, 0.5])
    kernel = kernel_of(rng)
    tight, wide = (Posterior(kernel, rows, np.arange(100), capacity=capacity) for capacity in (4, 64))
    for row in rng.permutation(100)[:40].tolist():
        tight.believe(row)
        wide.believe(row)
    assert tight.uncertainty() == pytest.approx(wide.uncertainty())
    for posterior in (tight, wide):
        posterior.forget()
    assert tight.predict(values)[0] == pytest.approx(wide.predict(values)[0])
    tight.add(7)
    wide.add(7)
    assert tight.uncertainty() == pytest.approx(wide.uncertainty())


@pytest.mark.parametrize("seed", range(5))
def test_the_slope_of_the_likelihood_is_that_of_finite_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = kernel_of(rng)
    rows, values = rng.permutation(SPACE.size)[:25], rng.normal(size=25)

    def of(theta: np.ndarray) -> float:
        return log_likelihood(Kernel(FEATURES, kernel.axes, theta), rows, values)[0]

    _, slope = log_likelihood(kernel, rows, values)
    assert slope == pytest.approx(approx_fprime(kernel.theta, of, 1e-6), rel=1e-3, abs=1e-4)


def test_fitting_finds_what_matters() -> None:
    rng = np.random.default_rng(1)
    rows = rng.permutation(SPACE.size)[:60]
    x, y = SPACE.column("x").astype(float), SPACE.column("y").astype(float)
    threads = np.abs(np.log(x * y / 12))  # only the product counts
    kernel = fit_kernel(Kernel.by_default(FEATURES), rows, threads[rows], 30)
    assert any(FEATURES.axes[index].derived for index in kernel.axes), "the product of x and y was taken in"
    others = np.setdiff1d(np.arange(SPACE.size), rows)
    mean, _ = Posterior(kernel, rows, others, 60).predict(threads[rows])
    plain, _ = Posterior(Kernel.by_default(FEATURES), rows, others, 60).predict(threads[rows])
    error, plain_error = (np.sqrt(np.mean((m - threads[others]) ** 2)) for m in (mean, plain))
    assert error < 0.5 * plain_error < 0.5 * threads.std()


def test_fitting_finds_the_work_of_a_thread() -> None:
    """A product of four sizes, which comes from the products and ratios of two that explain a part of it."""
    sizes = {"threads_x": [1, 2, 4, 8], "threads_y": [1, 2, 4, 8], "tile_x": [16, 32, 64, 128], "tile_y": [16, 32, 64]}
    space = build_space(sizes, [], {}, limits_of((8, 0)))  # type: ignore[arg-type]
    work = np.log2([space.column("tile_x") * space.column("tile_y") / space.column("threads_x")]) - np.log2(
        space.column("threads_y")
    )
    features = Features(space)
    kernel, rng = Kernel.by_default(features), np.random.default_rng(3)
    for count in (20, 40, 60):  # as a search fits it again and again
        rows = rng.permutation(space.size)[:count]
        kernel = fit_kernel(kernel, rows, (np.abs(work[0] - 8) ** 1.5)[rows], 12)
    assert ((0, 1), (1, 1), (2, -1), (3, -1)) in [features.axes[index].powers for index in kernel.axes]


def test_a_function_drawn_passes_through_what_was_measured_and_wanders_between() -> None:
    rng = np.random.default_rng(2)
    rows, values = np.arange(0, 100, 10), rng.normal(size=10)
    kernel = Kernel.by_default(FEATURES)
    posterior = Posterior(kernel, rows, np.arange(100), capacity=10)
    among = np.arange(100)
    drawn = np.array([posterior.draw(values, rng, among) for _ in range(200)])
    mean, deviation = posterior.predict(values)
    assert drawn[:, rows] == pytest.approx(np.tile(values, (200, 1)), abs=0.35)
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=0.35)
    free = deviation > 0.3
    assert drawn.std(axis=0)[free] == pytest.approx(deviation[free], rel=0.35)
