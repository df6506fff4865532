"""How large the space is of what was opened, before anything is measured."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QCheckBox, QWidget

from ...engine.session_state import SessionState
from ...engine.space.search_space import SearchSpace
from ...engine.store.record import SessionRecord
from ...numbers import count_text, counted, duration
from ..plots import theme
from ..plots.label import PlainLabel, plain_tip
from ..session_words import measured_words
from ..widgets import button, hbox, vbox
from .draft import Draft, RunsElsewhere

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
        theme.notifier().changed.connect(self.recolour)
        self.say(_FIRST)
        self.recolour()

    def say(self, words: str) -> None:
        """Show a text alone: what to do first, or what is under way."""
        self._show(words, "", None)

    def complain(self, what: str, remedy: str) -> None:
        """Why the file gives no session."""
        self._show(what, remedy, None)

    def offer_elsewhere(self, found: RunsElsewhere, start: bool) -> None:
        """The device that runs what the shown board cannot, a press away; `start`: it is then started at once."""
        self._show(f"{found.what}.", "", None)
        self.elsewhere.setText(f"{'Run it' if start else 'Set it up'} on {found.device}")
        self.elsewhere.setToolTip(plain_tip(f"Show {found.device} instead of this board; both stay watched"))
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

    @Slot()
    def recolour(self) -> None:
        self.steered.setStyleSheet(f"color: {theme.colours().accent};")


def _progress_words(stored: SessionRecord) -> str:
    return f"session {stored.id}: {measured_words(stored.evaluated, stored.budget, stored.timed)}"


def _details(space: SearchSpace) -> str:
    """How many restrictions removed how much (the tool tip names them), and what was assumed."""
    removing = [count for count in space.removed_by.values() if count]
    removed = [f"{count_text(sum(removing))} removed by {counted(len(removing), 'restriction')}"] if removing else []
    return "\n".join([*removed, *space.notes])
