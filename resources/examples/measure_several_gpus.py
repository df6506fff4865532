"""Several GPUs, each driven by a thread of its own, and all of them together.

    python measure_several_gpus.py [GPU ...]

By default two simulated GPUs, on which nothing runs: they draw their idle power.
"""

import sys
import threading
import time
from collections.abc import Sequence

from wattridge import measure


def work(gpu: str, results: dict[str, str]) -> None:
    """What one thread does on its GPU."""
    with measure(gpu=gpu) as m:
        time.sleep(1.5)  # launch kernels on this GPU, and synchronise
    results[gpu] = f"{m.gpu} ({m.source}): {m.time_s:.2f} s, {m.energy_j:.1f} J, {m.mean_power_w:.1f} W"


def main(gpus: Sequence[str]) -> None:
    results: dict[str, str] = {}
    with measure(gpu=gpus) as together:  # one block over all of them
        threads = [threading.Thread(target=work, args=(gpu, results)) for gpu in gpus]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    for gpu in gpus:
        print(results[gpu])
    print(f"together: {together.energy_j:.1f} J, {together.mean_power_w:.1f} W")
    for board in together.boards:
        print(f"  of that {board.label}: {board.energy_j:.1f} J")


if __name__ == "__main__":
    main(sys.argv[1:] or ["simulated:a100", "simulated:h200"])
