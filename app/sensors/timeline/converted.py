"""Any recording or log in the columnar form: as it is, else converted once and kept in the data folder.

A converted file is known by what it was made of: path, inode, size and time of change. Together they take at most
`LIMIT` bytes; those that were not used for longest are removed. Where the data folder cannot be written they last as
long as the process.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from ...base.errors import WattridgeError
from ...base.paths import PRIVATE_FILE, private_folder, resources
from ..recorded import columns, recording
from ..recorded.columns import SUFFIX, ColumnsFile, is_columns
from ..recorded.gpu import is_own
from ..recorded.header import COLUMNS_FORM, Facts, Mark, Recording, mark_text
from ..recorded.logs.read import Log, read_log
from ..recorded.marks import mark_at
from ..recorded.recording import TextRecording
from .stored import Stored, open_stored

LIMIT: Final = 4 << 30
_FOLDER: Final = "timelines"
_BATCH: Final = 8192

Progress = Callable[[float], None]  # is given the share that is done, 0 to 1; NaN if it is not known


class Cancelled(WattridgeError):
    """The conversion was stopped on request."""


@dataclass(frozen=True, slots=True)
class Timelines:
    """Every board of a recording or a log, open."""

    path: Path  # what the user named
    boards: tuple[Stored, ...]
    tool: str = ""
    notes: tuple[str, ...] = ()
    assumed_step_s: float | None = None
    identity: tuple[int, ...] = ()  # of what was read

    @property
    def grown(self) -> bool:
        """The file is another one by now, or holds more."""
        return self.identity != _identity(self.path)


def open_timelines(path: Path, interval_s: float | None, progress: Progress, stop: threading.Event) -> Timelines:
    """Open a recording or a log; what is not in the columnar form is converted first.

    `interval_s` is of a log that does not hold its times. Raises InputError, Cancelled once `stop` is set, and
    WattridgeError where there is no room.
    """
    identity = _identity(path)
    if is_columns(path):
        return Timelines(path, (open_stored(path),), identity=identity)
    first = _kept(path, interval_s, 0)
    if not first.exists():
        _convert(path, interval_s, progress, stop)
    opened = [open_stored(first)]
    log = opened[0].facts.log
    opened += [open_stored(_kept(path, interval_s, number)) for number in range(1, int(log.get("boards", 1)))]
    for each in opened:
        with suppress(OSError):
            os.utime(each.path)  # used last
    notes = tuple(map(str, log.get("notes", ())))
    return Timelines(path, tuple(opened), str(log.get("tool", "")), notes, log.get("step_s"), identity)


def add_mark(opened: Timelines, number: int, mark: Mark) -> Timelines:
    """Keep a mark in a recording, by its recorder where it runs.

    Of another tool's log, and of a recording that came with the program, it is kept in what that was converted to.

    Returns what is open from then on. Raises InputError, and WattridgeError where the file cannot be written.
    """
    mark = replace(mark, text=mark_text(mark.text))
    path, board = opened.path, opened.boards[number]
    board = replace(board, marks=tuple(sorted((*board.marks, mark))))
    boards = (*opened.boards[:number], board, *opened.boards[number + 1 :])
    runs = path.suffix == ".part" and mark_at(Path(os.path.abspath(path.with_suffix(""))), mark.time_ns, mark.text)
    if runs:
        return replace(opened, boards=boards)
    try:
        columns.append_mark(board.path, mark)
        shipped = resources() in path.resolve().parents  # of all users, and never changed
        if board.path != path and path.suffix != ".part" and is_own(path) and not shipped:
            recording.append_mark(path, mark)
            kept = _kept(path, None, 0)  # it is of the longer file now
            os.replace(board.path, kept)
            boards = (replace(board, path=kept),)
    except OSError as error:
        remedy = "copy the file to a folder that you may write to"
        raise WattridgeError(f"the mark cannot be kept: {error.strerror or error}", str(path), remedy) from error
    return replace(opened, boards=boards, identity=_identity(path))


# --- inside -----------------------------------------------------------------------------------------------------------


def _identity(path: Path) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    changed = (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else (os.getpid(), 0)
    return (status.st_dev, status.st_ino, *changed)


def _kept(path: Path, interval_s: float | None, number: int) -> Path:
    """Where the board of that number is kept once it is converted."""
    key = repr((COLUMNS_FORM, os.path.realpath(path), _identity(path), interval_s))
    return _folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}-{number}{SUFFIX}"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE_FILE)


_for_now: list[Path] = []


def _folder() -> Path:
    try:
        folder = private_folder(_FOLDER)
        if os.access(folder, os.W_OK):
            return folder
    except WattridgeError:
        pass
    if not _for_now:
        _for_now.append(Path(tempfile.mkdtemp(prefix="wattridge-")))
        atexit.register(shutil.rmtree, _for_now[0], ignore_errors=True)
    return _for_now[0]


def _convert(path: Path, interval_s: float | None, progress: Progress, stop: threading.Event) -> None:
    made: list[tuple[Path, Path]] = []  # under which name it is written, and what it is called at last

    def begin(facts: Facts, **more: object) -> ColumnsFile:
        kept = _kept(path, interval_s, len(made))
        written = kept.with_name(f"{kept.stem}.{os.getpid()}-{threading.get_ident()}.new")
        made.append((written, kept))
        files.append(open(written, "w+b", buffering=0, opener=_private))  # noqa: SIM115  (closed below)
        return ColumnsFile(files[-1], facts, title=facts.title, **more)

    files: list[BinaryIO] = []
    try:
        if path.suffix == ".part" or is_own(path):
            _convert_text(path, begin, progress, stop)
        else:
            progress(float("nan"))
            _convert_log(read_log(path, interval_s), begin, stop)
        for file in files:
            file.close()
        for written, kept in reversed(made):  # the first one last: it names the others
            os.replace(written, kept)
        _purge({kept for _, kept in made})
    except OSError as error:
        what = f"the recording cannot be converted: {error.strerror or error}"
        raise WattridgeError(
            what, str(_folder()), "make room there, or name another folder by WATTRIDGE_DATA"
        ) from error
    finally:
        for file in files:
            file.close()
        for written, _ in made:
            written.unlink(missing_ok=True)


def _convert_text(path: Path, begin: Callable[..., ColumnsFile], progress: Progress, stop: threading.Event) -> None:
    text = TextRecording(path)
    rows = text.rows()
    facts = next(rows)
    assert isinstance(facts, Facts)
    file = begin(facts)
    times: dict[str, list[int]] = {"r": [], "p": []}
    come: dict[str, list[list[float]]] = {"r": [], "p": []}

    def put(kind: str) -> None:
        file.add(kind.encode(), np.array(times[kind], np.int64) * 1000, np.array(come[kind], np.float64).T)
        times[kind].clear()
        come[kind].clear()

    for row in rows:
        assert not isinstance(row, Facts)
        kind, at_us, numbers, words = row
        if kind == "m":
            file.mark(Mark(at_us * 1000, words[:200]))
            continue
        times[kind].append(at_us)
        come[kind].append(numbers)
        if len(times[kind]) == _BATCH:
            if stop.is_set():
                raise Cancelled("stopped", str(path))
            progress(text.share)
            put(kind)
    for kind in times:
        if times[kind]:
            put(kind)
    file.flush()


def _convert_log(log: Log, begin: Callable[..., ColumnsFile], stop: threading.Event) -> None:
    about = {"tool": log.tool, "notes": log.notes, "step_s": log.assumed_step_s, "boards": len(log.boards)}
    for board in log.boards:
        if stop.is_set():
            raise Cancelled("stopped", str(log.path))
        _write(board, begin(board, log=about))


def _write(board: Recording, file: ColumnsFile) -> None:
    available = [place for place, described in enumerate(board.channels) if described.available]
    for first in range(0, len(board.time_ns), _BATCH):
        part = slice(first, first + _BATCH)
        file.add(b"r", board.time_ns[part], board.values[part][:, available].T)
    if len(board.sample_ns):
        file.add(b"p", board.sample_ns, board.sample_w[None])
    for mark in board.marks:
        file.mark(mark)
    file.flush()


def _purge(new: set[Path]) -> None:
    """Remove what was not used for longest, and what a process that was killed left unfinished."""
    entries = []
    for entry in _folder().iterdir():
        with suppress(OSError):
            status = entry.stat()
            entries.append((status.st_mtime, 512 * status.st_blocks, entry))
    total = sum(size for _, size, _ in entries)
    newest = max((changed for changed, _, _ in entries), default=0.0)
    for changed, size, entry in sorted(entries):
        unfinished = entry.suffix == ".new" and newest - changed > 86400
        if entry not in new and (total > LIMIT or unfinished):
            total -= size
            entry.unlink(missing_ok=True)
