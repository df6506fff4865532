"""A program's profile on a real board, against each of its kernels alone by the energy counter. By hand, needs PyTorch.

    python tests/benchmarks/profile_on_board.py alone FILE         each kernel alone for 2.5 s: power, clock -> FILE
    python tests/benchmarks/profile_on_board.py phases|mix [S]     the program to be profiled:
    wattridge profile --out FOLDER -- python tests/benchmarks/profile_on_board.py mix 60
    python tests/benchmarks/profile_on_board.py compare FILE FOLDER/profile_on_board-profile.json

It imports nothing of Wattridge. `alone` reads NVML's energy counter and clock, nothing is set. Every kernel stands in a
range of its own name, so that its joules are found again. Those that alone draw 90 % of the limit or more do not count.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

AT_LIMIT, CLOCKS_MHZ, WIDENED = 0.9, 15, 0.05
PHASES = ("gather", "transpose", "lgamma", "softmax", "topk", "f32_1024")


def kernels() -> dict[str, tuple[Callable[[], object], float]]:
    """Each kernel with the ms that one takes, roughly."""
    import torch

    generator = torch.Generator(device="cuda").manual_seed(1)

    def values(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, device="cuda", generator=generator)

    one, two, half, double = (
        values(1024, 1024),
        values(512, 512),
        values(1024, 1024).bfloat16(),
        values(512, 512).double(),
    )
    flat, square, rows = values(1 << 24), values(4096, 4096), values(2048, 2048)
    table, places = values(50000, 256), torch.randint(0, 50000, (200000,), device="cuda")
    image, long, other = values(32, 64, 56, 56), values(1 << 23), torch.empty(1 << 26, device="cuda")
    calls: dict[str, Callable[[], object]] = {
        "f32_1024": lambda: one @ one,
        "f32_512": lambda: two @ two,
        "bf16_1024": lambda: half @ half,
        "f64_512": lambda: double @ double,
        "cumsum": lambda: torch.cumsum(flat, 0),
        "gather": lambda: table.index_select(0, places),
        "transpose": lambda: square.t().contiguous(),
        "std": lambda: square.std(1),
        "exp": lambda: long.exp(),
        "lgamma": lambda: long.lgamma(),
        "softmax": lambda: rows.softmax(1),
        "maxpool": lambda: torch.nn.functional.max_pool2d(image, 3),
        "topk": lambda: square.topk(8, 1),
        "memset": lambda: other.zero_(),
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

    calls, random_ = kernels(), random.Random(7)
    counter_j, pynvml = None, None
    with __import__("contextlib").suppress(ImportError):
        import pynvml

        pynvml.nvmlInit()
        board = pynvml.nvmlDeviceGetHandleByIndex(0)
    torch.cuda.synchronize()
    began, lagging = time.perf_counter(), []
    if pynvml is not None:
        counter_j = pynvml.nvmlDeviceGetTotalEnergyConsumption(board)
    with record_function("counted"):
        while time.perf_counter() - began < seconds:
            for name in PHASES if kind == "phases" else random_.sample(list(calls), len(calls)):
                call, ms = calls[name]
                with record_function(name):
                    lasts_ms = 500 if kind == "phases" else random_.uniform(0.1, 5)
                    for _ in range(max(1, round(lasts_ms / ms))):
                        call()
                event = torch.cuda.Event()
                event.record()
                lagging.append(event)
                if len(lagging) > (1 if kind == "phases" else 8):  # the queue stays short, and is never empty
                    lagging.pop(0).synchronize()
        torch.cuda.synchronize()
    if pynvml is not None:
        took_s = time.perf_counter() - began
        drawn_j = (pynvml.nvmlDeviceGetTotalEnergyConsumption(board) - counter_j) / 1e3
        print(f"counter: {drawn_j:.1f} J in {took_s:.3f} s, {drawn_j / took_s:.1f} W", file=sys.stderr)


def compare(known: Path, profile: Path) -> None:
    """Print each kernel's power in the profile against alone."""
    truth, found = json.loads(known.read_text()), json.loads(profile.read_text())
    errors, holds, halves = [], [], []
    print(
        f"total {found['energy_j']:.0f} J {found['energy_j_interval']} in {found['time_s']:.2f} s, {found['power_w']:.1f} W"
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
            f"  {name:12} {item['share']:6.1%} {is_w:5.0f} W ± {half:5.1%}  alone {watts:5.0f} W {off:+6.1%} {clock} MHz{words}"
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
