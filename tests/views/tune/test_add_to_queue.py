"""'Add to queue': as set up, and the cross product of strategies, seeds and boards, with the real engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.lab import ready
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QListWidget
from pytestqt.qtbot import QtBot

from app.base.paths import resources
from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.session.queue import MOST_WAITING
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.shell.app import Program
from app.views.shell.window import MainWindow
from app.views.tune.add_to_queue import VariantsWindow
from app.views.tune.tune_panel import TunePanel

Open = Callable[..., Program]
EXAMPLE = resources() / "examples" / "vector_add.toml"


def tick(boxes: QListWidget, *wanted: str) -> None:
    for row in range(boxes.count()):
        item = boxes.item(row)
        chosen = item.data(Qt.ItemDataRole.UserRole) in wanted
        item.setCheckState(Qt.CheckState.Checked if chosen else Qt.CheckState.Unchecked)


def set_up(qtbot: QtBot, open_program: Open) -> tuple[MainWindow, TunePanel]:
    """The window on a simulated A100 that computes as fast as it can, a specification open, 8 evaluations."""
    gpu = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    window = ready(qtbot, open_program(gpu))
    tune = window.panels["tune"]
    tune.open(EXAMPLE)
    qtbot.waitUntil(tune.start.isEnabled, timeout=20_000)
    tune.form.strategy.setCurrentIndex(tune.form.strategy.findData("random_sample"))
    tune.form.evaluations.setValue(8)
    return window, tune


def variants_of(tune: TunePanel) -> VariantsWindow:
    tune.queue.several.trigger()
    assert tune.queue.variants is not None
    return tune.queue.variants


def test_the_button_waits_for_something_to_be_set_up(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program())
    assert not window.panels["tune"].queue.isEnabled()
    assert not window.actions_by_name["enqueue"].isEnabled()


def test_what_is_set_up_runs_one_after_another_and_what_is_set_up_next_changes_nothing_of_it(
    qtbot: QtBot, open_program: Open
) -> None:
    window, tune = set_up(qtbot, open_program)
    queue = window.bridge.queue
    queue.pause()
    for seed in (1, 2):
        tune.form.seed.setValue(seed)
        window.actions_by_name["enqueue"].trigger()
    tune.form.seed.setValue(99)
    queue.resume()
    qtbot.waitUntil(lambda: len(queue.finished) == 2, timeout=60_000)
    assert [(run.plan.seed, run.state) for run in queue.finished] == [(1, SessionState.DONE), (2, SessionState.DONE)]
    assert [window.services.store.session(run.session or 0).evaluated for run in queue.finished] == [8, 8]
    assert window.result.session == queue.finished[-1].session


def test_the_number_of_runs_is_said_before_they_are_added_and_bounded(qtbot: QtBot, open_program: Open) -> None:
    window, tune = set_up(qtbot, open_program)
    variants = variants_of(tune)
    assert variants.count.text() == "1 strategy × 1 seed × 1 board = 1 run, one after another"
    tick(variants.strategies, "random_sample", "genetic_algorithm")
    variants.seeds.setValue(3)
    assert variants.count.text() == "2 strategies × 3 seeds × 1 board = 6 runs, one after another"
    assert variants.add.isEnabled()
    tick(variants.strategies)
    assert "tick at least one of each" in variants.count.text()
    assert not variants.add.isEnabled()
    tick(variants.strategies, "random_sample", "genetic_algorithm", "brute_force")
    variants.seeds.setValue(100)
    assert f"too many, {MOST_WAITING} more may wait" in variants.count.text()
    assert not variants.add.isEnabled()
    assert not window.bridge.queue.runs


def test_several_boards_run_one_after_another_and_the_shown_board_stays(qtbot: QtBot, open_program: Open) -> None:
    window, tune = set_up(qtbot, open_program)
    window.boards.watch("simulated:v100")
    qtbot.waitUntil(lambda: len(window.boards.all) == 2, timeout=20_000)
    other = window.boards.all[1]
    window.bridge.queue.pause()
    variants = variants_of(tune)
    tick(variants.strategies, "random_sample", "greedy_ils")
    tick(variants.boards, *(board.uuid for board in window.boards.all))
    variants.first.setValue(5)
    variants.seeds.setValue(2)
    assert "2 strategies × 2 seeds × 2 boards = 8 runs" in variants.count.text()
    variants.add.click()
    qtbot.waitUntil(lambda: len(window.bridge.queue.waiting) == 8, timeout=60_000)
    assert not variants.isVisible()
    runs = [(run.plan.origin["gpu"], run.plan.strategy, run.plan.seed) for run in window.bridge.queue.waiting]
    assert runs == [
        (uuid, strategy, seed)
        for uuid in (window.board.uuid, other.uuid)
        for strategy in sorted(("random_sample", "greedy_ils"), key=lambda name: name)
        for seed in (5, 6)
    ]
    assert {run.plan.max_evaluations for run in window.bridge.queue.waiting} == {8}
    home = window.board
    window.bridge.queue.remove([run.number for run in window.bridge.queue.waiting[:6]])
    window.bridge.queue.move(window.bridge.queue.waiting[1].number, 0)
    window.bridge.queue.resume()
    qtbot.waitUntil(lambda: window.result.plan is not None, timeout=60_000)
    assert window.result.plan is not None
    assert window.result.plan.origin["gpu"] == other.uuid
    assert window.board is home
    assert tune.draft is not None
    assert tune.draft.plan.origin["gpu"] == home.uuid
    window.bridge.queue.clear()
    window.bridge.activity.stop()
    qtbot.waitUntil(lambda: not window.bridge.activity.busy, timeout=60_000)


def test_a_file_that_was_edited_meanwhile_is_not_mixed_with_what_it_was(
    qtbot: QtBot, open_program: Open, tmp_path: Path
) -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace("../kernels", str(resources() / "kernels"))
    path = tmp_path / "edited.toml"
    path.write_text(text, encoding="utf-8")
    window = ready(qtbot, open_program())
    tune = window.panels["tune"]
    tune.open(path)
    qtbot.waitUntil(tune.start.isEnabled, timeout=20_000)
    window.boards.watch("simulated:v100")
    qtbot.waitUntil(lambda: len(window.boards.all) == 2, timeout=20_000)
    variants = variants_of(tune)
    tick(variants.boards, window.boards.all[1].uuid)
    path.write_text(text + "\n# edited\n", encoding="utf-8")
    with qtbot.waitSignal(window.bridge.signal(events.EngineFault), timeout=20_000) as fault:
        variants.add.click()
    assert "has changed since it was opened" in fault.args[0].what
    assert not window.bridge.queue.runs
    assert variants.isVisible()
    assert variants.add.isEnabled(), "it can be tried again"


def test_a_recording_is_replayed_with_several_strategies_and_on_no_board(
    qtbot: QtBot, open_program: Open, tmp_path: object
) -> None:
    window = ready(qtbot, open_program())
    tune = window.panels["tune"]
    tune.open(resources() / "recordings" / "h200-sgemm-session.json.gz")
    qtbot.waitUntil(tune.start.isEnabled, timeout=60_000)
    tune.form.evaluations.setValue(10)
    variants = variants_of(tune)
    assert not variants.boards.isEnabled()
    assert "replayed" in variants.boards.toolTip()
    variants.seeds.setValue(2)
    tick(variants.strategies, "random_sample")
    variants.add.click()
    qtbot.waitUntil(lambda: len(window.bridge.queue.finished) == 2, timeout=60_000)
    assert {run.state for run in window.bridge.queue.finished} == {SessionState.DONE}


@pytest.mark.parametrize("key", ["Alt+Up", "Ctrl+Shift+Return"])
def test_no_other_action_has_the_keys_of_the_queue(qtbot: QtBot, open_program: Open, key: str) -> None:
    window = open_program().window
    taken = [name for name, action in window.actions_by_name.items() if action.shortcut().toString() == key]
    assert taken in ([], ["enqueue"])
