"""A service that a session asks is drawn beside the watts, on the board's own time axis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from app.sensors import service as traces
from app.sensors.clock import VirtualClock
from app.sensors.service import note_served, service_trace
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.sensors.trace.trace import Trace
from app.views.shared import theme
from app.views.shared.watched_boards import beat
from app.views.watch.lane_view import LaneView
from app.views.watch.lanes import Layout
from app.views.watch.live_strip import LiveStrip


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedGpu]:
    monkeypatch.setattr(traces, "_traces", {})
    return SimulatedGpu(load_twin("rtx5090"), seed=1, clock=VirtualClock())


def watched(gpu: SimulatedGpu, qtbot: QtBot) -> tuple[LaneView, Trace]:
    trace = Trace(gpu.channels, rate_hz=10.0, span_s=600.0)
    view = LaneView(gpu, trace)
    qtbot.addWidget(view)
    view.resize(800, 700)
    return view, trace


def test_lanes_of_a_service_appear_when_a_session_asks_one_and_have_its_figures(
    qtbot: QtBot, gpu: SimulatedGpu
) -> None:
    view, trace = watched(gpu, qtbot)
    trace.append(gpu.read())
    view.refresh({})
    assert not [shown for shown in view.lanes if shown.lane.title.startswith("Service")]
    for second in range(1, 21):
        gpu.clock.wait(1.0)
        trace.append(gpu.read())
        note_served(gpu.info, gpu.clock.now_ns(), {"requests_per_s": 2.0, "output_tokens_per_s": 100.0 + second})
    beat().strike()
    view.refresh({})
    titles = [shown.lane.title for shown in view.lanes]
    assert titles[:4] == ["Power", "Service: requests", "Service: output tokens", "Service: latency, 95 %"]
    view.redraw()
    assert view.snapshot is not None
    assert view.snapshot.curves["requests_per_s"].extent() == (2.0, 2.0)
    assert view.snapshot.curves["output_tokens_per_s"].extent() == (101.0, 120.0)
    assert math.isnan(view.snapshot.curves["ttft_p95_s"].extent()[0])  # nothing ended: no latency, and no 0
    assert view.values_at(gpu.clock.now_ns())["output_tokens_per_s"] == 120.0


def test_the_latency_of_a_second_in_which_one_request_ended_is_seen(qtbot: QtBot, gpu: SimulatedGpu) -> None:
    """A single pixel is not."""
    view, trace = watched(gpu, qtbot)
    for second in range(1, 31):
        gpu.clock.wait(1.0)
        trace.append(gpu.read())
        ended = {"ttft_p95_s": 1.0, "e2e_p95_s": 4.0} if second == 15 else {}
        note_served(gpu.info, gpu.clock.now_ns(), {"requests_per_s": 1.0, **ended})
    view.refresh({})
    plots: list[QRect] = []
    view.add_overlay(
        lambda _painter, layout, *_: plots.extend(
            box.plot for box in layout.lanes if box.shown.lane.title == "Service: latency, 95 %"
        )
    )
    picture, plot = view.grab().toImage(), plots[0]
    places = [(x, y) for x in range(plot.left(), plot.right()) for y in range(plot.top(), plot.bottom() + 1)]
    for colour in (theme.colours().purple, theme.colours().sky):
        seen = [place for place in places if picture.pixelColor(*place) == QColor(colour)]
        assert len(seen) >= 6, colour


def test_the_strip_has_room_for_the_lanes_of_a_service(qtbot: QtBot, gpu: SimulatedGpu) -> None:
    trace = Trace(gpu.channels, rate_hz=10.0, span_s=600.0)
    strip = LiveStrip(gpu, trace)
    qtbot.addWidget(strip)
    view = strip.view
    view.resize(900, 130)
    gpu.clock.wait(1.0)
    trace.append(gpu.read())
    note_served(gpu.info, gpu.clock.now_ns(), {"requests_per_s": 1.0})
    view.refresh({})
    seen: list[Layout] = []
    view.add_overlay(lambda _painter, layout, *_: seen.append(layout))
    view.grab()
    boxes = [box for box in seen[-1].lanes if box.shown.lines]
    assert [box.shown.lane.title for box in boxes][:2] == ["Power", "Service: requests"]
    assert len(boxes) >= 5
    assert min(box.plot.height() for box in boxes) >= 10
    for above, below in pairwise(seen[-1].lanes):
        assert above.header.bottom() < below.header.top()
    assert seen[-1].lanes[-1].header.bottom() < seen[-1].axis.top()


def test_a_clock_that_has_gone_back_begins_a_new_trace(gpu: SimulatedGpu) -> None:
    note_served(gpu.info, 10**12, {"requests_per_s": 1.0})
    before = service_trace(gpu.info)
    note_served(gpu.info, 10**9, {"requests_per_s": 3.0})
    after = service_trace(gpu.info)
    assert after is not None
    assert after is not before
    assert after.at(10**9)["requests_per_s"] == 3.0
