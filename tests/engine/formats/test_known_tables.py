"""Tables as known tools write them: what their headings do not say is known, and a user may say otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.engine.formats.headings import Role
from app.engine.formats.read import read_recording
from app.engine.formats.recording import Recording
from app.engine.formats.table_columns import TableColumns

WRITTEN = Path(__file__).parent / "written_by_tools"


def recording_of(path: Path, text: str, **columns: str) -> Recording:
    path.write_text(text)
    return read_recording(path, TableColumns.parse(**columns))


def rows(recording: Recording) -> list[dict[str, object]]:
    return [{**m.configuration, **m.values} for m in recording.in_file_order()]


def role(recording: Recording, heading: str) -> Role:
    return next(column.role for column in recording.columns if column.heading == heading)


LLAMA_BENCH = (
    "build_commit,gpu_info,model_type,n_gpu_layers,flash_attn,n_prompt,n_gen,n_depth,test_time,avg_ns,avg_ts\n"
    "5d19,RTX 4090,llama 7B Q4_0,99,0,512,0,0,2025-05-01T10:00:00Z,102400000,5000.1\n"
    "5d19,RTX 4090,llama 7B Q4_0,99,0,0,128,0,2025-05-01T10:00:02Z,853300000,150.2\n"
    "5d19,RTX 4090,llama 7B Q4_0,99,1,512,0,0,2025-05-01T10:00:04Z,93090000,5500.3\n"
    "5d19,RTX 4090,llama 7B Q4_0,99,1,0,128,0,2025-05-01T10:00:06Z,812600000,157.5\n"
)


def test_reading_a_prompt_and_writing_are_not_compared_in_results_of_llama_bench(tmp_path: Path) -> None:
    recording = recording_of(tmp_path / "llama.csv", LLAMA_BENCH)
    assert {(row["kernel"], row["flash_attn"]) for row in rows(recording)} == {
        ("n_prompt 512 n_gen 0", 0),
        ("n_prompt 0 n_gen 128", 0),
        ("n_prompt 512 n_gen 0", 1),
        ("n_prompt 0 n_gen 128", 1),
    }
    assert any("read as a table of llama-bench" in note for note in recording.notes)
    lines = LLAMA_BENCH.splitlines()
    objects = [dict(zip(lines[0].split(","), map(_plain, line.split(",")), strict=True)) for line in lines[1:]]
    again = recording_of(tmp_path / "llama.json", json.dumps(objects))
    assert [row["kernel"] for row in rows(again)] == [row["kernel"] for row in rows(recording)]


def _plain(cell: str) -> object:
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def test_a_column_of_a_known_tool_may_be_said_to_be_something_else(tmp_path: Path) -> None:
    said = recording_of(tmp_path / "llama.csv", LLAMA_BENCH, roles="flash_attn=not-used")
    assert "flash_attn" not in rows(said)[0]


@pytest.mark.parametrize(
    ("name", "text", "heading", "seconds"),
    [
        (
            "hyperfine.csv",
            "command,mean,stddev,median,user,system,min,max\nmake -j1,3.2,0.1,3.1,3,0.1,3,3.5\n"
            "make -j4,1.25,0.1,1.2,4,0.1,1.1,1.3\n",
            "mean (s)",
            [3.2, 1.25],
        ),
        (
            "gbench.csv",
            "name,iterations,real_time,cpu_time,time_unit,items_per_second\nBM_a/8,1000,12.5,12,us,640000\nBM_b/8,900,25,24,us,320000\n",
            "real_time (us)",
            [12.5e-6, 25e-6],
        ),
        (
            "profile.gemm.csv",
            "Problem,Provider,OperationKind,Operation,Disposition,Status,m,n,k,cta_m,cta_n,Bytes,Flops,Runtime,GB/s,GFLOPs\n"
            "1,CUTLASS,gemm,sgemm_256x128,passed,success,4096,4096,4096,256,128,201326592,137438953472,2.5,75,54975\n"
            "1,CUTLASS,gemm,sgemm_64x64,passed,success,4096,4096,4096,64,64,201326592,137438953472,5,37.5,27487\n"
            "1,CUTLASS,gemm,sgemm_32x32,incorrect,success,4096,4096,4096,32,32,201326592,137438953472,1,187,137438\n",
            "Runtime (ms)",
            [2.5e-3, 5e-3],
        ),
    ],
)
def test_times_are_in_the_unit_that_the_tool_writes_them_in(
    tmp_path: Path, name: str, text: str, heading: str, seconds: list[float]
) -> None:
    recording = recording_of(tmp_path / name, text)
    assert role(recording, heading) is Role.TIME
    assert [row["time_s"] for row in rows(recording) if "time_s" in row] == pytest.approx(seconds)


def test_an_amount_of_operations_is_no_speed_and_a_wrong_result_has_failed(tmp_path: Path) -> None:
    text = (
        "Problem,Provider,OperationKind,Operation,Disposition,Status,m,n,k,Flops,Runtime,GFLOPs\n"
        "1,CUTLASS,gemm,a,passed,success,64,64,64,524288,2.5,54975\n1,CUTLASS,gemm,b,incorrect,success,64,64,64,524288,1,137438\n"
    )
    recording = recording_of(tmp_path / "cutlass.csv", text)
    assert role(recording, "Flops") is Role.UNUSED
    assert [m.error for m in recording.in_file_order()] == ["", "Disposition: incorrect"]


def test_what_tuners_write_in_a_form_of_their_own_is_read(tmp_path: Path) -> None:
    of_triton = read_recording(WRITTEN / "scale.autotune.json")  # by Triton 3.6 on an H200
    timings = json.loads((WRITTEN / "scale.autotune.json").read_text())["configs_timings"]
    assert [(row["kwargs.BLOCK"], row["num_warps"], row["time_s"]) for row in rows(of_triton)] == [
        (config["kwargs"]["BLOCK"], config["num_warps"], pytest.approx(times[0] / 1e3)) for config, times in timings
    ]
    steps = [[["CI", 3], ["SP", 2, 0, 1024, [1, size], 1]] for size in (1, 2, 4)]
    lines = [
        {
            "i": [['["matmul", 1024]', "cuda", [16], "", 1, []], [[], each]],
            "r": [[0.5 / n, 0.5 / n], n // 4, 1.9, 1.7e9],
            "v": "v0.6",
        }
        for n, each in zip((1, 2, 4), steps, strict=True)
    ]
    of_ansor = recording_of(tmp_path / "ansor.json", "".join(json.dumps(line) + "\n" for line in lines))
    assert [m.values.get("time_s") for m in of_ansor.in_file_order()] == [0.5, 0.25, None]  # the third failed
    assert rows(of_ansor)[0]["schedule"] == json.dumps(steps[0])


NCCL_TESTS = """\
# nThread 1 nGpus 8 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid  12345 on host device  0 [0x07] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    38.21   27.44   48.02      0    37.98   27.61   48.31      0
     2097152        524288     float     sum      -1    46.21   45.38   79.42      0    45.98   45.61   79.81      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 63.8
"""


def test_columns_between_spaces_below_a_remark_of_names_are_read(tmp_path: Path) -> None:
    recording = recording_of(tmp_path / "all_reduce.txt", NCCL_TESTS)
    assert [row["kernel"] for row in rows(recording)] == ["size 1048576", "size 2097152"]
    assert [row["busbw (GB/s)"] for row in rows(recording)] == [48.02, 79.42]
    assert [row["time_s"] for row in rows(recording)] == pytest.approx([38.21e-6, 46.21e-6])
    plain = recording_of(tmp_path / "plain.txt", "block_size  time_ms\n32   1.5\n64   1.25\n128  1.75\n")
    assert [(row["block_size"], row["time_ms"]) for row in rows(plain)] == [(32, 1.5), (64, 1.25), (128, 1.75)]


def test_a_report_of_triton_compares_its_providers_for_each_size() -> None:
    read = rows(read_recording(WRITTEN / "matmul-performance-fp16.csv"))  # by triton.testing on an H200
    assert {row["implementation"] for row in read} == {"cuBLAS", "Triton"}
    of_one = {row["implementation"]: row["value (TFLOPS)"] for row in read if row["kernel"] == "M 1024 N 1024 K 1024"}
    assert of_one == {"cuBLAS": 223.077747, "Triton": 235.284957}


def test_what_the_user_leaves_out_of_a_known_table_is_no_parameter(tmp_path: Path) -> None:
    text = (
        "command,mean,stddev,median,user,system,parameter_threads\nmake -j1,3.2,0.1,3,3,1,1\nmake -j4,1.2,0.1,1,4,1,4\n"
    )
    both = recording_of(tmp_path / "both.csv", text)
    assert {*rows(both)[0]} >= {"command", "parameter_threads"}
    one = recording_of(tmp_path / "one.csv", text, parameters="parameter_threads", figures="mean (s)")
    assert "command" not in rows(one)[0]
