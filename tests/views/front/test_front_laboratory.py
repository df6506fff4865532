"""The Pareto laboratory as a person uses it: axes, markers, overlays, filters, brushing, ways to choose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from fixtures.lab import OBJECTIVE, Lab, cache_session, filled, grid_space, measured, plan_for
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine.results.objectives import Goal, Objective
from app.engine.space.result_table import ResultTable
from app.views.front.front_panel import FrontPanel
from app.views.plots.markers import COLOURS, DIM, SHAPES, ShapeCoding, dimmed, with_shapes
from app.views.plots.plot_export import curves_of
from app.views.shared.current_result import EVERYTHING, RowFilter
from app.views.shared.settings import Settings

PS3 = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"


def show(lab: Lab, panel: FrontPanel) -> ResultTable:
    """A session of 160 measurements, 10 of which failed."""
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    for _ in range(3):  # the axes come into sight, and the plot is laid out again
        QApplication.processEvents()
    return table


def drag(
    panel: FrontPanel, start: QPoint, end: QPoint, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> None:
    """With the left button, in steps as a hand makes them."""
    port, left = panel.plot.viewport(), Qt.MouseButton.LeftButton
    QTest.mouseMove(port, start)
    QTest.mousePress(port, left, modifier, start)
    for share in (0.3, 0.7, 1.0):
        QTest.qWait(15)  # pyqtgraph takes no more than a hundred moves a second
        at = start + (end - start) * share
        place = QPointF(port.mapToGlobal(at))  # QTest's own moves carry no button, so that no drag comes of them
        move = QMouseEvent(QEvent.Type.MouseMove, QPointF(at), place, Qt.MouseButton.NoButton, left, modifier)
        QApplication.sendEvent(port, move)
    QTest.mouseRelease(port, left, modifier, end)
    QApplication.processEvents()


def gap(values: np.ndarray) -> float:
    """The middle of the widest gap among the middle half of values: no pixel's rounding matters there."""
    middle = np.sort(values)[len(values) // 4 : 3 * len(values) // 4]
    at = int(np.diff(middle).argmax())
    return float(middle[at] + middle[at + 1]) / 2


def corner_of(panel: FrontPanel, x: float, y: float) -> QPoint:
    """Where figures lie in the plot's viewport."""
    return panel.plot.mapFromScene(panel.plot.getViewBox().mapViewToScene(QPointF(x, y)))


def test_a_drag_marks_what_lies_in_the_rectangle_and_ctrl_adds_to_it(lab: Lab, panel: FrontPanel) -> None:
    show(lab, panel)
    points = panel.points
    assert points is not None
    middle_x, middle_y = gap(points.x), gap(points.y)
    (x0, x1), (y0, y1) = panel.plot.getViewBox().viewRange()
    size = panel.plot.size()
    drag(panel, corner_of(panel, x0, y0) + QPoint(3, -3), corner_of(panel, middle_x, middle_y))
    assert panel.plot.size() == size  # nothing that appears moves the plot under the mouse
    inside = points.index[(points.x < middle_x) & (points.y < middle_y)]
    assert set(inside) == set(lab.result.rows)
    assert panel.unmark.text().startswith(f"{len(inside)} marked")
    assert (panel.plot.getViewBox().viewRange()[0][0]) == x0  # marking does not move the picture
    control = Qt.KeyboardModifier.ControlModifier
    drag(panel, corner_of(panel, middle_x, y1) + QPoint(2, 3), corner_of(panel, x1, middle_y) - QPoint(3, 2), control)
    assert set(inside) < set(lab.result.rows)
    panel.unmark.click()
    assert not len(lab.result.rows)
    assert not panel.unmark.isVisible()


def test_shift_and_drag_moves_the_picture_and_marks_nothing(lab: Lab, panel: FrontPanel) -> None:
    show(lab, panel)
    before = panel.plot.getViewBox().viewRange()[0][0]
    middle = panel.plot.viewport().rect().center()
    drag(panel, middle, middle + QPoint(60, 0), Qt.KeyboardModifier.ShiftModifier)
    assert panel.plot.getViewBox().viewRange()[0][0] < before
    assert not len(lab.result.rows)


def test_what_is_not_marked_is_dimmed_and_stays_so_while_results_stream_in(lab: Lab, panel: FrontPanel) -> None:
    space = grid_space()
    table = filled(space, 60)
    lab.session(table, plan_for(space, OBJECTIVE))
    lab.result.brush([3, 5])
    table.extend(measured(space, row) for row in range(60, 120))
    lab.grow(table)
    assert panel.points is not None
    style = panel.plot.cloud.styles
    bright = panel.points.index[style < DIM]
    assert list(bright) == [3, 5]
    assert (panel.plot.cloud.styles >= DIM).sum() == len(panel.points) - 2
    lab.result.brush([])
    assert (panel.plot.cloud.styles < DIM).all()


def test_the_histograms_show_all_against_marked_and_a_click_hides_a_value(
    lab: Lab, panel: FrontPanel, qtbot: QtBot
) -> None:
    table = show(lab, panel)
    names = [histogram.name for histogram in panel.bars.histograms]
    assert names == ["graphics_clock_mhz", "tile", "layout"]
    layout = panel.bars.histograms[2]
    assert list(layout.counts) == [80, 80]
    rows = np.flatnonzero([table.measurement(i).configuration["layout"] == "row" for i in range(len(table))])
    lab.result.brush(rows[:20])
    assert list(layout.marked_counts) == [20, 0]
    qtbot.mouseClick(layout, Qt.MouseButton.LeftButton, pos=QPoint(layout.width() - 6, 40))
    assert panel.points is not None
    assert all(table.measurement(int(i)).configuration["layout"] == "row" for i in panel.points.index)
    assert panel.unfilter.isVisible()
    assert "hidden" in layout.text_of(1)
    panel.unfilter.click()
    assert len(panel.points) == 150


def test_values_are_hidden_and_marked_by_the_keyboard_alone(lab: Lab, panel: FrontPanel, qtbot: QtBot) -> None:
    table = show(lab, panel)
    clocks = panel.bars.histograms[0]
    clocks.setFocus()
    qtbot.keyClick(clocks, Qt.Key.Key_Right)
    assert "960" in clocks.accessibleDescription()
    qtbot.keyClick(clocks, Qt.Key.Key_Return)
    assert {table.measurement(int(i)).configuration["graphics_clock_mhz"] for i in lab.result.rows} == {960}
    qtbot.keyClick(clocks, Qt.Key.Key_Space)
    assert panel.points is not None
    assert 960 not in {table.measurement(int(i)).configuration["graphics_clock_mhz"] for i in panel.points.index}


def test_hiding_everything_says_so(lab: Lab, panel: FrontPanel) -> None:
    show(lab, panel)
    panel.bars.histograms[2].toggled.emit("layout", (0, 1))
    assert "hidden by the filter" in panel.plot.note.text()


def test_left_and_right_walk_along_the_front(lab: Lab, panel: FrontPanel, qtbot: QtBot) -> None:
    show(lab, panel)
    points = panel.points
    assert points is not None
    walk = points.index[points.front[np.argsort(points.x[points.front])]]
    panel.plot.setFocus()
    for key, place in ((Qt.Key.Key_Home, 0), (Qt.Key.Key_Right, min(1, len(walk) - 1)), (Qt.Key.Key_End, -1)):
        qtbot.keyClick(panel.plot, key)
        assert panel.plot.card.isVisible()
        assert f"Measurement {walk[place] + 1}<" in panel.plot.card.text()
    qtbot.keyClick(panel.plot, Qt.Key.Key_P)
    assert lab.result.pins == (walk[-1],), "what the cursor is on"
    qtbot.keyClick(panel.plot, Qt.Key.Key_Return)
    qtbot.keyClick(panel.plot, Qt.Key.Key_Left)
    assert lab.result.index == walk[-1]
    lab.result.brush([1, 2])
    qtbot.keyClick(panel.plot, Qt.Key.Key_Escape)
    assert not len(lab.result.rows)


def test_ctrl_and_a_click_pins_a_point_and_its_letter_stands_beside_it(
    lab: Lab, panel: FrontPanel, qtbot: QtBot
) -> None:
    show(lab, panel)
    points = panel.points
    assert points is not None
    for point in (int(points.front[0]), int(points.front[-1])):
        at = corner_of(panel, points.x[point], points.y[point])
        qtbot.mouseClick(panel.plot.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier, at)
    assert lab.result.pins == (int(points.index[points.front[0]]), int(points.index[points.front[-1]]))
    assert lab.result.index == -1
    panel.plot.grab()
    assert [letter.isVisible() for letter in panel.plot.pins.letters] == [True, True, False]
    assert panel.unpin.text().startswith("2 pinned")
    lab.result.select(lab.result.pins[0])
    qtbot.keyClick(panel.plot, Qt.Key.Key_P)  # unpins it
    assert len(lab.result.pins) == 1
    panel.unpin.click()
    assert lab.result.pins == ()
    assert not panel.unpin.isVisible()


def test_logarithmic_axes_keep_every_point_in_sight_with_round_marks(lab: Lab, panel: FrontPanel) -> None:
    show(lab, panel)
    panel.figures.x_figure.setCurrentIndex(panel.figures.x_figure.findData("time_s"))
    panel.figures.x_log.click()
    points = panel.points
    assert points is not None
    assert np.allclose(points.plot_x, np.log10(points.x))
    (x0, x1), _ = panel.plot.getViewBox().viewRange()
    assert x0 < points.plot_x.min()
    assert points.plot_x.max() < x1
    axis = panel.plot.getAxis("bottom")
    marks = axis.tickStrings(axis.tickValues(x0, x1, 600)[0][1], 1.0, 1.0)
    assert all(float(mark) > 0 for mark in marks)
    assert float(marks[0]) >= points.x.min() * 1e3 * 0.5  # shown in ms
    assert len(points.front) == len(set(points.front))
    cloud = curves_of(panel.plot)[-1]  # as it is copied: in ms, not logarithms
    assert np.allclose(np.sort(cloud.x), np.sort(points.x) * 1e3)


def test_colour_and_marker_tell_two_different_things_and_the_key_says_which(lab: Lab, panel: FrontPanel) -> None:
    show(lab, panel)
    figures = panel.figures
    figures.colour.setCurrentIndex(figures.colour.findData("power_w"))
    figures.marker.setCurrentIndex(figures.marker.findData("layout"))
    style = panel.plot.cloud.styles
    assert set(style // COLOURS) == {0, 1}
    assert panel.key.shape_labels == [("circle", "row"), ("square", "column")]
    assert "square: column" in panel.key.accessibleDescription()
    figures.marker.setCurrentIndex(figures.marker.findData("time_s"))
    assert len(panel.key.shape_labels) == 4  # quarters of many values
    figures.marker.setCurrentIndex(0)
    assert panel.key.shape_labels == []


def test_colours_of_a_parameter_stay_the_same_from_the_first_measurement_to_the_last(
    lab: Lab, panel: FrontPanel
) -> None:
    space = grid_space()
    table = ResultTable(space)
    lab.session(table, plan_for(space, OBJECTIVE))
    first: dict[int, int] = {}
    for start in range(0, space.size, 20):
        table.extend(measured(space, row) for row in range(start, start + 20))
        lab.grow(table)
        assert panel.points is not None
        shown = dict(zip(panel.points.index.tolist(), panel.plot.cloud.styles.tolist(), strict=True))
        assert {index: shown[index] for index in first} == first
        first = shown
    assert len(first) == 150
    panel.bars.histograms[0].toggled.emit("graphics_clock_mhz", (0, 1, 2))  # nor does a filter change them
    assert panel.points is not None
    shown = dict(zip(panel.points.index.tolist(), panel.plot.cloud.styles.tolist(), strict=True))
    assert 0 < len(shown) < len(first)
    assert shown == {index: first[index] for index in shown}


def test_a_scale_of_a_figure_says_when_it_was_extended(lab: Lab, panel: FrontPanel) -> None:
    space = grid_space()
    table = ResultTable(space)
    table.append(measured(space, 0))
    lab.session(table, plan_for(space, OBJECTIVE))
    panel.figures.colour.setCurrentIndex(panel.figures.colour.findData("power_w"))
    before = panel.key.coding
    assert before is not None
    assert not before.discrete  # one value so far, and more to come: never a marker for each
    assert panel.key.note == ""
    for row in range(1, 4):
        table.append(measured(space, row))
    lab.grow(table)
    assert panel.key.coding is before  # they fit in
    for row in range(4, space.size):
        table.append(measured(space, row))
    lab.grow(table)
    assert panel.key.note == "extended at 160"
    assert panel.key.coding is not None
    assert panel.key.coding.low <= before.low
    assert panel.key.coding.high > before.high


def test_overlays_of_a_real_cache_count_its_quadrants(lab: Lab, panel: FrontPanel, shared_data: Path) -> None:
    lab.session(*cache_session(shared_data / PS3))
    for name in ("hull", "quadrants", "spread", "energy", "edp"):
        panel.show_menu.ticks[name].setChecked(True)
    cut = panel.plot.overlays.quadrants
    assert cut is not None
    assert cut.total == 4690
    texts = [item.toPlainText() for item in panel.plot.overlays.items if hasattr(item, "toPlainText")]
    assert f"{cut.both} · {cut.percent(cut.both):.1f} %" in texts
    assert "least energy" in texts
    assert any(text.startswith("EDP +") for text in texts)
    assert sum(text.startswith("spread ") for text in texts) == 2
    for tick in panel.show_menu.ticks.values():
        tick.setChecked(False)
    assert not panel.plot.overlays.items
    assert not panel.plot.line.labels[0].isVisible()


def test_no_figure_stands_against_itself_while_another_has_not_come_yet(lab: Lab, panel: FrontPanel) -> None:
    space = grid_space()
    table = ResultTable(space)
    wanted = Objective(Goal("energy_j", False), (Goal("time_s", False), Goal("energy_j", False)))
    table.extend(
        replace(whole, values={"time_s": whole.values["time_s"]})
        for whole in (measured(space, row) for row in range(6))
    )
    lab.session(table, plan_for(space, wanted))
    x, y = panel.figures.goals
    assert x.name == "time_s" != y.name, "a parameter stands in"
    table.extend(measured(space, row) for row in range(6, 30))
    lab.grow(table)
    assert panel.figures.goals == wanted.front, "now that its energy is there"


def test_one_axis_gives_way_rather_than_show_a_figure_against_itself(lab: Lab, panel: FrontPanel) -> None:
    show(lab, panel)
    figures = panel.figures
    figures.x_figure.setCurrentIndex(figures.x_figure.findData("GFLOPS/W"))
    assert figures.goals[0].name == "GFLOPS/W" != figures.goals[1].name
    figures.y_figure.setCurrentIndex(figures.y_figure.findData("GFLOPS/W"))
    assert figures.goals[1].name == "GFLOPS/W" != figures.goals[0].name
    assert panel.points is not None
    assert len(panel.points.front)


def test_figures_that_tell_no_energy_offer_no_lines_of_equal_energy(lab: Lab, panel: FrontPanel) -> None:
    show(lab, panel)
    assert panel.show_menu.ticks["energy"].isEnabled()
    panel.figures.x_figure.setCurrentIndex(panel.figures.x_figure.findData("tile"))
    assert not panel.show_menu.ticks["energy"].isEnabled()


def test_the_way_in_which_a_point_was_chosen_stands_beside_it(lab: Lab, panel: FrontPanel) -> None:
    show(lab, panel)
    lab.result.select(7, "knee")
    assert panel.plot.choice.toPlainText() == "knee"
    lab.result.select(8)
    assert panel.plot.choice.toPlainText() == ""


def test_what_is_hidden_is_no_candidate_for_a_choice(lab: Lab, panel: FrontPanel) -> None:
    table = show(lab, panel)
    rows = np.arange(len(table))
    assert lab.result.shown.passes(table.space, rows).all()
    panel.bars.histograms[2].toggled.emit("layout", (0,))
    shown = rows[lab.result.shown.passes(table.space, rows)]
    assert {table.measurement(int(row)).configuration["layout"] for row in shown} == {"column"}
    show(lab, panel)
    assert lab.result.shown == EVERYTHING, "another session shows all"


def test_what_is_drawn_over_the_points_is_kept(lab: Lab, panel: FrontPanel, qtbot: QtBot) -> None:
    ticks = panel.show_menu.ticks
    assert ticks["front"].isChecked()
    ticks["front"].trigger()
    ticks["hull"].trigger()
    panel.show_menu.bars.trigger()
    again = FrontPanel(lab.context)
    qtbot.addWidget(again)
    assert not again.show_menu.ticks["front"].isChecked()
    assert again.show_menu.ticks["hull"].isChecked()
    assert not again.show_menu.bars.isChecked()
    assert again.plot.overlays.shown == panel.plot.overlays.shown
    Settings().reset()
    again.show_menu.look_again()
    assert again.show_menu.ticks["front"].isChecked()
    assert not again.show_menu.ticks["hull"].isChecked()


def test_every_control_has_a_name_and_can_be_reached_by_tab(panel: FrontPanel, lab: Lab) -> None:
    show(lab, panel)
    for control in (
        panel.figures.x_figure,
        panel.figures.y_log,
        panel.figures.marker,
        panel.show_menu,
        panel.plot,
        *panel.bars.histograms,
    ):
        assert control.accessibleName(), control
        assert control.focusPolicy() & Qt.FocusPolicy.TabFocus, control


def test_shapes_tell_few_values_apart_and_quarters_of_many() -> None:
    few = ShapeCoding(np.asarray([4.0, 1.0, 2.0]))
    assert list(few.shapes(np.asarray([1.0, 2.0, 4.0, np.nan]))) == [0, 1, 2, len(SHAPES) - 1]
    many = ShapeCoding(np.arange(100.0))
    assert list(many.shapes(np.asarray([0.0, 30.0, 60.0, 99.0]))) == [0, 1, 2, 3]
    assert not many.covers(np.asarray([100.0]))
    styles = np.asarray([5, COLOURS + 7], dtype=np.uint16)
    assert list(with_shapes(styles, np.asarray([2, 3], dtype=np.uint16))) == [2 * COLOURS + 5, 3 * COLOURS + 7]
    assert list(dimmed(styles)) == [DIM, DIM + COLOURS]
    assert list(dimmed(dimmed(styles))) == list(dimmed(styles))


def test_a_filter_toggles_groups_of_values() -> None:
    space = grid_space()
    rows = np.arange(space.size)
    some = EVERYTHING.toggled("tile", (0, 1))
    assert some
    assert some.passes(space, rows).sum() == space.size * 6 // 8
    assert not some.toggled("tile", (0, 1))
    assert RowFilter({"layout": frozenset({0, 1})}).passes(space, rows).sum() == 0
