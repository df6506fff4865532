"""`ScoreWindow`: search strategies scored on recorded caches: how far ahead of random search each one is, and when."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QMenu,
    QSizePolicy,
    QSplitter,
    QToolButton,
    QWidget,
)

from ...engine.analysis.score_runs import ScorePlan, Scores, score
from ...engine.strategies import base as strategies
from ..file_dialogs import open_files
from ..number_boxes import WholeBox
from ..plots.label import PlainLabel
from ..progress_bar import ProgressBar
from ..threads.tasks import LatestTask
from ..widgets import button, hbox, vbox
from .plots import ScoreBars, ScoreCurves, WinsTable

_FILES = "Kernel Tuner caches (*.json *.json.gz);;All files (*)"
_FIRST = ("auto", "bayesian_optimisation", "greedy_ils", "genetic_algorithm", "simulated_annealing")
_REPEATS = 10
_JOBS = max(1, (os.cpu_count() or 2) - 1)
_EMPTY = (
    "Choose caches in which every configuration was measured, and press Start: each strategy then searches them as if "
    "they were boards, some times over."
)
_EXPLAINED = (
    "0 is as good as random search, 1 finds the optimum at once. The budget ends where random search is 95 % of the "
    "way from the median to the optimum."
)


class ScoreWindow(QDialog):
    """Stays beside the main window; the runs are done by `jobs` processes of their own, None: by this one."""

    _progressed = Signal(int, int)

    def __init__(self, parent: QWidget | None = None, *, jobs: int | None = _JOBS) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self.setWindowTitle("Strategy scores")
        self.setModal(False)
        self.resize(1000, 720)
        self._caches: tuple[Path, ...] = ()
        self.scores: Scores | None = None  # what is shown
        self._background = LatestTask(self)
        tip = "Kernel Tuner caches in which every configuration was measured"
        self.choose, self.start = button("&Caches …", tip, self.choose_caches), button("&Start", "", self.start_or_stop)
        self.named = PlainLabel()
        self.strategies = QToolButton()
        self.strategies.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.strategies.setMenu(_StayingMenu(self.strategies))
        self.repeats = WholeBox()
        self.repeats.setRange(1, 1000)
        self.repeats.setValue(_REPEATS)
        self.repeats.setToolTip("Runs of each strategy on each space")
        self.over = QComboBox()
        self.over.addItem("evaluations", False)
        self.over.addItem("time", True)
        self.over.setToolTip("What the budget counts; time needs caches with the cost of each evaluation")
        self.progress, self.message = ProgressBar(), PlainLabel(_EMPTY, wrap=True)
        self.progress.setFormat("%v of %m runs")
        policy = self.progress.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.progress.setSizePolicy(policy)
        self.space = QComboBox()
        self.space.setAccessibleName("Space of the curves")
        self.space.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.curves, self.bars, self.wins = ScoreCurves(), ScoreBars(), WinsTable()
        self._fill_strategies()
        self._lay_out()
        self.space.currentIndexChanged.connect(self._draw)
        self._progressed.connect(self._show_progress, Qt.ConnectionType.QueuedConnection)
        self._background.done.connect(self._scored)
        self._background.failed.connect(self._failed)
        self._strategies_chosen()
        self.set_caches(())

    def _lay_out(self) -> None:
        self.named.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        repeats, over, shown = PlainLabel("&Repeats"), PlainLabel("O&ver"), PlainLabel("S&how")
        for label, widget in ((repeats, self.repeats), (over, self.over), (shown, self.space)):
            label.setBuddy(widget)
        above = QWidget()
        vbox(hbox(shown, self.space, 1), (self.curves, 1), of=above, margins=0)
        below = QSplitter(Qt.Orientation.Horizontal)
        below.addWidget(self.bars)
        below.addWidget(self.wins)
        below.setSizes([520, 480])
        split = self._shown = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(above)
        split.addWidget(below)
        split.setSizes([380, 260])
        choices = hbox(self.strategies, repeats, self.repeats, over, self.over, (self.progress, 1), self.start)
        vbox(hbox(self.choose, (self.named, 1)), choices, self.message, (split, 1), 0, of=self)
        split.hide()  # until there are scores

    def _fill_strategies(self) -> None:
        for name in strategies.names():
            action = self.strategies.menu().addAction(strategies.get(name).label)
            action.setData(name)
            action.setCheckable(True)
            action.setChecked(name in _FIRST)
            action.toggled.connect(self._strategies_chosen)

    # --- what to score -----------------------------------------------------------------------------------------------

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names of the strategies that are ticked."""
        return tuple(action.data() for action in self.strategies.menu().actions() if action.isChecked())

    @Slot()
    def choose_caches(self) -> None:
        """Open a dialog for the caches."""
        open_files(self, "Caches to score on", _FILES, self.set_caches)

    def provenance(self) -> str:
        """What the plots are of: recordings, whatever result is shown."""
        return self.named.text()

    def set_caches(self, caches: Sequence[Path]) -> None:
        """Score on these from the next start on."""
        self._caches = tuple(caches)
        self.named.setText(", ".join(path.name for path in caches) or "no cache chosen yet")
        self._set_buttons()

    @Slot()
    def _strategies_chosen(self) -> None:
        count = len(self.chosen)
        self.strategies.setText(f"{count} strateg{'y' if count == 1 else 'ies'}")
        self._set_buttons()

    def _set_buttons(self) -> None:
        busy = self._background.busy
        self.start.setText("&Stop" if busy else "&Start")
        self.start.setEnabled(busy or bool(self._caches and self.chosen))
        self.progress.setVisible(busy)

    # --- the runs ----------------------------------------------------------------------------------------------------

    @Slot()
    def start_or_stop(self) -> None:
        """Score what is chosen, or stop: what was shown before stays."""
        if self._background.busy:
            self._background.shutdown()
            self._set_buttons()
            return
        plan = ScorePlan(
            caches=self._caches,
            strategies=self.chosen,
            repeats=self.repeats.value(),
            over_time=bool(self.over.currentData()),
            jobs=self._jobs,
        )
        self.progress.setRange(0, 0)
        self.message.setText(_EXPLAINED)

        def job(stop: threading.Event) -> Scores | None:
            scores = score(plan, stop, self._progressed.emit)
            if scores is not None:
                _ = scores.wins  # takes a while, and is kept
            return scores

        self._background.run(job)
        self._set_buttons()

    @Slot(int, int)
    def _show_progress(self, done: int, total: int) -> None:
        self.progress.setRange(0, total)
        self.progress.setValue(done)

    @Slot(object)
    def _scored(self, scores: Scores | None) -> None:
        self._set_buttons()
        if scores is None:
            return
        self.scores = scores
        with QSignalBlocker(self.space):
            self.space.clear()
            if len(scores.advantages) > 1:
                self.space.addItem("all spaces", "")
            for space, budget in scores.evaluations.items():
                self.space.addItem(f"{space} ({budget} evaluations)", space)
        self.bars.show_scores(scores)
        self.wins.show_scores(scores)
        self._shown.show()
        self._draw()

    @Slot()
    def _draw(self) -> None:
        if self.scores is not None:
            self.curves.show_scores(self.scores, self.space.currentData() or None)

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self.message.setText(f"{what}: {remedy}")
        self._set_buttons()

    def shutdown(self) -> None:
        """End what runs."""
        self._background.shutdown()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._background.busy:
            self.start_or_stop()
        super().closeEvent(event)


class _StayingMenu(QMenu):
    """A menu of ticks that stays open while they are set."""

    def mouseReleaseEvent(self, event: object) -> None:
        action = self.activeAction()
        if action is not None and action.isCheckable():
            action.trigger()
        else:
            super().mouseReleaseEvent(event)  # type: ignore[arg-type]
