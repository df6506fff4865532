"""What the widgets of the window have in common: `Panel`, which has a context; `Part`, a widget without one.

`Ending`: objects that run timers or threads.
"""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtWidgets import QWidget

from . import theme
from .tasks import LatestTask, TaskQueue
from .turns import InParts, OwnTurn

if TYPE_CHECKING:
    from ...engine.session import events
    from .context import Context


def end_all(owner: QObject) -> None:
    """Wait for the threads of an object and of all that it owns, and stop their timers."""
    tasks: list[LatestTask | TaskQueue] = [*owner.findChildren(LatestTask), *owner.findChildren(TaskQueue)]
    timers: list[QTimer | OwnTurn] = [*owner.findChildren(QTimer), *owner.findChildren(OwnTurn)]
    for task in tasks:
        task.shutdown()
    for timer in timers:
        timer.stop()


class Ending:
    """Mixed into a QObject that runs timers or threads, or owns what does."""

    def shutdown(self) -> None:
        """End all running jobs. Subclasses extend it for further resources."""
        assert isinstance(self, QObject)
        end_all(self)


class Part(QWidget, Ending):
    """A widget that is told when the colours change."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.notifier().changed.connect(self._colours_changed)

    @Slot()
    def _colours_changed(self) -> None:
        """Not to be overridden: PySide keeps calling an overridden slot when its object is gone."""
        if not isinstance(self, InParts) or self.is_whole:
            self.recolour()

    def recolour(self) -> None:
        """Take over the colours in use. Called when they have changed."""


class Panel(Part):
    """A part that is given the window's context."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context

    def subscribe(
        self, kinds: type[events.Event] | UnionType, slot: Callable[..., object], *, roofline: bool = False
    ) -> None:
        """Have a slot called with the engine's events of these kinds, as `EngineBridge.subscribe` does."""
        self._context.bridge.subscribe(kinds, slot, roofline=roofline)


class PanelInParts(Panel, InParts):
    """A panel that takes too long to make for one turn: it has `make` in place of `__init__`."""

    def __init__(self, context: Context, parent: QWidget | None = None, *, at_once: bool = True) -> None:
        super().__init__(context, parent)
        self.begin(at_once)
