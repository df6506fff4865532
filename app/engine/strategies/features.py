"""The features of a configuration: its level on each axis, and how far apart the levels of an axis are.

Every parameter that varies is an axis. Others are derived: what a size means to a processor often shows in how often it
divides by two (whole warps, banks, vectors), and in products and ratios (threads of a block, work of a thread): of two
sizes at first, then of those that proved relevant, such as a tile's area over the threads that share it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from ..space.search_space import Parameter, Rows, SearchSpace

Floats = npt.NDArray[np.float64]
Levels = npt.NDArray[np.intp]
Powers = tuple[tuple[int, int], ...]  # of a product of sizes: their columns with their exponents, 1 or -1

MOST_SMOOTH_LEVELS: Final = 256  # the same of clocks and limits, of which one step matters where all else is known
MOST_LEVELS: Final = 64  # more values than that share levels, so that a table over all pairs stays small
MOST_PAIRS: Final = 30  # of sizes multiplied and divided, those with the most values first
_MOST_VALUES: Final = 512  # of such a size
_MOST_MERGED: Final = 32  # levels of a derived axis
_MOST_FACTORS: Final = 4  # sizes in one product
_MOST_COMBINATIONS: Final = 2**14  # of their values


@dataclass(frozen=True, slots=True)
class Axis:
    """One thing a configuration has a level of: a parameter, or what is derived from some."""

    columns: tuple[int, ...]  # of the space's codes
    levels: Levels  # by the codes of those columns
    positions: Floats | None  # where each level lies on 0..1; None if they have no order, or are only two
    derived: bool = False
    smooth: bool = False  # what changes little from one level to the next: a clock, a power limit
    powers: Powers = ()

    @property
    def count(self) -> int:
        """How many levels."""
        return int(self.levels.max()) + 1


class Features:
    """The axes of a space, the parameters' own first, and the levels of its rows."""

    def __init__(self, space: SearchSpace) -> None:
        self._codes = space.codes
        varying = {j: parameter for j, parameter in enumerate(space.parameters) if len(parameter.values) > 1}
        self._sizes = {j: numbers for j, parameter in varying.items() if (numbers := _sizes(parameter))}
        axes = [_own_axis(j, parameter) for j, parameter in varying.items()]
        self.own = len(axes)  # axes that are parameters
        self.axes = [*axes, *_powers_of_two(self._sizes), *_products(self._sizes)]  # and those of `products`
        self.first = len(self.axes)  # axes that are there from the beginning
        self._of_powers = {axis.powers: index for index, axis in enumerate(self.axes) if axis.powers}

    @property
    def smooth(self) -> bool:
        """Nothing varies but settings of the board, so that costs change little from one row to the next."""
        return bool(self.own) and all(axis.smooth for axis in self.axes)

    def products(self, of: Sequence[int]) -> list[int]:
        """The axes of the products and ratios of every two of some axes, where these are products themselves.

        Those without squares that have not too many factors or values. They are made where they are new.

        Parameters
        ----------
        of : sequence of int
            Indices in `axes`; those of axes that are no products are passed over.

        Returns
        -------
        list of int
            Indices in `axes`, ascending.
        """
        results = set()
        for one, other in combinations([powers for index in of if (powers := self.axes[index].powers)], 2):
            for powers in (_times(one, other, 1), _times(one, other, -1)):
                if powers and math.prod(len(self._sizes[column]) for column, _ in powers) <= _MOST_COMBINATIONS:
                    if powers not in self._of_powers:
                        self._of_powers[powers] = len(self.axes)
                        self.axes.append(_product(self._sizes, powers))
                    results.add(self._of_powers[powers])
        return sorted(results)

    def of(self, rows: Sequence[int] | Rows, axes: Sequence[int]) -> Levels:
        """The levels of rows on some axes.

        Parameters
        ----------
        rows : sequence of int
            Rows of the space.
        axes : sequence of int
            Indices in `axes`.

        Returns
        -------
        array of int, shape (rows, axes)
        """
        codes = self._codes[np.asarray(rows, dtype=np.int64)]
        levels = np.empty((len(codes), len(axes)), dtype=np.intp)
        for place, axis in enumerate(self.axes[index] for index in axes):
            levels[:, place] = axis.levels[tuple(codes[:, column] for column in axis.columns)]
        return levels


def scaled(values: Floats) -> Floats:
    """Scale numbers to 0..1, by their logarithm if that makes their steps more even (1, 2, 4, 8).

    Parameters
    ----------
    values : array, shape (n,)
        A parameter's values, ascending.

    Returns
    -------
    array, shape (n,)
        From 0 to 1.
    """
    numbers = np.unique(values)
    if len(numbers) > 2 and numbers[0] > 0 and _unevenness(np.log(numbers)) < _unevenness(numbers):
        values = np.log(values)
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def _own_axis(column: int, parameter: Parameter) -> Axis:
    """The axis of a parameter."""
    numbers, smooth = parameter.numbers, parameter.device_setting
    levels = np.arange(len(parameter.values), dtype=np.intp)
    if numbers is None:
        return Axis((column,), levels % MOST_LEVELS, None)
    positions = scaled(np.where(np.isnan(numbers), _beyond(numbers), numbers))
    most = MOST_SMOOTH_LEVELS if smooth else MOST_LEVELS
    if len(levels) <= most:
        return Axis((column,), levels, positions if len(levels) > 2 else None, smooth=smooth)
    return Axis((column,), *_merged(positions, most), smooth=smooth)


def _beyond(numbers: Floats) -> float:
    """Where an untouched setting lies among its numbers: a step above the highest, which is mostly what it is like."""
    listed = numbers[np.isfinite(numbers)]
    return float(listed.max() + np.ptp(listed) / max(1, len(listed) - 1)) if len(listed) else 0.0


def _sizes(parameter: Parameter) -> list[int]:
    """The values of a parameter of at least three, all whole and above 0; else none."""
    values = [] if parameter.device_setting or len(parameter.values) > _MOST_VALUES else parameter.values
    whole = [int(v) for v in values if not isinstance(v, str) and 0 < v < 2**53 and float(v).is_integer()]
    return whole if 2 < len(whole) == len(parameter.values) else []


def _powers_of_two(sizes: Mapping[int, list[int]]) -> Iterator[Axis]:
    """How often a size divides by two, unless that is constant, or as good as the size itself."""
    for column, numbers in sizes.items():
        twos = np.array([float((number & -number).bit_length() - 1) for number in numbers])
        if 1 < len(np.unique(twos)) < len(numbers):
            yield Axis((column,), *_merged(twos, _MOST_MERGED), derived=True)


def _products(sizes: Mapping[int, list[int]]) -> Iterator[Axis]:
    """The products and ratios of every two sizes, by their logarithms."""
    pairs = sorted(combinations(sizes, 2), key=lambda pair: -len(sizes[pair[0]]) * len(sizes[pair[1]]))
    for one, other in pairs[:MOST_PAIRS]:
        for sign in (1, -1):
            yield _product(sizes, ((one, 1), (other, sign)))


def _times(one: Powers, other: Powers, sign: int) -> Powers:
    """one * other^sign by column, the first exponent positive: a ratio is as good as its inverse.

    Empty if that holds a square, one size alone, or too many.
    """
    exponents = dict(one)
    for column, exponent in other:
        exponents[column] = exponents.get(column, 0) + sign * exponent
    powers = sorted((column, exponent) for column, exponent in exponents.items() if exponent)
    if not 2 <= len(powers) <= _MOST_FACTORS or any(abs(exponent) > 1 for _, exponent in powers):
        return ()
    return tuple((column, exponent * powers[0][1]) for column, exponent in powers)


def _product(sizes: Mapping[int, list[int]], powers: Powers) -> Axis:
    """The axis of a product, by its logarithm."""
    logs = np.zeros(())
    for column, exponent in powers:
        logs = logs[..., None] + exponent * np.log(np.array(sizes[column], float))
    return Axis(tuple(column for column, _ in powers), *_merged(logs, _MOST_MERGED), derived=True, powers=powers)


def _merged(values: Floats, most: int) -> tuple[Levels, Floats | None]:
    """Levels of numbers of any shape, near ones merged where there are too many, and the levels' positions on 0..1."""
    numbers, levels = np.unique(np.round(values, 9), return_inverse=True)
    positions = (numbers - numbers[0]) / (numbers[-1] - numbers[0])
    if len(numbers) > most:
        _, cells = np.unique(np.floor(positions * (most - 1e-9)), return_inverse=True)
        positions = np.bincount(cells, weights=positions) / np.bincount(cells)
        levels = cells[levels]
    return levels.reshape(values.shape).astype(np.intp), positions if len(positions) > 2 else None


def _unevenness(ascending: Floats) -> float:
    steps = np.diff(ascending)
    return float(steps.std() / steps.mean())
