"""Reading a recording, whatever its format, which is known by its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from ...base.errors import InputError
from ...base.files import read_text, text_chunks
from ...base.json_rows import rows_in
from ...base.text import json_or_none
from ...sensors.recorded.logs.read import is_log
from .any_table import is_clock_sweep, read_table
from .cells import DATABASES, is_of_plugin
from .csv_table import is_session, read_csv
from .entries import BadEntry
from .json_stream import JsonStream, Member
from .kernel_tuner import CacheEntries
from .kinds import first_character, is_json_lines, is_of_a_tuner, is_program_trace, is_trace, other_kind, refused_trace
from .recording import Recording
from .service_results import is_served
from .t1 import is_specification
from .t4 import KttEntries, ListEntries, T4Entries
from .table_columns import TableColumns

_MAXIMUM_HEADER = 1000  # members beside the entries
_REMEDY = "pass a cache, T4 results, or a session as CSV"
_CUT_OFF = "the last entry is cut off in the middle and left out: it is being written, or its writer was ended"


class _NoRecording(InputError):
    """JSON that no tuner wrote."""


class Entries(Protocol):
    """The entries of one format, read one by one. `document` is the rest of the file, and may still grow."""

    kind: str  # what an entry is called
    header_key: str  # what must be in the document before the first entry; '' for nothing

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None: ...

    def add(self, entry: object) -> None: ...

    def finish(self) -> Recording: ...


Formats = Mapping[str, type[Entries]]  # the member that holds the entries, and who reads them
FORMATS: Formats = {"cache": CacheEntries, "results": T4Entries, "Results": KttEntries}
_LIST = "[]"  # a file that is nothing but a list is read as this member of an object


def read_recording(path: Path | str, columns: TableColumns | None = None) -> Recording:
    """Read a Kernel Tuner cache or list of results, T4 or KTT's results, a session as CSV, or any other table.

    `columns` says which columns of another tool's table are parameters and figures; they are guessed where it does not.
    A file that names its own parameters needs none of it.
    Raises InputError naming the file, the line or key and the remedy if it is none of them.
    """
    path = Path(path)
    if is_table_by_name(path) or (columns is not None and columns.beside) or is_served(path):
        return read_table(path, columns)
    begun = first_character(path)
    if not begun:
        raise InputError("the file is empty", str(path), "let the tuning run measure something first")
    if is_trace(path):
        raise refused_trace(path)
    if begun not in "{[":
        if is_session(path):
            return read_csv(path)
        other = other_kind(path)
        if other is not None:
            raise other
        return read_table(path, columns)
    listed = begun == "[" and (columns is not None or (_holds_objects(path) and not is_of_a_tuner(path)))
    if (begun == "{" and is_json_lines(path)) or listed:
        return read_table(path, columns)
    try:
        scan = _scanned(path, Scan(path, {_LIST: ListEntries, **FORMATS} if begun == "[" else FORMATS))
        if scan.skipped:  # the header is below the entries: read again with it known
            scan = _scanned(path, Scan(path, FORMATS, scan.document))
        return scan.recording()
    except _NoRecording as error:  # of no tuner: any other JSON
        try:
            return read_table(path, columns)
        except InputError as unclear:
            raise (unclear if rows_in(json_or_none(read_text(path))) else error) from None


def is_recording(path: Path) -> bool:
    """Whether the file looks like one: JSON, or a session that this program wrote as CSV. Raises InputError."""
    return not is_trace(path) and (first_character(path) in ("{", "[") or is_session(path))


def is_table_by_name(path: Path) -> bool:
    """Whether it is a folder of points, a Parquet file or a database, which no text begins."""
    return path.is_dir() or path.suffix.lower() in (".parquet", ".pq", *DATABASES) or is_of_plugin(path)


class FileKind(Enum):
    """What a file is to the window: which view shows it."""

    SPECIFICATION, RECORDING, LOG = "specification", "recording", "log"
    PROGRAM = "program"  # a profile, or a trace that becomes one
    TABLE, CLOCKS = "table", "clocks"  # of a sweep of one clock: for the frequency model


def kind_of_file(path: Path) -> FileKind:
    """What a file is, by its content. Raises InputError if it cannot be read, or belongs to another command."""
    if is_table_by_name(path) or is_served(path):
        return FileKind.TABLE
    if path.suffix.lower() == ".wprofile" or is_program_trace(path):
        return FileKind.PROGRAM
    if is_specification(path):
        return FileKind.SPECIFICATION
    if is_trace(path) or is_log(path):
        return FileKind.LOG
    if is_recording(path):
        return FileKind.TABLE if is_json_lines(path) or not is_of_a_tuner(path) else FileKind.RECORDING
    other = other_kind(path)
    if other is not None:
        raise other
    return FileKind.CLOCKS if is_clock_sweep(path) else FileKind.TABLE


def _holds_objects(path: Path) -> bool:
    """Whether a list begins with an object."""
    return next(text_chunks(path), "").lstrip()[1:].lstrip()[:1] == "{"


def _scanned(path: Path, scan: Scan) -> Scan:
    """All of a file."""
    before, after = (f'{{"{_LIST}":', "}") if _LIST in scan.formats else ("", "")
    for chunk in chain([before], text_chunks(path)):
        scan.feed(chunk)
    scan.feed("" if scan.stream.inside else after, last=True)
    scan.stream.end()
    return scan


class Scan:
    """One pass over a JSON file as its text comes: its header, and its entries where the header is above them."""

    def __init__(self, path: Path, formats: Formats, known: Mapping[str, Any] | None = None) -> None:
        """`known`: the whole header, even if empty."""
        self.document: dict[str, Any] = dict(known or {})  # all but the entries
        self.skipped = 0
        self.entries: Entries | None = None
        self.stream = JsonStream(str(path), formats)
        self._path = path
        self._known = known is not None
        self._count = 0
        self.formats = formats

    def feed(self, text: str, *, last: bool = False) -> None:
        """Take what is complete by now. Raises InputError; `last`: as `JsonStream.members`."""
        self.stream.feed(text)
        for member in self.stream.members(last=last):
            self._take(member)

    def recording(self) -> Recording:
        """What was read. Raises InputError if there is nothing to replay in the file."""
        if self.entries is None:
            self.entries = self._begin(self.stream.opened)
        notes = (_CUT_OFF,) if self.stream.inside and self.stream.half else ()
        read = self.entries.finish()
        return replace(read, notes=(*notes, *read.notes), still_open=not self.stream.closed)

    def _take(self, member: Member) -> None:
        if not member.inside:
            self.document[member.name] = member.value
            if len(self.document) > _MAXIMUM_HEADER:
                raise InputError("too many keys beside the entries", str(self._path), "this is no recording")
            return
        if self.entries is None:
            needed = self.formats[member.inside].header_key
            if needed and not self._known and needed not in self.document:
                self.skipped += 1
                return
            self.entries = self._begin(member.inside)
        self._count += 1
        try:
            self.entries.add(member.value)
        except BadEntry as error:
            other = isinstance(member.value, dict) and "configuration" not in member.value
            if member.inside in ("results", _LIST) and self._count == 1 and other:
                raise _NoRecording("this is no list of a tuner's results", str(self._path), _REMEDY) from None
            name = repr(member.name[:80]) if member.name else str(self._count)
            what = f"line {self.stream.line}, {self.entries.kind} {name}: {error}"
            raise InputError(what, str(self._path), "correct or remove it") from None

    def _begin(self, container: str) -> Entries:
        """The reader of the entries in this member. Raises InputError where there is none."""
        where = str(self._path)
        if container:
            return self.formats[container](self._path, self.document)
        if "ConfigurationSpace" in self.document:
            remedy = "measure it with: wattridge tune"
            raise InputError("this is a T1 specification: it holds no measurements", where, remedy)
        what = "this is no recording: neither a Kernel Tuner cache ('cache') nor T4 results ('results')"
        raise _NoRecording(what, where, _REMEDY)
