"""The vendor's library beside a session: asked for the operator in its own order of numbers, measured as kernels are.

The libraries are stand-ins that follow the manuals' definitions on the host (`fake_vendor.cpp`); no GPU is needed.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.cuda_bench import SteadySensors
from fixtures.host_vendor import HostDriver, expected, libraries, operands

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
from app.engine.session.planning import with_offers
from app.engine.space.array_expressions import widened
from app.engine.space.build import build_space
from app.engine.specification.operator_shapes import LIBRARY, MAKER, parse_operator
from app.sensors.limits import limits_of

HERE = Path(__file__).parent
__all__ = ["libraries"]  # a fixture


def use(patch: pytest.MonkeyPatch, *, cublas: Any = None, cudnn: Any = None) -> None:
    patch.setattr(vendor, "cublas", lambda: cublas)
    patch.setattr(vendor, "cudnn", lambda: cudnn)


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
    np.testing.assert_allclose(widened(found), expected(operator, given), rtol=1e-2 if operator.by_makers else 1e-5)
    assert kernel.library.startswith(("cuDNN 9.10.2", "cuBLAS") if operator.kind == "conv2d" else "cuBLAS 12.9.1")
    kernel.unload()
    assert driver.rooms == before, "what it took is given back"


def test_a_convolution_that_is_a_product_needs_no_cudnn(
    libraries: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, cublas=libraries)
    operator, driver = parse_operator("conv2d:2,4,5,3,6,1,1,0"), HostDriver()
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


@pytest.mark.parametrize(
    "launched",
    [
        ((2, 0), (4 * GRAPHED, 1), (4 * GRAPHED, 1), (GRAPHED, 1)),
        ((20, 1), (40, 1), (100, 2), (200, 2), (2000, 2)),
    ],
    ids=["many at once", "as it is seen how short a launch is"],
)
def test_many_launches_go_through_a_graph_as_those_of_kernels_do(
    launched: tuple[tuple[int, int], ...], libraries: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that take the host 0.12 ms are a hundred in a batch, which went one by one, so that it stayed so."""
    use(monkeypatch, cublas=libraries)
    operator, driver = parse_operator("mm:1,4,4,4"), HostDriver()
    kernel = vendor.VendorOperator(driver, operator, operands(operator, driver))  # type: ignore[arg-type]
    for times, recordings in launched:
        kernel.launch(times)
        assert driver.recordings == recordings


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


@pytest.mark.parametrize("refused", [0, 1000])
def test_the_fastest_way_is_that_of_the_device_and_not_that_of_the_host(
    refused: int, libraries: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Algorithm 6 takes the device least time and the host most; where nothing can be recorded, the host's counts."""
    use(monkeypatch, cublas=libraries, cudnn=libraries)
    libraries.spent_s.restype = ctypes.c_double
    libraries.set_costs((ctypes.c_double * 5)(2, 1, 3, 4, 0))
    on_host_s, queue = [0.0], vendor.Convolution.queue
    operator = parse_operator("conv2d:2,6,5,3,4,3,1,1")
    driver = HostDriver(lambda: libraries.spent_s() + on_host_s[0])
    driver.refused = refused

    def slowly(convolution: vendor.Convolution, *given: int) -> None:
        on_host_s[0] += 5 * (convolution.algorithm == 6 and not driver.replays)
        queue(convolution, *given)

    monkeypatch.setattr(vendor.Convolution, "queue", slowly)
    kernel = vendor.VendorOperator(driver, operator, operands(operator, driver))  # type: ignore[arg-type]
    assert kernel.library.endswith("NCHW, algorithm 1" if refused else "NCHW, algorithm 6")


def measured(folder: Path, shape: list[int]) -> tuple[list[Any], Baseline | None]:
    """A session's rows and baseline on the device that is not there."""
    path = folder / "operator.toml"
    path.write_text(
        f'[operator]\nkind = "mm"\nshape = {shape}\n[parameters]\nblock_m = [32]\nblock_n = [32]\nstages = [1]\n'
    )
    spec, sensors, limits = load_specification(path), SteadySensors(), limits_of((9, 0), 132)
    own = build_space(spec.parameters, spec.restrictions, spec.constants, limits)
    space = with_offers(own, spec, [{MAKER: LIBRARY}])
    toolchain = Toolchain((sys.executable, str(HERE.parent / "fake_cuda.py")), "fake 1")
    language = open_cuda(sensors, backend="fake_cuda", toolchain=toolchain, jobs=2)
    runner = KernelRunner.on(language, spec, space, DeviceGuard(sensors))
    try:
        by_library = space.rows_with({MAKER: LIBRARY}).tolist()
        rows = list(runner.measure([*by_library, 1], threading.Event()))
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
    by_library, ours = sorted(rows, key=lambda each: each.row)
    assert by_library.state is State.RUNTIME
    assert by_library.error == baseline.why_not
    assert ours.state is not State.TIMEOUT


def test_what_a_session_keeps_of_it_comes_back_or_is_refused() -> None:
    kept = Baseline("cuBLAS 13", {"time_s": 1e-3, "energy_j": 0.25}, {"energy_j": (0.2, 0.3)})
    assert Baseline.of_origin(kept.to_origin()) == kept
    assert Baseline.of_origin({}) is None
    for damaged in ("", "[]", "{}", '{"values": 3}'):
        with pytest.raises(InputError, match="damaged"):
            Baseline.of_origin({"vendor_library": damaged})
