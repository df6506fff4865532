"""Messages end: with their cause, by themselves where they only inform, and always by mouse and key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fixtures.lab import OBJECTIVE, Lab, grid_space, plan_for
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMainWindow, QWidget
from pytestqt.qtbot import QtBot

from app.engine.results.state import Purpose, SessionState
from app.engine.session import events
from app.engine.space.result_table import ResultTable
from app.sensors.trace.alarms import AlarmRules
from app.sensors.trace.sampler import SensorEvent
from app.views.shared.settings import Settings
from app.views.shell import banner as banner_module
from app.views.shell.banner import Banner, offer_left_over, offer_recovery

Open = Callable[..., Any]
BUSY = ("a session is running", "stop it first")


class Room:
    """A banner in a window that is active or not."""

    def __init__(self, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(banner_module, "_SEEN_MS", 20)
        self.window, self.active = QMainWindow(), True
        qtbot.addWidget(self.window)
        monkeypatch.setattr(self.window, "isActiveWindow", lambda: self.active)
        held = QWidget()
        self.window.statusBar().addPermanentWidget(held)
        self.banner = Banner(self.window.statusBar(), held)
        monkeypatch.setattr(self.banner, "window", lambda: self.window)
        self.window.show()


@pytest.fixture
def room(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Room:
    return Room(qtbot, monkeypatch)


@pytest.fixture
def no_alarms_kept() -> Iterator[None]:
    yield
    Settings().alarms = AlarmRules()


def test_what_only_informs_goes_once_the_user_had_the_time_to_read_it(room: Room, qtbot: QtBot) -> None:
    room.active = False
    room.banner.inform("Session 7 has ended")
    room.banner.show_message("the disk is full", "free some space")
    qtbot.wait(100)
    assert "+1 more" in room.banner.text, "nobody has seen it yet"
    room.active = True
    room.banner.inform("Session 8 has ended")
    qtbot.waitUntil(lambda: room.banner.text == "the disk is full · free some space", timeout=5000)
    assert room.banner.isVisible(), "what needs an action stays"


def test_a_message_is_withdrawn_wherever_it_is_among_them_and_its_offer_with_it(room: Room) -> None:
    banner = room.banner
    banner.offer("a session was cut off", "Resume", lambda: None)
    banner.show_message("the disk is full")
    banner.withdraw("a session was cut off")
    assert banner.text == "the disk is full"
    banner.show_message("a session was cut off")
    assert banner.offered.isHidden(), "what was withdrawn is offered no more"
    banner.dismiss()
    banner.dismiss()
    banner.dismiss()
    assert (banner.text, banner.isVisible()) == ("", False)


def test_the_offer_of_a_session_that_was_cut_off_ends_when_it_is_shown_otherwise(room: Room) -> None:
    lab = Lab()
    record: Any = SimpleNamespace(
        id=3, evaluated=12, budget=60, timed=0, shown_name="gemm", board="A100", purpose=Purpose.TUNING,
        state=SessionState.INTERRUPTED,
    )  # fmt: skip
    nothing = lambda _: None  # noqa: E731
    offer_recovery(room.banner, [record], "A100", Settings(), nothing, nothing, lab.bridge)
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
    offer_left_over(room.banner, left, gpu, lab.bridge)
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
    assert window.banner.text == "power is no longer reported"
    event.emit(board, SensorEvent(4, "recovered", "power_w", "power is reported again"))
    assert window.banner.text == ""


def test_an_alarm_stays_while_its_cause_does_and_informs_from_then_on(
    open_program: Open, qtbot: QtBot, no_alarms_kept: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(banner_module, "_SEEN_MS", 20)
    window = open_program().window
    window.show()
    monkeypatch.setattr(window, "isActiveWindow", lambda: True)
    alarms = window.board.alarms
    alarms.rules = AlarmRules(power_above_w=1.0)
    qtbot.waitUntil(lambda: window.banner.text.startswith("Alarm: power above 1 W"), timeout=20_000)
    alarms.check()
    assert window.banner.text
    alarms.rules = AlarmRules(power_above_w=100_000.0, board_lost=True)
    alarms.rules = AlarmRules(board_lost=True)
    qtbot.waitUntil(lambda: window.banner.text == "", timeout=20_000)


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
    window.banner.show_message("the first")
    window.banner.show_message("the second")
    qtbot.keyClick(window, Qt.Key.Key_M, Qt.KeyboardModifier.ControlModifier)
    assert window.banner.text == "the first"
    qtbot.mouseClick(window.banner.close_button, Qt.MouseButton.LeftButton)
    assert window.banner.text == ""
