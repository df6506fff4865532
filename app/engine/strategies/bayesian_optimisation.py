"""Bayesian optimisation: a Gaussian process learns the cost, and the row that promises most by it is measured next."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Evaluations, Search, strategy
from .learning import Learning, LearningOptions

if TYPE_CHECKING:
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


@strategy
class BayesianOptimisation(Learning):
    """A Gaussian process learns cost and failures from a first sample on; what promises most by it is measured next."""

    name: ClassVar[str] = "bayesian_optimisation"
    label: ClassVar[str] = "Bayesian optimisation"

    @dataclass(frozen=True)
    class Options(LearningOptions):
        acquisition: str = field(
            default="expected_improvement",
            metadata={"help": "what makes a configuration promising", "choices": _ACQUISITIONS},
        )

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.acquisition not in _ACQUISITIONS:
                raise ValueError(f"acquisition must be one of {', '.join(_ACQUISITIONS)}, not '{self.acquisition}'")

    def go_on(
        self,
        space: SearchSpace,
        known: Evaluations,
        rng: np.random.Generator,
        batch: int,
        options: Options,
        until: float = math.inf,
    ) -> Search:
        """With what is known, until so many rows are, or all."""
        from .acquisition import Portfolio  # imported late: SciPy, and the window opens without it
        from .surrogate import Surrogate

        surrogate, portfolio = Surrogate(space, 1, rng), Portfolio(rng)
        choose = portfolio.choose if options.acquisition == "portfolio" else lambda: options.acquisition
        most = max(1, min(batch, options.together))
        rows = list(known)
        while rows:
            costs = yield from known.ask(rows)
            surrogate.learn(rows, [(cost,) for cost in costs])
            portfolio.learn(costs)
            if len(known) >= until:
                return
            rows = surrogate.propose(most, lambda: partial(_promise, surrogate, choose()))


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
