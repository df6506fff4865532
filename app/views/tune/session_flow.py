"""`SessionFlow`: from a dropped file, the list or a crash to a session that is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QMimeData, QObject, Signal, Slot

from ...engine.session.events import Open
from ...engine.session_state import SessionState
from ..threads.tasks import TaskQueue

if TYPE_CHECKING:
    from ...engine.store.record import SessionRecord
    from ..shell.window import MainWindow

_RECOVERY = "recovery"


class SessionFlow(QObject):
    """Belongs to the window; needs its panels."""

    report_written = Signal(object)  # its Path

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._tasks = TaskQueue(self)
        self._tasks.failed.connect(window.banner.tell)
        sessions = window.panels["sessions"]
        sessions.open_asked.connect(self.open)
        sessions.resume_asked.connect(self.resume)
        sessions.specification_met.connect(lambda path: window.open_specification(path, start=False))
        sessions.said.connect(lambda words: window.statusBar().showMessage(words, 8000))

    @Slot(int)
    def open(self, session: int) -> None:
        """Show a stored session's results."""
        self._window.bridge.submit(Open(session))
        self._window.dock_area.bring("front")

    @Slot(int)
    def resume(self, session: int) -> None:
        """Go on with a stored session."""
        self._window.dock_area.bring("front", "tune")
        self._window.panels["tune"].open_session(session)

    def take_files(self, paths: Sequence[Path]) -> None:
        """A specification is opened to be tuned; recordings are kept as sessions, and the last one is shown."""
        self._window.dock_area.bring("sessions")
        self._window.panels["sessions"].take_in_files(paths)

    def write_report(self, path: Path) -> None:
        """Write the shown session as one HTML file, its chosen configuration the selected one, else the best."""
        window = self._window
        plan, table, session = window.selection.plan, window.selection.table, window.selection.session
        if plan is None or table is None or not len(table):
            window.banner.tell("there is no session to report", "run one, or open one under Sessions")
            return
        chosen = window.selection.index if window.selection.index >= 0 else None
        store, settings = window.engine_store(), window.settings
        load = settings.load

        def work() -> Path:
            from ...engine.report.content import gather  # imported late: the window's first frame needs none of it
            from ...engine.report.page import write_report

            record = store.session(session) if session else None
            content = gather(plan, table, plan.objective, store, record=record, chosen=chosen, load=load)
            return write_report(content, path)

        window.statusBar().showMessage(f"Writing {path.name} …")
        self._tasks.run(work, self._report_written)

    def _report_written(self, path: Path) -> None:
        self._window.statusBar().showMessage(f"Written: {path}", 15000)
        self.report_written.emit(path)

    def shutdown(self) -> None:
        """Wait for a report that is being written."""
        self._tasks.shutdown()

    def offer_recovery(self, records: Sequence[SessionRecord]) -> None:
        """A session that was running when its program died is offered, once."""
        settings = self._window.settings
        cut_off = next((record for record in records if record.state is SessionState.INTERRUPTED), None)
        if cut_off is None:
            return
        mark = f"{cut_off.id} {cut_off.evaluated}"
        if settings.said(_RECOVERY) == mark:
            return
        settings.note_said(_RECOVERY, mark)
        budget = min(cut_off.max_evaluations or cut_off.valid, cut_off.valid)
        said = (
            f"Session {cut_off.id}, {cut_off.shown_name}, was running when the program ended: "
            f"{cut_off.evaluated} of {budget} measured, nothing of it is lost."
        )
        here = cut_off.origin.get("kind") == "replay" or cut_off.gpu == self._window.board.gpu.info.name
        if here:
            self._window.banner.offer(said, "Resume", lambda: self.resume(cut_off.id))
        else:
            said += f" It was measured on {cut_off.gpu}."
            self._window.banner.offer(said, "Open", lambda: self.open(cut_off.id))


def dropped_files(data: QMimeData) -> list[Path]:
    """The files of a drag, none where it carries something else."""
    return [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile() and Path(url.toLocalFile()).is_file()]
