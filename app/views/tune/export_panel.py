"""Take the chosen configuration away as files: the kinds, the folder, and where they lie."""

from __future__ import annotations

import html
import threading
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from ...engine.measurement import State
from ...engine.session.events import MeasurementsAdded, SessionStarted
from ...engine.session.plan import SessionPlan
from ...engine.space.result_table import ResultTable
from ...paths import data_folder
from ..plots import theme
from ..plots.quantities import configuration_text
from ..shell.context import Context
from ..shell.file_dialogs import choose_folder
from ..shell.label import PlainLabel
from ..threads.background import Background

# kind, as people read it, what it holds
_KINDS = (
    ("json", "JSON", "Every figure with its unit, source, device, driver and version"),
    ("header", "C header", "The parameters as #defines"),
    ("script", "Script", "Shell script: nvidia-smi commands that set the clocks or the cap, and that put them back"),
    ("csv", "CSV", "Every measurement of the session, units in the heads"),
    ("cache", "Cache", "A Kernel Tuner cache: every measurement of the session, for other tools of the field"),
    ("t4", "T4", "T4 results: every measurement of the session, as the field's benchmarks exchange them"),
    ("t1", "T1", "The specification as T1, for other tuners: kernel, arguments, parameters, restrictions"),
)


class ExportPanel(QWidget):
    """Exports the selected measurement; while none is selected, the best one by the objective."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._selection = context.selection
        self._bridge = context.bridge
        self._best: int | None = None
        self._background = Background(self)
        self._background.done.connect(self._written)
        self._background.failed.connect(self._not_written)
        self.chosen = PlainLabel()
        self.chosen.setTextFormat(Qt.TextFormat.PlainText)
        self.chosen.setWordWrap(True)
        self.kinds = {kind: QCheckBox(label) for kind, label, _ in _KINDS}
        self.folder = QLineEdit()
        self.folder.setPlaceholderText("Folder: the session's own in the data folder")
        self.folder.setAccessibleName("Folder to export into")
        self.button = QPushButton("E&xport")
        self.written = PlainLabel()
        self.written.setTextFormat(Qt.TextFormat.RichText)
        self.written.setWordWrap(True)
        self.written.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.written.linkActivated.connect(self._open_link)
        self._lay_out()
        self.button.clicked.connect(self.export)
        context.selection.changed.connect(self._show_chosen)
        context.bridge.session_started.connect(self._session_started)
        context.bridge.measurements_added.connect(self._measurements_added)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()
        self._show_chosen()

    def _lay_out(self) -> None:
        boxes = QHBoxLayout()
        for kind, _, help_text in _KINDS:
            self.kinds[kind].setChecked(True)
            self.kinds[kind].setToolTip(help_text)
            boxes.addWidget(self.kinds[kind])
        boxes.addStretch(1)
        where = QHBoxLayout()
        choose = QPushButton("Folder …")
        choose.clicked.connect(self._choose_folder)
        where.addWidget(self.folder, 1)
        where.addWidget(choose)
        where.addWidget(self.button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.chosen)
        layout.addLayout(boxes)
        layout.addLayout(where)
        layout.addWidget(self.written)

    def shutdown(self) -> None:
        """Wait for the files that are being written."""
        self._background.shutdown()

    @Slot()
    def export(self) -> None:
        """Write the files, off Qt's thread."""
        table, plan, session, index = (
            self._selection.table,
            self._selection.plan,
            self._selection.session,
            self._index(),
        )
        kinds = [kind for kind, box in self.kinds.items() if box.isChecked() and box.isEnabled()]
        if table is None or plan is None or session is None or index is None or not kinds:
            return
        text = self.folder.text().strip()
        own = f"session-{session}" if session else "followed"  # a growing file's session has no number yet
        folder = Path(text).expanduser() if text else data_folder() / "exports" / own
        self.button.setEnabled(False)
        self.written.setText("Writing …")
        self._background.run(lambda stop: _write(plan, table, session, index, folder, kinds, stop))

    @Slot(object)
    def _written(self, files: list[Path]) -> None:
        names = ", ".join(f'<a href="{QUrl.fromLocalFile(str(f)).toString()}">{html.escape(f.name)}</a>' for f in files)
        folder = files[0].parent if files else Path()
        link = QUrl.fromLocalFile(str(folder)).toString()
        self.written.setText(f'Written to <a href="{link}">{html.escape(str(folder))}</a>: {names}')
        self._show_chosen()

    @Slot(str, str)
    def _not_written(self, what: str, remedy: str) -> None:
        self.written.setText(html.escape(f"{what} ({remedy})" if remedy else what))
        self._bridge.report(what, remedy)
        self._show_chosen()

    @Slot(str)
    def _open_link(self, link: str) -> None:
        QDesktopServices.openUrl(QUrl(link))

    @Slot()
    def _choose_folder(self) -> None:
        choose_folder(
            self, "Export into a folder", lambda path: self.folder.setText(str(path)), start=self.folder.text()
        )

    @Slot(object)
    def _session_started(self, _event: SessionStarted) -> None:
        self._best = None
        self.written.setText("")
        self._show_chosen()

    @Slot(object)
    def _measurements_added(self, event: MeasurementsAdded) -> None:
        if event.progress.best_index != self._best:
            self._best = event.progress.best_index
            self._show_chosen()

    def _index(self) -> int | None:
        return self._selection.index if self._selection.index >= 0 else self._best

    @Slot()
    def _show_chosen(self, *_: object) -> None:
        index, table, plan = self._index(), self._selection.table, self._selection.plan
        self.kinds["t1"].setEnabled(plan is not None and plan.origin.get("kind") == "specification")
        if table is None or index is None or index >= len(table):  # a new session has nothing yet
            self.chosen.setText("Export: select a measurement in the table or the scatter.")
            self.button.setEnabled(False)
            return
        measurement = table.measurement(index)
        what = "Selected" if self._selection.index >= 0 else "Best so far"
        failed = "" if measurement.state is State.OK else f" · failed ({measurement.state}), nothing to take away"
        self.chosen.setText(f"{what} (#{index + 1}): {configuration_text(measurement)}{failed}")
        self.button.setEnabled(measurement.state is State.OK and not self._background.busy)

    @Slot()
    def _recolour(self) -> None:
        self.chosen.setStyleSheet(f"color: {theme.colours().muted};")


def _write(
    plan: SessionPlan,
    table: ResultTable,
    session: int,
    index: int,
    folder: Path,
    kinds: list[str],
    _stop: threading.Event,
) -> list[Path]:
    from ...engine.report.export import export_session  # imported late: most sessions export at their end

    return export_session(plan, table, session, index, folder, kinds)
