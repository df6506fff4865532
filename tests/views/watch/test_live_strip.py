"""The strip of live traces: power, clock and voltage in little height, and nothing at all while it is out of sight."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fixtures.fakes import FakeGpu, filled_trace, working
from pytestqt.qtbot import QtBot

from app.views.shared.watched_boards import beat
from app.views.watch.live_strip import LiveStrip

GPU = FakeGpu(working)


@pytest.fixture
def strip(qtbot: QtBot) -> Iterator[LiveStrip]:
    made = LiveStrip(GPU, filled_trace(GPU, 60.0))
    qtbot.addWidget(made)
    yield made
    made.close()


def test_it_shows_power_clock_and_voltage_on_one_axis_at_its_least_height(qtbot: QtBot, strip: LiveStrip) -> None:
    strip.resize(900, 100)
    strip.show()
    qtbot.waitUntil(lambda: strip.view.snapshot is not None, timeout=5_000)
    assert strip.height() == 100
    assert [shown.lane.title for shown in strip.view.lanes] == ["Power", "Graphics clock", "Core voltage"]
    strip.resize(900, 700)
    assert strip.height() == 300
    assert "voltage" in strip.view.accessibleName()


def test_out_of_sight_it_looks_at_no_reading(qtbot: QtBot, strip: LiveStrip, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = filled_trace(GPU, 30.0)
    asked: list[int] = []
    monkeypatch.setattr(trace, "at", lambda instant: asked.append(instant) or {})
    strip.show_board(GPU, trace)
    trace.append(GPU.read())
    beat().strike()
    assert strip.view.snapshot is None
    assert not asked
    strip.resize(900, 150)
    strip.show()
    assert strip.view.snapshot is not None
    assert len(asked) == 1
    strip.hide()
    trace.append(GPU.read())
    beat().strike()
    assert len(asked) == 1


def test_another_board_is_shown_with_the_same_lanes(qtbot: QtBot, strip: LiveStrip) -> None:
    strip.resize(900, 150)
    strip.show()
    other = FakeGpu(working, name="Board Y")
    strip.show_board(other, filled_trace(other, 60.0))
    qtbot.waitUntil(lambda: strip.view.snapshot is not None, timeout=5_000)
    assert [shown.lane.title for shown in strip.view.lanes] == ["Power", "Graphics clock", "Core voltage"]
