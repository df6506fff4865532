"""`wattridge space`: sizes, what each restriction removes, and one line for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.base.paths import resources
from app.cli import main

DGEMM = str(resources() / "examples" / "dgemm.toml")


def document(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    status = main(["space", *words, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_the_document_has_sizes_and_removals_that_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = document(capsys, DGEMM)
    assert status == 0
    assert found["cartesian"] - sum(found["removed_by"].values()) == found["valid"] > 1000
    assert found["cartesian"] > 10**15
    assert found["seconds"] > 0
    assert set(found["removed_share_by"]) == set(found["removed_by"])
    left = found["cartesian"]
    for restriction, removed in found["removed_by"].items():
        assert found["removed_share_by"][restriction] == pytest.approx(removed / left)
        left -= removed
    assert found["values"]["simd"] == 2
    assert any("compute capability 8.0" in note for note in found["notes"])


def test_the_board_s_limits_and_clocks_count(capsys: pytest.CaptureFixture[str]) -> None:
    without, on_k20x = document(capsys, DGEMM)[1], document(capsys, DGEMM, "--gpu", "simulated:k20x")[1]
    assert "graphics_clock_mhz" not in without["values"]
    assert on_k20x["notes"] == []  # nothing was assumed
    clocks = on_k20x["values"]["graphics_clock_mhz"]
    assert clocks > 1
    assert on_k20x["valid"] % clocks == 0
    assert on_k20x["valid"] // clocks < without["valid"]  # less shared memory for as many threads


def test_the_table_names_every_restriction_with_its_share(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text("restrictions = ['a * b <= 4', 'a > 0']\n[parameters]\na = [1, 2, 4]\nb = 'range(1, 5)'\n")
    assert main(["space", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("7 valid of 12 combinations (")
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]
    assert rows[2] == ["restriction, in the order applied", "removed", "% of those left", "left"]
    assert rows[4:6] == [["a > 0", "0", "0", "12"], ["a * b <= 4", "5", "41.7", "7"]]  # 1 x 1..4, 2 x 1..2, 4 x 1 stay
    assert rows[7] == ["parameter", "values", "first", "last"]
    assert rows[9:] == [["a", "3", "1", "4"], ["b", "4", "1", "4"]]


def test_a_long_restriction_leaves_its_figures_on_the_terminal_and_is_whole_in_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.toml"
    long = " and ".join(f"a + {n} > 0" for n in range(40)) + " and a < 3"
    path.write_text(f"restrictions = ['{long}']\n[parameters]\na = [1, 2, 4]\n")
    assert main(["space", str(path)]) == 0
    assert long in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["space", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= 90
    [shown] = [line for line in lines if line.startswith("a + 0 > 0 and")]
    assert " and a < 3 " in shown
    assert shown.split()[-3:] == ["1", "33.3", "2"]


def test_what_is_wrong_is_one_line_and_status_two(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text("restrictions = ['a > 9']\n[parameters]\na = [1, 2, 4]\n")
    assert main(["space", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.strip().count("\n") == 0
    assert "removes the last" in printed.err
    status, found = document(capsys, str(path))
    assert status == 2
    assert set(found["error"]) == {"what", "where", "remedy"}
