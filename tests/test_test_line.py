"""The README's test line ends whatever a test does to its worker."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIES = "import os, signal\n\ndef test_before(): pass\ndef test_dies(): os.kill(os.getpid(), signal.SIGSEGV)\n"


def test_a_worker_that_dies_ends_the_run_with_a_failure(tmp_path: Path) -> None:
    (line,) = re.findall(r"-m pytest ([^`]*)`", (ROOT / "README.md").read_text(encoding="utf-8"))
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = {options['addopts']}\n")
    (tmp_path / "test_one.py").write_text(DIES)
    for name in ("two", "three", "four", "five"):
        (tmp_path / f"test_{name}.py").write_text("def test_it(): pass\n")
    command = [sys.executable, "-m", "pytest", *line.split(), "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1
    assert "crashed while running 'test_one.py::test_dies'" in done.stdout
