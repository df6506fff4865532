"""What a quick look of 8 s knows of every simulated board, and how often a first session's intervals hold the truth.

Run by hand: PYTHONPATH=. python tests/benchmarks/quick_look.py [SEEDS]. For each simulated board and seed: a quick look
on an empty data folder, then 24 random configurations of the GEMM example at a clock that few of them are held back at.
`at once` is what was reported when a configuration was measured, `at the end` what is stated with all that the session
has learnt; both for 45 degC, where the truth is known. Keep the table in quick_look.txt.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from dataclasses import replace
from statistics import fmean, median

from app.base.paths import resources
from app.engine.metering.characterisation.characterise import wave_loads
from app.engine.metering.characterisation.quick_look import quick_look
from app.engine.metering.characterisation.store import save_characterisation
from app.engine.metering.condition import Condition
from app.engine.results.measurement import Measurement, State
from app.engine.session.events import Event, SessionStarted
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.specification.model import Specification
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.clock import VirtualClock
from app.sensors.event_reasons import LIMITING
from app.sensors.simulated import laws
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin, twin_names

STATED_C = 45.0
CONFIGURATIONS = 24
SEEDS = 10
EXAMPLE = load_specification(resources() / "examples" / "gemm.toml")


def look(gpu: SimulatedGpu, seed: int) -> tuple[float, int, int, float]:
    """Seconds, how many of window and lag lie within their margins, of how many, and the wider margin in ms."""
    found = quick_look(gpu, wave_loads(gpu), seed=seed)
    assert found is not None
    save_characterisation(found)
    sensors, best = gpu.twin.sensors, found.best
    if sensors.buffer is not None:
        true_window_ms, true_lag_ms = sensors.buffer.averages_ms, 0.0
    else:
        assert sensors.instant is not None
        true_window_ms, true_lag_ms = sensors.instant.window_ms, sensors.instant.lag_ms
    assert best.window_ms is not None
    assert best.window_margin_ms is not None
    inside = abs(best.window_ms - true_window_ms) <= best.window_margin_ms
    inside_lag = abs(best.lag_ms - true_lag_ms) <= best.lag_margin_ms
    return found.seconds, inside + inside_lag, 2, max(best.window_margin_ms, best.lag_margin_ms)


def session(gpu: SimulatedGpu, seed: int) -> list[tuple[Measurement, Measurement, float]]:
    """Each configuration as it was reported at once and at the end, with its true energy, J."""
    clocks, settable = gpu.twin.clocks.graphics_mhz, gpu.twin.clocks.settable
    low = max(clock for clock in clocks if clock <= 0.7 * clocks[-1])
    spec = replace(EXAMPLE, device_settings={"graphics_clock_mhz": (low,)} if settable else {})
    options = SearchOptions(
        strategy="random_sample", max_evaluations=CONFIGURATIONS, seed=seed, condition=Condition(gpu_c=STATED_C)
    )
    started: list[SessionStarted] = []

    def note(event: Event) -> None:
        if isinstance(event, SessionStarted):
            started.append(event)

    with Store() as store:
        result = run_session(plan_specification(spec, gpu, options), store, note, threading.Event())
    at_once = started[0].table  # as it was before the figures were stated once more
    rows = {at_once.measurement(at).row: at_once.measurement(at) for at in range(len(at_once))}
    ended = [result.table.measurement(at) for at in range(len(result.table))]
    worked = [each for each in ended if each.state is State.OK and not each.event_reasons & LIMITING]
    return [(rows[each.row], each, true_energy_j(gpu, spec, each)) for each in worked]


def true_energy_j(gpu: SimulatedGpu, spec: Specification, measured: Measurement) -> float:
    load = ProfiledKernel.of(spec, gpu.limits).prepare(measured.configuration)
    clock_mhz = float(measured.configuration.get("graphics_clock_mhz", gpu.twin.clocks.graphics_mhz[-1]))
    point = laws.under_load(gpu.twin, load, clock_mhz, float(gpu.twin.clocks.memory_mhz[-1]))
    return laws.power_w(gpu.twin, point, STATED_C) * point.launch_s


def half(measured: Measurement) -> float:
    low_j, high_j = measured.intervals["energy_j"]
    return (high_j - low_j) / 2 / measured.values["energy_j"]


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    head = ("board", "look s", "margins hold", "widest ms", "cases", "at once %", "half %", "at the end %", "half %")
    widths = (10, 6, 12, 9, 5, 9, 6, 12, 6)
    print("  ".join(word.rjust(width) for word, width in zip(head, widths, strict=True)))
    every: list[tuple[bool, bool]] = []
    for name in twin_names():
        seconds, inside, of, widest, cases = 0.0, 0, 0, 0.0, []
        for seed in range(seeds):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["WATTRIDGE_DATA"] = folder
                gpu = SimulatedGpu(load_twin(name), seed=seed, clock=VirtualClock())
                took_s, good, asked, margin_ms = look(gpu, seed)
                seconds, inside, of, widest = max(seconds, took_s), inside + good, of + asked, max(widest, margin_ms)
                cases += session(gpu, seed)
        held = [(_holds(first, true_j), _holds(last, true_j)) for first, last, true_j in cases]
        every += held
        cells = (
            name,
            f"{seconds:.1f}",
            f"{inside}/{of}",
            f"{widest:.1f}",
            str(len(cases)),
            f"{100 * fmean(first for first, _ in held):.1f}",
            f"{100 * median(half(first) for first, _, _ in cases):.2f}",
            f"{100 * fmean(last for _, last in held):.1f}",
            f"{100 * median(half(last) for _, last, _ in cases):.2f}",
        )
        print("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)), flush=True)
    at_once, at_the_end = (100 * fmean(each[at] for each in every) for at in (0, 1))
    print(f"all {len(every)}: {at_once:.1f} % held at once, {at_the_end:.1f} % at the end")


def _holds(measured: Measurement, true_j: float) -> bool:
    low_j, high_j = measured.intervals["energy_j"]
    return low_j <= true_j <= high_j


if __name__ == "__main__":
    main()
