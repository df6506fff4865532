"""A session corrects its figures at its end: every view shows the new ones, and what the user chose stays chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fixtures.lab import Lab, grid_space, measured, plan_for, progress
from pytestqt.qtbot import QtBot

from app.engine.results.objectives import Goal, Objective
from app.engine.session.events import FiguresRestated
from app.engine.space.result_table import ResultTable
from app.views.front.convergence_panel import ConvergencePanel
from app.views.front.table_panel import TablePanel

OBJECTIVE = Objective(Goal("energy_j", maximise=False))


def tables() -> tuple[ResultTable, ResultTable]:
    """Three measurements, and the same with other energies, of which another is the least."""
    space = grid_space()
    both = ResultTable(space), ResultTable(space)
    for table, energies_j in zip(both, ((3.0, 1.0, 2.0), (1.5, 2.5, 2.0)), strict=True):
        for row, energy_j in enumerate(energies_j):
            one = measured(space, row)
            table.append(replace(one, values={**one.values, "energy_j": energy_j}))
    return both


def cells(panel: TablePanel) -> list[list[Any]]:
    model = panel.results.model()
    return [[model.index(row, index).data() for index in range(model.columnCount())] for row in range(model.rowCount())]


def test_the_result_has_the_new_figures_and_keeps_what_is_chosen_marked_and_pinned(lab: Lab) -> None:
    before, after = tables()
    changes: list[int] = []
    plan = plan_for(before.space, OBJECTIVE)
    lab.session(before, plan)
    lab.grow(before, best=1)
    lab.result.select(2)
    lab.result.pin(0)
    lab.result.brush([0, 2])
    lab.result.changed.connect(changes.append)
    stated = replace(plan, origin={**plan.origin, "condition": "50 °C"})
    lab.engine.tell(FiguresRestated(1, stated, after, progress(after, best=0)))
    assert lab.result.table is after
    assert lab.result.plan is stated
    assert (lab.result.best, lab.result.index, lab.result.pins) == (0, 2, (0,))
    assert lab.result.rows.tolist() == [0, 2]
    assert changes == [2], "whoever shows the chosen one looks at it again"


def test_another_session_that_is_shown_meanwhile_stays(lab: Lab) -> None:
    before, after = tables()
    plan = plan_for(before.space, OBJECTIVE)
    lab.session(before, plan)
    lab.engine.tell(FiguresRestated(2, plan, after, progress(after)))
    assert lab.result.table is before


def test_table_and_convergence_show_them(lab: Lab, qtbot: QtBot) -> None:
    panels = TablePanel(lab.context), ConvergencePanel(lab.context)
    for panel in panels:
        qtbot.addWidget(panel)
        panel.show()
    before, after = tables()
    plan = plan_for(before.space, OBJECTIVE)
    lab.session(before, plan)
    lab.grow(before, best=1)
    lab.result.select(2)
    table, convergence = panels
    shown = cells(table)
    assert len(shown) == 3
    lab.engine.tell(FiguresRestated(1, plan, after, progress(after, best=0)))

    def energies() -> list[float]:
        assert convergence.history is not None
        return list(convergence.history.table.values("energy_j"))

    qtbot.waitUntil(lambda: energies() == [1.5, 2.5, 2.0])
    changed = [[new != old for new, old in zip(*rows, strict=True)] for rows in zip(cells(table), shown, strict=True)]
    assert [any(row) for row in changed] == [True, True, False], "the third kept its energy"
    assert table.results.currentIndex().row() == 2
    for panel in panels:
        panel.close()
