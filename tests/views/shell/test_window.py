"""The real window over simulated GPUs: from start to a tuned, fitted and exported configuration, and to a clean end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import SGEMM
from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.base.errors import InputError
from app.engine.models.fit.frequency import fit_frequency_model
from app.engine.models.fit.points import Points
from app.engine.models.fit_documents import save_fit
from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.store.database import Store
from app.views.shared import theme
from app.views.shared.watched_boards import watched_gpu
from app.views.shell.app import Program
from app.views.shell.header import Badge
from app.views.shell.panels import PANELS
from app.views.shell.window import MainWindow
from app.views.shell.window_actions import ACTIONS, LENGTH_ACTIONS, every_action

ROOT = Path(__file__).resolve().parents[3]

Open = Callable[..., Program]


def with_panels(qtbot: QtBot, program: Program) -> MainWindow:
    window = program.window
    with qtbot.waitSignal(window.panels_loaded, timeout=20_000):
        pass
    return window


def test_the_voltage_is_estimated_from_the_fit_that_is_kept_of_this_board(qtbot: QtBot, open_program: Open) -> None:
    clock = np.linspace(345.0, 1980.0, 12)
    power = 83 + 0.2 * clock * (1 + 9e-4 * np.maximum(0, clock - 1000)) ** 2
    with Store() as store:
        for gpu, source in (("NVIDIA H200", "a sweep of yesterday"), ("Another board", "a sweep of today")):
            save_fit(store, fit_frequency_model(Points(clock, power, gpu=gpu, simulated=True)), source)
    program = open_program(gpu=watched_gpu("simulated:h200"))
    with_panels(qtbot, program)
    voltage = program.window.monitor.view.lanes[3]
    assert "a sweep of yesterday" in voltage.source
    assert voltage.lane.unit == "V/V₀"


def test_the_traces_are_there_before_the_panels_and_then_these(qtbot: QtBot, open_program: Open) -> None:
    program = open_program()
    window = program.window
    window.workspaces.show_workspace("watch")
    made: list[str] = []
    window.panels.made.connect(made.append)
    with qtbot.waitSignal(window.monitor.view.first_frame, timeout=5000):
        assert not made, "nothing comes before the traces"
    with_panels(qtbot, program)
    assert made[0] == "channels", "the table of what they show"
    assert window.banner.text == ""
    early = {spec.name for spec in PANELS if spec.early or spec.workspace == "watch"}
    assert set(window.panels) == early, "what is not in sight is made when it comes to sight"
    for name, workspace in window.workspaces.by_name.items():
        window.workspaces.show_workspace(name)
        qtbot.waitUntil(lambda w=workspace: {spec.name for spec in w.panels} <= set(window.panels), timeout=20_000)
    window.workspaces.show_workspace("tune")  # which may have been left before the Inspector's turn
    qtbot.waitUntil(lambda: set(window.panels) == {spec.name for spec in PANELS}, timeout=20_000)


def test_the_window_is_made_in_several_turns(qtbot: QtBot, open_program: Open) -> None:
    turns: list[int] = []
    timer = QTimer(interval=0)
    timer.timeout.connect(lambda: turns.append(1))
    timer.start()
    window = open_program().window
    assert len(turns) >= 5, "of Qt's loop, in each of which whoever asks is answered"
    timer.stop()
    assert window.is_whole
    assert window.isVisible()


def test_no_panel_is_made_before_the_window_is_in_sight(qtbot: QtBot, open_program: Open) -> None:
    program = open_program()
    assert set(program.window.panels) == {"traces"}, "which is the window's own"
    program.window.workspaces.show_workspace("watch")
    with_panels(qtbot, program)
    program.window.hide()
    program.window.workspaces.show_workspace("library")
    for _ in range(5):
        QCoreApplication.processEvents()
    assert not program.window.panels.has("sessions")
    program.window.show()
    qtbot.waitUntil(lambda: program.window.panels.has("sessions"), timeout=20_000)


def test_a_panel_that_is_brought_is_made_in_a_turn_of_its_own(qtbot: QtBot, open_program: Open) -> None:
    window = with_panels(qtbot, open_program())
    window.workspaces.bring("front")
    assert window.workspaces.current.spec.name == "tune"
    assert not window.panels.has("front"), "changing the workspace is one turn, and making a panel another"
    with qtbot.waitSignal(window.panels.made, timeout=5000) as made:
        pass
    assert made.args == ["front"], "first of all that the workspace holds"
    window.workspaces.go_to("compare")
    assert window.panels.has("compare"), "there is to be something that takes the focus"


def test_the_focus_goes_along_into_a_workspace_whose_panels_are_not_there_yet(qtbot: QtBot, open_program: Open) -> None:
    window = with_panels(qtbot, open_program())
    window.resize(1600, 1000)
    window.activateWindow()
    window.workspaces.go_to("home")
    qtbot.waitUntil(lambda: window.panels["home"].isAncestorOf(QApplication.focusWidget()), timeout=5_000)
    with qtbot.waitSignal(window.workspaces.settled, timeout=20_000):
        window.workspaces.show_workspace("tune")
    qtbot.wait(100)
    assert QApplication.focusWidget() is not None, "the next key goes somewhere"


@pytest.mark.parametrize(("source", "shown"), [("simulated", True), ("recorded", True), ("nvml", False)])
def test_title_and_badge_say_what_is_not_a_live_board(open_program: Open, source: str, shown: bool) -> None:
    window = open_program(FakeGpu(working, source=source, name="Board X")).window  # type: ignore[arg-type]
    assert "Board X" in window.windowTitle()
    assert not window.windowIcon().pixmap(32).isNull()
    assert (source in window.windowTitle()) == shown
    badge = window.findChild(Badge)
    assert badge is not None
    assert badge.field.isVisible() == shown
    assert badge.field.text() == {"nvml": "LIVE"}.get(source, source.upper())


def test_every_action_works_and_no_two_share_a_key(open_program: Open) -> None:
    window = open_program(FakeGpu(working)).window
    keys = [spec.shortcut for spec in ACTIONS if spec.shortcut]
    assert len(keys) == len(set(keys))
    for name in window.actions_by_name:
        if name not in ("quit", "write_readings", "write_picture"):
            window.actions_by_name[name].trigger()
    theme.set_mode("system")


def test_lengths_hold_and_follow(qtbot: QtBot, open_program: Open) -> None:
    window = open_program(FakeGpu(working)).window
    window.workspaces.show_workspace("watch")
    view = window.monitor.view
    qtbot.waitUntil(lambda: view.snapshot is not None, timeout=5000)
    for name, length_s in LENGTH_ACTIONS.items():
        window.actions_by_name[name].trigger()
        assert view.window_of_time.length_s == length_s
        assert view.snapshot is not None
        assert (view.snapshot.end_ns - view.snapshot.start_ns) / 1e9 == pytest.approx(length_s)
    hold = window.actions_by_name["hold"]
    hold.trigger()
    assert not view.window_of_time.live
    view.hold(False)
    assert not hold.isChecked(), "the button follows what the mouse did"


def test_light_and_dark_can_be_chosen_and_are_remembered(qtbot: QtBot, open_program: Open) -> None:
    window = open_program(FakeGpu(working)).window
    window.workspaces.show_workspace("watch")
    view = window.monitor.view
    qtbot.waitUntil(lambda: view.snapshot is not None, timeout=5000)
    for mode, colours in (("dark", theme.DARK), ("light", theme.LIGHT)):
        window.actions_by_name[f"theme_{mode}"].trigger()
        picture = view.grab().toImage()
        assert picture.pixelColor(2, 2).name() == colours.window
        qtbot.waitUntil(lambda c=colours: window.palette().window().color().name() == c.window, timeout=2000)
    window.close()
    again = open_program(FakeGpu(working)).window
    assert again.actions_by_name["theme_light"].isChecked()
    theme.set_mode("system")


def test_a_fault_of_any_thread_is_a_line_at_the_bottom(qtbot: QtBot, open_program: Open) -> None:
    window = open_program(FakeGpu(working)).window
    thread = threading.Thread(target=window.bridge.report, args=("the kernel was refused", "lower the block size"))
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: "lower the block size" in window.banner.text, timeout=3000)
    assert window.banner.isVisible()


def test_a_message_moves_nothing_and_covers_nothing_but_the_line_below_the_window(
    qtbot: QtBot, open_program: Open
) -> None:
    window = open_program(FakeGpu(working)).window
    qtbot.waitUntil(lambda: window.workspaces.height() > 100, timeout=5000)
    places, line = window.workspaces.geometry(), window.statusBar().geometry()
    window.notices.fail("the GPU is lost", "look into the kernel's log")
    qtbot.wait(50)
    assert window.workspaces.geometry() == places
    assert line.contains(window.banner.geometry())
    window.notices.inform("Written: a.csv")
    assert window.banner.text == "Written: a.csv  (+1 more)", "one is in the way"
    window.statusBar().showMessage("what an entry of a menu does")
    assert window.banner.isHidden(), "for as long as the line says so"
    window.statusBar().clearMessage()
    assert window.banner.isVisible()
    window.notices.fail("much was written " * 30, "free some space")
    qtbot.wait(50)
    assert window.banner.geometry().top() < line.top(), "all of it can be read"
    assert window.workspaces.geometry() == places
    window.resize(window.width() - 100, window.height() - 50)
    qtbot.waitUntil(lambda: window.banner.geometry().bottom() == window.statusBar().geometry().bottom(), timeout=2000)


def test_a_session_is_tuned_fitted_and_exported(qtbot: QtBot, open_program: Open, tmp_path: Path) -> None:
    window = with_panels(qtbot, open_program(speed=40.0))
    path = tmp_path / "gemm.toml"
    path.write_text(SGEMM)
    (tmp_path / "sgemm.cu").write_text("// the simulated board costs it by its profile\n")
    ends: list[SessionState] = []
    window.bridge.subscribe(events.SessionChanged, lambda event: ends.append(event.progress.state))
    window.open_specification(path, start=True)
    qtbot.waitUntil(lambda: SessionState.DONE in ends, timeout=60_000)
    table = window.result.table
    assert table is not None
    assert len(table) == 16, "four block sizes; three clocks, untouched"
    assert set(table.rows().tolist()) == set(range(16)), "brute force leaves none out"
    assert table.failures() == {}

    efficiency = table.values("GFLOPS/W")
    best = int(efficiency.argmax())
    window.result.select(best)
    window.actions_by_name["go_inspector"].trigger()
    shown = window.panels["inspector"]
    shown.tabs.setCurrentWidget(shown.trace)
    qtbot.waitUntil(lambda: shown.trace.plots.power.getData()[0] is not None, timeout=5000)
    qtbot.waitUntil(
        lambda: f"#define block_size_x {table.measurement(best).configuration['block_size_x']}" in shown.source.whole
    )
    assert not shown.trace.note.isVisible(), "the power while it was measured is in the trace"

    with qtbot.waitSignal(window.bridge.signal(events.FitFinished), timeout=60_000) as fitted:
        window.panels["model"].fit_sweep()
    fit = fitted.args[0].fit
    assert fit.simulated
    assert 850 <= fit.recommended_clock_mhz <= 1200, "the A100's valley"

    knee = next(action for path, action in every_action(window.menuBar()) if action.text() == "Knee of the front")
    knee.trigger()
    assert window.result.way == "knee", "every way to choose is within reach of the palette"
    window.result.select(best)

    export = shown.answer.export
    export.export_into(tmp_path / "taken")
    with qtbot.waitSignal(export.written, timeout=10_000):
        window.actions_by_name["export"].trigger()
    taken = json.loads(next((tmp_path / "taken").glob("*/sgemm.json")).read_text())
    assert "simulated" in json.dumps(taken)
    configuration = table.measurement(best).configuration
    for name in ("block_size_x", "block_size_y", "graphics_clock_mhz"):
        assert str(configuration[name]) in json.dumps(taken)


_RUN = """
import sys
from PySide6.QtCore import QTimer
from app.views.shell import app as views
qt = views.application()
timer = QTimer()  # again and again: Qt forgets a quit before its loop runs
timer.timeout.connect(qt.quit)
timer.start(int(sys.argv[1]))
raise SystemExit(views.run("simulated:a100"))
"""


@pytest.mark.parametrize("after_ms", [0, 1500])
def test_the_program_ends_with_status_zero_and_says_nothing(own_data_folder: Path, after_ms: int) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", _RUN, str(after_ms)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "WATTRIDGE_DATA": str(own_data_folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert [line for line in done.stderr.splitlines() if "propagateSizeHints" not in line] == []


def test_what_a_window_cannot_show_is_refused_before_it_opens() -> None:
    with pytest.raises(InputError, match="no such board"):
        watched_gpu("simulated:no such board")
    with pytest.raises(InputError, match="finite"):
        watched_gpu("simulated:a100", speed=float("inf"))
