"""Slow work off Qt's thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QThread
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.errors import InputError
from app.views.threads.background import Background


@pytest.fixture
def background(qtbot: QtBot) -> Iterator[Background]:
    made = Background()
    yield made
    made.shutdown()


def test_the_work_is_done_elsewhere_and_told_in_qt_s_thread(background: Background, qtbot: QtBot) -> None:
    here = threading.current_thread()
    told_in: list[bool] = []
    background.done.connect(lambda _: told_in.append(QThread.currentThread() is QApplication.instance().thread()))
    with qtbot.waitSignal(background.done) as signal:
        background.run(lambda _: threading.current_thread() is here)
    assert signal.args == [False]
    assert told_in == [True]
    assert not background.busy


def test_a_wrong_input_is_told_with_its_place_and_remedy(background: Background, qtbot: QtBot) -> None:
    def job(_stop: threading.Event) -> None:
        raise InputError("no such key", "spec.toml", "remove it")

    with qtbot.waitSignal(background.failed) as signal:
        background.run(job)
    assert signal.args == ["spec.toml: no such key", "remove it"]


def test_an_unexpected_error_is_told_too(background: Background, qtbot: QtBot) -> None:
    with qtbot.waitSignal(background.failed) as signal:
        background.run(lambda _: {}["missing"])
    assert signal.args[0].startswith("KeyError")


def test_a_newer_job_replaces_an_older_one_which_is_told_to_stop(background: Background, qtbot: QtBot) -> None:
    results: list[str] = []
    background.done.connect(results.append)
    stopped = threading.Event()

    def slow(stop: threading.Event) -> str:
        if stop.wait(10):
            stopped.set()
        return "old"

    background.run(slow)
    with qtbot.waitSignal(background.done):
        background.run(lambda _: "new")
    assert stopped.is_set()
    qtbot.wait(30)
    assert results == ["new"]


def test_after_shutdown_nothing_is_told_and_no_thread_is_left(background: Background, qtbot: QtBot) -> None:
    results: list[object] = []
    background.done.connect(results.append)
    background.run(lambda stop: stop.wait(10))
    background.shutdown()
    qtbot.wait(30)
    assert results == []
