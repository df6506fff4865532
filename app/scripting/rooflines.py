"""Rooflines by source: measured on a board, with a session in the store for each precision, or on file."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.processes import say
from ..engine.control.guard import DeviceGuard
from ..engine.models.roofline.points import (
    PRECISIONS,
    Sweep,
    published_sweeps,
    recorded_sweeps,
    sweep_of_session,
    sweeps_of_file,
    sweeps_of_store,
    sweeps_on_file,
)
from ..engine.session.named import recording_path, session_number
from ..engine.session.planning import plan_roofline
from ..engine.store.database import Store
from ..sensors.gpu import Gpu
from .session_progress import watch_session


def measured_sweeps(
    gpu: Gpu, guard: DeviceGuard, precisions: Sequence[str] = (), clocks_mhz: Sequence[float] = (), *, quiet: bool
) -> list[Sweep]:
    """Measure the microbenchmarks of each precision.

    Parameters
    ----------
    gpu : Gpu
        The board.
    guard : DeviceGuard
        Sets it.
    precisions : sequence of str, optional
        Such as 'fp32' and 'fp16_tensor'; by default those that every board has.
    clocks_mhz : sequence of float, optional
        Graphics clocks to be locked one by one, in MHz; none for the board's own.
    quiet : bool
        Show no progress bar.

    Returns
    -------
    list of Sweep
        One for each precision.
    """
    sweeps = []
    with Store() as store:
        for precision in precisions or PRECISIONS:
            plan = plan_roofline(gpu, precision, guard, clocks_mhz)
            done = watch_session(plan, store, quiet=quiet)
            if not quiet:
                say(f"{precision}: session {done.session}, {len(done.table)} points")
            sweeps.append(
                sweep_of_session(
                    done.table, gpu=plan.gpu, title=plan.title, source=plan.source, session=done.session, board=gpu.info
                )
            )
    return sweeps


def sweeps_named(source: str | None) -> list[Sweep]:
    """Find rooflines that were measured before.

    Parameters
    ----------
    source : str or None
        A file, a recording that comes along, or a session's number. None for every board whose roofline was measured
        here, and the recorded and published ones of the program.

    Returns
    -------
    list of Sweep
        Those of a file may be of several boards.
    """
    session = None if source is None else session_number(source)
    if source is not None and session is None:
        return sweeps_of_file(recording_path(source))
    with Store() as store:
        if session is not None:
            return sweeps_of_store(store, session)
        return [*sweeps_on_file(store), *recorded_sweeps(), *published_sweeps()]
