"""Bayesian optimisation: Gaussian processes learn the costs, and the row that promises most by them is measured next.

One process for the objective, or one per goal of the front.

Bayesian optimisation at two depths: what promises most is timed, and measured where it still promises most then.

The logarithm of a cost is modelled as a power of the time per launch and a rest,

    log cost = r log time + d(x)

with one Gaussian process for log time, over all rows whose time is known, and one for d, over those that were measured:
an autoregressive model of two depths [Kennedy2000]. For energy, or work per energy, d is nearly the logarithm of the
power, which changes less from one configuration to the next than the time does. r is the likeliest; where time does
not help it is 0, and rows are measured at once.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from ..results.measurement import Depth
from ..results.pareto import hypervolume
from ..space.search_space import SearchSpace
from .acquisition import (
    ACQUISITIONS,
    Portfolio,
    expected_hypervolume_improvement,
    expected_improvement,
    reference_beyond,
    scalarised_improvement,
)
from .base import CheckedOptions, Search, Strategy, option
from .evaluations import Evaluations
from .features import Features, Floats
from .population import NO_FRONT, costs_of, unlimited_costs_of
from .surrogate import MOST_POINTS, Candidates, Model, Prediction, Surrogate, chosen_points

_CHOICES = (*ACQUISITIONS, "thompson", "portfolio")
_DRAWN = 256  # candidates at which a function is drawn


@dataclass(frozen=True)
class LearningOptions(CheckedOptions):
    """Options of both strategies."""

    first_samples: int = option(
        10, "configurations of the first sample, which spreads over the values, at least 2", least=2
    )
    together: int = option(4, "most configurations proposed at once, at least 1; fewer learn more each", least=1)


class _Learning(Strategy):
    """Measures a sample that spreads over the values first, then what the model proposes."""

    times = True
    Options: ClassVar[type[Any]] = LearningOptions

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: LearningOptions) -> Search:
        evaluations = Evaluations(space, rng)
        samples = max(options.first_samples, self.background.boards())
        yield from evaluations.ask(space.sample_evenly(rng, samples).tolist())
        yield from self.proceed(evaluations, batch, options)

    @abstractmethod
    def proceed(self, evaluations: Evaluations, batch: int, options: Any, until: float = math.inf) -> Search:
        """Continue from the rows that are known, at least one.

        Parameters
        ----------
        evaluations : Evaluations
            What is known of the space; outcomes are added to it.
        batch : int
            How many rows the runner can prepare at once.
        options : Options
            An instance of the strategy's own class of that name.
        until : float, optional
            How many rows are known at the end; all where it is inf, the default.

        Yields
        ------
        Batch
            The rows to measure next.
        """


def sample_at_two_depths(
    evaluations: Evaluations,
    first: list[int],
    together: Callable[[], int],
    until: float = math.inf,
    enough: float = 0.0,
    made: Sequence[int] = (),
) -> Search:
    """Time the first sample and learn at two depths; where timing saves nothing, that is the sample measured.

    Parameters
    ----------
    evaluations : Evaluations
        What is known of the space; outcomes are added to it.
    first : list of int
        The rows of the sample.
    together : callable
        Called before each batch that the models propose; returns how many rows to propose together.
    until : float, optional
        How many rows are evaluated at the end; all where it is inf, the default.
    enough : float, optional
        As of `TwoDepths.proceed`.
    made : sequence of int, optional
        Rows that are timed with the sample where rows can be timed, as that costs next to nothing.

    Yields
    ------
    Batch
        The rows to time or measure next.

    Returns
    -------
    str or None
        Why it ended, where enough is known.
    """
    ended = None
    heard = yield from evaluations.time(first)
    if any(outcome.depth is Depth.TIME for outcome in heard):
        goals = len(costs_of(heard[0]))
        yield from evaluations.time(made)
        ended = yield from TwoDepths(evaluations, goals).proceed(together, until, enough)
    if not len(evaluations):
        yield from evaluations.ask(first)
    return ended


class BayesianOptimisation(_Learning, name="bayesian_optimisation", label="Bayesian optimisation"):
    """A Gaussian process learns cost and failures from a first sample on; what promises most by it is measured next."""

    @dataclass(frozen=True)
    class Options(LearningOptions):
        acquisition: str = option("expected_improvement", "what makes a configuration promising", choices=_CHOICES)

    def proceed(self, evaluations: Evaluations, batch: int, options: Options, until: float = math.inf) -> Search:
        limits = len(_limited(evaluations))
        surrogate, portfolio = Surrogate(evaluations.space, 1, evaluations.rng, limits), Portfolio(evaluations.rng)
        choose = portfolio.choose if options.acquisition == "portfolio" else lambda: options.acquisition
        together = partial(self.at_once, batch, options.together)
        rows = list(evaluations)
        while rows:
            costs = yield from evaluations.ask(rows)
            surrogate.learn([replace(evaluations.outcome(row), front=()) for row in rows])
            portfolio.learn(costs)
            if len(evaluations) >= until:
                return
            rows = surrogate.propose(together(), lambda: partial(_promise, surrogate, choose()))


def _limited(evaluations: Evaluations) -> tuple[float, ...]:
    """How far some row is beyond each limit: as many as there are limits; none if there are none, or all failed."""
    return next((evaluations.outcome(row).excess for row in evaluations if evaluations.outcome(row).excess), ())


def _promise(surrogate: Surrogate, acquisition: str, prediction: Prediction) -> Floats:
    if acquisition == "thompson":
        among, drawn = surrogate.draw(0, prediction, _DRAWN)
        promise = np.zeros(len(prediction.rows))
        promise[among] = drawn.max() - drawn
    else:
        best = float(prediction.known.min()) if len(prediction.known) else 0.0
        promise = ACQUISITIONS[acquisition](prediction.mean[0], prediction.deviation[0], best)
    return promise


class MultiObjectiveBayesian(_Learning, name="multi_objective_bayesian", label="Bayesian optimisation of the front"):
    """A Gaussian process per goal of the front; the configuration that should widen the front most is measured next."""

    of_front = True

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: LearningOptions) -> Search:
        evaluations = Evaluations(space, rng)
        samples = max(options.first_samples, self.background.boards())
        first = space.sample_latin_hypercube(rng, samples).tolist()  # no worse for a front than an even sample
        yield from sample_at_two_depths(evaluations, first, partial(self.at_once, batch, options.together))
        yield from self.proceed(evaluations, batch, options)

    def proceed(
        self, evaluations: Evaluations, batch: int, options: LearningOptions, until: float = math.inf
    ) -> Search:
        rows = list(evaluations)
        first = evaluations.outcome(rows[0])
        surrogate = Surrogate(evaluations.space, len(costs_of(first)), evaluations.rng, len(_limited(evaluations)))
        remark = "" if first.front else NO_FRONT
        together = partial(self.at_once, batch, options.together)
        while rows:
            surrogate.learn([evaluations.outcome(row) for row in rows])
            if len(evaluations) >= until:
                return
            rows = surrogate.propose(together(), lambda: partial(_promise_of_front, evaluations.rng))
            yield from evaluations.ask(rows, remark)
            remark = ""


def _promise_of_front(rng: np.random.Generator, prediction: Prediction) -> Floats:
    mean, deviation, known = prediction.mean, prediction.deviation, prediction.known
    if not len(known):
        return np.asarray(deviation.sum(axis=0))
    if len(mean) == 1:
        return expected_improvement(mean[0], deviation[0], float(known.min()))
    if len(mean) == 2:
        return expected_hypervolume_improvement(mean, deviation, known, reference_beyond(known))
    return scalarised_improvement(mean, deviation, known, rng)


Mask = npt.NDArray[np.bool_]

HELD_BACK: Final = 0.03  # longer in its window, relative: the power limit did that, and the time without is kept
FIRST: Final = 5  # of the first sample that are measured: the fastest, and two others where no setting varies
SETTINGS: Final = 4  # at which the fastest is measured first
FEWEST: Final = 3  # measured rows that worked, before there is a model
PATIENCE: Final = 20.0  # gains of measuring count so many times less, and more with each row timed since the last one
REMARK: Final = "Configurations are timed first, and those are measured that may be best by what that shows."
SURE: Final = 1.0  # a row is measured at once where its time is uncertain by no more than so much of the rest
EXPONENTS: Final = tuple(np.linspace(0.0, 2.0, 21).tolist())
EXPONENT: Final = (1.0, 0.5)  # mean and deviation of a normal prior: most goals are of energy
AT_MOST: Final = 96  # rows that are timed after one was measured where measuring another promises nothing
SURE_OF_END: Final = 20, 3  # rows measured at least, and looks in a row by which nothing is to be gained
LIKELY: Final = 16  # rows that promise most after those that are asked for
_GROWTH: Final = 1.15  # the models are fitted again when there is so much more to fit them to
_AROUND: Final = 8  # best rows whose neighbours are candidates
_KNOWN: Final = 1e-3  # deviation of the logarithm of a time that is known
_LEAST: Final = 1e-6
_SHORTEST_S: Final = 1e-9


class TwoDepths:
    """One search at two depths, from a first sample on of which some rows were timed."""

    def __init__(self, evaluations: Evaluations, goals: int) -> None:
        self._known = evaluations
        features = Features(evaluations.space)
        self._candidates = Candidates(evaluations.space, evaluations.rng)
        self._log_times: Floats = np.full(evaluations.space.size, np.nan)  # by row
        self._works, self._time = _Learned(Model(features)), _Learned(Model(features))
        self._rests = [_Learned(Model(features)) for _ in range(goals)]
        self._exponents = [EXPONENT[0]] * goals
        self._costs: list[tuple[float, ...]] = []  # of the rows that were measured and worked
        self._kept: list[bool] = []  # of them, those within the limits
        self._since = 0  # rows that were timed since one was measured
        self._gain = math.inf  # the most that measuring a row should gain, relative
        self._area = 1.0  # what gains are relative to: the area of a front of two goals; 1 for logarithms
        self._little = 0  # looks in a row by which that is too little
        self._fitted = 0  # looks when the models were last fitted

    def proceed(self, together: Callable[[], int], until: float = math.inf, enough: float = 0.0) -> Search:
        """Time and measure what promises most, up to a number of rows. It ends early where costs have no logarithm.

        Parameters
        ----------
        together : callable
            Called before each batch that the models propose; returns how many rows to propose together.
        until : float, optional
            How many rows are evaluated at the end; all where it is inf, the default.
        enough : float, optional
            It ends when this is more than any measurement is expected to gain: of the cost, or of the area of a front
            of two goals, relative. 0, the default: it goes on.

        Yields
        ------
        Batch
            The rows to time or measure next.

        Returns
        -------
        str or None
            Why it ended, where enough is known.
        """
        evaluations = self._known
        yield from self._begin()
        while not evaluations.exhausted and len(evaluations) < until:
            if not self._learn():
                return None
            to_time, to_measure, likely = self._choose(together())
            if self._has_to_look(enough):
                to_time, to_measure = [], self._fastest()[: SURE_OF_END[0] - len(self._costs)]
            if self._is_enough(enough):
                return f"another measurement is expected to gain less than {100 * enough:g} %"
            if not (to_time or to_measure):
                return None
            if to_time:
                yield from evaluations.time(to_time, likely=likely)
            self._since += len(to_time)
            if to_measure:
                yield from evaluations.ask(to_measure)
                self._since = 0
        return None

    # --- inside -----------------------------------------------------------------------------------------------------

    def _begin(self) -> Search:
        """Measure the fastest of the first sample and a few others; more where too few of these work."""
        known = self._known
        first = self._fastest()
        others = self._at_other_settings(first) or first[FIRST - 2 :: 3][:2]
        yield from known.ask(list(dict.fromkeys([*first[: FIRST - 2], *others])), REMARK)
        while sum(_worked(known, row) for row in known) < FEWEST and not known.exhausted:
            if not known.timed:
                yield from known.time(known.draw(FIRST))
            yield from known.ask(self._fastest()[:FEWEST])

    def _is_enough(self, enough: float) -> bool:
        """Return True if the models have expected too little of any measurement for some looks."""
        self._little = self._little + 1 if self._gain < enough else 0
        least, looks = SURE_OF_END
        return len(self._costs) >= least and self._little >= looks

    def _has_to_look(self, enough: float) -> bool:
        """Return True if rows are timed one after the other and too few are measured to believe that no gain is left.

        Where all rows draw the same power, their times say which are best, and measuring one promises nothing.
        """
        return self._gain < enough and len(self._costs) < SURE_OF_END[0] and self._since >= AT_MOST

    def _at_other_settings(self, rows: Sequence[int]) -> list[int]:
        """Rows that differ from the first in a setting alone: what a clock does to the power is learned first.

        Where the space has none, the first of `rows` at each other setting.
        """
        space = self._known.space
        axes = [axis for axis, each in enumerate(space.parameters) if each.device_setting]
        if not axes or not len(rows):
            return []
        near = np.sort(space.neighbours(rows[0]))
        near = near[np.any(space.codes[near][:, axes] != space.codes[rows[0], axes], axis=1)]
        if not len(near):
            near = np.asarray(rows)[np.unique(space.codes[rows][:, axes], axis=0, return_index=True)[1]]
            near = near[near != rows[0]]
        places = np.linspace(0, len(near) - 1, min(SETTINGS, len(near))).round().astype(int)
        return [int(other) for other in near[places]]

    def _fastest(self) -> list[int]:
        timed = self._known.timed
        return sorted(timed, key=lambda row: timed[row].values["time_s"])

    def _learn(self) -> bool:
        """Give the models what is new; whether they can go on."""
        known = self._known
        self._candidates.close(list(known))
        for row, outcome in [*((row, known.outcome(row)) for row in known), *known.timed.items()]:
            works = not outcome.final or (_worked(known, row) and "time_s" in outcome.values)
            kept = works and not any(value > 0 for value in outcome.excess)
            self._works.note(row, float(kept))
            if works:
                log_time = math.log(max(outcome.values["time_s"], _SHORTEST_S))
                if not log_time > self._log_times[row] + HELD_BACK:
                    self._log_times[row] = log_time
                self._time.note(row, self._log_times[row])
            if outcome.final and works and row not in self._rests[0]:
                self._costs.append(unlimited_costs_of(outcome))
                self._kept.append(kept)
                for rest in self._rests:
                    rest.note(row, 0.0)
        costs = np.array(self._costs)
        if not len(costs) or (costs == 0).any() or not (np.sign(costs) == np.sign(costs[0])).all():
            return False
        self._logs = np.sign(costs) * np.log(np.abs(costs))
        looks = len(self._works.rows) + len(self._costs)
        learned = (self._works, self._time, *self._rests)
        if looks >= self._fitted * _GROWTH or any(item.full for item in learned) or not len(self._candidates.open):
            self._fitted = looks
            self._fit()
        else:
            self._set_rests()
            for item in learned:
                item.add()
        return True

    def _fit(self) -> None:
        rng, measured = self._known.rng, self._rests[0].rows
        best = np.argsort(self._logs.min(axis=1), kind="stable")[:_AROUND]
        self._candidates.renew([measured[index] for index in best.tolist()])
        self._candidates.include(self._known.timed)
        rows = self._candidates.rows
        self._works.fit(np.arange(len(self._works.rows))[-MOST_POINTS:], rows)
        self._time.fit(chosen_points(np.argsort(self._time.values, kind="stable"), rng), rows)
        times = self._log_times[measured]
        for goal, rest in enumerate(self._rests):
            logs = self._logs[:, goal]
            self._exponents[goal] = max(EXPONENTS, key=lambda r: rest.likelihood(logs - r * times) + _prior(r))
        self._set_rests()
        points = chosen_points(np.argsort(self._logs.min(axis=1), kind="stable"), rng)
        for rest in self._rests:
            rest.fit(points, rows)

    def _set_rests(self) -> None:
        """What the time leaves of the costs."""
        times = self._log_times[self._rests[0].rows]
        for goal, rest in enumerate(self._rests):
            values = self._logs[:, goal] - self._exponents[goal] * times
            rest.values = (values if np.ptp(values) > _LEAST else np.full(len(values), values.mean())).tolist()

    def _choose(self, most: int) -> tuple[list[int], list[int], list[int]]:
        """Up to `most` rows: those to time, and those to measure; beside them, those that may be timed next."""
        likely: list[int] = []
        to_time: list[int] = []
        to_measure: list[int] = []
        best = self._logs[self._kept] if any(self._kept) else self._logs  # and what is believed of rows to measure
        while len(to_time) + len(to_measure) < most and len(self._candidates.open):
            open_candidates = self._candidates.open
            rows = self._candidates.rows[open_candidates]
            mean, deviation, of_time, timed = self._predict(open_candidates)
            ready = timed | (of_time <= SURE * np.sqrt(np.maximum(deviation**2 - of_time**2, 0.0))).all(axis=0)
            chance = np.where(timed, 1.0, self._chance(open_candidates))
            measuring, timing = self._gains(mean, deviation, of_time, best, timed)
            if not likely:
                self._gain = float((measuring * chance).max()) / self._area
            worth = chance * np.where(ready, measuring * (1 + self._since) / PATIENCE, timing)
            if worth.max() <= 0:
                worth = deviation.sum(axis=0)
            worth[np.isin(rows, to_time)] = -1.0
            if not likely:  # of what is known, without what is believed of the others
                untimed = np.flatnonzero(~timed)
                likely = rows[untimed[np.argsort(-worth[untimed], kind="stable")[: most + LIKELY]]].tolist()
            place = int(np.argmax(worth))
            if worth[place] < 0:
                break
            row = int(rows[place])
            if ready[place]:
                to_measure.append(row)
                best = np.concatenate([best, mean[None, :, place]])
                self._candidates.close([row])
                for rest in self._rests:
                    rest.believe(row)
            else:
                to_time.append(row)
                self._time.believe(row)
        for item in (self._time, *self._rests):
            item.forget()
        return to_time, to_measure, [row for row in likely if row not in {*to_time, *to_measure}]

    def _predict(self, indices: npt.NDArray[np.intp]) -> tuple[Floats, Floats, Floats, Mask]:
        """Mean and deviation of the log costs of candidates, the part that is of their time, and which are timed.

        The first three have shape (goals, candidates), the last (candidates,).
        """
        measured = self._log_times[self._candidates.rows[indices]]
        timed = np.isfinite(measured)
        time, uncertain = self._time.predict(indices)
        time, uncertain = np.where(timed, measured, time), np.where(timed, _KNOWN, uncertain)
        predictions = [rest.predict(indices) for rest in self._rests]
        exponents = np.array(self._exponents)[:, None]
        mean = exponents * time + np.stack([mean for mean, _ in predictions])
        of_time = np.maximum(exponents * uncertain, _LEAST)
        return mean, np.hypot(of_time, np.stack([deviation for _, deviation in predictions])), of_time, timed

    def _gains(
        self, mean: Floats, deviation: Floats, of_time: Floats, best: Floats, timed: Mask
    ) -> tuple[Floats, Floats]:
        """Expected improvements of each row: of the best by measuring it, and of the predicted best by timing it."""
        predicted = np.concatenate([best, mean[:, timed].T])
        if len(mean) == 2:
            reference = reference_beyond(predicted)
            measuring = expected_hypervolume_improvement(mean, deviation, best, reference)
            timing = expected_hypervolume_improvement(mean, of_time, predicted, reference)
            self._area = hypervolume(best, (False, False), tuple(reference.tolist()))
        else:
            weights = self._known.rng.dirichlet(np.full(len(mean), 0.5)) if len(mean) > 1 else np.ones(1)
            ideal = best.min(axis=0)
            costs, so_far, foreseen = (_together(value, ideal, weights) for value in (mean.T, best, predicted))
            spread, of_times = (np.sqrt(weights**2 @ item**2) for item in (deviation, of_time))
            measuring = expected_improvement(costs, spread, float(so_far.min()))
            timing = expected_improvement(costs, of_times, float(foreseen.min()))
        return measuring, timing

    def _chance(self, indices: npt.NDArray[np.intp]) -> Floats:
        """The chance that candidates work."""
        values = self._works.values
        if min(values) == max(values):
            return np.ones(len(indices))
        mean, deviation = self._works.predict(indices)
        return np.asarray(ndtr((mean - 0.5) / np.hypot(deviation, 0.05)))


class _Learned:
    """A Gaussian process over rows that come one after another, each with a value."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.rows: list[int] = []
        self.values: list[float] = []
        self._place: dict[int, int] = {}
        self._given = 0  # of the rows, to the model

    def __contains__(self, row: int) -> bool:
        return row in self._place

    def note(self, row: int, value: float) -> None:
        """A row, or what it turned out to be."""
        place = self._place.setdefault(row, len(self.rows))
        if place == len(self.rows):
            self.rows.append(row)
            self.values.append(value)
        else:
            self.values[place] = value

    @property
    def full(self) -> bool:
        """It must be fitted before it can take what is new."""
        return len(self.rows) - self._given > self._model.room

    def likelihood(self, values: Floats) -> float:
        """Of other values in place of these, with the kernel as it is."""
        return self._model.likelihood(np.asarray(self.rows, dtype=np.int64), values)

    def fit(self, points: npt.NDArray[np.intp], candidates: npt.NDArray[np.int64]) -> None:
        """Fit it to these of the rows, by their places."""
        self._model.fit(points, np.asarray(self.rows, dtype=np.int64), np.asarray(self.values), candidates)
        self._given = len(self.rows)

    def add(self) -> None:
        """Take what is new."""
        for index in range(self._given, len(self.rows)):
            self._model.add(index, self.rows[index])
        self._given = len(self.rows)

    def predict(self, indices: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Mean and deviation at candidates."""
        return self._model.predict(np.asarray(self.values), indices)

    def believe(self, row: int) -> None:
        """It will be known soon."""
        if self._model.posterior is not None:
            self._model.posterior.believe(row)

    def forget(self) -> None:
        """End every belief."""
        if self._model.posterior is not None:
            self._model.posterior.forget()


def _worked(evaluations: Evaluations, row: int) -> bool:
    return all(map(math.isfinite, unlimited_costs_of(evaluations.outcome(row))))


def _prior(exponent: float) -> float:
    mean, deviation = EXPONENT
    return -0.5 * ((exponent - mean) / deviation) ** 2


def _together(costs: Floats, ideal: Floats, weights: Sequence[float] | Floats) -> Floats:
    """Several goals as one, shape (n, goals) -> (n,): a Chebyshev norm around the best of each [Knowles2006]."""
    if len(ideal) == 1:
        return costs[:, 0]
    weighted = (costs - ideal) * np.asarray(weights)
    return np.asarray(weighted.max(axis=1) + 0.05 * weighted.sum(axis=1))
