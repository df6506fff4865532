"""Wherever the window shows what a board does now, it shows the same reading of the same instant."""

from __future__ import annotations

import time
from collections.abc import Callable

from fixtures.lab import ready
from pytestqt.qtbot import QtBot

from app.base.formatting import UNKNOWN
from app.sensors.recorded.gpu import RecordedGpu
from app.sensors.select import open_gpu
from app.sensors.trace.trace import Trace
from app.views.plots.figures import value_text
from app.views.shared.watched_boards import beat, shown_reading
from app.views.shell.app import Program
from app.views.shell.panels import WORKSPACES
from app.views.shell.window import MainWindow
from app.views.watch.board_row import BoardRow
from app.views.watch.lane_view import LaneView
from app.views.watch.readout import NOW, Readout

Open = Callable[..., Program]
POWER, CLOCK = "power_samples_w", "graphics_clock_mhz"


def test_at_every_beat_all_panels_show_one_reading_of_a_recording_at_ten_times_its_speed(
    qtbot: QtBot, open_program: Open
) -> None:
    gpu = open_gpu("recorded:h200-gemm", speed=10.0)
    assert isinstance(gpu, RecordedGpu)
    window = ready(qtbot, open_program(gpu, speed=10.0))
    window.workspaces.show_workspace("watch")
    window.show_strip(True)
    qtbot.waitUntil(lambda: bool(window.findChildren(BoardRow)) and bool(window.findChildren(Readout)), timeout=10_000)
    (row,), (readout,), strip = window.findChildren(BoardRow), window.findChildren(Readout), window.strip
    assert strip is not None
    seen: list[tuple[set[str], set[str], set[bool]]] = []
    frozen = [0, 0.0]  # the reading of the last look that saw a new one, and when that was

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
        if now != frozen[0]:
            seen.append((power, clock, at_now))
        elif time.monotonic() - frozen[1] > 1.0:  # it ended, after four seconds: a slow machine has not seen enough
            gpu.play_again()
            seen.clear()
        else:
            return
        frozen[:] = now, time.monotonic()

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


def shown_power(window: MainWindow) -> list[str]:
    """The power of the shown board, wherever it can be read at this moment."""
    board, views = window.board, [view for view in window.findChildren(LaneView) if view.isVisible()]
    found = [window.header.figures[""].text(), window.strip.power.text() if window.strip else ""]
    rows = [row for row in window.findChildren(BoardRow) if row.isVisible() and row.board is board]
    found += [row.power.text().partition(" of ")[0] for row in rows]
    found += [
        view._value_text(line, "W") for view in views for x in view.lanes for line in x.lines if line.channel == "power"
    ]
    for readout in (each for each in window.findChildren(Readout) if each.isVisible()):
        names = [channel.name for channel in readout.readings.channels]
        name = shown_reading(board.trace).power_name
        found += [readout.readings.text(names.index(name), NOW)] if name in names else []
    return found


def test_on_every_page_a_simulated_board_at_ten_times_its_speed_has_one_power(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(speed=10.0))
    window.show_strip(True)
    seen: list[list[str]] = []
    for spec in WORKSPACES:
        window.workspaces.show_workspace(spec.name)
        qtbot.waitUntil(lambda: all(map(window.panels.has, window.workspaces.current.in_front())), timeout=20_000)
        begun = len(seen)
        beat().struck.connect(look := (lambda: seen.append(shown_power(window))))
        try:
            qtbot.waitUntil(lambda begun=begun: len(seen) > begun + 5, timeout=20_000)
        finally:
            beat().struck.disconnect(look)
        pages = seen[begun + 2 :]  # what came to sight meanwhile has had a beat
        assert [texts for texts in pages if len(set(texts)) != 1] == [], spec.name
        if spec.name == "watch":
            assert len(pages[-1]) >= 5, "header, strip, row, lane and channels"
    assert len({texts[0] for texts in seen}) > 5, "it moves"
    assert UNKNOWN not in seen[-1]


def test_the_figures_of_a_board_that_has_no_reading_yet_are_not_those_of_another(
    qtbot: QtBot, open_program: Open
) -> None:
    window = ready(qtbot, open_program())
    qtbot.waitUntil(lambda: window.header.figures[""].text() not in ("", UNKNOWN), timeout=20_000)
    window.boards.show("simulated:h200")
    qtbot.waitUntil(lambda: "H200" in window.board.gpu.info.name, timeout=20_000)
    silent = Trace(window.board.gpu.channels)
    window.board.trace = silent
    window.header.refresh()
    assert {label.text() for label in window.header.figures.values()} == {UNKNOWN}


def test_a_limit_that_was_set_is_the_limit_everywhere(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(speed=10.0))
    window.workspaces.go_to("boards")
    window.show_strip(True)
    window.board.gpu.set_power_limit(200.0)
    qtbot.waitUntil(lambda: window.strip is not None and window.strip.limit.text() == "limit 200 W", timeout=20_000)
    [row] = window.findChildren(BoardRow)
    qtbot.waitUntil(lambda: row.power.text().endswith(" of 200 W"), timeout=20_000)


def test_another_boards_power_on_the_traces_is_that_of_its_card(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(speed=10.0))
    window.boards.watch("simulated:h200")
    window.workspaces.go_to("boards")
    qtbot.waitUntil(lambda: len(window.findChildren(BoardRow)) == 2, timeout=20_000)
    row = next(row for row in window.findChildren(BoardRow) if row.board is not window.board)
    qtbot.waitUntil(lambda: bool(row.power.text()), timeout=20_000)
    seen: list[tuple[str, set[str]]] = []

    def look() -> None:
        others = {name: value for name, value in window.monitor.view.present_values().items() if "power of " in name}
        seen.append((row.power.text().partition(" of ")[0], {value_text("power_w", "W", w) for w in others.values()}))

    beat().struck.connect(look)
    try:
        qtbot.waitUntil(lambda: len({text for text, _ in seen}) > 5, timeout=20_000)
    finally:
        beat().struck.disconnect(look)
    assert [each for each in seen[2:] if each[1] != {each[0]}] == []
