"""Compute every figure of an evidence file of Wattridge's again: `python verify_evidence.py FILE`.

It needs NumPy and nothing of Wattridge's. Exit status 0: every figure follows from the samples; 1: one does not. What
it cannot see is a file whose samples were invented as well.
"""

import json
import math
import sys

import numpy as np


def mean_power(block):
    """Mean power of a block, W: a sample counts for the part of its window that is nearer to it than to another."""
    starts, ends, times, power = (np.array(block[name]) for name in ("starts_s", "ends_s", "times_s", "power_w"))
    window = np.maximum(0, np.searchsorted(starts, times, side="right") - 1)
    middles = (times[1:] + times[:-1]) / 2
    until = np.minimum(ends[window], np.append(middles, np.inf))
    weights = np.maximum(0, until - np.maximum(starts[window], np.append(-np.inf, middles)))
    return weights @ power / weights.sum()


def t_quantile(share, degrees):
    """Quantile of Student's t, by bisection of its distribution function, which Simpson's rule integrates."""
    norm = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(math.pi)
    weights = np.array([1] + [4, 2] * 9999 + [4, 1])

    def below(t):  # with t = sqrt(degrees) * tan(angle) the density is a power of a cosine
        angles = np.linspace(0, math.atan(t / math.sqrt(degrees)), 20001)
        return 0.5 + norm * angles[1] / 3 * (weights @ np.cos(angles) ** (degrees - 1))

    low, high = 0.0, 1e4
    for _ in range(100):
        low, high = ((low + high) / 2, high) if below((low + high) / 2) < share else (low, (low + high) / 2)
    return low


def mean_and_interval(values, wander=0.0):
    """Mean, and its 95 % interval by Student's t; None of one value."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None
    half = t_quantile(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    half = math.hypot(half, 1.96 * wander * mean)
    return mean, [max(0.0, mean - half), mean + half]


def of_calls(blocks, wander, sessions_j):
    """Energy and time of one call; and against earlier sessions, whose variance is moderated by a prior."""
    energy, ends = mean_and_interval([block["energy_j"] for block in blocks], wander)
    time, time_ends = mean_and_interval([block["time_s"] for block in blocks])
    figures = {"energy_j": energy, "energy_interval_j": ends, "time_s": time, "time_interval_s": time_ends}
    if not sessions_j:
        return {"energy": figures, "against_baseline": None}
    logs, degrees = np.log(sessions_j), 4 + len(sessions_j) - 1
    variance = (4 * 0.011**2 + ((logs - logs.mean()) ** 2).sum()) / degrees
    within = (ends[1] - ends[0]) / 2 / 1.96 / energy if ends else 0.0
    half = t_quantile(0.995, degrees) * math.sqrt(variance * (1 + 1 / len(logs)) + within**2)
    change = math.log(energy) - logs.mean()
    interval = [math.expm1(change - half), math.expm1(change + half)]
    against = {"change": math.expm1(change), "interval": interval, "sessions": len(logs)}
    return {"energy": figures, "against_baseline": against}


def units_of(blocks, name):
    """The log ratio of B to A of each pair of blocks but the last, less the drift between the pairs beside it."""
    pairs = list(zip(blocks[::2], blocks[1::2], strict=False))
    if len(pairs) < 2:
        return np.empty(0)
    logs = np.log([[block[name] for block in pair] for pair in pairs])
    at = np.array([[(block["start_s"] + block["end_s"]) / 2 for block in pair] for pair in pairs])
    after = np.diff(logs.mean(axis=1)) / np.diff(at.mean(axis=1))
    before = np.append(after[0], after[:-1])
    slope = np.where(before * after > 0, np.sign(after) * np.minimum(abs(before), abs(after)), 0.0)
    rest = np.diff(logs)[:-1, 0] - slope * np.diff(at)[:-1, 0]
    return np.where([pair[0]["side"] == "A" for pair in pairs[:-1]], rest, -rest)


def lower_end(units, error):
    """The largest centre that the units' symmetry about it excludes: a mean of products of 2 / (1 + exp(-2 g))."""

    def excluded(centre):
        g = np.clip(np.outer(2.0 ** np.arange(2, 14), units - centre), -1.5, 1.5)
        return np.logaddexp.reduce(np.log(2 / (1 + np.exp(-2 * g))).sum(axis=1)) > math.log(12 * 2 / error)

    low, high = -20.0, 20.0
    if not excluded(low):
        return -math.inf
    while high - low > 1e-7:
        low, high = ((low + high) / 2, high) if excluded((low + high) / 2) else (low, (low + high) / 2)
    return low


def in_turns(blocks, threshold, error):
    """B against A: the changes of energy and time, and whether B is worse."""
    figures = {}
    for name, key in (("energy", "energy_j"), ("time", "time_s")):
        units = units_of(blocks, key)
        low, high = lower_end(units, error), -lower_end(-units, error)
        if math.isfinite(high - low):
            interval = [math.expm1(low), math.expm1(high)]
            figures[name] = {"change": sum(interval) / 2, "interval": interval}
        else:
            figures[name] = {"change": math.expm1(np.median(units)) if len(units) else None, "interval": None}
    low, high = figures["energy"]["interval"] or (-math.inf, math.inf)
    verdict = "worse" if low > threshold else "no worse" if high < threshold else "undecided"
    return {**figures, "verdict": verdict}


def differing(stated, found, where):
    """Lines about the figures that are not what was found."""
    if isinstance(found, (dict, list)) and isinstance(stated, type(found)) and len(stated) == len(found):
        for key in found if isinstance(found, dict) else range(len(found)):
            yield from differing(stated[key], found[key], f"{where} {key}")
    elif isinstance(found, float) and isinstance(stated, float):
        if not math.isclose(stated, found, rel_tol=1e-6, abs_tol=1e-9):
            yield f"{where} is {stated}, and its samples say {found}"
    elif stated != found:
        yield f"{where} is {stated}, and its samples say {found}"


def faults(measured):
    """Lines about what of a result does not follow from its samples."""
    ended, blocks = 0.0, []
    for number, block in enumerate(measured["blocks"], 1):
        where, times = f"{measured['name']}, block {number}:", np.array(block["times_s"])
        edges = np.stack([block["starts_s"], block["ends_s"]], axis=1).ravel()
        seconds = min((edges[1::2] - edges[::2]).sum(), block["end_s"] - block["start_s"])
        if (
            (np.diff(edges) < 0).any()
            or block["start_s"] < ended
            or not 0 <= block["time_s"] * block["work"] <= 1.1 * seconds
        ):
            yield f"{where} its windows are not in order, or too short for its work"
        if (np.diff(times) < 0).any() or times[0] < edges[0] or times[-1] > edges[-1]:
            yield f"{where} its samples are not in order, or not of its windows"
        ended, energy_j = block["end_s"], float(mean_power(block) * block["time_s"])
        yield from differing(block["energy_j"], energy_j, f"{where} energy_j")
        blocks.append({**block, "energy_j": energy_j})
    compute = {"calls": of_calls, "in turns": in_turns}[measured["kind"]]
    yield from differing(measured["figures"], compute(blocks, **measured["parameters"]), f"{measured['name']}:")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    lines = [line for measured in document["measured"] for line in faults(measured)]
    print(*lines, f"{document['gpu']}: {len(document['measured'])} results, {len(lines)} faults", sep="\n")
    sys.exit(1 if lines else 0)
