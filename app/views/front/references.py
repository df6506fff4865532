"""`ReferenceMarks`: the vendor's library and the roofline's floor in the scatter, marked, named and hovered as no
configuration is."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QObject, QPointF
from PySide6.QtGui import QColor

from ...engine.analysis.quantities import Quantity, quantity
from ...engine.session.references import Kind, Reference
from ..plots.colour_key import KeyMark
from ..plots.scatter import PointCloud
from ..shared import theme
from .labels import Wish
from .points import FrontPoints

_SIZE = 17.0  # of a mark, pixels
_REACH = 300.0  # between a mark and its name
_NEAR = 11.0  # pixels within which the pointer means a mark
_USUAL = ("time_s", "energy_j", "power_w")
_LINE = 58  # characters of a line of the note
_SYMBOLS = {Kind.LIBRARY: "h", Kind.FLOOR: "crosshair"}  # pyqtgraph's
_COLOURS = {Kind.LIBRARY: "blue", Kind.FLOOR: "purple"}  # of the theme


class ReferenceMarks(QObject):
    """Draws into a plot."""

    def __init__(self, plot: pg.PlotWidget, cloud: PointCloud) -> None:
        super().__init__(plot)
        self._plot = plot
        self._cloud = cloud
        self._points: FrontPoints | None = None
        self._shown = True
        self.references: tuple[Reference, ...] = ()
        self.marks = pg.ScatterPlotItem(pxMode=True)
        self.marks.setZValue(16)
        plot.addItem(self.marks, ignoreBounds=True)
        self.labels: list[pg.TextItem] = []

    def set_references(self, references: Sequence[Reference]) -> None:
        """Other ones, or none."""
        for label in self.labels:
            self._plot.removeItem(label)
        self.references = tuple(references)
        self.labels = [pg.TextItem(each.label) for each in references]
        for label in self.labels:
            label.setZValue(21)
            self._plot.addItem(label, ignoreBounds=True)
        self.draw()

    def show_points(self, points: FrontPoints | None) -> None:
        """Draw beside other points, over their axes."""
        self._points = points
        self.draw()

    def set_shown(self, shown: bool) -> None:
        """Show or hide them."""
        self._shown = shown
        self.draw()

    def places(self) -> list[tuple[int, float, float]]:
        """(which, x, y) in the plot of those that are shown and have both figures."""
        if self._points is None or not self._shown:
            return []
        found = []
        for which, each in enumerate(self.references):
            known = (np.array([each.values.get(goal.name, np.nan)]) for goal in self._points.goals)
            x, y = (float(values[0]) for values in self._points.placed(*known))
            if np.isfinite([x, y]).all():
                found.append((which, x, y))
        return found

    @property
    def key(self) -> list[KeyMark]:
        """What the key says of those in the plot."""
        found = (self.references[which] for which, _, _ in self.places())
        return [KeyMark(_SYMBOLS[each.kind], _COLOURS[each.kind], each.label) for each in found]

    def at(self, place: QPointF) -> int | None:
        """Which one lies at a place in the view's own pixels."""
        for which, x, y in self.places():
            px, py = self._cloud.in_pixels(np.array([x]), np.array([y]))
            if np.hypot(px[0] - place.x(), py[0] - place.y()) <= _NEAR:
                return which
        return None

    def draw(self) -> None:
        """Draw again, in the colours in use."""
        colours = theme.colours()
        ground = QColor(colours.base)
        ground.setAlpha(215)
        spots = []
        for which, x, y in self.places():
            kind = self.references[which].kind
            pen = pg.mkPen(getattr(colours, _COLOURS[kind]), width=2)
            spots.append({"pos": (x, y), "symbol": _SYMBOLS[kind], "size": _SIZE, "pen": pen, "brush": ground})
        self.marks.setData(spots)
        for label, each in zip(self.labels, self.references, strict=True):
            label.setText(each.label, QColor(getattr(colours, _COLOURS[each.kind])))
            label.fill = pg.mkBrush(ground)
            label.hide()

    def wishes(self) -> Iterator[Wish]:
        """The names, for the layout of the labels."""
        for which, x, y in self.places():
            yield Wish(self.labels[which], [x], [y], _REACH, leader=True)


def reference_html(reference: Reference, first: Iterable[str] = ()) -> str:
    """A reference as a card: the figures named `first`, such as those on the axes, then time, energy and power."""
    rows = []
    for name in dict.fromkeys((*first, *_USUAL)):
        if name in reference.values:
            described = quantity(name)
            rows.append((described.title, _with_interval(described, reference, name)))
    cells = "".join(
        f"<tr><td>{html.escape(title)}&nbsp;&nbsp;</td><td align='right'><b>{html.escape(value)}</b></td></tr>"
        for title, value in rows
    )
    note = "<br>".join(html.escape(line) for line in textwrap.wrap(reference.note, _LINE))
    return f"<b>{html.escape(reference.label)}</b><table cellspacing='0' cellpadding='0'>{cells}</table>{note}"


def _with_interval(described: Quantity, reference: Reference, name: str) -> str:
    ends = reference.intervals.get(name)
    shown = f" ({described.number(ends[0])} … {described.number(ends[1])})" if ends else ""
    return described.number(reference.values[name]) + shown
