"""`AnswerBar`: apply, export and report what is chosen, and one place for what came of it or why it cannot be done."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from ...engine.board_settings import WORDS
from ...engine.measurement import State
from ...engine.session_state import Purpose
from ..context import Context
from ..control.apply_button import ApplyButton
from ..plots import theme
from ..plots.label import PlainLabel, plain_tip
from ..settings import Settings
from ..widgets import button, hbox, vbox
from .export_button import ExportButton

_LINES = 3  # room for words, whether there are any or not: the buttons above them stay where they are
_REPORT_TIP = "One HTML file of the session: question, board, front, choice and why; it opens when it is ready"


class AnswerBar(QWidget):
    """Of the chosen measurement: the selected one, else the best so far."""

    report_asked = Signal()

    def __init__(self, context: Context, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._result, self._bridge = context.result, context.bridge
        self.apply = ApplyButton(context)
        self.export = ExportButton(context, settings)
        self.report = button("&Report", _REPORT_TIP, self._ask_report)
        self.said = PlainLabel(wrap=True)
        self._news = ""  # what came of a press, until another measurement is chosen
        self._lay_out()
        self.apply.changed.connect(self._say)
        self.export.changed.connect(self._say)
        self.apply.clicked.connect(self._follow)
        self.export.started.connect(self._writing)
        self.export.written.connect(self._exported)
        self.export.failed.connect(self._failed)
        self._result.changed.connect(self._follow)
        self._result.best_changed.connect(self._look)
        self._result.replaced.connect(self._follow)
        self._bridge.measurements_added.connect(self._look_at_report)
        theme.notifier().changed.connect(self._recolour)
        self._follow()

    def _lay_out(self) -> None:
        self.said.setTextFormat(Qt.TextFormat.RichText)
        self.said.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.said.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.said.setMinimumHeight(_LINES * self.said.fontMetrics().lineSpacing())
        self.said.linkActivated.connect(self._open_link)
        for each in (self.apply, self.export, self.report):
            each.setMinimumWidth(0)
        self.export.setSizePolicy(self.apply.sizePolicy())
        self.export.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        row = hbox((self.apply, 1), (self.export, 1), (self.report, 1), spacing=4)
        vbox(row, self.said, of=self, margins=0, spacing=4)

    def shutdown(self) -> None:
        """Wait for the files that are being written."""
        self.export.shutdown()

    # --- what is chosen ----------------------------------------------------------------------------------------------

    @Slot()
    def _follow(self, *_: object) -> None:
        """Another measurement is chosen: what came of the one before is no news any more."""
        self._news = ""
        self._look()

    @Slot()
    def _look(self) -> None:
        why = self._why_not_applied()
        if why:
            self.apply.withdraw(why)
        self._look_at_report()

    def _why_not_applied(self) -> str:
        """Offers the settings of what is chosen; else says why there are none."""
        table, plan, index = self._result.table, self._result.plan, self._result.chosen
        if table is None or plan is None:
            return "There is no session yet: nothing to apply"
        if index is None or index >= len(table):
            return "Nothing is chosen, and there is no best configuration yet: nothing to apply"
        measurement = table.measurement(index)
        if measurement.state is not State.OK:
            return f"This configuration failed ({measurement.state}): nothing to apply"
        if plan.source == "recorded" or plan.purpose is Purpose.REPLAY:
            return "Replayed data cannot be applied: it was not measured on this board. Set clocks in Control"
        known = {parameter.name for parameter in plan.space.parameters if parameter.device_setting} & set(WORDS)
        settings = {name: float(value) for name, value in measurement.configuration.items() if name in known}
        if not settings:
            return "No clock and no power limit is part of this configuration: nothing to apply"
        uuid = plan.origin.get("gpu", "")
        self.apply.offer(settings, plan.gpu, simulated=plan.source == "simulated", uuid=uuid)
        return ""

    @Slot()
    def _look_at_report(self, *_: object) -> None:
        table = self._result.table
        why = "" if table is not None and len(table) else "There is no session yet: nothing to report"
        self.report.setEnabled(not why)
        self.report.setToolTip(why or _REPORT_TIP)
        self._say()

    # --- what is said ------------------------------------------------------------------------------------------------

    @Slot()
    def _say(self) -> None:
        """The news, else why something cannot be done, that of export is that of all; else what Apply would set."""
        self.said.setText(self._news or html.escape(self.export.why_not or self.apply.why_not or self.apply.whose))

    @Slot()
    def _recolour(self) -> None:
        """Links have the colour of the moment in which they were set."""
        self.said.setText("")
        self._say()

    def _tell(self, news: str, tip: str = "") -> None:
        self._news = news
        self.said.setToolTip(plain_tip(tip))
        self._say()

    @Slot()
    def _writing(self) -> None:
        self._tell("Writing …")

    @Slot(object, object)
    def _exported(self, files: Sequence[Path], remarks: Sequence[str]) -> None:
        what = _link(files[0], files[0].name) if len(files) == 1 else f"{len(files)} files"
        folder = files[0].parent
        said = (f"Exported {what} to {_link(folder, folder.name)}.", *map(html.escape, remarks))
        self._tell(" ".join(said), "\n".join((*map(str, files), *remarks)))

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self._tell(html.escape(f"{what} ({remedy})" if remedy else what))
        self._bridge.report(what, remedy)

    @Slot()
    def _ask_report(self) -> None:
        self.report_asked.emit()

    @Slot(str)
    def report_started(self, words: str) -> None:
        """A report is being written."""
        self._tell(html.escape(words))

    @Slot(object)
    def report_written(self, path: Path) -> None:
        """It is there."""
        self._tell(f"Report written: {_link(path, path.name)}.", str(path))

    @Slot(str, str)
    def report_failed(self, what: str, remedy: str) -> None:
        """It could not be written; the window has said so."""
        self._tell(html.escape(f"{what} ({remedy})" if remedy else what))

    @Slot(str)
    def _open_link(self, link: str) -> None:
        QDesktopServices.openUrl(QUrl(link))


def _link(path: Path, words: str) -> str:
    return f'<a href="{QUrl.fromLocalFile(str(path.resolve())).toString()}">{html.escape(words)}</a>'
