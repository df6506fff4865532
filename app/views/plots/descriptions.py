"""Descriptions of results as rich text, and as the cells of tables."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QIcon, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from ...base.formatting import MINUS, UNKNOWN, number
from ...engine.results.description import Cell, Description, Listing, aligned, label_as_html
from ..shared import theme
from ..shared.label import plain_tip

_TABLE = "<table cellspacing='0' cellpadding='2'>"
_WIDEST = 220  # pixels of a column, until the user makes it wider


def rich_text(descriptions: Iterable[Description]) -> str:
    """Descriptions one below the other: title, figures, remarks and tables."""
    return "".join(map(_rich_text, descriptions))


def _rich_text(description: Description) -> str:
    muted = f"style='color:{theme.colours().muted}'"
    origin = f"<br><span {muted}>{html.escape(description.origin)}</span>" if description.origin else ""
    rows = "".join(
        f"<tr><td>{_strong(label_as_html(figure.label), figure.important)}&nbsp;&nbsp;</td>"
        f"<td>{html.escape(figure.text)}</td></tr>"
        for figure in description.figures
    )
    remarks = "".join(f"<li>{html.escape(remark)}</li>" for remark in description.remarks)
    return (
        f"<p><b>{html.escape(description.title)}</b>{origin}</p>"
        + (f"{_TABLE}{rows}</table>" if rows else "")
        + (f"<p {muted}>Notes</p><ul style='margin-left:-20px'>{remarks}</ul>" if remarks else "")
        + "".join(map(_listing, description.listings))
    )


def _strong(text: str, important: bool) -> str:
    return f"<b>{text}</b>" if important else text


def _listing(listing: Listing) -> str:
    title = f"<p><b>{html.escape(listing.title)}</b></p>" if listing.title else ""
    columns = [[row[index] for row in listing.rows] for index in range(len(listing.header))]
    words = [place == 0 or any(map(_has_words, column)) for place, column in enumerate(columns)]
    sides = ["left" if word else "right" for word in words]
    head = _row(listing.header, sides, f" style='color:{theme.colours().muted}'")
    return f"{title}{_TABLE}{head}{''.join(_row(row, sides) for row in listing.rows)}</table>"


def _has_words(cell: Cell) -> bool:
    return isinstance(cell, str) and cell[:1].isalpha()


def _row(cells: Sequence[Cell], sides: Sequence[str], style: str = "") -> str:
    texts = [html.escape(_text(cell)) for cell in cells]
    written = zip(sides, texts, strict=True)
    return f"<tr>{''.join(f'<td align={side!r}{style}>{text}&nbsp;</td>' for side, text in written)}</tr>"


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else number(cell)


def prepare_table(table: QTableWidget, name: str) -> None:
    """A table that is read: columns as wide as their content, no grid, `name` for accessibility."""
    table.setAccessibleName(name)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setShowGrid(False)
    table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)


def fill_columns(table: QTableWidget, descriptions: Sequence[Description], icons: Sequence[QIcon]) -> None:
    """A row per figure, a column per description; where a figure is unknown, the tool tip has the remarks.

    The tool tip of a row has its whole heading: a narrow table cuts it off.
    """
    figures = aligned(descriptions)
    table.setRowCount(len(figures))
    table.setColumnCount(len(descriptions))
    for column, (description, icon) in enumerate(zip(descriptions, icons, strict=True)):
        head = _item(description.title.replace(" · ", "\n"), f"{description.title}, {description.origin}")
        head.setIcon(icon)
        table.setHorizontalHeaderItem(column, head)
    for row, element in enumerate(figures):
        table.setVerticalHeaderItem(
            row, _item(element[0].heading, f"{element[0].heading}\n{element[0].meaning}".strip())
        )
        for column, (figure, description) in enumerate(zip(element, descriptions, strict=True)):
            has_value = figure.value is not None
            tip = "\n".join((figure.meaning, figure.details) if has_value else description.remarks).strip()
            item = _item(figure.cell, tip, right=True)
            if not has_value:
                item.setForeground(QColor(theme.colours().muted))
            table.setItem(row, column, item)


class ListingTable(QTableWidget):
    """The rows of a listing, to be read: numbers to the right, columns of words of a bounded width at first."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        prepare_table(self, name)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setTabKeyNavigation(False)
        self.setAlternatingRowColors(True)
        self.setWordWrap(False)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 6)
        self._fitted = True

    def show_listing(self, listing: Listing, *, tips: Sequence[str] = (), icons: Sequence[QIcon] = ()) -> None:
        """A row per row of the listing; `tips` of whole rows in place of the cells' text, `icons` of the first ones."""
        self.setRowCount(len(listing.rows))
        self.setColumnCount(len(listing.header))
        self.setHorizontalHeaderLabels(list(listing.header))
        for row, cells in enumerate(listing.rows):
            for column, cell in enumerate(cells):
                text = _text(cell)
                figure = not isinstance(cell, str) or cell[:1] in ("+", "-", UNKNOWN) or cell.endswith(" %")
                text = text.replace("-", MINUS) if figure else text
                item = _item(text, tips[row] if tips else text, right=figure)
                if column == 0 and row < len(icons):
                    item.setIcon(icons[row])
                self.setItem(row, column, item)
        self._fitted = False
        if self.isVisible():
            self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        """Measuring every text takes long: it waits until the table is seen."""
        super().showEvent(event)
        if not self._fitted:
            self._fit()

    def _fit(self) -> None:
        self._fitted = True
        self.resizeColumnsToContents()
        for column in range(self.columnCount()):
            self.setColumnWidth(column, min(self.columnWidth(column), _WIDEST))


def _item(text: str, tip: str, *, right: bool = False) -> QTableWidgetItem:
    item = QTableWidgetItem(text)
    item.setToolTip(plain_tip(tip))
    if right:
        item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return item
