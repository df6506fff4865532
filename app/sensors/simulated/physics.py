"""How a simulated board moves through time: launches, clocks under their limits, temperature.

Time goes in pieces during which clock and power are constant: 20 ms while a controller works, longer while nothing
moves, and cut wherever the board is acted on. Pieces depend on what was done to the board and when, not on readers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Final

from ..event_reasons import EventReason
from ..gpu import Execution, Load
from . import laws
from .laws import Serving
from .sensor import History
from .twin import Twin

STEP_NS: Final = 20_000_000
QUIET_STEP_NS: Final = 200_000_000
REST_STEP_NS: Final = 10_000_000_000  # clocks down and cold
_COLD_C: Final = 0.02  # of the temperature at rest
HISTORY_S: Final = 8.0  # longer than any averaging window, lag and buffer

# The controller of the power limit: an integrator on the clock, slow near the limit (it takes about a second to come
# to rest there, as a measured H200 does) and fast far above it.
_SLOW_PER_S: Final = 3.0
_FAST_PER_S: Final = 10.0
_NEAR: Final = 0.05
# The thermal controller: proportional to the rise of the temperature, integral to its distance from the limit.
_PER_DEGREE: Final = 0.02
_PER_DEGREE_S: Final = 0.001
_THERMAL_MARGIN_C: Final = 2.0
_WHOLE: Final = 1e-9  # of a launch
_HOLD_BACK: Final = (EventReason.POWER_CAP, EventReason.SOFTWARE_THERMAL)  # the limits that are simulated


class Physics:
    """One board. Not thread-safe; times are ns on its clock and may never go back."""

    def __init__(self, twin: Twin, start_ns: int) -> None:
        self._twin = twin
        self._top_mhz = twin.clocks.graphics_mhz[-1]
        self.limit_w = twin.power.limit_default_w
        self.locked_mhz: int | None = None
        self.locked_memory_mhz: int | None = None
        self._memory_locked = laws.with_locked_memory(twin)
        self.history = History(HISTORY_S)

        self._load: Load | Serving | None = None
        self._launches = 0.0  # since the load began
        self._last_launch: int | None = None  # the load ends with that one
        self._begun_ns = start_ns
        self.execution = Execution(0, math.nan, start_ns, start_ns)  # of the load that ended last
        self._quiet_since_ns = start_ns - round(twin.clocks.idle_after_s * 1e9)  # the last launch's end

        self._power_ceiling_mhz = float(self._top_mhz)
        self._thermal_ceiling_mhz = float(self._top_mhz)
        self._reach_mhz = float(twin.clocks.idle_mhz)  # what a clock that climbs has reached
        self._idle = laws.idle(twin)
        self._points: dict[int, laws.OperatingPoint] = {}  # of the present load and memory clock
        self._rest_c = laws.settled(twin, self._idle)[1]
        self._temperature_c = self._rest_c  # at the start of the piece
        self.reasons = EventReason.NONE
        self._throttled_ns: dict[EventReason, int] = {}  # of the pieces before
        self.clock_mhz = twin.clocks.idle_mhz
        self._open(start_ns)

    # --- looking ----------------------------------------------------------------------------------------------------

    @property
    def load(self) -> Load | Serving | None:
        """What runs; None while nothing does."""
        return self._load

    @property
    def busy(self) -> bool:
        return self._load is not None

    @property
    def ending(self) -> bool:
        """Busy with the last launches of a load that is to end."""
        return self._last_launch is not None

    @property
    def serving(self) -> bool:
        """Busy with requests to a service."""
        return isinstance(self._load, Serving)

    @property
    def moving(self) -> bool:
        """The clock may change any moment: it climbs, or a limit holds it back."""
        return self._load is not None and self._end_ns - self._start_ns <= STEP_NS

    @property
    def at_rest(self) -> bool:
        """Clocks down."""
        return self._point is self._idle

    @property
    def memory_clock_mhz(self) -> int:
        clocks = self._twin.clocks
        if self.at_rest and self.locked_memory_mhz is None:
            return clocks.idle_memory_mhz
        return laws.memory_in_force_mhz(self._twin, self.clock_mhz, self._wanted_memory_mhz)

    @property
    def _wanted_memory_mhz(self) -> int:
        """While the clocks are up."""
        return self.locked_memory_mhz or self._twin.clocks.memory_mhz[-1]

    def throttled_ns(self, reason: EventReason, now_ns: int) -> int:
        """For how long a reason has acted, to a time within the present piece."""
        present_ns = now_ns - self._start_ns if self.reasons & reason else 0
        return self._throttled_ns.get(reason, 0) + present_ns

    def temperature_c(self, now_ns: int) -> float:
        """At a time within the present piece."""
        return self._warmed(now_ns - self._start_ns)

    def seconds_to_finish(self, now_ns: int) -> float:
        """Until the last launch ends, at the present clock; 0 when nothing runs."""
        if self._last_launch is None:
            return 0.0
        done = self._launches + (now_ns - self._start_ns) / 1e9 / self._point.launch_s
        return max(1e-9, (self._last_launch - done) * self._point.launch_s)

    # --- moving -----------------------------------------------------------------------------------------------------

    def advance(self, now_ns: int) -> None:
        """Let time pass."""
        while self._end_ns <= now_ns:
            end_ns = self._end_ns
            self._close(end_ns)
            self._open(end_ns)

    def begin(self, load: Load, now_ns: int) -> None:
        """Back-to-back launches from now on. Raises NotSupported for a precision the board lacks."""
        laws.launch_time_s(self._twin, load, self._top_mhz, self._twin.clocks.memory_mhz[-1])
        self._cut(now_ns)
        self._load, self._launches, self._last_launch, self._begun_ns = load, 0.0, None, now_ns
        self._points.clear()
        self._open(now_ns)

    def serve(self, serving: Serving | None, now_ns: int) -> None:
        """What a service does from now on, whatever it did before; None: it waits for requests."""
        if serving == self._load:
            return
        self._cut(now_ns)
        if serving is None:
            self._quiet_since_ns = now_ns
        elif self._load is None:
            self._begun_ns, self._launches = now_ns, 0.0
        self._load, self._last_launch = serving, None
        self._points.clear()
        self._open(now_ns)

    def end(self, now_ns: int) -> None:
        """The launch that runs now is the last."""
        self._cut(now_ns)
        self._last_launch = max(1, math.ceil(self._launches - _WHOLE))
        if self._launches >= self._last_launch - _WHOLE:
            self._finish(now_ns)
        self._open(now_ns)

    def lock_graphics(self, clock_mhz: int | None, now_ns: int) -> None:
        self._cut(now_ns)
        self.locked_mhz = clock_mhz
        self._points.clear()
        self._open(now_ns)

    def lock_memory(self, clock_mhz: int | None, now_ns: int) -> None:
        self._cut(now_ns)
        self.locked_memory_mhz = clock_mhz
        self._points.clear()
        self._idle = laws.idle(self._twin, clock_mhz)
        self._open(now_ns)

    def set_limit(self, limit_w: float, now_ns: int) -> None:
        self._cut(now_ns)
        self.limit_w = limit_w
        self._open(now_ns)

    # --- pieces -----------------------------------------------------------------------------------------------------

    def _cut(self, now_ns: int) -> None:
        self.advance(now_ns)
        self._close(now_ns)

    def _close(self, end_ns: int) -> None:
        """Carry the state to the end of the piece."""
        elapsed_ns = end_ns - self._start_ns
        seconds = elapsed_ns / 1e9
        self._throttled_ns = {reason: self.throttled_ns(reason, end_ns) for reason in _HOLD_BACK}
        before_c, self._temperature_c = self._temperature_c, self._warmed(elapsed_ns)
        self._control_power(seconds)
        self._control_temperature(seconds, self._temperature_c - before_c)
        if self._load is None:
            return
        self._reach_mhz = min(self._top_mhz, self._reach_mhz + self._twin.clocks.rise_mhz_per_s * seconds)
        self._launches += seconds / self._point.launch_s
        if self._last_launch is not None and end_ns >= self._finish_ns:
            self._finish(end_ns)

    def _finish(self, now_ns: int) -> None:
        assert self._last_launch is not None
        seconds = (now_ns - self._begun_ns) / 1e9
        self.execution = Execution(self._last_launch, seconds / self._last_launch, self._begun_ns, now_ns)
        self._load, self._last_launch = None, None
        self._quiet_since_ns = now_ns

    def _open(self, start_ns: int) -> None:
        """Start a piece: decide the clock, and with it the power, until something may change."""
        self._start_ns = start_ns
        self._end_ns = start_ns + (self._busy_piece() if self._load is not None else self._quiet_piece(start_ns))
        self._power_w = laws.power_w(self._twin, self._point, self._temperature_c)
        if self._last_launch is not None:
            left_s = (self._last_launch - self._launches) * self._point.launch_s
            self._finish_ns = start_ns + max(1, math.ceil(left_s * 1e9 - 1e-3))
            self._end_ns = min(self._end_ns, self._finish_ns)
        elif self._load is not None and self._power_w > self.limit_w * self._twin.power.limit_share:
            self._end_ns = min(self._end_ns, start_ns + STEP_NS)
        point = self._point
        per_s = 1.0 / point.launch_s if isinstance(self._load, Load) else 0.0
        self.history.append(start_ns, self._power_w, point.memory_w, float(self.busy), point.memory_busy, per_s)

    def _busy_piece(self) -> int:
        assert self._load is not None
        wanted = self.locked_mhz or self._top_mhz
        reasons = EventReason.NONE
        clock = min(wanted, self._supported(self._reach_mhz))
        for ceiling, reason in (
            (self._power_ceiling_mhz, EventReason.POWER_CAP),
            (self._thermal_ceiling_mhz, EventReason.SOFTWARE_THERMAL),
        ):
            allowed = self._supported(ceiling)
            if allowed < wanted:
                reasons |= reason
                clock = min(clock, allowed)
        if not reasons and self.locked_mhz is not None and clock == self.locked_mhz != self._top_mhz:
            reasons = EventReason.APPLICATION_CLOCKS
        self.clock_mhz, self.reasons = clock, reasons
        point = self._points.get(clock)
        if point is None:
            twin = self._twin if self.locked_memory_mhz is None else self._memory_locked
            if isinstance(self._load, Serving):  # services were measured with locked clocks
                point = laws.under_service(self._twin, self._load, clock, self._wanted_memory_mhz)
            else:
                point = laws.under_load(twin, self._load, clock, self._wanted_memory_mhz)
            point = self._points[clock] = laws.held_back(self._twin, point, wanted)
        self._point = point
        near_slowdown = self._temperature_c > self._twin.thermal.slowdown_c - _THERMAL_MARGIN_C
        return STEP_NS if clock < wanted or near_slowdown else QUIET_STEP_NS

    def _quiet_piece(self, start_ns: int) -> int:
        clocks = self._twin.clocks
        self.reasons = EventReason.IDLE
        down_ns = self._quiet_since_ns + round(clocks.idle_after_s * 1e9)
        if self.locked_mhz is not None and clocks.lockable:  # an application clock does not hold an idle board
            self.clock_mhz = self.locked_mhz
        elif start_ns >= down_ns:
            self.clock_mhz = clocks.idle_mhz
            self._reach_mhz = float(clocks.idle_mhz)
            self._point = self._idle
            return REST_STEP_NS if abs(self._temperature_c - self._rest_c) < _COLD_C else QUIET_STEP_NS
        self._reach_mhz = max(self._reach_mhz, float(self.clock_mhz))
        self._point = laws.waiting(self._twin, self.clock_mhz, self._wanted_memory_mhz)
        return min(QUIET_STEP_NS, down_ns - start_ns) if down_ns > start_ns else QUIET_STEP_NS

    def _warmed(self, elapsed_ns: int) -> float:
        thermal = self._twin.thermal
        final = thermal.ambient_c + thermal.resistance_c_per_w * self._power_w
        return final + (self._temperature_c - final) * math.exp(-elapsed_ns / 1e9 / thermal.time_constant_s)

    # --- controllers ------------------------------------------------------------------------------------------------

    def _supported(self, clock_mhz: float) -> int:
        """The highest supported clock at or below."""
        clocks = self._twin.clocks.graphics_mhz
        return clocks[max(0, bisect_right(clocks, clock_mhz) - 1)]

    def _control_power(self, seconds: float) -> None:
        room = min(_NEAR, self._twin.power.limit_share - self._power_w / self.limit_w)
        gain = _FAST_PER_S if room < -_NEAR else _SLOW_PER_S
        moved = self._power_ceiling_mhz * (1.0 + max(-0.5, gain * room * seconds))
        self._power_ceiling_mhz = min(float(self._top_mhz), max(float(self._twin.clocks.graphics_mhz[0]), moved))

    def _control_temperature(self, seconds: float, rise_c: float) -> None:
        room_c = self._twin.thermal.slowdown_c - self._temperature_c
        if room_c > _THERMAL_MARGIN_C and self._thermal_ceiling_mhz >= self._top_mhz:
            return
        share = _PER_DEGREE_S * room_c * seconds - _PER_DEGREE * rise_c
        moved = self._thermal_ceiling_mhz * (1.0 + max(-0.5, share))
        self._thermal_ceiling_mhz = min(float(self._top_mhz), max(float(self._twin.clocks.graphics_mhz[0]), moved))
