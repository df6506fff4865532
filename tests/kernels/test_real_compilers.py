"""The product's own way to nvcc and to NVRTC, with each that this machine has: neither needs a GPU to compile.

NVRTC alone comes with `pip install nvidia-cuda-nvrtc`.
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fixtures.kernels_on_cpu import CUDA_EXAMPLES

from app.engine.results.measurement import State
from app.engine.runner.cuda.comparer import SOURCE, TYPES
from app.engine.runner.cuda.nvrtc import library_version
from app.engine.runner.cuda.toolchain import Toolchain, cuda_compiler, symbol
from app.engine.runner.kernels.compiler import Compiler
from app.engine.runner.kernels.process import KernelFailed
from app.engine.session.load import load_specification
from app.engine.space.build import build_space
from app.engine.workloads.source_kernel import Build, SourceKernel
from app.sensors.limits import limits_of

needs_nvrtc = pytest.mark.skipif(library_version() is None, reason="no NVRTC library (nvidia-cuda-nvrtc)")
NVRTC = pytest.param("nvrtc", marks=needs_nvrtc)
NVCC = pytest.param("nvcc", marks=pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc"))


TOOLCHAINS = {"nvcc": Toolchain(("nvcc",), "any"), "nvrtc": Toolchain(nvrtc="any")}


@pytest.fixture(params=[NVCC, NVRTC])
def compiler(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Compiler]:
    made = cuda_compiler((9, 0), toolchain=TOOLCHAINS[request.param], folder=tmp_path / "cubins", jobs=1)
    yield made
    made.close()


def build(text: str, *options: str, include: tuple[Path, ...] = ()) -> Build:
    return Build(text, (), include, options)


def facts(image: bytes, name: str) -> tuple[int, int]:
    """Registers per thread and bytes of static shared memory of the image's one kernel, as its sections tell them."""
    (at,), (size, count, names) = struct.unpack_from("<Q", image, 40), struct.unpack_from("<HHH", image, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, at + place * size) for place in range(count)]
    sections: dict[str, tuple[int, int]] = {}
    for header in headers:
        start = headers[names][4] + header[0]
        sections[image[start : image.index(b"\0", start)].decode()] = (header[4], header[5])
    at, size = sections[".nv.info"]
    told = image[at : at + size]
    [(_, registers)] = [  # attribute 0x2f with a value of 8 bytes: symbol and registers
        struct.unpack_from("<II", told, found.end()) for found in re.finditer(rb"\x04\x2f\x08\x00", told)
    ]
    return registers, sections.get(f".nv.shared.{name}", (0, 0))[1]


@pytest.mark.parametrize("compiler", [NVRTC], indirect=True)  # nvcc's are among the examples' own tests
@pytest.mark.parametrize("path", CUDA_EXAMPLES, ids=lambda path: path.stem)
def test_an_example_compiles(compiler: Compiler, path: Path) -> None:
    spec, limits = load_specification(path), limits_of((9, 0), 132)
    space = build_space(spec.parameters, spec.restrictions, spec.constants, limits)
    row = int(np.random.default_rng(0).integers(space.size))
    prepared = SourceKernel.of(spec, limits, 232448).prepare(space.configuration(row))
    image = compiler.image(prepared.build)
    assert symbol(image, prepared.launch.name)
    if prepared.reference is not None:
        assert symbol(image, prepared.reference.name)


def test_the_board_is_told_registers_and_shared_memory(compiler: Compiler) -> None:
    text = """
    extern "C" __global__ void __launch_bounds__(128) turn(float *y) {
        __shared__ float all[size];
        all[threadIdx.x] = y[threadIdx.x];
        __syncthreads();
        y[threadIdx.x] = all[size - 1 - threadIdx.x];
    }
    """
    images = [compiler.image(build(f"#define size {size}\n{text}")) for size in (100, 300)]
    (registers, less), (_, more) = [facts(image, "turn") for image in images]
    assert 4 <= registers <= 32
    assert more - less == 800  # beside what the system keeps for itself


@needs_nvrtc
def test_a_board_newer_than_nvrtc_gets_code_that_its_driver_translates(tmp_path: Path) -> None:
    newer = cuda_compiler((99, 0), toolchain=TOOLCHAINS["nvrtc"], folder=tmp_path / "newer", jobs=1)
    try:
        image = newer.image(build("__global__ void f(float *y) { y[0] = 1; }"))
    finally:
        newer.close()
    assert b".version" in image
    assert image.endswith(b"\0"), "the driver reads text up to there"
    assert symbol(image, "f") == "_Z1fPf"


@needs_nvrtc
def test_a_board_older_than_nvrtc_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    older = cuda_compiler((2, 0), toolchain=TOOLCHAINS["nvrtc"], folder=tmp_path / "older", jobs=1)
    try:
        with pytest.raises(
            KernelFailed, match=r"does not compile for a board as old as this: for Maxwell, Pascal and Volta"
        ) as failed:
            older.image(build("__global__ void f(float *y) { y[0] = 1; }"))
    finally:
        older.close()
    assert "\n" not in failed.value.what


@pytest.mark.parametrize("compiler", [NVRTC], indirect=True)
def test_an_image_does_not_depend_on_what_its_process_compiled_before(compiler: Compiler, tmp_path: Path) -> None:
    texts = [f'extern "C" __global__ void f(float *y) {{ y[threadIdx.x] = {index}; }}' for index in range(3)]
    images = [compiler.image(build(text)) for text in texts]
    other = cuda_compiler((9, 0), toolchain=TOOLCHAINS["nvrtc"], folder=tmp_path / "other", jobs=1)
    try:
        assert [other.image(build(text)) for text in reversed(texts)] == images[::-1]
    finally:
        other.close()


def test_a_mistake_is_placed_in_the_users_own_file(compiler: Compiler, tmp_path: Path) -> None:
    (tmp_path / "scale.cu").write_text('extern "C" __global__ void scale(float *y)\n{\n    y[0] = gone;\n}\n')
    path = tmp_path / "scale.toml"
    path.write_text(
        '[kernel]\nname = "scale"\nsource = "scale.cu"\nproblem_size = [32]\n'
        'arguments = [{ name = "y", type = "float32", shape = [32], output = true }]\n[parameters]\na = [1, 2]\n'
    )
    prepared = SourceKernel.of(load_specification(path), limits_of((9, 0), 132)).prepare({"a": 1})
    with pytest.raises(KernelFailed, match=r'scale\.cu\(3\): error: identifier "gone" is undefined'):
        compiler.image(prepared.build)


def test_the_comparer_needs_no_headers(compiler: Compiler) -> None:
    assert "#include" not in SOURCE
    image = compiler.image(build(SOURCE))
    assert all(symbol(image, f"difference_{kind}") for kind in TYPES)


def test_a_template_is_instantiated_and_found(compiler: Compiler, tmp_path: Path) -> None:
    (tmp_path / "scale.cu").write_text(
        "template <int N, typename T> __global__ void __launch_bounds__(32 * N) scale(T *y, const T *__restrict__ x)"
        " { y[threadIdx.x] = N * x[threadIdx.x]; }\n"
    )
    path = tmp_path / "scale.toml"
    path.write_text(
        '[kernel]\nname = "scale"\nsource = "scale.cu"\nproblem_size = [32]\ntemplate = "n, double"\narguments = ['
        '{ name = "y", type = "float64", shape = [32], output = true }, { name = "x", type = "float64", shape = [32] }]'
        "\n[parameters]\nn = [1, 2]\n"
    )
    kernel = SourceKernel.of(load_specification(path), limits_of((9, 0), 132))
    images = [compiler.image(kernel.prepare({"n": n}).build) for n in (1, 2)]
    assert [symbol(image, "scale") for image in images] == ["_Z5scaleILi1EdEvPT0_PKS0_", "_Z5scaleILi2EdEvPT0_PKS0_"]


def test_headers_of_ones_own_and_options_of_nvccs(compiler: Compiler, tmp_path: Path) -> None:
    (tmp_path / "inner.h").write_text("#define factor 3\n")
    text = '#include "inner.h"\nextern "C" __global__ void f(float *y) { y[0] = factor * half; }\n'
    options = (
        "-O3",
        "-Xcompiler",
        "-Wall",
        "-Xptxas",
        "-O3,-v",
        "--resource-usage",
        "-use_fast_math",
        "-lineinfo",
        "-std=c++17",
        "-Dhalf=0.5f",
    )
    assert symbol(compiler.image(build(text, *options, include=(tmp_path,))), "f") == "f"


def test_what_the_compiler_and_the_assembler_say_is_kept(compiler: Compiler) -> None:
    made = compiler.compile(build('extern "C" __global__ void f(float *y) { int unused; y[0] = 1; }', "-Xptxas", "-v"))
    assert re.search(r'kernel\.cu\(1\): warning.*"unused" was declared', made.said)
    assert re.search(r"ptxas info +: Used \d+ registers", made.said)
    assert not compiler.compile(build('extern "C" __global__ void f(float *y) { y[0] = 1; }')).said


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ('extern "C" __global__ void f() { y = 1; }', (), r'kernel\.cu\(1\): error: identifier "y" is undefined'),
        ('extern "C" __global__ void f() {}', ("--no-such-option",), r"(?i)unknown option|unrecognized option"),
        ('#include "no_such.h"', (), r"no_such\.h"),
    ],
)
def test_what_does_not_compile_is_told_in_the_compilers_words(
    compiler: Compiler, text: str, options: tuple[str, ...], said: str
) -> None:
    with pytest.raises(KernelFailed) as failed:
        compiler.image(build(text, *options))
    assert failed.value.state is State.COMPILE
    assert re.search(said, failed.value.what)
    assert "Traceback" not in failed.value.what
