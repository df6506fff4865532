"""Windows over a load that does not end by itself: opened once it is steady, closed once its means are known."""

from __future__ import annotations

import numpy as np
import pytest

from app.engine.metering.steady_window import FEWEST, Look, begins_at, look

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
    short, long = (watched(seconds, noise=0.2, seed=seed).known.rate_half for seconds in (5.0, 80.0))
    assert long < short
    assert 0.005 < long < 0.05, "0.2 over the root of 800, twice"


def test_a_steady_load_is_seldom_called_unsteady_by_chance() -> None:
    steady = [watched(10.0, noise=0.2, seed=seed).steady for seed in range(60)]
    assert np.mean(steady) > 0.9


def in_step(seconds: float, wave_s: float, *, slow_s: float = 0.0) -> Look:
    """Half of each wave nothing comes and the board draws 400 W, then work comes and it draws 200 W.

    For `slow_s` at first all of it takes three times as long.
    """
    times = np.arange(STEP_S, seconds + STEP_S / 2, STEP_S)
    middles = times - STEP_S / 2
    pace = np.where(middles < slow_s, middles / 3, middles - slow_s + slow_s / 3)
    writes = pace % wave_s > wave_s / 2
    work = 200 * STEP_S * writes * np.where(middles < slow_s, 1 / 3, 1.0)
    return look(times, work, middles, np.where(writes, 200.0, 400.0), seconds)


@pytest.mark.parametrize("wave_s", [0.8, 1.0, 1.8])
def test_clients_in_step_are_known_from_a_few_waves(wave_s: float) -> None:
    found = in_step(13.0, wave_s)
    assert found.steady
    assert found.known.cost_half < 0.08, "0.4 by blocks that count as independent"
    plain_w = 300.0 + 100.0 * (1 - 2 * np.mean(np.arange(found.start_s, 13.0, 0.001) % wave_s > wave_s / 2))
    assert plain_w * found.known.smooth_power == pytest.approx(300.0, rel=0.02)


def test_a_slow_beginning_is_cut_off_though_waves_hide_it() -> None:
    found = in_step(13.0, 1.6, slow_s=3.0)
    assert found.steady
    assert 1.0 <= found.start_s <= 6.5
    assert found.known.rate_half < 0.12, "0.4 from the beginning on"


def test_the_energy_of_a_unit_of_work_is_known_better_than_either_where_both_wander_together() -> None:
    rng = np.random.default_rng(6)
    load = np.repeat(rng.uniform(0.2, 1.8, 60), 20)
    times = np.arange(1, len(load) + 1) * STEP_S
    found = look(times, 10 * load, times - STEP_S / 2, 100 * load, float(times[-1])).known
    assert found.rate_half > 0.03
    assert found.cost_half < 0.005
    apart = look(times, 10 * load, times - STEP_S / 2, 100 * load[::-1], float(times[-1])).known
    assert apart.cost_half > 0.03


def test_too_little_says_nothing() -> None:
    none = np.empty(0)
    few = np.arange(1.0, FEWEST)
    for times in (none, few):
        found = look(times, np.ones(len(times)), none, none, 10.0)
        assert found.known.rate_half == found.known.cost_half == np.inf
        assert not found.narrow(1.0)
    assert begins_at(np.ones(3)) == 0
