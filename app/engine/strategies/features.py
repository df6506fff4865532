"""What a model sees of a configuration: on each of its axes the level it takes, and how far apart levels are."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.engine.measurement import Value
from app.engine.space.search_space import Parameter, Rows, SearchSpace

Floats = npt.NDArray[np.float64]
Levels = npt.NDArray[np.intp]  # shape (rows, axes): which level each axis takes, numbered through over all axes

MOST_LEVELS = 64  # more values than that share levels, so that a table over all pairs stays small
_MOST_MERGED = 12  # levels of a derived axis
_MOST_FACTORS = 7  # parameters that are multiplied by one another
_MOST_FACTOR = 512  # values of such a parameter


class Features:
    """The levels of a space's rows, on an axis for each parameter that varies, and on derived ones.

    What a parameter means to a processor often shows in how often it divides by two (whole warps, banks, vectors), and
    in products of two (threads of a block, work of a tile): each is an axis too, `derived`, which a model should
    expect to matter less. `positions[axis]` places an axis' levels on 0..1, None where its values have no order (words,
    or only two values).
    """

    def __init__(self, space: SearchSpace) -> None:
        self._codes = space.codes
        self._axes: list[_Axis] = []
        self.positions: list[Floats | None] = []
        self.starts = [0]  # first level of each axis, and the end
        varying = [j for j, p in enumerate(space.parameters) if len(p.values) > 1]
        for j in varying:
            self._add((j,), *_levels_of(space.parameters[j].values))
        self.own = len(self._axes)  # the axes behind these are derived
        sizes = {j: numbers for j in varying if (numbers := _sizes(space.parameters[j])) is not None}
        for j, numbers in sizes.items():
            twos = np.array([(number & -number).bit_length() - 1 for number in numbers], dtype=np.int64)
            if 1 < len(np.unique(twos)) < len(numbers):  # else it says nothing, or as much as the value itself
                self._add((j,), *_merged(twos.astype(np.float64)))
        several = sorted((j for j, n in sizes.items() if 2 < len(n) <= _MOST_FACTOR), key=lambda j: -len(sizes[j]))[
            :_MOST_FACTORS
        ]
        for one, other in itertools.combinations(sorted(several), 2):
            logs = np.log(np.multiply.outer(np.array(sizes[one], float), np.array(sizes[other], float)))
            self._add((one, other), *_merged(logs))

    @property
    def axes(self) -> int:
        """How many axes there are."""
        return len(self._axes)

    @property
    def total(self) -> int:
        """How many levels all axes have together."""
        return self.starts[-1]

    def of(self, rows: Sequence[int] | Rows) -> Levels:
        """The levels of rows, shape (rows, axes)."""
        codes = self._codes[np.asarray(rows, dtype=np.int64)]
        levels = np.empty((len(codes), self.axes), dtype=np.intp)
        for at, axis in enumerate(self._axes):
            levels[:, at] = axis.levels[tuple(codes[:, j] for j in axis.parameters)]
        return levels

    def _add(self, parameters: tuple[int, ...], levels: Levels, positions: Floats | None) -> None:
        self._axes.append(_Axis(parameters, levels + self.starts[-1]))
        self.positions.append(positions)
        self.starts.append(self.starts[-1] + int(levels.max()) + 1)


@dataclass(frozen=True, slots=True)
class _Axis:
    parameters: tuple[int, ...]  # one, or two whose values are multiplied
    levels: Levels  # by the parameters' codes, numbered through over all axes


def _sizes(parameter: Parameter) -> list[int] | None:
    """The values of a parameter that is a size: whole numbers above 0. A clock or a cap is none."""
    if parameter.device_setting or not all(
        isinstance(value, int | float) and 0 < value < 2**53 and float(value).is_integer() for value in parameter.values
    ):
        return None
    return [int(value) for value in parameter.values]


def _merged(values: Floats) -> tuple[Levels, Floats | None]:
    """Levels of numbers of any shape, near ones merged where there are many, and the levels' positions."""
    numbers, inverse = np.unique(np.round(values, 9), return_inverse=True)
    positions = (numbers - numbers[0]) / (numbers[-1] - numbers[0])
    if len(numbers) > _MOST_MERGED:
        cells = np.floor(positions * _MOST_MERGED).clip(0, _MOST_MERGED - 1)
        _, cell = np.unique(cells, return_inverse=True)
        positions = np.array([positions[cell == at].mean() for at in range(int(cell.max()) + 1)])
        inverse = cell[inverse]
    levels: Levels = inverse.reshape(values.shape).astype(np.intp)
    return levels, positions if len(positions) > 2 else None


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
