"""The built-in examples run from plan to figures on simulated boards, where no compiler and no GPU is needed."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import pytest

from app.base.paths import resources
from app.engine.results.measurement import State
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import PROFILES
from app.sensors.simulated.twin import load_twin, twin_names
from app.sensors.throttling import THROTTLED

EXAMPLES = sorted((resources() / "examples").glob("*.toml"))
ROOFLINES = sorted((resources() / "rooflines").glob("*.toml"))


def test_every_profile_has_an_example() -> None:
    specifications = [load_specification(path) for path in (*EXAMPLES, *ROOFLINES)]
    assert {spec.kernel.profile for spec in specifications if spec.kernel and spec.kernel.profile} == set(PROFILES)


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if "profile =" in path.read_text()], ids=lambda path: path.stem
)
@pytest.mark.parametrize("board", twin_names())
def test_an_example_is_measured_on_a_simulated_board(path: Path, board: str) -> None:
    gpu = SimulatedGpu(load_twin(board), seed=2, clock=VirtualClock())
    plan = plan_specification(
        load_specification(path), gpu, SearchOptions(strategy="random_sample", max_evaluations=6, seed=6)
    )
    with Store() as store:
        result = run_session(plan, store, lambda event: None, threading.Event())
    measured = [result.table.measurement(row) for row in range(len(result.table))]
    assert len(measured) == 6
    assert all(m.state is State.OK for m in measured), [m.error for m in measured]
    assert plan.objective is not None
    for measurement in measured:
        assert 0 < measurement.values["power_w"] <= 1.03 * gpu.twin.power.limit_maximum_w
        assert {goal.name for goal in plan.objective.front} <= measurement.values.keys()
        assert all(value > 0 for name, value in measurement.values.items() if name not in {"settled", *THROTTLED})


def test_a_setting_that_a_simulated_board_refuses_is_left_out_and_said() -> None:
    specification = load_specification(resources() / "examples" / "copy.toml")
    settings = {"graphics_clock_mhz": (1005, 1110), "memory_clock_mhz": (877,)}
    gpu = SimulatedGpu(load_twin("v100"), clock=VirtualClock())
    plan = plan_specification(dataclasses.replace(specification, device_settings=settings), gpu)
    assert "memory_clock_mhz" not in plan.space.names
    assert "graphics_clock_mhz" in plan.space.names
    [note] = [note for note in plan.space.notes if "memory_clock_mhz" in note]
    assert "Ampere" in note
