"""Drawing 122,304 results, the GEMM space of [Schoonhoven2024] at seven clocks: python tests/benchmarks/scatter.py

Prints a table of figures beside their targets, in processor time of the thread that draws. `QT_QPA_PLATFORM` decides
where it is drawn; offscreen by default. Never part of the test suite: time does not gate anything.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import numpy as np  # noqa: E402
from fixtures.lab import OBJECTIVE, Lab, plan_for  # noqa: E402
from PySide6.QtCore import QPointF, QRectF, Qt  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from app.engine.results.measurement import Measurement, State  # noqa: E402
from app.engine.space.result_table import ResultTable  # noqa: E402
from app.engine.space.search_space import Parameter, SearchSpace  # noqa: E402
from app.engine.store.database import Store  # noqa: E402
from app.views.front.front_panel import FrontPanel  # noqa: E402
from app.views.front.table_panel import ResultsView  # noqa: E402
from app.views.inspector.chooser_bar import ChooserBar  # noqa: E402
from app.views.shared.settings import Settings  # noqa: E402

POINTS = 122_304
BATCH = 10


@cache
def gemm_like() -> SearchSpace:
    """As many configurations as [Schoonhoven2024]'s GEMM space at seven clocks; the 14 parameters are what costs."""
    kernels = POINTS // 7
    sizes = [4, 4, 3, 3, 3, 3, 2, 2, 4, 4, 2, 2, 2]
    rng = np.random.default_rng(3)
    drawn = np.unique(np.column_stack([rng.integers(0, n, 4 * kernels) for n in sizes]), axis=0)
    kept = drawn[np.sort(rng.permutation(len(drawn))[:kernels])]
    codes = np.column_stack([np.repeat(np.arange(7), kernels), np.tile(kept, (7, 1))]).astype(np.uint16)
    parameters = (
        Parameter("graphics_clock_mhz", tuple(900 + 90 * i for i in range(7)), device_setting=True),
        *(Parameter(f"parameter_{place}", tuple(2**i for i in range(n))) for place, n in enumerate(sizes)),
    )
    return SearchSpace(parameters, codes, cartesian=7 * int(np.prod(sizes)))


def made_up(count: int) -> list[Measurement]:
    """A cloud as sessions give it: speed and efficiency go together, with a front at the upper right."""
    space = gemm_like()
    rng = np.random.default_rng(1)
    speed = 2000 + 9000 * rng.beta(2, 3, count)
    efficiency = speed / (90 + 160 * rng.beta(3, 3, count))
    return [
        Measurement(
            row % space.size,
            space.configuration(row % space.size),
            State.OK,
            {"GFLOP/s": float(speed[row]), "GFLOPS/W": float(efficiency[row]), "power_w": float(speed[row] / 50)},
        )
        for row in range(count)
    ]


def milliseconds(action: Callable[[], object]) -> float:
    """Processor time of this thread, which draws: what it takes on a machine with nothing else to do."""
    started = time.thread_time()
    action()
    return (time.thread_time() - started) * 1e3


def many(times: list[float]) -> str:
    return f"median {statistics.median(times):.2f} ms, worst {max(times):.2f} ms"


def opening(measurements: list[Measurement]) -> list[tuple[str, str, str]]:
    """A stored session of that size, read from disk and shown in scatter and table."""
    space = gemm_like()
    plan = plan_for(space, OBJECTIVE)
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "sessions.sqlite") as store:
        session = store.create_session(plan)
        store.append(session, measurements[:POINTS])
        loaded = []
        gc.collect()
        gc.disable()  # as in the window, where `Collector` collects between two turns of the loop
        read = milliseconds(lambda: loaded.append(store.load(session)))
        lab = Lab()
        panel, view = FrontPanel(lab.context), ResultsView(lab.result)
        for widget in (panel, view):
            widget.resize(900, 600)
            widget.show()

        def show() -> None:
            lab.session(loaded[0].table, plan)
            view.set_session(loaded[0].table, plan)
            panel.grab()
            view.grab()

        shown = milliseconds(show)
        gc.enable()
        for widget in (panel, view):
            widget.close()
            widget.deleteLater()
    return [
        ("open a stored session: read from disk, off Qt's thread", f"{read:.0f} ms", ""),
        ("open a stored session: scatter and table shown", f"{shown:.0f} ms", ""),
        ("open a stored session: both", f"{read + shown:.0f} ms", "1500 ms"),
    ]


def main() -> None:
    application = QApplication([])
    space = gemm_like()
    table = ResultTable(space)
    measurements = made_up(POINTS + 400 * BATCH)
    table.extend(measurements[:POINTS])
    rest = iter(measurements[POINTS:])
    lab = Lab()
    panel, view = FrontPanel(lab.context), ResultsView(lab.result)
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

    rows.append(("scatter: first paint of 122,304 points", f"{milliseconds(first):.0f} ms", "500 ms"))
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
            lambda: panel.plot.hover(
                QPointF(box.left() + rng.uniform() * box.width(), box.top() + rng.uniform() * box.height())
            )
        )
        for _ in range(200)
    ]
    rows.append(("scatter: hover", many(hovered), "16 ms"))
    view_box = panel.plot.getViewBox()
    zoomed, panned = [], []
    for share in np.linspace(0.5, 1.0, 30):
        view_box.setRange(xRange=(2000, 2000 + 9000 * share), padding=0)
        zoomed.append(milliseconds(panel.plot.grab))
    for _ in range(30):
        view_box.translateBy(x=-40.0, y=0.3)
        panned.append(milliseconds(panel.plot.grab))
    panel.plot.show_all()
    rows.append(("scatter: frame while zooming", many(zoomed), "33 ms"))
    rows.append(("scatter: frame while panning", many(panned), "33 ms"))
    brushed = []
    for share in np.linspace(0.1, 1.0, 30):
        dragged = QRectF(20, 20, (box.width() - 40) * share, (box.height() - 40) * share)

        def brush(dragged: QRectF = dragged) -> None:
            panel.plot._box_dragged(dragged, True, False)
            panel.grab()

        brushed.append(milliseconds(brush))
    rows.append(("scatter: a step of brushing, histograms and frame included", many(brushed), "100 ms"))
    lab.result.brush([])
    for name in ("hull", "quadrants", "spread", "energy", "edp"):
        tick = panel.show_menu.ticks[name]
        rows.append(
            (f"scatter: switch on {name}", f"{milliseconds(lambda t=tick: t.setChecked(True)):.1f} ms", "100 ms")
        )
    panned = []
    for _ in range(30):
        view_box.translateBy(x=-40.0, y=0.3)
        panned.append(milliseconds(panel.plot.grab))
    rows.append(("scatter: frame while panning, all overlays on", many(panned), "33 ms"))
    for name in ("hull", "quadrants", "spread", "energy", "edp"):
        panel.show_menu.ticks[name].setChecked(False)
    clocks = panel.bars.histograms[0]
    filtered = milliseconds(lambda: (clocks.toggled.emit(clocks.name, clocks.bars[0].codes), panel.grab()))
    rows.append(("scatter: hide a value", f"{filtered:.1f} ms", "100 ms"))
    panel.bars.show_everything()
    logarithmic = milliseconds(lambda: (panel.figures.x_log.click(), panel.grab()))
    rows.append(("scatter: logarithmic axis", f"{logarithmic:.1f} ms", "100 ms"))
    panel.figures.x_log.click()
    chooser = ChooserBar(lab.context, Settings())
    chosen = milliseconds(lambda: (chooser.choose_by("knee"), panel.grab()))
    rows.append(("scatter: choose the knee", f"{chosen:.1f} ms", "100 ms"))
    chooser.choose_by("weighted")
    slid = []
    for step in range(30):
        slid.append(milliseconds(lambda step=step: (chooser.weight.setValue(step), panel.plot.grab())))
    rows.append(("scatter: a step of the slider", many(slid), "100 ms"))
    colour = panel.figures.colour
    recoloured = milliseconds(lambda: (colour.setCurrentIndex(colour.findData("power_w")), panel.plot.grab()))
    rows.append(("scatter: colour by another figure", f"{recoloured:.1f} ms", "50 ms"))
    shown = milliseconds(lambda: (panel.pages.bar.setCurrentIndex(1), panel.grab()))
    rows.append(("parallel: first paint of 122,304 lines", f"{shown:.0f} ms", "500 ms"))
    parallel = panel.parallel
    assert parallel is not None
    brushed = []
    for share in np.linspace(0.1, 1.0, 20):
        box = parallel.getViewBox().boundingRect()
        dragged = QRectF(box.width() * 0.9, box.top(), box.width() * 0.1, box.height() * share)
        brushed.append(milliseconds(lambda dragged=dragged: (parallel._dragged(dragged, True, False), panel.grab())))
    rows.append(("parallel: a step of brushing, histograms and frame included", many(brushed), "100 ms"))
    lab.result.brush([])
    rows.append(("parallel: what new measurements cost", f"{milliseconds(panel._show_page):.1f} ms", "100 ms"))
    lab.result.select(4000)
    sliced = milliseconds(lambda: (panel.pages.bar.setCurrentIndex(2), panel.grab()))
    rows.append(("slice: first paint", f"{sliced:.1f} ms", "100 ms"))
    panel.pages.bar.setCurrentIndex(0)

    def show_table() -> None:
        view.set_session(table, plan_for(space, OBJECTIVE))
        view.show()
        view.grab()

    rows.append(("table: first paint of 122,304 rows", f"{milliseconds(show_table):.0f} ms", "500 ms"))
    rows.append(("table: append 10", many([add(view) for _ in range(100)]), "10 ms"))
    sort = milliseconds(lambda: (view.sortByColumn(2, Qt.SortOrder.DescendingOrder), view.grab()))
    rows.append(("table: sort", f"{sort:.1f} ms", "200 ms"))
    rows.append(("table: append 10 while sorted", many([add(view) for _ in range(100)]), "50 ms"))
    every = milliseconds(lambda: (view.selectAll(), view.grab()))
    rows.append(("table: mark every row", f"{every:.1f} ms", "100 ms"))
    sort = milliseconds(lambda: (view.sortByColumn(3, Qt.SortOrder.DescendingOrder), view.grab()))
    rows.append(("table: sort, every row marked", f"{sort:.1f} ms", "200 ms"))
    lab.result.brush(range(0, POINTS, 3))
    only = milliseconds(lambda: (view.show_only_marked(True), view.grab()))
    rows.append(("table: only 40,768 marked rows", f"{only:.1f} ms", "200 ms"))
    view.show_only_marked(False)
    rows.append(("table: select a row", f"{milliseconds(lambda: lab.result.select(4711)):.1f} ms", "16 ms"))
    rows += opening(measurements)
    width = max(len(row[0]) for row in rows)
    for what, measured, target in (("", "measured", "target"), *rows):
        print(f"{what:{width}}  {measured:36}  {target}")
    for widget in (panel, view):
        widget.close()
        widget.deleteLater()


if __name__ == "__main__":
    main()
