"""What hardware counters say of a session: where they are known, and what they add to a model of its energies.

The model is that of the energy-aware search (`models/energy_cost`): from the parameters and what the compiler granted,
with the counters and without them, each tested on configurations that it did not learn from
(`tests/benchmarks/counter_models.txt`: on simulated boards, and beside all features of the search). A search itself has
no use for counters: profiling a configuration takes longer than measuring its energy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...numbers import percent
from ..models.energy_cost import Sample, held_out_errors
from ..space.result_table import ResultTable
from ..workloads.hardware_counters import COUNTERS
from ..workloads.kernel_features import FEATURES
from .costs import Costs, values_of

FEWEST: Final = 16  # profiled configurations, of which a model is tested on parts
_MOST: Final = 1000  # that it is tested on
_SPLITS: Final = 4  # random partitions: which configurations a model has not seen matters
_CHANCE: Final = 2.0  # standard deviations of a fair coin's count


@dataclass(frozen=True, slots=True)
class Counted:
    """The hardware counters of a session.

    `without` and `with_counters` are the median of the relative errors of predicted energies, each configuration's
    over several models that have not seen it: a few predictions are far off, and would hide all others in a mean.
    """

    names: tuple[str, ...]  # of COUNTERS, those that are known of some configuration
    configurations: int  # that have any
    without: float  # NaN where it cannot be told
    with_counters: float
    better: float  # share of the configurations that are predicted better with counters
    by_chance: bool  # a coin could have given that share
    reason: str  # why it cannot be told; else empty

    @property
    def words(self) -> str:
        """What the counters add to the model of energies, in one line."""
        if self.reason:
            return self.reason
        errors = f"{percent(self.with_counters)} off with counters and {percent(self.without)} without"
        share = f"{percent(self.better, 0)} of them are predicted better with counters"
        return (
            f"energies that a model has not seen are {errors} (median); {share}"
            f"{', which may be chance' if self.by_chance else ''}"
        )


def counted(table: ResultTable, costs: Costs) -> Counted | None:
    """Test what hardware counters add to a model of the energies; None where no configuration was profiled."""
    columns = {name: values_of(table, name) for name in COUNTERS if name in table.value_names}
    columns = {name: values for name, values in columns.items() if np.isfinite(values).any()}
    if not columns:
        return None
    known = np.any([np.isfinite(values) for values in columns.values()], axis=0)
    configurations = int(known.sum())

    def unknown(reason: str) -> Counted:
        nan = math.nan
        return Counted(tuple(columns), configurations, nan, nan, nan, by_chance=True, reason=reason)

    measured = np.flatnonzero(known & np.isfinite(costs.energy_j) & np.isfinite(costs.time_s))
    if len(measured) < FEWEST:
        return unknown(f"what counters add to the model of energies shows from {FEWEST} profiled configurations on")
    measured = measured[:: -(-len(measured) // _MOST)]
    granted = [name for name in table.value_names if name in FEATURES]
    usual = {name: values_of(table, name) for name in (*table.space.names, *granted)}
    energy_j = costs.energy_j[measured]
    errors = []
    for features in (usual, {**usual, **columns}):
        sample = Sample(tuple(features), np.column_stack(list(features.values())), costs.time_s).of(measured)
        orders = [np.random.default_rng(seed).permutation(len(measured)) for seed in range(_SPLITS)]
        errors.append(np.mean([np.abs(held_out_errors(sample, energy_j, order)) for order in orders], axis=0))
    better, worse = int((errors[1] < errors[0]).sum()), int((errors[1] > errors[0]).sum())
    return Counted(
        tuple(columns),
        configurations,
        float(np.median(errors[0])),
        float(np.median(errors[1])),
        better / len(measured),
        by_chance=abs(better - worse) <= _CHANCE * math.sqrt(better + worse),
        reason="",
    )
