"""The small fronts of stored sessions: what they show, and that each is read once, when it is in sight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from fixtures.lab import OBJECTIVE, Lab, grid_space, measured, plan_for
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from pytestqt.qtbot import QtBot

from app.engine.results.measurement import Measurement, State
from app.engine.results.state import SessionState
from app.engine.store.database import Store
from app.views.library.sessions_panel import SessionsPanel
from app.views.shared import theme
from app.views.shared.thumbnail import SmallFront, SmallFronts, Thumbnail, paint_small_front, read_small_front

SPACE = grid_space(10, 8)


@pytest.fixture
def fronts(store: Store) -> Iterator[SmallFronts]:
    made = SmallFronts(store)
    yield made
    made.shutdown()


def keep(store: Store, rows: int = SPACE.size) -> int:
    session = store.create_session(plan_for(SPACE, OBJECTIVE))
    store.append(session, [measured(SPACE, row) for row in range(rows)])
    store.finish(session, SessionState.DONE)
    return session


def test_it_is_the_front_of_all_that_was_measured(store: Store) -> None:
    session = keep(store)
    loaded = store.load(session)
    small = read_small_front(store, loaded.record)
    speed, efficiency = (loaded.table.values(name) for name in ("GFLOP/s", "GFLOPS/W"))
    assert small.axes == ("GFLOP/s", "GFLOPS/W")
    assert small.best == f"{np.nanmax(efficiency):.4g} GFLOPS/W"
    beaten = [
        any((speed > x) & (efficiency >= y) | (speed >= x) & (efficiency > y))
        for x, y in zip(speed, efficiency, strict=True)
    ]
    expected = {(x, y) for x, y, b in zip(speed, efficiency, beaten, strict=True) if not b and np.isfinite(x)}
    assert len(small.front) == len(expected) >= 3
    assert (np.diff(small.front[:, 0]) > 0).all(), "from the left to the right"
    assert (np.diff(small.front[:, 1]) < 0).all()
    for points in (small.crowd, small.front):
        assert ((points >= 0) & (points <= 1)).all()


def test_a_stray_point_does_not_press_the_others_into_a_corner(store: Store) -> None:
    session = store.create_session(plan_for(SPACE, OBJECTIVE))
    rows = [measured(SPACE, row) for row in range(SPACE.size - 1)]
    last = SPACE.size - 1
    values = {"GFLOP/s": 1e-9, "GFLOPS/W": -1e9}
    store.append(session, [*rows, Measurement(last, SPACE.configuration(last), State.OK, values, source="recorded")])
    store.finish(session, SessionState.DONE)
    small = read_small_front(store, store.session(session))
    assert np.ptp(small.crowd[:, 1]) > 0.5


def test_a_session_without_a_measurement_has_no_front(store: Store) -> None:
    session = keep(store, rows=0)
    small = read_small_front(store, store.session(session))
    assert not small
    assert small.best == ""


def test_each_is_read_when_it_is_painted_once_and_again_when_it_has_grown(
    qtbot: QtBot, store: Store, fronts: SmallFronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    values = store.values
    monkeypatch.setattr(store, "values", lambda session, *decided: (read.append(session), values(session, *decided))[1])
    first, second = keep(store), keep(store)
    shown, hidden, again = (Thumbnail(fronts) for _ in range(3))
    for each, session in ((shown, first), (hidden, second), (again, first)):
        qtbot.addWidget(each)
        each.show_record(store.session(session))
    shown.show()
    qtbot.waitUntil(lambda: fronts.known(store.session(first)) is not None, timeout=5_000)
    again.show()
    qtbot.waitExposed(again)
    again.grab()
    assert read == [first]
    hidden.show()
    qtbot.waitUntil(lambda: read == [first, second], timeout=5_000)
    before = store.session(first)
    shown.show_record(replace(before, evaluated=before.evaluated + 1))
    qtbot.waitUntil(lambda: read == [first, second, first], timeout=5_000)
    shown.grab()
    again.grab()  # by a record that is older
    assert read == [first, second, first]


def test_it_is_painted_in_the_colours_of_the_theme(qtbot: QtBot, store: Store, fronts: SmallFronts) -> None:
    record = store.session(keep(store))
    thumbnail = Thumbnail(fronts)
    qtbot.addWidget(thumbnail)
    thumbnail.resize(200, 120)
    thumbnail.show_record(record)
    thumbnail.show()
    qtbot.waitUntil(lambda: fronts.known(record) is not None, timeout=5_000)
    mode = theme.notifier().mode
    for name, colours in (("light", theme.LIGHT), ("dark", theme.DARK)):
        theme.set_mode(name)  # type: ignore[arg-type]
        image = thumbnail.grab().toImage()
        drawn = {QColor(image.pixel(x, y)).name() for x in range(image.width()) for y in range(image.height())}
        assert {colours.base, colours.accent} <= drawn
    theme.set_mode(mode)


def test_a_dot_is_as_large_as_there_is_room_for(qtbot: QtBot) -> None:
    """A few measurements are seen in the large picture of the Library too."""
    one = np.array([[0.5, 0.5]])
    drawn = []
    for scale in (1, 3):
        image = QImage(176 * scale, 104 * scale, QImage.Format.Format_RGB32)
        painter = QPainter(image)
        paint_small_front(painter, QRectF(image.rect()), SmallFront(crowd=one, front=one + 0.25))
        painter.end()
        ground = QColor(theme.colours().base)
        middle = [image.pixelColor(x, image.height() // 2) for x in range(20 * scale, 110 * scale)]
        drawn.append(sum(colour != ground for colour in middle))
    assert drawn[0] >= 2
    assert drawn[1] > 2 * drawn[0]


def test_the_list_of_sessions_shows_the_front_of_the_selected_one(qtbot: QtBot, store: Store) -> None:
    session = keep(store)
    panel = SessionsPanel(Lab(store=store).context)
    qtbot.addWidget(panel)
    panel.resize(480, 640)
    panel.show()
    qtbot.waitUntil(lambda: not panel.busy, timeout=5_000)
    panel.table.clearSelection()
    assert not panel.front.small
    panel.choose({session})
    qtbot.waitUntil(lambda: bool(panel.front.small), timeout=5_000)
    panel.shutdown()
