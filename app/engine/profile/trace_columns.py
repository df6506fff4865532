"""`TraceColumns`: what was read of a trace, row by row, and the `ProgramTrace` that it makes.

Which range launched a slice is known by its launch (by the correlation of both): the innermost range open on the
launching thread, or, of a thread without ranges such as autograd's, on the thread that has most of them. Where there
are no launches, the ranges that a profiler laid over the stream serve, and what other threads launched belongs to the
range before it on the stream.
"""

from __future__ import annotations

from array import array
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from .program_trace import Ints, OperatorCall, ProgramTrace, Times

_SINCE_EPOCH_NS: Final = 10**18  # September 2001
_DEEPEST: Final = 64  # ranges within each other
_TOUCH_NS: Final = 500  # by which ranges that follow one another may overlap: times are rounded
_BUFFER_NS: Final = 50_000_000  # by which times go back from one of the profiler's buffers to the next, at least


class TraceColumns:
    """The rows of a trace, to be appended to. Times in ns; -1 stands for what is not known."""

    def __init__(self) -> None:
        self.events = 0  # that were read
        self.skipped = 0  # of these, without a name or a time
        self.base_ns = 0  # added to every time
        self.boards: dict[int, str] = {}
        self.names: dict[str, int] = {}
        self.calls: dict[OperatorCall, int] = {}
        self.slices = array("q")  # rows of kind, device, stream, name, start, duration, bytes, correlation, external
        self.launches = array("q")  # of correlation, thread, start
        self.operators = array("q")  # of external, call
        self.host = array("q")  # of lane, name, start, duration, external
        self.on_stream = array("q")  # the same

    def interned(self, name: str) -> int:
        """The number of a name."""
        return self.names.setdefault(name, len(self.names))

    def finish(self, title: str, where: str, remedy: str, device: int | None, cut: str = "") -> ProgramTrace:
        """Put the rows together, of one board, by default the busiest; `cut` says why the trace is not complete.

        Raises InputError with `remedy` where nothing ran on a board.
        """
        slices, notes = _table(self.slices, 9), []
        if not len(slices):
            what = "the trace holds no kernels: the profiler did not watch a GPU"
            raise InputError(f"{what}, and {cut}" if cut else what, where, remedy)
        devices, durations = slices[:, 1], slices[:, 5]
        numbers = np.unique(devices).tolist()
        if device is None:
            device = max(numbers, key=lambda number: int(durations[devices == number].sum()))
            if len(numbers) > 1:
                notes.append(f"the trace holds boards {_listed(numbers)}; this is the busiest, {device}")
        elif device not in numbers:
            raise InputError(f"nothing ran on board {device}", where, f"the trace holds boards {_listed(numbers)}")
        slices = slices[devices == device]
        if cut:
            first, last = _complete(slices[:, 4])
            slices = slices[(slices[:, 4] >= first) & (slices[:, 4] <= last)]
            notes.append(
                f"the trace is not complete ({cut}): it is read as far as it goes, {self.events:,} events, of which"
                f" those of {(last - first) / 1e9:.3g} s count, in which nothing is missing"
            )
        if self.skipped:
            notes.append(f"{self.skipped:,} events have no name or no time and are left out")
        slices = slices[np.argsort(slices[:, 4], kind="stable")]
        kind, _, stream, name, start, duration, moved, _, external = slices.T.copy()
        ranges = _Ranges(_table(self.host, 5), _table(self.on_stream, 5))
        calls = _table(self.operators, 2)
        return ProgramTrace(
            title=title,
            device=device,
            boards=self.boards,
            on_wall=bool(start[0] + self.base_ns > _SINCE_EPOCH_NS),
            names=tuple(self.names),
            operators=tuple(self.calls),
            paths=tuple(ranges.paths(tuple(self.names))),
            kind=kind.astype(np.uint8),
            name=name.astype(np.int32),
            operator=looked_up(external, calls[:, 0], calls[:, 1]),
            stream=stream.astype(np.int32),
            start_ns=start + self.base_ns,
            duration_ns=duration,
            moved_bytes=moved,
            instance=self._instances(slices, ranges, notes),
            range_path=ranges.path,
            range_parent=ranges.parent,
            range_start_ns=ranges.begin + self.base_ns,
            range_duration_ns=ranges.end - ranges.begin,
            notes=tuple(notes),
        )

    def _instances(self, slices: Times, ranges: _Ranges, notes: list[str]) -> Ints:
        """The innermost range of each slice."""
        launches = _table(self.launches, 3)
        launch = looked_up(slices[:, 7], launches[:, 0], np.arange(len(launches)))
        known = launch >= 0
        instance = np.full(len(slices), -1, np.int32)
        instance[known] = ranges.open_at(*launches[launch[known], 1:].T)
        if not known.all() and len(self.on_stream):
            rest = slices[~known]
            instance[~known], by_order = ranges.on_stream(rest[:, 2], rest[:, 4], rest[:, 8])
            if by_order:
                notes.append(
                    f"the trace holds no launches: {by_order:,} slices that another thread launched, as autograd's"
                    " does, are counted with the range before them on the stream"
                )
        return instance


class _Ranges:
    """The ranges of all threads, nested; those that only the stream shows come behind those of the host."""

    def __init__(self, host: Times, on_stream: Times) -> None:
        self._stream_lane, _, self._stream_begin, lasts, self._stream_external = on_stream.T
        self._stream_end = self._stream_begin + lasts
        of_host = looked_up(self._stream_external, host[:, 4], np.arange(len(host)))
        alone = np.flatnonzero(of_host < 0)  # their host's range is not in the trace
        of_host[alone] = len(host) + np.arange(len(alone))
        self._instance_of = of_host
        every = np.concatenate((host, on_stream[alone]))
        self.begin: Times = every[:, 2]
        self.end: Times = every[:, 2] + every[:, 3]
        name, lane = every[:, 1].tolist(), every[:, 0].copy()
        lane[len(host) :] = -1 - lane[len(host) :]
        self.parent: Ints = np.full(len(lane), -1, np.int32)
        self._lanes: dict[int, tuple[Times, Ints]] = {}
        for number in np.unique(lane).tolist():
            rows = np.flatnonzero(lane == number)
            parents, edges, inner = _nested(self.begin[rows], self.end[rows])
            self.parent[rows] = _through(rows, parents)
            self._lanes[number] = edges, _through(rows, inner)
        threads = [number for number in self._lanes if number >= 0]
        self._main = max(threads, key=lambda number: np.count_nonzero(lane == number), default=-1)
        self.path: Ints = np.full(len(lane), -1, np.int32)
        self._known: dict[tuple[int, int], int] = {}  # (path of the parent, name) -> path
        for row in np.lexsort((-self.end, self.begin)).tolist():  # a parent comes before what is in it
            above = int(self.parent[row])
            key = -1 if above < 0 else int(self.path[above]), name[row]
            self.path[row] = self._known.setdefault(key, len(self._known))

    def paths(self, names: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The names of each path."""
        paths: list[tuple[str, ...]] = []
        for above, name in self._known:
            paths.append((*(paths[above] if above >= 0 else ()), names[name]))
        return paths

    def open_at(self, threads: Times, times: Times) -> Ints:
        """The innermost range that was open when something was launched from a thread."""
        found = np.full(len(times), -1, np.int32)
        for thread in np.unique(threads).tolist():
            rows = np.flatnonzero(threads == thread)
            if thread in self._lanes:
                found[rows] = _piece(*self._lanes[thread], times[rows])
        left = np.flatnonzero(found < 0)
        if self._main >= 0 and len(left):
            found[left] = _piece(*self._lanes[self._main], times[left])
        return found

    def on_stream(self, streams: Times, times: Times, external: Times) -> tuple[Ints, int]:
        """The range laid over each slice of a stream, and how many of them have it only by their order."""
        found, by_order = np.full(len(times), -1, np.int32), 0
        for stream in np.unique(streams).tolist():
            over = np.flatnonzero(self._stream_lane == stream)
            if not len(over):
                continue
            over = over[np.argsort(self._stream_begin[over], kind="stable")]
            rows = np.flatnonzero(streams == stream)
            _, edges, inner = _nested(self._stream_begin[over], self._stream_end[over])
            found[rows] = _through(self._instance_of[over], _piece(edges, inner, times[rows]))
            last = np.searchsorted(self._stream_begin[over], times[rows], "right") - 1
            own = self._stream_external[over]
            following = np.append(own[1:], np.iinfo(np.int64).max)
            # ids rise within a thread: one that is not between two ranges of the main thread is another thread's
            elsewhere = (external[rows] >= 0) & ((external[rows] < own[last]) | (external[rows] >= following[last]))
            ordered = (found[rows] < 0) & (last >= 0) & elsewhere
            found[rows[ordered]] = self._instance_of[over][last[ordered]]
            by_order += int(ordered.sum())
        return found, by_order


def _table(values: array[int], columns: int) -> Times:
    """The rows that were appended one behind the other."""
    return np.array(values, np.int64).reshape(-1, columns)


def _complete(starts: Times) -> tuple[int, int]:
    """The longest span in which a file that is cut off misses nothing, from the starts of slices in the file's order.

    The profiler writes buffer by buffer, the latest first, those of different kinds in turn: where the file ends, some
    kinds go back further than others. Nothing is missing where as many buffers overlap as do for most of the time.
    """
    jumps = np.flatnonzero(np.diff(starts) < -_BUFFER_NS) + 1
    if not len(jumps):
        return int(starts.min()), int(starts.max())
    begins, ends = starts[np.append(0, jumps[:-1])], starts[jumps - 1]  # the last buffer is cut off
    edges = np.sort(np.concatenate((begins, ends)))
    over = np.searchsorted(np.sort(begins), edges, "right") - np.searchsorted(np.sort(ends), edges, "right")
    lasts = np.append(np.diff(edges), 0)
    usual = max(np.unique(over[over > 0]).tolist(), key=lambda count: int(lasts[over == count].sum()))
    whole = (over >= usual) | (lasts < _BUFFER_NS)  # between two buffers of a kind a moment passes
    bounds = np.flatnonzero(np.diff(np.concatenate(([False], whole, [False])).astype(int)))
    spans = [(int(edges[a]), int(edges[min(b, len(edges) - 1)])) for a, b in bounds.reshape(-1, 2).tolist()]
    return max(spans, key=lambda span: span[1] - span[0])


def _nested(begin: Times, end: Times) -> tuple[Ints, Times, Ints]:
    """The parent of each range of one lane, and the innermost range from each of the `edges` on."""
    parent = np.full(len(begin), -1, np.int32)
    begins, ends = begin.tolist(), end.tolist()
    edges, inner = array("q"), array("i")
    stack: list[int] = []
    for row in [*np.lexsort((-end, begin)).tolist(), -1]:
        while stack and (row < 0 or ends[stack[-1]] <= begins[row] + _TOUCH_NS):
            edges.append(ends[stack.pop()])
            inner.append(stack[-1] if stack else -1)
        if row < 0 or len(stack) >= _DEEPEST:
            continue
        if stack:
            parent[row] = stack[-1]
            ends[row] = min(ends[row], ends[stack[-1]])  # ranges that overlap without being nested
        stack.append(row)
        edges.append(begins[row])
        inner.append(row)
    return parent, np.array(edges, np.int64), np.array(inner, np.int32)


def _piece(edges: Times, inner: Ints, times: Times) -> Ints:
    """The innermost range at each time."""
    at = np.searchsorted(edges, times, "right") - 1
    return np.where(at >= 0, inner[at], -1).astype(np.int32)


def _through(rows: npt.NDArray[Any], places: Ints) -> Ints:
    """`rows[places]`, where -1 stays."""
    return np.where(places >= 0, rows[places], -1).astype(np.int32)


def looked_up(keys: Times, known: Times, values: Times) -> Ints:
    """The value of each key, -1 of one that is not known or negative."""
    if not len(known):
        return np.full(len(keys), -1, np.int32)
    order = np.argsort(known, kind="stable")
    ranked = known[order]
    at = np.minimum(np.searchsorted(ranked, keys), len(ranked) - 1)
    return np.where((keys >= 0) & (ranked[at] == keys), values[order[at]], -1).astype(np.int32)


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
