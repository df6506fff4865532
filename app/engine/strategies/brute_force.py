"""Brute force: every valid configuration, in the order of the table, those of one device setting together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..board_settings import SETTINGS
from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy


class BruteForce(Strategy, name="brute_force", label="Brute force"):
    """Every configuration in order; clocks and caps change slowly, so each setting of the board is visited once."""

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: CheckedOptions) -> Search:
        step, rows = max(1, batch), _by_setting(space)
        for start in range(0, space.size, step):
            yield rows[start : start + step].tolist()


def _by_setting(space: SearchSpace) -> npt.NDArray[np.intp]:
    """All rows, sorted by their device settings alone, the graphics clock slowest; shape (size,)."""
    settings = [at for at, parameter in enumerate(space.parameters) if parameter.device_setting]
    if not settings:
        return np.arange(space.size)
    quick = {name: place for place, name in enumerate(SETTINGS)}
    settings.sort(key=lambda at: quick.get(space.parameters[at].name, len(quick)))
    return np.lexsort([space.codes[:, at] for at in settings])
