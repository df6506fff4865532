"""The first steps: cards over the window at the first start. Nothing waits for them; Escape ends them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QFrame, QMenuBar, QToolBar, QWidget

from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.turns import timer
from ..shared.widgets import button, hbox, vbox
from .host import Host
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
    do: Callable[[], object] | None = None
    possible: QAction | None = None  # what the button does is possible while this is enabled


class Tour(QFrame):
    """A card beside the widget it explains, which gets a frame. A child of the window."""

    ended = Signal()
    skipped = Signal()  # ended before the last step

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
        self.back, self.skip = button("&Back", clicked=self.go_back), button("&Skip", clicked=self.leave)
        for widget in (self.offer, self.skip, self.back, self.next):
            widget.installEventFilter(self)  # arrows would move the focus among them, and Return do nothing
        vbox(self.title, self.text, self.offer, hbox(self.place, 1, self.skip, self.back, self.next), of=self)
        self._frame = QFrame(window)
        self._frame.setObjectName("tour_frame")
        self._frame.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        window.installEventFilter(self)
        theme.style(
            self,
            "#tour {{ background: {c.raised}; border: 1px solid {c.accent}; border-radius: 6px; }}",
            "#tour QLabel {{ color: {c.text}; }}",
        )
        theme.style(self._frame, "#tour_frame {{ border: 2px solid {c.accent}; background: transparent; }}")
        for action in {step.possible for step in self._steps if step.possible is not None}:
            action.enabledChanged.connect(self._follow_action)
        self._soon = timer(self, self.stay_in_sight, once=True)
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
    def leave(self) -> None:
        """Close it before its end."""
        last = self._at + 1 == len(self._steps)
        self.end()
        if not last:
            self.skipped.emit()

    @Slot()
    def _accept_offer(self) -> None:
        do = self._steps[self._at].do
        self.go_on()
        if do is not None:
            do()

    @Slot()
    def _follow_action(self) -> None:
        """What can be done now gets the focus, where it was on the way past it."""
        possible = self._steps[self._at].possible
        self.offer.setEnabled(possible is None or possible.isEnabled())
        if self._window.focusWidget() is self.next and self.offer.isEnabled() and not self.offer.isHidden():
            self.offer.setFocus()

    def _show_step(self, index: int) -> None:
        step, self._at = self._steps[index], index
        if self._target is not None:
            self._target.removeEventFilter(self)
        self._target = step.bring()
        if self._target is not None:
            self._target.installEventFilter(self)
        self.title.setText(f"<b>{step.title}</b>")
        self.text.setText(step.text)
        self.place.setText(f"{index + 1} of {len(self._steps)}")
        self.offer.setText(step.offer)
        self.offer.setVisible(bool(step.offer))
        self._follow_action()
        self.back.setEnabled(index > 0)
        last = index + 1 == len(self._steps)
        self.next.setText("&Done" if last else "&Next")
        self.skip.setVisible(not last)
        self.setAccessibleDescription(step.text)
        self.next.setAccessibleDescription(f"{step.title}. {step.text}")  # read out with the focus
        self.show()
        self._put()
        self._soon.start()
        (self.offer if step.offer and self.offer.isEnabled() else self.next).setFocus()

    @Slot()
    def stay_in_sight(self) -> None:
        """What is in sight has changed: a dock that comes to the front lies over what floats above the window."""
        if self.isVisible() and self._target is not None and not self._target.isVisible():
            self.leave()  # the user went to another page
        elif self.isVisible():
            self._put()

    def _put(self) -> None:
        """Beside its target, on whichever side there is room; never over it, nor over the menus."""
        if self._target is None:
            return
        inside, around = self._room(), self._seen(self._target)
        self._frame.setGeometry(around)
        self._frame.setVisible(not around.isEmpty())
        self.setFixedWidth(min(_WIDTH, inside.width()))
        self.adjustSize()
        self.move(place_beside(around, self.size(), inside))
        self._frame.raise_()
        self.raise_()

    def _seen(self, target: QWidget) -> QRect:
        """What is in sight of a widget, in the window: it may be scrolled, or another tab lie in front of it."""
        if not target.isVisible():
            return QRect()
        seen, inside = target.rect(), target
        while inside is not self._window and (around := inside.parentWidget()) is not None:
            seen.translate(inside.pos())
            seen &= around.rect()
            inside = around
        return seen

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
        """Follow the sizes of the window and of the target; the arrows turn the pages, Return presses a button."""
        if watched is self._window or watched is self._target:
            if event.type() in (QEvent.Type.Resize, QEvent.Type.Move) and self.isVisible():
                self._put()
                self._soon.start()  # what is around it follows
            return False
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.KeyPress:
            return False
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and isinstance(watched, QAbstractButton):
            watched.click()
            return True
        return self._move(event.key())

    def _move(self, key: int) -> bool:
        moves = {Qt.Key.Key_Escape: self.leave, Qt.Key.Key_Right: self.go_on, Qt.Key.Key_Left: self.go_back}
        move = moves.get(Qt.Key(key))
        if move is not None:
            move()
        return move is not None


def place_beside(target: QRect, size: QSize, room: QRect) -> QPoint:
    """Where a card of that size covers as little of the target as can be: nothing, where any side has room for it."""
    if target.isEmpty():
        return QRect(QPoint(), size).translated(room.center() - QRect(QPoint(), size).center()).topLeft()
    corners = (
        QPoint(target.right() + _MARGIN, target.top()),
        QPoint(target.left() - size.width() - _MARGIN, target.top()),
        QPoint(target.left(), target.top() - size.height() - _MARGIN),
        QPoint(target.left(), target.bottom() + _MARGIN),
    )
    inside = [
        QPoint(
            max(min(corner.x(), room.right() - size.width()), room.left()),
            max(min(corner.y(), room.bottom() - size.height()), room.top()),
        )
        for corner in corners
    ]

    def covered(corner: QPoint) -> int:
        common = QRect(corner, size).intersected(target)
        return common.width() * common.height()

    return min(inside, key=covered)


def first_steps(host: Host, example: Path) -> tuple[Step, ...]:
    """Watch, search, understand; then the example is tuned, up to an exported configuration."""
    info = host.board.gpu.info
    board = "this board" if info.live else f"the {info.source} board"
    places = host.workspaces

    def understand() -> QWidget:
        places.show_workspace("understand")
        return places.rail.buttons["understand"]

    def panel(name: str) -> QWidget:
        places.bring(name)
        made: QWidget = host.panels[name]
        return made

    def strip() -> QWidget:
        places.show_workspace("tune")
        places.set_strip(True)
        return host.traces.strip

    return (
        Step(
            "Watch",
            f"Power, clocks, voltage and temperature of {board}, live. Drag over a stretch for its mean power and "
            "energy, turn the wheel to zoom, double click for live again. The header always shows the newest figures.",
            lambda: panel(TRACES),
        ),
        Step(
            "Tune",
            "Open a specification of a kernel, or a recorded cache, and press Start. Each configuration that is "
            "measured is a point: speed against energy efficiency. The Inspector at the right shows the one you click.",
            lambda: panel("tune"),
        ),
        Step(
            "Live traces beside the points",
            "What the board draws meanwhile, with the selected and marked measurements on it. Drag its upper edge for "
            "more of it; Shift+F4 shows or hides it in any workspace.",
            strip,
        ),
        Step(
            "Understand, control, keep",
            "What the measurements say and the models of them; clocks and power limit by hand; every session, kept in "
            "the Library. Ctrl and a number changes the workspace, Ctrl+K finds every action, F1 shows every key.",
            understand,
        ),
        Step(
            "Try it",
            "Tune the GEMM example now. It can be paused and stopped at the top of the window, and continues while you "
            "look elsewhere.",
            lambda: panel("tune"),
            "Tune the &example",
            lambda: host.open_specification(example, start=info.source == "simulated"),
        ),
        Step(
            "Choose and export",
            "Click a point, or leave it at the best so far, and export it: a header for your kernel, a script that "
            "sets the clocks, all measurements.",
            lambda: host.bring_button("export"),
            "E&xport",
            lambda: host.actions_by_name["export"].trigger(),
            host.actions_by_name["export"],
        ),
    )
