"""`Evidence`: what a board's sensor reported while one configuration was measured, as it is kept with the measurement.

It is packed as integers (µs, mW, kHz and bits), delta-coded, byte by byte of the same weight, and compressed: about
110 bytes for a window of 0.2 s, and never more than 4096 for each 0.2 s that has begun, for which faster samples become
means.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from ...base.records import figure
from ...sensors.event_reasons import names as reason_names

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Ends = tuple[int, int]
Reported = Sequence[float]  # a reading: ns, MHz and event reasons

EVIDENT: Final = ("graphics_clock_mhz", "event_reasons")  # the channels that are kept beside the power
WINDOW_S: Final = 0.2
_MOST_SAMPLES: Final = 64  # of power, and readings of the clock, for each WINDOW_S that has begun
_HEAD: Final = struct.Struct("<BIII")  # version; windows, samples, readings
_VERSION: Final = 1
_LONGEST: Final = 1 << 26  # bytes unpacked
_US, _MW_OR_KHZ = 1e6, 1e3
_UNKNOWN: Final = -(1 << 40)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The samples of power of one measurement, and the clock and event reasons that were read meanwhile.

    Times are s from the begin of the first window, on the board's clock. Power is as the board's own sensor reported
    it: what a gain or an aftereffect takes out is in it.
    """

    starts_s: Floats  # of each window, shape (k,): repeats, and parts of a window, are windows of their own
    ends_s: Floats  # shape (k,)
    times_s: Floats  # the middle of what each sample averages, shape (n,)
    power_w: Floats  # shape (n,)
    read_s: Floats  # shape (m,)
    clock_mhz: Floats = field(metadata=figure(key="graphics_clock_mhz"))  # observed, shape (m,); NaN if not reported
    event_reasons: Integers  # shape (m,)
    IN_JSON: ClassVar = ("seconds", "energy_j", "mean_power_w")

    @classmethod
    def of(cls, windows_ns: Sequence[Ends], times_s: Floats, power_w: Floats, readings: Iterable[Reported]) -> Self:
        """The evidence of windows on the board's clock, ns; what a reading does not report is NaN."""
        starts_s, ends_s = ((np.array(windows_ns, dtype=np.int64) - windows_ns[0][0]) / 1e9).T
        read_ns, clock_mhz, reasons = np.array(list(readings), dtype=np.float64).reshape(-1, 3).T
        bits = np.nan_to_num(reasons).astype(np.int64)
        return cls(starts_s, ends_s, times_s, power_w, (read_ns - windows_ns[0][0]) / 1e9, clock_mhz, bits)

    @property
    def seconds(self) -> float:
        """The length of all windows together."""
        return float((self.ends_s - self.starts_s).sum())

    @property
    def mean_power_w(self) -> float:
        """Over the windows; a sample stands for the time nearer to it than to another of its window. NaN without."""
        if not len(self.times_s):
            return math.nan
        of, middles_s = self.window_at(self.times_s), (self.times_s[1:] + self.times_s[:-1]) / 2
        until_s = np.minimum(self.ends_s[of], np.append(middles_s, math.inf))
        counts_s = np.maximum(0.0, until_s - np.maximum(self.starts_s[of], np.append(-math.inf, middles_s)))
        return float(counts_s @ self.power_w / counts_s.sum()) if counts_s.any() else math.nan

    @property
    def energy_j(self) -> float:
        """The integral of the samples over the windows."""
        return self.mean_power_w * self.seconds

    def window_at(self, times_s: Floats) -> Integers:
        """The index of the window that is on at each time, or was last."""
        return np.maximum(0, np.searchsorted(self.starts_s, times_s, side="right") - 1).astype(np.int64)

    def reasons_s(self) -> Mapping[str, float]:
        """How long each event reason was set, by its name, as far as the readings show it."""
        seen = [name for bits in self.event_reasons.tolist() for name in reason_names(bits)]
        return {name: self.seconds * seen.count(name) / len(self.event_reasons) for name in dict.fromkeys(seen)}

    def pack(self) -> bytes:
        """As bytes, which `unpack` reads."""
        most = _MOST_SAMPLES * int(np.maximum(1, np.ceil((self.ends_s - self.starts_s) / WINDOW_S - 1e-9)).sum())
        times_s, power_w, read_s, clock_mhz = (
            _means(values, most) for values in (self.times_s, self.power_w, self.read_s, self.clock_mhz)
        )
        first = _groups(len(self.read_s), most)
        times = _whole(np.concatenate([self.starts_s, self.ends_s, times_s, read_s]), _US)
        values = _whole(np.concatenate([power_w, clock_mhz]), _MW_OR_KHZ)
        reasons = np.bitwise_or.reduceat(self.event_reasons, first) if len(first) else first
        planes = (
            np.diff(np.concatenate([times, values, reasons]), prepend=0)
            .astype("<i8")
            .view(np.uint8)
            .reshape(-1, 8)
            .T.tobytes()
        )
        return _HEAD.pack(_VERSION, len(self.starts_s), len(times_s), len(read_s)) + zlib.compress(planes)


def unpack(packed: bytes) -> Evidence:
    """The evidence that was packed. Raises ValueError where it is damaged."""
    try:
        version, windows, samples, readings = _HEAD.unpack_from(packed)
        length = 8 * (2 * windows + 2 * samples + 3 * readings)
        inflating = zlib.decompressobj()
        planes = inflating.decompress(packed[_HEAD.size :], min(length, _LONGEST) + 1)
    except (struct.error, zlib.error) as error:
        raise ValueError(f"they are damaged ({error})") from None
    if version != _VERSION or not windows or not samples or len(planes) != length or not inflating.eof:
        raise ValueError("they are damaged, or of a form that this program does not know")
    numbers = np.frombuffer(planes, dtype=np.uint8).reshape(8, -1).T.copy().view("<i8").ravel().cumsum(dtype=np.int64)
    times, values, reasons = np.split(numbers, np.cumsum([2 * windows + samples + readings, samples + readings]))
    starts_s, ends_s, times_s, read_s = np.split(_real(times, _US), np.cumsum([windows, windows, samples]))
    power_w, clock_mhz = np.split(_real(values, _MW_OR_KHZ), [samples])
    return Evidence(starts_s, ends_s, times_s, power_w, read_s, clock_mhz, reasons)


def joined(parts: Sequence[tuple[Evidence, int]]) -> Evidence:
    """The evidence of several windows, each with the ns at which its times begin, as that of one measurement."""
    since_s = [(start_ns - parts[0][1]) / 1e9 for _, start_ns in parts]
    columns = []
    for name in (member.name for member in fields(Evidence)):
        later = since_s if name.endswith("_s") else [0] * len(parts)
        columns.append(np.concatenate([getattr(part, name) + s for (part, _), s in zip(parts, later, strict=True)]))
    return Evidence(*columns)


def _groups(count: int, most: int) -> Integers:
    """The first of each group of neighbours, as equal as can be, of which there are at most so many."""
    places = np.arange(count)
    return places if count <= most else np.flatnonzero(np.diff(places * most // count, prepend=-1)).astype(np.int64)


def _means(values: Floats, most: int) -> Floats:
    first, count = _groups(len(values), most), len(values)
    return values if len(first) == count else np.add.reduceat(values, first) / np.diff(first, append=count)


def _whole(values: Floats, scale: float) -> Integers:
    return np.clip(np.round(np.nan_to_num(values * scale, nan=_UNKNOWN)), _UNKNOWN, -_UNKNOWN).astype(np.int64)


def _real(units: Integers, scale: float) -> Floats:
    values: Floats = np.where(units == _UNKNOWN, np.nan, units / scale)
    return values
