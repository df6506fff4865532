"""Which model tells the energies of timed kernels best, of few that were measured, on recordings of real boards?

    PYTHONPATH=. WATTRIDGE_SHARED=../shared python tests/benchmarks/energy_models.py

Random configurations are known, the others are predicted from their parameters and their measured time: by the trees of
`energy_aware`, by mean power x time, and by a Gaussian process of log power over the logarithms of parameters and time,
which the program does not have. Of every recording once all its configurations at the highest clock or limit, and
once its fastest ones. The names of kernels are no inputs, nor are features of machine code, which recordings lack.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.stats import spearmanr

from app.engine.formats.read import read_recording
from app.engine.measurement import State
from app.engine.models.energy_cost import Sample, fit
from app.paths import resources

Floats = npt.NDArray[np.float64]
SHARED = Path(os.environ.get("WATTRIDGE_SHARED", "../shared")) / "data" / "kernel-tuner"
RECORDINGS = (
    resources() / "recordings" / "h200-sgemm-session.json.gz",
    SHARED / "ktpaper_hotspot_RTX_A4000.json.gz",
    SHARED / "ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz",
)
KNOWN = (16, 32, 64)
SEEDS = 6
MOST = 400  # configurations that are looked at
FAST = 120  # the fastest tenth, at least so many
# of the logarithms of the process's scales: mean and deviation, of inputs with deviation 1 and of log power
LENGTH, SPREAD, NOISE = (np.log(2.0), 0.8), (np.log(0.3), 0.7), (np.log(0.03), 0.7)


def load(path: Path) -> tuple[str, tuple[str, ...], Floats, Floats, Floats]:
    """The board, and of what worked at the highest setting names and values of parameters, seconds, joules."""
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
    return recording.device, tuple(columns), np.column_stack(list(columns.values())), time_s, energy_j


def process(inputs: Floats, log_power: Floats, others: Floats) -> Floats:
    """Of a Gaussian process with a squared exponential kernel, a length for each input: its mean at the others."""
    axes, mean = inputs.shape[1], log_power.mean()

    def scales(logs: Floats) -> tuple[Floats, float, float]:
        return np.exp(logs[:axes]), float(np.exp(2 * logs[axes])), float(np.exp(2 * logs[axes + 1])) + 1e-6

    def kernel(one: Floats, other: Floats, lengths: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * (((one[:, None] - other[None]) / lengths) ** 2).sum(-1)))

    def cost(logs: Floats) -> float:
        lengths, spread, noise = scales(logs)
        factor = np.linalg.cholesky(spread * kernel(inputs, inputs, lengths) + noise * np.eye(len(inputs)))
        scores = np.linalg.solve(factor, log_power - mean)
        expected = np.array([LENGTH] * axes + [SPREAD, NOISE])
        prior = (((logs - expected[:, 0]) / expected[:, 1]) ** 2).sum()
        return float(0.5 * scores @ scores + np.log(np.diag(factor)).sum() + 0.5 * prior)

    best = minimize(cost, [LENGTH[0]] * axes + [SPREAD[0], NOISE[0]], method="L-BFGS-B").x
    lengths, spread, noise = scales(best)
    covariance = spread * kernel(inputs, inputs, lengths) + noise * np.eye(len(inputs))
    weights = np.linalg.solve(covariance, log_power - mean)
    return np.asarray(mean + spread * kernel(others, inputs, lengths) @ weights)


def main() -> None:
    for path in RECORDINGS:
        if not path.is_file():
            print(f"{path.name} is not here")
            continue
        board, names, values, time_s, energy_j = load(path)
        power, sample = energy_j / time_s, Sample(names, values, time_s)
        logs = np.where((values > 0).all(axis=0), np.log(np.maximum(values, 1e-9)), values)
        inputs = np.column_stack([logs, np.log(time_s)])
        inputs = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
        models: dict[str, Callable[[Floats, Floats], Floats]] = {
            "mean power x time": lambda known, other, p=power, t=time_s: p[known].mean() * t[other],
            "trees": lambda known, other, s=sample, e=energy_j: fit(s.of(known), e[known]).energy_j(s.of(other)),
            "process": lambda known, other, x=inputs, p=power, t=time_s: (
                np.exp(process(x[known], np.log(p[known]), x[other])) * t[other]
            ),
        }
        fastest = np.argsort(time_s)[: max(FAST, len(time_s) // 10)]
        print(f"{path.name}: {board}, {len(names)} parameters that vary")
        for which, rows in (("all", np.arange(len(time_s))), ("fastest", fastest)):
            for count in KNOWN:
                said = []
                for name, predict in models.items():
                    ranks, errors = [], []
                    for seed in range(SEEDS):
                        drawn = np.random.default_rng(seed).permutation(rows)[:MOST]
                        predicted, truth = predict(drawn[:count], drawn[count:]), energy_j[drawn[count:]]
                        ranks.append(spearmanr(predicted, truth)[0])
                        errors.append(np.median(np.abs(predicted / truth - 1)))
                    said.append(f"{name} {np.mean(ranks):.3f} {np.mean(errors):6.2%}")
                print(f"   {which:8s} {count:3d} known of {min(MOST, len(rows)):3d}   {'   '.join(said)}", flush=True)


if __name__ == "__main__":
    main()
