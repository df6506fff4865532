"""`Host`: what the window offers to the parts that it is made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from PySide6.QtGui import QAction

if TYPE_CHECKING:
    from ..shared.bridge import EngineBridge
    from ..shared.current_result import CurrentResult
    from ..shared.settings import Settings
    from ..shared.watched_boards import WatchedBoard
    from ..watch.monitor_panel import MonitorPanel
    from .copying import Copying
    from .file_menus import FileOpener
    from .live_traces import LiveTraces
    from .loading import Panels
    from .notices import Notices
    from .report_writer import ReportWriter
    from .side_windows import SideWindows
    from .window_actions import Actions
    from .workspaces import Workspaces


class Host(Protocol):
    """The interface of `MainWindow` that its actions and its wiring use."""

    panels: Panels
    workspaces: Workspaces
    traces: LiveTraces
    monitor: MonitorPanel
    side_windows: SideWindows
    notices: Notices
    reports: ReportWriter
    copying: Copying
    file_opener: FileOpener
    settings: Settings
    bridge: EngineBridge
    result: CurrentResult
    actions_made: Actions
    actions_by_name: dict[str, QAction]

    @property
    def board(self) -> WatchedBoard: ...

    def open_specification(self, path: Path, *, start: bool = False) -> None: ...

    def open_session(self, session: int) -> None: ...

    def resume_session(self, session: int) -> None: ...

    def compare_sessions(self, sessions: tuple[int, ...]) -> None: ...

    def open_log(self, path: Path) -> None: ...

    def edit_specification(self) -> None: ...

    def tune_example(self, path: Path | None = None) -> None: ...

    def ask_machine(self) -> None: ...

    def ask_report(self) -> None: ...

    def show_strip(self, shown: bool) -> None: ...

    def show_inspector(self, shown: bool) -> None: ...

    def set_full_screen(self, full: bool) -> None: ...

    def set_theme(self, mode: Any) -> None: ...

    def reset_layout(self) -> None: ...

    def find_action(self) -> None: ...

    def copy_diagnostics(self) -> None: ...

    def close(self) -> bool: ...
