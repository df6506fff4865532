"""`Control`: what sets a board for a `DeviceGuard`.

A simulated board is set directly, a real one by the helper with rights, and one of another machine by the Wattridge
there, which puts it back when the connection ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from ...base.errors import PermissionRefused, WattridgeError
from ...base.formatting import finite_or_none
from ...sensors.gpu import Gpu, GpuLost, NotSupported, SettableGpu
from ...sensors.remote.gpu import RemoteGpu
from ...sensors.remote.messages import parse_error, sensor_error
from ..results.settings import (
    PROFILE,
    SETTINGS,
    BoardSettings,
    Setting,
    has_locks,
    lower,
    setting_of,
    upper,
    why_not_set,
)
from .client import UNREADABLE_REMEDY, Asking, Helper, HelperGone, start_helper
from .installing import OTHER_VERSION, installation
from .left_over import left_over

_CHANNEL_OF = {
    "power_limit_w": "power_limit_w",
    "memory_clock_mhz": "requested_memory_clock_mhz",
    "graphics_clock_mhz": "requested_graphics_clock_mhz",
}
_GUARDIAN_S = 3.0  # the helper's second process may still be putting the board back
UNLOCKING = "Whether clocks are locked cannot be read from a board: where they are set, restoring will unlock them."


class Control:
    """Sets one board, and puts it back to what was in force when it was opened.

    Every method may raise WattridgeError with the reason and the remedy.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._prior: dict[str, float | None] = {}

    def open(self, cancel: threading.Event | None = None) -> tuple[str, ...]:
        """Get ready, asking for rights where they are needed; return notes for the user."""
        return ()

    def set(self, settings: BoardSettings) -> None:
        """Make settings."""
        raise NotImplementedError

    def reset(self, names: Sequence[str]) -> None:
        """Put these settings back."""
        raise NotImplementedError

    def restore_prior(self, *, defaults: bool = False) -> None:
        """Put everything back, confirmed settings included; `defaults` for settings that no record holds."""
        raise NotImplementedError

    def confirm(self) -> None:
        """Let the settings in force stay."""
        self._prior.clear()

    def prior(self) -> dict[str, float | None]:
        """The values before the settings made here; None if that was 'not locked', or is not known."""
        return dict(self._prior)

    def read_back(self) -> dict[str, float | None]:
        """The values set now; None if a board does not report one, as none reports a lock."""
        raise NotImplementedError

    def close(self) -> None:
        """Put back what was not confirmed, and give up the rights. Safe to call twice."""
        raise NotImplementedError


class DirectControl(Control):
    """A simulated board has nothing to protect: it is set directly."""

    def __init__(self, gpu: Gpu) -> None:
        if not isinstance(gpu, SettableGpu):
            raise WattridgeError("this board has no settings", gpu.info.label)
        super().__init__(gpu)
        self._board: SettableGpu = gpu

    def set(self, settings: BoardSettings) -> None:
        now = self.read_back()
        for name in SETTINGS:
            if name in settings:
                if why := why_not_set(self._gpu, name):
                    raise NotSupported(why, self._gpu.info.label, "leave this setting out")
                self._prior.setdefault(name, now[name])
                self._make(name, upper(settings[name]))

    def reset(self, names: Sequence[str]) -> None:
        for name in reversed(SETTINGS):
            if name in names and name in self._prior:
                self._make(name, self._prior[name])
                del self._prior[name]

    def restore_prior(self, *, defaults: bool = False) -> None:
        """Return to the initial state: a simulated board has no clock locked, and its default limit."""
        for name in reversed(SETTINGS):
            if why_not_set(self._gpu, name) is None:
                self._make(name, None)
        self._prior.clear()

    def read_back(self) -> dict[str, float | None]:
        now = channels_now(self._gpu)
        return {name: now.get(channel) for name, channel in _CHANNEL_OF.items()}

    def close(self) -> None:
        self.reset(SETTINGS)

    def _make(self, name: str, value: float | None) -> None:
        if name == "power_limit_w":
            self._board.set_power_limit(value)
        elif name == "memory_clock_mhz":
            self._board.lock_memory_clock(None if value is None else round(value))
        elif name == "graphics_clock_mhz":
            self._board.lock_graphics_clock(None if value is None else round(value))


class HelperControl(Control):
    """A real board is set by the helper with rights, which is started when it is first needed."""

    def __init__(self, gpu: Gpu, asking: Asking) -> None:
        super().__init__(gpu)
        self._asking = asking
        self._helper: Helper | None = None

    @property
    def helper(self) -> int | None:
        """The process that holds the rights; None while none does."""
        return None if self._helper is None else self._helper.process

    def open(self, cancel: threading.Event | None = None) -> tuple[str, ...]:
        if self._helper is not None:
            return ()
        self._helper = self._start(cancel)
        if unreadable := self._helper.state.get("unreadable"):
            self.close()
            what = f"not set, for its settings before are not known: {unreadable}"
            remedy = f"to put back what can be read: wattridge restore; {UNREADABLE_REMEDY}"
            raise PermissionRefused(what, self._gpu.info.label, remedy)
        notes = [OTHER_VERSION] if (installed := installation()).ready and not installed.current else []
        if self._helper.state.get("left_over"):
            self._helper.ask("reset", to="start")
            notes.append("Settings that an earlier session left over were put back first.")
        is_kept = "locked_graphics_mhz" in self._helper.state.get("kept", {})
        if self._gpu.info.source == "nvml" and has_locks(self._gpu, "graphics_clock_mhz") and not is_kept:
            notes.append(UNLOCKING)
        return tuple(notes)

    def set(self, settings: BoardSettings) -> None:
        self._ask("set", settings={name: _on_the_wire(name, value) for name, value in settings.items()})

    def reset(self, names: Sequence[str]) -> None:
        if self._helper is None:
            return
        try:
            self._ask("reset", settings=list(names))
        except HelperGone as gone:
            if not gone.back:
                raise

    def restore_prior(self, *, defaults: bool = False) -> None:
        """Put everything back, and remove the record.

        `defaults` is for a board whose record cannot be read: what it does not hold is unlocked or gets its default.
        """
        for last in (False, True):  # where the helper has ended, a second one does it
            if self._helper is None:
                self._helper = self._start()
            to = "defaults" if defaults and self._helper.state.get("unreadable") else "prior"
            try:
                self._ask("reset", to=to)
                return
            except HelperGone as gone:
                if last or not gone.back:  # a driver that hangs would hang again
                    raise

    def confirm(self) -> None:
        self._ask("confirm")

    def prior(self) -> dict[str, float | None]:
        state = self._helper.state if self._helper is not None else {}
        before = {**state.get("prior", {}), **state.get("kept", {})}
        return {name: setting_of(name, before) for name in SETTINGS if name in state.get("applied", {})}

    def read_back(self) -> dict[str, float | None]:
        state = self._ask("state") if self._helper is not None else {}
        applied, by, now = state.get("applied", {}), state.get("by", {}), state.get("now", {})
        values = {name: setting_of(name, now) for name in (PROFILE, "power_limit_w")}
        for place, name in enumerate(("memory_clock_mhz", "graphics_clock_mhz")):
            clocks = now.get("application_clocks_mhz")
            reported = name in applied and by.get(name) == "application_clocks_mhz" and clocks
            values[name] = float(clocks[place]) if reported else None
        return values

    def close(self) -> None:
        helper, self._helper = self._helper, None
        if helper is not None:
            helper.close()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _start(self, cancel: threading.Event | None = None) -> Helper:
        info = self._gpu.info
        return start_helper(info.uuid, info.label, self._asking, cancel)

    def _ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        """Send a request. Raises HelperGone if the helper has ended; the next request starts another one."""
        if self._helper is None:
            self.open()
        assert self._helper is not None
        try:
            return self._helper.ask(verb, **fields)
        except HelperGone as gone:
            back = self._after_its_end()
            outcome = "what was there before is back" if back else "what it set may still be in force"
            raise HelperGone(f"{gone.what}, and {outcome}", gone.where, gone.remedy, back=back) from None

    def _after_its_end(self) -> bool:
        """Return whether the board is known to be back.

        Where the guardian process was killed too, another helper puts back what is left, if no password is needed.
        """
        self.close()
        info = self._gpu.info
        with suppress(WattridgeError):  # the record stays, and the next start sees it
            helper = start_helper(info.uuid, info.label, Asking.NEVER)
            try:
                helper.ask("reset", to="start")
            finally:
                helper.close()
        until = time.monotonic() + _GUARDIAN_S
        while (left := left_over(info.uuid)) is not None and (left.unfinished or left.held_by is not None):
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        return True


def control_of(gpu: Gpu, asking: Asking) -> Control:
    """What sets this board: the other machine where it is remote, itself where it is simulated, else the helper."""
    if isinstance(gpu, RemoteGpu):
        return RemoteControl(gpu)
    return DirectControl(gpu) if gpu.info.source == "simulated" else HelperControl(gpu, asking)


def channels_now(gpu: Gpu) -> dict[str, float | None]:
    """Every channel now, None if unknown."""
    values = zip(gpu.channels, gpu.read().values, strict=True)
    return {channel.name: finite_or_none(value) for channel, value in values}


def _on_the_wire(name: str, value: Setting) -> Any:
    if name == "graphics_clock_mhz":
        return [round(lower(value)), round(upper(value))]
    return float(upper(value)) if name == "power_limit_w" else round(upper(value))


_ANSWER_S: Final = 60.0  # the helper there may need 20 s, and start another one


class RemoteControl(Control):
    """A board of another machine: its settings last as long as the connection."""

    _gpu: RemoteGpu

    def __init__(self, gpu: RemoteGpu) -> None:
        super().__init__(gpu)
        self._connection: object = None  # the one on which control was requested

    def open(self, cancel: threading.Event | None = None) -> tuple[str, ...]:
        ours = self._connection is self._gpu.connection and self._gpu.connection.alive
        if ours or self._prior:  # where the connection of settings broke, the next request reports it
            return ()
        answer = self._answer("open")
        self._connection = self._gpu.connection
        notes = answer.get("notes")
        return tuple(note for note in notes if isinstance(note, str)) if isinstance(notes, list) else ()

    def set(self, settings: BoardSettings) -> None:
        wanted = {name: [lower(v), upper(v)] if isinstance(v, tuple) else float(v) for name, v in settings.items()}
        self._prior.update(dict.fromkeys(settings, None))  # to be put back, whatever the answer
        self._ask("set", settings=wanted)

    def reset(self, names: Sequence[str]) -> None:
        self._ask("reset", settings=list(names))
        for name in names:
            self._prior.pop(name, None)

    def restore_prior(self, *, defaults: bool = False) -> None:
        self.open()
        self._ask("restore_prior", defaults=defaults)
        self._prior.clear()

    def confirm(self) -> None:
        self._ask("confirm")
        self._prior.clear()

    def read_back(self) -> dict[str, float | None]:
        now = self._ask("state").get("now")
        values = now if isinstance(now, dict) else {}
        return {name: _figure(values.get(name)) for name in SETTINGS}

    def close(self) -> None:
        ours, self._connection = self._connection, None
        if ours is self._gpu.connection and self._gpu.connection.alive:
            self._answer("give_back")
        self._prior.clear()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        """Send a request. Raises HelperGone if the connection is not the one on which control was requested."""
        if self._connection is not self._gpu.connection:
            raise self._gone()
        answer = self._answer(verb, **fields)
        prior = answer.get("prior")
        if isinstance(prior, dict):
            self._prior = {name: _figure(prior[name]) for name in SETTINGS if name in prior}
        return answer

    def _answer(self, verb: str, **fields: Any) -> dict[str, Any]:
        try:
            message = self._gpu.answer(verb, _ANSWER_S, **fields)
        except GpuLost:
            raise self._gone() from None
        if "error" in message:
            kind, what, remedy = parse_error(message["error"])
            if kind == "refused":
                raise PermissionRefused(what, self._gpu.info.label, remedy)
            raise sensor_error(kind, what, self._gpu.info.label, remedy)
        answer = message.get("answer")
        return answer if isinstance(answer, dict) else {}

    def _gone(self) -> WattridgeError:
        self._prior.clear()
        what = "the connection broke; what was set there is put back there within seconds"
        return HelperGone(
            what, self._gpu.info.label, f"to be sure: wattridge restore --gpu {self._gpu.address.selector}"
        )


def _figure(value: Any) -> float | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
