"""Every control of every panel and window has a name and is reached by the keyboard; all of it fits a laptop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyqtgraph as pg
from fixtures.fakes import FakeGpu, working
from fixtures.widgets import name_of, parents
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QDialog,
    QDockWidget,
    QHeaderView,
    QLineEdit,
    QPlainTextEdit,
    QSlider,
    QTabBar,
    QTextEdit,
    QToolBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.views.shell.window import MainWindow

Open = Callable[..., Any]
_CONTROLS = (
    QAbstractButton,
    QComboBox,
    QAbstractSpinBox,
    QLineEdit,
    QSlider,
    QAbstractItemView,
    QTextEdit,
    QPlainTextEdit,
)


def controls(root: QWidget) -> Iterator[QWidget]:
    """What the user can operate; not the parts that Qt makes inside of other controls."""
    for widget in root.findChildren(QWidget):
        inside = [parent for parent in parents(widget) if isinstance(parent, (*_CONTROLS, QTabBar, QToolBar))]
        of_dock = isinstance(widget.parent(), QDockWidget)  # its own buttons: the View menu does what they do
        is_plot = isinstance(widget, pg.GraphicsView)
        shown = not widget.isHidden()  # one that waits for its words has no name yet
        if (isinstance(widget, _CONTROLS) or is_plot) and shown and not inside and not of_dock:
            yield widget


def described(widget: QWidget) -> str:
    tip = widget.toolTip()[:40]
    return f"{type(widget).__name__} in {type(widget.parentWidget()).__name__} ({tip or widget.objectName()})"


def test_every_control_has_a_name_and_is_reached_by_the_keyboard(qtbot: QtBot, open_program: Open) -> None:
    window: MainWindow = open_program(FakeGpu(working)).window
    with qtbot.waitSignal(window.panels_loaded, timeout=20_000):
        pass
    for name in ("shortcuts", "sensors", "settings", "about", "new_specification", "palette"):
        window.actions_by_name[name].trigger()
    least = window.minimumSizeHint()
    assert least.width() <= 1000, "a laptop's 1366x768 with a panel of its own, and larger letters"
    assert least.height() <= 600
    dialogs = window.findChildren(QDialog)
    assert len(dialogs) >= 4
    assert all(not dialog.isModal() for dialog in dialogs), "nothing waits for them"
    for name in (*window.workspaces.by_name, "tune"):
        window.workspaces.show_workspace(name)
        qtbot.waitUntil(lambda: all(spec.name in set(window.panels) for spec in window.workspaces.current.panels))
    roots: dict[str, QWidget] = {"window": window.centralWidget(), "palette": window.search}
    roots |= {name: dock for name, dock in window.workspaces.docks.items() if dock.isFloating()}
    roots["editor"] = window.side_windows.by_name["editor"]
    roots |= {made.windowTitle() or type(made).__name__: made for made in dialogs}
    nameless, unreached, count = [], [], 0
    for where, root in roots.items():
        for widget in controls(root):
            count += 1
            if not name_of(widget):
                nameless.append(f"{where}: {described(widget)}")
            by_tab = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
            if not by_tab and not isinstance(widget, QHeaderView) and widget is not window.search.found:
                unreached.append(f"{where}: {described(widget)}")
    assert count > 100, "they were all looked at"
    assert not nameless, "\n".join(nameless)
    assert not unreached, "\n".join(unreached)
    window.search.close_it()
    qtbot.waitUntil(lambda: window.panels["control"].rows is not None, timeout=20_000)
    for name in window.panels:
        window.workspaces.bring(name)
    qtbot.wait(50)
    for name, panel in window.panels.items():
        for view in panel.findChildren(pg.GraphicsView):
            assert window.wiring.plot_menus is not None
            assert window.wiring.plot_menus.title_of(view), f"{name} has a plot without a menu"
