"""Core voltage and memory clock of each configuration: of its own window, in mV and MHz, or not there at all."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import pytest
from fixtures.cuda_bench import Bench
from fixtures.engine_fakes import Listener
from fixtures.fake_board import HEAVY, LIGHT, FakeBoard
from fixtures.virtual_cuda import VirtualBoard

from app.engine.formats.read import read_recording
from app.engine.metering import meter as metering
from app.engine.metering.meter import Meter
from app.engine.models.series import read_series
from app.engine.report.export import export_session
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.space.result_table import ResultTable
from app.engine.specification.plan import SearchOptions, SessionPlan
from app.engine.store.database import Store
from app.sensors.channel import Reading, channel
from app.sensors.clock import VirtualClock
from app.sensors.gpu import Held, Load
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.laws import relative_voltage
from app.sensors.simulated.twin import load_twin

SPECIFICATION = """
[kernel]
name = "sgemm"
source = "sgemm.cu"
problem_size = ["n", "n"]
profile = "gemm"
[constants]
n = 4096
[parameters]
block_size_x = [32]
block_size_y = [4, 8]
[device_settings]
graphics_clock_mhz = [750, 1005, 1305, 1410]
{more}
[objective]
minimise = "energy_j"
"""


def measured_on(twin: str, folder: Path, more: str = "") -> tuple[ResultTable, SessionPlan, int, SimulatedGpu]:
    """A whole session on a simulated board, read back from the store."""
    (folder / "sgemm.cu").write_text("// costed by its profile\n")
    path = folder / "gemm.toml"
    path.write_text(SPECIFICATION.format(more=more))
    gpu = SimulatedGpu(load_twin(twin), seed=1, clock=VirtualClock())
    plan = plan_specification(load_specification(path), gpu, SearchOptions(strategy="brute_force"))
    with Store() as store:
        session = run_session(plan, store, Listener(), threading.Event()).session
        return store.load(session).table, plan, session, gpu


def test_a_simulated_board_with_a_voltage_sensor_keeps_its_voltage_and_memory_clock(tmp_path: Path) -> None:
    table, plan, session, gpu = measured_on("a100", tmp_path)
    floor_mv = gpu.twin.voltage.floor_mv
    assert floor_mv is not None
    assert len(table) == 10  # two block sizes; four clocks, untouched
    for index in range(len(table)):
        m = table.measurement(index)
        expected_mv = floor_mv * relative_voltage(gpu.twin, m.observed_clock_mhz)
        assert m.values["core_voltage_mv"] == pytest.approx(expected_mv, abs=0.5)
        assert m.values["observed_memory_clock_mhz"] == gpu.twin.clocks.memory_mhz[-1]
    for path in export_session(plan, table, session, None, tmp_path / "out", ["csv", "cache", "t4"])[:-1]:
        read = read_recording(path).table()
        for name in ("core_voltage_mv", "observed_memory_clock_mhz"):
            assert sorted(read.values(name)) == sorted(table.values(name)), path.name


def test_a_board_without_a_voltage_sensor_has_no_voltage(tmp_path: Path) -> None:
    table, *_ = measured_on("titan_rtx", tmp_path)
    assert "core_voltage_mv" not in table.value_names
    assert "observed_memory_clock_mhz" in table.value_names


def test_the_exported_session_is_still_one_clock_sweep(tmp_path: Path) -> None:
    """The observed memory clock is no series of its own, and the voltage reaches the frequency model."""
    table, plan, session, _ = measured_on("a100", tmp_path)
    csv, _ = export_session(plan, table, session, None, tmp_path / "out", ["csv"])
    series = read_series(csv)
    assert sorted(len(points.clock_mhz) for points in series) == [4, 4]
    for points in series:
        assert points.voltage_mv is not None
        assert set(points.voltage_mv) <= set(table.values("core_voltage_mv"))


class VoltageBoard(FakeBoard):
    """Its voltage is asked for once in a second, as nvidia-smi is, and held meanwhile; it depends on the load."""

    def __init__(self) -> None:
        super().__init__(buffer=True, source="nvml")
        self.channels = (*self.channels, channel("core_voltage_mv"))
        self._asked_ns, self._held_mv = 0, 700.0

    @property
    def now_mv(self) -> float:
        return 700.0 if not self.busy else self.mv_of(self._load)

    def mv_of(self, load: Load | None) -> float:
        return 1000.0 if load is HEAVY else 850.0

    def _ask(self) -> None:
        if self.clock.now_ns() - self._asked_ns >= 1_000_000_000:
            self._asked_ns, self._held_mv = self.clock.now_ns(), self.now_mv

    def held(self, name: str) -> Held | None:
        self._ask()
        return Held(self._asked_ns, 1.0) if name == "core_voltage_mv" else None

    def read(self) -> Reading:
        self._ask()
        reading = super().read()
        return Reading(reading.time_ns, (*reading.values, self._held_mv))


def test_a_voltage_that_was_asked_for_before_the_window_is_never_the_configurations() -> None:
    board = VoltageBoard()
    meter = Meter(board)
    found = []
    for load in (HEAVY, LIGHT) * 10:
        window = meter.measure(load)
        assert window is not None
        assert window.memory_clock_mhz == 1600.0
        if not math.isnan(window.core_voltage_mv):
            found.append(window.core_voltage_mv)
            assert window.core_voltage_mv == board.mv_of(load)
    assert 2 <= len(found) < 20, "windows are shorter than the second between two questions"


def test_a_window_waits_for_the_voltage_where_a_metric_needs_it() -> None:
    board = VoltageBoard()
    meter = Meter(board, needs={"core_voltage_mv"})
    for load in (HEAVY, LIGHT) * 3:
        window = meter.measure(load)
        assert window is not None
        assert window.core_voltage_mv == board.mv_of(load)
        assert (window.window_ns[1] - window.window_ns[0]) / 1e9 < metering.VOLTAGE_MOST_S + 0.2


def test_a_voltage_that_never_comes_does_not_hold_a_window_open() -> None:
    board = VoltageBoard()
    board._ask = lambda: None  # type: ignore[method-assign]  # nvidia-smi hangs
    window = Meter(board, needs={"core_voltage_mv"}).measure(HEAVY)
    assert window is not None
    assert math.isnan(window.core_voltage_mv)


def test_the_cuda_runner_keeps_them_on_a_board_that_reports_them(
    bench: type[Bench], virtual_board: VirtualBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metering, "WARM_STEP_S", 0.02)
    [without] = bench("launch_ms = [1]", sensors=virtual_board).rows()
    assert without.values["observed_memory_clock_mhz"] == 1600.0
    assert "core_voltage_mv" not in without.values
    plain = virtual_board.read
    virtual_board.channels = (*virtual_board.channels, channel("core_voltage_mv"))
    monkeypatch.setattr(virtual_board, "read", lambda: Reading(plain().time_ns, (*plain().values, 812.5)))
    [measured] = bench("launch_ms = [1]", sensors=virtual_board).rows()
    assert measured.values["core_voltage_mv"] == 812.5
