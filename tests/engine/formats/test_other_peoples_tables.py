"""Tables as other people's scripts write them: parts beside totals, figures of one board, rows that sum up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.engine.formats.any_table import read_table
from app.engine.formats.columns import parse_columns
from app.engine.formats.headings import Role
from app.engine.formats.read import read_recording
from app.engine.formats.recording import Recording
from app.engine.formats.roles import roles_of


def read(tmp_path: Path, text: str, name: str = "table.csv") -> Recording:
    path = tmp_path / name
    path.write_text(text)
    return read_table(path)


def rows(recording: Recording) -> list[dict[str, object]]:
    return [{**m.configuration, **m.values} for m in recording.in_file_order()]


def role_of(text: str, heading: str) -> Role:
    return next(c.role for c in roles_of(parse_columns(text, "file.csv").by_kind()) if c.heading == heading)


def best(recording: Recording, figure: str, setting: str) -> object:
    return min(rows(recording), key=lambda row: float(str(row[figure])))[setting]


# --- of what a figure is ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", ["power_per_gpu_w", "avg_power_per_gpu_w", "power per GPU (W)", "per_device_power_w"])
@pytest.mark.parametrize("boards", ["num_gpus", "n_gpus", "gpus", "world_size", "tp"])
def test_a_power_of_one_board_counts_as_often_as_there_are_boards(tmp_path: Path, power: str, boards: str) -> None:
    lines = ((1, 1500, 560), (2, 2700, 540), (4, 4700, 515), (8, 7600, 480))
    text = f"{boards},tokens_per_s,{power}\n" + "".join(f"{n},{rate},{watts}\n" for n, rate, watts in lines)
    recording = read(tmp_path, text)
    assert [row["power_w"] for row in rows(recording)] == [560, 1080, 2060, 3840]
    assert any(f"of one board: it is taken times '{boards}'" in note for note in recording.notes)


@pytest.mark.parametrize(
    ("header", "figure"),
    [
        ("start_energy_mj,end_energy_mj", "energy_j"),
        ("energy start [mJ],energy end [mJ]", "energy_j"),
        ("energy_before_mj,energy_after_mj", "energy_j"),
        ("start_time_ms,end_time_ms", "time_s"),
    ],
)
def test_counters_before_and_after_say_what_was_taken_between_them(tmp_path: Path, header: str, figure: str) -> None:
    lines = (f"{block},{1000 * place},{1000 * place + 50 - block / 4}" for place, block in enumerate((32, 64, 128), 1))
    recording = read(tmp_path, f"block_size,{header}\n" + "\n".join(lines) + "\n")
    assert [row[figure] for row in rows(recording)] == pytest.approx([0.042, 0.034, 0.018])
    assert any(" less '" in note for note in recording.notes)


def test_a_counter_that_falls_between_beginning_and_end_says_nothing(tmp_path: Path) -> None:
    recording = read(tmp_path, "block,start_energy_j,end_energy_j,time_ms\n32,10,20,5\n64,20,3,6\n128,3,9,7\n")
    assert not any(" less '" in note for note in recording.notes)


def test_replicas_count_with_the_boards_of_each(tmp_path: Path) -> None:
    text = "tp,num_gpus,tokens_per_s,power_per_gpu_w\n1,2,1500,560\n2,4,2700,540\n4,8,4700,515\n"
    assert [row["power_w"] for row in rows(read(tmp_path, text))] == [1120, 2160, 4120]


def test_rates_and_energies_of_one_board_count_so_too(tmp_path: Path) -> None:
    rates = "world_size,tokens_per_sec_per_gpu,total_power_w\n8,3900,5200\n16,3750,10300\n64,3100,40100\n"
    assert [row["tokens/s"] for row in rows(read(tmp_path, rates))] == [31200, 60000, 198400]
    energies = "num_gpus,time_h,energy_per_gpu_kwh\n1,40,14.0\n2,21,7.25\n8,6.3,2.02\n"
    assert best(read(tmp_path, energies), "energy_j", "num_gpus") == 1


@pytest.mark.parametrize(
    ("header", "time"),
    [
        ("block,fwd_ms,bwd_ms,total_ms,energy_mj", 2.9),
        ("block,prefill_ms,decode_ms,total_ms,energy_mj", 2.9),
        ("block,baseline_ms,speedup,time_ms,energy_mj", 2.9),
        ("block,time_before_ms,gain,time_ms,energy_mj", 2.9),
        ("block,cumulative_time_ms,share,time_ms,energy_mj", 2.9),
        ("block,data_time_ms,share,batch_time_ms,energy_mj", 2.9),
    ],
)
def test_a_part_of_the_time_or_that_of_something_else_is_not_the_time(tmp_path: Path, header: str, time: float) -> None:
    lines = "32,0.8,2.1,2.9,1302.1\n64,0.7,1.61,2.31,1104.4\n128,1.1,1.02,2.12,1151.9\n256,0.6,1.95,2.55,1210.3\n"
    recording = read(tmp_path, f"{header}\n{lines}")
    assert next(iter(rows(recording)))["time_s"] == pytest.approx(time / 1e3)
    assert best(recording, "time_s", "block") == 128


def test_no_power_follows_of_the_time_of_a_step_and_the_energy_of_the_run(tmp_path: Path) -> None:
    text = (
        "micro_batch,step_time_ms,steps,total_energy_kJ\n32,290,1000,130.21\n64,231,1000,110.44\n128,212,1000,115.19\n"
    )
    recording = read(tmp_path, text)
    assert not any("power_w" in row for row in rows(recording))
    assert any("no power follows of 'total_energy_kJ' over 'step_time_ms'" in note for note in recording.notes)


def test_the_time_of_a_step_may_lack_in_some_rows_that_have_a_rate(tmp_path: Path) -> None:
    text = "tile,step_time_ms,tokens_per_s,total_energy_kJ\n8,290,10,130.2\n16,,12,110.4\n32,212,14,115.2\n"
    assert [row["tokens/s"] for row in rows(read(tmp_path, text))] == [10, 12, 14]


@pytest.mark.parametrize("count", ["num_prompts", "n_requests", "generated_tokens", "images"])
def test_what_was_done_in_each_run_is_what_its_time_and_energy_are_of(tmp_path: Path, count: str) -> None:
    lines = ((1, 50, 67.4, 21557.6), (4, 200, 88.9, 32053.7), (16, 800, 117.3, 49820.4), (64, 3200, 154.7, 81398.4))
    text = f"max_concurrency,{count},duration_s,energy_j\n" + "".join(",".join(map(str, each)) + "\n" for each in lines)
    recording = read(tmp_path, text)
    assert recording.objective is not None
    per_joule = recording.objective.goal
    assert per_joule.maximise
    assert max(rows(recording), key=lambda row: float(str(row[per_joule.name])))["max_concurrency"] == 64


def test_of_a_rate_over_runs_of_one_length_the_energy_is_that_of_its_work(tmp_path: Path) -> None:
    text = (
        "concurrency,duration_s,throughput_tok_s,energy_J\n1,60.3,95,15720\n32,60.6,1720,24120\n128,60.1,3110,29880\n"
    )
    recording = read(tmp_path, text)
    assert recording.objective is not None
    assert [round(float(str(row[recording.objective.goal.name])), 4) for row in rows(recording)] == [
        0.3644,
        4.3214,
        6.2554,
    ]


@pytest.mark.parametrize(
    "text",
    [
        "block,GFLOP/s,GFLOP/s/W\n32,47379.3,105.52\n64,59480.5,124.41\n128,64811.3,119.28\n",
        "block,tok/s,tokens per kWh\n32,344.83,2764765\n64,432.9,3259689\n128,471.7,3125271\n",
        "block,sec_per_image,Wh_per_image\n32,0.29,0.0362\n64,0.23,0.0307\n128,0.21,0.0320\n",
    ],
)
def test_an_efficiency_of_the_file_is_a_goal_beside_the_speed(tmp_path: Path, text: str) -> None:
    recording = read(tmp_path, text)
    assert recording.objective is not None
    goal = recording.objective.goal
    chosen = (max if goal.maximise else min)(rows(recording), key=lambda row: float(str(row[goal.name])))
    assert chosen["block"] == 64


# --- rows -------------------------------------------------------------------------------------------------------------


def test_an_idle_board_is_no_configuration(tmp_path: Path) -> None:
    recording = read(tmp_path, "config,time_s,energy_j\nidle,5,305\nfp32,20.1,6231\ntf32,13.2,4369\nfp16,9.1,3112\n")
    assert [row["config"] for row in rows(recording)] == ["fp32", "tf32", "fp16"]
    assert "1 row is of warming up or of an idle board, and is left out" in recording.notes


@pytest.mark.parametrize(
    "last",
    [
        "Average,10.7,3016.7\nBest,9.8,2900",
        "min,9.8,2900",
        "Mittelwert,10.7,3016.7",
        "gain,1.23,1.07",
        "Summe,32.1,9050",
    ],
)
def test_rows_that_sum_up_are_no_configurations(tmp_path: Path, last: str) -> None:
    recording = read(tmp_path, f"config,time_s,energy_j\nA,12.1,3100\nB,10.2,2900\nC,9.8,3050\n{last}\n")
    assert [row["config"] for row in rows(recording)] == ["A", "B", "C"]


@pytest.mark.parametrize("last", ["min", "max", "best"])
def test_a_setting_of_that_name_with_its_own_figures_is_a_configuration(tmp_path: Path, last: str) -> None:
    recording = read(tmp_path, f"mode,time_s,energy_j\ndefault,12.1,3100\nhigh,10.2,2900\n{last},9.7,2950\n")
    assert [row["mode"] for row in rows(recording)] == ["default", "high", last]


@pytest.mark.parametrize("name", ["mean", "**Avg**", "*Std. dev.*"])
def test_a_mean_below_a_column_of_numbers_is_left_out(tmp_path: Path, name: str) -> None:
    lines = ["| clock (MHz) | time (s) | energy (J) |", "|---|---|---|", f"| {name} | 40.18 | 6381.1 |"]
    lines[2:2] = ["| 510 | 54.26 | 5192.7 |", "| 660 | 47.81 | 5259.1 |", "| 1410 | 30.01 | 8402.8 |"]
    recording = read(tmp_path, "\n".join((*lines, "")), "table.md")
    assert len(rows(recording)) == 3
    assert "the last row sums up the others and is left out" in recording.notes


def test_headings_that_come_again_are_no_row(tmp_path: Path) -> None:
    text = "freq_MHz,time_s,energy_J\n510,54.26,5192.7\n660,47.81,5259.1\nfreq_MHz,time_s,energy_J\n1410,30.06,8416.8\n"
    assert len(rows(read(tmp_path, text))) == 3


def test_a_row_without_headings_that_comes_again_is_a_repeat() -> None:
    text = "64,2.5,301.5\n32,4.5,290.25\n64,2.5,301.5\n"
    assert len(parse_columns(text, "file.csv")) == 3


def test_what_a_figure_scatters_by_stands_behind_it(tmp_path: Path) -> None:
    text = "clock (MHz),time (s),energy (J)\n510,54.26 ± 0.03,5193 ± 12\n660,47.81 ± 0.03,5259 ± 12\n"
    assert [row["energy_j"] for row in rows(read(tmp_path, text))] == [5193, 5259]


# --- units ------------------------------------------------------------------------------------------------------------


def test_nvml_writes_milliwatts_and_millijoules_without_a_unit(tmp_path: Path) -> None:
    text = "clock,time,power,energy\n510,54260,95700,5192700\n660,47810,110000,5259100\n1410,30010,280000,8402800\n"
    first = next(iter(rows(read(tmp_path, text))))
    assert (first["power_w"], first["energy_j"], first["time_s"]) == pytest.approx((95.7, 5192.7, 54.26))


@pytest.mark.parametrize("heading", ["power_limit", "power_limit_mw", "powercap"])
def test_a_limit_in_milliwatts_is_one_in_watts(tmp_path: Path, heading: str) -> None:
    lines = [f'{{"{heading}": {1000 * watts}, "time": {time}, "energy": {joules}}}' for watts, time, joules in
             ((150, 153.12, 21360.2), (200, 145.83, 27124.4), (300, 131.25, 36618.8))]  # fmt: skip
    recording = read(tmp_path, "\n".join(lines), "runs.jsonl")
    assert [row["power_limit_w"] for row in rows(recording)] == [150, 200, 300]
    assumed = f"'{heading}' names no unit; its numbers are read as mW" in recording.notes
    assert assumed is (heading != "power_limit_mw")


@pytest.mark.parametrize(
    ("heading", "role"), [("s/it", Role.TIME), ("ms/step", Role.TIME), ("tokens/min", Role.THROUGHPUT)]
)
def test_times_of_an_iteration_and_rates_by_the_minute(heading: str, role: Role) -> None:
    assert role_of(f"opt,{heading},avg watts\no0,2.9,449.5\no1,2.31,478.1\no2,2.12,543.3\n", heading) is role


@pytest.mark.parametrize(("heading", "role"), [("J", Role.ENERGY), ("W", Role.POWER)])
def test_a_unit_alone_is_a_heading(heading: str, role: Role) -> None:
    assert role_of(f"clock_mhz,ms,{heading}\n810,17.2,204.4\n1410,15.5,252.4\n1980,14.8,300.4\n", heading) is role
    assert role_of("H,W,time_ms\n32,32,1.5\n64,64,2.5\n128,128,4.5\n", "W") is not Role.POWER


@pytest.mark.parametrize(
    "heading", ["gpu_energy_per_second", "energy per second (J/s)", "joules_per_sec", "power [J/s]"]
)
def test_energy_a_second_is_a_power_and_no_speed(heading: str) -> None:
    text = f"batch,time_s,{heading}\n1,2.5,201.5\n2,3.1,240.25\n4,4.2,301.75\n"
    assert role_of(text, heading) is Role.POWER
    assert role_of(text.replace("gpu", "cpu"), heading.replace("gpu", "cpu")) is (
        Role.FIGURE if "gpu" in heading else Role.POWER
    )


def test_a_price_is_no_speed_and_a_measured_runtime_no_choice() -> None:
    text = "engine,price_per_hour,Runtime,energy_wh\no0,3,3010,121.2\no1,2.5,2640,141.1\no2,4,2451,162.2\n"
    assert role_of(text, "price_per_hour") is Role.FIGURE
    assert role_of(text, "Runtime") is Role.TIME


def test_a_rank_numbers_rows() -> None:
    assert role_of("rank,block,time_us\n1,128,604.9\n2,256,611.4\n3,512,655.5\n4,32,900.5\n", "rank") is Role.UNUSED


# --- JSON -------------------------------------------------------------------------------------------------------------


def test_a_list_with_times_and_nothing_of_a_tuner_is_read_as_any_table(tmp_path: Path) -> None:
    document = [
        {"power_limit": 150 + 50 * at, "time": 151.2 - 10 * at, "energy": 21803.0 + 2000 * at} for at in range(4)
    ]
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(document))
    first = next(iter(rows(read_recording(path))))
    assert (first["time_s"], first["energy_j"]) == (151.2, 21803)
    tuned = [{"block": 32 * at, "time": 1.5 + at, "times": [1.5], "compile_time": 100.0} for at in range(1, 4)]
    path.write_text(json.dumps(tuned))
    assert next(iter(rows(read_recording(path))))["time_s"] == 0.0025


def test_pandas_writes_rows_beside_the_names_of_their_columns(tmp_path: Path) -> None:
    document = {"columns": ["block", "ms", "energy_j"], "index": [0, 1], "data": [[64, 3.5, 1.5], [128, 3.0, 1.75]]}
    assert [row["energy_j"] for row in rows(read(tmp_path, json.dumps(document), "t.json"))] == [1.5, 1.75]


def test_models_that_are_named_by_their_files_are_told_apart() -> None:
    text = "model_filename,flash_attn,avg_ts\nllama-8b-q4_k.gguf,0,132.4\nllama-8b-q8_0.gguf,0,87.8\n"
    text += "llama-8b-q4_k.gguf,1,135.5\nllama-8b-q8_0.gguf,1,88.5\n"
    assert role_of(text, "model_filename") is Role.KERNEL


def test_requests_below_the_means_of_their_run_are_no_configurations(tmp_path: Path) -> None:
    requests = [{"request": at, "total_time": 9.0 + at, "tokens_per_sec": 30.0 + at} for at in range(1, 6)]
    document = {"engine": "vLLM", "total_requests": 5, "avg_tokens_per_sec": 30.03, "results": requests}
    (row,) = rows(read(tmp_path, json.dumps(document), "results.json"))
    assert row["avg_tokens/s"] == 30.03


def test_thousands_in_a_table_of_markdown_are_parted_by_commas(tmp_path: Path) -> None:
    text = "| Concurrency | RPS | TPS |\n|---|---|---|\n| 1 | 2.31 | 310.5 |\n| 8 | 9.75 | **1,474** |\n"
    assert rows(read(tmp_path, text, "results.md"))[1]["TPS"] == 1474


def test_how_many_records_were_worked_on_is_no_choice() -> None:
    assert role_of("name,time,records\ngpu,110.4,40000000\ngpu,6.2,4000000\n", "records") is Role.WORK


def test_sizes_in_brackets_are_no_thousands(tmp_path: Path) -> None:
    text = "| tile | ms | GFLOP/s |\n|---|---|---|\n| [128,128,256] | 2.31 | 310.5 |\n| [64,128,256] | 9.75 | 1,474 |\n"
    assert [row["tile"] for row in rows(read(tmp_path, text, "r.md"))] == ["[128,128,256]", "[64,128,256]"]


@pytest.mark.parametrize("heading", ["tokens_per_gpu_hour", "energy per GPU-h (J)", "kwh_per_gpu_day"])
def test_what_is_of_an_hour_of_a_board_is_not_taken_times_the_boards(tmp_path: Path, heading: str) -> None:
    recording = read(tmp_path, f"num_gpus,tokens_per_s,{heading}\n1,1500,5.5\n2,2700,5.1\n4,4700,4.6\n")
    assert not any("of one board" in note for note in recording.notes)
