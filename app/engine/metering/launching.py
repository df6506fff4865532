"""Boards that can launch loads, and the errors for those that cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from ...base.errors import WattridgeError
from ...sensors.gpu import Execution, Gpu, Load
from ...sensors.limits import DeviceLimits
from ...sensors.remote.address import parse_address


@runtime_checkable
class LaunchingGpu(Gpu, Protocol):
    """Launches of a load, back to back, timed by the device's own events."""

    limits: DeviceLimits

    def begin(self, load: Load) -> None:
        """Start launching; returns at once. Work under way goes over to the new load."""
        ...

    def end(self) -> Execution:
        """Stop; returns how the launches since `begin` went."""
        ...


@runtime_checkable
class BringsLoads(Protocol):
    """A board that knows loads of its own to be characterised with (a simulated one takes any)."""

    def wave_loads(self) -> Sequence[Load]:
        """Loads of short launches (milliseconds at most) that differ in power, heaviest first."""
        ...


def require_here(gpu: Gpu) -> None:
    """Raise WattridgeError if the board is in another machine, which has to start what runs on it."""
    if gpu.info.host:
        remedy = f"start it there: {parse_address(gpu.info.host).login} wattridge ... --gpu {gpu.info.index}"
        raise WattridgeError("a board of another machine can only be watched and set from here", gpu.info.label, remedy)


def require_launching(gpu: Gpu) -> LaunchingGpu:
    """Return the board, typed as one that launches. Raises WattridgeError with an alternative where it cannot."""
    require_here(gpu)
    if isinstance(gpu, LaunchingGpu):
        return gpu
    if gpu.info.source == "recorded":
        raise WattridgeError("a recording cannot run kernels", gpu.info.label, "choose --gpu simulated:NAME")
    raise WattridgeError(
        "its sensors alone launch no kernels: a real board needs a CUDA process for that",
        gpu.info.label,
        "with rights to set it: wattridge fit --gpu N --allow-control; without: fit a file of measurements",
    )


def lap(gpu: LaunchingGpu, load: Load) -> Execution:
    """Return the execution of the launches since `begin` or the last lap, while launches of `load` go on."""
    lap_of_board: Callable[[], Execution] | None = getattr(gpu, "lap", None)
    if lap_of_board is not None:
        return lap_of_board()
    execution = gpu.end()
    gpu.begin(load)
    return execution


def few(gpu: LaunchingGpu, load: Load, seconds: float) -> Execution:
    """Return the execution of launches of `load` for about so long, at least one, after a few that do not count."""
    few_of_board: Callable[[Load, float], Execution] | None = getattr(gpu, "few", None)
    if few_of_board is not None:
        return few_of_board(load, seconds)
    gpu.begin(load)
    gpu.clock.wait(seconds)
    return gpu.end()
