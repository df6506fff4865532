"""What moves through the window chooses nothing: a layout that is restored at a start, and the command palette."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.lab import ready
from PySide6.QtCore import Qt
from PySide6.QtTest import QSignalSpy
from pytestqt.qtbot import QtBot

from app.engine.results.state import SessionState
from app.views.shared.current_result import CurrentResult
from app.views.shell.app import Program

SPECIFICATION = """
[kernel]
name = "sgemm"
source = "sgemm.cu"
problem_size = ["n", "n"]
arguments = []
profile = "gemm"
[constants]
n = 2048
[parameters]
block_size_x = [16, 32]
tile_size_x = [1, 2, 4]
[metrics]
"GFLOPS/W" = "2 * n**3 / energy_j / 1e9"
[objective]
maximise = "GFLOPS/W"
[search]
strategy = "brute_force"
"""

Open = Callable[..., Program]


def chosen(result: CurrentResult) -> tuple[object, ...]:
    """What the user has chosen of the result, how, and what of it is marked and pinned."""
    return result.session, result.index, result.way, result.chosen, result.rows.tolist(), result.pins, result.shown


@pytest.fixture
def measured(qtbot: QtBot, open_program: Open, tmp_path: Path) -> int:
    """The number of a session of six configurations; its window was closed with another layout than the first."""
    (tmp_path / "sgemm.cu").write_text("// the simulated board costs it by its profile\n")
    path = tmp_path / "sgemm.toml"
    path.write_text(SPECIFICATION)
    window = ready(qtbot, open_program(speed=40.0))
    window.open_specification(path, start=True)
    qtbot.waitUntil(lambda: window.panels["tune"].state is SessionState.DONE, timeout=60_000)
    window.workspaces.go_to("front")
    window.workspaces.docks["table"].close()
    session = window.result.session
    assert session is not None
    window.close()
    return session


@pytest.mark.parametrize("by", ["by hand", "fastest"])
def test_a_restored_layout_and_the_palette_leave_the_choice_and_its_rule(
    qtbot: QtBot, open_program: Open, measured: int, by: str
) -> None:
    window = ready(qtbot, open_program(speed=40.0))
    assert window.workspaces.docks["table"].isHidden(), "the layout is the one that was left"
    assert (window.result.index, window.result.way) == (-1, ""), "nothing is chosen by it"
    window.open_session(measured)
    qtbot.waitUntil(lambda: window.result.session == measured, timeout=20_000)
    assert (window.result.index, window.result.way) == (-1, ""), "nor by the panels that it brings"
    window.workspaces.go_to("inspector")
    if by == "by hand":
        window.result.select(2)
    else:
        window.panels["inspector"].chooser.choose_by("fastest")
    before = chosen(window.result)
    assert before[1] != -1
    assert before[2] == ("" if by == "by hand" else by)
    spy = QSignalSpy(window.result.changed)
    palette = window.search
    for panel in ("front", "table", "analysis"):
        window.actions_by_name["palette"].trigger()
        for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_PageDown):
            qtbot.keyClick(palette.typed, key)
        assert chosen(window.result) == before
        qtbot.keyClicks(palette.typed, window.actions_by_name[f"go_{panel}"].text().replace("&", ""))
        qtbot.keyClick(palette.typed, Qt.Key.Key_Return)
        assert not palette.isVisible()
        qtbot.waitUntil(lambda panel=panel: window.panels[panel].isVisible(), timeout=10_000)
        assert chosen(window.result) == before
    assert spy.count() == 0, "no view was asked to show another choice meanwhile"
