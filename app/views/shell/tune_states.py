"""`TuneStates`: over the Tune workspace: which of its three states it is in, what runs, its health, and the drawers.

The state follows from what happens; each remembers which drawers are open in it, and the user can go to any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QSizePolicy, QToolBar, QToolButton, QWidget

from ...engine.results.health import Health
from ...engine.results.state import Progress, Purpose
from ...engine.session import events
from ..shared import theme
from ..shared.bridge import EngineBridge
from ..shared.captions import measured_words
from ..shared.current_result import CurrentResult
from ..shared.label import ElidedLabel, PlainLabel, plain_tip
from ..shared.widgets import Toggle, hbox, look_pressed
from .panels import DECIDE, RUNNING, SET_UP
from .workspaces import Workspaces

if TYPE_CHECKING:
    from ...engine.specification.plan import SessionPlan

TUNE: Final = "tune"
_STATES: Final = {
    SET_UP: ("&1 Set up", "What is tuned, where and for how long"),
    RUNNING: ("&2 Run", "The front as it grows"),
    DECIDE: ("&3 Decide", "The front, the choice and its export"),
}


class TuneStates(QToolBar):
    """Fills its line from the engine's events; `drawers` are the actions that open and close the workspace's docks."""

    def __init__(
        self,
        workspaces: Workspaces,
        bridge: EngineBridge,
        result: CurrentResult,
        drawers: Sequence[QAction],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("States of Tune", parent)
        self._workspaces, self._activity, self._result = workspaces, bridge.activity, result
        self.setObjectName("tune_states")
        self.setMovable(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.toggleViewAction().setVisible(False)  # it is always there
        self.buttons = {name: Toggle(text, text[3:], tip) for name, (text, tip) in _STATES.items()}
        for name, button in self.buttons.items():
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.clicked.connect(lambda _=False, name=name: self.enter(name))
        self.line = ElidedLabel(cut=Qt.TextElideMode.ElideRight)
        self.line.setAccessibleName("What the session does now")
        self.health = PlainLabel()
        self.health.setAccessibleName("Health of the session")
        row = hbox(*self.buttons.values(), (self.line, 1), self.health, of=(shown := QWidget()))
        row.setSpacing(3)
        row.setContentsMargins(6, 2, 6, 2)
        shown.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.addWidget(shown)
        self.drawers = [self._drawer(action) for action in drawers]
        theme.style(
            self.health,
            "* {{ color: {c.muted}; }}",
            "*[amber=true] {{ background: {c.warning}; color: {c.warning_text}; padding: 0 4px; }}",
        )
        bridge.subscribe(events.SessionStarted, self._session_started)
        bridge.subscribe(events.Preparing | events.MeasurementsAdded, self._goes_on)
        bridge.subscribe(events.SessionChanged, self._session_changed)
        workspaces.changed.connect(self._mark)
        self._show_health(Health())
        self._mark()

    def _drawer(self, action: QAction) -> QToolButton:
        """Its button, which goes into the menu at the end of the line where there is no room for it."""
        self.addAction(action)
        button = self.widgetForAction(action)
        assert isinstance(button, QToolButton)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        look_pressed(button)
        return button

    def enter(self, state: str) -> None:
        """Show the workspace in that state."""
        self._workspaces.set_state(TUNE, state)
        self._mark()

    @Slot()
    def _mark(self) -> None:
        """Which state it is in, and which there are: nothing can be decided before there is a result."""
        state = self._workspaces.by_name[TUNE].state
        there = {
            SET_UP: True,
            RUNNING: self._activity.plan is not None,
            DECIDE: self._result.table is not None,
        }
        for name, button in self.buttons.items():
            button.setChecked(name == state)
            button.setEnabled(there[name] or name == state)

    @Slot(object)
    def _session_started(self, event: events.SessionStarted) -> None:
        if event.plan.purpose is Purpose.ROOFLINE:
            return
        self._show_health(Health())
        if event.running:
            self.line.setText(_first_stage(event.plan))
            self.enter(RUNNING)

    @Slot(object)
    def _goes_on(self, event: events.Preparing | events.MeasurementsAdded) -> None:
        if self._activity.plan is None or self._activity.plan.purpose is Purpose.ROOFLINE:
            return
        if isinstance(event, events.Preparing):
            self.line.setText(event.what)
        else:
            self._show_progress(event.progress)

    @Slot(object)
    def _session_changed(self, event: events.SessionChanged) -> None:
        """A file that is shown whole leaves the state that it was opened in: it is set up to be replayed, too."""
        if self._activity.purpose is Purpose.ROOFLINE:
            return
        progress = event.progress
        self._show_progress(progress, event.reason)
        if not progress.state.alive and (progress.session or self._workspaces.by_name[TUNE].state != SET_UP):
            self.enter(DECIDE)

    def _show_progress(self, progress: Progress, reason: str = "") -> None:
        words = measured_words(progress.evaluated, progress.budget, progress.timed)
        if progress.state.alive:
            words = f"paused, {words}" if self._activity.paused else f"measuring {words.removesuffix(' measured')}"
        else:
            words = f"{progress.state}: {words if reason in ('', progress.state) else reason}"
        self.line.setText(words)
        self._show_health(progress.health)

    def _show_health(self, health: Health) -> None:
        self.health.setText(f"Health: {'good' if health.healthy else health.short}" if health.known else "")
        self.health.setToolTip(plain_tip("\n".join((*health.remarks, health.details))))
        self.health.setAccessibleDescription(health.words)
        self.health.setProperty("amber", not health.healthy)
        self.health.style().polish(self.health)


def _first_stage(plan: SessionPlan) -> str:
    """What is done before the first report of the engine."""
    specification = plan.specification
    if specification is not None and specification.service is not None:
        return "server starting"
    if specification is not None and specification.kernel is not None and plan.source != "simulated":
        return "compiling"
    return "first measurement"
