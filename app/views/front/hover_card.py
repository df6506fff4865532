"""`HoverCard`: the measurement under the mouse, described beside it and within the window."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Slot
from PySide6.QtWidgets import QAbstractScrollArea

from ...engine.analysis.quantities import Quantity, parameter_text, quantities_of, quantity
from ...engine.space.result_table import ResultTable
from ...engine.specification.operator_shapes import parameters_had
from ...engine.specification.plan import SessionPlan
from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.turns import timer

_LOOK_MS = 150  # how often is looked whether the plot is still in sight
_CLEAR_PX = 26  # around the pointer: what lies there is what the user looks at
_MOST_LINES = 8
_PARAMETER_LINES = 3  # of those at most
_LINE = 58  # characters of a line of parameters
_USUAL = ("time_s", "energy_j", "power_w", "observed_clock_mhz")  # of interest whatever the axes show


class HoverCard(PlainLabel):
    """Belongs to a plot, and while it is shown to the plot's window, since the plot may be too small to hold it."""

    def __init__(self, plot: QAbstractScrollArea) -> None:
        super().__init__(parent=plot)
        self._plot = plot
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setTextFormat(Qt.TextFormat.RichText)
        self._look = timer(self, self._leave_unseen, _LOOK_MS)
        theme.style(
            self,
            "background: {c.raised}; color: {c.text}; border: 1px solid {c.border};",
            "border-radius: 4px; padding: 6px;",
        )
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
        self.move(card_place(window.mapFromGlobal(mouse), self.size(), window.size()))
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


def card_place(mouse: QPoint, card: QSize, window: QSize) -> QPoint:
    """Where the card lies within the window and beside the pointer's neighbourhood: right, left, below or above it.

    Where none has room, in the corner that is farthest from the pointer.
    """
    near = QRect(mouse.x() - _CLEAR_PX, mouse.y() - _CLEAR_PX, 2 * _CLEAR_PX, 2 * _CLEAR_PX)
    right, below = max(0, window.width() - card.width()), max(0, window.height() - card.height())
    beside = (near.right() + 1, near.left() - card.width())
    for x in beside:
        if 0 <= x <= right:
            return QPoint(x, min(max(near.top(), 0), below))
    for y in (near.bottom() + 1, near.top() - card.height()):
        if 0 <= y <= below:
            return QPoint(min(max(near.left(), 0), right), y)
    return QPoint(0 if mouse.x() > window.width() / 2 else right, 0 if mouse.y() > window.height() / 2 else below)


def measurement_html(table: ResultTable, plan: SessionPlan, index: int, first: Iterable[str] = ()) -> str:
    """A measurement in at most eight lines: the figures named `first`, such as those on the axes, then time, energy,
    power and clock, then the parameters. A figure that another one repeats under a second name is shown once."""
    measurement = table.measurement(index)
    configuration, parameters = parameters_had(measurement.configuration), quantities_of(plan)
    known = {**measurement.values, **{n: v for n, v in configuration.items() if n in parameters}}
    shown = list(dict.fromkeys(name for name in (*first, *_USUAL) if name in known))
    varied = {p.name for p in plan.space.parameters if len(p.values) > 1}
    rest = [
        f"{parameters[n].label} {parameter_text(v)} {parameters[n].unit}".rstrip()
        for n, v in configuration.items()
        if n in varied and n not in shown
    ]
    lines = textwrap.wrap(", ".join(rest), _LINE, max_lines=_PARAMETER_LINES, placeholder=" …")
    rows: list[tuple[str, str]] = []
    remarks: list[tuple[str, str]] = []  # (number, unit)
    for name in shown:
        value = known[name]
        described = parameters.get(name) or quantity(name, units=plan.units)
        number = described.number(measurement.values[name]) if name in measurement.values else parameter_text(value)
        if any(
            number == other and (described.unit == unit or not described.unit or not unit) for other, unit in remarks
        ):
            continue
        remarks.append((number, described.unit))
        bounds = measurement.intervals.get(name)
        rows.append((described.title, number + (_interval(described, bounds) if bounds else "")))
    rows = rows[: _MOST_LINES - 1 - len(lines)]
    cells = "".join(_row(*pair) for pair in rows) + "".join(
        f"<tr><td colspan='2'>{html.escape(line).replace(' ', '&nbsp;')}</td></tr>" for line in lines
    )
    return f"<b>Measurement {index + 1}</b><table cellspacing='0' cellpadding='0'>{cells}</table>"


def _interval(described: Quantity, bounds: Sequence[float]) -> str:
    return f" ({described.number(bounds[0])} … {described.number(bounds[1])})"


def _row(name: str, value: str) -> str:
    return f"<tr><td>{html.escape(name)}&nbsp;&nbsp;</td><td align='right'><b>{html.escape(value)}</b></td></tr>"
