"""CUDA on a board of the stand-in: launches keep the board busy, and take as long as its clock makes them."""

from __future__ import annotations

import os
from pathlib import Path

from boards import attached
from fake_cuda import FakeBackend

from app.sensors.clock import HostClock

LOCKED_SPEED = 343.9 / 384.0  # of frames, with a locked memory clock: NVIDIA/open-gpu-kernel-modules#1266
_BLACKWELL = 12  # compute capability of the boards that have that


def open_backend(device: str) -> StandInBackend:
    return StandInBackend()


class StandInBackend(FakeBackend):
    """The board is the one that the runner process may see, in the folder where the driver's library lies."""

    def __init__(self) -> None:
        super().__init__(HostClock())
        state, self._mapped = attached(Path(os.environ["LD_LIBRARY_PATH"]))
        uuid = os.environ["CUDA_VISIBLE_DEVICES"].encode()
        self._board = next(board for board in state.boards if board.uuid == uuid)

    def queue(self, seconds: float, power_w: float) -> None:
        board, now_ns = self._board, self.clock.now_ns()
        settled = now_ns - board.moved_ns >= board.settle_us * 1000
        mhz = board.to_mhz if settled else board.from_mhz
        if not board.lock[1] and mhz <= board.idle_mhz:  # a resting clock rises within a launch
            mhz = board.application[1] if board.has_application_clocks else board.graphics_max
        locked = board.major >= _BLACKWELL and board.memory_lock[1]
        super().queue(seconds * board.graphics_max / max(1, mhz) / (LOCKED_SPEED if locked else 1.0), power_w)
        board.busy_until_ns = max(board.busy_until_ns, self.busy_until_ns)
