"""The end of a session is announced where the user looks elsewhere: by the desktop, and as a notice."""

from __future__ import annotations

import pytest
from fixtures.lab import Lab
from PySide6.QtWidgets import QSystemTrayIcon, QWidget
from pytestqt.qtbot import QtBot

from app.engine.results.state import Progress, SessionState
from app.engine.session.events import MeasurementsAdded, SessionChanged
from app.views.shell.notices import Notices, Severity
from app.views.shell.notifications import Notifications


def progress(state: SessionState) -> Progress:
    return Progress(7, state, 60, 0, 60, 12.4, 4.8, None, None, None)


class Room:
    """A window that is active or not, a desktop with a tray or without, and what each of them showed."""

    def __init__(self, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lab, self.window = Lab(), QWidget()
        qtbot.addWidget(self.window)
        self.active, self.tray = False, True
        self.in_tray: list[str] = []
        monkeypatch.setattr(self.window, "isActiveWindow", lambda: self.active)
        monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: self.tray)
        monkeypatch.setattr(QSystemTrayIcon, "showMessage", lambda _, title, text, *more: self.in_tray.append(text))
        self.notices = Notices(lambda: self.active, self.window)
        self.notifications = Notifications(self.window, self.notices)
        self.notifications.follow(self.lab.bridge)

    def end_a_session(self) -> None:
        bridge = self.lab.bridge
        bridge.deliver(MeasurementsAdded(7, 60, progress(SessionState.RUNNING)))
        bridge.deliver(SessionChanged(progress(SessionState.PAUSED)))
        bridge.deliver(SessionChanged(progress(SessionState.DONE)))


@pytest.fixture
def room(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Room:
    return Room(qtbot, monkeypatch)


LINE = "Session 7 has ended: 60 configurations in 12.4 s"


@pytest.mark.parametrize(
    ("active", "tray", "in_tray"), [(False, True, [LINE]), (False, False, []), (True, True, []), (True, False, [])]
)
def test_the_end_of_a_session(room: Room, active: bool, tray: bool, in_tray: list[str]) -> None:
    room.active, room.tray = active, tray
    room.end_a_session()
    assert room.in_tray == in_tray
    assert [(notice.text, notice.severity) for notice in room.notices.open] == [(LINE, Severity.NEWS)]


def test_a_session_that_is_only_opened_is_not_announced(room: Room) -> None:
    room.lab.bridge.deliver(SessionChanged(progress(SessionState.DONE)))
    assert (room.in_tray, list(room.notices.all)) == ([], [])
