"""Logs that are no table, as CSV: JSON, what tools print for people to read, and a line for each field of a reading."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from email.utils import parsedate
from pathlib import Path
from typing import Final

import numpy as np

from ....base.files import byte_chunks, read_text
from ....base.json_rows import flattened, rows_in
from ....base.text import json_or_none
from .cells import Block, rises, stamp_reader
from .layouts import heading

BEGINNING: Final = 65536  # bytes by which a log is known
_OF_TUNERS: Final = re.compile(rb'"(tune_params|cache"|configuration"|compile_time"|benchmark_time"|kernel_name")')
_OF_WORK: Final = re.compile(
    r"throughput|tok|latency|flop|runtime|duration|time_(ms|us|s)$|^times?$|per_(token|request|j)"
)
_LEAST_ROWS: Final = 20  # of JSON
_LONGEST_STEP_S: Final = 30.0  # between readings in JSON: what comes more rarely are runs
_TEGRASTATS: Final = re.compile(  # of a Jetson; its average stands behind the present power
    rb"^(?:(\d\d-\d\d-\d{4} \d\d:\d\d:\d\d) )?RAM \d.*? (?:VDD_IN|POM_5V_IN) (\d+)(?:mW)?/\d+", re.MULTILINE
)
_MLPERF: Final = re.compile(rb"Time,[^,\n]+,Watts,[^,\n]*,")  # of SPEC's daemon for meters
_ZEUS: Final = re.compile(rb"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*) \{('GPU\d+': [^{}\n]*)\}\s*$", re.MULTILINE)
_SCREEN: Final = re.compile(  # of nvidia-smi
    rb"^(?P<stamp>\w{3} \w{3} +\d+ \d\d:\d\d:\d\d (?:\w+ )?\d{4})|^\|\s+(?P<board>\d+)\s+\w"
    rb"|^\|.*?(?P<watts>\d+)W\s*/\s*(?P<limit>\d+)W",
    re.MULTILINE,
)
_LONG: Final = re.compile(rb'[^\n]*\b(field|metric)(_?name)?"?[,;\t]"?values?"?\s*\n', re.IGNORECASE)


def utf8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The bytes as UTF-8: PowerShell writes UTF-16 where the output of a tool is redirected."""
    first = next(chunks, b"")
    if first[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        decoder = codecs.getincrementaldecoder("utf-16")("replace")
        yield decoder.decode(first).encode()
        for chunk in chunks:
            yield decoder.decode(chunk).encode()
        return
    yield first.removeprefix(codecs.BOM_UTF8)
    yield from chunks


def chunks_of(path: Path) -> Iterator[bytes]:
    """The bytes of a log as UTF-8; of what is no table, its readings as CSV. Raises InputError if it cannot be read."""
    chunks = utf8(byte_chunks(path))
    first = next(chunks, b"")
    beginning, table = first[:BEGINNING], None
    if first.lstrip()[:1] in (b"{", b"["):
        table = _of_json(path, beginning)
    elif _TEGRASTATS.search(beginning):
        table = _of_tegrastats(b"".join((first, *chunks)))
    elif b"| NVIDIA-SMI " in beginning:
        table = _of_screens(b"".join((first, *chunks)))
    elif _MLPERF.match(beginning):
        rows = (line.split(b",", 4) for line in b"".join((first, *chunks)).split(b"\n"))
        table = b"\n".join((b"Time,Watts", *(b"%s,%s" % (row[1], row[3]) for row in rows if len(row) == 5), b""))
    elif _ZEUS.match(beginning):
        table = _of_zeus(b"".join((first, *chunks)))
    elif _LONG.match(beginning):
        table = _of_fields(b"".join((first, *chunks)))
    yield first if table is None else table
    yield from chunks if table is None else ()


def _of_tegrastats(text: bytes) -> bytes:
    """The power of the whole board, with stamps where there are."""
    found = _TEGRASTATS.findall(text)
    if not found[0][0]:
        return b"\n".join((b"VDD_IN_mW", *(watts for _, watts in found), b""))
    return b"\n".join((b"timestamp,VDD_IN_mW", *(b"%s,%s" % row for row in found), b""))


def _of_zeus(text: bytes) -> bytes:
    """Of "2024-05-01 12:00:00.123456 {'GPU0': 65.15}", as `zeus.monitor power` prints it, a column a board."""
    found = [(stamp, dict(re.findall(rb"'(GPU\d+)': ([\d.]+)", powers))) for stamp, powers in _ZEUS.findall(text)]
    boards = list(found[0][1])
    rows = (b",".join((stamp, *(powers.get(board, b"") for board in boards))) for stamp, powers in found)
    return b"\n".join((b",".join((b"Time", *(board + b" power draw (W)" for board in boards))), *rows, b""))


def _of_screens(text: bytes) -> bytes:
    """The power and its limit of each board on the screens of `nvidia-smi`, under the stamp above each."""
    stamp = board = b""
    rows = [b"timestamp,index,power.draw [W],power.limit [W]"]
    for found in _SCREEN.finditer(text):
        if found["stamp"]:
            parts = parsedate(found["stamp"].decode())
            stamp = b"%d-%02d-%02d %02d:%02d:%02d" % parts[:6] if parts else b""
        elif found["board"]:
            board = found["board"]
        elif stamp:
            rows.append(b"%s,%s,%s,%s" % (stamp, board, found["watts"], found["limit"]))
    return b"\n".join((*rows, b""))


def _of_fields(text: bytes) -> bytes | None:
    """Of a table with a line for each field, as DCGM writes it, the lines of the first field that is a power."""
    lines = text.decode("utf-8", "replace").splitlines()
    delimiter = max(",;\t", key=lines[0].count)
    header, *rows = csv.reader(lines, delimiter=delimiter)
    fields = (row[-2] for row in rows if len(row) == len(header))
    power = next((field for field in fields if heading(field).channel.startswith("power_")), None)
    if power is None:
        return None
    kept = (",".join((*row[:-2], row[-1])) for row in rows if len(row) == len(header) and row[-2] == power)
    return "\n".join((",".join((*header[:-2], power)), *kept, "")).encode()


def _readings_of_json(path: Path, beginning: bytes) -> list[dict[str, object]]:
    """The rows of JSON or JSON lines that may be readings of power; none of a tuner's, or of runs."""
    lower = beginning.lower()
    tuned = _OF_TUNERS.search(lower) is not None
    if tuned or not (b"power" in lower or b"watt" in lower) or not re.search(rb'"[^"]*(time|date|"ts")', lower):
        return []
    text = read_text(path)
    document = json_or_none(text)
    lines = text.splitlines() if document is None else ()
    rows = rows_in(document) or [row for line in lines if isinstance(row := json_or_none(line), dict)]
    flat: list[dict[str, object]] = [dict(flattened(row)) for row in rows]
    works = filter(lambda name: _OF_WORK.search(name.lower()), flat[0] if len(flat) >= _LEAST_ROWS else ())
    runs = any(len({row.get(name) for row in flat[:_LEAST_ROWS]}) > 1 for name in works)
    return [] if runs or len(flat) < _LEAST_ROWS else flat


def _of_json(path: Path, beginning: bytes) -> bytes | None:
    """The readings in JSON or JSON lines; None where there are none: power at times that follow one another soon."""
    flat = _readings_of_json(path, beginning)
    roles = {name: heading(name.rpartition(".")[2]).role for name in (flat[0] if flat else ())}
    names = [name for name, role in roles.items() if role]
    times = [name for role in ("time", "day") for name in names if roles[name] == role]
    if not times:
        return None
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    shown = [name.rpartition(".")[2] for name in names]
    writer.writerow(shown if len(set(shown)) == len(shown) else names)
    writer.writerows(["" if row.get(name) is None else row.get(name) for name in names] for row in flat)
    whole = written.getvalue().encode()
    block, place = Block(whole.split(b"\n", 1)[1], ",", len(names)), names.index(times[0])
    reader = stamp_reader(block.text(0, place), None) if len(block) else None
    stamps = reader(block, place) if reader is not None else np.empty(0, np.int64)
    soon = len(stamps) > 1 and float(np.median(np.diff(stamps))) / 1e9 < _LONGEST_STEP_S
    return whole if soon and rises(stamps) else None
