"""The window of a search space: what its restrictions leave, and its rows at any size."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest
from fixtures.lab import OBJECTIVE, grid_space, plan_for
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.base.formatting import count_text
from app.engine.space.build import build_space
from app.engine.space.search_space import SearchSpace
from app.engine.specification.examples import examples
from app.engine.specification.plan import SessionPlan
from app.sensors.clock import VirtualClock
from app.sensors.limits import limits_of
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.shared import theme
from app.views.tune.draft import draft_of_file
from app.views.tune.space_window import SpaceTable, SpaceWindow

ACROSS = Qt.Orientation.Horizontal


def plan_of(space: SearchSpace) -> SessionPlan:
    return plan_for(space, OBJECTIVE)


@pytest.fixture
def dgemm() -> SessionPlan:
    gpu = SimulatedGpu(load_twin("k20x"), clock=VirtualClock())
    path = next(path for path in examples() if path.stem == "dgemm")
    return draft_of_file(path, gpu, None, threading.Event()).plan


def test_each_restriction_has_its_line_in_the_order_applied(qtbot: QtBot, dgemm: SessionPlan) -> None:
    window = SpaceWindow()
    qtbot.addWidget(window)
    window.show_plan(dgemm)
    space = dgemm.space
    lines = window.picture.lines
    assert [line[0] for line in lines] == ["all combinations", *space.removed_by]
    assert [lines[0][1], lines[-1][1]] == [space.cartesian, space.size]
    assert all(above[1] >= below[1] for above, below in pairwise(lines))
    for text, left, share, tip in lines[1:]:
        removed = space.removed_by[text]
        assert share == "" if removed == 0 else share.startswith("−")
        assert count_text(left) in tip
    assert f"{count_text(space.size)} valid of" in window.words.text()
    assert "dgemm" in window.windowTitle()


def test_bars_shrink_with_what_is_left_in_light_and_dark(qtbot: QtBot) -> None:
    space = build_space({"a": list(range(100)), "b": list(range(100))}, ["a < 10", "b < 1"], {}, limits_of((8, 0)))
    window = SpaceWindow()
    qtbot.addWidget(window)
    window.resize(800, 500)
    window.show_plan(plan_of(space))
    window.show()
    qtbot.waitExposed(window)
    for mode in ("light", "dark"):
        theme.set_mode(mode)  # type: ignore[arg-type]
        picture = window.picture.grab().toImage()
        accent = QColor(theme.colours().accent)
        height = window.picture.height_of(2) - window.picture.height_of(1)
        filled = [
            sum(picture.pixelColor(x, int((line + 0.5) * height)) == accent for x in range(picture.width()))
            for line in (1, 2, 3)
        ]
        assert filled[0] > filled[1] > filled[2] > 0
        assert filled[0] - filled[1] == pytest.approx((filled[1] - filled[2]) / 2, abs=3)  # one decade, then two
    theme.set_mode("system")


def test_a_table_of_millions_of_rows_asks_only_for_what_it_shows(qtbot: QtBot) -> None:
    space = build_space({f"p{i}": list(range(1, 11)) for i in range(7)}, [], {}, limits_of((8, 0)))
    assert space.size == 10**7
    table = SpaceTable()
    qtbot.addWidget(table)
    table.resize(600, 400)
    asked: set[int] = set()
    data = table.rows.data
    table.rows.data = lambda index, role=0: (asked.add(index.row()), data(index, role))[1]  # type: ignore[method-assign]
    table.set_plan(plan_for(space, OBJECTIVE))
    table.show()
    qtbot.waitExposed(table)
    table.scrollToBottom()
    QTest.qWait(20)
    assert table.rows.space is space  # nothing is copied
    assert space.size - 1 in asked
    assert len(asked) < 200
    last = [table.rows.data(table.rows.index(space.size - 1, column)) for column in range(7)]
    assert last == ["10"] * 7
    assert table.rows.headerData(space.size - 1, Qt.Orientation.Vertical) == space.size


def test_a_row_is_found_selected_and_copied_as_one_line(qtbot: QtBot, dgemm: SessionPlan) -> None:
    window = SpaceWindow()
    qtbot.addWidget(window)
    window.show_plan(dgemm)
    window.show()
    qtbot.waitExposed(window)
    window.table.selectRow(3)
    window.table.copy_selected()
    text = QGuiApplication.clipboard().text()
    space = dgemm.space
    assert text == ", ".join(f"{name}={value}" for name, value in space.configuration(3).items())
    head = window.table.rows.headerData(len(space.names) - 1, ACROSS)
    assert "MHz" in head
    tip = window.table.rows.headerData(0, ACROSS, Qt.ItemDataRole.ToolTipRole)
    assert tip == f"dim_m: parameter of {len(space.parameters[0].values)} values"


def test_a_recorded_space_has_rows_and_no_restrictions(qtbot: QtBot) -> None:
    window = SpaceWindow()
    qtbot.addWidget(window)
    window.show_plan(plan_of(grid_space()))
    window.show()
    assert not window.pruning.isVisible()
    assert window.table.rows.rowCount() == grid_space().size
    window.show_plan(None)
    assert "Nothing is opened" in window.words.text()
    assert not window.table.isVisible()


def test_counts_beyond_any_float_are_written(qtbot: QtBot) -> None:
    assert count_text(999_999) == "999\u202f999"
    assert count_text(10**15) == "1.00·10¹⁵"
    assert count_text(65536**64).endswith("·10³⁰⁸")
    window = SpaceWindow()
    qtbot.addWidget(window)
    names = [f"p{i}" for i in range(20)]
    space = build_space({n: list(range(10)) for n in names}, [" + ".join(names) + " < 2"], {}, limits_of((8, 0)))
    window.show_plan(plan_of(space))
    assert window.words.text().startswith("21 valid of 1.00·10²⁰ combinations (1 in 4.76·10¹⁸)")
    window.picture.grab()
