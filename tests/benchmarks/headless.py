"""What the program costs without a window. Run by hand: python tests/benchmarks/headless.py [KERNEL_TUNER_CACHE]

Prints a table of figures beside their targets. Never part of the test suite: wall-clock time does not gate anything.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def run_command(*words: str) -> tuple[float, float]:
    """Wall and processor seconds of a `wattridge` command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "app", *words, "--json"],
            env={**os.environ, "PYTHONPATH": str(ROOT), "WATTRIDGE_DATA": folder},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def monitor_share(board: str) -> float:
    """Share of one core that 30 s of watching takes beyond 1 s of it, in per cent: start-up cancels out."""
    _, short = run_command("monitor", "--gpu", board, "--duration", "1")
    _, long = run_command("monitor", "--gpu", board, "--duration", "31")
    return (long - short) / 30 * 100


def fit_milliseconds(*, waits: bool) -> float:
    """Median of nine; `waits`: 30 % of the time at the highest clock does not shrink with it."""
    from app.engine.models.fit.frequency import fit_frequency_model
    from app.engine.models.fit.points import Points

    rng = np.random.default_rng(0)
    clock = np.linspace(300.0, 1980.0, 100)
    voltage = 1 + 8e-4 * np.maximum(0, clock - 1000)
    power = (80 + 0.22 * clock * voltage**2) * (1 + 0.01 * rng.standard_normal(100))
    rate = 1 / (0.3 / 1980 + 0.7 / clock) if waits else None
    fit_frequency_model(Points(clock, power, rate=rate))
    times = []
    for _ in range(9):
        begun = time.perf_counter()
        fit_frequency_model(Points(clock, power, rate=rate))
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1e3


def trace_memory_mib() -> tuple[float, float, float]:
    """Growth of resident memory after 8 and after 16 hours at 50 Hz, and the time of a view of all, in ms."""
    from app.sensors.clock import VirtualClock
    from app.sensors.simulated.gpu import SimulatedGpu
    from app.sensors.simulated.twin import load_twin
    from app.sensors.trace.trace import Trace

    gpu = SimulatedGpu(load_twin("h200"), clock=VirtualClock())
    trace = Trace(gpu.channels)
    with growth() as grown:
        for hours in (8, 16):
            last_ns = gpu.clock.now_ns()
            for second in range(8 * 3600):
                for _ in range(50):
                    gpu.clock.wait(0.02)
                    trace.append(gpu.read())
                samples = gpu.power_samples(last_ns)
                trace.append_power_samples(samples)
                last_ns = samples[-1].time_ns if samples else last_ns
                del second
            grown.append(resident_mib())
            del hours
    assert trace.first_ns is not None
    assert trace.last_ns is not None
    begun = time.perf_counter()
    trace.view(trace.first_ns, trace.last_ns, 2000)
    return grown[1] - grown[0], grown[2] - grown[0], (time.perf_counter() - begun) * 1e3


@contextmanager
def growth() -> Iterator[list[float]]:
    yield [resident_mib()]


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    sys.path.insert(0, str(ROOT))
    rows: list[tuple[str, str, str]] = []
    for board in ("simulated:a100", "simulated:h200"):
        rows.append((f"monitor at 50 Hz, {board}", f"{monitor_share(board):.1f} % of a core", "3 %"))
    if len(sys.argv) > 1:
        walls = [run_command("replay", sys.argv[1], "--strategy", "brute_force")[0] for _ in range(5)]
        rows.append(("replay of the cache, whole process", f"{statistics.median(walls):.2f} s", "2 s for 5120 entries"))
    rows.append(("fit of 100 points", f"{fit_milliseconds(waits=False):.0f} ms", "50 ms"))
    rows.append(("the same of work that waits for memory", f"{fit_milliseconds(waits=True):.0f} ms", "50 ms"))
    at_8h, at_16h, view_ms = trace_memory_mib()
    rows.append(("trace, resident memory after 8 h at 50 Hz", f"{at_8h:.0f} MiB", "300 MB in all"))
    rows.append(("the same after 16 h", f"{at_16h:.0f} MiB", "flat"))
    rows.append(("a view of 8 h, every channel, 2000 points", f"{view_ms:.1f} ms", "8 ms a frame"))
    width = max(len(row[0]) for row in rows)
    for what, figure, target in rows:
        print(f"{what.ljust(width)}  {figure.rjust(18)}  (target {target})")


if __name__ == "__main__":
    main()
