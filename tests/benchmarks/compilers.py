"""NVRTC and nvcc beside each other: how long each takes, whether they make the same machine code, and what differs on a
board where they do not.

    PYTHONPATH=. python tests/benchmarks/compilers.py [--rows 4] [--jobs 15] [--gpu 0] [--out FOLDER]

The first two parts need both compilers and no GPU. The third, with --gpu, measures the same random configurations of
the example's matrix product with the images of NVRTC, of nvcc, and of NVRTC once more, in 40 s. It reads and never
sets.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import struct
import sys
import tempfile
import threading
import time
from concurrent.futures import as_completed
from contextlib import closing
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from app.engine.control.guard import DeviceGuard  # noqa: E402
from app.engine.results.measurement import State  # noqa: E402
from app.engine.runner.cuda.language import open_cuda  # noqa: E402
from app.engine.runner.cuda.toolchain import (  # noqa: E402
    Toolchain,
    cuda_compiler,
    find_toolchain,
)
from app.engine.runner.kernels.compiler import Compiler, cores  # noqa: E402
from app.engine.runner.kernels.process import KernelFailed  # noqa: E402
from app.engine.runner.kernels.runner import KernelRunner  # noqa: E402
from app.engine.session.load import load_specification  # noqa: E402
from app.engine.space.build import build_space  # noqa: E402
from app.engine.workloads.source_kernel import Build, KernelRefused, SourceKernel  # noqa: E402
from app.sensors.limits import limits_of  # noqa: E402
from app.sensors.select import open_gpu  # noqa: E402

EXAMPLES = ROOT / "resources" / "examples"
SHARED_OPT_IN = 232448  # bytes a block may have on compute capability 9.0
IMAGES = 60
MEASURED = 16
VERBOSE = ("-Xptxas", "-v")
REGISTERS = re.compile(r"Used (\d+) registers")


def builds(path: Path, count: int, more: tuple[str, ...] = ()) -> list[Build]:
    """Random configurations of an example, as they go to the compiler; none where it is no kernel in CUDA."""
    spec, limits = load_specification(path), limits_of((9, 0), 132)
    if spec.kernel is None or spec.kernel.language != "CUDA":
        return []
    space = build_space(spec.parameters, spec.restrictions, spec.constants, limits)
    kernel, found = SourceKernel.of(spec, limits, SHARED_OPT_IN), []
    for row in np.random.default_rng(1).permutation(space.size)[: 2 * count]:
        try:
            build = kernel.prepare(space.configuration(int(row))).build
        except KernelRefused:
            continue
        found.append(Build(build.text, build.sources, build.include, (*build.options, *more)))
    return found[:count]


def code(image: bytes) -> dict[str, bytes]:
    """The machine code of each kernel of an image."""
    (at,), (size, count, names) = struct.unpack_from("<Q", image, 40), struct.unpack_from("<HHH", image, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, at + place * size) for place in range(count)]
    found = {}
    for header in headers:
        start = headers[names][4] + header[0]
        name = image[start : image.index(b"\0", start)].decode()
        if name.startswith(".text."):
            found[name] = image[header[4] : header[4] + header[5]]
    return found


def alike(compilers: dict[str, Compiler], rows: int) -> list[dict[str, Any]]:
    """Machine code and registers of each example by both."""
    table = []
    for path in sorted(EXAMPLES.glob("*.toml")):
        same, both, registers, sizes = 0, 0, {name: [] for name in compilers}, {name: [] for name in compilers}
        for build in builds(path, rows, VERBOSE):
            try:
                made = {name: compiler.compile(build) for name, compiler in compilers.items()}
            except KernelFailed as failure:
                print(f"{path.stem}: {failure.what.splitlines()[0]}", file=sys.stderr)
                continue
            codes = [code(each.image) for each in made.values()]
            both, same = both + 1, same + (codes[0] == codes[1])
            for name, each in made.items():
                registers[name] += map(int, REGISTERS.findall(each.said))
                sizes[name].append(sum(map(len, code(each.image).values())))
        if both:
            means = {name: [fmean(registers[name]), fmean(sizes[name])] for name in compilers}
            table.append({"example": path.stem, "images": both, "same": same, **means})
    return table


def wall_s(toolchain: Toolchain, jobs: int) -> list[float]:
    """Seconds until the first, the second and the last of the example's images, from the first request on."""
    with tempfile.TemporaryDirectory() as folder:
        compiler = cuda_compiler((9, 0), toolchain=toolchain, folder=Path(folder), jobs=jobs)
        try:
            begun, stamps = time.monotonic(), []
            for done in as_completed([compiler.submit(build) for build in builds(EXAMPLES / "gemm.toml", IMAGES)]):
                done.result()
                stamps.append(time.monotonic() - begun)
            again = time.monotonic()
            compiler.compile(builds(EXAMPLES / "gemm.toml", 1, ("-DAGAIN",))[0])
            return [stamps[0], stamps[1], stamps[-1], time.monotonic() - again]
        finally:
            compiler.close()


def on_board(gpu: str, toolchains: dict[str, Toolchain]) -> dict[str, dict[str, list[float]]]:
    """Time and energy of the same configurations by the images of each, and of the first again."""
    os.environ.setdefault("WATTRIDGE_DATA", tempfile.mkdtemp())
    spec = load_specification(EXAMPLES / "gemm.toml")
    found: dict[str, dict[str, list[float]]] = {}
    with closing(open_gpu(gpu, voltage=False)) as board:
        limits = limits_of(board.info.compute_capability or (9, 0), board.info.multiprocessors)
        space = build_space(spec.parameters, spec.restrictions, spec.constants, limits)
        rows = [int(row) for row in np.random.default_rng(1).choice(space.size, MEASURED, replace=False)]
        for name in [*toolchains, f"{next(iter(toolchains))} again"]:
            toolchain = toolchains[name.removesuffix(" again")]
            runner = KernelRunner.on(open_cuda(board, toolchain=toolchain), spec, space, DeviceGuard(board))
            try:
                runner.prepare(rows, threading.Event(), lambda *_: None)
                done = runner.restated(list(runner.measure(rows, threading.Event())))
            finally:
                runner.close()
            ok = {m.row: m.values for m in done if m.state is State.OK}
            found[name] = {
                "x".join(map(str, space.configuration(row).values())): [ok[row]["time_s"], ok[row]["energy_j"]]
                for row in rows
                if row in ok
            }
    return found


def show_board(found: dict[str, dict[str, list[float]]]) -> None:
    first, *others = found.values()
    names = list(found)
    print(f"\non the board, {len(first)} configurations: time, energy of the others over that of {names[0]}")
    for configuration, (time_s, energy_j) in first.items():
        shares = [each.get(configuration, [np.nan, np.nan]) for each in others]
        words = "  ".join(f"{t / time_s:6.3f} {e / energy_j:6.3f}" for t, e in shares)
        print(f"  {configuration:<16} {1e3 * time_s:8.3f} ms {energy_j:8.3f} J   {words}")
    for name, each in zip(names[1:], others, strict=True):
        both = [key for key in first if key in each]
        for what, at in (("time", 0), ("energy", 1)):
            off = [abs(each[key][at] / first[key][at] - 1) for key in both]
            print(f"  {name}: {what} differs by {median(off):.2%} (median), {max(off):.2%} (largest)")
        best = [min(one, key=lambda key, one=one: one[key][1]) for one in (first, each)]
        print(f"  {name}: least energy {best[1]}, by {names[0]} {best[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4, help="configurations of each example")
    parser.add_argument("--jobs", type=int, default=max(1, cores() - 1))
    parser.add_argument("--gpu")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    given = parser.parse_args()
    both = find_toolchain()
    toolchains = {"NVRTC": Toolchain(nvrtc=both.nvrtc), "nvcc": Toolchain(both.command, both.nvcc)}
    if not (both.nvrtc and both.nvcc):
        raise SystemExit(f"this needs NVRTC and nvcc, and there is {both.version}")
    kept: dict[str, Any] = {"version": both.version}
    print(f"{both.version}; {cores()} cores")
    print(
        f"\n{IMAGES} images of the matrix product, {given.jobs} at once: s to the first, the second, the last; one more"
    )
    for name, toolchain in toolchains.items():
        kept[f"wall {name}"] = seconds = wall_s(toolchain, given.jobs)
        print(f"  {name:<6}" + "".join(f"{each:8.3f}" for each in seconds), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        compilers = {
            name: cuda_compiler((9, 0), toolchain=toolchain, folder=Path(folder), jobs=1)
            for name, toolchain in toolchains.items()
        }
        try:
            kept["alike"] = table = alike(compilers, given.rows)
        finally:
            for compiler in compilers.values():
                compiler.close()
    print("\nmachine code for compute capability 9.0: images, of which the same; mean registers and bytes of each")
    for row in table:
        cells = "".join(f"{row[name][0]:9.1f}{row[name][1]:9.0f}" for name in toolchains)
        print(f"  {row['example']:<14}{row['images']:4}{row['same']:4}{cells}")
    if given.gpu is not None:
        kept["board"] = found = on_board(given.gpu, toolchains)
        show_board(found)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "compilers.json").write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
