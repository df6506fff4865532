"""What a model sees of a configuration: for each parameter the level it takes, and how far apart levels are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.engine.measurement import Value
from app.engine.space.search_space import Rows, SearchSpace

Floats = npt.NDArray[np.float64]
Levels = npt.NDArray[np.intp]  # shape (rows, axes): which level each axis takes, numbered through over all axes

MOST_LEVELS = 64  # more values than that share levels, so that a table over all pairs stays small


class Features:
    """The levels of a space's rows. Only parameters that vary are axes.

    `positions[axis]` places an axis' levels on 0..1, None where its values have no order (words, or only two values).
    """

    def __init__(self, space: SearchSpace) -> None:
        self._codes = space.codes
        self._parameters = [j for j, p in enumerate(space.parameters) if len(p.values) > 1]
        self._level_of: list[Levels] = []  # per axis: code -> level, numbered through
        self.positions: list[Floats | None] = []
        self.starts = [0]  # first level of each axis, and the end
        for j in self._parameters:
            levels, positions = _levels_of(space.parameters[j].values)
            self._level_of.append(levels + self.starts[-1])
            self.positions.append(positions)
            self.starts.append(self.starts[-1] + int(levels.max()) + 1)

    @property
    def axes(self) -> int:
        """How many parameters vary."""
        return len(self._parameters)

    @property
    def total(self) -> int:
        """How many levels all axes have together."""
        return self.starts[-1]

    def of(self, rows: Sequence[int] | Rows) -> Levels:
        """The levels of rows, shape (rows, axes)."""
        codes = self._codes[np.asarray(rows, dtype=np.int64)]
        levels = np.empty((len(codes), self.axes), dtype=np.intp)
        for axis, (j, level_of) in enumerate(zip(self._parameters, self._level_of, strict=True)):
            levels[:, axis] = level_of[codes[:, j]]
        return levels


def _levels_of(values: tuple[Value, ...]) -> tuple[Levels, Floats | None]:
    """The level of each value, from 0, and the levels' positions on 0..1."""
    own = np.arange(len(values), dtype=np.intp)
    if any(isinstance(value, str) for value in values):
        return own % MOST_LEVELS if len(values) > MOST_LEVELS else own, None
    positions = scaled(np.array([float(value) for value in values]))
    if len(values) <= MOST_LEVELS:
        return own, positions if len(values) > 2 else None
    levels = np.floor(positions * MOST_LEVELS).astype(np.intp).clip(0, MOST_LEVELS - 1)
    taken, levels = np.unique(levels, return_inverse=True)
    middles = np.array([positions[levels == level].mean() for level in range(len(taken))])
    return levels.astype(np.intp), middles


def scaled(values: Floats) -> Floats:
    """Numbers put on 0..1: by their logarithm where that makes their steps more even (1, 2, 4, 8), else as they are."""
    numbers = np.unique(values)
    if len(numbers) > 2 and numbers[0] > 0 and _unevenness(np.log(numbers)) < _unevenness(numbers):
        values = np.log(values)
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def _unevenness(ascending: Floats) -> float:
    steps = np.diff(ascending)
    return float(steps.std() / steps.mean())
