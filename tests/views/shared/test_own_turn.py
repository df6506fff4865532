"""What takes a while is done one at a time: each in a turn of Qt's loop of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, QObject, QTimer, Slot
from pytestqt.qtbot import QtBot

from app.views.shared.turns import OwnTurn


class Worker(QObject):
    """Says in `log` that it has worked, and then does what it is given."""

    def __init__(self, name: str, log: list[str], then: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._name, self._log, self._then = name, log, then
        self.turn = OwnTurn(self, self.work)

    @Slot()
    def work(self) -> None:
        self._log.append(self._name)
        self._then()


@pytest.fixture
def log(qtbot: QtBot) -> Iterator[list[str]]:
    """With a word for each turn in which anything happened."""
    noted: list[str] = []
    timer = QTimer(interval=0)
    timer.timeout.connect(lambda: noted.append("turn") if noted[-1:] != ["turn"] else None)
    timer.start()
    yield noted
    timer.stop()


def work(log: list[str]) -> list[str]:
    return [each for each in log if each != "turn"]


def test_each_has_a_turn_to_itself_in_the_order_in_which_they_asked(qtbot: QtBot, log: list[str]) -> None:
    workers = [Worker(name, log) for name in "abc"]
    for worker in workers:
        worker.turn.start()
    assert work(log) == []
    qtbot.waitUntil(lambda: len(work(log)) == 3, timeout=5_000)
    assert work(log) == ["a", "b", "c"]
    assert log[log.index("a") + 1] == log[log.index("b") + 1] == "turn"


def test_who_asks_twice_is_called_once_and_once_more_after_asking_again(qtbot: QtBot, log: list[str]) -> None:
    worker, last = Worker("a", log), Worker("b", log)
    for each in (worker, worker, last):
        each.turn.start()
    qtbot.waitUntil(lambda: "b" in log, timeout=5_000)
    assert work(log) == ["a", "b"]
    worker.turn.start()
    qtbot.waitUntil(lambda: work(log) == ["a", "b", "a"], timeout=5_000)


def test_who_went_or_wants_none_any_more_is_not_called(qtbot: QtBot, log: list[str]) -> None:
    gone, stopped, last = (Worker(name, log) for name in ("gone", "stopped", "last"))
    for each in (gone, stopped, last):
        each.turn.start()
    shiboken6.delete(gone)
    stopped.turn.stop()
    qtbot.waitUntil(lambda: "last" in log, timeout=5_000)
    assert work(log) == ["last"]


def test_a_dialog_that_a_job_opens_holds_up_nobody(qtbot: QtBot, log: list[str]) -> None:
    dialog = QEventLoop()
    first, second = Worker("opens", log, dialog.exec), Worker("closes", log, dialog.quit)
    first.turn.start()
    second.turn.start()
    qtbot.waitUntil(lambda: not dialog.isRunning() and len(work(log)) == 2, timeout=5_000)
    assert work(log) == ["opens", "closes"]


def test_a_job_that_fails_holds_up_nobody(qtbot: QtBot, log: list[str]) -> None:
    def fail() -> None:
        raise ValueError("on purpose")

    first, second = Worker("fails", log, fail), Worker("works", log)
    with qtbot.captureExceptions() as raised:
        first.turn.start()
        second.turn.start()
        qtbot.waitUntil(lambda: "works" in log, timeout=5_000)
    assert [str(each[1]) for each in raised] == ["on purpose"]


def test_what_is_asked_for_when_nothing_runs_waits_for_qt_s_loop(qtbot: QtBot) -> None:
    """It is never done at once: who asks has not finished."""
    noted: list[str] = []
    worker = Worker("a", noted)
    worker.turn.start()
    QCoreApplication.sendPostedEvents(worker, QEvent.Type.MetaCall)
    assert noted == []
    qtbot.waitUntil(lambda: noted == ["a"], timeout=5_000)
