"""The processes that use a board, and how much of its memory each of them has, by NVML."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import GpuLost, NoDriver, NotSupported, SensorError
from ..gpu import GpuProcess, Use

UNSEEN = "not visible here"  # a process of another user's container, or one that has just ended

# what for -> NVML's functions, newest first: an older driver lacks the newer ones. The name without a version raises an
# error of pynvml's own where the driver is older than it.
_FUNCTIONS: tuple[tuple[Use, tuple[str, ...]], ...] = (
    ("compute", ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")),
    ("graphics", ("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2")),
)
_SHARES = "nvmlDeviceGetProcessUtilization"
_SHARES_S = 3.0  # how old a sample of a process's share may be; the driver takes them about every second


def nvml_processes(ask: Callable[..., Any]) -> list[GpuProcess]:
    """The processes on a board; `ask` calls an NVML function by name on it. Raises NotSupported, GpuLost, NoDriver.

    Where the driver reports only one kind of use, those are all.
    """
    found: dict[int, GpuProcess] = {}
    refused: SensorError | None = None
    answered = False
    for use, functions in _FUNCTIONS:
        try:
            answer = _first_answer(ask, functions)
        except (GpuLost, NoDriver):
            raise
        except SensorError as error:
            refused = error
            continue
        answered = True
        for each in answer:
            pid = int(each.pid)
            used = each.usedGpuMemory
            before = found.get(pid)
            memory_mib = math.nan if used is None else used / 2**20
            if before is not None:
                memory_mib = memory_mib if math.isnan(before.memory_mib) else before.memory_mib
            both: Use = use if before is None or before.use == use else "compute and graphics"
            found[pid] = GpuProcess(pid, process_name(pid), memory_mib, both)
    if not answered:
        assert refused is not None
        raise refused
    shares = _shares(ask) if found else {}
    described = (replace(each, share_percent=shares.get(each.pid, math.nan)) for each in found.values())
    return sorted(described, key=lambda p: -p.memory_mib if not math.isnan(p.memory_mib) else math.inf)


def _shares(ask: Callable[..., Any]) -> dict[int, float]:
    """The newest share of each process, in %; empty where the driver reports none. Raises GpuLost, NoDriver."""
    try:
        samples = ask(_SHARES, time.time_ns() // 1000 - round(_SHARES_S * 1e6))
    except (GpuLost, NoDriver):
        raise
    except SensorError:
        return {}
    oldest_first = sorted(samples, key=lambda sample: int(sample.timeStamp))
    return {int(each.pid): float(each.smUtil) for each in oldest_first if each.smUtil <= 100}


def process_name(pid: int, proc: Path = Path("/proc")) -> str:
    """A process's name: of its program, and for an interpreter of its script; UNSEEN where it cannot be read."""
    try:
        words = (proc / str(pid) / "cmdline").read_bytes()[:4096].decode("utf-8", "replace").split("\0")
        short = (proc / str(pid) / "comm").read_text("utf-8", "replace").strip()
    except OSError:
        return UNSEEN
    program = Path(words[0]).name or short
    script = next((word for word in words[1:] if word.endswith(".py")), "")
    name = f"{program} {Path(script).name}" if script and program.startswith("python") else program
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:80] or UNSEEN


def _first_answer(ask: Callable[..., Any], functions: Sequence[str]) -> Any:
    problem: SensorError | None = None
    for function in functions:
        try:
            return ask(function)
        except NotSupported as error:
            problem = problem or error
    assert problem is not None
    raise problem
