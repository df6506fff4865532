"""A window is painted once for what changes, in a turn of its own, and after the layouts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.views.shared.turns import Frames


class Window(QWidget):
    """Notes in `log` when it is painted, and how wide."""

    def __init__(self, name: str, log: list[str]) -> None:
        super().__init__()
        self._name, self._log = name, log

    def paintEvent(self, event: QPaintEvent) -> None:
        self._log.append(f"{self._name} {event.rect().width()}")


class Turns(QObject):
    """Notes each turn of Qt's loop."""

    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(lambda: log.append("turn") if log[-1:] != ["turn"] else None)
        self._timer.start()


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def frames(qtbot: QtBot) -> Frames:
    return Frames()


def shown(qtbot: QtBot, frames: Frames, log: list[str], *names: str) -> list[Any]:
    """Windows that were painted as they came up, and wait for nothing."""
    windows = [Window(name, log) for name in names]
    for window in windows:
        qtbot.addWidget(window)
        frames.follow(window)
        window.resize(300, 200)
        window.show()
    qtbot.waitUntil(lambda: {f"{name} 300" for name in names} <= set(log), timeout=5_000)
    qtbot.wait(50)
    log.clear()
    return windows


def test_windows_are_painted_in_turns_of_their_own(qtbot: QtBot, frames: Frames, log: list[str]) -> None:
    windows = shown(qtbot, frames, log, "a", "b", "c")
    turns = Turns(log)
    for window in windows:
        window.update()
    qtbot.waitUntil(lambda: {"a 300", "b 300", "c 300"} <= set(log), timeout=5_000)
    turns.deleteLater()
    painted = [each != "turn" for each in log]
    assert not any(this and following for this, following in pairwise(painted)), "two windows in one turn"


def test_what_asks_for_a_picture_at_once_has_it_after_the_rest_of_the_turn(
    qtbot: QtBot, frames: Frames, log: list[str]
) -> None:
    """As every plot does, by sending what was posted to its window: the layouts come later."""
    (window,) = shown(qtbot, frames, log, "a")
    for _ in range(3):
        window.update()
        window.repaint(0, 0, 10, 10)
        QCoreApplication.sendPostedEvents(window, QEvent.Type.UpdateRequest)
    assert log == []
    window.resize(320, 200)
    qtbot.waitUntil(lambda: bool(log), timeout=5_000)
    qtbot.wait(30)
    assert log == ["a 320"], "once, all of it"


def test_a_window_that_went_is_not_painted(qtbot: QtBot, frames: Frames, log: list[str]) -> None:
    going, staying = Window("going", log), Window("staying", log)
    for window in (going, staying):
        frames.follow(window)
        window.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        window.show()
        window.update()
        QCoreApplication.sendEvent(window, QEvent(QEvent.Type.UpdateRequest))
    shiboken6.delete(going)
    log.clear()
    qtbot.waitUntil(lambda: any("staying" in each for each in log), timeout=5_000)
    assert not any("going" in each for each in log)
    qtbot.addWidget(staying)
