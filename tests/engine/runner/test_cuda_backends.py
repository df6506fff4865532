"""Which library speaks to CUDA's driver, and how the user hears of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from app.base.errors import InputError, WattridgeError
from app.base.installation import how_to_add
from app.engine.runner.cuda.gpu import LIBRARIES, CudaGpu, find_library
from app.engine.runner.cuda.language import cuda_in_use
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

Libraries = Callable[..., None]


def test_cuda_bindings_come_first_and_pycuda_serves_where_it_is_alone(libraries: Libraries) -> None:
    libraries(cuda_bindings="12.9.10", pycuda="2026.1")
    assert str(find_library("here")) == "cuda-bindings 12.9.10"
    libraries(pycuda="2026.1")
    assert str(find_library("here")) == "pycuda 2026.1"


def test_bindings_of_cuda_11_have_other_functions_and_are_not_taken(libraries: Libraries) -> None:
    libraries(cuda_bindings="11.8.7", pycuda="2026.1")
    assert find_library("here").name == "pycuda"


@pytest.mark.parametrize("asked", [library.name for library in LIBRARIES])
def test_the_environment_chooses(libraries: Libraries, monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    libraries(cuda_bindings="13.5.0", pycuda="2026.1")
    monkeypatch.setenv("WATTRIDGE_CUDA", asked)
    assert find_library("here").name == asked


@pytest.mark.parametrize(
    ("asked", "what", "remedy"),
    [
        ("", "neither is installed", how_to_add("cuda")),
        ("pycuda", "pycuda is not installed", how_to_add("pycuda")),
        ("cuda-bindings", "cuda-bindings is not installed", how_to_add("cuda")),
    ],
)
def test_a_library_that_is_missing_is_one_line_with_the_remedy(
    libraries: Libraries, monkeypatch: pytest.MonkeyPatch, asked: str, what: str, remedy: str
) -> None:
    libraries()
    monkeypatch.setenv("WATTRIDGE_CUDA", asked)
    with pytest.raises(WattridgeError, match=what) as refused:
        find_library("H200 #0")
    assert refused.value.where == "H200 #0"
    assert remedy in refused.value.remedy
    assert "\n" not in str(refused.value)


def test_a_choice_that_is_no_library_is_an_input_error_with_those_there_are(
    libraries: Libraries, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries(pycuda="2026.1")
    monkeypatch.setenv("WATTRIDGE_CUDA", "opencl")
    with pytest.raises(InputError, match="'opencl'") as refused:
        find_library("here")
    assert refused.value.remedy == "cuda-bindings or pycuda"


def test_what_is_in_use_names_what_else_there_is(libraries: Libraries) -> None:
    libraries(cuda_bindings="12.9.10", pycuda="2026.1")
    facts = cuda_in_use()
    if facts["why_not"] is None:  # a compiler is here
        assert (facts["library"], facts["other_libraries"]) == ("cuda-bindings 12.9.10", ["pycuda"])
        assert str(facts["compiler"]).startswith(("nvcc", "NVRTC"))
    libraries()
    assert "neither is installed" in str(cuda_in_use()["why_not"])


def test_a_library_that_fails_names_the_other(libraries: Libraries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # no device answers, whatever this machine has
    libraries(cuda_bindings="12.9.10", pycuda="2026.1")
    with (
        pytest.raises(WattridgeError, match="no CUDA context") as failed,
        closing(CudaGpu(SimulatedGpu(load_twin("h200")))),
    ):
        pass
    assert failed.value.remedy.endswith("WATTRIDGE_CUDA=pycuda")
    assert "Traceback" not in str(failed.value)
