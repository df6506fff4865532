"""Timing on a simulated board: near the time that a measurement finds, for a fraction of its board time."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from app.engine.control.guard import DeviceGuard
from app.engine.results.measurement import Depth, State
from app.engine.runner.command import CommandRunner
from app.engine.runner.simulated import SimulatedRunner
from app.engine.session.load import load_specification
from app.engine.session.planning import space_of
from app.engine.specification.model import names_at_time
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import LaunchRefused
from app.sensors.simulated.twin import load_twin

GEMM = """
[kernel]
name = "sgemm"
source = "sgemm.cu"
problem_size = ["n", "n"]
profile = "gemm"
[constants]
n = 4096
[parameters]
block_size_x = [16, 32, 64]
block_size_y = [8, 16]
[device_settings]
graphics_clock_mhz = [1005, 1410]
[metrics]
"GFLOP/s" = "2 * n**3 / time_s / 1e9"
"GFLOPS/W" = "2 * n**3 / energy_j / 1e9"

"per tile" = "time_s / block_size_x"
[objective]
maximise = "GFLOPS/W"
"""
STOP = threading.Event()


@pytest.fixture
def runner(tmp_path: Path) -> SimulatedRunner:
    (tmp_path / "sgemm.cu").write_text("// costed by its profile\n")
    (tmp_path / "gemm.toml").write_text(GEMM)
    spec = load_specification(tmp_path / "gemm.toml")
    gpu = SimulatedGpu(load_twin("a100"), seed=3, clock=VirtualClock())
    return SimulatedRunner(gpu, spec, space_of(spec, gpu), DeviceGuard(gpu))


def test_it_agrees_with_the_measured_time_and_scatters_as_few_launches_do(runner: SimulatedRunner) -> None:
    rows = range(runner._space.size)
    whole = {m.row: m for m in runner.measure(rows, STOP)}
    timed = {m.row: m for m in runner.time(rows, STOP)}
    assert timed.keys() == whole.keys()
    off = []
    for row, found in timed.items():
        assert (found.state, found.depth) == (whole[row].state, Depth.TIME)
        if found.state is State.OK:
            assert found.values.keys() == {"time_s", "GFLOP/s", "per tile"} == runner.timed
            off.append(found.values["time_s"] / whole[row].values["time_s"] - 1)
    assert len(off) >= 8
    assert 0.0005 < np.std(off) < 0.02
    assert np.abs(off).max() < 0.03


def test_it_costs_a_fraction_of_the_board_time(runner: SimulatedRunner) -> None:
    rows = list(range(4))
    list(runner.measure(rows, STOP))  # warm
    [whole, timed] = [sum(m.cost_s for m in look(rows, STOP)) for look in (runner.measure, runner.time)]
    assert 0 < timed < 0.35 * whole


def test_a_refused_launch_is_found_by_timing(runner: SimulatedRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: object, configuration: object) -> None:
        raise LaunchRefused("runtime", "too many resources requested for launch")

    monkeypatch.setattr(ProfiledKernel, "prepare", refuse)
    [refused] = runner.time([0], STOP)
    assert (refused.state, refused.depth, refused.final) == (State.RUNTIME, Depth.TIME, True)
    assert "too many resources" in refused.error


def test_a_metric_of_a_metric_is_known_once_timed_where_all_of_it_is(tmp_path: Path) -> None:
    text = GEMM.replace("[objective]", 'squared = "per_launch ** 2"\nmixed = "per_launch * power_w"\n[objective]')
    text = text.replace("[metrics]", '[metrics]\nper_launch = "time_s / n"')
    (tmp_path / "sgemm.cu").write_text("//\n")
    (tmp_path / "gemm.toml").write_text(text)
    spec = load_specification(tmp_path / "gemm.toml")
    names = names_at_time(spec, ["block_size_x", "block_size_y"])
    assert names == {"time_s", "GFLOP/s", "per tile", "per_launch", "squared"}


def test_a_program_is_not_timed_alone(runner: SimulatedRunner) -> None:
    assert "time_s" in runner.timed
    assert not CommandRunner.timed, "its run gives its energy, too"
