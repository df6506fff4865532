"""The `ScriptSide` seam: what a Python script contributes to the measurement of its kernels.

Its functions are called in the script's process, between two steps of a measurement, and never in the runner process:
what they are given came from there as plain arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ....sensors.limits import DeviceLimits
from ...results.measurement import Configuration
from ...specification.model import Specification
from ...workloads.kernel_arguments import Array
from ...workloads.source_kernel import SourceKernel
from .loaded import Launches


class ScriptSide(Protocol):
    """What a script adds to a specification."""

    time_alone: bool  # no figure of the board is wanted: each configuration is only timed
    window_s: float  # of each energy measurement, at least

    def kernel(self, spec: Specification, limits: DeviceLimits, shared_opt_in: int) -> SourceKernel:
        """The kernel, its text and launch by the script's functions."""
        ...

    def wrong(self, configuration: Configuration, outputs: Callable[[], Mapping[str, Array]]) -> str:
        """What is wrong with the outputs of the first launch, in words; empty if nothing is."""
        ...

    def observe(
        self, row: int, configuration: Configuration, launches: Launches, facts: Mapping[str, float]
    ) -> dict[str, float]:
        """Launch as the script specifies, and observe; the figures that result, for the measurement of that row.

        `facts` is what the driver reports of the kernel, by the names of a measurement.
        """
        ...

    def spent(self, row: int, compiler_s: float, check_s: float) -> None:
        """Record the time that compiling and verifying that row took."""
        ...

    def times_s(self, row: int) -> Sequence[float]:
        """How long each of those launches took."""
        ...
