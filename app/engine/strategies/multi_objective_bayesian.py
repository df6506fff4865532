"""Bayesian optimisation for a front: one Gaussian process per goal, and what enlarges the front most comes next."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Evaluations, Search, strategy
from .learning import Learning, LearningOptions
from .nsga2 import NO_FRONT, costs_of

if TYPE_CHECKING:
    from .features import Floats
    from .surrogate import Prediction


@strategy
class MultiObjectiveBayesian(Learning):
    """A Gaussian process per goal of the front; the configuration that should widen the front most is measured next."""

    name: ClassVar[str] = "multi_objective_bayesian"
    label: ClassVar[str] = "Bayesian optimisation of the front"

    Options: ClassVar[type[LearningOptions]] = LearningOptions

    def go_on(
        self,
        space: SearchSpace,
        known: Evaluations,
        rng: np.random.Generator,
        batch: int,
        options: LearningOptions,
        until: float = math.inf,
    ) -> Search:
        """With what is known, one row at least, until so many rows are, or all."""
        from .surrogate import Surrogate  # imported late: SciPy, and the window opens without it

        rows = list(known)
        first = known.outcome(rows[0])
        surrogate = Surrogate(space, len(costs_of(first)), rng)
        remark = "" if first.front else NO_FRONT
        most = max(1, min(batch, options.together))
        while rows:
            surrogate.learn(rows, [costs_of(known.outcome(row)) for row in rows])
            if len(known) >= until:
                return
            rows = surrogate.propose(most, lambda: partial(_promise, rng))
            yield from known.ask(rows, remark)
            remark = ""


def _promise(rng: np.random.Generator, prediction: Prediction) -> Floats:
    from .acquisition import expected_improvement
    from .hypervolume_improvement import (
        expected_hypervolume_improvement,
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
