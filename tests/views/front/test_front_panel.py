"""The Pareto panel over real and made-up sessions."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from fixtures.lab import OBJECTIVE, SPEED, Lab, cache_session, filled, grid_space, measured, plan_for
from hypothesis import given
from hypothesis import strategies as st
from pyqtgraph import TextItem
from PySide6.QtCore import QPoint, QPointF, QRect, QSize, Qt
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QApplication, QDockWidget, QLabel, QMainWindow
from pytestqt.qtbot import QtBot

from app.engine.results.objectives import Goal, Objective
from app.engine.space.result_table import ResultTable
from app.views.front.front_panel import FrontPanel
from app.views.front.hover_card import card_place
from app.views.shared import theme

PS3 = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"


def place(panel: FrontPanel, point: int) -> QPointF:
    """Where a point is in the plot's scene."""
    assert panel.points is not None
    at = QPointF(panel.points.x[point], panel.points.y[point])
    return panel.plot.getViewBox().mapViewToScene(at)


def click(panel: FrontPanel, qtbot: QtBot, scene: QPointF) -> None:
    where = panel.plot.mapFromScene(scene)
    qtbot.mouseMove(panel.plot.viewport(), where)
    qtbot.mouseClick(panel.plot.viewport(), Qt.MouseButton.LeftButton, pos=where)


def test_before_a_session_it_says_what_to_do_first(panel: FrontPanel) -> None:
    assert "press Start" in panel.plot.note.text()
    assert panel.plot.note.isVisible()


def test_a_real_cache_gives_its_front_of_thirteen_with_both_ends_named(
    lab: Lab, panel: FrontPanel, shared_data: Path
) -> None:
    table, plan = cache_session(shared_data / PS3)
    lab.session(table, plan)
    assert panel.points is not None
    assert len(panel.points) == 4690
    assert len(panel.points.front) == 13
    labels = [label.textItem.toPlainText() for label in panel.plot.line.labels]
    assert labels == ["fastest: 80.44 TFLOPS", "most efficient: 0.9315 TFLOPS/J"]
    assert "430 failed" in panel.count.text()
    assert panel.figures.colour.currentText() == "Graphics clock (MHz)"


def test_results_stream_in_and_the_front_follows(lab: Lab, panel: FrontPanel) -> None:
    space = grid_space()
    table = ResultTable(space)
    lab.session(table, plan_for(space, OBJECTIVE))
    assert "Waiting" in panel.plot.note.text()
    for start in range(0, space.size, 16):
        table.extend(measured(space, row) for row in range(start, min(start + 16, space.size)))
        lab.grow(table)
    whole = FrontPanel(lab.context)
    whole.refresh()
    assert panel.points is not None
    assert whole.points is not None
    assert len(panel.plot.cloud) == len(panel.points) == len(whole.points)
    assert set(panel.points.front) == set(whole.points.front)
    whole.deleteLater()


def test_every_point_is_in_sight_while_results_stream_in(lab: Lab, panel: FrontPanel) -> None:
    space = grid_space()
    table = ResultTable(space)
    lab.session(table, plan_for(space, OBJECTIVE))
    for row in range(space.size):
        table.append(measured(space, row))
        lab.grow(table)
    (x0, x1), (y0, y1) = panel.plot.getViewBox().viewRange()
    points = panel.points
    assert points is not None
    assert x0 < points.x.min()
    assert points.x.max() < x1
    assert y0 < points.y.min()
    assert points.y.max() < y1


def test_a_zoom_by_hand_stays_until_show_all(lab: Lab, panel: FrontPanel) -> None:
    space = grid_space()
    table = filled(space, 40)
    lab.session(table, plan_for(space, OBJECTIVE))
    view = panel.plot.getViewBox()
    view.setRange(xRange=(1000, 1100), padding=0)
    view.sigRangeChangedManually.emit([True, True])
    table.extend(measured(space, row) for row in range(40, space.size))
    lab.grow(table)
    assert view.viewRange()[0] == [1000, 1100]
    panel.show_menu.everything.trigger()
    assert view.viewRange()[0][1] > 4000


def test_hovering_shows_the_configuration_and_its_figures(lab: Lab, panel: FrontPanel, qtbot: QtBot) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    assert panel.points is not None
    point = int(panel.points.front[-1])
    qtbot.mouseMove(panel.plot.viewport(), panel.plot.mapFromScene(place(panel, point)))
    card = panel.plot.card
    qtbot.waitUntil(card.isVisible)
    measurement = table.measurement(int(panel.points.index[point]))
    for name in ("tile", "layout", "Graphics clock (MHz)", "GFLOPS/W", "Time (ms)"):
        assert name in card.text()
    assert f"{measurement.values['power_w']:.4g}" in card.text()
    assert panel.window().rect().contains(card.geometry())
    panel.plot.hover(QPointF(-50, -50))
    assert not card.isVisible()


def test_the_card_has_at_most_eight_lines_and_no_figure_twice(lab: Lab, panel: FrontPanel, shared_data: Path) -> None:
    table, plan = cache_session(shared_data / PS3)
    lab.session(table, plan)
    assert panel.points is not None
    point = int(panel.points.front[5])
    panel.plot.hover(place(panel, point))
    document = QTextDocument()
    document.setHtml(panel.plot.card.text())
    lines = document.toPlainText().splitlines()
    assert len([line for line in lines if line.strip()]) <= 2 * 8  # a name and its value are two
    assert panel.plot.card.height() <= 8.5 * panel.plot.card.fontMetrics().lineSpacing() + 20
    values = table.measurement(int(panel.points.index[point])).values
    assert values["energy_j"] == values["ps_energy"]
    energy = f"{values['energy_j']:.4g}"
    assert sum(energy in line for line in lines) == 1
    assert "M_PER_BLOCK" in panel.plot.card.text()


@given(
    st.integers(0, 799),
    st.integers(0, 599),
    st.integers(60, 380),
    st.integers(60, 280),
)
def test_the_card_lies_within_the_window_and_never_over_the_pointers_neighbourhood(
    x: int, y: int, width: int, height: int
) -> None:
    at = card_place(QPoint(x, y), QSize(width, height), QSize(800, 600))
    card = QRect(at, QSize(width, height))
    assert QRect(0, 0, 800, 600).contains(card)
    assert not card.intersects(QRect(x - 20, y - 20, 40, 40))


def test_the_card_goes_when_another_dock_comes_to_the_front(lab: Lab, panel: FrontPanel, qtbot: QtBot) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    window.resize(900, 600)
    docks = [QDockWidget(name) for name in ("Front", "Other")]
    for dock, widget in zip(docks, (panel, QLabel("other")), strict=True):
        dock.setWidget(widget)
        widget.show()
        window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
    window.tabifyDockWidget(*docks)
    window.show()
    qtbot.waitExposed(window)
    docks[0].raise_()
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    qtbot.waitUntil(lambda: not panel.plot.viewport().visibleRegion().isEmpty())
    panel.plot.hover(place(panel, 3))
    qtbot.wait(400)
    assert panel.plot.card.isVisible()  # it stays while the plot is in sight
    docks[1].raise_()
    qtbot.waitUntil(lambda: not panel.plot.card.isVisible(), timeout=3000)
    panel.setParent(None)  # it outlives the window


def test_a_click_selects_the_measurement_and_the_selection_is_ringed(lab: Lab, panel: FrontPanel, qtbot: QtBot) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    assert panel.points is not None
    point = int(panel.points.front[0])
    click(panel, qtbot, place(panel, point))
    qtbot.waitUntil(lambda: lab.result.index == int(panel.points.index[point]))
    other = int(panel.points.index[3])
    lab.result.select(other)
    ringed = panel.plot.ring.getData()
    assert (ringed[0][0], ringed[1][0]) == (panel.points.x[3], panel.points.y[3])


def test_any_two_figures_can_be_chosen_and_their_better_end(lab: Lab, panel: FrontPanel) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    panel.figures.x_figure.setCurrentIndex(panel.figures.x_figure.findData("time_s"))
    panel.figures.y_figure.setCurrentIndex(panel.figures.y_figure.findData("energy_j"))
    points = panel.points
    assert points is not None
    assert [goal.maximise for goal in points.goals] == [False, False]
    assert points.x[points.best_x] == points.x.min()
    assert panel.plot.getAxis("bottom").labelText == "Time (ms)"
    better = panel.figures.x_better
    assert (better.larger.isChecked(), better.smaller.isChecked()) == (False, True)
    better.larger.click()
    assert (better.larger.isChecked(), better.smaller.isChecked()) == (True, False)
    assert panel.points is not None
    assert panel.points.x[panel.points.best_x] == panel.points.x.max()


def test_a_button_of_the_axes_says_the_same_pressed_and_not(lab: Lab, panel: FrontPanel) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    figures = panel.figures
    buttons = (figures.x_log, figures.y_log, figures.x_better.larger, figures.y_better.smaller)
    before = [(button.text(), button.toolTip(), button.isChecked()) for button in buttons]
    for button in buttons:
        button.click()
    after = [(button.text(), button.toolTip(), button.isChecked()) for button in buttons]
    assert [each[:2] for each in after] == [each[:2] for each in before]
    assert [each[2] for each in before] == [False, False, True, False]
    assert [each[2] for each in after] == [True, True, True, True], "what is pressed is in force"
    pressed, free = figures.y_better.smaller.palette(), figures.y_better.larger.palette()
    assert pressed.button().color() != free.button().color(), "and looks it"
    assert figures.log == (True, True)
    assert [goal.maximise for goal in figures.goals] == [True, False]


def test_colour_by_words_lists_the_words_and_by_a_figure_a_scale(lab: Lab, panel: FrontPanel) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    panel.figures.colour.setCurrentIndex(panel.figures.colour.findData("layout"))
    assert panel.key.labels == ["row", "column"]
    panel.figures.colour.setCurrentIndex(panel.figures.colour.findData("power_w"))
    assert panel.key.coding is not None
    assert not panel.key.coding.discrete or len(panel.key.coding.values) <= 12
    assert panel.key.quantity.title == "Power (W)"


def test_without_a_front_in_the_objective_a_speed_and_an_efficiency_are_shown(lab: Lab, panel: FrontPanel) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, Objective(Goal("time_s", False))))
    assert (panel.figures.x_figure.currentData(), panel.figures.y_figure.currentData()) == (SPEED.name, "GFLOPS/W")


def test_a_goal_that_is_no_part_of_the_front_is_shown_against_a_speed(lab: Lab, panel: FrontPanel) -> None:
    table = filled(grid_space())
    stand_in = (Goal("time_s", False), Goal("energy_j", False))
    lab.session(table, plan_for(table.space, Objective(Goal("GFLOPS/W", True), stand_in)))
    assert (panel.figures.x_figure.currentData(), panel.figures.y_figure.currentData()) == (SPEED.name, "GFLOPS/W")
    lab.session(table, plan_for(table.space, Objective(Goal("time_s", False), stand_in)))
    assert (panel.figures.x_figure.currentData(), panel.figures.y_figure.currentData()) == ("time_s", "energy_j")


def test_a_rate_is_shown_rather_than_a_time_where_both_were_measured(
    lab: Lab, panel: FrontPanel, shared_data: Path
) -> None:
    table, _ = cache_session(shared_data / PS3)
    assert table.value_names.index("time") < table.value_names.index("TFLOPS")
    stand_in = (Goal("time_s", False), Goal("energy_j", False))
    lab.session(table, plan_for(table.space, Objective(Goal("TFLOPS/J", True), stand_in)))
    assert (panel.figures.x_figure.currentData(), panel.figures.y_figure.currentData()) == ("TFLOPS", "TFLOPS/J")


def test_both_ends_are_named_in_sight_where_the_best_is_below(lab: Lab, panel: FrontPanel) -> None:
    table = filled(grid_space())
    stand_in = (Goal("time_s", False), Goal("energy_j", False))
    lab.session(table, plan_for(table.space, Objective(Goal("time_s", False), stand_in)))
    for _ in range(3):
        QApplication.processEvents()
    view = panel.plot.getViewBox().sceneBoundingRect().adjusted(-1, -1, 1, 1)
    for label in panel.plot.line.labels:
        assert view.contains(label.mapRectToScene(label.boundingRect()))


def test_another_session_replaces_the_first(lab: Lab, panel: FrontPanel) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    fresh = ResultTable(grid_space(4, 4))
    lab.session(fresh, plan_for(fresh.space, OBJECTIVE))
    assert len(panel.plot.cloud) == 0
    fresh.append(measured(fresh.space, 0))
    lab.grow(fresh)
    assert len(panel.plot.cloud) == 1


def test_labels_of_the_ends_lie_within_the_plot_at_any_size(lab: Lab, panel: FrontPanel, qtbot: QtBot) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    for size in ((380, 300), (700, 280), (420, 900), (1500, 900)):
        panel.resize(*size)
        QApplication.processEvents()
        view = panel.plot.getViewBox().sceneBoundingRect().adjusted(-1, -1, 1, 1)
        shown = [label for label in panel.plot.line.labels if label.isVisible()]
        for label in shown:
            assert view.contains(label.mapRectToScene(label.boundingRect()))
        assert len(shown) == 2 or size[1] < 400


@pytest.mark.parametrize("size", [(420, 400), (620, 500), (900, 560), (1500, 900)])
@pytest.mark.parametrize("action", ["everything", "front"])
def test_labels_cover_no_point_of_a_real_cache(
    lab: Lab, panel: FrontPanel, shared_data: Path, size: tuple[int, int], action: str
) -> None:
    lab.session(*cache_session(shared_data / PS3))
    panel.resize(*size)
    for name in ("quadrants", "spread", "energy", "edp"):
        panel.show_menu.ticks[name].setChecked(True)
    getattr(panel.show_menu, action).trigger()
    lab.result.select(int(panel.points.index[panel.points.front[1]]), "knee")
    for _ in range(3):
        QApplication.processEvents()
    panel.plot.grab()
    labels = [item for item in panel.plot.scene().items() if isinstance(item, TextItem) and item.isVisible()]
    assert any(label.toPlainText().startswith("fastest") for label in labels)
    assert panel.points is not None
    places = [place(panel, point) for point in range(len(panel.points))]
    view = panel.plot.getViewBox().sceneBoundingRect()
    boxes = [label.mapRectToScene(label.boundingRect()) for label in labels]
    for label, box in zip(labels, boxes, strict=True):
        assert not [at for at in places if view.contains(at) and box.contains(at)], label.toPlainText()
        assert not [other for other in boxes if other is not box and other.adjusted(1, 1, -1, -1).intersects(box)]


def test_zooming_to_the_front_sets_its_points_apart_and_follows_it(
    lab: Lab, panel: FrontPanel, shared_data: Path
) -> None:
    lab.session(*cache_session(shared_data / PS3))
    panel.show_menu.front.trigger()
    points = panel.points
    assert points is not None
    assert len(points.front) == 13
    at = sorted((place(panel, int(point)) for point in points.front), key=lambda each: each.x())
    apart = [abs(a.x() - b.x()) + abs(a.y() - b.y()) for a, b in pairwise(at)]
    assert min(apart) >= 4  # pixels
    assert at[-1].x() - at[0].x() > 0.7 * panel.plot.getViewBox().width()
    rings = panel.plot.line.drawn_points()
    assert {(x, y) for x, y in zip(*rings, strict=True)} == {
        (points.x[point], points.y[point]) for point in points.front
    }
    panel.plot.show_all()
    assert panel.plot.getViewBox().viewRange()[0][0] < points.x.min()


def test_the_view_of_the_front_follows_while_results_stream_in(lab: Lab, panel: FrontPanel) -> None:
    space = grid_space()
    table = filled(space, 20)
    lab.session(table, plan_for(space, OBJECTIVE))
    panel.show_menu.front.trigger()
    table.extend(measured(space, row) for row in range(20, space.size))
    lab.grow(table)
    points = panel.points
    assert points is not None
    (x0, x1), _ = panel.plot.getViewBox().viewRange()
    assert x0 < points.x[points.front].min()
    assert points.x[points.front].max() < x1
    assert x0 > points.x.min()


def test_light_and_dark_are_followed(lab: Lab, panel: FrontPanel) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    try:
        theme.set_mode("dark")
        dark = panel.plot.grab().toImage()
        theme.set_mode("light")
        light = panel.plot.grab().toImage()
    finally:
        theme.set_mode("system")
    corner = (4, 4)
    assert dark.pixelColor(*corner).name() == theme.DARK.base
    assert light.pixelColor(*corner).name() == theme.LIGHT.base


def test_a_front_of_one_point_is_named_once(lab: Lab, panel: FrontPanel) -> None:
    space = grid_space()
    table = ResultTable(space)
    table.append(measured(space, 5))
    lab.session(table, plan_for(space, OBJECTIVE))
    assert [label.isVisible() for label in panel.plot.line.labels] == [True, False]
    assert np.isfinite(panel.plot.getViewBox().viewRange()).all()
