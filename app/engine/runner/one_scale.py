"""`OneScale`: several boards of one model measure a session, and their figures are given on one board's scale.

Every board begins with the same few configurations, the search's own first ones, whenever it joins: no board waits for
another. How each differs from the reference board is fitted to them (`board_comparison.py`), and what it measured by
then is given. From then on every measurement is corrected as it comes, and what its board reported stays beside it.
Rows that are measured again, as a session does at its end, go to the reference board where that has not measured them,
so that what is best is settled on one board; the others are shared out, and show the offsets more. At the end
everything is given once more, by all that was seen until then.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ..measurement import Depth, Measurement, State
from ..metering.board_offsets import BoardOffset, offsets_to_json
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
from .board_comparison import BoardComparison
from .board_correction import corrected, uncorrected
from .pool.gpu import ORIGIN, boards_document, boards_of_origin
from .stating import Statement

OFFSETS: Final = "board_offsets"  # key of a session's origin
_UNCOMPARED: Final = "its board could not be compared with the others: these are its own figures"


class PooledRunner(Runner, OverBoards, Protocol):
    """What it works on."""


class OneScale:
    """Implements `Runner`, `OverBoards`, `ComparesBoards`, and of `Times` and the like what its runner does."""

    def __init__(self, runner: PooledRunner, spec: Specification, space: SearchSpace, *, reference: str = "") -> None:
        """`reference` is the key of the board on whose scale figures are given; the first board where it is not there.

        Closing it closes the runner.
        """
        self._runner, self._spec = runner, spec
        self.source, self.batch = runner.source, runner.batch
        self.timed: frozenset[str] = runner.timed if isinstance(runner, Times) else frozenset()
        self.feature_names: tuple[str, ...] = runner.feature_names if isinstance(runner, KnowsFeatures) else ()
        self._comparison = BoardComparison(space.size, reference)
        self._given_rows: set[int] = set()
        self._concluded: dict[str, str] = {}
        self._held: dict[int, Measurement] = {}  # of rows that were not given yet: what some board reported

    @property
    def boards(self) -> Sequence[SharedBoard]:
        return self._runner.boards

    @property
    def reference(self) -> str:
        return self._comparison.reference

    @property
    def offsets(self) -> Mapping[str, BoardOffset]:
        """Of every board that is compared with the reference, by their keys."""
        return self._comparison.offsets

    def shared(self, rows: Sequence[int]) -> list[int]:
        return [row for row in rows if self._comparison.is_shared(row)]

    def leave_out(self, rows: Sequence[int]) -> None:
        self._comparison.leave_out(rows)

    def prepare(self, rows: Sequence[int], stop: threading.Event, on_progress: OnPreparation) -> None:
        if isinstance(self._runner, Prepares):
            self._runner.prepare(rows, stop, on_progress)

    def measure(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        comparison, due = self._comparison, set(map(int, rows))
        comparison.share(rows)
        for row in [row for row in rows if row in self._held]:  # some board reported it when nobody had asked for it
            due.discard(row)
            yield self._give(self._held.pop(row))
        left = [row for row in rows if row in due]
        again = [row for row in left if comparison.is_measured(row)]
        fresh = [("", row) for row in left if not comparison.is_measured(row) and not comparison.is_shared(row)]
        comparison.meet(self._keys())
        yield from self._each([*comparison.second_looks(again, self._keys()), *fresh], due, stop)
        if due and not stop.is_set():  # their board left meanwhile: any other will do
            yield from self._each([("", row) for row in left if row in due], due, stop)

    def time(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        """As the runner; boards are compared by what they measure in full, before the first and where one joined."""
        assert isinstance(self._runner, Times)
        self._compare(rows, stop)
        waiting: list[Measurement] = []
        with _released(self._runner.time(rows, stop)) as timing:
            for each in timing:
                if self._is_compared(each):
                    yield self._given(each)
                else:
                    waiting.append(each)
        if waiting:
            self._compare(rows, stop)
            yield from map(self._given, waiting)

    def measure_on(
        self, wanted: Callable[[], Sequence[tuple[str, int]]], stop: threading.Event
    ) -> Iterator[Measurement]:
        with _released(self._runner.measure_on(wanted, stop)) as measuring:
            for each in measuring:
                self._comparison.note(each)
                yield self._given(each)

    def expect(self, rows: Sequence[int]) -> None:
        if isinstance(self._runner, CompilesAhead):
            self._runner.expect(rows)

    def features(self, rows: Sequence[int], stop: threading.Event | None = None) -> npt.NDArray[np.float64]:
        assert isinstance(self._runner, KnowsFeatures)
        return self._runner.features(rows, stop)

    def restated(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        """What was measured, by the offsets that all of it shows; of a row of several boards, the reference's."""
        own: Sequence[Measurement] = [_unsaid(uncorrected(each, self._spec)) for each in measurements]
        if isinstance(self._runner, StatesFigures):
            own = self._runner.restated(own)
            self._concluded = dict(self._runner.conclude())
            statements = self._statements()
            own = self._of_one_condition(own, statements)
            restate = self._runner.restated
            self._comparison.restated(own, lambda seen: self._of_one_condition(restate(seen), statements))
        else:  # boards of a session that is resumed and that are no longer here are linked by the second looks
            self._comparison.restated(own, lambda seen: seen)
        settled = self._comparison.settled
        return [
            self._given(settled.get(each.row, each) if each.depth is Depth.ENERGY and each.board else each)
            for each in own
        ]

    def conclude(self) -> Mapping[str, str]:
        concluded = self._concluded
        if not concluded and isinstance(self._runner, StatesFigures):
            concluded = dict(self._runner.conclude())
        if len(self.offsets) > 1:
            concluded[OFFSETS] = json.dumps(offsets_to_json(self.offsets, self.reference))
        return concluded

    def close(self) -> None:
        self._runner.close()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _statements(self) -> dict[str, Statement]:
        """How each board's figures are stated: for the reference's condition, as the session's origin says then."""
        boards = boards_of_origin(self._concluded)
        known = {key: stated for key, facts in boards.items() if (stated := _statement(facts)) is not None}
        if self.reference not in known:
            return {}
        condition = known[self.reference].condition
        found = {key: replace(stated, condition=condition) for key, stated in known.items()}
        document = {key: {**facts, **(found[key].to_origin() if key in found else {})} for key, facts in boards.items()}
        self._concluded[ORIGIN] = boards_document(document)
        return found

    def _of_one_condition(
        self, own: Sequence[Measurement], statements: Mapping[str, Statement]
    ) -> Sequence[Measurement]:
        """What boards reported; their conditions differ, and a ratio between boards is that at one."""
        return [statements[each.board].state(each, self._spec) if each.board in statements else each for each in own]

    def _keys(self) -> list[str]:
        return [board.key for board in self._runner.boards]

    def _each(self, wanted: Sequence[tuple[str, int]], due: set[int], stop: threading.Event) -> Iterator[Measurement]:
        """What comes of these rows and, besides, of those by which boards are compared.

        Each that is due is given once, and due no longer then: of a row that all boards measure the reference's, and of
        a board that is not compared yet as soon as it is.
        """
        waiting: list[Measurement] = []
        yield from self._stream(wanted, due, waiting, stop, draw=False)
        there = {*self._keys()}
        if waiting and self._comparison.compare():
            yield from self._ready(waiting)
        if not stop.is_set() and any(each.board in there for each in waiting):  # too little showed how they differ
            yield from self._stream((), due, waiting, stop, draw=True)
        yield from map(self._give, waiting)
        for row in [row for row in self._held if row in due]:  # the reference left, or the session stops
            due.discard(row)
            yield self._give(self._held.pop(row))

    def _stream(
        self,
        wanted: Sequence[tuple[str, int]],
        due: set[int],
        waiting: list[Measurement],
        stop: threading.Event,
        *,
        draw: bool,
    ) -> Iterator[Measurement]:
        """The same, but of boards that are compared or failed; what is `waiting` besides stays there."""
        comparison, asked = self._comparison, list(wanted)
        comparison.forget_but(())

        def more() -> list[tuple[str, int]]:
            keys = self._keys()
            comparison.forget_but(keys)
            rows, asked[:] = [*comparison.wanted(keys, draw=draw), *asked], []
            return rows

        with _released(self._runner.measure_on(more, stop)) as measuring:
            for each in measuring:
                compared = comparison.note(each)
                if comparison.is_awaited(each.row) or each.row not in due:
                    if each.row in due or each.row not in self._given_rows:
                        self._held[each.row] = each
                else:
                    due.discard(each.row)
                    waiting.append(each)
                    compared |= self._is_compared(each)
                if compared:
                    yield from self._ready(waiting)

    def _ready(self, waiting: list[Measurement]) -> Iterator[Measurement]:
        """Those that can be given now; the others go on waiting."""
        ready = [each for each in waiting if self._is_compared(each)]
        waiting[:] = [each for each in waiting if not self._is_compared(each)]
        yield from map(self._give, ready)

    def _compare(self, rows: Sequence[int], stop: threading.Event) -> None:
        """Let boards that are not compared yet measure these rows first, where there are several."""
        self._comparison.meet(self._keys())
        self._comparison.share(rows)
        if len(self._keys()) > 1:
            for _ in self._stream((), set(), [], stop, draw=True):
                raise AssertionError("nothing was due")

    def _is_compared(self, own: Measurement) -> bool:
        return own.board in self.offsets or own.state is not State.OK

    def _give(self, own: Measurement) -> Measurement:
        self._given_rows.add(own.row)
        self._held.pop(own.row, None)
        return self._given(own)

    def _given(self, own: Measurement) -> Measurement:
        """On the reference board's scale; as it is while there is no other board."""
        comparison = self._comparison
        if len(comparison.numbers) == 1 and own.board in comparison.numbers:
            return own
        offset = comparison.offsets.get(own.board)
        if offset is not None:
            return corrected(own, offset, self._spec, comparison.numbers[own.board])
        if own.state is not State.OK or not own.board:
            return own
        return replace(own, message="; ".join(words for words in (own.message, _UNCOMPARED) if words))


def _statement(facts: Mapping[str, str]) -> Statement | None:
    """How a board stated its figures; None where it states none, or what it says is damaged."""
    try:
        return Statement.of_origin(facts)
    except InputError:
        return None


def _unsaid(measured: Measurement) -> Measurement:
    """Without the words that its board could not be compared: it may be by now."""
    if _UNCOMPARED not in measured.message:
        return measured
    return replace(measured, message="; ".join(each for each in measured.message.split("; ") if each != _UNCOMPARED))


@contextmanager
def _released(measuring: Iterator[Measurement]) -> Iterator[Iterator[Measurement]]:
    """A generator is closed when its reader leaves: it releases its boards at once."""
    try:
        yield measuring
    finally:
        close = getattr(measuring, "close", None)
        if close is not None:
            close()
