"""`ParallelAxes`: measurements on parallel axes, one for each parameter that varies and one for each of two figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...engine.analysis.quantities import Quantity, parameter_text
from ..plots.markers import round_span
from .points import FrontPoints

Places = npt.NDArray[np.float32]
Levels = npt.NDArray[np.int32]
Indices = npt.NDArray[np.int64]
_STEPS = 40  # into which a figure's axis is divided to count what goes from where to where


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis; `marks` are (place between 0 and 1, text), from the bottom to the top."""

    name: str
    title: str
    marks: tuple[tuple[float, str], ...]
    steps: int  # places on it that can be distinguished


@dataclass(frozen=True, slots=True)
class Strands:
    """Lines between two neighbouring axes, those that coincide as one: from `left` to `right`, `count` of them."""

    left: Places
    right: Places
    count: npt.NDArray[np.int64]


class ParallelAxes:
    """`places` has shape (axes, points), each between 0, the bottom, and 1; `index` are the points' measurements."""

    def __init__(
        self, points: FrontPoints, titles: tuple[Quantity, Quantity], described: Mapping[str, Quantity]
    ) -> None:
        self.index, self.front = points.index, points.front  # as they are now: the points may grow
        space = points.table.space
        rows = points.table.rows()[points.index]
        self.axes: list[Axis] = []
        levels: list[Levels] = []  # on each axis, the step of each point
        columns: list[Places] = []
        for at, parameter in enumerate(space.parameters):
            last = len(parameter.values) - 1
            if last < 1:
                continue
            levels.append(space.codes[rows, at].astype(np.int32))
            columns.append(_scaled(levels[-1], last + 1))
            marks = tuple((place / last, parameter_text(value)) for place, value in enumerate(parameter.values))
            self.axes.append(Axis(parameter.name, described[parameter.name].title, marks, last + 1))
        for goal, title, values in zip(points.goals, titles, (points.x, points.y), strict=True):
            low, high = round_span(float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
            columns.append(((values - low) / (high - low)).astype(np.float32))
            levels.append(np.rint(columns[-1] * (_STEPS - 1)).astype(np.int32))
            marks = tuple((share, title.number(low + share * (high - low))) for share in (0.0, 0.25, 0.5, 0.75, 1.0))
            self.axes.append(Axis(goal.name, title.title, marks, _STEPS))
        self.places: Places = np.stack(columns)
        self._levels = levels

    @cached_property
    def _pieces(self) -> list[Levels]:
        """Of each gap the piece of every point's line, numbered by where it begins and ends."""
        pairs = zip(self._levels[:-1], self._levels[1:], self.axes[1:], strict=True)
        return [left * np.int32(axis.steps) + right for left, right, axis in pairs]

    @cached_property
    def all_strands(self) -> list[Strands]:
        """What goes from each axis to the next one."""
        return self.strands_of(None)

    def strands_of(self, points: Indices | None) -> list[Strands]:
        """The same of some of the points; None: of all."""
        pieces = self._pieces if points is None else [each[points] for each in self._pieces]
        return [self._strands(gap, each) for gap, each in enumerate(pieces)]

    def _strands(self, gap: int, pieces: Levels) -> Strands:
        steps = self.axes[gap].steps, self.axes[gap + 1].steps
        counts = np.bincount(pieces, minlength=steps[0] * steps[1])
        some = np.flatnonzero(counts)
        lefts, rights = np.divmod(some, steps[1])
        return Strands(_scaled(lefts, steps[0]), _scaled(rights, steps[1]), counts[some])

    def within(self, ranges: Mapping[int, tuple[float, float]]) -> Indices:
        """Points that lie within the range of every axis that has one."""
        inside = np.ones(self.places.shape[1], dtype=np.bool_)
        for axis, (low, high) in ranges.items():
            inside &= (self.places[axis] >= low) & (self.places[axis] <= high)
        return np.flatnonzero(inside)

    def nearest(self, x: float, y: float) -> tuple[int, float] | None:
        """The point whose line passes nearest to a place, axes one apart, and how far above or below it passes."""
        count = len(self.axes)
        if not self.places.shape[1] or not 0 <= x <= count - 1:
            return None
        gap = min(int(x), count - 2)
        share = np.float32(x - gap)
        away = np.abs(self.places[gap] * (1 - share) + self.places[gap + 1] * share - np.float32(y))
        best = int(away.argmin())
        return best, float(away[best])


def _scaled(levels: npt.NDArray[np.integer], steps: int) -> Places:
    """Steps of an axis as places between 0 and 1."""
    return (levels / (steps - 1)).astype(np.float32)
