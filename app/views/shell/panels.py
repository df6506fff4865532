"""Every dock of the window as one list: its title, key and place; the View menu and the shortcuts are made from it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

CHANNELS = "channels"  # the one dock that is there before the panels are loaded


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """One dock. Its widget is `Panel(context)`, the class `panel` of `views.<name>`."""

    name: str
    text: str  # in the menu; '&' marks the mnemonic
    panel: str
    shortcut: str
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
    PanelSpec("tune", "&Tune", "TunePanel", "F6", "The tuning session"),
    PanelSpec("configuration", "C&onfiguration", "ConfigurationPanel", "F4", "The selected configuration, its source"),
    PanelSpec("front", "&Front", "FrontPanel", "F7", "Speed against energy efficiency", plots=True),
    PanelSpec("analysis", "&Analysis", "AnalysisPanel", "Shift+F7", "What the session's measurements tell", plots=True),
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
    PanelSpec("control", "Cont&rol", "ControlPanel", "F10", "Clocks and power limit by hand"),
)
