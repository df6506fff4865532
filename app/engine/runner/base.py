"""The `Runner` seam: takes rows of a search space, returns measurements."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ...errors import WattridgeError
from ..measurement import Depth, Measurement


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


class SharedBoard(Protocol):
    """One of several boards."""

    @property
    def key(self) -> str:
        """What its measurements name as their board."""
        ...


@runtime_checkable
class OverBoards(Protocol):
    """A runner that measures on several boards at the same time."""

    @property
    def boards(self) -> Sequence[SharedBoard]:
        """Those that can be used now."""
        ...

    @property
    def reference(self) -> str:
        """The key of the board on whose scale figures are given; empty where each has its own."""
        ...

    def measure_on(
        self, wanted: Callable[[], Sequence[tuple[str, int]]], stop: threading.Event
    ) -> Iterator[Measurement]:
        """Measure each row on the board of that key, on any where that is empty, the boards in parallel.

        `wanted` is asked again and again for what is wanted besides, as where a board has joined, until nothing is left
        to do. A measurement comes for each pair, in any order; pairs of a board that is lost are left out. Ends early
        when `stop` is set.
        """
        ...


@runtime_checkable
class ComparesBoards(Protocol):
    """A runner over boards that fits how they differ to what several of them measured."""

    def shared(self, rows: Sequence[int]) -> list[int]:
        """Which of these rows every board measures."""
        ...

    def leave_out(self, rows: Sequence[int]) -> None:
        """These rows say nothing of it from now on: they were chosen for what one board reported of them."""
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
