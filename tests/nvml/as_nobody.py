"""The command `wattridge` as an ordinary user: root's rights are given up, but for reading where Python lies."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

NOBODY = 65534
_KEEP_CAPABILITIES, _READ_EVERYTHING, _VERSION = 8, 1 << 2, 0x20080522  # prctl's, CAP_DAC_READ_SEARCH, of capset


def become_nobody(user: int = NOBODY) -> None:
    """From here on this process, of nobody or another user, may set, write and signal what any user may."""
    if os.geteuid() != 0:
        return
    ctypes.CDLL(None).prctl(_KEEP_CAPABILITIES, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    read_everything(permitted=_READ_EVERYTHING)


def read_everything(permitted: int) -> None:
    """Let the calling thread read whatever it may not, as where Python or the checkout lies in root's own folder."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)(_READ_EVERYTHING, permitted & 0xFFFFFFFF, 0, 0, permitted >> 32, 0)
    if libc.capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def permitted_capabilities() -> int:
    """What the calling thread may take back."""
    line = next(x for x in Path("/proc/thread-self/status").read_text().splitlines() if x.startswith("CapPrm"))
    return int(line.split()[1], 16)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    become_nobody()
    from app.cli import main

    sys.exit(main(sys.argv[1:]))
