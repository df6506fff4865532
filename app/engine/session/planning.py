"""From what a person asked for to a `SessionPlan`: everything resolved, checked, and ready to run."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, Final

from ...errors import InputError, WattridgeError
from ...files import digest_of
from ...input_files import is_input
from ...sensors.device_limits import DeviceLimits, limits_of
from ...sensors.gpu import Gpu
from ...sensors.select import open_gpu
from ..control.guard import DeviceGuard
from ..expressions.expression import parse
from ..formats.read import read_recording
from ..formats.recording import Recording
from ..measurement import MEASURED, Value
from ..metering.launching import require_launching
from ..objectives import Goal, Objective
from ..runner.base import Runner
from ..runner.replay import ReplayRunner
from ..runner.settings_order import setting_names
from ..space.build import build_space
from ..space.device_settings import SettingValues, resolve_device_settings
from ..space.search_space import SearchSpace
from ..specification.model import Specification
from ..store.database import Store
from ..store.record import LoadedSession
from ..strategies import base as strategies
from ..tuning_methods.fits import fit_of_sweep
from .load import load_specification
from .plan import SessionPlan

_NAMED: Final = ("fp32", "fp64", "fp64_tensor", "fp16_tensor", "bf16_tensor")  # values of a constant `precision`
# NumPy types of arguments -> precision of the arithmetic; float16 may run on tensor cores or not, so it stands for none
_PRECISIONS: Final = {"float32": "fp32", "complex64": "fp32", "float64": "fp64", "complex128": "fp64", "float16": ""}


def plan_replay(
    path: Path,
    *,
    read: Recording | None = None,
    strategy: str | None = None,
    strategy_options: Mapping[str, Any] | None = None,
    objective: Goal | None = None,
    front: Sequence[Goal] | None = None,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    patience: int | None = None,
    seed: int | None = None,
) -> SessionPlan:
    """A session that is answered from a recording, which `read` is if it was read already.

    Brute force unless a strategy is named. Without an objective the first goal of the front is taken, else the
    recording's own. Raises InputError for a bad file, strategy, option or name of a value.
    """
    recording = read if read is not None else read_recording(path)
    names = recording.value_names
    if not names:
        raise InputError("every configuration in the file failed", str(path), "there is nothing to search for in it")
    goal = objective or (front[0] if front else _own_goal(recording, names))
    if front is None:
        own = recording.objective.front
        front = own if all(each.name in names for each in own) and own else _default_front(names)
    _check_goals((goal, *front), names, str(path))
    return _checked(
        SessionPlan(
            title=recording.kernel,
            gpu=recording.device,
            driver="",
            source="recorded",
            space=replace(recording.space(), notes=recording.notes),
            objective=Objective(goal, tuple(front)),
            strategy=strategy or "brute_force",
            make_runner=lambda: ReplayRunner(recording),
            strategy_options=dict(strategy_options or {}),
            max_evaluations=max_evaluations,
            max_seconds=max_seconds,
            patience=patience,
            seed=seed or 0,
            units=dict(recording.units),
            origin={
                "kind": "replay",
                "file": str(path.resolve()),
                "sha256": digest_of(path),
                "problem_size": recording.problem_size,
            },
        )
    )


def plan_specification(
    spec: Specification,
    gpu: Gpu,
    *,
    strategy: str | None = None,
    strategy_options: Mapping[str, Any] | None = None,
    objective: Goal | None = None,
    front: Sequence[Goal] | None = None,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    patience: int | None = None,
    seed: int | None = None,
    repeats: int | None = None,
    device_settings: Mapping[str, Sequence[Value]] | None = None,
    guard: DeviceGuard | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    stop: Event | None = None,
) -> SessionPlan:
    """A session that measures a specification on a board; what is given here wins over the specification.

    `repeats` is how often each configuration is measured. `device_settings` replaces values of device settings, as
    'steer' does. Where a setting says 'ridge', the board's
    clocks are swept and fitted first, which takes its time: `on_progress(done, total)` and `stop` are for that.
    On a real board settings need a `guard` that may set it, and its rights are asked for here; what is not allowed or
    not supported is left out, and the space's notes say so. Raises InputError for a bad specification, and
    WattridgeError where the board cannot run it or the rights are not to be had.
    """
    if repeats is not None:
        spec = spec.repeated(repeats)
    limits, notes = _ready_to_run(spec, gpu)
    options: Mapping[str, Any] = strategy_options or {}
    if strategy in (None, spec.strategy):  # another strategy has options of its own
        _check_search(spec)
        options = {**spec.strategy_options, **options}
    goal = objective or (spec.objective.goal if spec.objective else None) or (front[0] if front else None)
    if goal is None:
        raise InputError("there is no objective", str(spec.path), "add [objective] maximise = NAME, or name one")
    if front is None:
        front = spec.objective.front if spec.objective else ()
    values = (*MEASURED, *(spec.command.values if spec.command else ()), *spec.metrics)
    front = tuple(front) or _default_front(values)
    _check_goals((goal, *front), values, str(spec.path))

    guard = guard if guard is not None else DeviceGuard(gpu)
    wanted = {**spec.device_settings, **{name: tuple(given) for name, given in (device_settings or {}).items()}}
    wanted, said = _allowed(wanted, gpu, guard)
    spec = _with_settings(spec, wanted)
    steered = _model_range(gpu, guard, on_progress, stop) if "ridge" in wanted.values() else None
    settings, snapped = resolve_device_settings(wanted, gpu, steered)
    space = _space(spec, limits, settings, (*said, *notes, *snapped))
    return _checked(
        SessionPlan(
            title=spec.name,
            gpu=gpu.info.name,
            driver=gpu.info.driver,
            source=gpu.info.source,
            space=space,
            objective=Objective(goal, tuple(front)),
            strategy=strategy or spec.strategy,
            make_runner=_measuring(spec, gpu, space, guard),
            strategy_options=dict(options),
            max_evaluations=max_evaluations if max_evaluations is not None else _budget(spec, space),
            max_seconds=max_seconds if max_seconds is not None else spec.max_seconds,
            patience=patience if patience is not None else spec.patience,
            seed=seed if seed is not None else spec.seed,
            origin={
                "kind": "specification",
                "file": str(spec.path.resolve()),
                "sha256": digest_of(spec.path),
                "gpu": gpu.info.uuid,
                "sim_seed": str(getattr(gpu, "seed", 0)),
                "problem_size": _problem_size(spec),
                "precision": _precision(spec),
                "repeats": str(spec.repeats),
            },
        )
    )


def space_of(spec: Specification, gpu: Gpu | None = None) -> SearchSpace:
    """The space of a specification, to look at: on a board, else with the limits of compute capability 8.0.

    Device settings that only a board or its model can tell are left out, and the space's notes say so. Raises
    InputError as `build_space` does.
    """
    needs_model = {name for name, wanted in spec.device_settings.items() if wanted == "ridge"}
    needs_board = {n for n, wanted in spec.device_settings.items() if not isinstance(wanted, tuple)} - needs_model
    left_out = needs_model | (needs_board if gpu is None else set())
    notes = [
        f"{name} is left out: it needs {'a fitted model' if name in needs_model else 'a GPU'}" for name in left_out
    ]
    kept = {name: wanted for name, wanted in spec.device_settings.items() if name not in left_out}
    if gpu is None:
        listed = {name: tuple(wanted) for name, wanted in kept.items() if isinstance(wanted, tuple)}
        notes.insert(0, "no GPU was named: the limits are those of compute capability 8.0")
        return _space(spec, limits_on(None), listed, tuple(notes))
    settings, snapped = resolve_device_settings(kept, gpu)
    return _space(spec, _limits(gpu), settings, (*notes, *snapped))


def limits_on(gpu: Gpu | None) -> DeviceLimits:
    """The limits of a board, else of compute capability 8.0."""
    return limits_of((8, 0)) if gpu is None else _limits(gpu)


def plan_of(loaded: LoadedSession) -> SessionPlan:
    """A stored session as it was planned, to look at and export: neither its file nor its board need be there.

    Running it raises WattridgeError; `plan_resume` is for that.
    """
    record = loaded.record

    def refuse() -> Runner:
        raise WattridgeError("this plan is for looking at", f"session {record.id}", "resume the session")

    return SessionPlan(
        title=record.title,
        gpu=record.gpu,
        driver=record.driver,
        source=record.source,
        space=loaded.space,
        objective=record.objective,
        strategy=record.strategy,
        make_runner=refuse,
        strategy_options=record.strategy_options,
        max_evaluations=record.max_evaluations,
        max_seconds=record.max_seconds,
        patience=record.patience,
        seed=record.seed,
        units=record.units,
        resume=record.id,
        origin=record.origin,
    )


def plan_resume(
    store: Store,
    session: int,
    *,
    gpu: Gpu | None = None,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    patience: int | None = None,
    guard: DeviceGuard | None = None,
) -> SessionPlan:
    """A stored session, to be gone on with under the same id; budgets given here replace the stored ones.

    A specification is measured on `gpu`, else on the board it was measured on, opened anew. Raises InputError where
    the session, its file or its board is gone, or where the file is not what it was.
    """
    loaded = store.load(session)
    record, path = loaded.record, Path(loaded.record.origin.get("file", ""))
    if loaded.left_out:
        what = f"{loaded.left_out} stored measurements of session {session} are damaged"
        raise InputError(what, str(store.path), "it can be analysed and exported, but not resumed")
    if not is_input(path):
        raise InputError(f"session {session} was read from a file that is gone", str(path), "put it back to resume")
    if digest_of(path) != record.origin.get("sha256"):
        raise InputError(f"the file has changed since session {session} began", str(path), "start a new session")
    make_runner: Callable[[], Runner]
    if record.origin.get("kind") == "replay":
        recording = read_recording(path)
        space, make_runner = recording.space(), lambda: ReplayRunner(recording)
    else:
        board = (
            gpu if gpu is not None else open_gpu(record.origin.get("gpu"), seed=int(record.origin.get("sim_seed", "0")))
        )
        if board.info.name != record.gpu:
            raise InputError(
                f"session {session} was measured on another board, {record.gpu}", board.info.label, "open that one"
            )
        space = loaded.space
        spec = _with_settings(load_specification(path), setting_names(space))
        if "repeats" in record.origin:  # those of the command line; an older session has the file's
            spec = spec.repeated(int(record.origin["repeats"]))
        if setting_names(space) and board.info.source == "nvml":
            (guard or DeviceGuard(board)).open()  # told now rather than by the first measurement
        make_runner = _measuring(spec, board, space, guard)
    plan = replace(plan_of(loaded), space=space, make_runner=make_runner)
    if max_evaluations is not None:
        plan = replace(plan, max_evaluations=max_evaluations)
    if max_seconds is not None:
        plan = replace(plan, max_seconds=max_seconds)
    if patience is not None:
        plan = replace(plan, patience=patience)
    return _checked(plan)


# --- inside -----------------------------------------------------------------------------------------------------------


def _allowed(
    wanted: Mapping[str, SettingValues], gpu: Gpu, guard: DeviceGuard
) -> tuple[dict[str, SettingValues], tuple[str, ...]]:
    """The settings that may be made on this board, the rights for them at hand, and what to say of the session."""
    if not wanted or gpu.info.source not in ("nvml", "simulated"):
        return dict(wanted), ()
    if not guard.allowed:
        return {}, (f"{', '.join(wanted)} stay as they are: {guard.why_forbidden}",)
    notes = guard.open() if gpu.info.source == "nvml" else ()
    refused = {name: why for name in wanted if (why := guard.why_not(name))}
    said = tuple(f"{name} stays as it is: {why}" for name, why in refused.items())
    return {name: values for name, values in wanted.items() if name not in refused}, (*notes, *said)


def _with_settings(spec: Specification, names: Collection[str]) -> Specification:
    """The specification with no other device settings than these."""
    kept = {name: values for name, values in spec.device_settings.items() if name in names}
    return replace(spec, device_settings=kept)


def _ready_to_run(spec: Specification, gpu: Gpu) -> tuple[DeviceLimits, tuple[str, ...]]:
    """The board's limits and what to say of the session, once it is known that the specification can run there.

    Told before anything is swept: raises InputError and WattridgeError.
    """
    if spec.refused:
        raise InputError(spec.refused, str(spec.path), "its space can be looked at, and recordings of it replayed")
    if spec.command is not None:
        from ..runner.command import not_its_own
        from ..workloads.command import Command

        Command(spec)
        if gpu.clock.speed == math.inf:
            raise InputError("a program takes real time", gpu.info.label, "choose --speed 1")
        said = not_its_own(gpu.info.source)
        return _limits(gpu), (said,) if said else ()
    if gpu.info.source == "nvml":
        from ..runner.cuda.open import require_kernel

        if spec.kernel is not None and spec.kernel.language != "CUDA":
            raise InputError(f"its kernel is written in {spec.kernel.language}", str(spec.path), "CUDA kernels are run")
        require_kernel(spec, gpu, _limits(gpu))
        return _limits(gpu), ()
    from ..workloads.profiled import ProfiledKernel

    limits = require_launching(gpu).limits
    ProfiledKernel.of(spec, limits)
    return limits, ()


def _measuring(spec: Specification, gpu: Gpu, space: SearchSpace, guard: DeviceGuard | None) -> Callable[[], Runner]:
    """What makes the runner of a specification on a board. Raises WattridgeError where the board cannot run it."""
    from ...sensors.simulated.profiles import LaunchRefused
    from ..runner.simulated import SimulatedRunner
    from ..workloads.profiled import ProfiledKernel

    outer = guard if guard is not None else DeviceGuard(gpu)
    if spec.command is not None:
        from ..runner.command import CommandRunner

        _ready_to_run(spec, gpu)
        return lambda: CommandRunner(gpu, spec, space, outer.nested("session"))
    if gpu.info.source == "nvml":
        from ..runner.cuda.open import open_cuda_runner

        _ready_to_run(spec, gpu)
        return lambda: open_cuda_runner(spec, gpu, space, outer.nested("session"))
    board = require_launching(gpu)
    with suppress(LaunchRefused):  # what no configuration could run is told now; a refused one is a result later
        ProfiledKernel.of(spec, board.limits).prepare(space.configuration(0))
    return lambda: SimulatedRunner(board, spec, space, outer.nested("session"))


def _space(
    spec: Specification,
    limits: DeviceLimits,
    settings: Mapping[str, tuple[Value, ...]],
    notes: tuple[str, ...] = (),
) -> SearchSpace:
    names = {"block_size_names": spec.kernel.block_size_names} if spec.kernel else {}
    return build_space(
        spec.parameters,
        spec.restrictions,
        spec.constants,
        limits,
        settings,
        notes=(*spec.notes, *notes),
        where=str(spec.path),
        **names,
    )


def _problem_size(spec: Specification) -> str:
    """The kernel's problem size, as caches tell it; '' where it depends on parameters."""
    sizes = [parse(text, str(spec.path)) for text in (spec.kernel.problem_size if spec.kernel else ())]
    if not all(name in spec.constants for size in sizes for name in size.names):
        return ""
    return ", ".join(f"{size.number(spec.constants):.0f}" for size in sizes)


def _precision(spec: Specification) -> str:
    """Of the kernel's arithmetic: what a constant names, else the one type of its floating-point arrays; else ''."""
    named = spec.constants.get("precision")
    if isinstance(named, str) and named in _NAMED:
        return named
    types = (argument.type for argument in (spec.kernel.arguments if spec.kernel else ()) if argument.shape)
    found = {_PRECISIONS[kind] for kind in types if kind in _PRECISIONS}
    return found.pop() if len(found) == 1 else ""


def _budget(spec: Specification, space: SearchSpace) -> int | None:
    """The evaluations that the specification allows, as a number or as a share of its space."""
    if spec.max_evaluations is not None or spec.max_fraction is None:
        return spec.max_evaluations
    return max(1, min(space.size, math.ceil(spec.max_fraction * space.size)))


def _limits(gpu: Gpu) -> DeviceLimits:
    known = getattr(gpu, "limits", None)
    if isinstance(known, DeviceLimits):
        return known
    return limits_of(gpu.info.compute_capability or (8, 0), gpu.info.multiprocessors)


def _model_range(
    gpu: Gpu,
    guard: DeviceGuard,
    on_progress: Callable[[int, int], None] | None,
    stop: Event | None,
) -> tuple[float, float]:
    """The clocks within 10 % of the model's optimum, from a sweep made now."""
    fit, _ = fit_of_sweep(gpu, on_progress=on_progress, stop=stop, guard=guard)
    if fit.range_mhz is None:
        raise WattridgeError(
            f"the model of the clocks is not identifiable: {'; '.join(fit.reasons)}",
            gpu.info.label,
            "give graphics_clock_mhz as a list or as { points = n }",
        )
    return fit.range_mhz


def _check_search(spec: Specification) -> None:
    """The specification's own strategy and its options are known. Raises InputError naming the file and the key."""
    key = "strategy"
    try:
        chosen = strategies.get(spec.strategy)
        key = "options"
        strategies.make_options(chosen, dict(spec.strategy_options))
    except InputError as error:
        raise InputError(error.what, f"{spec.path}: search.{key}", error.remedy) from None


def _checked(plan: SessionPlan) -> SessionPlan:
    """The plan, its strategy and options known and its budget sensible; nothing was written yet."""
    strategies.make_options(strategies.get(plan.strategy), dict(plan.strategy_options))
    budgets = {"max_evaluations": plan.max_evaluations, "max_seconds": plan.max_seconds, "patience": plan.patience}
    for name, budget in budgets.items():
        if budget is not None and not budget > 0:
            raise InputError(f"{name} is {budget}", plan.title, "give a positive number")
    return plan


def _check_goals(goals: Iterable[Goal], names: Sequence[str], where: str) -> None:
    for goal in goals:
        if goal.name not in names:
            raise InputError(f"there is no value '{goal.name}'", where, f"known: {', '.join(names)}")


def _own_goal(recording: Recording, names: Sequence[str]) -> Goal:
    """What the recorded session worked for; the time, where the file holds no value of that name."""
    own = recording.objective.goal
    return Goal("time_s", maximise=False) if own.name not in names and "time_s" in names else own


def _default_front(names: Sequence[str]) -> tuple[Goal, ...]:
    """Time against energy, where both are told."""
    told = tuple(name for name in ("time_s", "energy_j") if name in names)
    return tuple(Goal(name, maximise=False) for name in told) if len(told) == 2 else ()
