"""What the commands do, from Python: results with rows, a table and pictures; one line that changes in notebooks."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

import app
from app import InputError, PermissionRefused
from app.scripting.calls import LogAnalysis, SessionAnalysis
from app.scripting.shown import Shown
from tests.fixtures.fake_board import FakeBoard


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The recorded session of a real H200 that comes along."""
    return app.open_session("h200-sgemm-session")


def is_picture(svg: str | None) -> bool:
    root = ElementTree.fromstring(svg or "<nothing/>")
    return root.tag == "{http://www.w3.org/2000/svg}svg" and len(list(root.iter())) > 20


def test_boards_are_a_sequence_with_a_table() -> None:
    boards = app.boards()
    assert len(boards) == len(boards.rows()) > 5
    assert {row["source"] for row in boards.rows()} == {"simulated"}
    a100 = next(row for row in boards.rows() if "A100" in row["name"])
    assert (a100["least_graphics_clock_mhz"], a100["largest_graphics_clock_mhz"]) == (210, 1410)
    assert "(simulated)" in repr(boards)
    assert boards[0].info.name in repr(boards)


def test_a_fit_of_a_board_says_where_it_is_from_and_draws_itself() -> None:
    model = app.fit(gpu="simulated:a100", points=8, quiet=True)
    assert model.clocks is not None
    assert model.ridge_mhz == model.clocks.ridge_mhz
    assert len(model.rows()) == len(model.clocks.clock_mhz)
    assert "simulated" in repr(model)
    assert is_picture(model._repr_svg_())
    assert "simulated" in model._repr_html_()


def test_a_fit_of_a_file_takes_the_commands_columns(tmp_path: Path) -> None:
    lines = ["f,p", *(f"{clock},{100 + 0.1 * max(clock, 900) ** 1.2}" for clock in range(400, 1500, 100))]
    (tmp_path / "sweep.csv").write_text("\n".join(lines), encoding="utf-8")
    model = app.fit(tmp_path / "sweep.csv", clock="f", power="p")
    assert [row["clock_mhz"] for row in model.rows()] == list(range(400, 1500, 100))
    with pytest.raises(InputError, match="'colour' is not known"):
        app.fit(tmp_path / "sweep.csv", colour="red")


@pytest.mark.parametrize("arguments", [{}, {"source": "x.csv", "gpu": "simulated:a100"}])
def test_a_fit_needs_one_source(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="one source is needed"):
        app.fit(**arguments)


def test_rooflines_have_a_row_for_each_board_and_precision_and_published_ones_no_picture() -> None:
    rooflines = app.roofline()
    recorded = [row for row in rooflines.rows() if row["gpu"] == "NVIDIA H200" and row["source"] == "recorded"]
    assert {row["precision"] for row in recorded} == {"fp32", "fp64", "fp16_tensor", "bf16_tensor"}
    assert any(row["source"] == "published" for row in rooflines.rows())
    measured = app.roofline(gpu="simulated:v100", precisions=["fp32"], quiet=True)
    assert [row["source"] for row in measured.rows()] == ["simulated"]
    assert len(list(measured.pictures())) == 1
    assert is_picture(measured._repr_svg_())


def test_a_session_is_opened_analysed_and_exported_by_number_file_or_result(session: Any, tmp_path: Path) -> None:
    found = app.analyse(session)
    assert isinstance(found, SessionAnalysis)
    assert found.rows()[0]["rule"] == "fastest"
    assert found.analysis.table.measurement(found.analysis.best or 0).values == pytest.approx(session.best_values)
    assert is_picture(found._repr_svg_())
    assert "recorded" in repr(found)
    written = app.export(session, tmp_path / "out", kinds=["json", "script"])
    assert [row["path"] for row in written.rows()] == [str(path) for path in written.files]
    assert all(row["byte"] > 0 for row in written.rows())
    with pytest.raises(app.WattridgeError, match="replace"):
        app.export(session, tmp_path / "out", kinds=["json"])
    app.export(session, tmp_path / "out", kinds=["json"], replace=True)


def test_a_tuned_function_is_found_again_by_its_number() -> None:
    tuned = app.tune(lambda n: n, {"n": [1, 2, 3]}, minimise="time_s", gpu="host", quiet=True)
    again = app.open_session(tuned.session)
    assert again.rows() == tuned.rows()
    assert (again.best, again.session) == (tuned.best, tuned.session)


def test_a_log_gives_energy_by_every_channel(tmp_path: Path) -> None:
    lines = ["timestamp, power.draw [W]", *(f"2026/01/01 00:00:{s:02d}.000, 100.00 W" for s in range(30))]
    (tmp_path / "power.csv").write_text("\n".join(lines), encoding="utf-8")
    log = app.analyse(tmp_path / "power.csv", span_s=(10, 20))
    assert isinstance(log, LogAnalysis)
    assert log.rows()[0]["energy_j"] == pytest.approx(1000)
    assert "1000 J" in repr(log)
    with pytest.raises(InputError, match="no span of time"):
        app.analyse(tmp_path / "power.csv", span_s=(3, 2))


def test_a_real_boards_clocks_are_not_a_scripts_to_set() -> None:
    board = FakeBoard(source="nvml")
    with pytest.raises(PermissionRefused):
        app.fit(gpu=board, quiet=True)
    assert not board.settings_made


def test_a_table_is_a_data_frame_where_pandas_is_and_rows_elsewhere(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)  # it is not installed
    assert session.table() == session.rows()
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda rows: ("frame", rows)))
    assert session.table() == ("frame", session.rows())


def test_the_style_of_a_picture_concerns_nothing_beside_it(session: Any) -> None:
    style = "".join(re.findall(r"<style>(.*?)</style>", session._repr_html_(), re.DOTALL))
    selectors = [part.strip() for rule in re.findall(r"([^{}]+)\{", style) for part in rule.split(",")]
    assert len(selectors) > 10
    assert all(selector.startswith(".wattridge") for selector in selectors)


# --- in a notebook ----------------------------------------------------------------------------------------------------


class Cell(io.StringIO):
    """Standard error as ipykernel has it."""

    def isatty(self) -> bool:
        return False


Cell.__module__ = "ipykernel.iostream"


def test_in_a_notebook_progress_is_one_line_that_changes_and_the_front_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    cell, shown = Cell(), []
    handle = SimpleNamespace(update=lambda data, raw: shown.append(data["text/html"]))

    def display(data: dict[str, str], **_: Any) -> SimpleNamespace:
        shown.append(data["text/html"])
        return handle

    ipython = ModuleType("IPython.display")
    ipython.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", ipython)
    monkeypatch.setattr(sys, "stderr", cell)
    monkeypatch.setattr("app.scripting.session_progress._REDRAWN_S", 0.0)
    result = app.tune(
        lambda n: sum(range(n)),
        {"n": [9, 99, 9999]},
        metrics={"work": "n"},
        maximise="work",
        front=["time_s", "work"],
        gpu="host",
    )
    lines = cell.getvalue().splitlines()
    assert any("\r" in line for line in cell.getvalue().split("\n"))
    assert "3/3" in lines[-1]
    assert len(shown) >= 2
    assert shown[-1] == next(result.pictures())
    assert isinstance(result, Shown)
