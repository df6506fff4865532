"""`RunsOn`: on which boards the next session of a specification runs: the shown one, or several that share it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDialog, QMenu, QSizePolicy, QToolButton, QWidget

from ...sensors.select import gpu_selectors
from ..context import Context
from ..plots.label import PlainLabel, plain_tip
from ..threads.tasks import TaskQueue
from ..widgets import hbox
from .choosing import BoardsDialog, SchedulerDialog

_SHOWN = "the shown board"
_TIP = "On which boards the session runs. A recording is replayed on none."
_BUSY_TIP = "A session runs on these boards: stop it first, or wait for its end"


class RunsOn(QWidget):
    """Nothing is started or connected to before the user has chosen it here."""

    look_asked = Signal()  # at what the boards do

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context, self._pool = context, context.pool
        self.dialog: QDialog | None = None  # while it is open
        self.choice = QToolButton()
        self.choice.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.choice.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.choice.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        menu = QMenu(self.choice)
        self.shown = QAction("The &board that is shown", menu, checkable=True)
        self.here = QAction("Several boards of this &computer …", menu)
        self.scheduler = QAction("The boards of a &pool …", menu)
        self.look = QAction("&What the boards do", menu)
        self.models: list[QAction] = []  # of a pool with several
        menu.addActions([self.shown, self.here, self.scheduler])
        self._of_pool = menu.addSeparator()
        menu.addAction(self.look)
        self.choice.setMenu(menu)
        label = PlainLabel("Ru&ns on")
        label.setBuddy(self.choice)
        hbox(label, (self.choice, 1), of=self, margins=0)
        self._tasks = TaskQueue(self)
        self._tasks.failed.connect(context.bridge.report)
        self.shown.triggered.connect(self._alone)
        self.here.triggered.connect(self.ask_boards)
        self.scheduler.triggered.connect(self.ask_scheduler)
        self.look.triggered.connect(self.look_asked)
        menu.aboutToShow.connect(self._offer_models)
        self._pool.changed.connect(self._show)
        self._show()

    def shutdown(self) -> None:
        """End what runs in the background."""
        self._tasks.shutdown()

    @Slot()
    def ask_boards(self) -> None:
        """Let the user choose boards of this computer."""
        if self.here.isEnabled():
            self._tasks.run(gpu_selectors, self._ask_boards)

    def _ask_boards(self, offered: list[tuple[str, str]]) -> None:
        dialog = BoardsDialog(offered, self._context.boards.speed, self)
        dialog.chosen.connect(self._boards_chosen)
        self._open(dialog)

    @Slot()
    def ask_scheduler(self) -> None:
        """Let the user name a pool."""
        if self.scheduler.isEnabled():
            dialog = SchedulerDialog(self)
            dialog.chosen.connect(self._scheduler_chosen)
            self._open(dialog)

    def _open(self, dialog: QDialog) -> None:
        self._forget_dialog()
        dialog.finished.connect(self._forget_dialog)
        self.dialog = dialog
        dialog.open()

    @Slot()
    def _forget_dialog(self, *_: object) -> None:
        dialog, self.dialog = self.dialog, None
        if dialog is not None:
            dialog.deleteLater()

    @Slot(object, float)
    def _boards_chosen(self, selectors: list[str], speed: float) -> None:
        self._pool.use_boards(selectors, speed=speed)

    @Slot(str, str)
    def _scheduler_chosen(self, address: str, folder: str) -> None:
        self._pool.connect_to(address, Path(folder).expanduser() if folder else None)

    @Slot()
    def _alone(self) -> None:
        self._pool.leave()
        self._show()  # it stays ticked where it was so already

    @Slot(QAction)
    def _model_chosen(self) -> None:
        chosen = self.sender()
        if isinstance(chosen, QAction):
            self._pool.choose_model(str(chosen.data()))

    @Slot()
    def _offer_models(self) -> None:
        """Of a pool with boards of several models, those of one share a session."""
        menu = self.choice.menu()
        for action in self.models:
            menu.removeAction(action)
            action.deleteLater()
        self.models = []
        models = self._pool.models()
        for model in models if len(models) > 1 else ():
            action = QAction(f"Boards of the model {model}", menu)
            action.setCheckable(True)
            action.setChecked(model == self._pool.model)
            action.setEnabled(not self._pool.busy)
            action.setData(model)
            action.triggered.connect(self._model_chosen)
            menu.insertAction(self._of_pool, action)
            self.models.append(action)

    @Slot()
    def _show(self) -> None:
        pool = self._pool
        free = not pool.busy and not pool.opening
        for action in (self.here, self.scheduler):
            action.setEnabled(free)
        self.shown.setEnabled(not pool.busy)  # also while the others are being opened: they are not waited for then
        self.shown.setChecked(not pool.open and not pool.opening)
        words = pool.opening or pool.words or _SHOWN
        self.choice.setText(words[:1].upper() + words[1:])
        where = f" ({pool.where}, {pool.model})" if pool.open else ""
        self.choice.setToolTip(plain_tip(_BUSY_TIP if pool.busy else f"{_TIP} Now: {words}{where}."))
        self.choice.setAccessibleName(f"Runs on: {words}")
