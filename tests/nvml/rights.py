"""A sudo and a pkexec that are not there: they start the helper as the real ones do, with an empty environment.

The helper they start is the product's own, over the stand-in, with its records in a folder of the test's; what the
real ones would forbid they forbid, and they write down whenever a person would have been asked for a password.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import sys
import time
from pathlib import Path

_PROGRAM = """#!{python} -I
import os, sys
words = sys.argv[1:]
with open({asked!r}, "a") as log:
    log.write(os.path.basename(sys.argv[0]) + " " + " ".join(words) + "\\n")
if not {free!r} and "-n" in words:
    sys.exit("sudo: a password is required")
if not {free!r} and not {granted!r}:
    sys.exit("Sorry, try again.")
words = [word for word in words if word not in ("-n", "--", "--disable-internal-agent")]
assert words[:4] == [{python!r}, "-I", "-S", "-B"], words
assert os.path.basename(words[4]) == "helper" and len(words) == 6, words
environment = {{"SUDO_UID": str(os.getuid()), "STAND_IN_RIGHTS": "1"}}
os.execve({python!r}, [{python!r}, "-I", "-B", {wrapper!r}, words[4], {folder!r}, {records!r}, words[5]], environment)
"""


def put_programs(
    folder: Path, library: Path, records: Path, *, free: bool, granted: bool, names: tuple[str, ...]
) -> Path:
    """Programs of these names in `folder`; `free` needs no password, `granted` gets the right one. The log of uses."""
    folder.mkdir(exist_ok=True)
    asked = folder / "asked"
    asked.touch()
    asked.chmod(0o666)
    for name in names:
        path = folder / name
        path.write_text(
            _PROGRAM.format(
                python=sys.executable,
                asked=str(asked),
                free=free,
                granted=granted,
                wrapper=str(Path(__file__).resolve()),
                folder=str(library),
                records=str(records),
            )
        )
        path.chmod(0o755)
    return asked


def _main(helper: str, library: str, records_folder: str, uuid: str) -> int:
    import ctypes

    sys.path.append(str(Path(helper).parents[3]))
    import pynvml

    from app.engine.control.helper import amd_board, holding, keeper, record, serve, watchdog

    pynvml.nvmlLib = ctypes.CDLL(f"{library}/libnvidia-ml.so.1")
    amd_board.load = lambda: amd_board.AmdSmi(f"{library}/libamd_smi.so")
    record.FOLDER, record.LOCK_FOLDER = f"{records_folder}/records", f"{records_folder}/locks"
    holding.LOCK_S, keeper._BETWEEN_S = 0.5, 0.02  # shorter patience, for tests that use it up
    serve.BEAT_S = float(os.environ.get("STAND_IN_BEAT_S", serve.BEAT_S))
    watchdog.STALL_S = float(os.environ.get("STAND_IN_STALL_S", watchdog.STALL_S))
    holding.STUCK_S = float(os.environ.get("STAND_IN_STUCK_S", holding.STUCK_S))
    if "STAND_IN_WALL_JUMPS" in os.environ:  # the time of day, each time it is asked for
        jumps = itertools.cycle((0.0, 4e9, 1.7e9))
        time.time = lambda: next(jumps)
    if "STAND_IN_NO_LOCKS" in os.environ:  # as on a network's file system without them
        fcntl.flock = _no_lock
    if "STAND_IN_UNKILLABLE" in os.environ:  # as a process that waits within the kernel
        watchdog.kill = lambda process: None
    return holding.main([uuid])


def _no_lock(*_: object) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
