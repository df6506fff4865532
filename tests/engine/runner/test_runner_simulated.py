"""Sessions and sweeps on simulated boards, measured through their sensors; their truth is only looked at here."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fixtures.engine_fakes import Listener
from fixtures.simulated import board

from app.base.errors import InputError, WattridgeError
from app.engine.control.guard import DeviceGuard
from app.engine.metering.meter import Meter
from app.engine.models.clock_fits import fit_of_session, fit_of_sweep
from app.engine.models.fit_documents import latest_fit
from app.engine.results.measurement import Measurement, State
from app.engine.results.state import SessionState
from app.engine.runner.languages import require_language
from app.engine.session.engine_thread import Tuner
from app.engine.session.events import (
    Apply,
    EngineFault,
    Fit,
    FitFailed,
    FitFinished,
    FitProgress,
    SessionChanged,
    SessionStarted,
    SettingApplied,
    Start,
    Stop,
)
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_resume, plan_specification, space_of
from app.engine.session.run import run_session
from app.engine.session.summary import session_summary
from app.engine.specification.model import Specification
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.event_reasons import LIMITING, EventReason
from app.sensors.gpu import GpuInfo, PowerLimit, Source
from app.sensors.limits import limits_of
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import full_load
from app.sensors.simulated.truth import truth
from app.sensors.simulated.twin import load_twin, twin_names

GEMM = """
restrictions = ["32 <= block_size_x * block_size_y <= 1024", "tile_size_x * tile_size_y <= 32"]
[kernel]
name = "sgemm"
source = "sgemm.cu"
problem_size = ["n", "n"]
profile = "gemm"
[constants]
n = 4096
[parameters]
block_size_x = [16, 32, 64]
block_size_y = [4, 8, 16, 32]
tile_size_x = [1, 2, 4, 8]
tile_size_y = [1, 4]
[device_settings]
graphics_clock_mhz = { points = 5 }
[metrics]
"GFLOP/s" = "2 * n**3 / time_s / 1e9"
"GFLOPS/W" = "2 * n**3 / energy_j / 1e9"
[objective]
maximise = "GFLOPS/W"
front = ["GFLOP/s", "GFLOPS/W"]
[search]
strategy = "random_sample"
max_evaluations = 40
seed = 1
"""


@pytest.fixture
def specification(tmp_path: Path) -> Specification:
    return written(tmp_path, GEMM)


def written(folder: Path, text: str) -> Specification:
    (folder / "sgemm.cu").write_text("// costed by its profile\n")
    path = folder / "gemm.toml"
    path.write_text(text)
    return load_specification(path)


def test_options_of_the_specification_are_those_of_its_own_strategy(tmp_path: Path) -> None:
    own = 'strategy = "genetic_algorithm"\noptions = { population_size = 8, newcomers = 0.2 }'
    spec = written(tmp_path, re.sub("strategy = .*", own, GEMM))

    def options(**given: Any) -> dict[str, Any]:
        return dict(plan_specification(spec, board("a100"), SearchOptions(**given)).strategy_options)

    assert options() == {"population_size": 8, "newcomers": 0.2}
    assert options(strategy_options={"newcomers": "0.5"}) == {"population_size": 8, "newcomers": "0.5"}
    assert options(strategy="random_sample") == {}
    assert options(strategy="tabu_search", strategy_options={"tenure": "3"}) == {"tenure": "3"}


@pytest.mark.parametrize(
    ("search", "key", "said"),
    [
        ('strategy = "genetik"', "search.strategy", "unknown strategy 'genetik'"),
        ('strategy = "random_sample"\noptions = { size = 3 }', "search.options", "has no option 'size'"),
        ('strategy = "tabu_search"\noptions = { tenure = 3.5 }', "search.options", "is 3.5"),
        ('strategy = "tabu_search"\noptions = { tenure = -3 }', "search.options", "tenure must be at least"),
    ],
)
def test_a_wrong_search_is_named_with_its_file_and_key(tmp_path: Path, search: str, key: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        plan_specification(written(tmp_path, re.sub("strategy = .*", search, GEMM)), board("a100"))
    assert caught.value.where == f"{tmp_path / 'gemm.toml'}: {key}"


def runs_as_asked(measured: Measurement) -> bool:
    """At the clock of its configuration, untouched at the highest, or below it with the reason."""
    if measured.state is not State.OK:
        return True
    asked, observed = measured.configuration["graphics_clock_mhz"], measured.observed_clock_mhz
    asked = board("a100").graphics_clocks_mhz()[-1] if asked == "untouched" else float(asked)
    return abs(observed - asked) < 1 or (observed < asked and bool(measured.event_reasons & LIMITING))


def settled_power_w(gpu: SimulatedGpu, clock_mhz: float) -> float:
    """What the board's own sensor would say of the full load after minutes at a clock."""
    [row] = [row for row in truth(gpu.twin, "full_load") if row["clock_mhz"] == clock_mhz]
    return float(row["power_w"]) * gpu.twin.sensors.gain


@pytest.mark.parametrize("name", twin_names())
def test_every_board_reads_near_its_settled_power_at_a_locked_clock(name: str) -> None:
    gpu = board(name)
    clocks = gpu.graphics_clocks_mhz()
    wanted = clocks[len(clocks) * 2 // 3] if gpu.twin.clocks.lockable else clocks[-1]
    with DeviceGuard(gpu) as guard:
        if gpu.twin.clocks.lockable:
            guard.apply(graphics_clock_mhz=wanted)
        meter = Meter(gpu)
        assert meter.warm(full_load())
        window = meter.measure(full_load())
    assert window is not None
    assert window.observed_clock_mhz == pytest.approx(wanted, abs=1)
    assert window.power_w == pytest.approx(settled_power_w(gpu, wanted), rel=0.025)
    assert window.power_source
    low, high = window.power_interval_w or (0.0, 0.0)
    assert 0 < high - low < 0.03 * window.power_w


def test_a_capped_board_is_measured_at_rest() -> None:
    gpu = board("h200")
    with DeviceGuard(gpu) as guard:
        guard.apply(power_limit_w=400.0)
        window = Meter(gpu).measure(full_load())
    assert window is not None
    assert window.event_reasons & EventReason.POWER_CAP
    assert window.settled
    assert window.power_w / gpu.twin.sensors.gain == pytest.approx(400.0, rel=0.02)
    assert window.observed_clock_mhz < gpu.graphics_clocks_mhz()[-1]


def test_a_session_measures_speed_and_energy_and_keeps_what_the_board_refuses(specification: Specification) -> None:
    gpu = board("a100")
    plan = plan_specification(specification, gpu)
    with Store() as store:
        result = run_session(plan, store, Listener(), threading.Event())
        loaded = store.load(result.session)
    assert (result.state, len(result.table)) == (SessionState.DONE, 40)
    assert plan.source == "simulated"
    for index in range(40):
        measured = loaded.table.measurement(index)
        assert measured.source == "simulated"
        if measured.state is not State.OK:
            assert measured.error
            continue
        values = measured.values
        assert values["energy_j"] == pytest.approx(values["power_w"] * values["time_s"])
        assert values["GFLOPS/W"] == pytest.approx(2 * 4096**3 / values["energy_j"] / 1e9)
        assert runs_as_asked(measured)
        low, high = measured.intervals["GFLOPS/W"]
        assert low < values["GFLOPS/W"] < high
        assert "polled" in measured.power_source
        start, end = measured.window_ns or (0, 0)
        assert end - start >= 0.9e9
    summary = session_summary(loaded.table, plan, session=result.session, seconds=result.progress.elapsed_s)
    assert len(summary["front"]) >= 2
    assert summary["best"]["values"]["GFLOPS/W"] == pytest.approx(result.progress.best_value)


def test_a_senseless_value_costs_its_configuration_not_the_session(tmp_path: Path) -> None:
    odd = GEMM.replace("block_size_y = [4, 8, 16, 32]", "block_size_y = [4, 8.5]").replace("[16, 32, 64]", "[32]")
    with Store() as store:
        plan = plan_specification(
            written(tmp_path, odd), board("h200"), SearchOptions(strategy="brute_force", max_evaluations=500)
        )
        table = run_session(plan, store, Listener(), threading.Event()).table
    states = {m.configuration["block_size_y"]: m.state for m in map(table.measurement, range(len(table)))}
    assert states[8.5] is State.CONSTRAINTS
    assert states[4] is State.OK


def test_the_same_seeds_measure_the_same(
    specification: Specification, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def values(data: str) -> list[tuple[int, dict[str, float]]]:
        monkeypatch.setenv("WATTRIDGE_DATA", str(tmp_path / data))  # where nothing was learnt of the board before
        plan = plan_specification(specification, board("h200", seed=5), SearchOptions(max_evaluations=12))
        with Store() as store:
            table = run_session(plan, store, Listener(), threading.Event()).table
        return [(m.row, dict(m.values)) for m in (table.measurement(i) for i in range(len(table)))]

    assert values("one") == values("other")


def test_clocks_change_once_per_setting_and_are_put_back(specification: Specification) -> None:
    gpu = board("a100")
    changes: list[int | None] = []
    lock = gpu.lock_graphics_clock
    gpu.lock_graphics_clock = lambda clock: (changes.append(clock), lock(clock))[1]  # type: ignore[method-assign]
    plan = plan_specification(specification, gpu)
    runner = plan.boards.runner(plan)
    rows = [row for row in range(plan.space.size) if row % 37 == 0]
    measured = [m.row for m in runner.measure(rows, threading.Event())]
    runner.close()
    assert sorted(measured) == rows
    assert changes[-1] is None
    assert len(changes) == len(set(changes)) <= 6


def test_a_session_cut_short_goes_on_on_the_same_board(specification: Specification) -> None:
    stop = threading.Event()
    with Store() as store:
        plan = plan_specification(specification, board("h200"))
        cut = run_session(plan, store, lambda event: stop.set(), stop)
        assert cut.state is SessionState.STOPPED
        before = [int(row) for row in cut.table.rows()]
        resumed = plan_resume(store, cut.session, gpu=board("h200"))
        result = run_session(resumed, store, Listener(), threading.Event())
        assert result.table.rows()[: len(before)].tolist() == before
        assert len(set(result.table.rows().tolist())) == len(result.table) == 40
        with pytest.raises(InputError, match="another board"):
            plan_resume(store, cut.session, gpu=board("a100"))
        real = board("h200")
        real.info = replace(real.info, source="nvml")
        with pytest.raises(InputError, match=r"another board, NVIDIA H200 \(simulated\)"):
            plan_resume(store, cut.session, gpu=real)


@pytest.mark.parametrize(("name", "low", "high"), [("a100", 985, 1080), ("a4000", 1250, 1390)])
def test_a_sweep_finds_the_most_efficient_clock_through_the_sensors(name: str, low: float, high: float) -> None:
    gpu = board(name)
    steps: list[tuple[int, int]] = []
    fit, source = fit_of_sweep(gpu, on_progress=lambda *at: steps.append(at))
    assert fit.identifiable
    assert fit.simulated
    assert "simulated" in source
    assert fit.optimum_mhz is not None
    assert low <= fit.optimum_mhz <= high
    energy = {row["clock_mhz"]: row["power_w"] / row["rate"] for row in truth(gpu.twin, "full_load")}
    assert fit.recommended_clock_mhz in energy
    assert energy[fit.recommended_clock_mhz] / min(energy.values()) - 1 < 0.01
    assert steps[-1][0] == steps[-1][1]


def test_ridge_keeps_a_session_to_the_clocks_of_the_model(tmp_path: Path) -> None:
    steered = written(tmp_path, GEMM.replace("{ points = 5 }", '"ridge"'))
    gpu = board("a100")
    plan = plan_specification(steered, gpu)
    [clocks] = [p.values for p in plan.space.parameters if p.name == "graphics_clock_mhz"]
    *clocks, own = clocks
    assert own == "untouched", "the board's own state is measured beside them"
    assert set(clocks) < set(gpu.graphics_clocks_mhz())
    assert 850 < min(clocks) < 1000 < max(clocks) < 1200  # type: ignore[type-var]
    assert any("left out" in note for note in space_of(steered, gpu).notes)


def test_steering_replaces_the_clocks_of_the_specification(specification: Specification) -> None:
    plan = plan_specification(
        specification, board("a100"), SearchOptions(device_settings={"graphics_clock_mhz": [1005, 1020]})
    )
    assert plan.space.parameters[-1].values == (1005, 1020, "untouched")


def test_a_space_can_be_looked_at_without_a_board(specification: Specification) -> None:
    without = space_of(specification)
    assert any("8.0" in note for note in without.notes)
    assert any("graphics_clock_mhz" in note for note in without.notes)
    assert without.size * (5 + 1) == space_of(specification, board("a100")).size, "five clocks and the untouched board"


def test_what_a_simulated_board_cannot_run_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="profile"):
        plan_specification(written(tmp_path, GEMM.replace('profile = "gemm"', "")), board("a100"))
    with pytest.raises(InputError, match="nonsense"):
        plan_specification(
            written(tmp_path, GEMM.replace('maximise = "GFLOPS/W"', 'maximise = "nonsense"')), board("a100")
        )


def test_the_engine_thread_fits_and_sets_between_sessions(specification: Specification) -> None:
    heard, gpu = Listener(), board("a100")
    with Store() as store:
        guard = DeviceGuard(gpu)
        tuner = Tuner(store, heard, guard_of=lambda _: guard)
        tuner.start()
        try:
            tuner.submit(Apply(gpu.info.uuid, {"graphics_clock_mhz": 1005, "power_limit_w": 200.0}))
            applied = heard.wait_for(SettingApplied)
            assert applied.applied == {"power_limit_w": 200.0, "graphics_clock_mhz": 1005}
            assert applied.obeyed
            tuner.submit(Fit(board=gpu.info.uuid))
            finished = heard.wait_for(FitFinished, timeout=30)
            assert heard.of(FitProgress)[-1] == FitProgress(10, 10)
            kept = latest_fit(store, gpu.info.name)
            assert kept is not None
            assert kept[0].ridge_mhz == finished.fit.ridge_mhz
            assert kept[0].power([1000.0]) == pytest.approx(finished.fit.power([1000.0]))
            assert DeviceGuard(gpu).watch().observed["graphics_clock_mhz"] == 1005  # as it was before the sweep
            tuner.submit(Apply(gpu.info.uuid, reset=True))
            heard.wait_for(SettingApplied, lambda e: e.applied == {})
            tuner.submit(Start(plan_specification(specification, gpu, SearchOptions(max_evaluations=60))))
            session = heard.wait_for(SessionStarted).session
            tuner.submit(Fit(board=gpu.info.uuid))
            heard.wait_for(FitFinished, lambda e: e is not finished, timeout=30)
            ended = heard.wait_for(SessionChanged, lambda e: e.progress.state is SessionState.DONE, timeout=30)
            assert ended.progress.evaluated == 60
            table = store.load(session).table
            assert all(runs_as_asked(table.measurement(index)) for index in range(60))
        finally:
            tuner.stop()
            tuner.join(10)
        assert heard.of(EngineFault) == []


class SlowClock(VirtualClock):
    """So slow that a test can act during a sweep."""

    def wait(self, seconds: float, stop: threading.Event | None = None) -> bool:
        threading.Event().wait(0.002)
        return super().wait(seconds, stop)


def test_stopping_a_sweep_leaves_the_session_that_waits_for_it(specification: Specification) -> None:
    heard, gpu = Listener(), SimulatedGpu(load_twin("a100"), clock=SlowClock())
    with Store() as store:
        tuner = Tuner(store, heard, guard_of=lambda _: DeviceGuard(gpu))
        tuner.start()
        try:
            tuner.submit(Start(plan_specification(specification, gpu, SearchOptions(max_evaluations=20))))
            heard.wait_for(SessionStarted)
            tuner.submit(Fit(board=gpu.info.uuid))
            heard.wait_for(FitProgress)
            tuner.submit(Stop())
            heard.wait_for(FitFailed)
            ended = heard.wait_for(SessionChanged, lambda e: not e.progress.state.alive, timeout=30)
            assert (ended.progress.state, ended.progress.evaluated) == (SessionState.DONE, 20)
        finally:
            tuner.stop()
            tuner.join(10)


def test_a_sweep_can_be_stopped(tmp_path: Path) -> None:
    heard = Listener()
    with Store() as store:
        gpu = SimulatedGpu(load_twin("h200"), clock=SlowClock())
        tuner = Tuner(store, heard, guard_of=lambda _: DeviceGuard(gpu))
        tuner.start()
        tuner.submit(Fit(board=gpu.info.uuid))
        heard.wait_for(FitProgress)
        tuner.submit(Stop())
        assert "stopped" in heard.wait_for(EngineFault).what
        assert heard.of(FitProgress)[0] == FitProgress(0, 10), "it is announced before the first clock is measured"
        heard.wait_for(FitFailed)
        tuner.stop()
        tuner.join(10)
    assert heard.of(FitFinished) == []


def test_a_session_of_one_kernel_over_clocks_is_fitted(tmp_path: Path) -> None:
    one_kernel = (
        GEMM.replace("[16, 32, 64]", "32")
        .replace("[4, 8, 16, 32]", "8")
        .replace("[1, 2, 4, 8]", "4")
        .replace("[1, 4]", "4")
        .replace("points = 5", "points = 14")
        .replace("random_sample", "brute_force")
    )
    with Store() as store:
        plan = plan_specification(written(tmp_path, one_kernel), board("a100"))
        session = run_session(plan, store, Listener(), threading.Event()).session
        fit, source = fit_of_session(store.load(session))
    assert fit.identifiable
    assert (fit.gpu, fit.simulated) == (plan.gpu, True)
    assert "simulated" in source


def test_boards_that_cannot_run_kernels_are_distinguished(
    specification: Specification, libraries: Callable[..., None]
) -> None:
    libraries()

    class OnlyLooking:
        def __init__(self, source: Source) -> None:
            self.info = GpuInfo(0, "GPU-0", "Some board", source, "580", PowerLimit(None, None, None, None))

    with pytest.raises(WattridgeError, match="a recording cannot run kernels"):
        plan_specification(specification, OnlyLooking("recorded"))  # type: ignore[arg-type]
    with pytest.raises(WattridgeError, match="PyCUDA") as refused:
        require_language(specification, OnlyLooking("nvml"), limits_of((9, 0)))  # type: ignore[arg-type]
    assert "simulated" in refused.value.remedy


def test_on_a_real_board_the_clocks_stay_as_they_are_and_the_session_says_so(
    specification: Specification, monkeypatch: pytest.MonkeyPatch
) -> None:
    class RealBoard:
        info = GpuInfo(0, "GPU-0", "Some board", "nvml", "580", PowerLimit(None, None, None, None), (9, 0))

    monkeypatch.setattr("app.engine.runner.cuda.language.require_cuda", lambda gpu: None)
    plan = plan_specification(specification, RealBoard())  # type: ignore[arg-type]
    assert not any(parameter.device_setting for parameter in plan.space.parameters)
    assert any("stay as they are" in note for note in plan.space.notes)
