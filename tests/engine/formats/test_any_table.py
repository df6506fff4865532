"""Any table of measurements: which columns are what is guessed or said, and then it is a recording like any other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from fixtures.formats_samples import CACHE
from fixtures.formats_samples import TABLE as CSV

from app.base.errors import InputError
from app.cli import main
from app.engine.analysis.session_analysis import analyse
from app.engine.formats.any_table import REPEAT, read_table
from app.engine.formats.read import read_recording
from app.engine.formats.recording import Recording
from app.engine.formats.table_columns import TableColumns
from app.engine.session.opened import Opened
from app.engine.session.planning import plan_replay


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    path = tmp_path / "cache.json"
    path.write_text(json.dumps(CACHE))
    return path


def table(tmp_path: Path, text: str, columns: TableColumns | None = None, name: str = "table.csv") -> Recording:
    path = tmp_path / name
    path.write_text(text)
    return read_recording(path, columns)


def test_the_header_tells_parameters_from_figures_and_known_units_add_time_energy_and_work_per_joule(
    tmp_path: Path,
) -> None:
    read = table(tmp_path, CSV)
    assert read.space().names == ("kernel_size", "graphics_clock_mhz", "variant")
    assert read.device == "A100"
    (first, *_) = read.in_file_order()
    assert first.configuration == {"kernel_size": 16, "graphics_clock_mhz": 1005.0, "variant": "plain"}
    assert first.values["time_s"] == pytest.approx(0.0125)
    assert first.values["power_w"] == 200
    assert first.values["energy_j"] == pytest.approx(2.5)
    assert first.values["items/J"] == pytest.approx(4.0)
    assert [str(goal) for goal in read.objective.front] == ["min:time_s", "min:energy_j"]


def two_meters(second: str, rows: int = 12, *, spread: float = 20.0, gain: float = 1.03) -> str:
    """A table with the energy by a board's sensor and another one, 1.5 J apart beside the gain."""
    random = np.random.default_rng(3)
    lines = [f"block_size,time_ms,gpu_energy_j,{second}"]
    for row in range(rows):
        truth_j = 30.0 + spread * row / rows
        read_j = np.array([gain * truth_j + 1.5, truth_j]) * (1.0 + 0.002 * random.standard_normal(2))
        lines.append(f"{16 * (row + 1)},{5.0 + row},{read_j[0]:.4f},{read_j[1]:.4f}")
    return "\n".join(lines) + "\n"


def note_on(meter: str, read: Recording) -> str:
    """What is said of that meter beside the board's own; empty where nothing is."""
    return next((note for note in read.notes if f"times {meter}" in note or f"against {meter}" in note), "")


def test_a_second_column_of_energy_shows_gain_and_offset_with_their_errors(tmp_path: Path) -> None:
    note = note_on("wall_energy_j", table(tmp_path, two_meters("wall_energy_j", 40)))
    found = re.fullmatch(
        r"gpu_energy_j is ([0-9.]+) \(([0-9.]+) to ([0-9.]+)\) times wall_energy_j, and \+([0-9.]+) J "
        r"\(([0-9.]+) to ([0-9.]+)\) \(95 %, 40 rows of .* J\)",
        note,
    )
    assert found is not None, note
    gain, low, high, offset_j, least_j, most_j = map(float, found.groups())
    assert low < gain < high
    assert low <= 1.03 <= high
    assert least_j < offset_j < most_j
    assert least_j <= 1.5 <= most_j


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (two_meters("wall_energy_j", 4), "a gain needs 5 windows that both report, and there are 4"),
        (two_meters("wall_energy_j", 12, spread=3.0), "12 rows of this range tell no offset"),
        (two_meters("wall_energy_j", 12, gain=4.0), "it reports 4.0"),
        (two_meters("max_energy_j"), ""),  # an extreme is no other meter
        (two_meters("avg_gpu_energy_j"), ""),  # nor is another statistic of the same one
        (two_meters("total_energy_j"), ""),  # nor what may be the energy of something else
    ],
)
def test_two_columns_that_show_no_gain_or_no_offset_say_why(text: str, said: str, tmp_path: Path) -> None:
    meter = text.splitlines()[0].rpartition(",")[2]
    note = note_on(meter, table(tmp_path, text))
    assert (said in note) if said else not note


def test_what_the_user_names_counts_and_may_be_renamed(tmp_path: Path) -> None:
    read = table(tmp_path, CSV, TableColumns.parse("size=kernel_size,clock_mhz", "time_s=latency_ms"))
    assert (read.space().names, read.value_names) == (("size", "clock_mhz"), ("time_s",))
    assert read.read_with == {"parameters": "size=kernel_size,clock_mhz", "figures": "time_s=latency_ms"}
    again = TableColumns.parse(**read.read_with)
    assert [m.values for m in table(tmp_path, CSV, again).measurements()] == [m.values for m in read.measurements()]
    only_figures = table(tmp_path, CSV, TableColumns.parse(None, "latency_ms"))
    assert only_figures.space().names == ("kernel_size", "graphics_clock_mhz", "variant")


@pytest.mark.parametrize(
    ("parameters", "figures", "what"),
    [
        ("size", None, "no column 'size'"),
        (None, "power", "no column 'power'"),
        (",", None, "names no"),
    ],
)
def test_a_column_that_is_not_there_is_refused_with_those_that_are(
    tmp_path: Path, parameters: str | None, figures: str | None, what: str
) -> None:
    with pytest.raises(InputError) as caught:
        table(tmp_path, CSV, TableColumns.parse(parameters, figures))
    assert what in caught.value.what
    assert caught.value.remedy


@pytest.mark.parametrize("text", ["a,b\nx,y\nz,w\n", "time_s,energy_j\n1.5,2.5\n1.25,3.5\n", "one\ntwo\n", "\n\n"])
def test_a_table_that_does_not_say_what_is_what_is_refused_with_the_remedy(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as caught:
        table(tmp_path, text)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


def test_rows_of_one_configuration_are_repeats_whose_mean_counts(tmp_path: Path) -> None:
    read = table(tmp_path, "block,time_s\n" + "".join(f"{b},{b / 10 + n / 100}\n" for b in (1, 2) for n in range(3)))
    assert read.space().names == ("block", REPEAT)
    plan = plan_replay(read.path, read=read)
    opened = Opened.of(plan, read.table(), read.objective, None)
    assert opened.repeats is not None
    assert sorted(opened.table.values("time_s").tolist()) == pytest.approx([0.11, 0.21])


def test_json_lines_and_a_folder_of_points_hold_the_same(tmp_path: Path) -> None:
    points = [
        {"block": b, "clock_mhz": c, "result": {"time_s": b / c, "energy_j": 0.5 * b + c}, "samples": [1, 2]}
        for b in (16, 32)
        for c in (1000.0, 1400.0)
    ]
    lines = table(tmp_path, "".join(json.dumps(point) + "\n" for point in points), name="table.jsonl")
    folder = tmp_path / "points"
    folder.mkdir()
    for index, point in enumerate(points):
        (folder / f"point-{index}.json").write_text(json.dumps(point, indent=1))
    columns = TableColumns.parse("block,clock_mhz", None)
    assert lines.space().names == ("block", "graphics_clock_mhz")
    assert [m.values for m in read_table(folder, columns).in_file_order()] == [m.values for m in lines.in_file_order()]
    assert lines.value_names == ("result.time_s", "result.energy_j", "time_s", "energy_j", "power_w")


def test_a_list_of_objects_is_a_table_where_its_columns_are_named_and_a_cache_needs_no_names(
    tmp_path: Path, cache: Path
) -> None:
    columns = TableColumns.parse("speed", "score")
    text = json.dumps([{"score": n * 2.5, "speed": n, "name": f"run {n}"} for n in range(3)])
    read = table(tmp_path, text, columns, name="list.json")
    assert (read.space().names, read.value_names) == (("speed",), ("score",))
    assert read_recording(cache, columns).space().names == ("block_size_x", "nvml_gr_clock", "mode")


def test_numbers_in_the_names_of_a_folders_files_are_parameters(tmp_path: Path) -> None:
    for clock, cap in ((1005, 150), (1005, 200), (1110, 150)):
        (tmp_path / f"energy-time-{clock}-{cap}.json").write_text(json.dumps({"energy": 0.5, "time": clock / cap}))
    columns = TableColumns.parse("clock_mhz=file_1,power_limit_w=file_2", "energy_wh=energy,time_s=time")
    (first, *_) = read_recording(tmp_path, columns).in_file_order()
    assert first.configuration == {"clock_mhz": 1005, "power_limit_w": 150}
    assert first.values["energy_j"] == 1800.0
    assert set(read_recording(tmp_path).space().names) == {"file_1", "file_2"}


def test_a_parquet_file_needs_pyarrow_and_is_read_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    path.write_bytes(b"PAR1 this is none PAR1")
    with pytest.raises(InputError) as caught:
        read_recording(path)
    assert "CSV" in caught.value.remedy
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    parquet.write_table(pyarrow.table({"block": [1, 2], "time_s": [0.5, 0.25]}), path)
    assert read_recording(path).value_names == ("time_s",)


def test_the_published_sweep_of_clocks_and_caps_has_its_front(shared_data: Path) -> None:
    read = read_recording(shared_data / "clock-cap/a100_babelstream_clock_x_cap.csv")
    found = analyse(read.table(), read.objective)
    assert (len(read), len(found.plane.front)) == (35, 8)  # type: ignore[union-attr]
    listed = {parameter.name: parameter.values for parameter in read.space().parameters}
    assert listed["memory_clock_mhz"] == ("untouched",), "0 in the file: the memory clock was not set"
    assert {m.configuration["memory_clock_mhz"] for m in read.measurements()} == {"untouched"}
    assert 0 not in listed["power_limit_w"]
    assert min(float(clock) for clock in listed["graphics_clock_mhz"]) > 0


def test_the_published_sweep_of_a_service_has_its_front_and_its_best(shared_data: Path) -> None:
    read = read_recording(shared_data / "service-sweeps/rtx5090_vllm_gemma31b_clocks.csv")
    found = analyse(read.table(), read.objective)
    assert (len(read), len(found.plane.front)) == (28, 4)  # type: ignore[union-attr]
    best = max(read.measurements(), key=lambda m: m.values["narrative_tokens/J"])
    assert best.configuration == {"memory_clock_mhz": 7001, "graphics_clock_mhz": 1635}
    assert best.values["narrative_tokens/J"] == pytest.approx(2.025, abs=5e-4)


def test_with_a_limit_the_published_sweep_of_a_service_gives_the_best_that_is_fast_enough(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(shared_data / "service-sweeps/rtx5090_vllm_gemma31b_clocks.csv")
    words = ["analyse", file, "--maximise", "narrative_tokens/J", "--json"]
    assert main([*words, "--limit", "narrative_tokens/s>=500"]) == 0
    limited = json.loads(capsys.readouterr().out)
    best = limited["choosers"]["least_energy"]
    assert best["configuration"] == {"memory_clock_mhz": 14001, "graphics_clock_mhz": 2122}
    assert best["values"]["narrative_tokens/J"] == pytest.approx(1.920, abs=5e-4)
    assert best["values"]["narrative_tokens/s"] >= 500
    assert len(limited["infeasible"]) == 23
    assert main([*words, "--limit", "narrative_tokens/s>=5000"]) == 0
    hopeless = json.loads(capsys.readouterr().out)
    assert hopeless["front"] == []


@pytest.mark.parametrize("nothing", ["0", "-1"])
def test_what_a_tool_writes_for_not_measured_is_never_the_best(tmp_path: Path, nothing: str) -> None:
    rows = ["block,power_w,time_s", "32,100,2.0", f"64,{nothing},1.5", f"128,120,{nothing}", "256,90,1.8"]
    file = tmp_path / "runs.csv"
    file.write_text("\n".join(rows) + "\n")
    cache = tmp_path / "cache.json"
    entries = {
        "32": {"block": 32, "time": 2.0, "energy": 200.0},
        "64": {"block": 64, "time": 1.5, "energy": float(nothing)},
        "128": {"block": 128, "time": float(nothing), "energy": 240.0},
        "256": {"block": 256, "time": 1.8, "energy": 162.0},
    }
    keys = {"device_name": "X", "kernel_name": "k", "tune_params_keys": ["block"]}
    blocks = {"tune_params": {"block": [32, 64, 128, 256]}}
    cache.write_text(json.dumps({**keys, **blocks, "cache": entries}))
    for path in (file, cache):
        table = read_recording(path).table()
        assert table.failures() == {"runtime": 1}, path
        energies, times = table.values("energy_j"), table.values("time_s")
        at = int(np.nanargmin(energies))
        assert table.measurement(at).configuration["block"] == 256, path
        assert np.nanmin(energies) == pytest.approx(162.0), path
        assert np.nanmin(times) > 0, path
        assert np.isfinite(times).sum() == 3, "a time is known where only the energy is not"


# --- cells that hold nothing ------------------------------------------------------------------------------------------


def runs(*cells: str) -> str:
    """A table of configurations 32, 64, ... with times; each cell stands in the energy column of its row."""
    rows = [f"{32 * 2**index},{1 + index / 10},{cell}" for index, cell in enumerate(cells)]
    return "\n".join(["block,time_ms,energy_J", *rows]) + "\n"


def test_figures_that_some_rows_lack_are_counted_in_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = ("2.0", "", "1.9", "NaN", "1.8", "inf", "1.7")
    said = "energy_J, energy_j, power_w: no number in 3 of 7 measurements"
    read = table(tmp_path, runs(*cells))
    assert said in read.notes
    assert read.table().failures() == {}
    assert int(np.isfinite(read.table().values("time_s")).sum()) == 7
    assert main(["analyse", str(tmp_path / "table.csv")]) == 0
    assert said in capsys.readouterr().out
    lines = [
        {"block": 2**index, "time_ms": 1 + index, **({"energy_J": 2.0} if index < 4 else {})} for index in range(7)
    ]
    of_lines = table(tmp_path, "\n".join(map(json.dumps, lines)), name="table.jsonl")
    assert said in of_lines.notes
    assert not any("no number" in note for note in table(tmp_path, runs("2.0", "1.9")).notes)


def test_a_cache_of_another_tool_says_what_some_entries_lack(tmp_path: Path, cache: Path) -> None:
    document = json.loads(cache.read_text())
    lacking = next(entry for entry in document["cache"].values() if isinstance(entry["time"], float))
    lacking["flops"] = 5.0
    cache.write_text(json.dumps(document))
    worked = len(document["cache"]) - sum(read_recording(cache).table().failures().values())
    assert f"flops: no number in {worked - 1} of {worked} measurements" in read_recording(cache).notes


def test_a_row_without_any_figure_is_left_out_and_counted_and_is_no_failure(tmp_path: Path) -> None:
    read = table(tmp_path, "block,time_ms,energy_J\n32,1.0,2.0\n64,,\n128,1.2,\n256,nan,\n")
    assert "2 of 4 rows have no number in any figure and are left out" in read.notes
    assert [each.configuration["block"] for each in read.in_file_order()] == [32, 128]
    assert read.table().failures() == {}


def test_a_column_that_is_no_parameter_as_some_rows_lack_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "block,tile,time_ms\n32,1,1.0\n32,2,1.3\n64,1,1.1\n64,,1.2\n"
    said = "tile is empty in 1 of 4 rows: it is not read as a parameter"
    assert said in table(tmp_path, text).notes
    assert main(["analyse", str(tmp_path / "table.csv")]) == 0
    out = capsys.readouterr().out
    assert said in out, "though its rows are averaged as repeats"
    assert "repeat only repeats each configuration" in out
    assert not any("tile" in note for note in table(tmp_path, text.replace("64,,", "64,2,")).notes[1:])


@pytest.mark.parametrize(
    ("power", "speed", "said"),
    [
        ("", "1.0", ["1 rows without a number for clock, power or speed are left out"]),
        ("NaN", "1.0", ["1 rows without a number for clock, power or speed are left out"]),
        ("100", "", ["1 rows without a number for clock, power or speed are left out"]),
        ("100", "1.0", []),
    ],
)
def test_a_fit_counts_the_rows_that_it_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], power: str, speed: str, said: list[str]
) -> None:
    file = tmp_path / "clocks.csv"
    rows = [f"{clock},{40 + clock / 10 + (clock / 400) ** 3},{clock / 700}" for clock in range(600, 1800, 100)]
    file.write_text("\n".join(["clock_mhz,power_w,throughput", *rows, f"1850,{power},{speed}"]) + "\n")
    assert main(["fit", str(file), "--json"]) == 0
    reasons = json.loads(capsys.readouterr().out)["reasons"]
    assert [reason for reason in reasons if "left out" in reason] == said


# --- several kernels in one table -------------------------------------------------------------------------------------


def test_a_table_of_several_kernels_is_analysed_kernel_by_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kernels.csv"
    rows = [
        f"{k},{b},{scale * (1 + b / 100)},{scale * (9 - b / 100)}" for k, scale in KERNELS for b in range(32, 260, 32)
    ]
    file.write_text("\n".join(["kernel,block,time_ms,energy_J", *rows]) + "\n")
    assert main(["analyse", str(file)]) == 0
    out = capsys.readouterr().out
    assert [line.split()[1] for line in out.splitlines() if "unknown device" in line] == ["gemm:", "copy:"]
    fastest = [line.split() for line in out.splitlines() if line.startswith("Fastest ")]
    assert [(words[1], words[-2]) for words in fastest] == [("3.96", "gemm"), ("1.32", "copy")]
    assert out.count("measured  8 of 8 configurations") == 2
    assert out.count("different kernels (gemm, copy): a best or a mean over all of them compares different work") == 2
    assert main(["analyse", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert any("different kernels" in note for note in document["notes"])
    parts = document["kernels"]
    assert [part["title"] for part in parts] == ["gemm", "copy"]
    times = [part["choosers"]["fastest"]["values"]["time_ms"] for part in parts]
    assert times == [pytest.approx(3 * 1.32), pytest.approx(1.32)]
    assert [part["coverage"] for part in parts] == [1.0, 1.0]
    assert main(["export", str(file), "--kind", "json", "--out", str(tmp_path / "out")]) == 0
    assert "different kernels (gemm, copy)" in capsys.readouterr().err, "the best is of one of them"


KERNELS = (("gemm", 3), ("copy", 1))
