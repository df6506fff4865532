"""`HoverCard`: the measurement under the mouse, described beside it and within the window."""

from __future__ import annotations

import html

from PySide6.QtCore import QPoint, Qt, QTimer, Slot
from PySide6.QtWidgets import QAbstractScrollArea

from ...engine.analysis.quantities import parameter_text, quantities_of, quantity
from ...engine.session.plan import SessionPlan
from ...engine.space.result_table import ResultTable
from ..plots import theme
from ..plots.label import PlainLabel

_LOOK_MS = 150  # how often is looked whether the plot is still in sight


class HoverCard(PlainLabel):
    """Belongs to a plot, and while it is shown to the plot's window, since the plot may be too small to hold it."""

    def __init__(self, plot: QAbstractScrollArea) -> None:
        super().__init__(parent=plot)
        self._plot = plot
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setTextFormat(Qt.TextFormat.RichText)
        self._look = QTimer(self, interval=_LOOK_MS)
        self._look.timeout.connect(self._leave_unseen)
        self.hide()

    def show_text(self, text: str) -> None:
        """Show rich text."""
        self.setText(text)
        self.adjustSize()

    def show_at(self, mouse: QPoint) -> None:
        """Show it beside a place of the screen."""
        window = self._plot.window()
        if self.parentWidget() is not window:
            self.setParent(window)
        at = window.mapFromGlobal(mouse)
        x = at.x() + 18 if at.x() + 18 + self.width() <= window.width() else at.x() - 18 - self.width()
        y = min(at.y() + 14, window.height() - self.height())
        self.move(max(0, x), max(0, y))
        self.show()
        self.raise_()
        self._look.start()

    def leave(self) -> None:
        """Hide it; the window may outlive the plot."""
        self._look.stop()
        if not self.isHidden():
            self.setParent(self._plot)

    @Slot()
    def _leave_unseen(self) -> None:
        """A dock behind another one is not hidden, nor does the mouse leave it: it is only out of sight."""
        if self._plot.viewport().visibleRegion().isEmpty():
            self.leave()

    def recolour(self) -> None:
        """Take over the theme's colours."""
        colours = theme.colours()
        self.setStyleSheet(
            f"background: {colours.raised}; color: {colours.text}; border: 1px solid {colours.border};"
            "border-radius: 4px; padding: 6px;"
        )


def measurement_html(table: ResultTable, plan: SessionPlan, index: int) -> str:
    """Every parameter and every figure with its unit and, where known, its confidence interval."""
    measurement = table.measurement(index)
    parameters = quantities_of(plan)
    configured = [
        (parameters[n].title, parameter_text(v)) for n, v in measurement.configuration.items() if n in parameters
    ]
    figures = []
    for name, value in measurement.values.items():
        described = quantity(name, units=plan.units)
        bounds = measurement.intervals.get(name)
        spread = f" ({described.number(bounds[0])} … {described.number(bounds[1])})" if bounds else ""
        figures.append((described.title, described.number(value) + spread))
    rows = "".join(_row(*pair) for pair in configured)
    rows += '<tr><td colspan="2"><hr></td></tr>' + "".join(_row(*pair) for pair in figures)
    return f"<b>Measurement {index + 1}</b><table cellspacing='0' cellpadding='1'>{rows}</table>"


def _row(name: str, value: str) -> str:
    return f"<tr><td>{html.escape(name)}&nbsp;&nbsp;</td><td align='right'><b>{html.escape(value)}</b></td></tr>"
