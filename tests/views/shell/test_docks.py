"""Where the docks start, how they share the window's width, and how a key goes to one."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator

import pytest
import shiboken6
from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QMainWindow, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.views.shared import theme
from app.views.shell.docks import Docks, least_centre_width
from app.views.shell.panels import PanelSpec, Place

NARROW, WIDE = QSize(900, 768), QSize(1430, 1080)  # what a workspace has of 1366x768 and 1920x1080
SPECS = (
    PanelSpec("first", "&First", "", "", "", "here", Place.RIGHT),
    PanelSpec("second", "&Second", "", "", "", "here", Place.RIGHT),
    PanelSpec("third", "&Third", "", "", "", "here", Place.RIGHT, below=True),
    *(PanelSpec(f"more {place}", f"More {place}", "", "", "", "here", Place.RIGHT) for place in range(6)),
)


Shown = Callable[..., tuple[QMainWindow, Docks]]


@pytest.fixture
def shown(qtbot: QtBot) -> Iterator[Shown]:
    """`shown(width, room=NARROW, kept=None)`: a window with empty docks, closed at the test's end."""
    opened: list[tuple[QMainWindow, Docks]] = []

    def show(width: int, room: QSize = NARROW, kept: QByteArray | None = None) -> tuple[QMainWindow, Docks]:
        window = QMainWindow()
        window.setCentralWidget(QWidget())
        window.resize(width, 900)
        docks = Docks(window, SPECS, room)
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


def centre_width(window: QMainWindow) -> int:
    return window.centralWidget().width()


def docked_share(window: QMainWindow) -> float:
    return 1 - centre_width(window) / window.width()


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
    for width in (700, 1301, 901, 1300):  # at 700 the centre needs more than half
        window.resize(width, 900)
        QApplication.processEvents()
    qtbot.waitUntil(lambda: docks.columns() == before, timeout=5_000)


def test_what_the_user_makes_of_the_docks_is_kept_to_the_pixel(qtbot: QtBot, shown: Shown) -> None:
    window, docks = shown(1300)
    qtbot.waitUntil(lambda: docks.columns() == {"first": round(0.34 * 1300)}, timeout=5_000)
    window.resizeDocks([docks.by_name["first"]], [411], Qt.Orientation.Horizontal)  # as dragging their edge does
    for _ in range(10):
        qtbot.waitUntil(lambda docks=docks: docks.columns() == {"first": 411}, timeout=5_000)
        kept = docks.state()
        window, docks = shown(1300, kept=kept)
    _, again = shown(1000, kept=kept)
    qtbot.waitUntil(lambda: abs(again.columns()["first"] / 1000 - 411 / 1300) < 0.002, timeout=5_000)


@pytest.mark.parametrize(
    ("screen", "least"), [(800, 464), (900, 522), (1400, 560), (3200, 560)], ids=lambda each: str(each)
)
def test_the_centre_keeps_a_usable_width_whatever_is_asked(qtbot: QtBot, shown: Shown, screen: int, least: int) -> None:
    assert least_centre_width(QSize(screen, 720)) == least
    window, docks = shown(screen - 16, QSize(screen, 720))
    docks.share(0.95)
    qtbot.waitUntil(lambda: centre_width(window) == least, timeout=5_000)
    assert window.width() == screen - 16


def test_a_panel_that_needs_much_room_is_scrolled_and_never_widens_the_window(qtbot: QtBot, shown: Shown) -> None:
    window, docks = shown(1200)
    wide = QWidget()
    wide.setMinimumSize(2000, 2000)
    docks.pages["second"].hold(wide)
    docks.bring("second")
    qtbot.waitUntil(wide.isVisible, timeout=5_000)
    assert wide.width() == 2000
    assert (window.width(), window.height()) == (1200, 900)
    assert window.minimumSizeHint().width() < 800
    area = docks.pages["second"]
    qtbot.waitUntil(lambda: area.horizontalScrollBar().maximum() > 0, timeout=5_000)


def test_narrow_docks_leave_a_panel_the_width_that_it_needs(qtbot: QtBot, shown: Shown) -> None:
    window, docks = shown(1300)
    panel = QWidget()
    panel.setMinimumWidth(470)
    page = docks.pages["first"]
    page.hold(panel)
    docks.share(0.2)
    bar = page.verticalScrollBar().sizeHint().width()
    qtbot.waitUntil(lambda: docks.columns() == {"first": 470 + bar}, timeout=5_000)
    assert centre_width(window) > 800
    panel.setMinimumHeight(2000)  # as the session's panel in a small window, once there is a session
    page.hold(panel)
    qtbot.waitUntil(lambda: page.verticalScrollBar().maximum() > 0, timeout=5_000)
    assert page.horizontalScrollBar().maximum() == 0


def test_a_layout_that_does_not_fit_the_screen_or_is_none_gives_way_to_the_first_one(
    qtbot: QtBot, shown: Shown
) -> None:
    window, docks = shown(1900, WIDE)
    for dock in docks.by_name.values():  # all beside one another
        dock.setFloating(True)
        window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock, Qt.Orientation.Horizontal)
        dock.setFloating(False)
    assert len(docks.columns()) == len(SPECS)
    crowded = docks.state()
    _, usual = shown(1300)
    at = usual.state().data().index(struct.pack(">d", 0.34))
    endless = QByteArray(usual.state().data()[:at] + struct.pack(">d", math.inf) + usual.state().data()[at + 8 :])
    for kept in (crowded, endless, QByteArray(b"what is this"), QByteArray()):
        window, docks = shown(1300, kept=kept)
        assert len(docks.columns()) == 1
        assert window.width() == 1300
        qtbot.waitUntil(lambda docks=docks: docks.columns() == {"first": round(0.34 * 1300)}, timeout=5_000)


def test_a_panel_gets_the_width_that_it_needs_unless_the_user_chose_another(qtbot: QtBot, shown: Shown) -> None:
    window, docks = shown(1100)
    qtbot.waitUntil(lambda: docks.columns() == {"first": round(0.34 * 1100)}, timeout=5_000)
    panel = QWidget()
    bar = docks.pages["first"].verticalScrollBar().sizeHint().width()
    panel.setMinimumWidth(520 - bar)
    docks.pages["first"].hold(panel)
    docks.make_room()
    qtbot.waitUntil(lambda: docks.columns() == {"first": 520}, timeout=5_000)
    window.resizeDocks([docks.by_name["first"]], [300], Qt.Orientation.Horizontal)  # as dragging its edge does
    qtbot.waitUntil(lambda: docks.columns() == {"first": 300}, timeout=5_000)
    QApplication.processEvents()
    docks.make_room()
    QApplication.processEvents()
    assert docks.columns() == {"first": 300}


def test_on_a_tall_screen_what_goes_below_stands_below_the_rest(qtbot: QtBot, shown: Shown) -> None:
    _window, docks = shown(1500, WIDE)
    docks.bring("second")
    second, third = docks.by_name["second"], docks.by_name["third"]
    qtbot.waitUntil(lambda: third.y() > second.y() + second.height() - 2 and third.x() == second.x(), timeout=5_000)
    qtbot.waitUntil(lambda: second.width() == third.width() == round(0.32 * 1500), timeout=5_000)
    docks.bring("first")
    assert set(docks.columns()) == {"first", "third"}
    docks.by_name["third"].hide()
    docks.reset()
    qtbot.waitUntil(lambda: not docks.by_name["third"].isHidden(), timeout=5_000)


def test_going_into_a_page_gives_the_focus_to_where_it_was(qtbot: QtBot, shown: Shown) -> None:
    window, docks = shown(1300)
    fields = QWidget()
    layout = QVBoxLayout(fields)
    first, second = QLineEdit(), QLineEdit()
    layout.addWidget(first)
    layout.addWidget(second)
    page = docks.pages["second"]
    page.hold(fields)

    def go_to() -> None:
        docks.bring("second")
        page.focus_inside()

    for before in ("behind another", "in front", "closed"):
        if before == "closed":
            docks.by_name["second"].close()
        go_to()
        qtbot.waitUntil(lambda: docks.in_front("second"), timeout=5_000)
        qtbot.waitUntil(first.hasFocus, timeout=5_000)
    second.setFocus()
    docks.bring("first")
    go_to()
    assert window.focusWidget() is second, "where the focus was in it"
    second.setDisabled(True)
    docks.bring("first")
    go_to()
    assert window.focusWidget() is first, "that takes none now"
    fields.setMinimumHeight(3000)
    second.setEnabled(True)
    second.setFocus()
    qtbot.waitUntil(second.visibleRegion().isEmpty, timeout=5_000)
    go_to()
    qtbot.waitUntil(lambda: not second.visibleRegion().isEmpty(), timeout=5_000)


def test_a_page_passes_the_focus_on_once_something_in_it_takes_it(qtbot: QtBot, shown: Shown) -> None:
    window, docks = shown(1300)
    fields = QWidget()
    layout = QVBoxLayout(fields)
    field = QLineEdit()
    layout.addWidget(field)
    field.hide()
    page = docks.pages["first"]
    page.hold(fields)
    docks.bring("first")
    page.focus_inside()
    assert window.focusWidget() is page
    field.show()
    qtbot.waitUntil(lambda: window.focusWidget() is field, timeout=5_000)


def test_going_into_a_page_makes_no_widget_depend_on_its_neighbour(qtbot: QtBot, shown: Shown) -> None:
    _window, docks = shown(1300)
    fields = QWidget()
    layout = QVBoxLayout(fields)
    first, second, third = QLineEdit(), QLineEdit(), QLineEdit()
    for each in (first, second, third):
        layout.addWidget(each)
    first.setDisabled(True)
    docks.pages["first"].hold(fields)
    docks.bring("first")
    docks.pages["first"].focus_inside()
    qtbot.waitUntil(second.hasFocus, timeout=5_000)
    shiboken6.delete(first)
    assert shiboken6.isValid(second)
    assert shiboken6.isValid(third)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_buttons_of_a_dock_stand_out_from_its_ground(qtbot: QtBot, shown: Shown, mode: theme.Mode) -> None:
    _, docks = shown(1200)
    before = theme.notifier().mode
    theme.set_mode(mode)
    dock = docks.by_name["first"]

    def inks() -> list[str]:
        """The colour of each button's strokes."""
        images = [button.icon().pixmap(48, 48).toImage() for button in dock.findChildren(QAbstractButton)]
        found = []
        for image in images:
            pixels = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
            found.append(next(colour.name() for colour in pixels if colour.alpha() == 255))
        return found

    colours = theme.DARK if mode == "dark" else theme.LIGHT
    qtbot.waitUntil(lambda: inks() == [colours.text] * 2, timeout=5_000)  # another test says that this can be read
    dock.setFloating(True)
    dock.setFloating(False)
    qtbot.waitUntil(lambda: inks() == [colours.text] * 2, timeout=5_000)
    theme.set_mode(before)
