"""A program of its own that opens and closes the window several times on a screen of a given size, for the tests.

`starts.py WIDTHxHEIGHT[+WIDTHxHEIGHT…] STARTS [WISH…]` prints, as JSON, what each start looked like. Wishes for the
first start: `maximised`, `dragged` (the edge of the traces, by 75 pixels), `closed` (one panel), `panels` (every one
was in front), `moved` (to the second screen, six panels beside one another).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.views.shell.window import MainWindow


def place_of(window: MainWindow) -> dict[str, Any]:
    """Where the window and what is in it lie."""
    available, frame = window.screen().availableGeometry(), window.frameGeometry()
    centre = window.centralWidget()
    return {
        "on_screen": available.contains(frame),
        "maximised": window.isMaximized(),
        "window": window.geometry().getRect(),
        "traces": (centre.x(), centre.y(), centre.width(), centre.height()),
        "docks": {
            name: dock.geometry().getRect() for name, dock in window.docks.items() if not dock.visibleRegion().isEmpty()
        },
        "closed": sorted(name for name, dock in window.docks.items() if dock.isHidden()),
    }


def settled(window: MainWindow) -> dict[str, Any]:
    """Where everything lies as soon as nothing moves any more."""
    from PySide6.QtTest import QTest

    before: dict[str, Any] = {}
    while not before.get("docks") or before != place_of(window):
        before = place_of(window)
        QTest.qWait(50)
    return before


def main(screens: str, starts: int, *wishes: str) -> None:
    sizes = [tuple(map(int, each.split("x"))) for each in screens.split("+")]
    lefts = [sum(width for width, _ in sizes[:at]) for at in range(len(sizes))]
    described = [
        {"name": f"screen{left}", "x": left, "y": 0, "width": width, "height": height, "dpr": 1}
        | {"logicalDpi": 96, "logicalBaseDpi": 96}
        for left, (width, height) in zip(lefts, sizes, strict=True)
    ]
    folder = Path(os.environ["WATTRIDGE_DATA"])
    folder.mkdir(exist_ok=True)
    file = folder / "screens.json"
    file.write_text(
        json.dumps({"synchronousWindowSystemEvents": False, "windowFrameMargins": True, "screens": described})
    )
    os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={file}"

    from PySide6.QtCore import QPoint, Qt
    from PySide6.QtTest import QSignalSpy, QTest

    from app.views.shell.app import Program, application
    from app.views.watched_board import watched_gpu

    application()
    seen = []
    for start in range(starts):
        program = Program(watched_gpu("simulated:a100"))
        window = program.window
        settled(window)
        if start == 0:
            if "maximised" in wishes:
                window.showMaximized()
                settled(window)
            if "dragged" in wishes:  # the edge between traces and docks
                edge = QPoint(window.centralWidget().geometry().right() + 3, window.height() // 2)
                QTest.mousePress(window, Qt.MouseButton.LeftButton, pos=edge)
                for x in range(5, 80, 5):
                    QTest.mouseMove(window, edge + QPoint(x, 0))
                    QTest.qWait(5)
                QTest.mouseRelease(window, Qt.MouseButton.LeftButton, pos=edge + QPoint(75, 0))
            if "closed" in wishes:
                window.docks["roofline"].close()
            if "moved" in wishes:
                window.setGeometry(sizes[0][0] + 100, 100, sizes[1][0] - 200, sizes[1][1] - 200)
                for dock in list(window.docks.values())[:6]:
                    window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock, Qt.Orientation.Horizontal)
            if "panels" in wishes:
                assert window.panels or QSignalSpy(window.panels_loaded).wait(30_000)
                for name in window.docks:
                    window.dock_area.bring(name)
                    settled(window)
        seen.append(settled(window))
        program.close()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
