"""Children that are kept running: how they end, and what they leave."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from app.engine.children.supervised import Child, Supervisor


@pytest.mark.skipif(os.name != "posix", reason="its child starts a program of POSIX")
def test_a_child_whose_program_holds_its_output_open_is_reported_and_holds_up_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    child = Child("the scheduler", "leaves_a_program", {"pid": str(tmp_path / "pid")})
    supervisor = Supervisor([child], said.append)
    assert supervisor.until_ready(child, 60) is None
    end_s = time.monotonic() + 40
    while not said and time.monotonic() < end_s:
        time.sleep(0.02)
    assert said == ["the scheduler: there is no port left"]
    closing = threading.Thread(target=supervisor.close, daemon=True)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
