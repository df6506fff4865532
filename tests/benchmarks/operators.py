"""The eleven operators of [Zhang2024] on one board: search arms side by side, the vendor's library, and the floor.

    PYTHONPATH=. .venv/bin/python tests/benchmarks/operators.py --gpu 0 --out results.jsonl
    PYTHONPATH=. .venv/bin/python tests/benchmarks/operators.py --gpu simulated:h200 --shapes MM1,MV3 --evaluations 100

Each arm searches with the same seed and budget; each winner, and the library, is then measured again for 3 s. It reads
and never sets: no clock, no limit. One line of JSON per shape is appended as soon as it is known, so that a run that
is cut off keeps what it has, and shapes that a file holds are left out when it is given again. On a simulated board
the truth of each winner stands beside it.

`floor` is what no kernel can beat: the operator's work at the board's peak and its least bytes at the full bandwidth.
"""

from __future__ import annotations

import argparse
import json
import math
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from energy_arms import ARMS

from app.engine import strategies  # noqa: F401  (registers every strategy)
from app.engine.measurement import Measurement
from app.engine.objectives import Goal
from app.engine.operators.kept import kept_specification
from app.engine.operators.shapes import EXAMPLES, Operator
from app.engine.runner.base import StatesFigures
from app.engine.runner.baseline import Baseline
from app.engine.session.load import load_specification
from app.engine.session.plan import SearchOptions, SessionPlan
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.session.summary import by_goal
from app.engine.store.database import Store
from app.engine.strategies import base
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.gpu import Gpu
from app.sensors.select import open_gpu
from app.sensors.simulated import laws
from app.sensors.simulated.gpu import SimulatedGpu

AGAIN_S = 3.0
A100 = {  # of the text's table 2: latency search and energy search, mJ; cuBLAS of its table 4
    "MM1": (8.3, 6.5, 7.19),
    "MM2": (47.23, 45.07, 51.43),
    "MM3": (56.09, 54.36, None),
    "MM4": (375.18, 325.94, None),
    "MV1": (494.06, 479.65, 481.57),
    "MV2": (434.72, 427.27, 424.82),
    "MV3": (29.17, 27.85, None),
    "MV4": (109.14, 106.51, None),
    "CONV1": (68.47, 59.16, None),
    "CONV2": (89.47, 77.79, None),
    "CONV3": (324.37, 319.39, None),
}
FLOORS = {
    "H200": (67e12, 4.8e12),
    "H100": (67e12, 3.35e12),
    "A100": (19.5e12, 1.555e12),
}  # flop/s, byte/s (data sheets)


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to search."""

    name: str
    strategy: str
    goal: str
    options: Mapping[str, Any]


def arms() -> list[Arm]:
    """Latency alone, energy of everything by a genetic search, and the three arms of the energy-aware one."""
    known = [
        Arm("latency", "genetic_algorithm", "time_s", {}),
        Arm("energy", "genetic_algorithm", "energy_j", {}),
        # the same strategy, seed and first candidates; only what is measured differs
        *(Arm(f"energy_aware, {name}", "energy_aware", "energy_j", options) for name, options in ARMS.items()),
    ]
    return [arm for arm in known if arm.strategy in base.names()]


def figures(measurement: Measurement) -> dict[str, Any]:
    low, high = measurement.intervals.get("energy_j", (math.nan, math.nan))
    values = measurement.values
    return {
        "energy_mj": values.get("energy_j", math.nan) * 1e3,
        "interval_mj": [low * 1e3, high * 1e3],
        "latency_ms": values.get("time_s", math.nan) * 1e3,
        "power_w": values.get("power_w", math.nan),
        "clock_mhz": measurement.observed_clock_mhz,
        "state": measurement.state.value,
        "said": measurement.error or measurement.message,
    }


def searched(arm: Arm, operator: Operator, gpu: Gpu, store: Store, evaluations: int, seed: int) -> dict[str, Any]:
    """One session; its winner, and what it cost."""
    options = SearchOptions(
        strategy=arm.strategy,
        strategy_options=dict(arm.options),
        objective=Goal(arm.goal, maximise=False),
        max_evaluations=evaluations,
        seed=seed,
    )
    plan = plan_specification(load_specification(kept_specification(operator)), gpu, options)
    began = time.monotonic()
    result = run_session(plan, store, lambda event: None, threading.Event())
    seconds = time.monotonic() - began
    best = next(iter(by_goal(result.table, plan.objective.goal)), None)
    rows = [result.table.measurement(index) for index in range(len(result.table))]
    return {
        "session": result.session,
        "valid": plan.space.size,
        "evaluated": len(rows),
        "energy_measurements": sum("energy_j" in row.values for row in rows),
        "failed": result.table.failures(),
        "wall_s": seconds,
        "row": None if best is None else rows[best].row,
        "configuration": {} if best is None else dict(rows[best].configuration),
        "first": None if best is None else figures(rows[best]),
    }


def measured_again(plan: SessionPlan, rows: Sequence[int]) -> tuple[dict[int, Measurement], Baseline | None]:
    """The winners and the vendor's library, one after the other in one process, each for AGAIN_S."""
    runner = plan.make_runner()
    if hasattr(runner, "window_s"):
        runner.window_s = AGAIN_S
    try:
        found = {each.row: each for each in runner.measure(rows, threading.Event())}
        if isinstance(runner, StatesFigures):
            found = {each.row: each for each in runner.restated(list(found.values()))}
            return found, Baseline.of_origin(runner.conclude())
        return found, None
    finally:
        runner.close()


def truth(gpu: Gpu, plan: SessionPlan, row: int, operator: Operator) -> dict[str, float] | None:
    """Of a simulated board, thermally steady at the highest clock."""
    if not isinstance(gpu, SimulatedGpu):
        return None
    kernel = ProfiledKernel.of(load_specification(kept_specification(operator)), gpu.limits)
    clocks = gpu.twin.clocks
    load = kernel.prepare(plan.space.configuration(row))
    limit_w = gpu.twin.power.limit_default_w
    point, power_w, _ = laws.settled_under_limits(
        gpu.twin, load, clocks.graphics_mhz[-1], clocks.memory_mhz[-1], limit_w
    )
    return {"energy_mj": power_w * point.launch_s * 1e3, "latency_ms": point.launch_s * 1e3}


def shape(name: str, gpu: Gpu, store: Store, evaluations: int, seed: int) -> dict[str, Any]:
    """Everything about one operator."""
    operator = EXAMPLES[name]
    found = {arm.name: searched(arm, operator, gpu, store, evaluations, seed) for arm in arms()}
    plan = plan_specification(load_specification(kept_specification(operator)), gpu)
    rows = list(dict.fromkeys(each["row"] for each in found.values() if each["row"] is not None))
    again, baseline = measured_again(plan, rows)
    for each in found.values():
        if each["row"] is not None:
            each["again"] = figures(again[each["row"]]) if each["row"] in again else None
            each["truth"] = truth(gpu, plan, each["row"], operator)
    peak, bandwidth = next((known for part, known in FLOORS.items() if part in gpu.info.name), (math.nan, math.nan))
    return {
        "shape": name,
        "operator": operator.notation,
        "gpu": gpu.info.name,
        "source": gpu.info.source,
        "seed": seed,
        "budget": evaluations,
        "arms": found,
        "vendor": None if baseline is None else baseline.to_json(),
        "floor_ms": max(operator.work_flop / peak, operator.least_byte / bandwidth) * 1e3,
        "a100_mj": A100[name],
    }


def line(result: Mapping[str, Any]) -> str:
    """One row of the table."""
    cells = [f"{result['shape']:6s}"]
    for name, arm in result["arms"].items():
        seen = arm.get("again") or arm["first"] or {"energy_mj": math.nan, "latency_ms": math.nan}
        cells.append(
            f"{name}: {seen['energy_mj']:8.3f} mJ {seen['latency_ms']:.4f} ms "
            f"({arm['energy_measurements']}/{arm['evaluated']}, {arm['wall_s']:.0f} s)"
        )
    vendor = result["vendor"] or {}
    values = vendor.get("values") or {}
    if "energy_j" in values:
        cells.append(f"{vendor['library']}: {values['energy_j'] * 1e3:.3f} mJ {values['time_s'] * 1e3:.4f} ms")
    else:
        cells.append(f"library: {vendor.get('why_not', 'not measured')}")
    cells.append(f"floor {result['floor_ms']:.4f} ms; A100 {result['a100_mj'][0]} -> {result['a100_mj'][1]} mJ")
    return " | ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", default="simulated:h200")
    parser.add_argument("--shapes", default=",".join(EXAMPLES))
    parser.add_argument("--evaluations", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a file of JSON lines, appended to")
    given = parser.parse_args()
    kept = given.out.read_text().splitlines() if given.out and given.out.is_file() else []
    done = {json.loads(each)["shape"] for each in kept}
    with closing(open_gpu(given.gpu, seed=given.seed, speed=math.inf)) as gpu, Store() as store:
        for name in (each for each in given.shapes.split(",") if each not in done):
            result = shape(name, gpu, store, given.evaluations, given.seed)
            print(line(result), flush=True)
            if given.out:
                with given.out.open("a") as file:
                    file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
