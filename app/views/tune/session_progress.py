"""How far a session is: the bar, the rate, the time left, the best so far and how it came about, failures by kind."""

from __future__ import annotations

import math

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QGridLayout, QProgressBar, QWidget

from ...engine.analysis.quantities import quantity
from ...engine.measurement import State
from ...engine.session.events import Preparing
from ...engine.session.plan import SessionPlan
from ...engine.session_state import Progress, SessionState
from ...engine.space.result_table import STATES, ResultTable
from ...numbers import UNKNOWN, duration, number
from ..plots import theme
from ..plots.label import PlainLabel, axis_title, plain_tip
from ..widgets import vbox

_LEFT, _TOOK = "Time left", "Time taken"
_OK = STATES.index(State.OK)
_STATE_WORDS = {
    SessionState.RUNNING: "",
    SessionState.PAUSED: "paused",
    SessionState.DONE: "finished",
    SessionState.STOPPED: "stopped",
    SessionState.FAILED: "failed",
    SessionState.INTERRUPTED: "interrupted",
}


class SessionProgress(QWidget):
    """Shows the `Progress` of the session whose table and plan it was given."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bar = QProgressBar()
        self.bar.setFormat("not started")
        self.history = BestSoFar()
        grid = QGridLayout()
        grid.setVerticalSpacing(0)
        self.rate, self.left, self.best, self.failed = self._values = tuple(PlainLabel(UNKNOWN) for _ in range(4))
        self.captions: list[PlainLabel] = []
        captions = (("Rate", 3), (_LEFT, 4), ("Best so far", 5), ("Failed", 4))
        for place, ((text, stretch), value) in enumerate(zip(captions, self._values, strict=True)):
            self.captions.append(PlainLabel(text, muted=True))
            grid.addWidget(self.captions[-1], 0, place)
            grid.addWidget(value, 1, place)
            grid.setColumnStretch(place, stretch)
            value.setFont(theme.number_font())
        self.failed.setWordWrap(True)
        self.remark = PlainLabel(wrap=True)  # what the strategy reports
        self.remark.hide()
        vbox(self.bar, grid, self.remark, self.history, of=self, margins=0, spacing=4)
        self._table: ResultTable | None = None
        self._plan: SessionPlan | None = None
        self._preparing = False

    def set_session(self, table: ResultTable, plan: SessionPlan) -> None:
        """Another session begins."""
        self._table, self._plan = table, plan
        self.history.set_session(table, plan)
        self.bar.setRange(0, max(1, plan.budget))
        self.bar.setValue(len(table))
        self.bar.setFormat("starting …")
        for label in self._values:
            label.setText(UNKNOWN)
        self.show_remark("")

    def show_preparing(self, step: Preparing) -> None:
        """How far the runner is with what it does before the first measurement."""
        self.bar.setMaximum(max(1, round(step.total_s)))
        self.bar.setValue(round(step.done_s))
        self.bar.setFormat(f"preparing: {round(step.done_s)} of {round(step.total_s)} s")
        self.bar.setToolTip(step.what)
        self.show_remark(step.what)
        self._preparing = True

    def show_progress(self, progress: Progress, reason: str = "") -> None:
        """Where the session stands; `reason` says why it ended."""
        if self._plan is None or self._table is None:
            return
        if self._preparing:
            self._preparing = False
            self.show_remark("")
        self.bar.setMaximum(max(1, progress.budget))
        self.bar.setValue(progress.evaluated if progress.budget else 0)
        state = _STATE_WORDS[progress.state]
        words = f"{state}: {reason}" if reason not in ("", state) else state
        far = f"{progress.evaluated} of {progress.budget} (%p %)" if progress.budget else f"{progress.evaluated} so far"
        self.bar.setFormat(far + (f" · {words}" if words else ""))
        self.bar.setToolTip(plain_tip(words))
        self.rate.setText(f"{number(progress.rate_per_s)} /s")
        over = not progress.state.alive
        self.captions[1].setText(_TOOK if over else _LEFT)
        self.left.setText(duration(progress.elapsed_s if over else progress.eta_s))
        described = quantity(self._plan.objective.goal.name, units=self._plan.units)
        best = progress.best_value
        self.best.setText(UNKNOWN if best is None else described.text(best))
        failures = self._table.failures()
        self.failed.setText(" · ".join(f"{n} {kind}" for kind, n in failures.items()) or "none")
        self.history.refresh()

    def show_remark(self, text: str) -> None:
        """What the strategy reports; it stays until the next remark."""
        self._preparing = False
        self.remark.setText(text)
        self.remark.setVisible(bool(text))


_HEIGHT_PX = (84, 180)  # lowest and highest
_ROOM_FOR_NAME_PX = 110  # of the axis below


class BestSoFar(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """The best value of the objective over the evaluations, as steps: whether the search still finds anything."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, enableMenu=False)
        self.getPlotItem().setContentsMargins(0, 7, 6, 0)  # so that the ticks at the ends are whole
        self.setMouseEnabled(x=False, y=False)
        self.hideButtons()
        self.setAccessibleName("Best so far over the evaluations")
        self._curve = pg.PlotCurveItem()
        self.addItem(self._curve)
        self.getAxis("bottom").setLabel("Evaluations")
        self.set_height(_HEIGHT_PX[0])
        self._table: ResultTable | None = None
        self._name, self._sign = "", 1.0
        self._seen, self._best = 0, math.inf
        self.steps: list[tuple[int, float]] = []  # (evaluations, the best from then on)
        theme.notifier().changed.connect(self.recolour)
        self.recolour()

    def set_session(self, table: ResultTable, plan: SessionPlan) -> None:
        goal = plan.objective.goal
        described = quantity(goal.name, units=plan.units)
        self._table, self._name, self._sign = table, goal.name, -1.0 if goal.maximise else 1.0
        self._seen, self._best, self.steps = 0, math.inf, []
        self.getAxis("left").enableAutoSIPrefix(False)
        self.getAxis("left").setScale(described.factor)
        self.getAxis("left").setLabel(axis_title(described.title))
        self._curve.setData([], [])
        self.refresh()

    def set_height(self, high: int) -> None:
        """As high as there is room, within its bounds, in pixels; the axis is named where that leaves room for it."""
        high = min(max(high, _HEIGHT_PX[0]), _HEIGHT_PX[1])
        self.setFixedHeight(high)
        self.getAxis("bottom").showLabel(high >= _ROOM_FOR_NAME_PX)

    def refresh(self) -> None:
        """Read new measurements: only those that improve on the best are kept."""
        if self._table is None:
            return
        length = len(self._table)
        values = self._table.values(self._name, self._seen)[: length - self._seen] * self._sign
        ok = self._table.states(self._seen)[: length - self._seen] == _OK
        costs = np.where(ok & np.isfinite(values), values, math.inf)
        best = np.minimum.accumulate(np.concatenate([[self._best], costs]))
        for at in np.flatnonzero(best[1:] < best[:-1]):
            self.steps.append((self._seen + int(at) + 1, float(best[at + 1]) * self._sign))
        self._best, self._seen = float(best[-1]), length
        if self.steps:
            x, y = np.asarray([*self.steps, (max(length, self.steps[-1][0] + 1), self.steps[-1][1])]).T
            self._curve.setData(np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1])

    @Slot()
    def recolour(self) -> None:
        colours = theme.colours()
        self.setBackground(colours.base)
        for name in ("left", "bottom"):
            self.getAxis(name).setPen(colours.border)
            self.getAxis(name).setTextPen(colours.text)
        self._curve.setPen(pg.mkPen(colours.accent, width=2))
