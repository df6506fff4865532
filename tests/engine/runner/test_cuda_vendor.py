"""The vendor's library beside a session: asked for the operator in its own order of numbers, measured as kernels are.

The libraries are stand-ins that follow the manuals' definitions on the host (`fake_vendor.cpp`); no GPU is needed.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.cuda_bench import SteadySensors

from app.base.errors import InputError
from app.engine.control.guard import DeviceGuard
from app.engine.results.measurement import State
from app.engine.runner.cuda import vendor
from app.engine.runner.cuda.driver import GRAPHED
from app.engine.runner.cuda.language import open_cuda
from app.engine.runner.cuda.toolchain import Toolchain
from app.engine.runner.kernels.backend import DeviceFault
from app.engine.runner.kernels.reference import Baseline
from app.engine.runner.kernels.runner import KernelRunner
from app.engine.session.load import load_specification
from app.engine.space.array_expressions import widened
from app.engine.space.build import build_space
from app.engine.specification.operator_shapes import Operator, parse_operator
from app.engine.workloads.kernel_arguments import make_array
from app.engine.workloads.source_kernel import SourceKernel
from app.sensors.limits import limits_of

HERE = Path(__file__).parent


@dataclass
class HostMark:
    """A `Mark` of what is done when its call returns."""

    at_s: float
    passed = True

    def wait(self) -> None: ...

    def seconds_since(self, earlier: HostMark) -> float:
        return self.at_s - earlier.at_s


class HostDriver:
    """As much of a `Driver` as a library needs, its device the host."""

    stream = queue = whole = 1

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._rooms: dict[int, Any] = {}
        self._clock = clock
        self.recordings = 0
        self.refused = 0  # recordings that fail before one succeeds

    def use(self, queue: Any) -> None:
        """There is one queue."""
        assert queue is self.whole

    def mark(self) -> Any:
        return HostMark(self._clock())

    def allocate(self, nbyte: int) -> int:
        room = ctypes.create_string_buffer(nbyte)
        self._rooms[ctypes.addressof(room)] = room
        return ctypes.addressof(room)

    def free(self, address: int) -> None:
        del self._rooms[address]

    def write(self, address: int, array: np.ndarray) -> None:  # type: ignore[type-arg]
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def read(self, address: int, array: np.ndarray) -> None:  # type: ignore[type-arg]
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def record(self, queue: Callable[[], None]) -> Any:
        if self.refused:
            self.refused -= 1
            raise DeviceFault("operation not permitted when stream is capturing")
        self.recordings += 1

        class Recording:
            launch = staticmethod(queue)
            destroy = staticmethod(lambda: None)

        return Recording()

    @property
    def rooms(self) -> int:
        return len(self._rooms)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if shutil.which("c++") is None:
        pytest.skip("the stand-ins for the libraries need c++")
    library = tmp_path_factory.mktemp("vendor") / "libfake.so"
    source = HERE / "fake_vendor.cpp"
    subprocess.run(["c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return ctypes.CDLL(str(library))


def use(patch: pytest.MonkeyPatch, *, cublas: Any = None, cudnn: Any = None) -> None:
    patch.setattr(vendor, "cublas", lambda: cublas)
    patch.setattr(vendor, "cudnn", lambda: cudnn)


def operands(operator: Operator, driver: HostDriver) -> vendor.Operands:
    """The session's arguments of an operator, as its specification has them."""
    from app.engine.specification.check import specification_of

    own = {"kind": operator.kind, "shape": list(operator.shape), "precision": operator.precision}
    spec, limits = specification_of({"operator": own}, Path("o.toml")), limits_of((9, 0), 4)
    space = build_space(spec.parameters, spec.restrictions, spec.constants, limits)
    prepared = SourceKernel.of(spec, limits, 232448).prepare(space.configuration(0))
    found = {}
    for place, argument in enumerate(prepared.calls.arguments):
        array = make_array(argument, place)
        found[argument.name] = (driver.allocate(array.nbytes), array)
        driver.write(*found[argument.name])
    return found


def expected(operator: Operator, given: vendor.Operands) -> np.ndarray:  # type: ignore[type-arg]
    arrays = {name: widened(array).astype(float) for name, (_, array) in given.items()}
    if operator.kind == "mm":
        return np.einsum("bij,bjk->bik", arrays["a"], arrays["b"])
    if operator.kind == "mv":
        return np.einsum("bnk,bkj->bnj", arrays["w"], arrays["x"])
    size = operator.sizes
    edge = (size["pad"],) * 2
    padded = np.pad(arrays["x"], ((0, 0), edge, edge, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size["kernel"],) * 2, axis=(1, 2))
    return np.einsum("bhwcrs,rsco->bhwo", windows[:, :: size["stride"], :: size["stride"]], arrays["w"])


CASES = (
    *("mm:1,5,7,9", "mm:3,6,4,5", "mv:1,1,6,11", "mv:3,1,5,7", "mm:2,5,7,9:fp16", "mm:2,5,7,9:bf16"),
    *("mv:1,1,6,11:fp16", "mv:3,1,5,7:bf16"),
    *("conv2d:2,6,5,3,4,3,1,1", "conv2d:1,7,7,4,5,3,2,0", "conv2d:2,4,5,3,6,1,1,0"),
)


@pytest.mark.parametrize("text", CASES)
def test_a_library_computes_what_our_kernels_do(
    text: str, libraries: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, cublas=libraries, cudnn=libraries)
    operator, driver = parse_operator(text), HostDriver()
    given = operands(operator, driver)
    before = driver.rooms
    kernel = vendor.VendorOperator(driver, operator, given)  # type: ignore[arg-type]
    kernel.launch(1)
    kernel.deliver()
    output = "c" if operator.kind == "mm" else "y"
    address, like = given[output]
    found = np.empty_like(like)
    driver.read(address, found)
    np.testing.assert_allclose(found, expected(operator, given), rtol=1e-5)
    assert kernel.library.startswith(("cuDNN 9.10.2", "cuBLAS") if operator.kind == "conv2d" else "cuBLAS 12.9.1")
    kernel.unload()
    assert driver.rooms == before, "what it took is given back"


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_a_convolution_that_is_a_product_needs_no_cudnn(
    precision: str, libraries: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, cublas=libraries)
    operator, driver = parse_operator(f"conv2d:2,4,5,3,6,1,1,0:{precision}"), HostDriver()
    given = operands(operator, driver)
    vendor.VendorOperator(driver, operator, given).launch(1)  # type: ignore[arg-type]
    found = np.empty_like(given["y"][1])
    driver.read(given["y"][0], found)
    np.testing.assert_allclose(found, expected(operator, given), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "said"), [("mm:1,4,4,4", "cuBLAS was not found"), ("conv2d:1,4,4,2,2,3,1,1", "cuDNN")]
)
def test_a_library_that_is_missing_is_one_line(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    driver = HostDriver()
    operator = parse_operator(text)
    with pytest.raises(DeviceFault, match=said) as fault:
        vendor.VendorOperator(driver, operator, operands(operator, driver))  # type: ignore[arg-type]
    assert not fault.value.fatal
    assert "\n" not in str(fault.value)


def test_many_launches_go_through_a_graph_as_those_of_kernels_do(
    libraries: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, cublas=libraries)
    operator, driver = parse_operator("mm:1,4,4,4"), HostDriver()
    kernel = vendor.VendorOperator(driver, operator, operands(operator, driver))  # type: ignore[arg-type]
    kernel.launch(2 * GRAPHED - 1)
    assert driver.recordings == 0
    kernel.launch(4 * GRAPHED)
    kernel.launch(4 * GRAPHED)
    assert driver.recordings == 1


def test_a_recording_that_failed_is_tried_again(libraries: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, cublas=libraries)
    operator, driver = parse_operator("mm:1,4,4,4"), HostDriver()
    kernel = vendor.VendorOperator(driver, operator, operands(operator, driver))  # type: ignore[arg-type]
    driver.refused = 2
    for recordings in (0, 0, 1, 1):
        kernel.launch(2 * GRAPHED)
        assert driver.recordings == recordings, "launched one by one, a library's kernels of microseconds wait for us"


@pytest.mark.parametrize(
    ("text", "costs", "library"),
    [
        ("conv2d:2,6,5,3,4,3,1,1", (1, 2, 3, 4, 0), "NCHW, algorithm 1"),
        ("conv2d:2,6,5,3,4,3,1,1", (2, 1, 3, 4, 0), "NCHW, algorithm 6"),
        ("conv2d:2,6,5,3,4,3,1,1", (3, 4, 2, 1, 0), "NHWC, algorithm 6"),
        ("conv2d:2,4,5,3,6,1,1,0", (3, 4, 1, 2, 5), "NHWC, algorithm 1"),
        ("conv2d:2,4,5,3,6,1,1,0", (3, 4, 5, 6, 1), "cuBLAS 12.9.1"),
    ],
)
def test_of_a_convolution_the_librarys_fastest_way_is_the_reference(
    text: str, costs: tuple[float, ...], library: str, libraries: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, cublas=libraries, cudnn=libraries)
    libraries.spent_s.restype = ctypes.c_double
    libraries.set_costs((ctypes.c_double * 5)(*costs))
    operator, driver = parse_operator(text), HostDriver(libraries.spent_s)
    given = operands(operator, driver)
    before = driver.rooms
    kernel = vendor.VendorOperator(driver, operator, given)  # type: ignore[arg-type]
    assert kernel.library.endswith(library)
    kernel.launch(1)
    kernel.deliver()
    found = np.empty_like(given["y"][1])
    driver.read(given["y"][0], found)
    np.testing.assert_allclose(found, expected(operator, given), rtol=1e-5)
    kernel.unload()
    assert driver.rooms == before, "of the slower ones nothing stays"


def measured(folder: Path, shape: list[int]) -> tuple[list[Any], Baseline | None]:
    """A session's rows and baseline on the device that is not there."""
    path = folder / "operator.toml"
    path.write_text(
        f'[operator]\nkind = "mm"\nshape = {shape}\n[parameters]\nblock_m = [32]\nblock_n = [32]\nstages = [1]\n'
    )
    spec, sensors, limits = load_specification(path), SteadySensors(), limits_of((9, 0), 132)
    space = build_space(spec.parameters, spec.restrictions, spec.constants, limits)
    toolchain = Toolchain((sys.executable, str(HERE.parent / "fake_cuda.py")), "fake 1")
    language = open_cuda(sensors, backend="fake_cuda", toolchain=toolchain, jobs=2)
    runner = KernelRunner.on(language, spec, space, DeviceGuard(sensors))
    try:
        rows = list(runner.measure([0], threading.Event()))
        return rows, Baseline.of_origin(runner.conclude())  # type: ignore[attr-defined]
    finally:
        runner.close()


def test_a_session_measures_the_library_with_its_own_meter(tmp_path: Path) -> None:
    _, baseline = measured(tmp_path, [1, 32, 32, 32])
    assert baseline is not None
    assert (baseline.library, baseline.why_not) == ("fake library 1.0", "")
    assert baseline.values["time_s"] == pytest.approx(0.5e-3, rel=0.05)
    assert baseline.values["energy_j"] == pytest.approx(baseline.values["power_w"] * baseline.values["time_s"])
    assert baseline.values["GFLOP/s"] == pytest.approx(2 * 32**3 / baseline.values["time_s"] / 1e9)
    low, high = baseline.intervals["energy_j"]
    assert low < baseline.values["energy_j"] < high


def test_a_session_without_the_library_says_so_and_goes_on(tmp_path: Path) -> None:
    rows, baseline = measured(tmp_path, [2, 32, 32, 32])
    assert baseline is not None
    assert baseline.why_not == "a library was not found: pip install it"
    assert len(rows) == 1
    assert rows[0].state is not State.TIMEOUT


def test_what_a_session_keeps_of_it_comes_back_or_is_refused() -> None:
    kept = Baseline("cuBLAS 13", {"time_s": 1e-3, "energy_j": 0.25}, {"energy_j": (0.2, 0.3)})
    assert Baseline.of_origin(kept.to_origin()) == kept
    assert Baseline.of_origin({}) is None
    for damaged in ("", "[]", "{}", '{"values": 3}'):
        with pytest.raises(InputError, match="damaged"):
            Baseline.of_origin({"vendor_library": damaged})
