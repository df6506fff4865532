"""Sessions and boards side by side: their fronts overlaid, what tuning for energy gains on each, what carries over."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QTabWidget, QWidget

from ...base.files import title_of
from ...base.formatting import MINUS, count_text
from ...engine.analysis.compare import Compared, Comparison, compare_sessions
from ...engine.analysis.describe_analysis import describe_comparison
from ...engine.analysis.quantities import Quantity, quantity
from ...engine.results.chart import Chart, Series
from ...engine.session import events
from ...engine.store.record import SessionRecord
from ..plots.chart_plot import ChartPlot
from ..plots.descriptions import ListingTable
from ..shared.context import Context
from ..shared.label import PlainLabel, plain_tip
from ..shared.needs import Needs
from ..shared.panel import Panel
from ..shared.tasks import LatestTask, TaskQueue
from ..shared.widgets import button, hbox, local_time, open_files, vbox

if TYPE_CHECKING:
    from ...engine.store.database import Store

_EMPTY = "To compare, two sessions or recordings are needed: start one in Tune, or add a file."
_TICK_TWO = "Tick two or more sessions to see their fronts over one another."
_ADD, _NEWEST = "&Add a file …", "Compare the &newest two"
_RECORDINGS = "Recordings (*.json *.json.gz *.csv *.csv.gz);;All files (*)"
_COLOURS = ("blue", "orange", "green", "purple", "vermillion", "sky", "grey")
_SYMBOLS = ("o", "s", "t1", "d", "t")
_MOST = 8  # sessions that can be distinguished in one plot
_ROWS = (2, 5)  # of the list that are visible, at least and at most


@dataclass(frozen=True, slots=True)
class Result:
    """A comparison with the units of its figures."""

    found: Comparison
    units: dict[str, str]

    def described(self, name: str) -> Quantity:
        return quantity(name, units=self.units)


class ComparePanel(Panel):
    """Reads and compares off Qt's thread. Usable without a window: `ComparePanel(context)`."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._loaded: dict[int | Path, tuple[Compared, dict[str, str]]] = {}
        self._records: tuple[SessionRecord, ...] | None = None
        self._files: list[Path] = []
        self._asked: set[int] | None = None  # to be ticked, and nothing else, once the list is fresh
        self.result: Result | None = None
        self.figure = ChartPlot()
        self.list = QListWidget()
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # long names end in an ellipsis
        self.list.setAccessibleName("Sessions to compare: Space ticks one")
        tip = "A Kernel Tuner cache, T4 (tuning results) or a session as CSV, without keeping it as a session"
        self.add, self.none = button("Add a &file …", tip, self.choose_file), button("&Untick all", "", self._untick)
        self.gains, self.fronts = ListingTable("What tuning for energy gains"), ListingTable("Fronts side by side")
        self.carried = ListingTable("Configurations carried over")
        self.means, self.fronts_title = PlainLabel(wrap=True, selectable=True), PlainLabel()
        gains = QWidget()
        vbox(self.means, self.gains, self.fronts_title, self.fronts, of=gains).setContentsMargins(0, 6, 0, 0)
        self.tabs = QTabWidget()
        self.tabs.setAccessibleName("Pages of the comparison")
        self.tabs.setDocumentMode(True)
        for widget, title in (
            (self.figure, "Fronts"),
            (gains, "Gains"),
            (self.carried, "Same configuration elsewhere"),
        ):
            self.tabs.addTab(widget, title)
        self.needs = Needs(_EMPTY, _ADD, self._fill_need)
        self._lay_out()
        self._tasks = TaskQueue(self, context.bridge.report)  # lists sessions
        self._background = LatestTask(self, self._compared, self._not_compared)  # compares
        self.list.itemChanged.connect(self._ticked)
        self.subscribe(events.SessionChanged, self._session_changed)
        self._show_tables(False)
        self._show_need()

    def _lay_out(self) -> None:
        label = PlainLabel("&Sessions")
        label.setBuddy(self.list)
        row = hbox(label, 1, self.add, self.none)
        vbox(row, self.list, (self.tabs, 1), (self.needs, 1), of=self, margins=6)
        self._fit_list()
        self.setMinimumSize(360, 260)

    # --- what can be compared ----------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.look_again()

    @Slot(object)
    def _session_changed(self, _event: events.SessionChanged) -> None:
        if self.isVisible():
            self.look_again()

    def provenance(self) -> str:
        """What the plots are of: the sessions that are compared, whatever result is shown."""
        sides = self.result.found.sides if self.result is not None else ()
        return ", ".join(f"{side.name}, {side.label}" for side in sides)

    def look_again(self) -> None:
        """List what the store holds now."""
        store = self._context.store
        if store is not None:
            self._tasks.run(store.sessions, self._listed)

    def compare(self, sessions: Sequence[int]) -> None:
        """Tick exactly these stored sessions."""
        self._asked = set(sessions)
        self.look_again()

    def _listed(self, records: list[SessionRecord]) -> None:
        with_values = tuple(record for record in records if record.evaluated)
        if with_values != self._records or self._asked is not None:
            for record in self._records or ():
                self._loaded.pop(record.id, None)  # it may have grown
            self._records = with_values
            self._fill()

    def _fill(self) -> None:
        ticked: Collection[int | Path] = self.ticked() if self._asked is None else self._asked
        self._asked = None
        with QSignalBlocker(self.list):
            self.list.clear()
            for record in self._records or ():
                when = local_time(record.created_s)
                measured = f"{count_text(record.evaluated)} measured"
                text = f"Session {record.id} · {record.shown_name} · {record.gpu} · {measured} · {when}"
                self._add_item(record.id, text, record.id in ticked)
            for path in self._files:
                self._add_item(path, f"{path.name} · file", path in ticked)
        self._compare()

    def _add_item(self, source: int | Path, text: str, ticked: bool) -> None:
        item = QListWidgetItem(text)
        item.setData(Qt.ItemDataRole.UserRole, source)
        item.setToolTip(plain_tip(text))
        item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
        item.setCheckState(Qt.CheckState.Checked if ticked else Qt.CheckState.Unchecked)
        self.list.addItem(item)
        self._fit_list()

    def ticked(self) -> list[int | Path]:
        """Sessions by their number, files by their path, in the list's order."""
        items = (self.list.item(place) for place in range(self.list.count()))
        return [i.data(Qt.ItemDataRole.UserRole) for i in items if i.checkState() is Qt.CheckState.Checked]

    @Slot()
    def choose_file(self) -> None:
        """Open a dialog for recordings to compare."""
        open_files(self, "Compare recordings", _RECORDINGS, self.add_files)

    def add_files(self, paths: list[Path]) -> None:
        """Offer recordings, ticked."""
        for path in paths:
            if path not in self._files:
                self._files.append(path)
                with QSignalBlocker(self.list):
                    self._add_item(path, f"{path.name} · file", ticked=True)
        self._compare()

    @Slot()
    def _untick(self) -> None:
        with QSignalBlocker(self.list):
            for place in range(self.list.count()):
                self.list.item(place).setCheckState(Qt.CheckState.Unchecked)
        self._compare()

    @Slot(QListWidgetItem)
    def _ticked(self, _item: QListWidgetItem) -> None:
        self._compare()

    # --- comparing ---------------------------------------------------------------------------------------------------

    def _compare(self) -> None:
        sources = self.ticked()
        self.none.setEnabled(bool(sources))
        if len(sources) < 2 or len(sources) > _MOST:
            self._background.run(lambda _: None)  # replaces a comparison under way
            self.result = None
            self._show_tables(False)
            self.figure.say(f"Up to {_MOST} sessions can be distinguished in one plot: untick some.")
            self._show_need(len(sources) < 2)
            return
        self._show_need(False)
        self.figure.say("Reading and comparing …")
        loaded, store = self._loaded, self._context.store

        def work(stop: threading.Event) -> Result | None:
            units: dict[str, str] = {}
            sides = []
            for source in sources:
                if stop.is_set():
                    return None
                if source not in loaded:
                    loaded[source] = _stored(store, source) if isinstance(source, int) else _recorded(source)
                side, own_units = loaded[source]
                sides.append(side)
                units |= own_units
            return Result(compare_sessions(sides), units)

        self._background.run(work)

    def _show_need(self, shown: bool = True) -> None:
        """What is missing, in place of the pages."""
        enough = self.list.count() > 1
        self.needs.words.setText(_TICK_TWO if enough else _EMPTY)
        self.needs.button.setText(_NEWEST if enough else _ADD)
        self.needs.setVisible(shown)
        self.tabs.setHidden(shown)

    def _fill_need(self) -> None:
        if self.list.count() < 2:
            self.choose_file()
            return
        with QSignalBlocker(self.list):
            for place in range(2):
                self.list.item(place).setCheckState(Qt.CheckState.Checked)
        self._compare()

    @Slot(object)
    def _compared(self, result: Result | None) -> None:
        if result is None:
            return
        self.result = result
        self.figure.show_chart(fronts_chart(result))
        described = describe_comparison(result.found, result.units)
        self.means.setText(f"{described.title}: {'. '.join(described.remarks)}".replace(" -", f" {MINUS}"))
        for table, listing in zip((self.gains, self.fronts, self.carried), described.listings, strict=False):
            table.show_listing(listing)
        self.fronts_title.setText(described.listings[1].title)
        self._show_tables(True)

    def _show_tables(self, shown: bool) -> None:
        """The tables are there while there is something in them."""
        self.tabs.setTabVisible(1, shown)
        self.tabs.setTabVisible(2, shown and self.result is not None and bool(self.result.found.carried))

    def _fit_list(self) -> None:
        """As tall as its rows, within bounds: the plot needs the room."""
        row = self.list.fontMetrics().height() + 4
        self.list.setFixedHeight(min(max(self.list.count(), _ROWS[0]), _ROWS[1]) * row + 8)

    @Slot(str, str)
    def _not_compared(self, what: str, remedy: str) -> None:
        self.result = None
        self._show_tables(False)
        self.figure.say(f"{what}\n{remedy}")


def fronts_chart(result: Result) -> Chart:
    """The fronts over one another."""
    comparison = result.found
    x, y = (result.described(goal.name) for goal in comparison.goals)
    widest = max(comparison.sides, key=lambda side: side.hypervolume)
    return Chart(
        x_title=x.title,
        y_title=y.title,
        series=tuple(
            Series(
                f"{side.name}, {side.label}",
                _COLOURS[place % len(_COLOURS)],
                side.front_y * y.factor,
                side.front_x * x.factor,
                points=True,
                symbol=_SYMBOLS[place % len(_SYMBOLS)],
            )
            for place, side in enumerate(comparison.sides)
        ),
        caption=f"Pareto fronts. The largest area is dominated by {widest.name}, {widest.label}; "
        + "on the front of all together: "
        + ", ".join(
            f"{_points(side.share_of_joint)} of {side.name}" for side in comparison.sides if side.share_of_joint
        )
        + ".",
    )


def _points(count: int) -> str:
    return f"{count} point" if count == 1 else f"{count} points"


def _stored(store: Store, session: int) -> tuple[Compared, dict[str, str]]:
    loaded = store.load(session)
    record = loaded.record
    name = f"{record.shown_name} (session {session})"
    board = record.origin.get("gpu", "") if record.source != "recorded" else ""
    work, condition = record.origin.get("problem_size", ""), record.origin.get("condition", "")
    limits = record.objective.limits
    kernel = record.origin.get("kernel", record.title)
    side = Compared(name, record.gpu, record.source, loaded.table, kernel, board, work, condition, limits)
    return side, dict(record.units)


def _recorded(path: Path) -> tuple[Compared, dict[str, str]]:
    from ...engine.formats.read import read_recording

    recording = read_recording(path)
    name = title_of(path)
    source, work = "simulated" if recording.simulated else "recorded", recording.problem_size
    named, of_table = (name, recording.device, source), bool(recording.read_with)
    kernel = recording.kernel if recording.is_named else ""
    side = Compared(*named, recording.table(), kernel, work=work, of_table=of_table)
    return side, dict(recording.units)
