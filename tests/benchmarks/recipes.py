"""The ways to tune for energy on the simulated A100 with GEMM: the same clocks for every method, several seeds.

By hand: `python tests/benchmarks/recipes.py [SEEDS] > tests/benchmarks/recipes.txt`. Each line is one
`wattridge compare-methods`: every configuration is measured at every clock, and each method is answered from those
measurements and counted as if it were alone; the sweep of the model-steered one counts with it. What must hold:
global energy to solution at most the energy of every other; model-steered within 1 % of it, with at least 70 % fewer
measurements.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SPECIFICATION = ROOT / "resources" / "examples" / "gemm.toml"
BOARD = "simulated:a100"
CLOCKS = ("7", "10", "14")


def command(clocks: str, seed: int, data: str, *flags: str) -> str:
    """What the command prints."""
    program = [sys.executable, "-m", "app", "compare-methods", str(SPECIFICATION), "--gpu", BOARD]
    finished = subprocess.run(
        [*program, "--clocks", clocks, "--sim-seed", str(seed), *flags],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "WATTRIDGE_DATA": data},
    )
    return finished.stdout


def row(clocks: str, seed: int, document: dict[str, Any]) -> str:
    """One line of the table."""
    found = {each["method"]: each for each in document["results"]}
    steered, everything = found["model_steered"], found["global_energy"]
    least = min(each["energy_j"] for each in document["results"])
    over = 100 * (steered["energy_j"] / everything["energy_j"] - 1)
    fewer = 100 * (1 - steered["measurements"] / everything["measurements"])
    holds = everything["energy_j"] <= least and over <= 1.0 and fewer >= 70.0
    return (
        f"{clocks:>6} {seed:>4} {everything['measurements']:>9} {everything['energy_j']:>9.4f}"
        f" {100 * everything['efficiency_change']:>+8.1f} {100 * everything['speed_change']:>+8.1f}"
        f" {everything['clock_mhz']:>6.0f} {steered['measurements']:>9} {steered['clock_mhz']:>6.0f}"
        f" {over:>8.2f} {fewer:>7.1f} {everything['seconds'] / 60:>8.1f} {steered['seconds'] / 60:>8.1f}"
        f"  {'yes' if holds else 'NO'}"
    )


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(f"{BOARD}, {SPECIFICATION.name}; 'over' is energy of model-steered over that of global, %; times in min")
    heads = ("clocks", "seed", "global", "energy J", "gain %", "speed %", "MHz", "steered", "MHz", "over %", "fewer %")
    widths = (6, 4, 9, 9, 8, 8, 6, 9, 6, 8, 7)
    print(" ".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True)), "  global  steered  holds")
    with tempfile.TemporaryDirectory() as data:
        for clocks in CLOCKS:
            for seed in range(1, seeds + 1):
                print(row(clocks, seed, json.loads(command(clocks, seed, data, "--json"))), flush=True)
        print("\nThe table of one of them:\n")
        print(command("10", 1, data))


if __name__ == "__main__":
    main()
