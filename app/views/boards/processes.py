"""The processes on the boards that are watched."""

from __future__ import annotations

from collections.abc import Sequence

from ...sensors.errors import SensorError
from ...sensors.gpu import GpuProcess, ListsProcesses
from ..watched_board import WatchedBoard

Found = list[tuple[WatchedBoard, list[GpuProcess], str]]


def processes_of(boards: Sequence[WatchedBoard]) -> Found:
    """(board, its processes, why they are unknown) of each board; asks the driver, a few ms a board."""
    found: Found = []
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
