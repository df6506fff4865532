"""`HelpWindow`: the user guide of `resources/guide`, and a page of every key, made from the list of actions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QUrl, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QTextBlock,
    QTextBlockFormat,
    QTextCursor,
    QTextDocument,
    QTextFragment,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
)
from PySide6.QtWidgets import (
    QDialog,
    QListWidget,
    QListWidgetItem,
    QSplitter,
    QTextBrowser,
    QWidget,
)

from ...base.paths import resources
from ..shared import theme
from ..shared.widgets import button, hbox, vbox
from .window_actions import ACTIONS, MOUSE_HELP, shortcut_table

_KEYS = QUrl("wattridge:keys")
_PAGE = Qt.ItemDataRole.UserRole  # of an item of the list: its page's address
_LINKED_PAGE = re.compile(r"\]\(([\w-]+\.md)\)")


def guide() -> Path:
    """The folder of the user guide."""
    return resources() / "guide"


def guide_pages() -> list[tuple[str, Path]]:
    """(title, file) of every page: the index, then the pages it links to, in its order."""
    index = guide() / "index.md"
    names = dict.fromkeys(_LINKED_PAGE.findall(index.read_text(encoding="utf-8")))
    return [(_title(page), page) for page in (index, *(guide() / name for name in names))]


def anchor_of(heading: str) -> str:
    """The name by which links refer to a heading, as GitHub forms it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


class HelpWindow(QDialog):
    """The pages at the left, the open one at the right. Stays beside the main window; nothing waits for it."""

    find_asked = Signal()  # the search of the main window, which finds pages and headings too

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Help")
        self.pages = QListWidget()
        self.pages.setAccessibleName("Pages of the user guide")
        self.text = GuideBrowser()
        self.back = button("&Back", "Alt+Left", self.text.backward)
        self.forward = button("&Forward", "Alt+Right", self.text.forward)
        for each, available in (
            (self.back, self.text.backwardAvailable),
            (self.forward, self.text.forwardAvailable),
        ):
            each.setEnabled(False)
            each.setAutoDefault(False)
            available.connect(each.setEnabled)
        for title, url in (*((title, _url(page)) for title, page in guide_pages()), ("Keys and mouse", _KEYS)):
            item = QListWidgetItem(title, self.pages)
            item.setData(_PAGE, _page_of(url))
        self.pages.currentItemChanged.connect(self._open_item)
        self.text.sourceChanged.connect(self._mark)
        self.search = button("F&ind…", "Pages and headings, by their words (Ctrl+K)", self.find_asked.emit)
        self.search.setAutoDefault(False)
        self.search.setShortcut("Ctrl+K")
        left = QWidget()
        vbox(hbox(self.back, self.forward, self.search), self.pages, of=left).setContentsMargins(6, 6, 0, 6)
        self._splitter = QSplitter()
        self._splitter.addWidget(left)
        self._splitter.addWidget(self.text)
        self._splitter.setStretchFactor(1, 1)
        vbox(self._splitter, of=self, margins=0)
        self.resize(1080, 700)
        self._splitter.setSizes([220, 860])
        self.pages.setCurrentRow(0)

    def show_page(self, name: str) -> None:
        """Open a page of the guide by its file's name, with a heading after a '#', or 'keys'."""
        page, _, heading = name.partition("#")
        url = QUrl(_KEYS) if name == "keys" else _url(guide() / page)
        if heading:  # an empty fragment is another address than none
            url.setFragment(heading)
        self.text.setSource(url)

    @Slot(QListWidgetItem)
    def _open_item(self, item: QListWidgetItem | None) -> None:
        if item is not None and item.data(_PAGE) != _page_of(self.text.source()):
            self.text.setSource(QUrl(item.data(_PAGE)))

    @Slot(QUrl)
    def _mark(self, url: QUrl) -> None:
        """Keep the list at the page that a link, Back or Forward opened."""
        for row in range(self.pages.count()):
            if self.pages.item(row).data(_PAGE) == _page_of(url):
                self.pages.setCurrentRow(row)


class GuideBrowser(QTextBrowser):
    """Markdown pages with links between them and to headings; links to the web open in the system's browser."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("User guide")
        self.setOpenExternalLinks(True)
        self.document().setDocumentMargin(16)
        theme.notifier().changed.connect(self._recolour)

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        """The page of keys is made here; every other page is a file."""
        return _keys_page() if QUrl(name) == _KEYS else super().loadResource(kind, name)

    def doSetSource(
        self, name: QUrl | str, kind: QTextDocument.ResourceType = QTextDocument.ResourceType.UnknownResource
    ) -> None:
        """Open a page, and go to the heading that the link names."""
        super().doSetSource(name, kind)
        _style(self.document())
        if fragment := QUrl(name).fragment():
            self._go_to(fragment)

    def _go_to(self, anchor: str) -> None:
        for block in _blocks(self.document()):
            if block.blockFormat().headingLevel() and anchor_of(block.text()) == anchor:
                bar = self.verticalScrollBar()
                bar.setValue(round(self.document().documentLayout().blockBoundingRect(block).top()))
                self.setTextCursor(QTextCursor(block))
                bar.setValue(round(self.document().documentLayout().blockBoundingRect(block).top()))
                return

    @Slot()
    def _recolour(self) -> None:
        """Colours of links and code are those of the theme in which a page was opened: open it again, and stay."""
        position = self.verticalScrollBar().value()
        self.reload()
        self.verticalScrollBar().setValue(position)


def _url(page: Path) -> QUrl:
    return QUrl.fromLocalFile(str(page))


def _page_of(url: QUrl) -> str:
    return url.toString().partition("#")[0]


def _title(page: Path) -> str:
    first = page.read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ").strip()


def _blocks(document: QTextDocument) -> Iterable[QTextBlock]:
    block = document.begin()
    while block.isValid():
        yield block
        block = block.next()


def _fragments(block: QTextBlock) -> Iterable[QTextFragment]:
    iterator = block.begin()
    while not iterator.atEnd():
        yield iterator.fragment()
        iterator += 1


def _style(document: QTextDocument) -> None:
    """Give lines more room, tables thin lines and padding, code a ground, and make pictures fit the width."""
    c = theme.colours()
    for frame in document.rootFrame().childFrames():
        if isinstance(frame, QTextTable):
            look = frame.format()
            look.setBorderCollapse(True)
            look.setBorder(1)
            look.setBorderBrush(QColor(c.border))
            look.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
            look.setCellPadding(5)
            look.setTopMargin(4)
            look.setBottomMargin(10)
            look.setWidth(QTextLength(QTextLength.Type.PercentageLength, 99))
            frame.setFormat(look)
    for block in _blocks(document):
        pictures = [fragment for fragment in _fragments(block) if fragment.charFormat().isImageFormat()]
        block_look = QTextBlockFormat()
        if block.blockFormat().hasProperty(QTextBlockFormat.Property.BlockCodeFence):
            block_look.setBackground(QColor(c.window))
        elif not pictures:
            block_look.setLineHeight(125, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        QTextCursor(block).mergeBlockFormat(block_look)
        for picture in pictures:
            look_of_picture = picture.charFormat().toImageFormat()
            look_of_picture.setMaximumWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
            cursor = QTextCursor(block)
            cursor.setPosition(picture.position())
            cursor.setPosition(picture.position() + picture.length(), QTextCursor.MoveMode.KeepAnchor)
            cursor.setCharFormat(look_of_picture)


_FRONT = (
    ("Drag", "Mark the measurements in a rectangle; with Ctrl besides those marked already"),
    ("Right or Shift drag", "Move the picture"),
    ("Left, Right, Home, End", "Walk along the Pareto front"),
    ("Esc", "Unmark"),
    ("Click on a value", "Hide its measurements or show them again, in the histograms; by key: arrows and Space"),
    ("Right click on a value", "Mark its measurements; by key: Return"),
    ("Shift with Up or Down in the table", "Mark several rows"),
)
_PLOTS = (
    ("Drag, wheel", "Move and zoom"),
    ("Double click", "Show everything again"),
    ("Right click", "Copy or save what is shown: PNG, SVG, CSV"),
)


def _keys_page() -> str:
    groups = {**shortcut_table(ACTIONS), "On the traces": MOUSE_HELP, "Front": _FRONT, "Plots": _PLOTS}
    return "<h1>Keys and mouse</h1>" + "".join(_section(title, lines) for title, lines in groups.items())


def _section(title: str, lines: Iterable[tuple[str, str]]) -> str:
    rows = "".join(
        f"<tr><td width='30%'><b>{escape(keys)}</b></td><td>{escape(does)}</td></tr>" for keys, does in lines
    )
    return f"<h4 style='margin-bottom:2px'>{escape(title)}</h4><table>{rows}</table>"
