"""`ResultTable`: every measurement of a session as growing columns. One writer (the engine thread), many readers.

Views and analysis hold index numbers into it, never copies of measurements. A reader takes `len(table)` first and looks
only below it, or reads `table.so_far()`, so no lock is needed: columns are filled before the length moves. What is
measured in full after it was only timed takes the place of its entry, in columns of their own.

`FreedAside`: a list whose many objects are freed on a thread of their own, a few at a time.

A hundred thousand measurements take a tenth of a second to free, during which the thread that lets go of them last, and
every other one that wants the interpreter, stands still. In the window that would be Qt's.
"""

from __future__ import annotations

import _thread
import copy
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from ..results.measurement import Depth, Measurement, State
from .search_space import SearchSpace

_T = TypeVar("_T")
_MANY = 4_000  # what is freed in 3 ms is freed at once
_SLICE = 100


class FreedAside(list[_T]):
    """Use it as a list, and share it rather than copy it."""

    def __del__(self, many: int = _MANY) -> None:  # at the interpreter's end the module's names may be gone
        if len(self) > many:
            kept = self[:]
            self.clear()  # else the last reference to what the other thread is done with first would go on this one
            with suppress(RuntimeError):  # the interpreter ends, and starts no thread any more
                _thread.start_new_thread(_free, (kept,))  # `Thread.start` would wait for it, at the end for ever


def _free(kept: list[Any]) -> None:
    while kept:
        del kept[-_SLICE:]  # between two slices others have their turn


STATES: tuple[State, ...] = tuple(State)
_STATE_CODE = {state: code for code, state in enumerate(STATES)}
BOARD_NUMBER: Final = (
    "board_number"  # a column where several boards measured the session: something to colour points by
)
DECIDED_ON: Final = "decided_on"  # key of a session's origin: the board on which its finalists were compared


class ResultTable:
    """Columns: `row` (of the search space), `state` (code into STATES), `timed`, and one float64 column per value."""

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self._length = 0
        self._capacity = 1024
        self._row = np.empty(self._capacity, dtype=np.int64)
        self._state = np.empty(self._capacity, dtype=np.uint8)
        self._timed = np.zeros(self._capacity, dtype=np.bool_)
        self._board = np.zeros(self._capacity, dtype=np.int64)  # its number, from 1; 0 if it is not known
        self._number_of: dict[str, int] = {}  # boards, by their keys
        self.origin: Mapping[str, str] = {}  # what the session says of its figures; empty while it runs
        self._index_of_timed: dict[int, int] = {}  # row -> index, of those that may be measured in full yet
        self._columns: dict[str, npt.NDArray[np.float64]] = {}
        self._details: FreedAside[Measurement] = FreedAside()
        self._evaluated = np.empty(self._capacity, dtype=np.int64)
        self._evaluations = 0
        self.deepened = 0  # entries that were measured in full after they had been timed: who reads on looks again

    def __len__(self) -> int:
        return self._length

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the value columns, in the order in which they first appeared."""
        return tuple(self._columns)

    @property
    def figure_names(self) -> tuple[str, ...]:
        """The same, and BOARD_NUMBER where several boards measured the session."""
        return (*self.value_names, BOARD_NUMBER) if len(self._number_of) > 1 else self.value_names

    @property
    def boards(self) -> tuple[str, ...]:
        """Keys of the boards that measured the session, in the order of their numbers."""
        return tuple(self._number_of)

    @property
    def decided_on(self) -> str:
        """Key of the board whose figures alone are compared, where several measured the session; else empty."""
        return self.origin.get(DECIDED_ON, "")

    @property
    def comparable(self) -> npt.NDArray[np.bool_]:
        """Whether each can be compared with the others, shape (n,): all, unless one board decided between several."""
        numbers = self._board[: self._length]
        return numbers == self._number_of.get(self.decided_on, -1) if self.decided_on else numbers >= 0

    def so_far(self) -> ResultTable:
        """What is there now, as a table that does not grow: for who reads several columns. Copies no column."""
        evaluations, length = self._evaluations, self._length  # what was evaluated was appended before
        kept = copy.copy(self)
        kept._evaluations, kept._length = evaluations, length
        return kept

    def restated(self, measurements: Iterable[Measurement], origin: Mapping[str, str]) -> ResultTable:
        """A table of the same entries with other figures: one measurement for each, in their order."""
        table = ResultTable(self.space)
        table.origin = origin
        table.extend(measurements)
        table._evaluated, table._evaluations = self._evaluated.copy(), self._evaluations
        return table

    def append(self, measurement: Measurement) -> int:
        """Add one measurement (engine thread only); its index."""
        [index] = self.extend([measurement])
        return index

    def extend(self, measurements: Iterable[Measurement]) -> list[int]:
        """Add many (engine thread only), column by column; the index of each.

        One of a row that was only timed replaces that entry; who reads `so_far()` keeps what was there.
        """
        indices: list[int] = []
        evaluated: list[int] = []
        added: list[Measurement] = []
        deeper: dict[int, Measurement] = {}
        for measurement in measurements:
            index = self._index_of_timed.get(measurement.row)
            if index is None:
                index = self._length + len(added)
                added.append(measurement)
            elif index >= self._length:  # timed just before
                added[index - self._length] = measurement
            else:
                deeper[index] = measurement
            if measurement.final:
                self._index_of_timed.pop(measurement.row, None)
            else:
                self._index_of_timed[measurement.row] = index
            if measurement.depth is Depth.ENERGY:
                evaluated.append(index)
            indices.append(index)
        self._replace(deeper)
        self._append(added)
        after = self._evaluations + len(evaluated)
        self._evaluated[self._evaluations : after] = evaluated
        self._evaluations = after
        return indices

    def _append(self, added: list[Measurement]) -> None:
        start, stop = self._length, self._length + len(added)
        while stop > self._capacity:
            self._grow()
        self._row[start:stop] = [m.row for m in added]
        self._state[start:stop] = [_STATE_CODE[m.state] for m in added]
        self._timed[start:stop] = [m.depth is Depth.TIME for m in added]
        self._board[start:stop] = [self._number(m.board) for m in added]
        new = dict.fromkeys(name for m in added for name in m.values if name not in self._columns)
        if new:
            self._columns = {**self._columns, **{name: self._unknown() for name in new}}
        for name, column in self._columns.items():
            column[start:stop] = [m.values.get(name, math.nan) for m in added]
        self._details.extend(added)
        self._length = stop

    def _replace(self, deeper: dict[int, Measurement]) -> None:
        """Put these measurements at their indices, in copies of the columns."""
        if not deeper:
            return
        self._state, self._timed, self._details = self._state.copy(), self._timed.copy(), FreedAside(self._details)
        self._board = self._board.copy()
        names = dict.fromkeys((*self._columns, *(name for m in deeper.values() for name in m.values)))
        columns = {n: self._columns[n].copy() if n in self._columns else self._unknown() for n in names}
        for index, measurement in deeper.items():
            self._state[index] = _STATE_CODE[measurement.state]
            self._timed[index] = measurement.depth is Depth.TIME
            self._board[index] = self._number(measurement.board)
            self._details[index] = measurement
            for name, column in columns.items():
                column[index] = measurement.values.get(name, math.nan)
        self._columns = columns
        self.deepened += len(deeper)

    def _number(self, board: str) -> int:
        return self._number_of.setdefault(board, len(self._number_of) + 1) if board else 0

    def _unknown(self) -> npt.NDArray[np.float64]:
        return np.full(self._capacity, np.nan)

    def measurement(self, index: int) -> Measurement:
        """Everything known of one measurement."""
        return self._details[index]

    def rows(self, start: int = 0) -> npt.NDArray[np.int64]:
        """Rows of the search space, from `start` on; a view."""
        return self._row[start : self._length]

    def states(self, start: int = 0) -> npt.NDArray[np.uint8]:
        """Codes into STATES, from `start` on; a view."""
        return self._state[start : self._length]

    def timed(self, start: int = 0) -> npt.NDArray[np.bool_]:
        """Whether each was only timed, from `start` on; a view."""
        return self._timed[start : self._length]

    def evaluated(self, start: int = 0) -> npt.NDArray[np.int64]:
        """The index of each evaluation, in their order, from `start` on; a view. What is only timed is none."""
        return self._evaluated[start : self._evaluations]

    def values(self, name: str, start: int = 0) -> npt.NDArray[np.float64]:
        """One column from `start` on, NaN if a measurement lacks it; a view. Parameters and settings work too."""
        length = self._length
        if name in self._columns:
            return self._columns[name][start:length]
        if name == BOARD_NUMBER:
            numbers = self._board[start:length].astype(np.float64)
            return np.where(numbers > 0, numbers, math.nan)
        if name in self.space.names:
            return self.space.numbers(name, self._row[start:length])
        return np.full(length - start, np.nan)

    def failures(self) -> dict[str, int]:
        """Count of failed configurations by state, only the states that occurred."""
        counts = np.bincount(self.states(), minlength=len(STATES))
        return {state.value: int(counts[i]) for i, state in enumerate(STATES) if state is not State.OK and counts[i]}

    def _grow(self) -> None:
        self._capacity *= 2
        self._row = np.resize(self._row, self._capacity)
        self._state = np.resize(self._state, self._capacity)
        self._timed = np.resize(self._timed, self._capacity)
        self._board = np.resize(self._board, self._capacity)
        self._evaluated = np.resize(self._evaluated, self._capacity)
        grown = {name: self._unknown() for name in self._columns}
        for name, column in self._columns.items():
            grown[name][: self._length] = column[: self._length]
        self._columns = grown
