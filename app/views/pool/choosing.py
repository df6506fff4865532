"""The dialogs in which the boards of a session are chosen: boards of this computer, or the pool of a scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QWidget,
)

from ..file_dialogs import choose_folder
from ..number_boxes import WholeBox
from ..plots.label import PlainLabel, plain_tip
from ..settings import Settings
from ..watched_board import is_real
from ..watched_boards import SPEEDS
from ..widgets import button, hbox, vbox

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
        self.speed.setToolTip("How fast the simulated boards run; times and joules are those of their own clocks")
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
