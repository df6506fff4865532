"""OpenCL, functions that launch kernels, scripts, Triton, PyTorch and Helion on a real GPU, measured with energy.

    PYTHONPATH=. .venv/bin/python tests/benchmarks/languages_on_board.py --seconds 235
    PYTHONPATH=. .venv/bin/python tests/benchmarks/languages_on_board.py --parts triton,pytorch

The parts run one after the other, each in a process of its own, until the seconds are over; what is missing for one is
said. `opencl` needs `.[opencl]` and the driver's libnvidia-opencl.so.1; `functions` nvcc and its host compiler;
`scripts` runs `tune_kernel` in each language; `triton`, `pytorch` and `helion` run the examples of
resources/examples/gpu. Nothing is set on the board. Exit status 1 where something is not as it should be.

Kernel Tuner beside it is `kernel_tuner_examples.py`, one example a call.
"""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import app
from app.base.errors import WattridgeError
from app.base.paths import resources
from app.engine.results.measurement import Measurement, State
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.scripting.observers import BenchmarkObserver
from app.sensors.nvml.gpu import pci_address
from app.sensors.opencl.devices import device_of_board, opencl_devices
from app.sensors.select import open_gpu

EXAMPLES = resources() / "examples"
FAULTS = """
[kernel]
name = "work"
language = "opencl"
source = "work.cl"
problem_size = [16777216]
grid_divisors = { x = [256] }
block_size_names = ["256", "1", "1"]
arguments = [{ name = "y", type = "float32", shape = [16777216], output = true }]
verify = { reference = "0 * y + 1" }
timeout_s = 2.0
[parameters]
fault = [1, 2, 3, 4, 0]
[objective]
minimise = "energy_j"
[search]
strategy = "brute_force"
"""
WORK = """
__kernel void work(__global float *y) {
#if fault == 1
    ((__global float *)8)[get_global_id(0)] = 1.0f;
#elif fault == 2
    while (y[0] >= 0.0f) y[1] += 1.0f;
#elif fault == 3
    does not compile;
#endif
    y[get_global_id(0)] = fault == 4 ? 2.0f : 1.0f;
}
"""
FUNCTION = """
[kernel]
name = "run"
language = "c++"
compiler = "nvcc"
source = "run.cu"
arguments = [{ name = "y", type = "float32", shape = [1], output = true }]
verify = { reference = "0 * y + 1" }
[parameters]
blocks = [132, 1320]
[objective]
minimise = "energy_j"
[search]
strategy = "brute_force"
"""
RUN = """
__global__ void spin(float *out, float start) {
    float sum = start;
    for (int i = 0; i < 200000; i++) sum = fmaf(sum, 0.999f, 1.0f);
    if (sum == -1.0f) *out = sum;
}
float run(float *y) {
    static float *out = nullptr;
    static cudaEvent_t before, after;
    if (out == nullptr) { cudaMalloc(&out, 4); cudaEventCreate(&before); cudaEventCreate(&after); }
    cudaEventRecord(before);
    spin<<<blocks, 256>>>(out, 1.0f);
    cudaEventRecord(after);
    cudaEventSynchronize(after);
    float ms = -1.0f;
    cudaEventElapsedTime(&ms, before, after);
    y[0] = cudaGetLastError() == cudaSuccess ? 1.0f : 0.0f;
    return ms;
}
"""
failures: list[str] = []


def check(what: str, right: bool, found: object = "") -> None:
    print(f"{'ok  ' if right else 'FAIL'}  {what}  {found}")
    if not right:
        failures.append(what)


def tuned(path: Path, most: int | None = None) -> list[Measurement]:
    gpu = open_gpu("0")
    try:
        plan = plan_specification(load_specification(path), gpu, SearchOptions(max_evaluations=most, seed=1))
        with Store() as store:
            table = run_session(plan, store, lambda event: None, threading.Event()).table
    finally:
        gpu.close()
    return [table.measurement(row) for row in range(len(table))]


def figures(each: Measurement) -> str:
    return (
        f"{each.values['time_s'] * 1e6:.1f} us, {each.values['energy_j'] * 1e3:.3f} mJ, {each.values['power_w']:.0f} W"
    )


def opencl(folder: Path) -> None:
    for device in opencl_devices():
        print(device)
    gpu = open_gpu("0")
    device = device_of_board(gpu.info.uuid, pci_address(gpu.info.uuid))
    gpu.close()
    check("OpenCL says which device GPU 0 is", device is not None, pci_address(gpu.info.uuid))
    if device is None:
        return
    text = (EXAMPLES / "vector_add_opencl.toml").read_text().replace("../kernels", str(resources() / "kernels"))
    path = folder / "add.toml"
    path.write_text(text.replace("n = 4194304", "n = 67108864"))
    rows = tuned(path, 8)
    for each in rows:
        right = each.state is State.OK and each.values.get("energy_j", 0.0) > 0
        check(f"vector_add {dict(each.configuration)}", right, figures(each) if right else each.error)
    best = max((each.values["GB/s"] for each in rows if each.state is State.OK), default=0.0)
    print(f"      at most {best:.0f} GB/s; the same of vector_add.toml in CUDA should be within some per cent")
    (folder / "work.cl").write_text(WORK)
    (folder / "faults.toml").write_text(FAULTS)
    states = {each.configuration["fault"]: each for each in tuned(folder / "faults.toml")}
    wanted = {1: State.RUNTIME, 2: State.TIMEOUT, 3: State.COMPILE, 4: State.CORRECTNESS, 0: State.OK}
    for fault, state in wanted.items():
        check(f"fault {fault} is {state}", states[fault].state is state, states[fault].error.splitlines()[:1])
    gemm = (EXAMPLES / "clblast_gemm.toml").read_text().replace("../kernels", str(resources() / "kernels"))
    (folder / "gemm.toml").write_text(gemm.replace('strategy = "auto"', 'strategy = "random_sample"'))
    for each in tuned(folder / "gemm.toml", 6):
        right = each.state is State.OK
        check("clblast_gemm", right, f"{each.values['GFLOP/s']:.0f} GFLOP/s" if right else each.error[:200])


def functions(folder: Path) -> None:
    if not (shutil.which("nvcc") and shutil.which("c++")):
        print("left out: functions that launch kernels need nvcc and c++")
        return
    (folder / "run.cu").write_text(RUN)
    (folder / "run.toml").write_text(FUNCTION)
    for each in tuned(folder / "run.toml"):
        right = each.state is State.OK and each.values.get("energy_j", 0.0) > 0
        check(f"a function that launches {each.configuration}", right, figures(each) if right else each.error)


N = np.int32(1 << 24)
IN_CUDA = """
__global__ void add(float *c, const float *a, const float *b, int n) {
    const int i = blockIdx.x * block_size_x + threadIdx.x;
#if fault == 1
    *(volatile float *)8 = 1.0f;
#endif
    if (i < n) c[i] = a[i] + b[i] + (fault == 2 && i == 3);
}
"""
IN_OPENCL = """
__kernel void add(__global float *c, __global const float *a, __global const float *b, int n) {
    const int i = get_global_id(0);
#if fault == 1
    *(volatile __global float *)8 = 1.0f;
#endif
    if (i < n) c[i] = a[i] + b[i] + (fault == 2 && i == 3);
}
"""


class Counting(BenchmarkObserver):
    """Counts launches."""

    launches = 0

    def after_finish(self) -> None:
        self.launches += 1

    def get_results(self) -> dict[str, Any]:
        return {"launches": self.launches}


def scripts(folder: Path) -> None:
    a, b = np.random.default_rng(1).random((2, int(N)), np.float32)
    given = [np.zeros_like(a), a, b, N]
    parameters = {"block_size_x": [128, 256, 512], "fault": [0, 1, 2]}
    kept = ["fault == 0 or block_size_x == 128"]
    for language, source in (("CUDA", IN_CUDA), ("OpenCL", IN_OPENCL)):
        try:
            results, environment = app.tune_kernel(
                "add", source, int(N), given, parameters, restrictions=kept, answer=[a + b, None, None, None],
                lang=language, gpu="0", quiet=True,
            )  # fmt: skip
            failed = {each["fault"]: each["error"].splitlines()[0] for each in results if "__error__" in each}
            each_costs_one = set(failed) == {1, 2} and len(results) == 5
            if language == "OpenCL" and "are the most per group" in failed.get(0, ""):  # by the driver, at the launch
                each_costs_one = set(failed) == {0, 1, 2} and len(results) == 5
            check(f"tune_kernel in {language}: each fault costs one", each_costs_one, failed)
            for each in results:
                if "__error__" not in each:
                    words = (
                        f"{each['time']:.4f} ms, {each.get('energy_j', 0.0) * 1e3:.3f} mJ, {len(each['times'])} times"
                    )
                    check(f"  {each['block_size_x']} threads", each.get("energy_j", 0.0) > 0, words)
            check("  kernels were isolated", environment["isolated"])
            watched, environment = app.tune_kernel(
                "add", source, int(N), given, {"block_size_x": [256], "fault": [0]}, lang=language, gpu="0", quiet=True,
                observers=[Counting()], iterations=5,
            )  # fmt: skip
            check("  its own observers watch five launches", watched[0].get("launches") == 5, watched[0])
            once = app.run_kernel(
                "add", source, int(N), given, {"block_size_x": 256, "fault": 0}, lang=language, gpu="0", quiet=True
            )
            check("  run_kernel returns the sum", bool(np.array_equal(once[0], a + b)))
        except WattridgeError as error:
            check(f"tune_kernel in {language}", False, error)
    if shutil.which("nvcc") and shutil.which("c++"):
        (folder / "run.cu").write_text(RUN)
        results, _ = app.tune_kernel(
            "run", str(folder / "run.cu"), 1, [np.zeros(1, np.float32)], {"blocks": [132, 1320]}, lang="C",
            answer=[np.ones(1, np.float32)], gpu="0", quiet=True,
        )  # fmt: skip
        right = all("__error__" not in each and each.get("energy_j", 0.0) > 0 for each in results)
        check("tune_kernel of a function that launches kernels", right, [each.get("time") for each in results])
    else:
        print("no nvcc: a script's function that launches kernels is left out")


def example(name: str, *needs: str) -> Callable[[Path], None]:
    """The example of that name as it is, where the modules that it needs are there."""

    def run(_: Path) -> None:
        if missing := [each for each in needs if find_spec(each) is None]:
            print(f"left out: {', '.join(missing)} is not installed")
            return
        if find_spec("wattridge") is None:  # the checkout's own
            sys.modules |= {"wattridge": app} | {
                f"wattridge.{each}": getattr(app, each) for each in ("triton", "helion")
            }
        runpy.run_path(str(EXAMPLES / "gpu" / f"{name}.py"), run_name="__main__")
        check(f"{name} ran", True)

    return run


PARTS: dict[str, Callable[[Path], None]] = {
    "scripts": scripts,
    "opencl": opencl,
    "functions": functions,
    "triton": example("matmul_triton", "torch", "triton"),
    "pytorch": example("attention_pytorch", "torch"),
    "helion": example("add_helion", "torch", "helion"),
}


def run_part(part: str) -> int:
    """One part, in this process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.setdefault("WATTRIDGE_DATA", str(folder / "data"))
        if not Path("/etc/OpenCL/vendors/nvidia.icd").exists():  # containers have the library, not its entry
            (folder / "nvidia.icd").write_text("libnvidia-opencl.so.1\n")
            os.environ.setdefault("OPENCL_VENDOR_PATH", name)
        PARTS[part](folder)
    return int(bool(failures))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="separated by commas")
    parser.add_argument("--seconds", type=float, default=235.0, help="of all parts together")
    parser.add_argument("--part", choices=PARTS, help="this one alone, in this process")
    arguments = parser.parse_args()
    if arguments.part:
        return run_part(arguments.part)
    until, wrong = time.monotonic() + arguments.seconds, 0
    for part in arguments.parts.split(","):
        left, began = until - time.monotonic(), time.monotonic()
        print(f"=== {part}", flush=True)
        try:
            command = [sys.executable, "-u", __file__, "--part", part]
            status = subprocess.run(command, timeout=max(1.0, left), check=False).returncode
        except subprocess.TimeoutExpired:
            print(f"the time was over: run it alone by --parts {part}")
            status = 1
        wrong += status != 0
        print(f"    {part}: {'as it should be' if status == 0 else 'NOT as it should be'}, "
              f"{time.monotonic() - began:.0f} s", flush=True)  # fmt: skip
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
