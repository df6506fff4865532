"""What scripts are given in place of Kernel Tuner against Kernel Tuner 1.5.0 itself, by the same calls.

Its answers are in `kernel_tuner_1_5_0.json`. Where a Python has it (this one, or the one that WATTRIDGE_KERNEL_TUNER
names) it is asked again, and opens our caches.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from app.base.paths import resources
from app.cli import main
from app.engine.children.python import python_environment
from app.engine.formats.read import read_recording
from app.engine.results.measurement import State

QUESTIONS = Path(__file__).with_name("kernel_tuner_questions.py")
ANSWERS = json.loads(Path(__file__).with_name("kernel_tuner_1_5_0.json").read_text())
NEEDS = {  # another program or package, and whether it is here
    "what_a_kernel_and_its_observers_see": ("g++", bool(shutil.which("g++"))),
    "what_a_cache_of_functions_is_for": ("g++", bool(shutil.which("g++"))),
    "what_constraints_allow": ("python-constraint2", importlib.util.find_spec("constraint") is not None),
}


def peer() -> str:
    """A Python that has Kernel Tuner."""
    named = os.environ.get("WATTRIDGE_KERNEL_TUNER", "")
    if not named and importlib.util.find_spec("kernel_tuner") is None:
        pytest.skip("Kernel Tuner is not installed; WATTRIDGE_KERNEL_TUNER may name a Python that has it")
    return named or sys.executable


def of_peer(folder: Path, *words: str) -> Any:
    """What a script prints that Kernel Tuner's Python runs."""
    python = peer()
    done = subprocess.run([python, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1] if words[0] == "-c" else done.stdout)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Our answers, as far as what they need is here."""
    folder = tmp_path_factory.mktemp("ours")
    asked = [name for name in ANSWERS if name != "version" and (name not in NEEDS or NEEDS[name][1])]
    environment = python_environment({"WATTRIDGE_DATA": str(tmp_path_factory.mktemp("data"))})
    words = ["-m", "app", "kernel-tuner", str(QUESTIONS), str(folder), *asked]
    done = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize("question", ANSWERS)
def test_the_answer_is_that_of_kernel_tuner(question: str, ours: dict[str, Any]) -> None:
    if question not in ours:
        pytest.skip(f"there is no {NEEDS[question][0]}")
    assert ours[question] == ANSWERS[question]


def test_the_answers_that_are_kept_are_those_of_kernel_tuner_itself(tmp_path: Path) -> None:
    assert of_peer(tmp_path, str(QUESTIONS), str(tmp_path)) == ANSWERS


OUR_CACHE = """
import numpy as np
from kernel_tuner import tune_kernel
from kernel_tuner.file_utils import store_metadata_file, store_output_file
source = '''
#if u == 3
#error no
#endif
extern "C" float f(float *x, int n) { x[0] = u == 4; return block_size_x * u; }'''
x, n = np.zeros(64, np.float32), np.int32(64)
parameters = {"block_size_x": [1, 2, 4], "u": [1, 3, 4]}
results, environment = tune_kernel(
    "f", source, 64, [x, n], parameters, lang="C", cache="ours", answer=[x, None], iterations=2, quiet=True
)
store_output_file("ours-output", results, parameters)
store_metadata_file("ours-metadata")
print(environment["total_compile_time"] > 0, environment["total_verification_time"] > 0)
"""
OPENED = """
import json
import numpy as np
from kernel_tuner import store_results, tune_kernel
from kernel_tuner.file_utils import output_file_schema, store_metadata_file, store_output_file
from kernel_tuner.util import get_best_config, read_cache
parameters = {"block_size_x": [1, 2, 4], "u": [1, 3, 4]}
found = {}
for simulated in (True, False):
    results, environment = tune_kernel(
        "f", "float f(float *x, int n) { return 1; }", 64, [np.zeros(64, np.float32), np.int32(64)], parameters,
        lang="C", cache="ours", simulation_mode=simulated, quiet=True,
    )
    store_output_file("theirs-output", results, parameters)
    store_results("stored.json", "f", "", parameters, 64, results, {"device_name": "x"}, top=120)
    found[str(simulated)] = [
        environment["best_config"]["time"],
        sorted((each["block_size_x"], each["u"], type(each.get("__error__")).__name__) for each in results),
        len(json.load(open("stored.json"))["data"]),
        environment["total_compile_time"] > 0,
    ]
store_metadata_file("theirs-metadata")
found["read"] = len(read_cache("ours.json", open_cache=False)["cache"])
found["schemas"] = [output_file_schema(each)[1] for each in ("results", "metadata")]
print(json.dumps(found))
"""


def test_kernel_tuner_opens_our_cache_and_files_and_we_open_its(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peer()
    if not shutil.which("g++"):
        pytest.skip("there is no g++")
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text(OUR_CACHE)
    assert main(["kernel-tuner", "script.py"]) == 0
    assert capsys.readouterr().out.split() == ["True", "True"]
    found = of_peer(tmp_path, "-c", OPENED)
    failed = {1: "NoneType", 3: "CompilationFailedConfig", 4: "RuntimeFailedConfig"}
    rows = [[block, u, failed[u]] for block in (1, 2, 4) for u in (1, 3, 4)]
    assert found["True"] == [1.0, rows, 2, True]
    assert found["False"] == [1.0, rows, 2, False]
    assert found["read"] == 9
    for who in ("ours", "theirs"):
        for schema, kind in zip(found["schemas"], ("output", "metadata"), strict=True):
            jsonschema.validate(json.loads(Path(f"{who}-{kind}.json").read_text()), schema)
    for name in ("ours.json", "ours-output.json", "theirs-output.json"):  # the first one as Kernel Tuner left it
        table = read_recording(Path(name)).table()
        states = [table.measurement(index).state for index in range(len(table))]
        assert states.count(State.OK) == 3, name
        assert states.count(State.COMPILE) == 3, name


SEARCHED = """
import json
import sys
from kernel_tuner.file_utils import output_file_schema, store_metadata_file, store_output_file
from kernel_tuner.interface import tune_cache
from kernel_tuner.util import get_best_config, infer_args_from_cache, read_cache
found = {"schema": output_file_schema("results")[1]}
for path, objective, higher in json.loads(sys.argv[1]):
    results, environment = tune_cache(path, objective=objective, objective_higher_is_better=higher, quiet=True)
    parameters = infer_args_from_cache(read_cache(path, open_cache=False))["tune_params"]
    best = get_best_config(results, objective, higher)
    store_output_file(path.replace(".json", "-output"), results, parameters, objective)
    found[path] = [
        len(results),
        {name: best[name] for name in parameters},
        {name: best[name] for name in ("time", "energy_j")},
        environment["simulated_time"],
    ]
store_metadata_file("metadata")
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    ("example", "gpu", "objective"),
    [
        ("gemm", "simulated:a100", "GFLOPS/W"),
        ("stencil", "simulated:k20x", "Gpoints/s"),
        ("mv", "simulated:h200", "time"),
        ("h200-sgemm-session.json.gz", "recorded", "GFLOP/s"),
    ],
)
def test_kernel_tuner_searches_a_session_of_a_simulated_or_recorded_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str, gpu: str, objective: str
) -> None:
    """The problem of `mv` depends on its parameters and that of the recording is not known: no size is in the file."""
    peer()
    monkeypatch.chdir(tmp_path)
    source = []
    if gpu == "recorded":
        source.append(str(resources() / "recordings" / example))
    else:
        assert main(["tune", example, "--gpu", gpu, "--max-evaluations", "24"]) == 0
    assert main(["export", *source, "--kind", "cache", "--out", "."]) == 0
    [file] = Path().glob("*-cache.json")
    higher = objective != "time"
    found = of_peer(tmp_path, "-c", SEARCHED, json.dumps([[file.name, objective, higher]]))
    count, configuration, figures, spent_ms = found[file.name]
    table = read_recording(file).table()
    ours = [table.measurement(index) for index in range(len(table))]
    worked = [our for our in ours if our.state is State.OK]
    name = "time_s" if objective == "time" else objective
    best = (max if higher else min)(worked, key=lambda each: each.values[name])
    assert count == len(worked) > 10
    assert list(configuration.values()) == list(best.configuration.values())
    assert figures["energy_j"] == best.values["energy_j"]
    assert figures["time"] == pytest.approx(best.values["time_s"] * 1e3)
    assert spent_ms == pytest.approx(sum(each.cost_s for each in worked) * 1e3)
    output = json.loads(Path(file.name.replace(".json", "-output.json")).read_text())
    jsonschema.validate(output, found["schema"])
    assert len(output["results"]) == count


THEIR_CACHES = """
import json
import numpy as np
from kernel_tuner import tune_kernel
source = 'extern "C" float f(float *x, int n) { return 10.0f / block_size_x + u; }'
x, n = np.zeros(64, np.float32), np.int32(64)
parameters = {"block_size_x": [1, 2, 4], "u": [3, 2]}
found = {}
for name, size in (("number", 64), ("text", "u*4"), ("function", lambda p: 64)):
    _, environment = tune_kernel(
        "f", source, size, [x, n], parameters, lang="C", cache=name, metrics={"x": "2 * time"}, iterations=2, quiet=True
    )
    found[name] = {each: environment["best_config"][each] for each in ("block_size_x", "u", "time", "x")}
print(json.dumps(found))
"""


def test_we_search_and_continue_caches_of_functions_in_c_that_kernel_tuner_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peer()
    if not shutil.which("g++"):
        pytest.skip("there is no g++")
    monkeypatch.chdir(tmp_path)
    theirs = of_peer(tmp_path, "-c", THEIR_CACHES)
    assert theirs["number"] == {"block_size_x": 4, "u": 2, "time": 4.5, "x": 9.0}
    written = {name: json.loads(Path(f"{name}.json").read_text()) for name in theirs}
    for more in ("quiet=True, simulation_mode=True", "quiet=True"):
        Path("script.py").write_text(THEIR_CACHES.replace("quiet=True", more))
        assert main(["kernel-tuner", "script.py"]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1]) == theirs
    for name, document in written.items():
        assert len(document["cache"]) == len(read_recording(Path(f"{name}.json")).table()) == 6
        assert json.loads(Path(f"{name}.json").read_text()) == document
    assert of_peer(tmp_path, "-c", THEIR_CACHES) == theirs  # it continues them after us


OUR_CACHES = """
import json
import numpy as np
from kernel_tuner import tune_kernel
a = np.zeros(1024 * 1024, np.float32)
parameters = {"block_size_x": [16, 32, 64], "block_size_y": [1, 2, 4], "tile_size_x": [1, 2], "tile_size_y": [1, 2]}
found = {}
for name, size in (("number", (1024, 1024)), ("text", ("tile_size_x * 1024", "1024")), ("function", lambda p: 1024)):
    _, environment = tune_kernel(
        "sgemm", "__global__ void sgemm(float *c) {}", size, [a, a, a], parameters, lang="CUDA", cache=name, quiet=True
    )
    best = environment["best_config"]
    found[f"{name}.json"] = {each: best[each] for each in (*parameters, "time", "energy_j")}
print(json.dumps(found))
"""


def test_kernel_tuner_searches_what_a_script_stored_of_a_simulated_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peer()
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text(OUR_CACHES)
    board = ["--gpu", "simulated:a100", "--profile", "gemm", "--energy"]
    assert main(["kernel-tuner", *board, "script.py"]) == 0
    ours = json.loads(capsys.readouterr().out.splitlines()[-1])
    simulated = OUR_CACHES.replace("quiet=True", "quiet=True, simulation_mode=True")
    assert of_peer(tmp_path, "-c", simulated) == ours
    searched = of_peer(tmp_path, "-c", SEARCHED, json.dumps([[name, "time", False] for name in ours]))
    for name, best in ours.items():
        count, configuration, figures, _ = searched[name]
        assert (count, configuration | figures) == (36, best), name
