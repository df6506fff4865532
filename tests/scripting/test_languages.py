"""Kernels in OpenCL and functions in C and Fortran from Python, built and run for real on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from opencl_here import usable_device

from app import run_kernel, tune_kernel
from app.base.errors import InputError
from app.cli import main
from app.engine.metering import stopwatch
from app.engine.runner.host import backend as host
from app.engine.runner.kernels.process import RunnerProcesses
from app.scripting.described_kernel import is_page_locked
from app.scripting.observers import BenchmarkObserver, NVMLObserver
from app.scripting.sources import read_source
from app.scripting.stand_in import PythonKernel
from app.scripting.surroundings import Surroundings, running_with
from app.sensors.opencl import devices

N = np.int32(1000)
A = np.arange(1000, dtype=np.float32)
C = np.zeros_like(A)
NEEDS_C = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
NEEDS_FORTRAN = pytest.mark.skipif(shutil.which("gfortran") is None, reason="there is no gfortran")

IN_C = """
static_assert(grid_size_x == (1000 + block_size_x - 1) / block_size_x, "as Kernel Tuner defines it");
float add(float *c, const float *a, int n) {
    if (fault == 1) *(volatile float *)16 = 1.0f;
    for (int i = 0; i < n; i++) c[i] = a[i] + 1.0f + (fault == 2 && i == 3);
    return 2.5f * returned;
}
"""
IN_FORTRAN = """
module vectors
use iso_c_binding
contains
function add(c, a, factor, n) result(time)
    real(c_float), intent(out) :: c(n)
    real(c_float), intent(in) :: a(n)
    real(c_float), intent(in), value :: factor
    integer(c_int), intent(in) :: n
    real(c_float) :: time
    c = factor * a + 1.0
    time = 2.5 * returned
end function add
end module vectors
"""
IN_OPENCL = """
__kernel void add(__global float *c, __global const float *a, int n) {
#if fault == 1
    *(volatile __global int *)0 = 1;
#elif fault == 2
    does not compile;
#endif
    const int i = get_group_id(0) * block_size_x + get_local_id(0);
    if (i < n) c[i] = a[i] + 1.0f;
}
"""


@pytest.fixture(autouse=True)
def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is not how well times are known."""
    monkeypatch.setattr(stopwatch, "WINDOW_S", 0.01)
    monkeypatch.setattr(stopwatch, "STEADY_TIME", 1e9)


@pytest.fixture
def opencl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, int]]:
    """The platform and the device that run kernels, as a script names them."""
    environment, number, why_not = usable_device()
    if not number:
        pytest.skip(why_not)
    for name, value in {**environment, "POCL_CACHE_DIR": str(tmp_path / "pocl")}.items():
        monkeypatch.setenv(name, value)
    devices.opencl_devices.cache_clear()
    platform, device = number.split(".")
    yield {"platform": int(platform), "device": int(device)}
    devices.opencl_devices.cache_clear()


class Counting(BenchmarkObserver):
    """Counts launches, and what they take."""

    launches = 0

    def after_finish(self) -> None:
        self.launches += 1

    def get_results(self) -> dict[str, Any]:
        return {"launches": self.launches}


def errors(results: list[dict[str, Any]]) -> list[str]:
    return [result.get("__error__", "") for result in results]


@NEEDS_C
def test_a_function_in_c_returns_its_time_and_its_faults_cost_a_configuration_each() -> None:
    parameters = {"block_size_x": [32], "returned": [2, 1], "fault": [0, 1, 2]}
    restrictions = ["fault == 0 or returned == 1"]
    results, environment = tune_kernel(
        "add", IN_C, 1000, [C, A, N], parameters, answer=[A + 1, None, None], restrictions=restrictions, quiet=True
    )
    assert errors(results) == ["", "", "RuntimeFailedConfig", "RuntimeFailedConfig"]
    assert [result["time"] for result in results[:2]] == [5.0, 2.5]
    assert results[1]["times"] == [2.5] * 7
    assert "SIGSEGV" in results[2]["error"]
    assert "1 of 1000 values are wrong, the first at 3" in results[3]["error"]
    assert environment["best_config"] == results[1]
    assert environment["source"] == "unmetered"


@NEEDS_C
def test_an_array_that_is_page_locked_in_the_script_is_so_for_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that a function launches use such arrays where they are, so a copy has to be page-locked, too."""
    locked: dict[int, int] = {}
    calls = {
        "cuMemHostRegister_v2": lambda at, nbyte, flags: locked.update({at.value: nbyte.value}) or (flags.value == 3),
        "cuMemHostUnregister": lambda at: locked.pop(at.value),
    }
    monkeypatch.setattr(host, "_driver", lambda: lambda name, *given: calls[name](*given))
    kind = type("PagelockedHostAllocation", (), {"__module__": "pycuda._driver"})
    memory, kept = kind(), A.copy()
    memory.__array_interface__ = kept.__array_interface__
    a = np.asarray(memory)
    assert is_page_locked(a.reshape(10, 100)[1:])
    assert not is_page_locked(A[1:])
    seen: list[dict[int, int]] = []

    class Looking(Counting):
        def after_finish(self) -> None:
            seen.append(dict(locked))

    text = "float add(float *c, const float *a, int n) { return 1.0f + c[0]; }"
    parameters = {"block_size_x": [32, 64]}
    results, _ = tune_kernel("add", text, 1, [C, a, N], parameters, lang="C", observers=[Looking()], quiet=True)
    assert errors(results) == ["", ""]
    assert all(list(each.values()) == [A.nbytes] for each in seen), "the one array, once"


@NEEDS_C
def test_where_only_the_time_counts_faults_cost_a_configuration_each_and_no_process_is_spare() -> None:
    started: list[object] = []
    start = RunnerProcesses.__init__

    def counting(self: RunnerProcesses, make: Callable[[], Any], prepare: Callable[[Any], None]) -> None:
        start(self, lambda: started.append(self) or make(), prepare)

    with running_with(Surroundings(energy=False)), pytest.MonkeyPatch.context() as patched:
        patched.setattr(RunnerProcesses, "__init__", counting)
        for faults, wanted in (([0], 1), ([0, 1], None)):
            started.clear()
            parameters = {"block_size_x": [32], "returned": [1, 2], "fault": faults}
            results, _ = tune_kernel("add", IN_C, 1000, [C, A, N], parameters, quiet=True)
            assert ["SIGSEGV" in result.get("error", "") for result in results] == [bool(f) for f in faults] * 2
            assert wanted in (None, len(started))


@NEEDS_C
def test_launches_that_last_long_enough_are_not_repeated_for_a_window() -> None:
    """The function returns 20 ms, and a millisecond more with each call."""
    text = "float count(float *c) { static int calls = 0; return 20.0f + calls++; }"
    (result,), _ = tune_kernel("count", text, 1, [C], {"block_size_x": [1]}, lang="C", quiet=True)
    assert result["times"] == pytest.approx([21 + call for call in range(7)])  # the first call is the check
    assert result["time"] == pytest.approx(24.0)


@NEEDS_C
def test_a_scripts_observers_call_a_function_in_its_own_process() -> None:
    parameters = {"block_size_x": [32], "returned": [3], "fault": [0]}
    results, environment = tune_kernel(
        "add", IN_C, 1000, [C, A, N], parameters, lang="C", iterations=3, observers=[Counting()], quiet=True
    )
    assert results[0]["launches"] == 3
    assert results[0]["times"] == [7.5] * 3
    assert environment["isolated"] is False


@NEEDS_C
def test_run_kernel_calls_a_function_once_and_returns_its_arguments() -> None:
    parameters = {"block_size_x": 32, "returned": 0, "fault": 0}
    c, a, n = run_kernel("add", IN_C, 1000, [C, A, N], parameters, quiet=True)
    assert np.array_equal(c, A + 1)
    assert np.array_equal(a, A)
    assert n == N
    assert not C.any()


@NEEDS_C
def test_a_python_kernel_keeps_what_no_call_brings() -> None:
    source = "void grow(float *c, const float *a, int n) { for (int i = 0; i < n; i++) c[i] += a[i] + 1; }"
    grow = PythonKernel("grow", source, 1, [C, A, N], inputs=[False, True, True], outputs=[True, False, False])
    for calls in (1, 2):
        (c,) = grow(C, A, N)
        assert np.array_equal(c, calls * (A + 1))
    with pytest.raises(InputError, match="2 arguments instead of 3"):
        grow(C, A)
    for refused in ({"inputs": [True]}, {"results_file": "results.json"}):
        with pytest.raises(InputError):
            PythonKernel("grow", source, 1, [C, A, N], **refused)


class OnDevice:
    """An array as CuPy's, of which Python sees what is copied."""

    __cuda_array_interface__: ClassVar[dict[str, Any]] = {}

    def __init__(self, host: np.ndarray) -> None:
        self._there = host.copy()

    def get(self) -> np.ndarray:
        return self._there.copy()

    def set(self, host: np.ndarray) -> None:
        self._there[...] = host


def test_a_python_kernel_writes_to_arrays_of_the_device(opencl: dict[str, int]) -> None:
    c, a = OnDevice(C), OnDevice(A)
    parameters = {"block_size_x": 50, "fault": 0}
    add = PythonKernel("add", IN_OPENCL, 1000, [c, a, N], parameters, outputs=[True, False, False], **opencl)
    assert add(c, a, N) == []
    assert np.array_equal(c.get(), A + 1)
    assert np.array_equal(a.get(), A)


def test_what_a_kernel_writes_to_arrays_that_nobody_else_can_write_to_is_returned(opencl: dict[str, int]) -> None:
    class Unchangeable:  # as of JAX
        def __init__(self, values: np.ndarray) -> None:
            self._values = values

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return self._values

    add = PythonKernel("add", IN_OPENCL, 1000, [C, A, N], {"block_size_x": 50, "fault": 0}, **opencl)
    c, a = add(Unchangeable(C.copy()), Unchangeable(A), N)
    assert np.array_equal(c, A + 1)
    assert np.array_equal(a, A)


def test_an_array_of_a_type_that_its_library_does_not_write_to_is_named(opencl: dict[str, int]) -> None:
    class Locked:
        __cuda_array_interface__: ClassVar[dict[str, Any]] = {}

        def get(self) -> np.ndarray:
            return C

        def set(self, values: np.ndarray) -> None:
            raise ValueError("it is read-only")

    add = PythonKernel("add", IN_OPENCL, 1000, [C, A, N], {"block_size_x": 50, "fault": 0}, **opencl)
    with pytest.raises(InputError, match=r"arguments\[0\]: Locked is not written to: it is read-only"):
        add(Locked(), A, N)


@NEEDS_FORTRAN
def test_a_function_of_a_module_in_fortran_takes_scalars_as_it_declares_them(tmp_path: Path) -> None:
    (tmp_path / "add.F90").write_text(IN_FORTRAN)
    path, given = str(tmp_path / "add.F90"), [C, A, np.float32(3), N]
    answer = [3 * A + 1, None, None, None]
    for more in ({}, {"lang": "C", "compiler": "gfortran"}):
        results, _ = tune_kernel("add", path, 1000, given, {"returned": [2]}, answer=answer, quiet=True, **more)
        assert errors(results) == [""], results
        assert results[0]["time"] == 5.0


def test_a_kernel_in_opencl_runs_on_the_device_that_the_script_names(opencl: dict[str, int]) -> None:
    parameters = {"block_size_x": [50, 100], "fault": [0, 1, 2]}
    answer = [A + 1, None, None]
    results, environment = tune_kernel(
        "add", IN_OPENCL, 1000, [C, A, N], parameters, answer=answer, restrictions=["fault == 0 or block_size_x == 50"],
        quiet=True, **opencl,
    )  # fmt: skip
    assert errors(results) == ["", "RuntimeFailedConfig", "CompilationFailedConfig", ""]
    assert "SIGSEGV" in results[1]["error"]
    for each in (results[0], results[3]):
        assert 0 < each["time"] < 1000
        assert len(each["times"]) == 7
        assert "energy_j" not in each
    assert environment["best_config"]["fault"] == 0
    c, _, _ = run_kernel("add", IN_OPENCL, 1000, [C, A, N], {"block_size_x": 50, "fault": 0}, quiet=True, **opencl)
    assert np.array_equal(c, A + 1)
    with pytest.raises(InputError, match=r"there is no OpenCL device '9\.9'"):
        tune_kernel("add", IN_OPENCL, 1000, [C, A, N], parameters, quiet=True, platform=9, device=9)


def test_what_a_device_without_sensors_cannot_report_is_refused_in_one_line() -> None:
    given = {"tune_params": {"block_size_x": [32]}, "quiet": True}
    for more in ({"objective": "energy_j", "objective_higher_is_better": False}, {"objective": "nvml_energy"}):
        with pytest.raises(InputError, match="this device reports time alone"):
            tune_kernel("add", IN_C, 1000, [C, A, N], **given, **more)
    with pytest.raises(InputError, match="'nvml_power' is asked for"):
        tune_kernel("add", IN_C, 1000, [C, A, N], **given, observers=[NVMLObserver(["nvml_power"])])


def test_a_language_that_is_not_run_is_refused_whatever_boards_there_are() -> None:
    for source, lang, remedy in (
        ("__global__ void k() {}", "HIP", "say lang='CUDA'"),
        ("@cuda k()", None, "kernels in CUDA, OpenCL, C"),
    ):
        with pytest.raises(InputError, match=remedy):
            tune_kernel("k", source, 1, [A], {"block_size_x": [32]}, lang=lang, quiet=True)


def test_a_function_of_the_host_takes_no_array_that_lies_on_a_gpu() -> None:
    class OnDevice:
        __cuda_array_interface__ = None

    with pytest.raises(InputError, match=r"arguments\[0\]: it lies on a GPU"):
        tune_kernel("add", IN_C, 1000, [OnDevice(), A, N], {"block_size_x": [32]}, quiet=True)


@pytest.mark.parametrize(
    ("name", "text", "lang", "compiler", "found"),
    [
        ("a.cu", "__global__ void k() {}", None, None, ("CUDA", "")),
        ("a.cu", "__global__ void k() {}", "cupy", None, ("CUDA", "")),
        ("a.cl", "__KERNEL void k() {}", None, None, ("OpenCL", "")),
        ("a.c", "float f() {}", None, None, ("C++", "")),
        ("a.c", "float f() {}", "C", "gcc", ("C", "gcc")),
        ("a.cc", "float f() {}", "C", "gcc", ("C++", "gcc")),
        ("a.cpp", "float f() {}", None, "/opt/g++", ("C++", "/opt/g++")),
        ("a.cu", "__global__ void k() {} float f() {}", "C", None, ("C++", "nvcc")),
        ("a.cu", "__global__ void k() {} float f() {}", "C", "nvc++", ("C++", "nvc++")),
        ("a.F90", "subroutine s()", None, None, ("Fortran", "")),
        ("a.F90", "subroutine s()", "C", "nvfortran", ("Fortran", "nvfortran")),
        ("a.c", "float f() {}", "fortran", None, ("Fortran", "")),
        ("a.jl", "@cuda threads=3 k()", None, None, ("Julia", "")),
        ("a.hip", "__global__ void k() {}", "HIP", None, ("HIP", "")),
    ],
)
def test_language_and_compiler_are_those_that_kernel_tuner_would_find(
    tmp_path: Path, name: str, text: str, lang: str | None, compiler: str | None, found: tuple[str, str]
) -> None:
    (tmp_path / name).write_text(text)
    source = read_source(tmp_path / name, lang, compiler)
    assert (source.language, source.compiler) == found


@NEEDS_C
def test_a_script_in_c_runs_through_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(
        "import numpy as np\n"
        "from kernel_tuner import tune_kernel\n"
        "x = np.zeros(3, np.float32)\n"
        "source = 'float f(float *x) { x[0] = level; return level; }'\n"
        "results, _ = tune_kernel('f', source, 1, [x], {'level': [4, 2]}, quiet=True)\n"
        "print([each['time'] for each in results])\n"
    )
    assert main(["kernel-tuner", "script.py"]) == 0
    assert capsys.readouterr().out.strip() == "[4.0, 2.0]"
