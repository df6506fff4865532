"""An ordinary user, the real sudo and the real helper: faults of disk, driver and records, as the user sees them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import real_sudo
from boards import AS_ROOT

pytestmark = [
    pytest.mark.skipif(not AS_ROOT, reason="only root can make a name space with boards that are not there"),
    pytest.mark.skipif(shutil.which("sudo") is None or shutil.which("unshare") is None, reason="sudo is not installed"),
]


def scene(scenario: str) -> dict[str, Any]:
    """What becomes of a scenario of `real_sudo`."""
    with tempfile.TemporaryDirectory(prefix="sudo-") as folder:
        Path(folder).chmod(0o755)
        words = ["unshare", "--mount", sys.executable, real_sudo.__file__, scenario, folder]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if done.returncode == real_sudo.NOT_HERE:
        pytest.skip("this container may not mount a file system")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert "Traceback" not in report["said"]
    return report


def test_nothing_is_set_where_it_cannot_be_recorded() -> None:
    report = scene("full before")
    assert (report["status"], report["back"], report["calls"], report["records"]) == (1, True, 0, [])
    assert "No space left on device" in report["said"]


def test_what_cannot_be_confirmed_is_put_back() -> None:
    report = scene("full at Enter")
    assert (report["status"], report["back"], report["records"]) == (1, True, [])
    assert "not confirmed" in report["said"]
    assert "the board is as it was before" in report["said"]
    report = scene("read-only at Enter")
    assert (report["status"], report["back"], report["records"]) == (1, True, ["json"])
    assert "Read-only file system" in report["said"]
    assert "the board is as it was before, but its record stays" in report["said"]


@pytest.mark.parametrize("how", ["stopped", "hung"])
def test_the_board_is_back_within_ten_seconds_of_a_hang(how: str) -> None:
    report = scene(how)
    assert (report["status"], report["back"], report["records"]) == (1, True, [])
    assert report["back_s"] < 10.0
    assert "has ended, and what was there before is back" in report["said"]


def test_an_unreadable_record_is_named_until_the_board_is_unlocked() -> None:
    report = scene("truncated")
    assert report["statuses"] == [1, 1, 0]  # gpus, restore, restore --defaults
    assert (report["status"], report["lock"], report["records"]) == (0, [0, 0], ["unreadable"])
    assert "Nothing is left over" in report["said"]
