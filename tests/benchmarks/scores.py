"""`auto` against the strategies of Kernel Tuner on recorded spaces, scored by the same code, same budget. By hand:

    python tests/benchmarks/scores.py FILE CACHE... [--theirs TRACES ...] [--repeats N] [--within3 TRACES] [--enough 0]

FILE keeps the finished runs of `auto`, so that it can be broken off and gone on with; more CACHEs or repeats add to it.
TRACES are what `kernel_tuner_traces.py` wrote, of runs to the same budget, and with `--within3` of runs until within
3 % of the optimum; without any, `auto` is scored alone. Printed are all spaces that FILE and TRACES know: the score of
each strategy (0 random search, 1 the optimum at once), and how far `auto` lies above it with its 95 % interval by
bootstrap over the repeats. Where rows are timed first, `auto` ends by itself long before the budget does, and keeps its
best: `--enough 0`, with a FILE of its own, has it go on.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np  # noqa: E402

import app.engine.strategies  # noqa: E402, F401  (registers them)
from app.engine.formats.read import read_recording  # noqa: E402
from app.engine.results.measurement import Depth  # noqa: E402
from app.engine.runner.replay import TIMED_SHARE  # noqa: E402
from app.engine.strategies.recorded_runs import Recorded, recorded, run  # noqa: E402
from app.engine.strategies.scoring import Baseline, Floats, Interval, Yardstick, difference, mean_interval  # noqa: E402

OURS = "auto"
WITHIN = 0.03  # of the optimum
WITHIN_REPEATS = 100
MARK = 0.70  # what an oracle among Kernel Tuner's strategies reaches over six spaces
FEWEST = 5  # of their repeats from which on a strategy counts as the best there
ROW = "{:26}{:>6}{:>8}{:>9}  {}"
Trace = list[tuple[float, float]]  # evaluations at which something better was found, and its cost
Runs = dict[str, dict[str, list[dict[str, Any]]]]  # space -> strategy -> one per repeat


class Allowance:
    """The budget of a run, used up once a cost is low enough."""

    def __init__(self, chance: Baseline, enough: float) -> None:
        self.chance, self.enough = chance, enough
        self.budget = float(chance.budget)

    def spent(self, rows: Sequence[int], depth: Depth) -> float:
        if depth is Depth.TIME:
            return TIMED_SHARE * len(rows)
        return math.inf if self.chance.counted[rows].min() <= self.enough else float(len(rows))


class Space:
    """A recorded space and what its runs scored."""

    def __init__(self, path: Path, enough: float | None = None) -> None:
        self.options = {} if enough is None else {"enough": enough}
        self.on: Recorded = recorded(read_recording(path))
        self.chance = Baseline(self.on.costs)
        self.yardstick = Yardstick(self.chance)

    @property
    def good(self) -> float:
        """A cost within 3 % of the optimum."""
        return self.chance.optimum + WITHIN * abs(self.chance.optimum)

    def run(self, repeat: int, within: bool) -> dict[str, Any]:
        """One run of ours, as `kernel_tuner_traces.py` keeps theirs. It ends where it cannot find anything better."""
        rng = np.random.default_rng((1, zlib.crc32(f"{OURS} {self.on.name}".encode()), repeat))
        allowance = Allowance(self.chance, self.good if within else self.chance.optimum)
        begun = time.process_time()
        looks = run(OURS, self.options, self.on, allowance, rng, 1)
        seconds = time.process_time() - begun
        better: Trace = []
        count = 0.0
        for row, depth in looks:
            count += allowance.spent([row], Depth.TIME) if depth is Depth.TIME else 1.0
            cost = float(self.chance.counted[row])
            if depth is Depth.ENERGY and (not better or cost < better[-1][1]):
                better.append((count, cost))
        return {"better": better, "evaluations": count, "error": "", "seconds": round(seconds, 2)}

    def score(self, trace: Trace) -> float:
        counts, costs = np.array([count for count, _ in trace]), np.array([cost for _, cost in trace])
        done = np.searchsorted(counts, self.yardstick.points, side="right")
        return float(np.nanmean(self.yardstick.advantage_of(costs[np.maximum(done, 1) - 1])))

    def evaluations_to_good(self, trace: Trace) -> float:
        """Evaluations until within 3 % of the optimum; inf where it never was."""
        return next((float(count) for count, cost in trace if cost <= self.good), math.inf)


def extend(file: Path, spaces: Mapping[str, Space], repeats: int, within: bool = False) -> Runs:
    """The runs of ours, those that are missing done now: to the budget, or until within 3 % of the optimum."""
    kept: Runs = json.loads(file.read_text()) if file.exists() else {}
    kind = f"{OURS}, within {WITHIN:.0%}" if within else OURS
    for repeat in range(repeats):
        for name, space in spaces.items():
            done = kept.setdefault(name, {}).setdefault(kind, [])
            if len(done) > repeat:
                continue
            done.append(space.run(repeat, within))
            partial = file.with_suffix(".partial")
            partial.write_text(json.dumps(kept))
            partial.replace(file)
    return kept


def traces(files: Sequence[Path]) -> Runs:
    together: Runs = {}
    for file in files:
        for space, of_space in json.loads(file.read_text()).items():
            for strategy, runs in of_space.items():
                together.setdefault(space, {}).setdefault(strategy, []).extend(runs)
    return together


def scores_of(space: Space, of_space: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, Floats]:
    """The score of each run, by strategy; none of strategies that break before they evaluate anything."""
    found = {s: np.array([space.score(r["better"]) for r in runs if r["better"]]) for s, runs in of_space.items()}
    return {strategy: scores for strategy, scores in found.items() if len(scores)}


def words(interval: Interval) -> str:
    ends = f"{interval.low:+.3f} .. {interval.high:+.3f}" if math.isfinite(interval.low) else "too few"
    return f"{interval.mean:+.3f} ({ends})"


def print_space(space: Space, ours: Floats, theirs: Mapping[str, Floats], runs: Sequence[dict[str, Any]]) -> None:
    thought_ms = 1e3 * sum(r["seconds"] for r in runs) / sum(r["evaluations"] for r in runs)
    print(f"\n{space.on.name}: {space.chance.rows} rows, {space.chance.budget} evaluations")
    mean = mean_interval(ours)
    interval = f"from {mean.low:.3f} to {mean.high:.3f}; {thought_ms:.1f} ms of thought an evaluation"
    print(ROW.format(OURS, len(ours), f"{mean.mean:.3f}", "", interval))
    for strategy, scores in sorted(theirs.items(), key=lambda item: -item[1].mean()):
        above = words(difference([ours], [scores]))
        print(ROW.format(strategy, len(scores), f"{scores.mean():.3f}", "", above))


def print_means(ours: Mapping[str, Floats], theirs: Mapping[str, Mapping[str, Floats]], title: str) -> None:
    """The means over some spaces: ours, each of theirs that ran on all of them, and an oracle among theirs."""
    names = list(ours)
    everywhere = [s for s in theirs[names[0]] if all(len(theirs[n].get(s, ())) >= FEWEST for n in names)]
    mean = {s: float(np.mean([theirs[n][s].mean() for n in names])) for s in everywhere}
    best = max(mean, key=lambda s: mean[s])
    top = {n: max((float(v.mean()), s) for s, v in theirs[n].items() if len(v) >= FEWEST) for n in names}
    gaps = {n: float(ours[n].mean()) - top[n][0] for n in names}
    worst = min(gaps, key=lambda n: gaps[n])
    print(f"\nMean over {title}")
    print(f"  {OURS} {np.mean([ours[n].mean() for n in names]):.3f}; their best single one, {best}, {mean[best]:.3f};")
    oracle = np.mean([value for value, _ in top.values()])
    print(f"  an oracle that knows their best on each (of those with at least {FEWEST} runs) {oracle:.3f}")
    above = difference([ours[n] for n in names], [theirs[n][best] for n in names])
    print(f"  {OURS} above {best}: {words(above)}")
    least = difference([ours[worst]], [theirs[worst][top[worst][1]]])
    print(f"  least above their best there: {worst}, {top[worst][1]}, {words(least)}")
    for strategy in sorted(mean, key=lambda s: -mean[s]):
        print(f"    {strategy:26}{mean[strategy]:8.3f}")


def print_sixes(ours: Mapping[str, Floats], theirs: Mapping[str, Mapping[str, Floats]]) -> None:
    """Which six spaces the mark was set on is not known: every choice of six."""
    mine = np.array([scores.mean() for scores in ours.values()])
    sixes = mine[np.array(list(combinations(range(len(mine)), 6)))].mean(axis=1)
    low, middle, high = np.percentile(sixes, [5, 50, 95])
    print(f"\nOver every six of these {len(mine)} spaces: {OURS} {middle:.3f} (5 % {low:.3f}, 95 % {high:.3f}),")
    print(f"  above {MARK:.2f} over {np.mean(sixes > MARK):.1%} of the {len(sixes)} choices")


def print_within(space: Space, ours: Sequence[dict[str, Any]], theirs: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    rows = int((space.chance.counted <= space.good).sum())
    print(f"\n{space.on.name}: evaluations to within {WITHIN:.0%} of the best ({rows} of {space.chance.rows} rows are)")
    print(ROW.format("strategy", "runs", "median", "of ours", "quartiles"))
    told = {OURS: ours, **theirs}
    reached = {s: np.array([space.evaluations_to_good(r["better"]) for r in runs]) for s, runs in told.items()}
    median = {s: float(np.median(counts)) for s, counts in reached.items()}
    for strategy in sorted(reached, key=lambda s: median[s]):
        if math.isfinite(median[strategy]):
            low, high = np.percentile(reached[strategy], [25, 75], method="nearest")
            times = f"{median[strategy] / median[OURS]:.2f} x"
            print(
                ROW.format(strategy, len(told[strategy]), f"{median[strategy]:.1f}", times, f"{low:.0f} .. {high:.0f}")
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("caches", nargs="+", type=Path)
    parser.add_argument("--theirs", nargs="+", type=Path, default=[])
    parser.add_argument("--within3", type=Path)
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--enough", type=float, help="option of auto: per cent, 0: it goes on to the budget's end")
    parser.add_argument("--judged", type=int, default=2, help="so many of the caches, the first, are those of the aim")
    arguments = parser.parse_args()
    spaces = {space.on.name: space for space in (Space(path, arguments.enough) for path in arguments.caches)}
    kept = extend(arguments.file, spaces, arguments.repeats)
    told = traces(arguments.theirs)
    ours = {name: scores_of(space, kept[name])[OURS] for name, space in spaces.items()}
    theirs = {name: scores_of(space, told.get(name, {})) for name, space in spaces.items()}
    print(ROW.format("strategy", "runs", "score", "", f"{OURS} above it (95 % interval)"))
    for name, space in spaces.items():
        print_space(space, ours[name], theirs[name], kept[name][OURS])
    if not arguments.theirs:
        return
    judged = list(spaces)[: arguments.judged]
    held_out = list(spaces)[arguments.judged :]
    print_means({n: ours[n] for n in judged}, theirs, f"the {len(judged)} spaces of the aim")
    if held_out:
        print_means({n: ours[n] for n in held_out}, theirs, f"the {len(held_out)} others")
    if len(spaces) >= 6:
        print_sixes(ours, theirs)
    if arguments.within3:
        for name, of_space in traces([arguments.within3]).items():
            kept = extend(arguments.file, {name: spaces[name]}, WITHIN_REPEATS, within=True)
            print_within(spaces[name], kept[name][f"{OURS}, within {WITHIN:.0%}"], of_space)


if __name__ == "__main__":
    main()
