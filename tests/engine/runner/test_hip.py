"""Kernels on AMD's boards through HIP and hipRTC: a session over stand-ins whose device is the host.

What HIP's driver has to do is asked by `test_cuda_conformance.py`, as of every library.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

for folder in ("nvml", "engine"):
    sys.path.insert(0, str(Path(__file__).parents[2] / folder))

from boards import StandIn  # noqa: E402
from fixtures.stand_in_fixtures import boards  # noqa: E402, F401
from host_cuda.build import build_hip, why_not  # noqa: E402

from app.cli import main  # noqa: E402
from app.engine.runner.hip import hiprtc  # noqa: E402

SPECIFICATION = """
[kernel]
name = "scale"
source = "scale.cu"
problem_size = ["n"]
grid_divisors = { x = ["block_size_x"] }
arguments = [
    { name = "y", type = "float32", shape = ["n"], output = true },
    { name = "x", type = "float32", shape = ["n"], fill = "random" },
]
verify = { reference = "factor * x", rtol = 1e-6 }
[constants]
n = 1000
factor = 2
[parameters]
block_size_x = [64]
wrong = [0, 1]
[objective]
minimise = "energy_j"
[search]
strategy = "brute_force"
"""
KERNEL = """
extern "C" __global__ void scale(float *y, const float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor * x[i] + wrong;
}
"""
WITH_BOARDS = Callable[..., StandIn]


@pytest.fixture
def specification(tmp_path: Path) -> Path:
    (tmp_path / "scale.cu").write_text(KERNEL)
    path = tmp_path / "scale.toml"
    path.write_text(SPECIFICATION)
    return path


@pytest.fixture
def hip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing := why_not():
        pytest.skip(missing)
    for name, value in build_hip(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("app.engine.metering.meter.WARM_STEP_S", 0.02)
    hiprtc._library.cache_clear()


@pytest.mark.usefixtures("hip")
def test_a_session_compiles_runs_checks_and_measures_kernels(
    boards: WITH_BOARDS,  # noqa: F811
    specification: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stand_in = boards("mi210")
    stand_in.work(120.0)
    assert main(["tune", str(specification), "--gpu", "amd:0", "--json"]) == 0
    session = json.loads(capsys.readouterr().out)
    assert (session["source"], session["evaluated"]) == ("amd", 2)
    assert session["failed"] == {"correctness": 1}
    assert session["compiler"].startswith("hipRTC ")
    assert " for gfx90a" in session["compiler"]
    assert session["best"]["configuration"]["wrong"] == 0
    values = session["best"]["values"]
    assert values["energy_j"] == pytest.approx(279.0 * values["time_s"], rel=0.03)


@pytest.mark.usefixtures("hip")
def test_what_the_compiler_refuses_is_said() -> None:
    image, said = hiprtc.compile_text('extern "C" __global__ void k() { nonsense; }', ["--offload-arch=gfx90a"])
    assert image == b""
    assert "nonsense" in said


def test_without_hiprtc_the_remedy_is_named(
    boards: WITH_BOARDS,  # noqa: F811
    specification: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boards("mi210")
    monkeypatch.setattr(hiprtc, "library_places", lambda name: iter([f"/nowhere/{name}"]))
    hiprtc._library.cache_clear()
    assert main(["tune", str(specification), "--gpu", "amd:0"]) != 0
    assert "libhiprtc.so" in capsys.readouterr().err
    hiprtc._library.cache_clear()
