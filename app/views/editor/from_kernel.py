"""`FromKernel`: choose a CUDA source, its kernel, and which names are tuned over which values."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QHeaderView,
    QLineEdit,
    QPlainTextEdit,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from ...engine.measurement import Value
from ...engine.specification.kernel_scan import Kernel, Scan
from ...engine.specification.new_document import NewSpecification, from_kernel, read_kernels
from ...engine.specification.toml_edit import toml_of
from ..file_dialogs import open_file
from ..plots import theme
from ..plots.label import PlainLabel, plain_tip
from ..threads.tasks import LatestTask
from ..widgets import button, hbox, vbox
from .complaint import Complaint

_SOURCES = "Kernel sources (*.cu *.cuh *.cl *.cpp *.h);;All files (*)"
_NAME, _VALUES, _WHY = range(3)


class FromKernel(QWidget):
    """What the source says is shown as suggestions: a tick makes a name a parameter."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._path: Path | None = None
        self._scan: Scan | None = None
        self._filling = False
        self._reader = LatestTask(self)
        self.file = QLineEdit()
        self.file.setPlaceholderText("The .cu or .cl file of the kernel")
        self.file.setAccessibleName("Kernel file")
        self.browse = button("&Browse …", "Choose the source of the kernel", self.ask_file)
        self.browse.setAutoDefault(False)
        self.kernel = QComboBox()
        self.kernel.setAccessibleName("Kernel")
        self.kernel.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.complaint = Complaint(self.file)
        self.table = QTableWidget(0, 3)
        self.table.setHorizontalHeaderLabels(["Tune", "Values", "Why"])
        self.table.setAccessibleName("Suggested parameters")
        self.table.setShowGrid(False)
        self.table.setAlternatingRowColors(True)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(self.table.fontMetrics().height() + 8)
        self.table.setTabKeyNavigation(False)
        self.table.horizontalHeader().setStretchLastSection(True)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.words = QPlainTextEdit()
        self.words.setReadOnly(True)
        self.words.setTabChangesFocus(True)
        self.words.setAccessibleName("What was guessed, and what you have to fill in")
        self.words.setMaximumHeight(150)
        label = PlainLabel("&File")
        label.setBuddy(self.file)
        kernel_label = PlainLabel("&Kernel")
        kernel_label.setBuddy(self.kernel)
        vbox(
            hbox(label, (self.file, 1), self.browse),
            self.complaint,
            hbox(kernel_label, self.kernel, 1),
            (self.table, 1),
            PlainLabel("What was guessed, and what you have to fill in:"),
            self.words,
            of=self,
        )
        self.file.editingFinished.connect(self._file_typed)
        self.kernel.activated.connect(self._say)
        self.table.cellChanged.connect(self._cell_changed)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()
        self._reader.done.connect(self._was_read)
        self._reader.failed.connect(self._not_read)

    @property
    def ready(self) -> bool:
        return self._scan is not None and self._path is not None

    def specification(self) -> tuple[NewSpecification, Path]:
        """What is chosen, as a specification for the folder of the source; `ready` comes first."""
        assert self._path is not None and self._scan is not None  # noqa: PT018
        kernel, name = self._chosen_kernel()
        folder = self._path.absolute().parent
        return from_kernel(self._path, self._scan, kernel, folder, name, self._chosen()), folder

    def read(self, path: Path) -> None:
        """Read a source, and show what is found in it."""
        self.file.setText(str(path))
        self._path, self._scan = path, None
        self.complaint.say("")
        self._reader.run(lambda _stop: read_kernels(path))
        self.changed.emit()

    @Slot()
    def ask_file(self) -> None:
        """Choose a source."""
        open_file(self, "The source of the kernel", _SOURCES, self.read)

    def shutdown(self) -> None:
        self._reader.shutdown()

    @Slot()
    def _recolour(self) -> None:
        """Ticks that are seen on a dark ground, as those of lists are."""
        self.table.setPalette(QApplication.palette("QListView"))  # type: ignore[call-overload]  # it takes str alone

    @Slot()
    def _file_typed(self) -> None:
        text = self.file.text().strip()
        if text and (self._path is None or text != str(self._path)):
            self.read(Path(text).expanduser())

    @Slot(object)
    def _was_read(self, scan: Scan) -> None:
        self._scan = scan
        self.kernel.clear()
        for place, kernel in enumerate(scan.kernels):
            for name in kernel.names:
                arguments = ", ".join(argument.name for argument in kernel.arguments)
                self.kernel.addItem(f"{name} ({arguments})", (place, name))
        self._filling = True
        self.table.setRowCount(len(scan.suggestions))
        for row, each in enumerate(scan.suggestions):
            tick = QTableWidgetItem(each.name)
            tick.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsUserCheckable)
            tick.setCheckState(Qt.CheckState.Checked if each.tunable else Qt.CheckState.Unchecked)
            why = QTableWidgetItem(each.why)
            why.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
            why.setToolTip(plain_tip(each.why))
            for column, item in (
                (_NAME, tick),
                (_VALUES, QTableWidgetItem(_shown_values(each.values))),
                (_WHY, why),
            ):
                self.table.setItem(row, column, item)
        self._filling = False
        self.table.resizeColumnToContents(_NAME)
        self.table.setColumnWidth(_VALUES, 200)
        self._say()
        self.changed.emit()

    @Slot(str, str)
    def _not_read(self, what: str, remedy: str) -> None:
        self._scan = None
        self.table.setRowCount(0)
        self.kernel.clear()
        self.words.clear()
        self.complaint.say(f"{what} ({remedy})")
        self.changed.emit()

    def _chosen_kernel(self) -> tuple[Kernel, str]:
        assert self._scan is not None
        place, name = self.kernel.currentData()
        return self._scan.kernels[place], name

    def _chosen(self) -> dict[str, list[Value]]:
        chosen: dict[str, list[Value]] = {}
        for row in range(self.table.rowCount()):
            item = self.table.item(row, _NAME)
            values = _typed_values(_cell_text(self.table, row, _VALUES))
            if item is not None and item.checkState() is Qt.CheckState.Checked and values:
                chosen[item.text()] = values if isinstance(values, list) else [values]
        return chosen

    @Slot(int, int)
    def _cell_changed(self, _row: int, _column: int) -> None:
        if not self._filling:
            self._say()

    @Slot()
    def _say(self) -> None:
        if self.ready and self.kernel.count():
            made, _ = self.specification()
            lines = [*(f"You fill in: {line}" for line in made.missing), *(f"Guessed: {line}" for line in made.guessed)]
            self.words.setPlainText("\n".join(lines))


def _shown_values(values: Sequence[Value]) -> str:
    """The values of a parameter, with commas."""
    return ", ".join(toml_of(each) for each in values)


def _typed_values(text: str) -> Any:
    """A list where it reads as one (numbers, true, false, quoted words), else an expression."""
    try:
        found = tomllib.loads(f"v = [{text}\n]\n")
    except (ValueError, RecursionError):
        return text.strip()
    return found["v"] if len(found) == 1 else text.strip()


def _cell_text(table: QTableWidget, row: int, column: int) -> str:
    """What stands in a cell; '' where it has no item."""
    item = table.item(row, column)
    return "" if item is None else item.text()
