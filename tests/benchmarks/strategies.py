"""What each strategy costs beside measuring, on a space of 349,853 valid rows. By hand:

python tests/benchmarks/strategies.py FOLDER_OF_PUBLISHED_SPACES [STRATEGY ...]

The folder holds `searchspaces_kernel_tuner_paper.json`; the space is its hotspot kernel. Costs are made up at once: a
valley over the parameters, ripples, and one configuration in twenty failing. Each strategy runs in a process of its
own, SciPy loaded, linear algebra in one thread (the other cores compile): its processor and wall time per evaluation
with everything it builds, the longest wait for a batch, the most memory of the process, space included, and how good
its best is among all rows. Never part of the test suite: wall-clock time does not gate anything.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import app.engine.strategies  # noqa: E402, F401  (registers them)
from app.engine.results.measurement import State  # noqa: E402
from app.engine.space.build import build_space  # noqa: E402
from app.engine.space.search_space import SearchSpace  # noqa: E402
from app.engine.strategies import base  # noqa: E402
from app.sensors.limits import limits_of  # noqa: E402

EVALUATIONS = 2000
FEW_EVALUATIONS = 300  # of those that fit a model
THINKING = ("bayes", "auto", "staged", "steered")  # the last two search by auto
BATCH = 16
MOST_MS, MOST_THINKING_MS, MOST_MB = 1.0, 50.0, 300.0
ROWS = "{:24} {:>6} {:>11} {:>5} {:>11} {:>13} {:>9} {:>12}"


def hotspot(folder: Path) -> SearchSpace:
    published = json.loads((folder / "searchspaces_kernel_tuner_paper.json").read_text())["hotspot"]
    return build_space(published["tune_params"], published["restrictions"], {}, limits_of((8, 0)))


def costs_of(space: SearchSpace) -> np.ndarray:
    """A valley along two diagonals with ripples; inf for one in twenty. Shape (size,)."""
    spans = np.maximum(1, np.array(space.axis_sizes) - 1)
    place = space.codes / spans
    centre = np.linspace(0.3, 0.7, place.shape[1])
    valley = ((place - centre) ** 2).sum(axis=1) + (place[:, 2] + place[:, 3] - place[:, 4] - 0.5) ** 2
    rng = np.random.default_rng(7)
    cost = 1 + valley + 0.05 * rng.standard_normal(space.size)
    cost[rng.random(space.size) < 0.05] = math.inf
    return cost


def thinks(name: str) -> bool:
    """Whether a strategy fits a model."""
    return any(word in name for word in THINKING)


def measure(name: str, folder: Path) -> dict[str, Any]:
    """Drive one strategy in this process."""
    space = hotspot(folder)
    cost = costs_of(space)
    wanted = FEW_EVALUATIONS if thinks(name) else EVALUATIONS
    importlib.import_module("scipy.optimize")  # takes a third of a second, once
    chosen = base.get(name)
    best, evaluated, longest = math.inf, 0, 0.0
    begun, cpu = time.perf_counter(), time.process_time()
    search = chosen.search(space, np.random.default_rng(1), BATCH, chosen.Options())
    rows = next(search)
    while evaluated < wanted:
        evaluated += len(rows)
        best = min(best, float(cost[rows].min()))
        outcomes = [
            base.Outcome(row, c, State.OK if c < math.inf else State.RUNTIME, (c, -c), {"time_s": c})
            for row, c in zip(rows, cost[rows].tolist(), strict=True)
        ]
        asked = time.perf_counter()
        rows = search.send(outcomes)
        longest = max(longest, time.perf_counter() - asked)
    search.close()
    return {
        "evaluated": evaluated,
        "cpu_ms": 1e3 * (time.process_time() - cpu) / evaluated,
        "wall_ms": 1e3 * (time.perf_counter() - begun) / evaluated,
        "longest_ms": 1e3 * longest,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "rank": int((cost < best).sum()) + 1,
    }


def main(folder: Path, names: list[str]) -> None:
    print(f"{platform.platform()}, Python {platform.python_version()}, NumPy {np.__version__}")
    print(f"{hotspot(folder).size} valid rows, batches of {BATCH}; aims: cpu ms below 'aim', {MOST_MB:g} MB\n")
    print(ROWS.format("strategy", "evals", "cpu ms/eval", "aim", "wall ms/eval", "longest ms", "MB", "best's rank"))
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for name in names or base.names():
        words = [sys.executable, __file__, str(folder), "--one", name]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=one_thread)
        if done.returncode:
            print(f"{name:24} failed: {done.stderr.strip().splitlines()[-1]}")
            continue
        told = json.loads(done.stdout)
        cpu, *others = (f"{told[key]:.2f}" for key in ("cpu_ms", "wall_ms", "longest_ms"))
        aim = f"{MOST_THINKING_MS if thinks(name) else MOST_MS:g}"
        memory = f"{told['memory_mb']:.0f}"
        print(ROWS.format(name, told["evaluated"], cpu, aim, *others, memory, told["rank"]), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[2] == "--one":
        print(json.dumps(measure(sys.argv[3], Path(sys.argv[1]))))
    elif len(sys.argv) > 1:
        main(Path(sys.argv[1]), sys.argv[2:])
    else:
        raise SystemExit(__doc__)
