"""The line that names kernel, board and session stands once on a page: in the bar over every one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyqtgraph as pg
from fixtures.lab import OBJECTIVE, filled, grid_space, plan_for, progress, ready
from PySide6.QtWidgets import (
    QAbstractButton,
    QDockWidget,
    QGroupBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QTabBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.engine.results.state import SessionState
from app.engine.session import events
from app.views.shell.app import Program
from app.views.shell.panels import PANELS

Open = Callable[..., Program]
NAMES = ("kernel of Ada", "GPU 70")


def texts(window: QWidget) -> Iterator[str]:
    """All that can be read in it without the mouse, the titles of plots among it."""
    for widget in [window, *window.findChildren(QWidget)]:
        if widget.visibleRegion().isEmpty():
            continue
        match widget:
            case QLabel() | QLineEdit() | QAbstractButton():
                yield widget.text()
            case QGroupBox():
                yield widget.title()
            case QDockWidget():
                yield widget.windowTitle()
            case QPlainTextEdit():
                yield widget.toPlainText()
            case QTabBar():
                yield from (widget.tabText(tab) for tab in range(widget.count()))
            case pg.PlotWidget():
                items = widget.scene().items()
                yield from (item.text for item in items if isinstance(item, pg.LabelItem) and item.isVisible())


def test_the_line_of_the_result_stands_once_on_every_page(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program())
    table = filled(grid_space())
    plan = plan_for(table.space, OBJECTIVE, title=NAMES[0], gpu=NAMES[1])
    window.bridge.deliver(events.SessionStarted(1, plan, table))
    window.bridge.deliver(events.SessionChanged(progress(table, SessionState.DONE, best=9)))
    for spec in PANELS:
        window.workspaces.go_to(spec.name)
        qtbot.waitUntil(lambda name=spec.name: name in window.panels, timeout=20_000)
        qtbot.waitUntil(lambda name=spec.name: not window.panels[name].visibleRegion().isEmpty(), timeout=20_000)
        lines = [text for text in texts(window) if all(name in text for name in NAMES)]
        assert lines == [f"Result: {window.result.caption}"], spec.name
