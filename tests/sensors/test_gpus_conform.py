"""Simulated and recorded GPUs, put through what every `Gpu` must do (NVML's are in test_nvml)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from gpu_conformance import GpuConformance

from app.sensors.clock import VirtualClock
from app.sensors.errors import NotSupported
from app.sensors.gpu import Gpu
from app.sensors.recorded import RecordedGpu
from app.sensors.recording import RecordingWriter, read_recording
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin, twin_names


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
