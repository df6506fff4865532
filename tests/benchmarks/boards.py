"""`auto` with 1, 4, 16 and 64 boards on recorded spaces: its score per evaluation, and how much sooner it is done.

    python tests/benchmarks/boards.py CACHE... [--boards 1,4,16] [--repeats N] [--strategy NAME]

The score is that of `wattridge score`, over the evaluations that all boards make together: with more boards each choice
is made with less known. `rounds` is how often the boards measure, all at once, until the budget is used up: what a
session takes, in the time of one measurement, where a strategy hears of a batch when all of it is known. `busy` is the
share of the boards' time in which they measure. Intervals are 95 % by bootstrap over the repeats.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import zlib
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np  # noqa: E402

import app.engine.strategies  # noqa: E402, F401  (registers them)
from app.engine.formats.read import read_recording  # noqa: E402
from app.engine.strategies import base  # noqa: E402
from app.engine.strategies.recorded_runs import Recorded, recorded  # noqa: E402
from app.engine.strategies.scoring import Baseline, Yardstick, difference, mean_interval  # noqa: E402

ROW = "{:>7}{:>9}  {:24}{:26}{:>9}{:>7}"


def run(strategy: str, on: Recorded, budget: float, boards: int, repeat: int) -> tuple[list[int], int]:
    """The rows that it evaluates, in their order, and the rounds that the boards took."""
    rng = np.random.default_rng((1, zlib.crc32(f"{strategy} {on.name}".encode()), repeat))
    chosen = base.get(strategy).informed(base.Background(boards=lambda: boards))
    search = chosen.search(on.space, rng, boards, base.make_options(chosen, {}))
    evaluated: list[int] = []
    rounds = 0
    try:
        asked = base.Batch.of(next(search))
        while len(evaluated) < budget:
            evaluated += asked
            rounds += math.ceil(len(asked) / boards)
            asked = base.Batch.of(search.send([on.outcomes[row] for row in asked]))
    except StopIteration:
        pass
    finally:
        search.close()
    return evaluated, rounds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("caches", nargs="+", type=Path)
    parser.add_argument("--boards", default="1,4,16")
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--strategy", default="auto")
    arguments = parser.parse_args()
    counts = [int(each) for each in arguments.boards.split(",")]
    every: dict[int, list[list[float]]] = {boards: [] for boards in counts}
    for path in arguments.caches:
        on = recorded(read_recording(path))
        yardstick = Yardstick(Baseline(on.costs))
        print(f"\n{on.name}: {on.space.size} rows, {yardstick.chance.budget} evaluations, {arguments.strategy}")
        print(ROW.format("boards", "score", "", "below one board", "rounds", "busy"))
        for boards in counts:
            scores, rounds, busy = [], [], []
            for repeat in range(arguments.repeats):
                rows, took = run(arguments.strategy, on, yardstick.budget, boards, repeat)
                scores.append(float(np.nanmean(yardstick.advantage(rows))))
                rounds.append(took)
                busy.append(len(rows) / took / boards)
            every[boards].append(scores)
            mean = mean_interval(scores)
            less = difference([every[counts[0]][-1]], [scores])
            interval = f"({mean.low:.3f} .. {mean.high:.3f})"
            below = "" if boards == counts[0] else f"{less.mean:+.3f} ({less.low:+.3f} .. {less.high:+.3f})"
            share = f"{100 * np.mean(busy):.0f} %"
            print(ROW.format(boards, f"{mean.mean:.3f}", interval, below, f"{np.mean(rounds):.0f}", share), flush=True)
    print("\nMean over the spaces")
    for boards in counts:
        less = difference(every[counts[0]], every[boards])
        mean = np.mean([np.mean(scores) for scores in every[boards]])
        below = "" if boards == counts[0] else f"{less.mean:+.3f} ({less.low:+.3f} .. {less.high:+.3f})"
        print(f"{boards:>7}{mean:9.3f}  {below}")


if __name__ == "__main__":
    main()
