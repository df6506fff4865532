"""One thread per GPU: even times, one event per change of state, and never a silent end."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from fixtures.scripted_gpu import ScriptedGpu

from app.sensors.channel import PowerSample
from app.sensors.clock import HostClock, ScaledClock
from app.sensors.gpu import GpuLost, NoPermission
from app.sensors.recorded.recording import RecordingWriter, read_recording
from app.sensors.trace.sampler import Sampler, SensorEvent
from app.sensors.trace.trace import Trace


def sample_until(gpu: ScriptedGpu, enough: Callable[[], bool], **options: object) -> tuple[Trace, list[SensorEvent]]:
    """Sample until something holds; fails where it does not within ten seconds."""
    trace, events = Trace(gpu.channels, span_s=3600.0), []
    sampler = Sampler(gpu, trace, on_event=events.append, **options)  # type: ignore[arg-type]
    sampler.start()
    deadline = time.monotonic() + 10
    while not enough() and time.monotonic() < deadline:
        time.sleep(0.002)
    sampler.stop()
    sampler.join()
    assert enough()
    return trace, events


def column(trace: Trace, name: str) -> np.ndarray:
    return trace.columns(0, 1 << 62)[name]


def failing(error: Exception, reads: range) -> Callable[[int], float]:
    def power(read: int) -> float:
        if read in reads:
            raise error
        return 100.0

    return power


def test_how_often_it_reads_can_be_changed_while_it_does() -> None:
    gpu = ScriptedGpu()
    trace = Trace(gpu.channels, span_s=3600.0)
    sampler = Sampler(gpu, trace, interval_s=0.1)
    sampler.start()
    while gpu.reads < 20:
        time.sleep(0.002)
    sampler.read_every(0.02)
    before = gpu.reads
    while gpu.reads < before + 20:
        time.sleep(0.002)
    sampler.stop()
    sampler.join()
    assert set(np.diff(column(trace, "time_ns")).tolist()) == {100_000_000, 20_000_000}


def test_readings_come_at_even_times() -> None:
    gpu = ScriptedGpu()
    trace, events = sample_until(gpu, lambda: gpu.reads > 100)
    apart = np.diff(column(trace, "time_ns"))
    assert len(trace) > 100
    assert np.all(apart == 20_000_000)
    assert events == []


def test_a_slow_reading_makes_up_for_nothing_but_keeps_to_the_beat() -> None:
    gpu = ScriptedGpu()

    def power(read: int) -> float:
        if read == 10:
            gpu.clock.wait(0.075)
        return 100.0

    gpu._power = power
    trace, _ = sample_until(gpu, lambda: gpu.reads > 30)
    stamps = column(trace, "time_ns")
    beats = (stamps - stamps[0]) % 20_000_000
    assert np.count_nonzero(beats) == 1  # the slow one itself
    assert np.diff(stamps).min() >= 5_000_000


def test_a_failed_reading_is_nan_and_one_event_and_one_when_it_recovers() -> None:
    gpu = ScriptedGpu(failing(NoPermission("refused"), range(20, 40)))
    trace, events = sample_until(gpu, lambda: gpu.reads > 60)
    assert np.count_nonzero(np.isnan(column(trace, "power_instant_w"))) == 20
    assert [(e.kind, e.what) for e in events] == [("failed", ""), ("recovered", "")]
    assert "refused" in events[0].message


def test_a_lost_gpu_is_an_event_and_tried_again_every_few_seconds() -> None:
    gpu = ScriptedGpu(failing(GpuLost("fell off the bus"), range(20, 24)))
    trace, events = sample_until(gpu, lambda: gpu.reads > 60)
    assert [e.kind for e in events] == ["lost", "back"]
    away_s = (events[1].time_ns - events[0].time_ns) / 1e9
    assert 4 * 2.5 < away_s < 4 * 4
    silent = np.isnan(column(trace, "power_instant_w"))
    assert silent.sum() == 4


def test_a_channel_without_values_is_reported_once_and_again_when_it_has_them() -> None:
    gpu = ScriptedGpu(temperature=lambda read: math.nan if 200 < read < 400 else 40.0)
    _, events = sample_until(gpu, lambda: gpu.reads > 700)
    assert [(e.kind, e.what) for e in events] == [("failed", "temperature_c"), ("recovered", "temperature_c")]
    assert "GPU temperature" in events[0].message


def test_a_fault_of_our_own_is_reported_and_the_thread_lives_on() -> None:
    gpu = ScriptedGpu(failing(ZeroDivisionError("a bug"), range(20, 22)))
    trace, events = sample_until(gpu, lambda: gpu.reads > 60)
    assert [e.kind for e in events] == ["failed", "recovered"]
    assert "a bug" in events[0].message
    assert len(trace) > 50


def every_20_ms(since_ns: int, now_ns: int) -> Sequence[PowerSample]:
    first = max(since_ns // 20_000_000 + 1, 40)
    return [PowerSample(n * 20_000_000, 200.0 + n) for n in range(first, now_ns // 20_000_000 + 1)]


def test_the_drivers_buffer_is_drained_about_ten_times_a_second_and_nothing_is_missed() -> None:
    drains: list[int] = []

    def samples(since_ns: int, now_ns: int) -> Sequence[PowerSample]:
        drains.append(now_ns)
        return every_20_ms(since_ns, now_ns)

    gpu = ScriptedGpu(samples=samples)
    trace, _ = sample_until(gpu, lambda: gpu.reads > 200)
    stamps, watts = trace.power_samples(0, 1 << 62)
    assert np.all(np.diff(stamps) == 20_000_000)
    assert watts.tolist() == [200.0 + stamp // 20_000_000 for stamp in stamps.tolist()]
    assert all(abs(b - a - 100_000_000) <= 20_000_000 for a, b in pairwise(drains[:-1]))
    assert trace.power_name == "power_samples_w"


def test_a_buffer_that_fails_costs_no_reading_and_is_reported_once() -> None:
    def samples(since_ns: int, now_ns: int) -> Sequence[PowerSample]:
        raise NoPermission("refused")

    gpu = ScriptedGpu(samples=samples)
    trace, events = sample_until(gpu, lambda: gpu.reads > 100)
    assert [(e.kind, e.what) for e in events] == [("failed", "power_samples_w")]
    assert not np.isnan(column(trace, "power_instant_w")).any()


def test_what_is_sampled_can_be_recorded(tmp_path: Path) -> None:
    gpu = ScriptedGpu(samples=every_20_ms)
    with RecordingWriter(tmp_path / "r.csv.gz", gpu) as writer:
        trace, _ = sample_until(gpu, lambda: gpu.reads > 100, recorder=writer)
    recording = read_recording(tmp_path / "r.csv.gz")
    assert len(recording.time_ns) == len(trace)
    assert len(recording.sample_ns) == len(trace.power_samples(0, 1 << 62)[0])


def test_a_full_disk_ends_the_recording_and_not_the_sampling() -> None:
    class Full:
        def write(self, reading: object) -> None:
            raise OSError(28, "No space left on device")

    gpu = ScriptedGpu()
    trace, events = sample_until(gpu, lambda: gpu.reads > 50, recorder=Full())
    assert [(e.kind, e.what) for e in events] == [("failed", "recording")]
    assert "No space left" in events[0].message
    assert len(trace) > 40


def test_stopping_is_prompt_and_joining_what_never_started_is_harmless() -> None:
    gpu = ScriptedGpu(clock=HostClock())
    idle = Sampler(gpu, Trace(gpu.channels))
    idle.stop()
    idle.join()
    sampler = Sampler(gpu, Trace(gpu.channels, span_s=60), interval_s=600.0)
    sampler.start()
    time.sleep(0.05)
    sampler.stop()  # ten minutes before the next reading is due
    sampler.join(60.0)
    assert not any(t.name.startswith("sampler") for t in threading.enumerate())


def test_on_a_fast_clock_the_thread_does_not_spin() -> None:
    gpu = ScriptedGpu(clock=ScaledClock(1000.0))
    sampler = Sampler(gpu, Trace(gpu.channels, span_s=60), interval_s=0.02)
    assert sampler.interval_s >= 1.0


@pytest.mark.parametrize("interval_s", [0.0, -1.0, math.nan, math.inf])
def test_an_interval_that_makes_no_sense_is_refused(interval_s: float) -> None:
    gpu = ScriptedGpu()
    with pytest.raises(ValueError, match="interval_s"):
        Sampler(gpu, Trace(gpu.channels, span_s=60), interval_s=interval_s)
