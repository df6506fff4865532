"""`PoolRunner`: hands the rows of a session out to the boards of a pool, and takes what comes back.

A board gets a few rows at a time and the next ones before it is done, so that it never waits; the fewer are left, the
fewer it gets. Rows whose worker died with them are measured again, alone, and once: a second death is their result.
Rows whose worker left, or whose scheduler did, go to the others; so nothing is lost, and what arrives twice is taken
once.
"""

from __future__ import annotations

import json
import math
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ....base.errors import WattridgeError
from ....base.records import as_json
from ....sensors.remote.messages import Garbled, list_of, number_of
from ...results.measurement import Depth, Measurement, State
from ...results.objectives import Objective
from ...results.pareto import finalists
from ...space.result_table import DECIDED_ON
from ...space.search_space import SearchSpace
from ...workloads.machine_code import FEATURES
from ..base import More, Runner, no_more, settings_of
from ..stating import seen_again
from .messages import (
    AHEAD,
    MOST_ROWS,
    Abilities,
    Answer,
    BoardBusy,
    Bundle,
    Request,
    SessionWork,
    UnknownSession,
    parse_abilities,
    parse_answer,
    parse_features,
    parse_measurement,
    parse_origin,
    request_line,
    rows_of,
)
from .pool import (
    ORIGIN,
    STATUS,
    Came,
    Failure,
    Ledger,
    Left,
    Pool,
    PoolBoard,
    PoolStatus,
    Remark,
    Said,
    Unanswered,
    boards_document,
)

MOST_AT_ONCE: Final = 32  # rows in one request
MOST_AT_FIRST: Final = 2  # rows in one request until it has reported any: it may have to look at its sensor first
BATCHES: Final = 8  # of each board's own in one of ours: at its end boards wait for the last row
MOST_BATCH: Final = 1024
TURN_S: Final = 0.05
DRAIN_S: Final = 2.5  # after a stop: for what is being measured,
STOPPED_S: Final = 4.0  # ... and for that and all that the boards conclude: a signal ends a command within 5 s
BUSY_S: Final = 3.0  # between two questions whether another session has ended
OPEN_S: Final = 180.0  # for the first board to be ready for the session
PATIENCE_S: Final = 600.0  # without any board
CONCLUDE_S: Final = 60.0
CLOSE_S: Final = 5.0
_RESTATED: Final = 256  # measurements in one request
TRIES: Final = 3  # times that a board is lost with the finalists, until it is no more asked
_DEATHS: Final = 2  # of workers, until a row counts as the reason
_REPORT_S: Final = 0.25  # between two reports of what the boards do, while that changes,
_AT_LEAST_S: Final = 1.0  # and while it does not: their counts and shares do


@dataclass(slots=True)
class _Seat:
    """A board that takes part, or is getting ready to."""

    board: PoolBoard
    opening: int = 0  # the request that gets it ready
    abilities: Abilities | None = None  # None until it is ready
    busy: bool = False  # another session has it
    again_s: float = math.inf  # when it is asked again
    refused: str = ""  # why it does not take part
    requests: set[int] = field(default_factory=set)  # rows that it measures now, or next
    reported: bool = False  # some row of the session


@dataclass(slots=True)
class _Sent:
    """A request that is under way."""

    board: str
    do: str
    rows: dict[int, None] = field(default_factory=dict)  # those not yet known
    job: _Job | None = None
    begun: bool = False  # the board works on it
    answer: Mapping[str, Any] | None = None
    failed: str = ""


@dataclass(slots=True)
class _Job:
    """Rows that the session waits for."""

    waiting: deque[int]
    depth: Depth
    only: str = ""  # the board that they are for; empty for any
    under_way: set[int] = field(default_factory=set)  # requests
    results: deque[Measurement] = field(default_factory=deque)  # not yet handed on


class PoolRunner(Runner):
    """Several boards of one model as one runner over those beside them. The pool is not its own.

    Boards of its model that join later take part from then on.
    """

    def __init__(
        self,
        pool: Pool,
        model: str,
        source: str,
        space: SearchSpace,
        bundle: Bundle,
        *,
        repeats: int = 1,
        condition: str = "",
        report: Callable[[PoolStatus, str], None] = lambda *_: None,
    ) -> None:
        """Waits until one board is ready. Raises WattridgeError if none becomes so.

        `report` is called with the activity of the boards, as it changes, and one line about it for the user.
        """
        self.source = source
        self._tell = report
        self._status = PoolStatus()
        self._ledger = Ledger()
        self._reported_s = -math.inf
        self._pool, self._model, self._space = pool, model, space
        self._work = SessionWork(secrets.token_hex(16), bundle, space, repeats, condition)
        self._last = 0  # number of a request
        self._sent: dict[int, _Sent] = {}
        self._seats: dict[str, _Seat] = {}
        self._seen: set[str] = set()  # boards that were there at some time
        self._deaths: dict[int, int] = {}  # of workers that had this row
        self._board_of: dict[int, str] = {}  # of rows that were measured in full
        self._decided_on = ""  # the board on which the finalists were compared
        self._origins: dict[str, dict[str, str]] = {}  # what each board that took part says of its figures
        self._alone_since = time.monotonic()  # without a board that is ready
        self._stopped_s = math.inf  # when the session was stopped
        while pool.heard(0.0) is not None:
            pass  # what happened between two sessions
        for board in pool.boards():
            self._welcome(board)
        first = self._first_ready()
        self.timed: frozenset[str] = first.timed
        self.feature_names: tuple[str, ...] = tuple(name for name in first.features if name in FEATURES)
        there = sum(not seat.refused for seat in self._seats.values())
        self.batch = min(MOST_BATCH, BATCHES * first.batch * there)

    # --- the seams ----------------------------------------------------------------------------------------------------

    @property
    def boards(self) -> tuple[PoolBoard, ...]:
        """Those that measure now."""
        return tuple(seat.board for seat in self._ready())

    @property
    def board_count(self) -> int:
        return len(self.boards)

    def measure(
        self, rows: Sequence[int], stop: threading.Event, depth: Depth = Depth.ENERGY, more: More = no_more
    ) -> Iterator[Measurement]:
        """Measure the rows, whichever board is free. What was measured in full before is measured on the same board."""
        return self._look_at(rows, depth, stop)

    def finish(
        self, measurements: Sequence[Measurement], again: Sequence[int], objective: Objective, stop: threading.Event
    ) -> Sequence[Measurement]:
        measured: Sequence[Measurement] = seen_again(self, measurements, again, stop)
        with suppress(WattridgeError):  # the session itself is complete
            measured = self._decide(measured, objective, stop)
        return self.restated(measured)

    def _decide(
        self, measurements: Sequence[Measurement], objective: Objective, stop: threading.Event
    ) -> Sequence[Measurement]:
        """Measure the finalists of all boards on one of them, which decides: figures compare within a board only.

        It is the board that measured most of the session; where it is lost, another one takes over. None decides where
        one board measured all, `stop` is set, or no board is there within OPEN_S.

        Parameters
        ----------
        measurements
            All of the session, one of each row.
        objective
            What the finalists are chosen by.
        stop
            Ends it early; what was measured stays as it was then.

        Returns
        -------
        The same measurements, with those of the deciding board in place of what other boards reported of the finalists.
        """
        self._decided_on = ""
        count = Counter(
            measurement.board for measurement in measurements if measurement.state is State.OK and measurement.board
        )
        candidates = finalists(measurements, objective) if len(count) > 1 else []
        tried, until = Counter[str](), time.monotonic() + OPEN_S
        while candidates and not stop.is_set():
            ready = [seat.board.key for seat in self._ready() if tried[seat.board.key] < TRIES]
            if not ready and time.monotonic() < until:
                self._hear(TURN_S)  # one may get ready, or come again
                continue
            if not ready:
                self._remark("no board of the pool is left to decide between the finalists")
                break
            board = max(ready, key=lambda key: (-tried[key], count[key]))
            tried[board] += 1
            asked = [candidate.row for candidate in candidates if candidate.board != board]
            by_row = {item.row: item for item in self._look_at(asked, Depth.ENERGY, stop, only=board)}
            if by_row.keys() >= set(asked):
                self._decided_on = board
                worked = {row: element for row, element in by_row.items() if element.state is State.OK}
                return [worked.get(measurement.row, measurement) for measurement in measurements]
        return measurements

    def features(self, rows: Sequence[int], stop: threading.Event | None = None) -> npt.NDArray[np.float64]:
        """The compilers' figures of the rows; NaN if no board answered."""
        result = np.full((len(rows), len(self.feature_names)), np.nan)
        seats = self._ready()
        size = min(MOST_ROWS, max(1, math.ceil(len(rows) / max(1, len(seats)))))
        starts = range(0, len(rows) if seats else 0, size)
        asked = [
            (seat, Request("features", "", 0, tuple(int(row) for row in rows[start : start + size])))
            for start, seat in zip(starts, cycle(seats), strict=False)
        ]
        for start, (seat, request), answer in zip(starts, asked, self._ask(asked, stop=stop), strict=True):
            if answer is None or seat.abilities is None:
                continue
            try:
                parsed = parse_features(answer, len(request.rows), len(seat.abilities.features))
                columns = [seat.abilities.features.index(name) for name in self.feature_names]
            except (Garbled, ValueError) as error:
                self._refuse(seat, str(error))
                continue
            result[start : start + len(parsed)] = np.asarray(parsed).reshape(len(parsed), -1)[:, columns]
        return result

    def restated(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        """Each as its own board states it; as it is where that board has left."""
        places: dict[str, list[int]] = {}
        for index, measurement in enumerate(measurements):
            places.setdefault(measurement.board, []).append(index)
        parts = [
            (seat, positions[start : start + _RESTATED])
            for seat in self._ready()
            if (positions := places.get(seat.board.key))
            for start in range(0, len(positions), _RESTATED)
        ]
        asked = [
            (
                seat,
                Request("restate", "", 0, measurements=tuple(rows_of([measurements[position] for position in part]))),
            )
            for seat, part in parts
        ]
        stated = list(measurements)
        for (seat, part), answer in zip(parts, self._ask(asked), strict=True):
            answered = self._restated(seat, answer, len(part))
            if [item.row for item in answered] == [stated[position].row for position in part]:
                for place, new in zip(part, answered, strict=True):
                    stated[place] = new
        return stated

    def conclude(self) -> Mapping[str, str]:
        """Let the boards keep what they learnt; which boards took part, and how each one's figures are stated."""
        asked = [(seat, Request("conclude", "", 0)) for seat in self._ready()]
        for (seat, _), answer in zip(asked, self._ask(asked), strict=True):
            if answer is not None:
                try:
                    self._origins[seat.board.key] |= parse_origin(answer)
                except Garbled as error:
                    self._remark(f"{seat.board.label}: {error.what}")
        document = json.dumps(as_json(self._ledger.status().boards))
        decided = {DECIDED_ON: self._decided_on} if self._decided_on else {}
        return {ORIGIN: boards_document(self._origins), STATUS: document, **decided}

    def close(self) -> None:
        """Let the boards end what they do for this session, and put back what it set. The pool stays open."""
        for number in list(self._sent):
            self._pool.cancel(number)
        self._sent.clear()
        self._pool.end_until(self._work.session, self._last)
        self._ask([(seat, Request("close", "", 0)) for seat in self._ready()], CLOSE_S)
        self._report(at_once=True)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _look_at(
        self, rows: Sequence[int], depth: Depth, stop: threading.Event, only: str = ""
    ) -> Iterator[Measurement]:
        """What comes of these rows, as it comes. Rows for one board end where that leaves."""
        job = _Job(deque(self._by_setting(rows)), depth, only)
        try:
            while not stop.is_set() and self._goes_on(job):
                self._hand_out(job)
                self._hear(TURN_S)
                while job.results:
                    yield job.results.popleft()
            self._look_whether_stopped(stop)
            yield from self._drained(job)
        finally:
            self._look_whether_stopped(stop)
            self._give_up(job)

    def _look_whether_stopped(self, stop: threading.Event) -> None:
        if stop.is_set():
            self._stopped_s = min(self._stopped_s, time.monotonic())

    def _goes_on(self, job: _Job) -> bool:
        if job.only and (job.only not in self._seats or self._seats[job.only].refused):
            return False
        return bool(job.waiting or job.under_way or job.results)

    def _drained(self, job: _Job) -> Iterator[Measurement]:
        """What the boards were at when the session stopped."""
        if not job.under_way:
            return
        self._pool.end_until(self._work.session, self._last)
        job.waiting.clear()
        until = min(time.monotonic(), self._stopped_s) + DRAIN_S
        while job.under_way and time.monotonic() < until:
            self._hear(TURN_S)
            while job.results:
                yield job.results.popleft()

    def _give_up(self, job: _Job) -> None:
        if not job.under_way:
            return
        self._pool.end_until(self._work.session, self._last)
        for number in list(job.under_way):
            self._pool.cancel(number)
            self._forget(number)

    def _by_setting(self, rows: Sequence[int]) -> list[int]:
        """The rows grouped by device setting, which minimises changes of clocks."""
        asked = [int(row) for row in rows]
        if not any(parameter.device_setting for parameter in self._space.parameters):
            return asked
        return sorted(asked, key=lambda row: tuple(settings_of(self._space, self._space.configuration(row)).values()))

    def _hand_out(self, job: _Job) -> None:
        """Give the free boards rows, in turns, as long as there are both."""
        if not job.waiting:
            return
        seats = [seat for seat in self._ready() if job.only in ("", seat.board.key)]
        here = {seat.board.key for seat in seats}
        coming = sum(seat.abilities is None and not seat.refused and not seat.busy for seat in self._seats.values())
        sharing = len(self._ready()) + coming
        for turn in range(AHEAD):
            for seat in seats:
                if len(seat.requests) == turn and (rows := self._rows_for(job, seat, sharing, here)):
                    number = self._send(seat, Request("measure", "", 0, tuple(rows), job.depth), job)
                    job.under_way.add(number)
                    seat.requests.add(number)

    def _rows_for(self, job: _Job, seat: _Seat, sharing: int, here: Collection[str]) -> list[int]:
        """The next rows of a job for a board: one that cost a worker alone, others together, fewer towards the end."""
        shares = 1 if job.only else sharing * AHEAD
        most = MOST_AT_ONCE if seat.reported or sharing == 1 or job.only else MOST_AT_FIRST
        size = min(most, max(1, math.ceil(len(job.waiting) / shares)))
        chosen: list[int] = []
        of_others: list[int] = []
        while job.waiting and len(chosen) < size:
            row = job.waiting.popleft()
            assigned = self._board_of.get(row) if job.depth is Depth.ENERGY and not job.only else None
            if assigned is not None and assigned != seat.board.key and assigned in here:
                of_others.append(row)
                continue
            alone = row in self._deaths
            if alone and chosen:
                job.waiting.appendleft(row)
                break
            chosen.append(row)
            if alone:
                break
        job.waiting.extendleft(reversed(of_others))
        return chosen

    # --- requests -----------------------------------------------------------------------------------------------------

    def _send(self, seat: _Seat, request: Request, job: _Job | None = None) -> int:
        self._last = number = self._last + 1
        numbered = replace(request, session=self._work.session, number=number)
        self._sent[number] = _Sent(seat.board.key, request.do, dict.fromkeys(request.rows), job)
        self._pool.send(seat.board.key, number, request_line(numbered))
        return number

    def _ask(
        self,
        requests: Sequence[tuple[_Seat, Request]],
        timeout_s: float = CONCLUDE_S,
        stop: threading.Event | None = None,
    ) -> list[Mapping[str, Any] | None]:
        """Wait for the answers to requests to several boards; None for a request without an answer."""
        numbers = [self._send(seat, request) for seat, request in requests]
        sent = [self._sent[number] for number in numbers]
        until = min(time.monotonic() + timeout_s, self._stopped_s + STOPPED_S)
        while any(element.answer is None and not element.failed for element in sent) and time.monotonic() < until:
            if stop is not None and stop.is_set():
                break
            self._hear(TURN_S)
        for number, (seat, _), item in zip(numbers, requests, sent, strict=True):
            if number in self._sent:
                self._pool.cancel(number)
                self._forget(number)
            if item.failed:
                self._remark(f"{seat.board.label}: {item.failed}")
        return [element.answer for element in sent]

    def _forget(self, number: int) -> _Sent | None:
        sent = self._sent.pop(number, None)
        if sent is not None:
            self._ledger.over(sent.board, number)
            if sent.board in self._seats:
                self._seats[sent.board].requests.discard(number)
            if sent.job is not None:
                sent.job.under_way.discard(number)
        return sent

    # --- events of the pool -------------------------------------------------------------------------------------------

    def _hear(self, timeout_s: float) -> None:
        """Take in whatever happened, waiting for the first of it."""
        heard = self._pool.heard(timeout_s)
        while heard is not None:
            match heard:
                case Said():
                    self._take(heard)
                case Unanswered():
                    self._unanswered(heard)
                case Came():
                    if heard.board.key not in self._seats and heard.board.model == self._model:
                        self._remark(f"{heard.board.label} joined the pool")
                    self._welcome(heard.board)
                case Left():
                    self._dismiss(heard)
                case Remark():
                    self._remark(heard.text)
            heard = self._pool.heard(0.0)
        self._report()
        refused = [seat for seat in self._seats.values() if seat.refused]
        for seat in self._seats.values():
            if seat.again_s <= time.monotonic():
                seat.again_s = math.inf
                seat.opening = self._send(seat, Request("open", "", 0, work=self._work))
        if any(self._ready()):
            self._alone_since = time.monotonic()
        elif refused and self._seen <= {seat.board.key for seat in refused}:
            raise WattridgeError(refused[-1].refused, refused[-1].board.label, "see its worker's machine")
        elif time.monotonic() - self._alone_since > PATIENCE_S:
            what = f"no board of the pool has been there for {PATIENCE_S / 60:.0f} min"
            raise WattridgeError(what, self._model, "see to its workers, then resume the session")

    def _report(self, *, at_once: bool = False) -> None:
        """Report the activity of the boards, at a limited rate."""
        passed_s = time.monotonic() - self._reported_s
        if at_once or passed_s >= (_REPORT_S if self._ledger.changed else _AT_LEAST_S):
            self._reported_s = time.monotonic()
            self._status = self._ledger.status()
            self._tell(self._status, "")

    def _remark(self, text: str) -> None:
        self._tell(self._status, text)

    def _take(self, statement: Said) -> None:
        """A line that came back. One that is garbled ends its board's part in the session."""
        sent = self._sent.get(statement.number)
        seat = self._seats.get(statement.board)
        if sent is None or seat is None or sent.board != statement.board:
            return  # nobody waits for it any more
        try:
            answer = parse_answer(statement.line, seat.board.label)
            if answer.number != statement.number:
                raise Garbled("an answer to something else")
            self._take_answer(statement.number, sent, seat, answer)
        except Garbled as error:
            self._refuse(seat, error.what)

    def _take_answer(self, number: int, sent: _Sent, seat: _Seat, answer: Answer) -> None:
        """Raises Garbled."""
        if answer.begun:
            sent.begun = True
            if sent.do == "measure":
                self._ledger.begun(seat.board.key, number, list(sent.rows))
            return
        if answer.measured is not None:
            self._take_measured(number, sent, seat, answer.measured)
            return
        if answer.error is not None:
            self._forget(number)
            sent.failed = answer.error.what
            if isinstance(answer.error, UnknownSession):  # another session was there meanwhile
                self._again(sent)
                self._welcome(seat.board)
            elif isinstance(answer.error, BoardBusy):
                if not seat.busy:
                    self._remark(f"{seat.board.label} is busy with another session; it is asked again")
                seat.busy, seat.again_s = True, time.monotonic() + BUSY_S
                self._ledger.busy(seat.board.key)
            elif sent.do in ("open", "measure"):
                self._refuse(seat, answer.error.what)
                self._again(sent)
            return
        assert answer.answer is not None, "it is one of these"
        if sent.do == "open":
            seat.abilities = parse_abilities(answer.answer)
            self._ledger.ready(seat.board.key)
            self._origins.setdefault(seat.board.key, {"label": seat.board.label, "host": seat.board.host})
        elif sent.do == "measure":
            self._ledger.prepared(seat.board.key, number_of(answer.answer.get("preparing_s", 0.0)))
            for measured in list_of(answer.answer.get("measured"), MOST_ROWS):  # what came as parts comes once more
                self._take_measured(number, sent, seat, measured)
        sent.answer = answer.answer
        self._forget(number)
        self._again(sent)

    def _take_measured(self, number: int, sent: _Sent, seat: _Seat, measured: Any) -> None:
        """Raises Garbled."""
        measurement = parse_measurement(measured, self._space, seat.board.key, self.source)
        if sent.job is None or measurement.row not in sent.rows:
            return  # known already
        if measurement.depth is not sent.job.depth:
            raise Garbled("a row that was measured in another way than asked for")
        del sent.rows[measurement.row]
        failed = measurement.state is not State.OK
        self._ledger.measured(seat.board.key, number, measurement.row, failed=failed)
        self._deaths.pop(measurement.row, None)
        seat.reported = True
        if measurement.depth is Depth.ENERGY:
            self._board_of[measurement.row] = seat.board.key
        sent.job.results.append(measurement)

    def _unanswered(self, heard: Unanswered) -> None:
        sent = self._forget(heard.number)
        if sent is None:
            return
        sent.failed = heard.why
        seat = self._seats.get(sent.board)
        if sent.do == "open" and seat is not None and seat.opening == heard.number:
            del self._seats[sent.board]  # it comes again with its next worker
            if any(board.key == sent.board for board in self._pool.boards()):
                self._welcome(seat.board)
        if heard.how is Failure.LOST and sent.begun and sent.job is not None:
            for row in list(sent.rows):
                self._deaths[row] = self._deaths.get(row, 0) + 1
                if self._deaths[row] >= _DEATHS:
                    del sent.rows[row]
                    sent.job.results.append(self._killing(row, sent.job.depth, heard))
        self._again(sent)

    def _killing(self, row: int, depth: Depth, heard: Unanswered) -> Measurement:
        """The result of a row with which workers die."""
        message = f"the worker died {_DEATHS} times while it was measured"
        failed = Measurement.failed(
            row, self._space.configuration(row), State.RUNTIME, message, source=self.source, depth=depth
        )
        return replace(failed, board=heard.board)

    def _again(self, sent: _Sent) -> None:
        """Rows of a request that is over go back to their job, before the others."""
        if sent.job is not None and sent.rows:
            sent.job.waiting.extendleft(reversed(list(sent.rows)))
            sent.rows.clear()

    # --- boards -------------------------------------------------------------------------------------------------------

    def _ready(self) -> list[_Seat]:
        return [seat for seat in self._seats.values() if seat.abilities is not None and not seat.refused]

    def _welcome(self, board: PoolBoard) -> None:
        """Get a board of the model ready for the session, from the start."""
        if board.model != self._model:
            return
        before = self._seats.get(board.key)
        if before is not None and before.refused:
            return
        self._seen.add(board.key)
        self._ledger.joined(board)
        seat = self._seats[board.key] = _Seat(board)
        seat.opening = self._send(seat, Request("open", "", 0, work=self._work))

    def _dismiss(self, left: Left) -> None:
        seat = self._seats.get(left.board)
        if seat is None or seat.refused:
            return
        del self._seats[left.board]
        self._ledger.left(left.board, left.why)
        self._report(at_once=True)
        self._remark(f"{seat.board.label} left the pool: {left.why}")

    def _refuse(self, seat: _Seat, why: str) -> None:
        """A board takes no part any more; what it had goes to the others."""
        if seat.refused:
            return
        seat.refused = why
        self._ledger.refused(seat.board.key, why)
        self._report(at_once=True)
        self._remark(f"{seat.board.label} takes no part: {why}")
        for number in [number for number, sent in self._sent.items() if sent.board == seat.board.key]:
            self._pool.cancel(number)
            sent = self._forget(number)
            if sent is not None:
                sent.failed = why
                self._again(sent)

    def _first_ready(self) -> Abilities:
        """Those of the first board that is ready. Raises WattridgeError."""
        until = time.monotonic() + OPEN_S
        while not (ready := self._ready()):
            if time.monotonic() > until:
                raise WattridgeError("no board of the pool got ready", self._model, "see to its workers")
            self._hear(TURN_S)
        abilities = ready[0].abilities
        assert abilities is not None, "it is ready"
        return abilities

    def _restated(self, seat: _Seat, answer: Mapping[str, Any] | None, most: int) -> list[Measurement]:
        if answer is None:
            return []
        try:
            documents = list_of(answer.get("measurements"), most)
            return [parse_measurement(document, self._space, seat.board.key, self.source) for document in documents]
        except Garbled as error:
            self._remark(f"{seat.board.label}: {error.what}")
            return []
