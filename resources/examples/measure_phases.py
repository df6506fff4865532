"""Which phase of a program takes the energy? Blocks nest: the outer one holds the whole, the inner ones its phases.

    python measure_phases.py [GPU]

The GPU is read by one thread for all blocks, and leaving a block costs nothing. The figures are asked for at the end,
because the first look at them waits for the sensor, which reports power up to a few tenths of a second late.
"""

import sys
import time

from wattridge import measure


def load() -> None:
    time.sleep(1.0)


def compute() -> None:
    time.sleep(2.0)


def store() -> None:
    time.sleep(1.0)


def main(gpu: str) -> None:
    phases = {}
    with measure(gpu=gpu) as whole:
        for phase in (load, compute, store):
            with measure(gpu=gpu) as phases[phase.__name__]:
                phase()  # synchronise here, so that the work ends within its own block

    print(f"{whole.gpu} ({whole.source})")
    for name, m in phases.items():
        share = m.energy_j / whole.energy_j
        print(f"{name:8} {m.time_s:6.2f} s {m.mean_power_w:7.1f} W {m.energy_j:8.1f} J {share:6.1%}")
    print(f"{'whole':8} {whole.time_s:6.2f} s {whole.mean_power_w:7.1f} W {whole.energy_j:8.1f} J")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "recorded:h200-gemm")
