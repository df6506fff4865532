"""The model of a Bayesian search: Gaussian processes of every goal's cost and of whether a configuration works at all.

Costs are modelled by their normal scores (ranks mapped to a bell curve): times of a kernel span decades, and only
their order matters to a search. Over nothing but clocks and limits they are smooth, and their logarithms tell more.
Failed configurations have no costs; a process of their own learns where they lie.
Where there are limits, a process of each learns how far configurations are beyond it, and what promises most is weighed
by the chance that it keeps them all (constrained expected improvement [Gardner2014]). The candidates are the whole
space, or a pool where it is large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from ..space.search_space import Rows, SearchSpace
from .base import Outcome
from .features import Features, Floats
from .gaussian_process import Kernel, Posterior, fit_kernel, log_likelihood
from .population import unlimited_costs_of

Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

WHOLE: Final = 20_000  # spaces up to this size are candidates as a whole
_RANDOM: Final = 3000  # random rows of a new pool, beside the neighbours of the best
_MOST: Final = 2 * _RANDOM

MOST_POINTS: Final = 384  # at a fit; of more, the best, the latest and a random part of the others
FIT_POINTS: Final = 256  # of them, for the hyperparameters: bounds the cost, changes them little
_GROWTH: Final = 1.15  # a model is refitted when it has grown by that
_ROOM: Final = 32  # points that it can hold between two fits, at least
_ITERATIONS: Final = 12
_ITERATIONS_SMOOTH: Final = 30
_FEW: Final = 32  # points of a smooth space up to which the models are refitted with each
_FEWEST: Final = 3  # points below which there is no model of a cost
_AROUND: Final = 8  # best points whose neighbours are candidates
_NEAR: Final = 0.3  # of a limit: what is nearer counts as it is, what is farther by its logarithm
_CLIMB: Final = 4  # steps from the best candidate to its neighbours, where candidates are a pool


@dataclass(frozen=True, slots=True)
class Prediction:
    """The model's prediction for the candidates that were not asked for."""

    rows: Rows  # (m,)
    mean: Floats  # (goals, m), in normal scores
    deviation: Floats  # (goals, m)
    works: Floats  # (m,), the chance in 0..1 that it does not fail
    known: Floats  # (points, goals): scores measured, and the means of a batch's rows


Promise = Callable[[Prediction], Floats]  # what each candidate promises, at least 0, were it sure to work


class Surrogate:
    """Learns rows with their costs and predicts those of candidates."""

    def __init__(self, space: SearchSpace, goals: int, rng: np.random.Generator, limits: int = 0) -> None:
        self.candidates = Candidates(space, rng)
        features = Features(space)
        self._smooth = features.smooth
        self._rng = rng
        self._rows: list[int] = []
        self._costs: list[tuple[float, ...]] = []  # inf if it failed
        self._believed: list[Floats] = []  # means of a batch's rows
        self._cost_models = [Model(features) for _ in range(goals)]
        self._works_model = Model(features)
        self._excess: list[tuple[float, ...]] = []  # of each limit, NaN if the point failed
        self._limit_models = [Model(features) for _ in range(limits)]
        self._modelled = 0  # points that the models were given
        self._fitted = 0  # points when the models were last fitted

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Add the costs of rows and how far they are beyond the limits. Ends every belief.

        Parameters
        ----------
        outcomes : sequence of Outcome
            Of rows that were measured in full or failed.
        """
        self.candidates.close([outcome.row for outcome in outcomes])
        self._rows.extend(outcome.row for outcome in outcomes)
        unknown = (math.nan,) * len(self._limit_models)
        for outcome in outcomes:
            self._costs.append(unlimited_costs_of(outcome))
            self._excess.append(outcome.excess or unknown)
        self._believed.clear()
        for posterior in self._posteriors:
            posterior.forget()

    def propose(self, most: int, promises: Callable[[], Promise]) -> list[int]:
        """Propose rows to measure together, one by one those of the greatest promise.

        Until they are measured the models' means stand for their costs.

        Parameters
        ----------
        most : int
            How many rows at most.
        promises : callable
            Called before each row; returns the function by which the candidates are rated.

        Returns
        -------
        list of int
            Empty where all rows are known.
        """
        rows: list[int] = []
        while len(rows) < most and not self.candidates.exhausted:
            row, means = self._best(promises())
            rows.append(row)
            if len(rows) < most:
                self._believe(row, means)
        return rows

    def predict(self) -> Prediction:
        """The candidates as the models see them now. At least one row of the space must be open."""
        scores, works = self._scores()
        self._update(scores, works)
        indices = self.candidates.open
        chance = np.ones(len(indices))
        if works.any() and not works.all():
            mean, deviation = self._works_model.predict(works.astype(np.float64), indices)
            chance = ndtr((mean - 0.5) / np.hypot(deviation, 0.05))
        if works.sum() >= _FEWEST:
            predictions = [model.predict(scores[:, goal], indices) for goal, model in enumerate(self._cost_models)]
        else:  # too little is known of the costs: there is most to learn far from what was seen
            predictions = [(np.zeros(len(indices)), self._works_model.uncertainty(indices))] * len(self._cost_models)
        if works.sum() >= _FEWEST:
            chance = chance * self._chance_of_limits(works, indices)
        targets = np.concatenate([scores[self._kept(works)], np.reshape(self._believed, (-1, len(self._cost_models)))])
        return Prediction(
            self.candidates.rows[indices],
            np.stack([m for m, _ in predictions]),
            np.stack([d for _, d in predictions]),
            chance,
            targets,
        )

    def draw(self, goal: int, prediction: Prediction, most: int) -> tuple[Indices, Floats]:
        """Draw one function from the posterior of a goal.

        Parameters
        ----------
        goal : int
            The index of the goal.
        prediction : Prediction
            The latest one, as `predict` returns it.
        most : int
            At how many candidates at most, those that promise most.

        Returns
        -------
        positions : array of int, shape (n,)
            The candidates in `prediction.rows`.
        values : array, shape (n,)
            The function there, in scores.
        """
        bound = prediction.mean[goal] - 3 * prediction.deviation[goal]
        among = np.argsort(bound, kind="stable")[:most]
        scores, works = self._scores()
        if works.sum() < _FEWEST:
            return among, self._rng.standard_normal(len(among))
        return among, self._cost_models[goal].draw(scores[:, goal], self._rng, self.candidates.open[among])

    def _best(self, promise: Promise) -> tuple[int, Floats]:
        """The candidate of the greatest promise, its neighbours included, and the model's mean of each goal."""
        row, means = 0, np.zeros(len(self._cost_models))
        for _ in range(_CLIMB):
            prediction = self.predict()
            worth = prediction.works
            if len(prediction.known) or not self._limit_models:  # else first of all something within the limits
                worth = worth * promise(prediction)
            index = int(np.argmax(worth if worth.max() > 0 else prediction.deviation.sum(axis=0)))
            row, means = int(prediction.rows[index]), prediction.mean[:, index]
            fresh = self.candidates.around(row)
            if not len(fresh):
                break
            for posterior in self._posteriors:
                posterior.extend(fresh)
        return row, means

    def _believe(self, row: int, means: Floats) -> None:
        self._believed.append(means)
        self.candidates.close([row])
        for posterior in self._posteriors:
            posterior.believe(row)

    @property
    def _posteriors(self) -> list[Posterior]:
        """Those of the models that are fitted."""
        models = (*self._cost_models, *self._limit_models, self._works_model)
        return [model.posterior for model in models if model.posterior is not None]

    def _scores(self) -> tuple[Floats, Mask]:
        """Normal scores, shape (points, goals), NaN if a point failed; and which points did not fail."""
        costs = np.asarray(self._costs, dtype=np.float64).reshape(len(self._rows), len(self._cost_models))
        works: Mask = np.all(np.isfinite(costs), axis=1)
        if self._limit_models:
            works &= np.isfinite(np.asarray(self._excess)).all(axis=1)
        scores: Floats = np.full(costs.shape, np.nan)
        for goal, column in enumerate(costs.T):
            scores[works, goal] = log_scores(column[works]) if self._smooth else normal_scores(column[works])
        return scores, works

    def _kept(self, works: Mask) -> Mask:
        """Of the points that worked, those within every limit."""
        if not self._limit_models:
            return works
        with np.errstate(invalid="ignore"):
            return np.asarray(works & (np.asarray(self._excess) <= 0).all(axis=1))

    def _chance_of_limits(self, works: Mask, indices: Indices) -> Floats:
        """The chance that candidates keep every limit, by the models of how far they are beyond each."""
        chance = np.ones(len(indices))
        for values, model in zip(self._tempered(works), self._limit_models, strict=True):
            mean, deviation = model.predict(values, indices)
            chance *= ndtr(-mean / np.maximum(deviation, 1e-9))
        return chance

    def _tempered(self, works: Mask) -> Iterator[Floats]:
        """How far each point is beyond each limit, scaled to a deviation of 1 with 0 kept at the limit.

        Near the limit it is as it is, far from it the logarithm: a latency that diverges would hide all else.
        """
        for column in np.asarray(self._excess, dtype=np.float64).T if self._limit_models else ():
            values = np.arcsinh(np.where(works, column, 0.0) / _NEAR)
            spread = float(values[works].std())
            yield values / spread if spread > 0 else values

    def _update(self, scores: Floats, works: Mask) -> None:
        """Add the new points to the models, or refit these where they have grown enough."""
        fresh = range(self._modelled, len(self._rows))
        self._modelled = len(self._rows)
        needed = (*self._cost_models, *self._limit_models) if works.sum() >= _FEWEST else ()
        if not works.all() or not needed:
            needed = (*needed, self._works_model)
        grown = len(self._rows) >= self._fitted * (1.0 if self._smooth and len(self._rows) <= _FEW else _GROWTH)
        if grown or any(len(fresh) > model.room for model in needed) or not len(self.candidates.open):
            self._fit(scores, works)
            return
        for index in fresh:
            self._works_model.add(index, self._rows[index])
            for model in (*self._cost_models, *self._limit_models) if works[index] else ():
                model.add(index, self._rows[index])

    def _fit(self, scores: Floats, works: Mask) -> None:
        self._fitted = len(self._rows)
        rows = np.asarray(self._rows, dtype=np.int64)
        merit = np.where(works, np.nan_to_num(scores, nan=np.inf).min(axis=1), np.inf)
        order = np.argsort(merit, kind="stable")
        self.candidates.renew(rows[order[:_AROUND]].tolist())
        points = chosen_points(order, self._rng)
        working = points[works[points]]
        if not works.all() or len(working) < _FEWEST:
            self._works_model.fit(points, rows, works.astype(np.float64), self.candidates.rows)
        if len(working) >= _FEWEST:
            for goal, model in enumerate(self._cost_models):
                model.fit(working, rows, scores[:, goal], self.candidates.rows)
            for values, model in zip(self._tempered(works), self._limit_models, strict=True):
                model.fit(working, rows, values, self.candidates.rows)


class Model:
    """One Gaussian process: the points it holds, and its predictions for the candidates."""

    def __init__(self, features: Features) -> None:
        self._kernel = Kernel.by_default(features)
        self._iterations = _ITERATIONS_SMOOTH if features.smooth else _ITERATIONS
        self.posterior: Posterior | None = None
        self._points: list[int] = []  # indices of the surrogate's points

    @property
    def room(self) -> int:
        """How many more points it can hold before it must be refitted."""
        return 0 if self.posterior is None else self.posterior.capacity - self.posterior.count

    def fit(self, points: Indices, rows: Rows, values: Floats, candidates: Rows) -> None:
        """Hold these points. The kernel is fitted where their values differ.

        Parameters
        ----------
        points : array of int, shape (n,)
            Indices in `rows`.
        rows : array of int, shape (points,)
            The row of every point of the surrogate.
        values : array, shape (points,)
            What is modelled, of every point; finite for those held.
        candidates : array of int, shape (m,)
            The rows at which it predicts.
        """
        self._points = points.tolist()
        chosen_values = values[points]
        if chosen_values.std() > 0:
            few = np.linspace(0, len(points) - 1, min(len(points), FIT_POINTS)).astype(np.intp)
            self._kernel = fit_kernel(self._kernel, rows[points[few]], chosen_values[few], self._iterations)
        capacity = len(points) + max(_ROOM, int(len(points) * (_GROWTH - 1)) + 1)
        self.posterior = Posterior(self._kernel, rows[points], candidates, capacity)

    def likelihood(self, rows: Rows, values: Floats) -> float:
        """Log marginal likelihood of the values of rows, with the kernel as it is, up to a constant.

        Parameters
        ----------
        rows : array of int, shape (n,)
            Rows of the space.
        values : array, shape (n,)
            Their values.

        Returns
        -------
        float
            Of at most FIT_POINTS of them, evenly spread.
        """
        few = np.linspace(0, len(rows) - 1, min(len(rows), FIT_POINTS)).astype(np.intp)
        return log_likelihood(self._kernel, rows[few], values[few])[0]

    def add(self, index: int, row: int) -> None:
        """Hold one point more; nothing is done before the first fit.

        Parameters
        ----------
        index, row : int
            The index of the surrogate's point, and its row of the space.
        """
        if self.posterior is not None:
            self._points.append(index)
            self.posterior.add(row)

    def predict(self, values: Floats, indices: Indices) -> tuple[Floats, Floats]:
        """Predict the values of some candidates.

        Parameters
        ----------
        values : array, shape (points,)
            What is modelled, of all the surrogate's points.
        indices : array of int, shape (n,)
            Positions of the candidates.

        Returns
        -------
        mean, deviation : array, shape (n,)
            In the unit of the values.
        """
        assert self.posterior is not None
        mean, deviation = self.posterior.predict(values[self._points])
        return mean[indices], deviation[indices]

    def uncertainty(self, indices: Indices) -> Floats:
        """The deviation at some candidates over that far from every point.

        Parameters
        ----------
        indices : array of int, shape (n,)
            Positions of the candidates.

        Returns
        -------
        array, shape (n,)
            From 0 to 1.
        """
        assert self.posterior is not None
        return self.posterior.uncertainty()[indices]

    def draw(self, values: Floats, rng: np.random.Generator, indices: Indices) -> Floats:
        """Draw one function from the posterior.

        Parameters
        ----------
        values : array, shape (points,)
            What is modelled, of all the surrogate's points.
        rng : numpy.random.Generator
            Draws the function.
        indices : array of int, shape (n,)
            Positions of the candidates at which it is drawn.

        Returns
        -------
        array, shape (n,)
            The function's values there, in the unit of `values`.
        """
        assert self.posterior is not None
        return self.posterior.draw(values[self._points], rng, indices)


def chosen_points(order: Indices, rng: np.random.Generator) -> Indices:
    """Choose the points that a model holds, out of all points from the best to the worst.

    All of them, or the best half, the latest quarter and a random part of the others.

    Parameters
    ----------
    order : array of int, shape (n,)
        The points, best first.
    rng : numpy.random.Generator
        Draws the random part.

    Returns
    -------
    array of int, shape (k,)
        Elements of `order`.
    """
    if len(order) <= MOST_POINTS:
        return np.arange(len(order))
    latest = np.arange(len(order) - MOST_POINTS // 4, len(order))
    kept = np.union1d(order[: MOST_POINTS // 2], latest)
    others = np.setdiff1d(order, kept)
    return np.union1d(kept, rng.choice(others, size=MOST_POINTS - len(kept), replace=False))


def normal_scores(costs: Floats) -> Floats:
    """Map ranks to the quantiles of a normal distribution, the smallest cost lowest; equal costs score alike.

    Parameters
    ----------
    costs : array, shape (n,)
        In any unit.

    Returns
    -------
    array, shape (n,)
        Dimensionless.
    """
    if not len(costs):
        return np.empty(0)
    # as scipy.stats.rankdata: that module takes longer to import than all else of a session
    _, places, counts = np.unique(costs, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    quantiles: Floats = ndtri((ranks - 0.5) / len(costs))
    return quantiles


def log_scores(costs: Floats) -> Floats:
    """Standardised logarithms of costs, the smallest cost lowest; normal scores if signs differ.

    Parameters
    ----------
    costs : array, shape (n,)
        In any unit.

    Returns
    -------
    array, shape (n,)
        Dimensionless, of mean 0 and standard deviation 1.
    """
    if not len(costs) or not ((costs > 0).all() or (costs < 0).all()):
        return normal_scores(costs)
    logs = np.sign(costs) * np.log(np.abs(costs))
    spread = float(logs.std())
    return np.asarray((logs - logs.mean()) / spread if spread > 0 else np.zeros(len(costs)))


class Candidates:
    """Rows in a fixed order, each open until it is asked for."""

    def __init__(self, space: SearchSpace, rng: np.random.Generator) -> None:
        self._space = space
        self._rng = rng
        self._asked = np.zeros(space.size, dtype=bool)
        self._whole = space.size <= WHOLE
        self._pooled = np.full(space.size, self._whole)
        self.rows: Rows = np.arange(space.size if self._whole else 0, dtype=np.int64)

    @property
    def exhausted(self) -> bool:
        """Every row of the space was asked for."""
        return bool(self._asked.all())

    @property
    def open(self) -> npt.NDArray[np.intp]:
        """Positions in `rows` of those not asked for."""
        return np.flatnonzero(~self._asked[self.rows])

    def close(self, rows: Sequence[int]) -> None:
        """Note that rows are asked for.

        Parameters
        ----------
        rows : sequence of int
            Rows of the space, candidates or not.
        """
        self._asked[np.asarray(rows, dtype=np.int64)] = True

    def renew(self, best: Sequence[int]) -> None:
        """Draw a new pool. The whole space stays as it is.

        Parameters
        ----------
        best : sequence of int
            The best rows so far; the pool holds their neighbours too.
        """
        if self._whole:
            return
        drawn = self._rng.integers(self._space.size, size=_RANDOM)
        pool = np.unique(np.concatenate([drawn, self._space.neighbours_of(best)[1]]))
        pool = pool[~self._asked[pool]]
        if not len(pool):
            pool = self._rng.permutation(np.flatnonzero(~self._asked))[:_RANDOM]
        self._pooled[self.rows] = False
        self._pooled[pool] = True
        self.rows = pool

    def include(self, rows: Iterable[int]) -> None:
        """Add rows to the pool.

        Parameters
        ----------
        rows : iterable of int
            Different rows of the space; those in the pool already are passed over.
        """
        fresh = np.array([row for row in rows if not self._pooled[row]], dtype=np.int64)
        self._pooled[fresh] = True
        self.rows = np.concatenate([self.rows, fresh])

    def around(self, row: int) -> Rows:
        """Add the neighbours of a row to the pool.

        Parameters
        ----------
        row : int
            Any row of the space.

        Returns
        -------
        array of int, shape (n,)
            The new ones; none where the pool is full or the space whole.
        """
        if self._whole or len(self.rows) >= _MOST:
            return np.empty(0, dtype=np.int64)
        near = self._space.neighbours(row)
        fresh: Rows = near[~(self._asked[near] | self._pooled[near])]
        self._pooled[fresh] = True
        self.rows = np.concatenate([self.rows, fresh])
        return fresh
