"""`DeviceGuard`: the only door to a setting. Remembers the prior state, applies, reads back, watches, restores."""

from __future__ import annotations

import math
import os
import threading
from dataclasses import dataclass
from typing import Final

from app.errors import PermissionRefused, WattridgeError
from app.sensors.errors import NotSupported
from app.sensors.event_reasons import LIMITING, EventReason, names
from app.sensors.gpu import Gpu, SettableGpu

SETTLE_S: Final = 0.5  # from a setting to a clock worth looking at
# In order of application: the supported graphics clocks depend on the memory clock. Each with its read-back channel.
_CHANNEL_OF: Final = {
    "power_limit_w": "power_limit_w",
    "memory_clock_mhz": "requested_memory_clock_mhz",
    "graphics_clock_mhz": "requested_graphics_clock_mhz",
}
_TOLERANCE: Final = 1.0  # MHz or W between what was asked for and what is read back


@dataclass(frozen=True, slots=True)
class Watched:
    """What the board does after a setting."""

    observed: dict[str, float | None]  # graphics_clock_mhz, memory_clock_mhz, power_limit_w; None where not told
    obeyed: bool
    message: str


class DeviceGuard:
    """Settings of one board. A context manager: leaving it restores what was there before.

    A simulated board has nothing to protect and can always be set. A real one cannot in this version, whatever
    `allow_control` says; WATTRIDGE_READ_ONLY=1 wins over everything.
    """

    def __init__(self, gpu: Gpu, *, allow_control: bool = False) -> None:
        self._gpu = gpu
        self._allow_control = allow_control
        self._prior: dict[str, float | None] = {}
        self._applied: dict[str, float | None] = {}

    @property
    def applied(self) -> dict[str, float | None]:
        """Settings made here and still in force, by name."""
        return dict(self._applied)

    @property
    def prior(self) -> dict[str, float | None]:
        """What those settings were before; None stands for 'not locked'."""
        return dict(self._prior)

    def nested(self) -> DeviceGuard:
        """A guard for a passing use of the same board: when it is left, the settings are as they are now."""
        inner = DeviceGuard(self._gpu, allow_control=self._allow_control)
        inner._applied = dict(self._applied)
        return inner

    def apply(
        self,
        *,
        graphics_clock_mhz: float | None = None,
        memory_clock_mhz: float | None = None,
        power_limit_w: float | None = None,
    ) -> None:
        """Make settings; None leaves one as it is, and one in force already costs nothing.

        Raises PermissionRefused or NotSupported with the remedy; settings made before the refused one stay, and
        `restore` takes them back.
        """
        wanted = {
            "power_limit_w": power_limit_w,
            "memory_clock_mhz": memory_clock_mhz,
            "graphics_clock_mhz": graphics_clock_mhz,
        }
        changes = {n: v for n, v in wanted.items() if v is not None and self._applied.get(n) != v}
        if not changes:
            return
        board = self._settable()
        now = self._read()
        for name, value in changes.items():
            if name not in self._prior:
                self._prior[name] = self._applied.get(name, now[_CHANNEL_OF[name]])
            _set(board, name, value)
            self._applied[name] = value

    def restore(self) -> None:
        """Put back what was there before the first setting. Safe to call at any time; raises what the board says."""
        if not self._prior:
            return
        board = self._settable()
        for name in reversed(_CHANNEL_OF):
            if name in self._prior:
                _set(board, name, self._prior[name])
                del self._prior[name]
                self._applied.pop(name, None)

    def watch(self, stop: threading.Event | None = None) -> Watched:
        """Give the board a moment, then read back the settings and the observed clock, on the board's clock."""
        self._gpu.clock.wait(SETTLE_S, stop)
        now = self._read()
        problems = [
            f"{name} is {_shown(now[channel])} instead of {self._applied[name]:g}"
            for name, channel in _CHANNEL_OF.items()
            if self._applied.get(name) is not None and _differs(now[channel], self._applied[name])
        ]
        clock, locked = now["graphics_clock_mhz"], self._applied.get("graphics_clock_mhz")
        reasons = EventReason(int(now["event_reasons"] or 0))
        if locked is not None and clock is not None and not problems:
            slower_for_a_reason = reasons & (LIMITING | EventReason.IDLE)
            if clock > locked + _TOLERANCE or (clock < locked - _TOLERANCE and not slower_for_a_reason):
                problems.append(f"the clock runs at {clock:g} MHz instead of {locked:g}")
        observed = {name: now[name] for name in ("graphics_clock_mhz", "memory_clock_mhz", "power_limit_w")}
        message = "; ".join(problems) or self._in_words(clock, locked, reasons)
        return Watched(observed, not problems, message)

    def __enter__(self) -> DeviceGuard:
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _in_words(self, clock: float | None, locked: float | None, reasons: EventReason) -> str:
        if not self._applied:
            return "the settings are as they were before"
        made = ", ".join(f"{name} {value:g}" for name, value in self._applied.items() if value is not None)
        if clock is not None and locked is not None and clock < locked - _TOLERANCE:
            return f"{made}; the clock is {clock:g} MHz now ({', '.join(names(int(reasons)))})"
        return made

    def _settable(self) -> SettableGpu:
        source, name = self._gpu.info.source, self._gpu.info.name
        if source == "recorded":
            raise NotSupported("a recording cannot be set", name, "open the board itself or a simulated one")
        if source == "nvml":
            if os.environ.get("WATTRIDGE_READ_ONLY") == "1":
                raise PermissionRefused(
                    "WATTRIDGE_READ_ONLY=1 forbids every setting", name, "unset it to allow control"
                )
            raise PermissionRefused(
                "this version does not set real boards", name, "use the exported nvidia-smi script, as root"
            )
        if not isinstance(self._gpu, SettableGpu):
            raise WattridgeError("this board has no settings", name)
        return self._gpu

    def _read(self) -> dict[str, float | None]:
        """Every channel now, None where unknown."""
        values = zip(self._gpu.channels, self._gpu.read().values, strict=True)
        return {channel.name: None if math.isnan(value) else value for channel, value in values}


def _set(board: SettableGpu, name: str, value: float | None) -> None:
    if name == "power_limit_w":
        board.set_power_limit(value)
    elif name == "memory_clock_mhz":
        board.lock_memory_clock(None if value is None else round(value))
    else:
        board.lock_graphics_clock(None if value is None else round(value))


def _differs(read_back: float | None, asked: float | None) -> bool:
    """A board that does not tell cannot be caught."""
    return read_back is not None and asked is not None and abs(read_back - asked) > _TOLERANCE


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"
