"""The program with a window. `run` is the one door; importing this fails where Qt's system libraries are missing.

When Python collects cyclic garbage: on Qt's thread, between two turns of its event loop, and nowhere else.

Left to itself the collector runs wherever something is allocated. Inside `connect` it then destroys widgets while Qt
holds the lock that their destructors want, and the program stands still for ever; on the engine's thread it destroys
them where Qt forbids it; and a full collection halts every thread for tens of milliseconds.
"""

from __future__ import annotations

import ctypes
import gc
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import shiboken6
from PySide6.QtCore import QCoreApplication, QObject, Qt, Slot
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import QApplication

from ... import __version__
from ...base.installation import import_beside_the_main_thread
from ...base.paths import resources
from ...sensors.gpu import Gpu
from ..shared import theme
from ..shared.focus_ring import show_focus
from ..shared.settings import Settings, SettingsSaver
from ..shared.text_size import set_text_size
from ..shared.turns import timer
from ..shared.watched_boards import watched_gpu
from .log import Log
from .services import Services
from .window import EXAMPLE, MainWindow

if TYPE_CHECKING:
    from .doctor_window import FirstLook, Found
    from .script import Run

_OPENING_MS = 5_000  # within which a window opens
_TURN_MS = 100  # a session of a hundred thousand measurements is read within some seconds
_YOUNG = 2_000  # new objects that are worth a look
_MANY = 40_000  # that stay are a result: to look at 122,304 measurements takes 40 ms, at all there is then 90
_OLDER_EVERY, _ALL_EVERY = 50, 3000  # turns: 5 s and 5 min


def give_back() -> None:
    """Let the C library return freed memory to the system: glibc keeps it for ever behind one small piece in use."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def in_the_background() -> bool:
    """Whether the user works in another program."""
    return QGuiApplication.applicationState() != Qt.ApplicationState.ApplicationActive


class Collector(QObject):
    """Owns the collector while it lives. `stop` hands it back.

    Nothing is collected while the window opens: of the hundred thousand objects that this makes, some ten are garbage.
    Nor is a large result looked at: what it holds refers to nothing that refers back, and is freed when it is let go.
    What is left alone beside it may become garbage all the same; it is found when everything is looked at, which takes
    some 60 ms: once `unseen`, when nobody notices.
    """

    def __init__(self, parent: QObject | None = None, unseen: Callable[[], bool] = in_the_background) -> None:
        super().__init__(parent)
        self._unseen = unseen
        self._was_enabled = gc.isenabled()
        self._left_alone = False  # something was, since everything was looked at
        self._turns = self._stayed = 0  # `_stayed`: objects that were new since the last look at the others
        gc.disable()
        self._timer = timer(self, self._turn)
        self._timer.start(_OPENING_MS)

    @Slot()
    def settle(self) -> None:
        """The window is open. What is loaded by now stays loaded: no collection need look at it."""
        self._leave_alone()
        self._timer.start(_TURN_MS)

    def stop(self) -> None:
        self._timer.stop()
        gc.unfreeze()
        if self._was_enabled:
            gc.enable()

    @Slot()
    def _turn(self) -> None:
        self._timer.setInterval(_TURN_MS)
        self._turns += 1
        new = gc.get_count()[0]
        if self._stayed + new > _MANY:
            if new < _MANY:
                gc.collect()  # garbage would be left alone for good
            self._leave_alone()
            self._left_alone = True
        elif self._turns % _ALL_EVERY == 0:
            if self._left_alone and self._unseen():
                self.look_at_everything()
            else:
                gc.collect()
                self._stayed = 0
            give_back()
        elif self._turns % _OLDER_EVERY == 0:
            self._stayed += max(0, new - gc.collect(1))
        elif new > _YOUNG:
            self._stayed += max(0, new - gc.collect(0))

    def look_at_everything(self) -> None:
        """Find the garbage in what was left alone too. Takes long."""
        gc.unfreeze()
        gc.collect()
        self._leave_alone()
        self._left_alone = False

    def _leave_alone(self) -> None:
        """No collection looks at what there is now."""
        gc.freeze()
        self._stayed = 0


class Program(QObject):
    """Holds the window, and what lives as long."""

    def __init__(self, gpu: Gpu, *, seed: int = 0, speed: float = 1.0, others: tuple[str, ...] = ()) -> None:
        """`others` are selectors of boards that are watched beside `gpu`."""
        super().__init__()
        self.collector = Collector(self, self._is_unseen)
        self.window = MainWindow(Services(gpu, seed=seed, speed=speed), others, at_once=False)
        for _ in self.window.make_parts():
            QCoreApplication.processEvents()  # whoever asks is answered between two of them
        self._saver = SettingsSaver(self.window.settings.path, self)
        self.window.settings.save_beside(self._saver)
        self.window.panels_loaded.connect(self.collector.settle)
        self.first_look: FirstLook | None = None
        self.window.show()

    def close(self) -> None:
        """End everything, in the order that leaves nothing dangling for the interpreter's exit."""
        if self.first_look is not None:
            self.first_look.shutdown()
        self.window.close_at_once()
        self.window.settings.save_beside(None)
        self._saver.close()
        shiboken6.delete(self.window)
        self.collector.stop()

    def _is_unseen(self) -> bool:
        """Nothing is measured either: a reading of the sensors may be late by as much."""
        return in_the_background() and not self.window.bridge.activity.busy

    def offer_doctor(self) -> None:
        """Look at the machine once, at the first start, and offer to show what is missing or wrong."""
        if not self.window.settings.said("doctor"):
            self.window.settings.note_said("doctor")
            from .doctor_window import FirstLook  # imported late: the window's first picture does not need it

            self.first_look = FirstLook(self)
            self.first_look.amiss.connect(self._offer_findings)
            self.window.panels_loaded.connect(self.first_look.look)

    @Slot(str, object)
    def _offer_findings(self, what: str, findings: Found) -> None:
        self.window.notices.warn(what, "Show", lambda: self.window.side_windows.show_doctor(findings))
        self.window.actions_by_name["doctor"].triggered.connect(lambda: self.window.notices.end(what))

    def show_fault(self, what: str) -> None:
        """A fault of the program, on any thread: one line over the traces; all of it is in the log."""
        self.window.bridge.report(what, "this should not happen: Help, Copy diagnostics, and please report it")


def application() -> QApplication:
    """The one application, with its name, icon and colours."""
    existing = QApplication.instance()
    qt = existing if isinstance(existing, QApplication) else QApplication(sys.argv[:1])
    qt.setApplicationName("wattridge")
    qt.setApplicationDisplayName("Wattridge")
    qt.setApplicationVersion(__version__)
    qt.setDesktopFileName("wattridge")
    qt.setWindowIcon(QIcon(str(resources() / "icons" / "wattridge.svg")))
    settings = Settings()
    theme.install(qt, settings.theme)  # type: ignore[arg-type]
    set_text_size(settings.text_points)
    show_focus(qt)
    return qt


def run(
    selector: str | None,
    *,
    demo: bool = False,
    seed: int = 0,
    speed: float = 1.0,
    specification: Path | None = None,
    script: Callable[[Run], None] | None = None,
) -> int:
    """Open the window on a GPU and stay until it is closed; the exit status.

    Of several comma-separated selectors the first is shown in full, the others at a glance.
    `demo` runs the GEMM example at once; `specification` opens one without starting it; `script` runs beside
    the window, which runs its sessions. Raises InputError and
    SensorError if the GPU does not open.
    """
    sys.setswitchinterval(5e-5)  # the engine's thread hands over to Qt's a hundred times sooner than by default
    import_beside_the_main_thread()
    first, *others = (selector or "").split(",")
    gpu = watched_gpu(first or None, seed=seed, speed=speed)
    qt = application()
    ended = False  # from here on: an exception of a signal's would leave a window that is half made

    def end(*_: object) -> None:
        nonlocal ended
        ended = True  # Qt forgets a quit before its loop runs
        qt.exit(0)  # not quit(), which asks the windows first

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if signal.getsignal(number := getattr(signal, name, signal.SIGTERM)) is not signal.SIG_IGN:  # as by nohup
            signal.signal(number, end)  # the monitor's timer lets Python look at signals

    program = Program(gpu, seed=seed, speed=speed, others=tuple(other.strip() for other in others if other.strip()))
    log = Log(program.show_fault)
    running = None
    if gpu.info.source == "recorded" or script is not None:  # what was asked for is there, and not at Home
        program.window.workspaces.show_workspace("watch" if script is None else "tune")
    if script is not None:
        from .script import ScriptRun  # imported late: few windows have a script beside them

        running = ScriptRun(program.window.bridge, script)
        running.start()
    elif not demo:
        program.offer_doctor()
    if demo and specification is None:
        specification = resources() / "examples" / EXAMPLE
    if specification is not None:
        program.window.open_specification(specification, start=demo)
    status = 0 if ended else qt.exec()
    if running is not None:
        running.close()
    program.close()
    log.close()
    del running, program
    shiboken6.delete(qt)
    return status
