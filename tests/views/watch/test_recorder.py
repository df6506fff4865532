"""Recording what is watched: begun and ended by a button, sized and timed, ended by a full disk, whole at the end."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fixtures.fakes import FakeGpu, working
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.base.paths import data_folder
from app.sensors.recorded.recording import RecordingWriter, read_recording
from app.views.shared.recorder import usual_name
from app.views.shared.watched_boards import WatchedBoard
from app.views.watch.monitor_panel import MonitorPanel, RecordButton

Open = Callable[..., Any]
LIMIT_MS = 60_000  # of every wait: a busy machine takes its time


@pytest.fixture
def said() -> list[str]:
    """What the sampler reported."""
    return []


@pytest.fixture
def board(qtbot: QtBot, said: list[str]) -> Iterator[WatchedBoard]:
    made = WatchedBoard("test", FakeGpu(working), on_event=lambda event: said.append(event.message))
    made.read_closely()
    yield made
    made.close()


@pytest.fixture
def button(board: WatchedBoard, qtbot: QtBot) -> Iterator[RecordButton]:
    panel = MonitorPanel(board.gpu, board.trace, recorder=board.recorder)
    qtbot.addWidget(panel)
    panel.show()
    assert panel.record is not None
    yield panel.record
    panel.shutdown()


def wait_for_readings(qtbot: QtBot, board: WatchedBoard, count: int) -> None:
    """Until a recording that has begun holds so many of them, whatever time a busy machine takes."""
    qtbot.waitUntil(lambda: board.recorder.recording, timeout=LIMIT_MS)
    held = board.trace.appended
    qtbot.waitUntil(lambda: board.trace.appended > held + count, timeout=LIMIT_MS)


def exports() -> set[Path]:
    return set((data_folder() / "exports").glob("fake-a100-simulated-*"))


def test_the_button_records_to_the_data_folder_until_it_is_pressed_again(
    board: WatchedBoard, button: RecordButton, qtbot: QtBot
) -> None:
    before = exports()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: board.recorder.recording, timeout=LIMIT_MS)
    width = button.width()
    assert button.accessibleName() == "Stop recording"
    (part,) = exports() - before
    assert part.name.endswith(".wrec.part")
    qtbot.waitUntil(lambda: "kB" in button.text() or "bytes" in button.text(), timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: board.recorder.size > 500 and board.recorder.seconds > 0.5, timeout=LIMIT_MS)
    wait_for_readings(qtbot, board, 20)
    with qtbot.waitSignal(board.recorder.saved, timeout=LIMIT_MS) as saved:
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    path = Path(saved.args[0])
    assert exports() - before == {path}, "no unfinished file stays"
    recording = read_recording(path)
    assert len(recording.time_ns) > 20
    assert recording.info.name == "Fake A100"
    qtbot.waitUntil(lambda: button.isEnabled() and "Record" in button.text(), timeout=LIMIT_MS)
    assert button.width() == width, "its neighbours stay in place"


def test_a_second_recording_is_another_file(board: WatchedBoard, qtbot: QtBot, tmp_path: Path) -> None:
    for name in ("a.csv.gz", "b.csv.gz"):
        board.recorder.start(tmp_path / name)
        wait_for_readings(qtbot, board, 3)
        with qtbot.waitSignal(board.recorder.saved, timeout=LIMIT_MS):
            board.recorder.stop()
    first, second = (read_recording(tmp_path / name) for name in ("a.csv.gz", "b.csv.gz"))
    assert len(first.time_ns) > 2
    assert len(second.time_ns) > 2


def test_a_recording_continues_while_another_board_is_shown(
    board: WatchedBoard, button: RecordButton, qtbot: QtBot, tmp_path: Path
) -> None:
    other = WatchedBoard("test", FakeGpu(working))
    board.recorder.start(tmp_path / "r.csv.gz")
    qtbot.waitUntil(lambda: board.recorder.recording and not board.recorder.busy, timeout=LIMIT_MS)
    button.show_board(other.recorder, other.gpu.info)
    assert button.accessibleName() == "Record"
    assert board.recorder.recording
    button.show_board(board.recorder, board.gpu.info)
    assert button.accessibleName() == "Stop recording"
    other.close()


def test_a_file_that_is_there_is_never_overwritten(board: WatchedBoard, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv.gz"
    path.write_text("of another day")
    with qtbot.waitSignal(board.recorder.failed, timeout=LIMIT_MS) as failed:
        board.recorder.start(path)
    assert "exists already" in failed.args[0]
    assert path.read_text() == "of another day"
    assert not board.recorder.recording
    assert not board.recorder.busy


def test_a_full_disk_ends_the_recording_with_one_line_and_the_watching_goes_on(
    board: WatchedBoard,
    button: RecordButton,
    said: list[str],
    qtbot: QtBot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board.recorder.start(tmp_path / "r.csv.gz")
    qtbot.waitUntil(lambda: board.recorder.recording, timeout=LIMIT_MS)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "r.csv.gz.part"))

    monkeypatch.setattr(RecordingWriter, "write", full)
    qtbot.waitUntil(lambda: not board.recorder.recording and not board.recorder.busy, timeout=LIMIT_MS)
    assert len(said) == 1
    assert "No space left on device" in said[0]
    assert "Record" in button.text()
    held = len(board.trace)
    qtbot.waitUntil(lambda: len(board.trace) > held, timeout=LIMIT_MS)


def test_a_recording_that_is_full_is_finished_and_whole(
    board: WatchedBoard, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.recorder.start(tmp_path / "r.csv.gz")
    wait_for_readings(qtbot, board, 3)

    def full(*_: object) -> None:
        raise OSError(errno.EFBIG, "the recording is full")

    with qtbot.waitSignal(board.recorder.saved, timeout=LIMIT_MS) as saved:
        monkeypatch.setattr(RecordingWriter, "write", full)
    assert len(read_recording(Path(saved.args[0])).time_ns) > 2
    assert not board.recorder.recording


def test_closing_the_board_finishes_the_recording(qtbot: QtBot, tmp_path: Path) -> None:
    board = WatchedBoard("test", FakeGpu(working))
    board.read_closely()
    board.recorder.start(tmp_path / "r.csv.gz")
    wait_for_readings(qtbot, board, 3)
    board.close()
    assert len(read_recording(tmp_path / "r.csv.gz").time_ns) > 2


def test_a_recording_that_has_only_just_begun_is_finished_too(qtbot: QtBot, tmp_path: Path) -> None:
    board = WatchedBoard("test", FakeGpu(working))
    board.read_closely()
    board.recorder.start(tmp_path / "r.csv.gz")
    board.close()
    assert [path.name for path in tmp_path.glob("r.csv*")] == ["r.csv.gz"]


def test_the_usual_name_says_which_board_and_when() -> None:
    info = FakeGpu(working, source="nvml", name="NVIDIA RTX A4000 / 16 GB").info
    assert usual_name(info, datetime(2026, 11, 22, 14, 3, 21)) == "nvidia-rtx-a4000-16-gb-2026-11-22-140321.wrec"


def test_the_action_records_too(qtbot: QtBot, open_program: Open) -> None:
    window = open_program(gpu=FakeGpu(working)).window
    action = window.actions_by_name["record"]
    action.trigger()
    qtbot.waitUntil(lambda: window.board.recorder.recording, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: action.isChecked() and action.isEnabled(), timeout=LIMIT_MS)
    with qtbot.waitSignal(window.board.recorder.saved, timeout=LIMIT_MS) as saved:
        action.trigger()
    assert Path(saved.args[0]).is_file()
    qtbot.waitUntil(lambda: not action.isChecked(), timeout=LIMIT_MS)
    assert "Written: " in window.banner.text
