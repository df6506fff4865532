"""Power limits: what they save, whether they are kept, and clocks against limits."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from app.base.errors import InputError, WattridgeError
from app.engine.models.clock_fits import caps_of_sweep, fit_of_sweep
from app.engine.models.fit.caps import compare, fit_caps, median_saving
from app.engine.models.series import caps_of_table, read_caps
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import space_of_table
from app.sensors.clock import VirtualClock
from app.sensors.select import open_gpu
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

LIMITS = np.asarray([100.0, 150.0, 200.0, 250.0, 300.0])


def test_training_runs_under_limits(shared_data: Path) -> None:
    v100 = read_caps(shared_data / "power-limits/summary_power_v100.csv")
    a40 = read_caps(shared_data / "power-limits/summary_power_a40.csv")
    assert (len(v100), len(a40)) == (68, 53)
    assert median_saving(v100) == pytest.approx(0.226, abs=5e-4)
    assert median_saving(a40) == pytest.approx(0.190, abs=5e-4)
    assert max(fit.largest_overshoot for fit in a40) == pytest.approx(0.207, abs=1e-3)
    worst = max(a40, key=lambda fit: fit.largest_overshoot)
    assert any("more than its limit" in reason for reason in worst.reasons)
    (one,) = read_caps(
        shared_data / "power-limits/summary_power_a40.csv",
        series="dataset=cifar100,network=shufflenetv2,batch_size=2048,optimizer=adadelta",
    )
    assert one.best_limit_w == 175


def test_the_model_of_a_limit() -> None:
    power = np.minimum(LIMITS * 0.98, 230)
    rate = 5 * (power / 230) ** 0.5
    fit = fit_caps(LIMITS, power, rate)
    assert fit is not None
    assert fit.free_power_w == 230
    assert fit.kept == pytest.approx(0.98)
    assert fit.speed_exponent == pytest.approx(0.5)
    assert fit.power(LIMITS) == pytest.approx(power)
    assert fit.speed(LIMITS) == pytest.approx(rate / 5)
    assert fit.best_limit_w == 100
    assert fit.saving == pytest.approx(1 - (98 / 230) ** 0.5)
    assert any("lowest limit" in reason for reason in fit.reasons)
    assert fit.best_within_5_percent_w == 250


def test_power_that_no_speed_comes_from_is_found() -> None:
    """60 W are drawn however slow the work."""
    limits = np.linspace(100, 300, 9)
    power = np.minimum(limits, 270)
    fit = fit_caps(limits, power, ((power - 60) / 210) ** 0.4)
    assert fit is not None
    assert fit.speed_base_w == pytest.approx(60, abs=3)
    assert fit.speed(limits) == pytest.approx(((power - 60) / 210) ** 0.4, abs=0.01)


def test_limits_that_never_bind_are_said() -> None:
    fit = fit_caps(LIMITS, np.full(5, 80.0), np.full(5, 1.0))
    assert fit is not None
    assert fit.kept is None
    assert fit.speed_exponent is None
    assert any("no limit binds" in reason for reason in fit.reasons)
    assert fit_caps(LIMITS[:2], [1.0, 2.0], [1.0, 1.0]) is None


def test_a_named_column_that_is_missing_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "caps.csv"
    path.write_text("power_limit_w,power_w,time_s\n100,98,2\n200,190,1\n")
    with pytest.raises(InputError, match="no column 'watts'") as caught:
        read_caps(path, power="watts")
    assert "--power" in caught.value.where


def test_a_table_without_limits_has_none() -> None:
    assert caps_of_table(ResultTable(space_of_table({"block": ()}, [(1,), (2,)])), "", simulated=False) == []


@pytest.mark.parametrize("board", ["a100", "a4000"])
def test_clocks_reach_lower_than_limits(board: str) -> None:
    """Limits do not cover the range of clocks, and full load saves more by clocks [Schoonhoven2024, section 6.5.3]."""
    gpu = open_gpu(f"simulated:{board}", speed=float("inf"))
    try:
        limit = gpu.info.power_limit.current_w
        fit, _ = fit_of_sweep(gpu, points=8)
        caps = caps_of_sweep(gpu, points=5)
        assert gpu.info.power_limit.current_w == limit, "the prior limit is back"
    finally:
        gpu.close()
    both = compare(fit, caps)
    assert both is not None
    assert both.clocks.energy < both.caps.energy < 1.0 + 1e-9 or board == "a100"
    assert both.clocks.energy < 0.8
    assert both.clocks.lowest_clock_mhz is not None
    assert both.caps.lowest_clock_mhz is not None
    assert both.clocks.lowest_clock_mhz < both.caps.lowest_clock_mhz
    assert "clocks reach" in both.words
    assert caps.simulated


def test_a_sweep_at_every_memory_clock_needs_a_board_that_lists_them() -> None:
    class OneMemory(SimulatedGpu):
        def memory_clocks_mhz(self) -> list[int]:
            return []

    with pytest.raises(InputError, match="no memory clocks"):
        fit_of_sweep(OneMemory(load_twin("a100"), clock=VirtualClock()), memory_clocks=True)


def test_a_sweep_of_two_limits_is_too_short_and_was_not_stopped() -> None:
    gpu, stop = SimulatedGpu(load_twin("a100"), clock=VirtualClock()), threading.Event()
    with pytest.raises(WattridgeError, match="fewer than three") as short:
        caps_of_sweep(gpu, points=2, stop=stop)
    assert "stopped" not in str(short.value)
    stop.set()
    with pytest.raises(WattridgeError, match="stopped"):
        caps_of_sweep(gpu, stop=stop)
