"""Export from the window: the files are really there and read back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import OBJECTIVE, Lab, filled, grid_space, plan_for
from pytestqt.qtbot import QtBot

from app.engine.formats.read import read_recording
from app.views.tune.export_panel import ExportPanel


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> Iterator[ExportPanel]:
    made = ExportPanel(lab.context)
    qtbot.addWidget(made)
    made.show()
    yield made
    made.shutdown()


def written(panel: ExportPanel, qtbot: QtBot) -> list[Path]:
    with qtbot.waitSignal(panel.task.done, timeout=10_000) as signal:
        panel.button.click()
    return list(signal.args[0])


def test_without_a_choice_it_says_what_to_do(panel: ExportPanel) -> None:
    assert "select a measurement" in panel.chosen.text()
    assert not panel.button.isEnabled()


def test_every_kind_is_written_for_the_selected_configuration(
    lab: Lab, panel: ExportPanel, qtbot: QtBot, tmp_path: Path
) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    lab.result.select(6)
    panel.folder.setText(str(tmp_path / "away"))
    files = written(panel, qtbot)
    assert len(files) == 6, "all but T1: nothing was specified here"
    assert all(path.is_file() and path.parent == tmp_path / "away" for path in files)
    assert all(path.name in panel.written.text() for path in files)
    cache = next(path for path in files if path.suffix == ".json" and "cache" in json.loads(path.read_text()))
    assert len(read_recording(cache)) == len(table)
    choice = next(path for path in files if path.suffix == ".json" and path != cache)
    assert str(table.measurement(6).configuration["tile"]) in choice.read_text()


def test_only_the_kinds_that_are_ticked(lab: Lab, panel: ExportPanel, qtbot: QtBot, tmp_path: Path) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    lab.result.select(0)
    panel.folder.setText(str(tmp_path))
    for kind, box in panel.kinds.items():
        box.setChecked(kind == "header")
    (header,) = written(panel, qtbot)
    assert "#define tile" in header.read_text()


def test_while_nothing_is_selected_the_best_so_far_is_offered(lab: Lab, panel: ExportPanel) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    lab.grow(table, best=9)
    assert panel.chosen.text().startswith("Best so far (#10)")
    assert panel.button.isEnabled()


def test_without_a_folder_the_session_s_own_in_the_data_folder_is_taken(
    lab: Lab, panel: ExportPanel, qtbot: QtBot, own_data_folder: Path
) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    lab.result.select(0)
    assert {path.parent for path in written(panel, qtbot)} == {own_data_folder / "exports" / "session-1"}


def test_a_failed_configuration_cannot_be_exported(lab: Lab, panel: ExportPanel) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    lab.result.select(next(i for i in range(len(table)) if table.measurement(i).error))
    assert "failed (compile)" in panel.chosen.text()
    assert not panel.button.isEnabled()


def test_a_folder_that_is_not_writable_is_reported(lab: Lab, panel: ExportPanel, qtbot: QtBot, tmp_path: Path) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    lab.result.select(0)
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    panel.folder.setText(str(in_the_way))
    with qtbot.waitSignal(panel.task.failed, timeout=10_000):
        panel.button.click()
    assert str(in_the_way) in panel.written.text()
    assert panel.button.isEnabled()


def test_a_session_right_after_another_offers_none_of_the_older_one(lab: Lab, panel: ExportPanel) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    lab.grow(table, best=12)
    assert "#13" in panel.chosen.text()
    empty = filled(grid_space(), rows=0)
    lab.session(empty, plan_for(empty.space, OBJECTIVE))  # the panel hears of the new selection first
    assert "select a measurement" in panel.chosen.text()
    assert not panel.button.isEnabled()
