"""The table's panel: it is of the current result, and no row of it moves when rows are marked."""

from __future__ import annotations

from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for
from pytestqt.qtbot import QtBot

from app.views.front.table_panel import TablePanel


def test_it_shows_the_result_and_what_is_added(qtbot: QtBot) -> None:
    lab = Lab()
    panel = TablePanel(lab.context)
    qtbot.addWidget(panel)
    panel.show()
    table = filled(grid_space(), 30)
    lab.session(table, plan_for(table.space, OBJECTIVE))
    assert panel.results.results.rowCount() == 30
    table.extend(filled(table.space).measurement(row) for row in range(30, 40))
    lab.grow(table)
    assert panel.results.results.rowCount() == 40


def test_rows_stay_where_they_are_when_some_are_marked(qtbot: QtBot) -> None:
    lab = Lab()
    panel = TablePanel(lab.context)
    qtbot.addWidget(panel)
    panel.resize(700, 400)
    panel.show()
    table = filled(grid_space(), 30)
    lab.session(table, plan_for(table.space, OBJECTIVE))
    qtbot.wait(20)
    before = panel.results.geometry()
    lab.result.brush([1, 2, 3])
    qtbot.wait(20)
    assert panel.marked.isVisible()
    assert panel.results.geometry() == before
