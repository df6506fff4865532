"""`from app import measure`: blocks of code around work on simulated boards, against what those boards truly drew."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fixtures.lockstep import LockstepClock

from app import measure
from app.base.errors import InputError, WattridgeError
from app.engine.metering.characterisation.characterise import characterise, wave_loads
from app.engine.metering.characterisation.store import save_characterisation
from app.engine.metering.condition import Condition
from app.engine.metering.thermal import BoardHeat, ThermalModel, keep_heat
from app.engine.metering.watching import watch
from app.sensors.channel import Reading
from app.sensors.clock import Clock, VirtualClock
from app.sensors.gpu import GpuLost
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import full_load
from app.sensors.simulated.truth import truth
from app.sensors.simulated.twin import load_twin


def board(name: str, clock: Clock | None = None) -> SimulatedGpu:
    return SimulatedGpu(load_twin(name), clock=clock or LockstepClock())


@pytest.fixture(autouse=True)
def short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests look once; nobody comes back within the second."""
    monkeypatch.setattr("app.engine.metering.watching.LINGER_S", 0.2)


@pytest.fixture
def working() -> Iterator[SimulatedGpu]:
    """An H200 (simulated) that has worked for a while and goes on."""
    gpu = board("h200")
    gpu.begin(full_load())
    gpu.clock.wait(5.0)
    yield gpu
    gpu.end()


def true_energy_j(gpu: SimulatedGpu, start_ns: int, end_ns: int) -> float:
    """What the simulated board drew, by its own books."""
    history = gpu._physics.history
    return history.energy_j(end_ns) - history.energy_j(start_ns)


@pytest.mark.parametrize("name", ["h200", "a100", "titan_rtx", "v100"])
def test_energy_of_a_burst_is_what_the_board_drew_whatever_its_sensor(name: str) -> None:
    """Two seconds of full load between two of rest: edges count as much as the middle."""
    gpu = board(name)
    with measure(gpu=gpu) as m:
        start_ns = gpu.clock.now_ns()
        gpu.clock.wait(1.0)
        gpu.begin(full_load())
        gpu.clock.wait(2.0)
        gpu.end()
        gpu.clock.wait(1.0)
        end_ns = gpu.clock.now_ns()
    told_j = m.energy_j  # waits until the sensors have told
    true_j = true_energy_j(gpu, start_ns, end_ns)
    assert told_j == pytest.approx(true_j, rel=0.002 if name == "h200" else 0.01)
    assert m.time_s == (end_ns - start_ns) / 1e9
    assert m.mean_power_w == pytest.approx(told_j / m.time_s)
    assert m.source == "simulated"
    assert not m.unknown
    busiest = max(row["power_w"] for row in truth(load_twin(name), "full_load"))
    assert m.peak_power_w <= 1.1 * busiest
    assert m.peak_power_w > 1.5 * m.power_w.min()


@pytest.mark.parametrize("name", ["h200", "a100"])
def test_a_characterised_board_is_read_as_it_was_found(name: str) -> None:
    """Refresh, averaging and lag come from what was kept of the board, no longer from its generation."""
    fast = SimulatedGpu(load_twin(name), clock=VirtualClock())
    found = characterise(fast, wave_loads(fast), patience_s=20.0)
    assert found is not None
    save_characterisation(found)
    gpu = board(name)
    with measure(gpu=gpu) as m:
        start_ns = gpu.clock.now_ns()
        gpu.begin(full_load())
        gpu.clock.wait(2.0)
        gpu.end()
        gpu.clock.wait(0.5)
        end_ns = gpu.clock.now_ns()
    assert m.energy_j == pytest.approx(true_energy_j(gpu, start_ns, end_ns), rel=0.002 if name == "h200" else 0.02)
    assert m.power_source == found.words


def test_vectors_share_one_time_axis(working: SimulatedGpu) -> None:
    with measure(gpu=working) as m:
        working.clock.wait(1.0)
    assert m.times_s.shape == m.power_w.shape == m.clock_mhz.shape
    assert len(m.times_s) == pytest.approx(50, abs=1)  # a sample of the driver's buffer per 20 ms
    assert (np.diff(m.times_s) > 0).all()
    assert 0 <= m.times_s[0] < m.times_s[-1] <= m.time_s
    assert m.power_w.mean() == pytest.approx(m.mean_power_w, rel=0.01)
    assert (m.clock_mhz == m.boards[0].clock_mhz.maximum).all()


def test_a_polled_boards_repeats_are_no_samples() -> None:
    """Read at 50 Hz, a sensor that refreshes at 10 Hz has told ten values a second."""
    gpu = board("a100")
    with measure(gpu=gpu) as m:
        gpu.clock.wait(3.0)
    assert len(m.power_w) == pytest.approx(30, abs=1)


def test_nested_blocks_and_threads_each_get_their_own(working: SimulatedGpu) -> None:
    measured, clock = {}, working.clock
    assert isinstance(clock, LockstepClock)

    def worker(name: str, seconds: float) -> None:
        with measure(gpu=working) as m:
            working.clock.wait(seconds)
        measured[name] = m

    with measure(gpu=working) as outer:
        threads = [threading.Thread(target=worker, args=(f"{i}", 0.5 + 0.5 * i)) for i in range(3)]
        for thread in threads:
            thread.start()
        with measure(gpu=working) as inner:
            working.clock.wait(0.5)
        with clock.away():
            for thread in threads:
                thread.join()
    assert inner.time_s == 0.5
    assert outer.time_s >= 1.5
    for i in range(3):
        assert measured[f"{i}"].time_s == 0.5 + 0.5 * i
    for m in (outer, inner, *measured.values()):
        assert m.mean_power_w == pytest.approx(outer.mean_power_w, rel=0.01)


def test_one_thread_reads_a_board_however_many_look_and_it_ends_with_the_last(working: SimulatedGpu) -> None:
    def samplers() -> int:
        return sum(thread.name.startswith("sampler") for thread in threading.enumerate())

    with measure(gpu=working), measure(gpu=working):
        assert samplers() == 1
    with measure(gpu=working):  # the sampler that lingers is taken over
        assert samplers() == 1
    deadline = time.monotonic() + 3.0
    while samplers() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert samplers() == 0


def test_several_gpus_in_one_block(working: SimulatedGpu) -> None:
    idle = board("v100", working.clock)
    with measure(gpu=[working, idle]) as m:
        working.clock.wait(1.0)
    one, other = m.boards
    assert m.energy_j == pytest.approx(one.energy_j + other.energy_j)
    assert m.mean_power_w == pytest.approx(one.mean_power_w + other.mean_power_w)
    assert one.peak_power_w < m.peak_power_w <= one.peak_power_w + other.peak_power_w
    assert m.clock_mhz.shape == (2, len(m.times_s))
    assert m.gpu == "NVIDIA H200, Tesla V100-PCIE-16GB"


def test_event_reasons_are_told_in_seconds() -> None:
    gpu = board("a100")
    with measure(gpu=gpu) as m:
        gpu.clock.wait(1.0)
    assert m.event_reasons == {"idle": pytest.approx(1.0)}


def test_a_block_too_short_for_the_sensor_has_no_energy_and_says_so() -> None:
    gpu = board("a100")
    with measure(gpu=gpu) as m:
        pass
    assert np.isnan([m.energy_j, m.mean_power_w, m.peak_power_w]).all()
    assert "too short" in m.unknown
    assert m.time_s == 0.0
    assert "too short" in repr(m)


def test_leaving_a_block_costs_nothing(working: SimulatedGpu) -> None:
    """The figures wait for the sensor; leaving does not."""
    with measure(gpu=working) as m:
        working.clock.wait(0.5)
        ended_ns = working.clock.now_ns()
    assert working.clock.now_ns() == ended_ns
    assert m.energy_j > 0
    assert working.clock.now_ns() > ended_ns + 0.02e9


def test_a_block_that_raises_is_still_measured(working: SimulatedGpu) -> None:
    def fails() -> None:
        working.clock.wait(0.5)
        raise ValueError("the code's own")

    m = measure(gpu=working)
    with pytest.raises(ValueError, match="the code's own"), m:
        fails()
    assert m.energy_j > 0


def test_figures_are_looked_at_after_the_block(working: SimulatedGpu) -> None:
    with measure(gpu=working) as m, pytest.raises(WattridgeError, match="not ended"):
        _ = m.energy_j
    with pytest.raises(WattridgeError, match="measured already"), m:
        pass


class Falling(SimulatedGpu):
    """Is lost after so many reads."""

    reads_left = 20

    def read(self) -> Reading:
        self.reads_left -= 1
        if self.reads_left < 0:
            raise GpuLost("the board fell off the bus")
        return super().read()


def test_a_board_that_is_lost_leaves_the_energy_unknown() -> None:
    gpu = Falling(load_twin("v100"), clock=LockstepClock())
    with measure(gpu=gpu) as m:
        gpu.clock.wait(3.0)
    assert np.isnan(m.energy_j)
    assert "of the time only" in m.unknown
    assert any("fell off the bus" in line for line in m.boards[0].faults)


def test_a_gpu_by_its_name_and_what_is_no_gpu() -> None:
    with measure(gpu="simulated:v100") as m:
        time.sleep(0.3)
    assert (m.gpu, m.source) == ("Tesla V100-PCIE-16GB", "simulated")
    assert m.energy_j > 0
    with pytest.raises(InputError, match="gtx9999"), measure(gpu="simulated:gtx9999"):
        pass
    with pytest.raises(InputError, match="no GPU"), measure(gpu=[]):
        pass
    virtual = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    with pytest.raises(InputError, match="as fast as"), measure(gpu=virtual):
        pass


def test_two_who_name_the_same_board_share_it() -> None:
    one, other = watch("simulated:a100"), watch(" simulated:a100 ")
    assert one is other
    one.release()
    other.release()


def test_measuring_needs_no_data_folder(working: SimulatedGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("WATTRIDGE_DATA", str(tmp_path / "file"))
    with measure(gpu=working) as m:
        working.clock.wait(1.0)
    assert m.energy_j > 0


def test_importing_the_package_loads_nothing() -> None:
    """The window and the command line import `app` first."""
    root = Path(__file__).resolve().parents[2]
    code = "import app, sys; assert not {'numpy', 'app.scripting.measuring'} & set(sys.modules); app.measure"
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True, timeout=60)


WARMING = 0.003  # of its power, per °C


def known_to_warm(gpu: SimulatedGpu, condition: Condition) -> None:
    """A session has learnt that of the board, and fixed that condition."""
    sure = tuple(tuple(1e10 if row == column else 0.0 for column in range(4)) for row in range(4))
    keep_heat(gpu.info, BoardHeat(ThermalModel((WARMING, 0.0, 0.0, 0.0), sure), condition))


def test_joules_drawn_stay_the_figure_and_those_at_the_boards_condition_are_another(working: SimulatedGpu) -> None:
    with measure(gpu=working) as before:
        working.clock.wait(2.0)
    assert np.isnan(before.energy_at_condition_j), "no session has fixed a condition"
    known_to_warm(working, Condition(gpu_c=90.0))
    start_ns = working.clock.now_ns()
    with measure(gpu=working) as m:
        working.clock.wait(2.0)
    [span] = m.boards
    assert m.energy_j == pytest.approx(true_energy_j(working, start_ns, start_ns + round(m.time_s * 1e9)), rel=0.01)
    warmer_c = 90.0 - span.temperature_c
    assert warmer_c > 20
    assert m.energy_at_condition_j == pytest.approx(m.energy_j * math.exp(WARMING * warmer_c), rel=1e-3)
    low_j, high_j = span.energy_at_condition_interval_j or (0.0, 0.0)
    assert low_j < m.energy_at_condition_j < high_j
    drawn_low_j, drawn_high_j = span.energy_interval_j or (0.0, 0.0)
    assert high_j - low_j > drawn_high_j - drawn_low_j, "what sessions differ by is in it"
