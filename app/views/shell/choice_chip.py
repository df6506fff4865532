"""`ChoiceChip`: which measurement is chosen, by which rule, its rank, and what it costs and saves; on every page.

What it says stands in every file that is exported. Ctrl+Z on it, or the button beside it, undo the choice.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QSize, Qt, Slot
from PySide6.QtGui import QKeyEvent, QKeySequence, QPaintEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QStyle, QStyleOptionButton, QStylePainter, QWidget

from ...engine.session import events
from ..shared import theme
from ..shared.bridge import EngineBridge
from ..shared.current_result import CurrentResult
from ..shared.label import plain_tip
from ..shared.turns import OwnTurn, timer
from ..shared.widgets import button

_SLOW_MS = 250  # between two looks at a table that grows
_NONE = "Nothing chosen yet"
_LEAST = "Measurement 00000 · by hand"
_ROOM_PX = 26  # beside its text
_LINK = "Press to see it in the Inspector; Ctrl+Z undoes the choice"


class ChoiceChip(QPushButton):
    """One line, cut where it does not fit and whole in the tool tip."""

    def __init__(
        self, result: CurrentResult, bridge: EngineBridge, show: Callable[[], object], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._result = result
        self.setObjectName("chip")
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.clicked.connect(show)
        self.undo = button("Undo", "Undo the choice (Ctrl+Z on the choice)", result.undo)
        self.undo.setAccessibleName("Undo the choice")
        self._turn = OwnTurn(self, self._look)
        self._slowly = timer(self, self._look, _SLOW_MS, once=True)
        for signal in (result.changed, result.best_changed, result.replaced):
            signal.connect(self._follow)
        bridge.subscribe(events.MeasurementsAdded | events.SessionChanged, self._grown)
        theme.style(
            self,
            "#chip {{ background: {c.raised}; color: {c.text}; border: 1px solid {c.border}; border-radius: 8px;",
            " padding: 2px 10px; }} #chip:hover {{ border-color: {c.accent}; }}",
            "#chip:focus {{ border: 2px solid {c.accent}; padding: 1px 9px; }} #chip:disabled {{ color: {c.muted}; }}",
        )
        self._follow()

    # --- what it says -------------------------------------------------------------------------------------------------

    @Slot()
    def _follow(self, *_: object) -> None:
        """Say at once which one it is; the rest in a turn of its own."""
        result, chosen = self._result, self._result.chosen
        shown = result.table is not None
        for widget in (self, self.undo):
            widget.setVisible(shown)
        self.setEnabled(chosen is not None)
        self.undo.setEnabled(result.can_undo)
        self._say([_NONE] if chosen is None else [f"Measurement {chosen + 1}", result.rule], ())
        if chosen is not None:
            self._turn.start()

    @Slot(object)
    def _grown(self, event: events.MeasurementsAdded | events.SessionChanged) -> None:
        if event.progress.session == self._result.session and not self._slowly.isActive():
            self._slowly.start()

    @Slot()
    def _look(self) -> None:
        """Rank, and what it costs and saves."""
        from ...engine.analysis.standing import chosen_words  # the panels have it, long before

        result = self._result
        stands = result.standing()
        if stands is None:
            return
        self._slowly.setInterval(max(_SLOW_MS, int(7000 * result.standing_took_s)))
        number = f"Measurement {stands.measurement}"
        head = f"{number}, {chosen_words(result.rule)}: {stands.rank_words} for {stands.objective}."
        self._say([number, result.rule, stands.rank_words, *stands.short], (head, *stands.sentences))

    def _say(self, parts: list[str], sentences: tuple[str, ...]) -> None:
        text = " · ".join(parts)
        if text != self.text():
            self.setText(text)
            self.setAccessibleName(f"Choice: {text}")
        tip = "\n".join((*sentences, _LINK))
        self.setToolTip(plain_tip(tip))
        self.setAccessibleDescription(tip)

    def sizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance(self.text()) + _ROOM_PX, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        least = self.fontMetrics().horizontalAdvance(_LEAST) + _ROOM_PX
        return QSize(min(least, self.sizeHint().width()), self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        option = QStyleOptionButton()
        self.initStyleOption(option)
        room = self.style().subElementRect(QStyle.SubElement.SE_PushButtonContents, option, self).width()
        option.text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, room)
        QStylePainter(self).drawControl(QStyle.ControlElement.CE_PushButton, option)

    # --- the keyboard -------------------------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Ctrl+Z is its own here: elsewhere it undoes what was set up in Tune."""
        if event.type() == QEvent.Type.ShortcutOverride and _undoes(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if _undoes(event):
            self._result.undo()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)


def _undoes(event: QEvent) -> bool:
    return isinstance(event, QKeyEvent) and event.matches(QKeySequence.StandardKey.Undo)
