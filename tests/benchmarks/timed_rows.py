"""What one timed row costs between the rows beside it, on a device that is not there. By hand:

    PYTHONPATH=. python tests/benchmarks/timed_rows.py [--rows 40] [--launch-ms 1]

The runner, its process and the frames between them are real; the device is the stand-in of the tests, whose queue runs
on while the host does something else, and whose driver takes so long to load a module. The kernels are compiled before.
Printed is the wall time per row, of which the device works so long (that includes launches that are not counted).
Then the same of rows that are asked for four at a time, as strategies do, and compiled only then, by a compiler that
takes so long for each image (0.02 s NVRTC, 0.7 s nvcc) on as many cores as it likes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "engine")]

from fake_cuda import FakeBackend, FakeKernel, compile_source  # noqa: E402

from app.engine.results.measurement import State  # noqa: E402
from app.engine.runner.cuda.toolchain import Toolchain  # noqa: E402
from app.engine.runner.kernels.compiler import Compiled, ImageMaker  # noqa: E402
from app.engine.workloads.kernel_arguments import Launch  # noqa: E402
from app.sensors.clock import HostClock  # noqa: E402

LOADS_S = (0.0, 0.005, 0.015)
COMPILES_S = (0.0, 0.02, 0.05, 0.7)
AT_ONCE = 4
LOAD, DIARY = "TIMED_ROWS_LOAD_S", "TIMED_ROWS_DIARY"


class SlowToLoad(FakeBackend):
    """Loading a module takes the host a while; what the device does is written down."""

    def __init__(self) -> None:
        self._diary = Path(os.environ[DIARY]).open("a", buffering=1)  # noqa: SIM115 - as long as the process
        super().__init__(HostClock(), lambda *stretch: print(json.dumps(stretch), file=self._diary))

    def load(self, image: bytes, launch: Launch, arguments: Sequence[Any], constants: Mapping[str, Any]) -> FakeKernel:
        time.sleep(float(os.environ[LOAD]))
        return super().load(image, launch, arguments, constants)


def open_backend(device: str) -> SlowToLoad:
    return SlowToLoad()


@dataclass(frozen=True)
class Modelled(Toolchain):
    """A compiler that takes so long for each image."""

    takes_s: float = 0.0

    def maker(self, capability: tuple[int, int]) -> ImageMaker:
        return Waits(super().maker(capability), self.takes_s)


class Waits:
    """Makes images in this process, for it is not their making that counts."""

    def __init__(self, maker: ImageMaker, takes_s: float) -> None:
        self.identity, self._maker, self._takes_s = maker.identity, maker, takes_s

    def make(self, text: str, options: Sequence[str]) -> Compiled:
        time.sleep(self._takes_s)
        with tempfile.TemporaryDirectory() as folder:
            image, source = Path(folder) / "image", Path(folder) / "kernel.cu"
            source.write_text(text)
            compile_source(["-o", str(image), str(source)])
            return Compiled(image.read_bytes(), "")

    def close(self) -> None:
        self._maker.close()


def cost_s(
    rows: int, launch_ms: float, load_s: float, compile_s: float = 0.0, at_once: int | None = None
) -> tuple[float, float, float]:
    """Wall time of a timed row, how long the device worked for it, and the largest error of a time, relative.

    The images are there before, unless the rows are asked for so many `at_once`.
    """
    from fixtures import cuda_bench

    from app.engine.control.guard import DeviceGuard
    from app.engine.runner.cuda.language import open_cuda
    from app.engine.runner.kernels.runner import KernelRunner
    from app.engine.session.load import load_specification
    from app.engine.space.build import build_space
    from app.sensors.limits import limits_of

    with tempfile.TemporaryDirectory() as place:
        folder, diary = Path(place), Path(place) / "diary"
        diary.touch()
        os.environ |= {LOAD: str(load_s), DIARY: str(diary), "WATTRIDGE_DATA": str(folder / "data")}
        (folder / "scale.cu").write_text("// what the stand-in for a compiler reads are the defines\n")
        path = folder / "scale.toml"
        values = f"launch_ms = [{launch_ms}]\ndraws_w = [{', '.join(str(300 + at) for at in range(rows + 1))}]"
        path.write_text(cuda_bench.SPECIFICATION.format(parameters=values, reference="factor * x", kernel=""))
        spec, sensors = load_specification(path), cuda_bench.SteadySensors()
        space = build_space(spec.parameters, spec.restrictions, spec.constants, limits_of((9, 0), 132))
        toolchain = Modelled(("nothing",), "modelled 1", takes_s=compile_s)
        guard = DeviceGuard(sensors)
        language = open_cuda(sensors, backend=Path(__file__).stem, toolchain=toolchain, jobs=AT_ONCE)
        runner = KernelRunner.on(language, spec, space, guard)
        try:
            list(runner.time(range(rows) if at_once is None else [rows], threading.Event()))  # compiles, and opens
            began_ns, began = time.monotonic_ns(), time.monotonic()
            step = at_once or rows
            asked = [range(at, min(at + step, rows)) for at in range(0, rows, step)]
            timed = [each for some in asked for each in runner.time(some, threading.Event())]
            whole_s = time.monotonic() - began
        finally:
            runner.close()
        worked = [json.loads(line) for line in diary.read_text().splitlines()]
    wrong = [each.error for each in timed if each.state is not State.OK]
    if wrong:
        raise SystemExit(f"{len(wrong)} rows failed: {wrong[0]}")
    busy_s = sum(end_ns - max(start_ns, began_ns) for start_ns, end_ns, _ in worked if end_ns > began_ns) / 1e9
    worst = max(abs(each.values["time_s"] * 1e3 / launch_ms - 1) for each in timed)
    return whole_s / rows, busy_s / rows, worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--launch-ms", type=float, default=1.0)
    parser.add_argument("--times", type=int, default=3, help="so often; the median counts")
    arguments = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, ROOT / "tests" / "engine", Path(__file__).parent)))
    print(f"{'load, ms':>9}{'a row, ms':>11}{'of which the device works, ms':>31}{'worst error of a time':>24}")
    for load_s in LOADS_S:
        found = [cost_s(arguments.rows, arguments.launch_ms, load_s) for _ in range(arguments.times)]
        whole_s, busy_s = (median(each[at] for each in found) for at in range(2))
        worst = fmean(each[2] for each in found)
        print(f"{1e3 * load_s:9.0f}{1e3 * whole_s:11.1f}{1e3 * busy_s:31.1f}{worst:24.2%}", flush=True)
    print(f"\n{AT_ONCE} at once, compiled then")
    print(f"{'an image, ms':>13}{'a row, ms':>11}{'of which the device works, ms':>31}")
    for compile_s in COMPILES_S:
        found = [cost_s(arguments.rows, arguments.launch_ms, 0.005, compile_s, AT_ONCE) for _ in range(arguments.times)]
        whole_s, busy_s = (median(each[at] for each in found) for at in range(2))
        print(f"{1e3 * compile_s:13.0f}{1e3 * whole_s:11.1f}{1e3 * busy_s:31.1f}", flush=True)


if __name__ == "__main__":
    main()
