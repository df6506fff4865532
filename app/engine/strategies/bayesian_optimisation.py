"""Bayesian optimisation: Gaussian processes learn the costs, and the row that promises most by them is measured next.

One process for the objective, or one per goal of the front.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..measurement import Depth
from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .evaluations import Evaluations
from .nsga2 import NO_FRONT, costs_of

if TYPE_CHECKING:  # SciPy takes long to load, and the window opens without it
    from .features import Floats
    from .surrogate import Prediction, Surrogate

_ACQUISITIONS = (
    "expected_improvement",
    "probability_of_improvement",
    "lower_confidence_bound",
    "thompson",
    "portfolio",
)
_DRAWN = 256  # candidates at which a function is drawn


@dataclass(frozen=True)
class LearningOptions(CheckedOptions):
    """Options of both strategies."""

    first_samples: int = option(10, "configurations of the first Latin-hypercube sample, at least 2", least=2)
    together: int = option(4, "most configurations proposed at once, at least 1; fewer learn more each", least=1)


class _Learning(Strategy):
    """Measures a Latin hypercube first, then what the model proposes."""

    Options: ClassVar[type[Any]] = LearningOptions

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: LearningOptions) -> Search:
        known = Evaluations(space, rng)
        samples = max(options.first_samples, self.background.boards())
        yield from known.ask(space.sample_latin_hypercube(rng, samples).tolist())
        yield from self.proceed(known, batch, options)

    @abstractmethod
    def proceed(self, known: Evaluations, batch: int, options: Any, until: float = math.inf) -> Search:
        """Continue from at least one known row, until `until` rows are known, or all."""


def sample_at_two_depths(
    known: Evaluations, first: list[int], together: Callable[[], int], until: float = math.inf
) -> Search:
    """Time the first sample and learn at two depths; where timing saves nothing, that is the sample measured."""
    heard = yield from known.time(first)
    if any(outcome.depth is Depth.TIME for outcome in heard):
        from .two_depths import TwoDepths

        goals = len(costs_of(heard[0]))
        yield from TwoDepths(known, goals).proceed(together, until)
    if not len(known):
        yield from known.ask(first)


class BayesianOptimisation(_Learning, name="bayesian_optimisation", label="Bayesian optimisation"):
    """A Gaussian process learns cost and failures from a first sample on; what promises most by it is measured next."""

    @dataclass(frozen=True)
    class Options(LearningOptions):
        acquisition: str = option("expected_improvement", "what makes a configuration promising", choices=_ACQUISITIONS)

    def proceed(self, known: Evaluations, batch: int, options: Options, until: float = math.inf) -> Search:
        from .acquisition import Portfolio
        from .surrogate import Surrogate

        limits = len(_limited(known))
        surrogate, portfolio = Surrogate(known.space, 1, known.rng, limits), Portfolio(known.rng)
        choose = portfolio.choose if options.acquisition == "portfolio" else lambda: options.acquisition
        together = partial(self.at_once, batch, options.together)
        rows = list(known)
        while rows:
            costs = yield from known.ask(rows)
            surrogate.learn([replace(known.outcome(row), front=()) for row in rows])
            portfolio.learn(costs)
            if len(known) >= until:
                return
            rows = surrogate.propose(together(), lambda: partial(_promise, surrogate, choose()))


def _limited(known: Evaluations) -> tuple[float, ...]:
    """How far some row is beyond each limit: as many as there are limits; none where there are none, or all failed."""
    return next((known.outcome(row).excess for row in known if known.outcome(row).excess), ())


def _promise(surrogate: Surrogate, acquisition: str, prediction: Prediction) -> Floats:
    from .acquisition import ACQUISITIONS

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
        known = Evaluations(space, rng)
        samples = max(options.first_samples, self.background.boards())
        first = space.sample_latin_hypercube(rng, samples).tolist()
        yield from sample_at_two_depths(known, first, partial(self.at_once, batch, options.together))
        yield from self.proceed(known, batch, options)

    def proceed(self, known: Evaluations, batch: int, options: LearningOptions, until: float = math.inf) -> Search:
        from .surrogate import Surrogate

        rows = list(known)
        first = known.outcome(rows[0])
        surrogate = Surrogate(known.space, len(costs_of(first)), known.rng, len(_limited(known)))
        remark = "" if first.front else NO_FRONT
        together = partial(self.at_once, batch, options.together)
        while rows:
            surrogate.learn([known.outcome(row) for row in rows])
            if len(known) >= until:
                return
            rows = surrogate.propose(together(), lambda: partial(_promise_of_front, known.rng))
            yield from known.ask(rows, remark)
            remark = ""


def _promise_of_front(rng: np.random.Generator, prediction: Prediction) -> Floats:
    from .acquisition import (
        expected_hypervolume_improvement,
        expected_improvement,
        reference_beyond,
        scalarised_improvement,
    )

    mean, deviation, known = prediction.mean, prediction.deviation, prediction.known
    if not len(known):
        return np.asarray(deviation.sum(axis=0))
    if len(mean) == 1:
        return expected_improvement(mean[0], deviation[0], float(known.min()))
    if len(mean) == 2:
        return expected_hypervolume_improvement(mean, deviation, known, reference_beyond(known))
    return scalarised_improvement(mean, deviation, known, rng)
