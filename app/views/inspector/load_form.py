"""`LoadForm`: how much there is to do in a year, what electricity costs and how much carbon it carries."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import (
    QFormLayout,
    QLineEdit,
    QMenu,
    QWidget,
    QWidgetAction,
)

from ...engine.analysis.tradeoff import HOURS_PER_YEAR, Load
from ..shared.settings import MOST_BOARDS, Settings
from ..shared.widgets import NumberBox, WholeBox, hbox


class LoadForm(QWidget):
    """Shows the settings and writes them through."""

    changed = Signal()

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self.hours = _number(HOURS_PER_YEAR, 100, 0, " h a year")
        self.boards = WholeBox()
        self.boards.setRange(1, MOST_BOARDS)
        self.boards.setGroupSeparatorShown(True)
        self.price = _number(100_000.0, 0.01, 3, " per kWh")
        self.currency = QLineEdit()
        self.currency.setMaxLength(8)
        self.currency.setFixedWidth(self.fontMetrics().horizontalAdvance("MMMMM"))
        self.carbon = _number(5000.0, 10, 0, " g CO₂ per kWh")
        cost = hbox(self.currency, (self.price, 1))
        form = QFormLayout(self)
        for words, field, row, tip in (
            ("&Runs for", self.hours, self.hours, "How long the fastest configuration would run in a year"),
            ("&Boards", self.boards, self.boards, "How many boards do so"),
            ("&Electricity", self.price, cost, "What a kilowatt hour costs"),
            ("Carbon &intensity", self.carbon, self.carbon, "Of the electricity, in grams of CO₂ equivalent"),
        ):
            field.setToolTip(tip)
            field.setAccessibleName(words.replace("&", ""))
            form.addRow(words, row)
            form.labelForField(row).setBuddy(field)  # type: ignore[attr-defined]
        self.currency.setToolTip("The currency, as it is to be written")
        self.currency.setAccessibleName("Currency")
        for number in (self.hours, self.price, self.carbon, self.boards):
            number.valueChanged.connect(self._keep)
        self.currency.editingFinished.connect(self._keep)
        self.look_again()

    @Slot()
    def look_again(self) -> None:
        """The settings may have been changed elsewhere."""
        load = self._settings.load
        blockers = [QSignalBlocker(field) for field in (self.hours, self.boards, self.price, self.carbon)]
        self.hours.setValue(load.hours_per_year)
        self.boards.setValue(load.boards)
        self.price.setValue(load.price_per_kwh or 0.0)
        self.carbon.setValue(load.carbon_g_per_kwh or 0.0)
        for blocker in blockers:
            blocker.unblock()
        self.currency.setText(load.currency)

    @Slot()
    def _keep(self) -> None:
        self._settings.load = Load(
            hours_per_year=self.hours.value(),
            boards=self.boards.value(),
            price_per_kwh=self.price.value(),
            currency=self.currency.text().strip(),
            carbon_g_per_kwh=self.carbon.value(),
        )
        self.changed.emit()


def menu_with(form: QWidget, parent: QWidget) -> QMenu:
    """A menu that holds a form."""
    menu = QMenu(parent)
    action = QWidgetAction(menu)
    action.setDefaultWidget(form)
    menu.addAction(action)
    return menu


def _number(most: float, step: float, decimals: int, unit: str) -> NumberBox:
    field = NumberBox()
    field.setDecimals(decimals)
    field.setRange(0.0, most)
    field.setSingleStep(step)
    field.setSuffix(unit)
    field.setGroupSeparatorShown(True)
    return field
