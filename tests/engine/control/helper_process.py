"""The helper with rights as a process over a stand-in, for the tests that talk to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import rights
from boards import StandIn

HELPER = Path(__file__).parents[3] / "app" / "engine" / "control" / "helper"


class Process:
    """A helper with rights over a stand-in, its records in the stand-in's folder."""

    def __init__(self, stand_in: StandIn, *words: str, **environment: str) -> None:
        root = stand_in.folder / "root"
        root.mkdir(exist_ok=True)
        command = [sys.executable, "-I", "-B", rights.__file__, str(HELPER), str(stand_in.folder), str(root)]
        self.records = root / "records"
        self._process = subprocess.Popen(
            [*command, *(words or (stand_in.uuids[0],))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"STAND_IN_RIGHTS": "1", **environment},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.input, self.output = self._process.stdin, self._process.stdout
        self._number = 0
        self.hello = self.reply()

    def reply(self) -> dict[str, Any]:
        self.last_line = line = self.output.readline()
        return dict(json.loads(line)) if line.startswith(b"{") else {}

    def send(self, line: bytes) -> None:
        self.input.write(line)
        self.input.flush()

    def ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        self._number += 1
        self.send(json.dumps({"id": self._number, "do": verb, **fields}).encode() + b"\n")
        reply = self.reply()
        assert reply["id"] == self._number
        return reply

    @property
    def waiting(self) -> int:
        """The process that waits to put the board back."""
        return self._process.pid

    @property
    def serving(self) -> int:
        return int(Path(f"/proc/{self.waiting}/task/{self.waiting}/children").read_text().split()[0])

    def end(self) -> int:
        """Close its input; its exit status. Safe to call twice."""
        self.input.close()
        return self.gone()

    def gone(self, seconds: float = 10.0) -> int:
        """The exit status of one that ends by itself."""
        status = self._process.wait(seconds)
        self.input.close()
        self.output.close()
        return status


def changed(stand_in: StandIn, process: Process) -> dict[str, Any]:
    """Set a clock and a cap, and a profile where the board has them; the settings before."""
    before = stand_in.settings()
    profile, requested = ({"workload_power_profile": 1}, {"requested": 1 << 1}) if "requested" in before else ({}, {})
    reply = process.ask("set", settings={"graphics_clock_mhz": [1200, 1200], "power_limit_w": 300, **profile})
    assert "error" not in reply
    assert stand_in.settings() == {**before, "lock": (1200, 1200), "limit": 300_000, **requested}
    return before


def killed_whole(process: Process) -> None:
    """Kill both of its processes, so that neither puts the board back in the moment that it outlives the other."""
    waiting, serving = process.waiting, process.serving
    os.kill(serving, signal.SIGSTOP)
    for pid in (waiting, serving):
        os.kill(pid, signal.SIGKILL)


def until_back(stand_in: StandIn, before: dict[str, Any], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while stand_in.settings() != before:
        assert time.monotonic() < deadline, f"not back after {seconds} s: {stand_in.settings()}"
        time.sleep(0.005)
