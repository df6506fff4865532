"""One place attributes joules: what tune and what `measure` find of the same launches agree, on every board."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from fixtures.lockstep import LockstepClock
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.engine.metering.characterisation.characterise import characterise, wave_loads
from app.engine.metering.characterisation.store import save_characterisation, stored_characterisation
from app.engine.metering.meter import Meter
from app.engine.metering.power_source import PowerSensor, PowerSource, Stretch, find_sensor
from app.engine.metering.span import read_span
from app.engine.metering.watching import watch
from app.sensors.channel import channel
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import full_load
from app.sensors.simulated.twin import Twin, load_twin, twin_names

LOADS = [  # of spread power, none at a limit on any of the boards
    replace(full_load(), issue_efficiency=rate, occupancy=occupancy)
    for rate, occupancy in ((0.3, 1.0), (0.05, 1.0), (0.2, 0.05))
]


def twin_of(name: str) -> Twin:
    """A twin by its name, or one of its sensors alone: `h200, average`."""
    name, _, only = name.partition(", ")
    twin = load_twin(name)
    if not only:
        return twin
    sensors = replace(twin.sensors, buffer=None, instant=twin.sensors.instant if only == "instant" else None)
    return replace(twin, name=f"{twin.name}, {only} only", sensors=sensors)


def kept(twin: Twin) -> None:
    gpu = SimulatedGpu(twin, seed=99, clock=VirtualClock())
    found = characterise(gpu, wave_loads(gpu), patience_s=20.0)
    assert found is not None
    save_characterisation(found)


@pytest.fixture(autouse=True)
def short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.metering.watching.LINGER_S", 0.05)


def truly_w(gpu: SimulatedGpu, window_ns: tuple[int, int]) -> float:
    return gpu._physics.history.means(*window_ns)[0]  # what no sensor reports


@pytest.mark.parametrize("known", [False, True], ids=["by generation", "characterised"])
@pytest.mark.parametrize("name", [*twin_names(), "h200, instant", "h200, average", "a4000, average"])
def test_tune_and_measure_agree_on_the_same_launches(name: str, known: bool) -> None:
    """Both watch the same run; the difference is within their intervals together, and both within 1 % of the truth."""
    twin = twin_of(name)
    if known:
        kept(twin)
    gpu = SimulatedGpu(twin, seed=1, clock=LockstepClock())
    watched = watch(gpu)
    meter = Meter(gpu)
    try:
        for load in LOADS:
            window = meter.measure(load, window_s=2.5)  # long enough for a second's average to be wholly within
            assert window is not None
            span = read_span(watched, *window.window_ns)
            assert span.power_source == window.power_source
            assert not span.unknown
            true_w = truly_w(gpu, window.window_ns)
            assert window.power_w == pytest.approx(true_w, rel=0.01)
            assert span.mean_power_w == pytest.approx(true_w, rel=0.01)
            assert span.power_interval_w is not None
            half_w = (span.power_interval_w[1] - span.power_interval_w[0]) / 2
            if window.power_interval_w is not None:  # a slow average has no two independent values in this time
                half_w = math.hypot(half_w, (window.power_interval_w[1] - window.power_interval_w[0]) / 2)
            assert abs(window.power_w + window.aftereffect_w - span.mean_power_w) <= half_w
    finally:
        watched.release()


@pytest.mark.parametrize("name", [*twin_names(), "h200, average"])
def test_the_truth_of_a_burst_lies_in_the_interval(name: str) -> None:
    """A load that begins and ends within the window: a slow average knows its energy badly, and says so."""
    gpu = SimulatedGpu(twin_of(name), seed=2, clock=LockstepClock())
    watched = watch(gpu)
    inside = 0
    try:
        for turn in range(4):
            gpu.clock.wait(1.5)
            start_ns = gpu.clock.now_ns()
            gpu.clock.wait(0.4)
            gpu.begin(LOADS[turn % 2])
            gpu.clock.wait(2.0)
            gpu.end()
            gpu.clock.wait(0.4)
            end_ns = gpu.clock.now_ns()
            span = read_span(watched, start_ns, end_ns)
            assert span.energy_interval_j is not None
            low_j, high_j = span.energy_interval_j
            inside += low_j <= truly_w(gpu, (start_ns, end_ns)) * span.time_s <= high_j
    finally:
        watched.release()
    assert inside >= 3


@pytest.mark.parametrize("name", ["a100", "titan_rtx", "a4000", "mi210"])
def test_the_truth_of_a_program_that_begins_with_the_watch_lies_in_the_interval(name: str) -> None:
    """No value was seen before the window: what the first poll found says that the board idled."""
    inside = 0
    for seed in range(8):
        gpu = SimulatedGpu(twin_of(name), seed=seed, clock=LockstepClock())
        gpu.clock.wait(0.8 + 0.013 * seed)
        watched = watch(gpu)
        try:
            start_ns = gpu.clock.now_ns()
            gpu.begin(LOADS[seed % 2])
            gpu.clock.wait(2.0)
            gpu.end()
            end_ns = gpu.clock.now_ns()
            span = read_span(watched, start_ns, end_ns)
        finally:
            watched.release()
        assert span.energy_interval_j is not None
        low_j, high_j = span.energy_interval_j
        inside += low_j <= truly_w(gpu, (start_ns, end_ns)) * span.time_s <= high_j
    assert inside >= 7


@pytest.mark.parametrize("name", ["a100", "a6000", "k20x"])
def test_the_truth_lies_in_the_interval_where_a_load_begins_before_the_first_value(name: str) -> None:
    """The power of the edge may have been that of the value before the window for nearly all of it."""
    inside = 0
    for seed in range(8):
        gpu = SimulatedGpu(twin_of(name), seed=seed, clock=LockstepClock())
        watched = watch(gpu)
        try:
            gpu.clock.wait(1.3 + 0.013 * seed)
            start_ns = gpu.clock.now_ns()
            gpu.clock.wait(0.05)
            gpu.begin(LOADS[seed % 2])
            gpu.clock.wait(0.45)
            end_ns = gpu.clock.now_ns()
            gpu.clock.wait(0.5)
            gpu.end()
            span = read_span(watched, start_ns, end_ns)
        finally:
            watched.release()
        assert span.energy_interval_j is not None
        low_j, high_j = span.energy_interval_j
        inside += low_j <= truly_w(gpu, (start_ns, end_ns)) * span.time_s <= high_j
    assert inside >= 7


# --- the choice ---


def test_the_buffer_comes_first_then_instant_then_the_average() -> None:
    board = SimulatedGpu(load_twin("h200"), clock=VirtualClock())

    def chosen(*available: str, buffered: bool = False) -> str | None:
        names = ("power_instant_w", "power_average_w")
        board.channels = tuple(channel(name, None if name in available else "not here") for name in names)
        sensor = find_sensor(board, None, buffered=buffered)
        return None if sensor is None else sensor.words.split(",")[0].split(" (")[0]

    assert chosen("power_instant_w", "power_average_w", buffered=True) == "driver buffer"
    assert chosen("power_instant_w", "power_average_w") == "power instant"
    assert chosen("power_average_w") == "power average"
    assert chosen() is None


@pytest.mark.parametrize(
    ("name", "refresh_ms", "averaging_ms"),
    [
        ("h200, instant", 100, 25),
        ("h200, average", 100, 1000),
        ("a100", 100, 25),
        ("titan_rtx", 100, 100),
        ("a4000", 100, 100),
        ("v100", 20, 10),
    ],
)
def test_a_board_that_is_not_characterised_is_read_as_its_generation(
    name: str, refresh_ms: float, averaging_ms: float
) -> None:
    sensor = find_sensor(SimulatedGpu(twin_of(name), clock=VirtualClock()), None, buffered=False)
    assert sensor is not None
    assert (sensor.refresh_s * 1e3, sensor.averaging_s * 1e3) == (refresh_ms, averaging_ms)


def test_a_chosen_source_that_no_longer_answers_gives_way_to_the_next() -> None:
    kept(load_twin("h200"))
    gpu = SimulatedGpu(load_twin("h200"), clock=VirtualClock())
    found = stored_characterisation(gpu.info)
    assert found is not None
    buffer, polled = (find_sensor(gpu, found, buffered=answers) for answers in (True, False))
    assert buffer is not None
    assert polled is not None
    assert buffer.buffered
    assert polled.channel == "power_instant_w"
    assert polled.averaging_s == pytest.approx(0.025, rel=0.1)
    assert polled.words.endswith("characterised")


# --- attribution ---


@given(
    averaging_ms=st.sampled_from([10.0, 20.0, 25.0, 100.0]),
    lag_ms=st.floats(0, 30),
    start_ms=st.floats(500, 900),
    length_ms=st.floats(250, 2000),
)
def test_a_window_counts_only_values_of_itself(
    averaging_ms: float, lag_ms: float, start_ms: float, length_ms: float
) -> None:
    """200 W in the window and 500 W around it: no value of the steady window may hold anything of the 500."""
    sensor = PowerSensor("polled", "power_instant_w", 0.1, averaging_ms / 1e3, lag_ms / 1e3)
    source = PowerSource(sensor)
    end_ms = start_ms + length_ms

    def mean_w(to_ms: float) -> float:
        inside = max(0.0, min(to_ms, end_ms) - max(to_ms - averaging_ms, start_ms))
        return 500.0 - 300.0 * inside / averaging_ms

    for poll_ms in np.arange(0.0, end_ms + 500, 10.0):
        tick_ms = poll_ms // 100 * 100
        source.poll(round(poll_ms * 1e6), mean_w(tick_ms - lag_ms) + 1e-6 * (tick_ms % 200))
    energy = source.steady([Stretch(round(start_ms * 1e6), round(end_ms * 1e6), round(start_ms * 1e6))])
    assume(not energy.unknown)
    assert energy.power_w == pytest.approx(200.0, abs=1e-3)
    assert energy.energy_j == pytest.approx(0.2 * length_ms, rel=1e-5)


@given(
    averaging_ms=st.floats(5, 1200),
    lag_ms=st.floats(0, 60),
    refresh_ms=st.sampled_from([20.0, 50.0, 100.0]),
    levels=st.lists(st.floats(20, 700), min_size=3, max_size=3),
    shift_ms=st.floats(0, 100),
)
@settings(max_examples=60)
def test_a_value_split_at_a_change_of_load_is_the_level_of_its_window(
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


@given(st.lists(st.floats(0, 700), min_size=100, max_size=100), st.integers(2, 40), st.integers(2, 40))
def test_the_buffers_energy_adds_up(watts: list[float], first: int, more: int) -> None:
    """Samples that tile the time: windows of whole samples hold exactly their energy, and neighbours add up."""
    source = PowerSource(PowerSensor("buffer", None, 0.02, 0.02))
    source.add_samples([((at + 1) * 20_000_000, watt) for at, watt in enumerate(watts)])
    edges = [0, first * 20_000_000, (first + more) * 20_000_000]
    parts = [source.energy(start, end).energy_j for start, end in pairwise(edges)]
    assert parts == pytest.approx([0.02 * sum(watts[:first]), 0.02 * sum(watts[first : first + more])])
    assert source.energy(0, edges[2]).energy_j == pytest.approx(sum(parts))


def test_a_value_that_stays_counts_again_after_a_refresh_and_not_before() -> None:
    source = PowerSource(PowerSensor("polled", "power_instant_w", 0.1, 0.1))
    for poll in range(1, 201):
        source.poll(poll * 10_000_000, 80.0)
    assert source.energy(0, 2_000_000_000).mean_power_w == 80.0
    assert len(source.powers(0, 2_000_000_000)) == pytest.approx(19, abs=2)


def test_a_window_that_values_do_not_cover_has_no_energy() -> None:
    source = PowerSource(PowerSensor("buffer", None, 0.02, 0.02))
    source.add_samples([(at * 20_000_000, 100.0) for at in [*range(1, 21), *range(60, 101)]])
    assert "of the time only" in source.energy(0, 2_000_000_000).unknown
    assert "too short" in source.energy(0, 10_000_000).unknown
    assert source.energy(0, 400_000_000).energy_j == pytest.approx(40.0)
