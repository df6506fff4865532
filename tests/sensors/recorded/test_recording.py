"""Recordings: what was recorded comes back, nothing names the board, and a broken file is one clear line."""

from __future__ import annotations

import gzip
import json
import math
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from fixtures.scripted_gpu import ScriptedGpu
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InputError, WattridgeError
from app.sensors.channel import PowerSample, Reading
from app.sensors.clock import HostClock, VirtualClock
from app.sensors.gpu import NotSupported
from app.sensors.nvml.gpu import NvmlGpu
from app.sensors.nvml.library import NvmlLibrary
from app.sensors.recorded.gpu import RecordedGpu
from app.sensors.recorded.recording import Recording, RecordingWriter, read_recording
from app.sensors.trace.sampler import Sampler
from app.sensors.trace.trace import Trace

MS = 1_000_000


def record(path: Path, powers: list[float]) -> Path:
    gpu = ScriptedGpu(lambda read: powers[read - 1])
    with RecordingWriter(path, gpu) as writer:
        for row in range(len(powers)):
            writer.write(gpu.read())
            writer.write_power_samples([PowerSample(gpu.clock.now_ns() + 5 * MS, 90.0 + row)])
            gpu.clock.wait(0.02)
    return path


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return read_recording(record(tmp_path / "board.csv.gz", [100.0, 101.5, math.nan, 103.25]))


def test_what_was_recorded_comes_back(recording: Recording) -> None:
    assert recording.title == "board"
    assert (recording.info.name, recording.recorded_from) == ("Scripted", "simulated")
    assert [c.name for c in recording.channels][:2] == ["power_instant_w", "energy_j"]
    assert recording.channels[1].unavailable == "this board counts none"
    assert recording.time_ns.tolist() == [0, 20 * MS, 40 * MS, 60 * MS]
    assert recording.values[:, 0].tolist()[:2] == [100.0, 101.5]
    assert math.isnan(recording.values[2, 0])
    assert np.isnan(recording.values[:, 1]).all()
    assert recording.sample_ns.tolist() == [5 * MS, 25 * MS, 45 * MS, 65 * MS]
    assert recording.sample_w.tolist() == [90.0, 91.0, 92.0, 93.0]
    assert recording.graphics_clocks_mhz == (345, 1005, 1410)
    assert recording.info.power_limit.maximum_w == 300.0


def test_a_recording_on_the_clock_of_the_wall_knows_when_it_began(tmp_path: Path, recording: Recording) -> None:
    assert math.isnan(recording.began_s)  # of a clock that is not the wall's
    gpu = ScriptedGpu(lambda _: 100.0)
    gpu.clock = HostClock()
    before_ns = time.time_ns()
    with RecordingWriter(tmp_path / "now.csv.gz", gpu) as writer:
        after_ns = time.time_ns()
        for number in (1, 2):
            writer.write(Reading(gpu.clock.now_ns() + number * MS, gpu.read().values))
    began_ns = read_recording(tmp_path / "now.csv.gz").began_s * 1e9
    assert before_ns - MS <= began_ns <= after_ns + MS


def test_no_identifier_of_the_board_is_written(tmp_path: Path) -> None:
    from fixtures.fake_pynvml import FakePynvml, sampled_board

    board = sampled_board(uuid="GPU-deadbeef-0000-1111-2222-333333333333")
    gpu = NvmlGpu(0, library=NvmlLibrary(FakePynvml(board)), voltage=None)  # type: ignore[arg-type]
    with RecordingWriter(tmp_path / "r.csv.gz", gpu) as writer:
        writer.write(gpu.read())
        writer.write(gpu.read())
    gpu.close()
    text = gzip.decompress((tmp_path / "r.csv.gz").read_bytes()).decode()
    assert "deadbeef" not in text
    assert "uuid" not in text.lower()
    header = json.loads(text.splitlines()[0])
    assert header["recorded_from"] == "nvml"
    assert header["graphics_clocks_mhz"][0] == 345


def test_a_file_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv.gz"
    path.write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        RecordingWriter(path, ScriptedGpu())
    assert path.read_text() == "mine"


def test_an_unfinished_recording_does_not_take_the_name(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r.csv.gz", ScriptedGpu())
    assert not (tmp_path / "r.csv.gz").exists()
    writer.close()
    writer.close()
    assert (tmp_path / "r.csv.gz").exists()


def test_where_a_recording_cannot_be_written_or_finished_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        RecordingWriter(tmp_path / "no folder" / "r.csv.gz", ScriptedGpu())
    writer = RecordingWriter(tmp_path / "r.csv.gz", ScriptedGpu())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.sensors.recorded.recording.os.replace", full)
    with pytest.raises(WattridgeError, match="No space left"):
        writer.close()


def test_a_reading_given_twice_is_written_once(tmp_path: Path) -> None:
    gpu = ScriptedGpu()
    with RecordingWriter(tmp_path / "r.csv.gz", gpu) as writer:
        reading = gpu.read()
        writer.write(reading)
        writer.write(reading)
        writer.write(Reading(reading.time_ns - 1, reading.values))
        writer.write(Reading(reading.time_ns + MS, reading.values))
    assert len(read_recording(tmp_path / "r.csv.gz").time_ns) == 2


# --- unfinished and interrupted ---------------------------------------------------------------------------------------


def write_seconds(writer: RecordingWriter, gpu: ScriptedGpu, seconds: float) -> None:
    for _ in range(round(seconds / 0.02)):
        writer.write(gpu.read())
        gpu.clock.wait(0.02)


def test_a_process_that_is_killed_loses_less_than_five_seconds(tmp_path: Path) -> None:
    """What a kill leaves is what lies on disk while the writer is still at work."""
    gpu = ScriptedGpu()
    writer = RecordingWriter(tmp_path / "r.csv.gz", gpu)
    for seconds in (0.06, 2.5, 2.5, 30.0):
        write_seconds(writer, gpu, seconds)
        written_ns = gpu.clock.now_ns() - 1_000 * MS
        with suppress(InputError):
            found = read_recording(writer.part)
            assert written_ns - found.time_ns[-1] < 2_000 * MS
    assert len(found.time_ns) > 1600
    writer.close()
    assert len(read_recording(tmp_path / "r.csv.gz").time_ns) == 1753


def test_a_part_that_is_cut_off_anywhere_gives_the_readings_before_the_cut(tmp_path: Path) -> None:
    gpu = ScriptedGpu(lambda read: 100.0 + read % 7)
    writer = RecordingWriter(tmp_path / "r.csv.gz", gpu)
    write_seconds(writer, gpu, 6.0)
    whole = writer.part.read_bytes()
    writer.close()
    every = read_recording(tmp_path / "r.csv.gz").time_ns
    cut = tmp_path / "cut.csv.gz.part"
    longest = 0
    for size in range(0, len(whole) + 1, 7):
        cut.write_bytes(whole[:size])
        try:
            found = read_recording(cut)
        except InputError:
            assert size < len(whole) / 2, "most of it is there, and it does not open"
            continue
        assert np.array_equal(found.time_ns, every[: len(found.time_ns)])
        assert np.array_equal(found.values[:, 0], 100.0 + np.arange(1, len(found.time_ns) + 1) % 7)
        assert len(found.time_ns) >= longest
        longest = len(found.time_ns)
    assert longest > 240


def test_a_finished_recording_that_is_cut_off_is_refused_as_before(tmp_path: Path) -> None:
    path = record(tmp_path / "r.csv.gz", [100.0] * 500)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="cut off"):
        read_recording(path)


def test_an_unfinished_recording_is_never_written_over(tmp_path: Path) -> None:
    gpu = ScriptedGpu()
    writer = RecordingWriter(tmp_path / "r.csv.gz", gpu)
    write_seconds(writer, gpu, 3.0)
    before = writer.part.read_bytes()
    with pytest.raises(InputError, match="unfinished recording"):
        RecordingWriter(tmp_path / "r.csv.gz", gpu)
    assert writer.part.read_bytes() == before
    writer.close()


def test_the_same_readings_make_the_same_file(tmp_path: Path) -> None:
    first, second = (record(tmp_path / name, [100.0] * 200).read_bytes() for name in ("a.csv.gz", "b.csv.gz"))
    assert first == second


# --- replay -----------------------------------------------------------------------------------------------------------


def test_a_replay_says_recorded_and_simulated_where_it_was(recording: Recording) -> None:
    gpu = RecordedGpu(recording, clock=VirtualClock())
    assert gpu.info.source == "recorded"
    assert gpu.info.label == "Scripted, simulated (recorded)"
    assert "as recorded" in gpu.info.power_source


def test_a_replay_gives_each_reading_at_its_time_and_loops_after_a_gap(recording: Recording) -> None:
    clock = VirtualClock()
    gpu = RecordedGpu(recording, clock=clock, loops=True)
    begin = clock.now_ns()
    assert gpu.read().time_ns == gpu.read().time_ns
    assert (gpu.read().time_ns, gpu.read().values[0]) == (begin, 100.0)
    clock.wait(0.030)
    assert (gpu.read().time_ns, gpu.read().values[0]) == (begin + 20 * MS, 101.5)
    clock.wait(1.0)
    assert (gpu.read().time_ns, gpu.read().values[0]) == (begin + 60 * MS, 103.25)  # between two rounds
    clock.wait(1.040)
    again = gpu.read()
    assert again.values[0] == 100.0
    assert again.time_ns - begin > 2_000 * MS


def test_a_looped_replay_breaks_the_traces_line(recording: Recording) -> None:
    gpu = RecordedGpu(recording, clock=VirtualClock(), loops=True)
    trace = Trace(gpu.channels, span_s=60.0)
    sampler = Sampler(gpu, trace)
    sampler.start()
    while gpu.clock.now_ns() < trace.first_ns + 10_000 * MS or not trace.first_ns:
        pass
    sampler.stop()
    sampler.join()
    values = trace.view(trace.first_ns, trace.last_ns, 5000, ["temperature_c"])["temperature_c"].value
    assert np.count_nonzero(np.isnan(values)) >= 3
    assert set(values[~np.isnan(values)].tolist()) == {40.0}


def test_replayed_samples_are_reported_once_they_were_recorded(recording: Recording) -> None:
    clock = VirtualClock()
    gpu = RecordedGpu(recording, clock=clock, loops=True)
    begin = clock.now_ns()
    assert gpu.power_samples(0) == []
    clock.wait(0.046)
    assert [s.power_w for s in gpu.power_samples(0)] == [90.0, 91.0, 92.0]
    assert gpu.power_samples(begin + 25 * MS) == [PowerSample(begin + 45 * MS, 92.0)]
    clock.wait(2.065)
    assert [s.power_w for s in gpu.power_samples(0)] == [90.0, 91.0, 92.0, 93.0, 90.0, 91.0, 92.0]


def test_without_samples_or_counter_it_says_not_supported(tmp_path: Path) -> None:
    gpu = ScriptedGpu()
    with RecordingWriter(tmp_path / "r.csv.gz", gpu) as writer:
        for _ in range(3):
            writer.write(gpu.read())
            gpu.clock.wait(0.02)
    replayed = RecordedGpu(read_recording(tmp_path / "r.csv.gz"), clock=VirtualClock())
    for ask in (lambda: replayed.power_samples(0), replayed.energy_j):
        with pytest.raises(NotSupported):
            ask()


# --- bad files --------------------------------------------------------------------------------------------------------

HEADER = json.dumps({"format": "wattridge-recording", "version": 1, "name": "B", "channels": {"power_instant_w": None}})
ROWS = "r,0,100\nr,20000,101\n"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", 1, "no recording"),
        ("[1, 2]\n", 1, "no recording"),
        ("{" * 100_000, 1, "no recording"),
        ("x" * 2_000_000, 1, "too long"),
        (HEADER.replace("1,", "9,") + "\n" + ROWS, 1, "version 9"),
        (HEADER.replace("power_instant_w", "power_w") + "\n" + ROWS, 1, "no channel"),
        (HEADER.replace("null", "7") + "\n" + ROWS, 1, "no channel"),
        (HEADER.replace('"B"', "[]") + "\n" + ROWS, 1, "'name'"),
        (HEADER[:-1] + ', "memory_mib": "lots"}\n' + ROWS, 1, "'memory_mib'"),
        (HEADER[:-1] + f', "multiprocessors": {10**400}}}\n' + ROWS, 1, "'multiprocessors'"),
        (HEADER[:-1] + ', "graphics_clocks_mhz": [1.5]}\n' + ROWS, 1, "whole numbers"),
        (HEADER + "\n", 1, "fewer than two"),
        (HEADER + "\nr,0,100\n", 2, "fewer than two"),
        (HEADER + "\nr,0,100\nr,0,101\n", 3, "does not go forward"),
        (HEADER + "\nr,0,100\nr,-5,101\n", 3, "no time"),
        (HEADER + "\nr,0,100,7\n", 2, "expected r,TIME and 1 values"),
        (HEADER + "\nq,0,100\n", 2, "expected"),
        (HEADER + "\nr,0,abc\n", 2, "no number"),
        (HEADER + "\nr,0,inf\n", 2, "no number"),
        (HEADER + "\nr,0,1e300\n", 2, "no number"),
        (HEADER + "\nr,0," + "1" * 5000 + "\n", 2, "too long"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_malformed_file_is_one_line_with_file_line_and_remedy(
    tmp_path: Path, text: str, line: int, what: str, packed: bool
) -> None:
    path = tmp_path / "bad.csv.gz"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with pytest.raises(InputError) as caught:
        read_recording(path)
    assert what in caught.value.what
    assert caught.value.where == f"{path}, line {line}"
    assert caught.value.remedy
    assert len(str(caught.value)) < 600


def test_a_file_cut_off_missing_or_not_text_is_one_line(tmp_path: Path) -> None:
    whole = record(tmp_path / "whole.csv.gz", [100.0] * 500).read_bytes()
    (tmp_path / "cut.csv.gz").write_bytes(whole[:-20])
    (tmp_path / "latin.csv").write_bytes(HEADER.encode() + b"\n\xff\xfe\n")
    for name in ("cut.csv.gz", "latin.csv", "missing.csv.gz", "."):
        with pytest.raises(InputError):
            read_recording(tmp_path / name)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.data())
def test_no_damage_to_a_file_gives_anything_but_one_clear_error(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "damaged.csv"
    if not (tmp_path / "good.csv.gz").exists():
        record(tmp_path / "good.csv.gz", [100.0, 101.0, 102.0])
    text = bytearray(gzip.decompress((tmp_path / "good.csv.gz").read_bytes()))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place : place + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    path.write_bytes(bytes(text))
    with suppress(InputError):
        recording = read_recording(path)
        assert len(recording.time_ns) >= 2
        RecordedGpu(recording, clock=VirtualClock()).read()
