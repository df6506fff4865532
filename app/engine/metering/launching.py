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
        """Start launching; returns at once. Work under way goes over to the new load.

        Parameters
        ----------
        load : Load
            What to launch, back to back until `end`.
        """
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
    """Require that a board is in this machine: another machine has to start what runs on its boards.

    Parameters
    ----------
    gpu : Gpu
        The board.

    Raises
    ------
    WattridgeError
        Where the board is in another machine.
    """
    if gpu.info.host:
        remedy = f"start it there: {parse_address(gpu.info.host).login} wattridge ... --gpu {gpu.info.index}"
        raise WattridgeError("a board of another machine can only be watched and set from here", gpu.info.label, remedy)


def require_launching(gpu: Gpu) -> LaunchingGpu:
    """Return the board, typed as one that launches.

    Parameters
    ----------
    gpu : Gpu
        The board.

    Returns
    -------
    LaunchingGpu
        The same object.

    Raises
    ------
    WattridgeError
        Where the board cannot launch, or is in another machine; the error names an alternative.
    """
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
    """Return the execution of the launches since `begin` or the last lap, while launches of the load go on.

    Parameters
    ----------
    gpu : LaunchingGpu
        The board. One that cannot time laps ends its launches and begins again.
    load : Load
        The load that it launches.

    Returns
    -------
    Execution
        How these launches went.
    """
    lap_of_board: Callable[[], Execution] | None = getattr(gpu, "lap", None)
    if lap_of_board is not None:
        return lap_of_board()
    execution = gpu.end()
    gpu.begin(load)
    return execution


def few(gpu: LaunchingGpu, load: Load, seconds: float) -> Execution:
    """Run a few launches of a load, after a few that do not count.

    Parameters
    ----------
    gpu : LaunchingGpu
        The board. One that cannot run a few launches alone begins, and ends after that time; all of them count.
    load : Load
        The load.
    seconds : float
        About how long the launches take, s on the board's clock; there is at least one.

    Returns
    -------
    Execution
        How the launches that count went.
    """
    few_of_board: Callable[[Load, float], Execution] | None = getattr(gpu, "few", None)
    if few_of_board is not None:
        return few_of_board(load, seconds)
    gpu.begin(load)
    gpu.clock.wait(seconds)
    return gpu.end()
