"""The first session on a board: its power sensor is characterised, once for the board and its driver."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Final

from ....errors import WattridgeError
from ...metering.characterisation.characterise import characterise, wave_loads
from ...metering.characterisation.store import save_characterisation, stored_characterisation
from ..base import OnPreparation, PreparationFailed
from .gpu import CudaGpu
from .square_wave import WaveGpu
from .toolchain import Toolchain

WORDS: Final = "characterising the power sensor, once for this board and driver"
_TELL_S: Final = 0.5


def look_once(gpu: CudaGpu, toolchain: Toolchain, stop: threading.Event, on_progress: OnPreparation) -> None:
    """Characterise the board, in a process beside its runner's, unless that is kept already; nothing when stopped.

    It takes a minute or two. Raises PreparationFailed where it cannot be done: measurements use defaults then.
    """
    if stored_characterisation(gpu.info) is not None:
        return
    told_s = -_TELL_S

    def tell(done_s: float, total_s: float) -> None:
        nonlocal told_s
        if done_s - told_s >= _TELL_S:
            told_s = done_s
            on_progress(WORDS, done_s, total_s)

    tell(0.0, 1.0)
    try:
        with closing(WaveGpu(gpu.sensors, backend=gpu.backend, toolchain=toolchain)) as board:
            found = characterise(board, wave_loads(board), on_progress=tell, stop=stop)
        if found is not None:
            save_characterisation(found)
    except (WattridgeError, OSError) as error:
        what = f"the power sensor could not be characterised, and its defaults are used: {error}"
        raise PreparationFailed(what, remedy="to try again: wattridge characterise") from error
