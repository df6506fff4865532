"""The pieces of the frequency model: time over the clock, voltage, leakage, departures, choices, the next clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from app.engine.models.fit.curve import Curve, Duration, Times, fit_duration
from app.engine.models.fit.departure import OF_POWER, Smooth
from app.engine.models.fit.design import next_clock
from app.engine.models.fit.frequency import fit_frequency_model, fit_memory_clocks, voltage_ridge
from app.engine.models.fit.leakage import fit_leakage
from app.engine.models.fit.points import Points, choose
from app.engine.models.fit.posterior import posterior_of
from app.engine.models.series import read_series

Floats = npt.NDArray[np.float64]

CLOCKS = np.arange(210.0, 1411.0, 15.0)
TEN = np.linspace(495, 1410, 10).round(-1)
BOARD = Curve(p_idle_w=40.0, alpha_w_per_mhz=0.08, beta_per_mhz=1.2e-3, ridge_mhz=1000.0)


# --- time over the clock ----------------------------------------------------------------------------------------------


def test_time_is_a_fixed_part_and_one_that_scales() -> None:
    duration = fit_duration(TEN, 1 / (2e-3 + 5.0 / TEN))
    assert duration.blend == 1
    assert duration.inverse_mhz == pytest.approx(5.0)
    assert duration.inverse_mhz * duration.fixed_per_mhz == pytest.approx(2e-3)
    assert duration.fixed_share(1000.0) == pytest.approx(2 / 7)
    assert duration.clock_of(np.asarray([1 / (2e-3 + 5.0 / 800)])) == pytest.approx(800)


def test_time_under_a_roofline_is_nearer_to_the_longer_part() -> None:
    time_s = ((6e-3) ** 4 + (5.0 / TEN) ** 4) ** 0.25
    duration = fit_duration(TEN, 1 / time_s)
    assert duration.blend == 4
    assert duration.inverse_mhz * duration.relative(TEN) == pytest.approx(time_s, rel=1e-3)
    assert duration.clock_of(1 / time_s) == pytest.approx(TEN, rel=1e-3)


def test_work_that_scales_has_no_fixed_part_and_one_that_waits_none_that_scales() -> None:
    assert fit_duration(TEN, TEN).fixed_per_mhz == 0
    assert fit_duration(TEN, np.ones(10)).fixed_share(1000.0) > 0.99


def test_between_the_points_time_follows_what_was_measured() -> None:
    """Speed that no law explains: the points count, as they are quiet."""
    law = 5.0 / CLOCKS
    bumpy = law * (1 + 0.08 * np.exp(-(((CLOCKS - 900) / 120) ** 2)))
    at = np.searchsorted(CLOCKS, TEN.clip(None, 1395) // 15 * 15)
    found = Times.of(fit_duration(CLOCKS[at], 1 / bumpy[at]), CLOCKS[at], 1 / bumpy[at]).at(CLOCKS[at[0] : at[-1]])
    assert found == pytest.approx(bumpy[at[0] : at[-1]], rel=0.02)
    assert Times.of(Duration(), TEN, None).at(TEN) == pytest.approx(1 / TEN)


def test_time_that_no_law_describes_is_uncertain_between_the_points() -> None:
    """Seven clocks: one size of the departure alone would take a clear bend of the speed for noise."""
    clocks = np.linspace(757, 1530, 7)
    rate = np.asarray([0.6785, 0.8271, 0.8952, 0.9344, 0.9652, 0.9841, 1.0])
    between = 0.5 * (clocks[1:] + clocks[:-1])
    rng = np.random.default_rng(0)
    bent = Times.of(fit_duration(clocks, rate), clocks, rate)
    assert bent.at(clocks) * rate == pytest.approx(1.0, abs=0.04), "the law alone is 7 % off"
    scatter = bent.drawn(between, 400, rng).std(axis=0) / bent.at(between)
    plain = Times.of(fit_duration(clocks, clocks), clocks, clocks)
    assert scatter.min() > 5 * (plain.drawn(between, 400, rng).std(axis=0) / plain.at(between)).max()


# --- departures -------------------------------------------------------------------------------------------------------


def test_noise_is_no_departure_and_a_quiet_wave_is_one() -> None:
    x = np.linspace(0.3, 1.0, 40)
    noise = 0.02 * np.random.default_rng(1).normal(size=40)
    wave = 0.03 * np.sin(12 * x)
    assert np.abs(Smooth.of(x, noise, OF_POWER).mean(x)).max() < 0.015
    assert Smooth.of(x, wave, OF_POWER).mean(x) == pytest.approx(wave, abs=0.004)


@pytest.mark.parametrize(
    ("clocks", "noise"), [(TEN, 0.01), (TEN, 0.02), (CLOCKS, 0.02)], ids=["10 clocks", "10 noisy", "81 noisy"]
)
def test_the_band_holds_the_truth(clocks: Floats, noise: float) -> None:
    """Over twenty sets of readings; a single one may lie beside it as a whole, as its points share their noise."""
    held = []
    for seed in range(20):
        readings = 1 + noise * np.random.default_rng(seed).normal(size=len(clocks))
        posterior = posterior_of(Points(clocks, BOARD.power_w(clocks) * readings), Duration())
        low, high = posterior.band_w()
        truth = BOARD.power_w(posterior.clock_mhz)
        held.append(((low <= truth) & (truth <= high)).mean())
    assert 0.9 < np.mean(held) < 0.995


def test_the_band_narrows_with_more_points() -> None:
    rng = np.random.default_rng(5)
    posteriors = [
        posterior_of(Points(clocks, BOARD.power_w(clocks) * (1 + 0.01 * rng.normal(size=len(clocks)))), Duration())
        for clocks in (TEN, CLOCKS)
    ]
    width = [float(np.median(np.diff(b.band_w(), axis=0) / b.power_w.mean(axis=0))) for b in posteriors]
    assert width[1] < 0.9 * width[0]


# --- voltage and temperature ------------------------------------------------------------------------------------------


def test_the_ridge_of_a_measured_voltage_curve() -> None:
    voltage = 712 * (1 + 5e-4 * np.maximum(CLOCKS - 1000, 0) + 1e-6 * np.maximum(CLOCKS - 1000, 0) ** 2)
    found = voltage_ridge(CLOCKS[::6], voltage[::6].round())
    assert found is not None
    assert found.ridge_mhz == pytest.approx(1000, abs=15)
    assert found.interval_mhz[0] <= 1000 <= found.interval_mhz[1]
    assert found.floor == pytest.approx(712, abs=2)
    assert voltage_ridge(CLOCKS, np.full(len(CLOCKS), 712.0)) is None
    assert voltage_ridge(CLOCKS[CLOCKS > 1000], voltage[CLOCKS > 1000]) is None, "its lower side was not seen"
    assert voltage_ridge(CLOCKS, np.full(len(CLOCKS), np.nan)) is None


def test_a_measured_voltage_shows_the_ridge_despite_noise_of_power() -> None:
    """Without it, a few per cent of noise leave the ridge open by tens of MHz."""
    errors = {True: [], False: []}
    for seed in range(8):
        power = BOARD.power_w(TEN) * (1 + 0.02 * np.random.default_rng(seed).normal(size=10))
        for error in errors:
            voltage = 700 * BOARD.voltage(TEN) if error else None
            fit = fit_frequency_model(Points(TEN, power, voltage_mv=voltage, supported_mhz=CLOCKS))
            assert fit.optimum_mhz is not None
            errors[error].append(abs(fit.optimum_mhz - 1000))
            assert (fit.voltage_ridge_mhz is not None) == error
    assert np.mean(errors[True]) < 0.6 * np.mean(errors[False])


def test_power_that_grows_with_the_temperature_is_found_where_both_vary() -> None:
    clock = np.repeat(TEN, 3)
    temperature = 40 + 0.02 * clock + np.tile([0.0, 12.0, 24.0], 10)
    power = BOARD.power_w(clock) + 0.4 * (temperature - 60)
    power *= 1 + 0.003 * np.random.default_rng(2).normal(size=len(clock))
    found = fit_leakage(clock, power, temperature)
    assert found is not None
    assert found.slope_w_per_c == pytest.approx(0.4, abs=0.06)
    fit = fit_frequency_model(Points(clock, power, temperature_c=temperature))
    assert fit.leakage_w_per_c == pytest.approx(0.4, abs=0.06)
    assert fit.ridge_mhz == pytest.approx(1000, abs=20)
    assert any("per °C" in reason for reason in fit.reasons)
    assert sorted(fit.power_w) == pytest.approx(sorted(power)), "the readings stay as they are"


def test_a_temperature_that_only_follows_the_power_shows_no_leakage() -> None:
    power = BOARD.power_w(TEN)
    assert fit_leakage(TEN, power, 30 + 0.1 * power) is None
    assert fit_leakage(TEN, power, np.full(10, np.nan)) is None


def test_a_temperature_that_follows_noisy_power_is_not_leakage() -> None:
    """Runs of one clock that drew more were warmer: by the thermal resistance, in degrees per W."""
    clock = np.repeat(TEN, 3)
    rng = np.random.default_rng(7)
    power = BOARD.power_w(clock) * (1 + 0.05 * rng.normal(size=30))
    assert fit_leakage(clock, power, 30 + 0.6 * power + 0.5 * rng.normal(size=30)) is None


def test_no_board_leaks_more_per_degree_than_a_part_of_its_lowest_power() -> None:
    clock = np.repeat(TEN, 3)
    above = np.tile([-10.0, 0.0, 10.0], 10)
    power = BOARD.power_w(clock)
    assert fit_leakage(clock, power + 0.5 * above, 60 + above) is not None
    assert fit_leakage(clock, power + 1.5 * above, 60 + above) is None


# --- choices and memory clocks ----------------------------------------------------------------------------------------


def test_other_aims_have_other_clocks() -> None:
    time_s = 1 / CLOCKS + 1 / 1410
    fit = fit_frequency_model(Points(CLOCKS, BOARD.power_w(CLOCKS), rate=1 / time_s, supported_mhz=CLOCKS))
    assert fit.fixed_time_share == pytest.approx(0.5, abs=0.01)
    energy = BOARD.power_w(CLOCKS) * time_s
    choices = {choice.wish: choice for choice in fit.choices}
    edp = choices["least energy x time"]
    assert edp.clock_mhz == pytest.approx(CLOCKS[(energy * time_s).argmin()], abs=30)
    within = choices["least energy within 5 % of full speed"]
    allowed = time_s <= time_s.min() / 0.95
    assert within.clock_mhz == CLOCKS[allowed][energy[allowed].argmin()]
    assert within.time <= 1 / 0.95 + 1e-3
    assert within.energy == pytest.approx(energy[within.clock_mhz == CLOCKS].item() / energy[-1], rel=0.01)


def test_memory_clocks_stand_side_by_side(tmp_path: Path) -> None:
    """Twice the memory clock makes work that waits for it faster, and costs 20 W."""
    rows = ["clock_mhz,memory_clock_mhz,power_w,time_s"]
    for memory, fixed, extra in ((5000, 2 / 1410, 0.0), (10000, 1 / 1410, 20.0)):
        rows += [f"{c},{memory},{BOARD.power_w(c) + extra:.4f},{1 / c + fixed:.8f}" for c in TEN]
    file = tmp_path / "sweep.csv"
    file.write_text("\n".join(rows))
    series = read_series(file)
    assert sorted(points.memory_clock_mhz or 0 for points in series) == [5000, 10000]
    fit = fit_memory_clocks(series)
    assert [clock.memory_clock_mhz for clock in fit.memory_clocks] == [5000, 10000]
    slow, fast = fit.memory_clocks
    assert fast.energy == 1 < slow.energy
    assert fast.time < slow.time
    assert fit_memory_clocks(series[:1]).memory_clocks == ()


# --- the next clock ---------------------------------------------------------------------------------------------------


def sweep(noise: float, seed: int, most: int) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    clocks = [570.0, 855.0, 1125.0, 1410.0]
    power = [float(BOARD.power_w(c) * (1 + noise * rng.normal())) for c in clocks]
    while len(clocks) < most:
        chosen = next_clock(Points(np.asarray(clocks), np.asarray(power), supported_mhz=CLOCKS))
        if chosen is None:
            break
        assert chosen in CLOCKS
        assert chosen not in clocks
        clocks.append(chosen)
        power.append(float(BOARD.power_w(chosen) * (1 + noise * rng.normal())))
    return clocks, power


def test_the_next_clocks_gather_where_the_optimum_may_lie() -> None:
    clocks, power = sweep(0.01, 1, 10)
    assert len(clocks) == 10
    assert sum(800 <= clock <= 1200 for clock in clocks[4:]) >= 3
    fit = fit_frequency_model(Points(clocks, power, supported_mhz=CLOCKS))
    assert fit.optimum_mhz == pytest.approx(1000, abs=40)


def test_eight_chosen_clocks_do_as_well_as_ten_even_ones() -> None:
    energy = BOARD.power_w(CLOCKS) / CLOCKS
    chosen, even = [], []
    for seed in range(12):
        noise = 1 + 0.02 * np.random.default_rng(100 + seed).normal(size=10)
        fits = (
            fit_frequency_model(Points(*sweep(0.02, seed, 8), supported_mhz=CLOCKS)),
            fit_frequency_model(Points(TEN, BOARD.power_w(TEN) * noise, supported_mhz=CLOCKS)),
        )
        for regrets, fit in zip((chosen, even), fits, strict=True):
            assert fit.recommended_clock_mhz is not None
            regrets.append(float(np.interp(fit.recommended_clock_mhz, CLOCKS, energy) / energy.min() - 1))
    assert np.mean(chosen) <= np.mean(even) + 0.002


def test_no_sweep_ends_before_it_has_the_clocks_of_a_fit() -> None:
    four = np.asarray([1485.0, 1590.0, 1710.0, 1815.0])
    power, rate = np.asarray([70.02, 77.1, 83.16, 87.44]), np.asarray([105.04, 109.93, 113.25, 115.14])
    assert next_clock(Points(four, power, rate, supported_mhz=np.linspace(1485, 1815, 10).round())) is not None


def test_a_sweep_ends_once_the_optimum_is_known() -> None:
    coarse = CLOCKS[::12]
    power = BOARD.power_w(coarse)
    assert next_clock(Points(coarse, power, supported_mhz=coarse)) is None


# --- files of others --------------------------------------------------------------------------------------------------


def test_means_are_taken_not_their_spread_and_the_time_of_one_launch(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    head = "kernel,core_clock,total_time_std_ms,total_time_mean_ms,avg_power_std_W,avg_power_mean_W,time_per_launch_ms"
    file.write_text("\n".join([head, *(f"k,{c},1,5000,2,{50 + c / 10},{5e3 / c}" for c in (600, 900, 1200))]))
    points = choose(read_series(file))
    assert points.power_w.tolist() == [110, 140, 170]
    assert points.rate == pytest.approx(np.asarray([600, 900, 1200]) / 5)


def test_voltage_and_temperature_columns_are_read(tmp_path: Path) -> None:
    file = tmp_path / "volts.csv"
    file.write_text("clock_mhz,power_w,core_voltage_v,temperature_c\n900,80,0.712,50\n1200,99,0.8,55\n")
    points = choose(read_series(file))
    assert points.voltage_mv is not None
    assert points.voltage_mv.tolist() == [712, 800]
    assert points.temperature_c is not None
    assert points.temperature_c.tolist() == [50, 55]


def test_clocks_on_a_grid_are_taken_to_go_in_its_steps(tmp_path: Path) -> None:
    file = tmp_path / "grid.csv"
    for clocks, step in (((600, 735, 870, 1005, 1140, 1275), 15), ((405, 502, 600, 705, 802, 945), 7.5)):
        file.write_text("\n".join(["clock_mhz,power_w", *(f"{c},{50 + c / 10}" for c in clocks)]))
        points = choose(read_series(file))
        assert points.supported_mhz is not None
        assert set(clocks) <= set(points.supported_mhz)
        assert len(points.supported_mhz) == (clocks[-1] - clocks[0]) // step + 1
        assert f"steps of {step:g} MHz" in points.notes[0]
    file.write_text("\n".join(["clock_mhz,power_w", *(f"{c},{50 + c / 10}" for c in (611, 700, 803, 917, 1001, 1103))]))
    assert choose(read_series(file)).supported_mhz is None
