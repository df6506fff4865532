"""What other tools have set or hold of a board, each in one line with what follows from it.

NVML reads limits, application clocks and persistence mode, and no lock: a lock of another tool shows by its effect. The
clock then stands where no board without a lock has it, for longer than an idle board takes to drop its clocks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from ...sensors.event_reasons import LIMITING, EventReason
from ...sensors.gpu import Gpu, ListsProcesses, SensorError
from ..results.settings import WORDS, has_locks, supported_clocks
from .controls import channels_now
from .left_over import left_over

LOOK_S: Final = 3.0
_STEP_S: Final = 0.1
_GRAPHICS, _MEMORY = "graphics_clock_mhz", "memory_clock_mhz"
UNLOCK: Final = {_GRAPHICS: "sudo nvidia-smi -rgc", _MEMORY: "sudo nvidia-smi -rmc"}
_EXPLAINS: Final = LIMITING | EventReason.SYNC_BOOST | EventReason.DISPLAY_CLOCKS
_FULL_PERCENT: Final = 90.0
_WELL_ABOVE: Final = 1 / 3  # of the range of clocks: idle boards lie below
_REACHED: Final = 0.85  # of the highest clock: boards without application clocks need not reach more, by their voltage
_P0, _P2 = 0.0, 2.0  # performance states; in the second, of GeForce boards that compute, the memory is slower by itself
PROC: Final = Path("/proc")

# How the processes of such tools are called, some with a word among their arguments: those that read, and that set too.
_READERS: Final = (
    "nvtop", "nvitop", "gpustat", "amdgpu_top", "nv-hostengine", "dcgm-exporter", "nvidia-smi dmon", "nvidia-smi pmon",
)  # fmt: skip
_SETTERS: Final = (
    "lactd", "lact daemon", "penguin-burner", "pburn", "MSIAfterburner.", "zeusd", "coolercontrold",
)  # fmt: skip

_IF_IT_READS: Final = "reads boards too: it keeps them awake, and what that costs is in what is measured"
_IF_IT_SETS: Final = "may set clocks, limits and fans at any time: end it before a session that sets them"
Values = Mapping[str, float | None]  # of a reading, by channel; None where unknown


@dataclass(frozen=True, slots=True)
class Held:
    """What another tool has set or holds: the setting, or 'monitor'; and in one line what follows from it."""

    what: str
    text: str


def locked_at(readings: Sequence[Values], name: str, clocks: Sequence[int], *, in_use: bool = False) -> float | None:
    """The clock at which a board appears to be locked; None where it does not, or where that is unknown.

    Parameters
    ----------
    readings
        Of a few seconds, oldest first.
    name
        `graphics_clock_mhz` or `memory_clock_mhz`.
    clocks
        Those that the board supports, ascending; MHz.
    in_use
        Whether a program keeps the board ready: its clocks then stay up without work.
    """
    seen = {_suspect(values, name, clocks, in_use) for values in readings}
    return seen.pop() if len(seen) == 1 else None


def _suspect(values: Values, name: str, clocks: Sequence[int], in_use: bool) -> float | None:
    """The clock of one reading, where no board without a lock would have it just then."""
    clock, busy, reasons = values.get(name), values.get("utilisation_percent"), values.get("event_reasons")
    if not clocks or clock is None or busy is None or reasons is None or int(reasons) & _EXPLAINS:
        return None
    state, application, full = values.get("performance_state"), values.get(f"requested_{name}"), busy >= _FULL_PERCENT
    if name == _GRAPHICS and busy == 0.0:
        return clock if not in_use and clock > clocks[0] + _WELL_ABOVE * (clocks[-1] - clocks[0]) else None
    same = min((after - before for before, after in pairwise(clocks)), default=1) / (1 if name == _GRAPHICS else 2)
    reached = clocks[-1] * (_REACHED if application is None and name == _GRAPHICS else 1.0)
    at_application = application is not None and abs(clock - application) <= same
    ready = (full and state != _P2) or state == _P0 if name == _MEMORY else full
    return clock if ready and clock < reached - same and not at_application else None


def locks_in(gpu: Gpu, readings: Sequence[Values]) -> dict[str, float]:
    """The clocks that look locked by another tool, by setting; MHz. What this program has set or kept is none."""
    if gpu.info.source != "nvml" or not gpu.info.here:
        return {}
    names = [name for name in UNLOCK if name not in _made_here(gpu) and has_locks(gpu, name)]
    looks = {name: locked_at(readings, name, supported_clocks(gpu, name), in_use=_in_use(gpu)) for name in names}
    return {name: mhz for name, mhz in looks.items() if mhz is not None}


def look(gpu: Gpu, stop: threading.Event | None = None) -> list[Values]:
    """Readings for `locks_in`: of `LOOK_S` while each of them may be of a locked clock, else of less."""
    until_ns = gpu.clock.now_ns() + round(LOOK_S * 1e9)
    readings: list[Values] = [channels_now(gpu)]
    while locks_in(gpu, readings) and gpu.clock.now_ns() < until_ns and not gpu.clock.wait(_STEP_S, stop):
        readings.append(channels_now(gpu))
    return readings


def held_elsewhere(gpu: Gpu, stop: threading.Event | None = None) -> list[Held]:
    """What other tools have set or hold of a board of this machine; takes as long as `look`."""
    held: list[Held] = []
    if gpu.info.live and gpu.info.here:
        with suppress(SensorError):  # a board that is lost
            held += [Held(what, f"{gpu.info.label}: {text}") for what, text in _set_elsewhere(gpu, stop)]
        held += monitors()
    return held


def _set_elsewhere(gpu: Gpu, stop: threading.Event | None) -> Iterator[tuple[str, str]]:
    readings, own, default_w = look(gpu, stop), _made_here(gpu), gpu.info.power_limit.default_w
    limit_w = readings[-1].get("power_limit_w")
    if limit_w and default_w and abs(limit_w - default_w) > 1.0 and "power_limit_w" not in own:
        yield "power_limit_w", f"power limit {limit_w:g} W, by default {default_w:g} W: it holds for what is measured"
    standing: Mapping[str, float | None] = getattr(gpu, "standing", dict)()
    for name in UNLOCK:
        mhz, default_mhz = standing.get(name), standing.get(f"default_{name}")
        if mhz and default_mhz and mhz != default_mhz and name not in own:
            text = f"{WORDS[name]} for applications {mhz:g} MHz, by default {default_mhz:g} MHz: work runs at that"
            yield f"application_{name}", f"{text} (default again: sudo nvidia-smi -rac)"
    for name, mhz in locks_in(gpu, readings).items():
        text = f"{WORDS[name]} stands at {mhz:g} MHz as if locked: a session that sets it could not put that back"
        yield name, f"{text} (unlock: {UNLOCK[name]})"
    if standing.get("persistence_mode"):
        yield "persistence_mode", "persistence mode is on: the driver stays loaded, and settings outlast programs"


def monitors(proc: Path | None = None) -> list[Held]:
    """Other tools that read or set boards, by the names of the processes that this user may see."""
    results = []
    for folder in sorted((proc or PROC).glob("[0-9]*"), key=lambda folder: int(folder.name)):
        with suppress(OSError):
            name = (folder / "comm").read_text("utf-8", "replace").strip()
            words = (folder / "cmdline").read_bytes()[:4096].decode("utf-8", "replace").split("\0")
            for tool in (name, *(f"{name} {word}" for word in words)):
                follows = _IF_IT_READS if tool in _READERS else _IF_IT_SETS if tool in _SETTERS else ""
                results += [Held("monitor", f"{tool} (process {folder.name}) {follows}")] if follows else []
    return results


def _made_here(gpu: Gpu) -> set[str]:
    """The settings of a board that this program has in hand or keeps, in whichever process."""
    record = left_over(gpu.info.uuid)
    return set() if record is None else {*record.prior, *record.kept}


def _in_use(gpu: Gpu) -> bool:
    """Whether another program than this one computes on a board, or holds it ready to."""
    with suppress(SensorError):
        listed = gpu.processes() if isinstance(gpu, ListsProcesses) else ()
        return any("compute" in process.use and process.pid != os.getpid() for process in listed)
    return False
