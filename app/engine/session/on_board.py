"""What a specification needs of a board before it can be measured: limits, rights, clocks, a runner."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, cast

from ...base.errors import InputError, WattridgeError
from ...sensors.gpu import Gpu
from ...sensors.limits import DeviceLimits, limits_of
from ...sensors.service import ServesLoad
from ...sensors.unmetered import NO_ENERGY
from ..control.guard import DeviceGuard
from ..metering.condition import Condition
from ..metering.launching import require_here, require_launching
from ..models.clock_fits import fit_of_sweep
from ..runner.base import Runner, setting_names
from ..runner.pool.pool import BoardReports, PooledGpu
from ..space.device_settings import SettingValues
from ..space.search_space import SearchSpace
from ..specification.model import Specification, programs_of

if TYPE_CHECKING:
    from ..control.guard import SeveralBoards
    from ..runner.service_modelled import ModelledBoard


def limits_on(gpu: Gpu | None) -> DeviceLimits:
    """The limits of a board, else of compute capability 8.0."""
    if gpu is None:
        return limits_of((8, 0))
    known = getattr(gpu, "limits", None)
    if isinstance(known, DeviceLimits):
        return known
    return limits_of(gpu.info.compute_capability or (8, 0), gpu.info.multiprocessors)


def require_runnable(spec: Specification, gpu: Gpu) -> tuple[DeviceLimits, tuple[str, ...]]:
    """The board's limits and notes on the session, once it is known that the specification can run there.

    Nothing has been swept or measured then. Raises InputError and WattridgeError.
    """
    if isinstance(gpu, PooledGpu):
        gpu.require_runnable(spec)
        return gpu.limits, ()
    require_here(gpu)
    if spec.refused:
        raise InputError(spec.refused, str(spec.path), "its space can be looked at, and recordings of it replayed")
    if spec.command is not None:
        from ..runner.command import not_its_own
        from ..workloads.command import Command

        Command(spec)
        if gpu.clock.speed == math.inf:
            raise InputError("a program takes real time", gpu.info.label, "choose --speed 1")
        said = not_its_own(gpu.info.source)
        return limits_on(gpu), (*((said,) if said else ()), *programs_of(spec))
    if spec.service is not None:
        return limits_on(gpu), _service_notes(spec, gpu)
    if gpu.info.real:
        from ..runner.languages import require_language

        limits = limits_on(gpu)
        require_language(spec, gpu, limits)
        return limits, (*((NO_ENERGY,) if gpu.info.source == "unmetered" else ()), *programs_of(spec))
    from ..workloads.profiled import ProfiledKernel

    limits = require_launching(gpu).limits
    ProfiledKernel.of(spec, limits)
    return limits, ()


def runner_on(
    spec: Specification,
    gpu: Gpu,
    space: SearchSpace,
    guard: DeviceGuard | None,
    condition: Condition | None = None,
) -> Callable[[], Runner]:
    """What makes the runner of a specification that `require_runnable` let pass.

    Raises WattridgeError where the first configuration cannot be prepared.
    """
    if isinstance(gpu, PooledGpu):
        return _pool_runner_on(spec, gpu, space, condition)
    from ...sensors.simulated.profiles import LaunchRefused
    from ..runner.simulated import SimulatedRunner
    from ..workloads.profiled import ProfiledKernel

    outer = guard if guard is not None else DeviceGuard(gpu)
    if spec.command is not None:
        from ..runner.command import CommandRunner

        return lambda: CommandRunner(gpu, spec, space, outer.nested("session"))
    if spec.service is not None:
        return _service_runner(spec, gpu, space, outer)
    if gpu.info.real:
        from ..runner.languages import open_runner

        return lambda: open_runner(spec, gpu, space, outer.nested("session"), condition)
    board = require_launching(gpu)
    with suppress(LaunchRefused):  # what no configuration can do fails now; a refused launch is a result later
        ProfiledKernel.of(spec, board.limits).prepare(space.configuration(0))
    return lambda: SimulatedRunner(board, spec, space, outer.nested("session"), condition)


def _pool_runner_on(
    spec: Specification, gpu: PooledGpu, space: SearchSpace, condition: Condition | None
) -> Callable[[], Runner]:
    """What makes the runner over the boards of a pool. Raises as `bundle_of`."""
    from ..runner.pool.messages import bundle_of
    from ..runner.pool.runner import PoolRunner

    bundle, words = bundle_of(spec), condition.option if condition is not None else ""
    source, reports = gpu.info.source, gpu.reports

    return lambda: PoolRunner(
        gpu.pool,
        gpu.model,
        source,
        space,
        bundle,
        repeats=spec.repeats,
        condition=words,
        on_remark=reports.remark,
        on_status=reports.status,
    )


def _service_notes(spec: Specification, gpu: Gpu) -> tuple[str, ...]:
    """What to know of a service before it is started. Raises InputError where it cannot be asked here."""
    from ..runner.command import not_its_own
    from ..workloads.service import Service

    modelled = _models_services(gpu)
    service = Service(spec, modelled=modelled is not None)
    said: list[str] = []
    if modelled is not None:
        said.append(f"no server is run: {modelled.service_assumptions}")
    else:
        if gpu.clock.speed != 1:
            if gpu.info.source != "simulated":
                raise InputError("a server takes real time", gpu.info.label, "choose --speed 1")
            what = "this simulated GPU has no model of a service, and a real server takes real time"
            remedy = "add --speed 1, or choose one that has a model: --gpu simulated:rtx5090"
            raise InputError(what, gpu.info.label, remedy)
        said += [line for line in (not_its_own(gpu.info.source, "a service"), *programs_of(spec)) if line]
    if service.spec.boards:
        if modelled is not None:
            what = "a service that is modelled runs on one board"
            raise InputError(what, f"{spec.path}: service.boards", "leave the other boards out")
        said.append("the power of all its boards adds up, and they are set and put back together")
    if names := service.argument_names:
        said.append(f"a change of {', '.join(names)} starts the server again; the others do not")
    return tuple(said)


def _service_runner(spec: Specification, gpu: Gpu, space: SearchSpace, guard: DeviceGuard) -> Callable[[], Runner]:
    from ..runner.service import ServiceRunner
    from ..runner.service_here import ServiceHere
    from ..runner.service_modelled import ServiceModelled
    from ..workloads.service import Service

    def make() -> Runner:
        modelled = _models_services(gpu)
        service = Service(spec, modelled=modelled is not None)
        if modelled is not None:
            own = guard.nested("session")
            return ServiceRunner(gpu, spec, space, own, service, ServiceModelled(modelled, service))
        here = ServiceHere(gpu, service)
        return ServiceRunner(gpu, spec, space, _guards(guard, here.others, space), service, here)

    return make


def _guards(guard: DeviceGuard, others: Sequence[Gpu], space: SearchSpace) -> DeviceGuard | SeveralBoards:
    """What sets the boards of a service; the rights for the others are obtained now. Raises WattridgeError."""
    from ..control.guard import SeveralBoards

    own = guard.nested("session")
    if not others or not setting_names(space):
        return own
    together = SeveralBoards(own, [guard.beside(other) for other in others])
    try:
        together.open()
    except WattridgeError:
        together.restore()
        raise
    return together


def _models_services(gpu: Gpu) -> ModelledBoard | None:
    """The board, where it answers requests by a model of its own."""
    return cast("ModelledBoard", gpu) if isinstance(gpu, ServesLoad) and gpu.service_assumptions else None


def allowed_settings(
    wanted: Mapping[str, SettingValues], gpu: Gpu, guard: DeviceGuard
) -> tuple[dict[str, SettingValues], tuple[str, ...]]:
    """The settings that may be made on this board, the rights for them obtained, and notes on the others.

    Raises WattridgeError, and InputError for clocks that a pool would have to sweep first.
    """
    if not wanted or gpu.info.source == "recorded":
        return dict(wanted), ()
    if isinstance(gpu, PooledGpu):
        if "ridge" in wanted.values():
            remedy = "give graphics_clock_mhz as a list or as { points = n }"
            raise InputError("a pool sweeps no clocks before a session", "graphics_clock_mhz = 'ridge'", remedy)
        fixed = {name: reason for name in wanted if (reason := gpu.why_not(name))}
        return {name: values for name, values in wanted.items() if name not in fixed}, _as_they_are(fixed)
    if not guard.allowed:
        return {}, (f"{', '.join(wanted)} stay as they are: {guard.why_forbidden}",)
    notes = guard.open() if gpu.info.live else ()
    refused = {name: why for name in wanted if (why := guard.why_not(name))}
    return {name: values for name, values in wanted.items() if name not in refused}, (*notes, *_as_they_are(refused))


def require_settings(names: Sequence[str], gpu: Gpu, guard: DeviceGuard | None) -> None:
    """Obtain the rights for settings that a session needs: it fails now rather than at its first measurement.

    Raises WattridgeError.
    """
    if isinstance(gpu, PooledGpu):
        gpu.require_settings(names)
    elif names and gpu.info.live:
        (guard or DeviceGuard(gpu)).open()


def reports_of(gpu: Gpu) -> BoardReports | None:
    """Where the boards of a pool report what they do; None of one board."""
    return gpu.reports if isinstance(gpu, PooledGpu) else None


def _as_they_are(refused: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name} stays as it is: {why}" for name, why in refused.items())


def model_range(
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
