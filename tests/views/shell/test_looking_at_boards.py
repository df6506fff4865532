"""Looking at another board loses nothing: traces, specification, result, layout, the boards' order and what runs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import ready
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine.results.state import SessionState
from app.sensors.simulated.twin import load_twin
from app.views.shared import countdown, watched_boards
from app.views.shared.watched_boards import WatchedBoard
from app.views.shell.app import Program
from app.views.shell.window import MainWindow

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
block_size_y = [8, 16]
tile_size_x = [1, 2, 4]
tile_size_y = [1, 2, 4]
[metrics]
"GFLOPS/W" = "2 * n**3 / energy_j / 1e9"
[objective]
maximise = "GFLOPS/W"
[search]
strategy = "brute_force"
"""

Open = Callable[..., Program]


def show(qtbot: QtBot, window: MainWindow, selector: str) -> None:
    window.boards.show(selector)
    qtbot.waitUntil(lambda: window.board is window.boards.find(selector), timeout=10_000)


def layout_of(window: MainWindow) -> dict[str, tuple[object, ...]]:
    """Where each dock is, its place among tabs included."""
    return {
        name: (
            dock.isHidden(),
            dock.visibleRegion().isEmpty(),
            window.workspaces.current.dockWidgetArea(dock),
            dock.geometry(),
        )
        for name, dock in window.workspaces.docks.items()
    }


def specification(folder: Path) -> Path:
    (folder / "sgemm.cu").write_text("// the simulated board costs it by its profile\n")
    path = folder / "gemm.toml"
    path.write_text(SPECIFICATION)
    return path


def test_the_window_shows_the_board_that_was_chosen(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program())
    show(qtbot, window, "simulated:h200")
    assert "H200" in window.windowTitle()
    assert "H200" in window.badge.chooser.currentText()
    window.workspaces.show_workspace("watch")
    qtbot.waitUntil(lambda: window.monitor.view.snapshot is not None, timeout=5000)
    ticked = [action.text() for action in window.actions_made.submenus["gpus"].actions() if action.isChecked()]
    assert ["H200" in text for text in ticked] == [True]
    assert window.boards.current.sampler.interval_s == 1 / 50
    window.boards.show("simulated:no such board")
    qtbot.waitUntil(lambda: "no such board" in window.banner.text, timeout=5000)
    assert "H200" in window.windowTitle(), "and the one that works stays"


def test_the_badge_says_what_the_simulated_board_does_not_show(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program())
    for name in ("k20x", "h200"):
        show(qtbot, window, f"simulated:{name}")
        words = load_twin(name).not_shown
        assert bool(words) == (name == "k20x")
        assert all(word in window.badge.field.toolTip() for word in words)
        assert ("Not shown" in window.badge.field.toolTip()) == bool(words)


def test_the_list_in_the_toolbar_says_of_each_board_what_it_is_and_shows_it(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(FakeGpu(working, source="nvml", name="Board X")))
    chooser = window.badge.chooser
    window.boards.watch("recorded:h200-gemm")
    window.boards.watch("simulated:v100")
    qtbot.waitUntil(lambda: chooser.count() == 3, timeout=10_000)
    assert [chooser.itemText(index).rpartition(" · ")[2] for index in range(3)] == ["Board X", "RECORDED", "SIMULATED"]
    chooser.setFocus()
    QTest.keyClick(chooser, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: window.board.uuid == chooser.itemData(1), timeout=5000)
    assert window.badge.field.text() == "RECORDED"
    assert chooser.itemText(0) == "Board X · LIVE"


def test_logs_of_one_file_name_and_boards_of_one_model_are_shown_under_names_of_their_own(
    qtbot: QtBot, open_program: Open, tmp_path: Path
) -> None:
    for watts, day in ((100, "monday"), (200, "tuesday")):
        (tmp_path / day).mkdir()
        rows = "".join(f"{second},{watts}\n" for second in range(60))
        (tmp_path / day / "power.csv").write_text(f"timestamp,power\n{rows}")
    window = ready(qtbot, open_program())
    for day in ("monday", "tuesday"):
        show(qtbot, window, f"recorded:{tmp_path / day / 'power.csv'}")
    watts = {
        window.boards.name_of(b): b.gpu.read().values for b in window.boards.all if b.gpu.info.source == "recorded"
    }
    assert list(watts) == ["GPU (recorded) · monday/power.csv", "GPU (recorded) · tuesday/power.csv"]
    assert [next(v for v in values if v > 0) for values in watts.values()] == [100, 200]
    for number in (1, 2):
        show(qtbot, window, f"simulated:v100#{number}")
    names = [window.boards.name_of(board) for board in window.boards.all[-2:]]
    assert [name.rpartition(" · ")[2] for name in names] == ["v100#1", "v100#2"]


def test_boards_of_one_name_are_told_apart_and_the_wheel_chooses_none(
    qtbot: QtBot, open_program: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(selector: str, **_: object) -> FakeGpu:
        gpu = FakeGpu(working, source="nvml", name="Board X")
        gpu.info = replace(gpu.info, uuid=selector, index=int(selector))
        return gpu

    monkeypatch.setattr(watched_boards, "watched_gpu", opened)
    window = ready(qtbot, open_program())
    boards, chooser = window.boards, window.badge.chooser
    boards.watch("2")
    boards.watch("3")
    qtbot.waitUntil(lambda: chooser.count() == 3, timeout=10_000)
    assert [chooser.itemText(at) for at in (1, 2)] == ["Board X · GPU 2 · LIVE", "Board X · GPU 3 · LIVE"]
    assert boards.name_of(boards.current) == boards.current.gpu.info.label
    home = window.board
    at, none = QPointF(chooser.rect().center()), Qt.KeyboardModifier.NoModifier
    turn = (QPoint(), QPoint(0, -120), Qt.MouseButton.NoButton, none, Qt.ScrollPhase.NoScrollPhase, False)
    QApplication.sendEvent(chooser, QWheelEvent(at, QPointF(chooser.mapToGlobal(at)), *turn))
    assert window.board is home


def test_traces_and_what_was_marked_on_them_are_there_again(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(FakeGpu(working, name="Board X")))
    home, view = window.board, window.monitor.view
    qtbot.waitUntil(lambda: len(home.trace) > 20, timeout=5000)
    first, held = home.trace.first_ns, home.trace.last_ns
    view.set_span((first, held))
    view.hold(True)
    show(qtbot, window, "simulated:v100")
    assert view.span is None
    assert view.window_of_time.live
    length = len(home.trace)
    qtbot.waitUntil(lambda: len(home.trace) > length, timeout=5000)
    show(qtbot, window, home.uuid)
    assert home.trace.first_ns == first
    assert view.span == (first, held)
    assert not view.window_of_time.live
    assert "Board X" in window.windowTitle()
    other = window.boards.find("simulated:v100")
    assert other is not None
    length = len(other.trace)
    qtbot.waitUntil(lambda: len(other.trace) > length, timeout=5000)


def test_specification_result_and_layout_stay(qtbot: QtBot, open_program: Open, tmp_path: Path) -> None:
    window = ready(qtbot, open_program(speed=40.0))
    home, tune = window.board.uuid, window.panels["tune"]
    window.open_specification(specification(tmp_path), start=True)
    qtbot.waitUntil(lambda: tune.state is SessionState.DONE, timeout=60_000)
    window.result.select(3)
    session, table = window.result.session, window.result.table
    tune.form.seed.setValue(7)
    window.workspaces.bring("model")
    qtbot.waitUntil(lambda: window.panels["model"].isVisible(), timeout=5000)
    layout = layout_of(window)
    assert tune.draft is not None
    path = tune.draft.path
    show(qtbot, window, "simulated:h200")
    qtbot.waitUntil(lambda: tune.draft is not None and tune.draft.plan.gpu == "NVIDIA H200", timeout=20_000)
    assert tune.draft.path == path
    assert tune.form.seed.value() == 7
    assert (window.result.session, window.result.table, window.result.index) == (session, table, 3)
    assert "A100" in window.result.caption
    assert layout_of(window) == layout
    show(qtbot, window, home)
    qtbot.waitUntil(lambda: tune.draft is not None and "A100" in tune.draft.plan.gpu, timeout=20_000)
    assert tune.form.seed.value() == 7


def test_a_board_that_cannot_run_the_specification_loses_it_for_no_other(
    qtbot: QtBot, open_program: Open, tmp_path: Path
) -> None:
    window = ready(qtbot, open_program())
    home, tune = window.board.uuid, window.panels["tune"]
    window.open_specification(specification(tmp_path))
    qtbot.waitUntil(lambda: tune.start.isEnabled(), timeout=20_000)
    show(qtbot, window, "recorded:h200-gemm")
    qtbot.waitUntil(lambda: tune.draft is None and not tune.start.isEnabled(), timeout=20_000)
    show(qtbot, window, home)
    qtbot.waitUntil(lambda: tune.start.isEnabled(), timeout=20_000)
    assert window.banner.text == "", "nothing was asked for that could fail"


def test_what_runs_continues_on_its_own_board(qtbot: QtBot, open_program: Open, tmp_path: Path) -> None:
    window = ready(qtbot, open_program(speed=10.0))
    home, tune = window.board, window.panels["tune"]
    window.open_specification(specification(tmp_path), start=True)
    qtbot.waitUntil(lambda: window.result.table is not None and len(window.result.table) > 0, timeout=60_000)
    show(qtbot, window, "simulated:h200")
    assert tune.state is SessionState.RUNNING
    assert tune.draft is not None
    assert tune.draft.plan.gpu == home.gpu.info.name, "what is set up is what runs"
    assert not tune.start.isEnabled()
    assert "A100" in tune.start.toolTip(), "why it has to wait"
    qtbot.waitUntil(lambda: tune.state is SessionState.DONE, timeout=60_000)
    qtbot.waitUntil(lambda: tune.draft is not None and "H200" in tune.draft.plan.gpu, timeout=20_000)
    table = window.result.table
    assert table is not None
    assert len(table) == 36
    for index in range(36):
        start_ns, _ = table.measurement(index).window_ns or (0, 0)
        assert home.trace.first_ns < start_ns < home.trace.last_ns
    assert window.traces.marks.windows.size == 0, "they are not of the board that is shown"
    window.result.select(0)
    assert window.traces.marks.windows.size == 0
    show(qtbot, window, home.uuid)
    assert window.traces.marks.windows.size == 2


def test_the_board_under_a_running_session_stays_and_another_one_goes(
    qtbot: QtBot, open_program: Open, tmp_path: Path
) -> None:
    window = ready(qtbot, open_program())
    boards, home = window.boards, window.board
    window.open_specification(specification(tmp_path), start=True)
    qtbot.waitUntil(lambda: window.panels["tune"].state is SessionState.RUNNING, timeout=60_000)
    show(qtbot, window, "simulated:v100")
    boards.watch("simulated:h200")
    qtbot.waitUntil(lambda: len(boards.all) == 3, timeout=10_000)
    h200 = boards.find("simulated:h200")
    assert h200 is not None
    boards.forget(home)
    qtbot.waitUntil(lambda: "a session is running" in window.banner.text, timeout=20_000)
    boards.forget(h200)
    qtbot.waitUntil(lambda: not h200.sampler.running, timeout=20_000)
    assert [board.uuid for board in boards.all] == [home.uuid, "simulated:v100"]


def measured(window: MainWindow) -> set[str]:
    """The boards in whose session the open specification would be measured."""
    draft = window.panels["tune"].draft
    return set() if draft is None else {draft.plan.origin["gpu"]}


def test_a_stored_session_is_resumed_on_the_board_that_is_shown_or_not_at_all(
    qtbot: QtBot, open_program: Open, tmp_path: Path
) -> None:
    window = ready(qtbot, open_program(speed=10.0))
    home, tune = window.board.uuid, window.panels["tune"]
    window.open_specification(specification(tmp_path), start=True)
    qtbot.waitUntil(lambda: window.result.table is not None and len(window.result.table) > 0, timeout=60_000)
    tune.stop.click()
    qtbot.waitUntil(lambda: tune.state is SessionState.STOPPED, timeout=20_000)
    assert window.result.session is not None
    tune.open_session(window.result.session, start=False)
    qtbot.waitUntil(tune.start.isEnabled, timeout=20_000)
    said = window.banner.text
    show(qtbot, window, "simulated:h200")
    qtbot.waitUntil(lambda: "It can be looked at" in tune.summary.details.text(), timeout=20_000)
    assert not tune.start.isEnabled()
    assert window.banner.text == said, "nothing was asked for that could fail"
    show(qtbot, window, home)
    qtbot.waitUntil(tune.start.isEnabled, timeout=20_000)
    assert measured(window) == {home}


def test_a_start_that_failed_leaves_the_specification_to_the_board_that_is_shown(
    qtbot: QtBot, open_program: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = ready(qtbot, open_program())
    tune = window.panels["tune"]
    window.open_specification(specification(tmp_path))
    qtbot.waitUntil(tune.start.isEnabled, timeout=20_000)
    monkeypatch.setattr(window.bridge, "submit", lambda _: None)  # an engine that does not answer yet
    tune.start.click()
    show(qtbot, window, "simulated:h200")
    window.bridge.report("the session could not be started")
    qtbot.waitUntil(tune.start.isEnabled, timeout=20_000)
    assert measured(window) == {"simulated:h200"}


def test_clocks_found_on_one_board_steer_no_session_of_another(
    qtbot: QtBot, open_program: Open, tmp_path: Path
) -> None:
    window = ready(qtbot, open_program())
    home, tune = window.board.uuid, window.panels["tune"]
    window.open_specification(specification(tmp_path))
    qtbot.waitUntil(tune.start.isEnabled, timeout=20_000)
    tune.form.seed.setValue(7)
    window.result.steer((900.0, 1000.0))
    qtbot.waitUntil(lambda: tune.draft is not None and tune.draft.clocks_mhz is not None, timeout=20_000)
    show(qtbot, window, "simulated:h200")
    qtbot.waitUntil(lambda: measured(window) == {"simulated:h200"}, timeout=20_000)
    assert window.result.clocks_mhz is None
    assert tune.draft is not None
    assert tune.draft.clocks_mhz is None
    show(qtbot, window, home)
    qtbot.waitUntil(lambda: measured(window) == {home}, timeout=20_000)
    assert tune.draft.clocks_mhz == (900.0, 1000.0)
    assert tune.form.seed.value() == 7


def apply_clock(qtbot: QtBot, window: MainWindow) -> None:
    """Switch control on for the shown board and lock its graphics clock, by hand."""
    control = window.panels["control"]
    qtbot.waitUntil(lambda: control.rows is not None, timeout=20_000)
    control.switch.click()
    qtbot.waitUntil(lambda: window.board.allowed and control.switch.isEnabled(), timeout=20_000)
    assert control.rows is not None
    control.rows.choose({"graphics_clock_mhz": control.rows.high.minimum()})
    qtbot.waitUntil(control.apply.isEnabled, timeout=20_000)
    control.apply.click()
    board = window.board
    qtbot.waitUntil(lambda: board.countdown.waits, timeout=20_000)


def locked(board: WatchedBoard) -> bool:
    return bool(board.guard.in_force)


def test_a_countdown_stays_in_sight_names_its_board_and_is_answered_there(
    qtbot: QtBot, open_program: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(countdown, "CONFIRM_S", 600.0)
    window = ready(qtbot, open_program())
    window.workspaces.bring("control")
    home, bar, control = window.board, window.confirm_bar, window.panels["control"]
    apply_clock(qtbot, window)
    assert not bar.isVisible(), "the Control panel counts itself"
    show(qtbot, window, "simulated:h200")
    assert control.isVisible()
    assert bar.isVisible(), "what it counts now is of another board"
    assert "A100" in bar.lines[home.uuid].text.text()
    assert not control.keep.isEnabled()
    assert "returns in" not in control.outcome.text()
    apply_clock(qtbot, window)
    h200 = window.board
    window.workspaces.show_workspace("library")
    qtbot.waitUntil(lambda: all(line.isVisible() for line in bar.lines.values()), timeout=5000)
    assert "H200" in bar.lines[h200.uuid].text.text()
    assert locked(home)
    assert locked(h200)
    bar.lines[home.uuid].back.click()
    qtbot.waitUntil(lambda: not home.countdown.waits, timeout=20_000)
    assert not locked(home)
    assert locked(h200)
    assert h200.countdown.can_answer
    assert not bar.lines[home.uuid].isVisible()
    bar.lines[h200.uuid].back.click()
    qtbot.waitUntil(lambda: not bar.isVisible(), timeout=20_000)
    assert not locked(h200)


def test_what_waits_on_a_board_is_answered_in_the_panel_when_it_is_shown_again(
    qtbot: QtBot, open_program: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(countdown, "CONFIRM_S", 600.0)
    window = ready(qtbot, open_program())
    window.workspaces.bring("control")
    home, control = window.board, window.panels["control"]
    apply_clock(qtbot, window)
    show(qtbot, window, "simulated:h200")
    show(qtbot, window, home.uuid)
    assert not window.confirm_bar.isVisible()
    assert "returns in" in control.outcome.text()
    control.back.click()
    qtbot.waitUntil(lambda: not home.countdown.waits, timeout=20_000)
    assert not locked(home)


def test_a_board_that_waits_and_is_watched_no_longer_is_put_back_and_read_only_again(
    qtbot: QtBot, open_program: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(countdown, "CONFIRM_S", 600.0)
    window = ready(qtbot, open_program())
    boards, home = window.boards, window.board
    apply_clock(qtbot, window)
    show(qtbot, window, "simulated:h200")
    boards.forget(home)
    boards.show(home.uuid)  # and the user thinks better of it
    qtbot.waitUntil(lambda: not home.countdown.waits, timeout=20_000)
    assert window.board is home
    assert not locked(home)
    assert window.control_switch.text() == "Read-only"
    h200 = boards.find("simulated:h200")
    assert h200 is not None
    boards.forget(h200)
    qtbot.waitUntil(lambda: boards.all == [home], timeout=20_000)
    assert list(window.confirm_bar.lines) == [home.uuid]


@pytest.mark.parametrize("first", [True, False], ids=["the first one", "one that was looked at"])
def test_the_trace_of_a_board_that_is_watched_no_longer_is_freed(qtbot: QtBot, open_program: Open, first: bool) -> None:
    """It takes 100 MB."""
    window = ready(qtbot, open_program())
    for name, workspace in window.workspaces.by_name.items():
        window.workspaces.show_workspace(name)
        qtbot.waitUntil(lambda w=workspace: all(window.panels.has(spec.name) for spec in w.panels), timeout=20_000)
    home = window.board.uuid
    show(qtbot, window, "simulated:h200")
    if not first:
        window.boards.show(home)
    [board] = [each for each in window.boards.all if each is not window.board]
    trace = weakref.ref(board.trace)
    window.boards.forget(board)
    del board
    qtbot.waitUntil(lambda: len(window.boards.all) == 1, timeout=10_000)

    def freed() -> bool:
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        gc.collect()
        return trace() is None

    qtbot.waitUntil(freed, timeout=10_000)
