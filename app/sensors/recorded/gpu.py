"""`RecordedGpu`: a recording replayed in a loop, through the same seam as a live board. It says 'recorded'."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..channel import CHANNELS, PowerSample, Reading, channel
from ..clock import Clock, HostClock
from ..errors import NotSupported
from ..gpu import GpuInfo
from .recording import Recording

_GAP_NS = 2_000_000_000  # between the end and the next beginning: long enough to break the line
_LONGEST_STEPS = 5  # usual steps of the recording: readings further apart have a gap between them
_NOT_HELD = "the recording does not hold it"
_BUFFER_NS = 2_400_000_000  # what the driver's buffer holds: 119 samples of 20 ms


class RecordedGpu:
    """Replays from the moment it is opened. A reading carries the time at which it was recorded, moved to this clock.

    Between the end and the next round nothing new is reported: a gap of two seconds or more shows where it loops. The
    energy counter keeps counting from round to round.
    """

    def __init__(self, recording: Recording, *, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or HostClock()
        held = {described.name: described for described in recording.channels}
        self.channels = tuple(held.get(name) or channel(name, _NOT_HELD) for name in CHANNELS)
        self._places = [list(CHANNELS).index(name) for name in held]  # of the recording's columns among the channels
        simulated = recording.recorded_from == "simulated"
        self.info = GpuInfo(
            index=0,
            uuid=f"recorded:{recording.selector or recording.title}",
            name=f"{recording.name}, simulated" if simulated else recording.name,
            source="recorded",
            driver=recording.driver,
            power_limit=recording.power_limit,
            compute_capability=recording.compute_capability,
            multiprocessors=recording.multiprocessors,
            memory_mib=recording.memory_mib,
            power_source=f"{recording.power_source}, as recorded" if recording.power_source else "as recorded",
        )
        self._recording = recording
        begin_ns = int(recording.time_ns[0])
        if len(recording.sample_ns):
            begin_ns = min(begin_ns, int(recording.sample_ns[0]))
        self._times = recording.time_ns - begin_ns
        self._sample_ns = recording.sample_ns - begin_ns
        ends = [int(self._times[-1]), *self._sample_ns[-1:].tolist()]
        steps = np.diff(self._times)
        step_ns = float(np.median(steps)) if len(steps) else 0.0
        self.gap_s = _LONGEST_STEPS * step_ns / 1e9  # between readings beyond which the recording has a gap
        self.length_s = max(ends) / 1e9
        self._period_ns = max(ends) + max(_GAP_NS, round((_LONGEST_STEPS + 1) * step_ns))
        self._origin_ns = self.clock.now_ns() - int(self._times[0])  # the first reading is there at once
        names = list(held)
        self._energy = names.index("energy_j") if "energy_j" in names else None
        self._energy_a_round = 0.0
        if self._energy is not None:
            counter = recording.values[:, self._energy]
            known = counter[~np.isnan(counter)]
            self._energy_a_round = float(known[-1] - known[0]) if len(known) else 0.0

    def read(self) -> Reading:
        """The newest reading that was recorded up to now, at its own time; between two rounds the last one again."""
        rounds, since_ns = divmod(self.clock.now_ns() - self._origin_ns, self._period_ns)
        row = int(np.searchsorted(self._times, since_ns, side="right")) - 1
        if row < 0:  # before the first reading of a later round
            rounds, row = rounds - 1, len(self._times) - 1
        values = self._recording.values[row].tolist()
        if self._energy is not None:
            values[self._energy] += rounds * self._energy_a_round
        row_of_all = [math.nan] * len(self.channels)
        for place, value in zip(self._places, values, strict=True):
            row_of_all[place] = value
        return Reading(self._origin_ns + rounds * self._period_ns + int(self._times[row]), tuple(row_of_all))

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        """Recorded samples of the driver's buffer newer than `since_ns`. Raises NotSupported where there are none."""
        if not len(self._sample_ns):
            raise NotSupported("the recording holds no samples of a driver's buffer")
        now_ns = self.clock.now_ns()
        oldest_ns = max(since_ns, now_ns - _BUFFER_NS)
        latest = (now_ns - self._origin_ns) // self._period_ns
        found: list[PowerSample] = []
        for rounds in range(max(0, latest - 1), latest + 1):
            start_ns = self._origin_ns + rounds * self._period_ns
            first, last = np.searchsorted(self._sample_ns, (oldest_ns - start_ns, now_ns - start_ns), side="right")
            times, watts = self._sample_ns[first:last].tolist(), self._recording.sample_w[first:last].tolist()
            found += [PowerSample(start_ns + time, watt) for time, watt in zip(times, watts, strict=True)]
        return found

    def energy_j(self) -> float:
        """The recorded energy counter. Raises NotSupported where it was not recorded."""
        value = self.read().values[self._places[self._energy]] if self._energy is not None else math.nan
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
