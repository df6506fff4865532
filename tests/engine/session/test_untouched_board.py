"""Sessions over settings of a board measure its own state, too, and state what is saved against that."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from app.engine.analysis.costs import costs_of
from app.engine.analysis.own_state import OwnState, own_state
from app.engine.models.clock_fits import fit_of_sweep
from app.engine.models.series import series_of_table
from app.engine.results.settings import UNTOUCHED
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.space.result_table import ResultTable
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

SPECIFICATION = """
[kernel]
name = "gemm"
profile = "gemm"
[constants]
n = 4096
[parameters]
block_size_x = [16, 32]
block_size_y = [8]
tile_size_x = [4]
tile_size_y = [4]
[device_settings]
{settings}
[objective]
minimise = "energy_j"
[search]
strategy = "brute_force"
"""


def board(name: str) -> SimulatedGpu:
    return SimulatedGpu(load_twin(name), clock=VirtualClock())


def tuned(
    folder: Path, gpu: SimulatedGpu, settings: str, options: SearchOptions | None = None, text: str = SPECIFICATION
) -> ResultTable:
    path = folder / "kernel.toml"
    path.write_text(text.format(settings=settings))
    plan = plan_specification(load_specification(path), gpu, options)
    with Store() as store:
        return run_session(plan, store, lambda event: None, threading.Event()).table


def state_of(table: ResultTable) -> tuple[OwnState, int]:
    costs = costs_of(table)
    best = int(np.nanargmin(costs.energy_j))
    state = own_state(table, costs, best)
    assert state is not None
    return state, best


def test_on_the_twin_of_the_rtx_5090_a_locked_memory_clock_costs_speed_and_is_advised_against(tmp_path: Path) -> None:
    gemm = SPECIFICATION[SPECIFICATION.index("[constants]") : SPECIFICATION.index("[device_settings]")]
    values = "block_size_x = [256]\nvector_width = [2, 4]\nitems_per_thread = [16]\n"
    copy = f"[constants]\nn = 67108864\n[parameters]\n{values}"
    text = SPECIFICATION.replace(gemm, copy).replace("gemm", "copy")  # which no limit holds back
    table = tuned(tmp_path, board("rtx5090"), "memory_clock_mhz = [7001, 14001]", text=text)
    state, best = state_of(table)
    assert table.measurement(best).configuration["memory_clock_mhz"] == UNTOUCHED
    [lock] = state.locks
    assert lock.settings == (("memory_clock_mhz", 14001.0),)
    assert lock.speed_change == pytest.approx(343.9 / 384.0 - 1, abs=0.01)
    assert lock.words.endswith("leave it untouched")


def test_on_a_board_that_does_not_mind_a_lock_nothing_is_claimed_of_it(tmp_path: Path) -> None:
    state, _ = state_of(tuned(tmp_path, board("h200"), "graphics_clock_mhz = [1200, 1980]"))
    assert state.untouched
    assert state.locks == ()


def test_what_is_saved_is_against_the_board_as_it_was_found(tmp_path: Path) -> None:
    table = tuned(tmp_path, board("a100"), "graphics_clock_mhz = [1005, 1110, 1200]")  # not its highest clock, 1410
    state, best = state_of(table)
    assert state.baseline == "the board's own state"
    assert state.index is not None
    own = table.measurement(state.index)
    assert own.configuration == {**table.measurement(best).configuration, "graphics_clock_mhz": UNTOUCHED}
    assert own.observed_clock_mhz > 1300  # of 1410, under its limit
    assert state.gain is not None
    highest = min(
        table.measurement(row).values["energy_j"]
        for row in range(len(table))
        if table.measurement(row).configuration["graphics_clock_mhz"] == 1200
    )
    saved = 1 - table.measurement(best).values["energy_j"] / own.values["energy_j"]
    assert state.gain.energy_change == pytest.approx(-saved)
    assert saved > 1 - table.measurement(best).values["energy_j"] / highest + 0.02  # which was the baseline before


@pytest.mark.parametrize("strategy", ["random_sample", "genetic_algorithm", "auto"])
def test_whatever_the_strategy_the_best_is_measured_on_the_untouched_board_within_the_budget(
    tmp_path: Path, strategy: str
) -> None:
    options = SearchOptions(strategy=strategy, max_evaluations=7, seed=3)
    table = tuned(tmp_path, board("a100"), "graphics_clock_mhz = { points = 12 }", options)
    assert len(table.evaluated()) <= 7
    state, best = state_of(table)
    assert state.index is not None, table.measurement(best).configuration


def test_the_board_is_left_as_it_was_found_and_a_lock_that_the_session_did_not_make_stays(tmp_path: Path) -> None:
    gpu = board("a100")
    gpu.lock_graphics_clock(1200)
    table = tuned(tmp_path, gpu, "power_limit_w = [200, 250]")
    requested = [channel.name for channel in gpu.channels].index("requested_graphics_clock_mhz")
    assert gpu.read().values[requested] == 1200
    state, _ = state_of(table)
    assert state.index is not None
    assert table.measurement(state.index).observed_clock_mhz == pytest.approx(1200, abs=15)  # as it was found


def test_the_untouched_board_is_no_point_of_a_fit_and_what_its_saving_is_against(tmp_path: Path) -> None:
    table = tuned(tmp_path, board("a100"), "graphics_clock_mhz = { points = 9 }")
    for points in series_of_table(table, gpu="a100", simulated=True):
        assert points.requested_mhz is not None
        assert len(points.requested_mhz) == 9
        assert np.isfinite(points.requested_mhz).all()
        assert points.untouched_energy is not None
        assert points.rate is not None
        assert points.untouched_rate == pytest.approx(points.rate.max(), rel=0.02), "as fast as the highest clock"
    fit, _ = fit_of_sweep(board("a100"))
    assert fit.baseline == "the board's own state"
    assert fit.energy_change is not None
    assert -0.5 < fit.energy_change < 0


def test_a_metric_of_a_setting_is_unknown_where_that_is_untouched(tmp_path: Path) -> None:
    text = SPECIFICATION.replace("[objective]", '[metrics]\n"per MHz" = "1 / time_s / graphics_clock_mhz"\n[objective]')
    table = tuned(tmp_path, board("a100"), "graphics_clock_mhz = [1200, 1410]", text=text)
    for row in range(len(table)):
        measurement = table.measurement(row)
        untouched = measurement.configuration["graphics_clock_mhz"] == UNTOUCHED
        assert ("per MHz" in measurement.values) is not untouched
    assert sum(np.isnan(table.values("per MHz"))) == 2


def test_a_program_that_is_given_the_clock_is_never_given_a_word(tmp_path: Path) -> None:
    path = tmp_path / "program.toml"
    path.write_text(
        '[command]\nrun = "echo {graphics_clock_mhz}"\n[device_settings]\ngraphics_clock_mhz = [1200, 1410]\n'
        '[objective]\nminimise = "time_s"\n'
    )
    gpu = SimulatedGpu(load_twin("a100"))
    assert plan_specification(load_specification(path), gpu).space.parameters[0].values == (1200, 1410)
