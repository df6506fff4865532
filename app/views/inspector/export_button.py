"""`ExportButton`: writes the chosen configuration and its session as files of the kinds that others read."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from ...engine.measurement import State
from ...files import title_of
from ...paths import data_folder
from ..context import Context
from ..file_dialogs import choose_folder
from ..plots.label import plain_tip
from ..settings import Settings
from ..threads.tasks import LatestTask

ALL = ""  # every kind
# kind, its label, what it holds
_KINDS = (
    (ALL, "A&ll of these", "Every kind below that there is of this session"),
    ("json", "&JSON", "Every figure with its unit, source, device, driver and version"),
    ("header", "C &header", "The parameters as #defines"),
    ("source", "C&UDA source", "The kernel with these parameters, and a function that launches it"),
    ("code", "&Machine code", "The machine code that was measured, and a function that launches it, as a C file"),
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
        self._task = LatestTask(self)  # writes the files
        self._task.done.connect(self._written)
        self._task.failed.connect(self._failed)
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
        self.own = menu.addAction("Session's &own folder", self._take_own_folder)
        self.own.setCheckable(True)
        self.own.setToolTip("In the data folder, one for each session")
        menu.triggered.connect(self._chosen)
        self.setMenu(menu)
        self.clicked.connect(self.export)
        self._result.changed.connect(self._look)
        self._result.best_changed.connect(self._look)
        self._result.replaced.connect(self._begin)
        self._look()

    def shutdown(self) -> None:
        """Wait for the files that are being written."""
        self._task.shutdown()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The arrow down opens the menu, as the mouse does on the arrow."""
        if event.key() == Qt.Key.Key_Down:
            self.showMenu()
        else:
            super().keyPressEvent(event)

    @property
    def folder(self) -> Path:
        """Where the files go."""
        chosen = self._settings.export[1]
        if chosen:
            return Path(chosen).expanduser()
        session, plan = self._result.session, self._result.plan
        if session or plan is None:
            return data_folder() / "exports" / f"session-{session}"
        file = Path(plan.origin.get("file", ""))  # of one that has no number: a file that is looked at
        return data_folder() / "exports" / (title_of(file) or "followed")

    def export_into(self, folder: Path | None) -> None:
        """Choose the folder, now and from now on; None: the session's own."""
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
        by_hand, way = shown.index >= 0, shown.way
        table, plan, session = shown.table, shown.plan, shown.session
        if self.why_not or self._task.busy or table is None or plan is None:
            return
        self._settings.export = (kind, self._settings.export[1])

        def write(_stop: object) -> tuple[list[Path], list[str]]:
            from ...engine.report.export import BEST, BY_HAND, export_session  # most sessions export at their end

            remarks: list[str] = []
            kinds = [kind] if kind else None
            rule = (f"chosen as {way}" if way else BY_HAND) if by_hand else BEST
            return export_session(plan, table, session, index, folder, kinds, remarks.append, rule=rule), remarks

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
        target = f"{what}, into {self.folder.name}"
        self.again.setText(f"Export &again: {target}" if self._last else f"E&xport {target}")
        tip = (
            f"Write {what} into {self.folder}, beside what lies there. The arrow offers each format and another folder."
        )
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
