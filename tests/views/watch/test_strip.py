"""The compact strip: power, clock and limit above all other windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fixtures.fakes import FakeGpu, filled_trace, working
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from app.sensors.clock import VirtualClock
from app.views.shared.settings import Settings
from app.views.watch.strip import PowerStrip

Open = Callable[..., Any]


@pytest.fixture
def strip(qtbot: QtBot) -> PowerStrip:
    gpu = FakeGpu(working, clock=VirtualClock(start_ns=10**13))
    made = PowerStrip(gpu, filled_trace(gpu, 15.0), Settings())
    qtbot.addWidget(made)
    made.show()
    return made


def test_it_shows_the_newest_power_clock_and_limit_and_that_the_board_is_simulated(strip: PowerStrip) -> None:
    assert strip.power.text().startswith("3")
    assert strip.power.text().endswith(" W")
    assert strip.clock.text() == "210 MHz"
    assert strip.limit.text() == "limit 250 W"
    assert strip.name.text() == "Fake A100 (simulated)"
    assert strip.windowFlags() & Qt.WindowType.WindowStaysOnTopHint


def test_it_follows_the_board_that_is_shown(strip: PowerStrip) -> None:
    gpu = FakeGpu(lambda _: {"power_instant_w": 512.0}, name="NVIDIA H200", source="nvml")
    strip.show_board(gpu, filled_trace(gpu, 1.0))
    assert (strip.name.text(), strip.power.text(), strip.clock.text()) == ("H200 #0", "512.0 W", "–")


def test_it_closes_by_the_keyboard_and_comes_back_to_its_place(strip: PowerStrip, qtbot: QtBot) -> None:
    strip.move(120, 90)
    with qtbot.waitSignal(strip.closed, timeout=3000):
        qtbot.keyClick(strip, Qt.Key.Key_Escape)
    gpu = FakeGpu(working)
    again = PowerStrip(gpu, filled_trace(gpu, 1.0), Settings())
    qtbot.addWidget(again)
    assert again.pos() == QPoint(120, 90)


def test_the_menu_shows_it_and_knows_that_it_was_closed(qtbot: QtBot, open_program: Open) -> None:
    window = open_program(gpu=FakeGpu(working)).window
    action = window.actions_by_name["strip"]
    action.trigger()
    strip = window.strip
    assert strip.isVisible()
    qtbot.waitUntil(lambda: strip.power.text().endswith(" W"), timeout=5000)
    strip.shut.click()
    assert not action.isChecked()
    action.trigger()
    assert strip.isVisible()
    window.close()
    assert not strip.isVisible(), "it goes with the window"
