"""`Store`: sessions, measurements and fits in one SQLite file (WAL). A measurement is on disk before it is reported.

`LastingLocks`: what keeps other processes from taking a SQLite database for theirs alone. Linux only.

SQLite's locks are POSIX ones, and all those of a process on a file end when it closes any descriptor of that file
[https://sqlite.org/howtocorrupt.html, section 2.2]. Something else in the process does that sooner or later: a file
dialog that looks into the files of a folder for their kind. Another process then takes itself for the only one that has
the database open. When it comes it shortens the memory that all share, which ends this process with SIGBUS; when it
goes it removes the write-ahead log, and what this process writes after that is nowhere.

Locks of an open file description do not end that way. Two of them, for reading, lie beside SQLite's own on the bytes by
which it knows that others are there [SQLite, src/os.h: SHARED_FIRST; src/os_unix.c: UNIX_SHM_DMS].
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import sys
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ... import __version__
from ...base.errors import InputError, WattridgeError
from ...base.file_lock import FileLock
from ...base.paths import data_folder
from ..results.measurement import Depth, Measurement, State
from ..results.state import Purpose, SessionState
from ..space.result_table import ResultTable
from ..space.search_space import SearchSpace, space_from_row
from ..specification.plan import SessionPlan
from ..workloads.hardware_counters import counters_of
from .record import (
    DAMAGE,
    MEASUREMENT_COLUMNS,
    MEASUREMENT_NAMES,
    RECORD_COLUMNS,
    SHOWN,
    SHOWN_COLUMNS,
    STATED_COLUMNS,
    VALUES_AT_ONCE,
    Label,
    LoadedSession,
    SessionRecord,
    measurement_to_row,
    measurements_from_rows,
    new_session_to_row,
    record_from_row,
    values_from_rows,
)
from .schema import RECOVERY, is_damaged, open_database

_WHERE: Final = (("", 0x4000_0002, 510), ("-shm", 128, 1))  # the file's ending, first byte, bytes


class LastingLocks:
    """Of a database that SQLite has open in WAL mode; none where the system or the file's has no such locks."""

    def __init__(self, path: Path) -> None:
        self._files: list[int] = []
        for ending, start, length in _WHERE if sys.platform == "linux" else ():
            with suppress(OSError):
                self._files.append(os.open(f"{path}{ending}", os.O_RDONLY))
                _lock(self._files[-1], True, start, length)

    def let_go(self) -> None:
        """Release the lock. Call it before SQLite closes the database, which then takes that lock itself."""
        for file in self._files:
            with suppress(OSError):
                _lock(file, False, 0, 0)

    def close(self) -> None:
        """To be called after SQLite has closed it: this ends its locks. Safe to call twice."""
        while self._files:
            os.close(self._files.pop())


if sys.platform == "linux":
    import fcntl

    def _lock(file: int, held: bool, start: int, length: int) -> None:
        kind = fcntl.F_RDLCK if held else fcntl.F_UNLCK
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi0q", kind, os.SEEK_SET, start, length, 0))

else:

    def _lock(file: int, held: bool, start: int, length: int) -> None:
        pass


_RECORD = ", ".join(RECORD_COLUMNS)
# What a duplicate has of its model; it is a session of its own in the rest.
_OWN = ("id", "created_s", "state", "name", "favourite")
_COPIED = ", ".join([*(name for name in RECORD_COLUMNS if name not in _OWN), "space", "codes"])
KEPT_DELETED_S = 7 * 24 * 3600.0
Rows = Callable[[], Iterable[int]]
EVIDENCE_BYTE: Final = 64 << 20  # of samples, that a session keeps by default
_EVIDENCE_LEFT: Final = 7 / 8  # of what a session may keep, once samples gave way: not at every measurement
_ALIVE = (SessionState.RUNNING.value, SessionState.PAUSED.value)
_REMEDY = "free space or rights may be missing; WATTRIDGE_DATA names another folder"
_AT_ONCE = 128  # rows in one call: SQLite keeps the interpreter to itself meanwhile, and Qt's thread waits

_WHOLE = "json_valid(m.measured) AND json_valid(coalesce(s.measured, 0)) AND json_valid(coalesce(m.intervals, 0))"
_STATED_OF_A_ROW = ", ".join(("row", *STATED_COLUMNS))
# Tables that hold more of some rows, and their columns.
_BESIDE = {"counters": "row, metrics, tool, timestamp_s", "stated": _STATED_OF_A_ROW, "evidence": "row, packed"}


class Store:
    """The user's sessions. Safe from several threads (one connection behind a lock) and several processes (WAL).

    Every method raises WattridgeError, with the remedy, where the file cannot be read or written. Where it can only be
    read (rights, a full disk), it is: `read_only` says why, and what writes raises.
    """

    def __init__(self, path: Path | None = None, *, evidence_byte: int = EVIDENCE_BYTE) -> None:
        """`evidence_byte`: of samples, that a session created here keeps at most; 0: it does without."""
        self.path = path if path is not None else data_folder() / "wattridge.sqlite"
        self.evidence_byte = evidence_byte
        self.chosen: dict[int, int] = {}  # by session, the row that the user chose: its samples stay
        self._evidence: dict[int, int] = {}  # bytes of samples of the held sessions
        self._mutex = threading.RLock()
        self._held: dict[int, FileLock] = {}
        self._unreadable: dict[int, str] = {}  # why listings left a session out, by its number
        self._ordinals: dict[int, int] = {}  # of the held sessions: the next one
        with self._translated():
            self._db, self.read_only = open_database(self.path)
        try:
            self._locks = LastingLocks(self.path)
            self._mark_interrupted()
        except BaseException:
            self._db.close()
            raise

    # --- writing ----------------------------------------------------------------------------------------------------

    def create_session(self, plan: SessionPlan) -> int:
        """Write a new session with its whole space; its id. This store holds the session until `finish` or `close`."""
        values = new_session_to_row(plan)
        values |= {"created_s": time.time(), "state": SessionState.RUNNING.value, "version": __version__}
        values["evidence_byte"] = self.evidence_byte
        marks = ", ".join(f":{name}" for name in values)
        with self._transaction():
            cursor = self._db.execute(f"INSERT INTO sessions ({', '.join(values)}) VALUES ({marks})", values)
            session = int(cursor.lastrowid or 0)
            self._hold(session)  # before anyone can see it: an unheld running session counts as interrupted
        return session

    def reopen(
        self,
        session: int,
        max_evaluations: int | None = None,
        max_seconds: float | None = None,
        patience: int | None = None,
    ) -> None:
        """Hold a stored session again, with its new budget. Raises WattridgeError while another process runs it."""
        self.session(session)
        with self._transaction():
            self._hold(session)
            self._db.execute(
                "UPDATE sessions SET state = ?, reason = '', finished_s = NULL, max_evaluations = ?, max_seconds = ?,"
                " patience = ?, evidence_byte = coalesce(evidence_byte, ?) WHERE id = ?",
                (SessionState.RUNNING.value, max_evaluations, max_seconds, patience, self.evidence_byte, session),
            )

    def append(
        self, session: int, measurements: Sequence[Measurement], elapsed_s: float | None = None, needed: Rows = tuple
    ) -> None:
        """Write measurements in one transaction, committed on return; they take the place of rows only timed so far.

        Where their samples are more than the session keeps, those of its oldest rows give way, but for the rows
        `needed` and the chosen one. Raises ValueError for a row that it holds in full already.
        """
        last: dict[int, Measurement] = {}
        for measurement in measurements:
            if measurement.row in last and last[measurement.row].final:
                raise ValueError(f"row {measurement.row} twice")
            last[measurement.row] = measurement
        with self._transaction():
            deeper = self._deeper(session, last)
            self._replace(session, [last[row] for row in deeper])
            self._insert(session, [item for item in last.values() if item.row not in deeper])
            timed = sum(item.depth is Depth.TIME for item in last.values())
            self._db.execute(
                "UPDATE sessions SET evaluated = evaluated + ?, timed = timed + ?, elapsed_s = coalesce(?, elapsed_s)"
                " WHERE id = ?",
                (len(last) - timed, timed - len(deeper), elapsed_s, session),
            )
            self._keep_evidence(session, {m.row: m.evidence for m in last.values() if m.evidence}, needed)

    def restate(self, session: int, measurements: Sequence[Measurement], origin: Mapping[str, str]) -> None:
        """State other figures of these rows, beside what was measured of them, and say in the session's origin how."""
        counted = {row: counters_of(metrics) for row, metrics in self.metrics(session).items()}
        stated = [replace(m, values=_without(m.values, counted.get(m.row, ()))) for m in measurements]
        rows = [
            dict(zip(MEASUREMENT_NAMES, measurement_to_row(value), strict=True), session=session) for value in stated
        ]
        marks = ", ".join(f":{name}" for name in ("session", "row", *STATED_COLUMNS))
        with self._transaction():
            self._db.executemany(f"INSERT OR REPLACE INTO stated (session, {_STATED_OF_A_ROW}) VALUES ({marks})", rows)
            self._db.execute("UPDATE sessions SET origin = ? WHERE id = ?", (json.dumps(dict(origin)), session))

    def keep_counters(self, session: int, profiles: Mapping[int, Mapping[str, float]], tool: str) -> None:
        """Keep the profiler's metrics of rows, in place of those that were kept: a session's `load` joins them."""
        rows = [(session, row, json.dumps(dict(metrics)), tool, time.time()) for row, metrics in profiles.items()]
        with self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO counters VALUES (?, ?, ?, ?, ?)", rows)

    def set_state(self, session: int, state: SessionState, elapsed_s: float | None = None) -> None:
        """Note that a held session is paused or runs on."""
        with self._transaction():
            self._db.execute(
                "UPDATE sessions SET state = ?, elapsed_s = coalesce(?, elapsed_s) WHERE id = ?",
                (state.value, elapsed_s, session),
            )

    def finish(self, session: int, state: SessionState, reason: str = "", elapsed_s: float | None = None) -> None:
        """Write how a session ended and release it."""
        with self._transaction():
            self._db.execute(
                "UPDATE sessions SET state = ?, reason = ?, finished_s = ?, elapsed_s = coalesce(?, elapsed_s)"
                " WHERE id = ?",
                (state.value, reason, time.time(), elapsed_s, session),
            )
        self._release(session)

    def add_fit(self, gpu: str, source: str, document: Mapping[str, Any], session: int | None = None) -> int:
        """Keep a fit of a board of that name as its document; its id. `source` states what it was fitted to."""
        with self._transaction():
            cursor = self._db.execute(
                "INSERT INTO fits (created_s, session, gpu, source, fit) VALUES (?, ?, ?, ?, ?)",
                (time.time(), session, gpu, source, json.dumps(document)),
            )
            return int(cursor.lastrowid or 0)

    # --- the user's own order ---------------------------------------------------------------------------------------

    def label(self, session: int, label: Label) -> None:
        """Write the user's name, tags and notes of a session."""
        self.session(session)
        with self._transaction():
            self._db.execute(
                "UPDATE sessions SET name = ?, tags = ?, notes = ?, favourite = ? WHERE id = ?",
                (label.name.strip(), json.dumps(list(label.tags)), label.notes, label.favourite, session),
            )

    def duplicate(self, session: int) -> int:
        """A copy of a session with all its measurements, to continue in another way; its id."""
        record = self.session(session)
        state = SessionState.STOPPED if record.state.value in _ALIVE else record.state
        with self._transaction():
            cursor = self._db.execute(
                f"INSERT INTO sessions ({_COPIED}, created_s, state, name)"
                f" SELECT {_COPIED}, ?, ?, ? FROM sessions WHERE id = ?",
                (time.time(), state.value, f"{record.label.name or record.title} (copy)", session),
            )
            copy = int(cursor.lastrowid or 0)
            self._db.execute(
                f"INSERT INTO measurements (session, ordinal, {MEASUREMENT_COLUMNS})"
                f" SELECT ?, ordinal, {MEASUREMENT_COLUMNS} FROM measurements WHERE session = ?",
                (copy, session),
            )
            for table, kept in _BESIDE.items():
                self._db.execute(
                    f"INSERT INTO {table} (session, {kept}) SELECT ?, {kept} FROM {table} WHERE session = ?",
                    (copy, session),
                )
            # one that runs may have grown since its row was read
            counted = "(SELECT count(*) FROM measurements WHERE session = :copy AND depth = '{}')".format
            evaluated, timed = (counted(depth.value) for depth in (Depth.ENERGY, Depth.TIME))
            self._db.execute(
                f"UPDATE sessions SET evaluated = {evaluated}, timed = {timed} WHERE id = :copy", {"copy": copy}
            )
        return copy

    def delete(self, session: int) -> None:
        """Remove a session from the list; `undelete` puts it back until `purge`. Raises WattridgeError if it runs."""
        if self.session(session).state.value in _ALIVE:
            raise WattridgeError(f"session {session} is running", str(self.path), "stop it first")
        with self._transaction():
            self._db.execute("UPDATE sessions SET deleted_s = ? WHERE id = ?", (time.time(), session))

    def undelete(self, session: int) -> None:
        """Put a deleted session back into the list."""
        with self._transaction():
            self._db.execute("UPDATE sessions SET deleted_s = NULL WHERE id = ?", (session,))

    def purge(self, older_than_s: float = KEPT_DELETED_S) -> int:
        """Remove what was deleted longer ago than that for ever; how many sessions that were."""
        with self._transaction():
            named = [
                session
                for (session,) in self._db.execute(
                    "SELECT id FROM sessions WHERE deleted_s < ?", (time.time() - older_than_s,)
                ).fetchall()
            ]
            for session in named:
                for table in ("measurements", *_BESIDE):
                    self._db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
                self._db.execute("UPDATE fits SET session = NULL WHERE session = ?", (session,))
                self._db.execute("DELETE FROM sessions WHERE id = ?", (session,))
        return len(named)

    # --- reading ----------------------------------------------------------------------------------------------------

    def sessions(self, most: int | None = None, *, without: frozenset[Purpose] = frozenset()) -> list[SessionRecord]:
        """Every session that can be read, newest first; `unreadable` names the others.

        `most`: of the newest so many. `without`: none that was for one of these purposes.

        One whose process died has become 'interrupted'.
        """
        self._mark_interrupted()
        listed = f"SELECT {_RECORD} FROM sessions WHERE deleted_s IS NULL ORDER BY id DESC LIMIT ?"
        rows = self._query(listed, (-1 if most is None or without else most,))
        records: list[SessionRecord] = []
        if most is None:
            self._unreadable.clear()
        number = RECORD_COLUMNS.index("id")
        for row in rows:
            if len(records) == most:
                break
            self._unreadable.pop(row[number], None)
            try:
                record = self._record(row)
            except WattridgeError as error:
                self._unreadable[row[number]] = str(error)
            else:
                records += [record] if record.purpose not in without else []
        return records

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Why sessions are missing in listings, the newest first; a listing of the newest few forgets no other."""
        return tuple(why for _, why in sorted(self._unreadable.items(), reverse=True))

    def damage(self) -> tuple[str, ...]:
        """`unreadable`, and the sessions of which something else cannot be read, a line each. Reads the whole file."""
        records, faults = self.sessions(), list(self.unreadable)
        for record in records:
            count, message = record.evaluated + record.timed, ""
            try:
                self.space(record.id)
                of_session = f"SELECT count(*) FROM {SHOWN} WHERE m.session = ? AND {_WHOLE}"
                if (lost := count - self._query(of_session, (record.id,))[0][0]) > 0:
                    message = f"{lost} of its {count} measurements cannot be read"
            except WattridgeError as error:
                message = f"its space or measurements cannot be read: {error.what}"
            faults += [str(self._damaged(record.id, message))] if message else []
        checked = "ok" if faults else self._query("PRAGMA quick_check(1)")[0][0]
        return tuple(faults) if checked == "ok" else (f"{self.path}: the store is damaged: {checked} ({RECOVERY})",)

    def session(self, session: int) -> SessionRecord:
        """One session. Raises InputError if there is none of that id."""
        self._mark_interrupted()
        rows = self._query(f"SELECT {_RECORD} FROM sessions WHERE id = ?", (session,))
        if not rows:
            raise InputError(f"there is no session {session}", str(self.path), "list them with: wattridge sessions")
        return self._record(rows[0])

    def space(self, session: int) -> SearchSpace:
        """The search space of a session. Raises InputError if there is none of that id."""
        self.session(session)
        [(described, packed)] = self._query("SELECT space, codes FROM sessions WHERE id = ?", (session,))
        try:
            return space_from_row(described, packed)
        except (*DAMAGE, zlib.error) as error:
            raise self._damaged(session, f"its search space cannot be read: {error}") from None

    def load(self, session: int) -> LoadedSession:
        """A session with its space and all its measurements, in the order in which they were measured.

        Damaged measurements are left out, and the space's notes say how many.
        """
        record, space = self.session(session), self.space(session)
        statement = f"SELECT {SHOWN_COLUMNS} FROM {SHOWN} WHERE m.session = ? ORDER BY ordinal"
        rows = self._query(statement, (session,))
        measurements = list(measurements_from_rows(space, rows))
        if counters := {row: counters_of(metrics) for row, metrics in self.metrics(session).items()}:
            joined = ((m, counters.get(m.row)) for m in measurements)
            measurements = [replace(m, values={**m.values, **stated}) if stated else m for m, stated in joined]
        left_out = len(rows) - len(measurements)
        if left_out:
            note = f"{left_out} of {len(rows)} stored measurements are damaged and left out"
            space = replace(space, notes=(*space.notes, note))
        table = ResultTable(space)
        table.extend(measurements)
        table.origin = record.origin
        return LoadedSession(record, space, table, left_out)

    def metrics(self, session: int) -> dict[int, Mapping[str, float]]:
        """What a profiler counted of a session's rows: by the row, in base units, by Nsight Compute's names."""
        if not self._query("SELECT 1 FROM sqlite_master WHERE name = 'counters'"):
            return {}  # a file that can only be read, and never was profiled
        rows = self._query("SELECT row, metrics FROM counters WHERE session = ? ORDER BY row", (session,))
        result: dict[int, Mapping[str, float]] = {}
        for row, text in rows:
            with suppress(*DAMAGE):
                for metrics in values_from_rows([text]):
                    result[row] = metrics
        return result

    def profiled_by(self, session: int) -> list[str]:
        """The tools that counted what `metrics` has."""
        if not self.metrics(session):
            return []
        statement = "SELECT DISTINCT tool FROM counters WHERE session = ? ORDER BY tool"
        return [str(tool) for (tool,) in self._query(statement, (session,))]

    def evidence(self, session: int, row: int) -> bytes:
        """The samples of one row, packed; empty if it has none."""
        rows = self._query("SELECT packed FROM evidence WHERE session = ? AND row = ?", (session, row))
        return rows[0][0] if rows and isinstance(rows[0][0], bytes) else b""

    def evident(self, session: int) -> set[int]:
        """The rows of a session that have samples."""
        return {row for (row,) in self._query("SELECT row FROM evidence WHERE session = ?", (session,))}

    def values(self, session: int, board: str = "") -> Iterator[list[Mapping[str, float]]]:
        """The figures of a session's successful measurements by name, some at a time, by their rows in the space.

        `board` leaves those of other boards out. Much sooner read than the whole session; others may use the store
        between two parts. Damaged ones are left out.
        """
        statement = (
            f"SELECT m.row, state, coalesce(s.measured, m.measured) FROM {SHOWN}"
            f" WHERE m.session = ? AND m.row > ? AND ? IN ('', coalesce(s.board, m.board))"
            f" ORDER BY m.row LIMIT {VALUES_AT_ONCE}"
        )
        last = -1
        while rows := self._query(statement, (session, last, board)):
            last = rows[-1][0]
            yield values_from_rows([text for _, state, text in rows if state == State.OK.value])

    def fits(self, gpu: str) -> Iterator[tuple[str, str]]:
        """The fits of boards of that name, the newest first: each as the text of its document, and its source."""
        yield from self._query("SELECT fit, source FROM fits WHERE gpu = ? ORDER BY id DESC", (gpu,))

    def close(self) -> None:
        """Close the file. Sessions still held are released, and count as interrupted. Safe to call twice."""
        with self._mutex:
            for session in list(self._held):
                self._release(session)
            self._locks.let_go()
            self._db.close()
            self._locks.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _deeper(self, session: int, measured: Mapping[int, Measurement]) -> frozenset[int]:
        """Those rows that the session holds timed only, and of which more is known now."""
        [(timed,)] = self._db.execute("SELECT timed FROM sessions WHERE id = ?", (session,)).fetchall()
        if not timed:
            return frozenset()
        statement = "SELECT row FROM measurements WHERE session = ? AND depth = ? AND state = ?"
        held = self._db.execute(statement, (session, Depth.TIME.value, State.OK.value))
        return frozenset(row for (row,) in held if row in measured and measured[row].depth is Depth.ENERGY)

    def _insert(self, session: int, measurements: Sequence[Measurement]) -> None:
        """Raises ValueError for a row that is there."""
        marks = ", ".join("?" * (2 + len(MEASUREMENT_COLUMNS.split(","))))
        statement = f"INSERT INTO measurements (session, ordinal, {MEASUREMENT_COLUMNS}) VALUES ({marks})"
        first = self._take_ordinals(session, len(measurements))
        rows = [(session, first + i, *measurement_to_row(m)) for i, m in enumerate(measurements)]
        try:
            for start in range(0, len(rows), _AT_ONCE):
                self._db.executemany(statement, rows[start : start + _AT_ONCE])
        except sqlite3.IntegrityError as error:
            raise ValueError(f"session {session} already holds one of these rows: {error}") from error

    def _replace(self, session: int, measurements: Sequence[Measurement]) -> None:
        """Put these in the place of the session's measurements of their rows, as the newest."""
        if not measurements:
            return
        changed = ", ".join(f"{name.strip()} = ?" for name in ("ordinal", *MEASUREMENT_COLUMNS.split(",")))
        first = self._take_ordinals(session, len(measurements))
        self._db.executemany(
            f"UPDATE measurements SET {changed} WHERE session = ? AND row = ?",
            [(first + i, *measurement_to_row(m), session, m.row) for i, m in enumerate(measurements)],
        )
        stale = [(session, m.row) for m in measurements]  # stated of the time alone, by a session that is resumed
        self._db.executemany("DELETE FROM stated WHERE session = ? AND row = ?", stale)

    def _keep_evidence(self, session: int, samples: Mapping[int, bytes], needed: Rows) -> None:
        [(most,)] = self._db.execute("SELECT evidence_byte FROM sessions WHERE id = ?", (session,)).fetchall()
        if not most or not samples:
            return
        self._db.executemany(
            "INSERT OR REPLACE INTO evidence VALUES (?, ?, ?)", ((session, *s) for s in samples.items())
        )
        self._evidence[session] = self._evidence.get(session, most) + sum(map(len, samples.values()))
        if self._evidence[session] <= most:
            return
        lengths = "SELECT row, length(packed) FROM evidence WHERE session = ? ORDER BY rowid"
        held = self._db.execute(lengths, (session,)).fetchall()
        left, gone = sum(length for _, length in held), []
        stays = {*needed(), *samples, self.chosen.get(session)} if left > most else {row for row, _ in held}
        for row, length in held:
            if row not in stays and left > _EVIDENCE_LEFT * most:
                gone.append((session, row))
                left -= length
        self._db.executemany("DELETE FROM evidence WHERE session = ? AND row = ?", gone)
        self._evidence[session] = left

    def _take_ordinals(self, session: int, count: int) -> int:
        """Reserve consecutive ordinals in a session that is held, and return the first."""
        if session not in self._ordinals:
            statement = "SELECT coalesce(max(ordinal) + 1, 0) FROM measurements WHERE session = ?"
            [(self._ordinals[session],)] = self._db.execute(statement, (session,)).fetchall()
        first = self._ordinals[session]
        self._ordinals[session] += count
        return first

    def _mark_interrupted(self) -> None:
        """Mark sessions that are recorded as running but whose lock no process holds as interrupted."""
        if self.read_only:
            return  # `_record` sees to it
        statement = "SELECT id FROM sessions WHERE state IN (?, ?)"
        if all(session in self._held for (session,) in self._query(statement, _ALIVE)):
            return
        with self._transaction():  # locks are only taken inside one, so that two processes never wait for each other
            for (session,) in self._db.execute(statement, _ALIVE).fetchall():
                lock = None if session in self._held else self._lock(session)
                if lock is not None:
                    self._db.execute(
                        "UPDATE sessions SET state = ?, reason = ? WHERE id = ?",
                        (SessionState.INTERRUPTED.value, "the program ended while it ran", session),
                    )
                    lock.release()

    def _hold(self, session: int) -> None:
        lock = self._lock(session)
        if lock is None:
            raise WattridgeError(f"session {session} is running already", str(self.path), "stop it there first")
        self._held[session] = lock
        self._evidence.pop(session, None)
        self._ordinals.pop(session, None)  # another process may have written meanwhile

    def _release(self, session: int) -> None:
        with self._mutex:
            lock = self._held.pop(session, None)
        if lock is not None:
            lock.release()

    def _lock(self, session: int) -> FileLock | None:
        with self._translated():
            return FileLock.acquire(self._lock_file(session))

    def _lock_file(self, session: int) -> Path:
        return self.path.with_name(f"{self.path.stem}-running") / f"{session}.lock"

    def _record(self, row: tuple[Any, ...]) -> SessionRecord:
        """A session's row, checked. Raises WattridgeError that names the session."""
        try:
            record = record_from_row(row)
        except DAMAGE as error:
            raise self._damaged(row[RECORD_COLUMNS.index("id")], str(error)) from None
        if self.read_only and record.state.value in _ALIVE and not FileLock.is_held(self._lock_file(record.id)):
            return replace(record, state=SessionState.INTERRUPTED)
        return record

    def _damaged(self, session: object, why: str) -> WattridgeError:
        what = f"session {session} is damaged: {why}"
        return WattridgeError(what, str(self.path), "the other sessions can still be used; restore it from a backup")

    def _query(self, statement: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._mutex, self._translated():
            return self._db.execute(statement, arguments).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self.read_only:
            raise WattridgeError(f"the store can only be read: {self.read_only}", str(self.path), _REMEDY)
        with self._mutex, self._translated():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn an error of SQLite or the file system into one line with a remedy."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if is_damaged(error):
                what = f"the store is damaged ({error}); nothing in it was changed"
                raise WattridgeError(what, str(self.path), RECOVERY) from error
            raise WattridgeError(f"the store cannot be used: {error}", str(self.path), _REMEDY) from error


def _without(values: Mapping[str, float], names: Collection[str]) -> Mapping[str, float]:
    """Return the figures without those of these names, which are stored in a table of their own."""
    return {name: value for name, value in values.items() if name not in names} if names else values
