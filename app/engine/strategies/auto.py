"""The default strategy.

A small sample comes first, a smaller one where only settings of the board vary. Then Gaussian processes learn costs and
failures, and the row that promises most by them is measured next, while that pays. After `learn_for` evaluations, when
little is left to gain and a measurement may cost less than a proposal, a search with little computation takes over with
everything that is known. With one goal, that is Bayesian optimisation and then greedy iterated local search from the
best row; with a front, Bayesian optimisation of the front and then NSGA-II, with all that is known as its first
generation.

Where the goals need energy and the runner can time rows for less, the first sample is timed and the models learn both
depths (`sample_at_two_depths`): what promises most is timed, and its energy measured where that can matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .bayesian_optimisation import (
    SURE_OF_END,
    BayesianOptimisation,
    LearningOptions,
    MultiObjectiveBayesian,
    sample_at_two_depths,
)
from .evaluations import Evaluations
from .local_search import GreedyIls
from .population import Nsga2

STARTS_SHARE: Final = 0.5  # of the first sample at most are what one would start with


class Auto(Strategy, name="auto", label="Automatic (Bayesian, then local search)"):
    """Bayesian optimisation while it learns, local search afterwards; of the front and NSGA-II where there is one.

    Where energy counts and timing is cheaper, it times what promises most and measures the energy of what may be best.
    """

    times, ends_after = True, SURE_OF_END[0]

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        learn_for: int = option(
            500, "evaluations that a model proposes; then a quicker search takes over, at least 1", least=1
        )
        enough: float = option(
            0.1,
            "percent: where rows are timed, it ends when another measurement is expected to gain less; 0: never",
            least=0,
        )

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        evaluations = Evaluations(space, rng)
        samples = max(LearningOptions().first_samples, self.background.boards())
        drawn = space.sample_evenly(rng, min(samples, options.learn_for)).tolist()
        first = self.background.first(drawn, STARTS_SHARE)
        together = partial(self.at_once, batch, LearningOptions().together)
        enough = options.enough / 100
        ended = yield from sample_at_two_depths(
            evaluations, first, together, options.learn_for, enough, self.background.made
        )
        if ended is not None:
            return ended
        if len(evaluations.outcome(next(iter(evaluations))).front) > 1:
            front = MultiObjectiveBayesian(self.background)
            yield from front.proceed(evaluations, batch, LearningOptions(), options.learn_for)
            yield from Nsga2(self.background).proceed(evaluations, Nsga2.Options())
        else:
            model = BayesianOptimisation(self.background)
            yield from model.proceed(evaluations, batch, BayesianOptimisation.Options(), options.learn_for)
            yield from GreedyIls(self.background).proceed(evaluations, batch, GreedyIls.Options())
        return None
