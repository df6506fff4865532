"""The editor from the main window: the specification that is open is edited, and goes back to Tune."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fixtures.lab import ready
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app.base.paths import resources
from app.engine.report.export import export_specification
from app.engine.session.load import load_specification
from app.views.tune.editor_window import SpecificationEditor


def test_what_is_open_is_edited_saved_elsewhere_and_set_up_under_tune(
    qtbot: QtBot, open_program: Callable[..., Any], tmp_path: Path
) -> None:
    window = ready(qtbot, open_program())
    example = resources() / "examples" / "vector_add.toml"
    window.open_specification(example)
    tune = window.panels["tune"]
    qtbot.waitUntil(lambda: tune.draft is not None, timeout=30_000)
    window.actions_by_name["edit_specification"].trigger()
    editor = window.side_windows.by_name["editor"]
    assert isinstance(editor, SpecificationEditor)
    qtbot.waitUntil(lambda: editor.edited.path == example, timeout=30_000)
    there = tmp_path / "mine.toml"
    editor.edited.set_text(re.sub(r"seed = \d+", "seed = 12", editor.edited.text))
    editor.save_to(there)
    qtbot.waitUntil(lambda: editor.edited.path == there and editor.run.isEnabled(), timeout=30_000)
    text = editor.edited.text
    qtbot.waitUntil(lambda: editor.reading is not None and editor.reading.text == text, timeout=30_000)
    editor.set_up()
    qtbot.waitUntil(lambda: tune.draft is not None and tune.draft.path == there, timeout=30_000)
    assert tune.draft.plan.seed == 12
    assert tune.specification == there


def test_a_t1_file_is_edited_as_the_same_specification_in_toml(
    qtbot: QtBot, open_program: Callable[..., Any], tmp_path: Path
) -> None:
    window = ready(qtbot, open_program())
    t1 = export_specification(load_specification(resources() / "examples" / "gemm.toml"), tmp_path)
    before = t1.read_bytes()
    window.open_specification(t1)
    tune = window.panels["tune"]
    qtbot.waitUntil(lambda: tune.draft is not None, timeout=30_000)
    window.actions_by_name["edit_specification"].trigger()
    editor = window.side_windows.by_name["editor"]
    qtbot.waitUntil(lambda: "which is T1" in editor.edited.text and editor.run.isEnabled(), timeout=30_000)
    there = tmp_path / "mine.toml"
    editor.save_to(there)
    qtbot.waitUntil(there.exists, timeout=30_000)
    qtbot.waitUntil(lambda: editor.edited.path == there, timeout=30_000)
    again = load_specification(there)
    assert replace(again, path=t1) == load_specification(t1)
    assert t1.read_bytes() == before


def test_an_example_stays_as_it_is_and_its_changes_are_saved_elsewhere(
    qtbot: QtBot, open_program: Callable[..., Any]
) -> None:
    window = ready(qtbot, open_program())
    example = resources() / "examples" / "vector_add.toml"
    before = example.read_bytes()
    editor = window.side_windows.show_editor()
    editor.open(example)
    qtbot.waitUntil(lambda: editor.edited.path == example, timeout=30_000)
    editor.edited.set_text(re.sub(r"seed = \d+", "seed = 12", editor.edited.text))
    editor.save()
    dialogs = editor.findChildren(QFileDialog)
    assert [dialog.isVisible() for dialog in dialogs] == [True], "it asks where to"
    dialogs[0].close()
    assert editor.edited.modified
    assert example.read_bytes() == before


def test_new_specification_begins_the_wizard(qtbot: QtBot, open_program: Callable[..., Any]) -> None:
    window = ready(qtbot, open_program())
    window.actions_by_name["new_specification"].trigger()
    editor = window.side_windows.by_name["editor"]
    assert editor.isVisible()
    qtbot.waitUntil(lambda: editor.new_window is not None and editor.new_window.isVisible(), timeout=5_000)


def test_what_is_unsaved_when_the_program_ends_is_offered_the_next_time(
    qtbot: QtBot, open_program: Callable[..., Any]
) -> None:
    window = ready(qtbot, open_program())
    window.actions_by_name["edit_specification"].trigger()
    first = window.side_windows.by_name["editor"]
    first.edited.set_text("# mine\n[parameters]\na = [1, 2]\n")
    window.close_at_once()
    again = ready(qtbot, open_program())
    again.actions_by_name["edit_specification"].trigger()
    editor = again.side_windows.by_name["editor"]
    qtbot.waitUntil(editor.ask_bar.isVisible, timeout=30_000)
    editor.ask_bar.save.click()
    assert editor.edited.text.startswith("# mine")
    editor.edited.begin("", Path.home(), "untitled")
