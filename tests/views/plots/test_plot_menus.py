"""Any plot copied and saved: the picture, and the figures that are in sight in the axes' own units."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyqtgraph as pg
import pytest
import shiboken6
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QImage
from PySide6.QtWidgets import QMainWindow, QMenu
from pytestqt.qtbot import QtBot

from app.views.front.front_panel import FrontPanel
from app.views.plots.plot import LogAxis
from app.views.plots.plot_export import PlotMenus, as_csv, curves_of
from app.views.shared.panel import end_all


@pytest.fixture
def plot(qtbot: QtBot) -> Iterator[pg.PlotWidget]:
    widget = pg.PlotWidget()
    widget.setLabel("bottom", "Clock", units="")
    widget.setLabel("left", "Power<br>(W)")
    widget.plot([1.0, 2.0, 3.0], [10.0, 20.0, 30.0], name="measured")
    widget.addItem(pg.ScatterPlotItem([2.5], [25.0]))
    widget.plot([1.0, 2.0], [11.0, 12.0], name="hidden").hide()
    widget.setXRange(1.5, 3.5, padding=0)
    widget.setYRange(0, 40, padding=0)
    widget.resize(300, 200)
    widget.show()
    yield widget
    if shiboken6.isValid(widget):
        shiboken6.delete(widget)  # pyqtgraph's own `close` stumbles where the mouse was over it


@pytest.fixture
def menus(qtbot: QtBot, plot: pg.PlotWidget) -> Iterator[PlotMenus]:
    window = QMainWindow()
    window.setCentralWidget(plot)
    window.show()
    made = PlotMenus(window, lambda: "sgemm on A100 (simulated)")
    made.adopt(window, "Model")
    yield made
    end_all(made)
    shiboken6.delete(window)


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(line for line in io.StringIO(text) if not line.startswith("#")))


def test_the_figures_are_those_in_sight(plot: pg.PlotWidget) -> None:
    text = as_csv(curves_of(plot), ["simulated"])
    assert text.startswith("# simulated\n")
    assert rows(text) == [
        ["curve", "Clock", "Power (W)"],
        ["measured", "2", "20"],
        ["measured", "3", "30"],
        ["points 2", "2.5", "25"],
    ]


def test_logarithmic_axes_tell_values(qtbot: QtBot) -> None:
    axes = {"left": LogAxis("left", factor=1e-3), "bottom": LogAxis("bottom", base=2)}
    widget = pg.PlotWidget(axisItems=axes)
    qtbot.addWidget(widget)
    widget.plot(np.log10([1.0, 8.0]), np.log10([0.25, 0.5]))
    widget.autoRange()
    [curve] = curves_of(widget)
    assert curve.x == pytest.approx([1, 8])
    assert curve.y == pytest.approx([250, 500])


def test_the_front_tells_every_point(qtbot: QtBot) -> None:
    lab, space = Lab(), grid_space(4, 4)
    panel = FrontPanel(lab.context)
    qtbot.addWidget(panel)
    panel.resize(500, 500)
    panel.show()
    table = filled(space)
    lab.session(table, plan_for(space, OBJECTIVE))
    panel.refresh()
    good = np.isfinite(table.values("GFLOP/s"))
    found = max(curves_of(panel.plot), key=lambda curve: len(curve.x))
    assert sorted(found.x.tolist()) == pytest.approx(sorted(table.values("GFLOP/s")[good].tolist()))
    assert found.x_title.startswith("GFLOP/s")


def test_a_view_that_shows_something_else_says_of_what_itself(menus: PlotMenus) -> None:
    apart = pg.PlotWidget()
    holder = QMainWindow()
    holder.setCentralWidget(apart)
    menus.adopt(holder, "Roofline", lambda: "NVIDIA H200 · FP64 (simulated)")
    menus.copy_figures(apart)
    assert "Roofline · NVIDIA H200 · FP64 (simulated)" in QGuiApplication.clipboard().text()
    assert "sgemm" not in QGuiApplication.clipboard().text()
    shiboken6.delete(holder)


def test_what_is_copied_and_written(qtbot: QtBot, plot: pg.PlotWidget, menus: PlotMenus, tmp_path: Path) -> None:
    menus.copy_figures(plot)
    assert "# Model · sgemm on A100 (simulated)" in QGuiApplication.clipboard().text()
    menus.copy_picture(plot)
    assert QGuiApplication.clipboard().image().width() == 2 * plot.width()
    for kind in ("png", "svg", "csv"):
        with qtbot.waitSignal(menus.said, timeout=5000):
            menus.write(plot, tmp_path / f"out.{kind}")
    picture = QImage(str(tmp_path / "out.png"))
    colours = {picture.pixelColor(x, y).name() for x in range(0, picture.width(), 3) for y in range(0, 400, 3)}
    assert len(colours) > 5, "something is drawn on it"
    svg = (tmp_path / "out.svg").read_text()
    assert "sgemm on A100 (simulated)" in svg
    paths = [element for element in ET.fromstring(svg).iter() if element.tag.endswith(("path", "polyline"))]
    assert len(paths) > 5, "curves stay curves"
    assert rows((tmp_path / "out.csv").read_text())[1] == ["measured", "2", "20"]
    with qtbot.waitSignal(menus.failed, timeout=5000):
        menus.write(plot, tmp_path / "no such folder" / "out.png")
    with qtbot.waitSignal(menus.failed, timeout=5000):
        menus.write(plot, tmp_path / "out.doc")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.png", "out.svg"]


def test_the_menu_comes_by_click_and_by_key(qtbot: QtBot, plot: pg.PlotWidget, menus: PlotMenus) -> None:
    def shown() -> list[str]:
        menu = menus.menu
        return [action.text().replace("&", "") for action in menu.actions() if action.text()] if menu else []

    key = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(5, 5), plot.mapToGlobal(QPoint(5, 5)))
    QGuiApplication.sendEvent(plot, key)
    assert shown() == ["Copy picture", "Copy figures", "Save as PNG…", "Save as SVG…", "Save figures as CSV…"]
    first = menus.menu
    assert isinstance(first, QMenu)
    first.close()
    qtbot.mouseClick(plot.viewport(), Qt.MouseButton.RightButton, pos=QPoint(150, 100))
    assert menus.menu is not first
    assert len(shown()) == 5
    assert not plot.getViewBox().menuEnabled(), "pyqtgraph's own does not come too"
    menus.menu.close()  # type: ignore[union-attr]
