"""Rows that are no choices: other amounts of work, single requests, and the same work by several implementations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.engine.formats.any_table import read_table
from app.engine.formats.columns import parse_columns
from app.engine.formats.headings import Column, Role
from app.engine.formats.recording import Recording
from app.engine.formats.roles import roles_of
from app.sensors.recorded.logs.read import is_log


def read(tmp_path: Path, text: str, name: str = "table.csv") -> Recording:
    path = tmp_path / name
    path.write_text(text)
    return read_table(path)


def found(text: str) -> dict[str, Column]:
    return {column.heading: column for column in roles_of(parse_columns(text, "file.csv").by_kind())}


def kernels(recording: Recording) -> dict[str, int]:
    """How many measurements there are of each work."""
    counts: dict[str, int] = {}
    for one in recording.in_file_order():
        name = str(one.configuration["kernel"])
        counts[name] = counts.get(name, 0) + 1
    return counts


def test_rows_that_each_work_on_another_amount_are_not_compared(tmp_path: Path) -> None:
    text = "matrix size,gflops\n256,100.5\n512,310.25\n1024,733.5\n"
    assert kernels(read(tmp_path, text)) == {"matrix size 256": 1, "matrix size 512": 1, "matrix size 1024": 1}


def test_what_ran_is_compared_within_the_same_amount(tmp_path: Path) -> None:
    rows = [f"{n},{name},{n * slow}\n" for n in (64, 256) for name, slow in (("tiled", 1.5), ("split", 2.25))]
    recording = read(tmp_path, "elements,algorithm name,time_ms\n" + "".join(rows))
    assert kernels(recording) == {"elements 64": 2, "elements 256": 2}
    assert {str(m.configuration["algorithm name"]) for m in recording.in_file_order()} == {"tiled", "split"}


def test_a_kernel_by_name_is_a_choice_within_the_same_amount(tmp_path: Path) -> None:
    rows = [f"{n},{name},{n * slow}\n" for n in (64, 256) for name, slow in (("tiled", 1.5), ("split", 2.25))]
    recording = read(tmp_path, "n,kernel,time_ms\n" + "".join(rows))
    assert kernels(recording) == {"n 64": 2, "n 256": 2}


@pytest.mark.parametrize("heading", ["items", "generated tokens", "number of samples"])
def test_rows_of_amounts_that_were_chosen_are_no_repeats(tmp_path: Path, heading: str) -> None:
    text = f"engine,{heading},throughput\n" + "".join(
        f"{engine},{amount},{100.25 + 7.5 * place}\n"
        for engine in ("one", "two") for place, amount in enumerate((20, 100, 400))
    )  # fmt: skip
    assert kernels(read(tmp_path, text)) == {f"{heading} {amount}": 2 for amount in (20, 100, 400)}


def test_amounts_that_were_counted_leave_repeats_what_they_are(tmp_path: Path) -> None:
    text = "engine,tokens,throughput\n" + "".join(
        f"{engine},{tokens},{rate}\n"
        for engine, tokens, rate in (("one", 4011, 50.5), ("one", 4093, 52.5), ("two", 3987, 71.5), ("two", 4054, 71.2))
    )
    recording = read(tmp_path, text)
    assert recording.space().names == ("engine", "repeat")


def test_amounts_that_follow_from_what_was_set_say_nothing_of_the_work() -> None:
    columns = found("concurrency,requests,throughput\n1,10,5.25\n4,40,18.5\n8,80,30.75\n")
    assert columns["requests"].role is Role.FIGURE


def requests(count: int = 9) -> list[dict[str, object]]:
    return [
        {"request_id": place, "error": None, "ttft_s": 0.2 + place / 97, "latency_s": 1.5 + place / 31,
         "request_output_token_per_s": 34.5 + place / 7, "number_output_tokens": 150 - place % 3}
        for place in range(1, count + 1)
    ]  # fmt: skip


def test_single_requests_of_one_run_are_repeats_and_none_is_the_best(tmp_path: Path) -> None:
    recording = read(tmp_path, json.dumps(requests()), "run-7.json")
    assert recording.space().names == ("run", "repeat")
    assert {m.configuration["run"] for m in recording.in_file_order()} == {"run-7"}


def test_the_prompts_of_single_requests_are_no_names_of_configurations(tmp_path: Path) -> None:
    rows = [{**row, "prompt": f"say {row['request_id']}"} for row in requests()]
    recording = read(tmp_path, "\n".join(map(json.dumps, rows)), "run-8.jsonl")
    assert recording.space().names == ("run", "repeat")


def test_single_requests_are_repeats_of_what_was_set(tmp_path: Path) -> None:
    rows = [{"concurrency": streams, **row} for streams in (1, 8) for row in requests()]
    assert read(tmp_path, json.dumps(rows), "runs.json").space().names == ("concurrency", "repeat")


def test_the_rate_of_a_request_is_no_time() -> None:
    columns = found("streams,request_output_throughput_token_per_s,request rate\n1,34.5,1\n4,31.25,4\n8,22.5,8\n")
    assert columns["request_output_throughput_token_per_s"].role is Role.THROUGHPUT
    assert columns["request rate"].role is Role.PARAMETER


def test_how_many_readings_of_power_were_taken_is_no_power(tmp_path: Path) -> None:
    path = tmp_path / "models.csv"
    path.write_text("timestamp,net,n_power_samples,j_per_clip\n" + "2026-01-02T03:04:05Z,a,284,1.5\n" * 3)
    assert not is_log(path)


SIDE_BY_SIDE = """rows,cols,mine_us,cublas_us,cublaslt fp16_us,mine_gflops,cublas_gflops,cublaslt fp16_gflops,compile_us
32,64,12.5,10.25,-1,41.9,51.1,0,900
64,128,13.5,20.25,8.5,77.7,51.8,123.4,950
"""


def test_figures_of_implementations_side_by_side_are_choices_within_the_same_amount(tmp_path: Path) -> None:
    text = SIDE_BY_SIDE.replace("rows,cols", "shape m,shape n")
    recording = read(tmp_path, text)
    assert kernels(recording) == {"shape m 32 shape n 64": 2, "shape m 64 shape n 128": 3}
    best = min(recording.in_file_order(), key=lambda m: m.values["time_s"])
    assert best.configuration == {"kernel": "shape m 64 shape n 128", "implementation": "cublaslt fp16"}
    assert best.values["time_s"] == pytest.approx(8.5e-6)
    assert best.values["gflops"] == 123.4


def test_statistics_of_one_implementation_are_not_choices(tmp_path: Path) -> None:
    recording = read(tmp_path, "tile,cublas_mean_ms,cublas_max_ms\n8,1.5,2.5\n16,1.25,3.5\n")
    assert recording.space().names == ("tile",)


@pytest.mark.parametrize("heading", ["VectorSize", "image_width", "prompt_len", "num_rows", "hidden dim"])
def test_how_much_there_was_to_do_has_many_names(heading: str) -> None:
    rows = [f"{size},{name},{size * slow}\n" for size in (16, 96) for name, slow in (("one", 1.5), ("two", 2.25))]
    assert found(f"{heading},variant,time_ms\n{''.join(rows)}")[heading].role is Role.WORK


@pytest.mark.parametrize(("figure", "role"), [("time_ms", Role.WORK), ("images/s", Role.PARAMETER)])
def test_a_time_of_a_larger_batch_is_one_of_more_work_and_a_rate_is_not(figure: str, role: Role) -> None:
    rows = [f"{batch},{name},{batch * slow}\n" for batch in (1, 8) for name, slow in (("one", 6.25), ("two", 9.5))]
    assert found(f"batch,mode,{figure}\n{''.join(rows)}")["batch"].role is role


@pytest.mark.parametrize(("others", "role"), [("batch_size", Role.PARAMETER), ("head", Role.WORK)])
def test_sequences_of_other_lengths_are_a_choice_of_who_serves_and_other_work_elsewhere(
    others: str, role: Role
) -> None:
    rows = [f"{name},{length},4,{7000.5 / length}\n" for length in (512, 2048) for name in ("dense", "paged")]
    assert found(f"backend,seq_len,{others},tokens_per_second\n{''.join(rows)}")["seq_len"].role is role


@pytest.mark.parametrize(("heading", "values", "asked"), [("skew", "0.25 0.5", True), ("graphs", "0 1", False)])
def test_numbers_that_no_word_explains_are_kept_apart_and_asked_about_beside_a_choice(
    heading: str, values: str, asked: bool
) -> None:
    rows = [
        f"{name},{value},{float(value) + slow}\n" for value in values.split() for name, slow in (("a", 3), ("b", 7))
    ]
    column = found(f"backend,{heading},time_ms\n{''.join(rows)}")[heading]
    assert column.role is (Role.WORK if asked else Role.PARAMETER)
    assert column.candidates == ((Role.WORK, Role.PARAMETER) if asked else ())


def test_many_numbers_that_no_word_explains_are_the_choices_of_a_kernel() -> None:
    rows = [f"64,{mwg},{kwg},{vwm},{mwg * kwg + vwm}.5\n" for mwg in (16, 64) for kwg in (8, 32) for vwm in (1, 4)]
    columns = found(f"block_size,MWG,KWG,VWM,time_ms\n{''.join(rows)}")
    assert {columns[name].role for name in ("MWG", "KWG", "VWM")} == {Role.PARAMETER}


def test_what_is_missing_in_several_rows_is_alike_there() -> None:
    """Each missing number was another one, so that nothing else seemed to tell such rows apart."""
    rows = [f"{name},{n},{skew},{skew + 3}\n" for n in ("", "10") for skew in (0.25, 0.5) for name in ("one", "two")]
    assert found(f"backend,n_keys,skew,time_ms\n{''.join(rows)}")["skew"].candidates == (Role.WORK, Role.PARAMETER)


@pytest.mark.parametrize(
    ("energies", "doubt"),
    [(range(12300, 12350, 2), True), ([7, 5, 9] * 8, False), ([0] * 20, False), ([1, 2, 3], False)],
)
def test_a_meter_that_counts_up_is_not_summed_without_a_doubt(
    tmp_path: Path, energies: Sequence[int], doubt: bool
) -> None:
    rows = (f"2024-05-03 10:{minute:02d}:12,{joules}\n" for minute, joules in enumerate(energies))
    (note,) = (
        each for each in read(tmp_path, "time,smart_plug_energy_j\n" + "".join(rows)).notes if "together" in each
    )
    assert ("48 J if it is a meter that counts up" in note) is doubt
    assert ("not certain" in note) is doubt
