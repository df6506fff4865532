"""WCAG 2.2 AA over the whole window and its side windows: names, order of the focus, contrast, reach by keyboard.

Every widget is looked at, not a list of them: what is new is held to the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pyqtgraph as pg
import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import OBJECTIVE, grid_space, measured, plan_for, ready
from fixtures.widgets import name_of, parents
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QAction, QColor, QImage, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QDockWidget,
    QLabel,
    QLineEdit,
    QMenu,
    QMenuBar,
    QRadioButton,
    QTabBar,
    QTableView,
    QToolBar,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.engine.results.state import SessionState
from app.engine.store.database import Store
from app.views.shared import theme
from app.views.shared.settings import Settings
from app.views.shared.widgets import lies_behind, takes_focus
from app.views.shell.palette import Palette
from app.views.shell.panels import PANELS
from app.views.shell.settings_window import SettingsWindow
from app.views.shell.window import MainWindow

Open = Callable[..., Any]
_TEXT, _GRAPHICS = 4.5, 3.0  # WCAG 2.2, 1.4.3 and 1.4.11
_BAR_PX = (3, 24)  # the least size of a bar that marks something
_ROW_PX = 14  # within these, widgets stand in one row
# What Qt makes inside of these is theirs, and operated through them.
_WHOLE = (QAbstractItemView, QAbstractSpinBox, QComboBox, QLineEdit, QTabBar, QMenuBar, QMenu)


def visible(root: QWidget, kind: type[QWidget] = QWidget) -> Iterator[QWidget]:
    """All in sight, but not the parts of others."""
    for widget in root.findChildren(kind):
        parent = widget.parentWidget()
        is_viewport = isinstance(parent, QAbstractScrollArea) and parent.viewport() is widget
        if widget.isVisible() and not is_viewport and not any(isinstance(each, _WHOLE) for each in parents(widget)):
            yield widget


def described(widget: QWidget) -> str:
    text = getattr(widget, "text", str)()
    return f"{type(widget).__name__} in {type(widget.parentWidget()).__name__} '{text or widget.toolTip()[:40]}'"


def takes_tab(widget: QWidget) -> bool:
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)


def luminance(colour: QColor) -> float:
    channels = (colour.redF(), colour.greenF(), colour.blueF())
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: QColor | str, other: QColor | str) -> float:
    low, high = sorted((luminance(QColor(one)), luminance(QColor(other))))
    return (high + 0.05) / (low + 0.05)


def over(colour: QColor, ground: QColor) -> QColor:
    """A colour that is partly transparent, on its ground."""
    a = colour.alphaF()
    return QColor.fromRgbF(
        *(a * c + (1 - a) * g for c, g in zip(colour.getRgbF()[:3], ground.getRgbF()[:3], strict=True))  # type: ignore[index]
    )


def ground_of(image: QImage) -> QColor:
    """The colour that most of it has, or nearly has: buttons are shaded from top to bottom."""
    x, y = min(3, image.width() // 4), min(3, image.height() // 4)  # without its border
    inner = image.copy(image.rect().adjusted(x, y, -x, -y)).convertToFormat(QImage.Format.Format_RGB32)
    rows = np.frombuffer(inner.constBits(), dtype=np.uint8).reshape(inner.height(), -1, 4)[:, : inner.width() : 2, :3]
    pixels = rows.swapaxes(0, 1).reshape(-1, 3)
    shades = pixels // 12 @ np.array([1, 22, 484])
    alike = pixels[shades == np.bincount(shades).argmax()]
    blue, green, red = map(int, alike[len(alike) // 2])
    return QColor(red, green, blue)


def marked(before: QImage, after: QImage) -> bool:
    """Whether the ground, or a bar on it, stands out from what was there: bolder letters alone do not."""
    if contrast(ground_of(before), ground_of(after)) >= _GRAPHICS:
        return True
    low, high = np.sort(np.stack([luminances(before), luminances(after)]), axis=0)
    changed = (high + 0.05) / (low + 0.05) >= _GRAPHICS
    bars = (_BAR_PX, _BAR_PX[::-1])
    return any(sliding_window_view(changed, bar).all(axis=(2, 3)).any() for bar in bars)


def luminances(image: QImage) -> NDArray[np.float64]:
    """Of every pixel, in rows."""
    return np.array([[luminance(image.pixelColor(x, y)) for x in range(image.width())] for y in range(image.height())])


def picture_of(widget: QWidget, root: QWidget) -> QImage:
    """As it is in its place: alone, it would be drawn on another ground."""
    return root.grab(place_of(widget, root)).toImage()


@pytest.fixture
def window(qtbot: QtBot, open_program: Open) -> MainWindow:
    """With one of several stored sessions shown, so that every panel has something to show."""
    space = grid_space(4, 4)
    with Store() as store:
        for title, state in (("first", SessionState.DONE), ("second", SessionState.INTERRUPTED)):
            session = store.create_session(plan_for(space, OBJECTIVE, title=title))
            store.append(session, [measured(space, row) for row in range(space.size - 2)], elapsed_s=3.0)
            store.finish(session, state)
    window: MainWindow = ready(qtbot, open_program(FakeGpu(working)))
    window.open_session(session)
    qtbot.waitUntil(lambda: window.result.best is not None, timeout=20_000)
    window.panels["sessions"].choose({session})
    window.resize(1600, 1000)
    qtbot.waitUntil(lambda: window.panels["control"].rows is not None, timeout=20_000)
    qtbot.waitUntil(lambda: not window.panels["home"].busy, timeout=20_000)
    return window


def places(window: MainWindow, qtbot: QtBot) -> Iterator[tuple[str, QWidget]]:
    """Each panel in sight, what lies around them, and each side window."""
    for spec in PANELS:
        window.workspaces.bring(spec.name)
        panel = window.panels[spec.name]
        qtbot.waitUntil(lambda panel=panel: not panel.visibleRegion().isEmpty(), timeout=5_000)  # type: ignore[misc]
        yield spec.name, panel
    centre = window.centralWidget()
    assert centre is not None
    yield "centre", centre
    for bar in window.findChildren(QToolBar):
        yield bar.windowTitle(), bar
    for name in ("shortcuts", "sensors", "settings", "about", "alarms", "lanes"):
        before = {each for each in window.findChildren(QWidget) if each.isWindow() and each.isVisible()}
        window.actions_by_name[name].trigger()
        after = {each for each in window.findChildren(QWidget) if each.isWindow() and each.isVisible()}
        for made in after - before:
            qtbot.waitExposed(made)
            yield name, made
            made.hide()


def test_every_widget_that_takes_the_focus_has_a_name(window: MainWindow, qtbot: QtBot) -> None:
    nameless, count = [], 0
    for where, root in places(window, qtbot):
        for widget in visible(root):
            empty = isinstance(widget, QLabel) and not widget.text()  # words that can be selected, once there are any
            if takes_tab(widget) and not empty:
                count += 1
                if not name_of(widget):
                    nameless.append(f"{where}: {described(widget)}")
    assert count > 120, "they were all looked at"
    assert not nameless, "\n".join(nameless)


def test_every_button_is_an_action_or_reached_by_tab(window: MainWindow, qtbot: QtBot) -> None:
    offered = set(menu_actions(window.menuBar()))
    unreached, count = [], 0
    for where, root in places(window, qtbot):
        for button in visible(root, QAbstractButton):
            if isinstance(button.parentWidget(), (QDockWidget, QToolBar)) and not isinstance(button, QToolButton):
                continue  # a dock's own two: the View menu closes it, a double click on its title floats it
            count += 1
            action = button.defaultAction() if isinstance(button, QToolButton) else None
            if action not in offered and not takes_tab(button):
                unreached.append(f"{where}: {described(button)}")
    assert count > 80
    assert not unreached, "\n".join(unreached)


def menu_actions(bar: QMenuBar) -> Iterator[QAction]:
    def walk(menu: QMenuBar | QMenu) -> Iterator[QAction]:
        for action in menu.actions():
            inner = QMenu.menuInAction(action)
            if isinstance(inner, QMenu):
                inner.aboutToShow.emit()
                yield from walk(inner)
            elif not action.isSeparator():
                yield action

    yield from walk(bar)


def test_every_action_of_the_menus_is_found_by_the_palette(window: MainWindow, qtbot: QtBot) -> None:
    palette: Palette = window.search
    names = [action.text().replace("&", "") for action in menu_actions(window.menuBar()) if action.isVisible()]
    assert len(names) > 60
    missing = []
    window.actions_by_name["palette"].trigger()
    for name in names:
        palette.typed.setText(name)
        found = [each.removeprefix("✓ ") for each in palette.names]
        if name not in found:
            missing.append(name)
    palette.close_it()
    assert not missing


def test_tab_goes_from_the_top_left_to_the_bottom_right(window: MainWindow, qtbot: QtBot) -> None:
    """In each panel and window: down in rows, in a row to the right; of columns, one after another."""
    jumps, count = [], 0
    for where, root in places(window, qtbot):
        inside = {widget for widget in visible(root) if takes_tab(widget) and widget.isEnabled()}
        order = [widget for widget in chain(root) if widget in inside]
        count += len(order)
        for before, after in itertools.pairwise(order):
            one, other = place_of(before, root), place_of(after, root)
            above = other.bottom() <= one.top() + _ROW_PX  # it ends where the one before begins, or higher
            back = abs(other.center().y() - one.center().y()) < _ROW_PX and other.right() <= one.left()
            if (above and other.left() < one.right()) or back:
                jumps.append(f"{where}: from {described(before)} to {described(after)}")
    assert count > 80
    assert not jumps, "\n".join(jumps)


def chain(root: QWidget) -> Iterator[QWidget]:
    """The widgets of the window as Tab visits them, each once. Not by `nextInFocusChain`: see `shared/widgets.py`."""
    window, seen = root.window(), set[QWidget]()
    focused = window.focusWidget()
    if focused is not None:
        focused.clearFocus()  # Tab begins with the window's first one
    while window.focusNextChild():
        widget = window.focusWidget()  # the program's is none while the window is not the active one
        if widget in seen:
            return
        seen.add(widget)
        yield widget


def place_of(widget: QWidget, root: QWidget) -> QRect:
    return QRect(widget.mapTo(root, QPoint(0, 0)), widget.size())


def activate(window: MainWindow, qtbot: QtBot) -> None:
    """Some keys mean something in the window in front alone."""
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=10_000)


def walk(window: MainWindow, key: Qt.Key, look: Callable[[QWidget], object] = bool) -> list[QWidget]:
    """What has the focus, one after another, until one has it again; each is looked at."""
    seen: list[QWidget] = []
    while (widget := window.focusWidget()) not in seen:
        assert widget is not None, f"no widget has the focus after {described(seen[-1]) if seen else 'the start'}"
        assert widget.isVisible(), described(widget)
        assert widget.isEnabled(), described(widget)
        assert not lies_behind(widget), described(widget)
        seen.append(widget)
        QTest.keyClick(widget, key)
        QCoreApplication.processEvents()
        look(window.focusWidget())
    assert widget is seen[0], f"{described(seen[0])} is not reached again: caught from {described(widget)} on"
    return seen


def reached_both_ways(window: MainWindow, qtbot: QtBot) -> set[QWidget]:
    """What Tab and Shift+Tab reach, once that is the same: some are enabled when the board has been read."""
    there: set[QWidget] = set()

    def as_many_back() -> bool:
        there.clear()
        there.update(walk(window, Qt.Key.Key_Tab))
        return there == set(walk(window, Qt.Key.Key_Backtab))

    qtbot.waitUntil(as_many_back, timeout=20_000)
    return there


class Windows(QObject):
    """Notes every window that appears: a widget that is shown before it has a place takes the focus with it."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            self.shown.append(type(watched).__name__)
        return False


def test_tab_visits_every_control_of_a_page_once_and_shift_tab_goes_back(window: MainWindow, qtbot: QtBot) -> None:
    """By key presses, in the window: editors, tables and browsers may keep the key, and hidden pages the focus."""
    activate(window, qtbot)
    count, windows, application = 0, Windows(), QApplication.instance()
    assert application is not None
    application.installEventFilter(windows)
    for spec in PANELS:
        window.workspaces.go_to(spec.name)
        panel = window.panels[spec.name]
        qtbot.waitUntil(lambda panel=panel: panel.isAncestorOf(window.focusWidget()), timeout=10_000)  # type: ignore[misc]
        there = reached_both_ways(window, qtbot)
        count += len(there)
        offered = {
            widget
            for widget in visible(window)
            if takes_focus(widget) and widget.window() is window and not lies_behind(widget)
        }
        unreached = [described(each) for each in offered - there if each.focusProxy() is None]
        assert not unreached, f"{spec.name}: {unreached}"
    application.removeEventFilter(windows)
    assert count > 200
    assert windows.shown == []


def test_a_page_that_is_chosen_takes_the_focus_and_arrows_move_along_the_rail(window: MainWindow, qtbot: QtBot) -> None:
    """Space pressed twice is one page, and not the next one's button."""
    activate(window, qtbot)
    rail = window.workspaces.rail

    def in_page() -> bool:
        return window.workspaces.current.isAncestorOf(window.focusWidget())

    for key in (Qt.Key.Key_Space, Qt.Key.Key_Return):
        window.workspaces.show_workspace("home")
        qtbot.waitUntil(in_page, timeout=10_000)
        rail.buttons["home"].setFocus(Qt.FocusReason.TabFocusReason)
        QTest.keyClick(rail.buttons["home"], Qt.Key.Key_Down)
        assert window.focusWidget() is rail.buttons["watch"], described(window.focusWidget())
        assert window.workspaces.current.spec.name == "watch"
        QTest.keyClick(rail.buttons["watch"], key)
        qtbot.waitUntil(in_page, timeout=10_000)
        assert window.workspaces.current.spec.name == "watch"
    QTest.mouseClick(rail.buttons["control"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: in_page() and window.workspaces.current.spec.name == "control", timeout=10_000)
    for workspace in ("library", "tune"):
        window.actions_by_name[f"workspace_{workspace}"].trigger()
        qtbot.waitUntil(in_page, timeout=10_000)
        assert window.workspaces.current.spec.name == workspace


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_what_a_key_gave_the_focus_is_framed(window: MainWindow, qtbot: QtBot, mode: theme.Mode) -> None:
    """At one side or the other there is an upright line of the accent, which stands out from every ground."""
    set_theme(window, qtbot, mode)
    activate(window, qtbot)
    looked, unframed = set[QWidget](), []
    accent = luminance(QColor(theme.colours().accent))

    def look(widget: QWidget) -> None:
        if widget in looked:
            return
        looked.add(widget)
        place = place_of(widget, window).adjusted(-2, 0, 2, 0)
        edges = [QRect(x, place.center().y() - 3, 4, 6) for x in (place.left(), place.right() - 3)]
        if not any((abs(luminances(window.grab(edge).toImage()) - accent) < 0.01).any() for edge in edges):
            unframed.append(described(widget))

    for workspace in window.workspaces.by_name:
        window.workspaces.show_workspace(workspace)
        qtbot.waitUntil(lambda: takes_focus(window.focusWidget()), timeout=10_000)
        walk(window, Qt.Key.Key_Tab, look)
    assert len(looked) > 60
    assert not unframed, "\n".join(unframed)


@pytest.fixture
def settings(window: MainWindow, qtbot: QtBot) -> Iterator[SettingsWindow]:
    """Whose size of text is the system's again at the end."""
    window.actions_by_name["settings"].trigger()
    made = window.side_windows.by_name["settings"]
    assert isinstance(made, SettingsWindow)
    yield made
    choose_text_size(made, 0)


def choose_text_size(settings: SettingsWindow, points: int) -> None:
    settings.text_size.setCurrentIndex(settings.text_size.findData(points))
    settings.text_size.activated.emit(settings.text_size.currentIndex())


def small_ones(window: MainWindow) -> set[str]:
    """What has smaller letters than it should at 20 points, one of which may be less on purpose."""
    small = [each for each in window.findChildren(QWidget) if each.font().pointSizeF() < 19]
    return {f"{type(each).__name__} in {type(each.parent()).__name__}" for each in small}


def test_a_size_of_text_is_there_at_once_and_is_kept(
    window: MainWindow, settings: SettingsWindow, qtbot: QtBot
) -> None:
    """Rows, columns and axes of what was made before too; the system's size gives back what was before."""

    def rows() -> dict[str, tuple[int, int]]:
        tables = [table for table in window.findChildren(QTableView) if name_of(table)]
        return {
            name_of(table): (table.verticalHeader().defaultSectionSize(), table.fontMetrics().height())
            for table in tables
        }

    for spec in PANELS:
        window.workspaces.bring(spec.name)
    before, small = rows(), QApplication.font().pointSizeF()
    assert len(before) >= 4
    choose_text_size(settings, 20)
    assert QApplication.font().pointSizeF() == Settings().text_points == 20
    qtbot.waitUntil(lambda: small_ones(window) == set(), timeout=10_000)
    assert [name for name, (row, text) in rows().items() if row < text] == []
    labels = [
        item
        for view in window.findChildren(pg.GraphicsView)
        for item in view.items()
        if isinstance(item, pg.AxisItem) and item.isVisible()
    ]
    assert len(labels) >= 4
    assert [each for each in labels if each.label.font().pointSizeF() < 19] == []
    least = window.minimumSizeHint()
    assert least.width() <= 1280
    assert least.height() <= 720
    choose_text_size(settings, 0)
    assert QApplication.font().pointSizeF() == small
    again = rows()
    assert [name for name, (row, _) in before.items() if abs(again[name][0] - row) > 1] == []


@pytest.mark.parametrize("points", [0, 20])
def test_words_are_whole_or_in_the_tip_in_the_smallest_window(
    window: MainWindow, settings: SettingsWindow, qtbot: QtBot, points: int
) -> None:
    """1280x720: pages may be scrolled, but no label and no button is cut without a tip that has all of it."""
    choose_text_size(settings, points)
    window.resize(1280, 720)
    assert (window.width(), window.height()) == (1280, 720)
    cut, count = [], 0
    for where, root in places(window, qtbot):
        for widget in (*visible(root, QLabel), *visible(root, QAbstractButton)):
            text = str(getattr(widget, "text", str)()).replace("&", "")
            wraps = isinstance(widget, QLabel) and (widget.wordWrap() or widget.textFormat() != Qt.TextFormat.PlainText)
            if not text or wraps:
                continue
            count += 1
            needed = max(widget.fontMetrics().horizontalAdvance(line) for line in text.splitlines())
            if needed > widget.width() and text.partition(" · ")[0][:20] not in widget.toolTip():
                cut.append(f"{where}: {described(widget)}: {needed} px in {widget.width()}")
    assert count > 100
    assert not cut, "\n".join(sorted(set(cut)))


def set_theme(window: MainWindow, qtbot: QtBot, mode: theme.Mode) -> None:
    """And wait for the buttons to have taken over the colours."""
    window.set_theme(mode)
    start, group, role = window.panels["tune"].start, QPalette.ColorGroup.Active, QPalette.ColorRole.Button
    qtbot.waitUntil(lambda: start.palette().color(group, role).name() == theme.colours().raised, timeout=5_000)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_words_can_be_read_on_their_ground(window: MainWindow, qtbot: QtBot, mode: theme.Mode) -> None:
    """Those of what cannot be pressed now too."""
    set_theme(window, qtbot, mode)
    faint, count = [], 0
    for where, root in places(window, qtbot):
        whole = root.grab().toImage()
        for widget in (*visible(root, QLabel), *visible(root, QAbstractButton)):
            text = getattr(widget, "text", str)()
            if not text or widget.visibleRegion().boundingRect() != widget.rect() or widget.height() < 10:
                continue  # nothing to read, or scrolled away in part
            count += 1
            ground = ground_of(whole.copy(place_of(widget, root)))
            group = QPalette.ColorGroup.Active if widget.isEnabled() else QPalette.ColorGroup.Disabled
            colour = over(widget.palette().color(group, widget.foregroundRole()), ground)
            if contrast(colour, ground) < _TEXT:
                faint.append(
                    f"{where}: {described(widget)} {colour.name()} on {ground.name()}: {contrast(colour, ground):.2f}"
                )
    assert count > 100
    assert not faint, "\n".join(faint)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_a_pressed_button_looks_pressed(window: MainWindow, qtbot: QtBot, mode: theme.Mode) -> None:
    """Its ground, or the mark in it, stands out from what it is otherwise."""
    set_theme(window, qtbot, mode)
    alike, count = [], 0
    for where, root in places(window, qtbot):
        for button in visible(root, QAbstractButton):
            if not button.isCheckable() or isinstance(button, (QCheckBox, QRadioButton)):
                continue
            count += 1
            pictures = []
            was, enabled, group = button.isChecked(), button.isEnabled(), button.group()
            action = button.defaultAction() if isinstance(button, QToolButton) else None
            exclusive = [each for each in (group, action.actionGroup() if action is not None else None) if each]
            for each in exclusive:
                each.setExclusive(False)
            target: Any = action if action is not None else button
            button.setEnabled(True)
            for checked in (False, True):
                target.setChecked(checked)
                pictures.append(picture_of(button, root))
            target.setChecked(was)
            button.setEnabled(enabled)
            for each in exclusive:
                each.setExclusive(True)
            if not marked(*pictures):
                alike.append(f"{where}: {described(button)}")
    assert count >= 8
    assert not alike, "\n".join(alike)


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_colours_stand_out_from_their_ground(colours: theme.Colours) -> None:
    for ground in (colours.base, colours.window, colours.raised):
        assert contrast(colours.text, ground) >= 7
        assert contrast(colours.muted, ground) >= _TEXT
    for text, ground in (
        (colours.accent_text, colours.accent),
        (colours.warning_text, colours.warning),
        (colours.badge_text, colours.badge),
    ):
        assert contrast(text, ground) >= _TEXT
    names = [field.name for field in fields(colours)]
    lines = ["accent", *names[names.index("grid") + 1 : names.index("colour_map")]]
    assert {"orange", "sky", "grey", "front", "efficient"} <= set(lines)
    for name in lines:  # words are written in them too: the heads of lanes, the ends of the front
        for ground in (colours.base, colours.window):
            assert contrast(getattr(colours, name), ground) >= _TEXT, name
    scale = [luminance(QColor(each)) for each in colours.colour_map]
    assert scale == sorted(scale)
    for each in colours.colour_map:
        assert contrast(each, colours.base) >= _GRAPHICS, each


def test_every_plot_has_a_name(window: MainWindow, qtbot: QtBot) -> None:
    plots = [(where, view) for where, root in places(window, qtbot) for view in visible(root, pg.GraphicsView)]
    assert len(plots) >= 3
    assert not [where for where, view in plots if not name_of(view)]
