"""Choosing, ordering, hiding and scaling the traces: by the menu on them and in a window; kept over restarts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fixtures.fakes import FakeGpu, filled_trace, working
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QModelIndex, QPoint, Qt
from pytestqt.qtbot import QtBot

from app.sensors.clock import VirtualClock
from app.views.watch.lanes import LANES, LaneChoice
from app.views.watch.monitor_panel import LanesWindow, MonitorPanel

USUAL = ["Power", "Graphics clock", "Memory clock", "Core voltage", "Temperature", "Utilisation"]


def monitor(qtbot: QtBot) -> MonitorPanel:
    gpu = FakeGpu(working, clock=VirtualClock(start_ns=10**13))
    panel = MonitorPanel(gpu, filled_trace(gpu, 60.0))
    qtbot.addWidget(panel)
    panel.resize(900, 700)
    panel.show()
    panel.tick()
    return panel


@pytest.fixture
def panel(qtbot: QtBot) -> Iterator[MonitorPanel]:
    made = monitor(qtbot)
    yield made
    made.shutdown()


def titles(panel: MonitorPanel) -> list[str]:
    return [shown.lane.title for shown in panel.view.lanes]


def pick(panel: MonitorPanel, lane: str, words: str) -> None:
    """What the menu of a lane offers."""
    panel.view.menu_asked.emit(QPoint(10, 10), lane)
    menu = panel.menu.opened
    assert menu is not None
    (action,) = [each for each in menu.actions() if each.text().replace("&", "") == words]
    action.trigger()
    menu.close()


def window_of(panel: MonitorPanel) -> LanesWindow:
    panel.lanes_menu.show_window()
    assert panel.lanes_menu.window is not None
    return panel.lanes_menu.window


def select(window: LanesWindow, title: str) -> None:
    (item,) = window.list.findItems(title, Qt.MatchFlag.MatchStartsWith)
    window.list.setCurrentItem(item)


def test_a_right_click_opens_the_menu_of_the_lane_there_and_a_right_drag_moves_through_time(
    panel: MonitorPanel, qtbot: QtBot
) -> None:
    view = panel.view
    asked: list[str] = []
    view.menu_asked.connect(lambda _, title: asked.append(title))
    qtbot.mousePress(view, Qt.MouseButton.RightButton, pos=QPoint(300, 60))
    qtbot.mouseMove(view, QPoint(500, 60))
    qtbot.mouseRelease(view, Qt.MouseButton.RightButton, pos=QPoint(500, 60))
    assert asked == []
    qtbot.mouseClick(view, Qt.MouseButton.RightButton, pos=QPoint(300, 60))
    assert asked == ["Power"]
    assert panel.menu.opened is not None
    panel.menu.opened.close()


def test_lanes_are_hidden_shown_and_moved_by_the_menu_and_stay_so(panel: MonitorPanel, qtbot: QtBot) -> None:
    assert titles(panel) == USUAL
    pick(panel, "Memory clock", "Hide Memory clock")
    pick(panel, "Temperature", "Move up")
    assert titles(panel) == ["Power", "Graphics clock", "Temperature", "Core voltage", "Utilisation"]
    pick(panel, "", "PCIe")
    assert titles(panel)[-1] == "PCIe"
    assert panel.view.snapshot is not None
    assert panel.view.snapshot.curves["pcie_rx_mb_per_s"].extent() == (12.5, 12.5)
    assert "memory_clock_mhz" not in panel.view.snapshot.curves, "what is hidden costs nothing"
    again = monitor(qtbot)
    assert titles(again) == titles(panel)
    again.shutdown()
    window_of(panel).reset.click()
    assert titles(panel) == USUAL


def test_the_window_chooses_orders_and_scales(panel: MonitorPanel) -> None:
    window = window_of(panel)
    select(window, "Utilisation")
    for _ in range(5):
        window.up.click()
    assert titles(panel)[0] == "Utilisation"
    window.list.model().moveRow(QModelIndex(), 1, QModelIndex(), 0)  # as dragging does
    assert titles(panel)[:2] == ["Power", "Utilisation"]
    (item,) = window.list.findItems("Graphics clock", Qt.MatchFlag.MatchExactly)
    item.setCheckState(Qt.CheckState.Unchecked)
    assert "Graphics clock" not in titles(panel)
    pick(panel, "", "Graphics clock")
    (item,) = window.list.findItems("Graphics clock", Qt.MatchFlag.MatchExactly)
    assert item.checkState() is Qt.CheckState.Checked, "the window follows the menu"
    select(window, "Power")
    assert (window.low.value(), window.high.value()) == panel.view.ranges["Power"]
    assert not window.fixed.isChecked()
    window.high.setValue(400.0)
    assert window.fixed.isChecked(), "typing an end fixes the scale"
    assert panel.view.ranges["Power"] == (0.0, 400.0)
    window.low.setValue(500.0)
    assert panel.view.ranges["Power"] == (0.0, 400.0), "no range: nothing changes"
    window.fixed.setChecked(False)
    assert panel.view.ranges["Power"] != (0.0, 400.0)


def test_the_voltage_that_is_estimated_has_a_scale_of_its_own() -> None:
    volts = next(lane for lane in LANES if lane.title == "Core voltage")
    choice = LaneChoice().fix(volts, (700.0, 1100.0))
    assert choice.scale(volts) == (700.0, 1100.0)
    assert LaneChoice.of(choice.text()) == choice


@given(st.text() | st.recursive(st.none() | st.text(), lambda inner: st.lists(inner)).map(repr))
def test_settings_edited_by_hand_show_the_usual_lanes(text: str) -> None:
    assert LaneChoice.of(text).shows("Power")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"order": 1, "switched": {}, "scales": {}}', '{"order": [], "switched": [], "scales": {}}',
     '{"order": [], "switched": {}, "scales": {"Power, W": [5, 1]}}',
     '{"order": [], "switched": {}, "scales": {"Power, W": ["x", 1]}}',
     '{"order": [], "switched": {}, "scales": {"Power, W": [NaN, 1]}}'],
)  # fmt: skip
def test_nonsense_is_no_choice(text: str) -> None:
    assert LaneChoice.of(text) == LaneChoice()


def test_the_power_of_every_watched_board_is_in_one_lane_named_and_at_its_own_time(
    panel: MonitorPanel, qtbot: QtBot
) -> None:
    own = panel.view.snapshot
    assert own is not None
    clock = VirtualClock(start_ns=3 * 10**12)  # the same moment by another clock
    other = FakeGpu(
        lambda seconds: {"power_instant_w": 400.0 + seconds}, clock=clock, name="NVIDIA H200", source="nvml"
    )
    slow = FakeGpu(working, name="at another speed")
    panel.view.set_boards([(other, filled_trace(other, 60.0)), (slow, filled_trace(slow, 1.0))])
    assert titles(panel) == ["Power", "Power of every board", *USUAL[1:]]
    lane = panel.view.lanes[1]
    assert [line.label for line in lane.lines] == ["Fake A100 (simulated)", "H200 #0"]
    assert panel.view.snapshot is not None
    curve = panel.view.snapshot.curves[lane.lines[1].channel]
    at_30_s = curve.value[abs(curve.time_s - 30.0).argmin()]
    assert float(at_30_s) == pytest.approx(430.0, abs=1.0)
    values = panel.view.values_at(panel.view.snapshot.start_ns + 20 * 10**9)
    assert values[lane.lines[1].channel] == pytest.approx(420.0, abs=1.0)
    panel.view.set_boards([])
    assert titles(panel) == USUAL


def test_boards_beyond_the_colours_are_counted(panel: MonitorPanel) -> None:
    boards = [FakeGpu(working, clock=VirtualClock()) for _ in range(9)]
    panel.view.set_boards([(board, filled_trace(board, 1.0)) for board in boards])
    lane = panel.view.lanes[1]
    assert len({line.colour for line in lane.lines}) == len(lane.lines) == 7
    assert lane.source == "and 3 more"
