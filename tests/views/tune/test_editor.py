"""The editor: its text, and what stands beside it; nothing that was typed is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.base.paths import resources
from app.engine.session.load import load_specification
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.tune import editor_window as window
from app.views.tune.editor_window import Draft, SpecificationEditor

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


def type_over(editor: SpecificationEditor, old: str, new: str) -> None:
    """Select what stands in the text and type something else."""
    cursor = editor.text.textCursor()
    cursor.setPosition(editor.edited.text.index(old))
    cursor.movePosition(QTextCursor.MoveOperation.Right, QTextCursor.MoveMode.KeepAnchor, len(old))
    editor.text.setTextCursor(cursor)
    QTest.keyClicks(editor.text, new)


def seed_of(editor: SpecificationEditor) -> int:
    return int(editor.edited.text.rpartition("seed = ")[2].split()[0])


def put_cursor(editor: SpecificationEditor, at: int) -> None:
    cursor = editor.text.textCursor()
    cursor.setPosition(at)
    editor.text.setTextCursor(cursor)


def problems(editor: SpecificationEditor) -> list[str]:
    """What is listed beside the text."""
    listed = editor.beside.problems
    return [listed.item(row).text() for row in range(listed.count())]


def test_the_size_of_the_space_is_that_of_the_file(editor: SpecificationEditor, qtbot: QtBot) -> None:
    assert "valid of 256 combinations" in editor.beside.words.text()
    type_over(editor, "1, 2, 4, 8", "1, 2")
    settle(qtbot, editor)
    assert "128 combinations" in editor.beside.words.text()


def test_what_each_restriction_leaves_stands_beside_the_text(editor: SpecificationEditor) -> None:
    lines = editor.beside.picture.lines
    assert [line[0] for line in lines] == ["all combinations", "a * b <= 64"]
    assert lines[0][1] > lines[1][1] > 0


def test_what_is_typed_is_the_text_and_is_undone(editor: SpecificationEditor, qtbot: QtBot) -> None:
    type_over(editor, "seed = 3", "seed = 77")
    typed = TEXT.replace("seed = 3", "seed = 77")
    assert editor.edited.text == typed
    assert editor.edited.modified
    settle(qtbot, editor)
    assert editor.reading is not None
    assert editor.reading.spec is not None
    assert editor.reading.spec.seed == 77
    while editor.undo.isEnabled():
        editor.undo.click()
    assert editor.edited.text == TEXT
    assert not editor.edited.modified
    while editor.redo.isEnabled():
        editor.redo.click()
    assert editor.edited.text == typed


def test_ctrl_z_takes_the_newest_change_back_wherever_the_focus_is(editor: SpecificationEditor, qtbot: QtBot) -> None:
    with qtbot.waitActive(editor):
        editor.show()
        editor.activateWindow()
    for focused in (editor.text, editor.new):
        type_over(editor, "seed = 3", "s")
        focused.setFocus()
        QTest.keyClick(focused, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
        qtbot.waitUntil(lambda: editor.edited.text == TEXT)


@pytest.mark.parametrize("odd", ["\u00a0", "\u2028", "\u2029", "\ufdd0", "\U0001f600"])
def test_odd_characters_are_kept(editor: SpecificationEditor, tmp_path: Path, qtbot: QtBot, odd: str) -> None:
    """Qt has other characters for some of these: a file that is only looked at keeps its own."""
    path = tmp_path / "odd.toml"
    text = f"# {odd}\n{TEXT}"
    path.write_text(text, encoding="utf-8")
    editor.open(path)
    qtbot.waitUntil(lambda: editor.edited.path == path)
    settle(qtbot, editor)
    assert editor.edited.text == text
    assert not editor.edited.modified
    editor.edited.set_text(text.replace("seed = 3", "seed = 4"))
    assert editor.edited.text.endswith(TEXT.replace("seed = 3", "seed = 4"))


def test_each_problem_stands_beside_the_text_and_in_its_margin(editor: SpecificationEditor, qtbot: QtBot) -> None:
    wrong = (
        ("a * b <=", "a * c <=", "unknown name 'c'"),
        ("seed = 3", 'seed = "x"', "a whole number from 0 is needed"),
    )
    text = TEXT
    for before, after, _ in wrong:
        text = text.replace(before, after)
    editor.edited.set_text(text)
    settle(qtbot, editor)
    lines = text.splitlines()
    for (_, after, what), problem in zip(wrong, problems(editor), strict=True):
        line = next(number for number, line in enumerate(lines, start=1) if after in line)
        assert problem.startswith(f"Line {line}: ")
        assert what in problem
        assert what in editor.text.problems[line]
    assert editor.beside.count.text() == "2 problems"
    assert not editor.run.isEnabled()
    second = editor.beside.problems.item(1)
    editor.beside.problems.itemActivated.emit(second)
    assert lines[editor.text.textCursor().blockNumber()] == 'seed = "x"'
    editor.edited.undo()
    settle(qtbot, editor)
    assert not editor.text.problems
    assert problems(editor) == []
    assert editor.run.isEnabled()


def test_a_wrong_key_is_named_at_its_own_line(editor: SpecificationEditor, qtbot: QtBot) -> None:
    text = TEXT.replace("seed = 3", "sede = 3")
    editor.edited.set_text(text)
    settle(qtbot, editor)
    (said,) = problems(editor)
    assert said.startswith(f"Line {text.splitlines().index('sede = 3') + 1}: ")
    assert "unknown key 'sede'" in said


def test_a_wrong_argument_is_named(editor: SpecificationEditor, qtbot: QtBot) -> None:
    editor.edited.set_text(TEXT.replace("float32", "floaty"))
    settle(qtbot, editor)
    (said,) = problems(editor)
    assert "kernel.arguments[0].type: 'type' is 'floaty'" in said


def test_a_space_that_is_empty_says_which_restriction_removed_the_last(
    editor: SpecificationEditor, qtbot: QtBot
) -> None:
    editor.edited.set_text(TEXT.replace("]\n\n[kernel]", '    "a > 100",\n]\n\n[kernel]'))
    settle(qtbot, editor)
    assert "no configuration is valid" in editor.beside.words.text()
    (said,) = problems(editor)
    assert "removes the last" in said
    assert [TEXT.splitlines()[line - 2] for line in editor.text.problems] == ['    "a * b <= 64", # registers']


def test_text_that_is_no_toml_is_kept(editor: SpecificationEditor, qtbot: QtBot) -> None:
    broken = TEXT.replace('name = "mine"', 'name = "mine')
    editor.edited.set_text(broken)
    settle(qtbot, editor)
    (said,) = problems(editor)
    assert said.startswith("Line 7: not TOML")
    assert list(editor.text.problems) == [7]
    assert editor.text.toPlainText() == broken
    assert "No size" in editor.beside.words.text()


def test_help_is_for_the_key_at_the_cursor(editor: SpecificationEditor) -> None:
    for at, key, words in (
        ("shape =", "kernel.arguments.shape", "expressions"),
        ("problem_size", "kernel.problem_size", "x, y and z"),
        ("points = 3", "device_settings.graphics_clock_mhz", "supported"),
        ("maximise", "objective.maximise", "large"),
    ):
        put_cursor(editor, TEXT.index(at) + 2)
        assert editor.beside.key.text() == key
        assert words in editor.beside.help.text()


def test_help_follows_what_is_typed(editor: SpecificationEditor) -> None:
    put_cursor(editor, TEXT.index("[search]"))
    QTest.keyClicks(editor.text, "maximise")
    assert editor.beside.key.text() == "objective.maximise"


def test_keys_are_completed_as_they_are_typed(editor: SpecificationEditor, qtbot: QtBot) -> None:
    with qtbot.waitActive(editor):
        editor.show()
        editor.activateWindow()
    popup = editor.text.offered
    editor.text.moveCursor(QTextCursor.MoveOperation.End)
    QTest.keyClicks(editor.text, "max_ev")
    assert popup.isVisible()
    QTest.keyClick(popup, Qt.Key.Key_Return)
    assert editor.edited.text == TEXT + "max_evaluations = "
    QTest.keyClicks(editor.text, "5 # ker")
    assert not popup.isVisible()
    QTest.keyClick(editor.text, Qt.Key.Key_Return)
    QTest.keyClicks(editor.text, "[lim")
    QTest.keyClick(popup, Qt.Key.Key_Tab)
    assert editor.edited.text == TEXT + "max_evaluations = 5 # ker\n[limits]"
    QTest.keyClick(editor.text, Qt.Key.Key_Return)
    QTest.keyClicks(editor.text, "pow")
    assert not popup.isVisible(), "a limit may be of any figure"


def test_ctrl_space_lists_the_keys_of_the_table(editor: SpecificationEditor, qtbot: QtBot) -> None:
    with qtbot.waitActive(editor):
        editor.show()
        editor.activateWindow()
    editor.text.moveCursor(QTextCursor.MoveOperation.End)
    QTest.keyClick(editor.text, Qt.Key.Key_Space, Qt.KeyboardModifier.ControlModifier)
    popup = editor.text.offered
    assert popup.isVisible()
    model = editor.text.completer.completionModel()
    offered = [model.index(row, 0).data() for row in range(model.rowCount())]
    assert {"strategy = ", "max_evaluations = ", "patience = "} <= set(offered)
    QTest.keyClick(popup, Qt.Key.Key_Escape)
    assert not popup.isVisible()
    assert editor.edited.text == TEXT


def test_the_limits_are_those_of_the_board_that_is_shown(editor: SpecificationEditor, qtbot: QtBot) -> None:
    editor.edited.set_text(TEXT.replace("a * b <= 64", "a * b * 4096 <= shared_memory_per_multiprocessor"))
    settle(qtbot, editor)
    before = editor.beside.words.text()
    editor.show_board(board("k20x"))
    qtbot.waitUntil(lambda: "valid of" in editor.beside.words.text() and editor.beside.words.text() != before)


def test_save_writes_the_file_and_set_up_hands_it_over(editor: SpecificationEditor, qtbot: QtBot) -> None:
    path = editor.edited.path
    assert path is not None
    editor.edited.set_text(editor.edited.text.replace(f"seed = {seed_of(editor)}", "seed = 5"))
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
    editor.edited.set_text(editor.edited.text.replace(f"seed = {seed_of(editor)}", "seed = 8"))
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
    editor.edited.set_text(editor.edited.text.replace(f"seed = {seed_of(editor)}", "seed = 9"))
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
    first.edited.set_text(first.edited.text.replace(f"seed = {seed_of(first)}", "seed = 99"))
    changed = first.edited.text
    qtbot.waitUntil(lambda: (kept := window.kept(path)) is not None and kept.text == changed, timeout=20_000)
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
    qtbot.waitUntil(lambda: window.kept(path) is None)
    assert path.read_text() == changed
    for each in (first, second):
        each.edited.open(path.read_text(), path)
        each.shutdown()


def test_a_draft_that_is_offered_stays_until_there_is_an_answer(
    editor: SpecificationEditor, qtbot: QtBot, tmp_path: Path
) -> None:
    other = tmp_path / "other.toml"
    other.write_text(TEXT)
    window.keep(Draft("# unsaved\n" + TEXT, other, tmp_path, "other"))
    window.keep(Draft("# never saved\n", None, tmp_path, "new"))
    editor.show()
    editor.open(other)
    qtbot.waitUntil(editor.ask_bar.isVisible)
    editor.close()
    assert not editor.isVisible(), "nothing of this window is unsaved"
    editor.shutdown()
    assert window.kept(other) is not None
    assert window.kept(None) is not None


def test_drafts_are_for_the_user_alone_and_damaged_ones_are_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTRIDGE_DATA", str(tmp_path / "data"))
    window.keep(Draft("a = 1", None, tmp_path, "new"))
    found = window.kept(None)
    assert found is not None
    assert (found.text, found.folder, found.name) == ("a = 1", tmp_path, "new")
    (file,) = (tmp_path / "data" / "drafts").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    file.write_text('{"text": 3')
    assert window.kept(None) is None
    window.forget(None)
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
    assert made.edited.text == path.read_text(encoding="utf-8")
    assert not made.edited.modified
    assert not made.undo.isEnabled()
    made.shutdown()


def test_it_fits_a_small_screen(editor: SpecificationEditor) -> None:
    size = editor.minimumSizeHint()
    assert size.width() <= 1200
    assert size.height() <= 640


def test_a_long_path_is_cut_and_does_not_widen_the_window(
    qtbot: QtBot, editor: SpecificationEditor, tmp_path: Path
) -> None:
    before = editor.minimumSizeHint().width()
    path = tmp_path / ("long-" * 40 + ".toml")
    path.write_text(TEXT)
    editor.open(path)
    qtbot.waitUntil(lambda: editor.edited.path == path)
    settle(qtbot, editor)
    assert editor.minimumSizeHint().width() == before <= 900
    assert str(path) in editor.where.toolTip()
