"""Logs that people's own loggers write: without headings, without the names of boards, with units that change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.base.errors import InputError
from app.engine.metering.recorded_energy import recorded_energy
from app.sensors.recorded.logs.read import Log, is_log, read_log

STAMPS = [f"2025-01-01 10:00:{second:02d}" for second in range(40)]


def read(tmp_path: Path, text: str, name: str = "log.csv") -> Log:
    path = tmp_path / name
    path.write_text(text)
    assert is_log(path)
    return read_log(path)


def joules(log: Log) -> dict[str, float]:
    return {board.info.name: recorded_energy(board).energies[0].joules for board in log.boards}


@pytest.mark.parametrize("heading", ["timestamp,power\n", ""])
def test_a_unit_that_changes_from_row_to_row_holds_for_its_row(tmp_path: Path, heading: str) -> None:
    cells = ["500 mW"] * 20 + ["2.5 W"] * 20
    log = read(tmp_path, heading + "".join(f"{stamp}, {cell}\n" for stamp, cell in zip(STAMPS, cells, strict=True)))
    (board,) = log.boards
    assert board.values[:, 0].tolist() == [0.5] * 20 + [2.5] * 20


def test_cells_with_units_below_remarks_need_no_headings(tmp_path: Path) -> None:
    lines = [f"{5.2 + 15.0 * row:.5f} ms\t{164 - row % 3}.50000 W\t68 C\t0\n" for row in range(40)]
    log = read(tmp_path, "#Size of matrices: 19456\n" + "".join(lines), "power.log")
    (board,) = log.boards
    assert board.time_ns[-1] == 15_000_000 * 39
    assert board.by_name["power_average_w"][:3].tolist() == [164.5, 163.5, 162.5]
    assert board.by_name["temperature_c"].tolist() == [68.0] * 40
    assert not log.tool
