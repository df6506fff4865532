"""Cells as evidence of what a column is where no heading says it, and questions where they say nothing either."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.base.errors import InputError
from app.engine.formats.any_table import read_table
from app.engine.formats.columns import parse_columns
from app.engine.formats.headings import Column, Role, unit_of
from app.engine.formats.recording import Recording
from app.engine.formats.roles import roles_of
from app.engine.formats.table_columns import TableColumns


def found(text: str) -> dict[str, Column]:
    return {column.heading: column for column in roles_of(parse_columns(text, "file.csv").by_kind())}


def of_two(first: str, second: str, heading: str = "thing") -> str:
    """A table in which a column without a known heading has two values, beside a choice."""
    rows = [f"{one},{tile},{tile + 0.25 * at}" for at, one in enumerate((first, second), 1) for tile in (8, 16)]
    return "\n".join((f"{heading},tile,time_ms", *rows, ""))


def read(tmp_path: Path, text: str, name: str = "table.csv", columns: TableColumns | None = None) -> Recording:
    path = tmp_path / name
    path.write_text(text)
    return read_table(path, columns)


def rows(recording: Recording) -> list[dict[str, object]]:
    return [{**m.configuration, **m.values} for m in recording.in_file_order()]


@pytest.mark.parametrize(
    ("first", "second", "role"),
    [
        ("NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-16GB", Role.BOARD),
        ("a100", "mi300x", Role.BOARD),
        ("meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-7B-Instruct", Role.KERNEL),
        ("resnet50", "bert-base-uncased", Role.KERNEL),
        ("ShareGPT_V3", "gsm8k", Role.KERNEL),
        ("sgemm", "spmv_csr", Role.KERNEL),
        ("cublas", "mine", Role.PARAMETER),
        ("flash_attention", "naive_attention", Role.PARAMETER),
        ("fp16", "int8", Role.PARAMETER),
        ("True", "False", Role.PARAMETER),
        ("on", "off", Role.PARAMETER),
    ],
)
def test_cells_say_what_a_column_is_and_nothing_is_asked(first: str, second: str, role: Role) -> None:
    column = found(of_two(first, second))["thing"]
    assert (column.role, column.candidates) == (role, ())


@pytest.mark.parametrize(
    ("first", "second"),
    [("alpha", "beta"), ("opt_1", "opt_2"), ("v2", "v10"), ("a1c4f", "b2c4d"), ("left", "right"), ("p10", "p90")],
)
def test_cells_that_are_no_known_names_are_asked_about(first: str, second: str) -> None:
    assert found(of_two(first, second))["thing"].candidates == (Role.KERNEL, Role.PARAMETER)


def test_what_came_out_is_no_choice_though_it_is_true_or_false() -> None:
    assert found(of_two("True", "False", "any_criterion_failed"))["any_criterion_failed"].role is Role.UNUSED
    assert found(of_two("True", "False", "valid"))["valid"].role is Role.STATE


def test_names_that_say_what_another_column_says_tell_nothing_more() -> None:
    lines = "PT,resnet A,8,1.5\nPT,resnet A,16,1.75\nTF,resnet B,8,2.5\nTF,resnet B,16,2.75\n"
    text = f"library,model_of,tile,time_ms\n{lines}"
    assert found(text)["model_of"].why == "follows from 'library'"
    several = text.replace("PT,resnet A,16", "PU,resnet A,16")
    assert found(several)["model_of"].role is Role.KERNEL, "what ran does not follow from choices, though they name it"


@pytest.mark.parametrize("heading", ["n_objects", "number_of_agents", "infeatures", "max_new_tokens"])
def test_how_many_things_there_were_is_an_amount_of_work(heading: str) -> None:
    column = found(of_two("100", "200", heading))[heading]
    assert (column.role, column.candidates) == (Role.WORK, ())


@pytest.mark.parametrize("heading", ["n_threads", "num_warps", "num_processes", "warmup_iterations"])
def test_how_many_there_were_of_what_does_the_work_is_a_choice(heading: str) -> None:
    column = found(of_two("1", "2", heading))[heading]
    assert (column.role, column.candidates) == (Role.PARAMETER, ())


def test_seeds_and_numbers_of_blocks_tell_repeats_apart_and_choose_nothing(tmp_path: Path) -> None:
    recording = read(tmp_path, "seed,tile,ms\n7,8,1.5\n42,8,1.25\n7,16,2.5\n42,16,2.75\n")
    assert recording.space().names == ("tile", "repeat")
    assert [row["repeat"] for row in rows(recording)] == [1, 2, 1, 2]
    blocks = "block,rep,tile,ms\n0,1,8,1.5\n0,2,8,1.25\n1,1,8,1.5\n1,2,8,1.25\n0,1,16,2.5\n1,1,16,2.75\n"
    assert "block" not in read(tmp_path, blocks).space().names
    assert "block" in read(tmp_path, blocks.replace("rep,", "tile_y,")).space().names


def test_a_width_beside_a_height_is_the_size_of_an_image() -> None:
    both = found("width,height,tile,time_ms\n64,48,8,1.5\n64,48,16,1.25\n128,96,8,2.5\n128,96,16,2.25\n")
    assert {both["width"].role, both["height"].role} == {Role.WORK}
    alone = found("block,width,time_ms\n16,1,5.0\n32,1,4.0\n64,2,3.0\n")
    assert alone["width"].role is Role.PARAMETER


def test_a_time_that_rises_evenly_is_when_and_not_how_long(tmp_path: Path) -> None:
    lines = "".join(f"{0.4 * row + 0.0001 * (row % 3):.4f},{4000 + row % 7},{900 + row % 5}\n" for row in range(30))
    text = f"TIME,TOTAL,SOC\n{lines}"
    assert found(text)["TIME"].role is Role.STAMP
    with pytest.raises(InputError):
        read(tmp_path, text)
    uneven = "".join(f"{2 ** (row / 4):.4f},{4000 + row % 7}\n" for row in range(30))
    assert found(f"TIME,TOTAL\n{uneven}")["TIME"].role is Role.TIME


def test_a_clock_that_starts_again_with_a_label_is_no_run_time() -> None:
    rows = "".join(f"{run},{at},{watts + at % 3}\n" for run, watts in (("a", 200), ("b", 300)) for at in range(30))
    assert found("work,time_s,power_w\n" + rows)["time_s"].role is Role.STAMP


def test_run_times_of_two_kernels_are_no_clock() -> None:
    rows = "".join(f"{run},{at},{5 + at},{200 + at % 3}\n" for run in "ab" for at in range(30))
    assert found("kernel,size,time_s,power_w\n" + rows)["time_s"].role is Role.TIME


def test_a_count_of_samples_is_no_power() -> None:
    assert found("run,gpu_power_samples,avg_power_w\na,58,29.5\nb,60,30.5\n")["gpu_power_samples"].role is Role.FIGURE


def test_a_first_row_that_is_like_the_others_is_no_heading(tmp_path: Path) -> None:
    lines = "add,1000,2.503,7.425,4.563\nadd,100,0.0027,1.132,0.846\nmul,1000,2.25,6.5,4.25\nmul,100,0.0025,1.25,0.75\n"
    with pytest.raises(InputError, match="'column 3' or 'column 4' or 'column 5' may be a throughput, a time, a power"):
        read(tmp_path, lines)
    answered = read(tmp_path, lines, columns=TableColumns.parse(roles="column 3=time"))
    assert [row["time_s"] for row in rows(answered)] == [2.503, 0.0027, 2.25, 0.0025]
    assert set(found("kernel,757,885,1012\na,0.5,0.75,1.5\n")) == {"kernel", "757", "885", "1012"}


def test_tables_of_one_text_with_other_headings_are_not_joined(tmp_path: Path) -> None:
    text = """# Study
| Config | Throughput | P50 |
|--------|-----------:|-----|
| C1 | 48.8 t/s | 8.67s |
| C2 | 48.6 t/s | 8.68s |

## By size
| Config | Small | Large |
|--------|-------|-------|
| C1 | 155ms | 284ms |
| C2 | 150ms | 251ms |
"""
    recording = read(tmp_path, text, "README.md")
    assert [(row["Config"], row["Throughput"]) for row in rows(recording)] == [("C1", 48.8), ("C2", 48.6)]
    assert any("1 other tables of the file have other headings and are left out" in note for note in recording.notes)


def test_a_time_without_end_is_a_run_that_failed(tmp_path: Path) -> None:
    text = "backend,batch,latency_ms\neager,1,2.5\neager,2,4.5\nscript,1,inf\nscript,2,inf\njit,1,1.5\njit,2,OOM\n"
    recording = read(tmp_path, text)
    best = min((m for m in recording.in_file_order() if "time_s" in m.values), key=lambda m: m.values["time_s"])
    assert best.configuration["backend"] == "jit"


def test_settings_across_of_unknown_cells_are_one_question(tmp_path: Path) -> None:
    text = "what,1,2,4,8\nBloom-3b,63.1,124.5,227.9,344.5\nPhi-2,60.5,110.5,200.25,301.5\n"
    with pytest.raises(InputError, match="'value' may be a throughput, a time, a power or an energy"):
        read(tmp_path, text)
    answered = read(tmp_path, text, columns=TableColumns.parse(roles="value=throughput"))
    assert len(rows(answered)) == 8


def test_objects_under_names_of_their_own_are_rows_whatever_stands_beside_them(tmp_path: Path) -> None:
    engines = {name: {"mean_total_time_ms": time, "samples": 84} for name, time in (("mha", 632.5), ("gqa", 203.25))}
    document = {
        "system": {"device": "gpu0", "note": "idle"},
        "engines": engines,
        "comparisons": {"gqa_vs_mha": {"improvement": 67.5}, "mha_vs_gqa": {"improvement": -3.5}},
        "elements_per_token": {"mha": 512, "gqa": 128},
    }
    recording = read(tmp_path, json.dumps(document), "bench.json")
    assert [(row["key"], row["mean_total_time_ms"]) for row in rows(recording)] == [("mha", 632.5), ("gqa", 203.25)]


def test_what_does_no_operations_is_not_compared_with_what_does(tmp_path: Path) -> None:
    lines = [f"{op},{size},{tile},{size * slow},{rate}\n" for op, slow, rate in (("mul", 2.0, 1), ("cast", 1.5, 0))
             for size in (64, 128) for tile in (8, 16)]  # fmt: skip
    text = "op,size,tile,time_ms,gflops\n" + "".join(lines)
    names = {row["kernel"] for row in rows(read(tmp_path, text))}
    assert names == {"mul size 64", "mul size 128", "cast size 64", "cast size 128"}


def test_of_many_times_beside_a_speed_none_is_asked_about() -> None:
    times = "plan_route_ms,generate_all_ms,write_out_ms"
    text = f"tile,{times},tokens_per_s\n8,1.5,2.5,3.5,100.5\n16,1.25,2.25,3.25,110.5\n32,1.75,2.75,3.75,90.5\n"
    assert not [column for column in found(text).values() if column.candidates]
    without = text.replace(",tokens_per_s", "").replace(",100.5", "").replace(",110.5", "").replace(",90.5", "")
    assert [column for column in found(without).values() if column.candidates]


def test_nothing_may_be_one_of_the_values_of_a_choice(tmp_path: Path) -> None:
    runs = [{"request_rate": rate, "tokens_per_s": speed} for rate, speed in
            ((1.0, 177.5), (2.0, 353.5), (4.0, 701.5), (None, 16268.5))]  # fmt: skip
    recording = read(tmp_path, json.dumps({"runs": runs}), "runs.json")
    assert [row["request_rate"] for row in rows(recording)] == [1.0, 2.0, 4.0, "none"]


def test_of_a_run_that_went_on_the_last_row_counts(tmp_path: Path) -> None:
    rows_of_runs = [("a", 10.5, 0.25), ("a", 20.5, 0.5), ("a", 30.5, 0.75), ("b", 5.5, 0.125)]
    lines = "".join(f"{run},{time},{energy}\n" for run, time, energy in rows_of_runs)
    recording = read(tmp_path, f"run_id,duration (s),energy (J)\n{lines}")
    assert any("2 rows are of runs that went on" in note for note in recording.notes)
    assert [(row["time_s"], row["energy_j"]) for row in rows(recording)] == [(30.5, 0.75), (5.5, 0.125)]
    repeats = lines.replace("20.5,0.5", "9.5,0.5")
    assert len(rows(read(tmp_path, f"run_id,duration (s),energy (J)\n{repeats}"))) == 4


def test_objects_side_by_side_in_a_row_are_each_of_what_ran(tmp_path: Path) -> None:
    results = [
        {"size": size, "csr": {"time_ms": 2.5 * size}, "stencil": {"time_ms": 1.5 * size}, "speedup": 1.67}
        for size in (100, 200)
    ]
    read_rows = rows(read(tmp_path, json.dumps({"gpu": "A100", "results": results}), "spmv.json"))
    assert [(row["kernel"], row["key"], row["time_ms"]) for row in read_rows] == [
        ("size 100", "csr", 250.0),
        ("size 100", "stencil", 150.0),
        ("size 200", "csr", 500.0),
        ("size 200", "stencil", 300.0),
    ]


def test_names_across_of_unknown_cells_are_one_question(tmp_path: Path) -> None:
    text = "matrix,original,RCM,AMD,Gray\npwtk,418.5,421.25,416.5,417.5\nldoor,524.5,514.25,524.75,522.5\n"
    with pytest.raises(InputError, match="'value' may be a throughput, a time, a power or an energy"):
        read(tmp_path, text)
    answered = rows(read(tmp_path, text, columns=TableColumns.parse(roles="value=throughput")))
    assert {row["column"] for row in answered} == {"original", "RCM", "AMD", "Gray"}


def test_times_of_other_amounts_of_tokens_give_way_to_the_speed(tmp_path: Path) -> None:
    lines = "400,394.5,104.0,116.75\n450,446.5,107.75,152.25\n525,517.75,111.5,136.0\n"
    recording = read(tmp_path, f"power limit (W),avg draw (W),gen t/s,total time (s)\n{lines}")
    best = max(recording.in_file_order(), key=lambda m: m.values["gen t/s"])
    assert best.configuration == {"power_limit_w": 525}
    assert "time_s" not in best.values, "each generated as much as it liked"


def test_a_mean_rate_that_falls_while_requests_grow_is_not_the_speed_that_counts(tmp_path: Path) -> None:
    lines = "1,0.59,51.0\n10,5.4,48.0\n100,42.25,30.5\n"
    recording = read(tmp_path, f"concurrency,requests_per_s,tokens_per_sec_avg\n{lines}")
    assert recording.objective.goal.name == "requests_per_s"
    assert any("tokens_per_sec_avg is of single requests: it falls as" in note for note in recording.notes)
    grows = lines.replace("48.0", "480").replace("30.5", "3050")
    both = read(tmp_path, f"concurrency,requests_per_s,tokens_per_sec_avg\n{grows}")
    assert both.objective.goal.name.startswith("tokens_per_sec")


def test_a_heading_and_cells_that_say_different_things_are_asked_about() -> None:
    column = found(of_two("fft", "gemm", "algorithm"))["algorithm"]
    assert column.candidates == (Role.KERNEL, Role.PARAMETER)


def test_rows_that_are_said_to_be_of_warming_up_are_left_out(tmp_path: Path) -> None:
    recording = read(tmp_path, "tile,is_warmup,ms\n8,True,9.5\n8,False,1.5\n16,True,8.5\n16,False,1.25\n")
    assert [row["tile"] for row in rows(recording)] == [8, 16]
    assert any("2 rows are of warming up" in note for note in recording.notes)


def test_a_number_of_things_that_nobody_can_have_asked_for_is_no_amount_of_work() -> None:
    lines = "tile,n_solutions,ms\n8,{},1.5\n16,{},1.25\n32,{},1.75\n"
    assert found(lines.format(50, 100, 200))["n_solutions"].role is Role.WORK
    assert found(lines.format(13858, 17415, 23331))["n_solutions"].role is not Role.WORK


@pytest.mark.parametrize(
    ("heading", "quantity", "scale"),
    [
        ("energy_mJ", "energy", 1e-3),
        ("gpu_energy_kWh", "energy", 3.6e6),
        ("energy_uJ", "energy", 1e-6),
        ("power_kW", "power", 1e3),
        ("power_mW", "power", 1e-3),
        ("mJ", "energy", 1e-3),
        ("kWh·PUE", "energy", 3.6e6),
        ("train_time_h", "time", 3600.0),
        ("runtime_s", "time", 1.0),
        ("energyJ", "energy", 1.0),
        ("avgW", "power", 1.0),
        ("cap_w", "power", 1.0),
        ("L40S", "", 1.0),
        ("Q4_K_S", "", 1.0),
        ("YOLOv8s", "", 1.0),
        ("GPT-J", "", 1.0),
        ("ViT-S", "", 1.0),
        ("tile_h", "", 1.0),
    ],
)
def test_a_unit_at_the_end_of_a_heading_keeps_its_prefix_and_letters_of_names_are_none(
    heading: str, quantity: str, scale: float
) -> None:
    assert unit_of(heading) == (quantity, scale)


def test_units_of_a_long_table_stand_in_a_column_or_in_the_name_of_the_quantity(tmp_path: Path) -> None:
    of_column = "limit_w,metric,unit,value\n300,energy,mJ,88.2\n300,time,ms,58\n250,energy,mJ,79.4\n250,time,ms,62\n"
    of_name = "config,metric,value\na,duration_ms,10\na,energy_kwh,2.5\nb,duration_ms,8\nb,energy_kwh,2.4\n"
    first, second = (rows(read(tmp_path, text)) for text in (of_column, of_name))
    assert [row["time_s"] for row in first] == [0.058, 0.062]
    assert [row["energy_j"] for row in first] == pytest.approx([0.0882, 0.0794])
    assert [row["energy_j"] for row in second] == pytest.approx([9e6, 8.64e6])
    several = of_column.replace("300,time,ms,58", "300,time,us,58000")
    assert [row["time_s"] for row in rows(read(tmp_path, several))] == [0.058, 0.062]


@pytest.mark.parametrize(("good", "bad"), [("1", "0"), ("True", "False"), ("yes", "no")])
@pytest.mark.parametrize("heading", ["correct", "converged", "reached_target", "valid"])
def test_a_run_that_did_not_go_well_is_not_the_best(tmp_path: Path, heading: str, good: str, bad: str) -> None:
    text = f"block_x,time_ms,power_W,{heading}\n16,4.0,290,{good}\n32,3.1,305,{good}\n64,0.4,320,{bad}\n"
    worked = [m for m in read(tmp_path, text).in_file_order() if m.values]
    assert [m.configuration["block_x"] for m in worked] == [16, 32]


def test_a_status_of_0_is_none_of_a_failure(tmp_path: Path) -> None:
    text = "block,time_ms,status\n16,4.5,0\n32,3.5,0\n64,0.5,0\n"
    said = TableColumns.parse(roles="status=state")
    assert all(m.values for m in read(tmp_path, text, columns=said).in_file_order())


def test_rows_that_sum_up_the_others_are_left_out(tmp_path: Path) -> None:
    recording = read(tmp_path, "config,energy_j,time_s\na,100,1.0\nb,90,1.1\nc,95,1.05\nmean,95,1.05\nstd,4,0.04\n")
    assert [row["config"] for row in rows(recording)] == ["a", "b", "c"]
    assert any("the last 2 rows sum up the others" in note for note in recording.notes)


def test_means_and_sums_that_are_choices_are_no_rows_that_sum_up_others(tmp_path: Path) -> None:
    lines = "".join(f"{n},{how},{n / 100 + at}\n" for n in (100, 200) for at, how in enumerate(("max", "mean", "sum")))
    assert len(rows(read(tmp_path, f"nodes,aggregator,time_ms\n{lines}"))) == 6


def test_how_good_the_result_is_tells_no_configurations_apart() -> None:
    lines = "".join(f"{s},{lr},{10 + lr + s / 10},{0.9 + s / 100}\n" for s in (0, 1, 2) for lr in (0.1, 0.4))
    assert found(f"seed,lr,time_s,test_acc\n{lines}")["test_acc"].role is Role.FIGURE


def test_lists_of_one_kind_under_names_of_their_own_are_read_together(tmp_path: Path) -> None:
    document = {
        name: [{"batch": batch, "latency_ms": batch * slow} for batch in (1, 8)]
        for name, slow in (("fp16", 5.0), ("int8", 3.0))
    }
    assert len(rows(read(tmp_path, json.dumps(document), "runs.json"))) == 4
    warm = {"warmup": [{"block": 64, "time_ms": 0.5}], "results": [{"block": b, "time_ms": 5.0 + b} for b in (64, 128)]}
    assert min(row["time_ms"] for row in rows(read(tmp_path, json.dumps(warm), "warm.json"))) == 69.0


def test_where_some_rows_have_a_speed_and_no_time_the_speed_is_compared(tmp_path: Path) -> None:
    lines = "cpu,3.5,1000.5\ncpu2,4.5,900.5\ngpu,,5000.5\n"
    recording = read(tmp_path, f"device_kind,run_time,mops_s\n{lines}")
    assert str(recording.objective.goal) == "max:mops_s"
    assert not any("time_s" in m.values for m in recording.in_file_order())


def test_a_mean_rate_that_falls_with_concurrency_is_asked_about() -> None:
    column = found("concurrency,mean_tokens_per_second,p_w\n1,95,180.5\n8,80,300.5\n32,45,390.25\n")
    assert column["mean_tokens_per_second"].candidates == (Role.THROUGHPUT, Role.FIGURE)


@pytest.mark.parametrize(
    "text",
    [
        "method,params_M,flops_G,time_ms\nyolov5s,7.2,16.5,6.5\nyolov5m,21.2,49.0,8.25\ndetr-r50,41.0,86.0,36.5\n",
        "layer,flops,time_us\nconv1,118013952,52.5\nconv2,115605504,44.25\nfc,512000,1.125\n",
    ],
)
def test_operations_that_a_model_takes_are_no_speed(text: str) -> None:
    assert not [column for column in found(text).values() if column.role is Role.THROUGHPUT]
    rate = "tile,gflops,time_ms\n8,755.5,1.5\n16,991.75,1.25\n32,1012.5,1.125\n"
    assert found(rate)["gflops"].role is Role.THROUGHPUT


def test_limits_across_are_settings(tmp_path: Path) -> None:
    text = "model,150W,200W,250W\nllama-8b (tok/s),88.5,110.25,121.5\nmistral-7b (tok/s),94.5,118.75,130.25\n"
    read_rows = rows(read(tmp_path, text))
    assert [row["power_limit_w"] for row in read_rows] == [150, 200, 250]
    assert [row["llama-8b (tok/s)"] for row in read_rows] == [88.5, 110.25, 121.5]


@pytest.mark.parametrize("rates", ['310.5\n"1,210"\n"2,450"', '310\n"1,210.5"\n"2,450"', '310\n"1,210"\n"2,450"'])
def test_a_comma_before_three_digits_is_one_between_thousands_beside_decimal_points(rates: str) -> None:
    lines = zip((1, 8, 16), rates.split("\n"), (2.95, 1.12, 0.95), strict=True)
    text = "\n".join(("batch,throughput (tok/s),J/token", *(f"{b},{rate},{j}" for b, rate, j in lines), ""))
    read = parse_columns(text, "file.csv").numbers("throughput (tok/s)").tolist()
    assert [round(each) for each in read[1:]] == [1210, 2450]


def test_a_decimal_comma_beside_decimal_points_is_refused() -> None:
    with pytest.raises(InputError, match="decimal commas and others with decimal points"):
        parse_columns('batch,time (s),energy (J)\n1,"0,25",2.95\n8,"0,31",1.12\n', "file.csv")


@pytest.mark.parametrize("units", ["W,tok/s,W,J/token", "(W),(tok/s),(W),(J/token)", "[W],[tok/s],[W],[J/token]"])
def test_a_row_of_units_below_the_headings_is_theirs(units: str) -> None:
    text = f"power_limit,throughput,power,energy\n{units}\n200,1000,195.5,0.195\n250,1200,244.1,0.203\n"
    columns = found(text)
    roles = {heading: (column.role, column.unit) for heading, column in columns.items()}
    assert list(roles.values()) == [
        (Role.POWER_LIMIT, "W"),
        (Role.THROUGHPUT, ""),
        (Role.POWER, "W"),
        (Role.WORK_ENERGY, ""),
    ]
    assert parse_columns(text, "file.csv").first_line == 3


def test_a_first_row_of_words_among_rows_of_words_is_no_row_of_units() -> None:
    text = "mode,tile,time_ms\ns,8,1.5\nms,16,1.25\n"
    assert parse_columns(text, "file.csv").cells["mode"] == ["s", "ms"]


@pytest.mark.parametrize("time", ["time_h", "wall time (h)"])
def test_megajoules_are_known_by_the_power_that_they_give(tmp_path: Path, time: str) -> None:
    """As millijoules, a training of twelve hours would draw 0.1 µW."""
    lines = [f"{watts},{watts * hours * 3.6e-3:.4f},{hours}" for watts, hours in ((145, 12.1), (194, 10.2), (242, 9.4))]
    recording = read(tmp_path, "\n".join((f"power_limit,energy_MJ,{time}", *lines, "")))
    first = next(recording.in_file_order())
    assert first.values["energy_j"] == pytest.approx(145 * 12.1 * 3600, rel=1e-3)
    assert any("energy_MJ is read as megajoules" in note for note in recording.notes)


def test_millijoules_written_as_megajoules_stay_millijoules(tmp_path: Path) -> None:
    text = "block,energy_MJ,time_ms\n32,240,1.2\n64,170,0.9\n128,160,0.8\n"
    assert next(read(tmp_path, text).in_file_order()).values["energy_j"] == pytest.approx(0.24)


@pytest.mark.parametrize(
    ("header", "scale"),
    [
        ("power_limit_w,time_min,energy_wh", 60.0),
        ("power_limit_w,duration_min,other", 60.0),
        ("power_limit_w,train_time_min,energy_wh", 60.0),
        ("block,time_min,time_max", 1.0),
        ("block,time_min,time_avg", 1.0),
    ],
)
def test_min_is_minutes_unless_another_statistic_of_it_is_there(header: str, scale: float) -> None:
    columns = found(f"{header}\n150,12.1,28.7\n200,10.2,32.3\n250,9.4,37.2\n")
    time = next(column for heading, column in columns.items() if heading.endswith("_min"))
    assert (time.role, time.unit, time.scale) == (Role.TIME, "s", scale)


def test_a_budget_of_evaluations_is_no_power_limit() -> None:
    columns = found("budget,best_time_ms\n10,2.4\n50,1.9\n100,1.8\n")
    assert columns["budget"].role is Role.PARAMETER
    assert found("power_budget,time_ms\n150,2.4\n250,1.9\n300,1.8\n")["power_budget"].role is Role.POWER_LIMIT


@pytest.mark.parametrize("heading", ["spills", "reg_spills", "calls", "num_calls"])
def test_what_a_compiler_or_a_profiler_counted_is_no_choice(heading: str) -> None:
    assert found(f"block,{heading},time_ms\n32,0,1.2\n64,4,1.1\n128,12,1.5\n")[heading].role is Role.FIGURE


@pytest.mark.parametrize(
    ("header", "boards"),
    [
        ("tile,A100 time (s),H100 time (s)", ["A100", "H100"]),
        ("tile,A100_time_s,H100_time_s", ["A100", "H100"]),
        ("tile,time_s A100,time_s H100", ["A100", "H100"]),
        ("tile,time (A100) [s],time (H100) [s]", ["A100", "H100"]),
        ("tile,RTX 4090 time (s),RTX 3080 Ti time (s)", ["RTX 4090", "RTX 3080 Ti"]),
    ],
)
def test_boards_side_by_side_are_rows_of_each_board(tmp_path: Path, header: str, boards: list[str]) -> None:
    recording = read(tmp_path, f"{header}\n1,1.25,0.75\n8,2.5,1.25\n16,4.25,2.0\n")
    times = {(row["kernel"], row["tile"]): row["time_s"] for row in rows(recording)}
    keys = [(board, batch) for board in boards for batch in (1, 8, 16)]
    assert times == dict(zip(keys, (1.25, 2.5, 4.25, 0.75, 1.25, 2.0), strict=True))


def test_boards_side_by_side_have_both_of_their_figures(tmp_path: Path) -> None:
    text = "tile,A100 energy (J),H100 energy (J),A100 time (s),H100 time (s)\n1,200,180,1.25,0.75\n8,400,300,2.5,1.25\n"
    recording = read(tmp_path, text)
    of_h100 = [row for row in rows(recording) if row["kernel"] == "H100"]
    assert [(row["energy_j"], row["time_s"]) for row in of_h100] == [(180, 0.75), (300, 1.25)]


def test_units_that_change_from_cell_to_cell_hold_for_their_cell(tmp_path: Path) -> None:
    text = "config,energy,time\na,1.2 kJ,6 s\nb,950 J,7 s\nc,1.1 kJ,900 ms\n"
    read_rows = rows(read(tmp_path, text))
    assert [(row["energy_j"], row["time_s"]) for row in read_rows] == [(1200, 6), (950, 7), (1100, 0.9)]


def test_a_quantity_that_comes_in_several_units_below_one_another_is_one_column(tmp_path: Path) -> None:
    lines = [f"{run},energy,{value},{unit}\n{run},time,{time},s\n" for run, value, unit, time in (
        ("a", 1.2, "kJ", 6), ("b", 950, "J", 7), ("c", 1.1, "kJ", 5))]  # fmt: skip
    read_rows = rows(read(tmp_path, "run,metric,value,unit\n" + "".join(lines)))
    assert [(row["energy_j"], row["time_s"]) for row in read_rows] == [(1200, 6), (950, 7), (1100, 5)]


def test_sums_so_far_of_one_run_are_of_its_last_row(tmp_path: Path) -> None:
    lines = [f"{epoch},{61.2 * epoch:.1f},{0.0042 * epoch:.4f},{0.1 if epoch < 5 else 0.01}" for epoch in range(1, 11)]
    recording = read(tmp_path, "\n".join(("epoch,elapsed_s,energy_kwh,lr", *lines, "")))
    (row,) = rows(recording)
    assert (row["time_s"], row["energy_j"]) == (612, pytest.approx(0.042 * 3.6e6))
    assert "9 rows are of runs that went on, with their sums so far: the last counts" in recording.notes


def test_epochs_with_their_own_times_are_no_sums(tmp_path: Path) -> None:
    lines = [f"{epoch},{60 + epoch % 3},{15000 + 100 * (epoch % 3)}" for epoch in range(1, 11)]
    assert len(rows(read(tmp_path, "\n".join(("epoch,time_s,energy_j", *lines, ""))))) == 10


def test_columns_of_pandas_are_rows(tmp_path: Path) -> None:
    columns = {"block": [1, 8, 16], "time_s": [1.25, 1.5, 2.25], "energy_j": [200, 260, 400]}
    document = {name: {str(row): value for row, value in enumerate(cells)} for name, cells in columns.items()}
    assert [row["energy_j"] for row in rows(read(tmp_path, json.dumps(document), "table.json"))] == [200, 260, 400]
