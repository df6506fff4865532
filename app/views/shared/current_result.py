"""`CurrentResult`: the one result that is shown and exported, and which of its measurements are chosen and marked.

`Choice`: which measurement is chosen, and how.

`RowFilter`: which values of each parameter are looked at.

`ResultCaption`: whose figures a view shows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from ...engine.results.objectives import BY_HAND
from ...engine.results.state import SessionState
from ...engine.session import events
from ...sensors.simulated.twin import not_shown
from .bridge import EngineBridge
from .captions import provenance
from .label import ElidedLabel

if TYPE_CHECKING:
    from ...engine.space.result_table import ResultTable
    from ...engine.space.search_space import SearchSpace
    from ...engine.specification.plan import SessionPlan


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The values that are hidden, as their places in the parameter's list, by the parameter's name."""

    hidden: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(self.hidden.values())

    def hides(self, name: str, codes: Iterable[int]) -> bool:
        """All of these values are hidden."""
        return set(codes) <= self.hidden.get(name, frozenset())

    def toggled(self, name: str, codes: Iterable[int]) -> RowFilter:
        """With these values hidden, or shown again where all of them are hidden."""
        before, wanted = self.hidden.get(name, frozenset()), frozenset(codes)
        after = before - wanted if wanted <= before else before | wanted
        return RowFilter({**self.hidden, name: after})

    def passes(self, space: SearchSpace, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of these rows of the space hold no hidden value."""
        passed = np.ones(len(rows), dtype=np.bool_)
        for place, parameter in enumerate(space.parameters):
            hidden = self.hidden.get(parameter.name)
            if hidden:
                shown = np.ones(len(parameter.values), dtype=np.bool_)
                shown[list(hidden)] = False
                passed &= shown[space.codes[rows, place]]
        return passed


EVERYTHING = RowFilter()


@dataclass(frozen=True, slots=True)
class Choice:
    """A measurement that was chosen, by hand or by a rule."""

    index: int = -1  # into the table; -1: none, so that the best so far is exported
    way: str = ""  # the rule in the words of the chip, of a receipt, and beside the point; '': by hand
    name: str = ""  # of the rule, among the ways of the chooser
    number: float = 0.0  # its limit or weight


_NOTHING = Choice()
_UNDONE_AT_MOST = 100  # choices

Indices = npt.NDArray[np.int64]
_NONE: Indices = np.empty(0, dtype=np.int64)
PIN_NAMES = "ABC"  # of the configurations that may be pinned at a time
CHOOSE = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)  # the point or row of a cursor


class Board(Protocol):
    """A board, as far as a result has to do with it."""

    @property
    def uuid(self) -> str: ...


class CurrentResult(QObject):
    """The one result that all panels show. `table`, `plan` and `session` are None before the first.

    A session that tunes or replays becomes it when it starts, and a stored one when it is opened; what is only set up
    to run, a roofline or a clock sweep does not. Made right after the bridge, so that its slots run before those of the
    panels: in their `session_started` slots the attributes here are already the new ones, and `changed(-1)` has been
    sent.
    """

    replaced = Signal()  # another session is shown
    best_changed = Signal()
    changed = Signal(int)  # index into `table`; -1: none; also where the same one is chosen in another way
    filtered = Signal()  # `shown` is another
    brushed = Signal()  # `rows` are others
    pinned = Signal()  # `pins` are others
    steered = Signal(object)  # (lowest, highest) graphics clock in MHz for the next session; None: its own clocks

    def __init__(self, bridge: EngineBridge) -> None:
        super().__init__()
        self.table: ResultTable | None = None
        self.plan: SessionPlan | None = None
        self.session: int | None = None
        self.best: int | None = None  # index of the best by the session's objective, so far
        self.state: SessionState | None = None
        self.choice = _NOTHING
        self._before: deque[Choice] = deque(maxlen=_UNDONE_AT_MOST)
        self.shown: RowFilter = EVERYTHING  # the values that are looked at, and chosen among
        self.rows = _NONE  # of `table`, ascending: what the user has marked; empty: nothing
        self.pins: tuple[int, ...] = ()  # indices into `table`, to be compared: A, B and C
        self.clocks_mhz: tuple[float, float] | None = None
        self._ranges: dict[str, tuple[float, float] | None] = {}  # `clocks_mhz` by board
        self._board = ""
        bridge.subscribe(events.SessionStarted, self._session_started)
        bridge.subscribe(events.FiguresRestated, self._figures_restated)
        bridge.subscribe(events.MeasurementsAdded | events.SessionChanged, self._note_best)

    @property
    def caption(self) -> str:
        """Whose figures are shown: kernel, board, session, and where they come from; '' before the first."""
        if self.plan is None:
            return ""
        numbered = [f"session {self.session}"] if self.session else []  # one that is followed has no number yet
        mixed = ["different kernels"] if self.plan.mixed_kernels else []
        return " · ".join([self.plan.title, self.plan.gpu, *numbered, provenance(self.plan), *mixed])

    @property
    def caveats(self) -> str:
        """What its simulated board is known not to show of the real one, and the different kernels that it mixes."""
        if self.plan is None:
            return ""
        return "\n".join(filter(None, (not_shown(self.plan.origin.get("gpu", "")), self.plan.mixed_kernels)))

    @property
    def index(self) -> int:
        """Of the measurement that is chosen, by hand or by a rule; -1: none is."""
        return self.choice.index

    @property
    def way(self) -> str:
        """By which rule it was chosen; empty: by hand."""
        return self.choice.way

    @property
    def chosen(self) -> int | None:
        """The measurement that is exported and reported: the selected one, else the best so far."""
        return self.index if self.index >= 0 else self.best

    @property
    def rule(self) -> str:
        """By which that one was chosen: 'fastest', 'by hand'; of the best so far the objective, 'max:GFLOPS/W'."""
        if self.index >= 0:
            return self.way or BY_HAND
        return str(self.plan.objective.goal) if self.plan is not None else ""

    @Slot(int)
    def select(self, index: int, way: str | None = None, name: str = "", number: float = 0.0) -> None:
        """Choose the measurement of that index, -1 for none. An index out of the table's range means none.

        Without a way it is by hand, unless it is chosen already: views that follow say again what they heard. What the
        same rule of the chooser (`name`) chooses in turn, as its `number` or the table changes, is one choice to undo.
        """
        if self.table is None or not 0 <= index < len(self.table):
            index = -1
        if way is None and index == self.index:
            return
        choice, before = Choice(index, way or "", name, number), self.choice
        if choice != before:
            if not name or name != before.name:
                self._before.append(before)
            self._choose(choice)

    @property
    def can_undo(self) -> bool:
        """Whether there was another choice before."""
        return bool(self._before)

    @Slot()
    def undo(self) -> None:
        """Choose what was chosen before, in the same way; nothing where there was no other choice."""
        if self._before:
            self._choose(self._before.pop())

    def _choose(self, choice: Choice) -> None:
        self.choice = choice
        self.changed.emit(choice.index)

    @Slot(object)
    def show_only(self, shown: RowFilter) -> None:
        """Look at these values of the parameters, and choose among them."""
        if shown != self.shown:
            self.shown = shown
            self.filtered.emit()

    @Slot(object)
    def brush(self, rows: npt.ArrayLike) -> None:
        """Mark measurements, by their indices into `table`; no rows: nothing is marked."""
        marked = np.sort(np.asarray(rows, dtype=np.int64))
        marked = marked[np.append(True, marked[1:] != marked[:-1])[: len(marked)]]
        if not np.array_equal(marked, self.rows):
            self.rows = marked
            self.brushed.emit()

    @Slot(int)
    def pin(self, index: int) -> None:
        """Pin a measurement for comparison, or unpin it. Where three are pinned it takes the place of the last."""
        if self.table is None or not 0 <= index < len(self.table):
            return
        if index in self.pins:
            self._set_pins(tuple(pin for pin in self.pins if pin != index))
        else:
            self._set_pins((*self.pins[: len(PIN_NAMES) - 1], index))

    @Slot()
    def unpin_all(self) -> None:
        """Pin nothing any more."""
        self._set_pins(())

    def _set_pins(self, pins: tuple[int, ...]) -> None:
        if pins != self.pins:
            self.pins = pins
            self.pinned.emit()

    @Slot(object)
    def steer(self, clocks_mhz: tuple[float, float] | None) -> None:
        """Keep the next session to the supported graphics clocks within a range; None: to its own clocks."""
        if clocks_mhz != self.clocks_mhz:
            self.clocks_mhz = clocks_mhz
            self.steered.emit(clocks_mhz)

    @Slot(object)
    def follow_board(self, board: Board) -> None:
        """A range of clocks was found on one board, and steers the sessions of that one alone."""
        self._ranges[self._board] = self.clocks_mhz
        self._board = board.uuid
        self.steer(self._ranges.get(board.uuid))

    @Slot(object)
    def _session_started(self, event: events.SessionStarted) -> None:
        followed = self.plan is not None and self.plan.follow is not None and event.plan.follow is None
        if not followed:  # a growing file's session is kept at its end, in the same order
            self.choice = _NOTHING
            self._before.clear()
        self.shown = EVERYTHING
        self.state = SessionState.RUNNING if event.running else None
        self.table, self.plan, self.session = event.table, event.plan, event.session
        self.best = None
        self.brush(_NONE)
        self._set_pins(self.pins if followed else ())
        self.replaced.emit()
        self.changed.emit(self.index)

    @Slot(object)
    def _figures_restated(self, event: events.FiguresRestated) -> None:
        """The same measurements with other figures: what is chosen, marked and pinned stays."""
        if event.session != self.session:
            return
        self.table, self.plan, self.best = event.table, event.plan, event.progress.best_index
        self.best_changed.emit()
        self.changed.emit(self.index)

    @Slot(object)
    def _note_best(self, event: events.MeasurementsAdded | events.SessionChanged) -> None:
        if event.progress.session != self.session:
            return
        self.state = event.progress.state
        if event.progress.best_index != self.best:
            self.best = event.progress.best_index
            self.best_changed.emit()


class ResultCaption(ElidedLabel):
    """Names the current result, in one line over its figures; hidden before there is one."""

    def __init__(self, result: CurrentResult, parent: QWidget | None = None) -> None:
        super().__init__("", parent, muted=True)
        self._result = result
        result.replaced.connect(self._show)
        self._show()

    @Slot()
    def _show(self) -> None:
        caption = self._result.caption
        self.setText(caption, self._result.caveats)
        self.setAccessibleDescription(f"{caption}. {self._result.caveats}".rstrip(". "))
        if not caption or self.parent() is not None:  # alone it would be a window for a moment, and take the focus
            self.setVisible(bool(caption))
