"""Tables that are wide, through the reader of recordings: what is across becomes a column where that is clear."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.base.errors import InputError
from app.engine.formats.read import read_recording
from app.engine.formats.table_columns import TableColumns

CLOCKS = "frequency(MHz),757,885,1012,1140\n3MM,0.55,0.67,0.75,0.84\nFDTD,0.74,0.95,1.01,1.00\n"


def rows_of(path: Path, text: str, **columns: str) -> list[dict[str, object]]:
    path.write_text(text)
    recording = read_recording(path, TableColumns.parse(**columns))
    return [{**m.configuration, **m.values} for m in recording.in_file_order()]


def test_clocks_across_are_read_where_the_name_of_the_file_says_what_the_cells_are(tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "dataset_performance.csv", CLOCKS)
    assert len(rows) == 8
    assert {row["graphics_clock_mhz"] for row in rows} == {757, 885, 1012, 1140}
    assert {row["kernel"] for row in rows} == {"3MM", "FDTD"}
    assert [row["dataset_performance [1/s]"] for row in rows if row["kernel"] == "FDTD"] == [0.74, 0.95, 1.01, 1.00]
    notes = " ".join(read_recording(tmp_path / "dataset_performance.csv").notes)
    assert "no heading says what its cells are: the name of the file says 'dataset_performance'" in notes


@pytest.mark.parametrize("name", ["dataset_power.csv", "table_3.csv"])
def test_powers_alone_and_cells_of_no_known_kind_give_no_answer(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no column is a time, an energy, a power or a speed"):
        rows_of(tmp_path / name, CLOCKS)


def test_metrics_down_and_a_setting_across_are_turned_without_their_titles(tmp_path: Path) -> None:
    text = (
        "Metric,1,8,64\n[[Serving Benchmark Result]],,,,,\nSuccessful requests,320,320,320\n"
        "Output token throughput (tok/s),54.3,157.2,210.2\nMean TTFT (ms),20,25,90\n"
    )
    rows = rows_of(tmp_path / "trends.csv", text)
    assert [row["column"] for row in rows] == [1, 8, 64]
    assert [row["Output token throughput (tok/s)"] for row in rows] == [54.3, 157.2, 210.2]


def test_implementations_across_are_compared_for_each_size(tmp_path: Path) -> None:
    text = "N,Triton (GB/s),Torch (GB/s)\n4096,63.8,76.8\n8192,153.6,146.2\n"
    rows = rows_of(tmp_path / "vector-add.csv", text)
    assert [(row["kernel"], row["implementation"], row["value (GB/s)"]) for row in rows] == [
        ("N 4096", "Triton", 63.8),
        ("N 8192", "Triton", 153.6),
        ("N 4096", "Torch", 76.8),
        ("N 8192", "Torch", 146.2),
    ]
    assert len(rows_of(tmp_path / "copies.csv", "N,read (GB/s),write (GB/s)\n1024,63.8,76.8\n2048,153.6,146.2\n")) == 2


@pytest.mark.parametrize(
    "heading", ["CPU_Time_ms,GPU_Time_ms", "CPU Time (ms),GPU Time (ms)", "cpu_average_ms,gpu_average_ms"]
)
@pytest.mark.parametrize("speedup", ["", ",Speedup"])
def test_times_of_cpu_and_gpu_are_compared_for_each_size(tmp_path: Path, heading: str, speedup: str) -> None:
    ratios = (",0.4", ",2.4") if speedup else ("", "")
    text = f"Size,{heading}{speedup}\n64,0.006,0.016{ratios[0]}\n128,0.043,0.018{ratios[1]}\n"
    rows = rows_of(tmp_path / "matmul.csv", text)
    assert [(row["kernel"], str(row["implementation"]).upper(), row["time_s"]) for row in rows] == [
        ("Size 64", "CPU", pytest.approx(6e-6)),
        ("Size 128", "CPU", pytest.approx(43e-6)),
        ("Size 64", "GPU", pytest.approx(16e-6)),
        ("Size 128", "GPU", pytest.approx(18e-6)),
    ]
    notes = " ".join(read_recording(tmp_path / "matmul.csv").notes)
    assert ("it is not certain, both times may be parts of one run" in notes) is not bool(speedup)


def test_times_of_cpu_and_gpu_beside_a_figure_of_both_together_are_parts(tmp_path: Path) -> None:
    for beside in ("Elem/s", "total_ms", "energy_j", "power_w"):
        text = f"Size,cpu_time_ms,gpu_time_ms,{beside}\n64,5.5,1.5,8.5\n128,9.5,2.5,13.5\n"
        assert len(rows_of(tmp_path / "parts.csv", text)) == 2


@pytest.mark.parametrize("ends", [("_{}", ""), (" {} (ms)", " (ms)"), ("_{}_ms", "_ms")])
def test_numbers_in_headings_of_one_figure_tell_rows_apart(tmp_path: Path, ends: tuple[str, str]) -> None:
    sizes = (128, 256, 512, 1024)
    heads = ",".join(f"time{ends[0].format(size)}" for size in sizes)
    rows = rows_of(tmp_path / "scaling.csv", f"threads,{heads}\n1,5.5,9.5,17,40\n2,4.5,8.5,15,45\n")
    assert [(row["kernel"], row["threads"], row[f"time{ends[1]}"]) for row in rows] == [
        (f"column {size}", threads, time)
        for size, times in zip(sizes, ((5.5, 4.5), (9.5, 8.5), (17, 15), (40, 45)), strict=True)
        for threads, time in zip((1, 2), times, strict=True)
    ]
    notes = " ".join(read_recording(tmp_path / "scaling.csv").notes)
    assert "column is read as amount of work, but may be parameter: it is not certain" in notes


@pytest.mark.parametrize("heads", ["time_1,time_2,time_3", "time_50,time_95,time_99"])
def test_numbers_of_runs_and_percentiles_in_headings_are_no_amounts(tmp_path: Path, heads: str) -> None:
    rows = rows_of(tmp_path / "runs.csv", f"threads,{heads}\n1,5.5,5.6,5.7\n2,3.5,3.6,3.8\n")
    assert [row["threads"] for row in rows] == [1, 2]


def test_what_was_measured_of_one_implementation_is_none_of_the_others(tmp_path: Path) -> None:
    text = "n,cublas_ms,triton_ms,triton_mj\n" + "".join(
        f"{n},{n / 100},{n / 110:.2f},{n / 12:.1f}\n" for n in (256, 512)
    )
    rows = rows_of(tmp_path / "gemm.csv", text)
    assert [(row["implementation"], row.get("mj")) for row in rows] == [
        ("cublas", None),
        ("cublas", None),
        ("triton", 21.3),
        ("triton", 42.7),
    ]
    assert not any("energy_j" in row for row in rows if row["implementation"] == "cublas")


def test_choices_that_rows_of_another_kind_do_not_have_are_choices_of_the_others(tmp_path: Path) -> None:
    text = "kernel,tile,time_ms\nnaive,,9\ntiled,8,4\ntiled,16,3\ntiled,32,5\n"
    assert [row["tile"] for row in rows_of(tmp_path / "sweep.csv", text)] == ["none", 8, 16, 32]


def test_texts_that_some_rows_lack_are_asked_about_and_may_be_used(tmp_path: Path) -> None:
    text = "kernel,tile,time_ms\nnaive,,9\ntiled,8,4\ntiled,16,3\ntiled,32,5\n".replace("8", "a").replace("16", "b")
    text = text.replace("32", "a").replace("tile,", "look,").replace("tiled,a,5", "tiled,c,5")
    (tmp_path / "sweep.csv").write_text(text)
    notes = " ".join(read_recording(tmp_path / "sweep.csv").notes)
    assert "look is read as not used, but may be parameter: it is not certain (--roles look=parameter)" in notes
    rows = rows_of(tmp_path / "sweep.csv", text, roles="look=parameter")
    assert [row["look"] for row in rows] == ["none", "a", "b", "c"]


def test_tables_between_lines_of_text_are_one_with_the_titles_above_them(tmp_path: Path) -> None:
    table = """
ggml_vulkan: 0 = AMD Radeon RX 7900 XTX
| model         | fa |  test |            t/s |
| ------------- | -: | ----: | -------------: |
| llama 7B Q4_0 |  0 | pp512 | {} ± 0.15 |
| llama 7B Q4_0 |  1 | pp512 | {} ± 0.21 |

build: 34ce48d97 (7356)
"""
    text = f"### GPU 0 ONLY ###\n{table.format(198.1, 279.5)}\n=== BOTH ===\n{table.format(1012.1, 1768.4)}"
    rows = rows_of(tmp_path / "bench.txt", text)
    assert [(row["setup"], row["fa"], row["t/s"]) for row in rows] == [
        ("GPU 0 ONLY", 0, 198.1),
        ("GPU 0 ONLY", 1, 279.5),
        ("BOTH", 0, 1012.1),
        ("BOTH", 1, 1768.4),
    ]
    assert [row["t/s"] for row in rows_of(tmp_path / "one.md", table.format(198.1, 279.5))] == [198.1, 279.5]


@pytest.mark.parametrize(
    "heads",
    [
        "cudnn_ms,v0_ms,v1_ms",
        "fp32_ms,fp16_ms,int8_ms",
        "old_ms,mid_ms,new_ms,new_vs_old",
        "baseline_ms,opt_ms,ours_ms,speedup",
        "ref_ms,first_try_ms,second_try_ms,ratio",
    ],
)
def test_times_under_any_names_are_compared_where_names_or_ratios_of_them_say_so(tmp_path: Path, heads: str) -> None:
    names = heads.split(",")
    cells = [(16.4, 4.25, 14.4), (10.0, 46.2, 14.4), (29.0, 14.3, 5.75)]
    rows = [(size, *row, *(row[2] / row[0] for _ in names[3:])) for size, row in zip((56, 64, 128), cells, strict=True)]
    text = "\n".join([f"size,{heads}", *(",".join(map(str, row)) for row in rows)])
    found = rows_of(tmp_path / "kernels.csv", text)
    assert len(found) == 9
    assert {row["implementation"] for row in found} == {name.removesuffix("_ms") for name in names[:3]}


@pytest.mark.parametrize("ratio", ["conv2_over_conv1", "ratio"])
def test_parts_of_a_total_are_not_compared(tmp_path: Path, ratio: str) -> None:
    rows = [(variant, a, b, a + b, b / a) for variant, a, b in (("x", 2.0, 9.0), ("y", 3.0, 6.5), ("z", 4.0, 4.25))]
    lines = [f"variant,conv1_ms,conv2_ms,total_ms,{ratio}", *(",".join(map(str, row)) for row in rows)]
    found = rows_of(tmp_path / "kernels.csv", "\n".join(lines))
    assert [row["time_s"] for row in found] == pytest.approx([0.011, 0.0095, 0.00825])
