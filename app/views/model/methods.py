"""The ways to tune for energy side by side: bars, and beneath them what each chose and what it took."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QSplitter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from ...engine.strategies.methods import Methods
from ...engine.tuning_methods.description import describe_methods
from ...engine.tuning_methods.tables import methods_of_recording, methods_of_store, methods_of_table
from ..context import Context
from ..file_dialogs import open_file
from ..past_sessions import PAST_SHOWN, PastSession, PastSessions
from ..plots import theme
from ..plots.descriptions import ListingTable
from ..plots.label import PlainLabel
from ..threads.tasks import LatestTask
from .method_bars import MethodBars

_FILES = "Recordings (*.json *.json.gz *.csv);;All files (*)"
_EMPTY = (
    "Measure a whole space of parameters and graphics clocks (strategy brute_force, no budget), or open a recording of "
    "one: each way to tune for energy is then followed through those measurements, and counted as if it were alone."
)


class MethodsView(QWidget):
    """Race to idle and the other five. Usable without a window: `MethodsView(context)`."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._methods: Methods | None = None
        self._failed = False
        self._background = LatestTask(self)
        self.compare = QToolButton()
        self.compare.setText("&Compare methods")
        self.compare.setToolTip("From which measurements")
        self.compare.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.compare.setMenu(QMenu(self.compare))
        self.past = PastSessions(self.compare.menu(), self._past)
        self.title, self.message = PlainLabel(), PlainLabel(_EMPTY)
        self.bars, self.table = MethodBars(), ListingTable("The methods' figures")
        self._lay_out()
        self.compare.menu().aboutToShow.connect(self._fill_sources)
        self.past.failed.connect(self._complain)
        self.compare.menu().triggered.connect(self._source_chosen)
        self._background.done.connect(self.show_methods)
        self._background.failed.connect(self._complain)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self.compare)
        head.addWidget(self.title, 1)
        for label in (self.title, self.message):
            label.setWordWrap(True)
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.addWidget(self.bars)
        self.splitter.addWidget(self.table)
        self.splitter.setStretchFactor(0, 3)
        self.splitter.setStretchFactor(1, 2)
        self.splitter.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addLayout(head)
        layout.addWidget(self.message)
        layout.addWidget(self.splitter, 1)
        layout.addStretch()

    @property
    def methods(self) -> Methods | None:
        """What is shown."""
        return self._methods

    def shutdown(self) -> None:
        """End what runs in the background."""
        self._background.shutdown()
        self.past.shutdown()

    # --- sources -----------------------------------------------------------------------------------------------------

    @Slot()
    def _fill_sources(self) -> None:
        menu, table = self.compare.menu(), self._context.result.table
        menu.clear()
        menu.addAction("From the &session shown", self.compare_session).setEnabled(table is not None and len(table) > 0)
        menu.addAction("From a &file …", self.choose_file)
        menu.addSection("Past sessions")
        self.past.add()

    def _past(self) -> list[PastSession]:
        said = "Session {0.id} · {0.shown_name} · {0.gpu} · {0.evaluated} measured"
        return [PastSession(record.id, said.format(record)) for record in self._context.store.sessions(PAST_SHOWN)]

    @Slot(QAction)
    def _source_chosen(self, action: QAction) -> None:
        if action.data() is not None:
            store, session = self._context.store, int(action.data())
            self._background.run(lambda _stop: methods_of_store(store, session))

    @Slot()
    def compare_session(self) -> None:
        """From what the running or last session measured."""
        result = self._context.result
        table, plan = result.table, result.plan
        if table is not None and plan is not None:
            self._background.run(
                lambda _stop: methods_of_table(table, gpu=plan.gpu, title=plan.title, source=plan.source)
            )

    @Slot()
    def choose_file(self) -> None:
        """Let the user choose a recording."""
        open_file(self, "Compare the methods on a recording", _FILES, self.open)

    def open(self, path: Path) -> None:
        """From a recording."""
        self._background.run(lambda _stop: methods_of_recording(path))

    # --- what is shown -----------------------------------------------------------------------------------------------

    @Slot(object)
    def show_methods(self, methods: Methods) -> None:
        """Draw them and write them out."""
        self._methods, self._failed = methods, False
        self._recolour()
        described = describe_methods(methods)
        self.title.setText(f"{described.title}: {described.origin}")
        self.message.setText("; ".join(described.remarks))
        self.splitter.show()
        self.bars.show_methods(methods)
        self.table.show_listing(described.listings[0], tips=[chosen.text for chosen in described.figures])

    @Slot(str, str)
    def _complain(self, what: str, remedy: str) -> None:
        self._failed = True
        self.message.setText(f"{what}: {remedy}" if remedy else what)
        self._recolour()

    @Slot()
    def _recolour(self) -> None:
        colours = theme.colours()
        self.message.setStyleSheet(f"color: {colours.vermillion if self._failed else colours.muted};")
