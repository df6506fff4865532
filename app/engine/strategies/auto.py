"""The default for whoever does not want to choose.

How it decides: a Latin-hypercube sample first; then a Gaussian process learns cost and failures, and the row that
promises most by it is measured next, as long as that thinking pays. After `learn_for` evaluations, when what is left to
gain is small and a measurement may cost less than the thought, greedy iterated local search goes on from the best row,
with everything that is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from app.engine.space.search_space import SearchSpace
from app.engine.strategies.base import Evaluations, Search, strategy
from app.engine.strategies.bayesian_optimisation import BayesianOptimisation
from app.engine.strategies.greedy_ils import GreedyIls
from app.engine.strategies.moves import check_least


@strategy
class Auto:
    """Bayesian optimisation while it learns, greedy iterated local search afterwards."""

    name: ClassVar[str] = "auto"
    label: ClassVar[str] = "Automatic (Bayesian, then local search)"

    @dataclass(frozen=True)
    class Options:
        learn_for: int = field(
            default=500, metadata={"help": "evaluations that the model proposes; then local search goes on, at least 1"}
        )

        def __post_init__(self) -> None:
            check_least("learn_for", self.learn_for, 1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space)
        thinking = BayesianOptimisation().search(space, rng, batch, BayesianOptimisation.Options())
        try:
            rows = next(thinking)
            while True:
                outcomes = yield rows
                known.learn(outcomes)
                if len(known) >= options.learn_for or known.exhausted:
                    break
                rows = thinking.send(outcomes)
        except StopIteration:
            return
        finally:
            thinking.close()
        yield from GreedyIls().go_on(space, known, rng, batch, GreedyIls.Options())
