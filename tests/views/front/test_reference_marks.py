"""The vendor's library and the roofline's floor in the scatter of an operator's session."""

from __future__ import annotations

from dataclasses import replace
from math import log10

import pytest
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for
from PySide6.QtCore import QPointF
from pytestqt.qtbot import QtBot

from app.engine.models.roofline.operator_floor import OperatorFloor
from app.engine.results.objectives import Goal, Objective
from app.engine.runner.kernels.reference import Baseline
from app.engine.specification.plan import SessionPlan
from app.views.front.front_panel import FrontPanel
from app.views.shared import theme

LIBRARY = Baseline(
    "cuBLAS 13.0.1",
    {"time_s": 1e-4, "energy_j": 0.02, "GFLOP/s": 9000.0, "GFLOPS/W": 50.0},
    {"energy_j": (0.019, 0.021)},
)
FLOOR = OperatorFloor({"time_s": 4e-5, "energy_j": 0.008, "GFLOP/s": 15000.0, "GFLOPS/W": 90.0}, "work", "session 4")
TIME_ENERGY = Objective(Goal("energy_j", False), (Goal("time_s", False), Goal("energy_j", False)))


def show(lab: Lab, objective: Objective = TIME_ENERGY, *, origin: dict[str, str] | None = None) -> SessionPlan:
    table = filled(grid_space())
    plan = plan_for(table.space, objective)
    plan = replace(plan, origin={**LIBRARY.to_origin(), **FLOOR.to_origin()} if origin is None else origin)
    lab.session(table, plan)
    return plan


def scene_of(panel: FrontPanel, which: int) -> QPointF:
    [(_, x, y)] = [place for place in panel.plot.references.places() if place[0] == which]
    return QPointF(panel.plot.getViewBox().mapViewToScene(QPointF(x, y)))


def test_both_are_marked_in_sight_named_and_in_the_key(lab: Lab, panel: FrontPanel, qtbot: QtBot) -> None:
    show(lab)
    references = panel.plot.references
    assert [(x, y) for _, x, y in references.places()] == [(1e-4, 0.02), (4e-5, 0.008)]
    (x0, x1), (y0, y1) = panel.plot.getViewBox().viewRange()
    assert all(x0 < x < x1 and y0 < y < y1 for _, x, y in references.places())
    assert len(references.marks.points()) == 2
    assert [mark.label for mark in panel.key.marks] == ["cuBLAS 13.0.1", "Roofline floor"]
    panel.plot.labels.changed()
    panel.plot.labels.place()
    assert all(label.isVisible() for label in references.labels)
    symbols = {point.symbol() for point in references.marks.points()}
    assert len(symbols) == 2, "they are told apart without colour"


def test_hovering_tells_their_figures_and_where_they_are_from(lab: Lab, panel: FrontPanel) -> None:
    show(lab)
    panel.plot.hover(scene_of(panel, 0))
    assert panel.plot.card.isVisible()
    assert "cuBLAS 13.0.1" in panel.plot.card.text()
    assert "0.02 (0.019 … 0.021)" in panel.plot.card.text()
    panel.plot.hover(scene_of(panel, 1))
    assert "Roofline floor" in panel.plot.card.text()
    assert "session 4" in panel.plot.card.text()
    panel.plot.hover(QPointF(-50, -50))
    assert not panel.plot.card.isVisible()


def test_a_click_on_one_selects_no_measurement(lab: Lab, panel: FrontPanel) -> None:
    show(lab)
    assert panel.plot.point_at(scene_of(panel, 1)) is None


def test_they_follow_the_figures_on_the_axes_and_logarithms(lab: Lab, panel: FrontPanel) -> None:
    show(lab, OBJECTIVE)
    assert sorted(y for _, _, y in panel.plot.references.places()) == [50.0, 90.0]
    show(lab)
    panel.figures.y_log.setChecked(True)
    assert sorted(y for _, _, y in panel.plot.references.places()) == pytest.approx([log10(0.008), log10(0.02)])


def test_they_are_hidden_by_the_menu_and_the_picture_is_of_the_points_alone(lab: Lab, panel: FrontPanel) -> None:
    show(lab)
    tick = panel.show_menu.ticks["references"]
    assert tick.isEnabled()
    with_them = panel.plot.getViewBox().viewRange()[0][0]
    tick.trigger()
    assert panel.plot.references.places() == []
    assert panel.key.marks == ()
    assert panel.plot.getViewBox().viewRange()[0][0] > with_them
    tick.trigger()
    assert len(panel.plot.references.places()) == 2


def test_other_sessions_have_none_and_a_damaged_one_shows_its_points(lab: Lab, panel: FrontPanel) -> None:
    show(lab)
    show(lab, origin={})
    assert panel.plot.references.places() == []
    assert not panel.show_menu.ticks["references"].isEnabled()
    show(lab, origin={"vendor_library": "[", "roofline_floor": "{"})
    assert panel.plot.references.places() == []
    assert panel.points is not None
    assert len(panel.points)


def test_light_and_dark_have_colours_of_their_own(lab: Lab, panel: FrontPanel) -> None:
    show(lab)

    def pens() -> list[str]:
        return [point.pen().color().name() for point in panel.plot.references.marks.points()]

    before = theme.colours()
    assert pens() == [before.blue, before.purple]
    try:
        theme.set_mode("light" if before.dark else "dark")
        after = theme.colours()
        assert after.dark != before.dark
        assert pens() == [after.blue, after.purple]
    finally:
        theme.set_mode("system")
