"""The past sessions that a menu offers: read off Qt's thread, however long that takes, and newest first."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from app.base.errors import WattridgeError
from app.views.shared.panel import end_all
from app.views.shared.past_sessions import PastSession, PastSessions

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

LINES = (PastSession(2, "Session 2"), PastSession(1, "Session 1 · running", enabled=False))


class SlowStore:
    """Answers when it is let, or fails."""

    def __init__(self) -> None:
        self.let, self.lines, self.broken = threading.Event(), LINES, False
        self.threads: list[threading.Thread] = []

    def read(self) -> Sequence[PastSession]:
        self.threads.append(threading.current_thread())
        self.let.wait(20)
        if self.broken:
            raise WattridgeError("the store is damaged", "sessions.db", "restore it")
        return self.lines


@pytest.fixture
def store() -> SlowStore:
    return SlowStore()


@pytest.fixture
def owner(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    return made


@pytest.fixture
def menu(owner: QWidget) -> QMenu:
    return QMenu(owner)


@pytest.fixture
def past(menu: QMenu, store: SlowStore) -> PastSessions:
    return PastSessions(menu, store.read)


def open_it(menu: QMenu, past: PastSessions) -> None:
    menu.clear()
    menu.addAction("A file …")
    past.add()
    menu.addAction("Something else")


def words(menu: QMenu) -> list[str]:
    return [action.text() for action in menu.actions() if action.isVisible()]


def test_the_menu_opens_while_the_store_is_read(
    menu: QMenu, past: PastSessions, store: SlowStore, qtbot: QtBot
) -> None:
    open_it(menu, past)
    assert words(menu) == ["A file …", "Reading …", "Something else"]
    assert not menu.actions()[1].isEnabled()
    with qtbot.waitSignal(past.listed, timeout=5_000):
        store.let.set()
    assert words(menu) == ["A file …", "Session 2", "Session 1 · running", "Something else"]
    assert [(action.data(), action.isEnabled()) for action in menu.actions()[1:3]] == [(2, True), (1, False)]
    assert store.threads != []
    assert threading.main_thread() not in store.threads
    end_all(past)


def test_what_is_chosen_is_the_session(menu: QMenu, past: PastSessions, store: SlowStore, qtbot: QtBot) -> None:
    store.let.set()
    chosen: list[QAction] = []
    menu.triggered.connect(chosen.append)
    for _ in range(2):  # it is filled each time, and lists nothing twice
        with qtbot.waitSignal(past.listed, timeout=5_000):
            open_it(menu, past)
    assert words(menu) == ["A file …", "Session 2", "Session 1 · running", "Something else"]
    menu.actions()[1].trigger()
    assert [action.data() for action in chosen] == [2]
    end_all(past)


def test_without_any_it_says_so(menu: QMenu, past: PastSessions, store: SlowStore, qtbot: QtBot) -> None:
    store.let.set()
    store.lines = ()
    with qtbot.waitSignal(past.listed, timeout=5_000):
        open_it(menu, past)
    assert words(menu) == ["A file …", "none yet", "Something else"]
    end_all(past)


def test_a_store_that_cannot_be_read_says_why(menu: QMenu, past: PastSessions, store: SlowStore, qtbot: QtBot) -> None:
    store.let.set()
    store.broken = True
    with qtbot.waitSignal(past.failed, timeout=5_000) as failed:
        open_it(menu, past)
    assert failed.args == ["sessions.db: the store is damaged", "restore it"]
    assert words(menu) == ["A file …", "cannot be read", "Something else"]
    end_all(past)


def test_a_menu_that_is_closed_and_gone_meanwhile_is_left_alone(
    menu: QMenu, past: PastSessions, store: SlowStore, qtbot: QtBot
) -> None:
    open_it(menu, past)
    menu.clear()
    store.let.set()
    end_all(past)
    qtbot.wait(20)
    assert words(menu) == []
