"""`Recording`: a file of measurements, whatever its format, as a search space with one measurement per row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...files import title_of
from ..measurement import Measurement, Value
from ..objectives import Goal, Objective, likely_goal
from ..space.build import space_and_order
from ..space.result_table import ResultTable
from ..space.search_space import SearchSpace
from .facts import FactColumns, Facts, possible
from .names import SETTING_NAMES, units_of

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

        None where the file holds no time.
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


class RecordingBuilder:
    """Collects entries; of two for one configuration the later counts."""

    def __init__(self, path: Path, names: Sequence[str], listed: Mapping[str, Sequence[Value]] | None = None) -> None:
        self._path = path
        self._names = tuple(names)
        self._listed = {name: tuple((listed or {}).get(name, ())) for name in names}
        self._index_of: dict[tuple[Value, ...], int] = {}
        self._columns = FactColumns(str(path))
        self._impossible: dict[int, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._index_of)

    def add(self, configuration: tuple[Value, ...], facts: Facts) -> Facts:
        """Add what was measured of a configuration (values in the order of the names), as far as it can be.

        Returns what is kept of it. Raises InputError.
        """
        at = self._index_of.setdefault(configuration, len(self._index_of))
        if at >= MAXIMUM_ENTRIES:
            raise InputError(f"more than {MAXIMUM_ENTRIES} entries", str(self._path), "split the file")
        kept, left_out = possible(facts)
        if left_out or at in self._impossible:
            self._impossible[at] = left_out
        self._columns.put(at, kept)
        return kept

    def facts(self, at: int) -> Facts:
        """What was added of the configuration with that index, in the order of arrival."""
        return self._columns.facts(at)

    def finish(
        self,
        *,
        device: str = "",
        kernel: str = "",
        problem_size: str = "",
        objective: Objective | None = None,
        units: Mapping[str, str] | None = None,
        notes: Sequence[str] = (),
        own: bool = False,
    ) -> Recording:
        """The recording of all entries; its notes name what some of them lack, unless the file is this program's own.

        Raises InputError where there are none, or the space is too large.
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
            notes=(*notes, *self._left_out(), *([] if own else self._columns.missing()), *simulated),
            _space=space,
            _columns=self._columns,
            _index=index,
        )

    def _left_out(self) -> list[str]:
        """What cannot be, in a line."""
        found = [words for each in self._impossible.values() for words in each]
        listed = ", ".join(list(dict.fromkeys(found))[:4])
        return [f"{len(found)} figures that were not measured, or cannot be, are left out: {listed}"] if found else []

    def _space(self, where: str) -> tuple[SearchSpace, npt.NDArray[np.int64]]:
        """The space of the entries, and the entry of each of its rows."""
        space, index = space_and_order(self._listed, list(self._index_of))
        if space.cartesian >= _MAXIMUM_CARTESIAN:
            raise InputError("the parameters span more than 2^62 combinations", where, "check the parameters' values")
        parameters = tuple(replace(p, device_setting=p.name in SETTING_NAMES) for p in space.parameters)
        return replace(space, parameters=parameters), index
