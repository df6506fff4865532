"""Random sampling: uniform over the valid configurations, without repeats. The baseline of every comparison.

Brute force: every valid configuration, in the order of the table, those of one device setting together.

Latin-hypercube sampling: configurations that spread over the values of every parameter, one design after another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..results.settings import SETTINGS
from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .evaluations import Evaluations


class RandomSample(Strategy, name="random_sample", label="Random sampling"):
    """Every configuration once, in random order."""

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: CheckedOptions) -> Search:
        order = np.arange(space.size, dtype=np.uint32)
        rng.shuffle(order)
        step = max(1, batch)
        for start in range(0, space.size, step):
            yield order[start : start + step].tolist()


class BruteForce(Strategy, name="brute_force", label="Brute force"):
    """Every configuration in order; clocks and caps change slowly, so each setting of the board is visited once."""

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: CheckedOptions) -> Search:
        step, rows = max(1, batch), _by_setting(space)
        for start in range(0, space.size, step):
            yield rows[start : start + step].tolist()


def _by_setting(space: SearchSpace) -> npt.NDArray[np.intp]:
    """All rows, sorted by their device settings alone, the graphics clock slowest; shape (size,)."""
    settings = [index for index, parameter in enumerate(space.parameters) if parameter.device_setting]
    if not settings:
        return np.arange(space.size)
    quick = {name: place for place, name in enumerate(SETTINGS)}
    settings.sort(key=lambda at: quick.get(space.parameters[at].name, len(quick)))
    return np.lexsort([space.codes[:, setting] for setting in settings])


class LatinHypercube(Strategy, name="latin_hypercube", label="Latin hypercube"):
    """Spreads over the values of every parameter, one design after another."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        samples: int = option(100, "configurations of one design", least=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        evaluations, step = Evaluations(space, rng), max(1, batch)
        while not evaluations.exhausted:
            design = [
                row for row in space.sample_latin_hypercube(rng, options.samples).tolist() if row not in evaluations
            ]
            design = list(dict.fromkeys([*design, *evaluations.draw(options.samples)]))[: options.samples]
            for start in range(0, len(design), step):
                yield from evaluations.ask(design[start : start + step])
