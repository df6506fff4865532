"""`VoltageReader`: the core voltage, which NVML does not report: `nvidia-smi -q -d VOLTAGE`, in a thread of its own."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable

from ..gpu import Held

_PERIOD_S = 1.0  # never more often
_DUTY = 20  # and never more than a twentieth of the time: on some boards one call takes a second
_TIMEOUT_S = 5.0
_LONGEST_ANSWER = 100_000  # characters
_LINE = re.compile(r"^\s*Graphics\s*:\s*(.+?)\s*$", re.MULTILINE)
_MILLIVOLT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*mV")

Ask = Callable[[str], str]  # a UUID -> nvidia-smi's answer; raises OSError or subprocess.SubprocessError


def ask_nvidia_smi(uuid: str) -> str:
    """What `nvidia-smi -q -d VOLTAGE` prints for one board. Raises OSError and subprocess.SubprocessError."""
    program = shutil.which("nvidia-smi")
    if program is None:
        raise FileNotFoundError("nvidia-smi is not installed")
    done = subprocess.run(
        [program, "-q", "-d", "VOLTAGE", "-i", uuid],
        capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout[:_LONGEST_ANSWER]


def parse_voltage_mv(answer: str) -> float | None:
    """The graphics voltage in mV from nvidia-smi's answer; None where the board does not report it."""
    line = _LINE.search(answer)
    found = _MILLIVOLT.fullmatch(line.group(1)) if line else None
    value = float(found.group(1)) if found else 0.0
    return value or None


class VoltageReader:
    """Asks once when made, then about once a second after `start()`. Thread-safe; no call here ever blocks for long."""

    def __init__(self, uuid: str, ask: Ask = ask_nvidia_smi) -> None:
        self._uuid = uuid
        self._ask = ask
        self._value_mv = math.nan
        self._held = Held(time.monotonic_ns(), _PERIOD_S)
        self._unavailable: str | None = "nvidia-smi has not answered yet"
        self._answered = threading.Event()
        self._wanted = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="core voltage", daemon=True)
        self._thread.start()

    def unavailable(self, timeout_s: float = 2.0) -> str | None:
        """Why there is no voltage, or None; waits at most that long for nvidia-smi's first answer."""
        if not self._answered.wait(timeout_s):
            self.stop()  # a program so slow is not asked again
            return f"nvidia-smi did not answer within {timeout_s:g} s"
        return self._unavailable

    def start(self) -> None:
        """Continue to ask, about once a second."""
        self._wanted.set()

    def latest_mv(self) -> float:
        """The newest voltage in mV; NaN where there is none. Costs nothing."""
        return self._value_mv

    def held(self) -> Held:
        """The age of `latest_mv()`, on the host's monotonic clock. Ask before it: the value is then at least as new."""
        return self._held

    def stop(self) -> None:
        """Ask no more. A call under way ends by itself."""
        self._stop.set()
        self._wanted.set()

    def join(self, timeout_s: float = _TIMEOUT_S + 1) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        pause_s = self._ask_once()
        self._answered.set()
        if self._unavailable is not None:
            return
        self._wanted.wait()
        while not self._stop.wait(pause_s):
            pause_s = self._ask_once()

    def _ask_once(self) -> float:
        """Ask, keep the answer, and give the seconds to wait before the next question."""
        begin_ns = time.monotonic_ns()
        try:
            value = parse_voltage_mv(self._ask(self._uuid))
            self._unavailable = None if value is not None else "NVML has no voltage and nvidia-smi reports none here"
        except (OSError, subprocess.SubprocessError) as error:
            value = None
            reason = "it failed" if isinstance(error, subprocess.SubprocessError) else str(error)
            self._unavailable = f"NVML has no voltage, and nvidia-smi cannot be asked: {reason}"
        took_s = (time.monotonic_ns() - begin_ns) / 1e9
        pause_s = max(_PERIOD_S, _DUTY * took_s)
        self._value_mv = math.nan if value is None else value
        self._held = Held(begin_ns, pause_s + 2 * took_s)  # after the value, see `held`
        return pause_s
