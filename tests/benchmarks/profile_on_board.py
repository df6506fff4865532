"""A program's profile on a real board, against each of its kernels alone by the energy counter. By hand, needs PyTorch.

    python tests/benchmarks/profile_on_board.py alone FILE         each kernel alone for 2.5 s: power, clock -> FILE
    python tests/benchmarks/profile_on_board.py phases|mix [S]     the program to be profiled:
    wattridge profile --out FOLDER -- python tests/benchmarks/profile_on_board.py mix 60
    python tests/benchmarks/profile_on_board.py compare FILE FOLDER/profile_on_board-profile.json

It imports nothing of Wattridge. `alone` reads NVML's energy counter and clock, nothing is set. Every kernel stands in a
range of its own name, so that its joules are found again. Those that alone draw 90 % of the limit or more do not count.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

AT_LIMIT, CLOCKS_MHZ, WIDENED = 0.9, 15, 0.05
PHASES = ("gather", "transpose", "topk", "f32_2048", "scatter", "memset")


def kernels() -> dict[str, tuple[Callable[[], object], float]]:
    """Each kernel with the ms that one takes, roughly."""
    import torch

    generator = torch.Generator(device="cuda").manual_seed(1)

    def values(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, device="cuda", generator=generator)

    double, flat, square = values(2048, 512).double(), values(1 << 25), values(4096, 4096)
    big, table, places = values(2048, 2048), values(50000, 256), torch.randint(0, 50000, (200000,), device="cuda")
    rows, many, less = values(200000, 256), values(1 << 28), values(1 << 25)
    other, onto = torch.empty(1 << 28, device="cuda"), torch.zeros(50000, 256, device="cuda")
    image, half = values(256, 64, 56, 56), values(1 << 22)
    calls: dict[str, Callable[[], object]] = {  # each takes 0.1 ms or more, so that alone the board never waits for it
        "f32_2048": lambda: big @ big,
        "f64": lambda: double @ double.t(),
        "cumsum": lambda: torch.cumsum(flat, 0),
        "gather": lambda: table.index_select(0, places),
        "scatter": lambda: onto.index_add_(0, places, rows),
        "transpose": lambda: square.t().contiguous(),
        "copy": lambda: less.clone(),
        "maxpool": lambda: torch.nn.functional.max_pool2d(image, 3),
        "topk": lambda: square.topk(8, 1),
        "memset": lambda: other.zero_(),
        "sort": lambda: half.sort(),
        "sum": lambda: many.sum(),
    }
    timed = {}
    for name, call in calls.items():
        call()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(50):
            call()
        torch.cuda.synchronize()
        timed[name] = call, 1e3 * (time.perf_counter() - began) / 50
    return timed


def alone(path: Path) -> None:
    """Write what each kernel draws by itself."""
    import pynvml
    import torch

    pynvml.nvmlInit()
    board = pynvml.nvmlDeviceGetHandleByIndex(0)
    limit_w = pynvml.nvmlDeviceGetEnforcedPowerLimit(board) / 1e3

    def burn(call: Callable[[], object], ms: float, seconds: float) -> None:
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            for _ in range(max(1, int(20 / ms))):
                call()
            torch.cuda.synchronize()

    found = {}
    for name, (call, ms) in kernels().items():
        burn(call, ms, 0.8)
        first_j, first_s = pynvml.nvmlDeviceGetTotalEnergyConsumption(board) / 1e3, time.perf_counter()
        burn(call, ms, 1.2)
        clock = pynvml.nvmlDeviceGetClockInfo(board, 1)
        burn(call, ms, 1.3)
        energy_j = pynvml.nvmlDeviceGetTotalEnergyConsumption(board) / 1e3 - first_j
        found[name] = energy_j / (time.perf_counter() - first_s), clock
        print(f"{name:12} {ms:7.3f} ms {found[name][0]:5.0f} W {clock} MHz", flush=True)
    path.write_text(json.dumps({"limit_w": limit_w, "alone": found}))


def run(kind: str, seconds: float) -> None:
    """Six phases of half a second in turns, or bursts of 0.1 to 5 ms in random order."""
    import torch
    from torch.autograd.profiler import record_function

    board = counter_j = None
    with contextlib.suppress(ImportError):
        import pynvml

        pynvml.nvmlInit()
        board = pynvml.nvmlDeviceGetHandleByIndex(0)
    torch.cuda.init()
    torch.cuda.synchronize()
    if board is not None:  # before anything ran: the span is the profile's
        counter_j = pynvml.nvmlDeviceGetTotalEnergyConsumption(board)
    first = time.perf_counter()
    calls, random_, lagging = kernels(), random.Random(7), []
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        for name in PHASES if kind == "phases" else random_.sample(list(calls), len(calls)):
            call, ms = calls[name]
            with record_function(name):
                lasts_ms = 500 if kind == "phases" else random_.uniform(0.1, 5)
                for _ in range(max(1, round(lasts_ms / ms))):
                    call()
            lagging.append(torch.cuda.Event())
            lagging[-1].record()
            if len(lagging) > (1 if kind == "phases" else 8):  # the queue stays short, and is never empty
                lagging.pop(0).synchronize()
    torch.cuda.synchronize()
    if board is not None and counter_j is not None:
        took_s = time.perf_counter() - first
        drawn_j = (pynvml.nvmlDeviceGetTotalEnergyConsumption(board) - counter_j) / 1e3
        print(f"counter: {drawn_j:.1f} J in {took_s:.3f} s, {drawn_j / took_s:.1f} W", file=sys.stderr)


def compare(known: Path, profile: Path) -> None:
    """Print each kernel's power in the profile against alone."""
    truth, found = json.loads(known.read_text()), json.loads(profile.read_text())
    errors, holds, halves = [], [], []
    print(
        f"total {found['energy_j']:.0f} J {found['energy_j_interval']} in {found['time_s']:.2f} s,"
        f" {found['power_w']:.1f} W"
    )
    for item in found["ranges"]:
        name = item["path"][-1] if item["path"] else ""
        if name not in truth["alone"] or not item["energy_j"]:
            continue
        watts, clock = truth["alone"][name]
        low, high = item["energy_j_interval"]
        is_w = item["energy_j"] / item["time_s"]
        off, half = is_w / watts - 1, (high - low) / 2 / item["energy_j"]
        counts = item["share"] >= 0.05 and watts < AT_LIMIT * truth["limit_w"]
        wide = low / item["time_s"] - WIDENED * is_w <= watts <= high / item["time_s"] + WIDENED * is_w
        if counts:
            errors.append(abs(off))
            holds.append(wide)
            halves.append(half)
        words = "" if counts else "  does not count"
        print(
            f"  {name:12} {item['share']:6.1%} {is_w:5.0f} W ± {half:5.1%}  alone {watts:5.0f} W {off:+6.1%}"
            f" {clock} MHz{words}"
        )
    grouped = sum(group["energy_j"] for group in found["groups"]) / found["energy_j"]
    errors.sort()
    if errors:
        print(f"{len(errors)} count: median error {errors[len(errors) // 2]:.1%}, largest {errors[-1]:.1%}; "
              f"{sum(holds)} of {len(holds)} hold; median half-width {sorted(halves)[len(halves) // 2]:.1%}; "
              f"{grouped:.1%} in groups")  # fmt: skip
    for note in found["notes"]:
        print("  note:", note)


if __name__ == "__main__":
    if sys.argv[1] == "alone":
        alone(Path(sys.argv[2]))
    elif sys.argv[1] == "compare":
        compare(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        run(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 60.0)
