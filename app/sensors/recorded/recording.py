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
import time
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError, WattridgeError
from ...base.files import is_there, open_input, title_of
from ...base.text import json_or_none
from ..channel import POWER_SAMPLES, Channel, PowerSample, Reading, figure_text
from ..gpu import Gpu, GpuInfo
from .header import LARGEST, MAX_HEADER, REMEDY, TEXT_FORM, Facts, Header, Mark, facts_of, header_line, mark_text
from .marks import MarkInbox

FLUSH_NS = 1_000_000_000
_GZIP_BITS = 31  # of zlib: the largest window, and gzip's header and trailer
_MAX_ROWS = 5_000_000  # of each kind: 27 h at 50 Hz
_MAX_MARKS = 10_000
_MAX_LINE = 4096  # characters


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording, read. Times are ns after its beginning, rising; `values` has a column per channel, NaN unknown."""

    title: str
    info: GpuInfo  # of the recorded board, without its UUID
    recorded_from: str
    graphics_clocks_mhz: tuple[int, ...]
    memory_clocks_mhz: tuple[int, ...]
    channels: tuple[Channel, ...]
    time_ns: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]  # (readings, channels)
    sample_ns: npt.NDArray[np.int64]
    sample_w: npt.NDArray[np.float64]
    selector: str = ""  # what opens it again behind 'recorded:', from any folder; empty if a reader was asked itself
    began_s: float = math.nan  # since the epoch; NaN if that is not known
    marks: tuple[Mark, ...] = ()


class Writer:
    """Writes one GPU's readings to a file. One thread at a time.

    Until it is closed the file is called `NAME.part`. Every second of the recording is written out as a whole, so
    that a process that is killed loses less than two, and a full disk leaves whole readings, which are read up to
    there. Marks that other programs set while it runs come by its `inbox`.
    """

    def __init__(self, path: Path, gpu: Gpu) -> None:
        """Raises InputError if the file or its `.part` exists already, or cannot be written."""
        if is_there(path):
            raise InputError("this file exists already", str(path), "choose another name, or remove it first")
        self.path = path
        self.part = path.with_name(path.name + ".part")
        self.inbox: MarkInbox | None = None
        self._clock = gpu.clock
        self._available = [place for place, described in enumerate(gpu.channels) if described.available]
        self._names = [described.name for described in gpu.channels]
        self._origin_ns = gpu.clock.now_ns()
        self._facts = facts_of(gpu, title_of(path), time.time() if gpu.clock.kept_pace else math.nan)
        self._due_ns = 0  # when what came so far is to be written out
        self._size = 0  # of what is written out
        try:
            self._file = self.part.open("xb", buffering=0)
        except FileExistsError:
            raise InputError(
                "an unfinished recording of this name exists",
                str(self.part),
                "choose another name, or replay it with --gpu recorded:FILE and remove it",
            ) from None
        except OSError as error:
            raise InputError(
                f"the recording cannot be written: {error.strerror or error}",
                str(path),
                "choose a folder that is there",
            ) from error

    @property
    def finished(self) -> bool:
        """The file is complete and has its name."""
        return self._file.closed and not self.part.exists()

    @property
    def size(self) -> int:
        """Bytes of the file so far, without what waits for the next second."""
        return self._size

    def write(self, reading: Reading) -> None:
        """Append one reading. Raises OSError, also when the recording is full.

        An error with a file name has ended the recording, and what was written lies there.
        """
        raise NotImplementedError

    def write_power_samples(self, samples: Sequence[PowerSample]) -> None:
        """Append samples of the driver's buffer. Raises OSError, also when the recording is full."""
        raise NotImplementedError

    def mark(self, mark: Mark) -> None:
        """Append a mark. Raises OSError."""
        raise NotImplementedError

    def close(self) -> None:
        """Finish the file and give it its name, unless writing failed. Safe to call twice.

        Raises WattridgeError if it cannot be finished.
        """
        inbox, self.inbox = self.inbox, None
        try:
            last = inbox.close() if inbox is not None else []
            if self._file.closed:
                return
            self._take_marks(last)
            self._flush(last=True)
            self._file.close()
            os.replace(self.part, self.path)
        except OSError as error:
            self._file.close()
            what = f"the recording could not be finished: {error.strerror or error}"
            raise WattridgeError(what, str(self.path), f"what was recorded is in {self.part.name}") from error

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _came(self, time_ns: int) -> None:
        """Write out what came so far once a second. Raises OSError with the file's name, which ends the recording."""
        if time_ns < self._due_ns:
            return
        self._due_ns = time_ns + FLUSH_NS
        try:
            if self.inbox is not None:
                self._take_marks(self.inbox.new())
            self._flush()
        except OSError as error:
            self._file.close()
            raise OSError(error.errno, error.strerror, str(self.part)) from error

    def _take_marks(self, come: list[tuple[int | None, int, str]]) -> None:
        for time_ns, ago_ns, text in come:
            with suppress(InputError):  # a line that another program wrote
                now_ns = self._clock.now_ns() - self._origin_ns
                at_ns = now_ns - round(ago_ns * self._clock.speed) if time_ns is None else time_ns
                self.mark(Mark(max(0, at_ns), mark_text(text)))

    def _flush(self, *, last: bool = False) -> None:
        """Write out what came so far, all of it or, where that fails, nothing. Raises OSError."""
        raise NotImplementedError


class RecordingWriter(Writer):
    """The form in gzipped text."""

    def __init__(self, path: Path, gpu: Gpu) -> None:
        super().__init__(path, gpu)
        self._rows = {"r": 0, "p": 0}
        self._last_us = {"r": -1, "p": -1}
        self._pack = zlib.compressobj(wbits=_GZIP_BITS)  # no name and no date: the same readings make the same file
        self._lines = [header_line(self._facts, TEXT_FORM)]  # not written out yet

    def write(self, reading: Reading) -> None:
        cells = [figure_text(self._names[place], reading.values[place]) for place in self._available]
        self._line("r", reading.time_ns, ",".join(cells))

    def write_power_samples(self, samples: Sequence[PowerSample]) -> None:
        for sample in samples:
            self._line("p", sample.time_ns, figure_text(POWER_SAMPLES.name, sample.power_w))

    def mark(self, mark: Mark) -> None:
        self._lines.append(mark_line(mark))

    def _line(self, kind: str, time_ns: int, cells: str) -> None:
        """Write what is newer than the last of its kind, and not older than the recording."""
        time_us = (time_ns - self._origin_ns) // 1000
        if time_us <= self._last_us[kind]:
            return
        if self._rows[kind] >= _MAX_ROWS:
            raise OSError(errno.EFBIG, f"the recording is full ({_MAX_ROWS} readings; a .wrec holds more)")
        self._rows[kind] += 1
        self._last_us[kind] = time_us
        self._lines.append(f"{kind},{time_us},{cells}\n")
        self._came(time_us * 1000)

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
    from .columns import is_columns, read_columns

    return read_columns(path) if is_columns(path) else TextRecording(path).read()


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
        time_us, values, sample_us, sample_w = array("q"), array("d"), array("q"), array("d")
        marks = []
        for row in rows:
            assert not isinstance(row, Facts)
            kind, at_us, numbers, text = row
            if kind == "r":
                time_us.append(at_us)
                values.extend(numbers)
            elif kind == "p":
                sample_us.append(at_us)
                sample_w.append(numbers[0])
            else:
                marks.append(Mark(at_us * 1000, text))
        table = np.full((len(time_us), len(facts.channels)), np.nan)
        table[:, available] = (
            np.frombuffer(values, np.float64).reshape(len(time_us), len(available)) if available else 0.0
        )
        return recording_of(
            facts,
            np.array(time_us, np.int64) * 1000,
            table,
            np.array(sample_us, np.int64) * 1000,
            np.array(sample_w, np.float64),
            marks,
        )

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
            raise InputError(error.strerror or str(error), str(self._path), "name a recording that can be read") from error

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
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not abs(value) < LARGEST:
            self._refuse(f"'{cell[:40]}' is no number")
        return value


def recording_of(
    facts: Facts,
    time_ns: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    sample_ns: npt.NDArray[np.int64],
    sample_w: npt.NDArray[np.float64],
    marks: Sequence[Mark],
) -> Recording:
    """The recording with these facts."""
    return Recording(
        title=facts.title,
        info=facts.info,
        recorded_from=facts.recorded_from,
        graphics_clocks_mhz=facts.graphics_clocks_mhz,
        memory_clocks_mhz=facts.memory_clocks_mhz,
        channels=facts.channels,
        time_ns=time_ns,
        values=values,
        sample_ns=sample_ns,
        sample_w=sample_w,
        began_s=facts.began_s,
        marks=tuple(sorted(marks)),
    )
