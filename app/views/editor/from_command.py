"""`FromCommand`: a program's command line, the values of its fields, and the figures in what it prints."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QTableWidget, QTableWidgetItem, QWidget

from ...engine.specification.keys import has_one_group
from ...engine.specification.model import CommandSpec, Specification
from ...engine.specification.new_document import NewSpecification, fields_of, from_command, patterns_in
from ...engine.workloads.command import Command, CommandFailed
from ...engine.workloads.matching import TooSlow, last_matches
from ...errors import InputError
from ..file_dialogs import choose_folder
from ..plots import theme
from ..plots.label import PlainLabel
from ..threads.tasks import LatestTask
from ..widgets import button, hbox, vbox
from .cells import cell_text, edit_cell, shown_values, typed_values
from .complaint import Complaint

_MATCH_MS = 250  # after the last change
_RUN_TIMEOUT_S = 60.0
_NAME, _PATTERN, _FOUND = range(3)


@dataclass(frozen=True, slots=True)
class _Matched:
    patterns: dict[str, str]
    found: dict[str, str | None]


class FromCommand(QWidget):
    """Patterns are tried on the sample of the output as they are typed. A run is started by its button alone."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._filling = False
        self._matcher, self._runner = LatestTask(self), LatestTask(self)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_MATCH_MS)
        self.run, self.folder = QLineEdit(), QLineEdit(str(Path.home()))
        self.run.setPlaceholderText("./bench --size {n} --mode {mode}")
        self.run.setAccessibleName("Command line")
        self.folder.setAccessibleName("Folder in which it runs")
        self.browse = button("&Browse …", "Choose the folder", self.ask_folder)
        self.fields = QTableWidget(0, 2)
        self.fields.setHorizontalHeaderLabels(["Field", "Values"])
        self.fields.setAccessibleName("Fields of the command line and their values")
        self.sample = QPlainTextEdit()
        self.sample.setPlaceholderText("Paste what the program prints, or run it once")
        self.sample.setAccessibleName("Sample of the output")
        self.sample.setTabChangesFocus(True)
        self.sample.setFont(theme.fixed_font())
        self.try_it = button("Run it &once", "Run it now with the first value of each field", self.run_once)
        self.suggest = button("Su&ggest figures", "A pattern for each figure in the sample", self.suggest_patterns)
        self.add = button("&Add", "Add a figure", self.add_pattern)
        self.drop = button("&Remove", "Remove the selected figure", self.remove_pattern)
        for each in (self.browse, self.try_it, self.suggest, self.add, self.drop):
            each.setAutoDefault(False)
        self.patterns = QTableWidget(0, 3)
        self.patterns.setHorizontalHeaderLabels(["Figure", "Regular expression with one group", "Found"])
        self.patterns.setAccessibleName("Figures in the output")
        for table, widths in ((self.fields, (140,)), (self.patterns, (140, 360))):
            table.verticalHeader().hide()
            table.verticalHeader().setDefaultSectionSize(table.fontMetrics().height() + 8)
            table.setTabKeyNavigation(False)
            table.horizontalHeader().setStretchLastSection(True)
            for column, width in enumerate(widths):
                table.setColumnWidth(column, width)
        self.complaint = Complaint(self.run)
        labels = [PlainLabel(text) for text in ("&Command line", "&Folder")]
        for label, line in zip(labels, (self.run, self.folder), strict=True):
            label.setBuddy(line)
        hint = "{name} stands for a parameter. It never runs through a shell."
        vbox(
            hbox(labels[0], (self.run, 1)),
            PlainLabel(hint, muted=True),
            hbox(labels[1], (self.folder, 1), self.browse),
            (self.fields, 1),
            hbox(PlainLabel("What it prints"), 1, self.try_it, self.suggest),
            (self.sample, 1),
            hbox(PlainLabel("Figures in it; the last match counts"), 1, self.add, self.drop),
            (self.patterns, 1),
            self.complaint,
            of=self,
        )
        self.run.textChanged.connect(self._run_changed)
        self.fields.cellChanged.connect(self._note)
        self.patterns.cellChanged.connect(self._note)
        self.sample.textChanged.connect(self._note)
        self._timer.timeout.connect(self._match)
        self._matcher.done.connect(self._matched)
        self._matcher.failed.connect(self._failed)
        self._runner.done.connect(self._ran)
        self._runner.failed.connect(self._failed)

    @property
    def ready(self) -> bool:
        return bool(self.run.text().strip()) and bool(fields_of(self.run.text()))

    def specification(self) -> tuple[NewSpecification, Path]:
        """What is chosen, as a specification for the folder; `ready` comes first."""
        return from_command(self.run.text().strip(), self.values(), self.typed_patterns()), Path(self.folder.text())

    def values(self) -> dict[str, Any]:
        """The values of each field of the command line."""
        found: dict[str, Any] = {}
        for row in range(self.fields.rowCount()):
            found[cell_text(self.fields, row, 0)] = typed_values(cell_text(self.fields, row, 1)) or [1]
        return found

    def typed_patterns(self) -> dict[str, str]:
        """The patterns by the name of their figure."""
        rows = range(self.patterns.rowCount())
        cells = [[cell_text(self.patterns, row, column).strip() for column in (_NAME, _PATTERN)] for row in rows]
        return {name: pattern for name, pattern in cells if name and pattern}

    def shutdown(self) -> None:
        self._timer.stop()
        self._matcher.shutdown()
        self._runner.shutdown()

    @Slot()
    def ask_folder(self) -> None:
        """Choose where it runs, and where the specification will be."""
        choose_folder(
            self, "Folder in which it runs", lambda path: self.folder.setText(str(path)), start=self.folder.text()
        )

    @Slot()
    def run_once(self) -> None:
        """Run it with the first value of each field, and take what it prints as the sample."""
        if not self.ready:
            self.complaint.say("there is no command line with a {field} in it (write one above)")
            return
        configuration = {name: each[0] if isinstance(each, list) else 1 for name, each in self.values().items()}
        path = Path(self.folder.text()) / "new.toml"
        spec = Specification(path, "new", {}, command=CommandSpec(self.run.text().strip(), timeout_s=_RUN_TIMEOUT_S))
        self.complaint.say("")
        self.try_it.setEnabled(False)
        self.try_it.setText("Running …")

        def job(stop: threading.Event) -> str:
            try:
                ended = Command(spec).run(configuration, stop=stop)
            except CommandFailed as error:
                raise InputError(str(error), "", "correct the command line or the values") from None
            return ended.output

        self._runner.run(job)

    @Slot()
    def suggest_patterns(self) -> None:
        """Add a pattern for each figure of the sample that has none."""
        known = self.typed_patterns()
        for name, pattern in patterns_in(self.sample.toPlainText()).items():
            if name not in known:
                self._add(name, pattern)
        self._note()

    @Slot()
    def add_pattern(self) -> None:
        """Add a figure, and begin to type its name."""
        self._add(f"figure_{self.patterns.rowCount() + 1}", "([0-9.]+)")
        row = self.patterns.rowCount() - 1
        edit_cell(self.patterns, row, _NAME)

    @Slot()
    def remove_pattern(self) -> None:
        """Remove the selected figure."""
        if self.patterns.currentRow() >= 0:
            self.patterns.removeRow(self.patterns.currentRow())
            self._note()

    def _add(self, name: str, pattern: str) -> None:
        self._filling = True
        row = self.patterns.rowCount()
        self.patterns.setRowCount(row + 1)
        found = QTableWidgetItem("")
        found.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
        for column, item in ((_NAME, QTableWidgetItem(name)), (_PATTERN, QTableWidgetItem(pattern)), (_FOUND, found)):
            self.patterns.setItem(row, column, item)
        self._filling = False

    @Slot()
    def _run_changed(self) -> None:
        known = self.values()
        self._filling = True
        names = fields_of(self.run.text())
        self.fields.setRowCount(len(names))
        for row, name in enumerate(names):
            item = QTableWidgetItem(name)
            item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
            self.fields.setItem(row, 0, item)
            self.fields.setItem(row, 1, QTableWidgetItem(shown_values(known.get(name, [1, 2, 4]))))
        self._filling = False
        self.changed.emit()

    @Slot()
    def _note(self) -> None:
        if not self._filling:
            self._timer.start()
            self.changed.emit()

    @Slot()
    def _match(self) -> None:
        patterns, text = self.typed_patterns(), self.sample.toPlainText()
        wrong = [name for name, pattern in patterns.items() if not has_one_group(pattern)]
        if wrong:
            self.complaint.say(f"{', '.join(wrong)}: a regular expression with one group is needed, such as ([0-9.]+)")
        elif patterns and text:

            def job(stop: threading.Event) -> _Matched:
                try:
                    return _Matched(patterns, last_matches(patterns, text, stop=stop) or {})
                except TooSlow as error:
                    raise InputError(str(error), "", "avoid nested repetitions such as '(a+)+'") from None

            self._matcher.run(job)

    @Slot(object)
    def _matched(self, matched: _Matched) -> None:
        self.complaint.say("")
        self._filling = True
        for row in range(self.patterns.rowCount()):
            found = matched.found.get(cell_text(self.patterns, row, _NAME).strip())
            item = self.patterns.item(row, _FOUND)
            if item is not None:
                item.setText("nothing" if found is None else found)
        self._filling = False

    @Slot(object)
    def _ran(self, output: str) -> None:
        self._set_run_button()
        self.sample.setPlainText(output)
        if not self.typed_patterns():
            self.suggest_patterns()

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self._set_run_button()
        self.complaint.say(f"{what} ({remedy})")

    def _set_run_button(self) -> None:
        self.try_it.setEnabled(True)
        self.try_it.setText("Run it &once")
