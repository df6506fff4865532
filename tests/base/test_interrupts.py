"""A signal ends a command wherever it comes: between any two lines of a wait, and where exceptions are lost."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

IN_EVERY_LINE = """
import signal, sys, threading, time
from app.base.processes import stop_on_interrupt

lines = at = 0

def tracer(frame, event, _):
    global lines
    if frame.f_code.co_filename != threading.__file__:
        return None
    if event == "line":
        lines += 1
        if lines == at:
            signal.raise_signal(signal.SIGTERM)
    return tracer

for at in range(1, 1000):
    lines = 0
    with stop_on_interrupt() as stop:
        sys.settrace(tracer)
        stop.wait(0.001)
        sys.settrace(None)
        if lines < at:
            break
        assert stop.wait(20), f"line {at}"
print(at)
"""
IN_A_DESTRUCTOR = """
import signal, time
from app.base.processes import end_on_signals

class Loses:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
        time.sleep(0)

with end_on_signals():
    try:
        Loses()
        time.sleep(600)
    finally:
        print("its contexts are closed", flush=True)
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.skipif(sys.platform == "win32", reason="its signals do not come between two lines")
def test_a_signal_ends_a_wait_in_whichever_line_of_it_it_comes() -> None:
    done = run(IN_EVERY_LINE)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10  # lines of the wait


@pytest.mark.skipif(sys.platform == "win32", reason="it has no SIGTERM from outside")
def test_a_signal_whose_exception_is_lost_in_a_destructor_ends_the_command_all_the_same() -> None:
    done = run(IN_A_DESTRUCTOR)
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stdout == "its contexts are closed\n"
    assert done.stderr == ""
