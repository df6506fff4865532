"""A new specification from a kernel's source or a command: the reader accepts it, and guesses are named."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.session.load import load_specification
from app.engine.session.planning import space_of
from app.engine.specification.check import specification_of
from app.engine.specification.kernel_scan import Scan, scan_kernels
from app.engine.specification.model import Specification
from app.engine.specification.new_document import (
    CHECK,
    fields_of,
    from_command,
    from_kernel,
    kernel_called,
    patterns_in,
    read_kernels,
)

KERNELS = sorted((resources() / "kernels").glob("*.cu"))
EXAMPLES = [  # an operator's specification is not made from its kernel
    path for path in sorted((resources() / "examples").glob("*.toml")) if load_specification(path).operator is None
]
TEMPLATE = """
template <typename T, int BLOCK, bool FLAG = true>
__global__ void add(T *out, const float4 *in, unsigned int size, const double k) {
    for (int i = threadIdx.x; i < size; i += BLOCK) out[i] = in[i].x * k; // not_a_name
}
#define UNROLL 4
"""


def read(text: str, folder: Path) -> Specification:
    return specification_of(tomllib.loads(text), folder / "new.toml")


def tunable(scan: Scan) -> set[str]:
    return {suggestion.name for suggestion in scan.suggestions if suggestion.tunable}


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_the_reader_accepts_what_is_made_of_every_kernel(path: Path) -> None:
    scan = read_kernels(path)
    names = [(kernel, name) for kernel in scan.kernels for name in kernel.names]
    assert names
    for kernel, name in names:
        made = from_kernel(path, scan, kernel, path.parent, name)
        spec = read(made.text, path.parent)
        assert spec.kernel is not None
        assert spec.kernel.name == name
        assert spec.kernel.sources == (path.resolve(),)
        assert len(spec.kernel.arguments) >= len(kernel.arguments) > 0
        assert space_of(spec).size > 1
        assert CHECK in made.text
        assert made.guessed
        assert made.missing


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_parameters_of_the_examples_are_found_in_their_kernels(path: Path) -> None:
    spec = load_specification(path)
    assert spec.kernel is not None
    if spec.kernel.language not in ("CUDA", "OpenCL"):
        pytest.skip("the scan knows CUDA and OpenCL")
    scan = read_kernels(spec.kernel.sources[0])
    in_source = {name for name in spec.parameters if name in scan.names}
    found = tunable(scan)
    if spec.kernel.language == "OpenCL":  # a size of the work-group that the source gives another name
        found -= {"block_size_x", "block_size_y"} - in_source
    assert found == in_source != set(), "nothing is missed, and nothing else is taken for a parameter"
    kernel, _ = kernel_called(scan, spec.kernel.name, path)
    kinds = [(a.name, a.type) for a in spec.kernel.arguments if a.memory == "global"]
    if "real" not in spec.constants:  # a type that a constant decides
        assert [(a.name, a.type) for a in kernel.arguments] == kinds


def test_template_arguments_become_parameters_with_names_of_their_own() -> None:
    scan = scan_kernels(TEMPLATE)
    (kernel,) = scan.kernels
    assert kernel.template == (("typename", "T"), ("int", "BLOCK"), ("bool", "FLAG"))
    assert [(a.name, a.type, a.pointer, a.width) for a in kernel.arguments] == [
        ("out", "", True, 1),
        ("in", "float32", True, 4),
        ("size", "uint32", False, 1),
        ("k", "float64", False, 1),
    ]
    made = from_kernel(Path("/k/add.cu"), scan, kernel, Path("/k"))
    spec = read(made.text, Path("/k"))
    assert spec.kernel is not None
    assert spec.kernel.template == "float, block_size_x, flag_value"
    assert spec.parameters["flag_value"] == (0, 1)
    assert any("type 'T *out' is not known" in line for line in made.guessed)
    assert any("UNROLL = 4" in line and "#ifndef" in line for line in made.guessed)
    assert "BLOCK" not in {**spec.parameters, **spec.constants}, "a macro of that name would break the template"


def test_macros_that_are_set_from_outside_are_parameters_where_small_and_constants_where_large() -> None:
    scan = scan_kernels(
        "#ifndef TILE\n#define TILE 16\n#endif\n#ifndef N\n#define N 1000000\n#endif\n"
        "#ifndef GUARD_H\n#define GUARD_H\n"
        "__global__ void f(float *x) { x[0] = TILE * N; }\n#endif\n"
    )
    found = {suggestion.name: (suggestion.values, suggestion.tunable) for suggestion in scan.suggestions}
    assert found["TILE"][1]
    assert 16 in found["TILE"][0]
    assert found["N"] == ((1000000,), False)
    assert "GUARD_H" not in found


def test_only_what_was_chosen_is_a_parameter_and_the_source_still_compiles() -> None:
    path = resources() / "kernels" / "gemm.cu"
    scan = read_kernels(path)
    made = from_kernel(path, scan, scan.kernels[0], path.parent, chosen={"block_size_x": [32], "block_size_y": [8]})
    spec = read(made.text, path.parent)
    assert spec.parameters == {"block_size_x": (32,), "block_size_y": (8,)}
    assert {"n", "tile_size_x", "tile_size_y"} <= set(spec.constants), "it uses them without declaring them"


def test_a_reference_kernel_of_the_same_source_verifies() -> None:
    path = resources() / "kernels" / "n_body.cu"
    scan = read_kernels(path)
    spec = read(from_kernel(path, scan, scan.kernels[0], path.parent).text, path.parent)
    assert spec.kernel is not None
    assert spec.kernel.verify is not None
    assert spec.kernel.verify.reference == "n_body_reference"


def test_a_source_without_a_kernel_and_an_unknown_kernel_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "host.cu"
    source.write_text("int main() { return 0; }\n// __global__ void commented(float *x) {}\n")
    with pytest.raises(InputError, match="no __global__ function"):
        read_kernels(source)
    with pytest.raises(InputError, match="no kernel 'zz'"):
        kernel_called(scan_kernels(TEMPLATE), "zz", source)


def test_a_command_with_its_fields_and_patterns() -> None:
    run = "./bench --size {n} --mode {mode} --again {n}"
    assert fields_of(run) == ("n", "mode")
    patterns = patterns_in("Using 3 threads\nResult: 12.5 GFLOP/s\nwall time = 3e-2 s\n")
    assert set(patterns) == {"result", "wall_time"}
    made = from_command(run, {"n": [1024, 2048], "mode": ["fast"]}, patterns)
    spec = read(made.text, Path("/c"))
    assert spec.command is not None
    assert spec.command.values == patterns
    assert spec.parameters == {"n": (1024, 2048), "mode": ("fast",)}
    assert spec.objective is not None
    assert spec.objective.goal.name == "result"


PIECES = (
    *("__global__ ", "void ", "f", "(", ")", "{", "}", "float *x", ", int n", "template <int B> ", "#define A"),
    *(" A(x) ", "B##C", "\n", "\n#ifndef T\n#define T 4\n#endif\n", "#if U\n#endif\n", '"', "/*", "*/", "//", "\\\n"),
    *(";", "[U]", "<", ">", "__launch_bounds__(", "typedef double real;", "struct S {", "é", "\0", "1.0f", "0x1f"),
    "#define real real\n",
)
pieces = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=60)


@given(pieces)
def test_whatever_the_source_there_is_a_scan_and_the_reader_accepts_what_is_made_of_it(parts: list[str]) -> None:
    scan = scan_kernels("".join(parts))
    for kernel in scan.kernels:
        read(from_kernel(Path("/k/x.cu"), scan, kernel, Path("/k")).text, Path("/k"))


@pytest.mark.parametrize(
    "unit", ["template <", "a, ", "__global__ x(", "struct a ", "#define A A\n", "int a = (", "typedef a ", "x * "]
)
def test_a_long_source_is_scanned_in_bounded_work(unit: str) -> None:
    start = time.process_time()
    scan_kernels(unit * (100_000 // len(unit)))
    assert time.process_time() - start < 60, "no pattern takes more than linear work by much"


def test_a_kernel_in_opencl_becomes_a_specification_in_opencl(tmp_path: Path) -> None:
    source = tmp_path / "add.cl"
    source.write_text(
        "#ifndef tile\n#define tile 2\n#endif\n"
        "__kernel void add(__global float *y, __constant float *x, __local float *room, const int count) {\n"
        "    room[get_local_id(0)] = x[get_global_id(0)];\n    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    for (int i = 0; i < tile; i++)\n"
        "        y[get_global_id(0) * tile + i] = room[get_local_id(0)] * get_local_id(1);\n}\n"
    )
    scan = read_kernels(source)
    (kernel,) = scan.kernels
    assert kernel.dimensions == 2
    path = tmp_path / "add.toml"
    path.write_text(from_kernel(source, scan, kernel, tmp_path).text)
    spec = load_specification(path)
    assert spec.kernel is not None
    assert spec.kernel.language == "OpenCL"
    assert [(a.name, a.memory, a.output) for a in spec.kernel.arguments] == [
        ("y", "global", True),
        ("x", "global", False),
        ("room", "local", False),
        ("count", "global", False),
    ]
    assert "tile" in spec.parameters
