"""Every configuration measured several times: minimum, mean, maximum and deviation ([Anzt2015]: ten times)."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from statistics import fmean, stdev

import pytest
from fixtures.cuda_bench import Bench
from fixtures.engine_fakes import Listener
from fixtures.fake_board import IDLE_W
from fixtures.virtual_cuda import VirtualBoard
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.cli import main
from app.engine.analysis.session_analysis import observed_in
from app.engine.formats.read import read_recording
from app.engine.metering import meter as metering
from app.engine.metering.confidence import confidence_interval
from app.engine.metering.window import Window
from app.engine.models.series import read_series
from app.engine.report.export import export_session, export_specification
from app.engine.results.measurement import SPREADS, STATED_FROM, Measurement, State
from app.engine.runner.measurement_figures import figures_of
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_resume, plan_specification
from app.engine.session.run import run_session
from app.engine.specification.model import Specification
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.event_reasons import EventReason
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

SPECIFICATION = """
[kernel]
name = "sgemm"
source = "sgemm.cu"
problem_size = ["n", "n"]
profile = "gemm"
{kernel}
[constants]
n = 4096
[parameters]
block_size_x = [32]
block_size_y = [4, 8]
[device_settings]
graphics_clock_mhz = [750, 1005, 1305, 1410]
[metrics]
"GFLOPS/W" = "2 * n**3 / energy_j / 1e9"
[objective]
maximise = "GFLOPS/W"
"""
WORK = ("time_s", "energy_j", "power_w")


def written(folder: Path, kernel: str = "") -> Specification:
    (folder / "sgemm.cu").write_text("// costed by its profile\n")
    path = folder / "gemm.toml"
    path.write_text(SPECIFICATION.format(kernel=kernel))
    return load_specification(path)


def board() -> SimulatedGpu:
    return SimulatedGpu(load_twin("a100"), seed=1, clock=VirtualClock())


def window(time_s: float, power_w: float, **more: object) -> Window:
    known = {
        "observed_clock_mhz": 1000.0,
        "memory_power_w": math.nan,
        "temperature_c": 50.0,
        "core_voltage_mv": math.nan,
        "memory_clock_mhz": 1600.0,
        "event_reasons": 0,
        "window_ns": (0, 1),
        "power_source": "buffer",
        "power_interval_w": (power_w - 1, power_w + 1),
    }
    return Window(time_s=time_s, power_w=power_w, **{**known, **more})  # type: ignore[arg-type]


times = st.floats(1e-6, 10.0)
powers = st.floats(10.0, 1000.0)


@settings(deadline=None)
@given(st.lists(st.tuples(times, powers), min_size=2, max_size=20))
def test_the_scatter_of_any_repeats(tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[float, float]]) -> None:
    spec = written(tmp_path_factory.getbasetemp())
    values, intervals = figures_of(spec, {}, [window(*run) for run in runs])
    energies = [time_s * power_w for time_s, power_w in runs]
    for name, known in zip(WORK, ([t for t, _ in runs], energies, [p for _, p in runs]), strict=True):
        assert values[f"min_{name}"] == min(known)
        assert values[f"max_{name}"] == max(known)
        assert values[f"std_{name}"] == pytest.approx(stdev(known))
    assert values["time_s"] == pytest.approx(fmean(t for t, _ in runs))
    assert values["energy_j"] == pytest.approx(fmean(energies))
    assert values["power_w"] == pytest.approx(values["energy_j"] / values["time_s"]), "over all the time"
    assert values["GFLOPS/W"] == pytest.approx(2 * 4096**3 / values["energy_j"] / 1e9)
    assert not intervals.keys() & {"temperature_c", "observed_clock_mhz"}, "these drift: Student's t is not for them"
    low, high = intervals["energy_j"]
    ends = confidence_interval(energies, len(energies))
    assert ends is not None
    slack = 1e-9 * values["energy_j"]
    assert low <= max(0.0, ends[0]) + slack, "Student's t over the repeats at least"
    assert high >= ends[1] - slack
    assert low <= max(0.0, values["energy_j"] - values["time_s"]) + slack, "and never narrower than that of one repeat"
    assert high >= values["energy_j"] + values["time_s"] - slack
    assert all(intervals[name][0] >= 0 for name in WORK if name in intervals), "none of these can be negative"


def test_what_the_board_reported_in_some_repeats_only_is_of_those(tmp_path: Path) -> None:
    limited = {"event_reasons": int(EventReason.POWER_CAP)}
    windows = [
        window(1.0, 100.0, core_voltage_mv=800.0, **limited),
        window(1.0, 100.0, settled=False, **limited),
        window(1.0, 100.0, core_voltage_mv=810.0),
    ]
    values, _ = figures_of(written(tmp_path), {}, windows)
    assert values["core_voltage_mv"] == 805.0
    assert values["settled"] == 0.0, "one that had not come to rest is enough"
    assert not {f"{kind}_core_voltage_mv" for kind in SPREADS} & values.keys()


def test_one_measurement_has_no_scatter(tmp_path: Path) -> None:
    values, _ = figures_of(written(tmp_path), {}, [window(1.0, 100.0)])
    assert not [name for name in values if name.partition("_")[0] in SPREADS]


def test_a_simulated_session_keeps_the_scatter_in_store_exports_and_analysis(tmp_path: Path) -> None:
    plan = plan_specification(written(tmp_path), board(), SearchOptions(strategy="brute_force", repeats=4))
    with Store() as store:
        session = run_session(plan, store, Listener(), threading.Event()).session
        table = store.load(session).table
    assert len(table) == 10  # two block sizes; four clocks, untouched
    for index in range(len(table)):
        values = table.measurement(index).values
        for name in WORK:
            assert values[f"min_{name}"] <= values[name] <= values[f"max_{name}"]
        assert values["max_energy_j"] > values["min_energy_j"], "a sensor is never without noise"
        assert values["energy_j"] == pytest.approx(values["power_w"] * values["time_s"])
        start_ns, end_ns = table.measurement(index).window_ns or (0, 0)
        assert (end_ns - start_ns) / 1e9 > 4 * 0.14
    files = export_session(plan, table, session, None, tmp_path / "out", ["csv", "cache", "t4", "json"])
    for path in files[1:-1]:
        read = read_recording(path).table()
        for name in ("energy_j", "min_energy_j", "max_energy_j", "std_energy_j"):
            assert sorted(read.values(name)) == sorted(table.values(name)), path.name
    assert "std_energy_j" in json.loads(files[0].read_text())["values"]
    for points in read_series(files[1]):
        assert set(points.power_w) <= set(table.values("power_w")), "the model is fitted to the means"
        assert points.rate is not None
    known = {each.name for each in observed_in(table)}
    assert "energy_j" in known
    assert not {name for name in known if name.startswith(("min_", "max_", "std_"))}, "scatter explains no speed"
    assert "energy_raw_j" in table.value_names
    assert not known & STATED_FROM, "nor does what the board did before"


def test_a_specification_can_ask_for_repeats(tmp_path: Path) -> None:
    spec = written(tmp_path, kernel="repeats = 3")
    assert spec.repeats == 3
    assert plan_specification(spec, board()).origin["repeats"] == "3"
    assert plan_specification(spec, board(), SearchOptions(repeats=5)).origin["repeats"] == "5", "the command line wins"
    assert load_specification(export_specification(spec, tmp_path / "t1")).repeats == 3
    for wrong in ("0", "-1", "1001", '"ten"', "1.5"):
        with pytest.raises(InputError, match="repeats"):
            written(tmp_path, kernel=f"repeats = {wrong}")


def test_a_resumed_session_keeps_its_repeats(tmp_path: Path) -> None:
    spec = written(tmp_path)
    with Store() as store:
        plan = plan_specification(spec, board(), SearchOptions(strategy="brute_force", repeats=3, max_evaluations=2))
        session = run_session(plan, store, Listener(), threading.Event()).session
        again = plan_resume(store, session, SearchOptions(max_evaluations=8), gpu=board())
        table = run_session(again, store, Listener(), threading.Event()).table
    assert len(table) == 8
    assert all("std_energy_j" in table.measurement(index).values for index in range(8))


def test_the_command_prints_minimum_mean_maximum_and_deviation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path)
    words = ["tune", str(tmp_path / "gemm.toml"), "--gpu", "simulated:a100", "--repeats", "3", "--max-evaluations", "4"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "Over its 3 repeats" in text
    assert main(["report", "--out", str(tmp_path / "report.html")]) == 0
    assert " --repeats 3" in (tmp_path / "report.html").read_text()
    capsys.readouterr()
    assert "minimum     mean  maximum  deviation" in text
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["repeats"] == 3
    assert document["best"]["values"]["std_energy_j"] > 0
    assert main(["tune", "--resume", str(document["session"]), "--repeats", "5"]) == 2
    assert "a resumed session keeps its repeats" in capsys.readouterr().err


# --- on a real board --------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def short_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "WARM_STEP_S", 0.02)


def by_draw(measured: list[Measurement]) -> dict[object, Measurement]:
    return {m.configuration["draws_w"]: m for m in measured}


def test_the_cuda_runner_repeats_each_configuration_and_mixes_none(
    bench: type[Bench], virtual_board: VirtualBoard
) -> None:
    one = bench("draws_w = [150, 300, 600]", sensors=virtual_board, kernel="repeats = 4")
    measured = by_draw(one.rows())
    assert set(measured) == {150, 300, 600}
    for draws_w, m in measured.items():
        assert m.state is State.OK, m.error
        power_w = float(str(draws_w))
        for name in ("min_power_w", "power_w", "max_power_w"):
            assert m.values[name] == pytest.approx(power_w, rel=0.004), "nothing of another configuration"
        assert 0 < m.values["std_power_w"] < 2.0, "the buffer's samples scatter by a watt"
        assert m.values["registers_per_thread"] == 32
        start_ns, end_ns = m.window_ns or (0, 0)
        assert (end_ns - start_ns) / 1e9 > 4 * metering.BUFFER_WINDOW_S
    assert IDLE_W < 100, "what lies between two repeats would be seen"


def test_a_kernel_that_fails_in_a_session_of_repeats_is_one_failure(
    bench: type[Bench], virtual_board: VirtualBoard
) -> None:
    measured = bench('fault = ["none", "wrong"]', sensors=virtual_board, kernel="repeats = 2").measure()
    assert measured["wrong"].state is State.CORRECTNESS
    assert measured["none"].state is State.OK
    assert "std_time_s" in measured["none"].values
