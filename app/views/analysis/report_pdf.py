"""A report as PDF: the same page laid out on paper, its figures as vectors. Works without a display."""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path

from PySide6.QtCore import QByteArray, QEventLoop, QMarginsF, QRect, QRectF, QSizeF
from PySide6.QtGui import (
    QFont,
    QGuiApplication,
    QPageLayout,
    QPageSize,
    QPainter,
    QPdfWriter,
    QPyTextObject,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtSvg import QSvgRenderer

from app.engine.report.content import ReportContent
from app.engine.report.page import PDF_CREATOR, figure_style, refuse_foreign, report_html
from app.errors import WattridgeError

_FIGURE = QTextFormat.ObjectTypes.UserObject + 1
_SVG = QTextFormat.Property.UserProperty + 1
_WIDTH = 0.82  # of a figure, of the page's
_MOST_PASSES = 8
_DPI = 96  # of the layout; vectors are as fine as the paper
_MARK = "\N{OBJECT REPLACEMENT CHARACTER}"
_PAPER = (
    "body{font-size:9pt}h1{font-size:16pt}h2{font-size:12pt}td,th{font-size:7pt;padding:1px 5px}th{text-align:left}"
    "figcaption,caption{color:#5b6670}pre{font-size:7pt}.badge{color:#d55e00}"
)


class _Figures(QPyTextObject):
    """Draws the SVG of a place in the text, so wide that two fit on a page."""

    def __init__(self, width: float) -> None:
        super().__init__()
        self._width = width
        self._renderers: dict[str, QSvgRenderer] = {}

    def intrinsicSize(self, doc: QTextDocument, posInDocument: int, format: QTextFormat) -> QSizeF:
        told = self._renderer(format).defaultSize()
        return QSizeF(self._width, self._width * told.height() / max(1, told.width()))

    def drawObject(
        self, painter: QPainter, rect: QRectF | QRect, doc: QTextDocument, posInDocument: int, format: QTextFormat
    ) -> None:
        painter.save()  # the renderer leaves its pen and its opacity behind
        self._renderer(format).render(painter, QRectF(rect))
        painter.restore()

    def _renderer(self, format: QTextFormat) -> QSvgRenderer:
        svg = str(format.property(_SVG))
        if svg not in self._renderers:
            self._renderers[svg] = QSvgRenderer(QByteArray(svg.encode()))
        return self._renderers[svg]


def write_pdf(content: ReportContent, path: Path) -> Path:
    """Lay the report out on A4 and write it, in place of an older one. Raises WattridgeError as `write_report` does.

    From any thread.
    """
    refuse_foreign(path)
    application = _application()
    timers = QEventLoop()  # the layout starts timers, which a plain thread has no place for
    html, figures = _taken_apart(report_html(content))
    writer = _paper(path)
    writer.setTitle(f"{content.plan.title} on {content.plan.gpu}")
    document, handler = _with_headings_kept(html, figures, writer)
    document.print_(writer)
    del document, handler, writer, timers, application
    if not path.is_file() or not path.stat().st_size:
        raise WattridgeError("cannot be written", str(path), "choose a folder that you may write to")
    return path


def _with_headings_kept(html: str, figures: list[str], writer: QPdfWriter) -> tuple[QTextDocument, _Figures]:
    """The laid out text; a heading at the foot of a page goes to the next one, where its section begins."""
    for _ in range(_MOST_PASSES):
        document, handler = _laid_out(html, figures, writer)
        alone = _heading_alone(document)
        heading = f"<h2>{escape(alone)}</h2>"
        if not alone or heading not in html:
            break
        html = html.replace(heading, heading.replace("<h2>", '<h2 style="page-break-before:always">'), 1)
    return document, handler


def _laid_out(html: str, figures: list[str], writer: QPdfWriter) -> tuple[QTextDocument, _Figures]:
    """The text in pages, and what draws its figures, which lives as long."""
    document = QTextDocument()
    document.setDefaultFont(QFont("DejaVu Sans", 9))
    document.setDefaultStyleSheet(_PAPER)
    document.setHtml(html)
    _put_figures(document, figures)  # before there is a layout: one that is changed piece by piece loses paragraphs
    page = QSizeF(writer.pageLayout().paintRectPixels(_DPI).size())
    handler = _Figures(_WIDTH * page.width())
    document.documentLayout().registerHandler(_FIGURE, handler)
    document.documentLayout().setPaintDevice(writer)
    document.setPageSize(page)
    return document, handler


def _heading_alone(document: QTextDocument) -> str:
    """The first heading with nothing of its section on its page; empty where there is none."""
    height, layout = document.pageSize().height(), document.documentLayout()

    def page_of(block: QTextBlock) -> int:
        top = layout.blockBoundingRect(block).top()
        line = block.layout().lineAt(0)
        return int((top + (line.y() if line.isValid() else 0.0)) // height)

    block = document.begin()
    while block.isValid():
        after = block.next()
        while after.isValid() and not after.text():
            after = after.next()
        if block.blockFormat().headingLevel() > 0 and after.isValid() and page_of(after) > page_of(block):
            return block.text()
        block = block.next()
    return ""


def _application() -> QGuiApplication:
    """The one that runs, or one that needs no display."""
    running = QGuiApplication.instance()
    if isinstance(running, QGuiApplication):
        return running
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    return QGuiApplication(["wattridge"])


def _paper(path: Path) -> QPdfWriter:
    """A4, upright; margins in mm."""
    writer = QPdfWriter(str(path))
    writer.setCreator(PDF_CREATOR.decode())
    size, upright = QPageSize(QPageSize.PageSizeId.A4), QPageLayout.Orientation.Portrait
    writer.setPageLayout(QPageLayout(size, upright, QMarginsF(14, 14, 14, 16)))
    writer.setResolution(_DPI)
    return writer


def _taken_apart(page: str) -> tuple[str, list[str]]:
    """The page as rich text knows HTML, a mark in place of each figure, and the figures as whole SVG files."""
    figures: list[str] = []
    style = f"<style>{figure_style()}</style>"

    def figure(found: re.Match[str]) -> str:
        svg = found.group(0).replace("</title>", f"</title>{style}", 1).replace("h0", "h0.1")  # no dot without length
        figures.append(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
        return f"<p>{_MARK}</p>"

    body = page[page.index("<body>") :].replace(_MARK, "")
    body = re.sub(r"<svg .*?</svg>", figure, body, flags=re.DOTALL)
    for before, after in {
        "<dl>": "<table>",
        "</dl>": "</table>",
        "<dt>": "<tr><td><span style='color:#5b6670'>",
        "</dt>": "</span></td>",
        "<dd>": "<td>",
        "</dd>": "</td></tr>",
        "<figcaption>": "<p><span style='color:#5b6670'>",
        "</figcaption>": "</span></p>",
    }.items():
        body = body.replace(before, after)
    return f"<html>{body}", figures


def _put_figures(document: QTextDocument, figures: list[str]) -> None:
    cursor = QTextCursor(document)
    for svg in figures:
        cursor = document.find(_MARK, cursor)
        if cursor.isNull():
            return
        told = QTextCharFormat()
        told.setObjectType(_FIGURE)
        told.setProperty(_SVG, svg)
        cursor.insertText(_MARK, told)
