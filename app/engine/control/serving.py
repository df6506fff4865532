"""`BoardServer`: one board for a Wattridge on another machine, over standard input and output, which ssh connects.

It sends readings and answers requests; `sensors/remote/messages.py` has the grammar. Settings go through the same
`Control` as here, with the rights of this account and under the rules of this machine. When the other end closes, or
sends no request for `SILENCE_S`, everything that it did not confirm is put back.
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, Any, Final

from ... import __version__
from ...base.errors import InputError, PermissionRefused, WattridgeError
from ...sensors.gpu import Gpu, GpuLost, ListsProcesses, NotSupported, SensorError
from ...sensors.remote.messages import (
    LONGEST_LINE,
    Hello,
    error_document,
    hello_message,
    line_of,
    parse_line,
    process_document,
    reading_message,
    samples_message,
)
from ..results.settings import SETTINGS, Setting, is_setting, supported_profiles, why_not_set
from .client import Asking, why_read_only
from .controls import Control, control_of

SILENCE_S: Final = 15.0  # the other end sends a request every second
_DRAIN_S: Final = 0.1
_RETRY_S: Final = 3.0
_FASTEST_S: Final = 0.005
_SLOWEST_S: Final = 60.0


def hello_of(gpu: Gpu) -> Hello:
    """The identity and the abilities of a board, the first message to another machine."""
    try:
        gpu.power_samples(gpu.clock.now_ns())
        buffered = True
    except SensorError:
        buffered = False
    return Hello(
        __version__,
        gpu.info,
        gpu.channels,
        tuple(gpu.graphics_clocks_mhz()),
        tuple(gpu.memory_clocks_mhz()),
        buffered,
        isinstance(gpu, ListsProcesses),
        {name: why for name in SETTINGS if (why := why_not_set(gpu, name))},
        supported_profiles(gpu),
    )


class BoardServer:
    """Serves until the other end is gone. One per process."""

    def __init__(self, gpu: Gpu, source: IO[bytes], sink: IO[bytes]) -> None:
        self._gpu = gpu
        self._source, self._sink = source, sink
        self._sending = threading.Lock()
        self._stop = threading.Event()
        self._interval_s = 0.02
        self._control: Control | None = None
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._verbs: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "ping": lambda _: {},
            "stream": self._stream_every,
            "energy": lambda _: {"energy_j": gpu.energy_j()},
            "processes": self._processes,
            "open": self._open,
            "set": self._set,
            "reset": self._reset,
            "restore_prior": self._restore_prior,
            "confirm": self._confirm,
            "state": lambda _: self._state(),
            "give_back": self._give_back,
        }

    def run(self) -> None:
        """Greet, then send and answer until the other end closes or falls silent; then put everything back."""
        threads = [
            threading.Thread(target=self._listen, name="requests", daemon=True),
            threading.Thread(target=self._send_readings, name="readings", daemon=True),
        ]
        try:
            self._send(hello_message(hello_of(self._gpu)))
            for thread in threads:
                thread.start()
            while not self._stop.is_set():
                try:
                    line = self._requests.get(timeout=SILENCE_S)
                except queue.Empty:
                    return
                if line is None:
                    return
                self._send(self._answered(line))
        except (OSError, ValueError, SensorError):  # the other end is gone, or is none of ours
            return
        finally:
            self._stop.set()
            self._give_back({})

    # --- sending ------------------------------------------------------------------------------------------------------

    def _send(self, message: Mapping[str, Any]) -> None:
        line = line_of(message)
        with self._sending:
            self._sink.write(line)
            self._sink.flush()

    def _send_readings(self) -> None:
        """Read and send at even times until the end. Messages that the network delays wait in its buffers."""
        gpu, clock = self._gpu, self._gpu.clock
        drained_s, newest_ns, buffered = 0.0, clock.now_ns(), True
        due_s = time.monotonic()
        while not self._stop.is_set():
            try:
                self._send(reading_message(gpu.read(), gpu.channels))
                if buffered and time.monotonic() >= drained_s + _DRAIN_S:
                    drained_s = time.monotonic()
                    try:
                        if samples := list(gpu.power_samples(newest_ns)):
                            newest_ns = samples[-1].time_ns
                            self._send(samples_message(samples))
                    except NotSupported:
                        buffered = False
            except SensorError as error:
                with contextlib.suppress(OSError, ValueError):
                    self._send({"trouble": str(error)})
                self._stop.wait(_RETRY_S)
            except (OSError, ValueError):  # the other end is gone
                self._requests.put(None)
                return
            due_s = max(due_s + self._interval_s, time.monotonic())
            self._stop.wait(due_s - time.monotonic())

    # --- answering ----------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := self._source.readline(LONGEST_LINE):
                self._requests.put(line)
        self._requests.put(None)

    def _answered(self, line: bytes) -> dict[str, Any]:
        """The answer to one line. Raises SensorError for a line that is no request: the conversation ends."""
        request = parse_line(line)
        number = request.get("id")
        if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < 1 << 53:
            raise SensorError("a request without a number")
        try:
            verb = self._verbs.get(str(request.get("do")))
            if verb is None:
                raise NotSupported("this version does not know that request")
            reply = {"answer": verb(request)}
        except WattridgeError as error:
            reply = {"error": error_document(error)}
        return {"id": number, "at_ns": self._gpu.clock.now_ns(), **reply}

    def _stream_every(self, request: Mapping[str, Any]) -> dict[str, Any]:
        interval_s = request.get("interval_s")
        if isinstance(interval_s, bool) or not isinstance(interval_s, int | float) or not interval_s > 0:
            raise InputError("the interval is no positive number", "stream", "seconds")
        self._interval_s = min(max(float(interval_s), _FASTEST_S), _SLOWEST_S)
        return {}

    def _processes(self, _: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(self._gpu, ListsProcesses):
            raise NotSupported("this board does not list its processes")
        return {"processes": [process_document(process) for process in self._gpu.processes()]}

    # --- settings -----------------------------------------------------------------------------------------------------

    def _open(self, _: Mapping[str, Any]) -> dict[str, Any]:
        info = self._gpu.info
        if info.live and (reason := why_read_only(info.uuid)):
            raise PermissionRefused(reason, info.label, f"root of {info.name}'s machine decides this")
        if not info.live and info.source != "simulated":
            raise NotSupported("this board has no settings", info.label, "leave the device settings out")
        if self._control is None:
            self._control = control_of(self._gpu, Asking.NEVER)
        return {"notes": list(self._control.open()), **self._state()}

    def _opened(self) -> Control:
        if self._control is None:
            raise PermissionRefused("control was not asked for", self._gpu.info.label)
        return self._control

    def _set(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._opened().set(_settings(request.get("settings")))
        return self._state()

    def _reset(self, request: Mapping[str, Any]) -> dict[str, Any]:
        names = request.get("settings")
        self._opened().reset([name for name in SETTINGS if isinstance(names, list) and name in names])
        return self._state()

    def _restore_prior(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._open({})
        self._opened().restore_prior(defaults=request.get("defaults") is True)
        return self._state()

    def _confirm(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self._opened().confirm()
        return self._state()

    def _state(self) -> dict[str, Any]:
        if self._control is None:
            return {"prior": {}, "now": {}}
        now = {name: value for name, value in self._control.read_back().items() if value is not None}
        return {"prior": self._control.prior(), "now": {n: v for n, v in now.items() if math.isfinite(v)}}

    def _give_back(self, _: Mapping[str, Any]) -> dict[str, Any]:
        control, self._control = self._control, None
        if control is not None:
            with contextlib.suppress(GpuLost):
                control.close()
        return {}


def _settings(asked: Any) -> dict[str, Setting]:
    """Settings by name, each a number or a range of two. Raises InputError."""
    if not isinstance(asked, dict) or not asked or not set(asked) <= set(SETTINGS):
        raise InputError("these are no settings", "set", ", ".join(SETTINGS))
    return {name: _setting(name, value) for name, value in asked.items()}


def _setting(name: str, value: Any) -> Setting:
    ends = value if isinstance(value, list) and len(value) == 2 else [value]
    for end in ends:
        if isinstance(end, bool) or not isinstance(end, int | float) or not is_setting(name, end):
            raise InputError("a setting is no number within its range", "set", "MHz or W")
    return float(ends[0]) if len(ends) == 1 else (float(ends[0]), float(ends[1]))
