"""How long `wattridge profile` takes on a trace of 300 MB, and how much memory: in a process of its own.

`PYTHONPATH=. .venv/bin/python tests/benchmarks/program_traces.py [MB] [minimal]` writes such a trace, laid out as
PyTorch's profiler writes it with record_shapes and with_stack, or of kernels alone in as few words as there may be, and
the power of its time, and prints the table that program_traces.txt keeps. Seconds are of the processor, so that what
else the machine does counts little.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.commands.terminal import print_table

_BASE_NS = 1_795_469_000_000_000_000
_READ = """
import resource, sys, time
from pathlib import Path
from app.engine.profile.chrome_trace import read_chrome_trace
began = time.process_time()
trace = read_chrome_trace(Path(sys.argv[1]))
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, len(trace))
"""
_WHOLE = """
import resource, sys, time
from app.cli import main
began = time.process_time()
sys.stdout = open("/dev/null", "w")
status = main(["profile", "--trace", sys.argv[1], "--power", sys.argv[2], "--json"])
sys.stdout = sys.__stdout__
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, status)
"""


def events(size: int) -> Iterator[dict[str, Any]]:
    """A training loop: ranges, operators with shapes, launches, kernels, arrows between them and Python's functions."""
    chance, at_us, number, step = random.Random(1), 1000.0, 1, 0
    kernels = [
        (f"void at::native::vectorized_elementwise_kernel<{width}, at::native::{name}<c10::BFloat16>, "
         f"std::array<char*, 3ul> >(int, at::native::{name}<c10::BFloat16>)", "aten::add", (30, 60))
        for width, name in ((8, "CUDAFunctor_add"), (4, "GeluCUDAKernelImpl"), (8, "FillFunctor"))
    ]  # fmt: skip
    kernels += [
        (f"nvjet_sm90_tst_{tile}_64x4_2x1_v_bz_coopA_NTN", "aten::mm", (120, 400)) for tile in ("128x256", "64x8")
    ]
    written = 0
    while written < size:
        step_us, phases = at_us, []
        for phase in ("data", "forward", "backward", "optimizer"):
            begin_us = at_us
            at_us += 40_000 * (phase == "data") * (step % 7 == 0)
            for _ in range(4 if phase == "data" else 60):
                name, operator, lasts = chance.choice(kernels)
                duration = chance.uniform(*lasts)
                made = list(_launch(name, operator, at_us, duration, number, 1 + (phase == "backward")))
                written += sum(len(json.dumps(event, indent=2)) + 2 for event in made)
                yield from made
                number, at_us = number + 1, at_us + duration + chance.uniform(1, 4)
            phases.append((phase, begin_us, at_us))
        for name, begin_us, end_us in (*phases, (f"ProfilerStep#{step}", step_us, at_us)):
            yield {
                "ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": begin_us,
                "dur": end_us - begin_us, "args": {"External id": number, "Record function id": 0, "Ev Idx": number},
            }  # fmt: skip
        step += 1


def _launch(name: str, operator: str, at_us: float, lasts: float, number: int, thread: int) -> Iterator[dict[str, Any]]:
    dims = [[8192, 1024], [1024, 1024 * (1 + number % 2)]]
    both = {"ph": "X", "pid": 1, "tid": thread}
    yield {**both, "cat": "cpu_op", "name": operator, "ts": at_us, "dur": 9.5, "args": {
        "External id": number, "Record function id": 0, "Sequence number": number, "Fwd thread id": 0,
        "Concrete Inputs": ["", ""], "Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Strides": dims,
        "Input Dims": dims, "Ev Idx": number}}  # fmt: skip
    yield {**both, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at_us + 1, "dur": 4.2, "args": {
        "External id": number, "cbid": 211, "correlation": number}}  # fmt: skip
    for depth in range(3):
        yield {**both, "cat": "python_function", "name": f"torch/nn/modules/module.py({1750 + depth}): _call_impl",
               "ts": at_us, "dur": 12.0, "args": {"Python parent id": number - 1, "Python id": 3 * number + depth,
                                                  "Ev Idx": number}}  # fmt: skip
    yield {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at_us + 6, "dur": lasts, "args": {
        "External id": number, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": number,
        "registers per thread": 168, "shared memory": 213188, "blocks per SM": 1.0, "warps per SM": 12.0,
        "grid": [2, 66, 1], "block": [384, 1, 1], "est. achieved occupancy %": 0}}  # fmt: skip
    for phase, pid, tid, ts in (("s", 1, thread, at_us + 1), ("f", 0, 7, at_us + 6)):
        yield {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": "ac2g", "name": "ac2g", "bp": "e"}


def minimal(size: int) -> Iterator[dict[str, Any]]:
    """Kernels of 40 families and nothing else, of some 170 bytes each."""
    chance, at_us, written = random.Random(1), 1000.0, 0
    lasts = [chance.uniform(3, 60) for _ in range(40)]
    while written < size:
        family = chance.randrange(40)
        duration = round(lasts[family] * chance.uniform(0.95, 1.05), 3)
        event = {
            "ph": "X", "cat": "kernel", "name": f"void some_kernel_of_usual_length_{family}<float, 4>(int, float*)",
            "pid": 0, "tid": 7, "ts": round(at_us, 3), "dur": duration, "args": {"device": 0, "stream": 7},
        }  # fmt: skip
        written += len(json.dumps(event)) + 2
        yield event
        at_us += duration + chance.uniform(1, 3) + chance.uniform(0, 200_000) * (chance.random() < 5e-5)


def write(trace: Path, power: Path, size: int, few: bool) -> tuple[int, int]:
    """Write both; the bytes of the trace's text, and the number of kernels."""
    head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "baseTimeNanoseconds": _BASE_NS}
    spans: list[tuple[float, float, int]] = []
    length = 0
    with gzip.open(trace, "wt", compresslevel=1) as file:
        length += file.write(json.dumps(head, indent=2)[:-2] + ',\n  "traceEvents": [\n')
        first = True
        for event in minimal(size) if few else events(size):
            if event.get("cat") == "kernel":
                spans.append((event["ts"], event["dur"], len(event["name"]) % 5))
            length += file.write(("" if first else ",\n") + json.dumps(event, indent=None if few else 2))
            first = False
        length += file.write("\n  ]\n}\n")
    chance = random.Random(2)
    with power.open("w") as file:
        file.write("timestamp_us,power_w\n")
        at, end_us = 0, spans[-1][0] + 500_000
        for sample in range(-25, int(end_us / 20_000)):
            since, until, energy = sample * 20_000, (sample + 1) * 20_000, 0.0
            while at < len(spans) and spans[at][0] < until:
                energy += spans[at][1] * (200 + 100 * spans[at][2]) if spans[at][0] >= since else 0.0
                at += 1
            watts = 125 + energy / 20_000 + chance.gauss(0, 3)
            file.write(f"{_BASE_NS // 1000 + until},{watts:.3f}\n")
    return length, len(spans)


def main() -> None:
    size = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 300_000_000
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        trace, power = Path(folder) / "trace.json.gz", Path(folder) / "power.csv"
        length, kernels = write(trace, power, size, "minimal" in sys.argv)
        print(f"{length / 1e6:.0f} MB unpacked, {trace.stat().st_size / 1e6:.0f} MB as a file, {kernels:,} kernels\n")
        for what, script in (("read", _READ), ("wattridge profile, whole", _WHOLE)):
            done = subprocess.run(
                [sys.executable, "-c", script, str(trace), str(power)], capture_output=True, text=True, check=True
            )
            seconds, memory, _ = done.stdout.split()
            rows.append((what, round(float(seconds), 1), round(float(memory))))
    print_table(rows, ("what", "processor s", "highest memory MiB"))


if __name__ == "__main__":
    main()
