"""The operators of [Zhang2024] on one board: search arms side by side, the vendor's library, the floor, the model.

    PYTHONPATH=. .venv/bin/python tests/benchmarks/operators.py --gpu 0 --seconds 290 --out operators.jsonl \
        --shapes "MM1 MM4 MV1 MV3 CONV1 CONV3" --model-seconds 0
    PYTHONPATH=. .venv/bin/python tests/benchmarks/operators.py --gpu 0 --seconds 290 --out operators.jsonl
    PYTHONPATH=. .venv/bin/python tests/benchmarks/operators.py --report operators.jsonl
    PYTHONPATH=. .venv/bin/python tests/benchmarks/operators.py --gpu simulated:h200 --shapes "MM1 MV3" --rounds 3

All arms have the same strategy, seed and first candidates, and as many rounds as the first of them had time for; what
one has measured the next is told and charged for. Later generations are bred of what an arm knows, and differ. Then
each winner, and the library, is measured again, one after the other. It reads and never sets: no clock, no limit. The
seconds are dealt out among the shapes: few of them mean few rounds, and shorter measurements at the end (3 s from 36 s
a shape on). What a shape's processes take to start is not charged to an arm. One line of JSON per shape is appended to
the file as soon as it is known; shapes that it holds are left out when it is given again, so that the two calls above,
each with half of the shapes, go twice as deep. What the energy model predicts is tested on random rows of two shapes,
unless --model-seconds is 0. At the end, and with --report from a kept file, `operator_lines.py` prints what is to be
shown of all of it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from app.base.records import as_json

os.environ.setdefault("OMP_NUM_THREADS", "2")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from energy_arms import ARMS  # noqa: E402
from operator_arms import Searched, Shared, run_arm  # noqa: E402
from operator_lines import print_lines  # noqa: E402

from app.engine import strategies  # noqa: E402, F401  (registers every strategy)
from app.engine.models.roofline.operator_floor import floor_on  # noqa: E402
from app.engine.results.measurement import Depth, Measurement, State  # noqa: E402
from app.engine.runner.kernels.reference import Baseline, LibraryRow  # noqa: E402
from app.engine.runner.kernels.runner import KernelRunner  # noqa: E402
from app.engine.session.load import load_specification  # noqa: E402
from app.engine.session.planning import plan_specification  # noqa: E402
from app.engine.specification.operator_kernels import kept_specification  # noqa: E402
from app.engine.specification.operator_shapes import EXAMPLES, LIBRARY, MAKER, Operator, parse_operator  # noqa: E402
from app.engine.specification.plan import SessionPlan  # noqa: E402
from app.engine.store.database import Store  # noqa: E402
from app.engine.strategies.energy_aware import RowNumbers  # noqa: E402
from app.engine.strategies.energy_log import EnergyLog  # noqa: E402
from app.engine.workloads.profiled import ProfiledKernel  # noqa: E402
from app.sensors.gpu import Gpu  # noqa: E402
from app.sensors.select import open_gpu  # noqa: E402
from app.sensors.simulated import laws  # noqa: E402
from app.sensors.simulated.gpu import SimulatedGpu  # noqa: E402

AS_FAST: Final = 1.03  # of the latency search's time: what energy is compared at
AGAIN_S: Final = 3.0
SHORT_AGAIN_S: Final = 1.0
LONG_SHAPE_S: Final = 36.0  # from so many seconds for a shape on, the longer one
START_S: Final = 4.0  # of a runner process and the first compilations
TIME_S, ENERGY_S = 0.07, 0.25  # for one row; as on an H200
SMALL: Final = {"first_generation": 48, "generation": 16, "fastest": 12}  # where rounds count: k needs several
UNTIL: Final = (0.6, 0.9, 1.0)  # shares of the seconds at which an arm ends at the latest: the first pays for most
MODEL_SHAPES: Final = ("MM1", "MM2")  # a model of each is a prior for the other


def figures(measurement: Measurement) -> dict[str, Any]:
    low, high = measurement.intervals.get("energy_j", (math.nan, math.nan))
    values = measurement.values
    return {
        "energy_mj": values.get("energy_j", math.nan) * 1e3,
        "interval_mj": [low * 1e3, high * 1e3],
        "latency_ms": values.get("time_s", math.nan) * 1e3,
        "power_w": values.get("power_w", math.nan),
        "power_raw_w": values.get("power_raw_w", math.nan),
        "temperature_c": values.get("temperature_c", math.nan),
        "clock_mhz": measurement.observed_clock_mhz,
        "state": measurement.state.value,
        "said": measurement.error or measurement.message,
        "configuration": dict(measurement.configuration),
    }


def first_figures(shared: Shared, row: int) -> dict[str, Any] | None:
    """As the search had them: what the second look at a winner is compared with."""
    kept = shared.known.get((row, Depth.ENERGY))
    return None if kept is None else {name: figures(kept)[name] for name in ("energy_mj", "latency_ms", "power_w")}


def measured_again(shared: Shared, rows: list[int], seconds: float) -> tuple[dict[int, Measurement], Baseline | None]:
    """The winners and the vendor's library, one after the other, each for so long."""
    runner = shared.runner
    if isinstance(runner, KernelRunner):
        runner.window_s = seconds
        runner._by_library = LibraryRow()  # the library once more, in place of what was measured of it
    found = list(shared.measure_now(rows, threading.Event()))
    return {each.row: each for each in runner.restated(found)}, Baseline.of_origin(runner.conclude())


def rounds_of(arm: Searched) -> int:
    """That an arm came to the end of, after the first."""
    log = EnergyLog.of_origin(arm.origin)
    return len(log.rounds) - 1 if log else 0


def rows_known(shared: Shared) -> list[dict[str, Any]]:
    """All that the arms had of the board, in their order: what a search can be replayed on."""
    return [
        {
            "row": row,
            "depth": depth.value,
            "cost_s": found.cost_s,
            "thermal_uncertainty": found.values.get("thermal_uncertainty", math.nan),
            **figures(found),
        }
        for (row, depth), found in shared.known.items()
    ]


def truth(gpu: Gpu, plan: SessionPlan, row: int, operator: Operator) -> float | None:
    """The energy in mJ of a simulated board, thermally steady at the highest clock; None of a real one."""
    if not isinstance(gpu, SimulatedGpu):
        return None
    kernel = ProfiledKernel.of(load_specification(kept_specification(operator)), gpu.limits)
    clocks = gpu.twin.clocks
    load = kernel.prepare(plan.space.configuration(row))
    limit_w = gpu.twin.power.limit_default_w
    point, power_w, _ = laws.settled_under_limits(
        gpu.twin, load, clocks.graphics_mhz[-1], clocks.memory_mhz[-1], limit_w
    )
    return power_w * point.launch_s * 1e3


def winners(arms: Mapping[str, Searched]) -> dict[str, int]:
    """The row of each arm: of least energy, or of least time; and of the k search at the latter's time, nearly."""
    chosen = {}
    for name, arm in arms.items():
        if name == "latency only":
            if arm.fastest is not None:
                chosen[name] = arm.fastest
        elif arm.best:
            chosen[name] = min(arm.best, key=lambda row: arm.best[row][1])
    latency, known = arms["latency only"], arms["k search"].best
    if latency.fastest is not None:
        limit_s = AS_FAST * latency.fastest_s
        as_fast = {row: energy_j for row, (time_s, energy_j) in known.items() if time_s <= limit_s}
        chosen["as fast"] = min(as_fast, key=lambda row: as_fast[row], default=latency.fastest)
    return chosen


def shape(name: str, gpu: Gpu, store: Store, seed: int, seconds: float, rounds: int | None) -> dict[str, Any]:
    """Everything about one operator, in about so many seconds."""
    began, operator = time.monotonic(), parse_operator(name)
    again_s = AGAIN_S if seconds >= LONG_SHAPE_S else SHORT_AGAIN_S
    plan = plan_specification(load_specification(kept_specification(operator)), gpu)
    plan = replace(plan, seed=seed)
    shared = Shared(plan.boards.runner(plan))
    started_s = shared.start(plan.suggestions[:1] or (0,))  # processes, the first kernel: no arm pays
    ready = time.monotonic()
    left_s = seconds - (ready - began) - 5 * (again_s + 0.4)
    options: dict[str, Any] = {"use_prior": False}  # the arms and shapes must not learn from each other
    if math.isfinite(seconds):
        first_s = SMALL["first_generation"] * TIME_S + SMALL["fastest"] * ENERGY_S
        round_s = 2 * SMALL["generation"] * TIME_S + 1.2 * SMALL["fastest"] * ENERGY_S  # of all arms, shared
        options |= {**SMALL, "rounds": max(1, int((left_s - first_s) / round_s))}
    if rounds is not None:
        options |= {**SMALL, "rounds": rounds}
    try:
        arms = {}
        for share, (arm, own) in zip(UNTIL, ARMS.items(), strict=True):
            until_s = ready + left_s * share if math.isfinite(left_s) else ready + 3600.0
            goal = "time_s" if arm == "latency only" else "energy_j"
            arms[arm] = run_arm(plan, {**options, **own}, goal, shared, store, until_s)
            if arm == "k search" and arms[arm].ended == "stopped":  # the others must not have more rounds than it had
                options |= {"rounds": max(1, rounds_of(arms[arm]))}
        rows = winners(arms)
        wanted = dict.fromkeys([*rows.values(), *plan.space.rows_with({MAKER: LIBRARY}).tolist()])
        again, baseline = measured_again(shared, list(wanted), again_s)
    finally:
        shared.close()
    log = EnergyLog.of_origin(arms["k search"].origin)
    before = Baseline.of_origin(arms["k search"].origin)
    return {
        "shape": name,
        "operator": operator.notation,
        "gpu": gpu.info.name,
        "source": gpu.info.source,
        "driver": gpu.info.driver,
        "date": time.strftime("%Y-%m-%d"),
        "seed": seed,
        "valid": plan.space.size,
        "options": options,
        "again_s": again_s,
        "started_s": started_s,
        "arms": {
            arm: {
                **asdict(each.spent),
                "board_s": each.spent.board_s,
                "wall_s": each.wall_s,
                "ended": each.ended,
                "rounds": rounds_of(each),
            }
            for arm, each in arms.items()
        },
        "winners": {
            arm: {
                "row": row,
                **figures(again[row]),
                "truth_mj": truth(gpu, plan, row, operator),
                "before": first_figures(shared, row),
                "of_starts": row in plan.suggestions,
            }
            for arm, row in rows.items()
            if row in again
        },
        "predicted": {"predicted_j": log.predicted_j, "measured_j": log.measured_j} if log else None,
        "k": [each.k for each in log.rounds] if log else [],
        "rows": rows_known(shared),
        "vendor": None if baseline is None else as_json(baseline),
        "vendor_before": None if before is None else as_json(before),
        "floor": as_json(floor_on(operator, plan, store)),
        "seconds": time.monotonic() - began,
    }


def model_rows(name: str, gpu: Gpu, seconds: float, seed: int, most: int = 400) -> dict[str, Any]:
    """Random rows of one shape measured in full for so long, and what the model of energies is given of them."""
    plan = plan_specification(load_specification(kept_specification(parse_operator(name))), gpu)
    rows = np.random.default_rng(seed).choice(plan.space.size, min(most, plan.space.size), replace=False).tolist()
    runner, stop = plan.boards.runner(plan), threading.Event()
    timer = threading.Timer(seconds, stop.set)
    timer.start()
    try:
        found = [m for m in runner.measure(rows, stop) if m.state is State.OK and "energy_j" in m.values]
        numbers = RowNumbers(plan.space)
        kept = [each.row for each in found]
        known, names = numbers.of(kept), numbers.names
        if runner.feature_names and kept:
            known, names = np.hstack([known, runner.features(kept)]), (*names, *runner.feature_names)
    finally:
        timer.cancel()
        runner.close()
    return {
        "names": list(names),
        "features": [[None if math.isnan(x) else x for x in row] for row in known.tolist()],
        "time_s": [each.values["time_s"] for each in found],
        "energy_j": [each.values["energy_j"] for each in found],
        "interval_j": [each.intervals.get("energy_j", (math.nan, math.nan)) for each in found],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", default="simulated:h200")
    parser.add_argument("--shapes", default=" ".join(EXAMPLES), help="blanks between them; mm:1,64,64,64 too")
    parser.add_argument("--seconds", type=float, help="for everything; 290 on a board, else as long as it takes")
    parser.add_argument("--model-seconds", type=float, default=50.0, help="of them, for the energy model's test")
    parser.add_argument("--rounds", type=int, help="of each arm after the first; by the seconds unless it is given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a file of JSON lines, appended to")
    parser.add_argument("--report", type=Path, help="measure nothing, print what a kept file shows")
    given = parser.parse_args()
    if given.report is not None:
        print_lines([json.loads(each) for each in given.report.read_text().splitlines()])
        return
    records = (
        [json.loads(each) for each in given.out.read_text().splitlines()] if given.out and given.out.is_file() else []
    )

    def keep(record: dict[str, Any]) -> None:
        records.append(record)
        if given.out:
            with given.out.open("a") as file:
                file.write(json.dumps(record) + "\n")

    seconds = given.seconds or (math.inf if given.gpu.startswith("simulated") else 290.0)
    ends_s = time.monotonic() + seconds
    wanted = [each for each in given.shapes.split() if each not in {known.get("shape") for known in records}]
    asks_model = given.model_seconds > 0 and not any("model" in known for known in records)
    reserved_s = given.model_seconds + 2 * START_S if asks_model else 0.0
    with closing(open_gpu(given.gpu, seed=given.seed, speed=math.inf)) as gpu, Store() as store:
        for place, name in enumerate(wanted):
            share_s = (ends_s - reserved_s - time.monotonic()) / (len(wanted) - place)
            keep(shape(name, gpu, store, given.seed, share_s, given.rounds))
            print(f"{name}: {records[-1]['seconds']:.0f} s", file=sys.stderr, flush=True)
        if asks_model:
            each_s = given.model_seconds / len(MODEL_SHAPES)
            keep(
                {
                    "model": {name: model_rows(name, gpu, each_s, given.seed) for name in MODEL_SHAPES},
                    "gpu": gpu.info.name,
                }
            )
    print_lines(records)


if __name__ == "__main__":
    main()
