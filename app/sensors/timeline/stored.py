"""A recording in the columnar form as a trace: times, extremes and sums in memory, values read as they are asked for.

Values are read with `pread`: a map of the file would end the process where another one cuts the file off, and its pages
would count as this process's memory.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...base.errors import InputError
from ..recorded.columns import (
    FACTOR,
    LOOKED_AT,
    SUMMED,
    TOP,
    ColumnsReader,
    Floats,
    StoredBlock,
    Times,
    damaged,
    open_columns,
    summarise,
    usual_gap_ns,
)
from ..recorded.header import REMEDY, Facts, Mark, Recording, recording_of
from ..trace.ring import LEVELS, Ring
from ..trace.trace import Trace

_KEPT_GAPS: Final = 1000
_NO_TIMES: Final[Times] = np.empty(0, np.int64)
_NOTHING: Final[np.ndarray[Any, Any]] = np.empty(0)


class StoredRing(Ring):
    """Rows of a file: times, extremes and sums in memory, values read as they are asked for. It does not grow."""

    def __init__(self, reader: ColumnsReader, kind: bytes) -> None:
        """Raises InputError where time does not go forward."""
        count, columns = reader.count(kind), len(reader.channels(kind))
        self.columns, self.count, self.gap_ns = columns, count, 0
        self.gaps = ()
        self._reader = reader
        self._blocks: list[StoredBlock] = []  # without what is kept below
        self._appending = threading.RLock()
        self._shown = max(1, count)
        self.length = max(1, -(-count // TOP)) * TOP
        self._time = np.zeros(self.length, np.int64)
        sizes = [self.length // FACTOR**level for level in range(1, LEVELS + 1)]
        self._low = [np.full((columns, size), np.nan, np.float32) for size in sizes]
        self._high = [np.full((columns, size), np.nan, np.float32) for size in sizes]
        self._integral, self._covered_s = np.zeros((2, columns, self.length // SUMMED))
        self._known = np.zeros((columns, self.length // SUMMED), np.int16)

        self.energy = np.full(self.length if reader.counts_energy(kind) else 0, np.nan)
        for number, block in enumerate(reader.blocks(kind, count)):
            self._put(number, block)
        if not self._find_gaps():
            raise damaged(reader.path, "time does not go forward")

    def _put(self, number: int, block: StoredBlock) -> None:
        head, times, rows = block.head, block.times, len(block.times)
        self._blocks.append(replace(block, head=_NOTHING, times=_NO_TIMES))
        self._time[number * TOP : number * TOP + rows] = times
        if len(self.energy):
            self.energy[number * TOP : number * TOP + rows] = head["energy"][:rows]
        if rows < TOP:
            values = self.part(range(self.columns), number * TOP, number * TOP + rows)
            before = int(self._time[number * TOP - 1]) if number else None
            summarise(head, times, values, before, usual_gap_ns(times))
        for level in (1, 2):
            groups, filled = TOP // FACTOR**level, rows // FACTOR**level
            there = slice(number * groups, number * groups + filled)
            self._low[level - 1][:, there] = head[f"low{level}"][:, :filled]
            self._high[level - 1][:, there] = head[f"high{level}"][:, :filled]
        self._low[2][:, number] = np.fmin.reduce(head["low2"], axis=1)
        self._high[2][:, number] = np.fmax.reduce(head["high2"], axis=1)
        sums = slice(number * TOP // SUMMED, (number + 1) * TOP // SUMMED)
        self._integral[:, sums], self._covered_s[:, sums] = head["integral"], head["covered"]
        self._known[:, sums] = head["known"]

    @property
    def all_times(self) -> Times:
        """Of every row: no copy."""
        return self._time[: self.count]

    def _find_gaps(self) -> bool:
        """False if time does not go forward."""
        times = self.all_times
        self.gap_ns = int(usual_gap_ns(times))
        gaps, rises = [], True
        for first in range(0, self.count, LOOKED_AT):
            steps = np.diff(times[first : first + LOOKED_AT + 1])
            gaps.append(first + np.flatnonzero(steps > self.gap_ns))
            rises = rises and bool((steps > 0).all())
        places = np.concatenate(gaps) if gaps else np.empty(0, np.int64)
        if len(places) > _KEPT_GAPS:
            lengths = times[places + 1] - times[places]
            places = np.sort(places[np.argsort(lengths)[-_KEPT_GAPS:]])
        self.gaps = tuple(zip(times[places].tolist(), times[places + 1].tolist(), strict=True))
        return rises

    def part(self, columns: Sequence[int], start: int, stop: int) -> Floats:
        out = np.full((len(columns), max(0, stop - start)), np.nan, np.float32)
        for number in range(start // TOP, -(-stop // TOP)) if stop > start else ():
            first, last = max(start, number * TOP), min(stop, (number + 1) * TOP)
            for place, column in enumerate(columns):
                read = self._reader.values(self._blocks[number], column, first - number * TOP, last - number * TOP)
                out[place, first - start : last - start] = read
        return out

    def column(self, column: int, start: int, stop: int) -> Floats:
        column_of: Floats = self.part([column], start, stop)[0]
        return column_of

    def row(self, row: int) -> Floats:
        row_of: Floats = self.part(range(self.columns), row, row + 1)[:, 0]
        return row_of


class StoredTrace(Trace):
    """A whole recording as a trace; times are ns after its beginning."""

    def __init__(self, facts: Facts, rows: StoredRing, samples: StoredRing) -> None:
        super().__init__(facts.channels, rate_hz=1.0, span_s=1.0)
        self._rows, self._samples, self._energy = rows, samples, rows.energy
        if self._reasons_index is not None:
            self._find_changes(rows, rows.column(self._column["event_reasons"], 0, rows.count))

    def _find_changes(self, rows: StoredRing, reasons: Floats) -> None:
        np.nan_to_num(reasons, copy=False)
        bits = reasons.astype(np.int32)
        times = rows.all_times
        places = np.flatnonzero(np.diff(bits, prepend=np.int32(0)))
        silent = np.array([before for before, _ in rows.gaps], np.int64)
        after = np.searchsorted(times, silent, "right")  # what was set before a gap is not known in it
        silent, after = silent[bits[after - 1] != 0], after[bits[after - 1] != 0]
        again = after[bits[after] == bits[after - 1]]
        stamps = np.concatenate((times[places], silent + 1, times[again]))
        values = np.concatenate((bits[places], np.zeros(len(silent), np.int32), bits[again]))
        order = np.argsort(stamps, kind="stable")
        self._changes = Ring(1, max(1, len(order)), 1 << 62)
        for stamp, value in zip(stamps[order].tolist(), values[order].tolist(), strict=True):
            self._changes.append(stamp, (value,))


@dataclass(frozen=True, slots=True)
class Stored:
    """An open file. It can be read as long as this is kept, also when it was renamed or removed."""

    path: Path
    facts: Facts
    trace: StoredTrace
    marks: tuple[Mark, ...]

    @property
    def end_ns(self) -> int:
        """The time of its last reading or sample."""
        samples = self.trace.power_samples(self.trace.last_ns, 1 << 62)[0]
        return max(self.trace.last_ns, int(samples[-1]) if len(samples) else 0)


def open_stored(path: Path) -> Stored:
    """Open a file, one that is being written as far as it is. Raises InputError for one that is none, or damaged."""
    reader = open_columns(path)
    rows = StoredRing(reader, b"r")
    if rows.count < 2:
        raise InputError("there are fewer than two readings", str(path), REMEDY)
    return Stored(path, reader.facts, StoredTrace(reader.facts, rows, StoredRing(reader, b"p")), reader.marks)


def read_part(stored: Stored, start_ns: int, end_ns: int) -> Recording:
    """A part of a recording in memory; its times count from the beginning of the whole."""
    trace, facts = stored.trace, stored.facts
    held = trace.columns(start_ns, end_ns)
    values = np.full((len(held["time_ns"]), len(facts.channels)), np.nan, order="F")
    for place, described in enumerate(facts.channels):
        if described.name in held:
            values[:, place] = held[described.name]
    sample_ns, sample_w = trace.power_samples(start_ns, end_ns)
    return recording_of(facts, held["time_ns"], values, sample_ns, sample_w.astype(np.float64), stored.marks)
