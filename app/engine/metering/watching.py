"""`Watch`: one sampler per board for all its users, from any thread, nested or side by side.

The sampler runs on for a second after the last release: energy is attributed by time stamps after the fact, and the
driver's buffer publishes its samples about 0.1 s late.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from ...base.errors import InputError
from ...sensors.channel import POWER_SAMPLES
from ...sensors.gpu import Gpu, SensorError
from ...sensors.select import open_gpu
from ...sensors.throttling import Mark, mark, shares_between
from ...sensors.trace.live_board import LiveBoard
from ...sensors.trace.sampler import SensorEvent
from .characterisation.store import known_characterisation
from .power_source import PowerSensor, find_sensor
from .thermal import BoardHeat, known_heat

INTERVAL_S: Final = 0.02
LINGER_S: Final = 1.0
BACKLOG_S: Final = 0.3  # of the driver's buffer, so that its samples cover the first instant
_LOOK_S: Final = 0.005
_BESIDE: Final = 0.3  # of a span: for so long beside it marks may lie that give its shares
_FIRST_READING_S: Final = 2.0  # how long to wait for it, on the wall

Opener = Callable[[str | None], Gpu]


class Watch(LiveBoard):
    """A board that is sampled for all its users. Made by `watch`, given back by `release`."""

    def __init__(self, gpu: Gpu, *, owned: bool) -> None:
        self.events: deque[SensorEvent] = deque(maxlen=100)
        self._marks: deque[Mark] = deque(maxlen=4096)
        self.buffered = False  # the driver keeps a buffer of power samples
        with suppress(SensorError):
            gpu.power_samples(gpu.clock.now_ns())
            self.buffered = True
        self.characterisation = None
        with suppress(OSError):  # measuring needs no data folder
            self.characterisation = known_characterisation(gpu.info)
        self._owned = owned
        self._users = 0
        self._linger: threading.Timer | None = None
        self._ended = threading.Event()
        super().__init__(gpu, interval_s=INTERVAL_S, allow_for=1.0, on_event=self.events.append, backlog_s=BACKLOG_S)

    @property
    def interval_s(self) -> float:
        """Seconds between two readings, on the board's clock."""
        return self.sampler.interval_s

    def mark(self) -> None:
        """Note the counters of throttled time: at the begin of what `read_span` will be asked for, and at its end."""
        self._marks.append(mark(self.gpu))

    def throttled(self, start_ns: int, end_ns: int) -> dict[str, float]:
        """Return by reason the share of a span for which it held the clock back.

        Parameters
        ----------
        start_ns, end_ns : int
            The span, ns on the board's clock.

        Returns
        -------
        dict
            Shares, 0 to 1; empty where no marks lie close around the span.
        """
        marks = tuple(self._marks)
        before = next((noted for noted in reversed(marks) if noted[0] <= start_ns), None)
        after = next((noted for noted in marks if noted[0] >= end_ns), None)
        if before is None or after is None or after[0] - before[0] > (1 + _BESIDE) * (end_ns - start_ns):
            return {}
        return shares_between(before, after)

    def heat(self) -> BoardHeat:
        """Return how the board's power follows its temperature, as far as sessions have shown by now."""
        try:
            return known_heat(self.gpu.info)
        except (OSError, InputError):  # measuring needs no data folder
            return BoardHeat()

    def sensor(self) -> PowerSensor | None:
        """Return the power readings to measure with, as far as is known by now; None if the board reports none."""
        return find_sensor(self.gpu, self.characterisation, buffered=POWER_SAMPLES.name in self.trace.names)

    @property
    def ended(self) -> bool:
        """Whether the trace will get no more readings."""
        return self._ended.is_set()

    def wait_until(self, condition: Callable[[], bool], patience_s: float) -> bool:
        """Wait until a condition holds.

        Parameters
        ----------
        condition : callable
            Takes nothing and returns whether the condition holds; called every 5 ms or so.
        patience_s : float
            How long to wait at most, s on the board's clock.

        Returns
        -------
        bool
            Whether the condition holds; False after the patience, or once no more readings come.
        """
        deadline_ns = self.gpu.clock.now_ns() + round(patience_s * 1e9)
        while not condition():
            if self.ended or self.gpu.clock.now_ns() >= deadline_ns:
                return condition()
            self.gpu.clock.wait(_LOOK_S)
        return True

    def release(self) -> None:
        """End one use of the watch; to be called once for each `watch`."""
        with _lock:
            self._users -= 1
            if self._users == 0:
                self._linger = threading.Timer(LINGER_S / min(1.0, self.gpu.clock.speed), self._retire)
                self._linger.name = "lingering sampler"
                self._linger.daemon = True
                self._linger.start()

    # --- called with the lock held ----------------------------------------------------------------------------------

    def _take(self) -> None:
        self._users += 1
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None

    # --- on the timer's thread --------------------------------------------------------------------------------------

    def _retire(self) -> None:
        with _lock:
            if self._users or self._linger is not threading.current_thread():
                return  # it is watched again
            for key in [key for key, other in _watches.items() if other is self]:
                del _watches[key]
        self.stop()
        self.sampler.join()
        self._ended.set()
        if self._owned:
            self.gpu.close()


def mark_all(watches: Iterable[Watch]) -> None:
    """Note the counters of throttled time of several boards, as `Watch.mark` does.

    Parameters
    ----------
    watches : iterable of Watch
        The watched boards.
    """
    for item in watches:
        item.mark()


_lock = threading.Lock()
_watches: dict[tuple[str, str], Watch] = {}


def watch(board: Gpu | str | int | None, opener: Opener | None = None) -> Watch:
    """Watch a board, to be given back with `release`.

    Parameters
    ----------
    board : Gpu, str, int or None
        An open board, or the name that `--gpu` would take. A board that is named is opened once for all its users,
        without its voltage, and closed after the last of them.
    opener : callable or None, optional
        What opens a board by its name; None for `open_gpu`.

    Returns
    -------
    Watch
        The watched board, which has its first reading if that came within 2 s.

    Raises
    ------
    InputError
        Where the name is none, there is no such board, or its clock runs as fast as can be computed.
    SensorError
        Where the board does not open.
    """
    named = board is None or isinstance(board, str | int)
    key = ("name", "" if board is None else str(board).strip()) if named else ("object", str(id(board)))
    with _lock:
        watched = _watches.get(key)
        if watched is None:
            watched = _watches[key] = _begin(board, opener or partial(open_gpu, voltage=False))
        watched._take()
    begun = time.monotonic()
    while not watched.trace.last_ns and time.monotonic() - begun < _FIRST_READING_S:
        time.sleep(0.001)
    return watched


def _begin(board: Gpu | str | int | None, opener: Opener) -> Watch:
    owned = board is None or isinstance(board, str | int)
    if board is None or isinstance(board, str | int):
        gpu = opener(None if board is None else str(board).strip())
    elif hasattr(board, "clock"):
        gpu = board
    else:
        what = f"{board!r} of type {type(board).__name__} is no GPU"
        raise InputError(what, "gpu", "give an index, a UUID, simulated:NAME, recorded:FILE, or an open one")
    if gpu.clock.speed == float("inf"):
        raise InputError(
            "this board's clock runs as fast as it can be computed, and code takes real time",
            gpu.info.label,
            "open it with speed 1",
        )
    if owned and gpu.info.live:
        for other in _watches.values():
            if other._owned and other.gpu.info.uuid == gpu.info.uuid:  # named in another way
                gpu.close()
                return other
    return Watch(gpu, owned=owned)
