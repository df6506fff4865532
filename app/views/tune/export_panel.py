"""Export the chosen configuration: the kinds of files, the folder, and what was written."""

from __future__ import annotations

import html
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QCheckBox, QLineEdit, QWidget

from ...engine.analysis.quantities import configuration_text
from ...engine.measurement import State
from ...paths import data_folder
from ..context import Context
from ..file_dialogs import choose_folder
from ..plots.label import PlainLabel
from ..result_caption import ResultCaption
from ..threads.tasks import LatestTask
from ..widgets import button, hbox, vbox

# kind, its label, what it holds
_KINDS = (
    ("json", "JSON", "Every figure with its unit, source, device, driver and version"),
    ("header", "C header", "The parameters as #defines"),
    ("script", "Script", "Shell script: nvidia-smi commands that set the clocks or the cap, and that put them back"),
    ("csv", "CSV", "Every measurement of the session, units in the heads"),
    ("cache", "Cache", "A Kernel Tuner cache: every measurement of the session, for other tools of the field"),
    (
        "t4",
        "T4",
        "T4 (tuning results, JSON): every measurement, as the field's benchmarks exchange them",
    ),
    (
        "t1",
        "T1",
        "T1 (tuning problem, JSON): the specification for other tuners: kernel, parameters, restrictions",
    ),
)


class ExportPanel(QWidget):
    """Exports the selected measurement; while none is selected, the best one by the objective."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._result = context.result
        self._bridge = context.bridge
        self.task = LatestTask(self)  # writes the files
        self.task.done.connect(self._written)
        self.task.failed.connect(self._not_written)
        self.caption = ResultCaption(context.result, "To export")
        self.chosen = PlainLabel(wrap=True, muted=True)
        self.kinds = {kind: QCheckBox(label) for kind, label, _ in _KINDS}
        for kind, _, help_text in _KINDS:
            self.kinds[kind].setChecked(True)
            self.kinds[kind].setToolTip(help_text)
        self.folder = QLineEdit()
        self.folder.setPlaceholderText("Folder: the session's own in the data folder")
        self.folder.setAccessibleName("Folder to export into")
        self.button = button("E&xport", clicked=self.export)
        self.written = PlainLabel(wrap=True)
        self.written.setTextFormat(Qt.TextFormat.RichText)
        self.written.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.written.linkActivated.connect(self._open_link)
        layout = vbox(
            self.caption,
            self.chosen,
            hbox(*self.kinds.values(), 1),
            hbox((self.folder, 1), button("Folder …", clicked=self._choose_folder), self.button),
            self.written,
            of=self,
            spacing=4,
        )
        layout.setContentsMargins(0, 4, 0, 0)
        context.result.changed.connect(self._show_chosen)
        context.result.best_changed.connect(self._show_chosen)
        context.result.replaced.connect(self._begin)
        self._show_chosen()

    def shutdown(self) -> None:
        """Wait for the files that are being written."""
        self.task.shutdown()

    @Slot()
    def export(self) -> None:
        """Write the files, off Qt's thread."""
        shown, index = self._result, self._result.chosen
        table, plan, session = shown.table, shown.plan, shown.session
        kinds = [kind for kind, box in self.kinds.items() if box.isChecked() and box.isEnabled()]
        if table is None or plan is None or session is None or index is None or not kinds:
            return
        text = self.folder.text().strip()
        folder = Path(text).expanduser() if text else data_folder() / "exports" / shown.short_name
        self.button.setEnabled(False)
        self.written.setText("Writing …")

        def write(_stop: object) -> list[Path]:
            from ...engine.report.export import export_session  # imported late: most sessions export at their end

            return export_session(plan, table, session, index, folder, kinds)

        self.task.run(write)

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

    @Slot()
    def _begin(self) -> None:
        self.written.setText("")
        self._show_chosen()

    @Slot()
    def _show_chosen(self, *_: object) -> None:
        index, table, plan = self._result.chosen, self._result.table, self._result.plan
        self.kinds["t1"].setEnabled(plan is not None and plan.origin.get("kind") == "specification")
        if table is None or index is None or index >= len(table):  # a new session has nothing yet
            self.chosen.setText("Export: select a measurement in the table or the scatter.")
            self.button.setEnabled(False)
            return
        measurement = table.measurement(index)
        what = "Selected" if self._result.index >= 0 else "Best so far"
        failed = "" if measurement.state is State.OK else f" · failed ({measurement.state}), nothing to export"
        self.chosen.setText(f"{what} (#{index + 1}): {configuration_text(measurement)}{failed}")
        self.button.setEnabled(measurement.state is State.OK and not self.task.busy)
