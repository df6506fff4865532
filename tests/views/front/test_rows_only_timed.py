"""Configurations that were only timed are shown as that, and where they are once they are measured in full."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from fixtures.lab import OBJECTIVE, Lab, grid_space, measured, plan_for
from pytestqt.qtbot import QtBot

from app.engine.results.measurement import Depth, Measurement
from app.engine.space.result_table import ResultTable
from app.views.front.convergence_panel import ConvergencePanel
from app.views.front.front_panel import FrontPanel
from app.views.front.table_panel import TablePanel
from app.views.understand.analysis_panel import AnalysisPanel

AT_TIME = ("time_s", "GFLOP/s")


def timed(whole: Measurement) -> Measurement:
    values = {name: value for name, value in whole.values.items() if name in AT_TIME}
    return replace(whole, values=values, depth=Depth.TIME)


def test_table_front_and_convergence_follow_when_timed_rows_are_measured(lab: Lab, qtbot: QtBot) -> None:
    table_panel, front, convergence = TablePanel(lab.context), FrontPanel(lab.context), ConvergencePanel(lab.context)
    for panel in (table_panel, front, convergence):
        qtbot.addWidget(panel)
        panel.show()
    space = grid_space()
    table = ResultTable(space)
    lab.session(table, plan_for(space, OBJECTIVE))
    rows = [measured(space, row) for row in (5, 77, 12)]
    table.extend([rows[0], timed(rows[1]), timed(rows[2])])
    lab.grow(table, best=0)

    def states() -> list[str]:
        model = table_panel.results.model()
        return [model.index(row, 1).data() for row in range(model.rowCount())]

    def improvements() -> list[int]:
        return (
            []
            if convergence.history is None
            else [improvement.index for improvement in convergence.history.improvements]
        )

    def on_front() -> list[int]:
        return [] if front.points is None else sorted(np.asarray(front.points.index).tolist())

    assert states() == ["ok", "timed", "timed"]
    qtbot.waitUntil(lambda: on_front() == [0])
    assert front.count.text().startswith("1 of 1 measurement · 2 only timed · 1 on the front")
    qtbot.waitUntil(lambda: improvements() == [0])
    table.append(rows[2])
    lab.grow(table, best=0)
    assert states() == ["ok", "timed", "ok"]
    qtbot.waitUntil(lambda: on_front() == [0, 2])
    better = rows[2].values["GFLOPS/W"] > rows[0].values["GFLOPS/W"]
    qtbot.waitUntil(lambda: improvements() == ([0, 2] if better else [0]))
    for panel in (table_panel, front, convergence):
        panel.close()


def test_the_analysis_says_how_many_were_only_timed(lab: Lab, qtbot: QtBot) -> None:
    panel = AnalysisPanel(lab.context)
    qtbot.addWidget(panel)
    panel.show()
    space = grid_space()
    table = ResultTable(space)
    rows = [measured(space, row) for row in range(30)]
    table.extend([*rows[:20], *(timed(row) for row in rows[20:])])
    lab.session(table, plan_for(space, OBJECTIVE))
    lab.grow(table, best=0)
    qtbot.waitUntil(lambda: "20 measurements and 10 only timed of" in panel.state.text(), timeout=20_000)
    panel.shutdown()
