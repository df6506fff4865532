"""The panel of the idle board: a look on demand, off Qt's thread, and nothing set on a real board."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from fixtures.lab import OBJECTIVE, Lab, grid_space, plan_for, progress
from pytestqt.qtbot import QtBot

from app.engine.analysis import idle
from app.engine.results.state import SessionState
from app.engine.session.events import SessionChanged, SessionStarted
from app.engine.space.result_table import ResultTable
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.understand.idle_panel import IdlePanel


@pytest.fixture
def lab(qtbot: QtBot) -> Lab:
    return Lab(SimulatedGpu(load_twin("rtx5090"), seed=1, clock=VirtualClock()))


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> Iterator[IdlePanel]:
    made = IdlePanel(lab.context)
    qtbot.addWidget(made)
    yield made
    made.shutdown()


def test_a_look_shows_every_condition_and_what_may_lower_it(panel: IdlePanel, qtbot: QtBot) -> None:
    assert "Nothing is set" in panel.note.text()
    panel.start()
    qtbot.waitUntil(lambda: panel.study is not None, timeout=30_000)
    text = panel.found.toPlainText()
    for words in ("nothing of ours on it", "no CUDA contexts", "14001", "kWh a year", "CUDA_DISABLE_PERF_BOOST"):
        assert words in text
    assert panel.look.isEnabled()
    assert not panel.end.isEnabled()


def test_what_was_looked_at_so_far_is_said_and_stop_does_not_wait(
    panel: IdlePanel, lab: Lab, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def look(*_: object, progress: Callable[[str], None], **_more: object) -> None:
        progress("nothing of ours on it")
        go_on.wait(20.0)  # a program that takes its time to end

    monkeypatch.setattr(idle, "study_idle", look)
    panel.start()
    qtbot.waitUntil(lambda: "Done: nothing of ours on it" in panel.note.text(), timeout=5_000)
    assert (panel.look.isEnabled(), panel.end.isEnabled()) == (False, True)
    assert panel.found.isHidden(), "there is nothing in it"
    panel.stop()
    assert panel.note.text() == "Stopped."
    assert (panel.look.isEnabled(), panel.end.isEnabled()) == (True, False)
    go_on.set()


def test_a_board_on_which_something_runs_is_not_looked_at(panel: IdlePanel, lab: Lab) -> None:
    space = grid_space()
    table, plan = ResultTable(space), plan_for(space, OBJECTIVE)
    lab.bridge.deliver(SessionStarted(1, plan, table))
    assert not panel.look.isEnabled()
    assert panel.look.toolTip() == "Tuning gemm is under way: the board is not idle"
    lab.bridge.deliver(SessionChanged(progress(table, SessionState.DONE)))
    assert panel.look.isEnabled()


def test_a_command_that_makes_no_sense_is_one_line_and_nothing_starts(panel: IdlePanel, lab: Lab) -> None:
    panel.program.setText("an 'open quote")
    panel.start()
    assert panel.study is None
    assert panel.look.isEnabled()
