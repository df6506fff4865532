"""What stating the figures of a session costs, by how much was measured before. By hand:

    PYTHONPATH=. python tests/benchmarks/statements.py

Windows of a board are noted one after the other, as a session notes them: the reference kernel between the kernels by
its schedule, and a kernel once or twice. After every measurement the condition and the board's model are asked for.
Printed is the processor time for all of that, per measurement.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np  # noqa: E402

from app.engine.metering.condition import Condition  # noqa: E402
from app.engine.metering.thermal import BoardLearning  # noqa: E402
from app.engine.metering.window import Window  # noqa: E402
from app.engine.runner.kernels.reference import ReferenceLooks  # noqa: E402
from app.sensors.simulated.gpu import SimulatedGpu  # noqa: E402
from app.sensors.simulated.twin import load_twin  # noqa: E402


def session_s(measured: int, repeats: int) -> float:
    """Processor time in s for the statements of so many measurements."""
    rng = np.random.default_rng(measured)
    learning = BoardLearning(SimulatedGpu(load_twin("h200")).info)
    looks, spent_s = ReferenceLooks(), 0.0

    def window() -> Window:
        warm, power_w = rng.normal(), 400.0
        condition = Condition(50 + 3 * warm, 55 + 2 * warm, power_w + 20 * warm, power_w + 9 * warm)
        drawn_w = power_w * (1 + 0.002 * warm + 0.002 * rng.normal())
        ends = (drawn_w * 0.99, drawn_w * 1.01)
        return Window(
            0.001,
            drawn_w,
            ends,
            1500.0,
            math.nan,
            50.0,
            math.nan,
            math.nan,
            0,
            (0, 1),
            "buffer",
            True,
            0.0,
            0.0,
            condition,
        )

    for number in range(measured):
        noted = [str(number)] * repeats
        if looks.due(None):
            looks.looked()
            noted.insert(0, "reference kernel")
        looks.count()
        windows = [(kernel, window()) for kernel in noted]
        began = time.process_time()
        for each in windows:
            learning.note(*each)
        _ = learning.condition, learning.model
        spent_s += time.process_time() - began
    return spent_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=int, nargs="+", default=[441, 1764, 7056])
    parser.add_argument("--repeats", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    print(f"{'measured':>10}{'repeats':>9}{'s in all':>10}{'ms each':>9}")
    with tempfile.TemporaryDirectory() as place:
        os.environ["WATTRIDGE_DATA"] = place
        for repeats in arguments.repeats:
            for measured in arguments.measured:
                spent_s = session_s(measured, repeats)
                print(f"{measured:10}{repeats:9}{spent_s:10.2f}{1e3 * spent_s / measured:9.2f}", flush=True)


if __name__ == "__main__":
    main()
