"""The command lines of child processes that run this program's own modules, all built here.

Nothing is imported from the working directory: it may be a folder of kernels that holds an `app.py` or a `numpy.py`.
Python has `-P` for that, or `-I`. A program frozen into a folder has no Python to call: it calls itself with `RUN` and
the name of the module, which `frozen.py` hears before anything else; it never imports from a folder of the user's.

Signals that end a command: what was measured by then is kept.

Remarks and a progress bar on standard error, so that standard output stays the document.

Linear algebra on one core: the matrices here are small, and threads that wait for each other on a busy machine cost
a frequency fit seven times its processor time, and the compilers their cores.

NumPy and SciPy read the number when they are imported, from the environment; the user's
programs, which this one starts, get the environment as it was.
"""

from __future__ import annotations

import _thread
import logging
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from .text import one_line, visible

RUN: Final = "--run-own-module"
_PACKAGE: Final = Path(__file__).resolve().parents[1]


def is_frozen() -> bool:
    """Whether this program was frozen into a folder, with a Python of its own inside."""
    return bool(getattr(sys, "frozen", False))


def frozen_folder() -> Path | None:
    """The folder of what the frozen program is made of; None if it is not frozen."""
    return Path(sys._MEIPASS) if is_frozen() and hasattr(sys, "_MEIPASS") else None


def module_command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module with all that it imports; needs `PYTHONPATH`, unless frozen."""
    if is_frozen():
        return [sys.executable, RUN, module, *arguments]
    return [sys.executable, "-P", "-m", module, *arguments]


def lone_module_command(module: str, *arguments: str, packages: bool = False) -> list[str]:
    """The command line that runs a module alone, which starts faster: nothing of its package is imported.

    It has Python's standard library, and with `packages` those that are installed. A package is run as Python runs
    its folder. Frozen, there is no faster way.
    """
    if is_frozen():
        return [sys.executable, RUN, module, *arguments]
    path = _PACKAGE.joinpath(*module.split(".")[1:])  # installed editable, its folder has another name
    flags = ["-P"] if packages else ["-I", "-S", "-B"]
    return [sys.executable, *flags, str(path if path.is_dir() else path.with_suffix(".py")), *arguments]


_AGAIN_S: Final = 0.05  # from an exception that was lost to the next


class Stop(threading.Event):
    """Set when the command is to end and keep what it has; `interrupted` where Ctrl+C was the reason."""

    interrupted = False

    def handle(self, number: int) -> None:
        """For a signal's handler. It may interrupt a wait for this event that holds the event's lock: not set here."""
        self.interrupted = number == signal.SIGINT
        _thread.start_new_thread(self.set, ())


_stops: list[Stop] = []


def current_stop() -> Stop | None:
    """That of the innermost `stop_on_interrupt`: for a wait so deep that it is not handed an event."""
    return _stops[-1] if _stops else None


@contextmanager
def stop_on_interrupt() -> Iterator[Stop]:
    """While inside, Ctrl+C, SIGTERM and SIGHUP set the event instead of breaking off: what was measured is kept."""
    stop = Stop()
    _stops.append(stop)
    try:
        with _handling((signal.SIGINT, *_ending()), stop.handle):
            yield stop
    finally:
        _stops.remove(stop)


@contextmanager
def end_on_signals() -> Iterator[None]:
    """While inside, SIGTERM and SIGHUP end the program as an exception does: its contexts are closed.

    The exit status is the one that a shell shows for that signal. An exception that is lost, as those in destructors
    and callbacks are, is raised again.
    """
    raised: SystemExit | None = None
    report = sys.unraisablehook

    def end(number: int) -> None:
        nonlocal raised
        if raised is None:  # a second one must not break off that
            raised = SystemExit(128 + number)
            raise raised

    def raise_again(lost: sys.UnraisableHookArgs) -> None:
        nonlocal raised
        if raised is None or lost.exc_value is not raised:
            report(lost)
            return
        _thread.start_new_thread(_send_later, (int(str(raised)) - 128,))
        raised = None

    with _handling(_ending(), end):
        sys.unraisablehook = raise_again
        try:
            yield
        finally:
            sys.unraisablehook = report


def _send_later(number: int) -> None:
    time.sleep(_AGAIN_S)
    os.kill(os.getpid(), number)


def _ending() -> tuple[signal.Signals, ...]:
    """Signals that ask a program to end, without those that it was started to ignore (`nohup`)."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    return tuple(number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN)


@contextmanager
def _handling(numbers: Sequence[signal.Signals], handle: Callable[[int], None]) -> Iterator[None]:
    """Handlers are installed on the main thread only, the one on which Python runs them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, lambda heard, _: handle(heard)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


LOG: Final = logging.getLogger("wattridge")  # what the program says, and what its sessions do
LOG.addHandler(logging.NullHandler())


def log_to(path: str) -> None:
    """Append everything that is logged to a file; nothing where the path is empty. Raises OSError."""
    if path and not any(isinstance(handler, logging.FileHandler) for handler in LOG.handlers):
        handler = logging.FileHandler(os.path.expanduser(path), encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        LOG.addHandler(handler)
        LOG.setLevel(logging.DEBUG)


def in_notebook() -> bool:
    """Tell whether what is printed stands below a cell of a notebook."""
    return type(sys.stderr).__module__.partition(".")[0] == "ipykernel"


class ProgressBar:
    """One line on standard error: a bar with rate, best so far and ETA.

    It changes in place in terminals and notebooks; elsewhere a line follows the other, seconds apart.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._terminal = sys.stderr.isatty() or in_notebook()
        self._quiet = quiet
        self._last = 0.0
        self._width = 0

    def show(self, done: int, total: int, details: str, *, final: bool = False) -> None:
        now = time.monotonic()
        if self._quiet or (not final and now - self._last < (0.1 if self._terminal else 2.0)):
            return
        self._last = now
        details = one_line(details)
        line = f"{done} so far  {details}"
        if total:  # how many there will be is known
            filled = round(min(1.0, done / total) * 24)
            line = f"[{'█' * filled}{'░' * (24 - filled)}] {done}/{total}  {details}"
        if self._terminal:
            columns = shutil.get_terminal_size().columns
            line = line[: columns - 1]
            _to_stderr("\r" + line.ljust(self._width) + ("\n" if final else ""))
            self._width = len(line)
        else:
            _to_stderr(line + "\n")

    def of_step(self, done: int, total: int, what: str) -> None:
        """Show a step of so many; the last one ends the line."""
        self.show(done, total, what, final=done == total)


def say(text: str) -> None:
    """A remark on standard error, in one line, so that standard output stays the document; it is logged too."""
    LOG.info("%s", one_line(text))
    _to_stderr(one_line(text) + "\n")


def say_lines(text: str) -> None:
    """Lines as they are, but for what would act on a terminal."""
    for line in text.splitlines():
        _to_stderr(visible(line) + "\n")


def ask(text: str) -> None:
    """A question on standard error, over the one before it; an empty one ends the line."""
    _to_stderr(f"\r{visible(text)}" if text else "\n")


def _to_stderr(text: str) -> None:
    """Write without failing: a full disk behind standard error must not end what is being measured."""
    with suppress(OSError, ValueError):  # ValueError: it was closed
        sys.stderr.write(text)
        sys.stderr.flush()


_VARIABLE = "OPENBLAS_NUM_THREADS"
_set_here = False


def use_one_core() -> None:
    """To be called before NumPy is imported. A number that the user has set stays."""
    global _set_here
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = "1"
        _set_here = True


def original_environment() -> dict[str, str]:
    """The environment without what was set here."""
    return {name: value for name, value in os.environ.items() if not (_set_here and name == _VARIABLE)}
