"""What hardware counters add to the model of energies, beside what is known of a kernel without running it.

    PYTHONPATH=. .venv/bin/python tests/benchmarks/counter_models.py

Kernels of simulated GPUs are measured at random and profiled, all of them. Four models of their energies are tested on
quarters that they did not learn from: of the parameters alone, with the features of `workloads/machine_code.py`,
with counters, and with both. Median relative errors over four partitions, and the share that is predicted better.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from app.commands.terminal import print_table  # noqa: E402
from app.engine.analysis.costs import costs_of, values_of  # noqa: E402
from app.engine.models.energy_cost import Sample, held_out_errors  # noqa: E402
from app.engine.session.load import load_specification  # noqa: E402
from app.engine.session.planning import plan_specification  # noqa: E402
from app.engine.session.profiling import Wanted, Which, profile_session  # noqa: E402
from app.engine.session.run import run_session  # noqa: E402
from app.engine.specification.operator_kernels import kept_specification  # noqa: E402
from app.engine.specification.operator_shapes import parse_operator  # noqa: E402
from app.engine.specification.plan import SearchOptions  # noqa: E402
from app.engine.store.database import Store  # noqa: E402
from app.engine.workloads.hardware_counters import COUNTERS  # noqa: E402
from app.engine.workloads.machine_code import FEATURES, as_rows  # noqa: E402
from app.engine.workloads.profiled import ProfiledKernel  # noqa: E402
from app.sensors.select import open_gpu  # noqa: E402

KERNELS, SPLITS = 250, 4
CASES = (("gemm", "a100"), ("gemm", "h200"), ("mm:1,512,512,512", "a100"), ("mm:1,1024,1024,1024", "a100"),
         ("mm:8,512,512,512", "h200"))  # fmt: skip


def case(name: str, board: str, store: Store) -> list[object]:
    """A line of the table."""
    path = ROOT / "resources" / "examples" / f"{name}.toml"
    spec = load_specification(path if path.exists() else kept_specification(parse_operator(name)))
    spec = replace(spec, device_settings={})
    with closing(open_gpu(f"simulated:{board}", speed=float("inf"))) as gpu:
        plan = plan_specification(spec, gpu, SearchOptions("random_sample", max_evaluations=KERNELS, seed=1))
        session = run_session(plan, store, lambda event: None, threading.Event()).session
        profile_session(store, session, Wanted(Which.RANDOM, KERNELS), gpu)
        kernel = ProfiledKernel.of(spec, gpu.limits)  # type: ignore[attr-defined]
    table = store.load(session).table
    costs = costs_of(table)
    names = tuple(name for name, feature in FEATURES.items() if feature.simulated)
    known = as_rows(names, [kernel.features(table.measurement(at).configuration) for at in range(len(table))])
    counters = tuple(name for name in COUNTERS if name in table.value_names)
    columns = {
        "parameters": (table.space.names, np.column_stack([values_of(table, name) for name in table.space.names])),
        "features": (names, known),
        "counters": (counters, np.column_stack([values_of(table, name) for name in counters])),
    }
    measured = np.flatnonzero(np.isfinite(columns["counters"][1]).any(axis=1) & np.isfinite(costs.energy_j))
    orders = [np.random.default_rng(seed).permutation(len(measured)) for seed in range(SPLITS)]
    errors = []
    for more in ((), ("features",), ("counters",), ("features", "counters")):
        parts = [columns[part] for part in ("parameters", *more)]
        features = tuple(name for part, _ in parts for name in part)
        sample = Sample(features, np.hstack([values for _, values in parts]), costs.time_s).of(measured)
        energy_j = costs.energy_j[measured]
        errors.append(np.mean([np.abs(held_out_errors(sample, energy_j, order)) for order in orders], axis=0))
    shares = [float((errors[with_counters] < errors[without]).mean()) for without, with_counters in ((0, 2), (1, 3))]
    medians = [f"{100 * np.median(each):.2f} %" for each in errors]
    return [name, board, len(measured), *medians, *(f"{100 * share:.0f} %" for share in shares)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WATTRIDGE_DATA"] = folder
        with Store() as store:
            rows = [case(name, board, store) for name, board in CASES]
    head = ("kernel", "simulated", "kernels", "parameters", "and features", "and counters", "and both")
    print_table(rows, (*head, "better with counters", "beside features"))


if __name__ == "__main__":
    main()
