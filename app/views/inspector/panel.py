"""The inspector: the chosen configuration, what it costs and gains; there it is applied, exported and reported.

What is chosen stands at the top, its figures, power, message and source in tabs, and what can be done with it at the
bottom, always in sight.

`KernelText`: the source that a session's specification names, read off Qt's thread; free of Qt.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QPushButton, QSplitter, QStackedWidget, QTabWidget, QTextBrowser, QWidget

from ...engine.results.measurement import Configuration, Measurement, State
from ...engine.specification.plan import SessionPlan
from ..monitor.own_trace_plot import OwnTrace, OwnTracePlot, own_trace
from ..shared import theme
from ..shared.context import Context
from ..shared.label import PlainLabel
from ..shared.result_caption import ResultCaption
from ..shared.settings import Settings
from ..shared.tasks import LatestTask
from ..shared.turns import InParts, OwnTurn
from ..shared.widgets import hbox, look_pressed, vbox
from .answer_bar import AnswerBar
from .chooser_bar import ChooserBar
from .differences import PinnedView
from .facts import facts_as_html, title_as_html
from .text_view import SourceView, TextView

if TYPE_CHECKING:
    from ...engine.specification.model import Specification
    from ...engine.workloads.command import Command

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


_LEAST_WIDTH, _MOST_WIDTH, _LEAST_HEIGHT = 280, 420, 260  # pixels
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


class InspectorPanel(QWidget, InParts):
    """Follows the current result. Does no work while out of sight."""

    report_asked = Signal()

    def __init__(self, context: Context, parent: QWidget | None = None, *, at_once: bool = True) -> None:
        super().__init__(parent)
        self._context = context
        self._kernel: KernelText | None = None
        self._kernel_of: SessionPlan | None = None  # whose source is read or being read
        self._reader = LatestTask(self)
        self._reader.done.connect(self._source_read)
        self._reader.failed.connect(self._source_not_read)
        self._again = QTimer(self, singleShot=True, interval=_LOOK_AGAIN_MS)
        self._again.timeout.connect(self._show_trace)
        self.begin(at_once)

    def make(self) -> Iterator[None]:
        """The trace, the bars, the pages."""
        context, settings = self._context, Settings()
        self.trace = OwnTracePlot(at_once=False)
        yield from self.trace.make_parts()
        self.caption = ResultCaption(context.result)
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
        self.chooser.refreshed.connect(self._show_title)
        result = context.result
        result.changed.connect(self._chosen_changed)
        self._soon = OwnTurn(self, self._chosen_changed)
        result.best_changed.connect(self._soon.start)  # which comes with much else to draw
        result.pinned.connect(self._pins_changed)
        theme.notifier().changed.connect(self._recolour)

    def _lay_out(self) -> None:
        self.title.setTextFormat(Qt.TextFormat.RichText)
        self.title.setToolTip("The place is that by the session's objective, among what is shown")
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
            self.caption,
            hbox((self.title, 1), self.pin),
            self.chooser,
            (self._middle, 1),
            self.answer,
            of=self,
            margins=6,
        )
        self.setMinimumSize(_LEAST_WIDTH, _LEAST_HEIGHT)
        self.setMaximumWidth(_MOST_WIDTH)

    def shutdown(self) -> None:
        """Wait for what is being read and written."""
        self._again.stop()
        self._reader.shutdown()
        self.chooser.shutdown()
        self.answer.shutdown()

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
            self.setTabOrder(self.facts, self.tabs.tabBar())
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

    @Slot()
    def _show_title(self) -> None:
        measurement, index = self.measurement, self._context.result.chosen
        self.title.setVisible(measurement is not None)
        if measurement is not None and index is not None:
            self.title.setText(title_as_html(measurement, index, self.chooser.place(index)))

    @Slot()
    def _pins_changed(self) -> None:
        """What was pinned last is what the user wants to see."""
        if len(self._context.result.pins) > 1:
            self._show_tab(self.pinned, True)
            self.tabs.setCurrentWidget(self.pinned)
        if self.isVisible():
            self.refresh()

    def _show_pins(self) -> None:
        """The pinned ones are shown also where nothing is chosen, and then alone."""
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
        at = self.tabs.indexOf(page)
        if at >= 0:
            self.tabs.setTabVisible(at, shown)
        else:  # the figures, above the tabs
            page.setVisible(shown)

    def _show_facts(self) -> None:
        measurement, plan = self.measurement, self._context.result.plan
        if measurement is None or plan is None:
            return
        program = self._kernel is not None and self._kernel.command is not None
        seen = self.facts.viewport().height() > 0  # else Qt has scrolled to its cursor
        at = self.facts.verticalScrollBar().value() if seen else 0
        self.facts.setHtml(facts_as_html(measurement, plan, program=program))
        self.facts.verticalScrollBar().setValue(at)

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
        self.trace.show_trace(shown)
        if isinstance(shown, OwnTrace) and not shown.complete:
            self._again.start()

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

    @Slot()
    def _recolour(self) -> None:
        if self.isVisible():
            self.refresh()
