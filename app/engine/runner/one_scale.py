"""`OneScale`: several boards of one model measure a session, and their figures are given on one board's scale.

Before the first row every board measures the same few configurations, and how each differs from the reference board is
fitted to them (`metering/board_offsets`). From then on every measurement is corrected as it comes, what its board
reported stays beside it, and a board that joins later is compared with the others before its figures are given. Rows
that are measured again, as a session does at its end, go to a board that has not measured them, the reference board
first: they show the offsets more, and what is best is settled on one board. At the end everything is given once more,
by all that was seen until then.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from ..measurement import Depth, Measurement, State
from ..metering.board_offsets import BoardOffset, fit_offsets, offsets_to_json
from ..space.search_space import SearchSpace
from ..specification.model import Specification
from .base import (
    CompilesAhead,
    KnowsFeatures,
    OnPreparation,
    OverBoards,
    Prepares,
    Runner,
    SharedBoard,
    StatesFigures,
    Times,
)
from .board_correction import corrected, uncorrected

SHARED: Final = 8  # configurations that every board measures; of 0.5 % scatter each, ratios are known to 0.6 %
TRIES: Final = 3  # so many times others are drawn, where too few of them worked
OFFSETS: Final = "board_offsets"  # key of a session's origin
_UNCOMPARED: Final = "its board could not be compared with the others: these are its own figures"


class PooledRunner(Runner, OverBoards, Protocol):
    """What it works on."""


class OneScale:
    """Implements `Runner`, `Times`, `KnowsFeatures`, `CompilesAhead`, `Prepares`, `StatesFigures`, `OverBoards`."""

    def __init__(self, runner: PooledRunner, spec: Specification, space: SearchSpace, *, reference: str = "") -> None:
        """`reference` is the key of the board on whose scale figures are given; the first board where it is not there.

        Closing it closes the runner.
        """
        self._runner, self._spec, self._space = runner, spec, space
        self.source, self.batch = runner.source, runner.batch
        self.timed: frozenset[str] = runner.timed if isinstance(runner, Times) else frozenset()
        self.feature_names: tuple[str, ...] = runner.feature_names if isinstance(runner, KnowsFeatures) else ()
        self._reference = reference
        self._shared: list[int] = []  # rows
        self._seen: list[Measurement] = []  # as their boards reported them
        self._boards_of: dict[int, list[str]] = {}  # that measured a row in full
        self._measured: Counter[str] = Counter()  # how much by each board
        self._held: dict[int, Measurement] = {}  # shared rows that nobody asked for yet
        self._offsets: dict[str, BoardOffset] = {}
        self._numbers: dict[str, int] = {}  # of the boards, the reference first and then as they joined

    @property
    def boards(self) -> Sequence[SharedBoard]:
        return self._runner.boards

    @property
    def offsets(self) -> Mapping[str, BoardOffset]:
        """Of every board that is compared with the reference, by their keys."""
        return self._offsets

    def prepare(self, rows: Sequence[int], stop: threading.Event, on_progress: OnPreparation) -> None:
        """Let every board measure the same configurations, of these rows first."""
        if isinstance(self._runner, Prepares):
            self._runner.prepare(rows, stop, on_progress)
        keys = self._keys()
        if self._reference not in keys:
            self._reference = keys[0] if keys else ""
        self._shared = self._usual(rows)
        self._fit()
        if len(keys) > 1:
            self._compare(keys, stop)
            self._hold()

    def measure(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        known = {row: self._held.pop(row) for row in rows if row in self._held}
        yield from map(self._given, known.values())
        left = [row for row in rows if row not in known]
        fresh = [row for row in left if row not in self._boards_of]
        again = [(self._other_board(row), row) for row in left if row in self._boards_of]
        if fresh:
            yield from self._each(self._runner.measure(fresh, stop), stop)
        if again:
            missing = {row for _, row in again}
            for each in self._each(self._runner.measure_on(again, stop), stop):
                missing.discard(each.row)
                yield each
            if missing and not stop.is_set():  # their board left meanwhile: any other will do
                yield from self._each(self._runner.measure(sorted(missing), stop), stop)

    def time(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        assert isinstance(self._runner, Times)
        yield from self._each(self._runner.time(rows, stop), stop)

    def measure_on(self, wanted: Sequence[tuple[str, int]], stop: threading.Event) -> Iterator[Measurement]:
        yield from self._each(self._runner.measure_on(wanted, stop), stop)

    def expect(self, rows: Sequence[int]) -> None:
        if isinstance(self._runner, CompilesAhead):
            self._runner.expect(rows)

    def features(self, rows: Sequence[int]) -> npt.NDArray[np.float64]:
        assert isinstance(self._runner, KnowsFeatures)
        return self._runner.features(rows)

    def restated(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        """What was measured, by the offsets that all of it shows; of a row of several boards, the reference's."""
        own = [uncorrected(each, self._spec) for each in measurements]
        if isinstance(self._runner, StatesFigures):
            own, self._seen = list(self._runner.restated(own)), list(self._runner.restated(self._seen))
        noted = {(each.row, each.board) for each in self._seen}
        for each in own:  # of a session that is resumed: boards that are no longer here are linked by the second looks
            if (each.row, each.board) not in noted:
                self._note(each)
        self._fit()
        settled = {each.row: each for each in self._seen if each.board == self._reference and each.state is State.OK}
        return [
            self._given(settled.get(each.row, each) if each.depth is Depth.ENERGY and each.board else each)
            for each in own
        ]

    def conclude(self) -> Mapping[str, str]:
        concluded = dict(self._runner.conclude()) if isinstance(self._runner, StatesFigures) else {}
        if len(self._offsets) > 1:
            concluded[OFFSETS] = json.dumps(offsets_to_json(self._offsets, self._reference))
        return concluded

    def close(self) -> None:
        self._runner.close()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _keys(self) -> list[str]:
        return [board.key for board in self._runner.boards]

    def _usual(self, rows: Sequence[int]) -> list[int]:
        """The first rows, and others spread over the space where they are few."""
        spread = self._space.sample_latin_hypercube(np.random.default_rng(len(rows)), SHARED).tolist()
        return list(dict.fromkeys((*map(int, rows), *spread)))[:SHARED]

    def _compare(self, keys: Sequence[str], stop: threading.Event) -> None:
        """Let these boards and the reference measure the same rows; others where too few of them worked."""
        keys = list(dict.fromkeys((self._reference, *keys)))
        for attempt in range(TRIES):
            wanted = [(key, row) for row in self._shared for key in keys if key not in self._boards_of.get(row, ())]
            with _released(self._runner.measure_on(wanted, stop)) as measuring:
                for each in measuring:
                    self._note(each)
            self._fit()
            if stop.is_set() or all(key in self._offsets for key in keys):
                return
            drawn = np.random.default_rng(attempt).integers(self._space.size, size=SHARED).tolist()
            self._shared += [row for row in dict.fromkeys(drawn) if row not in self._shared]

    def _hold(self) -> None:
        """Keep what the shared rows showed until they are asked for: the reference's where it has it."""
        for each in self._seen:
            if each.row not in self._held or each.board == self._reference:
                self._held[each.row] = each

    def _each(self, measuring: Iterator[Measurement], stop: threading.Event) -> Iterator[Measurement]:
        """The measurements as they are given; those of boards not yet compared come last."""
        waiting: list[Measurement] = []
        with _released(measuring):
            for each in measuring:
                self._note(each)
                if each.board in self._offsets or each.state is not State.OK:
                    yield self._given(each)
                else:
                    waiting.append(each)
        if waiting:
            there = {*self._keys()}
            self._compare([key for key in dict.fromkeys(each.board for each in waiting) if key in there], stop)
            yield from map(self._given, waiting)

    def _note(self, measured: Measurement) -> None:
        if measured.depth is Depth.ENERGY:
            self._seen.append(measured)
            self._boards_of.setdefault(measured.row, []).append(measured.board)
            self._measured[measured.board] += 1

    def _given(self, own: Measurement) -> Measurement:
        """On the reference board's scale; as it is while there is no other board."""
        if len(self._numbers) == 1 and own.board in self._numbers:
            return own
        offset = self._offsets.get(own.board)
        if offset is not None:
            return corrected(own, offset, self._spec, self._numbers[own.board])
        if own.state is not State.OK or not own.board:
            return own
        return replace(own, message="; ".join(words for words in (own.message, _UNCOMPARED) if words))

    def _fit(self) -> None:
        found = fit_offsets(self._seen, self._reference)
        for board in (self._reference, *(each.board for each in self._seen)):
            self._numbers.setdefault(board, len(self._numbers) + 1)
        self._offsets = {board: found[board] for board in self._numbers if board in found}

    def _other_board(self, row: int) -> str:
        """A board that has not measured it, the reference before the others; the reference where all have."""
        keys, did = self._keys(), self._boards_of[row]
        if self._reference in keys and self._reference not in did:
            return self._reference
        others = [key for key in keys if key not in did]
        return min(others, key=self._measured.__getitem__, default=self._reference)


@contextmanager
def _released(measuring: Iterator[Measurement]) -> Iterator[Iterator[Measurement]]:
    """A generator is closed when its reader leaves: it releases its boards at once."""
    try:
        yield measuring
    finally:
        close = getattr(measuring, "close", None)
        if close is not None:
            close()
