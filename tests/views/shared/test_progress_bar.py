"""A bar that moves does not draw the window in the middle of what moves it."""

from __future__ import annotations

from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.views.shared.widgets import ProgressBar, vbox


class Beside(QWidget):
    """Counts how often it is drawn."""

    drawn = 0

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        self.drawn += 1


def test_what_waits_to_be_drawn_waits_for_its_turn(qtbot: QtBot) -> None:
    window, bar, beside = QWidget(), ProgressBar(), Beside()
    qtbot.addWidget(window)
    beside.setMinimumSize(50, 50)
    vbox(bar, beside, of=window)
    bar.setRange(0, 10)
    window.show()
    qtbot.waitUntil(lambda: beside.drawn > 0, timeout=5_000)
    drawn = beside.drawn
    beside.update()
    for value in range(1, 11):
        bar.setValue(value)
    assert beside.drawn == drawn
    qtbot.waitUntil(lambda: beside.drawn > drawn, timeout=5_000)
    assert bar.value() == 10


def test_words_that_do_not_fit_are_cut_and_stay_in_one_line(qtbot: QtBot) -> None:
    bar = ProgressBar()
    qtbot.addWidget(bar)
    bar.setFormat("%v of %m measured (%p %) · the budget is used up")
    bar.setRange(0, 250)
    bar.setValue(250)
    bar.resize(600, 24)
    assert bar.text() == "250 of 250 measured (100 %) · the budget is used up"
    bar.resize(200, 24)
    assert bar.text().startswith("250 of 250")
    assert bar.text().endswith("…")
    assert bar.fontMetrics().horizontalAdvance(bar.text()) < 200
