"""Sessions on simulated boards against references that share nothing with the program's meter.

A reference is a loop of its own on the simulated board: a kernel alone, from idle or after heavy work, for 5 s:
the mean of the power that the board's sensor reports in the last two, times the time of a launch. Its condition is what
the board reports then. A session that ran on a board as cold or as hot as may be states its figures for that condition.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace
from statistics import fmean, median

import pytest
from fixtures.engine_fakes import Listener
from fixtures.simulated import board

from app.base.paths import resources
from app.engine.metering.condition import Condition
from app.engine.results.measurement import Configuration
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.session.stored import restated
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.event_reasons import LIMITING
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import full_load

EXAMPLE = load_specification(resources() / "examples" / "gemm.toml")
CONFIGURATIONS = 16
REFERENCES = 8  # of them, each from idle and hot
CLOCK_SHARE = 0.7  # of the highest: few kernels reach the power limit, where nothing is corrected
HEATED_S = 90.0


@dataclass
class Reference:
    energy_j: float
    condition: Condition


def heat(gpu: SimulatedGpu, seconds: float) -> None:
    gpu.begin(full_load())
    gpu.clock.wait(seconds)
    gpu.end()


def clock_of(gpu: SimulatedGpu) -> int:
    clocks = gpu.graphics_clocks_mhz()
    return min(clocks, key=lambda clock: abs(clock - CLOCK_SHARE * max(clocks)))


def refer(name: str, configuration: Configuration, *, hot: bool) -> Reference | None:
    """A kernel alone; None where a limit acted."""
    gpu = board(name, seed=1234)
    names = [channel.name for channel in gpu.channels]
    power = "power_instant_w" if "power_instant_w" in names else "power_average_w"
    gpu.lock_graphics_clock(clock_of(gpu))
    if hot:
        heat(gpu, HEATED_S)
    else:
        gpu.clock.wait(6.0)
    gpu.begin(ProfiledKernel.of(EXAMPLE, gpu.limits).prepare(configuration))
    fast_w = slow_w = math.nan
    seen: list[tuple[float, float, float, float]] = []
    for step in range(200):  # 40 Hz for 5 s
        gpu.clock.wait(0.025)
        values = dict(zip(names, gpu.read().values, strict=True))
        drawn_w = values[power]
        if math.isnan(fast_w):
            fast_w = slow_w = drawn_w
        fast_w += (drawn_w - fast_w) * (1 - math.exp(-0.025 / 1.0))
        slow_w += (drawn_w - slow_w) * (1 - math.exp(-0.025 / 30.0))
        if int(values["event_reasons"]) & LIMITING:
            return None
        if step >= 120:
            seen.append((drawn_w, values["temperature_c"], fast_w, slow_w))
    time_s = gpu.end().time_s
    power_w, gpu_c, fast_w, slow_w = (fmean(each) for each in zip(*seen, strict=True))
    return Reference(power_w * time_s, Condition(gpu_c=gpu_c, fast_w=fast_w, slow_w=slow_w))


def sessions(store: Store, name: str) -> list[int]:
    """Of the same configurations: on a cold board, on a hot one, on a cold one again."""
    found = []
    for seed, heated in ((1, False), (2, True), (3, False)):
        gpu = board(name, seed)
        if heated:
            heat(gpu, HEATED_S)
        spec = replace(EXAMPLE, device_settings={"graphics_clock_mhz": (clock_of(gpu),)})
        plan = plan_specification(
            spec, gpu, SearchOptions(strategy="random_sample", seed=5, max_evaluations=CONFIGURATIONS)
        )
        found.append(run_session(plan, store, Listener(), threading.Event()).session)
    return found


@pytest.mark.parametrize("name", ["h200", "a100", "a6000", "titan_rtx"])
def test_what_sessions_state_for_the_condition_of_a_reference_is_nearer_to_it_than_what_was_drawn(name: str) -> None:
    errors: dict[str, list[float]] = {"stated": [], "drawn": []}
    covered: list[bool] = []
    halves: list[float] = []
    references: dict[tuple[int, bool], Reference | None] = {}
    with Store() as store:
        numbers = sessions(store, name)
        first = store.load(numbers[0]).table
        rows = {m.row: m.configuration for m in map(first.measurement, range(REFERENCES))}
        for row, configuration in rows.items():
            for hot in (False, True):
                references[row, hot] = refer(name, configuration, hot=hot)
        for number in numbers:
            for (row, _), reference in references.items():
                if reference is None:
                    continue
                _, table = restated(store, number, reference.condition)
                [m] = [m for m in map(table.measurement, range(len(table))) if m.row == row]
                if m.event_reasons & LIMITING:
                    continue
                low_j, high_j = m.intervals["energy_j"]
                halves.append((high_j - low_j) / 2 / m.values["energy_j"])
                covered.append(low_j <= reference.energy_j <= high_j)
                errors["stated"].append(abs(m.values["energy_j"] / reference.energy_j - 1))
                errors["drawn"].append(abs(m.values["energy_raw_j"] / reference.energy_j - 1))
    assert len(covered) >= 24
    assert median(errors["stated"]) < 0.75 * median(errors["drawn"])
    assert fmean(covered) >= 0.9
    assert median(halves) < 0.03, "and not because they hold anything"
