"""The store's file: its tables, the upgrade from the schema before, opening it: to write if possible, else to read."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from ...base.errors import WattridgeError
from ...base.paths import PRIVATE_FILE, make_folder

RECOVERY = "sqlite3's .recover reads what is left; move the file away or set WATTRIDGE_DATA to begin a new store"
_VERSION = 8
_OLDEST = 6  # that is upgraded
# What is stated of rows once more is known of their board stands beside the rows, which stay as they were measured.
_STATED = """CREATE TABLE stated (
    session INTEGER NOT NULL REFERENCES sessions(id), row INTEGER NOT NULL, measured TEXT NOT NULL, intervals TEXT,
    message TEXT NOT NULL, window_start_ns INTEGER, window_end_ns INTEGER, observed_clock_mhz REAL,
    event_reasons INTEGER NOT NULL, power_source TEXT NOT NULL, timestamp_s REAL, board TEXT NOT NULL,
    PRIMARY KEY (session, row)
) WITHOUT ROWID"""
# What the sensors reported during a measurement is read for one row at a time, and never with its session.
_EVIDENCE = """CREATE TABLE evidence (
    session INTEGER NOT NULL REFERENCES sessions(id), row INTEGER NOT NULL, packed BLOB NOT NULL,
    PRIMARY KEY (session, row)
)"""
_SCHEMA = f"""
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    created_s REAL NOT NULL, finished_s REAL, state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '',
    title TEXT NOT NULL, gpu TEXT NOT NULL, driver TEXT NOT NULL, source TEXT NOT NULL,
    strategy TEXT NOT NULL, strategy_options TEXT NOT NULL, objective TEXT NOT NULL, seed INTEGER NOT NULL,
    max_evaluations INTEGER, max_seconds REAL, patience INTEGER, units TEXT NOT NULL, origin TEXT NOT NULL,
    cartesian TEXT NOT NULL, valid INTEGER NOT NULL, evaluated INTEGER NOT NULL DEFAULT 0,
    elapsed_s REAL NOT NULL DEFAULT 0, version TEXT NOT NULL,
    space TEXT NOT NULL, codes BLOB NOT NULL,
    name TEXT NOT NULL DEFAULT '', tags TEXT NOT NULL DEFAULT '[]', notes TEXT NOT NULL DEFAULT '',
    favourite INTEGER NOT NULL DEFAULT 0, deleted_s REAL, timed INTEGER NOT NULL DEFAULT 0,
    evidence_byte INTEGER
);
CREATE TABLE measurements (
    session INTEGER NOT NULL REFERENCES sessions(id), ordinal INTEGER NOT NULL,
    row INTEGER NOT NULL, state TEXT NOT NULL, measured TEXT NOT NULL, intervals TEXT, error TEXT NOT NULL,
    message TEXT NOT NULL DEFAULT '',
    window_start_ns INTEGER, window_end_ns INTEGER, observed_clock_mhz REAL, event_reasons INTEGER NOT NULL,
    power_source TEXT NOT NULL, source TEXT NOT NULL, timestamp_s REAL, cost_s REAL NOT NULL,
    depth TEXT NOT NULL DEFAULT 'energy', board TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (session, row)
) WITHOUT ROWID;
CREATE TABLE fits (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    created_s REAL NOT NULL, session INTEGER REFERENCES sessions(id), gpu TEXT NOT NULL, source TEXT NOT NULL,
    fit TEXT NOT NULL
);
{_STATED};
{_EVIDENCE}
"""
# Beside the schema, made if it is missing: programs of the same schema that do not know it can use the file too.
_COUNTERS = """
CREATE TABLE IF NOT EXISTS counters (
    session INTEGER NOT NULL, row INTEGER NOT NULL, metrics TEXT NOT NULL, tool TEXT NOT NULL,
    timestamp_s REAL NOT NULL,
    PRIMARY KEY (session, row)
) WITHOUT ROWID
"""
# What SQLite says where a file or its folder cannot be written: rights, a read-only file system, a full or failing disk
_CANNOT_WRITE: Final = (
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
)
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def open_database(path: Path) -> tuple[sqlite3.Connection, str]:
    """The file, made or upgraded if needed, and an empty text; or what can be read of it, and why it is read-only.

    Raises sqlite3.Error where it is damaged or locked, and WattridgeError if a newer or too old a version wrote it.
    """
    for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):  # SQLite would wait for what a pipe gives
        if os.path.exists(name) and not os.path.isfile(name):
            raise WattridgeError("this is no file, which the store is", str(name), "move it away")
    try:
        make_folder(path.parent)
        with suppress(FileExistsError):  # an existing one is left alone: closing it ends all locks of this process
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
        _make_private(path)
        db = _connect(str(path))
        try:
            _prepare(db, path)
        except BaseException:
            db.close()
            raise
        return db, ""
    except OSError as error:
        reason = error.strerror or str(error)
    except sqlite3.OperationalError as error:
        if _primary_code(error) not in _CANNOT_WRITE:
            raise
        reason = str(error)
    return _to_read(path), reason


def _primary_code(error: sqlite3.Error) -> int:
    """SQLite's result code without its extension; 0 if there is none."""
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_damaged(error: Exception) -> bool:
    """Whether SQLite says that the file is no database, or a broken one."""
    return isinstance(error, sqlite3.Error) and _primary_code(error) in _DAMAGED


def _to_read(path: Path) -> sqlite3.Connection:
    """What the file holds, without writing anything beside it; an empty store if there is no file."""
    if not os.path.exists(path) or not os.path.getsize(path):
        empty = _connect(":memory:")
        _prepare(empty, path)
        return empty
    db = _opened_to_read(path)
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version == _VERSION:
        return db
    upgraded = _connect(":memory:")  # an older one is upgraded in memory; `_prepare` refuses one that it cannot
    try:
        db.backup(upgraded)
        _prepare(upgraded, path)
    except BaseException:
        upgraded.close()
        raise
    finally:
        db.close()
    return upgraded


def _opened_to_read(path: Path) -> sqlite3.Connection:
    where = path.resolve().as_uri()
    for options in ("mode=ro", "mode=ro&immutable=1"):
        if "immutable" in options and _has_content(path.with_name(f"{path.name}-wal")):
            break  # SQLite would leave out what was written last
        db = _connect(f"{where}?{options}", uri=True)
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            db.close()
            continue
        except sqlite3.Error:
            db.close()
            raise
        return db
    return _copied(path)


def _copied(path: Path) -> sqlite3.Connection:
    """The file with what its write-ahead log holds, copied into memory by way of a temporary folder."""
    memory = _connect(":memory:")
    with tempfile.TemporaryDirectory(prefix="wattridge-") as folder:
        copy = Path(folder) / path.name
        for ending in ("", "-wal"):
            shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
        on_disk = _connect(str(copy))
        try:
            on_disk.backup(memory)
        except sqlite3.Error:
            memory.close()
            raise
        finally:
            on_disk.close()
    return memory


def _connect(name: str, *, uri: bool = False) -> sqlite3.Connection:
    db = sqlite3.connect(name, timeout=30.0, isolation_level=None, check_same_thread=False, uri=uri)
    db.text_factory = lambda data: data.decode("utf-8", "replace")  # one damaged text must not hide all the others
    return db


def _version_of(db: sqlite3.Connection, path: Path) -> int:
    """The schema of the file, 0 of an empty one. Raises WattridgeError for one that this program cannot use."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > _VERSION:
        raise WattridgeError(
            f"written by a newer version (schema {version}, this program knows {_VERSION})",
            str(path),
            "update wattridge, or set WATTRIDGE_DATA to another folder",
        )
    if 0 < version < _OLDEST:
        raise WattridgeError(
            f"written by an older version (schema {version}, this program upgrades {_OLDEST})",
            str(path),
            "export its sessions with that version, and move the file away or set WATTRIDGE_DATA to another folder",
        )
    return version


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables, or bring older ones up to date. Raises WattridgeError as `_version_of`, with nothing changed."""
    _version_of(db, path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")  # a power cut costs nothing that was reported
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("BEGIN IMMEDIATE")  # two first starts at once must not both create the tables
    try:
        version = _version_of(db, path)
        if version == 0:
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
        elif version < _VERSION:
            if version == _OLDEST:
                db.execute(_STATED)
            db.execute(_EVIDENCE)
            db.execute("ALTER TABLE sessions ADD COLUMN evidence_byte INTEGER")
        db.execute(_COUNTERS)
        db.execute(f"PRAGMA user_version = {_VERSION}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite has rolled back itself where the disk is full
            db.execute("ROLLBACK")
        raise


def _has_content(path: Path) -> bool:
    with suppress(OSError):
        return os.path.getsize(path) > 0
    return False


def _make_private(path: Path) -> None:
    """SQLite gives the files that it puts beside the database the database's own mode."""
    for ending in ("", "-wal", "-shm"):
        with suppress(OSError):
            if os.stat(f"{path}{ending}").st_mode & 0o077:
                os.chmod(f"{path}{ending}", PRIVATE_FILE)
