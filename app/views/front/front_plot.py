"""The scatter's plot: the cloud of measurements, the front through it and its ends, what is brushed and picked.

The Pareto front drawn through the scatter, its points ringed, and its two ends marked and named.

`Pins`: the pinned measurements in the scatter, each ringed and with its letter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFocusEvent, QHideEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from ...engine.analysis.quantities import Quantity, is_efficiency, is_speed
from ..plots.markers import COLOURS, DIM, SHAPES, Styles, colour_scale, dim_colour, dimmed
from ..plots.plot import DENSE, FigureAxis, dress
from ..plots.scatter import PointCloud
from ..shared import theme
from ..shared.current_result import CHOOSE, PIN_NAMES
from ..shared.label import PlainLabel
from ..shared.turns import InParts
from .hover_card import HoverCard
from .labels import LabelLayout, ReferenceMarks, Wish, reference_html
from .overlays import BrushBox, FrontOverlays
from .points import Floats, FrontPoints, Indices

_LEAST_FRONT_PX = 9.0  # of a front point's marker: larger than that of the crowd
_REACH = 400.0  # pixels between an end and its name
_CORNERS = ((0, 0), (1, 0), (0, 1), (1, 1))  # where the key may lie: at the right or the left, at the top or bottom
_HARDLY = 0.01  # of the points
# pyqtgraph's names of our shapes.
_SYMBOLS = dict(zip(SHAPES, ("o", "s", "t1", "d", "t", "p", "x"), strict=True))


class FrontLine(QObject):
    """Draws into a plot. `names` of what is shown: 'front', 'ends'."""

    def __init__(self, plot: pg.PlotWidget) -> None:
        super().__init__(plot)
        self._plot = plot
        self._points: FrontPoints | None = None
        self._titles: tuple[Quantity, Quantity] | None = None
        self._drawn = np.empty(0, dtype=np.int64)
        self._line = pg.PlotCurveItem(antialias=True)
        self._rings, self._ends = (pg.ScatterPlotItem(pxMode=True) for _ in range(2))
        self.labels = [pg.TextItem(fill=None) for _ in range(2)]
        for z, item in enumerate((self._line, self._rings, self._ends)):
            item.setZValue(10 + z)
            plot.addItem(item, ignoreBounds=True)
        for label in self.labels:
            label.setZValue(20)
            plot.addItem(label, ignoreBounds=True)
        self._named: list[pg.TextItem] = []

    def wishes(self) -> Iterator[Wish]:
        """The names of the ends, for the layout of the labels."""
        for label, end in zip(self._named, self._ends_at(), strict=False):
            yield Wish(label, [end[0]], [end[1]], _REACH, leader=True)

    def curve(self) -> tuple[Floats, Floats]:
        """The line that is drawn."""
        x, y = self._line.getData()
        return (np.empty(0), np.empty(0)) if x is None else (x, y)

    def drawn_points(self) -> tuple[Floats, Floats]:
        """Where the front's own markers lie, above the crowd."""
        x, y = self._rings.getData()
        return x[len(x) // 2 :], y[len(y) // 2 :]

    def _ends_at(self) -> list[tuple[float, float]]:
        points = self._points
        if points is None or points.best_x is None or points.best_y is None:
            return []
        return [(float(points.plot_x[index]), float(points.plot_y[index])) for index in (points.best_x, points.best_y)]

    def differs(self, points: FrontPoints) -> bool:
        """The front of these points is another than the one that is drawn."""
        return not np.array_equal(points.front, self._drawn)

    def draw(
        self,
        points: FrontPoints | None,
        titles: tuple[Quantity, Quantity] | None,
        names: AbstractSet[str],
        marker_size: float,
        styles: Styles,
    ) -> None:
        """Draw the front of these points, or none; `styles` are those of all points. Its own lie above the crowd."""
        colours = theme.colours()
        self._points, self._titles = points, titles
        self._drawn = points.front if points is not None else np.empty(0, dtype=np.int64)
        self._line.setPen(pg.mkPen(colours.front, width=1.5))
        self._line.setData([], [])
        self._rings.setData([], [])
        self._ends.setData([])
        self._named = []
        for label in self.labels:
            label.hide()
        if points is None or not len(points.front):
            return
        x, y = points.plot_x[points.front], points.plot_y[points.front]
        if "front" in names:
            self._line.setData(x, y)
            size = max(marker_size, _LEAST_FRONT_PX)
            styles_of_front = styles[points.front]
            self._rings.setData(
                np.tile(x, 2),
                np.tile(y, 2),
                symbol=["o"] * len(x) + [symbol_of(style) for style in styles_of_front],
                size=np.repeat([size + 5, size], len(x)),
                brush=[pg.mkBrush(colours.base)] * len(x) + [pg.mkBrush(colour_of(style)) for style in styles_of_front],
                pen=[pg.mkPen(colours.front, width=1.2)] * len(x) + [pg.mkPen(None)] * len(x),
            )
        if "ends" in names:
            self._draw_ends(points)

    def _draw_ends(self, points: FrontPoints) -> None:
        colours = theme.colours()
        ends = zip((points.best_x, points.best_y), ("star", "d"), (colours.fastest, colours.efficient), strict=True)
        self._ends.setData(
            [
                {
                    "pos": (points.plot_x[at], points.plot_y[at]),
                    "symbol": symbol,
                    "size": 19,
                    "brush": colour,
                    "pen": colours.base,
                }
                for at, symbol, colour in ends
            ]
        )
        self._name_ends(points)

    def _name_ends(self, points: FrontPoints) -> None:
        assert self._titles is not None
        colours = theme.colours()
        ends = ((points.best_x, points.x, colours.fastest), (points.best_y, points.y, colours.efficient))
        for label, described, (at, values, colour) in zip(self.labels, self._titles, ends, strict=True):
            assert at is not None
            label.setText(f"{best_in(described)}: {described.text(float(values[at]))}", QColor(colour))
            ground = QColor(colours.base)
            ground.setAlpha(215)
            label.fill = pg.mkBrush(ground)
            label.show()
        self._named = list(self.labels)
        if points.best_x == points.best_y:
            self.labels[1].hide()
            self._named.pop()
            self.labels[0].setText("best in both", QColor(colours.fastest))


def symbol_of(style: int) -> str:
    """pyqtgraph's symbol for the shape of a style."""
    return _SYMBOLS[SHAPES[int(style) // COLOURS % len(SHAPES)]]


def colour_of(style: int) -> QColor:
    """The colour of a style."""
    colours = theme.colours()
    return dim_colour(colours) if style >= DIM else colour_scale(colours)[int(style) % COLOURS]


def best_in(described: Quantity) -> str:
    """The name of the best in a figure."""
    if is_speed(described.name):
        return "fastest"
    return "most efficient" if is_efficiency(described.name) else f"best {described.label}"


_SIZE = 17.0  # of a ring, pixels
_PIN_REACH = 200.0  # between a ring and its letter


class Pins(QObject):
    """Draws into a plot."""

    def __init__(self, plot: pg.PlotWidget) -> None:
        super().__init__(plot)
        self._points: FrontPoints | None = None
        self.pinned: tuple[int, ...] = ()  # measurements
        self._rings = pg.ScatterPlotItem(pxMode=True)
        self._rings.setZValue(17)
        plot.addItem(self._rings, ignoreBounds=True)
        self.letters = [pg.TextItem(name) for name in PIN_NAMES]
        for letter in self.letters:
            letter.setZValue(22)
            letter.hide()
            plot.addItem(letter, ignoreBounds=True)

    def show_points(self, points: FrontPoints | None) -> None:
        """Draw over other points."""
        self._points = points
        self.draw()

    def set_pinned(self, pinned: tuple[int, ...]) -> None:
        """These measurements are pinned: A, B and C."""
        self.pinned = pinned
        self.draw()

    def places(self) -> list[tuple[int, float, float]]:
        """(which pin, x, y) of those that have a point."""
        if self._points is None:
            return []
        points = [(place, self._points.point_of(index)) for place, index in enumerate(self.pinned)]
        return [
            (place, float(self._points.plot_x[point]), float(self._points.plot_y[point]))
            for place, point in points
            if point is not None
        ]

    def draw(self) -> None:
        """Draw again, in the colours in use."""
        colours, places = theme.colours(), self.places()
        self._rings.setPen(pg.mkPen(colours.vermillion, width=2))
        self._rings.setBrush(None)
        self._rings.setData([x for _, x, _ in places], [y for _, _, y in places], symbol="s", size=_SIZE)
        for letter in self.letters:
            letter.setText(letter.toPlainText(), QColor(colours.vermillion))
            letter.hide()

    def wishes(self) -> Iterator[Wish]:
        """The letters, for the layout of the labels."""
        for place, x, y in self.places():
            yield Wish(self.letters[place], [x], [y], _PIN_REACH, leader=True)


_MARGIN = 0.07  # of the span, left free around the points
_LEAST_PX = 9.0  # of the selected point's marker
_CHOICE_PX = 300.0  # between the chosen point and the words why
_EDGE_PX = 14.0  # a new point that close to the edge makes the picture grow: its marker would be cut off

_WALK: dict[int, Callable[[int | None, int], int]] = {
    Qt.Key.Key_Left: lambda at, count: count - 1 if at is None else at - 1,
    Qt.Key.Key_Right: lambda at, count: 0 if at is None else at + 1,
    Qt.Key.Key_Home: lambda _at, _count: 0,
    Qt.Key.Key_End: lambda _at, count: count - 1,
}


class FrontPlot(pg.PlotWidget, InParts):  # type: ignore[misc]  # pyqtgraph has no types
    """Shows one `FrontPoints`. Click picks, with Ctrl it pins; hovering shows what `describe` returns (rich text).

    A drag marks a rectangle: `brushed` carries the measurements in it, and those given to `mark` stand out. Left and
    right move the cursor along the front, as hovering does; Enter and Space pick its point. Escape removes the mark.
    """

    picked = Signal(int)  # index into the result table
    pinned = Signal(int)  # index into the result table
    brushed = Signal(object)  # indices into the result table

    def __init__(self, describe: Callable[[int], str], parent: QWidget | None = None, *, at_once: bool = True) -> None:
        axes = {side: FigureAxis(side) for side in ("bottom", "left")}
        super().__init__(parent, viewBox=BrushBox(), axisItems=axes, enableMenu=False)
        self._describe = describe
        self._points: FrontPoints | None = None
        self._titles: tuple[Quantity, Quantity] | None = None
        self._follow: Callable[[], None] | None = self.show_all  # new points; None: the user has zoomed
        self._hovered: int | None = None  # the point of the cursor, which mouse and arrow keys move
        self._selected = -1  # a measurement
        self._styles: Styles = np.empty(0, dtype=np.uint16)  # as if nothing were marked
        self._marked = self._marked_before = np.empty(0, dtype=np.int64)  # measurements; before the drag began
        self.begin(at_once)

    def make(self) -> Iterator[None]:
        """What is drawn into the plot, and the words over it."""
        view = self.getViewBox()
        self.hideButtons()
        self.cloud = PointCloud(view, theme.colours())
        self.line = FrontLine(self)
        self.ring, self._hover_ring = (pg.ScatterPlotItem(pxMode=True) for _ in range(2))
        self.choice = pg.TextItem(fill=None)
        for z, item in enumerate((self.ring, self._hover_ring, self.choice)):
            item.setZValue(18 + z)
            self.addItem(item, ignoreBounds=True)
        yield
        self.overlays = FrontOverlays(self)
        self.labels = LabelLayout(self, self.cloud)
        self.labels.lines = self.line.curve
        self.pins = Pins(self)
        self.references = ReferenceMarks(self, self.cloud)
        named = (self.pins, self.references, self.line)
        self.labels.sources = [*(element.wishes for element in named), self._choice_wish, self.overlays.wishes]
        yield
        self.card = HoverCard(self)
        self._key: QWidget | None = None
        self._corner = _CORNERS[0]
        self.note = PlainLabel(parent=self, wrap=True)
        self.note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.note.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Scatter of the measurements; left and right walk along the front, Enter chooses")
        self.scene().sigMouseMoved.connect(self.hover)
        self.scene().sigMouseClicked.connect(self._mouse_clicked)
        view.brushed.connect(self._box_dragged)
        view.sigRangeChangedManually.connect(self._zoomed)
        view.sigResized.connect(self._resized)
        theme.notifier().changed.connect(self.recolour)
        self.recolour()

    # --- what is shown -----------------------------------------------------------------------------------------------

    def show_points(self, points: FrontPoints | None, styles: Styles, titles: tuple[Quantity, Quantity] | None) -> None:
        """Show other points, or none."""
        self._points, self._titles, self._styles = points, titles, styles
        self._leave_point()
        self.references.show_points(points)
        empty = np.empty(0)
        x, y = (points.plot_x, points.plot_y) if points else (empty, empty)
        self.cloud.set_points(x, y, self._with_marks(0))
        for place, axis in enumerate(("bottom", "left")):
            if points is not None and titles is not None:
                self.getAxis(axis).show_quantity(titles[place], log=points.log[place])
        self.show_all()
        self._draw_front()
        self.overlays.show_points(points, titles)
        self.pins.show_points(points)
        self.select(self._selected)

    def add_points(self, styles: Styles) -> None:
        """Show the points that `FrontPoints.update` has just added, in these styles."""
        assert self._points is not None
        start = len(self.cloud)
        self._styles = np.concatenate([self._styles, styles])
        self.cloud.append(self._points.plot_x[start:], self._points.plot_y[start:], self._with_marks(start))
        other_front = self.line.differs(self._points)
        if self._follow is not None and (self._outside(start) or other_front):
            self._follow()
        if other_front:
            self._draw_front()
        self.pins.draw()
        self.labels.changed()

    def set_styles(self, styles: Styles) -> None:
        """Give all points other styles."""
        self._styles = styles
        if self._points is not None:
            self.cloud.set_styles(self._with_marks(0))
            self._draw_front()
            self.select(self._selected)

    def mark(self, rows: Indices) -> None:
        """Let these measurements (ascending) stand out from all others; none: all are alike."""
        self._marked = rows
        self.set_styles(self._styles)

    def _with_marks(self, start: int) -> Styles:
        """Dimmed are those that break a limit and, where some are brushed, the others."""
        styles = self._styles[start:]
        if self._points is None:
            return styles
        if self._points.limits:
            styles = np.where(self._points.within[start:], styles, dimmed(styles))
        if not len(self._marked):
            return styles
        return np.where(self._points.marked(self._marked, start), styles, dimmed(styles))

    def place_key(self, key: QWidget) -> None:
        """Let the key to the colours lie over the plot, where the fewest points are; the mouse passes through it."""
        self._key = key
        key.setParent(self)
        key.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def put_key(self) -> None:
        """Put the key into the corner where it covers the fewest points; it stays where it covers hardly more."""
        key, view = self._key, self.getViewBox()
        area = view.sceneBoundingRect().toRect()
        if key is None or area.isEmpty():
            return
        size = key.sizeHint().boundedTo(QSize(area.width() // 3, area.height() // 2))
        covered = dict.fromkeys(_CORNERS, 0)
        if self._points is not None and len(self._points):
            (left, right), (low, high) = view.viewRange()
            x = (self._points.plot_x - left) / (right - left)
            y = (self._points.plot_y - low) / (high - low)
            wide, tall = size.width() / area.width(), size.height() / area.height()
            inside = (x > 1 - wide, x < wide), (y > 1 - tall, y < tall)
            covered = {corner: int((inside[0][corner[0]] & inside[1][corner[1]]).sum()) for corner in _CORNERS}
        best = min(_CORNERS, key=covered.__getitem__)
        if covered[self._corner] > covered[best] + _HARDLY * len(self.cloud):
            self._corner = best
        at_left, at_bottom = self._corner
        key.setGeometry(
            area.left() + 2 if at_left else area.right() - size.width() - 1,
            area.bottom() - size.height() - 1 if at_bottom else area.top() + 2,
            size.width(),
            size.height(),
        )

    def say(self, note: str) -> None:
        """Show a note in place of points, such as what to do first; empty removes it."""
        self.note.setText(note)
        self.note.setVisible(bool(note))
        for item in (self.getAxis("bottom"), self.getAxis("left")):
            item.setVisible(not note)

    @Slot()
    def show_all(self) -> None:
        """Zoom so that every point is in sight, and what stands beside them, and keep it so."""
        self._follow = self.show_all
        if self._points is not None and len(self._points):
            beside = self.references.places()
            x, y = [x for _, x, _ in beside], [y for _, _, y in beside]
            self._show(np.append(self._points.plot_x, x), np.append(self._points.plot_y, y))

    @Slot()
    def show_front(self) -> None:
        """Zoom so that the points of the front lie as far apart as they can, and keep it so."""
        self._follow = self.show_front
        if self._points is not None:
            front = self._points.front
            self._show(self._points.plot_x[front], self._points.plot_y[front])

    def _show(self, x: Floats, y: Floats) -> None:
        view = self.getViewBox()
        for values, setter, pixels in ((x, self.setXRange, view.width()), (y, self.setYRange, view.height())):
            if not len(values):
                return
            low, high = float(values.min()), float(values.max())
            margin = max(_MARGIN, 1.5 * _EDGE_PX / max(pixels, 8 * _EDGE_PX)) * (high - low) or 0.05 * abs(high) or 1.0
            setter(low - margin, high + margin, padding=0.0)

    @Slot(int)
    def select(self, index: int) -> None:
        """Ring the point of a measurement."""
        self._selected = index
        point = self._points.point_of(index) if self._points is not None and index >= 0 else None
        self._put_ring(self.ring, point)
        if point is not None:  # the marker itself lies above the crowd too
            x, y = self.ring.getData()
            style = int(self._styles[point])
            spot = {"pos": (x[0], y[0]), "symbol": symbol_of(style), "brush": colour_of(style), "pen": None}
            self.ring.addPoints([{**spot, "size": max(self.cloud.marker_size(), _LEAST_PX)}])
        self.choice.setVisible(point is not None)
        self.labels.changed()

    def _choice_wish(self) -> Iterator[Wish]:
        points = self._points
        point = points.point_of(self._selected) if points is not None and self._selected >= 0 else None
        if point is not None and points is not None and self.choice.toPlainText():
            yield Wish(self.choice, [points.plot_x[point]], [points.plot_y[point]], _CHOICE_PX, leader=True)

    def name_choice(self, name: str) -> None:
        """Say beside the ring why that one was chosen; empty: nothing."""
        self.choice.setText(name, QColor(theme.colours().accent))
        ground = QColor(theme.colours().base)
        ground.setAlpha(215 if name else 0)
        self.choice.fill = pg.mkBrush(ground)
        self.select(self._selected)

    @Slot()
    def recolour(self) -> None:
        """Take over the theme's colours."""
        colours = theme.colours()
        dress(self, ("bottom", "left"), density=DENSE)
        self.cloud.set_colours(colours)
        for item, colour in ((self.ring, colours.accent), (self._hover_ring, colours.text)):
            item.setPen(pg.mkPen(colour, width=2))
            item.setBrush(None)
        self.pins.draw()
        self.references.draw()
        self.note.setStyleSheet(f"background: transparent; color: {colours.muted}; padding: 24px;")
        self._draw_front()
        self.overlays.draw()
        self.name_choice(self.choice.toPlainText())

    # --- the front and its ends --------------------------------------------------------------------------------------

    def show_overlays(self, names: frozenset[str]) -> None:
        """Draw just these over the points: see `front_overlays.OVERLAYS`."""
        self.overlays.set_shown(names)
        self.references.set_shown("references" in names)
        if self._follow is not None:
            self._follow()
        self._draw_front()  # and finds places for the labels

    def _draw_front(self) -> None:
        styles = self._with_marks(0)
        self.line.draw(self._points, self._titles, self.overlays.shown, self.cloud.marker_size(), styles)
        self.labels.changed()

    # --- the mouse ---------------------------------------------------------------------------------------------------

    def point_at(self, scene: QPointF) -> int | None:
        """The point at a place of the scene."""
        view = self.getViewBox()
        if not view.sceneBoundingRect().contains(scene):
            return None
        return self.cloud.nearest(view.mapFromScene(scene))

    @Slot(object)
    def hover(self, scene: QPointF) -> None:
        """Show the card of the reference or point at a place of the scene; hide it if there is none."""
        view = self.getViewBox()
        inside = view.sceneBoundingRect().contains(scene)
        reference = self.references.at(view.mapFromScene(scene)) if inside else None
        if reference is not None:
            self._leave_point()
            names = [goal.name for goal in self._points.goals] if self._points is not None else []
            self.card.show_text(reference_html(self.references.references[reference], names))
            self.card.show_at(self.mapToGlobal(self.mapFromScene(scene)))
            return
        point = self.point_at(scene)
        if point is None:
            self._leave_point()
        else:
            self._look_at(point, scene)

    def _look_at(self, point: int, scene: QPointF) -> None:
        """Put the cursor on a point, and its card beside a place of the scene."""
        if point != self._hovered and self._points is not None:
            self._hovered = point
            self._put_ring(self._hover_ring, point)
            index = int(self._points.index[point])
            self.card.show_text(self._describe(index))
            self.setAccessibleDescription(f"Measurement {index + 1}")
        self.card.show_at(self.mapToGlobal(self.mapFromScene(scene)))

    @Slot(object)
    def _mouse_clicked(self, event: object) -> None:
        if event.button() != Qt.MouseButton.LeftButton:  # type: ignore[attr-defined]
            return
        if event.double():  # type: ignore[attr-defined]
            self.show_all()
            return
        point = self.point_at(event.scenePos())  # type: ignore[attr-defined]
        pins = event.modifiers() & Qt.KeyboardModifier.ControlModifier  # type: ignore[attr-defined]
        if point is not None and self._points is not None:
            (self.pinned if pins else self.picked).emit(int(self._points.index[point]))

    @Slot(QRectF, bool, bool)
    def _box_dragged(self, box: QRectF, begins: bool, adds: bool) -> None:
        """Mark what lies in the rectangle, with Ctrl in addition to what was marked when the drag began."""
        if self._points is None:
            return
        if begins:
            self._marked_before = self._marked
            self._leave_point()
        inside = self._points.index[self.cloud.within(box)]
        self.brushed.emit(np.union1d(self._marked_before, inside) if adds else inside)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right move the cursor along the front, Home and End to its ends; Enter and Space pick; P pins;
        F zooms to the front, A to everything."""
        key, points, cursor = event.key(), self._points, self._hovered
        if key == Qt.Key.Key_Escape and len(self._marked):
            self.brushed.emit(np.empty(0, dtype=np.int64))
        elif key == Qt.Key.Key_P:
            self.pinned.emit(self._selected if cursor is None or points is None else int(points.index[cursor]))
        elif key in CHOOSE:
            if cursor is not None and points is not None:
                self.picked.emit(int(points.index[cursor]))
        elif key == Qt.Key.Key_F:
            self.show_front()
        elif key == Qt.Key.Key_A:
            self.show_all()
        elif points is not None and len(points.front) and key in _WALK:
            walk = points.front[np.argsort(points.plot_x[points.front], kind="stable")]
            begun = points.point_of(self._selected) if cursor is None and self._selected >= 0 else cursor
            indices = np.flatnonzero(walk == begun) if begun is not None else walk[:0]
            place = _WALK[key](int(indices[0]) if len(indices) else None, len(walk))
            point = int(walk[min(max(place, 0), len(walk) - 1)])
            at = QPointF(float(points.plot_x[point]), float(points.plot_y[point]))
            self._look_at(point, self.getViewBox().mapViewToScene(at))
        else:
            super().keyPressEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._leave_point()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._leave_point()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._leave_point()

    def _leave_point(self) -> None:
        self._hovered = None
        self._put_ring(self._hover_ring, None)
        self.setAccessibleDescription("")
        self.card.leave()

    @Slot()
    def _zoomed(self, *_: object) -> None:
        self._follow = None

    @Slot()
    def _resized(self, *_: object) -> None:
        """The margins are so many pixels wide."""
        if self._follow is not None:
            self._follow()
        self.put_key()

    def _put_ring(self, item: pg.ScatterPlotItem, point: int | None) -> None:
        if point is None or self._points is None:
            item.setData([], [])
        else:
            size = self.cloud.marker_size() + 9
            item.setData([self._points.plot_x[point]], [self._points.plot_y[point]], symbol="o", size=size)

    def _outside(self, start: int) -> bool:
        """Some point from `start` on lies outside what is in sight, or at its very edge."""
        assert self._points is not None
        view = self.getViewBox()
        for values, (low, high), pixels in (
            (self._points.plot_x[start:], view.viewRange()[0], view.width()),
            (self._points.plot_y[start:], view.viewRange()[1], view.height()),
        ):
            edge = _EDGE_PX / max(pixels, 4 * _EDGE_PX)
            share = (values - low) / (high - low)
            if ((share < edge) | (share > 1 - edge)).any():
                return True
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if hasattr(self, "note"):
            self.note.setGeometry(self.rect())
