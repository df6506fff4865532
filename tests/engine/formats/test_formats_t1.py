"""T1 specifications: read as TOML ones are, written so that they come back whole."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.formats_samples import T1
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.formats.t1 import write_t1
from app.engine.formats.t1_text import values_of
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification, space_of
from app.engine.specification.model import ArgumentSpec, Specification
from app.engine.workloads.kernel_arguments import Argument, make_array
from app.engine.workloads.source_kernel import SourceKernel
from app.sensors.clock import VirtualClock
from app.sensors.limits import limits_of
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

VECTOR = {"Type": "float", "MemoryType": "Vector", "Size": 8}
EXAMPLES = sorted((resources() / "examples").glob("*.toml"))


def write(folder: Path, document: dict[str, Any]) -> Path:
    (folder / "blur.cu").write_text('extern "C" __global__ void blur(float *out) {}\n')
    path = folder / "t1.json"
    path.write_text(json.dumps(document, indent=1))
    return path


def with_kernel(**kernel: Any) -> dict[str, Any]:
    document = copy.deepcopy(T1)
    document["KernelSpecification"] |= kernel
    return document


def with_parameter(values: object, kind: str = "int", name: str = "more") -> dict[str, Any]:
    document = copy.deepcopy(T1)
    document["ConfigurationSpace"]["TuningParameters"].append({"Name": name, "Type": kind, "Values": values})
    return document


def with_argument(folder: Path, **given: Any) -> Specification:
    argument = {"Name": "x", "Type": "float", "MemoryType": "Vector", "Size": 8, **given}
    return load_specification(write(folder, with_kernel(Arguments=[argument], ReferenceArguments=[])))


# --- reading ----------------------------------------------------------------------------------------------------------


def test_a_whole_specification(tmp_path: Path) -> None:
    spec = load_specification(write(tmp_path, T1))
    kernel = spec.kernel
    assert kernel is not None
    assert (spec.name, str(spec.objective)) == ("blur", "min:time_s")
    assert spec.parameters["block_size_x"] == tuple(range(16, 129, 16))
    assert spec.parameters["block_size_y"] == (1, 2, 4, 8, 16, 32)
    assert spec.parameters["tile"] == (1, 2, 4, 6, 8)
    assert spec.parameters["padded"] == (True, False)
    assert spec.parameters["method"] == ("direct", "tiled")
    assert (spec.strategy, spec.max_evaluations, spec.max_seconds) == ("random_sample", 60, 90.0)
    assert kernel.problem_size == ("4096", "2048 * 2")
    assert kernel.grid_divisors == {"x": ("block_size_x", "tile"), "y": ("block_size_y",)}
    assert kernel.sources == ((tmp_path / "blur.cu").resolve(),)
    out, image, weights, n = kernel.arguments
    assert (out.shape, out.output, image.output) == (("4096 * (2048 * 2)",), True, False)
    assert image.shape == ("(4096 + 5) * (2048 * 2 + 5)",), "max(radius) is the largest of its values"
    assert (weights.memory, weights.fill, n.value) == ("constant", "1 / (1 + i % 4)", 4096)
    assert kernel.verify is not None
    assert (kernel.verify.references, kernel.verify.rtol) == ({"out": "0.5"}, 0.001)


def test_its_space_is_the_one_that_it_describes(tmp_path: Path) -> None:
    space = space_of(load_specification(write(tmp_path, T1)))
    x, y = space.column("block_size_x").astype(int), space.column("block_size_y").astype(int)
    direct, tile = space.column("method") == "direct", space.column("tile").astype(int)
    assert ((x * y >= 32) & (x * y <= 1024)).all()
    assert (tile[direct] == 1).all()
    assert space.cartesian == 8 * 6 * 5 * 2 * 2 * 2 * 2
    pairs = sum(32 <= a * b <= 1024 for a in range(16, 129, 16) for b in (1, 2, 4, 8, 16, 32))
    assert space.size == pairs * 2 * 2 * 2 * (5 + 1)


def test_the_kernel_is_launched_as_the_file_says(tmp_path: Path) -> None:
    spec = load_specification(write(tmp_path, T1))
    kernel = SourceKernel.of(spec, limits_of((8, 0)))
    configuration = space_of(spec).configuration(0) | {"block_size_x": 48, "block_size_y": 4, "tile": 2}
    launch = kernel.prepare(configuration).launch
    assert (launch.block, launch.grid) == ((48, 4, 1), (-(-4096 // 96), 1024, 1))


@pytest.mark.parametrize(
    ("kind", "grid"), [("CUDA", (256 // 2, 4, 1)), ("OpenCL", (256 // 2 // 32, 4 // 2, 1)), (None, (256 // 2, 4, 1))]
)
def test_a_global_size_instead_of_a_problem_size(tmp_path: Path, kind: str | None, grid: tuple[int, ...]) -> None:
    document = with_kernel(
        GlobalSize={"X": "256 // tile", "Y": 4}, GlobalSizeType=kind, LocalSize={"X": 32, "Y": "tile"}, Arguments=[]
    )
    for key in ("ProblemSize", "GridDivX", "GridDivY", "ReferenceArguments"):
        del document["KernelSpecification"][key]
    spec = load_specification(write(tmp_path, document))
    launch = SourceKernel.of(spec, limits_of((8, 0))).prepare(space_of(spec).configuration(0) | {"tile": 2}).launch
    assert (launch.grid, launch.block) == (grid, (32, 2, 1))


def test_without_divisors_the_block_divides_as_for_kernel_tuner(tmp_path: Path) -> None:
    document = with_kernel(ProblemSize=1000)
    del document["KernelSpecification"]["GridDivX"]
    document["KernelSpecification"]["Arguments"] = document["KernelSpecification"]["Arguments"][3:]
    document["KernelSpecification"]["ReferenceArguments"] = []
    spec = load_specification(write(tmp_path, document))
    assert spec.kernel is not None
    assert (spec.kernel.problem_size, spec.kernel.grid_divisors) == (("1000",), {"x": ("block_size_x",)})


@pytest.mark.parametrize(
    ("given", "shape", "kind"),
    [
        ({"Type": "bool"}, (8,), "bool"),
        ({"Type": "int8"}, (8,), "int8"),
        ({"Type": "uint64"}, (8,), "uint64"),
        ({"Type": "half"}, (8,), "float16"),
        ({"Type": "half2"}, (8, 2), "float16"),
        ({"Type": "float16"}, (8, 16), "float32"),
        ({"Type": "double3"}, (8, 3), "float64"),
        ({"Type": "custom", "TypeSize": 12}, (8, 12), "uint8"),
        ({"Type": "float", "Size": "2 * max(radius)"}, (10,), "float32"),
    ],
)
def test_every_type_of_argument(tmp_path: Path, given: dict[str, Any], shape: tuple[int, ...], kind: str) -> None:
    (argument,) = made(with_argument(tmp_path, **given))
    assert (argument.shape, argument.dtype) == (shape, np.dtype(kind))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"FillType": "Constant", "FillValue": 324.5}, [324.5] * 8),
        ({"FillType": "Constant", "FillValue": 1}, [1.0] * 8),
        ({"FillType": "Generator", "DataSource": "i"}, list(range(8))),
        (
            {"FillType": "Generator", "DataSource": "1 + (i // 4) * 0.5 if i % 4 < 3 else 0"},
            [1, 1, 1, 0, 1.5, 1.5, 1.5, 0],
        ),
        ({"FillType": "BinaryRaw", "DataSource": "numbers.bin"}, [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]),
    ],
)
def test_every_fill_of_an_argument(tmp_path: Path, given: dict[str, Any], wanted: list[float]) -> None:
    np.array([3, 1, 4, 1, 5, 9, 2, 6], dtype=np.float32).tofile(tmp_path / "numbers.bin")
    (argument,) = made(with_argument(tmp_path, **given))
    assert argument.tolist() == wanted


def test_random_numbers_reach_as_far_as_they_should(tmp_path: Path) -> None:
    (argument,) = made(with_argument(tmp_path, FillType="Random", FillValue=40.0, Size=4000))
    assert 39 < argument.max() < 40
    assert 0 <= argument.min() < 1
    (again,) = made(with_argument(tmp_path, FillType="Random", FillValue=40.0, Size=4000))
    assert (argument == again).all()


def made(spec: Specification) -> list[np.ndarray]:
    """The arrays of the kernel's arguments."""
    assert spec.kernel is not None
    kernel = SourceKernel.of(spec, limits_of((8, 0)))
    calls = kernel.prepare(space_of(spec).configuration(0)).calls
    return [make_array(argument, place) for place, argument in enumerate(calls.arguments)]


def test_a_binary_file_that_is_too_short_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short.bin").write_bytes(b"1234")
    argument = Argument("x", "float32", (8,), str(tmp_path / "short.bin"), None, False, False, 0)
    with pytest.raises(InputError, match="1 numbers of type float32 instead of 8"):
        make_array(argument, 0)


def test_local_memory_is_the_launch_s_shared_memory(tmp_path: Path) -> None:
    spec = with_argument(tmp_path, MemoryType="Local", Type="double2", Size="max(radius)")
    assert spec.kernel is not None
    assert spec.kernel.arguments == ()
    launch = SourceKernel.of(spec, limits_of((8, 0))).prepare(space_of(spec).configuration(0)).launch
    assert launch.shared_byte == 5 * 8 * 2


def test_clocks_among_the_parameters_are_device_settings(tmp_path: Path) -> None:
    spec = load_specification(write(tmp_path, with_parameter("[900, 1500]", name="nvml_gr_clock")))
    assert spec.device_settings == {"graphics_clock_mhz": (900, 1500)}
    assert space_of(spec).parameters[-1].device_setting


def test_values_may_depend_on_other_parameters(tmp_path: Path) -> None:
    space = space_of(load_specification(write(tmp_path, with_parameter("list(range(tile, 9, tile))"))))
    assert (space.column("more").astype(int) % space.column("tile").astype(int) == 0).all()


@pytest.mark.parametrize(
    ("search", "strategy", "options"),
    [
        ({"Name": "Deterministic"}, "brute_force", {}),
        (
            {"Name": "genetic_algorithm", "Attributes": [{"Name": "population_size", "Value": 10}]},
            "genetic_algorithm",
            {"population_size": 10},
        ),
    ],
)
def test_searches_of_other_tuners(
    tmp_path: Path, search: dict[str, Any], strategy: str, options: dict[str, Any]
) -> None:
    spec = load_specification(write(tmp_path, copy.deepcopy(T1) | {"Search": search}))
    assert (spec.strategy, dict(spec.strategy_options), spec.notes) == (strategy, options, ())


def test_a_search_that_is_not_known_is_said(tmp_path: Path) -> None:
    search = {"Name": "ProfileBased", "Attributes": [{"Name": "modelPath", "Value": "m.sav"}]}
    spec = load_specification(write(tmp_path, copy.deepcopy(T1) | {"Search": search}))
    assert "the search 'ProfileBased' is not known here and left out" in spec.notes
    assert space_of(spec).notes[0] == spec.notes[0]


def test_a_share_of_the_space_as_budget(tmp_path: Path) -> None:
    (tmp_path / "kernel.toml").write_text((resources() / "examples" / "gemm.toml").read_text())
    spec = dataclasses.replace(load_specification(tmp_path / "kernel.toml"), max_evaluations=None, max_fraction=0.1)
    gpu = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    plan = plan_specification(spec, gpu)
    assert plan.max_evaluations == -(-plan.space.size // 10)
    gpu.close()


# --- what cannot be run, can be looked at -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (with_kernel(Language="Hypertuner", GridDivX=["nothing"]), "Hypertuner"),
        (
            with_kernel(Arguments=[{"Type": "float", "MemoryType": "Vector", "Size": 8, "FillType": "Script"}]),
            "program",
        ),
        (
            with_kernel(
                Arguments=[
                    {"Type": "float", "MemoryType": "Vector", "Size": 8, "FillType": "BinaryHDF", "DataSource": "a.h5"}
                ]
            ),
            "cannot be read here",
        ),
    ],
)
def test_a_kernel_that_cannot_be_run_leaves_its_space(tmp_path: Path, document: dict[str, Any], why: str) -> None:
    document["KernelSpecification"].pop("ReferenceArguments")
    spec = load_specification(write(tmp_path, document))
    assert why in spec.refused
    assert space_of(spec).size > 1000
    gpu = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    with pytest.raises(InputError, match="its space can be looked at"):
        plan_specification(spec, gpu)
    gpu.close()


def test_a_reference_that_cannot_be_checked_is_said(tmp_path: Path) -> None:
    reference = {"Name": "r", "TargetName": "out", "FillType": "Generator", "DataSource": "i"}
    spec = load_specification(write(tmp_path, with_kernel(ReferenceArguments=[reference])))
    assert spec.notes == ("'out' is not checked: its reference 'r' is of kind Generator",)


# --- what is wrong names its place ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "where", "said"),
    [
        (with_parameter("[1, 2"), "ConfigurationSpace.TuningParameters[7].Values", "is not an expression"),
        (with_parameter("[open('x')]"), "TuningParameters[7].Values", "the call of 'open'"),
        (with_parameter("[i for i in range(10**9)]"), "TuningParameters[7].Values", "values"),
        (with_parameter("[1/0]"), "TuningParameters[7].Values", "value"),
        (with_parameter([]), "TuningParameters[7].Values", "0 values"),
        (with_parameter("[1]", name="tile"), "TuningParameters[7]", "twice"),
        (with_parameter("[1]", name="a b"), "ConfigurationSpace.TuningParameters", "'a b' is not a name"),
        (with_kernel(KernelName=5), "KernelSpecification.KernelName", "'KernelName' is 5"),
        (with_kernel(ProblemSize=["nn", 1]), "KernelSpecification.ProblemSize", "unknown name 'nn'"),
        (with_kernel(GridDivX=["tle"]), "KernelSpecification.GridDiv.x", "unknown name 'tle'"),
        (with_kernel(Arguments=[{"Type": "quad", "MemoryType": "Vector"}]), "Arguments[0].Type", "'Type' is 'quad'"),
        (with_kernel(Arguments=[{"Type": "float", "MemoryType": "Far"}]), "Arguments[0].MemoryType", "'Far'"),
        (with_kernel(Arguments=[{"Type": "float", "MemoryType": "Vector"}]), "Arguments[0].Size", "is missing"),
        (
            with_kernel(Arguments=[{"Type": "float", "MemoryType": "Vector", "Size": "ProblemSize[7]"}]),
            "Arguments[0].Size",
            "ProblemSize",
        ),
        (copy.deepcopy(T1) | {"Budget": [{"Type": "Patience", "BudgetValue": 3}]}, "Budget[0].Type", "'Patience'"),
        (
            copy.deepcopy(T1) | {"Budget": [{"Type": "TuningDuration", "BudgetValue": 10**400}]},
            "Budget[0].BudgetValue",
            "a finite number is needed",
        ),
        (with_kernel(KernelFile="\0.cu"), "KernelSpecification.KernelFile", "without the null character"),
        ({"ConfigurationSpace": {"TuningParameters": [], "Conditions": []}}, "TuningParameters", "no parameters"),
        ({"ConfigurationSpace": 5}, "ConfigurationSpace", "a table is needed"),
    ],
)
def test_a_mistake_is_one_line_with_the_key(tmp_path: Path, document: dict[str, Any], where: str, said: str) -> None:
    path = write(tmp_path, document)
    with pytest.raises(InputError) as caught:
        load_specification(path)
    assert str(path) in caught.value.where
    assert where in caught.value.where
    assert said in f"{caught.value.what} {caught.value.remedy}"
    assert "\n" not in str(caught.value)


def test_a_kernel_file_whose_name_no_system_takes_is_a_space_to_look_at(tmp_path: Path) -> None:
    spec = load_specification(write(tmp_path, with_kernel(KernelFile="long" * 100 + ".cu")))
    assert space_of(spec).size > 0
    with pytest.raises(InputError, match="no such source file"):
        SourceKernel.of(spec, limits_of((8, 0)))


def test_a_closure_is_refused_as_one(tmp_path: Path) -> None:
    document = copy.deepcopy(T1)
    document["ConfigurationSpace"]["Conditions"].append({"Expression": "lambda p: p['tile'] > 1", "Parameters": []})
    with pytest.raises(InputError, match="'Lambda' is not allowed"):
        load_specification(write(tmp_path, document))


def test_a_bad_condition_is_named(tmp_path: Path) -> None:
    document = copy.deepcopy(T1)
    document["ConfigurationSpace"]["Conditions"].append({"Expression": "tile < wide", "Parameters": ["tile"]})
    with pytest.raises(InputError, match="unknown name 'wide'") as caught:
        load_specification(write(tmp_path, document))
    assert "ConfigurationSpace.Conditions[2]" in caught.value.where


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"ConfigurationSpace": {},\n"General" 5}', "line 2, column 11"),
        ('{"ConfigurationSpace": {"TuningParameters": 1, "TuningParameters": 2}}', "there twice"),
        ('{"KernelSpecification": {}}', "'KernelName' is missing"),
        ('{"General": {}}', "no T1 specification"),
        ('{"cache": {}}', "wattridge replay"),
        ('{"ConfigurationSpace": {"x": "\\ud800"}}', "half a character"),
    ],
)
def test_what_is_no_t1_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "t1.json"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        load_specification(path)


# --- values as text ---------------------------------------------------------------------------------------------------

NUMBERS = st.integers(-100, 100)
LISTS = st.recursive(
    st.lists(NUMBERS, min_size=1, max_size=4).map(str)
    | st.tuples(NUMBERS, st.integers(1, 30), st.integers(1, 7)).map(lambda r: f"range({r[0]}, {r[0] + r[1]}, {r[2]})")
    | st.tuples(st.integers(-5, 5), st.integers(1, 9)).map(lambda p: f"[i * {p[0]} + i ** 2 for i in range({p[1]})]")
    | st.tuples(st.integers(1, 5), st.integers(1, 9)).map(
        lambda p: f"[i * j for i in [1, {p[0]}] for j in range({p[1]}) if j]"
    ),
    lambda inner: (
        inner.map(lambda text: f"list({text})")
        | inner.map(lambda text: f"sorted({text})")
        | st.tuples(inner, inner).map(lambda two: f"list({two[0]}) + list({two[1]})")
    ),
    max_leaves=4,
)


@settings(deadline=None)
@given(LISTS)
def test_lists_are_what_python_makes_of_them(text: str) -> None:
    wanted = tuple(dict.fromkeys(list(eval(text, {"__builtins__": {"range": range, "list": list, "sorted": sorted}}))))  # noqa: S307
    if not wanted:
        with pytest.raises(InputError, match="0 values"):
            values_of(text, "w")
    else:
        found = values_of(text, "w")
        assert found == wanted
        assert all(type(a) is type(b) for a, b in zip(found, wanted, strict=True))


# --- there and back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_comes_back_whole(example: Path, tmp_path: Path) -> None:
    spec = load_specification(example)
    space = space_of(spec)
    path = write_t1(spec, space, limits_of((8, 0)), tmp_path / "t1.json")
    assert dataclasses.replace(load_specification(path), path=example) == spec
    document = json.loads(path.read_text())
    del document["wattridge"]  # what other programs see
    path.write_text(json.dumps(document))
    plain = load_specification(path)
    assert str(plain.objective) == "min:time_s"
    other = space_of(plain)
    assert (other.names, other.size) == (space.names, space.size)
    for row in range(0, space.size, max(1, space.size // 200)):
        assert other.row_of(space.configuration(row)) is not None


def test_a_change_by_hand_counts(tmp_path: Path) -> None:
    spec = load_specification(EXAMPLES[0].parent / "gemm.toml")
    path = write_t1(spec, space_of(spec), limits_of((8, 0)), tmp_path / "t1.json")
    document = json.loads(path.read_text())
    document["ConfigurationSpace"]["TuningParameters"][0]["Values"] = "[16]"
    path.write_text(json.dumps(document))
    changed = load_specification(path)
    assert changed.parameters["block_size_x"] == (16,)
    assert "changed since this program wrote it" in changed.notes[0]
    assert (changed.objective, changed.metrics) == (spec.objective, spec.metrics), "what T1 cannot say stays"
    assert changed.kernel is not None
    assert changed.kernel.profile == "gemm"


def test_a_command_is_no_t1(tmp_path: Path) -> None:
    path = tmp_path / "command.toml"
    path.write_text('[command]\nrun = "true {n}"\n[parameters]\nn = [1, 2]\n')
    spec = load_specification(path)
    with pytest.raises(InputError, match="T1 describes kernels"):
        write_t1(spec, space_of(spec), limits_of((8, 0)), tmp_path / "t1.json")


def test_arguments_of_every_kind_come_back(tmp_path: Path) -> None:
    spec = load_specification(write(tmp_path, T1))
    assert spec.kernel is not None
    more = (
        *spec.kernel.arguments,
        ArgumentSpec("c", "complex64", ("16", "2"), "random", seed=7),
        ArgumentSpec("h", "float16", ("n_values",), "random * 40.0"),
        ArgumentSpec("f", "int64", ("4",), str(tmp_path / "a.npy")),
        ArgumentSpec("s", "float64", value="2 * n_values"),
    )
    spec = dataclasses.replace(
        spec, kernel=dataclasses.replace(spec.kernel, arguments=more), constants={"n_values": 12}, max_fraction=0.25
    )
    path = write_t1(spec, space_of(spec), limits_of((8, 0)), tmp_path / "again.json")
    again = load_specification(path)
    assert dataclasses.replace(again, path=spec.path) == spec
    document = json.loads(path.read_text())
    del document["wattridge"]
    path.write_text(json.dumps(document))
    plain = load_specification(path).kernel
    assert plain is not None
    by_name = {argument.name: argument for argument in plain.arguments}
    assert (by_name["h"].fill, by_name["h"].shape) == ("random * 40.0", ("12",))
    assert by_name["s"].value == 24
    assert by_name["c"].shape == ("32", "8"), "as many bytes"
