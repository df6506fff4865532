"""Reading Chrome traces as PyTorch's profiler writes them: `export_chrome_trace("trace.json.gz")`, of CUDA and ROCm.

The file is read event by event, so that only columns of numbers and the distinct names are kept. A file that is cut off
or damaged is read as far as it goes.

Launches are the events of `cuda_runtime`; the ranges that the profiler lays over a stream are those of
`gpu_user_annotation`.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from ...base.errors import InputError
from ...base.files import text_chunks, title_of
from ..formats.json_stream import JsonStream
from .program_trace import COPY, KERNEL, SET, OperatorCall, ProgramTrace
from .trace_columns import TraceColumns

MAXIMUM_BYTES: Final = 2 * 2**30  # of text
_LATEST_US: Final = 4e15  # since 1970: the year 2096
_COUNTED: Final = re.compile(r"\s*#\s*\d+$")  # ProfilerStep#17
_REMEDY: Final = "export it from torch.profiler with activities=[CPU, CUDA], by export_chrome_trace(FILE)"

Event = Mapping[str, Any]


def read_chrome_trace(path: Path, device: int | None = None) -> ProgramTrace:
    """Read a trace, gzipped or plain; of several boards that of number `device`, by default the busiest.

    Raises InputError where the file cannot be read, is no trace, or holds nothing that ran on that board.
    """
    columns, where = TraceColumns(), str(path)
    reader = _Reader(columns)
    stream = JsonStream(where, ("traceEvents",))
    cut = ""
    try:
        for text in text_chunks(path, MAXIMUM_BYTES):
            stream.feed(text)
            for inside, name, value in stream.members():
                if inside:
                    reader.take(value)
                else:
                    reader.header(name, value)
        if not stream.closed:
            cut = "the file breaks off"
    except InputError as error:
        if not columns.events:
            raise
        cut = error.what
    if stream.opened != "traceEvents":
        raise InputError("this is no trace: it holds no list 'traceEvents'", where, _REMEDY)
    return columns.finish(title_of(path), where, _REMEDY, device, cut)


class _Reader:
    """Takes the events one by one."""

    def __init__(self, columns: TraceColumns) -> None:
        self._into = columns
        self._threads: dict[object, int] = {}
        kinds = (
            (partial(self._slice, KERNEL), ("kernel",)),
            (partial(self._slice, COPY), ("gpu_memcpy", "memcpy")),
            (partial(self._slice, SET), ("gpu_memset", "memset")),
            (self._launch, ("cuda_runtime", "cuda_driver", "runtime")),
            (self._call, ("cpu_op", "operator")),
            (partial(self._range, columns.host), ("user_annotation",)),
            (partial(self._range, columns.on_stream), ("gpu_user_annotation",)),
        )
        self._takers: dict[object, Callable[[Event, Event, int, int], None]] = {
            spelling: taker for taker, names in kinds for name in names for spelling in (name, name.capitalize())
        }

    def header(self, name: str, value: object) -> None:
        """A value beside the events."""
        if name == "baseTimeNanoseconds" and type(value) is int and 0 <= value < 2**62:
            self._into.base_ns = value
        elif name == "deviceProperties" and isinstance(value, list):
            for board in value:
                if isinstance(board, dict) and type(board.get("id")) is int:
                    self._into.boards[board["id"]] = str(board.get("name", ""))

    def take(self, event: object) -> None:
        """One event; of a kind that is not needed it is passed over."""
        self._into.events += 1
        if not isinstance(event, dict) or event.get("ph") != "X":
            return
        kind = event.get("cat")
        taker = self._takers.get(kind) if isinstance(kind, str) else None
        if taker is None:
            return
        start, length, given = _nanoseconds(event.get("ts")), _nanoseconds(event.get("dur", 0)), event.get("args")
        if start is None or length is None or not isinstance(event.get("name"), str):
            self._into.skipped += 1
            return
        taker(event, given if isinstance(given, dict) else {}, start, length)

    # --- kinds of events ------------------------------------------------------------------------------------------

    def _slice(self, kind: int, event: Event, given: Event, start: int, duration: int) -> None:
        device = _number(given.get("device", event.get("pid", 0)), 2**31)
        stream = _number(given.get("stream", event.get("tid")), 2**31)
        moved, name = max(_number(given.get("bytes")), 0), self._into.interned(event["name"])
        numbers = _number(given.get("correlation")), _number(given.get("External id"))
        self._into.slices.extend((kind, device, stream, name, start, duration, moved, *numbers))

    def _launch(self, event: Event, given: Event, start: int, duration: int) -> None:
        correlation = _number(given.get("correlation"))
        if correlation >= 0:
            self._into.launches.extend((correlation, self._thread(event), start))

    def _call(self, event: Event, given: Event, start: int, duration: int) -> None:
        external = _number(given.get("External id"))
        if external < 0:
            return
        dims = given.get("Input Dims", given.get("Input dims"))
        call = OperatorCall(
            event["name"],
            tuple(_dims(item) for item in dims) if isinstance(dims, list) else (),
            _texts(given.get("Input type")) if dims else (),
            _texts(given.get("Concrete Inputs")) if "conv" in event["name"] else (),
            str(given.get("kernel_backend", "")),
        )
        self._into.operators.extend((external, self._into.calls.setdefault(call, len(self._into.calls))))

    def _range(self, into: array[int], event: Event, given: Event, start: int, duration: int) -> None:
        lane = self._thread(event) if into is self._into.host else _number(event.get("tid"), 2**31)
        name = self._into.interned(_COUNTED.sub("", event["name"]) or event["name"])
        into.extend((lane, name, start, duration, _number(given.get("External id"))))

    def _thread(self, event: Event) -> int:
        return self._threads.setdefault(str((event.get("pid"), event.get("tid"))), len(self._threads))


def _nanoseconds(value: Any) -> int | None:
    """Of a time in microseconds; None of anything else."""
    return round(value * 1000) if type(value) in (int, float) and 0 <= value < _LATEST_US else None


def _number(value: object, below: int = 2**62) -> int:
    """A whole number, also written as text; -1 for anything else."""
    if type(value) is str and value.isascii() and value.isdigit() and len(value) < 19:
        value = int(value)
    if type(value) is float and math.isfinite(value) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < below else -1


def _dims(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > 16:
        return ()
    dims = tuple(_number(item) for item in value)
    return dims if min(dims, default=0) >= 0 else ()


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
