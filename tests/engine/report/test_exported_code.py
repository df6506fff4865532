"""The machine code that is exported is what was measured; who builds the source is told whether that gives the same."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from fixtures.cuda_bench import SteadySensors
from fixtures.engine_fakes import Listener, made_by, plan
from host_cuda.build import TOOLCHAIN, build, why_not

import app
from app.base.errors import InputError
from app.base.files import digest_of
from app.base.paths import data_folder
from app.engine.control.guard import DeviceGuard
from app.engine.report.export import export_session
from app.engine.results.objectives import Goal, Objective
from app.engine.runner.cuda.gpu import CHOICE, LIBRARIES
from app.engine.runner.cuda.language import open_cuda
from app.engine.runner.cuda.nvrtc import library_version
from app.engine.runner.cuda.toolchain import find_toolchain
from app.engine.runner.cuda.toolkit import pip_folders, toolkits
from app.engine.runner.kernels.runner import KernelRunner
from app.engine.session import sources
from app.engine.session.live_session import SessionResult
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.space.build import build_space
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.workloads.machine_code import kernel_code
from app.engine.workloads.source_kernel import Build
from app.sensors.limits import limits_of
from app.sensors.select import open_gpu

SCALE = """
__constant__ float weights[4];
extern "C" __global__ void scale(float *y, const float *x, float shift) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor * weights[i % 4] * x[i] + shift;
}
"""
SPECIFICATION = """
[kernel]
name = "scale"
source = "scale.cu"
problem_size = ["n"]
grid_divisors = { x = ["block_size_x"] }
shared_memory = "65536"
arguments = [
    { name = "y", type = "float32", shape = ["n"], output = true },
    { name = "x", type = "float32", shape = ["n"], fill = "random" },
    { name = "weights", type = "float32", shape = ["4"], fill = "ones", memory = "constant" },
    { name = "shift", type = "float32", value = 3.0 },
]
timeout_s = 0.3
[constants]
n = 1000
[parameters]
block_size_x = [64]
factor = [2, 5]
[objective]
minimise = "energy_j"
"""
CUDA_H = next(
    (each for toolkit in (*toolkits(), *pip_folders()) if (each := toolkit / "include" / "cuda.h").is_file()), None
)
# what an outsider does: the array is its own, the driver the stand-in's, and nothing is of the program
OUTSIDER = """
import ctypes, json, sys
import numpy as np
driver = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
x, y, w = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32), np.array([1, 2, 3, 4], np.float32)
at = lambda array: ctypes.c_void_p(array.ctypes.data)
launch = ctypes.CDLL(sys.argv[2]).launch_scale
status = [launch(at(y), at(x), at(w), ctypes.c_float(shift), None) for shift in (7.0, 0.5)]
print(json.dumps([status, y.tolist()]))
"""


class Measured(NamedTuple):
    """A session whose kernels were compiled and launched, on the stand-in."""

    result: SessionResult
    driver: Path  # the stand-in's library
    data: Path  # where the images are kept


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    library = next((each for each in LIBRARIES if each.usable), None)
    if why_not() or library is None:
        pytest.skip(why_not() or "no library for CUDA's driver is installed")
    folder, driver, data = (tmp_path_factory.mktemp(name) for name in ("measured", "driver", "data"))
    environment = {**build(driver), CHOICE: library.name, "PYTHONPATH": str(driver), "WATTRIDGE_DATA": str(data)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        result = _session(folder, patch)
    return Measured(result, driver / "libcuda.so.1", data)


def _session(folder: Path, patch: pytest.MonkeyPatch) -> SessionResult:
    quick = Build('extern "C" __global__ void square_wave(float *out, const float *start) {}\n', (), (), ())
    patch.setattr("app.engine.runner.cuda.language.wave_build", lambda: quick)
    patch.setattr("app.engine.metering.meter.WARM_STEP_S", 0.02)
    (folder / "scale.cu").write_text(SCALE)
    path = folder / "scale.toml"
    path.write_text(SPECIFICATION)
    spec, sensors = load_specification(path), SteadySensors()
    space = build_space(spec.parameters, spec.restrictions, spec.constants, limits_of((9, 0), 132))
    made = replace(
        plan(space, None),  # type: ignore[arg-type]
        title=spec.name,
        strategy="brute_force",
        objective=Objective(Goal("energy_j", maximise=False)),
        boards=made_by(
            lambda: KernelRunner.on(open_cuda(sensors, toolchain=TOOLCHAIN, jobs=1), spec, space, DeviceGuard(sensors))
        ),
        origin={
            "kind": "specification",
            "file": str(path),
            "sha256": digest_of(path),
            "gpu": "gone",
            **sources.to_origin(spec),
        },
        looks_again=False,
    )
    with Store() as store:
        return run_session(made, store, Listener(), threading.Event())


def exported(result: SessionResult, folder: Path, *kinds: str, index: int | None = None) -> list[str]:
    """What was said of the files."""
    said: list[str] = []
    export_session(result.plan, result.table, result.session, index, folder, list(kinds) or None, said.append)
    return said


def image_in(text: str) -> bytes:
    """The image of an exported file, by its words."""
    size = int(re.search(r"(\d+) bytes$", text, re.MULTILINE)[1])  # type: ignore[index]
    words = re.findall(r"0x([0-9a-f]{16})", text)
    return b"".join(int(word, 16).to_bytes(8, "little") for word in words)[:size]


def test_the_exported_code_is_what_was_measured_and_launches_it(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTRIDGE_DATA", str(measured.data))
    codes = [_check_code(measured.result, index, measured.driver, tmp_path / str(index)) for index in range(2)]
    assert len(set(codes)) == 2, "one for each factor"


def _check_code(result: SessionResult, index: int, driver: Path, out: Path) -> str:
    """Check what is exported of a measurement, as an outsider uses it; its image's digest."""
    assert exported(result, out, index=index) == ["scale-code.c has the machine code that was measured."]
    text, document = (out / "scale-code.c").read_text(), json.loads((out / "scale.json").read_text())
    factor = document["parameters"]["factor"]
    image = image_in(text)
    assert hashlib.sha256(image).hexdigest() == document["machine_code"]["sha256"]
    kept = {path.read_bytes().partition(b"\n")[2] for path in (data_folder() / "cubins").glob("*.image")}
    assert image in kept
    assert document["machine_code"]["made_again"] is False
    assert document["machine_code"]["compiler"] == result.plan.origin["compiler"] == "host 1 for (9, 0)"
    assert f"factor = {factor}" not in text, "a parameter is in the code, not in the text"
    compiler = shutil.which("cc")
    if compiler is None or CUDA_H is None:
        pytest.skip("no compiler of C, or no cuda.h")
    library = out / "launch.so"
    command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", str(CUDA_H.parent)]
    header = ["-include", str(out / "scale.h")]  # its declaration is that of the function
    subprocess.run([*command, *header, "-o", str(library), str(out / "scale-code.c")], check=True)
    words = [sys.executable, "-c", OUTSIDER, str(driver), str(library)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    status, y = json.loads(ran.stdout)
    assert status == [0, 0]
    x = np.arange(1000)
    np.testing.assert_allclose(y, factor * (1 + x % 4) * x + 0.5)
    return str(document["machine_code"]["sha256"])


def test_where_it_is_not_kept_and_the_compiler_is_another_the_files_say_so(measured: Measured, tmp_path: Path) -> None:
    result = measured.result  # of a data folder that is not this one
    said = exported(result, tmp_path / "out")
    assert said == ["The machine code is not here: it is no longer kept, nor is host 1 for (9, 0) here."]
    assert said[0] in (tmp_path / "out" / "scale.h").read_text()
    assert not (tmp_path / "out" / "scale-code.c").exists()
    assert json.loads((tmp_path / "out" / "scale.json").read_text())["machine_code"] is None
    with pytest.raises(InputError, match="no longer kept"):
        exported(result, tmp_path / "out", "code")


# --- with the compilers of a toolkit ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_nvrtc(tmp_path_factory: pytest.TempPathFactory) -> SessionResult:
    """A session of a simulated board, as if NVRTC had compiled its kernels."""
    if library_version() is None:
        pytest.skip("no NVRTC library (nvidia-cuda-nvrtc)")
    path = tmp_path_factory.mktemp("nvrtc") / "operator.toml"
    path.write_text('[operator]\nkind = "mv"\nshape = [1, 1, 64, 256]\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.engine.session.on_board.OneBoard.offers", lambda *_: ((), ""))  # our own kernel alone
        gpu = open_gpu("simulated:h200", speed=float("inf"))
        made = plan_specification(load_specification(path), gpu, SearchOptions(max_evaluations=1))
    with Store() as store:
        result = run_session(made, store, Listener(), threading.Event())
    return replace(result, plan=replace(result.plan, origin={**result.plan.origin, "gpu": "gone"}))


def compiled_by(result: SessionResult, compiler: str) -> SessionResult:
    return replace(result, plan=replace(result.plan, origin={**result.plan.origin, "compiler": compiler}))


@pytest.fixture
def toolchain_anew() -> Iterator[None]:
    """What compiles is looked for again, before the test and after it."""
    find_toolchain.cache_clear()
    yield
    find_toolchain.cache_clear()


@pytest.mark.usefixtures("toolchain_anew")
def test_code_that_is_not_kept_is_made_again_by_the_same_compiler_and_that_is_said(
    by_nvrtc: SessionResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTRIDGE_CUDA_COMPILER", "nvrtc")
    said = exported(compiled_by(by_nvrtc, f"NVRTC {library_version()} for (9, 0)"), tmp_path)
    other = exported(compiled_by(by_nvrtc, "NVRTC 1.0 for (9, 0)"), tmp_path / "other")
    assert said == [
        "mv-1-1-64-256-code.c has the machine code that was measured.",
        "The machine code is no longer kept: the same compiler made it again for this export.",
    ]
    code = kernel_code(image_in(next(tmp_path.glob("*-code.c")).read_text()))
    assert code is not None
    assert list(code) == ["mv"]
    assert other == ["The machine code is not here: it is no longer kept, nor is NVRTC 1.0 for (9, 0) here."]


# nvcc by NVRTC, whose code of the exported source is that of the session's own text; with more options it is not
NVCC = """#!{python}
import pathlib, sys
if "--version" in sys.argv:
    print("Cuda compilation tools, release 13.0, V13.0.88")
    sys.exit()
sys.path.insert(0, {root!r})
from app.engine.runner.cuda.nvrtc import compile_text
text, words = pathlib.Path(sys.argv[-1]).read_text(), sys.argv[2:-3]
image, said = compile_text(text, [*words, *{more!r}])
pathlib.Path(sys.argv[-2]).write_bytes(image)
sys.exit(said if not image else 0)
"""


@pytest.mark.usefixtures("toolchain_anew")
@pytest.mark.parametrize("same", [True, False])
def test_it_is_said_whether_nvcc_makes_the_same_code_of_the_exported_source(
    by_nvrtc: SessionResult, same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("without gcc nvcc is not used")
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.parent.mkdir()
    more = () if same else ("-fmad=false",)
    nvcc.write_text(NVCC.format(python=sys.executable, root=str(Path(app.__file__).parents[1]), more=more))
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{nvcc.parent}:{os.environ['PATH']}")
    compiler = f"NVRTC {library_version()} for (9, 0), else nvcc V13.0.88 for (9, 0)"
    out = tmp_path / "out"
    said = exported(compiled_by(by_nvrtc, compiler), out)
    assert said[0] == (
        "nvcc V13.0.88 makes the same machine code of mv-1-1-64-256.cu."
        if same
        else "nvcc V13.0.88 makes other machine code of mv-1-1-64-256.cu; mv-1-1-64-256-code.c has what was measured."
    )
    for suffix in (".h", ".cu", "-code.c"):
        assert said[0] in (out / f"mv-1-1-64-256{suffix}").read_text()
    document = json.loads((out / "mv-1-1-64-256.json").read_text())
    assert document["machine_code"]["nvcc"] == {"version": "nvcc V13.0.88", "same": same}


def test_a_simulated_session_has_no_machine_code(by_nvrtc: SessionResult, tmp_path: Path) -> None:
    assert exported(by_nvrtc, tmp_path) == []
    assert not list(tmp_path.glob("*-code.c"))
    with pytest.raises(InputError, match="nothing was compiled"):
        exported(by_nvrtc, tmp_path, "code")
