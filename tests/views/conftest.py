"""Garbage is collected between the tests of the window, as `Collector` does between two turns of Qt's loop."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def no_garbage_collected_inside_qt() -> Iterator[None]:
    """Collecting while Qt holds a lock destroys widgets that want it: the process stands still for ever."""
    gc.disable()
    yield
    gc.collect()
    gc.enable()


@pytest.fixture
def open_program(qtbot: Any) -> Iterator[Callable[..., Any]]:
    """`open_program(gpu=None, speed=1.0)`: the program with its window, closed at the test's end."""
    from app.views.shell.app import Program, application
    from app.views.watched_board import watched_gpu

    application()
    opened: list[Any] = []

    def open_it(gpu: Any = None, *, speed: float = 1.0) -> Any:
        opened.append(Program(gpu if gpu is not None else watched_gpu("simulated:a100", speed=speed), speed=speed))
        return opened[-1]

    yield open_it
    for program in opened:
        program.close()
