"""Hints: one line where data is, the first time there is some; closed with a press, and never a second time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fixtures.lab import ready
from pytestqt.qtbot import QtBot

Open = Callable[..., Any]


def test_a_front_says_how_to_choose_once_it_has_points_and_never_again(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(speed=200.0))
    window.workspaces.show_workspace("tune")
    qtbot.waitUntil(lambda: window.panels.has("front") and window.panels["front"].isVisible(), timeout=20_000)
    assert "front" not in window.hints.shown, "there is nothing to choose yet"
    window.tune_example()
    qtbot.waitUntil(lambda: "front" in window.hints.shown, timeout=60_000)
    hint = window.hints.shown["front"]
    qtbot.waitUntil(hint.isVisible, timeout=5_000)
    assert window.panels["front"].isAncestorOf(hint)
    assert "Click a point to choose it" in hint.accessibleName()
    gone: list[bool] = []
    hint.destroyed.connect(lambda: gone.append(True))
    hint.close_button.click()
    qtbot.waitUntil(lambda: bool(gone), timeout=5_000)
    window.bridge.activity.stop()
    qtbot.waitUntil(lambda: not window.bridge.activity.busy, timeout=20_000)
    window.close()

    again = ready(qtbot, open_program(speed=200.0))
    again.tune_example()
    qtbot.waitUntil(lambda: again.result.best is not None and again.panels["front"].isVisible(), timeout=60_000)
    assert "front" not in again.hints.shown
    again.bridge.activity.stop()
    qtbot.waitUntil(lambda: not again.bridge.activity.busy, timeout=20_000)
