"""What was there before, on disk before anything is set: one small file per board, written whole or not at all.

It lies in root's folder of states, not among those that a restart empties: it is for the next start after a power cut.
Everybody may read it; only its owner may have written it, or it does not count.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
from dataclasses import dataclass, field
from typing import Any

FOLDER = "/var/lib/wattridge"
LOCK_FOLDER = "/run/wattridge"
VERSION = 1
_MOST_BYTES = 8192
_UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BOOT = "/proc/sys/kernel/random/boot_id"

# What can be set, as NVML has it, in the order in which it is put back. None of a lock: not locked.
KNOBS = (
    "locked_graphics_mhz",
    "locked_memory_mhz",
    "application_clocks_mhz",  # [memory, graphics]
    "power_limit_mw",
    "persistence_mode",
)

# The knobs that may make a setting, in the order in which they are tried.
KNOBS_OF = {
    "power_limit_w": ("power_limit_mw",),
    "memory_clock_mhz": ("locked_memory_mhz", "application_clocks_mhz"),
    "graphics_clock_mhz": ("locked_graphics_mhz", "application_clocks_mhz"),
}
_BOUND = {"power_limit_mw": 10_000_000, "persistence_mode": 1}


class RecordError(Exception):
    """The record or its folder is not as it must be; one line for people."""


def is_uuid(text: str) -> bool:
    """Whether a text is the UUID of a whole board, and so a file's name without surprises."""
    return _UUID.fullmatch(text) is not None


@dataclass
class Record:
    """What one board had before (`prior`), what of its settings a person confirmed (`kept`), and who is at it."""

    uuid: str
    name: str
    prior: dict[str, Any] = field(default_factory=dict)  # knob -> value
    kept: dict[str, Any] = field(default_factory=dict)
    open: bool = False  # something is set that nobody has confirmed
    holder: dict[str, int] = field(default_factory=dict)  # pid, started (ticks since the boot), uid
    boot: str = ""
    written_s: float = 0.0  # since the epoch

    def base(self, knob: str) -> Any:
        """What a knob goes back to: what was confirmed, else what was there before."""
        return self.kept[knob] if knob in self.kept else self.prior[knob]


class Records:
    """The files in one folder, held open so that nobody can exchange it. Raises RecordError."""

    def __init__(self, path: str, *, make: bool) -> None:
        """`make` for the helper: the folder is made where it is missing, and must be this user's alone to write."""
        self.path = path
        try:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.makedirs(path, 0o755)
            self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise RecordError(f"{path}: {error.strerror}") from None
        about = os.fstat(self._folder)
        if make and (about.st_uid != os.geteuid() or about.st_mode & 0o022):
            self.close()
            raise RecordError(f"{path} is not this user's alone to write")
        self._owner = about.st_uid

    def close(self) -> None:
        os.close(self._folder)

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def uuids(self) -> list[str]:
        """Boards that have a record."""
        names = (name[: -len(".json")] for name in os.listdir(self._folder) if name.endswith(".json"))
        return sorted(name for name in names if is_uuid(name))

    def read(self, uuid: str) -> Record | None:
        """A board's record; None where it has none."""
        where = f"{self.path}/{uuid}.json"
        try:
            file = os.open(uuid + ".json", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RecordError(f"{where}: {error.strerror}") from None
        with os.fdopen(file, "rb") as opened:
            about = os.fstat(opened.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_uid != self._owner:
                raise RecordError(f"{where} is not its folder's owner's file")
            text = opened.read(_MOST_BYTES + 1)
        try:
            return _record_of(json.loads(text) if len(text) <= _MOST_BYTES else None, uuid)
        except (ValueError, RecursionError):
            raise RecordError(f"{where} is damaged") from None

    def write(self, record: Record) -> None:
        """Put a record on disk, so that a power cut leaves the old one or the new one."""
        record.boot, record.written_s = boot(), time.time()
        document = {"version": VERSION, **vars(record)}
        name = record.uuid + ".new"
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, 0o644, dir_fd=self._folder), "w") as file:
                json.dump(document, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, record.uuid + ".json", src_dir_fd=self._folder, dst_dir_fd=self._folder)
            os.fsync(self._folder)
        except OSError as error:
            raise RecordError(f"{self.path}: {error.strerror}") from None

    def remove(self, uuid: str) -> None:
        """Nothing is left over any more."""
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(uuid + ".json", dir_fd=self._folder)
            os.fsync(self._folder)
        except OSError as error:
            raise RecordError(f"{self.path}: {error.strerror}") from None


def boot() -> str:
    """Which start of the machine this is: a board forgets its settings between two."""
    try:
        with open(_BOOT) as file:
            return file.read(64).strip()
    except OSError:
        return ""


def started(pid: int) -> int | None:
    """When a process began, in ticks since the boot; None where there is none. A reused pid tells another time."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            state, *fields = file.read(4096).rpartition(")")[2].split()
            return None if state in "ZX" else int(fields[18])  # dead, though nobody has buried it yet
    except (OSError, ValueError, IndexError):
        return None


def _record_of(document: Any, uuid: str) -> Record:
    """Raises ValueError for anything that `Records.write` does not write."""
    fields = {"version", *Record.__dataclass_fields__}
    if not isinstance(document, dict) or set(document) != fields or document.pop("version") != VERSION:
        raise ValueError
    record = Record(**document)
    for knobs in (record.prior, record.kept):
        if not isinstance(knobs, dict) or not all(_is_value(knob, value) for knob, value in knobs.items()):
            raise ValueError
    simple = (
        record.uuid == uuid
        and isinstance(record.name, str)
        and isinstance(record.open, bool)
        and isinstance(record.boot, str)
        and isinstance(record.written_s, float)
        and set(record.kept) <= set(record.prior)
        and isinstance(record.holder, dict)
        and set(record.holder) <= {"pid", "started", "uid"}
        and all(_whole(value, 2**63) for value in record.holder.values())
    )
    if not simple:
        raise ValueError
    return record


def _is_value(knob: str, value: Any) -> bool:
    if knob in _BOUND:
        return _whole(value, _BOUND[knob])
    if knob not in KNOBS:
        return False
    if value is None:
        return knob != "application_clocks_mhz"
    return isinstance(value, list) and len(value) == 2 and all(_whole(clock, 20_000) for clock in value)


def _whole(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
