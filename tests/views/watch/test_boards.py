"""Every board at a glance: those that were given, added and removed, any in full, and the processes on them."""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import Lab
from fixtures.real_ssh import WHY_NOT, Sshd
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QInputDialog
from pytestqt.qtbot import QtBot

sys.path.insert(0, str(Path(__file__).parents[2] / "nvml"))
from fixtures.stand_in_fixtures import boards  # noqa: F401

from app.engine.session import events
from app.sensors.gpu import Load
from app.sensors.select import open_gpu
from app.views.shared.context import Context
from app.views.shared.watched_boards import WatchedBoards
from app.views.watch.boards_panel import BoardsPanel

Open = Callable[..., Any]


@pytest.fixture
def made(qtbot: QtBot) -> Iterator[Callable[..., BoardsPanel]]:
    """`made(gpu, *others)`: the panel on boards that are watched, and an engine that lets go of any of them at once."""
    open_ones: list[tuple[BoardsPanel, WatchedBoards]] = []

    def make(gpu: Any, *others: str) -> BoardsPanel:
        lab = Lab()
        watched = WatchedBoards(gpu, lab.bridge)
        watched.failed.connect(lab.bridge.report)
        lab.engine.submit = lambda command: lab.engine.tell(events.BoardReleased(command.board))  # type: ignore[assignment, union-attr]
        panel = BoardsPanel(Context(lab.bridge, watched, lab.context.store, lab.result))
        panel.lab, panel.boards = lab, watched  # type: ignore[attr-defined]  # the bridge lives as long
        qtbot.addWidget(panel)
        panel.resize(480, 640)
        panel.show()
        for other in others:
            watched.watch(other)
        open_ones.append((panel, watched))
        return panel

    yield make
    for panel, watched in open_ones:
        panel.shutdown()
        watched.close()


def cells(panel: BoardsPanel) -> list[list[str]]:
    table = panel.processes
    return [
        [table.item(row, column).text() for column in range(table.columnCount())] for row in range(table.rowCount())
    ]


def offered(panel: BoardsPanel) -> dict[str, QAction]:
    """What can be added, as the menu has it now."""
    menu = panel.add.menu()
    menu.aboutToShow.emit()
    return {action.text(): action for action in menu.actions()}


def test_every_board_has_a_row_that_draws(qtbot: QtBot, made: Callable[..., BoardsPanel]) -> None:
    panel = made(open_gpu("simulated:a100"), "simulated:h200", "recorded:h200-gemm")
    qtbot.waitUntil(lambda: len(panel.rows) == 3, timeout=10_000)
    names = [row.accessibleName() for row in panel.rows]
    assert "A100" in names[0]
    assert "(simulated)" in names[1]
    assert "(recorded)" in names[2]
    qtbot.waitUntil(lambda: all("W" in row.power.text() for row in panel.rows), timeout=5000)
    assert "of 250 W" in panel.rows[0].power.text()
    qtbot.waitUntil(lambda: all(row.spark.points > 3 for row in panel.rows), timeout=5000)
    assert not panel.rows[0].full.isEnabled(), "it is in full already"


def test_processes_are_shown_with_their_memory_or_why_not(qtbot: QtBot, made: Callable[..., BoardsPanel]) -> None:
    gpu = open_gpu("simulated:a100")
    panel = made(gpu, "recorded:h200-gemm")
    qtbot.waitUntil(lambda: "recording holds no processes" in panel.note.text(), timeout=10_000)
    assert cells(panel) == []
    gpu.begin(Load("sgemm", "fp32", 1e12, 1e9))
    panel.hide()
    panel.show()  # it asks at once
    qtbot.waitUntil(lambda: len(cells(panel)) == 1, timeout=10_000)
    assert cells(panel)[0][1:] == [str(os.getpid()), "sgemm (simulated)", "–", "–", "compute"]
    gpu.end()
    panel.hide()
    panel.show()
    qtbot.waitUntil(lambda: cells(panel) == [], timeout=10_000)


def test_a_board_is_added_and_removed(qtbot: QtBot, made: Callable[..., BoardsPanel]) -> None:
    panel = made(FakeGpu(working, source="nvml", name="Board X"))
    qtbot.waitUntil(lambda: "V100" in " ".join(offered(panel)), timeout=10_000)
    action = next(action for text, action in offered(panel).items() if "V100" in text)
    panel.add.menu().triggered.emit(action)
    qtbot.waitUntil(lambda: len(panel.rows) == 2, timeout=10_000)
    assert "V100" not in " ".join(offered(panel)), "it is there already"
    board = panel.rows[1].board
    sampler, trace = board.sampler, weakref.ref(board.trace)
    qtbot.waitUntil(lambda: sampler.trace.last_ns > 0, timeout=5000)
    panel.rows[1].remove.click()
    assert [row.board.gpu.info.name for row in panel.rows] == ["Board X"]
    qtbot.waitUntil(lambda: not sampler.running, timeout=5000)
    board = sampler = None

    def freed() -> bool:
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        return trace() is None

    qtbot.waitUntil(freed, timeout=5000)


def test_the_board_in_full_is_chosen_by_its_row_and_the_order_stays(
    qtbot: QtBot, made: Callable[..., BoardsPanel]
) -> None:
    panel = made(open_gpu("simulated:a100"), "simulated:h200")
    qtbot.waitUntil(lambda: len(panel.rows) == 2, timeout=10_000)
    names = [row.accessibleName() for row in panel.rows]
    panel.rows[1].full.click()
    assert [row.full.isEnabled() for row in panel.rows] == [True, False]
    assert [row.remove.isVisible() for row in panel.rows] == [True, False]
    assert [row.accessibleName() for row in panel.rows] == names


def test_a_board_that_is_not_there_is_one_line(qtbot: QtBot, made: Callable[..., BoardsPanel]) -> None:
    faults: list[str] = []

    panel = made(FakeGpu(working), "simulated:no such board")
    panel.lab.bridge.subscribe(events.EngineFault, lambda fault: faults.append(fault.what))  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: any("no such board" in what for what in faults), timeout=5000)
    assert len(panel.rows) == 1


def test_real_boards_are_there_of_themselves_with_their_processes(
    qtbot: QtBot, made: Callable[..., BoardsPanel], request: pytest.FixtureRequest
) -> None:
    stand_in = request.getfixturevalue("boards")("h200", "a4000")
    panel = made(open_gpu("0", voltage=False))
    panel.boards.watch_real()  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: len(panel.rows) == 2, timeout=10_000)
    assert panel.rows[1].board.gpu.info.uuid == stand_in.uuids[1]
    assert not panel.rows[1].remove.isVisible(), "a board that is there is shown"
    assert panel.rows[1].full.isEnabled()
    qtbot.waitUntil(lambda: "W" in panel.rows[1].power.text(), timeout=5000)
    panel.hide()
    panel.show()
    qtbot.waitUntil(lambda: len(cells(panel)) == 2, timeout=10_000)
    assert [row[1] for row in cells(panel)] == [str(os.getpid())] * 2
    assert [row[3] for row in cells(panel)] == ["512 MiB"] * 2


def test_what_other_tools_have_set_stands_below_the_boards(
    qtbot: QtBot, made: Callable[..., BoardsPanel], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine.control.outside.LOOK_S", 0.3)
    stand_in = request.getfixturevalue("boards")("h200")
    board = stand_in.boards[0]
    board.lock[0] = board.lock[1] = board.from_mhz = board.to_mhz = 1200
    panel = made(open_gpu("0", voltage=False))
    qtbot.waitUntil(lambda: "power limit 650 W, by default 700 W" in panel.held.text(), timeout=10_000)
    assert "graphics clock stands at 1200 MHz as if locked" in panel.held.text()
    assert panel.held.isVisible()


def test_a_simulated_board_has_nothing_of_other_tools(qtbot: QtBot, made: Callable[..., BoardsPanel]) -> None:
    panel = made(open_gpu("simulated:a100"))
    qtbot.waitUntil(lambda: not panel.held.isVisible(), timeout=10_000)
    assert panel.held.text() == ""


def test_the_power_of_a_board_that_is_added_is_drawn_beside_that_of_the_windows_own(
    qtbot: QtBot, open_program: Open
) -> None:
    window = open_program().window
    window.workspaces.show_workspace("watch")
    qtbot.waitUntil(lambda: "boards" in set(window.panels), timeout=20_000)
    view, watched = window.monitor.view, window.boards

    def drawn() -> list[str]:
        lanes = {shown.lane.title: shown for shown in view.lanes}
        return [line.label for line in lanes["Power of every board"].lines] if "Power of every board" in lanes else []

    assert drawn() == []
    watched.watch("simulated:h200")
    qtbot.waitUntil(lambda: drawn() == ["A100-PCIE-40GB (simulated)", "H200 (simulated)"], timeout=10_000)
    watched.forget(watched.all[-1])
    qtbot.waitUntil(lambda: drawn() == [], timeout=5000)


def test_the_question_for_another_machine_goes_when_it_is_closed(
    qtbot: QtBot, made: Callable[..., BoardsPanel]
) -> None:
    panel = made(open_gpu("simulated:a100"))
    for _ in range(2):
        panel.hosts.ask()
        assert len(panel.findChildren(QInputDialog)) == 1
        panel.findChildren(QInputDialog)[0].reject()
        qtbot.waitUntil(lambda: not panel.findChildren(QInputDialog), timeout=5000)


def test_boards_of_another_machine_are_watched_beside_the_others(
    qtbot: QtBot, made: Callable[..., BoardsPanel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if WHY_NOT:
        pytest.skip(WHY_NOT)
    sshd = Sshd(tmp_path)
    try:
        monkeypatch.setenv("PATH", f"{sshd.client}{os.pathsep}{os.environ['PATH']}")
        panel = made(open_gpu("simulated:a100"))
        offered(panel)["On another machine..."].trigger()
        dialog = panel.hosts.dialog
        assert dialog is not None
        dialog.setTextValue("box")
        dialog.accept()
        qtbot.waitUntil(lambda: len(panel.rows) == 2, timeout=60_000)
        row = panel.rows[1]
        assert " on box" in row.accessibleName()
        qtbot.waitUntil(lambda: "W" in row.power.text(), timeout=60_000)
        assert re.fullmatch(r"times ±[\d.]+ ms", row.times.text())
        assert row.times.isVisibleTo(row)
        assert "clock of box" in row.times.toolTip()
        assert not panel.rows[0].times.isVisibleTo(panel.rows[0]), "a board of this machine"
        assert any(label.endswith("on box (simulated)") for label in offered(panel))
        panel.hosts.ask()
        assert panel.hosts.dialog is not None
        assert "box" in panel.hosts.dialog.comboBoxItems()
        panel.hosts.dialog.reject()
        with qtbot.waitSignal(panel.boards.failed, timeout=60_000) as caught:  # type: ignore[attr-defined]
            panel.hosts.connect_to("-oProxyCommand=x")
        assert "no name of a host" in caught.args[0]
        with qtbot.waitSignal(panel.boards.failed, timeout=60_000) as caught:  # type: ignore[attr-defined]
            panel.hosts.connect_to("no-such-machine.invalid")
        assert "no connection" in caught.args[0]
    finally:
        panel.shutdown()
        panel.boards.close()  # type: ignore[attr-defined]
        sshd.close()
