"""A function tuned over its own parameters: how a product of matrices is cut into blocks.

    python tune_function.py [GPU]

It computes on the host with NumPy, so on a simulated GPU time is its own and the energy is the idle board's: name your
GPU and put a function in its place that uses it.
"""

import sys

import numpy as np
import wattridge


def blocked_product(a: np.ndarray, b: np.ndarray, rows: int, columns: int) -> np.ndarray:
    c = np.empty((len(a), b.shape[1]), a.dtype)
    for i in range(0, len(a), rows):
        for j in range(0, b.shape[1], columns):
            c[i : i + rows, j : j + columns] = a[i : i + rows] @ b[:, j : j + columns]
    return c


def main(gpu: str) -> None:
    a = np.random.default_rng(0).random((256, 256), dtype=np.float32)
    result = wattridge.tune(
        blocked_product,
        {"rows": [32, 256], "columns": [32, 256]},
        arguments=(a, a),
        restrictions=["rows >= columns"],
        verify=lambda c: np.allclose(c, a @ a, rtol=1e-3),
        minimise="time_s",
        strategy="brute_force",
        target=0.2,
        gpu=gpu,
        quiet=True,
    )
    print(result)
    for row in result.rows():
        print(f"{row['rows']:4d} x {row['columns']:<4d} {1e3 * row['time_s']:.3f} ms, {row['energy_j']:.4f} J")
    print(f"the best: {result.best}; {result.source}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "simulated:a100")
