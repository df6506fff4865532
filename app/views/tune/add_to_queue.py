"""`AddToQueue`: the button that puts what is set up into the queue, as it is or in several variants.

`VariantsWindow`: what is set up with several strategies, several seeds and on several boards, into the queue.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDialog, QListWidget, QListWidgetItem, QMenu, QToolButton, QWidget

from ...base.errors import InputError, WattridgeError
from ...engine.runner.boards import ReadyPlan
from ...engine.session.queue import MOST_WAITING, chosen_as, variants
from ...engine.strategies import base as strategies
from ..shared.context import Context
from ..shared.label import PlainLabel, plain_tip
from ..shared.tasks import TaskQueue
from ..shared.widgets import WholeBox, button, hbox, vbox
from .draft import Draft, draft_of_file

if TYPE_CHECKING:
    from ...engine.runner.boards import ReadyPlan
    from ..shared.watched_boards import WatchedBoard
    from .draft import Draft

_TIP = "Run it as it is set up, once nothing else runs; the arrow offers several strategies, seeds and boards"


class AddToQueue(QToolButton):
    """`draft()` is what is open, and `set_up()` the plan as it was chosen, which raises WattridgeError."""

    def __init__(
        self,
        context: Context,
        draft: Callable[[], Draft | None],
        set_up: Callable[[], ReadyPlan],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._context, self._draft, self._set_up = context, draft, set_up
        self.variants: VariantsWindow | None = None  # once it was asked for
        self.setText("Add to &queue")
        self.setToolTip(_TIP)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.MenuButtonPopup)
        menu = QMenu(self)
        self.as_set_up = QAction("As it is &set up", self)  # Shiboken may lose one that the menu makes
        self.several = QAction("Several strategies, seeds or &boards …", self)
        self.as_set_up.triggered.connect(self.add)
        self.several.triggered.connect(self.show_variants)
        menu.addActions([self.as_set_up, self.several])
        menu.aboutToShow.connect(self._offer)
        self.setMenu(menu)
        self.clicked.connect(self.add)

    @Slot()
    def add(self) -> None:
        """Add one run, as it is set up."""
        try:
            self._context.bridge.queue.add([self._set_up()])
        except WattridgeError as error:
            self._context.bridge.report(error.what, error.remedy)

    @Slot()
    def show_variants(self) -> None:
        """Open the window in which strategies, seeds and boards are chosen."""

        draft = self._draft()
        if draft is None:
            return
        if self.variants is None:
            self.variants = VariantsWindow(self._context, self._draft, self._set_up, self)
        try:
            self.variants.show_draft(draft, self._set_up())
        except WattridgeError as error:
            self._context.bridge.report(error.what, error.remedy)
            return
        self.variants.show()
        self.variants.raise_()

    @Slot()
    def _offer(self) -> None:
        draft = self._draft()
        self.several.setEnabled(draft is not None and draft.plan.resume is None)


_SEEDS, _LARGEST = 100, 2_000_000_000
_REPLAY = "A recording is replayed; no board takes part"
_BOARDS = "The boards that are watched; more are watched under Boards. They run one after another."
_SEVERAL = "The boards that share the session; the others are set up one at a time"
_OWN = "Only the board that it is set up for: clocks steered by its model, and measurements taken over, are its own"


class VariantsWindow(QDialog):
    """The number of runs stands there before they are added. Stays beside the main window."""

    def __init__(
        self,
        context: Context,
        draft: Callable[[], Draft | None],
        set_up: Callable[[], ReadyPlan],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._context, self._draft, self._set_up = context, draft, set_up
        self._planner = TaskQueue(self, self._not_planned)
        self.setWindowTitle("Add several runs to the queue")
        self.resize(560, 420)
        self.what, self.count = PlainLabel(wrap=True), PlainLabel(wrap=True)
        self.strategies, self.boards = _ticked_list("Strategies"), _ticked_list("Boards")
        self.first, self.seeds = WholeBox(), WholeBox()
        self.first.setRange(0, _LARGEST)
        self.first.setAccessibleName("First seed")
        self.seeds.setRange(1, _SEEDS)
        self.seeds.setAccessibleName("Number of seeds")
        self.seeds.setToolTip("The same search as often, each with a seed of its own")
        self.add = button("&Add to queue", clicked=self.add_all)
        close = button("Close", clicked=self.close)
        close.setAutoDefault(False)
        left, right = _named("&Strategies", self.strategies), _named("&Boards", self.boards)
        vbox(
            self.what,
            (hbox((vbox(left, (self.strategies, 1)), 1), (vbox(right, (self.boards, 1)), 1)), 1),
            hbox(_named("S&eeds", self.seeds), self.seeds, _named("&from", self.first), self.first, 1),
            self.count,
            hbox(1, self.add, close),
            of=self,
        )
        for ticked in (self.strategies, self.boards):
            ticked.itemChanged.connect(self._count)
        for number in (self.first, self.seeds):
            number.valueChanged.connect(self._count)
        context.bridge.queue_changed.connect(self._count)

    def show_draft(self, draft: Draft, plan: ReadyPlan) -> None:
        """Offer what there is to vary; ticked is what is set up."""
        boards = self._context.boards
        limit = f", at most {plan.budget} configurations each"
        self.what.setText(f"{plan.title} on {plan.board}{limit}; objective, limits and all else as set up.")
        names = sorted(strategies.names(), key=lambda name: (name != "auto", strategies.get(name).label))
        _fill(self.strategies, ((strategies.get(name).label, name, name == plan.strategy) for name in names))
        for row in range(self.strategies.count()):
            item = self.strategies.item(row)
            item.setToolTip(strategies.description(strategies.get(item.data(Qt.ItemDataRole.UserRole))))
        several = plan.pool is not None
        own_only = draft.replay or draft.clocks_mhz is not None or draft.taken_over is not None or several
        own = boards.measured_by(plan) or boards.current  # another one may be shown while a session runs
        offered = [own] if own_only else boards.all
        labels = ((element.gpu.info.label, element.uuid, element is own) for element in offered)
        _fill(self.boards, [(self._context.pool.words, plan.board, True)] if several else labels)
        self.boards.setEnabled(not own_only)
        self.boards.setToolTip(_REPLAY if draft.replay else _SEVERAL if several else _OWN if own_only else _BOARDS)
        with QSignalBlocker(self.first):
            self.first.setValue(plan.seed)
        self._count()

    # --- how many -----------------------------------------------------------------------------------------------------

    @Slot()
    def _count(self, *_: object) -> None:
        """Say how many runs that makes, and whether there is room for them."""
        counts = len(_ticked(self.strategies)), self.seeds.value(), len(_ticked(self.boards))
        runs = counts[0] * counts[1] * counts[2]
        room = MOST_WAITING - len(self._context.bridge.queue.waiting)
        product = " × ".join(
            f"{count} {noun if count == 1 else plural}"
            for count, noun, plural in zip(
                counts, ("strategy", "seed", "board"), ("strategies", "seeds", "boards"), strict=True
            )
        )
        words = f"{product} = {runs} {'run' if runs == 1 else 'runs'}, one after another"
        if runs > room:
            words += f": too many, {room} more may wait"
        elif not runs:
            words += ": tick at least one of each"
        if self._planner.busy:
            words = "Building the spaces of the other boards …"
        self.count.setText(words)
        self.add.setEnabled(0 < runs <= room and not self._planner.busy)

    # --- adding -------------------------------------------------------------------------------------------------------

    @Slot()
    def add_all(self) -> None:
        """Add the cross product: board by board, strategy by strategy, seed by seed."""
        draft, boards = self._draft(), self._context.boards
        if draft is None:
            self._context.bridge.report("nothing is set up", "open a specification or a recording in Tune")
            return
        try:
            chosen = self._set_up()
        except WattridgeError as error:
            self._context.bridge.report(error.what, error.remedy)
            return
        names, seeds = _ticked(self.strategies), range(self.first.value(), self.first.value() + self.seeds.value())
        wanted = [boards.find(uuid) for uuid in _ticked(self.boards)] if self.boards.isEnabled() else [None]
        path = draft.path

        def plans() -> list[ReadyPlan]:
            own = {chosen.origin.get("gpu"): chosen}
            of_boards = [own.get(item.uuid) or _planned(path, item, chosen) if item else chosen for item in wanted]
            return [plan for of_board in of_boards for plan in variants(of_board, names, seeds)]

        self._planner.run(plans, self._planned)
        self._count()

    def _planned(self, plans: list[ReadyPlan]) -> None:
        try:
            self._context.bridge.queue.add(plans)
        except WattridgeError as error:
            self._context.bridge.report(error.what, error.remedy)
            return
        self.close()

    @Slot(str, str)
    def _not_planned(self, what: str, remedy: str) -> None:
        """Add the runs; if one of the boards cannot run the session, add none."""
        self._context.bridge.report(what, remedy)
        self._count()


def _planned(path: Path, board: WatchedBoard, chosen: ReadyPlan) -> ReadyPlan:
    """The same specification on another board; off Qt's thread. Raises WattridgeError."""
    plan = draft_of_file(path, board.gpu, None, threading.Event(), None, board.guard).plan
    if plan.origin.get("sha256") != chosen.origin.get("sha256"):
        raise InputError("the file has changed since it was opened", str(path), "open it again")
    return chosen_as(chosen, plan)


def _ticked_list(name: str) -> QListWidget:
    made = QListWidget()
    made.setAccessibleName(f"{name}: Space ticks one")
    made.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # long names end in an ellipsis
    return made


def _fill(into: QListWidget, offered: Iterable[tuple[str, str, bool]]) -> None:
    with QSignalBlocker(into):
        into.clear()
        for text, data, ticked in offered:
            item = QListWidgetItem(text)
            item.setToolTip(plain_tip(text))
            item.setData(Qt.ItemDataRole.UserRole, data)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if ticked else Qt.CheckState.Unchecked)
            into.addItem(item)


def _ticked(of: QListWidget) -> list[str]:
    items = (of.item(row) for row in range(of.count()))
    return [i.data(Qt.ItemDataRole.UserRole) for i in items if i.checkState() is Qt.CheckState.Checked]


def _named(text: str, field: QWidget) -> PlainLabel:
    label = PlainLabel(text)
    label.setBuddy(field)
    return label
