"""No key reaches a page that lies behind another: what has the focus is in sight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fixtures.lab import ready
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from app.views.shared.widgets import lies_behind, takes_focus
from app.views.shell.panels import WORKSPACES

Open = Callable[..., Any]


def stacks(place: Any) -> list[list[str]]:
    """The docks that share a place, by the tabs that stand above them; shown and settled."""
    names = {dock.windowTitle(): name for name, dock in place.docks.by_name.items()}
    bars = [each for each in place.findChildren(QTabBar) if each.parentWidget() is place and each.count() > 1]
    return [[names[bar.tabText(index)] for index in range(bar.count())] for bar in bars]


def button_in(page: QWidget) -> QAbstractButton | None:
    return next((each for each in page.findChildren(QAbstractButton) if takes_focus(each)), None)


@pytest.mark.parametrize("workspace", [spec.name for spec in WORKSPACES])
def test_space_presses_no_button_of_a_page_that_another_hides(qtbot: QtBot, open_program: Open, workspace: str) -> None:
    window = ready(qtbot, open_program())
    places = window.workspaces
    places.show_workspace(workspace)
    place = places.current
    pairs = [pair for stack in stacks(place) for pair in zip(stack, [*stack[1:], stack[0]], strict=True)]
    with_buttons = 0
    for name, other in pairs:
        for each in (other, name):
            places.bring(each)
            qtbot.waitUntil(lambda each=each: window.panels.has(each), timeout=60_000)
            qtbot.waitUntil(lambda each=each: not lies_behind(place.pages[each]), timeout=20_000)
        button = button_in(place.pages[name])
        if button is None:
            continue
        with_buttons += 1
        pressed: list[str] = []
        button.pressed.connect(lambda name=name, pressed=pressed: pressed.append(name))
        button.setFocus()
        place.docks.by_name[other].raise_()  # as a click on its tab does
        qtbot.waitUntil(lambda name=name: lies_behind(place.pages[name]), timeout=20_000)
        if window.focusWidget() is button:
            qtbot.keyClick(button, Qt.Key.Key_Space)
        assert not pressed, f"{button.text()} of {name}, which lies behind {other}, was pressed"
        qtbot.waitUntil(lambda: not lies_behind(window.focusWidget()), timeout=5_000)
    assert with_buttons or not pairs


def test_space_presses_no_button_of_the_workspace_that_was_left(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program())
    for left in WORKSPACES:
        for entered in WORKSPACES:
            window.workspaces.show_workspace(left.name)
            button = button_in(window.workspaces.current)
            if left is entered or button is None:
                continue
            button.setFocus()
            window.workspaces.show_workspace(entered.name)
            focused = window.focusWidget()
            assert focused is None or (focused.isVisible() and not lies_behind(focused)), (left.name, entered.name)
            assert focused is not button
