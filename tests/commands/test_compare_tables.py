"""`compare` of tables that name their kernel: the same kernel meets its like, and different work is kept apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cli import main

ROWS = {  # (board, kernel) -> clock, s, J
    ("A100", "gemm"): ((900, 1.0, 100.0), (1200, 0.8, 110.0)),
    ("A100", "copy"): ((900, 2.0, 80.0), (1200, 1.9, 95.0)),
    ("H100", "gemm"): ((900, 0.6, 90.0), (1200, 0.5, 99.0)),
    ("H100", "copy"): ((900, 1.5, 70.0), (1200, 1.4, 88.0)),
}


def table(tmp_path: Path, board: str, *kernels: str) -> str:
    path = tmp_path / f"{board}-{'-'.join(kernels)}.csv"
    rows = [f"{board},{kernel},{','.join(map(str, row))}" for kernel in kernels for row in ROWS[board, kernel]]
    path.write_text("\n".join(["gpu,kernel,clock_mhz,time_s,energy_j", *rows]))
    return str(path)


def compared(capsys: pytest.CaptureFixture[str], *sources: str) -> dict:  # type: ignore[type-arg]
    capsys.readouterr()
    assert main(["compare", *sources, "--json"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_tables_of_one_kernel_are_compared_under_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = compared(capsys, table(tmp_path, "A100", "gemm"), table(tmp_path, "H100", "gemm"))
    assert found["kernels_by_boards"]["kernels"] == ["gemm"]
    assert found["kernels_by_boards"]["boards"] == ["A100", "H100"]
    assert found["carried"], "the clocks of one were measured on the other too"


def test_different_kernels_of_a_table_are_different_sessions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compared(capsys, table(tmp_path, "A100", "gemm", "copy"), table(tmp_path, "H100", "gemm", "copy"))
    assert [(side["gpu"], side["kernel"], side["measured"]) for side in found["sides"]] == [(*key, 2) for key in ROWS]
    for side in found["sides"]:
        rows = ROWS[side["gpu"], side["kernel"]]
        least = min(rows, key=lambda row: row[2])
        assert side["frugal"]["configuration"]["graphics_clock_mhz"] == least[0]
        assert side["fastest"]["configuration"]["graphics_clock_mhz"] == min(rows, key=lambda row: row[1])[0]
    assert set(found["kernels_by_boards"]["kernels"]) == {"gemm", "copy"}
    for carried in found["carried"]:
        assert carried["origin"].rpartition(", ")[2] == carried["on"].rpartition(", ")[2]


def test_tables_that_name_no_kernel_are_compared_as_if_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for board in ("A100", "H100"):
        files.append(tmp_path / f"sweep_{board}.csv")
        rows = [f"{board},{','.join(map(str, row))}" for row in ROWS[board, "gemm"]]
        files[-1].write_text("\n".join(["gpu,clock_mhz,time_s,energy_j", *rows]))
    found = compared(capsys, *map(str, files))
    assert [side["kernel"] for side in found["sides"]] == ["", ""]
    assert found["kernels_by_boards"]["kernels"] == ["not named"]
    assert found["kernels_by_boards"]["boards"] == ["A100", "H100"]
    assert found["carried"], "the clocks of one were measured on the other too"
