"""The record of a board's prior settings, on disk before anything is set: a small file, written whole or not at all.

It names the boot that it is of: the next one ends every setting. It lies in root's folder of states. Everybody may read
it; only its owner may have written it, or it does not count.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .grammar import Failed

FOLDER = "/var/lib/wattridge"
LOCK_FOLDER = "/run/wattridge"
VERSION = 1
_MOST_BYTES = 8192
_UUID = re.compile(r"(GPU|AMD)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BOOT = "/proc/sys/kernel/random/boot_id"

# What can be set, by NVML's names for it, in the order in which it is put back. None of a lock: not locked.
KNOBS = (
    "locked_graphics_mhz",
    "locked_memory_mhz",
    "application_clocks_mhz",  # [memory, graphics]
    "power_limit_mw",
    "workload_power_profiles",  # the numbers of those that are requested, ascending
    "persistence_mode",
)

# The knobs that may make a setting, in the order in which they are tried.
KNOBS_OF = {
    "workload_power_profile": ("workload_power_profiles",),
    "power_limit_w": ("power_limit_mw",),
    "memory_clock_mhz": ("locked_memory_mhz", "application_clocks_mhz"),
    "graphics_clock_mhz": ("locked_graphics_mhz", "application_clocks_mhz"),
}
_BOUND = {"power_limit_mw": 10_000_000, "persistence_mode": 1}


class RecordError(Failed):
    """The folder of records cannot be used, or a record cannot be written, for a reason in one line."""

    def __init__(self, what: str) -> None:
        super().__init__("record", what)


def is_uuid(text: str) -> bool:
    """Whether a text is the UUID of a whole board, and so a file's name without surprises."""
    return _UUID.fullmatch(text) is not None


@dataclass
class Record:
    """What one board had before (`prior`), which of its settings the user confirmed (`kept`), and who sets it now.

    `prior` is what was read when a knob was first set by a session that has not ended, or by the one that confirmed it.
    The file holds these fields and `version`. A later version may add fields and knobs, but must keep these and their
    meaning: every version reads the records of every other, uses what it understands, and names what it does not.
    """

    uuid: str
    name: str = ""
    prior: dict[str, Any] = field(default_factory=dict)  # knob -> value
    kept: dict[str, Any] = field(default_factory=dict)
    touched: list[str] = field(default_factory=list, metadata={"optional": True})  # knobs set and not confirmed
    open: bool = False  # something is set that was not confirmed
    holder: dict[str, int] = field(default_factory=dict)  # pid, started (ticks since the boot), uid
    boot: str = ""
    written_s: float = 0.0  # since the epoch
    unreadable: str = field(default="", metadata={"kept": False})  # why, and which part: see `read`; not in the file

    @property
    def held_by(self) -> int | None:
        """The process that has the board in hand, where it still runs."""
        pid = self.holder.get("pid", 0)
        return pid if pid and started(pid) == self.holder.get("started", 0) else None

    def base(self, knob: str) -> Any:
        """What a knob goes back to: what was confirmed, else what was there before."""
        return self.kept[knob] if knob in self.kept else self.prior[knob]


class Records:
    """The files in one folder, held open so that no other folder takes its place. Raises RecordError."""

    def __init__(self, path: str, *, make: bool) -> None:
        """`make` for the helper: the folder is made if it is missing, and must be this user's alone to write."""
        self.path = path
        with _named(path):
            if make:
                with contextlib.suppress(FileExistsError):
                    os.makedirs(path, 0o755)
            self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
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
        """Boards that have a record. Raises RecordError."""
        with _named(self.path):
            listed = os.listdir(self._folder)
        names = (name[: -len(".json")] for name in listed if name.endswith(".json"))
        return sorted(name for name in names if is_uuid(name))

    def read(self, uuid: str) -> Record | None:
        """A board's record; None if it has none, or one from before the machine was restarted.

        No driver keeps a setting over a restart (NVML says so of nvmlDeviceSetPowerManagementLimit): nothing is left to
        be put back, and what the board has now was set since. Every other record counts. One that is damaged, foreign,
        or written by another version comes back with what can be understood of it, as open, and with the reason in
        `unreadable`.
        """
        try:
            text = self._text(uuid)
        except RecordError as error:
            return Record(uuid, open=True, unreadable=str(error))
        if text is None:
            return None
        record, now = _record_of(text, uuid, f"{self.path}/{uuid}.json"), boot()
        restarted = bool(record.boot and now) and record.boot != now
        return None if restarted and not record.unreadable else record

    def write(self, record: Record) -> None:
        """Put a record on disk, so that a power cut leaves the old one or the new one. Raises RecordError.

        After an error either of them may be on disk.
        """
        record.boot, record.written_s = boot(), time.time()
        name = record.uuid + ".new"
        with _named(self.path):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._folder)
            try:
                self._put(name, json.dumps(_document_of(record)).encode())
                os.replace(name, record.uuid + ".json", src_dir_fd=self._folder, dst_dir_fd=self._folder)
            except OSError:
                with contextlib.suppress(OSError):  # a part of it would only fill a full disk
                    os.unlink(name, dir_fd=self._folder)
                raise
            os.fsync(self._folder)

    def remove(self, uuid: str) -> None:
        """Remove a board's record: nothing is left over any more. Raises RecordError."""
        with _named(self.path):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(uuid + ".json", dir_fd=self._folder)
            os.fsync(self._folder)

    def set_aside(self, uuid: str) -> None:
        """Keep a record that could not be read under another name, where it no longer counts. Raises RecordError."""
        with _named(self.path):
            os.rename(uuid + ".json", uuid + ".unreadable", src_dir_fd=self._folder, dst_dir_fd=self._folder)
            os.fsync(self._folder)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _text(self, uuid: str) -> bytes | None:
        """What the file holds; None if there is none. Raises RecordError with the reason why it cannot count."""
        where = f"{self.path}/{uuid}.json"
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO must not hold us up
        try:
            file = os.open(uuid + ".json", flags, dir_fd=self._folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            link = error.errno == errno.ELOOP
            raise RecordError(f"{where} {'is a link' if link else f'cannot be read: {error.strerror}'}") from None
        try:
            about = os.fstat(file)
            if not stat.S_ISREG(about.st_mode):
                raise RecordError(f"{where} is not a regular file")
            if about.st_uid != self._owner:
                raise RecordError(f"{where} does not belong to the owner of its folder")
            if about.st_size > _MOST_BYTES:
                raise RecordError(f"{where} is too large: {about.st_size} bytes")
            return os.read(file, _MOST_BYTES)
        except OSError as error:
            raise RecordError(f"{where} cannot be read: {error.strerror}") from None
        finally:
            os.close(file)

    def _put(self, name: str, text: bytes) -> None:
        """A new file with that content, safely on disk."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(name, flags, 0o644, dir_fd=self._folder)
        try:
            while text:
                text = text[os.write(file, text) :]
            os.fsync(file)
        finally:
            os.close(file)


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Raises RecordError that names the folder in place of an error of the system."""
    try:
        yield
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from None


def boot() -> str:
    """The id of this boot: a board forgets its settings between two."""
    try:
        with open(_BOOT) as file:
            return file.read(64).strip()
    except OSError:
        return ""


def started(pid: int) -> int | None:
    """When a process began, in ticks since the boot; None if there is none. A reused pid has another time."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            state, *fields = file.read(4096).rpartition(")")[2].split()
            return None if state in "ZX" else int(fields[18])  # dead, though its parent has not reaped it yet
    except (OSError, ValueError, IndexError):
        return None


def _document_of(record: Record) -> dict[str, Any]:
    fields = {entry.name: getattr(record, entry.name) for entry in dataclasses.fields(record) if _is_kept(entry)}
    if not record.touched:
        del fields["touched"]  # which older versions do not know
    return {"version": VERSION, **fields}


def _is_kept(entry: Any) -> bool:
    """Whether a field of `Record` is in the file."""
    return bool(entry.metadata.get("kept", True))


def _take(record: Record, entry: dataclasses.Field[Any], document: dict[str, Any]) -> list[str]:
    """Move one field from a document to the record; what of it is not understood."""
    value = document.pop(entry.name, _MISSING)
    if value is _MISSING:
        return [] if entry.metadata.get("optional") else [f"no {entry.name!r}"]
    if entry.name in ("prior", "kept") and isinstance(value, dict):
        understood = {knob: setting for knob, setting in value.items() if _is_value(knob, setting)}
        setattr(record, entry.name, understood)
        return [f"{_short(knob)} in {entry.name!r}" for knob in value if knob not in understood]
    if not _IS_VALID[entry.name](value):
        return [f"{entry.name!r} is {_short(value)}"]
    setattr(record, entry.name, value)
    return []


def _record_of(text: bytes, uuid: str, where: str) -> Record:
    """What can be understood of a file's content; what cannot is named in `unreadable`, and counts as open."""
    if not text:
        return Record(uuid, open=True, unreadable=f"{where} is empty")
    try:
        document = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        return Record(uuid, open=True, unreadable=f"{where} is damaged: not a JSON document")
    if not isinstance(document, dict):
        return Record(uuid, open=True, unreadable=f"{where} is damaged: not a JSON object")
    unknown = []
    version = document.pop("version", None)
    if version != VERSION or isinstance(version, bool):
        unknown.append(f"version {_short(version)}")
    record = Record(uuid)
    for entry in filter(_is_kept, dataclasses.fields(Record)):
        unknown += _take(record, entry, document)
    unknown.extend(f"field {_short(name)}" for name in document)
    if record.uuid != uuid:
        return Record(uuid, open=True, unreadable=f"{where} is of another board, {_short(record.uuid)}")
    for knob in [knob for knob in record.kept if knob not in record.prior]:
        unknown.append(f"{knob!r} confirmed, but not what it was before")
        del record.kept[knob]
    if unknown:
        more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
        named = ", ".join(unknown[:_MOST_NAMED])
        record.unreadable, record.open = f"{where} is not understood in full: {named}{more}", True
    if record.unreadable or (record.open and not record.touched):  # an older version's does not say which
        record.touched = list(record.prior)
    return record


def _short(value: Any) -> str:
    """A value from a file, for a message: bounded, and without control characters."""
    text = ascii(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _is_holder(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) <= {"pid", "started", "uid"}
        and all(_whole(number, 2**63) for number in value.values())
    )


_MISSING = object()
_MOST_NAMED = 4
_IS_VALID: dict[str, Callable[[Any], bool]] = {
    "uuid": lambda value: isinstance(value, str),
    "name": lambda value: isinstance(value, str) and value.isprintable(),
    "prior": lambda value: False,  # knob by knob
    "kept": lambda value: False,
    "touched": lambda value: isinstance(value, list) and all(knob in KNOBS for knob in value),
    "open": lambda value: isinstance(value, bool),
    "holder": _is_holder,
    "boot": lambda value: isinstance(value, str),
    "written_s": lambda value: isinstance(value, float) and 0.0 <= value < 1e12,
}


def _is_value(knob: str, value: Any) -> bool:
    if knob in _BOUND:
        return _whole(value, _BOUND[knob])
    if knob not in KNOBS:
        return False
    if knob == "workload_power_profiles":
        numbers = isinstance(value, list) and all(_whole(each, 254) for each in value)
        return numbers and value == sorted(set(value))
    if value is None:
        return knob != "application_clocks_mhz"
    return isinstance(value, list) and len(value) == 2 and all(_whole(clock, 20_000) for clock in value)


def _whole(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
