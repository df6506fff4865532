"""What stands beside points and lines on the roofline's plots: balances, the power limit, the margins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor

from ...engine.description import label_as_html
from ...engine.tuning_methods.description import describe_sweep
from ...engine.tuning_methods.roofline_sweeps import Sweep
from ..plots import theme
from .points import STRIP, left_margin, right_margin

_BALANCES = (
    ("B_τ", "muted", 0.1),
    ("B_ε", "purple", 0.27),
    ("Effective B_ε", "green", 0.44),
)  # colour, height of label
_TIP_COPY = "Copy kernel: traffic and no work, so it has no place on the axis of intensity"
_TIP_FLOP = "Flop kernel: work and no traffic, so it has no place on the axis of intensity"


def draw_margins(plots: Sequence[pg.PlotItem], kinds: AbstractSet[str], low: float, high: float) -> None:
    """Strips beside the intensities from `low` to `high` for the kernels that have none."""
    colours = theme.colours()
    margins = (("copy", left_margin(low), _TIP_COPY, (2,)), ("flop", right_margin(high), _TIP_FLOP, (0, 1, 2)))
    for kind, centre, tip, places in margins:
        if kind not in kinds:
            continue
        for at in places:
            ground = QColor(colours.muted)
            ground.setAlpha(26)
            span = (centre - STRIP, centre + STRIP)
            strip = pg.LinearRegionItem(span, movable=False, brush=ground, pen=pg.mkPen(None))
            strip.setZValue(-10)
            strip.setToolTip(tip)
            plots[at].addItem(strip, ignoreBounds=True)
        edge, anchor = (centre - STRIP, (0, 0)) if kind == "copy" else (centre + STRIP, (1, 0))  # inside the plot
        label = pg.InfiniteLine(
            pos=edge,
            angle=90,
            pen=pg.mkPen(None),
            label=kind,
            labelOpts={"position": 0.98, "color": colours.muted, "anchors": [anchor, anchor]},
        )
        label.setToolTip(tip)
        plots[2].addItem(label, ignoreBounds=True)


def draw_marks(plots: Sequence[pg.PlotItem], focus: Sweep) -> None:
    """Its balances in all three plots, named in the first; its power limit in the third."""
    colours = theme.colours()
    ground = QColor(colours.base)
    ground.setAlpha(215)
    figures = {figure.label: figure for figure in describe_sweep(focus).figures}
    for name, colour, height in _BALANCES:
        figure, ink = figures[name], getattr(colours, colour)
        if focus.model is None or not isinstance(figure.value, float) or not 0 < figure.value < math.inf:
            continue
        pen = pg.mkPen(QColor(ink), width=1.2, style=Qt.PenStyle.DashDotLine)
        for plot in plots:
            line = pg.InfiniteLine(pos=math.log10(figure.value), angle=90, pen=pen)
            line.setZValue(12 if plot is plots[0] else -1)  # its label stands before the points
            line.setToolTip(f"{figure.meaning} ({figure.text})")
            plot.addItem(line, ignoreBounds=True)
            if plot is plots[0]:
                text = pg.InfLineLabel(line, "", position=height, fill=ground, anchors=[(0, 0.5), (1, 0.5)])
                text.setHtml(f"<span style='color:{ink}'>{label_as_html(name)} {figure.cell}</span>")
    if focus.limit_w is not None:
        pen = pg.mkPen(QColor(colours.vermillion), width=1.4, style=Qt.PenStyle.DashLine)
        limit = pg.InfiniteLine(
            pos=math.log10(focus.limit_w),
            angle=0,
            pen=pen,
            label=f"held at {focus.limit_w:.0f} W" if focus.limit_seen else f"power limit {focus.limit_w:.0f} W",
            labelOpts={"position": 0.16, "color": colours.vermillion, "fill": ground, "anchors": [(0, 1), (0, 0)]},
        )
        limit.setToolTip(
            "The median power of the points at which a limit acted: the file does not hold the limit itself"
            if focus.limit_seen
            else "The board's power limit by its data sheet"
            if focus.published is not None
            else "The board's power limit, as it was set when this was shown"
        )
        plots[2].addItem(limit, ignoreBounds=True)
