"""The energy-aware search with the model of [Zhang2024], gradient-boosted trees, in place of its own, by hand:

    pip install scikit-learn
    PYTHONPATH=. python tests/benchmarks/trees_in_search.py [--seeds N] [--recorded FOLDER]

The trees learn y = E_min / E by squared errors with y as their weight, so that kernels of little energy count most.
Deep ones learn y itself, as published; shallow ones what it is beside a mixture of work and time, the form that was the
best found held out (`energy_models.py`, by XGBoost). All else is that of `energy_search.py`: spaces, seeds, first
candidates, the truth and its scatter. FOLDER holds Kernel Tuner's caches with energies. No board is measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
from energy_models import WORK  # noqa: E402
from energy_search import caches, print_arm, print_head, twins  # noqa: E402
from fixtures.energy_tables import search  # noqa: E402

from app.engine.models.energy_cost import LEAST_POINTS, Sample, fit  # noqa: E402
from app.engine.strategies import energy_aware  # noqa: E402

try:
    from sklearn.ensemble import HistGradientBoostingRegressor
except ImportError:
    sys.exit("scikit-learn is not installed: pip install scikit-learn")

Floats = npt.NDArray[np.float64]
SHALLOW = {"max_depth": 2, "learning_rate": 0.1, "max_iter": 200, "max_features": 0.8}
DEEP = {
    "max_depth": 10,
    "learning_rate": 0.2,
    "max_iter": 100,
    "l2_regularization": 1.0,
}


@dataclass(frozen=True)
class Trees:
    """Stands for an `EnergyCostModel`."""

    grown: Any
    names: tuple[str, ...]
    least_s: float
    least_j: float
    level: float  # of the mixture of work and time that trees start from; 0 for none

    @classmethod
    def fit(cls, settings: dict[str, Any], starts: bool, known: Sample, energy_j: Floats, prior: Any = None) -> Any:
        assert prior is None
        if len(energy_j) < LEAST_POINTS:
            return fit(known, energy_j)  # mean power x time, as in the search itself
        y = energy_j.min() / energy_j
        distinct = [len(np.unique(column[np.isfinite(column)])) for column in known.features.T]
        names = tuple(name for name, count in zip(known.names, distinct, strict=True) if count > 1)
        made = cls(None, names, float(known.time_s.min()), float(energy_j.min()), float(starts))
        if starts:
            made = cls(
                None, made.names, made.least_s, made.least_j, float(np.average(y / made.start(known), weights=y))
            )
        grower = HistGradientBoostingRegressor(min_samples_leaf=2, early_stopping=False, random_state=1, **settings)
        grown = grower.fit(made.inputs(known), y - made.start(known), sample_weight=y)
        return cls(grown, names, made.least_s, made.least_j, made.level)

    def start(self, sample: Sample) -> Floats:
        return self.level / (WORK + (1 - WORK) * sample.time_s / self.least_s)

    def inputs(self, sample: Sample) -> Floats:
        return np.column_stack([sample.columns(self.names), np.log(sample.time_s / self.least_s)])

    def energy_j(self, sample: Sample) -> Floats:
        y = self.start(sample) + self.grown.predict(self.inputs(sample))
        return np.asarray(self.least_j / np.maximum(y, 1e-3))


MODELS: dict[str, Callable[..., Any]] = {
    "process": fit,
    "shallow trees": partial(Trees.fit, SHALLOW, True),
    "deep trees": partial(Trees.fit, DEEP, False),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20, metavar="N")
    parser.add_argument("--recorded", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    print_head()
    for tables in (twins(()), caches(given.recorded)):
        for table in tables:
            for name, model in MODELS.items():
                begun = time.monotonic()
                with patch.object(energy_aware, "fit", model):
                    found = [search(table, seed) for seed in range(given.seeds)]
                print_arm(table.name, name, found, time.monotonic() - begun)


if __name__ == "__main__":
    main()
