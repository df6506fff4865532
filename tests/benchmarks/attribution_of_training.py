"""The joules of 20 s of training on an H200, from its trace and its power, beside the board's energy counter.

    PYTHONPATH=. python tests/benchmarks/attribution_of_training.py

The data are `programs/train-*` of the public measurements (`WATTRIDGE_SHARED`); lag and margin are what boards of that
model differ by.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np

from app.engine.attribution.activity import Activity
from app.engine.attribution.attribute import attribute
from app.engine.attribution.samples import PowerSamples

FOLDER = Path(os.environ.get("WATTRIDGE_SHARED", "../shared")) / "data" / "programs"
KINDS = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "set"}


def main() -> None:
    """Print items, total and counter."""
    trace = json.loads(gzip.decompress((FOLDER / "train-trace.json.gz").read_bytes()))
    alone = json.loads((FOLDER / "train-alone.json").read_text())
    time_us, power_w = np.loadtxt(FOLDER / "train-power.csv", delimiter=",", skiprows=1).T
    origin_s = alone["begin_us"] / 1e6
    slices = [event for event in trace["traceEvents"] if event.get("cat") in KINDS]
    kinds = {event["name"]: KINDS[event["cat"]] for event in slices}
    place = {name: number for number, name in enumerate(kinds)}
    begin_s = np.array([event["ts"] for event in slices]) / 1e6 + (trace["baseTimeNanoseconds"] / 1e9 - origin_s)
    end_s = begin_s + np.array([event["dur"] for event in slices]) / 1e6
    family = [place[event["name"]] for event in slices]
    activity = Activity.of(tuple(kinds), tuple(kinds.values()), family, begin_s, end_s)
    samples = PowerSamples(time_us / 1e6 - origin_s, power_w, 0.02, 0.0, 2e-4, 3e-3, 0.005)
    result = attribute(activity, samples, limit_w=700.0, idle_w=alone["idle_with_context_w"])
    print(f"R2 {result.explained:.3f}, lag {result.lag_s * 1e3:.2f} ms, window {result.window_s * 1e3:.2f} ms")
    for item in result.items:
        names = ", ".join(activity.names[number][:40] for number in item.families) + " gaps" * item.gaps
        watts = item.joules.value / item.seconds
        print(f"{item.joules.value:8.1f} J +- {item.joules.half:6.1f} {watts:5.0f} W {item.count:6d} {names[:130]}")
    total = result.total
    print(f"total {total.value:.1f} J +- {total.half:.1f}, counter {alone['counter_j']:.1f} J")


if __name__ == "__main__":
    main()
