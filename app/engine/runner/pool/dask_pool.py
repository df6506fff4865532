"""What Dask carries: `DaskPool`, the pool of a scheduler; that scheduler; and the worker of a board.

All speak TLS in both directions, on every address, and nothing else listens: Dask unpickles what its peers send, so a
peer is whoever has the pool's certificate, and nobody else.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import secrets
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

import dask
from distributed import Client, Scheduler, Worker, get_worker
from distributed.client import Future
from distributed.comm.addressing import get_address_host, parse_host_port
from distributed.scheduler import KilledWorker
from distributed.security import Security
from distributed.utils import get_ip

from ....base.errors import WattridgeError
from ....base.text import shortened
from ....sensors.remote.messages import Garbled
from .messages import AHEAD, error_line
from .pool import Came, Certificates, Failure, Heard, Left, PoolBoard, Remark, Said, Unanswered, parse_board

# --- what all have in common ------------------------------------------------------------------------------------------

# What Dask would do otherwise: serve pages, load modules, write on the terminal, spill to disk, try a task again.
_SETTINGS: Final[Mapping[str, Any]] = {
    "distributed.comm.require-encryption": True,
    "distributed.comm.default-scheme": "tls",
    "distributed.comm.tls.min-version": 1.3,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.http.routes": [],
    "distributed.scheduler.preload": [],
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": "2 minutes",
    "distributed.worker.http.routes": [],
    "distributed.worker.preload": [],
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.limit": "1h",
    "distributed.admin.low-level-log-length": 100,
}


def settle() -> None:
    """Set this process's Dask up for a pool, regardless of the user's own configuration of Dask."""
    dask.config.set(_SETTINGS)
    for name in ("distributed", *(name for name in logging.root.manager.loggerDict if name.startswith("distributed."))):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def security_of(certificates: Certificates) -> Security:
    """TLS with the pool's certificate on both sides."""
    key, certificate = str(certificates.key), str(certificates.certificate)
    roles = {
        f"tls_{role}_{part}": path
        for role in ("client", "scheduler", "worker")
        for part, path in (("key", key), ("cert", certificate))
    }
    return Security(require_encryption=True, tls_ca_file=str(certificates.authority), **roles)


# --- the scheduler ----------------------------------------------------------------------------------------------------


class PoolScheduler(Scheduler):  # type: ignore[misc]  # Dask has no types
    """Listens on one port, for those with the pool's certificate."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """None is started: nothing listens that TLS does not guard."""


async def start_scheduler(address: str, certificates: Certificates) -> PoolScheduler:
    """A scheduler that listens at `tls://HOST:PORT`; port 0 is any. Raises WattridgeError if it cannot."""
    settle()
    host, port = parse_host_port(address.removeprefix("tls://"))
    scheduler = PoolScheduler(
        host=host, port=port, protocol="tls", security=security_of(certificates), dashboard=False, allowed_failures=0
    )
    try:
        await scheduler
    except (OSError, ValueError, RuntimeError) as error:  # Dask's own is a RuntimeError about the system's
        cause = error.__cause__ or error
        reason = getattr(cause, "strerror", None) or str(cause)
        raise WattridgeError(f"the scheduler cannot listen: {reason}", address, "choose another address") from None
    return scheduler


# --- the worker of a board --------------------------------------------------------------------------------------------

GPU_RESOURCE = "GPU"  # each worker has as many as it has requests at once; its board is at one after the other
ANNOUNCED = "wattridge"  # under which a worker's startup information has what it says of its board
END_UNTIL = "wattridge_end_until"  # a worker's handler


class AnswersRequests(Protocol):
    """A board that answers requests."""

    @property
    def announcement(self) -> str:
        """What the worker's startup information has of the board, as one line."""
        ...

    def answer(self, line: bytes, say: Callable[[bytes], None], client: str = "") -> bytes:
        """The answer to a request; `say` publishes the parts that come before it."""
        ...

    def end_until(self, session: str, number: int) -> None:
        """Let requests of the session up to that number end early."""
        ...


class PoolWorker(Worker):  # type: ignore[misc]  # Dask has no types
    """A worker with a board; it has as many threads as requests.

    Of the requests for a board one is answered while the next waits beside it, so that the board has its rows already.
    """

    def __init__(self, work: AnswersRequests, scheduler: str, certificates: Certificates, **options: Any) -> None:
        self._work = work
        super().__init__(
            scheduler,
            host=get_ip(get_address_host(scheduler)),
            security=security_of(certificates),
            nthreads=AHEAD,
            resources={GPU_RESOURCE: AHEAD},
            startup_information={ANNOUNCED: lambda _worker: work.announcement},
            dashboard=False,
            memory_limit=0,
            **options,
        )
        self.handlers[END_UNTIL] = self.end_until

    async def leave(self) -> None:
        """Tell the scheduler of an end that is expected: what is under way goes to others, and counts as no death."""
        await self.scheduler.unregister(
            address=self.address, stimulus_id=f"leaves-{self.name}", expected=True, close=False
        )

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """None is started: nothing listens that TLS does not guard."""

    def answer_request(self, number: int, line: bytes, topic: str) -> bytes:
        """The answer to a request, on a thread of the worker's; parts are published as they come."""
        return self._work.answer(line, lambda part: self.log_event(topic, [number, part]), topic)

    def end_until(self, session: str = "", number: int = 0) -> str:
        """A handler: requests of that session up to that number end early."""
        if isinstance(session, str) and isinstance(number, int):
            self._work.end_until(session, number)
        return "OK"


def answer(number: int, line: bytes, topic: str) -> bytes:
    """The task of a request of that number: its answer. No function of anyone else's ever travels."""
    return cast(PoolWorker, get_worker()).answer_request(number, line, topic)


# --- the pool ---------------------------------------------------------------------------------------------------------

LOOK_S: Final = 0.5  # between looks at who is there
CONNECT_S: Final = 10.0
ANSWER_S: Final = 30.0  # of the scheduler, until it counts as gone
_AGAIN_S: Final = 1.0
_STOP_LOOK_S: Final = 0.1
_CLOSE_S: Final = 1.5
_END_S: Final = 4.0  # for all of it: a signal ends a command within 5 s


@dataclass(slots=True)
class _Sent:
    """A request on its way."""

    board: str
    address: str
    future: Future
    waiting: asyncio.Task[None]


class _Client(Client):  # type: ignore[misc]  # Dask has no types
    """A client that ends when it loses its scheduler, instead of reconnecting with stale state.

    Dask's own connects again by itself, without its subscriptions and without what it was about to send.
    """

    async def _reconnect(self) -> None:
        for state in self.futures.values():
            state.cancel()
        await self._close()


class DaskPool:
    """Implements `Pool`. Reconnects to a lost scheduler until closed."""

    def __init__(
        self,
        address: str,
        certificates: Certificates,
        *,
        connect_s: float = CONNECT_S,
        stop: threading.Event | None = None,
    ) -> None:
        """Raises WattridgeError if no scheduler answers within so long, it is not of this pool, or `stop` is set."""
        settle()
        self._address, self._security = address, security_of(certificates)
        self._connect_s = connect_s
        self._heard: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        self._mutex = threading.Lock()
        self._boards: dict[str, PoolBoard] = {}
        # Of the thread alone from here on.
        self._name = f"wattridge-{secrets.token_hex(8)}"
        self._client: Client | None = None
        self._addresses: dict[str, str] = {}  # of boards' workers
        self._known: dict[str, str] = {}  # addresses -> boards' keys; empty for a worker that is none of ours
        self._sent: dict[int, _Sent] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._hidden: dict[str, str] = {}  # addresses whose board, by its key, is offered by a later worker
        self._missing: set[str] = set()  # addresses that the last look did not find any more
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._ready = threading.Event()
        self._failed: WattridgeError | None = None
        self._thread = threading.Thread(target=self._run, name="pool", daemon=True)
        self._thread.start()
        while not self._ready.wait(_STOP_LOOK_S):
            if stop is not None and stop.is_set():
                self.close()
                raise WattridgeError("nobody waits for the pool any more", address)
        if self._failed is not None:
            self.close()
            raise self._failed

    # --- the seam -----------------------------------------------------------------------------------------------------

    def boards(self) -> tuple[PoolBoard, ...]:
        with self._mutex:
            return tuple(self._boards.values())

    def send(self, board: str, number: int, line: bytes) -> None:
        self._call(self._submit, board, number, line)

    def cancel(self, number: int) -> None:
        self._call(self._cancel, number)

    def end_until(self, session: str, number: int) -> None:
        self._call(self._begin, self._broadcast({"op": END_UNTIL, "session": session, "number": number}))

    def heard(self, timeout_s: float) -> Heard | None:
        try:
            return self._heard.get(timeout=timeout_s) if timeout_s > 0 else self._heard.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        self._call(self._closing.set)
        self._thread.join(_END_S)  # what Dask waits for may be a name server that does not answer

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _call(self, function: Any, *arguments: Any) -> None:
        with suppress(RuntimeError):  # it is closed
            self._loop.call_soon_threadsafe(function, *arguments)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(lambda *_: None)  # Dask leaves tasks behind whose failure is heard elsewhere
        try:
            self._loop.run_until_complete(self._live())
            for task in (left := [item for item in asyncio.all_tasks(self._loop) if not item.done()]):
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left, timeout=_CLOSE_S))
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()
            self._ready.set()

    async def _live(self) -> None:
        first = True
        while not self._closing.is_set():
            try:
                self._client = await self._connected()
                self._client.subscribe_topic(self._name, self._take_part)
                await asyncio.wait_for(self._look(), ANSWER_S)
                if first:
                    self._ready.set()
                else:
                    self._heard.put(Remark("the scheduler of the pool is there again"))
                first = False
                await self._watch()
            except Exception as error:  # noqa: BLE001 - Dask raises of every kind where a scheduler is lost
                if first:
                    self._failed = self._unreachable(error)
                    break
            if not self._closing.is_set() and self._client is not None:
                self._heard.put(Remark("the scheduler of the pool is lost; it is tried again"))
            await self._leave()
            await self._pause(_AGAIN_S)
        await self._leave()
        self._ready.set()

    async def _connected(self) -> Client:
        client = _Client(
            self._address,
            security=self._security,
            asynchronous=True,
            set_as_default=False,
            timeout=self._connect_s,
            heartbeat_interval="5s",
            name="wattridge",
        )
        try:
            return await asyncio.wait_for(self._unless_closed(_awaited(client)), 2 * self._connect_s)
        except BaseException:
            await _ended(client)
            raise

    async def _unless_closed(self, connecting: Coroutine[Any, Any, Client]) -> Client:
        """The client once it is connected. Raises where the pool is closed before, and as `connecting` does."""
        tasks = asyncio.ensure_future(connecting), asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not tasks[0].done():
                raise ConnectionError("the pool was closed")
            return tasks[0].result()
        finally:
            for task in tasks:
                task.cancel()

    def _unreachable(self, error: BaseException) -> WattridgeError:
        message = shortened(str(error) or type(error).__name__, 160)
        remedy = "start it with `wattridge pool scheduler`, with the certificates of this pool on both machines"
        return WattridgeError(f"the scheduler of the pool cannot be reached: {message}", self._address, remedy)

    async def _watch(self) -> None:
        """Look who is there until the pool is closed. Raises where the scheduler is lost."""
        while not await self._pause(LOOK_S):
            await asyncio.wait_for(self._look(), ANSWER_S)

    async def _pause(self, seconds: float) -> bool:
        """Wait for so long; True if the pool is closed meanwhile."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
        return self._closing.is_set()

    async def _leave(self) -> None:
        """Let go of the scheduler; nothing that was sent is answered any more."""
        client, self._client = self._client, None
        for number in list(self._sent):
            self._unanswered(number, Failure.BROKEN, "the scheduler was lost")
        for key in list(self._addresses):
            self._left(key, "the scheduler was lost")
        self._known.clear()
        self._hidden.clear()
        self._missing.clear()
        if client is not None:
            await _ended(client)

    # --- boards -------------------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Who is there now. Raises where the scheduler does not answer."""
        assert self._client is not None, "it is connected"
        if self._client.status != "running":
            raise ConnectionError("the connection was lost")
        here = set(await self._client.scheduler.ncores())
        gone = self._known.keys() - here
        for address in gone & self._missing:  # requests that its death fails have been heard of by now
            self._forget_worker(address)
        self._missing = gone - self._missing
        if here - self._known.keys():
            identity = await self._client.scheduler.identity(n_workers=-1)
            for address, worker in identity["workers"].items():
                if address not in self._known:
                    self._meet(address, worker)

    def _forget_worker(self, address: str) -> None:
        key = self._known.pop(address)
        for number in [number for number, sent in self._sent.items() if sent.address == address]:
            self._unanswered(number, Failure.BROKEN, "its worker left")
        if key and self._addresses.get(key) == address:
            self._left(key, "its worker left")
            for hidden in [each for each, hid in self._hidden.items() if hid == key]:  # it may offer the same board yet
                self._hidden.pop(hidden)
                self._known.pop(hidden, None)  # and is met again at the next look
        self._hidden.pop(address, None)

    def _meet(self, address: str, worker: dict[str, Any]) -> None:
        """A worker that was not known: a board joins if it has one."""
        self._known[address] = ""
        announced = worker.get(ANNOUNCED)
        if not isinstance(announced, str):
            return
        try:
            board = parse_board(announced.encode())
        except (Garbled, WattridgeError) as error:
            self._heard.put(Remark(f"a worker at {shortened(address)} is left out: {error}"))
            return
        before = self._addresses.get(board.key)
        if before is not None:  # its worker was started again, and the scheduler has not noticed yet
            self._forget_worker(before)
            self._known[before], self._hidden[before] = "", board.key
        self._known[address] = board.key
        self._addresses[board.key] = address
        with self._mutex:
            self._boards[board.key] = board
        self._heard.put(Came(board))

    def _left(self, key: str, why: str) -> None:
        del self._addresses[key]
        with self._mutex:
            self._boards.pop(key, None)
        self._heard.put(Left(key, why))

    # --- requests -----------------------------------------------------------------------------------------------------

    def _submit(self, board: str, number: int, line: bytes) -> None:
        address = self._addresses.get(board)
        if address is None or self._client is None:
            self._heard.put(Unanswered(number, board, Failure.BROKEN, "its worker left"))
            return
        try:
            future = self._client.submit(
                answer,
                number,
                line,
                self._name,
                key=f"{self._name}-{number}",
                workers=[address],
                allow_other_workers=False,
                resources={GPU_RESOURCE: 1},
                pure=False,
                retries=0,
            )
        except Exception as error:  # noqa: BLE001 - the connection was lost just now, in one of many ways
            self._heard.put(Unanswered(number, board, Failure.BROKEN, shortened(str(error))))
            return
        self._sent[number] = _Sent(board, address, future, self._loop.create_task(self._wait(number, future)))

    async def _wait(self, number: int, future: Future) -> None:
        try:
            line = await future
        except KilledWorker:
            self._unanswered(number, Failure.LOST, "its worker died")
        except asyncio.CancelledError:
            self._unanswered(number, Failure.BROKEN, "the scheduler was lost")
        except Exception as error:  # noqa: BLE001 - Dask has many for what was lost on the way
            if future.status != "error":
                self._unanswered(number, Failure.BROKEN, "the scheduler was lost")
                return
            # the worker itself raised it, which it never should: its board takes no part
            what = shortened(f"{type(error).__name__}: {error}", 300)
            self._answered(number, error_line(number, WattridgeError(f"its worker failed: {what}")))
        else:
            self._answered(number, line if isinstance(line, bytes) else b"")

    def _answered(self, number: int, line: bytes) -> None:
        sent = self._sent.pop(number, None)
        if sent is not None:
            self._heard.put(Said(number, sent.board, line))

    def _unanswered(self, number: int, how: Failure, why: str) -> None:
        sent = self._sent.pop(number, None)
        if sent is not None:
            self._heard.put(Unanswered(number, sent.board, how, why))
            self._release(sent)

    def _cancel(self, number: int) -> None:
        sent = self._sent.pop(number, None)
        if sent is not None:
            self._release(sent)

    def _release(self, sent: _Sent) -> None:
        if not sent.waiting.done():
            sent.waiting.cancel()
            self._begin(_cancelled(sent.future))

    def _take_part(self, event: Any) -> None:
        """A part of an answer that a worker published."""
        with suppress(TypeError, ValueError):
            _, (number, line) = event
            sent = self._sent.get(number)
            if sent is not None and isinstance(line, bytes):
                self._heard.put(Said(number, sent.board, line))

    async def _broadcast(self, message: dict[str, Any]) -> None:
        """To all workers."""
        workers = list(self._addresses.values())
        if self._client is not None and workers:
            with suppress(OSError, asyncio.TimeoutError):
                await self._client.scheduler.broadcast(msg=message, workers=workers, on_error="ignore")

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _awaited(client: Client) -> Client:
    return await client


async def _cancelled(future: Future) -> None:
    with suppress(Exception):
        await future.cancel()


async def _ended(client: Client) -> None:
    with suppress(Exception):
        await asyncio.wait_for(client.close(), _CLOSE_S)
