"""`SearchSpace`: the table of valid configurations. A row number is a configuration's name everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.engine.measurement import Configuration, Value

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

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    def __len__(self) -> int:
        return self.size

    def configuration(self, row: int) -> dict[str, Value]:
        """The configuration of a row, parameters in the user's order."""
        return {p.name: p.values[int(code)] for p, code in zip(self.parameters, self.codes[row], strict=True)}

    def column(self, name: str) -> npt.NDArray[np.generic]:
        """The values of one parameter over all rows, shape (size,)."""
        return self.column_of_rows(name, slice(None))

    def column_of_rows(self, name: str, rows: Rows | slice) -> npt.NDArray[np.generic]:
        """The values of one parameter over some rows."""
        index = self.names.index(name)
        return np.asarray(self.parameters[index].values)[self.codes[rows, index]]

    def row_of(self, configuration: Configuration) -> int | None:
        """The row of a configuration, None where it is not in the space. O(log n)."""
        codes: list[int] = []
        for parameter in self.parameters:
            try:
                codes.append(parameter.values.index(configuration[parameter.name]))
            except (KeyError, ValueError):
                return None
        return self._row_of_codes(np.asarray(codes))

    def _row_of_codes(self, codes: npt.NDArray[np.integer]) -> int | None:
        """Binary search over the key of mixed radix; the table is sorted by it."""
        key = int(self._radix @ codes.astype(np.int64))
        keys = self._keys
        at = int(np.searchsorted(keys, key))
        return at if at < len(keys) and int(keys[at]) == key else None

    @property
    def _radix(self) -> npt.NDArray[np.int64]:
        raise NotImplementedError

    @property
    def _keys(self) -> npt.NDArray[np.int64]:
        raise NotImplementedError

    def rows_of_codes(self, codes: npt.NDArray[np.integer]) -> Rows:
        """Rows of many code vectors, shape (m, parameters) -> (m,); -1 where not in the space. Vectorised."""
        raise NotImplementedError

    def neighbours(self, row: int, kind: Neighbourhood = "hamming") -> Rows:
        """Valid rows that differ in one parameter ('hamming'), or by one step in value order in one ('adjacent')."""
        raise NotImplementedError

    def sample(self, rng: np.random.Generator, count: int) -> Rows:
        """`count` different rows drawn uniformly (all rows where the space is smaller)."""
        return rng.permutation(self.size)[:count] if count * 4 > self.size else self._sample_few(rng, count)

    def _sample_few(self, rng: np.random.Generator, count: int) -> Rows:
        return rng.choice(self.size, size=count, replace=False, shuffle=True)

    def nearest(self, codes: npt.NDArray[np.floating], rng: np.random.Generator | None = None) -> int:
        """The valid row nearest to a point in code space, each axis scaled to 0..1."""
        raise NotImplementedError

    def subset(self, rows: Sequence[int] | Rows) -> SearchSpace:
        """The space reduced to those rows, in the same order of rows."""
        raise NotImplementedError
