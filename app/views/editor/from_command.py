"""`FromCommand`: a program's command line, and a sample of what it prints, from which the figures are guessed."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from ...engine.specification.new_document import NewSpecification, fields_of, from_command, patterns_in
from ..file_dialogs import choose_folder
from ..plots import theme
from ..plots.label import PlainLabel
from ..widgets import button, hbox, vbox

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
        self.sample, self.text = QPlainTextEdit(), QPlainTextEdit()
        self.sample.setPlaceholderText("Run the program yourself and paste what it prints: Result: 12.5 GFLOP/s")
        self.sample.setAccessibleName("Sample of the output")
        self.text.setReadOnly(True)
        self.text.setAccessibleName("The specification")
        for each in (self.sample, self.text):
            each.setTabChangesFocus(True)
            each.setFont(theme.fixed_font())
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
