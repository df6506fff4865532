"""What hardware counters say of a session: where they are known, and what they add to a model of its energies.

The model is that of the energy-aware search (`models/energy_cost`): from the parameters and what the compiler granted,
with the counters and without them, each tested on configurations that it did not learn from. A search itself has no use
for counters: profiling a configuration takes longer than measuring its energy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...numbers import percent
from ..models.energy_cost import MISSING_LIBRARY, Sample, held_out_error, library
from ..space.result_table import ResultTable
from ..workloads.hardware_counters import COUNTERS
from ..workloads.kernel_features import FEATURES
from .costs import Costs, values_of

FEWEST: Final = 16  # profiled configurations, of which a model is tested on parts


@dataclass(frozen=True, slots=True)
class Counted:
    """The hardware counters of a session."""

    names: tuple[str, ...]  # of COUNTERS, those that are known of some configuration
    configurations: int  # that have any
    without: float  # held-out error of energies, relative root mean square; NaN where it cannot be told
    with_counters: float
    reason: str  # why not; empty where both are known

    @property
    def words(self) -> str:
        """What the counters add to the model of energies, in one line."""
        if self.reason:
            return self.reason
        return (
            f"energies of configurations that a model has not seen are {percent(self.with_counters)} off with counters,"
            f" {percent(self.without)} without"
        )


def counted(table: ResultTable, costs: Costs) -> Counted | None:
    """None where no configuration was profiled."""
    columns = {name: values_of(table, name) for name in COUNTERS if name in table.value_names}
    columns = {name: values for name, values in columns.items() if np.isfinite(values).any()}
    if not columns:
        return None
    known = np.any([np.isfinite(values) for values in columns.values()], axis=0)
    configurations = int(known.sum())

    def unknown(reason: str) -> Counted:
        return Counted(tuple(columns), configurations, math.nan, math.nan, reason)

    measured = known & np.isfinite(costs.energy_j) & np.isfinite(costs.time_s)
    if measured.sum() < FEWEST:
        return unknown(f"what counters add to the model of energies shows from {FEWEST} profiled configurations on")
    if library() is None:
        return unknown(MISSING_LIBRARY)
    granted = [name for name in table.value_names if name in FEATURES]
    usual = {name: values_of(table, name) for name in (*table.space.names, *granted)}
    errors = []
    for features in (usual, {**usual, **columns}):
        sample = Sample(tuple(features), np.column_stack(list(features.values())), costs.time_s).of(measured)
        errors.append(held_out_error(sample, costs.energy_j[measured]))
    return Counted(tuple(columns), configurations, errors[0], errors[1], "")
