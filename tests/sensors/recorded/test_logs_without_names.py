"""Logs that people's own loggers write: without headings, without the names of boards, with units that change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.engine.metering.recorded_energy import recorded_energy
from app.sensors.recorded.logs.read import Log, is_log, read_log

STAMPS = [f"2025-01-01 10:00:{second:02d}" for second in range(40)]


def read(tmp_path: Path, text: str, name: str = "log.csv") -> Log:
    path = tmp_path / name
    path.write_text(text)
    assert is_log(path)
    return read_log(path)


def joules(log: Log) -> dict[str, float]:
    return {board.info.name: recorded_energy(board).sources[0].energy_j for board in log.boards}


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


def of_several(boards: int, *, same: bool = False, name: str = "") -> str:
    """A log of nvidia-smi of several boards each second, whose rows do not say which of them they are of."""
    head = "timestamp," + ("name," if name else "") + "power.draw [W]\n"
    return head + "".join(
        f"{stamp.replace('-', '/')}.{100 + 3 * board}, {f'{name}, ' if name else ''}"
        f"{100 * (1 if same else board + 1) + second % 3}.25 W\n"
        for second, stamp in enumerate(STAMPS)
        for board in range(boards)
    )


def test_a_log_of_several_boards_may_end_between_two_of_them(tmp_path: Path) -> None:
    whole = of_several(2)
    log = read(tmp_path, whole[: whole.rstrip("\n").rfind("\n") + 1])
    assert [len(board.time_ns) for board in log.boards] == [40, 39]


@pytest.mark.parametrize("boards", [2, 4])
@pytest.mark.parametrize("name", ["", "NVIDIA A40"])
def test_readings_that_come_together_each_time_are_of_several_boards(tmp_path: Path, boards: int, name: str) -> None:
    log = read(tmp_path, of_several(boards, name=name))
    powers = [board.by_name["power_average_w"] for board in log.boards]
    assert [values[0] for values in powers] == [100.25 * (board + 1) - 0.25 * board for board in range(boards)]
    assert {len(values) for values in powers} == {40}
    assert {board.info.name for board in log.boards} == ({name} if name else {f"GPU {at}" for at in range(boards)})
    assert any(f"{boards} readings come together each time: they are read as those of {boards} boards" in note
               for note in log.notes)  # fmt: skip


def test_readings_that_come_together_and_are_the_same_are_of_one_board(tmp_path: Path) -> None:
    (board,) = read(tmp_path, of_several(2, same=True)).boards
    assert len(board.time_ns) == 80


@pytest.mark.parametrize("column", ["", "index", "uuid", "name"])
def test_readings_of_one_second_are_of_one_board(tmp_path: Path, column: str) -> None:
    head = f"time,{column},power_w\n" if column else "time,power_w\n"
    middle = f"{'0' if column == 'index' else 'GPU-1a2b'}," if column else ""
    rows = "".join(f"{stamp},{middle}{100 + at}.{at}\n" for stamp in STAMPS for at in range(5))
    log = read(tmp_path, head + rows)
    (board,) = log.boards
    assert len(board.time_ns) == 200
    assert any("spread evenly" in note for note in log.notes)


@pytest.mark.parametrize("column", ["index", "uuid"])
def test_a_column_says_that_readings_that_come_together_are_of_one_board(tmp_path: Path, column: str) -> None:
    text = of_several(2, name="GPU-0").replace(",name,", f",{column},")
    (board,) = read(tmp_path, text).boards
    assert len(board.time_ns) == 80


def test_a_column_of_boards_that_holds_a_name_does_not_say_which_of_them_it_is(tmp_path: Path) -> None:
    log = read(tmp_path, of_several(2, name="NVIDIA A40").replace(",name,", ",gpu,"))
    assert len(log.boards) == 2


@pytest.mark.parametrize(("count", "step", "pause"), [(10, 1, 60), (2, 1, 10), (6, 5, 600), (8, 0.1, 20)])
def test_runs_of_the_same_length_with_pauses_between_are_of_one_board(
    tmp_path: Path, count: int, step: float, pause: float
) -> None:
    rows = [
        f"{1_700_000_000 + run * (pause + count * step) + at * step:.1f},{60 + (at * 7 + run * 5) % 11}\n"
        for run in range(8)
        for at in range(count)
    ]
    log = read(tmp_path, "timestamp,power_w\n" + "".join(rows))
    assert [len(board.time_ns) for board in log.boards] == [8 * count]
    assert not any("come together" in note for note in log.notes)


def test_a_log_that_is_read_without_a_rhythm_is_of_one_board(tmp_path: Path) -> None:
    gaps = [3, 997, 3, 3, 994, 1000, 3, 997, 2, 1] * 8
    begun, rows = 1_700_000_000_000, []
    for at, gap in enumerate(gaps):
        begun += gap
        rows.append(f"{begun / 1e3:.3f},{100 + at % 7}.5\n")
    (board,) = read(tmp_path, "timestamp,power_w\n" + "".join(rows)).boards
    assert len(board.time_ns) == 80


def test_what_a_processor_draws_and_the_sum_of_all_are_no_boards(tmp_path: Path) -> None:
    drawn = (("cpu0", 80), ("gpu0", 200), ("gpu1", 210), ("total", 490))
    rows = "".join(f"{1700000000 + at},{name},{watts}\n" for at in range(30) for name, watts in drawn)
    log = read(tmp_path, f"timestamp,device,power_w\n{rows}")
    assert [board.info.name for board in log.boards] == ["GPU 0", "GPU 1"]
    assert "cpu0, total are no boards, and are left out" in log.notes


@pytest.mark.parametrize("column", ["component", "domain", "sensor", "device", "type"])
def test_a_column_that_says_cpu_or_gpu_names_what_a_reading_is_of(tmp_path: Path, column: str) -> None:
    rows = "".join(
        f"{1700000000 + at},CPU,150\n{1700000000 + at},GPU,200\n{1700000000 + at},DRAM,12\n" for at in range(30)
    )
    log = read(tmp_path, f"timestamp,{column},power_w\n{rows}")
    assert joules(log) == {"GPU": pytest.approx(200 * 29)}
    assert "CPU, DRAM are no boards, and are left out" in log.notes


def test_a_column_of_types_that_are_no_parts_says_no_boards(tmp_path: Path) -> None:
    rows = "".join(f"{1700000000 + at},{'idle' if at < 9 else 'load'},200\n" for at in range(30))
    assert joules(read(tmp_path, f"timestamp,type,power_w\n{rows}")) == {"GPU": pytest.approx(200 * 29)}


@pytest.mark.parametrize("power", ["power_w", "gpu_power_watts"])
def test_a_short_log_in_json_is_one(tmp_path: Path, power: str) -> None:
    document = [{"timestamp": 1700000000 + at, power: 200 + at} for at in range(8)]
    assert joules(read(tmp_path, json.dumps(document), "log.json")) == {"GPU": pytest.approx(203.5 * 7)}


def test_powers_in_a_list_are_of_the_boards_in_their_order(tmp_path: Path) -> None:
    document = [{"t": at * 0.5, "power": [200, 300]} for at in range(40)]
    log = read(tmp_path, json.dumps(document), "log.json")
    assert joules(log) == {"GPU 0": pytest.approx(200 * 19.5), "GPU 1": pytest.approx(300 * 19.5)}


def test_lists_beside_one_power_are_of_no_boards(tmp_path: Path) -> None:
    lines = [{"timestamp": 1700000000 + at, "gpu_power": 3.0, "gpu_usage": [1398, 0.9]} for at in range(40)]
    log = read(tmp_path, "\n".join(map(json.dumps, lines)), "log.jsonl")
    assert joules(log) == {"GPU": pytest.approx(3.0 * 39)}
    assert not any("cannot be" in note for note in log.notes)


@pytest.mark.parametrize(
    ("headings", "scale", "unit"),
    [
        ("power_usage,energy_consumption", 1000, 1000),
        ("power,energy", 1000, 1000),
        ("power_w,energy", 1, 1000),
        ("power_w,energy", 1, 1),
        ("power_w,energy_j", 1, 1),
        ("temperature,total_energy_consumption", 0.1, 1000),
        ("temperature,total_energy_consumption", 0.1, 1),
    ],
)
def test_a_counter_without_a_unit_is_in_that_of_nvml_where_it_must_be(
    tmp_path: Path, headings: str, scale: float, unit: int
) -> None:
    rows = "".join(f"{1700000000 + at},{int(200 * scale)},{(7000 + 200 * at) * unit}\n" for at in range(40))
    log = read(tmp_path, f"timestamp,{headings}\n{rows}")
    (board,) = log.boards
    assert board.by_name["energy_j"][[0, -1]].tolist() == [7000.0, 7000.0 + 200.0 * 39]
    assert any("read as mJ" in note for note in log.notes) == (unit == 1000)


@pytest.mark.parametrize(
    "headings",
    [
        "gpu_power_w,total_power_w",
        "gpu_power,total_power",
        *(
            f"actual_power_w,{other}"
            for other in ("estimated_power_w", "nominal_power_w", "power_setpoint_w", "reference_power_w")
        ),
        "measured_power_w,predicted_power_w",
        "gpu_power_actual_w,gpu_power_target_w",
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_what_was_measured_of_the_gpu_counts(tmp_path: Path, headings: str, order: int) -> None:
    head = ",".join(headings.split(",")[::order])
    rows = "".join(f"{at},{','.join(['200', '300'][::order])}\n" for at in range(40))
    (board,) = read(tmp_path, f"time_s,{head}\n{rows}").boards
    powers = [name for name in board.by_name if name.startswith("power")]
    assert [board.by_name[name][0] for name in powers] == [200.0]


@pytest.mark.parametrize("power", ["total_power_w", "estimated_power_w"])
def test_a_total_or_an_estimate_alone_counts(tmp_path: Path, power: str) -> None:
    rows = "".join(f"{at},200\n" for at in range(40))
    assert joules(read(tmp_path, f"time_s,{power}\n{rows}")) == {"GPU": pytest.approx(200 * 39)}


@pytest.mark.parametrize("middle", ["", "0, NVIDIA GeForce RTX 4090, "])
@pytest.mark.parametrize("limit_first", [True, False])
def test_of_two_powers_without_headings_the_limit_never_changes(tmp_path: Path, middle: str, limit_first: bool) -> None:
    cells = ("450.00 W", "{}.25 W")[:: 1 if limit_first else -1]
    rows = "".join(
        f"{stamp.replace('-', '/')}.117, {middle}{', '.join(cells).format(200 + at % 3)}\n"
        for at, stamp in enumerate(STAMPS)
    )
    (board,) = read(tmp_path, rows).boards
    assert board.by_name["power_average_w"][:3].tolist() == [200.25, 201.25, 202.25]
    assert board.by_name["power_limit_w"].tolist() == [450.0] * 40


@pytest.mark.parametrize(
    ("heading", "scale", "failed"),
    [
        ("power_w", 1, "65535"),
        ("power_w", 1, "4294967295"),
        ("power_w", 1, "4294967.295"),
        ("power_mw", 1000, "4294967295"),
        ("power_w", 1, "0.00"),
    ],
)
def test_what_drivers_give_where_a_reading_failed_is_left_out(
    tmp_path: Path, heading: str, scale: int, failed: str
) -> None:
    cells = [str(200 * scale)] * 38
    cells[20:20] = [failed] * 2
    rows = "".join(f"{1700000000 + at},{cell}\n" for at, cell in enumerate(cells))
    log = read(tmp_path, f"timestamp,{heading}\n{rows}")
    assert joules(log) == {"GPU": pytest.approx(200 * 39)}
    assert any("2 readings of Power" in note and "cannot be and are left out" in note for note in log.notes)


def test_a_board_that_was_off_for_a_while_drew_nothing(tmp_path: Path) -> None:
    rows = "".join(f"{1700000000 + at},{0 if 10 <= at < 30 else 20}\n" for at in range(40))
    assert joules(read(tmp_path, f"timestamp,power_w\n{rows}")) == {"GPU": pytest.approx(20 * 19)}


def test_stamps_with_exponents_are_seconds_since_the_epoch(tmp_path: Path) -> None:
    rows = "".join(f"{1772719400 + at:.18e},{200:.18e}\n" for at in range(40))
    (board,) = read(tmp_path, f"# timestamp,power_w\n{rows}").boards
    assert (board.began_s, board.time_ns[-1]) == (1772719400, 39_000_000_000)


@pytest.mark.parametrize(("winter", "summer"), [("+01:00", "+02:00"), ("-0500", "-0400"), (" +0100", " +0200")])
def test_offsets_count_where_a_clock_is_put_forward(tmp_path: Path, winter: str, summer: str) -> None:
    stamps = [f"2026-03-29T01:59:{second}{winter}" for second in range(30, 60)]
    stamps += [f"2026-03-29T03:00:{second:02d}{summer}" for second in range(30)]
    log = read(tmp_path, "time,power_w\n" + "".join(f"{stamp},200\n" for stamp in stamps))
    assert joules(log) == {"GPU": pytest.approx(200 * 59)}


@pytest.mark.parametrize(
    "headings",
    [
        "Zeit;Leistung (W)",
        "Zeitstempel;Leistungsaufnahme [W]",
        "Horodatage;Puissance GPU (W)",
        "Data/Hora;Potência (W)",
        "Fecha;Potencia (W)",
        "Czas;Moc [W]",
        "Время;Мощность, Вт",
        "时间;功率(瓦)",
        "時刻;消費電力[W]",
    ],
)
def test_headings_in_other_languages_name_times_and_powers(tmp_path: Path, headings: str) -> None:
    rows = "".join(f"{stamp};{200 + at % 2},50\n" for at, stamp in enumerate(STAMPS))
    assert joules(read(tmp_path, f"{headings}\n{rows}")) == {"GPU": pytest.approx(201 * 39)}


@pytest.mark.parametrize(
    "headings",
    [
        "Temps (s),Puissance GPU (W)",
        "Tempo [s],Potenza GPU [W]",
        "Czas [s],Moc GPU [W]",
        "経過時間(秒),GPU電力(W)",
        "offset_s,P_gpu (W)",
        "Time since start [s],p_w",
    ],
)
def test_numbers_in_seconds_and_watts_are_a_log_in_every_language(tmp_path: Path, headings: str) -> None:
    rows = "".join(f"{at},{200 + at % 2}\n" for at in range(41))
    assert joules(read(tmp_path, f"{headings}\n" + rows)) == {"GPU": pytest.approx(200.5 * 40)}


@pytest.mark.parametrize("heading", ["Temps (s)", "wall_time_s", "duration [s]", "t (s)"])
@pytest.mark.parametrize("beside", ["Takt [MHz]", "T (°C)", "CPU [W]"])
def test_a_time_that_rises_evenly_from_0_on_is_a_clock_beside_what_never_changes(
    tmp_path: Path, heading: str, beside: str
) -> None:
    rows = "".join(f"{at},{200 + at % 2},65\n" for at in range(41))
    assert joules(read(tmp_path, f"{heading},Leistung GPU [W],{beside}\n" + rows)) == {"GPU": pytest.approx(200.5 * 40)}


@pytest.mark.parametrize("times", [[1.5**at for at in range(30)], [500 + at for at in range(30)], [3, 1] * 15])
def test_run_times_that_do_not_rise_evenly_from_0_on_are_no_clock(tmp_path: Path, times: list[float]) -> None:
    path = tmp_path / "table.csv"
    path.write_text("wall_time_s,power_w,mhz\n" + "".join(f"{time},{200 + time % 2},1410\n" for time in times))
    assert not is_log(path)


def test_a_day_and_a_time_in_spanish(tmp_path: Path) -> None:
    rows = "".join(f"{stamp.replace(' ', ',')},200\n" for stamp in STAMPS)
    (board,) = read(tmp_path, f"fecha,hora,potencia_w\n{rows}").boards
    assert board.time_ns[-1] == 39_000_000_000
    assert board.began_s > 1.7e9


def test_powers_in_tenths_of_a_watt_are_not_read_as_watts(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("time_s,power_dW\n" + "".join(f"{at},2000\n" for at in range(40)))
    assert not is_log(path)


def test_a_cell_that_says_error_is_no_reading(tmp_path: Path) -> None:
    rows = "".join(f"{1700000000 + at},{'ERR' if at == 20 else 200}\n" for at in range(40))
    assert joules(read(tmp_path, f"timestamp,power_w\n{rows}")) == {"GPU": pytest.approx(200 * 39)}


def test_times_of_the_day_alone_may_pass_midnight(tmp_path: Path) -> None:
    stamps = [f"23:59:{second}" for second in range(30, 60)] + [f"00:00:{second:02d}" for second in range(30)]
    log = read(tmp_path, "time,gpu_power_w\n" + "".join(f"{stamp},200\n" for stamp in stamps))
    assert joules(log) == {"GPU": pytest.approx(200 * 59)}


def test_the_newest_reading_may_come_first(tmp_path: Path) -> None:
    rows = "".join(f"{stamp},{100 + at}\n" for at, stamp in enumerate(STAMPS))
    newest = "".join(line + "\n" for line in rows.splitlines()[::-1])
    log = read(tmp_path, f"timestamp,power_w\n{newest}")
    (board,) = log.boards
    assert board.by_name["power_average_w"].tolist() == [100.0 + at for at in range(40)]
    assert any("newest reading comes first" in note for note in log.notes)


@pytest.mark.parametrize(
    ("heading", "cell"), [("power (mW)", "200,{:03d}"), ("power (W)", "200,{}"), ("power (W)", "200,0{}0")]
)
def test_commas_in_quoted_numbers(tmp_path: Path, heading: str, cell: str) -> None:
    rows = "".join(f'{stamp},"{cell.format(0)}"\n' for stamp in STAMPS)
    assert joules(read(tmp_path, f'time,"{heading}"\n{rows}')) == {"GPU": pytest.approx(200 * 39)}


@pytest.mark.parametrize(
    ("name", "channel"),
    [
        ("NVIDIA A100-SXM4-40GB", "power_instant_w"),
        ("Tesla V100-SXM2-16GB", "power_instant_w"),
        ("NVIDIA GeForce RTX 2080 Ti", "power_instant_w"),
        ("NVIDIA H100 80GB HBM3", "power_average_w"),
        ("NVIDIA GeForce RTX 4090", "power_average_w"),
        ("NVIDIA A10", "power_average_w"),
    ],
)
def test_what_a_power_averages_over_is_known_where_the_board_is_named(tmp_path: Path, name: str, channel: str) -> None:
    (board,) = read(tmp_path, of_several(1, name=name)).boards
    assert channel in board.by_name


@pytest.mark.parametrize(
    "line",
    [
        "{stamp},117 - INFO - GPU 0: {w}.25 W, 64 C, util 98%",
        "[{stamp}] GPU 0: power {w}.25 W / 450.0 W",
        "{stamp} Power: {w}.25 W, Temp: 64 C, Util: 98 %",
        "{stamp} {w}.25 W",
        "{stamp} Instantaneous power reading: {w}.25 Watts",
    ],
)
def test_lines_of_text_with_a_stamp_and_a_power_are_a_log(tmp_path: Path, line: str) -> None:
    text = "".join(line.format(stamp=stamp, w=60 + at % 3) + "\n" for at, stamp in enumerate(STAMPS))
    (board,) = read(tmp_path, text, "log.txt").boards
    (power,) = [values for name, values in board.by_name.items() if name.startswith("power_") and "limit" not in name]
    assert power[:4].tolist() == [60.25, 61.25, 62.25, 60.25]
    assert len(board.time_ns) == 40


def test_lines_of_text_with_several_boards_are_a_log_of_each(tmp_path: Path) -> None:
    text = "".join(f"[{stamp}] GPU0: {59 + at % 2}W  GPU1: {64 - at % 2}W\n" for at, stamp in enumerate(STAMPS))
    log = read(tmp_path, text, "log.txt")
    assert [board.by_name["power_average_w"][:2].tolist() for board in log.boards] == [[59, 60], [64, 63]]


@pytest.mark.parametrize(
    ("line", "first", "last"),
    [
        ("{stamp} CPU Power: 65.1 W\n{stamp} GPU Power: {w} W\n{stamp} Total Power: 300.5 W\n", "", ""),
        ("{stamp} [gpu] {w} W\n{stamp} [cpu] 65.1 W\n", "", ""),
        ("{stamp} cpu 35 % GPU {w} W\n", "", ""),
        ("{stamp} INFO power: {w} W\n", "{stamp} INFO set power limit to 300 W\n", ""),
        ("{stamp} power: {w} W\n", "{stamp} idle power baseline: 60.0 W\n", "Average power: 233.1 W\n"),
        ("{stamp} average power: {w} W\n", "", ""),
    ],
)
def test_lines_of_text_on_processors_limits_and_means_are_no_readings_beside_others(
    tmp_path: Path, line: str, first: str, last: str
) -> None:
    text = "".join(line.format(stamp=stamp, w=200 + at % 2) for at, stamp in enumerate(STAMPS))
    (board,) = read(tmp_path, first.format(stamp=STAMPS[0]) + text + last, "log.txt").boards
    assert board.by_name["power_average_w"].tolist() == [200, 201] * 20


def test_watts_in_cells_behind_a_stamp_are_no_lines_of_text(tmp_path: Path) -> None:
    text = "timestamp,power.draw [W],power.limit [W]\n" + "".join(f"{stamp},300 W, 450 W\n" for stamp in STAMPS)
    (board,) = read(tmp_path, text).boards
    assert set(board.by_name["power_average_w"].tolist()) == {300}


def test_an_answer_of_prometheus_is_a_log_of_each_board(tmp_path: Path) -> None:
    def series(gpu: int, name: str, value: int) -> dict[str, object]:
        values = [[1772719400.5 + 15 * at, str(value)] for at in range(12)]
        return {"metric": {"__name__": name, "gpu": str(gpu), "Hostname": "node1"}, "values": values}

    found = [series(0, "DCGM_FI_DEV_POWER_USAGE", 300), series(1, "DCGM_FI_DEV_POWER_USAGE", 200)]
    result = [*found, series(0, "DCGM_FI_DEV_GPU_TEMP", 64)]
    document = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    log = read(tmp_path, json.dumps(document), "answer.json")
    assert sorted(joules(log).values()) == [pytest.approx(200 * 165), pytest.approx(300 * 165)]


@pytest.mark.parametrize(
    "result",
    [
        "[3]",
        '[{"metric": 1, "values": [[1]]}]',
        '[{"metric": {"__name__": "power"}, "values": 7}]',
        '[{"metric": {"__name__": "power"}, "values": [["a", "b"], [1]]}]',
    ],
)
def test_an_answer_of_prometheus_that_is_damaged_is_no_log(tmp_path: Path, result: str) -> None:
    path = tmp_path / "answer.json"
    path.write_text(f'{{"data": {{"resultType": "matrix", "result": {result}}}}}')
    assert not is_log(path)


@pytest.mark.parametrize("cells", ["{power:.2f}", "{power:.2f}, {degrees}", "{busy} {power:.2f}"])
def test_watts_alone_are_known_by_their_two_decimals_which_is_said_to_be_uncertain(tmp_path: Path, cells: str) -> None:
    rows = (cells.format(power=40 + 3.11 * (second**2 % 23), degrees=50 + second, busy=90) for second in range(40))
    log = read(tmp_path, "\n".join(rows) + "\n", "power.txt")
    (board,) = log.boards
    assert board.by_name["power_average_w"][:3].tolist() == [40.0, 43.11, 52.44]
    assert log.assumed_step_s == 1.0
    assert any("not certain" in note for note in log.notes)


@pytest.mark.parametrize("cells", ["{0}.00", "{0}.25, 71", "{0}.25, 7.5"])
def test_numbers_that_only_rise_or_are_no_readings_of_nvidia_smi_are_no_log_of_watts(
    tmp_path: Path, cells: str
) -> None:
    path = tmp_path / "numbers.txt"
    path.write_text("\n".join(map(cells.format, range(10, 50))) + "\n")
    assert not is_log(path) or read_log(path).boards[0].by_name["power_instant_w"][0] in (71.0, 7.5)


def test_a_printed_table_has_names_of_several_words_two_spaces_apart(tmp_path: Path) -> None:
    title = "GPU Utilization Monitor - Press Ctrl+C to stop\n" + "=" * 50 + "\n"
    head = "Time     GPU%   Mem Used   Mem Total  Temp   Power\n" + "=" * 50 + "\n"
    rows = (f"{1.5 * at:8.1f} {at // 3:6.1f} {1361:10d} {8192:10d} {45.0:6.1f} {70.0 + at:8.1f}\n" for at in range(30))
    log = read(tmp_path, title + head + "".join(rows), "monitor.log")
    (board,) = log.boards
    assert board.by_name["power_average_w"].tolist() == [70.0 + at for at in range(30)]
    assert board.time_ns[-1] == 29 * 1_500_000_000


@pytest.mark.parametrize("head", ["", "power.draw [W]\n"])
def test_readings_of_two_boards_without_times_are_of_boards_where_they_differ_by_place(
    tmp_path: Path, head: str
) -> None:
    """`nvidia-smi --query-gpu=power.draw -l 1` prints a line for each board each second."""
    log = read(tmp_path, head + "".join(f"{300 + at % 7}.25\n{70 + at % 3}.50\n" for at in range(40)), "power.txt")
    assert [float(board.values[:, 0].min()) for board in log.boards] == [300.25, 70.5]
    assert [board.time_ns[-1] for board in log.boards] == [39 * 10**9] * 2
    assert any("2 boards in turn, which is not certain" in note for note in log.notes)


def test_bursts_of_one_board_without_times_are_of_one(tmp_path: Path) -> None:
    log = read(tmp_path, "".join(f"{300 if at % 20 < 10 else 70}.{at % 9}5\n" for at in range(120)), "power.txt")
    assert len(log.boards) == 1


def test_two_numbers_a_line_are_times_and_watts_only_where_the_first_rises_and_that_is_not_certain(
    tmp_path: Path,
) -> None:
    log = read(tmp_path, "".join(f"{0.5 * at} {100 + at % 7}\n" for at in range(40)), "power.txt")
    assert any("not certain" in note for note in log.notes)
    sizes = tmp_path / "sizes.txt"
    sizes.write_text("".join(f"{size} {size / 7 + at}\n" for size in range(10, 110, 10) for at in range(5)))
    assert not is_log(sizes)


def test_numbers_alone_in_a_file_that_says_nothing_of_power_are_no_watts(tmp_path: Path) -> None:
    path = tmp_path / "latencies.txt"
    path.write_text("".join(f"{12 + at * at % 23}.2{at % 9}\n" for at in range(40)))
    assert not is_log(path)
