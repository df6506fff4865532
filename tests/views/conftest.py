"""Garbage is collected between the tests of the window, as `Collector` does between two turns of Qt's loop."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_garbage_collected_inside_qt() -> Iterator[None]:
    """Collecting while Qt holds a lock destroys widgets that want it: the process stands still for ever."""
    gc.disable()
    yield
    gc.collect()
    gc.enable()
