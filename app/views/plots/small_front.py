"""`SmallFront`: the Pareto front of a stored session as it fits into a thumbnail. Read off Qt's thread; free of Qt."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...engine.analysis.quantities import quantity
from ...engine.analysis.usual_goals import usual_goals
from ...engine.objectives import Goal
from ...engine.pareto import best, front
from ...engine.space.result_table import DECIDED_ON
from ...errors import WattridgeError

if TYPE_CHECKING:
    from ...engine.store.database import Store
    from ...engine.store.record import SessionRecord

Floats = npt.NDArray[np.float64]
CELLS = (60, 36)  # of the crowd: of the points in one cell one is drawn
_CUT = (2.0, 98.0)  # percentiles: what lies beyond both these and the front would press all else into a corner


def _no_points() -> Floats:
    return np.empty((0, 2))


@dataclass(frozen=True, slots=True)
class SmallFront:
    """Places are (n, 2), from 0 to 1 within the picture: to the right and up."""

    axes: tuple[str, str] = ("", "")  # titles of the figures across and up, those that the Front view begins with
    crowd: Floats = field(default_factory=_no_points)
    front: Floats = field(default_factory=_no_points)  # from the left to the right
    best: str = ""  # the best figure of the objective, with its unit; '' where there is none

    def __bool__(self) -> bool:
        """There is something to draw."""
        return bool(len(self.front))


def read_small_front(store: Store, record: SessionRecord, stop: threading.Event | None = None) -> SmallFront:
    """Of all that the session has measured so far; an empty one where nothing of it can be read."""
    columns: tuple[Goal, Goal, Goal] | None = None
    parts: list[Floats] = []
    try:
        for values in store.values(record.id, record.origin.get(DECIDED_ON, "")):
            if stop is not None and stop.is_set():
                break
            if columns is None and values and values[0]:
                columns = (*usual_goals(record.objective, tuple(values[0])), record.objective.goal)
            if columns is not None:
                names = [goal.name for goal in columns]
                parts.append(np.array([[each.get(name, np.nan) for name in names] for each in values]).reshape(-1, 3))
    except WattridgeError:
        return SmallFront()  # the list of sessions says what is wrong with it
    return _small_front(np.concatenate(parts), columns, record) if columns is not None else SmallFront()


def _small_front(table: Floats, columns: tuple[Goal, Goal, Goal], record: SessionRecord) -> SmallFront:
    x, y, goal = columns
    shown = [quantity(each.name, units=record.units) for each in columns]
    at = best(table[:, 2], goal.maximise)
    best_text = "" if at is None else shown[2].text(float(table[at, 2]))
    points = table[np.isfinite(table[:, :2]).all(axis=1), :2]
    if x.name == y.name or not len(points):
        return SmallFront(best=best_text)
    along = points[front(points, (x.maximise, y.maximise))]
    low = np.minimum(np.percentile(points, _CUT[0], axis=0), along.min(axis=0))
    high = np.maximum(np.percentile(points, _CUT[1], axis=0), along.max(axis=0))
    span = np.where(high > low, high - low, 1.0)
    low = np.where(high > low, low, low - 0.5)  # all alike: in the middle
    places = (points - low) / span
    inside = places[((places >= 0) & (places <= 1)).all(axis=1)]
    cells = np.unique(np.floor(inside * (np.array(CELLS) - 1e-9)).astype(np.int64), axis=0)
    crowd = (cells + 0.5) / CELLS
    along = (along - low) / span
    return SmallFront((shown[0].title, shown[1].title), crowd, along[np.argsort(along[:, 0], kind="stable")], best_text)
