"""The columnar form: what was recorded comes back, as far as it was written, and a bad file is one line."""

from __future__ import annotations

import errno
import json
import math
import os
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from fixtures.scripted_gpu import ScriptedGpu

from app.base.errors import InputError
from app.engine.formats.kinds import is_trace
from app.sensors.channel import PowerSample, Reading
from app.sensors.recorded import columns
from app.sensors.recorded.columns import ColumnsWriter, append_mark, is_columns
from app.sensors.recorded.header import Mark
from app.sensors.recorded.recording import RecordingWriter, new_recording, read_recording
from app.sensors.timeline.stored import open_stored
from app.sensors.trace.trace import Trace

MS = 1_000_000
ROWS = 9000  # two whole blocks and a part of a third


def power(row: int) -> float:
    return math.nan if 5000 <= row < 5010 else 100.0 + row % 7 + (400.0 if row == 4321 else 0.0)


def record(path: Path, rows: int = ROWS, *, gap_at: int = -1) -> ColumnsWriter:
    """A reading each 20 ms, of which the eleventh says what its power is; a silence of a minute before `gap_at`."""
    gpu = ScriptedGpu(lambda read: power(read - 1))
    writer = new_recording(path, gpu)
    assert isinstance(writer, ColumnsWriter)
    for row in range(rows):
        if row == gap_at:
            gpu.clock.wait(60.0)
        writer.write(gpu.read())
        writer.write_power_samples([PowerSample(gpu.clock.now_ns() + 5 * MS, 90.0 + row)])
        gpu.clock.wait(0.02)
    return writer


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("columns") / "board.wrec"
    record(path).close()
    return path


def test_what_was_recorded_comes_back(file: Path) -> None:
    recording = read_recording(file)
    assert recording.title == "board"
    assert recording.info.name == "Scripted"
    assert recording.time_ns.tolist() == [row * 20 * MS for row in range(ROWS)]
    expected = [power(row) for row in range(ROWS)]
    assert np.array_equal(recording.values[:, 0], np.array(expected, np.float32), equal_nan=True)
    assert recording.sample_w.tolist() == [90.0 + row for row in range(ROWS)]
    assert recording.graphics_clocks_mhz == (345, 1005, 1410)
    assert is_trace(file)
    assert is_columns(file)


def test_a_trace_of_the_file_says_what_a_live_trace_says(file: Path) -> None:
    """Of any stretch: by whole blocks of sums, and by single rows at its ends."""
    gpu = ScriptedGpu(lambda read: power(read - 1))
    live = Trace(gpu.channels, rate_hz=50.0, span_s=600.0)
    for row in range(ROWS):
        live.append(gpu.read())
        live.append_power_samples([PowerSample(gpu.clock.now_ns() + 5 * MS, 90.0 + row)])
        gpu.clock.wait(0.02)
    origin, stored = live.first_ns, open_stored(file).trace
    for start, end in ((0, 180_000), (1, 90_000), (85_990, 86_500), (99_000, 101_000), (163_000, 179_999)):
        for name in ("power_instant_w", "power_samples_w"):
            there = stored.statistics(name, start * MS, end * MS)
            here = live.statistics(name, origin + start * MS, origin + end * MS)
            assert astuple(there) == pytest.approx(astuple(here)), (name, start, end)
        assert stored.energy_j(start * MS, end * MS) == pytest.approx(
            live.energy_j(origin + start * MS, origin + end * MS)
        )
    assert stored.at(86_421 * MS)["power_instant_w"] == power(4321)


def test_no_spike_is_lost_however_little_is_drawn(file: Path) -> None:
    trace = open_stored(file).trace
    for points in (20, 100, 3000, ROWS):
        series = trace.view(0, trace.last_ns, points, ["power_instant_w"])["power_instant_w"]
        assert len(series.value) <= points
        assert np.nanmax(series.value) == power(4321)


def test_a_silence_is_a_gap(tmp_path: Path) -> None:
    record(tmp_path / "gap.wrec", 5000, gap_at=4500).close()
    trace = open_stored(tmp_path / "gap.wrec").trace
    series = trace.view(0, trace.last_ns, 500, ["power_instant_w"])["power_instant_w"]
    within = (series.time_s > 90.0) & (series.time_s < 149.0)
    assert np.isnan(series.value[within]).all()
    assert within.any()
    assert math.isnan(trace.energy_j(100_000 * MS, 140_000 * MS)), "nothing was read"
    assert trace.at(120_000 * MS)["power_instant_w"] != trace.at(80_000 * MS)["power_instant_w"]


def test_an_unfinished_recording_is_read_as_far_as_it_was_written(tmp_path: Path) -> None:
    writer = record(tmp_path / "r.wrec", 4500)
    writer.mark(Mark(7 * MS, "begun"))
    part = tmp_path / "r.wrec.part"
    opened = open_stored(part)
    assert 4450 <= len(opened.trace) <= 4500, "but for the last second"
    assert opened.marks == (Mark(7 * MS, "begun"),)
    cut = tmp_path / "cut.wrec.part"
    cut.write_bytes(part.read_bytes()[: os.path.getsize(part) * 2 // 3])
    assert 2 <= len(open_stored(cut).trace) <= 4500
    writer.close()
    assert len(opened.trace.readings("power_instant_w", 0, 1 << 62)[1]) == len(opened.trace), "open files stay readable"
    assert len(open_stored(tmp_path / "r.wrec").trace) == 4500


def test_a_full_disk_ends_a_recording_and_what_was_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = record(tmp_path / "r.wrec", 300)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(columns.ColumnsFile, "_write", full)
    with pytest.raises(OSError, match="No space") as failed:
        writer.write(Reading(writer._origin_ns + 9000 * MS, (1.0,) * 5))
    assert failed.value.filename == str(tmp_path / "r.wrec.part")
    monkeypatch.undo()
    assert len(open_stored(tmp_path / "r.wrec.part").trace) >= 250


def test_marks_are_kept_in_the_file_in_order_of_time(tmp_path: Path) -> None:
    path = tmp_path / "r.wrec"
    record(path, 50).close()
    append_mark(path, Mark(500 * MS, "second"))
    append_mark(path, Mark(100 * MS, "first – µ"))
    assert [mark.text for mark in open_stored(path).marks] == ["first – µ", "second"]
    assert [mark.time_ns for mark in read_recording(path).marks] == [100 * MS, 500 * MS]


def test_clock_events_are_found_one_after_another(tmp_path: Path) -> None:
    gpu = ScriptedGpu(lambda _: 100.0)
    place = [channel.name for channel in gpu.channels].index("event_reasons")
    with new_recording(tmp_path / "r.wrec", gpu) as writer:
        for row in range(200):
            values = list(gpu.read().values)
            values[place] = 4.0 if 50 <= row < 80 or row >= 150 else 0.0
            writer.write(Reading(gpu.clock.now_ns(), tuple(values)))
            gpu.clock.wait(0.02)
    trace = open_stored(tmp_path / "r.wrec").trace
    found, at = [], -1
    while (after := trace.next_event_ns(at)) is not None:
        found.append(after // (20 * MS))
        at = after
    assert found == [50, 80, 150]
    assert trace.next_event_ns(at, before=True) == 80 * 20 * MS
    assert trace.next_event_ns(0, before=True) is None


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda data: data.replace(b'"version": 2', b'"version": 3'), "version"),
        (lambda data: data.replace(b'"channels"', b'"shannels"'), "channels"),
        (lambda data: data.replace(b"WBLK", b"XBLK"), "no block begins"),
        (lambda data: data[:4096], "fewer than two readings"),
        (lambda data: b'{"format": "wattridge-recording", "version": 2, ' + b"x" * 5000, "no recording"),
    ],
)
def test_a_bad_file_is_one_line(file: Path, tmp_path: Path, spoil, what: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "bad.wrec"
    path.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(InputError, match=what) as refused:
        open_stored(path)
    assert str(path) in refused.value.where
    assert "\n" not in str(refused.value)


def test_any_flipped_byte_of_header_and_tags_is_an_error_or_another_figure_never_a_crash(
    file: Path, tmp_path: Path
) -> None:
    data = file.read_bytes()
    line = json.loads(data.split(b"\n", 1)[0])
    assert line["version"] == 2
    begin = data.index(b"WBLK")
    for place in (*range(0, 1200, 37), *range(begin, begin + 64, 3), *range(begin + 64, begin + 200, 17)):
        spoilt = bytearray(data)
        spoilt[place] ^= 0x5A
        path = tmp_path / "spoilt.wrec"
        path.write_bytes(spoilt)
        with suppress(InputError):
            trace = open_stored(path).trace
            trace.view(0, trace.last_ns, 1000)


def test_text_is_written_where_the_name_does_not_end_in_wrec(tmp_path: Path) -> None:
    with new_recording(tmp_path / "r.csv.gz", ScriptedGpu(lambda _: 1.0)) as writer:
        assert isinstance(writer, RecordingWriter)
        writer.mark(Mark(3 * MS, 'said "go", then went'))
        writer.write(Reading(writer._origin_ns, (1.0,) * 5))
        writer.write(Reading(writer._origin_ns + MS, (1.0,) * 5))
    assert read_recording(tmp_path / "r.csv.gz").marks == (Mark(3 * MS, 'said "go", then went'),)
