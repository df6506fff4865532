"""Up to where a board follows a requested clock, and caps that show in nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.engine.models.fit.clock_limits import Held, where_held
from app.engine.models.fit.frequency import fit_points
from app.engine.models.fit.points import Points, choose
from app.engine.models.series import read_series

REQUESTED = np.array([510, 650, 800, 940, 1090, 1230, 1380, 1520, 1670, 1810, 1960, 2100], dtype=float)


def power(clock: np.ndarray) -> np.ndarray:
    return np.asarray(30 + 0.045 * clock * np.maximum(1, 1 + 0.0007 * (clock - 1100)) ** 2)


def capped_at(clock: float) -> tuple[np.ndarray, np.ndarray]:
    """The clocks that a board runs at which cannot go beyond, and its power."""
    ran = np.minimum(REQUESTED, clock)
    return ran, power(ran)


def held_in(requested: np.ndarray, watts: np.ndarray, observed: np.ndarray | None, rate: np.ndarray) -> Held | None:
    if observed is None:
        return where_held(Points(requested, watts, rate))
    return where_held(Points(observed, watts, rate, requested_mhz=requested))


def sweep(path: Path, columns: dict[str, np.ndarray]) -> Path:
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(f"{v:.6g}" for v in row) for row in rows)]) + "\n")
    return path


def test_a_board_that_follows_throughout_is_not_held() -> None:
    clock, watts = capped_at(2100)
    assert held_in(REQUESTED, watts, clock, clock / 10) is None
    assert held_in(REQUESTED, watts, None, np.ones(12)) is None, "work that waits for memory: power still rises"


@pytest.mark.parametrize("observed", [True, False])
def test_the_last_clock_that_was_followed_is_found(observed: bool) -> None:
    clock, watts = capped_at(1490)
    held = held_in(REQUESTED, watts, clock if observed else None, clock / 10)
    assert held is not None
    assert held.followed_mhz == 1380
    assert held.points.tolist() == (REQUESTED > 1380).tolist()
    assert ("1490 MHz" in held.words) == observed
    assert "up to 1380 MHz" in held.words


def test_a_single_wrong_reading_among_repeats_hides_nothing() -> None:
    clock, watts = (np.repeat(each, 3) for each in capped_at(1490))
    watts[-1] *= 0.8
    held = held_in(np.repeat(REQUESTED, 3), watts, clock, clock / 10)
    assert held is not None
    assert held.followed_mhz == 1380


@pytest.mark.parametrize("seed", range(8))
def test_noise_neither_makes_nor_hides_a_cap(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def noisy(values: np.ndarray) -> np.ndarray:
        return np.asarray(np.repeat(values, 3) * (1 + 0.01 * rng.standard_normal(3 * len(values))))

    clock, watts = capped_at(1490)
    held = held_in(np.repeat(REQUESTED, 3), noisy(watts), noisy(clock), noisy(clock))
    assert held is not None
    assert 1230 <= held.followed_mhz <= 1520
    clock, watts = capped_at(2100)
    assert held_in(np.repeat(REQUESTED, 3), noisy(watts), noisy(clock), noisy(clock)) is None


@pytest.mark.parametrize("name", ["core_freq", "avg_clock_mhz", "sm_clock_mhz"])
def test_a_cap_is_seen_though_the_observed_clock_stands_still(tmp_path: Path, name: str) -> None:
    """As on an A4000 at 139 W: the points at the cap share one observed clock, so their span says nothing."""
    clock, watts = capped_at(1490)
    path = sweep(
        tmp_path / "a4000.csv", {"nvml_gr_clock": REQUESTED, name: clock, "nvml_power_w": watts, "time_s": 15 / clock}
    )
    fit = fit_points(choose(read_series(path)))
    assert fit.p_max_w == pytest.approx(float(watts.max()), rel=0.01)
    assert any("follows the requested clock up to 1380 MHz" in reason for reason in fit.reasons)
    assert fit.recommended_clock_mhz is not None
    assert fit.recommended_clock_mhz <= 1380


def test_without_a_cap_none_is_seen(tmp_path: Path) -> None:
    clock, watts = capped_at(2100)
    path = sweep(tmp_path / "free.csv", {"nvml_gr_clock": REQUESTED, "core_freq": clock, "power_w": watts})
    fit = fit_points(choose(read_series(path)))
    assert fit.p_max_w is None
    assert not any("follows" in reason for reason in fit.reasons)


def test_the_cap_of_the_h200_is_seen_as_before(shared_data: Path) -> None:
    fit = fit_points(choose(read_series(shared_data / "clock-sweeps/h200_fp64_gemm_clock_sweep.csv")))
    assert fit.p_max_w == pytest.approx(598.5, abs=0.5)
    assert sum(~fit.used) == 4
