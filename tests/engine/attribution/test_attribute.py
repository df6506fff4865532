"""Joules of simulated programs against those hidden in them, and what is refused.

Two hundred programs and their table: tests/benchmarks/attribution.py.
"""

import tracemalloc

import numpy as np
import pytest

from app.base.errors import InputError
from app.engine.attribution.activity import Activity
from app.engine.attribution.attribute import attribute
from app.engine.attribution.samples import PowerSamples
from tests.fixtures.attribution_truth import Tally, attributed
from tests.fixtures.programs import PATTERNS, TWINS, random_program


@pytest.fixture(scope="module")
def tally():
    """Eighteen programs: each kind three times, each board twice."""
    tally = Tally()
    for number in range(18):
        kind, twin = list(PATTERNS)[number % len(PATTERNS)], TWINS[number % len(TWINS)]
        tally.add(random_program(500 + number, twin=twin, kind=kind, seconds=15.0))
    return tally


def test_intervals_hold_the_hidden_joules(tally):
    assert len(tally.covered) > 100
    assert np.mean(tally.covered) >= 0.9
    assert np.mean(tally.covered_large) >= 0.9


def test_large_families_are_known_well(tally):
    assert len(tally.errors) > 50
    assert np.median(tally.errors) <= 0.04
    assert np.median(tally.halves) <= 0.1


def test_little_is_in_groups_and_nothing_that_varies_by_itself(tally):
    assert np.mean(tally.grouped) <= 0.3
    assert tally.wrong == 0


def test_the_total_is_the_energy_of_the_span(tally):
    assert max(tally.totals) <= 0.01
    assert np.mean(tally.totals_covered) >= 0.8


@pytest.fixture(scope="module")
def bursts():
    program = random_program(21, seconds=15.0)
    return program, attributed(program)


def test_items_and_the_remainder_add_up_to_the_total(bursts):
    program, result = bursts
    assert sum(item.joules.value for item in result.items) + result.remainder.value == pytest.approx(result.total.value)
    assert abs(result.remainder.value) < 0.01 * result.total.value
    assert sum(item.count for item in result.items) == len(program.family)
    listed = [family for item in result.items for family in item.families]
    assert sorted(listed) == sorted(set(program.family.tolist()))
    assert result.explained > 0.9


def test_any_slices_have_joules_and_so_have_the_gaps_of_any_span(bursts):
    program, result = bursts
    middle = sum(program.span) / 2
    early = result.slices(program.begin_s < middle)
    late = result.slices(program.begin_s >= middle)
    families = sum(result.family(number).value for number in range(len(program.names)))
    assert early.value + late.value == pytest.approx(families)
    assert early.value == pytest.approx(program.joules[program.begin_s < middle].sum(), rel=0.02)
    assert result.slice_joules()[program.begin_s < middle].sum() == pytest.approx(early.value)
    gaps = result.gaps_between(program.span[0], middle).value + result.gaps_between(middle, program.span[1]).value
    assert gaps == pytest.approx(program.gap_joules, rel=0.1)


def test_two_families_that_are_always_together_are_a_group_and_the_third_is_not():
    rng = np.random.default_rng(1)
    bursts = np.repeat(rng.random(300) < 0.5, 100)
    family = np.ravel(np.where(bursts[:, None], [0, 1], [2, 2]))
    edges = np.arange(len(family) + 1) * 1e-4
    activity = Activity.of(("a", "b", "c"), ("kernel",) * 3, family, edges[:-1], edges[1:])
    result = _attributed(activity, np.array([400.0, 200.0, 300.0]), rng)
    groups = {item.families: item.joules for item in result.items}
    assert set(groups) == {(0, 1), (2,)}
    seconds = activity.counts * 1e-4
    assert groups[0, 1].low < 400.0 * seconds[0] + 200.0 * seconds[1] < groups[0, 1].high
    assert groups[(2,)].low < 300.0 * seconds[2] < groups[(2,)].high
    assert groups[(2,)].half < 0.06 * groups[(2,)].value


def _attributed(activity, power_w, rng):
    """What is made of an activity without overlaps or gaps, through a sensor of 20 ms without error but noise."""
    ends = np.arange(0.02, activity.end_s.max(), 0.02)
    edges = np.append(activity.begin_s, activity.end_s[-1])
    energy = np.concatenate([[0.0], np.cumsum(np.diff(edges) * power_w[activity.family])])
    watts = (np.interp(ends, edges, energy) - np.interp(ends - 0.02, edges, energy)) / 0.02
    watts *= 1.0 + 0.005 * rng.standard_normal(len(watts))
    samples = PowerSamples(ends, watts, 0.02, 0.0, 1e-4, 2e-4, 0.005)
    return attribute(activity, samples, limit_w=700.0, idle_w=80.0)


def test_power_of_another_time_and_a_program_without_launches_are_refused():
    activity = Activity.of(("a",), ("kernel",), [0], [0.0], [10.0])
    times = np.arange(100) * 0.02 + 1000.0
    samples = PowerSamples(times, np.full(100, 300.0), 0.02, 0.0)
    with pytest.raises(InputError, match="0 samples of power lie between the first launch and the last"):
        attribute(activity, samples)
    with pytest.raises(InputError, match="nothing ran"):
        attribute(Activity.of((), (), [], [], []), samples)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"power_w": np.zeros(2)}, "not arrays of one length"),
        ({"power_w": np.array([1.0, np.nan, 3.0])}, "not finite"),
        ({"time_s": np.array([0.0, 2.0, 1.0])}, "do not ascend"),
        ({"window_s": 0.0}, "averages over no time"),
    ],
)
def test_samples_that_do_not_fit_together_are_refused(change, words):
    good = {"time_s": np.arange(3.0), "power_w": np.ones(3), "window_s": 0.02, "lag_s": 0.0}
    with pytest.raises(ValueError, match=words):
        PowerSamples(**(good | change))


@pytest.mark.parametrize(("refresh_s", "window_s", "seconds"), [(0.1, 1.0, 25.0), (0.02, 0.02, 0.4), (0.1, 0.025, 4.0)])
def test_a_slow_average_and_a_short_program_have_wide_intervals_that_hold(refresh_s, window_s, seconds):
    rng = np.random.default_rng(3)
    bursts = np.repeat(rng.integers(0, 3, round(seconds / 0.05)), 50)
    edges = np.arange(len(bursts) + 1) * 1e-3
    activity = Activity.of(("a", "b", "c"), ("kernel",) * 3, bursts, edges[:-1], edges[1:])
    watts = np.array([400.0, 200.0, 300.0])
    energy = np.concatenate([[0.0], np.cumsum(1e-3 * watts[bursts])])
    ends = np.arange(window_s, edges[-1], refresh_s)
    power = (np.interp(ends, edges, energy) - np.interp(ends - window_s, edges, energy)) / window_s
    power *= 1.0 + 0.005 * rng.standard_normal(len(power))
    result = attribute(activity, PowerSamples(ends, power, window_s, 0.0, 1e-4, 2e-4, 0.005), limit_w=700.0)
    true_j = watts * activity.counts * 1e-3
    for item in result.items:
        assert item.joules.low <= true_j[list(item.families)].sum() <= item.joules.high
    assert result.total.low <= true_j.sum() <= result.total.high


@pytest.mark.parametrize("seed", range(12))
def test_odd_programs_and_odd_power_give_finite_joules(seed):
    rng = np.random.default_rng(seed)
    families, count = int(rng.integers(1, 8)), int(rng.integers(1, 200))
    begin = np.sort(rng.uniform(0.0, 4.0, count))
    end = begin + 10 ** rng.uniform(-6, -1, count) * (rng.random(count) > 0.2)  # some take no time
    kinds = rng.choice(["kernel", "copy", "set"], families)
    names = [str(number) for number in range(families)]
    activity = Activity.of(names, kinds, rng.integers(0, families, count), begin, np.append(end[:-1], 4.2))
    times = np.arange(-1.0, 5.0, 0.02)
    power = [np.zeros(len(times)), np.full(len(times), 300.0), rng.uniform(0, 900, len(times))][seed % 3]
    samples = PowerSamples(
        times, power, float(rng.choice([0.01, 0.1, 1.0])), -0.02, 0.01, float(rng.choice([0.0, 0.1]))
    )
    result = attribute(activity, samples, limit_w=100.0, idle_w=200.0)
    for joules in (result.total, *(item.joules for item in result.items)):
        assert np.isfinite([joules.low, joules.value, joules.high]).all()
        assert joules.low <= joules.value <= joules.high


@pytest.mark.parametrize("seed", [7, 16, 53, 71])
def test_what_runs_in_step_with_the_sensor_is_not_taken_for_separated_by_the_jitter_of_its_stamps(seed):
    program = random_program(1000 + seed, kind="in step")
    result = attributed(program)
    truth = program.family_joules
    for item in result.items:
        true_j = truth[list(item.families)].sum() + program.gap_joules * item.gaps
        assert item.joules.low <= true_j <= item.joules.high
    assert max(len(item.families) + item.gaps for item in result.items) > 1


def test_the_drift_of_stamps_that_jitter_is_found_better_than_by_any_mean_of_neighbours():
    rng = np.random.default_rng(5)
    taken_s = 0.02 * np.arange(1500) + np.cumsum(4e-6 * rng.standard_normal(1500))
    samples = PowerSamples(taken_s + 3e-4 * rng.standard_normal(1500), np.ones(1500), 0.02, 0.0)
    off_s = samples.evened().time_s - taken_s
    assert off_s.std() < 3e-5
    jitter_s = samples.time_s - taken_s
    means = [np.convolve(jitter_s, np.ones(near) / near, mode="valid").std() for near in (11, 41)]
    assert off_s.std() < min(means)


def test_memory_follows_the_slices_and_not_their_product_with_the_samples():
    count = 200_000
    edges = np.cumsum(np.random.default_rng(6).uniform(2e-5, 1e-4, 2 * count)).reshape(count, 2)
    activity = Activity.of(
        [str(number) for number in range(40)], ["kernel"] * 40, np.arange(count) % 40, edges[:, 0], edges[:, 1]
    )
    times = np.arange(0.0, edges[-1, 1], 0.02)
    samples = PowerSamples(times, 300.0 + np.random.default_rng(7).standard_normal(len(times)), 0.02, 0.0, 1e-4, 5e-4)
    tracemalloc.start()
    attribute(activity, samples, limit_w=700.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400 * count + 40 * 8 * 12 * len(times)


@pytest.mark.parametrize("seed", [1, 5, 8])
def test_a_sensor_that_is_a_low_pass_is_found_to_be_one_and_its_intervals_hold(seed):
    program = random_program(1000 + seed, kind="low-pass")
    result, truth = attributed(program), program.family_joules
    assert result.low_pass
    assert result.window_s == pytest.approx(program.true_sensor.window_ms / 1e3, rel=0.1)
    for item in result.items:
        true_j = truth[list(item.families)].sum() + program.gap_joules * item.gaps
        assert item.joules.low <= true_j <= item.joules.high
        if true_j > 0.05 * program.total_joules and len(item.families) == 1:
            assert item.joules.value == pytest.approx(true_j, rel=0.02)


def test_a_sensor_that_averages_is_not_taken_for_a_low_pass(tally):
    program = random_program(503, twin="h200", kind="mixed", seconds=15.0)
    assert program.sensor.buffered
    assert not attributed(program).low_pass
