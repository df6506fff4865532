"""From a script's kernel to a session's plan: on a board, or answered from a cache."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..base.errors import InputError
from ..base.processes import current_stop
from ..engine.control.guard import DeviceGuard
from ..engine.formats.growing_cache import GrowingCache
from ..engine.formats.names import THEIR_SETTINGS, their_device
from ..engine.metering.external_meters import NO_METERS, MeterChoice
from ..engine.metering.launching import require_launching
from ..engine.results.measurement import MEASURED, Configuration, Measurement, State, Value
from ..engine.results.objectives import Goal, Objective
from ..engine.runner.base import Runner
from ..engine.runner.boards import Boards, InProcess, ReadyPlan, Report, no_report
from ..engine.runner.completed import CompletedRunner
from ..engine.runner.languages import kernel_runner, require_device
from ..engine.runner.profiling.profiler import Profile, Profiler
from ..engine.runner.replay import ReplayRunner
from ..engine.runner.simulated import SimulatedRunner
from ..engine.session.gains import choice_to_origin
from ..engine.session.on_board import OneBoard, limits_on
from ..engine.session.planning import make_plan
from ..engine.session.profiling import open_profiler
from ..engine.space.build import build_space
from ..engine.space.device_settings import resolve_device_settings
from ..engine.space.search_space import SearchSpace
from ..engine.specification.model import LANGUAGES, SearchOfAnySize
from ..engine.specification.plan import SessionPlan
from ..sensors.gpu import Gpu
from ..sensors.limits import DeviceLimits, limits_of
from ..sensors.simulated.profiles import PROFILES
from .described_kernel import DescribedKernel
from .restrictions import Accepts, Restrictions, filtered
from .script_side import ScriptOfKernel
from .tuned import Figures, our_name

TIME_ALONE = "the script asks for the time alone, so energy is not measured: --energy measures it too"
NOT_ISOLATED = "the script's observers run its kernels in its own process: faults are not isolated"
_OF_A_BOARD = frozenset(MEASURED) - {"time_s"}
_TIME_AND_ENERGY = (Goal("time_s", maximise=False), Goal("energy_j", maximise=False))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a script asks for besides its kernel."""

    restrictions: Restrictions
    objective: Objective
    search: SearchOfAnySize
    figures: Figures
    seed: int
    energy: bool = True  # is measured also where no more than the time is asked for
    meters: MeterChoice = NO_METERS  # beside the board
    counters: tuple[str, ...] = ()  # by Nsight Compute's names, of each configuration
    start: Configuration = field(default_factory=dict)  # is measured first

    def time_alone(self, kernel: DescribedKernel) -> bool:
        """Whether the time is all that is to be measured: nothing that is asked for comes from a board's sensors.

        Parameters
        ----------
        kernel : DescribedKernel
            The kernel, with its device settings.

        Returns
        -------
        bool
            False where energy is measured in any case.
        """
        if self.energy or self.meters or kernel.spec.device_settings:
            return False
        goals = (self.objective.goal, *self.objective.front)
        named = {*(goal.name for goal in goals), *self.figures.observed, *self.figures.names_in_metrics}
        return not any(our_name(name) in _OF_A_BOARD for name in named)


def plan_on_board(
    kernel: DescribedKernel,
    wanted: Wanted,
    gpu: Gpu,
    guard: DeviceGuard,
    side: Callable[[DescribedKernel, Gpu], ScriptOfKernel],
    cache: GrowingCache | None,
) -> ReadyPlan:
    """Plan the session of a script's kernel on a board.

    Parameters
    ----------
    kernel : DescribedKernel
        The kernel.
    wanted : Wanted
        What the script asks for besides.
    gpu : Gpu
        The open board.
    guard : DeviceGuard
        Sets the board and restores it.
    side : callable
        Of the kernel and the board; it returns the script's side of the measurement.
    cache : GrowingCache or None
        The file whose measurements count as known; None for none.

    Returns
    -------
    ReadyPlan
        The plan with its board; nothing has been measured.

    Raises
    ------
    InputError
        If what the script asks for cannot be run there, before anything is measured.
    WattridgeError
        If it cannot be run there for another reason, likewise.
    """
    spec = kernel.spec
    assert spec.kernel is not None
    metered = gpu.info.reports_power
    if not metered:
        _require_time_only(wanted, gpu)
    if gpu.info.real:
        require_device(spec.kernel, gpu, spec.name)
    settings, refused = OneBoard(gpu, guard).allowed_settings(spec.device_settings)
    if refused:
        raise InputError(refused[0], "tune_params", "leave the clocks and limits out, or allow control")
    resolved, notes = resolve_device_settings(settings, gpu)
    space = _space(kernel, wanted, limits_on(gpu), resolved, notes)
    time_alone = wanted.time_alone(kernel)
    if time_alone and metered:
        space = replace(space, notes=(*space.notes, TIME_ALONE))
    script = side(kernel, gpu)
    script.time_alone = time_alone
    isolated = not any(getattr(observer, "watches_launches", True) for observer in script.observers)
    if not isolated:
        space = replace(space, notes=(*space.notes, NOT_ISOLATED))
    if not gpu.info.real and not spec.kernel.profile:
        require_launching(gpu)
        what = "a simulated GPU runs no kernels, and it is not said how it costs this one"
        remedy = f"give profile= (--profile), one of {', '.join(PROFILES)}, or choose a real GPU"
        raise InputError(what, spec.name, remedy)
    board = _ScriptedBoard(gpu, guard, script, isolated, wanted.figures)
    if wanted.counters:
        profiler = open_profiler(spec, gpu, space, wanted.counters, script.kernel)
        board.counted = _Counted(profiler, space, wanted.counters)
    board.require_space(spec, space)
    cached: dict[int, Measurement] = {}
    if cache is not None:
        known_as, size = their_device(spec.kernel).get("known_as"), kernel.problem_size
        cache.require(space.names, kernel=spec.name, problem_size=size, board=gpu.info.name, known_as=known_as)
        cached = _with_objective(_known(cache, space, wanted.figures), wanted)
    of_meters = choice_to_origin(wanted.meters, gpu.info)
    both = metered and not time_alone and not wanted.objective.front
    return _plan(
        kernel,
        wanted,
        space,
        board,
        gpu=gpu.info.name,
        driver=gpu.info.driver,
        source=gpu.info.source,
        objective=replace(wanted.objective, front=_TIME_AND_ENERGY) if both else wanted.objective,
        known=tuple(map(wanted.figures.complete, cached.values())),
        looks_again=metered and not time_alone,
        meters=wanted.meters,
        origin={"gpu": gpu.info.uuid, "isolated": str(isolated), **their_device(spec.kernel), **of_meters},
    )


class _ScriptedBoard(OneBoard):
    """A board with what a script contributes to the measurement of its kernel."""

    counted: _Counted | None = None

    def __init__(self, gpu: Gpu, guard: DeviceGuard, script: ScriptOfKernel, isolated: bool, figures: Figures) -> None:
        super().__init__(gpu, guard)
        self._script, self._isolated, self._figures = script, isolated, figures

    def runner(self, plan: SessionPlan, report: Report = no_report) -> Runner:
        spec, gpu, script, guard = plan.specification, self.gpu, self._script, self.guard.nested("session")
        assert spec is not None
        runner: Runner
        if gpu.info.real:
            runner = kernel_runner(spec, gpu, plan.space, guard, script=script, isolated=self._isolated)
        else:
            board, alone = require_launching(gpu), script.time_alone
            runner = SimulatedRunner(board, spec, plan.space, guard, time_alone=alone, window_s=script.window_s)
        if self.counted is not None:
            runner = CompletedRunner(runner, self.counted.complete)
        return CompletedRunner(runner, self._figures.complete if gpu.info.real else self._with_times)

    def _with_times(self, measurement: Measurement) -> Measurement:
        """With the single launches that a script asks for: those of a simulated board are all alike."""
        if "time_s" in measurement.values:
            times = [measurement.values["time_s"] * 1e3] * self._script.iterations
            self._figures.more.setdefault(measurement.row, {})["times"] = times
        return self._figures.complete(measurement)


class _Counted:
    """Adds counters to measurements: each kernel is launched once under the profiler, between two measurements."""

    def __init__(self, profiler: Profiler, space: SearchSpace, names: Sequence[str]) -> None:
        self._profiler, self._names = profiler, names
        self._of_kernel = [item.name for item in space.parameters if not item.device_setting]
        self._known: dict[tuple[Value, ...], Profile] = {}

    def complete(self, measurement: Measurement) -> Measurement:
        """With its counters; as failed where the profiler fails. Raises InputError for one that it does not have."""
        if measurement.state is not State.OK or not measurement.final:
            return measurement
        kernel = tuple(measurement.configuration[name] for name in self._of_kernel)
        if kernel not in self._known:
            profiles = self._profiler.profile([measurement.row], current_stop() or threading.Event())
            self._known.update((kernel, profile) for profile in profiles)
        if (known := self._known.get(kernel)) is None:  # stopped
            return measurement
        if known.error:
            return replace(measurement, state=State.RUNTIME, error=f"NCUObserver: {known.error}")
        if missing := [name for name in self._names if name not in known.metrics]:
            what = f"the counters ({self._profiler.tool}) have no {', '.join(missing)}"
            raise InputError(what, "NCUObserver", f"there are {', '.join(known.metrics)}")
        return replace(measurement, values={**measurement.values, **{n: known.metrics[n] for n in self._names}})


def require_language(language: str) -> None:
    """Require that kernels in a language can be run.

    Parameters
    ----------
    language : str
        As a specification names it, such as 'OpenCL'.

    Raises
    ------
    InputError
        If they are not run.
    """
    if language not in LANGUAGES:
        remedy = f"kernels in {', '.join(LANGUAGES)} are run; with simulation_mode a cache of any language is searched"
        if language == "HIP":
            remedy = "say lang='CUDA': what both languages share is compiled for AMD's boards, too"
        raise InputError(f"the kernel is in {language}", "lang", remedy)


def _require_time_only(wanted: Wanted, gpu: Gpu) -> None:
    """Raises InputError if a script asks for figures that a device without such sensors does not report."""
    goals = (wanted.objective.goal, *wanted.objective.front)
    timed = gpu.info.source == "unmetered"
    for name in (*(goal.name for goal in goals), *wanted.figures.observed):
        if our_name(name) in (_OF_A_BOARD if timed else {"power_w", "energy_j"}):
            what = f"'{name}' is asked for, and this device reports {'time alone' if timed else 'no power'}"
            raise InputError(what, gpu.info.label, "leave out the observer, and work for the time, or choose a GPU")


def plan_from_cache(kernel: DescribedKernel, wanted: Wanted, cache: GrowingCache) -> ReadyPlan:
    """Plan a search that is answered from a file.

    `wanted.figures` is marked as of measurements that were not made here and now.

    Parameters
    ----------
    kernel : DescribedKernel
        The kernel, which does not run.
    wanted : Wanted
        What the script asks for besides.
    cache : GrowingCache
        The file.

    Returns
    -------
    ReadyPlan
        The plan with the recording that answers it.

    Raises
    ------
    InputError
        If there is no such file, it is of something else, or it lacks a configuration of the space.
    """
    recording = cache.recording
    if recording is None:
        raise InputError(
            "there is no such cache, or nothing in it",
            str(cache.path),
            "simulation_mode answers from a cache that is there",
        )
    settings = {
        name: tuple(values) for name, values in kernel.spec.device_settings.items() if isinstance(values, tuple)
    }
    space = _space(kernel, wanted, limits_of((8, 0)), settings, recording.notes)
    cache.require(space.names, kernel=kernel.spec.name, problem_size=kernel.problem_size)
    cached = _known(cache, space, wanted.figures)
    wanted.figures.ran = False
    missing = next((row for row in range(space.size) if row not in cached), None)
    if missing is not None:
        named = ", ".join(f"{name}={value}" for name, value in space.configuration(missing).items())
        what = f"{space.size - len(cached)} of {space.size} configurations are not in the cache, the first is {named}"
        raise InputError(what, str(cache.path), "in simulation_mode every configuration must be there")
    timed, names, complete = recording.names_at_time, recording.value_names, wanted.figures.complete
    return _plan(
        kernel,
        wanted,
        space,
        InProcess(lambda _: CompletedRunner(ReplayRunner(cached.__getitem__, timed, names), complete)),
        gpu=recording.device,
        source="recorded",
        objective=wanted.objective,
        units=dict(recording.units),
        origin={"kind": "replay", "cache": str(cache.path.resolve())},
    )


def _known(cache: GrowingCache, space: SearchSpace, figures: Figures) -> dict[int, Measurement]:
    """What the file holds of the space, with what is no number of it."""
    cached = cache.known(space)
    for row, measurement in cached.items():
        figures.more[row] = dict(cache.other_values(measurement))
    return cached


def _with_objective(known: dict[int, Measurement], wanted: Wanted) -> dict[int, Measurement]:
    """Those that failed, and those that have a value of the objective: the others are measured again."""
    goal = wanted.objective.goal
    return {
        row: item
        for row, item in known.items()
        if item.state is not State.OK or goal.cost(wanted.figures.complete(item).values) < math.inf
    }


def _plan(
    kernel: DescribedKernel,
    wanted: Wanted,
    space: SearchSpace,
    boards: Boards,
    *,
    origin: Mapping[str, str],
    **facts: Any,
) -> ReadyPlan:
    values = {parameter.name: parameter.values for parameter in space.parameters}  # in place of functions of the script
    spec = replace(kernel.spec, parameters={name: values[name] for name in kernel.spec.parameters})
    start = space.row_of(wanted.start) if wanted.start else None
    if wanted.start and start is None:
        raise InputError("it is no valid configuration", "strategy_options: x0", "give values of tune_params")
    return make_plan(
        boards,
        **{**wanted.search.search_in(space.size), "seed": wanted.seed},
        title=spec.name,
        space=space,
        specification=spec,
        starts=() if start is None else (start,),
        origin={"kind": "script", "file": str(spec.path), "problem_size": kernel.problem_size, **origin},
        **facts,
    )


def _space(
    kernel: DescribedKernel,
    wanted: Wanted,
    limits: DeviceLimits,
    settings: Mapping[str, tuple[Value, ...]],
    notes: tuple[str, ...],
) -> SearchSpace:
    spec = kernel.spec
    if not spec.parameters and not settings:
        raise InputError("there are none", "tune_params", "name at least one with its values")
    space = build_space(
        spec.parameters,
        wanted.restrictions.texts,
        {},
        limits,
        settings,
        block_size_names=kernel.parts.block_size_names,
        notes=notes,
        where=str(spec.path),
    )
    for name, accepts in wanted.restrictions.functions.items():
        space = filtered(space, partial(_by_their_names, accepts), name, str(spec.path))
    return space


def _by_their_names(accepts: Accepts, configuration: Configuration) -> object:
    return accepts({THEIR_SETTINGS.get(name, name): value for name, value in configuration.items()})
