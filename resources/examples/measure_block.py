"""Time, energy and power of a block of code, with its trace.

    python measure_block.py [GPU]

GPU is an index, a UUID, simulated:NAME or recorded:NAME. The default is a recording of a real H200, so that the example
runs on any machine: its figures have nothing to do with what this script does. Replace `work` by code of your own and
name your GPU.
"""

import sys
import time

from wattridge import measure


def work() -> None:
    """Stands for kernels that run for two seconds. Launches are asynchronous: synchronise before returning."""
    time.sleep(2.0)


def main(gpu: str) -> None:
    with measure(gpu=gpu) as m:
        work()

    print(f"{m.gpu} ({m.source}), power from {m.power_source}")
    if m.unknown:  # too short for the sensor, for example: figures are NaN, never guessed
        print(f"energy is not known: {m.unknown}")
        return
    print(f"{m.time_s:.3f} s, {m.energy_j:.1f} J, mean {m.mean_power_w:.1f} W, peak {m.peak_power_w:.1f} W")
    for reason, seconds in m.event_reasons.items():
        print(f"  {reason}: {seconds:.2f} s")

    step = max(1, len(m.times_s) // 10)
    print("   s        W      MHz")
    for at in range(0, len(m.times_s), step):
        print(f"{m.times_s[at]:5.2f} {m.power_w[at]:8.1f} {m.clock_mhz[at]:8.0f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "recorded:h200-gemm")
