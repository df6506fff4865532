"""A board's first session knows its sensor by a quick look alone: its figures hold at once, and narrower at its end."""

from __future__ import annotations

import threading
from dataclasses import replace
from statistics import fmean, median

import pytest
from fixtures.engine_fakes import Listener

from app.base.paths import resources
from app.engine.metering.characterisation.characterise import wave_loads
from app.engine.metering.characterisation.quick_look import quick_look
from app.engine.metering.characterisation.store import save_characterisation
from app.engine.metering.condition import Condition
from app.engine.results.measurement import Measurement, State
from app.engine.session.events import FiguresRestated, SessionStarted
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.space.result_table import ResultTable
from app.engine.specification.model import Specification
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.clock import VirtualClock
from app.sensors.event_reasons import LIMITING
from app.sensors.simulated import laws
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

EXAMPLE = load_specification(resources() / "examples" / "gemm.toml")
STATED_C = 45.0


def at_a_low_clock(gpu: SimulatedGpu) -> Specification:
    """So that few kernels reach the power limit, where nothing is corrected."""
    clocks = gpu.twin.clocks.graphics_mhz
    low = max(clock for clock in clocks if clock <= 0.7 * clocks[-1])
    return replace(EXAMPLE, device_settings={"graphics_clock_mhz": (low,)} if gpu.twin.clocks.settable else {})


def true_energy_j(gpu: SimulatedGpu, spec: Specification, measured: Measurement) -> float:
    """Of one launch at the stated temperature."""
    load = ProfiledKernel.of(spec, gpu.limits).prepare(measured.configuration)
    clock_mhz = float(measured.configuration.get("graphics_clock_mhz", gpu.twin.clocks.graphics_mhz[-1]))
    point = laws.under_load(gpu.twin, load, clock_mhz, float(gpu.twin.clocks.memory_mhz[-1]))
    return laws.power_w(gpu.twin, point, STATED_C) * point.launch_s


def half_j(measured: Measurement) -> float:
    low_j, high_j = measured.intervals["energy_j"]
    return (high_j - low_j) / 2


@pytest.mark.parametrize("name", ["a100", "h200", "titan_rtx", "v100"])
def test_figures_hold_after_a_quick_look_alone_and_are_narrower_once_the_session_has_learnt(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = SimulatedGpu(load_twin(name), seed=2, clock=VirtualClock())
    found = quick_look(gpu, wave_loads(gpu), seed=2)
    assert found is not None
    save_characterisation(found)
    spec = at_a_low_clock(gpu)
    monkeypatch.setattr("app.engine.session.run.FLUSH_COUNT", 1)  # every measurement is reported at once
    listener = Listener()
    options = SearchOptions(strategy="random_sample", max_evaluations=20, seed=2, condition=Condition(gpu_c=STATED_C))
    with Store() as store:
        result = run_session(plan_specification(spec, gpu, options), store, listener, threading.Event())
    [started], [restated] = listener.of(SessionStarted), listener.of(FiguresRestated)
    assert restated.table is result.table
    at_once, ended = {each.row: each for each in of(started.table)}, of(result.table)
    assert len(ended) == 20
    covered_at_once, covered, narrower = [], [], []
    for last in ended:
        first, true_j = at_once[last.row], true_energy_j(gpu, spec, last)
        assert last.power_source.endswith("after a quick look"), "where the figures come from is said"
        covered_at_once.append(abs(first.values["energy_j"] - true_j) <= half_j(first))
        covered.append(abs(last.values["energy_j"] - true_j) <= half_j(last))
        narrower.append(half_j(last) / half_j(first))
    assert fmean(covered_at_once) >= 0.93
    assert fmean(covered) >= 0.93
    assert median(narrower) < 0.9
    assert restated.plan.origin["condition"] == "45 °C", "and so is how they were stated again"
    assert "thermal_model" in restated.plan.origin


def of(table: ResultTable) -> list[Measurement]:
    """Those that no limit held back."""
    every = (table.measurement(index) for index in range(len(table)))
    return [each for each in every if each.state is State.OK and not each.event_reasons & LIMITING]
