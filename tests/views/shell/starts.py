"""The program's window opened and closed several times on screens of a given size, for the tests.

Run `looks` in a process of its own: Qt asks for its screens once. It returns what each start looked like. What is
wished for at a start, before it is looked at: `maximised`, `dragged` (the edges of the docks in Watch, of Inspector and
strip in Tune), `closed` (one panel), `moved` (to the second screen, docks beside one another), `tune` (the workspace in
which it is closed).
"""

from __future__ import annotations

import faulthandler
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.views.shell.window import MainWindow


def place_of(window: MainWindow) -> dict[str, Any]:
    """Where the window and what is in sight lie."""
    available, frame = window.screen().availableGeometry(), window.frameGeometry()
    places = window.workspaces
    centre = places.current.centralWidget()
    docks = places.current.docks.by_name
    return {
        "on_screen": available.contains(frame),
        "maximised": window.isMaximized(),
        "window": window.geometry().getRect(),
        "workspace": places.current.spec.name,
        "centre": (centre.x(), centre.y(), centre.width(), centre.height()),
        "docks": {
            name: dock.geometry().getRect() for name, dock in docks.items() if not dock.visibleRegion().isEmpty()
        },
        "scrolled": sorted(
            name
            for name, page in places.current.pages.items()
            if not page.visibleRegion().isEmpty() and page.horizontalScrollBar().maximum() > 0
        ),
        "closed": sorted(name for name, dock in docks.items() if dock.isHidden()),
        "inspector": places.inspector.width() if places.shows_inspector else 0,
        "strip": window.traces.strip.height() if places.shows_strip else 0,
    }


def settled(window: MainWindow) -> dict[str, Any]:
    """Where everything lies as soon as nothing moves any more."""
    from PySide6.QtTest import QTest

    before: dict[str, Any] = {}
    while not before or before != place_of(window):
        before = place_of(window)
        QTest.qWait(50)
    return before


def everywhere(window: MainWindow) -> dict[str, Any]:
    """The window as it opened, and each workspace, with all of its panels; the first one is in sight again then."""
    from PySide6.QtTest import QSignalSpy

    first, seen = settled(window), {}
    for name, workspace in window.workspaces.by_name.items():
        spy = QSignalSpy(window.workspaces.settled)
        window.workspaces.show_workspace(name)
        while not all(window.panels.has(spec.name) for spec in workspace.panels):
            spy.wait(100)
        seen[name] = settled(window)
    window.workspaces.show_workspace(first["workspace"])
    return {"first": first["workspace"], "workspaces": seen}


def looks(folder: Path, screens: str, starts: Sequence[tuple[str, ...]]) -> list[Any]:
    """The window at each start, on screens such as '1366x768+2560x1440'; `starts` has the wishes of each."""
    faulthandler.enable()
    os.environ["WATTRIDGE_DATA"] = str(folder)
    sizes = [tuple(map(int, each.split("x"))) for each in screens.split("+")]
    lefts = [sum(width for width, _ in sizes[:at]) for at in range(len(sizes))]
    described = [
        {"name": f"screen{left}", "x": left, "y": 0, "width": width, "height": height, "dpr": 1}
        | {"logicalDpi": 96, "logicalBaseDpi": 96}
        for left, (width, height) in zip(lefts, sizes, strict=True)
    ]
    folder.mkdir(exist_ok=True)
    file = folder / "screens.json"
    file.write_text(
        json.dumps({"synchronousWindowSystemEvents": False, "windowFrameMargins": True, "screens": described})
    )
    os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={file}"

    from PySide6.QtCore import QPoint, Qt
    from PySide6.QtTest import QTest
    from PySide6.QtWidgets import QWidget

    from app.views.shared.watched_boards import watched_gpu
    from app.views.shell.app import Program, application

    def drag(widget: QWidget, edge: QPoint, by: QPoint) -> None:
        begin = widget.mapToGlobal(edge)  # a handle moves with the mouse
        QTest.mousePress(widget, Qt.MouseButton.LeftButton, pos=edge)
        for step in range(1, 16):
            QTest.mouseMove(widget, widget.mapFromGlobal(begin + by * (step / 15)))
            QTest.qWait(5)
        QTest.mouseRelease(widget, Qt.MouseButton.LeftButton, pos=widget.mapFromGlobal(begin + by))

    application()
    seen = []
    for wishes in starts:
        program = Program(watched_gpu("simulated:a100"))
        window = program.window
        while not window.panels.has("tune"):  # in short turns: other threads do not run while Qt waits
            application().processEvents()
            time.sleep(0.01)
        places = window.workspaces
        settled(window)
        if "maximised" in wishes:
            window.showMaximized()
            settled(window)
        if "moved" in wishes:
            window.setGeometry(sizes[0][0] + 100, 100, sizes[1][0] - 200, sizes[1][1] - 200)
        if wishes:
            everywhere(window)  # all panels are there
        watch, tune = places.by_name["watch"], places.by_name["tune"]
        if "dragged" in wishes:
            drag(watch, QPoint(watch.centralWidget().geometry().right() + 3, watch.height() // 2), QPoint(75, 0))
            settled(window)
            places.show_workspace("tune")
            settled(window)
            for splitter in places.splitters:
                drag(splitter.handle(1), QPoint(2, 2), QPoint(-30, -30))
            settled(window)
        if "closed" in wishes:
            places.docks["boards"].close()
        if "moved" in wishes:
            for dock in places.by_name["watch"].docks.by_name.values():
                watch.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock, Qt.Orientation.Horizontal)
            tune.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, places.docks["tune"])
        if wishes:
            places.show_workspace("tune" if "tune" in wishes else "watch")
        seen.append(everywhere(window))
        program.close()
    return seen
