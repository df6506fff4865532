"""The default for whoever does not want to choose.

How it decides: a small sample first. Then Gaussian processes learn costs and failures, and the row that promises most
by them is measured next, as long as that thinking pays. After `learn_for` evaluations, when what is left to gain is
small and a measurement may cost less than the thought, a search that thinks little goes on with everything that is
known. Where the session has one goal, that is Bayesian optimisation and then greedy iterated local search from the best
row; where it has a front, Bayesian optimisation of the front and then NSGA-II, with all that is known as its first
generation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Evaluations, Search, strategy
from .bayesian_optimisation import BayesianOptimisation
from .greedy_ils import GreedyIls
from .moves import check_least
from .multi_objective_bayesian import MultiObjectiveBayesian
from .nsga2 import Nsga2


@strategy
class Auto:
    """Bayesian optimisation while it learns, local search afterwards; of the front and NSGA-II where there is one."""

    name: ClassVar[str] = "auto"
    label: ClassVar[str] = "Automatic (Bayesian, then local search)"

    @dataclass(frozen=True)
    class Options:
        learn_for: int = field(
            default=500,
            metadata={"help": "evaluations that a model proposes; then a quicker search goes on, at least 1"},
        )

        def __post_init__(self) -> None:
            check_least("learn_for", self.learn_for, 1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space)
        model = BayesianOptimisation.Options()
        first = space.sample_latin_hypercube(rng, min(model.first_samples, options.learn_for)).tolist()
        yield from known.ask(first)
        if len(known.outcome(first[0]).front) > 1:
            models = MultiObjectiveBayesian.Options()
            yield from MultiObjectiveBayesian().go_on(space, known, rng, batch, models, options.learn_for)
            yield from Nsga2().go_on(space, known, rng, Nsga2.Options())
        else:
            yield from BayesianOptimisation().go_on(space, known, rng, batch, model, options.learn_for)
            yield from GreedyIls().go_on(space, known, rng, batch, GreedyIls.Options())
