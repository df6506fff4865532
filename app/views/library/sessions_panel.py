"""The stored sessions: found, named, resumed, opened to look at, exported, imported, deleted with undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QItemSelectionModel,
    QModelIndex,
    QObject,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QFocusEvent, QFont, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFormLayout,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QTableView,
    QWidget,
)

from ...base.formatting import counted
from ...engine.results.state import Progress, Purpose
from ...engine.session import events
from ...engine.session.check_history import KeptHistory
from ...engine.store.record import Label, SessionRecord
from ..shared.captions import measured_words
from ..shared.context import Context
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Panel
from ..shared.pasting import TextField
from ..shared.record_model import AnyIndex, RecordModel
from ..shared.tasks import TaskQueue
from ..shared.thumbnail import Thumbnail
from ..shared.turns import timer
from ..shared.widgets import (
    button,
    choose_folder,
    hbox,
    local_time,
    look_pressed,
    open_files,
    save_file,
    set_up_table,
    vbox,
)
from .file_rows import FileRow, Row, all_rows, delete, undelete
from .history_window import HistoryWindow

if TYPE_CHECKING:
    from ...engine.formats.table_columns import TableColumns
    from ...engine.store.database import Store

FAVOURITE, NAME, TAGS = 0, 1, 4


def _goal_words(record: SessionRecord) -> str:
    goal = record.objective.goal
    return f"{'maximise' if goal.maximise else 'minimise'} {goal.name}"


# title, a text as wide as most, what a cell says, what it is sorted by
_COLUMNS: tuple[tuple[str, str, Callable[[SessionRecord], str], Callable[[SessionRecord], Any]], ...] = (
    ("★", "★ ", lambda r: "★" if r.label.favourite else "☆", lambda r: not r.label.favourite),
    ("Session", "Session 100 · dedispersion", lambda r: f"Session {r.id} · {r.shown_name}", lambda r: r.id),
    ("State", "interrupted", lambda r: r.state.value, lambda r: r.state.value),
    (
        "Measured",
        "12345 of 12345 measured",
        lambda r: measured_words(r.evaluated, r.budget, r.timed),
        lambda r: r.evaluated,
    ),
    ("Tags", "tags, tags", lambda r: ", ".join(r.label.tags), lambda r: r.label.tags),
    ("Board", "NVIDIA A100-PCIE-40GB (recorded)", lambda r: r.board, lambda r: r.gpu),
    ("Strategy", "genetic algorithm", lambda r: r.strategy.replace("_", " "), lambda r: r.strategy),
    ("Objective", "maximise GFLOPS/W", _goal_words, _goal_words),
    ("Began", "2026-01-01 00:00", lambda r: local_time(r.created_s), lambda r: r.created_s),
)
WIDEST = tuple(text for _, text, _, _ in _COLUMNS)


def matches(record: Row, typed: str) -> bool:
    """Every typed word stands somewhere in the session's words."""
    if isinstance(record, FileRow):
        texts = [*record.cells, record.kept.path.name]
    else:
        texts = [*(text(record) for _, _, text, _ in _COLUMNS), record.title, record.label.notes]
        texts += record.origin.get("file", ""), "favourite" if record.label.favourite else ""
    words = " ".join(texts).casefold()
    return all(word in words for word in typed.casefold().split())


class SessionsModel(RecordModel):
    """The stored sessions as a table: searched, sorted, the running one kept up to date; newest first at the start."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__([title for title, _, _, _ in _COLUMNS], parent)
        self._all: tuple[Row, ...] = ()
        self._records: list[Row] = []
        self._typed = ""
        self._sorted: tuple[int, bool] | None = None  # column, descending

    @property
    def total(self) -> int:
        """How many sessions there are, whatever is searched for."""
        return len(self._all)

    def set_records(self, records: Sequence[Row]) -> None:
        """Show these sessions."""
        self._all = tuple(records)
        self._show()

    def search(self, typed: str) -> None:
        """Only those that match what is typed."""
        self._typed = typed
        self._show()

    def record(self, row: int) -> Row:
        """The session in a row."""
        return self._records[row]

    def row_of(self, session: int) -> int | None:
        """The row of a session; None if it is not shown."""
        return next((row for row, record in enumerate(self._records) if record.id == session), None)

    def show_progress(self, progress: Progress) -> None:
        """Where the running session stands."""
        row = self.row_of(progress.session)
        if row is not None and isinstance(record := self._records[row], SessionRecord):
            changed = replace(record, evaluated=progress.evaluated, timed=progress.timed, state=progress.state)
            self._records[row] = changed
            self._all = tuple(changed if record.id == changed.id else record for record in self._all)
            self._rows_changed(row, row)

    def _show(self) -> None:
        shown = [record for record in self._all if matches(record, self._typed)]
        if self._sorted is not None:
            column, descending = self._sorted
            key = _COLUMNS[column][3]
            shown.sort(key=lambda r: r.keys[column] if isinstance(r, FileRow) else key(r), reverse=descending)
        self._replace(shown)

    # --- Qt's side ----------------------------------------------------------------------------------------------------

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        record = self._records[index.row()]
        if isinstance(record, FileRow):
            return record.cells[index.column()] if role == Qt.ItemDataRole.DisplayRole else None
        if role == Qt.ItemDataRole.DisplayRole:
            return _COLUMNS[index.column()][2](record)
        if role == Qt.ItemDataRole.ToolTipRole:
            lines = (record.label.notes, record.reason, record.origin.get("file", ""))
            return plain_tip("\n".join(line for line in lines if line))
        if role == Qt.ItemDataRole.AccessibleTextRole and index.column() == FAVOURITE:
            return "favourite" if record.label.favourite else "no favourite"
        if role == Qt.ItemDataRole.FontRole and index.column() == NAME and record.label.favourite:
            bold = QFont()
            bold.setBold(True)
            return bold
        return None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._sorted = (column, order is Qt.SortOrder.DescendingOrder) if column >= 0 else None
        self._show()


_PADDING = 14
_SHARES = {NAME: 0.6, TAGS: 0.4}  # of the width that the columns leave: only these hold what users write


class SessionTable(QTableView):
    """The list of stored sessions: names and tags get its spare width; a column moved by hand keeps its own."""

    def __init__(self, model: SessionsModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setModel(model)
        set_up_table(self, "Stored sessions")
        measure = self.fontMetrics().horizontalAdvance
        self._least = [measure(text) + _PADDING for text in WIDEST]
        for column, width in enumerate(self._least):
            self.setColumnWidth(column, width)
        self._given = {column: self._least[column] for column in _SHARES}

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        others = sum(self.columnWidth(column) for column in range(len(self._least)) if column not in _SHARES)
        spare = max(0, self.viewport().width() - others - sum(self._least[column] for column in _SHARES))
        for column, share in _SHARES.items():
            if self.columnWidth(column) == self._given[column]:
                self._given[column] = self._least[column] + int(share * spare)
                self.setColumnWidth(column, self._given[column])


class LabelForm(QWidget):
    """The user's own name, tags and notes of a stored session.

    Emits `written(session, label)` when a field is left or Return is pressed, and something has changed.
    """

    written = Signal(int, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._record: SessionRecord | None = None
        self.name, self.tags, self.notes = QLineEdit(), QLineEdit(), _Notes()
        self.tags.setPlaceholderText("comma-separated")
        self.notes.setFixedHeight(3 * self.notes.fontMetrics().lineSpacing() + 12)
        form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(4)
        form.addRow("Na&me", self.name)
        form.addRow("Ta&gs", self.tags)
        form.addRow("Not&es", self.notes)
        for line in (self.name, self.tags):
            line.editingFinished.connect(self.write)
        self.notes.left.connect(self.write)
        self.show_record(None)

    def show_record(self, record: SessionRecord | None) -> None:
        """Another session; what was typed for the one before is written first."""
        same = record is not None and self._record is not None and record.id == self._record.id
        if same and self.is_typed_in():
            self._record = record  # only its progress changed: what is being typed stays
            return
        self.write()
        self._record = record
        self.setEnabled(record is not None)
        label = record.label if record is not None else Label()
        self.name.setText(label.name)
        self.name.setPlaceholderText(record.title if record is not None else "")
        self.tags.setText(", ".join(label.tags))
        self.notes.setPlainText(label.notes)

    def is_typed_in(self) -> bool:
        """One of the fields has the focus."""
        return any(field.hasFocus() for field in (self.name, self.tags, self.notes))

    @Slot()
    def write(self) -> None:
        """Emit what is typed, if it differs from what is stored."""
        if self._record is None:
            return
        tags = tuple(dict.fromkeys(tag.strip() for tag in self.tags.text().split(",") if tag.strip()))
        label = replace(
            self._record.label, name=self.name.text().strip(), tags=tags, notes=self.notes.toPlainText().strip()
        )
        if label != self._record.label:
            self._record = replace(self._record, label=label)
            self.written.emit(self._record.id, label)


class _Notes(TextField):
    left = Signal()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.left.emit()


_EMPTY = (
    "No session yet.\nStart one in Tune, or drop a file anywhere on this window: a specification (TOML, or T1, "
    "the field's format of tuning problems), a recording (a Kernel Tuner cache, T4 tuning results, a session as CSV) "
    "or any table of measurements."
)
_RECORDINGS = (
    "Recordings and tables: Kernel Tuner caches, T4 (tuning results), sessions as CSV, tables of other tools "
    "(*.json *.json.gz *.jsonl *.ndjson *.csv *.csv.gz *.tsv *.parquet);;All files (*)"
)
_ONE, _SOME, _SEVERAL = "Select one session", "Select a session", "Select two sessions or more, with Ctrl or Shift"
_IN_A_FILE = "This is no session: open it"
_BESIDE_PX = 1500  # from this width of the panel on, the details stand beside the list
_DETAILS_PX, _FRONT_PX, _ANY_PX = 340, 210, (1 << 24) - 1  # Qt's own bound
_REFRESH_MS = 300  # after an event of the engine: several may come at once


@dataclass(frozen=True, slots=True)
class _Met:
    """A file that is no recording: a specification, or a log of clocks."""

    path: Path
    log: bool = False


class SessionsPanel(Panel):
    """The list with its actions; every call to the store is made off Qt's thread."""

    open_asked = Signal(int)  # a session to look at
    resume_asked = Signal(int)
    roofline_resume_asked = Signal(int, str)  # and its precision: it is measured under Roofline
    compare_asked = Signal(object)  # the sessions, a tuple
    report_asked = Signal(object, object)  # of the first of these sessions, with the others beside it; into a Path
    specification_met = Signal(object)  # the Path of one among the files that were to be imported
    log_met = Signal(object)  # the Path of a table of clocks that was dropped
    said = Signal(str)  # something was done
    listed = Signal()  # the list was read again: sessions may be new, deleted or renamed

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._tasks = TaskQueue(self, context.bridge.report)
        self._deleted: tuple[Row, ...] = ()
        self._select_next: int | None = None  # to be selected once it is in the list
        self._chosen: set[int] = set()  # before other rows are shown
        self._opened = 0  # counts what was asked to be opened: of imports, only those asked for last are
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search names, tags, notes, boards …")
        self.search.setAccessibleName("Search the sessions")
        self.search.setClearButtonEnabled(True)
        tip = "Keep a Kernel Tuner cache, T4 (tuning results) or CSV as a session; or drop the file on the window"
        self.take_in = button("&Import …", tip, self.choose_imports)
        self.model = SessionsModel(self)
        self.table = SessionTable(self.model)
        self.empty = PlainLabel(_EMPTY, wrap=True, muted=True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.label = LabelForm()
        self.front = Thumbnail(context.fronts)
        on_one = self._with_chosen
        report = "One HTML file of the selected session; of several, of the topmost with the others beside it"
        files = "Its best configuration and all its measurements as files, into a folder"
        self.open = button("&Open", "Show its results in every panel; nothing is measured", on_one(self._open))
        self.resume = button("&Resume", "Continue it where it ended", on_one(self._resume))
        self.compare = button("&Compare", "Exactly the selected sessions, side by side under Compare", self._compare)
        self.report = button("Re&port …", report, self._choose_report)
        self.export = button("E&xport …", files, self._choose_folder)
        self.copy = button("D&uplicate", "A copy with all its measurements, to continue", on_one(self._duplicate))
        self.favourite = button("&Favourite", "Mark it with a star", on_one(self._toggle_favourite))
        self.delete = button("&Delete", "Remove it from the list; this can be undone", self.delete_chosen)
        self.favourite.setCheckable(True)
        look_pressed(self.favourite)
        self.message = PlainLabel(muted=True)
        self.undo = button("U&ndo", "Put back what was deleted", self.undo_delete)
        shown = (self.open, self.resume, self.compare, self.report, self.export, self.copy, self.favourite, self.delete)
        self._tips = {item: item.toolTip() for item in shown}  # while they can be pressed
        self.table.clicked.connect(self._cell_clicked)
        self.table.activated.connect(self._row_activated)
        self.table.selectionModel().selectionChanged.connect(self._selected)
        self._lay_out()
        self._soon = timer(self, self.refresh, _REFRESH_MS, once=True)
        self.search.textChanged.connect(self.model.search)
        self.label.written.connect(self._write_label)
        self.model.modelAboutToBeReset.connect(self._note_chosen)
        self.model.modelReset.connect(self._rows_changed)
        self.subscribe(events.SessionStarted | events.SessionChanged, self._session_news)
        self.subscribe(events.MeasurementsAdded, self._measurements_added)
        self.subscribe(events.SessionStarted | events.SessionChanged, self._session_news, roofline=True)
        self.subscribe(events.MeasurementsAdded, self._measurements_added, roofline=True)
        self._selected()
        self.refresh()
        self._do(lambda store: store.damage(), self._name_damage)

    @property
    def busy(self) -> bool:
        """A change or a fresh list is under way."""
        return self._tasks.busy or self._soon.isActive()

    def _lay_out(self) -> None:
        self.message.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        look = hbox(self.open, self.resume, spacing=4)
        tell = hbox(self.compare, self.report, self.export, spacing=4)
        manage = hbox(self.copy, self.favourite, self.delete, spacing=4)
        listed = QWidget()
        vbox(
            hbox((self.search, 1), self.take_in),
            (self.table, 1),
            (self.empty, 1),
            hbox(look, tell, manage, (self.message, 1), self.undo, spacing=18),
            of=listed,
            margins=0,
        )
        self._details = QWidget()
        self.front.setMaximumSize(_DETAILS_PX, _FRONT_PX)
        self._in_details = hbox((self.label, 1), (self.front, 1), of=self._details, margins=0)
        self._halves = vbox((listed, 1), self._details, of=self, margins=6)
        self._halves.setAlignment(self._details, Qt.AlignmentFlag.AlignTop)
        kept = self.undo.sizePolicy()
        kept.setRetainSizeWhenHidden(True)  # nothing below moves when it comes
        self.undo.setSizePolicy(kept)
        self.undo.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The details stand beside the list where that keeps all of its columns, else below it."""
        super().resizeEvent(event)
        beside = self.width() >= _BESIDE_PX
        across = QBoxLayout.Direction.LeftToRight
        self._halves.setDirection(across if beside else QBoxLayout.Direction.TopToBottom)
        self._in_details.setDirection(QBoxLayout.Direction.BottomToTop if beside else across)
        self.front.setMinimumHeight(_FRONT_PX if beside else 0)
        self._details.setMinimumWidth(_DETAILS_PX if beside else 0)
        self._details.setMaximumWidth(_DETAILS_PX if beside else _ANY_PX)

    def shutdown(self) -> None:
        """Write what is typed, and wait for what is under way."""
        self.label.write()
        super().shutdown()
        self._context.fronts.shutdown()

    # --- the list -----------------------------------------------------------------------------------------------------

    @Slot()
    def refresh(self) -> None:
        """Read the list again."""
        self._do(all_rows, self._show)

    def _name_damage(self, lines: Sequence[str]) -> None:
        for line in lines[:1]:
            self._context.bridge.report(line)

    def _show(self, records: Sequence[Row]) -> None:
        first = not self.model.total
        self.model.set_records(records)
        if first and records and not self.chosen():
            self.choose({max(record.id for record in records)})
        self.listed.emit()

    def chosen(self) -> list[Row]:
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
    def _note_chosen(self) -> None:
        self._chosen = {record.id for record in self.chosen()}

    @Slot()
    def _rows_changed(self) -> None:
        """The same are selected as before: without one, the field that is typed in would lose the focus."""
        self.empty.setVisible(not self.model.total)
        self.table.setVisible(bool(self.model.total))
        if self._select_next is not None and self.model.row_of(self._select_next) is not None:
            self._chosen, self._select_next = {self._select_next}, None
        self.choose(self._chosen)
        self._selected()

    @Slot()
    def _selected(self, *_: object) -> None:
        chosen = self.chosen()
        one = chosen[0] if len(chosen) == 1 else None
        other = _IN_A_FILE if any(isinstance(record, FileRow) for record in chosen) else ""
        alive = any(record.state.alive for record in chosen)
        runs = "It is running: stop it first" if alive else ""
        empty = "" if all(record.evaluated for record in chosen) else "Without a measurement there is nothing to show"
        self._allow(self.open, "" if one is not None else _ONE)
        for widget in (self.copy, self.export, self.favourite):
            self._allow(widget, other if one is not None else _ONE)
        self._allow(self.resume, other or runs if one is not None else _ONE)
        self._allow(self.delete, runs if chosen else _SOME)
        self._allow(self.compare, other or empty if len(chosen) >= 2 else _SEVERAL)
        self._allow(self.report, other or empty if chosen else _SOME)
        session = one if isinstance(one, SessionRecord) else None
        self.favourite.setChecked(session is not None and session.label.favourite)
        self.label.show_record(session)
        self.front.show_record(session)

    def _allow(self, button: QPushButton, why_not: str) -> None:
        """Enabled, or its tip says why not."""
        button.setEnabled(not why_not)
        button.setToolTip(plain_tip(why_not or self._tips[button]))

    # --- what is done with them ---------------------------------------------------------------------------------------

    def _with_chosen(self, do: Callable[[SessionRecord], object]) -> Callable[[], None]:
        """What a button does to the first selected session; what lies in a file is opened."""

        def act() -> None:
            for record in self.chosen()[:1]:
                self._open_any(record) if isinstance(record, FileRow) else do(record)

        return act

    @Slot(QModelIndex)
    def _cell_clicked(self, index: QModelIndex) -> None:
        record = self.model.record(index.row())
        if index.column() == FAVOURITE and isinstance(record, SessionRecord):
            self._toggle_favourite(record)

    @Slot(QModelIndex)
    def _row_activated(self, index: QModelIndex) -> None:
        if index.column() != FAVOURITE:
            self._open_any(self.model.record(index.row()))

    @cached_property
    def history(self) -> HistoryWindow:
        """Of energy tests; made when it is opened first."""
        return HistoryWindow(self)

    def _open_any(self, record: Row) -> None:
        if isinstance(record, FileRow) and isinstance(record.kept, KeptHistory):
            self.history.show_history(record.kept.benchmark)
        elif isinstance(record, FileRow):
            self.log_met.emit(record.kept.path)
        else:
            self._open(record)

    def _open(self, record: SessionRecord) -> None:
        self.keep_only()
        self.open_asked.emit(record.id)

    def _resume(self, record: SessionRecord) -> None:
        if record.purpose is Purpose.ROOFLINE:
            self.roofline_resume_asked.emit(record.id, record.origin.get("precision", ""))
        else:
            self.resume_asked.emit(record.id)

    @Slot()
    def _compare(self) -> None:
        self.compare_asked.emit(tuple(record.id for record in self.chosen()))

    def _duplicate(self, record: SessionRecord) -> None:
        self._do(lambda store: store.duplicate(record.id), self._duplicated)

    def _duplicated(self, session: int) -> None:
        self._show_new(session, f"Duplicated as session {session}")

    def _toggle_favourite(self, record: SessionRecord) -> None:
        self._write_label(record.id, replace(record.label, favourite=not record.label.favourite))

    @Slot(int, object)
    def _write_label(self, session: int, label: Label) -> None:
        self._do(lambda store: store.label(session, label), lambda _: self.refresh())

    @Slot()
    def delete_chosen(self) -> None:
        """Remove the selected sessions from the list."""
        rows = tuple(self.chosen())
        if rows:
            self._do(lambda store: _each(delete, store, rows), lambda _: self._show_deleted(rows))

    def _show_deleted(self, rows: tuple[Row, ...]) -> None:
        self._deleted = rows
        self._say(f"Deleted: {_count(rows)}", undo=True)
        self.refresh()

    @Slot()
    def undo_delete(self) -> None:
        """Put back what was deleted last."""
        rows, self._deleted = self._deleted, ()
        if rows:
            words = f"Put back: {_count(rows)}"
            self._do(lambda store: _each(undelete, store, rows), lambda _: self._show_new(rows[0].id, words))

    def _show_new(self, session: int, words: str) -> None:
        """Select a session that is in the list from now on."""
        self._select_next = session
        self._say(words)
        self.refresh()

    # --- files --------------------------------------------------------------------------------------------------------

    @Slot()
    def choose_imports(self) -> None:
        """Let the user choose recordings to keep as sessions."""
        open_files(self, "Keep recordings and tables as sessions", _RECORDINGS, self._chosen_by_hand)

    def _chosen_by_hand(self, paths: Sequence[Path]) -> None:
        self.import_files(paths, by_hand=True)

    def import_files(
        self, paths: Sequence[Path], *, by_hand: bool = False, columns: TableColumns | None = None, asked: int = 0
    ) -> None:
        """Keep recordings as sessions that are done, and open the last one; of specifications `specification_met`.

        Nothing is opened where something else was opened meanwhile. What is given alone, `by_hand`, may be a log or a
        table whose columns are to be chosen: `log_met`. `columns` are those of a table for which they were.
        `asked` is what `keep_only` gave when they were dropped.
        """
        asked, may_be_log = asked or self.keep_only(), by_hand and len(paths) == 1
        for path in paths:
            self._say(f"Reading {path.name} …")
            self._do(
                lambda store, path=path: _import(store, path, may_be_log, columns),  # type: ignore[misc]
                lambda made: self._imported(made, opens=asked == self._opened),
            )

    @Slot()
    def keep_only(self) -> int:
        """Something else is opened: what is still being imported is kept, and not opened. How often that was."""
        self._opened += 1
        return self._opened

    def _imported(self, made: int | _Met, *, opens: bool) -> None:
        if isinstance(made, int):
            self._show_new(made, f"Imported as session {made}")
            if opens:
                self.open_asked.emit(made)
        elif made.log:
            self.log_met.emit(made.path)
        elif opens:
            self._say(f"{made.path.name} is a specification: it is in Tune")
            self.specification_met.emit(made.path)
        else:
            self._say(f"{made.path.name} is a specification, and was not opened: another one was meanwhile")

    @Slot()
    def _choose_report(self) -> None:
        chosen = [record for record in self.chosen() if isinstance(record, SessionRecord)]
        if chosen:
            sessions = tuple(record.id for record in chosen)
            save_file(
                self,
                "Report",
                f"{chosen[0].title}-report.html",
                "HTML (*.html)",
                lambda path: self.report_asked.emit(sessions, path),
                suffix="html",
            )

    @Slot()
    def _choose_folder(self) -> None:
        choose_folder(self, "Export into a folder", self.export_chosen)

    def export_chosen(self, folder: Path) -> None:
        """Write the selected session and its best configuration into a folder."""
        for record in self.chosen()[:1]:
            self._say(f"Writing session {record.id} …")
            self._do(lambda store, session=record.id: _export(store, session, folder), self._exported)  # type: ignore[misc]

    def _exported(self, files: list[Path]) -> None:
        self._say(f"Written: {counted(len(files), 'file')} in {files[0].parent}" if files else "Nothing to write")

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

    def _say(self, words: str, *, undo: bool = False) -> None:
        self.message.setText(words)
        self.undo.setVisible(undo)
        self.said.emit(words)


def _count(rows: Sequence[Row]) -> str:
    if len(rows) > 1:
        return counted(len(rows), "session")
    return f"the {rows[0].kind} {rows[0].title}" if isinstance(rows[0], FileRow) else f"session {rows[0].id}"


def _each(do: Callable[[Store, Row], None], store: Store, rows: Sequence[Row]) -> None:
    for row in rows:
        do(store, row)


def _import(store: Store, path: Path, may_be_log: bool, columns: TableColumns | None) -> int | _Met:
    """The session made of a recording, or what the file is instead."""
    from ...engine.formats.read import FileKind, kind_of_file, read_recording  # imported late: few sessions need it
    from ...engine.session.stored import import_recording

    kind = kind_of_file(path) if columns is None else FileKind.TABLE
    if kind is FileKind.SPECIFICATION:
        return _Met(path)
    if kind is FileKind.PROGRAM or (may_be_log and kind is not FileKind.RECORDING):
        return _Met(path, log=True)
    return import_recording(store, read_recording(path, columns))


def _export(store: Store, session: int, folder: Path) -> list[Path]:
    from ...engine.report.export import export_session
    from ...engine.session.planning import plan_of

    loaded = store.load(session)
    return export_session(
        plan_of(loaded), loaded.table, session, None, folder, existing="new", state=loaded.record.state
    )
