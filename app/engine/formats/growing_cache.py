"""A Kernel Tuner cache from which a session reads earlier measurements, and to which it appends its own.

A session reads known measurements from its cache and adds new ones. Entries of other programs stay as they are. The
file is complete at every moment: it is replaced, never rewritten in place. A cache that another program writes is read
as it grows, from where the last reading ended.
"""

from __future__ import annotations

import codecs
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from ...base.errors import InputError
from ...base.files import decode, open_input, read_text, write_text
from ...base.text import json_or_none
from ..results.measurement import Measurement, Value
from ..space.search_space import SearchSpace
from .entries import COST_MS, mapping_of
from .kernel_tuner import CacheEntries, CacheHeader, cache_entry, cache_header, cache_pieces, entry_key, their_names
from .names import DEVICE_SETTINGS
from .own import About, OwnHeader, plain_lists
from .read import Scan, read_recording
from .recording import Facts, Recording

_SHARE: Final = 20  # of the time, at most one part in so many is spent on writing
_LEAST_S: Final = 1.0  # between two writings
_MOST_BYTES: Final = 1 << 29


class GrowingCache:
    """One file. `write` when a session has measured something more."""

    def __init__(self, path: Path) -> None:
        """The suffix .json is added if it is missing. Raises InputError if the file is there and no cache."""
        if not path.name:
            raise InputError(f"'{path}' is no file", "cache", "name one")
        self.path = path if path.suffix == ".json" else path.with_name(f"{path.name}.json")
        self.recording: Recording | None = None
        self._document: dict[str, Any] = {}
        self._entries: dict[str, Any] = {}
        self._found: frozenset[str] = frozenset()  # the entries that were there before
        self._next_s = 0.0
        if self.path.is_file() and self.path.stat().st_size:
            document = _document(self.path)
            if document["cache"]:  # else the run that made it was ended before its first measurement
                self.recording = read_recording(self.path)
                self._document, self._entries = document, document.pop("cache")
                self._found = frozenset(self._entries)

    def require(
        self, names: Iterable[str], *, kernel: str, problem_size: str = "", board: str = "", known_as: str | None = None
    ) -> None:
        """Raises InputError if the file is of another kernel, problem size, board or set of parameters.

        What is not known on one side is not compared. `known_as` is the board's name to Kernel Tuner.
        """
        if self.recording is None:
            return
        device = self._document.get("device_name")
        there = {
            "kernel": self._document.get("kernel_name"),
            "problem size": self.recording.problem_size,
            "board": OwnHeader(self._document).text("device") or (None if device == known_as else device),
            "set of parameters": ", ".join(map(str, self._document.get("tune_params_keys") or ())),
        }
        mine = (kernel, problem_size, board, ", ".join(their_names(tuple(names), str(self.path))))
        for (what, its), here in zip(there.items(), mine, strict=True):
            if here and its and here != its:
                raise InputError(f"it is of another {what}: {its}", str(self.path), f"name another file for {here}")

    def known(self, space: SearchSpace) -> dict[int, Measurement]:
        """What the file holds of a space, by its rows."""
        if self.recording is None:
            return {}
        result = {}
        for measurement in self.recording.in_file_order():
            named = {DEVICE_SETTINGS.get(name, name): value for name, value in measurement.configuration.items()}
            row = space.row_of(named)
            if row is not None:
                result[row] = replace(measurement, row=row, configuration=space.configuration(row))
        return result

    def other_values(self, measurement: Measurement) -> Mapping[str, Any]:
        """What is no figure in the entry of a configuration: lists, such as of times, and what was spent on it."""
        entry = self._entries.get(entry_key(measurement), {})
        return {name: value for name, value in entry.items() if _is_kept(name, value)}

    def add(self, measurement: Measurement, about: About, more: Mapping[str, Any]) -> None:
        """One entry, with what is no figure of it; the next `write` writes it. What the file held of it stays."""
        names = their_names(tuple(measurement.configuration), str(self.path))
        others = {name: value for name, value in more.items() if _is_kept(name, value) and name not in names}
        key = entry_key(measurement)
        before = self._entries[key] if key in self._found else {}
        self._entries[key] = cache_entry(measurement, about, names, ()) | others | before

    def write(self, space: SearchSpace, about: About, *, at_last: bool = False) -> None:
        """Write the file, unless it was written a moment ago and more is to come. Raises WattridgeError."""
        began = time.monotonic()
        if not at_last and began < self._next_s:
            return
        names = their_names(space.names, str(self.path))
        header = self._document or cache_header(space, about, names)
        listed = plain_lists(names, names, header.get("tune_params"))
        values = {
            p: list(dict.fromkeys([*listed[p], *each.values])) for p, each in zip(names, space.parameters, strict=True)
        }
        header["tune_params"] = {**mapping_of(header.get("tune_params")), **values}
        write_text(self.path, cache_pieces(header, self._entries.items()), overwrite=True)
        now = time.monotonic()
        self._next_s = now + max(_LEAST_S, _SHARE * (now - began))


def _is_kept(name: str, value: Any) -> bool:
    return isinstance(value, list) or (name in COST_MS and isinstance(value, int | float))


def _document(path: Path) -> dict[str, Any]:
    """The whole file, also where its writer was ended before it closed it. Raises InputError."""
    text = read_text(path, _MOST_BYTES).strip()
    for whole in (text, text.removesuffix(",") + "}\n}"):
        document = json_or_none(whole)
        if isinstance(document, dict) and isinstance(document.get("cache"), dict):
            return document
    raise InputError("it is no cache of Kernel Tuner's", str(path), "name another file")


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


class _Fresh(CacheEntries):
    """The entries of a cache since the last look."""

    header_key = ""  # a tuner writes the header first

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        super().__init__(path, document)
        self.fresh: list[Entry] = []

    def keep(self, configuration: tuple[Value, ...], facts: Facts) -> None:
        """Keep what was read of an entry until somebody looks."""
        self.fresh.append(Entry(configuration, facts))


class _OfOthers(_Fresh):
    """Entries that no tuner adds to a file one by one."""

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        raise InputError("only a Kernel Tuner cache can be followed", str(path), _REMEDY)


class CacheFollower:
    """Look again and again; between two looks nothing of the file is held but where the reading stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin()

    @property
    def closed(self) -> bool:
        """The file's last bracket was read: its tuner is done."""
        return self._scan.stream.closed

    @property
    def header(self) -> CacheHeader | None:
        """The file's header, known as soon as an entry is."""
        return self._scan.entries.header if isinstance(self._scan.entries, _Fresh) else None

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
        self._scan = Scan(self.path, {"cache": _Fresh, "results": _OfOthers, "Results": _OfOthers})

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
        more = len(data) == CHUNK
        self._scan.feed(text, last=not more)
        if self.closed and not self._scan.stream.opened:
            raise InputError("this is no Kernel Tuner cache: no 'cache' with entries", str(self.path), _REMEDY)
        fresh: list[Entry] = []
        if isinstance(self._scan.entries, _Fresh):
            fresh, self._scan.entries.fresh = self._scan.entries.fresh, fresh
        return Look(fresh, restarted, more)

    def _is_same(self, file: BinaryIO, status: os.stat_result) -> bool:
        """Whether the file still begins as it was read."""
        if (status.st_dev, status.st_ino) != self._file or status.st_size < self._offset:
            return False
        file.seek(self._offset - len(self._tail))
        return file.read(len(self._tail)) == self._tail
