"""`RemoteGpu`: a board of another machine, read there and seen here. Its readings are on this machine's clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..channel import PowerSample, Reading
from ..clock import Clock, HostClock
from ..gpu import GpuLost, GpuProcess, NotSupported, SensorError
from ..power_profiles import PowerProfile, PowerProfiles
from .address import Address, can_ask, ssh_command
from .connection import Connection
from .messages import number_or_none, parse_processes

_READ_S: Final = 3.0  # for the next reading
_AGAIN_S: Final = 3.0  # between two tries to connect

Connect = Callable[[Address, threading.Event], Connection]


def connect(address: Address, give_up: threading.Event) -> Connection:
    """Through ssh. It may ask for a password only where it can: on the terminal, or by the desktop's askpass."""
    words = ["serve-board", "--gpu", address.board]
    return Connection(address, ssh_command(address, words, batch=not can_ask()), give_up)


class RemoteGpu:
    """Implements `Gpu` and `StreamsReadings`.

    A break is the loss of the board: it is GpuLost until a new connection answers, which is tried every few seconds on
    a thread of its own. The time of the break stays empty. Raises SensorError when opened.
    """

    def __init__(self, address: Address, connect: Connect = connect, give_up: threading.Event | None = None) -> None:
        """When `give_up` is set, opening ends, and no other connection is tried."""
        self.address = address
        self._give_up = give_up or threading.Event()
        self.clock: Clock = HostClock()
        self._connect = connect
        self._lock = threading.Lock()
        self._connection = connect(address, self._give_up)
        self._hello = self._connection.hello
        self.info = self._hello.info
        self.channels = self._hello.channels
        self._energy = next((i for i, c in enumerate(self.channels) if c.name == "energy_j" and c.available), None)
        self._tried_s = time.monotonic()
        self._failed = ""  # why the last try to connect again failed
        self._reconnecting: threading.Thread | None = None
        self._interval_s = 0.02
        self._closed = False

    # --- the Gpu seam -------------------------------------------------------------------------------------------------

    def read(self) -> Reading:
        """All channels at the first instant from now on that was read there: it is waited for. Raises GpuLost."""
        return self._live().reading_after(self.clock.now_ns(), _READ_S)

    def readings(self, since_ns: int) -> Sequence[Reading]:
        """What was read since, oldest first; after a stall of the network all that it held up. Raises GpuLost."""
        connection = self._live()
        result = connection.readings(since_ns)
        if not result and connection.trouble:
            raise GpuLost(connection.trouble, self.info.label, "it is tried again there")
        return result

    def stream_every(self, interval_s: float) -> None:
        """How often it is read there from now on. Does not wait; a new connection is asked the same."""
        self._interval_s = interval_s
        if self._connection.alive:
            self._connection.tell("stream", interval_s=interval_s)

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        """The driver's samples there newer than `since_ns`, oldest first. Raises NotSupported, GpuLost."""
        if not self._hello.buffered:
            raise NotSupported("the board has no buffer of power samples", self.info.label)
        return self._live().samples(since_ns)

    def energy_j(self) -> float:
        """The energy counter, asked now. Raises NotSupported, GpuLost, and Garbled where it is no number."""
        if self._energy is None:
            raise NotSupported("the board has no energy counter", self.info.label)
        figure = number_or_none(self._live().ask("energy").get("energy_j"))
        if figure is None:
            raise NotSupported("the energy counter has no value", self.info.label)
        return figure

    def graphics_clocks_mhz(self) -> Sequence[int]:
        """Supported graphics clocks, as they were when it was opened."""
        return self._hello.graphics_clocks_mhz

    def memory_clocks_mhz(self) -> Sequence[int]:
        """Supported memory clocks."""
        return self._hello.memory_clocks_mhz

    def processes(self) -> Sequence[GpuProcess]:
        """What runs on the board there. Raises NotSupported, GpuLost."""
        if not self._hello.lists_processes:
            raise NotSupported("the board does not list its processes", self.info.label)
        return parse_processes(self._live().ask("processes").get("processes"))

    def power_profiles(self) -> PowerProfiles:
        """The workload power profiles that the board there has. Which are in force is not known here."""
        named = self._hello.power_profiles.items()
        return PowerProfiles({number: PowerProfile(name, 0, ()) for number, name in named}, None, None)

    def why_not_set(self, setting: str) -> str | None:
        """Why the board there would refuse a setting, if that is known."""
        return self._hello.cannot_set.get(setting)

    def close(self) -> None:
        """End the connection; what was set through it is put back there. Safe to call twice."""
        self._give_up.set()
        with self._lock:
            self._closed = True
        self._connection.close()

    # --- more than a board has ----------------------------------------------------------------------------------------

    @property
    def version(self) -> str:
        """Of Wattridge there."""
        return self._hello.version

    def clock_offset_s(self) -> tuple[float, float]:
        """What the clock there is ahead by, and the most by which times of readings are wrong."""
        return self._connection.offset()

    def answer(self, verb: str, timeout_s: float, **fields: Any) -> Mapping[str, Any]:
        """One question to the other end, with an error as it was answered. Raises GpuLost."""
        return self._live().answer(verb, timeout_s, **fields)

    @property
    def connection(self) -> Connection:
        """The present one: settings hold only as long as it lives."""
        return self._connection

    # --- inside -------------------------------------------------------------------------------------------------------

    def _live(self) -> Connection:
        connection = self._connection
        if connection.alive:
            return connection
        self._try_again()
        broken = self._failed or "the connection is broken"
        raise GpuLost(broken, self.info.label, "it is tried again every few seconds")

    def _try_again(self) -> None:
        """Begin to connect again, unless that is under way or was just tried."""
        with self._lock:
            busy = self._reconnecting is not None and self._reconnecting.is_alive()
            if self._closed or busy or time.monotonic() < self._tried_s + _AGAIN_S:
                return
            self._tried_s = time.monotonic()
            self._reconnecting = threading.Thread(target=self._reconnect, name="connecting again", daemon=True)
            self._reconnecting.start()

    def _reconnect(self) -> None:
        self._connection.close()
        try:
            connected = self._connect(self.address, self._give_up)
        except SensorError as error:
            self._failed = error.what
            self._tried_s = time.monotonic()
            return
        before, now = self._hello, connected.hello
        if (now.info.uuid, now.channels, now.buffered) != (before.info.uuid, before.channels, before.buffered):
            connected.close()
            self._failed = f"another board answers now: {now.info.name}"
            return
        with self._lock:
            if not self._closed:
                self._connection, self._failed = connected, ""
                connected = None  # type: ignore[assignment]
        if connected is not None:
            connected.close()
        else:
            self.stream_every(self._interval_s)
