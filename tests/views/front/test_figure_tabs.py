"""Parallel coordinates and a slice in place of the front, linked with the shared selection."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fixtures.lab import OBJECTIVE, Lab, cache_session, filled, grid_space, measured, plan_for, ready
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine.results.measurement import State
from app.engine.results.objectives import Goal
from app.engine.space.result_table import ResultTable
from app.views.front.front_panel import FrontPanel
from app.views.front.parallel_plot import ParallelPlot
from app.views.front.slice_view import SliceView, slice_through

PS3 = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"
FRONT, PARALLEL, SLICE = range(3)


def parallel(panel: FrontPanel) -> ParallelPlot:
    panel.pages.bar.setCurrentIndex(PARALLEL)
    QApplication.processEvents()
    assert panel.parallel is not None
    return panel.parallel


def slices(panel: FrontPanel) -> SliceView:
    panel.pages.bar.setCurrentIndex(SLICE)
    QApplication.processEvents()
    assert panel.slice is not None
    return panel.slice


def drag(plot: ParallelPlot, axis: str, low: float, high: float) -> None:
    """Along an axis, from a place between 0 and 1 to another."""
    assert plot.axes is not None
    at = [each.name for each in plot.axes.axes].index(axis)
    view = plot.getViewBox()
    ends = [view.mapFromView(QPointF(at, y)) for y in (low, high)]
    view.brushed.emit(QRectF(ends[0] - QPointF(3, 0), ends[1] + QPointF(3, 0)).normalized(), True, False)


def session(lab: Lab, rows: int | None = None) -> ResultTable:
    table = filled(grid_space(), rows)
    lab.session(table, plan_for(table.space, OBJECTIVE))
    for _ in range(3):
        QApplication.processEvents()
    return table


def clocks_of(lab: Lab, rows: np.ndarray) -> set[object]:
    assert lab.result.table is not None
    return {lab.result.table.measurement(int(row)).configuration["graphics_clock_mhz"] for row in rows}


def test_the_other_figures_are_made_when_they_are_asked_for(lab: Lab, panel: FrontPanel) -> None:
    session(lab)
    assert [panel.pages.bar.tabText(index) for index in range(3)] == ["Front", "Parallel", "Slice"]
    assert panel.parallel is None
    assert panel.slice is None
    made = []
    panel.pages.made.connect(made.append)
    assert made == []
    assert parallel(panel).isVisible()
    assert slices(panel).isVisible()
    parallel(panel)
    assert made == [panel.parallel, panel.slice]
    assert not panel.plot.isVisible()
    assert not panel.key.isVisible()  # colours have no part in them
    panel.pages.bar.setCurrentIndex(FRONT)
    assert panel.plot.isVisible()
    assert panel.key.isVisible()


def test_parallel_axes_are_the_parameters_that_vary_and_the_two_figures(lab: Lab, panel: FrontPanel) -> None:
    table = session(lab)
    axes = parallel(panel).axes
    assert axes is not None
    assert [axis.name for axis in axes.axes] == ["graphics_clock_mhz", "tile", "layout", "GFLOP/s", "GFLOPS/W"]
    assert axes.axes[2].marks == ((0.0, "row"), (1.0, "column"))
    good = sum(table.measurement(index).state is State.OK for index in range(len(table)))
    assert axes.places.shape == (5, good)
    assert ((axes.places >= 0) & (axes.places <= 1)).all()
    strands = axes.all_strands[1]  # from 8 tiles to 2 layouts; one of these failed everywhere
    assert len(strands.count) == 15
    assert strands.count.sum() == good
    panel.figures.x_figure.setCurrentIndex(panel.figures.x_figure.findData("power_w"))
    assert panel.parallel is not None
    assert panel.parallel.axes is not None
    assert panel.parallel.axes.axes[3].name == "power_w"


def test_a_drag_along_an_axis_marks_and_one_along_another_narrows(lab: Lab, panel: FrontPanel) -> None:
    session(lab)
    plot = parallel(panel)
    drag(plot, "graphics_clock_mhz", -0.02, 0.25)  # the lowest three of ten
    assert clocks_of(lab, lab.result.rows) == {900, 960, 1020}
    before = len(lab.result.rows)
    drag(plot, "layout", 0.9, 1.05)
    assert clocks_of(lab, lab.result.rows) == {900, 960, 1020}
    assert 0 < len(lab.result.rows) < before
    assert panel.unmark.isVisible()
    drag(plot, "graphics_clock_mhz", 0.9, 1.05)  # another range of the same axis
    assert clocks_of(lab, lab.result.rows) == {1440}
    assert set(plot.ranges) == {0, 2}
    lab.result.brush([1, 2, 3])  # marked somewhere else
    assert plot.ranges == {}


def test_escape_removes_the_ranges_and_the_mark(lab: Lab, panel: FrontPanel, qtbot: QtBot) -> None:
    session(lab)
    plot = parallel(panel)
    drag(plot, "tile", 0.5, 1.05)
    assert len(lab.result.rows)
    qtbot.keyClick(plot, Qt.Key.Key_Escape)
    assert not len(lab.result.rows)
    assert plot.ranges == {}


def test_a_click_on_a_line_selects_its_measurement(lab: Lab, panel: FrontPanel, qtbot: QtBot) -> None:
    session(lab)
    plot = parallel(panel)
    axes = plot.axes
    assert axes is not None
    fastest = int(axes.places[3].argmax())
    scene = plot.getViewBox().mapViewToScene(QPointF(3.0, float(axes.places[3][fastest])))
    assert plot.index_at(scene) is not None
    at = plot.mapFromScene(scene)
    qtbot.mouseMove(plot.viewport(), at)
    qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=at)
    chosen = lab.result.table.measurement(lab.result.index)  # type: ignore[union-attr]
    assert chosen.values["GFLOP/s"] == panel.points.x.max()  # type: ignore[union-attr]
    lab.result.select(-1)
    qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier, at)
    assert len(lab.result.pins) == 1


def test_parallel_coordinates_follow_what_streams_in_and_what_is_filtered(
    lab: Lab, panel: FrontPanel, qtbot: QtBot
) -> None:
    space = grid_space()
    table = session(lab, 20)
    plot = parallel(panel)
    table.extend(measured(space, row) for row in range(20, space.size))
    lab.grow(table)
    lab.result.select(100)  # measured since the lines were drawn
    lab.result.pin(101)
    lab.result.brush([3, 102])
    qtbot.waitUntil(lambda: plot.axes is not None and plot.axes.places.shape[1] == 150)
    panel.bars.histograms[2].toggled.emit("layout", (1,))
    assert plot.axes is not None
    assert plot.axes.places.shape[1] == 80


def test_a_slice_holds_all_parameters_but_one_at_the_choice(lab: Lab, panel: FrontPanel) -> None:
    table = session(lab)
    view = slices(panel)
    lab.result.select(36)
    chosen = table.measurement(36).configuration
    assert view.cut is not None
    assert view.parameter.currentData() == "graphics_clock_mhz"  # settings of the device come first
    assert len(view.cut.index) == 10
    for index in view.cut.index:
        configuration = table.measurement(int(index)).configuration
        assert {**configuration, "graphics_clock_mhz": 0} == {**chosen, "graphics_clock_mhz": 0}
    chart = view.chart.chart
    assert chart is not None
    assert list(chart.series[0].x) == [900 + 60 * position for position in range(10)]
    assert chart.y_title == "GFLOPS/W"
    assert "through measurement 37" in view.through.text()
    view.parameter.setCurrentIndex(view.parameter.findData("tile"))
    assert view.chart.chart is not None
    assert view.chart.chart.ticks[0] == "1"


def test_a_slice_says_which_values_failed_and_which_are_not_measured(lab: Lab) -> None:
    space = grid_space()
    table = filled(space, 15)  # tiles at the lowest clock; the last of layout 'column' is missing
    cut = slice_through(table, 1, "tile", "GFLOPS/W")
    assert list(cut.place) == [0, 1, 2, 3, 4, 5, 6]
    assert list(cut.open) == [7]
    table.append(measured(space, 15))
    cut = slice_through(table, 1, "tile", "GFLOPS/W")
    assert list(cut.failed) == [7]
    assert not len(cut.open)


def test_without_a_selection_the_slice_goes_through_the_best(lab: Lab, panel: FrontPanel) -> None:
    table = session(lab)
    view = slices(panel)
    assert view.cut is not None
    best = max(table.values("GFLOPS/W")[np.isfinite(table.values("GFLOPS/W"))])
    assert table.measurement(view.cut.chosen).values["GFLOPS/W"] == best
    assert "the best so far" in view.through.text()


def test_a_click_on_a_point_of_the_slice_selects_it(lab: Lab, panel: FrontPanel, qtbot: QtBot) -> None:
    table = session(lab)
    view = slices(panel)
    lab.result.select(36)
    QApplication.processEvents()
    assert view.cut is not None
    wanted = int(view.cut.index[0])
    place = QPointF(900.0, table.measurement(wanted).values["GFLOPS/W"])
    plot = view.chart.plot
    at = plot.mapFromScene(plot.getViewBox().mapViewToScene(place))
    qtbot.mouseMove(plot.viewport(), at)
    qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert lab.result.index == wanted


def test_figures_of_one_session_go_when_another_begins(lab: Lab, panel: FrontPanel) -> None:
    session(lab)
    plot, view = parallel(panel), slices(panel)
    fresh = ResultTable(grid_space(4, 4))
    lab.session(fresh, plan_for(fresh.space, OBJECTIVE))
    assert view.cut is None
    assert view.chart.note
    panel.pages.bar.setCurrentIndex(PARALLEL)
    assert plot.axes is None


def test_figures_made_later_have_the_menu_of_every_plot(open_program: Callable[..., Any], qtbot: QtBot) -> None:
    window = ready(qtbot, open_program())
    front = window.panels["front"]
    front.pages.bar.setCurrentIndex(PARALLEL)
    front.pages.bar.setCurrentIndex(SLICE)
    assert window.wiring.plot_menus.title_of(front.plot) == "Front"
    assert window.wiring.plot_menus.title_of(front.parallel) == "Front"
    assert window.wiring.plot_menus.title_of(front.slice.chart.plot) == "Front"


def test_a_real_cache_in_all_three_figures(lab: Lab, panel: FrontPanel, shared_data: Path) -> None:
    table, plan = cache_session(shared_data / PS3)
    lab.session(table, plan)
    plot = parallel(panel)
    assert plot.axes is not None
    assert plot.axes.places.shape == (8, 4690)
    view = slices(panel)
    assert view.cut is not None
    best = table.measurement(view.cut.chosen)
    assert Goal("TFLOPS/J", True).cost(best.values) == min(
        Goal("TFLOPS/J", True).cost(table.measurement(index).values) for index in range(len(table))
    )
