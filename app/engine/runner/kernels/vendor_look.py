"""`VendorLook`: the vendor's library for a session's operator, measured once as a kernel of the session is."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ....sensors.load import Load
from ...measurement import Measurement
from ...metering.meter import Meter
from ...metering.window import Run
from ...operators.shapes import Operator
from ..baseline import Baseline
from .gpu import ProcessGpu
from .process import KernelFailed

LOAD = Load("vendor library", "fp32", 0.0, 0.0)


class VendorLook:
    """Not due for a kernel that is no operator, nor a second time."""

    def __init__(self, operator: Operator | None) -> None:
        self._operator = operator
        self._library = self._why_not = ""
        self._looked = False
        self._measurement: Measurement | None = None

    @property
    def due(self) -> bool:
        return self._operator is not None and not self._looked

    def look(self, gpu: ProcessGpu, meter: Meter, stop: threading.Event, window_s: float = 0.0) -> Run | None:
        """Run it on the operands that are there; None where it cannot be, or was stopped.

        Raises KernelFailed where it took the runner process along.
        """
        operator = self._operator
        assert operator is not None, "it is due"
        self._looked = True
        self._why_not = "the session was stopped before it was measured"
        try:
            message = {"kind": operator.kind, "shape": list(operator.shape), "precision": operator.precision}
            found = gpu.ask({"do": "vendor", "id": LOAD.name, **message})
            self._library = str(found["library"])
            if found["wrong"]:
                self._why_not = f"it differs from the reference by {found['wrong'][0]['worst']:.4g}"
            run = None if found["wrong"] else meter.run(LOAD, stop=stop, window_s=window_s)
            gpu.ask({"do": "unload", "id": LOAD.name})
        except KernelFailed as failure:
            self._why_not = failure.what
            if failure.lost:
                raise
            return None
        return run

    def take(self, measurement: Measurement) -> None:
        """What was measured, once its samples have come."""
        self._measurement, self._why_not = measurement, ""

    def baseline(self, state: Callable[[Measurement], Measurement]) -> Baseline | None:
        """As the session's figures are stated; None where it was not due."""
        if not self._looked:
            return None
        if self._measurement is None:
            return Baseline(self._library, why_not=self._why_not)
        stated = state(self._measurement)
        return Baseline(self._library, stated.values, stated.intervals)
