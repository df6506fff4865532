"""The selected configuration: its parameters and figures, its power over time, its message, its kernel's source."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QPushButton, QSplitter, QTabWidget, QTextBrowser, QVBoxLayout, QWidget

from ...engine.measurement import Measurement, State
from ...engine.session.plan import SessionPlan
from ..context import Context
from ..monitor.own_trace import OwnTrace, own_trace
from ..monitor.own_trace_plot import OwnTracePlot
from ..plots import theme
from ..plots.label import PlainLabel
from ..result_caption import ResultCaption
from ..threads.tasks import LatestTask
from ..widgets import hbox
from .apply_button import ApplyButton
from .facts import facts_as_html, title_as_html
from .kernel_text import KernelText, read_kernel_text
from .pinned_view import PinnedView
from .text_view import SourceView, TextView

_WIDE = 760  # pixels from which the facts stand beside the rest
_SHORT, _WIDE_FOR_SHORT = 400, 520  # ... and from which they do where there is little height
_TWO_COLUMNS = 400  # pixels of the facts from which they stand in two columns
_LOOK_AGAIN_MS = 250  # while readings of after the window are still to come
_NO_SESSION = (
    "No session yet.\nOpen a specification or a recorded cache under Tune and press Start;\n"
    "then select a measurement in the table or a point under Front."
)
_NOTHING_SELECTED = (
    "Nothing is selected.\nSelect a measurement in the table under Tune, or a point under Front:\n"
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
_POWER, _MESSAGE, _SOURCE, _PINNED = range(4)  # places of tabs


class ConfigurationPanel(QWidget):
    """Follows the current result. Does no work while out of sight."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._kernel: KernelText | None = None
        self._kernel_of: SessionPlan | None = None  # whose source is read or being read
        self._reader = LatestTask(self)
        self._reader.done.connect(self._source_read)
        self._reader.failed.connect(self._source_not_read)
        self._again = QTimer(self, singleShot=True, interval=_LOOK_AGAIN_MS)
        self._again.timeout.connect(self._show_trace)
        self.caption = ResultCaption(context.result)
        self.empty, self.title, self.facts = PlainLabel(), PlainLabel(), QTextBrowser()
        self.trace, self.message, self.source = OwnTracePlot(), TextView("Message", wrap=True), SourceView()
        self.tabs = QTabWidget()
        self.apply = ApplyButton(context)
        self.pinned = PinnedView(context.result)
        self.pin = QPushButton("&Pin")
        self.pin.setCheckable(True)
        self.pin.setToolTip("Compare this configuration with others that you pin (P in the plot, or Ctrl and a click)")
        self.pin.setAccessibleName("Pin this configuration for comparison")
        self.pin.clicked.connect(context.result.pin_selected)
        self._lay_out()
        context.result.changed.connect(self._selected)
        context.result.pinned.connect(self._pins_changed)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()

    def _lay_out(self) -> None:
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self.empty.setMargin(24)
        self.title.setTextFormat(Qt.TextFormat.RichText)
        self.title.setWordWrap(True)
        self.title.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.facts.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.facts.setAccessibleName("The configuration and its figures")
        pages = (self.trace, "Power"), (self.message, "Message"), (self.source, "Source"), (self.pinned, "Pinned")
        for page, name in pages:
            self.tabs.addTab(page, name)
        self.tabs.setDocumentMode(True)
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self.splitter.addWidget(self.facts)
        self.splitter.addWidget(self.tabs)
        self.splitter.setStretchFactor(0, 2)
        self.splitter.setStretchFactor(1, 3)
        self.splitter.setChildrenCollapsible(False)
        self._shown = QWidget()
        column = QVBoxLayout(self._shown)
        column.setContentsMargins(6, 6, 6, 6)
        column.addWidget(self.caption)
        column.addWidget(self.title)
        column.addLayout(hbox(self.pin, self.apply, 1))
        column.addWidget(self.splitter, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.empty)
        layout.addWidget(self._shown)
        self.setMinimumSize(360, 260)

    def shutdown(self) -> None:
        """Wait for what is being read."""
        self._again.stop()
        self._reader.shutdown()

    # --- what is selected --------------------------------------------------------------------------------------------

    @property
    def measurement(self) -> Measurement | None:
        """The selected measurement."""
        result = self._context.result
        if result.table is None or not 0 <= result.index < len(result.table):
            return None
        return result.table.measurement(result.index)

    @Slot(int)
    def _selected(self, _index: int) -> None:
        if self.isVisible():
            self.refresh()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        self._again.stop()
        super().hideEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The facts beside the rest where there is room, else above it."""
        super().resizeEvent(event)
        wide = self.width() >= (_WIDE if self.height() >= _SHORT else _WIDE_FOR_SHORT)
        self.splitter.setOrientation(Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical)
        self._show_facts()

    def refresh(self) -> None:
        """Show what is selected now."""
        measurement, plan = self.measurement, self._context.result.plan
        pins = self._context.result.pins
        nothing = measurement is None and not pins
        self.empty.setVisible(nothing)
        self._shown.setVisible(not nothing)
        self.pin.setChecked(self._context.result.index in pins)
        self._show_pins()
        if measurement is None or plan is None:
            self._again.stop()
            self.empty.setText(_NO_SESSION if self._context.result.table is None else _NOTHING_SELECTED)
            return
        self.title.setText(title_as_html(measurement, self._context.result.index))
        self.apply.show_for(measurement, plan)
        self._read_source(plan)
        self._show_facts()
        self._show_outcome(measurement)
        self._show_source()

    @Slot()
    def _pins_changed(self) -> None:
        """What was pinned last is what the user wants to see."""
        if len(self._context.result.pins) > 1:
            self.tabs.setCurrentIndex(_PINNED)
        if self.isVisible():
            self.refresh()

    def _show_pins(self) -> None:
        """The pinned ones are shown also where nothing is selected, and then alone."""
        pins, selected = self._context.result.pins, self.measurement is not None
        self.tabs.setTabVisible(_PINNED, bool(pins))
        self.tabs.setTabText(_PINNED, f"Pinned ({len(pins)})")
        self.pinned.refresh()
        self.facts.setVisible(selected)
        self.pin.setVisible(selected)
        alone = bool(pins) and not selected
        self.tabs.setTabVisible(_SOURCE, not alone)
        if alone:
            self.title.setText("Nothing is selected; the pinned configurations:")
            self.apply.hide()
            self.tabs.setCurrentIndex(_PINNED)
            self.tabs.setTabVisible(_POWER, False)
            self.tabs.setTabVisible(_MESSAGE, False)

    def _show_facts(self) -> None:
        measurement, plan = self.measurement, self._context.result.plan
        if measurement is None or plan is None:
            return
        columns = 2 if self.splitter.orientation() is Qt.Orientation.Vertical and self.width() >= _TWO_COLUMNS else 1
        program = self._kernel is not None and self._kernel.command is not None
        at = self.facts.verticalScrollBar().value()
        self.facts.setHtml(facts_as_html(measurement, plan, program=program, columns=columns))
        self.facts.verticalScrollBar().setValue(at)

    # --- the outcome -------------------------------------------------------------------------------------------------

    def _show_outcome(self, measurement: Measurement) -> None:
        """Its power where it works, else why it does not; and any message. The tab that the user chose stays
        as long as there is something on it."""
        good, has_message = measurement.state is State.OK, bool(measurement.message)
        chosen = self.tabs.currentIndex()
        stays = chosen == _MESSAGE and has_message and self.tabs.isTabVisible(_POWER)
        self.tabs.setTabVisible(_POWER, good)
        self.tabs.setTabVisible(_MESSAGE, has_message or not good)
        if chosen in (_POWER, _MESSAGE):
            self.tabs.setCurrentIndex(_POWER if good and not stays else _MESSAGE)
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
        self.empty.setStyleSheet(f"color: {theme.colours().muted};")
        if self.isVisible():
            self.refresh()
