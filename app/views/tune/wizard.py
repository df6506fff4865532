"""`NewWindow`: a new specification from a kernel's source, from a command, or from an example.

`FromCommand`: a program's command line, and a sample of what it prints, from which the figures are guessed.

`FromExample`: begin with one of the specifications that come with the program.

`FromKernel`: choose a CUDA source, its kernel, and which names are tuned over which values.

`Complaint`: what is wrong with a field, right below it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QDialog,
    QHeaderView,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QSplitter,
    QTableWidget,
    QTableWidgetItem,
    QTabWidget,
    QWidget,
)

from ...base.files import read_text
from ...engine.results.measurement import Value
from ...engine.specification.examples import about, examples
from ...engine.specification.kernel_scan import Kernel, Scan
from ...engine.specification.new_document import (
    NewSpecification,
    fields_of,
    from_command,
    from_kernel,
    patterns_in,
    read_kernels,
)
from ...engine.specification.toml_edit import rebased, toml_of
from ...engine.specification.toml_section import MAX_BYTES
from ..shared import theme
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Ending
from ..shared.pasting import TextField
from ..shared.tasks import LatestTask
from ..shared.widgets import button, choose_folder, hbox, open_file, vbox

_FIRST = (1, 2, 4)  # values of a field of the command line, to begin with


class FromCommand(QWidget):
    """The text that it gives is shown as the command line is typed. Nothing is run."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.run, self.folder = QLineEdit(), QLineEdit(str(Path.home()))
        self.run.setPlaceholderText("./bench --size {n} --mode {mode}")
        self.run.setAccessibleName("Command line")
        self.folder.setAccessibleName("Folder in which it runs")
        self.browse = button("&Browse …", "Choose the folder", self.ask_folder)
        self.browse.setAutoDefault(False)
        self.sample, self.text = TextField(), TextField()
        self.sample.setPlaceholderText("Run the program yourself and paste what it prints: Result: 12.5 GFLOP/s")
        self.sample.setAccessibleName("Sample of the output")
        self.text.setReadOnly(True)
        self.text.setAccessibleName("The specification")
        for widget in (self.sample, self.text):
            widget.setFont(theme.fixed_font())
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        labels = [PlainLabel(text) for text in ("&Command line", "&Folder")]
        for label, line in zip(labels, (self.run, self.folder), strict=True):
            label.setBuddy(line)
        vbox(
            hbox(labels[0], (self.run, 1)),
            PlainLabel("{name} stands for a parameter. It never runs through a shell.", muted=True),
            hbox(labels[1], (self.folder, 1), self.browse),
            PlainLabel("What it prints; the figures in it become values"),
            (self.sample, 1),
            PlainLabel("The specification; values and figures are changed in the editor"),
            (self.text, 2),
            of=self,
        )
        self.run.textChanged.connect(self._show)
        self.sample.textChanged.connect(self._show)

    @property
    def ready(self) -> bool:
        return bool(fields_of(self.run.text()))

    def specification(self) -> tuple[NewSpecification, Path]:
        """What is chosen, as a specification for the folder; `ready` comes first."""
        run = self.run.text().strip()
        made = from_command(run, dict.fromkeys(fields_of(run), _FIRST), patterns_in(self.sample.toPlainText()))
        return made, Path(self.folder.text())

    @Slot()
    def ask_folder(self) -> None:
        """Choose where it runs, and where the specification will be."""
        choose_folder(
            self, "Folder in which it runs", lambda path: self.folder.setText(str(path)), start=self.folder.text()
        )

    @Slot()
    def _show(self) -> None:
        self.text.setPlainText(self.specification()[0].text if self.ready else "")
        self.changed.emit()


class FromExample(QWidget):
    """A copy: the example itself stays as it is, and the copy names its sources where they lie."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.list, self.text = QListWidget(), QPlainTextEdit()
        self.list.setAccessibleName("Examples")
        self.text.setAccessibleName("The example")
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setFont(theme.fixed_font())
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        for path in examples():
            item = QListWidgetItem(path.stem.replace("_", " "), self.list)
            item.setData(Qt.ItemDataRole.UserRole, path)
            item.setToolTip(plain_tip(about(path)))
        parts = QSplitter()
        parts.addWidget(self.list)
        parts.addWidget(self.text)
        parts.setSizes([180, 640])
        vbox((parts, 1), of=self)
        self.list.currentItemChanged.connect(self._show)
        self.list.setCurrentRow(0)

    @property
    def ready(self) -> bool:
        return self.list.currentItem() is not None

    def choose(self, name: str) -> None:
        """The example of that name."""
        self.list.setCurrentItem(self.list.findItems(name, Qt.MatchFlag.MatchExactly)[0])

    def specification(self) -> tuple[NewSpecification, Path]:
        """A copy of the chosen example, for the home folder; `ready` comes first."""
        path: Path = self.list.currentItem().data(Qt.ItemDataRole.UserRole)
        folder = Path.home()
        return NewSpecification(f"my_{path.stem}", rebased(_text(path), path.parent, folder), (), ()), folder

    @Slot()
    def _show(self) -> None:
        item = self.list.currentItem()
        self.text.setPlainText(_text(item.data(Qt.ItemDataRole.UserRole)) if item is not None else "")
        self.changed.emit()


def _text(path: Path) -> str:
    return read_text(path, MAX_BYTES)  # a few KiB that come with the program


class Complaint(PlainLabel):
    """Hidden while there is nothing to say."""

    def __init__(self, field: QWidget | None = None) -> None:
        super().__init__(wrap=True, selectable=True)
        self._field = field
        theme.style(self, "background: {c.warning}; color: {c.warning_text}; padding: 2px 4px;")
        self.say("")

    def say(self, text: str) -> None:
        """Show what is wrong, or with '' nothing."""
        if text != self.text():
            self.setText(text)
        self.setVisible(bool(text))
        if self._field is not None:
            self._field.setAccessibleDescription(text)


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
        self._reader = LatestTask(self, self._was_read, self._not_read)
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
        theme.follow(self._recolour)

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
        for row, suggestion in enumerate(scan.suggestions):
            tick = QTableWidgetItem(suggestion.name)
            tick.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsUserCheckable)
            tick.setCheckState(Qt.CheckState.Checked if suggestion.tunable else Qt.CheckState.Unchecked)
            why = QTableWidgetItem(suggestion.why)
            why.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
            why.setToolTip(plain_tip(suggestion.why))
            for column, item in (
                (_NAME, tick),
                (_VALUES, QTableWidgetItem(_shown_values(suggestion.values))),
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
    return ", ".join(toml_of(value) for value in values)


def _typed_values(text: str) -> Any:
    """A list where it reads as one (numbers, true, false, quoted words), else an expression."""
    try:
        document = tomllib.loads(f"v = [{text}\n]\n")
    except (ValueError, RecursionError):
        return text.strip()
    return document["v"] if len(document) == 1 else text.strip()


def _cell_text(table: QTableWidget, row: int, column: int) -> str:
    """What stands in a cell; '' where it has no item."""
    item = table.item(row, column)
    return "" if item is None else item.text()


class NewWindow(QDialog, Ending):
    """One tab for each way to begin; Create makes the text and hands it to the editor."""

    made = Signal(object, object)  # NewSpecification, and the Path of its folder

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("New specification")
        self.resize(860, 600)
        self.ways = QTabWidget()
        self.ways.setDocumentMode(True)
        self.kernel, self.command, self.example = FromKernel(), FromCommand(), FromExample()
        for title, way in (
            ("From a &kernel file", self.kernel),
            ("From a &command", self.command),
            ("From an &example", self.example),
        ):
            self.ways.addTab(way, title)
            way.changed.connect(self._set_buttons)
        self.complaint = Complaint()
        self.create_button = button("C&reate", "Open it in the editor", self.create_it)
        self.create_button.setDefault(True)
        self.cancel = button("Cancel", "", self.reject)
        self.cancel.setAutoDefault(False)
        words = PlainLabel("The editor opens next: nothing is saved or run yet.", muted=True)
        vbox((self.ways, 1), self.complaint, hbox((words, 1), self.create_button, self.cancel), of=self)
        self.ways.currentChanged.connect(self._set_buttons)
        self._set_buttons()

    @Slot()
    def create_it(self) -> None:
        """Make the specification of the tab in front."""
        way = self._way
        self.complaint.say("")
        if way.ready:
            specification, folder = way.specification()
            self.made.emit(specification, folder)
            self.accept()

    def begin(self, way: str, example: str) -> None:
        """Show the tab 'kernel', 'command' or 'example'; at an example where one is named."""
        self.ways.setCurrentWidget(getattr(self, way))
        if example:
            self.example.choose(example)

    def choose_kernel(self, path: Path) -> None:
        """Begin with a kernel's source."""
        self.ways.setCurrentWidget(self.kernel)
        self.kernel.read(path)

    @property
    def _way(self) -> FromKernel | FromCommand | FromExample:
        way = self.ways.currentWidget()
        assert isinstance(way, FromKernel | FromCommand | FromExample)
        return way

    @Slot()
    def _set_buttons(self) -> None:
        self.create_button.setEnabled(self._way.ready)
