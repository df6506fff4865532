"""Hours of readings in fixed memory: nothing lost that an eye could see, nothing invented, no torn data."""

from __future__ import annotations

import csv
import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.sensors.channel import CHANNELS, POWER_SAMPLES, Channel, PowerSample, Reading, channel
from app.sensors.event_reasons import EventReason
from app.sensors.gpu import GpuInfo, PowerLimit
from app.sensors.trace.files import write_trace
from app.sensors.trace.ring import Ring
from app.sensors.trace.trace import Trace

MS = 1_000_000
SECOND = 1000 * MS
BEGIN = 5 * SECOND


def make_trace(*names: str, span_s: float = 600.0, missing: tuple[str, ...] = (), rate_hz: float = 50.0) -> Trace:
    channels = [channel(n) for n in names] + [channel(n, "this board does not report it") for n in missing]
    return Trace(channels, span_s=span_s, rate_hz=rate_hz)


def fill(trace: Trace, *columns: list[float], step_ns: int = 20 * MS, begin_ns: int = BEGIN) -> None:
    for row, values in enumerate(zip(*columns, strict=True)):
        trace.append(Reading(begin_ns + row * step_ns, tuple(values)))


def test_a_short_window_shows_every_reading_as_it_came() -> None:
    trace = make_trace("power_instant_w", "graphics_clock_mhz")
    fill(trace, [100.0, 110.0, 120.0], [345.0, 360.0, 375.0])
    view = trace.view(BEGIN, BEGIN + SECOND, 2000)
    assert view["power_instant_w"].time_s.tolist() == pytest.approx([0.0, 0.02, 0.04])
    assert view["power_instant_w"].value.tolist() == [100.0, 110.0, 120.0]
    assert view["graphics_clock_mhz"].value.tolist() == [345.0, 360.0, 375.0]


def test_a_window_holds_only_what_lies_within_it() -> None:
    trace = make_trace("power_instant_w")
    fill(trace, [float(i) for i in range(100)])
    series = trace.view(BEGIN + 200 * MS, BEGIN + 300 * MS, 2000)["power_instant_w"]
    assert series.value.tolist() == [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
    assert series.time_s[0] == 0.0


@pytest.mark.parametrize("rows", [300, 4999, 29_999, 70_000])  # some beyond what the ring holds
@pytest.mark.parametrize("max_points", [10, 100, 2000])
def test_no_spike_is_lost_however_far_out_one_looks(rows: int, max_points: int) -> None:
    trace = make_trace("power_instant_w", "temperature_c", span_s=1000.0)
    held = min(rows, 50_000)
    values = [100.0] * rows
    spikes = [rows - 1, rows - 2, rows - held, rows - held // 2, rows - held // 3]
    for spike in spikes:
        values[spike] = 500.0 + spike
    values[rows - held // 4] = -50.0
    fill(trace, values, [40.0] * rows)
    series = trace.view(0, trace.last_ns, max_points)["power_instant_w"]
    assert len(series.time_s) == len(series.value) <= max(max_points, 10)
    assert series.value.max() == max(values[rows - held :])
    assert series.value.min() == -50.0
    assert np.all(np.diff(series.time_s) >= 0)
    peak_s = series.time_s[int(np.argmax(series.value))] + 0.0
    true_s = (BEGIN + values.index(max(values[rows - held :])) * 20 * MS) / SECOND
    assert abs(peak_s - true_s) <= 2.5 * held * 0.02 / (max_points / 2 - 2)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 9000),
    start=st.integers(0, 9000),
    size=st.integers(0, 9000),
    max_points=st.integers(10, 300),
    seed=st.integers(0, 99),
)
def test_a_view_has_the_extremes_of_its_window_and_no_others(
    rows: int, start: int, size: int, max_points: int, seed: int
) -> None:
    """The ring of 4096 rows and its blocks wrap at all sorts of places."""
    trace = make_trace("power_instant_w", span_s=4096 / 50)
    values = np.random.default_rng(seed).normal(300, 50, rows).astype(np.float32)
    values[::97] = np.nan
    fill(trace, values.tolist())
    first = max(rows - 4096, start)
    inside = values[first : max(first, min(rows, start + size + 1))]
    series = trace.view(BEGIN + start * 20 * MS, BEGIN + (start + size) * 20 * MS, max_points)["power_instant_w"]
    assert len(series.value) <= max_points
    if np.all(np.isnan(inside)):
        assert np.all(np.isnan(series.value))
    else:
        assert np.nanmax(series.value) == np.nanmax(inside)
        assert np.nanmin(series.value) == np.nanmin(inside)


def test_a_failed_stretch_stays_a_gap_in_a_picture_of_blocks() -> None:
    trace = make_trace("power_instant_w")
    fill(trace, [100.0] * 5000 + [math.nan] * 2000 + [200.0] * 5000)
    series = trace.view(BEGIN, trace.last_ns, 100)["power_instant_w"]
    hole = np.isnan(series.value)
    assert hole.any()
    assert series.time_s[hole].min() == pytest.approx(100, abs=6)
    assert series.time_s[hole].max() == pytest.approx(140, abs=6)


@pytest.mark.parametrize("max_points", [40, 20_000])
def test_a_silence_breaks_the_line_and_counts_in_no_mean_and_no_energy(max_points: int) -> None:
    trace = make_trace("power_instant_w")
    fill(trace, [100.0] * 501)
    fill(trace, [100.0] * 501, begin_ns=BEGIN + 100 * SECOND)
    series = trace.view(BEGIN, trace.last_ns, max_points)["power_instant_w"]
    broken_at = series.time_s[np.isnan(series.value)]
    assert len(broken_at) == 1
    assert 10 < broken_at[0] < 100
    assert trace.energy_j(BEGIN, trace.last_ns) == pytest.approx(100.0 * 20.0)
    assert math.isnan(trace.at(BEGIN + 50 * SECOND)["power_instant_w"])
    assert math.isnan(trace.energy_j(BEGIN + 20 * SECOND, BEGIN + 90 * SECOND))


def test_a_channel_that_is_not_available_is_an_empty_series_and_an_unknown_one_an_error() -> None:
    trace = make_trace("power_instant_w", missing=("core_voltage_mv", "energy_j"))
    trace.append(Reading(BEGIN, (100.0, math.nan, math.nan)))
    view = trace.view(0, BEGIN, 100, ["core_voltage_mv", "energy_j", "power_samples_w"])
    assert [len(series.value) for series in view.values()] == [0, 0, 0]
    assert "core_voltage_mv" not in trace.view(0, BEGIN, 100)
    assert trace.statistics("core_voltage_mv", 0, BEGIN).samples == 0
    for ask in (lambda: trace.view(0, BEGIN, 100, ["volts"]), lambda: trace.statistics("volts", 0, BEGIN)):
        with pytest.raises(KeyError):
            ask()


def test_an_empty_trace_answers_everything() -> None:
    trace = make_trace("power_instant_w", "event_reasons")
    assert (len(trace), trace.first_ns, trace.last_ns, trace.appended) == (0, 0, 0, 0)
    assert len(trace.view(0, BEGIN, 100)["power_instant_w"].value) == 0
    assert math.isnan(trace.at(BEGIN)["power_instant_w"])
    assert math.isnan(trace.energy_j(0, BEGIN))
    assert trace.statistics("power_instant_w", 0, BEGIN).samples == 0
    assert trace.event_spans(0, BEGIN) == []


def test_a_mean_is_weighted_by_time() -> None:
    """Ten readings in a burst do not outweigh one that stands for a second."""
    trace = make_trace("power_instant_w")
    trace.append(Reading(BEGIN, (100.0,)))
    for step in range(1, 11):
        trace.append(Reading(BEGIN + step * MS, (500.0,)))
    trace.append(Reading(BEGIN + SECOND, (100.0,)))
    statistics = trace.statistics("power_instant_w", BEGIN, BEGIN + SECOND)
    assert statistics.mean == pytest.approx((0.010 * 500 + 0.990 * 100) / 1.0)
    assert (statistics.minimum, statistics.maximum, statistics.samples) == (100.0, 500.0, 12)


def test_the_energy_of_a_span_is_exact_between_the_readings_too() -> None:
    trace = make_trace("power_instant_w")
    fill(trace, [100.0, 200.0, 300.0, 400.0], step_ns=100 * MS)
    # 200 W stands for 0.0..0.1 s, 300 W for 0.1..0.2 s
    assert trace.energy_j(BEGIN + 50 * MS, BEGIN + 150 * MS) == pytest.approx(0.05 * 200 + 0.05 * 300)
    assert trace.energy_j(BEGIN + 10 * MS, BEGIN + 20 * MS) == pytest.approx(0.01 * 200)
    assert trace.statistics("power_instant_w", BEGIN + 10 * MS, BEGIN + 20 * MS).mean == pytest.approx(200.0)


@settings(max_examples=40, deadline=None)
@given(
    powers=st.lists(st.floats(1, 700, width=32), min_size=2, max_size=200),
    cuts=st.tuples(st.integers(0, 4000), st.integers(0, 4000)),
)
def test_energies_of_adjoining_spans_add_up(powers: list[float], cuts: tuple[int, int]) -> None:
    trace = make_trace("power_instant_w")
    fill(trace, powers)
    whole = trace.energy_j(BEGIN, trace.last_ns)
    edges = sorted({BEGIN, *(min(BEGIN + cut * MS, trace.last_ns) for cut in cuts), trace.last_ns})
    parts = [trace.energy_j(a, b) for a, b in pairwise(edges)]
    assert sum(p for p in parts if not math.isnan(p)) == pytest.approx(whole, rel=1e-9)


@settings(max_examples=80, deadline=None)
@given(
    rows=st.integers(2, 6000),
    start=st.integers(0, 120_000),
    size=st.integers(0, 120_000),
    seed=st.integers(0, 1000),
)
def test_statistics_are_those_of_the_step_curve(rows: int, start: int, size: int, seed: int) -> None:
    """Against a plain sum over all readings, with failures, silences and a ring that wraps."""
    random = np.random.default_rng(seed)
    apart_ms = random.choice([5, 20, 40, 1500], rows, p=[0.2, 0.6, 0.1995, 0.0005])
    stamps = (BEGIN + np.cumsum(apart_ms) * MS).tolist()
    values = random.normal(300, 50, rows).astype(np.float32)
    values[random.random(rows) < 0.05] = np.nan
    trace = make_trace("power_instant_w", span_s=4096 / 50)
    for stamp, value in zip(stamps, values.tolist(), strict=True):
        trace.append(Reading(stamp, (value,)))
    t0, t1 = BEGIN + start * MS, BEGIN + (start + size) * MS
    joule = seconds = 0.0
    inside = []
    held = range(max(0, rows - 4096), rows)
    for row in held:
        if math.isnan(values[row]):
            continue
        if t0 <= stamps[row] <= t1:
            inside.append(float(values[row]))
        if row > held.start and stamps[row] - stamps[row - 1] <= SECOND:
            covered = max(0, min(stamps[row], t1) - max(stamps[row - 1], t0)) / SECOND
            joule += covered * float(values[row])
            seconds += covered
    statistics = trace.statistics("power_instant_w", t0, t1)
    assert statistics.samples == len(inside)
    if seconds:
        assert statistics.mean == pytest.approx(joule / seconds, rel=1e-9)
        assert trace.energy_j(t0, t1) == pytest.approx(joule, rel=1e-9)
    if inside:
        assert statistics.minimum <= min(inside)
        assert statistics.maximum >= max(inside)


def test_a_real_trace_gives_its_measured_energy(shared_data: Path) -> None:
    """37.8 s of an RTX 4000 Ada: 1849.4 J from instant power, 1863.0 J from the 1-s average."""
    rows = []
    for line in (shared_data / "traces" / "rtx4000ada_nvml_instant_average.log").read_text().splitlines():
        try:
            rows.append([float(cell) for cell in line.replace(",", " ").split()])
        except ValueError:
            continue
    trace = make_trace("power_instant_w", "power_average_w", rate_hz=1 / 0.06)
    for row in rows:
        trace.append(Reading(BEGIN + round(row[0] * SECOND), (row[1], row[2])))
    span_s = (trace.last_ns - trace.first_ns) / SECOND
    for name, joule in (("power_instant_w", 1849.4), ("power_average_w", 1863.0)):
        mean = trace.statistics(name, trace.first_ns, trace.last_ns).mean
        assert mean * span_s == pytest.approx(joule, rel=2e-3), name


def test_the_finest_power_there_is_counts() -> None:
    trace = make_trace("power_average_w")
    assert trace.power_name == "power_average_w"
    trace = make_trace("power_instant_w", "power_average_w")
    fill(trace, [100.0] * 100, [50.0] * 100)
    assert trace.power_name == "power_instant_w"
    trace.append_power_samples([PowerSample(BEGIN + i * 20 * MS, 300.0) for i in range(100)])
    assert trace.power_name == POWER_SAMPLES.name
    assert trace.energy_j(BEGIN, BEGIN + SECOND) == pytest.approx(300.0)
    assert trace.view(BEGIN, BEGIN + SECOND, 2000)[POWER_SAMPLES.name].value[0] == 300.0
    assert trace.at(BEGIN + SECOND)[POWER_SAMPLES.name] == 300.0


def test_a_sample_that_comes_twice_is_kept_once() -> None:
    trace = make_trace("power_instant_w")
    samples = [PowerSample(BEGIN + i * 20 * MS, 300.0) for i in range(5)]
    trace.append_power_samples(samples)
    trace.append_power_samples(samples[2:])
    assert trace.power_samples(0, BEGIN + SECOND)[0].tolist() == [s.time_ns for s in samples]


def test_the_energy_counter_keeps_its_joules_where_float32_would_not() -> None:
    trace = make_trace("energy_j", "power_instant_w")
    counted = [4_000_000_000.0 + 6.0 * i for i in range(3000)]
    fill(trace, counted, [300.0] * 3000)
    assert trace.at(trace.last_ns)["energy_j"] == counted[-1]
    near = trace.view(BEGIN, trace.last_ns, 100)["energy_j"]
    assert near.value[0] == counted[0]
    assert np.all(np.diff(near.value) > 0)
    statistics = trace.statistics("energy_j", BEGIN, trace.last_ns)
    assert statistics.maximum - statistics.minimum == pytest.approx(2999 * 6.0)


def test_the_cursor_reads_the_nearest_reading() -> None:
    trace = make_trace("power_instant_w", missing=("fan_percent",))
    trace.append(Reading(BEGIN, (100.0, math.nan)))
    trace.append(Reading(BEGIN + 20 * MS, (200.0, math.nan)))
    assert trace.at(BEGIN + 9 * MS)["power_instant_w"] == 100.0
    assert trace.at(BEGIN + 11 * MS)["power_instant_w"] == 200.0
    assert math.isnan(trace.at(BEGIN)["fan_percent"])
    assert math.isnan(trace.at(BEGIN - 30 * SECOND)["power_instant_w"])


def test_reasons_become_spans_of_each_reason() -> None:
    trace = make_trace("event_reasons")
    cap, idle = EventReason.POWER_CAP, EventReason.IDLE
    fill(trace, [1.0] * 50 + [4.0] * 50 + [0.0] * 50 + [float(4 | 0x20)] * 50)
    spans = {(s.reason, s.start_ns, s.end_ns) for s in trace.event_spans(0, BEGIN + 100 * SECOND, resolution_ns=0)}
    at = [BEGIN + 20 * MS * row for row in (0, 50, 100, 150, 199)]
    assert spans == {
        (idle, at[0], at[1]),
        (cap, at[1], at[2]),
        (cap, at[3], at[4]),
        (EventReason.SOFTWARE_THERMAL, at[3], at[4]),
    }
    clipped = trace.event_spans(at[1] + 5 * MS, at[1] + 10 * MS)
    assert [(s.reason, s.start_ns, s.end_ns) for s in clipped] == [(cap, at[1] + 5 * MS, at[1] + 10 * MS)]


def test_spans_too_close_to_be_distinguished_are_shown_as_one_and_none_is_lost() -> None:
    trace = make_trace("event_reasons")
    fill(trace, [float(4 * (row // 2 % 2)) for row in range(10_000)] + [0.0] * 10_000 + [4.0, 0.0])
    spans = trace.event_spans(BEGIN, trace.last_ns)
    assert len(spans) == 2
    assert spans[0].end_ns == pytest.approx(BEGIN + 200 * SECOND, abs=SECOND)
    assert len(trace.event_spans(BEGIN, trace.last_ns, resolution_ns=0)) == 2501


def test_no_reason_is_claimed_for_a_time_that_nobody_watched() -> None:
    trace = make_trace("event_reasons")
    fill(trace, [4.0] * 10)
    fill(trace, [4.0] * 10, begin_ns=BEGIN + 60 * SECOND)
    first, second = trace.event_spans(BEGIN, trace.last_ns, resolution_ns=0)
    assert first.end_ns <= BEGIN + SECOND
    assert second.start_ns == BEGIN + 60 * SECOND


def test_a_failed_reading_ends_a_reason() -> None:
    trace = make_trace("event_reasons")
    fill(trace, [4.0] * 10 + [math.nan] * 10)
    (span,) = trace.event_spans(BEGIN, trace.last_ns)
    assert span.end_ns == BEGIN + 200 * MS


INFO = GpuInfo(0, "GPU-0", "A100", "simulated", "1.0", PowerLimit(None, None, None, None))


def trace_to_write() -> Trace:
    trace = make_trace("power_instant_w", "energy_j", missing=("fan_percent",))
    trace.append(Reading(BEGIN, (100.5, 12_345_678.901, math.nan)))
    trace.append(Reading(BEGIN + 20 * MS, (math.nan, 12_345_680.0, math.nan)))
    trace.append_power_samples([PowerSample(BEGIN + 10 * MS, 99.25)])
    return trace


def test_json_has_columns_with_their_units_and_null_for_the_unknown(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write_trace(trace_to_write(), path, BEGIN, BEGIN + SECOND, INFO, as_json=True)
    assert json.loads(path.read_text("utf-8")) == {
        "gpu": "A100 (simulated)",
        "source": "simulated",
        "units": {"power_instant_w": "W", "energy_j": "J", "power_samples_w": "W"},
        "readings": {
            "time_s": [0.0, 0.02],
            "power_instant_w": [100.5, None],
            "energy_j": [12345678.901, 12345680.0],
        },
        "power_samples": {"time_s": [0.01], "power_samples_w": [99.25]},
    }


def test_csv_has_units_in_its_header_and_empty_cells_for_the_unknown(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    write_trace(trace_to_write(), path, BEGIN, BEGIN + SECOND, INFO, as_json=False)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["time_s", "power_instant_w", "energy_j", "power_samples_w", "gpu"]
    assert [row["time_s"] for row in rows] == ["0.000000", "0.010000", "0.020000"]
    assert [row["power_instant_w"] for row in rows] == ["100.5", "", ""]
    assert [row["energy_j"] for row in rows] == ["12345678.901", "", "12345680.000"]
    assert [row["power_samples_w"] for row in rows] == ["", "99.25", ""]
    assert {row["gpu"] for row in rows} == {"A100 (simulated)"}


ROWS = 64  # the smallest ring that a trace may have: the writer comes round to a copied row soonest
ROUND = 3 * 4096  # rows after which nothing of a ring of 64 rows is what it was


def rows_of(first: int, count: int) -> list[Reading]:
    """Every channel carries the row's number, and the time of a row follows from it."""
    return [Reading(BEGIN + row * 20 * MS, (float(row),) * 3) for row in range(first, first + count)]


NUMBERED = ("power_instant_w", "graphics_clock_mhz", "energy_j")


def numbered_trace() -> Trace:
    trace = make_trace(*NUMBERED, span_s=ROWS / 50)
    for reading in rows_of(0, ROUND):
        trace.append(reading)
    return trace


def faults_of_view(trace: Trace, points: int) -> Iterator[str]:
    view = trace.view(0, 1 << 62, points)
    times_s = [view[name].time_s for name in NUMBERED]
    if any(np.any(np.diff(time_s) < 0) for time_s in times_s):
        yield "time goes back"
    if not np.array_equal(view["power_instant_w"].value, view["graphics_clock_mhz"].value):
        yield "channels differ"
    if points >= ROWS:
        for name, time_s in zip(NUMBERED, times_s, strict=True):
            if not np.allclose(time_s, (BEGIN + view[name].value.astype(float) * 20 * MS) / 1e9):
                yield f"{name} belongs to other times"


def faults_of_columns(trace: Trace) -> Iterator[str]:
    columns = trace.columns(0, 1 << 62)
    rows = (columns["time_ns"] - BEGIN) // (20 * MS)
    if len(rows) != ROWS or np.any(np.diff(rows) != 1):
        yield "rows are missing or out of order"
    if any(not np.array_equal(columns[name], rows) for name in NUMBERED):
        yield "a column belongs to other rows"


def faults_of_summaries(trace: Trace) -> Iterator[str]:
    """The rows' numbers rise by one, so mean and extremes of a whole ring follow from each other."""
    for name in NUMBERED:
        found = trace.statistics(name, 0, 1 << 62)
        if found.samples != ROWS or found.maximum - found.minimum != ROWS - 1:
            yield f"statistics of {name} mix rows"
    now = trace.at(trace.last_ns)
    if len({now[name] for name in NUMBERED}) != 1:
        yield "one reading mixes rows"


READERS: dict[str, Callable[[Trace], Iterator[str]]] = {
    "every point": lambda trace: faults_of_view(trace, 200),
    "blocks": lambda trace: faults_of_view(trace, 20),
    "columns": faults_of_columns,
    "summaries": faults_of_summaries,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize("appended", [1, ROUND])
def test_a_reader_that_is_overtaken_between_two_copies_reads_again(
    monkeypatch: pytest.MonkeyPatch, reader: str, copies: int, appended: int
) -> None:
    """A row comes, or the writer comes round the whole ring, after the reader's first, second or third look at it."""
    trace = numbered_trace()
    looks = 0

    def look(name: str) -> None:
        original = getattr(Ring, name)

        def overtaken(ring: Ring, *given: Any) -> Any:
            nonlocal looks
            looked = original(ring, *given)
            looks += 1
            if looks == copies:
                for reading in rows_of(ROUND, appended):
                    trace.append(reading)
            return looked

        monkeypatch.setattr(Ring, name, overtaken)

    for name in ("between", "take", "row"):
        look(name)
    faults = list(READERS[reader](trace))
    assert looks >= copies, "the reader was not overtaken"
    assert not faults


def test_readers_and_a_writer_flat_out_never_show_time_running_backwards() -> None:
    """A thread keeps the interpreter long enough for the writer to come round the ring while a reader waits."""
    trace = numbered_trace()
    done = threading.Event()
    faults: set[str] = set()
    reads = dict.fromkeys(READERS, 0)

    def write() -> None:
        row = ROUND
        while not done.is_set():
            for reading in rows_of(row, 64):
                trace.append(reading)
            row += 64

    def read(name: str) -> None:
        while not done.is_set():
            faults.update(READERS[name](trace))
            reads[name] += 1

    threads = [threading.Thread(target=write), *(threading.Thread(target=read, args=(name,)) for name in READERS)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.03)
    try:
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 60
        done.wait(4.0)
        while not all(reads.values()) and time.monotonic() < deadline:
            done.wait(0.1)
        done.set()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert all(reads.values()), "a reader never got its rows"
    assert not faults


def test_memory_is_flat_once_the_span_is_full() -> None:
    trace = make_trace("power_instant_w", span_s=60.0)
    fill(trace, [1.0] * 20_000)
    assert len(trace) == 3000
    assert trace.last_ns - trace.first_ns == 2999 * 20 * MS


def test_a_picture_of_hours_is_drawn_from_blocks_not_from_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten channels over an hour and over eight minutes."""
    names = [name for name in CHANNELS if name not in ("energy_j", "event_reasons")][:10]
    trace = Trace([channel(n) for n in names], span_s=3600.0)
    row = tuple(float(i) for i in range(10))
    for i in range(180_000):
        trace.append(Reading(BEGIN + i * 20 * MS, row))

    copied: list[int] = []
    take = Ring.take

    def counted(ring: Ring, array: np.ndarray, start: int, stop: int) -> np.ndarray:
        copied.append(stop - start)
        return take(ring, array, start, stop)

    monkeypatch.setattr(Ring, "take", counted)
    for span_s, rows in ((3600, 180_000), (480, 24_000)):
        copied.clear()
        series = trace.view(trace.last_ns - span_s * SECOND, trace.last_ns, 2000, names)
        assert {len(one.value) for one in series.values()} <= set(range(1000, 2001))
        assert sum(copied) < rows / 50  # but for those before the first and after the last whole block


def test_no_rate_makes_a_trace_that_eats_the_machine() -> None:
    assert Trace([channel(n) for n in CHANNELS], rate_hz=1e6).nbytes < 300e6


def test_a_channel_that_is_not_available_takes_no_memory() -> None:
    every: list[Channel] = [channel(n) for n in CHANNELS]
    few = [c if c.name == "power_instant_w" else channel(c.name, "not reported") for c in every]
    values = tuple([100.0] * len(every))
    sizes = []
    for channels in (every, few):
        trace = Trace(channels, span_s=3600.0)
        trace.append(Reading(BEGIN, values))
        sizes.append(trace.nbytes)
    assert sizes[1] < sizes[0] / 5


def test_on_a_faster_clock_a_silence_is_as_long_on_the_wall() -> None:
    """At 60 times real time a second of the board's clock is 17 ms: no reading of it would be joined to the next."""
    trace = make_trace("power_instant_w")
    trace.allow_for(60.0)
    fill(trace, [100.0] * 11, step_ns=2 * SECOND)
    trace.allow_for(1.0)
    fill(trace, [100.0] * 11, begin_ns=BEGIN + 120 * SECOND)
    series = trace.view(BEGIN, trace.last_ns, 2000)["power_instant_w"]
    assert np.isnan(series.value).sum() == 1, "of 100 s, which are more than a second of the wall's"
    assert trace.energy_j(BEGIN, BEGIN + 20 * SECOND) == pytest.approx(2000.0)
