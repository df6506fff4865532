"""What compile workers gain a board: wall time with 0, 1 and 2 of them; and that they make the same images.

    PYTHONPATH=. .venv/bin/python tests/benchmarks/compile_workers.py [--rows N] [--jobs N]
    PYTHONPATH=. .venv/bin/python tests/benchmarks/compile_workers.py --nvrtc SPEC [--rows N] [--capability 9.0]

The first: a board with one core for its compiler times and measures kernels that take next to no time, its runner
process and all of the pool's lines being real; compilers wait as long as an image would take. Compile workers have
`--jobs` cores each. That does not depend on how many cores there are here, since waiting needs none.

The second: two compile workers with folders of their own compile the same rows of a specification with NVRTC. No GPU is
needed for that.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path

for folder in (Path(__file__).resolve().parents[2], Path(__file__).resolve().parents[1] / "engine"):
    sys.path.insert(0, str(folder))

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from compile_sides import Bench, TestMaker  # noqa: E402
from cuda_bench import SteadySensors  # noqa: E402
from fake_pool import FakePool  # noqa: E402

from app.engine.measurement import Depth, State  # noqa: E402
from app.engine.metering import meter  # noqa: E402
from app.engine.runner.cuda.toolchain import find_toolchain  # noqa: E402
from app.engine.runner.kernels.image_target import ImageTarget  # noqa: E402
from app.engine.runner.pool.bundle import bundle_of  # noqa: E402
from app.engine.runner.pool.compilers import CompileRequest, compile_request_line, parse_image  # noqa: E402
from app.engine.runner.pool.messages import SessionWork, parse_answer  # noqa: E402
from app.engine.runner.pool.runner import PoolRunner  # noqa: E402
from app.engine.session.load import load_specification  # noqa: E402
from app.engine.session.pool.compile_work import CompileWork  # noqa: E402
from app.engine.space.build import build_space  # noqa: E402
from app.sensors.device_limits import limits_of  # noqa: E402

ROW = "{:>10}{:>11}{:>9}{:>10}{:>10}{:>8}"


def session(rows: int, compile_s: float, workers: int, jobs: int, depth: Depth) -> tuple[float, int, int]:
    """Seconds that it took; images that the board compiled, and that it was given."""
    parameters = f"launch_ms = {[1 + at / 1000 for at in range(rows)]}"
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("WATTRIDGE_DATA", str(Path(folder) / "data"))
        patch.setattr(meter, "WARM_STEP_S", 0.02)  # the board that is not there is warm
        own = TestMaker(before=lambda _: time.sleep(compile_s))
        bench = Bench(Path(folder), patch, SteadySensors(), parameters, own)
        bench.compiler(TestMaker(before=lambda _: time.sleep(compile_s)))
        # a fake pool has one thread for each member: of a machine with several cores, one for each of them
        names = [(f"node{at}", f"node{at}/{core}") for at in range(workers) for core in range(jobs)]
        machines = [CompileWork(host=host, key=key, jobs=1) for host, key in names]
        pool = FakePool(bench.board, *machines)
        runner = PoolRunner(pool, bench.board.board.model, "nvml", bench.space, bundle_of(bench.spec))
        try:
            began = time.monotonic()
            look = runner.measure if depth is Depth.ENERGY else runner.time
            found = list(look(range(rows), threading.Event()))
            took = time.monotonic() - began
            assert [each.state for each in found] == [State.OK] * rows, found
            return took, len(own.made), runner._help.used
        finally:
            runner.close()
            pool.close()
            for side in (bench.board, *machines):
                side.close()


def gains(rows: int, jobs: int) -> None:
    print(f"{rows} rows on a board with one core for its compiler; compile workers with {jobs} cores")
    print(ROW.format("rows are", "compiling", "workers", "seconds", "compiled", "given"))
    for depth, words in ((Depth.TIME, "timed"), (Depth.ENERGY, "measured")):
        for compile_s in (0.2, 1.0):
            for workers in (0, 1, 2):
                took, own, given = session(rows, compile_s, workers, jobs, depth)
                print(ROW.format(words, f"{compile_s:g} s", workers, f"{took:.1f}", own, given), flush=True)


def same_images(path: Path, rows: int, capability: tuple[int, int]) -> None:
    spec = load_specification(path)
    limits = limits_of(capability, 132)
    space = build_space(spec.parameters, spec.restrictions, spec.constants, limits)
    chosen = np.random.default_rng(1).choice(space.size, size=min(rows, space.size), replace=False).tolist()
    maker = find_toolchain().maker(capability)
    target = ImageTarget(capability, limits, 232448, maker.identity)
    maker.close()
    found: list[dict[int, tuple[str, bytes]]] = []
    for at in range(2):
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setenv("WATTRIDGE_DATA", folder)  # an empty cache
            work = CompileWork(host=f"node{at}", key=f"node{at}", jobs=1)
            session = SessionWork("0" * 32, bundle_of(spec), space)
            opening = CompileRequest("open", session.session, 1, work=session, target=target)
            answer = parse_answer(work.answer(compile_request_line(opening), lambda _: None), "node")
            assert answer.error is None, answer.error
            images, began = {}, time.monotonic()
            for number, row in enumerate(chosen, 2):
                request = compile_request_line(CompileRequest("compile", session.session, number, row))
                answer = parse_answer(work.answer(request, lambda _: None), "node")
                assert answer.answer is not None, answer.error
                image = parse_image(answer.answer, "node")
                images[row] = image.key, image.image
            took = time.monotonic() - began
            work.close()
        found.append(images)
        byte = [len(image) for _, image in images.values()]
        print(f"{len(images)} images of {target.compiler}: {took:.1f} s, {min(byte)} to {max(byte)} bytes")
    same = sum(found[0][row] == found[1][row] for row in chosen)
    print(f"{same} of {len(chosen)} have the same key and the same bytes")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--nvrtc", type=Path)
    parser.add_argument("--capability", default="9.0")
    arguments = parser.parse_args()
    if arguments.nvrtc is None:
        gains(arguments.rows, arguments.jobs)
    else:
        major, minor = (int(each) for each in arguments.capability.split("."))
        same_images(arguments.nvrtc, arguments.rows, (major, minor))


if __name__ == "__main__":
    main()
