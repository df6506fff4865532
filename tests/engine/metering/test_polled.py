"""Boards without a buffer: polled values are attributed by the characterised averaging, and tell the true power."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.metering.characterisation.characterise import characterise, wave_loads
from app.engine.metering.characterisation.store import save_characterisation
from app.engine.metering.meter import Meter
from app.engine.metering.power_source import PowerSensor, PowerSource
from app.engine.metering.window import Window
from app.sensors.clock import VirtualClock
from app.sensors.load import Load
from app.sensors.simulated.figures import Twin
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import full_load
from app.sensors.simulated.twin import load_twin, twin_names

LOADS = [  # of spread power, none at a limit on any of the boards
    replace(full_load(), issue_efficiency=rate, occupancy=occupancy)
    for rate, occupancy in ((0.3, 1.0), (0.05, 1.0), (0.2, 0.05), (0.3, 0.2), (0.1, 1.0))
]


def board(twin: Twin, seed: int = 0) -> SimulatedGpu:
    return SimulatedGpu(twin, seed=seed, clock=VirtualClock())


def characterised(twin: Twin) -> None:
    gpu = board(twin, seed=99)
    found = characterise(gpu, wave_loads(gpu), patience_s=20.0)
    assert found is not None
    save_characterisation(found)


def average_only(name: str) -> Twin:
    twin = load_twin(name)
    return replace(twin, name=f"{name} that averages", sensors=replace(twin.sensors, instant=None, buffer=None))


def errors_and_costs(twin: Twin, loads: list[Load], pause_s: float = 0.05) -> tuple[list[float], list[float]]:
    """Of each load measured: relative error of the mean power, by the physics itself, and seconds it took."""
    gpu = board(twin, seed=1)
    meter = Meter(gpu)
    errors, costs = [], []
    for load in loads:
        start_ns = gpu.clock.now_ns()
        window = meter.measure(load)
        assert window is not None
        errors.append(abs(window.power_w / true_power_w(gpu, window) - 1))
        costs.append((gpu.clock.now_ns() - start_ns) / 1e9)
        gpu.clock.wait(pause_s)
    return errors, costs[1:]  # the first one warms up


def true_power_w(gpu: SimulatedGpu, window: Window) -> float:
    return gpu._physics.history.means(*window.window_ns)[0]  # what no sensor tells


@pytest.mark.parametrize("known", [False, True], ids=["not characterised", "characterised"])
@pytest.mark.parametrize("name", twin_names())
def test_measured_power_is_the_true_one(name: str, known: bool) -> None:
    twin = load_twin(name)
    if known:
        characterised(twin)
    errors, _ = errors_and_costs(twin, LOADS * 4)
    assert median(errors) <= 0.003  # the sensors scatter by 0.4 %, and a window holds about ten values
    assert max(errors) <= 0.01


def test_what_is_characterised_needs_less_time() -> None:
    twin = load_twin("v100")  # a new value every 20 ms
    before = median(errors_and_costs(twin, LOADS)[1])
    characterised(twin)
    assert median(errors_and_costs(twin, LOADS)[1]) < 0.5 * before


@pytest.mark.parametrize("pause_s", [0.0, 0.3, 1.5])
def test_a_slow_average_is_freed_of_what_ran_before(pause_s: float) -> None:
    twin = average_only("h200")
    _, before = errors_and_costs(twin, LOADS, pause_s)
    characterised(twin)
    errors, costs = errors_and_costs(twin, LOADS * 3, pause_s)
    assert median(errors) <= 0.005
    assert max(errors) <= 0.02
    assert median(costs) < 0.85 * median(before)


@given(
    averaging_ms=st.floats(5, 1200),
    lag_ms=st.floats(0, 60),
    refresh_ms=st.sampled_from([20.0, 50.0, 100.0]),
    levels=st.lists(st.floats(20, 700), min_size=3, max_size=3),
    shift_ms=st.floats(0, 100),
)
@settings(max_examples=60, deadline=None)
def test_every_value_told_of_a_window_is_its_level(
    averaging_ms: float, lag_ms: float, refresh_ms: float, levels: list[float], shift_ms: float
) -> None:
    """Three loads, one after the other; the source tells exact means, so whatever is attributed must be exact too."""
    sensor = PowerSensor("polled", "power_instant_w", refresh_ms / 1e3, averaging_ms / 1e3, lag_ms / 1e3, window_s=1.0)
    polled = PowerSource(sensor)
    edges_ms = [0.0, 4000 + shift_ms, 6500.0]

    def power_integral(until_ms: float) -> float:
        ends = [*edges_ms[1:], float("inf")]
        return sum(w * max(0.0, min(until_ms, e) - b) for w, b, e in zip(levels, edges_ms, ends, strict=True))

    told, poll_ms, dither = -1.0, 0.0, 0
    for edge in edges_ms:
        polled.edge(round(edge * 1e6))
    while poll_ms < 9000:
        tick_ms = poll_ms // refresh_ms * refresh_ms
        to_ms = max(averaging_ms, tick_ms - lag_ms)
        if tick_ms != told:
            told, dither = tick_ms, dither + 1
        mean = (power_integral(to_ms) - power_integral(to_ms - averaging_ms)) / averaging_ms
        polled.poll(round(poll_ms * 1e6), mean + 1e-6 * (dither % 2))
        poll_ms += 1e3 * sensor.poll_s / 2.5
    powers = polled.powers(6_500_000_000, 9_000_000_000)
    assert len(powers) >= (2500 - averaging_ms - lag_ms) / refresh_ms - 3
    # a poll tells the time of a value within some milliseconds, so a split one is that little off
    assert powers == pytest.approx([levels[2]] * len(powers), abs=0.06 * max(abs(levels[2] - w) for w in levels) + 1e-3)
    assert powers[-1] == pytest.approx(levels[2], abs=1e-3)
