"""`ControlService`: settings made by hand, on the engine thread; those of real boards return unless confirmed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...errors import WattridgeError
from ...sensors.gpu import Gpu
from ..board_settings import in_words
from ..control.guard import DeviceGuard
from ..control.left_over import left_over
from ..control.rights import Asking
from .events import Allow, Apply, Confirm, ControlChanged, Event, Forbid, SettingApplied


class ControlService:
    """Answers commands about one board's settings. For one thread; what goes wrong is raised as WattridgeError."""

    def __init__(self, gpu: Gpu, guard: DeviceGuard, on_event: Callable[[Event], None]) -> None:
        """Takes over the guard."""
        self._gpu = gpu
        self._guard = guard
        self._on_event = on_event
        self._until: float | None = None  # when what is not confirmed goes back, monotonic s

    @property
    def left_s(self) -> float | None:
        """Until what is not confirmed goes back; None where nothing waits."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def handle(self, command: Allow | Forbid | Apply | Confirm, abort: threading.Event) -> None:
        """Do as asked, and tell what came of it; `abort` breaks off a prompt or a look at the board."""
        match command:
            case Allow():
                self._allow(abort)
            case Forbid():
                self._until = None
                try:
                    self._guard.forbid()
                finally:
                    self.tell_control()
                self._tell(abort)
            case Confirm(keep=True):
                self._until = None
                words = in_words(self._guard.in_force)
                try:
                    self._guard.confirm()
                except WattridgeError:
                    self._tell(abort)  # what could not be confirmed is back
                    raise
                self._tell(abort, f"{words}: kept until everything is put back" if words else "")
            case Confirm():
                self._until = None
                self._guard.restore()
                self._tell(abort)
            case Apply(reset=True):
                self._until = None
                self._restore(command.defaults)
                self._tell(abort)
            case Apply():
                self._apply(command)
                self._tell(abort)

    def lapse(self, abort: threading.Event) -> None:
        """The time to confirm is over."""
        if self._until is not None:
            self._until = None
            self._guard.restore()
            self._tell(abort, "not confirmed in time: the settings are as they were before")

    def make_way(self) -> None:
        """Something else begins that sets the board: what is not confirmed goes back first."""
        if self._until is not None:
            self._until = None
            self._guard.restore()

    def tell_control(self, notes: tuple[str, ...] = ()) -> None:
        """Say whether settings may be made, and who holds the rights."""
        self._on_event(ControlChanged(self._guard.allowed, self._guard.holder, notes))

    def close(self) -> None:
        """Put everything back that nobody confirmed, and give the rights back."""
        self._until = None
        try:
            self._guard.restore()
        finally:
            self._guard.close()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _allow(self, abort: threading.Event) -> None:
        try:
            notes = self._guard.allow(Asking.WINDOW, abort)
        except WattridgeError:
            self.tell_control()
            raise
        self.tell_control(notes)

    def _apply(self, command: Apply) -> None:
        self._guard.apply(
            graphics_clock_mhz=command.graphics_clock_mhz,
            memory_clock_mhz=command.memory_clock_mhz,
            power_limit_w=command.power_limit_w,
        )
        if command.confirm_s is not None:
            self._until = time.monotonic() + command.confirm_s

    def _restore(self, defaults: bool) -> None:
        """Everything as before, what was confirmed or left over included; read-only windows may do that too.

        Nobody is asked for rights where nothing is recorded that could be put back.
        """
        if self._guard.allowed:
            self._guard.restore_prior(defaults=defaults)
            return
        if left_over(self._gpu.info.uuid) is None:
            return
        own = DeviceGuard(self._gpu, allow_control=True, asking=Asking.WINDOW, on_change=self._guard.on_change)
        try:
            own.restore_prior(defaults=defaults)
        finally:
            own.close()

    def _tell(self, abort: threading.Event, said: str = "") -> None:
        """What the board does now; `said` of it, unless it does not obey."""
        seen = self._guard.watch(abort)
        applied, prior = dict(self._guard.applied), dict(self._guard.prior)
        message = said if said and seen.obeyed else seen.message
        self._on_event(SettingApplied(applied, seen.observed, seen.obeyed, message, prior, self.left_s))
