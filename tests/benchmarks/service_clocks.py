"""How good a pair of clocks `auto` finds for a service with a limit on its latency, from few points.

By hand: `PYTHONPATH=. python tests/benchmarks/service_clocks.py [SEEDS]` prints a table; the last one is kept in
`service_clocks.txt`.

The truth is the simulated RTX 5090 serving requests at a rate, at every memory clock and every second graphics clock:
J per output token, and the 95th percentile of the time per output token over 40 s. Each reading of both is the truth
times 1 + 0.5 % noise (normal). A run measures 15 pairs; its choice is the least energy among those that kept the limit
as read. Regret is the true energy at the choice over the least that keeps the limit, minus one. 'broken' counts choices
that truly lie beyond the limit, which noise allows within about 1 % of it.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: more threads only wait for each other

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Limit, Objective
from app.engine.space.search_space import Parameter, SearchSpace
from app.engine.strategies.base import Outcome, get, make_options
from app.sensors.clock import VirtualClock
from app.sensors.service import Requests, ServiceLoad
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

LOAD = ServiceLoad(rate_per_s=2.5, input_tokens=256, output_tokens=128)
LIMITS_S = (0.02, 0.025, 0.03)  # on the 95th percentile of the time per output token: each binds
POINTS = 15
NOISE = 0.005
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """Every pair of clocks; arrays of shape (rows,)."""

    space: SearchSpace
    energy_j: Floats
    latency_s: Floats

    @classmethod
    def of(cls, memory_mhz: Sequence[int], graphics_mhz: Sequence[int], seconds: float = 40.0) -> Truth:
        pairs = [(memory, graphics) for memory in memory_mhz for graphics in graphics_mhz]
        codes = np.array([(memory_mhz.index(m), graphics_mhz.index(g)) for m, g in pairs], dtype=np.uint16)
        parameters = (
            Parameter("memory_clock_mhz", tuple(memory_mhz), True),
            Parameter("graphics_clock_mhz", tuple(graphics_mhz), True),
        )
        figures = np.array([served(memory, graphics, seconds) for memory, graphics in pairs])
        return cls(SearchSpace(parameters, codes, len(codes)), figures[:, 0], figures[:, 1])

    def best_j(self, limit_s: float) -> float:
        return float(self.energy_j[self.latency_s <= limit_s].min())


def served(memory_mhz: int, graphics_mhz: int, seconds: float) -> tuple[float, float]:
    """(J per output token, 95th percentile of the time per output token in s) at locked clocks."""
    gpu = SimulatedGpu(load_twin("rtx5090"), seed=1, clock=VirtualClock())
    gpu.start_service({})
    gpu.lock_graphics_clock(graphics_mhz)
    gpu.lock_memory_clock(memory_mhz)
    gpu.serve(LOAD, 10.0)
    energy_j, tokens, parts = 0.0, 0.0, []
    for _ in range(round(seconds / 5)):
        before_j = gpu.drawn_j(gpu.clock.now_ns())
        stretch = gpu.serve(LOAD, 5.0)
        energy_j += gpu.drawn_j(stretch.end_ns) - before_j
        tokens += stretch.output_tokens
        parts.append(stretch.requests)
    requests = Requests.joined(parts)
    if not len(requests):
        return energy_j / tokens, seconds
    each_s = (requests.ended_ns - requests.first_ns) / 1e9 / (requests.output_tokens - 1)
    return energy_j / tokens, float(np.percentile(each_s, 95))


def run(truth: Truth, strategy: str, limit_s: float, seed: int) -> int | None:
    """The row that a search of POINTS measurements chooses; None where none of them kept the limit."""
    objective = Objective(Goal("energy_j", maximise=False), (), (Limit("tpot_p95_s", True, limit_s),))
    chosen = get(strategy)
    search = chosen.search(truth.space, np.random.default_rng(seed), 1, make_options(chosen, {}))
    noise = np.random.default_rng(10_000 + seed)
    seen: dict[int, tuple[float, float]] = {}
    outcomes: list[Outcome] = []
    try:
        rows = next(search)
        while len(seen) < POINTS:
            outcomes = []
            for row in rows[: POINTS - len(seen)]:
                energy_j = float(truth.energy_j[row] * (1 + NOISE * noise.standard_normal()))
                latency_s = float(truth.latency_s[row] * (1 + NOISE * noise.standard_normal()))
                seen[row] = energy_j, latency_s
                values = {"energy_j": energy_j, "tpot_p95_s": latency_s}
                configuration = truth.space.configuration(row)
                outcomes.append(Outcome.of(Measurement(row, configuration, State.OK, values), objective))
            if len(seen) < POINTS:
                rows = search.send(outcomes)
    except StopIteration:
        pass
    kept = [(energy_j, row) for row, (energy_j, latency_s) in seen.items() if latency_s <= limit_s]
    return min(kept)[1] if kept else None


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    clocks = load_twin("rtx5090").clocks
    truth = Truth.of(clocks.memory_mhz, clocks.graphics_mhz[::2])
    print(f"{truth.space.size} pairs of clocks, {POINTS} points, {seeds} seeds, {NOISE:.1%} noise; regret in per cent")
    print("limit ms  pairs within  strategy       none within  broken  median  75th  90th  95th")
    for limit_s in LIMITS_S:
        within = int((truth.latency_s <= limit_s).sum())
        for strategy in ("auto", "random_sample"):
            rows = [run(truth, strategy, limit_s, seed) for seed in range(seeds)]
            found = [row for row in rows if row is not None]
            regret = np.array([truth.energy_j[row] / truth.best_j(limit_s) - 1 for row in found])
            broken = sum(truth.latency_s[row] > limit_s for row in found)
            ends = "  ".join(f"{100 * each:4.1f}" for each in np.percentile(regret, (50, 75, 90, 95)))
            print(f"{1e3 * limit_s:8.0f}  {within:12}  {strategy:13}  {seeds - len(found):11}  {broken:6}  {ends}")


if __name__ == "__main__":
    main()
