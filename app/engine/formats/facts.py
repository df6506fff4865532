"""What a recording tells of its configurations, kept as columns: a twentieth of what the objects would take."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...errors import InputError
from ..measurement import Configuration, Measurement, State
from ..space.result_table import STATES

MAXIMUM_CELLS = 2**25  # entries x columns: 256 MiB
_CODE_OF_STATE = {state: code for code, state in enumerate(STATES)}
_UNKNOWN = array("d", [math.nan])


class Facts(NamedTuple):
    """A `Measurement` without its row and configuration."""

    state: State
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    error: str
    window_ns: tuple[int, int] | None
    observed_clock_mhz: float
    event_reasons: int
    power_source: str
    source: str
    timestamp_s: float
    cost_s: float
    message: str = ""

    def of(self, row: int, configuration: Configuration) -> Measurement:
        """The measurement of a row."""
        return Measurement(row=row, configuration=configuration, **self._asdict())


_Words = tuple[str, str, str, str, int]  # error, message, meter, source, event reasons


class FactColumns:
    """Facts by index, in the order in which they were put; one put twice is replaced."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._state = array("B")
        self._words = array("L")  # index into the distinct ones
        self._times = (array("d"), array("d"), array("d"))  # observed clock, time stamp, cost
        self._values: dict[str, array[float]] = {}
        self._ends: dict[str, tuple[array[float], array[float]]] = {}  # of the intervals
        self._windows: dict[int, tuple[int, int]] = {}
        self._code_of_words: dict[_Words, int] = {}
        self._distinct_words: list[_Words] = []

    def __len__(self) -> int:
        return len(self._state)

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of all values, in the order in which they first appeared."""
        return tuple(self._values)

    @property
    def sources(self) -> frozenset[str]:
        """Where the measurements come from: nvml, simulated or recorded."""
        return frozenset(source for _, _, _, source, _ in self._distinct_words)

    def put(self, at: int, facts: Facts) -> None:
        """Keep facts under the next index, or in place of those of an earlier one. Raises InputError: too many."""
        if at == len(self._state):
            self._append(facts)
        else:
            self._replace(at, facts)
        if facts.window_ns is not None:
            self._windows[at] = facts.window_ns

    def facts(self, at: int) -> Facts:
        """The facts of one index."""
        error, message, power_source, source, reasons = self._distinct_words[self._words[at]]
        clock, timestamp_s, cost_s = (column[at] for column in self._times)
        values = {name: value for name, column in self._values.items() if (value := column[at]) == value}
        intervals = {name: (low, high[at]) for name, (column, high) in self._ends.items() if (low := column[at]) == low}
        return Facts(
            STATES[self._state[at]],
            values,
            intervals,
            error,
            self._windows.get(at),
            clock,
            reasons,
            power_source,
            source,
            timestamp_s,
            cost_s,
            message,
        )

    def _append(self, facts: Facts) -> None:
        length = len(self._state)
        for name in facts.values:
            if name not in self._values:
                self._check_room(length)
                self._values[name] = _UNKNOWN * length
        for name in facts.intervals:
            if name not in self._ends:
                self._check_room(length)
                self._ends[name] = (_UNKNOWN * length, _UNKNOWN * length)
        for name, column in self._values.items():
            column.append(facts.values.get(name, math.nan))
        for name, (low, high) in self._ends.items():
            ends = facts.intervals.get(name, (math.nan, math.nan))
            low.append(ends[0])
            high.append(ends[1])
        for column, figure in zip(
            self._times, (facts.observed_clock_mhz, facts.timestamp_s, facts.cost_s), strict=True
        ):
            column.append(figure)
        self._state.append(_CODE_OF_STATE[facts.state])
        self._words.append(self._code(facts))
        if length % 4096 == 0:
            self._check_room(length)

    def _replace(self, at: int, facts: Facts) -> None:
        """Rare: of two entries for one configuration the later counts."""
        last = len(self._state)
        self._append(facts)
        columns: list[array[Any]] = [self._state, self._words, *self._times, *self._values.values()]
        columns += [column for ends in self._ends.values() for column in ends]
        for column in columns:
            column[at] = column[last]
            del column[last]
        self._windows.pop(at, None)

    def _code(self, facts: Facts) -> int:
        words = (facts.error, facts.message, facts.power_source, facts.source, facts.event_reasons)
        code = self._code_of_words.setdefault(words, len(self._distinct_words))
        if code == len(self._distinct_words):
            self._distinct_words.append(words)
        return code

    def _check_room(self, length: int) -> None:
        columns = len(self._values) + 2 * len(self._ends) + 4
        if (length + 1) * columns > MAXIMUM_CELLS or columns > 2000:
            raise InputError(
                f"{columns} columns of {length} entries are more than fit into memory", self._where, "split the file"
            )
