"""The `Runner` seam: takes rows of a search space, returns measurements.

One row after another: how every runner ends that measures by itself, in this process.

In which order to measure rows, so that a service is started, and a board's settings change, as seldom as can be.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ...base.errors import WattridgeError
from ..control.guard import DeviceGuard, SeveralBoards
from ..results.measurement import Configuration, Depth, Measurement, Value
from ..results.objectives import Objective
from ..results.settings import SETTINGS
from ..space.search_space import SearchSpace


class Runner(Protocol):
    """A local GPU, a simulated one, or the replay of a recording."""

    source: str  # nvml, simulated or recorded

    @property
    def batch(self) -> int:
        """How many rows are worth handing over at once."""
        ...

    def measure(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        """Measure the rows one after another, in an order of the runner's choice, yielding each as soon as it is known.

        Ends early when `stop` is set. A failed configuration is a result, never an exception.
        """
        ...

    def close(self) -> None: ...


@runtime_checkable
class Times(Protocol):
    """A runner that can time rows for less than measuring their energy costs."""

    timed: frozenset[str]  # the values that timing gives, metrics among them; none where it cannot time this session's

    def time(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        """As `measure`, at `Depth.TIME`: a few launches of each row, verified, and nothing of their power."""
        ...


@runtime_checkable
class KnowsFeatures(Protocol):
    """A runner that knows more of configurations than their parameters, without measuring them."""

    feature_names: tuple[str, ...]  # of `workloads.kernel_features.FEATURES`

    def features(self, rows: Sequence[int], stop: threading.Event | None = None) -> npt.NDArray[np.float64]:
        """Of those rows, shape (rows, names); NaN where unknown. May compile what was not timed or measured before,
        and waits for none of that once `stop` is set."""
        ...


@runtime_checkable
class Continues(Protocol):
    """A runner to which more rows can be handed while it measures: nothing stands still in between."""

    def go_on(self, more: Callable[[], Sequence[int]], depth: Depth, stop: threading.Event) -> Iterator[Measurement]:
        """As `measure`, or `time`, of the rows that `more` gives, which is asked before each row.

        Ends when none is left and it gives none, or early when `stop` is set.
        """
        ...


def once(rows: Sequence[int]) -> Callable[[], Sequence[int]]:
    """All of these at the first question."""
    left = [rows]
    return lambda: left.pop() if left else ()


@runtime_checkable
class OverBoards(Protocol):
    """A runner that measures on several boards at the same time."""

    @property
    def boards(self) -> Sequence[object]:
        """Those that can be used now."""
        ...


@runtime_checkable
class Finishes(Protocol):
    """A runner with something to measure once more at the end of a session, before its figures are compared."""

    def finish(
        self, measurements: Sequence[Measurement], objective: Objective, stop: threading.Event
    ) -> Sequence[Measurement]:
        """All that was measured, each once, with what was measured in its place now. Ends early when `stop` is set."""
        ...


OnPreparation = Callable[[str, float, float], None]  # what is done, in words; seconds done; seconds in all


class PreparationFailed(WattridgeError):
    """The runner could not prepare as it should; it can measure all the same."""


@runtime_checkable
class Prepares(Protocol):
    """A runner with something to do before its first measurement that takes its time."""

    def prepare(self, rows: Sequence[int], stop: threading.Event, on_progress: OnPreparation) -> None:
        """Do it, reporting progress; nothing where it is done already. Ends early when `stop` is set.

        `rows` are those that will be measured first: what can be done for them meanwhile is. The seconds done over
        those in all never go back, and those in all never grow. Raises PreparationFailed.
        """
        ...


@runtime_checkable
class CompilesAhead(Protocol):
    """A runner that can use the time of a measurement for rows that come later."""

    def expect(self, rows: Sequence[int]) -> None:
        """These may be asked for soon, the likeliest first. Returns at once."""
        ...


@runtime_checkable
class StatesFigures(Protocol):
    """A runner that states its figures for one thermal condition of the board, which it learns to know meanwhile.

    Rows that it is asked to measure again show it more.
    """

    def restated(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        """What it measured, stated with what is known by now; measurements of other origin as they are."""
        ...

    def conclude(self) -> Mapping[str, str]:
        """Keep what was learnt for the board's next session; how the figures are stated, for the session's origin."""
        ...


def each_row(
    rows: Iterable[int], stop: threading.Event, measure: Callable[[int, threading.Event], Measurement | None]
) -> Iterator[Measurement]:
    """Measure the rows in their order; over when `stop` is set, or when `measure` returns None since it was."""
    for row in rows:
        if stop.is_set():
            return
        measurement = measure(row, stop)
        if measurement is None:
            return
        yield measurement


def setting_names(space: SearchSpace) -> tuple[str, ...]:
    """The device settings among a space's parameters."""
    return tuple(parameter.name for parameter in space.parameters if parameter.device_setting)


def settings_of(space: SearchSpace, configuration: Configuration) -> dict[str, float]:
    """The device settings that a configuration asks for."""
    return {name: float(configuration[name]) for name in setting_names(space)}


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
    changes = tuple(name in after and before.get(name) != after[name] for name in reversed(SETTINGS))
    return changes, tuple(after.values())
