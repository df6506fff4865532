"""Seconds of families, of gaps and of their stages in windows, against sums over small steps of time."""

import numpy as np
import pytest

from app.engine.attribution.activity import Activity
from app.engine.attribution.timeline import Timeline

STEP_S = 1e-3


@pytest.fixture(params=range(6))
def overlapping(request):
    """Slices at whole milliseconds that overlap, some of no length, with gaps between them of up to 2.5 s."""
    rng = np.random.default_rng(request.param)
    begin = np.sort(np.concatenate([rng.integers(0, 1500, 80), rng.integers(4000, 4300, 20)]))
    lasts = rng.integers(0, 60, len(begin))
    kinds = rng.choice(["kernel", "copy", "set"], 5)
    return Activity.of(list("abcde"), kinds, rng.integers(0, 5, len(begin)), begin * STEP_S, (begin + lasts) * STEP_S)


def stepped(activity):
    """The share of each family in each millisecond, shape (milliseconds, families)."""
    middles = (np.arange(5000) + 0.5) * STEP_S
    shares = np.zeros((len(middles), len(activity.names)))
    kernel = np.array([kind == "kernel" for kind in activity.kinds])[activity.family]
    runs = (activity.begin_s[:, None] < middles) & (middles < activity.end_s[:, None])
    for of in (kernel, ~kernel):
        at_once = np.maximum(runs[of].sum(axis=0), 1)
        np.add.at(shares.T, activity.family[of], runs[of] / at_once)
    return shares, ~runs.any(axis=0)


def test_seconds_in_windows_are_the_sums_over_their_milliseconds(overlapping):
    shares, idle = stepped(overlapping)
    timeline = Timeline(overlapping)
    begin = np.arange(0, 4800, 7)
    end = begin + 130
    windows = begin * STEP_S, end * STEP_S
    wanted = np.array([shares[first:last].sum(axis=0) for first, last in zip(begin, end, strict=True)]) * STEP_S
    assert timeline.overlaps(*windows) == pytest.approx(wanted, abs=1e-9)
    moved = timeline.overlaps(windows[0] + 0.01, windows[1] + 0.01)
    both = timeline.overlaps(*windows, [(0.0, 0.25), (0.01, 0.75)])
    assert both == pytest.approx(0.25 * wanted + 0.75 * moved, abs=1e-9)
    by_family = np.bincount(overlapping.family, timeline.seconds, 5)
    assert by_family == pytest.approx(shares.sum(axis=0) * STEP_S, abs=1e-9)
    last = round(overlapping.end_s.max() / STEP_S)
    inside = np.arange(5000) < last
    inside &= np.arange(5000) >= round(overlapping.begin_s[0] / STEP_S)
    waited = np.array([(idle & inside)[first:until].sum() for first, until in zip(begin, end, strict=True)]) * STEP_S
    assert timeline.gaps(*windows).sum(axis=1) == pytest.approx(waited, abs=1e-9)


def test_a_long_gap_passes_through_its_stages():
    activity = Activity.of(("a",), ("kernel",), [0, 0], [0.0, 3.0], [1.0, 4.0])
    gaps = Timeline(activity).gaps(np.array([0.5, 1.05, 2.5]), np.array([3.5, 1.15, 9.0]))
    assert gaps == pytest.approx(np.array([[0.1, 0.9, 1.0], [0.05, 0.05, 0.0], [0.0, 0.0, 0.5]]))


def test_energy_follows_the_power_of_each_slice(overlapping):
    watts = np.linspace(50.0, 500.0, len(overlapping))
    timeline = Timeline(overlapping)
    total = timeline.energy_until(np.array([9.0, -1.0]), watts) @ [1.0, -1.0]
    assert total == pytest.approx(float(watts @ timeline.seconds))
