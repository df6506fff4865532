"""A sweep of clocks is stated for one thermal condition, by the model that sessions have learnt of the board."""

from __future__ import annotations

import threading
from dataclasses import replace
from statistics import median

import numpy as np
from fixtures.engine_fakes import Listener
from fixtures.fake_board import HEAVY, FakeBoard

from app.base.paths import resources
from app.engine.control.guard import DeviceGuard
from app.engine.metering.condition import Condition
from app.engine.metering.thermal import BoardHeat, known_heat
from app.engine.models.arrays import Floats
from app.engine.models.sweep import Sweep, sweep_clocks, sweep_limits
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.simulated import laws
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import full_load
from app.sensors.simulated.twin import load_twin

LOAD = replace(full_load(), issue_efficiency=0.3)  # at no clock does it reach the power limit


def board(seed: int, heated_s: float) -> SimulatedGpu:
    gpu = SimulatedGpu(load_twin("h200"), seed=seed, clock=VirtualClock())
    if heated_s:
        gpu.begin(full_load())
        gpu.clock.wait(heated_s)
        gpu.end()
    return gpu


def teach(seed: int, heated_s: float) -> None:
    """A session, from which the board's model is learnt."""
    example = load_specification(resources() / "examples" / "gemm.toml")
    options = SearchOptions(strategy="random_sample", max_evaluations=24, seed=seed)
    plan = plan_specification(
        replace(example, device_settings={"graphics_clock_mhz": (1005,)}), board(seed, heated_s), options
    )
    with Store() as store:
        run_session(plan, store, Listener(), threading.Event())


def swept(heated_s: float) -> Sweep:
    gpu = board(7, heated_s)
    return sweep_clocks(gpu, DeviceGuard(gpu), points=6, load=LOAD)


def errors(sweep: Sweep, condition: Condition) -> Floats:
    """Relative, against what the board draws at that temperature."""
    gpu = board(7, 0.0)
    memory_mhz = float(gpu.twin.clocks.memory_mhz[-1])
    points = [laws.under_load(gpu.twin, LOAD, float(clock), memory_mhz) for clock in sweep.points.clock_mhz]
    true_w = np.array([laws.power_w(gpu.twin, point, condition.gpu_c) for point in points])
    return sweep.points.power_w / true_w - 1.0


def test_a_sweep_of_a_hot_board_states_what_its_clocks_draw_at_the_boards_condition() -> None:
    before = swept(60.0)
    assert known_heat(board(7, 0.0).info).condition is None, "a sweep is no usual work: it fixes no condition"
    for seed in range(4):
        teach(seed, 60.0 * (seed % 2))
    condition = known_heat(board(7, 0.0).info).condition
    assert condition is not None
    hot, cold = swept(60.0), swept(0.0)
    assert not hot.points.limited.any()  # type: ignore[union-attr]
    drawn, stated = median(abs(errors(before, condition))), median(abs(errors(hot, condition)))
    assert drawn > 0.02, "it was much warmer than that"
    assert stated < 0.6 * drawn
    assert median(abs(hot.points.power_w / cold.points.power_w - 1)) < 0.02
    [note] = hot.points.notes
    assert note.startswith(f"power is stated for {condition.words}: by up to ")


def test_under_limits_nothing_is_corrected_nor_learnt() -> None:
    gpu = board(7, 0.0)
    sweep = sweep_limits(gpu, DeviceGuard(gpu), points=3)
    assert sweep.points.notes == ()
    assert known_heat(gpu.info) == BoardHeat()


def test_the_first_clock_is_measured_once_more_and_is_no_point() -> None:
    board = FakeBoard(buffer=True)
    sweep = sweep_clocks(board, DeviceGuard(board), load=HEAVY, points=4)
    clocks = [value for name, value in board.settings_made if name == "graphics_clock_mhz" and value is not None]
    assert len(sweep) == 4
    assert clocks[:5] == [*sweep.points.requested_mhz[::-1], clocks[0]]  # type: ignore[index]
    assert sweep.points.notes == (), "a board at one temperature"
