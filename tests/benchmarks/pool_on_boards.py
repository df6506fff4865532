"""The same search on one board and on all boards of this machine: wall time, winner, rows per board.

    PYTHONPATH=. .venv/bin/python tests/benchmarks/pool_on_boards.py [ROWS] [SELECTOR,... [SPEED]]

Without selectors it takes the real boards. The same random rows of the SGEMM example are measured on the first board by
a session of its own, then by a pool of the first board alone, which shows what a pool costs, and by a pool of all.
Compiled images are kept, so the first session compiles for all: what is compared is measuring.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing

from app.engine.control.guard import DeviceGuard
from app.engine.measurement import State
from app.engine.runner.pool.dask_pool import DaskPool
from app.engine.runner.pool.gpu import PooledGpu
from app.engine.session.load import load_specification
from app.engine.session.plan import SearchOptions, SessionPlan
from app.engine.session.planning import plan_specification
from app.engine.session.pool.local import LocalPool
from app.engine.session.run import run_session
from app.engine.store.database import Store
from app.paths import resources
from app.sensors.select import open_gpu, real_boards


def measured(name: str, plan: SessionPlan, store: Store) -> tuple[float, int | None]:
    """Seconds of a session, and the row of its best."""
    began = time.monotonic()
    result = run_session(plan, store, lambda _: None, threading.Event())
    took = time.monotonic() - began
    table = result.table
    rows = [table.measurement(at) for at in range(len(table))]
    failed = Counter(each.state.value for each in rows if each.state is not State.OK)
    best = result.progress.best_index
    winner = None if best is None else table.measurement(best)
    shares = dict(Counter(each.board for each in rows if each.board))
    print(
        f"{name}: {result.state} {result.reason}; {took:.1f} s, {result.progress.elapsed_s:.1f} s measuring,", end=" "
    )
    print(f"{len(rows)} rows, failed {dict(failed)}, by board {shares}")
    if winner is not None:
        print(f"  winner {dict(winner.configuration)}: {winner.values.get('GFLOPS/W', float('nan')):.4g} GFLOPS/W")
    return took, None if winner is None else winner.row


def main(rows: int, selectors: list[str], speed: float) -> int:
    os.environ.setdefault("WATTRIDGE_DATA", tempfile.mkdtemp(prefix="pool-on-boards-"))
    specification = load_specification(resources() / "examples" / "gemm.toml")
    options = SearchOptions(max_evaluations=rows, strategy="random_sample", seed=1)
    found: dict[str, tuple[float, int | None]] = {}
    with Store() as store:
        with closing(open_gpu(selectors[0], speed=speed)) as gpu, closing(DeviceGuard(gpu)) as guard:
            for name in ("compiling", "alone"):
                plan = plan_specification(specification, gpu, options, guard=guard)
                found[name] = measured(f"one board, {name}", plan, store)
        for count in dict.fromkeys((1, len(selectors))):
            began = time.monotonic()
            with (
                closing(LocalPool(selectors[:count], speed=speed, on_line=print)) as local,
                closing(DaskPool(local.address, local.certificates)) as pool,
            ):
                while len(pool.boards()) < count:
                    time.sleep(0.1)
                print(f"a pool of {count} was there after {time.monotonic() - began:.1f} s")
                plan = plan_specification(specification, PooledGpu(pool, pool.boards()), options)
                found[f"{count}"] = measured(f"a pool of {count}", plan, store)
    alone_s, winner = found["alone"]
    for count in dict.fromkeys(("1", str(len(selectors)))):
        took, best = found[count]
        print(f"a pool of {count}: {took / alone_s:.3f} of the time alone; same winner: {best == winner}")
    return 0


if __name__ == "__main__":
    named = sys.argv[2].split(",") if len(sys.argv) > 2 else [uuid for _, uuid, _ in real_boards()]
    sys.exit(
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 40, named, float(sys.argv[3]) if len(sys.argv) > 3 else 1.0)
    )
