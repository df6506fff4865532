"""The command lines of child processes that run this program's own modules; nothing else knows how one is called.

Nothing is imported from the working directory: it may be a folder of kernels that holds an `app.py` or a `numpy.py`.
Python has `-P` for that, or `-I`. A program frozen into a folder has no Python to call: it calls itself with `RUN` and
the name of the module, which `frozen.py` hears before anything else; it never imports from a folder of the user's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

RUN: Final = "--run-own-module"
_PACKAGE: Final = Path(__file__).resolve().parent


def is_frozen() -> bool:
    """Whether this program was frozen into a folder, with a Python of its own inside."""
    return bool(getattr(sys, "frozen", False))


def frozen_folder() -> Path | None:
    """The folder of what the frozen program is made of; None where it is not frozen."""
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
