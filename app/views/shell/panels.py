"""What the window is made of, as two lists: its workspaces, and where each panel lies in them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

TRACES, CHANNELS = "traces", "channels"  # of the window itself: they are there before the others are loaded
INSPECTOR = "inspector"  # beside every workspace
STRIP = "strip"  # the live traces, below every workspace
SET_UP, RUNNING, DECIDE = "set_up", "running", "decide"  # the states of Tune


class Place(Enum):
    """Where a panel lies in its workspace."""

    CENTRE = auto()  # of several, each is a tab
    LEFT = auto()  # a dock; several are tabs
    RIGHT = auto()
    BESIDE = auto()  # the Inspector


@dataclass(frozen=True, slots=True)
class WorkspaceSpec:
    """One workspace. Strip and Inspector are in sight, or not, until the user chooses otherwise."""

    name: str
    text: str  # in the menu; '&' marks the mnemonic
    shortcut: str
    tip: str
    strip: bool = False  # live traces below
    inspector: bool = False
    # Of one whose drawers (docks, strip and Inspector) follow from what happens: the open ones of each state, the first
    # one first.
    states: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """On the rail."""
        return self.text.replace("&", "")


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """One panel. Its widget is `Panel(context)`: the class `panel` of `views.<package>.<name>_panel`."""

    name: str
    text: str  # in the menu; '&' marks the mnemonic
    panel: str  # empty: the window makes it itself
    shortcut: str  # goes to it, and never closes it
    tip: str
    workspace: str
    place: Place = Place.CENTRE
    below: bool = False  # a dock that has a stack of its own, below the others, where the screen is tall
    early: bool = False  # made as soon as it is loaded, whatever is in sight: it keeps what happens
    package: str = ""  # by default called as the workspace

    @property
    def title(self) -> str:
        """On its tab or dock."""
        return self.text.replace("&", "")

    @property
    def is_dock(self) -> bool:
        """Whether it can be moved and closed."""
        return self.place not in (Place.CENTRE, Place.BESIDE)

    @property
    def module(self) -> str:
        """Below `views`."""
        return f"{self.package or self.workspace}.{self.name}_panel"

    def load(self) -> Any:
        """Import the panel's class; may take long."""
        module = importlib.import_module(f"...views.{self.module}", __package__)
        return getattr(module, self.panel)


PANELS: tuple[PanelSpec, ...] = (
    PanelSpec(
        "home",
        "&Home",
        "HomePanel",
        "Alt+Home",
        "What can be done first, and what was done last",
        "home",
        package="library",
    ),
    PanelSpec(TRACES, "&Traces", "", "Ctrl+T", "Power, clocks, voltage and temperature over time", "watch"),
    PanelSpec(CHANNELS, "&Channels", "", "F5", "Every channel's value", "watch", Place.RIGHT),
    PanelSpec(
        "boards",
        "&Boards",
        "BoardsPanel",
        "Ctrl+B",
        "Every board at a glance, and the processes on them",
        "watch",
        Place.RIGHT,
        below=True,
    ),
    PanelSpec("front", "&Front", "FrontPanel", "F7", "Speed against energy efficiency", "tune", package="front"),
    PanelSpec("tune", "&Session", "TunePanel", "F6", "Set up a session and run it", "tune", Place.LEFT, early=True),
    PanelSpec(
        "queue",
        "&Queue",
        "QueuePanel",
        "Ctrl+Shift+Q",
        "The runs that wait, and what became of the others",
        "tune",
        Place.LEFT,
    ),
    PanelSpec(
        "table",
        "Ta&ble",
        "TablePanel",
        "Shift+F6",
        "Every measurement of the result, sorted by any figure",
        "tune",
        Place.LEFT,
        below=True,
        package="front",
    ),
    PanelSpec(
        "convergence",
        "Con&vergence",
        "ConvergencePanel",
        "Shift+F5",
        "The best so far over evaluations or time, and where each improvement came from",
        "tune",
        Place.LEFT,
        below=True,
        package="front",
    ),
    PanelSpec(
        "pool",
        "&Pool",
        "PoolPanel",
        "Ctrl+Shift+B",
        "The boards that share a session: which, what each of them does and has done",
        "tune",
        Place.LEFT,
        below=True,
    ),
    PanelSpec("program", "&Profile", "ProgramPanel", "", "Where the joules of a program go", "program"),
    PanelSpec("answers", "Ans&wers", "AnswersPanel", "", "What the session says, in sentences", "understand"),
    PanelSpec("analysis", "&Analysis", "AnalysisPanel", "Shift+F7", "What the measurements show", "understand"),
    PanelSpec("model", "&Model", "ModelPanel", "F8", "The frequency model", "understand"),
    PanelSpec(
        "roofline",
        "Roof&line",
        "RooflinePanel",
        "F12",
        "Speed, work per energy and power over intensity, and what a flop and a byte cost",
        "understand",
    ),
    PanelSpec("compare", "Com&pare", "ComparePanel", "Shift+F8", "Sessions and boards side by side", "understand"),
    PanelSpec("idle", "I&dle", "IdlePanel", "", "What the board draws without work", "understand"),
    PanelSpec("control", "Cont&rol", "ControlPanel", "Ctrl+L", "Clocks and power limit by hand", "control", early=True),
    PanelSpec("sessions", "S&essions", "SessionsPanel", "Ctrl+H", "Find, name, open and export sessions", "library"),
    PanelSpec(
        INSPECTOR,
        "&Inspector",
        "InspectorPanel",
        "",
        "Choose a configuration, apply and export it",
        "",
        Place.BESIDE,
        package="inspector",
    ),
)
_WORKSPACES = (
    WorkspaceSpec("home", "&Home", "Ctrl+1", "What to do first, and the last sessions"),
    WorkspaceSpec("watch", "&Watch", "Ctrl+2", "The traces at full width, every channel and board"),
    WorkspaceSpec(
        "tune",
        "&Tune",
        "Ctrl+3",
        "Set up and run a session, choose a configuration",
        states={SET_UP: frozenset({"tune"}), RUNNING: frozenset(), DECIDE: frozenset({INSPECTOR})},
    ),
    WorkspaceSpec("program", "&Program", "Ctrl+4", "Where the joules of a program go: timeline, kernels, ranges"),
    WorkspaceSpec(
        "understand",
        "&Understand",
        "Ctrl+5",
        "Answers, analysis, model, roofline, comparison",
        True,
        True,
    ),
    WorkspaceSpec("control", "&Control", "Ctrl+6", "Set clocks and the power limit by hand", True),
    WorkspaceSpec("library", "&Library", "Ctrl+7", "Stored sessions and files"),
)
WORKSPACES = tuple(spec for spec in _WORKSPACES if any(panel.workspace == spec.name for panel in PANELS))
