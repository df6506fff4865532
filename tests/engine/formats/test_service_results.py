"""Results of benchmarks of a server as runs of a service: real files of vLLM and guidellm, and the keys of others.

What is expected is computed here from the files by plain arithmetic. `serving/manifest.jsonl` names the files' origin.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from fixtures.mutations import mutated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.cli import main
from app.engine.formats.any_table import read_table
from app.engine.formats.read import FileKind, kind_of_file, read_recording
from app.engine.formats.recording import Recording
from app.engine.formats.table_columns import OPTIONS, TableColumns
from app.engine.results.objectives import Goal
from app.engine.session.planning import plan_of
from app.engine.session.stored import import_recording
from app.engine.store.database import Store

SERVING = Path(__file__).parent / "serving"
CORPUS = Path(__file__).parents[2] / "corpus" / "files"
RATES = ("1", "4", "8", "inf")


@pytest.fixture(autouse=True)
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A zone that is not UTC, so that a time that names none differs from one that does."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def result(rate: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SERVING / f"result-short-rate{rate}.json").read_text())
    return document


def ends(document: Mapping[str, Any]) -> datetime:
    return datetime.strptime(document["date"], "%Y%m%d-%H%M%S")


def written(folder: Path, name: str, document: object) -> Path:
    (folder / name).write_text(json.dumps(document))
    return folder / name


def log(folder: Path, first: datetime, last: datetime, *boards: tuple[float, float], step_s: float = 0.5) -> Path:
    """What `nvidia-smi` writes of boards whose power is a straight line: W at the beginning, W more per s."""
    lines = ["timestamp, index, name, power.draw [W]"]
    for reading in range(int((last - first).total_seconds() / step_s) + 1):
        at_s = reading * step_s
        stamp = f"{first + timedelta(seconds=at_s):%Y/%m/%d %H:%M:%S.%f}"[:-3]
        lines += [f"{stamp}, {n}, NVIDIA A100, {w + more * at_s:.4f} W" for n, (w, more) in enumerate(boards)]
    (folder / "power.csv").write_text("\n".join([*lines, ""]))
    return folder / "power.csv"


def read(*paths: Path | str) -> Recording:
    return read_table(Path(paths[0]), TableColumns(beside=tuple(map(str, paths[1:]))))


def only(recording: Recording) -> Mapping[str, float]:
    (measured,) = recording.measurements()
    return measured.values


def notes(recording: Recording, word: str) -> Sequence[str]:
    return [note for note in recording.notes if word in note]


def test_the_files_are_as_their_origin_has_them() -> None:
    entries = [json.loads(line) for line in (SERVING / "manifest.jsonl").read_text().splitlines()]
    assert {entry["file"] for entry in entries} == {path.name for path in SERVING.glob("*.json")}
    for entry in entries:
        assert entry["licence"] == "Apache-2.0"
        assert sha256((SERVING / entry["file"]).read_bytes()).hexdigest() == entry["sha256"]


# --- what the tools write ---------------------------------------------------------------------------------------------


def test_results_of_vllm_in_a_folder_are_runs_of_a_service_under_our_names() -> None:
    recording = read_recording(SERVING)
    by_rate = {str(each.configuration["request_rate"]): each.values for each in recording.measurements()}
    assert set(by_rate) == {"1.0", "4.0", "8.0", "inf"}
    for rate, values in by_rate.items():
        said = result(rate.removesuffix(".0"))
        tokens = said["total_output_tokens"] / said["duration"]
        every = (said["total_input_tokens"] + said["total_output_tokens"]) / said["duration"]
        assert values["output_tokens_per_s"] == pytest.approx(tokens)
        assert values["time_s"] == pytest.approx(1 / tokens)
        assert values["total_tokens_per_s"] == pytest.approx(every)
        assert values["requests_per_s"] == pytest.approx(1000 / said["duration"])
        assert values["ttft_p99_s"] == pytest.approx(said["p99_ttft_ms"] / 1000)
        assert values["tpot_p50_s"] == pytest.approx(said["median_tpot_ms"] / 1000)
        assert values["itl_mean_s"] == pytest.approx(said["mean_itl_ms"] / 1000)
    assert recording.kernel == "gemma-4-31B-it, 1024 tokens in, 256 out"
    (note,) = notes(recording, "no power")
    assert note == "no power: no log of the same time is given (--power-log LOG)"
    assert recording.goal == Goal("time_s", False), "without power it answers which is the fastest"


def test_a_server_s_settings_come_from_metadata_names_and_what_sglang_was_told(tmp_path: Path) -> None:
    said = {**result("8"), "tensor_parallel_size": "4", "max_num_seqs": "64", "power_limit": "300", "note": "x"}
    (one,) = read(
        written(tmp_path, "a.json", said), written(tmp_path, "b.json", {**said, "duration": 9.0, "power_limit": "250"})
    ).measurements()[:1]
    assert {"tensor_parallelism": 4, "batch": 64, "request_rate": 8.0}.items() <= one.configuration.items()
    assert one.configuration["power_limit_w"] in (250, 300)
    assert one.values["boards"] == 4
    (named,) = read(written(tmp_path, "llama_tp2_pp2_int4.json", result("8"))).measurements()
    assert {"tensor_parallelism": 2, "precision": "int4"}.items() <= named.configuration.items()
    assert named.values["boards"] == 4
    told = {
        "tp_size": 8,
        "dp_size": 8,
        "enable_dp_attention": True,
        "quantization": "fp8",
        "model_path": "x/DeepSeek-V3",
    }
    sglang = {**SGLANG, "server_info": told, "request_rate": math.inf}
    (measured,) = (recording := read(written(tmp_path, "sglang.jsonl", sglang))).measurements()
    assert measured.configuration == {
        "request_rate": "inf",
        "concurrency": 8,
        "tensor_parallelism": 8,
        "precision": "fp8",
    }
    assert measured.values["boards"] == 8, "ranks of data parallel attention share the boards"
    assert measured.values["e2e_p99_s"] == pytest.approx(0.7119)
    assert recording.kernel == "DeepSeek-V3, 61 tokens in, 62 out"
    apart = {"prefill": [{"tp_size": 2}], "decode": [{"tp_size": 4}, {"tp_size": 4}]}
    assert only(read(written(tmp_path, "pd.jsonl", {**SGLANG, "server_info": apart})))["boards"] == 10


SGLANG: dict[str, Any] = {
    "tag": None, "backend": "sglang", "dataset_name": "random", "request_rate": 4.0, "max_concurrency": 8,
    "duration": 4.365, "completed": 100, "total_input_tokens": 6145, "total_output_tokens": 6180,
    "request_throughput": 22.91, "input_throughput": 1407.8, "output_throughput": 1415.8, "total_throughput": 2823.6,
    "mean_e2e_latency_ms": 339.2, "p99_e2e_latency_ms": 711.9, "mean_ttft_ms": 28.4, "concurrency": 7.77,
}  # fmt: skip
BOARD = {"gpu_index": 0, "gpu_name": "NVIDIA H100"}
AIPERF: dict[str, Any] = {
    "request_throughput": {"unit": "requests/sec", "avg": 6.4},
    "request_latency": {"unit": "ms", "avg": 9713.0, "p50": 9383.0, "p99": 12298.0, "std": 1121.0},
    "request_count": {"unit": "requests", "avg": 500.0},
    "time_to_first_token": {"unit": "ms", "avg": 556.0, "p1": 64.9, "p90": 1509.0, "p99": 2924.0},
    "inter_token_latency": {"unit": "ms", "avg": 35.9, "p99": 41.7},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 1646.4},
    "output_token_throughput_per_user": {"unit": "tokens/sec/user", "avg": 27.9, "p99": 32.7},
    "input_sequence_length": {"unit": "tokens", "avg": 256.0},
    "output_sequence_length": {"unit": "tokens", "avg": 255.986},
    "total_isl": {"unit": "tokens", "avg": 128000.0},
    "total_osl": {"unit": "tokens", "avg": 127993.0},
    "benchmark_duration": {"unit": "sec", "avg": 77.743},
    "min_request_timestamp": {"unit": "ns", "avg": 1.766034284554e18},
    "max_response_timestamp": {"unit": "ns", "avg": 1.766034362297e18},
    "telemetry_data": {"endpoints": {"10.0.0.7:9401": {"gpus": {
        "gpu_0": {**BOARD, "metrics": {"gpu_power_usage": {"unit": "W", "avg": 150.5, "max": 180.0}}},
        "gpu_1": {**BOARD, "metrics": {"gpu_power_usage": {"unit": "W", "avg": 149.5, "max": 180.0}}},
    }}}},
    "input_config": {"endpoint": {"model_names": ["nvidia/Qwen3-8B-NVFP4"]}, "loadgen": {"concurrency": 64}},
}  # fmt: skip


def test_aiperf_holds_the_power_of_its_boards(tmp_path: Path) -> None:
    recording = read(written(tmp_path, "profile_export_aiperf.json", AIPERF))
    values = only(recording)
    assert recording.measurement(0).configuration == {"concurrency": 64, "precision": "nvfp4"}
    assert recording.kernel == "Qwen3-8B, 256 tokens in, 256 out"
    rate = 127993 / 77.743
    assert values["output_tokens_per_s"] == pytest.approx(rate), "not that of one user"
    assert (values["ttft_p99_s"], values["e2e_p50_s"], values["itl_mean_s"]) == pytest.approx((2.924, 9.383, 0.0359))
    assert values["boards"] == 2
    assert values["power_w"] == pytest.approx(300.0)
    assert values["energy_per_token_j"] == pytest.approx(300.0 / rate)
    assert values["energy_per_total_token_j"] == pytest.approx(300.0 * 77.743 / (128000 + 127993))
    assert notes(recording, "2 boards: 10.0.0.7:9401 gpu_0, 10.0.0.7:9401 gpu_1")


def test_genai_perf_is_read_without_totals_and_times(tmp_path: Path) -> None:
    held = ("request_throughput", "request_latency", "request_count", "time_to_first_token", "output_sequence_length")
    said = {key: AIPERF[key] for key in (*held, "input_sequence_length", "output_token_throughput")}
    said["telemetry_stats"] = {"gpu_power_usage": {"unit": "W", "gpu0": {"avg": 210.0}, "gpu1": {"avg": 190.0}}}
    said["input_config"] = {"model_names": ["m"], "perf_analyzer": {"stimulus": {"concurrency": 50}}}
    recording = read(written(tmp_path, "profile_export_genai_perf.json", said))
    assert recording.measurement(0).configuration == {"concurrency": 50}
    duration_s = 500 / 6.4
    rate = 500 * 255.986 / duration_s
    assert only(recording)["output_tokens_per_s"] == pytest.approx(rate)
    assert only(recording)["energy_per_token_j"] == pytest.approx(400.0 / rate)


def test_guidellm_s_csv_is_read_and_its_own_rate_is_told_to_leave_out_the_first_token() -> None:
    recording = read_recording(CORPUS / "guidellm_gemma.csv")
    values = only(recording)
    assert recording.measurement(0).configuration == {"concurrency": 1, "precision": "q4_k_xl"}
    assert values["output_tokens_per_s"] == pytest.approx(1741 / 152.48280453681946)
    assert values["ttft_p99_s"] == pytest.approx(60.35956835746765)
    assert values["tpot_mean_s"] == pytest.approx(0.08753099474394753)
    assert notes(recording, "guidellm writes 18.92 output tokens/s, but 1741 in 152.5 s are 11.42, which counts")
    assert kind_of_file(CORPUS / "guidellm_gemma.csv") is FileKind.TABLE


def test_guidellm_s_window_ends_with_the_last_request(tmp_path: Path) -> None:
    """Figures of a file of 0.5.0 whose warm-up and cool-down are a tenth of the time limit, which was not reached."""
    window = {
        "measure_start_time": 1772474482.626,
        "measure_end_time": 1772475202.626,
        "request_end_time": 1772474997.135,
    }
    metrics = {
        "request_totals": {"successful": 26, "errored": 0},
        "prompt_token_count": {"successful": {"mean": 108.3, "total_sum": 2816.0}},
        "output_token_count": {"successful": {"mean": 1024.0, "total_sum": 26624.0}},
        "time_to_first_token_ms": {"successful": {"median": 59.0, "percentiles": {"p01": 1.0, "p95": 80.0}}},
        "output_tokens_per_second": {"successful": {"mean": 50.9}},
    }  # fmt: skip
    config = {
        "strategy": {"type_": "concurrent", "streams": 4, "max_concurrency": 512},
        "backend": {"model": "q/Qwen3-4B"},
    }
    said = {
        "config": config,
        "scheduler_metrics": window,
        "metrics": metrics,
        "duration": 720.0,
        "start_time": 1772474482.6,
    }
    document = {"metadata": {"guidellm_version": "0.5.0"}, "benchmarks": [said]}
    recording = read(written(tmp_path, "benchmarks_tp2.json", document))
    assert recording.measurement(0).configuration == {"concurrency": 4, "tensor_parallelism": 2}
    values = only(recording)
    assert values["duration_s"] == pytest.approx(514.509)
    assert values["output_tokens_per_s"] == pytest.approx(26624 / 514.509)
    assert (values["ttft_p50_s"], values["ttft_p95_s"]) == pytest.approx((0.059, 0.08))
    assert notes(recording, "duration of 720 s goes on for 205.5 s beyond the last request")


def test_other_models_and_lengths_are_kept_apart_and_number_formats_are_not(tmp_path: Path) -> None:
    said = result("8")
    for name, more in {
        "a": {},
        "b": {"model_id": "RedHatAI/gemma-4-31B-it-FP8", "duration": 300.0},
        "c": {"total_input_tokens": 8 * said["total_input_tokens"], "duration": 900.0},
    }.items():
        written(tmp_path, f"{name}.json", {**said, **more})
    kernels: dict[object, set[object]] = {}
    for measured in read(tmp_path).measurements():
        kernels.setdefault(measured.configuration["kernel"], set()).add(measured.configuration["precision"])
    assert kernels == {
        "gemma-4-31B-it, 1024 tokens in, 256 out": {"not said", "fp8"},
        "gemma-4-31B-it, 8192 tokens in, 256 out": {"not said"},
    }


def test_a_run_that_answered_nothing_failed_and_one_that_is_given_twice_counts_once(tmp_path: Path) -> None:
    written(tmp_path, "run=0.json", result("1"))
    written(tmp_path, "summary.json", [result("1"), {**result("8"), "total_output_tokens": 0, "completed": 0}])
    recording = read(tmp_path)
    states = {measured.configuration["request_rate"]: measured.error for measured in recording.measurements()}
    assert states == {1.0: "", 8.0: "error: no request was answered"}


@pytest.mark.parametrize(
    ("said", "power_w", "note"),
    [
        ({"energy_joules": 50_000.0, "avg_gpu_power_w": 400}, 400, "power is that of the file, by energy_joules"),
        ({"total_energy_kwh": 50_000 / 3.6e6}, 400, "power is that of the file, by total_energy_kwh"),
        ({"power": {"mean_w": 400, "max_w": 600}}, 400, "power is that of the file, by power.mean_w"),
        ({"avg_power_per_gpu_w": 100, "tp": 4}, 400, "'avg_power_per_gpu_w' is of one board: it is taken times 4"),
        ({"avg_power_per_gpu_w": 400}, 400, "is of one board, and how many there were is not said"),
        ({"avg_power_w": 400, "tp": 4}, 400, "'avg_power_w' is taken for that of all boards: it is not certain"),
        ({"energy_j": 50_000, "power_w": 200}, 400, "the file says 400 W by energy_j and 200 W by power_w"),
        ({"energy_j": 0.2}, None, "'energy_j' of the file is not read: as of the whole run it would be 0.0016 W"),
        ({"power_limit_w": 300}, None, "no power"),
    ],
)
def test_an_energy_or_a_power_in_a_result_is_that_of_the_run(
    tmp_path: Path, said: dict[str, Any], power_w: float | None, note: str
) -> None:
    run = {"request_rate": 8, "duration": 125.0, "completed": 1000, "total_input_tokens": 512_000}
    run |= {"total_output_tokens": 256_000, "output_throughput": 2048, "mean_ttft_ms": 35}
    recording = read(written(tmp_path, "result.json", [{**run, **said}]))
    values = only(recording)
    assert notes(recording, note)
    assert values.get("power_w") == power_w
    if power_w is not None:
        assert values["energy_j"] == values["energy_per_token_j"] == pytest.approx(50_000 / 256_000)
        assert values["run_energy_j"] == pytest.approx(50_000)


def test_runs_of_other_rates_that_took_as_long_are_other_runs(tmp_path: Path) -> None:
    run = {"backend": "sglang", "duration": 36.0, "completed": 500, "total_input_tokens": 512_000}
    run |= {"total_output_tokens": 128_000, "output_throughput": 3555.6}
    recording = read(written(tmp_path, "runs.json", [{**run, "request_rate": rate} for rate in (16, 32, 32)]))
    assert [m.configuration["request_rate"] for m in recording.in_file_order()] == [16, 32]
    assert notes(recording, "2 runs of a service by SGLang")


# --- power of the same time -------------------------------------------------------------------------------------------


def test_a_date_of_vllm_is_the_end_of_its_run() -> None:
    """In the files themselves: taken for beginnings, one run would begin before the other ended."""
    fourth, eighth = result("4"), result("8")
    assert ends(eighth) - timedelta(seconds=eighth["duration"]) > ends(fourth)
    assert ends(fourth) + timedelta(seconds=fourth["duration"]) > ends(eighth)


def test_joules_are_the_integral_of_each_board_s_power_over_the_run(tmp_path: Path) -> None:
    said = result("8")
    last = ends(said)
    power = log(tmp_path, last - timedelta(seconds=400), last + timedelta(seconds=60), (100.0, 0.5), (250.0, 0.0))
    file = written(tmp_path, "result_tp2.json", said)
    values = only(recording := read(file, power))
    begun_s, ended_s = 400 - said["duration"], 400.0  # from the log's beginning
    ramp_j = 100.0 * (ended_s - begun_s) + 0.5 * (ended_s**2 - begun_s**2) / 2
    joules = ramp_j + 250.0 * said["duration"]
    assert values["boards"] == 2
    assert values["power_w"] == pytest.approx(joules / said["duration"], rel=1e-5)
    assert values["run_energy_j"] == pytest.approx(joules, rel=1e-5)
    assert values["energy_per_token_j"] == values["energy_j"] == pytest.approx(joules / 256_000, rel=1e-5)
    assert values["energy_per_total_token_j"] == pytest.approx(joules / 1_280_000, rel=1e-5)
    assert notes(recording, "power is that of 2 boards: power#0, power#1")
    alone = only(read(written(tmp_path, "plain.json", said), f"{power}#1"))
    assert (alone["boards"], alone["power_w"]) == pytest.approx((1, 250.0))


def test_boards_are_counted_and_must_be_those_of_the_service(tmp_path: Path) -> None:
    said, last = result("8"), ends(result("8"))
    power = log(tmp_path, last - timedelta(seconds=400), last + timedelta(seconds=9), (250.0, 0.0), (60.0, 0.0))
    four = written(tmp_path, "result_tp4.json", said)
    with pytest.raises(InputError, match="it ran on 4 boards, and logged were power#0 250 W, power#1 60 W"):
        read(four, power)
    with pytest.raises(InputError, match="no such boards: 5"):
        read(four, f"{power}#5")
    unsaid = read(written(tmp_path, "result.json", said), power)
    assert only(unsaid)["power_w"] == pytest.approx(310.0)
    assert notes(unsaid, "all boards of the log count, though they draw power#0 250 W, power#1 60 W: name the boards")


def test_a_log_of_another_time_is_refused_with_both_times_and_the_hours_that_would_fit(tmp_path: Path) -> None:
    said, last = result("8"), ends(result("8"))
    file = written(tmp_path, "result.json", said)
    power = log(tmp_path, last - timedelta(seconds=400 - 7200), last + timedelta(seconds=9 + 7200), (250.0, 0.0))
    with pytest.raises(InputError) as refused:
        read(file, power)
    assert "from 2026-04-27 11:20:28 to 2026-04-27 11:26:15" in refused.value.what
    assert "power.csv from 2026-04-27 13:19:35 to 2026-04-27 13:26:24" in refused.value.what
    assert refused.value.remedy == "it would fit as power.csv@-2h"
    assert only(read(file, f"{power}@-2h"))["power_w"] == pytest.approx(250.0)
    late = log(tmp_path, last - timedelta(seconds=100), last + timedelta(seconds=9), (250.0, 0.0))
    with pytest.raises(InputError, match="log the power of the same time"):
        read(file, late)


def test_a_clock_that_may_be_of_another_zone_is_asked_about(tmp_path: Path) -> None:
    """AIPerf's stamps are of UTC; the log's name no zone, and a day of it covers the run in any."""
    file = written(tmp_path, "aiperf.json", {**AIPERF, "telemetry_data": {}})
    begun = datetime(2025, 12, 18, 6, 4, 44)  # in Berlin
    short = log(tmp_path, begun - timedelta(seconds=9), begun + timedelta(seconds=99), (250.0, 0.0))
    assert only(read(file, short))["power_w"] == pytest.approx(250.0), "no other zone would fit"
    long = log(tmp_path, begun - timedelta(hours=2), begun + timedelta(hours=2), (250.0, 0.0), step_s=5.0)
    with pytest.raises(InputError, match="only one of them names a time zone") as refused:
        read(file, long)
    assert "power.csv@-1.5h or power.csv@-1h" in refused.value.remedy
    assert only(read(file, f"{long}@+0h"))["power_w"] == pytest.approx(250.0)


def test_results_without_a_time_and_logs_without_a_date_say_so(tmp_path: Path) -> None:
    last = ends(result("8"))
    power = log(tmp_path, last - timedelta(seconds=400), last + timedelta(seconds=9), (250.0, 0.0))
    with pytest.raises(InputError, match="SGLang does not write when the run was"):
        read(written(tmp_path, "sglang.jsonl", SGLANG), power)
    (tmp_path / "dmon.txt").write_text("# gpu    pwr\n# Idx      W\n" + "    0    250\n" * 900)
    with pytest.raises(InputError, match=r"dmon.txt without a date"):
        read(SERVING / "result-short-rate8.json", tmp_path / "dmon.txt")
    with pytest.raises(InputError, match="no result of a known benchmark of a server, nor a log of power"):
        read(SERVING / "result-short-rate8.json", SERVING.parent / "test_service_results.py")
    with pytest.raises(InputError, match="no result of a known benchmark"):
        read(power, power)


def test_of_a_folder_runs_that_no_log_covers_stay_without_power(tmp_path: Path) -> None:
    for rate in RATES:
        written(tmp_path, f"rate{rate}.json", result(rate))
    last = ends(result("8"))
    power = log(tmp_path, last - timedelta(seconds=400), last + timedelta(seconds=9), (250.0, 0.0))
    recording = read(tmp_path)
    drawn = {str(m.configuration["request_rate"]): m.values.get("power_w") for m in recording.measurements()}
    assert drawn == {"1.0": None, "4.0": None, "8.0": pytest.approx(250.0), "inf": None}
    assert notes(recording, "power is that of 1 board: power (1 of 4 runs)")
    (without,) = notes(recording, "no power: its run is from")
    assert without.endswith("(3 of 4 runs)")
    assert power.name in without


# --- the session ------------------------------------------------------------------------------------------------------


def said_by(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["analyse", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_limit_on_latency_makes_runs_infeasible_and_the_nearest_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(SERVING / f"result-short-rate{rate}.json") for rate in RATES]
    last = ends(result("8"))
    power = log(tmp_path, ends(result("1")) - timedelta(hours=1), last + timedelta(hours=1), (250.0, 0.0), step_s=2.0)
    document = said_by(capsys, *files, "--power-log", str(power), "--limit", "ttft_p99_s<=1")
    assert len(document["infeasible"]) == 3
    best = document["choosers"]["least_energy"]
    assert best["configuration"]["request_rate"] == 1.0
    energy_j = 250.0 / (256_000 / result("1")["duration"])
    assert best["values"]["energy_j"] == pytest.approx(energy_j, rel=1e-5)
    assert document["over_load"] is not None, "it is the session of a service"
    document = said_by(capsys, *files, "--power-log", str(power), "--limit", "ttft_p99_s<=0.5")
    assert len(document["infeasible"]) == 4
    assert document["nearest"]["configuration"]["request_rate"] == 1.0
    off = result("1")["p99_ttft_ms"] / 1000 / 0.5 - 1
    sentence = document["answers"][-1]["sentence"]
    assert "The nearest is request_rate 1.0: ttft_p99_s is 0.5549, more than 0.5" in sentence
    assert f"({100 * off:.1f} % off)" in sentence


def test_logs_beside_a_stored_session_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyse", "12", "power.csv"]) == 2
    assert "name the results, not a session" in capsys.readouterr().err


def test_a_kept_session_reads_its_files_again_with_the_log(tmp_path: Path) -> None:
    last = ends(result("8"))
    power = log(tmp_path, last - timedelta(seconds=400), last + timedelta(seconds=9), (250.0, 0.0))
    recording = read(SERVING / "result-short-rate8.json", SERVING / "result-short-rate1.json", f"{power}@+0h")
    with Store(tmp_path / "store.sqlite") as store:
        plan = plan_of(store.load(import_recording(store, recording)))
    again = read_recording(
        Path(plan.origin["file"]), TableColumns.parse(*(plan.origin.get(name, "") for name in OPTIONS))
    )
    assert [each.values for each in again.measurements()] == [each.values for each in recording.measurements()]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**40), which=st.integers(0, 3))
def test_a_mutated_result_is_read_or_refused_by_one_line(tmp_path: Path, seed: int, which: int) -> None:
    samples = [AIPERF, SGLANG, {**result("8"), "server_info": {"prefill": [{"tp_size": 2}]}}]
    content = json.dumps(samples[which]).encode() if which < 3 else (CORPUS / "guidellm_gemma.csv").read_bytes()
    path = tmp_path / "result.json"
    path.write_bytes(mutated(content, seed, bombs=False))
    refused: InputError | None = None
    try:
        assert len(read_recording(path)) >= 1
    except InputError as error:
        refused = error
    assert refused is None or "\n" not in str(refused)
