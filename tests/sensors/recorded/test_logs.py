"""Logs that other tools wrote, read as recordings of boards."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from fixtures.log_samples import (
    DCGM,
    DMON,
    DMON_DATED,
    LACT,
    MLPERF,
    PLAIN,
    SAMPLES,
    SEMICOLONS,
    SMI_UNITS,
    ZEUS_MONITOR,
    in_every_encoding,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.sensors.clock import VirtualClock
from app.sensors.recorded.gpu import RecordedGpu
from app.sensors.recorded.logs.cells import Block, read_numbers
from app.sensors.recorded.logs.read import Log, is_log, read_log
from app.sensors.recorded.recording import Recording
from app.sensors.select import open_gpu


def read(tmp_path: Path, text: str | bytes, **options: float) -> Log:
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_log(path, **options)


def values(recording: Recording, name: str) -> list[float]:
    place = [channel.name for channel in recording.channels].index(name)
    return [float(value) for value in recording.values[:, place]]


def seconds(recording: Recording) -> list[float]:
    return [time / 1e9 for time in recording.time_ns.tolist()]


def refused(tmp_path: Path, text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy
    assert "log.csv" in caught.value.where
    return caught.value


@pytest.mark.parametrize("kind", SAMPLES)
def test_every_tools_log_is_known_by_its_content_and_replays_as_a_board(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(SAMPLES[kind])
    assert is_log(path) or kind in ("semicolons",)  # three rows of plain times may be a table
    for board in read_log(path).boards:
        gpu = RecordedGpu(board, clock=VirtualClock())
        reading = gpu.read()
        assert len(reading.values) == len(gpu.channels)
        assert gpu.info.source == "recorded"


@pytest.mark.parametrize("without_units", [False, True])
def test_a_query_of_two_boards_gives_two_with_every_channel_and_unknown_cells_as_nan(
    tmp_path: Path, without_units: bool
) -> None:
    log = read(tmp_path, SAMPLES["nvidia-smi without units"] if without_units else SMI_UNITS)
    first, second = log.boards
    assert (first.info.name, second.title) == ("NVIDIA A100-SXM4-80GB", "log#1")
    assert values(first, "power_instant_w") == [60.5, 100.5, 140.5]
    assert seconds(first) == [0.0, 0.5, 1.0]
    np.testing.assert_equal(values(second, "power_instant_w"), [70.0, np.nan, 90.0])
    assert values(first, "graphics_clock_mhz") == [1410, 1395, 1395]
    assert values(first, "performance_state") == [0, 0, 0]
    assert values(first, "event_reasons") == [1, 4, 4]
    assert np.isnan(values(first, "fan_percent")).all()


def test_dmon_without_times_assumes_its_default_and_says_so_and_takes_another_step(tmp_path: Path) -> None:
    log = read(tmp_path, DMON)
    assert [values(board, "power_average_w") for board in log.boards] == [[61, 101, 141], [70, 72, 74]]
    assert seconds(log.boards[0]) == [0, 1, 2]
    assert "1 s between two are assumed" in log.notes[0]
    log = read(tmp_path, DMON, interval_s=0.25)
    assert seconds(log.boards[1]) == [0, 0.25, 0.5]


def test_dmon_with_times_goes_over_midnight(tmp_path: Path) -> None:
    (board,) = read(tmp_path, DMON_DATED).boards
    assert seconds(board) == [0, 1, 2]
    assert values(board, "power_average_w") == [61, 101, 141]


def test_times_of_the_day_go_over_midnight_too(tmp_path: Path) -> None:
    (board,) = read(tmp_path, "time,watts\n23:59:59.5,10\n23:59:59.9,11\n00:00:00.3,12\n00:00:00.7,13\n").boards
    assert seconds(board) == pytest.approx([0, 0.4, 0.8, 1.2])


def test_dcgm_has_power_and_the_counter_in_joules(tmp_path: Path) -> None:
    first, second = read(tmp_path, DCGM).boards
    assert values(first, "energy_j") == [5000, 5081, 5202]
    np.testing.assert_equal(values(second, "power_average_w"), [np.nan, 75.5, 76.5])
    assert values(first, "sm_clock_mhz") == [1410] * 3


def test_lact_counts_milliseconds_and_tells_its_two_powers_apart(tmp_path: Path) -> None:
    (board,) = read(tmp_path, LACT).boards
    assert seconds(board) == [0, 0.5, 1.0]
    assert values(board, "power_instant_w") == [250.5, 260.5, 270.5]
    assert values(board, "power_average_w") == [248, 249, 250]
    assert values(board, "memory_used_mib") == [4096] * 3
    assert board.info.power_limit.current_w == 280


def test_zeus_writes_milliwatts_and_its_last_line_may_be_cut_off(tmp_path: Path) -> None:
    log = read(tmp_path, ZEUS_MONITOR)
    assert values(log.boards[0], "power_average_w") == pytest.approx([32.402, 32.402, 32.312])
    assert seconds(log.boards[0])[1] == pytest.approx(0.052906263, abs=1e-9)
    assert any("mW" in note for note in log.notes)
    first, second = read(tmp_path, SAMPLES["Zeus power"]).boards
    assert (values(first, "power_instant_w"), values(second, "power_instant_w")) == (
        [65.15, 67.15, 69.15],
        [70.2, 70.4, 70.6],
    )


def test_mlperf_states_the_watts_of_the_whole_machine_with_the_day_first(tmp_path: Path) -> None:
    (board,) = read(tmp_path, MLPERF).boards
    assert values(board, "power_instant_w") == [22.95, 23.08, 22.99]
    assert seconds(board) == pytest.approx([0, 1.004, 2.009])


def test_a_logger_with_semicolons_decimal_commas_and_milliwatts(tmp_path: Path) -> None:
    (board,) = read(tmp_path, SEMICOLONS).boards
    assert values(board, "power_average_w") == pytest.approx([28.873, 28.789, 28.9])
    assert seconds(board) == pytest.approx([0, 0.06, 0.12])


@pytest.mark.parametrize("kind", SAMPLES)
def test_line_ends_encodings_and_compression_change_nothing(kind: str, tmp_path: Path) -> None:
    (plain, *others) = [read(tmp_path, content) for content in in_every_encoding(SAMPLES[kind])]
    others.append(read(tmp_path, gzip.compress(SAMPLES[kind].encode())))
    for other in others:
        assert [board.title for board in other.boards] == [board.title for board in plain.boards]
        for one, another in zip(plain.boards, other.boards, strict=True):
            np.testing.assert_array_equal(one.values, another.values)
            np.testing.assert_array_equal(one.time_ns, another.time_ns)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no log of power"),
        ("timestamp,temperature\n1,2\n", "no log of power"),
        ("name, power.draw\n", "fewer than two readings"),
        ("clock,power\n1,2\n3,4\n", "times of its readings"),
        ("timestamp,power\n2026-13-45 00:00:00,5\n2026-13-45 00:00:01,6\n", "line 2 is not laid out"),
        ("timestamp,power\n2026-04-19 00:00:00,5\n2O26-04-19 00:00:01,6\n", "line 3 is not laid out"),
        ("timestamp,power\nyesterday,5\nx,6\n", "'yesterday' is no time"),
        ("timestamp,power\n1,5\n2,lots\n3,7\n", "line 3, column 'power': 'lots' is not a number"),
        ("timestamp,power\n3,5\n2,6\n1,6\n0,6\n", "time does not go forward"),
        ("timestamp,power\n1,5\n2,5,6\n3\n4,5\n5,5\n", "line 3 is not laid out as the others"),
        ("2026/04/19 17:05:55.470, 9 %, 525 MHz\n2026/04/19 17:05:55.570, 9 %, 525 MHz\n", "no log of power"),
    ],
)
def test_what_is_not_understood_is_one_line_with_the_remedy(tmp_path: Path, text: str, what: str) -> None:
    assert what in refused(tmp_path, text).what


def test_without_a_header_the_units_in_the_cells_say_what_they_are(tmp_path: Path) -> None:
    rows = [f"2026/04/19 17:05:{n:02d}.470, {n} %, 1 %, {100 + n}.5 W, 525 MHz" for n in range(5)]
    (board,) = read(tmp_path, "\n".join(rows) + "\n").boards
    assert values(board, "power_average_w") == [100.5, 101.5, 102.5, 103.5, 104.5]
    assert values(board, "utilisation_percent") == [0, 1, 2, 3, 4]
    assert values(board, "sm_clock_mhz") == [525] * 5
    assert seconds(board) == [0, 1, 2, 3, 4]


def test_microseconds_since_1970_stay_whole(tmp_path: Path) -> None:
    rows = "".join(f"{1795469288030613 + 20057 * n},{130 + n}\n" for n in range(5))
    (board,) = read(tmp_path, f"timestamp_us,power_w\n{rows}").boards
    assert board.time_ns.tolist() == [20_057_000 * n for n in range(5)]


def test_nanoseconds_since_1970_are_times(tmp_path: Path) -> None:
    rows = [f"{1747583343809690966 + n * 100_000_000},{13 + n}" for n in range(5)]
    (board,) = read(tmp_path, "Timestamp (ns),Power Draw (W)\n" + "\n".join(rows)).boards
    assert seconds(board) == pytest.approx([0, 0.1, 0.2, 0.3, 0.4], abs=1e-6)


READINGS = [{"timestamp": f"2026-01-02T03:04:{n:02d}", "gpu": {"power_draw": 50.0 + n}, "name": "x"} for n in range(30)]


@pytest.mark.parametrize(
    "text",
    [
        "".join(json.dumps(row) + "\n" for row in READINGS),
        json.dumps(READINGS),
        json.dumps({"statistics": {"mean": 3}, "raw": READINGS}, indent=1),
    ],
    ids=["lines", "list", "within"],
)
def test_readings_in_json_are_a_log(tmp_path: Path, text: str) -> None:
    (board,) = read(tmp_path, text).boards
    assert is_log(tmp_path / "log.csv")
    assert values(board, "power_instant_w") == [50.0 + n for n in range(30)]
    assert seconds(board) == list(range(30))


def test_runs_in_json_that_come_rarely_are_no_log(tmp_path: Path) -> None:
    runs = [{"timestamp": f"2026-01-02T{n % 24:02d}:04:00", "power_w": 50.0 + n, "time_s": 2.0} for n in range(24)]
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(runs))
    assert not is_log(path)


def test_results_of_a_tuner_and_runs_with_their_speed_are_no_log(tmp_path: Path) -> None:
    """They have stamps and powers as well, seconds apart."""
    stamps = [f"2026-01-02 03:04:{n:02d}.5" for n in range(30)]
    entries = [
        {"block": n, "time": 5.0 + n, "nvml_power": 90.0 + n, "compile_time": 3.0, "timestamp": stamp}
        for n, stamp in enumerate(stamps)
    ]
    runs = [{"timestamp": stamp, "power_w": 90.0 + n, "tok_s": 5.0 + n} for n, stamp in enumerate(stamps)]
    for document in (entries, {"cache": {str(n): entry for n, entry in enumerate(entries)}}, runs):
        path = tmp_path / "results.json"
        path.write_text(json.dumps(document))
        assert not is_log(path)


def test_tegrastats_has_the_power_of_the_board_and_not_that_of_its_parts(tmp_path: Path) -> None:
    line = "10-01-2025 20:05:{:02d} RAM 2274/6834MB (lfb 27x4MB) CPU [99%@1189,off] GR3D_FREQ 22% VDD_IN {}mW/5542mW"
    rows = [line.format(n, 5000 + n) + " VDD_CPU_GPU_CV 1594mW/1594mW" for n in range(5)]
    (board,) = read(tmp_path, "\n".join(rows) + "\n").boards
    assert values(board, "power_instant_w") == pytest.approx([5 + n / 1000 for n in range(5)])


def test_rails_of_a_jetson_without_stamps_are_a_second_apart_as_the_tool_writes_them(tmp_path: Path) -> None:
    line = "RAM 483/7850MB (lfb 407x4MB) CPU [72%@2035] GR3D_FREQ 0%@1300 VDD_SYS_GPU 304/304 VDD_IN {}/4687\n"
    printed = read(tmp_path, "Tue Jan 26 18:22:31 UTC 2021\n" + "".join(line.format(4000 + n) for n in range(4)))
    table = read(tmp_path, "POM_5V_IN (mW),POM_5V_GPU (mW)\n" + "".join(f"{4000 + n},300\n" for n in range(4)))
    for log in (printed, table):
        (board,) = log.boards
        assert values(board, "power_instant_w") == pytest.approx([4 + n / 1000 for n in range(4)])
        assert log.assumed_step_s == 1.0
        assert any("1 s between two are assumed, as tegrastats does by default" in note for note in log.notes)


def test_screens_of_nvidia_smi_are_readings_of_each_board_under_the_stamp_above(tmp_path: Path) -> None:
    screen = """\
Tue Oct 29 19:00:{second:02d} 2024
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|   0  NVIDIA L40S                    On  |   00000000:4A:00.0 Off |                    0 |
| N/A   27C    P8             {one}W /  350W |       0MiB /  46068MiB |      0%      Default |
|   1  NVIDIA L40S                    On  |   00000000:4B:00.0 Off |                    0 |
| N/A   27C    P8             {other}W /  300W |       0MiB /  46068MiB |      0%      Default |
|    0   N/A  N/A      1234      C   python                                     300MiB |
"""
    text = "".join(screen.format(second=n, one=30 + n, other=60 + n) for n in range(4))
    log = read(tmp_path, text)
    assert [values(board, "power_average_w") for board in log.boards] == [[30, 31, 32, 33], [60, 61, 62, 63]]
    assert [board.info.power_limit.current_w for board in log.boards] == [350.0, 300.0]
    assert is_log(tmp_path / "log.csv")


def test_a_line_for_each_field_gives_the_power_of_each_board(tmp_path: Path) -> None:
    rows = [
        f"{board},{1718783836956328 + 500_000 * n},{field},{value}\n"
        for board in range(2)
        for n in range(4)
        for field, value in (("throttle_reason_idle", 1), ("power_usage_instant", 70 + 10 * board + n))
    ]
    log = read(tmp_path, "GPUId,TimeStampUs,Field,Values\n" + "".join(rows))
    assert [values(board, "power_instant_w") for board in log.boards] == [[70, 71, 72, 73], [80, 81, 82, 83]]
    assert float(log.boards[0].time_ns[-1]) / 1e9 == pytest.approx(1.5)


def test_cells_without_a_heading_are_left_out_unless_those_before_them_are_of_other_columns(tmp_path: Path) -> None:
    rows = "".join(f"{n}\t{20 + n}\t18\t\n" for n in range(5))
    (board,) = read(tmp_path, "time [s]\tpower [W]\n" + rows).boards
    assert values(board, "power_average_w") == [20, 21, 22, 23, 24]
    quoted = "".join(f'{n},{20 + n},"NVIDIA, A100"\n' for n in range(5))
    assert values(read(tmp_path, "time [s],power [W],name\n" + quoted).boards[0], "power_instant_w")[0] == 20
    shifted = "".join(f"2026-05-06 10:06:4{n},2026/05/06 10:06:4{n}.5,RTX 4060,42,2.5\n" for n in range(5))
    with pytest.raises(InputError, match="not laid out as the others"):
        read(tmp_path, "time,temp_c,gpu_name,power_w\n" + shifted)


def test_readings_that_share_a_stamp_of_whole_seconds_are_spread_over_it(tmp_path: Path) -> None:
    rows = "".join(f"2026-05-06 10:06:{second:02d},{100 + second}\n" for second in range(10) for _ in range(5))
    log = read(tmp_path, "timestamp,power_w\n" + rows)
    (board,) = log.boards
    assert len(board.time_ns) == 50
    assert float(np.median(np.diff(board.time_ns))) / 1e9 == pytest.approx(0.2)
    assert any("spread evenly" in note for note in log.notes)


def test_powers_beside_those_of_numbered_boards_are_of_the_host(tmp_path: Path) -> None:
    rows = "".join(f"{1746820000 + n};900;{50 + n};0;{n % 3};10-05-2025\n" for n in range(5))
    log = read(tmp_path, "TIMESTAMP;DC_NODE_POWER_W;GPU0_POWER_W;GPU1_POWER_W;ELAPSED;DATE\n" + rows)
    (board,) = log.boards
    assert values(board, "power_average_w") == [50, 51, 52, 53, 54]


def test_a_heading_that_says_w_where_no_board_draws_so_much_is_contradicted(tmp_path: Path) -> None:
    log = read(tmp_path, "timestamp,gpu_power_w\n" + "".join(f"{n},{6600 + n}\n" for n in range(5)))
    assert values(log.boards[0], "power_average_w") == pytest.approx([6.6 + n / 1000 for n in range(5)])
    assert "'gpu_power_w' says W, but no board draws 6602 W: its numbers are read as mW" in log.notes


def test_an_interval_and_a_total_that_the_readings_contradict_are_named_with_both_figures(tmp_path: Path) -> None:
    rows = "".join(f"{n},100\n" for n in range(11))
    true = read(tmp_path, "# interval: 1 s\n# total energy: 1000 J\ntime,power\n" + rows)
    assert not any("says" in note for note in true.notes)
    false = read(tmp_path, "# interval: 100 ms\n# total energy = 0.1 kJ\ntime,power\n" + rows)
    assert "'interval' says 100 (ms), but there are 1 s between readings" in false.notes
    assert "'total energy' says 0.1 (kJ), but there are 1000 J by the trapezoid" in false.notes
    document = {"interval": 0.1, "statistics": {"total_energy": 300.0}, "raw": READINGS}
    notes = read(tmp_path, json.dumps(document)).notes
    assert "'interval' says 0.1 (no unit), but there are 1 s between readings" in notes
    assert any("'total_energy' says 300 (no unit), but there are 1870 J" in note for note in notes)


def test_boards_are_named_in_the_order_in_which_they_come(tmp_path: Path) -> None:
    names = ("zeta", "alpha", "mid")
    rows = [f"{n},{name},{10 * place}" for n in range(5) for place, name in enumerate(names, 1)]
    log = read(tmp_path, "time,sensor_name,watts\n" + "\n".join(rows) + "\n")
    assert [values(board, "power_instant_w")[0] for board in log.boards] == [10, 20, 30]


def test_logs_that_begin_alike_are_different_boards_and_open_again_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same name in two folders, and names that differ behind their first dot only."""
    places = [tmp_path / "a" / "power.1.csv", tmp_path / "a" / "power.2.csv", tmp_path / "b" / "power.1.csv"]
    for watts, path in enumerate(places, 100):
        path.parent.mkdir(exist_ok=True)
        path.write_text("timestamp,power\n" + "".join(f"{second},{watts}\n" for second in range(5)))
    monkeypatch.chdir(tmp_path / "a")
    boards = [open_gpu(f"recorded:{name}") for name in ("power.1.csv", "power.2.csv", str(places[2]))]
    assert len({gpu.info.uuid for gpu in boards}) == 3
    monkeypatch.chdir(tmp_path)
    for gpu in boards:
        again = open_gpu(gpu.info.uuid)
        assert again.info.uuid == gpu.info.uuid
        assert again.read().values == gpu.read().values


def test_a_board_and_the_step_are_chosen_behind_the_file(tmp_path: Path) -> None:
    path = tmp_path / "dmon.txt"
    path.write_text(DMON)
    assert open_gpu(f"recorded:{path}").info.uuid == f"recorded:{path.resolve()}#0"
    gpu = open_gpu(f"recorded:{path}#1@0.5", speed=float("inf"))
    assert gpu.info.uuid == f"recorded:{path.resolve()}#1@0.5"
    first = gpu.read()
    gpu.clock.wait(0.5)
    assert gpu.read().time_ns - first.time_ns == 500_000_000
    for wrong in ("#7", "#@0", "#1@fast"):
        with pytest.raises(InputError):
            open_gpu(f"recorded:{path}{wrong}")


def test_a_table_of_when_and_how_long_is_no_log_and_a_log_with_the_time_passed_is_one(tmp_path: Path) -> None:
    header, rows = "block_size_x,timestamp_s,time_s,energy_j,power_w\n", range(1, 12)
    (tmp_path / "table.csv").write_text(
        header + "".join(f"{32 * n},{1.7e9 + n},{1e-3 / n},{0.2 / n},{200 + n}\n" for n in rows)
    )
    assert not is_log(tmp_path / "table.csv")
    (tmp_path / "log.csv").write_text(
        "timestamp_s,elapsed_s,power_w\n" + "".join(f"{1.7e9 + n},{n},{200 + n}\n" for n in rows)
    )
    assert is_log(tmp_path / "log.csv")


def test_a_table_of_measurements_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("clock_mhz,time_s,power_w\n" + "".join(f"{1000 + n},{5 - n % 3},{100 + n}\n" for n in range(40)))
    assert not is_log(path)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.decimals(-(10**9), 10**9, places=4, allow_nan=False).map(str), min_size=1, max_size=20),
    st.sampled_from([",", ";", "\t"]),
)
def test_numbers_are_those_that_python_reads(texts: list[str], delimiter: str) -> None:
    block = Block("".join(f"{text}{delimiter} x\n" for text in texts).encode(), delimiter, 2)
    found, _, known = read_numbers(block.data, block.starts[:, 0])
    assert known.all()
    assert found.tolist() == [float(text) for text in texts]


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from(sorted(SAMPLES)), data=st.data())
def test_no_damage_to_a_log_gives_anything_but_one_clear_error(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    text = bytearray(SAMPLES[kind].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place : place + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=8))
    path = tmp_path / "damaged.csv"
    path.write_bytes(bytes(text))
    refused: InputError | None = None
    boards: tuple[Recording, ...] = ()
    try:
        is_log(path)
        boards = read_log(path).boards
    except InputError as error:
        refused = error
    if refused is not None:
        assert "\n" not in str(refused)
        assert len(str(refused)) < 800
    for board in boards:
        assert len(board.time_ns) >= 2
        assert (np.diff(board.time_ns) > 0).all()
        assert board.values.shape == (len(board.time_ns), len(board.channels))


def test_a_plain_logger_keeps_its_steps(tmp_path: Path) -> None:
    (board,) = read(tmp_path, PLAIN).boards
    assert seconds(board) == pytest.approx([0, 0.06, 0.12], abs=1e-6)
