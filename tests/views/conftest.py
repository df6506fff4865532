"""Garbage is collected between the tests of the window, as `Collector` does between two turns of Qt's loop."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyqtgraph as pg
import pytest
from fixtures.lab import Lab
from PySide6.QtCore import QObject, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication, QTransform
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget


@pytest.fixture(autouse=True)
def no_garbage_collected_inside_qt(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Collecting while Qt holds a lock destroys widgets that want it: the process stands still for ever.

    What the suite loaded stays frozen: a window's `Collector` would thaw all of it, to be walked after each test.
    """
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "unfreeze", lambda: None)
    gc.disable()
    yield
    gc.collect()
    gc.enable()


@pytest.fixture(autouse=True)
def no_key_held_by_another_test() -> None:
    """`QTest.keyClick` leaves its modifier pressed, with which `selectRow` adds a row to those that are selected."""
    if QGuiApplication.instance() is not None:
        QTest.keyClick(QWidget(), Qt.Key.Key_Space)
        assert QGuiApplication.keyboardModifiers() == Qt.KeyboardModifier.NoModifier


@pytest.fixture(autouse=True)
def every_plot_can_be_inverted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No item of ours lies in a view that is scaled to nothing: pyqtgraph 0.14 then does what NumPy 2.5 deprecates.

    An exception there would rise inside of Qt, which is a segmentation fault, so that it is noted here.
    """
    reached: list[str] = []

    def noted(transform: QTransform) -> QTransform:
        reached.extend(traceback.format_stack(limit=12))
        return QTransform()

    monkeypatch.setattr(pg.functions, "_pinv_fallback", noted)
    yield
    assert not reached, "".join(reached[:12])


@pytest.fixture
def lab(qtbot: Any) -> Lab:
    """A context of panels without a board, whose engine the test speaks for."""
    return Lab()


class Desktop(QObject):
    """Stands in for the user's desktop: keeps the files that it is asked to open, and opens none."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[Path] = []

    @Slot(QUrl)
    def open(self, url: QUrl) -> None:
        self.opened.append(Path(url.toLocalFile()))


@pytest.fixture(autouse=True)
def desktop() -> Iterator[Desktop]:
    """No test starts a browser."""
    made = Desktop()
    QDesktopServices.setUrlHandler("file", made, "open")  # type: ignore[call-overload]  # as the stubs do not say
    yield made
    QDesktopServices.unsetUrlHandler("file")


@pytest.fixture
def open_program(qtbot: Any) -> Iterator[Callable[..., Any]]:
    """`open_program(gpu=None, speed=1.0)`: the program with its window, closed at the test's end."""
    from app.views.shared.watched_boards import watched_gpu
    from app.views.shell.app import Program, application

    application()
    opened: list[Any] = []

    def open_it(gpu: Any = None, *, speed: float = 1.0) -> Any:
        opened.append(Program(gpu if gpu is not None else watched_gpu("simulated:a100", speed=speed), speed=speed))
        return opened[-1]

    yield open_it
    for program in opened:
        program.close()
