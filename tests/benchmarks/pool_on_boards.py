"""The whole SGEMM space on one board and on all of this machine: wall time, winner, offsets, what each board did.

    PYTHONPATH=. .venv/bin/python tests/benchmarks/pool_on_boards.py [ROWS [SELECTOR,... [SPEED]]] [--one-unknown]

Without selectors it takes the real boards. The same ROWS random rows of the SGEMM example (204, all of its space
without clocks, unless given) are measured by one session each:

- all boards, nothing known: a new data folder, so every board looks at its sensor and every image is compiled;
- one board, everything known: its sensor, its heat and all images, and the process has run a short session before;
- all boards, everything known: the same pool again, whose workers have run a session, too.

`wall` is the time of a session from its start to its end, with second looks; what a pool takes to start is said beside
it. The ratio asked for is that of the last two. With `--one-unknown`, one board with nothing known comes besides, in a
process and data folder of its own, for the ratio of that (about 90 s more on an H200). Of every board of a pool: its
results, and where its time went. Simulated boards have nothing to look at or compile: they only warm up.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import dataclass, replace

from app.base.paths import resources
from app.engine.control.guard import DeviceGuard
from app.engine.results.measurement import State
from app.engine.runner.pool.dask_pool import DaskPool
from app.engine.runner.pool.pool import status_of_origin
from app.engine.runner.pool.pooled_gpu import PooledGpu
from app.engine.session.events import Event, FiguresRestated, MeasurementsAdded, SessionStarted
from app.engine.session.live_session import SessionResult
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.pool.opening import LocalPool
from app.engine.session.run import run_session
from app.engine.specification.model import Specification
from app.engine.specification.plan import SearchOptions, SessionPlan
from app.engine.store.database import Store
from app.sensors.gpu import Gpu
from app.sensors.select import open_gpu, real_boards

ALL = 204  # configurations of the example
WARM = 8  # rows


@dataclass(frozen=True)
class Ran:
    wall_s: float
    winner: int | None  # row


def specification() -> Specification:
    return replace(load_specification(resources() / "examples" / "gemm.toml"), device_settings={})


def options(rows: int) -> SearchOptions:
    return SearchOptions(max_evaluations=rows, strategy="random_sample", seed=1)


def measured(name: str, plan: SessionPlan, store: Store) -> Ran:
    """Run a session and print what came of it."""
    seen: dict[type[Event], float] = {}
    began = time.monotonic()

    def note(event: Event) -> None:
        if type(event) is not SessionStarted or SessionStarted not in seen:
            seen[type(event)] = time.monotonic() - began

    result = run_session(plan, store, note, threading.Event())
    wall_s = time.monotonic() - began
    table = result.table
    rows = [table.measurement(at) for at in range(len(table))]
    failed = sum(each.state is not State.OK for each in rows)
    print(f"\n{name}: {wall_s:.1f} s wall; {result.state} ({result.reason}), {len(rows)} rows, {failed} of them failed")
    ended = [seen.get(kind, float("nan")) for kind in (SessionStarted, MeasurementsAdded, FiguresRestated)]
    print(
        f"  opening {ended[0]:.1f} s, search {ended[1] - ended[0]:.1f} s, "
        f"second looks and figures {ended[2] - ended[1]:.1f} s, end {wall_s - ended[2]:.1f} s"
    )
    best = result.progress.best_index
    winner = None if best is None else table.measurement(best)
    if winner is not None:
        print(f"  winner {dict(winner.configuration)}: {winner.values.get('GFLOPS/W', float('nan')):.4g} GFLOPS/W")
    print_boards(result)
    return Ran(wall_s, None if winner is None else winner.row)


def print_boards(result: SessionResult) -> None:
    """What each board of a pool did, and which one decided."""
    origin = result.plan.origin
    status = status_of_origin(origin)
    for each in status.boards if status is not None else ():
        measuring_s = each.worked_s - each.preparing_s
        print(
            f"  {each.label}: {each.measured} results, {each.share:.0%} of its {each.there_s:.1f} s at work, the first "
            f"after {float('nan') if each.first_s is None else each.first_s:.1f} s; opening {each.opening_s:.1f} s, "
            f"preparing {each.preparing_s:.1f} s, measuring {measuring_s:.1f} s, waiting {each.waited_s:.1f} s; "
            f"{measuring_s / max(1, each.measured):.3f} s a result"
        )
    if result.table.decided_on:
        print(f"  decided on {result.table.decided_on}")


def alone(name: str, rows: int, selector: str, speed: float, store: Store) -> Ran:
    with closing(open_gpu(selector, speed=speed)) as gpu, closing(DeviceGuard(gpu)) as guard:
        return measured(name, plan_specification(specification(), gpu, options(rows), guard=guard), store)


def main(rows: int, selectors: list[str], speed: float, one_unknown: bool) -> int:
    simulated = selectors[0].startswith("simulated")
    known = min(rows, WARM) if simulated else rows
    with Store() as store:
        began = time.monotonic()
        with (
            closing(LocalPool(selectors, speed=speed, on_line=print)) as local,
            closing(DaskPool(local.address, local.certificates)) as pool,
        ):
            while len(pool.boards()) < len(selectors):
                time.sleep(0.1)
            print(f"load {os.getloadavg()[0]:.1f}; the pool was there after {time.monotonic() - began:.1f} s")
            gpu: Gpu = PooledGpu(pool, pool.boards())
            first = measured(
                "all boards, nothing known", plan_specification(specification(), gpu, options(known)), store
            )
            alone("one board, warming up", min(rows, WARM), selectors[0], speed, store)
            one = alone("one board, everything known", rows, selectors[0], speed, store)
            plan = plan_specification(specification(), gpu, options(rows))
            both = measured("all boards, everything known", plan, store)
    print(f"\nload {os.getloadavg()[0]:.1f}; everything known: {len(selectors)} boards took", end=" ")
    print(f"{both.wall_s / one.wall_s:.3f} of the time of one; same winner: {both.winner == one.winner}")
    if one_unknown:
        child = [sys.executable, __file__, str(rows), selectors[0], str(speed), "--only-one"]
        with tempfile.TemporaryDirectory(prefix="one-unknown-") as folder:
            said = subprocess.run(
                child, env={**os.environ, "WATTRIDGE_DATA": folder}, stdout=subprocess.PIPE, text=True
            )
        print(said.stdout)
        took_s = float(said.stdout.split()[-1])
        print(f"nothing known: {len(selectors)} boards took {first.wall_s / took_s:.3f} of the time of one")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int, nargs="?", default=ALL)
    parser.add_argument("selectors", nargs="?", default="")
    parser.add_argument("speed", type=float, nargs="?", default=1.0)
    parser.add_argument("--one-unknown", action="store_true")
    parser.add_argument("--only-one", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    named = chosen.selectors.split(",") if chosen.selectors else [uuid for _, uuid, _ in real_boards()]
    if chosen.only_one:
        with Store() as own:
            ran = alone("one board, nothing known", chosen.rows, named[0], chosen.speed, own)
            print(f"{ran.wall_s:.3f}")
        sys.exit(0)
    with tempfile.TemporaryDirectory(prefix="pool-on-boards-") as data:
        os.environ["WATTRIDGE_DATA"] = data
        sys.exit(main(chosen.rows, named, chosen.speed, chosen.one_unknown))
