"""Launches that keep step with the samples of power: a window sees one part of each, a second window the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fixtures.fake_board import FakeBoard
from hypothesis import assume, given
from hypothesis import strategies as st

from app.engine.metering import meter as metering
from app.engine.metering.meter import Meter
from app.engine.metering.power_source import HARMONICS, find_sensor, keeps_step, opposite_s, phases, unseen
from app.engine.metering.window import Window
from app.sensors.clock import VirtualClock
from app.sensors.gpu import Execution, Load, Source
from app.sensors.simulated import laws
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import Twin, load_twin

SAMPLE_S = 0.02
SWING = 0.02
SAMPLES = 8


@pytest.mark.parametrize(
    ("launch_ms", "kept"),
    [
        (20.05, True),
        (19.6, True),
        (20.6, True),
        (10.02, True),
        (6.69, True),
        (15.0, False),
        (40.0, False),
        (3.33, False),
    ],
)
def test_launches_of_about_a_whole_share_of_the_sampling_time_keep_step(launch_ms: float, kept: bool) -> None:
    assert keeps_step(SAMPLES, SAMPLE_S, launch_ms / 1e3) is kept


def test_a_window_that_is_long_enough_sees_all_of_a_launch() -> None:
    assert keeps_step(SAMPLES, SAMPLE_S, 0.0202)
    assert not keeps_step(150, SAMPLE_S, 0.0202)
    assert unseen([phases(SAMPLE_S * np.arange(101.0), 0.0202)]) < 1e-9  # one whole turn


def test_in_two_opposite_windows_the_first_harmonic_is_gone() -> None:
    one = np.zeros(SAMPLES)
    assert unseen([one]) == pytest.approx(np.hypot(*HARMONICS))
    assert unseen([one, np.full(4, 0.5)]) == pytest.approx(HARMONICS[1])


@given(
    st.floats(0.004, 0.022),
    st.floats(0.0, 0.05),
    st.floats(0, 0.02),
    st.integers(4, SAMPLES),
    st.floats(-0.0005, 0.0005),
)
def test_windows_begun_so_far_apart_see_opposite_parts(
    launch_s: float, least_s: float, offset_s: float, samples: int, late_s: float
) -> None:
    assume(keeps_step(SAMPLES, SAMPLE_S, launch_s))
    between_s = SAMPLES * SAMPLE_S / 2 + 0.07 + samples * SAMPLE_S / 2
    later_s = opposite_s(least_s, between_s, SAMPLE_S, launch_s)
    assert least_s <= later_s <= least_s + 2 * SAMPLE_S
    began_s = later_s + late_s
    grid_s = offset_s + SAMPLE_S * np.arange(-50, 50)

    def seen(times_s: np.ndarray) -> complex:
        """The first harmonic."""
        return complex(np.exp(2j * np.pi * phases(times_s, launch_s)).mean())

    first = seen(grid_s[grid_s <= 0.0][-SAMPLES:])  # launches end at 0
    second = seen(grid_s[grid_s >= began_s + 0.07][:samples] - began_s)
    assert abs(first + second) / 2 < 0.4 * abs(first)


def twin_with(swing: float) -> Twin:
    """The H200's without noise, whose samples follow the phase of each launch by so much."""
    twin = load_twin("h200")
    assert twin.sensors.buffer is not None
    buffer = replace(twin.sensors.buffer, launch_swing=swing)
    return replace(twin, sensors=replace(twin.sensors, buffer=buffer, noise_share=0.0, noise_w=0.0))


def load_of(twin: Twin, launch_s: float) -> Load:
    one = Load("swings", "fp32", 1e12, 1e9)
    share = launch_s / laws.launch_time_s(twin, one, twin.clocks.graphics_mhz[-1], twin.clocks.memory_mhz[-1])[0]
    return replace(one, work_flop=one.work_flop * share, traffic_byte=one.traffic_byte * share)


class LateGpu(SimulatedGpu):
    """Launches begin 2 ms after they were asked for, as those of another process do."""

    def begin(self, load: Load) -> None:
        self.clock.wait(0.002)
        self._asked = load
        super().begin(load)

    def lap(self) -> Execution:
        execution = self.end()
        super().begin(self._asked)
        return execution


def measured(launch_s: float, idle_s: float, swing: float = SWING) -> Window:
    """A window of launches that begin after so long."""
    twin = twin_with(swing)
    gpu = LateGpu(twin, clock=VirtualClock())
    gpu.clock.wait(1.0 + idle_s)
    window = Meter(gpu).measure(load_of(twin, launch_s))
    assert window is not None
    return window


def errors(launch_s: float) -> list[float]:
    """Of power, by what the samples see of a launch, for launches that begin at several times."""
    found = ((measured(launch_s, idle_s), measured(launch_s, idle_s, swing=0.0)) for idle_s in BEGIN_S)
    return [abs(window.power_w / whole.power_w - 1.0) for window, whole in found]


BEGIN_S = (0.0, 0.0026, 0.0051, 0.0077, 0.0103, 0.0128, 0.0154, 0.0179)


@pytest.mark.parametrize("launch_ms", [20.05, 10.03, 6.69])
def test_the_power_of_launches_in_step_is_that_of_whole_launches(
    launch_ms: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = max(errors(launch_ms / 1e3))
    monkeypatch.setattr(metering, "keeps_step", lambda *a, **k: False)
    assert max(errors(launch_ms / 1e3)) > 0.7 * SWING, "one window sees one part of each launch"
    assert both < 0.2 * SWING


def test_the_time_per_launch_is_that_of_both_windows() -> None:
    assert measured(0.02005, 0.0).time_s == pytest.approx(0.02005, rel=1e-3)


def test_launches_out_of_step_are_looked_at_once() -> None:
    gpu = SimulatedGpu(twin_with(0.003), clock=VirtualClock())
    meter = Meter(gpu)
    run = meter.run(load_of(gpu.twin, 0.0128))
    assert run is not None
    assert run.opposite is None
    in_step = meter.run(load_of(gpu.twin, 0.02005))
    assert in_step is not None
    assert in_step.opposite is not None


def test_the_interval_of_both_windows_is_narrower_than_that_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(window: Window) -> float:
        assert window.power_interval_w is not None
        return (window.power_interval_w[1] - window.power_interval_w[0]) / 2 / window.power_w

    both = half(measured(0.02005, 0.0))
    monkeypatch.setattr(metering, "keeps_step", lambda *a, **k: False)
    assert both < 0.75 * half(measured(0.02005, 0.0))


def test_a_load_that_is_seen_to_keep_step_at_once_has_two_short_windows_instead_of_a_long_and_a_short_one() -> None:
    twin = twin_with(0.003)
    gpu = SimulatedGpu(twin, clock=VirtualClock())
    meter = Meter(gpu)
    meter.measure(load_of(twin, 0.0128))  # the clock is up from then on
    began_ns = gpu.clock.now_ns()
    run = meter.run(load_of(twin, 0.02005))
    assert run is not None
    assert run.opposite is not None
    assert (gpu.clock.now_ns() - began_ns) / 1e9 < 0.35
    lengths_s = [(each.ended.end_ns - each.opened_ns) / 1e9 for each in run.runs]
    assert max(lengths_s) < 0.14


@pytest.mark.parametrize(("source", "sees"), [("nvml", True), ("amd", False)])
def test_values_of_an_energy_counter_hold_all_of_every_launch(source: Source, sees: bool) -> None:
    sensor = find_sensor(FakeBoard(buffer=True, source=source), None, buffered=True)
    assert sensor is not None
    assert sensor.sees_phase is sees
