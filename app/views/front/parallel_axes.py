"""`ParallelAxes`: measurements on parallel axes, one for each parameter that varies and one for each of two figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..plots.markers import round_span
from ..plots.quantities import Quantity, parameter_text
from .points import FrontPoints

Places = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]
_STEPS = 64  # into which a figure's axis is divided to count what goes from where to where


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis; `marks` are (place between 0 and 1, text), from the bottom to the top."""

    name: str
    title: str
    marks: tuple[tuple[float, str], ...]
    steps: int  # places that are told apart on it


@dataclass(frozen=True, slots=True)
class Strands:
    """Lines between two neighbouring axes, those that coincide as one: from `left` to `right`, `count` of them."""

    left: Places
    right: Places
    count: npt.NDArray[np.int64]


class ParallelAxes:
    """`places` has shape (axes, points), each between 0, the bottom, and 1."""

    def __init__(
        self, points: FrontPoints, titles: tuple[Quantity, Quantity], described: Mapping[str, Quantity]
    ) -> None:
        self.points = points
        space = points.table.space
        rows = points.table.rows()[points.index]
        self.axes: list[Axis] = []
        columns: list[Places] = []
        for at, parameter in enumerate(space.parameters):
            last = len(parameter.values) - 1
            if last < 1:
                continue
            columns.append((space.codes[rows, at] / np.float32(last)).astype(np.float32))
            marks = tuple((place / last, parameter_text(value)) for place, value in enumerate(parameter.values))
            self.axes.append(Axis(parameter.name, described[parameter.name].title, marks, last + 1))
        for goal, title, values in zip(points.goals, titles, (points.x, points.y), strict=True):
            low, high = round_span(float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
            columns.append(((values - low) / (high - low)).astype(np.float32))
            marks = tuple((share, title.number(low + share * (high - low))) for share in (0.0, 0.25, 0.5, 0.75, 1.0))
            self.axes.append(Axis(goal.name, title.title, marks, _STEPS))
        self.places: Places = np.stack(columns)

    def strands(self, gap: int, points: Indices | None = None) -> Strands:
        """What goes from axis `gap` to the next one, of all points or of some."""
        steps = self.axes[gap].steps, self.axes[gap + 1].steps
        levels = [
            np.rint(
                (self.places[gap + side] if points is None else self.places[gap + side][points]) * (steps[side] - 1)
            )
            for side in (0, 1)
        ]
        both = levels[0].astype(np.int64) * steps[1] + levels[1].astype(np.int64)
        counts = np.bincount(both, minlength=steps[0] * steps[1])
        some = np.flatnonzero(counts)
        left, right = np.divmod(some, steps[1])
        return Strands(
            (left / (steps[0] - 1)).astype(np.float32), (right / (steps[1] - 1)).astype(np.float32), counts[some]
        )

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
