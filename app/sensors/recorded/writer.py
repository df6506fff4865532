"""`Writer`: what both forms of a recording share while they are written."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ...base.errors import InputError, WattridgeError
from ...base.files import is_there, title_of
from ..channel import PowerSample, Reading
from ..gpu import Gpu
from .header import Mark, facts_of, mark_text
from .marks import MarkInbox

FLUSH_NS: Final = 1_000_000_000


class Writer:
    """Writes one GPU's readings to a file. One thread at a time.

    Until it is closed the file is called `NAME.part`. Every second of the recording is written out as a whole, so
    that a process that is killed loses less than two, and a full disk leaves whole readings, which are read up to
    there. Marks that other programs set while it runs come by its `inbox`.
    """

    unit_ns = 1  # of the times in the file

    def __init__(self, path: Path, gpu: Gpu) -> None:
        """Raises InputError if the file or its `.part` exists already, or cannot be written."""
        if is_there(path):
            raise InputError("this file exists already", str(path), "choose another name, or remove it first")
        self.path = path
        self.part = path.with_name(path.name + ".part")
        self.inbox: MarkInbox | None = None
        self._clock = gpu.clock
        self._available = [place for place, described in enumerate(gpu.channels) if described.available]
        self._origin_ns = gpu.clock.now_ns()
        self._last = {"r": -1, "p": -1}  # times, of readings and of samples of the driver's buffer
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
        self._row("r", reading.time_ns, [reading.values[place] for place in self._available])

    def write_power_samples(self, samples: Sequence[PowerSample]) -> None:
        """Append samples of the driver's buffer. Raises OSError, also when the recording is full."""
        for sample in samples:
            self._row("p", sample.time_ns, (sample.power_w,))

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

    def _row(self, kind: str, time_ns: int, values: Sequence[float]) -> None:
        """Add what is newer than the last of its kind, and not older than the recording. Raises OSError."""
        at = (time_ns - self._origin_ns) // self.unit_ns
        if at > self._last[kind]:
            self._add(kind, at, values)
            self._last[kind] = at
            self._came(at * self.unit_ns)

    def _add(self, kind: str, at: int, values: Sequence[float]) -> None:
        """Keep a row until it is written out. Raises OSError where the recording is full."""
        raise NotImplementedError

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
