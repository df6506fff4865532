"""The simulated boards beside what their papers print, by the program's own commands: python tests/benchmarks/papers.py

Each figure is one of a command, which is printed above it, beside that of the paper, with its table or section; S1, S2
and S4 are the sources of resources/twins/README.md. Takes four minutes. The last output is kept in `papers.txt`. What
the comparisons show, and why a board is as it is, is said in that README.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from app.sensors.simulated.twin import load_twin, twin_names  # noqa: E402

MI210 = {  # S4, tables 6 and 8: eps_flop, eps_mem, pi_0; table 3: % of the peaks, by a kernel alone and the roofline's
    "fp32": ((8.36, 80.48, 112.00), (91.02, 90.33), (77.99, 85.44)),
    "fp64": ((19.49, 88.15, 104.53), (77.76, 82.19), (85.96, 89.39)),
}
SHAPE = ("dim_m", "dim_n", "blk_m", "blk_n", "blk_k", "blk_m_a", "blk_n_a", "blk_m_b", "blk_n_b")
DGEMM = {  # S2, table II: GFLOP/s, GFLOPS/W
    (16, 16, 64, 96, 16, 64, 4, 16, 16): (904, 4.4867),
    (32, 16, 128, 128, 16, 32, 16, 8, 64): (782, 4.5849),
    (16, 16, 128, 128, 8, 64, 4, 8, 32): (703, 4.5754),
    (16, 16, 128, 128, 8, 32, 8, 4, 64): (656, 4.4415),
    (16, 16, 64, 256, 8, 32, 8, 4, 64): (516, 3.8891),
    (16, 16, 128, 128, 2, 128, 2, 2, 128): (389, 3.2539),
    (16, 16, 64, 128, 4, 64, 4, 2, 128): (345, 2.8617),
    (48, 16, 48, 96, 16, 48, 16, 8, 96): (308, 2.3473),
    (64, 16, 64, 64, 16, 64, 16, 16, 64): (311, 2.3488),
    (16, 48, 96, 48, 16, 48, 16, 16, 48): (318, 2.3590),
    (64, 16, 64, 64, 48, 64, 16, 16, 64): (355, 2.4323),
    (32, 16, 64, 64, 24, 64, 8, 8, 64): (633, 3.2919),
    (16, 16, 64, 80, 16, 32, 8, 16, 16): (843, 4.0591),
    (16, 16, 80, 80, 16, 16, 16, 16, 16): (901, 4.4317),
}
COUNTERS = ("l2_texture_read_hit_rate", "shared_load_throughput", "dram_read_throughput", "dram_utilization")


def wattridge(*words: str, show: bool = True) -> Any:
    """What a command prints as JSON."""
    if show:
        print(f"\nwattridge {' '.join(words)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "app", *words, "--json"], cwd=ROOT, capture_output=True, check=True)
    return json.loads(done.stdout)


def mi210() -> None:
    """S4: what a roofline sweep finds, and how near its kernels come to the peaks."""
    found = wattridge("roofline", "--gpu", "simulated:mi210", "--precision", "fp32,fp64")["precisions"]
    for precision, (fit, flop, copy) in MI210.items():
        one = found[precision]
        for name, theirs in zip(("eps_flop_pj", "eps_mem_pj_per_b", "pi_0_w"), fit, strict=True):
            share = 100 * (one[name] / theirs - 1)
            print(f"  {precision} {name:18} {one[name]:7.2f}   S4 {theirs:7.2f}   {share:+5.1f} %")
        peak = one["peak_gflops"] / one["theoretical_peak_gflops"]
        bandwidth = one["bandwidth_gb_s"] / one["theoretical_bandwidth_gb_s"]
        for what, share, theirs in (("flop", peak, flop), ("copy", bandwidth, copy)):
            line = f"  {precision} {what} kernel, % of the peak {100 * share:5.1f}"
            print(f"{line}   S4 table 3: {theirs[0]} alone, {theirs[1]} of the roofline")


def gtx_580() -> None:
    """S4, table 10: the energy of a word."""
    for each in wattridge("roofline", "--predict", "1e12,1e9"):
        if each["gpu"] in ("GTX 580", "A100 SXM4 40GB"):
            for precision, one in each["precisions"].items():
                per_byte, word = one["eps_mem_pj_per_b"], one["eps_mop_pj_per_word"]
                print(f"  {each['gpu']:15} {precision} eps_mem {per_byte:6.2f} pJ/B   eps_mop {word:7.1f} pJ")
    print("  S4: GTX 580 (table 10) 513, 2052 in both; A100 40GB 93.48, 373.9 (table 6) and 81.59, 652.7 (table 8)")


def locked_and_limited() -> None:
    """S1, section 6.5.3: at the same clock, a bit more power where it is locked."""
    print("\nwattridge twin NAME --truth, also with the lowest --power-limit: the clock at which it holds the load")
    for name in twin_names():
        lowest = f"{load_twin(name).power.limit_minimum_w:g}"
        limited = wattridge("twin", name, "--truth", "--power-limit", lowest, show=False)["clocks"][-1]
        free = [row for row in wattridge("twin", name, "--truth", show=False)["clocks"] if not row["capped"]]
        clocks, power = ([row[key] for row in free] for key in ("clock_mhz", "power_w"))
        locked_w = float(np.interp(limited["observed_clock_mhz"], clocks, power))
        print(
            f"  {name:10} {lowest:>4} W  {limited['observed_clock_mhz']:6.0f} MHz  limited {limited['power_w']:6.1f} W"
            f"  locked {locked_w:6.1f} W  {100 * (locked_w / limited['power_w'] - 1):+5.2f} %"
        )


def difficulty() -> None:
    """S1, section 6.5.2 and figure 6.5: how much of the minima's centrality lies within p times the best."""
    for name in ("a4000", "a6000", "a100"):
        board = f"simulated:{name}"
        wattridge("tune", "gemm", "--gpu", board, "--strategy", "brute_force", "--max-evaluations", "100000")
        for what, curve in wattridge("analyse", show=False)["difficulty"].items():
            at = dict(zip(curve["p"], curve["proportion_of_centrality"], strict=True))
            print(f"  {what:26}", "  ".join(f"p {p:.2f}: {at[p]:.2f}" for p in (1.01, 1.05, 1.1, 1.25)))
    print("  S1: no significant difference on the A4000 and A6000; A100: energy 2 to 4 times less likely, p <= 1.1")


def at_one_clock(folder: Path, name: str, restriction: str = "") -> str:
    """A file of the DGEMM example at the board's own clock, as S2 ran it."""
    text = (ROOT / "resources" / "examples" / "dgemm.toml").read_text()
    text = text.replace("../kernels", str(ROOT / "resources" / "kernels"))
    head, _, tail = text.partition("[device_settings]")
    text = head + tail[tail.index("\n[") :]
    if restriction:
        text = text.replace("restrictions = [", f'restrictions = [\n    "{restriction}",', 1)
    (folder / name).write_text(text)
    return str(folder / name)


def dgemm(folder: Path) -> None:
    """S2, table II, and the correlations of section 3.5."""
    rows = " or ".join("({})".format(" and ".join(f"{n} == {v}" for n, v in zip(SHAPE, r, strict=True))) for r in DGEMM)
    file = at_one_clock(folder, "table_ii.toml", f"simd == 0 and ({rows})")
    print("\nwattridge tune table_ii.toml --gpu simulated:k20x --strategy brute_force (the example's 14 rows, 732 MHz)")
    wattridge("tune", file, "--gpu", "simulated:k20x", "--strategy", "brute_force", show=False)
    wattridge("export", "--kind", "cache", "--out", str(folder), "--force", show=False)
    [cache] = folder.glob("*-cache.json")
    entries = json.loads(cache.read_text())["cache"].values()
    found = {tuple(each[n] for n in SHAPE): (each["GFLOP/s"], each["GFLOPS/W"]) for each in entries}
    pairs = np.array([(*found[shape], *measured) for shape, measured in DGEMM.items()])
    off = pairs[:, :2] / pairs[:, 2:] - 1
    for shape, pair, share in zip(DGEMM, pairs, 100 * off, strict=True):
        speed = f"{pair[0]:4.0f} GFLOP/s  S2 {pair[2]:4.0f} {share[0]:+5.0f} %"
        efficiency = f"{pair[1]:.2f} GFLOPS/W  S2 {pair[3]:.2f} {share[1]:+5.0f} %"
        print(f"  {' '.join(map(str, shape)):38} {speed}   {efficiency}")
    for column, what in enumerate(("GFLOP/s", "GFLOPS/W")):
        ranks = [np.argsort(np.argsort(pairs[:, column + 2 * side])) for side in (0, 1)]
        middle, most = 100 * np.median(np.abs(off[:, column])), 100 * np.abs(off[:, column]).max()
        agree = np.corrcoef(*ranks)[0, 1]
        print(f"  {what}: off by {middle:.0f} % in the median, {most:.0f} % at most; ranks correlate by {agree:.2f}")

    file = at_one_clock(folder, "dgemm.toml")
    words = ("--gpu", "simulated:k20x", "--strategy", "random_sample", "--max-evaluations", "770")
    wattridge("tune", file, *words, show=False)
    wattridge("counters", "--random", "770", show=False)
    print("\nwattridge tune dgemm.toml (at 732 MHz)", *words, "; wattridge counters --random 770 ; wattridge analyse")
    for each in wattridge("analyse", show=False)["correlations"]:
        if each["name"] in COUNTERS:
            speed, efficiency = each["speed"]["linear"], each["efficiency"]["linear"]
            print(f"  {each['name']:26} with speed {speed:+.2f}, with efficiency {efficiency:+.2f}")
    print("  S2, section 3.5: from speed to efficiency the first two move to the right, those of DRAM to the left")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WATTRIDGE_DATA"] = folder
        mi210()
        gtx_580()
        locked_and_limited()
        difficulty()
        dgemm(Path(folder))


if __name__ == "__main__":
    main()
