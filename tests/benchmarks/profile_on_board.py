"""A program's profile on a real board, against each of its kernels alone by the energy counter. By hand, needs PyTorch.

    python tests/benchmarks/profile_on_board.py alone FILE phases|mix   each kernel alone: power, clock, °C -> FILE
    python tests/benchmarks/profile_on_board.py phases|mix [S]          the program to be profiled:
    wattridge profile --out FOLDER -- python tests/benchmarks/profile_on_board.py mix 60
    python tests/benchmarks/profile_on_board.py compare FILE FOLDER/profile_on_board-profile.json
    python tests/benchmarks/profile_on_board.py cost ROUNDS             a training, watched and not

It imports nothing of Wattridge. `alone` reads NVML's energy counter and clock, nothing is set: the board is as warm as
the program makes it, it never waits for a launch, and the span goes from one renewal of the counter to another, which
are 0.1 s apart on an H200. Every kernel stands in a range of its own name, so that its joules are found again. Those
that alone draw 90 % of the limit or more do not count.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import re
import statistics
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


def its_board() -> object:
    """NVML's handle of the board that PyTorch uses."""
    import pynvml
    import torch

    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(0).uuid}")


def alone(path: Path, kind: str) -> None:
    """Write what each kernel draws by itself on a board that is as warm as the program makes it."""
    import pynvml
    import torch

    board = its_board()
    limit_w = pynvml.nvmlDeviceGetEnforcedPowerLimit(board) / 1e3
    known, random_ = kernels(), random.Random(3)
    names = PHASES if kind == "phases" else tuple(known)

    def burn(name: str, seconds: float) -> list[tuple[float, float]]:
        """The times at which the counter had a new value, and the value; the queue is never empty."""
        call, ms = known[name]
        began, lagging, seen = time.perf_counter(), [], []
        while time.perf_counter() - began < seconds:
            for _ in range(max(1, round(20 / ms))):
                call()
            lagging.append(torch.cuda.Event())
            lagging[-1].record()
            if len(lagging) > 5:  # reading the counter takes some ms, and 100 ms are queued
                lagging.pop(0).synchronize()
            joules, now = pynvml.nvmlDeviceGetTotalEnergyConsumption(board) / 1e3, time.perf_counter()
            if not seen or joules != seen[-1][1]:
                seen.append((now, joules))
        torch.cuda.synchronize()
        return seen

    def heat(seconds: float) -> None:
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            for name in random_.sample(names, len(names)):
                burn(name, 0.5 if kind == "phases" else 0.05)

    found = {}
    heat(15.0)
    for name in names:
        heat(1.5)
        burn(name, 0.4)
        seen = burn(name, 1.2)
        clock, celsius = pynvml.nvmlDeviceGetClockInfo(board, 1), pynvml.nvmlDeviceGetTemperature(board, 0)
        seen = (seen + burn(name, 1.2))[1:]  # the first is no renewal
        found[name] = (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0]), clock
        print(f"{name:12} {known[name][1]:7.3f} ms {found[name][0]:5.0f} W {clock} MHz {celsius} °C", flush=True)
    path.write_text(json.dumps({"limit_w": limit_w, "alone": found}))


def run(kind: str, seconds: float) -> None:
    """Six phases of half a second in turns, or bursts of 0.1 to 5 ms in random order."""
    import torch
    from torch.autograd.profiler import record_function

    board = counter_j = None
    with contextlib.suppress(ImportError):
        import pynvml

        board = its_board()
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


def train(seconds: float) -> None:
    """A training that waits for its launches; prints steps a second of its own clock."""
    import torch

    torch.manual_seed(0)
    layers = [part for _ in range(10) for part in (torch.nn.Linear(256, 256), torch.nn.LayerNorm(256), torch.nn.GELU())]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer, batch = torch.optim.SGD(model.parameters(), 1e-3, foreach=False), torch.randn(64, 256, device="cuda")
    steps, began = 0, 0.0
    while not began or time.perf_counter() - began < seconds:
        for _ in range(20):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
        torch.cuda.synchronize()
        steps += 20
        if steps == 200:
            began = time.perf_counter()
    print(f"steps a second: {(steps - 200) / (time.perf_counter() - began):.2f}", file=sys.stderr)


def cost(rounds: int) -> None:
    """The same training in processes of its own, in an order drawn for each round: as it is; watched; with the watcher
    alone, without what reads the board beside it; and with that alone."""
    import os
    import subprocess
    import tempfile

    plain = [sys.executable, __file__, "train", "6"]
    wattridge = [sys.executable, "-m", "wattridge"]
    where = [sys.executable, "-c", "import wattridge; print(wattridge.__path__[0])"]
    injected = Path(subprocess.run(where, capture_output=True, text=True).stdout.strip(), "engine/profile/injected")
    paths = os.pathsep.join([str(injected), os.environ.get("PYTHONPATH", "")])
    kinds = ("plain", "watched", "watcher alone", "reader alone")
    slower: dict[str, list[float]] = {kind: [] for kind in kinds[1:]}
    for _ in range(rounds):
        rates = {}
        for kind in random.sample(kinds, len(kinds)):
            folder, beside = tempfile.mkdtemp(), None
            words = [*wattridge, "profile", "--gpu", "0", "--", *plain] if kind == "watched" else plain
            more = {"PYTHONPATH": paths, "WATTRIDGE_PROFILE": folder} if kind == "watcher alone" else {}
            if kind == "reader alone":
                record = ["monitor", "--gpu", "0", "--interval", "0.02", "--record", f"{folder}/power.csv.gz"]
                beside = subprocess.Popen([*wattridge, *record], stdout=subprocess.DEVNULL)
            done = subprocess.run(words, capture_output=True, text=True, timeout=120, env={**os.environ, **more})
            if beside is not None:
                beside.terminate()
                beside.wait(30)
            rates[kind] = float(re.findall(r"steps a second: ([0-9.]+)", done.stderr)[0])
        for kind, found in slower.items():
            found.append(100 * math.log(rates["plain"] / rates[kind]))
        print(", ".join(f"{kind} {rates[kind]:.1f}" for kind in kinds), flush=True)
    for kind, found in slower.items():
        half = 2.3 * statistics.stdev(found) / math.sqrt(rounds)
        print(
            f"{kind}: {statistics.mean(found):+.1f} ± {half:.1f} % of the time, median {statistics.median(found):+.1f}"
        )


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
        alone(Path(sys.argv[2]), sys.argv[3])
    elif sys.argv[1] == "train":
        train(float(sys.argv[2]))
    elif sys.argv[1] == "cost":
        cost(int(sys.argv[2]))
    elif sys.argv[1] == "compare":
        compare(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        run(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 60.0)
