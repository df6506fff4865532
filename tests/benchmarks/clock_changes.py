"""What a change of clock costs a session: asked of the helper with rights, then waited for as characterised.

    python tests/benchmarks/clock_changes.py [CHANGES]

Needs root, as the helper has it, and a C compiler. The board is a stand-in for the driver's library (tests/nvml), which
reaches a new clock 20 ms after it was asked; a characterisation of it says 60 ms. Sets nothing real.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).resolve().parents[1]
SETTLE_S = 0.060


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    if "LD_LIBRARY_PATH" not in os.environ:  # the driver's library is looked for once, when Python starts
        with tempfile.TemporaryDirectory(prefix="clocks-") as folder:
            environment = {**os.environ, "LD_LIBRARY_PATH": folder, "WATTRIDGE_DATA": f"{folder}/data"}
            os.spawnve(os.P_WAIT, sys.executable, [sys.executable, __file__, str(number)], environment)
            return
    sys.path[:0] = [str(_TESTS / "nvml"), str(_TESTS / "engine"), str(_TESTS.parent)]
    _measure(number, Path(os.environ["LD_LIBRARY_PATH"]))


def _measure(number: int, folder: Path) -> None:
    import program
    from boards import StandIn

    program.install()
    from app.engine.control import guard as guarding
    from app.engine.control.guard import DeviceGuard
    from app.engine.control.helper import record
    from app.engine.metering.meter import Meter
    from app.engine.session.load import load_specification
    from app.engine.session.planning import plan_specification
    from app.sensors.select import open_gpu

    stand_in = StandIn(folder, ("h200",))
    gpu = open_gpu("0", voltage=False)
    guard = DeviceGuard(gpu, allow_control=True)
    guarding.SETTLE_S = SETTLE_S  # type: ignore[misc]
    guard.open()
    try:
        clocks = [1005, 1800]
        asked = []
        for at in range(number):
            began = time.perf_counter()
            guard.apply(graphics_clock_mhz=clocks[at % 2])
            asked.append((time.perf_counter() - began) * 1e3)
        asked.sort()
        middle, late = statistics.median(asked), asked[int(number * 0.99) - 1]
        print(
            f"{number} changes through the helper: median {middle:.2f}, 99 of 100 {late:.2f}, worst {asked[-1]:.2f} ms"
        )
        guard.restore()
        path = folder / "scale.toml"
        path.write_text(_SPECIFICATION)
        (folder / "scale.cu").write_text("//\n")
        plan = plan_specification(load_specification(path), gpu, guard=guard)
        rows = {float(plan.space.configuration(row)["graphics_clock_mhz"]): row for row in range(plan.space.size)}
        runner = plan.boards.runner(plan)
        try:
            stop, opened = threading.Event(), 0.0
            watch = Meter._watch

            def noted(*arguments: Any) -> bool:
                nonlocal opened
                opened = time.perf_counter()
                return watch(*arguments)

            Meter._watch = noted  # type: ignore[method-assign]
            list(runner.measure([rows[1005.0], rows[1800.0]], stop))
            same, changed = [], []
            for at in range(40):
                order = [rows[1005.0], rows[1800.0]][:: 1 if at % 2 else -1]
                for row in order:  # the first at the clock in force, the second after a change
                    began = time.perf_counter()
                    list(runner.measure([row], stop))
                    (same if row == order[0] else changed).append((opened - began) * 1e3)
        finally:
            runner.close()
        changed.sort()
        before, after = statistics.median(same), statistics.median(changed)
        print(f"from a configuration's turn to its window: {before:.0f} ms, after a change of clock {after:.0f} ms")
        print(f"a change costs {after - before:.0f} ms (medians of 40 each), at worst {changed[-1] - before:.0f} ms")
        print(f"characterised settling time {SETTLE_S * 1e3:.0f} ms; allowed on top of it 20 ms")
    finally:
        guard.close()
        gpu.close()
        for path in (
            Path(record.FOLDER, f"{stand_in.uuids[0]}.json"),
            Path(record.LOCK_FOLDER, f"{stand_in.uuids[0]}.lock"),
        ):
            with suppress(OSError):
                path.unlink()
        stand_in.close()


_SPECIFICATION = """
[kernel]
name = "scale"
source = "scale.cu"
problem_size = ["n"]
grid_divisors = { x = ["block_size_x"] }
arguments = [
    { name = "y", type = "float32", shape = ["n"], output = true },
    { name = "x", type = "float32", shape = ["n"], fill = "random" },
]
[constants]
n = 1000
[parameters]
block_size_x = [64]
[device_settings]
graphics_clock_mhz = [1005, 1800]
[objective]
minimise = "energy_j"
"""

if __name__ == "__main__":
    main()
