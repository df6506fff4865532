"""The course of a session: the best so far, every evaluation, and where each improvement came from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fixtures.lab import OBJECTIVE, Lab, grid_space, measured, plan_for
from PySide6.QtCore import QCoreApplication, QPointF, Qt
from pytestqt.qtbot import QtBot

from app.engine.results.measurement import Depth, State
from app.engine.space.result_table import STATES, ResultTable
from app.views.front.convergence_panel import ConvergencePanel
from app.views.plots.plot_export import as_csv, curves_of

ROWS = (31, 5, 77, 12, 90, 15, 44, 140, 60, 100)  # the last tile of `column` fails


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> ConvergencePanel:
    made = ConvergencePanel(lab.context)
    qtbot.addWidget(made)
    made.resize(640, 360)
    made.show()
    return made


def drawn_by_now() -> None:
    """What has to be drawn is drawn in a turn of its own."""
    QCoreApplication.processEvents()


def searched(lab: Lab, *, cost_s: float = 0.5, rows: tuple[int, ...] = ROWS) -> ResultTable:
    space = grid_space()
    table = ResultTable(space)
    lab.session(table, plan_for(space, OBJECTIVE))
    for row in rows:
        table.append(replace(measured(space, row), cost_s=cost_s))
    lab.grow(table)
    drawn_by_now()
    return table


def drawn(panel: ConvergencePanel) -> dict[str, tuple[list[float], list[float]]]:
    return {curve.name: (curve.x.tolist(), curve.y.tolist()) for curve in curves_of(panel.plot)}


def test_at_first_it_says_what_will_be_here(panel: ConvergencePanel, qtbot: QtBot) -> None:
    assert "Start a session" in panel.plot.note.text()
    qtbot.waitUntil(lambda: not panel.seconds.isEnabled())


def test_it_holds_every_evaluation_and_only_what_bettered_the_best(lab: Lab, panel: ConvergencePanel) -> None:
    table = searched(lab)
    values = table.values("GFLOPS/W")
    ok = table.states() == STATES.index(State.OK)
    best = np.fmax.accumulate(np.where(ok, values, np.nan))
    better = [i for i in range(len(table)) if ok[i] and (i == 0 or not best[i - 1] >= values[i])]
    assert 1 < len(better) < ok.sum() < len(table), "some improve, some do not, some fail"
    curves = drawn(panel)
    assert curves["improvements"][0] == [i + 1 for i in better]
    assert curves["improvements"][1] == pytest.approx([values[i] for i in better])
    points = next(curve for name, curve in curves.items() if name.startswith("points"))
    assert points[0] == [i + 1 for i in np.flatnonzero(ok)]
    assert curves["best so far"][0][-1] == len(table), "it goes on after the last improvement"
    assert "GFLOPS/W" in as_csv(curves_of(panel.plot), [])


def test_it_is_drawn_over_the_time_that_was_spent(lab: Lab, panel: ConvergencePanel) -> None:
    searched(lab, cost_s=0.5)
    first = drawn(panel)["improvements"][0]
    panel.seconds.click()
    assert drawn(panel)["improvements"][0] == pytest.approx([0.5 * at for at in first])
    searched(lab, cost_s=0.0)
    assert not panel.seconds.isEnabled()
    assert "not known" in panel.seconds.toolTip()
    assert panel.evaluations.isChecked()
    assert drawn(panel)["improvements"][0] == first


def test_what_was_timed_first_has_its_place_where_it_was_measured(lab: Lab, panel: ConvergencePanel) -> None:
    space = grid_space()
    rows = (44, 5, 12, 60, 90)
    table = ResultTable(space)
    lab.session(table, plan_for(space, OBJECTIVE))
    for row in rows:
        table.append(replace(measured(space, row), depth=Depth.TIME, values={"time_s": 1.0}, cost_s=0.1))
    for row in (12, 44, 90):
        table.append(replace(measured(space, row), cost_s=0.5))
        lab.grow(table)
        drawn_by_now()
    figures = [measured(space, row).values["GFLOPS/W"] for row in (12, 44, 90)]
    points = next(curve for name, curve in drawn(panel).items() if name.startswith("points"))
    assert (points[0], points[1]) == ([1, 2, 3], pytest.approx(figures))
    assert panel.history is not None
    first = panel.history.improvements[0]
    assert (first.place, first.index, table.rows()[first.index]) == (0, 2, 12)
    assert panel.words.text().startswith(f"Evaluation {panel.history.improvements[-1].place + 1} ")
    lab.result.select(first.index)
    assert panel.words.text().startswith("Evaluation 1 (600 ms)"), "with the time that the second row took to be timed"


def test_each_improvement_says_where_it_came_from(lab: Lab, panel: ConvergencePanel, qtbot: QtBot) -> None:
    table = searched(lab)
    assert panel.history is not None
    found = panel.history.improvements
    newest, before = found[-1], found[-2]
    assert panel.words.text().startswith(f"Evaluation {newest.index + 1} ")
    assert f"better than evaluation {before.index + 1} by " in panel.words.text()
    old, new = (table.measurement(each.index).configuration for each in (before, newest))
    for name in ("tile", "layout"):
        assert (f"{name} {old[name]} → {new[name]}" in panel.words.text()) == (old[name] != new[name])
    lab.result.select(found[0].index)
    assert panel.words.text().endswith("the first that succeeded")


def test_arrow_keys_point_at_improvements_and_clicks_and_enter_choose_them(
    lab: Lab, panel: ConvergencePanel, qtbot: QtBot
) -> None:
    searched(lab)
    assert panel.history is not None
    indices = [improvement.index for improvement in panel.history.improvements]
    panel.plot.setFocus()
    pointed = []
    panel.plot.pointed.connect(lambda improvement: pointed.append(improvement.index))
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Left):
        qtbot.keyClick(panel.plot, key)
    assert pointed == [indices[0], indices[1], indices[0]]
    assert lab.result.index == -1
    qtbot.keyClick(panel.plot, Qt.Key.Key_Return)
    assert lab.result.index == indices[0]
    last = panel.history.improvements[-1]
    at = panel.plot.getViewBox().mapViewToScene(QPointF(last.index + 1, last.value))
    qtbot.mouseClick(panel.plot.viewport(), Qt.MouseButton.LeftButton, pos=panel.plot.mapFromScene(at))
    assert lab.result.index == last.index


def test_what_came_while_it_was_out_of_sight_is_there_when_it_is_seen(
    qtbot: QtBot, lab: Lab, panel: ConvergencePanel
) -> None:
    table = searched(lab)
    panel.hide()
    table.append(replace(measured(table.space, 65), cost_s=0.5))
    lab.grow(table)
    panel.show()
    qtbot.waitUntil(lambda: panel.history is not None and len(panel.history) == len(table))


def test_another_session_begins_with_an_empty_plot(lab: Lab, panel: ConvergencePanel) -> None:
    searched(lab)
    space = grid_space()
    lab.session(ResultTable(space), plan_for(space, OBJECTIVE))
    drawn_by_now()
    assert drawn(panel) == {}
    assert panel.plot.note.text() == "No evaluation has succeeded yet."
