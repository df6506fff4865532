"""Marked measurements wherever they are seen: in the table, over the traces."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from fixtures.fakes import FakeGpu, filled_trace, working
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, measured, plan_for
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QItemSelection, QItemSelectionModel, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine.space.result_table import ResultTable
from app.views.front.table_panel import MarkedBar, ResultsView
from app.views.shared import theme
from app.views.watch.lane_view import LaneView
from app.views.watch.live_strip import WindowMarks, stretches_px, windows_of


def shown(lab: Lab, table: ResultTable, qtbot: QtBot) -> ResultsView:
    view = ResultsView(lab.result)
    qtbot.addWidget(view)
    plan = plan_for(table.space, OBJECTIVE)
    lab.session(table, plan)
    view.set_session(table, plan)
    view.resize(600, 400)
    view.show()
    return view


def rows_of(view: ResultsView) -> list[int]:
    return [view.results.index_at(row) for row in range(view.results.rowCount())]


def test_marked_rows_are_tinted_and_can_be_the_only_ones(qtbot: QtBot) -> None:
    lab = Lab()
    table = filled(grid_space())
    view = shown(lab, table, qtbot)
    lab.result.brush([9, 4, 40])
    tint = view.results.data(view.results.index(4, 0), Qt.ItemDataRole.BackgroundRole)
    assert tint is not None
    assert view.results.data(view.results.index(5, 0), Qt.ItemDataRole.BackgroundRole) is None
    view.show_only_marked(True)
    assert rows_of(view) == [4, 9, 40]
    view.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    key = table.values(view.results._columns[0][0].name)
    assert list(key[rows_of(view)]) == sorted(key[[4, 9, 40]], reverse=True)
    lab.result.brush([])
    assert len(rows_of(view)) == len(table)
    assert list(key[rows_of(view)][:20]) == sorted(key[np.isfinite(key)], reverse=True)[:20]  # still sorted


def test_a_growing_session_adds_no_row_to_those_marked_and_none_is_lost(qtbot: QtBot) -> None:
    lab = Lab()
    space = grid_space()
    table = filled(space, 20)
    view = shown(lab, table, qtbot)
    lab.result.brush([3])
    view.show_only_marked(True)
    table.extend(measured(space, row) for row in range(20, 50))
    view.refresh()
    assert rows_of(view) == [3]
    view.show_only_marked(False)
    assert rows_of(view) == list(range(50))
    table.extend(measured(space, row) for row in range(50, 60))
    view.refresh()
    assert rows_of(view) == list(range(60))


def test_several_rows_chosen_in_the_table_are_marked(qtbot: QtBot) -> None:
    lab = Lab()
    view = shown(lab, filled(grid_space()), qtbot)
    view.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    view.selectRow(2)
    assert not len(lab.result.rows)
    view.setFocus()
    shift = Qt.KeyboardModifier.ShiftModifier
    for _ in range(3):
        qtbot.keyClick(view, Qt.Key.Key_Down, shift)
    assert set(lab.result.rows) == {view.results.index_at(row) for row in (2, 3, 4, 5)}
    flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
    view.selectionModel().setCurrentIndex(view.results.index(8, 0), flags)
    assert len(lab.result.rows) == 4  # one row is looked at, not marked


def test_the_bar_above_the_table_comes_and_goes_with_the_marks(qtbot: QtBot) -> None:
    lab = Lab()
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    bar = MarkedBar(lab.result)
    qtbot.addWidget(bar)
    assert bar.isHidden()
    lab.result.brush(range(12))
    assert not bar.isHidden()
    assert bar.count.text() == "12 marked"
    bar.unmark.click()
    assert bar.isHidden()
    lab.result.brush([1])
    lab.session(table, plan_for(table.space, OBJECTIVE))
    assert not len(lab.result.rows)  # another session begins with nothing marked


def test_windows_of_marked_measurements_are_drawn_over_the_traces(qtbot: QtBot) -> None:
    gpu = FakeGpu(working)
    trace = filled_trace(gpu, 30.0)
    view = LaneView(gpu, trace)
    qtbot.addWidget(view)
    view.resize(700, 500)
    lab = Lab()
    marks = WindowMarks(lab.result, view, lab.boards.current)
    space = grid_space()
    table = ResultTable(space)
    for row in range(10):
        end_ns = trace.last_ns - row * 2_000_000_000
        window = (end_ns - 500_000_000, end_ns)
        table.append(replace(measured(space, row), window_ns=window, timestamp_s=time.time()))
    table.append(replace(measured(space, 10), window_ns=(trace.first_ns, trace.last_ns), timestamp_s=0.0))
    lab.session(table, plan_for(space, OBJECTIVE))
    view.redraw()
    view.show()
    qtbot.waitExposed(view)
    before = view.grab().toImage()
    lab.result.brush([1, 3, 10])
    assert len(marks.windows) == 2  # the last was measured before this window was opened
    after = view.grab().toImage()
    orange = QColor(theme.colours().orange).name()
    found = [x for x in range(after.width()) for y in range(80) if after.pixelColor(x, y).name() == orange]
    assert before != after
    assert len(found) > 20
    lab.result.brush([])
    lab.result.select(5)
    assert marks.windows.tolist() == [list(table.measurement(5).window_ns or ())]
    QApplication.processEvents()


def test_a_measurement_without_a_window_has_no_mark(qtbot: QtBot) -> None:
    gpu = FakeGpu(working)
    view = LaneView(gpu, filled_trace(gpu, 5.0))
    qtbot.addWidget(view)
    lab = Lab()
    marks = WindowMarks(lab.result, view, lab.boards.current)
    table = filled(grid_space(), 5)
    lab.session(table, plan_for(table.space, OBJECTIVE))
    lab.result.brush([0, 1, 2])
    assert not len(marks.windows)
    assert windows_of(table, 0, 5, 0.0).tolist() == [[0, 0]] * 5


@given(
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 500)), max_size=40),
    st.integers(0, 5000),
    st.integers(100, 8000),
)
def test_stretches_cover_just_the_windows_in_sight_without_touching(
    given_windows: list[tuple[int, int]], start: int, length: int
) -> None:
    windows = np.asarray(sorted((a, a + n) for a, n in given_windows), dtype=np.int64).reshape(-1, 2)
    found = stretches_px(windows, (start, start + length), 10.0, float(length))  # a pixel per ns
    covered = {ns for a, b in windows.tolist() for ns in range(max(a, start), min(b, start + length))}
    assert covered <= {
        start + px for x0, x1 in found.tolist() for px in range(round(x0 - 10), max(round(x1 - 10), round(x0 - 10) + 1))
    }
    assert (found[1:, 0] > found[:-1, 1]).all()
    assert ((found >= 10) & (found <= 10 + length)).all()


def test_ctrl_a_marks_every_row_and_sorting_very_many_chosen_rows_keeps_their_marks(qtbot: QtBot) -> None:
    lab = Lab()
    table = filled(grid_space(20, 16))
    view = shown(lab, table, qtbot)
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    assert len(lab.result.rows) == len(table)
    lab.result.brush([])
    lab.result.select(0)
    model = view.results
    whole = QItemSelection(model.index(0, 0), model.index(model.rowCount() - 1, 0))
    flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
    view.selectionModel().select(whole, flags)
    marked = lab.result.rows.copy()
    assert len(marked) == len(table)
    view.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    assert len(view.selectionModel().selectedRows()) == 1
    assert np.array_equal(lab.result.rows, marked)
    qtbot.keyClick(view, Qt.Key.Key_Left)  # no key is held any more: Qt remembers that of the last event
