"""Seconds of families, of gaps and of their stages in windows, against sums over small steps of time."""

import numpy as np
import pytest
from scipy.signal import lfilter

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


def test_a_low_pass_shows_what_a_filter_of_fine_steps_shows(overlapping):
    shares, idle = stepped(overlapping)
    timeline, fine, constant_s = Timeline(overlapping), 20, 0.013
    kept = np.exp(-STEP_S / fine / constant_s)
    inside = np.arange(5000) < round(overlapping.end_s.max() / STEP_S)
    inside &= np.arange(5000) >= round(overlapping.begin_s[0] / STEP_S)
    signals = np.column_stack([shares, idle & inside]).repeat(fine, axis=0)
    wanted = lfilter([1 - kept], [1, -kept], signals, axis=0)[fine - 1 :: fine]
    at = np.sort(np.random.default_rng(1).choice(np.arange(20, 5000), 400, replace=False))
    families, gaps = timeline.decayed((at + 1) * STEP_S, constant_s)
    assert families == pytest.approx(wanted[at, :5], abs=1e-6)
    assert gaps.sum(axis=1) == pytest.approx(wanted[at, 5], abs=1e-6)
    watts = np.linspace(50.0, 500.0, 5)
    of_slices, _ = timeline.decayed((at + 1) * STEP_S, constant_s, above_w=watts[overlapping.family])
    assert of_slices[:, 0] == pytest.approx(wanted[at, :5] @ watts, abs=1e-3)
    later, _ = timeline.decayed((at + 1) * STEP_S, constant_s, [(0.0, 0.25), (0.002, 0.75)])
    moved, _ = timeline.decayed((at + 1) * STEP_S + 0.002, constant_s)
    assert later == pytest.approx(0.25 * families + 0.75 * moved)


def test_a_long_gap_fades_in_by_its_stages():
    activity = Activity.of(("a",), ("kernel",), [0, 0], [0.0, 3.0], [1.0, 4.0])
    families, gaps = Timeline(activity).decayed(np.array([0.9, 1.05, 1.2, 2.5, 3.5, 3.6]), 0.013)
    assert families[:, 0] == pytest.approx([1.0, np.exp(-0.05 / 0.013), 0.0, 0.0, 1.0, 1.0], abs=1e-6)
    assert gaps[2] == pytest.approx([np.exp(-0.1 / 0.013), 1.0 - np.exp(-0.1 / 0.013), 0.0], abs=1e-6)
    assert gaps[3] == pytest.approx([0.0, 0.0, 1.0], abs=1e-6)
