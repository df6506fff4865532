"""The tests, and with them every promise, do not depend on who runs them where."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OF_A_USER = {
    "WATTRIDGE_READ_ONLY": "1",
    "WATTRIDGE_DATA": "/proc/wattridge",
    "WATTRIDGE_TRACEBACK": "1",
    "XDG_DATA_HOME": "/proc/data",
    "XDG_CONFIG_HOME": "/proc/config",
    "XDG_RUNTIME_DIR": "/proc/run",
    "COLUMNS": "33",
    "LINES": "2",
    "LANG": "de_DE.UTF-8",
    "LC_ALL": "POSIX",
    "LANGUAGE": "tr",
    "TZ": "Asia/Kathmandu",
    "NO_COLOR": "1",
    "FORCE_COLOR": "1",
    "PYTHONIOENCODING": "latin-1",
    "PYTHONOPTIMIZE": "",
    "PYTHONWARNINGS": "ignore",
    "QT_SCALE_FACTOR": "3",
    "QT_QPA_PLATFORM": "no-such-platform",
    "OPENBLAS_NUM_THREADS": "7",
    "SUDO_UID": "12345",
}
_SAMPLE = (
    "tests/engine/control/test_guard.py",
    "tests/views/shell/test_names.py",
    "tests/base/test_data_folder.py",
    "tests/test_cli.py",
)


def test_nothing_of_the_users_environment_is_left() -> None:
    code = (
        "import os, sys, time; sys.path.insert(0, 'tests'); from environment import clear; clear();"
        f"left = [n for n in {sorted(OF_A_USER)!r} if n in os.environ and n != 'QT_QPA_PLATFORM'];"
        "assert not left, left; assert os.environ['QT_QPA_PLATFORM'] == 'offscreen';"
        "assert 'WATTRIDGE_SHARED' in os.environ; assert time.timezone != -20700"
    )
    environment = {**os.environ, **OF_A_USER, "WATTRIDGE_SHARED": "/somewhere"}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, timeout=60)


def test_a_sample_of_the_tests_passes_in_an_odd_environment(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 't'}"]
    chosen = "guard or names or data_folder or gpus or spec"
    environment = {**os.environ, **OF_A_USER, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*words, *_SAMPLE, "-k", chosen], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout or "[100%]" in done.stdout
