"""`tune_kernel`: a script's kernel through the engine, with Kernel Tuner's signature and meaning."""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.cuda_bench import SteadySensors
from fixtures.virtual_cuda import VirtualBoard

from app import run_kernel, tune_kernel
from app.base.errors import InputError, WattridgeError
from app.cli import main
from app.engine.formats.read import read_recording
from app.engine.space.build import build_space
from app.engine.space.expression import parse
from app.engine.store.database import Store
from app.engine.strategies import base as strategies
from app.scripting.accuracy import AccuracyObserver
from app.scripting.described_kernel import to_numpy
from app.scripting.kernel_tuner import PARAMETERS
from app.scripting.observers import (
    BenchmarkObserver,
    ContinuousObserver,
    NVMLObserver,
    OutputObserver,
    PrologueObserver,
    RegisterObserver,
)
from app.scripting.restrictions import read_restrictions
from app.scripting.script_results import Results
from app.scripting.searchspace import Searchspace
from app.scripting.strategies import MINIMISERS, STRATEGIES, read_strategy
from app.scripting.surroundings import Surroundings, running_with
from app.sensors.limits import limits_of

SOURCE = "__global__ void scale(float *y, const float *x) { /* what the fake compiler reads are the defines */ }"
X = np.arange(1000, dtype=np.float32)
Y = np.zeros_like(X)

# The signatures of Kernel Tuner 1.5.0, with their defaults.
_KERNEL = ("kernel_name", "kernel_source", "problem_size", "arguments")
TUNE_KERNEL = {
    **dict.fromkeys((*_KERNEL, "tune_params"), inspect.Parameter.empty),
    **dict.fromkeys(["grid_div_x", "grid_div_y", "grid_div_z", "restrictions", "answer"]),
    "atol": 1e-06,
    "verify": None,
    "verbose": False,
    "lang": None,
    "device": 0,
    "platform": 0,
    **dict.fromkeys(["smem_args", "cmem_args", "texmem_args", "compiler", "compiler_options", "defines", "log"]),
    "iterations": 7,
    "block_size_names": None,
    "quiet": False,
    **dict.fromkeys(["strategy", "strategy_options", "cache", "metrics", "simulation_mode", "parallel", "observers"]),
    **dict.fromkeys(["objective", "objective_higher_is_better", "objectives", "seed"]),
}
RUN_KERNEL = {
    **dict.fromkeys((*_KERNEL, "params"), inspect.Parameter.empty),
    **dict.fromkeys(["grid_div_x", "grid_div_y", "grid_div_z", "lang"]),
    "device": 0,
    "platform": 0,
    **dict.fromkeys(
        ["smem_args", "cmem_args", "texmem_args", "compiler", "compiler_options", "defines", "block_size_names"]
    ),
    "quiet": False,
    "log": None,
}


def tuned(board: Any, parameters: Mapping[str, Any], **more: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    given = {"block_size_x": [64], **parameters}
    source = more.pop("source", SOURCE)
    return tune_kernel("scale", source, X.size, [Y, X], given, quiet=True, gpu=board, **more)


@pytest.mark.parametrize(("function", "expected"), [(tune_kernel, TUNE_KERNEL), (run_kernel, RUN_KERNEL)])
def test_the_signature_is_kernel_tuners(function: Callable[..., Any], expected: Mapping[str, Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    positional = {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    }
    assert list(positional.items()) == list(expected.items())


def test_it_is_said_of_every_parameter_what_happens_to_it() -> None:
    assert list(PARAMETERS) == list(TUNE_KERNEL)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"platform": 1}, "platform"),
        ({"texmem_args": {"t": X}}, "texmem_args"),
        ({"compiler": "gcc"}, "compiler"),
        ({"lang": "HIP"}, "HIP"),
        ({"lang": "Julia"}, "Julia"),
        ({"lang": "HYPERTUNER"}, "lang"),
        ({"lang": "Klingon"}, "lang"),
        ({"source": "@cuda threads=3 scale()"}, "Julia"),
        ({"source": lambda p: SOURCE}, "lang"),
        ({"lang": "OpenCL", "smem_args": {"size": 4}}, "smem_args"),
        ({"lang": "C", "cmem_args": {"c": X}}, "cmem_args"),
        ({"lang": "C", "platform": 1}, "platform"),
        ({"lang": "OpenCL", "compiler": "gcc"}, "compiler"),
        ({"lang": "C", "kernel_name": "scale<float>"}, "kernel_name"),
        ({"source": "missing.cu"}, "missing.cu"),
        ({"source": 3}, "kernel_source"),
        ({"strategy": "HybridVNDX"}, "strategy"),
        ({"strategy": "minimize", "strategy_options": {"method": "nonsense"}}, "minimize"),
        ({"strategy": "pso", "strategy_options": {"nonsense": 1}}, "nonsense"),
        ({"observers": [3]}, "observers"),
        ({"objective": "nonsense"}, "nonsense"),
        ({"objectives": {"time": False}, "objective": "time"}, "objective"),
        ({"answer": [Y]}, "answer"),
        ({"answer": [Y[:3], None]}, "answer"),
        ({"verify": lambda a, b: True}, "answer"),
        ({"iterations": 0}, "iterations"),
        ({"metrics": {"m": 3}}, "metrics"),
        ({"metrics": {"m": "__import__('os')"}}, "metrics"),
        ({"restrictions": ["().__class__"]}, "restrictions"),
        ({"restrictions": [3]}, "restrictions"),
        ({"restrictions": lambda p: False}, "restrictions"),
        ({"smem_args": {"banks": 3}}, "smem_args"),
        ({"simulation_mode": True}, "cache"),
        ({"problem_size": None}, "problem_size"),
        ({"block_size_names": ["a", "b", "c", "d"]}, "block_size_names"),
        ({"compiler_options": "-O3"}, "compiler_options"),
        ({"cmem_args": [1]}, "cmem_args"),
        ({"defines": 3}, "defines"),
        ({"tune_params": {}}, "tune_params"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_cannot_be_honoured_is_refused_in_one_line(
    virtual_board: VirtualBoard, given: dict[str, Any], names: str
) -> None:
    arguments = {"kernel_name": "scale", "kernel_source": given.pop("source", SOURCE), "problem_size": 1000}
    arguments |= {"arguments": [Y, X], "tune_params": {"block_size_x": [64]}, "gpu": virtual_board, **given}
    with pytest.raises(InputError) as refused:
        tune_kernel(**arguments, quiet=True)
    assert names in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.remedy


@pytest.mark.parametrize("argument", [3, 2.5, None, "text", np.array(["a"]), np.zeros(0, np.float32), np.complex64(1)])
def test_an_argument_that_no_kernel_takes_is_refused_by_its_place(argument: object) -> None:
    with pytest.raises(InputError, match=r"arguments\[1\]"):
        tune_kernel("scale", SOURCE, 1000, [Y, argument], {"block_size_x": [64]}, gpu="simulated:a100")


def test_results_have_the_form_that_scripts_expect(virtual_board: VirtualBoard) -> None:
    results, environment = tuned(
        virtual_board,
        {"launch_ms": [1, 2, 4]},
        metrics={"MB/s": lambda p: 8e-6 * X.size / (p["time"] / 1e3), "doubled": "2 * time", "again": "doubled / 2"},
        observers=[NVMLObserver(["nvml_energy", "temperature"]), RegisterObserver()],
    )
    assert [result["launch_ms"] for result in results] == [1, 2, 4]
    for result in results:
        assert result["time"] == pytest.approx(result["launch_ms"], rel=1e-3)
        assert result["times"] == pytest.approx([result["launch_ms"]] * 7, rel=1e-2)
        assert result["MB/s"] == pytest.approx(8e-3 / (result["time"] / 1e3))
        assert result["again"] == result["time"] == result["doubled"] / 2
        assert result["nvml_energy"] == result["energy_j"] > 0
        assert result["temperature"] > 0
        assert result["num_regs"] == 32
    assert environment["best_config"] == results[0]
    assert environment["device_name"] == virtual_board.info.name
    assert environment["isolated"] is True


def test_it_is_said_that_one_board_measures_one_kernel_at_a_time(virtual_board: VirtualBoard) -> None:
    results, environment = tuned(virtual_board, {"launch_ms": [1, 2]}, parallel=True)
    assert len(results) == 2
    assert "this board measures them one at a time" in environment["notes"][-1]


def test_the_session_is_in_the_store_and_says_that_a_script_ran_it(virtual_board: VirtualBoard) -> None:
    _, environment = tuned(virtual_board, {"launch_ms": [1, 2]}, metrics={"doubled": "2 * time"})
    with Store() as store:
        loaded = store.load(environment["session"])
    assert loaded.record.origin["kind"] == "script"
    assert loaded.record.evaluated == 2
    assert loaded.table.values("doubled") == pytest.approx(loaded.table.values("time_s") * 2e3)


def test_a_failure_is_a_result_and_the_best_is_another_one(virtual_board: VirtualBoard) -> None:
    results, environment = tuned(virtual_board, {"fault": ["broken", "none", "wrong"]}, answer=[2 * X, None])
    broken, fine, wrong = results
    assert broken["__error__"] == "CompilationFailedConfig"
    assert "time" not in broken, "store_results of Kernel Tuner compares all that have one"
    assert wrong["__error__"] == "RuntimeFailedConfig"
    assert "1 of 1000 values are wrong" in wrong["error"]
    assert "__error__" not in fine
    assert environment["best_config"]["fault"] == "none"


def test_why_no_configuration_worked_is_said_in_one_line(
    virtual_board: VirtualBoard, capsys: pytest.CaptureFixture[str]
) -> None:
    for faults, ends in ((["broken"], True), (["broken", "none"], False)):
        tune_kernel("scale", SOURCE, X.size, [Y, X], {"block_size_x": [32, 64], "fault": faults}, gpu=virtual_board)
        said = [line for line in capsys.readouterr().err.splitlines() if "none of" in line]
        assert len(said) == ends
        if ends:
            assert "none of 2 configurations worked; all failed by compile" in said[0]
            assert 'error: expected a ";" (check the source and compiler_options)' in said[0]


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_an_architecture_that_the_compiler_does_not_know_has_its_own_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler = tmp_path / "g++"
    compiler.write_text("#!/bin/sh\necho \"nvcc fatal   : Unsupported gpu architecture 'sm_52'\" >&2\nexit 1\n")
    compiler.chmod(0o755)
    text, options = "float f(float *y) { return 1.0f; }", ["-arch=sm_52"]
    tune_kernel("f", text, 1, [Y], {"a": [1, 2]}, lang="C", compiler=str(compiler), compiler_options=options)
    said = capsys.readouterr().err.splitlines()[-1]
    assert "Unsupported gpu architecture 'sm_52' (leave -arch out of compiler_options" in said


def test_an_answer_is_compared_with_its_tolerance(virtual_board: VirtualBoard) -> None:
    wanted = 2 * X
    wanted[3] += 1  # as the fault has it, but for the tolerance
    strict, loose = (
        tuned(virtual_board, {"fault": ["none"]}, answer=[wanted, None], atol=atol)[0][0] for atol in (0.5, 1.5)
    )
    assert "__error__" in strict
    assert "__error__" not in loose


def test_an_observer_of_outputs_takes_the_place_of_the_comparison(steady_board: SteadySensors) -> None:
    (result,), environment = tuned(
        steady_board, {"fault": ["wrong"]}, answer=[2 * X, None], observers=[AccuracyObserver("max", "off by")]
    )
    assert "__error__" not in result, result["error"]
    assert result["off by"] > 0
    assert environment["isolated"] is True


def test_a_verify_function_is_called_here_with_answer_and_output(virtual_board: VirtualBoard) -> None:
    seen: list[tuple[Any, Any, float]] = []

    def verify(answer: Any, output: Any, atol: float = 0.0) -> bool:
        seen.append((answer, output, atol))
        return bool(np.allclose(answer[0], output[0], atol=atol))

    results, _ = tuned(virtual_board, {"fault": ["none", "wrong"]}, answer=[2 * X, None], verify=verify, atol=0.25)
    assert ["__error__" in result for result in results] == [False, True]
    answer, output, atol = seen[0]
    assert answer[1] is None
    assert output[1] is None
    assert np.array_equal(output[0], 2 * X)
    assert atol == 0.25


def test_restrictions_may_be_text_or_functions_in_every_form(virtual_board: VirtualBoard) -> None:
    forms = [
        "launch_ms <= 4",
        ["launch_ms <= 4"],
        lambda p: p["launch_ms"] <= 4,
        [lambda p: p["launch_ms"] <= 4],
        [lambda block_size_x, launch_ms: launch_ms <= 4],
        [(lambda launch_ms: launch_ms <= 4, ["launch_ms"])],
    ]
    space = build_space({"block_size_x": [64], "launch_ms": [2, 4, 8]}, (), {}, limits_of((9, 0)))
    for form in forms:
        found = read_restrictions(form, space.names)
        kept = [
            configuration["launch_ms"]
            for configuration in space.configurations(range(space.size))
            if all(parse(text, "").evaluate(configuration) for text in found.texts)
            and all(accepts(configuration) for accepts in found.functions.values())
        ]
        assert kept == [2, 4]
    results, _ = tuned(
        virtual_board, {"launch_ms": [2, 4, 8]}, restrictions=["launch_ms > 2", lambda p: p["launch_ms"] < 8]
    )
    assert [result["launch_ms"] for result in results] == [4]


def test_what_a_scripts_function_raises_goes_to_the_script(virtual_board: VirtualBoard) -> None:
    def fails(_: object) -> float:
        raise LookupError("of the script's own")

    source = {"source": fails, "lang": "CUDA"}
    for given in ({"metrics": {"m": fails}}, {"restrictions": fails}, source, {"problem_size": fails}):
        arguments = {"kernel_source": given.pop("source", SOURCE), "problem_size": 1000, **given}
        with pytest.raises(LookupError, match="of the script's own"):
            tune_kernel(
                "scale",
                arguments=[Y, X],
                tune_params={"block_size_x": [64]},
                gpu=virtual_board,
                quiet=True,
                **arguments,
            )


def test_the_source_may_be_a_file_several_or_a_function(virtual_board: VirtualBoard, tmp_path: Path) -> None:
    (tmp_path / "scale.cu").write_text(f"#define factor 3\n{SOURCE}")
    (tmp_path / "more.h").write_text("")
    seen: list[dict[str, Any]] = []

    def generate(parameters: dict[str, Any]) -> str:
        seen.append(parameters)
        return f"#define factor {parameters['by']}\n{SOURCE}"

    path = tmp_path / "scale.cu"
    for source in (path, [str(path), str(tmp_path / "more.h")]):
        results, _ = tuned(virtual_board, {}, source=source, answer=[3 * X, None])
        assert "__error__" not in results[0]
    results, _ = tuned(virtual_board, {"by": [3, 4]}, source=generate, answer=[4 * X, None], lang="cuda")
    assert ["__error__" in result for result in results] == [True, False]
    assert seen[0] == {"block_size_x": 64, "by": 3}


def test_defines_replace_the_parameters(virtual_board: VirtualBoard) -> None:
    defines = {"factor": lambda p: str(p["by"] + 1), "draws_w": "300"}
    results, _ = tuned(virtual_board, {"by": [3]}, defines=defines, answer=[4 * X, None])
    assert "__error__" not in results[0]
    assert results[0]["power_w"] == pytest.approx(300, rel=0.01)


def test_the_grid_follows_size_and_divisors_as_text_numbers_or_functions(virtual_board: VirtualBoard) -> None:
    """The fake draws 100 W, and 400 W more for the share of its multiprocessors that have a block."""
    forms: list[dict[str, Any]] = [
        {"problem_size": 66 * 64},
        {"problem_size": ("66 * block_size_x", 1)},
        {"problem_size": lambda p: (66, p["block_size_x"]), "grid_div_x": [], "grid_div_y": ["block_size_x"]},
        {"problem_size": (132, 1), "grid_div_x": lambda p: p["block_size_x"] / 32},
        {"problem_size": 33, "grid_div_x": ["block_size_x / 128"]},
        {"problem_size": 66, "grid_div_x": []},
    ]
    for form in forms:
        size = form.pop("problem_size")
        results, _ = tune_kernel(
            "scale", SOURCE, size, [Y, X], {"block_size_x": [64]}, gpu=virtual_board, quiet=True, **form
        )
        assert results[0]["power_w"] == pytest.approx(300, rel=0.01), size


def test_constant_memory_and_shared_memory_reach_the_kernel(virtual_board: VirtualBoard) -> None:
    results, _ = tuned(
        virtual_board,
        {},
        cmem_args={"bias": np.ones(1, np.float32)},
        smem_args={"size": lambda p: 4 * p["block_size_x"]},
        answer=[2 * X + 1, None],
    )
    assert "__error__" not in results[0]
    assert results[0]["shared_memory_byte"] == 1024 + 256


def test_several_objectives_become_a_front_and_a_metric_may_be_the_objective(virtual_board: VirtualBoard) -> None:
    parameters = {"launch_ms": [1, 2], "draws_w": [200]}
    _, environment = tuned(virtual_board, parameters, objectives={"nvml_energy": False, "time": False})
    assert [each["optimal"] for each in environment["best_config"]] == [True]
    assert environment["best_config"][0]["launch_ms"] == 1
    with Store() as store:
        front = store.load(environment["session"]).record.objective.front
    assert [goal.name for goal in front] == ["energy_j", "time_s"]
    _, environment = tuned(
        virtual_board, parameters, metrics={"x": "time"}, objective="x", objective_higher_is_better=True
    )
    assert environment["best_config"]["launch_ms"] == 2


def test_strategies_are_found_by_kernel_tuners_names_and_end_where_they_would(virtual_board: VirtualBoard) -> None:
    counts = [
        ("random_sample", {}, 50),  # a tenth of 500
        ("random_sample", {"fraction": 0.5}, 250),
        ("mls", {"max_fevals": 5}, 5),
        ("mls", {}, 100),
        ("genetic_algorithm", {"popsize": 5, "maxiter": 2}, 10),
        ("pso", {}, 2000),
        ("minimize", {"method": "Powell"}, 100),
        (None, {}, None),
    ]
    assert [read_strategy(name, options).search_in(500)["max_evaluations"] for name, options, _ in counts] == [
        n for *_, n in counts
    ]
    results, _ = tuned(
        virtual_board, {"launch_ms": [1, 2, 3]}, strategy="mls", strategy_options={"max_fevals": 2}, seed=1
    )
    assert len(results) == 2


@pytest.mark.parametrize("name", [*STRATEGIES, *MINIMISERS])
def test_every_strategy_that_is_named_is_one_of_ours(name: str) -> None:
    found = {**STRATEGIES, **MINIMISERS}[name]
    assert strategies.get(found).name == found


def test_a_cache_grows_is_read_back_and_keeps_what_was_there(virtual_board: VirtualBoard, tmp_path: Path) -> None:
    path = tmp_path / "scale"
    first, _ = tuned(virtual_board, {"launch_ms": [1, 2]}, cache=path)
    written = json.loads((tmp_path / "scale.json").read_text())
    assert written["tune_params_keys"] == ["block_size_x", "launch_ms"]
    assert written["cache"]["64,1"]["times"] == first[0]["times"]
    written["cache"]["64,2"]["time"] = written["cache"]["64,2"]["time_s"] = 77.0
    written["cache"]["64,2"]["note"] = "by another program"
    (tmp_path / "scale.json").write_text(json.dumps(written))
    again, environment = tuned(virtual_board, {"launch_ms": [1, 2, 4]}, cache=path)
    assert {each["launch_ms"]: each["time_s"] for each in again}[2] == 77.0
    assert {each["launch_ms"]: each["times"] for each in again}[1] == first[0]["times"]
    kept = json.loads((tmp_path / "scale.json").read_text())["cache"]
    assert kept["64,2"]["note"] == "by another program"
    assert list(kept) == ["64,1", "64,2", "64,4"]
    assert len(read_recording(tmp_path / "scale.json")) == 3
    with pytest.raises(InputError, match="another set of parameters"):
        tuned(virtual_board, {"other": [1]}, cache=path)
    with pytest.raises(InputError, match="another problem size: 1000"):
        tune_kernel("scale", SOURCE, 7, [Y, X], {"block_size_x": [64], "launch_ms": [1]}, cache=path, gpu=virtual_board)
    assert written["tune_params"]["launch_ms"] == [1, 2]
    assert json.loads((tmp_path / "scale.json").read_text())["tune_params"]["launch_ms"] == [1, 2, 4]
    replayed, simulated = tuned(virtual_board, {"launch_ms": [1, 4]}, cache=path, simulation_mode=True)
    assert [each["launch_ms"] for each in replayed] == [1, 4]
    assert simulated["source"] == "recorded"
    assert environment["source"] == "nvml"


@pytest.mark.parametrize("listed", [None, [1, 2], {"launch_ms": [[1], {"a": 2}]}, {"launch_ms": "1, 2"}])
def test_a_cache_whose_lists_of_values_are_damaged_grows_all_the_same(
    virtual_board: VirtualBoard, tmp_path: Path, listed: object
) -> None:
    path = tmp_path / "scale.json"
    tuned(virtual_board, {"launch_ms": [1]}, cache=path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tune_params": listed}))
    tuned(virtual_board, {"launch_ms": [1, 2]}, cache=path)
    written = json.loads(path.read_text())
    assert written["tune_params"]["launch_ms"] == [1, 2]
    assert len(written["cache"]) == 2


@pytest.mark.parametrize(
    ("size", "stored"),
    [(1000, 1000), ((1000, 2), [1000, 2]), (("n", 2), ["n", 2]), ("max(n, 2)", []), (lambda p: p["n"], [])],
)
def test_a_cache_holds_the_problem_size_as_kernel_tuner_reads_it(
    virtual_board: VirtualBoard, tmp_path: Path, size: Any, stored: object
) -> None:
    """Its `tune_cache` looks for one in every file; an empty list is no size at all."""
    values = {"block_size_x": [64], "launch_ms": [1], "n": [1000]}
    path = tmp_path / "scale.json"
    for _ in range(2):  # the second reads what the first has written
        tune_kernel("scale", SOURCE, size, [Y, X], values, cache=path, gpu=virtual_board)
        assert json.loads(path.read_text())["problem_size"] == stored


def test_a_cache_of_a_run_that_ended_before_its_first_measurement_is_written_again(
    virtual_board: VirtualBoard, tmp_path: Path
) -> None:
    path = tmp_path / "scale.json"
    header = {"device_name": "a board", "kernel_name": "scale", "problem_size": 1000, "tune_params_keys": ["other"]}
    path.write_text(json.dumps({**header, "tune_params": {"other": [1]}, "cache": {}}, indent=0)[:-3])
    with pytest.raises(InputError, match="nothing in it"):
        tuned(virtual_board, {"launch_ms": [1]}, cache=path, simulation_mode=True)
    tuned(virtual_board, {"launch_ms": [1]}, cache=path)
    written = json.loads(path.read_text())
    assert written["tune_params_keys"] == ["block_size_x", "launch_ms"]
    assert list(written["cache"]) == ["64,1"]


def test_what_was_only_timed_is_no_result_of_a_script(virtual_board: VirtualBoard, tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    results, _ = tuned(
        virtual_board,
        {"launch_ms": [1, 2, 3, 4], "draws_w": [150, 200, 250]},
        strategy="multi_objective_bayesian",
        strategy_options={"max_fevals": 6, "first_samples": 8},
        metrics={"per joule": lambda result: 1 / result["nvml_energy"]},
        observers=[NVMLObserver(["nvml_energy"])],
        objective="nvml_energy",
        cache=path,
    )
    assert isinstance(results, Results)
    assert results.table.timed().any()
    assert len(results) == 6
    assert all(each["per joule"] == pytest.approx(1 / each["nvml_energy"]) for each in results)
    kept = json.loads(path.read_text())["cache"]
    assert {f"64,{each['launch_ms']},{each['draws_w']}" for each in results} == set(kept)
    assert all(each["energy_j"] > 0 for each in kept.values())


def test_what_a_cache_knows_without_the_objective_is_measured_and_added(
    virtual_board: VirtualBoard, tmp_path: Path
) -> None:
    path = tmp_path / "theirs.json"
    entry = {"block_size_x": 64, "time": 9.0, "times": [9.0, 9.0], "theirs": "kept"}
    names = {"tune_params_keys": ["block_size_x"], "tune_params": {"block_size_x": [64]}}
    path.write_text(json.dumps({"kernel_name": "scale", **names, "cache": {"64": entry}}))
    by_time, _ = tuned(virtual_board, {}, cache=path)
    assert by_time[0]["time"] == 9.0
    by_energy, _ = tuned(virtual_board, {}, cache=path, objective="nvml_energy", objective_higher_is_better=False)
    assert by_energy[0]["time"] != 9.0
    kept = json.loads(path.read_text())["cache"]["64"]
    assert kept["energy_j"] == by_energy[0]["energy_j"]
    assert {name: kept[name] for name in entry} == entry


def test_simulation_answers_from_a_public_cache_as_kernel_tuner_does(shared_data: Path) -> None:
    path = shared_data / "kernel-tuner" / "kt_vector_add_RTX4000Ada_PowerSensor3_15.json"
    document = json.loads(path.read_text())
    results, environment = tune_kernel(
        "vector_add",
        SOURCE,
        document["problem_size"],
        [Y],
        document["tune_params"],
        restrictions=lambda p: f"{p['block_size_x']},1080" in document["cache"],
        cache=path,
        simulation_mode=True,
        metrics={"GFLOPS/W": "80000000 / 1e9 / ps_energy"},
        objective="GFLOPS/W",
        quiet=True,
    )
    entries = document["cache"].values()
    assert len(results) == len(document["cache"])
    assert environment["best_config"]["ps_energy"] == min(entry["ps_energy"] for entry in entries)
    assert results[0]["times"] == next(iter(entries))["times"]
    other = {"block_size_x": [3], "nvml_gr_clock": [1080]}
    with pytest.raises(InputError, match="configurations are not in the cache"):
        tune_kernel(
            "vector_add", SOURCE, document["problem_size"], [Y], other, cache=path, simulation_mode=True, quiet=True
        )


class Watching(BenchmarkObserver):
    """Notes what is called."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def register_configuration(self, params: Mapping[str, Any]) -> None:
        self.called.append(f"configuration {params['launch_ms']}")

    def before_start(self) -> None:
        self.called.append("before_start")

    def after_start(self) -> None:
        self.called.append("after_start")

    def during(self) -> None:
        if self.called[-1] != "during":
            self.called.append("during")

    def after_finish(self) -> None:
        self.called.append("after_finish")

    def get_results(self) -> dict[str, Any]:
        return {"launches": self.called.count("before_start"), "said": list(self.called), "on": self.dev.name}


class Before(Watching, PrologueObserver):
    def get_results(self) -> dict[str, Any]:
        return {"before": self.called.count("before_start")}


class Long(Watching, ContinuousObserver):
    continuous_duration = 0.02

    def get_results(self) -> dict[str, Any]:
        assert self.results is not None
        return {"long": self.called.count("after_finish"), "mean": self.results["time"]}


class Output(Watching, OutputObserver):
    total = 0.0

    def process_output(self, answer: Any, output: Any) -> None:
        self.total = float(output[0].sum())

    def get_results(self) -> dict[str, Any]:
        return {"sum": self.total}


def test_a_scripts_observers_watch_launches_in_its_own_process(steady_board: SteadySensors) -> None:
    watching = Watching()
    results, environment = tuned(
        steady_board,
        {"launch_ms": [30]},
        observers=[watching, Before, lambda: Long(), Output()],
        iterations=2,
        answer=[2 * X, None],
        metrics={"mean of sum": "sum / 1000"},
    )
    (result,) = results
    assert result["launches"] == 2
    assert "during" in result["said"]
    once = ["before_start", "after_start", "after_finish"]
    assert [each for each in result["said"] if each != "during"] == ["configuration 30", *once, *once]
    assert result["on"] == "Fake board"
    assert result["before"] == 1
    assert result["long"] == 1
    assert len(result["times"]) == 2
    assert result["mean"] == pytest.approx(np.mean(result["times"]))
    assert result["mean of sum"] == pytest.approx(float((2 * X).sum()) / 1000)
    assert min(result["time"], *result["times"]) >= 29.9
    assert environment["isolated"] is False
    assert "not isolated" in environment["warning"]


def test_a_second_look_of_the_session_is_not_the_observers_business(steady_board: SteadySensors) -> None:
    """At its end a session measures its first configurations again."""
    watching = Watching()
    results, _ = tuned(steady_board, {"launch_ms": [1, 2, 3, 4]}, observers=[watching], iterations=1)
    assert sorted(result["launches"] for result in results) == [1, 2, 3, 4]
    assert watching.called.count("before_start") == 4


def test_a_lost_context_ends_a_session_in_the_scripts_process(steady_board: SteadySensors) -> None:
    with pytest.raises(WattridgeError, match="cost this process its context"):
        tuned(steady_board, {"launch_ms": [1], "fault": ["illegal_address"]}, observers=[Watching()])


def test_arrays_of_other_libraries_are_copied_to_the_host() -> None:
    class OnDevice:
        """As CuPy's: it refuses to become a NumPy array unasked."""

        __cuda_array_interface__ = None

        def __array__(self, *_: Any) -> Any:
            raise TypeError("implicit conversion")

        def get(self) -> Any:
            return X

    class Tensor:
        """As PyTorch's."""

        def detach(self) -> Tensor:
            return self

        def cpu(self) -> Tensor:
            return self

        def numpy(self) -> Any:
            return X

    class Capsule:
        """With DLPack alone."""

        def __dlpack__(self, **options: Any) -> Any:
            return X.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return X.__dlpack_device__()

    for x in (OnDevice(), Tensor(), Capsule(), X):
        assert np.array_equal(to_numpy(x, "x"), X)


def test_run_kernel_returns_the_arguments_as_the_kernel_leaves_them(steady_board: SteadySensors) -> None:
    y, x = run_kernel("scale", SOURCE, 1000, [Y, X], {"block_size_x": 64, "factor": 5}, gpu=steady_board, quiet=True)
    assert np.array_equal(y, 5 * X)
    assert np.array_equal(x, X)
    assert not Y.any()


def test_a_device_without_cuda_is_refused_in_one_line() -> None:
    with pytest.raises(WattridgeError, match="CUDA kernels run on NVIDIA's GPUs"):
        tuned("host", {})


def test_clocks_are_refused_where_the_board_may_not_be_set(virtual_board: VirtualBoard) -> None:
    with pytest.raises(InputError, match="control is off"):
        tuned(virtual_board, {"nvml_gr_clock": [1000, 1200]})


def test_a_simulated_board_takes_clocks_and_costs_by_a_profile() -> None:
    arguments = [Y, X, X, np.int32(1_000_000)]
    source = "__global__ void vector_add(float *c, const float *a, const float *b, int n) {}"
    given: dict[str, Any] = {"tune_params": {"block_size_x": [128, 256], "nvml_gr_clock": [900, 1410]}}
    results, environment = tune_kernel(
        "vector_add", source, 1_000_000, arguments, **given, gpu="simulated:a100", profile="vector_add", quiet=True
    )
    assert [result["nvml_gr_clock"] for result in results] == [900, 1410, 900, 1410] or len(results) == 4
    assert environment["source"] == "simulated"
    with pytest.raises(InputError, match="profile"):
        tune_kernel("vector_add", source, 1_000_000, arguments, **given, gpu="simulated:a100", quiet=True)


def test_the_values_of_tune_params_may_be_a_function_of_other_parameters() -> None:
    """Also those of `Searchspace`; what is stored and searched has the values alone."""
    source = "__global__ void vector_add(float *c, const float *a, const float *b, int n) {}"
    params: dict[str, Any] = {"block_size_x": [128, 512], "items": lambda block_size_x: range(1, 1024 // block_size_x)}
    given: dict[str, Any] = {"gpu": "simulated:a100", "profile": "vector_add", "quiet": True}
    arguments = [Y, X, X, np.int32(1_000_000)]
    results, _ = tune_kernel("vector_add", source, 1_000_000, arguments, params, **given)
    expected = {*((128, items) for items in range(1, 8)), (512, 1)}
    assert {(result["block_size_x"], result["items"]) for result in results} == expected
    assert set(Searchspace(params, [], 1024).list) == expected
    params["nvml_gr_clock"] = lambda items: [900]
    with pytest.raises(InputError, match="pass a list"):
        tune_kernel("vector_add", source, 1_000_000, arguments, params, **given)


def of_time_alone(board: Any, parameters: Mapping[str, Any], **more: Any) -> tuple[list[dict[str, Any]], Any]:
    """As `wattridge kernel-tuner` runs a script."""
    with running_with(Surroundings(energy=False)):
        return tuned(board, parameters, **more)


@pytest.mark.parametrize("board", ["virtual", "simulated:a100"])
def test_a_script_that_asks_for_the_time_alone_is_only_timed(
    request: pytest.FixtureRequest, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    real = board == "virtual"
    given = request.getfixturevalue("virtual_board") if real else board
    monkeypatch.setattr("app.engine.runner.cuda.language.look_once", lambda *seen: looks.append(seen))
    parameters = {"launch_ms": [1, 2, 4]} if real else {"block_size_x": [64, 128, 256]}
    more = {"metrics": {"per s": "1000 / time"}, **({} if real else {"profile": "copy"})}
    results, environment = of_time_alone(given, parameters, **more)
    assert len(results) == 3
    for result in results:
        assert result["per s"] == pytest.approx(1e3 / result["time"])
        assert not {"energy_j", "power_w", "reference_time_s"} & result.keys()
    assert not looks
    assert any("--energy" in note for note in environment["notes"])
    if real:
        assert [result["time"] for result in results] == pytest.approx([1.0, 2.0, 4.0], rel=0.02)
        assert all(len(result["times"]) == 7 for result in results)
    with Store() as store:
        stored = store.load(environment["session"])
        assert not stored.record.objective.front
        assert main(["sessions", str(environment["session"])]) == 0, "it can be looked at like any other"
        assert len(stored.table) == 3
        assert all(stored.table.measurement(row).final for row in range(3))


def test_a_script_that_is_only_timed_takes_a_fraction_of_the_boards_time(virtual_board: VirtualBoard) -> None:
    began, parameters = virtual_board.clock.now_ns(), {"launch_ms": [1, 2, 4]}
    of_time_alone(virtual_board, parameters)
    between = virtual_board.clock.now_ns()
    tuned(virtual_board, parameters)
    assert between - began < 0.25 * (virtual_board.clock.now_ns() - between)


@pytest.mark.parametrize(
    "asks",
    [
        {"objective": "nvml_energy", "objective_higher_is_better": False},
        {"metrics": {"per joule": "1 / energy_j"}},
        {"observers": [NVMLObserver(["temperature"])]},
        {"objectives": {"time": False, "power_w": False}},
    ],
    ids=lambda each: next(iter(each)),
)
def test_a_script_that_asks_for_a_boards_figures_gets_them(virtual_board: VirtualBoard, asks: dict[str, Any]) -> None:
    results, environment = of_time_alone(virtual_board, {"launch_ms": [1]}, **asks)
    assert results[0]["energy_j"] > 0
    assert not any("--energy" in note for note in environment["notes"])


def test_what_fails_in_a_script_that_is_only_timed_counts_as_a_configuration(virtual_board: VirtualBoard) -> None:
    parameters, answer = {"fault": ["broken", "none", "wrong"]}, [2 * X, None]
    results, _ = of_time_alone(virtual_board, parameters, answer=answer)
    assert ["__error__" in result for result in results] == [True, False, True]
    options = {"strategy": "random_sample", "strategy_options": {"max_fevals": 2}}
    assert len(of_time_alone(virtual_board, parameters, answer=answer, **options)[0]) == 2
