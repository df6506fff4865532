"""`auto` with a front over clocks: how far above the least energy it is after some measurements. By hand:

    PYTHONPATH=. python tests/benchmarks/fronts_over_clocks.py [MEASURED [SEEDS [BOARDS [EXAMPLES]]]]

Whole spaces of the examples are measured on simulated boards first, as their sensors see them (minutes for the large
ones). Printed of each seed: how far the least energy measured lies above the least there is, after how many rows it was
within 1 %, how many rows were timed, and the share of the front's area in log time and log energy; then the same with
the energy as the only goal.
"""

from __future__ import annotations

import os
import sys
import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np  # noqa: E402

import app.engine.strategies  # noqa: E402, F401  (registers them)
from app.base.paths import resources  # noqa: E402
from app.engine.control.guard import DeviceGuard  # noqa: E402
from app.engine.results.measurement import Depth, Measurement  # noqa: E402
from app.engine.results.objectives import Goal, Objective  # noqa: E402
from app.engine.results.pareto import hypervolume  # noqa: E402
from app.engine.runner.simulated import SimulatedRunner  # noqa: E402
from app.engine.session.load import load_specification  # noqa: E402
from app.engine.session.planning import plan_specification  # noqa: E402
from app.engine.space.search_space import SearchSpace  # noqa: E402
from app.engine.strategies.base import Outcome  # noqa: E402
from app.engine.strategies.recorded_runs import Recorded, run  # noqa: E402
from app.sensors.clock import VirtualClock  # noqa: E402
from app.sensors.simulated.gpu import SimulatedGpu  # noqa: E402
from app.sensors.simulated.twin import load_twin  # noqa: E402

ENERGY, TIME = Goal("energy_j", maximise=False), Goal("time_s", maximise=False)
SMALLER = (False, False)


@dataclass(frozen=True)
class Measurements:
    """Implements `Allowance`: so many rows measured, however many are timed."""

    budget: float

    def spent(self, rows: Sequence[int], depth: Depth) -> float:
        return len(rows) * (1.0 if depth is Depth.ENERGY else 1e-9)


def whole(board: str, example: str) -> tuple[SearchSpace, list[Measurement], list[Measurement]]:
    """Every row of an example measured, and timed."""
    gpu = SimulatedGpu(load_twin(board), seed=1, clock=VirtualClock())
    specification = load_specification(resources() / "examples" / f"{example}.toml")
    plan = plan_specification(specification, gpu)
    runner = SimulatedRunner(gpu, specification, plan.space, DeviceGuard(gpu))
    rows, stop = range(plan.space.size), threading.Event()
    measured, timed = (sorted(of(rows, stop), key=lambda m: m.row) for of in (runner.measure, runner.time))
    runner.close()
    return plan.space, measured, timed


def report(board: str, example: str, most: int, seeds: int) -> None:
    space, measured, timed = whole(board, example)
    costs = np.array([[m.values.get(name, np.inf) for name in ("time_s", "energy_j")] for m in measured])
    logs, energy = np.log(costs), costs[:, 1]
    least, works = energy[np.isfinite(energy)].min(), np.isfinite(costs).all(axis=1)
    corner = tuple(np.median(logs[works], axis=0).tolist())
    area = hypervolume(logs[works], SMALLER, corner)
    print(f"{example} on {board} (simulated): {space.size} rows, {most} measured")
    for words, objective in (("front", Objective(ENERGY, front=(TIME, ENERGY))), ("energy", Objective(ENERGY))):
        outcomes = [tuple(Outcome.of(m, objective) for m in each) for each in (measured, timed)]
        recorded = Recorded(example, space, outcomes[0], None, outcomes[1])
        for seed in range(seeds):
            rng = np.random.default_rng((seed, zlib.crc32(f"{board} {example}".encode())))
            looks = list(run("auto", {}, recorded, Measurements(most), rng, 4, can_time=True))
            rows = [row for row, depth in looks if depth is Depth.ENERGY]
            good = np.flatnonzero(energy[rows] <= 1.01 * least)
            after = f"within 1 % after {good[0] + 1}" if len(good) else "never within 1 %"
            share = hypervolume(logs[rows][works[rows]], SMALLER, corner) / area
            over = f"{energy[rows].min() / least - 1:5.1%} over, {after}"
            print(
                f"  {words:6} seed {seed}: {over}, {len(looks) - len(rows)} timed, {share:.3f} of the area", flush=True
            )


def main(most: str = "60", seeds: str = "5", boards: str = "h200,a100", examples: str = "gemm") -> None:
    for board in boards.split(","):
        for example in examples.split(","):
            report(board, example, int(most), int(seeds))


if __name__ == "__main__":
    main(*sys.argv[1:])
