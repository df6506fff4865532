"""A Kernel Tuner cache that another program still writes, read as it grows: only what is new is looked at."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ...errors import InputError
from ...files import decode
from ...input_files import open_input
from ..measurement import Value
from .entries import BadEntry, EntryReader
from .facts import Facts
from .json_stream import JsonStream, Member
from .kernel_tuner import CacheHeader

CHUNK = 1 << 18  # bytes that one look reads at most
_TAIL = 256  # bytes before the end of what was read, by which a replaced file is known
_REMEDY = "follow the .json that the tuner writes; a closed file is read without --follow"


class Entry(NamedTuple):
    """One configuration as it appeared."""

    configuration: tuple[Value, ...]
    facts: Facts


class Look(NamedTuple):
    """What one look at the file found."""

    entries: list[Entry]
    restarted: bool  # the file was replaced or cut short: this is its beginning
    more: bool  # there is more to be read at once


class CacheFollower:
    """Look again and again; between two looks nothing of the file is held but where the reading stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: CacheHeader | None = None  # known as soon as an entry is
        self._begin()

    @property
    def closed(self) -> bool:
        """The file's last bracket was read: its tuner is done."""
        return self._stream.closed

    def look(self) -> Look:
        """What was added since the last look. Raises InputError for what is no cache, or cannot be followed."""
        try:
            with open_input(self.path) as file:
                return self._look(file)
        except FileNotFoundError:
            return Look([], False, False)  # not there yet, or being replaced
        except (OSError, ValueError) as error:
            what = f"cannot be read: {getattr(error, 'strerror', None) or error}"
            raise InputError(what, str(self.path), "check the path and its rights") from None

    def _begin(self) -> None:
        self._file: tuple[int, int] | None = None
        self._offset = 0
        self._tail = b""
        self._lines = 0
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._stream = JsonStream(str(self.path), ("cache", "results", "Results"))
        self._document: dict[str, object] = {}
        self._reader: EntryReader | None = None
        self.header = None

    def _look(self, file: BinaryIO) -> Look:
        status = os.fstat(file.fileno())
        restarted = self._offset > 0 and not self._is_same(file, status)
        if restarted:
            self._begin()
        self._file = (status.st_dev, status.st_ino)
        file.seek(self._offset)
        data = file.read(CHUNK)
        if self._offset == 0 and data[:2] == b"\x1f\x8b":
            raise InputError("a compressed file cannot be followed", str(self.path), _REMEDY)
        self._offset += len(data)
        self._tail = (self._tail + data)[-_TAIL:]
        text = decode(self._decoder, data, self._lines, str(self.path))
        self._lines += data.count(b"\n")
        self._stream.feed(text)
        more = len(data) == CHUNK
        return Look(list(self._entries(last=not more)), restarted, more)

    def _is_same(self, file: BinaryIO, status: os.stat_result) -> bool:
        """Whether the file still begins as it was read."""
        if (status.st_dev, status.st_ino) != self._file or status.st_size < self._offset:
            return False
        file.seek(self._offset - len(self._tail))
        return file.read(len(self._tail)) == self._tail

    def _entries(self, last: bool) -> Iterator[Entry]:
        for member in self._stream.members(last=last):
            if member.inside:
                yield self._entry(member)
            else:
                self._document[member.name] = member.value
                if len(self._document) > 1000:
                    raise InputError("too many keys beside the entries", str(self.path), "this is no cache")
        if self._stream.closed and not self._stream.opened:
            raise InputError("this is no Kernel Tuner cache: no 'cache' with entries", str(self.path), _REMEDY)

    def _entry(self, member: Member) -> Entry:
        if member.inside != "cache":
            raise InputError("only a Kernel Tuner cache can be followed", str(self.path), _REMEDY)
        if self._reader is None:
            self.header = CacheHeader(self._document, str(self.path))
            self._reader = self.header.entry_reader()
        try:
            return Entry(self._reader.configuration(member.value), self._reader.facts(member.value))
        except BadEntry as error:
            what = f"line {self._stream.line}, entry {member.name[:80]!r}: {error}"
            raise InputError(what, str(self.path), "correct or remove it") from None
