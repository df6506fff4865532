"""`RunsOn`: on which boards the next session of a specification runs: the shown one, or several that share it.

The dialogs in which the boards of a session are chosen: boards of this computer, or the pool of a scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from ...sensors.select import gpu_selectors
from ..shared.context import Context
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Panel
from ..shared.settings import Settings
from ..shared.tasks import TaskQueue
from ..shared.watched_boards import NO_FASTER, SPEEDS, is_real
from ..shared.widgets import WholeBox, button, choose_folder, hbox, vbox

_SIMULATED = "simulated:"
_MOST_SIMULATED = 32
_LOCAL = (
    "Each board gets a worker, a process of its own; all of them share one session. They have to be of one model: "
    "energy is compared on boards of one model. Their clocks and limits stay as they are."
)
_POOL = (
    "The scheduler of a pool, as 'wattridge pool scheduler' prints it, and the folder with the pool's three "
    "certificates. Nothing is connected to before you press Connect; whoever has these certificates can run "
    "programs as the accounts that run the pool's workers, and as yours here."
)


class BoardsDialog(QDialog):
    """Boards of this computer. `chosen` is emitted with their selectors and the speed of simulated ones."""

    chosen = Signal(object, float)

    def __init__(self, offered: Sequence[tuple[str, str]], speed: float, parent: QWidget | None = None) -> None:
        """`offered`: selector and label of everything that can be opened."""
        super().__init__(parent)
        self.setWindowTitle("Boards of this computer")
        self.real = QListWidget()
        self.real.setAccessibleName("Boards: Space ticks one")
        for selector, label in offered:
            if is_real(selector):
                item = QListWidgetItem(label)
                item.setToolTip(plain_tip(label))
                item.setData(Qt.ItemDataRole.UserRole, selector)
                item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
                item.setCheckState(Qt.CheckState.Checked)
                self.real.addItem(item)
        has_real = self.real.count() > 0
        self.real.setVisible(has_real)
        self.simulated, self.twin, self.speed = WholeBox(), QComboBox(), QComboBox()
        self.simulated.setRange(0, _MOST_SIMULATED)
        self.simulated.setValue(0 if has_real else 4)
        self.simulated.setToolTip("How many simulated boards; each differs a little, as boards of one model do")
        for selector, label in offered:
            if selector.startswith(_SIMULATED):
                self.twin.addItem(label, selector)
        self.twin.setAccessibleName("Model of the simulated boards")
        for each, words in sorted({speed: f"{speed:g}×", **SPEEDS}.items()):
            self.speed.addItem(words, each)
        self.speed.setCurrentIndex(self.speed.findData(speed))
        self.speed.setToolTip(
            f"How fast the simulated boards run; times and joules are those of their own clocks. {NO_FASTER}"
        )
        self.note = PlainLabel(" ", wrap=True, muted=True)
        self.buttons = _buttons(self, "Use these boards")
        form = QFormLayout()
        form.addRow(_named("&Simulated boards", self.simulated), hbox(self.simulated, (self.twin, 1)))
        form.addRow("S&peed of these", self.speed)
        vbox(PlainLabel(_LOCAL, wrap=True), (self.real, 1), form, self.note, self.buttons, of=self)
        self.resize(460, 360 if has_real else 240)
        self.real.itemChanged.connect(self._count)
        self.simulated.valueChanged.connect(self._count)
        self.accepted.connect(self._choose)
        self._count()

    @property
    def selectors(self) -> list[str]:
        """What is chosen."""
        items = (self.real.item(row) for row in range(self.real.count()))
        real = [i.data(Qt.ItemDataRole.UserRole) for i in items if i.checkState() is Qt.CheckState.Checked]
        twin = self.twin.currentData()
        return [*real, *(f"{twin}#{number}" if number else twin for number in range(self.simulated.value()))]

    @Slot()
    def _count(self, *_: object) -> None:
        count = len(self.selectors)
        self.speed.setEnabled(self.simulated.value() > 0)
        self.twin.setEnabled(self.simulated.value() > 0)
        self.buttons.button(QDialogButtonBox.StandardButton.Ok).setEnabled(count >= 2)
        self.note.setText(f"{count} boards" if count >= 2 else "Choose two boards at least: one alone is the shown one")

    @Slot()
    def _choose(self) -> None:
        self.chosen.emit(self.selectors, float(self.speed.currentData()))


class SchedulerDialog(QDialog):
    """A pool. `chosen` is emitted with the scheduler's address and the folder of the certificates, '' for the usual."""

    chosen = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Boards of a pool")
        address, folder = Settings().pool
        self.address, self.folder = QLineEdit(address), QLineEdit(folder)
        self.address.setPlaceholderText("tls://HOST:PORT")
        self.folder.setPlaceholderText("'pool' in the data folder")
        browse = button("&Choose …", "Choose the folder with the pool's certificates", self._browse)
        browse.setAutoDefault(False)
        self.buttons = _buttons(self, "Connect")
        form = QFormLayout()
        form.addRow("&Scheduler", self.address)
        form.addRow(_named("C&ertificates", self.folder), hbox((self.folder, 1), browse))
        vbox(PlainLabel(_POOL, wrap=True), form, 1, self.buttons, of=self)
        self.resize(520, 220)
        self.address.textChanged.connect(self._check)
        self.accepted.connect(self._choose)
        self._check()

    @Slot()
    def _check(self, *_: object) -> None:
        self.buttons.button(QDialogButtonBox.StandardButton.Ok).setEnabled(bool(self.address.text().strip()))

    @Slot()
    def _browse(self) -> None:
        start = self.folder.text().strip() or str(Path.home())
        choose_folder(self, "The folder with the pool's certificates", self._folder_chosen, start=start)

    def _folder_chosen(self, folder: Path) -> None:
        self.folder.setText(str(folder))

    @Slot()
    def _choose(self) -> None:
        address, folder = self.address.text().strip(), self.folder.text().strip()
        Settings().pool = (address, folder)
        self.chosen.emit(address, folder)


def _named(text: str, field: QWidget) -> PlainLabel:
    label = PlainLabel(text)
    label.setBuddy(field)
    return label


def _buttons(dialog: QDialog, accept: str) -> QDialogButtonBox:
    kinds = QDialogButtonBox.StandardButton
    made = QDialogButtonBox(kinds.Ok | kinds.Cancel)
    made.button(kinds.Ok).setText(accept)
    made.accepted.connect(dialog.accept)
    made.rejected.connect(dialog.reject)
    return made


_SHOWN = "the shown board"
_TIP = "On which boards the session runs. A recording is replayed on none."
_BUSY_TIP = "A session runs on these boards: stop it first, or wait for its end"


class RunsOn(Panel):
    """Nothing is started or connected to before the user has chosen it here."""

    look_asked = Signal()  # at what the boards do

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
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
        self._tasks = TaskQueue(self, context.bridge.report)
        self.shown.triggered.connect(self._alone)
        self.here.triggered.connect(self.ask_boards)
        self.scheduler.triggered.connect(self.ask_scheduler)
        self.look.triggered.connect(self.look_asked)
        menu.aboutToShow.connect(self._offer_models)
        self._pool.changed.connect(self._show)
        self._show()

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
        words = words[:1].upper() + words[1:]
        self.choice.setText(words)
        where = f" ({pool.where}, {pool.model})" if pool.open else ""
        self.choice.setToolTip(plain_tip(_BUSY_TIP if pool.busy else f"{_TIP} Now: {words}{where}."))
        self.choice.setAccessibleName(f"Runs on: {words}")
