"""`Facts`: what Home has to find out first, off Qt's thread: sessions, files, boards, and where the example can run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import WattridgeError
from ...sensors.gpu import Gpu
from ...sensors.select import DEFAULT_TWIN, gpu_selectors
from ..settings import Settings
from ..watched_board import is_real

if TYPE_CHECKING:
    from ...engine.store.database import Store
    from ...engine.store.record import SessionRecord

SESSIONS_SHOWN = 13  # the last one, and those in the grid
FILES_SHOWN = 4
_SIMULATED = " (simulated)"


@dataclass(frozen=True, slots=True)
class Example:
    """Where the example is tuned."""

    selector: str | None  # of the simulated board that is shown first; None: on the board that is shown already
    why: str = ""  # not on the board that is shown


@dataclass(frozen=True, slots=True)
class Facts:
    """Those of one moment."""

    sessions: list[SessionRecord]  # newest first
    files: list[Path]  # opened last, newest first
    real: list[str]  # names of the real boards
    example: Example


def find_facts(store: Store, gpu: Gpu) -> Facts:
    """`gpu` is the board that is shown. Raises WattridgeError where the store cannot be read."""
    selectors = gpu_selectors()
    real = [label.partition(": ")[2] for selector, label in selectors if is_real(selector)]
    return Facts(store.sessions(SESSIONS_SHOWN), Settings().recent[:FILES_SHOWN], real, example_on(gpu, selectors))


def example_on(gpu: Gpu, selectors: list[tuple[str, str]]) -> Example:
    """On a simulated board, and on a real one where CUDA kernels can run; else on the simulated board of that name."""
    if gpu.info.source == "simulated":
        return Example(None)
    if gpu.info.source == "nvml":
        from ...engine.runner.cuda.open import require_cuda  # imported late: few windows need it

        try:
            require_cuda(gpu)
        except WattridgeError as error:
            why = error.what
        else:
            return Example(None)
    elif gpu.info.source == "amd":
        why = "kernels on AMD boards were not yet tried on a real one"
    else:
        why = "a recording runs no kernels" if gpu.info.source == "recorded" else "it runs no CUDA kernels"
    twins = {label.removesuffix(_SIMULATED): selector for selector, label in selectors if label.endswith(_SIMULATED)}
    return Example(twins.get(gpu.info.name, f"simulated:{DEFAULT_TWIN}"), why)
