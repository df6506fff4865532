"""Programs that are profiled while they run: what their processes write of their activity, beside the board's power."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from ...base.errors import InputError
from ...base.installation import how_to_add_elsewhere
from ...base.processes import original_environment
from ...sensors.gpu import Gpu, ListsProcesses, SensorError
from ...sensors.recorded.gpu import read_any
from ...sensors.trace.live_board import LiveBoard
from ..children.scratch import scratch_folder
from ..workloads.subprocesses import Ended, run_process
from .aligned_power import align
from .attributed import AttributedTrace, attribute_trace
from .chrome_trace import read_chrome_trace
from .program_profile import ProgramProfile
from .program_trace import ProgramTrace
from .watched import Watched, read_watched, trace_of

VARIABLE: Final = "WATTRIDGE_PROFILE"  # the folder where a watched process writes
INJECTED: Final = Path(__file__).with_name("injected")
INTERVAL_S: Final = 0.02
_AFTER_S: Final = 0.5  # of power behind the program: the last samples come late
_REACH_S: Final = 0.2  # by which power may lag: what runs and its power are of one machine's clock
_LOOK_S: Final = 1.0  # between looks at what else runs on the board
_STANDARD_ERROR: Final = 2
_USERS: Final = "PyTorch, CuPy, Triton, JAX, Numba, PyCUDA or cuda-bindings"
_PACKAGES: Final = {"NumPy is not found": "numpy", "CUPTI is not found": "nvidia-cuda-cupti-cu12"}

Profiled = tuple[ProgramProfile, AttributedTrace]


class LiveProfile:
    """The power of a board from now on, and what the processes that are started with `environment` run on it.

    It owns the board. `close` ends the recording and removes what was written.
    """

    def __init__(self, gpu: Gpu) -> None:
        if not sys.platform.startswith("linux"):
            raise InputError("programs are watched on Linux only", "profile", "give --trace FILE and --power FILE")
        self.folder = scratch_folder()
        self._gpu = gpu
        self._power = self.folder / "power.csv.gz"
        self._seen: dict[int, str] = {}  # processes on the board
        self._ended = threading.Event()
        self._board = LiveBoard(gpu, interval_s=INTERVAL_S, record_to=self._power)
        self._looker = threading.Thread(target=self._look, name="processes on the board", daemon=True)
        self._looker.start()

    @property
    def environment(self) -> dict[str, str]:
        """The user's own, with what makes Python processes write what they run."""
        environment = original_environment()
        before = environment.get("PYTHONPATH")
        path = os.pathsep.join([str(INJECTED), *([before] if before else [])])
        return environment | {"PYTHONPATH": path, VARIABLE: str(self.folder)}

    def profile(self, title: str) -> Profiled:
        """End the recording and attribute its energy. Raises InputError, which says why, where nothing was watched."""
        self._gpu.clock.wait(_AFTER_S)
        self._end()
        trace = self._trace(title)
        boards = read_any(self._power).boards
        return attribute_trace(trace, align(trace, boards, str(self._power), reach_s=_REACH_S))

    def close(self) -> None:
        """End, and remove what was written. Safe to call twice."""
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self) -> None:
        self._ended.set()
        self._looker.join()
        self._board.close()

    def _look(self) -> None:
        """Note what runs on the board, as far as it is reported."""
        while isinstance(self._gpu, ListsProcesses) and not self._ended.wait(_LOOK_S):
            with suppress(SensorError):
                self._seen |= {process.pid: process.name for process in self._gpu.processes()}

    def _trace(self, title: str) -> ProgramTrace:
        processes = [read_watched(path) for path in sorted(self.folder.glob("*.watched"))]
        failures = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(self.folder.glob("*.failed"))]
        by_pytorch = sorted(self.folder.glob("*.trace.json"), key=lambda path: path.stat().st_size)
        if not processes and not failures:
            what = f"no Python process of the program imported {_USERS}"
            raise InputError(what, title, "only those are watched; a program in C++ is not")
        if not processes:
            problem, python = failures[0]["problem"], failures[0]["python"]
            remedy = "profile a trace of PyTorch's profiler instead"
            if problem in _PACKAGES:
                remedy = how_to_add_elsewhere(_PACKAGES[problem], python)
            raise InputError(f"the program could not be watched: {problem}", title, remedy)
        notes = [f"process {each['pid']} was not watched: {each['problem']}" for each in failures]
        notes += self._unwatched(processes)
        ran_ns = max((int(each.slices[:, 5].sum()) for each in processes), default=0)
        for path in by_pytorch[-1:]:
            with suppress(InputError):  # it watched no board
                trace = read_chrome_trace(path)
                lasts_s = (trace.span_ns[1] - trace.span_ns[0]) / 1e9
                if trace.duration_ns.sum() < ran_ns:
                    notes.append("PyTorch's profiler had the records for a while: what ran then is not known")
                    break
                notes.append(f"the program ran PyTorch's profiler: this is of its records alone, {lasts_s:.3g} s")
                return replace(trace, title=title, notes=(*trace.notes, *notes))
        trace = trace_of(processes, title, title, self._gpu.info.uuid)
        return replace(trace, notes=(*trace.notes, *notes))

    def _unwatched(self, processes: Sequence[Watched]) -> list[str]:
        """Name the other processes that were on the board."""
        watched = {each.process for each in processes} | {os.getpid()}
        others = [f"{name} ({process})" for process, name in self._seen.items() if process not in watched]
        few = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        what = "other processes on the board were not watched, and what they ran is in the remainder"
        return [f"{what}: {few}"] if others else []


def profile_program(
    words: Sequence[str],
    gpu: Gpu,
    seconds: float | None = None,
    stop: threading.Event | None = None,
) -> tuple[Profiled, Ended]:
    """Run a program with this terminal, at most so many seconds, and profile what it runs on a board; closes the board.

    What it prints goes to standard error. Raises InputError where it does not start or nothing was watched.
    """
    with closing(LiveProfile(gpu)) as live:
        try:
            ended = run_process(
                words,
                capture=False,
                output_to=_STANDARD_ERROR,
                timeout_s=seconds,
                stop=stop,
                grace_s=lambda: 3.0,
                environment=live.environment,
            )
        except OSError as error:
            what = f"the program does not start: {error.strerror or error}"
            raise InputError(what, words[0], "give its name or its path") from None
        script = next((word for word in words if word.endswith(".py")), words[0])
        return live.profile(Path(script).stem), ended
