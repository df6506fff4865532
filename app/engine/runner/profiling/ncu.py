"""`NcuProfiler`: the counters of kernels on a real board, by Nsight Compute's command line.

Some kernels at a time are launched once each, by `launching`, under `ncu`. Its clock control is always `none`: it locks
the clocks to their base by default, and what is profiled must run as what was measured. Each pass over a launch begins
with empty caches, so that counters repeat.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from os import environ
from pathlib import Path
from typing import Final

from ....errors import InputError, WattridgeError
from ....sensors.gpu import Gpu
from ...children.python import python_command, python_environment
from ...children.scratch import scratch_folder
from ...space.search_space import SearchSpace
from ...specification.model import Specification
from ...workloads.hardware_counters import METRICS, OTHER_NAMES
from ...workloads.source_kernel import KernelRefused
from ...workloads.subprocesses import Ended, answer_of, run_process
from ..cuda.compiler import cuda_compiler
from ..cuda.gpu import CudaGpu
from ..cuda.language import CudaLanguage
from ..cuda.toolchain import Toolchain
from ..cuda.toolkit import toolkits
from ..kernels.image_maker import once_compiled
from ..kernels.process import KernelFailed
from .launching import Task, launched, write_job
from .ncu_output import NcuOutput, ProfiledLaunch, read_ncu
from .profiler import Profile
from .rights import ADMINISTRATORS_ONLY, OPEN_COUNTERS, REFUSAL

CHOICE: Final = "WATTRIDGE_NCU"
AT_ONCE: Final = 8  # kernels in one run: enough to pay for its start, few enough to lose little and to stop soon
START_S: Final = 120.0  # of the profiler and a context; a first one after a boot takes long
EACH_S: Final = 60.0  # of one kernel, all passes
_PLACES: Final = (
    "/opt/nvidia/nsight-compute/*/ncu",
    "/usr/local/cuda-*/bin/ncu",
    "/usr/local/NVIDIA-Nsight-Compute*/ncu",
)
_NAME: Final = re.compile(r"\w+(?:\.\w+)*")
_MESSAGES: Final = (  # what it says -> what that is, and the remedy
    (REFUSAL, ADMINISTRATORS_ONLY, OPEN_COUNTERS),
    (
        "driver resource was unavailable",
        "another program uses the GPU's counters",
        "end other profilers, or pause DCGM's: dcgmi profmod --pause",
    ),
    (
        "not compatible with Nsight Compute",
        "this Nsight Compute does not know the driver",
        f"install a newer one, and name its ncu in {CHOICE}",
    ),
)


def find_ncu(where: str) -> Path:
    """Nsight Compute's program. Raises WattridgeError, with the remedy, where there is none."""
    named = environ.get(CHOICE, "")
    if named:
        found = shutil.which(named)
        if found is None:
            raise WattridgeError(f"'{named}' is no program", CHOICE, "name Nsight Compute's ncu, or unset it")
        return Path(found)
    folders = [str(folder / "bin") for folder in toolkits()]
    known = [shutil.which("ncu"), *(shutil.which("ncu", path=folder) for folder in folders)]
    usual = [str(path) for pattern in _PLACES for path in sorted(Path("/").glob(pattern[1:]), reverse=True)]
    for each in (*known, *usual):
        if each:
            return Path(each)
    raise WattridgeError(
        "Nsight Compute's command line, ncu, was not found",
        where,
        f"install the CUDA toolkit or Nsight Compute, or name the program in {CHOICE}; all else works without it",
    )


@lru_cache(maxsize=4)
def version_of(ncu: Path) -> str:
    """'Nsight Compute 2025.1.0'. Raises WattridgeError where it does not answer."""
    try:
        said = answer_of([str(ncu), "--version"])
    except OSError as error:
        raise WattridgeError(f"it does not answer: {error}", str(ncu), f"name another in {CHOICE}") from None
    found = re.search(r"[Vv]ersion (\d+(?:\.\d+){1,2})", said)
    return f"Nsight Compute {found[1]}" if found else "Nsight Compute"


class NcuProfiler:
    """Implements `Profiler` for CUDA kernels. Holds no context between calls."""

    def __init__(
        self,
        spec: Specification,
        sensors: Gpu,
        space: SearchSpace,
        *,
        ncu: Path | None = None,
        backend: str | None = None,
        toolchain: Toolchain | None = None,
    ) -> None:
        """Raises WattridgeError where there is no profiler."""
        self._spec, self._sensors, self._space = spec, sensors, space
        self._ncu = ncu or find_ncu(sensors.info.label)
        self._backend, self._toolchain = backend, toolchain
        self.tool = version_of(self._ncu)
        self._asked: dict[str, str] = {name: name for name in METRICS}  # ours -> as this version calls it
        self._environment: Mapping[str, str] = {}

    def profile(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Profile]:
        tasks: list[Task] = []
        for ready in self._tasks(rows, stop):
            if isinstance(ready, Profile):
                yield ready
            else:
                tasks.append(ready)
        for start in range(0, len(tasks), AT_ONCE):
            waiting = tasks[start : start + AT_ONCE]
            while waiting and not stop.is_set():
                for profile in self._run(waiting, stop):
                    waiting = [task for task in waiting if task.row != profile.row]
                    yield profile

    # --- before -----------------------------------------------------------------------------------------------------

    def _tasks(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Task | Profile]:
        """Every row's kernel, compiled: nothing is compiled under the profiler. The failure of one that cannot be."""
        with closing(CudaGpu(self._sensors, backend=self._backend)) as gpu:
            self._backend, self._environment = gpu.backend, gpu.environment
            language = CudaLanguage(gpu, cuda_compiler(gpu.compute_capability, toolchain=self._toolchain))
            with closing(language.compiler) as compiler:
                kernel = language.kernel(self._spec)
                waiting = {}
                for row in rows:
                    try:
                        prepared = kernel.prepare(self._space.configuration(row))
                    except (KernelRefused, InputError) as refusal:
                        yield Profile(row, error=str(refusal))
                        continue
                    waiting[row] = prepared, compiler.submit(prepared.build)
                for row, (prepared, future) in waiting.items():
                    if stop.is_set():
                        return
                    try:
                        image = once_compiled(future, stop).image
                        symbol = language.symbol(image, prepared.launch.name)
                    except KernelFailed as failure:
                        if not stop.is_set():
                            yield Profile(row, error=failure.what)
                        continue
                    launch = replace(prepared.launch, name=symbol)
                    yield Task(row, prepared.calls, launch, image, prepared.launch.name)

    # --- a run ------------------------------------------------------------------------------------------------------

    def _run(self, tasks: Sequence[Task], stop: threading.Event) -> list[Profile]:
        """Profile some kernels in one run, as many of them as it gets through: at least one, or none when stopped.

        Raises WattridgeError where nothing can be profiled here.
        """
        while True:
            folder = scratch_folder()
            try:
                write_job(folder, str(self._backend), list(tasks))
                ended, output = self._call(folder, len(tasks), stop)
                if self._forget_unknown(output.errors):
                    continue
                if ended.stopped:
                    return []
                return self._joined(tasks, launched(folder), output, ended)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def _call(self, folder: Path, kernels: int, stop: threading.Event) -> tuple[Ended, NcuOutput]:
        log = folder / "ncu.csv"
        words = [
            *(str(self._ncu), "--csv", "--page", "raw", "--print-units", "base"),
            *("--clock-control", "none", "--cache-control", "all", "--target-processes", "all"),
            *("--log-file", str(log), "--metrics", ",".join(self._asked.values())),
            *python_command(f"{__package__}.launching", str(folder)),
        ]
        own = {**self._environment, "LC_ALL": "C"}  # numbers with a point
        try:
            ended = run_process(
                words, timeout_s=START_S + kernels * EACH_S, stop=stop, environment=python_environment(own)
            )
        except OSError as error:
            raise WattridgeError(f"it does not start: {error}", str(self._ncu), f"name another in {CHOICE}") from None
        try:
            text = log.read_text(encoding="utf-8", errors="replace")
        except OSError:  # it ended before it wrote any
            text = ""
        return ended, read_ncu(f"{text}\n{ended.output}\n{ended.errors}")

    def _forget_unknown(self, errors: Iterable[str]) -> bool:
        """Ask no more for metrics that errors name: this version or board does not have them. Whether there are any."""
        named = [name for error in errors if "metric" in error.lower() for name in _NAME.findall(error)]
        before = dict(self._asked)
        for ours, theirs in before.items():
            if any(theirs == each or theirs.startswith(f"{each}.") for each in named):
                del self._asked[ours]
                if theirs == ours and ours in OTHER_NAMES:
                    self._asked[ours] = OTHER_NAMES[ours]
        return self._asked != before and bool(self._asked)

    def _joined(
        self, tasks: Sequence[Task], came: Mapping[int, str | None], output: NcuOutput, ended: Ended
    ) -> list[Profile]:
        """The launches of a run with their rows. Raises WattridgeError where they do not belong together."""
        how = "it took too long" if ended.timed_out else f"it took the program along: {ended.how}"
        found = [Profile(row, error=how if error is None else error) for row, error in came.items() if error != ""]
        ran = [task for task in tasks if came.get(task.row) == ""]
        profiled = [one for one in output.launches if any(task.kernel in one.name for task in tasks)]
        if profiled:
            lost = bool(came) and [*came.values()][-1] != ""  # the last one: it may have been profiled all the same
            if not len(ran) <= len(profiled) <= len(ran) + lost:
                what = f"{len(profiled)} launches were profiled, and {len(ran)} ran"
                raise WattridgeError(_first(output.errors, what), self.tool, "look at what ncu itself prints")
            for task, launch in zip(ran, profiled, strict=False):
                if not _belongs(task, launch):
                    what = f"it profiled {launch.name}, grid {launch.grid}, in the place of {task.launch.name}"
                    raise WattridgeError(what, self.tool, "please report this")
                known = {ours: launch.metrics[name] for ours, name in self._asked.items() if name in launch.metrics}
                found.append(Profile(task.row, known, "" if known else "the profiler reported no metric"))
        if not found or (ran and not profiled):
            raise self._why_not(output, ended)
        return found

    def _why_not(self, output: NcuOutput, ended: Ended) -> WattridgeError:
        where = self._sensors.info.label
        for sign, what, remedy in _MESSAGES:
            if any(sign in said for said in (*output.errors, *output.warnings)):
                return WattridgeError(what, where, remedy)
        if ended.timed_out:
            return WattridgeError("profiling took too long", where, "choose fewer or shorter kernels")
        said = _first([*output.errors, *output.warnings], (ended.errors.strip().splitlines() or [ended.how])[-1])
        return WattridgeError(f"no kernel was profiled: {said}", where, f"see what {self._ncu} prints by itself")


def _belongs(task: Task, launch: ProfiledLaunch) -> bool:
    """Whether the profile is of that launch, as far as its sizes are known."""
    alike = ((launch.grid, task.launch.grid), (launch.block, task.launch.block))
    return all(not seen or seen == asked for seen, asked in alike)


def _first(said: Sequence[str], otherwise: str) -> str:
    return next(iter(said), otherwise)
