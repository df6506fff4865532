"""How far a session is: the bar, the rate, the time left, the best so far, failures by kind."""

from __future__ import annotations

from PySide6.QtWidgets import QGridLayout, QWidget

from ...base.formatting import UNKNOWN, duration, number
from ...engine.analysis.quantities import quantity
from ...engine.results.state import Progress, SessionState
from ...engine.session.events import Preparing
from ...engine.space.result_table import ResultTable
from ...engine.specification.plan import SessionPlan
from ..shared import theme
from ..shared.captions import measured_words
from ..shared.label import PlainLabel, plain_tip
from ..shared.widgets import ProgressBar, vbox

_LEFT, _TOOK = "Time left", "Time taken"
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
        self.bar = ProgressBar()
        self.bar.setFormat("not started")
        grid = QGridLayout()
        grid.setVerticalSpacing(0)
        self.rate, self.left, self.best, self.failed = self._values = tuple(PlainLabel(UNKNOWN) for _ in range(4))
        self.captions: list[PlainLabel] = []
        for place, (text, value) in enumerate(zip(("Rate", _LEFT, "Best so far", "Failed"), self._values, strict=True)):
            row, column = divmod(place, 2)
            self.captions.append(PlainLabel(text, muted=True))
            grid.addWidget(self.captions[-1], 2 * row, column)
            grid.addWidget(value, 2 * row + 1, column)
            grid.setColumnStretch(column, 1)
            value.setFont(theme.number_font())
        self.failed.setWordWrap(True)
        self.remark = PlainLabel(wrap=True)  # what the strategy reports
        self.remark.hide()
        vbox(self.bar, grid, self.remark, of=self, margins=0, spacing=4)
        self._table: ResultTable | None = None
        self._plan: SessionPlan | None = None
        self._preparing = False

    def set_session(self, table: ResultTable, plan: SessionPlan) -> None:
        """Another session begins."""
        self._table, self._plan = table, plan
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
        self.bar.setFormat(f"preparing: {round(step.done_s)} of at most {round(step.total_s)} s")
        self.bar.setToolTip(plain_tip(step.what))
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
        if progress.state is SessionState.DONE and reason:
            words = reason  # each says that it has ended, and why
        far = measured_words(progress.evaluated, progress.budget, progress.timed) + (
            " (%p %)" if progress.budget else " so far"
        )
        self.bar.setFormat(far + (f" · {words}" if words else ""))
        self.bar.setToolTip(plain_tip(words))
        over, timed = not progress.state.alive, progress.elapsed_s > 0
        self.rate.setText(f"{number(progress.rate_per_s)} per s" if timed or not over else UNKNOWN)
        self.captions[1].setText(_TOOK if over else _LEFT)
        self.left.setText(duration((progress.elapsed_s if timed else None) if over else progress.eta_s))
        described = quantity(self._plan.objective.goal.name, units=self._plan.units)
        best = progress.best_value
        self.best.setText(UNKNOWN if best is None else described.text(best))
        failures = self._table.failures()
        self.failed.setText(" · ".join(f"{n} {kind}" for kind, n in failures.items()) or "none")

    def show_remark(self, text: str) -> None:
        """What the strategy reports; it stays until the next remark."""
        self._preparing = False
        self.remark.setText(text)
        self.remark.setVisible(bool(text))
