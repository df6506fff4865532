"""`Evidence`: what a board's sensor reported while one configuration was measured, as it is kept with the measurement.

It is packed as integers (µs, mW, kHz and bits), delta-coded, byte by byte of the same weight, and compressed: about
150 bytes for a window of 0.2 s, and never more than `MOST_BYTE`, for which faster samples become means.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ...sensors.event_reasons import names as reason_names

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

EVIDENT: Final = ("graphics_clock_mhz", "event_reasons")  # the channels that are kept beside the power
WINDOW_S: Final = 0.2
MOST_BYTE: Final = 4096  # packed, for each WINDOW_S that has begun
_MOST_SAMPLES: Final = 64  # of power, and readings of the clock, for each WINDOW_S
_HEAD: Final = struct.Struct("<BIII")  # version; windows, samples, readings
_VERSION: Final = 1
_LONGEST: Final = 1 << 26  # bytes unpacked
_US, _MW, _KHZ = 1e6, 1e3, 1e3
_UNKNOWN: Final = -(1 << 40)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The samples of power of one measurement, and the clock and event reasons that were read meanwhile.

    Times are s from the begin of the first window, on the board's clock. Power is as the board's own sensor reported
    it: what a gain or an aftereffect takes out is in it.
    """

    windows_s: Floats  # begin and end, shape (k, 2): repeats, and parts of a window, are windows of their own
    times_s: Floats  # the middle of what each sample averages, shape (n,)
    power_w: Floats  # shape (n,)
    read_s: Floats  # shape (m,)
    clock_mhz: Floats  # observed graphics clock, shape (m,); NaN if it is not reported
    event_reasons: Integers  # shape (m,)

    @classmethod
    def of(
        cls,
        windows_ns: Sequence[tuple[int, int]],
        times_s: npt.ArrayLike,
        power_w: npt.ArrayLike,
        readings: Iterable[tuple[float, float, float]],
    ) -> Evidence:
        """The evidence of windows on the board's clock; readings are (ns, MHz, reasons), NaN if not reported."""
        read = np.array(list(readings), dtype=np.float64).reshape(-1, 3)
        origin_ns = windows_ns[0][0]
        return cls(
            (np.array(windows_ns, dtype=np.int64) - origin_ns) / 1e9,
            np.asarray(times_s, dtype=np.float64),
            np.asarray(power_w, dtype=np.float64),
            (read[:, 0] - origin_ns) / 1e9,
            read[:, 1],
            np.nan_to_num(read[:, 2]).astype(np.int64),
        )

    @property
    def seconds(self) -> float:
        """The length of all windows together."""
        return float(np.diff(self.windows_s).sum())

    @property
    def mean_power_w(self) -> float:
        """Over the windows; a sample stands for the time nearer to it than to another of its window. NaN without."""
        counts_s = np.zeros(len(self.times_s))
        for start_s, end_s in self.windows_s.tolist():
            inside = (self.times_s >= start_s) & (self.times_s <= end_s)
            times_s = self.times_s[inside]
            counts_s[inside] = np.diff(np.concatenate(([start_s], (times_s[1:] + times_s[:-1]) / 2, [end_s])))[
                : len(times_s)
            ]
        return float(counts_s @ self.power_w / counts_s.sum()) if counts_s.any() else math.nan

    @property
    def energy_j(self) -> float:
        """The integral of the samples over the windows."""
        return self.mean_power_w * self.seconds

    def reasons_s(self) -> Mapping[str, float]:
        """How long each event reason was set, by its name, as far as the readings show it."""
        names = [reason_names(bits) for bits in self.event_reasons.tolist()]
        shown = dict.fromkeys(name for of_reading in names for name in of_reading)
        return {name: self.seconds * sum(name in of_reading for of_reading in names) / len(names) for name in shown}

    def pack(self) -> bytes:
        """As bytes, which `unpack` reads."""
        most = _MOST_SAMPLES * int(np.maximum(1, np.ceil(np.diff(self.windows_s) / WINDOW_S - 1e-9)).sum())
        samples = [_means(values, most) for values in (self.times_s, self.power_w)]
        readings = [_means(values, most) for values in (self.read_s, self.clock_mhz)]
        first = _groups(len(self.read_s), most)
        columns = [
            *(_whole(ends, _US) for ends in self.windows_s.T),
            *(_whole(values, scale) for values, scale in zip(samples, (_US, _MW), strict=True)),
            *(_whole(values, scale) for values, scale in zip(readings, (_US, _KHZ), strict=True)),
            np.bitwise_or.reduceat(self.event_reasons, first) if len(first) else first,
        ]
        deltas = np.concatenate([np.diff(column, prepend=0) for column in columns]).astype("<i8")
        planes = deltas.view(np.uint8).reshape(-1, 8).T.tobytes()
        return _HEAD.pack(_VERSION, len(self.windows_s), len(samples[0]), len(readings[0])) + zlib.compress(planes, 9)


def unpack(packed: bytes) -> Evidence:
    """The evidence that was packed. Raises ValueError where it is damaged."""
    try:
        version, windows, samples, readings = _HEAD.unpack_from(packed)
        length = 8 * (2 * windows + 2 * samples + 3 * readings)
        if version != _VERSION or not windows or length > _LONGEST:
            raise ValueError("the samples are of a form that this program does not know")
        inflating = zlib.decompressobj()
        planes = inflating.decompress(packed[_HEAD.size :], length + 1)
    except (struct.error, zlib.error) as error:
        raise ValueError(f"the samples are damaged: {error}") from None
    if len(planes) != length or not inflating.eof:
        raise ValueError("the samples are damaged: their number is another")
    deltas = np.frombuffer(planes, dtype=np.uint8).reshape(8, -1).T.copy().view("<i8").ravel()
    ends = np.cumsum([windows, windows, samples, samples, readings, readings])
    starts_s, ends_s, times_s, power_w, read_s, clock_mhz, reasons = (
        np.cumsum(column, dtype=np.int64) for column in np.split(deltas, ends)
    )
    return Evidence(
        np.column_stack([_real(starts_s, _US), _real(ends_s, _US)]),
        *(_real(column, scale) for column, scale in ((times_s, _US), (power_w, _MW), (read_s, _US), (clock_mhz, _KHZ))),
        event_reasons=reasons,
    )


def joined(parts: Sequence[tuple[Evidence, int]]) -> Evidence:
    """The evidence of several windows, each with the ns at which its times begin, as that of one measurement."""
    offsets_s = [(start_ns - parts[0][1]) / 1e9 for _, start_ns in parts]
    shifted = {
        name: np.concatenate([getattr(part, name) + offset for (part, _), offset in zip(parts, offsets_s, strict=True)])
        for name in ("windows_s", "times_s", "read_s")
    }
    kept = {
        name: np.concatenate([getattr(part, name) for part, _ in parts])
        for name in ("power_w", "clock_mhz", "event_reasons")
    }
    return Evidence(**shifted, **kept)


def _groups(count: int, most: int) -> Integers:
    """The first of each group of neighbours, as equal as can be, of which there are at most so many."""
    return np.flatnonzero(np.diff(np.arange(count) * most // max(1, count), prepend=-1)).astype(np.int64)


def _means(values: Floats, most: int) -> Floats:
    first = _groups(len(values), most)
    if len(first) == len(values):
        return values
    means: Floats = np.add.reduceat(values, first) / np.diff(first, append=len(values))
    return means


def _whole(values: Floats, scale: float) -> Integers:
    finite = np.isfinite(values)
    units = np.clip(np.round(np.where(finite, values, 0.0) * scale), _UNKNOWN + 1, -_UNKNOWN)
    return np.where(finite, units, _UNKNOWN).astype(np.int64)


def _real(units: Integers, scale: float) -> Floats:
    values: Floats = np.where(units == _UNKNOWN, np.nan, units / scale)
    return values
