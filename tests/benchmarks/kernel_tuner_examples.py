"""Kernel Tuner's own examples through `wattridge kernel-tuner`, unchanged: which run, and why the others do not.

    git clone https://github.com/KernelTuner/kernel_tuner /tmp/kernel_tuner
    PYTHONPATH=. python tests/benchmarks/kernel_tuner_examples.py /tmp/kernel_tuner/examples/cuda --seconds 60
    PYTHONPATH=. python tests/benchmarks/kernel_tuner_examples.py FOLDER --gpu simulated:a100

Each runs in a copy of its folder, with a data folder of its own, and `--seconds` for each of its sessions. On a
simulated board kernels do not run: the table shows then which scripts get as far as a launch, and no figure in it means
anything. With `--beside PYTHON`, an interpreter with Kernel Tuner, those that ran go through Kernel Tuner as well, with
pynvml's setters replaced by refusals, and the best configurations stand below one another. Nothing that this fetches
belongs into the repository.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# How a simulated board costs them; a script that has none here is costed as a copy, to see how far it gets.
PROFILES = {
    "convolution": "convolution",
    "matmul": "gemm",
    "reduction": "reduction",
    "sepconv": "convolution",
    "stencil": "stencil",
    "vector_add": "vector_add",
}
# Read by the interpreter before the script: clocks, limits and persistence stay as they are.
NO_SETTERS = """
import sys
try:
    import pynvml
except ImportError:
    pynvml = None
def _refuse(*_, **__):
    raise PermissionError("setters are blocked here")
for _name in dir(pynvml) if pynvml else ():
    if _name.startswith(("nvmlDeviceSet", "nvmlDeviceReset")):
        setattr(pynvml, _name, _refuse)
import runpy
import kernel_tuner, kernel_tuner.interface as _interface, json, time
_tune = kernel_tuner.tune_kernel
def _watched(*arguments, **options):
    began = time.monotonic()
    results, environment = _tune(*arguments, **options)
    best = environment.get("best_config") or {}
    parameters = list(options.get("tune_params") or arguments[4])
    said = {"best": {n: str(best.get(n)) for n in parameters}, "time": best.get("time"), "count": len(results)}
    print("BEST " + json.dumps({**said, "seconds": time.monotonic() - began}), flush=True)
    return results, environment
kernel_tuner.tune_kernel = _interface.tune_kernel = _watched
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Ended:
    """How a script ended."""

    words: str
    sessions: tuple[dict[str, object], ...]
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gpu", default="0")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each session")
    parser.add_argument("--only", default="", help="scripts whose names hold this")
    parser.add_argument("--beside", metavar="PYTHON", help="an interpreter with Kernel Tuner")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds of a script")
    arguments = parser.parse_args()
    scripts = [path for path in sorted(arguments.folder.glob("*.py")) if arguments.only in path.name]
    print(f"{'script':32s} {'seconds':>8s}  result")
    ran = 0
    for path in scripts:
        ended = through_wattridge(path, arguments)
        ran += ended.words == "ran"
        print(f"{path.stem:32s} {ended.seconds:8.1f}  {ended.words}", flush=True)
        for each in ended.sessions:
            print(f"{'':42s} {each['evaluated']} of {each['valid']}: {each['best']}")
        if arguments.beside and ended.words == "ran":
            theirs = through_kernel_tuner(path, arguments)
            print(f"{'  Kernel Tuner':32s} {theirs.seconds:8.1f}  {theirs.words}")
            for each in theirs.sessions:
                print(f"{'':42s} {each}")
    print(f"{ran} of {len(scripts)} ran")


def through_wattridge(path: Path, arguments: argparse.Namespace) -> Ended:
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(path.parent, Path(place) / "examples")
        data = Path(place) / "data"
        environment = {**os.environ, "WATTRIDGE_DATA": str(data), "PYTHONPATH": str(ROOT)}
        words = ["--gpu", arguments.gpu, "--max-seconds", str(arguments.seconds)]
        if arguments.gpu.startswith("simulated"):
            words += ["--profile", next((PROFILES[name] for name in PROFILES if name in path.stem), "copy")]
        command = [sys.executable, "-P", "-m", "app", "kernel-tuner", *words, path.name]
        said, status, seconds = run(command, folder, environment, arguments.limit)
        summary = [sys.executable, "-P", "-m", "app", "sessions", "--json"]
        listed = subprocess.run(summary, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        sessions = []
        for each in json.loads(listed.stdout or "[]"):
            words = [*summary[:-1], str(each["session"]), "--json"]
            one = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            found = json.loads(one.stdout or "{}")
            best = found.get("best") or {}
            figures = {n: v for n, v in best.get("values", {}).items() if n in ("time_s", "energy_j")}
            shown = f"{best.get('configuration')} {figures}, failed {found.get('failed')}"
            sessions.append({"evaluated": found.get("evaluated"), "valid": found.get("valid"), "best": shown})
    return Ended("ran" if status == 0 else reason(said, status), tuple(reversed(sessions)), seconds)


def through_kernel_tuner(path: Path, arguments: argparse.Namespace) -> Ended:
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(path.parent, Path(place) / "examples")
        command = [arguments.beside, "-c", NO_SETTERS, path.name]
        said, status, seconds = run(command, folder, dict(os.environ), arguments.limit)
    best = tuple(json.loads(line) for line in re.findall(r"^BEST (.*)$", said, re.MULTILINE))
    return Ended("ran" if status == 0 else reason(said, status), best, seconds)


def run(command: list[str], folder: Path, environment: dict[str, str], limit: float) -> tuple[str, int | None, float]:
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit
        )
    except subprocess.TimeoutExpired as late:
        return (late.output or b"").decode("utf-8", "replace"), None, time.monotonic() - began
    return done.stdout.decode("utf-8", "replace"), done.returncode, time.monotonic() - began


def reason(said: str, status: int | None) -> str:
    """Why it did not run to its end, in a line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if status is None:
        return "took too long"
    return (lines[-1] if lines else f"exit status {status}")[:150]


if __name__ == "__main__":
    main()
