"""Opening the store's file: to write where that is possible, else to read what is there."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from ...paths import PRIVATE_FILE, make_folder
from .schema import SCHEMA_VERSION, prepare

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
    """The file, made or upgraded where needed, and an empty text; or what can be read of it, and why it is read-only.

    Raises sqlite3.Error where it is damaged or locked, and WattridgeError where a newer version wrote it.
    """
    try:
        make_folder(path.parent)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
        _make_private(path)
        db = _connect(str(path))
        try:
            prepare(db, path)
        except BaseException:
            db.close()
            raise
        return db, ""
    except OSError as error:
        reason = error.strerror or str(error)
    except sqlite3.OperationalError as error:
        if primary_code(error) not in _CANNOT_WRITE:
            raise
        reason = str(error)
    return _to_read(path), reason


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's result code without its extension; 0 where there is none."""
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_damaged(error: Exception) -> bool:
    """Whether SQLite says that the file is no database, or a broken one."""
    return isinstance(error, sqlite3.Error) and primary_code(error) in _DAMAGED


def _to_read(path: Path) -> sqlite3.Connection:
    """What the file holds, without writing anything beside it; an empty store where there is no file."""
    if not os.path.exists(path) or not os.path.getsize(path):
        empty = _connect(":memory:")
        prepare(empty, path)
        return empty
    db = _opened_to_read(path)
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version == SCHEMA_VERSION:
        return db
    upgraded = _connect(":memory:")  # an older one is upgraded in memory; `prepare` refuses a newer one
    try:
        db.backup(upgraded)
        prepare(upgraded, path)
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
