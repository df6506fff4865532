"""What is kept of a measurement's window: it comes back as it was, it is small, and it is the energy of the window."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from fixtures.simulated import board
from hypothesis import given
from hypothesis import strategies as st

from app.engine.metering.meter import Meter
from app.engine.results.evidence import WINDOW_S, Evidence, joined, unpack
from app.sensors.simulated.profiles import full_load

MOST_BYTE = 4096
LIGHT = replace(full_load(), issue_efficiency=0.3)  # at no limit on any board


@st.composite
def evidences(draw: st.DrawFn, most: int = 60) -> Evidence:
    """Windows one after another, with whatever a sensor may report in them."""
    lengths = draw(st.lists(st.floats(0.001, 5.0), min_size=1, max_size=4))
    ends = np.cumsum([length + 0.1 for length in lengths])
    windows = np.column_stack([ends - lengths, ends]) - (ends[0] - lengths[0])
    times = st.floats(0, float(ends[-1]))
    samples = draw(st.lists(st.tuples(times, st.floats(-10, 2e4)), min_size=1, max_size=most))
    clock = st.floats(0, 1e4) | st.just(math.nan)
    readings = draw(st.lists(st.tuples(times, clock, st.integers(0, 2**62)), max_size=most))
    times_s, power_w = np.array(sorted(samples), dtype=float).reshape(-1, 2).T
    read_s, clock_mhz = np.array([one[:2] for one in readings], dtype=float).reshape(-1, 2).T
    return Evidence(
        *windows.T, times_s, power_w, read_s, clock_mhz, np.array([one[2] for one in readings], dtype=np.int64)
    )


@given(evidences())
def test_samples_come_back_as_they_were(kept: Evidence) -> None:
    """To the µs, mW and kHz; a clock that was not reported is not reported."""
    read = unpack(kept.pack())
    for name, step in (
        ("starts_s", 1e-6),
        ("ends_s", 1e-6),
        ("times_s", 1e-6),
        ("power_w", 1e-3),
        ("read_s", 1e-6),
        ("clock_mhz", 1e-3),
    ):
        np.testing.assert_allclose(getattr(read, name), getattr(kept, name), rtol=0, atol=0.51 * step)
    assert read.event_reasons.tolist() == kept.event_reasons.tolist()
    assert unpack(read.pack()).pack() == read.pack()


@given(st.integers(0, 2**32), st.integers(1, 3000), st.floats(0.01, 3.0))
def test_no_window_takes_more_than_its_bytes(seed: int, count: int, length_s: float) -> None:
    """However fast the sensor, and though nothing in it repeats: what is too fast is kept as means."""
    noise = np.random.default_rng(seed)
    times_s, power_w = np.sort(noise.uniform(0, length_s, count)), noise.uniform(0, 1e5, count)
    reasons = noise.integers(0, 2**62, count)
    kept = Evidence(np.zeros(1), np.array([length_s]), times_s, power_w, times_s, noise.uniform(0, 1e4, count), reasons)
    packed = kept.pack()
    assert len(packed) <= MOST_BYTE * math.ceil(length_s / WINDOW_S)
    read = unpack(packed)
    assert read.power_w.mean() == pytest.approx(power_w.mean(), rel=0.25)
    assert int(np.bitwise_or.reduce(read.event_reasons)) == int(np.bitwise_or.reduce(reasons)), "none is lost"


@given(evidences(most=9), st.data())
def test_damaged_samples_are_refused_and_nothing_else_happens(kept: Evidence, data: st.DataObject) -> None:
    packed = bytearray(kept.pack())
    for place in data.draw(st.lists(st.integers(0, len(packed) - 1), min_size=1, max_size=4)):
        packed[place] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, len(packed)))
    for damaged in (bytes(packed), bytes(packed[:cut])):
        try:
            read = unpack(damaged)
        except ValueError:
            continue
        assert len(read.times_s) == len(read.power_w)
        assert len(read.read_s) == len(read.clock_mhz) == len(read.event_reasons)


@pytest.mark.parametrize("name", ["h200", "a100", "rtx5090", "mi210"])
def test_the_integral_of_the_samples_is_the_energy_of_the_window(name: str) -> None:
    """Of a simulated board, whose power no sensor hides from the test: within the interval that is stated, or 1 %."""
    gpu = board(name)
    window = Meter(gpu).measure(LIGHT, window_s=1.5)
    assert window is not None
    assert window.evidence is not None
    kept = unpack(window.evidence.pack())
    truly_w = gpu._physics.history.means(*window.window_ns)[0]  # what no sensor reports
    assert kept.seconds == pytest.approx((window.window_ns[1] - window.window_ns[0]) / 1e9, abs=0.03)
    assert kept.energy_j == pytest.approx(truly_w * kept.seconds, rel=0.01)
    low_w, high_w = window.power_interval_w or (math.nan, math.nan)
    assert low_w <= kept.mean_power_w - window.aftereffect_w <= high_w
    assert kept.clock_mhz.mean() == pytest.approx(window.observed_clock_mhz, abs=0.01)
    assert not int(np.bitwise_or.reduce(kept.event_reasons)) & ~window.event_reasons, "counters may show more"
    assert len(window.evidence.pack()) <= MOST_BYTE * math.ceil(kept.seconds / WINDOW_S)


def test_repeats_are_windows_of_their_own() -> None:
    one = Evidence.of(
        [(100, 200_000_100)], np.array([0.05, 0.15]), np.array([100.0, 102.0]), [(100_000_100, 1410.0, 4.0)]
    )
    both = joined([(one, 100), (one, 1_000_000_100)])
    assert both.starts_s.tolist() == [0.0, 1.0]
    assert both.ends_s.tolist() == [0.2, 1.2]
    assert both.times_s.tolist() == pytest.approx([0.05, 0.15, 1.05, 1.15])
    assert (both.seconds, both.mean_power_w) == pytest.approx((0.4, 101.0))
    assert both.reasons_s() == pytest.approx({"power cap": 0.4})
