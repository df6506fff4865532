"""`AnswerBar`: buttons to apply, export and report the choice, with one line for the outcome or the obstacle.

`ExportButton`: writes the chosen configuration and its session as files of the kinds that others read.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Signal, Slot
from PySide6.QtGui import QAction, QDesktopServices, QKeyEvent
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from ...base.paths import data_folder
from ...engine.results.measurement import State
from ...engine.results.settings import UNTOUCHED, WORDS
from ...engine.results.state import Purpose
from ...engine.session import events
from ..control.apply_button import ApplyButton
from ..shared import theme
from ..shared.context import Context
from ..shared.label import PlainLabel, plain_tip
from ..shared.settings import Settings
from ..shared.tasks import LatestTask
from ..shared.widgets import button, choose_folder, hbox, vbox

ALL = ""  # every kind
# kind, its label, what it holds
_KINDS = (
    (ALL, "A&ll of these", "Every kind below that there is of this session"),
    ("json", "&JSON", "Every figure with its unit, source, device, driver and version"),
    ("header", "C &header", "The parameters as #defines"),
    ("source", "C&UDA source", "The kernel with these parameters, and a function that launches it"),
    (
        "code",
        "&Machine code",
        "The machine code that was measured, or a library's algorithm, and a function that launches it, in C",
    ),
    ("python", "&Python", "What cuBLASLt or Triton has for an operator, as a function on tensors of PyTorch"),
    ("script", "&Script", "Shell script: nvidia-smi commands that set the clocks or the cap, and that put them back"),
    ("csv", "&CSV", "Every measurement of the session, units in the heads"),
    ("cache", "Cach&e", "A Kernel Tuner cache: every measurement of the session, for other tools of the field"),
    ("t4", "T&4 (tuning results, JSON)", "Every measurement of the session, as the field's benchmarks exchange them"),
    ("t1", "T&1 (tuning problem, JSON)", "The specification for other tuners: kernel, parameters, restrictions"),
)
_NO_T1 = "Only of a session that tuned a specification"


class ExportButton(QToolButton):
    """Writes the selected measurement; while none is selected, the best one by the objective.

    A press writes what was written last, all kinds at first; the menu has one entry per kind. Kind and folder are kept
    over restarts.
    """

    started = Signal()
    written = Signal(object, object)  # the files' Paths, and what to know of them in lines
    failed = Signal(str, str)  # what went wrong, and the remedy
    changed = Signal()  # `why_not` may be another

    def __init__(self, context: Context, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._result, self._settings = context.result, settings
        self._task = LatestTask(self, self._written, self._failed)  # writes the files
        self._last: list[Path] = []  # what was written last, of this session
        self.why_not = ""  # in a sentence without its stop; '' while it can be pressed
        self.setText("E&xport")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.MenuButtonPopup)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        self.again = menu.addAction("", self.export)
        menu.addSeparator()
        self.kinds: dict[str, QAction] = {}
        for kind, label, tip in _KINDS:
            action = self.kinds[kind] = menu.addAction(label)
            action.setData(kind)
            action.setToolTip(tip)
        menu.addSeparator()
        self.choose = menu.addAction("&Folder …", self._ask_folder)
        self.own = menu.addAction("&Data folder", self._take_own_folder)
        self.own.setCheckable(True)
        for action in (self.choose, self.own):
            action.setToolTip("Each export makes a new folder in it, named by kernel, board, session and date")
        menu.triggered.connect(self._chosen)
        self.setMenu(menu)
        self.clicked.connect(self.export)
        self._result.changed.connect(self._look)
        self._result.best_changed.connect(self._look)
        self._result.replaced.connect(self._begin)
        self._look()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The arrow down opens the menu, as the mouse does on the arrow."""
        if event.key() == Qt.Key.Key_Down:
            self.showMenu()
        else:
            super().keyPressEvent(event)

    @property
    def folder(self) -> Path:
        """In which each export makes a folder of its own."""
        chosen = self._settings.export[1]
        return Path(chosen).expanduser() if chosen else data_folder() / "exports"

    def export_into(self, folder: Path | None) -> None:
        """Choose the folder, now and from now on; None: the data folder."""
        self._last = []
        self._settings.export = (self._settings.export[0], str(folder) if folder is not None else "")
        self._look()

    @Slot()
    def export(self) -> None:
        """Write the kind that was written last."""
        self.export_as(self._kind)

    @property
    def _kind(self) -> str:
        kind = self._settings.export[0]
        return kind if kind in self.kinds and self.kinds[kind].isEnabled() else ALL

    def export_as(self, kind: str) -> None:
        """Write one kind, or all, off Qt's thread; `written` or `failed` follows."""
        shown, index, folder = self._result, self._result.chosen, self.folder
        rule, state = shown.rule, shown.state if shown.session else None
        table, plan, session = shown.table, shown.plan, shown.session
        if self.why_not or self._task.busy or table is None or plan is None:
            return
        self._settings.export = (kind, self._settings.export[1])

        def write(_stop: object) -> tuple[list[Path], list[str]]:
            from ...engine.report.export import export_session  # most sessions export at their end

            remarks: list[str] = []
            kinds = [kind] if kind else None
            files = export_session(
                plan, table, session, index, folder, kinds, remarks.append, existing="new", rule=rule, state=state
            )
            return files, remarks

        self.started.emit()
        self._task.run(write)
        self._look()

    @Slot(QAction)
    def _chosen(self, action: QAction) -> None:
        if action in self.kinds.values():
            self.export_as(str(action.data()))

    @Slot(object)
    def _written(self, done: tuple[list[Path], list[str]]) -> None:
        self._last, remarks = done
        self._look()
        self.written.emit(self._last, remarks)

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self._look()
        self.failed.emit(what, remedy)

    @Slot()
    def _ask_folder(self) -> None:
        choose_folder(self, "Export into a folder", self.export_into, start=str(self.folder))

    @Slot()
    def _take_own_folder(self) -> None:
        self.export_into(None)

    @Slot()
    def _begin(self) -> None:
        self._last = []
        self._look()

    @Slot()
    def _look(self, *_: object) -> None:
        plan = self._result.plan
        self.kinds["t1"].setEnabled(plan is not None and plan.origin.get("kind") == "specification")
        self.kinds["t1"].setToolTip(_KINDS[-1][2] if self.kinds["t1"].isEnabled() else _NO_T1)
        self.own.setChecked(not self._settings.export[1])
        self.why_not = self._why_not()
        self.setEnabled(not self.why_not)
        kind = self._kind
        what = self.kinds[kind].text().replace("&", "") if kind else "all formats"
        target = f"{what}, in {self.folder.name}"
        self.again.setText(f"Export &again: {target}" if self._last else f"E&xport {target}")
        tip = f"Write {what} into a new folder in {self.folder}. The arrow offers each format and another place."
        self.setToolTip(plain_tip(self.why_not or tip))
        self.setAccessibleDescription(self.why_not or tip)
        self.changed.emit()

    def _why_not(self) -> str:
        index, table = self._result.chosen, self._result.table
        if table is None:
            return "There is no session yet: nothing to export"
        if index is None or index >= len(table):  # a new session has nothing yet
            return "Nothing is chosen, and there is no best configuration yet: nothing to export"
        if table.measurement(index).state is not State.OK:
            return f"This configuration failed ({table.measurement(index).state}): nothing to export"
        return ""


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
        self._bridge.subscribe(events.MeasurementsAdded, self._look_at_report)
        theme.notifier().changed.connect(self._recolour)
        self._follow()

    def _lay_out(self) -> None:
        self.said.setTextFormat(Qt.TextFormat.RichText)
        self.said.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.said.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.said.setMinimumHeight(_LINES * self.said.fontMetrics().lineSpacing())
        self.said.linkActivated.connect(self._open_link)
        for widget in (self.apply, self.export, self.report):
            widget.setMinimumWidth(0)
        self.export.setSizePolicy(self.apply.sizePolicy())
        self.export.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        row = hbox((self.apply, 1), (self.export, 1), (self.report, 1), spacing=4)
        vbox(row, self.said, of=self, margins=0, spacing=4)

    # --- what is chosen ----------------------------------------------------------------------------------------------

    @Slot()
    def _follow(self, *_: object) -> None:
        """Clear the outcome of the previous choice when another measurement is chosen."""
        self._news = ""
        self._look()

    @Slot()
    def _look(self) -> None:
        why = self._why_not_applied()
        if why:
            self.apply.withdraw(why)
        self._look_at_report()

    def _why_not_applied(self) -> str:
        """Offer the settings of the chosen measurement, or state why there are none."""
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
        chosen = {name: value for name, value in measurement.configuration.items() if name in known}
        settings = {name: float(value) for name, value in chosen.items() if value != UNTOUCHED}
        if chosen and not settings:
            return "This configuration is of the untouched board: there is nothing to apply"
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
        what = _link(files[0], files[0].name) if len(files) == 2 else f"{len(files)} files"  # the last is the receipt
        folder = files[0].parent
        lines = (f"Exported {what} to {_link(folder, folder.name)}.", *map(html.escape, remarks))
        self._tell(" ".join(lines), "\n".join((*map(str, files), *remarks)))

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
