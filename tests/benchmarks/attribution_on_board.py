"""The attribution of joules on programs that ran on an H200, against each kernel alone and the energy counter.

By hand: python tests/benchmarks/attribution_on_board.py [phases] [mix] [together]

`data/h200_programs.npz` holds three programs of twelve kernels, recorded on a board that was only read: 'phases', of
0.3 to 0.8 s each; 'mix', 121,050 launches in random order; 'together', each once in every iteration. For each program:
gaps between the begins of kernels and their durations (ns), families, memory sets, the driver's samples (s after the
first kernel, W), and the energy counter (J, from, to). `alone`: of each kernel run by itself for 4 s, the power of the
last 2.5 s in W, the time of a launch in ms, and the graphics clock in MHz. The sensor's figures are what `wattridge
characterise` found on that board. What alone is at the limit (700 W) draws more in bursts, and is no truth.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from app.engine.attribution.activity import Activity
from app.engine.attribution.attribute import attribute
from app.engine.attribution.samples import PowerSamples

DATA = Path(__file__).parent / "data" / "h200_programs.npz"
WINDOW_S, LAG_S, NOISE = (0.030586, 0.000434), (0.000992, 0.000272), 0.00733  # with their margins; relative
LIMIT_W, AT_LIMIT = 700.0, 0.9  # alone above this share of the limit: listed, not counted


def run(kind: str) -> None:
    """Print a table of one program."""
    with np.load(DATA, allow_pickle=False) as data:
        parts = {name.removeprefix(f"{kind}_"): data[name] for name in data.files if name.startswith(f"{kind}_")}
        names, alone = [str(name) for name in data["names"]], data["alone"]
    begin_s = np.cumsum(parts["gap_ns"], dtype=np.int64) / 1e9
    end_s = begin_s + parts["duration_ns"] / 1e9
    used, family = np.unique(parts["family"], return_inverse=True)
    families = [*(names[place] for place in used), "memset"]
    sets = np.full(len(parts["set_s"]), len(used))
    activity = Activity.of(
        families,
        ["kernel"] * len(used) + ["set"],
        np.concatenate([family, sets]),
        np.concatenate([begin_s, parts["set_s"]]),
        np.concatenate([end_s, parts["set_s"] + parts["set_duration_s"]]),
    )
    time_s, power_w = parts["sample_s"], parts["sample_w"].astype(np.float64)
    samples = PowerSamples(time_s, power_w, WINDOW_S[0], LAG_S[0], WINDOW_S[1], LAG_S[1], NOISE)
    began = time.perf_counter()
    found = attribute(activity, samples, limit_w=LIMIT_W)
    took_s = time.perf_counter() - began
    counter_j, first_s, last_s = parts["counter"]
    beside = ((time_s > first_s) & (time_s < begin_s[0])) | ((time_s > end_s.max()) & (time_s < last_s))
    rest_s = (last_s - first_s) - (end_s.max() - begin_s[0])
    truth_j = counter_j - rest_s * (power_w[beside].mean() if beside.any() else 0.0)
    total = found.total
    off = total.value / truth_j - 1
    print(
        f"{kind}: {len(activity):,} slices in {took_s:.1f} s, "
        f"total {total.value:.0f} J ({total.low:.0f}-{total.high:.0f}), counter {truth_j:.0f} J, {off:+.2%}"
    )
    for item in found.items:
        joules = item.joules
        words = " + ".join(families[place] for place in item.families) or "gaps"
        line = f"  {words:42} {joules.value:8.0f} J ±{joules.half / max(joules.value, 1.0):6.1%} "
        line += f"{joules.value / max(item.seconds, 1e-9):5.0f} W"
        if len(item.families) == 1 and families[item.families[0]] in names:
            watts = float(alone[names.index(families[item.families[0]])][0])
            counts = "" if watts < AT_LIMIT * LIMIT_W else ", at the limit"
            line += f"  alone {watts:.0f} W: {joules.value / (watts * item.seconds) - 1:+.1%}{counts}"
        print(line)


if __name__ == "__main__":
    for asked in sys.argv[1:] or ("phases", "mix", "together"):
        run(asked)
