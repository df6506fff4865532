"""Sends requests to a service and times them, in a process of its own: threads of the window's would disturb it.

`python -m ...load_generator JOB`, a JSON object as `GeneratedLoad` writes it. Once every REPORT_S one line of JSON
goes to standard output: what ended since the last one. All times are on the host's monotonic clock, which all
processes of the machine share. It runs until it is ended. When a request left and when its answer came are stamps of
`StampedSocket`: what this process, aiohttp's and JSON's parsing and other requests before it add, is not latency.

Open loop: arrivals are drawn in advance and requests leave at their times, whatever became of those before; where one
leaves late, its latency counts from when it was due all the same, so that a stall is seen. What a request takes from
its beginning here until it leaves is learned, and it is begun so much earlier. Closed loop: so many requests are under
way, begun one after another over `ramp_s`, and each sent when another has ended.

Sockets that note when a request left and when its answer came, whenever this process gets round to reading it.

Linux says when data came in from the network, the last of it if several pieces are read at once. It begins to a
moment after the first socket asks for that; until then, and elsewhere, it is when data was read. Whom a socket tells is
the context's affair: the last one that sent something over it hears of what comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import queue
import random
import select
import selectors
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol

import aiohttp

from ...base.installation import how_to_add
from ...base.text import json_or_none

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_SO_TIMESTAMPNS: Final = 35  # of <asm-generic/socket.h>, which Python has no name for; also the type of its messages
_STAMP: Final = struct.Struct("@ll")  # struct timespec, of the realtime clock
_ROOM: Final = 64  # bytes for such a message


class Exchange(Protocol):
    """A request and its answer. Times in ns on the monotonic clock; 0: not yet."""

    sent_ns: int  # when the last of the request was handed to the system
    came_ns: int  # when the last of the answer came
    ended: bool  # nothing more is to be noted


EXCHANGE: ContextVar[Exchange] = ContextVar("exchange")


class StampedSocket(socket.socket):
    """Tells the `EXCHANGE` in whose context it sends."""

    _exchange: Exchange | None = None

    def send(self, data: ReadableBuffer, flags: int = 0, /) -> int:
        self._note_sent()
        return super().send(data, flags)

    def sendmsg(self, *arguments: Any) -> int:
        self._note_sent()
        return super().sendmsg(*arguments)

    def _note_sent(self) -> None:
        exchange = EXCHANGE.get(None)
        if exchange is not None and not exchange.ended:  # a callback of this socket's may be of an earlier one
            self._exchange = exchange
            exchange.sent_ns = time.monotonic_ns()

    if sys.platform == "linux":

        def recv(self, size: int, flags: int = 0, /) -> bytes:
            data, messages, _, _ = super().recvmsg(size, _ROOM, flags)
            self._note_came(len(data), messages)
            return data

        def recv_into(self, buffer: WriteableBuffer, size: int = 0, flags: int = 0, /) -> int:
            room = memoryview(buffer)[: size or None]
            count, messages, _, _ = super().recvmsg_into([room], _ROOM, flags)
            self._note_came(count, messages)
            return count

    else:

        def recv(self, size: int, flags: int = 0, /) -> bytes:
            data = super().recv(size, flags)
            self._note_came(len(data), [])
            return data

        def recv_into(self, buffer: WriteableBuffer, size: int = 0, flags: int = 0, /) -> int:
            count = super().recv_into(buffer, size, flags)
            self._note_came(count, [])
            return count

    def _note_came(self, count: int, messages: list[tuple[int, int, bytes]]) -> None:
        if self._exchange is None or not count:  # the end of the connection is no answer
            return
        now_ns = came_ns = time.monotonic_ns()
        for level, kind, stamp in messages:
            if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(stamp) == _STAMP.size:
                seconds, ns = _STAMP.unpack(stamp)
                came_ns = now_ns - (time.time_ns() - (seconds * 1_000_000_000 + ns))
        # where the realtime clock was set meanwhile: not before what came before, nor in the future
        earliest_ns = self._exchange.came_ns or self._exchange.sent_ns
        self._exchange.came_ns = min(now_ns, max(came_ns, earliest_ns))


def stamped_socket(address: tuple[Any, ...]) -> StampedSocket:
    """A socket for an address of `getaddrinfo`."""
    made = StampedSocket(*address[:3])
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a system that does not have it: when it is read
            made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return made


REPORT_S: Final = 0.1
PAUSE_S: Final = 0.1  # after a request that failed, before the next takes its place in a closed loop
MOST_LINE: Final = 1 << 20  # bytes of one event of a stream
MOST_ANSWER: Final = 1 << 24  # bytes of an answer that is not streamed
MOST_UNDER_WAY: Final = 8192
MOST_LEAD_NS: Final = 1_000_000  # that a request is begun before it is due
_LEAD_STEP_NS: Final = 2_000  # by which that grows with each that leaves late, and shrinks with each that leaves early
_SPARE_FILES: Final = 64
_TEXT: Final = """the of and to in is it you that he was for on are with as his they at be this from have or by one
had not but what all were when we there can an your which their said if do will each about how up out them then she many
some so these would other into has more her two like him see time could no make than first been its who now"""
_WORDS: Final = _TEXT.split()


class Garbage(Exception):
    """The answer violates the API; the message states how."""


class Prompts:
    """Prompts with the number of tokens that are asked of each: drawn, or from a file, one after another."""

    def __init__(self, job: Mapping[str, Any], rng: random.Random) -> None:
        self._rng = rng
        self._prompt_tokens, self._output_tokens = job["prompt_tokens"], job["output_tokens"]
        self._lines = _lines_of(job["prompts"]) if job.get("prompts") else None
        self._next = 0

    def draw(self) -> tuple[str, int, int]:
        """The prompt, its words, and the tokens of its answer."""
        output_tokens = self._rng.randint(*self._output_tokens)
        if self._lines is None:
            count = self._rng.randint(*self._prompt_tokens)
            return " ".join(self._rng.choices(_WORDS, k=count)), count, output_tokens
        prompt, wanted = self._lines[self._next % len(self._lines)]
        self._next += 1
        return prompt, len(prompt.split()), wanted or output_tokens


class Generator:
    """The requests under way, and what became of those that ended since the last report."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._job = job
        self._rng = random.Random(job["seed"])
        self._prompts = Prompts(job, random.Random(job["seed"] + 1))
        self._url: str = job["url"]
        self._api: str = job["api"]
        self._stream: bool = job["stream"] and self._api != "http"
        key = os.environ.get(job.get("key_from") or "", "")
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self._rows: list[list[float]] = []
        self._lead_ns = 0  # that a request is begun before it is due, so that as many leave early as late
        self._chunks = 0  # of answers, that came since the last report
        self._faults: Counter[str] = Counter()
        self._under_way = 0
        self._idle_since_ns = self._reported_ns = time.monotonic_ns()
        self._idle_ns = 0
        self._tasks: set[asyncio.Task[bool]] = set()
        self._freed = asyncio.Event()
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    async def run(self) -> None:
        """Send requests until this process is ended."""
        threading.Thread(target=self._write, name="reports", daemon=True).start()
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0, socket_factory=stamped_socket)
        timeout = aiohttp.ClientTimeout(total=self._job["timeout_s"])
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as session:
            reports = asyncio.create_task(self._report())
            if self._job.get("concurrency"):
                clients: int = self._job["concurrency"]
                each_s = self._job["ramp_s"] / clients
                await asyncio.gather(reports, *(self._take_turns(session, index * each_s) for index in range(clients)))
            else:
                await asyncio.gather(reports, self._arrive(session))

    async def _arrive(self, session: aiohttp.ClientSession) -> None:
        """Open loop: each at its time of a Poisson process."""
        most = min(MOST_UNDER_WAY, _open_files() - _SPARE_FILES)
        due_ns = time.monotonic_ns()
        while True:
            due_ns += round(self._rng.expovariate(self._job["rate_per_s"]) * 1e9)
            body, words = self._body()  # before it is due
            early_s = (due_ns - self._lead_ns - time.monotonic_ns()) / 1e9
            if early_s > 0:
                await asyncio.sleep(early_s)
            while self._under_way >= most:  # it leaves late, and its latency says so
                self._freed.clear()
                await self._freed.wait()
            task = asyncio.create_task(self._ask(session, due_ns, body, words))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _take_turns(self, session: aiohttp.ClientSession, begin_s: float) -> None:
        """One client of a closed loop: one request after another, the first after that time."""
        await asyncio.sleep(begin_s)
        while True:
            body, words = self._body()
            failed = await self._ask(session, time.monotonic_ns(), body, words)
            if failed:
                await asyncio.sleep(PAUSE_S)

    async def _ask(self, session: aiohttp.ClientSession, due_ns: int, body: bytes | None, words: int) -> bool:
        """One request to its end; whether it failed."""
        if not self._under_way:
            self._idle_ns += time.monotonic_ns() - self._idle_since_ns
        self._under_way += 1
        answer = Answer(words)
        EXCHANGE.set(answer)
        fault = ""
        try:
            async with session.request(
                "GET" if body is None else "POST",
                self._url,
                data=body,
                allow_redirects=False,
            ) as response:
                if not 200 <= response.status < 300:
                    raise Garbage(f"HTTP status {response.status}")
                if self._stream:
                    await self._listen(response, answer)
                else:
                    await self._read(response, answer)
        except Garbage as error:
            fault = str(error)
        except TimeoutError:
            fault = f"no answer within {self._job['timeout_s']:g} s"
        except (aiohttp.ClientConnectorError, ConnectionRefusedError):
            fault = "no connection"
        except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, ConnectionResetError):
            fault = "the connection was cut"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            fault = type(error).__name__
        answer.ended = True
        now_ns = time.monotonic_ns()
        ended_ns = now_ns if fault else answer.last_ns or now_ns  # 0: it had come before it was asked for
        self._under_way -= 1
        self._freed.set()
        if not self._under_way:
            self._idle_since_ns = now_ns
        step_ns = _LEAD_STEP_NS if answer.sent_ns > due_ns else -_LEAD_STEP_NS
        self._lead_ns = min(MOST_LEAD_NS, max(0, self._lead_ns + step_ns))
        if fault:
            self._faults[fault] += 1
        self._rows.append(answer.row(due_ns, ended_ns, bool(fault)))
        return bool(fault)

    def _body(self) -> tuple[bytes | None, int]:
        """The next request's, and the words of its prompt; None: it has none."""
        extra: dict[str, Any] = self._job.get("extra") or {}
        if self._api == "http":
            return (json.dumps(extra).encode() if extra else None), 0
        prompt, words, output_tokens = self._prompts.draw()
        asked = {"messages": [{"role": "user", "content": prompt}]} if self._api == "chat" else {"prompt": prompt}
        named = {"model": self._job["model"]} if self._job.get("model") else {}
        usage = {"stream_options": {"include_usage": True}} if self._stream else {}
        wanted = {"max_tokens": output_tokens, "stream": self._stream}
        return json.dumps({**named, **asked, **wanted, **usage, **extra}).encode(), words

    async def _listen(self, response: aiohttp.ClientResponse, answer: Answer) -> None:
        """Server-sent events to their end."""
        rest = b""
        async for data in response.content.iter_any():
            answer.last_ns = now_ns = answer.came_ns
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > MOST_LINE:
                raise Garbage("an event of the stream is too long")
            for line in lines:
                if line.startswith(b"data:"):
                    self._chunks += answer.hear(line[5:].strip(), now_ns)
        if not answer.complete:
            raise Garbage("the stream ended early" if answer.chunks else "the answer is no stream of events")

    async def _read(self, response: aiohttp.ClientResponse, answer: Answer) -> None:
        """An answer in one piece."""
        body = bytearray()
        answer.last_ns = answer.came_ns  # of its headers, where it has no body
        async for data in response.content.iter_any():
            answer.last_ns = answer.came_ns
            if self._api == "http" and not answer.first_ns:
                answer.first_ns = answer.last_ns
            body += data
            if len(body) > MOST_ANSWER:
                raise Garbage("the answer is too long")
        if self._api != "http":
            answer.take(_json_object(bytes(body)))

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            now_ns = time.monotonic_ns()
            if not self._under_way:
                self._idle_ns += now_ns - self._idle_since_ns
                self._idle_since_ns = now_ns
            report = {
                "from": self._reported_ns,
                "to": now_ns,
                "idle": self._idle_ns,
                "chunks": self._chunks if self._stream else None,
                "rows": self._rows,
                "faults": dict(self._faults.most_common(20)),
            }
            self._reported_ns, self._idle_ns, self._chunks, self._rows = now_ns, 0, 0, []
            self._faults.clear()
            self._lines.put(json.dumps(report, separators=(",", ":")).encode() + b"\n")

    def _write(self) -> None:
        """On a thread: a reader that is late may not hold up the requests."""
        while (line := self._lines.get()) is not None:
            left = memoryview(line)
            try:
                while left:
                    left = left[os.write(1, left) :]
            except OSError:  # nobody listens any more
                os._exit(0)


class Answer:
    """What has come of one answer."""

    def __init__(self, input_tokens: int) -> None:
        self.sent_ns = self.came_ns = self.first_ns = self.last_ns = 0  # stamped by `StampedSocket`
        self.ended = False
        self.input_tokens = input_tokens
        self.output_tokens = -1  # not stated
        self.chunks = 0
        self.complete = False

    def hear(self, data: bytes, now_ns: int) -> int:
        """One event; how many pieces of text it brings. Raises Garbage."""
        if data == b"[DONE]":
            self.complete = True
            return 0
        event = _json_object(data)
        self._note_usage(event)
        tokens = 0
        for choice in _list(event.get("choices")):
            delta = choice.get("delta")
            delta = delta if isinstance(delta, dict) else choice
            tokens += bool(delta.get("content") or delta.get("text") or delta.get("reasoning_content"))
            self.complete = self.complete or bool(choice.get("finish_reason"))
        if tokens and not self.first_ns:
            self.first_ns = now_ns
        self.chunks += tokens
        return tokens

    def take(self, answer: Mapping[str, Any]) -> None:
        """The whole answer. Raises Garbage."""
        if not _list(answer.get("choices")):
            raise Garbage("the answer has no choices")
        self._note_usage(answer)
        self.complete = True

    def _note_usage(self, document: Mapping[str, Any]) -> None:
        usage = document.get("usage")
        if isinstance(usage, dict):
            given, made = usage.get("prompt_tokens"), usage.get("completion_tokens")
            self.input_tokens = given if isinstance(given, int) and 0 <= given < 2**40 else self.input_tokens
            self.output_tokens = made if isinstance(made, int) and 0 <= made < 2**40 else self.output_tokens

    def row(self, due_ns: int, ended_ns: int, failed: bool) -> list[float]:
        """As `GeneratedLoad` reads it."""
        made = self.output_tokens if self.output_tokens >= 0 else self.chunks or -1
        sent_ns = self.sent_ns or ended_ns  # it never left
        return [due_ns, sent_ns, self.first_ns, ended_ns, self.input_tokens, made, self.chunks, int(failed)]


def _json_object(text: bytes) -> dict[str, Any]:
    result = json_or_none(text)
    if not isinstance(result, dict):
        raise Garbage("the answer is no JSON object")
    if "error" in result and "choices" not in result:
        raise Garbage("the answer is an error")
    return result


def _list(value: object) -> Iterator[dict[str, Any]] | list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _lines_of(path: str) -> list[tuple[str, int]]:
    """The prompts of a file, with the tokens that each asks for, 0 if it does not say."""
    results = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            text, wanted = line.strip(), 0
            if text.startswith("{"):
                with contextlib.suppress(ValueError, RecursionError):
                    given = json.loads(text)
                    prompt, tokens = given.get("prompt"), given.get("output_tokens")
                    text = prompt if isinstance(prompt, str) else text
                    wanted = tokens if isinstance(tokens, int) and 0 < tokens <= 1_000_000 else 0
            if text:
                results.append((text, wanted))
    return results


def _open_files() -> int:
    """How many this process may have: as many as the system lets it."""
    try:
        import resource
    except ImportError:  # Windows
        return 2048
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return 1 << 20 if soft == resource.RLIM_INFINITY else int(soft)


def _loop() -> asyncio.AbstractEventLoop:
    """An event loop that wakes in time: epoll waits in whole milliseconds, select on its descriptor in microseconds."""
    if not hasattr(selectors, "EpollSelector"):
        return asyncio.new_event_loop()

    class Precise(selectors.EpollSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is not None and timeout > 0:
                select.select([self.fileno()], [], [], timeout)
                timeout = 0
            return super().select(timeout)

    return asyncio.SelectorEventLoop(Precise())


def main() -> None:
    """Run the job that the command line holds."""
    job = json.loads(sys.argv[1])
    if tuple(map(int, aiohttp.__version__.split(".")[:2])) < (3, 12):  # sockets of one's own
        sys.exit(f"aiohttp {aiohttp.__version__} is too old, 3.12 will do: {how_to_add('service')}")
    # Going through what the imports have made takes 8 ms, in the midst of requests, and through the requests 1 to 6.
    # What was answered leaves no cycles: the collector may wait for what failed.
    gc.freeze()
    gc.set_threshold(10_000)
    loop = _loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(Generator(job).run())


if __name__ == "__main__":
    main()
