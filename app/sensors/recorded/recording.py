"""Recordings: what a GPU reported, kept in a text file that can be replayed anywhere.

The file is UTF-8 text, gzipped, `NAME.csv.gz`:

- The first line is one JSON object: `format` "wattridge-recording", `version` 1, then `name`, `driver`,
  `recorded_from` (nvml or simulated), `power_limit_w` {min, max, default, current}, `compute_capability`
  [major, minor], `multiprocessors`, `memory_mib`, `power_source`, `graphics_clocks_mhz` and `memory_clocks_mhz`
  (lists), `began_us` (microseconds since 1970 at which the recording began; null on a clock that is not the wall's),
  and `channels`, an object of every channel in order: null where it is available, else the reason why not.
- Each further line is `r,TIME,VALUE,...` for a reading (the available channels in order, an empty cell if unknown)
  or `p,TIME,WATT` for one sample of the driver's power buffer. TIME is in whole microseconds after the recording began.

While it is written the file is called `NAME.csv.gz.part`; one that was left behind is read as far as it goes.

Nothing in it names the board: no UUID, serial number or bus address.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError, WattridgeError
from ...base.files import is_there, open_input, title_of
from ..channel import CHANNELS, POWER_SAMPLES, Channel, PowerSample, Reading, channel, figure_text
from ..gpu import Gpu, GpuInfo, PowerLimit

_FORMAT, _VERSION = "wattridge-recording", 1
_GZIP_BITS = 31  # of zlib: the largest window, and gzip's header and trailer
_FLUSH_US = 1_000_000
_MAX_ROWS = 1_500_000  # of each kind: 8 h at 50 Hz
_MAX_HEADER, _MAX_LINE = 1 << 20, 4096  # characters
_MAX_CLOCKS = 10_000
_LARGEST = 1e16  # no figure of a GPU is beyond it, nor is the time of day in microseconds
_REMEDY = "record it again with `wattridge monitor --record FILE`"


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
    began_ns: int | None = None  # since 1970, where the file says it: the time of day of its origin
    zoned: bool = True  # whether `began_ns` is of a known time zone; a log's dates often name none
    selector: str = ""  # what opens it again behind 'recorded:', from any folder; empty if a reader was asked itself


def recorded_info(name: str, power_limit: PowerLimit, power_source: str, driver: str = "", **facts: Any) -> GpuInfo:
    """Facts of a recorded board, which a file holds without its UUID."""
    return GpuInfo(0, "", name, "recorded", driver, power_limit, power_source=power_source, **facts)


class RecordingWriter:
    """Writes one GPU's readings to a file. One thread at a time.

    Until it is closed the file is called `NAME.part`. Every second of the recording is written out as a whole, so
    that a process that is killed loses less than two, and a full disk leaves whole lines: `read_recording` reads a
    `.part` up to there.
    """

    def __init__(self, path: Path, gpu: Gpu) -> None:
        """Raises InputError if the file or its `.part` exists already, or cannot be written."""
        if is_there(path):
            raise InputError("this file exists already", str(path), "choose another name, or remove it first")
        self.path = path
        self.part = path.with_name(path.name + ".part")
        self._available = [place for place, described in enumerate(gpu.channels) if described.available]
        self._names = [described.name for described in gpu.channels]
        self._origin_ns = gpu.clock.now_ns()
        self._rows = {"r": 0, "p": 0}
        self._last_us = {"r": -1, "p": -1}
        self._pack = zlib.compressobj(wbits=_GZIP_BITS)  # no name and no date: the same readings make the same file
        self._lines = [json.dumps(_header(gpu, self._origin_ns), ensure_ascii=False) + "\n"]  # not written out yet
        self._due_us = 0  # when they are to be
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
        """Append one reading. Raises OSError, also when the recording is full (1.5 million readings).

        An error with a file name has ended the recording, and what was written lies there.
        """
        cells = [figure_text(self._names[place], reading.values[place]) for place in self._available]
        self._line("r", reading.time_ns, ",".join(cells))

    def write_power_samples(self, samples: Sequence[PowerSample]) -> None:
        """Append samples of the driver's buffer. Raises OSError, also when the recording is full."""
        for sample in samples:
            self._line("p", sample.time_ns, figure_text(POWER_SAMPLES.name, sample.power_w))

    def close(self) -> None:
        """Finish the file and give it its name, unless writing failed. Safe to call twice.

        Raises WattridgeError if it cannot be finished.
        """
        if self._file.closed:
            return
        try:
            self._flush(zlib.Z_FINISH)
            self._file.close()
            os.replace(self.part, self.path)
        except OSError as error:
            self._file.close()
            what = f"the recording could not be finished: {error.strerror or error}"
            raise WattridgeError(what, str(self.path), f"what was recorded is in {self.part.name}") from error

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _line(self, kind: str, time_ns: int, cells: str) -> None:
        """Write what is newer than the last of its kind, and not older than the recording."""
        time_us = (time_ns - self._origin_ns) // 1000
        if time_us <= self._last_us[kind]:
            return
        if self._rows[kind] >= _MAX_ROWS:
            raise OSError(errno.EFBIG, "the recording is full")
        self._rows[kind] += 1
        self._last_us[kind] = time_us
        self._lines.append(f"{kind},{time_us},{cells}\n")
        if time_us >= self._due_us:
            self._due_us = time_us + _FLUSH_US
            try:
                self._flush(zlib.Z_SYNC_FLUSH)
            except OSError as error:
                self._file.close()
                raise OSError(error.errno, error.strerror, str(self.part)) from error

    def _flush(self, how: int) -> None:
        """Write out the lines so far, all of them or, where that fails, none. Raises OSError."""
        text = "".join(self._lines).encode()
        self._lines.clear()
        packed = memoryview(self._pack.compress(text) + self._pack.flush(how))
        try:
            while packed:
                packed = packed[self._file.write(packed) :]
        except OSError:
            with suppress(OSError):
                self._file.truncate(self._size)
            raise
        self._size = self._file.tell()


def read_recording(path: Path) -> Recording:
    """Read a recording, gzipped or plain; an unfinished one (`.part`) as far as it was written out.

    Raises InputError naming file, line and remedy where it is malformed.
    """
    try:
        with open_input(path) as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream: BinaryIO = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]
            with io.TextIOWrapper(stream, encoding="utf-8", newline="\n") as text:
                return _Parser(path).parse(text)
    except UnicodeDecodeError as error:
        raise InputError("this is not UTF-8 text", str(path), _REMEDY) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError("the compressed file is damaged or cut off", str(path), _REMEDY) from error
    except OSError as error:
        raise InputError(error.strerror or str(error), str(path), "name a recording that can be read") from error


class _Parser:
    """One pass over the lines, which knows where it is when something is wrong."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unfinished = path.suffix == ".part"
        self._number = 1

    def parse(self, text: io.TextIOBase) -> Recording:
        line = text.readline(_MAX_HEADER + 1)
        if len(line) > _MAX_HEADER:
            self._refuse("the first line is too long for a recording's header")
        header = self._header(line)
        channels = self._channels(header.get("channels"))
        available = [place for place, described in enumerate(channels) if described.available]
        capability = self._fact(header, "compute_capability", _CAPABILITY)
        multiprocessors = self._fact(header, "multiprocessors", _NUMBER)
        info = recorded_info(
            self._fact(header, "name", _TEXT, "") or "GPU",
            self._power_limit(header.get("power_limit_w")),
            self._fact(header, "power_source", _TEXT, ""),
            driver=self._fact(header, "driver", _TEXT, ""),
            compute_capability=tuple(capability) if capability else None,
            multiprocessors=None if multiprocessors is None else int(multiprocessors),
            memory_mib=_float(self._fact(header, "memory_mib", _NUMBER)),
        )
        recorded_from = self._fact(header, "recorded_from", _TEXT, "")
        began_us = self._fact(header, "began_us", _COUNT)
        graphics_mhz, memory_mhz = (
            tuple(self._fact(header, f"{kind}_clocks_mhz", _COUNTS, [])) for kind in ("graphics", "memory")
        )
        time_us, values, sample_us, sample_w = array("q"), array("d"), array("q"), array("d")
        for line in self._lines(text):
            self._number += 1
            if len(line) > _MAX_LINE:
                self._refuse("the line is too long")
            kind, *cells = line.rstrip("\n").split(",")
            if kind == "r" and len(cells) == len(available) + 1:
                self._append_time(time_us, cells[0])
                values.extend([self._number_of(cell) for cell in cells[1:]])
            elif kind == "p" and len(cells) == 2:
                self._append_time(sample_us, cells[0])
                sample_w.append(self._number_of(cells[1]))
            else:
                self._refuse(f"expected r,TIME and {len(available)} values, or p,TIME,WATT")
        if len(time_us) < 2:
            self._refuse("there are fewer than two readings")
        table = np.full((len(time_us), len(channels)), np.nan)
        table[:, available] = (
            np.frombuffer(values, np.float64).reshape(len(time_us), len(available)) if available else 0.0
        )
        return Recording(
            title=title_of(self._path),
            info=info,
            recorded_from=recorded_from,
            graphics_clocks_mhz=graphics_mhz,
            memory_clocks_mhz=memory_mhz,
            channels=channels,
            time_ns=np.array(time_us, np.int64) * 1000,
            values=table,
            sample_ns=np.array(sample_us, np.int64) * 1000,
            sample_w=np.array(sample_w, np.float64),
            began_ns=None if began_us is None else began_us * 1000,
        )

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
        raise InputError(what, f"{self._path}, line {self._number}", _REMEDY)

    def _append_time(self, times: array[int], cell: str) -> None:
        if not (cell.isascii() and cell.isdigit() and len(cell) <= 15):
            self._refuse(f"'{cell[:40]}' is no time in microseconds")
        time_us = int(cell)
        if times and time_us <= times[-1]:
            self._refuse("time does not go forward")
        if len(times) >= _MAX_ROWS:
            self._refuse(f"there are more than {_MAX_ROWS} rows")
        times.append(time_us)

    def _number_of(self, cell: str) -> float:
        if not cell:
            return math.nan
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not abs(value) < _LARGEST:
            self._refuse(f"'{cell[:40]}' is no number")
        return value

    def _header(self, line: str) -> dict[str, Any]:
        try:
            header = json.loads(line)
        except (ValueError, RecursionError):
            header = None
        if not isinstance(header, dict) or header.get("format") != _FORMAT:
            self._refuse("this is no recording of a GPU")
        if header.get("version") != _VERSION:
            self._refuse(
                f"the recording is of version {str(header.get('version'))[:20]}, this program reads {_VERSION}"
            )
        return header

    def _channels(self, reasons: object) -> tuple[Channel, ...]:
        if not isinstance(reasons, dict) or not reasons:
            self._refuse("'channels' must name every channel, with null or the reason why it is not available")
        for name, reason in reasons.items():
            if name not in CHANNELS or not (reason is None or isinstance(reason, str)):
                self._refuse(f"'{str(name)[:40]}' is no channel, or its reason is no text")
        return tuple(channel(name, reason) for name, reason in reasons.items())

    def _fact(self, facts: dict[str, Any], key: str, kind: str, otherwise: Any = None) -> Any:
        """A value of the header; `otherwise` if it is missing."""
        value = facts.get(key, otherwise)
        if value != otherwise and not _KINDS[kind](value):
            self._refuse(f"'{key}' must be {kind}")
        return value

    def _power_limit(self, limits: object) -> PowerLimit:
        facts = limits if isinstance(limits, dict) else {}
        return PowerLimit(*(_float(self._fact(facts, key, _NUMBER)) for key in ("min", "max", "default", "current")))


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _is_counts(value: object) -> bool:
    return isinstance(value, list) and len(value) <= _MAX_CLOCKS and all(map(_is_count, value))


# what a value of the header must be, as an error names it
_TEXT, _NUMBER, _COUNT, _CAPABILITY, _COUNTS = (
    "text", "a number", "a whole number", "[major, minor]", "a list of whole numbers",
)  # fmt: skip
_KINDS: dict[str, Callable[[Any], bool]] = {
    _TEXT: lambda value: isinstance(value, str),
    _NUMBER: lambda value: type(value) in (int, float) and abs(value) < _LARGEST,
    _COUNT: _is_count,
    _CAPABILITY: lambda value: _is_counts(value) and len(value) == 2,
    _COUNTS: _is_counts,
}


def _header(gpu: Gpu, origin_ns: int) -> dict[str, Any]:
    info = gpu.info
    limit = info.power_limit
    ahead_ns = time.time_ns() - gpu.clock.now_ns()  # of the wall's clock
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "name": info.name,
        "driver": info.driver,
        "recorded_from": info.source,
        "power_limit_w": {
            "min": limit.minimum_w, "max": limit.maximum_w, "default": limit.default_w, "current": limit.current_w,
        },
        "compute_capability": info.compute_capability,
        "multiprocessors": info.multiprocessors,
        "memory_mib": info.memory_mib,
        "power_source": info.power_source,
        "began_us": (origin_ns + ahead_ns) // 1000 if gpu.clock.kept_pace else None,
        "graphics_clocks_mhz": list(gpu.graphics_clocks_mhz()),
        "memory_clocks_mhz": list(gpu.memory_clocks_mhz()),
        "channels": {described.name: described.unavailable for described in gpu.channels},
    }  # fmt: skip
