"""`ResultTable`: every measurement of a session as growing columns. One writer (the engine thread), many readers.

Views and analysis hold index numbers into it, never copies of measurements. A reader takes `len(table)` first and looks
only below it, or reads `table.so_far()`, so no lock is needed: columns are filled before the length moves.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ..measurement import Measurement, State
from .freed_aside import FreedAside
from .search_space import SearchSpace

STATES: tuple[State, ...] = tuple(State)
_STATE_CODE = {state: code for code, state in enumerate(STATES)}


class ResultTable:
    """Columns: `row` (of the search space), `state` (code into STATES), and one float64 column per named value."""

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self._length = 0
        self._capacity = 1024
        self._row = np.empty(self._capacity, dtype=np.int64)
        self._state = np.empty(self._capacity, dtype=np.uint8)
        self._columns: dict[str, npt.NDArray[np.float64]] = {}
        self._details: FreedAside[Measurement] = FreedAside()

    def __len__(self) -> int:
        return self._length

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the value columns, in the order in which they first appeared."""
        return tuple(self._columns)

    def so_far(self) -> ResultTable:
        """What is there now, as a table that does not grow: for who reads several columns. Copies no column."""
        length = self._length
        kept = copy.copy(self)
        kept._length = length
        return kept

    def append(self, measurement: Measurement) -> int:
        """Add one measurement (engine thread only); its index."""
        at = self._length
        if at == self._capacity:
            self._grow()
        self._row[at] = measurement.row
        self._state[at] = _STATE_CODE[measurement.state]
        for name in measurement.values:
            if name not in self._columns:
                self._columns = {**self._columns, name: np.full(self._capacity, np.nan)}
        for name, column in self._columns.items():
            column[at] = measurement.values.get(name, math.nan)
        self._details.append(measurement)
        self._length = at + 1
        return at

    def extend(self, measurements: Iterable[Measurement]) -> None:
        """Add many (engine thread only), column by column."""
        added = list(measurements)
        start, stop = self._length, self._length + len(added)
        while stop > self._capacity:
            self._grow()
        self._row[start:stop] = [m.row for m in added]
        self._state[start:stop] = [_STATE_CODE[m.state] for m in added]
        new = dict.fromkeys(name for m in added for name in m.values if name not in self._columns)
        if new:
            self._columns = {**self._columns, **{name: np.full(self._capacity, np.nan) for name in new}}
        for name, column in self._columns.items():
            column[start:stop] = [m.values.get(name, math.nan) for m in added]
        self._details.extend(added)
        self._length = stop

    def measurement(self, index: int) -> Measurement:
        """Everything known of one measurement."""
        return self._details[index]

    def rows(self, start: int = 0) -> npt.NDArray[np.int64]:
        """Rows of the search space, from `start` on; a view."""
        return self._row[start : self._length]

    def states(self, start: int = 0) -> npt.NDArray[np.uint8]:
        """Codes into STATES, from `start` on; a view."""
        return self._state[start : self._length]

    def values(self, name: str, start: int = 0) -> npt.NDArray[np.float64]:
        """One column from `start` on, NaN where a measurement lacks it; a view. Parameters and settings work too."""
        length = self._length
        if name in self._columns:
            return self._columns[name][start:length]
        if name in self.space.names:
            column = self.space.column(name, self._row[start:length])
            try:
                return column.astype(np.float64)
            except ValueError:  # a parameter of words: its place in the list
                codes = self.space.codes[self._row[start:length], self.space.names.index(name)]
                return np.asarray(codes, dtype=np.float64)
        return np.full(length - start, np.nan)

    def failures(self) -> dict[str, int]:
        """Count of failed configurations by state, only the states that occurred."""
        counts = np.bincount(self.states(), minlength=len(STATES))
        return {state.value: int(counts[i]) for i, state in enumerate(STATES) if state is not State.OK and counts[i]}

    def _grow(self) -> None:
        self._capacity *= 2
        self._row = np.resize(self._row, self._capacity)
        self._state = np.resize(self._state, self._capacity)
        grown = {name: np.full(self._capacity, np.nan) for name in self._columns}
        for name, column in self._columns.items():
            grown[name][: self._length] = column[: self._length]
        self._columns = grown
