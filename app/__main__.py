"""The command `wattridge`, also `python -m wattridge` and in a checkout `python -m app`.

Until the command runs, Ctrl+C ends the process at once.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def _end(_number: int, _frame: FrameType | None) -> None:
    """While modules are imported nothing has begun, and an exception could surface anywhere in them."""
    os.write(2, b"wattridge: stopped\n")
    os._exit(130)


def _quiet_interrupt(unraisable: sys.UnraisableHookArgs) -> None:
    """An interrupt inside a destructor or callback is no fault: the command line sees the next one, or its end."""
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def main() -> int:
    """Import the command line and run it; the exit status."""
    before = signal.signal(signal.SIGINT, _end)
    if sys.platform != "win32":
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored by who started this, every child would seem to succeed
    sys.unraisablehook = _quiet_interrupt
    from .base.processes import use_one_core

    use_one_core()  # before NumPy is imported
    from .cli import main as run

    if before is signal.SIG_IGN:  # nohup, and jobs in the background of a script
        signal.signal(signal.SIGINT, before)
        return run()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    status = run()
    signal.signal(signal.SIGINT, _end)  # the interpreter's own end would print a traceback
    return status


if __name__ == "__main__":
    # -m puts the working directory first. Unless this package lies there, nothing is to be imported from it. A frozen
    # program has its own library in that place.
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    isolated = sys.flags.safe_path or getattr(sys, "frozen", False)
    if not isolated and os.path.realpath(sys.path[0]) != os.path.realpath(here):
        del sys.path[0]
    sys.exit(main())
