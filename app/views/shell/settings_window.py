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
    QLabel,
    QWidget,
)

from ...base.paths import data_folder
from ..inspector.load_form import LoadForm
from ..shared.label import PlainLabel
from ..shared.settings import THEMES, Settings
from ..shared.text_size import TEXT_POINTS, set_text_size
from ..shared.widgets import WholeBox, button, hbox, vbox
from .log import log_folder

_THEME_WORDS = {"system": "of the system", "light": "light", "dark": "dark"}


class SettingsWindow(QDialog):
    """Everything takes effect at once. Stays beside the main window."""

    theme_chosen = Signal(str)
    samples_chosen = Signal(int)  # MB of a session
    reset_asked = Signal()  # everything back: the layout too

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self.setWindowTitle("Settings")
        self.colours = QComboBox()
        for mode in THEMES:
            self.colours.addItem(_THEME_WORDS[mode], mode)
        self.text_size = QComboBox()
        self.text_size.addItem("of the system", 0)
        for points in range(TEXT_POINTS[0], TEXT_POINTS[1] + 1):
            self.text_size.addItem(f"{points} points", points)
        self.samples = WholeBox()
        self.samples.setRange(0, 100_000)
        self.samples.setSuffix(" MB a session")
        self.samples.setSpecialValueText("none")
        self.samples.setToolTip("Of a larger session those of the front, the best, the chosen and the newest are kept")
        self.load = LoadForm(settings)
        year = QGroupBox("A year of the tuned work")
        vbox(self.load, of=year)
        tip = "Layout, colours, prices and recent files as at the first start; sessions stay"
        self.reset = button("&Reset all settings", tip, self._reset)
        form = QFormLayout()
        form.addRow("&Colours", self.colours)
        form.addRow("&Text size", self.text_size)
        form.addRow("Keep &samples", self.samples)
        form.addRow(year)
        form.addRow("Data folder", _Link(str(data_folder())))
        form.addRow("Log folder", _Link(str(log_folder())))
        words = "Sessions, characterisations and exports lie in the data folder; WATTRIDGE_DATA moves it."
        note = PlainLabel(words, wrap=True)
        close = button("Close", clicked=self.close)
        for widget in (self.reset, close):
            widget.setAutoDefault(False)  # Return in a field must not press one
        vbox(form, note, hbox(self.reset, 1, close), of=self)
        self.show_settings()
        self.colours.activated.connect(self._colours_chosen)
        self.text_size.activated.connect(self._text_size_chosen)
        self.samples.valueChanged.connect(self.samples_chosen)

    def show_settings(self) -> None:
        """Show what is kept."""
        self.colours.setCurrentIndex(self.colours.findData(self._settings.theme))
        self.text_size.setCurrentIndex(self.text_size.findData(self._settings.text_points))
        self.samples.setValue(self._settings.samples_mb)
        self.load.look_again()

    def rows(self) -> dict[str, QWidget]:
        """What is set in each row, by the row's name."""
        labels = (label for label in self.findChildren(QLabel) if label.buddy() is not None)
        return {label.text().replace("&", ""): label.buddy() for label in labels}

    @Slot()
    def _colours_chosen(self) -> None:
        self.theme_chosen.emit(self.colours.currentData())

    @Slot()
    def _text_size_chosen(self) -> None:
        self._settings.text_points = self.text_size.currentData()
        set_text_size(self._settings.text_points)

    @Slot()
    def _reset(self) -> None:
        self._settings.reset()
        self.reset_asked.emit()
        set_text_size(self._settings.text_points)
        self.show_settings()


class _Link(PlainLabel):
    """A folder that opens by click or by Return."""

    def __init__(self, path: str) -> None:
        url = QUrl.fromLocalFile(path).toString()
        super().__init__(wrap=True)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setText(f'<a href="{html.escape(url)}">{html.escape(path)}</a>')
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.setAccessibleName(path)
        self.linkActivated.connect(lambda link: QDesktopServices.openUrl(QUrl(link)))
