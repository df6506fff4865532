"""The way into the program that was frozen into a folder: the program itself, or a module that it runs as its child.

`resources/packaging/freeze.py` makes the folder. Only modules of this package are run.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys

from .base.processes import RUN

_ORIGINAL = "_ORIG"  # the bootloader keeps what the user had set under the name with this ending
_OF_THE_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LIBPATH")


def main() -> int:
    """Run the command line; returns the exit status."""
    _give_back_environment()
    multiprocessing.freeze_support()  # a process of a pool is called in a way of its own, and ends here
    if sys.argv[1:2] != [RUN]:
        from .__main__ import main as program

        return program()
    module = sys.argv[2] if len(sys.argv) > 2 else ""
    if not f"{module}.".startswith(f"{__package__}."):
        os.write(2, f"wattridge: {RUN}: '{module}' is no module of this program\n".encode("utf-8", "replace"))
        return 2
    sys.argv = [module, *sys.argv[3:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


def _give_back_environment() -> None:
    """Programs that are started from here get the environment as the user has it, without what the bootloader added.

    This process has loaded its libraries; the user's programs, compilers and sudo must not load ours.
    """
    for name in _OF_THE_LOADER:
        original = os.environ.pop(name + _ORIGINAL, None)
        if original is not None:
            os.environ[name] = original
        elif hasattr(sys, "_MEIPASS") and os.environ.get(name) == sys._MEIPASS:
            del os.environ[name]
    for name in [name for name in os.environ if name.startswith("_PYI_")]:
        del os.environ[name]
