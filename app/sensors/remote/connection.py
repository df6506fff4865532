"""`Connection`: one ssh process, at the other end of which a Wattridge reads one board and sends what it reads.

How far another machine's clock is ahead of this one's, from questions and answers, with its error.

An answer that was stamped `remote` between the question at `asked` and its arrival at `answered` puts the offset,
remote - local, into the interval from remote - answered to remote - asked, whichever way the delay is shared out: its
middle is in error by at most half the round trip [Mills1991, 'Internet time synchronization: the Network Time
Protocol', IEEE Trans. Communications 39(10), section III]. The shortest round trip of the last minute is the best
answer; clocks drift apart by up to 100 ppm meanwhile.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Final

from ...base.conversation import Conversation
from ...base.text import one_line, shortened
from ..channel import PowerSample, Reading
from ..gpu import GpuLost, SensorError
from .address import Address, install_command
from .messages import (
    LONGEST_LINE,
    Garbled,
    Hello,
    line_of,
    parse_error,
    parse_hello,
    parse_line,
    parse_reading,
    parse_samples,
    sensor_error,
)

_KEPT_NS: Final = 60_000_000_000
_DRIFT: Final = 100e-6  # of two quartz clocks, at most
_SLEW: Final = 1e-3  # how fast the offset in force follows: stamps keep their order, and 20 ms apart stay 20 ms apart


@dataclass(frozen=True, slots=True)
class Answer:
    """One question and its answer, ns: when it was asked and answered here, and the time there in between."""

    asked_ns: int
    remote_ns: int
    answered_ns: int

    @property
    def offset_ns(self) -> float:
        return self.remote_ns - (self.asked_ns + self.answered_ns) / 2

    def error_ns(self, now_ns: int) -> float:
        """Half the round trip, and what the clocks may have drifted apart since."""
        return (self.answered_ns - self.asked_ns) / 2 + _DRIFT * max(0, now_ns - self.answered_ns)


class ClockOffset:
    """The offset in force, and its error. Not thread-safe: one thread feeds and asks."""

    def __init__(self) -> None:
        self._answers: deque[Answer] = deque()
        self._offset_ns = 0.0
        self._since_ns: int | None = None  # when the offset in force was last moved

    def add(self, answer: Answer) -> None:
        """Raises ValueError for an answer that came before its question."""
        if answer.answered_ns < answer.asked_ns:
            raise ValueError("an answer before its question")
        self._answers.append(answer)
        while self._answers[0].answered_ns < answer.answered_ns - _KEPT_NS:
            self._answers.popleft()
        best = min(self._answers, key=lambda each: each.error_ns(answer.answered_ns))
        self._follow(best, answer.answered_ns)

    def _follow(self, best: Answer, now_ns: int) -> None:
        """Move the offset in force towards the best answer; at once where it lies outside that answer's bounds."""
        change = best.offset_ns - self._offset_ns
        if self._since_ns is None or abs(change) > best.error_ns(now_ns):
            self._offset_ns = best.offset_ns
        else:
            most = _SLEW * max(0, now_ns - self._since_ns)
            self._offset_ns += max(-most, min(most, change))
        self._since_ns = now_ns

    @property
    def known(self) -> bool:
        return self._since_ns is not None

    @property
    def offset_ns(self) -> float:
        """What the other clock is ahead by; 0 while nothing is known."""
        return self._offset_ns

    def error_ns(self, now_ns: int) -> float:
        """The most by which the offset in force can be wrong; inf while nothing is known."""
        if not self._answers:
            return float("inf")
        best = min(self._answers, key=lambda each: each.error_ns(now_ns))
        return best.error_ns(now_ns) + abs(best.offset_ns - self._offset_ns)

    def local_ns(self, remote_ns: int) -> int:
        """An instant of the other clock on this one."""
        return remote_ns - round(self._offset_ns)


BEAT_S: Final = 1.0  # how often it asks, if only for the time there
SILENCE_S: Final = 8.0  # without a line for so long it is broken; a board that is read slowly answers questions
_FIRST_ASKS: Final = 8  # for the time there, before the first reading is handed out
_START_S: Final = 60.0  # to the greeting: jump hosts, a slow disk there, a password typed in
_KEPT: Final = 4096  # readings, and samples: 80 s at 50 a second
_END_S: Final = 3.0
_LOOK_S: Final = 0.1


class Connection:
    """Open from the first greeting to the first fault; it is not opened twice. Thread-safe.

    Raises SensorError where ssh, or Wattridge there, does not answer; GpuLost from everything after its end.
    """

    def __init__(self, address: Address, command: Sequence[str], give_up: threading.Event | None = None) -> None:
        """`command` is started, and speaks for the board at `address`. Opening ends when `give_up` is set."""
        self.machine = address.machine
        self._address = address
        self._fault = ""  # why it has ended
        self._misspoke = False  # that is something which the other end sent
        self._ended = threading.Event()
        self._changed = threading.Condition()
        self._offset = ClockOffset()
        self._readings: deque[Reading] = deque(maxlen=_KEPT)
        self._samples: deque[PowerSample] = deque(maxlen=_KEPT)
        self._trouble = ""
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any] | None]] = {}
        self._asked_ns: dict[int, int] = {}
        self._number = 0
        self._asking = threading.Lock()
        self._heard_s = time.monotonic()
        self._hello: Hello | None = None
        self._order: list[int] = []
        try:
            with self._changed:  # what it says at once is heard once it stands here
                self._process = Conversation(command, _line, self._listen, interruptible=True)
        except OSError as error:
            what = f"ssh does not start: {error.strerror or error}"
            raise SensorError(what, self.machine, "install an OpenSSH client") from None
        self._beating = threading.Thread(target=self._beat, name=f"heartbeat of {self.machine}", daemon=True)
        self._beating.start()
        try:
            self.hello = self._greeted(give_up or threading.Event())
            for _ in range(_FIRST_ASKS):
                self.ask("ping")
        except SensorError:
            self.close()
            raise

    # --- asking -------------------------------------------------------------------------------------------------------

    def ask(self, verb: str, timeout_s: float = SILENCE_S, **fields: Any) -> dict[str, Any]:
        """One question and its answer. Raises what was answered as the error of a sensor; GpuLost without an answer."""
        answer = self.answer(verb, timeout_s, **fields)
        if "error" in answer:
            kind, what, remedy = parse_error(answer["error"])
            raise sensor_error(kind, what, self.machine, remedy)
        answered = answer.get("answer")
        return answered if isinstance(answered, dict) else {}

    def answer(self, verb: str, timeout_s: float = SILENCE_S, **fields: Any) -> dict[str, Any]:
        """As `ask`, with an error as it was answered. Raises GpuLost."""
        inbox = self.tell(verb, **fields)
        try:
            answer = inbox.get(timeout=timeout_s)
        except queue.Empty:
            self._end(f"no answer for {timeout_s:.0f} s")
            answer = None
        if answer is None:
            raise self._lost()
        return answer

    def tell(self, verb: str, **fields: Any) -> queue.SimpleQueue[dict[str, Any] | None]:
        """One question, without waiting: where its answer arrives, or None at the end."""
        inbox: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        with self._asking:
            self._number += 1
            self._answers[self._number] = inbox
            line = line_of({"id": self._number, "do": verb, **fields})
            self._asked_ns[self._number] = time.monotonic_ns()
            if not self._process.write(line):
                self._end("the connection is closed")
        if self._ended.is_set():
            inbox.put(None)
        return inbox

    # --- what was read ------------------------------------------------------------------------------------------------

    @property
    def process(self) -> int:
        """Of ssh."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._ended.is_set()

    @property
    def trouble(self) -> str:
        """Why the board cannot be read just now, as it is said there; empty while it can."""
        return self._trouble

    def readings(self, since_ns: int) -> list[Reading]:
        """Readings newer than `since_ns` of this machine's clock, oldest first. Raises GpuLost."""
        with self._changed:
            if not self._readings and self._ended.is_set():
                raise self._lost()
            result = _newer(self._readings, since_ns)
        if not result and self._ended.is_set():
            raise self._lost()
        return result

    def samples(self, since_ns: int) -> list[PowerSample]:
        """Samples of the driver's buffer newer than `since_ns`, oldest first."""
        with self._changed:
            return _newer(self._samples, since_ns)

    def reading_after(self, since_ns: int, timeout_s: float) -> Reading:
        """The first reading that is not older than `since_ns`, which is waited for. Raises GpuLost."""
        until = time.monotonic() + timeout_s
        with self._changed:
            while not (self._readings and self._readings[-1].time_ns >= since_ns):
                left_s = until - time.monotonic()
                if self._ended.is_set() or left_s <= 0:
                    raise self._lost()
                self._changed.wait(left_s)
            return next(reading for reading in self._readings if reading.time_ns >= since_ns)

    def offset(self) -> tuple[float, float]:
        """(what the clock there is ahead by, the most that this is wrong by), in s."""
        with self._changed:
            return self._offset.offset_ns / 1e9, self._offset.error_ns(time.monotonic_ns()) / 1e9

    def close(self) -> None:
        """End it: what was set there is put back there. Safe to call twice."""
        self._end("closed")
        self._process.end(_END_S)
        if self._beating is not threading.current_thread():
            self._beating.join(_END_S)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _greeted(self, give_up: threading.Event) -> Hello:
        until = time.monotonic() + _START_S
        with self._changed:
            while self._hello is None and not self._ended.is_set() and time.monotonic() < until:
                if give_up.is_set():
                    raise SensorError("given up", self.machine, "open it again")
                self._changed.wait(_LOOK_S)
            hello = self._hello
        if hello is None:
            self._end(f"no greeting within {_START_S:.0f} s")
            raise self._no_greeting()
        return hello

    def _no_greeting(self) -> SensorError:
        """Why there was none, from what ssh said and how it ended."""
        lines = self._process.last_words(_END_S)[-20:]
        remarks = [text for line in lines if (text := shortened(one_line(line), 300))]
        status = self._process.status
        # 127 is the shell's; `exec` of some shells says it in words and ends with 126 or 1
        if status in (126, 127) or any("wattridge: not found" in line for line in remarks):
            remedy = f"install it there: {install_command(self._address)}"
            return SensorError("Wattridge is not installed there", self.machine, remedy)
        ours = next((line for line in reversed(remarks) if line.startswith("wattridge: ")), None)
        if ours is not None:
            return SensorError(
                ours.removeprefix("wattridge: "), self.machine, f"see: wattridge gpus, on {self.machine}"
            )
        what = remarks[-1] if remarks and not self._misspoke else self._fault
        return SensorError(f"no connection: {what}", self.machine, f"try: {self._address.login}")

    def _lost(self) -> GpuLost:
        what = self._fault if self._ended.is_set() else "it does not answer"
        return GpuLost(f"the connection is broken: {what}", self.machine, "it is tried again every few seconds")

    def _end(self, why: str) -> None:
        """Nothing more comes; whoever waits gets the reason. The first reason stands."""
        with self._changed:
            if not self._ended.is_set():
                self._fault = why
                self._ended.set()
            self._changed.notify_all()
        self._process.terminate()
        for inbox in list(self._answers.values()):
            inbox.put(None)

    def _beat(self) -> None:
        """Ask for the time there, and notice where nothing comes any more."""
        while not self._ended.wait(BEAT_S):
            if self._hello is None:
                continue
            if time.monotonic() - self._heard_s > SILENCE_S:
                self._end(f"nothing came for {SILENCE_S:.0f} s")
                return
            with suppress(SensorError):
                self.ask("ping", SILENCE_S)

    def _listen(self, line: bytes | None) -> None:
        if line is None:
            self._end("the other end has ended")
        if line is None or self._misspoke:
            return
        self._heard_s = time.monotonic()
        try:
            self._take(parse_line(line))
        except SensorError as error:
            self._misspoke = True
            self._end(str(error))

    def _take(self, message: dict[str, Any]) -> None:
        """One line from the other end. Raises Garbled."""
        now_ns = time.monotonic_ns()
        with self._changed:
            if self._hello is None:
                self._hello = parse_hello(message, self.machine)
                self._order = [place for place, channel in enumerate(self._hello.channels) if channel.available]
            elif "reading" in message:
                self._trouble = ""
                reading = parse_reading(message["reading"], self._order, len(self._hello.channels))
                if self._offset.known:
                    self._readings.append(Reading(self._here(reading.time_ns, now_ns, self._readings), reading.values))
            elif "samples" in message:
                for sample in parse_samples(message["samples"]):
                    if self._offset.known:
                        here_ns = self._here(sample.time_ns, now_ns, self._samples)
                        self._samples.append(PowerSample(here_ns, sample.power_w))
            elif "trouble" in message:
                self._trouble = shortened(str(message["trouble"]), 300)
            elif "id" in message:
                self._take_answer(message, now_ns)
            else:
                raise Garbled("not a line of ours")
            self._changed.notify_all()

    def _take_answer(self, message: dict[str, Any], now_ns: int) -> None:
        number, at_ns = message["id"], message.get("at_ns")
        inbox = self._answers.pop(number, None) if isinstance(number, int) else None
        if inbox is None or not isinstance(at_ns, int) or isinstance(at_ns, bool) or abs(at_ns) >= 1 << 62:
            raise Garbled("an answer to no question")
        self._offset.add(Answer(self._asked_ns.pop(number), at_ns, now_ns))
        inbox.put(message)

    def _here(self, remote_ns: int, now_ns: int, kept: deque[Any]) -> int:
        """An instant there on this clock: not in the future, and after the one before."""
        here_ns = min(self._offset.local_ns(remote_ns), now_ns)
        return max(here_ns, kept[-1].time_ns + 1) if kept else here_ns


def _line(stream: IO[bytes]) -> bytes | None:
    return stream.readline(LONGEST_LINE) or None


def _newer(kept: deque[Any], since_ns: int) -> list[Any]:
    """Those that are newer, oldest first: mostly the last few of many."""
    newer = []
    for entry in reversed(kept):
        if entry.time_ns <= since_ns:
            break
        newer.append(entry)
    return newer[::-1]
