"""`Tuner`: the engine thread. Commands go in by a queue, immutable events come out by a callback.

Settings made by hand are made on the same thread (`ControlService`); those of real boards return unless confirmed.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Final

from ...base.errors import WattridgeError
from ..control.client import Asking
from ..control.guard import DeviceGuard
from ..control.left_over import left_over
from ..models.clock_fits import caps_of_sweep, fit_of_sweep
from ..models.fit.caps import CapFit
from ..models.fit_documents import save_fit
from ..results.settings import in_words
from ..results.state import Purpose
from ..runner.boards import ReadyPlan
from ..space.result_table import ResultTable
from ..specification.plan import SessionPlan
from ..store.database import Store
from .events import (
    Allow,
    Apply,
    BoardReleased,
    Command,
    Confirm,
    ControlChanged,
    EngineFault,
    Event,
    FiguresRestated,
    Fit,
    FitFailed,
    FitFinished,
    FitProgress,
    Forbid,
    ForBoard,
    Open,
    Pause,
    Profile,
    ProfilingFinished,
    ProfilingProgress,
    Release,
    Resume,
    SessionStarted,
    SettingApplied,
    Show,
    Start,
    StartFailed,
    Stop,
)
from .live_session import LiveSession
from .run import run_session


class ControlService:
    """Carries out commands about one board's settings, on one thread. Raises WattridgeError."""

    def __init__(self, guard: DeviceGuard, on_event: Callable[[Event], None]) -> None:
        """Owns the guard from now on."""
        self._gpu = guard.gpu
        self.guard = guard
        self._on_event = on_event
        self._until: float | None = None  # when what is not confirmed is restored, monotonic s

    @property
    def left_s(self) -> float | None:
        """Seconds until what is not confirmed is restored; None if nothing waits."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def handle(self, command: Allow | Forbid | Apply | Confirm, abort: threading.Event) -> None:
        """Carry out a command and report the board's settings; `abort` breaks off a prompt or a look at the board."""
        message = ""
        match command:
            case Allow():
                notes: tuple[str, ...] = ()
                try:
                    notes = self.guard.allow(Asking.WINDOW, abort)
                finally:
                    self.report_control(notes)
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
                self.guard.apply(**command.settings)
                if command.confirm_s is not None:
                    self._until = time.monotonic() + command.confirm_s
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

    def _confirm(self, abort: threading.Event) -> str:
        """Keep the settings in force; return the message for the user."""
        self._until = None
        words = in_words(self.guard.in_force)
        try:
            self.guard.confirm()
        except WattridgeError:
            self._report(abort)  # the guard has restored what it could not confirm
            raise
        return f"{words}: kept until everything is put back" if words else ""

    def _restore_all(self, defaults: bool) -> None:
        """Put everything back, confirmed and left-over settings included; read-only windows may do that too.

        The user is not asked for rights if nothing is recorded that could be restored.
        """
        if self.guard.allowed:
            self.guard.restore_prior(defaults=defaults)
            return
        if left_over(self._gpu.info.uuid) is None:
            return
        guard = DeviceGuard(self._gpu, allow_control=True, asking=Asking.WINDOW, on_change=self.guard.on_change)
        try:
            guard.restore_prior(defaults=defaults)
        finally:
            guard.close()

    def _report(self, abort: threading.Event, message: str = "") -> None:
        """Report the board's present state, with `message` unless the board does not obey."""
        seen = self.guard.watch(abort)
        applied, prior = dict(self.guard.applied), dict(self.guard.prior)
        words = message if message and seen.obeyed else seen.message
        board = self._gpu.info.uuid
        self._on_event(SettingApplied(board, applied, seen.observed, seen.obeyed, words, prior, self.left_s))


_END: Final = object()


class Tuner:
    """Runs sessions, sweeps, profiling and settings one at a time on a thread of its own.

    `on_event` is called on that thread and must not block. Commands may be submitted from any thread at any moment.
    `guard_of` finds the guard of a board by its UUID, and raises WattridgeError if there is none. A guard that was
    asked for is owned from then on: when the thread ends, or lets go of the board, its settings are as they were.
    """

    def __init__(
        self,
        store: Store,
        on_event: Callable[[Event], None],
        *,
        guard_of: Callable[[str], DeviceGuard] | None = None,
    ) -> None:
        self._store = store
        self._on_event = on_event
        self._guard_of = guard_of
        self._controls: dict[str, ControlService] = {}  # by the boards' UUIDs
        self._commands: queue.SimpleQueue[Command | object] = queue.SimpleQueue()
        self._attention = threading.Event()  # a command waits: the runner breaks off and the session attends to it
        self._abort = threading.Event()  # Stop or the end waits: a sweep breaks off too
        self._last: tuple[SessionPlan, ResultTable, int] | None = None  # what a fit without a sweep is made from
        self._thread = threading.Thread(target=self._work, name="wattridge-engine", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, command: Command) -> None:
        """Hand over a command; returns at once."""
        self._put(command, abort=isinstance(command, Stop))

    def stop(self) -> None:
        """End the thread, and the session if one runs (it can be resumed later). Returns at once."""
        self._put(_END, abort=True)

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread's end."""
        if self._thread.ident is not None:
            self._thread.join(timeout)

    # --- the thread -------------------------------------------------------------------------------------------------

    def _put(self, command: Command | object, *, abort: bool) -> None:
        self._commands.put(command)  # first the command, then the flags: a thread that sees a flag finds the command
        if abort:
            self._abort.set()
        self._attention.set()

    def _work(self) -> None:
        try:
            while (command := self._take()) is not _END:
                self._guarded(lambda command=command: self._handle(command))  # type: ignore[misc]
        finally:
            for control in self._controls.values():
                self._guarded(control.close)

    def _take(self) -> Command | object:
        while True:
            try:
                left_s = [control.left_s for control in self._controls.values() if control.left_s is not None]
                command = self._commands.get(timeout=min(left_s, default=None))
                break
            except queue.Empty:
                for control in self._controls.values():
                    self._guarded(lambda control=control: control.expire(self._abort))  # type: ignore[misc]
        if isinstance(command, Stop) or command is _END:
            self._abort.clear()
        return command

    def _guarded(self, action: Callable[[], None]) -> None:
        """A failure is an event; the thread lives on."""
        try:
            action()
        except WattridgeError as error:
            self._on_event(EngineFault.of(error))
        except Exception as error:  # noqa: BLE001  (the thread's last line of defence)
            self._on_event(EngineFault(f"the engine failed: {type(error).__name__}: {error}", "please report this"))

    def _handle(self, command: Command | object) -> None:
        match command:
            case Start(plan):
                self._run(plan)
            case Open(session):
                self._open(session)
            case Show(plan, table):
                self._show(plan, table)
            case Fit():
                self._restore_unconfirmed()
                self._fit(command)
            case Profile():
                self._restore_unconfirmed()
                self._profile(command)
            case Apply() | Confirm() | Allow() | Forbid():
                self._control(command.board).handle(command, self._abort)
            case Release(board):
                self._release(board)
            case _:  # pause, resume and stop have no effect while no session runs
                pass

    def _run(self, plan: ReadyPlan) -> None:
        began = False

        def on_event(event: Event) -> None:
            nonlocal began
            began = began or isinstance(event, SessionStarted)
            self._on_event(event)

        try:
            self._restore_unconfirmed()
            result = run_session(plan, self._store, on_event, self._attention, self._attend)
        except Exception as error:
            if not began:
                self._on_event(StartFailed(plan, str(error)))
            raise
        self._remember(result.plan, result.table, result.session)

    def _attend(self, run: LiveSession) -> bool:
        """Handle the waiting commands between two measurements of a session; False ends it."""
        self._remember(run.plan, run.table, run.session)
        self._attention.clear()
        paused = sweep_stopped = False
        while True:
            try:
                command = self._commands.get() if paused else self._commands.get_nowait()
            except queue.Empty:
                return True
            match command:
                case Stop():
                    self._abort.clear()
                    if not sweep_stopped:
                        return False
                    sweep_stopped = False  # it stopped the sweep alone: the session continues
                case Pause() if not paused:
                    run.pause()
                    paused = True
                case Resume() if paused:
                    run.resume()
                    paused = False
                case Fit():
                    sweep_stopped |= self._fit_during(run, command, paused)
                case Release(board) if run.plan.origin.get("gpu") != board:
                    self._guarded(lambda board=board: self._release(board))  # type: ignore[misc]
                case Start() | Open() | Show() | Profile() | Apply() | Confirm() | Allow() | Forbid() | Release():
                    if isinstance(command, Start):
                        self._on_event(StartFailed(command.plan, "a session is running"))
                    self._on_event(EngineFault("a session is running", "stop it first"))
                    if isinstance(command, ForBoard):
                        self._guarded(lambda board=command.board: self._control(board).report_control())  # type: ignore[misc]
                case _ if command is _END:
                    self._commands.put(_END)  # for `_work`, once the session is closed
                    return False

    def _fit_during(self, run: LiveSession, command: Fit, paused: bool) -> bool:
        """Fit while a session waits; whether a sweep was stopped."""
        if not paused:
            run.pause("clock sweep")
        self._guarded(lambda: self._fit(command))
        if not paused:
            run.resume()
        return self._abort.is_set()

    def _open(self, session: int) -> None:
        from .stored import open_session  # imported late: planning imports much, and a window may only watch

        started, ended = open_session(self._store, session)
        self._remember(started.plan, started.table, session)
        self._on_event(started)
        self._on_event(ended)

    def _show(self, plan: SessionPlan, table: ResultTable) -> None:
        from .stored import show_recording

        started, ended = show_recording(plan, table)
        self._remember(plan, table, started.session)
        self._on_event(started)
        self._on_event(ended)

    def _remember(self, plan: SessionPlan, table: ResultTable, session: int) -> None:
        """Keep a session for a later fit; a roofline session measures the board, and is not fitted."""
        if plan.purpose is not Purpose.ROOFLINE:
            self._last = (plan, table, session)

    def _fit(self, command: Fit) -> None:
        self._on_event(FitProgress(0, command.points))
        try:
            guard = self._control(command.board).guard
            finished = self._swept(command, guard)
            save_fit(self._store, finished.fit, finished.source, uuid=guard.gpu.info.uuid)
        except BaseException:
            self._on_event(FitFailed())
            raise
        self._on_event(finished)

    def _swept(self, command: Fit, guard: DeviceGuard) -> FitFinished:
        fit, source = fit_of_sweep(
            guard.gpu,
            points=command.points,
            memory_clocks=command.memory_clocks,
            on_progress=lambda done, total: self._on_event(FitProgress(done, total)),
            stop=self._abort,
            guard=guard,
        )
        caps: CapFit | None = None
        if command.power_limits:
            caps = caps_of_sweep(
                guard.gpu,
                points=command.points,
                on_progress=lambda done, total: self._on_event(FitProgress(done, total, "power limits")),
                stop=self._abort,
                guard=guard,
            )
        return FitFinished(fit, source, caps)

    def _profile(self, command: Profile) -> None:
        from .profiling import profile_session  # imported late: few windows profile
        from .stored import open_session

        session, words = command.session, ""
        self._on_event(ProfilingProgress(session, 0, 0))
        try:
            gpu = self._control(command.board).guard.gpu
            words = profile_session(
                self._store,
                session,
                command.wanted,
                gpu,
                on_progress=lambda done, total: self._on_event(ProfilingProgress(session, done, total)),
                stop=self._abort,
            ).words
        finally:
            self._on_event(ProfilingFinished(session, words))
            if self._last is not None and self._last[2] == session:
                started, ended = open_session(self._store, session)
                self._remember(started.plan, started.table, session)
                self._on_event(FiguresRestated(session, started.plan, started.table, ended.progress))

    # --- boards -------------------------------------------------------------------------------------------------------

    def _control(self, board: str) -> ControlService:
        """The service of a board, made at the first command about its settings."""
        if board not in self._controls:
            if self._guard_of is None:
                raise WattridgeError("there is no GPU", remedy="open one")
            self._controls[board] = ControlService(self._guard_of(board), self._on_event)
        return self._controls[board]

    def _release(self, board: str) -> None:
        control = self._controls.pop(board, None)
        try:
            if control is not None:
                try:
                    control.close()
                finally:
                    control.report_control()  # it may be watched again
        finally:
            self._on_event(BoardReleased(board))

    def _restore_unconfirmed(self) -> None:
        """Restore unconfirmed settings before something else sets a board, while no countdown runs."""
        for control in self._controls.values():
            control.restore_unconfirmed(self._abort, "not confirmed before something else began")
