"""A session without its objective's figure shows the reason, and not a front of other figures."""

from __future__ import annotations

from dataclasses import replace

from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for, progress

from app.engine.analysis.health import health_of
from app.engine.results.measurement import Measurement
from app.engine.results.objectives import Goal, Objective
from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.space.result_table import ResultTable
from app.views.front.front_panel import FrontPanel

BY_ENERGY = Objective(Goal("energy_j", False), (Goal("time_s", False), Goal("energy_j", False)))


def without_energy(measurement: Measurement) -> Measurement:
    values = {name: value for name, value in measurement.values.items() if name == "time_s"}
    return replace(measurement, values=values or {"time_s": 1.0}, message="no power was reported")


def end_without_energy(lab: Lab) -> ResultTable:
    whole = filled(grid_space(), 20)
    table = ResultTable(whole.space)
    for index in range(len(whole)):
        table.append(without_energy(whole.measurement(index)))
    lab.session(table, plan_for(table.space, BY_ENERGY))
    lab.grow(table)
    health = health_of(table, "energy_j", {})
    ended = replace(progress(table, SessionState.FAILED), health=health)
    lab.engine.tell(events.SessionChanged(ended, health.missing))
    return table


def test_the_reason_stands_in_place_of_a_front_of_time_against_time(lab: Lab, panel: FrontPanel) -> None:
    end_without_energy(lab)
    assert panel.points is None
    assert panel.plot.note.text().startswith("energy_j is missing in ")
    assert "no power was reported" in panel.plot.note.text()


def test_figures_that_the_user_chooses_are_shown_all_the_same(lab: Lab, panel: FrontPanel) -> None:
    end_without_energy(lab)
    choice = panel.figures.x_figure
    other = next(index for index in range(choice.count()) if index != choice.currentIndex())
    choice.setCurrentIndex(other)
    assert panel.points is not None
    assert not panel.plot.note.isVisible()


def test_another_session_begins_with_its_own_front(lab: Lab, panel: FrontPanel) -> None:
    end_without_energy(lab)
    table = filled(grid_space(), 20)
    lab.session(table, plan_for(table.space, OBJECTIVE))
    lab.grow(table)
    assert panel.points is not None
