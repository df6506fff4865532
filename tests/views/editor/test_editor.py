"""The editor: form and text are two views of one text, with one history; nothing that was typed is lost."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLineEdit, QTableWidget
from pytestqt.qtbot import QtBot

from app.engine.session.load import load_specification
from app.paths import resources
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.editor import kept_drafts
from app.views.editor.form import SECTIONS
from app.views.editor.kept_drafts import Draft
from app.views.editor.window import SpecificationEditor

TEXT = """# my kernel
restrictions = [
    "a * b <= 64", # registers
]

[kernel]
name = "mine"   # as in the source
source = "mine.cu"
problem_size = "n"
grid_divisors = { x = ["a"] }
arguments = [{ name = "x", type = "float32", shape = ["n"], output = true }]

[constants]
n = 4096

[parameters]
a = [1, 2, 4, 8]
# how far
b = "range(1, 17)"

[device_settings]
graphics_clock_mhz = { points = 3 }

[metrics]
rate = "n / time_s"

[objective]
maximise = "rate"
front = ["rate", "energy_j"]

[search]
strategy = "auto"
seed = 3
"""
Open = Callable[[str], SpecificationEditor]


def board(name: str = "a100") -> SimulatedGpu:
    return SimulatedGpu(load_twin(name), clock=VirtualClock())


@pytest.fixture
def editor(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpecificationEditor]:
    """An editor of TEXT, read and checked."""
    monkeypatch.setenv("WATTRIDGE_DATA", str(tmp_path / "data"))
    made = SpecificationEditor(board())
    qtbot.addWidget(made)
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    made.open(path)
    settle(qtbot, made)
    assert made.edited.path == path
    yield made
    made.shutdown()


def settle(qtbot: QtBot, editor: SpecificationEditor) -> None:
    """Wait until the newest text was read, and its space built where it has one."""

    def newest() -> bool:
        text, reading, measured = editor.edited.text, editor.reading, editor.measured
        read = reading is not None and reading.text == text and reading.path == editor.edited.place
        return read and measured is not None and measured.text == text

    qtbot.waitUntil(lambda: not editor.edited.text.startswith("# What is tuned") and newest(), timeout=20_000)


def field(editor: SpecificationEditor, name: str) -> QLineEdit:
    (found,) = [line for line in editor.findChildren(QLineEdit) if line.accessibleName() == name]
    return found


def table(editor: SpecificationEditor, name: str) -> QTableWidget:
    (found,) = [each for each in editor.findChildren(QTableWidget) if each.accessibleName() == name]
    return found


def changed_lines(editor: SpecificationEditor) -> list[str]:
    before = TEXT.splitlines()
    return [line for line in editor.edited.text.splitlines() if line not in before]


def test_the_form_shows_what_the_text_says(editor: SpecificationEditor) -> None:
    assert field(editor, "Name").text() == "mine"
    parameters = table(editor, "Parameters")
    assert [[parameters.item(row, at).text() for at in (0, 1)] for row in range(2)] == [
        ["a", "1, 2, 4, 8"],
        ["b", "range(1, 17)"],
    ]
    assert table(editor, "Restrictions").item(0, 0).text() == "a * b <= 64"
    assert table(editor, "Restrictions").item(0, 1).text().startswith("removes ")
    assert editor.text.toPlainText() == TEXT


def test_the_size_of_the_space_is_that_of_the_file(editor: SpecificationEditor, qtbot: QtBot) -> None:
    assert "valid of 192 combinations" in editor.strip.words.text()
    editor.edited.set_value(("parameters", "a"), [1, 2])
    settle(qtbot, editor)
    assert "96 combinations" in editor.strip.words.text()


def test_a_field_changes_its_value_and_nothing_else(editor: SpecificationEditor, qtbot: QtBot) -> None:
    name = field(editor, "Name")
    name.setFocus()
    name.setText("")
    QTest.keyClicks(name, "other")
    assert len(changed_lines(editor)) == 1
    assert tomllib.loads(editor.edited.text)["kernel"]["name"] == "other"
    settle(qtbot, editor)
    assert name.text() == "other"
    editor.edited.undo()
    editor.edited.undo()
    settle(qtbot, editor)
    assert editor.edited.text == TEXT
    assert name.text() == "mine"


def test_a_cell_changes_its_value_with_the_comment_kept(editor: SpecificationEditor) -> None:
    table(editor, "Restrictions").item(0, 0).setText("a * b <= 32")
    assert changed_lines(editor) == ['    "a * b <= 32", # registers']
    table(editor, "Parameters").item(0, 1).setText("16, 32")
    assert "a = [16, 32]" in changed_lines(editor)
    table(editor, "Parameters").item(0, 0).setText("wide")
    assert "wide = [16, 32]" in changed_lines(editor)


def test_entries_are_added_moved_and_removed(editor: SpecificationEditor, qtbot: QtBot) -> None:
    parameters = editor.form.parameters
    parameters.add_entry()
    settle(qtbot, editor)
    assert list(tomllib.loads(editor.edited.text)["parameters"]) == ["a", "b", "parameter"]
    parameters.table.setCurrentCell(2, 0)
    parameters.move_up()
    settle(qtbot, editor)
    assert list(tomllib.loads(editor.edited.text)["parameters"]) == ["a", "parameter", "b"]
    assert "# how far\nb = " in editor.edited.text, "a comment goes with what it is above"
    parameters.table.setCurrentCell(1, 0)
    parameters.remove_entry()
    settle(qtbot, editor)
    assert tomllib.loads(editor.edited.text) == tomllib.loads(TEXT)


def test_what_is_typed_in_the_text_is_shown_in_the_form(editor: SpecificationEditor, qtbot: QtBot) -> None:
    cursor = editor.text.textCursor()
    cursor.setPosition(TEXT.index("seed = 3") + len("seed = "))
    cursor.movePosition(QTextCursor.MoveOperation.Right, QTextCursor.MoveMode.KeepAnchor)
    editor.text.setTextCursor(cursor)
    QTest.keyClicks(editor.text, "77")
    settle(qtbot, editor)
    assert field(editor, "Seed").text() == "77"
    editor.edited.undo()
    assert editor.edited.text == TEXT, "the digits of a line are one step"
    assert editor.text.toPlainText() == TEXT
    editor.edited.redo()
    assert "seed = 77" in editor.text.toPlainText()


def test_one_history_is_over_both(editor: SpecificationEditor) -> None:
    editor.edited.set_value(("search", "seed"), 9)
    by_form = editor.edited.text
    editor.text.moveCursor(QTextCursor.MoveOperation.End)
    QTest.keyClicks(editor.text, "# end")
    assert editor.edited.text.endswith("# end")
    editor.edited.undo()
    assert editor.edited.text == by_form
    editor.edited.undo()
    assert editor.edited.text == TEXT
    assert not editor.edited.can_undo


def test_ctrl_z_in_a_field_takes_back_the_newest_change_wherever_it_was_made(
    editor: SpecificationEditor, qtbot: QtBot
) -> None:
    with qtbot.waitActive(editor):
        editor.show()
        editor.activateWindow()
    name = field(editor, "Name")
    name.setFocus()
    QTest.keyClicks(name, "x")
    editor.edited.set_value(("search", "seed"), 9)
    QTest.keyClick(name, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: tomllib.loads(editor.edited.text)["search"]["seed"] == 3)
    assert tomllib.loads(editor.edited.text)["kernel"]["name"] == "minex", "the field's own change is older"


def test_each_problem_stands_beside_its_field_and_in_the_margin(editor: SpecificationEditor, qtbot: QtBot) -> None:
    editor.edited.set_text(
        TEXT.replace("a * b <=", "a * c <=").replace("seed = 3", 'seed = "x"').replace("n / time_s", "n / tome")
    )
    settle(qtbot, editor)
    restrictions, metrics = table(editor, "Restrictions"), table(editor, "Metrics")
    assert "unknown name 'c'" in restrictions.item(0, 1).text()
    assert "unknown name 'tome'" in metrics.item(0, 2).text()
    assert "a whole number from 0 is needed" in field(editor, "Seed").accessibleDescription()
    lines = editor.edited.text.splitlines()
    assert {lines[line - 1].split("=")[0].strip() for line in editor.text.problems} == {'"a * c <', "seed", "rate"}
    titles = [editor.form.sections.item(row).text() for row in range(len(SECTIONS))]
    assert [title for title in titles if "(1)" in title] == ["Restrictions (1)", "Metrics (1)", "Search (1)"]
    assert not editor.run.isEnabled()
    editor.go_to_problem()
    assert editor.form.sections.currentRow() == SECTIONS.index("Restrictions")
    assert editor.text.textCursor().blockNumber() + 1 == min(editor.text.problems)
    editor.edited.undo()
    settle(qtbot, editor)
    assert not editor.text.problems
    assert editor.run.isEnabled()


def test_a_wrong_argument_is_marked_and_explained_below_the_table(editor: SpecificationEditor, qtbot: QtBot) -> None:
    editor.edited.set_value(("kernel", "arguments", 0, "type"), "floaty")
    settle(qtbot, editor)
    arguments = editor.form.arguments
    assert arguments.complaint.text().startswith("x: 'type' is 'floaty'")
    assert arguments.table.item(0, 6).text() == "see below"


def test_a_space_that_is_empty_says_which_restriction_removed_the_last(
    editor: SpecificationEditor, qtbot: QtBot
) -> None:
    editor.edited.set_value(("restrictions", 1), "a > 100")
    settle(qtbot, editor)
    assert "no configuration is valid" in editor.strip.words.text()
    assert "removes the last" in table(editor, "Restrictions").item(1, 1).text()


def test_text_that_is_no_toml_is_kept_and_the_form_waits(editor: SpecificationEditor, qtbot: QtBot) -> None:
    broken = TEXT.replace('name = "mine"', 'name = "mine')
    editor.edited.set_text(broken)
    settle(qtbot, editor)
    assert not editor.form.pages.isEnabled()
    assert "not TOML" in editor.form.blocked.text()
    assert list(editor.text.problems) == [7]
    assert editor.text.toPlainText() == broken
    editor.edited.undo()
    settle(qtbot, editor)
    assert editor.form.pages.isEnabled()


def test_the_limits_are_those_of_the_board_that_is_shown(editor: SpecificationEditor, qtbot: QtBot) -> None:
    editor.edited.set_text(TEXT.replace("a * b <= 64", "a * b * 4096 <= shared_memory_per_multiprocessor"))
    settle(qtbot, editor)
    before = editor.strip.words.text()
    editor.show_board(board("k20x"))
    qtbot.waitUntil(lambda: "valid of" in editor.strip.words.text() and editor.strip.words.text() != before)


def test_device_settings_are_chosen_with_their_points(editor: SpecificationEditor, qtbot: QtBot) -> None:
    (kind,) = [each for each in editor.findChildren(QComboBox) if each.accessibleName() == "Power limit: varied over"]
    kind.setCurrentIndex(kind.findData("points"))
    kind.activated.emit(kind.currentIndex())
    settle(qtbot, editor)
    given = tomllib.loads(editor.edited.text)["device_settings"]
    assert given["graphics_clock_mhz"] == {"points": 3}
    assert given["power_limit_w"]["points"] >= 2
    kind.setCurrentIndex(kind.findData(""))
    kind.activated.emit(kind.currentIndex())
    settle(qtbot, editor)
    assert "power_limit_w" not in tomllib.loads(editor.edited.text)["device_settings"]


def test_the_objective_turns_round(editor: SpecificationEditor, qtbot: QtBot) -> None:
    (direction,) = [
        each for each in editor.findChildren(QComboBox) if each.accessibleName() == "Direction of the objective"
    ]
    direction.setCurrentIndex(direction.findData("minimise"))
    direction.activated.emit(direction.currentIndex())
    assert tomllib.loads(editor.edited.text)["objective"] == {"minimise": "rate", "front": ["rate", "energy_j"]}
    settle(qtbot, editor)
    editor.edited.undo()
    assert editor.edited.text == TEXT, "it is one step"


def test_a_command_takes_the_place_of_a_kernel_and_back(editor: SpecificationEditor, qtbot: QtBot) -> None:
    (kind,) = [each for each in editor.findChildren(QComboBox) if each.accessibleName() == "What is run"]
    kind.setCurrentIndex(kind.findData("command"))
    kind.activated.emit(kind.currentIndex())
    document = tomllib.loads(editor.edited.text)
    assert "command" in document
    assert "kernel" not in document
    settle(qtbot, editor)
    assert editor.form.command_part.isVisibleTo(editor)
    editor.edited.undo()
    assert editor.edited.text == TEXT


def test_an_operator_is_chosen_and_shaped_in_the_form(editor: SpecificationEditor, qtbot: QtBot) -> None:
    (kind,) = [each for each in editor.findChildren(QComboBox) if each.accessibleName() == "What is run"]
    kind.setCurrentIndex(kind.findData("operator"))
    kind.activated.emit(kind.currentIndex())
    settle(qtbot, editor)
    assert editor.form.operator.isVisibleTo(editor)
    shape = next(
        line for line in editor.form.operator.findChildren(QLineEdit) if line.text().replace(" ", "") == "1,512,512,512"
    )
    shape.setText("8, 256, 128, 64")
    shape.editingFinished.emit()
    assert tomllib.loads(editor.edited.text)["operator"] == {"kind": "mm", "shape": [8, 256, 128, 64]}
    assert "kernel" not in tomllib.loads(editor.edited.text)


def test_save_writes_the_file_and_set_up_hands_it_over(editor: SpecificationEditor, qtbot: QtBot) -> None:
    path = editor.edited.path
    assert path is not None
    editor.edited.set_value(("search", "seed"), 5)
    settle(qtbot, editor)
    with qtbot.waitSignal(editor.run_asked, timeout=20_000) as handed:
        editor.set_up()
    assert handed.args == [path]
    assert load_specification(path).seed == 5
    assert not editor.edited.modified


def test_saved_elsewhere_the_sources_are_still_found(editor: SpecificationEditor, qtbot: QtBot, tmp_path: Path) -> None:
    before = load_specification(tmp_path / "mine.toml")
    there = tmp_path / "deep" / "other.toml"
    editor.save_to(there)
    qtbot.waitUntil(lambda: editor.edited.path == there)
    after = load_specification(there)
    assert after.kernel is not None
    assert before.kernel is not None
    assert after.kernel.sources == before.kernel.sources
    assert (tmp_path / "mine.toml").read_text() == TEXT


def test_closing_asks_and_each_answer_does_what_it_says(
    editor: SpecificationEditor, qtbot: QtBot, tmp_path: Path
) -> None:
    editor.show()
    editor.edited.set_value(("search", "seed"), 8)
    changed = editor.edited.text
    editor.close()
    assert editor.isVisible()
    assert editor.ask_bar.isVisible()
    editor.ask_bar.cancel.click()
    assert editor.isVisible()
    assert editor.edited.text == changed
    editor.close()
    editor.ask_bar.save.click()
    qtbot.waitUntil(lambda: not editor.isVisible())
    assert (tmp_path / "mine.toml").read_text() == changed
    editor.show()
    editor.edited.set_value(("search", "seed"), 9)
    editor.close()
    editor.ask_bar.discard.click()
    assert not editor.isVisible()
    assert (tmp_path / "mine.toml").read_text() == changed


def test_unsaved_changes_survive_a_crash(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATTRIDGE_DATA", str(tmp_path / "data"))
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    first = SpecificationEditor(board())
    qtbot.addWidget(first)
    first.open(path)
    settle(qtbot, first)
    first.edited.set_value(("search", "seed"), 99)
    changed = first.edited.text
    qtbot.waitUntil(lambda: (kept := kept_drafts.kept(path)) is not None and kept.text == changed, timeout=20_000)
    second = SpecificationEditor(board())  # the first one never got to close
    qtbot.addWidget(second)
    second.show()
    second.open(path)
    qtbot.waitUntil(second.ask_bar.isVisible)
    assert "mine.toml" in second.ask_bar.text.text()
    second.ask_bar.save.click()
    assert second.edited.text == changed
    assert path.read_text() == TEXT, "it is restored, not saved"
    with qtbot.waitSignal(second.edited.place_changed):
        second.save()
    qtbot.waitUntil(lambda: kept_drafts.kept(path) is None)
    assert path.read_text() == changed
    for each in (first, second):
        each.edited.open(path.read_text(), path)
        each.shutdown()


def test_a_draft_that_is_offered_stays_until_there_is_an_answer(
    editor: SpecificationEditor, qtbot: QtBot, tmp_path: Path
) -> None:
    other = tmp_path / "other.toml"
    other.write_text(TEXT)
    kept_drafts.keep(Draft("# unsaved\n" + TEXT, other, tmp_path, "other"))
    kept_drafts.keep(Draft("# never saved\n", None, tmp_path, "new"))
    editor.show()
    editor.open(other)
    qtbot.waitUntil(editor.ask_bar.isVisible)
    editor.close()
    assert not editor.isVisible(), "nothing of this window is unsaved"
    editor.shutdown()
    assert kept_drafts.kept(other) is not None
    assert kept_drafts.kept(None) is not None


def test_drafts_are_for_the_user_alone_and_damaged_ones_are_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTRIDGE_DATA", str(tmp_path / "data"))
    kept_drafts.keep(Draft("a = 1", None, tmp_path, "new"))
    found = kept_drafts.kept(None)
    assert found is not None
    assert (found.text, found.folder, found.name) == ("a = 1", tmp_path, "new")
    (file,) = (tmp_path / "data" / "drafts").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    file.write_text('{"text": 3')
    assert kept_drafts.kept(None) is None
    kept_drafts.forget(None)
    assert not file.exists()


@pytest.mark.parametrize("path", sorted((resources() / "examples").glob("*.toml")), ids=lambda path: path.stem)
def test_looking_at_an_example_changes_nothing(
    path: Path, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTRIDGE_DATA", str(tmp_path / "data"))
    made = SpecificationEditor(board())
    qtbot.addWidget(made)
    made.open(path)
    settle(qtbot, made)
    assert made.reading is not None
    assert made.reading.found == ()
    for row in range(len(SECTIONS)):
        made.form.sections.setCurrentRow(row)
    assert made.edited.text == path.read_text(encoding="utf-8")
    assert not made.edited.can_undo
    made.shutdown()


def test_it_fits_a_small_screen(editor: SpecificationEditor) -> None:
    for row in range(len(SECTIONS)):
        editor.form.sections.setCurrentRow(row)
        size = editor.minimumSizeHint()
        assert size.width() <= 1200
        assert size.height() <= 640
