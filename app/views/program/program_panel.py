"""The workspace Program: a profile's timeline and icicle chart, its tables, what to do next, another one beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QComboBox, QSplitter, QTabWidget, QTextBrowser, QWidget

from ...base.formatting import number
from ...base.paths import example_profile
from ...engine.profile.attributed import AttributedTrace
from ...engine.profile.compare_profiles import compare_profiles
from ...engine.profile.describe_profile import (
    describe_comparison,
    describe_part,
    describe_profile,
    describe_slice,
    describe_span,
    energy_listing,
)
from ...engine.profile.kept_profile import (
    KeptProfile,
    is_kept,
    kept_profiles,
    open_profile,
    profile_files,
    read_profile,
)
from ...engine.profile.program_profile import FamilyEnergy, GapEnergy, Part, ProgramProfile, RangeEnergy
from ...engine.profile.stacks import stacks_of
from ...engine.results.description import Description
from ..plots.descriptions import rich_text
from ..shared import theme
from ..shared.context import Context
from ..shared.label import ElidedLabel, PlainLabel
from ..shared.panel import Panel
from ..shared.tasks import LatestTask
from ..shared.turns import timer
from ..shared.widgets import button, hbox, local_time, open_file, save_file, vbox
from ..watch.timeline import Overview
from .family_colours import FamilyColours
from .icicle import Icicle, Node, Stack, tree_of
from .listing_view import ListingView
from .next_steps_view import CommandRow, NextSteps
from .slice_lanes import SliceLane, lanes_of
from .timeline import Chosen, ProgramRecording, ProgramTimeline

_LEAST_PX = 420
_PAUSE_MS = 30  # in which the tables are painted
_ALONE, _ANOTHER = "nothing", "another file …"
_KINDS = "Profiles (*.wprofile *.json);;All files (*)"
_POWERS = "Recordings and logs of power (*.wrec *.csv *.csv.gz *.json *.json.gz *.txt *.log);;All files (*)"
_HOW = (
    ("Record a program on this computer: it is watched while it runs", "wattridge profile -- python train.py"),
    (
        "Or use a trace of PyTorch's profiler and the power of the same time, recorded beside it by: "
        "wattridge monitor --record power.csv.gz",
        "wattridge profile --trace trace.json.gz --power power.csv.gz",
    ),
)


@dataclass(frozen=True, slots=True)
class Opened:
    """A profile with what its views are made of."""

    path: Path
    profile: ProgramProfile
    attributed: AttributedTrace
    board: ProgramRecording
    lanes: tuple[SliceLane, ...]
    tree: Node

    @classmethod
    def of(cls, path: Path, profile: ProgramProfile, attributed: AttributedTrace) -> Opened:
        """Takes some tenths of a second with a million slices."""
        board = ProgramRecording.of(attributed)
        return cls(path, profile, attributed, board, lanes_of(attributed), tree_of(stacks_of(profile, attributed)))


class ProgramPanel(Panel):
    """Files are read, and joules summed up, off Qt's thread."""

    open_asked = Signal()  # a file is to be chosen
    action_asked = Signal(str)  # the name of an action of the window
    file_opened = Signal(object)  # its Path
    report_asked = Signal(object, object)  # a profile, into a Path

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.opened: Opened | None = None
        self.timeline: ProgramTimeline | None = None
        self.icicle: Icicle | None = None
        self._trace = Path()  # that waits for its power
        self._described = Description("")
        self._selecting = False
        self._shown_next: Opened | None = None
        self._next = timer(self, self._show_next, _PAUSE_MS, once=True)
        self._read = LatestTask(self, self._show, self._failed)
        self._other = LatestTask(self, self._compared, self._failed)
        self._list = LatestTask(self, self._listed, self._failed)
        self._sum = LatestTask(self, self._say, self._failed)
        self.message = PlainLabel(wrap=True)
        self.open_file = button("&Open …", "A profile, or a trace of PyTorch's profiler", self.open_asked.emit)
        self.example = button("&Example", "A training that was recorded on a real board", self._open_example)
        tune = "&Tune its parameters …", "Try values of a program's options"
        self.tune = button(*tune, lambda: self.action_asked.emit("new_program"))
        self.named, self.others = ElidedLabel(), QComboBox()
        self.others.setAccessibleName("Compare with")
        self.others.setMaximumWidth(260)
        self.zoom = button("&Zoom to it", "Show the marked span, or the chosen slice, at full width")
        self.whole = button("&All", "Show the whole timeline")
        self.report = button("Re&port …", "Write one HTML file of the profile", self._ask_report)
        self.power = button("Choose its &power …", "A recording or a log of the same time", self._ask_power)
        self.table, self.compared = ListingView("Where the joules go"), ListingView("Comparison")
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.words = QTextBrowser()
        self.words.setAccessibleName("What is chosen")
        self._lay_out()
        self.others.activated.connect(self._other_chosen)
        self.table.chosen.connect(self._row_chosen)

    def _lay_out(self) -> None:
        self._over, self._right = QSplitter(Qt.Orientation.Vertical), QSplitter(Qt.Orientation.Vertical)
        self._halves = QSplitter()
        self.tabs.addTab(self.table, "Joules")
        self._right.addWidget(self.tabs)
        self._right.addWidget(self.words)
        self._halves.addWidget(self._over)
        self._halves.addWidget(self._right)
        self._right.setSizes([320, 220])
        self._over.setMinimumWidth(_LEAST_PX)  # so that the tables keep their place when it is filled
        self._halves.setSizes([640, 400])
        self._halves.setStretchFactor(0, 8)
        self._halves.setStretchFactor(1, 5)
        for split in (self._halves, self._over, self._right):
            split.setChildrenCollapsible(False)
        self._rows = [CommandRow(*each) for each in _HOW]
        self._empty = QWidget()
        heading = PlainLabel("Where do the joules of your program go?")
        heading.setFont(theme.number_font(5.0))
        vbox(heading, *self._rows, of=self._empty, margins=24, spacing=16)
        self._with = PlainLabel("Compare &with")
        self._with.setBuddy(self.others)
        shown = (self._with, self.others, self.zoom, self.whole, self.report)
        above = hbox(self.open_file, self.example, self.tune, (self.named, 1), *shown)
        waiting = hbox((self.message, 1), self.power)
        vbox(above, waiting, self._empty, (self._halves, 1), of=self, margins=6).addStretch(0)
        self._only_with: tuple[QWidget, ...] = (*shown, self._halves)
        for widget in (*self._only_with, self.power, self.message):
            widget.hide()
        self.example.setEnabled(example_profile() is not None)

    @property
    def busy(self) -> bool:
        """Something is being read or summed up."""
        tasks = self._read, self._other, self._list, self._sum
        return self._shown_next is not None or any(task.busy for task in tasks)

    # --- files --------------------------------------------------------------------------------------------------------

    def open(self, path: Path) -> None:
        """Show a profile; of a trace its power is asked for first."""
        profile = is_kept(path)
        self.power.setVisible(not profile)
        if profile:
            self._message(f"Reading {path.name} …")
            self._read.run(lambda _stop: Opened.of(path, *open_profile(path)))
        else:
            self._trace = path
            self._message(f"{path.name} is a trace of a program. Choose the power of the same time: a recording of "
                          "`wattridge monitor --record`, or a log, as of nvidia-smi.")  # fmt: skip
            self.power.setFocus()

    def open_power(self, power: Path) -> None:
        """Attribute the joules of this power to the trace that waits; the profile is kept."""
        trace = self._trace
        self._message(f"Attributing the energy of {power.name} to what ran in {trace.name} …")
        self._read.run(lambda _stop: Opened.of(*profile_files(trace, power)))

    @Slot()
    def _open_example(self) -> None:
        if (path := example_profile()) is not None:
            self.open(path)

    @Slot()
    def _ask_power(self) -> None:
        open_file(self, "Open the power of the same time", _POWERS, self.open_power)

    @Slot()
    def _ask_report(self) -> None:
        if self.opened is not None:
            profile = self.opened.profile
            name = f"{profile.title}-profile.html"
            save_file(self, "Report", name, "HTML (*.html)", lambda path: self.report_asked.emit(profile, path))

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self._message(f"{what} ({remedy})" if remedy else what)

    def _message(self, words: str) -> None:
        self.message.setText(words)
        self.message.setVisible(bool(words))

    @Slot(object)
    def _show(self, opened: Opened) -> None:
        """The tables; timeline and chart follow in a turn of their own."""
        self.opened, self._shown_next, profile = None, opened, opened.profile
        self._message("")
        origin = f"{profile.title} · {profile.gpu} · {profile.source} · {number(profile.energy_j)} J"
        self.named.setText(origin, str(opened.path))
        parts = (*profile.families, *profile.groups, profile.gaps, profile.remainder)
        ranked = sorted(parts, key=lambda part: -part.energy_j if math.isfinite(part.energy_j) else math.inf)
        self._parts: list[Sequence[Part]] = [ranked, profile.ranges]
        listings = energy_listing("what ran", ranked), energy_listing("ranges", profile.ranges)
        self.table.show_listings([each for each in listings if each.rows])
        while self.tabs.count() > 1:
            self.tabs.removeTab(1)
        self._steps = NextSteps(profile)  # the one before goes with its last name
        self.tabs.addTab(self._steps, "What next")
        self.power.hide()
        self._empty.hide()
        for widget in self._only_with:
            widget.show()
        self._say(_whole(profile))
        for row in self._steps.rows:
            self.setTabOrder(row.copy, self.words)
        self._next.start()

    @Slot()
    def _show_next(self) -> None:
        opened, self._shown_next = self._shown_next, None
        if opened is None:
            return
        for place in reversed(range(self._over.count())):
            if (gone := self._over.widget(place)) is not None:
                gone.setParent(None)
                gone.deleteLater()
        self.opened, attributed = opened, opened.attributed
        self._place = {each.name: at for at, each in enumerate(attributed.families)}
        colours = FamilyColours([self._place[each.name] for each in opened.profile.families])
        self.timeline = ProgramTimeline(attributed, opened.board, opened.lanes, colours)
        leaves: list[FamilyEnergy | GapEnergy] = [*opened.profile.families, opened.profile.gaps]
        grouped = {each.label: each.group for each in leaves if each.group is not None}
        self.icicle = Icicle(opened.tree, self._place, grouped, colours)
        overview, held = Overview(self.timeline), QWidget()
        overview.moved.connect(self._window_moved)
        vbox((self.timeline, 1), overview, of=held, margins=0, spacing=2)
        for widget, stretch in ((held, 3), (self.icicle, 1)):
            self._over.addWidget(widget)
            self._over.setStretchFactor(self._over.count() - 1, stretch)
        self.zoom.clicked.connect(self.timeline.show_span)
        self.whole.clicked.connect(self.timeline.show_whole)
        self.timeline.slice_chosen.connect(self._slice_chosen)
        self.timeline.span_changed.connect(self._span_changed)
        self.icicle.chosen.connect(self._stack_chosen)
        for one, other in pairwise((self.report, self.timeline, overview, self.icicle)):
            self.setTabOrder(one, other)
        self.timeline.setUpdatesEnabled(False)  # all else is painted before it
        QTimer.singleShot(_PAUSE_MS, self.timeline, partial(self.timeline.setUpdatesEnabled, True))
        self._refresh()
        self.file_opened.emit(opened.path)

    @Slot(object)
    def _window_moved(self, window: tuple[int, int]) -> None:
        if self.timeline is not None:
            self.timeline.show_window(*window)

    # --- what is chosen -----------------------------------------------------------------------------------------------

    @Slot(object)
    def _say(self, described: Description) -> None:
        self._described = described
        self.words.setHtml(rich_text([described]))

    def recolour(self) -> None:
        """The words are HTML in the theme's colours."""
        self._say(self._described)

    def _choose(self, described: Description, part: Part | None = None, remark: str = "") -> None:
        """Say what is chosen, and show it in every view."""
        if self._selecting or self.opened is None or self.timeline is None or self.icicle is None:
            return
        self._selecting = True
        self._sum.cancel()
        self._say(replace(described, remarks=[*([remark] if remark else []), *described.remarks]))
        for which, parts in enumerate(self._parts):
            if part in parts:
                self.table.select(which, parts.index(part))
        family = part.name if isinstance(part, FamilyEnergy) else ""
        paths = self.opened.attributed.trace.paths
        if isinstance(part, RangeEnergy) and part.path in paths:
            self.timeline.light(paths.index(part.path), ranges=True)
        else:
            self.timeline.light(self._place.get(family))
        self.icicle.light(family)
        self._selecting = False

    def _part_chosen(self, part: Part | None, remark: str = "") -> None:
        if self.opened is not None:
            profile = self.opened.profile
            self._choose(_whole(profile) if part is None else describe_part(profile, part), part, remark)

    @Slot(int, int)
    def _row_chosen(self, which: int, place: int) -> None:
        self._part_chosen(self._parts[which][place])

    @Slot(object)
    def _slice_chosen(self, chosen: Chosen | None) -> None:
        if self.opened is None or chosen is None:
            self._part_chosen(None)
            return
        (lane, at), profile, attributed = chosen, self.opened.profile, self.opened.attributed
        key = int(lane.key[at])
        if lane.ranges:
            part = next((each for each in profile.ranges if each.path == attributed.trace.paths[key]), None)
            self._part_chosen(part, f"this one takes {number((lane.end[at] - lane.begin[at]) / 1e9)} s on the host")
        else:
            family = next(each for each in profile.families if each.name == attributed.families[key].name)
            self._choose(describe_slice(profile, attributed, int(lane.rows[at])), family)

    @Slot(object)
    def _stack_chosen(self, stack: Stack) -> None:
        if self.opened is None or self.icicle is None:
            return
        profile, node = self.opened.profile, self.icicle.node
        found: list[Part] = [each for each in profile.ranges if each.path == stack]
        if not node.inner:
            leaves = (*profile.families, profile.gaps, profile.remainder)
            found += [each for each in leaves if (each.label or "remainder") == stack[-1]]
        known = len(stack) > 1 and found and getattr(found[0], "group", None) is None and not node.inner
        remark = f"{number(node.joules)} J of it in {' / '.join(stack[:-1])}" if known else ""
        self._part_chosen(found[0] if found else None, remark)

    @Slot(object)
    def _span_changed(self, span: tuple[int, int] | None) -> None:
        if self.opened is None or span is None:
            self._part_chosen(None)
        else:
            profile, attributed = self.opened.profile, self.opened.attributed
            self._sum.run(lambda _stop: describe_span(profile, attributed, *span))

    # --- another profile ----------------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._refresh()

    def _refresh(self) -> None:
        self._list.run(lambda _stop: kept_profiles())

    @Slot(object)
    def _listed(self, kept: list[KeptProfile]) -> None:
        with QSignalBlocker(self.others):
            chosen = self.others.currentText()
            self.others.clear()
            self.others.addItem(_ALONE)
            for each in kept:
                self.others.addItem(f"{each.profile.title}, {local_time(each.created_s)}", each)
            self.others.addItem(_ANOTHER)
            self.others.setCurrentIndex(max(0, self.others.findText(chosen)))

    @Slot(int)
    def _other_chosen(self, place: int) -> None:
        kept = self.others.itemData(place)
        if kept is not None:
            self.compare_with(kept.path)
        elif self.others.itemText(place) == _ANOTHER:
            open_file(self, "Compare with another profile", _KINDS, self.compare_with)
        elif (shown := self.tabs.indexOf(self.compared)) >= 0:
            self.tabs.removeTab(shown)

    def compare_with(self, path: Path) -> None:
        """Show another profile beside this one; the other one is the one before."""
        if self.opened is not None:
            after = self.opened.profile
            self._other.run(lambda _stop: describe_comparison(compare_profiles(read_profile(path)[0], after)))

    @Slot(object)
    def _compared(self, described: Description) -> None:
        self.compared.show_listings(described.listings)
        self.tabs.setCurrentIndex(self.tabs.addTab(self.compared, "Compared"))
        self._say(replace(described, listings=()))


def _whole(profile: ProgramProfile) -> Description:
    return replace(describe_profile(profile), listings=())
