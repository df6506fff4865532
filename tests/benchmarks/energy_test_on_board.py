"""`wattridge check` on a board: A against A, planted extra work of 1 and 2 %, cold, hot, and beside a neighbour.

Run by hand: python tests/benchmarks/energy_test_on_board.py [same] [planted] [conditions] [--out FOLDER] [--seconds S]
A kernel of 20,000 rounds of fused multiply-adds in registers stands for A, the same with 20,200 or 20,400 for B: all
that the kernel does is that, so B needs 1 or 2 % more joules by its construction. `same`: A against A twenty times.
`planted`: ten times each, at most 40 s. `conditions`: 2 % and 0 from cold (20 s without work before), after 15 s of a
matrix product near the limit (the watts of its last window are printed), and beside another process that works now and
then, drawn at random. Printed for each check: the interval, the verdict, blocks and seconds; everything is kept in
FOLDER. It reads and never sets. `--gpu simulated:h200` tries it without a board. The parts share the seconds (470);
what there was no time for is said.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reference import HEAVY, specification_text

ROUNDS = (20000, 20200, 20400)
PARTS = ("same", "planted", "conditions")
SHARES = {"same": 0.34, "planted": 0.33, "conditions": 0.33}  # of the seconds
COLD_S, HEAT_S, CHECK_S = 20.0, 15.0, 40.0
KERNEL = """
extern "C" __global__ void __launch_bounds__(256) rounds(float *out, int secret) {
    float x[8];
    for (int lane = 0; lane < 8; lane++) x[lane] = 1e-3f * (threadIdx.x + lane);
#pragma unroll 8
    for (int step = 0; step < operations; step++)
        for (int lane = 0; lane < 8; lane++) x[lane] = fmaf(x[lane], 0.999f, 0.001f);
    float sum = 0.0f;
    for (int lane = 0; lane < 8; lane++) sum += x[lane];
    if (secret) out[blockIdx.x * 256 + threadIdx.x] = sum;
}
"""
SPECIFICATION = """
[kernel]
name = "rounds"
source = "rounds.cu"
problem_size = ["n // 8"]
grid_divisors = { x = ["block_size_x"] }
arguments = [
    { name = "out", type = "float32", shape = ["n // 8"], output = true },
    { name = "secret", type = "int32", value = 0 },
]
profile = "roofline"
[constants]
n = 2162688
load_store = 0
[parameters]
block_size_x = [256]
operations = [20000, 20200, 20400]
[objective]
minimise = "energy_j"
"""


class Bench:
    """One board with the kernels, opened once."""

    def __init__(self, folder: Path, selector: str | None, until: float) -> None:
        self.folder, self.selector, self.until = folder, selector, until
        self.found: list[dict[str, Any]] = []
        self.stop, self.stack = threading.Event(), ExitStack()

    def __enter__(self) -> Bench:
        from app.sensors.select import open_gpu

        self.gpu = self.stack.enter_context(closing(open_gpu(self.selector, speed=float("inf"))))
        self.rows, self.runner = self.opened("rounds.toml")
        heavy, self.heater = self.opened("heavy.toml")
        self.heavy = heavy[0]
        list(self.runner.measure(self.rows, self.stop))
        list(self.heater.measure([self.heavy], self.stop))
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def opened(self, name: str) -> tuple[list[int], Any]:
        from app.engine.runner.boards import open_runner
        from app.engine.session.load import load_specification
        from app.engine.session.planning import plan_specification

        plan = plan_specification(load_specification(self.folder / name), self.gpu)
        runner = self.stack.enter_context(open_runner(plan, plan.boards))
        rows = [
            int(plan.space.rows_with({"operations": count})[0]) for count in ROUNDS if "operations" in plan.space.names
        ]
        return rows or [0], runner

    def check(self, part: str, planted: int, seconds: float) -> dict[str, Any]:
        """One check against the row with so many % more work."""
        from app.base.records import as_json
        from app.engine.session.check import Terms, in_turns
        from app.engine.session.contenders import KernelContender

        a, b = (KernelContender(self.runner, self.rows[index], part) for index in (0, planted))
        began = time.monotonic()
        result, blocks, remarks = in_turns({"A": a, "B": b}, self.gpu, Terms(seconds), self.stop)
        kept = {"part": part, "planted": planted, "result": as_json(result), "remarks": remarks}
        kept |= {"blocks": as_json(blocks), "wall_s": time.monotonic() - began}
        self.found.append(kept)
        ends = result.energy.interval
        words = "no interval" if ends is None else f"{100 * ends[0]:+.2f} to {100 * ends[1]:+.2f} %"
        line = f"{part:22} planted {planted} %: {words:20} {result.verdict:15} {result.blocks:3} blocks"
        print(f"{line} {result.seconds:5.1f} s on the board, {kept['wall_s']:5.1f} s  {'; '.join(remarks)}", flush=True)
        (self.folder / "energy_test.json").write_text(json.dumps(self.found))
        return kept

    def repeat(self, part: str, planted: int, times: int, until: float, seconds: float) -> None:
        for done in range(times):
            if time.monotonic() + seconds / 2 > until:
                print(f"{part}, planted {planted} %: {times - done} of {times} not done, the time is over", flush=True)
                return
            self.check(part, planted, min(seconds, max(5.0, until - time.monotonic())))


def same(bench: Bench, until: float) -> None:
    bench.repeat("A against A", 0, 20, until, 25.0)


def planted(bench: Bench, until: float) -> None:
    middle = time.monotonic() + 0.4 * (until - time.monotonic())
    bench.repeat("planted", 2, 10, middle, CHECK_S)
    bench.repeat("planted", 1, 10, until, CHECK_S)


def conditions(bench: Bench, until: float) -> None:
    for extra in (2, 0):
        bench.gpu.clock.wait(COLD_S)
        bench.repeat("from cold", extra, 1, until, CHECK_S)
    for extra in (2, 0):
        looks = bench.heater.measure([bench.heavy] * round(HEAT_S / 1.2), bench.stop)
        watts = [each.values.get("power_w", float("nan")) for each in looks]
        bench.repeat(f"after {watts[-1]:.0f} W", extra, 1, until, CHECK_S)
    with neighbour(bench):
        for extra in (2, 0):
            bench.repeat("beside a neighbour", extra, 1, until, max(5.0, (until - time.monotonic()) / 2))


@contextmanager
def neighbour(bench: Bench) -> Iterator[None]:
    """Another process that works on the board now and then, until this context ends."""
    words = [sys.executable, __file__, "--neighbour", "--out", str(bench.folder)]
    words += ["--gpu", bench.selector] if bench.selector else []
    process = subprocess.Popen(words, stdin=subprocess.PIPE)
    try:
        time.sleep(8.0 if bench.gpu.info.live else 0.0)  # it compiles
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60.0)


def work_now_and_then(bench: Bench) -> None:
    """Until the input ends: 0.3 to 3 s of the heavy product, then as long without work."""
    ended, rng = threading.Event(), random.Random(5)
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.is_set():
        until = time.monotonic() + rng.uniform(0.3, 3.0)
        while time.monotonic() < until and not ended.is_set():
            list(bench.heater.measure([bench.heavy], ended))
        ended.wait(rng.uniform(0.3, 3.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--out", type=Path, default=Path("energy-test-result"))
    parser.add_argument("--seconds", type=float, default=470.0, help="for everything")
    parser.add_argument("--gpu")
    parser.add_argument("--neighbour", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    out, until = arguments.out.resolve(), time.monotonic() + arguments.seconds
    (out / "data").mkdir(parents=True, exist_ok=True)
    os.environ["WATTRIDGE_DATA"] = str(out / ("data-of-neighbour" if arguments.neighbour else "data"))
    (out / "rounds.cu").write_text(KERNEL)
    (out / "rounds.toml").write_text(SPECIFICATION)
    (out / "heavy.toml").write_text(specification_text([HEAVY]))
    with Bench(out, arguments.gpu, until) as bench:
        if arguments.neighbour:
            work_now_and_then(bench)
            return
        print(f"{bench.gpu.info.label}, driver {bench.gpu.info.driver}", flush=True)
        parts = arguments.parts or list(PARTS)
        for place, part in enumerate(parts):
            share = SHARES[part] / sum(SHARES[each] for each in parts[place:])
            {"same": same, "planted": planted, "conditions": conditions}[part](
                bench, time.monotonic() + share * (until - time.monotonic())
            )
        summary(bench.found)


def summary(found: list[dict[str, Any]]) -> None:
    print()
    for part, extra in dict.fromkeys((each["part"], each["planted"]) for each in found):
        of = [each for each in found if (each["part"], each["planted"]) == (part, extra)]
        verdicts = [each["result"]["verdict"] for each in of]
        counts = ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))
        ends = [each["result"]["energy"]["interval"] for each in of]
        covers = sum(bool(pair) and pair[0] <= extra / 100 <= pair[1] for pair in ends)
        wall = sorted(each["wall_s"] for each in of)
        print(f"{part:22} planted {extra} %: {counts} of {len(of)}; the interval covers it in {covers}; ", end="")
        print(f"{wall[len(wall) // 2]:.1f} s in the middle, {wall[-1]:.1f} s at most")


if __name__ == "__main__":
    main()
