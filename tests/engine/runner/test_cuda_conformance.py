"""What every library that speaks to CUDA's driver has to do, asked of a runner process as a session asks it.

The driver is a stand-in whose device is the host (`host_cuda`), and the machine's own with WATTRIDGE_TEST_BOARD=1:

    WATTRIDGE_TEST_BOARD=1 python -m pytest tests/engine/runner/test_cuda_conformance.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.cuda_bench import SPECIFICATION, SteadySensors
from host_cuda.build import TOOLCHAIN, build, build_hip, why_not

from app.engine.children.python import python_command, python_environment
from app.engine.control.guard import DeviceGuard
from app.engine.results.measurement import Measurement, State
from app.engine.runner.cuda.comparer import SOURCE
from app.engine.runner.cuda.driver import GRAPHED
from app.engine.runner.cuda.gpu import CHOICE, LIBRARIES, Library
from app.engine.runner.cuda.language import open_cuda
from app.engine.runner.cuda.toolchain import Toolchain, cuda_compiler, find_toolchain, symbol
from app.engine.runner.kernels.process import KernelFailed, RunnerProcess
from app.engine.runner.kernels.runner import KernelRunner
from app.engine.runner.profiling.launching import Task, launched, write_job
from app.engine.session.load import load_specification
from app.engine.space.build import build_space
from app.engine.workloads.kernel_arguments import Argument, CallPlan, Launch, Reference
from app.engine.workloads.source_kernel import Build
from app.sensors.limits import limits_of

N = 1000


@contextmanager
def all_addresses() -> Iterator[None]:
    """CUDA reserves more of them than tests may have."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class Device:
    """A runner process with one library, and the messages that a session sends to it."""

    def __init__(self, library: Library, environment: dict[str, str], toolchain: Toolchain, images: Path) -> None:
        self.library = library
        self.process = RunnerProcess(library.module, "0", environment)
        self.facts = self.process.request({"do": "describe"})
        major, minor = self.facts["compute_capability"]
        self._compiler = cuda_compiler((major, minor), toolchain=toolchain, folder=images, jobs=1)

    def close(self) -> None:
        self._compiler.close()
        self.process.close()

    def use(
        self, *arguments: Argument, references: Sequence[Reference] = (), constants: dict[str, float] | None = None
    ) -> None:
        plan = CallPlan(arguments, tuple(references), constants or {})
        self.process.request({"do": "arguments", "plan": plan.as_message(), "scratch": None})

    def image(self, source: str) -> bytes:
        return self._compiler.image(Build(source, (), (), ()))

    def load(
        self, source: str, name: str, *, blocks: int = 8, shared_byte: int = 0, reference: str = ""
    ) -> dict[str, Any]:
        """The facts of a kernel, loaded under its name."""
        image = self.image(source)
        message: dict[str, Any] = {"do": "load", "id": name}
        launch = Launch(name, (blocks, 1, 1), (128, 1, 1), shared_byte)
        message["launch"] = launch.as_message(symbol(image, name))
        if reference:
            message["reference"] = Launch(reference, (blocks, 1, 1), (128, 1, 1)).as_message(symbol(image, reference))
        return self.process.request(message, [image])

    def check(self, name: str) -> list[dict[str, Any]]:
        """How its outputs differ from what they must be."""
        reply = self.process.request({"do": "check", "id": name})
        assert reply["launch_s"] > 0
        return list(reply["wrong"])


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """In which a process finds the driver."""
    if os.environ.get("WATTRIDGE_TEST_BOARD"):
        yield {}
        return
    if missing := why_not():
        pytest.skip(missing)
    folder = tmp_path_factory.mktemp("driver")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield {**build(folder), **build_hip(folder)}


@pytest.fixture(scope="module")
def toolchain() -> Toolchain:
    return find_toolchain() if os.environ.get("WATTRIDGE_TEST_BOARD") else TOOLCHAIN


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was compiled before, which is the same for every library."""
    return tmp_path_factory.mktemp("images")


HIP = Library("HIP", "app.engine.runner.hip.backend", "")  # no package of Python's: ROCm's own library


@pytest.fixture(params=[*LIBRARIES, HIP], ids=lambda library: library.name)
def library(request: pytest.FixtureRequest) -> Library:
    chosen: Library = request.param
    if chosen is HIP:
        if os.environ.get("WATTRIDGE_TEST_BOARD"):
            pytest.skip("a board of NVIDIA's has no HIP")
        return HIP
    if not chosen.usable:
        pytest.skip(f"{chosen.name} is not installed: pip install '.[{chosen.extra}]'")
    return chosen


@pytest.fixture
def device(library: Library, environment: dict[str, str], toolchain: Toolchain, images: Path) -> Iterator[Device]:
    with all_addresses():
        made = Device(library, environment, toolchain, images)
    yield made
    made.close()


def array(name: str, *, kind: str = "float32", fill: str = "range", output: bool = False, size: int = N) -> Argument:
    return Argument(name, kind, (size,), fill, None, output, False, 1)


def scalar(name: str, value: float, kind: str) -> Argument:
    return Argument(name, kind, None, "zeros", value, False, False, 1)


def expression(text: str, output: str = "y") -> Reference:
    return Reference(output, text, "expression", 1e-6, 0.0)


AT = "const int i = blockIdx.x * blockDim.x + threadIdx.x;"
SCALE = f"""
__constant__ float weights[4];
extern "C" __global__ void scale(float *y, const float *x, float k) {{ {AT} if (i < {N}) y[i] = k * x[i]; }}
extern "C" __global__ void scale_wrong(float *y, const float *x, float k) {{
    {AT} if (i < {N}) y[i] = k * x[i] + (i == 3 || i == 500 ? i : 0);
}}
extern "C" __global__ void weigh(float *y, const float *x, float k) {{
    {AT} if (i < {N}) y[i] = k * x[i] * weights[i % 4];
}}
extern "C" __global__ void stray(float *y, const float *x, float k) {{ *(volatile float *)16 = k; }}
"""
SCALED = (array("y", fill="zeros", output=True), array("x"), scalar("k", 3.0, "float32"))


def test_the_device_describes_itself(device: Device) -> None:
    facts = device.facts
    assert facts["name"]
    assert facts["driver"] >= 11000
    assert facts["compute_capability"] >= [3, 5]
    limits = facts["limits"]
    assert limits["compute_capability"] == facts["compute_capability"][0] + facts["compute_capability"][1] / 10
    assert limits["multiprocessors"] > 0
    assert limits["warp_size"] == 32
    assert limits["max_threads_per_block"] == 1024
    assert facts["shared_memory_opt_in"] >= limits["shared_memory_per_block"] == 49152


def test_a_kernel_gets_arrays_and_scalars_of_every_size_in_its_order(device: Device) -> None:
    numbers = {"int8": -3, "uint16": 50_000, "int32": -70_000, "int64": 2**40, "float32": 0.5, "float64": -0.25}
    kinds = ("signed char", "unsigned short", "int", "long long", "float", "double")
    given = [scalar(kind, value, kind) for kind, value in numbers.items()]
    takes = ", ".join(f"{kind} {name}" for kind, name in zip(kinds, "abcdef", strict=True))
    source = (
        f'extern "C" __global__ void all(double *y, {takes}, bool g, const double *x) {{\n'
        f"{AT} if (i < {N}) y[i] = g ? a + b + c + d + e + f + x[i] : 0; }}\n"
    )
    output, last = array("y", kind="float64", fill="zeros", output=True), array("x", kind="float64")
    device.use(output, *given, scalar("g", True, "bool"), last, references=[expression(f"x + {sum(numbers.values())}")])
    device.load(source, "all")
    assert device.check("all") == []


def test_the_program_that_is_profiled_launches_each_kernel_once(
    device: Device, environment: dict[str, str], tmp_path: Path
) -> None:
    plan = CallPlan(SCALED, (expression("3 * x"),), {})
    image = device.image(SCALE)
    launches = [Launch(symbol(image, name), (8, 1, 1), (128, 1, 1)) for name in ("scale", "scale_wrong")]
    tasks = [Task(row, plan, launch, image) for row, launch in zip((5, 3), launches, strict=True)]
    write_job(tmp_path, device.library.module, [*tasks, Task(9, plan, Launch("missing", (1, 1, 1), (1, 1, 1)), image)])
    command = python_command("app.engine.runner.profiling.launching", str(tmp_path))
    subprocess.run(command, env=python_environment(environment), check=True, timeout=120)
    came = launched(tmp_path)
    assert [came[5], came[3]] == ["", ""]
    assert came[9]


@pytest.mark.parametrize("on_device", [True, False])
def test_what_is_wrong_is_counted_and_placed(device: Device, on_device: bool) -> None:
    if on_device:
        device.process.request({"do": "comparer"}, [device.image(SOURCE)])
    device.use(*SCALED, references=[expression("3 * x")])
    for name in ("scale", "scale_wrong"):
        device.load(SCALE, name)
    assert device.check("scale") == []
    [wrong] = device.check("scale_wrong")
    assert (wrong["output"], wrong["size"], wrong["wrong"], wrong["first"]) == ("y", N, 2, 3)
    assert wrong["worst"] == pytest.approx(500.0)
    assert device.check("scale") == [], "outputs are fresh for each check"


@pytest.mark.parametrize("kind", ["float64", "int16", "int64", "uint8", "complex64"])
def test_the_device_compares_other_types(device: Device, kind: str) -> None:
    if device.library is HIP:
        pytest.skip("outputs are compared on the host there")
    device.process.request({"do": "comparer"}, [device.image(SOURCE)])
    size = np.dtype(kind).itemsize
    word = {1: "char", 2: "short", 8: "long long"}[size]
    source = (
        f'extern "C" __global__ void keep(unsigned {word} *y, const unsigned {word} *x) '
        f"{{ {AT} if (i < {N}) y[i] = x[i == 7 ? 8 : i]; }}\n"
    )
    device.use(array("y", kind=kind, fill="zeros", output=True), array("x", kind=kind), references=[expression("x")])
    device.load(source, "keep")
    [wrong] = device.check("keep")
    assert (wrong["wrong"], wrong["first"], wrong["worst"]) == (1, 7, 1.0)


def test_a_kernel_of_the_same_image_is_the_reference(device: Device) -> None:
    device.use(*SCALED, references=[Reference("", "scale", "kernel", 1e-6, 0.0)])
    device.load(SCALE, "scale_wrong", reference="scale")
    [wrong] = device.check("scale_wrong")
    assert (wrong["wrong"], wrong["first"]) == (2, 3)


def test_constant_memory_is_filled(device: Device) -> None:
    weights = Argument("weights", "float32", (4,), "range", None, False, True, 1)
    # NumPy's index of x is its value, so that the weight of an element is its value modulo 4
    device.use(*SCALED, weights, references=[expression("3 * x * (x % 4)")])
    device.load(SCALE, "weigh")
    assert device.check("weigh") == []


def test_constant_memory_that_is_too_small_or_missing_is_a_fault_of_this_kernel(device: Device) -> None:
    for name, size, message in (("weights", 5, "has 16 bytes, 20 are given"), ("heights", 4, "not found")):
        device.use(*SCALED, Argument(name, "float32", (size,), "range", None, False, True, 1))
        with pytest.raises(KernelFailed, match=message) as failed:
            device.load(SCALE, "weigh")
        assert not failed.value.lost


def test_facts_of_a_kernel(device: Device) -> None:
    device.use(*SCALED, references=[expression("3 * x")])
    facts = device.load(SCALE, "scale")
    assert 4 <= facts["registers"] <= 64
    assert facts["local_byte"] == 0
    assert 0 < facts["occupancy"] <= 1
    assert facts["blocks_per_multiprocessor"] >= 1
    most = device.facts["shared_memory_opt_in"]
    more = device.load(SCALE, "scale", shared_byte=most)
    assert more["shared_byte"] - facts["shared_byte"] == most
    assert more["occupancy"] < facts["occupancy"]
    assert device.check("scale") == [], "it launches with more shared memory than kernels have by default"


def test_what_the_driver_refuses_is_one_line_and_costs_nothing(device: Device) -> None:
    device.use(*SCALED, references=[expression("3 * x")])
    image = device.image(SCALE)
    for given, name, message in ((b"no image", "scale", "image|ptx|PTX"), (image, "no_such", "not found")):
        launch = Launch(name, (1, 1, 1), (32, 1, 1)).as_message()
        with pytest.raises(KernelFailed, match=message) as failed:
            device.process.request({"do": "load", "id": "bad", "launch": launch}, [given])
        assert (failed.value.state, failed.value.lost) == (State.RUNTIME, False)
        assert "\n" not in failed.value.what
    device.load(SCALE, "scale", blocks=8)
    assert device.check("scale") == []


def test_more_shared_memory_than_a_block_may_have_is_a_fault_of_the_kernel(device: Device) -> None:
    device.use(*SCALED, references=[expression("3 * x")])
    with pytest.raises(KernelFailed, match="invalid") as failed:
        device.load(SCALE, "scale", shared_byte=1 << 24)
    assert not failed.value.lost
    device.load(SCALE, "scale")
    assert device.check("scale") == []


def test_a_stray_write_costs_the_process_and_says_why(device: Device) -> None:
    device.use(*SCALED, references=[expression("3 * x")])
    device.load(SCALE, "stray")
    with pytest.raises(KernelFailed, match="illegal memory access") as failed:
        device.check("stray")
    assert failed.value.lost


COUNT = """
__device__ unsigned long long seen;
extern "C" __global__ void count(float *y) { if (blockIdx.x == 0 && threadIdx.x == 0) y[0] = atomicAdd(&seen, 1ull); }
"""


def test_launches_are_counted_as_they_ran(device: Device) -> None:
    device.use(array("y", fill="zeros", output=True, size=1), references=[expression("0 * y")])
    device.load(COUNT, "count", blocks=1)
    assert device.check("count") == []
    device.process.request({"do": "begin", "id": "count"})
    first = device.process.request({"do": "lap"})
    second = device.process.request({"do": "lap"})
    last = device.process.request({"do": "end"})
    assert min(first["launches"], second["launches"], last["launches"]) >= 1
    assert 0 < first["time_s"] < 0.1
    assert first["end_ns"] <= second["start_ns"] + 1
    [seen] = device.check("count")
    # one launch of the first check, and one before what is wrong is looked at once more
    assert seen["worst"] == 2 + sum(lap["launches"] for lap in (first, second, last))


MANY = """
import importlib, os, sys
import numpy as np
from app.engine.workloads.kernel_arguments import Launch
backend = importlib.import_module(sys.argv[1]).open_backend("0")
y = np.zeros(1, np.float32)
buffer, zeros = backend.upload(y), backend.upload(y)
kernel = backend.load(open(sys.argv[2], "rb").read(), Launch("count", (1, 1, 1), (32, 1, 1)), [buffer], {})
for times in map(int, sys.argv[3:]):
    kernel.launch(times)
mark = backend.mark()
mark.wait()
print(mark.passed, backend.difference(buffer, zeros, y, 0.0, 0.0).worst, flush=True)
os._exit(0)  # as the runner process ends
"""


def test_many_launches_go_in_graphs_and_none_is_lost(
    device: Device, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "count.image").write_bytes(device.image(COUNT))
    times = [2 * GRAPHED - 1, 2 * GRAPHED, 10 * GRAPHED + 1]
    words = [device.library.module, str(tmp_path / "count.image"), *map(str, times)]
    with all_addresses():
        done = subprocess.run(
            [sys.executable, "-c", MANY, *words], env=python_environment(environment), capture_output=True, text=True
        )
    assert done.stdout.split() == ["True", f"{sum(times) - 1:.1f}"], done.stderr


def test_kernels_come_and_go(device: Device) -> None:
    device.use(*SCALED, references=[expression("3 * x")])
    for _ in range(50):
        device.load(SCALE, "scale")
        assert device.check("scale") == []
        device.process.request({"do": "unload", "id": "scale"})


def test_the_fixed_load_that_shows_drift_runs(device: Device) -> None:
    """cuBLAS's product on a board that has the library, else the kernel that is sent."""
    source = 'extern "C" __global__ void wave(float *out, const float *start) { out[0] = start[0] + 1; }\n'
    launch = Launch("wave", (1, 1, 1), (32, 1, 1)).as_message()
    device.process.request({"do": "drift", "id": "reference", "launch": launch}, [device.image(source)])
    device.process.request({"do": "begin", "id": "reference"})
    assert device.process.request({"do": "end"})["launches"] >= 1


@pytest.fixture
def bench(
    library: Library,
    environment: dict[str, str],
    toolchain: Toolchain,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str], list[Measurement]]:
    """The library that is asked for, its process, the compiler and the meter, together: the rows of a specification."""
    if library is HIP:
        pytest.skip("test_hip.py runs one on a board of AMD's")
    for name, value in {**environment, CHOICE: library.name}.items():
        monkeypatch.setenv(name, value)
    if environment:  # the reference kernel is for thousands of cores
        quick = Build('extern "C" __global__ void square_wave(float *out, const float *start) {}\n', (), (), ())
        monkeypatch.setattr("app.engine.runner.cuda.language.wave_build", lambda: quick)
        monkeypatch.setattr("app.engine.metering.meter.WARM_STEP_S", 0.02)

    def rows(parameters: str) -> list[Measurement]:
        (tmp_path / "scale.cu").write_text(
            "#ifndef block_size_y\n#define block_size_y 1\n#endif\n"
            'extern "C" __global__ void scale(float *y, const float *x) {\n'
            f"    {AT}\n    if (i < n) y[i] = factor * x[i] + (block_size_y == 3);\n}}\n"
        )
        path = tmp_path / "scale.toml"
        path.write_text(SPECIFICATION.format(parameters=parameters, reference="factor * x", kernel=""))
        spec, sensors = load_specification(path), SteadySensors()
        space = build_space(spec.parameters, spec.restrictions, spec.constants, limits_of((9, 0), 132))
        with all_addresses():
            language = open_cuda(sensors, toolchain=toolchain, jobs=1)
            runner = KernelRunner.on(language, spec, space, DeviceGuard(sensors))
            try:
                return sorted(runner.measure(range(space.size), threading.Event()), key=lambda each: each.row)
            finally:
                runner.close()

    return rows


def test_a_session_runs_from_its_specification(bench: Callable[[str], list[Measurement]]) -> None:
    measured = {m.configuration["block_size_y"]: m for m in bench("block_size_y = [1, 2, 3]")}
    assert {size: m.state for size, m in measured.items()} == {
        1: State.OK,
        2: State.OK,
        3: State.CORRECTNESS,
    }, [m.error for m in measured.values()]
    assert measured[1].values["power_w"] == pytest.approx(300.0, abs=2.0)
    assert measured[1].values["time_s"] > 0


def test_a_kernel_runs_on_as_many_sms_as_its_configuration_asks_for(
    library: Library, bench: Callable[[str], list[Measurement]]
) -> None:
    """The blocks of a kernel that looks where it runs are counted; what cannot be is rounded up, or refused."""
    on_board = bool(os.environ.get("WATTRIDGE_TEST_BOARD"))
    counts, had = ([16, 20, 64], [16, 24, 64]) if on_board else ([2, 3, 4], [2, 4, 4])
    part, rounded, every, too_many = bench(f"sm_count = {[*counts, 4000]}")
    assert too_many.state is State.CONSTRAINTS
    assert "4000 cannot be had" in too_many.error
    if library.name != "cuda-bindings":
        assert part.state is State.RUNTIME
        assert "pip install 'wattridge[cuda]'" in part.error
        return
    assert [row.values["sms_used"] for row in (part, rounded, every)] == had
    step = had[1] - had[0]
    asked = f"{counts[1]} SMs were asked for and {had[1]} ran it: the driver gives {step} or more, by {step}"
    assert asked in rounded.message
    assert "asked for" not in part.message
    assert {row.state for row in (part, rounded, every)} == {State.OK}


def test_kernel_tuners_percentage_and_a_pause_between_launches(
    library: Library, bench: Callable[[str], list[Measurement]]
) -> None:
    if library.name == "cuda-bindings":
        half, every = bench("cuda_sm_percentage = [50, 100]")
        assert half.values["sms_used"] < every.values["sms_used"]
    at_once, paced = bench("launch_pause_ms = [0, 20]")
    assert at_once.values["time_s"] < 0.02 < paced.values["time_s"]
