"""Notices end: with their cause, by themselves once they were seen, and always by mouse and key; all can be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fixtures.lab import OBJECTIVE, Lab, grid_space, plan_for
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QMainWindow, QWidget
from pytestqt.qtbot import QtBot

from app.engine.results.state import Purpose, SessionState
from app.engine.session import events
from app.engine.space.result_table import ResultTable
from app.sensors.trace.alarms import AlarmRules
from app.sensors.trace.sampler import SensorEvent
from app.views.shared.settings import Settings
from app.views.shell import notices as notices_module
from app.views.shell.banner import Banner, NoticesWindow
from app.views.shell.notices import Notices, Severity, offer_left_over, offer_recovery

Open = Callable[..., Any]
BUSY = ("a session is running", "stop it first")


class Room:
    """A banner in a window that is active or not."""

    def __init__(self, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
        self.window, self.active = QMainWindow(), True
        qtbot.addWidget(self.window)
        held = QWidget()
        self.window.statusBar().addPermanentWidget(held)
        self.notices = Notices(lambda: self.active, self.window)
        self.banner = Banner(self.notices, self.window.statusBar(), held)
        self.window.show()

    def pass_s(self, seconds: int) -> None:
        """So much time of the window's clock."""
        for _ in range(seconds):
            self.notices._tick()


@pytest.fixture
def room(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Room:
    return Room(qtbot, monkeypatch)


@pytest.fixture
def no_alarms_kept() -> Iterator[None]:
    yield
    Settings().alarms = AlarmRules()


def test_what_only_informs_goes_once_the_user_had_the_time_to_read_it(room: Room) -> None:
    room.active = False
    room.notices.warn("the power is no longer reported")
    room.notices.inform("Session 7 has ended")
    room.pass_s(60)
    assert room.banner.text == "Session 7 has ended  (+1 more)", "nobody has seen it yet"
    room.active = True
    room.pass_s(9)
    assert "Session 7" in room.banner.text
    room.pass_s(1)
    assert room.banner.text == "the power is no longer reported"
    room.pass_s(10_000)
    assert room.banner.isVisible(), "what lasts stays"


def test_a_failure_is_over_after_minutes_or_once_another_session_has_started(room: Room) -> None:
    lab = Lab()
    room.notices.follow(lab.bridge)
    table = ResultTable(grid_space())
    lab.engine.tell(events.EngineFault("the compiler is missing", "install it"))
    assert room.banner.text == "the compiler is missing · install it"
    lab.engine.tell(events.SessionStarted(2, plan_for(table.space, OBJECTIVE), table, running=False))
    assert room.banner.text, "a session that is only opened mends nothing"
    lab.engine.tell(events.SessionStarted(3, plan_for(table.space, OBJECTIVE), table))
    assert room.banner.text == ""
    room.notices.fail("the picture cannot be written")
    room.pass_s(119)
    assert room.banner.text
    room.pass_s(1)
    assert room.banner.text == ""
    assert [notice.ended_s is None for notice in room.notices.all] == [False, False]


def test_a_full_disk_lasts_until_there_is_room_again(room: Room, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    free = [0]
    monkeypatch.setattr(notices_module, "_free_byte", lambda: free[0])
    room.notices.fail("/data: No space left on device", "free some")
    qtbot.waitUntil(lambda: room.notices.all[0].severity is Severity.LASTING, timeout=20_000)
    room.pass_s(1000)
    assert room.banner.text.startswith("/data")
    free[0] = 10**9
    room.pass_s(1)
    qtbot.waitUntil(lambda: room.banner.text == "", timeout=20_000)


def test_one_is_in_the_way_and_all_can_be_read_with_their_times(room: Room, qtbot: QtBot) -> None:
    room.notices.warn("the board does not answer")
    room.notices.fail("the GPU is lost", "check dmesg")
    room.notices.fail("the file cannot be read", "choose another")
    room.notices.fail("the GPU is lost", "check dmesg")
    assert room.banner.text == "the GPU is lost · check dmesg  (+2 more)", "once, and the newest again"
    room.notices.dismiss()
    assert room.banner.text == "the file cannot be read · choose another  (+1 more)"
    room.notices.end("the board does not answer")
    window = NoticesWindow(room.notices)
    qtbot.addWidget(window)
    window.show()
    items = [window.list.topLevelItem(row) for row in range(window.list.topLevelItemCount())]
    shown = [tuple(item.text(column) for column in range(3)) for item in items if item is not None]
    assert [words for _, words, _ in shown] == [
        "the GPU is lost · check dmesg",
        "the file cannot be read · choose another",
        "the board does not answer",
    ]
    assert [until == "now" for _, _, until in shown] == [True, True, False], "what was dismissed is not over"
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", since) for since, _, _ in shown)
    room.notices.end("the GPU is lost", "check dmesg")
    first = window.list.topLevelItem(0)
    assert first is not None
    assert first.text(2) != "now"


def test_a_notice_ends_wherever_it_is_among_them_and_its_offer_with_it(room: Room) -> None:
    notices, banner = room.notices, room.banner
    notices.warn("a session was cut off", "Resume", lambda: None)
    notices.fail("the disk is slow")
    notices.end("a session was cut off")
    assert banner.text == "the disk is slow"
    notices.fail("a session was cut off")
    assert banner.offered.isHidden(), "what is over is offered no more"
    for _ in range(3):
        notices.dismiss()
    assert (banner.text, banner.isVisible()) == ("", False)


def test_each_is_announced_once(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(QAccessible, "updateAccessibility", lambda event: said.append(event.message()))
    room.notices.warn("the board does not answer")
    room.notices.inform("Written: a.csv")
    room.pass_s(3)
    assert said == ["the board does not answer", "Written: a.csv  (+1 more)"]


def test_the_offer_of_a_session_that_was_cut_off_ends_when_it_is_shown_otherwise(room: Room) -> None:
    lab = Lab()
    record: Any = SimpleNamespace(
        id=3, evaluated=12, budget=60, timed=0, shown_name="gemm", board="A100", purpose=Purpose.TUNING,
        state=SessionState.INTERRUPTED,
    )  # fmt: skip
    nothing = lambda _: None  # noqa: E731
    offer_recovery(room.notices, [record], "A100", Settings(), nothing, nothing, lab.bridge)
    assert room.banner.text.startswith("Session 3, gemm, was running when the program ended")
    table = ResultTable(grid_space())
    lab.engine.tell(events.SessionStarted(2, plan_for(table.space, OBJECTIVE), table))
    assert room.banner.text, "that was another one"
    lab.engine.tell(events.SessionStarted(3, plan_for(table.space, OBJECTIVE), table))
    assert room.banner.text == ""


def test_the_offer_to_put_settings_back_ends_when_they_are_back(room: Room) -> None:
    lab = Lab()
    gpu: Any = SimpleNamespace(info=SimpleNamespace(uuid="GPU-1", label="A100"))
    left: Any = SimpleNamespace(unfinished=True, unreadable="", differences=lambda _gpu: ["power limit 200 W"])
    offer_left_over(room.notices, left, gpu, lab.bridge)
    assert "ended badly" in room.banner.text
    for board, prior in (("GPU-2", {}), ("GPU-1", {"power_limit_w": 250.0})):
        lab.engine.tell(events.SettingApplied(board, {}, {}, True, "set", prior))
        assert "ended badly" in room.banner.text
    lab.engine.tell(events.SettingApplied("GPU-1", {}, {}, True, "restored"))
    assert room.banner.text == ""


# --- in the window ----------------------------------------------------------------------------------------------------


def test_a_sensor_that_is_back_ends_the_message_that_it_was_lost(open_program: Open, qtbot: QtBot) -> None:
    window = open_program().window
    board, event = window.board, window.boards.sensor_event
    event.emit(board, SensorEvent(1, "failed", "power_w", "power is no longer reported"))
    event.emit(board, SensorEvent(2, "lost", "", "the board does not answer"))
    event.emit(board, SensorEvent(3, "back", "", "the board answers again"))
    assert [notice.text for notice in window.notices.problems] == ["power is no longer reported"]
    assert window.all_notices.text() == "Notices (1)"
    event.emit(board, SensorEvent(4, "recovered", "power_w", "power is reported again"))
    assert window.banner.text == "power is reported again", "it takes the place of the news before"
    assert not window.notices.problems
    assert window.all_notices.text() == "Notices"


def test_an_alarm_stays_while_its_cause_does_and_informs_from_then_on(
    open_program: Open, qtbot: QtBot, no_alarms_kept: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_program().window
    window.show()
    alarms = window.board.alarms
    alarms.rules = AlarmRules(power_above_w=1.0)
    qtbot.waitUntil(lambda: window.banner.text.startswith("Alarm: power above 1 W"), timeout=20_000)
    alarms.check()
    raised = window.notices.current
    assert raised is not None
    assert raised.severity is Severity.LASTING
    alarms.rules = AlarmRules(power_above_w=100_000.0, board_lost=True)
    alarms.rules = AlarmRules(board_lost=True)
    qtbot.waitUntil(lambda: [each.severity for each in window.notices.open] == [Severity.NEWS], timeout=20_000)
    assert window.notices.open[0].since_s == raised.since_s


def test_that_a_session_runs_is_no_news_once_none_does(open_program: Open, qtbot: QtBot) -> None:
    window = open_program().window
    window.bridge.deliver(events.EngineFault(*BUSY))
    assert BUSY[0] in window.banner.text
    window.bridge.activity.changed.emit()
    assert window.banner.text == ""


def test_what_was_wrong_with_a_file_is_withdrawn_when_another_is_opened(
    open_program: Open, qtbot: QtBot, tmp_path: Path
) -> None:
    window = open_program().window
    window.show()
    qtbot.waitUntil(lambda: "tune" in window.panels, timeout=20_000)
    wrong, right = tmp_path / "wrong.toml", tmp_path / "right.toml"
    wrong.write_text("[parameters]\n")
    right.write_text("[parameters]\nx = [1, 2]\n[kernel]\nname = 'k'\nprofile = 'copy'\nproblem_size = ['8']\n")
    window.open_specification(wrong)
    qtbot.waitUntil(lambda: "wrong.toml" in window.banner.text, timeout=20_000)
    window.open_specification(right)
    qtbot.waitUntil(lambda: "wrong.toml" not in window.banner.text, timeout=20_000)


def test_a_message_is_closed_by_key_and_by_mouse(open_program: Open, qtbot: QtBot) -> None:
    window = open_program().window
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=5000)
    window.notices.fail("the first")
    window.notices.fail("the second")
    qtbot.keyClick(window, Qt.Key.Key_M, Qt.KeyboardModifier.ControlModifier)
    assert window.banner.text == "the first"
    qtbot.mouseClick(window.banner.close_button, Qt.MouseButton.LeftButton)
    assert window.banner.text == ""
