"""What a hundred thousand results cost on screen. By hand: python tests/benchmarks/scatter.py

Prints a table of figures beside their targets. `QT_QPA_PLATFORM` decides where it is drawn; offscreen by default. Never
part of the test suite: wall-clock time does not gate anything.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "views")]

import numpy as np  # noqa: E402
from lab import OBJECTIVE, Lab, grid_space, plan_for  # noqa: E402
from PySide6.QtCore import QPointF, Qt  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from app.engine.measurement import Measurement, State  # noqa: E402
from app.engine.results import ResultTable  # noqa: E402
from app.views.front import FrontPanel  # noqa: E402
from app.views.results_table import ResultsView  # noqa: E402

POINTS = 100_000
BATCH = 10


def made_up(count: int) -> list[Measurement]:
    """A cloud as sessions give it: speed and efficiency go together, with a front at the upper right."""
    space = grid_space(25, 2100)
    rng = np.random.default_rng(1)
    speed = 2000 + 9000 * rng.beta(2, 3, count)
    efficiency = speed / (90 + 160 * rng.beta(3, 3, count))
    configurations = [space.configuration(row) for row in range(200)]
    return [
        Measurement(
            row % space.size,
            configurations[row % 200],
            State.OK,
            {"GFLOP/s": float(speed[row]), "GFLOPS/W": float(efficiency[row]), "power_w": float(speed[row] / 50)},
        )
        for row in range(count)
    ]


def milliseconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1e3


def many(times: list[float]) -> str:
    return f"median {statistics.median(times):.2f} ms, worst {max(times):.2f} ms"


def main() -> None:
    application = QApplication([])
    space = grid_space(25, 2100)
    table = ResultTable(space)
    measurements = made_up(POINTS + 400 * BATCH)
    table.extend(measurements[:POINTS])
    rest = iter(measurements[POINTS:])
    lab = Lab()
    panel, view = FrontPanel(lab.context), ResultsView(lab.selection)
    panel.resize(900, 700)
    view.resize(900, 500)
    rows: list[tuple[str, str, str]] = []

    def add(to: FrontPanel | ResultsView) -> float:
        table.extend(next(rest) for _ in range(BATCH))
        return milliseconds(lambda: to.refresh())

    def first() -> None:
        lab.session(table, plan_for(space, OBJECTIVE))
        panel.show()
        panel.grab()

    rows.append(("scatter: first paint of 100,000 points", f"{milliseconds(first):.0f} ms", "500 ms"))
    application.processEvents()
    added, frames = [], []
    for _ in range(100):
        added.append(add(panel))
        frames.append(milliseconds(panel.plot.grab))
    rows.append(("scatter: append 10", many(added), "2 ms"))
    rows.append(("scatter: frame after appending", many(frames), "16 ms"))
    rng = np.random.default_rng(2)
    box = panel.plot.getViewBox().sceneBoundingRect()
    hovered = [
        milliseconds(
            lambda: panel.plot._mouse_moved(
                QPointF(box.left() + rng.uniform() * box.width(), box.top() + rng.uniform() * box.height())
            )
        )
        for _ in range(200)
    ]
    rows.append(("scatter: hover", many(hovered), "16 ms"))
    zoomed = []
    for share in np.linspace(0.5, 1.0, 30):
        panel.plot.getViewBox().setRange(xRange=(2000, 2000 + 9000 * share), padding=0)
        zoomed.append(milliseconds(panel.plot.grab))
    rows.append(("scatter: frame while zooming", many(zoomed), "50 ms"))
    colour = panel.figures.colour
    recoloured = milliseconds(lambda: (colour.setCurrentIndex(colour.findData("power_w")), panel.plot.grab()))
    rows.append(("scatter: colour by another figure", f"{recoloured:.1f} ms", "50 ms"))

    def show_table() -> None:
        view.set_session(table, plan_for(space, OBJECTIVE))
        view.show()
        view.grab()

    rows.append(("table: first paint of 100,000 rows", f"{milliseconds(show_table):.0f} ms", "500 ms"))
    rows.append(("table: append 10", many([add(view) for _ in range(100)]), "10 ms"))
    sort = milliseconds(lambda: (view.sortByColumn(2, Qt.SortOrder.DescendingOrder), view.grab()))
    rows.append(("table: sort", f"{sort:.1f} ms", "50 ms"))
    rows.append(("table: append 10 while sorted", many([add(view) for _ in range(100)]), "50 ms"))
    rows.append(("table: select a row", f"{milliseconds(lambda: lab.selection.select(4711)):.1f} ms", "16 ms"))
    width = max(len(row[0]) for row in rows)
    for what, measured, target in (("", "measured", "target"), *rows):
        print(f"{what:{width}}  {measured:36}  {target}")
    for widget in (panel, view):
        widget.close()
        widget.deleteLater()


if __name__ == "__main__":
    main()
