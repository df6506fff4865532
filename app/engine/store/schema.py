"""The tables of the store's file, and what makes a file of an older program one of this."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ...errors import WattridgeError

SCHEMA_VERSION = 4
_SCHEMA = """
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
    favourite INTEGER NOT NULL DEFAULT 0, deleted_s REAL
);
CREATE TABLE measurements (
    session INTEGER NOT NULL REFERENCES sessions(id), ordinal INTEGER NOT NULL,
    row INTEGER NOT NULL, state TEXT NOT NULL, measured TEXT NOT NULL, intervals TEXT, error TEXT NOT NULL,
    message TEXT NOT NULL DEFAULT '',
    window_start_ns INTEGER, window_end_ns INTEGER, observed_clock_mhz REAL, event_reasons INTEGER NOT NULL,
    power_source TEXT NOT NULL, source TEXT NOT NULL, timestamp_s REAL, cost_s REAL NOT NULL,
    PRIMARY KEY (session, row)
) WITHOUT ROWID;
CREATE TABLE fits (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    created_s REAL NOT NULL, session INTEGER REFERENCES sessions(id), gpu TEXT NOT NULL, source TEXT NOT NULL,
    fit TEXT NOT NULL
);
"""
# What makes a file of each older version one of the next.
_UPGRADES = {
    1: "ALTER TABLE sessions ADD COLUMN patience INTEGER",
    2: "ALTER TABLE measurements ADD COLUMN message TEXT NOT NULL DEFAULT ''",
    3: """
ALTER TABLE sessions ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE sessions ADD COLUMN notes TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN favourite INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN deleted_s REAL
""",
}


def prepare(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables, or bring older ones up to date. Raises WattridgeError for a file of a newer program."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")  # a power cut costs nothing that was reported
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("BEGIN IMMEDIATE")  # two first starts at once must not both create the tables
    try:
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version > SCHEMA_VERSION:
            raise WattridgeError(
                f"written by a newer version (schema {version}, this program knows {SCHEMA_VERSION})",
                str(path),
                "update wattridge, or set WATTRIDGE_DATA to another folder",
            )
        if version == 0:
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
        for older in range(version or SCHEMA_VERSION, SCHEMA_VERSION):
            for statement in _UPGRADES[older].split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
