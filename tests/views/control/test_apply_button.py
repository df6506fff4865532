"""The button that sets what was found: on which board, and why it cannot be pressed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for, progress
from pytestqt.qtbot import QtBot

from app.engine.results.state import SessionState
from app.engine.session import events
from app.sensors.gpu import Source
from app.views.control.apply_button import ApplyButton

CLOCK = {"graphics_clock_mhz": 900.0}


def board(source: Source = "nvml") -> Lab:
    return Lab(FakeGpu(working, source=source, name="Test GPU"))


def button_of(lab: Lab, qtbot: QtBot) -> ApplyButton:
    made = ApplyButton(lab.context)
    qtbot.addWidget(made)
    return made


def allow(lab: Lab) -> None:
    lab.engine.tell(events.ControlChanged("fake:0", True, 1))


def test_at_first_there_is_nothing_to_apply(qtbot: QtBot) -> None:
    button = button_of(board(), qtbot)
    assert not button.isEnabled()
    assert button.toolTip() == "There is nothing to apply"


def test_settings_are_applied_with_a_countdown_once_control_is_on(qtbot: QtBot) -> None:
    lab = board()
    button = button_of(lab, qtbot)
    button.offer(CLOCK, "Test GPU", simulated=False)
    assert not button.isEnabled()
    assert "read-only: switch control on" in button.why_not
    allow(lab)
    assert button.isEnabled()
    assert button.toolTip().startswith("Set graphics clock 900 MHz on Test GPU")
    button.click()
    assert lab.engine.commands == [events.Apply("fake:0", {"graphics_clock_mhz": 900.0}, confirm_s=10.0)]
    button.withdraw("This configuration failed")
    assert not button.isEnabled()
    assert button.why_not == "This configuration failed"


@pytest.mark.parametrize(("name", "simulated"), [("Another GPU", False), ("Test GPU", True)])
def test_what_was_measured_on_another_board_is_not_applied_to_the_one_that_is_shown(
    qtbot: QtBot, name: str, simulated: bool
) -> None:
    lab = board()
    button = button_of(lab, qtbot)
    allow(lab)
    button.offer(CLOCK, name, simulated=simulated)
    assert not button.isEnabled()
    assert f"Measured on {name}" in button.why_not
    assert "but Test GPU is shown" in button.why_not


@pytest.fixture
def twins() -> Lab:
    """Two boards of one model are watched; the first is shown."""
    made = board()
    other = FakeGpu(working, source="nvml", name="Test GPU")
    other.info = replace(other.info, index=1, uuid="fake:1")
    made.boards.add(other)
    return made


def test_what_was_measured_on_another_board_of_the_model_says_so(twins: Lab, qtbot: QtBot) -> None:
    button = button_of(twins, qtbot)
    allow(twins)
    button.offer(CLOCK, "Test GPU", simulated=False, uuid="fake:1")
    assert button.isEnabled(), "it may be set: it is only not that board's own"
    assert button.whose == "Measured on Test GPU · GPU 1, and set on Test GPU · GPU 0: boards of one model differ"
    assert button.whose in button.toolTip()
    assert button.whose in button.accessibleDescription()
    button.offer(CLOCK, "Test GPU", simulated=False, uuid="fake:0")
    assert button.whose == ""
    button.offer(CLOCK, "Test GPU", simulated=False, uuid="fake:2")
    assert button.whose.startswith("Measured on another Test GPU, and set on Test GPU · GPU 0")
    button.offer(CLOCK, "Test GPU", simulated=False)
    assert "not known on which of them" in button.whose


def test_of_a_model_that_is_watched_once_nothing_needs_to_be_said(qtbot: QtBot) -> None:
    lab = board()
    button = button_of(lab, qtbot)
    allow(lab)
    button.offer(CLOCK, "Test GPU", simulated=False)
    assert button.isEnabled()
    assert button.whose == ""


def test_a_simulated_board_is_set_as_a_real_one_is(qtbot: QtBot) -> None:
    lab = board("simulated")
    button = button_of(lab, qtbot)
    button.offer(CLOCK, "Test GPU", simulated=True)
    assert not button.isEnabled()
    allow(lab)
    assert button.isEnabled()


def test_a_recording_cannot_be_set(qtbot: QtBot) -> None:
    button = button_of(board("recorded"), qtbot)
    button.offer(CLOCK, "Test GPU", simulated=False)
    assert "A recording is shown" in button.why_not


def test_read_only_by_the_environment_says_so(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATTRIDGE_READ_ONLY", "1")
    lab = board()
    button = button_of(lab, qtbot)
    button.offer(CLOCK, "Test GPU", simulated=False)
    assert "WATTRIDGE_READ_ONLY=1 forbids every setting" in button.why_not


def test_nothing_is_applied_under_a_session_that_runs(qtbot: QtBot) -> None:
    lab = board()
    button = button_of(lab, qtbot)
    allow(lab)
    button.offer(CLOCK, "Test GPU", simulated=False)
    table = filled(grid_space(), 4)
    lab.session(table, plan_for(table.space, OBJECTIVE, gpu="Test GPU"))
    assert "A session is running on Test GPU" in button.why_not
    lab.engine.tell(events.SessionChanged(progress(table, SessionState.DONE)))
    assert button.isEnabled()
