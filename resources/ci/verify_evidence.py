"""Compute every figure of an evidence file of Wattridge's again: `python verify_evidence.py FILE`.

It needs NumPy and nothing of Wattridge's. Exit status 0: every figure follows from the samples; 1: one does not.
What it cannot see is a file whose samples were invented as well.
"""

import json
import math
import sys

import numpy as np

TOLERANCE = 1e-6  # relative


def mean_power(block):
    """Mean power of a block, W: a sample counts for the part of its window that is nearer to it than to another."""
    starts, ends, times, power = (np.array(block[name]) for name in ("starts_s", "ends_s", "times_s", "power_w"))
    window = np.maximum(0, np.searchsorted(starts, times, side="right") - 1)
    middles = (times[1:] + times[:-1]) / 2
    until = np.minimum(ends[window], np.append(middles, np.inf))
    weights = np.maximum(0, until - np.maximum(starts[window], np.append(-np.inf, middles)))
    return weights @ power / weights.sum(), (ends - starts).sum()


def t_quantile(share, degrees):
    """Quantile of Student's t, by bisection of its distribution function, which Simpson's rule integrates."""
    norm = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)

    def below(t):  # with t = sqrt(degrees) * tan(a) the integrand is a power of a cosine
        angles = np.linspace(0, math.atan(t / math.sqrt(degrees)), 20001)
        values = np.cos(angles) ** (degrees - 1)
        return 0.5 + norm * math.sqrt(degrees) * (angles[1] / 3) * (
            values[0] + values[-1] + 4 * values[1:-1:2].sum() + 2 * values[2:-1:2].sum()
        )

    low, high = 0.0, 1e5
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return middle


def interval(values):
    """95 % interval of a mean by Student's t; None of one value."""
    if len(values) < 2:
        return None
    half = t_quantile(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return [max(0.0, np.mean(values) - half), np.mean(values) + half]


def energy_figures(blocks, parameters):
    """Energy and time of one call; and against earlier sessions, whose variance is moderated by a prior."""
    energies, times = [b["energy_j"] for b in blocks], [b["time_s"] for b in blocks]
    energy, ends = float(np.mean(energies)), interval(energies)
    if ends is not None:
        half = t_quantile(0.975, len(energies) - 1) * np.std(energies, ddof=1) / math.sqrt(len(energies))
        half = math.hypot(half, 1.96 * parameters["wander"] * energy)
        ends = [max(0.0, energy - half), energy + half]
    figures = {
        "energy": {
            "energy_j": energy,
            "energy_interval_j": ends,
            "time_s": float(np.mean(times)),
            "time_interval_s": interval(times),
        },
        "against_baseline": None,
    }
    logs = np.log(parameters["sessions_j"])
    if len(logs):
        degrees = 4 + len(logs) - 1
        variance = (4 * 0.011**2 + ((logs - logs.mean()) ** 2).sum()) / degrees
        low, high = ends or (energy, energy)
        error = math.sqrt(variance * (1 + 1 / len(logs)) + ((high - low) / 2 / 1.96 / energy) ** 2)
        change, half = math.log(energy) - logs.mean(), t_quantile(0.995, degrees) * error
        figures["against_baseline"] = {
            "change": math.expm1(change),
            "interval": [math.expm1(change - half), math.expm1(change + half)],
            "sessions": len(logs),
        }
    return figures


FIGURES = {"energy": energy_figures}


def flat(value, name=""):
    """Every number of a document under its place in it."""
    if not isinstance(value, (dict, list, tuple)):
        return {name: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {k: v for key, item in items for k, v in flat(item, f"{name}.{key}" if name else str(key)).items()}


def differing(where, stated, found):
    """Lines about the figures that are not what was found."""
    stated, found = flat(stated), flat(found)
    for key in {**stated, **found}:
        one, other = stated.get(key), found.get(key)
        numbers = isinstance(one, (int, float)) and isinstance(other, (int, float))
        if not (math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-9) if numbers else one == other):
            yield f"{where}: {key} is {one}, and its samples say {other}"


def faults(measured):
    """Lines about what of a result does not follow from its samples."""
    ended, blocks = -math.inf, []
    for number, block in enumerate(measured["blocks"], 1):
        where, times = f"{measured['name']}, block {number}", np.array(block["times_s"])
        ends = np.stack([block["starts_s"], block["ends_s"]], axis=1).ravel()
        if (np.diff(ends) < 0).any() or ends[0] != 0 or block["start_s"] < ended:
            yield f"{where}: its windows are not in order"
        if (np.diff(times) < 0).any() or times[0] < 0 or times[-1] > ends[-1]:
            yield f"{where}: its samples are not in order, or not of its windows"
        ended = block["start_s"] + ends[-1] - TOLERANCE
        power, seconds = mean_power(block)
        found = {"time_s": seconds / block["calls"], "energy_j": power * seconds / block["calls"]}
        yield from differing(where, {name: block[name] for name in found}, found)
        blocks.append({**block, **found})
    yield from differing(
        measured["name"], measured["figures"], FIGURES[measured["kind"]](blocks, measured["parameters"])
    )


def main():
    """Print what does not hold; the exit status."""
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    lines = [line for measured in document["measured"] for line in faults(measured)]
    print(*lines, f"{document['gpu']}: {len(document['measured'])} results, {len(lines)} faults", sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
