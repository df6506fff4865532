"""Logs of which a plain reading says what is not so: times without a unit, powers that cannot be, runs side by side."""

from __future__ import annotations

import json
import math
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


@pytest.mark.parametrize("figure", ["tokens_per_s", "throughput", "latency_ms", "fps", "images_sec"])
def test_runs_one_after_the_other_are_no_log(tmp_path: Path, figure: str) -> None:
    path = tmp_path / "sweep.csv"
    rows = (f"2026-05-01T12:{2 * row:02d}:00Z,{150 + 25 * row},{140 + 24 * row},{1896 + row}\n" for row in range(10))
    path.write_text(f"timestamp,power_limit_w,power_draw_w,{figure}\n" + "".join(rows))
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


def test_a_loop_over_boards_may_fall_twice_into_a_second(tmp_path: Path) -> None:
    """As on two H200 boards, one at work: 76 readings by a loop with `date +%s` and a pause of 0.9 s."""
    seconds = [row - row // 9 for row in range(38)]
    text = "".join(
        f"{1_796_076_206 + second},{watts:.2f}\n"
        for row, second in enumerate(seconds)
        for watts in (77.7 + row % 3 / 50, 513.4 + row % 4 if 6 < row < 28 else 112.0)
    )
    log = read(tmp_path, "timestamp,power_w\n" + text)
    assert [len(board.time_ns) for board in log.boards] == [38, 38]
    assert joules(log)[0] == pytest.approx(77.7 * (seconds[-1] - seconds[0]), rel=0.02)


def test_readings_of_each_second_that_are_alike_are_of_one_board_and_asked_about(tmp_path: Path) -> None:
    log = read(tmp_path, of_whole_seconds(2, 0.5))
    (board,) = log.boards
    assert len(board.time_ns) == 80
    assert "is not certain" in notes(log)
    assert "2 boards" in notes(log)
    assert "not certain" not in notes(read(tmp_path, of_whole_seconds(2, 0.5).replace("05:07,100.50", "05:08,100.50")))


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


@pytest.mark.parametrize("power", ["", "power_w"])
@pytest.mark.parametrize("unit", ["j", "wh"])
def test_energies_of_each_interval_are_no_counter(tmp_path: Path, unit: str, power: str) -> None:
    watts = [200 + 50 * (row % 3) for row in range(41)]
    each = [watt * 10 / (3600 if unit == "wh" else 1) for watt in watts]
    cells = (
        f"{row * 10},{energy:.6f},{watt if power else ''}\n"
        for row, (energy, watt) in enumerate(zip(each, watts, strict=True))
    )
    log = read(tmp_path, f"time_s,energy_{unit},{power}\n" + "".join(cells))
    energy = recorded_energy(log.boards[0])
    assert energy.counter is not None
    assert energy.counter.energy_j == pytest.approx(sum(watts[1:]) * 10, rel=1e-3)
    assert "not certain" in notes(log)
    assert "starts again" not in notes(log)


def test_energies_of_each_interval_that_rise_are_known_by_the_power(tmp_path: Path) -> None:
    rows = "".join(f"{2 * row},{100 + 5 * row},{200 + 10 * row}\n" for row in range(30))
    log = read(tmp_path, "time_s,power_w,energy_j\n" + rows)
    energy = recorded_energy(log.boards[0])
    assert energy.counter is not None
    assert energy.counter.energy_j == pytest.approx(172.5 * 58, rel=0.05)
    assert "not certain" in notes(log)


def test_a_counter_that_the_power_contradicts_is_not_preferred(tmp_path: Path) -> None:
    log = read(tmp_path, "time_s,power_w,energy_j\n" + "".join(f"{row},200,{0.2 * row:.1f}\n" for row in range(40)))
    remarks = " ".join(recorded_energy(log.boards[0]).remarks)
    assert "prefer" not in remarks
    assert "not certain" in remarks


@pytest.mark.parametrize(
    ("label", "names"),
    [
        ("phase", ["a", "b"]),
        ("run", ["run 1", "run 2"]),
        ("batch_size", ["run 1", "run 2"]),
        ("gpu", ["a", "b"]),
        ("uuid", ["a", "b"]),
    ],
)
def test_a_time_that_starts_again_with_a_label_is_that_of_a_log(tmp_path: Path, label: str, names: list[str]) -> None:
    rows = "".join(f"{run},{at},{watts + at % 2}\n" for run, watts in (("a", 200), ("b", 300)) for at in range(31))
    log = read(tmp_path, f"{label},time_s,power_w\n" + rows)
    assert joules(log) == [pytest.approx(200.5 * 30), pytest.approx(300.5 * 30)]
    if label not in ("gpu", "uuid"):
        assert [board.info.name for board in log.boards] == names
        assert "time starts again 1 time" in notes(log)


@pytest.mark.parametrize(
    "times", [[2**at for at in range(12)], [12 - 0.9**at for at in range(12)], [5 + at for at in range(12)]]
)
def test_run_times_that_rise_with_each_setting_are_no_log(tmp_path: Path, times: list[float]) -> None:
    path = tmp_path / "table.csv"
    rows = "".join(f"{kernel},{size},{time},{200 + size}\n" for kernel in "ab" for size, time in enumerate(times))
    path.write_text("kernel,size,time_s,power_w\n" + rows)
    assert not is_log(path)


@pytest.mark.parametrize("heading", ["meter_kwh", "energy meter [kWh]", "aenergy.total (kWh)"])
def test_a_meter_that_counts_up_is_a_counter(tmp_path: Path, heading: str) -> None:
    rows = "".join(f"2024-05-03 10:{at:02d}:12,{12.3456 + 0.002 * at:.4f}\n" for at in range(30))
    assert joules(read(tmp_path, f"time,{heading}\n" + rows)) == [pytest.approx(0.058 * 3.6e6, rel=1e-3)]


def test_no_reading_at_all_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("time_s,power_w\n" + "".join(f"{row},7.1e12\n" for row in range(40)))
    with pytest.raises(InputError, match="no energy follows"):
        read_log(path)


def answer(tmp_path: Path, *series: tuple[dict[str, str], int]) -> Path:
    """Of Prometheus: series of 12 readings of their labels and a value, every 15 s."""
    stamps = [1772719400 + 15 * at for at in range(12)]
    found = [{"metric": labels, "values": [[at, str(value)] for at in stamps]} for labels, value in series]
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"data": {"resultType": "matrix", "result": found}}))
    return path


@pytest.mark.parametrize(
    ("metric", "scale"),
    [
        ("pdu_power_watts", 1.0),
        ("habanalabs_power_mW", 1e-3),
        ("DCGM_FI_DEV_POWER_USAGE", 1.0),
        ("rack_power_kW", 1e3),
        ("rack_power_kilowatts", 1e3),
        ("scaph_host_power_microwatts", 1e-6),
    ],
)
def test_a_metric_of_prometheus_names_the_unit(tmp_path: Path, metric: str, scale: float) -> None:
    log = read_log(answer(tmp_path, ({"__name__": metric, "gpu": "0"}, 300)))
    assert joules(log) == [pytest.approx(300 * scale * 165)]
    assert log.tool == "Prometheus"
    assert "power.draw" not in notes(log)


@pytest.mark.parametrize(
    "metric", ["nvidia_smi_power_limit_watts", "DCGM_FI_DEV_POWER_MGMT_LIMIT", "DCGM_FI_DEV_POWER_VIOLATION"]
)
def test_a_metric_of_prometheus_that_is_no_power_that_was_drawn_is_no_log(tmp_path: Path, metric: str) -> None:
    assert not is_log(answer(tmp_path, ({"__name__": metric, "gpu": "0"}, 400)))


def test_a_limit_in_an_answer_of_prometheus_is_beside_the_power(tmp_path: Path) -> None:
    power, limit = "nvidia_smi_power_draw_watts", "nvidia_smi_enforced_power_limit_watts"
    log = read_log(answer(tmp_path, ({"__name__": power, "uuid": "a"}, 300), ({"__name__": limit, "uuid": "a"}, 400)))
    assert joules(log) == [pytest.approx(300 * 165)]
    assert log.boards[0].info.power_limit.current_w == 400


def test_powers_of_which_nothing_names_the_unit_are_in_that_which_boards_draw(tmp_path: Path) -> None:
    log = read_log(answer(tmp_path, ({"__name__": "amd_gpu_power", "gpu_power": "0"}, 300_000_000)))
    assert joules(log) == [pytest.approx(300 * 165)]
    assert "its numbers are read as µW" in notes(log)


def test_of_a_ups_in_an_answer_of_prometheus_the_real_power_counts(tmp_path: Path) -> None:
    apparent, real = ({"__name__": f"network_ups_tools_ups_{name}", "ups": "a"} for name in ("power", "realpower"))
    assert joules(read_log(answer(tmp_path, (apparent, 350), (real, 300)))) == [pytest.approx(300 * 165)]


def test_the_highest_of_an_interval_in_an_answer_of_prometheus_is_no_board(tmp_path: Path) -> None:
    mean, most = ({"__name__": "gpu_power_watts", "stat": stat} for stat in ("avg", "max"))
    assert joules(read_log(answer(tmp_path, (mean, 300), (most, 350)))) == [pytest.approx(300 * 165)]


def test_series_of_prometheus_are_known_by_every_label_in_which_they_differ(tmp_path: Path) -> None:
    labels = [{"__name__": "pdu_power_watts", "rack": rack, "phase": phase} for rack, phase in ("1a", "1b", "2a")]
    log = read_log(answer(tmp_path, *zip(labels, (100, 200, 300), strict=True)))
    assert {board.info.name: recorded_energy(board).sources[0].energy_j for board in log.boards} == {
        "1 a": pytest.approx(100 * 165),
        "1 b": pytest.approx(200 * 165),
        "2 a": pytest.approx(300 * 165),
    }


def test_a_label_of_prometheus_that_changes_with_the_work_tells_no_boards_apart(tmp_path: Path) -> None:
    path = answer(tmp_path, ({"__name__": "gpu_power_watts", "pod": "a"}, 300))
    document = json.loads(path.read_text())
    (series,) = document["data"]["result"]
    later = [[time_s + 180, value] for time_s, value in series["values"]]
    document["data"]["result"].append({"metric": {**series["metric"], "pod": "b"}, "values": later})
    path.write_text(json.dumps(document))
    assert joules(read_log(path)) == [pytest.approx(300 * 345)]


@pytest.mark.parametrize("name", ["{}", "gpu{}", "node{}", "npu_{}"])
@pytest.mark.parametrize("form", ["objects", "powers", "lists"])
def test_boards_in_json_are_known_by_the_names_they_stand_under(tmp_path: Path, form: str, name: str) -> None:
    one, other = name.format(0), name.format(1)
    stamps = range(1_760_000_000, 1_760_000_040)
    rows: object = [
        {"t": at, "gpus": {one: {"power": 200, "util": 98}, other: {"power": 300, "util": 97}}} for at in stamps
    ]
    if form == "powers":
        rows = [{"t": at, "power": {one: 200, other: 300}, "util": {one: 98, other: 97}} for at in stamps]
    elif form == "lists":
        rows = {board: [{"t": at, "power": watts} for at in stamps] for board, watts in ((one, 200), (other, 300))}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(rows))
    assert is_log(path)
    assert joules(read_log(path)) == [pytest.approx(200 * 39), pytest.approx(300 * 39)]


@pytest.mark.parametrize("time", ["t_ms", "timestamp_ms", "elapsed_ms"])
def test_times_in_ms_in_json_are_those_of_a_log(tmp_path: Path, time: str) -> None:
    rows = [{time: 500 * at, "power_w": 200} for at in range(40)]
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"interval_ms": 500, "samples": rows}))
    assert is_log(path)
    assert joules(read_log(path)) == [pytest.approx(200 * 19.5)]


@pytest.mark.parametrize("parts", [("gpu", "cpu"), ("mean", "max"), ("draw", "limit")])
def test_what_stands_beside_a_power_in_json_is_no_board(tmp_path: Path, parts: tuple[str, str]) -> None:
    rows = [{"t": 1_760_000_000 + at, "power": dict(zip(parts, (200, 300), strict=True))} for at in range(40)]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(rows))
    assert not is_log(path) or len(read_log(path).boards) == 1


@pytest.mark.parametrize("name", ["avg", "mean", "-1"])
def test_a_row_of_means_or_of_a_sum_is_no_board(tmp_path: Path, name: str) -> None:
    rows = (f"{1_760_000_000 + row},{gpu},{watts + row % 3}\n" for row in range(40) for gpu, watts in
            (("0", 60), ("1", 90), (name, 75)))  # fmt: skip
    log = read(tmp_path, "timestamp,gpu,power_w\n" + "".join(rows))
    assert len(log.boards) == 2
    assert f"{name} is no board, and is left out" in notes(log)


@pytest.mark.parametrize("heading", ["power_kWatt", "power (kWatts)", "Power (kilo watts)", "power (kW)"])
def test_kilowatts_are_known_in_every_spelling(tmp_path: Path, heading: str) -> None:
    log = read(tmp_path, f"time_s,{heading}\n" + "".join(f"{row},{1.2 + row % 3 / 10:g}\n" for row in range(40)))
    assert joules(log) == [pytest.approx(1300 * 39, rel=0.01)]


@pytest.mark.parametrize(("heading", "unit"), [("power (MW)", 1e6), ("power (mW)", 1e-3), ("power_MW", 1e6)])
def test_megawatts_are_read_where_milliwatts_would_be_nothing(tmp_path: Path, heading: str, unit: float) -> None:
    rows = "".join(f"{row},{(200 + row % 3) / unit:.6g}\n" for row in range(40))
    log = read(tmp_path, f"time_s,{heading}\n{rows}")
    assert joules(log) == [pytest.approx(201 * 39, rel=0.01)]
    assert ("read as a million" in notes(log)) is (unit > 1)


@pytest.mark.parametrize(("heading", "begin"), [("energy (MWh)", 0), ("energy (MWh)", 12), ("energy (mWh)", 0)])
def test_megawatt_hours_are_read_where_thousandths_would_be_nothing(tmp_path: Path, heading: str, begin: int) -> None:
    unit = 3.6e9 if "M" in heading else 3.6
    rows = "".join(f"{row},{begin + 200 * row / unit:.12f}\n" for row in range(40))
    log = read(tmp_path, f"time_s,{heading}\n{rows}")
    assert joules(log) == [pytest.approx(200 * 39, rel=1e-4)]


@pytest.mark.parametrize("energy", ["energy_j", "total_energy_j", "energy_total_wh", "cumulative_energy_j"])
def test_a_mean_since_the_beginning_beside_its_counter_is_not_integrated(tmp_path: Path, energy: str) -> None:
    drawn = [70] * 10 + [300 + at % 3 for at in range(30)]
    joule = 3600.0 if energy.endswith("wh") else 1.0
    rows = [f"{at},{sum(drawn[:at]) / at:.2f},{sum(drawn[:at]) / joule:.4f}\n" for at in range(1, 41)]
    log = read(tmp_path, f"time_s,avg_power_w,{energy}\n" + "".join(rows))
    assert joules(log) == [pytest.approx(sum(drawn[1:]), rel=1e-3)]
    assert "mean of all until then" in notes(log)


@pytest.mark.parametrize("watts", [[200] * 40, [60 + 240 * (at > 9) for at in range(40)]])
def test_a_power_beside_a_counter_that_is_no_mean_since_the_beginning_is_integrated(
    tmp_path: Path, watts: list[int]
) -> None:
    rows = "".join(f"{at},{watts[at]},{sum(watts[:at])}\n" for at in range(40))
    log = read(tmp_path, "time_s,power_w,total_energy_j\n" + rows)
    assert len(recorded_energy(log.boards[0]).sources) == 2


@pytest.mark.parametrize("day", ["", "20240503,"])
@pytest.mark.parametrize("step", [1, 5])
def test_times_of_the_day_may_have_no_colons(tmp_path: Path, day: str, step: int) -> None:
    seconds = [10 * 3600 + 59 * 60 + at * step for at in range(80)]
    rows = [f"{day}{at // 3600:02d}{at // 60 % 60:02d}{at % 60:02d},{60 + at % 3}\n" for at in seconds]
    log = read(tmp_path, ("date,time,power_w\n" if day else "time,power_w\n") + "".join(rows))
    assert log.boards[0].time_ns[-1] == 79 * step * 1_000_000_000
    assert "names no unit" not in notes(log)
    assert math.isnan(log.boards[0].began_s) is not bool(day)


@pytest.mark.parametrize("step", [1, 7, 100])
def test_seconds_are_no_times_of_the_day(tmp_path: Path, step: int) -> None:
    rows = "".join(f"{10_000 + at * step},{60 + at % 3}\n" for at in range(40))
    assert read(tmp_path, "time,power_w\n" + rows).boards[0].time_ns[-1] == 39 * step * 1_000_000_000


def test_the_thousandths_of_a_stamp_behind_a_comma_are_no_watts(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text(
        "".join(f"2025-03-04 14:21:{s:02d},{s + 100} INFO gpu0={s + 58}.5W gpu1={s + 59}.5W\n" for s in range(40))
    )
    assert not is_log(path)


def test_events_of_weights_and_biases_are_readings_however_few(tmp_path: Path) -> None:
    rows = (
        {
            "system.gpu.0.powerWatts": 70.5 + at,
            "system.gpu.1.powerWatts": 60.5,
            "system.cpu": 7.5,
            "_runtime": 15.0 * at,
        }
        for at in range(8)
    )
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [len(board.time_ns) for board in read_log(path).boards] == [8, 8]


def test_milliseconds_of_a_microcontroller_are_times(tmp_path: Path) -> None:
    path = tmp_path / "ina226.csv"
    path.write_text("millis,bus_V,power_mW\n" + "".join(f"{104233 + 20 * at},5.0,{460 + at}\n" for at in range(30)))
    (board,) = read_log(path).boards
    assert board.time_ns[-1] - board.time_ns[0] == 29 * 20_000_000
