"""A library that compiles, as `compile_worker` loads it: a text says what becomes of it, word by word.

The image of any other text is the text itself, followed by the options and the process that compiled it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_kept: list[bytes] = []


def compile_text(text: str, options: Sequence[str]) -> tuple[bytes, str]:
    what, _, of = text.partition(" ")
    if what == "crash":
        print("a bug of the library's", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        if of:
            Path(f"{of}.new").write_text(str(os.getpid()))
            Path(f"{of}.new").rename(of)
        time.sleep(7777)
    if what == "grow":
        _kept.append(os.urandom(1) * int(of))
    if what == "broken":
        return b"", f"kernel.cu(1): note: here\nkernel.cu(3): error: {of or 'expected'}"
    if what == "warns":
        return text.encode(), "x" * int(of)
    return f"{text}|{' '.join(options)}|{os.getpid()}".encode(), ""
