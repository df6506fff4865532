"""Boards watched at a glance, beside the one in full: read ten times a second, ten minutes kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...sensors.errors import SensorError
from ...sensors.gpu import Gpu, GpuProcess, ListsProcesses
from ...sensors.sampler import Sampler
from ...sensors.select import gpu_selectors, open_gpu
from ...sensors.trace import Trace

RATE_HZ = 10.0
KEPT_S = 600.0


@dataclass(frozen=True, slots=True)
class WatchedBoard:
    """One board at a glance. `selector` opens it; `own` is the one that the window shows in full."""

    selector: str
    gpu: Gpu
    trace: Trace
    sampler: Sampler | None = None  # none of ours for the window's own board

    @property
    def own(self) -> bool:
        return self.sampler is None

    def stop(self) -> None:
        """Read no more; returns at once."""
        if self.sampler is not None:
            self.sampler.stop()

    def close(self) -> None:
        """Stop watching and let go of the board; the window's own is left alone."""
        if self.sampler is not None:
            self.sampler.stop()
            self.sampler.join()
            self.gpu.close()


def watch(selector: str, *, speed: float = 1.0) -> WatchedBoard:
    """Open a board and begin to read it. Raises InputError and SensorError; may take long."""
    gpu = open_gpu(selector, speed=1.0 if is_real(selector) else speed, voltage=False)
    trace = Trace(gpu.channels, rate_hz=RATE_HZ, span_s=KEPT_S)
    sampler = Sampler(gpu, trace, interval_s=1.0 / RATE_HZ)
    sampler.start()
    return WatchedBoard(selector, gpu, trace, sampler)


def other_boards(uuid: str) -> list[str]:
    """The UUIDs of the real boards beside one; none where no driver answers."""
    return [selector for selector, _ in gpu_selectors() if is_real(selector) and selector != uuid]


def processes_of(boards: Sequence[WatchedBoard]) -> list[tuple[WatchedBoard, list[GpuProcess], str]]:
    """(board, its processes, why they are unknown) of each board; asks the driver, a few ms a board."""
    found: list[tuple[WatchedBoard, list[GpuProcess], str]] = []
    for board in boards:
        gpu = board.gpu
        if not isinstance(gpu, ListsProcesses):
            found.append((board, [], "a recording holds no processes"))
            continue
        try:
            found.append((board, list(gpu.processes()), ""))
        except SensorError as error:
            found.append((board, [], error.what))
    return found


def is_real(selector: str) -> bool:
    """Whether a selector names a real board."""
    return not selector.startswith(("simulated:", "recorded:"))
