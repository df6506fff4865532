"""`ParameterBars`: a small histogram for each parameter, of all measurements and of those marked; a click on a value
hides it or shows it again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QSizePolicy, QToolTip, QWidget

from ...base.formatting import counted
from ...engine.analysis.quantities import Quantity, parameter_text, quantities_of
from ...engine.space.result_table import ResultTable
from ...engine.specification.plan import SessionPlan
from ..shared import theme
from ..shared.current_result import EVERYTHING, RowFilter
from ..shared.label import plain_tip

_MOST_BARS = 20  # a parameter of more values has several of them in a bar
_BAR_PX = (7, 22)  # narrowest and widest
_PLOT_PX = 46
_LEAST_PX = 56
Indices = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bar:
    """Neighbouring values of a parameter, by their places in its list, and their label."""

    codes: tuple[int, ...]
    label: str


def bars_of(values: tuple[object, ...]) -> list[Bar]:
    """One bar per value, or per run of neighbours where there are many."""
    groups = np.array_split(np.arange(len(values)), min(len(values), _MOST_BARS))
    texts = [parameter_text(value) for value in values]  # type: ignore[arg-type]
    return [
        Bar(tuple(int(c) for c in g), texts[g[0]] if len(g) == 1 else f"{texts[g[0]]} … {texts[g[-1]]}") for g in groups
    ]


class Histogram(QWidget):
    """One parameter. Grey: all measurements; in front of it, in colour: the marked ones, each as shares of their sum.

    Left and right choose a bar, Space hides or shows its values, Return marks their measurements.
    """

    toggled = Signal(str, object)  # the parameter's name, and codes of its values
    picked = Signal(str, object)

    def __init__(self, described: Quantity, bars: list[Bar], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = described.name
        self.bars = bars
        self._title = described.title
        self.counts: Counts = np.zeros(len(bars), dtype=np.int64)
        self.marked_counts: Counts = np.zeros(len(bars), dtype=np.int64)
        self._hidden = [False] * len(bars)
        self._current = 0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(f"{self._title}: which values are shown")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._describe()

    def sizeHint(self) -> QSize:
        """The whole title, and bars that are easily hit."""
        wide = max(self.fontMetrics().horizontalAdvance(self._title), min(len(self.bars) * _BAR_PX[1], 110))
        return QSize(max(min(wide, 220), self._narrowest()) + 6, self._high())

    def minimumSizeHint(self) -> QSize:
        """The first and the last value; the title is cut."""
        return QSize(self._narrowest() + 6, self._high())

    def _narrowest(self) -> int:
        ends = [self.fontMetrics().horizontalAdvance(bar.label) for bar in (self.bars[0], self.bars[-1])]
        return max(min(sum(ends) + 10, 220), len(self.bars) * _BAR_PX[0], _LEAST_PX)

    def _high(self) -> int:
        return 2 * self.fontMetrics().height() + _PLOT_PX

    def show_counts(self, of_all: Counts, of_marked: Counts, hidden: RowFilter) -> None:
        """Counts by bar."""
        self.counts, self.marked_counts = of_all, of_marked
        self._hidden = [hidden.hides(self.name, bar.codes) for bar in self.bars]
        self._describe()
        self.update()

    def text_of(self, place: int) -> str:
        """A bar in words."""
        state = " · hidden" if self._hidden[place] else ""
        marked = f", {self.marked_counts[place]} of the marked" if self.marked_counts.any() else ""
        measured = counted(self.counts[place], "measurement")
        return f"{self._title} = {self.bars[place].label}: {measured}{marked}{state}"

    def _describe(self) -> None:
        self.setAccessibleDescription(self.text_of(self._current))

    # --- painting ----------------------------------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = theme.colours()
        painter = QPainter(self)
        metrics = self.fontMetrics()
        line = metrics.height()
        painter.setPen(QColor(colours.text))
        title = metrics.elidedText(self._title, Qt.TextElideMode.ElideRight, self.width() - 4)
        painter.drawText(QPointF(2, metrics.ascent()), title)
        step, floor = self._step(), line + _PLOT_PX - 2.0
        tallest = float(max(_shares(self.counts).max(initial=0), _shares(self.marked_counts).max(initial=0))) or 1.0
        for place, (share, of_marked) in enumerate(zip(_shares(self.counts), _shares(self.marked_counts), strict=True)):
            x = 2 + place * step
            full = QRectF(x, line + 3, step - 2, _PLOT_PX - 6)
            high = share / tallest * (_PLOT_PX - 8)
            if self._hidden[place]:  # hollow
                painter.setPen(QPen(QColor(colours.muted), 1, Qt.PenStyle.DotLine))
                painter.drawRect(QRectF(x, floor - high, step - 2, high))
            else:
                painter.fillRect(QRectF(x, floor - high, step - 2, high), QColor(colours.grey))
            if self.marked_counts.any():
                high = of_marked / tallest * (_PLOT_PX - 8)
                inset = (step - 2) * 0.22
                painter.fillRect(QRectF(x + inset, floor - high, step - 2 - 2 * inset, high), QColor(colours.orange))
            if self.hasFocus() and place == self._current:
                painter.setPen(QPen(QColor(colours.accent), 1.5))
                painter.drawRect(full.adjusted(-1, -1, 1, 1))
        painter.setPen(QPen(QColor(colours.border), 1))
        painter.drawLine(QPointF(2, floor), QPointF(2 + step * len(self.bars) - 2, floor))
        painter.setPen(QColor(colours.muted))
        base = line + _PLOT_PX + metrics.ascent() - 1
        painter.drawText(QPointF(2, base), self.bars[0].label)
        if len(self.bars) > 1:
            last = self.bars[-1].label
            painter.drawText(QPointF(self.width() - 4 - metrics.horizontalAdvance(last), base), last)

    def _step(self) -> float:
        return (self.width() - 4) / len(self.bars)

    def _bar_at(self, x: float) -> int:
        return int(min(max((x - 2) / self._step(), 0), len(self.bars) - 1))

    # --- mouse and keys ----------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._current = self._bar_at(event.position().x())
        signal = self.picked if event.button() == Qt.MouseButton.RightButton else self.toggled
        signal.emit(self.name, self.bars[self._current].codes)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        if event.key() in steps:
            self._current = min(max(self._current + steps[Qt.Key(event.key())], 0), len(self.bars) - 1)
            self._describe()
            self.update()
        elif event.key() == Qt.Key.Key_Space:
            self.toggled.emit(self.name, self.bars[self._current].codes)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.picked.emit(self.name, self.bars[self._current].codes)
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Each bar has a tooltip."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            text = f"{self.text_of(self._bar_at(event.pos().x()))}\nClick: hide or show · right click: mark"
            QToolTip.showText(event.globalPos(), plain_tip(text), self)
            return True
        return bool(super().event(event))

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.update()
        super().focusOutEvent(event)


class ParameterBars(QScrollArea):
    """A row of histograms, as wide as there are parameters that vary."""

    filtered = Signal(object)  # RowFilter
    picked = Signal(object)  # indices into the table

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._table: ResultTable | None = None
        self.filter: RowFilter = EVERYTHING
        self.histograms: list[Histogram] = []
        self._counted = -1  # measurements in `_of_all`
        self._of_all: list[Counts] = []
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Parameters: how many measurements have each value, and which are shown")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def sizeHint(self) -> QSize:
        return QSize(
            200, 2 * self.fontMetrics().height() + _PLOT_PX + self.horizontalScrollBar().sizeHint().height() + 8
        )

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def set_session(self, table: ResultTable | None, plan: SessionPlan | None) -> None:
        """One histogram for each parameter that has several values."""
        self._table, self.filter, self.histograms, self._counted = table, EVERYTHING, [], -1
        row = QWidget()
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 2, 0, 2)
        layout.setSpacing(14)
        described = quantities_of(plan) if plan is not None else {}
        for parameter in plan.space.parameters if plan is not None else ():
            if len(parameter.values) > 1:
                histogram = Histogram(described[parameter.name], bars_of(parameter.values))
                histogram.toggled.connect(self._toggled)
                histogram.picked.connect(self._value_picked)
                self.histograms.append(histogram)
                layout.addWidget(histogram)
        layout.addStretch(1)
        self.setWidget(row)

    def come_after(self, before: QWidget) -> None:
        """Put the histograms behind that widget in the order of the focus: as the newest ones they would come last."""
        for histogram in self.histograms:
            self.setTabOrder(before, histogram)
            before = histogram

    def refresh(self, marked: Indices) -> None:
        """Count again; the totals only where the table has grown."""
        if self._table is None:
            return
        rows = self._table.rows()
        if len(rows) != self._counted:
            self._counted = len(rows)
            self._of_all = [self._count(histogram, rows) for histogram in self.histograms]
        some = rows[marked]
        for histogram, of_all in zip(self.histograms, self._of_all, strict=True):
            histogram.show_counts(of_all, self._count(histogram, some), self.filter)

    def _count(self, histogram: Histogram, rows: Indices) -> Counts:
        """How many rows of the space lie in each bar."""
        assert self._table is not None
        space = self._table.space
        axis = space.names.index(histogram.name)
        counts = np.bincount(space.codes[rows, axis], minlength=space.axis_sizes[axis])
        return np.add.reduceat(counts, [bar.codes[0] for bar in histogram.bars])

    def show_everything(self) -> None:
        """Hide no value any more."""
        self.filter = EVERYTHING
        self.filtered.emit(self.filter)

    @Slot(str, object)
    def _toggled(self, name: str, codes: tuple[int, ...]) -> None:
        self.filter = self.filter.toggled(name, codes)
        self.filtered.emit(self.filter)

    @Slot(str, object)
    def _value_picked(self, name: str, codes: tuple[int, ...]) -> None:
        assert self._table is not None
        space, rows = self._table.space, self._table.rows()
        self.picked.emit(np.flatnonzero(np.isin(space.codes[rows, space.names.index(name)], codes)))


def _shares(counts: Counts) -> npt.NDArray[np.float64]:
    total = int(counts.sum())
    return counts / total if total else np.zeros(len(counts))
