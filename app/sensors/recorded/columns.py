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
"""

from __future__ import annotations

import errno
import json
import os
import struct
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.file_lock import lock_open_file
from ...base.files import title_of
from ...base.text import json_or_none
from ..channel import POWER_SAMPLES
from ..gpu import Gpu
from .header import COLUMNS_FORM, FORMAT, MAX_HEADER, REMEDY, Facts, Header, Mark, Recording, header_line, recording_of
from .writer import Writer

SUFFIX: Final = ".wrec"
_STEP: Final = 4096
_TAG: Final = struct.Struct("<4s4xc7xQ40x")
_MAGIC: Final = b"WBLK"
_MAX_ROWS: Final = 20_000_000  # of each kind: 4.6 days at 50 Hz
_ENERGY: Final = "energy_j"
TOP: Final = 4096  # rows of a block,
FACTOR: Final = 16  # of the smallest group that has extremes,
SUMMED: Final = 256  # and of one that has sums
_LEAST_GAP_NS: Final = 1_000_000_000
_GAP_STEPS: Final = 5.0
LOOKED_AT: Final = 100_000  # rows, for the usual step

Times = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


def _columns(facts: Facts) -> tuple[list[str], bool]:
    """The names of the columns of values, and whether there is an energy counter beside them."""
    names = [described.name for described in facts.channels if described.available]
    return [name for name in names if name != _ENERGY], _ENERGY in names


def _head(columns: int, energy: bool) -> np.dtype[Any]:
    """What a block holds before its values."""
    fields: list[tuple[Any, ...]] = [("time", "<i8", TOP)]
    fields += [("energy", "<f8", TOP)] if energy else []
    for level in (1, 2):
        fields += [(f"{end}{level}", "<f4", (columns, TOP // FACTOR**level)) for end in ("low", "high")]
    fields += [(name, "<f8", (columns, TOP // SUMMED)) for name in ("integral", "covered")]
    return np.dtype([*fields, ("known", "<i2", (columns, TOP // SUMMED))])


def summarise(head: np.ndarray[Any, Any], times: Times, values: Floats, before_ns: int | None, gap_ns: float) -> None:
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


def usual_gap_ns(times: Times) -> float:
    """The distance of rows from which on nothing is known of what lies between."""
    steps = np.diff(times[:LOOKED_AT])
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
        summarise(self.head, times, self.values, self.before_ns, usual_gap_ns(times))
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
        names, counted = _columns(facts)
        available = [described.name for described in facts.channels if described.available]
        self._file, self._energy = file, available.index(_ENERGY) if counted else None
        self._blocks = {b"r": _Block(b"r", len(names), counted), b"p": _Block(b"p", 1, False)}
        line = header_line(facts, COLUMNS_FORM, **more)[:-1].encode()
        self.size = -(-(len(line) + 1) // _STEP) * _STEP
        self._write(0, line.ljust(self.size - 1) + b"\n")

    def add(self, kind: bytes, times: Times, values: Floats | Doubles) -> None:
        """Append rows, `values` with a row for each available channel; whole blocks are written."""
        block, first = self._blocks[kind], 0
        counter = self._energy if kind == b"r" else None
        singles = values if counter is None else np.delete(values, counter, axis=0)
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
            block.values[:, here] = singles[:, there]
            if counter is not None:
                block.head["energy"][here] = values[counter, there]
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
            self._file.seek(place)
            count = self._file.write(left)
            left, place = left[count:], place + count


def _mark_block(mark: Mark) -> bytes:
    document = json.dumps({"time_ns": mark.time_ns, "text": mark.text}, ensure_ascii=False).encode()
    return (_TAG.pack(_MAGIC, b"m", _STEP) + document).ljust(_STEP, b"\0")


def append_mark(path: Path, mark: Mark) -> None:
    """Append a mark to a file that nobody records to. Raises OSError."""
    with path.open("r+b") as file:
        lock_open_file(file)  # two windows with the same file
        end = -(-file.seek(0, os.SEEK_END) // _STEP) * _STEP
        file.seek(end)
        file.write(_mark_block(mark))


class ColumnsWriter(Writer):
    """Records a board in the columnar form."""

    def __init__(self, path: Path, gpu: Gpu) -> None:
        super().__init__(path, gpu)
        self._come: dict[str, list[tuple[int, Sequence[float]]]] = {"r": [], "p": []}  # not in the file yet
        self._form = ColumnsFile(self._file, self._facts)

    def mark(self, mark: Mark) -> None:
        self._form.mark(mark)

    def _add(self, kind: str, at: int, values: Sequence[float]) -> None:
        self._come[kind].append((at, values))

    def _flush(self, *, last: bool = False) -> None:
        for kind, rows in self._come.items():
            if rows:
                times = np.array([time_ns for time_ns, _ in rows], np.int64)
                table = np.array([values for _, values in rows], np.float64).T
                rows.clear()
                self._form.add(kind.encode(), times, table)
        self._form.flush()
        self._size = self._form.size


# --- reading ----------------------------------------------------------------------------------------------------------


def is_columns(path: Path) -> bool:
    """Whether a file is a recording in the columnar form; no pipe is, which could be read only once."""
    if os.path.isfile(path):
        with suppress(OSError), path.open("rb") as file:
            return _is_header(file.read(_STEP))
    return False


def _is_header(beginning: bytes) -> bool:
    return beginning.startswith(f'{{"format": "{FORMAT}", "version": {COLUMNS_FORM},'.encode())


class OpenFile:
    """A file that is read at any place, and closed with the last object that reads from it."""

    def __init__(self, path: Path) -> None:
        self._file, self._turn = path.open("rb", buffering=0), threading.Lock()
        weakref.finalize(self, self._file.close)

    @property
    def size(self) -> int:
        """Bytes of it by now."""
        return os.fstat(self._file.fileno()).st_size

    def read(self, place: int, size: int) -> bytes:
        """What lies there; less where the file ends."""
        with self._turn:  # `pread` is not on every system
            self._file.seek(place)
            return self._file.read(size)


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block of a file: its rows' times, what stands before its values, and where these begin."""

    times: Times
    head: np.ndarray[Any, Any]
    values_at: int


@dataclass(frozen=True, slots=True)
class ColumnsReader:
    """The blocks of a file, found and checked."""

    path: Path
    file: OpenFile
    facts: Facts
    marks: tuple[Mark, ...]
    _places: dict[bytes, list[int]]

    def count(self, kind: bytes) -> int:
        """How many rows there are of a kind."""
        places = self._places[kind]
        if not places:
            return 0
        content = self.file.read(places[-1] + _TAG.size, 8 * TOP).ljust(8 * TOP, b"\0")
        written = np.frombuffer(content, "<i8") != 0
        last = TOP if written.all() else int(np.argmin(written))
        return (len(places) - 1) * TOP + last

    def counts_energy(self, kind: bytes) -> bool:
        """Whether rows have an energy counter beside the columns of values."""
        return kind == b"r" and _columns(self.facts)[1]

    def channels(self, kind: bytes) -> list[str]:
        """The names of the columns of values."""
        return _columns(self.facts)[0] if kind == b"r" else [POWER_SAMPLES.name]

    def blocks(self, kind: bytes, count: int) -> Iterator[StoredBlock]:
        """The first `count` rows."""
        dtype = _head(len(self.channels(kind)), self.counts_energy(kind))
        for number, place in enumerate(self._places[kind]):
            content = bytearray(self.file.read(place + _TAG.size, dtype.itemsize).ljust(dtype.itemsize, b"\0"))
            head = np.frombuffer(content, dtype)[0]
            times = head["time"][: max(0, min(TOP, count - number * TOP))] - 1
            yield StoredBlock(times, head, place + _TAG.size + dtype.itemsize)

    def values(self, block: StoredBlock, column: int, start: int, stop: int) -> Floats:
        """Values of rows [start, stop) of a block; NaN behind the end of the file."""
        out = np.full(stop - start, np.nan, np.float32)
        read = np.frombuffer(self.file.read(block.values_at + 4 * (column * TOP + start), 4 * (stop - start)), "<f4")
        out[: len(read)] = read
        return out


def open_columns(path: Path) -> ColumnsReader:
    """Open a file, one that is being written as far as it is. Raises InputError for one that is none, or damaged."""
    try:
        file = OpenFile(path)
        line = file.read(0, MAX_HEADER + 1).split(b"\n", 1)[0]
        facts = Header(line.decode("utf-8", "replace"), str(path), title_of(path), COLUMNS_FORM).facts
        return ColumnsReader(path, file, facts, *_scan(path, file, facts, len(line) + 1))
    except OSError as error:
        raise InputError(error.strerror or str(error), str(path), "name a recording that can be read") from error


def _scan(path: Path, file: OpenFile, facts: Facts, place: int) -> tuple[tuple[Mark, ...], dict[bytes, list[int]]]:
    """The marks, and where the blocks of each kind begin."""
    names, counted = _columns(facts)
    sizes = {b"r": _Block(b"r", len(names), counted).size, b"p": _Block(b"p", 1, False).size, b"m": _STEP}
    places: dict[bytes, list[int]] = {b"r": [], b"p": []}
    marks, size = [], file.size
    while place + _TAG.size <= size:
        magic, kind, length = _TAG.unpack(file.read(place, _TAG.size).ljust(_TAG.size, b"\0"))
        if not any(magic):
            break  # its place was taken, and nothing was written
        if magic != _MAGIC or length != sizes.get(kind):
            raise damaged(path, f"no block begins at byte {place}")
        if kind == b"m":
            match json_or_none(file.read(place + _TAG.size, _STEP - _TAG.size).rstrip(b"\0")):
                case {"time_ns": int(time_ns), "text": str(text)} if 0 <= time_ns < 1 << 62:
                    marks.append(Mark(time_ns, text[:400]))
        else:
            places[kind].append(place)
        place += length
    if max(map(len, places.values())) * TOP > _MAX_ROWS + TOP:
        raise damaged(path, "it has too many rows")
    return tuple(sorted(marks)), places


def damaged(path: Path, what: str) -> InputError:
    """The error for a file that cannot be what was written."""
    return InputError(f"the recording is damaged: {what}", str(path), REMEDY)


def read_columns(path: Path) -> Recording:
    """The whole recording in memory, to be replayed or analysed. Raises InputError."""
    reader = open_columns(path)
    parts: dict[bytes, tuple[Times, Doubles]] = {}
    names = [described.name for described in reader.facts.channels]
    for kind in (b"r", b"p"):
        count, held = reader.count(kind), reader.channels(kind)
        places = [names.index(name) for name in held] if kind == b"r" else [0]
        times = np.empty(count, np.int64)
        values = np.full((count, len(names) if kind == b"r" else 1), np.nan, order="F")
        for number, block in enumerate(reader.blocks(kind, count)):
            rows = slice(number * TOP, number * TOP + len(block.times))
            times[rows] = block.times
            for column, place in enumerate(places):
                values[rows, place] = reader.values(block, column, 0, len(block.times))
            if "energy" in (block.head.dtype.names or ()):
                values[rows, names.index(_ENERGY)] = block.head["energy"][: len(block.times)]
        if not (np.diff(times) > 0).all():
            raise damaged(path, "time does not go forward")
        parts[kind] = times, values
    if len(parts[b"r"][0]) < 2:
        raise InputError("there are fewer than two readings", str(path), REMEDY)
    samples, watts = parts[b"p"]
    return recording_of(reader.facts, *parts[b"r"], samples, watts[:, 0], reader.marks)
