"""What runs is seen, paused and stopped from everywhere; and closing the window while it runs asks first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import shiboken6
from fixtures.fakes import FakeGpu, working
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for, progress, ready
from pytestqt.qtbot import QtBot

from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.space.result_table import ResultTable
from app.sensors.simulated.twin import load_twin
from app.views.shell.app import Program
from app.views.shell.header import ResultBar
from app.views.shell.window import MainWindow

Open = Callable[..., Program]


@pytest.fixture
def bar(lab: Lab, qtbot: QtBot) -> ResultBar:
    made = ResultBar(lab.result, lab.bridge, lambda: None, lambda: None)
    qtbot.addWidget(made)
    made.resize(1000, 40)
    made.show()
    return made


def begin(lab: Lab, rows: int = 30, **plan: object) -> ResultTable:
    table = filled(grid_space(), rows)
    lab.session(table, plan_for(table.space, OBJECTIVE, **plan))
    return table


def change(lab: Lab, table: ResultTable, state: SessionState) -> None:
    lab.engine.tell(events.SessionChanged(progress(table, state)))


def test_at_first_it_says_that_there_is_no_result_and_nothing_runs(bar: ResultBar) -> None:
    assert bar.caption.text().startswith("No result yet")
    assert not bar.stop.isVisible()
    assert not bar.bar.isVisible()


def test_what_a_simulated_board_does_not_show_stands_in_the_tip_of_its_result(lab: Lab, bar: ResultBar) -> None:
    caption = bar.caption
    begin(lab, source="simulated", origin={"gpu": "simulated:mi210"})
    assert all(words in caption.toolTip() for words in load_twin("mi210").not_shown)
    assert "bandwidth" not in caption.text()
    assert "Not shown by this simulated board" in caption.accessibleDescription()
    begin(lab, source="nvml", origin={"gpu": "GPU-1"})
    assert caption.toolTip() == caption.text()


def test_a_session_is_named_on_the_left_and_its_progress_stands_on_the_right(lab: Lab, bar: ResultBar) -> None:
    table = begin(lab, source="simulated")
    assert bar.caption.text() == "Result: gemm · Test GPU · session 1 · simulated"
    lab.grow(table, budget=120)
    assert bar.what.text() == "Tuning gemm"
    assert (bar.bar.value(), bar.bar.maximum(), bar.bar.text()) == (30, 120, "25 %")
    assert bar.left.text() == "8.0 s left"
    change(lab, table, SessionState.DONE)
    assert not bar.what.isVisible()
    assert bar.caption.text() == "Result: gemm · Test GPU · session 1 · simulated", "the result stays"


def test_pause_and_stop_are_sent_once_and_their_answers_shown(lab: Lab, bar: ResultBar) -> None:
    table = begin(lab)
    bar.pause.click()
    assert not bar.pause.isEnabled()
    assert bar.left.text() == "pausing …"
    change(lab, table, SessionState.PAUSED)
    assert bar.pause.text() == "Resume"
    assert bar.left.text() == "paused"
    bar.pause.click()
    change(lab, table, SessionState.RUNNING)
    assert bar.pause.text() == "Pause"
    bar.stop.click()
    assert not bar.stop.isEnabled()
    assert bar.left.text() == "stopping …"
    assert [type(command) for command in lab.engine.commands] == [events.Pause, events.Resume, events.Stop]
    change(lab, table, SessionState.STOPPED)
    assert not bar.stop.isVisible()


def test_a_sweep_has_no_pause_and_gives_way_to_the_session_that_waited(lab: Lab, bar: ResultBar) -> None:
    table = begin(lab)
    change(lab, table, SessionState.PAUSED)
    lab.engine.tell(events.FitProgress(0, 10))
    assert bar.what.text() == "Sweep of clocks"
    assert not bar.pause.isEnabled()
    lab.engine.tell(events.FitProgress(4, 10, "power limits"))
    assert bar.what.text() == "Sweep of power limits"
    assert bar.bar.text() == "40 %"
    bar.stop.click()
    lab.engine.tell(events.FitFailed())
    change(lab, table, SessionState.RUNNING)
    assert bar.what.text() == "Tuning gemm"
    assert bar.stop.isEnabled()


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ({"kind": "replay", "file": "/data/ada.json"}, "Replay of gemm"),
        ({"purpose": "roofline", "precision": "fp64"}, "Roofline FP64"),
    ],
)
def test_what_runs_is_named_by_its_purpose(lab: Lab, bar: ResultBar, origin: dict[str, str], words: str) -> None:
    begin(lab, origin=origin)
    assert bar.what.text() == words
    assert bar.caption.text().startswith("No result yet" if "purpose" in origin else "Result: gemm · Test GPU")


def test_a_stored_session_that_is_shown_does_not_run(lab: Lab, bar: ResultBar) -> None:
    table = filled(grid_space())
    plan = plan_for(table.space, OBJECTIVE)
    lab.engine.tell(events.SessionStarted(7, plan, table, running=False))
    assert "session 7" in bar.caption.text()
    assert not bar.stop.isVisible()


def test_what_is_done_before_the_first_measurement_is_shown(lab: Lab, bar: ResultBar) -> None:
    begin(lab)
    lab.engine.tell(events.Preparing("characterising the power sensor", 13.0, 65.0))
    assert bar.bar.text() == "20 %"
    assert bar.left.text() == "preparing"
    assert bar.bar.toolTip() == "characterising the power sensor"


# --- the window -------------------------------------------------------------------------------------------------------


def running(window: MainWindow) -> None:
    """The engine says that a session runs."""
    table = filled(grid_space(), 30)
    window.bridge.deliver(events.SessionStarted(1, plan_for(table.space, OBJECTIVE), table))


def ended(window: MainWindow) -> None:
    table = filled(grid_space(), 30)
    window.bridge.deliver(events.SessionChanged(progress(table, SessionState.STOPPED)))


def test_what_runs_is_paused_and_stopped_by_the_session_menu_whatever_is_in_front(
    qtbot: QtBot, open_program: Open
) -> None:
    window = ready(qtbot, open_program(FakeGpu(working)))
    assert not window.actions_by_name["stop"].isEnabled()
    table = filled(grid_space(), 30)
    plan = plan_for(table.space, OBJECTIVE)
    window.bridge.deliver(events.SessionStarted(1, replace(plan, origin={"purpose": "roofline"}), table))
    window.workspaces.show_workspace("library")
    window.actions_by_name["pause"].trigger()
    assert window.bridge.activity.pausing
    window.actions_by_name["stop"].trigger()
    assert window.bridge.activity.stopping
    assert not window.actions_by_name["stop"].isEnabled()


def test_a_roofline_is_resumed_under_roofline_and_not_under_tune(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(FakeGpu(working)))
    window.panels["sessions"].roofline_resume_asked.emit(99, "fp32")
    message = window.panels["roofline"].message
    qtbot.waitUntil(lambda: "99" in message.text(), timeout=5_000)
    assert message.isVisible(), "its dock is in front, and says that there is no such session"
    assert window.panels["tune"].draft is None


def test_closing_the_window_asks_only_while_something_runs(qtbot: QtBot, open_program: Open) -> None:
    window = open_program(FakeGpu(working)).window
    running(window)
    window.close()
    assert window.isVisible()
    assert window.quit_bar.isVisible()
    assert "Tuning gemm is still running" in window.quit_bar.text.text()
    window.quit_bar.keep.click()
    assert not window.quit_bar.isVisible()
    window.close()
    assert window.quit_bar.isVisible()
    ended(window)
    assert not window.quit_bar.isVisible(), "there is nothing to ask any more"
    assert window.isVisible()
    window.close()
    assert not window.isVisible()


def test_stop_and_quit_waits_until_it_has_stopped(qtbot: QtBot, open_program: Open) -> None:
    window = open_program(FakeGpu(working)).window
    running(window)
    window.close()
    window.quit_bar.end.click()
    assert window.bridge.activity.stopping
    assert window.isVisible()
    ended(window)
    qtbot.waitUntil(lambda: not window.isVisible(), timeout=5_000)


def test_closing_again_does_not_wait(qtbot: QtBot, open_program: Open) -> None:
    window = open_program(FakeGpu(working)).window
    running(window)
    window.close()
    window.quit_bar.end.click()
    window.close()
    assert not window.isVisible()


def test_a_signal_to_the_program_does_not_ask(qtbot: QtBot, own_data_folder: Path) -> None:
    program = Program(FakeGpu(working))
    window = program.window
    running(window)
    program.close()  # as `run` does when the loop has ended
    assert not shiboken6.isValid(window)
