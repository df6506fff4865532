"""Runs a script that imports `kernel_tuner` with its `tune_kernel` watched; `kernel_tuner_examples.py` starts it.

    python kernel_tuner_watched.py ASKED.json SCRIPT.py

It runs in an interpreter with Kernel Tuner, or, where ASKED.json says so, with Wattridge standing for it. ASKED.json
has the configurations to keep for each call of `tune_kernel`, or null for all of them; a number of rounds, each of
which measures them once more; Wattridge's GPU, and whether Wattridge measures energy. Each round is printed as one
line of JSON. What pynvml has to set a board is replaced by refusals first, so that Kernel Tuner sets nothing either.
"""

from __future__ import annotations

import json
import runpy
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    asked = json.loads(Path(sys.argv[1]).read_text())
    block_setters()
    with ExitStack() as stack:
        if asked["wattridge"]:
            sys.path.insert(0, str(ROOT))
            from app.scripting.stand_in import standing_for_kernel_tuner
            from app.scripting.surroundings import Surroundings, running_with

            stack.enter_context(standing_for_kernel_tuner())
            stack.enter_context(running_with(Surroundings(gpu=asked["gpu"], energy=asked["energy"])))
        watch(asked)
        sys.argv = sys.argv[2:]
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_path(sys.argv[0], run_name="__main__")


def _board(result: dict[str, Any]) -> str:
    """What Wattridge shows of the board where it measured the energy; empty otherwise."""
    if "energy_j" not in result:
        return ""
    clock = result.get("observed_clock_mhz", float("nan"))
    return f"{result['energy_j']:.4g} J, {result['power_w']:.0f} W, {clock:.0f} MHz"


def block_setters() -> None:
    try:
        import pynvml
    except ImportError:
        return

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("setters are blocked here")

    for name in dir(pynvml):
        if name.startswith(("nvmlDeviceSet", "nvmlDeviceReset")):
            setattr(pynvml, name, refuse)


def watch(asked: dict[str, Any]) -> None:
    """Put a watched `tune_kernel` in place of Kernel Tuner's."""
    import kernel_tuner
    import kernel_tuner.interface

    tune, calls = kernel_tuner.tune_kernel, iter(asked["calls"])

    def watched(*arguments: Any, **options: Any) -> Any:
        kept = next(calls, "none")
        if kept == "none":  # the last call that is asked for was the one before
            sys.exit(0)
        names = list(options.get("tune_params") or arguments[4])
        if kept is not None:
            wanted = {tuple(each) for each in kept}

            def keeps(*values: Any, wanted: Any = wanted, **named: Any) -> bool:  # Kernel Tuner calls it in both ways
                return tuple(map(str, values or named.values())) in wanted

            options = {**options, "restrictions": keeps}
            arguments = arguments[:8]  # restrictions and what follows are given by name in all of the examples
        for _ in range(asked["rounds"]):
            began = time.monotonic()
            results, environment = tune(*arguments, **options)
            rows = [
                {
                    "configuration": [str(each[name]) for name in names],
                    "time": None if "__error__" in each else float(each["time"]),
                    "board": _board(each),
                }
                for each in results
            ]
            said = {"names": names, "seconds": time.monotonic() - began, "rows": rows}
            print("ROUND " + json.dumps(said), flush=True)
        return results, environment

    kernel_tuner.tune_kernel = kernel_tuner.interface.tune_kernel = watched


if __name__ == "__main__":
    main()
