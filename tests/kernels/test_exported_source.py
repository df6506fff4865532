"""What a session exports as source is whole: it compiles by itself, computes, and its header is C and C++."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fixtures.kernels_on_cpu import KernelOnCpu
from fixtures.operator_definitions import by_definition

from app.base.errors import InputError
from app.engine.report.export import export_session
from app.engine.runner.cuda.nvrtc import compile_text, library_version
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.session.summary import by_goal
from app.engine.specification.operator_kernels import specification_text
from app.engine.specification.operator_shapes import parse_operator
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.workloads.kernel_arguments import make_array
from app.engine.workloads.source_kernel import SourceKernel
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

MM, MV, CONV = "mm:1,40,36,96", "mv:2,1,37,264", "conv2d:1,9,8,12,5,3,2,1"
HALVES = ("mv:2,1,37,264:fp16", "mv:1,1,37,264:bf16")


Exported = tuple[Path, Path, dict[str, object], SimulatedGpu]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Exported]:
    """The source, the header and the document of the best of our kernels in a session."""
    known: dict[tuple[str, str], Exported] = {}

    def export(text: str, board: str = "h200") -> Exported:
        if (text, board) not in known:
            known[text, board] = _exported(text, tmp_path_factory.mktemp("exported"), board)
        return known[text, board]

    return export


def _exported(text: str, folder: Path, board: str) -> Exported:
    path = folder / "operator.toml"
    path.write_text(specification_text(parse_operator(text)))
    gpu = SimulatedGpu(load_twin(board), seed=1, clock=VirtualClock())
    options = SearchOptions(strategy="random_sample", max_evaluations=4, seed=2)
    plan = plan_specification(load_specification(path), gpu, options)
    with Store() as store:
        result = run_session(plan, store, lambda event: None, threading.Event())
    kinds = ["source", "header", "json"]
    ranked = by_goal(result.table, result.plan.objective.goal)
    ours = next(each for each in ranked if result.table.measurement(each).configuration["maker"] == "wattridge")
    files = export_session(result.plan, result.table, result.session, ours, folder / "out", kinds)[:-1]
    source, header, document = sorted(files, key=lambda file: [".cu", ".h", ".json"].index(file.suffix))
    return source, header, json.loads(document.read_text()), gpu


@pytest.mark.parametrize("text", [MM, MV, CONV])
def test_the_source_computes_what_the_operator_is_without_our_files(
    text: str, exported: Callable[..., Exported], tmp_path: Path
) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no g++ to build the kernels for the CPU with")
    source, _, document, gpu = exported(text)
    spec = load_specification(source.parents[1] / "operator.toml")
    assert spec.kernel is not None
    configuration = dict(document["configuration"])  # type: ignore[call-overload]
    prepared = SourceKernel.of(spec, gpu.limits, 232448).prepare(configuration)
    alone = dataclasses.replace(spec.kernel, sources=(source,))
    constants = {**spec.constants, **gpu.limits.as_names(), "__CUDACC_RTC__": 1}
    kernel = KernelOnCpu(dataclasses.replace(spec, kernel=alone, constants=constants), configuration, tmp_path)
    given = {a.name: make_array(a, place) for place, a in enumerate(prepared.calls.arguments)}
    [found] = kernel.run(given).values()
    right = by_definition(parse_operator(text), given)
    np.testing.assert_allclose(found, right, rtol=2e-5, atol=2e-5 * np.abs(right).max())
    assert '#include "' not in source.read_text()
    launch = document["launch"]
    assert isinstance(launch, dict)
    assert (tuple(launch["grid"]), tuple(launch["block"])) == (prepared.launch.grid, prepared.launch.block)


@pytest.mark.parametrize("text", [MM, MV, CONV])
def test_a_cuda_compiler_takes_the_source_as_it_is(
    text: str, exported: Callable[..., Exported], tmp_path: Path
) -> None:
    source, header, _, _ = exported(text)
    function = f"launch_{parse_operator(text).kind}"
    if shutil.which("nvcc") and shutil.which("c++"):
        whole = tmp_path / "whole.o"
        command = ["nvcc", "-c", "-arch=sm_90", "-include", str(header), "-o", str(whole), str(source)]
        told = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (told.returncode, told.stderr) == (0, "")
        assert function.encode() in whole.read_bytes()
    elif library_version() is not None:
        image, said = compile_text(source.read_text(), ["-arch=sm_90"])
        assert image, said
    else:
        pytest.skip("no CUDA compiler")


def test_the_header_is_c_and_cpp(exported: Callable[..., Exported], tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no compiler of C++")
    _, header, _, _ = exported(MM)
    caller = f'#include "{header}"\nint call(void) {{ return launch_mm(0, 0, 0, 0, 0, 0) + block_m; }}\n'
    for language in ("c", "c++"):
        command = ["c++", "-x", language, "-Wall", "-Werror", "-c", "-o", str(tmp_path / "call.o"), "-"]
        subprocess.run(command, input=caller, text=True, check=True, timeout=60)


def test_of_a_kernel_that_a_program_prints_there_is_no_source(tmp_path: Path) -> None:
    """An export runs no program, and a file without the kernel is none."""
    path = tmp_path / "generated.toml"
    path.write_text(
        '[kernel]\nname = "scale"\ngenerator = "python3 make.py {factor}"\nproblem_size = ["n"]\nprofile = "copy"\n'
        'arguments = [{ name = "y", type = "float32", shape = ["n"], output = true }]\n'
        "[constants]\nn = 1000\n[parameters]\nblock_size_x = [64]\nfactor = [1, 2]\n"
        '[objective]\nminimise = "energy_j"\n'
    )
    gpu = SimulatedGpu(load_twin("h200"), seed=1, clock=VirtualClock())
    plan = plan_specification(load_specification(path), gpu, SearchOptions(strategy="brute_force"))
    with Store() as store:
        result = run_session(plan, store, lambda event: None, threading.Event())
    out = tmp_path / "out"
    files = export_session(result.plan, result.table, result.session, None, out)
    names = [file.name for file in files]
    assert "scale.h" in names
    assert "scale.cu" not in names
    assert "launch_scale" not in (out / "scale.h").read_text()
    with pytest.raises(InputError, match="no CUDA source"):
        export_session(result.plan, result.table, result.session, None, out, ["source"])


@pytest.mark.parametrize(("arch", "board"), [(70, "v100"), (80, "a100"), (90, "h200")])
@pytest.mark.skipif(library_version() is None, reason="no NVRTC library (nvidia-cuda-nvrtc)")
def test_every_operator_compiles_for_boards_old_and_new(
    arch: int, board: str, exported: Callable[..., Exported]
) -> None:
    for text in (MM, MV, CONV, *HALVES):
        source, *_ = exported(text, board)
        image, said = compile_text(source.read_text(), [f"-arch=sm_{arch}"])
        assert image.startswith(b"\x7fELF"), said
