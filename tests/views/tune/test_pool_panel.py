"""Several boards share a session, from the window: chosen, shown while they work, and left again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fixtures.fake_pool import FakePool
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, measured, plan_for
from fixtures.tuning_lab import TuningLab
from PySide6.QtWidgets import QDialogButtonBox
from pytestqt.qtbot import QtBot

from app.base.errors import WattridgeError
from app.base.paths import resources
from app.engine.control.guard import DeviceGuard
from app.engine.report.reproduce import run_command
from app.engine.results.state import SessionState
from app.engine.runner.pool.pool import STATUS, BoardStatus, Doing, PoolStatus
from app.engine.session import events
from app.engine.session.pool import opening
from app.engine.session.pool.opening import OpenedPool
from app.engine.session.pool.worker import BoardWork
from app.engine.space.result_table import BOARD_NUMBER, ResultTable
from app.engine.specification.plan import SessionPlan
from app.sensors.clock import VirtualClock
from app.sensors.gpu import Gpu
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.front.front_panel import FrontPanel
from app.views.front.table_panel import TablePanel
from app.views.shared.context import Context
from app.views.shared.settings import Settings
from app.views.tune.pool_panel import PoolPanel
from app.views.tune.runs_on import BoardsDialog, SchedulerDialog
from app.views.tune.tune_panel import TunePanel

SPACE = grid_space()
GEMM = resources() / "examples" / "gemm.toml"
OFFERED = [("GPU-1", "0: H200"), ("GPU-2", "1: H200"), ("simulated:a100", "A100 (simulated)"), ("host", "CPU")]


def board(key: str, doing: Doing = Doing.WAITING, **facts: Any) -> BoardStatus:
    return BoardStatus(key, f"H200 on node7 #0 ({key})", "node7", doing, **facts)


def side(key: str, twin: str = "a100") -> BoardWork:
    gpu = SimulatedGpu(load_twin(twin), seed=len(key), clock=VirtualClock())
    return BoardWork(gpu, DeviceGuard(gpu), host="here", key=key)


class Opened:
    """What stands in for starting workers and for connecting; remembers what was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[Any] = []
        self.pool = FakePool(side("sim-a"), side("sim-b"), all_open_first=True)
        self.closed = 0
        self.refused: WattridgeError | None = None
        monkeypatch.setattr(opening, "open_local_pool", lambda selectors, **_: self._open("--gpu", ",".join(selectors)))
        monkeypatch.setattr(opening, "open_scheduler_pool", lambda address, *_, **__: self._open("--pool", address))

    def _open(self, *options: str) -> OpenedPool:
        self.asked.append(options)
        if self.refused is not None:
            raise self.refused
        where = "this computer" if options[0] == "--gpu" else options[1]
        return OpenedPool(self.pool, where, options, self._close)

    def _close(self) -> None:
        self.closed += 1


class Window(TuningLab):
    """The panels that have to do with it, over the real engine."""

    def __init__(self, qtbot: QtBot, gpu: Gpu) -> None:
        super().__init__(gpu)
        self.tune, self.panel = TunePanel(self.context), PoolPanel(self.context)
        for each in (self.tune, self.panel):
            qtbot.addWidget(each)
            each.show()

    def close(self) -> None:
        self.tune.shutdown()
        self.panel.shutdown()
        super().close()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    made = Opened(monkeypatch)
    yield made
    made.pool.close()
    for each in list(made.pool.sides.values()):
        each.close()  # type: ignore[attr-defined]  # they are `BoardWork`


@pytest.fixture
def window(qtbot: QtBot, opened: Opened) -> Iterator[Window]:
    gpu = SimulatedGpu(load_twin("a100"), seed=3, clock=VirtualClock())
    made = Window(qtbot, gpu)
    yield made
    made.close()
    gpu.close()


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> PoolPanel:
    made = PoolPanel(lab.context)
    qtbot.addWidget(made)
    made.resize(300, 480)
    made.show()
    return made


def cells(panel: PoolPanel, column: str) -> list[str]:
    model = panel.table.model()
    heads = [
        model.headerData(index, panel.table.horizontalHeader().orientation()) for index in range(model.columnCount())
    ]
    return [model.index(row, heads.index(column)).data() for row in range(model.rowCount())]


def lines(panel: PoolPanel) -> list[str]:
    return [panel.happened.item(index).text() for index in range(panel.happened.count())]


def pooled_plan(**facts: Any) -> SessionPlan:
    return plan_for(SPACE, OBJECTIVE, pool=("--gpu", "0,1"), **facts)


# --- which boards -----------------------------------------------------------------------------------------------------


def test_nothing_is_connected_to_before_it_is_asked_for(window: Window, opened: Opened, qtbot: QtBot) -> None:
    Settings().pool = ("tls://10.0.0.1:8786", "/certificates")
    window.tune.open(GEMM)
    qtbot.waitUntil(lambda: window.tune.draft is not None, timeout=20_000)
    window.tune.runs_on.ask_scheduler()
    dialog = window.tune.runs_on.dialog
    assert isinstance(dialog, SchedulerDialog)
    assert (dialog.address.text(), dialog.folder.text()) == ("tls://10.0.0.1:8786", "/certificates")
    dialog.reject()
    assert opened.asked == []
    assert window.tune.runs_on.choice.text() == "The shown board"
    assert window.panel.empty.isVisibleTo(window.panel)


def test_a_session_runs_on_the_boards_that_were_chosen_and_one_that_dies_costs_nothing(
    window: Window, opened: Opened, qtbot: QtBot
) -> None:
    tune, panel, context = window.tune, window.panel, window.context
    tune.open(GEMM)
    context.pool.use_boards(["simulated:a100", "simulated:a100#1"])
    assert not tune.runs_on.here.isEnabled(), "while it is being opened"
    qtbot.waitUntil(lambda: tune.draft is not None and tune.draft.plan.pool is not None, timeout=20_000)
    assert tune.runs_on.choice.text() == "2 boards of this computer"
    assert "sgemm on 2 boards of this computer" in tune.header.text()
    assert cells(panel, "State") == ["waiting", "waiting"]
    assert run_command(tune.plan_as_set_up()).words[2:4] == ("--gpu", "simulated:a100,simulated:a100#1")
    tune.form.strategy.setCurrentIndex(tune.form.strategy.findData("random_sample"))
    tune.form.evaluations.setValue(60)
    grown = context.bridge.signal(events.MeasurementsAdded)
    with qtbot.waitSignal(grown, timeout=60_000, check_params_cb=lambda event: event.length >= 20):
        tune.start.click()
    opened.pool.kill("sim-b")
    assert not tune.runs_on.shown.isEnabled(), "the boards stay while the session runs"
    context.pool.leave()
    assert context.pool.open
    qtbot.waitUntil(lambda: tune.state is SessionState.DONE, timeout=60_000)
    table = context.result.table
    assert table is not None
    assert len(set(table.rows().tolist())) == len(table) == 60
    assert "sim-a" in {table.measurement(index).board for index in range(60)}
    assert (cells(panel, "Board"), cells(panel, "Lost")) == (["sim-a", "sim-b"], ["0", "1"])
    assert cells(panel, "State")[1] == "left: its worker died"

    def done() -> list[int]:
        return [int(text) for text in cells(panel, "Done")]

    qtbot.waitUntil(lambda: sum(done()) >= 60, timeout=20_000)  # those that both measured count for both
    assert done()[1] > 0
    assert any("sim-b" in line and "left the pool" in line for line in lines(panel))
    assert panel.decided.text().startswith("Decided on sim-a: "), "the other one is gone"
    assert panel.decided.isVisibleTo(panel)
    assert not window.faults
    tune.runs_on.shown.trigger()
    qtbot.waitUntil(lambda: opened.closed == 1, timeout=20_000)
    assert tune.runs_on.choice.text() == "The shown board"
    qtbot.waitUntil(lambda: tune.draft is not None and tune.draft.plan.pool is None, timeout=20_000)
    assert cells(panel, "Lost") == ["0", "1"], "what is stored of the session that is shown"
    assert "was measured on these boards" in panel.state.text()


def test_boards_that_cannot_be_had_are_one_line_and_the_shown_board_stays(
    window: Window, opened: Opened, qtbot: QtBot
) -> None:
    opened.refused = WattridgeError("the scheduler cannot be reached", "tls://10.0.0.9:8786", "start it")
    with qtbot.waitSignal(window.context.pool.failed, timeout=20_000):
        window.context.pool.connect_to("tls://10.0.0.9:8786", Path("/certificates"))
    qtbot.waitUntil(lambda: bool(window.faults), timeout=20_000)
    assert [(fault.what, fault.remedy) for fault in window.faults] == [
        ("tls://10.0.0.9:8786: the scheduler cannot be reached", "start it")
    ]
    assert not window.context.pool.open
    assert window.tune.runs_on.here.isEnabled()
    assert any("cannot be reached" in line for line in lines(window.panel))


def test_boards_that_are_being_opened_are_not_waited_for_once_the_shown_one_is_chosen(
    window: Window, opened: Opened, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, stop: threading.Event, **__: object) -> OpenedPool:
        assert stop.wait(60)
        raise WattridgeError("nobody waits for the pool any more", "tls://10.0.0.9:8786")

    monkeypatch.setattr(opening, "open_scheduler_pool", never)
    pool, runs_on = window.context.pool, window.tune.runs_on
    pool.connect_to("tls://10.0.0.9:8786", None)
    assert runs_on.choice.text() == "Connecting to tls://10.0.0.9:8786 …"
    runs_on.shown.trigger()
    qtbot.waitUntil(lambda: not pool.opening, timeout=20_000)
    assert runs_on.choice.text() == "The shown board"
    qtbot.wait(20)
    assert not window.faults, "the user chose so"
    pool.use_boards(["0", "1"])
    qtbot.waitUntil(lambda: pool.open, timeout=20_000)


def test_of_a_pool_with_several_models_the_boards_of_one_share_a_session(
    window: Window, opened: Opened, qtbot: QtBot
) -> None:
    opened.pool.join(side("sim-h", "h200"))
    runs_on, pool = window.tune.runs_on, window.context.pool
    pool.connect_to("tls://10.0.0.1:8786", None)
    qtbot.waitUntil(lambda: pool.open, timeout=20_000)
    assert "A100" in pool.model, "the model of most boards"
    states = dict(zip(cells(window.panel, "Board"), cells(window.panel, "State"), strict=True))
    assert states == {"sim-a": "waiting", "sim-b": "waiting", "sim-h": "takes no part: it is of another model"}
    runs_on.choice.menu().aboutToShow.emit()
    next(model for model in runs_on.models if "H200" in model.text()).trigger()
    assert runs_on.choice.text() == "1 board of a pool"
    assert [each.key for each in pool.gpu().boards] == ["sim-h"]
    assert pool.gpu().options == ("--pool", "tls://10.0.0.1:8786", "--model", pool.model)


def test_what_waits_for_boards_that_are_left_is_dropped_from_the_queue(window: Window, qtbot: QtBot) -> None:
    pool, queue = window.context.pool, window.bridge.queue
    pool.use_boards(["0", "1"])
    qtbot.waitUntil(lambda: pool.open, timeout=20_000)
    queue.pause()
    queue.add([pooled_plan(origin={"gpu": "pool"}), plan_for(SPACE, OBJECTIVE, origin={"gpu": "fake:0"})])
    pool.leave()
    qtbot.waitUntil(lambda: len(queue.waiting) == 1, timeout=20_000)
    assert queue.waiting[0].plan.origin["gpu"] == "fake:0"


def test_two_boards_at_least_are_chosen(qtbot: QtBot) -> None:
    dialog = BoardsDialog(OFFERED, 10.0)
    qtbot.addWidget(dialog)
    use = dialog.buttons.button(QDialogButtonBox.StandardButton.Ok)
    assert dialog.selectors == ["GPU-1", "GPU-2"], "the real ones are offered first"
    dialog.real.item(0).setCheckState(dialog.real.item(0).checkState().Unchecked)
    assert not use.isEnabled()
    dialog.simulated.setValue(2)
    with qtbot.waitSignal(dialog.chosen) as chosen:
        use.click()
    assert chosen.args == [["GPU-2", "simulated:a100", "simulated:a100#1"], 10.0]


def test_a_pool_is_named_by_its_address(qtbot: QtBot) -> None:
    dialog = SchedulerDialog()
    qtbot.addWidget(dialog)
    connect = dialog.buttons.button(QDialogButtonBox.StandardButton.Ok)
    dialog.address.setText(" ")
    assert not connect.isEnabled()
    dialog.address.setText("tls://10.0.0.1:8786")
    with qtbot.waitSignal(dialog.chosen) as chosen:
        connect.click()
    assert chosen.args == ["tls://10.0.0.1:8786", ""]


def test_boards_that_come_and_leave_are_seen_while_no_session_runs_and_a_recording_needs_none(
    window: Window, opened: Opened, qtbot: QtBot
) -> None:
    pool, tune = window.context.pool, window.tune
    pool.use_boards(["0", "1"])
    qtbot.waitUntil(lambda: pool.open, timeout=20_000)
    opened.pool.lose("sim-a")
    qtbot.waitUntil(lambda: tune.runs_on.choice.text() == "1 board of this computer", timeout=20_000)
    assert any("sim-a left the pool" in line for line in lines(window.panel))
    opened.pool.lose("sim-b")
    qtbot.waitUntil(lambda: cells(window.panel, "State") == ["left: its worker left"] * 2, timeout=20_000)
    tune.open(GEMM)
    qtbot.waitUntil(lambda: any("the pool has no boards" in fault.what for fault in window.faults), timeout=20_000)
    assert tune.draft is None
    tune.open(resources() / "recordings" / "h200-sgemm-session.json.gz")
    qtbot.waitUntil(lambda: tune.draft is not None and tune.draft.replay, timeout=20_000)


def test_boards_that_get_ready_for_a_session_stay_before_it_has_begun(lab: Lab, panel: PoolPanel) -> None:
    plan = pooled_plan()
    lab.bridge.submit(events.Start(plan))
    assert lab.context.pool.busy
    lab.engine.tell(events.PoolReported(PoolStatus((board("GPU-1", Doing.BUSY), board("GPU-2", Doing.PREPARING)))))
    assert cells(panel, "State") == ["busy with another session", "getting ready"]
    lab.engine.tell(events.StartFailed(plan, "no board of the pool got ready"))
    assert not lab.context.pool.busy


# --- what they do -----------------------------------------------------------------------------------------------------


def test_what_the_runner_reports_is_shown_board_by_board(lab: Lab, panel: PoolPanel) -> None:
    plan = pooled_plan()
    lab.session(ResultTable(SPACE), plan)
    status = PoolStatus(
        (
            board("GPU-1", Doing.MEASURING, row=7, next_rows=3, measured=1200, failed=2, worked_s=8.0, there_s=10.0),
            board("GPU-2", Doing.LEFT, reason="its worker died", measured=5, lost=1, worked_s=2.0, there_s=10.0),
            board("GPU-3", Doing.BUSY),
        )
    )
    lab.engine.tell(events.PoolReported(status, f"{status.boards[1].label} left the pool: its worker died"))
    assert cells(panel, "Board") == ["GPU-1", "GPU-2", "GPU-3"]
    assert cells(panel, "State") == ["row 7", "left: its worker died", "busy with another session"]
    assert cells(panel, "Done") == ["1\u202f200", "5", "0"]
    assert cells(panel, "Works") == ["80 %", "20 %", "–"]
    assert cells(panel, "Lost") == ["0", "1", "0"]
    words = panel.totals.text()
    for part in ("2 of 3 boards", "1 measuring", "1\u202f205 results, 2 of them failed", "50 % of the time", "once"):
        assert part in words
    tip = panel.table.model().index(0, 1).data(3)  # Qt.ToolTipRole
    assert "graphics_clock_mhz=" in tip, "the configuration that it measures"
    assert "3 rows after it" in tip
    assert lines(panel)[0].endswith("GPU-2 left the pool: its worker died")


def test_rows_stay_in_order_while_boards_join_and_can_be_sorted(lab: Lab, panel: PoolPanel) -> None:
    lab.session(ResultTable(SPACE), pooled_plan())
    for count in (1, 2, 3):
        boards = tuple(board(f"GPU-{index}", measured=10 - index) for index in range(count))
        lab.engine.tell(events.PoolReported(PoolStatus(boards)))
    assert cells(panel, "Board") == ["GPU-0", "GPU-1", "GPU-2"]
    panel.table.sortByColumn(2, panel.table.horizontalHeader().sortIndicatorOrder().AscendingOrder)
    assert cells(panel, "Done") == ["8", "9", "10"]


def test_a_thousand_boards_are_shown_and_what_is_hidden_is_not_made(lab: Lab, panel: PoolPanel) -> None:
    lab.session(ResultTable(SPACE), pooled_plan())
    panel.hide()
    status = PoolStatus(tuple(board(f"GPU-{index}") for index in range(1000)))
    lab.engine.tell(events.PoolReported(status))
    assert panel.boards.rowCount() == 0
    panel.show()
    assert panel.boards.rowCount() == 1000


@pytest.mark.parametrize("stored", ["[", '[{"board": "x"}]', '{"a": 1}'])
def test_a_damaged_account_of_a_stored_session_is_none(lab: Lab, panel: PoolPanel, stored: str) -> None:
    lab.session(ResultTable(SPACE), plan_for(SPACE, OBJECTIVE, origin={STATUS: stored}))
    assert panel.boards.rowCount() == 0


# --- front and table --------------------------------------------------------------------------------------------------


def on_boards(*keys: str) -> ResultTable:
    """Measurements that these boards made in turns."""
    table = ResultTable(SPACE)
    for row in range(24):
        found, number = measured(SPACE, row), row % len(keys)
        table.extend([replace(found, board=keys[number])])
    return table


@pytest.fixture
def made(qtbot: QtBot, lab: Lab) -> Callable[..., Any]:
    def make(kind: Callable[[Context], Any]) -> Any:
        panel = kind(lab.context)
        qtbot.addWidget(panel)
        panel.resize(700, 500)
        panel.show()
        return panel

    return make


def test_points_are_coloured_by_board_each_with_a_marker_and_a_name(lab: Lab, made: Callable[..., Any]) -> None:
    front = made(FrontPanel)
    lab.session(on_boards("GPU-11111111-a", "simulated:a100#1@node7/2", "GPU-33333333-b"), plan_for(SPACE, OBJECTIVE))
    lab.grow(lab.result.table)
    colour = front.figures.colour
    colour.setCurrentIndex(colour.findData(BOARD_NUMBER))
    assert colour.currentText() == "Board"
    assert front.key.coding.discrete
    assert front.key.labels == ["GPU-11111111", "node7 #2", "GPU-33333333"]


def test_the_table_says_which_board_measured_each_where_there_are_several(lab: Lab, made: Callable[..., Any]) -> None:
    shown = made(TablePanel)
    lab.session(filled(SPACE, 5), plan_for(SPACE, OBJECTIVE))
    model = shown.results.model()
    heads = [
        model.headerData(index, shown.results.horizontalHeader().orientation()) for index in range(model.columnCount())
    ]
    assert "Board" not in heads
    lab.session(on_boards("GPU-11111111-a", "simulated:a100#1@node7/2"), plan_for(SPACE, OBJECTIVE))
    heads = [
        model.headerData(index, shown.results.horizontalHeader().orientation()) for index in range(model.columnCount())
    ]
    at = heads.index("Board")
    assert [model.index(row, at).data() for row in range(2)] == ["GPU-11111111", "node7 #2"]
