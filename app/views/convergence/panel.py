"""How the search came to its best: the best so far, every evaluation, and where each improvement came from."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QButtonGroup, QWidget

from ...engine.session import events
from ..shared.context import Context
from ..shared.label import PlainLabel
from ..shared.panel import Panel
from ..shared.result_caption import ResultCaption
from ..shared.turns import InParts, OwnTurn
from ..shared.widgets import Toggle, hbox, vbox
from .plot import ConvergencePlot, History, Improvement

_UNTIMED = "What the evaluations took is not known"
_TIMED = "Draw over the time that was spent on measuring, on the board's own clock"
_HOW = "Point at a mark to see where that improvement came from; a click, Left and Right select it."


class ConvergencePanel(Panel, InParts):
    """Grows with the session while it is in sight. What is selected in it is selected in every view."""

    def __init__(self, context: Context, parent: QWidget | None = None, *, at_once: bool = True) -> None:
        super().__init__(context, parent)
        self._result = context.result
        self.history: History | None = None
        self.begin(at_once)

    def make(self) -> Iterator[None]:
        """The plot, what stands around it, what is heard."""
        self.plot = ConvergencePlot(at_once=False)
        yield
        yield from self.plot.make_parts()
        self.caption = ResultCaption(self._result)
        self.plot.setMinimumHeight(140)
        self.evaluations = Toggle("Evaluations", "Over evaluations", "Draw over the number of evaluations")
        self.seconds = Toggle("Seconds", "Over seconds", _TIMED)
        self._over = QButtonGroup(self)
        for each in (self.evaluations, self.seconds):
            self._over.addButton(each)
        self.evaluations.setChecked(True)
        self.words = PlainLabel(_HOW, wrap=True, selectable=True, muted=True)
        self.words.setMinimumHeight(2 * self.words.fontMetrics().lineSpacing())  # the plot keeps its height
        vbox(
            self.caption,
            hbox(PlainLabel("Over"), self.evaluations, self.seconds, 1),
            (self.plot, 1),
            self.words,
            of=self,
            margins=6,
        )
        yield
        self.seconds.toggled.connect(self.plot.show_over_seconds)
        self.plot.pointed.connect(self._say)
        self.plot.chosen.connect(self._result.select)
        self._result.changed.connect(self._selected)
        self._soon = OwnTurn(self, self._refresh)  # however many points there are
        self.subscribe(events.SessionStarted | events.MeasurementsAdded, self._refresh_soon)
        self.subscribe(events.FiguresRestated | events.SessionChanged, self._refresh_soon)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._soon.start()

    @Slot(object)
    def _refresh_soon(self, _event: object) -> None:
        self._soon.start()

    @Slot()
    def _refresh(self) -> None:
        """Draw what the result holds by now; what is out of sight waits until it is seen."""
        table, plan = self._result.table, self._result.plan
        if not self.isVisible():
            return
        if table is not None and plan is not None:
            if self.history is None or self.history.table is not table:
                self.history = History(table, plan)
                self.plot.show_history(self.history)
            self.history.refresh()
            self.plot.refresh()
        timed = self.history is not None and self.history.timed
        self.seconds.setEnabled(timed)
        self.seconds.setToolTip(_TIMED if timed else _UNTIMED)
        if not timed:
            self.evaluations.setChecked(True)
        self._say(None)

    @Slot(int)
    def _selected(self, index: int) -> None:
        self.plot.select(index)
        self._say(None)

    @Slot(object)
    def _say(self, pointed: Improvement | None) -> None:
        """Of the improvement that is pointed at, else of the one that is selected, else of the newest."""
        found = self.history.improvements if self.history is not None else []
        selected = next((each for each in found if each.index == self._result.index), None)
        shown = pointed or selected or (found[-1] if found else None)
        self.words.setText(_HOW if self.history is None or shown is None else self.history.words(shown))
