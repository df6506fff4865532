"""References that a session measures beside its configurations.

`Drift` is a fixed load that is measured every so often: it is the same each time, so that what changes is the board. It
is the vendor's matrix product where its library is there, else the kernel given, and its figures travel with the
configuration that is measured next. `Baseline` is what the vendor's library takes for the session's operator by itself:
one of its rows, and the reference for all others.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ....base.errors import InputError
from ....base.records import Values, as_json, figure, from_json
from ....sensors.gpu import Load
from ...metering.meter import Meter
from ...metering.stopwatch import Stopwatch
from ...metering.window import Run, Window
from ...results.measurement import Measurement, State
from ...specification.operator_shapes import LIBRARY, MAKER
from .compiler import Compiled, once_compiled
from .gpu import ProcessGpu
from .process import KernelFailed

FIRST: Final = (0, 3, 8, 16, 32)  # configurations before a look: a board warms most at the start of a session
EVERY: Final = 40  # from one look to the next after that; a look costs about as much as a configuration


class ReferenceLooks:
    """Schedules measurements of the reference kernel, all under one setting of clocks and caps: they show drift."""

    def __init__(self) -> None:
        self._setting: object = None
        self._seen = 0
        self._due_at = 0

    def count(self) -> None:
        """A configuration was measured."""
        self._seen += 1

    def due(self, setting: object) -> bool:
        """Whether a measurement is due under that setting. Only the first setting that is passed is used."""
        if self._setting is None:
            self._setting = setting
        return self._seen >= self._due_at and setting == self._setting

    def looked(self) -> None:
        """A look was made, or tried."""
        self._due_at = next((count for count in FIRST if count > self._seen), self._seen + EVERY)


DRIFT_LOAD: Final = Load("reference kernel", "fp32", 0.0, 0.0)


class Drift(ReferenceLooks):
    """Looks at the reference kernel of a real board."""

    def __init__(self, image: Future[Compiled], launch: dict[str, Any]) -> None:
        """`launch`, as a message, is how the kernel of the image is launched."""
        super().__init__()
        self._image = image
        self._launch = launch
        self._broken = False

    def due(self, setting: object) -> bool:
        return super().due(setting) and not self._broken

    def look(self, gpu: ProcessGpu, meter: Meter | Stopwatch, stop: threading.Event) -> Run | None:
        """Run the reference kernel; None when stopped or where it does not run. Raises KernelFailed when lost."""
        self.looked()
        try:
            gpu.ask(
                {"do": "drift", "id": DRIFT_LOAD.name, "launch": self._launch}, [once_compiled(self._image, stop).image]
            )
            return meter.run(DRIFT_LOAD, stop=stop)
        except KernelFailed as failure:
            self._broken = not stop.is_set()
            if failure.lost:
                raise
            return None


def reference_figures(window: Window) -> dict[str, float]:
    """The reference kernel's, as a measurement carries them."""
    return {
        "reference_time_s": window.time_s,
        "reference_power_w": window.power_w,
        "reference_energy_j": window.energy_j,
    }


_KEY: Final = "vendor_library"  # of a session's origin


@dataclass(frozen=True, slots=True)
class Baseline:
    """Measured by the session's own meter, on the same operands; or why it was not."""

    library: str = field(default="", metadata=figure(nullable=True))  # its name and version
    values: Values = field(default_factory=dict)  # as a measurement has them: time_s, energy_j, power_w...
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict, metadata=figure(key="intervals_95"))
    why_not: str = field(default="", metadata=figure(nullable=True))

    def to_origin(self) -> dict[str, str]:
        """As a session keeps it."""
        return {_KEY: json.dumps(as_json(self))}

    @classmethod
    def of_origin(cls, origin: Mapping[str, str]) -> Baseline | None:
        """What a session keeps; None if it has none. Raises InputError where damaged."""
        if _KEY not in origin:
            return None
        try:
            return from_json(cls, json.loads(origin[_KEY]))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            what = "what the session keeps of the vendor's library is damaged"
            raise InputError(what, _KEY, "measure it again") from None

    @classmethod
    def restated(cls, origin: Mapping[str, str], measurements: Iterable[Measurement]) -> dict[str, str]:
        """Return the kept baseline with the figures that its row has now, for the origin; empty where it is no row."""
        kept = cls.of_origin(origin)
        rows = (each for each in measurements if each.configuration.get(MAKER) == LIBRARY and each.final)
        row = next(rows, None)
        if kept is None or row is None or row.state is not State.OK:
            return {}
        return replace(kept, values=row.values, intervals=row.intervals).to_origin()


class LibraryRow:
    """The row of what the vendor's library does by itself, once it is measured: the first, under the first settings."""

    def __init__(self) -> None:
        self._measured: tuple[str, Measurement] | None = None

    def note(self, measurement: Measurement, library: str) -> None:
        """Keep a measurement if it is that one; `library` names it."""
        if measurement.configuration.get(MAKER) == LIBRARY and self._measured is None and measurement.final:
            self._measured = library, measurement

    def to_origin(self, state: Callable[[Measurement], Measurement]) -> dict[str, str]:
        """As a session keeps it, its figures as `state` gives them; empty where there was none."""
        if self._measured is None:
            return {}
        library, measured = self._measured
        if measured.state is not State.OK:
            return Baseline(library, why_not=measured.error).to_origin()
        stated = state(measured)
        return Baseline(library, stated.values, stated.intervals).to_origin()
