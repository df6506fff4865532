"""What a user without rights may save on a board: parts of the SMs, what the data does, and `wattridge savings`.

Run by hand: python tests/benchmarks/savings_on_board.py [sms] [data] [savings] [function] [--seconds S] [--gpu GPU]
`sms`: a copy and a matrix product on parts of the SMs, with the SMs that its blocks saw, joules and times, and the
fewest SMs within 1 % of the time. `data`: PyTorch's product in FP32 (no TF32) and BF16 on zeros (A) and on random
numbers (B), in turns. `savings`: of the copy, of the product, and of a program that holds a context and waits.
`function`: of a sum in PyTorch, on a part of the SMs by a stream. It reads and never sets. `--gpu simulated:h200` tries
`sms` and `savings` without a board. What there was no time for is said; each part ends with how long it took.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.base.paths import resources
from app.engine.results.measurement import State
from app.engine.results.objectives import Goal
from app.engine.runner.base import PreparationFailed
from app.engine.runner.boards import open_runner
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.specification.plan import SearchOptions
from app.sensors.select import open_gpu

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("sms", "data", "savings", "function")
KERNELS = {
    "copy": {"block_size_x": 256, "items_per_thread": 4, "vector_width": 4, "loop_unroll_factor": 1},
    "sgemm": {"dim_m": 16, "dim_n": 16, "blk_m": 128, "blk_n": 128, "blk_k": 8, "simd": 1},
}
SHARES = (0.06, 0.12, 0.18, 0.24, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0)
WITHIN = 0.01  # of the time on all SMs
PRODUCTS = """
import torch

torch.backends.cuda.matmul.allow_tf32 = False


def fp32():
    return tuple(torch.empty(4096, 4096, device="cuda") for _ in range(3))


def bf16():
    return tuple(torch.empty(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(3))


def product(a, b, c):
    torch.matmul(a, b, out=c)


def arrays():
    return tuple(torch.rand(1 << 27, device="cuda") for _ in range(2))


def add(a, b):
    torch.add(a, 1.0, out=b)
"""
WAITING = """
import time
from cuda.bindings import driver as cuda


def do(name, *arguments):
    status, *values = getattr(cuda, name)(*arguments)
    assert not int(status), (name, status)
    return values[0] if values else None


do("cuInit", 0)
device = do("cuDeviceGet", 0)
do("cuCtxSetCurrent", do("cuDevicePrimaryCtxRetain", device))
buffer = do("cuMemAlloc", 1 << 30)
for _ in range(2):  # requests that come now and then
    for _ in range(40):
        do("cuMemsetD32", buffer, 0, 1 << 28)
    do("cuCtxSynchronize")
    time.sleep(0.3)
"""


def on_parts(name: str, gpu: str) -> None:
    """The curve of a kernel over the SMs."""
    spec = load_specification(resources() / "examples" / f"{name}.toml")
    options = SearchOptions(objective=Goal("energy_j", maximise=False))
    with closing(open_gpu(gpu, speed=math.inf, voltage=False)) as board:
        plain = plan_specification(replace(spec, device_settings={}), board, options)
        row = int(plain.space.rows_with(KERNELS[name])[0])
        every = board.info.multiprocessors or 132
        counts = sorted({max(1, round(every * share)) for share in SHARES})
        fixed = {key: (value,) for key, value in plain.space.configuration(row).items()}
        parameters = {**fixed, "sm_count": tuple(counts)}
        part = replace(spec, device_settings={}, restrictions=(), parameters=parameters)
        plan = plan_specification(part, board, options)
        with open_runner(plan, plan.boards) as runner:
            stop = threading.Event()
            with suppress(PreparationFailed):  # it measures all the same
                runner.prepare([0], stop, lambda *_: None)
            measured = list(runner.measure(range(plan.space.size), stop))
    print(f"--- {name} on parts of {every} SMs of {board.info.name}")
    print("   asked    seen        ms         J        W      MHz")
    fine = []
    for one in sorted(measured, key=lambda one: one.row):
        if one.state is not State.OK:
            print(f"{one.configuration['sm_count']:8}  failed: {one.error}")
            continue
        value = one.values
        seen, clock = value.get("sms_used", math.nan), value.get("observed_clock_mhz", math.nan)
        print(
            f"{one.configuration['sm_count']:8} {seen:7.0f} {1e3 * value['time_s']:9.4f} {value['energy_j']:9.5f} "
            f"{value.get('power_w', math.nan):8.1f} {clock:8.0f}  {one.message}"
        )
        fine.append(one)
    if not fine:
        return
    whole = fine[-1].values
    least = next(one.values for one in fine if one.values["time_s"] <= (1 + WITHIN) * whole["time_s"])
    best = min((one.values for one in fine), key=lambda value: value["energy_j"])
    for words, value in (("fewest SMs within 1 % of the time", least), ("least energy", best)):
        joules, seconds = (100 * (value[key] / whole[key] - 1) for key in ("energy_j", "time_s"))
        print(f"{words}: {value.get('sms_used', math.nan):.0f} SMs, {joules:+.2f} % joules, {seconds:+.2f} % time")


def asked(words: list[str], limit_s: float, folder: Path) -> dict[str, Any] | None:
    """The document of a command of ours; None, and why, where there is none."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))}
    command = [sys.executable, "-m", "app", *words, "--json"]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
        )
        document: dict[str, Any] = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        print(f"{' '.join(words)}: {error}")
        return None
    if "error" in document:
        print(f"{' '.join(words)}: {document['error']}")
        return None
    return document


def on_data(kind: str, gpu: str, limit_s: float, folder: Path) -> None:
    """Zeros against random, by `wattridge check`."""
    words = ["check", "products.py:product", "--inputs", f"{kind},zeros,random", "--gpu", gpu, "--seconds", "20"]
    found = asked(words, limit_s, folder)
    if found is not None:
        (low, high), time_s = found["result"]["energy"]["interval"] or (math.nan, math.nan), found["result"]["time"]
        watts = {
            side: [block["energy_j"] / block["time_s"] for block in found["blocks"] if block["side"] == side]
            for side in ("A", "B")
        }
        means = [sum(values) / len(values) for values in watts.values() if values]
        print(f"{kind}: random needs {1 + low:.4f} to {1 + high:.4f} times the joules of zeros (99 %)")
        print(f"   {' and '.join(f'{mean:.1f} W' for mean in means)}; time {time_s['interval']}; {found['words']}")


def of_savings(words: list[str], gpu: str, limit_s: float, folder: Path) -> None:
    """The answer of `wattridge savings`."""
    found = asked(["savings", *words, "--gpu", gpu], limit_s, folder)
    if found is None:
        return
    print(f"--- savings {' '.join(words)}: {found['words']}")
    print(f"   said {found['seconds_said']:.0f} s, took {found['seconds']:.0f} s; data: {found['data'] or 'its own'}")
    free = found["untouched"]
    print(f"   untouched: {free['energy_j'] or math.nan:.5g} J, {free['time_s'] or math.nan:.5g} s per {found['unit']}")
    for one in found["tried"]:
        joules, seconds_lost = (one[key]["interval"] for key in ("energy", "time"))
        words = f"{one['blocks']} blocks, {'helps' if one['helps'] else 'does not help'}"
        print(f"   {one['look']['change']}: joules {joules}, time {seconds_lost}, {words}")
        for look in one["first_looks"]:
            joules, took_s = (look[key] or math.nan for key in ("energy_j", "time_s"))
            print(f"      first look: {look['change']:>10}  {joules:.5g} J  {took_s:.5g} s")
    for line in (*found["refused"], *found["remarks"]):
        print(f"   {line}")


def main() -> None:
    """The parts that were asked for, as long as there is time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--seconds", type=float, default=235.0, help="for everything")
    parser.add_argument("--gpu", default="0")
    asked_for = parser.parse_args()
    gpu, began = asked_for.gpu, time.monotonic()
    named = {
        name: f"{name}:{','.join(f'{key}={value}' for key, value in values.items())}"
        for name, values in KERNELS.items()
    }
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "products.py").write_text(PRODUCTS)
        (folder / "waiting.py").write_text(WAITING)

        def left() -> float:
            return asked_for.seconds - (time.monotonic() - began)

        steps = [
            ("sms", 12, lambda: on_parts("copy", gpu)),
            ("sms", 15, lambda: on_parts("sgemm", gpu)),
            ("data", 25, lambda: on_data("fp32", gpu, left(), folder)),
            ("data", 25, lambda: on_data("bf16", gpu, left(), folder)),
            ("savings", 30, lambda: of_savings([named["copy"]], gpu, left(), folder)),
            ("savings", 30, lambda: of_savings([named["sgemm"]], gpu, left(), folder)),
            ("savings", 50, lambda: of_savings([f"{sys.executable} waiting.py"], gpu, left(), folder)),
            ("function", 40, lambda: of_savings(["products.py:add", "--inputs", "arrays"], gpu, left(), folder)),
        ]
        for part, needs_s, step in steps:
            if asked_for.parts and part not in asked_for.parts:
                continue
            if left() < needs_s:
                print(f"{part}: no time left ({left():.0f} s)")
                continue
            before = time.monotonic()
            try:
                step()
            except Exception as error:  # noqa: BLE001  (the others go on)
                print(f"{part}: {type(error).__name__}: {error}")
            print(f"[{part}: {time.monotonic() - before:.1f} s]", flush=True)


if __name__ == "__main__":
    main()
