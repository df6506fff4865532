"""The window of a recording or a log: all of it, a window that is dragged, marks, events, two spans, growth."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures.scripted_gpu import ScriptedGpu
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.base.paths import resources
from app.sensors.recorded.columns import ColumnsWriter
from app.sensors.recorded.recording import new_recording, read_recording
from app.sensors.timeline.stored import open_stored
from app.views.library.log_window import LogWindow
from app.views.watch.timeline import Overview, TimelineLanes, elapsed_text

LIMIT_MS = 60_000
S = 1_000_000_000


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[LogWindow]:
    made = LogWindow()
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    yield made
    made.shutdown()


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    return Path(shutil.copy(resources() / "recordings" / "h200-gemm.csv.gz", tmp_path / "h200.csv.gz"))


def write_log(path: Path) -> Path:
    """20 s at 100 W, then 20 s at 200 W, ten readings a second."""
    path.write_text("timestamp,power\n" + "".join(f"{1.7e9 + n / 10:.1f},{100 + n // 200 * 100}\n" for n in range(400)))
    return path


def said(window: LogWindow, words: str) -> bool:
    return words in window.words.toPlainText()


def opened(window: LogWindow, qtbot: QtBot, path: Path) -> TimelineLanes:
    window.open(path)
    qtbot.waitUntil(lambda: window.timeline is not None, timeout=LIMIT_MS)
    assert window.timeline is not None
    qtbot.waitUntil(lambda: said(window, "95 %"), timeout=LIMIT_MS)
    return window.timeline.lanes


def drag(widget: Overview | TimelineLanes, start: int, end: int) -> None:
    y = widget.height() // 2
    QTest.mousePress(widget, Qt.MouseButton.LeftButton, pos=QPoint(start, y))
    QTest.mouseMove(widget, QPoint((start + end) // 2, y))
    QTest.mouseMove(widget, QPoint(end, y))
    QTest.mouseRelease(widget, Qt.MouseButton.LeftButton, pos=QPoint(end, y))
    QApplication.processEvents()


def test_a_recording_is_shown_whole_at_once(window: LogWindow, qtbot: QtBot, shipped: Path) -> None:
    lanes = opened(window, qtbot, shipped)
    whole = read_recording(shipped)
    end = max(int(whole.time_ns[-1]), int(whole.sample_ns[-1]))
    assert lanes.bounds == (0, end)
    assert lanes.snapshot is not None
    assert len(lanes.snapshot.curves) > 5
    assert "NVIDIA H200" in window.words.toPlainText()


def test_the_window_in_the_overview_is_dragged_and_resized_and_never_leaves_the_recording(
    window: LogWindow, qtbot: QtBot, shipped: Path
) -> None:
    lanes = opened(window, qtbot, shipped)
    assert window.timeline is not None
    overview = window.timeline.overview
    width = overview.width()
    right = width - 9
    drag(overview, right, width // 2)
    assert lanes.bounds[0] == 0
    assert lanes.bounds[1] == pytest.approx(lanes.end_ns / 2, rel=0.03)
    length = lanes.bounds[1]
    drag(overview, width // 4, width // 2)
    assert lanes.bounds[1] - lanes.bounds[0] == pytest.approx(length, abs=2)
    assert lanes.bounds[0] == pytest.approx(lanes.end_ns / 4, rel=0.05)
    drag(overview, width // 2, 5 * width)
    assert lanes.bounds[1] == lanes.end_ns
    QTest.mouseDClick(overview, Qt.MouseButton.LeftButton, pos=QPoint(width // 2, 20))
    assert lanes.bounds == (0, lanes.end_ns)
    lanes.zoom(100.0)
    assert lanes.bounds == (0, lanes.end_ns), "there is nothing beside it"


def test_by_keyboard_alone(window: LogWindow, qtbot: QtBot, shipped: Path) -> None:
    lanes = opened(window, qtbot, shipped)
    assert lanes.place_ns == 0
    QTest.keyClick(lanes, Qt.Key.Key_Right)
    assert lanes.place_ns == lanes.end_ns // 20
    QTest.keyClick(lanes, Qt.Key.Key_Plus)
    assert lanes.bounds[1] - lanes.bounds[0] == pytest.approx(lanes.end_ns / 2, rel=0.01)
    QTest.keyClick(lanes, Qt.Key.Key_End)
    assert lanes.place_ns == lanes.bounds[1] == lanes.end_ns
    QTest.keyClick(lanes, Qt.Key.Key_M)
    qtbot.keyClicks(window.mark_field, "the end")
    QTest.keyClick(window.mark_field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: [mark.text for mark in lanes.marks] == ["the end"], timeout=LIMIT_MS)
    assert read_recording(shipped).marks[0].time_ns == lanes.end_ns // 1000 * 1000


def test_marks_and_clock_events_are_visited_one_after_another(window: LogWindow, qtbot: QtBot, shipped: Path) -> None:
    lanes = opened(window, qtbot, shipped)
    for at_s, text in ((5, "five"), (2, "two")):
        lanes.go(at_s * S)
        window.mark_field.setText(text)
        window.set_mark.click()
        qtbot.waitUntil(lambda text=text: text in [mark.text for mark in lanes.marks], timeout=LIMIT_MS)  # type: ignore[misc]
    before_mark, next_mark, before_event, next_event = window.steps
    lanes.go(0)
    next_mark.click()
    assert lanes.place_ns == 2 * S
    next_mark.click()
    assert lanes.place_ns == 5 * S
    next_mark.click()
    assert lanes.place_ns == 5 * S
    assert window.message.text() == "There is no mark after this place."
    before_mark.click()
    assert lanes.place_ns == 2 * S
    assert not window.message.text()
    next_event.click()
    reasons = lanes._trace.event_spans(0, lanes.end_ns, 0)
    assert lanes.place_ns == min(span.start_ns for span in reasons)
    before_event.click()
    assert window.message.text() == "There is no clock event before this place."


def test_two_spans_stand_side_by_side_with_their_difference(window: LogWindow, qtbot: QtBot, shipped: Path) -> None:
    lanes = opened(window, qtbot, shipped)
    lanes.set_span((1 * S, 2 * S))
    window.active["B"].setChecked(True)
    lanes.set_span((9 * S, 11 * S))
    qtbot.waitUntil(lambda: said(window, "B − A"), timeout=LIMIT_MS)
    assert said(window, "the mean powers of A and B differ")
    assert lanes.spans == {"A": (1 * S, 2 * S), "B": (9 * S, 11 * S)}
    assert window.span_s == (9.0, 11.0)
    window.active["A"].setChecked(True)
    assert window.span_s == (1.0, 2.0)
    window.end.setValue(10.0)
    window.end.editingFinished.emit()
    qtbot.waitUntil(lambda: said(window, "the spans overlap"), timeout=LIMIT_MS)


def test_the_span_is_dragged_and_a_click_looks_at_a_place(window: LogWindow, qtbot: QtBot, tmp_path: Path) -> None:
    lanes = opened(window, qtbot, write_log(tmp_path / "power.csv"))
    assert window.span_s == (0.0, 39.9)
    lanes.set_span((5 * S, 15 * S))
    qtbot.waitUntil(lambda: said(window, "5.000–15.000"), timeout=LIMIT_MS)
    assert said(window, "1000")
    assert said(window, "a log does not state what its power averages over"), "so no interval is known"
    QTest.mouseClick(lanes, Qt.MouseButton.LeftButton, pos=QPoint(lanes.width() // 2, 60))
    assert lanes.span == (5 * S, 15 * S)
    assert lanes.place_ns == pytest.approx(20 * S, rel=0.05)


def test_time_is_relative_or_absolute_where_that_is_known(window: LogWindow, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "power.csv"
    rows = "".join(f"2026/11/28 23:59:{50 + n // 10:02d}.{n % 10}00,{100 + n}\n" for n in range(90))
    path.write_text("timestamp,power\n" + rows)
    lanes = opened(window, qtbot, path)
    lanes.go(4_500_000_000)
    assert window.place.text() == "4.500 s"
    window.axis.setCurrentIndex(1)
    assert window.place.text() == "23:59:54.500"
    assert lanes.time_text((4.5e9 - lanes.origin_ns) / 1e9, 1.0) == "23:59:54"


def test_a_recording_without_a_date_offers_no_time_of_day(window: LogWindow, qtbot: QtBot, shipped: Path) -> None:
    opened(window, qtbot, shipped)
    assert not window.axis.isEnabled()
    assert "does not state" in window.axis.toolTip()


@pytest.mark.parametrize(
    ("seconds", "decimals", "text"),
    [(0, 0, "0 s"), (59.96, 1, "1:00.0"), (61.5, 1, "1:01.5"), (3600, 0, "1:00:00"), (7322.25, 2, "2:02:02.25")],
)
def test_times_are_written_as_one_reads_them(seconds: float, decimals: int, text: str) -> None:
    assert elapsed_text(seconds, decimals) == text


def test_a_log_without_times_shows_the_step_that_is_assumed_and_takes_another(
    window: LogWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "dmon.txt"
    path.write_text("# gpu   pwr\n# Idx     W\n" + "".join(f"  {n % 2}  {50 + n}\n" for n in range(40)))
    opened(window, qtbot, path)
    assert (window.boards.count(), window.step.value(), window.span_s[1]) == (2, 1.0, 19.0)
    asked: list[str] = []
    window.watch_asked.connect(asked.append)
    window.boards.setCurrentIndex(1)
    window.watch.click()
    assert asked == [f"recorded:{path}#1@1"]
    window.step.setValue(0.5)
    window.step.editingFinished.emit()
    qtbot.waitUntil(lambda: window.span_s[1] == 9.5, timeout=LIMIT_MS)


def test_what_is_no_log_is_one_line_with_the_remedy(window: LogWindow, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear all,\nnothing was measured.\n")
    window.open(path)
    qtbot.waitUntil(lambda: "no log of power" in window.message.text(), timeout=LIMIT_MS)
    assert "nvidia-smi" in window.message.text()
    assert not window.progress.isVisible()
    assert not window.watch.isEnabled()


def test_a_file_that_is_being_recorded_is_followed_and_takes_marks(
    window: LogWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    gpu = ScriptedGpu(lambda read: 100.0 + read % 3)
    writer = new_recording(tmp_path / "r.wrec", gpu)
    assert isinstance(writer, ColumnsWriter)

    def go_on(rows: int) -> None:
        for _ in range(rows):
            writer.write(gpu.read())
            gpu.clock.wait(0.02)

    go_on(300)
    part = tmp_path / "r.wrec.part"
    lanes = opened(window, qtbot, part)
    before = lanes.end_ns
    lanes.go(S)
    lanes.set_span((S, 2 * S))
    go_on(300)
    qtbot.waitUntil(lambda: lanes.end_ns > before + 5 * S, timeout=LIMIT_MS)
    assert lanes.bounds == (0, lanes.end_ns)
    assert lanes.span == (S, 2 * S)
    writer.close()
    qtbot.waitUntil(lambda: window.named.text() == "r.wrec", timeout=LIMIT_MS)
    assert lanes.span == (S, 2 * S)
    second = LogWindow()
    qtbot.addWidget(second)
    second.show()
    opened(second, qtbot, tmp_path / "r.wrec").go(3 * S)
    second.mark_field.setText("here")
    second.set_mark.click()
    qtbot.waitUntil(lambda: bool(open_stored(tmp_path / "r.wrec").marks), timeout=LIMIT_MS)
    second.shutdown()


@pytest.mark.parametrize("name", ["out.csv", "out.json", "out.wrec"])
def test_it_is_saved_in_other_forms(window: LogWindow, qtbot: QtBot, shipped: Path, tmp_path: Path, name: str) -> None:
    lanes = opened(window, qtbot, shipped)
    lanes.set_span((2 * S, 3 * S))
    window.save_as(tmp_path / name)
    qtbot.waitUntil(lambda: "Written" in window.message.text(), timeout=LIMIT_MS)
    size: Callable[[], int] = {
        "out.csv": lambda: (tmp_path / name).read_text().count("\n"),
        "out.json": lambda: len(json.loads((tmp_path / name).read_text())["readings"]["time_s"]),
        "out.wrec": lambda: len(read_recording(tmp_path / name).time_ns),
    }[name]
    assert size() > 40
    window.save_as(tmp_path / "nowhere" / name)
    qtbot.waitUntil(lambda: "cannot be written" in window.message.text(), timeout=LIMIT_MS)


def test_reading_is_cancelled_and_the_file_opens_again(window: LogWindow, qtbot: QtBot, shipped: Path) -> None:
    window.open(shipped)
    assert window.cancel.isVisible()
    window.cancel.click()
    assert "cancelled" in window.message.text()
    assert not window.progress.isVisible()
    opened(window, qtbot, shipped)


def test_a_tiny_window_paints(window: LogWindow, qtbot: QtBot, shipped: Path) -> None:
    lanes = opened(window, qtbot, shipped)
    lanes.resize(60, 60)
    lanes.repaint()
    window.resize(window.minimumSizeHint())
    window.repaint()
    assert lanes.bounds == (0, lanes.end_ns)
