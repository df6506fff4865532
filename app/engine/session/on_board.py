"""`OneBoard`: a board that specifications are planned for and measured on: its limits, rights, clocks and runner."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from threading import Event
from typing import TYPE_CHECKING, cast

from ...base.errors import InputError, WattridgeError
from ...sensors.gpu import Gpu
from ...sensors.limits import DeviceLimits, limits_of
from ...sensors.service import ServesLoad
from ...sensors.unmetered import NO_ENERGY
from ..control.guard import DeviceGuard
from ..metering.external_meters import Beside, MeterChoice, put_beside
from ..metering.launching import require_here, require_launching
from ..models.clock_fits import fit_of_sweep
from ..results.measurement import Configuration
from ..runner.base import Runner, setting_names
from ..runner.boards import Report, TunedBoards, as_they_are, no_report
from ..space.device_settings import SettingValues
from ..space.search_space import SearchSpace
from ..specification.model import Specification, programs_of
from ..specification.plan import SessionPlan

if TYPE_CHECKING:
    from ..control.guard import SeveralBoards
    from ..runner.service_modelled import ModelledBoard


def limits_on(gpu: Gpu | None) -> DeviceLimits:
    """The limits of a board, else of compute capability 8.0."""
    if gpu is None:
        return limits_of((8, 0))
    limits = getattr(gpu, "limits", None)
    if isinstance(limits, DeviceLimits):
        return limits
    return limits_of(gpu.info.compute_capability or (8, 0), gpu.info.multiprocessors)


def boards_of(gpu: Gpu | TunedBoards, guard: DeviceGuard | None = None) -> TunedBoards:
    """A board with its guard, to plan for; several boards that are one already, as they are."""
    return gpu if isinstance(gpu, TunedBoards) else OneBoard(gpu, guard)


class OneBoard(TunedBoards):
    """A board of this machine, or of another one by ssh, with its guard."""

    def __init__(self, gpu: Gpu, guard: DeviceGuard | None = None) -> None:
        """Without a `guard` only a simulated board is set."""
        self.gpu = gpu
        self.guard = guard if guard is not None else DeviceGuard(gpu)

    def require_runnable(self, spec: Specification) -> tuple[DeviceLimits, tuple[str, ...]]:
        gpu = self.gpu
        require_here(gpu)
        if spec.refused:
            raise InputError(spec.refused, str(spec.path), "its space can be looked at, and recordings of it replayed")
        if spec.command is not None:
            from ..runner.command import not_its_own
            from ..workloads.command import Command

            Command(spec)
            if gpu.clock.speed == math.inf:
                raise InputError("a program takes real time", gpu.info.label, "choose --speed 1")
            notes = (not_its_own(gpu.info.source), *programs_of(spec))
            return limits_on(gpu), tuple(filter(None, notes))
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

    def allowed_settings(self, wanted: Mapping[str, SettingValues]) -> tuple[dict[str, SettingValues], tuple[str, ...]]:
        gpu, guard = self.gpu, self.guard
        if not wanted or gpu.info.source == "recorded":
            return dict(wanted), ()
        if not guard.allowed:
            return {}, (f"{', '.join(wanted)} stay as they are: {guard.why_forbidden}",)
        notes = guard.open() if gpu.info.live else ()
        guard.require_unlocked(wanted)
        refused = {name: why for name in wanted if (why := guard.why_not(name))}
        return {name: values for name, values in wanted.items() if name not in refused}, (*notes, *as_they_are(refused))

    def offers(self, spec: Specification) -> tuple[Sequence[Configuration], str]:
        source = self.gpu.info.source
        if spec.operator is None or source not in ("nvml", "simulated"):
            return (), ""
        from ..runner.cuda.offers import modelled_offers, offers_on

        if source == "simulated":
            if self.gpu.info.name.upper().startswith("AMD"):
                return (), ""
            return modelled_offers(spec.operator, limits_on(self.gpu)), ""
        return offers_on(self.gpu, spec.operator)

    def model_range(self, on_progress: Callable[[int, int], None] | None, stop: Event | None) -> tuple[float, float]:
        fit, _ = fit_of_sweep(self.gpu, on_progress=on_progress, stop=stop, guard=self.guard)
        if fit.range_mhz is None:
            raise WattridgeError(
                f"the model of the clocks is not identifiable: {'; '.join(fit.reasons)}",
                self.gpu.info.label,
                "give graphics_clock_mhz as a list or as { points = n }",
            )
        return fit.range_mhz

    def require_settings(self, names: Sequence[str]) -> None:
        if names and self.gpu.info.live:
            self.guard.open()
            self.guard.require_unlocked(names)

    def require_space(self, spec: Specification, space: SearchSpace) -> None:
        if self.gpu.info.real or spec.kernel is None:
            return
        from ...sensors.simulated.profiles import LaunchRefused
        from ..workloads.profiled import ProfiledKernel

        with suppress(LaunchRefused):  # a kernel that can never run fails now; a refused launch is a result later
            ProfiledKernel.of(spec, require_launching(self.gpu).limits).prepare(space.configuration(0))

    def beside(self, meters: MeterChoice) -> AbstractContextManager[Beside | None]:
        return put_beside(self.gpu, meters)

    def runner(self, plan: SessionPlan, report: Report = no_report) -> Runner:
        spec, gpu = plan.specification, self.gpu
        assert spec is not None, "a board measures specifications"
        if spec.service is not None:
            return _service_runner(spec, gpu, plan.space, self.guard)
        guard = self.guard.nested("session")
        if spec.command is not None:
            from ..runner.command import CommandRunner

            return CommandRunner(gpu, spec, plan.space, guard)
        if gpu.info.real:
            from ..runner.languages import kernel_runner

            return kernel_runner(spec, gpu, plan.space, guard, plan.condition)
        from ..runner.simulated import SimulatedRunner

        return SimulatedRunner(require_launching(gpu), spec, plan.space, guard, plan.condition)


def _service_notes(spec: Specification, gpu: Gpu) -> tuple[str, ...]:
    """Notes on a service before it is started. Raises InputError if it cannot run here."""
    from ..runner.command import not_its_own
    from ..workloads.service import Service

    modelled = _models_services(gpu)
    service = Service(spec, modelled=modelled is not None)
    notes: list[str] = []
    if modelled is not None:
        notes.append(f"no server is run: {modelled.service_assumptions}")
    else:
        if gpu.clock.speed != 1:
            if gpu.info.source != "simulated":
                raise InputError("a server takes real time", gpu.info.label, "choose --speed 1")
            what = "this simulated GPU has no model of a service, and a real server takes real time"
            remedy = "add --speed 1, or choose one that has a model: --gpu simulated:rtx5090"
            raise InputError(what, gpu.info.label, remedy)
        notes += [line for line in (not_its_own(gpu.info.source, "a service"), *programs_of(spec)) if line]
    if service.spec.boards:
        if modelled is not None:
            what = "a service that is modelled runs on one board"
            raise InputError(what, f"{spec.path}: service.boards", "leave the other boards out")
        notes.append("the power of all its boards adds up, and they are set and put back together")
    if names := service.argument_names:
        notes.append(f"a change of {', '.join(names)} starts the server again; the others do not")
    return tuple(notes)


def _service_runner(spec: Specification, gpu: Gpu, space: SearchSpace, guard: DeviceGuard) -> Runner:
    from ..runner.service import ServiceRunner
    from ..runner.service_here import ServiceHere
    from ..runner.service_modelled import ServiceModelled
    from ..workloads.service import Service

    modelled = _models_services(gpu)
    service = Service(spec, modelled=modelled is not None)
    if modelled is not None:
        return ServiceRunner(gpu, spec, space, guard.nested("session"), service, ServiceModelled(modelled, service))
    here = ServiceHere(gpu, service)
    return ServiceRunner(gpu, spec, space, _guards(guard, here.others, space), service, here)


def _guards(guard: DeviceGuard, others: Sequence[Gpu], space: SearchSpace) -> DeviceGuard | SeveralBoards:
    """The guard of a service's boards; the rights for the others are obtained now. Raises WattridgeError."""
    from ..control.guard import SeveralBoards

    first = guard.nested("session")
    if not others or not setting_names(space):
        return first
    together = SeveralBoards(first, [guard.beside(other) for other in others])
    try:
        together.open(setting_names(space))
    except WattridgeError:
        together.restore()
        raise
    return together


def _models_services(gpu: Gpu) -> ModelledBoard | None:
    """The board, where it answers requests by a model of its own."""
    return cast("ModelledBoard", gpu) if isinstance(gpu, ServesLoad) and gpu.service_assumptions else None
