"""`BoardWork`: one board of a pool and what is asked of it, whatever carries the requests.

It has one session at a time, with the same runner as a session on this machine would have: kernels run in a process of
their own, so that a fault costs that process. What it is sent is data; it starts no programs.
"""

from __future__ import annotations

import math
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ....errors import WattridgeError
from ....sensors.errors import GpuLost
from ....sensors.gpu import Gpu
from ....sensors.remote.fields import Garbled, line_of
from ...children.scratch import scratch_folder
from ...control.guard import DeviceGuard
from ...control.serving import hello_of
from ...metering.condition import Condition
from ...runner.base import KnowsFeatures, PreparationFailed, Prepares, Runner, StatesFigures, Times
from ...runner.kernels.given_images import TakesImages
from ...runner.kernels.image_target import ImageTarget
from ...runner.pool.boards import PoolBoard, board_message
from ...runner.pool.compilers import parse_given, target_document
from ...runner.pool.messages import (
    Abilities,
    BoardBusy,
    Request,
    SessionWork,
    UnknownSession,
    abilities_document,
    answer_line,
    begun_line,
    error_line,
    parse_measurement,
    parse_request,
    rows_of,
)
from ...runner.settings_order import setting_names
from ...specification.programs import programs_of
from ..load import load_specification
from ..on_board import limits_on, require_runnable, runner_on
from .measuring import Coming, Measuring, Say

IDLE_S: Final = 120.0  # without a request, after which another session may have the board


class _Session:
    """A session that has the board."""

    def __init__(self, work: SessionWork, runner: Runner, folder: Path) -> None:
        self.name = work.session
        self.space = work.space
        self.runner = runner
        self.folder = folder
        self.prepared = False
        self.measuring: Measuring | None = None
        self.images: ImageTarget | None = runner.take_images_from(folder) if isinstance(runner, TakesImages) else None

    def end_measuring(self) -> None:
        measuring, self.measuring = self.measuring, None
        if measuring is not None:
            measuring.close()

    def close(self) -> None:
        try:
            self.end_measuring()
            self.runner.close()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


class BoardWork:
    """Answers requests, one after the other, each on a thread of the caller's; `end_until` and `doing` on any.

    The rows of a request that waits for its turn may be measured before that comes, so that the board never rests.
    """

    def __init__(self, gpu: Gpu, guard: DeviceGuard, *, host: str, key: str = "") -> None:
        """`key` stands for the board in its pool: its UUID where none is given."""
        self._gpu, self._guard = gpu, guard
        self.board = PoolBoard(
            key=key or gpu.info.uuid,
            host=host,
            hello=hello_of(gpu),
            limits=limits_on(gpu),
            read_only=guard.why_forbidden,
        )
        self._session: _Session | None = None
        self._asked_at = -math.inf
        self._client = self._owner = ""  # whose request it is, and whose session has the board
        self._one_at_a_time = threading.Lock()
        self._mutex = threading.Lock()
        self._ended: tuple[str, int] = ("", 0)  # requests of that session up to that number end early
        self._now: tuple[str, int, threading.Event] | None = None
        self._waiting: dict[int, Coming] = {}  # requests for rows, in the order in which they came
        self.measured = 0
        self._verbs: Mapping[str, Callable[[Request, Say, threading.Event], dict[str, Any]]] = {
            "open": self._open,
            "measure": self._measure,
            "features": self._features,
            "restate": self._restate,
            "conclude": self._conclude,
            "close": self._close,
        }

    @property
    def key(self) -> str:
        return self.board.key

    @property
    def label(self) -> str:
        return self.board.label

    @property
    def announcement(self) -> str:
        """How the board is announced to the pool, as one line."""
        return line_of(board_message(self.board)).decode("ascii")

    @property
    def doing(self) -> str:
        """In a word: what it does now."""
        return "measures" if self._now is not None else "waits"

    def answer(self, line: bytes, say: Say, client: str = "") -> bytes:
        """The answer to a request; `say` publishes the parts that come before it.

        A client has one session at a time, so that a new one of the same client ends the one before.
        """
        number = 0
        try:
            request = parse_request(line)
            number = request.number
            if request.do == "measure":
                with self._mutex:
                    self._waiting[number] = Coming(request, say, list(request.rows))
            with self._one_at_a_time:
                self._client = client
                return self._answered(request, say)
        except (WattridgeError, OSError) as error:
            return error_line(number, error)
        finally:
            with self._mutex:
                self._waiting.pop(number, None)

    def _answered(self, request: Request, say: Say) -> bytes:
        """Raises WattridgeError and OSError."""
        number, stop = request.number, threading.Event()
        try:
            say(begun_line(number))
            self._is_at(request, stop)
            return answer_line(number, self._verbs[request.do](request, say, stop))
        except GpuLost:
            self._let_go()
            raise
        finally:
            if self._now is not None and self._session is not None and self._now[0] == self._session.name:
                self._asked_at = time.monotonic()
            self._now = None

    def _is_at(self, request: Request, stop: threading.Event) -> None:
        """That request is answered now; `stop` ends it early."""
        with self._mutex:
            self._waiting.pop(request.number, None)
            self._now = (request.session, request.number, stop)
            if self._is_ended(request):
                stop.set()

    def _is_ended(self, request: Request) -> bool:
        return request.session == self._ended[0] and request.number <= self._ended[1]

    def end_until(self, session: str, number: int) -> None:
        """Requests of the session up to that number end early."""
        with self._mutex:
            self._ended = (session, number)
            if self._now is not None and self._now[0] == session and self._now[1] <= number:
                self._now[2].set()

    def take_image(self, line: bytes) -> None:
        """An image for the session that has the board; one that is none, or for another, is dropped. Of any thread."""
        with suppress(Garbled):
            name, given = parse_given(line)
            session = self._session
            if session is not None and session.name == name and isinstance(session.runner, TakesImages):
                session.runner.give_image(given)

    def abandon(self) -> None:
        """Nobody waits for the request that is answered now: it ends early."""
        with self._mutex:
            if self._now is not None:
                self._now[2].set()

    def let_go_where_idle(self) -> None:
        """End a session that has asked for nothing for long: whoever has it opens it again."""
        if self._one_at_a_time.acquire(blocking=False):
            try:
                if time.monotonic() - self._asked_at > IDLE_S:
                    self._let_go()
            finally:
                self._one_at_a_time.release()

    def close(self) -> None:
        """Put the board back. It may be closed then."""
        with self._one_at_a_time:
            self._let_go()
        self._guard.close()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _let_go(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(WattridgeError):
                session.close()

    def _open(self, request: Request, say: Say, stop: threading.Event) -> dict[str, Any]:
        assert request.work is not None, "the request was checked"
        if self._session is not None and self._session.name != request.session:
            own = self._client != "" and self._client == self._owner
            if not own and time.monotonic() - self._asked_at < IDLE_S:
                raise BoardBusy("it is busy with another session", self.board.label, "wait for that to end")
            self._let_go()
        if self._session is None:
            self._session, self._owner = self._opened(request.work), self._client
        runner = self._session.runner
        abilities = Abilities(
            timed=runner.timed if isinstance(runner, Times) else frozenset(),
            features=runner.feature_names if isinstance(runner, KnowsFeatures) else (),
            batch=runner.batch,
        )
        return {**abilities_document(abilities), "images": target_document(self._session.images)}

    def _opened(self, work: SessionWork) -> _Session:
        folder = scratch_folder()
        try:
            spec = load_specification(work.bundle.unpack(folder)).repeated(work.repeats)
            if spec.kernel is None or (programs := programs_of(spec)):
                said = programs[0] if spec.kernel is not None else "this is no kernel"
                raise WattridgeError(f"a pool starts no programs: {said}", spec.name, "run it on one board")
            require_runnable(spec, self._gpu)
            if setting_names(work.space):
                if why := self._guard.why_forbidden:
                    raise WattridgeError(f"its settings stay as they are: {why}", self.board.label, "leave them out")
                self._guard.open()
            condition = Condition.parse(work.condition, "the session") if work.condition else None
            runner = runner_on(spec, self._gpu, work.space, self._guard, condition)()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return _Session(work, runner, folder)

    def _known(self, request: Request) -> _Session:
        if self._session is None or self._session.name != request.session:
            raise UnknownSession("it does not know the session", self.board.label)
        return self._session

    def _rows(self, request: Request) -> tuple[_Session, list[int]]:
        session = self._known(request)
        if any(row >= session.space.size for row in request.rows):
            raise Garbled("a row that the space does not have")
        return session, list(request.rows)

    def _measure(self, request: Request, say: Say, stop: threading.Event) -> dict[str, Any]:
        session, rows = self._rows(request)
        runner = session.runner
        if session.measuring is None or not session.measuring.has(request.number):
            session.end_measuring()
        began = time.monotonic()
        if not session.prepared and isinstance(runner, Prepares):
            with suppress(PreparationFailed):  # it measures all the same
                runner.prepare(rows, stop, lambda *_: None)
        session.prepared = True
        preparing_s = time.monotonic() - began
        if session.measuring is None:
            session.measuring = self._measuring(session, Coming(request, say, rows), stop)
        measuring = session.measuring
        self._is_at(request, measuring.stop)
        try:
            found = measuring.measure(request.number)
        except BaseException:
            session.end_measuring()
            raise
        if measuring.is_over:
            session.measuring = None
        self.measured += len(found)
        return {"measured": rows_of(found), "preparing_s": preparing_s, **_of_images(runner)}

    def _measuring(self, session: _Session, first: Coming, stop: threading.Event) -> Measuring:
        """Raises WattridgeError."""

        def following() -> list[Coming]:
            with self._mutex:
                alike = [
                    each
                    for each in self._waiting.values()
                    if (each.request.session, each.request.depth) == (session.name, first.request.depth)
                    and each.request.number > first.request.number
                    and not session_has(each.request.number)
                    and not self._is_ended(each.request)
                ]
            return [each for each in alike if all(row < session.space.size for row in each.left)]

        def session_has(number: int) -> bool:
            return session.measuring is not None and session.measuring.has(number)

        try:
            return Measuring(session.runner, first, stop, following)
        except TypeError as error:
            raise WattridgeError(str(error), self.board.label) from None

    def _features(self, request: Request, say: Say, stop: threading.Event) -> dict[str, Any]:
        session, rows = self._rows(request)
        if not isinstance(session.runner, KnowsFeatures):
            raise WattridgeError("it knows no features", self.board.label)
        found = session.runner.features(rows, stop).tolist()
        return {"features": [[each if math.isfinite(each) else None for each in row] for row in found]}

    def _restate(self, request: Request, say: Say, stop: threading.Event) -> dict[str, Any]:
        session = self._known(request)
        source = self._gpu.info.source
        measurements = [parse_measurement(each, session.space, "", source) for each in request.measurements]
        if isinstance(session.runner, StatesFigures):
            measurements = list(session.runner.restated(measurements))
        return {"measurements": rows_of(measurements)}

    def _conclude(self, request: Request, say: Say, stop: threading.Event) -> dict[str, Any]:
        runner = self._known(request).runner
        return {"origin": dict(runner.conclude()) if isinstance(runner, StatesFigures) else {}}

    def _close(self, request: Request, say: Say, stop: threading.Event) -> dict[str, Any]:
        self._known(request)
        self._let_go()
        return {}


def _of_images(runner: Runner) -> dict[str, Any]:
    """What came of images that were made elsewhere."""
    given = runner.given if isinstance(runner, TakesImages) else None
    return {} if given is None else {"images": {"used": given.used, "refused": dict(given.refused)}}
