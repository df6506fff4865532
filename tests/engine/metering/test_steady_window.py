"""Windows over a load that does not end by itself: opened once it is steady, closed once its means are known."""

from __future__ import annotations

import numpy as np
import pytest

from app.engine.metering.steady_window import BLOCKS, FEWEST, Look, begins_at, half_width, look

STEP_S = 0.1


def watched(seconds: float, *, ramp_s: float = 0.0, drift: float = 0.0, noise: float = 0.0, seed: int = 1) -> Look:
    """A load that is seen every 0.1 s: it grows for `ramp_s`, then is steady but for a drift and noise."""
    rng = np.random.default_rng(seed)
    times = np.arange(STEP_S, seconds + STEP_S / 2, STEP_S)
    level = np.minimum(1.0, times / ramp_s) if ramp_s else np.ones(len(times))
    level = level * (1 + drift * times)
    work = 100 * STEP_S * level * (1 + noise * rng.standard_normal(len(times)))
    return look(times, work, times - STEP_S / 2, 200 * level, seconds)


def test_a_steady_load_is_looked_at_from_its_beginning() -> None:
    found = watched(10.0)
    assert found.steady
    assert found.start_s == 0.0
    assert found.narrow(0.001)


def test_the_ramp_at_the_beginning_is_cut_off() -> None:
    found = watched(20.0, ramp_s=5.0)
    assert found.steady
    assert 4.0 <= found.start_s <= 7.0
    assert found.narrow(0.01)


def test_a_load_that_still_grows_is_not_steady() -> None:
    assert not watched(10.0, ramp_s=20.0).steady
    assert not watched(10.0, drift=0.05).narrow(0.001)


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_averaged_out_with_time(seed: int) -> None:
    short, long = (watched(seconds, noise=0.2, seed=seed).rate_half for seconds in (5.0, 80.0))
    assert long < short
    assert 0.005 < long < 0.05, "0.2 over the root of 800, twice"


def test_intervals_cover_the_mean_as_often_as_they_say() -> None:
    rng = np.random.default_rng(3)
    covered = [abs(values.mean() - 10) <= half_width(values) * values.mean() for values in rng.normal(10, 2, (400, 20))]
    assert 0.92 <= np.mean(covered) <= 0.99


def test_neighbours_that_are_alike_count_for_less() -> None:
    rng = np.random.default_rng(4)
    fresh = rng.normal(0, 1, (200, 60))
    alike = fresh.copy()
    for at in range(1, 60):
        alike[:, at] = 0.7 * alike[:, at - 1] + fresh[:, at]
    covered = [abs(values.mean()) <= half_width(values + 20) * (values + 20).mean() for values in alike]
    assert np.mean(covered) >= 0.85, "Student's t alone would cover 0.6"


def test_the_energy_of_a_unit_of_work_is_known_better_than_either_where_both_wander_together() -> None:
    rng = np.random.default_rng(6)
    load = np.repeat(rng.uniform(0.2, 1.8, 60), 20)
    times = np.arange(1, len(load) + 1) * STEP_S
    found = look(times, 10 * load, times - STEP_S / 2, 100 * load, float(times[-1]))
    assert found.rate_half > 0.03
    assert found.cost_half < 0.005
    apart = look(times, 10 * load, times - STEP_S / 2, 100 * load[::-1], float(times[-1]))
    assert apart.cost_half > 0.03


def test_too_little_says_nothing() -> None:
    assert half_width(np.ones(FEWEST - 1)) == np.inf
    assert half_width(np.zeros(BLOCKS)) == np.inf
    assert begins_at(np.ones(3)) == 0
