"""Scores shown: advantages over random search along the budget, means on each space, and a table of who beats whom."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from ...engine.analysis.score_runs import Scores
from ...engine.strategies import base as strategies
from ...numbers import MINUS
from ..plots import theme
from ..plots.box import Box
from ..plots.figures import signed

_LINES = ("orange", "blue", "green", "purple", "vermillion", "sky", "grey")
_DASHES = (Qt.PenStyle.SolidLine, Qt.PenStyle.DashLine, Qt.PenStyle.DotLine, Qt.PenStyle.DashDotLine)
_BAND = 45  # opacity of 255
_GROUP = 0.8  # of the room of a space is bars
_NAME = 18  # characters of a space's name under its bars
_NARROW = 4  # groups beside each other from which names get less room


def pen_of(place: int, width: float = 1.5) -> object:
    """The line of the strategy in that place: its colour, and dashes where the colours are used up."""
    colour = QColor(getattr(theme.colours(), _LINES[place % len(_LINES)]))
    return pg.mkPen(colour, width=width, style=_DASHES[place // len(_LINES) % len(_DASHES)])


def label_of(name: str) -> str:
    """A strategy's label without what stands in brackets."""
    return strategies.get(name).label.partition(" (")[0]


class _Plot(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Base of both plots: the theme's colours, in which they are redrawn when it changes."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, viewBox=Box(), enableMenu=False)
        self.hideButtons()
        self._scores: Scores | None = None
        for axis in ("bottom", "left"):
            self.getAxis(axis).enableAutoSIPrefix(False)
        self.getPlotItem().layout.setContentsMargins(2, 6, 10, 2)
        theme.notifier().changed.connect(self.redraw)

    @Slot()
    def redraw(self) -> None:
        colours = theme.colours()
        self.clear()
        self.setBackground(QColor(colours.base))
        for axis in ("bottom", "left"):
            self.getAxis(axis).setPen(QColor(colours.border))
            self.getAxis(axis).setTextPen(QColor(colours.text))
        if self._scores is not None:
            self.addItem(pg.InfiniteLine(pos=0.0, angle=0, pen=pg.mkPen(QColor(colours.muted), width=1)))
            self.draw(self._scores)

    def draw(self, scores: Scores) -> None:
        raise NotImplementedError


class ScoreCurves(_Plot):
    """Mean advantage over the budget with its 95 % band, of one space or of all."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._space: str | None = None
        self.setLabel("left", "Ahead of random search")
        self._legend = self.addLegend(offset=(-10, -10), colCount=2)
        self.redraw()

    def show_scores(self, scores: Scores, space: str | None) -> None:
        """Draw one space, or where it is None the mean over all."""
        if space is None and len(scores.advantages) == 1:
            space = next(iter(scores.advantages))
        self._scores, self._space = scores, space
        self.redraw()

    def draw(self, scores: Scores) -> None:
        self._legend.setLabelTextColor(QColor(theme.colours().text))
        if self._space is None:
            along = 2.0 * np.arange(1, 51)
            self.setLabel("bottom", "Share of the budget (%)")
        else:
            along = scores.points[self._space]
            self.setLabel("bottom", "Evaluations" if scores.unit == "evaluations" else "Time spent evaluating (s)")
        lowest = 0.0
        for place, name in enumerate(scores.strategies):
            of = self._space
            mean, low, high = scores.overall_curve(name) if of is None else scores.curve(of, name)
            known = ~np.isnan(mean)
            pen = pen_of(place, 2.5 if name == "auto" else 1.5)
            edges = [pg.PlotCurveItem(along[known], edge[known], pen=None) for edge in (low, high)]
            colour = QColor(pen.color())  # type: ignore[attr-defined]
            colour.setAlpha(_BAND)
            if not np.isnan(low).all():  # too few repeats have no interval
                self.addItem(pg.FillBetweenItem(*edges, brush=colour))
            self.addItem(pg.PlotCurveItem(along[known], mean[known], pen=pen, antialias=True, name=label_of(name)))
            lowest = min(lowest, float(mean[known].min()))
        self.setXRange(0.0, float(along[-1]), padding=0.02)
        self.setYRange(max(-1.0, lowest), 1.0, padding=0.03)


class ScoreBars(_Plot):
    """A group of bars for each space, a bar for each strategy, with its 95 % interval."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setLabel("left", "Score")
        self.setMouseEnabled(x=False, y=False)
        self.redraw()

    def show_scores(self, scores: Scores) -> None:
        """Draw the scores of every space."""
        self._scores = scores
        self.redraw()

    def draw(self, scores: Scores) -> None:
        spaces, count = list(scores.advantages), len(scores.strategies)
        width = _GROUP / count
        everything = [0.0, 1.0]
        for place, name in enumerate(scores.strategies):
            at = np.arange(len(spaces)) + (place - (count - 1) / 2) * width
            found = [scores.score(space, name) for space in spaces]
            mean, low, high = (np.array([getattr(one, of) for one in found]) for of in ("mean", "low", "high"))
            colour = pen_of(place).color()  # type: ignore[attr-defined]
            self.addItem(pg.BarGraphItem(x=at, height=mean, width=0.9 * width, brush=colour, pen=None))
            ends = pg.mkPen(QColor(theme.colours().text), width=1)
            self.addItem(pg.ErrorBarItem(x=at, y=mean, top=high - mean, bottom=mean - low, beam=0.3 * width, pen=ends))
            everything += [each for each in (*mean, *low, *high) if np.isfinite(each)]
        room = _NAME if len(spaces) <= _NARROW else _NAME // 2
        names = [space if len(space) <= room else f"{space[: room // 2]}…{space[-room // 2 :]}" for space in spaces]
        self.getAxis("bottom").setTicks([list(enumerate(names))])
        self.setXRange(-0.5, len(spaces) - 0.5, padding=0.0)
        self.setYRange(max(-1.0, min(everything)), min(1.2, max(everything)), padding=0.03)


class WinsTable(QTableWidget):
    """Strategies by their mean score, the best first; a cell counts the spaces on which the row beats the column."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.setAccessibleName("On how many spaces one strategy beats another significantly")
        self.setToolTip(
            "On how many spaces the row's strategy is significantly better than the column's (Mann-Whitney, 5 %)"
        )
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self._scores: Scores | None = None
        theme.notifier().changed.connect(self._refresh)

    def show_scores(self, scores: Scores) -> None:
        """Fill the table."""
        self._scores = scores
        self._refresh()

    def _refresh(self) -> None:
        scores = self._scores
        if scores is None:
            return
        means = {name: scores.overall(name).mean for name in scores.strategies}
        ranked = sorted(means, key=lambda name: -means[name])
        self.setRowCount(len(ranked))
        self.setColumnCount(1 + len(ranked))
        self.setVerticalHeaderLabels([f"{place} {label_of(name)}" for place, name in enumerate(ranked, 1)])
        self.setHorizontalHeaderLabels(["score", *(str(place) for place in range(1, len(ranked) + 1))])
        for row, name in enumerate(ranked):
            interval = scores.overall(name)
            item = self._put(row, 0, signed(interval.mean, 3))
            item.setToolTip(f"95 % interval {interval.words}".replace("-", MINUS))
            for column, other in enumerate(ranked, 1):
                won = scores.wins[name].get(other, 0)
                item = self._put(row, column, str(won) if other != name else "")
                item.setToolTip(f"{label_of(name)} beats {label_of(other)} on {won} of {len(scores.advantages)} spaces")
                if won:
                    colour = QColor(theme.colours().green)
                    colour.setAlpha(40 + 140 * won // len(scores.advantages))
                    item.setBackground(colour)

    def _put(self, row: int, column: int, text: str) -> QTableWidgetItem:
        item = QTableWidgetItem(text)
        item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.setItem(row, column, item)
        return item
