"""The tuning panel: over the real engine, and over a scripted one for what is hard to time."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for, progress
from fixtures.tuning_lab import TuningLab
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QSpinBox
from pytestqt.qtbot import QtBot

from app.engine.report.export import export_session, export_specification
from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.session.load import load_specification
from app.engine.space.result_table import ResultTable
from app.engine.specification.examples import examples
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.tune.tune_panel import TunePanel


def small_cache(folder: Path, count: int = 60) -> Path:
    """A Kernel Tuner cache of two parameters; every seventh entry failed."""
    entries = {}
    for i in range(count):
        entry = {
            "x": i % 10,
            "clock": 900 + 30 * (i // 10),
            "time": 1.0 + (i % 10) / 10,
            "GFLOP/s": 1000.0 / (1 + i % 10),
        }
        entries[f"{entry['x']},{entry['clock']}"] = {**entry, "time": "RuntimeFailedConfig"} if i % 7 == 3 else entry
    document = {
        "device_name": "Test GPU",
        "kernel_name": "small",
        "tune_params_keys": ["x", "clock"],
        "tune_params": {"x": list(range(10)), "clock": [900 + 30 * i for i in range(-(-count // 10))]},
        "objective": "GFLOP/s",
        "cache": entries,
    }
    path = folder / "small.json.gz"
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return path


class Window(TuningLab):
    """A tuning panel with the real engine and store behind it."""

    def __init__(self, qtbot: QtBot, gpu: SimulatedGpu) -> None:
        super().__init__(gpu)
        self.qtbot = qtbot
        self.panel = TunePanel(self.context)
        qtbot.addWidget(self.panel)
        self.panel.show()

    def open(self, path: Path) -> None:
        self.panel.open(path)
        self.qtbot.waitUntil(lambda: self.panel.start.isEnabled(), timeout=20_000)

    def run_to_the_end(self) -> None:
        started = self.bridge.signal(events.SessionStarted)
        with self.qtbot.waitSignal(started, timeout=20_000, check_params_cb=lambda event: event.running):
            self.panel.start.click()
        self.qtbot.waitUntil(lambda: self.panel.state is SessionState.DONE, timeout=60_000)

    def close(self) -> None:
        self.panel.shutdown()
        super().close()


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[Window]:
    gpu = SimulatedGpu(load_twin("a100"), seed=3, clock=VirtualClock())
    made = Window(qtbot, gpu)
    yield made
    made.close()
    gpu.close()


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> TunePanel:
    made = TunePanel(lab.context)
    qtbot.addWidget(made)
    made.show()
    return made


# --- before the start -------------------------------------------------------------------------------------------------


def test_at_first_it_says_what_to_do_and_nothing_can_be_started(panel: TunePanel) -> None:
    assert "Open a specification" in panel.summary.space.text()
    assert not any(button.isEnabled() for button in (panel.start, panel.pause, panel.stop))


def test_the_size_of_the_space_is_shown_before_the_start(window: Window, tmp_path: Path) -> None:
    window.open(small_cache(tmp_path))
    assert "60 measurements of 60 combinations" in window.panel.summary.space.text()
    assert window.panel.header.text().startswith("Set up to replay: small on Test GPU · recorded in small.json.gz")
    window.open(next(path for path in examples() if path.stem == "gemm"))
    assert "valid of 2\u202f304 combinations" in window.panel.summary.space.text()
    assert window.store.sessions() == []


def test_a_complete_cache_is_a_result_at_once_and_replaying_it_another_step(window: Window, tmp_path: Path) -> None:
    panel = window.panel
    with window.qtbot.waitSignal(window.bridge.signal(events.SessionChanged), timeout=20_000):
        panel.open(small_cache(tmp_path))
    assert window.result.caption == "small · Test GPU · recorded in small.json.gz"
    assert (len(window.result.table or ()), panel.state) == (60, SessionState.DONE)
    assert window.store.sessions() == [], "nothing was run and nothing is stored"
    table, best = window.result.table, window.result.chosen
    assert table is not None
    assert best is not None
    assert table.values("GFLOP/s")[best] == np.nanmax(table.values("GFLOP/s")), "chosen by the file's own objective"
    files = export_session(window.result.plan, table, window.result.session, best, tmp_path / "out", ["json"])
    written = json.loads(files[0].read_text())
    assert (written["gpu"], written["session"]) == ("Test GPU", None)
    assert panel.start.text() == "Replay with a strategy"
    panel.form.evaluations.setValue(20)
    window.run_to_the_end()
    assert [record.evaluated for record in window.store.sessions()] == [20]
    assert len(window.result.table or ()) == 20
    panel.summary.show_all.click()
    window.qtbot.waitUntil(lambda: len(window.result.table or ()) == 60, timeout=10_000)
    assert window.result.caption == "small · Test GPU · recorded in small.json.gz"


@pytest.mark.parametrize("kind", ["t4", "csv", "cache"])
def test_whatever_its_format_a_complete_recording_is_shown_whole(window: Window, tmp_path: Path, kind: str) -> None:
    table = filled(grid_space())
    path, _ = export_session(plan_for(table.space, OBJECTIVE), table, None, None, tmp_path, [kind])
    with window.qtbot.waitSignal(window.bridge.signal(events.SessionChanged), timeout=20_000):
        window.panel.open(path)
    assert len(window.result.table or ()) == len(table)
    assert window.result.caption.endswith(f"recorded in {path.name}")


def test_a_recording_that_is_opened_while_a_session_runs_waits_to_be_shown(
    lab: Lab, panel: TunePanel, tmp_path: Path, qtbot: QtBot
) -> None:
    table = begin(lab)
    change(lab, table, SessionState.RUNNING)
    panel.open(small_cache(tmp_path))
    qtbot.waitUntil(lambda: panel.draft is not None, timeout=20_000)
    assert not lab.engine.commands
    assert not panel.summary.show_all.isEnabled()
    change(lab, table, SessionState.DONE)
    panel.summary.show_all.click()
    assert [type(command) for command in lab.engine.commands] == [events.Show]


def test_an_example_shows_its_space_strategy_and_goal(window: Window) -> None:
    window.open(next(path for path in examples() if path.stem == "gemm"))
    form = window.panel.form
    assert form.strategy.currentData() == "auto"
    assert (form.objective.currentData(), form.direction.currentData()) == ("GFLOPS/W", True)
    assert form.evaluations.value() == 250
    assert "simulated" in window.panel.header.text()
    assert "removed by" in window.panel.summary.details.text()


def test_the_space_can_be_looked_at_and_its_window_follows_what_is_opened(window: Window, tmp_path: Path) -> None:
    window.open(next(path for path in examples() if path.stem == "gemm"))
    window.panel.summary.look.click()
    shown = window.panel.space_window
    assert shown is not None
    assert shown.isVisible()
    assert shown.picture.lines[-1][1] == shown.table.rows.rowCount() > 100
    window.open(small_cache(tmp_path))
    assert shown.table.rows.rowCount() == 60
    window.panel.open(tmp_path / "missing.toml")
    assert not window.panel.summary.look.isVisible()


def test_a_file_that_is_no_specification_is_reported_in_panel_and_banner(window: Window, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[parameters]\nx = [1, 2\n")
    window.panel.open(wrong)
    window.qtbot.waitUntil(lambda: bool(window.faults), timeout=10_000)
    assert "wrong.toml" in window.faults[0].what
    assert "wrong.toml" in window.panel.summary.space.text()
    assert not window.panel.start.isEnabled()


def test_each_strategy_s_options_can_be_changed_and_reach_the_plan(window: Window, tmp_path: Path) -> None:
    window.open(small_cache(tmp_path))
    form = window.panel.form
    form.strategy.setCurrentIndex(form.strategy.findData("genetic_algorithm"))
    editor = form.options.editors["population_size"]
    assert isinstance(editor, QSpinBox)
    editor.setValue(8)
    chance = form.options.editors["mutation_chance"]
    assert isinstance(chance, QDoubleSpinBox)
    form.evaluations.setValue(25)
    form.patience.setValue(12)
    form.seed.setValue(7)
    plan = form.plan()
    assert (plan.strategy, plan.strategy_options["population_size"]) == ("genetic_algorithm", 8)
    assert (plan.max_evaluations, plan.seed, plan.max_seconds, plan.patience) == (25, 7, None, 12)


def test_an_option_out_of_its_range_is_a_fault_and_starts_nothing(window: Window, tmp_path: Path) -> None:
    window.open(small_cache(tmp_path))
    form = window.panel.form
    form.strategy.setCurrentIndex(form.strategy.findData("genetic_algorithm"))
    editor = form.options.editors["population_size"]
    assert isinstance(editor, QSpinBox)
    editor.setValue(-5)
    window.panel.start.click()
    window.qtbot.waitUntil(lambda: bool(window.faults), timeout=10_000)
    assert window.store.sessions() == []


def test_choosing_a_time_as_objective_turns_to_minimise(window: Window, tmp_path: Path) -> None:
    window.open(small_cache(tmp_path))
    form = window.panel.form
    form.objective.setCurrentIndex(form.objective.findData("time_s"))
    assert form.direction.currentData() is False
    assert str(form.plan().objective) == "min:time_s"


def search_at_random(window: Window) -> None:
    """So that every row is measured in full."""
    strategy = window.panel.form.strategy
    strategy.setCurrentIndex(strategy.findData("random_sample"))


def test_one_line_says_what_is_set_up(window: Window) -> None:
    panel = window.panel
    assert panel.header.text() == "Nothing is set up yet"
    window.open(next(path for path in examples() if path.stem == "gemm"))
    assert panel.header.text().startswith("Set up to run: sgemm on NVIDIA A100")
    panel.form.evaluations.setValue(40)
    assert panel.header.text().endswith("then local search) · maximise GFLOPS/W · 40 evaluations")
    panel.form.history.undo()
    assert panel.header.text().endswith("250 evaluations")


def test_the_set_up_needs_little_width_whatever_is_open(window: Window, tmp_path: Path) -> None:
    """The figures beside it have the rest."""
    panel = window.panel
    panel.resize(300, 700)
    window.open(small_cache(tmp_path))
    panel.form.more.click()
    for place in range(panel.form.strategy.count()):
        panel.form.strategy.setCurrentIndex(place)
        assert panel.minimumSizeHint().width() <= 320, panel.form.strategy.currentText()
    window.run_to_the_end()
    assert panel.minimumSizeHint().width() <= 320


# --- running ----------------------------------------------------------------------------------------------------------


def test_a_session_runs_to_its_end_and_shows_best_failures_and_every_row(window: Window, tmp_path: Path) -> None:
    window.open(small_cache(tmp_path))
    window.run_to_the_end()
    panel = window.panel
    assert panel.progress.bar.value() == panel.progress.bar.maximum() == 60
    assert panel.progress.best.text() == "1000 GFLOP/s"
    assert panel.progress.failed.text() == "9 runtime"
    assert panel.start.isEnabled()
    assert not panel.stop.isEnabled()
    assert window.store.sessions()[0].evaluated == 60


def test_open_and_start_at_once_as_the_demo_does(window: Window, tmp_path: Path) -> None:
    window.panel.open(small_cache(tmp_path), start=True)
    window.qtbot.waitUntil(lambda: window.panel.state is SessionState.DONE, timeout=30_000)
    assert len(window.result.table or ()) == 60


def test_the_gemm_example_runs_on_a_simulated_board(window: Window) -> None:
    window.open(next(path for path in examples() if path.stem == "gemm"))
    window.panel.form.evaluations.setValue(12)
    window.run_to_the_end()
    table = window.result.table
    assert table is not None
    assert np.count_nonzero(~table.timed()) == 12
    assert {"GFLOP/s", "GFLOPS/W", "time_s", "energy_j"} <= set(table.value_names)
    assert not window.faults


def test_a_stopped_session_can_be_resumed(window: Window, tmp_path: Path) -> None:
    window.open(small_cache(tmp_path))
    window.panel.form.evaluations.setValue(20)
    window.run_to_the_end()
    session = window.store.sessions()[0].id
    window.panel.open_session(session, start=False)
    window.qtbot.waitUntil(lambda: window.panel.start.isEnabled(), timeout=10_000)
    assert f"session {session}: 20 of 20 measured" in window.panel.summary.space.text()
    window.panel.summary.as_new.setChecked(False)
    assert not window.panel.form.strategy.isEnabled()
    window.panel.form.evaluations.setValue(0)
    window.run_to_the_end()
    assert [record.evaluated for record in window.store.sessions()] == [60]


def reopen(window: Window, session: int) -> None:
    """As by Open under Sessions."""
    signals = [window.panel.form.draft_shown, window.bridge.signal(events.SessionChanged)]
    with window.qtbot.waitSignals(signals, timeout=20_000):
        window.bridge.submit(events.Open(session))


def test_a_finished_session_that_is_opened_can_be_continued_or_started_again(window: Window, tmp_path: Path) -> None:
    window.open(small_cache(tmp_path))
    panel, form = window.panel, window.panel.form
    form.strategy.setCurrentIndex(form.strategy.findData("random_sample"))
    form.evaluations.setValue(20)
    form.seed.setValue(9)
    window.run_to_the_end()
    window.open(next(path for path in examples() if path.stem == "gemm"))
    reopen(window, 1)
    assert window.result.session == 1
    assert window.result.chosen == window.result.best is not None, "its best is chosen"
    assert (form.strategy.currentData(), form.evaluations.value(), form.seed.value()) == ("random_sample", 20, 9)

    as_new = panel.summary.as_new
    assert as_new.isChecked(), "it has used what it was given"
    assert panel.start.isEnabled()
    as_new.setChecked(False)
    assert panel.header.text().startswith("Set up to continue session 1: small on Test GPU")
    assert panel.start.text() == "Continue session"
    assert not panel.start.isEnabled()
    assert "allow it more evaluations" in panel.start.toolTip()
    assert not form.strategy.isEnabled()
    assert form.strategy.toolTip() == "Session 1 is continued: only its limits can change"
    assert form.why.text() == f"{form.strategy.toolTip()}. {panel.start.toolTip()}"
    form.evaluations.setValue(30)
    assert form.why.text() == form.strategy.toolTip()
    assert panel.start.isEnabled()
    window.run_to_the_end()
    assert [record.evaluated for record in window.store.sessions()] == [30]
    window.qtbot.waitUntil(lambda: "session 1: 30 of 30 measured" in panel.summary.space.text(), timeout=10_000)

    window.qtbot.waitUntil(as_new.isChecked, timeout=10_000)
    assert form.strategy.isEnabled()
    assert form.why.text().strip() == ""
    window.run_to_the_end()
    assert [record.evaluated for record in window.store.sessions()] == [30, 30], "a session of its own"
    assert [record.seed for record in window.store.sessions()] == [9, 9]


def test_a_stopped_session_that_is_opened_is_continued_by_one_button(window: Window, tmp_path: Path) -> None:
    table = filled(grid_space(), 12)
    cache, _ = export_session(plan_for(table.space, OBJECTIVE), filled(grid_space()), None, None, tmp_path, ["cache"])
    window.open(cache)
    stopped = window.store.create_session(window.panel.form.plan())
    window.store.append(stopped, [table.measurement(index) for index in range(12)])
    window.store.finish(stopped, SessionState.STOPPED, "stopped")
    reopen(window, stopped)
    panel = window.panel
    assert not panel.summary.as_new.isChecked()
    assert (panel.start.text(), panel.start.isEnabled()) == ("Continue session", True)
    assert (panel.pause.text(), panel.pause.isEnabled()) == ("Pause", False)
    assert panel.form.why.text() == "Session 1 is continued: only its limits can change"
    window.run_to_the_end()
    assert [record.evaluated for record in window.store.sessions()] == [160]


def test_a_session_of_a_board_that_is_not_there_is_looked_at_exported_and_says_what_it_lacks(
    window: Window, tmp_path: Path
) -> None:
    window.open(next(path for path in examples() if path.stem == "gemm"))
    search_at_random(window)
    window.panel.form.evaluations.setValue(6)
    window.run_to_the_end()
    v100 = SimulatedGpu(load_twin("v100"), clock=VirtualClock())
    window.context.boards.current.gpu = v100
    reopen(window, 1)
    panel = window.panel
    assert len(window.result.table or ()) == 6
    assert panel.header.text().startswith("Only to look at: sgemm on NVIDIA A100-PCIE-40GB")
    assert "was measured on another board" in panel.summary.details.text()
    assert "can be looked at, exported and reported, but not run" in panel.summary.details.text()
    assert not panel.start.isEnabled()
    assert not panel.form.evaluations.isEnabled()
    assert panel.form.evaluations.toolTip()
    files = export_session(window.result.plan, window.result.table, 1, window.result.chosen, tmp_path, ["json", "csv"])
    assert [file.name for file in files] == ["sgemm.json", "sgemm-session.csv", "receipt.json"]
    assert window.faults == [], "nothing was asked that failed"
    panel.open_session(1)
    window.qtbot.waitUntil(lambda: bool(window.faults), timeout=10_000)
    assert "was measured on another board" in window.faults[0].what


def past_sessions(window: Window) -> None:
    """The menu is opened, and what it lists has been read."""
    with window.qtbot.waitSignal(window.panel.past.listed, timeout=5_000):
        window.panel.stored.menu().aboutToShow.emit()


def test_past_sessions_are_listed(window: Window, tmp_path: Path) -> None:
    past_sessions(window)
    assert next(action.text() for action in window.panel.stored.menu().actions()) == "none yet"
    window.open(small_cache(tmp_path))
    window.run_to_the_end()
    past_sessions(window)
    action, *_ = window.panel.stored.menu().actions()
    assert "Session 1 · small · Test GPU (recorded) · 60 of 60 measured · done" in action.text()
    with window.qtbot.waitSignal(window.panel.form.draft_shown, timeout=20_000):
        action.trigger()
    assert window.panel.draft is not None
    assert window.panel.draft.plan.resume == window.store.sessions()[0].id


def test_an_example_is_opened_from_its_menu(window: Window) -> None:
    menu = window.panel.examples.menu()
    menu.aboutToShow.emit()
    action = next(action for action in menu.actions() if action.text() == "gemm")
    with window.qtbot.waitSignal(window.panel.file_opened, timeout=20_000) as opened:
        action.trigger()
    assert opened.args[0].name == "gemm.toml"


def test_steering_keeps_the_next_session_to_the_supported_clocks_in_the_range(window: Window) -> None:
    window.open(next(path for path in examples() if path.stem == "gemm"))
    whole = window.panel.form.plan().space.size
    window.result.steer((950.0, 1100.0))
    panel = window.panel
    window.qtbot.waitUntil(lambda: panel.summary.steered.isVisible() and panel.start.isEnabled(), timeout=20_000)
    clocks = dict(zip(panel.form.plan().space.names, panel.form.plan().space.parameters, strict=True))
    values = clocks["graphics_clock_mhz"].values
    supported = set(window.context.gpu.graphics_clocks_mhz())
    assert set(values) == {clock for clock in supported if 950 <= clock <= 1100} | {"untouched"}
    panel.summary.unsteer.click()
    window.qtbot.waitUntil(lambda: panel.start.isEnabled() and not panel.summary.steered.isVisible(), timeout=20_000)
    assert panel.form.plan().space.size == whole


# --- the buttons, against an engine that answers when the test says so ------------------------------------------------


def begin(lab: Lab) -> ResultTable:
    table = filled(grid_space(), 30)
    lab.session(table, plan_for(table.space, OBJECTIVE))
    return table


def change(lab: Lab, table: ResultTable, state: SessionState, reason: str = "") -> None:
    lab.engine.tell(events.SessionChanged(progress(table, state, best=3), reason))


def test_pause_resume_and_stop_are_sent_and_shown(lab: Lab, panel: TunePanel) -> None:
    table = begin(lab)
    panel.pause.click()
    assert panel.pause.text() == "Pausing …"
    assert not panel.pause.isEnabled()
    change(lab, table, SessionState.PAUSED)
    assert panel.pause.text() == "Resume"
    assert "paused" in panel.progress.bar.format()
    panel.pause.click()
    change(lab, table, SessionState.RUNNING)
    assert panel.pause.text() == "Pause"
    panel.stop.click()
    assert panel.progress.captions[1].text() == "Time left"
    change(lab, table, SessionState.STOPPED, "stopped")
    assert panel.progress.bar.format().endswith("· stopped"), "not 'stopped: stopped'"
    assert panel.progress.bar.format().startswith("30 of 160 measured (")
    assert (panel.progress.captions[1].text(), panel.progress.left.text()) == ("Time taken", "2.0 s")
    assert [type(command) for command in lab.engine.commands] == [events.Pause, events.Resume, events.Stop]
    assert panel.pause.text() == "Resume"
    assert not panel.stop.isEnabled()


def test_rate_time_left_and_failures_are_shown_while_it_runs(lab: Lab, panel: TunePanel) -> None:
    space = grid_space()
    table = filled(space)
    lab.session(table, plan_for(space, OBJECTIVE))
    lab.grow(table, best=3, budget=400)
    assert panel.progress.rate.text() == "25 per s"
    assert panel.progress.left.text() == "8.0 s"
    assert "compile" in panel.progress.failed.text()
    assert panel.progress.bar.maximum() == 400


def test_what_the_runner_does_before_the_first_measurement_is_shown(lab: Lab, panel: TunePanel) -> None:
    table = begin(lab)
    lab.engine.tell(events.Preparing("characterising the power sensor", 12.4, 65.0))
    bar = panel.progress.bar
    assert (bar.value(), bar.maximum()) == (12, 65)
    assert "12 of at most 65 s" in bar.format()
    assert panel.progress.remark.text() == "characterising the power sensor"
    assert panel.progress.remark.isVisible()
    assert panel.stop.isEnabled()
    lab.grow(table, best=3, budget=400)
    assert "preparing" not in bar.format()
    assert bar.maximum() == 400
    assert not panel.progress.remark.isVisible()


def test_a_session_that_ends_by_a_fault_can_be_started_again(lab: Lab, panel: TunePanel) -> None:
    table = begin(lab)
    lab.engine.tell(events.EngineFault("the GPU is gone", "plug it in"))
    change(lab, table, SessionState.FAILED, "the GPU is gone")
    assert "the GPU is gone" in panel.progress.bar.format()
    assert panel.pause.text() == "Resume"


@pytest.mark.parametrize("size", [(380, 700), (420, 900), (1200, 700)])
def test_nothing_is_cut_off_or_overlaps_at_any_size(
    lab: Lab, panel: TunePanel, qtbot: QtBot, size: tuple[int, int]
) -> None:
    table = begin(lab)
    change(lab, table, SessionState.RUNNING)
    panel.resize(*size)
    shown = [w for w in (panel.header, panel.start, panel.expected, panel.form, panel.progress) if w.isVisible()]
    qtbot.waitUntil(lambda: all(w.height() >= w.minimumSizeHint().height() for w in shown), timeout=5_000)
    for above, below in pairwise(shown):
        assert above.geometry().bottom() < below.geometry().top()
    assert shown[-1].geometry().bottom() <= panel.rect().bottom()


# --- other formats ----------------------------------------------------------------------------------------------------


def grow(path: Path, count: int, *, close: bool = False) -> None:
    """A cache as Kernel Tuner has it after so many configurations of `small_cache`."""
    document = json.loads(gzip.decompress(small_cache(path.parent).read_bytes()))
    entries = document.pop("cache")
    text = json.dumps({**document, "cache": {}}, indent="")[:-3]
    for key, entry in list(entries.items())[:count]:
        text += "\n" + json.dumps({key: entry})[1:-1] + ","
    path.write_text(text[:-1] + "}\n}" if close else text)


def test_a_cache_that_is_written_fills_the_window_until_it_is_closed(window: Window, tmp_path: Path) -> None:
    path = tmp_path / "live.json"
    grow(path, 5)
    window.open(path)
    panel = window.panel
    assert panel.summary.follow.isVisible()
    assert not panel.form.strategy.isEnabled(), "nothing is searched"
    panel.start.click()
    window.qtbot.waitUntil(lambda: panel.progress.bar.format() == "5 measured so far", timeout=20_000)
    window.result.select(2)
    grow(path, 30)
    window.qtbot.waitUntil(lambda: len(window.result.table or ()) == 30, timeout=20_000)
    assert window.store.sessions() == [], "it is kept when it ends"
    grow(path, 60, close=True)
    window.qtbot.waitUntil(lambda: panel.state is SessionState.DONE, timeout=20_000)
    assert "the file is closed" in panel.progress.bar.format()
    assert [record.evaluated for record in window.store.sessions()] == [60]
    assert window.result.session == window.store.sessions()[0].id
    assert window.result.index == 2, "what was selected stays selected"


def test_a_growing_cache_can_be_searched_as_it_is_instead(window: Window, tmp_path: Path) -> None:
    path = tmp_path / "live.json"
    grow(path, 20)
    window.open(path)
    window.panel.summary.follow.setChecked(False)
    assert window.panel.form.strategy.isEnabled()
    window.run_to_the_end()
    assert [record.evaluated for record in window.store.sessions()] == [20]


def test_following_is_stopped_by_the_person(window: Window, tmp_path: Path) -> None:
    path = tmp_path / "live.json"
    grow(path, 8)
    window.open(path)
    window.panel.start.click()
    window.qtbot.waitUntil(lambda: len(window.result.table or ()) == 8, timeout=20_000)
    window.panel.stop.click()
    window.qtbot.waitUntil(lambda: window.panel.state is SessionState.STOPPED, timeout=20_000)
    assert "the file was still open" in window.panel.progress.bar.format()


def test_a_t1_specification_opens_as_a_toml_one(window: Window, tmp_path: Path) -> None:
    spec = load_specification(next(path for path in examples() if path.stem == "gemm"))
    window.open(export_specification(spec, tmp_path))
    assert (window.panel.form.objective.currentData(), window.panel.form.evaluations.value()) == ("GFLOPS/W", 250)
    assert "simulated" in window.panel.header.text()
    assert not window.panel.summary.follow.isVisible()


def test_what_a_file_holds_counts_in_the_specification_that_is_open(window: Window, tmp_path: Path) -> None:
    gemm = next(path for path in examples() if path.stem == "gemm")
    window.open(gemm)
    search_at_random(window)
    window.panel.form.evaluations.setValue(6)
    window.run_to_the_end()
    plan, table = window.result.plan, window.result.table
    assert plan is not None
    assert table is not None
    cache, _ = export_session(plan, table, 1, None, tmp_path, ["cache"])
    window.panel.take_over(cache)
    window.qtbot.waitUntil(lambda: window.panel.start.isEnabled(), timeout=20_000)
    assert "6 of 6 measurements taken over" in window.panel.summary.details.text()
    window.panel.form.evaluations.setValue(9)
    window.run_to_the_end()
    assert [record.evaluated for record in window.store.sessions()] == [9, 6]


def test_what_the_strategy_has_to_say_stays_until_another_session_begins(lab: Lab, panel: TunePanel) -> None:
    table = begin(lab)
    remark = panel.progress.remark
    assert not remark.isVisible()
    lab.engine.tell(events.Preparing("characterising the power sensor", 12.4, 65.0))
    lab.engine.tell(events.SessionRemark(1, "Most efficient near 1035 MHz: only 945–1125 MHz is searched"))
    lab.grow(table, best=3, budget=400)
    assert remark.isVisible()
    assert remark.text().startswith("Most efficient near 1035 MHz")
    begin(lab)
    assert not remark.isVisible()


def test_strategies_are_described_and_named_choices_are_lists(window: Window, tmp_path: Path) -> None:
    window.open(small_cache(tmp_path))
    form = window.panel.form
    assert form.strategy.itemData(0) == "auto"
    at = form.strategy.findData("steered")
    assert "clocks" in form.strategy.itemData(at, Qt.ItemDataRole.ToolTipRole)
    form.strategy.setCurrentIndex(at)
    base = form.options.editors["base"]
    assert isinstance(base, QComboBox)
    base.setCurrentText("tabu_search")
    assert form.plan().strategy_options["base"] == "tabu_search"
