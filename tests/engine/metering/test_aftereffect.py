"""A warm die draws more: what the load before left behind is known of a board, and taken out of a window's power."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.metering.characterisation.aftereffect import HEAVY_S, LIGHT_S, TURNS, aftereffect_of
from app.engine.metering.characterisation.characterise import characterise, wave_loads
from app.engine.metering.characterisation.sensor_figures import Aftereffect, Characterisation
from app.engine.metering.characterisation.store import from_json, save_characterisation, to_json
from app.engine.metering.meter import Meter
from app.sensors.channel import PowerSample
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import Twin, load_twin

HEAVY_W, LIGHT_W, STEP_S = 500.0, 150.0, 0.02


def record(
    share: float, noise: float = 0.0, wander: float = 0.0
) -> tuple[list[PowerSample], list[tuple[float, float]]]:
    """What a buffer would tell of heavy and light in turn, with a known memory of the second before."""
    rng = np.random.default_rng(0)
    turns = [(HEAVY_W, HEAVY_S), (LIGHT_W, LIGHT_S)] * TURNS
    true_w = np.repeat([watt for watt, _ in turns], [round(seconds / STEP_S) for _, seconds in turns])
    ends_s = np.cumsum([seconds for _, seconds in turns])
    spans = list(zip([0.0, *ends_s[:-1].tolist()], ends_s.tolist(), strict=True))
    told: list[float] = []
    for at, watt in enumerate(true_w):
        before = told[max(0, at - 50) : at] or [watt]
        slow = 1.0 + wander * np.sin(at / 9.0) * np.sqrt(2)  # a period of a second: windows differ, samples hardly
        told.append(watt * slow * (1 + noise * rng.standard_normal()) + share * (np.mean(before) - watt))
    return [PowerSample(round((at + 1) * STEP_S * 1e9), watt) for at, watt in enumerate(told)], spans


@given(st.floats(0.003, 0.05))
@settings(max_examples=20, deadline=None)
def test_the_share_that_a_window_remembers_is_found(share: float) -> None:
    found = aftereffect_of(*record(share, noise=0.005))
    assert found is not None
    # the memory fades within the window itself: what is found is the window's mean of it
    assert 0.9 * share - 0.001 <= found.share <= share + 0.001
    assert found.margin < 0.001


def test_a_board_without_memory_has_none() -> None:
    found = aftereffect_of(*record(0.0, noise=0.01))
    assert found is not None
    assert abs(found.share) <= 2 * found.margin
    assert found.share == pytest.approx(0.0, abs=0.002)


def test_power_that_wanders_between_windows_is_told_apart_from_noise() -> None:
    found = aftereffect_of(*record(0.0, noise=0.005, wander=0.01))
    assert found is not None
    assert found.wander == pytest.approx(0.01, rel=0.25)


def test_too_few_samples_tell_nothing() -> None:
    samples, spans = record(0.01)
    assert aftereffect_of(samples[:200], spans) is None


def quick_die() -> Twin:
    """A simulated H200 whose die follows its power within a second and leaks a lot."""
    twin = load_twin("h200")
    power = replace(twin.power, leakage_doubling_c=30.0)
    return replace(twin, power=power, thermal=replace(twin.thermal, time_constant_s=1.0))


def test_a_light_load_after_a_heavy_one_is_told_nearer_to_its_steady_power() -> None:
    twin = quick_die()

    def off_by() -> tuple[float, float]:
        """Mean error of the light load in a session that goes to and fro, and what was taken out at the end."""
        gpu = SimulatedGpu(twin, seed=2, clock=VirtualClock())
        loads = wave_loads(gpu)
        meter = Meter(gpu)
        steady = meter.measure(loads[-1], settle_s=8.0, window_s=1.0)
        assert steady is not None
        errors = []
        for _ in range(6):
            meter.measure(loads[1], window_s=1.0)
            window = meter.measure(loads[-1])
            assert window is not None
            errors.append(window.power_w / steady.power_w - 1)
        return fmean(errors[2:]), window.aftereffect_w

    plain, nothing = off_by()
    assert nothing == 0.0
    gpu = SimulatedGpu(twin, seed=1, clock=VirtualClock())
    found = characterise(gpu, wave_loads(gpu))
    assert found is not None
    assert found.aftereffect is not None
    save_characterisation(found)
    corrected, taken_w = off_by()
    assert plain > 0.02
    assert taken_w > 0
    assert abs(corrected) < plain / 2


@pytest.fixture(scope="module")
def found() -> Characterisation:
    gpu = SimulatedGpu(load_twin("h200"), seed=1, clock=VirtualClock())
    known = characterise(gpu, wave_loads(gpu))
    assert known is not None
    return known


def test_what_wanders_widens_the_interval(found: Characterisation) -> None:

    def width(wander: float) -> float:
        save_characterisation(replace(found, aftereffect=Aftereffect(0.0, 0.0, wander)))
        board = SimulatedGpu(load_twin("h200"), seed=3, clock=VirtualClock())
        window = Meter(board).measure(wave_loads(board)[2])
        assert window is not None
        assert window.power_interval_w is not None
        low, high = window.power_interval_w
        return (high - low) / 2 / window.power_w

    assert width(0.02) == pytest.approx(np.hypot(width(0.0), 1.96 * 0.02), rel=1e-6)


def test_it_is_kept_with_the_characterisation_and_older_ones_still_read(found: Characterisation) -> None:
    assert found.aftereffect is not None
    document = to_json(found)
    assert from_json(document, "here").aftereffect == found.aftereffect
    del document["aftereffect"]
    assert from_json(document, "here").aftereffect is None
