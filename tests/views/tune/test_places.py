"""No control moves under the pointer: what a session says and does leaves every button where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for, progress
from PySide6.QtCore import QCoreApplication, QPoint, QRect
from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QComboBox, QWidget
from pytestqt.qtbot import QtBot

from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.session.load import load_specification
from app.engine.specification.examples import examples
from app.engine.store.database import Store
from app.engine.store.record import Label
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.library.sessions_panel import SessionsPanel
from app.views.tune.tune_panel import TunePanel

Places = dict[QWidget, QRect]
_CONTROLS = (QAbstractButton, QComboBox, QAbstractSpinBox)


def places(panel: QWidget) -> Places:
    """Where every control in sight lies."""
    for _ in range(3):  # what was asked to be laid out is
        QCoreApplication.processEvents()
    return {
        each: QRect(each.mapTo(panel, QPoint()), each.size())
        for each in panel.findChildren(QWidget)
        if isinstance(each, _CONTROLS) and each.isVisible() and not isinstance(each.parent(), _CONTROLS)
    }


def moved(before: Places, after: Places) -> dict[str, tuple[QRect, QRect]]:
    """The controls that were in sight before and are elsewhere now, by what they are called."""
    return {
        f"{type(each).__name__} {getattr(each, 'text', str)() or each.accessibleName()}": (place, after[each])
        for each, place in before.items()
        if each in after and after[each] != place
    }


@pytest.mark.parametrize("width", [380, 620, 1100])
def test_no_control_of_tune_moves_before_during_and_after_a_session(qtbot: QtBot, width: int) -> None:
    gpu = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    lab = Lab(gpu=gpu)
    panel = TunePanel(lab.context)
    qtbot.addWidget(panel)
    panel.resize(width, 700)
    panel.show()
    panel.open(next(path for path in examples() if path.stem == "gemm"))
    qtbot.waitUntil(lambda: panel.draft is not None, timeout=20_000)
    before = places(panel)
    assert {panel.start, panel.pause, panel.stop, panel.form.strategy} <= before.keys()
    table = filled(grid_space(), 30)

    def state(which: SessionState, reason: str = "") -> None:
        lab.engine.tell(events.SessionChanged(progress(table, which, best=3), reason))

    steps: dict[str, Callable[[], object]] = {
        "started": lambda: lab.session(table, plan_for(table.space, OBJECTIVE)),
        "preparing": lambda: lab.engine.tell(events.Preparing("characterising the power sensor", 12.0, 65.0)),
        "measuring": lambda: lab.grow(table, best=3),
        "remark": lambda: lab.engine.tell(events.SessionRemark(1, "Most efficient near 1035 MHz: " + 30 * "words ")),
        "pausing": panel.pause.click,
        "paused": lambda: state(SessionState.PAUSED),
        "resuming": panel.pause.click,
        "running": lambda: state(SessionState.RUNNING),
        "stopping": panel.stop.click,
        "stopped": lambda: state(SessionState.STOPPED, "stopped"),
        "failed": lambda: state(SessionState.FAILED, "the board was lost: " + 30 * "words "),
    }
    for name, step in steps.items():
        step()
        now = places(panel)
        assert before.keys() <= now.keys(), name
        assert moved(before, now) == {}, name
    panel.shutdown()


def test_start_stays_where_it_is_when_another_file_is_opened(qtbot: QtBot) -> None:
    lab = Lab(gpu=SimulatedGpu(load_twin("a100"), clock=VirtualClock()))
    panel = TunePanel(lab.context)
    qtbot.addWidget(panel)
    panel.resize(420, 700)
    panel.show()
    row = (panel.start, panel.pause, panel.stop)

    def of_row() -> Places:
        return {each: place for each, place in places(panel).items() if each in row}

    before = of_row()
    for path in (path for path in examples() if (kernel := load_specification(path).kernel) and kernel.profile):
        with qtbot.waitSignal(panel.form.draft_shown, timeout=20_000):
            panel.open(path)
        assert of_row() == before, path.stem
    panel.shutdown()


@pytest.fixture
def sessions(qtbot: QtBot) -> Iterator[SessionsPanel]:
    with Store() as store:
        for title in ("gemm", "stencil"):
            table = filled(grid_space(), 6)
            session = store.create_session(plan_for(table.space, OBJECTIVE, title=title))
            store.append(session, [table.measurement(index) for index in range(6)])
            store.finish(session, SessionState.DONE, "the budget is used up")
        store.label(1, Label("a name", ("tag",), "notes over\nseveral\nlines"))
        made = SessionsPanel(Lab(store=store).context)
        qtbot.addWidget(made)
        made.resize(480, 640)
        made.show()
        qtbot.waitUntil(lambda: not made.busy and made.model.total == 2, timeout=5_000)
        yield made
        made.shutdown()


def test_no_control_of_sessions_moves_whatever_is_selected_said_or_undone(
    qtbot: QtBot, sessions: SessionsPanel
) -> None:
    before = places(sessions)

    def settled() -> Places:
        qtbot.waitUntil(lambda: not sessions.busy, timeout=5_000)
        return places(sessions)

    for chosen in ({1}, {2}, {1, 2}):
        sessions.table.clearSelection()
        sessions.choose(chosen)
        assert moved(before, settled()) == {}
    sessions.table.clearSelection()
    sessions.choose({1})
    for button in (sessions.favourite, sessions.copy, sessions.delete):
        button.click()
        assert moved(before, settled()) == {}, button.text()
    sessions.undo.click()
    assert moved(before, settled()) == {}
    sessions.search.setText("nothing is called so")
    assert moved(before, settled()) == {}
