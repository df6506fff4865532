"""Fixtures of several files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from fixtures.cuda_bench import Bench, SteadySensors
from fixtures.virtual_cuda import ProcessOfNone, VirtualBoard

from app.sensors.gpu import Gpu


@pytest.fixture
def virtual_board(monkeypatch: pytest.MonkeyPatch) -> VirtualBoard:
    """The sensors of a board whose runner processes live on its own clock."""
    board = VirtualBoard()
    monkeypatch.setattr("app.engine.runner.kernels.gpu.RunnerProcess", lambda *_: ProcessOfNone(board))
    return board


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`libraries(pycuda="2026.1")`: these alone are installed that speak to CUDA's driver."""
    monkeypatch.delenv("WATTRIDGE_CUDA", raising=False)

    def install(**releases: str) -> None:
        def version(name: str) -> str:
            try:
                return releases[name.replace("-", "_")]
            except KeyError:
                raise PackageNotFoundError(name) from None

        monkeypatch.setattr("app.engine.runner.cuda.gpu.version", version)

    return install


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[type[Bench]]:
    """Benches in the test's folder, put away after it."""
    made: list[Bench] = []

    class Here(Bench):
        def __init__(
            self, parameters: str, reference: str = "factor * x", sensors: Gpu | None = None, kernel: str = ""
        ) -> None:
            super().__init__(tmp_path, parameters, reference, sensors or SteadySensors(), kernel)
            made.append(self)

    yield Here
    for one in made:
        one.runner.close()
