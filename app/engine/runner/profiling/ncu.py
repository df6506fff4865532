"""`NcuProfiler`: the counters of kernels on a real board, by Nsight Compute's command line.

Some kernels at a time are launched once each, by `launching`, under `ncu`. Its clock control is always `none`: it locks
the clocks to their base by default, and what is profiled must run as what was measured. Each pass over a launch begins
with empty caches, so that counters repeat. The rule that the driver's module was loaded with decides who may read them.

Nsight Compute prints messages and, with `--csv`, the kernels that it profiled with their metrics. Both of its pages are
read: `details` has a line per metric, `raw` a column per metric and a second line of units. What the profiled program
prints may stand between. Numbers may have separators of thousands, and a comma for the point where the user's locale
has it; which of the two it is follows from the numbers of the whole output.
"""

from __future__ import annotations

import csv
import math
import os
import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from ....base.configuration import setting
from ....base.errors import InputError, WattridgeError
from ....sensors.gpu import Gpu
from ...children.python import python_command, python_environment
from ...children.scratch import scratch_folder
from ...space.search_space import SearchSpace
from ...specification.model import Specification
from ...workloads.hardware_counters import METRICS, OTHER_NAMES
from ...workloads.source_kernel import KernelRefused, SourceKernel
from ...workloads.subprocesses import Ended, answer_of, run_process
from ..cuda.gpu import CudaGpu
from ..cuda.language import CudaLanguage
from ..cuda.toolchain import Toolchain, cuda_compiler
from ..cuda.toolkit import toolkits
from ..kernels.compiler import once_compiled
from ..kernels.language import MakesKernel
from ..kernels.process import KernelFailed
from .launching import Task, launched, write_job
from .profiler import Profile

_MESSAGE: Final = re.compile(r"==(PROF|WARNING|ERROR)==\s*(.*)")
_OF_KERNEL: Final = frozenset(  # columns that are no metrics
    {
        *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream"),
        *("Block Size", "Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value"),
        *("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup"),
    }
)
_MOST_LINES: Final = 64  # of one record: the text of a rule has some
_NUMBER: Final = re.compile(r"([+-]?)(\d[\d.,'\u2019 \u00a0\u202f]*|[.,]\d+)([eE][+-]?\d+)?")
_ALWAYS_GROUPS: Final = re.compile("['\u2019 \u00a0\u202f]")
_LARGE: Final = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SMALL: Final = {"n": 1e-9, "u": 1e-6, "m": 1e-3}
_TIMES: Final = frozenset({"second", "s", "sec"})
_COUNTED: Final = frozenset(
    {"byte", "hz", "inst", "sector", "cycle", "request", "wavefront", "warp", "thread", "block", "register"}
)


@dataclass(frozen=True, slots=True)
class ProfiledLaunch:
    """One launch of a kernel, as it was profiled."""

    name: str
    block: tuple[int, ...]  # empty if the output has none
    grid: tuple[int, ...]
    metrics: Mapping[str, float]  # in base units: byte, s, Hz and their ratios; unknown ones are left out


@dataclass(slots=True)
class NcuOutput:
    """Launches in the order in which they ran, and the messages of Nsight Compute."""

    launches: list[ProfiledLaunch] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Kernel:
    name: str
    block: tuple[int, ...]
    grid: tuple[int, ...]
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)  # value and unit by metric


def read_ncu(text: str) -> NcuOutput:
    """Everything that can be understood of an output; the rest is passed over."""
    output, lines = NcuOutput(), []
    for line in text.splitlines():
        match = _MESSAGE.match(line.strip())
        if match is None:
            lines.append(line)
        elif match[1] != "PROF":
            (output.errors if match[1] == "ERROR" else output.warnings).append(match[2].strip())
    kernels = _kernels(_records(lines))
    point = decimal_point(value for kernel in kernels for value, _ in kernel.texts.values())
    for kernel in kernels:
        read = {metric: number(value, point) * factor(unit) for metric, (value, unit) in kernel.texts.items()}
        finite = {metric: value for metric, value in read.items() if math.isfinite(value)}
        output.launches.append(ProfiledLaunch(kernel.name, kernel.block, kernel.grid, finite))
    return output


# --- numbers and units ------------------------------------------------------------------------------------------------


def decimal_point(numbers: Iterable[str]) -> str:
    """'.' or ',': what the numbers of one output show. A point where nothing shows it."""
    votes: Counter[str] = Counter()
    for text in numbers:
        match = _NUMBER.fullmatch(text.strip())
        if match is not None:
            votes.update(_shown_point(_ALWAYS_GROUPS.sub("", match[2])))
    return "," if votes[","] > votes["."] else "."


def _shown_point(digits: str) -> str:
    """Which separator of a number must be its point; empty if it may be either."""
    marks = [mark for mark in digits if mark in ".,"]
    if not marks:
        return ""
    if len(set(marks)) == 2:
        return marks[-1]
    if len(marks) > 1:
        return "." if marks[0] == "," else ","
    before, _, after = digits.partition(marks[0])
    groups = len(after) == 3 and 1 <= len(before) <= 3 and before.strip("0") != ""
    return "" if groups else marks[0]


def number(text: str, point: str = ".") -> float:
    """A number as it is printed; NaN for `n/a`, words and nothing."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return math.nan
    digits = _ALWAYS_GROUPS.sub("", match[2]).replace("," if point == "." else ".", "").replace(point, ".")
    try:
        return float(f"{match[1]}{digits}{match[3] or ''}")
    except ValueError:  # several points
        return math.nan


def factor(unit: str) -> float:
    """From a unit such as Mbyte, usecond or Gbyte/s to its base unit; 1 for per cent, counts and none."""
    above, _, below = unit.strip().partition("/")
    return _factor_of_one(above) / _factor_of_one(below)


def _factor_of_one(unit: str) -> float:
    first, rest = unit[:1], unit[1:]
    if first in _SMALL and rest in _TIMES:
        return _SMALL[first]
    return _LARGE[first] if first in _LARGE and rest.lower() in _COUNTED else 1.0


# --- records ----------------------------------------------------------------------------------------------------------


def _records(lines: Iterable[str]) -> Iterator[list[str]]:
    """Every line as cells; one that opens quotes goes on until they close, unless that takes too long."""
    waiting: list[str] = []
    for line in lines:
        waiting.append(line)
        whole = "\n".join(waiting)
        unclosed = whole.startswith('"') and whole.count('"') % 2 == 1
        if unclosed and len(waiting) < _MOST_LINES:
            continue
        for part in waiting if unclosed else [whole]:
            yield from _cells(part)
        waiting = []
    for part in waiting:
        yield from _cells(part)


def _cells(text: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader([text] if "\n" not in text else text.splitlines(keepends=True))
    except csv.Error:
        return


def _kernels(records: Iterable[list[str]]) -> list[_Kernel]:
    """The kernels of all tables; a table begins with its header."""
    kernels: list[_Kernel] = []
    header: list[str] = []
    units: dict[str, str] = {}
    by_id: dict[tuple[str, str], _Kernel] = {}
    last: _Kernel | None = None
    for cells in records:
        if "ID" in cells and "Kernel Name" in cells:
            header, units, by_id, last = cells, {}, {}, None
            continue
        if not header or len(cells) != len(header):
            continue
        row = dict(zip(header, cells, strict=True))
        if not row["ID"] and "Metric Name" not in row:
            units = row
            continue
        if row["ID"]:
            key = row.get("Process ID", ""), row["ID"]
            if key not in by_id:
                by_id[key] = _Kernel(row["Kernel Name"], _sizes(row.get("Block Size")), _sizes(row.get("Grid Size")))
                kernels.append(by_id[key])
            last = by_id[key]
        if last is None:
            continue
        if "Metric Name" in row:
            if name := row["Metric Name"]:
                last.texts[name] = row.get("Metric Value", ""), row.get("Metric Unit", "")
        else:
            last.texts |= {name: (row[name], units.get(name, "")) for name in header if name not in _OF_KERNEL}
    return kernels


def _sizes(text: str | None) -> tuple[int, ...]:
    """'(16, 16, 1)' as numbers."""
    return tuple(int(value) for value in re.findall(r"\d+", text or ""))


REFUSAL: Final = "ERR_NVGPUCTRPERM"
ADMINISTRATORS_ONLY: Final = f"the driver lets only administrators read its counters ({REFUSAL})"
OPEN_COUNTERS: Final = (
    "run this command as root, or have an administrator set NVreg_RestrictProfilingToAdminUsers=0 for the module"
    " nvidia and reboot; a container needs --cap-add=SYS_ADMIN"
)
_PARAMETERS: Final = Path("/proc/driver/nvidia/params")
_RULE: Final = re.compile(r"^RmProfilingAdminOnly: *(\d+)", re.MULTILINE)
_SYS_ADMIN: Final = 1 << 21  # CAP_SYS_ADMIN in CapEff
_CAPABILITIES: Final = re.compile(r"^CapEff:\s*([0-9a-f]+)", re.MULTILINE)


def counters_refused(parameters: Path = _PARAMETERS, status: Path = Path("/proc/self/status")) -> bool | None:
    """Whether the driver refuses its counters to this process; None if that is not known."""
    try:
        rule = _RULE.search(parameters.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None
    return None if rule is None else rule[1] != "0" and not _is_administrator(status)


def _is_administrator(status: Path) -> bool:
    """As the driver sees it: CAP_SYS_ADMIN, which root in a container may lack."""
    try:
        match = _CAPABILITIES.search(status.read_text(encoding="ascii", errors="replace"))
    except OSError:
        match = None
    return bool(int(match[1], 16) & _SYS_ADMIN) if match else os.name == "posix" and os.geteuid() == 0


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
    """Nsight Compute's program. Raises WattridgeError, with the remedy, if there is none."""
    named = setting(CHOICE)
    if named:
        program_path = shutil.which(named)
        if program_path is None:
            raise WattridgeError(f"'{named}' is no program", CHOICE, "name Nsight Compute's ncu, or unset it")
        return Path(program_path)
    folders = [str(folder / "bin") for folder in toolkits()]
    candidates = [shutil.which("ncu"), *(shutil.which("ncu", path=folder) for folder in folders)]
    usual = [str(path) for pattern in _PLACES for path in sorted(Path("/").glob(pattern[1:]), reverse=True)]
    for value in (*candidates, *usual):
        if value:
            return Path(value)
    raise WattridgeError(
        "Nsight Compute's command line, ncu, was not found",
        where,
        f"install the CUDA toolkit or Nsight Compute, or name the program in {CHOICE}; all else works without it",
    )


@lru_cache(maxsize=4)
def version_of(ncu: Path) -> str:
    """'Nsight Compute 2025.1.0'. Raises WattridgeError if it does not answer."""
    try:
        answer = answer_of([str(ncu), "--version"])
    except OSError as error:
        raise WattridgeError(f"it does not answer: {error}", str(ncu), f"name another in {CHOICE}") from None
    match = re.search(r"[Vv]ersion (\d+(?:\.\d+){1,2})", answer)
    return f"Nsight Compute {match[1]}" if match else "Nsight Compute"


class NcuProfiler:
    """Implements `Profiler` for CUDA kernels. Holds no context between calls."""

    def __init__(
        self,
        spec: Specification,
        sensors: Gpu,
        space: SearchSpace,
        *,
        metrics: Sequence[str] = METRICS,
        make: MakesKernel = SourceKernel.of,
        ncu: Path | None = None,
        backend: str | None = None,
        toolchain: Toolchain | None = None,
    ) -> None:
        """Raises WattridgeError if there is no profiler."""
        self._spec, self._sensors, self._space, self._make = spec, sensors, space, make
        self._ncu = ncu or find_ncu(sensors.info.label)
        self._backend, self._toolchain = backend, toolchain
        self.tool = version_of(self._ncu)
        self._asked: dict[str, str] = {name: name for name in metrics}  # ours -> as this version calls it
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
                kernel = language.kernel(self._spec, self._make)
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

        Raises WattridgeError if nothing can be profiled here.
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
        command = [
            *(str(self._ncu), "--csv", "--page", "raw", "--print-units", "base"),
            *("--clock-control", "none", "--cache-control", "all", "--target-processes", "all"),
            *("--log-file", str(log), "--metrics", ",".join(self._asked.values())),
            *python_command(f"{__package__}.launching", str(folder)),
        ]
        environment = {**self._environment, "LC_ALL": "C"}  # numbers with a point
        try:
            ended = run_process(
                command, timeout_s=START_S + kernels * EACH_S, stop=stop, environment=python_environment(environment)
            )
        except OSError as error:
            raise WattridgeError(f"it does not start: {error}", str(self._ncu), f"name another in {CHOICE}") from None
        try:
            text = log.read_text(encoding="utf-8", errors="replace")
        except OSError:  # it ended before it wrote any
            text = ""
        return ended, read_ncu(f"{text}\n{ended.output}\n{ended.errors}")

    def _forget_unknown(self, errors: Iterable[str]) -> bool:
        """Drop the metrics that errors name as unavailable on this version or board. Whether any were dropped."""
        named = [name for error in errors if "metric" in error.lower() for name in _NAME.findall(error)]
        before = dict(self._asked)
        for ours, theirs in before.items():
            if any(theirs == value or theirs.startswith(f"{value}.") for value in named):
                del self._asked[ours]
                if theirs == ours and ours in OTHER_NAMES:
                    self._asked[ours] = OTHER_NAMES[ours]
        return self._asked != before and bool(self._asked)

    def _joined(
        self, tasks: Sequence[Task], came: Mapping[int, str | None], output: NcuOutput, ended: Ended
    ) -> list[Profile]:
        """The launches of a run with their rows. Raises WattridgeError if they do not belong together."""
        how = "it took too long" if ended.timed_out else f"it took the program along: {ended.how}"
        results = [Profile(row, error=how if error is None else error) for row, error in came.items() if error != ""]
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
                counters = {ours: launch.metrics[name] for ours, name in self._asked.items() if name in launch.metrics}
                results.append(Profile(task.row, counters, "" if counters else "the profiler reported no metric"))
        if not results or (ran and not profiled):
            raise self._why_not(output, ended)
        return results

    def _why_not(self, output: NcuOutput, ended: Ended) -> WattridgeError:
        where = self._sensors.info.label
        for sign, what, remedy in _MESSAGES:
            if any(sign in error for error in (*output.errors, *output.warnings)):
                return WattridgeError(what, where, remedy)
        if ended.timed_out:
            return WattridgeError("profiling took too long", where, "choose fewer or shorter kernels")
        message = _first([*output.errors, *output.warnings], (ended.errors.strip().splitlines() or [ended.how])[-1])
        return WattridgeError(f"no kernel was profiled: {message}", where, f"see what {self._ncu} prints by itself")


def _belongs(task: Task, launch: ProfiledLaunch) -> bool:
    """Whether the profile is of that launch, as far as its sizes are known."""
    alike = ((launch.grid, task.launch.grid), (launch.block, task.launch.block))
    return all(not seen or seen == asked for seen, asked in alike)


def _first(lines: Sequence[str], otherwise: str) -> str:
    return next(iter(lines), otherwise)
