"""`CommandRow`: a command to be copied, and what it is for. `NextSteps`: what can be done about the large items."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QLineEdit, QScrollArea, QWidget

from ...base.formatting import percent
from ...engine.profile.program_profile import ProgramProfile
from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.widgets import button, hbox, vbox


class CommandRow(QWidget):
    """Words above a command with a button that copies it; words alone where there is none."""

    def __init__(self, words: str, command: str) -> None:
        super().__init__()
        self.command = QLineEdit(command, readOnly=True)
        self.command.setFont(theme.fixed_font())
        self.command.setAccessibleName(f"Command: {words}")
        self.copy = button("Copy", "Copy the command", self._copy)
        self.copy.setAccessibleName(f"Copy {command}")
        vbox(PlainLabel(words, wrap=True), hbox((self.command, 1), self.copy, margins=0), of=self, margins=0, spacing=3)
        self.command.setVisible(bool(command))
        self.copy.setVisible(bool(command))

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.command.text())


class NextSteps(QScrollArea):
    """The steps of a profile, those of most energy first."""

    def __init__(self, profile: ProgramProfile) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.rows = [
            CommandRow(f"{step.about}, {percent(step.share)} of the energy: {step.step}. {step.why}.", step.command)
            for step in profile.next_steps
        ]
        held = QWidget()
        rows = self.rows or (PlainLabel("The data show no step for an item of 5 % of the energy.", wrap=True),)
        vbox(*rows, 1, of=held, margins=8, spacing=14)
        self.setWidget(held)
