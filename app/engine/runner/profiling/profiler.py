"""The `Profiler` seam: takes rows of a search space, returns the hardware counters of one launch of each.

`SimulatedProfiler`: the counters of a simulated board, from the formulas that its kernels cost by.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ....base.errors import InputError
from ....sensors.gpu import Load, NotSupported
from ....sensors.simulated.profiles import LaunchRefused
from ...space.search_space import SearchSpace
from ...workloads.profiled import ProfiledKernel


@dataclass(frozen=True, slots=True)
class Profile:
    """One launch, profiled. `metrics` are in base units, by Nsight Compute's names; unknown ones are left out."""

    row: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    error: str = ""  # why there are none


class Profiler(Protocol):
    """Nsight Compute on a real board, formulas on a simulated one. Never used while power is measured."""

    tool: str  # what counts, in words

    def profile(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Profile]:
        """Profile the rows, each yielded once it is known; ends early when `stop` is set.

        A row that cannot be profiled is a result. Raises WattridgeError, with the remedy, where none can be.
        """
        ...


@runtime_checkable
class CountsLaunches(Protocol):
    """A board that counts what one launch of a load does."""

    def profile(self, load: Load) -> dict[str, float]:
        """Metrics in base units, by Nsight Compute's names."""
        ...


class SimulatedProfiler:
    """Implements `Profiler`."""

    tool = "simulated"

    def __init__(self, gpu: CountsLaunches, kernel: ProfiledKernel, space: SearchSpace) -> None:
        self._gpu, self._kernel, self._space = gpu, kernel, space

    def profile(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Profile]:
        for row in rows:
            if stop.is_set():
                return
            configuration = self._space.configuration(row)
            try:
                metrics = self._gpu.profile(self._kernel.prepare(configuration))
            except (LaunchRefused, NotSupported, InputError) as refusal:
                yield Profile(row, error=str(refusal))
                continue
            yield Profile(row, {**metrics, **_activity(self._kernel.features(configuration))})


def _activity(features: Mapping[str, float]) -> dict[str, float]:
    """How long a multiprocessor has a block: always, until the last wave has fewer blocks than there are of them."""
    waves = features.get("waves", 0.0)
    if not waves:
        return {}
    blocks, per_multiprocessor = features["grid_blocks"], features["grid_blocks_per_multiprocessor"]
    multiprocessors = blocks / per_multiprocessor
    last = blocks - (waves - 1) * features["blocks_per_multiprocessor"] * multiprocessors
    share = (waves - 1 + min(1.0, last / multiprocessors)) / waves
    return {"smsp__cycles_active.avg.pct_of_peak_sustained_elapsed": 100.0 * share}
