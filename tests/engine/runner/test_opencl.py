"""Kernels in OpenCL on a device of this machine: built, launched, timed and checked for real, and every way to fail."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from opencl_here import usable_device

from app.base.errors import InputError, WattridgeError
from app.base.paths import resources
from app.engine.metering import stopwatch
from app.engine.results.measurement import Measurement, State
from app.engine.runner.kernels.backend import DeviceFault
from app.engine.runner.kernels.process import KernelFailed
from app.engine.runner.opencl.image import make_image
from app.engine.runner.opencl.language import OpenclLanguage
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.space.build import build_space
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.workloads.kernel_arguments import Launch
from app.sensors.limits import limits_of
from app.sensors.opencl import devices
from app.sensors.opencl.devices import OpenclDevice, find_device, is_board
from app.sensors.select import open_gpu

SPECIFICATION = """
[kernel]
name = "scale"
language = "opencl"
source = "scale.cl"
problem_size = ["n"]
grid_divisors = { x = ["block_size_x"] }
arguments = [
    { name = "y", type = "float32", shape = ["n"], output = true },
    { name = "x", type = "float32", shape = ["n"], fill = "random" },
    { name = "weights", type = "float32", shape = [4], fill = "1 + i", memory = "constant" },
    { name = "room", type = "float32", shape = ["block_size_x"], memory = "local" },
    { name = "factor", type = "float32", value = 2 },
]
verify = { reference = "slowly" }
timeout_s = 2.0
[constants]
n = 4096
[parameters]
block_size_x = [64]
fault = [0]
[objective]
minimise = "time_s"
[search]
strategy = "brute_force"
"""
SOURCE = """
__kernel void scale(__global float *y, __global const float *x, __constant float *weights, __local float *room,
                    float factor) {
    const int i = get_global_id(0);
#if fault == 1
    *(volatile __global int *)0 = 1;
#elif fault == 2
    for (volatile int forever = 1; forever;) ;
#elif fault == 3
    does not compile;
#endif
    room[get_local_id(0)] = x[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[i] = factor * weights[1] * room[get_local_id(0)] + (fault == 4);
}
__kernel void slowly(__global float *y, __global const float *x, __constant float *weights, __local float *room,
                     float factor) {
    if (get_global_id(0) < n) y[get_global_id(0)] = factor * 2.0f * x[get_global_id(0)];
}
"""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The selector of a device that runs kernels."""
    environment, number, why_not = usable_device()
    if not number:
        pytest.skip(why_not)
    for name, value in {**environment, "POCL_CACHE_DIR": str(tmp_path / "pocl")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(stopwatch, "WINDOW_S", 0.01)
    monkeypatch.setattr(stopwatch, "STEADY_TIME", 1e9)
    devices.opencl_devices.cache_clear()
    yield f"opencl:{number}"
    devices.opencl_devices.cache_clear()


def tuned(path: Path, device: str, most: int | None = None) -> dict[object, Measurement]:
    """Every configuration, by the value of its last parameter."""
    plan = plan_specification(load_specification(path), open_gpu(device), SearchOptions(max_evaluations=most))
    with Store() as store:
        result = run_session(plan, store, lambda event: None, threading.Event())
    assert result.state == "done", result.reason
    found = (result.table.measurement(row) for row in range(len(result.table)))
    return {each.configuration[plan.space.parameters[-1].name]: each for each in found}


def specification(folder: Path, **changes: str) -> Path:
    """In that folder, with these lines in place of its own."""
    (folder / "scale.cl").write_text(SOURCE)
    path, text = folder / "scale.toml", SPECIFICATION
    for key, value in changes.items():
        line = next(line for line in text.splitlines() if line.startswith(f"{key} ="))
        text = text.replace(line, f"{key} = {value}")
    path.write_text(text)
    return path


def test_every_fault_costs_one_configuration(device: str, tmp_path: Path) -> None:
    found = tuned(specification(tmp_path, fault="[1, 2, 3, 4, 0]"), device)
    assert {fault: each.state for fault, each in found.items()} == {
        0: State.OK,
        1: State.RUNTIME,
        2: State.TIMEOUT,
        3: State.COMPILE,
        4: State.CORRECTNESS,
    }, [each.error for each in found.values()]
    assert "SIGSEGV" in found[1].error
    assert "error" in found[3].error.splitlines()[0]
    assert "4096 of 4096 values are wrong" in found[4].error
    right = found[0]
    assert 0 < right.values["time_s"] < 1.0
    assert "energy_j" not in right.values
    assert right.power_source == "no energy: this device reports none"
    assert right.source == "unmetered"


def test_time_is_that_of_the_profiling_events(device: str, tmp_path: Path) -> None:
    """Four times the work takes longer, and neither contains what the host needs for a launch."""
    (tmp_path / "work.cl").write_text(
        "__kernel void work(__global float *y) {\n"
        "    float sum = y[get_global_id(0)];\n"
        "    for (int i = 0; i < 2000 * times; i++) sum = sum * 0.999f + 1.0f;\n"
        "    y[get_global_id(0)] = sum;\n}\n"
    )
    path = tmp_path / "work.toml"
    path.write_text(
        '[kernel]\nname = "work"\nlanguage = "opencl"\nsource = "work.cl"\nproblem_size = [4096]\n'
        'grid_divisors = { x = [64] }\nblock_size_names = ["64", "1", "1"]\n'
        'arguments = [{ name = "y", type = "float32", shape = [4096], output = true }]\n'
        "[parameters]\ntimes = [1, 16]\n"
        '[objective]\nminimise = "time_s"\n[search]\nstrategy = "brute_force"\n'
    )
    found = tuned(path, device)
    assert {each.state for each in found.values()} == {State.OK}, [each.error for each in found.values()]
    assert found[16].values["time_s"] > 4 * found[1].values["time_s"]


def test_the_example_runs(device: str) -> None:
    found = tuned(resources() / "examples" / "vector_add_opencl.toml", device, most=2)
    assert {each.state for each in found.values()} == {State.OK}, [each.error for each in found.values()]
    assert all(each.values["GB/s"] > 0 and "GB/J" not in each.values for each in found.values())


def test_a_t1_file_with_opencl_runs(device: str, tmp_path: Path) -> None:
    (tmp_path / "add.cl").write_text(
        "__kernel void add(__global float *y, __global const float *x, __local float *room) {\n"
        "    room[get_local_id(0)] = x[get_global_id(0)];\n    y[get_global_id(0)] = room[get_local_id(0)] + 1.0f;\n}\n"
    )
    path = tmp_path / "add.json"
    argument = {"Type": "float", "MemoryType": "Vector", "Size": 1024}
    path.write_text(
        json.dumps(
            {
                "General": {"FormatVersion": 1},
                "ConfigurationSpace": {
                    "TuningParameters": [{"Name": "size", "Type": "int", "Values": "[32, 64]"}],
                    "Conditions": [],
                },
                "KernelSpecification": {
                    "Language": "OpenCL",
                    "KernelName": "add",
                    "KernelFile": "add.cl",
                    "GlobalSize": {"X": "1024"},
                    "LocalSize": {"X": "size"},
                    "Arguments": [
                        {**argument, "Name": "y", "AccessType": "WriteOnly", "Output": 1, "FillType": "Constant"},
                        {**argument, "Name": "x", "AccessType": "ReadOnly", "FillType": "Constant", "FillValue": 2},
                        {"Name": "room", "Type": "float", "MemoryType": "Local", "Size": "size"},
                    ],
                    "ReferenceArguments": [
                        {"Name": "right", "TargetName": "y", "FillType": "Constant", "FillValue": 3}
                    ],
                },
            }
        )
    )
    found = tuned(path, device)
    assert {size: each.state for size, each in found.items()} == {32: State.OK, 64: State.OK}, [
        each.error for each in found.values()
    ]


def test_more_work_items_than_the_device_takes_are_not_in_the_space(device: str, tmp_path: Path) -> None:
    path = specification(tmp_path, block_size_x="[64, 1048576]")
    plan = plan_specification(load_specification(path), open_gpu(device))
    assert [plan.space.configuration(row)["block_size_x"] for row in range(plan.space.size)] == [64]


# --- what needs no device


def listed(**given: str) -> OpenclDevice:
    plain = {"number": "0.0", "name": "NVIDIA H200", "platform": "NVIDIA CUDA", "driver": "", "kind": "GPU"}
    numbers = {"compute_units": 132, "work_group_size": 1024, "local_byte": 49152, "memory_mib": 1.0}
    return OpenclDevice(**{**plain, "uuid": "", "pci": "", **given}, **numbers)  # type: ignore[arg-type]


class _Failing:
    """What pyopencl is asked for, failing with an error of that number."""

    command_execution_status = -9999

    def __init__(self, code: int = -9999) -> None:
        self.code = code

    def __call__(self, *_: object) -> None:
        import pyopencl as cl

        name = "clWaitForEvents" if self.code == -9999 else "clEnqueueNDRangeKernel"
        raise (cl.RuntimeError if self.code == -9999 else cl.LogicError)(cl._cl._ErrorRecord(name, self.code, ""))

    wait = __call__


def test_an_error_that_is_the_drivers_own_is_said_in_words_with_its_number() -> None:
    backend = pytest.importorskip("app.engine.runner.opencl.backend", exc_type=ImportError)
    mark = backend.OpenclMark(None, _Failing(), [])
    for ask, begins in ((mark.wait, "clWaitForEvents failed: "), (lambda: mark.passed, "the queue failed: ")):
        with pytest.raises(DeviceFault, match="error -9999, NVIDIA's for an illegal read or write") as failed:
            ask()
        assert str(failed.value).startswith(begins)
        assert failed.value.fatal


def test_whether_a_group_is_too_large_is_the_drivers_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it reports of a kernel may be less than it launches."""
    backend = pytest.importorskip("app.engine.runner.opencl.backend", exc_type=ImportError)
    reports = SimpleNamespace(get_work_group_info=lambda *_: 256, num_args=0)
    for part, made in (("Program", SimpleNamespace(build=lambda: None)), ("Kernel", reports)):
        monkeypatch.setattr(backend.cl, part, lambda *_, made=made: made)
    queue = SimpleNamespace(context=None, device=None, queue=None, launched=[])
    launch = Launch("add", (4, 1, 1), (512, 1, 1))
    kernel = backend.OpenclKernel(queue, make_image(["add"], b""), launch, [])
    monkeypatch.setattr(backend.cl, "enqueue_nd_range_kernel", lambda *_: "an event")
    kernel.launch(2)
    assert queue.launched == ["an event"] * 2
    monkeypatch.setattr(backend.cl, "enqueue_nd_range_kernel", _Failing(-54))
    with pytest.raises(DeviceFault, match=r"512 work-items, 256 are the most .*INVALID_WORK_GROUP_SIZE") as refused:
        kernel.launch(1)
    assert not refused.value.fatal


@pytest.mark.parametrize(
    ("told", "same"),
    [
        ({"uuid": "5f2b0a54-3f0e-11ee-be56-0242ac120002"}, True),
        ({"uuid": "00000000-3f0e-11ee-be56-0242ac120002", "pci": "00000000:65:00.0"}, False),
        ({"pci": "00000000:65:00.0"}, True),
        ({"pci": "0001:65:00.0"}, False),
        ({"pci": "nonsense"}, False),
        ({}, False),  # the same name is no proof
    ],
)
def test_a_device_is_a_board_only_where_it_says_so(told: dict[str, str], same: bool) -> None:
    assert is_board(listed(**told), "GPU-5F2B0A54-3f0e-11ee-be56-0242ac120002", "0000:65:00.0") is same


def test_a_device_says_which_board_it_is_by_identifiers_that_pyopencl_does_not_know() -> None:
    """A driver for NVIDIA's boards gave a slot that is no device number: the standard identifiers are asked for."""
    listing = pytest.importorskip("app.sensors.opencl.listing", exc_type=ImportError)
    told = {
        (listing.UUID, 16): bytes.fromhex("5f2b0a543f0e11eebe560242ac120002"),
        (listing.PCI_BUS_INFO, 16): struct.pack("4I", 0, 0x65, 6, 0),
    }

    def ask(device: object, what: int, length: int) -> bytes:
        return told.get((what, length), b"")

    assert listing.uuid_of(None, ask) == "5f2b0a54-3f0e-11ee-be56-0242ac120002"
    assert listing.pci_of(None, ask) == "00000000:65:06.0"
    told.clear()
    assert (listing.uuid_of(None, ask), listing.pci_of(None, ask)) == ("", "")


ASK = """
import sys
sys.path.insert(0, sys.argv[1])
import listing
number, ask = sys.argv[2].split("."), listing.asking(listing.loaders())
device = listing.cl.get_platforms()[int(number[0])].get_devices()[int(number[1])]
units = listing.cl.device_info.MAX_COMPUTE_UNITS
assert int.from_bytes(ask(device, units, 4), sys.byteorder) == device.max_compute_units
assert ask(device, units, 16) == b"", "an answer of another length is none"
assert ask(device, 0x7FFF, 4) == b""
assert listing.asking(["/no/such/library"])(device, units, 4) == b""
"""


def test_the_library_is_asked_as_pyopencl_asks_it() -> None:
    environment, number, why_not = usable_device()
    if why_not:
        pytest.skip(why_not)
    command = [sys.executable, "-P", "-c", ASK, str(Path(devices.__file__).parent), number]
    asked = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr


def test_a_board_without_an_address_is_no_device_without_one() -> None:
    assert not is_board(listed(), "GPU-1", "")


def test_a_device_is_chosen_by_number_or_name(monkeypatch: pytest.MonkeyPatch) -> None:
    several = (listed(), listed(number="1.0", name="AMD EPYC"), listed(number="1.1", name="AMD EPYC 2"))
    monkeypatch.setattr(devices, "opencl_devices", lambda: several)
    assert find_device("") is several[0]
    assert find_device("1") is several[1]
    assert find_device("1.1") is several[2]
    assert find_device("h200") is several[0]
    with pytest.raises(InputError, match="several"):
        find_device("EPYC")
    with pytest.raises(InputError, match="there is no OpenCL device 'arc'") as refused:
        find_device("arc")
    assert "1 (AMD EPYC, NVIDIA CUDA)" in refused.value.remedy


def test_without_pyopencl_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "opencl_installed", lambda: False)
    devices.opencl_devices.cache_clear()
    with pytest.raises(WattridgeError, match="pyopencl is not installed") as refused:
        open_gpu("opencl")
    assert "[opencl]'" in refused.value.remedy


def test_a_kernel_that_is_not_there_is_a_failure_to_compile() -> None:
    with pytest.raises(KernelFailed, match="no kernel 'scale'; it has add, sub") as failed:
        OpenclLanguage.symbol(OpenclLanguage.__new__(OpenclLanguage), make_image(["add", "sub"], b"binary"), "scale")
    assert failed.value.state is State.COMPILE


# --- CLBlast's GEMM

GEMM = resources() / "examples" / "clblast_gemm.toml"


def test_the_space_of_clblasts_gemm_is_the_published_one() -> None:
    """17,472 configurations; CLBlast's own restrictions alone leave 484 more, which need 256 registers for sums."""
    spec = load_specification(GEMM)
    limits = limits_of((8, 0))
    published = build_space(spec.parameters, spec.restrictions, spec.constants, limits)
    *usual, registers = spec.restrictions
    more = build_space(spec.parameters, usual, spec.constants, limits)
    assert (published.size, more.size) == (17_472, 17_956)
    assert registers == "MWG // MDIMC * (NWG // NDIMC) <= 255"


def test_the_kernel_with_clblasts_parameters_is_right(device: str, tmp_path: Path) -> None:
    text = GEMM.read_text().replace("../kernels", str(resources() / "kernels")).replace("n = 4096", "n = 128")
    for name, values in (
        ("MWG", "64"),
        ("NWG", "64"),
        ("MDIMC", "16"),
        ("NDIMC", "8"),
        ("MDIMA", "8"),
        ("NDIMB", "16"),
    ):
        text = re.sub(rf"^{name} = .*$", f"{name} = [{values}]", text, flags=re.MULTILINE)
    text = re.sub(
        r"^VWM = .*\nVWN = .*\nSA = .*\nSB = .*$",
        "VWM = [2]\nVWN = [4]\nSA = [1]\nSB = [0, 1]",
        text,
        flags=re.MULTILINE,
    )
    path = tmp_path / "gemm.toml"
    path.write_text(text)
    found = tuned(path, device)
    assert {sb: each.state for sb, each in found.items()} == {0: State.OK, 1: State.OK}, [
        each.error for each in found.values()
    ]
