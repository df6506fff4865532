"""`SearchSpace`: the table of valid configurations. A row number is a configuration's name everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..expressions.arithmetic import column_of
from ..measurement import Configuration, Value
from .keys import KeyIndex, smallest_dtype
from .neighbours import NearestRows, Neighbourhood, Neighbours, Rows

__all__ = ["Neighbourhood", "Parameter", "PruningStep", "Rows", "SearchSpace", "compacted", "pruning_steps"]
_ROUNDS = 8  # of points that a Latin hypercube draws


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tunable parameter or device setting and every value it takes in the space, in the user's order."""

    name: str
    values: tuple[Value, ...]
    device_setting: bool = False  # a clock or a cap instead of a #define


@dataclass(frozen=True)
class SearchSpace:
    """Valid configurations as small integer codes, shape (size, parameters), sorted lexicographically by code."""

    parameters: tuple[Parameter, ...]
    codes: npt.NDArray[np.unsignedinteger]
    cartesian: int  # ranges expanded, no restriction
    removed_by: Mapping[str, int] = field(default_factory=dict)  # restriction -> rows it removed, in the order applied
    build_seconds: float = 0.0
    notes: tuple[str, ...] = ()  # assumptions that the user should know, such as an assumed compute capability

    @property
    def size(self) -> int:
        return int(self.codes.shape[0])

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    @cached_property
    def axis_sizes(self) -> tuple[int, ...]:
        """How many values each parameter takes."""
        return tuple(len(p.values) for p in self.parameters)

    def __len__(self) -> int:
        return self.size

    def configuration(self, row: int) -> dict[str, Value]:
        """The configuration of a row, parameters in the user's order."""
        return {p.name: p.values[code] for p, code in zip(self.parameters, self.codes[row].tolist(), strict=True)}

    def configurations(self, rows: Sequence[int] | Rows) -> list[dict[str, Value]]:
        """The configurations of many rows."""
        codes = self.codes[np.asarray(rows, dtype=np.int64)]
        columns = [
            [p.values[code] for code in column.tolist()] for p, column in zip(self.parameters, codes.T, strict=True)
        ]
        return [dict(zip(self.names, values, strict=True)) for values in zip(*columns, strict=True)]

    def column(self, name: str, rows: Rows | slice = slice(None)) -> npt.NDArray[np.generic]:
        """The values of one parameter over all rows, shape (size,), or over some."""
        index = self.names.index(name)
        return np.asarray(self._columns_of_values[index][self.codes[rows, index]])

    def row_of(self, configuration: Configuration) -> int | None:
        """The row of a configuration, None where it is not in the space. O(log n)."""
        codes: list[int] = []
        for parameter, code_of in zip(self.parameters, self._code_of_value, strict=True):
            code = code_of.get(configuration.get(parameter.name))
            if code is None:
                return None
            codes.append(code)
        row = int(self._index.find(np.asarray([codes], dtype=np.int64))[0])
        return row if row >= 0 else None

    def rows_with(self, values: Configuration) -> Rows:
        """The rows in which these parameters have these values, ascending; none where one never takes its value."""
        left = np.ones(self.size, dtype=bool)
        for name, value in values.items():
            at = self.names.index(name) if name in self.names else None
            code = None if at is None else self._code_of_value[at].get(value)
            if code is None:
                return np.empty(0, dtype=np.int64)
            left &= self.codes[:, at] == code
        return np.flatnonzero(left)

    def rows_of_codes(self, codes: npt.NDArray[np.integer]) -> Rows:
        """Rows of many code vectors, shape (m, parameters) -> (m,); -1 where not in the space. Vectorised."""
        return self._index.find(np.asarray(codes, dtype=np.int64))

    def neighbours(self, row: int, kind: Neighbourhood = "hamming") -> Rows:
        """The neighbours of one row: see `neighbours_of`."""
        return self._neighbours.of_rows(np.array([row], dtype=np.int64), kind)[1]

    def neighbours_of(self, rows: Sequence[int] | Rows, kind: Neighbourhood = "hamming") -> tuple[Rows, Rows]:
        """The neighbours of many rows: (at, near), where row near[k] is a neighbour of rows[at[k]]; `at` ascends.

        Valid rows that differ in one parameter ('hamming'); by one step in value order, over the values that parameter
        takes in the space, in one ('adjacent'); by at most one such step in any number of them ('strictly_adjacent').
        """
        return self._neighbours.of_rows(np.asarray(rows, dtype=np.int64), kind)

    def sample_latin_hypercube(self, rng: np.random.Generator, count: int) -> Rows:
        """`count` different rows (all where the space is smaller) that spread over the values of every parameter.

        Every axis is cut into `count` strata, each of which holds one point, as if all values were equally likely; the
        points are snapped to the nearest valid rows. Points that snap to a row that is already drawn are drawn again as
        a hypercube of their own; what is missing after some rounds is drawn uniformly, as are shares above a quarter.
        """
        if count * 4 > self.size:
            return rng.permutation(self.size)[:count]
        chosen: dict[int, None] = {}
        for _ in range(_ROUNDS):
            missing = count - len(chosen)
            if not missing:
                break
            strata = np.stack([rng.permutation(missing) for _ in self.axis_sizes], axis=1)
            share = (strata + rng.random(strata.shape)) / missing
            points = share * np.asarray(self.axis_sizes) - 0.5  # code c owns the interval c - 0.5 to c + 0.5
            chosen |= dict.fromkeys(self.nearest_rows(points, rng).tolist())
        while len(chosen) < count:
            chosen |= dict.fromkeys(rng.integers(self.size, size=count - len(chosen)).tolist())
        return rng.permutation(np.fromiter(chosen, dtype=np.int64))

    def nearest_rows(self, points: npt.NDArray[np.floating], rng: np.random.Generator | None = None) -> Rows:
        """The valid rows nearest to points in code space, shape (m, parameters) -> (m,).

        Each axis is scaled to 0..1. Ties fall to chance by `rng`, without it always to the same row.
        """
        return self._nearest.find(points, rng)

    def subset(self, rows: Sequence[int] | Rows) -> SearchSpace:
        """The space reduced to those rows, in the same order of rows. Values that no row takes any more are dropped."""
        kept = self.codes[np.unique(np.asarray(rows, dtype=np.int64))]
        parameters, codes = compacted(self.parameters, kept)
        return replace(self, parameters=parameters, codes=codes, removed_by={})

    # --- kept once asked for ----------------------------------------------------------------------------------------

    @cached_property
    def _index(self) -> KeyIndex:
        return KeyIndex(self.codes, self.axis_sizes)

    @cached_property
    def _columns_of_values(self) -> list[npt.NDArray[np.generic]]:
        return [column_of(p.values) for p in self.parameters]

    @cached_property
    def _code_of_value(self) -> list[dict[Value | None, int]]:
        return [{value: code for code, value in enumerate(p.values)} for p in self.parameters]

    @cached_property
    def _nearest(self) -> NearestRows:
        return NearestRows(self.codes, self._index, self.axis_sizes)

    @cached_property
    def _neighbours(self) -> Neighbours:
        return Neighbours(self.codes, self._index, self._columns_of_values)


def compacted(
    parameters: tuple[Parameter, ...], codes: npt.NDArray[np.unsignedinteger]
) -> tuple[tuple[Parameter, ...], npt.NDArray[np.unsignedinteger]]:
    """Drop the values that no row takes; the order of values and rows stays."""
    kept: list[Parameter] = []
    codes = codes.copy()
    for j, parameter in enumerate(parameters):
        used = np.bincount(codes[:, j], minlength=len(parameter.values)) > 0
        if not used.all():
            codes[:, j] = (np.cumsum(used) - 1)[codes[:, j]]
        kept.append(replace(parameter, values=tuple(v for v, u in zip(parameter.values, used, strict=True) if u)))
    return tuple(kept), codes.astype(smallest_dtype([len(p.values) for p in kept]), copy=False)


@dataclass(frozen=True, slots=True)
class PruningStep:
    """One restriction, and how many combinations there were before and after it."""

    restriction: str
    before: int
    after: int

    @property
    def removed(self) -> int:
        return self.before - self.after

    @property
    def share(self) -> float:
        """The share of what there was before that it removed, 0..1."""
        return self.removed / self.before if self.before else 0.0


def pruning_steps(space: SearchSpace) -> tuple[PruningStep, ...]:
    """From all combinations to the valid ones; empty where that is unknown, as for the space of a recording."""
    steps: list[PruningStep] = []
    left = space.cartesian
    for restriction, removed in space.removed_by.items():
        steps.append(PruningStep(restriction, left, left - removed))
        left -= removed
    return tuple(steps)
