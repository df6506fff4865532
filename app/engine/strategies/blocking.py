"""Blocking optimisers, such as SciPy's, as a part of a strategy: whenever one needs something measured, it yields.

The optimiser runs in a thread of its own, but never beside the strategy: the two take turns, so that a run depends on
nothing but its seed. The thread has ended whenever the generator has, however it ended.
"""

from __future__ import annotations

import importlib
import math
import threading
from collections.abc import Callable, Generator, Sequence
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np

from ..space.search_space import Neighbourhood, SearchSpace
from .base import Search
from .box import Box, Reals
from .evaluations import Evaluations, delegate

Q = TypeVar("Q")
A = TypeVar("A")
Measure = Callable[[list[int]], Sequence[float]]
_END_S = 2.0  # for an optimiser to come to its next question, at which it is unwound
_STUCK = 5  # requests in a row, per dimension, of which all was known already


class Abandoned(BaseException):
    """Unwinds an optimiser when its run is over. A BaseException, so that none handles it as its own failure."""


def questions(call: Callable[[Callable[[Q], A]], object]) -> Generator[Q, A, None]:
    """The questions that `call(ask)` asks, one after another; `ask` returns there what is sent here."""
    asked: SimpleQueue[tuple[Q] | BaseException | None] = SimpleQueue()
    answered: SimpleQueue[A] = SimpleQueue()
    over = threading.Event()

    def ask(question: Q) -> A:
        if over.is_set():
            raise Abandoned
        asked.put((question,))
        answer = answered.get()
        if over.is_set():
            raise Abandoned
        return answer

    def run() -> None:
        try:
            with np.errstate(all="ignore"):  # steps that lead nowhere are an optimiser's routine
                call(ask)
        except Abandoned:
            asked.put(None)
        except BaseException as error:  # noqa: BLE001  (raised again where the generator runs)
            asked.put(error)
        else:
            asked.put(None)

    thread = threading.Thread(target=run, name="optimiser", daemon=True)
    thread.start()
    try:
        while (question := asked.get()) is not None:
            if isinstance(question, BaseException):
                raise question
            answered.put((yield question[0]))
    finally:
        over.set()
        answered.put(None)  # type: ignore[arg-type]  # wakes the optimiser, which ignores it
        thread.join(_END_S)


class Landscape:
    """The function over a box that an optimiser minimises. Runs in the optimiser's thread.

    Costs are shifted and scaled so that the best known at the start of the run is 0 and the median 1, whatever their
    unit; a failed configuration costs more than any known. A run that learns nothing new is abandoned.
    """

    def __init__(self, box: Box, known: Evaluations, measure: Measure) -> None:
        self.box, self._known, self._measure = box, known, measure
        self._patience, self._repeats = _STUCK * (1 + box.dimensions), 0
        finite = np.sort([cost for cost in known.costs() if math.isfinite(cost)])
        self._zero = float(finite[0]) if len(finite) else 0.0
        span = float(np.median(finite)) - self._zero if len(finite) else 0.0
        self._unit = span if span > 0 else 1.0
        self._failed = 1.0 + (float(finite[-1]) - self._zero) / self._unit if len(finite) else 1.0

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The bounds of each axis, in SciPy's form."""
        return [(0.0, 1.0)] * self.box.dimensions

    def costs(self, points: Reals) -> Reals:
        """Scaled costs of points of the box, shape (m, dimensions) -> (m,), measured together where they are new."""
        return self._of_rows(self.box.rows(points))

    def _of_rows(self, rows: list[int]) -> Reals:
        if all(row in self._known for row in rows):
            self._repeats += 1
            if self._repeats > self._patience:
                raise Abandoned
        else:
            self._repeats = 0
            self._measure(rows)
        costs = np.array([self._known.cost(row) for row in rows])
        return np.where(np.isfinite(costs), (costs - self._zero) / self._unit, self._failed)

    def cost(self, point: Reals) -> float:
        return float(self.costs(point[None, :])[0])

    def gradient(self, point: Reals) -> Reals:
        """Differences to the next value of every parameter, measured together, over the length of the step."""
        here = np.clip(point, 0.0, 1.0)
        step = np.where(here + 1 / self.box.steps > 1.0, -1.0, 1.0) / self.box.steps
        costs = self.costs(np.vstack([here, here + np.diag(step)]))
        return np.asarray((costs[1:] - costs[0]) / step)

    def descent(self, kind: Neighbourhood) -> Callable[..., Any]:
        """A `method` for scipy.optimize.minimize: on to the best neighbouring row, all of them measured together."""

        def descend(fun: object, start: Reals, *_: object, **__: object) -> Any:
            (row,) = self.box.rows(start[None, :])
            (cost,) = self._of_rows([row])
            requests = 1
            while near := self._known.space.neighbours(row, kind).tolist():
                costs = self._of_rows(near)
                requests += len(near)
                best = int(costs.argmin())
                if not costs[best] < cost:
                    break
                row, cost = near[best], costs[best]
            point = self.box.points([row])[0]
            return scipy_optimize().OptimizeResult(x=point, fun=cost, nfev=requests, success=True)

        return descend


def restarted(
    space: SearchSpace, rng: np.random.Generator, starts: int, optimise: Callable[[Landscape, Reals], object]
) -> Search:
    """A search: `optimise(landscape, points)` again and again, each time with `starts` new random points, best first.

    A run lasts to the optimiser's own end, or until it has learnt nothing new for a while.
    """
    known, box = Evaluations(space, rng), Box(space)
    while not known.exhausted:
        rows = known.draw(starts)
        costs = yield from known.ask(rows)
        if known.exhausted:
            return
        points = box.points([rows[at] for at in np.argsort(costs, kind="stable")])

        def run(measure: Measure, points: Reals = points) -> object:
            return optimise(Landscape(box, known, measure), points)

        yield from delegate(questions(run), known.ask)


def scipy_optimize() -> Any:
    """The module, loaded when the first optimiser starts: that takes a good part of a second."""
    return importlib.import_module("scipy.optimize")
