"""The results table: what it shows, how it sorts while results stream in, and the selection it shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, measured, plan_for
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QTextDocument
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Limit
from app.engine.space.result_table import ResultTable
from app.views.front.table_panel import ResultsModel, ResultsView

ASCENDING, DESCENDING = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder


def shown(model: ResultsModel, head: str) -> list[str]:
    """A column as it is shown."""
    column = heads(model).index(head)
    return [model.data(model.index(row, column)) for row in range(model.rowCount())]


def heads(model: ResultsModel) -> list[str]:
    return [model.headerData(c, Qt.Orientation.Horizontal) for c in range(model.columnCount())]


def model_of(table: ResultTable) -> ResultsModel:
    model = ResultsModel()
    model.set_session(table, plan_for(table.space, OBJECTIVE))
    return model


def test_heads_have_units_and_the_session_s_goals_come_first(qapp: object) -> None:
    model = model_of(filled(grid_space()))
    assert heads(model) == [
        "#",
        "State",
        "GFLOPS/W",
        "GFLOP/s",
        "Graphics clock (MHz)",
        "tile",
        "layout",
        "Time (ms)",
        "Energy (J)",
        "Power (W)",
    ]


def test_what_breaks_a_limit_says_so_and_which(qapp: object) -> None:
    space = grid_space()
    table = ResultTable(space)
    for row, time_s in enumerate((0.01, 0.03)):
        table.append(Measurement(row, space.configuration(row), State.OK, {"time_s": time_s}))
    plan = plan_for(space, replace(OBJECTIVE, limits=(Limit("time_s", True, 0.02),)))
    model = ResultsModel()
    model.set_session(table, plan)
    assert shown(model, "State") == ["ok", "over a limit"]
    assert model.data(model.index(1, 0), Qt.ItemDataRole.ToolTipRole) == "time_s is 0.03, more than 0.02"
    assert model.data(model.index(0, 0), Qt.ItemDataRole.ForegroundRole) is None
    assert model.data(model.index(1, 0), Qt.ItemDataRole.ForegroundRole) is not None


def test_rates_and_latencies_of_a_service_have_their_units(qapp: object) -> None:
    space = grid_space()
    table = ResultTable(space)
    values = {"output_tokens_per_s": 602.0, "ttft_p95_s": 0.041, "energy_per_token_j": 0.5}
    table.append(Measurement(0, space.configuration(0), State.OK, values))
    model = model_of(table)
    assert shown(model, "Output tokens (1/s)") == ["602"]
    assert shown(model, "First token, 95 % (ms)") == ["41"]
    assert shown(model, "Energy per token (J)") == ["0.5"]


def test_times_are_shown_in_milliseconds_and_the_unknown_as_a_dash(qapp: object) -> None:
    space = grid_space()
    table = ResultTable(space)
    table.append(Measurement(0, space.configuration(0), State.OK, {"time_s": 0.0125, "power_w": float("nan")}))
    model = model_of(table)
    assert shown(model, "Time (ms)") == ["12.5"]
    assert shown(model, "Power (W)") == ["–"]


def test_sorting_is_by_number_with_the_unknown_last_in_both_directions(qapp: object) -> None:
    table = filled(grid_space())
    model = model_of(table)
    column = heads(model).index("GFLOPS/W")
    for order in (ASCENDING, DESCENDING):
        model.sort(column, order)
        values = table.values("GFLOPS/W")[[model.index_at(r) for r in range(model.rowCount())]]
        known = values[np.isfinite(values)]
        assert 0 < len(known) < len(values)
        assert np.isnan(values[len(known) :]).all()
        assert (np.diff(known) * (1 if order is ASCENDING else -1) >= 0).all()
    model.sort(-1)
    assert [model.index_at(r) for r in range(model.rowCount())] == list(range(len(table)))


def test_results_that_stream_in_land_where_they_belong(qapp: object) -> None:
    space = grid_space()
    table = ResultTable(space)
    table.append(measured(space, 0))
    model = model_of(table)
    model.sort(heads(model).index("GFLOP/s"), DESCENDING)
    for row in np.random.default_rng(4).permutation(np.arange(1, space.size)):
        table.append(measured(space, int(row)))
        if row % 7 == 0:
            model.refresh()
    model.refresh()
    order = [model.index_at(r) for r in range(model.rowCount())]
    assert sorted(order) == list(range(space.size))
    values = table.values("GFLOP/s")[order]
    known = values[np.isfinite(values)]
    assert (np.diff(known) <= 0).all()


def test_it_is_a_well_behaved_model(qtmodeltester: ModelTester) -> None:
    space = grid_space(3, 3)
    table = ResultTable(space)
    model = model_of(table)
    for row in range(space.size):
        table.append(measured(space, row))
        model.refresh()
    model.sort(2, DESCENDING)
    qtmodeltester.check(model, force_py=True)


def test_a_failed_configuration_shows_its_state_and_the_compiler_s_words(qapp: object) -> None:
    table = filled(grid_space())
    model = model_of(table)
    row = shown(model, "State").index("compile")
    assert model.data(model.index(row, 1), Qt.ItemDataRole.ToolTipRole) == "too many registers"


def test_the_best_is_starred_and_only_one(qapp: object) -> None:
    model = model_of(filled(grid_space()))
    model.set_best(3)
    model.set_best(5)
    assert [text for text in shown(model, "#") if "★" in text] == ["★ 6"]


def test_a_chosen_row_is_the_shared_selection_and_back_also_when_sorted(qtbot: QtBot) -> None:
    lab = Lab()
    table = filled(grid_space())
    plan = plan_for(table.space, OBJECTIVE)
    view = ResultsView(lab.result)
    qtbot.addWidget(view)
    lab.session(table, plan)
    view.set_session(table, plan)
    view.sortByColumn(2, DESCENDING)
    click(qtbot, view, 4)
    assert lab.result.index == view.results.index_at(4)
    lab.result.select(11)
    assert view.results.index_at(view.currentIndex().row()) == 11
    lab.result.select(-1)
    assert not view.selectionModel().hasSelection()


def click(qtbot: QtBot, view: ResultsView, row: int, key: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    at = view.visualRect(view.results.index(row, 0)).center()
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, key, at)


def test_focus_and_arrows_move_a_cursor_and_choose_nothing(qtbot: QtBot) -> None:
    lab = Lab()
    table = filled(grid_space(), 20)
    view = ResultsView(lab.result)
    qtbot.addWidget(view)
    lab.session(table, plan_for(table.space, OBJECTIVE))
    view.set_session(table, plan_for(table.space, OBJECTIVE))
    view.resize(600, 400)
    view.show()
    view.setFocus(Qt.FocusReason.TabFocusReason)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_End, Qt.Key.Key_Home, Qt.Key.Key_Down):
        qtbot.keyClick(view, key)
        assert lab.result.index == -1, "nothing is chosen"
        assert not view.selectionModel().hasSelection()
    assert view.currentIndex().row() == 2, "End and Home are of the columns"
    lab.result.select(9, "fastest")
    qtbot.keyClick(view, Qt.Key.Key_Up)
    assert (lab.result.index, lab.result.way) == (9, "fastest")
    assert [selectedRow.row() for selectedRow in view.selectionModel().selectedRows()] == [9], (
        "what is chosen stays to be seen"
    )
    view.clearFocus()
    view.setFocus(Qt.FocusReason.ShortcutFocusReason)
    assert (lab.result.index, lab.result.way) == (9, "fastest")


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space])
def test_enter_and_space_choose_the_row_of_the_cursor(qtbot: QtBot, key: Qt.Key) -> None:
    lab = Lab()
    table = filled(grid_space(), 20)
    view = ResultsView(lab.result)
    qtbot.addWidget(view)
    lab.session(table, plan_for(table.space, OBJECTIVE))
    view.set_session(table, plan_for(table.space, OBJECTIVE))
    view.show()
    lab.result.select(3, "fastest")
    qtbot.keyClick(view, Qt.Key.Key_Down)
    qtbot.keyClick(view, Qt.Key.Key_Down)
    qtbot.keyClick(view, key)
    assert (lab.result.index, lab.result.way) == (5, "")
    assert [selectedRow.row() for selectedRow in view.selectionModel().selectedRows()] == [5]


def test_a_click_chooses_and_one_with_shift_or_ctrl_marks(qtbot: QtBot) -> None:
    lab = Lab()
    table = filled(grid_space(), 20)
    view = ResultsView(lab.result)
    qtbot.addWidget(view)
    lab.session(table, plan_for(table.space, OBJECTIVE))
    view.set_session(table, plan_for(table.space, OBJECTIVE))
    view.resize(600, 600)
    view.show()
    click(qtbot, view, 2)
    assert lab.result.index == 2
    click(qtbot, view, 5, Qt.KeyboardModifier.ShiftModifier)
    assert (lab.result.index, lab.result.rows.tolist()) == (2, [2, 3, 4, 5])
    click(qtbot, view, 7, Qt.KeyboardModifier.ControlModifier)
    assert (lab.result.index, lab.result.rows.tolist()) == (2, [2, 3, 4, 5, 7])


def test_the_selected_row_stays_selected_while_the_table_is_sorted_and_grows(qtbot: QtBot) -> None:
    lab = Lab()
    space = grid_space()
    table = filled(space, 20)
    plan = plan_for(space, OBJECTIVE)
    view = ResultsView(lab.result)
    qtbot.addWidget(view)
    lab.session(table, plan)
    view.set_session(table, plan)
    lab.result.select(7)
    view.sortByColumn(2, DESCENDING)
    table.extend(measured(space, row) for row in range(20, 60))
    view.refresh()
    assert lab.result.index == 7
    assert view.results.index_at(view.selectionModel().selectedRows()[0].row()) == 7


def test_copy_puts_the_configuration_on_the_clipboard(qtbot: QtBot) -> None:
    lab = Lab()
    table = filled(grid_space())
    plan = plan_for(table.space, OBJECTIVE)
    view = ResultsView(lab.result)
    qtbot.addWidget(view)
    lab.session(table, plan)
    view.set_session(table, plan)
    lab.result.select(0)
    view.copy_selected()
    assert QGuiApplication.clipboard().text() == "graphics_clock_mhz=900, tile=1, layout=row"


def test_what_is_marked_before_the_table_has_heard_of_it_is_shown(qtbot: QtBot) -> None:
    space = grid_space()
    table = filled(space, 2)
    model = model_of(table)
    table.append(measured(space, 2))
    model.set_marked(np.array([2]), only=True)
    assert shown(model, "#") == ["3"]


def test_what_is_marked_of_another_result_is_not(qtbot: QtBot) -> None:
    model = ResultsModel()
    model.set_session(None, None)
    model.set_marked(np.array([0]), only=True)
    assert model.rowCount() == 0


def test_the_message_of_a_compiler_in_a_tool_tip_is_never_html(qtbot: QtBot) -> None:
    space = grid_space()
    table = ResultTable(space)
    error = "no instance of <img src='file:///tmp/x.png'> & <b>vector<int></b>"
    table.append(Measurement(0, space.configuration(0), State.COMPILE, {}, error=error))
    model = model_of(table)
    tip = model.data(model.index(0, 1), Qt.ItemDataRole.ToolTipRole)
    shown_as = QTextDocument()
    shown_as.setHtml(tip)
    assert tip.startswith("<qt>"), "else Qt guesses whether it is HTML"
    assert shown_as.toPlainText() == error
