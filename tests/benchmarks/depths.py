"""`auto` at two depths against `auto` that measures the energy of everything, in board time. By hand:

    PYTHONPATH=. python tests/benchmarks/depths.py [--seeds 50] [--batch 1] [--twins] CACHE [CACHE ...]

Printed of each space: board time until the winner by energy is within 1 % of the best there is (median and quartiles),
looks of both depths until then, and how much worse the winner so far is at any equal board time, on average over the
seeds. A look costs what it costs in the middle of a session on an H200 (`Prices`); as the choices do not depend on it,
the same runs are priced in other ways too. `--twins` adds spaces of simulated boards, whose noise is simulated too.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402

import app.engine.strategies  # noqa: E402, F401  (registers them)
from app.engine.control.guard import DeviceGuard  # noqa: E402
from app.engine.formats.read import read_recording  # noqa: E402
from app.engine.results.measurement import Depth  # noqa: E402
from app.engine.results.objectives import Goal, Objective  # noqa: E402
from app.engine.runner.simulated import SimulatedRunner  # noqa: E402
from app.engine.session.load import load_specification  # noqa: E402
from app.engine.session.planning import plan_specification  # noqa: E402
from app.engine.strategies.base import Outcome  # noqa: E402
from app.engine.strategies.recorded_runs import Recorded, recorded, run  # noqa: E402
from app.sensors.clock import VirtualClock  # noqa: E402
from app.sensors.simulated.gpu import SimulatedGpu  # noqa: E402
from app.sensors.simulated.twin import load_twin  # noqa: E402

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prices:
    """Board time in s of a look at one configuration.

    As measured on an H200 in a session of `auto` over the example's matrix product, without what compilers were waited
    for: medians of 144 rows that were timed (mean 0.067 s: one of 0.1 s per launch takes 0.3 s) and of 60 that were
    measured (mean 0.29 s). A row that is timed and then measured costs both.
    """

    time_s: float = 0.04
    energy_s: float = 0.25

    def of(self, depth: Depth) -> float:
        return self.time_s if depth is Depth.TIME else self.energy_s


@dataclass(frozen=True, slots=True)
class Looked:
    """A row that a strategy looked at, and the board time in s that had passed then."""

    row: int
    depth: Depth
    after_s: float


def run_at_depths(
    strategy: str,
    options: Mapping[str, Any],
    on: Recorded,
    prices: Prices,
    rng: np.random.Generator,
    *,
    until_s: float = math.inf,
    batch: int = 1,
    can_time: bool = True,
    enough: Container[int] = (),
) -> list[Looked]:
    """What a strategy looks at until it ends or the board time is over.

    It ends sooner once one of the rows of `enough` is measured. `can_time` is that of `run`.
    """
    allowance = _BoardTime(until_s, prices, enough)
    looked: list[Looked] = []
    after_s = 0.0
    for row, depth in run(strategy, options, on, allowance, rng, batch, can_time=can_time):
        after_s += prices.of(depth)
        looked.append(Looked(row, depth, after_s))
    return looked


@dataclass(frozen=True, slots=True)
class _BoardTime:
    """Implements `Allowance`: used up once one of the rows of `enough` is measured."""

    budget: float
    prices: Prices
    enough: Container[int]

    def spent(self, rows: Sequence[int], depth: Depth) -> float:
        if depth is Depth.ENERGY and any(row in self.enough for row in rows):
            return math.inf
        return len(rows) * self.prices.of(depth)


GOAL = Goal("energy_j", maximise=False)
WITHIN = 0.01  # of the least energy
MOST_S = 120.0  # of board time
STEP_S = 0.25  # between the points of comparison
FROM_S = 2.5  # ten measurements: the first sample of what measures everything
PRICES = {  # of timing, where measuring costs 0.25 s
    "0.04 s: as measured on an H200, median": Prices(),
    "0.07 s: as measured on an H200, mean": Prices(time_s=0.07),
    "0.03 s: kernels of 5 ms, as on an H200": Prices(time_s=0.03),
    "0.12 s: loading and verifying take twice as long": Prices(time_s=0.12, energy_s=0.30),
    "0.25 s: timing saves nothing": Prices(time_s=0.25),
    "0.07 s, measuring 1.0 s: polled sensors": Prices(energy_s=1.0),
}
TWINS = (("a100", "sgemm"), ("h200", "sgemm"), ("v100", "sgemm"))
SPECIFICATION = """
restrictions = ["32 <= block_size_x * block_size_y <= 1024", "tile_size_x * tile_size_y <= 32"]
[kernel]
name = "sgemm"
source = "sgemm.cu"
problem_size = ["n", "n"]
profile = "gemm"
[constants]
n = 4096
[parameters]
block_size_x = [8, 16, 32, 64, 128]
block_size_y = [2, 4, 8, 16, 32]
tile_size_x = [1, 2, 4, 8]
tile_size_y = [1, 2, 4, 8]
[device_settings]
graphics_clock_mhz = { points = 6 }
[objective]
minimise = "energy_j"
"""


@dataclass(frozen=True)
class Run:
    """The looks of one run; what a winner costs over the least, minus 1."""

    looks: list[Looked]
    over: Floats  # by row

    def curve(self, prices: Prices, points: Floats) -> Floats:
        """How far the winner so far lies above the least energy, at these times; inf before there is one."""
        times, over = self._measured(prices)
        best = np.minimum.accumulate(over)
        at = np.searchsorted(times, points, side="right")
        return np.where(at > 0, best[np.maximum(at, 1) - 1], np.inf)

    def reached(self, prices: Prices) -> float:
        """Board time in s until the winner is good enough; inf where it never was."""
        times, over = self._measured(prices)
        good = np.flatnonzero(over <= WITHIN)
        return float(times[good[0]]) if len(good) else np.inf

    def counts(self) -> tuple[int, int]:
        """Rows measured, rows timed."""
        measured = sum(look.depth is Depth.ENERGY for look in self.looks)
        return measured, len(self.looks) - measured

    def _measured(self, prices: Prices) -> tuple[Floats, Floats]:
        after = np.cumsum([prices.of(look.depth) for look in self.looks])
        whole = np.array([look.depth is Depth.ENERGY for look in self.looks])
        rows = np.array([look.row for look in self.looks])
        return after[whole], self.over[rows[whole]]


def runs(on: Recorded, seeds: int, batch: int, *, can_time: bool) -> list[Run]:
    """`auto` until it is good enough: from then on a winner is taken to stay as it is."""
    costs = on.costs
    over = costs / costs.min() - 1
    enough = frozenset(np.flatnonzero(over <= WITHIN).tolist())
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng((seed, zlib.crc32(on.name.encode())))
        looks = run_at_depths(
            "auto", {}, on, Prices(), rng, until_s=MOST_S, batch=batch, can_time=can_time, enough=enough
        )
        found.append(Run(looks, over))
    return found


def report(on: Recorded, seeds: int, batch: int) -> None:
    costs = on.costs
    good = int((costs <= costs.min() * (1 + WITHIN)).sum())
    began = time.process_time()
    alone, both = (runs(on, seeds, batch, can_time=can_time) for can_time in (False, True))
    thought_s = (time.process_time() - began) / seeds
    print(f"\n{on.name}: {len(costs)} rows, {np.isinf(costs).sum()} failed, {good} within 1 % of the least energy")
    measured = np.median([run.counts() for run in alone], axis=0)[0]
    whole, timed = np.median([run.counts() for run in both], axis=0)
    print(f"  until then: energy only, {measured:g} measured; at two depths, {whole:g} measured and {timed:g} timed")
    heads = f"{'energy only':>20}{'two depths':>20}{'ratio':>7}{'worse by':>20}{'later':>10}"
    print(f"  {'a look at the time costs':58}{heads}")
    points = np.arange(FROM_S, MOST_S, STEP_S)
    for words, prices in PRICES.items():
        one, two = (np.array([run.reached(prices) for run in each]) for each in (alone, both))
        scale = prices.energy_s / Prices().energy_s
        curves = [np.mean([run.curve(prices, points * scale) for run in each], axis=0) for each in (alone, both)]
        behind = curves[1] - curves[0]
        at = int(np.argmax(np.where(np.isfinite(behind), behind, -np.inf)))
        later = float(np.max(behind[points * scale >= np.median(one)]))
        ratio = np.median(two) / np.median(one)
        worst = f"{behind[at]:.2%} at {points[at] * scale:.1f} s"
        print(f"  {words:58}{_spread(one):>20}{_spread(two):>20}{ratio:7.2f}{worst:>20}{later:10.2%}")
    print(f"  thought: {thought_s:.2f} s of processor time for both", flush=True)


def _spread(seconds: Floats) -> str:
    low, middle, high = np.percentile(seconds, [25, 50, 75], method="nearest")
    return f"{middle:.1f} ({low:.1f}..{high:.1f})"


def twins() -> Iterator[Recorded]:
    """Spaces of simulated boards: every row timed, and measured in full, as their sensors see it."""
    for key, kernel in TWINS:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "sgemm.cu").write_text("// costed by its profile\n")
            path = Path(folder) / f"{kernel}.toml"
            path.write_text(SPECIFICATION)
            gpu = SimulatedGpu(load_twin(key), seed=1, clock=VirtualClock())
            spec = load_specification(path)
            plan = plan_specification(spec, gpu)
            runner = SimulatedRunner(gpu, spec, plan.space, DeviceGuard(gpu))
            stop, objective = threading.Event(), Objective(GOAL)
            rows = range(plan.space.size)
            whole = {m.row: Outcome.of(m, objective) for m in runner.measure(rows, stop)}
            timed = {m.row: Outcome.of(m, objective) for m in runner.time(rows, stop)}
            runner.close()
        yield Recorded(
            f"{kernel} on {gpu.info.name} (simulated)",
            plan.space,
            tuple(whole[row] for row in rows),
            None,
            tuple(timed[row] for row in rows),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("caches", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--twins", action="store_true")
    arguments = parser.parse_args()
    print(f"{arguments.seeds} seeds, up to {arguments.batch} rows at once; board time in s until within 1 %: median")
    print("(quartiles). Worse by: the most that the mean winner lies above that of energy only at an equal board time;")
    print("later: the same from the median time of energy only on")
    for path in arguments.caches:
        report(recorded(read_recording(path), GOAL), arguments.seeds, arguments.batch)
    for space in twins() if arguments.twins else ():
        report(space, arguments.seeds, arguments.batch)


if __name__ == "__main__":
    main()
