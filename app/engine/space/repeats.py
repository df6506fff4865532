"""A parameter that only repeats a configuration, such as REPEAT = 0, 1, 2, ...: it chooses nothing.

Its readings are of one configuration: their mean is compared, and their scatter shows how far a single reading can be
trusted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..metering.confidence import student_t
from ..results.measurement import Measurement, State
from .result_table import STATES, ResultTable
from .search_space import Parameter, SearchSpace

if TYPE_CHECKING:
    from ..results.measurement import Value

Indices = npt.NDArray[np.int64]

_NAME = re.compile(  # not in the plural: that is how many there are
    r"(repeat|repetition|replicate|replica|rep|run|trial|iteration|iter)([_ -]?(id|idx|index|no|nr|num|number))?",
    re.IGNORECASE,
)
_CERTAIN = re.compile(r"repeat", re.IGNORECASE)
_CHANGES = 1.5  # ratio of times from one value to another, beyond which the parameter does more than repeat
_SLOW = 4.0  # ratio of the time of a first run to that of others, beyond which it loads, compiles or fills a cache
_ONLY = Parameter("configuration", ("the only one",))  # a space needs a parameter
_SHOWN = ("time_s", "energy_j", "power_w")


@dataclass(frozen=True, slots=True)
class Folded:
    """A table with one entry per configuration: the mean of its repeats."""

    table: ResultTable
    index_of: Indices  # of each entry of the original table, into the new one
    names: tuple[str, ...]  # of the parameters that only repeat
    repeats: tuple[int, int]  # least and most that succeeded, of a configuration
    scatter: Mapping[str, float]  # standard deviation of single readings over their mean: the median configuration's

    @property
    def single(self) -> bool:
        """Whether there is one configuration only, as every parameter repeats."""
        return self.table.space.parameters == (_ONLY,)

    @property
    def words(self) -> str:
        """One line about the repeats."""
        low, high = self.repeats
        times = f"{low}" if low == high else f"{low} to {high}"
        shares = [f"{name} {100 * value:.2g} %" for name, value in self.scatter.items()]
        scatter = f"; single readings scatter by {', '.join(shares)} (standard deviation)" if shares else ""
        return f"{', '.join(self.names)} only repeats each configuration ({times} times): means are compared{scatter}"


def is_repeat(name: str, values: Sequence[object]) -> bool:
    """Whether a parameter or column of this name and these values counts repeats: 0, 1, 2, ... or from 1 on."""
    if not _NAME.fullmatch(name):
        return False
    try:
        numbers = sorted({int(str(value)) for value in values})
    except ValueError:
        return False
    return len(numbers) > 1 and numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def repeat_names(table: ResultTable) -> tuple[str, ...]:
    """The parameters of a session that only repeat its configurations.

    One of a name that may mean something else, such as `iteration`, must also leave the times much as they are, but
    for the first, which may be slow: times that rise or fall with it are those of other work, and others scatter.
    """
    results = []
    for parameter in table.space.parameters:
        if parameter.device_setting or not is_repeat(parameter.name, parameter.values):
            continue
        if _CERTAIN.match(parameter.name) or not _changes_times(table, parameter.name):
            results.append(parameter.name)
    return tuple(results)


def fold(table: ResultTable) -> Folded | None:
    """The table with the mean of the repeats of each configuration; None if no parameter only repeats."""
    names = repeat_names(table)
    if not names:
        return None
    length = len(table)  # the engine may append meanwhile
    space, row_of = _space_without(table.space, names)
    members: dict[int, list[int]] = {}
    for index, row in enumerate(row_of[table.rows()[:length]].tolist()):
        members.setdefault(row, []).append(index)
    new = ResultTable(space)
    new.origin = table.origin
    index_of = np.empty(length, dtype=np.int64)
    counts: list[int] = []
    deviations: dict[str, list[float]] = {}
    for place, (row, indices) in enumerate(members.items()):
        index_of[indices] = place
        measurements = [table.measurement(index) for index in indices]
        succeeded = [m for m in measurements if m.state is State.OK]
        new.append(_mean_of(succeeded or measurements[:1], row, space.configuration(row)))
        if not succeeded:
            continue
        counts.append(len(succeeded))
        for name in _SHOWN:
            values = _known(succeeded, name)
            if len(values) > 1 and values.mean() > 0:
                deviations.setdefault(name, []).append(float(values.std(ddof=1) / values.mean()))
    scatter = {name: float(np.median(deviation)) for name, deviation in deviations.items()}
    folded = Folded(new, index_of, names, (min(counts, default=0), max(counts, default=0)), scatter)
    new.space = replace(space, notes=(*space.notes, folded.words))
    return folded


def readings_beside(table: ResultTable, index: int) -> Indices:
    """The indices of all readings of one configuration, ascending; of one alone where no parameter only repeats."""
    names = repeat_names(table)
    if not names:
        return np.array([index])
    kept = [place for place, parameter in enumerate(table.space.parameters) if parameter.name not in names]
    codes = table.space.codes[table.rows()[: len(table)]][:, kept]
    return np.flatnonzero((codes == codes[index]).all(axis=1))


def mean_of_readings(table: ResultTable, indices: Indices) -> Measurement:
    """One measurement with the means of those readings that succeeded, and the 95 % intervals of these means."""
    readings = [table.measurement(int(index)) for index in indices]
    succeeded = [m for m in readings if m.state is State.OK] or readings[:1]
    return _mean_of(succeeded, succeeded[0].row, succeeded[0].configuration) if len(readings) > 1 else readings[0]


def of_each_reading(table: ResultTable, column: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A column in which every successful reading has the mean over the repeats of its configuration.

    Where no parameter only repeats it is the column as it was. Shape (n,); failed readings stay as they are.
    """
    names = repeat_names(table)
    if not names:
        return column
    _, row_of = _space_without(table.space, names)
    indices = np.flatnonzero((table.states()[: len(column)] == STATES.index(State.OK)) & np.isfinite(column))
    _, place = np.unique(row_of[table.rows()[indices]], return_inverse=True)
    result = np.array(column)
    result[indices] = (np.bincount(place, weights=column[indices]) / np.bincount(place))[place]
    return result


def of_configurations(table: ResultTable, column: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A column in which the first successful reading of each configuration has the mean of its repeats, the others NaN.

    Where no parameter only repeats it is the column as it was. Shape (n,); failed readings are NaN already.
    """
    names = repeat_names(table)
    if not names:
        return column
    _, row_of = _space_without(table.space, names)
    group = row_of[table.rows()[: len(column)]]
    indices = np.flatnonzero(np.isfinite(column))
    _, first, place = np.unique(group[indices], return_index=True, return_inverse=True)
    means = np.full(len(column), np.nan)
    means[indices[first]] = np.bincount(place, weights=column[indices]) / np.bincount(place)
    return means


# --- inside -----------------------------------------------------------------------------------------------------------


def _changes_times(table: ResultTable, name: str) -> bool:
    length = len(table)  # the engine may append meanwhile
    times = table.values("time_s")[:length]
    values = table.values(name)[:length]
    usable = np.isfinite(times) & (times > 0) & (table.states()[:length] == STATES.index(State.OK))
    _, row_of = _space_without(table.space, (name,))
    group = row_of[table.rows()[:length]]
    if not usable.any():
        return False
    _, place = np.unique(group[usable], return_inverse=True)
    log = np.log(times[usable])
    log = log - (np.bincount(place, weights=log) / np.bincount(place))[place]  # over the mean of its configuration
    of_each = [log[values[usable] == value] for value in np.unique(values[usable])]
    levels = np.array([np.median(each) for each in of_each])
    if np.ptp(levels) <= math.log(_CHANGES):
        return False
    if levels[0] == levels.max():  # a slow start; where it is slower still, of any configuration, it did more
        if of_each[0].max() - levels[1:].max() > math.log(_SLOW):
            return True
        levels = levels[1:]
    steps = np.diff(levels)
    return float(np.ptp(levels)) > math.log(_CHANGES) and bool((steps > 0).all() or (steps < 0).all())


def _space_without(space: SearchSpace, names: Sequence[str]) -> tuple[SearchSpace, Indices]:
    """The space without these parameters, and the row there of each row here."""
    kept = [index for index, parameter in enumerate(space.parameters) if parameter.name not in names]
    repeats = math.prod(len(parameter.values) for parameter in space.parameters if parameter.name in names)
    if not kept:
        codes = np.zeros((min(space.size, 1), 1), dtype=space.codes.dtype)
        return SearchSpace((_ONLY,), codes, 1, notes=space.notes), np.zeros(space.size, dtype=np.int64)
    codes, row_of = np.unique(space.codes[:, kept], axis=0, return_inverse=True)
    smaller = replace(
        space,
        parameters=tuple(space.parameters[place] for place in kept),
        codes=codes,
        cartesian=max(1, space.cartesian // repeats),
    )
    return smaller, np.asarray(row_of, dtype=np.int64).reshape(-1)


def _mean_of(measurements: Sequence[Measurement], row: int, configuration: Mapping[str, Value]) -> Measurement:
    """One measurement with the means, and the 95 % intervals of these means by Student's t."""
    first = measurements[0]
    values: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    for name in dict.fromkeys(name for m in measurements for name in m.values):
        readings = [m.values[name] for m in measurements if math.isfinite(m.values.get(name, math.nan))]
        if len(readings) == 1:
            values[name] = readings[0]
            if name in first.intervals:
                intervals[name] = first.intervals[name]
        elif readings:
            known = np.array(readings)
            values[name] = mean = float(known.mean())
            half = student_t(len(known) - 1) * float(known.std(ddof=1)) / math.sqrt(len(known))
            intervals[name] = (mean - half, mean + half)
    clocks = [m.observed_clock_mhz for m in measurements if math.isfinite(m.observed_clock_mhz)]
    reasons = 0
    for measurement in measurements:
        reasons |= measurement.event_reasons
    return replace(
        first,
        row=row,
        configuration=dict(configuration),
        values=values,
        as_measured={},
        intervals=intervals,
        window_ns=first.window_ns if len(measurements) == 1 else None,
        observed_clock_mhz=float(np.mean(clocks)) if clocks else math.nan,
        event_reasons=reasons,
        cost_s=math.fsum(m.cost_s for m in measurements if math.isfinite(m.cost_s)),
    )


def _known(measurements: Sequence[Measurement], name: str) -> npt.NDArray[np.float64]:
    values = np.array([m.values.get(name, math.nan) for m in measurements], dtype=np.float64)
    return values[np.isfinite(values)]
