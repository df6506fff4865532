"""The window in which the columns of another tool's table are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.engine.formats.any_table import TableColumns
from app.views.library.table_window import TableWindow

CSV = "block,width,time_ms,energy (J)\n16,1,5.0,2.0\n32,1,4.0,2.5\n64,2,3.0,4.5\n"


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[TableWindow]:
    made = TableWindow()
    qtbot.addWidget(made)
    path = tmp_path / "table.csv"
    path.write_text(CSV)
    made.show()
    made.open(path)
    qtbot.waitUntil(made.keep.isEnabled, timeout=20_000)
    yield made
    made.shutdown()


def test_the_guess_is_shown_with_its_front_and_kept_as_it_is(window: TableWindow) -> None:
    assert "3 rows, 3 configurations; 3 on the front" in window.message.text()
    kept: list[tuple[Path, TableColumns]] = []
    window.accepted_columns.connect(lambda *each: kept.append(each))
    window.keep.click()
    ((path, columns),) = kept
    assert path.name == "table.csv"
    assert columns.parameters == {"block": "block", "width": "width"}
    assert columns.figures == {"time_ms": "time_ms", "energy (J)": "energy (J)"}


def test_roles_and_names_are_changed_and_what_is_impossible_cannot_be_kept(window: TableWindow, qtbot: QtBot) -> None:
    window.role_box(1).setCurrentIndex(0)
    window.columns.item(2, 2).setText("runtime_s")
    qtbot.waitUntil(window.keep.isEnabled, timeout=20_000)
    assert window.chosen.parameters == {"block": "block"}
    assert dict(window.chosen.figures or {})["runtime_s"] == "time_ms"
    window.role_box(0).setCurrentIndex(0)
    assert not window.keep.isEnabled()
    assert "at least one parameter" in window.message.text()


def test_a_table_that_cannot_be_read_is_one_line(window: TableWindow, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("a,a\n1,2\n")
    window.open(path)
    qtbot.waitUntil(lambda: "name every column once" in window.message.text(), timeout=20_000)
    assert not window.keep.isEnabled()
