"""A cursor looks; only Enter, Space, a click or a rule chooses. What is exported is never what was only looked at."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fixtures.lab import Lab, filled_session
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from app.views.front.convergence_panel import ConvergencePanel
from app.views.front.front_panel import FrontPanel
from app.views.front.table_panel import TablePanel
from app.views.inspector.answer_bar import ExportButton
from app.views.shared.settings import Settings

ARROWS = (Qt.Key.Key_Home, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_End, Qt.Key.Key_Left)


@pytest.fixture
def front(lab: Lab, panel: FrontPanel) -> FrontPanel:
    lab.grow(filled_session(lab), best=9)
    return panel


def test_looking_around_changes_neither_the_choice_nor_what_is_exported(
    lab: Lab, front: FrontPanel, qtbot: QtBot, tmp_path: Path
) -> None:
    convergence, table = ConvergencePanel(lab.context), TablePanel(lab.context)
    export = ExportButton(lab.context, Settings())
    for widget in (convergence, table, export):
        qtbot.addWidget(widget)
        widget.show()  # a panel that comes to sight
    export.export_into(tmp_path)
    for widget in (front.plot, convergence.plot, table.results):
        widget.setFocus(Qt.FocusReason.TabFocusReason)
        for key in ARROWS:
            qtbot.keyClick(widget, key)
        qtbot.keyClicks(widget, "148")  # in a table Qt goes to the row that begins like that
        widget.hide()
        widget.show()
    for x in range(40, front.plot.width(), 40):
        qtbot.mouseMove(front.plot.viewport(), QPoint(x, front.plot.height() // 2))
    assert (lab.result.index, lab.result.chosen) == (-1, 9)
    assert not table.results.selectionModel().hasSelection(), "nor does the table look as if a row were chosen"
    with qtbot.waitSignal(export.written, timeout=10_000) as signal:
        export.kinds["json"].trigger()
    written = json.loads(signal.args[0][0].read_text())
    assert written["choice"]["rule"] == "max:GFLOPS/W"
    assert written["choice"]["measurement"] == 10


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space])
def test_enter_and_space_choose_the_point_of_the_cursor(lab: Lab, front: FrontPanel, qtbot: QtBot, key: Qt.Key) -> None:
    points = front.points
    assert points is not None
    walk = points.index[points.front[np.argsort(points.x[points.front])]]
    qtbot.keyClick(front.plot, key)
    assert lab.result.index == -1, "the cursor is nowhere yet"
    qtbot.keyClick(front.plot, Qt.Key.Key_Home)
    qtbot.keyClick(front.plot, Qt.Key.Key_Right)
    assert f"Measurement {walk[1] + 1}" in front.plot.accessibleDescription(), "what a screen reader says"
    qtbot.keyClick(front.plot, key)
    assert (lab.result.index, lab.result.way) == (walk[1], "")
    qtbot.keyClick(front.plot, Qt.Key.Key_End)
    assert lab.result.index == walk[1]


def test_a_click_beside_the_points_leaves_the_choice_as_it_is(lab: Lab, front: FrontPanel, qtbot: QtBot) -> None:
    lab.result.select(20, "fastest")
    corner = front.plot.mapFromScene(front.plot.getViewBox().sceneBoundingRect().bottomLeft()) + QPoint(3, -3)
    assert front.plot.point_at(front.plot.mapToScene(corner)) is None
    qtbot.mouseClick(front.plot.viewport(), Qt.MouseButton.LeftButton, pos=corner)
    assert (lab.result.index, lab.result.way) == (20, "fastest")
