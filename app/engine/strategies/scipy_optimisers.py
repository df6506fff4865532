"""SciPy's optimisers over the box of the space, restarted from the best of a few random configurations.

Local ones whenever they have converged; basin hopping and dual annealing when they learn nothing new.

Blocking optimisers, such as SciPy's, as a part of a strategy: whenever one needs something measured, it yields.

The optimiser runs in a thread of its own, but never beside the strategy: the two take turns, so that a run depends on
nothing but its seed. The thread has ended whenever the generator has, however it ended.
"""

from __future__ import annotations

import importlib
import math
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..space.search_space import Neighbourhood, SearchSpace
from .base import CheckedOptions, Search, Strategy, option
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
    """The questions that a blocking function asks, one after another.

    Parameters
    ----------
    call : callable
        Called once, as `call(ask)`, in a thread of its own; `ask(question)` returns the answer that is sent here.

    Yields
    ------
    Q
        A question.

    Receives
    --------
    A
        Its answer.

    Raises
    ------
    BaseException
        Whatever `call` raises, except `Abandoned`: `ask` raises it once the generator is closed, and it ends the
        questions.
    """
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

    def __init__(self, box: Box, evaluations: Evaluations, measure: Measure) -> None:
        self.box, self._known, self._measure = box, evaluations, measure
        self._patience, self._repeats = _STUCK * (1 + box.dimensions), 0
        finite = np.sort([cost for cost in evaluations.costs() if math.isfinite(cost)])
        self._zero = float(finite[0]) if len(finite) else 0.0
        span = float(np.median(finite)) - self._zero if len(finite) else 0.0
        self._unit = span if span > 0 else 1.0
        self._failed = 1.0 + (float(finite[-1]) - self._zero) / self._unit if len(finite) else 1.0

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The bounds of each axis, in SciPy's form."""
        return [(0.0, 1.0)] * self.box.dimensions

    def costs(self, points: Reals) -> Reals:
        """Scaled costs of points of the box, measured together where they are new.

        Parameters
        ----------
        points : array, shape (m, dimensions)
            Those outside the box count as on its edge.

        Returns
        -------
        array, shape (m,)
            0 for the best known at the start of the run, 1 for the median then.

        Raises
        ------
        Abandoned
            If too many requests in a row asked for nothing new.
        """
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
        """Scaled cost of one point of the box, as of `costs`.

        Parameters
        ----------
        point : array, shape (dimensions,)
            One outside the box counts as on its edge.

        Returns
        -------
        float
        """
        return float(self.costs(point[None, :])[0])

    def gradient(self, point: Reals) -> Reals:
        """Differences to the next value of every parameter, measured together, over the length of the step.

        Parameters
        ----------
        point : array, shape (dimensions,)
            One outside the box counts as on its edge.

        Returns
        -------
        array, shape (dimensions,)
            In scaled cost over the range of a parameter's values.
        """
        here = np.clip(point, 0.0, 1.0)
        step = np.where(here + 1 / self.box.steps > 1.0, -1.0, 1.0) / self.box.steps
        costs = self.costs(np.vstack([here, here + np.diag(step)]))
        return np.asarray((costs[1:] - costs[0]) / step)

    def descent(self, kind: Neighbourhood) -> Callable[..., Any]:
        """A `method` for scipy.optimize.minimize: on to the best neighbouring row, all of them measured together.

        Parameters
        ----------
        kind : {'hamming', 'adjacent', 'strictly_adjacent'}
            Which rows are neighbours; see `SearchSpace.neighbours_of`.

        Returns
        -------
        callable
            From a start in the box it returns an OptimizeResult at a local minimum, with the scaled cost there.
        """

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
    """A search that runs an optimiser again and again, each time with new random points.

    A run lasts to the optimiser's own end, or until it has learnt nothing new for a while.

    Parameters
    ----------
    space : SearchSpace
        The space that is searched.
    rng : numpy.random.Generator
        Draws the points.
    starts : int
        How many points are drawn and measured before each run; fewer where fewer rows are left.
    optimise : callable
        Called as `optimise(landscape, points)`, with the points best first, shape (n, dimensions).

    Yields
    ------
    Batch
        The rows to measure next.
    """
    evaluations, box = Evaluations(space, rng), Box(space)
    while not evaluations.exhausted:
        rows = evaluations.draw(starts)
        costs = yield from evaluations.ask(rows)
        if evaluations.exhausted:
            return
        points = box.points([rows[index] for index in np.argsort(costs, kind="stable")])

        def run(measure: Measure, points: Reals = points) -> object:
            return optimise(Landscape(box, evaluations, measure), points)

        yield from delegate(questions(run), evaluations.ask)


def scipy_optimize() -> Any:
    """The module, loaded when the first optimiser starts: that takes a good part of a second."""
    return importlib.import_module("scipy.optimize")


_CONVERGED = 0.5  # of the smallest step of a parameter: below it nothing changes any more
_FOREVER = 1_000_000


_DESCENT = "descent"  # ours: on to the best neighbouring row
_LOCAL = (_DESCENT, "Nelder-Mead", "Powell", "CG", "BFGS", "L-BFGS-B", "TNC", "COBYLA", "SLSQP")
_BY_GRADIENT = ("CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP")


def _locally(landscape: Landscape, method: str, kind: Neighbourhood) -> dict[str, Any]:
    """The local method of a global optimiser, in SciPy's form."""
    if method == _DESCENT:
        return {"method": landscape.descent(kind)}
    gradient = {"jac": landscape.gradient} if method in _BY_GRADIENT else {}
    return {"method": method, **gradient, **({} if method in ("CG", "BFGS") else {"bounds": landscape.bounds})}


class _Local(Strategy):
    """One method of scipy.optimize.minimize over the box of the space."""

    method: ClassVar[str]
    gradient: ClassVar[bool]
    bounded: ClassVar[bool]  # False: SciPy's method takes no bounds; points outside count as on the edge

    def __init_subclass__(cls, *, method: str, gradient: bool = False, bounded: bool = True, **shown: str) -> None:
        super().__init_subclass__(**shown)
        cls.method, cls.gradient, cls.bounded = method, gradient, bounded

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        starts: int = option(16, "random configurations before each run; the best is its start", least=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        return restarted(space, rng, options.starts, self._minimise)

    def _minimise(self, landscape: Landscape, points: Reals) -> None:
        scipy_optimize().minimize(
            landscape.cost,
            points[0],
            method=self.method,
            jac=landscape.gradient if self.gradient else None,
            bounds=landscape.bounds if self.bounded else None,
            options=self.settings(points[0], landscape.box),
        )

    def settings(self, start: Reals, box: Box) -> dict[str, Any]:
        """The method's own options for a start.

        Parameters
        ----------
        start : array, shape (dimensions,)
            Where the run begins in the box.
        box : Box
            The box of the space.

        Returns
        -------
        dict
            As `options` of scipy.optimize.minimize; empty where SciPy's own are used.
        """
        return {}


class NelderMead(_Local, name="nelder_mead", label="Nelder–Mead simplex", method="Nelder-Mead"):
    """SciPy's: a simplex that reflects, stretches and shrinks; restarts when it has converged."""

    def settings(self, start: Reals, box: Box) -> dict[str, Any]:
        side = np.maximum(0.3, 1 / box.steps)
        corners = start + np.diag(np.where(start > 0.5, -side, side))
        tolerance = _CONVERGED / float(box.steps.max())
        return {"initial_simplex": np.vstack([start, corners]), "xatol": tolerance, "fatol": np.inf}


class Powell(_Local, name="powell", label="Powell's method", method="Powell"):
    """SciPy's: line searches along directions that it learns; restarts when it has converged."""

    def settings(self, start: Reals, box: Box) -> dict[str, Any]:
        return {"xtol": _CONVERGED / float(box.steps.max()), "ftol": 0.0}


class Cobyla(_Local, name="cobyla", label="COBYLA", method="COBYLA"):
    """SciPy's: linear models within a trust region; restarts when it has converged."""

    def settings(self, start: Reals, box: Box) -> dict[str, Any]:
        step = 1.0 / float(box.steps.max())  # below it, it computes long and asks for known rows
        return {"rhobeg": max(0.3, step), "tol": step}


class Slsqp(_Local, name="slsqp", label="SLSQP", method="SLSQP", gradient=True):
    """SciPy's: least squares over differences to the next values; restarts when it has converged."""


class LBfgsB(_Local, name="l_bfgs_b", label="L-BFGS-B", method="L-BFGS-B", gradient=True):
    """SciPy's: quasi-Newton over differences to the next values; restarts when it has converged."""


class TruncatedNewton(_Local, name="tnc", label="Truncated Newton (TNC)", method="TNC", gradient=True):
    """SciPy's: truncated Newton over differences to the next values; restarts when it has converged."""


class ConjugateGradient(_Local, name="cg", label="Conjugate gradient (CG)", method="CG", gradient=True, bounded=False):
    """SciPy's: conjugate directions over differences to the next values; restarts when it has converged."""


class Bfgs(_Local, name="bfgs", label="BFGS", method="BFGS", gradient=True, bounded=False):
    """SciPy's: quasi-Newton without bounds over differences to the next values; restarts when it has converged."""


class BasinHopping(Strategy, name="basin_hopping", label="Basin hopping"):
    """SciPy's: leaps from local minimum to local minimum; restarts when it learns nothing new."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        starts: int = option(16, "random configurations at first; the best is the start", least=1)
        temperature: float = option(0.2, "in units of the median's distance to the best", least=0.0)
        leap: float = option(0.15, "length of a leap, as a share of each parameter's range", least=1e-3)
        method: str = option(_DESCENT, "how it goes to a local minimum", choices=_LOCAL)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        def leap(point: Reals) -> Reals:
            return np.clip(point + rng.uniform(-options.leap, options.leap, len(point)), 0.0, 1.0)

        def hop(landscape: Landscape, points: Reals) -> None:
            scipy_optimize().basinhopping(
                landscape.cost,
                points[0],
                niter=_FOREVER,
                T=options.temperature,
                take_step=leap,
                seed=rng,
                minimizer_kwargs=_locally(landscape, options.method, "hamming"),
            )

        return restarted(space, rng, options.starts, hop)


class DualAnnealing(Strategy, name="dual_annealing", label="Dual annealing"):
    """SciPy's: jumps over the whole space, long ones less and less often; restarts when it learns nothing new."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        starts: int = option(16, "random configurations at first; the best is the start", least=1)
        local_search: bool = option(True, "descend to a local minimum from what it finds")
        method: str = option(_DESCENT, "how it goes to a local minimum", choices=_LOCAL)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        def anneal(landscape: Landscape, points: Reals) -> None:
            scipy_optimize().dual_annealing(
                landscape.cost,
                landscape.bounds,
                maxiter=_FOREVER,
                maxfun=_FOREVER,
                x0=points[0],
                seed=rng,
                no_local_search=not options.local_search,
                minimizer_kwargs=_locally(landscape, options.method, "adjacent"),
            )

        return restarted(space, rng, options.starts, anneal)
