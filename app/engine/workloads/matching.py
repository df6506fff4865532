"""A user's regular expressions on a program's output, with a time limit.

A pattern such as `(a+)+$` takes exponential time on some texts, and `re` holds the interpreter's lock meanwhile, so
that neither a time limit nor Ctrl+C would be noticed. The search runs in a child process, which can be ended.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import Final

from ...own_modules import lone_module_command

LIMIT_S: Final = 5.0  # for all patterns on one output
_LOOK_S: Final = 0.05  # between looks at `stop`


class TooSlow(Exception):
    """A pattern did not finish in time; `name` is its name."""

    def __init__(self, name: str, limit_s: float) -> None:
        super().__init__(f"{name}: the pattern takes longer than {limit_s:g} s on this output")
        self.name = name


def last_matches(
    patterns: Mapping[str, str], text: str, *, stop: threading.Event | None = None, limit_s: float | None = None
) -> dict[str, str | None] | None:
    """By name the first group of each pattern's last match, None where it does not match; None where `stop` was set.

    Raises TooSlow after `limit_s` (LIMIT_S), and OSError where the child process does not start.
    """
    limit_s = LIMIT_S if limit_s is None else limit_s
    process = subprocess.Popen(
        lone_module_command(f"{__package__}.matching_child"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl+C is for the session
    )
    deadline = time.monotonic() + limit_s
    ended = stopped = False
    question: bytes | None = json.dumps({"patterns": dict(patterns), "text": text}).encode("ascii")
    answer = b""
    try:
        while not ended and not stopped and time.monotonic() < deadline:
            try:
                answer, _ = process.communicate(question, timeout=_LOOK_S)
                ended = True
            except subprocess.TimeoutExpired:
                question = None  # it is on its way
                stopped = stop is not None and stop.is_set()
    finally:
        if not ended:
            process.kill()
            answer, _ = process.communicate()
    if stopped:
        return None
    found = dict(json.loads(line) for line in answer.decode("ascii").splitlines())
    missing = next((name for name in patterns if name not in found), None)
    if missing is not None and ended:
        raise OSError(f"the pattern of {missing} ended the search (exit status {process.returncode})")
    if missing is not None:
        raise TooSlow(missing, limit_s)
    return found
