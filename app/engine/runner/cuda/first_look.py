"""The look at a board's power sensor that its first session begins with, while the first kernels are compiled."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import closing
from typing import Final

from ....base.errors import WattridgeError
from ...metering.characterisation.characterise import wave_loads
from ...metering.characterisation.quick_look import QUICK_S, Estimate, quick_look
from ...metering.characterisation.store import one_look, save_characterisation, stored_characterisation
from ..base import OnPreparation, PreparationFailed
from ..kernels.compiler import Compiled
from .gpu import CudaGpu
from .square_wave import WaveGpu

LOOKING: Final = "a quick look at the power sensor, once for this GPU and driver"
STARTING: Final = "compiling the load of a quick look at the power sensor"
WAITING: Final = "another process looks at the power sensor"
STARTING_S: Final = 12.0  # a compiler and a CUDA context, at most
REPORT_S: Final = 0.25
_LOOK_S: Final = 0.05


def look_once(gpu: CudaGpu, load: Future[Compiled], stop: threading.Event, on_progress: OnPreparation) -> None:
    """A quick look at the board, unless one that was not broken off is kept; one that is stopped keeps what it has.

    `load` is the kernel of the square wave, which may still be on its way. Raises PreparationFailed where the look
    cannot be made: measurements use defaults then.
    """
    if _looked(gpu):
        return
    report = _now_and_then(on_progress)
    try:
        with one_look(gpu.info) as ours:
            if ours and not _looked(gpu):
                estimate = Estimate(gpu.clock, {STARTING: STARTING_S, LOOKING: QUICK_S}, report)
                _look(gpu, load, estimate, stop)
                return
        _await_another(gpu, Estimate(gpu.clock, {WAITING: STARTING_S + QUICK_S}, report), stop)
    except (WattridgeError, OSError) as error:
        what = f"the power sensor could not be looked at, and its defaults are used: {error}"
        raise PreparationFailed(what, remedy="to try again: wattridge characterise") from error


def _look(gpu: CudaGpu, load: Future[Compiled], estimate: Estimate, stop: threading.Event) -> None:
    estimate.begin(STARTING)
    image = None
    while image is None:
        try:
            image = load.result(_LOOK_S).image
        except NotYet:
            estimate.report()
        except CancelledError:
            return
        if stop.is_set():
            return
    with closing(WaveGpu(gpu.sensors, backend=gpu.backend, image=image)) as board:
        gpu.processes.await_opened()
        estimate.begin(LOOKING)
        characterisation = quick_look(board, wave_loads(board), estimate=estimate, stop=stop)
    if characterisation is not None:
        save_characterisation(characterisation)
    if not stop.is_set():
        estimate.end()


def _await_another(gpu: CudaGpu, estimate: Estimate, stop: threading.Event) -> None:
    """Until the process that looks has kept what it found. Raises WattridgeError if it takes too long."""
    estimate.begin(WAITING)
    while not _looked(gpu):
        estimate.report()
        if estimate.seconds > STARTING_S + QUICK_S:
            raise WattridgeError("another process looks at it and does not end", gpu.info.label, "end that first")
        if gpu.clock.wait(_LOOK_S, stop):
            return
    estimate.end()


def _looked(gpu: CudaGpu) -> bool:
    characterisation = stored_characterisation(gpu.info)
    return characterisation is not None and bool(characterisation.parts)


def _now_and_then(on_progress: OnPreparation) -> OnPreparation:
    """Not at every poll: when something else is done, and else every quarter of a second."""
    last: tuple[str, float] = ("", 0.0)

    def report(what: str, done_s: float, total_s: float) -> None:
        nonlocal last
        if what != last[0] or done_s - last[1] >= REPORT_S or done_s == total_s:
            last = what, done_s
            on_progress(what, done_s, total_s)

    return report
