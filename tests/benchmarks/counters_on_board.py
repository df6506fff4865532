"""Hardware counters of 30 configurations of SGEMM, joined to their energy, on a real GPU.

    PYTHONPATH=. .venv/bin/python tests/benchmarks/counters_on_board.py [--out FOLDER] [--gpu GPU]

Tunes 30 configurations with energy, then profiles the same 30 with Nsight Compute (`--clock-control none`), and prints
the joined table. It reads and never sets, and ends within four minutes: what is not done by then is left out and said.
Where the profiler or the rights for it are missing, one line says so, and the exit status is 0; it is 1 where something
is not as it should be. `--gpu simulated:h200` tries the script without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

os.environ["WATTRIDGE_READ_ONLY"] = "1"
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from app.base.errors import WattridgeError  # noqa: E402
from app.base.records import as_json  # noqa: E402
from app.commands.terminal import print_description, print_table  # noqa: E402
from app.engine.analysis.describe_analysis import describe_counter_split, describe_counters  # noqa: E402
from app.engine.analysis.session_analysis import analyse  # noqa: E402
from app.engine.session.load import load_specification  # noqa: E402
from app.engine.session.opened import stored_session  # noqa: E402
from app.engine.session.planning import plan_specification  # noqa: E402
from app.engine.session.profiling import Wanted, Which, profile_session  # noqa: E402
from app.engine.session.run import run_session  # noqa: E402
from app.engine.specification.plan import SearchOptions  # noqa: E402
from app.engine.store.database import Store  # noqa: E402
from app.engine.workloads.hardware_counters import COUNTERS, DURATION  # noqa: E402
from app.sensors.select import open_gpu  # noqa: E402

CONFIGURATIONS = 30
TUNING_S, WHOLE_S = 100.0, 225.0
SHOWN = ("achieved_occupancy", "ipc", "inst_executed", "dram_read_byte", "l2_texture_read_hit_rate")
failures: list[str] = []


def check(what: str, right: bool, found: object = "") -> None:
    print(f"{'ok  ' if right else 'FAIL'}  {what}  {found}")
    if not right:
        failures.append(what)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="0")
    parser.add_argument("--out", type=Path, help="write the table as counters.json into this folder")
    arguments = parser.parse_args()
    began, stop = time.monotonic(), threading.Event()
    limit = threading.Timer(WHOLE_S, stop.set)
    limit.daemon = True
    limit.start()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WATTRIDGE_DATA"] = folder
        with closing(open_gpu(arguments.gpu, speed=float("inf"))) as gpu, Store() as store:
            spec = load_specification(ROOT / "resources" / "examples" / "gemm.toml")
            spec = replace(spec, device_settings={})  # nothing is set
            options = SearchOptions("random_sample", max_evaluations=CONFIGURATIONS, max_seconds=TUNING_S, seed=1)
            session = run_session(plan_specification(spec, gpu, options), store, lambda event: None, stop).session
            tuned_s = time.monotonic() - began
            print(f"{gpu.info.label}: {len(store.load(session).table)} configurations measured in {tuned_s:.0f} s")
            try:
                wanted = Wanted(Which.BEST, CONFIGURATIONS)
                result = profile_session(store, session, wanted, gpu, stop=stop)
            except WattridgeError as error:
                print(f"not profiled: {error}")
                return 0
            print(f"{result.words} in {time.monotonic() - began - tuned_s:.0f} s{', out of time' * stop.is_set()}\n")
            report(store, session, float(spec.constants["n"]), arguments.out)
            before = store.metrics(session)
            again = profile_session(store, session, wanted, gpu, stop=stop) if not stop.is_set() else result
            check("what was profiled is not profiled again", again is result or not again.profiled, again.known)
            check("and stays as it was", store.metrics(session).keys() >= before.keys())
    limit.cancel()
    print(f"{time.monotonic() - began:.0f} s in all; {len(failures)} failed")
    return 1 if failures else 0


def report(store: Store, session: int, n: float, out: Path | None) -> None:
    """The joined table, its checks and its analysis."""
    opened, metrics = stored_session(store, session), store.metrics(session)
    table, rows, ratios, documents = opened.table, [], [], []
    for index in range(len(table)):
        each = table.measurement(index)
        if each.row not in metrics:
            continue
        counters = {name: each.values[name] for name in COUNTERS if name in each.values}
        duration_s = metrics[each.row].get(DURATION, float("nan"))
        ratios.append(duration_s / each.values["time_s"])
        figures = [each.values["time_s"] * 1e3, each.values["energy_j"], each.values["power_w"], ratios[-1]]
        configuration = "x".join(str(value) for value in each.configuration.values())
        rows.append([configuration, *figures, *(counters.get(name) for name in SHOWN)])
        own = {name: each.values[name] for name in ("time_s", "energy_j", "power_w")}
        documents.append({"configuration": dict(each.configuration), **own, "counters": counters})
    print_table(rows, ("configuration", "ms", "J", "W", "profiled/measured time", *SHOWN))
    print()
    analysis = analyse(table, opened.objective, with_difficulty=False)
    for described in (*describe_counters(analysis), *describe_counter_split(analysis)):
        print_description(described)
        print()
    if not rows:
        check("some configurations were profiled", right=False)
        return
    known = sorted({name for document in documents for name in document["counters"]})  # type: ignore[attr-defined]
    print(
        f"counters known: {len(known)} of {len(COUNTERS)}; missing: {', '.join(set(COUNTERS) - set(known)) or 'none'}"
    )
    read = [d["counters"].get("dram_read_byte", np.nan) for d in documents]  # type: ignore[attr-defined]
    executed = [d["counters"].get("inst_executed", np.nan) for d in documents]  # type: ignore[attr-defined]
    # from empty caches A and B are read once at least; a multiply-add of a warp is an instruction
    check("each reads A and B at least", not np.nanmin(read) < 0.98 * 8 * n * n, f"{np.nanmin(read):.4g} byte at least")
    check("each executes its multiply-adds at least", not np.nanmin(executed) < n**3 / 32, f"{np.nanmin(executed):.4g}")
    middle = float(np.median(ratios))
    check("the profiler left the clocks alone", 0.9 < middle < 1.15, f"profiled over measured time {middle:.3f}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        document = {"configurations": documents, "analysis": analysis.counted}
        (out / "counters.json").write_text(json.dumps(as_json(document), indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
