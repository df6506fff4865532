"""The user guide in the window: every page is listed and opens, links lead somewhere, colours follow the theme."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.fakes import FakeGpu, working
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QColor, QTextBlockFormat, QTextTable
from pytestqt.qtbot import QtBot

from app.views.shared import theme
from app.views.shell.help import GuideBrowser, HelpWindow, guide, guide_pages

Open = Callable[..., Any]


@pytest.fixture
def light() -> Iterator[None]:
    theme.set_mode("light")
    yield
    theme.set_mode("light")


def opened(qtbot: QtBot) -> HelpWindow:
    page = HelpWindow()
    qtbot.addWidget(page)
    page.show()
    return page


def follow(browser: GuideBrowser, address: str) -> None:
    """What a click on a link does."""
    browser.setSource(browser.source().resolved(QUrl(address)))


def test_f1_opens_the_guide_at_its_first_page(qtbot: QtBot, open_program: Open) -> None:
    window = open_program(FakeGpu(working)).window
    with qtbot.waitSignal(window.panels_loaded, timeout=20_000):
        pass
    action = window.actions_by_name["shortcuts"]
    assert action.shortcut().toString() == "F1"
    action.trigger()
    [page] = window.findChildren(HelpWindow)
    assert page.isVisible()
    assert "User guide" in page.text.toPlainText()


def test_every_page_of_the_guide_is_listed_and_opens_with_its_tables_in_order(qtbot: QtBot) -> None:
    """Qt puts an empty line into the first cell of a table that directly follows a block of code: a sentence goes
    between."""
    assert {page.name for _, page in guide_pages()} == {page.name for page in guide().glob("*.md")}
    page = opened(qtbot)
    titles = [page.pages.item(row).text() for row in range(page.pages.count())]
    assert titles == [*(title for title, _ in guide_pages()), "Keys and mouse"]
    tables = []
    for row, title in enumerate(titles):
        page.pages.setCurrentRow(row)
        assert page.text.toPlainText().startswith(title)
        for frame in page.text.document().rootFrame().childFrames():
            if isinstance(frame, QTextTable):
                cell = frame.cellAt(0, 0)
                tables.append(cell)
                assert cell.firstCursorPosition().block() == cell.lastCursorPosition().block(), title
    assert len(tables) > 20


def test_a_link_opens_its_page_at_the_heading_and_back_returns(qtbot: QtBot) -> None:
    page = opened(qtbot)
    follow(page.text, "measuring.md#which-power-source-is-used")
    assert page.pages.currentItem().text() == "Measuring right"
    assert page.text.textCursor().block().text() == "Which power source is used"
    assert page.text.verticalScrollBar().value() > 0
    assert page.back.isEnabled()
    qtbot.mouseClick(page.back, Qt.MouseButton.LeftButton)
    assert page.pages.currentRow() == 0
    assert "User guide" in page.text.toPlainText()
    assert page.forward.isEnabled()


def test_code_and_links_have_the_colours_of_the_theme(qtbot: QtBot, light: None) -> None:
    page = opened(qtbot)
    page.show_page("frequency-model.md")

    def grounds() -> set[str]:
        found, block = set(), page.text.document().begin()
        while block.isValid():
            if block.blockFormat().hasProperty(QTextBlockFormat.Property.BlockCodeFence):
                found.add(block.blockFormat().background().color().name())
            block = block.next()
        return found

    assert grounds() == {QColor(theme.LIGHT.window).name()}
    page.text.verticalScrollBar().setValue(200)
    theme.set_mode("dark")
    assert grounds() == {QColor(theme.DARK.window).name()}
    assert theme.DARK.accent in page.text.toHtml()
    assert theme.LIGHT.accent not in page.text.toHtml()
    assert page.text.verticalScrollBar().value() == 200


def test_pictures_are_no_wider_than_the_page(qtbot: QtBot) -> None:
    page = opened(qtbot)
    page.show_page("window.md")
    document = page.text.document()
    assert document.size().height() > 3000, "the pictures are there"
    assert document.size().width() <= page.text.viewport().width()
