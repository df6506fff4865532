"""The frequency model: real sweeps, boards of known truth, and points that cannot tell a model."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.formats.read import read_recording
from app.engine.models.curve import Curve
from app.engine.models.frequency import FrequencyFit, fit_frequency_model
from app.errors import InputError

CLOCKS = np.arange(210.0, 1411.0, 15.0)
TEN = np.linspace(495, 1410, 10).round(-1)
BOARD = Curve(p_idle_w=40.0, alpha_w_per_mhz=0.08, beta_per_mhz=1.2e-3, ridge_mhz=1000.0)
SOFT = Curve(p_idle_w=40.0, alpha_w_per_mhz=0.08, beta_per_mhz=1.2e-3, ridge_mhz=1000.0, softness_mhz=60.0)


def regret(curve: Curve, clock_mhz: float) -> float:
    """What the board's own truth says the clock costs above the best one."""
    return float(curve.power_w(clock_mhz) / clock_mhz / (curve.power_w(CLOCKS) / CLOCKS).min() - 1)


# --- real boards ------------------------------------------------------------------------------------------------------


def h200(shared_data: Path) -> dict[str, np.ndarray]:
    with open(shared_data / "clock-sweeps/h200_fp64_gemm_clock_sweep.csv") as file:
        rows = list(csv.DictReader(file))
    return {name: np.asarray([float(r[name]) for r in rows]) for name in ("clock_mhz_locked", "power_w", "dgflops")}


def test_h200_under_its_cap(shared_data: Path) -> None:
    sweep = h200(shared_data)
    clock, power, rate = sweep["clock_mhz_locked"], sweep["power_w"], sweep["dgflops"]
    fit = fit_frequency_model(clock, power, rate=rate)
    assert fit.ridge_mhz == pytest.approx(969, abs=40)
    assert fit.p_idle_w == pytest.approx(80.5, abs=2.5)
    assert fit.p_max_w == pytest.approx(598.5, abs=0.5)
    assert fit.r2 is not None
    assert fit.r2 >= 0.999
    assert fit.best_measured_mhz == 975
    chosen = clock == fit.recommended_clock_mhz
    assert (power / rate)[chosen].item() <= 1.01 * (power / rate).min()
    assert fit.ridge_bracketed
    assert fit.optimum_bracketed
    assert any("limit acted at 4 points" in reason for reason in fit.reasons)
    capped = clock >= 1410
    assert not fit.used[capped].any()
    assert fit.clock_mhz[capped] == pytest.approx(1405, abs=15), "the real clock under the cap, from the speed"
    assert fit.power(1980.0) == pytest.approx(598.5, abs=0.5), "the curve ends at the cap"


def test_a100_recommends_a_clock_between_the_ten_that_were_sampled(shared_data: Path) -> None:
    cache = read_recording(shared_data / "clock-sweeps/a100_synthetic_fp32_10_clocks.json")
    table = cache.table()
    fit = fit_frequency_model(
        table.values("observed_clock_mhz"),
        table.values("power_w"),
        rate=1 / table.values("time_s"),
        supported_mhz=CLOCKS,
    )
    measured_at_81_clocks = {1035: 21.16, 1020: 21.17, 1050: 21.34, 960: 21.61, 1080: 21.79}
    assert fit.recommended_clock_mhz is not None
    assert measured_at_81_clocks[int(fit.recommended_clock_mhz)] <= 1.005 * 21.16
    assert fit.form == "smooth", "real boards bend softly"
    assert fit.r2 is not None
    assert fit.r2 >= 0.9995
    assert fit.p_idle_w == pytest.approx(32, abs=1.5)
    assert fit.optimum_interval_mhz is not None
    assert fit.optimum_interval_mhz[0] <= 1035 <= fit.optimum_interval_mhz[1]
    assert fit.p_max_w is None, "no limit acted, so none is told"


def test_ridge_below_the_swept_clocks_is_not_bracketed(shared_data: Path) -> None:
    from app.engine.models.points import fit_points
    from app.engine.models.series import read_points

    fit = fit_points(read_points(shared_data / "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"))
    assert not fit.ridge_bracketed
    assert fit.ridge_mhz == 1485, "the edge"
    assert not fit.optimum_bracketed
    assert fit.recommended_clock_mhz == fit.best_measured_mhz == 1485
    assert fit.beta_per_mhz is None
    assert fit.p_idle_w is None
    assert any("ridge not bracketed" in reason for reason in fit.reasons)


def titan_xp(shared_data: Path, memory_clock: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    lines = (shared_data / "clock-sweeps/titanxp_micro_peak_idle_HPCAFMAandCF.csv").read_text().splitlines()[4:]
    rows = np.asarray([[float(cell) for cell in line.split(",")[:3]] for line in lines if line.strip()])
    of_memory = rows[rows[:, 2] == memory_clock]
    for start in range(0, len(of_memory), 12):
        yield of_memory[start : start + 12, 1], of_memory[start : start + 12, 0]


@pytest.mark.parametrize(("memory_clock", "least_r2"), [(5705, 0.995), (4705, 0.992)])
def test_67_microbenchmarks_of_a_titan_xp(shared_data: Path, memory_clock: float, least_r2: float) -> None:
    sweeps = list(titan_xp(shared_data, memory_clock))
    fits = [fit_frequency_model(clock, power) for clock, power in sweeps]
    assert len(fits) == 67
    assert min(fit.r2 or 0.0 for fit in fits) >= least_r2
    if memory_clock == 5705:
        assert float(np.median([fit.ridge_mhz or 0.0 for fit in fits])) == pytest.approx(1438, abs=30)
    for fit, (clock, power) in zip(fits, sweeps, strict=True):
        energy = power / clock
        assert energy[clock == fit.recommended_clock_mhz].item() <= 1.01 * energy.min()


# --- boards of known truth --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("board", [BOARD, SOFT])
def test_quiet_points_give_the_parameters_back(board: Curve) -> None:
    fit = fit_frequency_model(TEN, board.power_w(TEN), supported_mhz=CLOCKS)
    assert fit.form == ("smooth" if board.softness_mhz else "sharp")
    assert fit.p_idle_w == pytest.approx(40.0, rel=0.01)
    assert fit.alpha_w_per_mhz == pytest.approx(0.08, rel=0.01)
    assert fit.beta_per_mhz == pytest.approx(1.2e-3, rel=0.02)
    assert fit.ridge_mhz == pytest.approx(1000.0, abs=3.0)
    assert fit.recommended_clock_mhz is not None
    assert regret(board, fit.recommended_clock_mhz) < 0.001
    grid = np.linspace(500, 1400, 901)
    assert fit.power(grid) == pytest.approx(board.power_w(grid), rel=0.002)
    assert fit.relative_voltage(grid) == pytest.approx(board.voltage(grid), rel=0.002)
    assert fit.energy(grid).min() == pytest.approx(1.0, abs=1e-3)
    assert fit.range_mhz == pytest.approx((0.9 * fit.optimum_mhz, 1.1 * fit.optimum_mhz))


@pytest.mark.parametrize("board", [BOARD, SOFT])
def test_two_per_cent_of_noise_costs_little_energy_and_the_interval_is_honest(board: Curve) -> None:
    truth = float(CLOCKS[(board.power_w(CLOCKS) / CLOCKS).argmin()])
    regrets, covered = [], 0
    for seed in range(60):
        noise = 1 + 0.02 * np.random.default_rng(seed).normal(size=len(TEN))
        fit = fit_frequency_model(TEN, board.power_w(TEN) * noise, supported_mhz=CLOCKS)
        assert fit.recommended_clock_mhz is not None
        assert fit.optimum_interval_mhz is not None
        regrets.append(regret(board, fit.recommended_clock_mhz))
        covered += fit.optimum_interval_mhz[0] - 8 <= truth <= fit.optimum_interval_mhz[1] + 8
    assert np.quantile(regrets, 0.95) <= (0.02 if board is SOFT else 0.025), "a sharp valley forgives less"
    assert np.mean(regrets) <= 0.008
    assert covered >= 0.88 * 60


def test_capped_points_are_seen_and_do_not_bend_the_curve() -> None:
    cap_w = 170.0
    board = Curve(40.0, 0.08, 1.2e-3, 800.0)
    reached = np.interp(cap_w, board.power_w(CLOCKS), CLOCKS)
    clock = CLOCKS[::4]
    power = np.minimum(board.power_w(clock), cap_w)
    rate = np.minimum(clock, reached)
    for known in ({}, {"limited": reached < clock}, {"limit_w": cap_w}):
        fit = fit_frequency_model(clock, power, rate=rate, supported_mhz=CLOCKS, **known)  # type: ignore[arg-type]
        assert fit.ridge_mhz == pytest.approx(800, abs=10), known
        assert fit.p_max_w == pytest.approx(cap_w)
        assert fit.recommended_clock_mhz is not None
        assert fit.recommended_clock_mhz <= reached
        assert fit.clock_mhz.max() == pytest.approx(reached, rel=0.01)


def test_a_single_capped_point_at_the_top_is_seen_by_its_speed() -> None:
    power, rate = BOARD.power_w(TEN), TEN.copy()
    rate[-1] = 1330.0
    power[-1] = BOARD.power_w(1330.0)
    fit = fit_frequency_model(TEN, power, rate=rate)
    assert not fit.used[-1]
    assert fit.clock_mhz[-1] == pytest.approx(1330, rel=0.005)
    assert fit.ridge_mhz == pytest.approx(1000, abs=5)


def test_work_that_partly_waits_for_memory_has_its_optimum_lower() -> None:
    """Where half the time does not shrink with the clock, P/f is not the energy: the measured speed tells."""
    time_s = 1 / CLOCKS + 1 / 1410
    energy = SOFT.power_w(CLOCKS) * time_s
    best = float(CLOCKS[energy.argmin()])
    sampled = CLOCKS[::8]
    at = np.searchsorted(CLOCKS, sampled)
    fit = fit_frequency_model(sampled, SOFT.power_w(sampled), rate=1 / time_s[at], supported_mhz=CLOCKS)
    assert fit.optimum_mhz == pytest.approx(best, abs=20)
    assert fit.recommended_clock_mhz is not None
    assert np.interp(fit.recommended_clock_mhz, CLOCKS, energy) <= 1.002 * energy.min()
    assert any("does not shrink with the clock" in reason for reason in fit.reasons)


def test_dense_quiet_measurements_keep_a_model_that_does_not_fit_in_bounds() -> None:
    """A voltage with a step is no curve of this family; the measured energies still show the valley."""
    step = np.where(CLOCKS > 700, 1.25, 1.0)
    power = 30 + 0.07 * CLOCKS * step**2
    energy = power / CLOCKS
    fit = fit_frequency_model(CLOCKS, power)
    assert fit.recommended_clock_mhz is not None
    assert np.interp(fit.recommended_clock_mhz, CLOCKS, energy) <= 1.02 * energy.min()


def test_a_reading_at_a_wrong_clock_is_left_out_and_said() -> None:
    power = BOARD.power_w(TEN)
    power[4] *= 1.3
    fit = fit_frequency_model(TEN, power, supported_mhz=CLOCKS)
    assert not fit.used[4]
    assert fit.used.sum() == 9
    assert fit.ridge_mhz == pytest.approx(1000, abs=10)
    assert any("wrong readings" in reason for reason in fit.reasons)


@pytest.mark.parametrize(("wrong", "factor"), [([2, 6], 0.3), ([3, 8], 0.5), ([4, 9], 0.3), ([0, 7], 3.0), ([1], 2.0)])
def test_power_does_not_fall_where_the_clock_rises(wrong: list[int], factor: float) -> None:
    """Two of ten readings taken while the board rested, or worked for others: public sweeps of programs have such."""
    power = BOARD.power_w(TEN)
    power[wrong] *= factor
    fit = fit_frequency_model(TEN, power, rate=TEN, supported_mhz=CLOCKS)
    assert not fit.used[wrong].any()
    assert fit.used.sum() == len(TEN) - len(wrong)
    assert fit.recommended_clock_mhz == pytest.approx(1000, abs=75)
    assert fit.best_measured_mhz not in TEN[wrong]
    assert any("wrong readings" in reason for reason in fit.reasons)


def test_the_same_work_does_not_take_longer_where_the_clock_rises() -> None:
    """A reading that waited for something else."""
    speed = 1 / (0.3 / 1410 + 0.7 / TEN)
    speed[6] *= 0.6
    fit = fit_frequency_model(TEN, BOARD.power_w(TEN), rate=speed, supported_mhz=CLOCKS)
    assert not fit.used[6]
    assert fit.used.sum() == len(TEN) - 1
    assert fit.fixed_time_share == pytest.approx(0.3, abs=0.02)


def test_another_load_at_most_clocks_is_not_called_a_wrong_reading() -> None:
    power = BOARD.power_w(TEN)
    power[5:] *= 0.4
    fit = fit_frequency_model(TEN, power, rate=TEN)
    assert fit.used.sum() >= 9


def test_points_come_back_in_the_order_of_their_clocks() -> None:
    order = np.random.default_rng(0).permutation(len(TEN))
    fit = fit_frequency_model(TEN[order], BOARD.power_w(TEN)[order])
    assert fit.clock_mhz.tolist() == TEN.tolist()
    assert fit.power_w == pytest.approx(BOARD.power_w(TEN))


# --- points that cannot tell ------------------------------------------------------------------------------------------


def unidentified(fit: FrequencyFit) -> bool:
    figures = (fit.p_idle_w, fit.alpha_w_per_mhz, fit.beta_per_mhz, fit.ridge_mhz, fit.optimum_mhz, fit.r2)
    return not fit.identifiable and all(figure is None for figure in figures) and bool(fit.reasons)


def test_too_few_clocks_are_not_identifiable() -> None:
    clock = np.asarray([600.0, 900.0, 1200.0, 1200.0])
    fit = fit_frequency_model(clock, BOARD.power_w(clock))
    assert unidentified(fit)
    assert fit.best_measured_mhz == 900
    assert "3 different clocks" in fit.reasons[-1]
    with pytest.raises(ValueError, match="not identifiable"):
        fit.power(clock)


def test_power_that_ignores_the_clock_is_not_identifiable() -> None:
    power = 100 + np.random.default_rng(3).normal(size=len(TEN))
    assert unidentified(fit_frequency_model(TEN, power))


def test_without_a_model_measured_speed_still_recommends() -> None:
    power = 100 + np.random.default_rng(3).normal(size=len(TEN))
    fit = fit_frequency_model(TEN, power, rate=TEN)
    assert unidentified(fit)
    assert fit.recommended_clock_mhz == fit.best_measured_mhz


def test_a_straight_line_has_its_ridge_above_the_clocks() -> None:
    fit = fit_frequency_model(TEN, 30 + 0.1 * TEN)
    assert fit.identifiable
    assert not fit.ridge_bracketed
    assert fit.ridge_mhz == TEN[-1]
    assert fit.beta_per_mhz is None
    assert not fit.optimum_bracketed
    assert fit.p_idle_w == pytest.approx(30, abs=0.5)


def test_unknown_points_are_left_out_and_none_at_all_is_bad_input() -> None:
    clock = np.asarray([*TEN, math.nan, -5.0, 800.0])
    power = np.asarray([*BOARD.power_w(TEN), 100.0, 100.0, math.nan])
    assert fit_frequency_model(clock, power).points == len(TEN)
    with pytest.raises(InputError, match="no point"):
        fit_frequency_model([math.nan], [1.0])
    with pytest.raises(ValueError, match="same length"):
        fit_frequency_model([1.0, 2.0], [1.0])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(), st.floats(), st.floats(), st.booleans()), min_size=1, max_size=12)
    | st.lists(
        st.tuples(st.integers(300, 2000), st.integers(20, 700), st.integers(1, 100), st.booleans()),
        min_size=5,
        max_size=14,
    )
)
def test_any_points_give_a_fit_a_clear_no_or_bad_input(points: list[tuple[float, float, float, bool]]) -> None:
    clock, power, rate, limited = (np.asarray(column) for column in zip(*points, strict=True))
    for extra in ({}, {"rate": rate}, {"rate": rate, "limited": limited}):
        try:
            fit = fit_frequency_model(clock, power, **extra)
        except InputError:
            continue
        if fit.identifiable:
            assert fit.optimum_mhz is not None
            assert fit.optimum_interval_mhz is not None
            assert fit.optimum_interval_mhz[0] <= fit.optimum_mhz <= fit.optimum_interval_mhz[1]
            assert np.isfinite(fit.power([fit.optimum_mhz])).all()
            assert fit.recommended_clock_mhz is not None
        else:
            assert fit.reasons


def test_a_fit_survives_the_store() -> None:
    from app.engine.session_record import fit_from_document, fit_to_document

    fit = fit_frequency_model(TEN, SOFT.power_w(TEN), gpu="board", series="all", simulated=True)
    again = fit_from_document(json.loads(json.dumps(fit_to_document(fit))))
    assert again.power(TEN) == pytest.approx(fit.power(TEN))
    assert again.reasons == fit.reasons
    assert again.simulated
