"""Logs with several powers in a row or several boards in turns, and numbers and units as other tools write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from app.engine.metering.recorded_energy import recorded_energy
from app.sensors.recorded.logs.read import Log, is_log, read_log

SECONDS = 39


def read(tmp_path: Path, text: str) -> Log:
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    assert is_log(path)
    return read_log(path)


def of(tmp_path: Path, headings: Sequence[str], watts: Sequence[float]) -> Log:
    """A log of columns side by side, each of which draws so much in the mean."""
    rows = [",".join((str(row), *(f"{mean + row % 3 - 1:g}" for mean in watts))) for row in range(SECONDS + 1)]
    return read(tmp_path, "\n".join((",".join(("time_s", *headings)), *rows, "")))


def watts(log: Log) -> list[float]:
    return [recorded_energy(board).sources[0].energy_j / SECONDS for board in log.boards]


def notes(log: Log) -> str:
    return " ".join(log.notes)


def near(*means: float) -> list[object]:
    return [pytest.approx(mean, rel=0.01) for mean in means]


@pytest.mark.parametrize(
    ("headings", "names"),
    [
        (["power_0", "power_1"], ["GPU 0", "GPU 1"]),
        (["power[0]", "power[1]"], ["GPU 0", "GPU 1"]),
        (["Power [W] 0", "Power [W] 1"], ["GPU 0", "GPU 1"]),
        (["power_w", "power_w.1"], ["GPU 0", "GPU 1"]),  # of pandas
        (["npu0_power_w", "npu1_power_w"], ["GPU 0", "GPU 1"]),
        (["0_power", "1_power"], ["GPU 0", "GPU 1"]),
        (["gpu_a_power_w", "gpu_b_power_w"], ["a", "b"]),
        (["A100_power_w", "H100_power_w"], ["a100", "h100"]),
        (["outlet_1_power_w", "outlet_2_power_w"], ["outlet 1", "outlet 2"]),
        (["psu1_power_w", "psu2_power_w"], ["psu1", "psu2"]),
        (["L1_power_W", "L2_power_W"], ["l1", "l2"]),
        (["n1_gpu0_power_w", "n2_gpu0_power_w"], ["n1", "n2"]),
    ],
)
def test_powers_side_by_side_are_each_of_a_board(tmp_path: Path, headings: list[str], names: list[str]) -> None:
    log = of(tmp_path, headings, [60, 90])
    assert watts(log) == near(60, 90)
    assert [board.info.name for board in log.boards] == names


def test_the_unit_before_a_number_counts(tmp_path: Path) -> None:
    log = of(tmp_path, ["power_mw_0", "power_mw_1"], [6000, 9000])
    assert watts(log) == near(6, 9)


def test_that_powers_are_read_each_by_itself_is_said(tmp_path: Path) -> None:
    assert "'L1_power_W', 'L2_power_W' stand side by side" in notes(
        of(tmp_path, ["L1_power_W", "L2_power_W"], [60, 90])
    )


@pytest.mark.parametrize(
    "headings", [["fan_power_w", "pump_power_w"], ["power_5s_w", "power_30s_w"], ["power_p50_w", "power_p95_w"]]
)
def test_powers_that_differ_in_more_are_not_told_apart(tmp_path: Path, headings: list[str]) -> None:
    log = of(tmp_path, headings, [60, 90])
    assert watts(log) == near(60)
    assert f"'{headings[1]}' is left out: '{headings[0]}' is of the same board" in notes(log)


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (["PSU1_Input_Power", "PSU2_Input_Power"], "Total_Power"),
        (["a_act_power", "b_act_power", "c_act_power"], "total_act_power"),
        (["ch1_power_w"], "sum_power_w"),
        (["dynamic_power_w", "static_power_w"], "total_power_w"),
        (["fan_power_w"], "system_power_w"),
        (["hbm_power_w"], "package_power_w"),
        (["node_power_w"], "cluster_power_w"),
        (["power_w_per_gpu"], "power_w_total"),
        (["GPU Chip Power Draw [W]"], "TBP (W)"),
        (["GPU only Power Draw [W]"], "Total Board Power [W]"),
        (["power_smoothed_w"], "power_raw_w"),
    ],
)
def test_the_whole_is_read_and_not_its_parts(tmp_path: Path, parts: list[str], whole: str) -> None:
    log = of(tmp_path, [*parts, whole], [*[20, 30, 40][: len(parts)], 90])
    assert watts(log) == near(90)
    assert f"the power is read of '{whole}'; left out: '{parts[0]}'" in notes(log)


def test_of_boards_with_numbers_each_is_read_and_not_their_total(tmp_path: Path) -> None:
    log = of(tmp_path, ["gpu0_power_w", "gpu1_power_w", "total_power_w"], [60, 90, 150])
    assert watts(log) == near(60, 90)
    assert "left out: 'total_power_w'" in notes(log)


def test_what_is_of_all_boards_is_of_none_of_them(tmp_path: Path) -> None:
    text = "time_s,energy_j,gpu0_power_w,gpu1_power_w\n"
    log = read(tmp_path, text + "".join(f"{row},{150 * row},{60 + row % 3},{90 + row % 3}\n" for row in range(40)))
    assert watts(log) == near(61, 91)


@pytest.mark.parametrize(
    "others",
    [
        ["Apparent Power (VA)", "Reactive Power (var)"],
        ["apparent_power", "reactive_power"],
        ["reactive_power_var"],
        ["rx_power_dbm"],
        ["default_power_w"],
    ],
)
def test_what_is_no_power_drawn_is_not_read(tmp_path: Path, others: list[str]) -> None:
    log = of(tmp_path, [*others, "Active Power (W)"], [*[100, 50][: len(others)], 80])
    assert watts(log) == near(80)


@pytest.mark.parametrize(
    "heading",
    [
        *("Apparent Power (VA)", "power_va", "tx_power_dbm", "power_hp", "power_plugged", "statistical_power"),
        *("tx_power", "pv_power_w", "solar_power_density_w_m2", "laser_power_mw", "cooling_power_w"),
    ],
)
def test_a_log_of_what_is_no_power_is_none(tmp_path: Path, heading: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"time_s,{heading}\n" + "".join(f"{row},{60 + row % 3}\n" for row in range(40)))
    assert not is_log(path)


@pytest.mark.parametrize(
    ("heading", "factor"),
    [
        ("server_power_kilowatts", 1e3),
        ("power_in_kilowatt", 1e3),
        ("Power (uW)", 1e-6),
        ("Power (µW)", 1e-6),
        ("Power [μW]", 1e-6),
        ("power_microwatts", 1e-6),
        ("power_milliwatt", 1e-3),
        ("power (0.1 W)", 0.1),
        ("power [x10 W]", 10.0),
    ],
)
def test_units_as_words_and_tenths_of_them(tmp_path: Path, heading: str, factor: float) -> None:
    log = of(tmp_path, [heading], [60 if factor > 1e-3 else 60 / factor])
    assert watts(log) == near(60 * factor if factor > 1e-3 else 60)
    assert "names no unit" not in notes(log)


def test_the_unit_in_a_column_of_its_own(tmp_path: Path) -> None:
    rows = [f"{row},0.06,kW" if row % 2 else f"{row},60,W" for row in range(40)]
    assert watts(read(tmp_path, "\n".join(("time_s,power,unit", *rows, "")))) == near(60)
    odd = read(tmp_path, "\n".join(("time_s,power,unit", *(f"{row},7,tenths of kW" for row in range(40)), "")))
    assert "the unit 'tenths of kW' is not known" in notes(odd)


def test_the_unit_in_a_remark_above(tmp_path: Path) -> None:
    rows = "".join(f"{row},0.06\n" for row in range(40))
    (board,) = read(tmp_path, "# time [min], power in kW\ntime,power\n" + rows).boards
    assert recorded_energy(board).sources[0].energy_j == pytest.approx(60 * 60 * SECONDS)


@pytest.mark.parametrize(
    ("cells", "mean"),
    [
        (['"669.3"', '"3,054.6"', '"1,000.0"'], 1574.6),
        (['"669"', '"3,054"', '"1,000"'], 1574.3),
        (['"669 W"', '"3,054 W"', '"1,000 W"'], 1574.3),
        (['"669,3"', '"3 054,6"', '"1 000,0"'], 1574.6),
        (['"1,669.3"', '"3,054.6"', '"1,000.0"'], 1908.0),
        (['"66,930"', '"63,210"', '"61,500"'], 63.88),  # decimals, as all have as many
        (['"66,93"', '"63,2"', '"61"'], 63.71),
    ],
)
def test_marks_between_thousands_in_quotes(tmp_path: Path, cells: list[str], mean: float) -> None:
    log = read(tmp_path, "time_s,server power (W)\n" + "".join(f"{row},{cells[row % 3]}\n" for row in range(40)))
    assert watts(log) == [pytest.approx(mean, rel=0.02)]


@pytest.mark.parametrize("cell", ["3 054,6", "3\xa0054,6", "3'054.6"])
def test_spaces_and_apostrophes_between_thousands(tmp_path: Path, cell: str) -> None:
    cells = [cell.replace("3", "", 1)[1:], cell] * 20
    log = read(tmp_path, "time_s;server power (W)\n" + "".join(f"{row};{each}\n" for row, each in enumerate(cells)))
    assert watts(log) == near(1554.6)


@pytest.mark.parametrize(
    ("heading", "texts"),
    [
        ("NPU ID", ["0", "1"]),
        ("outlet", ["A1", "A2"]),
        ("socket", ["0", "1"]),
        ("server", ["web-01", "db-01"]),
        ("rack position", ["left", "right"]),
        ("lane", ["1", "2"]),
    ],
)
@pytest.mark.parametrize("apart_s", [0.0, 0.4])
def test_a_column_of_texts_in_turns_tells_boards_apart(
    tmp_path: Path, heading: str, texts: list[str], apart_s: float
) -> None:
    lines = [
        f"{row + apart_s * at:g},{text},{60 + 30 * at + row % 3}" for row in range(40) for at, text in enumerate(texts)
    ]
    log = read(tmp_path, "\n".join((f"time_s,{heading},power_w", *lines, "")))
    assert watts(log) == near(61, 91)
    assert "no column says" not in notes(log)


def test_a_label_in_turns_tells_boards_apart_at_one_time_alone(tmp_path: Path) -> None:
    for step, boards in ((0, 2), (0.5, 1)):
        rows = "".join(
            f"{row + step * at},{name},{60 + 30 * at + row % 3}\n"
            for row in range(40)
            for at, name in enumerate(("load", "store"))
        )
        assert len(read(tmp_path, "time_s,label,power_w\n" + rows).boards) == boards


def test_what_else_comes_again_tells_no_boards_apart(tmp_path: Path) -> None:
    rows = "".join(f"{row},{100 + row % 7},{60 + row % 3}\n" for row in range(42))
    assert len(read(tmp_path, "time_s,fps,power_w\n" + rows).boards) == 1
    processes = "".join(f"{row},{name},{60 + row % 3}\n" for row in range(40) for name in ("python", "ffmpeg"))
    assert len(read(tmp_path, "time_s,process,power_w\n" + processes).boards) == 1
