"""A disk that takes no more while a session writes, or when the store is opened: what was written stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.base.paths import resources
from app.engine.results.state import SessionState
from app.engine.store.database import Store

resource = pytest.importorskip("resource", reason="limits of files are of POSIX")
EXAMPLE = str(resources() / "examples" / "gemm.toml")
ROOM = 400_000  # bytes that a file may have: those of some dozens of measurements


def with_room(words: list[str], most: int) -> subprocess.CompletedProcess[str]:
    """A program whose files may grow to so many bytes: a write beyond them fails as on a full disk."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return subprocess.run(
        [sys.executable, *words], preexec_fn=limit, capture_output=True, text=True, check=False, timeout=300
    )


def test_a_session_that_finds_the_disk_full_keeps_what_it_wrote_and_says_so(own_data_folder: Path) -> None:
    tune = ["tune", EXAMPLE, "--gpu", "simulated:a100", "--strategy", "random_sample", "--max-evaluations", "1000"]
    ended = with_room(["-m", "app", *tune, "--json"], ROOM)
    assert ended.returncode == 1
    document = json.loads(ended.stdout)
    assert document["state"] == "failed"
    lines = ended.stderr.splitlines()
    assert sum("the store cannot be used" in line for line in lines if not line.startswith("wattridge:")) == 1, lines
    assert "Traceback" not in ended.stderr
    with Store() as store:
        [record] = store.sessions()
        assert record.state in (SessionState.FAILED, SessionState.INTERRUPTED)
        assert store.damage() == ()
        assert 0 < record.evaluated == len(store.load(1).table) == document["evaluated"] < 1000
    again = ["tune", "--resume", "1", "--max-evaluations", str(record.evaluated + 5), "--json"]
    resumed = subprocess.run([sys.executable, "-m", "app", *again], capture_output=True, text=True, check=True)
    assert json.loads(resumed.stdout)["evaluated"] == record.evaluated + 5


_KILLED = """
import os
from app.engine.store.database import Store
from fixtures.engine_fakes import FakeRunner, grid, measurement_of, plan
store = Store()
session = store.create_session(plan(grid(), FakeRunner(grid())))
store.append(session, [measurement_of(grid(), row) for row in range(100)])
os._exit(0)  # the write-ahead log stays
"""
_OPENED = """
from app.engine.store.database import Store
with Store() as store:
    print(bool(store.read_only), store.session(1).state, len(store.load(1).table))
"""


def test_a_store_that_cannot_be_written_when_it_is_opened_is_read(own_data_folder: Path) -> None:
    fakes = {**os.environ, "PYTHONPATH": os.pathsep.join(("tests", "."))}
    subprocess.run([sys.executable, "-c", _KILLED], check=True, env=fakes)
    log = own_data_folder / "wattridge.sqlite-wal"
    said = with_room(["-c", _OPENED], log.stat().st_size)
    assert said.stdout.split() == ["True", "interrupted", "100"], said.stderr
    with Store() as store:
        assert len(store.load(1).table) == 100
        assert not store.read_only
