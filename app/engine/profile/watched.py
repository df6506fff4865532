"""What processes wrote of their activity while they were watched (`injected/wattridge_watcher.py`), as a trace.

Stretches in which nothing was watched appear in the trace as slices of their own name: their joules are known together,
and what ran in them is not.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from ...base.errors import InputError
from .program_trace import KERNEL, ProgramTrace, Times
from .trace_columns import TraceColumns, looked_up

NOT_WATCHED: Final = "(not watched)"
_MOST_BYTES: Final = 4 * 2**30
_LAUNCH_S: Final = 1.1e-6, 7e-6  # of the host's for each, least and most: tests/benchmarks/profile_on_board.txt
_SAID: Final = 0.02  # cost from which on it is said
_REMEDY: Final = "name the program's own Python: wattridge profile -- python train.py"


@dataclass(slots=True)
class Watched:
    """One process that was watched. Times in ns since 1970."""

    process: int
    names: list[str] = field(default_factory=list)
    boards: list[tuple[int, str, str]] = field(default_factory=list)  # number, name and UUID as this process sees them
    slices: Times = field(default_factory=lambda: np.empty((0, 9), np.int64))  # the rows of `TraceColumns`
    launches: Times = field(default_factory=lambda: np.empty((0, 3), np.int64))
    host: Times = field(default_factory=lambda: np.empty((0, 5), np.int64))
    spans: Times = field(default_factory=lambda: np.empty((0, 2), np.int64))  # that were watched; the last may be open
    notes: list[str] = field(default_factory=list)

    def unwatched(self) -> list[tuple[int, int]]:
        """The stretches in which the board may have run something that is not known.

        Each begins when the last thing that was launched before it has ended, and ends with the first one after it.
        """
        starts, ends = self.slices[:, 4], self.slices[:, 4] + self.slices[:, 5]
        launch = looked_up(self.slices[:, 7], self.launches[:, 0], np.arange(len(self.launches)))
        launched = np.append(self.launches[:, 2], 0)[launch]  # the last one where the launch is not known
        stretches = []
        for until, since in zip(self.spans[:-1, 1].tolist(), self.spans[1:, 0].tolist(), strict=True):
            before, after = ends[(launched > 0) & (launched <= until)], starts[launched >= since]
            if len(after) and len(before) and after.min() > before.max():
                stretches.append((int(before.max()), int(after.min())))
        return stretches

    def cost_in_words(self) -> list[str]:
        """Say the expected cost of watching, where it is worth it."""
        lasts_s = float(np.ptp(self.launches[:, 2])) / 1e9 if len(self.launches) else 0.0
        low, high = (100 * len(self.launches) * each / lasts_s if lasts_s > 1.0 else 0.0 for each in _LAUNCH_S)
        if high < 100 * _SAID:
            return []
        each = f"{1e6 * _LAUNCH_S[0]:.0f} to {1e6 * _LAUNCH_S[1]:.0f} µs for each of {len(self.launches):,} launches"
        return [f"watching is expected to cost the host {low:.0f} to {high:.0f} % of its time ({each})"]


def read_watched(path: Path) -> Watched:
    """Read what a process wrote, as far as it is whole. Raises InputError where it is nothing that a watcher wrote."""
    rows: dict[str, list[bytes]] = defaultdict(list)
    for tag, content in _chunks(path):
        rows[tag].append(content)
    try:
        about = json.loads(rows["META"][0])
        result = Watched(int(about["pid"]), [str(json.loads(name)) for name in rows["NAME"]])
        tables = ("SLCE", "slices", 9), ("LNCH", "launches", 3), ("HOST", "host", 5), ("SPAN", "spans", 2)
        for tag, name, columns in tables:
            setattr(result, name, np.frombuffer(b"".join(rows[tag]), np.int64).reshape(-1, columns))
        if rows["BRDS"]:
            result.boards = [(int(number), str(name), str(uuid)) for number, name, uuid in json.loads(rows["BRDS"][-1])]
        done = json.loads(rows["DONE"][0]) if rows["DONE"] else None
        highest = max(int(result.slices[:, 3].max(initial=0)), int(result.host[:, 1].max(initial=0)))
        if highest >= len(result.names) and len(result.slices) + len(result.host):
            raise ValueError("a name is missing")
    except (ValueError, TypeError, LookupError, RecursionError):
        raise InputError("this is not what a watched process writes", str(path), _REMEDY) from None
    if done is None:
        result.notes.append(f"process {result.process} ended without a word: its last half second may be missing")
    elif done.get("dropped"):
        result.notes.append(f"CUPTI dropped {done['dropped']:,} records of process {result.process}: joules miss them")
    if done is not None and done.get("most"):
        result.notes.append(f"process {result.process} ran too much to watch it all: what came last was not watched")
    for failure in rows["FAIL"][:1]:
        result.notes.append(f"records of process {result.process} were not understood: {failure.decode()}")
    return result


def trace_of(processes: Sequence[Watched], title: str, where: str, uuid: str = "") -> ProgramTrace:
    """Put processes together: what they ran on the board of that UUID, without one on the board that was busiest.

    Raises InputError where none of them ran anything on it.
    """
    columns = TraceColumns()
    boards: dict[str, int] = {}  # number of each, by UUID
    digits = uuid.lower().removeprefix("gpu-").replace("-", "")
    notes = [note for watched in processes for note in watched.notes]
    for number, watched in enumerate(processes):
        places = {own: boards.setdefault(known or f"{number}:{own}", len(boards)) for own, _, known in watched.boards}
        columns.boards |= {places[own]: name for own, name, _ in watched.boards}
        names = np.array([columns.interned(name) for name in watched.names] or [0])
        slices, launches, host = watched.slices.copy(), watched.launches.copy(), watched.host.copy()
        columns.events += len(slices) + len(launches) + len(host)
        slices[:, 1] = [places.get(own, own) for own in slices[:, 1].tolist()]
        slices[:, 3], host[:, 1] = names[slices[:, 3]], names[host[:, 1]]
        slices[:, 7] += number << 32
        launches[:, 0] += number << 32
        stretches = watched.unwatched()
        for board in np.unique(slices[:, 1]).tolist():
            unknown = columns.interned(NOT_WATCHED)
            for begin, end in stretches:
                columns.slices.extend((KERNEL, board, -1, unknown, begin, end - begin, 0, -1, -1))
        for table, into in ((slices, columns.slices), (launches, columns.launches), (host, columns.host)):
            into.frombytes(table.tobytes())
        notes += watched.cost_in_words()
    device = boards.get(digits)
    if digits and device is None and boards and not any(":" in known for known in boards):
        there = ", ".join(dict.fromkeys(columns.boards.values()))
        raise InputError(f"the program ran on another board ({there})", where, "name it: --gpu")
    if device is not None and len(boards) > 1:
        notes.append(f"the program sees {len(boards)} boards: what it ran on others than this one is left out")
    trace = columns.finish(title, where, _REMEDY, device)
    return replace(trace, notes=(*notes, *trace.notes))


# --- inside -----------------------------------------------------------------------------------------------------------


def _chunks(path: Path) -> Iterator[tuple[str, bytes]]:
    """The chunks that were written whole."""
    with suppress(OSError), path.open("rb") as file:
        size = path.stat().st_size
        while len(head := file.read(8)) == 8 and size <= _MOST_BYTES:
            tag, length = struct.unpack("<4sI", head)
            if file.tell() + length > size:
                return
            yield tag.decode(errors="replace"), file.read(length)
