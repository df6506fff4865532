"""Wherever the window shows what a board does now, it shows the same reading of the same instant."""

from __future__ import annotations

import time
from collections.abc import Callable

from fixtures.lab import ready
from pytestqt.qtbot import QtBot

from app.sensors.select import open_gpu
from app.views.shared.watched_boards import beat, shown_reading
from app.views.shell.app import Program
from app.views.watch.board_row import BoardRow
from app.views.watch.readout import NOW, Readout

Open = Callable[..., Program]
POWER, CLOCK = "power_samples_w", "graphics_clock_mhz"


def test_at_every_beat_all_panels_show_one_reading_of_a_recording_at_ten_times_its_speed(
    qtbot: QtBot, open_program: Open
) -> None:
    window = ready(qtbot, open_program(open_gpu("recorded:h200-gemm", speed=10.0), speed=10.0))
    window.workspaces.show_workspace("watch")
    window.show_strip(True)
    qtbot.waitUntil(lambda: bool(window.findChildren(BoardRow)) and bool(window.findChildren(Readout)), timeout=10_000)
    (row,), (readout,), strip = window.findChildren(BoardRow), window.findChildren(Readout), window.strip
    assert strip is not None
    seen: list[tuple[set[str], set[str], set[bool]]] = []

    def look() -> None:
        names = [channel.name for channel in readout.readings.channels]
        trace = window.board.trace
        if POWER not in names or not row.isVisible() or not readout.table.isVisible() or trace.power_name != POWER:
            return
        lanes = {line.channel: (line, lane.lane.unit) for lane in window.monitor.view.lanes for line in lane.lines}
        power = {
            window.header.figures[""].text(),
            row.power.text().partition(" of ")[0],
            strip.power.text(),
            readout.readings.text(names.index(POWER), NOW),
            window.monitor.view._value_text(*lanes["power"]),
        }
        clock = {
            window.header.figures[CLOCK].text(),
            row._figures[CLOCK].text(),
            strip.clock.text(),
            readout.readings.text(names.index(CLOCK), NOW),
            window.monitor.view._value_text(*lanes[CLOCK]),
        }
        now = shown_reading(trace).time_ns
        ends = (window.monitor.view._bounds()[1], window.header.spark.end_ns, row.spark.end_ns)
        at_now = {0 <= end - now <= 1_200_000_000 for end in ends}  # rounded up to a column, of 50 a minute at least
        seen.append((power, clock, at_now))

    beat().struck.connect(look)  # after the panels' own
    try:
        qtbot.waitUntil(lambda: len({next(iter(power)) for power, _, _ in seen}) > 8, timeout=20_000)
    finally:
        beat().struck.disconnect(look)
    later = seen[3:]  # what was made meanwhile has had a beat
    assert [each for each in later if len(each[0]) > 1 or len(each[1]) > 1 or each[2] != {True}] == []


def test_between_two_beats_the_present_stays_the_same_reading(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(speed=10.0))
    trace = window.board.trace
    qtbot.waitUntil(lambda: trace.last_ns > 0, timeout=5_000)
    beat().strike()
    shown = shown_reading(trace)
    last = trace.last_ns
    deadline_s = time.monotonic() + 10.0
    while trace.last_ns == last and time.monotonic() < deadline_s:  # on the sampler's thread; Qt serves no event here
        window.board.gpu.clock.wait(0.02)
    assert shown_reading(trace) is shown
    beat().strike()
    assert shown_reading(trace).time_ns > shown.time_ns
