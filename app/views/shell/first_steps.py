"""What the first-start tour says: three steps over the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from ...paths import resources
from .tour import Step

if TYPE_CHECKING:
    from .window import MainWindow

EXAMPLE = "gemm.toml"


def first_steps(window: MainWindow) -> tuple[Step, ...]:
    """Watch, search, choose."""

    def bring(name: str) -> QWidget:
        window.dock_area.bring(name)
        return window.docks[name]

    info = window.board.gpu.info
    whose = "this board" if info.source == "nvml" else f"the {info.source} board"
    return (
        Step(
            "What the board draws",
            f"Power, clocks, voltage and temperature of {whose}, live. Drag over a stretch for its mean power and "
            "energy, turn the wheel to zoom, double click for live again.",
            lambda: window.monitor,
        ),
        Step(
            "Search for work per joule",
            "Open a specification of a kernel, a recorded cache, or an example; press Start, and every configuration "
            "that is measured appears in the table.",
            lambda: bring("tune"),
            "Open the GEMM example",
            lambda: window.open_specification(resources() / "examples" / EXAMPLE, start=False),
        ),
        Step(
            "Choose and take away",
            "Each point is a configuration: speed against efficiency. Click one and export it. Sessions are kept; "
            "Ctrl+K finds every action, F1 shows every key.",
            lambda: bring("front"),
        ),
    )
