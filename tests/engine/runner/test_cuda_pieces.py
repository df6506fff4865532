"""The pieces of the pipeline of real boards, one by one: kernels as specified, images, arguments, frames."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.conversation import receive, send
from app.base.errors import InputError, WattridgeError
from app.engine.children.scratch import scratch_folder
from app.engine.results.measurement import State
from app.engine.runner.cuda import nvrtc, toolchain
from app.engine.runner.cuda.comparer import TYPES, compared_type
from app.engine.runner.cuda.nvrtc import architecture_options, device_options, header_options
from app.engine.runner.cuda.occupancy import occupancy, resident_blocks
from app.engine.runner.cuda.toolchain import Toolchain, cuda_compiler, symbol
from app.engine.runner.cuda.toolkit import library_places, pip_folders, toolkits
from app.engine.runner.kernels.backend import difference
from app.engine.runner.kernels.compiler import MAX_MESSAGE, Compiler
from app.engine.runner.kernels.process import KernelFailed
from app.engine.session.load import load_specification
from app.engine.space.array_expressions import evaluate_array, number_type, widened
from app.engine.specification.check import TYPES as ALL_TYPES
from app.engine.workloads.kernel_arguments import Argument, CallPlan, Reference, make_array, make_references
from app.engine.workloads.source_kernel import Build, KernelRefused, SourceKernel
from app.sensors.limits import limits_of

FAKE = Toolchain((sys.executable, str(Path(__file__).parents[1] / "fake_cuda.py")), "fake 1")
LIMITS = limits_of((9, 0), 132)


# --- array expressions


def test_array_expressions_are_numpys() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((5, 7)), rng.random((7, 3))
    given = {"a": a, "b": b, "n": 4.0}
    cases = {
        "a @ b": a @ b,
        "transpose(a) * 2 - 1": a.T * 2 - 1,
        "sum(a * a)": np.sum(a * a),
        "sqrt(abs(-a)) / n": np.sqrt(a) / 4,
        "exp(minimum(a, 0.5))": np.exp(np.minimum(a, 0.5)),
        "a ** 2 // 0.1 % 3": a**2 // 0.1 % 3,
    }
    for text, expected in cases.items():
        np.testing.assert_allclose(evaluate_array(text, "here", given), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "complex64"])
def test_convolution_is_the_textbooks(kind: str) -> None:
    rng = np.random.default_rng(1)
    image, taps = (rng.integers(0, 9, shape).astype(kind) for shape in ((9, 8), (3, 2)))
    expected = np.zeros((7, 7), kind)
    for y in range(7):
        for x in range(7):
            expected[y, x] = sum(image[y + i, x + j] * taps[2 - i, 1 - j] for i in range(3) for j in range(2))
    reported = evaluate_array("convolve(image, taps)", "here", {"image": image, "taps": taps})
    np.testing.assert_allclose(reported, expected, rtol=1e-5)


@pytest.mark.parametrize(("kernel", "stride", "pad"), [(1, 1, 0), (3, 1, 1), (3, 2, 0), (2, 3, 2)])
def test_a_convolution_of_networks_is_the_one_by_its_definition(kernel: int, stride: int, pad: int) -> None:
    rng = np.random.default_rng(2)
    images, weights = rng.random((2, 7, 6, 3)), rng.random((kernel, kernel, 3, 4))
    high, wide = ((size + 2 * pad - kernel) // stride + 1 for size in (7, 6))
    expected = np.zeros((2, high, wide, 4))
    for n, y, x, r, s in np.ndindex(2, high, wide, kernel, kernel):
        row, column = y * stride - pad + r, x * stride - pad + s
        if 0 <= row < 7 and 0 <= column < 6:
            expected[n, y, x] += images[n, row, column] @ weights[r, s]
    given = {"x": images, "w": weights, "STRIDE": float(stride), "PAD": float(pad)}
    np.testing.assert_allclose(evaluate_array("conv2d(x, w, STRIDE, PAD)", "here", given), expected, rtol=1e-12)


def test_half_precision_is_calculated_in_single() -> None:
    a = np.full((4, 4), 300.0, np.float16)
    assert evaluate_array("a @ a", "here", {"a": a})[0, 0] == 360_000.0  # beyond half's range


@pytest.mark.parametrize(
    "text", ["a @ c", "a @ a", "dot(a)", "a.sum()", "conv2d(a, a, 1, 0)", "__import__('os')", "a[0]"]
)
def test_what_cannot_be_calculated_is_one_clear_line(text: str) -> None:
    with pytest.raises(InputError):
        evaluate_array(text, "here", {"a": np.ones((2, 3))})


# --- arguments and references


def argument(**given: Any) -> Argument:
    plain = {"name": "a", "type": "float32", "shape": (8,), "fill": "zeros", "value": None, "output": False}
    return Argument(**{**plain, "constant": False, "seed": 1, **given})


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_arguments_of_every_type_and_fill(kind: str) -> None:
    dtype = number_type(kind)
    for fill in ("zeros", "ones", "random", "range"):
        made = make_array(argument(type=kind, fill=fill), 0)
        assert (made.dtype, made.shape) == (dtype, (8,))
    random = make_array(argument(type=kind, fill="random", shape=(1000,)), 0)
    assert len(np.unique(random)) >= 2
    assert np.array_equal(random, make_array(argument(type=kind, fill="random", shape=(1000,)), 0))
    assert not np.array_equal(random, make_array(argument(type=kind, fill="random", shape=(1000,)), 1))
    scalar = make_array(argument(type=kind, shape=None, value=1), 0)
    assert (scalar.dtype, scalar.shape, widened(scalar)[()]) == (dtype, (), 1)


def test_a_file_of_numbers_fills_an_argument(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(8))
    filled = make_array(argument(fill=str(tmp_path / "a.npy")), 0)
    assert filled.tolist() == list(range(8))
    with pytest.raises(InputError, match="shape"):
        make_array(argument(fill=str(tmp_path / "a.npy"), shape=(9,)), 0)
    (tmp_path / "b.npy").write_bytes(b"no numbers")
    with pytest.raises(InputError, match=r"b\.npy"):
        make_array(argument(fill=str(tmp_path / "b.npy")), 0)
    np.save(tmp_path / "c.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(InputError):
        make_array(argument(fill=str(tmp_path / "c.npy")), 0)


def test_a_plan_survives_the_pipe_and_references_are_kept_for_the_spare_process(tmp_path: Path) -> None:
    plan = CallPlan(
        (argument(name="y", output=True), argument(name="x", fill="range")),
        (Reference("y", "k * x", "expression", 1e-5, 0.0),),
        {"k": 3.0},
    )
    buffer = io.BytesIO()
    send(buffer, {"plan": plan.as_message()}, [b"image"])
    buffer.seek(0)
    message, blocks = receive(buffer) or ({}, [])
    assert CallPlan.of_message(message["plan"]) == plan
    assert blocks == [b"image"]
    arrays = {a.name: make_array(a, i) for i, a in enumerate(plan.arguments)}
    made = make_references(plan, arrays, tmp_path)
    assert made["y"].tolist() == [3.0 * i for i in range(8)]
    arrays["x"] = arrays["x"] + 1  # would give others
    assert make_references(plan, arrays, tmp_path)["y"].tolist() == made["y"].tolist()


def test_a_reference_of_another_shape_is_one_clear_line() -> None:
    plan = CallPlan((argument(name="y", output=True),), (Reference("y", "y @ y + a", "expression", 0, 0),), {})
    with pytest.raises(InputError, match="shape"):
        make_references(plan, {"y": np.ones(8, np.float32), "a": np.ones(3)}, None)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.integers(0, 39))
def test_a_single_wrong_value_is_found(values: list[float], at: int) -> None:
    expected = np.asarray(values)
    reported = expected.copy()
    assert difference(reported, expected, 1e-6, 1e-9) == (0, -1, 0.0)
    at %= len(values)
    reported[at] += 1.0 + abs(reported[at])
    found = difference(reported, expected, 1e-6, 1e-9)
    assert (found.wrong, found.first) == (1, at)


def test_what_is_no_number_is_wrong_unless_expected() -> None:
    nan, inf = np.nan, np.inf
    reported = np.array([nan, 1, nan, inf, inf, 1])
    expected = np.array([nan, nan, 1, inf, -inf, inf])
    assert difference(reported, expected, 0.1, 0.1).wrong == 4
    assert difference(reported, expected, 0.1, 0.1).first == 1


def test_every_type_can_be_compared_on_the_device() -> None:
    assert all(compared_type(kind)[0] in TYPES for kind in ALL_TYPES)


# --- kernels as specified


def kernel(folder: Path, **changes: str) -> SourceKernel:
    """A kernel from a specification whose lines may be changed."""
    lines = {
        "name": '"scale"',
        "source": '"scale.cu"',
        "problem_size": '["n * channels", "n"]',
        "grid_divisors": '{ x = ["block_size_x", "tile"] }',
        "shared_memory": '"4 * block_size_x * tile"',
        "arguments": '[{ name = "y", type = "float64", shape = ["n", 2], output = true },'
        ' { name = "x", type = "float64", shape = ["n", 2], fill = "ones" },'
        ' { name = "k", type = "float32", value = "tile / 2" },'
        ' { name = "weights", type = "float32", shape = [16], memory = "constant", seed = 7, fill = "random" }]',
        "verify": '{ reference = "x * k" }',
        **changes,
    }
    (folder / "scale.cu").write_text("")
    path = folder / "scale.toml"
    text = "\n".join(f"{key} = {value}" for key, value in lines.items() if value)
    path.write_text(
        f"[kernel]\n{text}\n[constants]\nn = 1000\nchannels = 3\nreal = 'double'\nfast = true\n"
        "[parameters]\nblock_size_x = [32, 64]\nblock_size_y = [1, 2, 64]\ntile = [1, 3]\n"
    )
    return SourceKernel.of(load_specification(path), LIMITS, 232448)


CONFIGURATION = {"block_size_x": 32, "block_size_y": 2, "tile": 3}


def test_a_configuration_becomes_defines_a_launch_and_arguments(tmp_path: Path) -> None:
    prepared = kernel(tmp_path).prepare(CONFIGURATION)
    assert prepared.launch.grid == (32, 1000, 1)  # ceil(3000 / (32 * 3)) and 1000 / 1
    assert prepared.launch.block == (32, 2, 1)
    assert prepared.launch.shared_byte == 4 * 32 * 3
    for line in ("n 1000", "real double", "fast 1", "block_size_x 32", "block_size_y 2", "tile 3"):
        assert f"#define {line}\n" in prepared.build.text
    assert prepared.build.text.rstrip().endswith('scale.cu"')
    y, x, k, weights = prepared.calls.arguments
    assert (y.shape, y.output, x.fill, k.value, k.shape) == ((1000, 2), True, "ones", 1.5, None)
    assert (weights.constant, weights.seed) == (True, 7)
    (reference,) = prepared.calls.references
    assert (reference.output, reference.kind) == ("y", "expression")


def test_a_template_is_instantiated(tmp_path: Path) -> None:
    text = kernel(tmp_path, template='"block_size_x, float"').prepare(CONFIGURATION).build.text
    assert "scale<block_size_x, float>;" in text.splitlines()[-1]


def test_what_the_board_cannot_launch_is_known_at_once(tmp_path: Path) -> None:
    for changes in ({"block_size_y": 64}, {"tile": 0}):
        with pytest.raises(KernelRefused) as refused:
            kernel(tmp_path).prepare({**CONFIGURATION, **changes})
        assert refused.value.state is State.CONSTRAINTS
    with pytest.raises(KernelRefused, match="shared memory"):
        kernel(tmp_path, shared_memory='"300000"').prepare(CONFIGURATION)


def test_several_outputs_have_a_reference_each(tmp_path: Path) -> None:
    arguments = (
        '[{ name = "y", type = "float32", shape = ["n"], output = true },'
        ' { name = "z", type = "float32", shape = [1], output = true },'
        ' { name = "x", type = "float32", shape = ["n"] }]'
    )
    verify = '{ reference = { y = "2 * x", z = "sum(x)" } }'
    calls = kernel(tmp_path, arguments=arguments, verify=verify).prepare(CONFIGURATION).calls
    assert [(r.output, r.text) for r in calls.references] == [("y", "2 * x"), ("z", "sum(x)")]
    with pytest.raises(InputError, match="2 outputs, and one reference"):
        kernel(tmp_path, arguments=arguments, verify='{ reference = "2 * x" }')
    by_kernel = kernel(tmp_path, arguments=arguments, verify='{ reference = "scale_slowly" }').prepare(CONFIGURATION)
    assert by_kernel.reference is not None
    assert by_kernel.reference.name == "scale_slowly"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"source": '"gone.cu"'}, "no such source"),
        ({"problem_size": ""}, "problem_size"),
        ({"verify": '{ reference = "q + 1" }'}, "unknown name 'q'"),
        ({"verify": '{ reference = "a.csv" }'}, r"no \.npy file"),
    ],
)
def test_what_cannot_run_is_reported_before_anything_starts(tmp_path: Path, changes: dict[str, str], what: str) -> None:
    with pytest.raises(InputError, match=what):
        kernel(tmp_path, **changes)


# --- images


@pytest.fixture
def compiler(tmp_path: Path) -> Iterator[Compiler]:
    made = cuda_compiler((9, 0), toolchain=FAKE, folder=tmp_path / "cubins", jobs=2, most_bytes=2000)
    yield made
    made.close()


def test_an_image_depends_on_all_that_makes_it(compiler: Compiler, tmp_path: Path) -> None:
    source, header = tmp_path / "scale.cu", tmp_path / "inner.h"
    source.write_text('#include "inner.h"\n')
    header.write_text("// one\n")
    build = Build("text", (source,), (tmp_path,), ("-O3",))
    keys = {compiler.key(build)}
    keys.add(compiler.key(Build("other", (source,), (tmp_path,), ("-O3",))))
    keys.add(compiler.key(Build("text", (source,), (tmp_path,), ())))
    header.write_text("// two\n")
    keys.add(compiler.key(build))
    other = cuda_compiler((8, 0), toolchain=FAKE, folder=tmp_path / "cubins", jobs=1)
    newer = cuda_compiler((9, 0), toolchain=Toolchain(FAKE.command, "fake 2"), folder=tmp_path / "cubins", jobs=1)
    both = cuda_compiler((9, 0), toolchain=Toolchain(FAKE.command, "fake 1", "NVRTC 1"), folder=tmp_path, jobs=1)
    library = cuda_compiler((9, 0), toolchain=Toolchain(nvrtc="NVRTC 1"), folder=tmp_path, jobs=1)
    for made in (other, newer, both, library):
        keys.add(made.key(build))
        made.close()
    assert len(keys) == 8


def test_the_cache_is_bounded_and_what_was_used_last_stays(compiler: Compiler, tmp_path: Path) -> None:
    builds = [Build(f"#define number {position}\n#define text {'x' * 40}\n", (), (), ()) for position in range(6)]
    for index, build in enumerate(builds):
        compiler.image(build)
        for age, path in enumerate(sorted((tmp_path / "cubins").glob("*.image"), key=os.path.getmtime)):
            os.utime(path, (index * 100 + age, index * 100 + age))
    kept = list((tmp_path / "cubins").glob("*.image"))
    assert 1 < len(kept) < 6
    assert sum(path.stat().st_size for path in kept) <= 2000
    compiled = compiler.compiled
    compiler.image(builds[-1])
    assert compiler.compiled == compiled
    compiler.image(builds[0])
    assert compiler.compiled == compiled + 1


def test_the_compilers_message_is_kept_without_its_folder(compiler: Compiler) -> None:
    with pytest.raises(KernelFailed) as failed:
        compiler.image(Build("#define fault broken\n", (), (), ()))
    assert failed.value.state is State.COMPILE
    assert failed.value.what == 'kernel.cu(3): error: expected a ";"'


def test_what_the_compiler_says_of_an_image_is_kept_with_it(compiler: Compiler, tmp_path: Path) -> None:
    warns = Build("#define fault warns\n", (), (), ())
    made = compiler.compile(warns)
    assert made.said == "kernel.cu(7): warning #177-D: variable was declared but never referenced"
    assert b".text.scale" in made.image
    assert compiler.compile(warns)[:2] == made[:2], "all but what it took"
    assert compiler.compiled == 1
    assert compiler.compile(Build("#define fault none\n", (), (), ())).said == ""


def test_what_a_compiler_says_without_end_is_cut(compiler: Compiler) -> None:
    warns, fails = (Build(f"#define says 100000\n#define fault {fault}\n", (), (), ()) for fault in ("none", "broken"))
    assert compiler.compile(warns).said == "x" * MAX_MESSAGE
    with pytest.raises(KernelFailed) as failed:
        compiler.compile(fails)
    assert failed.value.what == "x" * MAX_MESSAGE


def test_the_same_files_in_another_temporary_folder_are_the_same_image_and_other_files_are_not(
    compiler: Compiler,
) -> None:
    keys = []
    for text in ("int x;", "int x;", "int y;"):
        folder = scratch_folder()
        (folder / "k.cu").write_text('#include "k.h"\n')
        (folder / "k.h").write_text(text)
        keys.append(compiler.key(Build(f'#include "{folder / "k.cu"}"\n', (folder / "k.cu",), (folder,), ("-O3",))))
    assert keys[0] == keys[1] != keys[2]


def test_a_damaged_image_on_disk_is_made_anew(compiler: Compiler, tmp_path: Path) -> None:
    build = Build("#define fault none\n", (), (), ())
    made = compiler.compile(build)
    [kept] = (tmp_path / "cubins").iterdir()
    for damage in (b"", b"\x7fELF without what was said", b"{\n"):
        kept.write_bytes(damage)
        assert compiler.compile(build)[:2] == made[:2], "all but what it took"
    assert compiler.compiled == 4


def test_kernels_are_found_by_their_plain_and_their_mangled_names() -> None:
    image = b"\x7fELF.text._Z5scaleILi32EfEvPT0_\0.text.other\0.text._Z10scale_moreiPf\0.text._ZN4mine4axpyEPf\0"
    assert symbol(image, "other") == "other"
    assert symbol(image, "scale") == "_Z5scaleILi32EfEvPT0_"
    assert symbol(image, "axpy") == "_ZN4mine4axpyEPf"
    with pytest.raises(KernelFailed, match="no kernel 'scal'"):
        symbol(image, "scal")
    ptx = b".visible .entry _Z5scaleILi32EfEvPT0_(\n.visible .entry other(\n"
    assert (symbol(ptx, "scale"), symbol(ptx, "other")) == ("_Z5scaleILi32EfEvPT0_", "other")


# --- occupancy


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "blocks"),
    [
        (1024, 32, 0, 2),
        (1024, 65, 0, 0),  # 65 registers round up to 72 a thread: more than a block may have
        (256, 32, 0, 8),
        (256, 128, 0, 2),
        (256, 32, 48 * 1024, 4),  # 48 kB and the reserved 1 kB of 228 kB
        (32, 16, 0, 32),
        (33, 16, 0, 32),  # two warps
    ],
)
def test_occupancy_on_hopper(threads: int, registers: int, shared: int, blocks: int) -> None:
    asked = {"threads": threads, "registers": registers, "shared_byte": shared}
    assert resident_blocks(LIMITS, **asked) == blocks
    assert occupancy(LIMITS, **asked) == pytest.approx(blocks * -(-threads // 32) * 32 / 2048)


# --- which compiler


@pytest.mark.skipif(os.name != "posix", reason="its programs are scripts for sh")
@pytest.mark.parametrize(
    ("programs", "library", "chosen"),
    [
        (("nvcc", "gcc"), "13.0", "NVRTC 13.0, else nvcc V1.2"),
        (("nvcc",), "13.0", "NVRTC 13.0"),  # nvcc cannot work without a compiler for the host
        (("nvcc",), None, "nvcc V1.2"),  # it says best itself what it lacks
        (("nvcc", "gcc"), None, "nvcc V1.2"),
        ((), "13.0", "NVRTC 13.0"),
        ((), None, None),
    ],
)
def test_the_compilers_that_can_work_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: tuple[str, ...], library: str | None, chosen: str | None
) -> None:
    found = find_where(tmp_path, monkeypatch, programs, library)
    if chosen is None:
        with pytest.raises(WattridgeError, match="no CUDA compiler"):
            found()
    else:
        assert found().version == chosen


@pytest.mark.skipif(os.name != "posix", reason="its programs are scripts for sh")
def test_the_user_chooses_one_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_where(tmp_path, monkeypatch, ("nvcc", "gcc"), "13.0")
    for asked, chosen in (("nvcc", "nvcc V1.2"), ("nvrtc", "NVRTC 13.0")):
        monkeypatch.setenv(toolchain.CHOICE, asked)
        assert found().version == chosen
    monkeypatch.setenv(toolchain.CHOICE, "clang")
    with pytest.raises(InputError, match="clang"):
        found()
    monkeypatch.setenv(toolchain.CHOICE, "nvcc")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(WattridgeError, match="nvcc is not here, and WATTRIDGE_CUDA_COMPILER asks for it"):
        found()


def find_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: tuple[str, ...], library: str | None
) -> Callable[[], Toolchain]:
    """`find_toolchain` on a machine with these programs and that release of NVRTC, as it is at each call."""
    for name in programs:
        (tmp_path / name).write_text("#!/bin/sh\necho release 1, V1.2\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NVCC_CCBIN", raising=False)
    monkeypatch.setattr(toolchain, "toolkits", list)
    monkeypatch.delenv(toolchain.CHOICE, raising=False)
    monkeypatch.setattr(nvrtc, "library_version", lambda: library)
    return toolchain.find_toolchain.__wrapped__  # without what is kept of this machine


# --- NVRTC without its library (with it: tests/kernels/test_real_compilers.py)


def test_what_is_the_hosts_is_kept_from_nvrtc() -> None:
    given = ["-arch=sm_90", "-O3", "-Xcompiler", "-Wall", "-Xcompiler=-g", "-ccbin", "g++", "-O", "2", "-Ofc=mid", "-G"]
    assert device_options(given) == ["-arch=sm_90", "-Ofc=mid", "-G"]
    given = ["-lm", "-L/usr/lib", "-t", "4", "--threads=4", "-g", "-m64", "--extended-lambda", "-lineinfo", "-DX"]
    assert device_options(given) == ["-lineinfo", "-DX"]


def test_what_nvrtc_calls_otherwise_is_translated() -> None:
    assert device_options(["-Xptxas", "-O3,-v", "--ptxas-options=-v"]) == [
        *("-Xptxas", "-O3", "-Xptxas", "-v"),
        *("-Xptxas", "-v"),
    ]
    assert device_options(["--resource-usage", "-isystem", "/opt"]) == ["-Xptxas", "-v", "-I", "/opt"]
    assert device_options(["-I/opt", "-I", "/usr", "--system-include=/opt"]) == ["-I/opt", "-I", "/usr", "-I", "/opt"]


def test_a_board_newer_than_nvrtc_gets_ptx_of_the_newest_it_knows_and_an_older_one_nothing() -> None:
    known = [70, 80, 90]
    assert architecture_options(["-arch=sm_80", "-DX"], known) == (["-arch=sm_80", "-DX"], False)
    assert architecture_options(["-arch=sm_100", "-DX"], known) == (["-arch=compute_90", "-DX"], True)
    assert architecture_options(["-arch=sm_60"], known) == ([], False)
    assert architecture_options(["-arch=sm_60"], []) == (["-arch=sm_60"], False), "a library that does not say"


def test_a_toolkit_that_the_environment_names_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"):
        monkeypatch.delenv(name, raising=False)
    before = toolkits()
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "one"))
    assert toolkits() == [tmp_path / "one", *before]
    for component in ("cu13", "cuda_nvrtc"):
        (tmp_path / "packages" / "nvidia" / component).mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path / "packages")
    assert [folder.name for folder in pip_folders()[:2]] == ["cu13", "cuda_nvrtc"]
    for place in ("one", "packages/nvidia/cuda_nvrtc"):
        (tmp_path / place / "lib").mkdir(parents=True)
        (tmp_path / place / "lib" / "libnvrtc.so.12").touch()
    ours, pips, *of_the_machine = library_places("nvrtc", ("13", "12"))
    assert ours == str(tmp_path / "one/lib/libnvrtc.so.12")
    assert pips == str(tmp_path / "packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12")
    assert of_the_machine[-3:] == ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"]


def test_nvrtc_is_found_where_nvidias_packages_for_windows_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, name in (("cu13/bin/x86_64", "nvrtc64_130_0.dll"), ("cuda_nvrtc/bin", "nvrtc64_120_0.dll")):
        (tmp_path / "nvidia" / folder).mkdir(parents=True)
        (tmp_path / "nvidia" / folder / name).touch()
        (tmp_path / "nvidia" / folder / name.replace(".dll", ".alt.dll")).touch()
    monkeypatch.syspath_prepend(tmp_path)
    found = [Path(place).name for place in library_places("nvrtc", ("13",)) if str(tmp_path) in place]
    assert found == ["nvrtc64_130_0.dll", "nvrtc64_130_0.alt.dll", "nvrtc64_120_0.dll", "nvrtc64_120_0.alt.dll"]


def test_on_windows_nvrtc_finds_its_other_half_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[str] = []
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "add_dll_directory", added.append, raising=False)
    monkeypatch.setenv("PATH", "before")
    with pytest.raises(OSError, match="nvrtc64"):
        nvrtc.load(str(tmp_path / "nvrtc64_120_0.dll"))  # there is none
    assert added == [str(tmp_path)]
    assert os.environ["PATH"] == os.pathsep.join((str(tmp_path), "before"))


def test_headers_for_nvrtc_are_of_the_librarys_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of another release do not compile with it."""
    for release, folder in ((12090, "old"), (13000, "new"), (98000, "later")):
        (tmp_path / folder / "include").mkdir(parents=True)
        (tmp_path / folder / "include" / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION  {release}\n")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "new"))
    monkeypatch.setenv("CUDA_ROOT", str(tmp_path / "later"))
    library = tmp_path / "here" / "lib" / "libnvrtc.so.13"
    assert header_options(library, (13, 1)) == [f"-I{tmp_path / 'new' / 'include'}"]
    assert header_options(library, (12, 4)) == [f"-I{tmp_path / 'old' / 'include'}"]
    assert header_options(library, (99, 0))[0].startswith("--use-bundled-headers=")
    assert header_options(library, (98, 0))[0].startswith("--use-bundled-headers="), "those found have no CCCL"
    (tmp_path / "later" / "include" / "cccl").mkdir()
    assert header_options(library, (98, 0)) == [
        f"-I{tmp_path / 'later' / part}" for part in ("include", "include/cccl")
    ]
    assert header_options(library, (1, 0)) == []
