"""The first steps: three cards over the window at the first start. Nothing waits for them; Escape ends them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QMenuBar, QToolBar, QWidget

from ..plots import theme
from ..plots.label import PlainLabel
from ..widgets import button, hbox, vbox
from .panels import TRACES

_WIDTH = 340
_MARGIN = 12


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to know. `bring` shows the widget it is about and returns it."""

    title: str
    text: str
    bring: Callable[[], QWidget]
    offer: str = ""  # a button's words
    do: Callable[[], None] | None = None


class Tour(QFrame):
    """A card beside the widget it explains, which gets a frame. A child of the window."""

    ended = Signal()

    def __init__(self, window: QWidget, steps: Sequence[Step]) -> None:
        super().__init__(window)
        self._window = window
        self._steps = tuple(steps)
        self._at = 0
        self._target: QWidget | None = None
        self.setObjectName("tour")
        self.setAccessibleName("First steps")
        self.title, self.text, self.place = PlainLabel(), PlainLabel(wrap=True), PlainLabel()
        self.title.setTextFormat(Qt.TextFormat.RichText)
        self.offer, self.next = button("", clicked=self._accept_offer), button("", clicked=self.go_on)
        self.back, self.skip = button("&Back", clicked=self.go_back), button("&Skip", clicked=self.end)
        for each in (self.offer, self.skip, self.back, self.next):
            each.installEventFilter(self)  # arrows would move the focus among them
        vbox(self.title, self.text, self.offer, hbox(self.place, 1, self.skip, self.back, self.next), of=self)
        self._frame = QFrame(window)
        self._frame.setObjectName("tour_frame")
        self._frame.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        window.installEventFilter(self)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()
        self._frame.hide()
        self.hide()

    def begin(self) -> None:
        """From the first step."""
        self._show_step(0)

    @property
    def step(self) -> int | None:
        """The number of the step shown, from 0; None while it is not shown."""
        return self._at if self.isVisible() else None

    @property
    def target(self) -> QWidget | None:
        """The widget that the step explains."""
        return self._target

    @property
    def frame(self) -> QRect:
        """Where the frame around that lies, in the window."""
        return self._frame.geometry()

    @Slot()
    def go_on(self) -> None:
        """The next step; after the last one it ends."""
        if self._at + 1 < len(self._steps):
            self._show_step(self._at + 1)
        else:
            self.end()

    @Slot()
    def go_back(self) -> None:
        """The step before."""
        if self._at:
            self._show_step(self._at - 1)

    @Slot()
    def end(self) -> None:
        """Close it."""
        if self.isVisible():
            self._frame.hide()
            self.hide()
            self.ended.emit()

    @Slot()
    def _accept_offer(self) -> None:
        do = self._steps[self._at].do
        self.go_on()
        if do is not None:
            do()

    def _show_step(self, at: int) -> None:
        step, self._at = self._steps[at], at
        if self._target is not None:
            self._target.removeEventFilter(self)
        self._target = step.bring()
        if self._target is not None:
            self._target.installEventFilter(self)
        self.title.setText(f"<b>{step.title}</b>")
        self.text.setText(step.text)
        self.place.setText(f"{at + 1} of {len(self._steps)}")
        self.offer.setText(step.offer)
        self.offer.setVisible(bool(step.offer))
        self.back.setEnabled(at > 0)
        last = at + 1 == len(self._steps)
        self.next.setText("&Done" if last else "&Next")
        self.skip.setVisible(not last)
        self.show()
        self._put()
        self.next.setFocus()

    @Slot()
    def stay_in_sight(self) -> None:
        """A dock that comes to the front lies over what floats above the window."""
        if self.isVisible():
            self._put()

    def _put(self) -> None:
        """Beside its target where there is room, else over the lower part of that; never over the menus."""
        if self._target is None:
            return
        inside = self._room()
        in_sight = not self._target.visibleRegion().isEmpty()  # another tab may lie in front of it
        around = QRect(self._target.mapTo(self._window, QPoint(0, 0)), self._target.size()) if in_sight else inside
        self._frame.setGeometry(around)
        self._frame.setVisible(in_sight)
        self.setFixedWidth(min(_WIDTH, inside.width()))
        self.adjustSize()
        beside = around.left() - self.width() - _MARGIN
        if beside >= inside.left():
            corner = QPoint(beside, around.top() + _MARGIN)
        else:
            corner = QPoint(around.center().x() - self.width() // 2, around.bottom() - self.height() - 4 * _MARGIN)
        self.move(
            max(min(corner.x(), inside.right() - self.width()), inside.left()),
            max(min(corner.y(), inside.bottom() - self.height()), inside.top()),
        )
        self._frame.raise_()
        self.raise_()

    def _room(self) -> QRect:
        """The window without its menus and tools."""
        room = self._window.rect()
        for kind in (QMenuBar, QToolBar):
            for bar in self._window.findChildren(kind, options=Qt.FindChildOption.FindDirectChildrenOnly):
                if bar.isVisible():
                    room.setTop(max(room.top(), bar.geometry().bottom()))
        return room.adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self._move(event.key()):
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the sizes of the window and of the target; the arrows turn the pages."""
        if watched is self._window or watched is self._target:
            if event.type() in (QEvent.Type.Resize, QEvent.Type.Move) and self.isVisible():
                self._put()
            return False
        return isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and self._move(event.key())

    def _move(self, key: int) -> bool:
        moves = {Qt.Key.Key_Escape: self.end, Qt.Key.Key_Right: self.go_on, Qt.Key.Key_Left: self.go_back}
        move = moves.get(Qt.Key(key))
        if move is not None:
            move()
        return move is not None

    @Slot()
    def _recolour(self) -> None:
        c = theme.colours()
        self.setStyleSheet(
            f"#tour {{ background: {c.raised}; border: 1px solid {c.accent}; border-radius: 6px; }}"
            f"#tour QLabel {{ color: {c.text}; }}"
        )
        self._frame.setStyleSheet(f"#tour_frame {{ border: 2px solid {c.accent}; background: transparent; }}")


def first_steps(source: str, bring: Callable[[str], QWidget], open_example: Callable[[], None]) -> tuple[Step, ...]:
    """Watch, search, choose. `bring(name)` shows a panel and returns it; `source` is the board's."""
    board = "this board" if source == "nvml" else f"the {source} board"
    return (
        Step(
            "What the board draws",
            f"Power, clocks, voltage and temperature of {board}, live. Drag over a stretch for its mean power and "
            "energy, turn the wheel to zoom, double click for live again.",
            lambda: bring(TRACES),
        ),
        Step(
            "Search for work per joule",
            "Open a specification of a kernel, a recorded cache, or an example; press Start, and every configuration "
            "that is measured appears in the table.",
            lambda: bring("tune"),
            "Open the GEMM example",
            open_example,
        ),
        Step(
            "Choose and export",
            "Each point is a configuration: speed against efficiency. Click one and export it. Sessions are kept; "
            "Ctrl+K finds every action, F1 shows every key.",
            lambda: bring("front"),
        ),
    )
