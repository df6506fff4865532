"""Which model tells the energies of timed kernels best, of few that were measured, on recordings of real boards?

    PYTHONPATH=. WATTRIDGE_SHARED=../shared python tests/benchmarks/energy_models.py [OPERATORS.jsonl]

Random configurations are known, the others are predicted from what is known of them and their measured time: by the
model of `energy_aware` (a Gaussian process), by mean power x time, and, where XGBoost is installed, by gradient-boosted
trees of E_min / E with that as their weight [Zhang2024], which the program had before: shallow ones that start from a
mixture of work and time. Of every recording of a space once all its configurations at the highest clock or limit, and
once its fastest ones, from their parameters and time alone. Of operators the random rows that an H200 measured, with
the features of their machine code: those that the tests keep, and those of a file that `operators.py` wrote.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from app.base.paths import resources
from app.engine.formats.read import read_recording
from app.engine.models.energy_cost import Sample, fit
from app.engine.results.measurement import State

try:
    import xgboost
except ImportError:
    xgboost = None

Floats = npt.NDArray[np.float64]
SHARED = Path(os.environ.get("WATTRIDGE_SHARED", "../shared")) / "data" / "kernel-tuner"
RECORDINGS = (
    resources() / "recordings" / "h200-sgemm-session.json.gz",
    SHARED / "ktpaper_hotspot_RTX_A4000.json.gz",
    SHARED / "ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz",
)
KEPT = Path(__file__).parents[1] / "engine" / "models" / "data" / "operator_energies_h200.json.gz"
KNOWN = (16, 32, 64)
SEEDS = 6
MOST = 400  # configurations that are looked at
FAST = 120  # the fastest tenth, at least so many
TREES = {"max_depth": 2, "eta": 0.1, "min_child_weight": 0.001, "subsample": 0.8, "colsample_bynode": 0.8, "nthread": 1}
WORK = 0.4  # share of the fastest kernel's energy that does not depend on time, where trees start


def load(path: Path) -> tuple[str, Sample, Floats]:
    """The board, and of what worked at the highest setting parameters, seconds and joules."""
    recording = read_recording(path)
    measured = [m for m in recording.in_file_order() if m.state is State.OK and m.values.get("energy_j", 0.0) > 0]
    settings = [n for n in measured[0].configuration if any(word in n for word in ("clock", "power"))]
    highest = {name: max(m.configuration[name] for m in measured) for name in settings}
    measured = [m for m in measured if all(m.configuration[name] == highest[name] for name in settings)]
    columns = {}
    for name in measured[0].configuration:
        values = [m.configuration[name] for m in measured]
        if len(set(map(str, values))) > 1:
            numbers = all(isinstance(value, int | float) for value in values)
            listed = sorted(set(map(str, values)))
            columns[name] = [float(value) if numbers else float(listed.index(str(value))) for value in values]
    time_s, energy_j = (np.array([m.values[name] for m in measured]) for name in ("time_s", "energy_j"))
    return recording.device, Sample(tuple(columns), np.column_stack(list(columns.values())), time_s), energy_j


def spaces() -> Iterator[tuple[str, Sample, Floats, npt.NDArray[np.intp]]]:
    """Each with the rows that are looked at."""
    for path in RECORDINGS:
        if not path.is_file():
            print(f"{path.name} is not here")
            continue
        board, sample, energy_j = load(path)
        fastest = np.argsort(sample.time_s)[: max(FAST, len(energy_j) // 10)]
        yield f"{path.name}: {board}, all", sample, energy_j, np.arange(len(energy_j))
        yield f"{path.name}: {board}, fastest", sample, energy_j, fastest


def operators(document: dict[str, Any], when: str) -> Iterator[tuple[str, Sample, Floats, npt.NDArray[np.intp]]]:
    for shape, kept in document.items():
        features = np.array(kept["features"], dtype=np.float64)
        scaled = "time_us" in kept
        time_s = np.array(kept["time_us"]) * 1e-6 if scaled else np.array(kept["time_s"])
        energy_j = np.array(kept["energy_mj"]) * 1e-3 if scaled else np.array(kept["energy_j"])
        sample = Sample(tuple(kept["names"]), features, time_s)
        yield f"{shape} on an H200, {when}", sample, energy_j, np.arange(len(energy_j))


def mean_power(known: Sample, energy_j: Floats, others: Sample) -> Floats:
    return np.asarray((energy_j / known.time_s).mean() * others.time_s)


def model(known: Sample, energy_j: Floats, others: Sample) -> Floats:
    return fit(known, energy_j).energy_j(others)


def trees(known: Sample, energy_j: Floats, others: Sample) -> Floats:
    least_s, least_j = known.time_s.min(), energy_j.min()

    def matrix(sample: Sample, **more: Any) -> Any:
        start = 1 / (WORK + (1 - WORK) * sample.time_s / least_s) / level
        inputs = np.column_stack([sample.features, np.log(sample.time_s / least_s)])
        return xgboost.DMatrix(inputs, base_margin=start, missing=np.nan, nthread=1, **more)

    y, level = least_j / energy_j, 1.0
    level = float(np.average(1 / (WORK + (1 - WORK) * known.time_s / least_s) / y, weights=y))
    grown = xgboost.train({**TREES, "seed": 1}, matrix(known, label=y, weight=y), 200)
    return np.asarray(least_j / np.maximum(grown.predict(matrix(others)).astype(float), 1e-3))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("operators", type=Path, nargs="?", help="a file that operators.py wrote with --model-seconds")
    given = parser.parse_args()
    models: dict[str, Callable[[Sample, Floats, Sample], Floats]] = {"mean power x time": mean_power}
    models |= {"trees": trees} if xgboost is not None else {}
    models["process"] = model
    looked_at = [*spaces(), *operators(json.loads(gzip.decompress(KEPT.read_bytes())), "as the tests keep it")]
    if given.operators:
        known = next(m["model"] for m in map(json.loads, given.operators.read_text().splitlines()) if "model" in m)
        looked_at += operators(known, given.operators.name)
    for name, sample, energy_j, rows in looked_at:
        print(f"{name}: {sample.features.shape[1]} numbers of each")
        for count in KNOWN:
            said = []
            for which, predict in models.items():
                found = []
                for seed in range(SEEDS):
                    drawn = np.random.default_rng(seed).permutation(rows)[:MOST]
                    learnt, others = drawn[:count], drawn[count:]
                    predicted, truth = predict(sample.of(learnt), energy_j[learnt], sample.of(others)), energy_j[others]
                    off = np.abs(predicted / truth - 1)
                    fast = sample.time_s[others] <= np.quantile(sample.time_s[others], 0.25)
                    found.append((spearmanr(predicted, truth)[0], np.median(off), np.median(off[fast])))
                rank, error, of_fast = np.mean(found, axis=0)
                said.append(f"{which} {rank:.3f} {error:6.2%} {of_fast:6.2%}")
            print(f"   {count:3d} known of {min(MOST, len(rows)):3d}   {'   '.join(said)}", flush=True)


if __name__ == "__main__":
    main()
