"""What was measured of each configuration of a recording, kept as columns: a twentieth of what objects would take."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ..measurement import Configuration, Depth, Measurement, State
from ..space.result_table import STATES

MAXIMUM_CELLS = 2**25  # entries x columns: 256 MiB
MAXIMUM_COLUMNS = 2000
_CODE_OF_STATE = {state: code for code, state in enumerate(STATES)}
_UNKNOWN = array("d", [math.nan])
_OF_ENERGY = re.compile("energy|power|watt|joule", re.IGNORECASE)
_OF_A_WHOLE = re.compile(r"(util|occupancy|busy).*(percent|pct|%)|(percent|pct).*(util|occupancy|busy)", re.IGNORECASE)


class Facts(NamedTuple):
    """A `Measurement` without its row and configuration."""

    state: State
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    error: str = ""
    window_ns: tuple[int, int] | None = None
    observed_clock_mhz: float = math.nan
    event_reasons: int = 0
    power_source: str = ""
    source: str = ""
    timestamp_s: float = math.nan
    cost_s: float = 0.0
    message: str = ""
    depth: Depth = Depth.ENERGY
    board: str = ""

    def of(self, row: int, configuration: Configuration) -> Measurement:
        """The measurement of a row."""
        return Measurement(row=row, configuration=configuration, **self._asdict())


def possible(facts: Facts) -> tuple[Facts, tuple[str, ...]]:
    """What was measured, without readings that no run can have, and which these are.

    Tools write 0 or -1 for what they did not measure. A time of nothing is a failed run; an energy or a power of
    nothing, and a share of the board above 100 %, are not known; nor is an interval that does not hold its figure.
    """
    values, intervals = facts.values, facts.intervals
    if facts.state is not State.OK:
        return facts, ()
    if (time_s := values.get("time_s", 1.0)) <= 0.0:
        error = f"its time is {time_s:g} s: it was not measured"
        return facts._replace(state=State.RUNTIME, values={}, intervals={}, error=error), ()
    below = values.get("energy_j", 1.0) <= 0.0 or values.get("power_w", 1.0) <= 0.0
    wrong = {
        name
        for name, value in values.items()
        if (value > 100.0 and _OF_A_WHOLE.search(name)) or (below and value <= 0.0 and _OF_ENERGY.search(name))
    }
    outside = {n for n, (low, high) in intervals.items() if n in values and _is_outside(values[n], low, high)} - wrong
    if not wrong and not outside:
        return facts, ()
    kept = {name: value for name, value in values.items() if name not in wrong}
    held = {name: ends for name, ends in intervals.items() if name not in wrong | outside}
    found = sorted(f"{name} of {values[name]:.4g}" for name in wrong)
    found += sorted(f"the interval of {name}, which does not hold it" for name in outside)
    state, error = (facts.state, facts.error) if kept else (State.RUNTIME, f"{found[0]} cannot be")
    return facts._replace(state=state, values=kept, intervals=held, error=error), tuple(found)


def _is_outside(value: float, low: float, high: float) -> bool:
    """Beyond an end of an interval by more than figures are rounded by; unknown ends bound nothing."""
    return low > high or value < low - 1e-6 * abs(value) or value > high + 1e-6 * abs(value)


_Texts = tuple[str, str, str, str, str, int, Depth]  # error, message, power source, source, board, event reasons, depth
_Columns = dict[str, "array[float]"]


class FactColumns:
    """Facts by index, in the order in which they were put; facts put at a known index replace those there."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._state = array("B")
        self._texts = array("L")  # index into the distinct ones
        self._times: _Columns = {"observed_clock_mhz": array("d"), "timestamp_s": array("d"), "cost_s": array("d")}
        self._values: _Columns = {}
        self._lows: _Columns = {}  # of the intervals
        self._highs: _Columns = {}
        self._windows: dict[int, tuple[int, int]] = {}
        self._code_of_texts: dict[_Texts, int] = {}
        self._distinct_texts: list[_Texts] = []

    def __len__(self) -> int:
        return len(self._state)

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of all values, in the order in which they first appeared."""
        return tuple(self._values)

    @property
    def sources(self) -> frozenset[str]:
        """Where the measurements come from: nvml, simulated or recorded."""
        return frozenset(source for _, _, _, source, *_ in self._distinct_texts)

    def values(self, name: str) -> npt.NDArray[np.float64]:
        """One value of every index, NaN where it is not known. Raises KeyError for an unknown name."""
        return np.array(self._values[name])

    def missing(self) -> list[str]:
        """What some of the entries that worked lack: a line for the values that the same entries lack."""
        worked = np.array(self._state) == _CODE_OF_STATE[State.OK]
        names_of: dict[bytes, list[str]] = {}
        for name in self._values:
            names_of.setdefault((worked & np.isnan(self.values(name))).tobytes(), []).append(name)
        lines = {", ".join(names[:8]) + ", ..." * (len(names) > 8): sum(rows) for rows, names in names_of.items()}
        return [f"{names}: no number in {n} of {worked.sum()} measurements" for names, n in lines.items() if n]

    def put(self, at: int, facts: Facts) -> None:
        """Keep facts at the next index, or in place of those at an earlier one. Raises InputError: too many."""
        last = len(self._state)
        self._append(facts)
        if at < last:  # rare: of two entries for one configuration the later counts
            columns: list[array[Any]] = [self._state, self._texts]
            columns += [column for group in self._groups() for column in group.values()]
            for column in columns:
                column[at] = column.pop()
            self._windows.pop(at, None)
        if facts.window_ns is not None:
            self._windows[at] = facts.window_ns

    def facts(self, at: int) -> Facts:
        """The facts at one index."""
        error, message, power_source, source, board, reasons, depth = self._distinct_texts[self._texts[at]]
        clock, timestamp_s, cost_s = (column[at] for column in self._times.values())
        highs = self._highs
        return Facts(
            STATES[self._state[at]],
            {name: value for name, column in self._values.items() if (value := column[at]) == value},
            {name: (low, highs[name][at]) for name, column in self._lows.items() if (low := column[at]) == low},
            error,
            self._windows.get(at),
            clock,
            reasons,
            power_source,
            source,
            timestamp_s,
            cost_s,
            message,
            depth,
            board,
        )

    def _groups(self) -> tuple[_Columns, ...]:
        return self._times, self._values, self._lows, self._highs

    def _append(self, facts: Facts) -> None:
        if len(self._state) % 4096 == 0:
            self._check_room(0)
        ends = facts.intervals.items()
        times = {
            "observed_clock_mhz": facts.observed_clock_mhz,
            "timestamp_s": facts.timestamp_s,
            "cost_s": facts.cost_s,
        }
        self._extend(self._times, times)
        self._extend(self._values, facts.values)
        self._extend(self._lows, {name: low for name, (low, _) in ends})
        self._extend(self._highs, {name: high for name, (_, high) in ends})
        words = facts.error, facts.message, facts.power_source, facts.source, facts.board
        texts: _Texts = (*words, facts.event_reasons, facts.depth)
        code = self._code_of_texts.setdefault(texts, len(self._distinct_texts))
        if code == len(self._distinct_texts):
            self._distinct_texts.append(texts)
        self._texts.append(code)
        self._state.append(_CODE_OF_STATE[facts.state])

    def _extend(self, columns: _Columns, figures: Mapping[str, float]) -> None:
        """Add one figure to each column, NaN where there is none; a new name begins a column."""
        new = [name for name in figures if name not in columns]
        if new:
            self._check_room(len(new))
            columns |= {name: _UNKNOWN * len(self._state) for name in new}
        for name, column in columns.items():
            column.append(figures.get(name, math.nan))

    def _check_room(self, more: int) -> None:
        """Raise InputError where so many more columns would not fit."""
        length = len(self._state)
        columns = 1 + more + sum(map(len, self._groups()))
        if (length + 1) * columns > MAXIMUM_CELLS or columns > MAXIMUM_COLUMNS:
            raise InputError(
                f"{columns} columns of {length} entries are more than fit into memory", self._where, "split the file"
            )
