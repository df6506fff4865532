"""Signals that end a command: what was measured by then is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


class Stop(threading.Event):
    """Set when the command is to end and keep what it has; `interrupted` where Ctrl+C was the reason."""

    interrupted = False

    def handle(self, number: int) -> None:
        self.interrupted = number == signal.SIGINT
        self.set()


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

    The exit status is the one that a shell shows for that signal.
    """
    seen = False

    def end(number: int) -> None:
        nonlocal seen
        if not seen:  # a second one must not break off that
            seen = True
            raise SystemExit(128 + number)

    with _handling(_ending(), end):
        yield


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
