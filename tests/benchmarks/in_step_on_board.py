"""Launches that keep step with the driver's samples: do two opposite windows agree better than one?

Run by hand on a board that nobody else uses: python tests/benchmarks/in_step_on_board.py [--out FOLDER] [--seconds 85]
Configurations of SGEMM whose launches take about 20 or 6.7 ms on an H200, and two whose launches do not keep step, are
measured over and over in one process, in random order: as a session does it, and with the second window left out.
Printed for each way: how far repeats of a configuration are apart, and what a measurement costs. Drift of the board is
in both alike.
It reads and never sets. REFERENCE_GPU=simulated:h200 tries it without a board.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reference import NAMES, Kept, opened, specification_text

# 20.05, 20.3, 20.6, 19.5 and 6.7 ms on an H200; 6.1 and 7.4
KEYS = ((16, 2, 4, 2), (64, 2, 1, 2), (32, 1, 4, 8), (16, 32, 1, 2), (16, 8, 4, 4), (64, 4, 2, 8), (16, 16, 8, 2))
WAYS = ("both windows", "one window")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("in-step-result"))
    parser.add_argument("--seconds", type=float, default=85.0, help="for everything, the first look at the sensor too")
    arguments = parser.parse_args()
    out, began = arguments.out.resolve(), time.monotonic()
    (out / "data").mkdir(parents=True, exist_ok=True)
    os.environ["WATTRIDGE_DATA"] = str(out / "data")
    path = out / "sgemm.toml"
    path.write_text(specification_text(KEYS))
    found = measured(path, began + arguments.seconds - 3.0)
    (out / "in_step.json").write_text(json.dumps(found))
    report(found)


def measured(path: Path, until: float) -> list[dict[str, Any]]:
    """Every measurement, round after round, until that time (`time.monotonic`) or for 30 rounds."""
    from app.engine.metering import meter
    from app.engine.session.load import load_specification
    from app.engine.session.planning import plan_specification
    from app.engine.specification.plan import SearchOptions

    gpu, keeps_step, rng, found = opened(Kept()), meter.keeps_step, random.Random(3), []
    try:
        plan = plan_specification(load_specification(path), gpu, SearchOptions(strategy="brute_force"))
        runner = plan.boards.runner(plan)
        try:
            rows = list(range(plan.space.size))
            list(runner.measure(rows, threading.Event()))  # compiles, and warms the board up
            for number in range(30):
                for way in rng.sample(WAYS, len(WAYS)):
                    began = time.monotonic()
                    if began + 0.5 * len(rows) > until:
                        return found
                    meter.keeps_step = keeps_step if way == WAYS[0] else lambda *a, **k: False
                    for each in runner.measure(rng.sample(rows, len(rows)), threading.Event()):
                        key = [each.configuration[name] for name in NAMES]
                        values = {"power_w": each.values.get("power_w"), "time_s": each.values.get("time_s")}
                        found.append({"key": key, "way": way, "round": number, "cost_s": each.cost_s, **values})
        finally:
            meter.keeps_step = keeps_step
            runner.close()
    finally:
        gpu.close()
    return found


def report(found: list[dict[str, Any]]) -> None:
    """Scatter of power by configuration and way, once the mean of each round of all is taken out."""
    known = [each for each in found if each["power_w"] is not None]
    keys = sorted({tuple(each["key"]) for each in known}, key=str)
    usual = {key: statistics.fmean(each["power_w"] for each in known if tuple(each["key"]) == key) for key in keys}
    off = [each["power_w"] / usual[tuple(each["key"])] - 1.0 for each in known]
    drift: dict[tuple[int, str], list[float]] = {}
    for each, error in zip(known, off, strict=True):
        drift.setdefault((each["round"], each["way"]), []).append(error)
    print("scatter of repeats, %          ms   repeats" + "".join(f"{way:>16}" for way in WAYS) + "   s each")
    for key in keys:
        cells, costs, count = "", [], 0
        for way in WAYS:
            mine = [
                100 * (error - statistics.median(drift[each["round"], way]))
                for each, error in zip(known, off, strict=True)
                if tuple(each["key"]) == key and each["way"] == way
            ]
            cells += f"{statistics.stdev(mine) if len(mine) > 1 else float('nan'):>16.2f}"
            of_way = [each["cost_s"] for each in known if tuple(each["key"]) == key and each["way"] == way]
            costs.append(statistics.median(of_way) if of_way else float("nan"))
            count = max(count, len(mine))
        ms = 1e3 * statistics.median(each["time_s"] for each in known if tuple(each["key"]) == key)
        name = "x".join(map(str, key))
        print(f"{name:<22}{ms:>11.2f}{count:>10}{cells}   {' and '.join(f'{each:.2f}' for each in costs)}")


if __name__ == "__main__":
    main()
