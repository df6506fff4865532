"""`WatchedBoards`: every board that is watched, each with its trace, and which of them the window shows.

Looking at another board changes nothing but the view: the traces of all of them continue.

What every panel shows of a board as its present: one reading, the same in all of them until the next beat.

`WatchedBoard`: a live board of the window, with its recorder and alarms, and the door to its settings.

`Alarms`: checks one board twice a second, and keeps what was raised.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from ...base.errors import InputError, WattridgeError
from ...engine.session import events
from ...sensors.clock import ScaledClock
from ...sensors.gpu import Gpu
from ...sensors.pci import PCI, asleep
from ...sensors.select import DEFAULT_TWIN, HOST, OPENCL, amd_boards, gpu_selectors, open_gpu, real_boards
from ...sensors.trace.alarms import Alarm, AlarmKind, AlarmRules
from ...sensors.trace.live_board import LiveBoard
from ...sensors.trace.sampler import SensorEvent
from .bridge import EngineBridge
from .countdown import Countdown
from .recorder import Recorder
from .settings import Settings
from .tasks import TaskQueue
from .turns import timer

if TYPE_CHECKING:
    from ...engine.control.device_log import Change
    from ...engine.control.guard import DeviceGuard
    from ...engine.specification.plan import SessionPlan
    from ...sensors.trace.live_board import LiveBoard
    from ...sensors.trace.trace import Trace

_TICK_MS = 500
_KEPT = 500


class Alarms(QObject):
    """The rules are those of the settings, for every board alike."""

    raised = Signal(str)  # one line that names the board too
    over = Signal(str)  # the line of one that was raised

    def __init__(self, board: LiveBoard, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._board = board
        self._settings = Settings()
        self.raised_so_far: deque[tuple[datetime, Alarm]] = deque(maxlen=_KEPT)  # when, on the wall; oldest first
        self._lines: dict[AlarmKind, str] = {}  # of those that are not over
        self._timer = timer(self, self.check, _TICK_MS)
        self._timer.start()

    @property
    def rules(self) -> AlarmRules:
        """What raises an alarm."""
        return self._settings.alarms

    @rules.setter
    def rules(self, rules: AlarmRules) -> None:
        self._settings.alarms = rules

    @Slot()
    def check(self) -> None:
        """Look at what was read since the last time."""
        for alarm in self._board.new_alarms(self.rules):
            self.raised_so_far.append((datetime.now().astimezone(), alarm))
            self._lines[alarm.kind] = f"Alarm: {alarm.text} · {self._board.gpu.info.label}"
            self.raised.emit(self._lines[alarm.kind])
        for kind in self._lines.keys() - self._board.active_alarms:
            self.over.emit(self._lines.pop(kind))

    def shutdown(self) -> None:
        """Check no more."""
        self._timer.stop()


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

    Where every board sleeps and none is named, a simulated one opens. Raises InputError and SensorError, each one line
    with the remedy.
    """
    if selector is None and asleep() and not (real_boards() or amd_boards()):
        selector = f"simulated:{DEFAULT_TWIN}"
    if math.isinf(speed):
        raise InputError("a window cannot show a GPU that runs infinitely fast", "--speed", "a finite one, such as 100")
    return open_gpu(selector, seed=seed, speed=speed, remote=True, give_up=give_up)


def is_real(selector: str) -> bool:
    """Whether a selector names a real board, with sensors, that does not sleep."""
    return in_real_time(selector) and selector != HOST and not selector.startswith((OPENCL, PCI))


def in_real_time(selector: str) -> bool:
    """Whether what a selector names lives as fast as we do."""
    return not selector.startswith(("simulated:", "recorded:"))


# Of the boards that are not real, in multiples of real time. A thread of a busy window gets its turn every 5 ms: at 60×
# the meter still has ten looks at the power in its longest window (3 s), at 200× three. Nothing was missing at 200×
# where that was tried (60 configurations of an A100), but each took 11 s of the board's time in place of 4.6 s, to save
# a quarter of the wall's.
SPEEDS: Final = {1.0: "Real time", 10.0: "10×", 60.0: "As fast as possible (60×)"}
NO_FASTER: Final = "Faster is not offered: above 60× too few samples of a simulated board's power fall into a window."
EXAMPLE_SPEED: Final = 10.0  # of an example that is started at once


def speed_words(speed: float) -> str:
    """'60×'; empty for real time."""
    return "" if speed == 1.0 else f"{speed:g}×"


class WatchedBoards(QObject):
    """Opens and closes boards off Qt's thread, in the order of the requests; there is always one.

    Made before the panels, so that in their slots what the engine reported of a board (`allowed`, `holder`,
    `countdown`) is already the new one.
    """

    added = Signal(object)  # WatchedBoard
    removed = Signal(object)  # WatchedBoard: it is closed next
    board_changed = Signal(object)  # WatchedBoard: another one is shown
    sensor_event = Signal(object, object)  # WatchedBoard, SensorEvent
    speed_changed = Signal(float)  # of the boards that are not real
    failed = Signal(str, str)  # what went wrong, and the remedy

    _heard = Signal(str, object)  # UUID, SensorEvent; from the samplers' threads

    def __init__(
        self,
        gpu: Gpu,
        bridge: EngineBridge,
        *,
        seed: int = 0,
        speed: float = 1.0,
        on_change: Callable[[Change], None] | None = None,
    ) -> None:
        """`gpu` is shown; it is closed in the end. `seed` and `speed` are of simulated boards and recordings."""
        super().__init__()
        self._bridge, self._seed, self._on_change = bridge, seed, on_change
        self.speed = speed  # of the boards that are not real, as a multiple of real time
        self._speed_chosen = speed != 1.0
        self._opening: list[str] = []  # selectors
        self._arriving: list[Gpu] = []  # open, and not watched yet
        self._closing = threading.Event()
        self._to_show = ""  # the selector that was chosen last, until it is open
        self._tasks = TaskQueue(self, self.failed)
        self._heard.connect(self._sensor_event, Qt.ConnectionType.QueuedConnection)
        bridge.subscribe(events.ControlChanged, self._control_changed)
        bridge.subscribe(events.SettingApplied, self._setting_applied)
        bridge.subscribe(events.EngineFault, self._fault)
        bridge.subscribe(events.BoardReleased, self._released)
        self.all: list[WatchedBoard] = [self._watched(gpu.info.uuid, gpu)]
        self.current = self.all[0]
        self.current.read_closely()

    # --- which there are ----------------------------------------------------------------------------------------------

    def find(self, name: str) -> WatchedBoard | None:
        """The board of that UUID or selector. Any thread may ask."""
        return next((board for board in tuple(self.all) if name in (board.uuid, board.selector)), None)

    def measured_by(self, plan: SessionPlan) -> WatchedBoard | None:
        """The board that a session was measured on, if it is watched; of a replay, which was on none, the shown one."""
        return self.find(plan.origin["gpu"]) if "gpu" in plan.origin else self.current

    def guard_of(self, uuid: str) -> DeviceGuard:
        """Any thread may ask. Raises WattridgeError if the board is not watched."""
        board = self.find(uuid)
        if board is None:
            raise WattridgeError("this board is not watched", uuid, "watch it again under Boards")
        return board.guard

    def name_of(self, board: WatchedBoard) -> str:
        """The board's label, with its number where another one that is watched has the same.

        One that is not real has no number: its selector tells it apart, by as much of its path as that takes.
        """
        info = board.gpu.info
        alike = [item.uuid for item in self.all if item.gpu.info.label == info.label and item is not board]
        if not alike:
            return info.label
        return f"{info.label} · {f'GPU {info.index}' if info.real else _apart(board.uuid, alike)}"

    # --- what is asked ------------------------------------------------------------------------------------------------

    def watch(self, selector: str) -> None:
        """Watch one more board."""
        if self.find(selector) is None and selector not in self._opening:
            self._opening.append(selector)
            self._tasks.run(lambda: self._opened(selector), lambda gpu: self._add(selector, gpu))

    def watch_real(self) -> None:
        """Watch every real board."""
        self._tasks.run(
            lambda: [selector for selector, _ in gpu_selectors() if is_real(selector)],
            self._watch_all,
        )

    @Slot(str)
    def show(self, selector: str) -> None:
        """Show a board, which is watched from then on."""
        self._to_show = selector
        board = self.find(selector)
        if board is None:
            self.watch(selector)
            return
        self._to_show = ""
        if board is not self.current:
            self.current = board
            board.read_closely()
            self.board_changed.emit(board)

    @Slot(float)
    def set_speed(self, speed: float) -> None:
        """Let every board that is not real run at that multiple of real time, those that are opened later too.

        Times and joules stay those of the boards' own clocks.
        """
        self._speed_chosen = True
        if speed != self.speed:
            self.speed = speed
            for board in self.all:
                board.set_speed(speed)
        self.speed_changed.emit(speed)  # an example keeps to what was chosen, real time too

    @property
    def example_speed(self) -> float:
        """At which an example that is started at once runs: faster than real time, unless another speed was chosen."""
        return self.speed if self._speed_chosen else EXAMPLE_SPEED

    def speed_up_example(self) -> None:
        """Run at the speed of an example."""
        if self.example_speed != self.speed and not self.current.real:
            self.set_speed(self.example_speed)

    def forget(self, board: WatchedBoard) -> None:
        """Watch a board no longer, once the engine has put its settings back. The one that is shown stays."""
        if board is not self.current:
            self._bridge.submit(events.Release(board.uuid))

    def stop(self) -> None:
        """Read no board any more; returns at once."""
        for board in self.all:
            board.stop()

    def close(self) -> None:
        """Stop reading and close every board. Safe to call twice."""
        self.stop()
        self._closing.set()  # no other machine is waited for
        self._tasks.shutdown()
        for board in self.all:
            board.close()
        for gpu in self._arriving:
            gpu.close()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _watch_all(self, selectors: Sequence[str]) -> None:
        for selector in selectors:
            self.watch(selector)

    def _watched(self, selector: str, gpu: Gpu) -> WatchedBoard:
        heard, uuid = self._heard, gpu.info.uuid
        board = WatchedBoard(selector, gpu, on_event=lambda event: heard.emit(uuid, event), on_change=self._on_change)
        board.countdown.answered.connect(self._answered)
        return board

    def _opened(self, selector: str) -> Gpu | WattridgeError:
        """On the queue's thread. What is opened is closed in the end, whether it was still watched or not."""
        try:
            speed = 1.0 if in_real_time(selector) else self.speed
            gpu = watched_gpu(selector, seed=self._seed, speed=speed, give_up=self._closing)
        except WattridgeError as error:
            return error
        self._arriving.append(gpu)
        return gpu

    def _add(self, selector: str, opened: Gpu | WattridgeError) -> None:
        self._opening.remove(selector)
        if isinstance(opened, WattridgeError):
            self._to_show = "" if self._to_show == selector else self._to_show
            self.failed.emit(f"{opened.where}: {opened.what}" if opened.where else opened.what, opened.remedy)
            return
        self._arriving.remove(opened)
        board = self.find(opened.info.uuid)
        if board is None:
            board = self._watched(selector, opened)
            board.set_speed(self.speed)  # it may have changed meanwhile
            self.all.append(board)
            self.added.emit(board)
        else:  # by another name
            self._tasks.run(opened.close)
        if self._to_show == selector:
            self.show(board.uuid)

    @Slot(str, object)
    def _sensor_event(self, uuid: str, event: SensorEvent) -> None:
        board = self.find(uuid)
        if board is not None:
            self.sensor_event.emit(board, event)

    @Slot(object)
    def _control_changed(self, event: events.ControlChanged) -> None:
        board = self.find(event.board)
        if board is not None:
            board.allowed, board.holder = event.allowed, event.holder

    @Slot(object)
    def _setting_applied(self, event: events.SettingApplied) -> None:
        board = self.find(event.board)
        if board is not None:
            board.countdown.applied(event)

    @Slot(object)
    def _fault(self, _fault: events.EngineFault) -> None:
        for board in self.all:
            board.countdown.fault()

    @Slot(object)
    def _answered(self, command: events.Confirm) -> None:
        self._bridge.submit(command)

    @Slot(object)
    def _released(self, event: events.BoardReleased) -> None:
        board = self.find(event.board)
        if board is None:
            return
        board.countdown.end()  # its settings are as before
        if board is not self.current:  # else it was chosen meanwhile
            self.all.remove(board)
            board.stop()
            self.removed.emit(board)
            self._tasks.run(board.close)


def _apart(uuid: str, others: Sequence[str]) -> str:
    """'a100#2', or 'monday/power.csv': the end of what opens a board, as long as it takes to tell it from others."""
    parts, rest = _parts(uuid), [_parts(other) for other in others]
    least = next((n for n in range(1, len(parts)) if all(parts[-n:] != other[-n:] for other in rest)), len(parts))
    return "/".join(parts[-least:])


def _parts(uuid: str) -> list[str]:
    return uuid.partition(":")[2].split("/")


_BEAT_MS: Final = 100


class ShownReading(NamedTuple):
    """Values by channel name at an instant of the GPU's clock; 0 and none where nothing was read yet."""

    time_ns: int
    values: dict[str, float]
    power_name: str = ""  # the finest power of that instant: what "the power" of the board is

    @property
    def power_w(self) -> float:
        """NaN if it is unknown."""
        return self.values.get(self.power_name, math.nan)

    def limit_w(self, gpu: Gpu) -> float:
        """The power limit that the board reports, else the one that it had when it was opened; NaN if it has none."""
        reported = self.values.get("power_limit_w", math.nan)
        return (gpu.info.power_limit.current_w or math.nan) if math.isnan(reported) else reported


class Beat(QObject):
    """At each beat the readings are the newest ones, and all panels that follow `struck` show them in one turn."""

    struck = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._fresh: WeakSet[Trace] = WeakSet()  # traces that were asked for since the last beat
        self._readings: WeakKeyDictionary[Trace, tuple[int, ShownReading]] = WeakKeyDictionary()
        self._timer = QTimer(self, interval=_BEAT_MS, timerType=Qt.TimerType.CoarseTimer)
        self._timer.timeout.connect(self.strike)
        self._timer.start()

    @Slot()
    def strike(self) -> None:
        """Show what is new."""
        self._fresh.clear()
        self.struck.emit()

    def reading(self, trace: Trace) -> ShownReading:
        """The same object until there is a beat and a new reading."""
        appended, shown = self._readings.get(trace, (-1, ShownReading(0, {})))
        if trace not in self._fresh and appended != trace.appended:
            appended, newest, power = (
                trace.appended,
                trace.last_ns,
                trace.power_name,
            )  # before the values: it is in them
            shown = ShownReading(newest, trace.at(newest) if newest else {}, power)
            self._readings[trace] = appended, shown
        self._fresh.add(trace)
        return shown


@cache
def beat() -> Beat:
    """The one of the window; made at the first call, which must be in Qt's thread."""
    return Beat()


def shown_reading(trace: Trace) -> ShownReading:
    """What is shown of that board now."""
    return beat().reading(trace)
