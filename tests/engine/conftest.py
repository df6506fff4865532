"""Fixtures of several files."""

from __future__ import annotations

import pytest
from virtual_cuda import ProcessOfNone, VirtualBoard


@pytest.fixture
def virtual_board(monkeypatch: pytest.MonkeyPatch) -> VirtualBoard:
    """The sensors of a board whose runner processes live on its own clock."""
    board = VirtualBoard()
    monkeypatch.setattr("app.engine.runner.cuda.gpu.RunnerProcess", lambda *_: ProcessOfNone(board))
    return board
