"""Marks from other programs reach every recording that runs, and no other; converted files keep theirs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.scripted_gpu import ScriptedGpu

from app.base.errors import InputError, WattridgeError
from app.base.paths import data_folder, resources
from app.cli import main
from app.sensors.clock import HostClock
from app.sensors.recorded.header import Mark
from app.sensors.recorded.marks import FOLDER, mark, mark_at
from app.sensors.recorded.recording import read_recording
from app.sensors.timeline import converted
from app.sensors.timeline.converted import Cancelled, Timelines, add_mark, open_timelines
from app.sensors.trace.live_board import LiveBoard

SHIPPED = "h200-gemm.csv.gz"


def nothing(_: float) -> None:
    """Progress that is not looked at."""


def opened(path: Path, step_s: float | None = None) -> Timelines:
    return open_timelines(path, step_s, nothing, threading.Event())


@pytest.fixture
def board(tmp_path: Path) -> Iterator[LiveBoard]:
    made = LiveBoard(ScriptedGpu(lambda _: 100.0, clock=HostClock()), interval_s=0.02)
    yield made
    made.close()


def wait_for(done) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("name", ["r.wrec", "r.csv.gz"])
def test_a_mark_from_elsewhere_is_in_the_file_at_its_time(board: LiveBoard, tmp_path: Path, name: str) -> None:
    board.record(tmp_path / name)
    begun = board.gpu.clock.now_ns()
    wait_for(lambda: len(board.trace) > 5)
    before = board.gpu.clock.now_ns() - begun
    assert mark("load begins\n\x1b[31m") == [tmp_path / name]
    after = board.gpu.clock.now_ns() - begun
    board.finish_recording()
    (kept,) = read_recording(tmp_path / name).marks
    assert kept.text == "load begins [31m", "one line, without control characters"
    assert before - 50_000_000 <= kept.time_ns <= after + 50_000_000
    assert mark("too late") == []


def test_every_recording_that_runs_is_reached_and_what_a_killed_one_left_is_removed(
    board: LiveBoard, tmp_path: Path
) -> None:
    other = LiveBoard(ScriptedGpu(lambda _: 1.0, clock=HostClock()), interval_s=0.02)
    board.record(tmp_path / "one.wrec")
    other.record(tmp_path / "two.wrec")
    left = data_folder() / FOLDER / "1-dead.jsonl"
    left.write_text('{"recording": "/nowhere"}\n')
    assert set(mark("both")) == {tmp_path / "one.wrec", tmp_path / "two.wrec"}
    assert not left.exists()
    assert mark_at(tmp_path / "two.wrec", 5_000_000, "one only")
    assert not mark_at(tmp_path / "three.wrec", 5_000_000, "none")
    wait_for(lambda: len(other.trace) > 5 and len(board.trace) > 5)
    board.finish_recording()
    other.close()
    assert [m.text for m in read_recording(tmp_path / "one.wrec").marks] == ["both"]
    assert {m.text for m in read_recording(tmp_path / "two.wrec").marks} == {"both", "one only"}


def test_the_command_reaches_a_recording_of_another_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.wrec"
    words = ["monitor", "--gpu", "simulated:a100", "--duration", "600", "--record", str(path), "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "app", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: main(["mark", "phase", "two"]) == 0)
        wait_for(lambda: path.with_name("r.wrec.part").stat().st_size > 100_000)
        time.sleep(2.0)  # of recording: it holds some readings
    finally:
        process.terminate()
        process.wait(60)
    assert f"marked 'phase two' in {path}" in capsys.readouterr().out
    assert "phase two" in {m.text for m in read_recording(path).marks}


def test_where_nothing_records_it_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mark", "x"]) == 1
    assert "no recording is running" in capsys.readouterr().err
    assert main(["mark", " "]) == 2


def test_without_a_data_folder_recordings_run_without_marks(
    board: LiveBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WATTRIDGE_DATA", str(tmp_path / "file"))
    board.record(tmp_path / "r.wrec")
    wait_for(lambda: len(board.trace) > 5)
    board.finish_recording()
    assert len(read_recording(tmp_path / "r.wrec").time_ns) >= 2


# --- conversion -------------------------------------------------------------------------------------------------------


def test_a_recording_as_text_is_converted_once_and_says_the_same(tmp_path: Path) -> None:
    path = shutil.copy(resources() / "recordings" / SHIPPED, tmp_path / SHIPPED)
    board = opened(path).boards[0]
    whole = read_recording(path)
    assert board.trace.columns(0, 1 << 62)["time_ns"].tolist() == whole.time_ns.tolist()
    assert len(board.trace.power_samples(0, 1 << 62)[0]) == len(whole.sample_ns)
    assert board.facts.channels == whole.channels
    again = opened(path).boards[0]
    assert again.path == board.path
    assert again.path.stat().st_ino == board.path.stat().st_ino


def test_a_mark_of_a_text_recording_is_kept_in_that_file(tmp_path: Path) -> None:
    path = Path(shutil.copy(resources() / "recordings" / SHIPPED, tmp_path / SHIPPED))
    marked = add_mark(opened(path), 0, Mark(10**9, "peak"))
    marked = add_mark(marked, 0, Mark(2 * 10**9, "end"))
    assert not marked.grown
    assert [m.text for m in read_recording(path).marks] == ["peak", "end"]
    assert opened(path).boards[0].marks == marked.boards[0].marks
    assert opened(path).boards[0].path == marked.boards[0].path, "it is not converted again"


def test_a_mark_in_a_file_that_cannot_be_written_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copy(resources() / "recordings" / SHIPPED, tmp_path / SHIPPED))
    timelines = opened(path)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(converted.recording, "append_mark", refuse)
    with pytest.raises(WattridgeError, match="cannot be kept"):
        add_mark(timelines, 0, Mark(1, "x"))
    with pytest.raises(InputError, match="text"):
        add_mark(timelines, 0, Mark(1, "  "))


def test_the_phases_of_a_log_are_marks_and_its_date_is_known(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = (
        f"2026/11/28 14:00:{n // 10:02d}.{n % 10}00,{100 + n},{('warm-up', 'run', '')[n // 100]}\n" for n in range(300)
    )
    path.write_text("timestamp,power,phase\n" + "".join(rows))
    board = opened(path).boards[0]
    assert board.marks == (Mark(0, "warm-up"), Mark(10 * 10**9, "run"))
    assert time.strftime("%H:%M", time.localtime(board.facts.began_s)) == "14:00"


def test_every_board_of_a_log_has_its_own_timeline(tmp_path: Path) -> None:
    path = tmp_path / "dmon.txt"
    path.write_text("# gpu   pwr\n# Idx     W\n" + "".join(f"  {n % 2}  {50 + n}\n" for n in range(40)))
    for _ in range(2):  # converted, then as it was kept
        log = opened(path, 0.5)
        assert [board.facts.title for board in log.boards] == ["dmon@0.5#0", "dmon@0.5#1"]
        assert log.assumed_step_s == 0.5
        assert log.boards[1].end_ns == 19 * 500_000_000
        assert any("0.5 s between two are assumed" in note for note in log.notes)


def test_a_conversion_can_be_stopped_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(shutil.copy(resources() / "recordings" / SHIPPED, tmp_path / SHIPPED))
    monkeypatch.setattr(converted, "_BATCH", 100)
    stop, shares = threading.Event(), []

    def progress(share: float) -> None:
        shares.append(share)
        stop.set()

    with pytest.raises(Cancelled):
        open_timelines(path, None, progress, stop)
    assert 0 <= shares[0] <= 1
    assert not list((data_folder() / "timelines").glob("*.new"))


def test_what_was_not_used_for_longest_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converted, "LIMIT", 1)
    boards = []
    for number in range(2):
        path = Path(shutil.copy(resources() / "recordings" / SHIPPED, tmp_path / f"{number}.csv.gz"))
        boards.append(opened(path).boards[0])
    assert not boards[0].path.exists()
    assert boards[1].path.exists()
    assert len(boards[0].trace.readings("power_average_w", 0, 1 << 62)[0]) > 100, "and stays readable where it is open"


def test_without_a_data_folder_it_is_converted_for_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WATTRIDGE_DATA", str(tmp_path / "file"))
    assert len(opened(resources() / "recordings" / SHIPPED).boards[0].trace) > 100


AS_ON_WINDOWS = """
import os, sys, threading, types
from pathlib import Path
import numpy, importlib.metadata, tempfile, subprocess, gzip, zoneinfo
sys.modules["fcntl"] = None  # an import of it fails, as there
sys.modules["msvcrt"] = types.SimpleNamespace(locking=lambda *_: None, LK_LOCK=1, LK_NBLCK=2)
for name in ("pread", "pwrite", "O_CLOEXEC"):
    delattr(os, name)
sys.platform = "win32"
from app.sensors.recorded.columns import append_mark
from app.sensors.recorded.header import Mark
from app.sensors.timeline.converted import open_timelines
from app.sensors.timeline.stored import open_stored
opened = open_timelines(Path(sys.argv[1]), None, lambda _: None, threading.Event())
append_mark(opened.boards[0].path, Mark(5, "here"))
print(len(open_stored(opened.boards[0].path).marks), opened.boards[0].facts.info.name)
"""


def test_a_recording_is_converted_and_marked_where_the_system_has_no_fcntl(tmp_path: Path) -> None:
    path = shutil.copy(resources() / "recordings" / SHIPPED, tmp_path)
    program = [sys.executable, "-c", AS_ON_WINDOWS, str(path)]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout) == (0, "1 NVIDIA H200\n"), ran.stderr
