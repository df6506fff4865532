"""Boards that are not there, for scripts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))

from fixtures.cuda_bench import HERE, SteadySensors
from fixtures.virtual_cuda import ProcessOfNone, VirtualBoard

from app.engine.runner.cuda.gpu import Library
from app.engine.runner.cuda.toolchain import Toolchain


@pytest.fixture
def fake_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are compiled and launched by `fake_cuda`: y = factor * x, and every fault by a define."""
    toolchain = Toolchain((sys.executable, str(HERE / "fake_cuda.py")), "fake 1")
    for module in ("gpu", "language"):
        monkeypatch.setattr(
            f"app.engine.runner.cuda.{module}.find_library", lambda _label: Library("fake", "fake_cuda", "cuda")
        )
    for module in ("toolchain", "language"):
        monkeypatch.setattr(f"app.engine.runner.cuda.{module}.find_toolchain", lambda: toolchain)
    monkeypatch.setattr("app.engine.metering.meter.WARM_STEP_S", 0.02)
    monkeypatch.setattr("app.engine.runner.cuda.language.look_once", lambda *_: None)


@pytest.fixture
def virtual_board(fake_cuda: None, monkeypatch: pytest.MonkeyPatch) -> VirtualBoard:
    """A board whose runner processes live on its own clock, as fast as that can be computed."""
    board = VirtualBoard()
    monkeypatch.setattr("app.engine.runner.kernels.gpu.RunnerProcess", lambda *_: ProcessOfNone(board))
    return board


@pytest.fixture
def steady_board(fake_cuda: None) -> SteadySensors:
    """A board on the host's clock, whose launches run in this process or in a runner process."""
    return SteadySensors()
