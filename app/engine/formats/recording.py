"""`Recording`: a file of measurements, whatever its format, as a search space with one measurement per row.

The measurements are kept as columns, which take a twentieth of the memory of objects.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.files import title_of
from ..results.measurement import Configuration, Depth, Measurement, State, Value
from ..results.objectives import Goal, Objective, likely_goal
from ..results.settings import UNTOUCHED
from ..space.result_table import STATES, ResultTable
from ..space.search_space import SearchSpace, space_and_order
from .headings import Column
from .names import SETTING_NAMES, units_of

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
    intervals: Mapping[str, tuple[float, float]] = MappingProxyType({})
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
    faults = sorted(f"{name} of {values[name]:.4g}" for name in wrong)
    faults += sorted(f"the interval of {name}, which does not hold it" for name in outside)
    state, error = (facts.state, facts.error) if kept else (State.RUNTIME, f"{faults[0]} cannot be")
    return facts._replace(state=state, values=kept, intervals=held, error=error), tuple(faults)


def _is_outside(value: float, low: float, high: float) -> bool:
    """Beyond an end of an interval by more than figures are rounded by; unknown ends bound nothing."""
    return low > high or value < low - 1e-6 * abs(value) or value > high + 1e-6 * abs(value)


_TEXTS = ("error", "message", "power_source", "source", "board", "event_reasons", "depth")  # few are different
_TIMES = ("observed_clock_mhz", "timestamp_s", "cost_s")
_Columns = dict[str, "array[float]"]


class FactColumns:
    """Facts by index, in the order in which they were put; facts put at a known index replace those there."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._state = array("B")
        self._texts = array("L")  # index into the distinct ones
        self._times: _Columns = {name: array("d") for name in _TIMES}
        self._values: _Columns = {}
        self._lows: _Columns = {}  # of the intervals
        self._highs: _Columns = {}
        self._groups = self._times, self._values, self._lows, self._highs
        self._windows: dict[int, tuple[int, int]] = {}
        self._code_of_texts: dict[tuple[Any, ...], int] = {}
        self._distinct_texts: list[tuple[Any, ...]] = []

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of all values, in the order in which they first appeared."""
        return tuple(self._values)

    @property
    def sources(self) -> frozenset[str]:
        """Where the measurements come from: nvml, simulated or recorded."""
        return frozenset(texts[_TEXTS.index("source")] for texts in self._code_of_texts)

    def values(self, name: str) -> npt.NDArray[np.float64]:
        """One value of every index, NaN if it is not known. Raises KeyError for an unknown name."""
        return np.array(self._values[name])

    def missing(self) -> list[str]:
        """What some of the entries that worked lack: a line for the values that the same entries lack."""
        worked = np.array(self._state) == _CODE_OF_STATE[State.OK]
        names_of: dict[bytes, list[str]] = {}
        for name in self._values:
            names_of.setdefault((worked & np.isnan(self.values(name))).tobytes(), []).append(name)
        lines = {", ".join(names[:8]) + ", ..." * (len(names) > 8): sum(rows) for rows, names in names_of.items()}
        return [f"{names}: no number in {n} of {worked.sum()} measurements" for names, n in lines.items() if n]

    def put(self, index: int, facts: Facts) -> None:
        """Keep facts at the next index, or in place of those at an earlier one. Raises InputError: too many."""
        last = len(self._state)
        self._append(facts)
        if index < last:  # rare: of two entries for one configuration the later counts
            columns: list[array[Any]] = [self._state, self._texts]
            columns += [column for group in self._groups for column in group.values()]
            for column in columns:
                column[index] = column.pop()
            self._windows.pop(index, None)
        if facts.window_ns is not None:
            self._windows[index] = facts.window_ns

    def facts(self, index: int) -> Facts:
        """The facts at one index."""
        stated: dict[str, Any] = {name: column[index] for name, column in self._times.items()}
        stated |= zip(_TEXTS, self._distinct_texts[self._texts[index]], strict=True)
        highs = self._highs
        return Facts(
            STATES[self._state[index]],
            {name: value for name, column in self._values.items() if (value := column[index]) == value},
            {name: (low, highs[name][index]) for name, column in self._lows.items() if (low := column[index]) == low},
            window_ns=self._windows.get(index),
            **stated,
        )

    def _append(self, facts: Facts) -> None:
        if len(self._state) % 4096 == 0:
            self._check_room(0)
        times = {name: getattr(facts, name) for name in _TIMES}
        lows, highs = ({name: ends[at] for name, ends in facts.intervals.items()} for at in (0, 1))
        for columns, figures in zip(self._groups, (times, facts.values, lows, highs), strict=True):
            self._extend(columns, figures)
        texts = tuple(getattr(facts, name) for name in _TEXTS)
        code = self._code_of_texts.setdefault(texts, len(self._distinct_texts))
        if code == len(self._distinct_texts):
            self._distinct_texts.append(texts)
        self._texts.append(code)
        self._state.append(_CODE_OF_STATE[facts.state])

    def _extend(self, columns: _Columns, figures: Mapping[str, float]) -> None:
        """Add one figure to each column, NaN if there is none; a new name begins a column."""
        new = [name for name in figures if name not in columns]
        if new:
            self._check_room(len(new))
            columns |= {name: _UNKNOWN * len(self._state) for name in new}
        for name, column in columns.items():
            column.append(figures.get(name, math.nan))

    def _check_room(self, more: int) -> None:
        """Raise InputError where so many more columns would not fit."""
        length = len(self._state)
        columns = 1 + more + sum(map(len, self._groups))
        if (length + 1) * columns > MAXIMUM_CELLS or columns > MAXIMUM_COLUMNS:
            raise InputError(
                f"{columns} columns of {length} entries are more than fit into memory", self._where, "split the file"
            )


MAXIMUM_ENTRIES = 1_000_000
_MAXIMUM_CARTESIAN = 2**62  # the space names its rows by a key of 64 bits
MAXIMUM_PARAMETERS = 100
_SAME = 0.005  # relative; figures in a file are rounded
_FEWEST = 3  # rows in which two values must agree
_SIMULATED = "the figures were simulated: they come from a model of the board, not from one"


@dataclass(frozen=True, slots=True)
class Recording:
    """Every configuration that a session measured, of this program or another one."""

    path: Path
    device: str
    kernel: str
    problem_size: str
    objective: Objective  # what the session worked for; its direction is guessed where the file does not state it
    units: Mapping[str, str]  # unit of a value where it does not follow from the name
    notes: tuple[str, ...]  # what the user should know of the file
    _space: SearchSpace
    _columns: FactColumns
    _index: npt.NDArray[np.int64]  # of each row, into the columns
    read_with: Mapping[str, str] = field(default_factory=dict)  # of a table: the options that name its columns
    is_named: bool = True  # False: a table that names its board and no kernel; `kernel` is the file's name
    columns: tuple[Column, ...] = ()  # of a table: what each is, and why
    still_open: bool = False  # its last bracket is not there: a tuner still writes it, or was ended

    def __len__(self) -> int:
        return len(self._index)

    def space(self) -> SearchSpace:
        """The configurations of the file as a search space: row i is `measurement(i)`."""
        return self._space

    def measurement(self, row: int) -> Measurement:
        """The measurement of one row of `space()`."""
        return self._columns.facts(int(self._index[row])).of(row, self._space.configuration(row))

    def measurements(self) -> tuple[Measurement, ...]:
        """One measurement per row of `space()`, in its order."""
        return tuple(self.measurement(row) for row in range(len(self)))

    def in_file_order(self) -> Iterator[Measurement]:
        """The measurements in the order of the file."""
        return (self.measurement(row) for row in np.argsort(self._index).tolist())

    def table(self) -> ResultTable:
        """All measurements as columns and states, in the order of the file."""
        table = ResultTable(self._space)
        table.extend(self.in_file_order())
        return table

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of all values in the file, in the order in which they first appear."""
        return self._columns.value_names

    @property
    def names_at_time(self) -> frozenset[str]:
        """The values that follow from the time per launch: times, and what is proportional to one or to its inverse.

        None if the file holds no time.
        """
        if "time_s" not in self.value_names:
            return frozenset()
        column = self._columns.values
        return frozenset(name for name in self.value_names if _proportional(column(name), column("time_s")))

    @property
    def simulated(self) -> bool:
        """Whether something in it comes from a simulated board."""
        return "simulated" in self._columns.sources

    @property
    def goal(self) -> Goal:
        """The objective with its direction."""
        return self.objective.goal


def _proportional(values: npt.NDArray[np.float64], time_s: npt.NDArray[np.float64]) -> bool:
    """Whether a value, or its inverse, is the same multiple of the time everywhere."""
    both = np.isfinite(values) & np.isfinite(time_s) & (values != 0) & (time_s > 0)
    if both.sum() < _FEWEST:
        return False
    logs, log_times = np.log(np.abs(values[both])), np.log(time_s[both])
    return any(float(np.ptp(logs + sign * log_times)) < _SAME for sign in (1, -1))


def _level(value: Value) -> Value:
    """A level of a device setting: tables have 0 or -1 where nothing was set."""
    return UNTOUCHED if isinstance(value, int | float) and value <= 0 else value


class RecordingBuilder:
    """Collects entries; of two for one configuration the later counts."""

    def __init__(self, path: Path, names: Sequence[str], listed: Mapping[str, Sequence[Value]] | None = None) -> None:
        self._path = path
        self._names = tuple(names)
        self._settings = [place for place, name in enumerate(names) if name in SETTING_NAMES]
        given = {name: tuple((listed or {}).get(name, ())) for name in names}
        self._listed = {n: tuple(map(_level, v)) if n in SETTING_NAMES else v for n, v in given.items()}
        self._index_of: dict[tuple[Value, ...], int] = {}
        self._columns = FactColumns(str(path))
        self._impossible: dict[int, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._index_of)

    def add(self, configuration: tuple[Value, ...], facts: Facts) -> Facts:
        """Add what was measured of a configuration (values in the order of the names), as far as it can be.

        Returns what is kept of it. Raises InputError.
        """
        if self._settings:
            levels = {place: _level(configuration[place]) for place in self._settings}
            configuration = tuple(levels.get(place, value) for place, value in enumerate(configuration))
        index = self._index_of.setdefault(configuration, len(self._index_of))
        if index >= MAXIMUM_ENTRIES:
            raise InputError(f"more than {MAXIMUM_ENTRIES} entries", str(self._path), "split the file")
        kept, left_out = possible(facts)
        if left_out or index in self._impossible:
            self._impossible[index] = left_out
        self._columns.put(index, kept)
        return kept

    def facts(self, index: int) -> Facts:
        """What was added of the configuration with that index, in the order of arrival."""
        return self._columns.facts(index)

    def finish(
        self,
        *,
        device: str = "",
        kernel: str = "",
        problem_size: str = "",
        objective: Objective | None = None,
        units: Mapping[str, str] | None = None,
        notes: Sequence[str] = (),
        is_ours: bool = False,
    ) -> Recording:
        """The recording of all entries; its notes name what some of them lack, unless the file is this program's own.

        Raises InputError if there are none, or the space is too large.
        """
        where = str(self._path)
        if not self._index_of:
            raise InputError("the file holds no entry", where, "let the tuning run measure something first")
        space, index = self._space(where)
        simulated = (_SIMULATED,) if "simulated" in self._columns.sources else ()
        return Recording(
            path=self._path,
            device=device or "unknown device",
            kernel=kernel or title_of(self._path),
            problem_size=problem_size,
            objective=objective or Objective(likely_goal("time")),
            units=units_of(self._columns.value_names, units),
            notes=(*notes, *self._left_out(), *([] if is_ours else self._columns.missing()), *simulated),
            _space=space,
            _columns=self._columns,
            _index=index,
        )

    def _left_out(self) -> list[str]:
        """What cannot be, in a line."""
        reasons = [text for value in self._impossible.values() for text in value]
        if not reasons:
            return []
        listed = ", ".join(list(dict.fromkeys(reasons))[:4])
        return [f"{len(reasons)} figures that were not measured, or cannot be, are left out: {listed}"]

    def _space(self, where: str) -> tuple[SearchSpace, npt.NDArray[np.int64]]:
        """The space of the entries, and the entry of each of its rows."""
        space, index = space_and_order(self._listed, list(self._index_of))
        if space.cartesian >= _MAXIMUM_CARTESIAN:
            raise InputError("the parameters span more than 2^62 combinations", where, "check the parameters' values")
        parameters = tuple(replace(p, device_setting=p.name in SETTING_NAMES) for p in space.parameters)
        return replace(space, parameters=parameters), index
