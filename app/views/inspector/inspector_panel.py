"""The inspector: the chosen configuration, what it costs and gains; there it is applied, exported and reported.

What is chosen stands at the top, its figures, power, message and source in tabs, and what can be done with it at the
bottom, always in sight.

`KernelText`: the source that a session's specification names, read off Qt's thread; free of Qt.

Text to read and copy in a fixed-width font: a compiler's message, a kernel's source.

`CudaHighlighter`: CUDA C++ in colours: comments, directives, words, numbers, and the session's own parameters.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QFont,
    QGuiApplication,
    QHideEvent,
    QResizeEvent,
    QShowEvent,
    QSyntaxHighlighter,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import (
    QPlainTextEdit,
    QPushButton,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from ...engine.results.measurement import Configuration, Measurement, State
from ...engine.specification.plan import SessionPlan
from ..shared import theme
from ..shared.current_result import PIN_NAMES
from ..shared.label import PlainLabel
from ..shared.panel import PanelInParts
from ..shared.settings import Settings
from ..shared.tasks import LatestTask
from ..shared.turns import OwnTurn, timer
from ..shared.widgets import hbox, look_pressed, vbox
from ..watch.own_trace_plot import OwnTrace, OwnTracePlot, own_trace, sampled_trace
from .answer_bar import AnswerBar
from .chooser_bar import ChooserBar
from .differences import PinnedView
from .facts import facts_as_html, title_as_html

if TYPE_CHECKING:
    from ...engine.specification.model import Specification
    from ...engine.store.database import Store
    from ...engine.workloads.command import Command

Sampled = tuple[OwnTrace | str, ...]  # what was sampled of measurements, or why nothing was
_PLAIN, _IN_COMMENT = 0, 1
_WORDS = (
    "alignas|auto|bool|break|case|char|class|const|constexpr|continue|default|delete|do|double|else|enum|extern|false"
    "|float|for|half|if|inline|int|int32_t|int64_t|long|namespace|new|operator|private|public|register|return|short"
    "|signed|size_t|sizeof|static|static_assert|struct|switch|template|this|true|typedef|typename|uint32_t|uint64_t"
    "|uint8_t|union|unsigned|using|virtual|void|volatile|while"
)
_CUDA_WORDS = (
    r"__\w+__|__restrict|__syncthreads|__syncwarp|__ldg|__shfl\w*|threadIdx|blockIdx|blockDim|gridDim|warpSize|atomic\w+"
    r"|(?:float|double|half|int|uint|char|uchar|short|ushort|long)[1234]"
)
_TOKENS = re.compile(
    r"(?P<comment>//.*|/\*.*?\*/)"
    r"|(?P<opened>/\*.*)"
    r"""|(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"|(?P<directive>^\s*#\s*\w+)"
    r"|(?P<number>\b(?:0[xX][\da-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)[uUlLfFhH]*\b)"
    rf"|(?P<cuda>\b(?:{_CUDA_WORDS})\b)"
    rf"|(?P<word>\b(?:{_WORDS})\b)"
    r"|(?P<name>\b[A-Za-z_]\w*\b)"
)
_COLOURS = {
    "comment": "muted",
    "opened": "muted",
    "text": "green",
    "directive": "purple",
    "number": "orange",
    "cuda": "vermillion",
    "word": "blue",
}


class CudaHighlighter(QSyntaxHighlighter):
    """`tunable` names are set in bold. Refill the document after `recolour`."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self.tunable: frozenset[str] = frozenset()
        self._formats: dict[str, QTextCharFormat] = {}
        self.recolour()

    def set_tunable(self, names: Iterable[str]) -> None:
        """The names that a configuration defines."""
        self.tunable = frozenset(names)

    def recolour(self) -> None:
        """Take over the theme's colours."""
        colours = theme.colours()
        for kind, colour in _COLOURS.items():
            self._formats[kind] = QTextCharFormat()
            self._formats[kind].setForeground(QColor(getattr(colours, colour)))
        self._formats["name"] = QTextCharFormat()
        self._formats["name"].setForeground(QColor(colours.accent))
        self._formats["name"].setFontWeight(QFont.Weight.Bold)

    def highlightBlock(self, text: str) -> None:
        start = 0
        if self.previousBlockState() == _IN_COMMENT:
            end = text.find("*/")
            start = len(text) if end < 0 else end + 2
            self.setFormat(0, start, self._formats["comment"])
            if end < 0:
                self.setCurrentBlockState(_IN_COMMENT)
                return
        self.setCurrentBlockState(_PLAIN)
        for token in _TOKENS.finditer(text, start):
            kind = str(token.lastgroup)
            if kind == "name" and token[0] not in self.tunable:
                continue
            self.setFormat(token.start(), token.end() - token.start(), self._formats[kind])
            if kind == "opened":
                self.setCurrentBlockState(_IN_COMMENT)


_LINES_A_TURN = 150  # of source: colouring them takes Qt's thread a few ms


class TextView(QWidget):
    """A title, a button that copies, and the text."""

    def __init__(self, name: str, *, wrap: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = PlainLabel(wrap=True)
        self.copy = QPushButton("Copy")
        self.copy.setToolTip("Put all of it on the clipboard")
        self.copy.clicked.connect(self.copy_all)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setFont(theme.fixed_font())
        self.text.setAccessibleName(name)
        mode = QPlainTextEdit.LineWrapMode
        self.text.setLineWrapMode(mode.WidgetWidth if wrap else mode.NoWrap)
        top = hbox((self.title, 1), self.copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 2, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(top)
        layout.addWidget(self.text, 1)

    @property
    def whole(self) -> str:
        """All that can be copied."""
        return self.text.toPlainText()

    def show_text(self, title: str, text: str) -> None:
        """Show another text under a title."""
        self.title.setText(title)
        self.text.setPlainText(text)
        self.copy.setEnabled(bool(text))

    @Slot()
    def copy_all(self) -> None:
        """Put all of it on the clipboard."""
        QGuiApplication.clipboard().setText(self.whole)


class SourceView(TextView):
    """CUDA source in colours. The source is filled in piece by piece; what stands before it may change at once."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Kernel source", wrap=False, parent=parent)
        self._before, self._source = "", ""
        self._waiting: list[str] = []
        self._highlighter = CudaHighlighter(self.text.document())
        self._filler = QTimer(self)
        self._filler.setInterval(0)
        self._filler.timeout.connect(self._fill)
        theme.notifier().changed.connect(self._recolour)

    @property
    def whole(self) -> str:
        return self._before + self._source

    def show_source(self, title: str, before: str, source: str, names: Iterable[str]) -> None:
        """Show `before` (#defines), then the source; `names` stand out in it."""
        tunable = frozenset(names)
        self.title.setText(title)
        self.copy.setEnabled(bool(before or source))
        if source != self._source or tunable != self._highlighter.tunable:
            self._before, self._source = before, source
            self._highlighter.set_tunable(tunable)
            self._refill()
        elif before != self._before:
            cursor = QTextCursor(self.text.document())
            cursor.setPosition(0)
            cursor.setPosition(
                len(self._before.encode("utf-16-le")) // 2, QTextCursor.MoveMode.KeepAnchor
            )  # as Qt counts
            cursor.insertText(before)
            self._before = before

    def _refill(self) -> None:
        lines = self._source.splitlines(keepends=True)
        pieces = ["".join(lines[index : index + _LINES_A_TURN]) for index in range(0, len(lines), _LINES_A_TURN)]
        self.text.setPlainText(self._before)
        self._waiting = pieces
        self._fill()

    @Slot()
    def _fill(self) -> None:
        if self._waiting:
            cursor = QTextCursor(self.text.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(self._waiting.pop(0))
        if self._waiting:
            self._filler.start()
        else:
            self._filler.stop()

    @Slot()
    def _recolour(self) -> None:
        self._highlighter.recolour()
        self._refill()


MAX_SOURCE_BYTES = 1 << 20  # of one file
NOTHING = "This session names no kernel source."
GENERATED = "A program prints the source for each configuration when it is measured: {}"
REPLAYED = "Replayed: the recording holds measurements, not the kernel's source."


@dataclass(frozen=True, slots=True)
class KernelText:
    """What a session runs. `note` says why there is no source; `command` is set where it is a program."""

    note: str = ""
    title: str = ""  # kernel, files, options
    spec: Specification | None = None
    command: Command | None = None
    source: str = ""
    changed_s: float = 0.0  # when a file changed last, s since the epoch

    def before(self, configuration: Configuration) -> str:
        """What stands in front of the source for a configuration: its #defines, or the command line itself."""
        if self.command is not None:
            return shlex.join(self.command.words(configuration)) + "\n"
        if self.spec is None:
            return ""
        from ...engine.workloads.source_kernel import define_lines

        return "\n".join([*define_lines(self.spec, configuration), "", ""])


def read_kernel_text(origin: Mapping[str, str], _stop: threading.Event | None = None) -> KernelText:
    """Read what a plan's `origin` points to. Raises InputError for a file that is gone, too large or no text."""
    if origin.get("kind") == "replay":
        return KernelText(REPLAYED)
    if not origin.get("file"):
        return KernelText(NOTHING)
    from ...base.files import read_text
    from ...engine.session.load import load_specification
    from ...engine.workloads.command import Command

    path = Path(origin["file"])
    spec = load_specification(path)
    if spec.command is not None:
        return KernelText(title="Command line", command=Command(spec), changed_s=path.stat().st_mtime)
    if spec.kernel is not None and spec.kernel.generator:
        return KernelText(GENERATED.format(spec.kernel.generator), spec=spec)
    if spec.kernel is None or not spec.kernel.sources:
        return KernelText(NOTHING, spec=spec)
    sources = spec.kernel.sources
    texts = [read_text(source, MAX_SOURCE_BYTES).rstrip() for source in sources]
    if len(sources) > 1:
        texts = [f"// ---- {source.name}\n{text}" for source, text in zip(sources, texts, strict=True)]
    title = " · ".join(
        (spec.kernel.name, ", ".join(source.name for source in sources), " ".join(spec.kernel.compiler_options))
    ).rstrip(" ·")
    changed_s = max(file.stat().st_mtime for file in (path, *sources))
    return KernelText(title=title, spec=spec, source="\n\n".join(texts) + "\n", changed_s=changed_s)


def _samples_of(store: Store, session: int, measurements: Iterable[Measurement]) -> Sampled:
    """The samples of each measurement, or why there are none."""
    from ...engine.session.evidence import evidence_of

    both = ((evidence_of(store, session, measurement), measurement) for measurement in measurements)
    return tuple(seen if isinstance(seen, str) else sampled_trace(seen, of) for seen, of in both)


_LEAST_WIDTH, _LEAST_HEIGHT = 280, 260  # pixels
_MOST_LETTERS = 70  # in a line
_LOOK_AGAIN_MS = 250  # while readings of after the window are still to come
_NO_SESSION = (
    "No session yet.\n\nOpen a specification or a recorded cache in Tune and press Start: "
    "the best configuration so far is then shown here."
)
_NOTHING_CHOSEN = (
    "Nothing is selected, and nothing has succeeded so far.\n\n"
    "Select a measurement in the table in Tune, or a point in Front: "
    "its parameters, power trace, message and source are shown here."
)
_MESSAGES = {
    State.COMPILE: "The compiler's message",
    State.RUNTIME: "The driver's or the program's message",
    State.CORRECTNESS: "What is wrong with its outputs",
    State.TIMEOUT: "What took too long",
    State.CONSTRAINTS: "Why it was not run",
}
_NOT_WATCHED = "The board that this was measured on is not watched here."
_NO_MESSAGE = "(no message)"
_REMARKS = "Messages, though it works"
_TALL = 760  # pixels from which the figures stand above the tabs; else they are one of them


class InspectorPanel(PanelInParts):
    """Follows the current result. Does no work while out of sight."""

    report_asked = Signal()

    def make(self) -> Iterator[None]:
        """The trace, the bars, the pages."""
        self._kernel: KernelText | None = None
        self._kernel_of: SessionPlan | None = None  # whose source is read or being read
        self._reader = LatestTask(self, self._source_read, self._source_not_read)
        self._again = timer(self, self._show_trace, _LOOK_AGAIN_MS, once=True)
        self._sampled: tuple[object, Sampled] = None, ()  # which measurements, and their samples
        self._sampler = LatestTask(self, self._samples_read)
        context, settings = self._context, Settings()
        self.trace = OwnTracePlot(at_once=False)
        yield from self.trace.make_parts()
        self.trace.over_chosen.connect(self._show_trace)
        self.title, self.pin = PlainLabel(wrap=True, selectable=True), QPushButton("&Pin")
        self.chooser, self.answer = ChooserBar(context, settings), AnswerBar(context, settings)
        yield
        self.empty, self.tabs = PlainLabel(wrap=True, muted=True), QTabWidget()
        self.tabs.setAccessibleName("Pages of the configuration")
        self.facts = QTextBrowser()
        self.message, self.source = TextView("Message", wrap=True), SourceView()
        self.pinned = PinnedView(context.result)
        self.split, self._middle = QSplitter(Qt.Orientation.Vertical), QStackedWidget()
        self._lay_out()
        yield
        self.pin.clicked.connect(self._pin_chosen)
        self.answer.report_asked.connect(self.report_asked)
        result = context.result
        result.changed.connect(self._chosen_changed)
        self._soon = OwnTurn(self, self._chosen_changed)
        result.best_changed.connect(self._soon.start)  # which comes with much else to draw
        result.pinned.connect(self._pins_changed)

    def _lay_out(self) -> None:
        self.title.setTextFormat(Qt.TextFormat.RichText)
        self.pin.setCheckable(True)
        self.pin.setToolTip("Compare this configuration with others that you pin (P in the plot, or Ctrl and a click)")
        self.pin.setAccessibleName("Pin this configuration for comparison")
        look_pressed(self.pin)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setMargin(16)
        self.facts.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.facts.setAccessibleName("The configuration and its figures")
        for page, name in (
            (self.facts, "Figures"),
            (self.trace, "Power"),
            (self.message, "Message"),
            (self.source, "Source"),
            (self.pinned, "Pinned"),
        ):
            self.tabs.addTab(page, name)
        self.tabs.setDocumentMode(True)
        self.tabs.setUsesScrollButtons(True)
        self._middle.addWidget(self.empty)
        self.split.addWidget(self.tabs)
        self.split.setChildrenCollapsible(False)
        self._middle.addWidget(self.split)
        self._middle.setMinimumHeight(60)
        vbox(
            hbox((self.title, 1), self.pin),
            self.chooser,
            (self._middle, 1),
            self.answer,
            of=self,
            margins=6,
        )
        self.setMinimumSize(_LEAST_WIDTH, _LEAST_HEIGHT)
        self.setMaximumWidth(_MOST_LETTERS * self.fontMetrics().averageCharWidth())

    # --- what is chosen ----------------------------------------------------------------------------------------------

    @property
    def measurement(self) -> Measurement | None:
        """The selected measurement, else the best so far."""
        result, index = self._context.result, self._context.result.chosen
        if result.table is None or index is None or not 0 <= index < len(result.table):
            return None
        return result.table.measurement(index)

    @Slot()
    def _chosen_changed(self, *_: object) -> None:
        if self.isVisible():
            self.refresh()

    @Slot()
    def _pin_chosen(self) -> None:
        index = self._context.result.chosen
        if index is not None:
            self._context.result.pin(index)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        self._again.stop()
        super().hideEvent(event)

    def heightForWidth(self, _width: int) -> int:
        """As high as it is given room: a scroll area around it is never to take what can be done out of sight."""
        return _LEAST_HEIGHT

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The figures above the rest where there is room, else as the first tab."""
        super().resizeEvent(event)
        tall = self.height() >= _TALL
        if tall and self.tabs.indexOf(self.facts) >= 0:
            self.split.insertWidget(0, self.facts)
            self.facts.setVisible(self.measurement is not None)
            self.split.setSizes([3000, 2000])
            self.setTabOrder(self.facts, self.tabs)
        elif not tall and self.tabs.indexOf(self.facts) < 0:
            self.tabs.insertTab(0, self.facts, "Figures")
            self.setTabOrder(self.tabs.tabBar(), self.facts)
            if self.tabs.currentWidget() is self.trace:
                self.tabs.setCurrentWidget(self.facts)

    def refresh(self) -> None:
        """Show what is chosen now."""
        self._soon.stop()
        measurement, result = self.measurement, self._context.result
        nothing = measurement is None and not result.pins
        self._middle.setCurrentWidget(self.empty if nothing else self.split)
        self.empty.setText(_NO_SESSION if result.table is None else _NOTHING_CHOSEN)
        self.pin.setChecked(result.chosen in result.pins)
        self.pin.setVisible(measurement is not None)
        self._show_title()
        self._show_pins()
        if measurement is None or result.plan is None:
            self._again.stop()
            return
        self._read_source(result.plan)
        self._show_facts()
        self._show_outcome(measurement)
        self._show_source()

    def _show_title(self) -> None:
        measurement, index = self.measurement, self._context.result.chosen
        self.title.setVisible(measurement is not None)
        if measurement is not None and index is not None:
            self.title.setText(title_as_html(measurement, index))

    @Slot()
    def _pins_changed(self) -> None:
        """Bring the measurement that was pinned last into view."""
        if len(self._context.result.pins) > 1:
            self._show_tab(self.pinned, True)
            self.tabs.setCurrentWidget(self.pinned)
        if self.isVisible():
            self.refresh()

    def _show_pins(self) -> None:
        """The pinned ones are shown also if nothing is chosen, and then alone."""
        pins, alone = self._context.result.pins, self.measurement is None and bool(self._context.result.pins)
        self._show_tab(self.pinned, bool(pins))
        self.tabs.setTabText(self.tabs.indexOf(self.pinned), f"Pinned ({len(pins)})")
        self.pinned.refresh()
        self._show_tab(self.facts, not alone)
        self._show_tab(self.source, not alone)
        if alone:
            self.tabs.setCurrentWidget(self.pinned)
            self._show_tab(self.trace, False)
            self._show_tab(self.message, False)

    def _show_tab(self, page: QWidget, shown: bool) -> None:
        index = self.tabs.indexOf(page)
        if index >= 0:
            self.tabs.setTabVisible(index, shown)
        else:  # the figures, above the tabs
            page.setVisible(shown)

    def _show_facts(self) -> None:
        measurement, plan = self.measurement, self._context.result.plan
        if measurement is None or plan is None:
            return
        program = self._kernel is not None and self._kernel.command is not None
        seen = self.facts.viewport().height() > 0  # else Qt has scrolled to its cursor
        scrolled = self.facts.verticalScrollBar().value() if seen else 0
        self.facts.setHtml(facts_as_html(measurement, plan, program=program))
        self.facts.verticalScrollBar().setValue(scrolled)

    # --- the outcome -------------------------------------------------------------------------------------------------

    def _show_outcome(self, measurement: Measurement) -> None:
        """Why it does not work, where it does not; else the tab that the user chose, as long as something is on it."""
        good, has_message = measurement.state is State.OK, bool(measurement.message)
        chosen, failed_before = self.tabs.currentWidget(), not self.tabs.isTabVisible(self.tabs.indexOf(self.trace))
        self._show_tab(self.trace, good)
        self._show_tab(self.message, has_message or not good)
        if not good and chosen in (self.facts, self.trace):
            self.tabs.setCurrentWidget(self.message)
        elif good and chosen is self.message and (failed_before or not has_message):
            self.tabs.setCurrentIndex(0)
        if good:
            self.message.show_text(_REMARKS, measurement.message)
            self._show_trace()
        else:
            self._again.stop()
            texts = (measurement.error or _NO_MESSAGE, measurement.message)
            self.message.show_text(_MESSAGES[measurement.state], "\n\n".join(filter(None, texts)))

    @Slot()
    def _show_trace(self) -> None:
        measurement = self.measurement
        if measurement is None or measurement.state is not State.OK:
            return
        plan = self._context.result.plan
        board = self._context.boards.measured_by(plan) if plan is not None else None
        shown = own_trace(board.trace, measurement, board.opened_s) if board is not None else _NOT_WATCHED
        self._offer_others()
        self._lay_samples(measurement, shown)
        if isinstance(shown, OwnTrace) and not shown.complete:
            self._again.start()

    def _offer_others(self) -> None:
        """The best and the pinned ones can be laid over the chosen one."""
        result = self._context.result
        named = [*zip(PIN_NAMES, result.pins, strict=False), ("best so far", result.best)]
        others = {index: name for name, index in reversed(named) if index not in (None, result.chosen)}
        self.trace.offer([(f"Over it: {name} · #{i + 1}", i) for i, name in others.items() if i is not None])

    def _lay_samples(self, measurement: Measurement, shown: OwnTrace | str) -> None:
        """Show what the trace of this run has, else the samples kept in the store; another measurement's over it."""
        result, store, over = self._context.result, self._context.store, self.trace.over
        session = result.session
        if not session or measurement.window_ns is None or measurement.source == "recorded":
            self.trace.show_trace(shown)
            return
        store.chosen[session] = measurement.row
        pair = [measurement, *([] if over is None or result.table is None else [result.table.measurement(over)])]
        wanted, (read, samples) = (session, *(item.row for item in pair)), self._sampled
        if wanted == read:
            self.trace.show_trace(samples[0] if isinstance(shown, str) else shown, *samples[1:])
            return
        self.trace.show_trace(shown)
        if len(pair) > 1 or isinstance(shown, str):
            self._sampler.run(lambda _stop: (wanted, _samples_of(store, session, pair)))

    @Slot(object)
    def _samples_read(self, sampled: tuple[object, Sampled]) -> None:
        self._sampled = sampled
        self._show_trace()

    # --- the source --------------------------------------------------------------------------------------------------

    def _read_source(self, plan: SessionPlan) -> None:
        """Read it once for a session."""
        if self._kernel_of is not plan:
            self._kernel_of, self._kernel = plan, None
            origin = dict(plan.origin)
            self._reader.run(lambda stop: read_kernel_text(origin, stop))

    @Slot(object)
    def _source_read(self, kernel: KernelText) -> None:
        self._kernel = kernel
        self._show_facts()
        self._show_source()

    @Slot(str, str)
    def _source_not_read(self, what: str, remedy: str) -> None:
        self._kernel = KernelText(f"{what} ({remedy})" if remedy else what)
        self._show_source()

    def _show_source(self) -> None:
        measurement, kernel = self.measurement, self._kernel
        if measurement is None:
            return
        if kernel is None:
            self.source.show_source("Reading the source …", "", "", ())
            return
        if kernel.note:
            self.source.show_source(kernel.note, "", "", ())
            return
        title = kernel.title
        if kernel.changed_s > measurement.timestamp_s:
            title += " — changed on disk since this was measured"
        names = kernel.spec.parameters if kernel.spec is not None else ()
        self.source.show_source(title, kernel.before(measurement.configuration), kernel.source, names)

    def recolour(self) -> None:
        if self.isVisible():
            self.refresh()
