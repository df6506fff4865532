"""`FileLock`: one process holds it, and who looks whether one does is in nobody's way."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from app.base.file_lock import FileLock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a lock cannot be looked at")

LOOKS = """
import sys
from pathlib import Path
from app.base.file_lock import FileLock
path = Path(sys.argv[1])
print("looks", flush=True)
while not path.with_suffix(".stop").exists():
    FileLock.is_held(path)
"""
HOLDS = """
import sys
from pathlib import Path
from app.base.file_lock import FileLock
lock = FileLock.acquire(Path(sys.argv[1]))
print("holds", lock is not None, flush=True)
sys.stdin.read()
"""


def started(program: str, path: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", program, str(path)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip() in ("looks", "holds True")
    return process


def test_no_try_fails_because_others_look(tmp_path: Path) -> None:
    path = tmp_path / "1.lock"
    lookers = [started(LOOKS, path) for _ in range(2)]
    try:
        for _ in range(2000):
            path.touch()  # as a process that was killed leaves it
            lock = FileLock.acquire(path)
            assert lock is not None
            lock.release()
    finally:
        path.with_suffix(".stop").touch()
        for looker in lookers:
            looker.communicate(timeout=30)


def test_who_looks_sees_whether_a_process_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "1.lock"
    assert not FileLock.is_held(path)
    holder = started(HOLDS, path)
    assert FileLock.is_held(path)
    assert FileLock.acquire(path) is None
    holder.kill()
    holder.communicate(timeout=30)
    assert path.exists()
    assert not FileLock.is_held(path)
    lock = FileLock.acquire(path)
    assert lock is not None
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(FileLock.is_held(path)))
    thread.start()
    thread.join()
    assert seen == [FileLock.is_held(path)] == [True]  # this process's own too
    assert FileLock.acquire(path) is None
    lock.release()
    assert not FileLock.is_held(path)


def test_a_lock_of_an_older_version_keeps_this_one_out(tmp_path: Path) -> None:
    path = tmp_path / "1.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert FileLock.acquire(path) is None


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.EIO])
def test_a_file_system_without_the_lock_that_can_be_looked_at_has_the_other(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "fcntl", none)
    path = tmp_path / "1.lock"
    lock = FileLock.acquire(path)
    assert lock is not None
    assert FileLock.acquire(path) is None
    assert FileLock.is_held(path)  # as far as can be known
    lock.release()
    assert not FileLock.is_held(path)


def test_a_file_system_without_locks_is_an_error_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No locks available"):
        FileLock.acquire(tmp_path / "1.lock")
    assert len(os.listdir("/proc/self/fd")) == before
