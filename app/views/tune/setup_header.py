"""`SetupHeader`: what is set up to run, in one line.

`SpeedChoice`: how fast a board that is not real runs; gone while a real one is shown.

How large the space is of what was opened, before anything is measured.

How far a session is: the bar, the rate, the time left, the best so far, failures by kind.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QWidget

from ...base.formatting import UNKNOWN, count_text, counted, duration, number
from ...engine.analysis.quantities import quantity
from ...engine.results.state import Progress, SessionState
from ...engine.session.events import Preparing
from ...engine.space.result_table import ResultTable
from ...engine.space.search_space import SearchSpace
from ...engine.specification.plan import SessionPlan
from ...engine.store.record import SessionRecord
from ..shared import theme
from ..shared.captions import measured_words
from ..shared.label import ElidedLabel, PlainLabel, plain_tip
from ..shared.watched_boards import NO_FASTER, SPEEDS, WatchedBoards, speed_words
from ..shared.widgets import ProgressBar, button, hbox, vbox
from .draft import Draft, RunsElsewhere

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


class SetupHeader(ElidedLabel):
    """The line is cut off where it does not fit; its tool tip is whole."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent, cut=Qt.TextElideMode.ElideRight)
        bold = self.font()
        bold.setBold(True)
        self.setFont(bold)


_TIP = "How fast simulated boards and recordings run. Times and joules are those of their own clocks at any speed."


class SpeedChoice(QWidget):
    """Also changes the speed while a session runs."""

    def __init__(self, boards: WatchedBoards, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._boards = boards
        self.choice = QComboBox()
        self.choice.setToolTip(f"{_TIP} {NO_FASTER}")
        self.label = PlainLabel("Spee&d of the board")
        self.label.setBuddy(self.choice)
        hbox(self.label, self.choice, 1, of=self, margins=0)
        self.choice.activated.connect(self._chosen)
        for signal in (boards.speed_changed, boards.board_changed):
            signal.connect(self._show)
        self._show()

    @Slot(int)
    def _chosen(self, index: int) -> None:
        self._boards.set_speed(self.choice.itemData(index))

    @Slot()
    def _show(self, *_: object) -> None:
        """The speeds on offer, and the one of the command line if it is none of them."""
        board = self._boards.current
        self.setVisible(not board.real)
        self.label.setText(f"Spee&d of the {board.gpu.info.source} board" if not board.real else "")
        self.choice.clear()
        for speed, words in sorted({self._boards.speed: speed_words(self._boards.speed), **SPEEDS}.items()):
            self.choice.addItem(words, speed)
        self.choice.setCurrentIndex(self.choice.findData(self._boards.speed))


_FIRST = "Open a specification, a recorded cache or one of the examples to see its search space; then press Start."


class DraftSummary(QWidget):
    """The space in words, whether the model steers its clocks, and whether a growing file is followed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.space = PlainLabel(wrap=True, selectable=True)
        self.details = PlainLabel(wrap=True, selectable=True, muted=True)
        self.look = button("&Look at it …", "What each restriction leaves of the space, and every valid configuration")
        self.show_all = button("Show all", "Every measurement of the file as the result, without a search")
        self.elsewhere = button("")
        self.steered = PlainLabel(wrap=True)
        self.unsteer = button("Use all clocks", "Use the specification's own clocks again")
        self.follow = QCheckBox("Follow the file while its tuner writes it")
        self.follow.setToolTip("Show what is in it and whatever is added, until the tuner is done; nothing is searched")
        self.as_new = QCheckBox("As a new session with the same set-up")
        self.as_new.setToolTip("Leave the stored session as it is and measure again; unticked, it is continued")
        layout = vbox(
            hbox((self.space, 1), self.show_all, self.look),
            self.details,
            self.elsewhere,
            hbox((self.steered, 1), self.unsteer),
            self.follow,
            self.as_new,
            of=self,
            spacing=2,
        )
        layout.setContentsMargins(0, 4, 0, 4)
        self.say(_FIRST)
        theme.style(self.steered, "color: {c.accent};")

    def say(self, words: str) -> None:
        """Show a text alone: what to do first, or what is under way."""
        self._show(words, "", None)

    def complain(self, what: str, remedy: str) -> None:
        """Why the file gives no session."""
        self._show(what, remedy, None)

    def offer_elsewhere(self, runs_elsewhere: RunsElsewhere, start: bool) -> None:
        """The device that runs what the shown board cannot, a press away; `start`: it is then started at once."""
        self._show(f"{runs_elsewhere.what}.", "", None)
        self.elsewhere.setText(f"{'Run it' if start else 'Set it up'} on {runs_elsewhere.device}")
        tip = (
            f"Show {runs_elsewhere.device} instead of this board; both stay watched" if runs_elsewhere.selector else ""
        )
        self.elsewhere.setToolTip(plain_tip(tip))
        self.elsewhere.show()

    def show_draft(self, draft: Draft) -> None:
        """The plan of a draft in words."""
        space = draft.plan.space
        if draft.replay:
            valid = f"{counted(space.size, 'measurement')} of {counted(space.cartesian, 'combination')}"
        else:
            valid = f"{count_text(space.size)} valid of {counted(space.cartesian, 'combination')}"
        built = f", built in {duration(space.build_seconds)}" if space.build_seconds > 0 else ""
        stored = f" · {_progress_words(draft.stored)}" if draft.stored is not None else ""
        self._show(valid + built + stored, _details(space), draft.clocks_mhz)
        if draft.refused is not None:
            what, remedy = draft.refused
            self.details.setText(f"It can be looked at, exported and reported, but not run: {what} ({remedy})")
            self.details.show()
        self.look.show()
        self.show_all.setVisible(draft.recorded is not None)
        self.space.setToolTip("\n".join(f"{p.name}: {counted(len(p.values), 'value')}" for p in space.parameters))
        self.follow.setVisible(draft.follow is not None)
        self.follow.setChecked(draft.follow is not None)
        self.as_new.setVisible(draft.stored is not None and draft.refused is None)
        self.as_new.setChecked(draft.stored is not None and draft.stored.state is SessionState.DONE)
        self.details.setToolTip("\n".join(f"{count_text(n)} removed by {text}" for text, n in space.removed_by.items()))

    def _show(self, space: str, details: str, clocks: tuple[float, float] | None) -> None:
        self.look.hide()
        self.show_all.hide()
        self.elsewhere.hide()
        for label, text in ((self.space, space), (self.details, details)):
            label.setText(text)
            label.setToolTip("")
            label.setVisible(bool(text))
        self.follow.hide()
        self.as_new.hide()
        self.steered.setText("" if clocks is None else f"Steered by the model: {clocks[0]:.0f}–{clocks[1]:.0f} MHz")
        self.steered.setVisible(clocks is not None)
        self.unsteer.setVisible(clocks is not None)


def _progress_words(stored: SessionRecord) -> str:
    return f"session {stored.id}: {measured_words(stored.evaluated, stored.budget, stored.timed)}"


def _details(space: SearchSpace) -> str:
    """How many restrictions removed how much (the tool tip names them), and what was assumed."""
    removing = [count for count in space.removed_by.values() if count]
    removed = [f"{count_text(sum(removing))} removed by {counted(len(removing), 'restriction')}"] if removing else []
    return "\n".join([*removed, *space.notes])
