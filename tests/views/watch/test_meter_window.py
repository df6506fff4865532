"""The wizard of power meters: it finds them, shows one live, and assigns it to the shown board, where it is drawn."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.lab import Lab
from pytestqt.qtbot import QtBot

from app.engine.metering.external_meters import MeterChoice, meters_beside
from app.sensors.clock import ScaledClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.shared.watched_boards import WatchedBoards
from app.views.watch.board_meters import BoardMeters
from app.views.watch.lane_view import LaneView
from app.views.watch.meters_window import MeterWindow

PRINTS = """
import time
while True:
    print(f"{time.time():.6f} 123.0", flush=True)
    time.sleep(0.02)
"""


@pytest.fixture
def boards(qtbot: QtBot) -> Iterator[WatchedBoards]:
    lab = Lab()
    made = WatchedBoards(SimulatedGpu(load_twin("a100"), clock=ScaledClock(1.0)), lab.bridge)
    made.lab = lab  # type: ignore[attr-defined]  # the bridge lives as long
    yield made
    made.close()


@pytest.fixture
def meters(boards: WatchedBoards) -> Iterator[BoardMeters]:
    made = BoardMeters(boards)
    yield made
    made.shutdown()


@pytest.fixture
def window(qtbot: QtBot, boards: WatchedBoards, meters: BoardMeters) -> Iterator[MeterWindow]:
    made = MeterWindow(boards.current, meters)
    qtbot.addWidget(made)
    yield made
    made.shutdown()


def look_at(qtbot: QtBot, window: MeterWindow, selector: str) -> Any:
    window.selector.setText(selector)
    window.look_at()
    qtbot.waitUntil(lambda: window.looked_at is not None, timeout=10_000)
    assert window.looked_at is not None
    return window.looked_at[1]


def test_it_finds_meters_and_a_chosen_one_can_be_looked_at_live(qtbot: QtBot, window: MeterWindow) -> None:
    qtbot.waitUntil(lambda: window.found.count() > 0, timeout=10_000)
    assert not window.selector.text(), "what is typed stays until one is chosen"
    selectors = [window.found.item(row).toolTip() for row in range(window.found.count())]
    window.found.setCurrentRow(selectors.index("simulated"))
    meter = look_at(qtbot, window, window.selector.text())
    qtbot.waitUntil(lambda: meter.record.count > 10, timeout=10_000)
    window.tick()
    assert "Meter (simulated)" in window.said.text()
    assert " W" in window.said.text()
    [curve] = window.plot.listDataItems()
    assert len(curve.getData()[1]) > 1


def test_what_is_assigned_is_beside_the_board_and_drawn_on_its_time_axis(
    qtbot: QtBot, window: MeterWindow, boards: WatchedBoards, meters: BoardMeters, tmp_path: Path
) -> None:
    program = tmp_path / "meter.py"
    program.write_text(PRINTS)
    look_at(qtbot, window, f"command:{sys.executable} {program}")
    with qtbot.waitSignal(meters.changed, timeout=10_000):
        window.assign_it()
    beside = meters_beside(boards.current.gpu.info)
    assert beside is not None
    assert list(beside.meters) == ["command"]
    assert window.assigned.count() == 1
    board = boards.current
    view = LaneView(board.gpu, board.trace)
    qtbot.addWidget(view)
    view.resize(600, 500)
    view.set_meters(meters.meters(board))
    assert "Meters beside the board" in [shown.lane.title for shown in view.lanes]
    qtbot.waitUntil(lambda: beside.meters["command"].record.trace.last_ns > 0, timeout=10_000)
    view.show()
    qtbot.waitUntil(lambda: 123.0 in view.values_at(board.trace.last_ns).values(), timeout=10_000)
    view.redraw()
    assert view.snapshot is not None
    curves = [curve for name, curve in view.snapshot.curves.items() if name.startswith("meter ")]
    assert curves[0].extent() == (123.0, 123.0)


def test_the_assignment_is_remembered_and_can_be_taken_away(
    qtbot: QtBot, window: MeterWindow, boards: WatchedBoards, meters: BoardMeters
) -> None:
    look_at(qtbot, window, "simulated:0.9")
    with qtbot.waitSignal(meters.changed, timeout=10_000):
        window.assign_it()
    window.source.setCurrentText("simulated")
    with qtbot.waitSignal(meters.changed, timeout=10_000):
        window.source.activated.emit(1)
    wanted = MeterChoice(("simulated:0.9",), "simulated")
    assert meters.choice(boards.current) == wanted
    again = BoardMeters(boards)
    qtbot.waitUntil(lambda: again.choice(boards.current) == wanted, timeout=10_000)
    again.shutdown()
    window.assigned.setCurrentRow(0)
    with qtbot.waitSignal(meters.changed, timeout=10_000):
        window.remove_it()
    assert not meters.choice(boards.current)
    assert not meters.meters(boards.current)


def test_a_meter_that_is_none_is_said_in_one_line_and_not_assigned(
    qtbot: QtBot, window: MeterWindow, boards: WatchedBoards, meters: BoardMeters
) -> None:
    window.selector.setText("powersensor3:/dev/no-such-port")
    window.look_at()
    qtbot.waitUntil(lambda: "no such serial port" in window.said.text(), timeout=10_000)
    window.assign_it()
    assert window.looked_at is None
    assert not meters.choice(boards.current)


def test_a_meter_that_is_lost_is_reported_once(
    qtbot: QtBot, window: MeterWindow, boards: WatchedBoards, meters: BoardMeters
) -> None:
    look_at(qtbot, window, "simulated")
    with qtbot.waitSignal(meters.changed, timeout=10_000):
        window.assign_it()
    said: list[str] = []
    meters.failed.connect(lambda what, remedy: said.append(f"{what}: {remedy}"))
    meters.meters(boards.current)[0].lost = True
    qtbot.waitUntil(lambda: bool(said), timeout=10_000)
    meters._look()
    assert len(said) == 1
    assert "plug it in again" in said[0]
