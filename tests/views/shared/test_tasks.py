"""Slow work off Qt's thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QThread
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.base.errors import InputError
from app.views.shared.tasks import LatestTask


@pytest.fixture
def task(qtbot: QtBot) -> Iterator[LatestTask]:
    made = LatestTask()
    yield made
    made.shutdown()


def test_the_work_is_done_elsewhere_and_delivered_in_qt_s_thread(task: LatestTask, qtbot: QtBot) -> None:
    here = threading.current_thread()
    delivered_in: list[bool] = []
    task.done.connect(lambda _: delivered_in.append(QThread.currentThread() is QApplication.instance().thread()))
    with qtbot.waitSignal(task.done) as signal:
        task.run(lambda _: threading.current_thread() is here)
    assert signal.args == [False]
    assert delivered_in == [True]
    assert not task.busy


def test_a_wrong_input_is_reported_with_its_place_and_remedy(task: LatestTask, qtbot: QtBot) -> None:
    def job(_stop: threading.Event) -> None:
        raise InputError("no such key", "spec.toml", "remove it")

    with qtbot.waitSignal(task.failed) as signal:
        task.run(job)
    assert signal.args == ["spec.toml: no such key", "remove it"]


def test_an_unexpected_error_is_reported_too(task: LatestTask, qtbot: QtBot) -> None:
    with qtbot.waitSignal(task.failed) as signal:
        task.run(lambda _: {}["missing"])
    assert signal.args[0].startswith("KeyError")


def test_a_newer_job_replaces_an_older_one_which_is_asked_to_stop(task: LatestTask, qtbot: QtBot) -> None:
    results: list[str] = []
    task.done.connect(results.append)
    stopped = threading.Event()

    def slow(stop: threading.Event) -> str:
        if stop.wait(10):
            stopped.set()
        return "old"

    task.run(slow)
    with qtbot.waitSignal(task.done):
        task.run(lambda _: "new")
    assert stopped.is_set()
    qtbot.wait(30)
    assert results == ["new"]


def test_after_shutdown_nothing_is_delivered_and_no_thread_is_left(task: LatestTask, qtbot: QtBot) -> None:
    results: list[object] = []
    task.done.connect(results.append)
    task.run(lambda stop: stop.wait(10))
    task.shutdown()
    qtbot.wait(30)
    assert results == []


def test_cancelling_does_not_wait_and_the_next_job_does(task: LatestTask, qtbot: QtBot) -> None:
    ends, done = threading.Event(), list[object]()
    task.done.connect(done.append)
    task.run(lambda _stop: ends.wait(20.0))
    task.cancel()
    assert not task.busy
    assert not ends.is_set()
    task.run(lambda _stop: ends.is_set())
    ends.set()
    qtbot.waitUntil(lambda: bool(done), timeout=5_000)
    assert done == [True], "after the first had ended, whose result is dropped"
