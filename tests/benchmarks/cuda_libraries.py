"""The same configurations through every library that speaks to CUDA's driver, on a real board.

Run by hand on a board that nobody else uses: python tests/benchmarks/cuda_libraries.py [--configurations 24]
Each library measures them twice, in the order A B B A; the difference between two libraries is read beside the
difference between two sessions of one. Then what it costs the host to queue a launch. It reads and never sets.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from itertools import combinations
from pathlib import Path

import numpy as np
from h200_sgemm import characterised, runner_of, sgemm, space_of, table

from app.engine.children.python import python_environment
from app.engine.results.measurement import Measurement, State
from app.engine.runner.cuda.gpu import CHOICE, Library, usable_libraries
from app.engine.runner.cuda.language import cuda_in_use
from app.engine.runner.cuda.toolchain import cuda_compiler, symbol
from app.engine.workloads.source_kernel import Build
from app.sensors.gpu import Gpu
from app.sensors.select import open_gpu

FIGURES = ("time_s", "energy_j")
QUEUES = """
import importlib, os, sys, time
from app.engine.workloads.kernel_arguments import Launch
backend = importlib.import_module(sys.argv[1]).open_backend("0")
kernel = backend.load(open(sys.argv[2], "rb").read(), Launch(sys.argv[3], (1, 1, 1), (32, 1, 1)), [], {})
for times in (1, 1, 1000):
    kernel.launch(times)
backend.mark().wait()
found = []
for times in (100, 1000):  # launch by launch, and in graphs
    best = 1.0
    for _ in range(50):
        began = time.perf_counter()
        kernel.launch(times)
        best = min(best, (time.perf_counter() - began) / times)
        backend.mark().wait()
    found.append(best)
print(*found, flush=True)
os._exit(0)  # as the runner process ends
"""

Session = dict[int, Measurement]


def session(gpu: Gpu, library: Library, rows: list[int]) -> tuple[Session, float]:
    """Its measurements by row, and the seconds that they took."""
    spec = sgemm()
    os.environ[CHOICE] = library.name
    with runner_of(spec, gpu, space_of(spec, gpu)) as runner:
        began = time.monotonic()
        measured = {m.row: m for m in runner.measure(rows, threading.Event())}
    return {row: m for row, m in measured.items() if m.state is State.OK}, time.monotonic() - began


def half_width(measurement: Measurement, name: str) -> float:
    low, high = measurement.intervals.get(name, (measurement.values[name],) * 2)
    return (high - low) / 2


def compare(what: str, one: Session, other: Session) -> list[list[object]]:
    """How two sessions differ, per figure: median, 95th percentile, largest, and how many within their intervals."""
    lines = []
    rows = sorted(one.keys() & other.keys())
    for name in FIGURES:
        apart, within = [], 0
        for row in rows:
            a, b = one[row].values[name], other[row].values[name]
            apart.append(100 * (b - a) / a)
            within += abs(b - a) <= math.hypot(half_width(one[row], name), half_width(other[row], name))
        size = np.abs(apart)
        spread = f"{np.median(size):.2f} / {np.percentile(size, 95):.2f} / {size.max():.2f}"
        lines.append([what, name, f"{statistics.median(apart):+.2f}", spread, f"{within} of {len(rows)}"])
    return lines


def queueing(library: Library, image: Path, name: str) -> list[str]:
    words = [sys.executable, "-c", QUEUES, library.module, str(image), name]
    done = subprocess.run(words, env=python_environment(), capture_output=True, text=True, check=True)
    return [f"{float(each) * 1e6:.2f}" for each in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--configurations", type=int, default=24)
    parser.add_argument("--characterise", action="store_true", help="first, as a session of the program does")
    asked = parser.parse_args()
    libraries = usable_libraries()
    gpu = open_gpu("0")
    print(f"{gpu.info.name}, {', '.join(map(str, libraries))}, compiled by {cuda_in_use()['compiler']}")
    if asked.characterise:
        characterised(gpu)
    rows = np.random.default_rng(15).choice(space_of(sgemm(), gpu).size, asked.configurations, replace=False).tolist()
    sessions: list[tuple[Library, Session]] = []
    took = []
    for library in [*libraries, *reversed(libraries)]:
        measured, seconds = session(gpu, library, rows)
        sessions.append((library, measured))
        took.append([str(library), len(measured), f"{seconds:.1f}", f"{seconds / len(rows):.3f}"])
    gpu.close()
    table("sessions, in their order", ("library", "ok", "s", "s per configuration"), took)
    lines: list[list[object]] = []
    for (at, (one, first)), (to, (other, second)) in combinations(enumerate(sessions, 1), 2):
        kind = "same library" if one is other else "other library"
        lines += compare(f"{at} and {to}, {kind}", first, second)
    heads = ("sessions", "figure", "median %", "|difference| %: median / 95th / largest", "within intervals")
    table(f"{asked.configurations} configurations of SGEMM 4096", heads, lines)
    capability = gpu.info.compute_capability or (9, 0)
    with tempfile.TemporaryDirectory() as folder:
        compiler = cuda_compiler(capability, folder=Path(folder) / "images", jobs=1)
        image = Path(folder) / "empty.image"
        image.write_bytes(compiler.image(Build('extern "C" __global__ void empty() {}\n', (), (), ())))
        compiler.close()
        name = symbol(image.read_bytes(), "empty")
        costs = [[str(library), *queueing(library, image, name)] for library in libraries]
    table("us of the host to queue one launch", ("library", "one by one", "in graphs"), costs)


if __name__ == "__main__":
    main()
