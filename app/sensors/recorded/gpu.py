"""`RecordedGpu`: a recording replayed, once or in a loop, through the same seam as a live board. It says 'recorded'.

Opening what `recorded:FILE` names: a recording of this program, or a log of another tool, by its content.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from ...base.errors import InputError
from ...base.files import byte_chunks, is_input
from ...base.text import float_or_none
from ..channel import CHANNELS, PowerSample, Reading, channel
from ..clock import Clock, HostClock
from ..gpu import NotSupported
from .logs.read import Log, read_log
from .recording import Recording, read_recording

_GAP_NS = 2_000_000_000  # between the end and the next beginning: long enough to break the line
_LONGEST_STEPS = 5  # usual steps of the recording: readings further apart have a gap between them
_ALL: Final = list(CHANNELS)
_ENERGY: Final = _ALL.index("energy_j")
_NOT_HELD = "the recording does not hold it"
_BUFFER_NS = 2_400_000_000  # what the driver's buffer holds: 119 samples of 20 ms


class RecordedGpu:
    """Replays from the moment it is opened. A reading carries the time at which it was recorded, moved to this clock.

    It ends with the recording, and its last reading stays, or `loops`: between the end and the next round nothing new
    is reported, and a gap of two seconds or more shows where it does; the energy counter keeps counting.
    """

    def __init__(self, recording: Recording, *, clock: Clock | None = None, loops: bool = False) -> None:
        self.loops = loops
        self.clock: Clock = clock or HostClock()
        held = {described.name: described for described in recording.channels}
        self.channels = tuple(held.get(name) or channel(name, _NOT_HELD) for name in CHANNELS)
        self._places = [_ALL.index(name) for name in held]  # of the recording's columns among the channels
        simulated = recording.recorded_from == "simulated"
        info = recording.info
        self.info = replace(
            info,
            uuid=f"recorded:{recording.selector or recording.title}",
            name=f"{info.name}, simulated" if simulated else info.name,
            power_source=f"{info.power_source}, as recorded" if info.power_source else "as recorded",
        )
        self._recording = recording
        begin_ns = min([int(recording.time_ns[0]), *recording.sample_ns[:1].tolist()])
        self._times = recording.time_ns - begin_ns
        self._sample_ns = recording.sample_ns - begin_ns
        ends = [int(self._times[-1]), *self._sample_ns[-1:].tolist()]
        steps = np.diff(self._times)
        step_ns = float(np.median(steps)) if len(steps) else 0.0
        self.gap_s = _LONGEST_STEPS * step_ns / 1e9  # between readings beyond which the recording has a gap
        self.length_s = max(ends) / 1e9
        self._period_ns = max(ends) + max(_GAP_NS, round((_LONGEST_STEPS + 1) * step_ns))
        self._origin_ns = self.clock.now_ns() - int(self._times[0])  # the first reading is there at once
        counter = recording.by_name.get("energy_j", np.empty(0))
        finite = counter[~np.isnan(counter)]
        self._energy_a_round = float(finite[-1] - finite[0]) if len(finite) else 0.0

    def play_again(self) -> None:
        """Begin again, where the recording has ended."""
        now_ns = self.clock.now_ns()
        if not self.loops and now_ns - self._origin_ns > self._period_ns:
            self._origin_ns = now_ns - int(self._times[0])

    def read(self) -> Reading:
        """The newest reading that was recorded up to now, at its own time; after the end the last one again."""
        since_ns, rounds = self.clock.now_ns() - self._origin_ns, 0
        if self.loops:
            rounds, since_ns = divmod(since_ns, self._period_ns)
        row = int(np.searchsorted(self._times, since_ns, side="right")) - 1
        if row < 0:  # before the first reading of a later round
            rounds, row = rounds - 1, len(self._times) - 1
        values = [math.nan] * len(self.channels)
        for place, value in zip(self._places, self._recording.values[row].tolist(), strict=True):
            values[place] = value
        if rounds:
            values[_ENERGY] += rounds * self._energy_a_round
        return Reading(self._origin_ns + rounds * self._period_ns + int(self._times[row]), tuple(values))

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        """Recorded samples of the driver's buffer newer than `since_ns`. Raises NotSupported if there are none."""
        if not len(self._sample_ns):
            raise NotSupported("the recording holds no samples of a driver's buffer")
        now_ns = self.clock.now_ns()
        oldest_ns = max(since_ns, now_ns - _BUFFER_NS)
        latest = (now_ns - self._origin_ns) // self._period_ns if self.loops else 0
        power_samples: list[PowerSample] = []
        for rounds in range(max(0, latest - 1), latest + 1):
            start_ns = self._origin_ns + rounds * self._period_ns
            first, last = np.searchsorted(self._sample_ns, (oldest_ns - start_ns, now_ns - start_ns), side="right")
            times, watts = self._sample_ns[first:last].tolist(), self._recording.sample_w[first:last].tolist()
            power_samples += [PowerSample(start_ns + time, watt) for time, watt in zip(times, watts, strict=True)]
        return power_samples

    def energy_j(self) -> float:
        """The recorded energy counter. Raises NotSupported if it was not recorded."""
        value = self.read().values[_ENERGY]
        if math.isnan(value):
            raise NotSupported("the recording holds no energy counter")
        return value

    def graphics_clocks_mhz(self) -> Sequence[int]:
        """Graphics clocks that the recorded board supports, ascending."""
        return self._recording.graphics_clocks_mhz

    def memory_clocks_mhz(self) -> Sequence[int]:
        """Memory clocks that the recorded board supports, ascending."""
        return self._recording.memory_clocks_mhz

    def close(self) -> None:
        """Nothing to release."""


_OWN: Final = b'"wattridge-recording"'


def is_own(path: Path) -> bool:
    """Whether a file is a recording of a board's channels as `monitor --record` writes it. Raises InputError."""
    return _OWN in next(byte_chunks(path), b"").lstrip()[:65536].split(b"\n", 1)[0]


def read_any(path: Path, interval_s: float | None = None) -> Log:
    """Every board of a recording or a log. `interval_s` is of a log that does not hold its times. Raises InputError."""
    if path.suffix == ".part" or is_own(path):
        return Log(path, "", (read_recording(path),), ())
    return read_log(path, interval_s)


def open_recorded(selector: str, known: dict[str, Path]) -> Recording:
    """The recording that NAME, FILE, FILE#BOARD or FILE#BOARD@S names. Raises InputError.

    `known` are those that come with the program. Without BOARD the first of a log is taken; S is the time between
    readings, of a log that does not hold it.
    """
    file, board, step, interval_s = selector.strip(), "", "", None
    path = known.get(file) or Path(file).expanduser()
    if not is_input(path) and "#" in file:
        file, _, rest = file.rpartition("#")
        path = known.get(file) or Path(file).expanduser()
        board, _, step = rest.partition("@")
        interval_s = seconds(step, "--gpu") if step else None
    if not is_input(path):
        there = f"recordings here: {', '.join(known)}" if known else "no recording comes with this installation"
        raise InputError(f"there is no recording '{selector.strip()}'", "--gpu", f"{there}; or give the path of a file")
    log = read_any(path, interval_s)
    recording = _board_of(log, board) if board else log.boards[0]
    number = recording.title.rpartition("#")[2] if "#" in recording.title else ""
    behind = f"{number}@{step}" if step else number
    again = file if file in known else str(path.resolve())
    return replace(recording, selector=f"{again}#{behind}" if behind else again)


def _board_of(log: Log, board: str) -> Recording:
    """The board of a log of that number or name. Raises InputError."""
    matches = [
        item
        for index, item in enumerate(log.boards)
        if board in (item.title.rpartition("#")[2], item.info.name) or (len(log.boards) == 1 and board == str(index))
    ]
    if not matches:
        there = ", ".join(element.title.rpartition("#")[2] for element in log.boards)
        raise InputError(f"the log holds no board '{board[:40]}'", str(log.path), f"its boards: {there}")
    return matches[0]


def seconds(text: str, where: str) -> float:
    """A step between readings. Raises InputError."""
    value = float_or_none(text)
    if value is None or not 1e-6 <= value <= 86400:
        raise InputError(f"'{text[:40]}' is no time between two readings", where, "a number of seconds, such as 0.1")
    return value
