"""The window in which the columns of another tool's table are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.engine.formats.read import read_recording
from app.engine.formats.remembered_roles import NAME
from app.engine.formats.table_columns import TableColumns
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


def rows(window: TableWindow) -> dict[str, tuple[str, str, str]]:
    """What each column is, its unit, and why."""
    table = window.columns
    return {
        table.item(row, 0).text(): (  # type: ignore[union-attr]
            window.role_box(row).currentText(),
            table.item(row, 2).text(),  # type: ignore[union-attr]
            table.item(row, 3).text(),  # type: ignore[union-attr]
        )
        for row in range(table.rowCount())
    }


def kept(window: TableWindow, qtbot: QtBot) -> TableColumns:
    with qtbot.waitSignal(window.accepted_columns, timeout=20_000) as caught:
        window.keep.click()
    path, columns = caught.args
    assert path.name == "table.csv"
    return columns  # type: ignore[no-any-return]


def test_what_each_column_is_is_shown_with_its_reason_and_kept_as_it_is(window: TableWindow, qtbot: QtBot) -> None:
    assert "3 rows, 3 configurations; 3 on the front" in window.message.text()
    assert rows(window) == {
        "block": ("parameter", "", "a choice by its name"),
        "width": ("parameter", "", "numbers that someone chose"),
        "time_ms": ("time", "s", "a time by its unit"),
        "energy (J)": ("energy", "J", "an energy by its unit"),
    }
    assert kept(window, qtbot).options == {}
    assert not (window._path.parent / NAME).exists(), "nothing was said"


def test_another_role_is_one_choice_and_is_remembered_for_tables_of_that_shape(
    window: TableWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    box = window.role_box(1)
    window.activateWindow()
    box.setFocus()
    box.setCurrentText("not used")
    qtbot.waitUntil(window.keep.isEnabled, timeout=20_000)
    assert rows(window)["width"] == ("not used", "", "as named")
    assert window.role_box(1) is box, "what is chosen with keeps the focus"
    assert kept(window, qtbot).options == {"roles": "width=not-used"}
    assert (tmp_path / NAME).exists()
    other = tmp_path / "other.csv"
    other.write_text(CSV.replace("5.0", "5.5"))
    assert read_recording(other).space().names == ("block",)
    window.open(other)
    qtbot.waitUntil(lambda: window.columns.rowCount() == 4 and window.keep.isEnabled(), timeout=20_000)
    assert rows(window)["width"][0] == "not used"


def test_names_are_changed_and_what_is_impossible_cannot_be_kept(window: TableWindow, qtbot: QtBot) -> None:
    window.columns.item(2, 4).setText("runtime_s")  # type: ignore[union-attr]
    qtbot.waitUntil(window.keep.isEnabled, timeout=20_000)
    assert dict(window.chosen.figures or {})["runtime_s"] == "time_ms"
    for row in (0, 1):
        window.role_box(row).setCurrentText("not used")
    qtbot.waitUntil(lambda: "it is not clear which columns are parameters" in window.message.text(), timeout=20_000)
    assert not window.keep.isEnabled()


def test_a_table_that_cannot_be_read_is_one_line(window: TableWindow, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("a\n1\n")
    window.open(path)
    qtbot.waitUntil(lambda: "name every column once" in window.message.text(), timeout=20_000)
    assert not window.keep.isEnabled()


def test_the_answer_stands_below_the_columns_and_a_doubt_is_one_choice_away(
    window: TableWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "limits.csv"
    path.write_text("cap_w,tok/s,power_w\n200,50.5,180.5\n250,60.5,230.5\n300,61.5,280.5\n")
    window.open(path)
    qtbot.waitUntil(lambda: "cap" in window.message.text() or "power_limit" in window.message.text(), timeout=20_000)
    assert "Best for max:tok/s: power_limit_w 300 (61.5)." in window.message.text()
    topics = tmp_path / "topics.csv"
    topics.write_text("topic,tile,time_ms\na,8,1.5\na,16,1.25\nb,8,14.5\nb,16,19.5\n")
    window.open(topics)
    qtbot.waitUntil(lambda: "not certain: choose what it is above" in window.message.text(), timeout=20_000)
    assert "--roles" not in window.message.text()
    assert "Best for" not in window.message.text(), "what may be different work is not compared"
    window.role_box(0).setCurrentText("parameter")
    qtbot.waitUntil(lambda: "Best for min:time_s" in window.message.text(), timeout=20_000)
    assert "not certain" not in window.message.text()


def test_columns_that_are_joined_in_one_stand_there_too_and_are_given_another_role(
    window: TableWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "runs.csv"
    lines = [f"{c},{m},{b},{b + 1.5 + len(m + c)}\n" for c in ("x", "yy") for m in ("r50", "vitb") for b in (8, 16)]
    path.write_text("mood,model,block,time_ms\n" + "".join(lines))
    window.open(path)
    qtbot.waitUntil(lambda: "4 kernels" in window.message.text(), timeout=20_000)
    assert rows(window)["kernel"][2] == "kernel stands for mood, model: their rows are not compared"
    asked = "mood is read as kernel, but may be parameter: it is not certain: choose what it is above."
    assert asked in window.message.text()
    shown = rows(window)
    assert {shown[name][0] for name in ("mood", "model", "kernel")} == {"kernel"}
    places = list(shown)
    assert not window.role_box(places.index("kernel")).isEnabled(), "it is what the others say"
    window.role_box(places.index("mood")).setCurrentText("parameter")
    qtbot.waitUntil(lambda: "2 kernels" in window.message.text(), timeout=20_000)
    assert "not certain" not in window.message.text()
    assert "kernel stands for model: " in rows(window)["kernel"][2]
    box = window.role_box(list(rows(window)).index("model"))
    box.setFocus()
    box.setCurrentText("parameter")
    qtbot.waitUntil(lambda: "Best for min:time_s: mood x, model r50, block 8" in window.message.text(), timeout=20_000)
    assert window.role_box(list(rows(window)).index("model")) is box, (
        "what is chosen with keeps its place and the focus"
    )
    with qtbot.waitSignal(window.accepted_columns, timeout=20_000) as caught:
        window.keep.click()
    assert caught.args[1].options == {"roles": "mood=parameter,model=parameter"}
    assert read_recording(path).space().names == ("mood", "model", "block")


def test_a_figure_that_was_made_of_several_columns_goes_where_one_of_them_is_not_used(
    window: TableWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "boards.csv"
    path.write_text("block,gpu0_energy_j,gpu1_energy_j\n16,2.0,3.0\n32,2.5,3.5\n64,3.0,4.5\n")
    window.open(path)
    qtbot.waitUntil(lambda: "total gpu_energy_j" in rows(window), timeout=20_000)
    assert rows(window)["gpu1_energy_j"][0] == "energy"
    for heading in ("gpu0_energy_j", "gpu1_energy_j"):
        window.role_box(list(rows(window)).index(heading)).setCurrentText("not used")
        qtbot.waitUntil(lambda h=heading: rows(window)[h][0] == "not used", timeout=20_000)  # type: ignore[misc]
    qtbot.waitUntil(lambda: "total gpu_energy_j" not in rows(window), timeout=20_000)


def test_a_doubt_about_a_figure_that_was_made_of_others_is_one_choice_away(
    window: TableWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "table.csv"
    path.write_text("num_gpus,tokens_per_s,power_per_gpu_w\n1,100,300\n2,180,300\n3,250,300\n4,320,300\n")
    window.open(path)
    qtbot.waitUntil(lambda: "not certain" in rows(window).get("power_w", ("", "", ""))[2], timeout=20_000)
    box = window.role_box(list(rows(window)).index("power_w"))
    assert box.isEnabled()
    box.setCurrentText("power limit")
    qtbot.waitUntil(lambda: rows(window)["power_w"] == ("power limit", "W", "as named"), timeout=20_000)
    columns = kept(window, qtbot)
    assert columns.options["roles"] == "power_w=power-limit"
    assert "power_w=power-limit" in (tmp_path / NAME).read_text(), "it holds for the next one of that shape"
    assert "power_limit_w" in read_recording(path).space().names


def test_an_energy_over_a_time_that_no_board_draws_is_asked_about(
    window: TableWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "table.csv"
    path.write_text("tile,mean_time_ms,energy_J\n16,26.8,1397.5\n32,20.7,1297.8\n64,12.0,2342.0\n")
    window.open(path)
    qtbot.waitUntil(lambda: "is not certain" in window.message.text(), timeout=20_000)
    assert "'energy_J' over 'mean_time_ms' is" in window.message.text()
