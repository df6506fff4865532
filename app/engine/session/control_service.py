"""`ControlService`: settings made by hand, on the engine thread; those of real boards return unless confirmed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...errors import WattridgeError
from ..board_settings import in_words
from ..control.guard import DeviceGuard
from ..control.left_over import left_over
from ..control.rights import Asking
from .events import Allow, Apply, Confirm, ControlChanged, Event, Forbid, SettingApplied


class ControlService:
    """Answers commands about one board's settings. For one thread; what goes wrong is raised as WattridgeError."""

    def __init__(self, guard: DeviceGuard, on_event: Callable[[Event], None]) -> None:
        """Owns the guard from now on."""
        self._gpu = guard.gpu
        self.guard = guard
        self._on_event = on_event
        self._until: float | None = None  # when what is not confirmed is restored, monotonic s

    @property
    def left_s(self) -> float | None:
        """Seconds until what is not confirmed is restored; None where nothing waits."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def handle(self, command: Allow | Forbid | Apply | Confirm, abort: threading.Event) -> None:
        """Carry out a command and report the board's settings; `abort` breaks off a prompt or a look at the board."""
        message = ""
        match command:
            case Allow():
                self._allow(abort)
                return
            case Forbid():
                self._until = None
                try:
                    self.guard.forbid()
                finally:
                    self.report_control()
            case Confirm(keep=True):
                message = self._confirm(abort)
            case Confirm():
                self._until = None
                self.guard.restore()
            case Apply(reset=True):
                self._until = None
                self._restore_all(command.defaults)
            case Apply():
                self._apply(command)
        self._report(abort, message)

    def expire(self, abort: threading.Event) -> None:
        """Restore what is not confirmed if the time to do so is over."""
        if self.left_s == 0.0:
            self.restore_unconfirmed(abort, "not confirmed in time")

    def restore_unconfirmed(self, abort: threading.Event, why: str) -> None:
        """Restore what is not confirmed, where there is something, and report it."""
        if self._until is not None:
            self._until = None
            self.guard.restore()
            self._report(abort, f"{why}: the settings are as they were before")

    def report_control(self, notes: tuple[str, ...] = ()) -> None:
        """Report whether control is switched on, and which process holds the rights."""
        self._on_event(ControlChanged(self._gpu.info.uuid, self.guard.armed, self.guard.holder, notes))

    def close(self) -> None:
        """Restore everything that was not confirmed, and give the rights back; control is off from now on."""
        self._until = None
        self.guard.forbid()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _allow(self, abort: threading.Event) -> None:
        notes: tuple[str, ...] = ()
        try:
            notes = self.guard.allow(Asking.WINDOW, abort)
        finally:
            self.report_control(notes)

    def _confirm(self, abort: threading.Event) -> str:
        """Keep what is set; what to say of it."""
        self._until = None
        words = in_words(self.guard.in_force)
        try:
            self.guard.confirm()
        except WattridgeError:
            self._report(abort)  # what could not be confirmed is restored
            raise
        return f"{words}: kept until everything is put back" if words else ""

    def _apply(self, command: Apply) -> None:
        self.guard.apply(
            graphics_clock_mhz=command.graphics_clock_mhz,
            memory_clock_mhz=command.memory_clock_mhz,
            power_limit_w=command.power_limit_w,
            workload_power_profile=command.workload_power_profile,
        )
        if command.confirm_s is not None:
            self._until = time.monotonic() + command.confirm_s

    def _restore_all(self, defaults: bool) -> None:
        """Everything as before, what was confirmed or left over included; read-only windows may do that too.

        The user is not asked for rights where nothing is recorded that could be restored.
        """
        if self.guard.allowed:
            self.guard.restore_prior(defaults=defaults)
            return
        if left_over(self._gpu.info.uuid) is None:
            return
        own = DeviceGuard(self._gpu, allow_control=True, asking=Asking.WINDOW, on_change=self.guard.on_change)
        try:
            own.restore_prior(defaults=defaults)
        finally:
            own.close()

    def _report(self, abort: threading.Event, message: str = "") -> None:
        """Report what the board does now, with `message` unless it does not obey."""
        seen = self.guard.watch(abort)
        applied, prior = dict(self.guard.applied), dict(self.guard.prior)
        words = message if message and seen.obeyed else seen.message
        board = self._gpu.info.uuid
        self._on_event(SettingApplied(board, applied, seen.observed, seen.obeyed, words, prior, self.left_s))
