"""The same calls of `kernel_tuner`'s public functions, whoever answers them: Kernel Tuner itself or the stand-in.

Each function is a question; its answer is what JSON can say of what came of it. `kernel_tuner_1_5_0.json` holds the
answers of Kernel Tuner 1.5.0, which needs 240 MB of other packages and is therefore no dependency of the tests. With a
Python that has it, they are written again by

    python tests/scripting/kernel_tuner_questions.py FOLDER > tests/scripting/kernel_tuner_1_5_0.json

FOLDER is an empty one, where the questions put their files.
"""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from kernel_tuner import (
    __version__,
    create_device_targets,
    store_results,
    tune_cache,
    tune_kernel,
    tune_kernel_T1,
)
from kernel_tuner.accuracy import AccuracyObserver, Tunable, TunablePrecision
from kernel_tuner.file_utils import store_metadata_file, store_output_file
from kernel_tuner.integration import TuneResults
from kernel_tuner.observers import BenchmarkObserver
from kernel_tuner.searchspace import Searchspace
from kernel_tuner.strategies.wrapper import OptAlg, OptAlgWrapper
from kernel_tuner.util import (
    CompilationFailedConfig,
    ErrorConfig,
    InvalidConfig,
    RuntimeFailedConfig,
    get_best_config,
    get_config_string,
    read_cache,
)

TIMES = ("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time")
KINDS = {kind.__name__: kind for kind in (InvalidConfig, CompilationFailedConfig, RuntimeFailedConfig)}
ROWS = [
    {"a": a, "b": b, "time": 1.0 + 0.004 * a + 0.013 * b, "GFLOP/s": 100.0 - a - 3 * b}
    for a in range(5)
    for b in range(5)
]
CACHED = {
    "16,1": {"block_size_x": 16, "u": 1, "time": 4.0, "times": [3.0, 5.0], "GB/s": 1.0},
    "16,2": {"block_size_x": 16, "u": 2, "time": 3.0, "times": [3.0, 3.0], "GB/s": 2.0},
    "32,1": {"block_size_x": 32, "u": 1, "__error__": "CompilationFailedConfig"},
    "32,2": {"block_size_x": 32, "u": 2, "time": 2.0, "times": [2.0, 2.0], "GB/s": 0.5},
    "64,1": {"block_size_x": 64, "u": 1, "time": 6.0, "times": [6.0, 6.0], "GB/s": 0.25},
    "64,2": {"block_size_x": 64, "u": 2, "__error__": "RuntimeFailedConfig"},
}
PARAMETERS = {"block_size_x": [16, 32, 64], "u": [1, 2]}


def cache(path: str = "cache.json") -> str:
    """A cache as Kernel Tuner 1.5.0 writes it."""
    spent = {"compile_time": 200.0, "verification_time": 3.0, "benchmark_time": 20.0}
    header = {"device_name": "a board", "kernel_name": "f", "problem_size": 64, "objective": ["time"]}
    header |= {"tune_params_keys": list(PARAMETERS), "tune_params": PARAMETERS}
    stamp = {"timestamp": "2026-01-02 03:04:05.678901+00:00"}
    entries = {key: {**entry, **spent, **stamp} for key, entry in CACHED.items()}
    Path(path).write_text(json.dumps({**header, "cache": entries}, indent="") + "\n")
    text = Path(path).read_text().rstrip()
    Path(path).write_text(text[: text.rindex("}")].rstrip() + "\n}")
    return path


def simulated(**more: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    arguments = [np.zeros(64, np.float32), np.int32(64)]
    source = "float f(float *x, int n) { return 0; }"
    usual = {"lang": "C", "cache": cache(), "simulation_mode": True, "quiet": True, **more}
    results, environment = tune_kernel("f", source, 64, arguments, PARAMETERS, **usual)
    return results, environment


def stored(*sizes: Any, **more: Any) -> Any:
    """What is in the file, without what says who wrote it."""
    parameters = {"a": list(range(5)), "b": list(range(5))}
    for size, rows in sizes:
        store_results(
            "stored.json",
            "f",
            more.pop("source", "void f() {}"),
            parameters,
            size,
            rows,
            {"device_name": "A (board) 1"},
            **more,
        )
    document = json.loads(Path("stored.json").read_text())
    Path("stored.json").unlink()
    document["data"].sort(key=lambda each: (each["problem_size"], sorted(each["tunable_parameters"].items())))
    return document


def defined(data: list[tuple[str, str, int, int, float]], *, more: bool = False) -> Any:
    """By board, what a header defines that is made of these entries."""
    entries = [
        {"device_name": board, "problem_size": size, "tunable_parameters": {"a": a, "b": b}, "time": time}
        for board, size, a, b, time in data
    ]
    document = {"version_number": "1.0", "kernel_name": "f", "tunable_parameters": ["a", "b"], "objective": "time"}
    document |= {"objective_higher_is_better": more, "data": entries}
    Path("targets.json").write_text(json.dumps(document))
    create_device_targets("targets.h", "targets.json")
    found: dict[str, dict[str, str]] = {}
    board = ""
    for line in Path("targets.h").read_text().splitlines():
        if line.startswith(("#ifdef", "#if ", "#elif")):
            board = re.findall(r"TARGET_(\w+)", line)[0]
        elif line.startswith("#else"):
            board = "default"
        elif line.startswith("#define"):
            _, name, value = line.split()
            found.setdefault(board, {})[name] = value
    return found


def said(row: dict[str, Any], *, times: bool = False) -> dict[str, Any]:
    """A result: what the cache and metrics give, the kind of its failure, and which of the times are there."""
    known = {
        name: row[name] for name in (*PARAMETERS, "time", "times", "GB/s", "x", "optimal", "timestamp") if name in row
    }
    if "__error__" in row:
        known["__error__"] = [name for name, kind in KINDS.items() if isinstance(row["__error__"], kind)]
        assert isinstance(row["__error__"], ErrorConfig)
    spent = {name: row[name] for name in TIMES[:3] if name in row}
    return {**known, "spent": spent, "has": sorted(name for name in TIMES if name in row)}


# --- questions --------------------------------------------------------------------------------------------------------


def which_results_are_stored() -> Any:
    return [
        stored((64, ROWS)),
        stored((64, ROWS), top=1),
        stored(((64, 2), ROWS), top=10.5),
        stored((64, ROWS), objective="GFLOP/s"),
        stored((64, ROWS), objective="GFLOP/s", top=2),
        stored((64, [each for each in ROWS if each["a"]])),
        stored((64, [*ROWS, {"a": 9, "b": 9, "__error__": CompilationFailedConfig("x")}])),
        stored((64, ROWS), (32, ROWS[3:]), (64, ROWS[5:])),
        stored(("n", ROWS), objective="time", objective_higher_is_better=True),
    ]


def which_source_is_stored() -> Any:
    Path("kernel.cu").write_text("__global__ void f() {}\n")
    sources: list[Any] = ["kernel.cu", "__global__ void f() {}", lambda _: "", ["kernel.cu", "kernel.cu"]]
    return [stored((1, ROWS), source=source).get("kernel_string", "") for source in sources]


def which_parameters_are_targets() -> Any:
    weighed = [("A", "1", 1, 4, 1.0), ("A", "2", 1, 4, 9.0), ("A", "1", 1, 5, 1.1), ("A", "2", 1, 5, 2.0)]
    often = [("A", "1", 1, 1, 1.0), ("A", "1", 2, 2, 2.0), ("A", "2", 2, 2, 3.0)]
    boards = [("A", "1", 1, 1, 5.0), ("B", "1", 2, 2, 1.0), ("B", "2", 2, 2, 1.5), ("C", "1", 1, 1, 9.0)]
    return [defined(weighed), defined(often), defined(boards), defined(weighed, more=True), defined(boards, more=True)]


def what_is_said_of_a_configuration() -> Any:
    row = {"a": 1, "b": "x", "time": 1.23456, "fine": True, "small": 1e-5}
    units = {"time": "ms", "a": "u"}
    return [get_config_string(*each) for each in ((row,), (row, ["a", "time"]), (row, None, units), (row, [], units))]


def which_is_the_best() -> Any:
    failed = {"a": -1, "__error__": RuntimeFailedConfig("RuntimeFailedConfig")}
    rows = [failed, *ROWS, dict(ROWS[0], a=7)]
    return [get_best_config(rows, "time"), get_best_config(rows, "GFLOP/s", True)]


def what_a_simulation_gives() -> Any:
    results, environment = simulated()
    more, _ = simulated(metrics={"x": "2 * time", "GB/s": lambda p: p["x"] / 8})
    totals = {name: environment[name] for name in ("simulated_time", *(f"total_{each}" for each in TIMES[:3]))}
    return {
        "rows": [said(result) for result in results],
        "metrics": [said(each) for each in more],
        "best": said(environment["best_config"]),
        "environment": sorted(name for name in environment if name.startswith("total_")),
        "totals": totals,
        "device": environment["device_name"],
        "simulation": environment["simulation"],
        "overhead": isinstance(environment["overhead_time"], float),
    }


def what_several_objectives_give() -> Any:
    objectives = {"time": False, "GB/s": True}
    _, environment = simulated(objectives=objectives)
    _, again = simulated(objective=["time", "GB/s"], objective_higher_is_better=[False, True])
    return [sorted(map(repr, map(said, each["best_config"]))) for each in (environment, again)]


def what_an_output_file_holds() -> Any:
    results, _ = simulated()
    store_output_file("output", results, PARAMETERS, objective="GB/s")
    document = json.loads(Path("output.json").read_text())
    kept = ("configuration", "times", "invalidity", "correctness", "objectives", "timestamp")
    for each in document["results"]:
        for name in ("framework", "search_algorithm"):
            each["times"][name] = type(each["times"][name]).__name__
        each["measured"] = {m["name"]: m["value"] for m in each["measurements"] if m["name"] in ("time", "GB/s")}
    rows = [{name: each[name] for name in (*kept, "measured")} for each in document["results"]]
    return {"results": rows, "schema_version": document["schema_version"], "unit": document["metadata"]["timeunit"]}


def what_a_metadata_file_holds() -> Any:
    store_metadata_file("metadata")
    document = json.loads(Path("metadata.json").read_text())
    metadata = document["metadata"]
    kinds = {"hardware": metadata["hardware"]["hardware_description"], **metadata["environment"]}
    kinds |= {"schema": document["schema_version"], "system": metadata["operating_system"]}
    return {name: type(kind).__name__ for name, kind in kinds.items()}


def which_errors_there_are() -> Any:
    rng = np.random.default_rng(3)
    answer, output = rng.random(50, np.float32) + 1, rng.random(50, np.float32) + 1
    names = ["mse", "RMSE", "nrmse", "rmsre", "rmsle", "mae", "mre", "male", "max", "max rel", "mean square error"]
    names += ["avg_abs-error", "maximum absolute error", "root mean sq log", "relative", "absolute"]
    found = {}
    for name in names:
        observer = AccuracyObserver(name, "error")
        observer.process_output([answer, None], [output, None])
        found[name] = round(float(observer.get_results()["error"]), 9)
    observer = AccuracyObserver(lambda a, b: float(np.sum(a > b)), "more")
    observer.process_output([answer, answer], [output, answer])
    return {**found, **observer.get_results()}


def which_arguments_are_chosen() -> Any:
    numbers = np.arange(3)
    precision = TunablePrecision("kind", numbers, dtypes=["float", "double", "half"])
    several = Tunable("a", {1: "one", 2: "two"})
    counted = Tunable(lambda p: p["a"] - 1, ["first", "second"])
    computed = Tunable("a * b", {2: "two", 6: "six"})
    nested = Tunable("b", {2: several, 3: "three"})
    kinds = [str(precision({"kind": kind}).dtype) for kind in ("float", "double", "half")]
    chosen = [several({"a": 2}), counted({"a": 1}), computed({"a": 2, "b": 3}), nested({"a": 1, "b": 2})]
    return [kinds, chosen]


def what_a_kernel_and_its_observers_see() -> Any:
    """Functions in C, compiled and called: what is said of what went into and came out of them."""
    seen: list[Any] = []

    class Watch(BenchmarkObserver):
        def __init__(self, given: dict[str, Any]) -> None:
            self.given, self.calls = given, {"before_start": 0, "after_finish": 0}

        def before_start(self) -> None:
            self.calls["before_start"] += 1

        def after_finish(self) -> None:
            self.calls["after_finish"] += 1

        def get_results(self) -> dict[str, Any]:
            calls, self.calls = self.calls, dict.fromkeys(self.calls, 0)
            seen.extend([calls] if calls not in seen else [])  # Kernel Tuner watches its warm-up, too
            return {"watched": calls["after_finish"]}

    def make(given: dict[str, Any]) -> Watch:
        seen.append({name: given[name] for name in ("device", "platform", "compiler", "lang")})
        return Watch(given)

    n = np.int32(100)
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    source = """
    extern "C" float scale(float *y, float *x, int n) {
        for (int i = 0; i < n; i++) y[i] = BLOCK_SIZE_X * x[i] + grid_size_x;
        return grid_size_x;
    }"""
    results, environment = tune_kernel(
        "scale",
        source,
        100,
        [y, x, n],
        {"BLOCK_SIZE_X": [10, 20]},
        lang="C",
        cache="",
        quiet=True,
        iterations=3,
        answer=None,
        observers=[make],
        metrics={"doubled": "2 * time"},
    )
    rows = [
        {
            **{name: result[name] for name in ("BLOCK_SIZE_X", "time", "times", "watched", "doubled")},
            "has": sorted(name for name in TIMES if name in result),
            "spent": [result[name] > 0 for name in ("compile_time", "benchmark_time")],
        }
        for result in results
    ]
    return {
        "rows": rows,
        "seen": seen,
        "best": environment["best_config"]["BLOCK_SIZE_X"],
        "totals": sorted(name for name in environment if name.startswith("total_")),
    }


def what_a_cache_of_functions_is_for() -> Any:
    import platform

    source = 'extern "C" float f(float *x, int n) { return block_size_x; }'
    arguments = [np.zeros(64, np.float32), np.int32(64)]
    for values in ([1, 2], [1, 2, 4]):
        results, _ = tune_kernel(
            "f", source, 64, arguments, {"block_size_x": values}, lang="C", cache="own", quiet=True
        )
    document = json.loads(Path("own.json").read_text())
    known = [[result[name] == 0 for name in TIMES[:3]] for result in results]
    return {
        "processor": document["device_name"] == platform.processor(),
        "entries": sorted(
            (key, each["time"], [name for name in TIMES[:3] if name in each]) for key, each in document["cache"].items()
        ),
        "known": [known[0], known[1]],
    }


def what_a_searchspace_has() -> Any:
    parameters = {"x": [1, 1.5, 2, 3], "y": [4, 5.5], "z": ["one", "two"], "w": [8, 16, 32, 64]}
    space = Searchspace(parameters, [lambda p: p["w"] != 16 or p["z"] == "one", "y % x == 1"], 1024)
    asked = [(1.5, 4, "one", 8), (1.5, 5.5, "two", 64), (1, 4, "one", 32), (2, 5.5, "two", 16)]
    near = {
        method: [sorted(space.get_neighbors_no_cache(each, method), key=str) for each in asked]
        for method in ("Hamming", "Hamming-adjacent", "adjacent", "strictly-adjacent")
    }
    drawn = [space.get_random_sample(5), space.get_LHS_sample(5), [space.get_random_neighbor(asked[0], "Hamming")]]
    return {
        "size": [space.size, space.num_params, len(space.list), space.param_names],
        "sorted": [space.sorted_list(), space.sorted_list(sort_last_param_first=True)],
        "valid": [space.is_param_config_valid(each) for each in asked],
        "places": [space.get_param_indices(each) for each in asked],
        "back": [space.get_param_config_from_param_indices(space.get_param_indices(each)) for each in asked],
        "index": [space.list[space.get_param_config_index(each)] == each for each in asked[:2]],
        "none": space.get_param_config_index(asked[2]),
        "near": near,
        "of one": [sorted(space.get_param_neighbors(asked[0], at, "adjacent", False), key=str) for at in range(4)],
        "bounds": [list(space.get_param_indices_lower_bounds()), list(space.get_param_indices_upper_bounds())],
        "varies": space.get_true_tunable_params(),
        "drawn": [[len(set(each)), all(map(space.is_param_config_valid, each))] for each in drawn],
    }


def what_tune_cache_finds() -> Any:
    answers = []
    for more in ({}, {"restrictions": ["u == 2"]}, {"strategy": "random_sample", "strategy_options": {"fraction": 1}}):
        results, environment = tune_cache(cache(), quiet=True, **more)
        rows = sorted((said(each) for each in results), key=str)
        answers.append([rows, said(environment["best_config"])])
    return answers


def what_is_read_of_a_cache() -> Any:
    document = read_cache(cache(), open_cache=False)
    kinds = {key: type(each["__error__"]).__name__ for key, each in document["cache"].items() if "__error__" in each}
    growing = Path(cache("growing.json"))
    growing.write_text(growing.read_text().rstrip().removesuffix("}").rstrip().removesuffix("}") + ",")
    same = read_cache("growing.json", open_cache=False)["cache"].keys() == document["cache"].keys()
    return {"keys": sorted(document), "entry": document["cache"]["16,1"], "failed": kinds, "growing": same}


def which_results_are_found() -> Any:
    rows = [("A_1", "64", 1, 4, 1.0), ("A_1", "64", 2, 4, 0.5), ("A_1", "7x7", 1, 4, 2.0), ("B", "64", 3, 3, 0.1)]
    found = []
    for more in (False, True):
        defined(rows, more=more)
        results = TuneResults("targets.json")
        found.append([results.objective, results.objective_higher_is_better, len(results.data)])
        asked = (("A-1", 64), ("A 1", (7, 7)), ("A 1", None), ("A 1", 5), ("default", None), ("B", "64"))
        chosen = [results.get_best_config(board, size) for board, size in asked]
        found.append([each.get("tunable_parameters", each) for each in chosen])  # 1.5.0 has both forms
    return found


class Looks(OptAlg):
    """Asks for configurations of its own, and keeps what it is told."""

    def __init__(self, asked: list[Any], **kwargs: bool) -> None:
        super().__init__()
        self.costfunc_kwargs = kwargs
        self.asked, self.heard = asked, []

    def __call__(self, func: Any, searchspace: Any) -> Any:
        self.heard = [searchspace.size, searchspace.num_params, func.get_bounds(), func.budget_spent_fraction]
        if self.costfunc_kwargs.get("scaling"):
            bounds, _, eps = func.get_bounds_x0_eps()
            self.heard += [bounds, eps]
        self.heard += [func(each) for each in self.asked] + [func.eval_all([self.asked[0]])]
        return (), 0.0


def what_a_strategy_of_the_scripts_own_sees() -> Any:
    answers = []
    for kwargs, asked in (
        ({"scaling": False, "snap": False}, [(16, 1), (32, 2), (64, 2), (16, 3)]),
        ({"scaling": False, "snap": True}, [(20, 1.2), (64, 1), (50, 1)]),
        ({"scaling": True, "snap": True}, [(0.1, 0.1), (0.5, 0.5), (0.9, 0.2)]),
    ):
        looks = Looks(asked, **kwargs)
        results, environment = simulated(strategy=OptAlgWrapper(looks), strategy_options={"max_fevals": 5})
        rows = sorted({(each["block_size_x"], each["u"]) for each in results})
        answers.append([looks.heard, rows, environment["best_config"]["time"]])
    return answers


def what_a_problem_in_t1_gives() -> Any:
    Path("f.cu").write_text("__global__ void f(float *x, int n) {}")
    parameters = [
        {"Name": name, "Type": "int", "Values": str(values), "Default": values[0]}
        for name, values in PARAMETERS.items()
    ]
    usual = {"Type": "float", "MemoryType": "Vector", "AccessType": "ReadWrite", "FillType": "Constant"}
    arguments = [
        {**usual, "Name": "x", "FillValue": 0.0, "Size": 64},
        {**usual, "Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillValue": 64},
    ]
    kernel = {"Language": "CUDA", "KernelName": "f", "KernelFile": "f.cu", "ProblemSize": 64, "CompilerOptions": []}
    kernel |= {"Arguments": arguments, "Device": {"Name": "a board"}, "BenchmarkName": "f", "GlobalSizeType": "CUDA"}
    kernel |= {"LocalSize": {"X": "block_size_x", "Y": "1", "Z": "1"}, "GlobalSize": {"X": "4", "Y": "1", "Z": "1"}}
    kernel |= {"SharedMemory": 0, "Stream": None}
    conditions = [{"Expression": "u > 1", "Parameters": ["u"]}]
    document = {"ConfigurationSpace": {"TuningParameters": parameters, "Conditions": conditions}}
    document |= {"General": {"BenchmarkName": "f", "OutputFormat": "JSON"}, "Search": {"Name": "brute_force"}}
    document |= {"KernelSpecification": kernel}
    Path("t1.json").write_text(json.dumps(document))
    results, environment = tune_kernel_T1(Path("t1.json"), cache(), simulation_mode=True, output_T4=False)
    metadata, found = tune_kernel_T1(Path("t1.json"), cache(), simulation_mode=True)
    return {
        "rows": sorted((said(each) for each in results), key=str),
        "best": said(environment["best_config"]),
        "t4": [sorted(set(metadata) & {"metadata", "schema_version"}), len(found["results"])],
    }


def what_constraints_allow() -> Any:
    import constraint as c

    parameters = {"a": [1, 2, 3, 4], "b": [1, 2, 3], "c": [1, 2]}
    given = [
        *(c.MaxSumConstraint(5), c.MinSumConstraint(6), c.ExactSumConstraint(6), c.MaxProdConstraint(6)),
        *(c.MinProdConstraint(8), c.ExactProdConstraint(4), c.AllDifferentConstraint(), c.AllEqualConstraint()),
        *(
            c.InSetConstraint({1, 2}),
            c.NotInSetConstraint({2}),
            c.SomeInSetConstraint({3}),
            c.SomeNotInSetConstraint({1}),
        ),
        c.FunctionConstraint(lambda a, b, c: a > b >= c),
    ]
    return [sorted(Searchspace(parameters, [each], 1024).list) for each in given]


PURE = (
    which_results_are_stored,
    which_source_is_stored,
    which_parameters_are_targets,
    what_is_said_of_a_configuration,
    which_is_the_best,
    what_a_simulation_gives,
    what_several_objectives_give,
    what_an_output_file_holds,
    what_a_metadata_file_holds,
    which_errors_there_are,
    which_arguments_are_chosen,
    what_a_searchspace_has,
    what_tune_cache_finds,
    what_is_read_of_a_cache,
    which_results_are_found,
    what_a_strategy_of_the_scripts_own_sees,
    what_a_problem_in_t1_gives,
)
CONSTRAINED = (what_constraints_allow,)  # python-constraint is needed
COMPILED = (what_a_kernel_and_its_observers_see, what_a_cache_of_functions_is_for)


def main() -> None:
    os.chdir(sys.argv[1])
    wanted = sys.argv[2:]
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        answers = {
            each.__name__: each() for each in (*PURE, *CONSTRAINED, *COMPILED) if not wanted or each.__name__ in wanted
        }
    lines = [
        f'"version": "{__version__}"',
        *(f"{json.dumps(n)}: {json.dumps(a, default=float)}" for n, a in answers.items()),
    ]
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
