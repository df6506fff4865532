"""Where the docks start, how they share the window's width, and how a key goes to one."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator

import pytest
import shiboken6
from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtWidgets import QApplication, QLineEdit, QMainWindow, QScrollArea, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.views.shell.docks import Docks, least_traces_width
from app.views.shell.panels import PANELS

NARROW, WIDE = QSize(1366, 768), QSize(1920, 1080)


Shown = Callable[..., tuple[QMainWindow, Docks]]


@pytest.fixture
def shown(qtbot: QtBot) -> Iterator[Shown]:
    """`shown(width, room=NARROW, kept=None)`: a window with empty docks, closed at the test's end."""
    opened: list[tuple[QMainWindow, Docks]] = []

    def show(width: int, room: QSize = NARROW, kept: QByteArray | None = None) -> tuple[QMainWindow, Docks]:
        window = QMainWindow()
        window.setCentralWidget(QWidget())
        window.resize(width, 900)
        docks = Docks(window, PANELS, room)
        opened.append((window, docks))
        docks.restore(kept, room)
        window.show()
        qtbot.waitUntil(lambda: bool(docks.columns()), timeout=5_000)
        return window, docks

    yield show
    for window, docks in opened:
        docks.stop_watching()
        window.close()
        shiboken6.delete(window)


def traces_width(window: QMainWindow) -> int:
    return window.centralWidget().width()


def docked_share(window: QMainWindow) -> float:
    return 1 - traces_width(window) / window.width()


@pytest.mark.parametrize("room", [NARROW, WIDE])
def test_docks_keep_their_share_of_a_window_that_is_resized(qtbot: QtBot, shown: Shown, room: QSize) -> None:
    window, docks = shown(1200, room)
    docks.share(0.4)
    qtbot.waitUntil(lambda: abs(docked_share(window) - 0.4) < 0.02, timeout=5_000)
    for width in (1900, 1100, 1500):
        window.resize(width, 900)
        qtbot.waitUntil(lambda: abs(docked_share(window) - 0.4) < 0.02, timeout=5_000)


def test_a_window_that_was_small_for_a_while_has_its_docks_as_before(qtbot: QtBot, shown: Shown) -> None:
    window, docks = shown(1300)
    docks.share(0.5)
    before = docks.columns()
    for width in (700, 1301, 901, 1300):  # at 700 the traces need more than half
        window.resize(width, 900)
        QApplication.processEvents()
    qtbot.waitUntil(lambda: docks.columns() == before, timeout=5_000)


def test_what_the_user_makes_of_the_docks_is_kept_to_the_pixel(qtbot: QtBot, shown: Shown) -> None:
    window, docks = shown(1300)
    qtbot.waitUntil(lambda: docks.columns() == {"channels": round(0.42 * 1300)}, timeout=5_000)
    window.resizeDocks([docks.by_name["channels"]], [411], Qt.Orientation.Horizontal)  # as dragging their edge does
    for _ in range(10):
        qtbot.waitUntil(lambda docks=docks: docks.columns() == {"channels": 411}, timeout=5_000)
        kept = docks.state()
        window, docks = shown(1300, kept=kept)
    _, again = shown(1000, kept=kept)
    qtbot.waitUntil(lambda: abs(again.columns()["channels"] / 1000 - 411 / 1300) < 0.002, timeout=5_000)


@pytest.mark.parametrize(
    ("screen", "least"), [(1280, 512), (1366, 546), (1920, 640), (3840, 640), (800, 320)], ids=lambda each: str(each)
)
def test_the_traces_keep_a_usable_width_whatever_is_asked(qtbot: QtBot, shown: Shown, screen: int, least: int) -> None:
    assert least_traces_width(QSize(screen, 720)) == least
    window, docks = shown(screen - 16, QSize(screen, 720))
    docks.share(0.95)
    qtbot.waitUntil(lambda: traces_width(window) == least, timeout=5_000)
    assert window.width() == screen - 16


def test_a_panel_that_needs_much_room_is_scrolled_and_never_widens_the_window(qtbot: QtBot, shown: Shown) -> None:
    window, docks = shown(1200)
    wide = QWidget()
    wide.setMinimumSize(2000, 2000)
    docks.put("tune", wide)
    docks.bring("tune")
    qtbot.waitUntil(wide.isVisible, timeout=5_000)
    assert wide.width() == 2000
    assert (window.width(), window.height()) == (1200, 900)
    assert window.minimumSizeHint().width() < 800
    area = docks.by_name["tune"].widget()
    assert isinstance(area, QScrollArea)
    qtbot.waitUntil(lambda: area.horizontalScrollBar().maximum() > 0, timeout=5_000)


def test_wide_traces_leave_a_panel_the_width_that_it_needs(qtbot: QtBot, shown: Shown) -> None:
    window, docks = shown(1300)
    panel = QWidget()
    panel.setMinimumWidth(470)
    docks.put("channels", panel)
    docks.share(0.2)
    qtbot.waitUntil(lambda: docks.columns() == {"channels": 470}, timeout=5_000)
    assert traces_width(window) > 800


def test_a_layout_that_does_not_fit_the_screen_or_is_none_gives_way_to_the_first_one(
    qtbot: QtBot, shown: Shown
) -> None:
    window, docks = shown(1900, WIDE)
    for dock in docks.by_name.values():  # all beside one another
        dock.setFloating(True)
        window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock, Qt.Orientation.Horizontal)
        dock.setFloating(False)
    assert len(docks.columns()) == len(PANELS)
    crowded = docks.state()
    _, usual = shown(1300)
    at = usual.state().data().index(struct.pack(">d", 0.42))
    endless = QByteArray(usual.state().data()[:at] + struct.pack(">d", math.inf) + usual.state().data()[at + 8 :])
    for kept in (crowded, endless, QByteArray(b"what is this"), QByteArray()):
        window, docks = shown(1300, kept=kept)
        assert len(docks.columns()) == 1
        assert window.width() == 1300
        qtbot.waitUntil(lambda docks=docks: docks.columns() == {"channels": round(0.42 * 1300)}, timeout=5_000)


def test_on_a_wide_screen_the_plots_stand_beside_the_rest(qtbot: QtBot, shown: Shown) -> None:
    _window, docks = shown(1500, WIDE)
    docks.bring("tune", "front")
    tune, front = docks.by_name["tune"], docks.by_name["front"]
    qtbot.waitUntil(lambda: front.x() > tune.x() + tune.width() - 2 and front.y() == tune.y(), timeout=5_000)
    qtbot.waitUntil(lambda: front.width() == tune.width() == round(0.27 * 1500), timeout=5_000)
    docks.bring("roofline", "sessions")
    assert set(docks.columns()) == {"roofline", "sessions"}
    docks.by_name["sessions"].hide()
    docks.reset()
    qtbot.waitUntil(lambda: not docks.by_name["sessions"].isHidden(), timeout=5_000)


def test_going_to_a_panel_shows_it_raises_it_and_gives_it_the_focus(qtbot: QtBot, shown: Shown) -> None:
    window, docks = shown(1300)
    fields = QWidget()
    layout = QVBoxLayout(fields)
    first, second = QLineEdit(), QLineEdit()
    layout.addWidget(first)
    layout.addWidget(second)
    docks.put("tune", fields)
    for before in ("behind another", "in front", "closed"):
        if before == "closed":
            docks.by_name["tune"].close()
        docks.go_to("tune")
        qtbot.waitUntil(lambda: not docks.by_name["tune"].visibleRegion().isEmpty(), timeout=5_000)
        qtbot.waitUntil(first.hasFocus, timeout=5_000)
    second.setFocus()
    docks.go_to("channels")
    docks.go_to("tune")
    assert window.focusWidget() is second, "where the focus was in it"
    second.setDisabled(True)
    docks.go_to("channels")
    docks.go_to("tune")
    assert window.focusWidget() is first, "that takes none now"
    fields.setMinimumHeight(3000)
    second.setEnabled(True)
    second.setFocus()
    qtbot.waitUntil(second.visibleRegion().isEmpty, timeout=5_000)
    docks.go_to("tune")
    qtbot.waitUntil(lambda: not second.visibleRegion().isEmpty(), timeout=5_000)
