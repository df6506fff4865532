"""The queue in the window: shown, reordered, paused, opened, compared; named over every view and before quitting."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for, progress, ready
from PySide6.QtCore import QModelIndex, Qt
from pytestqt.qtbot import QtBot

from app.base.paths import resources
from app.engine.results.state import Purpose, SessionState
from app.engine.session import events
from app.engine.space.result_table import ResultTable
from app.engine.specification.plan import SessionPlan
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.shell.app import Program
from app.views.shell.banner import QuitBar
from app.views.shell.header import ResultBar
from app.views.tune.queue_panel import QueuePanel
from app.views.tune.tune_panel import TunePanel
from app.views.understand.roofline_panel import RooflineMeasuring

Open = Callable[..., Program]
SPACE = grid_space()
TABLE = filled(SPACE, 30)


def plans(count: int, **facts: object) -> list[SessionPlan]:
    return [plan_for(SPACE, OBJECTIVE, seed=seed, **facts) for seed in range(count)]


class Queued:
    """A panel over a scripted engine, in which the runs begin and end as the test says."""

    def __init__(self, qtbot: QtBot) -> None:
        self.lab = Lab()
        self.queue = self.lab.bridge.queue
        self.panel = QueuePanel(self.lab.context)
        qtbot.addWidget(self.panel)
        self.panel.resize(760, 300)
        self.panel.show()

    @property
    def started(self) -> list[SessionPlan]:
        return [command.plan for command in self.lab.engine.commands if isinstance(command, events.Start)]

    def begin(self) -> None:
        self.lab.engine.tell(events.SessionStarted(len(self.started), self.started[-1], TABLE))

    def end(self, state: SessionState = SessionState.DONE, reason: str = "") -> None:
        self.lab.engine.tell(events.SessionChanged(progress(TABLE, state), reason))

    def cells(self, column: int) -> list[str]:
        model = self.panel.model
        return [model.data(model.index(row, column)) for row in range(model.rowCount())]

    def select(self, *rows: int) -> None:
        self.panel.table.clearSelection()
        for row in rows:
            flags = self.panel.table.selectionModel().SelectionFlag
            self.panel.table.selectionModel().select(self.panel.model.index(row, 0), flags.Select | flags.Rows)

    def order(self) -> list[int]:
        return [run.plan.seed for run in self.queue.waiting]


@pytest.fixture
def queued(qtbot: QtBot) -> Queued:
    return Queued(qtbot)


def test_at_first_it_says_how_runs_come_there(queued: Queued) -> None:
    assert queued.panel.empty.isVisible()
    assert not queued.panel.table.isVisible()


def test_every_run_says_what_it_is_and_how_far(queued: Queued) -> None:
    queued.queue.add(plans(3, source="simulated"))
    assert queued.cells(0) == ["running", "waits", "waits"]
    assert queued.cells(5) == ["Test GPU (simulated)"] * 3
    assert queued.cells(3) == ["0", "1", "2"]
    queued.begin()
    queued.lab.grow(TABLE, budget=120)
    assert queued.cells(0) == ["Session 1 · 25 %", "waits", "waits"]
    assert queued.cells(4)[0] == "8.0 s left"
    assert queued.cells(4)[1].startswith("about "), "as the first one is going"
    queued.end()
    assert queued.cells(0)[:2] == ["Session 1 · done", "running"]
    assert queued.cells(4)[0] == "took 2.0 s"


def test_a_stopped_run_pauses_the_queue_says_so_and_is_continued_by_a_button(queued: Queued) -> None:
    queued.queue.add(plans(3))
    queued.begin()
    queued.end(SessionState.STOPPED, "stopped")
    assert queued.panel.state.text().startswith("2 wait · queue paused: session 1 was stopped")
    assert queued.panel.pause.text() == "&Continue queue"
    queued.panel.pause.click()
    assert len(queued.started) == 2
    assert queued.panel.pause.text() == "&Pause queue"
    queued.panel.pause.click()
    queued.begin()
    queued.end()
    assert len(queued.started) == 2, "the queue was paused by hand"


def test_a_failed_run_shows_its_reason_and_the_next_one_runs(queued: Queued) -> None:
    queued.queue.add(plans(2))
    queued.begin()
    queued.end(SessionState.FAILED, "the GPU went away")
    assert queued.cells(0) == ["Session 1 · failed", "running"]
    tip = queued.panel.model.data(queued.panel.model.index(0, 0), Qt.ItemDataRole.ToolTipRole)
    assert "the GPU went away" in tip


def test_runs_are_reordered_and_removed_by_keyboard(queued: Queued, qtbot: QtBot) -> None:
    queued.queue.pause()
    queued.queue.add(plans(4))
    table = queued.panel.table
    table.setFocus()
    queued.select(2, 3)
    qtbot.keyClick(table, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert queued.order() == [0, 2, 3, 1]
    assert [run.plan.seed for run in queued.panel.chosen()] == [2, 3], "they stay selected"
    queued.panel.up.click()
    queued.panel.up.click()
    assert queued.order() == [2, 3, 0, 1]
    assert not queued.panel.up.isEnabled()
    qtbot.keyClick(table, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert queued.order() == [0, 2, 3, 1]
    qtbot.keyClick(table, Qt.Key.Key_Delete)
    assert queued.order() == [0, 1]
    queued.panel.clear.click()
    assert queued.order() == []


def test_runs_that_wait_are_dragged_and_the_others_are_not(queued: Queued) -> None:
    queued.queue.add(plans(4))
    model = queued.panel.model
    dragged = Qt.ItemFlag.ItemIsDragEnabled
    assert [bool(model.flags(model.index(row, 0)) & dragged) for row in range(4)] == [False, True, True, True]
    data = model.mimeData([model.index(3, column) for column in range(model.columnCount())])
    model.dropMimeData(data, Qt.DropAction.MoveAction, 1, 0, QModelIndex())
    assert queued.order() == [3, 1, 2]
    data = model.mimeData([model.index(1, 0)])
    model.dropMimeData(data, Qt.DropAction.MoveAction, 0, 0, QModelIndex())  # above the one that runs
    assert queued.order() == [3, 1, 2]
    model.dropMimeData(data, Qt.DropAction.MoveAction, -1, -1, QModelIndex())  # below all
    assert queued.order() == [1, 2, 3]


def test_finished_sessions_are_opened_once_nothing_runs_and_compared_at_any_time(queued: Queued, qtbot: QtBot) -> None:
    queued.queue.add(plans(3))
    for _ in range(2):
        queued.begin()
        queued.lab.engine.tell(events.SessionChanged(progress(TABLE, SessionState.DONE)))
    queued.begin()
    queued.select(0)
    assert not queued.panel.open.isEnabled()
    assert "once nothing runs" in queued.panel.open.toolTip()
    with qtbot.waitSignal(queued.panel.compare_asked, timeout=1_000) as asked:
        queued.panel.compare.click()
    assert len(asked.args[0]) == 2
    queued.end()
    with qtbot.waitSignal(queued.panel.open_asked, timeout=1_000):
        queued.panel.open.click()


def test_the_bar_over_every_view_says_how_many_wait_and_leads_to_the_queue(queued: Queued, qtbot: QtBot) -> None:
    asked: list[bool] = []
    bar = ResultBar(queued.lab.result, queued.lab.bridge, lambda: asked.append(True), lambda: None)
    qtbot.addWidget(bar)
    bar.show()
    assert not bar.waiting.isVisible()
    queued.queue.add(plans(3))
    assert bar.waiting.text() == "2 more wait"
    bar.waiting.click()
    assert asked == [True]
    queued.begin()
    queued.end(SessionState.STOPPED)
    assert bar.waiting.text() == "2 wait · queue paused"
    assert "session 1 was stopped" in bar.waiting.toolTip()


# --- what else runs ---------------------------------------------------------------------------------------------------


def test_a_roofline_of_two_precisions_is_waited_for_and_waits_itself(qtbot: QtBot) -> None:
    gpu = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    lab = Lab(gpu)
    measuring = RooflineMeasuring(lab.context)
    started = lab.engine.commands
    [queued] = plans(1)
    measuring.start(("fp32", "fp64"))
    lab.bridge.queue.add([queued])
    for number in (1, 2):
        qtbot.waitUntil(lambda number=number: len(started) == number, timeout=30_000)
        begun = started[-1]
        assert isinstance(begun, events.Start)
        assert begun.plan.purpose is Purpose.ROOFLINE
        table = ResultTable(begun.plan.space)
        lab.engine.tell(events.SessionStarted(1, begun.plan, table))
        lab.engine.tell(events.SessionChanged(progress(table, SessionState.DONE)))
    assert started[-1] == events.Start(queued)
    assert len(started) == 3
    assert not measuring.possible, "a run of the queue is about to begin"
    measuring.start(("fp32",))
    assert not measuring.busy
    measuring.shutdown()


def test_nothing_is_started_by_hand_between_two_runs(qtbot: QtBot) -> None:
    lab = Lab(SimulatedGpu(load_twin("a100"), clock=VirtualClock()))
    tune = TunePanel(lab.context)
    qtbot.addWidget(tune)
    tune.open(resources() / "examples" / "vector_add.toml")
    qtbot.waitUntil(tune.start.isEnabled, timeout=20_000)
    [queued] = plans(1)
    lab.bridge.queue.add([queued])
    assert not tune.start.isEnabled()
    assert "A queued session runs" in tune.start.toolTip()
    assert tune.queue.isEnabled()
    lab.engine.tell(events.StartFailed(queued, "no"))
    assert tune.start.isEnabled()
    tune.shutdown()


# --- quitting ---------------------------------------------------------------------------------------------------------


def test_quitting_asks_and_names_what_waits(queued: Queued, qtbot: QtBot) -> None:
    bar = QuitBar(queued.lab.bridge)
    qtbot.addWidget(bar)
    queued.queue.add(plans(6))
    queued.begin()
    assert bar.ask()
    words = bar.text.text()
    assert words.startswith("Tuning gemm is still running. Stop it, and forget 5 runs that wait (gemm on Test GPU")
    assert "seed 1" in words
    assert "and 2 more" in words
    queued.end()
    assert not bar.isHidden(), "others wait: the question stands"
    queued.begin()
    bar.end.click()
    with qtbot.waitSignal(bar.confirmed, timeout=1_000):
        queued.end(SessionState.DONE)
    assert len(queued.started) == 2, "nothing follows what was stopped, even where it came to its end"


def test_a_paused_queue_is_not_forgotten_without_being_asked(queued: Queued, qtbot: QtBot) -> None:
    bar = QuitBar(queued.lab.bridge)
    qtbot.addWidget(bar)
    queued.queue.pause()
    assert not bar.ask()
    queued.queue.add(plans(1))
    assert bar.ask()
    assert bar.end.text() == "&Forget and quit"
    assert bar.text.text().startswith("The queue is not kept. Forget 1 run that waits (gemm on Test GPU")
    queued.queue.clear()
    assert bar.isHidden(), "there is nothing to ask any more"
    queued.queue.add(plans(1))
    bar.ask()
    with qtbot.waitSignal(bar.confirmed, timeout=1_000):
        bar.end.click()


# --- the window -------------------------------------------------------------------------------------------------------


def test_the_panel_opens_and_compares_sessions_in_the_window(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(FakeGpu(working)))
    window.bridge.queue.pause()
    window.bridge.queue.add(plans(2))
    window.result_bar.waiting.click()
    assert window.panels["queue"].isVisible()
    window.panels["queue"].compare_asked.emit((1, 2))
    qtbot.waitUntil(window.panels["compare"].isVisible, timeout=5_000)
    window.close()
    assert window.quit_bar.isVisible()
    window.quit_bar.end.click()
    qtbot.waitUntil(lambda: not window.isVisible(), timeout=5_000)
