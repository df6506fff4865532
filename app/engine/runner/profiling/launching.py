"""The program that is profiled: launches each kernel of a job once, as the runner process does, and nothing else.

Started as `python -P -m PACKAGE.engine.runner.profiling.launching FOLDER`. The folder holds the job, its images, and
gets a line for each launch. The arguments are made as for a measurement; nothing is compared, since what is profiled
was verified when it was measured.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ....base.errors import InputError
from ...workloads.kernel_arguments import CallPlan, Launch
from ..kernels.backend import Backend, DeviceFault
from ..kernels.worker import Worker

JOB: Final = "job.json"
LAUNCHED: Final = "launched.jsonl"


@dataclass(frozen=True, slots=True)
class Task:
    """One kernel to launch: which row it is of, and what a runner process needs to launch it."""

    row: int
    calls: CallPlan
    launch: Launch  # under the name that the image has
    image: bytes
    kernel: str = ""  # its name in the source, which its name in the image and in a profile contains


def write_job(folder: Path, backend: str, tasks: list[Task]) -> None:
    """Write what `main` reads. `backend` is the module that opens the device."""
    launches = []
    for task in tasks:
        (folder / f"{task.row}.image").write_bytes(task.image)
        calls = replace(task.calls, references=())
        launches.append({"row": task.row, "calls": calls.as_message(), "launch": task.launch.as_message()})
    (folder / JOB).write_text(json.dumps({"backend": backend, "launches": launches}), encoding="utf-8")


def launched(folder: Path) -> dict[int, str | None]:
    """The rows whose turn came, in that order, each with why it failed: '' where it ran, None if it never ended."""
    try:
        lines = (folder / LAUNCHED).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return {one["row"]: one["error"] for one in map(json.loads, lines)}


def launch_all(job: Mapping[str, Any], folder: Path, backend: Backend) -> None:
    """Launch every kernel of a job once. Raises DeviceFault if the context is lost."""
    worker = Worker(backend)
    calls: Mapping[str, Any] | None = None
    with (folder / LAUNCHED).open("w", encoding="utf-8", buffering=1) as log:
        for item in job["launches"]:
            row, error, lost = item["row"], "", None
            log.write(json.dumps({"row": row, "error": None}) + "\n")
            try:
                if item["calls"] != calls:
                    worker.answer({"do": "arguments", "plan": item["calls"], "scratch": None}, [])
                    calls = item["calls"]
                image = (folder / f"{row}.image").read_bytes()
                worker.answer({"do": "load", "id": str(row), "launch": item["launch"]}, [image])
                worker.answer({"do": "times", "id": str(row), "launches": 1}, [])
                worker.answer({"do": "unload", "id": str(row)}, [])
            except DeviceFault as fault:
                error, lost = str(fault), fault if fault.fatal else None
            except (InputError, MemoryError) as wrong:
                error = str(wrong) or "the host is out of memory"
            log.write(json.dumps({"row": row, "error": error}) + "\n")
            if lost is not None:
                raise lost


def main() -> int:
    """The process's life."""
    folder = Path(sys.argv[1])
    job = json.loads((folder / JOB).read_text(encoding="utf-8"))
    try:
        backend: Backend = importlib.import_module(job["backend"]).open_backend("0")
        launch_all(job, folder, backend)
        backend.close()
    except (DeviceFault, ImportError) as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
