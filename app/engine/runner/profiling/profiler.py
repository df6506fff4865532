"""The `Profiler` seam: takes rows of a search space, returns the hardware counters of one launch of each."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


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
