"""How soon a strategy finds a front: evaluations until its hypervolume is a share of the whole. By hand:

python tests/benchmarks/fronts.py CACHE [GOALS [SEEDS [STRATEGY ...]]]

The cache is an exhaustive one of Kernel Tuner; GOALS as in `--front`, default max:TFLOPS,max:TFLOPS/J. The reference
of the hypervolume is 0 where larger is better, else the worst value. One configuration is proposed at a time. Printed
are the medians over the seeds, for the hardest share the worst as well, and the processor time of an evaluation.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # threads that wait for one another would count as thought

import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import app.engine.strategies  # noqa: E402, F401  (registers them)
from app.engine.formats.read import read_recording  # noqa: E402
from app.engine.results.objectives import parse_front  # noqa: E402
from app.engine.results.pareto import front, hypervolume, reference_point  # noqa: E402
from app.engine.strategies import base  # noqa: E402
from app.engine.strategies.recorded_runs import Recorded, recorded  # noqa: E402

SHARES = (0.9, 0.95, 0.98, 0.99)
STRATEGIES = ("random_sample", "nsga2", "multi_objective_bayesian", "auto")
TARGET = 0.15  # of the rows for the last share
ROW = "{:26}" + "{:>8}" * len(SHARES) + "{:>8}{:>12}{:>9}"


def evaluations_to(on: Recorded, maximise: list[bool], name: str, seed: int) -> tuple[list[float], float]:
    """Evaluations until each of SHARES is reached, and the strategy's processor seconds per evaluation."""
    values = on.front_values(maximise)
    reference = reference_point(values, maximise)
    whole = hypervolume(values, maximise, reference)
    chosen = base.get(name)
    search = chosen.search(on.space, np.random.default_rng(seed), 1, chosen.Options())
    reached: list[float] = []
    rows: list[int] = []
    kept: list[int] = []  # the front so far
    begun = time.process_time()
    asked = next(search)
    thought = time.process_time() - begun
    while True:
        for row in asked:
            rows.append(row)
            found = np.array([*kept, row])
            kept = found[front(values[found], maximise)].tolist()
            share = hypervolume(values[kept], maximise, reference) / whole if kept else 0.0
            while len(reached) < len(SHARES) and share >= SHARES[len(reached)]:
                reached.append(len(rows))
        if len(reached) == len(SHARES) or len(rows) == on.space.size:
            search.close()
            return reached, thought / len(rows)
        begun = time.process_time()
        asked = search.send([on.outcomes[row] for row in asked])
        thought += time.process_time() - begun


def main() -> None:
    goals = parse_front(sys.argv[2] if len(sys.argv) > 2 else "max:TFLOPS,max:TFLOPS/J")
    seeds = int(sys.argv[3]) if len(sys.argv) > 3 else 25
    on = recorded(read_recording(Path(sys.argv[1])), goals[0], goals)
    maximise = [goal.maximise for goal in goals]
    values = on.front_values(maximise)
    whole = hypervolume(values, maximise, reference_point(values, maximise))
    print(f"{on.name}: {on.space.size} rows, {np.isnan(values).any(axis=1).sum()} failed")
    print(f"front of {', '.join(map(str, goals))}: {len(front(values, maximise))} points, hypervolume {whole:.3f}")
    print(f"median evaluations to a share of it, {seeds} seeds; aim: {SHARES[-1]:.0%} after {TARGET:.0%} of the rows\n")
    print(ROW.format("strategy", *(f"{share:.0%}" for share in SHARES), "worst", "of the rows", "ms each"))
    for name in sys.argv[4:] or STRATEGIES:
        runs = [evaluations_to(on, maximise, name, seed) for seed in range(seeds)]
        reached = np.array([run[0] for run in runs])
        median = np.median(reached, axis=0)
        cost_ms = 1e3 * float(np.median([run[1] for run in runs]))
        share = f"{median[-1] / on.space.size:.1%}"
        print(
            ROW.format(name, *(f"{m:.0f}" for m in median), f"{reached[:, -1].max():.0f}", share, f"{cost_ms:.2f}"),
            flush=True,
        )


if __name__ == "__main__":
    main()
