"""A new specification: from a kernel, a command or an example; it ends in an editor with what the reader accepts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.base.paths import resources
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.tune.editor_window import SpecificationEditor
from app.views.tune.wizard import NewWindow

KERNELS = sorted((resources() / "kernels").glob("*.cu"))


@pytest.fixture
def editor(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpecificationEditor]:
    monkeypatch.setenv("WATTRIDGE_DATA", str(tmp_path / "data"))
    made = SpecificationEditor(SimulatedGpu(load_twin("a100"), clock=VirtualClock()))
    qtbot.addWidget(made)
    made.ask_new()
    yield made
    made.shutdown()


def wizard(editor: SpecificationEditor) -> NewWindow:
    assert editor.new_window is not None
    return editor.new_window


def created(qtbot: QtBot, editor: SpecificationEditor) -> str:
    """Press Create; the text in the editor, once it was read without a problem and its space built."""
    window = wizard(editor)
    qtbot.waitUntil(window.create_button.isEnabled, timeout=20_000)
    window.create_button.click()
    assert not window.isVisible()
    text = editor.edited.text

    def measured() -> bool:
        return editor.measured is not None and editor.measured.text == text

    qtbot.waitUntil(measured, timeout=20_000)
    assert editor.reading is not None
    assert editor.reading.found == ()
    assert editor.measured is not None
    assert editor.measured.space is not None
    assert editor.measured.space.size > 0
    assert editor.edited.modified, "nothing was saved yet"
    return text


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_every_kernel_of_the_examples_goes_through(path: Path, qtbot: QtBot, editor: SpecificationEditor) -> None:
    window = wizard(editor)
    window.choose_kernel(path)
    assert not window.create_button.isEnabled()
    qtbot.waitUntil(lambda: window.kernel.kernel.count() > 0, timeout=20_000)
    words = window.kernel.words.toPlainText()
    assert "Guessed: " in words
    assert "You fill in: " in words
    text = created(qtbot, editor)
    assert path.name in text
    assert editor.edited.folder == path.parent


def test_a_name_that_is_not_ticked_is_no_parameter(qtbot: QtBot, editor: SpecificationEditor) -> None:
    window = wizard(editor)
    window.choose_kernel(resources() / "kernels" / "gemm.cu")
    table = window.kernel.table
    qtbot.waitUntil(lambda: table.rowCount() > 0, timeout=20_000)
    rows = {table.item(row, 0).text(): row for row in range(table.rowCount())}
    table.item(rows["tile_size_x"], 0).setCheckState(Qt.CheckState.Unchecked)
    table.item(rows["block_size_x"], 1).setText("16, 48")
    created(qtbot, editor)
    assert editor.reading is not None
    spec = editor.reading.spec
    assert spec is not None
    assert "tile_size_x" not in spec.parameters
    assert "tile_size_x" in spec.constants, "the source still needs it"
    assert spec.parameters["block_size_x"] == (16, 48)


def test_a_file_without_a_kernel_says_so(qtbot: QtBot, editor: SpecificationEditor, tmp_path: Path) -> None:
    window = wizard(editor)
    source = tmp_path / "host.cu"
    source.write_text("int main() {}\n")
    window.choose_kernel(source)
    qtbot.waitUntil(lambda: "no __global__ function" in window.kernel.complaint.text(), timeout=20_000)
    assert not window.create_button.isEnabled()


def test_a_command_and_a_sample_of_its_output_make_a_specification(
    qtbot: QtBot, editor: SpecificationEditor, tmp_path: Path
) -> None:
    window = wizard(editor)
    window.ways.setCurrentWidget(window.command)
    command = window.command
    command.folder.setText(str(tmp_path))
    assert not window.create_button.isEnabled()
    command.run.setText("./bench")
    assert not window.create_button.isEnabled(), "it has no field"
    command.run.setText("./bench --size {n}")
    assert "minimise" in command.text.toPlainText()
    command.sample.setPlainText("Result: 42.0 GFLOP/s\n")
    shown = command.text.toPlainText()
    assert created(qtbot, editor) == shown
    assert editor.edited.folder == tmp_path
    assert editor.reading is not None
    spec = editor.reading.spec
    assert spec is not None
    assert spec.command is not None
    assert list(spec.parameters) == ["n"]
    assert list(spec.command.values) == ["result"]
    assert spec.objective is not None
    assert spec.objective.goal.name == "result"


def test_an_example_is_copied_and_its_kernel_still_found(qtbot: QtBot, editor: SpecificationEditor) -> None:
    window = wizard(editor)
    window.ways.setCurrentWidget(window.example)
    created(qtbot, editor)
    assert editor.reading is not None
    spec = editor.reading.spec
    assert spec is not None
    assert spec.kernel is not None
    assert all(source.is_file() for source in spec.kernel.sources)


def test_what_is_unsaved_is_asked_for_first(qtbot: QtBot, editor: SpecificationEditor) -> None:
    editor.show()
    editor.edited.set_text("# mine\n[parameters]\na = [1]\n")
    window = wizard(editor)
    window.ways.setCurrentWidget(window.example)
    window.create_button.click()
    assert editor.edited.text.startswith("# mine")
    assert editor.ask_bar.isVisible()
    editor.ask_bar.discard.click()
    assert not editor.edited.text.startswith("# mine")
