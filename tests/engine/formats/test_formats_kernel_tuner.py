"""Kernel Tuner caches: read whole, marked failures and all; anything else is one clear line."""

from __future__ import annotations

import gzip
import json
import math
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.formats.read import read_recording
from app.engine.formats.recording import Recording
from app.engine.results.measurement import State

HEADER = {
    "device_name": "NVIDIA RTX A4000",
    "kernel_name": "vector_add",
    "problem_size": [1000, 1],
    "tune_params_keys": ["block_size_x", "nvml_gr_clock"],
    "tune_params": {"block_size_x": [32, 64, 128], "nvml_gr_clock": [900, 1500]},
    "objective": "time",
}
GOOD = {"block_size_x": 32, "nvml_gr_clock": 900, "time": 2.0, "nvml_energy": 0.5, "core_freq": 885.0}


def write(path: Path, entries: dict[str, object], **header: object) -> Path:
    path.write_text(json.dumps({**HEADER, **header, "cache": entries}))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache.json"


# --- real files -------------------------------------------------------------------------------------------------------


def test_the_session_that_comes_with_the_program_names_its_problem_size() -> None:
    path = resources() / "recordings" / "h200-sgemm-session.json.gz"
    assert read_recording(path).problem_size == "4096, 4096"


@pytest.mark.parametrize(
    ("name", "entries", "failures"),
    [
        ("ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz", 5120, {"runtime": 430}),
        ("ktpaper_hotspot_RTX_A4000.json.gz", 1660, {}),
        ("convolution_milo-A4000.json.gz", 4362, {"compile": 6, "runtime": 155}),
        ("dedispersion_milo-A100.json.gz", 11130, {}),
        ("kt_vector_add_RTX4000Ada_PowerSensor3_15.json", 15, {}),
    ],
)
def test_published_caches_give_every_entry(
    shared_data: Path, name: str, entries: int, failures: dict[str, int]
) -> None:
    cache = read_recording(shared_data / "kernel-tuner" / name)
    assert len(cache) == cache.space().size == entries
    assert cache.table().failures() == failures
    for row in (0, entries // 2, entries - 1):
        assert cache.measurements()[row].row == row
        assert cache.space().configuration(row) == dict(cache.measurements()[row].configuration)


def test_values_keep_their_names_and_get_ours(shared_data: Path) -> None:
    cache = read_recording(shared_data / "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz")
    values = cache.measurements()[0].values
    assert values["time_s"] == values["time"] / 1e3
    assert values["energy_j"] == values["ps_energy"]
    assert values["power_w"] == values["ps_power"]
    assert values["observed_clock_mhz"] == values["core_freq"] == 1485.0
    assert cache.units["ps_energy"] == "J"
    assert cache.units["time"] == "ms"
    assert str(cache.goal) == "max:TFLOPS/J"
    assert cache.space().parameters[0].device_setting
    assert not cache.space().parameters[1].device_setting


# --- what a file may hold ---------------------------------------------------------------------------------------------


def test_energy_follows_from_power_and_time_and_the_other_way(file: Path) -> None:
    entries = {
        "a": {"block_size_x": 32, "nvml_gr_clock": 900, "time": 2.0, "nvml_power": 100.0},
        "b": {"block_size_x": 64, "nvml_gr_clock": 900, "time": 4.0, "nvml_energy": 0.8},
    }
    first, second = read_recording(write(file, entries)).measurements()
    assert first.values["energy_j"] == pytest.approx(0.2)
    assert second.values["power_w"] == pytest.approx(200.0)


@pytest.mark.parametrize(
    ("mark", "state"),
    [
        ("CompilationFailedConfig", State.COMPILE),
        ("RuntimeFailedConfig", State.RUNTIME),
        ("InvalidConfig", State.CONSTRAINTS),
        ({"__error__": "CompilationFailedConfig"}, State.COMPILE),
        ({"__error__": "InvalidConfig"}, State.CONSTRAINTS),
        ({"__error__": "VerificationFailed"}, State.CORRECTNESS),
        ({"__error__": "something new"}, State.RUNTIME),
        (1e20, State.RUNTIME),
    ],
)
def test_old_and_new_marks_of_failure(file: Path, mark: object, state: State) -> None:
    entry = {"block_size_x": 32, "nvml_gr_clock": 900, "time": mark, "compile_time": 12.0}
    (measurement,) = read_recording(write(file, {"32,900": entry})).measurements()
    assert measurement.state is state
    assert measurement.error
    assert not measurement.values
    assert measurement.cost_s == pytest.approx(0.012)


def test_a_mark_counts_under_any_value_and_a_word_that_is_none_does_not(file: Path) -> None:
    entries = {
        "a": {**GOOD, "GFLOP/s": "RuntimeFailedConfig"},
        "b": {**GOOD, "block_size_x": 64, "remark": "a quiet night"},
    }
    first, second = read_recording(write(file, entries)).measurements()
    assert (first.state, second.state) == (State.RUNTIME, State.OK)


def closed(text: str) -> str:
    return text


def open_with_comma(text: str) -> str:
    return text.rstrip()[:-2].rstrip() + ",\n"


def open_without_comma(text: str) -> str:
    return text.rstrip()[:-2]


@pytest.mark.parametrize("ending", [closed, open_with_comma, open_without_comma])
@pytest.mark.parametrize("packed", [False, True])
def test_open_and_closed_plain_and_packed(file: Path, ending: object, packed: bool) -> None:
    text = ending(write(file, {"32,900": GOOD}).read_text())  # type: ignore[operator]
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert len(read_recording(file)) == 1


def test_of_two_entries_for_one_configuration_the_later_counts(file: Path) -> None:
    entries = {"first": GOOD, "second": {**GOOD, "time": 3.0}}
    (measurement,) = read_recording(write(file, entries)).measurements()
    assert measurement.values["time"] == 3.0


def test_a_damaged_entry_is_no_end_of_the_file(file: Path) -> None:
    """Its brackets never close: what follows must not be left out as if the writer had been ended there."""
    text = json.dumps({**HEADER, "cache": {"x": GOOD}})[:-2]
    file.write_text(text + ',\n"y": {"block_size_x": 256, "time"\n"z": {"block_size_x": 512, "time": 1.0},')
    with pytest.raises(InputError, match="not valid JSON: expecting ':'"):
        read_recording(file)


def test_values_that_the_header_lacks_are_added(file: Path) -> None:
    cache = read_recording(write(file, {"x": {**GOOD, "block_size_x": 256}}))
    assert cache.measurements()[0].configuration["block_size_x"] == 256


# --- what is no cache -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"{", "line 1, column 2: not valid JSON"),
        (b"[1, 2]", "result 1: not an object"),
        (b"{}", "this is no recording"),
        (b'{"cache": {}}', "tune_params_keys"),
        (b'{"tune_params_keys": ["a"], "cache": {}}', "no entry"),
        (b'{"tune_params_keys": ["a", "a"], "cache": {"1": {"a": 1}}}', "twice"),
        (b'{"tune_params_keys": [1], "cache": {"1": {"a": 1}}}', "list of names"),
        (b'{"tune_params_keys": ["a"], "cache": {"1": 5}}', "entry '1'"),
        (b'{"tune_params_keys": ["a"], "cache": {"1": {"b": 1}}}', "parameter 'a' is missing"),
        (b'{"tune_params_keys": ["a"], "cache": {"1": {"a": [1]}}}', "not a plain value"),
        (b'{"tune_params_keys": ["a"], "cache": {"1": {"a": NaN}}}', "not a plain value"),
        (b'{"tune_params_keys": ["a"], "cache": {"1": {"a": 1, "time": 1', "no entry"),
        (b'{"tune_params_keys": ["a"], "cache": {"1": {"a": 1} "2": 3', "line 1, column 53: not valid JSON"),
        (b'{"tune_params_keys": ["a"], "cache": {"1": {"a": 1}}}}', "text after the last brace"),
        (b'{"tune_params_keys": ["a"],\n"cache": {"1": {"a": 1, "b": }}}', "line 2, column 30"),
        (b'{"ConfigurationSpace": {}}', "T1 specification"),
        (b'{\n"a": 1,\n"b" 2}', "line 3, column"),
        (b"\xff{}", "line 1 is not UTF-8"),
        (b'{"cache": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"cache": ' + b"9" * 5000 + b"}", "thousands of digits"),
        (b'{"cache": {"1": "' + b"a" * 10_000_000 + b'"}}', "more than 8 MiB"),
        (b'{"tune_params_keys": ["a"], "cache": {"1": {"a": "\\ud800"}}}', "half a character"),
        (b"\x1f\x8b" + b"junk", "damaged"),
        (gzip.compress(b'{"cache": {}}', mtime=0)[:-6], "damaged or cut off"),
    ],
)
def test_what_is_no_cache_is_one_line(file: Path, content: bytes, said: str) -> None:
    file.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        read_recording(file)
    assert caught.value.where == str(file)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "none.json", "no such file"), (tmp_path, "this folder holds no JSON")):
        with pytest.raises(InputError, match=said):
            read_recording(path)


@pytest.mark.parametrize("fill", [b" ", b"\n", b"0", b'{"a":1},', b"[[[[", b'"'])
def test_a_small_file_that_unpacks_to_gigabytes_is_refused_early(file: Path, fill: bytes) -> None:
    begin = gzip.compress(b'{"tune_params_keys": ["a"], "cache": ')
    block = gzip.compress(fill * (2**20 // len(fill)), 9)
    file.write_bytes(begin + block * 2000)  # 2 GiB in 2 MB, as many members
    tracemalloc.start()
    with pytest.raises(InputError):
        read_recording(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * 2**20


def test_many_tiny_entries_are_refused_before_they_fill_the_memory(file: Path) -> None:
    entries = b",".join(b'"": {"a": %d, "v%d": 1}' % (i, i) for i in range(3000))
    file.write_bytes(b'{"tune_params_keys": ["a"], "cache": {' + entries + b"}}")
    with pytest.raises(InputError, match="more than fit into memory"):
        read_recording(file)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    entry=st.dictionaries(st.sampled_from([*GOOD, "timestamp", "wattridge", "__error__", "x"]), ANYTHING),
    header=st.dictionaries(st.sampled_from([*HEADER, "wattridge"]), ANYTHING),
)
def test_any_json_is_a_cache_or_one_clear_line(file: Path, entry: dict[str, object], header: dict[str, object]) -> None:
    check(write(file, {"32,900": {**GOOD, **entry}, "64,900": {**GOOD, "block_size_x": 64}}, **header))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_a_damaged_file_is_a_cache_or_one_clear_line(file: Path, data: st.DataObject) -> None:
    content = bytearray(write(file, {"32,900": GOOD, "64,900": {**GOOD, "block_size_x": 64}}).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        length = data.draw(st.integers(0, 30))
        content[at : at + length] = data.draw(st.binary(max_size=12))
        if not content:
            break
    file.write_bytes(gzip.compress(bytes(content)) if data.draw(st.booleans()) else bytes(content))
    check(file)


def check(file: Path) -> None:
    """The file is a sound cache, or one line says why not; anything else fails."""
    cache: Recording | None = None
    refused: InputError | None = None
    try:
        cache = read_recording(file)
    except InputError as error:
        refused = error
    if cache is None:
        assert refused is not None
        assert refused.where == str(file)
        assert refused.remedy
    else:
        check_recording(cache)


def check_recording(cache: Recording) -> None:
    assert len(cache) == cache.space().size >= 1
    for row, measurement in enumerate(cache.measurements()):
        assert cache.space().row_of(measurement.configuration) == row == measurement.row
        assert all(isinstance(value, float) and not math.isnan(value) for value in measurement.values.values())
        assert measurement.state is not State.OK or measurement.values
    assert cache.goal.name


def test_the_memory_clock_is_taken_over_and_a_voltage_averaged_with_time_stamps_is_not(file: Path) -> None:
    """Kernel Tuner's gr_voltage is the mean of voltages and of the seconds at which each was read."""
    entry = {**GOOD, "mem_freq": 7000.5, "gr_voltage": 356.2}
    [measured] = read_recording(write(file, {"32,900": entry})).measurements()
    assert measured.values["observed_memory_clock_mhz"] == 7000.5
    assert measured.values["gr_voltage"] == 356.2, "kept as what it is called"
    assert "core_voltage_mv" not in measured.values
