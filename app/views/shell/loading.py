"""Loading what takes too long for Qt's thread, and the panels by name, each made when it is first asked for.

`QtTypes`: all of PySide's types, made on Qt's thread before another thread imports what uses them.

PySide makes a type when it is first asked for, and keeps no lock meanwhile: the Python code that this runs lets another
thread in, and where that asks for the same type, both make it and both remove it from the list of those to be made. The
second removal writes into freed memory. Importing pyqtgraph asks for every type there is.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6 import QtCore, QtGui, QtWidgets
from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from ...engine.models.fit_documents import latest_fit
from ..shared.context import Context
from ..shared.panel import Ending
from ..shared.turns import InParts, timer
from ..shared.watched_boards import WatchedBoard
from .panels import PANELS
from .services import Services

if TYPE_CHECKING:
    from ...engine.control.left_over import LeftOver
    from ...engine.models.fit.frequency import FrequencyFit
    from ...engine.store.database import Store
    from ...engine.store.record import SessionRecord

_MODULES = (QtCore, QtGui, QtWidgets)
_SLICE_S = 0.004  # of Qt's thread per turn; all of them take a tenth of a second


def types_to_make() -> Iterator[tuple[object, str]]:
    """Module and name of each type that has not been requested yet."""
    return ((module, name) for module in _MODULES for name in dir(module) if name not in vars(module))


class QtTypes(QObject):
    """Makes them, some in each turn of the event loop."""

    made = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._waiting: Iterator[tuple[object, str]] = iter(())
        self._timer = timer(self, self._make_some)

    @Slot()
    def make(self) -> None:
        """Begin, unless it has begun; `made` follows in any case."""
        if not self._timer.isActive():
            self._waiting = iter(list(types_to_make()))
            self._timer.start()

    @Slot()
    def _make_some(self) -> None:
        end = time.perf_counter() + _SLICE_S
        for module, name in self._waiting:
            getattr(module, name)
            if time.perf_counter() > end:
                return
        self._timer.stop()
        self.made.emit()


Maker = Callable[[Context], QWidget]


class Panels(QObject):
    """A mapping of the panels by name. `in` says whether one can be asked for; iteration goes over those made."""

    made = Signal(str)  # the name of a panel that is there from now on

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._makers: dict[str, Any] = {}
        self._context: Context | None = None
        self._begun: dict[str, Any] = {}  # some parts are there
        self._made: dict[str, QWidget] = {}

    def offer(self, name: str, make: Callable[[], QWidget]) -> None:
        """From now on this one can be asked for, also before the others are loaded."""
        self._makers[name] = lambda _context: make()

    def load(self, makers: dict[str, Maker], context: Context) -> None:
        """From now on these panels can be asked for."""
        self._makers |= makers
        self._context = context

    def shutdown(self) -> None:
        """Make no further one, and end the threads and timers of those that were made."""
        for panel in self._begun.values():
            panel.finish()
            panel.setParent(self._window)  # to be deleted with the others
        self._made |= self._begun
        self._makers.clear()
        self._begun.clear()
        for panel in self._made.values():
            if isinstance(panel, Ending):
                panel.shutdown()

    def add(self, name: str, panel: QWidget) -> None:
        """One that was made elsewhere."""
        self._made[name] = panel
        self.made.emit(name)

    def has(self, name: str) -> bool:
        """Whether it was made."""
        return name in self._made

    def make_part(self, name: str) -> None:
        """As much of a panel that can be asked for as there is time for in one turn of Qt's loop."""
        if name in self._made:
            return
        if name not in self._begun:
            self._begin(name)
        elif self._begun[name].is_whole:
            self.add(name, self._begun.pop(name))
        else:
            self._continue(name, self._begun[name].make_part)

    def _begin(self, name: str) -> None:
        maker: Any = self._makers.pop(name)
        in_parts = isinstance(maker, type) and issubclass(maker, InParts)
        if in_parts:
            self._begun[name] = maker(self._context, at_once=False)
        else:
            self.add(name, maker(self._context))

    def _continue(self, name: str, make: Callable[[], None]) -> None:
        """Do not retry a panel that could not be made."""
        try:
            make()
        except BaseException:
            del self._begun[name]
            raise

    def __getitem__(self, name: str) -> Any:
        if name not in self._made and name not in self._begun:
            self._begin(name)
        if name in self._begun:
            self._continue(name, self._begun[name].finish)
            self.add(name, self._begun.pop(name))
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._made or name in self._begun or name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._made))

    def __len__(self) -> int:
        return len(self._made)

    def items(self) -> list[tuple[str, QWidget]]:
        """Those that were made."""
        return list(self._made.items())


@dataclass(frozen=True, slots=True)
class Known:
    """What was kept of a board."""

    board: WatchedBoard
    fit: tuple[FrequencyFit, str] | None  # the newest, and what it was fitted to
    left_over: LeftOver | None  # settings that a crash left


@dataclass(frozen=True, slots=True)
class Loaded:
    """What takes too long for Qt's thread: the panels' modules, and what is known at the start."""

    classes: dict[str, Maker]
    gpus: list[tuple[str, str]]  # selector, label
    sessions: list[SessionRecord]
    known: Known  # of the shown board


def load_panels(services: Services) -> Loaded:
    """Import the panels and read the store. Raises WattridgeError if the store cannot be read."""
    from ...sensors.select import gpu_selectors

    gpus = gpu_selectors()
    store = services.store
    store.purge()
    sessions = store.sessions()
    for beside in (
        "...engine.session.engine_thread",
        "...views.tune.editor_window",
        "...views.tune.wizard",
        "...views.plots.plot_export",
        "scipy.stats",  # for the first analysis
    ):
        importlib.import_module(beside, __package__)
    classes = {spec.name: spec.load() for spec in PANELS if spec.panel}
    return Loaded(classes, gpus, sessions, known_of(store, services.boards.current))


def known_of(store: Store, board: WatchedBoard) -> Known:
    """Raises WattridgeError if the store cannot be read."""
    from ...engine.control.left_over import left_over

    info = board.gpu.info
    fit = latest_fit(store, info.name, simulated=info.source == "simulated", uuid=info.uuid)
    return Known(board, fit, left_over(info.uuid))
