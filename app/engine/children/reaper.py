"""Ends the programs of a Wattridge that was killed. A process of its own, of the standard library alone.

`python -I -S reaper.py`; its input says what runs: `+PID` a program, `+PID group` one that leads a process group,
`-PID` one that has ended. When the input ends, so has Wattridge, and what still runs is asked to end, then killed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field

ASK_S = 2.0  # from asking a program to end to killing it


@dataclass
class Family:
    """A process and what it started: the group that it leads, and its descendants where `/proc` names them."""

    process: int
    group: bool
    members: set[int] = field(default_factory=set)

    def signal(self, number: int, *, ended: bool = False) -> None:
        """Send a signal to all of them; also to those that were there at an earlier signal and lost their parent.

        `ended`: the process itself is gone, and its number may be another's.
        """
        if ended:
            self.members.discard(self.process)
        else:
            self.members |= {self.process, *descendants(self.process)}
        with suppress(ProcessLookupError, PermissionError):
            if self.group:
                os.killpg(self.process, number)
        for member in self.members:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(member, number)


def descendants(process: int) -> list[int]:
    """Return what a process started, and what that started, where `/proc` names them."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    result = list(children.get(process, ()))
    for value in result:
        result.extend(children.get(value, ()))
    return result


def main() -> None:
    """Listen until the input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    running: dict[int, Family] = {}
    os.write(1, b"+")  # ready
    for line in sys.stdin.buffer:
        process, *words = line[1:].split()
        if line[:1] == b"+":
            running[int(process)] = Family(int(process), words == [b"group"])
        else:
            running.pop(int(process), None)
    if running:
        for family in running.values():
            family.signal(signal.SIGTERM)
        time.sleep(ASK_S)
        for family in running.values():
            family.signal(signal.SIGKILL)


if __name__ == "__main__":
    main()
