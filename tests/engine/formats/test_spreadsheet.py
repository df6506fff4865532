"""No cell of words in a CSV file is a formula to a spreadsheet, and every text comes back as it was."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.paths import resources
from app.base.text import cell_text, text_cell
from app.cli import main
from app.engine.formats.columns import parse_columns
from app.engine.formats.csv_table import read_csv, write_csv
from app.engine.formats.own import About
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import space_of_table

FORMULA = '=HYPERLINK("http://example.org","x")'
RISKY = tuple("=+-@\t\r\n＝＋－＠")
TEXTS = st.text(st.sampled_from("'=+-@\t\r\nab1 ＝") | st.characters(exclude_categories=("Cs",)), max_size=12)


@given(TEXTS)
def test_any_text_is_no_formula_and_comes_back(text: str) -> None:
    cell = text_cell(text)
    assert not cell.startswith(RISKY)
    assert cell_text(cell) == text


@pytest.mark.parametrize("number", ["-5", "+1.5e3", "0", "-inf", "nan", ""])
def test_numbers_are_read_as_they_are(number: str) -> None:
    assert cell_text(number) == number


def test_a_session_whose_every_text_is_a_formula(tmp_path: Path) -> None:
    space = space_of_table(dict.fromkeys([FORMULA, "n"], ()), [("=1+1", -5), ("'=quoted", 7), ("-x", 8)])
    table = ResultTable(space)
    for row in range(space.size):
        table.append(
            Measurement(
                row=row, configuration=space.configuration(row), state=State.OK, values={"@time": -1.5, "time_s": 2.0},
                message="+said", power_source="=meter", source="recorded", cost_s=0.0,
            )
        )  # fmt: skip
    about = About("=board", "@kernel", Objective(Goal("time_s", False)), "recorded", "-4096", {})
    path = write_csv(table, tmp_path / "session.csv", about)
    with path.open(newline="", encoding="utf-8") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    assert "-5" in cells  # a number stays a number
    assert not [cell for cell in cells if cell.startswith(RISKY) and not re.fullmatch(r"-?\d+(\.\d+)?", cell)]
    again = read_csv(path)
    assert (again.device, again.kernel, again.problem_size) == ("=board", "@kernel", "-4096")
    assert [m.configuration for m in again.in_file_order()] == [space.configuration(row) for row in range(space.size)]
    assert {m.message for m in again.in_file_order()} == {"+said"}
    assert {m.values["@time"] for m in again.in_file_order()} == {-1.5}


def test_readings_of_a_board_whose_name_is_a_formula(tmp_path: Path) -> None:
    twin = (resources() / "twins" / "a100.toml").read_text(encoding="utf-8")
    board = tmp_path / "odd.toml"
    board.write_text(re.sub(r'^name = ".*"', 'name = "=1+1"', twin, count=1, flags=re.MULTILINE), encoding="utf-8")
    out = tmp_path / "readings.csv"
    assert main(["monitor", "--gpu", f"simulated:{board}", "--duration", "0.2", "--out", str(out)]) == 0
    with out.open(newline="", encoding="utf-8") as file:
        [header, *rows] = list(csv.reader(file))
    assert rows
    assert {row[header.index("gpu")] for row in rows} == {"'=1+1 (simulated)"}


def test_columns_of_words_are_read_unmarked() -> None:
    columns = parse_columns("clock_mhz,'=name\n100,'=a\n200,-5\n", "here")
    assert dict(columns.cells) == {"clock_mhz": ["100", "200"], "=name": ["=a", "-5"]}
