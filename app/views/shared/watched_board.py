"""`WatchedBoard`: a live board of the window, with its recorder and alarms, and the door to its settings."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...base.errors import InputError
from ...sensors.clock import ScaledClock
from ...sensors.gpu import Gpu
from ...sensors.select import HOST, OPENCL, open_gpu
from ...sensors.trace.live_board import LiveBoard
from ...sensors.trace.sampler import SensorEvent
from .alarms import Alarms
from .countdown import Countdown
from .recorder import Recorder

if TYPE_CHECKING:
    from ...engine.control.device_log import Change
    from ...engine.control.guard import DeviceGuard

RATE_HZ: Final = 50.0  # of a board that is or was shown in full
GLANCE_HZ: Final = 10.0  # of one that was only ever seen at a glance


class WatchedBoard:
    """Made on Qt's thread, and read until `close`. `on_event` and `on_change` are called on other threads."""

    def __init__(
        self,
        selector: str,
        gpu: Gpu,
        *,
        on_event: Callable[[SensorEvent], None] | None = None,
        on_change: Callable[[Change], None] | None = None,
    ) -> None:
        self.selector = selector
        self.opened_s = time.time()  # when the trace began, s since the epoch
        self.allowed = False  # whether settings may be made by hand, as the engine last reported
        self.holder: int | None = None  # the process that holds the rights to
        self.countdown = Countdown(gpu.info.uuid)  # to settings that are not confirmed
        self._on_change = on_change
        self._guard: DeviceGuard | None = None
        self._making_guard = threading.Lock()
        self._stopped = False
        # not a base class: what belongs to Qt must not hold this object, or the trace is not freed with the board
        self._live = live = LiveBoard(
            gpu, interval_s=1.0 / GLANCE_HZ, rate_hz=RATE_HZ, allow_for=gpu.clock.speed, on_event=on_event
        )
        self.gpu, self.trace, self.sampler = gpu, live.trace, live.sampler
        self.recorder = Recorder(live)
        self.alarms = Alarms(live)

    @property
    def uuid(self) -> str:
        return self.gpu.info.uuid

    @property
    def guard(self) -> DeviceGuard:
        """The one door to this board's settings, made when it is first needed. Any thread may ask."""
        with self._making_guard:
            if self._guard is None:
                from ...engine.control.guard import DeviceGuard

                self._guard = DeviceGuard(self.gpu, on_change=self._on_change)
            return self._guard

    @property
    def real(self) -> bool:
        """Its clock is that of the wall, whatever is wished."""
        return not isinstance(self.gpu.clock, ScaledClock)

    def set_speed(self, speed: float) -> None:
        """Let a board that is not real run at that multiple of real time."""
        if isinstance(self.gpu.clock, ScaledClock):
            self.trace.allow_for(speed)
            self.gpu.clock.set_speed(speed)

    def read_closely(self) -> None:
        """It is shown in full: read it as often as that takes, from now on."""
        self.sampler.read_every(1.0 / RATE_HZ)

    def stop(self) -> None:
        """Read and record no more. On Qt's thread; `close` may then be called on any."""
        if not self._stopped:
            self._stopped = True
            self.countdown.end()
            self.alarms.shutdown()
            self.recorder.shutdown()
            self._live.stop()

    def close(self) -> None:
        """Read no more, and close the board. Safe to call twice."""
        self.stop()
        self._live.close()


def watched_gpu(
    selector: str | None, *, seed: int = 0, speed: float = 1.0, give_up: threading.Event | None = None
) -> Gpu:
    """Open a GPU to be watched; `speed` is of one that is not real. Setting `give_up` ends a wait for another machine.

    Raises InputError and SensorError, each one line with the remedy.
    """
    if math.isinf(speed):
        raise InputError("a window cannot show a GPU that runs infinitely fast", "--speed", "a finite one, such as 100")
    return open_gpu(selector, seed=seed, speed=speed, remote=True, give_up=give_up)


def is_real(selector: str) -> bool:
    """Whether a selector names a real board, with sensors."""
    return in_real_time(selector) and selector != HOST and not selector.startswith(OPENCL)


def in_real_time(selector: str) -> bool:
    """Whether what a selector names lives as fast as we do."""
    return not selector.startswith(("simulated:", "recorded:"))
