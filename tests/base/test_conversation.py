"""A conversation with a child process: what each side hears, and how each notices the end of the other."""

from __future__ import annotations

import io
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from app.base.conversation import Conversation, Frame, WireError, receive
from app.engine.children.python import python_environment

ECHO = """
from app.base.conversation import Parent
parent = Parent(orphan_s={orphan_s})
print("what anything prints is no frame")
while (frame := parent.inbox.get()) is not None:
    parent.send({{"heard": frame[0]}}, frame[1])
{then}
"""


def conversation(source: str, inbox: queue.SimpleQueue[Frame | None]) -> Conversation[Frame]:
    words = [sys.executable, "-P", "-c", source]
    return Conversation(words, receive, inbox.put, environment=python_environment())


def test_frames_come_back_and_what_is_printed_is_kept_with_the_errors() -> None:
    inbox: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
    process = conversation(ECHO.format(orphan_s=None, then=""), inbox)
    assert process.send({"do": "it"}, [b"block", b""])
    assert inbox.get(timeout=60) == ({"heard": {"do": "it"}}, [b"block", b""])
    assert process.status is None
    process.end(60)
    assert process.status == 0
    assert inbox.get(timeout=60) is None
    assert process.last_words(60) == ["what anything prints is no frame"]
    assert not process.send({"do": "more"})
    process.end(0)  # safe to call twice


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such signals")
def test_a_child_that_outlasts_signals_is_ended_by_its_parent_and_what_it_started_hears_them() -> None:
    source = ECHO.format(orphan_s=None, then="own.send_signal(15); raise SystemExit(-own.wait())").replace(
        "Parent(orphan_s=None)",
        """Parent(outlasts_signals=True)
import subprocess, sys
own = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])""",
    )
    inbox: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
    process = conversation(source, inbox)
    process.send({"number": 1})
    inbox.get(timeout=60)
    for number in (signal.SIGTERM, signal.SIGHUP):
        os.kill(process.pid, number)
    process.send({"number": 2})
    assert inbox.get(timeout=60) == ({"heard": {"number": 2}}, [])
    process.end(60)
    assert process.status == signal.SIGTERM, "that of what it started, which a signal ended"


def test_a_stream_that_is_no_frame_is_refused() -> None:
    assert receive(io.BytesIO(b"")) is None
    assert receive(io.BytesIO(b"\0\0")) is None
    with pytest.raises(WireError):
        receive(io.BytesIO(b"Traceback (most recent call last):"))
    with pytest.raises(WireError):
        receive(io.BytesIO(b"\0\0\0\x02{}"))
    with pytest.raises(WireError):
        receive(io.BytesIO(b'\0\0\0\x10{"blocks": [-1]}'))


def test_what_is_no_frame_ends_the_conversation() -> None:
    inbox: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
    process = conversation("import time; print('Traceback (most recent call last)', flush=True); time.sleep(60)", inbox)
    assert inbox.get(timeout=60) is None
    process.kill()
    assert process.status not in (None, 0)


def test_a_child_that_does_not_end_by_itself_is_killed() -> None:
    inbox: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
    process = conversation(ECHO.format(orphan_s=None, then="import time; time.sleep(600)"), inbox)
    process.send({})
    inbox.get(timeout=60)
    began = time.monotonic()
    process.end(0.2)
    assert time.monotonic() - began < 30
    assert process.status not in (None, 0)


def test_a_child_that_reads_nothing_is_ended_while_another_thread_sends_to_it() -> None:
    process = conversation("import time; time.sleep(600)", queue.SimpleQueue())
    written: list[bool] = []
    sender = threading.Thread(target=lambda: written.append(process.send({}, [bytes(16 << 20)])), daemon=True)
    sender.start()
    time.sleep(0.5)  # the pipe is full
    ender = threading.Thread(target=process.end, args=(0.2,), daemon=True)
    ender.start()
    ender.join(30)
    assert not ender.is_alive()
    sender.join(30)
    assert written == [False]
    assert process.status not in (None, 0)


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at /proc")
def test_a_child_ends_with_a_parent_that_is_killed_though_its_main_thread_is_held() -> None:
    child = ECHO.format(orphan_s=0.1, then="import time; time.sleep(600)")
    parent = (
        "import queue, sys, time\n"
        "from app.base.conversation import Conversation, receive\n"
        "inbox = queue.SimpleQueue()\n"
        f"process = Conversation([sys.executable, '-P', '-c', {child!r}], receive, inbox.put)\n"
        "process.send({}), inbox.get(timeout=60)\n"
        "print(process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    words = [sys.executable, "-P", "-c", parent]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=python_environment()) as process:
        assert process.stdout is not None
        left = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + 60
    while _runs(left) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _runs(left)


def _runs(process: int) -> bool:
    """Whether it has not ended; nobody here may collect it."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
