"""`ReportWriter`: a session as one HTML file, written off Qt's thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from ..shared.settings import Settings
from ..shared.tasks import TaskQueue
from .services import Services

if TYPE_CHECKING:
    from ...engine.profile.program_profile import ProgramProfile
    from ...engine.report.content import ReportContent


class ReportWriter(QObject):
    """Writes the current result, with its chosen configuration, else the best."""

    started = Signal(str)  # what is being written, in words
    written = Signal(object)  # its Path
    failed = Signal(str, str)  # what went wrong, and the remedy

    def __init__(self, services: Services, settings: Settings, parent: QObject) -> None:
        super().__init__(parent)
        self._services, self._settings = services, settings
        self._tasks = TaskQueue(self, self.failed)

    def write(self, path: Path) -> None:
        """Write the report; `written` or `failed` follows."""
        result = self._services.result
        plan, table, session = result.plan, result.table, result.session
        if plan is None or table is None or not len(table):
            self.failed.emit("there is no session to report", "run one, or open one in Library")
            return
        chosen, rule = (result.index, result.way) if result.index >= 0 else (None, "")
        store, load = self._services.store, self._settings.load

        def gathered() -> ReportContent:
            from ...engine.analysis.session_analysis import analyse
            from ...engine.report.content import gather

            record = store.session(session) if session else None
            analysis = analyse(table, plan.objective, load=load)
            return gather(plan, analysis, store, record=record, chosen=chosen, rule=rule, load=load)

        self._write(gathered, path)

    def write_stored(self, sessions: Sequence[int], path: Path) -> None:
        """Write the report of a stored session, the first, with the others beside it; `written` or `failed` follows."""
        store, load = self._services.store, self._settings.load

        def gathered() -> ReportContent:
            from ...engine.analysis.compare import compare_sessions
            from ...engine.analysis.session_analysis import analyse
            from ...engine.report.content import gather
            from ...engine.session.opened import stored_session

            opened, *others = (stored_session(store, session) for session in sessions)
            analysis = analyse(opened.table, opened.objective, load=load)
            compared = compare_sessions([other.side for other in (opened, *others)]) if others else None
            return gather(opened.plan, analysis, store, record=opened.record, load=load, comparison=compared)

        self._write(gathered, path)

    def write_profile(self, profile: ProgramProfile, path: Path) -> None:
        """Write the report of a program's profile; `written` or `failed` follows."""
        self._write(lambda: profile, path)

    def _write(self, gathered: Callable[[], ReportContent | ProgramProfile], path: Path) -> None:
        def work() -> Path:
            from ...engine.report.page import write_report

            return write_report(gathered(), path)  # the dialog has asked

        self.started.emit(f"Writing {path.name} …")
        self._tasks.run(work, self.written.emit)
