"""The command `wattridge` as an ordinary user: root's rights are given up, but for reading where Python lies."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_NOBODY = 65534
_KEEP_CAPABILITIES, _READ_EVERYTHING, _VERSION = 8, 1 << 2, 0x20080522  # prctl's, CAP_DAC_READ_SEARCH, of capset


def become_nobody() -> None:
    """From here on this process may set, write and signal what any user may."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_KEEP_CAPABILITIES, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
    os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)(_READ_EVERYTHING, _READ_EVERYTHING, 0, 0, 0, 0)
    if libc.capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capset")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    become_nobody()
    from app.cli import main

    sys.exit(main(sys.argv[1:]))
