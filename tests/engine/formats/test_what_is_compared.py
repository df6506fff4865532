"""What is compared with what: texts that keep rows apart, what is asked about them, and tables that others lay out."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from app.base.errors import InputError
from app.engine.analysis.costs import costs_of
from app.engine.formats.any_table import read_table
from app.engine.formats.columns import parse_columns
from app.engine.formats.headings import Column, Role
from app.engine.formats.recording import Recording
from app.engine.formats.roles import roles_of
from app.engine.formats.table_columns import TableColumns
from app.sensors.recorded.logs.read import is_log, read_log

TASKS = """task,tile,time_ms,power_w
short,8,1.5,210.1
short,16,1.25,215.3
long,8,14.5,230.2
long,16,19.5,235.7
"""


def found(text: str) -> dict[str, Column]:
    return {column.heading: column for column in roles_of(parse_columns(text, "file.csv").by_kind())}


def read(tmp_path: Path, text: str, name: str = "table.csv", columns: TableColumns | None = None) -> Recording:
    path = tmp_path / name
    path.write_text(text)
    return read_table(path, columns)


def asked(recording: Recording) -> list[str]:
    return [note for note in recording.notes if "it is not certain" in note]


def test_texts_beside_settings_of_which_no_word_says_what_they_are_keep_rows_apart_and_are_asked_about(
    tmp_path: Path,
) -> None:
    text = TASKS.replace("task", "topic")
    assert found(text)["topic"].candidates == (Role.KERNEL, Role.PARAMETER)
    (question,) = asked(recording := read(tmp_path, text))
    assert question.startswith("topic is read as kernel, but may be parameter")
    assert "--roles topic=parameter" in question
    assert recording.space().names == ("kernel", "tile")
    answered = read(tmp_path, text, columns=TableColumns.parse(roles="topic=parameter"))
    assert not asked(answered)
    assert answered.space().names == ("topic", "tile")


def test_several_of_them_are_one_question(tmp_path: Path) -> None:
    rows = [f"{one},{other},{tile},{tile + 0.25}" for one in "ab" for other in "xy" for tile in (8, 16)]
    (question,) = asked(read(tmp_path, "\n".join(("topic,mood,tile,time_ms", *rows, ""))))
    assert question.startswith("topic, mood are each read as kernel")
    assert "topic=parameter,mood=parameter" in question


@pytest.mark.parametrize("heading", ["task", "engine", "backend", "compiler"])
def test_words_that_say_what_a_text_is_need_no_question(tmp_path: Path, heading: str) -> None:
    assert not asked(read(tmp_path, TASKS.replace("task", heading)))


def test_the_only_thing_that_varies_is_what_is_compared(tmp_path: Path) -> None:
    recording = read(tmp_path, "topic,time_ms\none,1.5\ntwo,2.5\none,1.75\ntwo,2.25\n")
    assert not asked(recording)
    assert recording.space().names[0] == "topic"


def test_a_text_that_follows_from_another_tells_nothing_more() -> None:
    text = "model,family,tile,time_ms\n" + "".join(
        f"{model},{model[0]},{tile},{tile * 1.5}\n" for model in ("a1", "a2", "b1") for tile in (8, 16)
    )
    assert found(text)["family"].why == "follows from 'model'"
    assert found(text)["family"].role is Role.UNUSED


@pytest.mark.parametrize(
    ("heading", "values", "role"),
    [
        ("files", ["a_0.csv;a_1.csv", "b_0.csv;b_1.csv", "a_0.csv;a_1.csv"], Role.UNUSED),
        ("on_pareto", ["yes", "no", "no"], Role.UNUSED),
        ("cooldown_seconds", [0.0, 5.0, 0.0, 5.0], Role.PARAMETER),
        ("RPS", [8.0, 16.0, 32.0, 64.0], Role.PARAMETER),
        ("RPS", [8.1, 15.2, 30.4, 51.3], Role.THROUGHPUT),
        ("formula_flops_per_token", [1.5e9 + 0.5, 2.5e9 + 0.25, 3.1e9], Role.FIGURE),
        ("TFLOPS", [1.5, 2.5, 3.1], Role.THROUGHPUT),
        ("Avg Output Tokens", [100.0, 200.0, 100.0, 200.0], Role.FIGURE),
        ("num_layers_mean", [12.0, 24.0, 12.0, 24.0], Role.FIGURE),
        ("memory", [float(4 * n) for n in range(1000)], Role.FIGURE),
    ],
)
def test_what_is_no_choice_is_no_parameter(heading: str, values: list[object], role: Role) -> None:
    cells = np.array(values) if isinstance(values[0], float) else [str(value) for value in values]
    assert roles_of({heading: cells, "time_ms": np.linspace(1.5, 9.25, len(values))})[0].role is role


def test_a_name_with_an_underscore_is_no_number() -> None:
    assert isinstance(parse_columns("run,time\n20260624_203103,1.5\n20260624_214042,2.5\n", "x").by_kind()["run"], list)


def test_a_word_that_comes_again_among_numbers_was_chosen(tmp_path: Path) -> None:
    recording = read(tmp_path, "layers,time_ms\n10,4.5\n20,3.5\nall,1.5\nall,1.75\n")
    assert [m.configuration["layers"] for m in recording.in_file_order()] == ["10", "20", "all", "all"]


def test_a_run_without_a_setting_goes_by_the_name_of_its_file(tmp_path: Path) -> None:
    recording = read(tmp_path, json.dumps({"energy_j": 3164.5, "time_s": 22.5}), "run-1005.json")
    (run,) = recording.in_file_order()
    assert run.configuration == {"run": "run-1005"}
    assert run.values["energy_j"] == 3164.5


def test_a_summary_beside_lists_of_its_requests_is_one_row(tmp_path: Path) -> None:
    document = {
        "max_concurrency": 16, "output_throughput": 926.9, "request_throughput": 3.5, "mean_ttft_ms": 41.5,
        "generated_texts": ["one", "two"], "ttfts": [0.04, 0.05],
    }  # fmt: skip
    recording = read(tmp_path, json.dumps(document), "bench.json")
    assert len(recording) == 1
    assert next(recording.in_file_order()).configuration == {"max_concurrency": 16}


def test_metrics_of_a_run_as_aiperf_writes_them(tmp_path: Path) -> None:
    text = (
        "Metric,avg,min,max,p50,p99,std\n"
        "Request Latency (ms),6964.90,95.57,31666.91,6303.45,20855.65,4775.1\n"
        "\nMetric,Value\nOutput Token Throughput (tokens/sec),\"4,812.50\"\n"
    )  # fmt: skip
    (run,) = read(tmp_path, text, "profile_export.csv").in_file_order()
    assert run.configuration == {"run": "profile_export"}
    assert run.values["Request Latency (ms)"] == 6964.9
    assert run.values["Request Latency (ms) p99"] == 20855.65
    assert 4812.5 in run.values.values()


def test_metrics_of_kernels_as_nsight_compute_writes_them(tmp_path: Path) -> None:
    head = '"ID","Process ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Unit","Metric Value"'
    rows = [
        f'"{launch}","7","gemv","({block}, 1, 1)","(64, 1, 1)","{name}","{unit}","{value}"'
        for launch, block, time in ((0, 128, "31,808"), (1, 256, "29,504"))
        for name, unit, value in (("gpu__time_duration.sum", "ns", time), ("dram__bytes.sum", "byte", "7,104,896"))
    ]
    recording = read(tmp_path, "\n".join(("==PROF== Connected, to process 7", head, *rows, "")), "ncu.csv")
    times = {m.configuration["Block Size"]: m.values["time_s"] for m in recording.in_file_order()}
    assert times == {"(128, 1, 1)": pytest.approx(31.808e-6), "(256, 1, 1)": pytest.approx(29.504e-6)}


def test_records_of_tvms_tuner(tmp_path: Path) -> None:
    def record(tile: int, times: list[float], error: int = 0) -> str:
        knobs = [["tile_x", "sp", [-1, tile]], ["unroll", "ot", 512]]
        config = {"index": tile, "code_hash": None, "entity": knobs}
        return json.dumps({"input": ["cuda", "conv2d", [["TENSOR", [1, 8], "float32"]], {}], "config": config,
                           "result": [times, error, 1.5, 1_600_000_000.5]})  # fmt: skip

    recording = read(tmp_path, "\n".join((record(4, [2e-3, 4e-3]), record(8, [1e9], 4))), "tuned.log")
    good, bad = recording.in_file_order()
    assert good.values["time_s"] == pytest.approx(3e-3)
    assert good.configuration["tile_x"] == "-1, 4"
    assert bad.error
    assert not bad.values


@pytest.mark.parametrize("first", ["sep=;\n", ""])
def test_a_first_line_that_spreadsheets_write_for_themselves_is_none_of_the_table(tmp_path: Path, first: str) -> None:
    recording = read(tmp_path, f"{first}tile;time_ms;Noise;Noise\n8;1.5;0.25;0.5\n16;2.5;0.75;0.1\n")
    assert [m.values["time_s"] for m in recording.in_file_order()] == [pytest.approx(0.0015), pytest.approx(0.0025)]
    assert "Noise 2" in recording.value_names


def test_headings_of_a_log_may_be_units_and_mw_of_which_no_board_draws_so_little_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "power.csv"
    path.write_text("sec,mw\n" + "".join(f"{second}.5,{50 + second}.0\n" for second in range(40)))
    assert is_log(path)
    log = read_log(path)
    (board,) = log.boards
    assert float(np.nanmax(board.values)) == pytest.approx(0.089)
    assert any("less than boards draw at rest" in note for note in log.notes)


def test_runs_that_codecarbon_wrote_down_are_in_kwh_and_are_added_up(tmp_path: Path) -> None:
    text = (
        "timestamp,project_name,duration,emissions,gpu_power,gpu_energy,energy_consumed\n"
        "2026-01-02T03:04:05,one,10.0,0.1,360.0,0.001,0.002\n"
        "2026-01-02T04:04:05,two,20.0,0.2,360.0,0.002,0.0045\n"
    )
    recording = read(tmp_path, text, "emissions.csv")
    assert "all 2 rows together: 10800 J by gpu_energy (kWh)" in recording.notes
    assert "all 2 rows together: 23400 J by energy_consumed (kWh)" in recording.notes
    assert [m.values["energy_j"] for m in recording.in_file_order()] == [pytest.approx(3600), pytest.approx(7200)]


def test_units_that_fit_as_well_are_the_plainest() -> None:
    columns = roles_of(
        {"setting": np.array([1.0, 2, 3]), "duration": np.array([100.0, 200, 400]), "power": np.array([36.0, 72, 90]),
         "energy": np.array([0.001, 0.004, 0.01])}  # kWh over s, not Wh over ms
    )  # fmt: skip
    assert {column.heading: column.scale for column in columns}["energy"] == 3.6e6
    assert {column.heading: column.scale for column in columns}["duration"] == 1.0


def test_the_one_figure_of_which_nothing_says_what_it_is_is_asked_about(tmp_path: Path) -> None:
    rows = "".join(f"{limit},{value}\n" for limit, value in ((100, 9738.37), (150, 11203.5), (200, 12871.9)))
    text = "power limit (W),REFERENCE\n" + rows
    with pytest.raises(InputError, match="'REFERENCE' may be a throughput, a time, a power or an energy"):
        read(tmp_path, text)
    assert len(read(tmp_path, text, columns=TableColumns.parse(roles="REFERENCE=throughput"))) == 3


def test_operations_of_different_number_formats_are_asked_about_and_other_speeds_are_compared() -> None:
    rows = f"float,8,{11.5}\nfloat,16,{12.25}\ndouble,8,{5.75}\ndouble,16,{6.5}\n"
    column = found("precision,tile,TFLOP/s\n" + rows)["precision"]
    assert (column.role, column.candidates) == (Role.KERNEL, (Role.KERNEL, Role.PARAMETER))
    assert found("precision,tile,tokens/s\n" + rows)["precision"].role is Role.PARAMETER


def test_a_rate_that_was_asked_for_is_a_setting_and_what_came_of_it_the_speed() -> None:
    columns = found("target_fps,fps,energy_j\n10,9.9,12.1\n20,19.5,22.9\n25,21.0,24.7\n30,21.1,24.8\n")
    assert columns["target_fps"].role is Role.PARAMETER
    assert columns["fps"].role is Role.THROUGHPUT


@pytest.mark.parametrize(
    ("energies", "goal", "more"),
    [
        ("Prefill J/tok,Decode J/tok", "min:Decode J/tok", 6.8 / 2.5),
        ("Prefill tok/J,Decode tok/J", "max:Decode tok/J", 2.5 / 6.8),
        ("Prefill J/tok,Prefill J/tok of one", "max:Decode tok/s", math.nan),
    ],
)
def test_the_energy_of_another_stage_than_the_speed_is_not_put_beside_it(
    tmp_path: Path, energies: str, goal: str, more: float
) -> None:
    """Prefill reads a prompt and decoding writes the answer: of the last table no energy of that is known."""
    rows = ("150,3610,50.8,0.04,2.5", "300,5590,58.6,0.05,4.6", "450,6678,59.8,0.06,6.8")
    head = f"Power Limit [W],Prefill tok/s,Decode tok/s,{energies}"
    recording = read(tmp_path, "\n".join((head, *rows, "")))
    assert str(recording.objective.goal) == goal
    costs = costs_of(recording.table())
    assert costs.energy_j[-1] / costs.energy_j[0] == pytest.approx(more, nan_ok=True)
