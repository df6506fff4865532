"""Lists of results, as Kernel Tuner's tune_kernel returns them, read like the cache of the same run."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.engine.formats.read import is_recording, read_recording
from app.engine.formats.recording import Recording
from app.engine.models.fit.points import choose
from app.engine.models.series import read_series
from app.engine.results.measurement import State


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "results.json"


def cache(shared_data: Path, name: str) -> tuple[Path, dict[str, Any]]:
    path = shared_data / "kernel-tuner" / name
    read = gzip.open if path.suffix == ".gz" else open
    with read(path, "rt") as file:
        text = file.read()
    return path, json.loads(text.removesuffix(",") + "}}" if text.endswith(",") else text)  # one was left open


@pytest.mark.parametrize(
    "name",
    [
        "kt_vector_add_RTX4000Ada_PowerSensor3_15.json",
        "ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz",
        "ktpaper_hotspot_RTX_A4000.json.gz",
    ],
)
def test_a_list_reads_as_the_cache_of_the_same_run(shared_data: Path, file: Path, name: str) -> None:
    path, document = cache(shared_data, name)
    file.write_text(json.dumps(list(document["cache"].values())))
    of_cache, of_list = read_recording(path), read_recording(file)
    assert is_recording(file)
    assert set(of_list.space().names) == set(of_cache.space().names)
    assert len(of_list) == len(of_cache)
    ours, theirs = of_list.table(), of_cache.table()
    assert ours.failures() == theirs.failures()
    for name in ("time_s", "energy_j", "power_w", "observed_clock_mhz"):
        assert ours.values(name).tolist() == pytest.approx(theirs.values(name).tolist(), nan_ok=True)


def test_the_list_with_its_environment(file: Path) -> None:
    results = [{"block_size_x": size, "time": 3.0 / size, "nvml_energy": 1.0} for size in (32, 64)]
    file.write_text(json.dumps([results, {"device_name": "NVIDIA A100", "max_threads": 1024}]))
    recording = read_recording(file)
    assert recording.device == "NVIDIA A100"
    assert recording.space().names == ("block_size_x",)
    assert recording.goal.name == "time"


def test_names_that_were_sorted(file: Path) -> None:
    results = [{"block_size_x": s, "GFLOP/s": 7.5 * s, "tile": 1, "time": 3.0 / s} for s in (32, 64)]
    file.write_text(json.dumps(results, sort_keys=True, indent=2))
    assert read_recording(file).space().names == ("block_size_x", "tile")


def test_metrics_behind_the_figures_are_no_parameters(file: Path) -> None:
    results = [{"a": a, "size_w": 4, "time": 3.0 / a, "N_PER_WARP": 16} for a in (1, 2)]
    file.write_text(json.dumps(results))
    recording = read_recording(file)
    assert recording.space().names == ("a", "size_w")
    assert "N_PER_WARP" in recording.value_names


def test_a_list_of_t4_results(file: Path) -> None:
    """As an excerpt of store_output_file's."""
    figures = [[{"name": "time", "value": a, "unit": "ms"}] for a in (1.0, 2.0)]
    results = [{"configuration": {"a": index}, "measurements": figure} for index, figure in enumerate(figures)]
    for document in (results, {"results": results}):
        file.write_text(json.dumps(document))
        assert [m.values["time_s"] for m in read_recording(file).in_file_order()] == [0.001, 0.002]


def test_failures_and_repeated_configurations(file: Path) -> None:
    results = [{"a": 1, "time": "InvalidConfig"}, {"a": 2, "time": 3.0}, {"a": 2, "time": 4.0}]
    file.write_text(json.dumps(results))
    recording = read_recording(file)
    assert [m.state for m in recording.in_file_order()] == [State.CONSTRAINTS, State.OK]
    assert "1 results repeat a configuration" in recording.notes[0]


def test_a_list_that_is_still_written(file: Path) -> None:
    text = json.dumps([{"a": a, "time": 1.0} for a in range(9)])
    file.write_text(text[:-30])
    recording = read_recording(file)
    assert recording.still_open
    assert len(recording) == 7
    assert "cut off" in recording.notes[0]


def test_a_clock_sweep_in_a_list_is_fitted(file: Path) -> None:
    results = [{"nvml_gr_clock": c, "nvml_power": c / 10, "time": 1e3 / c} for c in range(900, 1500, 100)]
    file.write_text(json.dumps(results))
    assert choose(read_series(file)).clocks == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "no result"),
        ("[1]", "not an object"),
        ("[[]]", "no result"),
        ('[{"a": 1}]', "no column is a time"),
        ('[{"time": 1.5}]', "without a parameter"),
        ('[{"a": [1], "time": 2}]', "without a parameter"),
        ('[{"a": 1, "time": 2},]', "not valid JSON"),
        ('[{"a": 1, "time": 2}] x', "not valid JSON|after the last"),
        ('[{"a": 1, "time": 2}, {"b": 1, "time": 2}]', "without a parameter"),
    ],
)
def test_other_lists_are_one_line(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        read_recording(file)
    assert caught.value.remedy


values = st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=3)
names = st.sampled_from(["a", "b", "time", "ps_power", "times"])
entries = st.dictionaries(names, values | st.lists(values), max_size=4)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(entries | values | st.lists(entries, max_size=3), max_size=5))
def test_any_list_gives_a_recording_or_one_line(file: Path, document: list[object]) -> None:
    file.write_text(json.dumps(document))
    recording: Recording | None = None
    refused: InputError | None = None
    try:
        recording = read_recording(file)
    except InputError as error:
        refused = error
    if recording is None:
        assert refused is not None
        assert (refused.where, bool(refused.remedy)) == (str(file), True)
    else:
        assert len(recording) > 0
