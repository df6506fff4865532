"""Bayesian optimisation: a Gaussian process learns the cost, and the row that promises most by it is measured next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from app.engine.space.search_space import SearchSpace
from app.engine.strategies.base import Search, strategy
from app.engine.strategies.moves import check_least

if TYPE_CHECKING:
    from app.engine.strategies.features import Floats
    from app.engine.strategies.surrogate import Prediction, Surrogate

_ACQUISITIONS = (
    "expected_improvement",
    "probability_of_improvement",
    "lower_confidence_bound",
    "thompson",
    "portfolio",
)
_CLIMB = 4  # looks around the best candidate, where candidates are a part of the space
_DRAWN = 512  # candidates at which a function is drawn


@strategy
class BayesianOptimisation:
    """A first sample over the whole space, then always the candidate of the best acquisition value."""

    name: ClassVar[str] = "bayesian_optimisation"
    label: ClassVar[str] = "Bayesian optimisation"

    @dataclass(frozen=True)
    class Options:
        first_samples: int = field(
            default=10, metadata={"help": "configurations of the first Latin-hypercube sample, at least 2"}
        )
        acquisition: str = field(
            default="expected_improvement",
            metadata={"help": f"what makes a configuration promising: {', '.join(_ACQUISITIONS)}"},
        )
        together: int = field(
            default=4, metadata={"help": "most configurations proposed at once, at least 1; fewer learn more each"}
        )

        def __post_init__(self) -> None:
            check_least("first_samples", self.first_samples, 2)
            check_least("together", self.together, 1)
            if self.acquisition not in _ACQUISITIONS:
                raise ValueError(f"acquisition must be one of {', '.join(_ACQUISITIONS)}, not '{self.acquisition}'")

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        from app.engine.strategies.acquisition import Portfolio  # imported late: SciPy, and the window opens without it
        from app.engine.strategies.surrogate import Surrogate

        surrogate = Surrogate(space, 1, rng)
        portfolio = Portfolio(rng)
        rows = space.sample_latin_hypercube(rng, options.first_samples).tolist()
        chosen: list[str] = []  # the function behind each row
        costs: list[float] = []
        while rows:
            outcomes = yield rows
            surrogate.learn([o.row for o in outcomes], [(o.cost,) for o in outcomes])
            for name, outcome in zip(chosen, outcomes, strict=False):
                portfolio.learn(name, float(np.mean(np.array(costs) < outcome.cost)))
            costs += [outcome.cost for outcome in outcomes]
            rows, chosen = [], []
            most = max(1, min(batch, options.together))
            while len(rows) < most and not surrogate.candidates.exhausted:
                name = portfolio.choose() if options.acquisition == "portfolio" else options.acquisition
                row, means = _proposal(surrogate, name)
                rows.append(row)
                chosen.append(name)
                if len(rows) < most:
                    surrogate.believe(row, means)


def _proposal(surrogate: Surrogate, acquisition: str) -> tuple[int, Floats]:
    """The most promising row, and what the model expects it to cost."""
    row, means = 0, np.zeros(1)
    for _ in range(_CLIMB):
        prediction = surrogate.predict()
        promise = _promise(surrogate, prediction, acquisition)
        at = int(np.argmax(promise if promise.max() > 0 else prediction.deviation[0]))
        row, means = int(prediction.rows[at]), prediction.mean[:, at]
        if not surrogate.look_around(row):
            break
    return row, means


def _promise(surrogate: Surrogate, prediction: Prediction, acquisition: str) -> Floats:
    from app.engine.strategies.acquisition import ACQUISITIONS

    if acquisition == "thompson":
        among, drawn = surrogate.draw(0, prediction, _DRAWN)
        promise = np.zeros(len(prediction.rows))
        promise[among] = drawn.max() - drawn
    else:
        best = float(prediction.known.min()) if len(prediction.known) else 0.0
        promise = ACQUISITIONS[acquisition](prediction.mean[0], prediction.deviation[0], best)
    weighted: Floats = promise * prediction.works
    return weighted
