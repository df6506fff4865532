"""What goes to the worker of a board and what comes back: lines of JSON, in bounds, and nothing else.

A request names what is to be done, the session that it is for, and its number, which only grows:

    {"do": "open", "session": "...", "number": 1, "specification": "sgemm.toml", "files": {...}, "space": {...}, ...}
    {"do": "measure", ..., "rows": [5, 3], "depth": "energy"}        each row is reported as soon as it is known
    {"do": "features", ..., "rows": [...]}
    {"do": "restate", ..., "measurements": [...]}
    {"do": "conclude", ...}
    {"do": "close", ...}

The answer to each is one line, and before it come parts: that its turn has come, and each row that is measured:

    {"number": 7, "begun": true}
    {"number": 7, "measured": {"row": 5, "state": "ok", "values": {...}, ...}}
    {"number": 7, "answer": {...}}                                   or "error": {"kind", "what", "remedy"}

Neither end trusts the other: a line is at most so long, every field has its type and its range, texts are cut and hold
no control characters. A row's configuration is never sent: it follows from the space, which both ends have. NaN is
null.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

import numpy as np

from ....base.errors import InputError, WattridgeError
from ....base.files import open_input
from ....base.paths import resources
from ....base.text import visible
from ....sensors.gpu import SensorError
from ....sensors.remote.messages import (
    Garbled,
    error_document,
    line_of,
    list_of,
    number_of,
    object_of,
    parse_error,
    parse_line,
    sensor_error,
    text_of,
    whole_of,
)
from ...results.evidence import unpack
from ...results.measurement import Depth, Measurement, State
from ...space.search_space import Parameter, SearchSpace, space_to_row
from ...specification.model import ARRAY_FILES, Specification
from ...workloads.source_kernel import Build, included

# --- a specification with its files, packed where the session is and unpacked beside a board --------------------------

MOST_BYTES: Final = 32 << 20  # of all files together
_MOST_FILES: Final = 2048
_PART: Final = re.compile(r"[^/\\:*?\"<>|\x00-\x1f\x7f]{1,200}\Z")


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files by their names relative to one folder, '/' between the parts; `specification` is the name of one."""

    specification: str
    files: Mapping[str, bytes]

    def unpack(self, folder: Path) -> Path:
        """Write the files into an empty folder; the path of the specification. Raises OSError."""
        for name, content in self.files.items():
            path = folder.joinpath(*PurePosixPath(name).parts)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder.joinpath(*PurePosixPath(self.specification).parts)


def bundle_of(spec: Specification) -> Bundle:
    """A specification's file, its sources and what they include, references and arrays.

    What comes with Wattridge is where it arrives, and travels with its own examples alone, which name it from there.

    Raises InputError if that is too large, and WattridgeError if a file cannot be read.
    """
    shipped = os.path.realpath(resources())
    paths = dict.fromkeys(Path(os.path.realpath(path)) for path in (spec.path, *_files_of(spec)))
    named = Path(os.path.realpath(spec.path))
    wanted = [path for path in paths if named.is_relative_to(shipped) or not path.is_relative_to(shipped)]
    top = Path(os.path.commonpath([path.parent for path in wanted]))
    files: dict[str, bytes] = {}
    for path in wanted:
        try:
            with open_input(path) as file:
                files[path.relative_to(top).as_posix()] = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise WattridgeError(error.strerror or str(error), str(path), "check the file") from None
        if sum(map(len, files.values())) > MOST_BYTES or len(files) > _MOST_FILES:
            what = f"its files are too many or too large for a pool ({_MOST_FILES} files, {MOST_BYTES >> 20} MB)"
            raise InputError(what, str(spec.path), "fill arrays by an expression instead of from files")
    return Bundle(named.relative_to(top).as_posix(), files)


def bundle_message(bundle: Bundle) -> dict[str, Any]:
    """As it is sent."""
    files = {name: base64.b64encode(content).decode("ascii") for name, content in bundle.files.items()}
    return {"specification": bundle.specification, "files": files}


def parse_bundle(sent: Any) -> Bundle:
    """Files that were sent. Raises Garbled for names that lead out of a folder, and for what is too large."""
    message = object_of(sent)
    files: dict[str, bytes] = {}
    total = 0
    for name, text in object_of(message.get("files"), _MOST_FILES).items():
        if not _is_relative(name) or not isinstance(text, str):
            raise Garbled("a file with a name that is none")
        total += len(text) * 3 // 4
        if total > MOST_BYTES + 3 * _MOST_FILES:
            raise Garbled("files that are too large")
        try:
            files[name] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise Garbled("a file that is not one") from None
    named = message.get("specification")
    if not isinstance(named, str) or named not in files:
        raise Garbled("no specification among the files")
    if any(str(parent) in files for name in files for parent in PurePosixPath(name).parents):
        raise Garbled("a file that is a folder too")
    return Bundle(named, files)


def _is_relative(name: str) -> bool:
    parts = name.split("/")
    return len(name) <= 1000 and all(_PART.match(part) and part not in (".", "..") for part in parts)


def _files_of(spec: Specification) -> Iterator[Path]:
    """The files that running a specification reads besides its own."""
    kernel, folder = spec.kernel, spec.path.parent
    if kernel is None:
        return
    folders = tuple(dict.fromkeys((*kernel.include, *(path.parent for path in kernel.sources))))
    for path, _ in included(Build("", kernel.sources, folders, ())):
        yield path
    for argument in kernel.arguments:
        if argument.fill.endswith(ARRAY_FILES):
            yield folder / argument.fill
    if kernel.verify is not None:
        for reference in (kernel.verify.reference, *kernel.verify.references.values()):
            if reference and len(reference) < 1000 and (folder / reference).is_file():
                yield folder / reference


_T = TypeVar("_T")

LONGEST_REQUEST: Final = 96 << 20
LONGEST_ANSWER: Final = 8 << 20
MOST_ROWS: Final = 1024  # in one request
AHEAD: Final = 3  # requests for rows that a board has at once: one that it works on and the next
_MOST_ROW: Final = 1 << 40
_MOST_CODES: Final = 256 << 20  # bytes of a space, unpacked
_MOST_PARAMETERS: Final = 512
_MOST_VALUES: Final = 1 << 16  # of one parameter
_MOST_FIGURES: Final = 1024
_LONGEST_ERROR: Final = 8192
_LONGEST_EVIDENCE: Final = 1 << 20  # packed; what is longer is not kept
_SESSION: Final = re.compile(r"[0-9a-f]{32}\Z")
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]{1,200}\Z")
_VERBS: Final = ("open", "measure", "features", "restate", "conclude", "close")
_DTYPES: Final = ("|u1", "<u2", "<u4", "<u8")
_STATES: Final = {state.value: state for state in State}
_DEPTHS: Final = {depth.value: depth for depth in Depth}


@dataclass(frozen=True, slots=True)
class SessionWork:
    """What a worker needs of a session before it can measure rows of it."""

    session: str  # 32 hexadecimal digits, drawn for it
    bundle: Bundle
    space: SearchSpace
    repeats: int = 1
    condition: str = ""  # that figures are stated for, where the user chose one


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a worker: the fields of its verb are set, the others are empty."""

    do: str
    session: str
    number: int
    rows: tuple[int, ...] = ()
    depth: Depth = Depth.ENERGY
    work: SessionWork | None = None  # of 'open'
    measurements: tuple[Mapping[str, Any], ...] = ()  # of 'restate', unread: the session's space is needed for that


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the runner beside a board can do for a session."""

    timed: frozenset[str]
    features: tuple[str, ...]
    batch: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A worker's reply to a request: that it has begun, a measured row, the answer, or what failed."""

    number: int
    begun: bool = False
    measured: Any = None  # unread
    answer: Mapping[str, Any] | None = None  # unread
    error: SensorError | None = None


class UnknownSession(SensorError):
    """The session is not open on the worker, and has to be opened there."""


class BoardBusy(SensorError):
    """Another session has the board: the request is to be sent again."""


_FLAGS: Final[Mapping[str, type[SensorError]]] = {"unknown_session": UnknownSession, "busy": BoardBusy}


# --- requests ---------------------------------------------------------------------------------------------------------


def request_line(request: Request) -> bytes:
    """As it is sent."""
    message: dict[str, Any] = {"do": request.do, "session": request.session, "number": request.number}
    if request.work is not None:
        message |= _work_message(request.work)
    if request.rows:
        message |= {"rows": list(request.rows), "depth": request.depth.value}
    if request.measurements:
        message["measurements"] = list(request.measurements)
    return line_of(message)


def _work_message(work: SessionWork) -> dict[str, Any]:
    """The session, as a request to open describes it."""
    described, codes = space_to_row(work.space)
    return {
        **bundle_message(work.bundle),
        "space": described,
        "codes": base64.b64encode(codes).decode("ascii"),
        "repeats": work.repeats,
        "condition": work.condition,
    }


def parse_request(line: bytes) -> Request:
    """Parse a request. Raises Garbled."""
    message = parse_line(line, LONGEST_REQUEST)
    do, session, number = message.get("do"), message.get("session"), whole_of(message.get("number"), 1 << 62)
    if do not in _VERBS or not isinstance(session, str) or not _SESSION.match(session):
        raise Garbled("a request for what nobody does")
    if do == "open":
        return Request(do, session, number, work=_parse_work(session, message))
    if do == "restate":
        measurements = [object_of(value) for value in list_of(message.get("measurements"), MOST_ROWS)]
        return Request(do, session, number, measurements=tuple(measurements))
    if do in ("conclude", "close"):
        return Request(do, session, number)
    rows = tuple(whole_of(row, _MOST_ROW) for row in list_of(message.get("rows"), MOST_ROWS))
    return Request(do, session, number, rows, _one_of(_DEPTHS, message.get("depth")))


def _parse_work(session: str, message: Mapping[str, Any]) -> SessionWork:
    """What a request to open has of the session. Raises Garbled."""
    repeats = whole_of(message.get("repeats"), 1 << 20)
    if repeats < 1:
        raise Garbled("a number of repeats that is none")
    bundle = parse_bundle({name: message.get(name) for name in ("specification", "files")})
    space = _parse_space(message.get("space"), message.get("codes"))
    return SessionWork(session, bundle, space, repeats, text_of(message.get("condition")))


def _parse_space(described: Any, codes: Any) -> SearchSpace:
    """A space whose codes are those of its parameters' values. Raises Garbled."""
    if not isinstance(described, str) or not isinstance(codes, str):
        raise Garbled("no search space")
    try:
        loaded = json.loads(described)
        packed = base64.b64decode(codes, validate=True)
    except (ValueError, RecursionError, binascii.Error):
        raise Garbled("a search space that is none") from None
    document = object_of(loaded)
    parameters = tuple(_parse_parameter(item) for item in list_of(document.get("parameters"), _MOST_PARAMETERS))
    rows, columns = (whole_of(value, _MOST_ROW) for value in list_of(document.get("shape"), 2, exactly=True))
    if document.get("dtype") not in _DTYPES or columns != len(parameters) or not parameters:
        raise Garbled("a search space of another shape than it says")
    dtype = np.dtype(document["dtype"])
    size = rows * columns * dtype.itemsize
    if size > _MOST_CODES:
        raise Garbled("a search space that is too large")
    try:
        unpacking = zlib.decompressobj()
        unpacked = unpacking.decompress(packed, size + 1)
    except zlib.error:
        raise Garbled("a search space that is damaged") from None
    if len(unpacked) != size:
        raise Garbled("a search space of another size than it says")
    table = np.frombuffer(unpacked, dtype=dtype).reshape(rows, columns)
    if rows and any(int(table[:, index].max()) >= len(parameter.values) for index, parameter in enumerate(parameters)):
        raise Garbled("a search space with values that it does not name")
    return SearchSpace(parameters, table, cartesian=rows)


def _parse_parameter(described: Any) -> Parameter:
    name, values, setting = list_of(described, 3, exactly=True)
    if not isinstance(name, str) or not _NAME.match(name) or not isinstance(setting, bool):
        raise Garbled("a parameter that is none")
    kept = tuple(list_of(values, _MOST_VALUES))
    if not kept or not all(_is_value(value) for value in kept):
        raise Garbled("a parameter with values that are none")
    return Parameter(name, kept, setting)


def _is_value(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= 4096
    return isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))


# --- answers ----------------------------------------------------------------------------------------------------------


def measured_line(number: int, measurement: Measurement) -> bytes:
    """A row that is known, as it is sent."""
    return line_of({"number": number, "measured": measurement_document(measurement)})


def answer_line(number: int, answer: Mapping[str, Any]) -> bytes:
    """That all is done, as it is sent."""
    return line_of({"number": number, "answer": answer})


def begun_line(number: int) -> bytes:
    """That its turn has come, as it is sent."""
    return line_of({"number": number, "begun": True})


def error_line(number: int, error: Exception) -> bytes:
    """What failed, as it is sent."""
    flags = {flag: True for flag, kind in _FLAGS.items() if isinstance(error, kind)}
    return line_of({"number": number, "error": {**error_document(error), **flags}})


def parse_answer(line: bytes, where: str) -> Answer:
    """Parse a reply. Raises Garbled."""
    message = parse_line(line, LONGEST_ANSWER)
    number = whole_of(message.get("number"), 1 << 62)
    if "error" in message:
        failure = object_of(message["error"])
        kind, what, remedy = parse_error(failure)
        flagged = next((raised for flag, raised in _FLAGS.items() if failure.get(flag) is True), None)
        error = sensor_error(kind, what, where, remedy) if flagged is None else flagged(what, where, remedy)
        return Answer(number, error=error)
    if message.get("begun") is True:
        return Answer(number, begun=True)
    if "answer" in message:
        return Answer(number, answer=object_of(message["answer"]))
    if "measured" in message:
        return Answer(number, measured=object_of(message["measured"]))
    raise Garbled("an answer to nothing")


def abilities_document(abilities: Abilities) -> dict[str, Any]:
    """The answer to 'open'."""
    return {
        "timed": sorted(abilities.timed),
        "features": list(abilities.features),
        "batch": abilities.batch,
    }


def parse_abilities(answer: Mapping[str, Any]) -> Abilities:
    """The answer to 'open'. Raises Garbled."""
    batch = whole_of(answer.get("batch"), 1 << 16)
    if not batch:
        raise Garbled("a batch of nothing")
    timed, features = (_names(answer.get(name)) for name in ("timed", "features"))
    return Abilities(frozenset(timed), features, batch)


def parse_features(answer: Mapping[str, Any], rows: int, features: int) -> list[list[float]]:
    """The answer to 'features': a list for each row, NaN if unknown. Raises Garbled."""
    listed = list_of(answer.get("features"), rows, exactly=True)
    return [[_or_nan(value) for value in list_of(row, features, exactly=True)] for row in listed]


def parse_origin(answer: Mapping[str, Any]) -> dict[str, str]:
    """The answer to 'conclude': how a board's figures are stated. Raises Garbled."""
    origin = object_of(answer.get("origin"))
    if not all(isinstance(text, str) and len(text) <= 1 << 16 and _NAME.match(name) for name, text in origin.items()):
        raise Garbled("an origin that is none")
    return {name: visible(text) for name, text in origin.items()}


# --- measurements -----------------------------------------------------------------------------------------------------


def measurement_document(measurement: Measurement) -> dict[str, Any]:
    """As it is sent, without its configuration."""
    evidence = measurement.evidence if len(measurement.evidence) < _LONGEST_EVIDENCE else b""
    return {
        "row": int(measurement.row),
        "state": measurement.state.value,
        "depth": measurement.depth.value,
        "values": {name: _or_null(value) for name, value in measurement.values.items()},
        "intervals": {name: [_or_null(end) for end in ends] for name, ends in measurement.intervals.items()},
        "error": measurement.error[:_LONGEST_ERROR],
        "message": measurement.message[:_LONGEST_ERROR],
        "window_ns": list(measurement.window_ns) if measurement.window_ns else None,
        "observed_clock_mhz": _or_null(measurement.observed_clock_mhz),
        "event_reasons": int(measurement.event_reasons),
        "power_source": measurement.power_source,
        "source": measurement.source,
        "timestamp_s": _or_null(measurement.timestamp_s),
        "cost_s": _or_null(measurement.cost_s),
        "evidence": base64.b64encode(evidence).decode(),
    }


def parse_measurement(sent: Any, space: SearchSpace, board: str, source: str) -> Measurement:
    """A measurement of a row of this space, made by this board. Raises Garbled."""
    document = object_of(sent)
    row = whole_of(document.get("row"), space.size)
    if document.get("source") != source:
        raise Garbled("a measurement of another kind of board")
    window = document.get("window_ns")
    values = object_of(document.get("values"), _MOST_FIGURES)
    intervals = object_of(document.get("intervals"), _MOST_FIGURES)
    if not all(_NAME.match(name) for name in (*values, *intervals)):
        raise Garbled("a figure with a name that is none")
    return Measurement(
        row=row,
        configuration=space.configuration(row),
        state=_one_of(_STATES, document.get("state")),
        values={name: _or_nan(value) for name, value in values.items()},
        intervals={name: _pair(ends) for name, ends in intervals.items()},
        error=_lines(document.get("error")),
        message=_lines(document.get("message")),
        window_ns=None if window is None else _window(window),
        observed_clock_mhz=_or_nan(document.get("observed_clock_mhz")),
        event_reasons=whole_of(document.get("event_reasons"), 1 << 62),
        power_source=text_of(document.get("power_source")),
        source=source,
        timestamp_s=_or_nan(document.get("timestamp_s")),
        cost_s=number_of(document.get("cost_s")),
        depth=_one_of(_DEPTHS, document.get("depth")),
        board=board,
        evidence=_evidence(document.get("evidence")),
    )


# --- pieces -----------------------------------------------------------------------------------------------------------


def _or_null(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _or_nan(value: Any) -> float:
    return math.nan if value is None else number_of(value)


def _pair(ends: Any) -> tuple[float, float]:
    low, high = (_or_nan(end) for end in list_of(ends, 2, exactly=True))
    return low, high


def _evidence(sent: Any) -> bytes:
    """Samples that can be read, packed; empty where there are none. Raises Garbled."""
    try:
        packed = base64.b64decode(sent or b"", validate=True)
        return packed if not packed or unpack(packed) else b""
    except (ValueError, TypeError):
        raise Garbled("samples that are none") from None


def _window(ends: Any) -> tuple[int, int]:
    start, end = (whole_of(value, 1 << 62) for value in list_of(ends, 2, exactly=True))
    return start, end


def _names(listed: Any) -> tuple[str, ...]:
    names = list_of(listed, _MOST_FIGURES)
    if not all(isinstance(name, str) and _NAME.match(name) for name in names):
        raise Garbled("a figure with a name that is none")
    return tuple(names)


def _lines(text: Any) -> str:
    """The message of a compiler or driver: its lines, without any other control character."""
    if not isinstance(text, str):
        raise Garbled("a text that is none")
    return "\n".join(visible(line) for line in text[:_LONGEST_ERROR].splitlines())


def _one_of(choices: Mapping[str, _T], word: Any) -> _T:
    if not isinstance(word, str) or word not in choices:
        raise Garbled("a word that is none of those known")
    return choices[word]


def rows_of(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Measurements as 'restate' sends them."""
    return [measurement_document(measurement) for measurement in measurements]
