"""Tables with several figures of which one counts: of the work or the hardware, of variants side by side, of parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.engine.formats.any_table import read_table
from app.engine.formats.columns import parse_columns
from app.engine.formats.headings import COUNTED, Column, Role
from app.engine.formats.recording import Recording
from app.engine.formats.roles import roles_of
from app.engine.formats.wide import arranged
from app.engine.results.measurement import Measurement, State


def read(tmp_path: Path, text: str, name: str = "table.csv") -> Recording:
    path = tmp_path / name
    path.write_text(text)
    return read_table(path)


def judged(text: str) -> dict[str, Column]:
    return {column.heading: column for column in roles_of(parse_columns(text, "file.csv").by_kind())}


def best(recording: Recording) -> Measurement:
    """The measurement that the goal of the recording calls the best."""
    goal = recording.objective.goal
    return max(recording.measurements(), key=lambda m: m.values.get(goal.name, 0.0) * (1 if goal.maximise else -1))


# --- rates and times of the work before figures of the hardware -------------------------------------------------------


def test_a_rate_of_tokens_counts_before_a_bandwidth(tmp_path: Path) -> None:
    text = "batch,HBM BW (GB/s),tok/s,power (W)\n1,1520,90,290\n8,1440,610,330\n64,890,2800,430\n"
    recording = read(tmp_path, text)
    assert recording.objective.goal.name == "tok/J"
    assert best(recording).configuration["batch"] == 64


def test_a_rate_of_frames_counts_before_what_the_board_can_do(tmp_path: Path) -> None:
    text = "mode,TOPS,FPS (detector),Power (W)\nlow,22,30,9\nmiddle,35,45,16\nfull,90,80,33\n"
    assert best(read(tmp_path, text)).configuration["mode"] == "low"


def test_operations_that_stay_the_same_count_before_traffic(tmp_path: Path) -> None:
    text = "block,GB/s,GFLOPS,ms,power (W)\n64,610,400,2.0,240\n128,830,500,1.6,262\n"
    text += "256,790,571.4,1.4,271\n512,860,470.6,1.7,268\n"
    recording = read(tmp_path, text)
    assert recording.objective.goal.name == "energy_j"
    assert best(recording).configuration["block"] == 256


def test_operations_of_a_model_beside_a_time_are_no_rate() -> None:
    text = "method,FLOPs (G),latency (ms),power (W)\ndense,4.2,7.0,140\npruned,2.2,4.4,137\nsmall,1.9,3.1,133\n"
    assert judged(text)["FLOPs (G)"].why == COUNTED
    rate = "tile,FLOPS (G),time (ms),power (W)\n8,100,8.0,140\n16,200,4.0,150\n32,400,2.0,160\n"
    assert judged(rate)["FLOPS (G)"].role is Role.THROUGHPUT


@pytest.mark.parametrize("heading", ["ops", "num_ops", "total_ops"])
def test_whole_numbers_of_operations_beside_a_time_are_an_amount(heading: str) -> None:
    text = f"threads,{heading},time_s,energy_J\n1,1000003,9.1,700\n2,1200001,4.8,500\n4,1400007,2.6,420\n"
    assert judged(text)[heading].why == COUNTED
    assert (judged(text.replace("time_s", "power_W"))[heading].role is Role.THROUGHPUT) == (heading == "ops")


@pytest.mark.parametrize(
    "heading", ["Zeit bis erstes Token (ms)", "首token延迟(ms)", "temps jusqu'au premier token (ms)"]
)
def test_the_time_to_the_first_token_is_a_latency_in_other_languages(heading: str) -> None:
    text = f"cap (W),{heading},tokens/s,power (W)\n200,310,1500,195\n250,270,1800,243\n300,240,1950,290\n"
    assert judged(text)[heading].role is Role.LATENCY


# --- runs that failed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heading", ["exit code", "exit_code", "rc", "Return code", "returnCode"])
def test_a_run_with_an_exit_code_failed(tmp_path: Path, heading: str) -> None:
    text = f"power_limit,elapsed_s,energy_j,{heading}\n150,12,1700,137\n200,290,56000,0\n300,221,63000,0\n"
    recording = read(tmp_path, text)
    assert [m.state for m in recording.measurements()].count(State.RUNTIME) == 1
    ok = [m for m in recording.measurements() if m.state is State.OK]
    assert min(ok, key=lambda m: m.values["energy_j"]).configuration["power_limit_w"] == 200


def test_numbers_without_a_zero_are_no_exit_codes() -> None:
    text = "rc,time_s,energy_j\n1,12,1700\n2,9,1500\n4,7,1400\n"
    assert judged(text)["rc"].role is Role.PARAMETER


# --- what ran ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "names", "others"),
    [
        ("query,threads", ("Q1", "Q3"), (1, 8)),
        ("scene,renderer", ("hall", "car"), ("alpha", "beta")),
        ("Game,Preset", ("Race", "Maze"), ("Ultra", "Low")),
        ("browser,page", ("Fox", "Cat"), ("news", "shop")),
    ],
)
def test_other_queries_scenes_games_and_pages_are_other_work(
    tmp_path: Path, header: str, names: tuple[str, ...], others: tuple[object, ...]
) -> None:
    rows = [
        f"{name},{other},{10 * n + o + 3.5},{50 * n + o + 9.1}"
        for n, name in enumerate(names)
        for o, other in enumerate(others)
    ]
    text = "\n".join((f"{header},time_s,energy_J", *rows)) + "\n"
    what = next(name for name in ("query", "scene", "Game", "page") if name in header)
    recording = read(tmp_path, text)
    other = next(name for name in header.split(",") if name != what)
    assert {c.heading: c.role for c in recording.columns if c.role in (Role.KERNEL, Role.PARAMETER)} == {
        "kernel": Role.KERNEL,
        other: Role.PARAMETER,
    }


def test_the_size_of_pages_is_a_choice() -> None:
    text = "page_size,driver,time_s\nsmall,a,3.1\nsmall,b,3.2\nhuge,a,2.1\nhuge,b,2.2\n"
    assert judged(text)["page_size"].candidates == (Role.KERNEL, Role.PARAMETER)


# --- variants side by side and lists under names ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "headings", ["fp16 img/s,int8 img/s,fp16 power (W),int8 power (W)", "vLLM tok/s,SGLang tok/s,vLLM W,SGLang W"]
)
def test_rates_and_powers_of_two_variants_are_rows_of_each(tmp_path: Path, headings: str) -> None:
    text = f"batch,{headings}\n1,210,330,150,140\n8,900,1500,240,230\n128,1500,2900,330,320\n"
    recording = read(tmp_path, text)
    assert len(list(recording.measurements())) == 6
    assert best(recording).configuration == {"batch": 128, "implementation": headings.split(",")[1].split()[0]}


@pytest.mark.parametrize(
    "header",
    [
        "cap,board time (ms),board power (W),wall power (W),board energy (J),wall energy (J)",
        "cap,training time (ms),training power (W),testing power (W),testing time (ms),fps",
    ],
)
def test_powers_of_two_meters_and_stages_are_no_variants(header: str) -> None:
    columns = parse_columns(f"{header}\n1,8,210,260,1.7,2.1\n2,7,250,300,1.8,2.2\n3,6,290,345,1.7,2.1\n", "file.csv")
    assert arranged(columns, "file") is columns


@pytest.mark.parametrize("names", [("baseline", "optimized"), ("fp16", "int4"), ("A100", "H100")])
def test_lists_of_rows_under_names_are_all_read(tmp_path: Path, names: tuple[str, str]) -> None:
    lists = {
        name: [{"batch": b, "img_s": b * (90 + 40 * n) + 0.5, "power_w": 150 + b} for b in (1, 8, 32)]
        for n, name in enumerate(names)
    }
    recording = read(tmp_path, json.dumps({"model": "net", **lists}), "two.json")
    assert len(list(recording.measurements())) == 6
    assert names[1] in best(recording).configuration.values()


# --- parts, and columns that tell rows apart --------------------------------------------------------------------------


def test_the_energy_of_a_package_counts_and_not_that_of_its_cores(tmp_path: Path) -> None:
    text = "threads,time_s,pkg_J,dram_J,cores_J\n1,41,2060,165,1400\n8,6.9,655,41,520\n16,5.2,650,37,530\n"
    recording = read(tmp_path, text)
    assert best(recording).values["energy_j"] == 650
    beside = judged(text.replace("threads", "GPU energy (J)"))
    assert [c.heading for c in beside.values() if c.role is Role.ENERGY] == ["GPU energy (J)"]


def test_a_verdict_behind_the_figures_does_not_average_named_rows(tmp_path: Path) -> None:
    text = (
        "commit,kernel_ms,energy_mJ,regression\na1b,1.82,512,no\nb2c,1.80,508,no\nc3d,1.95,549,yes\nd4e,1.69,480,no\n"
    )
    recording = read(tmp_path, text)
    assert len(list(recording.measurements())) == 4
    assert best(recording).configuration == {"commit": "d4e"}


def test_a_switch_behind_the_figures_is_a_choice_where_rows_have_numbers_only() -> None:
    text = "uuid,time_s,energy_J,mode_x\na1,1.8,51,no\nb2,1.9,52,no\nc3,1.2,40,yes\nd4,1.3,41,yes\n"
    assert judged(text)["mode_x"].role is Role.PARAMETER


def test_a_label_beside_units_of_single_figures_is_kept(tmp_path: Path) -> None:
    text = (
        "system,scenario,units,result,power (W)\nbox,Offline,Samples/s,3128.5,3400\nbox,Server,Queries/s,2600.5,3290\n"
    )
    text += "rack,Offline,Samples/s,1510.5,1890\nrack,Server,Queries/s,1220.5,1750\n"
    found = read(tmp_path, text)
    assert {value for m in found.measurements() for value in m.configuration.values()} >= {"Offline", "Server"}
