"""A CUDA kernel tuned from Python, for time, with its energy beside it.

    python tune_kernel.py [GPU]

On a real GPU the kernel runs and is checked; a simulated one costs it as its built-in vector sum, to try the script.
"""

import sys

import numpy as np
from wattridge import tune_kernel

SOURCE = """
extern "C" __global__ void vector_add(float *c, const float *a, const float *b, int n) {
    const int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""


def main(gpu: str) -> None:
    n = np.int32(1_000_000)
    a, b = np.random.default_rng(0).random((2, int(n)), dtype=np.float32)
    results, environment = tune_kernel(
        "vector_add",
        SOURCE,
        int(n),
        [np.zeros_like(a), a, b, n],
        {"block_size_x": [64, 128, 256, 512, 1024]},
        answer=[a + b, None, None, None],
        metrics={"GB/s": lambda p: 12 * int(n) / 1e6 / p["time"], "nJ/value": "energy_j / 1e6 * 1e9"},
        gpu=gpu,
        profile="vector_add",
        quiet=True,
    )
    board = environment["device_name"]
    print(board if environment["source"] == "nvml" else f"{board} ({environment['source']})")
    for each in results:
        if "__error__" in each:
            print(f"{each['block_size_x']:5d} threads: {each['error']}")
            continue
        threads, time_ms, energy_j = each["block_size_x"], each["time"], each["energy_j"]
        print(f"{threads:5d} threads: {time_ms:.4f} ms, {each['GB/s']:.0f} GB/s, {energy_j:.4f} J")
    print(f"the best has {environment['best_config']['block_size_x']} threads; session {environment['session']}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "simulated:a100")
