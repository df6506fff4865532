"""The size of the text: `set_text_size` gives it to every window at once.

What is made later takes its measures from the font that is then in use. What is there already was measured when it was
made: fonts of its own, rows and columns of tables, room that is kept for words, axes of plots. All of that is scaled.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetricsF
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QGraphicsTextItem,
    QGraphicsView,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QStatusBar,
    QWidget,
)

TEXT_POINTS = (8, 20)  # the sizes that can be chosen
_LEAST_POINTS = 6.0
_WORDS = (QLabel, QAbstractButton, QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit, QAbstractItemView)
_UNBOUNDED_PX = 16_000  # Qt's bound of what has none is above it
_SYSTEM = "text_points_of_the_system"  # a property of the application


def set_text_size(points: int) -> None:
    """Give the text of every window that many points; 0: as many as the system's."""
    qt, font, before = QApplication.instance(), QApplication.font(), QApplication.font().pointSizeF()
    assert qt is not None
    if qt.property(_SYSTEM) is None:
        qt.setProperty(_SYSTEM, before)
    after = float(points or qt.property(_SYSTEM))
    if after == before:
        return
    wanted = {widget: _larger(widget.font(), after - before) for widget in QApplication.allWidgets()}
    high = QFontMetricsF(font).height()
    font.setPointSizeF(after)
    QApplication.setFont(font)
    for _ in range(2):  # what is given to one changes those in it
        for widget, larger in wanted.items():
            if widget.font().pointSizeF() != larger.pointSizeF():  # it has a font of its own, or a style sheet
                widget.setFont(larger)
    factor = QFontMetricsF(font).height() / high
    for widget in QApplication.allWidgets():
        if isinstance(widget, QHeaderView):
            _scale_sections(widget, factor)
        elif isinstance(widget, QGraphicsView):
            _enlarge_plot(widget, after - before)
        elif isinstance(widget, QStatusBar):  # Qt measures it again only for this
            for grip in (not widget.isSizeGripEnabled(), widget.isSizeGripEnabled()):
                widget.setSizeGripEnabled(grip)
        else:
            _scale_room(widget, factor)
        widget.update()


def _larger(font: QFont, by: float) -> QFont:
    font.setPointSizeF(max(_LEAST_POINTS, font.pointSizeF() + by))
    return font


def _scale_sections(header: QHeaderView, factor: float) -> None:
    """Rows, and columns that have a width of their own."""
    widths = [header.sectionSize(place) for place in range(header.count())]
    header.setDefaultSectionSize(round(header.defaultSectionSize() * factor))
    if header.orientation() == Qt.Orientation.Horizontal:
        for place, width in enumerate(widths):
            header.resizeSection(place, round(width * factor))


def _scale_room(widget: QWidget, factor: float) -> None:
    """Bounds that were set so that certain words fit, or that lines are not too long."""
    least, most = widget.minimumSize(), widget.maximumSize()
    if isinstance(widget, _WORDS):
        least *= factor
    if most.height() < _UNBOUNDED_PX:
        most.setHeight(round(most.height() * factor))
    if most.width() < _UNBOUNDED_PX:
        most.setWidth(round(most.width() * factor))
    widget.setMaximumSize(most)
    widget.setMinimumSize(least)


def _enlarge_plot(view: QGraphicsView, by: float) -> None:
    """Words in a plot have fonts of their own; its axes keep what they have drawn, and room for it."""
    items: list[Any] = view.items() if view.scene() is not None else []
    for item in items:
        if isinstance(item, QGraphicsTextItem):
            item.setFont(_larger(item.font(), by))
        elif hasattr(item, "setTickFont"):  # an axis of pyqtgraph, which is imported late
            item.setStyle()
            item.resizeEvent()
