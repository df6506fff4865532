"""The ways to tune for energy as bars: gain, loss and measurements needed [Schoonhoven2024, figure 6.3]."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Slot
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import QWidget

from ...engine.strategies.methods import Methods
from ..plots import theme
from ..plots.box import Box
from ..plots.dress import dress

_WIDTH = 0.36  # of a method's room, each of its two bars
_LINES = (7, 16)  # characters of a name before it goes on in the next line, at least and at most
_AXIS = 70  # pixels beside the bars


class MethodBars(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Two bars for each method: its efficiency and its speed against race to idle, with its clock and its effort."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, viewBox=Box(), enableMenu=False)
        self._methods: Methods | None = None
        self.hideButtons()
        self.setMouseEnabled(x=False, y=False)
        self.setLabel("left", "Change against race to idle (%)")
        self._legend = self.addLegend(offset=(-8, 4), colCount=2)
        for axis in ("bottom", "left"):
            self.getAxis(axis).enableAutoSIPrefix(False)
        self.getAxis("bottom").setStyle(hideOverlappingLabels=False)
        theme.notifier().changed.connect(self.redraw)
        self.redraw()

    def show_methods(self, methods: Methods | None) -> None:
        """Draw them side by side."""
        self._methods = methods
        self.redraw()

    @Slot()
    def redraw(self) -> None:
        """As it was, in the theme's colours."""
        colours = theme.colours()
        self.clear()
        self._legend.clear()
        self._legend.setLabelTextColor(QColor(colours.text))
        dress(self, ("bottom", "left"), upright=False)
        if self._methods is None:
            return
        results = self._methods.results
        gains = [100 * each.efficiency_change for each in results]
        losses = [100 * each.speed_change for each in results]
        for values, side, colour, name in (
            (gains, -0.5, colours.green, f"efficiency ({self._methods.efficiency_name})"),
            (losses, 0.5, colours.vermillion, f"speed ({self._methods.speed_name})"),
        ):
            places = [at + side * _WIDTH for at in range(len(results))]
            bars = pg.BarGraphItem(
                x=places, height=values, width=_WIDTH, brush=QColor(colour), pen=pg.mkPen(colours.base), name=name
            )
            self.addItem(bars)
            for x, value in zip(places, values, strict=True):
                self._add_text(f"{value:+.1f}", x, value, below=value < 0)
        self.addItem(pg.InfiniteLine(pos=0.0, angle=0, pen=pg.mkPen(colours.muted, width=1)))
        room_px = (self.width() - _AXIS) / len(results)
        length = int(np.clip(room_px / self.fontMetrics().averageCharWidth() - 1, *_LINES))
        names = [
            (
                at,
                "\n".join(
                    _in_lines(words, length)
                    for words in (each.label, f"{each.clock_mhz:.0f} MHz", f"{each.measurements} measured")
                ),
            )
            for at, each in enumerate(results)
        ]
        self.getAxis("bottom").setTicks([names])
        lines = max(words.count("\n") + 1 for _, words in names)
        self.getAxis("bottom").setHeight(lines * self.fontMetrics().height() + 10)
        low, high = min(0.0, *gains, *losses), max(0.0, *gains, *losses)
        room = 0.14 * max(high - low, 1.0)
        self.setXRange(-0.5, len(results) - 0.5, padding=0.01)
        self.setYRange(low - room, high + 2.5 * room, padding=0.0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Names are broken to the room there is."""
        super().resizeEvent(event)
        if getattr(self, "_methods", None) is not None:
            self.redraw()

    def _add_text(self, words: str, x: float, y: float, *, below: bool) -> None:
        text = pg.TextItem(words, color=theme.colours().text, anchor=(0.5, 0.0 if below else 1.0))
        text.setPos(x, y)
        self.addItem(text, ignoreBounds=True)


def _in_lines(name: str, length: int) -> str:
    """A name broken after words so that neighbours do not run into each other."""
    lines = [""]
    for word in name.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > length:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
