"""Runs of Kernel Tuner's own strategies on recorded spaces, for `scores.py`. Run by hand, with a Python that has it:

    PYTHON_WITH_KERNEL_TUNER tests/benchmarks/kernel_tuner_traces.py OUT.json CACHE... [--repeats N] [--strategy A,B]

Each strategy runs through `tune_kernel` in simulation mode on a space restricted to exactly the recorded configurations
(failed ones included), with our budget, or with `--to-percent P` until it is within P % of the optimum. The file keeps
of each run the evaluations at which it found something better, `[evaluation, cost]`, counting unique evaluations as
Kernel Tuner's max_fevals does. Runs that are in the file already are not repeated: it can be stopped and gone on with.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import kernel_tuner  # noqa: E402
import numpy as np  # noqa: E402
from constraint import FunctionConstraint  # noqa: E402
from kernel_tuner.interface import strategy_map  # noqa: E402
from kernel_tuner.util import StopCriterionReached  # noqa: E402

from app.engine.formats.read import read_recording  # noqa: E402
from app.engine.strategies.scoring import Baseline  # noqa: E402

STRATEGIES = (
    "adaptive_tabu_greywolf hybrid_vndx genetic_algorithm simulated_annealing random_sample greedy_ils greedy_mls "
    "ordered_greedy_mls mls dual_annealing basinhopping diff_evo pso firefly_algorithm minimize pyatf_strategies skopt"
)
RUN_LIMIT_S = 300


class Recorded:
    """A cache as Kernel Tuner needs it, and the cost of each configuration."""

    def __init__(self, path: Path) -> None:
        cache = read_recording(path)
        self.name = path.name.removesuffix(".gz").removesuffix(".json")
        self.goal = cache.goal
        costs = np.array([self.goal.cost(m.values) for m in cache.measurements()])
        baseline = Baseline(costs)
        self.budget, self.optimum = baseline.budget, baseline.optimum
        space = cache.space()
        self.cost = {tuple(space.configuration(row).values()): float(cost) for row, cost in enumerate(baseline.counted)}
        self.parameters = {p.name: list(p.values) for p in space.parameters}
        entries = {}
        for measurement in cache.measurements():
            cost = self.goal.cost(measurement.values)
            value = measurement.values[self.goal.name] if np.isfinite(cost) else "RuntimeFailedConfig"
            key = ",".join(str(v) for v in measurement.configuration.values())
            entries[key] = {**measurement.configuration, self.goal.name: value}
        document = {
            "device_name": cache.device,
            "kernel_name": "kernel",
            "problem_size": 1024,
            "objective": self.goal.name,
            "tune_params_keys": list(self.parameters),
            "tune_params": self.parameters,
            "cache": entries,
        }
        self.file = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)  # noqa: SIM115  (kept for its name)
        json.dump(document, self.file)
        self.file.close()


class Traced:
    """A Kernel Tuner strategy around another one: seeds it and records each unique evaluation."""

    def __init__(self, name: str, recorded: Recorded, seed: int, enough: float) -> None:
        self.name, self.recorded, self.seed, self.enough = name, recorded, seed, enough
        self.evaluations = 0
        self.better: list[tuple[int, float]] = []
        self.error = ""

    def tune(self, searchspace: Any, runner: Any, tuning_options: Any) -> list[Any]:
        if set(searchspace.list) != set(self.recorded.cost):
            raise AssertionError("the search space is not the recorded one")
        original, seen = runner.run, set()

        def run(configurations: Any, options: Any) -> Any:
            configurations = list(configurations)
            results = original(configurations, options)
            for configuration, result in zip(configurations, results, strict=True):
                key = tuple(configuration)
                if result is None or key in seen or key not in self.recorded.cost:
                    continue
                seen.add(key)
                self.evaluations += 1
                cost = self.recorded.cost[key]
                if not self.better or cost < self.better[-1][1]:
                    self.better.append((self.evaluations, cost))
                if cost <= self.enough:
                    options.budget.max_fevals = options.budget.num_fevals  # ends the run
            return results

        runner.run = run
        random.seed(self.seed)
        np.random.seed(self.seed)
        try:
            strategy_map[self.name].tune(searchspace, runner, tuning_options)
        except StopCriterionReached:
            pass
        except Exception as error:  # noqa: BLE001  (a strategy that breaks keeps what it found)
            self.error = f"{type(error).__name__}: {error}"[:200]
        return []


def run_once(label: str, recorded: Recorded, repeat: int, to_percent: float | None) -> dict[str, Any]:
    """One run; `label` is a strategy, or 'strategy:method'."""
    name, _, method = label.partition(":")
    enough = -np.inf if to_percent is None else recorded.optimum + to_percent / 100 * abs(recorded.optimum)
    seed = zlib.crc32(f"{label} {recorded.name} {repeat} {to_percent}".encode())
    traced = Traced(name, recorded, seed, enough)
    options: dict[str, Any] = {"max_fevals": recorded.budget if to_percent is None else len(recorded.cost)}
    if method:
        options["method"] = method
    configurations = set(recorded.cost)

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"longer than {RUN_LIMIT_S} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(RUN_LIMIT_S)
    begun = time.perf_counter()
    try:
        with open(os.devnull, "w") as null, contextlib.redirect_stdout(null), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel_tuner.tune_kernel(
                "kernel",
                "__global__ void dummy() {}",
                1024,
                [],
                dict(recorded.parameters),
                restrictions=[FunctionConstraint(lambda *values: values in configurations)],
                lang="CUDA",
                simulation_mode=True,
                cache=recorded.file.name,
                strategy=traced,
                quiet=True,
                strategy_options=options,
                objective=recorded.goal.name,
                objective_higher_is_better=recorded.goal.maximise,
            )
    except Exception as error:  # noqa: BLE001
        traced.error = traced.error or f"outside the strategy: {type(error).__name__}: {error}"[:200]
    finally:
        signal.alarm(0)
    return {
        "better": traced.better,
        "evaluations": traced.evaluations,
        "error": traced.error,
        "seconds": round(time.perf_counter() - begun, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("caches", nargs="+", type=Path)
    parser.add_argument("--strategy", default=STRATEGIES.replace(" ", ","))
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--to-percent", type=float)
    arguments = parser.parse_args()
    runs: dict[str, dict[str, list[Any]]] = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    spaces = [Recorded(path) for path in arguments.caches]
    written = time.monotonic()

    def write() -> None:
        partial = arguments.out.with_suffix(".partial")
        partial.write_text(json.dumps(runs))
        partial.replace(arguments.out)

    try:
        for repeat in range(arguments.repeats):
            for label in arguments.strategy.split(","):
                for recorded in spaces:
                    done = runs.setdefault(recorded.name, {}).setdefault(label, [])
                    if len(done) > repeat:
                        continue
                    done.append(run_once(label, recorded, repeat, arguments.to_percent))
                    print(recorded.name, label, repeat, done[-1]["seconds"], done[-1]["error"], file=sys.stderr)
                    if time.monotonic() - written > 30:
                        write()
                        written = time.monotonic()
    finally:
        write()
        for recorded in spaces:
            os.unlink(recorded.file.name)


if __name__ == "__main__":
    main()
