"""What a measurement reaches of a board's theoretical peak, and when nothing can be said of it."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from app.base.paths import resources
from app.engine.analysis.peak_share import peak_share
from app.engine.results.measurement import Measurement, State
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.specification.plan import SessionPlan
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

# [Anzt2015, table II]: its fastest kernel, 904 GFLOP/s at 4.49 GFLOPS/W
FASTEST = {"GFLOP/s": 904.0, "power_w": 904 / 4.49, "time_s": 0.152}


def plan(example: str = "dgemm", board: str = "k20x") -> SessionPlan:
    gpu = SimulatedGpu(load_twin(board), clock=VirtualClock())
    return plan_specification(load_specification(resources() / "examples" / f"{example}.toml"), gpu)


def measured(values: dict[str, float], state: State = State.OK) -> Measurement:
    return Measurement(row=0, configuration={}, state=state, values=values)


def test_the_published_kernel_reaches_the_published_shares() -> None:
    """S2: the fastest is at 63 % of the theoretical peak; 4.49 of 6.08 GFLOPS/W are 74 %."""
    share = peak_share(plan(), measured(FASTEST))
    assert share is not None
    assert share.precision == "fp64"
    assert share.speed == pytest.approx(0.63, abs=0.005)
    assert share.efficiency == pytest.approx(4.49 / 6.08, abs=0.003)
    assert "73.8 % of peak speed over the power limit, 63.2 % of the peak speed" in share.words


def test_what_exceeds_the_reference_is_no_share_of_it() -> None:
    """1430 GFLOP/s over 235 W are 6.08 GFLOPS/W; 117.5 % of a peak cannot be."""
    share = peak_share(plan(), measured({"GFLOP/s": 900.0, "power_w": 900 / (1.175 * 1430 / 235)}))
    assert share is not None
    assert share.efficiency == pytest.approx(1.175)
    assert share.words.startswith("1.18 times peak speed over the power limit, which is no peak of the efficiency")
    assert "62.9 % of the peak speed" in share.words
    faster = peak_share(plan(), measured({"GFLOP/s": 1716.0, "power_w": 235.0}))
    assert faster is not None
    assert "1.20 times the peak speed, which does not hold" in faster.words
    assert "120" not in faster.words.split("(")[0].replace("1.20", "")


def test_other_units_of_speed_count_too() -> None:
    share = peak_share(plan(), measured({"TFLOP/s": 0.904, "power_w": 200.0}))
    assert share is not None
    assert share.speed == pytest.approx(904 / 1430)


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ({"power_w": 200.0}, State.OK),
        ({"GFLOP/s": math.nan, "power_w": 200.0}, State.OK),
        ({"GFLOP/s": 0.0}, State.OK),
        (FASTEST, State.RUNTIME),
    ],
    ids=["no speed", "unknown speed", "no work", "failed"],
)
def test_without_a_speed_there_is_no_share(values: dict[str, float], state: State) -> None:
    assert peak_share(plan(), measured(values, state)) is None


def test_without_energy_only_the_speed_is_told() -> None:
    share = peak_share(plan(), measured({"GFLOP/s": 904.0}))
    assert share is not None
    assert share.efficiency is None
    assert "efficiency" not in share.words


def test_of_another_board_or_an_unknown_precision_nothing_is_told() -> None:
    known = plan()
    assert peak_share(dataclasses.replace(known, gpu="My board"), measured(FASTEST)) is None
    assert peak_share(dataclasses.replace(known, origin={}), measured(FASTEST)) is None
    assert peak_share(dataclasses.replace(known, origin={"precision": "fp16"}), measured(FASTEST)) is None


@pytest.mark.parametrize(("example", "precision"), [("dgemm", "fp64"), ("gemm", "fp32"), ("n_body", "fp32")])
def test_a_plan_knows_the_precision_of_its_kernel(example: str, precision: str) -> None:
    assert plan(example, "a100").origin["precision"] == precision


@pytest.mark.parametrize(("constant", "precision"), [("fp16_tensor", "fp16_tensor"), ("double", "fp32")])
def test_a_constant_names_the_precision_where_it_is_one(constant: str, precision: str) -> None:
    specification = load_specification(resources() / "examples" / "gemm.toml")
    constants = {**specification.constants, "precision": constant}
    gpu = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    planned = plan_specification(dataclasses.replace(specification, constants=constants), gpu)
    assert planned.origin["precision"] == precision


def test_a_kernel_of_two_precisions_has_none(tmp_path: Path) -> None:
    file = tmp_path / "mixed.toml"
    text = (resources() / "examples" / "gemm.toml").read_text().replace("../kernels", str(resources() / "kernels"))
    file.write_text(text.replace('name = "a", type = "float32"', 'name = "a", type = "float16"'))
    gpu = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    assert plan_specification(load_specification(file), gpu).origin["precision"] == ""
