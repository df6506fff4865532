"""Logs of which a plain reading says what is not so: times without a unit, powers that cannot be, runs side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.base.errors import InputError
from app.engine.metering.recorded_energy import recorded_energy
from app.sensors.recorded.logs.read import Log, is_log, read_log


def read(tmp_path: Path, text: str) -> Log:
    path = tmp_path / "log.csv"
    path.write_text(text)
    assert is_log(path)
    return read_log(path)


def joules(log: Log) -> list[float]:
    return [recorded_energy(board).sources[0].energy_j for board in log.boards]


def notes(log: Log) -> str:
    return " ".join(log.notes)


@pytest.mark.parametrize(("step", "doubt"), [(100, True), (10, True), (1, False), (0.1, False), (5, False)])
@pytest.mark.parametrize("heading", ["time", "timestamp", "elapsed"])
def test_times_without_a_unit_are_said_to_be_seconds_and_asked_about_where_they_may_not_be(
    tmp_path: Path, heading: str, step: float, doubt: bool
) -> None:
    log = read(tmp_path, f"{heading},power_w\n" + "".join(f"{row * step:g},{60 + row % 3}\n" for row in range(40)))
    assert f"'{heading}' names no unit; its numbers are read as s" in notes(log)
    assert ("not certain" in notes(log)) is doubt


@pytest.mark.parametrize("heading", ["time_s", "time (ms)", "timestamp_ms", "elapsed [s]"])
def test_times_with_a_unit_are_not_asked_about(tmp_path: Path, heading: str) -> None:
    log = read(tmp_path, f"{heading},power_w\n" + "".join(f"{row * 100},{60 + row % 3}\n" for row in range(40)))
    assert "names no unit" not in notes(log)


def test_seconds_since_the_epoch_need_no_unit(tmp_path: Path) -> None:
    log = read(
        tmp_path, "time,power_w\n" + "".join(f"{1_760_000_000 + row * 10},{60 + row % 3}\n" for row in range(40))
    )
    assert "names no unit" not in notes(log)


def test_a_power_that_no_machine_draws_is_left_out(tmp_path: Path) -> None:
    cells = ["7059746777472.144" if row == 20 else f"{60 + row % 3}" for row in range(40)]
    log = read(tmp_path, "time_s,power_w\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate(cells)))
    assert joules(log)[0] < 63 * 39
    assert "1 reading of power, 1 s average cannot be and is left out" in notes(log).lower()


def test_rows_with_a_duration_of_nothing_are_no_log(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = (f"2025-10-24T03:08:{row:02d},{2**row},{18.5 + row % 3},0.000,7.1e12\n" for row in range(20))
    path.write_text("timestamp,n,energy_J,time_s,power_avg_W\n" + "".join(rows))
    assert not is_log(path)


def of_whole_seconds(boards: int, other_w: float, seconds: int = 40) -> str:
    return "timestamp,power.draw [W]\n" + "".join(
        f"2026/04/19 17:05:{second:02d},{100 + second % 7 + (other_w if board else 0.0):.2f} W\n"
        for second in range(seconds)
        for board in range(boards)
    )


def test_readings_of_each_second_that_differ_by_their_place_are_of_several_boards(tmp_path: Path) -> None:
    log = read(tmp_path, of_whole_seconds(2, 150.0))
    assert [len(board.time_ns) for board in log.boards] == [40, 40]
    assert joules(log)[1] - joules(log)[0] == pytest.approx(150 * 39)
    assert "2 readings come together each time" in notes(log)


def test_readings_of_each_second_that_are_alike_are_of_one_board_and_asked_about(tmp_path: Path) -> None:
    log = read(tmp_path, of_whole_seconds(2, 0.5))
    (board,) = log.boards
    assert len(board.time_ns) == 80
    assert "is not certain" in notes(log)
    assert "2 boards" in notes(log)
    assert "not certain" not in notes(read(tmp_path, of_whole_seconds(2, 0.5).replace("05:07", "05:08")))


def test_the_same_figure_of_another_run_is_named_where_it_is_left_out(tmp_path: Path) -> None:
    text = "time_s,run-base - gpu.0.powerWatts,run-tuned - gpu.0.powerWatts\n"
    log = read(tmp_path, text + "".join(f"{row},{60 + row % 3},{90 + row % 3}\n" for row in range(40)))
    assert joules(log) == [pytest.approx(61 * 39, rel=0.01)]
    assert "'run-tuned - gpu.0.powerWatts' is left out: 'run-base - gpu.0.powerWatts' is of the same board" in notes(
        log
    )


def test_a_counter_that_starts_again_is_said_to(tmp_path: Path) -> None:
    rows = "".join(f"{row},{61 * (row if row < 20 else row - 20):.1f}\n" for row in range(40))
    log = read(tmp_path, "time_s,energy_j\n" + rows)
    assert "the counter of energy starts again 1 time" in notes(log)


def test_no_reading_at_all_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("time_s,power_w\n" + "".join(f"{row},7.1e12\n" for row in range(40)))
    with pytest.raises(InputError, match="no energy follows"):
        read_log(path)
