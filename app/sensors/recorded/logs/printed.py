"""Logs that are no table, as CSV: JSON, what tools print for people to read, and a line for each field of a reading."""

from __future__ import annotations

import codecs
import csv
import io
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate
from itertools import chain, count, pairwise, zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ....base.errors import InputError
from ....base.files import byte_chunks, read_text
from ....base.json_rows import flattened, rows_in
from ....base.paths import resources
from ....base.text import json_or_none
from ....base.vocabulary import LOG_PATTERNS, WORDS
from .cells import Block, over_midnight, rises, stamps_of
from .layouts import DELIMITERS, DRAWN, POWERS, heading

_BEGINNING: Final = 65536  # bytes by which a log is known
_OF_TUNERS: Final = re.compile(r'"(tune_params|cache"|configuration"|compile_time"|benchmark_time"|kernel_name")')
_OF_WORK: Final = re.compile(
    r"throughput|tok|latency|flop|(?<!^_)runtime|duration|time_(ms|us|s)$|^times?$|per_(token|request|j)"
)
_LEAST_ROWS: Final = 20  # of JSON
_MOST_BOARDS: Final = 16  # in a list
_LONGEST_STEP_S: Final = 30.0  # between readings in JSON: what comes more rarely are runs
_OF_BOARDS: Final = ("Hostname", "hostname", "instance", "gpu", "device", "UUID", "uuid")  # labels of Prometheus
_FIGURES: Final = WORDS["means"] | WORDS["extreme"] | WORDS["spread"]
_AFTERBURNER: Final = re.compile(r"\d\d, \d\d[-./]\d\d[-./]\d{4} \d\d:\d\d:\d\d,")
_LONG: Final = re.compile(r'[^\n]*\b(field|metric)(_?name)?"?[,;\t]"?values?"?\s*\n', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Printed:
    """How a tool prints readings: `resources/printed_logs.toml`."""

    tool: str
    known: re.Pattern[str]
    reading: re.Pattern[str]
    columns: dict[str, str]


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE | re.ASCII)


_PRINTED: Final = tuple(
    _Printed(tool, _compiled(each.get("known", each["reading"])), _compiled(each["reading"]), each["columns"])
    for tool, each in tomllib.loads((resources() / "printed_logs.toml").read_text("utf-8")).items()
)


def beginning_of(first: bytes) -> str:
    """The text by which a log is known, of the first bytes of it."""
    return first[:_BEGINNING].decode("utf-8", "replace")


def utf8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The bytes as UTF-8: PowerShell writes UTF-16 where the output of a tool is redirected."""
    first = next(chunks, b"")
    if first[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        decoder = codecs.getincrementaldecoder("utf-16")("replace")
        for chunk in chain((first,), chunks):
            yield decoder.decode(chunk).encode()
        return
    for chunk in chain((first.removeprefix(codecs.BOM_UTF8),), chunks):  # what broke off may be filled with NUL
        yield re.sub(rb"\0+", b"\n", chunk) if b"\0" in chunk else chunk


def chunks_of(path: Path) -> Iterator[bytes]:
    """The bytes of a log as UTF-8; of what is no table, its readings as CSV. Raises InputError if it cannot be read."""
    chunks = utf8(byte_chunks(path))
    first = next(chunks, b"")
    beginning, table = beginning_of(first), None
    if (printed := next((each for each in _PRINTED if each.known.search(beginning)), None)) is not None:
        table = _of_readings(b"".join((first, *chunks)), printed)
    elif beginning.lstrip()[:1] in ("{", "["):
        table = _of_json(path, beginning)
    elif _AFTERBURNER.match(beginning):
        table = _of_afterburner(b"".join((first, *chunks)), str(path))
    elif _LONG.match(beginning):
        table = _of_fields(b"".join((first, *chunks)))
    yield first if table is None else table
    yield from chunks if table is None else ()


def _table(headings: Iterable[object], rows: Iterable[Iterable[object]], tool: str = "") -> bytes:
    """Rows as CSV, under who wrote them; None is an empty cell."""
    written = io.StringIO()
    written.write(f"# by {tool}\n" if tool else "")
    csv.writer(written, lineterminator="\n").writerows(chain((headings,), rows))
    return written.getvalue().encode()


def _of_readings(text: bytes, printed: _Printed) -> bytes:
    """A row for each reading of each board under the stamp above; of two for one the later counts.

    Those that the words before them say to be of something else (`other`) count where all are.
    """
    rows: dict[tuple[int, str, bool], dict[str, str]] = {}
    row: dict[str, str] = {}
    counted = "board" in printed.columns and "board" not in printed.reading.groupindex
    for number, found in enumerate(printed.reading.finditer(text.decode("utf-8", "replace"))):
        pieces = {name: piece for name, piece in found.groupdict().items() if piece is not None}
        if "stamp" in pieces or "stamp" not in row:
            begun, row, boards = number, {}, count()
        row |= pieces
        if counted and "power" in pieces:
            row["board"] = str(next(boards))
        if "power" in pieces and ("stamp" in row or "board" not in printed.columns):
            rows[begun, row.get("board", ""), "other" in pieces] = row | {"stamp": _in_numbers(row.get("stamp", ""))}
    rows = {key: row for key, row in rows.items() if not key[-1]} or rows  # else all are of something else
    with suppress(ValueError):  # what is no date
        _by_lengths(list(rows.values()))
    names = [name for name in printed.columns if any(row.get(name) for row in rows.values())]
    cells = ([row.get(name) for name in names] for row in rows.values())
    return _table([printed.columns[name] for name in names], cells, printed.tool)


def _by_lengths(rows: Sequence[dict[str, str]]) -> None:
    """Put readings of one second that say how many ms each was behind one another, but where there is a pause."""
    ends: datetime | None = None
    for row in rows if all("length" in row for row in rows) and len({row["stamp"] for row in rows}) < len(rows) else ():
        stamp = datetime.fromisoformat(row["stamp"])
        after = stamp if ends is None else ends + timedelta(milliseconds=float(row["length"]))
        ends = after if stamp - after < timedelta(seconds=2) else stamp
        row["stamp"] = str(ends)


def _in_numbers(stamp: str) -> str:
    """A stamp that begins with the name of a day, as `date` writes it, in numbers; others as they are."""
    half = "".join(re.findall(" [AP]M", stamp))
    if stamp[:1].isalpha() and (parts := parsedate(stamp.replace(half, ""))):
        return "{}-{:02}-{:02} {:02}:{:02}:{:02}{}".format(*parts[:6], half)
    return stamp


@dataclass(slots=True)
class _Session:
    """From a beginning of MSI Afterburner to the next one."""

    board: str = ""
    names: list[str] = field(default_factory=list)
    units: dict[str, str] = field(default_factory=dict)  # by the place of the column
    rows: list[tuple[str, list[str]]] = field(default_factory=list)

    def headings(self) -> list[str]:
        """Of each column; '' for a flag, which has no unit: 'Power limit' says that it is reached."""
        units = [self.units.get(str(place), "") for place in range(len(self.names))]
        return [f"{name} [{unit}]" if unit else "" for name, unit in zip(self.names, units, strict=True)]


def _sessions(text: bytes) -> list[_Session]:
    """Those of MSI Afterburner; one that is cut off at its beginning has the columns of the next one.

    But only where the units that it holds are the same.
    """
    sessions = [_Session()]
    for line in text.decode("latin-1").splitlines():
        match [cell.strip() for cell in line.split(",")]:
            case ["00", *_]:
                sessions.append(_Session())
            case ["01", _, *boards]:
                named = {*boards} - {""}
                sessions[-1].board = named.pop() if len(named) == 1 else ""  # else 'GPU1' tells them apart
            case ["02", _, *names]:
                if sessions[-1].rows:
                    sessions.append(_Session(sessions[-1].board))
                sessions[-1].names = names
            case ["03", _, place, unit, *_]:
                sessions[-1].units[place] = unit
            case ["80", stamp, *values]:
                sessions[-1].rows.append((stamp, values))
    for cut, following in list(pairwise(sessions))[::-1]:
        alike = cut.rows and len(cut.rows[0][1]) == len(following.names)
        if not cut.names and alike and cut.units and cut.units.items() <= following.units.items():
            cut.board, cut.names, cut.units = following.board, following.names, following.units
    return sessions


def _of_afterburner(text: bytes, where: str) -> bytes:
    """The records 80 of MSI Afterburner, under the headings (02) and units (03) of their session, the day first.

    Raises InputError where there is no power in W: percents of a limit are none.
    """
    sessions = _sessions(text)
    columns = [each for each in dict.fromkeys(name for session in sessions for name in session.headings()) if each]
    if not any(h.channel in POWERS and not h.doubt for h in map(heading, columns)):
        raise InputError("MSI Afterburner logged no power of the GPU in W", where, "log 'Power' in W, not in percent")
    rows = []
    for session in sessions:
        headings = session.headings()
        for stamp, values in session.rows:
            stamp = re.sub(r"(\d\d).(\d\d).(\d{4})", r"\3-\2-\1", stamp)
            cells = dict(zip(headings, values, strict=False))
            known = [cells.get(each) for each in columns] if len(values) == len(headings) else []  # cut off
            rows.append((stamp, session.board, *known))
    return _table(("timestamp", "name", *columns), rows, "MSI Afterburner")


def _of_fields(text: bytes) -> bytes:
    """Of a table with a line for each field, as DCGM writes it, the lines of the first field that is a power.

    The table itself where none is.
    """
    lines = text.decode("utf-8", "replace").splitlines()
    header, *read = csv.reader(lines, delimiter=max(DELIMITERS, key=lines[0].count))
    rows = [row for row in read if len(row) == len(header)]
    power = next((row[-2] for row in rows if heading(row[-2]).channel.startswith("power_")), None)
    if power is None:
        return text
    return _table((*header[:-2], power), ((*row[:-2], row[-1]) for row in rows if row[-2] == power))


def _readings_of_json(path: Path, beginning: str) -> list[dict[str, object]]:
    """The rows of JSON or JSON lines that may be readings of power; none of a tuner's, or of runs."""
    lower = beginning.lower()
    timed = re.search(r'"[^"]*(time|date|elapsed|"t(s|_s|_ms)?")', lower)
    if _OF_TUNERS.search(lower) or not timed or not re.search('power|watt|"p(_gpu)?_m?w"', lower):
        return []
    text = read_text(path)
    document = json_or_none(text)
    lines = text.splitlines() if document is None else ()
    of_lines = [row for each in lines for row in _rows_of_line(json_or_none(each))]
    rows = _traces(document) or rows_in(document) or of_lines
    rows = [of_one for row in rows for of_one in _of_each_board(row)]
    flat: list[dict[str, object]] = [{**dict(flattened(row)), **dict(_of_boards(row))} for row in rows]
    works = filter(lambda name: _OF_WORK.search(name.lower()), flat[0] if len(flat) >= _LEAST_ROWS else ())
    runs = any(len({row.get(name) for row in flat[:_LEAST_ROWS]}) > 1 for name in works)
    of_wandb = bool(flat) and "_runtime" in flat[0]
    few = (
        len(flat) < _LEAST_ROWS and not of_wandb and not (len(flat) > 2 and all(heading(name).role for name in flat[0]))
    )
    return [] if runs or few else flat


def _of_boards(row: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Numbers in a list, each under the number of its board: as many as there are powers in one."""
    lists = [(name, values) for name, values in row.items() if isinstance(values, list)]
    boards = {len(values) for name, values in lists if heading(name).channel in DRAWN}
    for name, values in lists:
        if len(values) in boards and len(values) <= _MOST_BOARDS and all(isinstance(v, int | float) for v in values):
            yield from ((f"{name} GPU{number}", value) for number, value in enumerate(values))


def _traces(document: object) -> list[dict[str, Any]]:
    """The rows of an object that holds a list of readings for each board, the first of every board first."""
    if not isinstance(document, dict) or not _are_boards(document):
        return []
    lists = [
        [{"board": name, **row} for row in rows_in(rows)] for name, rows in document.items() if isinstance(rows, list)
    ]
    together = chain.from_iterable(zip_longest(*lists))
    return [row for row in together if row] if len(lists) == len(document) and all(lists) else []


def _of_each_board(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each board whose power or readings one holds under its name, such as '0' or 'node1'; else the row."""
    for outer, boards in row.items():
        if isinstance(boards, dict) and _are_boards(boards):
            named = [[name.rpartition(".")[2] for name, _ in flattened({outer: each})] for each in boards.values()]
            if all(any(heading(name).channel in POWERS for name in names) for names in named):
                split = [name for name, each in row.items() if isinstance(each, dict) and each.keys() == boards.keys()]
                beside = {name: each for name, each in row.items() if name not in split}
                own = {key: [(name, row[name][key]) for name in split] for key in boards}
                return [beside | {"board": key} | dict(_inner(values)) for key, values in own.items()]
    return [row]


def _inner(values: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, value in values:
        yield from value.items() if isinstance(value, dict) else [(name, value)]


def _are_boards(named: Mapping[str, object]) -> bool:
    """Tell whether names are of boards, or of nodes: a word with numbers, or of objects that hold the same."""
    stems = {re.sub(r"\d{1,3}$", "", name) for name in named}
    numbered = len(stems) == 1 and stems.isdisjoint(named)
    kinds = {frozenset(each if isinstance(each, dict) else ()) for each in named.values()}
    others = [name for name in named if LOG_PATTERNS["no_board"].search(name) or name.lower() in _FIGURES]
    return len(named) > 1 and (numbered or (len(kinds) == 1 and all(kinds))) and (not others or stems == {"node"})


def _rows_of_line(document: Any) -> list[dict[str, Any]]:
    """The rows of one line, where its boards stand in a list; objects under names, such as 'gpu0', are of one row."""
    rows = rows_in(document)
    under_names = isinstance(document, dict) and any("key" in row and "key" not in document for row in rows)
    return [document] if under_names else rows


def _of_prometheus(document: object) -> bytes | None:
    """The powers and limits in what Prometheus answers to a query over a range, each under the name of its metric.

    None where no power is in it.
    """
    match document:
        case {"data": {"result": list(found)}}:
            series = [one for each in found for one in _series(each)]
            names = list(dict.fromkeys(one.name for one in series))
            rows: dict[tuple[float, str], dict[str, str]] = {}
            for one, board in zip(series, _boards_of(series), strict=True):
                for time_s, value in one.samples:
                    rows.setdefault((time_s, board), {})[one.name] = value
            if rows and any(heading(name).channel in POWERS for name in names):
                keys = sorted(rows)
                called = ("" if board.isdigit() else board for _, board in keys)
                cells = ((*key, name, *map(rows[key].get, names)) for key, name in zip(keys, called, strict=True))
                return _table(("timestamp", "index", "name", *names), cells, "Prometheus")
    return None


class _Series(NamedTuple):
    """A metric of one thing."""

    name: str
    labels: Mapping[str, str]
    samples: list[tuple[float, str]]


def _series(series: object) -> Iterator[_Series]:
    """Yield a series of powers or limits; nothing where it is of something else, or the extreme of another."""
    match series:
        case {"metric": {"__name__": str(name), **others}, "values": list(values)}:
            labels = {str(label): str(each) for label, each in others.items()}
            extreme = {each.lower() for each in labels.values()} & WORDS["extreme"]
            samples = [(value[0], value[1]) for value in values if _is_sample(value)]
            if samples and not extreme and heading(name).channel in (*POWERS, "power_limit_w"):
                yield _Series(name, labels, samples)


def _is_sample(value: object) -> bool:
    match value:
        case [int() | float(), str()]:
            return True
    return False


def _boards_of(series: Sequence[_Series]) -> list[str]:
    """Of which board each series is: by the labels that name boards, and others that tell readings of one time apart.

    Alone, others may change with what a board works for.
    """
    boards = [""] * len(series)
    for label in dict.fromkeys((*_OF_BOARDS, *(label for one in series for label in one.labels))):
        tried = [f"{board} {one.labels.get(label, '')}".strip() for one, board in zip(series, boards, strict=True)]
        more = len({*tried}) > len({*boards})
        if more and (label in _OF_BOARDS or _readings(series, tried) > _readings(series, boards)):
            boards = tried
    return boards


def _readings(series: Sequence[_Series], boards: Sequence[str]) -> int:
    """Count those of one metric, board and time as one."""
    named = zip(series, boards, strict=True)
    return len({(one.name, board, time_s) for one, board in named for time_s, _ in one.samples})


def _of_json(path: Path, beginning: str) -> bytes | None:
    """The readings in JSON or JSON lines; None where there are none: power at times that follow one another soon."""
    if '"resultType"' in beginning:
        return _of_prometheus(json_or_none(read_text(path)))
    flat = _readings_of_json(path, beginning)
    every = [*flat[0]] if flat else []
    for headings in (every, [name.rpartition(".")[2] for name in every]):
        read = [(name, found) for name, text in zip(every, headings, strict=True) if (found := heading(text)).role]
        names = [name for name, _ in read]
        times = [(name, found.scale) for role in ("time", "day") for name, found in read if found.role == role]
        if times and any(found.channel in POWERS for _, found in read):
            break
    else:
        return None
    shown = [found.text for _, found in read]
    headings = shown if len(set(shown)) == len(shown) else names
    whole = _table(headings, ([row.get(name) for name in names] for row in flat))
    block = Block(whole.partition(b"\n")[2], ",", len(names))
    stamps = over_midnight(stamps_of(block, names.index(times[0][0]), times[0][1]))
    soon = len(stamps) > 1 and float(np.median(np.diff(stamps))) / 1e9 < _LONGEST_STEP_S
    return whole if soon and rises(stamps) else None
