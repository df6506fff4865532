"""The worker of a pool's board: `BoardWork` answers the requests for the board, and `_main` is its process.

A board has one session at a time, with the same runner as a session on this machine would have: kernels run in a
process of their own, so that a fault costs that process. Requests are data, and no program is started for them. Run as
a module, it serves a board, or is the scheduler of a pool of this machine alone.
"""

from __future__ import annotations

import asyncio
import math
import os
import platform
import secrets
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ....base.conversation import Message, Parent
from ....base.errors import InputError, WattridgeError
from ....base.formatting import finite_or_none
from ....base.processes import say, use_one_core
from ....sensors.gpu import Gpu, GpuLost
from ....sensors.remote.messages import Garbled, line_of
from ....sensors.select import open_gpu
from ...children.scratch import scratch_folder
from ...children.supervised import GIVES_UP
from ...control.guard import DeviceGuard
from ...control.outside import UNLOCK, locks_in, look
from ...control.serving import hello_of
from ...metering.condition import Condition
from ...results.measurement import Depth, Measurement
from ...results.objectives import Goal, Objective
from ...runner.base import PreparationFailed, Runner, setting_names
from ...runner.boards import open_runner
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
    measured_line,
    parse_measurement,
    parse_request,
    rows_of,
)
from ...runner.pool.pool import Certificates, PoolBoard, board_message
from ...specification.model import programs_of
from ..load import load_specification
from ..on_board import OneBoard, limits_on
from ..planning import make_plan
from .opening import find_certificates

IDLE_S: Final = 120.0  # without a request, after which another session may have the board
_END_S: Final = 8.0  # for an orderly end
_SAY_S: Final = 3.0  # without a scheduler, until the user hears of it
_IDLE_LOOK_S: Final = 5.0
_CLOSE_S: Final = 3.0
_AGAIN_S: Final = 0.5

Say = Callable[[bytes], None]
Ready = Callable[[Mapping[str, Any]], None]


@dataclass(slots=True)
class Coming:
    """A request for rows, its results, and where they are published."""

    request: Request
    say: Say
    left: list[int]  # of its rows
    measured: list[Measurement] = field(default_factory=list)


class Measuring:
    """Rows of one depth that a runner measures without a break, whichever requests they came with.

    The next request's rows are handed to the runner while it is at those before: they compile and load meanwhile, and
    the board does not rest between two requests. Each row is reported under the number of its own request. One thread
    at a time drives it, for any of the requests.
    """

    def __init__(
        self, runner: Runner, first: Coming, stop: threading.Event, following: Callable[[], Sequence[Coming]]
    ) -> None:
        """Begin with a request; `following` returns requests of the same depth that wait, each of them once.

        `stop` ends all of them.
        """
        self.depth, self.stop = first.request.depth, stop
        self._following = following
        self._requests = {first.request.number: first}
        self._measuring = runner.measure(list(first.left), stop, self.depth, self._more)

    def has(self, number: int) -> bool:
        """Whether the rows of that request were handed to the runner."""
        return number in self._requests

    def measure(self, number: int) -> list[Measurement]:
        """Go on until all rows of a request are measured, or it was stopped; its measurements."""
        coming = self._requests[number]
        while coming.left or not any(other.left for other in self._requests.values()):
            measured = next(self._measuring, None)
            if measured is None:
                break
            self._take(measured)
        del self._requests[number]
        return coming.measured

    @property
    def is_over(self) -> bool:
        """Whether no request is left."""
        return not self._requests

    def close(self) -> None:
        """Release the board."""
        close = getattr(self._measuring, "close", None)
        if close is not None:
            close()

    def _more(self) -> list[int]:
        rows: list[int] = []
        for coming in self._following():
            self._requests[coming.request.number] = coming
            rows += coming.left
            coming.say(begun_line(coming.request.number))  # these rows may be what a worker dies of
        return rows

    def _take(self, measured: Measurement) -> None:
        for number, coming in self._requests.items():
            if measured.row in coming.left:
                coming.left.remove(measured.row)
                coming.measured.append(measured)
                coming.say(measured_line(number, measured))
                return


class _Session:
    """A session that has the board."""

    def __init__(self, work: SessionWork, runner: Runner, opened: ExitStack) -> None:
        """`opened` releases the runner and the files."""
        self.name = work.session
        self.space = work.space
        self.runner = runner
        self.prepared = False
        self.measuring: Measuring | None = None
        self._opened = opened

    def end_measuring(self) -> None:
        measuring, self.measuring = self.measuring, None
        if measuring is not None:
            measuring.close()

    def close(self) -> None:
        with self._opened:
            self.end_measuring()


class BoardWork:
    """Answers requests, one after the other, each on a thread of the caller; `end_until` may be called on any thread.

    The rows of a request that waits for its turn may be measured before that comes, so that the board never rests.
    """

    def __init__(self, gpu: Gpu, guard: DeviceGuard, *, host: str, key: str = "") -> None:
        """Serve a board; `key` identifies it in its pool, its UUID by default."""
        self._gpu, self._guard = gpu, guard
        hello, locked = hello_of(gpu), {} if guard.why_forbidden or not gpu.info.live else locks_in(gpu, look(gpu))
        why = {name: f"it stands at {mhz:g} MHz as if locked: {UNLOCK[name]}" for name, mhz in locked.items()}
        self.board = PoolBoard(
            key=key or gpu.info.uuid,
            host=host,
            hello=replace(hello, cannot_set={**hello.cannot_set, **why}),
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
    def announcement(self) -> str:
        """The announcement of the board to the pool, as one line."""
        return line_of(board_message(self.board)).decode("ascii")

    def answer(self, line: bytes, say: Say, client: str = "") -> bytes:
        """The answer to a request; `say` publishes the parts that come before it.

        A client has one session at a time: a new one of the same client ends the one before.
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
        """Note that a request is answered now; `stop` ends it early."""
        with self._mutex:
            self._waiting.pop(request.number, None)
            self._now = (request.session, request.number, stop)
            if self._is_ended(request):
                stop.set()

    def _is_ended(self, request: Request) -> bool:
        return request.session == self._ended[0] and request.number <= self._ended[1]

    def end_until(self, session: str, number: int) -> None:
        """End requests of a session up to that number early."""
        with self._mutex:
            self._ended = (session, number)
            if self._now is not None and self._now[0] == session and self._now[1] <= number:
                self._now[2].set()

    def abandon(self) -> None:
        """End the request that is answered now early: its client is gone."""
        with self._mutex:
            if self._now is not None:
                self._now[2].set()

    def let_go_where_idle(self) -> None:
        """End a session without requests for long; its client opens it again."""
        if self._one_at_a_time.acquire(blocking=False):
            try:
                if time.monotonic() - self._asked_at > IDLE_S:
                    self._let_go()
            finally:
                self._one_at_a_time.release()

    def close(self) -> None:
        """Put the board back, after which it may be closed."""
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
            is_owner = self._client != "" and self._client == self._owner
            if not is_owner and time.monotonic() - self._asked_at < IDLE_S:
                raise BoardBusy("it is busy with another session", self.board.label, "wait for that to end")
            self._let_go()
        if self._session is None:
            self._session, self._owner = self._opened(request.work), self._client
        runner = self._session.runner
        return abilities_document(Abilities(runner.timed, runner.feature_names, runner.batch))

    def _opened(self, work: SessionWork) -> _Session:
        with ExitStack() as stack:
            folder = scratch_folder()
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            spec = load_specification(work.bundle.unpack(folder)).repeated(work.repeats)
            if spec.kernel is None or (programs := programs_of(spec)):
                why = programs[0] if spec.kernel is not None else "this is no kernel"
                raise WattridgeError(f"a pool starts no programs: {why}", spec.name, "run it on one board")
            board = OneBoard(self._gpu, self._guard)
            board.require_runnable(spec)
            if setting_names(work.space):
                if why := self._guard.why_forbidden:
                    raise WattridgeError(f"its settings stay as they are: {why}", self.board.label, "leave them out")
                self._guard.open()
            board.require_space(spec, work.space)
            plan = make_plan(
                board,
                title=spec.name,
                gpu=self._gpu.info.name,
                source=self._gpu.info.source,
                space=work.space,
                objective=spec.objective or Objective(Goal("time_s", maximise=False)),
                strategy="brute_force",  # rows are chosen where the session is
                specification=spec,
                condition=Condition.parse(work.condition, "the session") if work.condition else None,
            )
            return _Session(work, stack.enter_context(open_runner(plan, board)), stack.pop_all())

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
        if not session.prepared:
            with suppress(PreparationFailed):  # it measures all the same
                runner.prepare(rows, stop, lambda *_: None)
        session.prepared = True
        preparing_s = time.monotonic() - began
        if session.measuring is None:
            session.measuring = self._measuring(session, Coming(request, say, rows), stop)
        measuring = session.measuring
        self._is_at(request, measuring.stop)
        try:
            measured = measuring.measure(request.number)
        except BaseException:
            session.end_measuring()
            raise
        if measuring.is_over:
            session.measuring = None
        self.measured += len(measured)
        return {"measured": rows_of(measured), "preparing_s": preparing_s}

    def _measuring(self, session: _Session, first: Coming, stop: threading.Event) -> Measuring:
        """Raises WattridgeError."""

        def following() -> list[Coming]:
            measuring = session.measuring
            with self._mutex:
                alike = [
                    coming
                    for coming in self._waiting.values()
                    if (coming.request.session, coming.request.depth) == (session.name, first.request.depth)
                    and coming.request.number > first.request.number
                    and not (measuring is not None and measuring.has(coming.request.number))
                    and not self._is_ended(coming.request)
                ]
            return [coming for coming in alike if all(row < session.space.size for row in coming.left)]

        if first.request.depth is Depth.TIME and not session.runner.timed:
            raise WattridgeError("it cannot time rows", self.board.label)
        return Measuring(session.runner, first, stop, following)

    def _features(self, request: Request, say: Say, stop: threading.Event) -> dict[str, Any]:
        session, rows = self._rows(request)
        features = session.runner.features(rows, stop).tolist()
        return {"features": [[finite_or_none(value) for value in row] for row in features]}

    def _restate(self, request: Request, say: Say, stop: threading.Event) -> dict[str, Any]:
        session = self._known(request)
        source = self._gpu.info.source
        measurements = [parse_measurement(text, session.space, "", source) for text in request.measurements]
        return {"measurements": rows_of(session.runner.restated(measurements))}

    def _conclude(self, request: Request, say: Say, stop: threading.Event) -> dict[str, Any]:
        return {"origin": dict(self._known(request).runner.conclude())}

    def _close(self, request: Request, say: Say, stop: threading.Event) -> dict[str, Any]:
        self._known(request)
        self._let_go()
        return {}


# --- the process ------------------------------------------------------------------------------------------------------


def _main() -> int:
    """Do the task of the parent until that closes our standard input; the exit status."""
    use_one_core()
    parent = Parent(_END_S, outlasts_signals=True)
    frame = parent.inbox.get()
    if frame is None:
        return 1
    task, _ = frame

    def tell(message: Message) -> None:
        with suppress(OSError):
            parent.send(message)

    async def live() -> None:
        end = asyncio.Event()
        loop = asyncio.get_running_loop()
        threading.Thread(target=_until_closed, args=(parent, loop, end), name="end", daemon=True).start()
        await _serve(task, end, lambda ready: tell({"ready": dict(ready)}))

    try:
        asyncio.run(live())
    except WattridgeError as error:
        tell({"failed": str(error)})
        return GIVES_UP if isinstance(error, InputError) else 1
    except OSError as error:
        tell({"failed": error.strerror or str(error)})
        return 1
    return 0


def _until_closed(parent: Parent, loop: asyncio.AbstractEventLoop, end: asyncio.Event) -> None:
    """Wait until the parent closes our input or is gone, then end in order; `Parent` kills us where that hangs."""
    while parent.inbox.get() is not None:
        pass
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(end.set)


async def _serve(task: Mapping[str, Any], end: asyncio.Event, ready: Ready) -> None:
    """Do a task until the parent is gone: serve a board, else be the scheduler. Raises WattridgeError."""
    from ...runner.pool.dask_pool import settle, start_scheduler

    settle()
    certificates = find_certificates(Path(task["certificates"]))
    if "gpu" in task:
        await _serve_board(task, certificates, end, ready)
        return
    scheduler = await start_scheduler(task["address"], certificates)
    ready({"address": scheduler.address})
    await end.wait()
    await scheduler.close()


async def _serve_board(task: Mapping[str, Any], certificates: Certificates, end: asyncio.Event, ready: Ready) -> None:
    """Offer a board to the scheduler whenever that answers. Raises WattridgeError if the board does not open."""
    host = platform.node() or "a machine without a name"
    _keep_to_share(task["number"], task["workers"])
    with closing(open_gpu(task["gpu"], seed=task["seed"], speed=task["speed"])) as gpu:
        guard = DeviceGuard(gpu, allow_control=task["allow_control"], by="pool")
        key = gpu.info.uuid if gpu.info.live else f"{gpu.info.uuid}@{host}/{task['number']}"
        work = BoardWork(gpu, guard, host=host, key=key)
        try:
            while not end.is_set():
                with suppress(OSError, ValueError, RuntimeError):  # the scheduler is not there, or was lost
                    await _offer(work, task["scheduler"], certificates, end, ready)
                with suppress(TimeoutError):
                    await asyncio.wait_for(end.wait(), _AGAIN_S)
        finally:
            await asyncio.to_thread(work.close)


def _keep_to_share(number: int, workers: int) -> None:
    """Use this worker's share of the cores: each compiles on as many as it finds, and must not disturb the others."""
    if hasattr(os, "sched_setaffinity"):
        share = sorted(os.sched_getaffinity(0))[number::workers]
        if len(share) > 1:
            os.sched_setaffinity(0, share)


async def _offer(
    work: BoardWork,
    scheduler: str,
    certificates: Certificates,
    end: asyncio.Event,
    ready: Ready,
) -> None:
    """Be a worker of the scheduler until that, or the parent, is gone. Raises OSError if it is not there."""
    from ...runner.pool.dask_pool import PoolWorker

    folder = scratch_folder()
    name = f"{work.board.key} {secrets.token_hex(4)}"
    worker = PoolWorker(work, scheduler, certificates, name=name, local_directory=str(folder))
    try:
        if await _has_started(worker, scheduler, end):
            ready({"board": work.board.label, "address": worker.address})
            await _until_over(worker, work, end)
    finally:
        work.abandon()
        with suppress(Exception):
            await asyncio.wait_for(worker.leave(), _CLOSE_S)
        with suppress(Exception):
            await asyncio.wait_for(worker.close(executor_wait=False, nanny=False), _CLOSE_S)
        shutil.rmtree(folder, ignore_errors=True)


async def _has_started(worker: Any, scheduler: str, end: asyncio.Event) -> bool:
    """Wait until the scheduler has taken the worker; False if the parent is gone before. Raises OSError.

    Dask tries again by itself while nothing answers, or a scheduler with certificates of another pool does.
    """
    starting: asyncio.Future[Any] = asyncio.ensure_future(worker)
    ended = asyncio.create_task(end.wait())
    try:
        done, _ = await asyncio.wait((starting, ended), timeout=_SAY_S, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            say(f"no scheduler of this pool answers at {scheduler} yet; it is tried again")
            await asyncio.wait((starting, ended), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
        return starting.done()
    finally:
        starting.cancel()
        ended.cancel()


async def _until_over(worker: Any, work: BoardWork, end: asyncio.Event) -> None:
    ended = [asyncio.create_task(worker.finished()), asyncio.create_task(end.wait())]
    while not any(task.done() for task in ended):
        await asyncio.wait(ended, timeout=_IDLE_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.to_thread(work.let_go_where_idle)
    for task in ended:
        task.cancel()


if __name__ == "__main__":
    sys.exit(_main())
