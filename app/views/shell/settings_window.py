"""`SettingsWindow`: what the window remembers, where things lie, and everything back as it was."""

from __future__ import annotations

import html

from PySide6.QtCore import Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFormLayout,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from ...paths import data_folder
from ..front.load_form import LoadForm
from ..plots.label import PlainLabel
from ..settings import THEMES, Settings
from .log import log_folder

_THEME_WORDS = {"system": "of the system", "light": "light", "dark": "dark"}


class SettingsWindow(QDialog):
    """Everything takes effect at once. Stays beside the main window."""

    theme_chosen = Signal(str)
    reset_asked = Signal()  # everything back: the layout too

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self.setWindowTitle("Settings")
        self.setModal(False)
        self.colours = QComboBox()
        for mode in THEMES:
            self.colours.addItem(_THEME_WORDS[mode], mode)
        self.load = LoadForm(settings)
        year = QGroupBox("A year of the tuned work")
        QVBoxLayout(year).addWidget(self.load)
        self.reset = QPushButton("&Reset all settings")
        self.reset.setToolTip("Layout, colours, prices and recent files as at the first start; sessions stay")
        form = QFormLayout()
        form.addRow("&Colours", self.colours)
        form.addRow(year)
        form.addRow("Data folder", _folder(str(data_folder())))
        form.addRow("Log folder", _folder(str(log_folder())))
        note = PlainLabel("Sessions, characterisations and exports lie in the data folder; WATTRIDGE_DATA moves it.")
        note.setWordWrap(True)
        close = QPushButton("Close")
        for button in (self.reset, close):
            button.setAutoDefault(False)  # Return in a field must not press one
        buttons = QHBoxLayout()
        buttons.addWidget(self.reset)
        buttons.addStretch(1)
        buttons.addWidget(close)
        layout = QVBoxLayout(self)
        layout.addLayout(form)
        layout.addWidget(note)
        layout.addLayout(buttons)
        self.show_settings()
        self.colours.activated.connect(self._colours_chosen)
        self.reset.clicked.connect(self._reset)
        close.clicked.connect(self.close)

    def show_settings(self) -> None:
        """Take over what is kept."""
        self.colours.setCurrentIndex(self.colours.findData(self._settings.theme))
        self.load.look_again()

    @Slot()
    def _colours_chosen(self) -> None:
        self.theme_chosen.emit(self.colours.currentData())

    @Slot()
    def _reset(self) -> None:
        self._settings.reset()
        self.reset_asked.emit()
        self.show_settings()


class _Link(PlainLabel):
    """A folder that opens by click or by Return."""

    def __init__(self, path: str) -> None:
        url = QUrl.fromLocalFile(path).toString()
        super().__init__()
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setText(f'<a href="{html.escape(url)}">{html.escape(path)}</a>')
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.setWordWrap(True)
        self.setAccessibleName(path)
        self.linkActivated.connect(lambda link: QDesktopServices.openUrl(QUrl(link)))


def _folder(path: str) -> QLabel:
    return _Link(path)
