"""Export from the window: the files are really there and read back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.lab import OBJECTIVE, Lab, filled, filled_session, grid_space, plan_for, progress
from pytestqt.qtbot import QtBot

from app.engine.formats.read import read_recording
from app.engine.results.state import SessionState
from app.engine.session import events
from app.views.inspector.answer_bar import ExportButton
from app.views.shared.panel import end_all
from app.views.shared.settings import Settings


@pytest.fixture
def button(lab: Lab, qtbot: QtBot) -> Iterator[ExportButton]:
    made = ExportButton(lab.context, Settings())
    qtbot.addWidget(made)
    made.show()
    yield made
    end_all(made)


def written(button: ExportButton, qtbot: QtBot, kind: str | None = None) -> list[Path]:
    """What a press writes, or an entry of the menu."""
    with qtbot.waitSignal(button.written, timeout=10_000) as signal:
        if kind is None:
            button.click()
        else:
            button.kinds[kind].trigger()
    return list(signal.args[0])


def test_without_a_session_it_says_why(button: ExportButton) -> None:
    assert "no session" in button.why_not
    assert button.toolTip() == button.why_not
    assert not button.isEnabled()


def test_every_kind_is_written_for_the_selected_configuration(
    lab: Lab, button: ExportButton, qtbot: QtBot, tmp_path: Path
) -> None:
    table = filled_session(lab)
    lab.result.select(6)
    button.export_into(tmp_path / "away")
    files = written(button, qtbot)
    assert len(files) == 7, "the receipt, and all but T1: nothing was specified here"
    assert all(path.is_file() and path.parent.parent == tmp_path / "away" for path in files)
    cache = next(path for path in files if path.suffix == ".json" and "cache" in json.loads(path.read_text()))
    assert len(read_recording(cache)) == len(table)
    choice = next(path for path in files if path.name == "gemm.json")
    assert str(table.measurement(6).configuration["tile"]) in choice.read_text()


def test_one_kind_of_the_menu_is_written_and_the_next_press_writes_it_beside_the_first(
    lab: Lab, button: ExportButton, qtbot: QtBot, tmp_path: Path
) -> None:
    filled_session(lab)
    lab.result.select(0)
    button.export_into(tmp_path)
    header, _ = written(button, qtbot, "header")
    first = header.read_text()
    assert "#define tile" in first
    assert "measurement 1, session 1, chosen by hand, rank" in " ".join(first.split())
    assert button.again.text() == f"Export &again: C header, in {tmp_path.name}"
    lab.result.select(20, "fastest")
    second, _ = written(button, qtbot)
    assert second.parent != header.parent
    assert "measurement 21, session 1, chosen for fastest, rank" in " ".join(second.read_text().split())
    assert header.read_text() == first, "nothing is overwritten"


def test_kind_and_folder_are_remembered_over_restarts(
    lab: Lab, button: ExportButton, qtbot: QtBot, tmp_path: Path
) -> None:
    filled_session(lab)
    lab.result.select(0)
    button.export_into(tmp_path)
    written(button, qtbot, "csv")
    again = ExportButton(lab.context, Settings())
    qtbot.addWidget(again)
    assert not again.own.isChecked()
    path, _ = written(again, qtbot)
    assert (path.parent.parent, path.suffix) == (tmp_path, ".csv")
    again.own.trigger()
    assert again.own.isChecked()
    assert again.folder.name == "exports"
    end_all(again)


def test_t1_is_offered_only_of_a_specification(lab: Lab, button: ExportButton, qtbot: QtBot, tmp_path: Path) -> None:
    Settings().export = ("t1", str(tmp_path))
    table = filled_session(lab)
    lab.result.select(0)
    assert not button.kinds["t1"].isEnabled()
    assert "specification" in button.kinds["t1"].toolTip()
    assert len(written(button, qtbot)) == 7, "what was remembered is not possible here: all that is"
    lab.session(table, plan_for(table.space, OBJECTIVE, origin={"kind": "specification"}))
    assert button.kinds["t1"].isEnabled()


def test_while_nothing_is_selected_the_best_so_far_is_written(
    lab: Lab, button: ExportButton, qtbot: QtBot, tmp_path: Path
) -> None:
    table = filled_session(lab)
    assert "Nothing is chosen" in button.why_not
    lab.grow(table, best=9)
    assert button.isEnabled()
    button.export_into(tmp_path)
    choice, _ = written(button, qtbot, "json")
    assert json.loads(choice.read_text())["configuration"] == table.measurement(9).configuration


def test_without_a_folder_it_goes_into_one_of_its_own_in_the_data_folder(
    lab: Lab, button: ExportButton, qtbot: QtBot, own_data_folder: Path
) -> None:
    filled_session(lab)
    lab.result.select(0)
    folders = [written(button, qtbot)[0].parent for _ in range(2)]
    assert [folder.parent for folder in folders] == [own_data_folder / "exports"] * 2
    assert folders[0] != folders[1]


def test_an_export_while_the_session_runs_says_so(
    lab: Lab, button: ExportButton, qtbot: QtBot, own_data_folder: Path
) -> None:
    table = filled(grid_space(), rows=40)
    lab.session(table, plan_for(table.space, OBJECTIVE))
    lab.grow(table, best=9)
    with qtbot.waitSignal(button.written, timeout=10_000) as signal:
        button.kinds["header"].trigger()
    (header, receipt), remarks = signal.args
    assert remarks == ["The session was still running: 40 measured so far."]
    assert remarks[0] in " ".join(header.read_text().split())
    assert json.loads(receipt.read_text())["session_state"] == "running"
    lab.engine.tell(events.SessionChanged(progress(table, SessionState.DONE, 9)))
    header, receipt = written(button, qtbot, "header")
    assert "running" not in header.read_text()
    assert json.loads(receipt.read_text())["session_state"] == "done"


def test_a_failed_configuration_cannot_be_exported(lab: Lab, button: ExportButton) -> None:
    table = filled_session(lab)
    lab.result.select(next(i for i in range(len(table)) if table.measurement(i).error))
    assert "failed (compile)" in button.why_not
    assert not button.isEnabled()


def test_a_folder_that_is_not_writable_is_reported(
    lab: Lab, button: ExportButton, qtbot: QtBot, tmp_path: Path
) -> None:
    filled_session(lab)
    lab.result.select(0)
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    button.export_into(in_the_way)
    with qtbot.waitSignal(button.failed, timeout=10_000) as signal:
        button.click()
    assert str(in_the_way) in signal.args[0]
    assert button.isEnabled()


def test_a_session_right_after_another_offers_none_of_the_older_one(lab: Lab, button: ExportButton) -> None:
    table = filled_session(lab)
    lab.grow(table, best=12)
    assert button.isEnabled()
    empty = filled(grid_space(), rows=0)
    lab.session(empty, plan_for(empty.space, OBJECTIVE))  # the button hears of the new selection first
    assert "Nothing is chosen" in button.why_not
    assert not button.isEnabled()
