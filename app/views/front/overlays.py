"""What can be drawn over the scatter: hull, quadrants with counts, spread, lines of equal energy and of equal EDP.

Each is switched on by name; only what is on is computed.

`BrushBox`: a plot's inside in which a drag marks a rectangle; Shift or the right button moves, the wheel zooms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QObject, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QGraphicsRectItem

from ...base.formatting import count_text
from ...engine.analysis.iso_lines import Product, iso_lines, role_of, slope
from ...engine.analysis.plane import Quadrants, convex_hull, quadrants, spread_at
from ...engine.analysis.quantities import Quantity
from ...engine.analysis.tradeoff import percent_words
from ..plots.plot import Box
from ..shared import theme
from .labels import Wish
from .points import Floats, FrontPoints, Indices


class BrushBox(Box):
    """As in the monitor: drag marks, Shift or right drag moves."""

    brushed = Signal(QRectF, bool, bool)  # in the box's own pixels; a drag begins; add to what was marked before it

    def __init__(self) -> None:
        super().__init__()
        self._rectangle = QGraphicsRectItem(self)
        self._rectangle.setZValue(1e6)
        self._rectangle.hide()

    def mouseDragEvent(self, ev: Any, axis: int | None = None) -> None:
        """pyqtgraph's hook."""
        moves = ev.button() != Qt.MouseButton.LeftButton or ev.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if moves or axis is not None:
            self._pan(ev)
            return
        ev.accept()
        box = QRectF(ev.buttonDownPos(), ev.pos()).normalized().intersected(self.boundingRect())
        colours = theme.colours()
        fill = QColor(colours.accent)
        fill.setAlpha(30)
        self._rectangle.setPen(pg.mkPen(colours.accent, width=1))
        self._rectangle.setBrush(fill)
        self._rectangle.setRect(box)
        self._rectangle.setVisible(not ev.isFinish())
        self.brushed.emit(box, ev.isStart(), bool(ev.modifiers() & Qt.KeyboardModifier.ControlModifier))

    def _pan(self, ev: Any) -> None:
        ev.accept()
        before, now = self.mapToView(ev.lastPos()), self.mapToView(ev.pos())
        self.translateBy(x=before.x() - now.x(), y=before.y() - now.y())
        self.sigRangeChangedManually.emit(self.state["mouseEnabled"])


_FACTORS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
_TRIES = 8  # places along a line at which its label may stand
_BESIDE_PX = 24.0  # ... so far from it
_REACH = 0.5  # of the points' span beyond which no line of equal energy is drawn


@dataclass(frozen=True, slots=True)
class Overlay:
    """One of what can be shown."""

    name: str
    text: str  # in the menu; '&' marks the mnemonic
    tip: str
    at_first: bool = False


OVERLAYS: tuple[Overlay, ...] = (
    Overlay("front", "&Pareto front", "What no other configuration beats in both figures", at_first=True),
    Overlay("ends", "&Ends, named", "The best in either figure, with its value", at_first=True),
    Overlay(
        "references",
        "&Library and floor",
        "What an operator takes by the vendor's library, and what the board's energy roofline lets it take at least",
        at_first=True,
    ),
    Overlay("hull", "Convex &hull", "The tightest convex outline of all points"),
    Overlay("quadrants", "&Quadrants", "Cut by the best in either figure; how many lie where"),
    Overlay("spread", "&Spread", "How far the points spread where one figure is held at that of the other's best"),
    Overlay("energy", "Equal ener&gy", "Lines along which the work takes the same energy"),
    Overlay("edp", "Equal E&DP", "Lines along which energy times time is the same"),
)


class FrontOverlays(QObject):
    """Draws into a plot; `show_points` and `set_shown` say what. Of straight lines where both axes are logarithmic."""

    def __init__(self, plot: pg.PlotWidget) -> None:
        super().__init__(plot)
        self._plot = plot
        self._points: FrontPoints | None = None
        self._titles: tuple[Quantity, Quantity] | None = None
        self.items: list[pg.GraphicsObject] = []
        self._pinned: list[tuple[pg.TextItem, Floats, Floats]] = []  # labels that stand beside a line
        self._corners: list[tuple[pg.TextItem, float, float]] = []  # labels in a corner: 0 or 1 of width and height
        self.shown: frozenset[str] = frozenset()
        self.quadrants: Quadrants | None = None
        self._hull: tuple[int, Indices] | None = None  # of how many points, and its corners
        self._cut: tuple[int, Quadrants | None] | None = None

    def show_points(self, points: FrontPoints | None, titles: tuple[Quantity, Quantity] | None) -> None:
        """Draw over these points."""
        self._points, self._titles, self._hull, self._cut = points, titles, None, None
        self.draw()

    def set_shown(self, names: Iterable[str]) -> None:
        """Switch what is shown."""
        self.shown = frozenset(names)
        self.draw()

    @Slot()
    def draw(self) -> None:
        """Draw again what is switched on."""
        for item in self.items:
            self._plot.removeItem(item)
        self.items, self._pinned, self._corners, self.quadrants = [], [], [], None
        points = self._points
        if points is None or not len(points.front) or not self.shown - {"front", "ends", "references"}:
            return
        colours = theme.colours()
        if "hull" in self.shown:
            hull = self._hull_of(points)
            ring = np.append(hull, hull[:1])
            self._line(points.x[ring], points.y[ring], colours.purple, Qt.PenStyle.SolidLine)
        if "quadrants" in self.shown:
            self._draw_quadrants(points)
        if "spread" in self.shown:
            self._draw_spread(points, self._hull_of(points))
        if "energy" in self.shown:
            self._draw_equal(points, Product.ENERGY, "energy", colours.green, Qt.PenStyle.DashLine)
        if "edp" in self.shown:
            self._draw_equal(points, Product.EDP, "EDP", colours.orange, Qt.PenStyle.DotLine)

    # --- one of them each --------------------------------------------------------------------------------------------

    def _draw_quadrants(self, points: FrontPoints) -> None:
        up = [goal.maximise for goal in points.goals]
        if self._cut is None or self._cut[0] != len(points):
            self._cut = len(points), quadrants(np.column_stack([points.x, points.y]), up)
        found = self.quadrants = self._cut[1]
        if found is None:
            return
        colours = theme.colours()
        across, along = points.placed(np.array([found.x_line]), np.array([found.y_line]))
        for position, angle in ((across[0], 90), (along[0], 0)):
            line = pg.InfiniteLine(position, angle, pen=pg.mkPen(QColor(colours.muted), width=1))
            self._add(line, 3)
        counts = ((found.both, 1, 1), (found.x_only, 1, 0), (found.y_only, 0, 1), (found.neither, 0, 0))
        for count, better_x, better_y in counts:
            text = f"{count_text(count)} · {found.percent(count):.1f} %"
            corner_x = better_x if up[0] else 1 - better_x
            corner_y = better_y if up[1] else 1 - better_y
            self._corners.append((self._label(text, colours.muted), float(corner_x), float(corner_y)))

    def _hull_of(self, points: FrontPoints) -> Indices:
        if self._hull is None or self._hull[0] != len(points):
            self._hull = len(points), convex_hull(points.x, points.y)
        return self._hull[1]

    def _draw_spread(self, points: FrontPoints, hull: Indices) -> None:
        """At the speed of the most efficient, and at the efficiency of the fastest: from the worst to the best."""
        colours = theme.colours()
        assert points.best_x is not None
        assert points.best_y is not None
        x, y = points.x[hull], points.y[hull]
        for held, other, at, colour, vertical in (
            (x, y, points.x[points.best_y], colours.efficient, True),
            (y, x, points.y[points.best_x], colours.fastest, False),
        ):
            spread = spread_at(held, other, float(at))
            if spread is None:
                continue
            ends = np.array([spread.low, spread.high])
            level = np.array([spread.at, spread.at])
            self._line(*((level, ends) if vertical else (ends, level)), colour, Qt.PenStyle.SolidLine, width=3)
            label = self._label(f"spread {percent_words(spread.share)}", colour)
            middle = np.array([spread.low + 0.15 * (spread.high - spread.low)])  # away from the named ends
            placed = points.placed(*((level[:1], middle) if vertical else (middle, level[:1])))
            self._pinned.append((label, placed[0], placed[1]))

    def _draw_equal(self, points: FrontPoints, product: Product, word: str, colour: str, style: Qt.PenStyle) -> None:
        """Through the least of all and a few multiples of it."""
        roles = tuple(role_of(goal.name) for goal in points.goals)
        if roles[0] is None or roles[1] is None:
            return
        spans = [_span_around(values) for values in (points.x, points.y)]
        through = _least(points, product)
        if through is None:
            return
        for line in iso_lines(
            product, roles[0], roles[1], through=through, x_span=spans[0], y_span=spans[1], factors=_FACTORS
        ):
            self._line(line.x, line.y, colour, style)
            text = f"least {word}" if line.factor == 1.0 else f"{word} +{(line.factor - 1) * 100:.0f} %"
            self._pinned.append((self._label(text, colour), *points.placed(line.x, line.y)))

    def determines(self, product: Product) -> bool:
        """The two figures on the axes determine this product."""
        roles = [role_of(goal.name) for goal in self._points.goals] if self._points is not None else [None, None]
        return roles[0] is not None and roles[1] is not None and slope(product, roles[0], roles[1]) is not None

    # --- details -----------------------------------------------------------------------------------------------------

    def _line(self, x: Floats, y: Floats, colour: str, style: Qt.PenStyle, width: float = 1.0) -> None:
        assert self._points is not None
        pen = pg.mkPen(QColor(colour), width=width, style=style)
        self._add(pg.PlotCurveItem(*self._points.placed(x, y), pen=pen, antialias=True), 4)

    def _label(self, text: str, colour: str) -> pg.TextItem:
        ground = QColor(theme.colours().base)
        ground.setAlpha(200)
        label = pg.TextItem(text, color=QColor(colour), fill=pg.mkBrush(ground))
        self._add(label, 15)
        return label

    def _add(self, item: pg.GraphicsObject, z: float) -> None:
        item.setZValue(z)
        self._plot.addItem(item, ignoreBounds=True)
        self.items.append(item)

    def wishes(self) -> Iterator[Wish]:
        """Counts in their corners, and a label beside each line, as far along it as there is room."""
        view = self._plot.getViewBox()
        (x0, x1), (y0, y1) = view.viewRange()
        corner_reach = 0.25 * min(view.width(), view.height())
        for label, across, up in self._corners:
            yield Wish(label, [x1 if across else x0], [y1 if up else y0], corner_reach)
        for label, x, y in self._pinned:
            xs = np.linspace(x[0], x[-1], 200) if x[0] != x[-1] else np.full(200, x[0])
            ys = np.interp(xs, x, y) if x[0] != x[-1] else np.linspace(y.min(), y.max(), 200)
            inside = np.flatnonzero((xs > x0) & (xs < x1) & (ys > y0) & (ys < y1))[::-1]
            some = inside[:: max(1, len(inside) // _TRIES)]
            yield Wish(label, xs[some], ys[some], _BESIDE_PX)


def _span_around(values: Floats) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    room = _REACH * ((high - low) or abs(high) or 1.0)
    return max(low - room, low / 4 if low > 0 else 0.0), high + room


def _least(points: FrontPoints, product: Product) -> tuple[float, float] | None:
    """The point whose product is the least, from the powers of time and energy that the two figures are."""
    roles = [role_of(goal.name) for goal in points.goals]
    if roles[0] is None or roles[1] is None:
        return None
    (a, b), (c, d), (m, n) = roles[0].value, roles[1].value, product.value
    det = a * d - b * c
    positive = (points.x > 0) & (points.y > 0)
    if not det or not positive.any():
        return None
    u, w = (m * d - n * c) / det, (a * n - b * m) / det
    log_product = u * np.log(np.where(positive, points.x, 1.0)) + w * np.log(np.where(positive, points.y, 1.0))
    index = int(np.where(positive, log_product, np.inf).argmin())
    return float(points.x[index]), float(points.y[index])
