"""OpenCL, and functions that launch CUDA kernels, on a real GPU: measured with energy, faults isolated.

    PYTHONPATH=. .venv/bin/python tests/benchmarks/languages_on_board.py

Needs `.[opencl]` and the driver's libnvidia-opencl.so.1; the part with functions needs nvcc and its host compiler, and
is left out without them. Nothing is set on the board. Exit status 1 where something is not as it should be.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

from app.engine.measurement import Measurement, State
from app.engine.session.load import load_specification
from app.engine.session.plan import SearchOptions
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.store.database import Store
from app.paths import resources
from app.sensors.nvml.pci import pci_address
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
    (folder / "run.cu").write_text(RUN)
    (folder / "run.toml").write_text(FUNCTION)
    for each in tuned(folder / "run.toml"):
        right = each.state is State.OK and each.values.get("energy_j", 0.0) > 0
        check(f"a function that launches {each.configuration}", right, figures(each) if right else each.error)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.setdefault("WATTRIDGE_DATA", str(folder / "data"))
        if not Path("/etc/OpenCL/vendors/nvidia.icd").exists():  # containers have the library, not its entry
            (folder / "nvidia.icd").write_text("libnvidia-opencl.so.1\n")
            os.environ.setdefault("OPENCL_VENDOR_PATH", name)
        opencl(folder)
        if shutil.which("nvcc") and shutil.which("c++"):
            functions(folder)
        else:
            print("no nvcc: functions that launch kernels are left out")
    print(f"{len(failures)} failures")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
