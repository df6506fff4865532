"""Boxes of widgets, buttons, tables and times, as every panel makes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QBoxLayout,
    QHBoxLayout,
    QHeaderView,
    QLayout,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

# A widget, a layout within, either with its stretch, or a number: the stretch of an empty place.
Item = QWidget | QLayout | int | tuple[QWidget | QLayout, int]
_L = TypeVar("_L", bound=QBoxLayout)


def hbox(
    *items: Item, of: QWidget | None = None, margins: int | None = None, spacing: int | None = None
) -> QHBoxLayout:
    """The items side by side; the layout of a widget where `of` is given. Margins and spacing in pixels."""
    return _filled(QHBoxLayout(), items, of, margins, spacing)


def vbox(
    *items: Item, of: QWidget | None = None, margins: int | None = None, spacing: int | None = None
) -> QVBoxLayout:
    """The items below one another; the layout of a widget where `of` is given."""
    return _filled(QVBoxLayout(), items, of, margins, spacing)


def button(text: str, tip: str = "", clicked: Callable[[], object] | None = None) -> QPushButton:
    """A button that calls `clicked`, which takes no argument."""
    made = QPushButton(text)
    made.setToolTip(tip)
    if clicked is not None:
        made.clicked.connect(clicked)
    return made


def set_up_table(table: QTableView, name: str) -> None:
    """Rows are selected whole, several of them too; a third click on a head takes the sorting back; Tab leaves it."""
    table.setAccessibleName(name)
    table.setSortingEnabled(True)
    table.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
    table.horizontalHeader().setSortIndicatorClearable(True)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
    table.setAlternatingRowColors(True)
    table.setWordWrap(False)
    table.setCornerWidget(QWidget())  # else the corner between scroll bars has the table's own colours
    table.setTabKeyNavigation(False)
    table.verticalHeader().hide()
    table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    table.verticalHeader().setDefaultSectionSize(table.fontMetrics().height() + 6)


def local_time(seconds: float) -> str:
    """A time since the epoch, in the user's time zone, to the minute."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


def _filled(layout: _L, items: tuple[Item, ...], of: QWidget | None, margins: int | None, spacing: int | None) -> _L:
    if of is not None:
        of.setLayout(layout)
    if margins is not None:
        layout.setContentsMargins(margins, margins, margins, margins)
    if spacing is not None:
        layout.setSpacing(spacing)
    for item in items:
        if isinstance(item, int):
            layout.addStretch(item)
            continue
        inner, stretch = item if isinstance(item, tuple) else (item, 0)
        if isinstance(inner, QLayout):
            layout.addLayout(inner, stretch)
        else:
            layout.addWidget(inner, stretch)
    return layout
