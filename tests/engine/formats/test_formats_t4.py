"""T4 results and KTT's own, as the field's programs write them."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from fixtures.formats_samples import CACHE, T4

from app.base.errors import InputError
from app.engine.formats.own import About
from app.engine.formats.read import read_recording
from app.engine.formats.t4 import write_t4
from app.engine.results.measurement import State


def write(folder: Path, document: dict[str, Any], name: str = "results.json") -> Path:
    path = folder / name
    data = json.dumps(document).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def changed(**first: Any) -> dict[str, Any]:
    """The sample with some of its first result changed."""
    document = copy.deepcopy(T4)
    document["results"][0] |= first
    return document


@pytest.mark.parametrize("name", ["results.json", "results.json.gz"])
def test_results_with_either_name_for_the_compile_time(tmp_path: Path, name: str) -> None:
    recording = read_recording(write(tmp_path, T4, name))
    first, second = recording.in_file_order()
    assert first.configuration == {"block_size_x": 16, "unroll": True, "method": "best"}
    assert (first.values["time"], first.values["time_s"], first.values["GFLOP/s"]) == (12.25, 0.01225, 615.6)
    assert first.cost_s == pytest.approx((661.5 + 393.9 + 10.0) / 1e3)
    assert second.cost_s == pytest.approx(0.5)
    assert (second.state, second.values) == (State.COMPILE, {})
    assert str(recording.goal) == "min:time"
    assert recording.kernel == "results"


def test_results_with_nothing_beside_them_are_read_and_what_is_wrong_in_them_is_named(tmp_path: Path) -> None:
    recording = read_recording(write(tmp_path, {"results": T4["results"]}))
    assert len(recording) == len(T4["results"])
    with pytest.raises(InputError, match="result 1: its 'measurements' are no list"):
        read_recording(write(tmp_path, {"results": changed(measurements="none")["results"]}))


@pytest.mark.parametrize("state", [s for s in State if s is not State.OK])
def test_every_kind_of_invalidity(tmp_path: Path, state: State) -> None:
    recording = read_recording(write(tmp_path, changed(invalidity=state.value)))
    assert next(recording.in_file_order()).state is state


def test_a_wrong_result_is_none_though_it_ran(tmp_path: Path) -> None:
    recording = read_recording(write(tmp_path, changed(correctness=0)))
    assert next(recording.in_file_order()).state is State.CORRECTNESS


@pytest.mark.parametrize(
    ("unit", "metadata", "time_ms"),
    [
        ("", "milliseconds", 5.0),
        ("miliseconds", "seconds", 5.0),
        ("s", "milliseconds", 5000.0),
        ("Microseconds", "milliseconds", 0.005),
        ("", "microseconds", 0.005),
        ("", None, 5.0),
    ],
)
def test_units_of_time(tmp_path: Path, unit: str, metadata: str | None, time_ms: float) -> None:
    document = changed(measurements=[{"name": "time", "value": 5, "unit": unit}])
    if metadata is None:
        del document["metadata"]
    else:  # also where it stands below the results
        del document["metadata"]
        document["metadata"] = {"timeunit": metadata}
    assert next(read_recording(write(tmp_path, document)).in_file_order()).values["time"] == pytest.approx(time_ms)


def test_an_objective_of_another_name_that_is_a_time(tmp_path: Path) -> None:
    document = changed(
        measurements=[{"name": "TotalDuration", "value": 96.256, "unit": "Microseconds"}], objectives=["TotalDuration"]
    )
    recording = read_recording(write(tmp_path, document))
    values = next(recording.in_file_order()).values
    assert str(recording.goal) == "min:TotalDuration"
    assert (values["TotalDuration"], values["time_s"]) == (96.256, pytest.approx(96.256e-6))


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (5, "line 1, result 2: no 'configuration'"),
        ({"configuration": 5}, "result 2: no 'configuration'"),
        ({"configuration": {"block_size_x": 1}}, "result 2: parameter 'unroll' is missing"),
        ({"configuration": {**T4["results"][0]["configuration"], "more": 1}}, "other parameters than the first"),
        ({"configuration": T4["results"][0]["configuration"], "measurements": 3}, "'measurements' are no list"),
        ({"configuration": T4["results"][0]["configuration"], "measurements": [{}]}, "measurement without a name"),
    ],
)
def test_a_bad_result_is_named(tmp_path: Path, result: object, said: str) -> None:
    document = copy.deepcopy(T4)
    document["results"][1] = result
    with pytest.raises(InputError, match=said):
        read_recording(write(tmp_path, document))


def test_written_results_are_what_the_schema_wants(tmp_path: Path) -> None:
    cache = read_recording(write(tmp_path, CACHE, "cache.json"))
    about = About(cache.device, cache.kernel, cache.objective, units=cache.units)
    document = json.loads(write_t4(cache.table(), tmp_path / "t4.json", about).read_text())
    assert document["schema_version"] == "1.0.0"
    first = document["results"][0]
    assert {"configuration", "times", "invalidity", "correctness", "measurements", "objectives"} <= set(first)
    assert first["objectives"] == ["time", "nvml_energy"]
    assert {m["name"]: m["unit"] for m in first["measurements"]}["time"] == "ms"
    assert {r["invalidity"] for r in document["results"]} == {"correct", "compile"}


def test_other_programs_results_without_what_is_ours(tmp_path: Path) -> None:
    """Written here, then read as another program would: the same figures, the states and the cost."""
    cache = read_recording(write(tmp_path, CACHE, "cache.json"))
    about = About(cache.device, cache.kernel, cache.objective, units=cache.units)
    document = json.loads(write_t4(cache.table(), tmp_path / "t4.json", about).read_text())
    del document["wattridge"]
    for result in document["results"]:
        del result["wattridge"]
    plain = read_recording(write(tmp_path, document, "plain.json"))
    for row in range(len(cache)):
        one, other = cache.measurement(row), plain.measurement(row)
        assert (one.configuration, one.state, one.values) == (other.configuration, other.state, other.values)
        assert one.cost_s == pytest.approx(other.cost_s)


KTT = {
    "Metadata": {"Device": "NVIDIA GeForce RTX 2080 Ti", "TimeUnit": "Microseconds", "KttVersion": "2.1.0"},
    "Results": [
        {
            "ComputationResults": [
                {"Duration": 96.0, "ProfilingData": {"Counters": [{"Name": "dram__sectors_read.sum", "Value": 5.0}]}}
            ],
            "Configuration": [{"Name": "BLOCK", "Value": 32, "ValueType": "Int"}],
            "KernelName": "triad",
            "Status": "Ok",
            "TotalDuration": 96.0,
            "TotalOverhead": 10_000.0,
        },
        {
            "ComputationResults": [],
            "Configuration": [{"Name": "BLOCK", "Value": 64, "ValueType": "Int"}],
            "KernelName": "triad",
            "Status": "ComputationFailed",
            "TotalDuration": 0.0,
            "TotalOverhead": 1000.0,
        },
    ],
}


def test_ktt_s_own_results(tmp_path: Path) -> None:
    recording = read_recording(write(tmp_path, KTT))
    first, second = recording.in_file_order()
    assert (recording.device, recording.kernel) == ("NVIDIA GeForce RTX 2080 Ti", "triad")
    assert first.values["time_s"] == pytest.approx(96e-6)
    assert first.values["dram__sectors_read.sum"] == 5.0
    assert first.cost_s == pytest.approx(10_096e-6)
    assert second.state is State.RUNTIME
