"""The frequency model on demand: fit it to a clock sweep or to the session, see it, steer the next session by it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QSplitter,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from app.engine import events
from app.engine.models.frequency import FrequencyFit
from app.views import theme
from app.views.context import Context
from app.views.model_facts import fit_as_html, legend_as_html
from app.views.model_plot import ModelPlot

_SWEEP_POINTS = 10
_WIDE = 700  # pixels from which the words fit beside the plot
_EMPTY = (
    "No model yet.\n"
    "'Fit a clock sweep' runs a fully loading kernel at about ten clocks;\n"
    "'Fit the session' uses the measurements of the session."
)


class ModelPanel(QWidget):
    """Shows the last fit. Usable without a window: `ModelPanel(context)`."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._fit: FrequencyFit | None = None
        self._source = ""
        self._fitting = False
        self.sweep, self.session = QPushButton("Fit a clock &sweep"), QPushButton("Fit the sess&ion")
        self.sweep.setToolTip(f"Run a fully loading kernel at about {_SWEEP_POINTS} clocks; a running session waits")
        self.session.setToolTip("Fit to the configuration that was measured at the most clocks")
        self.steer = QPushButton("S&teer")
        self.steer.setToolTip(
            "Keep the next session to the clocks within ±10 % of the optimum, once the points bracket it"
        )
        self.progress = QProgressBar()
        self.progress.setFormat("%v of %m clocks")
        self.progress.hide()
        self.plot, self.facts = ModelPlot(), QTextBrowser()
        self.legend, self.steering = QLabel(), QLabel()
        self._lay_out()
        self.sweep.clicked.connect(self.fit_sweep)
        self.session.clicked.connect(self.fit_session)
        self.steer.clicked.connect(self.steer_session)
        bridge = context.bridge
        bridge.session_started.connect(self._session_moved)
        bridge.measurements_added.connect(self._session_moved)
        bridge.fit_progress.connect(self._fit_progress)
        bridge.fit_finished.connect(self._fit_finished)
        bridge.fault.connect(self._fault)
        context.selection.steered.connect(self._steered)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()
        self._set_buttons()

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        for widget in (self.sweep, self.session):
            buttons.addWidget(widget)
        buttons.addStretch(1)
        buttons.addWidget(self.steer)
        self.facts.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.facts.setAccessibleName("The model's parameters")
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.addWidget(self.plot)
        splitter.addWidget(self.facts)
        splitter.setStretchFactor(0, 3)
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([540, 300])
        self._splitter = splitter
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.legend.setWordWrap(True)
        self.steering.setWordWrap(True)
        self.steering.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 6, 6, 6)
        layout.addLayout(buttons)
        layout.addWidget(self.progress)
        layout.addWidget(self.legend)
        layout.addWidget(splitter, 1)
        layout.addWidget(self.steering)
        self.setMinimumSize(360, 260)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Words beside the plot where there is room, else below it."""
        super().resizeEvent(event)
        wide = self.width() >= _WIDE
        self._splitter.setOrientation(Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical)

    @property
    def fit(self) -> FrequencyFit | None:
        """The fit that is shown."""
        return self._fit

    # --- asking ------------------------------------------------------------------------------------------------------

    @Slot()
    def fit_sweep(self) -> None:
        """Sweep the clocks under full load and fit."""
        self._ask(events.Fit(sweep=True, points=_SWEEP_POINTS))

    @Slot()
    def fit_session(self) -> None:
        """Fit to the session's measurements."""
        self._ask(events.Fit(sweep=False))

    @Slot()
    def steer_session(self) -> None:
        """Keep the next session to the range, or take that back."""
        selection = self._context.selection
        if selection.clocks_mhz is not None:
            selection.steer(None)
        elif self._fit is not None and self._fit.range_mhz is not None and self._fit.optimum_bracketed:
            selection.steer(self._fit.range_mhz)

    def _ask(self, command: events.Fit) -> None:
        if self._fitting:
            return
        self._fitting = True
        if command.sweep:
            self.progress.setRange(0, 0)
            self.progress.show()
        self._context.bridge.submit(command)
        self._set_buttons()

    # --- answers -----------------------------------------------------------------------------------------------------

    @Slot(object)
    def _fit_progress(self, event: events.FitProgress) -> None:
        self.progress.setRange(0, event.total)
        self.progress.setValue(event.done)
        self.progress.show()

    @Slot(object)
    def _fit_finished(self, event: events.FitFinished) -> None:
        self._fit, self._source = event.fit, event.source
        self._end_fitting()
        self.plot.show_fit(event.fit)
        self._recolour()

    @Slot(object)
    def _fault(self, _event: events.EngineFault) -> None:
        if self._fitting:
            self._end_fitting()

    @Slot(object)
    def _session_moved(self, _event: object) -> None:
        self._set_buttons()

    @Slot(object)
    def _steered(self, clocks: tuple[float, float] | None) -> None:
        self.steer.setText("S&teer" if clocks is None else "Stop s&teering")
        self.steering.setVisible(clocks is not None)
        if clocks is not None:
            self.steering.setText(
                f"The next session keeps to the supported graphics clocks within {clocks[0]:.0f}–{clocks[1]:.0f} MHz."
            )
        self._set_buttons()

    def _end_fitting(self) -> None:
        self._fitting = False
        self.progress.hide()
        self._set_buttons()

    def _set_buttons(self) -> None:
        table = self._context.selection.table
        self.sweep.setEnabled(not self._fitting)
        self.session.setEnabled(not self._fitting and table is not None and len(table) > 0)
        told = self._fit is not None and self._fit.range_mhz is not None and self._fit.optimum_bracketed
        self.steer.setEnabled(told or self._context.selection.clocks_mhz is not None)

    @Slot()
    def _recolour(self) -> None:
        self.plot.say(_EMPTY if self._fit is None else "")
        self.facts.setVisible(self._fit is not None)
        self.legend.setVisible(self._fit is not None)
        if self._fit is not None:
            self.facts.setHtml(fit_as_html(self._fit, self._source))
            self.legend.setText(legend_as_html(self._fit))
