"""Cray's `pm_counters`: files that the node's controller writes ten times a second, one for each part of the node.

A line holds a value, its unit, and the wall clock's microseconds: `93 W 1663234234234234 us`. Energy is counted in
whole joules, so power follows from the difference of two readings, and a figure needs half a minute.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Final, NamedTuple

from ...base.errors import InputError
from ..gpu import SensorError
from .meter import EnergyCounters, MeterInfo, MeterLost, Samples, Scope, meter_channels, nothing

KIND: Final = "pm_counters"
FOLDER: Final = Path("/sys/cray/pm_counters")
PERIOD_S: Final = 0.1
LEAST_S: Final = 30.0  # S2 ran each kernel that long
NODE: Final = "node"
_ENDING: Final = "_energy"


class Counted(NamedTuple):
    """One file's value: joules, and the host's monotonic time of it."""

    energy_j: float
    time_ns: int


def parts_of(folder: Path = FOLDER) -> list[str]:
    """The parts of the node that are counted, `node` first: accel0, cpu, memory. Empty if there are no files."""
    names = sorted(path.name.removesuffix(_ENDING) for path in folder.glob(f"*{_ENDING}"))
    return [*([NODE] if (folder / "energy").is_file() else []), *names]


def read_counter(path: Path, wall_less_monotonic_ns: int) -> Counted:
    """What a counter's file holds now. Raises MeterLost where it does not, or is gone."""
    try:
        words = path.read_text(encoding="ascii").split()
        energy_j = float(words[0])
        stamp_us = int(words[2]) if len(words) > 2 else 0
    except (OSError, ValueError, IndexError) as error:
        raise MeterLost(f"the counter cannot be read: {error}", str(path), "it is tried again") from None
    if not math.isfinite(energy_j) or energy_j < 0:
        raise MeterLost("the counter holds no energy", str(path), "it is tried again")
    time_ns = stamp_us * 1000 - wall_less_monotonic_ns if stamp_us else time.monotonic_ns()
    return Counted(energy_j, time_ns)


class PmCounters:
    """Implements `PowerMeter`: one part of the node as the total, the others beside it."""

    def __init__(self, part: str = "", folder: Path = FOLDER) -> None:
        """`part` is one of `parts_of`; the whole node where it is empty. Raises InputError and SensorError."""
        there = parts_of(folder)
        if not there:
            raise InputError("there are no pm_counters", str(folder), "they are on Cray nodes only")
        wanted = part or there[0]
        if wanted not in there:
            raise InputError(f"nothing counts '{wanted}'", f"--meter {KIND}", f"choose one of {', '.join(there)}")
        self.missed = 0
        others = [value for value in there if value != wanted]
        self._paths = [folder / ("energy" if other == NODE else f"{other}{_ENDING}") for other in (wanted, *others)]
        total, *rest = meter_channels(KIND, f"Cray pm_counters, {wanted}", (wanted, *others))
        self.channels = (total, *rest[1:])  # the total is the first part itself
        self._counters = EnergyCounters(len(self.channels))
        scope: Scope = "board" if wanted.startswith("accel") else "node" if wanted == NODE else "host"
        label = f"Cray pm_counters, {wanted} ({folder})"
        self.info = MeterInfo(KIND, label, scope, PERIOD_S, PERIOD_S, poll_s=0.04, least_s=LEAST_S)
        try:
            self.read()
        except MeterLost as error:
            raise SensorError(error.what, error.where, "check that the files can be read") from None

    def read(self) -> Samples:
        wall_less_monotonic_ns = time.time_ns() - time.monotonic_ns()
        read = [read_counter(path, wall_less_monotonic_ns) for path in self._paths]
        if max(reading.time_ns for reading in read) > read[0].time_ns + PERIOD_S * 5e8:
            return nothing(len(self.channels))  # between two scans: the first file is of the one before
        return self._counters.sample(read[0].time_ns, [reading.energy_j for reading in read])

    def reopen(self) -> None:
        self._counters.forget()
        self.read()

    def close(self) -> None:
        """Nothing is held."""
