"""The energy roofline of a real board, also on tensor cores: python tests/benchmarks/roofline.py [--out FOLDER]

Run by hand on a board that nobody else uses. It reads and never sets. Prints the fits beside the GH200 of
[Holtmann2024], how near the flop and copy kernels come to what the board could do, and what the machine code holds;
keeps the sweeps as caches.
`--recorded` prints the same of the sweeps that are kept in resources/recordings, without a board.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from app.engine.control.guard import DeviceGuard  # noqa: E402
from app.engine.formats.kernel_tuner import write_cache  # noqa: E402
from app.engine.formats.own import About  # noqa: E402
from app.engine.formats.read import read_recording  # noqa: E402
from app.engine.models.roofline.points import PRECISIONS, TENSOR, fit_points, points_of_table  # noqa: E402
from app.engine.models.roofline.roofline_document import to_json  # noqa: E402
from app.engine.runner.cuda.language import open_cuda  # noqa: E402
from app.engine.runner.cuda.toolchain import cuda_compiler  # noqa: E402
from app.engine.runner.kernels.runner import KernelRunner  # noqa: E402
from app.engine.session.load import load_specification  # noqa: E402
from app.engine.session.planning import plan_roofline  # noqa: E402
from app.engine.space.result_table import ResultTable  # noqa: E402
from app.engine.workloads.machine_code import instructions  # noqa: E402
from app.engine.workloads.source_kernel import SourceKernel  # noqa: E402
from app.sensors.gpu import Gpu  # noqa: E402
from app.sensors.limits import limits_of  # noqa: E402
from app.sensors.select import open_gpu  # noqa: E402

GH200 = {"fp32": (4.89, 96.53, 169.27), "fp64": (11.68, 89.22, 170.10)}  # [Holtmann2024, tables 6, 8]
LANES = {"fp32": 128, "fp64": 64, "fp16_tensor": 2048, "bf16_tensor": 2048}  # fused multiply-adds per clock, Hopper
BANDWIDTH = 4.8e12


def sweep(gpu: Gpu, precision: str, out: Path) -> ResultTable:
    """Measured by the runner itself, without a session's characterisation."""
    plan = plan_roofline(gpu, precision)
    specification = load_specification(ROOT / f"resources/rooflines/{precision}.toml")
    runner = KernelRunner.on(open_cuda(gpu), specification, plan.space, DeviceGuard(gpu))
    table = ResultTable(plan.space)
    begun = time.monotonic()
    try:
        for measurement in runner.measure(range(plan.space.size), threading.Event()):
            table.append(measurement)
    finally:
        runner.close()
    print(
        f"\n{precision}: {len(table)} points in {time.monotonic() - begun:.0f} s, failed: {table.failures() or 'none'}"
    )
    about = About(gpu.info.name, f"roofline_{precision}", plan.objective, "nvml")
    write_cache(table, out / f"h200-roofline-{precision}.json", about, overwrite=True)
    return table


def report(name: str, multiprocessors: int, precision: str, table: ResultTable) -> dict[str, object]:
    fit = fit_points(points_of_table(table, name, precision))
    told = to_json(fit)
    print(f"  {'':14} eps_flop pJ  eps_mem pJ/B   pi_0 W  eta_flop")
    model = fit.model
    print(
        f"  {name:14} {model.eps_flop_pj:11.2f} {model.eps_mem_pj_per_b:13.2f} {model.pi_0_w:8.1f} "
        f"{model.eta_flop:9.2%}"
    )
    if precision in GH200:
        print("  {:14} {:11.2f} {:13.2f} {:8.1f}".format("GH200 (S4)", *GH200[precision]))
    print(f"  standard errors {', '.join(f'{error:.3g}' for error in fit.relative.standard_errors)}; alone {fit.alone}")
    mean, largest = fit.mean_relative_error, fit.max_relative_error
    print(f"  R2 of power {fit.r2:.4f}, error of power mean {mean:.2%}, largest {largest:.2%}")
    print(f"  {fit.max_relative_error_all:.2%} with {fit.throttled} throttled points and the flop kernel")
    print(f"  condition number {fit.condition_number:.1f}, {fit.points} points, identifiable: {fit.identifiable}")
    rate, traffic = table.values("GFLOP/s") * 1e9, table.values("GB/s") * 1e9
    clock = np.array([table.measurement(at).observed_clock_mhz for at in range(len(table))]) * 1e6
    lanes = LANES[precision] * multiprocessors
    for kind, kept in (("flop", (rate > 0) & (traffic == 0)), ("roofline", (rate > 0) & (traffic > 0))):
        share = rate[kept] / (2 * lanes * clock[kept])
        mhz = clock[kept][share.argmax()] / 1e6
        print(f"  {kind} kernel: {share.max():.1%} of the peak at its observed clock ({mhz:.0f} MHz)")
    copied = np.nanmax(traffic[(rate == 0) & (traffic > 0)])
    print(f"  copy kernel: {copied / 1e12:.2f} TB/s, {copied / BANDWIDTH:.1%} of 4.8 TB/s")
    return told


def machine_code(gpu: Gpu, precision: str) -> None:
    """What the runner counts in the images that it holds to their work."""
    plan = plan_roofline(gpu, precision)
    specification = load_specification(ROOT / f"resources/rooflines/{precision}.toml")
    capability = gpu.info.compute_capability or (9, 0)
    kernel = SourceKernel.of(specification, limits_of(capability, gpu.info.multiprocessors))
    compiler = cuda_compiler(capability, jobs=1)
    for row in range(plan.space.size):
        configuration = plan.space.configuration(row)
        if configuration["blocks_per_multiprocessor"] != 8 or configuration["operations"] not in (0, 8, 64, 512):
            continue
        prepared = kernel.prepare(configuration)
        kind, operations = configuration["load_store"], configuration["operations"]
        told = instructions(compiler.image(prepared.build))
        print(f"  machine code, load_store {kind}, {operations} operations: {told}, asked for {prepared.instructions}")
    compiler.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--precision", default=",".join(PRECISIONS + TENSOR))
    parser.add_argument("--recorded", action="store_true")
    given = parser.parse_args()
    out = given.out
    if given.recorded:
        for precision in PRECISIONS + TENSOR:
            file = ROOT / f"resources/recordings/h200-roofline-{precision}.json.gz"
            if not file.is_file():
                continue
            kept = read_recording(file)
            print(f"\n{precision}, recorded")
            report(kept.device, 132, precision, kept.table())
        return
    gpu = open_gpu("0")
    print(f"{gpu.info.name}, driver {gpu.info.driver}, nothing set")
    told = {}
    for precision in given.precision.split(","):
        table = sweep(gpu, precision, out)
        told[precision] = report(gpu.info.name, gpu.info.multiprocessors or 132, precision, table)
        machine_code(gpu, precision)
    gpu.close()
    (out / "roofline.json").write_text(json.dumps({"gpu": gpu.info.name, "precisions": told}, indent=1))


if __name__ == "__main__":
    main()
