"""Simulated and recorded GPUs, put through what every `Gpu` must do (NVML's are in test_nvml)."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from fixtures.gpu_conformance import GpuConformance

from app.base.paths import resources
from app.sensors.channel import PowerSample
from app.sensors.clock import VirtualClock
from app.sensors.gpu import Gpu, NotSupported
from app.sensors.recorded.gpu import RecordedGpu
from app.sensors.recorded.logs.read import read_log
from app.sensors.recorded.recording import RecordingWriter, read_recording
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin, twin_names
from app.sensors.trace.trace import Trace


def record(gpu: Gpu, path: Path, seconds: float = 3.0) -> Path:
    """Record a GPU as the sampler does, on its own clock."""
    newest = gpu.clock.now_ns()
    with RecordingWriter(path, gpu) as writer:
        for step in range(round(seconds / 0.02)):
            writer.write(gpu.read())
            gpu.clock.wait(0.02)
            if step % 5 == 0:
                with suppress(NotSupported):
                    samples = gpu.power_samples(newest)
                    newest = samples[-1].time_ns if samples else newest
                    writer.write_power_samples(samples)
    return path


@pytest.mark.parametrize("name", twin_names())
class TestSimulated(GpuConformance):
    @pytest.fixture
    def gpu(self, name: str) -> Gpu:
        return SimulatedGpu(load_twin(name), seed=3, clock=VirtualClock())


@pytest.mark.parametrize("name", ["h200", "k20x"])
class TestRecorded(GpuConformance):
    @pytest.fixture
    def gpu(self, name: str, tmp_path: Path) -> Gpu:
        path = record(SimulatedGpu(load_twin(name), seed=3, clock=VirtualClock()), tmp_path / f"{name}.csv.gz")
        return RecordedGpu(read_recording(path), clock=VirtualClock())


class TestLog(GpuConformance):
    """A log of nvidia-smi."""

    @pytest.fixture
    def gpu(self, tmp_path: Path) -> Gpu:
        rows = (
            f"2026/04/19 17:05:{20 + index / 50:06.3f}, {90 + index % 20}.25 W, {1400 + index % 3} MHz, [N/A]\n"
            for index in range(150)
        )
        path = tmp_path / "smi.csv"
        path.write_text("timestamp, power.draw [W], clocks.gr [MHz], fan.speed [%]\n" + "".join(rows))
        return RecordedGpu(read_log(path).boards[0], clock=VirtualClock())


SHIPPED = sorted((resources() / "recordings").glob("*.csv.gz"))


@pytest.mark.parametrize("path", SHIPPED, ids=[path.name for path in SHIPPED])
class TestShippedRecording(GpuConformance):
    """Real telemetry that comes with the program."""

    @pytest.fixture
    def gpu(self, path: Path) -> Gpu:
        return RecordedGpu(read_recording(path), clock=VirtualClock())

    def test_it_is_of_a_real_board_and_names_none(self, path: Path) -> None:
        assert read_recording(path).recorded_from == "nvml"
        text = gzip.decompress(path.read_bytes()).decode()
        assert "GPU-" not in text
        assert "uuid" not in text.lower()

    def test_its_power_agrees_with_the_boards_own_energy_counter(self, path: Path) -> None:
        """The counter lay 0.4-1.7 % below the buffer on such a board; it is read once a second."""
        recording = read_recording(path)
        counted = recording.values[:, [c.name for c in recording.channels].index("energy_j")]
        turns = np.flatnonzero(np.diff(counted) > 0) + 1
        first, last = turns[0], turns[-1]
        trace = Trace(recording.channels, span_s=3600.0)
        trace.append_power_samples(list(map(PowerSample, recording.sample_ns.tolist(), recording.sample_w.tolist())))
        integral = trace.energy_j(int(recording.time_ns[first]), int(recording.time_ns[last]))
        assert integral == pytest.approx(counted[last] - counted[first], rel=0.04)
