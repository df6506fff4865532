"""The sentences of a session, each of which opens its figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for, progress, ready
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.space.result_table import ResultTable
from app.views.understand.answers_panel import AnswersPanel


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> AnswersPanel:
    made = AnswersPanel(lab.context)
    qtbot.addWidget(made, before_close_func=lambda widget: widget.shutdown())
    made.resize(700, 500)
    made.show()
    qtbot.waitExposed(made)
    return made


def end(lab: Lab, panel: AnswersPanel, qtbot: QtBot) -> ResultTable:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    assert "when it has ended" in panel.state.text()
    assert panel.list.count() == 0
    lab.engine.tell(events.SessionChanged(progress(table, SessionState.DONE)))
    qtbot.waitUntil(lambda: panel.list.count() > 0, timeout=20_000)
    return table


def sentences(panel: AnswersPanel) -> list[str]:
    return [panel.list.item(row).text() for row in range(panel.list.count())]


def test_without_a_session_one_line_says_what_it_needs(panel: AnswersPanel, qtbot: QtBot) -> None:
    assert panel.needs.isVisible()
    assert not panel.list.isVisible()
    with qtbot.waitSignal(panel.session_asked):
        panel.needs.button.click()


def test_at_its_end_a_session_says_what_it_found(lab: Lab, panel: AnswersPanel, qtbot: QtBot) -> None:
    end(lab, panel, qtbot)
    said = sentences(panel)
    assert said[0].startswith("Against the fastest, the best for max:GFLOPS/W takes")
    assert any("What matters for energy" in each and "over 150 measurements" in each for each in said)
    assert any("A model of the clocks could be fitted" in each for each in said)
    assert not panel.needs.isVisible()


def test_enter_and_a_click_open_the_figure_and_mark_what_it_is_about(
    lab: Lab, panel: AnswersPanel, qtbot: QtBot
) -> None:
    end(lab, panel, qtbot)
    asked: list[str] = []
    panel.figure_asked.connect(asked.append)
    panel.list.setFocus()
    qtbot.keyClick(panel.list, Qt.Key.Key_Return)
    assert asked == ["front"]
    assert len(lab.result.rows) == 2, "the best and the fastest"
    assert lab.result.index == -1, "marking chooses nothing"
    row = next(row for row, text in enumerate(sentences(panel)) if "What matters" in text)
    item = panel.list.item(row)
    place = panel.list.visualItemRect(item).center()
    qtbot.mouseClick(panel.list.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert asked[-1] == "importance"


def test_a_long_sentence_is_whole_in_a_narrow_panel(lab: Lab, panel: AnswersPanel, qtbot: QtBot) -> None:
    end(lab, panel, qtbot)
    wide = panel.list.visualItemRect(panel.list.item(0)).height()
    panel.resize(320, 500)
    qtbot.waitUntil(lambda: panel.list.visualItemRect(panel.list.item(0)).height() > wide)
    assert panel.list.visualItemRect(panel.list.item(0)).width() <= panel.list.viewport().width()


def test_in_the_window_each_figure_is_where_its_sentence_leads(open_program: Callable[..., Any], qtbot: QtBot) -> None:
    window = ready(qtbot, open_program())
    window.workspaces.show_workspace("understand")
    assert window.workspaces.current.tabs.currentIndex() == 0, "the answers come first"
    answers = window.panels["answers"]
    for figure, place in (("model", "model"), ("roofline", "roofline"), ("year", "analysis"), ("front", "front")):
        answers.figure_asked.emit(figure)
        assert window.panels[place].isVisible(), figure
    assert window.panels["analysis"].chosen.name == "year"
    answers.session_asked.emit()
    assert window.workspaces.current.spec.name == "tune"
