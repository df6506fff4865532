"""Acquisition functions: how much a candidate promises, from the mean and deviation of its cost (smaller is better).

All give larger-is-better numbers of at least 0, so that they can be multiplied by the chance that a candidate works.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from scipy.special import ndtr

from .features import Floats

Acquisition = Callable[[Floats, Floats, float], Floats]  # of means, deviations and the best cost so far


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """By how much a candidate is expected to beat the best (Jones, Schonlau & Welch 1998, eq 15)."""
    gain = best - mean
    z = gain / deviation
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return np.maximum(gain * ndtr(z) + deviation * density, 0.0)


def probability_of_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """The chance that a candidate beats the best by a hundredth of the costs' spread (Kushner 1964)."""
    chance: Floats = ndtr((best - 0.01 - mean) / deviation)
    return chance


def lower_confidence_bound(mean: Floats, deviation: Floats, best: float) -> Floats:
    """How far mean - 2 deviations lies below the highest such bound (Srinivas et al. 2010, with a fixed factor)."""
    bound = mean - 2 * deviation
    return np.asarray(bound.max() - bound)


ACQUISITIONS: Final[dict[str, Acquisition]] = {
    "expected_improvement": expected_improvement,
    "probability_of_improvement": probability_of_improvement,
    "lower_confidence_bound": lower_confidence_bound,
}


class Portfolio:
    """Takes turns among acquisition functions, those more often whose proposals did better (after GP-Hedge, 2011).

    A function's loss is the mean rank, 0 best to 1 worst, that its latest proposals took among all measured before.
    """

    _MEMORY: Final = 0.8  # weight of the past at each new proposal
    _ZEAL: Final = 4.0  # the larger, the more the better functions are preferred

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._loss = dict.fromkeys(ACQUISITIONS, 0.0)
        self._chosen: list[str] = []  # since the last costs were told
        self._costs: list[float] = []

    def choose(self) -> str:
        """The function that makes the next proposal."""
        weights = np.exp(-self._ZEAL * np.array(list(self._loss.values())))
        self._chosen.append(list(self._loss)[int(self._rng.choice(len(weights), p=weights / weights.sum()))])
        return self._chosen[-1]

    def learn(self, costs: Sequence[float]) -> None:
        """What came of the proposals since the last time, in their order."""
        before = np.array(self._costs)
        for name, cost in zip(self._chosen, costs, strict=False):
            self._loss[name] = self._MEMORY * self._loss[name] + (1 - self._MEMORY) * float((before < cost).mean())
        self._chosen.clear()
        self._costs.extend(costs)
