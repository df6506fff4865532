"""The `Runner` seam: takes rows of a search space, returns measurements.

Rows are measured in the order that needs the fewest restarts of a service and changes of a board's settings.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...base.errors import WattridgeError
from ...sensors.gpu import LIVE, Gpu
from ..control.guard import DeviceGuard, SeveralBoards
from ..control.obeying import disobeyed
from ..results.measurement import Configuration, Depth, Measurement, Value
from ..results.objectives import Objective
from ..results.settings import SETTINGS, UNTOUCHED
from ..space.search_space import SearchSpace
from ..specification.model import Specification

More = Callable[[], Sequence[int]]  # gives further rows whenever it is called
OnPreparation = Callable[[str, float, float], None]  # what is done, in words; seconds done; seconds in all


class PreparationFailed(WattridgeError):
    """The runner could not prepare as it should; it can measure all the same."""


def no_more() -> Sequence[int]:
    """No further rows."""
    return ()


class Runner(ABC):
    """Measures rows of a search space: on a local GPU, a simulated one, several boards, or by a recording.

    A runner implements `measure`. Everything else has a default for runners that have nothing to add.
    """

    source: str  # nvml, simulated or recorded
    batch: int  # how many rows are worth handing over at once
    timed: frozenset[str] = frozenset()  # the values that timing gives, metrics among them; empty: it times nothing
    feature_names: tuple[str, ...] = ()  # of `workloads.machine_code.FEATURES`: what `features` gives
    meters: Sequence[str] = ()  # beside the board, those whose power is the board's

    @property
    def board_count(self) -> int:
        """Boards that measure at the same time now."""
        return 1

    def prepare(  # noqa: B027  (nothing to prepare)
        self, rows: Sequence[int], stop: threading.Event, on_progress: OnPreparation
    ) -> None:
        """Do what is needed once, before the first measurement, reporting progress; ends early when `stop` is set.

        `rows` are those that will be measured first: what can be done for them meanwhile is. The seconds done over
        those in all never decrease, and those in all never grow. Raises PreparationFailed.
        """

    @abstractmethod
    def measure(
        self, rows: Sequence[int], stop: threading.Event, depth: Depth = Depth.ENERGY, more: More = no_more
    ) -> Iterator[Measurement]:
        """Measure the rows one after another, in an order of the runner's choice, yielding each as soon as it is known.

        Parameters
        ----------
        rows
            Rows of the search space.
        stop
            Ends the measurement early once it is set.
        depth
            `TIME` is a few launches of each row, verified, without their power; only where `timed` has values.
        more
            Further rows of the same depth. A runner that can take rows while it measures calls it before each row,
            so that the board does not rest between two requests.

        Yields
        ------
        One measurement of each row. A failed configuration is a result, never an exception.
        """

    def time(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        """Measure the rows at `Depth.TIME`."""
        return self.measure(rows, stop, Depth.TIME)

    def features(self, rows: Sequence[int], stop: threading.Event | None = None) -> npt.NDArray[np.float64]:
        """What is known of rows without measuring them, shape (rows, feature_names); NaN if unknown.

        May compile what was not timed or measured before, and waits for none of that once `stop` is set.
        """
        return np.full((len(rows), len(self.feature_names)), np.nan)

    def expect(self, rows: Sequence[int]) -> None:  # noqa: B027  (nothing is made ahead)
        """Prepare rows that may be requested next, the likeliest first, during a measurement. Returns at once."""

    def restated(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        """State its measurements with what is known of the board by now; those of other origin stay as they are."""
        return measurements

    def finish(
        self, measurements: Sequence[Measurement], again: Sequence[int], objective: Objective, stop: threading.Event
    ) -> Sequence[Measurement]:
        """Finish the figures of a session, before they are compared.

        Parameters
        ----------
        measurements
            All of the session, one of each row.
        again
            Rows that are worth a second look, in the setting that is in force.
        objective
            What the session is about.
        stop
            Ends it early; what was measured stays as it was then.

        Returns
        -------
        The measurements in the same order, those that nothing changed as the same objects.
        """
        return measurements

    def conclude(self) -> Mapping[str, str]:
        """Keep what was learnt for the board's next session; how the figures are stated, for the session's origin."""
        return {}

    def close(self) -> None:  # noqa: B027  (nothing to release)
        """Release the board."""


class BoardRunner(Runner):
    """A runner on one board, whose settings it makes. Takes over the guard: closing it restores the settings."""

    def __init__(self, gpu: Gpu, spec: Specification, space: SearchSpace, guard: DeviceGuard | SeveralBoards) -> None:
        self.source = gpu.info.source
        self._gpu = gpu
        self._spec = spec
        self._space = space
        self._guard = guard
        self._unmet = ""  # by the board, of the setting in force

    def close(self) -> None:
        """Restore the board's settings."""
        self._guard.restore()

    def _set(self, settings: Mapping[str, float], stop: threading.Event) -> bool:
        """Make the settings of a row and wait until they have settled; False where `stop` was set meanwhile."""
        if not self._guard.hold(**settings):
            return True
        self._unmet = self._guard.unmet()
        return not self._gpu.clock.wait(self._guard.settling_s, stop)

    def _disobedience(self, measurement: Measurement, settings: Mapping[str, float]) -> list[str]:
        """Remarks on settings that a real board does not have as the row specifies them."""
        if self.source not in LIVE:
            return []
        clock_mhz, reasons = measurement.observed_clock_mhz, measurement.event_reasons
        return [self._unmet, disobeyed(self._gpu, settings.get("graphics_clock_mhz"), clock_mhz, reasons)]


class RowByRow(Runner):
    """A runner that measures each row in full by itself, one after another."""

    def measure(
        self, rows: Sequence[int], stop: threading.Event, depth: Depth = Depth.ENERGY, more: More = no_more
    ) -> Iterator[Measurement]:
        for row in self._ordered(rows):
            if stop.is_set() or (measurement := self._measure(row, stop)) is None:
                return
            yield measurement

    def _ordered(self, rows: Sequence[int]) -> Sequence[int]:
        """The rows in the order in which they are measured."""
        return rows

    @abstractmethod
    def _measure(self, row: int, stop: threading.Event) -> Measurement | None:
        """One row; None if it was stopped."""


def setting_names(space: SearchSpace) -> tuple[str, ...]:
    """The device settings among a space's parameters."""
    return tuple(parameter.name for parameter in space.parameters if parameter.device_setting)


def settings_of(space: SearchSpace, configuration: Configuration) -> dict[str, float]:
    """The device settings of a configuration; those that it leaves untouched are not among them."""
    return {name: float(v) for name in setting_names(space) if (v := configuration[name]) != UNTOUCHED}


def by_setting(
    rows: Sequence[int],
    space: SearchSpace,
    guard: DeviceGuard | SeveralBoards,
    started_with: Mapping[str, Value | None] | None = None,
) -> list[int]:
    """The rows, those of one device setting together, beginning with the setting in force.

    From each setting to the next as little changes as can be, and the graphics clock least often. `started_with` has
    the arguments that a service runs with, None before its start: rows of the same arguments come one after another,
    first those that it has.
    """
    started = dict(started_with or {})
    groups: dict[tuple[tuple[Value | None, ...], tuple[tuple[str, float], ...]], list[int]] = {}
    for row in rows:
        configuration = space.configuration(row)
        wanted = settings_of(space, configuration)
        arguments = tuple(configuration.get(name) for name in started)
        groups.setdefault((arguments, tuple(wanted.items())), []).append(int(row))
    in_force: dict[str, float | None] = guard.applied
    running: tuple[Value | None, ...] = tuple(started.values())
    ordered: list[int] = []
    while groups:
        nearest = min(groups, key=lambda group: (group[0] != running, _change(in_force, dict(group[1]))))
        ordered += groups.pop(nearest)
        running, in_force = nearest[0], dict(nearest[1])
    return ordered


def _change(
    before: Mapping[str, float | None], after: Mapping[str, float]
) -> tuple[tuple[bool, ...], tuple[float, ...]]:
    """What changes from one setting to another, the slowest first; among equals the lower values come first."""
    changes = tuple(before.get(name) != after.get(name) for name in reversed(SETTINGS))
    return changes, tuple(after.values())
