"""What was a large result is freed on a thread of its own, and whoever lets go of it does not wait."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from app.engine.space.result_table import FreedAside

ROOT = Path(__file__).resolve().parents[3]


class Counted:
    """Tells on which threads its instances end."""

    ended: ClassVar[list[int]] = []

    def __del__(self) -> None:
        Counted.ended.append(threading.get_ident())


def ended(count: int) -> set[int]:
    """Wait until so many have ended; on which threads."""
    end = time.monotonic() + 20
    while len(Counted.ended) < count and time.monotonic() < end:
        time.sleep(0.001)
    assert len(Counted.ended) == count
    threads = set(Counted.ended)
    Counted.ended.clear()
    return threads


def test_many_are_freed_on_another_thread() -> None:
    kept = FreedAside(Counted() for _ in range(10_000))
    shared = kept
    del kept
    assert not Counted.ended, "they are still in use"
    del shared
    [thread] = ended(10_000)
    assert thread != threading.get_ident()


def test_many_are_freed_on_another_thread_that_is_done_before_this_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    start = _thread.start_new_thread

    def start_and_wait(function: Callable[..., None], arguments: tuple[object, ...]) -> None:
        done = threading.Event()
        start(lambda: (function(*arguments), done.set()), ())
        assert done.wait(20)

    monkeypatch.setattr("app.engine.space.result_table._thread.start_new_thread", start_and_wait)
    kept = FreedAside(Counted() for _ in range(10_000))
    del kept
    assert threading.get_ident() not in ended(10_000)


def test_few_are_freed_at_once() -> None:
    kept = FreedAside(Counted() for _ in range(10))
    del kept
    assert len(Counted.ended) == 10
    assert ended(10) == {threading.get_ident()}


def test_the_program_ends_with_one_in_use() -> None:
    program = "from app.engine.space.result_table import FreedAside\nkept = FreedAside([[] for _ in range(10_000)])\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_printed_where_one_outlives_the_modules_at_the_interpreters_end() -> None:
    code = (
        "import builtins, sys\nfrom app.engine.space import result_table\n"
        "builtins.kept = result_table.FreedAside([1])\nresult_table._MANY = None  # as the interpreter leaves it\n"
        "del builtins.kept\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
