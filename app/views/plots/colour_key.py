"""The key in the scatter: which marker or colour stands for which value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pyqtgraph.graphicsItems.ScatterPlotItem import Symbols
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from ...base.formatting import round_ticks
from ...engine.analysis.quantities import Quantity
from ..shared import theme
from .markers import COLOURS, SHAPES, Coding, ShapeCoding, colour_scale, draw_marker

_WIDTH = 104
_MARGIN = 10
_OPAQUE = 0.8  # it lies over the plot
_MARK_PX = 14.0  # of a mark that is no measurement


@dataclass(frozen=True, slots=True)
class KeyMark:
    """A mark in the plot that is no measurement."""

    symbol: str  # pyqtgraph's
    colour: str  # of the theme
    label: str


class ColourKey(QWidget):
    """A list of markers for few values, else a bar of the scale with its ends and marks, titled with the unit; below it
    the shapes, where they stand for another quantity, and marks that are no measurements."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.coding: Coding | None = None
        self.quantity: Quantity | None = None
        self._names: tuple[str, ...] = ()
        self.note = ""  # below the title
        self.marks: tuple[KeyMark, ...] = ()
        self._shapes: tuple[ShapeCoding, Quantity, tuple[str, ...]] | None = None
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Key to the colours")

    def show_coding(
        self, coding: Coding | None, quantity: Quantity | None, names: tuple[str, ...] = (), note: str = ""
    ) -> None:
        """Show a coding; `names` are the words of a parameter of words, by its codes; `note` says what changed."""
        self.coding, self.quantity, self._names, self.note = coding, quantity, names, note
        self.setToolTip(
            "The scale had to be extended while results arrived: colours stand for other values since then"
            if note
            else ""
        )
        self.setVisible(coding is not None and not math.isnan(coding.low))
        self.updateGeometry()
        self.update()

    def show_shapes(self, coding: ShapeCoding | None, quantity: Quantity | None, names: tuple[str, ...] = ()) -> None:
        """What the shapes stand for; None if they stand for the same as the colours."""
        self._shapes = (coding, quantity, names) if coding is not None and quantity is not None else None
        self.setAccessibleDescription(", ".join(f"{shape}: {text}" for shape, text in self.shape_labels))
        self.updateGeometry()
        self.update()

    def show_marks(self, marks: Iterable[KeyMark]) -> None:
        """What else is marked in the plot."""
        self.marks = tuple(marks)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        measure = self.fontMetrics().horizontalAdvance
        title = max((measure(line) for line in self._title()), default=0)
        shapes = [measure(text) + 24 for _, text in self.shape_labels]
        shapes += [measure(self._shapes[1].title)] if self._shapes is not None else []
        shapes += [measure(mark.label) + 24 for mark in self.marks]
        width = min(170, max(_WIDTH, title + _MARGIN, *(shape + _MARGIN for shape in shapes)))
        values = len(self.labels) if self.coding is not None and self.coding.discrete else 0
        lines = len(self._title()) + max(values, 5) + len(self.shape_labels) + len(self.marks)
        return QSize(width, (self.fontMetrics().height() + 5) * lines + 2 * _MARGIN)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _title(self) -> list[str]:
        if self.quantity is None:
            return []
        return [line for line in (self.quantity.label, self.quantity.unit, self.note) if line]

    @property
    def labels(self) -> list[str]:
        """The values that have a marker each, as text, from the lowest to the highest."""
        return [self._label(value) for value in self.coding.values] if self.coding is not None else []

    def _label(self, value: float) -> str:
        assert self.quantity is not None
        if self._names and value.is_integer() and 0 <= value < len(self._names):
            return self._names[int(value)]
        return self.quantity.number(value)

    @property
    def shape_labels(self) -> list[tuple[str, str]]:
        """(shape, what it stands for), from the lowest value to the highest."""
        if self._shapes is None:
            return []
        coding, quantity, names = self._shapes
        if coding.bounds:
            return [(SHAPES[i], f"to {quantity.number(bound)}") for i, bound in enumerate(coding.bounds)]
        texts = (names[int(v)] if names and 0 <= v < len(names) else quantity.number(v) for v in coding.values)
        return list(zip(SHAPES, texts, strict=False))

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.coding is None or self.quantity is None:
            return
        colours = theme.colours()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground = QColor(colours.base)
        ground.setAlphaF(_OPAQUE)
        painter.fillRect(self.rect(), ground)
        line = self.fontMetrics().height()
        painter.setPen(QColor(colours.text))
        for i, text in enumerate(self._title()):
            painter.drawText(QPointF(4, line * (i + 1)), text)
        top = line * len(self._title()) + _MARGIN + 4
        floor = self._paint_shapes(painter, self._paint_marks(painter))
        if self.coding.discrete:
            self._paint_markers(painter, top, min(line + 5, (floor - top) / max(1, len(self.coding.values))))
        else:
            self._paint_bar(painter, QRectF(4, top, 14, max(20.0, floor - top - line)))

    def _paint_marks(self, painter: QPainter) -> float:
        """At the bottom; the place where they begin."""
        colours, step = theme.colours(), self.fontMetrics().height() + 5.0
        top = self.height() - step * len(self.marks)
        for place, mark in enumerate(self.marks):
            y = top + (place + 0.5) * step
            painter.save()
            painter.translate(QPointF(12, y))
            path = Symbols[mark.symbol]
            extent = path.boundingRect()
            size = _MARK_PX / max(extent.width(), extent.height())
            painter.scale(size, size)
            pen = QPen(QColor(getattr(colours, mark.colour)), 1.6)
            pen.setCosmetic(True)
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPath(path)
            painter.restore()
            painter.setPen(QColor(colours.text))
            box = QRectF(24, y - step / 2, self.width() - 26, step)
            text = self.fontMetrics().elidedText(mark.label, Qt.TextElideMode.ElideRight, int(box.width()))
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        return top

    def _paint_shapes(self, painter: QPainter, bottom: float) -> float:
        """Above what lies at the bottom; the place where they begin."""
        labels = self.shape_labels
        if self._shapes is None:
            return bottom
        colours, line = theme.colours(), self.fontMetrics().height()
        step = min(line + 3.0, (bottom / 2 - line) / max(1, len(labels)))
        top = bottom - step * len(labels) - line - 6
        painter.setPen(QColor(colours.text))
        room = Qt.TextElideMode.ElideRight
        painter.drawText(
            QPointF(4, top + line), self.fontMetrics().elidedText(self._shapes[1].title, room, self.width())
        )
        for place, (shape, text) in enumerate(labels):
            y = top + line + 6 + (place + 0.5) * step
            painter.setPen(QPen(QColor(colours.muted), 0.8))
            painter.setBrush(QColor(colours.grey))
            draw_marker(painter, shape, QPointF(12, y), 10)
            painter.setPen(QColor(colours.text))
            box = QRectF(24, y - step / 2, self.width() - 26, step)
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        return top - 4

    def _paint_markers(self, painter: QPainter, top: float, step: float) -> None:
        assert self.coding is not None
        colours = theme.colours()
        scale = colour_scale(colours)
        every = max(1, math.ceil((self.fontMetrics().height() - 3) / max(step, 1.0)))  # labels that have room
        for place, value in reversed(list(enumerate(self.coding.values))):
            y = top + step / 2 + (len(self.coding.values) - 1 - place) * step
            style = self.coding.style_of_place(place)
            painter.setPen(QPen(QColor(colours.muted), 0.8))
            painter.setBrush(scale[style % COLOURS])
            shape = SHAPES[style // COLOURS] if self._shapes is None else SHAPES[0]
            draw_marker(painter, shape, QPointF(12, y), min(10.0, max(4.0, step)))
            if place % every:
                continue
            painter.setPen(QColor(colours.text))
            box = QRectF(24, y - 20, self.width() - 26, 40)
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self._label(value))

    def _paint_bar(self, painter: QPainter, bar: QRectF) -> None:
        assert self.coding is not None
        assert self.quantity is not None
        colours = theme.colours()
        gradient = QLinearGradient(bar.bottomLeft(), bar.topLeft())
        for i, colour in enumerate(scale := colour_scale(colours)):
            gradient.setColorAt(i / (len(scale) - 1), colour)
        painter.setPen(QPen(QColor(colours.border), 1))
        painter.setBrush(gradient)
        painter.drawRect(bar)
        factor = self.quantity.factor
        low, high = self.coding.low * factor, self.coding.high * factor
        if not high > low:
            return
        line = self.fontMetrics().height()
        painter.setPen(QColor(colours.text))
        for mark in round_ticks(low, high, max(2, int(bar.height() / (2.2 * line)))):
            y = bar.bottom() - (mark - low) / (high - low) * bar.height()
            painter.drawLine(QPointF(bar.right(), y), QPointF(bar.right() + 4, y))
            painter.drawText(QPointF(bar.right() + 7, y + line * 0.32), self.quantity.number(mark / factor))
