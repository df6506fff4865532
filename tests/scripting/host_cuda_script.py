"""A script whose kernels run for real, on the stand-in for CUDA's driver whose device is the host; prints JSON.

Run by test_kernels_for_real.py in a process that finds the stand-in.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from fixtures.cuda_bench import SteadySensors
from host_cuda.build import TOOLCHAIN

import app.engine.metering.meter as meter
import app.engine.runner.cuda.language as language
import app.engine.runner.cuda.toolchain as toolchain
from app import run_kernel, tune_kernel
from app.engine.workloads.source_kernel import Build
from app.scripting.observers import BenchmarkObserver

SOURCE = """
#include "offset.h"
__constant__ float weights[4];
extern "C" __global__ void weigh(float *y, const float *x, float k, int n) {
    const int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < n) y[i] = k * x[i] * weights[i % 4] + OFFSET + (wrong && i == 3);
    if (faulty) *(volatile float *)16 = k;
}
"""
WAVE = Build('extern "C" __global__ void square_wave(float *out, const float *start) {}\n', (), (), ())
N = 1000


class Counting(BenchmarkObserver):
    """Counts launches."""

    def __init__(self) -> None:
        self.launches = 0

    def after_finish(self) -> None:
        self.launches += 1

    def get_results(self) -> dict[str, int]:
        return {"launches": self.launches}


def main(folder: Path) -> None:
    meter.WARM_STEP_S = 0.02
    language.look_once = lambda *_: None
    language.wave_build = lambda: WAVE
    toolchain.find_toolchain = language.find_toolchain = lambda: TOOLCHAIN
    (folder / "offset.h").write_text("#define OFFSET 0.5f\n")
    (folder / "weigh.cu").write_text(SOURCE)
    x = np.arange(N, dtype=np.float32)
    weights = np.array([1, 2, 3, 4], np.float32)
    expected = 2 * x * np.resize(weights, N) + np.float32(0.5)
    board = SteadySensors()
    arguments = [np.zeros_like(x), x, np.float32(2), np.int32(N)]
    common = {
        "kernel_name": "weigh",
        "kernel_source": str(folder / "weigh.cu"),
        "problem_size": N,
        "arguments": arguments,
        "cmem_args": {"weights": weights},
        "gpu": board,
        "quiet": True,
    }
    checked = {**common, "answer": [expected, None, None, None]}
    results, environment = tune_kernel(
        **checked,
        tune_params={"block_size_x": [32], "wrong": [0, 1], "faulty": [0, 1]},
        restrictions="wrong + faulty < 2",
        iterations=3,
    )
    observed, watched = tune_kernel(
        **checked,
        tune_params={"block_size_x": [32], "wrong": [0], "faulty": [0]},
        observers=[Counting()],
        iterations=4,
        verify=lambda answer, output, atol: bool(np.allclose(answer[0], output[0], atol=atol)),
    )
    once = run_kernel(**common, params={"block_size_x": 32, "wrong": 1, "faulty": 0})
    (folder / "offset.h").write_text("#define OFFSET 1.5f\n")  # what is included is part of the kernel
    again = run_kernel(**common, params={"block_size_x": 32, "wrong": 1, "faulty": 0})
    own = {"block_size_x": [32], "wrong": [0], "faulty": [0]}
    parts, _ = tune_kernel(**common, tune_params={**own, "cuda_sm_percentage": [50, 100]}, iterations=3)
    wrong = expected.copy()
    wrong[3] += 1
    said = {
        "errors": [result.get("error", "") for result in results],
        "times": [len(result["times"]) for result in results if "times" in result],
        "power_w": results[0]["power_w"],
        "best": environment["best_config"]["wrong"],
        "isolated": environment["isolated"],
        "launches": observed[0]["launches"],
        "watched": [watched["isolated"], "error" in observed[0]],
        "sms": [part.get("sms_used") for part in parts],
        "once": bool(np.array_equal(once[0], wrong)),
        "again": bool(np.array_equal(again[0], wrong + 1)),
        "scalars": [float(once[2]), int(once[3])],
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
