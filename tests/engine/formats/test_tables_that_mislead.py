"""Tables of which a plain reading says what is not so: other work in each row, parts, shares, changes, predictions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.base.errors import InputError
from app.cli import main
from app.engine.formats.any_table import read_table
from app.engine.formats.columns import parse_columns
from app.engine.formats.headings import Role
from app.engine.formats.read import read_recording
from app.engine.formats.recording import Recording
from app.engine.formats.roles import roles_of

CLOCKS = (510, 690, 870, 1050, 1230, 1410)
TIMES = (22.4, 17.3, 14.6, 12.8, 11.0, 10.0)
WATTS = (104, 125, 161, 214, 289, 390)


def read(tmp_path: Path, text: str, name: str = "table.csv") -> Recording:
    path = tmp_path / name
    path.write_text(text)
    return read_table(path)


def columns(header: str, *cells: tuple[object, ...]) -> str:
    return "\n".join((header, *(",".join(map(str, row)) for row in zip(*cells, strict=True)))) + "\n"


def judged(text: str) -> dict[str, Role]:
    return {column.heading: column.role for column in roles_of(parse_columns(text, "file.csv").by_kind())}


def asked(text: str) -> list[str]:
    return [column.heading for column in roles_of(parse_columns(text, "file.csv").by_kind()) if column.candidates]


def best(recording: Recording, name: str, setting: str) -> object:
    """The setting of the row with the most of a figure."""
    return max(recording.measurements(), key=lambda m: m.values[name]).configuration[setting]


# --- rates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "heading", ["gpoints_s", "Mcells_s", "keys_s", "tokps", "tokps_new", "imgps", "mlups", "gteps"]
)
def test_rates_are_known_by_what_is_counted(heading: str) -> None:
    assert judged(columns(f"tile,{heading}", (16, 32, 64), (10.5, 20.1, 30.7)))[heading] is Role.THROUGHPUT


@pytest.mark.parametrize("heading", ["pass_s", "process_s", "steps_ms"])
def test_times_of_what_ends_like_a_plural_are_no_rates(heading: str) -> None:
    assert judged(columns(f"tile,{heading}", (16, 32, 64), (10.5, 20.1, 30.7)))[heading] is Role.TIME


@pytest.mark.parametrize("heading", ["tok_s_mean", "img_s_avg", "req_s_p50", "tokens_s_avg", "GB_s_mean"])
def test_a_rate_with_a_statistic_behind_is_no_time(heading: str) -> None:
    text = columns(f"batch,{heading},watts", (1, 2, 4, 8), (50.0, 90.1, 162.5, 290.25), (203, 206, 212, 231))
    assert judged(text)[heading] is Role.THROUGHPUT


@pytest.mark.parametrize(
    "heading", ["throughput_loss", "performance_drop", "perf_loss", "latency_increase_ms", "energy_reduction_kJ"]
)
def test_a_change_of_a_figure_is_none(heading: str) -> None:
    text = columns(f"clock_mhz,{heading},time_s", CLOCKS, (0.55, 0.42, 0.31, 0.22, 0.09, 0.01), TIMES)
    assert judged(text) == {"clock_mhz": Role.GRAPHICS_CLOCK, heading: Role.FIGURE, "time_s": Role.TIME}


@pytest.mark.parametrize("heading", ["tok/s/user", "tokens_per_s_per_user", "errors_per_s", "failures/s"])
def test_what_each_user_sees_and_what_failed_are_no_rates_of_the_work(heading: str) -> None:
    text = columns(f"concurrency,{heading},power_w", (1, 2, 4, 8), (80.5, 69.6, 60.6, 41.2), (251, 276, 301, 320))
    assert judged(text)[heading] is Role.FIGURE


@pytest.mark.parametrize("figure", ["throughput_loss", "tok/s/user", "errors/s"])
def test_nothing_is_the_fastest_by_such_a_figure(
    tmp_path: Path, figure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(columns(f"clock_mhz,{figure},power_w", CLOCKS, (0.55, 0.42, 0.31, 0.22, 0.09, 0.01), WATTS))
    assert main(["analyse", str(path)]) == 0
    said = capsys.readouterr().out
    assert "\nFastest" not in said
    assert "The fastest is" not in said


@pytest.mark.parametrize("heading", ["core_seconds", "gpu_hours", "node-hours"])
def test_a_time_that_several_spend_at_once_is_not_that_of_the_run(heading: str) -> None:
    text = columns(f"threads,{heading},energy_J", (1, 2, 4, 8), (100.5, 107.2, 114.9, 121.3), (5800, 3537, 2355, 1901))
    assert judged(text)[heading] is Role.FIGURE


# --- of other work ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("energy", ["energy_mJ", "energy_per_batch_mJ"])
def test_times_of_larger_batches_are_of_more_work(tmp_path: Path, energy: str) -> None:
    text = columns(f"batch,latency_ms,{energy}", (1, 4, 16, 64), (2.35, 3.4, 7.9, 27.2), (394, 787, 2540, 11900))
    recording = read(tmp_path, text)
    assert best(recording, "batch/s", "batch") == 64
    assert {goal.name for goal in recording.objective.front} <= {"batch/s", "batch/J"}
    assert any(note == "'batch/s' is 'batch' over 'latency_ms'" for note in recording.notes)


def test_times_of_a_whole_run_fall_with_larger_batches(tmp_path: Path) -> None:
    text = columns("batch,time_s,energy_J", (1, 4, 16, 64), (90.5, 41.2, 22.3, 20.1), (9000, 5100, 4000, 4100))
    recording = read(tmp_path, text)
    assert recording.objective.goal.name == "energy_j"
    assert not any("batch/s" in name for name in recording.value_names)


@pytest.mark.parametrize("heading", ["points", "Ukuran", "cells_side"])
def test_numbers_with_which_times_grow_may_be_how_much_there_was_to_do(heading: str) -> None:
    sizes, times = (1000, 4000, 16000, 64000), (1.25, 4.75, 20.5, 83.1)
    assert asked(columns(f"{heading},time_ms,power_w", sizes, times, (201, 210, 231, 244))) == [heading]
    assert asked(columns(f"{heading},time_ms,power_w", sizes, (5.25, 4.75, 6.5, 7.1), (201, 210, 231, 244))) == []


def test_a_rate_of_samples_counts_before_one_of_batches(tmp_path: Path) -> None:
    text = columns("batch,it_s,samples_s,power_w", (1, 4, 16), (5.0, 4.1, 2.25), (5.0, 16.4, 36.0), (203, 212, 231))
    assert read(tmp_path, text).objective.front[0].name == "samples_s"


@pytest.mark.parametrize("done", ["iterations", "launches", "frames", "steps", "samples_processed", "num_queries"])
def test_what_was_done_in_runs_of_one_length_was_not_chosen(tmp_path: Path, done: str) -> None:
    energies = (6252, 7500, 9660, 12840, 17340, 23400)
    counts = (2684, 3467, 4110, 4688, 5455, 6000)
    recording = read(tmp_path, columns(f"clock_mhz,{done},runtime_s,energy_J", CLOCKS, counts, (60.0,) * 6, energies))
    assert recording.space().names == ("graphics_clock_mhz",)
    assert best(recording, f"{done}/s", "graphics_clock_mhz") == 1410
    assert best(recording, f"{done}/J", "graphics_clock_mhz") == 690


def test_an_energy_of_one_span_is_not_of_the_work_of_a_rate() -> None:
    rates, energies = (72.9, 81.8, 95.0, 107.0, 115.0, 120.0), tuple(60 * watts for watts in WATTS)
    assert asked(columns("limit_w,tokens_per_s,energy_60s_J", (150, 200, 250, 300, 350, 400), rates, energies)) == [
        "energy_60s_J"
    ]
    text = columns("clock_mhz,tokens_per_s,power_w,energy_J", CLOCKS, rates, WATTS, energies)
    assert judged(text)["energy_J"] is Role.FIGURE


def test_energy_over_time_that_no_board_draws_is_said_to_be_in_doubt(tmp_path: Path) -> None:
    launches = tuple(500 * seconds * watts / 1e3 for seconds, watts in zip(TIMES, WATTS, strict=True))
    recording = read(tmp_path, columns("clock_mhz,n_iter,mean_time_ms,energy_J", CLOCKS, (500,) * 6, TIMES, launches))
    assert any("'energy_J' over 'mean_time_ms' is" in note and "is not certain" in note for note in recording.notes)


# --- which column counts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["predicted", "expected", "theoretical", "estimated", "simulated"])
@pytest.mark.parametrize("first", [True, False])
def test_what_was_measured_counts_before_what_was_predicted(tmp_path: Path, word: str, first: bool) -> None:
    measured = tuple(seconds * watts for seconds, watts in zip(TIMES, WATTS, strict=True))
    names, cells = [f"{word}_energy_J", "actual_energy_J"], [(466, 2206, 2300, 2700, 3100, 3900), measured]
    order = 1 if first else -1
    text = columns(f"clock_mhz,{','.join(names[::order])},time_s", CLOCKS, *cells[::order], TIMES)
    assert [m.values["energy_j"] for m in read(tmp_path, text).in_file_order()] == pytest.approx(measured)


@pytest.mark.parametrize("heads", ["fwd_ms,bwd_ms", "prefill_time_s,decode_time_s", "compute_ms,comm_ms"])
def test_the_first_part_of_a_run_is_not_taken_for_all_of_it(heads: str) -> None:
    other = tuple(2 * time for time in TIMES)
    assert asked(columns(f"clock_mhz,{heads},energy_mJ", CLOCKS, TIMES, other, WATTS)) == [heads.partition(",")[0]]


def test_a_counter_that_runs_on_may_not_say_what_each_row_took() -> None:
    stood = (3909769, 7437884, 10631880, 13530022, 16201100, 18700400)
    text = columns("sm_clock,total_energy_consumption_mJ,elapsed_s", CLOCKS, stood, TIMES)
    assert asked(text) == ["total_energy_consumption_mJ"]


def test_times_and_energies_that_grow_together_may_be_sums_so_far() -> None:
    text = columns(
        "elapsed_s,clock_mhz,energy_total_J", range(60, 420, 60), CLOCKS, (6252, 13032, 20532, 29000, 39500, 52400)
    )
    assert asked(text) == ["energy_total_J"]


def test_a_dynamic_energy_beside_a_static_one_is_not_all() -> None:
    text = columns("clock_mhz,time_s,static_energy_J,dynamic_energy_J", CLOCKS, TIMES, (20118,) * 6, (3174,) * 6)
    assert asked(text) == ["dynamic_energy_J"]


def test_a_figure_that_never_changes_gives_way_to_one_that_does(tmp_path: Path) -> None:
    rows = [{"clock_mhz": c, "time_ms": t, "energy_mJ": t * w} for c, t, w in zip(CLOCKS, TIMES, WATTS, strict=True)]
    document = {"results": rows, "total_time_s": 400.0, "total_energy_J": 99999.0, "baseline_clock_mhz": 1410}
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(document))
    recording = read_recording(path)
    assert len(recording) == 6
    assert best(recording, "time_s", "graphics_clock_mhz") == 510


def test_a_voltage_that_alone_tells_rows_apart_was_set() -> None:
    text = columns(
        "mV,MHz,Watts,FPS", (1063, 1000, 950, 900), (1905, 1905, 1905, 1905), (341, 312, 282, 255), (98,) * 4
    )
    assert judged(text)["mV"] is Role.PARAMETER
    seen = columns("clock_mhz,voltage_mv,power_w,time_s", CLOCKS, (712, 718, 750, 800, 900, 1043), WATTS, TIMES)
    assert judged(seen)["voltage_mv"] is Role.VOLTAGE


@pytest.mark.parametrize("heading", ["Energy %", "power (% TDP)", "Power %"])
def test_shares_are_no_energies_and_no_limits(heading: str) -> None:
    text = columns(f"clock_mhz,time_ms,{heading}", CLOCKS, TIMES, (59.7, 56.3, 61.1, 70.5, 84.2, 100.0))
    assert judged(text)[heading] is Role.UTILISATION


@pytest.mark.parametrize("count", ["8,8,8,8,8,8", "1,2,4,8,16,32"])
def test_a_power_over_gpus_is_taken_times_their_number(tmp_path: Path, count: str) -> None:
    text = columns("num_gpus,power/GPU (W),time_s", tuple(map(int, count.split(","))), WATTS, TIMES)
    text = text.replace("num_gpus,", "num_gpus,clock_mhz,", 1)
    rows = text.splitlines()
    text = "\n".join(
        [rows[0], *(row.replace(",", f",{clock},", 1) for row, clock in zip(rows[1:], CLOCKS, strict=True))]
    )
    recording = read(tmp_path, text)
    first = next(iter(recording.in_file_order()))
    assert first.values["power_w"] == 104 * int(count.partition(",")[0])


def test_variants_side_by_side_are_rows_of_each(tmp_path: Path) -> None:
    half = tuple(time / 2 for time in TIMES)
    for heads in ("naive_ms,opt_ms,naive_mJ,opt_mJ", "fp32_time_ms,fp16_time_ms,fp32_energy_mJ,fp16_energy_mJ"):
        recording = read(
            tmp_path, columns(f"clock_mhz,{heads}", CLOCKS, TIMES, half, WATTS, tuple(w / 2 for w in WATTS))
        )
        assert len(recording) == 12
        fastest = min(recording.measurements(), key=lambda m: m.values["time_s"])
        assert {"opt", "fp16"} & {*fastest.configuration.values()}


# --- of the rounds of December ----------------------------------------------------------------------------------------


def test_energy_per_day_is_a_power() -> None:
    rows = columns("power_limit_w,tok_per_s,kWh/day", (150, 200, 250), (1896.4, 2209.2, 2400.1), (3.492, 4.656, 5.8))
    found = {column.heading: column for column in roles_of(parse_columns(rows, "file.csv").by_kind())}
    assert found["kWh/day"].role is Role.POWER
    assert found["kWh/day"].scale == pytest.approx(1000 / 24)


def test_energy_per_node_is_taken_times_the_nodes_and_not_times_the_boards(tmp_path: Path) -> None:
    text = "nodes,gpus,time_s,energy_per_node_kj\n1,8,3600,7560\n2,16,1997.2,4194.2\n4,32,1108,2326.9\n"
    energies = [m.values["energy_j"] for m in read(tmp_path, text).measurements()]
    assert energies == pytest.approx([7.56e6, 8.3884e6, 9.3076e6])


def test_a_limit_below_what_is_drawn_may_be_a_share() -> None:
    text = columns("power_limit,time_s,energy_j", (50, 70, 100), (141.42, 118.1, 100.0), (31113, 35500, 44000))
    assert asked(text) == ["power_limit"]
    assert judged(text)["power_limit"] is Role.PARAMETER


def test_batches_of_each_length_are_compared_by_their_rate(tmp_path: Path) -> None:
    rows = [(length, batch, 5.0 + 0.001 * length * batch) for length in (128, 512) for batch in (1, 2, 4, 8)]
    recording = read(tmp_path, columns("seq_len,batch,latency_ms", *zip(*rows, strict=True)))
    assert {m.configuration["kernel"] for m in recording.measurements()} == {"seq_len 128", "seq_len 512"}
    assert best(recording, "batch/s", "batch") == 8


def test_sections_of_a_document_that_name_what_ran_are_other_work(tmp_path: Path) -> None:
    table = "| clk | ms |\n|-|-|\n| 510 | {0} |\n| 900 | {1} |\n"
    text = f"## GEMM\n{table.format(26.8, 15.1)}\n## Softmax\n{table.format(1.2, 0.9)}"
    assert {m.configuration["kernel"] for m in read(tmp_path, text, "table.md").measurements()} == {"GEMM", "Softmax"}


# --- of a second reading of other people's files ----------------------------------------------------------------------


def test_a_first_row_with_a_stamp_and_a_number_is_no_heading(tmp_path: Path) -> None:
    rows = [f"2025-06-10T17:49:{s}.64,{m},cpu,{ms}" for s, m, ms in ((51, "conv", 11.86), (52, "vit", 62.4))]
    with pytest.raises(InputError, match="'column 4' may be a throughput"):
        read(tmp_path, "\n".join(rows) + "\n")


def test_numbers_without_headings_are_no_settings_across(tmp_path: Path) -> None:
    rows = [
        f"2026-02-20T07:59:{s}.03,{0.6 + s / 99},{4.5 + s / 70},{15.8 + s / 30},{6.5 + s / 9}" for s in (14, 25, 36)
    ]
    with pytest.raises(InputError, match="'column 2' or 'column 3' or 'column 4' or 'column 5' may be"):
        read(tmp_path, "\n".join(rows) + "\n")


def test_a_long_table_of_statistics_is_turned_though_some_of_them_are_texts(tmp_path: Path) -> None:
    text = "scheme,stat,value\nsetup,cpu,M5\nsetup,requests,1000\n"
    text += "".join(
        f"{scheme},{stat},{ms}\n"
        for scheme, times in (("two_stage", (5.23, 7.05, 12.83)), ("fallback", (0.67, 0.84, 1.06)))
        for stat, ms in zip(("client_p50_ms", "client_mean_ms", "client_p90_ms"), times, strict=True)
    )
    recording = read(tmp_path, text)
    known = {m.configuration["scheme"]: m.values["time_s"] for m in recording.measurements() if "time_s" in m.values}
    assert known == pytest.approx({"two_stage": 7.05e-3, "fallback": 0.84e-3}) or known == pytest.approx(
        {"two_stage": 5.23e-3, "fallback": 0.67e-3}
    )


@pytest.mark.parametrize("heading", ["case_id", "prompt_id", "scenario_id"])
def test_requests_with_names_are_not_repeats_of_one(tmp_path: Path, heading: str) -> None:
    names, rates = ("general_hello", "code_python", "reasoning_steps"), (100.1, 168.4, 187.5)
    text = columns(f"{heading},ok,latency_ms,tokens_per_second", names, [True] * 3, (19.9, 11.9, 10.7), rates)
    recording = read(tmp_path, text)
    assert {m.configuration["kernel"] for m in recording.measurements()} == {*names}


def test_numbered_requests_stay_requests_of_one_run(tmp_path: Path) -> None:
    text = columns(
        "prompt_id,latency_ms,tokens_per_second", ("p_1", "p_2", "p_3"), (19.9, 11.9, 10.7), (100.1, 168.4, 187.5)
    )
    assert {m.configuration["run"] for m in read(tmp_path, text).measurements()} == {"table"}


def test_a_difference_is_not_the_time_and_a_negative_one_is_no_failure(tmp_path: Path) -> None:
    rows = [
        (gateway, load, p99 - base, p99, base)
        for load, base, each in ((1, 22.17, (23.45, 31.08)), (4, 24.4, (25.95, 49.8)), (16, 31.86, (31.78, 90.1)))
        for gateway, p99 in zip(("rust", "python"), each, strict=True)
    ]
    heads = "gateway,concurrency,p99_overhead_ms,gateway_p99_ms,baseline_p99_ms"
    recording = read(tmp_path, text := columns(heads, *zip(*rows, strict=True)))
    assert not asked(text)
    assert judged(text)["p99_overhead_ms"] is Role.FIGURE
    assert all(m.values["time_s"] == pytest.approx(m.values["gateway_p99_ms"] / 1e3) for m in recording.measurements())
    assert {m.state.value for m in recording.measurements()} == {"ok"}
    assert {m.configuration["kernel"] for m in recording.measurements()} == {f"concurrency {n}" for n in (1, 4, 16)}
    assert {m.configuration["gateway"] for m in recording.measurements()} == {"rust", "python"}


def test_a_figure_of_the_whole_file_is_not_that_of_each_row(tmp_path: Path) -> None:
    runs = {
        f"gsm8k__qwen3:4b__{mode}": {"accuracy": 0.6, "correct": right, "mean_time_seconds": s, "output_chars": out}
        for mode, right, s, out in (("off", 4, 196.27, 1329), ("medium", 3, 79.18, 351), ("hard", 3, 491.94, 2208))
    }
    for named in (runs, {name.rpartition("__")[2]: run for name, run in runs.items()}):
        recording = read(tmp_path, json.dumps({"total_time_seconds": 3837.01, "runs": named}), "runs.json")
        fastest = min(recording.measurements(), key=lambda m: m.values["time_s"])
        assert fastest.values["time_s"] == pytest.approx(79.18)
        assert [*fastest.configuration] == ["key"]
        assert str(fastest.configuration["key"]).endswith("medium")


def test_a_path_that_says_a_name_again_is_not_joined_with_it(tmp_path: Path) -> None:
    names = ("Qwen3-1.7B-Q4", "Qwen3-4B-Q4", "SmolLM3-3B-Q4")
    paths = [f"models/gguf/{name}.gguf" for name in names]
    text = columns("label,gguf,avg_decode_tps,avg_total_s", names, paths, (10.47, 5.1, 7.49), (58.4, 140.8, 37.5))
    recording = read(tmp_path, text)
    assert [*recording.measurements()[0].configuration.values()] == ["Qwen3-1.7B-Q4"]
    assert recording.objective.goal.name == "avg_decode_tps"  # the answers are of other lengths
    assert not [note for note in recording.notes if "not certain" in note]


def test_a_name_that_ends_with_the_choice_says_no_more_than_it(tmp_path: Path) -> None:
    tiles = ("bm64_bn256_w8", "bm64_bn128_w4", "bm128_bn256_w8", "bm32_bn32_w1")
    text = columns(
        "kernel_id,tile,runtime_ms", [f"gfx1151_int8_nn_{tile}" for tile in tiles], tiles, (5.2, 5.3, 13.6, 48.6)
    )
    assert [*read(tmp_path, text).measurements()[0].configuration] == ["tile"]
    mixed = text.replace("gfx1151_int8_nn_bm64_", "softmax_bm64_")
    assert "kernel" in read(tmp_path, mixed).measurements()[0].configuration


def test_rates_that_ollama_printed_are_those_of_the_models_above_them(tmp_path: Path) -> None:
    text = "os_version: Debian\neval rate:   1.5 tokens/s\n"
    for model, rates in (("mistral:7b", (67.11, 66.61)), ("phi4:14b", (32.77, 32.8))):
        text += f"model_name =    {model}\n"
        text += "".join(f"prompt = Bake a cake, with eggs.\neval rate:   {rate} tokens/s\n" for rate in rates)
    found = {(m.configuration["kernel"], m.values["tokens/s"]) for m in read(tmp_path, text, "out.md").measurements()}
    assert found == {("mistral:7b", 67.11), ("mistral:7b", 66.61), ("phi4:14b", 32.77), ("phi4:14b", 32.8)}


# --- parts and a total, and what is no figure of the work -------------------------------------------------------------

PARTS = ((2.0, 3.0, 4.0, 5.0), (9.0, 6.5, 4.25, 1.5))
SUMS = (11.0, 9.5, 8.25, 6.5)


@pytest.mark.parametrize("heads", ["conv1_ms,conv2_ms,total_ms", "h2d_ms,kernel_ms,all_ms", "a_ms,b_ms,time_ms"])
@pytest.mark.parametrize("first", [True, False])
def test_a_time_that_is_the_sum_of_others_is_that_of_the_work(tmp_path: Path, heads: str, first: bool) -> None:
    *parts, total = heads.split(",")
    names = ",".join([total, *parts] if first else [*parts, total])
    cells = [SUMS, *PARTS] if first else [*PARTS, SUMS]
    recording = read(tmp_path, columns(f"variant,{names}", "abcd", *cells))
    assert [m.values["time_s"] for m in recording.in_file_order()] == pytest.approx([s / 1e3 for s in SUMS])
    assert asked(columns(f"variant,{names}", "abcd", *cells)) == []


@pytest.mark.parametrize("total", ["total_ms", "e2e_ms", "overall_ms", "time_ms"])
def test_a_total_counts_before_a_part_though_other_parts_are_not_there(tmp_path: Path, total: str) -> None:
    recording = read(tmp_path, columns(f"variant,conv1_ms,{total}", "abcd", PARTS[0], SUMS))
    assert best(recording, "time_s", "variant") == "a"
    assert next(iter(recording.in_file_order())).values["time_s"] == pytest.approx(11e-3)


def test_a_total_of_different_numbers_of_iterations_does_not_count(tmp_path: Path) -> None:
    times, counts = (5.0, 4.0, 3.0, 2.0), (10, 20, 40, 80)
    totals = tuple(time * count for time, count in zip(times, counts, strict=True))
    recording = read(tmp_path, columns("variant,iters,gpu_ms,total_ms", "abcd", counts, times, totals))
    fastest = min(recording.measurements(), key=lambda m: m.values["time_s"])
    assert fastest.configuration["variant"] == "d"


@pytest.mark.parametrize("shape", ["N,H,W,C", "n,h,w,c", "batch,H,W,C"])
def test_the_sides_of_a_tensor_together_are_how_much_was_worked_on(shape: str) -> None:
    rows = [(n, side, side, channels) for n, side, channels in ((1, 56, 64), (8, 56, 128), (8, 28, 512), (8, 112, 128))]
    text = columns(f"{shape},cudnn_ms", *zip(*rows, strict=True), (0.0164, 0.1004, 0.0979, 0.2899))
    assert {role for name, role in judged(text).items() if name in shape.split(",")} == {Role.WORK}


@pytest.mark.parametrize("other", ["D", "dim", "dimensions"])
def test_a_dimension_beside_a_number_is_how_much_was_worked_on(tmp_path: Path, other: str) -> None:
    rows = [(n, d, seed) for n in (256, 1024) for d in (10, 30, 100) for seed in (1, 2)]
    times = [n * d / 1e3 + seed / 10 for n, d, seed in rows]
    rates = [n * d / time for (n, d, _), time in zip(rows, times, strict=True)]
    text = columns(f"N,{other},seed,total_ms,gflops", *zip(*rows, strict=True), times, rates)
    assert {judged(text)[name] for name in ("N", other)} == {Role.WORK}


@pytest.mark.parametrize("heading", ["gbps", "GBps", "Gbps"])
def test_gigabytes_per_second_alone_are_a_rate(tmp_path: Path, heading: str) -> None:
    recording = read(tmp_path, columns(f"backend,{heading}", ("scalar", "avx2", "cuda"), (135.43, 140.5, 38.68)))
    goal = recording.objective.goal
    assert goal.maximise
    assert best(recording, goal.name, "backend") == "avx2"


def test_picoseconds_are_a_time_and_what_serves_parameters_is_none(tmp_path: Path) -> None:
    recording = read(tmp_path, columns("backend,Mean (ps)", ("a", "b"), (79806640, 328354687)))
    assert [m.values["time_s"] for m in recording.in_file_order()] == pytest.approx([79.80664e-6, 328.354687e-6])
    assert judged(columns("n_ps,time_s", (1, 2, 4), (3.5, 2.5, 1.5)))["n_ps"] is not Role.TIME


@pytest.mark.parametrize("heading", ["ollama_model_gb", "model_size_gb"])
def test_the_size_of_a_model_in_memory_is_no_amount_of_work(heading: str) -> None:
    sizes = (3.69, 3.69, 1.09, 1.09, 3.69, 3.69)
    text = columns(f"concurrency,tokens_per_s,{heading}", (1, 2) * 3, (14.2, 14.3, 13.9, 14.5, 14.4, 14.1), sizes)
    assert judged(text)[heading] is Role.FIGURE
    assert asked(text) == []


def test_slack_and_period_of_a_circuit_are_no_times_of_work() -> None:
    slack = (0.0762, 0.065, 0.0754, 0.081)
    text = columns(
        "hold_ws_ns,period_ns,power_w,tns_ns,wns_ns", slack, (6, 7, 8, 10), (0.043, 0.036, 0.033, 0.026), *(slack,) * 2
    )
    assert Role.TIME not in judged(text).values()


# --- amounts, and figures without a unit ------------------------------------------------------------------------------


def test_operations_that_are_sizes_are_no_rate() -> None:
    sizes, times = (16384, 32768, 65536) * 2, (3.6, 7.2, 14.5, 0.5, 1.5, 2.5)
    for heading in ("ops", "num_ops", "total_ops"):
        roles = judged(columns(f"backend,seq_len,{heading},latency_ms", ("a", "b") * 3, sizes, sizes, times))
        assert roles[heading] in (Role.FIGURE, Role.WORK)
    assert judged(columns("num_ops,achieved_flops", (1, 2, 64), (3.5, 7.5, 9.5)))["num_ops"] is not Role.THROUGHPUT
    assert judged(columns("threads,total_ops_s", (1, 2, 4), (3.5, 7.5, 9.5)))["total_ops_s"] is Role.THROUGHPUT
    counted = columns("threads,ops,latency_ms", (1, 2, 4, 8), (16381, 30123, 54126, 91823), (3.6, 3.7, 3.9, 4.4))
    assert judged(counted)["ops"] is Role.THROUGHPUT


@pytest.mark.parametrize("heading", ["src_mem_kb", "matrix_mem_mb"])
def test_sizes_in_memory_that_tell_equal_rows_apart_are_amounts_of_work(heading: str) -> None:
    sizes = (512,) * 3 + (4096,) * 3
    there = columns(f"threads,{heading},time_s", (1, 2, 4) * 2, sizes, (1.3, 0.8, 0.9, 13.5, 8.5, 7.5))
    assert judged(there)[heading] is Role.WORK
    used = columns(f"threads,{heading},time_s", (1, 2, 4) * 2, (511, 517, 530, 4096, 4099, 4123), (1, 2, 3, 4, 5, 6))
    assert judged(used)[heading] is Role.FIGURE


def test_days_that_were_simulated_are_no_time_beside_seconds(tmp_path: Path) -> None:
    text = columns("ranks,total_days,avg_compute_s", (1, 2, 4), (256,) * 3, (0.22, 0.11, 0.06))
    assert [m.values["time_s"] for m in read(tmp_path, text).in_file_order()] == [0.22, 0.11, 0.06]
    text = columns("backend,forecast_days,runtime_s", ("a", "b") * 2, (10, 10, 30, 30), (12.5, 4.1, 36.5, 12.1))
    found = read(tmp_path, text)
    assert [(m.configuration["kernel"], m.values["time_s"]) for m in found.in_file_order()] == [
        ("forecast_days 10", 12.5),
        ("forecast_days 10", 4.1),
        ("forecast_days 30", 36.5),
        ("forecast_days 30", 12.1),
    ]
    assert judged(columns("lr,training_days", (1, 2, 4), (3, 5, 9)))["training_days"] is Role.TIME
    assert (
        judged(columns("lr,run_hours,step_s", (1, 2, 4), (3.25, 5.5, 9.1), (1.5, 2.5, 4.5)))["run_hours"] is Role.TIME
    )


def test_percentiles_of_nothing_that_is_named_are_no_settings() -> None:
    heads = "policy,power_cap,p50,control_p99,batch_p95,rps"
    text = columns(
        heads,
        ("a", "a", "b", "b"),
        (100, 150) * 2,
        (12, 13, 10, 11),
        (40, 41, 38, 37),
        (8, 8, 16, 16),
        (120.5, 130, 99, 98),
    )
    roles = judged(text)
    assert {roles[name] for name in ("p50", "control_p99", "batch_p95")} == {Role.FIGURE}
    assert judged(columns("batch,latency_p99_ms", (1, 2, 4), (1.5, 2.5, 3.5)))["latency_p99_ms"] is Role.TIME


@pytest.mark.parametrize("word", ["off", "default", "stock", "baseline (no flag)", "spec off"])
@pytest.mark.parametrize("heading", ["n_max", "draft", "power_limit"])
def test_a_word_for_what_was_not_set_among_settings_makes_them_texts(tmp_path: Path, word: str, heading: str) -> None:
    for name, text in (
        ("sweep.csv", columns(f"{heading},tok_s", (word, 100, 200, 400), (61.4, 94.2, 135.5, 120.5))),
        ("sweep.md", f"| {heading} | tok/s |\n|---|---|\n| {word} | 61.4 |\n| 100 | 94.2 |\n| 200 | 135.5 |\n"),
    ):
        found = read(tmp_path, text, name)
        rate = next(each for each in found.value_names if each.startswith("tok"))
        assert best(found, rate, heading) == "200"
        assert next(iter(found.in_file_order())).configuration[heading] == word


def test_ranges_of_what_was_accepted_are_no_choice() -> None:
    ranges = ("0.53-0.86", "0.47-0.77", "0.38-0.69", "0.38-0.69")
    roles = judged(columns("n_max,acceptance,tok_s", (1, 2, 3, 4), ranges, (61.4, 94.2, 135.5, 120.5)))
    assert roles["acceptance"] is Role.UNUSED
    roles = judged(columns("n_max,acceptance,tok_s", (1, 2, 3, 4), (0.8, 0.7, 0.6, 0.6), (61.4, 94.2, 135.5, 120.5)))
    assert roles["acceptance"] is Role.FIGURE


def test_a_word_among_figures_is_a_cell_to_correct(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'default' is not a number"):
        read(tmp_path, columns("block,time_ms", (32, 64, 128), ("default", 2.5, 3.5)))


def test_results_are_told_apart_by_the_options_of_their_commands_and_not_by_processes(tmp_path: Path) -> None:
    text = ""
    for pid, prompts, rate in ((158, 1, 50.5), (158, 20, 239.5), (2739, 300, 1450.5)):
        text += f"$ bench --backend vllm \\\n--port 8081 --num-prompts {prompts} --host 10.0.0.{pid % 7}\n\n"
        text += f"======== Serving Benchmark Result ========\nSuccessful requests: {prompts}\n"
        text += f"Output token throughput (tok/s): {rate}\n==========================================\n"
        text += f"(APIServer pid={pid + 1}) INFO Avg prompt throughput: 0.0 tokens/s\n\n"
    found = read(tmp_path, text, "README.md")
    assert found.space().names == ("num-prompts",)
    assert best(found, "Output token throughput (tok/s)", "num-prompts") == 300


def test_the_version_of_a_dataset_is_no_choice(tmp_path: Path) -> None:
    text = "model,dataset,dataset_version,precision,time_s\n" + "".join(
        f"gemma,{dataset},{version},{precision},{seconds}\n"
        for dataset, version, seconds in (("BoolQ", "128", 0.14), ("BoolQ", "full", 0.11), ("HotpotQA", "128", 0.31))
        for precision in ("fp16", "int8")
    )
    kernels = {m.configuration["kernel"] for m in read(tmp_path, text).measurements()}
    assert len(kernels) == 3


def test_cycles_are_no_seconds() -> None:
    assert (
        judged("unroll,Latency_cycles,power_w\n1,1049396,2.9\n2,2097972,2.8\n4,5097972,2.7\n")["Latency_cycles"]
        is Role.FIGURE
    )


def test_cells_that_grow_with_the_nodes_are_work() -> None:
    text = "nodes,cells,time_per_step_ms\n1,16777216,182.4\n2,33554432,187.4\n4,67108864,187.9\n"
    assert judged(text)["cells"] is Role.WORK


def test_a_rate_of_each_board_is_not_taken_times_one_kind_of_parallelism_among_others(tmp_path: Path) -> None:
    text = "TP,PP,DP,tokens/s/GPU\n2,4,8,3416.5\n4,2,8,3314.5\n8,1,8,2990.5\n"
    recording = read(tmp_path, text)
    assert best(recording, "tokens/s/GPU", "TP") == 2


def test_a_flag_that_was_tuned_is_a_choice_beside_the_number_of_the_trial() -> None:
    text = "trial,block_x,use_shmem,duration_us\n0,128,0,201.7\n1,32,1,190.8\n2,32,0,209.2\n3,64,1,166.2\n"
    assert judged(text)["use_shmem"] is Role.PARAMETER


def test_a_percentile_beside_a_rate_is_no_time_of_the_work(tmp_path: Path) -> None:
    recording = read(
        tmp_path, "instances,throughput,board_power_w,p95_ms\n7,2907.5,316,22.1\n3,2415.5,288,11.5\n1,900.5,150,9\n"
    )
    assert all("energy_j" not in m.values for m in recording.measurements())
