"""The live monitor over a GPU whose values the test decides."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fixtures.fakes import FakeGpu, filled_trace, working
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QContextMenuEvent, QGuiApplication, QImage, QMouseEvent, QWheelEvent
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine.models.fit.frequency import fit_frequency_model
from app.engine.models.fit.points import Points
from app.engine.models.fit.voltage import VoltageEstimate
from app.engine.session.events import FitFinished
from app.sensors.channel import Reading
from app.sensors.clock import VirtualClock
from app.sensors.event_reasons import EventReason
from app.sensors.trace.trace import Trace
from app.views.shared.watched_boards import beat
from app.views.watch.lanes import ESTIMATED_VOLTAGE, POWER
from app.views.watch.monitor_panel import MonitorPanel
from app.views.watch.readout import CURSOR, MAXIMUM, MEAN, MINIMUM, NOW, Readout

SECOND = 1_000_000_000


class Bench:
    """A monitor with a minute of readings on a clock that stands still."""

    def __init__(self, qtbot: QtBot, seconds: float = 60.0) -> None:
        self.gpu = FakeGpu(working, clock=VirtualClock(start_ns=10_000 * SECOND))
        self.trace: Trace = filled_trace(self.gpu, seconds)
        self.readout = Readout(self.gpu.channels)
        self.panel = MonitorPanel(self.gpu, self.trace, self.readout)
        self.view = self.panel.view
        qtbot.addWidget(self.panel)
        qtbot.addWidget(self.readout)
        self.panel.resize(900, 700)
        self.panel.show()
        self.readout.show()
        for _ in range(3):
            self.new_reading()
        self.view.repaint()

    def new_reading(self) -> None:
        self.gpu.clock.wait(0.02)
        self.trace.append(self.gpu.read())
        beat().strike()

    def mouse(self, kind: QEvent.Type, x: int, buttons: Qt.MouseButton = Qt.MouseButton.NoButton) -> None:
        place = QPointF(x, 200)
        pressed = buttons if kind != QEvent.Type.MouseMove else Qt.MouseButton.NoButton
        held = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseButtonRelease else buttons
        event = QMouseEvent(kind, place, self.view.mapToGlobal(place), pressed, held, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(self.view, event)

    def drag(self, x0: int, x1: int, button: Qt.MouseButton = Qt.MouseButton.LeftButton) -> None:
        self.mouse(QEvent.Type.MouseButtonPress, x0, button)
        self.mouse(QEvent.Type.MouseMove, (x0 + x1) // 2, button)
        self.mouse(QEvent.Type.MouseMove, x1, button)
        self.mouse(QEvent.Type.MouseButtonRelease, x1, button)

    def wheel(self, x: int, notches: int) -> None:
        place = QPointF(x, 200)
        event = QWheelEvent(
            place,
            self.view.mapToGlobal(place),
            QPoint(),
            QPoint(0, 120 * notches),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(self.view, event)


@pytest.fixture
def bench(qtbot: QtBot) -> Iterator[Bench]:
    made = Bench(qtbot)
    yield made
    made.panel.shutdown()


def row(readout: Readout, name: str) -> int:
    return [channel.name for channel in readout.readings.channels].index(name)


def test_every_lane_draws_what_the_trace_holds(bench: Bench) -> None:
    snapshot = bench.view.snapshot
    assert snapshot is not None
    power = snapshot.curves[POWER]
    assert power.extent() == pytest.approx((33.4, 251.0), abs=3.0)
    assert power.time_s[0] >= 0
    assert power.time_s[-1] == pytest.approx(60.0, abs=0.2)
    assert {span.reason for span in snapshot.spans} == {EventReason.IDLE, EventReason.POWER_CAP}


def test_a_channel_that_is_not_told_is_never_drawn(bench: Bench) -> None:
    assert bench.view.snapshot is not None
    assert "core_voltage_mv" not in bench.view.snapshot.curves
    voltage = bench.readout.readings.text(row(bench.readout, "core_voltage_mv"), NOW)
    assert voltage == "not available: nvidia-smi -q -d VOLTAGE answers N/A on this board"


def test_failed_readings_are_a_gap_and_a_dash(bench: Bench) -> None:
    for _ in range(50):
        bench.gpu.clock.wait(0.02)
        bench.trace.append(Reading(bench.gpu.clock.now_ns(), (math.nan,) * len(bench.gpu.channels)))
    beat().strike()
    bench.view.redraw()
    assert bench.view.snapshot is not None
    assert math.isnan(bench.view.snapshot.curves[POWER].value[-1])
    bench.readout.show_now(bench.trace.at(bench.trace.last_ns))
    assert bench.readout.readings.text(row(bench.readout, "power_instant_w"), NOW) == "–"


def test_nothing_is_drawn_when_nothing_is_new_or_nobody_looks(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(bench.trace, "at", lambda instant: asked.append(instant) or {})
    bench.panel.tick()
    assert asked == [], "no new reading"
    bench.panel.hide()
    bench.new_reading()
    assert asked == [], "not visible"
    bench.panel.show()
    beat().strike()
    assert len(asked) == 1


def test_the_mouse_reads_every_channel_at_its_instant(bench: Bench) -> None:
    snapshot = bench.view.snapshot
    assert snapshot is not None
    middle = bench.view.width() // 2
    bench.mouse(QEvent.Type.MouseMove, middle)
    shown = bench.readout.readings.text(row(bench.readout, "graphics_clock_mhz"), CURSOR)
    instant = bench.view.instant_at(middle)
    assert shown == f"{bench.trace.at(instant)['graphics_clock_mhz']:.0f} MHz"
    QApplication.sendEvent(bench.view, QEvent(QEvent.Type.Leave))
    assert bench.readout.readings.text(row(bench.readout, "graphics_clock_mhz"), CURSOR) == ""


def test_a_marked_span_tells_mean_power_and_energy(bench: Bench, qtbot: QtBot) -> None:
    bench.drag(200, 500)
    span = bench.view.span
    assert span is not None
    bench.panel.tick()
    qtbot.waitUntil(lambda: bench.panel.summary.startswith("Span"), timeout=3000)
    mean = bench.trace.statistics("power_instant_w", *span).mean
    energy = bench.trace.energy_j(*span)
    assert f"mean {mean:.1f} W" in bench.panel.summary
    assert f"energy {energy:.1f} J" in bench.panel.summary
    assert energy == pytest.approx(mean * (span[1] - span[0]) / 1e9, rel=0.01)
    assert bench.readout.readings.text(row(bench.readout, "power_instant_w"), MEAN) == f"{mean:.1f}"
    assert bench.readout.caption.startswith("Marked span: ")
    bench.drag(300, 301)
    assert bench.view.span is None, "a click forgets it"
    assert "Span" not in bench.panel.summary


def test_a_span_that_was_read_in_part_says_so(bench: Bench, qtbot: QtBot) -> None:
    bench.gpu.clock.wait(30.0)
    for _ in range(500):
        bench.gpu.clock.wait(0.02)
        bench.trace.append(bench.gpu.read())
    beat().strike()
    end = bench.trace.last_ns
    bench.view.set_span((end - 50 * SECOND, end))
    bench.panel.tick()
    qtbot.waitUntil(lambda: bench.panel.summary.startswith("Span"), timeout=3000)
    assert "Span 50.0 s, 20.0 s of it read" in bench.panel.summary
    bench.view.set_length(600.0)
    bench.drag(80, 899)
    assert bench.view.span == (bench.trace.first_ns, end), "a mark does not reach beyond what was read"


def test_hold_zoom_move_and_back_to_live(bench: Bench) -> None:
    window = bench.view.window_of_time
    bench.view.hold(True)
    before = bench.view.snapshot
    for _ in range(30):
        bench.new_reading()
    assert bench.view.snapshot is not None
    assert before is not None
    assert bench.view.snapshot.end_ns == before.end_ns or not window.live
    bench.wheel(bench.view.width() // 2, +3)
    assert window.length_s == pytest.approx(60 * 0.8**3)
    end = bench.view.snapshot.end_ns
    bench.drag(300, 500, Qt.MouseButton.RightButton)
    assert bench.view.snapshot.end_ns < end, "dragged into the past"
    bench.mouse(QEvent.Type.MouseButtonDblClick, 300, Qt.MouseButton.LeftButton)
    assert window.live
    assert bench.view.snapshot.end_ns >= bench.trace.last_ns


def test_the_arrows_move_through_time_and_end_is_live(bench: Bench, qtbot: QtBot) -> None:
    view = bench.view
    view.set_length(10.0)
    assert view.focusPolicy() & Qt.FocusPolicy.TabFocus
    assert view.snapshot is not None
    end = view.snapshot.end_ns
    qtbot.keyClick(view, Qt.Key.Key_Left)
    qtbot.keyClick(view, Qt.Key.Key_Left)
    qtbot.keyClick(view, Qt.Key.Key_Right)
    assert not view.window_of_time.live
    assert (end - view.snapshot.end_ns) / 1e9 == pytest.approx(1.0, abs=0.2)
    qtbot.keyClick(view, Qt.Key.Key_End)
    assert view.window_of_time.live


def test_the_csv_holds_the_marked_span_with_units_and_says_simulated(
    bench: Bench, qtbot: QtBot, tmp_path: Path
) -> None:
    bench.drag(200, 500)
    assert bench.view.span is not None
    start, end = bench.view.span
    path = tmp_path / "readings.csv"
    with qtbot.waitSignal(bench.panel.saved, timeout=5000):
        bench.panel.write_readings(path)
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == pytest.approx((end - start) / SECOND * 50, abs=2)
    assert {"time_s", "power_instant_w", "graphics_clock_mhz", "temperature_c"} <= rows[0].keys()
    assert "core_voltage_mv" not in rows[0]
    assert all("simulated" in each["gpu"] for each in rows)
    path = tmp_path / "readings.json"
    with qtbot.waitSignal(bench.panel.saved, timeout=5000):
        bench.panel.write_readings(path)
    document = json.loads(path.read_text())
    assert "simulated" in document["gpu"]
    assert document["units"]["power_instant_w"] == "W"
    readings = document["readings"]
    told = [None if each["power_instant_w"] == "" else float(each["power_instant_w"]) for each in rows]
    assert readings["power_instant_w"] == told
    assert len(readings["time_s"]) == len(rows)
    assert list(tmp_path.glob("*.part")) == []


def test_a_file_that_cannot_be_written_is_told_in_one_line(bench: Bench, qtbot: QtBot, tmp_path: Path) -> None:
    for write, name in ((bench.panel.write_readings, "a.csv"), (bench.panel.write_picture, "a.png")):
        with qtbot.waitSignal(bench.panel.failed, timeout=5000) as told:
            write(tmp_path / "no such folder" / name)
        what, remedy = told.args
        assert "no such folder" in what
        assert remedy


def test_pictures_show_the_traces_and_say_simulated(bench: Bench, qtbot: QtBot, tmp_path: Path) -> None:
    png, svg = tmp_path / "traces.png", tmp_path / "traces.svg"
    for path in (png, svg):
        with qtbot.waitSignal(bench.panel.saved, timeout=5000):
            bench.panel.write_picture(path)
    image = QImage(str(png))
    assert image.width() == 2 * bench.view.width()
    colours = {image.pixel(x, y) for x in range(0, image.width(), 3) for y in range(0, image.height(), 3)}
    assert len(colours) > 10, "not an empty sheet"
    assert QSvgRenderer(str(svg)).isValid()
    text = svg.read_text()
    assert "(simulated)" in text
    assert "Graphics clock" in text
    assert "power cap" in text


def finished(gpu: str = "Fake A100", *, simulated: bool = True, ridge_mhz: float = 950.0) -> FitFinished:
    """A fit of twelve clocks of a board that has a ridge there."""
    clock = np.linspace(210.0, 1410.0, 12)
    power = 50 + 0.09 * clock * (1 + 9e-4 * np.maximum(0, clock - ridge_mhz)) ** 2
    fit = fit_frequency_model(Points(clock, power, gpu=gpu, simulated=simulated))
    assert fit.identifiable
    return FitFinished(fit, "sweep of 12 clocks, full_load, simulated")


def test_after_a_fit_of_this_board_its_voltage_is_estimated_as_a_ratio_with_its_source(bench: Bench) -> None:
    event = finished()
    bench.panel.show_fit(event)
    assert bench.view.snapshot is not None
    low, high = bench.view.snapshot.curves[ESTIMATED_VOLTAGE.name].extent()
    assert low == pytest.approx(1.0, abs=0.02), "below the ridge the ratio is one"
    expected = float(event.fit.relative_voltage(np.array([1410.0]))[0])
    assert high == pytest.approx(expected, rel=1e-3)
    lane = bench.view.lanes[3]
    assert (lane.lane.unit, [line.label for line in lane.lines]) == ("V/V₀", ["estimated"])
    assert "sweep of 12 clocks" in lane.source
    for _ in range(3):
        bench.new_reading()
    at = row(bench.readout, ESTIMATED_VOLTAGE.name)
    assert bench.readout.readings.text(at, 0) == "Core voltage, estimated"
    now = bench.readout.readings.text(at, NOW)
    assert now.endswith(" V/V₀")
    clock = bench.trace.at(bench.trace.last_ns)["graphics_clock_mhz"]
    ratio = float(event.fit.relative_voltage(np.array([clock]))[0])
    assert float(now.removesuffix(" V/V₀")) == pytest.approx(ratio, abs=6e-4)
    tip = bench.readout.readings.data(bench.readout.readings.index(at, 0), Qt.ItemDataRole.ToolTipRole)
    assert tip == "estimated from a sweep of 12 clocks, full_load, simulated"
    row(bench.readout, "core_voltage_mv")  # and the sensor's own row still says why there is none
    bench.panel.show_fit(finished(ridge_mhz=800.0))
    assert [c.name for c in bench.readout.readings.channels].count(ESTIMATED_VOLTAGE.name) == 1


@pytest.mark.parametrize(
    "other",
    [finished(gpu="Another board"), finished(simulated=False), finished(ridge_mhz=5000.0)],
    ids=["another board's", "the real board's of that name", "without a ridge"],
)
def test_a_fit_that_says_nothing_of_this_boards_voltage_shows_none(bench: Bench, other: FitFinished) -> None:
    bench.panel.show_fit(other)
    assert bench.view.lanes[3].note.startswith("not available")
    assert ESTIMATED_VOLTAGE.name not in [c.name for c in bench.readout.readings.channels]


def test_above_the_fitted_clocks_no_voltage_is_estimated(bench: Bench) -> None:
    clock = np.linspace(210.0, 1200.0, 12)
    power = 50 + 0.09 * clock * (1 + 9e-4 * np.maximum(0, clock - 700)) ** 2
    fit = fit_frequency_model(Points(clock, power, gpu="Fake A100", simulated=True))
    estimate = VoltageEstimate.of(fit, "sweep", bench.gpu.info)
    assert estimate is not None
    ratio = estimate.ratio([300.0, 1200.0, 1410.0, math.nan])
    assert ratio[0] == pytest.approx(1.0, abs=0.01)
    assert ratio[1] > 1.2
    assert np.isnan(ratio[2:]).all()


def test_copying_takes_the_chosen_rows_as_text(bench: Bench, qtbot: QtBot) -> None:
    bench.readout.show_now(bench.trace.at(bench.trace.last_ns))
    table = bench.readout.table
    table.selectRow(row(bench.readout, "power_limit_w"))
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    head, line = QApplication.clipboard().text().splitlines()
    assert head == "Channel\tNow\tMin\tMean\tMax\tAt mouse"
    assert line.startswith("Power limit\t250.0 W")
    table.clearSelection()
    bench.readout.copy.click()
    assert len(QApplication.clipboard().text().splitlines()) == 1 + len(bench.gpu.channels), "none chosen: all"


def shown(bench: Bench, name: str) -> list[str]:
    return [bench.readout.readings.text(row(bench.readout, name), column) for column in (MINIMUM, MEAN, MAXIMUM)]


def expected(bench: Bench, name: str, start: int) -> list[str]:
    found = bench.trace.statistics(name, start, bench.trace.last_ns)
    return [f"{value:.1f}" for value in (found.minimum, found.mean, found.maximum)]


def test_minimum_mean_and_maximum_are_of_all_that_is_kept_until_they_are_reset(bench: Bench, qtbot: QtBot) -> None:
    name = "power_instant_w"

    def settled(start: int) -> bool:
        bench.panel.tick()
        return shown(bench, name) == expected(bench, name, start)

    bench.gpu.clock.wait(0.9)
    bench.new_reading()
    bench.panel.reset_statistics()
    reset_ns = bench.trace.last_ns
    qtbot.waitUntil(lambda: settled(reset_ns), timeout=3000)
    assert shown(bench, name)[0] == shown(bench, name)[2], "one reading since the reset"
    for _ in range(700):
        bench.gpu.clock.wait(0.02)
        bench.trace.append(bench.gpu.read())
    qtbot.waitUntil(lambda: settled(reset_ns), timeout=3000)
    assert shown(bench, name) != expected(bench, name, bench.trace.first_ns)
    assert bench.readout.caption.startswith("Since the reset: 14.0 s · ")
    assert shown(bench, "performance_state") == ["", "", ""], "a state has no mean"


def test_a_mark_is_summarised_in_place_of_the_time_since_the_reset_and_back(bench: Bench, qtbot: QtBot) -> None:
    bench.drag(200, 500)
    bench.panel.tick()
    qtbot.waitUntil(lambda: bench.readout.caption.startswith("Marked span"), timeout=3000)
    bench.view.set_span(None)
    bench.panel.tick()
    qtbot.waitUntil(lambda: bench.readout.caption.startswith("All that is kept"), timeout=3000)
    bench.readout.reset.click()
    bench.panel.tick()
    qtbot.waitUntil(lambda: bench.readout.caption.startswith("Since the reset"), timeout=3000)


def test_the_readout_follows_the_board_that_is_shown(bench: Bench, qtbot: QtBot) -> None:
    bench.panel.tick()
    qtbot.waitUntil(lambda: bench.readout.caption != "", timeout=3000)
    other = FakeGpu(working, missing={"temperature_c": "no sensor"})
    bench.readout.show_channels(other.channels)
    assert bench.readout.caption == ""
    assert bench.readout.readings.text(row(bench.readout, "temperature_c"), NOW) == "not available: no sensor"
    assert bench.readout.readings.text(row(bench.readout, "power_instant_w"), MEAN) == ""
    for name in ("temperature_c", "core_voltage_mv"):
        spans = bench.readout.table.columnSpan(row(bench.readout, name), NOW)
        assert (spans > 1) == (name == "temperature_c")


def menu_texts(bench: Bench) -> list[str]:
    menu = bench.panel.menu.opened
    return [action.text().replace("&", "") for action in menu.actions() if action.text()] if menu else []


def test_a_right_click_opens_the_menu_of_the_traces_and_a_right_drag_does_not(bench: Bench) -> None:
    bench.panel.addAction(QAction("&Hold", bench.panel))  # as the window gives it
    bench.drag(300, 400, Qt.MouseButton.RightButton)
    assert bench.panel.menu.opened is None
    bench.view.hold(False)
    bench.drag(300, 301, Qt.MouseButton.RightButton)
    assert menu_texts(bench)[-4:] == ["Copy picture", "Export picture…", "Export readings…", "Hold"]
    assert bench.view.window_of_time.live, "a click moves nothing"
    assert bench.view.span is None


def test_the_menu_key_opens_the_menu_of_the_traces_which_copies_them(qtbot: QtBot, bench: Bench) -> None:
    QApplication.sendEvent(bench.view, QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(5, 5), QPoint(5, 5)))
    menu = bench.panel.menu.opened
    assert menu is not None
    with qtbot.waitSignal(bench.panel.menu.said):
        next(action for action in menu.actions() if action.text() == "&Copy picture").trigger()
    copied = QGuiApplication.clipboard().image()
    assert copied.width() == 2 * bench.view.width()
    assert len({copied.pixelColor(x, 300).name() for x in range(0, copied.width(), 7)}) > 3, "something is drawn on it"
    menu.close()
    qtbot.waitUntil(lambda: bench.panel.menu.opened is None)
