"""The environment of the tests: the same for every user, whatever theirs says."""

from __future__ import annotations

import os
import signal
import time

import pytest

_PREFIXES = ("WATTRIDGE_", "XDG_", "LC_", "QT_", "PYTHON", "OPENBLAS_", "OMP_", "MKL_", "CUDA_VISIBLE_", "SUDO_")
_NAMES = ("COLUMNS", "LINES", "LANG", "LANGUAGE", "TZ", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")
# where the real measurements, the program under test and Kernel Tuner are, and whether kernels may run on a board here
_KEPT = ("WATTRIDGE_SHARED", "PYTHONPATH", "WATTRIDGE_TEST_BOARD", "WATTRIDGE_KERNEL_TUNER")


def clear() -> None:
    """Remove what changes what the program does. Call it before the program or Qt is imported."""
    for name in [name for name in os.environ if name.startswith(_PREFIXES) or name in _NAMES]:
        if name not in _KEPT:
            del os.environ[name]
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    for ignored in (signal.SIGINT, signal.SIGQUIT):  # by nohup and jobs in the background; children would inherit that
        if signal.getsignal(ignored) is signal.SIG_IGN:
            signal.signal(ignored, signal.default_int_handler if ignored == signal.SIGINT else signal.SIG_DFL)
    if hasattr(time, "tzset"):
        time.tzset()


def need_terminal() -> None:
    """Skip the test where no terminal can be opened: a chroot without /dev/pts."""
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as error:
        pytest.skip(f"no terminal can be opened here: {error}")
