"""The energy roofline: published tables follow from its figures, and fits find these where the points allow it."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.engine.models.roofline.energy_roofline import FIXED, PJ, ClockLaw, EnergyRoofline
from app.engine.models.roofline.fit import RooflinePoints, fit_roofline

# [Holtmann2024]: tables 6, 8 (eps_flop pJ, eps_mem pJ/B, pi_0 W), 1, 2 (peak, bandwidth), 7, 9 (pi_flop, pi_mem, eta)
PUBLISHED = {
    "A100-40 FP32": ((6.21, 93.48, 98.4, 19.5e12, 1.6e12), 121.0, 145.8, 55.14),
    "A100-80 FP32": ((6.63, 102.06, 107.2, 19.5e12, 2.0e12), 129.3, 206.2, 54.67),
    "GH200 FP32": ((4.89, 96.53, 169.27, 67e12, 4.0e12), 327.8, 386.1, 65.94),
    "MI210 FP32": ((8.36, 80.48, 112.0, 22.6e12, 1.6e12), 188.8, 128.8, 62.77),
    "A100-40 FP64": ((14.33, 81.59, 96.08, 9.7e12, 1.6e12), 139.7, 127.3, 59.24),
    "A100-80 FP64": ((14.96, 83.45, 104.23, 9.7e12, 2.0e12), 145.8, 168.6, 58.31),
    "GH200 FP64": ((11.68, 89.22, 170.10, 34e12, 4.0e12), 397.0, 356.9, 70.00),
    "MI210 FP64": ((19.49, 88.15, 104.53, 22.6e12, 1.6e12), 440.5, 141.0, 80.82),
}


@pytest.mark.parametrize("board", PUBLISHED)
def test_the_tables_follow_from_the_fitted_figures(board: str) -> None:
    figures, pi_flop_w, pi_mem_w, eta = PUBLISHED[board]
    model = EnergyRoofline(*figures)
    assert model.eta_flop * 100 == pytest.approx(eta, abs=0.15)
    # peaks are rounded: 14.33 pJ x 9.7 TFLOP/s is 139.0 W, not 139.7; 102.06 pJ/B x 2.0 TB/s is 204.1 W, not 206.2
    assert model.pi_flop_w == pytest.approx(pi_flop_w, rel=0.006)
    assert model.pi_mem_w == pytest.approx(pi_mem_w, rel=0.03)


def test_the_gtx_580_of_the_archlines_own_paper() -> None:
    for eps_flop, peak, eta in ((99.7, 1.58e12, 56.38), (212.0, 197.6e9, 25.56)):
        assert EnergyRoofline(eps_flop, 513, 122, peak, 192.4e9).eta_flop * 100 == pytest.approx(eta, abs=0.15)


def test_the_balances_of_the_a100() -> None:
    model = EnergyRoofline(*PUBLISHED["A100-40 FP32"][0])
    assert model.time_balance == pytest.approx(12.19, abs=0.01)
    assert model.energy_balance == pytest.approx(15.05, abs=0.01)
    assert model.effective_energy_balance == pytest.approx(9.5, abs=0.05)
    assert model.eps_mop_pj(4) == pytest.approx(373.9, abs=0.1)


figures = st.tuples(
    st.floats(0.5, 300), st.floats(5, 600), st.floats(1, 300), st.floats(1e11, 1e14), st.floats(1e10, 1e13)
)


@given(figures, st.floats(0.01, 1e3))
def test_power_times_time_is_energy_at_every_intensity(parts: tuple[float, ...], intensity: float) -> None:
    model = EnergyRoofline(*parts)
    speed, power_w, efficiency = model.roofline(intensity), model.powerline(intensity), model.archline(intensity)
    assert power_w / speed == pytest.approx(1 / efficiency)
    time_s, energy_j, watt = model.predict(1e12 * intensity, 1e12)
    assert 1e12 * intensity / time_s == pytest.approx(float(speed))
    assert watt == pytest.approx(float(power_w))
    assert 1e12 * intensity / energy_j == pytest.approx(float(efficiency))


@given(figures)
def test_the_effective_balance_is_where_work_and_the_rest_cost_the_same(parts: tuple[float, ...]) -> None:
    model = EnergyRoofline(*parts)
    at = model.effective_energy_balance
    assert float(model.effective_balance(at)) == pytest.approx(at)
    assert float(model.archline(at)) == pytest.approx(0.5 / (model.effective_eps_flop_pj * PJ))


@given(figures, st.floats(0.3, 1.2))
def test_under_a_limit_power_meets_it_and_nothing_is_faster(parts: tuple[float, ...], share: float) -> None:
    model = EnergyRoofline(*parts)
    intensity = np.geomspace(0.1, 1000, 50)
    limit_w = model.pi_0_w + share * float((model.powerline(intensity) - model.pi_0_w).max())
    speed, efficiency, power_w = model.capped(intensity, limit_w)
    assert (power_w <= limit_w * (1 + 1e-9)).all()
    assert (speed <= model.roofline(intensity) * (1 + 1e-9)).all()
    assert speed / power_w == pytest.approx(efficiency)
    free = model.powerline(intensity) <= limit_w
    assert speed[free] == pytest.approx(model.roofline(intensity)[free])
    assert power_w[~free] == pytest.approx(limit_w)


def test_a_limit_below_the_constant_power_is_no_number() -> None:
    model = EnergyRoofline(5, 100, 100, 1e13, 1e12)
    assert np.isnan(model.capped(1.0, 90)[0]).all()


def sweep(model: EnergyRoofline, intensities: np.ndarray, noise: float = 0.0, seed: int = 0) -> RooflinePoints:
    """Points on a model's lines."""
    rng = np.random.default_rng(seed)
    speed = model.roofline(intensities)
    return RooflinePoints.of(
        gpu="made up",
        precision="fp32",
        flops=speed,
        bytes_per_s=speed / intensities,
        power_w=model.powerline(intensities) * (1 + noise * rng.standard_normal(len(intensities))),
        clock_mhz=np.full(len(intensities), 1410.0),
    )


@given(figures)
@settings(max_examples=50)
def test_clean_points_give_back_their_figures(parts: tuple[float, ...]) -> None:
    model = EnergyRoofline(*parts)
    fit = fit_roofline(sweep(model, model.time_balance * np.geomspace(0.02, 20, 20)))
    assert fit.identifiable or fit.reasons
    assume(fit.identifiable)  # a figure that hardly matters to the power cannot be determined
    assert fit.relative.eps_flop_pj == pytest.approx(model.eps_flop_pj, rel=1e-5)
    assert fit.relative.eps_mem_pj_per_b == pytest.approx(model.eps_mem_pj_per_b, rel=1e-5)
    assert fit.relative.pi_0_w == pytest.approx(model.pi_0_w, rel=1e-4)
    assert fit.max_relative_error < 1e-6


def test_standard_errors_are_as_large_as_the_scatter_of_repeated_fits() -> None:
    model = EnergyRoofline(*PUBLISHED["A100-40 FP32"][0])
    fits = [fit_roofline(sweep(model, np.geomspace(0.25, 128, 20), 0.01, seed)).relative for seed in range(200)]
    for index, name in enumerate(("eps_flop_pj", "eps_mem_pj_per_b", "pi_0_w")):
        scatter = np.std([getattr(fit, name) for fit in fits])
        assert np.median([fit.standard_errors[index] for fit in fits]) == pytest.approx(scatter, rel=0.15)


def test_points_on_one_side_of_the_balance_do_not_separate_the_three() -> None:
    model = EnergyRoofline(*PUBLISHED["A100-40 FP32"][0])
    fit = fit_roofline(sweep(model, np.geomspace(40, 128, 12), 0.01))
    assert not fit.identifiable
    assert any("condition number" in reason or "known only" in reason for reason in fit.reasons)


def test_points_at_a_limit_or_a_lower_clock_are_left_out_and_counted() -> None:
    model = EnergyRoofline(*PUBLISHED["A100-40 FP32"][0])
    points = sweep(model, np.geomspace(0.25, 128, 20))
    points.power_w[:3] *= 0.7
    points.clock_mhz[:2] = 1200.0
    points.limited[2] = True
    fit = fit_roofline(points)
    assert (fit.points, fit.throttled) == (17, 3)
    assert fit.relative.pi_0_w == pytest.approx(model.pi_0_w, rel=1e-6)
    assert fit.max_relative_error < 1e-6 < 0.3 < fit.max_relative_error_all
    assert "3 points below the peak clock" in fit.reasons[-1]


def held_at(model: EnergyRoofline, limit_w: float) -> RooflinePoints:
    """Points within a limit at one clock, an empty kernel last."""
    intensity = np.geomspace(0.7, 40, 16)
    speed, _, power_w = model.capped(intensity, limit_w)
    free, rng = model.powerline(intensity) <= limit_w, np.random.default_rng(1)
    flops, traffic = np.append(speed, 0.0), np.append(speed / intensity, 0.0)
    power_w = np.append(power_w, model.pi_0_w) * (1 + 0.003 * rng.standard_normal(17))
    limited, clock_mhz = np.append(~free, False), np.full(17, 1410.0)
    return RooflinePoints.of("made up", "fp32", flops, traffic, power_w, limited=limited, clock_mhz=clock_mhz)


def test_a_board_that_keeps_its_clock_at_the_limit_has_the_plain_capped_model() -> None:
    """[Choi2014]: T = max(W tau_flop, Q tau_mem, (W eps_flop + Q eps_mem) / (limit - pi_0))."""
    model = EnergyRoofline(*PUBLISHED["A100-40 FP32"][0])
    time_s, energy_j, power_w = model.predict(12e12, 1e12, 260)
    assert time_s == pytest.approx((12e12 * 6.21e-12 + 1e12 * 93.48e-12) / (260 - 98.4))
    assert energy_j == pytest.approx(12e12 * 6.21e-12 + 1e12 * 93.48e-12 + 98.4 * time_s)
    assert power_w == pytest.approx(260)
    fit = fit_roofline(held_at(model, 260.0))
    assert fit.over_clocks
    assert (fit.points, fit.held) == (17, 13)
    for figure, error, true in zip(
        fit.relative.figures, fit.relative.standard_errors, PUBLISHED["A100-40 FP32"][0], strict=False
    ):
        assert abs(figure - true) < 2 * error < 0.15 * true


def test_without_their_clocks_the_points_at_a_limit_are_no_evidence() -> None:
    points = held_at(EnergyRoofline(*PUBLISHED["A100-40 FP32"][0]), 260.0)
    with pytest.raises(ValueError, match="clocks of the points at the limit are not known"):
        fit_roofline(replace(points, clock_mhz=np.full(len(points), np.nan)))


def test_a_clock_that_explains_no_power_is_refused() -> None:
    """As a thermal limit, a moved sensor or a driver that states another clock would look."""
    points = held_at(EnergyRoofline(*PUBLISHED["A100-40 FP32"][0]), 260.0)
    points.power_w[points.limited] *= np.where(np.arange(13) % 2, 0.8, 1.25)
    with pytest.raises(ValueError, match=r"misses power by|known only to|comes out as zero|no voltage"):
        fit_roofline(points)


laws = st.builds(ClockLaw, st.floats(0, 1.2), st.floats(0.5, 1), st.floats(0, 1), st.floats(0.5, 1))


@given(figures, laws, st.floats(0.3, 1.2), st.floats(0.05, 500))
def test_under_a_limit_the_clock_is_the_highest_whose_power_is_within_it(
    parts: tuple[float, ...], law: ClockLaw, share: float, intensity: float
) -> None:
    model = EnergyRoofline(*parts, law=law)
    peak_w = float(model.powerline(intensity))
    limit_w = model.pi_0_w + share * (peak_w - model.pi_0_w)
    speed, efficiency, power_w = (float(each) for each in model.capped(intensity, limit_w))
    assert power_w <= limit_w * (1 + 1e-9) or power_w == pytest.approx(peak_w)
    assert speed <= float(model.roofline(intensity)) * (1 + 1e-9)
    assert efficiency == pytest.approx(speed / power_w)
    plain = float(replace(model, law=FIXED).capped(intensity, limit_w)[0])
    assert speed >= plain * (1 - 1e-6), "a voltage that falls leaves more for the work"


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.booleans())
@settings(max_examples=60)
def test_any_points_give_figures_or_reasons(seed: int, count: int, cached: bool) -> None:
    rng = np.random.default_rng(seed)

    def some(scale: float) -> np.ndarray:
        return np.where(rng.random(count) < 0.2, 0.0, scale * rng.random(count))

    points = RooflinePoints.of(
        "made up",
        "fp32",
        some(1e13),
        some(1e12),
        50 + some(300),
        limited=rng.random(count) < 0.6,
        caches={"L2": some(1e12), "shared memory": np.where(some(1) > 0.9, 1e12, 0)} if cached else {},
        clock_mhz=some(2000),
        power_error_w=some(3),
    )
    fit, why = None, ""
    try:
        fit = fit_roofline(points)
    except ValueError as error:
        why = str(error)
    if fit is None:
        assert re.search(r"points at the peak clock|points with work", why)
        return
    assert fit.reasons or fit.identifiable
    if fit.identifiable:
        assert (fit.relative.figures > 0).all()
        assert np.isfinite([*fit.relative.figures, *fit.relative.standard_errors, fit.peak_flops]).all()


def test_too_few_points_are_refused() -> None:
    with pytest.raises(ValueError, match="at the peak clock"):
        fit_roofline(sweep(EnergyRoofline(*PUBLISHED["A100-40 FP32"][0]), np.geomspace(1, 100, 5)))


def boards(path: Path) -> dict[tuple[str, str], RooflinePoints]:
    """The public sweeps, per device."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for key in sorted({(row["gpu"], row["dev"]) for row in rows}):
        own = [row for row in rows if (row["gpu"], row["dev"]) == key]
        column = {name: np.array([float(row[name]) for row in own]) for name in ("gflops", "gbs", "mhz", "power_w")}
        found[key] = RooflinePoints.of(
            gpu=key[0],
            precision="fp32",
            flops=column["gflops"] * 1e9,
            bytes_per_s=column["gbs"] * 1e9,
            power_w=column["power_w"],
            clock_mhz=column["mhz"],
        )
    return found


def test_real_boards_the_a100_is_identified_and_a_throttled_l40_is_not(shared_data: Path) -> None:
    for (gpu, _), points in boards(shared_data / "roofline" / "fp32_intensity_sweep_a100_l40.csv").items():
        fit = fit_roofline(points)
        if gpu.startswith("A100"):
            assert fit.identifiable, fit.reasons
            assert 4.855 <= fit.relative.eps_flop_pj <= 5.435
            assert 113.5 <= fit.relative.eps_mem_pj_per_b <= 121
            assert 60.5 <= fit.relative.pi_0_w <= 73.5
            assert fit.r2 >= 0.990
            assert fit.max_relative_error < 0.032
            assert fit.condition_number == pytest.approx(20, abs=1)
        else:
            assert fit.condition_number > 2000
            assert not fit.identifiable
            assert any("eps_mem and pi_0 are not told apart" in reason for reason in fit.reasons), "one traffic in all"
            assert fit.throttled > 0
            assert fit.max_relative_error_all > fit.max_relative_error


def test_a_file_without_limits_is_said_to_have_points_below_the_peak_clock() -> None:
    points = held_at(EnergyRoofline(*PUBLISHED["A100-40 FP32"][0]), 260.0)
    lower = np.where(points.limited, 0.9 * points.clock_mhz, points.clock_mhz)
    fit = fit_roofline(replace(points, limited=np.zeros(17, dtype=bool), clock_mhz=lower))
    assert fit.over_clocks
    assert "below it are 13 of them" in fit.reasons[0]
