"""Signals that end a command: what was measured by then is kept."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

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
    found = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    return tuple(each for each in found if signal.getsignal(each) is not signal.SIG_IGN)


@contextmanager
def _handling(numbers: Sequence[signal.Signals], handle: Callable[[int], None]) -> Iterator[None]:
    """Python hears of signals on the main thread only; elsewhere nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, lambda heard, _: handle(heard)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
