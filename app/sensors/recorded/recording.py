"""Recordings as text: what a GPU reported, in a file that can be replayed anywhere. `columns.py` has the other form.

The file is UTF-8 text, gzipped, `NAME.csv.gz`:

- The first line is one JSON object: `format` "wattridge-recording", `version` 1, then `name`, `driver`,
  `recorded_from` (nvml or simulated), `power_limit_w` {min, max, default, current}, `compute_capability`
  [major, minor], `multiprocessors`, `memory_mib`, `power_source`, `began_s`, `graphics_clocks_mhz`, `memory_clocks_mhz`
  (lists), and `channels`, an object of every channel in order: null where it is available, else the reason why not.
- Each further line is `r,TIME,VALUE,...` for a reading (the available channels in order, an empty cell if unknown),
  `p,TIME,WATT` for one sample of the driver's power buffer, or `m,TIME,"TEXT"` for a mark. TIME is in whole
  microseconds after the recording began.

While it is written the file is called `NAME.csv.gz.part`; one that was left behind is read as far as it goes.
"""

from __future__ import annotations

import errno
import gzip
import io
import json
import math
import os
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np

from ...base.errors import InputError
from ...base.files import open_input, title_of
from ...base.text import float_or_none, json_or_none
from ..channel import POWER_SAMPLES, figure_text
from ..gpu import Gpu
from .columns import SUFFIX, ColumnsWriter, is_columns, read_columns
from .header import LARGEST, MAX_HEADER, REMEDY, TEXT_FORM, Facts, Header, Mark, header_line, recording_of
from .header import Recording as Recording
from .writer import Writer

_GZIP_BITS = 31  # of zlib: the largest window, and gzip's header and trailer
_MAX_ROWS = 5_000_000  # of each kind: 27 h at 50 Hz
_MAX_MARKS = 10_000
_MAX_LINE = 4096  # characters


class RecordingWriter(Writer):
    """The form in gzipped text."""

    unit_ns = 1000

    def __init__(self, path: Path, gpu: Gpu) -> None:
        super().__init__(path, gpu)
        self._rows = {"r": 0, "p": 0}
        available = [described.name for described in gpu.channels if described.available]
        self._names = {"r": available, "p": [POWER_SAMPLES.name]}
        self._pack = zlib.compressobj(wbits=_GZIP_BITS)  # no name and no date: the same readings make the same file
        self._lines = [header_line(self._facts, TEXT_FORM)]  # not written out yet

    def mark(self, mark: Mark) -> None:
        self._lines.append(mark_line(mark))

    def _add(self, kind: str, at: int, values: Sequence[float]) -> None:
        if self._rows[kind] >= _MAX_ROWS:
            raise OSError(errno.EFBIG, f"the recording is full ({_MAX_ROWS} readings; a .wrec holds more)")
        self._rows[kind] += 1
        self._lines.append(",".join((kind, str(at), *map(figure_text, self._names[kind], values))) + "\n")

    def _flush(self, *, last: bool = False) -> None:
        text = "".join(self._lines).encode()
        self._lines.clear()
        packed = memoryview(self._pack.compress(text) + self._pack.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH))
        try:
            while packed:
                packed = packed[self._file.write(packed) :]
        except OSError:
            with suppress(OSError):
                self._file.truncate(self._size)
            raise
        self._size = self._file.tell()


def mark_line(mark: Mark) -> str:
    """A mark as a line of text."""
    return f"m,{mark.time_ns // 1000},{json.dumps(mark.text, ensure_ascii=False)}\n"


def append_mark(path: Path, mark: Mark) -> None:
    """Append a mark to a finished recording as text, gzipped or plain. Raises OSError."""
    with path.open("r+b") as file:
        packed = file.read(2) == b"\x1f\x8b"
        line = mark_line(mark).encode()
        file.seek(0, os.SEEK_END)
        file.write(gzip.compress(line, mtime=0) if packed else line)


def read_recording(path: Path) -> Recording:
    """Read a recording in either form; an unfinished one (`.part`) as far as it was written out.

    Raises InputError naming file, line and remedy where it is malformed.
    """
    return read_columns(path) if is_columns(path) else TextRecording(path).read()


def new_recording(path: Path, gpu: Gpu) -> Writer:
    """A recording in the form that the name states: columnar where it ends in .wrec, else text. Raises InputError."""
    return ColumnsWriter(path, gpu) if path.suffix == SUFFIX else RecordingWriter(path, gpu)


Row = tuple[str, int, list[float], str]  # kind, TIME in us, values; the text of a mark


class TextRecording:
    """One pass over the lines, which knows where it is when something is wrong."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unfinished = path.suffix == ".part"
        self._number = 1
        self._raw: BinaryIO | None = None  # while it is read
        self._size = 0

    @property
    def share(self) -> float:
        """How much of the file is read, 0 to 1; NaN if that is not known."""
        return self._raw.tell() / self._size if self._raw is not None and self._size else math.nan

    def read(self) -> Recording:
        """All of it. Raises InputError."""
        rows = self.rows()
        facts = next(rows)
        assert isinstance(facts, Facts)
        available = [place for place, described in enumerate(facts.channels) if described.available]
        times, values = {"r": array("q"), "p": array("q")}, {"r": array("d"), "p": array("d")}
        marks = []
        for row in rows:
            assert not isinstance(row, Facts)
            kind, at_us, numbers, text = row
            if kind == "m":
                marks.append(Mark(at_us * 1000, text))
            else:
                times[kind].append(at_us)
                values[kind].extend(numbers)
        time_ns, sample_ns = (np.array(each, np.int64) * 1000 for each in times.values())
        table = np.full((len(time_ns), len(facts.channels)), np.nan)
        table[:, available] = np.asarray(values["r"]).reshape(len(time_ns), len(available))
        return recording_of(facts, time_ns, table, sample_ns, np.array(values["p"], np.float64), marks)

    def rows(self) -> Iterator[Facts | Row]:
        """The facts, then every row in turn, times rising within its kind. Raises InputError."""
        try:
            with open_input(self._path) as raw:
                packed = raw.read(2) == b"\x1f\x8b"
                self._raw, self._size = raw, raw.seek(0, os.SEEK_END)
                raw.seek(0)
                stream: BinaryIO = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]
                with io.TextIOWrapper(stream, encoding="utf-8", newline="\n") as text:
                    yield from self._parse(text)
        except UnicodeDecodeError as error:
            raise InputError("this is not UTF-8 text", str(self._path), REMEDY) from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError("the compressed file is damaged or cut off", str(self._path), REMEDY) from error
        except OSError as error:
            raise InputError(
                error.strerror or str(error), str(self._path), "name a recording that can be read"
            ) from error

    def _parse(self, text: io.TextIOBase) -> Iterator[Facts | Row]:
        facts = Header(text.readline(MAX_HEADER + 1), str(self._path), title_of(self._path), TEXT_FORM).facts
        yield facts
        available = sum(described.available for described in facts.channels)
        last_us, counts = {"r": -1, "p": -1, "m": -1}, {"r": 0, "p": 0, "m": 0}
        for line in self._lines(text):
            self._number += 1
            if len(line) > _MAX_LINE:
                self._refuse("the line is too long")
            kind, *cells = line.rstrip("\n").split(",")
            if kind == "m" and len(cells) >= 2 and isinstance(words := json_or_none(",".join(cells[1:])), str):
                row: Row = kind, self._time(cells[0], -1), [], words
            elif (kind == "r" and len(cells) == available + 1) or (kind == "p" and len(cells) == 2):
                row = kind, self._time(cells[0], last_us[kind]), [self._number_of(cell) for cell in cells[1:]], ""
                last_us[kind] = row[1]
            else:
                self._refuse(f"expected r,TIME and {available} values, or p,TIME,WATT")
            counts[kind] += 1
            if counts[kind] > (_MAX_MARKS if kind == "m" else _MAX_ROWS):
                self._refuse(f"there are more than {counts[kind] - 1} rows")
            yield row
        if counts["r"] < 2:
            self._refuse("there are fewer than two readings")

    def _lines(self, text: io.TextIOBase) -> Iterator[str]:
        """The lines after the first. What ends an unfinished recording may be cut off anywhere."""
        while True:
            try:
                line = text.readline(_MAX_LINE + 1)
            except (EOFError, gzip.BadGzipFile, zlib.error):
                if self._unfinished:
                    return
                raise
            cut = self._unfinished and not line.endswith("\n") and len(line) <= _MAX_LINE
            if not line or cut:
                return
            yield line

    def _refuse(self, what: str) -> NoReturn:
        raise InputError(what, f"{self._path}, line {self._number}", REMEDY)

    def _time(self, cell: str, last_us: int) -> int:
        if not (cell.isascii() and cell.isdigit() and len(cell) <= 15):
            self._refuse(f"'{cell[:40]}' is no time in microseconds")
        time_us = int(cell)
        if time_us <= last_us:
            self._refuse("time does not go forward")
        return time_us

    def _number_of(self, cell: str) -> float:
        if not cell:
            return math.nan
        value = float_or_none(cell)
        if value is None or not abs(value) < LARGEST:
            self._refuse(f"'{cell[:40]}' is no number")
        return value
