"""`LoadForm`: how long the tuned work runs in a year, what electricity costs and how much carbon it carries."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QDoubleSpinBox, QFormLayout, QMenu, QWidget, QWidgetAction

from app.engine.analysis.tradeoff import HOURS_PER_YEAR, Load
from app.views.settings import Settings


class LoadForm(QWidget):
    """Shows the settings and writes them through."""

    changed = Signal()

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self.hours = _number(HOURS_PER_YEAR, 100, 0, " h a year")
        self.price = _number(100.0, 0.01, 3, " EUR per kWh")
        self.carbon = _number(5000.0, 10, 0, " g CO₂ per kWh")
        form = QFormLayout(self)
        for words, field, tip in (
            ("&Runs for", self.hours, "How long the fastest configuration would run in a year"),
            ("&Electricity", self.price, "What a kilowatt hour costs"),
            ("&Carbon intensity", self.carbon, "Of the electricity, in grams of CO2 equivalent"),
        ):
            field.setToolTip(tip)
            field.setAccessibleName(words.replace("&", ""))
            field.valueChanged.connect(self._keep)
            form.addRow(words, field)
        self.look_again()

    @Slot()
    def look_again(self) -> None:
        """The settings may have been changed elsewhere."""
        for field, value in (
            (self.hours, self._settings.load_hours_per_year),
            (self.price, self._settings.price_per_kwh),
            (self.carbon, self._settings.carbon_g_per_kwh),
        ):
            with QSignalBlocker(field):
                field.setValue(value)

    @property
    def load(self) -> Load:
        """What is set."""
        return Load(
            hours_per_year=self.hours.value(), price_per_kwh=self.price.value(), carbon_g_per_kwh=self.carbon.value()
        )

    @Slot()
    def _keep(self) -> None:
        self._settings.load_hours_per_year = self.hours.value()
        self._settings.price_per_kwh = self.price.value()
        self._settings.carbon_g_per_kwh = self.carbon.value()
        self.changed.emit()


def menu_with(form: QWidget, parent: QWidget) -> QMenu:
    """A menu that holds a form."""
    menu = QMenu(parent)
    action = QWidgetAction(menu)
    action.setDefaultWidget(form)
    menu.addAction(action)
    return menu


def _number(most: float, step: float, decimals: int, unit: str) -> QDoubleSpinBox:
    field = QDoubleSpinBox()
    field.setDecimals(decimals)
    field.setRange(0.0, most)
    field.setSingleStep(step)
    field.setSuffix(unit)
    return field
