"""Tune is set up, running or decided on; which follows from what happens, and the plot has the room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fixtures.lab import ready
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.base.paths import resources
from app.engine.session import events
from app.views.shell.panels import DECIDE, RUNNING, SET_UP

Open = Callable[..., Any]
EXAMPLE = resources() / "examples" / "gemm.toml"
DRAWERS = ("tune", "queue", "table", "convergence", "pool")


def state_of(window: Any) -> str:
    return str(window.workspaces.by_name["tune"].state)


def open_drawers(window: Any) -> set[str]:
    return {name for name in DRAWERS if not window.workspaces.docks[name].isHidden()}


def share_of_plot(window: Any) -> float:
    """Of the window's area, what the plot of the front has."""
    plot = window.panels["front"].plot
    return float(plot.width() * plot.height() / (window.width() * window.height()))


def run_example(qtbot: QtBot, window: Any) -> None:
    """As from Home: it is started at once."""
    window.open_specification(EXAMPLE, start=True)
    qtbot.waitUntil(lambda: state_of(window) == RUNNING, timeout=60_000)


def end(qtbot: QtBot, window: Any) -> None:
    window.bridge.activity.stop()
    qtbot.waitUntil(lambda: state_of(window) == DECIDE, timeout=60_000)


@pytest.mark.parametrize(("size", "least"), [((1366, 768), 0.5), ((1280, 720), 0.45)])
def test_the_plot_has_half_of_the_window_while_it_runs_and_while_one_decides(
    qtbot: QtBot, open_program: Open, size: tuple[int, int], least: float
) -> None:
    window = ready(qtbot, open_program(speed=60.0))
    window.resize(*size)
    run_example(qtbot, window)
    qtbot.waitUntil(lambda: share_of_plot(window) >= least, timeout=20_000)
    assert (window.width(), window.height()) == size
    end(qtbot, window)
    qtbot.waitUntil(lambda: window.workspaces.shows_inspector and share_of_plot(window) >= least, timeout=20_000)
    assert (window.width(), window.height()) == size


def test_the_state_follows_and_the_user_can_go_back(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(speed=60.0))
    window.workspaces.show_workspace("tune")
    states = window.tune_states
    assert state_of(window) == SET_UP
    assert open_drawers(window) == {"tune"}
    assert not states.buttons[RUNNING].isEnabled()
    assert not states.buttons[DECIDE].isEnabled()
    run_example(qtbot, window)
    assert open_drawers(window) == set()
    assert not window.workspaces.shows_inspector
    qtbot.waitUntil(lambda: states.line.text().startswith("measuring "), timeout=60_000)
    qtbot.waitUntil(lambda: (~window.result.table.timed()).sum() > 4, timeout=60_000)  # they are timed before
    states.buttons[SET_UP].click()
    assert open_drawers(window) == {"tune"}
    assert window.bridge.activity.busy, "nothing is lost by looking back"
    states.buttons[RUNNING].click()
    assert open_drawers(window) == set()
    end(qtbot, window)
    assert states.buttons[DECIDE].isChecked()
    assert window.workspaces.shows_inspector
    assert states.line.text().startswith("stopped")
    qtbot.waitUntil(lambda: states.health.text().startswith("Health: "), timeout=20_000)  # good where the host keeps up


def test_a_drawer_that_was_opened_in_a_state_is_open_in_it_again(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(speed=60.0))
    window.workspaces.show_workspace("tune")
    states = window.tune_states
    table = next(button for button in states.drawers if button.text() == "Table")
    states.enter(DECIDE)
    table.setFocus()
    QTest.keyClick(table, Qt.Key.Key_Space)
    assert open_drawers(window) == {"table"}
    states.enter(SET_UP)
    assert open_drawers(window) == {"tune"}
    states.enter(DECIDE)
    assert open_drawers(window) == {"table"}
    assert table.isChecked()
    window.reset_layout()
    assert open_drawers(window) == set()


def test_a_drawer_behind_another_comes_to_the_front(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program())
    window.resize(1366, 768)
    window.workspaces.show_workspace("tune")
    tune = window.workspaces.by_name["tune"]
    table, session = (
        next(button for button in window.tune_states.drawers if button.text() == name) for name in ("Table", "Session")
    )
    table.click()
    qtbot.waitUntil(lambda: tune.docks.in_front("table"), timeout=10_000)
    if tune.docks.lies_behind("tune"):
        session.click()
        qtbot.waitUntil(lambda: tune.docks.in_front("tune"), timeout=10_000)
        assert session.isChecked()
    session.click()
    assert open_drawers(window) == {"table"}


def test_a_file_that_is_opened_while_one_decides_is_set_up(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(speed=60.0))
    run_example(qtbot, window)
    end(qtbot, window)
    window.open_specification(EXAMPLE)
    assert state_of(window) == SET_UP
    assert open_drawers(window) == {"tune"}


def test_a_session_that_is_opened_is_decided_on(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(speed=60.0))
    run_example(qtbot, window)
    end(qtbot, window)
    window.tune_states.enter(SET_UP)
    window.bridge.submit(events.Open(1))
    qtbot.waitUntil(lambda: state_of(window) == DECIDE, timeout=20_000)


def test_the_time_it_takes_is_said_before_the_start_and_follows_what_is_chosen(
    qtbot: QtBot, open_program: Open
) -> None:
    window = ready(qtbot, open_program(speed=10.0))
    tune = window.panels["tune"]
    window.open_specification(EXAMPLE)
    qtbot.waitUntil(lambda: tune.expected.text().startswith("Takes "), timeout=30_000)
    before = tune.expected.text()
    tune.form.evaluations.setValue(20)
    assert tune.expected.text() != before
    twenty = tune.expected.text()
    window.boards.set_speed(60.0)
    assert tune.expected.text() != twenty


def test_the_choices_over_the_front_give_way_to_a_drawer(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(speed=60.0))
    window.resize(1366, 768)
    run_example(qtbot, window)
    front = window.panels["front"]
    qtbot.waitUntil(lambda: front.figures.isVisible() and front.figures.height() < 40, timeout=20_000)
    window.workspaces.set_dock("table", True)
    qtbot.waitUntil(lambda: front.figures.height() > 40, timeout=20_000)
    page = window.workspaces.by_name["tune"].pages["front"]
    assert front.width() <= page.width()
    assert window.workspaces.docks["table"].width() > 250
