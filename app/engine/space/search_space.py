"""`SearchSpace`: the table of valid configurations. A row number is a configuration's name everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.engine.arithmetic import column_of
from app.engine.measurement import Configuration, Value
from app.engine.space.keys import KeyIndex

Rows = npt.NDArray[np.int64]
Neighbourhood = Literal["hamming", "adjacent"]


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
    notes: tuple[str, ...] = ()  # assumptions a person should know, such as an assumed compute capability

    @property
    def size(self) -> int:
        return int(self.codes.shape[0])

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    def __len__(self) -> int:
        return self.size

    def configuration(self, row: int) -> dict[str, Value]:
        """The configuration of a row, parameters in the user's order."""
        return {p.name: p.values[code] for p, code in zip(self.parameters, self.codes[row].tolist(), strict=True)}

    def column(self, name: str) -> npt.NDArray[np.generic]:
        """The values of one parameter over all rows, shape (size,)."""
        return self.column_of_rows(name, slice(None))

    def column_of_rows(self, name: str, rows: Rows | slice) -> npt.NDArray[np.generic]:
        """The values of one parameter over some rows."""
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

    def rows_of_codes(self, codes: npt.NDArray[np.integer]) -> Rows:
        """Rows of many code vectors, shape (m, parameters) -> (m,); -1 where not in the space. Vectorised."""
        return self._index.find(np.asarray(codes, dtype=np.int64))

    def neighbours(self, row: int, kind: Neighbourhood = "hamming") -> Rows:
        """Valid rows that differ in one parameter ('hamming'), or by one step in value order in one ('adjacent')."""
        own = self.codes[row].astype(np.int64)
        if kind == "hamming":
            axis, code = self._every_code
            other = code != own[axis]
            axis, code = axis[other], code[other]
        else:
            steps = [(j, c) for j in range(len(own)) for c in self._steps[j][int(own[j])]]
            axis = np.array([j for j, _ in steps], dtype=np.int64)
            code = np.array([c for _, c in steps], dtype=np.int64)
        candidates = np.repeat(own[None, :], len(axis), axis=0)
        candidates[np.arange(len(axis)), axis] = code
        rows = self._index.find(candidates)
        return rows[rows >= 0]

    def sample(self, rng: np.random.Generator, count: int) -> Rows:
        """`count` different rows drawn uniformly (all rows where the space is smaller)."""
        return rng.permutation(self.size)[:count] if count * 4 > self.size else self._sample_few(rng, count)

    def _sample_few(self, rng: np.random.Generator, count: int) -> Rows:
        return rng.choice(self.size, size=count, replace=False, shuffle=True)

    def nearest(self, codes: npt.NDArray[np.floating], rng: np.random.Generator | None = None) -> int:
        """The valid row nearest to a point in code space, each axis scaled to 0..1; ties by `rng`, else the first."""
        point = np.asarray(codes, dtype=np.float64)
        rounded = np.clip(np.rint(point), 0, [len(p.values) - 1 for p in self.parameters]).astype(np.int64)
        direct = int(self._index.find(rounded[None, :])[0])
        if direct >= 0:
            return direct
        distance = np.zeros(self.size, dtype=np.float32)
        for j, parameter in enumerate(self.parameters):
            span = max(1, len(parameter.values) - 1)
            step = ((np.arange(len(parameter.values)) - point[j]) / span).astype(np.float32) ** 2
            distance += step[self.codes[:, j]]
        if rng is None:
            return int(distance.argmin())
        return int(rng.choice(np.flatnonzero(distance == distance.min())))

    def subset(self, rows: Sequence[int] | Rows) -> SearchSpace:
        """The space reduced to those rows, in the same order of rows. Values that no row takes any more are dropped."""
        kept = self.codes[np.unique(np.asarray(rows, dtype=np.int64))]
        parameters, codes = compacted(self.parameters, kept)
        return replace(self, parameters=parameters, codes=codes, removed_by={})

    # --- kept once asked for ----------------------------------------------------------------------------------------

    @cached_property
    def _index(self) -> KeyIndex:
        return KeyIndex(self.codes, [len(p.values) for p in self.parameters])

    @cached_property
    def _columns_of_values(self) -> list[npt.NDArray[np.generic]]:
        return [column_of(p.values) for p in self.parameters]

    @cached_property
    def _code_of_value(self) -> list[dict[Value | None, int]]:
        return [{value: code for code, value in enumerate(p.values)} for p in self.parameters]

    @cached_property
    def _every_code(self) -> tuple[Rows, Rows]:
        """Every (axis, code) pair, as two columns."""
        sizes = [len(p.values) for p in self.parameters]
        axis = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        return axis, np.concatenate([np.arange(size, dtype=np.int64) for size in sizes])

    @cached_property
    def _steps(self) -> list[list[list[int]]]:
        """For each axis and code, the codes one step below and above in value order (the user's order for words)."""
        steps: list[list[list[int]]] = []
        for values in self._columns_of_values:
            order = np.argsort(values, kind="stable") if values.dtype.kind in "bif" else np.arange(len(values))
            near: list[list[int]] = [[] for _ in order]
            for below, above in zip(order[:-1].tolist(), order[1:].tolist(), strict=True):
                near[below].append(above)
                near[above].append(below)
            steps.append(near)
        return steps


def smallest_dtype(sizes: Sequence[int]) -> type[np.unsignedinteger]:
    """The smallest unsigned integer that holds every code of axes with so many values."""
    largest = max(sizes, default=1)
    return np.uint8 if largest <= 2**8 else np.uint16 if largest <= 2**16 else np.uint32


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
