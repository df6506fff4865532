"""Times of the examples of Home on each simulated board, by its own clock: writes `resources/example_times.toml`.

Run by hand after a change of strategies, of twins or of measuring: python tests/benchmarks/example_times.py. Each has
an empty data folder, as at a first start. A test of Home runs each again and allows a third.
"""

from __future__ import annotations

import os
import tempfile
import threading

from app.base.paths import resources
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin, twin_names
from app.views.library.aims import AIMS

HEAD = "# Seconds on the clock of each simulated board; made by tests/benchmarks/example_times.py, promised by Home.\n"


def main() -> None:
    lines = [HEAD]
    for aim in (aim for aim in AIMS if aim.example):
        lines.append(f'["{aim.example}"]\n')
        for name in (name for name in twin_names() if aim.twin in ("", name)):
            gpu = SimulatedGpu(load_twin(name), clock=VirtualClock())
            began_ns = gpu.clock.now_ns()
            with tempfile.TemporaryDirectory() as folder:
                os.environ["WATTRIDGE_DATA"] = folder
                store = Store()
                plan = plan_specification(load_specification(aim.path), gpu)
                run_session(plan, store, lambda _event: None, threading.Event())
                store.close()
            lines.append(f'"{gpu.info.name}" = {(gpu.clock.now_ns() - began_ns) / 1e9:.1f}\n')
            print(aim.example, lines[-1], end="")
        lines.append("\n")
    (resources() / "example_times.toml").write_text("".join(lines).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
