"""A board's power sources are known by looking at them: every simulated board's sensor figures are found again."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from app.base.errors import InputError, WattridgeError
from app.cli import main
from app.engine.metering.characterisation.characterise import characterise, wave_loads
from app.engine.metering.characterisation.response import Change, Spans, fit_response, increments, ticks_of
from app.engine.metering.characterisation.sensor_figures import Characterisation
from app.engine.metering.characterisation.store import (
    from_json,
    save_characterisation,
    stored_characterisation,
    to_json,
)
from app.sensors.channel import PowerSample
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import PowerSensor, load_twin, twin_names


def look_at(name: str, seed: int = 0) -> tuple[SimulatedGpu, Characterisation]:
    gpu = SimulatedGpu(load_twin(name), seed=seed, clock=VirtualClock())
    found = characterise(gpu, wave_loads(gpu), seed=seed)
    assert found is not None
    assert not gpu.busy
    return gpu, found


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", twin_names())
def test_the_sensors_of_every_simulated_board_are_found_within_ten_per_cent(name: str, seed: int) -> None:
    gpu, found = look_at(name, seed)
    sensors = gpu.twin.sensors
    for source, true in (("instant", sensors.instant), ("average", sensors.average)):
        figures = found.sources[source]
        if true is None:
            assert figures is None
            assert found.missing[source]
            continue
        assert figures is not None
        assert figures.refresh_ms == pytest.approx(true.refresh_ms, rel=0.01)
        assert figures.window_ms == pytest.approx(true.window_ms, rel=0.10)
        assert figures.lag_ms == pytest.approx(true.lag_ms, rel=0.10, abs=0.5)
        assert figures.noise_percent == pytest.approx(100 * sensors.noise_share, rel=0.35)
        soonest_ms = true.lag_ms + true.window_ms
        assert soonest_ms <= figures.settle_ms <= soonest_ms + 3 * true.refresh_ms
    buffer, counter = found.sources["buffer"], found.sources["counter"]
    assert (buffer is not None) == (sensors.buffer is not None)
    if buffer is not None and sensors.buffer is not None:
        assert buffer.refresh_ms == pytest.approx(sensors.buffer.sample_ms, rel=0.01)
        assert buffer.window_ms == pytest.approx(sensors.buffer.averages_ms, rel=0.10)
        assert buffer.lag_ms == pytest.approx(0.0, abs=0.2)
        assert buffer.published_ms == pytest.approx(sensors.buffer.published_ms, rel=0.05)
    assert (counter is not None) == bool(sensors.counter_refresh_ms)
    if counter is not None:
        polled_ms = 2.0  # a counter is not found quicker than it is read
        assert counter.refresh_ms == pytest.approx(max(sensors.counter_refresh_ms, polled_ms), rel=0.02)
        assert counter.window_ms is None
        assert counter.lag_ms == pytest.approx(0.0, abs=1.0)
        assert found.counter_ratio == pytest.approx(sensors.counter_gain, abs=0.003)
    assert found.chosen == ("buffer" if sensors.buffer else "instant")


def test_margins_hold_the_truth_as_often_as_they_say() -> None:
    inside, looks = 0, 0
    for seed in range(10, 17):
        gpu, found = look_at("v100", seed)
        figures, true = found.sources["instant"], gpu.twin.sensors.instant
        assert figures is not None
        assert true is not None
        assert figures.window_margin_ms is not None
        assert figures.window_ms is not None
        inside += abs(figures.window_ms - true.window_ms) <= figures.window_margin_ms
        inside += abs(figures.lag_ms - true.lag_ms) <= figures.lag_margin_ms
        looks += 2
    assert inside >= 0.8 * looks


@pytest.mark.parametrize(("refresh_ms", "window_ms", "lag_ms"), [(50.0, 200.0, 30.0), (250.0, 40.0, 80.0)])
def test_a_sensor_that_no_known_board_has_is_found_too(refresh_ms: float, window_ms: float, lag_ms: float) -> None:
    twin = load_twin("a100")
    sensor = PowerSensor(refresh_ms=refresh_ms, window_ms=window_ms, lag_ms=lag_ms)
    twin = replace(twin, sensors=replace(twin.sensors, instant=sensor))
    gpu = SimulatedGpu(twin, clock=VirtualClock())
    found = characterise(gpu, wave_loads(gpu))
    assert found is not None
    figures = found.sources["instant"]
    assert figures is not None
    assert figures.refresh_ms == pytest.approx(refresh_ms, rel=0.01)
    assert figures.window_ms == pytest.approx(window_ms, rel=0.10)
    assert figures.lag_ms == pytest.approx(lag_ms, rel=0.10)


def test_stopping_leaves_the_board_idle_and_keeps_the_parts_that_are_known() -> None:
    gpu = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    stop = threading.Event()

    def stop_after_ten_seconds(_: str, done_s: float, total_s: float) -> None:
        assert done_s <= total_s
        if done_s > 10:
            stop.set()

    found = characterise(gpu, wave_loads(gpu), on_progress=stop_after_ten_seconds, stop=stop)
    assert not gpu.busy
    assert found is not None
    assert found.parts == ("quick look",)
    assert not found.complete


# --- on disk ---


def test_a_characterisation_is_kept_per_board_and_driver() -> None:
    gpu, found = look_at("v100")
    assert stored_characterisation(gpu.info) is None
    file = save_characterisation(found)
    again = stored_characterisation(gpu.info)
    assert again is not None
    assert to_json(again) == json.loads(file.read_text())
    assert again.words == found.words
    assert stored_characterisation(replace(gpu.info, driver="600.1")) is None
    assert stored_characterisation(replace(gpu.info, power_source="another")) is None
    assert save_characterisation(replace(found, why="later")) == file


def test_a_damaged_file_counts_as_none_and_is_written_anew() -> None:
    gpu, found = look_at("v100")
    file = save_characterisation(found)
    for text in (
        "",
        "{",
        "[]",
        '{"version": 2}',
        file.read_text().replace('"chosen": "instant"', '"chosen": "buffer"'),
    ):
        file.write_text(text)
        assert stored_characterisation(gpu.info) is None
    save_characterisation(found)
    assert stored_characterisation(gpu.info) is not None


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda v: st.dictionaries(st.text(), v)))
@settings(max_examples=60, deadline=None)
def test_whatever_a_file_holds_is_refused_in_one_line(document: object) -> None:
    with pytest.raises(InputError):
        from_json(document, "somewhere")
    with pytest.raises(InputError):
        from_json({"version": 2, "sources": document, "missing": document}, "somewhere")


# --- the command ---


def test_the_command_prints_what_it_found_and_gpus_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["characterise", "--gpu", "simulated:h200", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document["sources"]) == {"instant", "average", "counter", "buffer"}
    for each in document["sources"].values():
        assert {"refresh_ms", "window_ms", "lag_ms", "read_us"} <= set(each)
    assert document["chosen"] == "buffer"
    assert document["settle_ms"] == document["sources"]["buffer"]["settle_ms"]
    assert Path(document["files"][0]).is_file()
    assert main(["characterise", "--gpu", "simulated:h200", "--show"]) == 0
    shown = capsys.readouterr().out
    for words in ("simulated", "driver buffer", "Measures through", "settles ms", "only an external meter"):
        assert words in shown
    assert main(["gpus", "--json"]) == 0
    boards = {board["name"]: board for board in json.loads(capsys.readouterr().out)}
    if "NVIDIA H200" in boards:  # the simulated boards are listed where no driver answers
        assert boards["NVIDIA H200"]["power_source"].endswith("characterised")


def test_a_board_without_one_says_what_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["characterise", "--gpu", "simulated:k20x", "--show", "--json"]) == 1
    assert "wattridge characterise" in json.loads(capsys.readouterr().out)["error"]["remedy"]
    assert main(["characterise", "--gpu", "recorded:h200-gemm", "--json"]) == 1
    assert "cannot run kernels" in json.loads(capsys.readouterr().out)["error"]["what"]


# --- the parts ---


@given(
    refresh_ms=st.floats(8, 400),
    phase=st.floats(0, 1),
    missed=st.sets(st.integers(1, 98), max_size=20),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=40, deadline=None)
def test_ticks_are_found_between_polls_whatever_was_missed(
    refresh_ms: float, phase: float, missed: set[int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    polls_ns = np.cumsum(rng.uniform(1e6, 3e6, round(100 * refresh_ms / 2) + 200)).astype(np.int64)
    truth_s = np.asarray([(phase + k) * refresh_ms / 1e3 for k in range(100) if k not in missed])
    changes = []
    for number, tick_s in enumerate(truth_s):
        at = int(np.searchsorted(polls_ns, tick_s * 1e9))
        if 0 < at < len(polls_ns):
            changes.append(Change(int(polls_ns[at - 1]), int(polls_ns[at]), float(number)))
    ticks = ticks_of(changes, 0)
    assert ticks.refresh_s == pytest.approx(refresh_ms / 1e3, rel=0.003)
    kept = truth_s[[int(value) for value in ticks.value]]
    assert np.max(np.abs(ticks.time_s - kept)) < 1e-3


def test_a_reading_that_never_changes_is_one_clear_line() -> None:
    with pytest.raises(WattridgeError, match="does not change"):
        ticks_of([Change(0, 1, 1.0)], 0)


@pytest.mark.parametrize("watts", [0.0, 75.0])
def test_a_buffer_that_says_the_same_always_is_no_source_and_the_others_are_found(watts: float) -> None:
    class Stuck(SimulatedGpu):
        def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
            return [sample._replace(power_w=watts) for sample in super().power_samples(since_ns)]

    gpu = Stuck(load_twin("h200"), clock=VirtualClock())
    found = characterise(gpu, wave_loads(gpu))
    assert found is not None
    assert found.sources["buffer"] is None
    assert found.missing["buffer"] == "the reading does not change under load"
    assert found.sources["instant"] is not None


def test_a_counters_rises_are_mean_power() -> None:
    changes = [Change(k * 100_000_000 - 1, k * 100_000_000, 25.0 * k) for k in range(20)]
    rises = increments(ticks_of(changes, 0))
    assert rises.value == pytest.approx(np.full(19, 250.0))


def test_a_look_of_three_seconds_tells_a_window_of_one_second_from_one_of_two() -> None:
    start_s = np.array([-1.505, 0.0, 0.3, 0.498, 0.825, 1.066, 1.297, 1.505, 1.81, 2.245])
    end_s = np.array([-0.2, 0.2, 0.367, 0.592, 0.905, 1.199, 1.377, 1.558, 1.983, 2.418])
    spans, time_s = Spans(start_s, end_s), np.arange(0.089, 2.6, 0.1)
    for seed in range(5):
        share = spans.share(time_s - 0.01 - 1.0, time_s - 0.01)
        power_w = (60 + 60 * share) * (1 + 0.001 * np.random.default_rng(seed).standard_normal(len(time_s)))
        assert fit_response(time_s, power_w, spans).window_s == pytest.approx(1.0, rel=0.02)


@given(
    window_ms=st.floats(8, 1500),
    lag_ms=st.floats(-10, 150),
    drift=st.floats(-0.05, 0.05),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=15, deadline=None)
def test_window_and_lag_are_found_behind_levels_that_drift(
    window_ms: float, lag_ms: float, drift: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    halves = np.cumsum(rng.uniform(0.05, 0.6, 160))
    spans = Spans(halves[0::2], halves[1::2])
    time_s = np.arange(2.0, 30.0, 0.05)
    to_s = time_s - lag_ms / 1e3
    share = spans.share(to_s - window_ms / 1e3, to_s)
    power_w = (60 + 240 * share) * (1 + drift * time_s / 30) * (1 + 0.002 * rng.standard_normal(len(time_s)))
    fit = fit_response(time_s, power_w, spans)
    assert fit.window_s == pytest.approx(window_ms / 1e3, rel=0.05, abs=0.5e-3)
    assert fit.lag_s == pytest.approx(lag_ms / 1e3, abs=1.5e-3)
    on_s = float(np.sum(np.minimum(spans.end_s, 30) - np.minimum(spans.start_s, 30)))
    on_s -= float(spans.on_time(np.asarray([2.0]))[0])
    assert fit.energy_j(spans, 2.0, 30.0) == pytest.approx((60 * 28 + 240 * on_s) * (1 + drift * 16 / 30), rel=0.02)


BUFFER = Path(__file__).parent / "data" / "buffer_of_bursts_h200.json"


def test_the_buffer_of_an_h200_is_a_low_pass() -> None:
    """Real samples of bursts of one kernel of 60 ms each, with rests between them."""
    seen = json.loads(BUFFER.read_text())
    spans = Spans(*np.array(seen["spans_s"]).T)
    found = fit_response(np.array(seen["time_s"]), np.array(seen["power_w"]), spans).low_pass
    assert found is not None
    assert found == pytest.approx((12.7e-3, 4.0e-3), rel=0.05)


@given(constant_ms=st.floats(8, 200), lag_ms=st.floats(-5, 50), seed=st.integers(0, 2**16))
@settings(max_examples=15, deadline=None)
def test_a_low_pass_is_told_from_a_mean(constant_ms: float, lag_ms: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    halves = np.cumsum(rng.uniform(0.05, 0.6, 160))
    spans = Spans(halves[0::2], halves[1::2])
    time_s = np.arange(2.0, 30.0, 0.05)
    fine_s = np.arange(0.0, 31.0, 2e-4)
    share = np.diff(spans.on_time(fine_s), append=spans.on_time(fine_s[-1:])) / 2e-4
    kept = np.exp(-2e-4 / (constant_ms / 1e3))
    shown = lfilter([1 - kept], [1, -kept], share)
    power_w = 60 + 240 * np.interp(time_s - lag_ms / 1e3, fine_s + 2e-4, shown)
    fit = fit_response(time_s, power_w * (1 + 0.002 * rng.standard_normal(len(time_s))), spans)
    assert fit.low_pass is not None
    assert fit.low_pass == pytest.approx((constant_ms / 1e3, lag_ms / 1e3), rel=0.05, abs=1.5e-3)
    to_s = time_s - lag_ms / 1e3
    mean = 60 + 240 * spans.share(to_s - constant_ms / 1e3, to_s)
    noise = 1 + 0.002 * rng.standard_normal(len(time_s))
    assert fit_response(time_s, mean * noise, spans).low_pass is None
