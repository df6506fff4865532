"""Terminal, report and window show the same figures of a result, in the same words."""

from __future__ import annotations

import html
import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QTableWidget
from pytestqt.qtbot import QtBot

from app.commands.terminal import print_description
from app.engine.report.html import described
from app.engine.results.description import Description, Figure, Listing
from app.views.plots.descriptions import ListingTable, fill_columns, rich_text
from app.views.plots.overlay_list import icon_of

ROWS: list[list[str | float | None]] = [["least E t", 1170.0, "-23.3 %"], ["least E", None, "–"]]
RESULT = Description(
    title="Frequency model of <A100>",
    origin="sweep & fit, simulated",
    figures=[
        Figure("P_idle", 33.58, "W", error=0.65, meaning="power without a clock"),
        Figure("P_max", None, "W", unknown="no cap seen"),
        Figure("Ridge τ", 1035.0, "MHz", "not bracketed"),
    ],
    listings=[
        Listing("Other goals", ("", "MHz", "energy"), [["least E t", 1170.0, "-23.3 %"], ["least E", None, "–"]])
    ],
    remarks=["a limit acted at <two> points"],
)


def in_terminal(capsys: pytest.CaptureFixture[str]) -> str:
    print_description(RESULT)
    return capsys.readouterr().out


def in_report() -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", described(RESULT).replace("<sub>", "_").replace("</dt>", " ")))


def in_window() -> str:
    document = QTextDocument()
    document.setHtml(rich_text([RESULT]).replace("<sub>", "_"))
    return document.toPlainText().replace("\u00a0", " ")


def test_all_three_show_the_same_figures_remarks_and_rows(qtbot: QtBot, capsys: pytest.CaptureFixture[str]) -> None:
    for text in (in_terminal(capsys), in_report(), in_window()):
        for figure in RESULT.figures:
            assert figure.label in text
            assert figure.text in text
        for remark in (*RESULT.remarks, "Other goals", "least E t", "1170", "-23.3 %"):
            assert remark in text


def test_columns_of_words_begin_at_the_left_and_figures_end_at_the_right(qtbot: QtBot) -> None:
    rows: list[list[str | float | None]] = [["clock", 1.0, "5–6", "put it back"], ["limit", None, "–", ""]]
    listing = Listing("", ("setting", "W", "95 %", ""), rows)
    sides = re.findall(r"align='(\w+)'", rich_text([Description("Idle", "", listings=[listing])]))
    assert sides == 3 * ["left", "right", "right", "left"]


def test_no_line_of_a_description_is_longer_than_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = in_terminal(capsys)
    assert max(map(len, text.splitlines()[1:])) <= 40
    assert "limit acted" in " ".join(text.split())


def test_descriptions_are_columns_of_a_table(qtbot: QtBot) -> None:
    table = QTableWidget()
    qtbot.addWidget(table)
    fill_columns(table, [RESULT, Description("other · board", figures=[Figure("P_idle", 50.0, "W")])], [icon_of(0)] * 2)
    heads = [table.verticalHeaderItem(row).text() for row in range(table.rowCount())]
    assert heads == ["P_idle (W)", "P_max (W)", "Ridge τ (MHz)"]
    assert table.horizontalHeaderItem(1).text() == "other\nboard"
    assert [table.item(row, 0).text() for row in range(3)] == ["33.58 ± 0.65", "no cap seen", "1035, not bracketed"]
    assert [table.item(row, 1).text() for row in range(3)] == ["50", "–", "–"]
    assert table.item(0, 0).toolTip() == "power without a clock"
    assert "limit acted" in table.item(1, 0).toolTip(), "what is unknown says why"


def test_listings_are_rows_of_a_table_with_figures_to_the_right(qtbot: QtBot) -> None:
    table = ListingTable("Other goals")
    qtbot.addWidget(table)
    table.show_listing(RESULT.listings[0], tips=["first", "second"])
    assert [table.item(0, column).text() for column in range(3)] == ["least E t", "1170", "−23.3 %"]
    sides = [bool(table.item(0, column).textAlignment() & Qt.AlignmentFlag.AlignRight) for column in range(3)]
    assert sides == [False, True, True]
    assert table.item(1, 1).text() == "–"
    assert table.item(1, 1).toolTip() == "second"


def test_a_listing_out_of_sight_is_measured_when_it_is_seen(qtbot: QtBot) -> None:
    table = ListingTable("Other goals")
    qtbot.addWidget(table)
    table.show_listing(Listing("", ("short", "long"), [["x", "as long as this sentence, and longer"]]))
    unseen = table.columnWidth(1)
    table.show()
    seen = table.columnWidth(1)
    assert seen > unseen
    table.show_listing(Listing("", ("short", "long"), [["x", "y"]]))
    assert table.columnWidth(1) < seen, "and at once where it is in sight"
