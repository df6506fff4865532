"""PowerSensor3 against a device on a pseudo-terminal: bytes that are lost, the two clocks, a cable that is pulled."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from environment import need_terminal
from hypothesis import given, settings
from hypothesis import strategies as st
from powersensor3_device import PowerSensor3Device, square, steady

from app.base.errors import InputError
from app.sensors.gpu import SensorError
from app.sensors.meters import powersensor3
from app.sensors.meters.device_clock import DeviceClock
from app.sensors.meters.powersensor3 import FRAME, FrameReader, PowerSensor3
from app.sensors.meters.sampled import SampledMeter
from app.sensors.meters.select import open_meter
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.sensors.trace.sampler import SensorEvent

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are of POSIX systems")


def frame(number: int, levels: list[int]) -> bytes:
    """A frame as the protocol has it, its time stamp 50 us after the one before."""
    stamp = number * 50 % 1024
    out = [0xF0 | stamp >> 6, 0x40 | stamp & 0x3F]
    for sensor, level in enumerate(levels):
        out += [0x80 | sensor << 4 | level >> 6, level & 0x3F]
    return bytes(out)


LEVELS = st.lists(st.integers(0, 1023), min_size=8, max_size=8)


@settings(max_examples=25)
@given(st.lists(LEVELS, min_size=1, max_size=20), st.lists(st.integers(1, 40), min_size=1))
def test_frames_are_the_same_however_the_stream_is_cut(levels: list[list[int]], cuts: list[int]) -> None:
    stream = b"".join(frame(i, level) for i, level in enumerate(levels))
    reader, found, at = FrameReader(), [], 0
    while at < len(stream):
        cut = cuts[at % len(cuts)]
        found.append(reader.feed(stream[at : at + cut]))
        at += cut
    assert np.concatenate([each.levels for each in found]).tolist() == levels
    assert np.concatenate([each.ends for each in found]).tolist() == [FRAME * (i + 1) for i in range(len(levels))]
    assert sum(each.broken for each in found) == 0


@settings(max_examples=25)
@given(st.lists(LEVELS, min_size=4, max_size=20), st.data())
def test_a_lost_byte_costs_its_own_frame_alone(levels: list[list[int]], data: st.DataObject) -> None:
    stream = b"".join(frame(i, level) for i, level in enumerate(levels))
    lost = data.draw(st.integers(0, len(stream) - 1))
    frames = FrameReader().feed(stream[:lost] + stream[lost + 1 :])
    damaged = lost // FRAME
    assert frames.levels.tolist() == levels[:damaged] + levels[damaged + 1 :]


@given(st.binary(max_size=400))
def test_noise_makes_no_frames_that_are_none(noise: bytes) -> None:
    frames = FrameReader().feed(noise)
    for end, levels in zip(frames.ends, frames.levels, strict=True):
        assert frame(0, levels.tolist())[2:] == bytes(
            byte & 0xBF if index == 1 else byte for index, byte in enumerate(noise[end - FRAME + 2 : end])
        )


@settings(max_examples=10)
@given(st.integers(-100, 100), st.integers(0, 2**32 - 1))
def test_the_clock_follows_drift_through_arrivals_that_are_late_by_chance(ppm: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    clock = DeviceClock()
    ticks = np.arange(0, 30_000_000_000, 8_000_000, dtype=np.int64)
    host = 10**12 + ticks + np.rint(ticks * ppm * 1e-6).astype(np.int64)
    late = random.exponential(300_000, len(ticks)).astype(np.int64)
    for tick, arrived in zip(ticks, host + late, strict=True):
        assert clock.note(int(tick), int(arrived)) == 0
    off_ns = clock.on_host(ticks[-100:]) - host[-100:]
    assert np.abs(off_ns).max() < 250_000


def test_the_clock_finds_what_was_lost_without_a_trace() -> None:
    clock = DeviceClock()
    behind = 0
    for tick in range(0, 6_000_000_000, 8_000_000):
        lost_ns = 7_168_000 if tick >= 2_000_000_000 else 0  # seven times what the stamps can count
        behind += clock.note(tick, 10**12 + tick + lost_ns + (tick // 8_000_000 * 37) % 90_000)
    assert behind == pytest.approx(7_168_000, abs=100_000)


class TestWithADevice:
    @pytest.fixture
    def device(self, tmp_path: Path) -> Iterator[PowerSensor3Device]:
        need_terminal()
        device = PowerSensor3Device(square(0.1, 10.0, 90.0), drift=60e-6, link=tmp_path / "ttyACM0")
        yield device
        device.close()

    def test_it_says_what_it_is_and_how_its_pairs_are_named(self, device: PowerSensor3Device) -> None:
        meter = PowerSensor3(device.path)
        try:
            assert "F411-1.6.1" in meter.info.label
            assert [channel.label.split(", ")[-1] for channel in meter.channels[1:]] == [
                name for name, _ in device.pairs
            ]
            assert [s.in_use for s in meter.sensors] == [True] * 6 + [False] * 2
        finally:
            meter.close()

    def test_edges_of_a_square_wave_lie_within_a_millisecond_and_no_sample_is_missing(
        self, device: PowerSensor3Device
    ) -> None:
        for _ in range(5):  # a machine may be too busy to play the device without a pause
            dropped = device.dropped
            sampled = SampledMeter(PowerSensor3(device.path))
            try:
                begun_ns = sampled.record.newest_ns
                time.sleep(0.6)
                stamps, total_w = sampled.record.fine(begun_ns, time.monotonic_ns())  # type: ignore[misc]
            finally:
                sampled.close()
            late_s = (stamps[1:][np.diff(total_w > 150.0)] / 1e9 + 0.025) % 0.05 - 0.025
            if device.dropped == dropped and np.median(np.abs(late_s)) < 1e-3:
                break
        assert len(late_s) >= 10
        assert np.median(np.abs(late_s)) < 1e-3
        assert sampled.meter.missed == 0
        assert len(stamps) == pytest.approx((stamps[-1] - stamps[0]) / 50_000, rel=0.01)

    def test_a_marked_sample_has_the_time_at_which_it_was_asked_for(self, device: PowerSensor3Device) -> None:
        meter = PowerSensor3(device.path)
        try:
            assert 0 < meter.info.margin_s < 0.1
            before_ns = time.monotonic_ns()
            meter.mark()
            asked_ns = time.monotonic_ns()
            ours: list[tuple[int, int]] = []
            while not ours and time.monotonic_ns() < asked_ns + 10_000_000_000:
                meter.read()
                ours = [each for each in meter.marked() if each[0] >= before_ns]
                time.sleep(0.005)
            [(then_ns, stamp_ns)] = ours
        finally:
            meter.close()
        assert then_ns <= asked_ns
        assert abs(stamp_ns - device.marks[-1]) < 100_000_000

    def test_a_host_that_comes_late_waits_for_a_mark(
        self, device: PowerSensor3Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By then it had seen none, and took the time stamps for exact."""
        monkeypatch.setattr(powersensor3, "BEGIN_S", 0.0)
        meter = PowerSensor3(device.path)
        try:
            assert meter.info.margin_s > 0
        finally:
            meter.close()

    def test_missing_frames_are_counted(self, device: PowerSensor3Device) -> None:
        meter = PowerSensor3(device.path)
        try:
            before = meter.missed
            device.damage(lambda data: data[: 18 * (len(data) // 36)] + data[18 * (len(data) // 36 + 1) :])
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                meter.read()
                time.sleep(0.008)
            assert meter.missed >= before + 1
        finally:
            meter.close()

    def test_a_cable_that_is_pulled_is_an_event_and_so_is_its_return(self, device: PowerSensor3Device) -> None:
        events: list[SensorEvent] = []
        back = threading.Event()

        def note(event: SensorEvent) -> None:
            events.append(event)
            if event.kind == "back":
                back.set()

        sampled = SampledMeter(PowerSensor3(device.path), note)
        try:
            time.sleep(0.1)
            device.pull()
            time.sleep(0.1)
            assert sampled.lost
            count = sampled.record.count
            device.plug()
            assert back.wait(10.0)
            assert sampled.wait_until(time.monotonic_ns(), 5.0)
            assert sampled.record.count > count
            assert [event.kind for event in events] == ["lost", "back"]
            assert "plug it in again" in str(events[0])
            gaps = np.diff(sampled.record.fine(0, time.monotonic_ns())[0])  # type: ignore[index]
            assert gaps.max() > 90_000_000
        finally:
            sampled.close()

    def test_the_port_is_the_meters_alone(self, device: PowerSensor3Device) -> None:
        meter = PowerSensor3(device.path)
        try:
            with pytest.raises(SensorError, match="another program uses this port"):
                PowerSensor3(device.path)
        finally:
            meter.close()


def test_a_port_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such serial port"):
        PowerSensor3(str(tmp_path / "ttyACM9"))


def test_a_file_is_no_serial_port(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing")
    with pytest.raises(InputError, match="no serial port"):
        PowerSensor3(str(path))


def test_a_device_without_pairs_in_use_says_so() -> None:
    need_terminal()
    device = PowerSensor3Device(steady(1.0), pairs=())
    try:
        with pytest.raises(SensorError, match="no pair of sensors"):
            PowerSensor3(device.path)
    finally:
        device.close()


@pytest.mark.parametrize("selector", ["powersensor4:/dev/ttyACM0", "", "simulated:tin"])
def test_a_selector_that_names_no_meter_is_refused_in_one_line(selector: str) -> None:
    with pytest.raises(InputError) as refused:
        open_meter(selector, SimulatedGpu(load_twin("a100")))
    assert "\n" not in str(refused.value)
