"""A profiler's pass over chosen configurations of a stored session; the counters are kept with the session.

It is never part of a measurement: no session may run on the board meanwhile. The settings of the board stay as they
are, so configurations that differ in them alone are one kernel, profiled once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np

from ...base.errors import InputError, WattridgeError
from ...sensors.gpu import Gpu
from ...sensors.simulated.gpu import SimulatedGpu
from ..analysis.plane import goals_of
from ..results.objectives import Objective
from ..results.state import Purpose
from ..runner.kernels.language import MakesKernel
from ..runner.profiling.profiler import Profiler, SimulatedProfiler
from ..space.repeats import repeat_names
from ..space.result_table import ResultTable
from ..space.search_space import SearchSpace
from ..specification.model import Specification
from ..store.database import Store
from ..workloads.hardware_counters import METRICS
from ..workloads.profiled import ProfiledKernel
from ..workloads.source_kernel import SourceKernel
from .planning import measured_specification, require_board
from .summary import by_goal, front_indices

USUAL_COUNT: Final = 20  # of the best, or at random


class Which(StrEnum):
    """Which measured configurations are profiled."""

    FRONT = "front"
    BEST = "best"
    RANDOM = "random"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A choice of them: so many of the best by the objective, or at random; the front has its own number."""

    which: Which
    count: int = USUAL_COUNT
    seed: int = 0

    @property
    def words(self) -> tuple[str, ...]:
        """As options of `wattridge counters`."""
        return ("--front",) if self.which is Which.FRONT else (f"--{self.which}", str(self.count))


def open_profiler(
    spec: Specification,
    gpu: Gpu,
    space: SearchSpace,
    metrics: Sequence[str] = METRICS,
    make: MakesKernel = SourceKernel.of,
) -> Profiler:
    """A profiler of a specification's kernels. Raises InputError and WattridgeError if there is none.

    `metrics` are asked for on a real board, by Nsight Compute's names; `make` makes the kernel for it.
    """
    if spec.kernel is None:
        raise InputError("hardware counters are of kernels", str(spec.path), "there is no [kernel] in it")
    if isinstance(gpu, SimulatedGpu):
        return SimulatedProfiler(gpu, ProfiledKernel.of(spec, gpu.limits), space)
    if gpu.info.source != "nvml" or spec.kernel.language != "CUDA":
        what = f"Nsight Compute profiles CUDA kernels on NVIDIA's GPUs, and no {spec.kernel.language} on this one"
        remedy = "choose a session of CUDA kernels on such a GPU, or on a simulated one"
        raise WattridgeError(what, gpu.info.label, remedy)
    from ..runner.profiling.ncu import NcuProfiler

    return NcuProfiler(spec, gpu, space, metrics=metrics, make=make)


@dataclass(frozen=True, slots=True)
class ProfilingResult:
    """The outcome of a pass. Rows that had counters before were not profiled again."""

    session: int
    tool: str
    chosen: tuple[int, ...]  # rows
    known: int
    profiled: int
    failed: Mapping[int, str] = field(default_factory=dict)  # rows with the reason

    @property
    def words(self) -> str:
        """In one line."""
        parts = [f"{self.profiled} of {len(self.chosen)} configurations profiled ({self.tool})"]
        parts += [f"{self.known} had their counters"] if self.known else []
        parts += [f"{len(self.failed)} failed, as {next(iter(self.failed.values()))}"] if self.failed else []
        return "; ".join(parts)


def chosen_rows(table: ResultTable, objective: Objective, wanted: Wanted) -> list[int]:
    """The rows of a choice among what succeeded and was measured in full, the best first."""
    full = ~table.timed()
    best = [index for index in by_goal(table, objective.goal, objective.limits) if full[index]]
    if wanted.which is Which.FRONT:
        goals = objective.front if len(objective.front) > 1 else goals_of(table, objective) or ()
        picked = [index for index in front_indices(table, tuple(goals), objective.limits) if full[index]]
    elif wanted.which is Which.BEST:
        picked = best[: wanted.count]
    else:
        rng = np.random.default_rng(wanted.seed)
        picked = rng.choice(best, min(wanted.count, len(best)), replace=False).tolist() if best else []
    return [int(row) for row in table.rows()[picked]]


def profile_session(
    store: Store,
    session: int,
    wanted: Wanted,
    gpu: Gpu,
    *,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    stop: threading.Event | None = None,
) -> ProfilingResult:
    """Profile chosen configurations of a stored session on its board, and keep the counters with it.

    Raises InputError if there is nothing to profile, its file or board is another, and WattridgeError if nothing
    can be profiled here, or a session runs on the board.
    """
    stop = stop or threading.Event()
    loaded = store.load(session)
    record, table = loaded.record, loaded.table
    if record.purpose is Purpose.REPLAY:
        raise InputError(f"session {session} was read from a recording", "counters", "profile a session of a GPU")
    require_board(record, gpu)
    _require_quiet(store, gpu)
    rows = chosen_rows(table, record.objective, wanted)
    if not rows:
        raise InputError(f"session {session} has no such configuration", f"--{wanted.which}", "choose others")
    kernels = _Kernels(table)
    held = store.metrics(session)
    profiler = open_profiler(measured_specification(loaded), gpu, loaded.space)
    of_kernel = {kernels.of(row): metrics for row, metrics in held.items()}
    copied = {row: of_kernel[kernels.of(row)] for row in rows if row not in held and kernels.of(row) in of_kernel}
    store.keep_counters(session, copied, profiler.tool)
    waiting = [row for row in rows if kernels.of(row) not in of_kernel]
    groups = kernels.groups(waiting)
    failed: dict[int, str] = {}
    done = 0
    on_progress(0, len(waiting))
    for profile in profiler.profile([group[0] for group in groups.values()], stop):
        alike = groups[kernels.of(profile.row)]
        if profile.metrics:
            store.keep_counters(session, dict.fromkeys(alike, profile.metrics), profiler.tool)
        else:
            failed |= dict.fromkeys(alike, profile.error)
        done += len(alike)
        on_progress(done, len(waiting))
    return ProfilingResult(session, profiler.tool, tuple(rows), len(rows) - len(waiting), done - len(failed), failed)


def _require_quiet(store: Store, gpu: Gpu) -> None:
    """Raises WattridgeError while a session measures on the board: a profiled launch would lie in its windows."""
    if not gpu.info.real:
        return
    for record in store.sessions():
        if record.state.alive and record.origin.get("gpu") == gpu.info.uuid:
            what = f"session {record.id} runs on this GPU, and profiling would disturb what it measures"
            raise WattridgeError(what, gpu.info.label, "wait for its end, or stop it")


class _Kernels:
    """Which rows are the same kernel: those that differ in device settings and repeats alone."""

    def __init__(self, table: ResultTable) -> None:
        self._space = table.space
        settings = (parameter.name for parameter in self._space.parameters if parameter.device_setting)
        other = {*repeat_names(table), *settings}
        self._columns = [column for column, name in enumerate(self._space.names) if name not in other]

    def of(self, row: int) -> bytes:
        """A key of the kernel of a row."""
        return bytes(self._space.codes[row, self._columns].tobytes())

    def groups(self, rows: Iterable[int]) -> dict[bytes, Sequence[int]]:
        """Rows by their kernels."""
        groups: dict[bytes, list[int]] = {}
        for row in rows:
            groups.setdefault(self.of(row), []).append(row)
        return dict(groups)
