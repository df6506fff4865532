"""What cuBLASLt or Triton has for an operator is taken home: a file of C and one of Python that run by themselves.

They run against a stand-in for cuBLASLt on the host (`fake_vendor.cpp`), the Python file with one for PyTorch, in a
process that has nothing of the program.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from fixtures.engine_fakes import plan
from fixtures.host_vendor import built_libraries

from app.base.errors import InputError
from app.base.files import digest_of
from app.engine.formats.read import read_recording
from app.engine.report.export import export_session
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.runner.cuda.cublaslt import Algorithm
from app.engine.runner.cuda.offers import row_of
from app.engine.runner.kernels.reference import Baseline
from app.engine.session import sources
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_replay, space_of, with_offers
from app.engine.space.array_expressions import cast, number_type, widened
from app.engine.space.result_table import ResultTable
from app.engine.specification.operator_shapes import PRECISIONS, Operator, parse_operator
from app.engine.specification.plan import SessionPlan

TESTS = Path(__file__).parents[2]
HEADERS = TESTS / "engine" / "runner" / "include"
WORD = "66.20.3.2.1.0.36.0.3"
CUBLASLT, LIBRARY, KERNEL = 0, 1, 2  # measurements of a session
OPERATORS = ("mm:2,5,7,9:fp16:tt:bias+gelu", "mm:1,16,24,40:bf16:nt", "mm:1,6,8,5:bf16:tn:bias", "mm:3,4,8,6:fp16:gelu")

# What an outsider does: files and arrays on a command line, the library where the loader finds it.
IN_C = """
import ctypes, json, sys
import numpy as np
release, library, folder = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
lt = ctypes.CDLL("libcublasLt.so.12", mode=ctypes.RTLD_GLOBAL)
lt.set_release(ctypes.c_size_t(release[0]), release[1])
own = ctypes.CDLL(library)
own.why_mm.restype = ctypes.c_char_p
given = [np.load(f"{folder}/{name}.npy") for name in sys.argv[4:]]
c = np.zeros(np.load(f"{folder}/shape.npy"), np.uint16)
room = np.zeros(64 << 20, np.uint8)
status = [own.launch_mm(*(ctypes.c_void_p(each.ctypes.data) for each in (c, *given, room)), None) for _ in range(2)]
np.save(f"{folder}/c.npy", c)
print(json.dumps([status, own.why_mm().decode()]))
"""
IN_PYTHON = """
import ctypes, importlib.util, json, sys
import numpy as np
release, path, folder, fixtures = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
sys.path.insert(0, fixtures)
import torch_on_host as torch
sys.modules["torch"] = torch
ctypes.CDLL("libcublasLt.so.12").set_release(ctypes.c_size_t(release[0]), release[1])
spec = importlib.util.spec_from_file_location("exported", path)
exported = importlib.util.module_from_spec(spec)
spec.loader.exec_module(exported)
given = []
for name in sys.argv[5:]:
    array = np.load(f"{folder}/{name}.npy")
    own = torch.aligned(array.shape, np.uint16)
    own[...] = array
    given.append(torch.Tensor(own, f"torch.{exported.TYPE}"))
said = []
others = [torch.Tensor(each.array, torch.uint8) for each in given]
for wrong in ([given[0], given[0]], [*given[:2], given[0]], others):
    try:
        exported.mm(*wrong)
    except ValueError as error:
        said.append(str(error))
try:
    np.save(f"{folder}/c.npy", [exported.mm(*given).array for _ in range(2)][1])
    print(json.dumps(["", said]))
except RuntimeError as error:
    print(json.dumps([str(error), said]))
"""
NOW, OLDER = (120901, 19), (120003, 0)  # releases of the stand-in; the older one has no clusters


class Session(NamedTuple):
    """Three measurements of an operator: one for each maker."""

    plan: SessionPlan
    table: ResultTable
    operator: Operator

    def export(self, index: int, folder: Path, *kinds: str) -> list[str]:
        """What is said of the files."""
        said: list[str] = []
        export_session(self.plan, self.table, None, index, folder, list(kinds) or None, said.append)
        return said


def session(folder: Path, text: str) -> Session:
    operator, path = parse_operator(text), folder / "operator.toml"
    written = [f'precision = "{operator.precision}"', f'layout = "{operator.layout}"']
    written += [f'epilogue = "{operator.epilogue}"'] if operator.epilogue else []
    path.write_text(f'[operator]\nkind = "mm"\nshape = {list(operator.shape)}\n' + "\n".join(written) + "\n")
    spec = load_specification(path)
    offers = [row_of(Algorithm.of_word(WORD)), {"maker": "library"}]
    space = with_offers(space_of(spec), spec, offers)
    rows = [int(space.rows_with({"maker": maker})[0]) for maker in ("cublaslt", "library", "triton")]
    table = ResultTable(space)
    for place, row in enumerate(rows):
        values = {"time_s": 1e-3 * (place + 1), "energy_j": 0.1 * (place + 1)}
        table.append(Measurement(row, space.configuration(row), State.OK, values=values, source="nvml"))
    origin = {
        "kind": "specification",
        "file": str(path),
        "sha256": digest_of(path),
        "gpu": "gone",
        "operator": operator.notation,
        "compiler": "NVRTC 12.9 for (9, 0)",
        **Baseline("cuBLAS 12.9.1").to_origin(),
        **sources.to_origin(spec),
    }
    goal = Objective(Goal("energy_j", maximise=False))
    made = replace(plan(space, None), title=operator.name, objective=goal, origin=origin)  # type: ignore[arg-type]
    return Session(made, table, operator)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library that answers as cuBLASLt does."""
    folder = tmp_path_factory.mktemp("cublas")
    built_libraries(folder, "libcublasLt.so.12")
    return folder


def numbers(operator: Operator, folder: Path) -> tuple[list[str], np.ndarray]:  # type: ignore[type-arg]
    """Write operands for an outsider; their names, and what the result is."""
    batch, rows, columns, depth = operator.product
    kind, rng = number_type(PRECISIONS[operator.precision][0]), np.random.default_rng(3)
    left, right = operator.transposed
    shapes = {"a": (batch, depth, rows) if left else (batch, rows, depth)}
    shapes["b"] = (batch, columns, depth) if right else (batch, depth, columns)
    shapes |= {"bias": (columns,)} if operator.has_bias else {}
    arrays = {}
    for name, shape in shapes.items():
        made = cast(rng.standard_normal(shape).astype(np.float32), kind)
        np.save(folder / f"{name}.npy", made.view(np.uint16))
        arrays[name] = widened(made).astype(float)
    np.save(folder / "shape.npy", [batch, rows, columns])
    a, b = arrays["a"].swapaxes(1, 2) if left else arrays["a"], arrays["b"].swapaxes(1, 2) if right else arrays["b"]
    made = a @ b + arrays.get("bias", 0)
    if operator.epilogue.endswith("gelu"):
        made = made * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (made + 0.044715 * made**3)))
    return list(shapes), made


def result(operator: Operator, folder: Path) -> np.ndarray:  # type: ignore[type-arg]
    return np.asarray(widened(np.load(folder / "c.npy").view(number_type(PRECISIONS[operator.precision][0]))))


def ran(code: str, stand_in: Path, release: tuple[int, int], *words: str) -> list[object]:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(stand_in)}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-c", code, json.dumps(release), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: list[object] = json.loads(done.stdout)
    return found


def launched(out: Path, name: str, stand_in: Path, language: str = "c99") -> Path:
    """The exported file of C, compiled and linked with cuBLASLt alone."""
    compiler = shutil.which("c++" if "++" in language else "cc")
    if compiler is None:
        pytest.skip("no compiler of C")
    library, source = out / f"{language}.so", out / f"{name}-code.c"
    command = [
        compiler,
        *(["-x", "c++"] if "++" in language else []),
        f"-std={language}",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    command += ["-include", str(out / f"{name}.h"), "-I", str(HEADERS), "-shared", "-fPIC", str(source)]
    links = ["-x", "none", "-o", str(library), f"-L{stand_in}", "-l:libcublasLt.so.12", "-Wl,--no-undefined"]
    subprocess.run([*command, *links], check=True)
    return library


@pytest.mark.parametrize("text", OPERATORS)
def test_the_file_of_c_sets_the_algorithm_and_computes(text: str, stand_in: Path, tmp_path: Path) -> None:
    made = session(tmp_path, text)
    made.export(CUBLASLT, tmp_path / "out", "code", "header")
    names, wanted = numbers(made.operator, tmp_path)
    library = launched(tmp_path / "out", made.operator.name, stand_in)
    status, words = ran(IN_C, stand_in, NOW, str(library), str(tmp_path), *names)
    assert (status, words) == ([0, 0], "")
    np.testing.assert_allclose(result(made.operator, tmp_path), wanted, rtol=1e-2, atol=1e-2)


def test_it_is_c_plus_plus_too(stand_in: Path, tmp_path: Path) -> None:
    made = session(tmp_path, OPERATORS[0])
    made.export(CUBLASLT, tmp_path / "out", "code", "header")
    assert launched(tmp_path / "out", made.operator.name, stand_in, "c++17").is_file()


def test_a_release_without_the_algorithm_is_refused_in_words_in_c(stand_in: Path, tmp_path: Path) -> None:
    made = session(tmp_path, OPERATORS[1])
    made.export(CUBLASLT, tmp_path / "out", "code", "header")
    names, _ = numbers(made.operator, tmp_path)
    library = launched(tmp_path / "out", made.operator.name, stand_in)
    status, words = ran(IN_C, stand_in, OLDER, str(library), str(tmp_path), *names)
    assert status == [15, 15]
    assert words == (
        f"cuBLASLt 12.0.3 does not run the algorithm {WORD} of mm:1,16,24,40:bf16:nt here, which was measured with "
        "cuBLAS 12.9.1: cublasLtMatmulAlgoCheck returned 15"
    )
    assert not np.load(tmp_path / "c.npy").any(), "nothing ran in its place"


@pytest.mark.parametrize("text", OPERATORS)
def test_the_file_of_python_computes_on_tensors(text: str, stand_in: Path, tmp_path: Path) -> None:
    made = session(tmp_path, text)
    made.export(CUBLASLT, tmp_path / "out", "python")
    path = next((tmp_path / "out").glob("*.py"))
    assert path.stem.isidentifier(), "it can be imported"
    names, wanted = numbers(made.operator, tmp_path)
    words = [str(path), str(tmp_path), str(TESTS / "fixtures"), *names]
    refused, said = ran(IN_PYTHON, stand_in, NOW, *words)
    assert refused == ""
    np.testing.assert_allclose(result(made.operator, tmp_path), wanted, rtol=1e-2, atol=1e-2)
    assert isinstance(said, list)
    assert [each.split()[0] for each in said] == ["b", "bias", "a,"], "other operands are refused"
    refused, _ = ran(IN_PYTHON, stand_in, OLDER, *words)
    assert str(refused).startswith("cuBLASLt 12.0.3 does not have this algorithm here (id 66, tile 20, split-K 3, ")
    assert str(refused).endswith("measured with cuBLAS 12.9.1: cublasLtMatmulAlgoCheck returned 15")


def test_all_kinds_of_a_row_of_cublaslt(tmp_path: Path) -> None:
    made = session(tmp_path, OPERATORS[1])
    said = made.export(CUBLASLT, tmp_path / "out")
    name = made.operator.name
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert {f"{name}{end}" for end in (".json", ".h", "-code.c", "-session.csv", "-cache.json")} <= files
    assert f"{name.replace('-', '_')}.py" in files
    assert f"{name}.cu" not in files
    assert said == [f"cuBLASLt's algorithm {WORD}, measured with cuBLAS 12.9.1."]
    for end in (".h", "-code.c"):
        text = (tmp_path / "out" / f"{name}{end}").read_text()
        assert said[0] in text
        assert "compiled by" not in text
    document = json.loads((tmp_path / "out" / f"{name}.json").read_text())
    assert (document["configuration"]["maker"], document["configuration"]["algorithm"]) == ("cublaslt", WORD)
    assert document["launch"] is None
    with pytest.raises(InputError, match="no 'source' of what cublaslt made"):
        made.export(CUBLASLT, tmp_path / "other", "source")


def test_of_a_row_of_triton_there_is_a_module(tmp_path: Path) -> None:
    made = session(tmp_path, OPERATORS[1])
    assert made.export(KERNEL, tmp_path / "out") == ["A kernel of Wattridge in Triton."]
    path = next((tmp_path / "out").glob("*.py"))
    tree = ast.parse(path.read_text())
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert {"multiply", "mm", "checked", "reference", "main"} <= functions
    assert ast.get_docstring(tree)
    constants = {
        n.targets[0].id: n.value for n in tree.body if isinstance(n, ast.Assign) if isinstance(n.targets[0], ast.Name)
    }
    tile, configuration = ast.literal_eval(constants["TILE"]), made.table.measurement(KERNEL).configuration
    assert tile == {name: configuration[name] for name in tile}
    assert not [each for each in (tmp_path / "out").iterdir() if each.suffix in (".cu", ".c")]
    for kind in ("source", "code"):
        with pytest.raises(InputError, match=f"no '{kind}' of what triton made, but 'python'"):
            made.export(KERNEL, tmp_path / "other", kind)


def test_where_the_library_is_the_answer_nothing_has_to_be_exported(tmp_path: Path) -> None:
    made = session(tmp_path, OPERATORS[1])
    line = "the library as it is is the answer, and nothing has to be exported"
    for kind in ("source", "code", "python"):
        with pytest.raises(InputError, match=line):
            made.export(LIBRARY, tmp_path / "none", kind)
    assert not (tmp_path / "none").exists()
    assert made.export(LIBRARY, tmp_path / "out") == [f"cuBLAS 12.9.1: {line}."]
    name = made.operator.name
    document = json.loads((tmp_path / "out" / f"{name}.json").read_text())
    assert document["configuration"]["maker"] == "library"
    assert "library" in (tmp_path / "out" / f"{name}-session.csv").read_text()


def test_a_table_of_such_rows_is_exported_as_any_other(tmp_path: Path) -> None:
    made = session(tmp_path, OPERATORS[1])
    made.export(CUBLASLT, tmp_path / "out", "csv")
    path = next((tmp_path / "out").glob("*.csv"))
    recording = read_recording(path)
    again = export_session(plan_replay(path, read=recording), recording.table(), None, None, tmp_path / "again")
    assert {".json", ".h", ".csv"} <= {each.suffix for each in again}
    assert not [each for each in again if each.suffix in (".py", ".c", ".cu")], "which operator it was is not known"


def test_a_kernel_of_ours_has_no_module(tmp_path: Path) -> None:
    made = session(tmp_path, OPERATORS[1])
    table = ResultTable(made.table.space)
    first = made.table.measurement(CUBLASLT)
    table.append(replace(first, configuration={**first.configuration, "maker": "wattridge"}))
    with pytest.raises(InputError, match="of what cuBLASLt or Triton has for a session's operator"):
        made._replace(table=table, plan=replace(made.plan, origin={"kind": "fake"})).export(0, tmp_path / "o", "python")
