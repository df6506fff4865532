"""Tables in what programs print, and cells that hold words, durations or a verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.base.errors import InputError
from app.engine.formats.headings import Role
from app.engine.formats.read import read_recording
from app.engine.formats.recording import Recording
from app.engine.formats.table_columns import TableColumns


def recording_of(path: Path, text: str, **columns: str) -> Recording:
    path.write_text(text)
    return read_recording(path, TableColumns.parse(**columns))


def rows(recording: Recording) -> list[dict[str, object]]:
    return [{**m.configuration, **m.values} for m in recording.in_file_order()]


def test_lines_of_names_and_values_among_others_are_rows(tmp_path: Path) -> None:
    text = "Computing ...\n" + "".join(
        f"block_size={size},Freq={freq},Time={time} [ms],Energy={energy} [mJ]\n"
        for size in (64, 128)
        for freq, time, energy in ((1710, 44.5, 9000), (1200, 63.25, 7500))
    )
    read = rows(recording_of(tmp_path / "sweep.log", text))
    assert [(row["block_size"], row["graphics_clock_mhz"]) for row in read] == [
        (64, 1710),
        (64, 1200),
        (128, 1710),
        (128, 1200),
    ]
    assert read[0]["time_s"] == pytest.approx(0.0445)
    assert read[0]["energy_j"] == pytest.approx(9.0)
    tabs = "dim:4\tactual:0.00185s\ndim:8\tactual:0.00112s\ndim:16\tactual:0.00063s\n"
    assert [row["time_s"] for row in rows(recording_of(tmp_path / "dims.txt", tabs))] == [0.00185, 0.00112, 0.00063]


def test_sums_below_a_table_are_no_rows(tmp_path: Path) -> None:
    text = "block_size,time_ms\n32,1.5\n64,1.25\n128,1.75\n\nTotal Elapsed Time (sec) = 2.03\n\nAverage = 1.5\n"
    assert len(rows(recording_of(tmp_path / "with_sums.csv", text))) == 3
    answers = 'model,prompt,tokens_per_s\na,"one\n\nand a, b, c",10.5\nb,two,12.5\n'
    assert len(rows(recording_of(tmp_path / "answers.csv", answers))) == 2


def test_columns_between_bars_are_read_with_durations_in_seconds(tmp_path: Path) -> None:
    text = "block_size|Elapsed|ConsumedEnergyRaw\n32|00:10:00|120000\n64|1-00:00:01|140000\n"
    read = rows(recording_of(tmp_path / "sacct.txt", text))
    assert [row["time_s"] for row in read] == [600.0, 86401.0]


def test_words_in_place_of_a_time_are_a_row_without_one(tmp_path: Path) -> None:
    text = "block_size,milliseconds\n32,1.5\n64,cublas error\n128,1.75\n256,cublas error\n512,2.5\n"
    recording = recording_of(tmp_path / "errors.csv", text)
    assert [row["block_size"] for row in rows(recording)] == [32, 128, 512]
    assert any("2 of 5 rows" in note for note in recording.notes)


def test_a_column_of_verdicts_says_how_rows_went_whatever_its_name(tmp_path: Path) -> None:
    text = "block_size,time_ms,outcome\n32,1.5,PASS\n64,0.1,FAIL\n128,1.75,PASS\n"
    recording = recording_of(tmp_path / "verified.csv", text)
    assert [m.error for m in recording.in_file_order()] == ["", "outcome: FAIL", ""]


MATMUL = (
    "M,N,K,kernel,block_x,time_ms,gflops\n"
    "512,512,512,{0},8,0.157445,1704.94\n512,512,512,{0},16,0.130556,2056.10\n512,512,512,{1},0,0.030025,8940.32\n"
    "1024,1024,1024,{0},8,1.153997,1860.91\n1024,1024,1024,{0},16,0.950000,2260.51\n1024,1024,1024,{1},0,0.200000,10737.4\n"
)


@pytest.mark.parametrize("names", [("Naive", "cuBLAS"), ("mine", "theirs")])  # by their names, or by what they do
def test_kernels_that_do_the_same_operations_are_compared_for_each_size(tmp_path: Path, names: tuple[str, str]) -> None:
    recording = recording_of(tmp_path / "matmul.csv", MATMUL.format(*names))
    assert {row["kernel"] for row in rows(recording)} == {"M 512 N 512 K 512", "M 1024 N 1024 K 1024"}
    assert {row["kernel (chosen)"] for row in rows(recording)} == {*names}
    assert not any("not certain" in note for note in recording.notes)


def test_kernels_of_other_operations_are_kept_apart(tmp_path: Path) -> None:
    text = MATMUL.format("softmax", "gemm").replace("8940.32", "447.0").replace("10737.4", "536.9")
    assert len({row["kernel"] for row in rows(recording_of(tmp_path / "kernels.csv", text))}) == 4


def test_rates_that_each_request_saw_are_not_the_rate_of_the_service(tmp_path: Path) -> None:
    text = (
        "concurrency,total_requests,total_time,requests_per_second,total_output_tokens,tokens_per_second\n"
        "1,10,40,0.25,640,17\n10,100,100,1.0,6000,6.5\n50,500,480,1.04,24000,2.5\n100,1000,1000,1.0,52000,1.4\n"
    )
    recording = recording_of(tmp_path / "load.csv", text)
    read = rows(recording)
    assert [row["total_output_tokens/s"] for row in read] == [16, 60, 50, 52]
    assert recording.objective.goal.name == "total_output_tokens/s"
    assert "tokens_per_second is not 'total_output_tokens' over 'total_time'" in recording.notes
    assert "time_s" not in read[0]  # of 10 to 1000 requests: the times are not compared


def test_a_limit_of_the_processor_is_a_choice_beside_the_board_s(tmp_path: Path) -> None:
    text = "CPU Cap (W),GPU Cap (W),GPU_E (J),Runtime (s)\n" + "".join(
        f"{cpu},{gpu},{2000 + cpu + gpu},{80 - cpu / 10 - gpu / 20}\n"
        for cpu in (65, 85, 105)
        for gpu in (100, 150, 200)
    )
    read = rows(recording_of(tmp_path / "caps.csv", text))
    assert {(row["CPU Cap (W)"], row["power_limit_w"]) for row in read} == {
        (c, g) for c in (65, 85, 105) for g in (100, 150, 200)
    }


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("size,deepgemm_us,moreh_us\n1,12.9,14.6\n2,21.2,18.6\n3,31.3,23.1\n", "deepgemm_us"),
        (
            "seq_len,plain_attn_joules,other_attn_joules\n128,3.1e-5,1.5e-5\n512,5e-4,6.2e-5\n2048,8e-3,2.5e-4\n",
            "plain_attn_joules",
        ),
        ("size,cpu_ms,gpu_ms,total_ms\n1,39.6,0.57,41\n2,38.6,4.48,44\n3,127.2,38.1,166\n", "total_ms"),
    ],
)
def test_times_or_energies_of_two_unknown_things_are_asked_about(tmp_path: Path, text: str, heading: str) -> None:
    recording = recording_of(tmp_path / "two.csv", text)
    asked = [column.heading for column in recording.columns if len(column.candidates) > 1]
    assert asked == [heading]


def test_lines_of_figures_with_their_units_have_no_heading(tmp_path: Path) -> None:
    text = "naive: 12.31 ms | 10.1 GFLOP/s\n tiled: 2.5 ms | 49.7 GFLOP/s\n cublas: 0.41 ms | 303.1 GFLOP/s\n"
    read = rows(recording_of(tmp_path / "terminal.csv", text))
    assert [(row["column 1"], row["column 2 (GFLOP/s)"]) for row in read] == [
        ("naive: 12.31 ms", 10.1),
        ("tiled: 2.5 ms", 49.7),
        ("cublas: 0.41 ms", 303.1),
    ]


def test_a_letter_that_may_be_a_unit_is_none_where_no_board_is_so_hot(tmp_path: Path) -> None:
    text = "block_size,stride_c,time_ms\n32,524288,1.5\n64,1048576,1.25\n128,524288,1.75\n"
    roles = {column.heading: column.role for column in recording_of(tmp_path / "strides.csv", text).columns}
    assert roles["stride_c"] is not Role.TEMPERATURE
    text = text.replace("stride_c", "edge_c").replace("524288", "61").replace("1048576", "63")
    roles = {column.heading: column.role for column in recording_of(tmp_path / "edges.csv", text).columns}
    assert roles["edge_c"] is Role.TEMPERATURE


def test_counters_of_a_profile_are_no_choices(tmp_path: Path) -> None:
    names = [f"count_{n}" for n in range(40)]
    lines = [
        ",".join(["gemm", str(clock), str(clock / 10), *(str((row * n) % 97) for n in range(40)), "1.5"])
        for row, clock in enumerate(range(500, 1500, 5))
    ]
    text = "\n".join([",".join(["kernel", "sm_clock", "power", *names, "time_ms"]), *lines, ""])
    read = rows(recording_of(tmp_path / "counters.csv", text))
    assert len(read) == 200
    assert set(read[0]) >= {"graphics_clock_mhz", "time_ms"}


def test_lists_of_rows_under_names_of_their_own_are_all_read(tmp_path: Path) -> None:
    levels = '[{"concurrency": 1, "output_tokens_per_second": 50}, {"concurrency": 8, "output_tokens_per_second": %d}]'
    text = f'{{"float32": {{"levels": {levels % 400}}}, "float16": {{"levels": {levels % 300}}}}}'
    read = rows(recording_of(tmp_path / "levels.json", text))
    assert len(read) == 4
    assert {row["key"] for row in read} == {"float32", "float16"}


@pytest.mark.parametrize("names", [("fp16", "int8"), ("Q4_K_M", "q8_0"), ("GPTQ", "awq"), ("float32", "resnet")])
def test_models_that_are_named_by_their_format_alone_are_choices(tmp_path: Path, names: tuple[str, str]) -> None:
    lines = "".join(f"{name},{batch},{batch * 10 + n}\n" for n, name in enumerate(names) for batch in (1, 8))
    recording = recording_of(tmp_path / "formats.csv", f"model,batch_size,tokens_per_s\n{lines}")
    chosen = "resnet" not in names  # a model, kept apart as any is
    assert ("kernel" in rows(recording)[0]) is not chosen


def test_what_is_emitted_and_what_a_part_of_the_board_moves_is_no_speed_of_the_work(tmp_path: Path) -> None:
    text = (
        "block_size,time_ms,emissions_rate_kg_per_s,dram_read_throughput,gflops\n32,1.5,0.1,700,10\n64,1.25,0.2,7,12\n"
    )
    recording = recording_of(tmp_path / "other_rates.csv", text)
    roles = {column.heading: column.role for column in recording.columns}
    assert roles["gflops"] is Role.THROUGHPUT
    assert {roles["emissions_rate_kg_per_s"], roles["dram_read_throughput"]} == {Role.FIGURE}


def test_an_efficiency_that_names_no_energy_is_no_work_per_energy(tmp_path: Path) -> None:
    text = "block_size,time_ms,Efficiency Gap,warp efficiency,energy efficiency\n32,1.5,37,91,10\n64,1.25,36,92,12\n"
    roles = {column.heading: column.role for column in recording_of(tmp_path / "eff.csv", text).columns}
    assert roles["energy efficiency"] is Role.EFFICIENCY
    assert Role.EFFICIENCY not in (roles["Efficiency Gap"], roles["warp efficiency"])


def test_a_few_rows_that_do_not_say_what_ran_are_left_out_and_counted(tmp_path: Path) -> None:
    lines = "".join(f"matrix_{n},{block},{1.5 + n / 10 + block / 100}\n" for n in range(15) for block in (1, 2))
    recording = recording_of(tmp_path / "matrices.csv", f"kernel,block,time_ms\n{lines},1,0.5\n")
    assert len(rows(recording)) == 30
    assert "1 rows do not say what ran and are left out" in recording.notes


def test_numbers_that_follow_from_each_other_are_asked_about_once(tmp_path: Path) -> None:
    lines = "".join(f"{m},{d},{d * 1000},{t + d}\n" for m, t in (("dense", 1.5), ("sparse", 3.5)) for d in (1, 5, 10))
    recording = recording_of(tmp_path / "density.csv", f"mode,density,filled,time_ms\n{lines}")
    asked = [note for note in recording.notes if "not certain" in note]
    assert asked == [
        "density is read as amount of work, but may be parameter: it is not certain (--roles density=parameter)"
    ]
    assert len({row["kernel"] for row in rows(recording)}) == 3


def test_figures_of_two_programs_side_by_side_are_compared_by_their_ends(tmp_path: Path) -> None:
    text = "Matrix,TileSpGEMM_ms,TileSpGEMM_GFlops,mine_ms,mine_GFlops\n"
    text += "a,28.6,38.7,5.3,206.3\nb,DNF,,4.8,110.2\nc,19.1,48.6,8.9,103.5\n"
    recording = recording_of(tmp_path / "spgemm.csv", text)
    assert {row["implementation"] for row in rows(recording)} == {"TileSpGEMM", "mine"}
    assert len(rows(recording)) == 5  # one did not finish
    stages = "size,forward_ms,forward_gflops,backward_ms,backward_gflops\n1,2,3,4,5\n2,3,4,5,6\n"
    assert "implementation" not in rows(recording_of(tmp_path / "stages.csv", stages))[0]


def test_the_rate_of_all_tokens_is_found_where_none_is_written(tmp_path: Path) -> None:
    text = "batch_size,duration_s,total_output_tokens\n8,10,1000\n16,10,1500\n32,10,1200\n"
    recording = recording_of(tmp_path / "offline.csv", text)
    assert [row["total_output_tokens/s"] for row in rows(recording)] == [100, 150, 120]


def test_rows_of_one_configuration_that_differ_by_more_than_repeats_do_are_asked_about(tmp_path: Path) -> None:
    text = "quant,tokens_per_s,Notes\nq4,12.1,at 25 W\nq4,7.4,at 15 W\nq8,10.5,at 15 W too\nq8,16.0,at 25 W too\n"
    notes = recording_of(tmp_path / "modes.csv", text).notes
    what = "rows of one configuration differ by 58 % in tokens_per_s: Notes is read as not used, but may be parameter"
    assert f"{what}: it is not certain (--roles Notes=parameter)" in notes
    steady = text.replace("7.4", "12.2").replace("16.0", "10.4")
    assert not any("differ by" in note for note in recording_of(tmp_path / "steady.csv", steady).notes)


def test_names_of_several_words_stand_two_spaces_apart(tmp_path: Path) -> None:
    path = tmp_path / "printed.txt"
    rows = "".join(f"{tile:<9}  {time:<9}  {watts}\n" for tile, time, watts in ((16, 1.25, 120.5), (32, 0.95, 140.1)))
    path.write_text("Tile Size  Time (ms)  Power Draw (W)\n" + "-" * 40 + "\n" + rows)
    assert [dict(m.configuration) for m in read_recording(path, TableColumns()).measurements()] == [
        {"Tile Size": 16},
        {"Tile Size": 32},
    ]
    named = "Kernel     Tile Size  Time (ms)\nplain one  16         1.25\nplain one  32         0.95\n"
    path.write_text(named)
    assert [m.configuration["Tile Size"] for m in read_recording(path, TableColumns()).measurements()] == [16, 32]


def test_a_table_that_powershell_wrote_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    path.write_bytes("tile,time_ms\n16,1.25\n32,0.95\n".encode("utf-16"))
    assert [m.configuration["tile"] for m in read_recording(path, TableColumns()).measurements()] == [16, 32]


def test_lines_of_a_name_and_amounts_with_units_are_rows(tmp_path: Path) -> None:
    lines = ("naive: 12.5 ms | 10.0 GFLOP/s", "tiled: 1.25 ms | 100.0 GFLOP/s", "cublas: 0.5 ms | 250.0 GFLOP/s")
    recording = recording_of(tmp_path / "out.txt", "Running on an A100\n" + "\n".join(lines) + "\ndone\n")
    assert [(m.configuration["name"], m.values["time_s"]) for m in recording.in_file_order()] == [
        ("naive", 0.0125),
        ("tiled", 0.00125),
        ("cublas", 0.0005),
    ]


def test_sizes_within_printed_lines_are_other_work(tmp_path: Path) -> None:
    lines = (f"Matrix size {n}: Elapsed {n / 1000} ms, Performance: {n + 0.5} GFLOPS" for n in (1024, 2048, 4096))
    recording = recording_of(tmp_path / "out.txt", "\n".join(lines))
    assert {m.configuration["kernel"] for m in recording.measurements()} == {f"size {n}" for n in (1024, 2048, 4096)}


def test_printed_variants_that_do_as_many_operations_are_compared_within_titles(tmp_path: Path) -> None:
    one = (
        "mul 'by element', order 1024, {0} seconds at {1} MFLOPS\nmul 'by row', order 1024, {2} seconds at {3} MFLOPS\n"
    )
    text = f"== CPU ==\n{one.format(0.5, 4000, 0.25, 8000)}== GPU ==\n{one.format(0.125, 16000, 0.0625, 32000)}"
    best = min(recording_of(tmp_path / "out.txt", text).measurements(), key=lambda m: m.values["time_s"])
    assert best.configuration["setup"] == "GPU"
    assert "by row" in str(best.configuration["name"])


def test_few_amounts_in_prose_are_no_table(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        recording_of(
            tmp_path / "out.txt", "It took 12 ms in 2024.\nThen 3 of 4 failed.\nA run of 5 took 11 ms.\n1 is left."
        )


def test_seconds_since_1970_are_when_and_not_how_long(tmp_path: Path) -> None:
    text = "finish_seconds,tile,power_W\n" + "".join(f"{1741098000 + 7 * n},{n},{90 + n}.5\n" for n in (4, 8, 16))
    roles = {column.heading: column.role for column in recording_of(tmp_path / "t.csv", text).columns}
    assert roles["finish_seconds"] is Role.STAMP


def test_scatter_behind_an_amount_is_not_it_and_intervals_are_refused(tmp_path: Path) -> None:
    lines = ("naive: 299051.5 ± 3887.6 ops/ms", "tiled: 310051.5 ± 17.6 ops/ms", "fused: 320051.5 ± 1887.6 ops/ms")
    recording = recording_of(tmp_path / "out.txt", "\n".join(lines))
    assert 3887.6 not in {value for m in recording.measurements() for value in m.values.values()}
    with pytest.raises(InputError):
        recording_of(tmp_path / "out.txt", "\n".join(f"{n} time: [1.1{n} ms 1.2{n} ms 1.3{n} ms]" for n in "123"))
