"""Logs of programs that watch a whole machine: MSI Afterburner, HWiNFO, powermetrics, jetson-stats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.base.errors import InputError
from app.engine.metering.recorded_energy import recorded_energy
from app.sensors.recorded.logs.read import Log, is_log, read_log
from app.sensors.recorded.recording import Recording


def read(tmp_path: Path, text: str, encoding: str = "latin-1") -> Log:
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode(encoding))
    assert is_log(path)
    return read_log(path)


def refused(tmp_path: Path, text: str) -> str:
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        read_log(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def values(recording: Recording, name: str) -> list[float]:
    return [float(value) for value in recording.by_name[name]]


def seconds(recording: Recording) -> list[float]:
    return [time / 1e9 for time in recording.time_ns.tolist()]


def session(
    begun: str,
    columns: dict[str, str],
    rows: Sequence[tuple[str, Sequence[object]]],
    board: str = "NVIDIA GeForce RTX 4060",
) -> str:
    """As MSI Afterburner writes it: cells padded to 20 characters."""
    heads = "".join(f",{name:20}" for name in columns).removeprefix(",")
    units = [
        f"03, {begun}, {place:<20},{unit:20},0.000 ,100.000 ,10 , , ,\n" for place, unit in enumerate(columns.values())
    ]
    lines = ["80, " + stamp + ", " + ",".join(f"{cell:<20}" for cell in cells) + "\n" for stamp, cells in rows]
    return "".join(
        (f"00, {begun}, Hardware monitoring log v1.6 \n01, {begun}, {board}\n02, {begun}, {heads}\n", *units, *lines)
    )


COLUMNS = {
    "GPU temperature": "°C",
    "GPU usage": "%",
    "Core clock": "MHz",
    "Memory clock": "MHz",
    "Power": "W",
    "Power limit": "",
    "CPU1 power": "W",
    "CPU power": "W",
    "Framerate": "FPS",
}
ROWS: list[tuple[str, list[object]]] = [
    ("31-01-2026 23:59:58", [60, 90, 2500, 8000, "100.500", 0, 20, 60, "N/A"]),
    ("31-01-2026 23:59:59", [61, 91, 2501, 8000, "110.500", 1, 21, 61, "61.2"]),
    ("01-02-2026 00:00:00", [62, 92, 2502, 8000, "N/A", 1, 22, 62, "61.4"]),
    ("01-02-2026 00:00:01", [62, 92, 2502, 8000, "120.500", 1, 22, 62, "61.4"]),
]


def test_afterburner_has_the_power_of_the_gpu_with_the_day_before_the_month(tmp_path: Path) -> None:
    log = read(tmp_path, session("31-01-2026 23:59:58", COLUMNS, ROWS))
    (board,) = log.boards
    assert (log.tool, board.info.name) == ("MSI Afterburner", "NVIDIA GeForce RTX 4060")
    assert seconds(board) == [0, 1, 2, 3]
    assert values(board, "power_average_w") == pytest.approx([100.5, 110.5, float("nan"), 120.5], nan_ok=True)
    assert values(board, "temperature_c") == [60, 61, 62, 62]
    assert values(board, "graphics_clock_mhz") == [2500, 2501, 2502, 2502]
    assert not {"power_limit_w", "power_instant_w"} & board.by_name.keys()  # a flag, and the CPU's


def test_sessions_of_afterburner_are_one_board_and_their_pauses_are_named(tmp_path: Path) -> None:
    """Of the first one the beginning is cut off: what is left of its units is that of the next session."""
    rows = [[(f"10-01-2026 {hour}:00:{n:02d}", ROWS[0][1]) for n in range(10)] for hour in (18, 19, 20)]
    text = session("10-01-2026 18:00:00", COLUMNS, rows[0])
    cut = text[text.index("03, 10-01-2026 18:00:00, 5") :]
    others = "".join(session(each[0][0], COLUMNS, each) for each in rows[1:])
    (board,) = read(tmp_path, cut + others).boards
    assert len(board.time_ns) == 30
    energy = recorded_energy(board).trapezoid
    assert energy is not None
    assert energy.without_gaps_j == pytest.approx(27 * 100.5)
    assert energy.gap_s == pytest.approx(2 * 3591)


def test_a_session_that_is_cut_off_and_had_other_columns_is_left_out_and_counted(tmp_path: Path) -> None:
    long = [(f"10-01-2026 19:{n // 60:02d}:{n % 60:02d}", ROWS[0][1]) for n in range(200)]
    whole = session("10-01-2026 19:00:00", COLUMNS, long)
    fewer = "80, 10-01-2026 18:00:00, 77.000 ,12.000 \n" * 2
    log = read(tmp_path, fewer + whole)
    assert len(log.boards[0].time_ns) == 200
    assert "2 lines could not be read and are left out" in log.notes
    other_unit = "03, 10-01-2026 18:00:00, 4 ,% \n80, 10-01-2026 18:00:00, " + ",".join("9" * 9) + "\n"
    assert len(read(tmp_path, other_unit + whole).boards[0].time_ns) == 200


def test_sessions_of_other_columns_keep_their_own(tmp_path: Path) -> None:
    first = session(
        "10-01-2026 18:00:00",
        {"Power": "W", "GPU usage": "%"},
        [(f"10-01-2026 18:00:0{n}", [50 + n, 7]) for n in range(3)],
    )
    other = session(
        "10-01-2026 18:01:00",
        {"GPU usage": "%", "Power": "W"},
        [(f"10-01-2026 18:01:0{n}", [7, 80 + n]) for n in range(3)],
    )
    (board,) = read(tmp_path, first + other + "80, 10-01-2026 18:01:03, 7").boards
    assert values(board, "power_average_w") == [50, 51, 52, 80, 81, 82]
    percent = session("10-01-2026 18:02:00", {"Power": "%"}, [(f"10-01-2026 18:02:0{n}", [99]) for n in range(3)])
    (board,) = read(tmp_path, first + percent).boards
    assert values(board, "power_average_w")[:3] == [50, 51, 52]
    assert not any(value == 99 for value in values(board, "power_average_w"))


def test_power_in_percent_of_a_limit_is_no_power(tmp_path: Path) -> None:
    rows = [(f"10-01-2026 18:02:0{n}", [99, 65]) for n in range(3)]
    assert "no power of the GPU in W" in refused(
        tmp_path, session("10-01-2026 18:02:00", {"Power": "%", "CPU power": "W"}, rows)
    )
    table = "Date , GPU Load [%] , Power Consumption [% TDP] ,\n" + "".join(
        f"2026-05-01 18:02:0{n} , 5 , 99.0 ,\n" for n in range(3)
    )
    refused(tmp_path, table)
    assert not is_log(tmp_path / "log.csv")


def test_two_gpus_of_afterburner_are_two_boards(tmp_path: Path) -> None:
    columns = {"GPU1 usage": "%", "GPU2 usage": "%", "GPU1 power": "W", "GPU2 power": "W", "CPU power": "W"}
    rows = [(f"10.01.2026 18:02:0{n}", [90, 10, 200 + n, 30 + n, 65]) for n in range(3)]
    log = read(tmp_path, session("10.01.2026 18:02:00", columns, rows, "NVIDIA GeForce GTX 1650,Intel(R) UHD Graphics"))
    assert [board.info.name for board in log.boards] == ["GPU 1", "GPU 2"]
    assert [values(board, "power_average_w") for board in log.boards] == [[200, 201, 202], [30, 31, 32]]
    assert [values(board, "utilisation_percent")[0] for board in log.boards] == [90, 10]


HWINFO = (
    'Date,Time,"Core 0 Clock [MHz]","Core #0 (perf #1,2) Limit [Yes/No]","Memory Clock [MHz]","CPU Package Power [W]",'
    '"IA Cores Power [W]","Drive Temperature [°C]","Drive Temperature [°C]","GPU Temperature [°C]","GPU Power [W]",'
    '"GPU Clock [MHz]","GPU Memory Clock [MHz]","GPU Core Load [%]","GPU Fan [RPM]","Total GPU Power [% of TDP] [%]",\n'
)


def hwinfo(stamp: str, power: object, gap: str = ",") -> str:
    cells = [*stamp.split(), 4000, "No", 1600, 65, 50, 30, 31, 70, power, 1800, 7000, 98, 1500, 88.5, ""]
    return gap.join(map(str, cells)) + "\n"


def test_hwinfo_has_the_power_of_the_gpu_among_that_of_the_machine(tmp_path: Path) -> None:
    """Days, months, hours and seconds have one digit or two; the headings and the names of the sensors come again."""
    stamps = ("28.2.2026 23:59:59.500", "1.3.2026 0:0:0.5", "1.3.2026 0:0:1.500", "1.3.2026 0:0:2.500")
    rows = "".join(hwinfo(stamp, 100.25 + n) for n, stamp in enumerate(stamps))
    end = HWINFO + ',,"CPU [#0]: Intel Core","CPU [#0]",,,,,,,"GPU [#0]: NVIDIA GeForce RTX 3080",,,,,,\n'
    log = read(tmp_path, HWINFO + rows + end)
    (board,) = log.boards
    assert log.tool == "HWiNFO"
    assert seconds(board) == [0, 1, 2, 3]
    assert values(board, "power_average_w") == [100.25, 101.25, 102.25, 103.25]
    assert values(board, "memory_clock_mhz")[0] == 7000  # not that of the memory of the host
    assert values(board, "temperature_c")[0] == 70
    assert not {"power_instant_w", "fan_percent"} & board.by_name.keys()
    assert not any("could not be read" in note for note in log.notes)


def test_hwinfo_of_another_locale(tmp_path: Path) -> None:
    rows = "".join(hwinfo(f"19.4.2026 9:05:{n}.0", f"10{n},5", ";") for n in range(5)).replace(".0;", ",0;")
    (board,) = read(
        tmp_path, HWINFO.replace('","', '";"').replace("Date,Time,", "Date;Time;").replace('",\n', '";\n') + rows
    ).boards
    assert values(board, "power_average_w") == [100.5, 101.5, 102.5, 103.5, 104.5]
    assert seconds(board) == [0, 1, 2, 3, 4]


def test_a_heading_of_power_that_comes_twice_is_of_two_boards(tmp_path: Path) -> None:
    head = "Date,Time,CPU Power [W],GPU Clock [MHz],GPU Power [W],GPU Clock [MHz],GPU Power [W],GPU Load [%],\n"
    rows = "".join(f"1.5.2026,12:0:{n}.0,60,1500,{200 + n},300,{20 + n},5,\n" for n in range(4))
    log = read(tmp_path, head + rows)
    assert [values(board, "power_average_w") for board in log.boards] == [[200, 201, 202, 203], [20, 21, 22, 23]]
    assert [values(board, "graphics_clock_mhz")[0] for board in log.boards] == [1500, 300]
    assert not any("utilisation_percent" in board.by_name for board in log.boards)  # of which of them?


def test_the_board_counts_before_its_parts(tmp_path: Path) -> None:
    head = (
        "Date,Time,CPU Core Power [W],GPU Core Power (VDDCR_GFX) [W],GPU ASIC Power [W],Total Board Power (TBP) [W],\n"
    )
    rows = "".join(f"1.5.2026,12:0:{n}.0,60,90,110,{200 + n},\n" for n in range(4))
    (board,) = read(tmp_path, head + rows).boards
    assert values(board, "power_instant_w") == [200, 201, 202, 203]
    head = head.replace("Total Board Power (TBP)", "GPU Chip Power").replace("ASIC", "VRM Input")
    (board,) = read(tmp_path, head + rows).boards
    assert values(board, "power_instant_w") == [200, 201, 202, 203]
    refused(tmp_path, head.replace("Chip", "Core") + rows)


def test_powers_of_a_machine_that_are_not_said_to_be_a_gpus_are_none(tmp_path: Path) -> None:
    head = "Date,Time,CPU Package Power [W],IA Cores Power [W],PCH Power [W],GPU Clock [MHz],\n"
    refused(tmp_path, head + "".join(f"1.5.2026,12:0:{n}.0,60,50,5,1500,\n" for n in range(30)))
    assert not is_log(tmp_path / "log.csv")


def test_what_broke_off_may_be_filled_with_nul(tmp_path: Path) -> None:
    rows = [f"2026-05-01 12:00:0{n},{100 + n}\n" for n in range(6)]
    text = "Date,GPU Power [W]" + "\0" * 5000 + "".join(rows[:3]) + "\0" * 70_000 + "".join(rows[3:])
    (board,) = read(tmp_path, text).boards
    assert values(board, "power_average_w") == [100, 101, 102, 103, 104, 105]


def test_counts_of_samples_and_power_factors_are_no_power(tmp_path: Path) -> None:
    rows = "".join(f"2026-08-08T20:18:{n}Z,284,0.97\n" for n in range(10, 40))
    refused(tmp_path, "timestamp,n_power_samples,power_factor\n" + rows)


@pytest.mark.parametrize(
    "stamps",
    [
        ("4/9/2026 11:59:59 PM", "4/10/2026 12:00:00 AM", "4/10/2026 12:00:01 AM"),
        ("9/4/2026 23:59:59", "10/4/2026 00:00:00", "10/4/2026 0:00:01"),
        ("12/31/2026 11:59:59 PM", "1/1/2027 12:00:00 AM", "1/1/2027 12:00:01 am"),
        ("05-06-2026 11:59:59 AM", "05-06-2026 12:00:00 PM", "05-06-2026 12:00:01 PM"),
        ("20260430 23:59:59", "20260501 00:00:00", "20260501 00:00:01"),
        ("2026-04-30T23:59:59Z", "2026-05-01T00:00:00Z", "2026-05-01T00:00:01Z"),
        ("11:59:59 PM", "12:00:00 AM", "12:00:01 AM"),
    ],
)
def test_dates_of_every_locale_and_halves_of_a_day(tmp_path: Path, stamps: tuple[str, ...]) -> None:
    """Either of the first two numbers may be the month: that gives the shorter time between the readings."""
    rows = "".join(f"{stamp},{100 + n}\n" for n, stamp in enumerate(stamps))
    (board,) = read(tmp_path, "timestamp,gpu_power_w\n" + rows).boards
    assert seconds(board) == [0, 1, 2]


def test_dates_that_begin_with_the_day_and_others_that_begin_with_the_month_are_refused(tmp_path: Path) -> None:
    rows = "".join(f"{stamp} 12:00:00,100\n" for stamp in ("13/02/2026", "02/13/2026", "02/14/2026"))
    assert "line 2" in refused(tmp_path, "timestamp,gpu_power_w\n" + rows)


def test_readings_that_all_have_one_time_tell_no_energy(tmp_path: Path) -> None:
    rows = "04-03-2021,13:32:39,58,150,250\n" * 45
    said = "45 readings, 150 W in the mean, 150 W at most; no energy follows of readings at one and the same"
    assert said in refused(tmp_path, "Date,Time,Temperature,Power Used, Power Max\n" + rows)


def test_powermetrics_has_the_mean_power_of_the_gpu_at_each_stamp(tmp_path: Path) -> None:
    sample = """
*** Sampled system activity (Fri Dec  5 21:25:{second:02d} 2025 -0800) (10003.30ms elapsed) ***

**** Processor usage ****
CPU Power: 2000 mW
GPU Power: {power} mW
ANE Power: 0 mW
Combined Power (CPU + GPU + ANE): 2022 mW

**** GPU usage ****

GPU HW active frequency: 440 MHz
GPU HW active residency:   3.36% (389 MHz: 2.9% 486 MHz: .03%)
GPU idle residency:  96.64%
GPU Power: {power} mW
"""
    text = "Machine model: MacBookPro18,3\nOS version: 25B78\n" + "".join(
        sample.format(second=10 * n, power=19000 + n) for n in range(5)
    )
    log = read(tmp_path, text)
    (board,) = log.boards
    assert log.tool == "powermetrics"
    assert seconds(board) == [0, 10, 20, 30, 40]
    assert values(board, "power_instant_w") == pytest.approx([19 + n / 1000 for n in range(5)])
    assert values(board, "graphics_clock_mhz")[0] == 440
    assert values(board, "utilisation_percent")[0] == 3.36
    assert "each power is the mean of the time since the stamp before" in log.notes


def test_powermetrics_says_how_long_samples_of_the_same_second_were(tmp_path: Path) -> None:
    ends = [110 * n + 100 for n in range(20)]
    text = "".join(
        f"*** Sampled system activity (Fri Dec  5 21:25:{(end + pause) // 1000:02d} 2025 -0800) (110.0ms elapsed) ***\n"
        f"GPU Power: {1000 + end} mW\n"
        for pause in (0, 30_000)
        for end in ends
    )
    (board,) = read(tmp_path, text).boards
    assert seconds(board) == pytest.approx([0.11 * n for n in range(20)] + [30 + 0.11 * n for n in range(20)])


def test_lines_under_the_output_of_date_are_of_one_board_each(tmp_path: Path) -> None:
    rows = "0 %, 7042 MiB, 46068 MiB, 32, {one:.2f} W\n0 %, 4 MiB, 46068 MiB, 24, {other:.2f} W\n"
    stamps = ("Wed Feb 26 11:59:59 AM EST 2025", "Wed Feb 26 12:00:00 PM EST 2025", "Wed Feb 26 12:00:01 PM EST 2025")
    text = "".join(f"{stamp}\n{rows.format(one=80 + n, other=30 + n)}" for n, stamp in enumerate(stamps))
    log = read(tmp_path, text)
    assert log.tool == "nvidia-smi"
    assert [values(board, "power_average_w") for board in log.boards] == [[80, 81, 82], [30, 31, 32]]
    assert seconds(log.boards[0]) == [0, 1, 2]
    assert "fewer than two readings" in refused(tmp_path, "".join(text.splitlines(keepends=True)[:3]))


JTOP = (
    "System-Time,NVPMODEL-POWER_MODE,VDD_GPU_SOC-IN_VOLTAGE,VDD_GPU_SOC-IN_POWER,VDD_GPU_SOC-AVG_POWER,"
    "VIN_SYS_5V0-IN_POWER\n"
)


def test_rails_without_a_whole_are_series_of_their_own_that_are_not_to_be_added(tmp_path: Path) -> None:
    rows = "".join(f"23:59:{55 + n},MAXN,19552,{2680 + n},5516,{1400 + n}\n" for n in range(5))
    log = read(tmp_path, JTOP + rows + "00:00:00,MAXN,19552,2685,5516,1405\n")
    assert [board.info.name for board in log.boards] == ["VDD_GPU_SOC", "VIN_SYS_5V0"]
    assert values(log.boards[0], "power_instant_w") == pytest.approx([2.680 + n / 1000 for n in range(6)])
    assert seconds(log.boards[0]) == [0, 1, 2, 3, 4, 5]
    assert any("one may feed another" in note for note in log.notes)
    assert "'VDD_GPU_SOC-IN_POWER' names no unit; its numbers are read as mW" in log.notes


def test_rails_whose_unit_is_not_certain_are_refused(tmp_path: Path) -> None:
    rows = "".join(f"23:59:{50 + n},MAXN,19.5,22.{n},5.5,14.{n}\n" for n in range(5))
    assert "'VDD_GPU_SOC-IN_POWER' names no unit" in refused(tmp_path, JTOP + rows)


def test_the_total_of_jetson_stats_counts_and_not_its_rails(tmp_path: Path) -> None:
    head = "time,uptime,nvp model,GPU,Temp gpu,Power VDD_CPU_GPU_CV,Power VDD_SOC,Power TOT\n"
    rows = "".join(f"2026-05-01 12:00:0{n}.5,0:00:05,MAXN,12,45,900,700,{2500 + n}\n" for n in range(5))
    log = read(tmp_path, head + rows)
    (board,) = log.boards
    assert log.tool == "jetson-stats"
    assert values(board, "power_instant_w") == pytest.approx([2.5 + n / 1000 for n in range(5)])


def test_words_behind_the_last_reading_are_no_readings(tmp_path: Path) -> None:
    rows = "".join(f"20:04:{10 + n}:250,{n}.25,{20 + n}\n" for n in range(25))
    end = "\nTotal Elapsed Time (sec) = 5.03\nMeasured RDTSC Frequency (GHz) = 2.496\n"
    log = read(tmp_path, "System Time,Elapsed Time (sec),GPU Power_0(Watt)\n" + rows + end)
    assert seconds(log.boards[0]) == list(range(25))
    assert "2 lines could not be read and are left out" in log.notes


def test_a_file_that_is_read_in_pieces_has_one_order_of_day_and_month(tmp_path: Path) -> None:
    """A megabyte of one day does not say which it is; a piece behind it does, and two must not say different things."""

    def day(date: str) -> str:
        return "".join(f"{date}/2026 {n // 3600:02d}:{n // 60 % 60:02d}:{n % 60:02d},100\n" for n in range(50_000))

    (board,) = read(tmp_path, "timestamp,gpu_power_w\n" + day("05/11") + day("05/12") + day("05/13")).boards
    assert float(board.time_ns[-1]) / 1e9 == 2 * 86400 + 49_999
    assert "day or with the month" in refused(tmp_path, "timestamp,gpu_power_w\n" + day("13/05") + day("05/14"))


def test_lines_of_a_stamp_alone_and_columns_that_are_never_filled_lose_no_reading(tmp_path: Path) -> None:
    rows = "".join(f"{1754585903 + 5 * at},card0,15{at}.5\n{1754585903 + 5 * at},\n" for at in range(4))
    log = read(tmp_path, f"timestamp,device,power_watts,power_cap_watts\n{rows}")
    assert values(log.boards[0], "power_average_w") == [150.5, 151.5, 152.5, 153.5]
    assert "3 lines could not be read and are left out" in log.notes, "and the last, which may go on"


def test_one_reading_of_each_board_is_said_though_no_energy_follows(tmp_path: Path) -> None:
    text = "timestamp,index,power.draw [W]\n2026/01/02 10:00:00.000,0,82.53 W\n2026/01/02 10:00:00.000,1,32.15 W\n"
    said = "GPU 0: 1 reading, 82.53 W; GPU 1: 1 reading, 32.15 W; no energy follows of fewer than two readings"
    assert said in refused(tmp_path, text)


def test_boards_side_by_side_in_json_lines_are_boards_and_a_processor_is_none(tmp_path: Path) -> None:
    def lines(first: str, second: str) -> str:
        stamped = ((f"2024-03-05T14:00:{at:02d}Z", 200 + at % 2) for at in range(30))
        return "".join(
            json.dumps({"ts": stamp, first: {"power_w": 300.5}, second: {"power_w": watts}}) + "\n"
            for stamp, watts in stamped
        )

    log = read(tmp_path, lines("gpu0", "gpu1"))
    assert [len(board.time_ns) for board in log.boards] == [30, 30]
    assert set(values(log.boards[0], "power_average_w")) == {300.5}
    (board,) = read(tmp_path, lines("cpu", "gpu")).boards
    assert set(values(board, "power_average_w")) == {200, 201}


@pytest.mark.parametrize(("heading", "named"), [("gpu", ("0", "1")), ("pci.bus_id", ("00:1B.0", "00:1C.0"))])
def test_boards_of_several_hosts_with_one_index_are_different_boards(
    tmp_path: Path, heading: str, named: tuple[str, str]
) -> None:
    rows = "".join(
        f"{1709647200 + 5 * at},n{host},{named[gpu]},{100 * (1 + host) + 50 * gpu}\n"
        for at in range(3) for host in (0, 1) for gpu in (0, 1)
    )  # fmt: skip
    log = read(tmp_path, f"timestamp,host,{heading},power_w\n{rows}")
    assert [values(board, "power_average_w")[0] for board in log.boards] == [100, 150, 200, 250]
    assert {len(board.time_ns) for board in log.boards} == {3}
    assert not any("share a stamp" in note for note in log.notes)
