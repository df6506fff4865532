"""Every dock of the window as one list: its title, key and place; the panels by name; and loading them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from PySide6.QtWidgets import QWidget

from ..context import Context
from ..watched_board import WatchedBoard
from .services import Services

if TYPE_CHECKING:
    from ...engine.control.left_over import LeftOver
    from ...engine.models.frequency import FrequencyFit
    from ...engine.store.database import Store
    from ...engine.store.record import SessionRecord
    from ..analysis.panel import AnalysisPanel
    from ..boards.panel import BoardsPanel
    from ..compare.panel import ComparePanel
    from ..control.panel import ControlPanel
    from ..convergence.panel import ConvergencePanel
    from ..front.panel import FrontPanel
    from ..home.panel import HomePanel
    from ..inspector.panel import InspectorPanel
    from ..model.panel import ModelPanel
    from ..queue.panel import QueuePanel
    from ..roofline.panel import RooflinePanel
    from ..sessions.panel import SessionsPanel
    from ..table.panel import TablePanel
    from ..tune.panel import TunePanel

CHANNELS = "channels"  # the one dock that is there before the panels are loaded


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """One dock. Its widget is `Panel(context)`, the class `panel` of `views.<name>`."""

    name: str
    text: str  # in the menu; '&' marks the mnemonic
    panel: str
    shortcut: str  # goes to it, and never closes it
    tip: str
    plots: bool = False  # in a stack of their own where the screen has room for two

    @property
    def title(self) -> str:
        """On the dock's tab."""
        return self.text.replace("&", "")

    def load(self) -> Any:
        """Import the panel's class; may take long."""
        return getattr(importlib.import_module(f"...views.{self.name}.panel", __package__), self.panel)


PANELS: tuple[PanelSpec, ...] = (
    PanelSpec(CHANNELS, "&Channels", "", "F5", "Every channel's value"),
    PanelSpec("home", "&Home", "HomePanel", "Alt+Home", "What can be done first, and what was done last"),
    PanelSpec("tune", "&Tune", "TunePanel", "F6", "Set up a session and run it"),
    PanelSpec("queue", "&Queue", "QueuePanel", "Ctrl+Shift+Q", "The runs that wait, and what became of the others"),
    PanelSpec("table", "Ta&ble", "TablePanel", "Shift+F6", "Every measurement of the result, sorted by any figure"),
    PanelSpec("inspector", "&Inspector", "InspectorPanel", "F4", "Choose a configuration, apply and export it"),
    PanelSpec("front", "&Front", "FrontPanel", "F7", "Speed against energy efficiency", plots=True),
    PanelSpec(
        "convergence",
        "Con&vergence",
        "ConvergencePanel",
        "Shift+F5",
        "The best so far over evaluations or time, and where each improvement came from",
        plots=True,
    ),
    PanelSpec("analysis", "&Analysis", "AnalysisPanel", "Shift+F7", "What the session's measurements show", plots=True),
    PanelSpec("compare", "Com&pare", "ComparePanel", "Shift+F8", "Sessions and boards side by side", plots=True),
    PanelSpec("model", "&Model", "ModelPanel", "F8", "The frequency model", plots=True),
    PanelSpec(
        "roofline",
        "Roof&line",
        "RooflinePanel",
        "F12",
        "Speed, work per energy and power over intensity, and what a flop and a byte cost",
        plots=True,
    ),
    PanelSpec("sessions", "S&essions", "SessionsPanel", "Ctrl+H", "Stored sessions: find, name, open, export"),
    PanelSpec("boards", "&Boards", "BoardsPanel", "Ctrl+B", "Every board at a glance, and the processes on them"),
    PanelSpec("control", "Cont&rol", "ControlPanel", "Ctrl+L", "Clocks and power limit by hand"),
)


class Panels(TypedDict, total=False):
    """The panels that are there; none is until they are loaded."""

    home: HomePanel
    tune: TunePanel
    queue: QueuePanel
    table: TablePanel
    inspector: InspectorPanel
    front: FrontPanel
    convergence: ConvergencePanel
    analysis: AnalysisPanel
    compare: ComparePanel
    model: ModelPanel
    roofline: RooflinePanel
    sessions: SessionsPanel
    boards: BoardsPanel
    control: ControlPanel


@dataclass(frozen=True, slots=True)
class Known:
    """What was kept of a board."""

    board: WatchedBoard
    fit: tuple[FrequencyFit, str] | None  # the newest, and what it was fitted to
    left_over: LeftOver | None  # settings that a crash left


@dataclass(frozen=True, slots=True)
class Loaded:
    """What takes too long for Qt's thread: the panels' modules, and what is known at the start."""

    classes: dict[str, Callable[[Context], QWidget]]
    gpus: list[tuple[str, str]]  # selector, label
    sessions: list[SessionRecord]
    known: Known  # of the shown board


def load_panels(services: Services) -> Loaded:
    """Import the panels and read the store. Raises WattridgeError where the store cannot be read."""
    from ...sensors.select import gpu_selectors

    gpus = gpu_selectors()
    store = services.store
    store.purge()
    sessions = store.sessions()
    importlib.import_module("...engine.session.tuner", __package__)
    classes = {spec.name: spec.load() for spec in PANELS if spec.panel}
    return Loaded(classes, gpus, sessions, known_of(store, services.boards.current))


def known_of(store: Store, board: WatchedBoard) -> Known:
    """Raises WattridgeError where the store cannot be read."""
    from ...engine.control.left_over import left_over

    info = board.gpu.info
    fit = store.latest_fit(info.name, simulated=info.source == "simulated")
    return Known(board, fit, left_over(info.uuid))
