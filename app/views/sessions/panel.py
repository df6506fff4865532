"""The stored sessions: found again, named, gone on with, opened to look at, exported, imported, deleted with undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QItemSelectionModel, QModelIndex, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from ...engine.session import events
from ...engine.session_state import SessionState
from ...engine.store.record import Label, SessionRecord
from ..context import Context
from ..file_dialogs import choose_folder, open_files
from ..plots import theme
from ..plots.label import PlainLabel
from ..threads.tasks import TaskQueue
from .session_label import LabelForm
from .session_list import FAVOURITE, NAME, SessionsModel

if TYPE_CHECKING:
    from ...engine.store.database import Store

_ALIVE = (SessionState.RUNNING, SessionState.PAUSED)
_EMPTY = (
    "No session yet.\nStart one under Tune, or drop a Kernel Tuner cache, T4 results, a session as CSV\n"
    "or a specification anywhere on this window."
)
_RECORDINGS = "Recordings (*.json *.json.gz *.csv *.csv.gz);;All files (*)"
_REFRESH_MS = 300  # after the engine has told something: several things may come at once


class SessionsPanel(QWidget):
    """Every call to the store is made off Qt's thread."""

    open_asked = Signal(int)  # a session to look at
    resume_asked = Signal(int)
    specification_met = Signal(object)  # the Path of one among the files that were to be taken in
    said = Signal(str)  # something was done

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._tasks = TaskQueue(self)
        self._tasks.failed.connect(context.bridge.report)
        self._deleted: tuple[int, ...] = ()
        self._chosen_first: int | None = None  # to be selected once it is in the list
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search names, tags, notes, boards …")
        self.search.setAccessibleName("Search the sessions")
        self.search.setClearButtonEnabled(True)
        self.take_in = QPushButton("&Import …")
        self.take_in.setToolTip("Keep a cache, T4 results or CSV as a session; or drop the file on the window")
        self.model = SessionsModel(self)
        self.table = QTableView()
        self.empty = PlainLabel(_EMPTY)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self.label = LabelForm()
        self.open, self.resume, self.copy, self.favourite, self.export, self.delete = (
            _button("&Open", "Show its results under Tune, Front and the others; nothing is measured"),
            _button("&Resume", "Go on with it where it ended"),
            _button("D&uplicate", "A copy with all its measurements, to go on with in another way"),
            _button("&Favourite", "Mark it with a star"),
            _button("E&xport …", "Its best configuration and all its measurements as files, into a folder"),
            _button("&Delete", "Take it out of the list; this can be undone"),
        )
        self.favourite.setCheckable(True)
        self.told = PlainLabel()
        self.undo = QPushButton("U&ndo")
        self.undo.setToolTip("Put back what was deleted")
        self._set_up_table()
        self._lay_out()
        self._soon = QTimer(self, interval=_REFRESH_MS, singleShot=True)
        self._soon.timeout.connect(self.refresh)
        self.search.textChanged.connect(self.model.search)
        self.take_in.clicked.connect(self.choose_imports)
        self.open.clicked.connect(self._open_chosen)
        self.resume.clicked.connect(self._resume_chosen)
        self.copy.clicked.connect(self._copy_chosen)
        self.favourite.clicked.connect(self._favour_chosen)
        self.export.clicked.connect(self._choose_folder)
        self.delete.clicked.connect(self.delete_chosen)
        self.undo.clicked.connect(self.undo_delete)
        self.label.written.connect(self._label_written)
        self.model.modelReset.connect(self._rows_changed)
        bridge = context.bridge
        bridge.session_started.connect(self._session_news)
        bridge.session_changed.connect(self._session_news)
        bridge.measurements_added.connect(self._measurements_added)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()
        self._selected()
        self.refresh()

    def _set_up_table(self) -> None:
        self.table.setModel(self.model)
        self.table.setAccessibleName("Stored sessions")
        self.table.setSortingEnabled(True)
        self.table.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.table.horizontalHeader().setSortIndicatorClearable(True)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.table.setAlternatingRowColors(True)
        self.table.setTabKeyNavigation(False)
        self.table.setWordWrap(False)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.table.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 6)
        measure = self.fontMetrics().horizontalAdvance
        widest = (
            "★ ",
            "100  dedispersion_milo",
            "interrupted",
            "12345 of 12345",
            "tags, tags",
            "NVIDIA A100-PCIE-40GB (recorded)",
        )
        for column, text in enumerate((*widest, "genetic algorithm", "maximise GFLOPS/W", "2026-01-01 00:00")):
            self.table.setColumnWidth(column, measure(text) + 14)
        self.table.clicked.connect(self._cell_clicked)
        self.table.activated.connect(self._row_activated)
        self.table.selectionModel().selectionChanged.connect(self._selected)

    def _lay_out(self) -> None:
        top, undo = QHBoxLayout(), QHBoxLayout()
        top.addWidget(self.search, 1)
        top.addWidget(self.take_in)
        self.told.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        undo.addWidget(self.told, 1)
        undo.addWidget(self.undo)
        buttons = QGridLayout()
        for place, button in enumerate((self.open, self.resume, self.export, self.copy, self.favourite, self.delete)):
            buttons.addWidget(button, place // 3, place % 3)
        column = QVBoxLayout(self)
        column.setContentsMargins(6, 6, 6, 6)
        column.addLayout(top)
        column.addWidget(self.table, 1)
        column.addWidget(self.empty, 1)
        column.addLayout(undo)
        column.addLayout(buttons)
        column.addWidget(self.label)
        self.undo.hide()

    def shutdown(self) -> None:
        """Write what is typed, and wait for what is under way."""
        self._soon.stop()
        self.label.write()
        self._tasks.shutdown()

    # --- the list -----------------------------------------------------------------------------------------------------

    @Slot()
    def refresh(self) -> None:
        """Read the list anew."""
        self._do(lambda store: store.sessions(), self._show)

    def _show(self, records: Sequence[SessionRecord]) -> None:
        chosen = {record.id for record in self.chosen()}
        if self._chosen_first is not None:
            chosen, self._chosen_first = {self._chosen_first}, None
        self.model.set_records(records)
        self.choose(chosen)

    def chosen(self) -> list[SessionRecord]:
        """The selected sessions, in the list's order."""
        rows = sorted(index.row() for index in self.table.selectionModel().selectedRows())
        return [self.model.record(row) for row in rows]

    def choose(self, sessions: set[int]) -> None:
        """Select these, where they are shown."""
        flags = QItemSelectionModel.SelectionFlag
        for session in sessions:
            row = self.model.row_of(session)
            if row is not None:
                index = self.model.index(row, NAME)
                self.table.selectionModel().setCurrentIndex(index, flags.Select | flags.Rows)

    @Slot()
    def _rows_changed(self) -> None:
        self.empty.setVisible(not self.model.total)
        self.table.setVisible(bool(self.model.total))
        self._selected()

    @Slot()
    def _selected(self, *_: object) -> None:
        chosen = self.chosen()
        one = chosen[0] if len(chosen) == 1 else None
        alive = any(record.state in _ALIVE for record in chosen)
        for button in (self.open, self.copy, self.export, self.favourite):
            button.setEnabled(one is not None)
        self.resume.setEnabled(one is not None and not alive)
        self.delete.setEnabled(bool(chosen) and not alive)
        self.favourite.setChecked(one is not None and one.label.favourite)
        self.label.show_record(one)

    # --- what is done with them ---------------------------------------------------------------------------------------

    @Slot(QModelIndex)
    def _cell_clicked(self, index: QModelIndex) -> None:
        if index.column() == FAVOURITE:
            record = self.model.record(index.row())
            self._label_written(record.id, replace(record.label, favourite=not record.label.favourite))

    @Slot(QModelIndex)
    def _row_activated(self, index: QModelIndex) -> None:
        if index.column() != FAVOURITE:
            self.open_asked.emit(self.model.record(index.row()).id)

    @Slot()
    def _open_chosen(self) -> None:
        for record in self.chosen()[:1]:
            self.open_asked.emit(record.id)

    @Slot()
    def _resume_chosen(self) -> None:
        for record in self.chosen()[:1]:
            self.resume_asked.emit(record.id)

    @Slot()
    def _copy_chosen(self) -> None:
        for record in self.chosen()[:1]:
            self._do(lambda store, session=record.id: store.duplicate(session), self._copied)  # type: ignore[misc]

    def _copied(self, session: int) -> None:
        self._chosen_first = session
        self._tell(f"Duplicated as session {session}")
        self.refresh()

    @Slot()
    def _favour_chosen(self) -> None:
        for record in self.chosen()[:1]:
            self._label_written(record.id, replace(record.label, favourite=self.favourite.isChecked()))

    @Slot(int, object)
    def _label_written(self, session: int, label: Label) -> None:
        self._do(lambda store: store.label(session, label), lambda _: self.refresh())

    @Slot()
    def delete_chosen(self) -> None:
        """Take the selected sessions out of the list."""
        named = tuple(record.id for record in self.chosen())
        if named:
            self._do(lambda store: _each(store.delete, named), lambda _: self._gone(named))

    def _gone(self, sessions: tuple[int, ...]) -> None:
        self._deleted = sessions
        self._tell(f"Deleted: {_count(sessions)}", undo=True)
        self.refresh()

    @Slot()
    def undo_delete(self) -> None:
        """Put back what was deleted last."""
        named, self._deleted = self._deleted, ()
        if named:
            self._chosen_first = named[0]
            self._do(lambda store: _each(store.undelete, named), lambda _: self._back(named))

    def _back(self, sessions: tuple[int, ...]) -> None:
        self._tell(f"Put back: {_count(sessions)}")
        self.refresh()

    # --- files --------------------------------------------------------------------------------------------------------

    @Slot()
    def choose_imports(self) -> None:
        """Let the person choose recordings to keep as sessions."""
        open_files(self, "Keep recordings as sessions", _RECORDINGS, self.take_in_files)

    def take_in_files(self, paths: Sequence[Path]) -> None:
        """Keep recordings as sessions that are done, and open the last one; specifications are told."""
        for path in paths:
            self._tell(f"Reading {path.name} …")
            self._do(lambda store, path=path: _take_in(store, path), self._taken_in)  # type: ignore[misc]

    def _taken_in(self, made: int | Path) -> None:
        if isinstance(made, Path):
            self._tell(f"{made.name} is a specification: it is under Tune")
            self.specification_met.emit(made)
            return
        self._chosen_first = made
        self._tell(f"Imported as session {made}")
        self.refresh()
        self.open_asked.emit(made)

    @Slot()
    def _choose_folder(self) -> None:
        choose_folder(self, "Export into a folder", self.export_chosen)

    def export_chosen(self, folder: Path) -> None:
        """Write the selected session and its best configuration into a folder."""
        for record in self.chosen()[:1]:
            self._tell(f"Writing session {record.id} …")
            self._do(lambda store, session=record.id: _export(store, session, folder), self._exported)  # type: ignore[misc]

    def _exported(self, files: list[Path]) -> None:
        self._tell(f"Written: {len(files)} files in {files[0].parent}" if files else "Nothing to write")

    # --- the engine ---------------------------------------------------------------------------------------------------

    @Slot(object)
    def _session_news(self, _event: object) -> None:
        self._soon.start()

    @Slot(object)
    def _measurements_added(self, event: events.MeasurementsAdded) -> None:
        if self.isVisible():
            self.model.show_progress(event.progress)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._soon.start()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _do(self, job: Callable[[Store], Any], then: Callable[[Any], None]) -> None:
        store = self._context.store
        self._tasks.run(lambda: job(store), then)

    def _tell(self, words: str, *, undo: bool = False) -> None:
        self.told.setText(words)
        self.undo.setVisible(undo)
        self.said.emit(words)

    @Slot()
    def _recolour(self) -> None:
        for words in (self.empty, self.told):
            words.setStyleSheet(f"color: {theme.colours().muted};")


def _button(text: str, tip: str) -> QPushButton:
    button = QPushButton(text)
    button.setToolTip(tip)
    return button


def _count(sessions: Sequence[int]) -> str:
    return f"session {sessions[0]}" if len(sessions) == 1 else f"{len(sessions)} sessions"


def _each(do: Callable[[int], None], sessions: Sequence[int]) -> None:
    for session in sessions:
        do(session)


def _take_in(store: Store, path: Path) -> int | Path:
    """The session made of a recording; the path itself where it is a specification."""
    from ...engine.formats.read import read_recording  # imported late, as below: few sessions need it
    from ...engine.formats.t1 import is_specification
    from ...engine.session.opening import import_recording

    return path if is_specification(path) else import_recording(store, read_recording(path))


def _export(store: Store, session: int, folder: Path) -> list[Path]:
    from ...engine.report.export import export_session
    from ...engine.session.planning import plan_of

    loaded = store.load(session)
    return export_session(plan_of(loaded), loaded.table, session, None, folder)
