"""What is older than the newest 180,000 readings is held as the mean and the extremes of every second."""

from __future__ import annotations

import math
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import app.sensors.trace.trace as traces
from app.sensors.channel import CHANNELS, PowerSample, Reading, channel
from app.sensors.trace.trace import Trace

MS = 1_000_000
SECOND = 1000 * MS
BEGIN = 5 * SECOND
NAMES = ("power_instant_w", "temperature_c", "energy_j")


def two_traces(
    monkeypatch: pytest.MonkeyPatch, rows: int, step_ns: int, seed: int = 0, silent: bool = False
) -> tuple[Trace, Trace]:
    """The same readings in a trace that keeps 5000 of them as they came, and in one that keeps all."""
    held = []
    for most in (5000, 10**7):
        monkeypatch.setattr(traces, "_MOST_ROWS", most)
        trace = Trace([channel(name) for name in NAMES], rate_hz=50.0, span_s=3600.0)
        trace.allow_for(max(1.0, step_ns / (20 * MS)))
        rng, time_ns, joules = np.random.default_rng(seed), BEGIN, 1e7
        for row in range(rows):
            watts = float(rng.uniform(80, 700))
            time_ns += step_ns + (7 * SECOND if silent and row in (3000, 12_000) else 0)
            joules += watts * step_ns / 1e9
            trace.append(Reading(time_ns, (watts, 30.0 + row % 50, joules)))
            trace.append_power_samples([PowerSample(time_ns - 5 * MS, watts + 1.0)])
        held.append(trace)
    return held[0], held[1]


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("step_ns", [20 * MS, 4 * SECOND])  # the second on a clock of 200 times real time
def test_means_extremes_and_energies_of_whole_seconds_are_those_of_all_readings(
    monkeypatch: pytest.MonkeyPatch, step_ns: int, silent: bool
) -> None:
    short, whole = two_traces(monkeypatch, 30_000, step_ns, silent=silent)
    assert short.first_ns <= whole.first_ns + 200 * SECOND * (step_ns > SECOND) + SECOND
    assert short.last_ns == whole.last_ns
    lasts_ns = short.last_ns - short.first_ns
    for begin, end in ((0.0, 1.0), (0.1, 0.4), (0.2, 0.9), (0.85, 1.0), (0.5, 0.55)):
        t0_ns, t1_ns = (short.first_ns + round(share * lasts_ns) for share in (begin, end))
        for name in ("power_instant_w", "temperature_c", "power_samples_w"):
            found, true = (trace.statistics(name, t0_ns, t1_ns) for trace in (short, whole))
            assert found.mean == pytest.approx(true.mean, rel=0.02), name
            assert found.minimum <= true.minimum + 1.0, name
            assert found.maximum >= true.maximum - 1.0, name
        found_j, true_j = (trace.energy_j(t0_ns, t1_ns) for trace in (short, whole))
        assert found_j == pytest.approx(true_j, rel=0.01)
        found, true = (trace.statistics("energy_j", t0_ns, t1_ns) for trace in (short, whole))
        second_j = 700.0 * max(1.0, 50 * step_ns / SECOND)
        assert found.maximum == pytest.approx(true.maximum, abs=second_j)
        assert found.minimum == pytest.approx(true.minimum, abs=second_j)


def test_no_spike_is_lost_among_the_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "_MOST_ROWS", 5000)
    trace = Trace([channel("power_instant_w")], rate_hz=50.0, span_s=3600.0)
    for row in range(40_000):
        trace.append(Reading(BEGIN + row * 20 * MS, ({7_777: 900.0, 31_111: 20.0}.get(row, 300.0),)))
    for max_points in (20, 300, 3000):
        series = trace.view(BEGIN, trace.last_ns, max_points)["power_instant_w"]
        assert np.nanmax(series.value) == 900.0
        assert np.nanmin(series.value) == 20.0
        assert len(series.value) <= max_points + 10
        assert (np.diff(series.time_s) >= 0).all()
        spike = series.time_s[int(np.nanargmax(series.value))]
        assert spike == pytest.approx(7_777 * 0.02, abs=3 * 800 / max_points + 2.0)


def test_a_silence_is_a_gap_among_the_seconds_too(monkeypatch: pytest.MonkeyPatch) -> None:
    short, whole = two_traces(monkeypatch, 30_000, 20 * MS, silent=True)
    for trace in (short, whole):
        series = trace.view(trace.first_ns, trace.last_ns, 5000, ["power_instant_w"])["power_instant_w"]
        assert np.isnan(series.value).any()
        silent_ns = BEGIN + 3000 * 20 * MS + 4 * SECOND
        assert all(math.isnan(value) for value in trace.at(silent_ns).values())
    end_ns = BEGIN + 4000 * 20 * MS + 7 * SECOND
    assert short.energy_j(BEGIN, end_ns) == pytest.approx(whole.energy_j(BEGIN, end_ns), rel=0.01)


def test_the_cursor_and_an_export_read_the_means_of_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    short, whole = two_traces(monkeypatch, 30_000, 20 * MS)
    at_ns = BEGIN + 100 * SECOND
    assert short.at(at_ns)["temperature_c"] == pytest.approx(54.5, abs=1.0), "the mean of 50 readings"
    assert short.at(at_ns)["energy_j"] == pytest.approx(whole.at(at_ns)["energy_j"], rel=1e-4)
    columns = short.columns(BEGIN, short.last_ns)
    assert {len(column) for column in columns.values()} == {len(columns["time_ns"])}
    assert (np.diff(columns["time_ns"]) > 0).all()
    assert 5000 < len(columns["time_ns"]) < 6000
    assert np.isfinite(columns["power_instant_w"]).all()
    assert (np.diff(columns["energy_j"]) > 0).all()
    stamps, watts = short.power_samples(BEGIN, short.last_ns)
    assert len(stamps) == len(watts) < 6000
    assert (np.diff(stamps) > 0).all()
    newest = short.columns(short.last_ns - 10 * SECOND, short.last_ns)
    assert len(newest["time_ns"]) == 501, "as they came"


@given(cuts=st.tuples(st.floats(0, 1), st.floats(0, 1)))
@settings(max_examples=30, deadline=None)
def test_energies_of_adjoining_spans_add_up(cuts: tuple[float, float]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        short, _ = kept(monkeypatch)
    edges = [short.first_ns, *(short.first_ns + round(cut * (short.last_ns - short.first_ns)) for cut in sorted(cuts))]
    edges.append(short.last_ns)
    parts = [short.energy_j(first, last) for first, last in pairwise(edges)]
    assert np.nansum(parts) == pytest.approx(short.energy_j(edges[0], edges[-1]), rel=1e-6)


_KEPT: list[tuple[Trace, Trace]] = []


def kept(monkeypatch: pytest.MonkeyPatch) -> tuple[Trace, Trace]:
    """Made once for all examples."""
    if not _KEPT:
        _KEPT.append(two_traces(monkeypatch, 20_000, 20 * MS, seed=3))
    return _KEPT[0]


def test_a_day_of_eight_boards_at_fifty_readings_a_second_takes_at_most_400_mb() -> None:
    """With the 20 channels that an H200 reports."""
    trace = Trace([channel(name) for name in list(CHANNELS)[:20]], rate_hz=50.0, span_s=24 * 3600.0)
    trace.append_power_samples([PowerSample(BEGIN, 100.0)])
    assert trace.nbytes > 20e6
    assert 8 * trace.nbytes <= 400e6


def test_what_is_older_than_a_day_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A day of 200 s here."""
    monkeypatch.setattr(traces, "_MOST_SECONDS", 200)
    short, whole = two_traces(monkeypatch, 20_000, 20 * MS)
    assert 199 * SECOND <= short.last_ns - short.first_ns <= 202 * SECOND
    for name in NAMES[:2]:
        found, true = (trace.statistics(name, BEGIN, short.last_ns) for trace in (short, whole))
        assert found.maximum <= true.maximum, name
    since_ns = short.first_ns
    assert short.energy_j(BEGIN, short.last_ns) == pytest.approx(whole.energy_j(since_ns, whole.last_ns), rel=0.01)
    series = short.view(BEGIN, short.last_ns, 400, ["power_instant_w"])["power_instant_w"]
    assert series.time_s[0] == pytest.approx((since_ns - BEGIN) / SECOND, abs=1.0)


def test_the_driver_s_samples_have_their_seconds_where_readings_are_few() -> None:
    """At one reading a second all readings fit as they came, an hour of samples alone does."""
    trace = Trace([channel("power_instant_w")], rate_hz=1.0, span_s=24 * 3600.0)
    for row in range(200_000):
        trace.append_power_samples([PowerSample(BEGIN + row * 20 * MS, 300.0)])
        if row % 50 == 0:
            trace.append(Reading(BEGIN + row * 20 * MS, (300.0,)))
    assert trace.energy_j(BEGIN, BEGIN + 300 * SECOND) == pytest.approx(300.0 * 300, rel=0.01)


def test_an_export_while_readings_come_has_each_instant_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seconds reach further at every row that is dropped: a reader that asks twice would see some twice."""
    short, _ = two_traces(monkeypatch, 10_000, 20 * MS)
    last_ns, stop = short.last_ns, threading.Event()

    def write() -> None:
        time_ns = last_ns
        while not stop.is_set():
            time_ns += 20 * MS
            short.append(Reading(time_ns, (300.0, 50.0, 2e7)))
            short.append_power_samples([PowerSample(time_ns - 5 * MS, 300.0)])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            columns = short.columns(BEGIN, last_ns + 3600 * SECOND)
            stamps, _ = short.power_samples(BEGIN, last_ns + 3600 * SECOND)
            series = short.view(BEGIN, last_ns + 3600 * SECOND, 800, ["power_instant_w"])["power_instant_w"]
            assert {len(column) for column in columns.values()} == {len(columns["time_ns"])}
            for times in (columns["time_ns"], stamps, series.time_s):
                assert (np.diff(times) >= 0).all()
            assert (np.diff(columns["time_ns"]) > 0).all()
    finally:
        stop.set()
        writer.join()
