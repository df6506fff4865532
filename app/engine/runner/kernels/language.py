"""The `Language` seam: what differs between kernels of one language and of another, outside the runner process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from ....sensors.limits import DeviceLimits
from ...specification.model import Specification
from ...workloads.source_kernel import Build, Prepared, SourceKernel
from ..base import OnPreparation
from .compiler import Compiler
from .reference import Drift

MakesKernel = Callable[[Specification, DeviceLimits, int], SourceKernel]  # the last: shared memory by opting in, bytes


class Language(Protocol):
    """One language on one device."""

    compiler: Compiler
    comparer: Build | None  # kernels that compare outputs on the device; without them the host compares
    feature_names: tuple[str, ...]  # of `workloads.kernel_features.FEATURES`, those that its images tell
    drift: Drift | None  # the reference kernel of a session; None where there is none

    def kernel(self, spec: Specification, make: MakesKernel = SourceKernel.of) -> SourceKernel:
        """The kernel of a specification, made for the device. Raises InputError where it cannot run."""
        ...

    def symbol(self, image: bytes, name: str) -> str:
        """The kernel of that name as the image has it. Raises KernelFailed where it has none."""
        ...

    def features(self, image: bytes, prepared: Prepared) -> dict[str, float]:
        """Those of `feature_names` that this image tells. Raises KernelFailed where it has no such kernel."""
        ...

    def prepare(self, stop: threading.Event, on_progress: OnPreparation) -> None:
        """What a board needs before its first measurement. Raises PreparationFailed."""
        ...
