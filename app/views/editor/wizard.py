"""`NewWindow`: a new specification from a kernel's source, from a command, or from an example."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QDialog, QTabWidget, QWidget

from ..plots.label import PlainLabel
from ..widgets import button, hbox, vbox
from .complaint import Complaint
from .from_command import FromCommand
from .from_example import FromExample
from .from_kernel import FromKernel


class NewWindow(QDialog):
    """One tab for each way to begin; Create makes the text and hands it to the editor."""

    made = Signal(object, object)  # NewSpecification, and the Path of its folder

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("New specification")
        self.setModal(False)
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

    def choose_kernel(self, path: Path) -> None:
        """Begin with a kernel's source."""
        self.ways.setCurrentWidget(self.kernel)
        self.kernel.read(path)

    def shutdown(self) -> None:
        """End what runs."""
        self.kernel.shutdown()

    @property
    def _way(self) -> FromKernel | FromCommand | FromExample:
        way = self.ways.currentWidget()
        assert isinstance(way, FromKernel | FromCommand | FromExample)
        return way

    @Slot()
    def _set_buttons(self) -> None:
        self.create_button.setEnabled(self._way.ready)
