"""Alarms in the window: set in a form, kept, raised as a line and a mark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.fakes import FakeGpu, working
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from app.sensors.trace.alarms import AlarmRules
from app.views.shared import theme
from app.views.shared.settings import Settings
from app.views.shared.watched_boards import WatchedBoard
from app.views.watch.alarm_window import AlarmWindow

Open = Callable[..., Any]


@pytest.fixture(autouse=True)
def rules_as_at_the_first_start() -> Iterator[None]:
    Settings().alarms = AlarmRules()
    yield
    Settings().alarms = AlarmRules()


@pytest.fixture
def board(qtbot: QtBot) -> Iterator[WatchedBoard]:
    made = WatchedBoard("test", FakeGpu(working))
    yield made
    made.close()


@pytest.fixture
def form(board: WatchedBoard, qtbot: QtBot) -> AlarmWindow:
    made = AlarmWindow(board.alarms, board.gpu)
    qtbot.addWidget(made)
    made.show()
    return made


def test_typing_a_figure_switches_its_alarm_on_and_it_is_kept(form: AlarmWindow, qtbot: QtBot) -> None:
    assert not form.power.isChecked()
    form.power_w.selectAll()
    qtbot.keyClicks(form.power_w, "180")
    qtbot.keyClick(form.power_w, Qt.Key.Key_Return)
    assert form.power.isChecked()
    assert Settings().alarms == AlarmRules(power_above_w=180.0)
    form.lost.click()
    assert Settings().alarms == AlarmRules(power_above_w=180.0, board_lost=True)
    form.power.click()
    assert Settings().alarms == AlarmRules(board_lost=True)


def test_the_form_shows_what_is_kept_and_what_was_raised(form: AlarmWindow, board: WatchedBoard, qtbot: QtBot) -> None:
    board.alarms.rules = AlarmRules(power_above_w=200.0, cap_reached=True)
    qtbot.waitUntil(lambda: form.raised.count() == 1, timeout=5000)
    assert "power above 200 W" in form.raised.item(0).text()
    assert form.power.isChecked()
    assert form.power_w.value() == 200.0
    assert form.cap.isChecked()
    assert not form.temperature.isChecked()


def test_the_form_follows_the_board_that_is_shown(form: AlarmWindow, board: WatchedBoard, qtbot: QtBot) -> None:
    other = WatchedBoard("test", FakeGpu(lambda _: {}, missing={"event_reasons": "too old"}, name="Old board"))
    form.show_board(other.alarms, other.gpu)
    assert "Old board" in form.windowTitle()
    assert not form.cap.isEnabled()
    board.alarms.rules = AlarmRules(power_above_w=200.0)
    qtbot.waitUntil(lambda: len(board.alarms.raised_so_far) == 1, timeout=5000)
    assert form.raised.count() == 0
    form.show_board(board.alarms, board.gpu)
    assert form.raised.count() == 1
    assert form.cap.isEnabled()
    other.close()


def test_what_a_board_does_not_report_raises_no_alarm_and_says_why(qtbot: QtBot) -> None:
    board = WatchedBoard("test", FakeGpu(working, missing={"temperature_c": "no sensor"}))
    form = AlarmWindow(board.alarms, board.gpu)
    qtbot.addWidget(form)
    assert not form.temperature.isEnabled()
    assert "no sensor" in form.temperature.toolTip()
    assert form.cap.isEnabled()
    board.close()


def test_an_alarm_is_a_line_and_a_mark_once(qtbot: QtBot, open_program: Open) -> None:
    window = open_program(gpu=FakeGpu(working)).window
    window.board.alarms.rules = AlarmRules(power_above_w=200.0)
    with qtbot.waitSignal(window.board.alarms.raised, timeout=5000) as raised:
        pass
    assert raised.args[0] == "Alarm: power above 200 W · Fake A100 (simulated)"
    assert window.banner.text == raised.args[0]
    window.workspaces.show_workspace("watch")
    view = window.monitor.view
    qtbot.waitUntil(lambda: view.snapshot is not None, timeout=5000)
    flag = QColor(theme.colours().vermillion)
    qtbot.waitUntil(lambda: marked(view, flag), timeout=5000)
    for _ in range(3):
        window.board.alarms.check()
    assert len(window.board.alarms.raised_so_far) == 1


def marked(view: Any, flag: QColor) -> bool:
    """A line of that colour through all lanes, which are most of the height."""
    picture = view.grab().toImage()
    height = picture.height()
    lit = (sum(picture.pixelColor(x, y) == flag for y in range(height)) for x in range(picture.width()))
    return any(count > height / 2 for count in lit)
