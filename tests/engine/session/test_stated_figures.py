"""Energy and power of a session hold at a stated thermal condition: of boards whose truth is known."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

import pytest
from fixtures.engine_fakes import Listener, run

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.formats.read import read_recording
from app.engine.metering.condition import Condition
from app.engine.metering.thermal import ThermalModel
from app.engine.report.export import export_session
from app.engine.results.measurement import THERMAL_CORRECTION, Measurement, State
from app.engine.results.state import SessionState
from app.engine.runner.kernels.reference import Baseline
from app.engine.runner.stating import UNCERTAINTY, Statement
from app.engine.session.events import Event, FiguresRestated, MeasurementsAdded, SessionChanged
from app.engine.session.live_session import SessionResult
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_replay, plan_resume, plan_specification
from app.engine.session.run import run_session
from app.engine.session.stored import restated
from app.engine.session.summary import session_summary
from app.engine.specification.plan import SearchOptions, SessionPlan
from app.engine.store.database import Store
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.clock import VirtualClock
from app.sensors.event_reasons import LIMITING
from app.sensors.simulated import laws
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import full_load
from app.sensors.simulated.twin import load_twin

FIGURES = (
    *("time_s", "power_w", "energy_j", "energy_raw_j", "power_raw_w", THERMAL_CORRECTION, UNCERTAINTY, "aftereffect_w"),
    *("temperature_c", "memory_temperature_c", "recent_power_1s_w", "recent_power_30s_w"),
)
EXAMPLE = resources() / "examples" / "gemm.toml"
# at a clock that is low enough for few kernels to reach the power limit, where nothing is corrected
SPECIFICATION = replace(load_specification(EXAMPLE), device_settings={"graphics_clock_mhz": (1005,)})


def board(name: str, seed: int = 1, *, heated_s: float = 0.0) -> SimulatedGpu:
    """A board that had idled, or run its heaviest load for so long."""
    gpu = SimulatedGpu(load_twin(name), seed=seed, clock=VirtualClock())
    if heated_s:
        gpu.begin(full_load())
        gpu.clock.wait(heated_s)
        gpu.end()
    return gpu


def planned(gpu: SimulatedGpu, count: int = 24, **options: object) -> SessionPlan:
    wanted = SearchOptions(strategy="random_sample", max_evaluations=count, **options)  # type: ignore[arg-type]
    return plan_specification(SPECIFICATION, gpu, wanted)


def measurements(result: SessionResult) -> list[Measurement]:
    return [result.table.measurement(index) for index in range(len(result.table))]


def true_energy_j(gpu: SimulatedGpu, measurement: Measurement, temperature_c: float) -> float:
    """Of one launch on a board at that temperature."""
    load = ProfiledKernel.of(SPECIFICATION, gpu.limits).prepare(measurement.configuration)
    clock_mhz = float(measurement.configuration["graphics_clock_mhz"])
    point = laws.under_load(gpu.twin, load, clock_mhz, float(gpu.twin.clocks.memory_mhz[-1]))
    return laws.power_w(gpu.twin, point, temperature_c) * point.launch_s


@pytest.mark.parametrize("heated_s", [0.0, 60.0], ids=["cold", "hot"])
@pytest.mark.parametrize(("name", "temperature_c"), [("a100", 30.0), ("a100", 62.0), ("h200", 34.0), ("h200", 62.0)])
def test_a_session_states_what_its_kernels_draw_at_another_temperature(
    name: str, temperature_c: float, heated_s: float
) -> None:
    errors, raw_errors, covered, halves = [], [], [], []
    for seed in range(3):
        gpu = board(name, seed, heated_s=heated_s)
        result = run(planned(gpu, seed=seed, condition=Condition(gpu_c=temperature_c)))
        for measurement in measurements(result):
            if measurement.state is not State.OK or measurement.event_reasons & LIMITING:
                continue
            values, true_j = measurement.values, true_energy_j(gpu, measurement, temperature_c)
            low_j, high_j = measurement.intervals["energy_j"]
            errors.append(abs(values["energy_j"] / true_j - 1))
            raw_errors.append(abs(values["energy_raw_j"] / true_j - 1))
            covered.append(low_j <= true_j <= high_j)
            halves.append((high_j - low_j) / 2 / values["energy_j"])
    assert len(errors) >= 60
    assert median(errors) < max(median(raw_errors), 0.004)
    assert fmean(covered) >= 0.9
    assert median(halves) < 0.07, "up to 30 °C from where the board was"


def test_every_figure_of_a_session_agrees_with_its_corrected_power() -> None:
    gpu = board("a100")
    for m in measurements(run(planned(gpu, condition=Condition(gpu_c=70.0)))):
        values = m.values
        assert values["power_w"] == pytest.approx(values["power_raw_w"] * values[THERMAL_CORRECTION])
        assert values["energy_j"] == pytest.approx(values["power_w"] * values["time_s"])
        assert values["energy_raw_j"] == pytest.approx(values["power_raw_w"] * values["time_s"])
        assert values["GFLOPS/W"] == pytest.approx(2 * 4096**3 / values["energy_j"] / 1e9)
        assert values["GFLOP/s"] == pytest.approx(2 * 4096**3 / values["time_s"] / 1e9)
        low, high = m.intervals["GFLOPS/W"]
        assert low < values["GFLOPS/W"] < high
        if m.event_reasons & LIMITING:
            assert values[THERMAL_CORRECTION] == 1.0, "at a limit the power is the limit's"
        else:
            assert values[THERMAL_CORRECTION] > 1.0, "a warm board draws more"
        assert 0.005 < values[UNCERTAINTY] < 0.1


def test_all_figures_are_corrected_at_the_end_in_table_store_and_events() -> None:
    listener = Listener()
    result = run(planned(board("a100")), listener)
    [event] = listener.of(FiguresRestated)
    ended = listener.of(SessionChanged)[-1]
    assert listener.events.index(event) < listener.events.index(ended)
    assert listener.events.index(listener.of(MeasurementsAdded)[-1]) < listener.events.index(event)
    assert event.table is result.table
    assert event.plan.origin["condition"]
    assert event.progress.best_value == ended.progress.best_value
    assert len(result.table) == 24, "what is measured again at the end is no evaluation"
    with Store() as store:
        loaded = store.load(result.session)
    assert loaded.record.origin == event.plan.origin
    for index, measurement in enumerate(measurements(result)):
        assert loaded.table.measurement(index).values == measurement.values
        assert loaded.table.measurement(index).intervals == measurement.intervals


def test_intervals_are_narrow_near_the_condition_of_the_session() -> None:
    halves = []
    for m in measurements(run(planned(board("a100")))):
        low, high = m.intervals["energy_j"]
        halves.append((high - low) / 2 / m.values["energy_j"])
    assert 0.008 < median(halves) < 0.016


def by_row(result: SessionResult, name: str) -> Mapping[int, float]:
    return {m.row: m.values[name] for m in measurements(result)}


def test_the_first_session_fixes_the_condition_of_its_board() -> None:
    first = run(planned(board("a100", 1), 12, seed=1))
    second = run(planned(board("a100", 2, heated_s=60.0), 12, seed=2))
    chosen = run(planned(board("a100", 3), 4, seed=3, condition=Condition(gpu_c=33.0, slow_w=80.0)))
    other = run(planned(board("h200", 1), 4, seed=1))
    assert first.plan.origin["condition"] == second.plan.origin["condition"] != other.plan.origin["condition"]
    assert chosen.plan.origin["condition"] == "33 °C, 80 W"
    assert Condition.parse(first.plan.origin["condition"], "").gpu_c > 30


def test_sessions_from_cold_and_hot_agree_more_closely_when_stated_than_as_drawn() -> None:
    plans = [planned(board("a100", seed, heated_s=60.0 * seed), 16, seed=7) for seed in (0, 1)]
    cold, hot = (run(plan) for plan in plans)

    def apart(name: str) -> float:
        one, other = by_row(cold, name), by_row(hot, name)
        assert one.keys() == other.keys()
        return fmean(abs(other[row] / one[row] - 1) for row in one)

    assert apart("energy_j") <= apart("energy_raw_j") * 1.05


@pytest.mark.parametrize("count", [1, 2])
def test_a_session_too_small_to_learn_from_has_wide_intervals(count: int) -> None:
    far = Condition(gpu_c=80.0)
    small = run(planned(board("a100"), count, seed=5, condition=far))
    again = run(planned(board("a100"), 24, seed=5, condition=far))
    assert len(small.table) == count
    rows = by_row(small, UNCERTAINTY)
    assert all(by_row(again, UNCERTAINTY)[row] < uncertainty for row, uncertainty in rows.items())


def test_an_interrupted_session_is_stated_like_a_whole_one_and_goes_on_at_its_condition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.engine.session.run.FLUSH_COUNT", 1)  # every measurement is reported at once
    stop = threading.Event()

    class Interrupted(Listener):
        def __call__(self, event: Event) -> None:
            super().__call__(event)
            if isinstance(event, MeasurementsAdded):
                stop.set()

    listener = Interrupted()
    stopped = run(planned(board("a100"), 20, condition=Condition(gpu_c=44.0)), listener, stop)
    assert stopped.state is SessionState.STOPPED
    assert 0 < len(stopped.table) < 20
    assert all(THERMAL_CORRECTION in m.values for m in measurements(stopped))
    assert len(listener.of(FiguresRestated)) == 1
    with Store() as store:
        plan = plan_resume(store, stopped.session, gpu=board("a100", 9))
        whole = run_session(plan, store, Listener(), threading.Event())
        assert whole.state is SessionState.DONE
        assert whole.plan.origin["condition"] == "44 °C"
        assert len(whole.table) == 20
        _, table = restated(store, whole.session, Condition(gpu_c=44.0))
    for index, m in enumerate(measurements(whole)):
        assert table.measurement(index).values["energy_j"] == pytest.approx(m.values["energy_j"], rel=1e-9)
        raw = {old.row: old.values["energy_raw_j"] for old in measurements(stopped)}
        assert m.values["energy_raw_j"] == raw.get(m.row, m.values["energy_raw_j"]), "what was drawn stays"


def test_a_stored_session_can_be_stated_for_another_condition_and_back() -> None:
    result = run(planned(board("a100"), repeats=2))
    with Store() as store:
        own = Condition.parse(result.plan.origin["condition"], "")
        plan, table = restated(store, result.session, Condition(gpu_c=own.gpu_c + 20))
        _, back = restated(store, result.session, own)
    assert plan.origin["condition"] == f"{own.gpu_c + 20:.0f} °C"
    moved = 0
    for index, m in enumerate(measurements(result)):
        there, here = table.measurement(index), back.measurement(index)
        moved += there.values["energy_j"] > m.values["energy_j"]
        assert there.values["time_s"] == m.values["time_s"]
        assert there.values["energy_raw_j"] == m.values["energy_raw_j"]
        assert here.values == pytest.approx(m.values, rel=1e-9)
        for name, ends in m.intervals.items():
            assert here.intervals[name] == pytest.approx(ends, rel=1e-9)
    assert moved > len(result.table) / 2


@pytest.mark.parametrize("limited", [False, True])
def test_the_vendor_s_library_is_restated_as_the_session_s_own_figures_are(limited: bool) -> None:
    result = run(planned(board("a100"), 12))
    own = next(m for m in map(result.table.measurement, range(len(result.table))) if not m.event_reasons & LIMITING)
    values = {**own.values, THERMAL_CORRECTION: 1.0} if limited else own.values
    library = Baseline("a library 1.0", {name: values[name] for name in FIGURES if name in values}, own.intervals)
    with Store() as store:
        kept = result.plan.origin | library.to_origin()
        store.restate(result.session, [], kept)
        plan, table = restated(store, result.session, Condition(gpu_c=80.0, slow_w=300.0))
    again = Baseline.of_origin(plan.origin)
    assert again is not None
    assert again.library == "a library 1.0"
    there = next(m for m in map(table.measurement, range(len(table))) if m.row == own.row)
    assert there.values["energy_j"] > own.values["energy_j"] * 1.001
    expected = library.values["energy_j"] if limited else there.values["energy_j"]
    assert again.values["energy_j"] == pytest.approx(expected)
    assert again.values["time_s"] == own.values["time_s"]
    if not limited:
        assert again.intervals["energy_j"] == pytest.approx(there.intervals["energy_j"])


def test_what_was_replayed_is_never_corrected(tmp_path: Path) -> None:
    result = run(planned(board("a100"), 6))
    files = export_session(result.plan, result.table, result.session, None, tmp_path)
    cache = next(file for file in files if file.name.endswith("cache.json"))
    before = read_recording(cache).table()
    replayed = run(plan_replay(cache))
    drawn = {m.row: m.values["energy_j"] for m in map(before.measurement, range(len(before)))}
    assert by_row(replayed, "energy_j") == drawn
    with Store() as store, pytest.raises(InputError, match="no thermal model"):
        restated(store, replayed.session, Condition(gpu_c=50.0))


def test_the_document_names_the_condition_and_keeps_its_three_uncertainties_apart() -> None:
    result = run(planned(board("a100"), 12))
    stated = session_summary(result.table, result.plan)["stated_for"]
    assert stated["condition"] == result.plan.origin["condition"]
    assert 30 < stated["gpu_c"] < 90
    assert "memory_c" not in stated, "the simulated board reports none"
    assert 0 < stated["repeatability"] < stated["reproducibility"] < 0.05
    assert stated["gain_error"] is None
    assert not math.isnan(stated["slow_w"])


@pytest.mark.parametrize("scatter", [0.0, 0.5, 3.0])
def test_however_wide_they_are_stated_energies_and_powers_are_not_negative(scatter: float) -> None:
    measured = Measurement(
        row=0,
        configuration={},
        state=State.OK,
        values={"time_s": 1.0, "power_w": 100.0, "energy_j": 100.0, "recent_power_30s_w": 400.0},
        intervals={name: (max(0.0, 100 - 100 * scatter), 100 + 100 * scatter) for name in ("power_w", "energy_j")},
    )
    unsure = replace(ThermalModel(), wander=0.6)
    stated = Statement(Condition(slow_w=100.0), unsure).state(measured, SPECIFICATION)
    assert stated.values[UNCERTAINTY] > 1, "so little is known of the board"
    for name in ("power_w", "energy_j"):
        low, high = stated.intervals[name]
        assert low == 0
        assert high > 200
    again = Statement(Condition(slow_w=100.0), replace(unsure, wander=0.001)).state(stated, SPECIFICATION)
    for name in ("power_w", "energy_j"):
        assert again.intervals[name][0] == 0, "where the lower end was is not known any more"
        assert again.intervals[name][1] < stated.intervals[name][1]
