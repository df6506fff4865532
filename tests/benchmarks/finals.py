"""Do ratios within a session hold, and do the turns at its end choose right? Simulated boards, whose truth is known.

Run by hand: python tests/benchmarks/finals.py [SESSIONS] [BOARD ...]
Sessions of 60 evaluations by the default strategy, each with another noise. The truth of a row is what the laws of the
twin give on a die of the stated temperature, without noise; rows at a limit are left out. Of each session: pairs of
rows at random, as two measurements of different sessions would be compared, and as two of one session are; the pairs of
the turns; and how far the choice lies above the least of all that contended, before the turns and after.
"""

from __future__ import annotations

import math
import random
import sys
import threading
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

from app.base.paths import resources
from app.engine.analysis.difference import Difference, difference, relative_half_width
from app.engine.analysis.finals import Finals
from app.engine.analysis.iso_lines import Role
from app.engine.analysis.standing import ratio
from app.engine.runner.stating import Statement
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.space.search_space import SearchSpace
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.clock import VirtualClock
from app.sensors.simulated import laws
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import Twin, load_twin

BOARDS = ("h200", "a100", "v100", "rtx5090", "a4000")
EVALUATIONS, PAIRS = 60, 40
EXAMPLES = ("gemm", "convolution")


def truth_of(twin: Twin, kernel: ProfiledKernel, space: SearchSpace, gpu_c: float) -> Callable[[int], float]:
    """Joules of a launch on a die of that temperature; NaN where a limit holds the clock back."""

    def joules(row: int) -> float:
        configuration = space.configuration(row)
        clock = configuration.get("graphics_clock_mhz", "untouched")
        mhz = twin.clocks.graphics_mhz[-1] if clock == "untouched" else int(clock)
        load, memory_mhz = kernel.prepare(configuration), twin.clocks.memory_mhz[-1]
        limited = laws.settled_under_limits(twin, load, mhz, memory_mhz, twin.power.limit_default_w)[2]
        point = laws.under_load(twin, load, mhz, memory_mhz)
        return math.nan if limited else laws.power_w(twin, point, gpu_c) * point.launch_s

    return joules


def said(name: str, known: Sequence[tuple[Difference, float]]) -> None:
    held = [low <= true <= high for each, true in known if each.interval for low, high in [each.interval]]
    errors = [abs(each.change - true) for each, true in known]
    halves = [each.half_width for each, _ in known if each.interval]
    if held:
        line = f"{100 * sum(held) / len(held):5.1f} % of {len(held):4} hold, half-width {100 * median(halves):.2f} %"
        print(f"  {name:34} {line}, error {100 * median(errors):.2f} (95th {100 * np.quantile(errors, 0.95):.2f}) %")


def main() -> None:
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    for name in sys.argv[2:] or BOARDS:
        twin = load_twin(name)
        apart: list[tuple[Difference, float]] = []
        within: list[tuple[Difference, float]] = []
        turns: list[tuple[Difference, float]] = []
        before: list[float] = []
        after: list[float] = []
        seconds: list[float] = []
        for seed in range(sessions):
            spec = load_specification(resources() / "examples" / f"{EXAMPLES[seed % len(EXAMPLES)]}.toml")
            gpu = SimulatedGpu(twin, seed=seed, clock=VirtualClock())
            with Store() as store:
                options = SearchOptions(max_evaluations=EVALUATIONS, seed=seed, strategy="auto")
                plan = plan_specification(spec, gpu, options)
                result = run_session(plan, store, lambda _: None, threading.Event())
                table = store.load(result.session).table
            statement = Statement.of_origin(table.origin)
            gpu_c = 50.0 if statement is None else statement.condition.gpu_c
            joules = truth_of(twin, ProfiledKernel.of(spec, twin.limits), plan.space, gpu_c)
            worked = [at for at in range(len(table)) if "energy_j" in table.measurement(at).values]
            worked = [at for at in worked if joules(table.measurement(at).row) > 0]
            rng = random.Random(seed)
            for one, other in (rng.sample(worked, 2) for _ in range(PAIRS)):
                first, second = (table.measurement(at) for at in (one, other))
                true = joules(second.row) / joules(first.row) - 1
                values = first.values["energy_j"], second.values["energy_j"]
                halves = relative_half_width(first, "energy_j"), relative_half_width(second, "energy_j")
                apart.append((difference(*values, math.hypot(*halves)), true))
                pair = np.array([one]), np.array([other])
                within.append((ratio(table, pair, values, "energy_j", Role.ENERGY), true))
            finals = Finals.of_origin(table.origin)
            if finals is None or any(math.isnan(joules(row)) for row in finals.rows):
                continue
            seconds.append(finals.seconds)
            turns += [
                (beaten.of(Role.ENERGY), joules(beaten.row) / joules(finals.winner) - 1) for beaten in finals.others
            ]
            least = min(map(joules, finals.rows))
            at_first = {
                each.row: each.as_measured.get("energy_j", each.values["energy_j"])
                for each in map(table.measurement, range(len(table)))
                if each.row in finals.rows
            }
            before.append(joules(min(at_first, key=lambda row: at_first[row])) / least - 1)
            after.append(joules(finals.winner) / least - 1)
        print(f"{name}, {sessions} sessions, finals in {len(seconds)}, {median(seconds or [0.0]):.1f} s on the board")
        said("by the intervals of each alone", apart)
        said("as a ratio within the session", within)
        said("in turns", turns)
        if before:
            wrong = sum(value > 0 for value in before), sum(value > 0 for value in after)
            words = f"mean {100 * np.mean(before):.2f} % -> {100 * np.mean(after):.2f} %"
            print(f"  choice above the least: {words}; not the least in {wrong[0]} -> {wrong[1]}")


if __name__ == "__main__":
    main()
