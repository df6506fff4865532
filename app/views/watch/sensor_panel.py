"""`SensorWindow`: a board's power sources as they were characterised: figures, and their answers to a step of load."""

from __future__ import annotations

from html import escape

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QDialog, QWidget

from ...engine.metering.characterisation.sensor_figures import (
    WORDS,
    Characterisation,
    SourceFigures,
    describe_characterisation,
)
from ...engine.metering.characterisation.store import known_characterisation
from ...sensors.gpu import Gpu, GpuInfo
from ..plots.descriptions import rich_text
from ..plots.plot import Box, set_up_axes
from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.widgets import vbox

_COLOURS = {"instant": "orange", "average": "sky", "counter": "purple", "buffer": "green"}
_SYMBOLS = {"instant": "o", "average": "s", "counter": "t", "buffer": "+"}
_TAIL_S = 0.5  # at the end of the answer, where the final power is reported
_CURVE_POINTS = 600


class SensorWindow(QDialog):
    """Stays beside the main window; nothing waits for it."""

    def __init__(self, info: GpuInfo, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._info = info
        self.found: Characterisation | None = None
        self.resize(760, 620)
        self.text = PlainLabel(wrap=True, selectable=True)
        self.text.setTextFormat(Qt.TextFormat.RichText)
        self.plot = pg.PlotWidget(viewBox=Box(), enableMenu=False)
        set_up_axes(self.plot, "Time since a step from rest to load (ms)", "Share of the step that is reported (%)")
        self._legend = self.plot.addLegend(offset=(-12, -12))
        vbox(self.text, (self.plot, 1), of=self)
        theme.follow(self.look_again)

    def show_board(self, gpu: Gpu) -> None:
        """Another board is shown."""
        self._info = gpu.info
        self.look_again()

    @Slot()
    def look_again(self) -> None:
        """Show what is kept of this board now."""
        self.setWindowTitle(f"Power sensors of {self._info.label}")
        self.found = known_characterisation(self._info)
        self.plot.setVisible(self.found is not None)
        self.text.setText(self._missing() if self.found is None else self._described(self.found))
        self._draw()

    def _missing(self) -> str:
        first = " The first tuning session does so, for 8 s." if self._info.source == "nvml" else ""
        return (
            f"<p>The power sensors of {escape(self._info.label)} have not been looked at yet.{first}</p>{self._offer()}"
            f"<p>Until then measurements use: {escape(self._info.power_source)}.</p>"
        )

    def _described(self, characterisation: Characterisation) -> str:
        whole = characterisation.complete and not characterisation.prior
        return rich_text([describe_characterisation(characterisation, self._info.label)]) + (
            "<p>Points: what was reported after steps from rest. Lines: the same by these figures, for a board whose "
            f"power steps at once; what lies between is the board's own rise.</p>{'' if whole else self._offer()}"
        )

    def _offer(self) -> str:
        """The full look, for a time when nothing else runs on the board; it is never made unasked."""
        board = escape(self._info.uuid if self._info.source == "simulated" else str(self._info.index))
        return (
            "<p>For the full look, of one to two minutes while the GPU idles, run in a terminal: "
            f"<b>wattridge characterise --gpu {board} --when-idle</b></p>"
        )

    def _draw(self) -> None:
        self.plot.clear()
        colours = theme.colours()
        self.plot.setBackground(QColor(colours.base))
        for axis in ("bottom", "left"):
            self.plot.getAxis(axis).setPen(QColor(colours.border))
            self.plot.getAxis(axis).setTextPen(QColor(colours.text))
        self._legend.setLabelTextColor(QColor(colours.text))
        for name, figures in (self.found.sources if self.found else {}).items():
            if figures is None or len(figures.answer.time_s) < 2:
                continue
            colour = QColor(getattr(colours, _COLOURS[name]))
            time_s, share = step_shares(figures)
            self.plot.addItem(
                pg.ScatterPlotItem(
                    time_s * 1e3, 100 * share, symbol=_SYMBOLS[name], size=6, pen=colour, brush=None, name=WORDS[name]
                )
            )
            curve_s = np.linspace(float(time_s[0]), float(time_s[-1]), _CURVE_POINTS)
            self.plot.addItem(
                pg.PlotCurveItem(curve_s * 1e3, 100 * figures.expected_share(curve_s), pen=pg.mkPen(colour, width=1))
            )
        if self.found is not None:
            self.plot.setXRange(-100, 1400)


def step_shares(figures: SourceFigures) -> tuple[np.ndarray, np.ndarray]:
    """A source's answer as times since the step, s, and the share of the step reported; both of shape (n,)."""
    time_s, power_w = figures.answer.time_s, figures.answer.power_w
    before = power_w[time_s <= figures.lag_ms / 1e3]
    rest_w = float(np.median(before)) if len(before) else float(np.min(power_w))
    final_w = float(np.median(power_w[time_s >= time_s[-1] - _TAIL_S]))
    return time_s, (power_w - rest_w) / ((final_w - rest_w) or 1.0)
