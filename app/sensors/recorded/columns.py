"""The columnar form of a recording, `NAME.wrec`: a day at 50 Hz opens at once, and any part of it is drawn at once.

- The first line is the header of a recording (`header.py`) with `version` 2, padded with spaces to whole 4096 bytes.
- Blocks follow, each of whole 4096 bytes and behind a tag of 64: `WBLK`, the kind and the length, little-endian.
- `r` and `p` hold 4096 readings, or samples of the driver's buffer: times in ns after the beginning plus one (0: not
  written yet), the energy counter in double, and of the other available channels the least and the largest value of
  every 16 and every 256 rows, sums of every 256 (value times seconds, seconds that are known, rows that are), and the
  values in single precision, channel by channel.
- `m` holds a mark: JSON with `time_ns` and `text`, padded with zeros.

A block's place is taken when its first row comes, and what is new is written into it every second, times last: what a
process that was killed, or a full disk, leaves behind is read up to there. The sums and extremes of the last block are
made when it is read.

Values are read when they are drawn, with `pread`: a map of the file would end the process where another one cuts the
file off, and its pages would count as this process's memory.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.files import title_of
from ...base.text import json_or_none
from ..channel import PowerSample, Reading
from ..gpu import Gpu
from ..trace.ring import FACTOR, LEVELS, SUMMED, TOP, Floats, Ring, Times
from ..trace.trace import Trace
from .header import COLUMNS_FORM, FORMAT, MAX_HEADER, REMEDY, Facts, Header, Mark, header_line
from .recording import Recording, Writer, recording_of

SUFFIX: Final = ".wrec"
_STEP: Final = 4096
_TAG: Final = struct.Struct("<4s4xc7xQ40x")
_MAGIC: Final = b"WBLK"
_MAX_ROWS: Final = 20_000_000  # of each kind: 4.6 days at 50 Hz
_ENERGY: Final = "energy_j"
_LEAST_GAP_NS: Final = 1_000_000_000
_GAP_STEPS: Final = 5.0
_KEPT_GAPS: Final = 1000
_LOOKED_AT: Final = 100_000  # rows, for the usual step

Doubles = npt.NDArray[np.float64]


def _head(columns: int, energy: bool) -> np.dtype[Any]:
    """What a block holds before its values."""
    fields: list[tuple[Any, ...]] = [("time", "<i8", TOP)]
    fields += [("energy", "<f8", TOP)] if energy else []
    for level in (1, 2):
        fields += [(f"{end}{level}", "<f4", (columns, TOP // FACTOR**level)) for end in ("low", "high")]
    fields += [(name, "<f8", (columns, TOP // SUMMED)) for name in ("integral", "covered")]
    return np.dtype([*fields, ("known", "<i2", (columns, TOP // SUMMED))])


def _summarise(head: np.ndarray[Any, Any], times: Times, values: Floats, before_ns: int | None, gap_ns: float) -> None:
    """Fill in the extremes and sums of rows, as many as are whole groups; `values` has a row for each column."""
    for level in (1, 2):
        size = FACTOR**level
        groups = len(times) // size
        parts = values[:, : groups * size].reshape(len(values), groups, size)
        head[f"low{level}"][:, :groups] = np.fmin.reduce(parts, axis=2)
        head[f"high{level}"][:, :groups] = np.fmax.reduce(parts, axis=2)
    groups = len(times) // SUMMED
    apart_ns = np.diff(times, prepend=times[:1] if before_ns is None else [before_ns])[: groups * SUMMED]
    seconds = np.where(apart_ns > gap_ns, 0, apart_ns).reshape(groups, SUMMED) * 1e-9
    parts = values[:, : groups * SUMMED].reshape(len(values), groups, SUMMED).astype(np.float64)
    finite = np.isfinite(parts)
    head["integral"][:, :groups] = np.einsum("gs,cgs->cg", seconds, np.where(finite, parts, 0.0))
    head["covered"][:, :groups] = np.einsum("gs,cgs->cg", seconds, finite)
    head["known"][:, :groups] = finite.sum(axis=2)


def _usual_gap_ns(times: Times) -> float:
    """The distance of rows from which on nothing is known of what lies between."""
    steps = np.diff(times[:_LOOKED_AT])
    return max(_LEAST_GAP_NS, _GAP_STEPS * float(np.median(steps))) if len(steps) else _LEAST_GAP_NS


# --- writing ----------------------------------------------------------------------------------------------------------


class _Block:
    """The block of one kind that rows are written to."""

    def __init__(self, kind: bytes, columns: int, energy: bool) -> None:
        self.kind, self.columns = kind, columns
        self._dtype = _head(columns, energy)
        self.size = -(-(_TAG.size + self._dtype.itemsize + 4 * columns * TOP) // _STEP) * _STEP
        self.offset: int | None = None
        self.rows = 0  # of all blocks
        self.before_ns: int | None = None
        self.begin()

    def begin(self) -> None:
        self.head = np.zeros((), self._dtype)
        self.values = np.full((self.columns, TOP), np.nan, np.float32)
        self.filled = self.written = 0

    @property
    def values_at(self) -> int:
        assert self.offset is not None
        return self.offset + _TAG.size + self._dtype.itemsize

    def whole(self) -> bytes:
        """The block when it is full."""
        times = self.head["time"] - 1
        _summarise(self.head, times, self.values, self.before_ns, _usual_gap_ns(times))
        self.before_ns = int(times[-1])
        content = _TAG.pack(_MAGIC, self.kind, self.size) + self.head.tobytes() + self.values.tobytes()
        return content.ljust(self.size, b"\0")

    def news(self) -> Iterator[tuple[int, bytes]]:
        """What was added since the last call, as (place, bytes), times last."""
        new = slice(self.written, self.filled)
        for column in range(self.columns):
            yield self.values_at + 4 * (column * TOP + new.start), self.values[column, new].tobytes()
        names = self._dtype.names or ()
        for name in ("energy", "time"):
            if name in names:
                place = self.offset + _TAG.size + self._dtype.fields[name][1] + 8 * new.start  # type: ignore
                yield place, self.head[name][new].tobytes()
        self.written = self.filled


class ColumnsFile:
    """An empty file, to which rows and marks are appended. Every method may raise OSError."""

    def __init__(self, file: BinaryIO, facts: Facts, **more: Any) -> None:
        names = [described.name for described in facts.channels if described.available]
        self._file = file
        self._blocks = {
            b"r": _Block(b"r", len([name for name in names if name != _ENERGY]), _ENERGY in names),
            b"p": _Block(b"p", 1, False),
        }
        line = header_line(facts, COLUMNS_FORM, **more)[:-1].encode()
        self.size = -(-(len(line) + 1) // _STEP) * _STEP
        self._write(0, line.ljust(self.size - 1) + b"\n")

    def add(self, kind: bytes, times: Times, values: Floats, energy: Doubles | None = None) -> None:
        """Append rows, `values` with a row for each channel but the energy counter; those of whole blocks are written."""
        block, first = self._blocks[kind], 0
        block.rows += len(times)
        if block.rows > _MAX_ROWS:
            raise OSError(errno.EFBIG, "the recording is full")
        while first < len(times):
            if block.offset is None:
                block.offset, self.size = self.size, self.size + block.size
                self._write(block.offset, _TAG.pack(_MAGIC, kind, block.size))
                os.ftruncate(self._file.fileno(), self.size)
            count = min(TOP - block.filled, len(times) - first)
            here, there = slice(block.filled, block.filled + count), slice(first, first + count)
            block.head["time"][here] = times[there] + 1
            block.values[:, here] = values[:, there]
            if energy is not None:
                block.head["energy"][here] = energy[there]
            block.filled, first = block.filled + count, first + count
            if block.filled == TOP:
                self._write(block.offset, block.whole())
                block.offset = None
                block.begin()

    def mark(self, mark: Mark) -> None:
        """Append a mark."""
        self._write(self.size, _mark_block(mark))
        self.size += _STEP

    def flush(self) -> None:
        """Write what is not written yet."""
        for block in self._blocks.values():
            if block.offset is not None and block.written < block.filled:
                for place, content in block.news():
                    self._write(place, content)

    def _write(self, place: int, content: bytes) -> None:
        left = memoryview(content)
        while left:
            count = os.pwrite(self._file.fileno(), left, place)
            left, place = left[count:], place + count


def _mark_block(mark: Mark) -> bytes:
    document = json.dumps({"time_ns": mark.time_ns, "text": mark.text}, ensure_ascii=False).encode()
    return (_TAG.pack(_MAGIC, b"m", _STEP) + document).ljust(_STEP, b"\0")


def append_mark(path: Path, mark: Mark) -> None:
    """Append a mark to a file that nobody records to. Raises OSError."""
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # two windows with the same file
        end = -(-file.seek(0, os.SEEK_END) // _STEP) * _STEP
        file.seek(end)
        file.write(_mark_block(mark))


class ColumnsWriter(Writer):
    """Records a board in the columnar form."""

    def __init__(self, path: Path, gpu: Gpu) -> None:
        super().__init__(path, gpu)
        self._last_ns = {b"r": -1, b"p": -1}
        self._come: dict[bytes, list[tuple[int, Sequence[float]]]] = {b"r": [], b"p": []}  # not in the file yet
        self._channels = [place for place in self._available if self._names[place] != _ENERGY]
        self._energy = next((place for place in self._available if self._names[place] == _ENERGY), None)
        self._form = ColumnsFile(self._file, self._facts)

    def write(self, reading: Reading) -> None:
        self._row(b"r", reading.time_ns, reading.values)

    def write_power_samples(self, samples: Sequence[PowerSample]) -> None:
        for sample in samples:
            self._row(b"p", sample.time_ns, (sample.power_w,))

    def mark(self, mark: Mark) -> None:
        self._form.mark(mark)

    def _row(self, kind: bytes, time_ns: int, values: Sequence[float]) -> None:
        after_ns = time_ns - self._origin_ns
        if after_ns > self._last_ns[kind]:
            self._last_ns[kind] = after_ns
            self._come[kind].append((after_ns, values))
            self._came(after_ns)

    def _flush(self, *, last: bool = False) -> None:
        for kind, rows in self._come.items():
            if rows:
                times = np.array([time_ns for time_ns, _ in rows], np.int64)
                table = np.array([values for _, values in rows], np.float64).T
                energy = table[self._energy] if kind == b"r" and self._energy is not None else None
                rows.clear()
                self._form.add(kind, times, (table[self._channels] if kind == b"r" else table).astype(np.float32), energy)
        self._form.flush()
        self._size = self._form.size


# --- reading ----------------------------------------------------------------------------------------------------------


class StoredRing(Ring):
    """Rows of a file: times, extremes and sums in memory, values read as they are asked for. It does not grow."""

    def __init__(self, columns: int, count: int, file: BinaryIO) -> None:
        self.columns, self.count, self.gap_ns = columns, count, _LEAST_GAP_NS
        self.gaps = ()
        self.blocks: list[int] = []  # where the values of each block begin
        self._file = file
        self._appending = threading.RLock()
        self._shown = max(1, count)
        self.length = max(1, -(-count // TOP)) * TOP
        self._time = np.zeros(self.length, np.int64)
        sizes = [self.length // FACTOR**level for level in range(1, LEVELS + 1)]
        self._low = [np.full((columns, size), np.nan, np.float32) for size in sizes]
        self._high = [np.full((columns, size), np.nan, np.float32) for size in sizes]
        self._integral, self._covered_s = np.zeros((2, columns, self.length // SUMMED))
        self._known = np.zeros((columns, self.length // SUMMED), np.int16)

    def put(self, number: int, head: np.ndarray[Any, Any], times: Times, values_at: int) -> None:
        """Take over a block."""
        self.blocks.append(values_at)
        self._time[number * TOP : number * TOP + len(times)] = times
        if len(times) < TOP:
            values = self.part(range(self.columns), number * TOP, number * TOP + len(times))
            before = int(self._time[number * TOP - 1]) if number else None
            _summarise(head, times, values, before, _usual_gap_ns(times))
        for level in (1, 2):
            groups = TOP // FACTOR**level
            filled = len(times) // FACTOR**level
            there = slice(number * groups, number * groups + filled)
            self._low[level - 1][:, there] = head[f"low{level}"][:, :filled]
            self._high[level - 1][:, there] = head[f"high{level}"][:, :filled]
        self._low[2][:, number] = np.fmin.reduce(head["low2"], axis=1)
        self._high[2][:, number] = np.fmax.reduce(head["high2"], axis=1)
        sums = slice(number * TOP // SUMMED, (number + 1) * TOP // SUMMED)
        self._integral[:, sums], self._covered_s[:, sums] = head["integral"], head["covered"]
        self._known[:, sums] = head["known"]

    @property
    def all_times(self) -> Times:
        """Of every row: no copy."""
        return self._time[: self.count]

    def finish(self) -> bool:
        """Find the gaps; False if time does not go forward."""
        times = self.all_times
        self.gap_ns = int(_usual_gap_ns(times))
        gaps, rises = [], True
        for first in range(0, self.count, _LOOKED_AT):
            steps = np.diff(times[first : first + _LOOKED_AT + 1])
            gaps.append(first + np.flatnonzero(steps > self.gap_ns))
            rises = rises and bool((steps > 0).all())
        places = np.concatenate(gaps) if gaps else np.empty(0, np.int64)
        if len(places) > _KEPT_GAPS:
            lengths = times[places + 1] - times[places]
            places = np.sort(places[np.argsort(lengths)[-_KEPT_GAPS:]])
        self.gaps = tuple(zip(times[places].tolist(), times[places + 1].tolist(), strict=True))
        return rises

    def part(self, columns: Sequence[int], start: int, stop: int) -> Floats:
        out = np.full((len(columns), max(0, stop - start)), np.nan, np.float32)
        for number in range(start // TOP, -(-stop // TOP)) if stop > start else ():
            first, last = max(start, number * TOP), min(stop, (number + 1) * TOP)
            for place, column in enumerate(columns):
                at = self.blocks[number] + 4 * (column * TOP + first - number * TOP)
                read = np.frombuffer(_read(self._file, at, 4 * (last - first)), "<f4")
                out[place, first - start : first - start + len(read)] = read
        return out

    def column(self, column: int, start: int, stop: int) -> Floats:
        column_of: Floats = self.part([column], start, stop)[0]
        return column_of

    def row(self, row: int) -> Floats:
        row_of: Floats = self.part(range(self.columns), row, row + 1)[:, 0]
        return row_of


class StoredTrace(Trace):
    """A whole recording as a trace; times are ns after its beginning."""

    def __init__(self, facts: Facts, rows: StoredRing, samples: StoredRing, energy: Doubles) -> None:
        super().__init__(facts.channels, rate_hz=1.0, span_s=1.0)
        self._rows, self._samples, self._energy = rows, samples, energy
        if self._reasons_index is not None:
            self._find_changes(rows.column(self._column["event_reasons"], 0, rows.count))

    def _find_changes(self, reasons: Floats) -> None:
        np.nan_to_num(reasons, copy=False)
        bits = reasons.astype(np.int32)
        times = self._rows.all_times
        places = np.flatnonzero(np.diff(bits, prepend=np.int32(0)))
        silent = np.array([before for before, _ in self._rows.gaps], np.int64)
        after = np.searchsorted(times, silent, "right")  # what was set before a gap is not known in it
        silent, after = silent[bits[after - 1] != 0], after[bits[after - 1] != 0]
        again = after[bits[after] == bits[after - 1]]
        stamps = np.concatenate((times[places], silent + 1, times[again]))
        values = np.concatenate((bits[places], np.zeros(len(silent), np.int32), bits[again]))
        order = np.argsort(stamps, kind="stable")
        self._changes = Ring(1, max(1, len(order)), 1 << 62)
        for stamp, value in zip(stamps[order].tolist(), values[order].tolist(), strict=True):
            self._changes.append(stamp, (value,))


@dataclass(frozen=True, slots=True)
class Columns:
    """An open file. It can be read as long as this is kept, also when it was renamed or removed."""

    path: Path
    facts: Facts
    trace: StoredTrace
    marks: tuple[Mark, ...]

    @property
    def end_ns(self) -> int:
        """The time of its last reading or sample."""
        samples = self.trace.power_samples(self.trace.last_ns, 1 << 62)[0]
        return max(self.trace.last_ns, int(samples[-1]) if len(samples) else 0)


def is_columns(path: Path) -> bool:
    """Whether a file is a recording in the columnar form."""
    with suppress(OSError), path.open("rb") as file:
        return os.path.isfile(path) and _is_header(file.read(_STEP))
    return False


def _is_header(beginning: bytes) -> bool:
    return beginning.startswith(f'{{"format": "{FORMAT}", "version": {COLUMNS_FORM},'.encode())


def open_columns(path: Path) -> Columns:
    """Open a file, one that is being written as far as it is. Raises InputError for one that is none, or damaged."""
    try:
        file: BinaryIO = path.open("rb", buffering=0)
        beginning = b""
        while b"\n" not in beginning and len(beginning) <= MAX_HEADER:
            more = _read(file, len(beginning), 1 << 16)
            beginning += more
            if not more:
                break
        line = beginning.split(b"\n", 1)[0]
        header = Header(line.decode("utf-8", "replace"), str(path), title_of(path), COLUMNS_FORM)
        return _open(path, file, header.facts, len(line) + 1)
    except OSError as error:
        raise InputError(error.strerror or str(error), str(path), "name a recording that can be read") from error


def _open(path: Path, file: BinaryIO, facts: Facts, begin: int) -> Columns:
    def damaged(what: str) -> InputError:
        return InputError(f"the recording is damaged: {what}", str(path), REMEDY)

    names = [described.name for described in facts.channels if described.available]
    kinds = {b"r": _Block(b"r", len([n for n in names if n != _ENERGY]), _ENERGY in names), b"p": _Block(b"p", 1, False)}
    places: dict[bytes, list[int]] = {b"r": [], b"p": []}
    marks, place, size = [], begin, os.fstat(file.fileno()).st_size
    while place + _TAG.size <= size:
        magic, kind, length = _TAG.unpack(_read(file, place, _TAG.size))
        if magic != _MAGIC or kind not in (b"r", b"p", b"m") or length != (_STEP if kind == b"m" else kinds[kind].size):
            if not any(magic):
                break  # its place was taken, and nothing was written
            raise damaged(f"no block begins at byte {place}")
        if kind == b"m":
            match json_or_none(_read(file, place + _TAG.size, _STEP - _TAG.size).rstrip(b"\0")):
                case {"time_ns": int(time_ns), "text": str(text)} if 0 <= time_ns < 1 << 62:
                    marks.append(Mark(time_ns, text[:400]))
        else:
            places[kind].append(place)
        place += length
    rings, energy = {}, np.empty(0)
    for kind, block in kinds.items():
        dtype, at = block.head.dtype, places[kind]
        filled = 0
        if at:
            filled = _filled(np.frombuffer(_read(file, at[-1] + _TAG.size, 8 * TOP).ljust(8 * TOP, b"\0"), "<i8"))
        count = max(0, len(at) - 1) * TOP + filled
        if count > _MAX_ROWS:
            raise damaged("it has too many rows")
        ring = rings[kind] = StoredRing(block.columns, count, file)
        if "energy" in (dtype.names or ()):
            energy = np.full(ring.length, np.nan)
        for number, offset in enumerate(at):
            content = bytearray(_read(file, offset + _TAG.size, dtype.itemsize).ljust(dtype.itemsize, b"\0"))
            head = np.frombuffer(content, dtype)[0]
            times = head["time"][: filled if number == len(at) - 1 else TOP] - 1
            ring.put(number, head, times, offset + _TAG.size + dtype.itemsize)
            if len(energy) and kind == b"r":
                energy[number * TOP : number * TOP + len(times)] = head["energy"][: len(times)]
        if not ring.finish():
            raise damaged("time does not go forward")
    if rings[b"r"].count < 2:
        raise InputError("there are fewer than two readings", str(path), REMEDY)
    return Columns(path, facts, StoredTrace(facts, rings[b"r"], rings[b"p"], energy), tuple(sorted(marks)))


def _filled(times: Times) -> int:
    """How many rows of a block are written."""
    return int(np.argmin(times != 0)) if not times.all() else len(times)


def _read(file: BinaryIO, place: int, size: int) -> bytes:
    return os.pread(file.fileno(), size, place)


def read_columns(path: Path) -> Recording:
    """The whole recording in memory, to be replayed or analysed. Raises InputError."""
    return read_part(open_columns(path), 0, 1 << 62)


def read_part(opened: Columns, start_ns: int, end_ns: int) -> Recording:
    """A part of a recording in memory; its times count from the beginning of the whole."""
    trace, facts = opened.trace, opened.facts
    held = trace.columns(start_ns, end_ns)
    values = np.full((len(held["time_ns"]), len(facts.channels)), np.nan, order="F")
    for place, described in enumerate(facts.channels):
        if described.name in held:
            values[:, place] = held[described.name]
    sample_ns, sample_w = trace.power_samples(start_ns, end_ns)
    return recording_of(facts, held["time_ns"], values, sample_ns, sample_w.astype(np.float64), opened.marks)


def new_recording(path: Path, gpu: Gpu) -> Writer:
    """A recording in the form that the name states: columnar where it ends in .wrec, else text. Raises InputError."""
    from .recording import RecordingWriter

    return ColumnsWriter(path, gpu) if path.suffix == SUFFIX else RecordingWriter(path, gpu)
