"""`DeviceGuard`: the only door to a setting. Remembers the prior state, applies, reads back, watches, restores.

`SeveralBoards` sets the boards of one service alike, and puts them back together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from ...base.errors import LockedOutside, PermissionRefused, WattridgeError
from ...base.formatting import UNKNOWN
from ...sensors.gpu import LIVE, Gpu, NotSupported
from ..metering.characterisation.store import known_characterisation
from ..results.settings import SETTINGS, WORDS, BoardSettings, Setting, nearest_supported, upper, why_not_set, with_unit
from .client import Asking, HelperGone, read_only, why_read_only
from .controls import Control, HelperControl, control_of
from .device_log import BY_HAND, Change
from .left_over import confirmed
from .obeying import Observation, differences, watch_board
from .outside import UNLOCK, locks_in, look

SETTLE_S: Final = 0.5  # from a setting to a clock worth looking at, where the board was never characterised


class DeviceGuard:
    """Settings of one board. A context manager: leaving it restores what was there before.

    A simulated board has nothing to protect and can always be set. A real one can be only where control is allowed:
    by `allow_control`, or later by `allow`. WATTRIDGE_READ_ONLY=1 and root's policy win over both; the policy does not
    forbid putting a board back.
    """

    def __init__(
        self,
        gpu: Gpu,
        *,
        allow_control: bool = False,
        asking: Asking = Asking.NEVER,
        by: str = BY_HAND,
        on_change: Callable[[Change], None] | None = None,
        outer: DeviceGuard | None = None,
    ) -> None:
        """Guard a board; `asking` is how the user may be asked for the rights, `by` and `on_change` are for the log.

        Within an `outer` guard, whose rights it shares, it restores the settings of that one.
        """
        self.gpu = gpu
        self._by = by
        self.on_change = on_change  # called for every change, and for every one that was refused
        self._shared: _Shared = _Shared(allow_control, asking) if outer is None else outer._shared
        self.over_locks: bool = outer is not None and outer.over_locks  # the user agrees to lose locks of other tools
        self._outer: dict[str, Setting] = {} if outer is None else dict(outer._applied)  # in force when this one began
        self._applied: dict[str, Setting] = dict(self._outer)  # in force
        self._touched: set[str] = set()  # to be put back: in force, or refused half way
        self._snapped: dict[str, str] = {}
        self._unobserved: tuple[Change, tuple[str, ...]] | None = None  # the last change, and the settings it made
        self._show_locks()

    # --- what is allowed --------------------------------------------------------------------------------------------

    @property
    def allowed(self) -> bool:
        """Whether settings may be made here at all."""
        return not self.why_forbidden

    @property
    def why_forbidden(self) -> str:
        """Why no setting may be made here; empty if they may."""
        info = self.gpu.info
        if info.source == "simulated":
            return ""
        if info.source == "unmetered":
            return "this device has no settings"
        if not info.live:
            return "a recording cannot be set"
        off = "control is off (--allow-control, or the switch in the window)"
        return why_read_only(info.uuid) or ("" if self._shared.allowed else off)

    @property
    def armed(self) -> bool:
        """Whether control was switched on. Without it, a window sets no board by hand, not even a simulated one."""
        return self._shared.allowed and self.allowed

    @property
    def holder(self) -> int | None:
        """The process that holds the rights to set a real board; None while none does."""
        control = self._shared.control
        return control.helper if isinstance(control, HelperControl) else None

    def allow(self, asking: Asking, cancel: threading.Event | None = None) -> tuple[str, ...]:
        """Allow settings and obtain the rights, for which the user may be asked. Returns notes for the user.

        Raises PermissionRefused if there are no rights to be had.
        """
        shared = self._shared
        before, shared.allowed, shared.asking = shared.allowed, True, asking
        try:
            return self.open(cancel)
        except WattridgeError:
            shared.allowed = before
            self.close()  # a helper that cannot put back what it found keeps no rights
            raise

    def forbid(self) -> None:
        """Restore, give the rights back, and refuse settings from now on."""
        try:
            self.restore()
        finally:
            self.close()
            self._shared.allowed = self.over_locks = False

    def open(self, cancel: threading.Event | None = None) -> tuple[str, ...]:
        """Get ready to set; return notes for the user. Raises WattridgeError if the board must not be set."""
        return self._control().open(cancel)

    def why_not(self, name: str) -> str | None:
        """Why a setting is not supported by this board; None if it is, as far as is known."""
        return self._shared.refused.get(name) or why_not_set(self.gpu, name)

    def require_unlocked(self, names: Collection[str]) -> None:
        """Raise LockedOutside where one of these clocks seems locked by another tool, unless `over_locks`.

        The board is looked at for as long as it takes to tell: before a session sets or runs anything.
        """
        if self.over_locks or self.gpu.info.source != "nvml" or UNLOCK.keys().isdisjoint(names):
            return
        for name, mhz in locks_in(self.gpu, look(self.gpu)).items():
            if name in names:
                what = (
                    f"the {WORDS[name]} stands at {mhz:g} MHz as if another tool had locked it, and cannot be put back"
                )
                remedy = f"unlock it first: {UNLOCK[name]}; or --over-locks sets it, and leaves it unlocked"
                raise LockedOutside(what, self.gpu.info.label, remedy)

    # --- settings ---------------------------------------------------------------------------------------------------

    @property
    def in_force(self) -> dict[str, Setting]:
        """Settings made here and still in force, by name."""
        return dict(self._applied)

    @property
    def applied(self) -> dict[str, float | None]:
        """As `in_force`, of a clock range the upper end."""
        return {name: upper(value) for name, value in self._applied.items()}

    @property
    def prior(self) -> dict[str, float | None]:
        """What those settings were before; None stands for 'not locked', or not known."""
        before = self._shared.control.prior() if self._shared.control is not None else {}
        outer = {name: upper(value) for name, value in self._outer.items()}
        return {name: outer.get(name, before.get(name)) for name in SETTINGS if name in self._touched}

    @property
    def settle_s(self) -> float:
        """How long this board takes from a setting until its sensors show it, as characterised; s."""
        if self._shared.settle_s is None:
            characterisation = known_characterisation(self.gpu.info)
            self._shared.settle_s = SETTLE_S if characterisation is None else characterisation.settle_ms / 1e3
        return self._shared.settle_s

    @property
    def settling_s(self) -> float:
        """What is left of that time since a setting was last made; 0 for a simulated board, which needs none."""
        if self._shared.changed_ns is None or not self.gpu.info.live:
            return 0.0
        return max(0.0, self.settle_s - (self.gpu.clock.now_ns() - self._shared.changed_ns) / 1e9)

    def unmet(self) -> str:
        """Settings of a real board that read back as something else, in words; empty if there are none."""
        if not self.gpu.info.live or not self._applied:
            return ""
        return "; ".join(differences(self.gpu, self._applied, self._read_back()))

    def nested(self, by: str | None = None) -> DeviceGuard:
        """A guard for a passing use of the same board: when it is left, the settings are as they are now."""
        self._shared.settle_s = None  # the board may have been characterised meanwhile
        return DeviceGuard(self.gpu, by=by or self._by, on_change=self.on_change, outer=self)

    def beside(self, gpu: Gpu) -> DeviceGuard:
        """A guard of another board with the same permission, to be closed by itself."""
        leave, asking = self._shared.allowed, self._shared.asking
        other = DeviceGuard(gpu, allow_control=leave, asking=asking, by=self._by, on_change=self.on_change)
        other.over_locks = self.over_locks
        return other

    def apply(self, **settings: Setting) -> bool:
        """Make settings by name; one in force already costs nothing. Whether any was made.

        A clock between two supported ones becomes the nearest; a profile of -1 stands for none. Raises
        PermissionRefused, NotSupported or InputError with the remedy; settings made before the refused one stay, and
        `restore` undoes them.
        """
        if not settings:
            return False
        self.open()
        changes = {}
        for name in sorted(settings, key=SETTINGS.index):
            settled, self._snapped[name] = nearest_supported(self.gpu, name, settings[name])
            if self._applied.get(name) != settled:
                changes[name] = settled
        if changes:
            self._set(changes)
        return bool(changes)

    def hold(self, **settings: Setting) -> bool:
        """Have these settings alone: make them, and put back every other one that was made here.

        Whether any changed. Raises as `apply`, and the driver's error where one cannot be put back.
        """
        others = [name for name in SETTINGS if name in self._touched and name not in settings]
        if others:
            self._put_back(others)
            self._touched.difference_update(others)
            kept = {name: value for name, value in self._applied.items() if name not in others}
            self._applied = kept | {name: self._outer[name] for name in others if name in self._outer}
            self._show_locks()
        return self.apply(**settings) or bool(others)

    def restore(self) -> None:
        """Put back what was there before the first setting. Safe to call at any time. Raises the driver's error."""
        control = self._shared.control
        mine = [name for name in SETTINGS if name in self._touched]
        if control is None or not mine:
            return
        try:
            self._put_back(mine)
        except WattridgeError:
            if not control.prior():  # the board is back, though its record is not gone
                self._applied = dict(self._outer)
                self._show_locks()
            raise
        self._settled(self._outer)

    def confirm(self) -> None:
        """Let the settings stay, also when this program ends; `wattridge restore` undoes them.

        Raises WattridgeError if that cannot be recorded; then everything has been put back.
        """
        if self._shared.control is None or not self._applied:
            return
        try:
            with self._noted(self._applied, "to stay"):
                self._shared.control.confirm()
        except WattridgeError:
            with suppress(WattridgeError):  # the helper has done it; if it could not, it tries again
                self.restore()
            raise
        self._settled({})

    def restore_prior(self, *, defaults: bool = False) -> None:
        """Put back everything that this program ever changed, confirmed and left-over settings included.

        Where the record of that cannot be read in full, what can be read is put back and PermissionRefused is raised;
        with `defaults` all other clocks are unlocked, and the power limit is the board's default.
        """
        control = self._control(putting_back=True)
        with self._noted((), "unlocked, default power limit" if defaults else "as before"):
            control.restore_prior(defaults=defaults)
        self._settled({})

    def close(self) -> None:
        """Give up the rights; what was not confirmed is put back. Safe to call twice."""
        control, self._shared.control = self._shared.control, None
        if control is not None:
            control.close()
        self._settled({})

    def __enter__(self) -> DeviceGuard:
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    # --- watching ---------------------------------------------------------------------------------------------------

    def watch(self, stop: threading.Event | None = None) -> Observation:
        """Look until the settings are read back and the clock is where it should be, or the board has had its time."""
        seen = watch_board(self.gpu, self._applied, self._read_back, self.settle_s, stop)
        self._note_observed(seen)
        snapped = [message for message in self._snapped.values() if message]
        return replace(seen, message="; ".join([seen.message, *snapped]))

    # --- inside -----------------------------------------------------------------------------------------------------

    def _control(self, *, putting_back: bool = False) -> Control:
        """What sets this board. Raises WattridgeError if no setting may be made, or nothing may be put back."""
        source, label = self.gpu.info.source, self.gpu.info.label
        if source == "unmetered":
            raise NotSupported("this device has no settings", label, "leave the device settings out")
        if source == "recorded":
            raise NotSupported("a recording cannot be set", label, "open the board itself or a simulated one")
        if source in LIVE and (reason := why_read_only(self.gpu.info.uuid)) and (read_only() or not putting_back):
            remedy = "unset it to allow control" if read_only() else "root decides this; see: wattridge helper"
            raise PermissionRefused(reason, label, remedy)
        if source in LIVE and not self._shared.allowed:
            raise PermissionRefused(
                "real boards are only looked at", label, "add --allow-control, or switch control on in the window"
            )
        if self._shared.control is None:
            self._shared.control = control_of(self.gpu, self._shared.asking)
        return self._shared.control

    def _set(self, changes: BoardSettings) -> None:
        control = self._shared.control
        assert control is not None
        self._touched.update(changes)
        for name in changes:
            self._applied.pop(name, None)  # not known until it is done
        try:
            with self._noted(changes, ", ".join(with_unit(name, value) for name, value in changes.items())):
                control.set(changes)
        except NotSupported as refused:
            for name in changes if len(changes) == 1 else ():
                self._shared.refused[name] = refused.what
            raise
        self._applied.update(changes)
        self._show_locks()

    def _put_back(self, names: Sequence[str]) -> None:
        """Give these settings the values that they had when this guard began."""
        control = self._shared.control
        assert control is not None
        with self._noted(names, "as before"):
            outer = {name: self._outer[name] for name in names if name in self._outer}
            if set(names) - set(outer):
                control.reset([name for name in names if name not in outer])
            if outer:
                control.set(outer)

    def _settled(self, in_force: BoardSettings) -> None:
        """Forget what was to be put back: nothing of this guard is left."""
        self._applied, self._outer = dict(in_force), dict(in_force)
        self._touched.clear()
        self._snapped.clear()
        self._show_locks()

    def _read_back(self) -> dict[str, float | None]:
        try:
            return self._shared.control.read_back() if self._shared.control is not None else {}
        except HelperGone:
            self._settled({})
            raise

    def _show_locks(self) -> None:
        """Show the locks made or confirmed here in the board's readings: no driver reports locks."""
        note = getattr(self.gpu, "note_locks", None)
        if note is not None:
            clocks = {**confirmed(self.gpu.info.uuid), **self.applied}
            note({name: mhz for name, mhz in clocks.items() if name.endswith("_mhz") and mhz is not None})

    @contextmanager
    def _noted(self, names: Iterable[str], asked: str) -> Iterator[None]:
        """Log a change, whether it succeeds or not. Without names it concerns every setting."""
        outcome, changed = "done", tuple(names)
        self._unobserved = None
        try:
            yield
        except WattridgeError as error:
            outcome = str(error)
            if isinstance(error, HelperGone):
                self._settled({})  # this guard can put nothing back any more
            raise
        finally:
            self._shared.changed_ns = self.gpu.clock.now_ns()
            what = ", ".join(WORDS[name] for name in changed) or "everything"
            change = Change.now(self.gpu.info, what, asked, self._by, outcome)
            if outcome == "done":
                self._unobserved = change, changed
            if self.on_change is not None:
                self.on_change(change)

    def _note_observed(self, seen: Observation) -> None:
        """Log the last change again, with what the board did."""
        if self._unobserved is None or self.on_change is None:
            return
        (change, names), self._unobserved = self._unobserved, None
        values = {name: seen.observed.get(name) for name in names or SETTINGS}
        observed = ", ".join(UNKNOWN if v is None else with_unit(name, v) for name, v in values.items())
        self.on_change(replace(change, observed=observed, outcome="done" if seen.obeyed else seen.message))


@dataclass(slots=True)
class _Shared:
    """The state that nested guards of one board share."""

    allowed: bool
    asking: Asking
    control: Control | None = None
    refused: dict[str, str] = field(default_factory=dict)  # setting -> the driver's reason
    settle_s: float | None = None
    changed_ns: int | None = None  # on the board's clock


class SeveralBoards:
    """A guard of several boards, as runners use one. The first guard belongs to its owner; the others end with this."""

    def __init__(self, first: DeviceGuard, others: Sequence[DeviceGuard]) -> None:
        self._others = tuple(others)
        self._guards = (first, *self._others)

    @property
    def applied(self) -> dict[str, float | None]:
        """The settings that are in force on every board alike."""
        first, *others = (guard.applied for guard in self._guards)
        return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}

    @property
    def settling_s(self) -> float:
        """Seconds until the sensors of every board show what was set."""
        return max(guard.settling_s for guard in self._guards)

    def open(self, names: Collection[str] = ()) -> None:
        """Get ready to set all boards, these settings of them, so that a refusal comes at the beginning.

        Raises WattridgeError.
        """
        for guard in self._guards:
            guard.open()
            guard.require_unlocked(names)

    def apply(self, **settings: Setting) -> bool:
        """Make the same settings on every board; whether any was made. Raises as `DeviceGuard.apply`.

        What was made on the boards before one that refuses stays until `restore`.
        """
        made = [guard.apply(**settings) for guard in self._guards]
        return any(made)

    def hold(self, **settings: Setting) -> bool:
        """Have these settings alone on every board; whether any changed. Raises as `DeviceGuard.hold`."""
        changed = [guard.hold(**settings) for guard in self._guards]
        return any(changed)

    def unmet(self) -> str:
        """As `DeviceGuard.unmet`, with the name of the board that reads back something else."""
        return "; ".join(f"{guard.gpu.info.label}: {unmet}" for guard in self._guards if (unmet := guard.unmet()))

    def restore(self) -> None:
        """Put every board back, also where one fails, and end the others' helpers. Raises the first error last."""
        errors: list[WattridgeError] = []
        for step in (*(guard.restore for guard in self._guards), *(guard.close for guard in self._others)):
            try:
                step()
            except WattridgeError as error:
                errors.append(error)
        if errors:
            raise errors[0]
