"""Hull, quadrants, spread, choosers and what a choice costs: published figures, by hand, and properties."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from app.engine.analysis.choosers import (
    at_most_power,
    at_most_slower,
    fastest,
    front_of_costs,
    knee,
    least_edp,
    least_energy,
    weight_ranges,
    weighted,
)
from app.engine.analysis.costs import costs_of, values_of
from app.engine.analysis.iso_lines import Product, Role, iso_lines, role_of
from app.engine.analysis.plane import convex_hull, quadrants, spread_at
from app.engine.analysis.tradeoff import Load, percent_words, tradeoff, yearly
from app.engine.formats.read import read_recording

PS3 = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"

# Table II of Anzt et al. 2015 (S2): the corners of the hull, as it lists them
HULL_GFLOPS = np.array([904, 782, 703, 656, 516, 389, 345, 308, 311, 318, 355, 633, 843, 901.0])
HULL_EFFICIENCY = np.array(
    [4.4867, 4.5849, 4.5754, 4.4415, 3.8891, 3.2539, 2.8617, 2.3473, 2.3488, 2.3590, 2.4323, 3.2919, 4.0591, 4.4317]
)

clouds = st.integers(0, 12).flatmap(lambda n: arrays(np.float64, (n, 2), elements=st.sampled_from([*range(7), np.nan])))
costs = st.integers(1, 10).flatmap(
    lambda n: arrays(np.float64, (n, 2), elements=st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0, 13.0, np.nan]))
)


def test_the_published_hull_is_its_own_hull() -> None:
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(14), size=300)  # points inside
    x = np.concatenate([HULL_GFLOPS, weights @ HULL_GFLOPS, [np.nan]])
    y = np.concatenate([HULL_EFFICIENCY, weights @ HULL_EFFICIENCY, [9.0]])
    corners = convex_hull(x, y)
    # one of the fourteen, (318, 2.3590), lies a thousandth inside the edge of its neighbours as printed
    assert set(corners.tolist()) <= set(range(14))
    assert len(corners) >= 13
    assert corners[0] == 1, "from the most efficient on"
    turned = np.roll(np.arange(14), -1)
    assert corners.tolist() == [at for at in turned.tolist() if at in set(corners.tolist())], "counterclockwise"


def test_the_published_spread() -> None:
    corners = convex_hull(HULL_GFLOPS, HULL_EFFICIENCY)
    x, y = HULL_GFLOPS[corners], HULL_EFFICIENCY[corners]
    horizontal = spread_at(y, x, 4.4867)  # through the fastest: up to 25 % slower at the same energy
    assert horizontal is not None
    assert horizontal.high == 904
    assert horizontal.share == pytest.approx(0.257, abs=0.001)
    vertical = spread_at(x, y, 782)  # through the most efficient: up to 1.2 times the energy at the same speed
    assert vertical is not None
    assert vertical.high / vertical.low == pytest.approx(1.195, abs=0.001)
    assert spread_at(x, y, 905) is None
    assert spread_at([], [], 1) is None


def test_the_published_trade_of_speed_for_energy() -> None:
    """[Anzt2015, section 3.2]: the most efficient kernel runs 16 % longer than the fastest one."""
    time_s, energy_j = 1 / HULL_GFLOPS, 1 / HULL_EFFICIENCY
    fast, frugal = fastest(time_s, energy_j), least_energy(time_s, energy_j)
    assert (fast, frugal) == (0, 1)
    change = tradeoff(time_s[fast], energy_j[fast], to_time_s=time_s[frugal], to_energy_j=energy_j[frugal])
    assert change.words == "2.1 % less energy for 16 % more time"
    assert {one.index for one in weight_ranges(time_s, energy_j)} == {0, 1}, "the arc between them is one line"


@given(clouds)
def test_the_hull_holds_every_point_and_needs_every_corner(cloud: np.ndarray) -> None:
    x, y = cloud[:, 0], cloud[:, 1]
    corners = convex_hull(x, y).tolist()
    known = [i for i in range(len(x)) if not np.isnan(cloud[i]).any()]
    assert bool(corners) == bool(known)
    assert len({(x[i], y[i]) for i in corners}) == len(corners)

    def turn(a: int, b: int, c: int) -> float:
        return (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a])

    for a, b in zip(corners, corners[1:] + corners[:1], strict=True):
        assert all(turn(a, b, c) >= 0 for c in known), "everything lies to the left of every edge"
    if len(corners) > 2:
        for a, b, c in zip(corners, corners[1:] + corners[:1], corners[2:] + corners[:2], strict=True):
            assert turn(a, b, c) > 0


def test_quadrants_by_hand() -> None:
    values = [[9, 5], [5, 9], [7, 7], [8, 3], [2, 6], [1, 1], [np.nan, 3]]
    found = quadrants(values, [True, True])
    assert found is not None
    assert (found.best_x, found.best_y, found.x_line, found.y_line) == (0, 1, 5, 5)
    assert (found.both, found.x_only, found.y_only, found.neither) == (1, 2, 2, 1)
    assert (found.better_x, found.better_y, found.total) == (3, 3, 6)
    assert found.percent(found.both) == pytest.approx(100 / 6)
    mirrored = quadrants([[-x, -y] for x, y in values], [False, False])
    assert mirrored is not None
    assert (mirrored.both, mirrored.x_only, mirrored.y_only) == (1, 2, 2)
    assert quadrants([[np.nan, 1]], [True, True]) is None


@given(clouds, st.tuples(st.booleans(), st.booleans()))
def test_quadrants_hold_every_point_once(cloud: np.ndarray, maximise: tuple[bool, bool]) -> None:
    found = quadrants(cloud, maximise)
    known = cloud[~np.isnan(cloud).any(axis=1)]
    assert (found is None) == (len(known) == 0)
    if found is not None:
        assert found.total == len(known)
        assert min(found.both, found.x_only, found.y_only, found.neither) >= 0


def test_choices_on_the_published_gemm_cache(shared_data: Path) -> None:
    table = read_recording(shared_data / PS3).table()
    cost = costs_of(table)
    fast, frugal = fastest(cost.time_s, cost.energy_j), least_energy(cost.time_s, cost.energy_j)
    assert fast is not None
    assert frugal is not None
    assert list(table.measurement(fast).configuration.values()) == [1815, 32, 1, 2, 64, 64, 2]
    assert list(table.measurement(frugal).configuration.values()) == [1485, 32, 2, 2, 64, 128, 2]
    # the least energy at most as slow as the most efficient one is that one, and at most 0 % slower is the fastest
    slower = cost.time_s[frugal] / cost.time_s[fast] - 1
    assert at_most_slower(cost.time_s, cost.energy_j, slower) == frugal
    assert at_most_slower(cost.time_s, cost.energy_j, 0.0) == fast
    assert at_most_power(cost.time_s, cost.energy_j, cost.power_w, 1e4) == fast
    change = tradeoff(
        cost.time_s[fast], cost.energy_j[fast], to_time_s=cost.time_s[frugal], to_energy_j=cost.energy_j[frugal]
    )
    # 0.8264 -> 0.9315 TFLOPS/J and 80.435 -> 63.176 TFLOPS
    assert change.energy_change == pytest.approx(0.8264 / 0.9315 - 1, abs=2e-4)
    assert change.time_change == pytest.approx(80.435 / 63.176 - 1, abs=2e-4)
    assert change.words == "11 % less energy for 27 % more time"
    assert np.isnan(cost.time_s).sum() == 430
    assert np.isnan(values_of(table, "block_size_y")).sum() == 430


T = np.array([1.0, 1.2, 2.0, 4.0, 1.5, np.nan])
E = np.array([10.0, 6.0, 5.0, 4.9, 9.0, 1.0])
P = E / T


def test_choices_by_hand() -> None:
    assert fastest(T, E) == 0
    assert least_energy(T, E) == 5, "an energy without its time is still the least"
    known = np.where(np.isnan(T), np.nan, E)
    assert least_energy(T, known) == 3
    assert least_edp(T, known) == 1
    assert least_edp(T, known, exponent=2) == 1
    assert at_most_slower(T, known, 0.2) == 1, "a limit holds what lies on it"
    assert at_most_slower(T, known, 0.19) == 0
    assert at_most_power(T, known, P, 5.0) == 1
    assert at_most_power(T, known, P, 1.0) is None
    assert knee(T, known) == 1
    assert knee(T[:2], E[:2]) is None
    assert weighted(T, known, 1.0) == 0
    assert weighted(T, known, 0.0) == 3
    with pytest.raises(ValueError, match="between 0 and 1"):
        weighted(T, known, 1.5)


def test_nothing_to_choose_from() -> None:
    nothing = np.full(3, np.nan)
    assert fastest(nothing, nothing) is None
    assert at_most_slower(nothing, nothing, 0.1) is None
    assert knee(nothing, nothing) is None
    assert weighted(nothing, nothing, 0.5) is None
    assert weight_ranges(nothing, nothing) == []
    assert fastest(np.array([2.0, 1.0]), nothing[:2]) == 1, "a cache of times only has a fastest"


@given(costs, st.floats(0, 1))
def test_every_weight_gets_its_minimum_and_the_ranges_agree(figures: np.ndarray, a: float) -> None:
    time_s, energy_j = figures[:, 0], figures[:, 1]
    chosen = weighted(time_s, energy_j, a)
    ranges = weight_ranges(time_s, energy_j)
    front = front_of_costs(time_s, energy_j).tolist()
    assert (chosen is None) == (not front) == (not ranges)
    assume(chosen is not None)
    assert chosen in front
    assert (ranges[0].low, ranges[-1].high) == (0.0, 1.0)
    assert all(one.high == other.low for one, other in pairwise(ranges))

    span_t, span_e = np.ptp(time_s[front]) or 1.0, np.ptp(energy_j[front]) or 1.0

    def m(i: int) -> float:
        return a * (time_s[i] - time_s[front].min()) / span_t + (1 - a) * (energy_j[i] - energy_j[front].min()) / span_e

    assert m(chosen) <= min(m(i) for i in front) + 1e-12
    by_range = next(one.index for one in ranges if a <= one.high)
    assert m(by_range) == pytest.approx(m(chosen), abs=1e-9)


def test_words() -> None:
    def words(t: float, e: float) -> str:
        return tradeoff(1.0, 1.0, to_time_s=t, to_energy_j=e).words

    assert words(1.04, 0.82) == "18 % less energy for 4 % more time"
    assert words(0.9, 1.2) == "10 % less time for 20 % more energy"
    assert words(1.0, 0.5) == "50 % less energy in the same time"
    assert words(1.25, 1.0) == "25 % more time for the same energy"
    assert words(0.9, 0.8) == "20 % less energy and 10 % less time"
    assert words(1.0, 1.0) == "the same time and energy"
    assert words(1.034, 0.9964) == "0.4 % less energy for 3.4 % more time"
    assert words(1.1, math.nan) == "10 % more time"
    assert words(math.nan, math.nan) == "not known"
    assert [percent_words(share) for share in (0.18, -0.034, 0.0041, 0.05, math.nan)] == [
        "18 %",
        "3.4 %",
        "0.4 %",
        "5 %",
        "–",
    ]


def test_a_choice_that_changes_nothing_saves_nothing_and_not_minus_nothing() -> None:
    year = yearly(
        300.0, tradeoff(1.0, 1.0, to_time_s=1.0, to_energy_j=1.0), Load(8760, price_per_kwh=0.25, carbon_g_per_kwh=400)
    )
    assert [str(each) for each in (year.saved_kwh, year.saved_money, year.saved_co2_kg)] == ["0.0", "0.0", "0.0"]


def test_a_year() -> None:
    change = tradeoff(1.0, 1.0, to_time_s=1.04, to_energy_j=0.82)
    year = yearly(300.0, change, Load(8000, boards=2, price_per_kwh=0.25, carbon_g_per_kwh=400))
    assert year.energy_kwh == pytest.approx(4800)
    assert year.saved_kwh == pytest.approx(864)
    assert year.saved_money == pytest.approx(216)
    assert year.saved_co2_kg == pytest.approx(345.6)
    assert year.extra_hours == pytest.approx(320)
    assert year.fits
    assert year.words == "864 kWh, 216 EUR and 346 kg CO2 less per year"
    full = yearly(300.0, change, Load(8760))
    assert not full.fits
    assert full.saved_money is None
    assert full.words.startswith("473 kWh less per year; the work no longer fits")


def test_what_a_figure_is() -> None:
    assert role_of("GFLOP/s") is Role.SPEED
    assert role_of("TFLOPS") is Role.SPEED
    assert role_of("GFLOPS/W") is Role.EFFICIENCY
    assert role_of("TFLOPS/J") is Role.EFFICIENCY
    assert role_of("time_s") is Role.TIME
    assert role_of("ps_energy") is Role.ENERGY
    assert role_of("energy_j") is Role.ENERGY
    assert role_of("power_w") is Role.POWER
    assert role_of("power_limit_w") is None
    assert role_of("temperature_c") is None


@pytest.mark.parametrize("x_role", [Role.TIME, Role.SPEED, Role.POWER], ids=lambda role: role.name)
@pytest.mark.parametrize("y_role", [Role.ENERGY, Role.EFFICIENCY], ids=lambda role: role.name)
@pytest.mark.parametrize("product", list(Product), ids=lambda product: product.name)
def test_a_product_is_equal_along_its_line(x_role: Role, y_role: Role, product: Product) -> None:
    work = 100.0
    figure = {
        Role.TIME: lambda t, e: t,
        Role.SPEED: lambda t, e: work / t,
        Role.ENERGY: lambda t, e: e,
        Role.EFFICIENCY: lambda t, e: work / e,
        Role.POWER: lambda t, e: e / t,
    }
    t0, e0 = 2.0, 50.0
    through = figure[x_role](t0, e0), figure[y_role](t0, e0)
    t, e = np.meshgrid(np.linspace(0.5, 8, 40), np.linspace(10, 200, 40))
    x, y = figure[x_role](t, e), figure[y_role](t, e)
    lines = iso_lines(
        product, x_role, y_role, through=through, x_span=(x.min(), x.max()), y_span=(y.min(), y.max()), factors=(1, 1.5)
    )
    assert [line.factor for line in lines] == [1, 1.5]
    m, n = product.value
    for line in lines:
        # back to time and energy
        if y_role is Role.ENERGY:
            energy = line.y
        else:
            energy = work / line.y
        time = {Role.TIME: line.x, Role.SPEED: work / line.x, Role.POWER: energy / line.x}[x_role]
        assert time**m * energy**n == pytest.approx(np.full(len(time), line.factor * t0**m * e0**n))
        assert x.min() * 0.999 <= line.x.min()
        assert line.x.max() <= x.max() * 1.001
        assert y.min() * 0.999 <= line.y.min()
        assert line.y.max() <= y.max() * 1.001


def test_figures_that_do_not_tell_a_product_have_no_line() -> None:
    spans = {"through": (1.0, 1.0), "x_span": (0.5, 2.0), "y_span": (0.5, 2.0)}
    assert iso_lines(Product.EDP, Role.TIME, Role.SPEED, **spans) == []
    assert iso_lines(Product.EDP, Role.TIME, Role.ENERGY, **{**spans, "through": (math.nan, 1.0)}) == []
    [line] = iso_lines(Product.ENERGY, Role.TIME, Role.ENERGY, **spans, factors=(1.0,))
    assert set(line.y.tolist()) == {1.0}
    assert iso_lines(Product.ENERGY, Role.TIME, Role.ENERGY, **spans, factors=(3.0,)) == []


def test_the_hull_of_many_points_is_that_of_all_pairs() -> None:
    from scipy.spatial import ConvexHull

    rng = np.random.default_rng(5)
    angle = rng.uniform(0, 2 * np.pi, 3000)
    clouds = (
        rng.normal(size=(5000, 2)),
        rng.random((5000, 2)) ** 3,
        np.column_stack([np.cos(angle), np.sin(angle)]),  # every point is a corner
        np.column_stack([np.repeat([1.0, 2.0], 2000), rng.random(4000)]),
    )
    for cloud in clouds:
        assert set(convex_hull(cloud[:, 0], cloud[:, 1]).tolist()) == set(ConvexHull(cloud).vertices.tolist())
